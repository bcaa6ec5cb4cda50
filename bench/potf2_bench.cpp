// See potf2_bench.hpp.

#include "bench/potf2_bench.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace strata::bench {
namespace {

/// Every blocking worth measuring for order n: a panel at least half as wide as the matrix is the
/// matrix.
std::vector<PotrfOptions> choices_of(std::int64_t n) {
  std::vector<PotrfOptions> choices;
  for (const int recnb : {64, 128}) {
    for (const int ib : {4, 8}) choices.push_back({PotrfVariant::fused, ib, recnb, 0});
    for (const int nb : {128, 256, 512, 1024}) {
      if (nb > 128 && 2 * nb > n) continue;
      choices.push_back({PotrfVariant::left, 8, recnb, nb});
      choices.push_back({PotrfVariant::right, 8, recnb, nb});
    }
  }
  return choices;
}

/// The median of `repeats` runs after one to warm up; empty if the backend has no such blocking.
std::vector<double> measure(const Potf2Bench& bench, InCoreSite& site, InPlace& in_place,
                            const PotrfOptions& choice) {
  std::vector<double> seconds;
  try {
    for (int r = 0; r <= bench.repeats; ++r) {
      in_place.fill(site.matrices(), {.seed = bench.seed});
      const double elapsed = site.factor(choice);
      if (r > 0) seconds.push_back(elapsed);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::misuse) throw;
  }
  return seconds;
}

void call_progress(const RunOptions& options, double done, double total) {
  if (!options.progress || options.progress({done, total, 0, "tune"})) return;
  fail(ErrorKind::cancelled, "bench", "cancelled after {} of {} measurements", done, total);
}

Potf2Row bench_size(const Potf2Bench& bench, const CholeskyOptions& options, std::int64_t n,
                    InPlace& in_place) {
  InCoreSite site(options, n, 1, bench.precision);
  Potf2Row row;
  row.n = n;
  row.flops = site.matrices().flops();
  std::vector<PotrfOptions> choices{PotrfOptions{}};
  if (site.devices().backend().kind() == DeviceKind::gpu) choices = choices_of(n);
  for (const PotrfOptions& choice : choices) {
    call_progress(options.run, static_cast<double>(row.measurements.size()),
                  static_cast<double>(choices.size()));
    const std::vector<double> seconds = measure(bench, site, in_place, choice);
    if (!seconds.empty()) row.measurements.push_back({choice, median(seconds)});
  }
  require(!row.measurements.empty(), ErrorKind::device, "bench",
          "the device has no potrf for order {}", n);
  if (!bench.peer) return row;
  for (int r = 0; r <= bench.repeats; ++r) {
    in_place.fill(site.matrices(), {.seed = bench.seed});
    const double seconds = in_place.peer_potrf(site.matrices());
    if (r > 0) row.peer.all_seconds.push_back(seconds);
  }
  row.peer.name = in_place.peer_name(bench.precision, false);
  row.peer.what = in_place.peer_what();
  row.peer.seconds = median(row.peer.all_seconds);
  return row;
}

/// One order in the blocking that a run with these options takes.
TimedOrder time_order(const Potf2Bench& bench, const CholeskyOptions& options, std::int64_t n,
                      InPlace& in_place) {
  InCoreSite site(options, n, 1, bench.precision);
  const CholeskyBlocking tuned = site.devices().tuning().blocking_for(bench.precision, n);
  const std::vector<double> seconds =
      measure(bench, site, in_place, potrf_options(with_tuning(options.blocking, tuned)));
  require(!seconds.empty(), ErrorKind::device, "bench", "the device has no potrf for order {}", n);
  return {n, site.matrices().flops(), median(seconds)};
}

std::vector<TimedOrder> time_small_orders(const Potf2Bench& bench, const CholeskyOptions& options,
                                          InPlace& in_place) {
  std::vector<TimedOrder> times;
  try {
    for (std::int64_t n = 64; n <= 1024; n *= 2) {
      times.push_back(time_order(bench, options, n, in_place));
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
  }
  return times;
}

}  // namespace

double seconds_bound(const TimedOrder& whole, const TimedOrder& small) {
  return static_cast<double>(whole.n) / static_cast<double>(small.n) * small.seconds;
}

const Potf2Measurement& Potf2Row::best() const {
  return *std::min_element(
      measurements.begin(), measurements.end(), [](const auto& a, const auto& b) {
        return std::pair(a.options.ib == 4, a.seconds) < std::pair(b.options.ib == 4, b.seconds);
      });
}

const Potf2Measurement* Potf2Row::best(PotrfVariant variant) const {
  const Potf2Measurement* best = nullptr;
  for (const Potf2Measurement& m : measurements) {
    if (m.options.variant != variant || m.options.ib == 4) continue;
    if (best == nullptr || m.seconds < best->seconds) best = &m;
  }
  return best;
}

PotrfTuning Potf2Result::tuning(Element precision) const {
  PotrfTuning table{model, {}};
  for (const Potf2Row& row : rows) {
    const PotrfOptions& best = row.best().options;
    table.entries.push_back(
        {precision, row.n, {static_cast<CholeskyVariant>(best.variant), best.recnb, best.nb}});
  }
  return table;
}

Potf2Result run_potf2_bench(const Potf2Bench& bench, const CholeskyOptions& options) {
  const std::unique_ptr<InPlace> in_place = make_in_place(options.run, "", bench.peer_threads);
  Potf2Result result;
  {
    DeviceSet devices(options.run, options.path);
    result.device = devices.machine().devices[0].name;
    result.model = devices.device(0).description().model;
    result.tunable = devices.backend().kind() == DeviceKind::gpu;
  }
  for (const std::int64_t n : bench.sizes) {
    result.rows.push_back(bench_size(bench, options, n, *in_place));
  }
  result.small = time_small_orders(bench, options, *in_place);
  for (const std::int64_t n : bench.share_of) {
    result.whole.push_back(time_order(bench, options, n, *in_place));
  }
  return result;
}

}  // namespace strata::bench
