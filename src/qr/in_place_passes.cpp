#include "qr/in_place_passes.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "kernels/backend/run_fused.hpp"
#include "kernels/tall/sketch.hpp"
#include "qr/tsqr_passes.hpp"
#include "run/issued_program.hpp"
#include "scalar/dispatch.hpp"
#include "schedule/plan_layout.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

/// Blocks of a GiB: what the sums of their units take beside them is a hundredth of V or so.
constexpr std::int64_t kBlockElements = std::int64_t{1} << 27;
/// Blocks of TSQR that are one task on a GPU: up to 2 GiB of V, so that the upper levels of its
/// tree, of a few panels each, are few.
constexpr std::int64_t kTasksOfAGroup = 1024;
constexpr int kQueuesOfPart = 2;
/// The name of the triangles of TSQR from one pass to the next.
constexpr std::uint64_t kTriangles = 1;

/// What is in queues uses memory of the host; nothing is left in them when a pass ends.
class Drained {
 public:
  explicit Drained(const std::vector<ProgramLane>& lanes) : lanes_(lanes) {}
  Drained(const Drained&) = delete;
  Drained& operator=(const Drained&) = delete;
  ~Drained() {
    for (const ProgramLane& lane : lanes_) {
      try {
        lane.queue->synchronize();
      } catch (const std::exception&) {  // told by who waited before, or by what ended the pass
      }
    }
  }

 private:
  const std::vector<ProgramLane>& lanes_;
};

/// Blocks on their way between the host and the devices, in the staging memory of the sites.
class StagedBlocks {
 public:
  /// The packed values of a block that is loaded.
  using Source = std::function<const std::byte*(BlockId id)>;

  /// sites: of each device of the program.
  StagedBlocks(const BlockTable& blocks, const Program& program,
               const std::vector<DeviceSite*>& sites, Source source)
      : blocks_(blocks), program_(program), source_(std::move(source)) {
    std::vector<std::int64_t> bytes(sites.size());
    for (const Program::Entry& entry : program.entries()) {
      if (entry.kind != StepKind::load && entry.kind != StepKind::store) continue;
      for (const PlacedBlock& block : program.blocks(entry))
        bytes[entry.device] += slot_room(blocks.bytes(block.id));
    }
    for (std::size_t d = 0; d < sites.size(); ++d)
      next_.push_back(bytes[d] > 0 ? sites[d]->staging(bytes[d]) : nullptr);
  }
  void issue(IssuedProgram& issued) {
    issued.issue([this](const Program::Entry& entry, Queue& queue) { copy(entry, queue); });
  }
  void copy(const Program::Entry& entry, Queue& queue) {
    for (const PlacedBlock& block : program_.blocks(entry)) {
      const std::int64_t bytes = blocks_.bytes(block.id);
      std::byte* staged = next_[entry.device];
      next_[entry.device] += slot_room(bytes);
      if (entry.kind == StepKind::load) {
        std::copy_n(source_(block.id), bytes, staged);
        queue.copy(block.data, staged, bytes, CopyDirection::host_to_device);
      } else {
        stored_[block.id] = staged;
        queue.copy(staged, block.data, bytes, CopyDirection::device_to_host);
      }
    }
  }
  /// When the program is done: null where the block was not stored.
  [[nodiscard]] const std::byte* stored(BlockId id) const {
    const auto found = stored_.find(id);
    return found == stored_.end() ? nullptr : found->second;
  }
  /// The stored blocks of a family, one below the other, packed.
  void take(int f, std::byte* to) const {
    for (auto at = stored_.lower_bound(BlockId(f, 0, 0));
         at != stored_.end() && at->first.family() == f; ++at)
      to = std::copy_n(at->second, blocks_.bytes(at->first), to);
  }

 private:
  const BlockTable& blocks_;
  const Program& program_;
  Source source_;
  std::vector<std::byte*> next_;  // by device
  std::map<BlockId, const std::byte*> stored_;
};

struct AddElements {
  template <class W>
  [[gnu::always_inline]] static void run(const W* a, const W* b, W* c, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
  }
};

/// Sums of several devices' blocks, which the host adds up as gram_sum does; bytes: of a sum.
void add_late_sums(const std::vector<PartTree::Join>& joins, const StagedBlocks& staged,
                   Element element, std::int64_t bytes, std::byte* whole) {
  std::map<int, std::vector<std::byte>> made;
  const auto at = [&](int name) {
    const auto found = made.find(name);
    return found != made.end() ? found->second.data()
                               : staged.stored(BlockId(rows::kParts, name, 0));
  };
  for (const PartTree::Join& join : joins) {
    const std::byte* left = at(join.left);
    const std::byte* right = at(join.right);
    std::vector<std::byte> sum(join.to < 0 ? std::size_t{0} : static_cast<std::size_t>(bytes));
    std::byte* to = join.to < 0 ? whole : sum.data();
    dispatch_real(element, [&]<class W>(std::type_identity<W>) {
      run_fused<AddElements>(reinterpret_cast<const W*>(left), reinterpret_cast<const W*>(right),
                             reinterpret_cast<W*>(to),
                             bytes / static_cast<std::int64_t>(sizeof(W)));
    });
    if (join.to >= 0) made[join.to] = std::move(sum);
  }
}

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

