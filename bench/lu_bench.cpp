// See lu_bench.hpp.

#include "bench/lu_bench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "base/index.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/peer_blas.hpp"
#include "bench/timed_runs.hpp"
#include "bench/uniform_matrix.hpp"
#include "scalar/complex.hpp"
#include "scalar/dispatch.hpp"

namespace strata::bench {
namespace {

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
  for (std::int64_t j = 0; j < n; ++j) std::swap(b[at(j)], b[at(pivots[at(j)] - 1)]);
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
  const UniformMatrix<T> matrix{n, bench.seed};
  std::vector<T> a(at(n * n));
  matrix.fill_all(a.data());
  std::vector<T> b(at(n));
  UniformMatrix<T>{n, bench.seed + 1}.fill(0, 1, b.data());
  const auto residual = [&](const std::vector<T>& x) {
    const auto fill = [&](std::int64_t first, std::int64_t count, T* to) {
      matrix.fill(first, count, to);
    };
    return residual_of<T>(n, fill, x, b).hpl;
  };
  std::vector<T> factors;
  std::vector<int> pivots(at(n));
  std::vector<TimedRun> runs;
  const int warm_up = bench.repeats > 1 ? 1 : 0;
  for (int r = 0; r < bench.repeats + warm_up; ++r) {
    if (bench.overwrites && r > 0) matrix.fill_all(a.data());
    const MatrixView<T> view{a.data(), n, n, n};
    const auto start = Clock::now();
    LuFactor factor = bench.overwrites ? lu_overwriting(view, options) : lu(view, options);
    const double seconds = seconds_since(start);
    require(factor.info().ok, ErrorKind::numerical, "bench", "the factorization failed");
    if (r >= warm_up) runs.push_back({factor.report(), seconds});
    if (r + 1 == bench.repeats + warm_up) {
      std::vector<T> x = b;
      (void)factor.solve(MatrixView<T>{x.data(), n, 1, n});
      row.hpl_residual = residual(x);
      row.growth = factor.info().growth;
    }
    if (bench.peer.empty()) continue;
    factors = a;
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
  row.peer.residual = residual(solve_by_lapack(n, factors, pivots, b));
  return row;
}

LuSolutionRow row_of(std::int64_t n, const std::vector<double>& seconds,
                     const std::vector<GeneralSolveResult>& results) {
  std::size_t middle = 0;
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  while (seconds[middle] != sorted[sorted.size() / 2]) ++middle;
  const GeneralSolveResult& result = results[middle];
  return {.n = n,
          .factor_precision = result.factor_precision,
          .seconds = seconds,
          .median_seconds = median(seconds),
          .factor_seconds = result.factor.seconds,
          .solve_seconds = result.solve.seconds,
          .backward_error = result.certificate.backward_error,
          .forward_error = result.certificate.forward_error,
          .steps = result.certificate.refinement_steps,
          .gmres_iterations = result.gmres_iterations,
          .fallback = result.fallback};
}

}  // namespace

std::vector<LuSolutionRow> run_lu_solutions(const LuBench& bench, const LuOptions& options) {
  require(bench.precision == Element::fp64 && bench.peer.empty(), ErrorKind::misuse, "bench",
          "--mixed is of fp64, without a peer");
  std::vector<LuSolutionRow> rows;
  for (const std::int64_t n : bench.sizes) {
    std::vector<double> a(at(n * n));
    UniformMatrix<double>{n, bench.seed}.fill_all(a.data());
    std::vector<double> b(at(n));
    UniformMatrix<double>{n, bench.seed + 1}.fill(0, 1, b.data());
    std::vector<double> x(at(n));
    std::array<std::vector<double>, 2> seconds;
    std::array<std::vector<GeneralSolveResult>, 2> results;
    const int warm_up = bench.repeats > 1 ? 1 : 0;
    for (int r = 0; r < bench.repeats + warm_up; ++r) {
      for (const std::size_t narrow : {0U, 1U}) {
        const MatrixView<const double> of{a.data(), n, n, n};
        const MatrixView<const double> right{b.data(), n, 1, n};
        const MatrixView<double> left{x.data(), n, 1, n};
        const auto start = Clock::now();
        GeneralSolveResult result = narrow == 1 ? solve_general_mixed(of, right, left, options)
                                                : solve_general(of, right, left, options);
        if (r < warm_up) continue;
        seconds[narrow].push_back(seconds_since(start));
        results[narrow].push_back(std::move(result));
      }
    }
    for (const std::size_t narrow : {0U, 1U})
      rows.push_back(row_of(n, seconds[narrow], results[narrow]));
  }
  return rows;
}

std::vector<LuBenchRow> run_lu_bench(const LuBench& bench, const LuOptions& options) {
  require(bench.peer.empty() || bench.peer == "openblas", ErrorKind::misuse, "bench",
          "'{}' is no peer of lu: use openblas", bench.peer);
  require(!bench.overwrites || bench.peer.empty(), ErrorKind::misuse, "bench",
          "--overwrite leaves no matrix for a peer");
  std::vector<LuBenchRow> rows;
  for (const std::int64_t n : bench.sizes) {
    dispatch_blas(bench.precision, [&]<class T>(std::type_identity<T>) {
      rows.push_back(bench_size<T>(bench, options, n));
    });
  }
  return rows;
}

}  // namespace strata::bench
