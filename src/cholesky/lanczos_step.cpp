// A step of Lanczos on the devices.
//
// Method: the sweeps are those of triangular_solve.hpp, whose tasks are taken over with other
// families for their vectors. Products take many columns of Σ at once: tiles of L̃⁻ᵀ·V are gathered
// into taller blocks first. A basis is orthogonalized vector by vector, the newest first, and twice
// ("twice is enough": Giraud, Langou, Rozložník, van den Eshof, "Rounding error analysis of the
// classical Gram-Schmidt orthogonalization process", Numer. Math. 101, 2005, where the classical
// method is; the modified one, as here, is no worse). What the kernels subtract has the sign of
// gemm, so the sweep forward is of −Σ·L̃⁻ᵀ·V.

#include "cholesky/lanczos_step.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>

#include "base/check.hpp"
#include "cholesky/triangular_solve.hpp"
#include "kernels/covariance/covariance_times.hpp"
#include "kernels/krylov/paired.hpp"
#include "schedule/row_owners.hpp"
#include "session/budget.hpp"

namespace strata {
namespace {

SolveProblem sweep_of(const LanczosProblem& problem) {
  SolveProblem sweep;
  sweep.n = problem.n;
  sweep.tile = problem.tile;
  sweep.rhs = problem.vectors;
  sweep.rhs_tile = problem.columns;
  sweep.precision = problem.precision;
  sweep.formats = problem.formats;
  sweep.devices = problem.devices;
  sweep.rates = problem.rates;
  sweep.factor_identity = problem.factor_identity;
  sweep.products_at_once = problem.products_at_once;
  return sweep;
}

/// Emits the tasks of a step, part by part.
class LanczosEmitter {
 public:
  explicit LanczosEmitter(const LanczosProblem& problem)
      : backward_(triangular_solve(sweep_of(problem), Sweep::backward)),
        forward_(triangular_solve(sweep_of(problem), Sweep::forward)),
        rows_(backward_.blocks.block_rows(kSolutionFamily)),
        cols_(backward_.blocks.block_cols(kSolutionFamily)),
        right_rows_((problem.n + problem.column_tile - 1) / problem.column_tile),
        tile_(problem.tile),
        column_tile_(problem.column_tile),
        n_(problem.n),
        owners_(rows_, problem.devices, problem.rates),
        devices_(problem.devices),
        calls_max_(std::max<std::int64_t>(problem.products_at_once, 1)),
        newest_(std::ssize(problem.basis) - 1),
        sums_{newest_} {}

  [[nodiscard]] std::int64_t steps() const {
    return 1 + backward_.steps + right_rows_ + forward_.steps + sums_.count();
  }
  [[nodiscard]] std::int64_t block_rows() const noexcept { return rows_; }
  [[nodiscard]] const Schedule& sweep() const noexcept { return forward_; }

  void emit(std::int64_t step, TaskList& tasks) const {
    if (step == 0) return start(tasks);
    if (--step < backward_.steps) return append(backward_, step, lanczos::kWhitened, tasks);
    if ((step -= backward_.steps) < right_rows_) return multiply(step, tasks);
    if ((step -= right_rows_) < forward_.steps)
      return append(forward_, step, lanczos::kWork, tasks);
    orthogonalize(step - forward_.steps, tasks);
  }

 private:
  [[nodiscard]] static BlockId y(std::int64_t m, std::int64_t c) { return {lanczos::kWork, m, c}; }
  [[nodiscard]] static BlockId v(std::int64_t b, std::int64_t m, std::int64_t c) {
    return {lanczos::kBasis + static_cast<int>(b), m, c};
  }
  [[nodiscard]] BlockId newest(std::int64_t m, std::int64_t c) const { return v(newest_, m, c); }
  [[nodiscard]] BlockId part(std::int64_t sum, std::int64_t m, std::int64_t c) const {
    return {lanczos::kParts, sum * rows_ + m, c};
  }

