#include "qr/in_place_passes.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <map>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "kernels/run_fused.hpp"
#include "kernels/sketch.hpp"
#include "qr/tsqr_passes.hpp"
#include "scalar/dispatch.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

/// Blocks of a GiB: what the sums of their units take beside them is a hundredth of V or so.
constexpr std::int64_t kBlockElements = std::int64_t{1} << 27;
/// Blocks of TSQR that are one task on a GPU: up to 2 GiB of V, so that the upper levels of its
/// tree, of a few panels each, are few.
constexpr std::int64_t kTasksOfAGroup = 1024;
constexpr int kQueuesOfPart = 2;

/// Puts the tasks of a pass into queues, and keeps when each was done.
template <class T>
class Tasks {
 public:
  Tasks(const Schedule& schedule, const std::vector<PlacedRows<T>>& parts,
        const std::vector<Lane>& lanes, SmallBlocks& small)
      : schedule_(schedule), parts_(parts), lanes_(lanes), small_(small) {}

  /// Behind what is in the first queue of each memory.
  void start() {
    for (const Lane& lane : lanes_) {
      if (lane.memory == start_.size()) {
        start_.push_back(lane.queue->record());
      } else {
        lane.queue->wait(start_[lane.memory]);
      }
    }
    for (std::int64_t step = 0; step < schedule_.steps; ++step) {
      TaskList tasks;
      schedule_.emit(step, tasks);
      for (const Task& task : std::as_const(tasks).tasks())
        put(task, std::as_const(tasks).operands(task));
    }
  }
  /// What is put into the first queue of a memory from now on comes behind all tasks there.
  void join() {
    std::vector<std::size_t> last(lanes_.size(), done_.size());
    for (std::size_t i = 0; i < done_.size(); ++i) last[done_[i].span.queue] = i;
    std::size_t first = 0;
    for (std::size_t q = 0; q < lanes_.size(); ++q) {
      if (lanes_[q].memory != lanes_[first].memory) first = q;
      if (q != first && last[q] < done_.size()) lanes_[first].queue->wait(done_[last[q]].end);
    }
  }
  /// Returns when all are done. A short pass reports no progress.
  void finish(const ProgressCallback& progress) {
    Progress state{.what = "qr"};
    for (const Done& done : done_) state.total += done.span.flops;
    const auto begin = std::chrono::steady_clock::now();
    auto nap = std::chrono::microseconds(100);
    for (const Done& done : done_) {
      for (; progress && !done.end.done(); nap = std::min(2 * nap, kNapMost)) {
        std::this_thread::sleep_for(nap);
        state.seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        if (nap == kNapMost && !progress(state)) abandon();
      }
      state.done += done.span.flops;
    }
    for (const Lane& lane : lanes_) lane.queue->synchronize();
  }
  /// Trace of the tasks that are done.
  [[nodiscard]] Trace trace() const {
    Trace trace;
    std::size_t first_lane = 0;
    for (std::size_t q = 0; q < lanes_.size(); ++q) {
      if (lanes_[q].memory != lanes_[first_lane].memory) first_lane = q;
      trace.queues.push_back({lanes_[q].site->device->description().name,
                              "compute " + std::to_string(q - first_lane),
                              static_cast<std::uint16_t>(lanes_[q].memory)});
    }
    for (int f = 0; f < schedule_.blocks.families(); ++f)
      trace.families.push_back(schedule_.blocks.family(f).name);
    // Devices have clocks of their own, which begin with the pass.
    std::vector<double> start;
    for (const Event& event : start_) start.push_back(event.seconds());
    const auto end_of = [&](const Done& done) {
      return done.end.seconds() - start[lanes_[done.span.queue].memory];
    };
    std::vector<double> before(lanes_.size());
    for (const Done& done : done_) {
      Span span = done.span;
      double& end = before[span.queue];
      for (const std::size_t of_other : done.waits) end = std::max(end, end_of(done_[of_other]));
      span.operation = trace.operation_number(done.operation->name);
      span.begin = end;
      end = std::max(end, end_of(done));
      span.end = end;
      trace.seconds = std::max(trace.seconds, end);
      trace.add(span);
    }
    return trace;
  }

