// Chooses the sizes of the parts of a factorization, and makes its plan.

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "kernels/fronts/front_program.hpp"
#include "schedule/fixed_places.hpp"
#include "session/budget.hpp"
#include "session/policy.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "sparse/fronts/inverse_panels.hpp"
#include "sparse/ordering/error_places.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

std::int64_t panel_elements(const SparseAnalysis& analysis, std::int32_t s) {
  return (analysis.width(s) + analysis.row_count(s)) * analysis.width(s);
}

std::int64_t largest_order(const SparseAnalysis& analysis) {
  std::int64_t order = 0;
  for (std::int32_t s = 0; s < analysis.supernodes(); ++s)
    order = std::max<std::int64_t>(order, analysis.width(s) + analysis.row_count(s));
  return order;
}

/// Whether all fronts can be in ranges.
bool fit_ranges(const SparseAnalysis& analysis) {
  for (std::int32_t s = 0; s < analysis.supernodes(); ++s) {
    if (!places_fit(analysis.width(s), analysis.row_count(s))) return false;
  }
  return true;
}

/// At least what the largest task of a CPU needs, each block in a place of its own: branches are
/// single leaves then.
std::int64_t largest_task_bytes(const SparseAnalysis& analysis, const FrontSizes& sizes,
                                Element element) {
  constexpr std::int64_t kBeside = 4096;  // heads, statuses, and what places are rounded up by
  const std::int64_t tile = sizes.tile * sizes.tile;
  std::vector<std::int64_t> given(at(analysis.supernodes()));  // the largest update of a child
  std::int64_t most = 0;
  for (std::int32_t s = 0; s < analysis.supernodes(); ++s) {
    const std::int64_t w = analysis.width(s);
    const std::int64_t r = analysis.row_count(s);
    const bool is_tiled = w + r > sizes.panel_order;
    const std::int64_t panel = is_tiled ? tile : (w + r) * w;
    const std::int64_t update = is_tiled ? std::min(tile, r * r) : r * r;
    const std::int64_t entries =  // and where they belong
        std::min(panel, w * (w + 1) / 2 + w * r) * (bytes_of(element) + bytes_of(Element::int32));
    const std::int64_t elements = std::max(
        {panel + update, panel + given[at(s)], update + given[at(s)], is_tiled ? 3 * tile : 0});
    const bool is_leaf = analysis.branch[at(s)] == s;
    most = std::max({most, elements * bytes_of(element) + (is_leaf ? entries : 0),
                     panel * bytes_of(element) + entries});
    const std::int32_t p = analysis.parent[at(s)];
    if (p >= 0) given[at(p)] = std::max(given[at(p)], update);
  }
  return most + kBeside;
}

/// Smaller tiles for a factor that has hardly more than one: so that devices that hold as much as
/// the factor, but not all of it, can make it. It follows from the factor alone, as bits do.
void cut_small_factor(const SparseAnalysis& analysis, FrontSizes& sizes, Element element) {
  constexpr std::int64_t kLeast = 32;
  const std::int64_t factor = analysis.counts.panel_bytes / 8 * bytes_of(element);
  while (sizes.tile > kLeast && largest_task_bytes(analysis, sizes, element) > factor)
    sizes.tile = sizes.panel_order = sizes.tile / 2;
}

}  // namespace

FrontSizes front_sizes(const SparseAnalysis& analysis, const SparseCholeskyOptions& options,
                       bool gpu) {
  FrontSizes sizes;
  if (options.batches) {
    sizes.batch = options.batches->batch;
    sizes.panel_order = kPanelOrderMax;
    return sizes;
  }
  if (gpu) {
    // An elastic brick of 61³ nodes in 3.1 GB: 6.1 s in tiles of 1024, 4.6 s in tiles of 2048.
    constexpr std::int64_t kLargeFront = 8192;
    sizes.program = 1;
    sizes.tile = sizes.panel_order = largest_order(analysis) >= kLargeFront ? 2048 : 1024;
    sizes.branch_entries = std::int64_t{1} << 24;
  }
  if (!gpu && !are_given(options)) cut_small_factor(analysis, sizes, options.precision);
  if (options.tile > 0) sizes.tile = options.tile;
  if (options.panel_order > 0) sizes.panel_order = options.panel_order;
  if (options.branch_entries > 0) sizes.branch_entries = options.branch_entries;
  return sizes;
}