  /// Tasks with a call for each block of the vectors; operands_of(m, c) are those of a call.
  template <class F>
  void for_all_blocks(const Operation& operation, TaskList& tasks, F&& operands_of,
                      std::uint32_t variant = 0) const {
    std::vector<TaskOperand> calls;
    const auto flush = [&](int device) {
      if (!calls.empty()) tasks.add_calls(operation, device, calls, variant);
      calls.clear();
    };
    for (int device = 0; device < devices_; ++device) {
      for (std::int64_t c = 0; c < cols_; ++c) {
        for (std::int64_t m = 0; m < rows_; ++m) {
          if (owners_[m] != device) continue;
          for (const TaskOperand& operand : operands_of(m, c)) calls.push_back(operand);
          if (std::ssize(calls) >= calls_max_ * operation.operands) flush(device);
        }
        flush(device);  // all calls of a task have as many columns
      }
    }
  }

  void start(TaskList& tasks) const {
    using Operands = std::array<TaskOperand, 3>;
    if (newest_ > 0)
      for_all_blocks(paired_quotient, tasks, [&](std::int64_t m, std::int64_t c) -> Operands {
        return {newest(m, c), y(m, c), BlockId(lanczos::kNorms, 0, c)};
      });
    for_all_blocks(paired_start, tasks, [&](std::int64_t m, std::int64_t c) -> Operands {
      return {BlockId(lanczos::kWhitened, m, c), y(m, c), newest(m, c)};
    });
  }

  /// The tasks of a step of a sweep, whose solution is another family here. That it is written
  /// last there says nothing here.
  static void append(const Schedule& sweep, std::int64_t step, int solution, TaskList& tasks) {
    TaskList some;
    sweep.emit(step, some);
    for (const Task& task : std::as_const(some).tasks()) {
      std::vector<TaskOperand> operands;
      for (const TaskOperand& operand : std::as_const(some).operands(task)) {
        const bool of_solution = operand.id.family() == kSolutionFamily;
        operands.emplace_back(of_solution ? BlockId(solution, operand.id.row(), operand.id.col())
                                          : operand.id);
      }
      tasks.add_calls(*task.operation, task.device, operands, task.variant);
    }
  }

  /// Y ← Y − Σ·L̃⁻ᵀ·V_k for a tile of columns of Σ.
  void multiply(std::int64_t k, TaskList& tasks) const {
    const std::int64_t first = k * column_tile_ / tile_;
    const std::int64_t end = (std::min((k + 1) * column_tile_, n_) + tile_ - 1) / tile_;
    for (std::int64_t c = 0; c < cols_; ++c) {
      const BlockId right(lanczos::kRight, k, c);
      tasks.add(paired_gather, owners_[first], {right, BlockId(lanczos::kWhitened, first, c)});
      std::vector<TaskOperand> more;
      for (std::int64_t m = first + 1; m < end; ++m)
        more.emplace_back(BlockId(lanczos::kWhitened, m, c));
      if (!more.empty()) tasks.add_more({}, more);
      for (std::int64_t m = 0; m < rows_; ++m) {
        tasks.add(covariance_times, owners_[m],
                  {y(m, c), BlockId(lanczos::kRowPoints, m, 0),
                   BlockId(lanczos::kColumnPoints, k, 0), right});
      }
    }
  }

  /// For sum number `sum`, with what is done before it and with it.
  void orthogonalize(std::int64_t sum, TaskList& tasks) const {
    if (sum == 0)
      for_all_blocks(paired_excess, tasks,
                     [&](std::int64_t m, std::int64_t c) -> std::array<TaskOperand, 2> {
                       return {y(m, c), newest(m, c)};
                     });
    if (sum < sums_.neighbours())
      return add_up(sum, sum == 0 ? kPairedWithNext : kPairedWithLast, tasks,
                    [&](std::int64_t m, std::int64_t c) { return newest(m, c); });
    if (sum == sums_.square())
      return add_up(sum, 0, tasks, [](std::int64_t m, std::int64_t c) { return y(m, c); });
    const std::int64_t b = newest_ - (sum - sums_.neighbours()) % (newest_ + 1);
    add_up(sum, 0, tasks, [&](std::int64_t m, std::int64_t c) { return v(b, m, c); });
    for_all_blocks(paired_subtract, tasks,
                   [&](std::int64_t m, std::int64_t c) -> std::array<TaskOperand, 3> {
                     return {y(m, c), v(b, m, c), BlockId(lanczos::kSums, sum, c)};
                   });
  }