 private:
  static constexpr auto kNapMost = std::chrono::microseconds(20'000);

  struct Done {
    const Operation* operation;
    Span span;
    std::vector<std::size_t> waits;  ///< tasks of other queues
    Event end;
  };
  /// The last task of a queue that touched a block.
  struct Use {
    std::size_t task;
    bool writes;  ///< or one before it in its queue, since the last that waited for it
  };

  [[noreturn]] void abandon() {
    for (const Lane& lane : lanes_) lane.queue->abandon();
    for (const Lane& lane : lanes_) lane.queue->synchronize();
    fail(ErrorKind::cancelled, "qr", "cancelled in a pass; V may hold anything");
  }

  /// In a memory.
  [[nodiscard]] BlockView view(BlockId id, std::size_t memory) const {
    const BlockExtent x = schedule_.blocks.extent(id);
    const Element element = schedule_.blocks.element(id);
    if (id.family() == rows::kMatrix) {
      std::int64_t before = 0;
      for (std::size_t p = 0; p < memory; ++p) before += parts_[p].v.rows;
      const PlacedRows<T>& part = parts_[memory];
      const bool of_v = x.col < part.v.cols;
      const MatrixView<T>& there = of_v ? part.v : part.beside;
      T* first = there.column(of_v ? x.col : x.col - part.v.cols) + (x.row - before);
      return {first, x.rows, x.cols, there.ld, x.row, x.col, element};
    }
    return {small_.address(id, memory),
            x.rows,
            x.cols,
            std::max<std::int64_t>(x.rows, 1),
            x.row,
            x.col,
            element};
  }

  /// The tasks that a task of queue q has to wait for, because of one operand. Who waits for it
  /// later waits for those of its queue before it, too.
  void depend(BlockId id, Access access, std::uint16_t q, std::vector<std::size_t>& waits) {
    std::vector<Use>& uses = uses_[id];
    bool written = writes(access);
    for (const Use& use : uses) {
      const bool same = done_[use.task].span.queue == q;
      if (!same && (use.writes || writes(access))) waits.push_back(use.task);
      written = written || (same && use.writes);
    }
    std::erase_if(
        uses, [&](const Use& use) { return writes(access) || done_[use.task].span.queue == q; });
    uses.push_back({done_.size(), written});
  }

  void put(const Task& task, std::span<const TaskOperand> operands) {
    Done done{task.operation, {}, {}, {}};
    const Lane& lane = lanes_[task.device];
    const auto access = [&](std::size_t i) {
      return task.operation->access[i % static_cast<std::size_t>(task.operation->operands)];
    };
    std::vector<BlockView> views;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      views.push_back(view(operands[i].id, lane.memory));
      if (schedule_.devices > 1) depend(operands[i].id, access(i), task.device, done.waits);
    }
    const Elements elements = elements_of(schedule_.blocks, task, operands);
    const Backend& backend = *lane.site->backend;
    const KernelFunction kernel = backend.kernels().find(task.operation->name, elements);
    require(kernel != nullptr, ErrorKind::device, "qr", "{} has no {} in {}", backend.name(),
            task.operation->name, to_string(elements));
    Queue& queue = *lane.queue;
    for (const std::size_t other : done.waits) queue.wait(done_[other].end);
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].id.family() != rows::kMatrix && reads(access(i)))
        small_.read(operands[i].id, lane.memory);
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].id.family() != rows::kMatrix && writes(access(i)))
        small_.write(operands[i].id, lane.memory);
    }
    kernel(queue, {views, task.operation->operands}, {.variant = task.variant});
    done.span.queue = task.device;
    done.span.family = static_cast<std::uint8_t>(operands[0].id.family());
    done.span.row = static_cast<std::int32_t>(operands[0].id.row());
    done.span.col = static_cast<std::int32_t>(operands[0].id.col());
    done.span.calls = task.calls;
    done.span.flops = work_of(schedule_.blocks, task, operands);
    done.end = queue.record();
    done_.push_back(std::move(done));
  }

  const Schedule& schedule_;
  const std::vector<PlacedRows<T>>& parts_;
  const std::vector<Lane>& lanes_;
  SmallBlocks& small_;
  std::vector<Event> start_;  ///< of each memory
  std::vector<Done> done_;
  std::map<BlockId, std::vector<Use>> uses_;
};