/// The largest magnitudes in the columns of all blocks.
void take_maxima(const BlockTable& blocks, const StagedBlocks& staged, std::int64_t cols,
                 double* maxima) {
  blocks.for_each(rows::kMaxima, [&](BlockId id) {
    const auto* of_block = reinterpret_cast<const double*>(staged.stored(id));
    keep_larger(std::vector<double>(of_block, of_block + cols), maxima);
  });
}

/// A span for each task, of queues that are named by their device's compute queues.
Trace trace_of(const IssuedProgram& issued, const Plan& plan, int queues) {
  Trace trace;
  std::vector<std::uint16_t> of_lane;
  for (int d = 0; d < plan.schedule().devices; ++d) {
    for (int q = 0; q < queues; ++q) {
      of_lane.push_back(static_cast<std::uint16_t>(trace.queues.size()));
      trace.queues.push_back({plan.machine().devices[at(d)].name, "compute " + std::to_string(q),
                              static_cast<std::uint16_t>(d)});
    }
  }
  for (int f = 0; f < plan.schedule().blocks.families(); ++f)
    trace.families.push_back(plan.schedule().blocks.family(f).name);
  issued.put_spans(of_lane, trace);
  return trace;
}

/// What the pass up the tree of TSQR has left, for the pass down, whose triangles are side by side.
Residency triangles_of_next(Residency left) {
  for (Residency::Node& node : left.devices)
    for (ResidentBlock& block : node.blocks) std::swap(block.row, block.col);
  return left;
}

/// What a resident plan of devices in whose memory V lies goes by; its rates are not read.
Machine machine_of(const std::vector<DeviceSite*>& sites, int queues) {
  constexpr std::int64_t kAsMuchAsThereIs = std::int64_t{1} << 60;
  Machine machine = Machine::emulated(static_cast<int>(sites.size()), kAsMuchAsThereIs);
  for (std::size_t p = 0; p < sites.size(); ++p) {
    machine.devices[p].name = sites[p]->device->description().name;
    machine.devices[p].kind = sites[p]->backend->kind();
    machine.devices[p].compute_queues = queues;
  }
  return machine;
}

/// What the triangles of a pass of TSQR take on each site, in bytes; 0 for another pass.
std::int64_t bytes_of_triangles(const RowProblem& problem, const BlockTable& blocks) {
  const bool up = problem.pass == RowPass::triangles;
  if (!up && problem.pass != RowPass::orthogonal) return 0;
  const int family = up ? rows::kSum : rows::kFactor;
  // Behind the triangles there is room for what the whole is multiplied by.
  return (blocks.count(family) + (up ? 1 : 0)) * slot_room(blocks.capacity_bytes(family));
}

/// The memory of the small blocks on each site: arenas, then triangles.
std::vector<std::byte*> memory_of(const RowProblem& problem, const Plan& plan,
                                  const std::vector<DeviceSite*>& sites) {
  const std::int64_t triangles = bytes_of_triangles(problem, plan.schedule().blocks);
  std::vector<std::byte*> memory;
  for (std::size_t p = 0; p < sites.size(); ++p)
    memory.push_back(sites[p]->work(plan.layout().devices[p].arena_bytes));
  for (std::size_t p = 0; p < sites.size() && triangles > 0; ++p)
    memory.push_back(sites[p]->kept(triangles));
  return memory;
}

}  // namespace

template <class T>
InPlacePasses<T>::InPlacePasses(std::vector<PlacedRows<T>> parts, const QrOptions& options)
    : parts_(std::move(parts)), progress_(options.run.progress), options_(options) {}

template <class T>
int InPlacePasses<T>::queues_of(const RowProblem& problem) const {
  return parts_.size() > 1 ? problem.queues_of_part : queues_of(*parts_[0].site, options_.run);
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
int InPlacePasses<T>::queues_of(const DeviceSite& site, const RunOptions& run) {
  if (site.backend->kind() == DeviceKind::gpu) return 1;
  return run.compute_queues > 0 ? run.compute_queues : site.queues();
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
  // A second queue where no task needs what another device has: elsewhere it was not measured.
  const bool alone = problem.late_sums_elsewhere || problem.pass == RowPass::solve;
  problem.queues_of_part = parts_.size() > 1 && alone ? kQueuesOfPart : 1;
  problem.devices = static_cast<int>(parts_.size()) * queues_of(problem);
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
    problem.devices = static_cast<int>(parts_.size()) * queues_of(problem);
  }
  return run_tasks(problem, data);
}

