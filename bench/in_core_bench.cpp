// See in_core_bench.hpp.
//
// A device for each order: event times count from its making, in single precision on a GPU, and
// are finer the younger it is.

#include "bench/in_core_bench.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "kernels/dense/potrf_batched.hpp"

namespace strata::bench {
namespace {

template <class T>
T* make_array(Device& device, Buffer& memory, std::int64_t count) {
  memory = device.allocate_host(count * static_cast<std::int64_t>(sizeof(T)));
  auto* first = reinterpret_cast<T*>(memory.data());
  std::uninitialized_fill_n(first, count, T{});
  return first;
}

void add_row(InCoreRow row, InPlace& in_place, const InCoreBench& bench,
             std::vector<InCoreRow>& rows) {
  row.seconds = median(row.all_seconds);
  if (!row.peer.all_seconds.empty()) {
    row.peer.name = in_place.peer_name(bench.precision, bench.batch > 0);
    row.peer.what = in_place.peer_what();
    row.peer.seconds = median(row.peer.all_seconds);
  }
  rows.push_back(std::move(row));
}

std::vector<PotrfOptions> choices_of(const InCoreBench& bench, const CholeskyOptions& options,
                                     const PotrfTuning& tuning, std::int64_t n) {
  std::vector<PotrfOptions> choices;
  const auto add = [&](PotrfVariant variant) {
    CholeskyBlocking blocking = options.blocking;
    if (variant != PotrfVariant::exclusive) {  // the table has nothing for that one
      blocking.variant = static_cast<CholeskyVariant>(variant);
      blocking = with_tuning(blocking, tuning.blocking_for(bench.precision, n));
      variant = static_cast<PotrfVariant>(blocking.variant);
    }
    choices.push_back({variant, bench.ib, blocking.recnb, blocking.nb});
  };
  for (const PotrfVariant variant : bench.variants) add(variant);
  if (choices.empty()) add(static_cast<PotrfVariant>(options.blocking.variant));
  return choices;
}

void bench_size(const InCoreBench& bench, const CholeskyOptions& options, std::int64_t n,
                InPlace& in_place, std::vector<InCoreRow>& rows) {
  InCoreSite site(options, n, std::max<std::int64_t>(bench.batch, 1), bench.precision);
  const Matrices& a = site.matrices();
  std::vector<InCoreRow> fresh;
  for (const PotrfOptions& choice : choices_of(bench, options, site.devices().tuning(), n)) {
    fresh.push_back({.matrices = a, .options = choice});
  }
  PeerResult peer;
  for (int r = 0; r <= bench.repeats; ++r) {  // the first to warm up
    for (InCoreRow& row : fresh) {
      in_place.fill(a, bench.matrix);
      const std::int64_t before = in_place.free_bytes();
      const double seconds = site.factor(row.options);
      if (r == 0) {
        if (before >= 0) {
          row.extra_device_bytes = std::max<std::int64_t>(before - in_place.free_bytes(), 0);
        }
        row.residual = in_place.residual(a, bench.matrix);
      } else {
        row.all_seconds.push_back(seconds);
      }
    }
    if (bench.peer.empty()) continue;
    in_place.fill(a, bench.matrix);
    const double seconds = in_place.peer_potrf(a);
    if (r == 0) {
      peer.residual = in_place.residual(a, bench.matrix);
    } else {
      peer.all_seconds.push_back(seconds);
    }
  }
  for (InCoreRow& row : fresh) {
    row.peer = peer;
    add_row(std::move(row), in_place, bench, rows);
  }
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

InCoreSite::InCoreSite(const CholeskyOptions& options, std::int64_t n, std::int64_t count,
                       Element precision)
    : devices_(options.run, options.path),
      matrices_{.n = n, .ld = n, .count = count, .precision = precision} {
  Device& device = devices_.device(0);
  memory_ = device.allocate(matrices_.bytes());
  matrices_.data = memory_.data();
  (void)make_array<PivotStatus>(device, statuses_, count);
  auto* entries = make_array<BatchEntry>(device, entries_, count);
  for (std::int64_t b = 0; b < count; ++b) {
    entries[b] = {memory_.data() + b * matrices_.bytes_each(), n, n};
  }
  queue_ = device.make_queue(QueuePriority::normal);
}

double InCoreSite::factor(const PotrfOptions& options) {
  const KernelTable& kernels = devices_.backend().kernels();
  const PotrfValues values{[&](Element, std::int64_t) { return options; }};
  auto* statuses = reinterpret_cast<PivotStatus*>(statuses_.data());
  const Matrices& a = matrices_;
  const auto call = [&] {
    if (a.count > 1) {
      const Elements elements{a.precision, Element::int64, Element::fp64};
      const auto views =
          batch_views(reinterpret_cast<const BatchEntry*>(entries_.data()), statuses, a.count);
      kernels.find(potrf_batched.name, elements)(*queue_, {views, potrf_batched.operands}, {});
      return;
    }
    const std::array<BlockView, 2> views{BlockView{a.data, a.n, a.n, a.ld, 0, 0},
                                         BlockView{statuses, kStatusRows, 1, kStatusRows, 0, 0}};
    kernels.find(potrf.name, {a.precision, Element::fp64})(*queue_, {views, potrf.operands},
                                                           {.values = &values});
  };
  const Event begin = queue_->record();
  call();
  const Event end = queue_->record();
  queue_->synchronize();
  for (std::int64_t b = 0; b < a.count; ++b) {
    require(statuses[b].bad_column < 0, ErrorKind::numerical, "bench",
            "the factorization of matrix {} failed at pivot {}", b,
            static_cast<std::int64_t>(statuses[b].bad_column));
  }
  end.wait();
  return end.seconds() - begin.seconds();
}

std::unique_ptr<InPlace> make_in_place(const RunOptions& options, const std::string& peer,
                                       int peer_threads) {
  const DeviceChoice choice = choose_devices(options.devices);
  require(choice.indices.size() == 1 || options.devices == "auto", ErrorKind::misuse, "bench",
          "'{}' names {} devices: in core takes one", options.devices, choice.indices.size());
  const bool on_host = choice.backend != "cuda";
  const bool served = on_host ? peer == "openblas" : peer == "cusolver" || peer == "magma";
  require(peer.empty() || served, ErrorKind::misuse, "bench",
          "'{}' cannot work in the memory of '{}': use {}", peer, options.devices,
          on_host ? "openblas" : "cusolver or magma");
  if (on_host) return make_host_in_place(peer_threads);
  return make_cuda_in_place(peer.empty() ? "cusolver" : peer);
}

const char* to_string(PotrfVariant variant) noexcept {
  return variant == PotrfVariant::exclusive ? "exclusive"
                                            : to_string(static_cast<CholeskyVariant>(variant));
}

PotrfVariant parse_potrf_variant(const std::string& name) {
  return name == "exclusive" ? PotrfVariant::exclusive
                             : static_cast<PotrfVariant>(parse_variant(name));
}

InCoreResult run_in_core_bench(const InCoreBench& bench, const CholeskyOptions& options) {
  const std::unique_ptr<InPlace> in_place =
      make_in_place(options.run, bench.peer, bench.peer_threads);
  check_blocking(options.blocking);
  require(bench.ib == 0 || bench.ib == 4 || bench.ib == 8, ErrorKind::misuse, "bench",
          "ib is {}: use 4 or 8", bench.ib);
  InCoreResult result;
  {
    DeviceSet devices(options.run, options.path);
    result.device = devices.machine().devices[0].name;
    result.model = devices.device(0).description().model;
  }
  for (const std::int64_t n : bench.sizes) bench_size(bench, options, n, *in_place, result.rows);
  if (bench.gemm_seconds > 0) {
    result.gemm_flops_per_second = in_place->gemm_rate(bench.precision, bench.gemm_seconds);
  }
  return result;
}

}  // namespace strata::bench
