// See lu_in_core.hpp.

#include "bench/lu_in_core.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.hpp"
#include "bench/cuda_peers.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/peers_plugin.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/getrf_batched.hpp"
#include "kernels/dense/lu_update.hpp"
#include "run/device_set.hpp"
#include "scalar/dispatch.hpp"

namespace strata::bench {
namespace {

struct Plugin : PeersPlugin {
  Plugin() {
    bind(fill, "strata_lu_fill");
    bind(residual, "strata_lu_residual");
    bind(getrf, "strata_cusolver_getrf");
    bind(getrf_batched, "strata_cublas_getrf_batched");
  }
  LuFill* fill = nullptr;
  LuResidual* residual = nullptr;
  CusolverGetrf* getrf = nullptr;
  CublasGetrfBatched* getrf_batched = nullptr;
};

LuElement element_of_peer(Element element) {
  switch (element) {
    case Element::fp64: return LuElement::fp64;
    case Element::fp32: return LuElement::fp32;
    case Element::complex128: return LuElement::complex128;
    case Element::complex64: return LuElement::complex64;
    default: fail(ErrorKind::misuse, "bench", "there is no LU in {}", to_string(element));
  }
}

/// 2·n³/3; for complex numbers four times as many.
double flops_of(std::int64_t n, Element element) {
  const auto order = static_cast<double>(n);
  const bool is_complex = element == Element::complex128 || element == Element::complex64;
  return (is_complex ? 4 : 1) * 2.0 / 3.0 * order * order * order;
}

/// Matrices in the memory of a device, one after another, and what factors them.
class InCoreMatrices {
 public:
  InCoreMatrices(const LuBench& bench, const RunOptions& options, std::int64_t n, Plugin& plugin)
      : bench_(bench),
        plugin_(plugin),
        n_(n),
        count_(std::max<std::int64_t>(bench.batch, 1)),
        element_(bench.precision),
        devices_(options) {
    Device& device = devices_.device(0);
    a_ = device.allocate(count_ * bytes_each());
    pivots_ = device.allocate(count_ * n * bytes_of(Element::int64));
    status_ = device.allocate_host(count_ * static_cast<std::int64_t>(sizeof(PanelStatus)));
    entries_ = device.allocate_host(count_ * static_cast<std::int64_t>(sizeof(LuBatchEntry)));
    auto* entry = reinterpret_cast<LuBatchEntry*>(entries_.data());
    for (std::int64_t m = 0; m < count_; ++m)
      std::construct_at(entry + m, LuBatchEntry{matrix(m), n, n, places(m)});
    queue_ = device.make_queue(QueuePriority::normal);
    const Operation& operation = bench.batch > 0 ? getrf_batched : getrf;
    kernel_ = devices_.backend().kernels().find(operation.name,
                                                {element_, Element::int64, Element::fp64});
    require(kernel_ != nullptr, ErrorKind::device, "bench", "there is no {} in {}", operation.name,
            to_string(element_));
  }

  [[nodiscard]] double flops() const {
    return static_cast<double>(count_) * flops_of(n_, element_);
  }
  void fill() {
    for (std::int64_t m = 0; m < count_; ++m)
      Plugin::call(plugin_.fill, "filling", matrix(m), n_, n_, code(), seed(m));
  }
  /// That of the last matrix; pivots are counted from `base`.
  [[nodiscard]] double residual(std::int64_t base) {
    double found = 0;
    const std::int64_t m = count_ - 1;
    Plugin::call(plugin_.residual, "residual", static_cast<const void*>(matrix(m)),
                 static_cast<const std::int64_t*>(places(m)), n_, n_, base, code(), seed(m),
                 &found);
    return found;
  }
  /// The seconds.
  double factor() {
    const Event begin = queue_->record();
    auto* status = reinterpret_cast<PanelStatus*>(status_.data());
    if (bench_.batch > 0) {
      kernel_(*queue_,
              {batch_views(reinterpret_cast<const LuBatchEntry*>(entries_.data()), status, count_),
               getrf_batched.operands},
              {});
    } else {
      const std::array<BlockView, 3> views{
          BlockView{matrix(0), n_, n_, n_, 0, 0, element_},
          BlockView{places(0), 1, n_, 1, 0, 0, Element::int64},
          BlockView{status, kPanelStatusRows, 1, kPanelStatusRows, 0, 0, Element::fp64}};
      kernel_(*queue_, {views, getrf.operands}, {.variant = bench_.halves ? kProductsOfHalves : 0});
    }
    const Event end = queue_->record();
    queue_->synchronize();
    return end.seconds() - begin.seconds();
  }
  double factor_by_peer() {
    double seconds = 0;
    int info = 0;
    if (bench_.batch > 0)
      Plugin::call(plugin_.getrf_batched, "cuBLAS", matrix(0), places(count_ - 1), n_, n_, count_,
                   code(), &seconds, &info);
    else
      Plugin::call(plugin_.getrf, "cuSOLVER", matrix(0), places(0), n_, n_, code(), &seconds,
                   &info);
    require(info == 0, ErrorKind::numerical, "bench", "the peer failed with info {}", info);
    return seconds;
  }

