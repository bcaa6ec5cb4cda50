// LU in device memory: see strata/device_lu.hpp.
//
// Method: the whole matrix is one panel of getrf, and a solve one call each of lu_update and
// lu_back, so that kernels and bits are those of a planned factorization of one panel.

#include "strata/device_lu.hpp"

#include <algorithm>
#include <array>
#include <mutex>
#include <type_traits>
#include <vector>

#include "base/check.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/getrf_batched.hpp"
#include "kernels/dense/lu_back.hpp"
#include "kernels/dense/lu_update.hpp"
#include "run/device_site.hpp"

namespace strata {
namespace {

constexpr const char* kInPlace = "lu";

template <class T>
BlockView block_of(MatrixView<T> a) {
  using Value = std::remove_const_t<T>;
  return {const_cast<Value*>(a.data), a.rows, a.cols, std::max<std::int64_t>(a.ld, 1), 0, 0};
}

/// The places of A and of its pivots.
template <class T>
std::vector<PlacedMatrix> checked(MatrixView<T> a, MatrixView<const std::int64_t> pivots) {
  require(a.rows == a.cols && a.rows >= 0, ErrorKind::misuse, kInPlace,
          "a {} by {} matrix is not square", a.rows, a.cols);
  require(pivots.rows == a.rows && pivots.cols == 1, ErrorKind::misuse, kInPlace,
          "{} by {} pivots of a matrix of order {}", pivots.rows, pivots.cols, a.rows);
  return {placed(a, kInPlace), placed(pivots, kInPlace)};
}

DeviceLuInfo info_of(const PanelStatus& status) {
  DeviceLuInfo info;
  info.zero_pivot = static_cast<std::int64_t>(status.zero_pivot);
  info.not_finite = static_cast<std::int64_t>(status.not_finite);
  info.largest = status.largest;
  info.smallest_pivot = status.smallest_pivot;
  info.ok = info.zero_pivot < 0 && info.not_finite < 0;
  return info;
}

template <class T>
DeviceLuInfo factor(MatrixView<T> a, MatrixView<std::int64_t> pivots,
                    const DeviceLuOptions& options) {
  DeviceSite& site = choose_site(options.device, checked(a, pivots), kInPlace);
  if (a.rows == 0) return {};
  const KernelFunction kernel = kernel_of(*site.backend, getrf, kGetrfElements<T>, kInPlace);
  const std::lock_guard lock(site.mutex);
  auto* status = site.shared_array<PanelStatus>(site.statuses, 1);
  const std::array<BlockView, 3> views{
      block_of(a), block_of(pivots),
      BlockView{status, kPanelStatusRows, 1, kPanelStatusRows, 0, 0}};
  kernel(*site.queue, {views, getrf.operands}, {});
  site.queue->synchronize();
  return info_of(*status);
}

template <class T>
std::vector<DeviceLuInfo> factor_all(std::span<const MatrixView<T>> matrices,
                                     std::span<const MatrixView<std::int64_t>> pivots,
                                     const DeviceLuOptions& options) {
  require(matrices.size() == pivots.size(), ErrorKind::misuse, kInPlace,
          "{} vectors of pivots for {} matrices", pivots.size(), matrices.size());
  std::vector<PlacedMatrix> places;
  for (std::size_t m = 0; m < matrices.size(); ++m) {
    const std::vector<PlacedMatrix> both =
        checked(matrices[m], MatrixView<const std::int64_t>(pivots[m]));
    places.insert(places.end(), both.begin(), both.end());
  }
  DeviceSite& site = choose_site(options.device, places, kInPlace);
  if (matrices.empty()) return {};
  const KernelFunction kernel =
      kernel_of(*site.backend, getrf_batched, kGetrfElements<T>, kInPlace);
  const std::lock_guard lock(site.mutex);
  const auto count = std::ssize(matrices);
  auto* entries = site.shared_array<LuBatchEntry>(site.entries, count);
  auto* statuses = site.shared_array<PanelStatus>(site.statuses, count);
  std::transform(matrices.begin(), matrices.end(), pivots.begin(), entries,
                 [](MatrixView<T> a, MatrixView<std::int64_t> p) {
                   return LuBatchEntry{a.data, a.rows, std::max<std::int64_t>(a.ld, 1), p.data};
                 });
  kernel(*site.queue, {batch_views(entries, statuses, count), getrf_batched.operands}, {});
  site.queue->synchronize();
  std::vector<DeviceLuInfo> infos;
  for (std::int64_t m = 0; m < count; ++m)
    infos.push_back(matrices[static_cast<std::size_t>(m)].rows == 0 ? DeviceLuInfo{}
                                                                    : info_of(statuses[m]));
  return infos;
}

std::uint32_t variant_of(DeviceLuSystem system) {
  switch (system) {
    case DeviceLuSystem::plain: return 0;
    case DeviceLuSystem::transposed: return kTransposedFactor;
    case DeviceLuSystem::adjoint: return kAdjointFactor;
  }
  fail(ErrorKind::misuse, kInPlace, "{} is no system", static_cast<int>(system));
}

template <class T>
void solve(MatrixView<const T> lu, MatrixView<const std::int64_t> pivots, MatrixView<T> b,
           DeviceLuSystem system, const DeviceLuOptions& options) {
  const std::uint32_t variant = variant_of(system);
  std::vector<PlacedMatrix> places = checked(lu, pivots);
  require(b.rows == lu.rows && b.cols >= 0, ErrorKind::misuse, kInPlace,
          "right-hand sides of {} by {} for a matrix of order {}", b.rows, b.cols, lu.rows);
  places.push_back(placed(b, kInPlace));
  DeviceSite& site = choose_site(options.device, places, kInPlace);
  if (b.rows == 0 || b.cols == 0) return;
  const KernelFunction update = kernel_of(*site.backend, lu_update, kLuUpdateElements<T>, kInPlace);
  const KernelFunction back =
      kernel_of(*site.backend, lu_back, {element_of<T>, element_of<T>}, kInPlace);
  const std::lock_guard lock(site.mutex);
  const std::array<BlockView, 3> forward{block_of(b), block_of(lu), block_of(pivots)};
  const std::array<BlockView, 2> backward{forward[0], forward[1]};
  const auto by_l = [&] {
    update(*site.queue, {forward, lu_update.operands}, {.variant = variant});
  };
  const auto by_u = [&] { back(*site.queue, {backward, lu_back.operands}, {.variant = variant}); };
  if (variant == 0) by_l();
  by_u();
  if (variant != 0) by_l();
  site.queue->synchronize();
}

}  // namespace

#define STRATA_DEVICE_LU(T)                                                                     \
  DeviceLuInfo lu_in_place(MatrixView<T> a, MatrixView<std::int64_t> pivots,                    \
                           const DeviceLuOptions& options) {                                    \
    return factor<T>(a, pivots, options);                                                       \
  }                                                                                             \
  std::vector<DeviceLuInfo> lu_batched(std::span<const MatrixView<T>> matrices,                 \
                                       std::span<const MatrixView<std::int64_t>> pivots,        \
                                       const DeviceLuOptions& options) {                        \
    return factor_all<T>(matrices, pivots, options);                                            \
  }                                                                                             \
  void solve_in_place(MatrixView<const T> lu, MatrixView<const std::int64_t> pivots,            \
                      MatrixView<T> b, DeviceLuSystem system, const DeviceLuOptions& options) { \
    solve<T>(lu, pivots, b, system, options);                                                   \
  }
STRATA_DEVICE_LU(double)
STRATA_DEVICE_LU(float)
STRATA_DEVICE_LU(std::complex<double>)
STRATA_DEVICE_LU(std::complex<float>)
#undef STRATA_DEVICE_LU

}  // namespace strata
