// LU by column panels.
//
// Method: panel k, once factored, does to a panel j > k
//     A_j ← L_k⁻¹·P_k·A_j  (lu_update);   and then   P_j·A_j = L_j·U_j from its rows on  (getrf).
// Right-looking these updates follow the factorization of k at once, which gives many independent
// tasks; left-looking they come when slab j is at hand, which writes every panel once. A slab of w
// panels that stay on the devices takes the earlier ones as a stream: n³/(2·w·b) words for panels
// of b columns, since each slab reads all panels before it. Exchanges of later panels are never
// applied to L, as in Barker, Kurzak and others' out-of-core codes ("getrf_m": D'Azevedo, Dongarra,
// "The design and implementation of the parallel out-of-core ScaLAPACK LU, QR, and Cholesky
// factorization routines", Concurrency 12, 2000), so that no panel is read for them.
// In storage the rows of L_k and those of U_k are blocks of their own, copied when panel k is
// factored: L_k updates, and slabs read n³/(3·w·b) words then; U_k waits for solves, of which each
// sweep reads one of the two.

#include "lu/lu_tasks.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/dense/copy_rows.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/lu_back.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/panel_product.hpp"
#include "kernels/dense/scaled_copy.hpp"
#include "kernels/dense/take_diagonal.hpp"

namespace strata {
namespace {

/// Panels first … end − 1 are at hand, and panels k … k_end − 1 are applied to them.
struct SlabStep {
  std::int64_t first = 0;
  std::int64_t end = 0;
  std::int64_t k = 0;
  std::int64_t k_end = 0;  ///< above k + 1 only where k_end <= first
  bool in_turn = false;    ///< devices do not hold the slab: a panel takes all, and leaves
  bool backwards = false;  ///< the last panel of the slab comes first
};

/// Panels first … end − 1 are updated by those from `applied` on, one by one, and factored.
void add_slab(std::vector<SlabStep>& steps, std::int64_t first, std::int64_t end,
              std::int64_t applied) {
  for (std::int64_t k = applied; k < end; ++k) steps.push_back({first, end, k, k + 1});
}

std::vector<SlabStep> slab_steps(const LuProblem& problem, std::int64_t panels) {
  std::vector<SlabStep> steps;
  const std::int64_t width = problem.slab > 0 ? problem.slab : std::max<std::int64_t>(panels, 1);
  const std::int64_t inner = problem.inner > 0 ? problem.inner : width;
  const std::int64_t group = std::max<std::int64_t>(problem.group, 1);
  for (std::int64_t first = problem.done; first < panels; first += width) {
    const std::int64_t end = std::min(first + width, panels);
    if (inner >= end - first) {
      add_slab(steps, first, end, 0);
      continue;
    }
    bool backwards = false;
    for (std::int64_t k = 0; k < first; k += group, backwards = !backwards)
      steps.push_back({first, end, k, std::min(k + group, first), true, backwards});
    for (std::int64_t s = first; s < end; s += inner)
      add_slab(steps, s, std::min(s + inner, end), first);
  }
  return steps;
}

int device_of(std::int64_t block, int devices) { return static_cast<int>(block % devices); }

BlockId panel_of(std::int64_t p) { return {kPanelFamily, 0, p}; }
BlockId pivots_of(std::int64_t p) { return {kPivotsFamily, 0, p}; }

class LuEmitter {
 public:
  /// `factor`: the family of the factor where that is in storage; −1: it is not.
  /// `variant`: of a factorization's getrf and lu_update; `given`: the matrix is as it was given.
  LuEmitter(int devices, int factor, TaskList& tasks, std::uint32_t variant = 0, bool given = false)
      : devices_(devices), factor_(factor), tasks_(tasks), variant_(variant), given_(given) {}

