// See lu_bench.hpp.

#include "bench/lu_bench.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/peer_blas.hpp"
#include "bench/timed_runs.hpp"
#include "scalar/complex.hpp"
#include "scalar/dispatch.hpp"

namespace strata::bench {
namespace {

template <class T>
std::vector<T> random_values(std::int64_t count, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  const auto number = [&](std::uint64_t k) {
    return static_cast<RealOf<T>>(2 * random_uniform(seed, k) - 1);
  };
  for (std::size_t k = 0; k < values.size(); ++k) {
    if constexpr (is_complex_v<T>) {
      values[k] = {number(2 * k), number(2 * k + 1)};
    } else {
      values[k] = number(k);
    }
  }
  return values;
}

/// ‖b − A·x‖∞ / (u·(‖A‖∞·‖x‖∞ + ‖b‖∞)·n).
template <class T>
double hpl_residual(MatrixView<const T> a, const std::vector<T>& x, const std::vector<T>& b) {
  using Wide = WideOf<T>;
  std::vector<Wide> r(b.begin(), b.end());
  std::vector<double> rows(b.size());
  double norm_x = 0;
  double norm_b = 0;
  for (std::int64_t j = 0; j < a.cols; ++j) {
    const auto value = static_cast<Wide>(x[static_cast<std::size_t>(j)]);
    norm_x = std::max<double>(norm_x, std::abs(value));
    for (std::int64_t i = 0; i < a.rows; ++i) {
      r[static_cast<std::size_t>(i)] -= static_cast<Wide>(a(i, j)) * value;
      rows[static_cast<std::size_t>(i)] += std::abs(static_cast<Wide>(a(i, j)));
    }
  }
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    norm_b = std::max<double>(norm_b, std::abs(static_cast<Wide>(b[i])));
    const double size = std::abs(r[i]);
    if (!(size <= largest)) largest = size;  // keeps a NaN
  }
  const double norm_a = b.empty() ? 0 : *std::max_element(rows.begin(), rows.end());
  const double u = std::numeric_limits<RealOf<T>>::epsilon() / 2;
  return largest / (u * (norm_a * norm_x + norm_b) * static_cast<double>(a.rows));
}

template <class T>
void lapack_getrf(std::int64_t n, std::vector<T>& a, std::vector<int>& pivots) {
  const BlasTable& blas = peer_blas().functions;
  const FortranGetrf<T> getrf = [&] {
    if constexpr (std::is_same_v<T, double>) {
      return blas.dgetrf;
    } else if constexpr (std::is_same_v<T, float>) {
      return blas.sgetrf;
    } else if constexpr (std::is_same_v<T, std::complex<double>>) {
      return blas.zgetrf;
    } else {
      return blas.cgetrf;
    }
  }();
  require(getrf != nullptr, ErrorKind::device, "bench", "{} lacks getrf", peer_blas().about.file);
  const int order = static_cast<int>(n);
  int info = 0;
  getrf(&order, &order, a.data(), &order, pivots.data(), &info);
  require(info == 0, ErrorKind::numerical, "bench", "openblas getrf failed with info {}", info);
}

/// A⁻¹·b by LAPACK's factors.
template <class T>
std::vector<T> solve_by_lapack(std::int64_t n, const std::vector<T>& factors,
                               const std::vector<int>& pivots, std::vector<T> b) {
  const MatrixView<const T> f{factors.data(), n, n, n};
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t j = 0; j < n; ++j)
    std::swap(b[at(j)], b[static_cast<std::size_t>(pivots[at(j)] - 1)]);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = j + 1; i < n; ++i) b[at(i)] -= f(i, j) * b[at(j)];
  for (std::int64_t j = n - 1; j >= 0; --j) {
    b[at(j)] /= f(j, j);
    for (std::int64_t i = 0; i < j; ++i) b[at(i)] -= f(i, j) * b[at(j)];
  }
  return b;
}

struct TimedRun {
  RunReport report;
  double call_seconds = 0;
};

template <class T>
LuBenchRow bench_size(const LuBench& bench, const LuOptions& options, std::int64_t n) {
  LuBenchRow row;
  row.n = n;
  const std::vector<T> values = random_values<T>(n * n, bench.seed);
  const std::vector<T> b = random_values<T>(n, bench.seed + 1);
  const MatrixView<const T> a{values.data(), n, n, n};
  std::vector<T> factors;
  std::vector<int> pivots(static_cast<std::size_t>(n));
  std::vector<TimedRun> runs;
  const int warm_up = bench.repeats > 1 ? 1 : 0;
  for (int r = 0; r < bench.repeats + warm_up; ++r) {
    const auto start = Clock::now();
    LuFactor factor = lu(a, options);
    const double seconds = seconds_since(start);
    require(factor.info().ok, ErrorKind::numerical, "bench", "the factorization failed");
    if (r >= warm_up) runs.push_back({factor.report(), seconds});
    if (r + 1 == bench.repeats + warm_up) {
      std::vector<T> x = b;
      (void)factor.solve(MatrixView<T>{x.data(), n, 1, n});
      row.hpl_residual = hpl_residual(a, x, b);
      row.growth = factor.info().growth;
    }
    if (bench.peer.empty()) continue;
    factors = values;
    set_peer_threads(bench.peer_threads);
    const auto peer_start = Clock::now();
    lapack_getrf(n, factors, pivots);
    if (r >= warm_up) row.peer.all_seconds.push_back(seconds_since(peer_start));
  }
  for (const TimedRun& run : runs) row.seconds.push_back(run.report.seconds);
  const auto middle = runs.begin() + std::ssize(runs) / 2;
  std::nth_element(runs.begin(), middle, runs.end(), [](const TimedRun& x, const TimedRun& y) {
    return x.report.seconds < y.report.seconds;
  });
  row.run = middle->report;
  row.call_seconds = middle->call_seconds;
  if (bench.peer.empty()) return row;
  const int threads = bench.peer_threads > 0 ? bench.peer_threads : all_cores();
  row.peer.name =
      fmt::format("openblas getrf in {}, {} threads", to_string(bench.precision), threads);
  row.peer.what = "in place, host memory";
  row.peer.seconds = median(row.peer.all_seconds);
  row.peer.residual = hpl_residual(a, solve_by_lapack(n, factors, pivots, b), b);
  return row;
}

}  // namespace

std::vector<LuBenchRow> run_lu_bench(const LuBench& bench, const LuOptions& options) {
  require(bench.peer.empty() || bench.peer == "openblas", ErrorKind::misuse, "bench",
          "'{}' is no peer of lu: use openblas", bench.peer);
  std::vector<LuBenchRow> rows;
  for (const std::int64_t n : bench.sizes) {
    dispatch_blas(bench.precision, [&]<class T>(std::type_identity<T>) {
      rows.push_back(bench_size<T>(bench, options, n));
    });
  }
  return rows;
}

}  // namespace strata::bench