/// What is in queues uses memory of the host; nothing is left in them when a pass ends.
class Drained {
 public:
  explicit Drained(const std::vector<Lane>& lanes) : lanes_(lanes) {}
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;
  ~Drained() {
    for (const Lane& lane : lanes_) {
      try {
        lane.queue->synchronize();
      } catch (const std::exception&) {  // told by who waited before, or by what ended the pass
      }
    }
  }

 private:
  const std::vector<Lane>& lanes_;
};

struct AddElements {
  template <class W>
  [[gnu::always_inline]] static void run(const W* a, const W* b, W* c, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
  }
};

/// Sums of several devices' blocks, which the host adds up as gram_sum does.
class LateSums {
 public:
  /// Puts the copies of what is added up into queues.
  LateSums(const std::vector<PartTree::Join>& joins, SmallBlocks& small)
      : joins_(joins), small_(small) {
    std::vector<int> made;
    for (const PartTree::Join& join : joins_) {
      for (const int name : {join.left, join.right}) {
        if (std::find(made.begin(), made.end(), name) == made.end()) small_.fetch(block(name));
      }
      made.push_back(join.to);
    }
  }
  /// When they are there; bytes: of a sum.
  void add(Element element, std::int64_t bytes, std::byte* whole) const {
    for (const PartTree::Join& join : joins_) {
      dispatch(element, [&]<class W>(std::type_identity<W>) {
        const auto at = [&](int name) {
          return reinterpret_cast<W*>(name < 0 ? whole : small_.on_host(block(name)));
        };
        run_fused<AddElements>(static_cast<const W*>(at(join.left)),
                               static_cast<const W*>(at(join.right)), at(join.to),
                               bytes / static_cast<std::int64_t>(sizeof(W)));
      });
    }
  }

 private:
  [[nodiscard]] static BlockId block(int name) { return {rows::kParts, name, 0}; }

  const std::vector<PartTree::Join>& joins_;
  SmallBlocks& small_;
};

/// Behind all else.
void add_sums_of_host(Trace& trace, std::size_t count, double seconds) {
  Span span;
  span.operation = trace.operation_number(gram_sum.name);
  span.family = rows::kSum;
  span.queue = static_cast<std::uint16_t>(trace.queues.size());
  span.calls = static_cast<std::uint32_t>(count);
  span.begin = trace.seconds;
  span.end = trace.seconds = trace.seconds + seconds;
  trace.queues.push_back({"host", "sums", 0});
  trace.add(span);
}

}  // namespace

template <class T>
InPlacePasses<T>::InPlacePasses(std::vector<PlacedRows<T>> parts, const Options& options)
    : parts_(std::move(parts)), progress_(options.progress), options_(options) {
  const int queues = parts_.size() > 1 ? kQueuesOfPart : queues_of(*parts_[0].site, options);
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    for (int q = 0; q < queues; ++q)
      lanes_.push_back({parts_[p].site, &parts_[p].site->queue_at(q), p});
  }
}

/// The lanes for a pass: with one part all of its queues, with several queues_of_part of each.
template <class T>
std::vector<Lane> InPlacePasses<T>::lanes_of(const RowProblem& problem) const {
  std::vector<Lane> lanes;
  int of_memory = 0;
  for (const Lane& lane : lanes_) {
    const bool first = lanes.empty() || lanes.back().memory != lane.memory;
    of_memory = first ? 1 : of_memory + 1;
    if (parts_.size() == 1 || of_memory <= problem.queues_of_part) lanes.push_back(lane);
  }
  return lanes;
}

template <class T>
std::int64_t InPlacePasses<T>::rows() const {
  std::int64_t rows = 0;
  for (const PlacedRows<T>& part : parts_) rows += part.v.rows;
  return rows;
}

/// V is then read once and written once less, for which a GPU has kernels up to so many columns; of
/// few nothing is gained. On two cores the solve that is done twice takes longer than that saves
/// (docs/benchmarks.md).
template <class T>
bool InPlacePasses<T>::joins_solves() const {
  constexpr std::int64_t kLeast = 12;
  constexpr std::int64_t kMost = 64;
  return std::is_same_v<T, double> && cols() >= kLeast && cols() <= kMost &&
         parts_[0].site->backend->kind() == DeviceKind::gpu;
}

