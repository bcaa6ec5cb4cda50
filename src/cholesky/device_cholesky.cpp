// In-place factorizations in device memory: see strata/device_cholesky.hpp.
//
// Method: a device that was used once is kept, with its queue, until the process ends, so that a
// call costs what its kernels cost: handles, workspaces and graphs are made on the first.

#include "strata/device_cholesky.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>

#include "base/check.hpp"
#include "kernels/potrf_batched.hpp"
#include "run/device_set.hpp"
#include "run/potrf_tuning.hpp"

namespace strata {
namespace {

/// A device of a backend with the queue that serves these calls.
struct Site {
  const Backend* backend = nullptr;
  std::mutex mutex;
  std::unique_ptr<Device> device;
  PotrfTuning tuning;
  Buffer statuses;
  Buffer entries;
  std::unique_ptr<Queue> queue;
};

/// What is asked of a driver once. Never destroyed: it may be gone before the destructors of static
/// objects run.
struct Sites {
  std::mutex mutex;
  std::map<const Backend*, int> counts;  // of devices
  std::map<std::pair<const Backend*, int>, Site> sites;
};

Sites& all_sites() {
  static Sites& sites = *std::make_unique<Sites>().release();
  return sites;
}

int count_of(const Backend& backend) {
  Sites& all = all_sites();
  const std::lock_guard lock(all.mutex);
  const auto [known, fresh] = all.counts.try_emplace(&backend, 0);
  if (fresh) known->second = static_cast<int>(backend.devices().size());
  return known->second;
}

Site& site_of(const Backend& backend, int index) {
  Sites& all = all_sites();
  const std::lock_guard lock(all.mutex);
  Site& site = all.sites[{&backend, index}];
  if (site.queue != nullptr) return site;
  site.backend = &backend;
  site.device = backend.make_device(index, 0);  // what is factored is the caller's
  site.tuning = potrf_tuning_of(backend, index);
  site.queue = site.device->make_queue(QueuePriority::normal);
  return site;
}

/// `count` values that the host and the device see; kept from call to call, as pinning is slow.
template <class V>
V* make_array(Device& device, Buffer& memory, std::int64_t count) {
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(V));
  if (memory.bytes() < bytes) memory = device.allocate_host(bytes);
  V* first = reinterpret_cast<V*>(memory.data());
  std::uninitialized_fill_n(first, count, V{});
  return first;
}

template <class T>
void check_shape(MatrixView<T> a) {
  require(a.rows == a.cols && a.rows >= 0, ErrorKind::misuse, "cholesky",
          "a {} by {} matrix is not square", a.rows, a.cols);
  require(a.ld >= std::max<std::int64_t>(a.rows, 1), ErrorKind::misuse, "cholesky",
          "a leading dimension of {} is too small for {} rows", a.ld, a.rows);
  require(a.data != nullptr || a.rows == 0, ErrorKind::misuse, "cholesky",
          "the matrix of order {} has no data", a.rows);
  require(reinterpret_cast<std::uintptr_t>(a.data) % sizeof(T) == 0, ErrorKind::misuse, "cholesky",
          "the matrix at {} is not aligned to its elements of {} bytes",
          static_cast<const void*>(a.data), sizeof(T));
  constexpr auto kBytesMax = std::numeric_limits<std::int64_t>::max() / 2;
  require(a.rows == 0 || a.ld <= kBytesMax / static_cast<std::int64_t>(sizeof(T)) / a.rows,
          ErrorKind::misuse, "cholesky", "no memory holds {} columns of {} elements", a.rows, a.ld);
}

/// From the first element of a matrix to its last.
template <class T>
std::int64_t bytes_spanned(MatrixView<T> a) {
  return ((a.cols - 1) * a.ld + a.rows) * static_cast<std::int64_t>(sizeof(T));
}

template <class T>
bool lies_on(const Backend& backend, int index, MatrixView<T> a) {
  return a.rows == 0 || backend.reaches(index, a.data, bytes_spanned(a));
}

/// The backend that a text names, and the indices of which one has to hold the matrices.
std::pair<const Backend*, std::vector<int>> candidates_of(const std::string& text) {
  if (text != "auto" && !text.empty()) {
    DeviceChoice choice = choose_devices(text);
    const Backend& backend = backend_named(choice.backend, text);
    require(choice.indices.size() == 1, ErrorKind::misuse, "devices",
            "'{}' names {} devices: a matrix lies on one", text, choice.indices.size());
    const int index = choice.indices[0];
    require(backend.kind() == DeviceKind::cpu || index < count_of(backend), ErrorKind::device,
            "devices", "there is no device {}:{}: this machine has {}", choice.backend, index,
            count_of(backend));
    return {&backend, std::move(choice.indices)};
  }
  const Backend* cuda = cuda_backend();
  const Backend& backend = cuda != nullptr ? *cuda : host_backend();
  std::vector<int> indices(static_cast<std::size_t>(count_of(backend)));
  std::iota(indices.begin(), indices.end(), 0);
  return {&backend, std::move(indices)};
}

/// The device of a call, whose matrices have passed check_shape().
template <class T>
Site& choose_site(const std::string& text, std::span<const MatrixView<T>> matrices) {
  const auto [backend, indices] = candidates_of(text);
  const auto first =
      std::find_if(matrices.begin(), matrices.end(), [](MatrixView<T> a) { return a.rows > 0; });
  int index = indices[0];
  for (const int i : indices) {
    if (first == matrices.end() || !lies_on(*backend, i, *first)) continue;
    index = i;
    break;
  }
  for (const MatrixView<T> a : matrices) {
    require(lies_on(*backend, index, a), ErrorKind::misuse, "cholesky",
            "the matrix of order {} at {} is not in memory of {}:{}: a host pointer, or another "
            "device's",
            a.rows, static_cast<const void*>(a.data), backend->name(), index);
  }
  return site_of(*backend, index);
}

FactorInfo info_of(const PivotStatus& pivot) {
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

KernelFunction kernel_of(const Backend& backend, const Operation& operation,
                         const Elements& elements) {
  const KernelFunction kernel = backend.kernels().find(operation.name, elements);
  require(kernel != nullptr, ErrorKind::device, "cholesky", "{} has no {} in {}", backend.name(),
          operation.name, to_string(elements[0]));
  return kernel;
}

template <class T>
FactorInfo factor_one(MatrixView<T> a, const DeviceCholeskyOptions& options) {
  const CholeskyBlocking asked = checked_blocking(options);
  check_shape(a);
  Site& site = choose_site<T>(options.device, std::span(&a, 1));
  if (a.rows == 0) return {};
  const std::lock_guard lock(site.mutex);
  const KernelFunction kernel = kernel_of(*site.backend, potrf, {element_of<T>, Element::fp64});
  const PotrfValues values{[&](Element precision, std::int64_t n) {
    return potrf_options(with_tuning(asked, site.tuning.blocking_for(precision, n)));
  }};
  auto* status = make_array<PivotStatus>(*site.device, site.statuses, 1);
  const std::array<BlockView, 2> views{BlockView{a.data, a.rows, a.cols, a.ld, 0, 0},
                                       BlockView{status, kStatusRows, 1, kStatusRows, 0, 0}};
  kernel(*site.queue, {views, potrf.operands}, {.values = &values});
  site.queue->synchronize();
  return info_of(*status);
}

template <class T>
std::vector<FactorInfo> factor_all(std::span<const MatrixView<T>> matrices,
                                   const DeviceCholeskyOptions& options) {
  (void)checked_blocking(options);
  for (const MatrixView<T> a : matrices) check_shape(a);
  Site& site = choose_site<T>(options.device, matrices);
  if (matrices.empty()) return {};
  const KernelFunction kernel = kernel_of(*site.backend, potrf_batched, kBatchElements<T>);
  const std::lock_guard lock(site.mutex);
  const auto count = std::ssize(matrices);
  auto* entries = make_array<BatchEntry>(*site.device, site.entries, count);
  auto* statuses = make_array<PivotStatus>(*site.device, site.statuses, count);
  std::transform(matrices.begin(), matrices.end(), entries, [](MatrixView<T> a) {
    return BatchEntry{a.data, a.rows, a.ld};
  });
  kernel(*site.queue, {batch_views(entries, statuses, count), potrf_batched.operands}, {});
  site.queue->synchronize();
  std::vector<FactorInfo> infos;
  std::transform(statuses, statuses + count, std::back_inserter(infos), info_of);
  return infos;
}

}  // namespace

FactorInfo cholesky_in_place(MatrixView<double> a, const DeviceCholeskyOptions& options) {
  return factor_one(a, options);
}
FactorInfo cholesky_in_place(MatrixView<float> a, const DeviceCholeskyOptions& options) {
  return factor_one(a, options);
}
std::vector<FactorInfo> cholesky_batched(std::span<const MatrixView<double>> matrices,
                                         const DeviceCholeskyOptions& options) {
  return factor_all(matrices, options);
}
std::vector<FactorInfo> cholesky_batched(std::span<const MatrixView<float>> matrices,
                                         const DeviceCholeskyOptions& options) {
  return factor_all(matrices, options);
}

}  // namespace strata
