// Method: the whole tree is one branch with a program (front_layout.hpp), as of a factor that stays
// on a GPU, and the same for all matrices. A task has a call for each of several matrices, whose
// panels, values, statuses and work are blocks of their own beside one structure. Where one GPU
// holds all blocks there is one task and nothing goes home; else tasks of a few matrices are
// planned, and solves are the host's.

#include "sparse/fronts/front_batch.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/host_memory.hpp"
#include "device/device_host.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_program.hpp"
#include "kernels/fronts/front_sweep.hpp"
#include "schedule/fixed_places.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/front_homes.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "sparse/ordering/entry_checks.hpp"
#include "sparse/ordering/error_places.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

constexpr std::int64_t kDouble = sizeof(double);

}  // namespace

/// The blocks of one matrix, as the layout of a whole tree has them, and how its parts follow.
struct OneMatrix {
  FrontLayout layout;
  BlockExtent panel, values, structure, work;
  BranchProgram program{};
  double flops = 0;

  OneMatrix(const SparseAnalysis& analysis, const SparseMatrix& pattern)
      : layout(lay_out_fronts(analysis, pattern, whole_tree())) {
    require(layout.units.size() == 1 && layout.units.front().kind == UnitKind::branch,
            ErrorKind::misuse, kFactorWhere,
            "a matrix whose factor has fronts of order above {} is no part of a batch",
            kPanelOrderMax);
    const FrontUnit& unit = layout.units.front();
    const auto extent = [&](int family, std::int64_t number) {
      return layout.blocks.extent({family, number, 0});
    };
    panel = extent(fronts::kPanels, unit.panel);
    values = extent(fronts::kValues, unit.values);
    structure = extent(fronts::kStructure, unit.structure);
    work = extent(fronts::kWork, unit.work);
    flops = unit.flops;
    BranchHeader head;
    std::memcpy(&head, data(), sizeof head);
    std::memcpy(&program, data() + head.program, sizeof program);
  }

  [[nodiscard]] const std::int32_t* data() const { return layout.structure.data() + structure.row; }
  [[nodiscard]] std::int64_t bytes() const {
    return (panel.rows * panel.cols + values.rows + work.rows * work.cols) * kDouble;
  }

 private:
  [[nodiscard]] static FrontSizes whole_tree() {
    FrontSizes sizes;
    sizes.program = 1;
    return resident_sizes(sizes, false);
  }
};

namespace {

/// Block k of a family is matrix k's, but for the structure; values tell whose they are by the row
/// of their extent.
BlockTable block_table_of(const OneMatrix& one, std::int64_t count) {
  BlockTable blocks;
  const auto add = [&](const char* name, Element element, Origin origin, BlockExtent extent,
                       bool shared = false, bool numbered = false) {
    BlockFamily family{.name = name};
    family.element = element;
    family.origin = origin;
    family.listed.assign(at(shared ? 1 : count), extent);
    for (std::int64_t k = 0; numbered && k < count; ++k) family.listed[at(k)].row = k;
    (void)blocks.add(std::move(family));
  };
  add("L", Element::fp64, Origin::generated, one.panel);
  add("U", Element::fp64, Origin::temporary, {0, 0, 1, 1});
  add("values", Element::fp64, Origin::stored, one.values, false, true);
  add("structure", Element::int32, Origin::stored, one.structure, true);
  add("places", Element::int32, Origin::stored, {0, 0, 0, 1}, true);
  BlockFamily status{.name = "status", .rows = kStatusRows, .cols = count};
  status.tile_rows = kStatusRows;
  status.origin = Origin::generated;
  (void)blocks.add(std::move(status));
  add("work", Element::fp64, Origin::temporary, one.work);
  return blocks;
}

/// Tasks of up to `group` matrices, which the devices get in equal parts.
Schedule batch_schedule(const OneMatrix& one, std::int64_t count, std::int64_t group, int devices) {
  Schedule schedule;
  schedule.blocks = block_table_of(one, count);
  schedule.devices = devices;
  const auto each = static_cast<int>(group);
  schedule.operands = {each, each, each, 1, 1, each, each};
  schedule.steps = (count - 1) / group + 1;
  schedule.coarse_slots = true;
  schedule.emit = [=, steps = schedule.steps, flops = one.flops](std::int64_t step,
                                                                 TaskList& tasks) {
    const std::int64_t end = std::min((step + 1) * group, count);
    std::vector<TaskOperand> operands;
    for (std::int64_t k = step * group; k < end; ++k) {
      operands.emplace_back(BlockId(fronts::kPanels, k, 0), Hint::last_write);
      operands.emplace_back(BlockId(fronts::kUpdates, k, 0), Hint::last_use);
      operands.emplace_back(BlockId(fronts::kStatus, 0, k), Hint::last_write);
      operands.emplace_back(BlockId(fronts::kValues, k, 0));
      operands.emplace_back(BlockId(fronts::kStructure, 0, 0));
      operands.emplace_back(BlockId(fronts::kWork, k, 0), Hint::last_use);
    }
    Task& task = tasks.add_calls(factor_branch, static_cast<int>(step * devices / steps), operands);
    task.work = std::max(flops, 1.0) * static_cast<double>(end - step * group);
  };
  return schedule;
}

/// As it lies on the device: the values of matrix k, then the shift.
BlockSource source_of(MatrixView<const double> values, double shift) {
  return [values, shift](const BlockExtent& x, std::byte* to) {
    std::memcpy(to, values.column(x.row), at(values.rows * kDouble));
    std::memcpy(to + values.rows * kDouble, &shift, sizeof shift);
  };
}

}  // namespace

