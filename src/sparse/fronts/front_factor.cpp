#include "sparse/fronts/front_factor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <mutex>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/host_memory.hpp"
#include "device/device_host.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_program.hpp"
#include "scalar/double_double.hpp"
#include "scalar/log_sum.hpp"
#include "scalar/safe_range.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"
#include "sparse/fronts/front_entries.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "sparse/fronts/inverse_panels.hpp"
#include "sparse/ordering/error_places.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

bool on_gpu(const RunOptions& options) {
  const std::vector<DeviceChoice> choices = choose_all_devices(options.devices);
  return std::any_of(choices.begin(), choices.end(),
                     [](const DeviceChoice& choice) { return choice.backend == "cuda"; });
}

void check_batches(const SparseCholeskyOptions& options) {
  if (!options.batches) return;
  constexpr int kStreamsMax = 64;
  const LevelBatches& batches = *options.batches;
  require(batches.batch >= 1 && batches.streams >= 1 && batches.streams <= kStreamsMax,
          ErrorKind::misuse, kFactorWhere, "batches of {} fronts on {} streams: at most {} streams",
          batches.batch, batches.streams, kStreamsMax);
  require(options.tile == 0 && options.panel_order == 0 && options.branch_entries == 0,
          ErrorKind::misuse, kFactorWhere, "level batches have no tiles and no branches");
}

}  // namespace

FrontFactor::FrontFactor(SparseAnalysis analysis, const SparseCholeskyOptions& options)
    : asked_(options),
      options_(options.run),
      sizes_(front_sizes(analysis, options, on_gpu(options.run))),
      element_(options.precision),
      analysis_(std::move(analysis)),
      given_sizes_(are_given(options)) {
  check_batches(options);
  begin();
}

FrontFactor::FrontFactor(SparseAnalysis analysis, const SparseCholeskyOptions& options,
                         const FrontSizes& sizes, std::span<const std::int32_t> parts)
    : asked_(options),
      options_(options.run),
      sizes_(sizes),
      element_(options.precision),
      analysis_(std::move(analysis)),
      given_sizes_(true),
      sizes_of_caller_(true) {
  begin(parts);
  if (!parts.empty()) whole_analysis_ = joined_supernodes(analysis_, parts);
}

void FrontFactor::choose_sizes() {
  sizes_of_caller_ = false;
  sizes_ = front_sizes(analysis_, asked_, on_gpu(options_));
  given_sizes_ = are_given(asked_);
}

/// Where there is no matrix yet.
void FrontFactor::begin(std::span<const std::int32_t> parts) {
  SparseMatrix nothing;
  nothing.rows = nothing.cols = std::ssize(analysis_.order);
  nothing.start.assign(at(nothing.rows) + 1, 0);
  layout_ = std::make_shared<const FrontLayout>(
      lay_out_fronts(analysis_, nothing, sizes_, element_, parts));
  info_.ok = false;
}

/// Checks the host memory of a factor without a plan, at home, and of what will be asked of it.
void FrontFactor::check_home() {
  host_bytes_ = layout_->blocks.total_bytes(fronts::kPanels) +
                (asked_.inverse ? inverse_bytes(analysis_) : 0);
  const std::int64_t bound = options_.host_memory_bytes;
  check_host_memory(host_bytes_, bound > 0 ? bound : describe_host().memory_bytes,
                    fmt::format("the factor of order {}{}", analysis_.order.size(),
                                beside_factor(analysis_, asked_.inverse)),
                    kFactorWhere);
}

void FrontFactor::reserve() {
  if (session_ == nullptr) check_home();
  panels_ = std::make_shared<FamilyMemory>(layout_->blocks, fronts::kPanels);
}

/// Panels do not come back and updates are gone soon, so more memory than this would only have to
/// be filled with pages: without a budget a CPU gets what a few stacks of updates take.
RunOptions FrontFactor::with_budget() const {
  if (sizes_.program != 0 || sizes_.batch != 0) return options_;
  constexpr std::int64_t kBeside = std::int64_t{128} << 20;
  const std::vector<DeviceChoice> choices = choose_all_devices(options_.devices);
  const bool on_cpu = choices.size() == 1 && choices.front().backend == "host";
  if (options_.device_memory_bytes > 0 || !on_cpu) return options_;
  const auto count = static_cast<int>(choices.front().indices.size());
  const std::int64_t least = smallest_budget_bytes(front_schedule(layout_, count));
  const std::int64_t there = available_host_memory() / (2 * count);  // the factor takes some, too
  RunOptions bounded = options_;
  bounded.device_memory_bytes =
      std::min(std::max(3 * analysis_.counts.stack_bytes + kBeside, 2 * least), there);
  return bounded;
}