/// C, which is a few thousand rows, is added up by the host and goes to the first device for its
/// Gram matrix.
template <class T>
RunReport InPlacePasses<T>::run_count_gram(const RowProblem& problem, const PassData<T>& data) {
  const std::int64_t rows = sketch_buckets(problem.n);
  std::vector<double> c(static_cast<std::size_t>(rows * problem.n));
  PassData<T> of_c = data;
  of_c.sum = reinterpret_cast<std::byte*>(c.data());
  RunReport report = run_tasks(problem, of_c);
  InPlacePasses<double> passes(
      {PlacedRows<double>{
          .site = parts_[0].site, .v = {c.data(), rows, problem.n, rows}, .on_host = true}},
      options_);
  RowProblem gram{.pass = RowPass::gram, .m = rows, .n = problem.n, .sum = problem.sum};
  accumulate_with_trace(report,
                        passes.run(gram, {.scales = data.scales + problem.n, .sum = data.sum}));
  return report;
}

/// The tasks of a pass as those of a resident schedule, whose devices have parts of V.
template <class T>
std::shared_ptr<const Schedule> InPlacePasses<T>::schedule_of(const RowProblem& problem) const {
  auto schedule = std::make_shared<Schedule>(row_pass(problem));
  const int queues = queues_of(problem);
  schedule->devices = static_cast<int>(parts_.size());
  schedule->resident = true;
  if (!parts_[0].on_host) schedule->blocks.place(rows::kMatrix);
  BlockId whole;  // of TSQR, the triangle of all of V
  if (problem.pass == RowPass::triangles) {
    schedule->blocks.place(rows::kSum, kTriangles);
    whole = BlockId(rows::kSum, schedule->blocks.count(rows::kSum) - 1, 0);
  }
  if (problem.pass == RowPass::orthogonal) schedule->blocks.place(rows::kFactor, kTriangles);
  schedule->emit = [emit = std::move(schedule->emit), queues, whole](std::int64_t step,
                                                                     TaskList& tasks) {
    const std::size_t before = tasks.tasks().size();
    emit(step, tasks);
    for (Task& task : tasks.tasks().subspan(before)) {
      task.queue = static_cast<std::int16_t>(task.device % queues);
      task.device = static_cast<std::uint16_t>(task.device / queues);
      for (TaskOperand& operand : tasks.operands(task)) {
        if (operand.id == whole) operand.hint = operand.hint | Hint::home;
      }
    }
  };
  return schedule;
}

/// Where a block lies that does not lie in the arena of its part's site.
template <class T>
CallersPlace InPlacePasses<T>::place_of(const BlockTable& blocks, BlockId id, std::size_t part,
                                        std::span<std::byte* const> triangles) const {
  const BlockExtent x = blocks.extent(id);
  if (id.family() != rows::kMatrix)  // triangles, one behind the other
    return {triangles[part] + (id.row() + id.col()) * slot_room(blocks.bytes(id)), x.rows};
  std::int64_t before = 0;
  for (std::size_t p = 0; p < part; ++p) before += parts_[p].v.rows;
  const PlacedRows<T>& of = parts_[part];
  const bool of_v = x.col < of.v.cols;
  const MatrixView<T>& there = of_v ? of.v : of.beside;
  T* first = there.column(of_v ? x.col : x.col - of.v.cols) + (x.row - before);
  return {reinterpret_cast<std::byte*>(first), there.ld};
}