FrontSizes resident_sizes(FrontSizes sizes, bool given, int devices, bool shares) {
  if (given || sizes.batch > 0) return sizes;
  sizes.panel_order = kPanelOrderMax;
  sizes.branch_entries = std::int64_t{1} << 60;
  sizes.devices = devices;
  if (devices > 1) sizes.range_bytes = kRangesThatStay;
  sizes.shares = devices > 1 && shares ? 1 : 0;
  return sizes;
}

bool are_given(const SparseCholeskyOptions& options) {
  return options.tile > 0 || options.panel_order > 0 || options.branch_entries > 0;
}

std::vector<double> front_rates(const Machine& machine, Element element) {
  std::vector<double> rates;
  if (are_alike(machine)) return rates;
  for (const DeviceModel& device : machine.devices) rates.push_back(device.rate(element));
  const bool known = std::all_of(rates.begin(), rates.end(), [](double rate) { return rate > 0; });
  return known ? rates : std::vector<double>();
}

bool has_gpu(const Machine& machine) {
  return std::any_of(machine.devices.begin(), machine.devices.end(),
                     [](const DeviceModel& device) { return device.kind == DeviceKind::gpu; });
}

bool are_alike(const Machine& machine) {
  return std::all_of(
      machine.devices.begin(), machine.devices.end(),
      [&](const DeviceModel& device) { return device.kind == machine.devices.front().kind; });
}

std::shared_ptr<const FrontLayout> resident_layout(const SparseAnalysis& analysis,
                                                   const SparseMatrix& a, FrontSizes& sizes,
                                                   bool given, Element element,
                                                   const Machine& machine, bool shares) {
  const auto devices = static_cast<int>(machine.devices.size());
  // A front that is too large for a branch may be one of a range, as it is where memory is short.
  const bool fit = fit_ranges(analysis);
  const bool is_large = largest_order(analysis) > kPanelOrderMax && fit;
  const bool in_ranges = sizes.range_bytes == kRangesThatStay ||
                         ((devices > 1 || is_large) && !given && sizes.batch == 0);
  const bool stays = sizes.range_bytes == 0 || sizes.range_bytes == kRangesThatStay;
  if ((sizes.program == 0 && sizes.batch == 0) || !stays) return nullptr;
  if (devices > 1 && (!in_ranges || sizes.batch > 0 || !are_alike(machine))) return nullptr;
  FrontSizes staying = resident_sizes(sizes, given, devices, shares);
  if (in_ranges) staying.range_bytes = kRangesThatStay;
  const std::int64_t there = smallest_memory(machine);
  if (in_ranges && !fit) return nullptr;
  if (resident_elements(analysis) * bytes_of(element) > devices * there) return nullptr;
  auto layout = std::make_shared<const FrontLayout>(lay_out_fronts(analysis, a, staying, element));
  std::vector<std::int64_t> sweeps(at(devices), 0);
  if (layout->has_programs())
    sweeps = resident_sweep_bytes(
        std::make_shared<const ResidentUnits>(resident_units(analysis, *layout, devices, 1, true)));
  const std::vector<std::int64_t> places = fixed_places_bytes(front_schedule(layout, devices));
  for (std::size_t d = 0; d < places.size(); ++d) {
    if (places[d] + sweeps[d] <= there) continue;
    // Each of the devices that share a front has all of it.
    if (staying.shares == 0 || given) return nullptr;
    return resident_layout(analysis, a, sizes, given, element, machine);
  }
  sizes = staying;
  return layout;
}

std::int64_t resident_elements(const SparseAnalysis& analysis) {
  std::int64_t elements = 0;
  for (std::int32_t s = 0; s < analysis.supernodes(); ++s)
    elements += panel_elements(analysis, s) + packed_elements(analysis.row_count(s));
  return elements;
}