/// All that were asked for, or of GPUs and CPUs those that are sooner alone.
void FrontFactor::choose_devices(const SparseMatrix& a) {
  if (session_ == nullptr || options_.devices != asked_.run.devices)
    open_devices(asked_.run.devices);
  if (asked_.batches) return;
  const auto kind = sooner_alone(analysis_, a, session_->machine(), asked_);
  if (!kind) return;
  std::vector<std::string> texts;
  for (const DeviceChoice& choice : choose_all_devices(options_.devices))
    if (backend_named(choice.backend, options_.devices).kind() == *kind)
      texts.push_back(to_text(choice));
  open_devices(fmt::format("{}", fmt::join(texts, "+")));
}

/// When those of before have given their memory back.
void FrontFactor::open_devices(const std::string& text) {
  session_.reset();
  const bool others = std::exchange(options_.devices, text) != text;
  if (others && !sizes_of_caller_) {
    choose_sizes();
    begin();
  }
  session_ = std::make_unique<Session>(with_budget());
}

/// Plans for a matrix whose entries stand elsewhere than those of the last. What fails here leaves
/// nothing that a later call could take for its own.
void FrontFactor::take_structure(const SparseMatrix& a) {
  arrangement_ = 0;
  one_triangle_ = is_one_triangle(a);
  opened_.reset();
  opened_tried_ = false;
  streamed_.reset();
  homes_.reset();
  panels_.reset();
  sweeps_.reset();
  resident_.reset();
  host_bytes_ = 0;
  if (whole_analysis_) analysis_ = std::move(*whole_analysis_);
  whole_analysis_.reset();
  // Sizes follow from the devices and from what was asked for, not from what an earlier matrix, or
  // those who made this factor elsewhere, had made of that.
  if (adopted_ || !given_sizes_) choose_sizes();
  if (adopted_) begin();
  adopted_ = false;
  choose_devices(a);
  const Machine& machine = session_->machine();
  if (take_resident(a)) {
    arrangement_ = arrangement_of(a, *crew_);
    return;
  }
  require(sizes_.batch == 0, ErrorKind::memory, kFactorWhere,
          "level batches are for one device that holds all blocks: {} devices of {} bytes",
          session_->devices().count(), smallest_memory(machine));
  SparseAnalysis whole = analysis_;
  layout_ = fitting_layout(analysis_, a, sizes_, given_sizes_, element_, machine);
  if (layout_->ranges) whole_analysis_ = std::move(whole);
  PlannedRun planned = plan_fronts(analysis_, layout_, machine, asked_);
  planned.tile = sizes_.tile;
  check_host_memory(planned, options_, kFactorWhere, beside_factor(analysis_, asked_.inverse));
  session_->adopt(std::move(planned));
  reserve();
  homes_ = std::make_unique<FrontHomes>(*layout_, panels_, session_->devices(),
                                        *session_->adopted().plan, options_.host_pinning);
  arrangement_ = arrangement_of(a, *crew_);
}

/// Devices that hold all of it keep it. Those of one backend, whose queues wait for each other.
bool FrontFactor::take_resident(const SparseMatrix& a) {
  const std::vector<DeviceChoice> choices = choose_all_devices(options_.devices);
  if (choices.size() > 1) return false;
  auto layout = resident_layout(analysis_, a, sizes_, given_sizes_, element_, session_->machine(),
                                session_->devices().linked());
  if (layout == nullptr) return false;
  layout_ = std::move(layout);
  if (asked_.inverse) check_home();  // L comes home for it
  std::vector<ResidentRun::Place> places;
  for (int d = 0; d < session_->devices().count(); ++d)
    places.push_back({choices.front().indices[at(d)], &session_->devices().device(d)});
  const int count = session_->devices().count();
  resident_ = std::make_unique<ResidentRun>(
      std::make_shared<const Schedule>(resident_schedule(layout_, count)), session_->machine(),
      session_->devices().backend(), places, resident_queues(asked_, count));
  if (!asked_.batches) predicted_seconds_ = predicted_again(resident_->plan());
  MemoryStore store = store_of(nullptr, nullptr);
  const auto ring_of = [this](int device) -> PinnedRing& { return ring(device); };
  for (const int family : {fronts::kStructure, fronts::kPlaces})
    resident_->preload(family, {&store, ring_of});
  return true;
}