FrontBatch::~FrontBatch() = default;

FrontBatch::FrontBatch(SparseAnalysis analysis, const SparseMatrix& pattern, std::int64_t count,
                       const SparseCholeskyOptions& options, std::optional<bool> stays)
    : analysis_(std::move(analysis)),
      pattern_(pattern),
      one_triangle_(is_one_triangle(pattern)),
      count_(count),
      options_(options.run),
      crew_(describe_host().compute_queues - 1) {
  require(count >= 0, ErrorKind::misuse, kFactorWhere, "a batch of {} matrices", count);
  require(options.precision == Element::fp64, ErrorKind::misuse, kFactorWhere,
          "batches are factored in fp64, not in {}", to_string(options.precision));
  require(options.tile == 0 && options.panel_order == 0 && options.branch_entries == 0,
          ErrorKind::misuse, kFactorWhere,
          "the factors of a batch have no sizes of parts to choose");
  require_same_pattern(analysis_, pattern);
  infos_.resize(at(count));
  for (FactorInfo& info : infos_) info.ok = false;
  if (count == 0 || pattern.rows == 0) return;
  one_ = std::make_unique<OneMatrix>(analysis_, pattern);
  session_ = std::make_unique<Session>(options_);
  const bool on_gpu = session_->devices().count() == 1 && !session_->devices().all_on_host();
  if (!(session_->devices().count() == 1 && stays.value_or(on_gpu) && take_resident())) plan();
}

bool FrontBatch::take_resident() {
  const std::int64_t n = pattern_.rows;
  const std::int64_t columns = sweep_columns(one_->program);
  constexpr std::int64_t kAtOnce = std::int64_t{128} << 20;
  sweep_group_ = std::clamp<std::int64_t>(kAtOnce / (n * columns * kDouble), 1, count_);
  if (count_ * one_->bytes() > smallest_memory(session_->machine())) return false;
  Schedule schedule = batch_schedule(*one_, count_, count_, 1);
  schedule.resident = true;
  keep_for_solves(schedule.blocks);
  schedule_ = std::make_shared<const Schedule>(std::move(schedule));
  const std::int64_t sweeps =
      resident_sweep_bytes(std::make_shared<const ResidentUnits>(units_for_solves()), sweep_group_)
          .front();
  if (fixed_places_bytes(*schedule_).front() + sweeps > smallest_memory(session_->machine()))
    return false;
  resident_ = std::make_unique<ResidentRun>(
      schedule_, session_->machine(), session_->devices().backend(),
      choose_all_devices(options_.devices).front().indices.front(), session_->devices().device(0));
  return true;
}