  /// The dot products of the columns of Y with those of other(m, c).
  template <class F>
  void add_up(std::int64_t sum, std::uint32_t variant, TaskList& tasks, F&& other) const {
    for_all_blocks(
        paired_dots, tasks,
        [&](std::int64_t m, std::int64_t c) -> std::array<TaskOperand, 3> {
          return {part(sum, m, c), other(m, c), y(m, c)};
        },
        variant);
    for (std::int64_t c = 0; c < cols_; ++c) {
      const auto last = [&](std::int64_t m) {
        return TaskOperand(part(sum, m, c), Hint::last_use);
      };
      tasks.add(paired_sum, 0, {{BlockId(lanczos::kSums, sum, c), Hint::last_write}, last(0)});
      std::vector<TaskOperand> more;
      for (std::int64_t m = 1; m < rows_; ++m) more.push_back(last(m));
      if (!more.empty()) tasks.add_more({}, more);
    }
  }

  Schedule backward_;
  Schedule forward_;
  std::int64_t rows_;
  std::int64_t cols_;
  std::int64_t right_rows_;
  std::int64_t tile_;
  std::int64_t column_tile_;
  std::int64_t n_;
  RowOwners owners_;
  int devices_;
  std::int64_t calls_max_;
  std::int64_t newest_;
  LanczosSums sums_;
};

/// Families in the order of `lanczos`, with as many of their blocks as one task touches.
void add_families(const LanczosProblem& problem, const LanczosEmitter& emitter,
                  Schedule& schedule) {
  const std::int64_t rows = emitter.block_rows();
  const std::int64_t sums = LanczosSums{std::ssize(problem.basis) - 1}.count();
  const std::int64_t at_once = std::max<std::int64_t>(problem.products_at_once, 1);
  const std::int64_t gathered = std::min(problem.column_tile / problem.tile + 2, rows);
  const int of_sweep = emitter.sweep().operands[kSolutionFamily];
  const auto add = [&](BlockFamily family, std::int64_t operands) {
    schedule.blocks.add(std::move(family));
    schedule.operands.push_back(static_cast<int>(operands));
  };
  const auto vectors = [&](std::string name, std::int64_t height, std::int64_t tile) {
    return BlockFamily{.name = std::move(name),
                       .rows = height,
                       .cols = problem.vectors,
                       .tile_rows = tile,
                       .tile_cols = problem.columns};
  };
  const auto points = [&](const char* name, std::int64_t tile, std::uint64_t identity) {
    return BlockFamily{.name = name,
                       .rows = problem.n,
                       .cols = problem.point_dimensions,
                       .tile_rows = tile,
                       .tile_cols = problem.point_dimensions,
                       .identity = identity};
  };
  const auto temporary = [](BlockFamily family) {
    family.origin = Origin::temporary;
    return family;
  };
  const auto staying = [](BlockFamily family, std::uint64_t identity) {
    family.identity = identity;
    family.stays = true;
    return family;
  };
  schedule.blocks.add(emitter.sweep().blocks.family(kFactorFamily));
  schedule.operands.push_back(emitter.sweep().operands[kFactorFamily]);
  add(points("P", problem.tile, problem.points_identity), 1);
  add(points("Q", problem.column_tile, problem.column_points_identity), 1);
  add(staying(vectors("Y", problem.n, problem.tile), problem.work_identity),
      std::max<std::int64_t>(of_sweep, at_once));
  add(temporary(vectors("W", problem.n, problem.tile)),
      std::max<std::int64_t>({of_sweep, gathered, at_once}));
  add(temporary(vectors("G", problem.n, problem.column_tile)), 1);
  add(temporary(vectors("D", 2 * rows * sums, 2)), std::max(rows, at_once));
  BlockFamily of_sums = vectors("S", sums, 1);
  of_sums.origin = Origin::generated;
  add(std::move(of_sums), 1);
  add(vectors("N", 1, 1), 1);
  for (std::size_t b = 0; b < problem.basis.size(); ++b)
    add(staying(vectors(fmt::format("V{}", b), problem.n, problem.tile), problem.basis[b]),
        at_once);
}

/// Whether blocks of the tall kind would be a little larger than tiles of L: sizes within an eighth
/// share slots, which are cut for the larger one, so that tiles that lie in slots of their own size
/// would have to leave.
bool crowds_factor(const LanczosProblem& problem) {
  const std::int64_t tall = problem.column_tile * problem.columns * std::int64_t{sizeof(double)};
  const std::int64_t elements = problem.tile * problem.tile;
  const auto crowds = [&](Element element) {
    const std::int64_t bytes = elements * bytes_of(element);
    return tall > bytes && tall <= bytes + bytes / 8;
  };
  if (problem.formats.map == nullptr) return crowds(problem.precision);
  for (int p = 0; p < static_cast<int>(TilePrecision::none); ++p)
    if (crowds(problem.formats.element(static_cast<TilePrecision>(p)))) return true;
  return false;
}

}  // namespace

Schedule lanczos_step(const LanczosProblem& problem) {
  require(problem.column_tile > 0 && problem.column_tile % kCovarianceRun == 0, ErrorKind::misuse,
          "cholesky", "tiles of {} columns of a covariance are not multiples of {}",
          problem.column_tile, kCovarianceRun);
  require(!problem.basis.empty() && problem.n > 0 && problem.vectors > 0, ErrorKind::misuse,
          "cholesky", "a step of Lanczos with {} blocks of {} by {}", problem.basis.size(),
          problem.n, problem.vectors);
  const auto emitter = std::make_shared<const LanczosEmitter>(problem);
  Schedule schedule;
  schedule.devices = problem.devices;
  add_families(problem, *emitter, schedule);
  schedule.steps = emitter->steps();
  schedule.emit = [emitter](std::int64_t step, TaskList& tasks) { emitter->emit(step, tasks); };
  return schedule;
}

LanczosProblem choose_lanczos_blocks(LanczosProblem problem, int steps_max,
                                     const Machine& machine) {
  constexpr std::int64_t kColumnTileMax = 16384;
  constexpr std::int64_t kColumnsMost = 36;  // which covariance_times multiplies Σ with at once
  constexpr std::int64_t kColumnsLeast = 8;
  problem.column_tile = kColumnTileMax;
  while (problem.column_tile / 2 >= problem.n && problem.column_tile > kCovarianceRun)
    problem.column_tile /= 2;
  problem.columns = std::min(problem.vectors, kColumnsMost);
  while (crowds_factor(problem) && problem.column_tile > kCovarianceRun) problem.column_tile /= 2;
  LanczosProblem widest = problem;
  widest.basis.assign(static_cast<std::size_t>(steps_max), problem.work_identity);
  const auto needed = [&](std::int64_t at_once) {
    widest.column_tile = problem.column_tile;
    widest.columns = problem.columns;
    widest.products_at_once = at_once;
    return smallest_budget_bytes(lanczos_step(widest));
  };
  const std::int64_t budget = smallest_memory(machine);
  while (needed(0) > budget) {
    if (problem.column_tile > kCovarianceRun)
      problem.column_tile /= 2;
    else if (problem.columns > kColumnsLeast)
      problem.columns = (problem.columns + 1) / 2;
    else
      break;  // Plan says what it needs
  }
  if (needed(problem.products_at_once) > budget) problem.products_at_once = 0;
  return problem;
}

}  // namespace strata