 private:
  [[nodiscard]] std::int64_t bytes_each() const { return n_ * n_ * bytes_of(element_); }
  [[nodiscard]] void* matrix(std::int64_t m) { return a_.data() + m * bytes_each(); }
  [[nodiscard]] std::int64_t* places(std::int64_t m) {
    return reinterpret_cast<std::int64_t*>(pivots_.data()) + m * n_;
  }
  [[nodiscard]] LuElement code() const { return element_of_peer(element_); }
  [[nodiscard]] std::uint64_t seed(std::int64_t m) const {
    return bench_.seed + static_cast<std::uint64_t>(m);
  }

  const LuBench& bench_;
  Plugin& plugin_;
  std::int64_t n_;
  std::int64_t count_;
  Element element_;
  DeviceSet devices_;
  Buffer a_;
  Buffer pivots_;
  Buffer status_;
  Buffer entries_;
  std::unique_ptr<Queue> queue_;
  KernelFunction kernel_ = nullptr;
};

LuInCoreRow bench_order(const LuBench& bench, const RunOptions& options, std::int64_t n,
                        Plugin& plugin) {
  InCoreMatrices matrices(bench, options, n, plugin);
  LuInCoreRow row;
  row.n = n;
  row.flops = matrices.flops();
  for (int r = 0; r <= bench.repeats; ++r) {
    matrices.fill();
    const double seconds = matrices.factor();
    if (r == 0)
      row.residual = matrices.residual(0);
    else
      row.all_seconds.push_back(seconds);
    if (bench.peer.empty()) continue;
    matrices.fill();
    const double by_peer = matrices.factor_by_peer();
    if (r == 0)
      row.peer.residual = matrices.residual(1);
    else
      row.peer.all_seconds.push_back(by_peer);
  }
  row.seconds = median(row.all_seconds);
  if (bench.peer.empty()) return row;
  row.peer.name = bench.batch > 0 ? "cublas getrfBatched" : "cusolver Xgetrf";
  row.peer.what = "in place, device memory, one GPU";
  row.peer.seconds = median(row.peer.all_seconds);
  return row;
}

}  // namespace

LuInCoreResult run_lu_in_core(const LuBench& bench, const RunOptions& options) {
  require(bench.peer.empty() || bench.peer == "cusolver", ErrorKind::misuse, "bench",
          "'{}' is no peer of lu in core: use cusolver", bench.peer);
  require(bench.repeats >= 1, ErrorKind::misuse, "bench", "{} repeats are none", bench.repeats);
  LuInCoreResult result;
  {
    DeviceSet devices(options);
    require(devices.count() == 1, ErrorKind::misuse, "bench", "in core is for one device, not {}",
            devices.count());
    require(!devices.backend().on_host(), ErrorKind::misuse, "bench", "in core is for a GPU");
    result.device = devices.machine().devices[0].name;
    result.model = devices.device(0).description().model;
  }
  Plugin plugin;
  for (const std::int64_t n : bench.sizes)
    result.rows.push_back(bench_order(bench, options, n, plugin));
  return result;
}

}  // namespace strata::bench
