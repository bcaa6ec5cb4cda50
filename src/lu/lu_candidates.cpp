#include "lu/lu_candidates.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_update.hpp"
#include "schedule/machine_model.hpp"
#include "schedule/plan_layout.hpp"
#include "session/policy.hpp"

namespace strata {
namespace {

std::int64_t panels_of(const LuProblem& problem) {
  return (problem.n + problem.panel - 1) / problem.panel;
}

/// The least on one device of `problem.devices`: the work of all tasks shared by all queues, and
/// the chain getrf → lu_update → getrf … of one panel after another.
double least_seconds_of_device(const LuProblem& problem, const DeviceModel& device, int queues) {
  const Element e = problem.precision;
  const Elements of_getrf{e, Element::int64, Element::fp64};
  const Elements of_update{e, e, Element::int64};
  const BlockTable blocks = lu_factorization(problem).blocks;
  double on_queues = 0;
  double shares = 0;
  double chain = 0;
  const auto add = [&](const Operation& operation, const Elements& elements, double work,
                       double count) {
    const double seconds = kernel_seconds(device, operation, elements, work);
    on_queues += count * seconds;
    shares += count * seconds * kernel_share(device, operation, elements, work);
    return seconds;
  };
  const std::int64_t panels = panels_of(problem);
  for (std::int64_t p = 0; p < panels; ++p) {
    const BlockExtent panel = blocks.extent({kPanelFamily, 0, p});
    const std::vector<BlockExtent> alone{panel};
    chain += add(getrf, of_getrf, getrf.work(alone, 0), 1);
    if (p + 1 == panels) break;
    // The last panel may be narrower: all others are taken to be full, and it is left out.
    const std::vector<BlockExtent> operands{blocks.extent({kPanelFamily, 0, p + 1}), panel};
    const double full = static_cast<double>(panels - p - 2);
    const double seconds = add(lu_update, of_update, lu_update.work(operands, 0), full);
    if (p + 2 < panels) chain += seconds;
  }
  const auto devices = static_cast<double>(problem.devices);
  const double bytes = static_cast<double>(problem.n) * static_cast<double>(problem.n) *
                       static_cast<double>(bytes_of(e)) / devices;
  return std::max({shares / devices, on_queues / devices / queues, chain,
                   bytes / device.host_to_device.bytes_per_second,
                   bytes / device.device_to_host.bytes_per_second});
}

}  // namespace

std::int64_t lu_floor_bytes(const LuProblem& problem, std::int64_t memory_bytes) {
  const auto size = static_cast<double>(bytes_of(problem.precision));
  const auto n = static_cast<double>(problem.n);
  const auto memory = static_cast<double>(memory_bytes);
  double reads = n * n;
  if (memory_bytes > 0 && n * n * size > memory * problem.devices)
    reads = std::max(reads, 2 * n * n * n / (3 * std::sqrt(memory / size)));
  return static_cast<std::int64_t>((reads + n * n) * size);
}

MemoryNeeds lu_needs(const LuProblem& problem, std::int64_t budget) {
  const auto schedule = [&](std::int64_t panel) {
    LuProblem other = problem;
    other.panel = panel;
    return lu_factorization(other);
  };
  MemoryNeeds needs;
  const Schedule own = schedule(problem.panel);
  needs.device_bytes = smallest_budget_bytes(own);
  needs.tile_max = largest_tile(std::max<std::int64_t>(problem.n, 1), budget, schedule);
  const int given = problem.given != Element::none ? kGivenFamily : -1;  // the caller's
  for (int f = 0; f < own.blocks.families(); ++f) {
    const BlockFamily& family = own.blocks.family(f);
    if (!family.in_storage && !family.stays && f != given)
      needs.host_bytes += own.blocks.total_bytes(f);
  }
  return needs;
}

LuOrder LuOrder::of(std::int64_t number) noexcept {
  constexpr std::int64_t kMask = (std::int64_t{1} << 20) - 1;
  return {number & kMask, number >> 20 & kMask, std::max<std::int64_t>(number >> 40, 1)};
}

std::int64_t LuOrder::number() const noexcept {
  return slab | inner << 20 | (inner > 0 ? group : 0) << 40;
}

LuProblem LuCandidates::with(std::int64_t tile, std::int64_t order) const {
  const LuOrder of = LuOrder::of(order);
  LuProblem problem = problem_;
  problem.panel = tile;
  problem.slab = of.slab;
  problem.inner = of.inner;
  problem.group = of.group;
  return problem;
}

bool LuCandidates::allows(std::int64_t tile) const {
  // On a CPU 64 columns took a tenth to a fifth more processor time than 128 (order 4096, a fifth
  // of it in memory), of which predictions by one rate know nothing.
  constexpr std::int64_t kNarrowest = 128;
  if (tile < kNarrowest || tile > problem_.n) return false;
  const std::int64_t panels = panels_of(with(tile, 0));
  if (panels < std::max(problem_.devices, 2) || panels > kPanelsMax) return false;
  return smallest_budget_bytes(lu_factorization(with(tile, 0))) <= smallest_memory(machine_);
}

std::vector<std::int64_t> LuCandidates::orders(std::int64_t tile) const {
  const Schedule all = lu_factorization(with(tile, 0));
  const std::int64_t panels = all.blocks.block_cols(kPanelFamily);
  if (panels == 0) return {0};
  const PlanLayout layout = make_layout(all, machine_, {}, {});
  std::int64_t slots = panels;
  for (std::size_t d = 0; d < static_cast<std::size_t>(all.devices); ++d)
    slots = std::min(slots, slots_of_family(layout, d, kPanelFamily));
  if (slots >= panels) {
    if (!problem_.in_storage && is_cpu(machine_)) return {0};
    // Right-looking, all is there before much is computed: with slabs the next ones come meanwhile.
    std::vector<std::int64_t> orders{0};
    for (const std::int64_t width : {1, 4, 16})
      if (width < panels) orders.push_back(width);
    return orders;
  }
  std::vector<std::int64_t> orders;
  const std::int64_t on_host =
      layout.host < 0
          ? 0
          : slots_of_family(layout, static_cast<std::size_t>(layout.host), kPanelFamily);
  // Beside a group there is the panel that it updates, and room for the next ones.
  for (const std::int64_t beside : {4, 3, 2}) {
    const LuOrder order{on_host - 1, std::max<std::int64_t>(slots - 1, 1) * problem_.devices,
                        slots - beside};
    if (order.group >= 1 && order.slab > order.inner && order.slab < panels)
      orders.push_back(order.number());
  }
  for (std::int64_t beside = 1; beside <= 3; ++beside) {
    const std::int64_t width = (slots - beside) * problem_.devices;
    if (width >= 1 && width < panels) orders.push_back(width);
  }
  // Equal slabs near the widest: the last one is then not a small rest.
  const std::int64_t widest = (slots - 1) * problem_.devices;
  if (widest >= 1 && widest < panels) {
    const std::int64_t slabs = (panels + widest - 1) / widest;
    const std::int64_t equal = (panels + slabs - 1) / slabs;
    if (std::find(orders.begin(), orders.end(), equal) == orders.end()) orders.push_back(equal);
  }
  orders.push_back(0);
  return orders;
}

std::string LuCandidates::order_name(std::int64_t order) const {
  const LuOrder of = LuOrder::of(order);
  if (of.inner > 0) return fmt::format("slab({}) of {} by {}", of.slab, of.inner, of.group);
  return order == 0 ? "right-looking" : fmt::format("slab({})", of.slab);
}

Schedule LuCandidates::schedule(std::int64_t tile, std::int64_t order) const {
  return lu_factorization(with(tile, order));
}

PlanOptions LuCandidates::options() const {
  PlanOptions options = options_of(policy_);
  options.urgent_queue = policy_ == Policy::opt && !is_cpu(machine_);
  options.homes = homes_;
  return options;
}

double LuCandidates::seconds_min(std::int64_t tile, int queues) const {
  double least = 0;
  for (std::size_t d = 0; d < machine_.devices.size(); ++d) {
    DeviceModel device = machine_.devices[d];
    device.compute_queues = queues;
    const int all = queues + (options().urgent_queue ? 1 : 0);
    const double here = least_seconds_of_device(with(tile, 0), device, all);
    least = d == 0 ? here : std::min(least, here);
  }
  return least;
}

std::int64_t LuCandidates::steps(std::int64_t tile) const {
  const std::int64_t panels = panels_of(with(tile, 0));
  return panels * (panels + 1) / 2 + 4 * panels;
}

std::int64_t LuCandidates::floor_bytes(std::int64_t memory_bytes) const {
  return lu_floor_bytes(problem_, memory_bytes);
}

}  // namespace strata
