#include "lu/stripe_tasks.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels/dense/gemm.hpp"
#include "kernels/dense/lu_back.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/stripe.hpp"
#include "kernels/dense/stripe_pair.hpp"

namespace strata {
namespace {

/// Stripe j takes what stripes first … end − 1 do to it.
struct StripeStep {
  std::int64_t j = 0;
  std::int64_t first = 0;
  std::int64_t end = 0;
  bool factors = false;  ///< and is factored then
  bool soon = true;      ///< it is the next that others take, so it stays
  bool last = false;     ///< on its device nothing needs these stripes after it
  bool ends = false;     ///< no stripe takes these after it
};

/// The stripe behind a meta-stripe is factored as soon as it has taken that, whether it comes first
/// or last: it does not have to come again for it.
std::vector<StripeStep> stripe_steps(const StripeProblem& problem, std::int64_t stripes) {
  std::vector<StripeStep> steps;
  const std::int64_t meta = std::max<std::int64_t>(problem.meta, 1);
  bool backwards = false;
  for (std::int64_t first = 0; first < stripes; first += meta) {
    const std::int64_t end = std::min(first + meta, stripes);
    for (std::int64_t j = first == 0 ? 0 : first + 1; j < end; ++j)
      steps.push_back({j, first, j, true, true, false, j + 1 == stripes});
    const std::int64_t count = stripes - end;
    for (std::int64_t s = 0; s < count; ++s) {
      const std::int64_t j = backwards ? stripes - 1 - s : end + s;
      steps.push_back(
          {j, first, end, j == end, s + 1 == count, s >= count - problem.devices, s + 1 == count});
    }
    backwards = problem.zigzag && !backwards;
  }
  return steps;
}

BlockId block_of(std::int64_t i, std::int64_t k) { return {kStripeFamily, i, k}; }
BlockId pivots_of_stripe(std::int64_t i) { return {kStripePivotsFamily, 0, i}; }
BlockId status_of(std::int64_t i, std::int64_t k) { return {kStripeStatusFamily, i, k}; }
BlockId right_of(std::int64_t i, std::int64_t c) { return {kStripeRightFamily, i, c}; }
BlockId triangles_of(std::int64_t j, std::int64_t i) { return {kStripePairFamily, j, i}; }
BlockId pivots_of_pair(std::int64_t j, std::int64_t i) { return {kStripePairPivotsFamily, j, i}; }

/// What a pair (j, i) does to right-hand sides, or, adjoint, to those of the adjoint matrix.
void add_pair_update(int device, std::int64_t j, std::int64_t i, std::int64_t c, Hint of_pair,
                     bool adjoint, TaskList& tasks) {
  tasks.add(stripe_pair_update, device,
            {right_of(i, c),
             right_of(j, c),
             {triangles_of(j, i), of_pair},
             {block_of(j, i), of_pair},
             {pivots_of_pair(j, i), of_pair}},
            adjoint ? kAdjointFactor : 0);
}

class StripeEmitter {
 public:
  StripeEmitter(const StripeProblem& problem, std::int64_t stripes, std::int64_t columns,
                TaskList& tasks)
      : problem_(problem), stripes_(stripes), columns_(columns), tasks_(tasks) {}

  /// <JI> and <JK>, segment by segment: what a segment is updated with is all of one stripe J and
  /// one segment of those above.
  void update(const StripeStep& step) {
    if (problem_.pair_columns > 0) return update_by_pairs(step);
    const std::int64_t j = step.j;
    for (std::int64_t k = step.first; k < stripes_; ++k) {
      for (std::int64_t i = step.first; i < std::min(step.end, k); ++i)
        tasks_.add(gemm, device_of(j),
                   {block_of(j, k),
                    {block_of(j, i), of_multipliers(k)},
                    {block_of(i, k), of_upper(step)}});
      if (k < step.end) multipliers(j, k, of_upper(step));
    }
    for (std::int64_t c = 0; c < columns_; ++c)
      for (std::int64_t i = step.first; i < step.end; ++i)
        tasks_.add(
            gemm, device_of(j),
            {right_of(j, c), {block_of(j, i), of_multipliers(stripes_ + c)}, right_of(i, c)});
  }
  /// <II> and <IK>.
  void factor(std::int64_t i, bool stays) {
    // By pairs it is written as long as there are stripes below.
    const bool written = problem_.pair_columns == 0 || i + 1 == stripes_;
    const Hint done = written ? Hint::last_write : Hint::none;
    const Hint last = stays ? done | Hint::retain : done;
    tasks_
        .add(stripe_factor, device_of(i),
             {{block_of(i, i), last},
              {pivots_of_stripe(i), Hint::last_write},
              {status_of(i, i), done}},
             static_cast<std::uint32_t>(problem_.substripe))
        .urgent = true;  // everything waits for it
    for (std::int64_t k = i + 1; k < stripes_; ++k)
      tasks_.add(
          stripe_row, device_of(i),
          {{block_of(i, k), last}, {status_of(i, k), done}, block_of(i, i), pivots_of_stripe(i)});
    for (std::int64_t c = 0; c < columns_; ++c)
      tasks_.add(lu_update, device_of(i), {right_of(i, c), block_of(i, i), pivots_of_stripe(i)});
  }