std::shared_ptr<const FrontLayout> fitting_layout(SparseAnalysis& analysis, const SparseMatrix& a,
                                                  FrontSizes& sizes, bool given, Element element,
                                                  const Machine& machine) {
  const auto devices = static_cast<int>(machine.devices.size());
  const std::int64_t budget = smallest_memory(machine);
  const auto fits = [&](const std::shared_ptr<const FrontLayout>& layout) {
    return smallest_budget_bytes(front_schedule(layout, devices, front_rates(machine, element))) <=
           budget;
  };
  const bool in_ranges = sizes.program != 0 && (sizes.range_bytes > 0 || !given) &&
                         are_alike(machine) && fit_ranges(analysis);
  if (in_ranges) {
    // Room for a range while the one before goes home and updates wait for others.
    constexpr std::int64_t kParts = 6;
    constexpr std::int64_t kMost = 128;
    FrontSizes ranges = resident_sizes(sizes, false);
    ranges.devices = devices;
    const std::int64_t largest = ranges.range_bytes > 0 ? ranges.range_bytes : budget / kParts;
    ranges.range_bytes = largest;
    do {
      SplitAnalysis split = split_supernodes(analysis, ranges.range_bytes, element);
      std::shared_ptr<const FrontLayout> layout;
      try {
        layout = std::make_shared<const FrontLayout>(
            lay_out_fronts(split.analysis, a, ranges, element, split.parts));
      } catch (const Error& error) {
        // Too many parts of the tree meet in one, which smaller ones do not mend.
        if (error.kind() != ErrorKind::memory) throw;
        if (std::exchange(ranges.range_values, true)) break;
        ranges.range_bytes = largest;
        continue;
      }
      if (fits(layout)) {
        analysis = std::move(split.analysis);
        sizes = ranges;
        return layout;
      }
      ranges.range_bytes /= 2;
      // The values of the whole matrix may be what leaves no room beside a range.
      if (ranges.range_bytes <= budget / kMost && !std::exchange(ranges.range_values, true))
        ranges.range_bytes = largest;
    } while (ranges.range_bytes > budget / kMost);
  }
  sizes.range_bytes = 0;
  // Below, branches hardly hold more than one supernode, and panels and tiles are what is large.
  constexpr std::int64_t kSmallest = 256;
  for (;;) {
    auto layout = std::make_shared<FrontLayout>(lay_out_fronts(analysis, a, sizes, element));
    if (fits(layout)) return layout;
    if (sizes.branch_entries <= kSmallest) {
      // Slots that suit all tasks need more than any of them.
      layout->own_places = true;
      return layout;
    }
    sizes.branch_entries /= 4;
  }
}

namespace {

/// What a factor takes of host memory: L, values and what is known of the pattern, and the updates
/// that leave the devices. Those are gone when entries of the inverse are made, but where they were
/// page-locked for GPUs.
std::int64_t host_bytes_of(const PlannedRun& planned, const SparseAnalysis& analysis,
                           bool inverse) {
  const BlockTable& blocks = planned.plan->schedule().blocks;
  const std::int64_t panels = blocks.total_bytes(fronts::kPanels);
  const std::int64_t lasting =
      panels + blocks.total_bytes(fronts::kValues) +
      2 * (blocks.total_bytes(fronts::kStructure) + blocks.total_bytes(fronts::kPlaces));
  const std::int64_t stored = planned.plan->totals().traffic.device_to_host_bytes - panels -
                              blocks.total_bytes(fronts::kStatus);
  const std::int64_t updates =
      std::clamp<std::int64_t>(stored, 0, blocks.total_bytes(fronts::kUpdates));
  const std::int64_t of_inverse = inverse ? inverse_bytes(analysis) : 0;
  return lasting +
         (has_gpu(planned.plan->machine()) ? updates + of_inverse : std::max(updates, of_inverse));
}

}  // namespace