  void factor(std::int64_t p) {
    const bool splits = factor_ >= 0;
    tasks_
        .add(getrf, device_of(p, devices_),
             {{panel_of(p), splits ? Hint::none : Hint::last_write},
              {pivots_of(p), Hint::last_write},
              {BlockId(kPanelStatusFamily, 0, p), Hint::last_write}},
             variant_)
        .urgent = true;  // everything waits for it
    if (given_)
      tasks_.add(take_diagonal, device_of(p, devices_),
                 {{BlockId(kDiagonalFamily, 0, p), Hint::last_write}, panel_of(p)});
    if (!splits) return;
    tasks_.add(copy_rows, device_of(p, devices_), {panel_of(p), {lower_of(p), Hint::last_write}})
        .urgent = true;
    tasks_.add(copy_rows, device_of(p, devices_),
               {{panel_of(p), Hint::last_use}, {upper_of(p), Hint::last_write}});
  }
  /// Panel p from the matrix as it was given.
  void scale(std::int64_t p) {
    tasks_.add(scaled_copy, device_of(p, devices_),
               {panel_of(p),
                {BlockId(kLargestFamily, 0, p), Hint::last_write},
                BlockId(kGivenFamily, 0, p),
                BlockId(kExponentsFamily, 0, 0)});
  }
  /// A block of the family is a panel or columns of X.
  void update(int family, std::int64_t j, std::int64_t k, std::uint32_t variant = 0,
              Hint hint = Hint::none) {
    tasks_.add(lu_update, device_of(j, devices_),
               {{BlockId(family, 0, j), hint}, lower_of(k), pivots_of(k)}, variant | variant_);
  }
  void back(std::int64_t j, std::int64_t p, std::uint32_t variant) {
    tasks_.add(lu_back, device_of(j, devices_), {BlockId(kRightSideFamily, 0, j), upper_of(p)},
               variant);
  }

 private:
  /// The blocks that hold panel p of L and of U.
  [[nodiscard]] BlockId lower_of(std::int64_t p) const {
    return factor_ >= 0 ? lower_block(factor_, p) : panel_of(p);
  }
  [[nodiscard]] BlockId upper_of(std::int64_t p) const {
    return factor_ >= 0 ? upper_block(factor_, p) : panel_of(p);
  }

