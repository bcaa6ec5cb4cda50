// See lu_in_core.hpp.

#include "bench/lu_in_core.hpp"

#include <array>

#include "base/check.hpp"
#include "bench/cuda_peers.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/peers_plugin.hpp"
#include "kernels/dense/getrf.hpp"
#include "run/device_set.hpp"
#include "scalar/dispatch.hpp"

namespace strata::bench {
namespace {

struct Plugin : PeersPlugin {
  Plugin() {
    bind(fill, "strata_lu_fill");
    bind(residual, "strata_lu_residual");
    bind(getrf, "strata_cusolver_getrf");
  }
  LuFill* fill = nullptr;
  LuResidual* residual = nullptr;
  CusolverGetrf* getrf = nullptr;
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

LuInCoreRow bench_order(const LuBench& bench, const RunOptions& options, std::int64_t n,
                        Plugin& plugin) {
  const Element element = bench.precision;
  const LuElement code = element_of_peer(element);
  DeviceSet devices(options);
  Device& device = devices.device(0);
  const Buffer a = device.allocate(n * n * bytes_of(element));
  const Buffer pivots = device.allocate(n * bytes_of(Element::int64));
  const Buffer status = device.allocate_host(sizeof(PanelStatus));
  const auto queue = device.make_queue(QueuePriority::normal);
  const KernelFunction kernel =
      devices.backend().kernels().find(getrf.name, {element, Element::int64, Element::fp64});
  require(kernel != nullptr, ErrorKind::device, "bench", "there is no getrf in {}",
          to_string(element));
  auto* places = reinterpret_cast<std::int64_t*>(pivots.data());
  const auto fill = [&] {
    Plugin::call(plugin.fill, "filling", static_cast<void*>(a.data()), n, n, code, bench.seed);
  };
  const auto residual = [&](std::int64_t base) {
    double found = 0;
    Plugin::call(plugin.residual, "residual", static_cast<const void*>(a.data()),
                 static_cast<const std::int64_t*>(places), n, n, base, code, bench.seed, &found);
    return found;
  };
  LuInCoreRow row;
  row.n = n;
  row.flops = flops_of(n, element);
  for (int r = 0; r <= bench.repeats; ++r) {
    fill();
    const std::array<BlockView, 3> views{BlockView{a.data(), n, n, n, 0, 0, element},
                                         BlockView{places, 1, n, 1, 0, 0, Element::int64},
                                         BlockView{status.data(), 4, 1, 4, 0, 0, Element::fp64}};
    const Event begin = queue->record();
    kernel(*queue, {views, getrf.operands}, {});
    const Event end = queue->record();
    queue->synchronize();
    if (r == 0)
      row.residual = residual(0);
    else
      row.all_seconds.push_back(end.seconds() - begin.seconds());
    if (bench.peer.empty()) continue;
    fill();
    double seconds = 0;
    int info = 0;
    Plugin::call(plugin.getrf, "cuSOLVER", static_cast<void*>(a.data()), places, n, n, code,
                 &seconds, &info);
    require(info == 0, ErrorKind::numerical, "bench", "cuSOLVER failed with info {}", info);
    if (r == 0)
      row.peer.residual = residual(1);
    else
      row.peer.all_seconds.push_back(seconds);
  }
  row.seconds = median(row.all_seconds);
  if (bench.peer.empty()) return row;
  row.peer.name = "cusolver Xgetrf";
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