void FrontBatch::plan() {
  const int devices = session_->devices().count();
  std::int64_t group = 1;
  if (session_->devices().all_on_host()) {
    // No more memory than the queues need, as of a factorization by itself.
    if (options_.device_memory_bytes == 0) {
      const std::int64_t there = available_host_memory() / (2 * devices);
      const std::int64_t enough =
          (4 * std::int64_t{describe_host().compute_queues} + 4) * one_->bytes() +
          one_->structure.rows * 8 + (std::int64_t{16} << 20);
      options_.device_memory_bytes =
          std::max(std::min(enough, there),
                   smallest_budget_bytes(batch_schedule(*one_, count_, 1, devices)));
      session_ = std::make_unique<Session>(options_);
    }
  } else {
    // Room for some while those before go home and those behind arrive.
    constexpr std::int64_t kParts = 6;
    const std::int64_t room = smallest_memory(session_->machine()) / kParts / one_->bytes();
    group = std::clamp<std::int64_t>(room, 1, (count_ + devices - 1) / devices);
  }
  schedule_ = std::make_shared<const Schedule>(batch_schedule(*one_, count_, group, devices));
  const std::int64_t needed = smallest_budget_bytes(*schedule_);
  const std::int64_t there = smallest_memory(session_->machine());
  require(
      needed <= there, ErrorKind::memory, kFactorWhere,
      "a device memory of {} bytes is too small for one matrix of this batch: it needs {} bytes",
      there, needed);
  PlannedRun planned = make_planned_run(schedule_, session_->machine(), options_.policy);
  planned.n = pattern_.rows;
  planned.floor_bytes = schedule_->blocks.total_bytes(fronts::kPanels) +
                        schedule_->blocks.total_bytes(fronts::kValues);
  planned.host_bytes = planned.floor_bytes + schedule_->blocks.total_bytes(fronts::kStructure);
  check_host_memory(planned, options_, kFactorWhere);
  session_->adopt(std::move(planned));
  panels_ = std::make_shared<FamilyMemory>(schedule_->blocks, fronts::kPanels);
}

void FrontBatch::check(MatrixView<const double> values) {
  crew_.share(count_, [&](std::int64_t k) {
    const double* column = values.column(k);
    if (one_triangle_ && std::isfinite(largest_magnitude({column, at(values.rows)}))) return;
    SparseMatrix a = pattern_;
    a.value.assign(column, column + values.rows);
    try {
      require_symmetric(a, kFactorWhere, crew_);
    } catch (const Error& error) {
      fail(error.kind(), kFactorWhere, "matrix {} of the batch: {}", k, error.what());
    }
  });
}

MemoryStore FrontBatch::store_of(std::shared_ptr<FamilyMemory> values,
                                 std::shared_ptr<FamilyMemory> status) const {
  const BlockTable& blocks = schedule_->blocks;
  auto structure = listed_memory(blocks, fronts::kStructure, one_->layout.structure);
  return {blocks,
          {panels_, nullptr, std::move(values), std::move(structure), nullptr, std::move(status),
           nullptr}};
}

void FrontBatch::factor(MatrixView<const double> values, double shift) {
  require(values.rows == pattern_.entries() && values.cols == count_ && values.ld >= values.rows,
          ErrorKind::misuse, kFactorWhere,
          "{} by {} values with a leading dimension of {} for {} matrices of {} entries",
          values.rows, values.cols, values.ld, count_, pattern_.entries());
  require(std::isfinite(shift), ErrorKind::misuse, kFactorWhere, "a shift of {}", shift);
  complete_ = false;
  report_ = solves_ = {};
  for (FactorInfo& info : infos_) {
    info = {};
    info.ok = false;
  }
  if (one_ == nullptr) {
    for (FactorInfo& info : infos_) info = {};
  } else if (resident_ != nullptr) {
    run_resident(values, shift);
  } else {
    run_planned(values, shift);
  }
  complete_ = true;
}

/// What lies in memory of the device is taken as it is; of a device of the host that stands for one
/// in tests, nothing does.
bool FrontBatch::reaches(const double* first, std::int64_t count) const {
  return !session_->devices().all_on_host() &&
         resident_->devices()->reaches(first, count * kDouble);
}