 private:
  [[nodiscard]] int device_of(std::int64_t j) const {
    return static_cast<int>(j % problem_.devices);
  }
  /// Stripes above stay until all below have taken them.
  static Hint of_upper(const StripeStep& step) { return step.last ? Hint::release : Hint::retain; }
  /// Multipliers stay until column k, or of B stripes + c, has taken them.
  [[nodiscard]] Hint of_multipliers(std::int64_t k) const {
    if (k + 1 < stripes_ + columns_) return Hint::retain;
    return problem_.discards ? Hint::release | Hint::last_use : Hint::release;
  }
  /// As update(), of pairs: both stripes are written.
  void update_by_pairs(const StripeStep& step) {
    const std::int64_t j = step.j;
    const Hint of_upper_stripe = of_upper(step) | (step.ends ? Hint::last_write : Hint::none);
    const Hint of_status = step.ends ? Hint::last_write : Hint::none;
    for (std::int64_t k = step.first; k < stripes_; ++k) {
      for (std::int64_t i = step.first; i < std::min(step.end, k); ++i)
        tasks_.add(stripe_pair_row, device_of(j),
                   {{block_of(i, k), of_upper_stripe},
                    block_of(j, k),
                    {status_of(i, k), of_status},
                    {triangles_of(j, i), of_multipliers(k)},
                    {block_of(j, i), of_multipliers(k)},
                    {pivots_of_pair(j, i), of_multipliers(k)}});
      if (k >= step.end) continue;
      const Hint hint = problem_.discards ? Hint::retain : Hint::last_write | Hint::retain;
      tasks_.add(stripe_pair_factor, device_of(j),
                 {{block_of(k, k), of_upper_stripe},
                  {status_of(k, k), of_status},
                  {block_of(j, k), hint},
                  {triangles_of(j, k), hint},
                  {pivots_of_pair(j, k), hint},
                  {status_of(j, k), Hint::last_write}});
    }
    for (std::int64_t c = 0; c < columns_; ++c)
      for (std::int64_t i = step.first; i < step.end; ++i)
        add_pair_update(device_of(j), j, i, c, of_multipliers(stripes_ + c), false, tasks_);
  }
  void multipliers(std::int64_t j, std::int64_t i, Hint of_diagonal) {
    const Hint hint = problem_.discards ? Hint::retain : Hint::last_write | Hint::retain;
    tasks_.add(stripe_column, device_of(j),
               {{block_of(j, i), hint},
                {status_of(j, i), Hint::last_write},
                {block_of(i, i), of_diagonal}});
  }

