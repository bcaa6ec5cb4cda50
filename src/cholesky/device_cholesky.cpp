// In-place factorizations in device memory: see strata/device_cholesky.hpp.

#include "strata/device_cholesky.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <mutex>
#include <vector>

#include "base/check.hpp"
#include "kernels/dense/potrf_batched.hpp"
#include "run/device_site.hpp"

namespace strata {
namespace {

template <class T>
PlacedMatrix checked(MatrixView<T> a) {
  require(a.rows == a.cols && a.rows >= 0, ErrorKind::misuse, "cholesky",
          "a {} by {} matrix is not square", a.rows, a.cols);
  return placed(a, "cholesky");
}

FactorInfo info_of_pivot(const PivotStatus& pivot) {
  FactorInfo info;
  info.log_determinant = pivot.log_determinant;
  if (pivot.bad_column < 0) return info;
  info.ok = false;
  info.first_bad_pivot = static_cast<std::int64_t>(pivot.bad_column);
  info.bad_pivot = pivot.bad_pivot;
  info.log_determinant = std::numeric_limits<double>::quiet_NaN();
  return info;
}

CholeskyBlocking checked_blocking(const DeviceCholeskyOptions& options) {
  const CholeskyBlocking blocking{options.variant, options.recnb, options.nb};
  check_blocking(blocking);
  return blocking;
}

template <class T>
FactorInfo factor_one(MatrixView<T> a, const DeviceCholeskyOptions& options) {
  const CholeskyBlocking asked = checked_blocking(options);
  const PlacedMatrix place = checked(a);
  DeviceSite& site = choose_site(options.device, std::span(&place, 1), "cholesky");
  if (a.rows == 0) return {};
  const std::lock_guard lock(site.mutex);
  const KernelFunction kernel =
      kernel_of(*site.backend, potrf, {element_of<T>, Element::fp64}, "cholesky");
  const PotrfValues values{[&](Element precision, std::int64_t n) {
    return potrf_options(with_tuning(asked, site.tuning.blocking_for(precision, n)));
  }};
  auto* status = site.shared_array<PivotStatus>(site.statuses, 1);
  const std::array<BlockView, 2> views{BlockView{a.data, a.rows, a.cols, a.ld, 0, 0},
                                       BlockView{status, kStatusRows, 1, kStatusRows, 0, 0}};
  kernel(*site.queue, {views, potrf.operands}, {.values = &values});
  site.queue->synchronize();
  return info_of_pivot(*status);
}

template <class T>
std::vector<FactorInfo> factor_all(std::span<const MatrixView<T>> matrices,
                                   const DeviceCholeskyOptions& options) {
  (void)checked_blocking(options);
  std::vector<PlacedMatrix> places;
  std::transform(matrices.begin(), matrices.end(), std::back_inserter(places), checked<T>);
  DeviceSite& site = choose_site(options.device, places, "cholesky");
  if (matrices.empty()) return {};
  const KernelFunction kernel =
      kernel_of(*site.backend, potrf_batched, kBatchElements<T>, "cholesky");
  const std::lock_guard lock(site.mutex);
  const auto count = std::ssize(matrices);
  auto* entries = site.shared_array<BatchEntry>(site.entries, count);
  auto* statuses = site.shared_array<PivotStatus>(site.statuses, count);
  std::transform(matrices.begin(), matrices.end(), entries, [](MatrixView<T> a) {
    return BatchEntry{a.data, a.rows, a.ld};
  });
  kernel(*site.queue, {batch_views(entries, statuses, count), potrf_batched.operands}, {});
  site.queue->synchronize();
  std::vector<FactorInfo> infos;
  std::transform(statuses, statuses + count, std::back_inserter(infos), info_of_pivot);
  return infos;
}

}  // namespace

#define STRATA_DEVICE_CHOLESKY(T)                                                       \
  FactorInfo cholesky_in_place(MatrixView<T> a, const DeviceCholeskyOptions& options) { \
    return factor_one(a, options);                                                      \
  }                                                                                     \
  std::vector<FactorInfo> cholesky_batched(std::span<const MatrixView<T>> matrices,     \
                                           const DeviceCholeskyOptions& options) {      \
    return factor_all(matrices, options);                                               \
  }
STRATA_DEVICE_CHOLESKY(double)
STRATA_DEVICE_CHOLESKY(float)
STRATA_DEVICE_CHOLESKY(std::complex<double>)
STRATA_DEVICE_CHOLESKY(std::complex<float>)
#undef STRATA_DEVICE_CHOLESKY

}  // namespace strata