/// Values that lie in memory of the device, by one launch; null: the shift is there.
void FrontBatch::load_values(Queue& queue, std::span<const PlacedBlock> blocks,
                             MatrixView<const double> values, const double* shift) {
  std::vector<BlockView> views;
  for (const PlacedBlock& block : blocks) {
    if (shift != nullptr)
      ResidentRun::send(queue, block.data + values.rows * kDouble,
                        std::as_bytes(std::span(shift, 1)), session_->devices().ring(0, 0));
    // The view of an operand that other operations write.
    auto* column = const_cast<double*>(values.column(block.id.row()));
    views.insert(views.end(), {{block.data, 1, values.rows, 1, 0, 0, Element::fp64},
                               {column, values.rows, 1, values.rows, 0, 0, Element::fp64},
                               {nullptr, 0, 1, 1, 0, 0, Element::int32}});
  }
  const KernelFunction kernel = resident_->devices()->backend().kernels().find(
      take_rows.name, {Element::fp64, Element::fp64, Element::int32});
  require(kernel != nullptr, ErrorKind::device, kFactorWhere, "the backend does not take values");
  kernel(queue, {views, take_rows.operands}, {});
}

void FrontBatch::run_resident(MatrixView<const double> values, double shift) {
  const auto start = std::chrono::steady_clock::now();
  const BlockTable& blocks = schedule_->blocks;
  const bool there = reaches(values.data, values.ld * (count_ - 1) + values.rows);
  if (!there) check(values);
  auto status = std::make_shared<FamilyMemory>(blocks, fronts::kStatus);
  MemoryStore store = store_of(
      std::make_shared<FamilyMemory>(blocks, fronts::kValues, source_of(values, shift)), status);
  const bool same_shift = std::exchange(shift_there_, std::nullopt) == shift;
  const auto load = [&](int, Queue& queue, std::span<const PlacedBlock> placed) {
    const bool mine = there && placed.front().id.family() == fronts::kValues;
    if (mine) load_values(queue, placed, values, same_shift ? nullptr : &shift);
    return mine;
  };
  Trace trace;
  const auto ring = [this](int) -> PinnedRing& { return session_->devices().ring(0, 0); };
  trace.seconds = resident_->run({&store, ring, load});
  shift_there_ = shift;
  trace.traffic = resident_->traffic();
  read_statuses(*status);
  RunFigures figures;
  figures.n = pattern_.rows;
  figures.policy = "none";
  report_ = make_report(resident_->plan(), figures, std::move(trace));
  report_.devices = {session_->devices().device(0).description().name};
  report_.flops = one_->flops * static_cast<double>(count_);
  report_.tasks = 1;
  report_.seconds = seconds_since(start);
}

void FrontBatch::run_planned(MatrixView<const double> values, double shift) {
  check(values);
  const BlockTable& blocks = schedule_->blocks;
  panels_->reset(nullptr);
  auto status = std::make_shared<FamilyMemory>(blocks, fronts::kStatus);
  MemoryStore store = store_of(
      std::make_shared<FamilyMemory>(blocks, fronts::kValues, source_of(values, shift)), status);
  IssueOptions run_options;
  run_options.progress = options_.progress;
  run_options.what = "factor";
  SessionRun wanted;
  wanted.schedule = schedule_;
  (void)session_->run(wanted, store, run_options);
  report_ = session_->take_report();
  read_statuses(*status);
}

void FrontBatch::read_statuses(const FamilyMemory& memory) {
  const auto* statuses = reinterpret_cast<const PivotStatus*>(memory.data());
  for (std::int64_t k = 0; k < count_; ++k) {
    FactorInfo info;
    info.log_determinant = statuses[k].log_determinant + statuses[k].log_fraction;
    if (statuses[k].bad_column >= 0) {
      info.ok = false;
      info.first_bad_pivot = analysis_.order[static_cast<std::size_t>(statuses[k].bad_column)];
      info.bad_pivot = statuses[k].bad_pivot;
      info.log_determinant = std::numeric_limits<double>::quiet_NaN();
    }
    infos_[at(k)] = info;
  }
}