  const StripeProblem& problem_;
  std::int64_t stripes_;
  std::int64_t columns_;
  TaskList& tasks_;
};

/// A, its pivots, and right-hand sides.
Schedule stripes_of(const StripeProblem& problem, Origin of_pivots) {
  Schedule schedule;
  schedule.devices = problem.devices;
  schedule.blocks.add({.name = "A",
                       .rows = problem.n,
                       .cols = problem.n,
                       .tile_rows = problem.stripe,
                       .tile_cols = problem.stripe,
                       .element = problem.precision,
                       .in_storage = problem.in_storage});
  schedule.blocks.add({.name = "p",
                       .rows = 1,
                       .cols = problem.n,
                       .tile_rows = 1,
                       .tile_cols = problem.stripe,
                       .element = Element::int64,
                       .origin = of_pivots});
  schedule.blocks.add({.name = "B",
                       .rows = problem.n,
                       .cols = problem.rhs,
                       .tile_rows = problem.stripe,
                       .tile_cols = std::max<std::int64_t>(problem.rhs_tile, 1),
                       .element = problem.precision});
  const bool pairs = problem.pair_columns > 0;
  const std::int64_t stripes = pairs ? schedule.blocks.block_rows(kStripeFamily) : 0;
  schedule.blocks.add({.name = "W",
                       .rows = stripes * problem.pair_columns,
                       .cols = pairs ? problem.n : 0,
                       .tile_rows = std::max<std::int64_t>(problem.pair_columns, 1),
                       .tile_cols = problem.stripe,
                       .element = problem.precision,
                       .origin = of_pivots,
                       .in_storage = problem.in_storage && pairs});
  schedule.blocks.add({.name = "q",
                       .rows = stripes,
                       .cols = pairs ? problem.n : 0,
                       .tile_rows = 1,
                       .tile_cols = problem.stripe,
                       .element = Element::int64,
                       .origin = of_pivots});
  return schedule;
}

/// Stripe i of X in one sweep, and what it takes or gives.
void add_sweep_step(std::int64_t i, std::int64_t stripes, bool forward, bool adjoint,
                    std::int64_t columns, int devices, TaskList& tasks) {
  // Forward sweeps meet stripes in ascending order: L, or Uᴴ; backward ones Lᴴ, or U.
  const bool lower = forward != adjoint;
  const std::int64_t first = lower ? 0 : i + 1;
  const std::int64_t end = lower ? i : stripes;
  const auto on = [&](std::int64_t c) { return static_cast<int>(c % devices); };
  const auto own = [&] {
    for (std::int64_t c = 0; c < columns; ++c) {
      if (lower)
        tasks.add(lu_update, on(c), {right_of(i, c), block_of(i, i), pivots_of_stripe(i)},
                  adjoint ? kAdjointFactor : 0);
      else
        tasks.add(lu_back, on(c), {right_of(i, c), block_of(i, i)}, adjoint ? kAdjointFactor : 0);
    }
  };
  if (adjoint) own();
  for (std::int64_t k = first; k < end; ++k) {
    for (std::int64_t c = 0; c < columns; ++c) {
      if (adjoint)
        tasks.add(gemm, on(c), {right_of(k, c), block_of(i, k), right_of(i, c)}, kTransposeA);
      else
        tasks.add(gemm, on(c), {right_of(i, c), block_of(i, k), right_of(k, c)});
    }
  }
  if (!adjoint) own();
}

/// Step s of L⁻¹·P·X by pairs, as the factorization has it, or of its adjoint.
void add_pair_step(const StripeStep& step, bool adjoint, std::int64_t columns, int devices,
                   TaskList& tasks) {
  const auto own = [&](std::int64_t c, int device) {
    if (step.factors)
      tasks.add(lu_update, device,
                {right_of(step.j, c), block_of(step.j, step.j), pivots_of_stripe(step.j)},
                adjoint ? kAdjointFactor : 0);
  };
  for (std::int64_t c = 0; c < columns; ++c) {
    const int device = static_cast<int>(c % devices);
    if (adjoint) own(c, device);
    for (std::int64_t s = step.first; s < step.end; ++s) {
      const std::int64_t i = adjoint ? step.first + step.end - 1 - s : s;
      add_pair_update(device, step.j, i, c, Hint::none, adjoint, tasks);
    }
    if (!adjoint) own(c, device);
  }
}

}  // namespace

Schedule stripe_factorization(const StripeProblem& problem) {
  Schedule schedule = stripes_of(problem, Origin::generated);
  const std::int64_t stripes = schedule.blocks.block_rows(kStripeFamily);
  const std::int64_t columns = schedule.blocks.block_cols(kStripeRightFamily);
  schedule.blocks.add({.name = "S",
                       .rows = kPanelStatusRows * stripes,
                       .cols = stripes,
                       .tile_rows = kPanelStatusRows,
                       .tile_cols = 1,
                       .origin = Origin::generated});
  const bool pairs = problem.pair_columns > 0;
  schedule.operands = {3, 1, 2, pairs ? 1 : 0, pairs ? 1 : 0, pairs ? 2 : 1};
  // Schedules are copied.
  const auto steps =
      std::make_shared<const std::vector<StripeStep>>(stripe_steps(problem, stripes));
  schedule.steps = std::ssize(*steps);
  schedule.emit = [=](std::int64_t s, TaskList& tasks) {
    const StripeStep& step = (*steps)[static_cast<std::size_t>(s)];
    StripeEmitter emitter(problem, stripes, columns, tasks);
    emitter.update(step);
    if (step.factors) emitter.factor(step.j, step.soon);
  };
  return schedule;
}

Schedule stripe_solve(const StripeProblem& problem, StripeSweeps sweeps) {
  Schedule schedule = stripes_of(problem, Origin::stored);
  const bool pairs = problem.pair_columns > 0;
  schedule.operands = {1, 1, 2, pairs ? 1 : 0, pairs ? 1 : 0};
  const std::int64_t stripes = schedule.blocks.block_rows(kStripeFamily);
  const std::int64_t columns = schedule.blocks.block_cols(kStripeRightFamily);
  const bool adjoint = sweeps == StripeSweeps::adjoint;
  const auto steps = std::make_shared<const std::vector<StripeStep>>(
      pairs ? stripe_steps(problem, stripes) : std::vector<StripeStep>{});
  // Forward, then backward; L by pairs goes step by step, all else stripe by stripe.
  const std::int64_t of_lower = pairs ? std::ssize(*steps) : stripes;
  const std::int64_t of_forward = adjoint                            ? stripes
                                  : sweeps == StripeSweeps::backward ? 0
                                                                     : of_lower;
  schedule.steps = of_forward + (adjoint ? of_lower : stripes);
  schedule.emit = [=, all = schedule.steps, devices = problem.devices](std::int64_t s,
                                                                       TaskList& tasks) {
    const bool forward = s < of_forward;
    const std::int64_t place = forward ? s : all - 1 - s;
    if (pairs && forward != adjoint)
      add_pair_step((*steps)[static_cast<std::size_t>(place)], adjoint, columns, devices, tasks);
    else
      add_sweep_step(place, stripes, forward, adjoint, columns, devices, tasks);
  };
  return schedule;
}

std::int64_t stripe_rhs_tile(std::int64_t rhs, std::int64_t stripe) {
  constexpr std::int64_t kMost = 64;
  return std::clamp<std::int64_t>(rhs, 1, std::min(stripe, kMost));
}

}  // namespace strata