/// Kernels of a CPU are one thread each.
template <class T>
int InPlacePasses<T>::queues_of(const DeviceSite& site, const Options& options) {
  if (site.backend->kind() == DeviceKind::gpu) return 1;
  return options.compute_queues > 0 ? options.compute_queues : site.queues();
}

template <class T>
RowProblem InPlacePasses<T>::completed(RowProblem problem) const {
  const bool gpu = parts_[0].site->backend->kind() == DeviceKind::gpu;
  for (const PlacedRows<T>& part : parts_) {
    if (parts_.size() > 1) problem.parts.push_back(part.v.rows);
  }
  // The host wants the sum in any case, and adds up a few small blocks sooner than they are copied
  // from device to device.
  problem.late_sums_elsewhere =
      parts_.size() > 1 && (adds_up(problem.pass) || problem.pass == RowPass::inner_columns ||
                            problem.pass == RowPass::count_gram);
  // What one queue of a device has copied from another device the other queue does not know of.
  const bool alone = problem.late_sums_elsewhere || problem.pass == RowPass::solve;
  problem.queues_of_part = parts_.size() > 1 && alone ? kQueuesOfPart : 1;
  problem.devices = static_cast<int>(lanes_of(problem).size());
  problem.identity = 0;
  problem.stays = false;
  problem.block_elements =
      gpu && !has_blocks_of_its_own(problem.pass) ? kBlockElements : kPassBlockElements;
  problem.group = gpu ? kTasksOfAGroup : 1;
  problem.wide_sums = wide_sums_of(options_.wide_sums, problem.n, gpu);
  return problem;
}

template <class T>
RunReport InPlacePasses<T>::run(RowProblem asked, const PassData<T>& data) {
  RowProblem problem = completed(std::move(asked));
  if (problem.pass == RowPass::count_gram && problem.late_sums_elsewhere) {
    if (!RowBlocks(problem).parts().late_joins().empty()) return run_count_gram(problem, data);
    problem.late_sums_elsewhere = false;  // C is on one device, and so is its Gram matrix
    problem.queues_of_part = 1;
    problem.devices = static_cast<int>(lanes_of(problem).size());
  }
  return run_tasks(problem, data);
}

/// C, which is a few thousand rows, is added up by the host and goes to the first device for its
/// Gram matrix. In the memory that is kept for TSQR, which is another method.
template <class T>
RunReport InPlacePasses<T>::run_count_gram(const RowProblem& problem, const PassData<T>& data) {
  const std::int64_t rows = sketch_buckets(problem.n);
  std::vector<double> c(static_cast<std::size_t>(rows * problem.n));
  PassData<T> of_c = data;
  of_c.sum = reinterpret_cast<std::byte*>(c.data());
  RunReport report = run_tasks(problem, of_c);
  DeviceSite& site = *parts_[0].site;
  const auto bytes = static_cast<std::int64_t>(c.size() * sizeof(double));
  std::byte* there = site.kept(bytes);
  std::copy_n(reinterpret_cast<const std::byte*>(c.data()), bytes, site.staging(bytes));
  site.queue->copy(there, site.staging(bytes), bytes, CopyDirection::host_to_device);
  site.queue->synchronize();  // before the staging memory is that of the next pass
  const MatrixView<double> v{reinterpret_cast<double*>(there), rows, problem.n, rows};
  RowProblem gram{.pass = RowPass::gram, .m = rows, .n = problem.n, .sum = problem.sum};
  InPlacePasses<double> passes({PlacedRows<double>{.site = &site, .v = v}}, options_);
  RunReport of_gram = passes.run(gram, {.scales = data.scales + problem.n, .sum = data.sum});
  of_gram.traffic.host_to_device_bytes += bytes;
  of_gram.trace.traffic.host_to_device_bytes += bytes;
  of_gram.planned_traffic.host_to_device_bytes += bytes;
  accumulate_with_trace(report, of_gram);
  return report;
}

