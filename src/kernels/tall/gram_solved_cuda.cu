// Gram matrices of X·R⁻¹, which is not stored, in fp64 on the tensor cores of a GPU.
//
// Method: gram_stages_cuda.hpp, but that the warps of a thread block solve for the rows of a stage,
// sixteen at a time and in place (row_factor_cuda.hpp), before they add them up. If there are more
// than two stages they solve one stage ahead, so that they need not meet at each. So V is read
// once.

#include "kernels/tall/gram_stages_cuda.hpp"
#include "kernels/tall/row_factor_cuda.hpp"

namespace strata::gram_gpu {
namespace {

struct SolvedLaunch : Launch<double> {
  const PanelFactor* factor;
  const double* r;
  std::int64_t r_ld;
};

/// Sixteen rows of a stage in shared memory, `group` (grouped_place()), as one thread sees them: a
/// pair of rows, which pair so that neighbours have no bank conflicts.
class SharedStrip {
 public:
  __device__ explicit SharedStrip(double* group) {
    const int q = tile::lane() % 4;
    const int pair = tile::lane() / 8 + tile::lane() / 4 % 2 * 4;
#pragma unroll
    for (int half = 0; half < 2; ++half)
      at_[half] = group + grouped_place<double>(2 * pair, q + 4 * half, kEight);
  }
  __device__ double2& of(int eight, int half) const {
    return *reinterpret_cast<double2*>(at_[half] + eight * kEight * kGroupRows);
  }

 private:
  double* at_[2];
};

/// Solves for the rows of stages; all warps of a thread block, each for some.
template <class S, class Factor>
class Solver {
 public:
  __device__ Solver(const SolvedLaunch& l, const Factor& factor, const double* scales)
      : l_(l), factor_(factor), scales_(scales), bad_(l.factor->bad != 0) {}

  /// Solves for the rows of a stage of `tiles` tiles.
  __device__ void solve(double* stage, int tiles) const {
    constexpr int kGroups = kGramTileRows / kGroupRows;  // of a tile
    for (int g = tile::warp(); g < tiles * kGroups; g += Deal<S>::kWarps) {
      double* group = stage + g * Deal<S>::kColumns * kGroupRows;
      bad_ ? solve_by_rows(group) : solve_group(group);
    }
    // The accelerator is to write here again.
    tile::fence_async_proxy();
  }

 private:
  __device__ void solve_group(double* group) const {
    const SharedStrip strip(group);
    const int q = tile::lane() % 4;
    double value[S::kEights][4];
#pragma unroll
    for (int j = 0; j < S::kEights; ++j) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const double2 both = strip.of(j, half);
        const double d = scales_[kEight * j + q + 4 * half];
        value[j][half] = rounded_product(both.x, d);
        value[j][2 + half] = rounded_product(both.y, d);
      }
    }
    solve_eights<S::kEights>(factor_, value, [&](int j) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
        strip.of(j, half) = make_double2(value[j][half], value[j][2 + half]);
    });
  }
  /// Where an inverse is not good, which is rare: a row a thread. A call, so that each set of warps
  /// does not have its code in its loop.
  __device__ __noinline__ void solve_by_rows(double* group) const {
    const int row = tile::lane();
    if (row < kGroupRows) {
      const auto at = [&](std::int64_t c) -> double& {
        return group[grouped_place<double>(row, static_cast<int>(c), Deal<S>::kColumns)];
      };
      solve_row_by_eights(
          *l_.factor, l_.r, l_.r_ld, l_.x.cols,
          [&](std::int64_t c) { return rounded_product(at(c), scales_[c]); }, at);
    }
    __syncwarp();
  }

  const SolvedLaunch& l_;
  Factor factor_;
  const double* scales_;
  bool bad_;
};

/// What the warps of one set do.
template <class S, int kSet, class Factor>
__device__ void add_solved_set(const Role& role, const Job<double>& job, const Pairs& pairs,
                               const Units& units, const Stages<S, double>& stages,
                               const Solver<S, Factor>& solver, unsigned long long* solved,
                               double* exchange, double* to) {
  using D = Deal<S>;
  const int mine = grouped_place<double>(4 * role.q + 2 * role.lanes, role.g, 0);
  const Cursor ahead = fill_stages(units, stages);
  // What is solved for next: a stage, and which time it is.
  Cursor solving{units.first, 0};
  int solve_stage = 0;
  int solve_phase = 0;
  const auto solve_next = [&] {
    if (solving.unit >= units.count) return;
    solver.solve(const_cast<double*>(stages.wait_full(solve_stage, solve_phase)), units.tiles);
    tile::arrive_as_warp(&solved[solve_stage]);
    solving.advance(units);
    if (++solve_stage == units.stages) {
      solve_stage = 0;
      ++solve_phase;
    }
  };
  if (units.stages > 2) solve_next();
  add_units<S>(
      role, job, pairs, units, stages, ahead, exchange, to,
      [&](int stage, int phase) {
        solve_next();
        tile::wait_phase(&solved[stage], phase % 2);
        return stages.wait_full(stage, phase) + mine;
      },
      [&](Sums<S>& sums, const double* here) {
        for (int t = 0; t < units.tiles; ++t, here += kGramTileRows * D::kLeft)
          sums.template add<kSet, false>(here, here, exchange);  // only the first is read
      });
}