PlannedRun plan_fronts(const SparseAnalysis& analysis, std::shared_ptr<const FrontLayout> layout,
                       const Machine& machine, const SparseCholeskyOptions& asked) {
  const RunOptions& options = asked.run;
  require_devices(machine);
  const auto start = std::chrono::steady_clock::now();
  const Element element = layout->blocks.family(fronts::kPanels).element;
  auto schedule = std::make_shared<const Schedule>(front_schedule(
      std::move(layout), static_cast<int>(machine.devices.size()), front_rates(machine, element)));
  const std::int64_t needed = smallest_budget_bytes(*schedule);
  const std::int64_t there = smallest_memory(machine);
  require(needed <= there, ErrorKind::memory, kFactorWhere,
          "a device memory of {} ({} bytes) is too small for this factorization: its largest task "
          "needs {} bytes",
          format_bytes(there), there, needed);
  PlannedRun planned = make_planned_run(schedule, machine, options.policy);
  planned.n = std::ssize(analysis.order);
  planned.host_bytes = host_bytes_of(planned, analysis, asked.inverse);
  // Values in and the factor out.
  planned.floor_bytes =
      schedule->blocks.total_bytes(fronts::kPanels) + schedule->blocks.total_bytes(fronts::kValues);
  planned.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return planned;
}

int resident_queues(const SparseCholeskyOptions& options, int devices) {
  // A device with several units begins one where the last fronts of another leave room.
  constexpr int kQueues = 4;
  if (options.batches) return options.batches->streams;
  return devices > 1 ? kQueues : 1;
}

PlannedRun plan_resident(const SparseAnalysis& analysis, std::shared_ptr<const FrontLayout> layout,
                         const Machine& machine, const SparseCholeskyOptions& asked) {
  const auto start = std::chrono::steady_clock::now();
  const auto devices = static_cast<int>(machine.devices.size());
  const int queues = resident_queues(asked, devices);
  const auto schedule =
      std::make_shared<const Schedule>(resident_schedule(std::move(layout), devices));
  PlannedRun planned = make_planned_run(schedule, ResidentDevices::machine_of(machine, queues),
                                        ResidentDevices::plan_options(*schedule, queues), "none");
  planned.predicted_seconds = predicted_again(*planned.plan);
  planned.n = std::ssize(analysis.order);
  planned.host_bytes = host_bytes_of(planned, analysis, asked.inverse);
  planned.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return planned;
}

PlannedRun plan_factorization(const SparseAnalysis& analysis, const SparseMatrix& a,
                              const Machine& machine, const SparseCholeskyOptions& options) {
  const MachineLayout there = layout_on(analysis, a, machine, options);
  PlannedRun planned = there.stays ? plan_resident(there.analysis, there.layout, machine, options)
                                   : plan_fronts(there.analysis, there.layout, machine, options);
  planned.tile = there.sizes.tile;
  return planned;
}

MachineLayout layout_on(const SparseAnalysis& analysis, const SparseMatrix& a,
                        const Machine& machine, const SparseCholeskyOptions& options) {
  require_devices(machine);
  MachineLayout there{.analysis = analysis};
  there.sizes = front_sizes(analysis, options, has_gpu(machine));
  const bool given = are_given(options);
  there.layout = resident_layout(analysis, a, there.sizes, given, options.precision, machine,
                                 machine.device_to_device.bytes_per_second > 0);
  there.stays = there.layout != nullptr;
  if (!there.stays)
    there.layout =
        fitting_layout(there.analysis, a, there.sizes, given, options.precision, machine);
  return there;
}

Machine only(Machine machine, DeviceKind kind) {
  std::erase_if(machine.devices, [&](const DeviceModel& device) { return device.kind != kind; });
  return machine;
}

std::optional<DeviceKind> sooner_alone(const SparseAnalysis& analysis, const SparseMatrix& a,
                                       const Machine& machine,
                                       const SparseCholeskyOptions& options) {
  if (are_alike(machine)) return std::nullopt;
  // Without end where the memory does not suffice.
  const auto seconds = [&](const Machine& some) {
    try {
      const PlannedRun planned = plan_factorization(analysis, a, some, options);
      // GPUs alone may keep L.
      if (is_cpu(some) || !are_alike(some))
        check_host_memory(planned, options.run, kFactorWhere,
                          beside_factor(analysis, options.inverse));
      return planned.simulated.seconds;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory) throw;
      return std::numeric_limits<double>::infinity();
    }
  };
  const double gpus = seconds(only(machine, DeviceKind::gpu));
  const double cpus = seconds(only(machine, DeviceKind::cpu));
  if (seconds(machine) < std::min(gpus, cpus)) return std::nullopt;
  return gpus <= cpus ? DeviceKind::gpu : DeviceKind::cpu;
}

}  // namespace strata