template <class T>
RunReport InPlacePasses<T>::run_tasks(const RowProblem& problem, const PassData<T>& data) {
  const auto begin = std::chrono::steady_clock::now();
  const Schedule schedule = row_pass(problem);
  const BlockTable& blocks = schedule.blocks;
  int kept = 0;
  if (problem.pass == RowPass::triangles) kept = rows::kSum;
  if (problem.pass == RowPass::orthogonal) kept = rows::kFactor;
  const bool maxima = blocks.count(rows::kMaxima) > 0;
  std::vector<PartTree::Join> late;
  if (problem.late_sums_elsewhere) late = RowBlocks(problem).parts().late_joins();
  const bool sum_there = data.sum != nullptr && late.empty();  // on a device
  const std::vector<Lane> lanes = lanes_of(problem);
  std::vector<Lane> of_memories;
  for (const Lane& lane : lanes) {
    if (lane.memory == of_memories.size()) of_memories.push_back(lane);
  }
  SmallBlocks small(
      blocks, std::move(of_memories), kept,
      {false, data.scales != nullptr, data.factor != nullptr, !late.empty(), sum_there, maxima},
      std::exchange(kept_, {}));
  const Drained drained(lanes);
  if (data.scales != nullptr)
    small.load(rows::kScales, reinterpret_cast<const std::byte*>(data.scales));
  if (data.factor != nullptr) small.load(rows::kFactor, data.factor);
  Tasks<T> tasks(schedule, parts_, lanes, small);
  tasks.start();
  tasks.join();
  if (sum_there) small.fetch(rows::kSum);
  LateSums sums(late, small);
  if (maxima) small.fetch(rows::kMaxima);
  if (data.meanwhile) data.meanwhile();
  tasks.finish(progress_);
  if (sum_there) small.take(rows::kSum, data.sum);
  const auto sums_begin = std::chrono::steady_clock::now();
  if (!late.empty()) {
    const BlockId part(rows::kParts, 0, 0);
    sums.add(blocks.element(part), blocks.bytes(part), data.sum);
  }
  const std::chrono::duration<double> of_sums = std::chrono::steady_clock::now() - sums_begin;
  if (maxima && data.maxima != nullptr) {
    std::vector<double> of_blocks(static_cast<std::size_t>(blocks.total_bytes(rows::kMaxima) / 8));
    small.take(rows::kMaxima, reinterpret_cast<std::byte*>(of_blocks.data()));
    for (auto first = of_blocks.begin(); first != of_blocks.end(); first += problem.n)
      keep_larger(std::vector<double>(first, first + problem.n), data.maxima);
  }
  if (kept == rows::kSum) kept_ = small.take_held();
  RunReport report;
  report.n = problem.n;
  report.tile = block_rows(problem);
  report.path = "in place";
  report.policy = "none";
  for (const PlacedRows<T>& part : parts_)
    report.devices.push_back(part.site->device->description().name);
  report.compute_queues = static_cast<int>(lanes.size() / parts_.size());
  report.trace = tasks.trace();
  if (!late.empty()) add_sums_of_host(report.trace, late.size(), of_sums.count());
  report.trace.traffic = small.traffic();
  report.flops = report.trace.flops;
  report.tasks = report.trace.spans_added;
  report.traffic = small.traffic();
  static_cast<Traffic&>(report.planned_traffic) = small.traffic();
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

template <class T>
void InPlacePasses<T>::read(std::int64_t first, std::int64_t count, T* packed) {
  std::int64_t before = 0;
  for (const PlacedRows<T>& part : parts_) {
    const std::int64_t begin = std::max(first, before);
    const std::int64_t end = std::min(first + count, before + part.v.rows);
    for (std::int64_t j = 0; j < cols() && begin < end; ++j) {
      const bool of_v = j < part.v.cols;
      const T* column = of_v ? part.v.column(j) : part.beside.column(j - part.v.cols);
      part.site->queue->copy(packed + j * count + (begin - first), column + (begin - before),
                             (end - begin) * static_cast<std::int64_t>(sizeof(T)),
                             CopyDirection::device_to_host);
    }
    before += part.v.rows;
  }
  for (const PlacedRows<T>& part : parts_) part.site->queue->synchronize();
}

template class InPlacePasses<double>;
template class InPlacePasses<float>;

}  // namespace strata