/// The triangle in registers, where those suffice: 16 bytes an operand and thread.
template <class S>
using FactorOf = std::conditional_t<S::kHeld, HeldFactor<S::kEights>, SharedFactor<S::kEights>>;

template <class S>
__global__ void __launch_bounds__(Deal<S>::kThreads, Deal<S>::kResident)
    add_solved(const __grid_constant__ SolvedLaunch l) {
  using D = Deal<S>;
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ typename Stages<S, double>::Barriers barriers;
  __shared__ unsigned long long solved[kStagesMost];
  __shared__ double scales[D::kColumns];
  const unsigned beyond = tile::shared_address(memory) % 1024;
  auto* of_stages = reinterpret_cast<double*>(memory + (beyond == 0 ? 0 : 1024 - beyond));
  double* exchange = of_stages + l.stages * D::kStage;
  auto* factor = reinterpret_cast<double2*>(exchange + D::kExchange);
  if constexpr (!S::kHeld) {
    fetch_factor<S::kEights>(*l.factor, factor);
    tile::commit_copies();
  }
  const Job<double> job{l.x, l.y, 0, 0, l.mapped ? &l.left : nullptr, nullptr};
  const Units units{
      blockIdx.y, gridDim.y, l.units, l.tiles_of_unit, min(D::kTiles, l.tiles_of_unit), l.stages};
  for (int c = static_cast<int>(threadIdx.x); c < D::kColumns; c += D::kThreads)
    scales[c] = l.x.d == nullptr || c >= l.x.cols ? 1.0 : l.x.d[c];
  if (threadIdx.x == 0) {
    Stages<S, double>::init(barriers);
    for (auto& barrier : solved) tile::init_barrier(&barrier, D::kWarps);
  }
  tile::fence_async_proxy();
  tile::wait_copies<0>();
  __syncthreads();
  const Role role{tile::warp() / 2, tile::warp() % 2, tile::lane() / 4, tile::lane() % 4};
  const Stages<S, double> stages(job, units.tiles * kGramTileRows, of_stages, barriers);
  const auto as_read = [&] {
    if constexpr (S::kHeld) {
      return FactorOf<S>(*l.factor);
    } else {
      return FactorOf<S>(factor);
    }
  };
  const Solver<S, FactorOf<S>> solver(l, as_read(), scales);
  each<D::kSets>([&](auto set) {
    if (role.set != set) return;
    add_solved_set<S, set>(role, job, l.pairs, units, stages, solver, solved, exchange, l.to);
  });
}

/// With more registers than sums alone need where that is faster (measured, docs/benchmarks.md).
template <int kBlocks>
struct Solved : Triangle<kBlocks> {
  static constexpr bool kHeld = kBlocks <= 3;
  static constexpr int kRegisters =
      Triangle<kBlocks>::kRegisters + (kBlocks <= 3 ? 96 : (kBlocks == 4 ? 64 : 0));
};

template <int kBlocks>
void launch_solved(cudaStream_t stream, const SolvedLaunch& l) {
  if constexpr (kBlocks < kPanel / kEight) {
    if (l.x.cols > kEight * kBlocks) return launch_solved<kBlocks + 1>(stream, l);
  }
  using S = Solved<kBlocks>;
  // Behind the stages; the barriers of what is solved are as if they were.
  constexpr int kFactor = S::kHeld ? 0 : kFactorPairs<kBlocks>;
  constexpr int kMore = kFactor * static_cast<int>(sizeof(double2)) +
                        kStagesMost * static_cast<int>(sizeof(unsigned long long));
  launch<S, kMore>(stream, add_solved<S>, l, 1);
}

}  // namespace

std::int64_t solved_sums_bytes() { return sizeof(PanelFactor); }

void solved_unit_sums(cudaStream_t stream, const Columns<double>& x, const double* r,
                      std::int64_t r_ld, void* memory, double* units) {
  if (x.rows == 0 || x.cols == 0) return;
  auto* factor = static_cast<PanelFactor*>(memory);
  prepare_panels(stream, r, r_ld, x.cols, kSolveColumns, factor);
  const Columns<double> none{x.data, x.rows, 0, x.ld, nullptr};
  SolvedLaunch l{};
  static_cast<Launch<double>&>(l) = sums_of(x, none, {x.cols, x.cols, true}, kTilesOfUnit, units);
  l.factor = factor;
  l.r = r;
  l.r_ld = r_ld;
  launch_solved<1>(stream, l);
}

}  // namespace strata::gram_gpu