void FrontBatch::solve(MatrixView<double> b) {
  const std::int64_t n = pattern_.rows;
  require(b.rows == n && b.cols >= 0 && b.ld >= std::max<std::int64_t>(n, 1) &&
              (count_ == 0 ? b.cols == 0 : b.cols % count_ == 0),
          ErrorKind::misuse, kFactorWhere,
          "{} by {} numbers with a leading dimension of {} for {} matrices of order {}", b.rows,
          b.cols, b.ld, count_, n);
  require(complete_, ErrorKind::misuse, kFactorWhere,
          "there are no factors to solve with: the last factorization was not completed");
  if (one_ == nullptr || b.cols == 0) return;
  if (resident_ != nullptr) return solve_resident(b);
  const std::int64_t nrhs = b.cols / count_;
  crew_.share(count_, [&](std::int64_t k) {
    if (infos_[at(k)].ok) solve_at_home(k, b.block(0, k * nrhs, n, nrhs));
  });
}

void FrontBatch::solve_resident(MatrixView<double> b) {
  const std::lock_guard lock(one_at_a_time_);
  if (sweeps_ == nullptr) {
    ResidentSweeps::Factor there;
    there.run = resident_.get();
    sweeps_ =
        std::make_unique<ResidentSweeps>(units_for_solves(), analysis_.order, std::move(there),
                                         resident_->devices(), session_->devices(), sweep_group_);
  }
  std::vector<std::int32_t> good;
  for (std::int64_t k = 0; k < count_; ++k)
    if (infos_[at(k)].ok) good.push_back(static_cast<std::int32_t>(k));
  for (std::size_t first = 0; first < good.size(); first += at(sweep_group_))
    sweeps_->solve_each(
        b, b.cols / count_,
        std::span(good).subspan(first, std::min(at(sweep_group_), good.size() - first)));
  accumulate(solves_, sweeps_->take_report());
}

/// A unit for each matrix.
ResidentUnits FrontBatch::units_for_solves() const {
  ResidentUnits out;
  out.n = pattern_.rows;
  out.columns = sweep_columns(one_->program);
  out.panels = schedule_->blocks.family(fronts::kPanels);
  out.structure = schedule_->blocks.family(fronts::kStructure);
  out.work = schedule_->blocks.family(fronts::kWork);
  out.apart = out.placed = true;
  out.units.resize(at(count_));
  for (std::int64_t k = 0; k < count_; ++k) {
    ResidentUnits::Unit& unit = out.units[at(k)];
    unit.panel = unit.work = k;
    unit.columns = out.n;
  }
  return out;
}

void FrontBatch::solve_at_home(std::int64_t k, MatrixView<double> b) const {
  const BlockTable& blocks = schedule_->blocks;
  const std::int64_t m = b.cols;
  std::vector<double> x(at(m * b.rows));
  std::vector<double> below(at(m * one_->program.rows));
  // The views of an operation that also writes.
  auto* panels = panels_->data() + blocks.byte_offset({fronts::kPanels, k, 0});
  auto* structure = const_cast<std::int32_t*>(one_->data());
  auto* order = const_cast<std::int32_t*>(analysis_.order.data());
  const BlockView rows{x.data(), m, b.rows, m, 0, 0, Element::fp64};
  const BlockView columns{b.data, b.rows, m, b.ld, 0, 0, Element::fp64};
  const BlockView list{order, b.rows, 1, b.rows, 0, 0, Element::int32};
  const BlockView sweep_calls[] = {
      rows,
      {panels, one_->panel.rows, one_->panel.cols, one_->panel.rows, 0, 0, Element::fp64},
      {structure, one_->structure.rows, 1, one_->structure.rows, 0, 0, Element::int32},
      {below.data(), std::ssize(below), 1, std::ssize(below), 0, 0, Element::fp64}};
  take_rows_of<double>(std::array{rows, columns, list}.data());
  BranchSweep<double> sweep(sweep_calls);
  sweep.run(true);
  sweep.run(false);
  put_rows_of<double>(std::array{columns, rows, list}.data());
}

}  // namespace strata
