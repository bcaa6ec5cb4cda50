// The backends that run on the CPU: the same devices with two tables.

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "device/device_host.hpp"
#include "kernels/backend/backend.hpp"
#include "kernels/backend/blas_table.hpp"
#include "kernels/backend/tables.hpp"

namespace strata {
namespace {

class HostBackend final : public Backend {
 public:
  HostBackend(const char* name, const KernelTable& kernels, bool calls_blas)
      : name_(name), kernels_(kernels), calls_blas_(calls_blas) {}

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
    if (calls_blas_) (void)host_blas();  // refused here, where it is missing, not in a queue
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
  bool calls_blas_;
};

}  // namespace

const Backend& host_backend() {
  static const HostBackend backend("host", host_kernels(), true);
  return backend;
}

const Backend& reference_backend() {
  static const HostBackend backend("reference", reference_kernels(), false);
  return backend;
}

}  // namespace strata