namespace {

/// 2^(−exponent)·A, if that brings all of its diagonal into the range of floats, too.
std::optional<SparseMatrix> brought_in_range(const SparseMatrix& a, double shift, int exponent,
                                             Element element) {
  if (exponent == 0) return std::nullopt;
  SparseMatrix result = a;
  for (double& value : result.value) value = std::scalbn(value, -exponent);
  if (element == Element::fp64) return result;
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      if (a.column[at(k)] == i &&
          !std::isnormal(static_cast<float>(result.value[at(k)] + std::scalbn(shift, -exponent))))
        return std::nullopt;
  return result;
}

}  // namespace

void FrontFactor::factor(const SparseMatrix& a, double shift) {
  info_ = {};
  info_.ok = false;  // until it is known
  report_ = {};
  solves_ = {};
  shift_ = shift;
  require(std::isfinite(shift), ErrorKind::misuse, kFactorWhere, "a shift of {}", shift);
  const bool known = arrangement_ != 0 && arrangement_of(a, *crew_) == arrangement_;
  // In one triangle that is arranged as before, values alone can be wrong.
  const double largest = largest_magnitude(a.value, *crew_);
  if (!known || !one_triangle_ || !std::isfinite(largest))
    require_symmetric(a, kFactorWhere, *crew_);
  if (!known) {
    require_same_pattern(analysis_, a);
    take_structure(a);
  }
  exponent_ = exponent_out_of_range(std::max(largest, std::abs(shift)), element_);
  const std::optional<SparseMatrix> in_range = brought_in_range(a, shift, exponent_, element_);
  if (!in_range) exponent_ = 0;
  shift_in_range_ = std::scalbn(shift, -exponent_);
  run_factorization(in_range ? *in_range : a);
  if (exponent_ == 0) return;
  info_.bad_pivot = std::scalbn(info_.bad_pivot, exponent_);
  info_.log_determinant += exponent_ * std::log(2.0) * static_cast<double>(a.rows);
}

void FrontFactor::run_factorization(const SparseMatrix& a) {
  if (resident()) return run_resident(a.value, &a);
  MemoryStore store =
      homes_->store(values_of(*layout_, a, {shift_in_range_, exponent_}, element_, *crew_));
  IssueOptions run_options;
  run_options.progress = options_.progress;
  run_options.what = "factor";
  SessionRun wanted;
  wanted.schedule = session_->adopted().plan->shared_schedule();
  (void)session_->run(wanted, store, run_options);
  report_ = session_->take_report();
  report_.pinning_seconds = homes_->pinner().seconds();
  report_.pinned_bytes = homes_->pinner().pinned_bytes();
  read_statuses(homes_->statuses());
}

MemoryStore FrontFactor::store_of(std::shared_ptr<FamilyMemory> values,
                                  std::shared_ptr<FamilyMemory> status) const {
  const FrontLayout& layout = *layout_;
  const BlockTable& blocks = layout.blocks;
  return {blocks,
          {panels_, nullptr, std::move(values),
           listed_memory(blocks, fronts::kStructure, layout.structure),
           listed_memory(blocks, fronts::kPlaces, layout.places), std::move(status), nullptr}};
}

void FrontFactor::factor_values(std::span<const double> values, double shift) {
  require(resident() && arrangement_ != 0, ErrorKind::misuse, kFactorWhere,
          "values alone are for a factor that stays on a device");
  info_ = {};
  info_.ok = false;
  report_ = {};
  solves_ = {};
  shift_ = shift_in_range_ = shift;
  exponent_ = 0;
  run_resident(values, nullptr);
}

/// Whether values are loaded as they were given, and the shift behind them.
bool FrontFactor::takes_raw_values() const {
  const std::int64_t count = layout_->blocks.count(fronts::kValues);
  return sizes_.batch == 0 && element_ == Element::fp64 &&
         count <= std::ssize(layout_->units) + 1 &&
         std::all_of(layout_->units.begin(), layout_->units.end(),
                     [](const FrontUnit& u) { return u.kind == UnitKind::branch; });
}

