#pragma once
// A backend: its devices and its kernels.
//
// Contract: the host backend is always there. The CUDA backend lives in libstrata_cuda.so, which is
// loaded at run time; when the file or a driver or a GPU is missing there is simply no such device.
// The plugin exports `strata_cuda_backend_version`, of type `BackendVersion`, and
// `strata_cuda_backend`, of type `BackendFactory`. The first is called first, and its answer has to
// be the library's own: classes and tables pass between the two, so that a plugin of another build
// would not fail but compute something else. A version is "VERSION+HASH", the hash that of this
// header and of all of ours that it includes (cmake/strata_targets.cmake).

#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "kernels/backend/kernel_table.hpp"
#include "strata/machine.hpp"

namespace strata {

class Backend {
 public:
  Backend() = default;
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  [[nodiscard]] virtual std::string name() const = 0;  ///< "host", "cuda"
  [[nodiscard]] virtual std::vector<DeviceDescription> devices() const = 0;
  /// Throws Error{device} if there is no device `index`, Error{memory} if the budget exceeds what
  /// is free.
  [[nodiscard]] virtual std::unique_ptr<Device> make_device(int index,
                                                            std::int64_t budget_bytes) const = 0;
  [[nodiscard]] virtual const KernelTable& kernels() const = 0;
  /// True if [first, first + bytes) is memory of device `index` that its kernels read and write at
  /// full speed.
  [[nodiscard]] virtual bool reaches(int index, const void* first, std::int64_t bytes) const = 0;
  /// True if device `from` can be copied from by device `to` without a detour.
  [[nodiscard]] virtual bool linked(int from, int to) const = 0;
  /// True if kernels run as plain host code, so that a block store may be read by the queue itself.
  [[nodiscard]] virtual bool on_host() const = 0;
  [[nodiscard]] virtual DeviceKind kind() const = 0;
};

/// The CPU backend (OpenBLAS or any BLAS and LAPACK, kernels/backend/blas_table.hpp; Boost.Math),
/// one thread a queue. Its make_device throws Error{device} where there is no BLAS, too.
[[nodiscard]] const Backend& host_backend();

/// Reference kernels: plain loops on the host device, for tests and small checks.
[[nodiscard]] const Backend& reference_backend();

/// The CUDA backend, or nullptr, with the reason in `why` if that is not null. The file is looked
/// for in $STRATA_CUDA_BACKEND (a file), beside the executable, in ../lib, and by the dynamic
/// loader.
[[nodiscard]] const Backend* cuda_backend(std::string* why = nullptr);

/// What the plugin exports: what it was built for.
using BackendVersion = const char* (*)();
/// What the plugin exports; throws Error{device} when no driver or GPU answers.
using BackendFactory = const Backend& (*)();

}  // namespace strata