  int devices_;
  int factor_;
  TaskList& tasks_;
  std::uint32_t variant_;
  bool given_;
};

BlockFamily panels_of(std::int64_t n, std::int64_t panel, Element precision) {
  return {.name = "A",
          .rows = n,
          .cols = n,
          .tile_rows = std::max<std::int64_t>(n, 1),
          .tile_cols = panel,
          .element = precision};
}

BlockFamily given_panels(std::int64_t n, std::int64_t panel, Element element,
                         std::uint64_t identity) {
  BlockFamily given = panels_of(n, panel, element);
  given.name = "G";
  given.identity = identity;
  return given;
}

BlockFamily pivots_of_panels(std::int64_t n, std::int64_t panel, std::uint64_t identity,
                             bool in_storage) {
  return {.name = "p",
          .rows = 1,
          .cols = n,
          .tile_rows = 1,
          .tile_cols = panel,
          .element = Element::int64,
          .identity = identity,
          .in_storage = in_storage};
}

/// L and U in storage, as lower_block() and upper_block() number them.
BlockFamily factor_in_storage(std::int64_t n, std::int64_t panel, Element precision,
                              std::uint64_t identity) {
  BlockFamily family{.name = "F",
                     .element = precision,
                     .identity = identity,
                     .in_storage = true,
                     .same_slots = true};
  for (std::int64_t c = 0; c < n; c += panel) {
    const std::int64_t width = std::min(panel, n - c);
    family.listed.push_back({c, c, n - c, width});
    family.listed.push_back({0, c, c + width, width});
  }
  return family;
}

/// The matrix as it was given, and what comes with it.
void add_given(const LuProblem& problem, std::int64_t panels, BlockTable& blocks) {
  blocks.add(given_panels(problem.n, problem.panel, problem.given, problem.given_identity));
  blocks.add({.name = "e",
              .rows = problem.n,
              .cols = 2,
              .tile_rows = std::max<std::int64_t>(problem.n, 1),
              .tile_cols = 2,
              .element = Element::int64});
  blocks.add({.name = "d",
              .rows = 1,
              .cols = problem.n,
              .tile_rows = 1,
              .tile_cols = problem.panel,
              .element = problem.precision,
              .origin = Origin::generated});
  blocks.add({.name = "m",
              .rows = 1,
              .cols = panels,
              .tile_rows = 1,
              .tile_cols = 1,
              .origin = Origin::generated});
}

}  // namespace

Schedule lu_factorization(const LuProblem& problem) {
  const bool in_storage = problem.in_storage;
  Schedule schedule;
  schedule.devices = problem.devices;
  BlockFamily a = panels_of(problem.n, problem.panel, problem.precision);
  a.stays = problem.given != Element::none && problem.factor_identity != 0;
  if (problem.given != Element::none) a.origin = Origin::generated;
  a.identity = in_storage ? 0 : problem.factor_identity;
  a.in_storage = in_storage;
  schedule.blocks.add(std::move(a));
  // What belongs to panels that are done is read.
  const Origin made = problem.done > 0 ? Origin::stored : Origin::generated;
  BlockFamily pivots =
      pivots_of_panels(problem.n, problem.panel, problem.pivots_identity, in_storage);
  pivots.origin = made;
  schedule.blocks.add(std::move(pivots));
  const std::int64_t panels = schedule.blocks.block_cols(kPanelFamily);
  schedule.blocks.add({.name = "S",
                       .rows = kPanelStatusRows,
                       .cols = panels,
                       .tile_rows = kPanelStatusRows,
                       .tile_cols = 1,
                       .origin = Origin::generated,
                       .in_storage = in_storage});
  schedule.operands = {2, 1, 1};
  const bool scales = problem.given != Element::none;
  if (scales) {
    add_given(problem, panels, schedule.blocks);
    schedule.operands = {2, 1, 1, 1, 1, 1, 1};
  }
  if (in_storage) {
    BlockFamily factor =
        factor_in_storage(problem.n, problem.panel, problem.precision, problem.factor_identity);
    factor.origin = made;
    schedule.blocks.add(std::move(factor));
    schedule.operands = {1, 1, 1, 1};
  }
  // Schedules are copied.
  const auto steps = std::make_shared<const std::vector<SlabStep>>(slab_steps(problem, panels));
  schedule.steps = std::ssize(*steps);
  schedule.few_slots = true;
  schedule.emit = [steps, scales, devices = problem.devices,
                   factor = in_storage ? kFactorFamily : -1,
                   variant = problem.halves ? kProductsOfHalves : 0](std::int64_t s,
                                                                     TaskList& tasks) {
    const auto [first, end, k, k_end, in_turn, backwards] = (*steps)[static_cast<std::size_t>(s)];
    LuEmitter emitter(devices, factor, tasks, variant, scales);
    const bool begins = scales && k == 0;  // with the panels of the slab
    if (k < first) {
      for (std::int64_t j = first; j < end; ++j) {
        const std::int64_t target = backwards ? first + end - 1 - j : j;
        if (begins) emitter.scale(target);
        // It is used again when all others have been: stored at once, it makes room for them, and
        // those that update need not.
        for (std::int64_t p = k; p < k_end; ++p)
          emitter.update(kPanelFamily, target, p, 0,
                         in_turn && p + 1 == k_end ? Hint::home : Hint::none);
      }
      return;
    }
    if (begins) emitter.scale(k);
    if (k == first) emitter.factor(k);
    for (std::int64_t j = k + 1; j < end; ++j) {
      if (begins) emitter.scale(j);
      emitter.update(kPanelFamily, j, k);
      if (j == k + 1) emitter.factor(j);
    }
  };
  return schedule;
}

Schedule panel_products(const MatrixProductProblem& problem) {
  const bool magnitudes = problem.variant == kMagnitudesOfPanel;
  const Element wide = is_complex(problem.given) ? Element::complex128 : Element::fp64;
  const Element element = magnitudes ? Element::fp64 : wide;
  const std::int64_t rows = std::max<std::int64_t>(problem.n, 1);
  const std::int64_t sums = problem.columns * (problem.variant == kLongProduct ? 2 : 1);
  Schedule schedule;
  schedule.devices = problem.devices;
  const std::int64_t of_factor = problem.factor_identity != 0 ? problem.n : 0;
  BlockFamily factor = panels_of(of_factor, problem.panel, problem.precision);
  factor.identity = problem.factor_identity;
  factor.stays = problem.factor_identity != 0;
  schedule.blocks.add(std::move(factor));
  schedule.blocks.add(pivots_of_panels(of_factor, problem.panel, problem.pivots_identity, false));
  schedule.blocks.add({.name = "X",
                       .rows = problem.n,
                       .cols = problem.columns,
                       .tile_rows = rows,
                       .tile_cols = std::max<std::int64_t>(problem.columns, 1),
                       .element = element});
  schedule.blocks.add(
      given_panels(problem.n, problem.panel, problem.given, problem.given_identity));
  schedule.blocks.add({.name = "Y",
                       .rows = problem.n,
                       .cols = sums * problem.devices,
                       .tile_rows = rows,
                       .tile_cols = std::max<std::int64_t>(sums, 1),
                       .element = element});
  schedule.operands = {0, 0, 1, 1, 1};
  schedule.steps = schedule.blocks.block_cols(kGivenFamily);
  schedule.few_slots = true;
  schedule.emit = [variant = problem.variant, devices = problem.devices](std::int64_t p,
                                                                         TaskList& tasks) {
    const int device = device_of(p, devices);
    tasks.add(panel_product, device,
              {BlockId(kSumsFamily, 0, device), BlockId(kGivenFamily, 0, p),
               BlockId(kRightSideFamily, 0, 0)},
              variant);
  };
  return schedule;
}

Schedule lu_solve(const LuSolveProblem& problem) {
  Schedule schedule;
  schedule.devices = problem.devices;
  BlockFamily factor =
      problem.in_storage
          ? factor_in_storage(problem.n, problem.panel, problem.precision, problem.factor_identity)
          : panels_of(problem.n, problem.panel, problem.precision);
  factor.identity = problem.factor_identity;
  factor.stays = problem.given != Element::none && problem.factor_identity != 0;
  schedule.blocks.add(std::move(factor));
  schedule.blocks.add(
      pivots_of_panels(problem.n, problem.panel, problem.pivots_identity, problem.in_storage));
  schedule.blocks.add({.name = "X",
                       .rows = problem.n,
                       .cols = problem.rhs,
                       .tile_rows = std::max<std::int64_t>(problem.n, 1),
                       .tile_cols = problem.rhs_tile,
                       .element = problem.precision});
  schedule.operands = {1, 1, 1};
  if (problem.given != Element::none) {
    schedule.blocks.add(
        given_panels(problem.n, problem.panel, problem.given, problem.given_identity));
    schedule.operands.push_back(0);  // it stays where it is
  }
  const std::int64_t panels = schedule.blocks.block_cols(kPivotsFamily);
  const std::int64_t blocks = schedule.blocks.block_cols(kRightSideFamily);
  const std::int64_t group = problem.group > 0 ? problem.group : std::max<std::int64_t>(blocks, 1);
  const std::int64_t groups = panels == 0 ? 0 : (blocks + group - 1) / group;
  schedule.steps = groups * 2 * panels;
  schedule.few_slots = true;
  schedule.emit = [=, variant = problem.variant, devices = problem.devices,
                   factor = problem.in_storage ? kPanelFamily : -1](std::int64_t s,
                                                                    TaskList& tasks) {
    const std::int64_t first = s / (2 * panels) * group;
    const std::int64_t end = std::min(first + group, blocks);
    const std::int64_t step = s % (2 * panels);
    const bool forward = step < panels;
    const std::int64_t p = forward ? step : 2 * panels - 1 - step;
    LuEmitter emitter(devices, factor, tasks);
    for (std::int64_t j = first; j < end; ++j) {
      forward == (variant == 0) ? emitter.update(kRightSideFamily, j, p, variant)
                                : emitter.back(j, p, variant);
    }
  };
  return schedule;
}

}  // namespace strata