/// `a` is null where only values are known: then nothing but a branch may need them.
void FrontFactor::run_resident(std::span<const double> values, const SparseMatrix* a) {
  const auto start = std::chrono::steady_clock::now();
  const BlockTable& blocks = layout_->blocks;
  const bool raw = takes_raw_values();
  require(raw || a != nullptr, ErrorKind::misuse, kFactorWhere,
          "values alone are for one branch in fp64");
  const BlockId raw_id{fronts::kValues, 0, 0};
  const std::int64_t given = blocks.extent(raw_id).rows - 1;
  require(sizes_.batch > 0 || given == std::ssize(values), ErrorKind::misuse, kFactorWhere,
          "{} values where {} belong", values.size(), given);
  at_home_ = false;
  std::shared_ptr<FamilyMemory> entries;
  if (!raw)
    entries = std::make_shared<FamilyMemory>(
        blocks, fronts::kValues,
        values_of(*layout_, *a, {shift_in_range_, exponent_}, element_, *crew_));
  auto status = std::make_shared<FamilyMemory>(blocks, fronts::kStatus);
  MemoryStore store = store_of(std::move(entries), status);
  const auto load = [&](int device, Queue& queue, std::span<const PlacedBlock> placed) {
    if (!raw || placed.front().id != raw_id) return false;
    load_raw_values(queue, placed.front().data, values, ring(device));
    return true;
  };
  Trace trace;
  const bool traced = asked_.batches && asked_.batches->traced;
  const double seconds =
      resident_->run({&store, [this](int device) -> PinnedRing& { return ring(device); }, load},
                     traced ? &trace : nullptr);
  trace.seconds = seconds;
  trace.traffic = resident_->traffic();
  RunFigures figures;
  figures.n = std::ssize(analysis_.order);
  figures.tile = sizes_.tile;
  figures.policy = "none";
  figures.host_bytes = host_bytes_;
  figures.predicted_seconds = predicted_seconds_;
  report_ = make_report(resident_->plan(), figures, std::move(trace));
  report_.devices.clear();
  for (int d = 0; d < resident_->devices()->count(); ++d)
    report_.devices.push_back(session_->devices().device(d).description().name);
  report_.flops = analysis_.counts.stored_flops;
  report_.tasks = std::ssize(layout_->units);
  read_statuses(*status);
  report_.seconds = seconds_since(start);
}

/// Behind the values there is the shift.
void FrontFactor::load_raw_values(Queue& queue, std::byte* to, std::span<const double> values,
                                  PinnedRing& to_device) const {
  const std::span<const std::byte> bytes = std::as_bytes(values);
  if (resident_->devices()->reaches(bytes.data(), std::ssize(bytes)))
    queue.copy(to, bytes.data(), std::ssize(bytes), CopyDirection::device_to_device);
  else
    ResidentRun::send(queue, to, bytes, to_device);
  ResidentRun::send(queue, to + bytes.size(), std::as_bytes(std::span(&shift_in_range_, 1)),
                    to_device);
}

void FrontFactor::bring_home() const {
  const std::lock_guard lock(*one_at_a_time_);
  if (!resident() || at_home_) return;
  if (panels_ == nullptr)
    panels_ = std::make_shared<FamilyMemory>(layout_->blocks, fronts::kPanels);
  MemoryStore store = store_of(nullptr, nullptr);
  resident_->bring_home(fronts::kPanels,
                        {&store, [this](int device) -> PinnedRing& { return ring(device); }});
  RunFigures figures;
  figures.n = std::ssize(analysis_.order);
  figures.policy = "none";
  Trace trace;
  trace.traffic = resident_->traffic();
  accumulate(solves_, make_report(resident_->plan(), figures, std::move(trace)));
  at_home_ = true;
}

void FrontFactor::begin_inverse() const {
  const std::int64_t bound = options_.host_memory_bytes;
  if (bound > 0 && !asked_.inverse) {
    const std::int64_t panels = layout_->blocks.total_bytes(fronts::kPanels);
    check_host_memory(std::max(report_.host_bytes, panels) + inverse_bytes(analysis_), bound,
                      fmt::format("the factor of order {}{}", analysis_.order.size(),
                                  beside_factor(analysis_, true)),
                      kFactorWhere);
  }
  const std::lock_guard lock(*one_at_a_time_);
  if (homes_ != nullptr) homes_->let_go_of_updates();
}

