#include "qr/in_place_passes.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <map>
#include <thread>

#include "base/check.hpp"
#include "qr/tsqr_passes.hpp"

namespace strata {
namespace {

constexpr std::int64_t kAlignment = 256;  // of the small blocks, as slots of devices have it

/// Blocks of a GiB: what the sums of their units take beside them is a hundredth of V or so.
constexpr std::int64_t kBlockElements = std::int64_t{1} << 27;
/// Blocks of TSQR that are one task on a GPU: up to 2 GiB of V, so that the upper levels of its
/// tree, of a few panels each, are few.
constexpr std::int64_t kGroup = 1024;

/// Where the small blocks of a pass lie, family by family. One family may be kept, from a pass that
/// has it as sums to the next, which has it and one block more as factors: only its last block goes
/// to or comes from the host. What goes and comes passes through the staging memory of the site, so
/// that copies are put into the queue like tasks and the host waits once a pass.
class SmallBlocks {
 public:
  /// moves: whether a family goes to or comes from the host.
  using Moves = std::array<bool, rows::kMaxima + 1>;
  SmallBlocks(const BlockTable& blocks, DeviceSite& site, int kept, const Moves& moves)
      : blocks_(blocks), queue_(*site.queue), kept_(kept), moves_(moves) {
    std::int64_t bytes = 0;
    for (int f = rows::kScales; f <= rows::kMaxima; ++f) {
      if (f == kept) continue;
      first_[static_cast<std::size_t>(f)] = bytes;
      bytes += blocks.count(f) * slot_bytes(f);
    }
    base_ = site.work(std::max(bytes, kAlignment));
    // Behind sums there is room for the factor that the next pass has.
    const std::int64_t further = kept == rows::kSum ? 1 : 0;
    if (kept != 0) kept_base_ = site.kept((blocks.count(kept) + further) * slot_bytes(kept));
    std::int64_t staged = 0;
    for (int f = rows::kScales; f <= rows::kMaxima; ++f) {
      staged_[static_cast<std::size_t>(f)] = staged;
      if (moves_[static_cast<std::size_t>(f)]) staged += staged_bytes(f);
    }
    staging_ = site.staging(std::max(staged, kAlignment));
  }

  [[nodiscard]] std::byte* address(BlockId id) const {
    const int f = id.family();
    const std::int64_t number = id.col() * blocks_.block_rows(f) + id.row();
    std::byte* first = f == kept_ ? kept_base_ : base_ + first_[static_cast<std::size_t>(f)];
    return first + number * slot_bytes(f);
  }
  /// From the packed blocks of a family on the host.
  void load(int f, const std::byte* from) {
    std::copy_n(from, staged_bytes(f), staged(f));
    for_each(f, [&](std::byte* here, std::int64_t at, std::int64_t bytes) {
      queue_.copy(here, staged(f) + at, bytes, CopyDirection::host_to_device);
      traffic.host_to_device_bytes += bytes;
    });
  }
  /// To the host, behind what is in the queue; there when that is done.
  void fetch(int f) {
    for_each(f, [&](const std::byte* here, std::int64_t at, std::int64_t bytes) {
      queue_.copy(staged(f) + at, here, bytes, CopyDirection::device_to_host);
      traffic.device_to_host_bytes += bytes;
    });
  }
  void take(int f, std::byte* to) const { std::copy_n(staged(f), staged_bytes(f), to); }

  Traffic traffic;

 private:
  [[nodiscard]] std::byte* staged(int f) const {
    return staging_ + staged_[static_cast<std::size_t>(f)];
  }
  [[nodiscard]] std::int64_t staged_bytes(int f) const {
    return f == kept_ ? blocks_.capacity_bytes(f) : blocks_.total_bytes(f);
  }
  [[nodiscard]] std::int64_t slot_bytes(int f) const {
    return (blocks_.capacity_bytes(f) + kAlignment - 1) / kAlignment * kAlignment;
  }
  template <class F>
  void for_each(int f, F&& copy) const {
    std::int64_t at = 0;
    std::int64_t left = blocks_.count(f);
    blocks_.for_each(f, [&](BlockId id) {
      if (--left > 0 && f == kept_) return;
      copy(address(id), at, blocks_.bytes(id));
      at += blocks_.bytes(id);
    });
  }

