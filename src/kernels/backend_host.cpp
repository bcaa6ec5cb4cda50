// The backends that run on the CPU: the same devices with two tables.

#include <dlfcn.h>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "device/device_host.hpp"
#include "kernels/backend.hpp"
#include "kernels/tables.hpp"

namespace strata {
namespace {

/// Each queue calls BLAS from its own thread, so a BLAS that starts threads of its own would only
/// crowd the cores (and OpenBLAS would add up in another order). Asked for by name, because not
/// every BLAS has such a function.
void make_blas_single_threaded() {
  using SetThreads = void (*)(int);
  for (const char* name : {"openblas_set_num_threads", "MKL_Set_Num_Threads"}) {
    if (void* function = dlsym(RTLD_DEFAULT, name); function != nullptr) {
      reinterpret_cast<SetThreads>(function)(1);
    }
  }
}

class HostBackend final : public Backend {
 public:
  HostBackend(const char* name, const KernelTable& kernels) : name_(name), kernels_(kernels) {}

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::vector<DeviceDescription> devices() const override {
    return {describe_host()};
  }
  [[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                    std::int64_t budget_bytes) const override {
    require(index >= 0, ErrorKind::device, "device", "there is no host:{}", index);
    const std::int64_t free_bytes = describe_host().memory_bytes;
    require(budget_bytes <= free_bytes, ErrorKind::memory, "device", "host:{}: {} asked, {} free",
            index, format_bytes(budget_bytes), format_bytes(free_bytes));
    return make_host_device(index, budget_bytes);
  }
  [[nodiscard]] const KernelTable& kernels() const override { return kernels_; }
  [[nodiscard]] bool reaches(int, const void* first, std::int64_t) const override {
    return first != nullptr;
  }
  [[nodiscard]] bool linked(int, int) const override { return true; }
  [[nodiscard]] bool on_host() const override { return true; }
  [[nodiscard]] DeviceKind kind() const override { return DeviceKind::cpu; }

 private:
  const char* name_;
  const KernelTable& kernels_;
};

}  // namespace

const Backend& host_backend() {
  static const HostBackend backend = [] {
    make_blas_single_threaded();
    return HostBackend("host", host_kernels());
  }();
  return backend;
}

const Backend& reference_backend() {
  static const HostBackend backend("reference", reference_kernels());
  return backend;
}

}  // namespace strata