bool FrontFactor::solves_there() const noexcept {
  return resident() && element_ == Element::fp64 && layout_->has_programs();
}

void FrontFactor::solve_there(MatrixView<double> b, bool forward, bool backward) const {
  const std::lock_guard lock(*one_at_a_time_);
  if (sweeps_ == nullptr) {
    const std::shared_ptr<ResidentDevices>& on = resident_->devices();
    ResidentSweeps::Factor there;
    there.run = resident_.get();
    sweeps_ = std::make_unique<ResidentSweeps>(
        resident_units(analysis_, *layout_, on->count(), on->queues(), true), analysis_.order,
        std::move(there), on, session_->devices());
  }
  sweeps_->solve(b, forward, backward);
  accumulate(solves_, sweeps_->take_report());
}

bool FrontFactor::solve_streamed(MatrixView<double> b, bool forward, bool backward) const {
  if (adopted_) return solve_opened(b, forward, backward);
  if (homes_ == nullptr || !layout_->ranges) return false;
  const std::lock_guard lock(*one_at_a_time_);
  if (streamed_ == nullptr)
    streamed_ =
        std::make_unique<StreamedSweeps>(analysis_, *layout_, homes_->family(fronts::kPanels),
                                         homes_->family(fronts::kStructure), *session_, *crew_);
  const bool solved = streamed_->solve(b, forward, backward);
  if (solved) accumulate(solves_, streamed_->report());
  return solved;
}

bool FrontFactor::solve_opened(MatrixView<double> b, bool forward, bool backward) const {
  if (sizes_.program == 0 || !layout_->has_programs()) return false;
  const std::lock_guard lock(*one_at_a_time_);
  if (!opened_tried_) {
    RunOptions there = options_;
    there.devices = gpus_worth_it(options_, layout_->blocks.total_bytes(fronts::kPanels));
    try {
      if (!there.devices.empty())
        opened_ =
            std::make_unique<OpenedSweeps>(analysis_, layout_, panels_, sizes_, there, *crew_);
    } catch (const Error& error) {  // there is not the memory: the host solves, as it can
      if (error.kind() != ErrorKind::memory) throw;
    }
    opened_tried_ = true;  // what fails otherwise fails again
  }
  if (opened_ == nullptr) return false;
  const bool solved = opened_->solve(b, forward, backward);
  if (solved) accumulate(solves_, opened_->report());
  return solved;
}

/// Units and their columns are in the order of elimination, so the first failure is the one that no
/// other has caused.
void FrontFactor::read_statuses(const FamilyMemory& memory) {
  const auto* statuses = reinterpret_cast<const PivotStatus*>(memory.data());
  FactorInfo info;
  for (const FrontUnit& unit : layout_->units) {
    const bool tiled = unit.kind == UnitKind::tiled;
    for (std::int64_t k = 0; k < (tiled ? unit.column_tiles : 1); ++k) {
      const PivotStatus& pivot = statuses[unit.status + k];
      require(pivot.bad_column != kSharersLost, ErrorKind::device, kFactorWhere,
              "devices that make a front together did not meet: one of them has failed, or their "
              "kernels run one after another (CUDA_LAUNCH_BLOCKING, a tool that looks at each)");
      if (pivot.bad_column < 0) continue;
      const std::int64_t column = analysis_.first[at(unit.first)] + (tiled ? unit.cuts[at(k)] : 0) +
                                  static_cast<std::int64_t>(pivot.bad_column);
      info_.first_bad_pivot = analysis_.order[at(column)];
      info_.bad_pivot = pivot.bad_pivot;
      info_.log_determinant = std::numeric_limits<double>::quiet_NaN();
      return;
    }
  }
  if (resident() || layout_->ranges) {
    LogSum sum;
    for (std::int64_t k = 0; k < layout_->blocks.count(fronts::kStatus); ++k) {
      sum.add(statuses[k].log_determinant);
      sum.add(statuses[k].log_fraction);
    }
    info.log_determinant = sum.value();
  } else {
    info.log_determinant =
        element_ == Element::fp64 ? log_determinant<double>() : log_determinant<float>();
  }
  info_ = info;
}

