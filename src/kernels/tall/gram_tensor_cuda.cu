// Sums of units in fp64, of doubles or floats, on the tensor cores of a GPU.
//
// Method: gram_stages_cuda.hpp. Beyond 64 columns, panels of 64 are multiplied with each other;
// thread blocks of one unit run side by side, so most of what they read more than once comes from
// the second cache.

#include "kernels/tall/gram_stages_cuda.hpp"

namespace strata::gram_gpu {
namespace {

template <class S, int kSet, bool kScaled, class T>
__device__ void add_set(const Role& role, const Job<T>& job, const Pairs& pairs, const Units& units,
                        const Stages<S, T>& stages, const double* scales, double* exchange,
                        double* to) {
  using D = Deal<S>;
  const int mine = grouped_place<T>(4 * role.q + 2 * role.lanes, role.g, 0);
  add_units<S>(
      role, job, pairs, units, stages, fill_stages(units, stages), exchange, to,
      [&](int stage, int phase) { return stages.wait_full(stage, phase) + mine; },
      [&](Sums<S>& sums, const T* here) {
        for (int t = 0; t < units.tiles; ++t)
          sums.template add<kSet, kScaled>(
              here + t * kGramTileRows * D::kLeft,
              here + (units.tiles * D::kLeft + t * D::kRight) * kGramTileRows, scales + role.g);
      });
}

template <class S, class T>
__device__ void add_up_units(const Job<T>& job, const Pairs& pairs, const Units& units, T* memory,
                             double* to) {
  using D = Deal<S>;
  __shared__ typename Stages<S, T>::Barriers barriers;
  __shared__ double scales[D::kColumns];
  auto* exchange = reinterpret_cast<double*>(memory + units.stages * D::kStage);
  bool differs = false;
  for (int c = static_cast<int>(threadIdx.x); c < D::kColumns; c += D::kThreads) {
    const Columns<T>& from = c < D::kLeft ? job.x : job.y;
    const int of_it = c < D::kLeft ? c : c - D::kLeft;
    scales[c] = from.d == nullptr || of_it >= from.cols ? 1.0 : from.d[of_it];
    differs = differs || scales[c] != 1.0;
  }
  if (threadIdx.x == 0) Stages<S, T>::init(barriers);
  tile::fence_async_proxy();
  const bool scaled = __syncthreads_or(differs ? 1 : 0) != 0;
  const Role role{tile::warp() / 2, tile::warp() % 2, tile::lane() / 4, tile::lane() % 4};
  const Stages<S, T> stages(job, units.tiles * kGramTileRows, memory, barriers);
  each<D::kSets>([&](auto set) {
    if (role.set != set) return;
    if (scaled) {
      add_set<S, set, true>(role, job, pairs, units, stages, scales, exchange, to);
    } else {
      add_set<S, set, false>(role, job, pairs, units, stages, scales, exchange, to);
    }
  });
}

template <class T>
__device__ Columns<T> panel_of(const Columns<T>& x, std::int64_t first, std::int64_t width) {
  Columns<T> panel = x;
  panel.data += first * x.ld;
  panel.cols = min(width, x.cols - first);
  if (x.d != nullptr) panel.d += first;
  return panel;
}

template <class S, class T>
__device__ void add_up_block(const Launch<T>& l, const Columns<T>& x, const Columns<T>& y,
                             std::int64_t i0, std::int64_t j0) {
  extern __shared__ __align__(1024) unsigned char memory[];
  const Job<T> job{x, y, i0, j0, l.mapped ? &l.left : nullptr, l.mapped ? &l.right : nullptr};
  const unsigned beyond = tile::shared_address(memory) % 1024;
  const Units units{
      blockIdx.y, gridDim.y, l.units, l.tiles_of_unit, min(Deal<S>::kTiles, l.tiles_of_unit),
      l.stages};
  auto* stages = reinterpret_cast<T*>(memory + (beyond == 0 ? 0 : 1024 - beyond));
  add_up_units<S, T>(job, l.pairs, units, stages, l.to);
}

/// All of x with itself.
template <class S, class T>
__global__ void __launch_bounds__(Deal<S>::kThreads, Deal<S>::kResident)
    add_triangle(const __grid_constant__ Launch<T> l) {
  add_up_block<S>(l, l.x, l.y, 0, 0);
}

using WholePanel = Triangle<kPanel / kEight>;
using HalfPanels = Rectangle<kPanel / (2 * kEight), kPanel / (2 * kEight), WholePanel::kSets>;
static_assert(Deal<WholePanel>::kThreads == Deal<HalfPanels>::kThreads);

/// Panels of x with themselves, then with halves of those behind them.
template <class T>
__global__ void __launch_bounds__(Deal<WholePanel>::kThreads, 1)
    add_panels(const __grid_constant__ Launch<T> l) {
  const int panels = static_cast<int>((l.x.cols + kPanel - 1) / kPanel);
  int which = static_cast<int>(blockIdx.x);
  if (which < panels) {
    const std::int64_t first = std::int64_t{which} * kPanel;
    return add_up_block<WholePanel>(l, panel_of(l.x, first, kPanel), l.y, first, first);
  }
  which -= panels;
  int j = 1;
  while (which >= 2 * j) which -= 2 * j++;
  const std::int64_t first = std::int64_t{which / 2} * kPanel;
  const std::int64_t second = std::int64_t{j} * kPanel + which % 2 * (kPanel / 2);
  if (second >= l.x.cols) return;
  add_up_block<HalfPanels>(l, panel_of(l.x, first, kPanel), panel_of(l.x, second, kPanel / 2),
                           first, second);
}

/// Columns of x with those of y.
template <class S, class T>
__global__ void __launch_bounds__(Deal<S>::kThreads, Deal<S>::kResident)
    add_rectangles(const __grid_constant__ Launch<T> l) {
  using D = Deal<S>;
  const auto across = static_cast<unsigned>((l.x.cols + D::kLeft - 1) / D::kLeft);
  const std::int64_t i0 = std::int64_t{blockIdx.x % across} * D::kLeft;
  const std::int64_t j0 = std::int64_t{blockIdx.x / across} * D::kRight;
  add_up_block<S>(l, panel_of(l.x, i0, D::kLeft), panel_of(l.y, j0, D::kRight), i0, j0);
}

template <int kBlocks, class T>
void launch_triangle(cudaStream_t stream, const Launch<T>& l) {
  if constexpr (kBlocks < kPanel / kEight) {
    if (l.x.cols > kEight * kBlocks) return launch_triangle<kBlocks + 1>(stream, l);
  }
  launch<Triangle<kBlocks>>(stream, add_triangle<Triangle<kBlocks>, T>, l, 1);
}

template <int kLeft, int kRight, class T>
void launch_rectangles(cudaStream_t stream, const Launch<T>& l) {
  if constexpr (kLeft < 4) {
    if (l.x.cols > 2 * kEight * kLeft) return launch_rectangles<2 * kLeft, kRight>(stream, l);
  }
  if constexpr (kRight < 4) {
    if (l.y.cols > kEight * kRight) return launch_rectangles<kLeft, 2 * kRight>(stream, l);
  }
  using S = Rectangle<kLeft, kRight>;
  const auto pieces = [](std::int64_t columns, int of) { return (columns + of - 1) / of; };
  launch<S>(stream, add_rectangles<S, T>, l,
            pieces(l.x.cols, 2 * kEight * kLeft) * pieces(l.y.cols, kEight * kRight));
}

}  // namespace

template <class T>
void tensor_unit_sums(cudaStream_t stream, const Columns<T>& x, int tiles_of_unit, double* units) {
  if (x.rows == 0 || x.cols == 0) return;
  const Columns<T> none{x.data, x.rows, 0, x.ld, nullptr};
  const Launch<T> l = sums_of(x, none, {x.cols, x.cols, true}, tiles_of_unit, units);
  if (x.cols <= kPanel) return launch_triangle<1>(stream, l);
  const std::int64_t panels = (x.cols + kPanel - 1) / kPanel;
  launch<HalfPanels>(stream, add_panels<T>, l, panels * panels);
}

template <class T>
void tensor_unit_sums(cudaStream_t stream, const Columns<T>& x, const Columns<T>& y,
                      int tiles_of_unit, double* units) {
  if (x.rows == 0 || x.cols == 0 || y.cols == 0) return;
  launch_rectangles<1, 1>(stream, sums_of(x, y, {x.cols, y.cols, false}, tiles_of_unit, units));
}

template void tensor_unit_sums(cudaStream_t, const Columns<double>&, int, double*);
template void tensor_unit_sums(cudaStream_t, const Columns<float>&, int, double*);
template void tensor_unit_sums(cudaStream_t, const Columns<double>&, const Columns<double>&, int,
                               double*);
template void tensor_unit_sums(cudaStream_t, const Columns<float>&, const Columns<float>&, int,
                               double*);

}  // namespace strata::gram_gpu
