// See cholesky_bench.hpp.

#include "bench/cholesky_bench.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/check.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/peers.hpp"
#include "bench/test_matrix.hpp"
#include "bench/timed_runs.hpp"
#include "cholesky/tile_factor.hpp"
#include "scalar/dispatch.hpp"
#include "strata/calibrate.hpp"
#include "strata/detect.hpp"

namespace strata::bench {
namespace {

template <class T>
BlockSource random_source(std::int64_t n, std::uint64_t seed) {
  return [=](const BlockExtent& x, std::byte* to) {
    auto* out = reinterpret_cast<T*>(to);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        out[i + j * x.rows] = static_cast<T>(element({.seed = seed}, n, x.row + i, x.col + j));
      }
    }
  };
}

/// y = L·(Lᵀ·v) by tiles, against y = A·v element by element from the formula, on a sample of rows.
double residual_of(TileFactor& factor, std::int64_t n, std::uint64_t seed) {
  std::vector<double> v(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    v[static_cast<std::size_t>(i)] = random_uniform(seed + 1, static_cast<std::uint64_t>(i)) - 0.5;
  const std::vector<double> y = factor.multiply(v);
  double worst = 0;
  double norm = 0;
  for (const double value : v) norm = std::max(norm, std::abs(value));
  const std::int64_t stride = std::max<std::int64_t>(1, n / 64);
  for (std::int64_t i = 0; i < n; i += stride) {
    double exact = 0;
    double row_norm = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      const double a = element({.seed = seed}, n, i, j);
      exact += a * v[static_cast<std::size_t>(j)];
      row_norm += std::abs(a);
    }
    worst = std::max(worst, std::abs(y[static_cast<std::size_t>(i)] - exact) / (row_norm * norm));
  }
  return worst;
}

CholeskyBenchRow bench_size(const CholeskyBench& bench, const CholeskyOptions& options,
                            std::int64_t n, Peer* peer) {
  CholeskyBenchRow row;
  row.n = n;
  CholeskyProblem problem;
  problem.n = n;
  problem.precision = bench.precision;
  auto start = Clock::now();
  TileFactor factor(problem, options);
  const BlockSource source = dispatch_native(bench.precision, [&]<class T>(std::type_identity<T>) {
    return random_source<T>(n, bench.seed);
  });
  std::vector<RunReport> runs;
  const bool warm_up = bench.repeats > 1;
  for (int r = 0; r < bench.repeats + (warm_up ? 1 : 0); ++r) {
    start = Clock::now();
    factor.load(source, static_cast<int>(std::max(1u, std::thread::hardware_concurrency())));
    row.source_seconds = seconds_since(start);
    const FactorInfo& info = factor.factor_loaded();
    require(info.ok, ErrorKind::numerical, "bench", "the factorization failed at pivot {}",
            info.first_bad_pivot);
    const bool counts = r > 0 || !warm_up;
    if (counts) runs.push_back(factor.report());
    if (peer == nullptr) continue;
    const double seconds = peer->factor(n, bench.precision, bench.seed);
    if (counts) row.peer.all_seconds.push_back(seconds);
  }
  for (const RunReport& run : runs) row.seconds.push_back(run.seconds);
  const auto middle = runs.begin() + std::ssize(runs) / 2;
  std::nth_element(runs.begin(), middle, runs.end(),
                   [](const RunReport& a, const RunReport& b) { return a.seconds < b.seconds; });
  row.run = *middle;
  row.residual = residual_of(factor, n, bench.seed);
  if (peer != nullptr) {
    row.peer.name = peer->name(bench.precision);
    row.peer.what = peer->what();
    row.peer.seconds = median(row.peer.all_seconds);
  }
  return row;
}

}  // namespace

std::vector<CholeskyBenchRow> run_cholesky_bench(const CholeskyBench& bench,
                                                 const CholeskyOptions& options) {
  const std::unique_ptr<Peer> peer = make_peer(bench.peer, bench.peer_threads);
  CholeskyOptions ours = options;
  // What is timed begins with the matrix in pinned host memory, unless another way is asked for.
  if (options.run.host_pinning == HostPinning::automatic)
    ours.run.host_pinning = HostPinning::ahead;
  std::vector<CholeskyBenchRow> rows;
  for (const std::int64_t n : bench.sizes) {
    if (bench.calibrate) {
      const Machine machine = detect_machine(options.run.devices, options.run.device_memory_bytes);
      CholeskyProblem problem;
      problem.n = n;
      problem.precision = bench.precision;
      ours.run.rates = calibrate(options.run, calibration_tiles(problem, options.tile, machine),
                                 bench.precision);
    }
    if (bench.policies.empty()) rows.push_back(bench_size(bench, ours, n, peer.get()));
    for (const Policy policy : bench.policies) {
      ours.run.policy = policy;
      ours.path = CholeskyPath::planned;  // in core there is nothing to manage
      rows.push_back(bench_size(bench, ours, n, peer.get()));
    }
  }
  return rows;
}

}  // namespace strata::bench