/// Column by column, whatever the units, in double-double.
template <class T>
double FrontFactor::log_determinant() const {
  DoubleDouble sum;
  const auto add_diagonal = [&](MatrixView<const T> l) {
    for (std::int64_t j = 0; j < l.cols; ++j)
      sum = sum + DoubleDouble(2 * std::log(static_cast<double>(l(j, j))));
  };
  for (std::int32_t s = 0; s < analysis_.supernodes(); ++s) {
    const FrontUnit& unit = unit_of(s);
    if (unit.kind != UnitKind::tiled) {
      add_diagonal(panel<T>(s));
      continue;
    }
    for (std::int64_t j = 0; j < unit.column_tiles; ++j) add_diagonal(tile<T>(unit, j, j));
  }
  return sum.hi;
}

template <class T>
MatrixView<const T> FrontFactor::panel(std::int32_t s) const {
  const FrontUnit& unit = unit_of(s);
  const std::int64_t w = analysis_.width(s);
  const std::int64_t order = w + analysis_.row_count(s);
  const auto* data = reinterpret_cast<const T*>(
      panels_->data() + layout_->blocks.byte_offset({fronts::kPanels, unit.panel, 0}));
  return {data + layout_->panel_place[at(s)], order, w, layout_->panel_ld[at(s)]};
}

template <class T>
MatrixView<const T> FrontFactor::tile(const FrontUnit& unit, std::int64_t i, std::int64_t j) const {
  const BlockId id = unit.tile(i, j);
  const BlockExtent x = layout_->blocks.extent(id);
  return {reinterpret_cast<const T*>(panels_->data() + layout_->blocks.byte_offset(id)), x.rows,
          x.cols, x.rows};
}

/// Whoever made L has left above its diagonal, and between panels, what was there before.
template <class T>
void FrontFactor::clear_gaps() const {
  const auto clear = [](T* from, std::int64_t count) {
    std::fill_n(from, std::max<std::int64_t>(count, 0), T{0});
  };
  for (const FrontUnit& unit : layout_->units) {
    if (unit.kind != UnitKind::branch || unit.first_tile > 0) continue;
    const BlockId id{fronts::kPanels, unit.panel, 0};
    T* data = reinterpret_cast<T*>(panels_->data() + layout_->blocks.byte_offset(id));
    std::int64_t end = 0;
    for (std::int32_t s = unit.first; s <= unit.last; ++s) {
      const std::int64_t place = layout_->panel_place[at(s)];
      const std::int64_t ld = layout_->panel_ld[at(s)];
      const std::int64_t order = analysis_.width(s) + analysis_.row_count(s);
      clear(data + end, place - end);
      for (std::int64_t j = 0; j < analysis_.width(s); ++j) {
        clear(data + place + j * ld, j);
        clear(data + place + j * ld + order, ld - order);
      }
      end = place + ld * analysis_.width(s);
    }
    clear(data + end, unit.inverses - end);
    const std::int64_t behind = unit.inverses + unit.inverse_tiles * kDiagonalInverses;
    clear(data + behind, layout_->blocks.bytes(id) / std::int64_t{sizeof(T)} - behind);
  }
}

std::span<std::byte> FrontFactor::bytes() const {
  element_ == Element::fp64 ? clear_gaps<double>() : clear_gaps<float>();
  return {panels_->data(), at(layout_->blocks.total_bytes(fronts::kPanels))};
}

void FrontFactor::adopt(const FactorInfo& info, double shift, int exponent) {
  info_ = info;
  report_.host_bytes = host_bytes_;
  shift_ = shift;
  exponent_ = exponent;
  adopted_ = true;
  for (std::int64_t k = 0; k < layout_->blocks.count(fronts::kPanels); ++k)
    panels_->mark_written(k);
}

template MatrixView<const double> FrontFactor::panel(std::int32_t) const;
template MatrixView<const float> FrontFactor::panel(std::int32_t) const;
template MatrixView<const double> FrontFactor::tile(const FrontUnit&, std::int64_t,
                                                    std::int64_t) const;
template MatrixView<const float> FrontFactor::tile(const FrontUnit&, std::int64_t,
                                                   std::int64_t) const;

}  // namespace strata