template <class T>
std::shared_ptr<const CompiledPass> InPlacePasses<T>::compile(const RowProblem& problem,
                                                              bool& planned) {
  CompiledPass pass{problem, places(problem), nullptr};
  if (problem.pass == RowPass::orthogonal) pass.before = std::exchange(triangles_, nullptr);
  const std::shared_ptr<const CompiledPass> known = CompiledPasses::all().find(pass);
  const std::vector<DeviceSite*> sites = this->sites();
  const int queues = queues_of(problem);
  if (known != nullptr) {
    pass.plan = known->plan;
    pass.memory = memory_of(problem, *pass.plan, sites);
    if (pass.memory == known->memory) return known;
  } else {
    PlanOptions options;
    options.copies_in_stream = sites.size() == 1 && queues == 1;
    pass.plan =
        std::make_shared<const Plan>(schedule_of(problem), machine_of(sites, queues), options,
                                     pass.before != nullptr ? pass.before->left : Residency());
    pass.memory = memory_of(problem, *pass.plan, sites);
  }
  planned = true;
  std::vector<int> lane_of;  // copies go through the first of each site
  for (const PlanQueue& queue : pass.plan->layout().queues)
    lane_of.push_back(queue.device * queues +
                      (queue.role == QueueRole::compute ? queue.number : 0));
  const BlockTable& blocks = pass.plan->schedule().blocks;
  const std::span<std::byte* const> memory(pass.memory);
  pass.program.emplace(*pass.plan, sites[0]->backend->kernels(), memory.first(sites.size()),
                       lane_of, [&](BlockId id, std::size_t part) {
                         return place_of(blocks, id, part, memory.subspan(sites.size()));
                       });
  if (problem.pass == RowPass::triangles) pass.left = triangles_of_next(pass.plan->end());
  auto compiled = std::make_shared<const CompiledPass>(std::move(pass));
  CompiledPasses::all().keep(compiled);
  return compiled;
}

/// All that a program depends on beside its problem.
template <class T>
std::vector<std::int64_t> InPlacePasses<T>::places(const RowProblem& problem) const {
  const auto address = [](const void* of) {
    return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(of));
  };
  std::vector<std::int64_t> places{queues_of(problem), parts_[0].on_host ? 1 : 0};
  for (const PlacedRows<T>& part : parts_) {
    places.push_back(address(part.site));
    for (const MatrixView<T>& v : {part.v, part.beside})
      places.insert(places.end(), {v.rows, v.cols, v.ld, part.on_host ? 0 : address(v.data)});
  }
  return places;
}

template <class T>
std::vector<DeviceSite*> InPlacePasses<T>::sites() const {
  std::vector<DeviceSite*> sites;
  for (const PlacedRows<T>& part : parts_) sites.push_back(part.site);
  return sites;
}

template <class T>
RunReport InPlacePasses<T>::run_tasks(const RowProblem& problem, const PassData<T>& data) {
  const auto begin = std::chrono::steady_clock::now();
  bool planned = false;
  const std::shared_ptr<const CompiledPass> compiled = compile(problem, planned);
  const Plan& plan = *compiled->plan;
  const Program& program = *compiled->program;
  const BlockTable& blocks = plan.schedule().blocks;
  const std::vector<DeviceSite*> sites = this->sites();
  const int queues = queues_of(problem);
  std::vector<ProgramLane> lanes;
  for (std::size_t p = 0; p < sites.size(); ++p)
    for (int q = 0; q < queues; ++q) lanes.push_back({&sites[p]->queue_at(q), static_cast<int>(p)});
  StagedBlocks staged(blocks, program, sites, [&](BlockId id) -> const std::byte* {
    switch (id.family()) {
      case rows::kMatrix: return reinterpret_cast<const std::byte*>(parts_[0].v.data);
      case rows::kScales:
        return reinterpret_cast<const std::byte*>(data.scales) + blocks.byte_offset(id);
      default:  // of TSQR what triangles are multiplied by alone is the host's
        return data.factor + (problem.pass == RowPass::orthogonal ? 0 : blocks.byte_offset(id));
    }
  });
  const double planning = planned ? seconds_since(begin) : 0;
  const Drained drained(lanes);
  IssuedProgram issued(program, lanes, IssuedProgram::Times::ends);
  staged.issue(issued);
  if (data.meanwhile) data.meanwhile();
  issued.wait(progress_, "qr");
  std::vector<PartTree::Join> late;
  if (problem.late_sums_elsewhere) late = RowBlocks(problem).parts().late_joins();
  const auto sums_begin = std::chrono::steady_clock::now();
  if (!late.empty())
    add_late_sums(late, staged, blocks.family(rows::kParts).element,
                  blocks.capacity_bytes(rows::kParts), data.sum);
  else if (data.sum != nullptr)
    staged.take(rows::kSum, data.sum);
  const double of_sums = seconds_since(sums_begin);
  if (data.maxima != nullptr && blocks.count(rows::kMaxima) > 0)
    take_maxima(blocks, staged, problem.n, data.maxima);
  if (problem.pass == RowPass::triangles) triangles_ = compiled;
  Trace trace = trace_of(issued, plan, queues);
  if (!late.empty()) add_sums_of_host(trace, late.size(), of_sums);
  trace.traffic = issued.traffic();
  RunFigures figures;
  figures.n = problem.n;
  figures.tile = block_rows(problem);
  figures.policy = "none";
  figures.seconds = planning;
  RunReport report = make_report(plan, figures, std::move(trace));
  report.path = "in place";
  report.seconds = seconds_since(begin);
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