  const BlockTable& blocks_;
  Queue& queue_;
  int kept_;  ///< the family that is kept; 0: none
  Moves moves_;
  std::byte* staging_ = nullptr;
  std::array<std::int64_t, rows::kMaxima + 1> staged_{};
  std::byte* base_ = nullptr;
  std::byte* kept_base_ = nullptr;
  std::array<std::int64_t, rows::kMaxima + 1> first_{};
};

/// Puts the tasks of a pass into queues, and keeps when each was done.
template <class T>
class Tasks {
 public:
  Tasks(const Schedule& schedule, MatrixView<T> v, MatrixView<T> beside, const SmallBlocks& small,
        DeviceSite& site)
      : schedule_(schedule), v_(v), beside_(beside), small_(small), site_(site) {}

  /// Behind what is in the first queue.
  void start() {
    start_ = site_.queue->record();
    for (int q = 1; q < schedule_.devices; ++q) site_.queue_at(q).wait(start_);
    for (std::int64_t step = 0; step < schedule_.steps; ++step) {
      TaskList tasks;
      schedule_.emit(step, tasks);
      for (const Task& task : std::as_const(tasks).tasks())
        put(task, std::as_const(tasks).operands(task));
    }
  }
  /// What is put into the first queue from now on comes behind all tasks.
  void join() {
    std::vector<std::size_t> last(static_cast<std::size_t>(schedule_.devices), done_.size());
    for (std::size_t i = 0; i < done_.size(); ++i) last[done_[i].span.queue] = i;
    for (std::size_t q = 1; q < last.size(); ++q) {
      if (last[q] < done_.size()) site_.queue->wait(done_[last[q]].end);
    }
  }
  /// Returns when all are done. A pass of a moment asks nobody.
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
    for (int q = 0; q < schedule_.devices; ++q) site_.queue_at(q).synchronize();
  }
  /// Of tasks that are done.
  [[nodiscard]] Trace trace() const {
    Trace trace;
    const std::string& device = site_.device->description().name;
    for (int q = 0; q < schedule_.devices; ++q)
      trace.queues.push_back({device, "compute " + std::to_string(q), 0});
    for (int f = 0; f < schedule_.blocks.families(); ++f)
      trace.families.push_back(schedule_.blocks.family(f).name);
    const double first = start_.seconds();
    std::vector<double> before(static_cast<std::size_t>(schedule_.devices));
    for (const Done& done : done_) {
      Span span = done.span;
      double& end = before[span.queue];
      for (const std::size_t of_other : done.waits)
        end = std::max(end, done_[of_other].end.seconds() - first);
      span.operation = trace.operation_number(done.operation->name);
      span.begin = end;
      end = std::max(end, done.end.seconds() - first);
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
    for (int q = 0; q < schedule_.devices; ++q) site_.queue_at(q).abandon();
    for (int q = 0; q < schedule_.devices; ++q) site_.queue_at(q).synchronize();
    fail(ErrorKind::cancelled, "qr", "cancelled in a pass; V may hold anything");
  }

  [[nodiscard]] BlockView view(BlockId id) const {
    const BlockExtent x = schedule_.blocks.extent(id);
    const Element element = schedule_.blocks.element(id);
    if (id.family() == rows::kMatrix) {
      T* first = x.col < v_.cols ? v_.column(x.col) : beside_.column(x.col - v_.cols);
      const std::int64_t ld = x.col < v_.cols ? v_.ld : beside_.ld;
      return {first + x.row, x.rows, x.cols, ld, x.row, x.col, element};
    }
    return {small_.address(id),
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
    std::vector<BlockView> views;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const auto place = i % static_cast<std::size_t>(task.operation->operands);
      views.push_back(view(operands[i].id));
      if (schedule_.devices > 1)
        depend(operands[i].id, task.operation->access[place], task.device, done.waits);
    }
    const Elements elements = elements_of(schedule_.blocks, task, operands);
    const KernelFunction kernel = site_.backend->kernels().find(task.operation->name, elements);
    require(kernel != nullptr, ErrorKind::device, "qr", "{} has no {} in {}", site_.backend->name(),
            task.operation->name, to_string(elements));
    Queue& queue = site_.queue_at(task.device);
    for (const std::size_t other : done.waits) queue.wait(done_[other].end);
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
  MatrixView<T> v_;
  MatrixView<T> beside_;
  const SmallBlocks& small_;
  DeviceSite& site_;
  Event start_;
  std::vector<Done> done_;
  std::map<BlockId, std::vector<Use>> uses_;
};

/// What is in queues uses memory of the host; nothing is left in them when a pass ends.
class Drained {
 public:
  Drained(DeviceSite& site, int queues) : site_(site), queues_(queues) {}
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;
  ~Drained() {
    for (int q = 0; q < queues_; ++q) {
      try {
        site_.queue_at(q).synchronize();
      } catch (const std::exception&) {  // told by who waited before, or by what ended the pass
      }
    }
  }

 private:
  DeviceSite& site_;
  int queues_;
};

}  // namespace

/// Kernels of a CPU are one thread each.
template <class T>
int InPlacePasses<T>::queues_of(const DeviceSite& site, const Options& options) {
  if (site.backend->kind() == DeviceKind::gpu) return 1;
  return options.compute_queues > 0 ? options.compute_queues : site.queues();
}

template <class T>
RowProblem InPlacePasses<T>::completed(RowProblem problem) const {
  const bool gpu = site_.backend->kind() == DeviceKind::gpu;
  problem.devices = queues_;
  problem.identity = 0;
  problem.stays = false;
  problem.block_elements =
      gpu && !has_blocks_of_its_own(problem.pass) ? kBlockElements : kPassBlockElements;
  problem.group = gpu ? kGroup : 1;
  return problem;
}

template <class T>
RunReport InPlacePasses<T>::run(RowProblem asked, const PassData<T>& data) {
  const auto begin = std::chrono::steady_clock::now();
  const RowProblem problem = completed(std::move(asked));
  const Schedule schedule = row_pass(problem);
  const BlockTable& blocks = schedule.blocks;
  int kept = 0;
  if (problem.pass == RowPass::triangles) kept = rows::kSum;
  if (problem.pass == RowPass::orthogonal) kept = rows::kFactor;
  const bool maxima = blocks.count(rows::kMaxima) > 0;
  SmallBlocks small(
      blocks, site_, kept,
      {false, data.scales != nullptr, data.factor != nullptr, false, data.sum != nullptr, maxima});
  const Drained drained(site_, queues_);
  if (data.scales != nullptr)
    small.load(rows::kScales, reinterpret_cast<const std::byte*>(data.scales));
  if (data.factor != nullptr) small.load(rows::kFactor, data.factor);
  Tasks<T> tasks(schedule, v_, beside_, small, site_);
  tasks.start();
  tasks.join();
  if (data.sum != nullptr) small.fetch(rows::kSum);
  if (maxima) small.fetch(rows::kMaxima);
  if (data.meanwhile) data.meanwhile();
  tasks.finish(progress_);
  if (data.sum != nullptr) small.take(rows::kSum, data.sum);
  if (maxima && data.maxima != nullptr) {
    std::vector<double> of_blocks(static_cast<std::size_t>(blocks.total_bytes(rows::kMaxima) / 8));
    small.take(rows::kMaxima, reinterpret_cast<std::byte*>(of_blocks.data()));
    for (auto first = of_blocks.begin(); first != of_blocks.end(); first += problem.n)
      keep_larger(std::vector<double>(first, first + problem.n), data.maxima);
  }
  RunReport report;
  report.n = problem.n;
  report.tile = block_rows(problem);
  report.path = "in place";
  report.policy = "none";
  report.devices.push_back(site_.device->description().name);
  report.compute_queues = queues_;
  report.trace = tasks.trace();
  report.trace.traffic = small.traffic;
  report.flops = report.trace.flops;
  report.tasks = report.trace.spans_added;
  report.traffic = small.traffic;
  static_cast<Traffic&>(report.planned_traffic) = small.traffic;
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

template <class T>
void InPlacePasses<T>::read(std::int64_t first, std::int64_t count, T* packed) {
  for (std::int64_t j = 0; j < cols(); ++j)
    site_.queue->copy(packed + j * count,
                      (j < v_.cols ? v_.column(j) : beside_.column(j - v_.cols)) + first,
                      count * static_cast<std::int64_t>(sizeof(T)), CopyDirection::device_to_host);
  site_.queue->synchronize();
}

template class InPlacePasses<double>;
template class InPlacePasses<float>;

}  // namespace strata
