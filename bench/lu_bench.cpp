// See lu_bench.hpp.

#include "bench/lu_bench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "base/index.hpp"
#include "bench/cuda_peers.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/peer_blas.hpp"
#include "bench/peers_plugin.hpp"
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
          .solver = "strata",
          .factor_precision = std::string(to_string(result.factor_precision)),
          .seconds = seconds,
          .median_seconds = median(seconds),
          .factor_seconds = result.factor.seconds,
          .solve_seconds = result.solve.seconds,
          .backward_error = result.certificate.backward_error,
          .forward_error = result.certificate.forward_error,
          .hpl_residual = 0,
          .steps = result.certificate.refinement_steps,
          .gmres_iterations = result.gmres_iterations,
          .fallback = result.fallback};
}

struct IrsPeer : PeersPlugin {
  IrsPeer() { bind(solve, "strata_cusolver_irs"); }
  CusolverIrs* solve = nullptr;
};

/// The system of a benchmark, and its residuals.
struct UniformSystem {
  UniformMatrix<double> matrix;
  std::vector<double> a;
  std::vector<double> b;

  UniformSystem(std::int64_t n, std::uint64_t seed) : matrix{n, seed}, a(at(n * n)), b(at(n)) {
    matrix.fill_all(a.data());
    UniformMatrix<double>{n, seed + 1}.fill(0, 1, b.data());
  }
  [[nodiscard]] double hpl_residual(const std::vector<double>& x) const {
    const auto fill = [&](std::int64_t first, std::int64_t count, double* to) {
      std::copy_n(a.data() + first * matrix.n, count * matrix.n, to);
    };
    return residual_of<double>(matrix.n, fill, x, b).hpl;
  }
};

LuSolutionRow irs_row(const IrsPeer& peer, const UniformSystem& system, IrsFactor factor,
                      int repeats) {
  constexpr std::array kNames = {"fp64", "fp32", "tf32", "fp16"};
  LuSolutionRow row{.n = system.matrix.n,
                    .solver = "cusolver",
                    .factor_precision = kNames[static_cast<std::size_t>(factor)],
                    .seconds = {},
                    .forward_error = std::numeric_limits<double>::quiet_NaN(),
                    .fallback = {}};
  row.backward_error = row.forward_error;
  std::vector<double> x(at(row.n));
  std::vector<double> calls;
  const int warm_up = repeats > 1 ? 1 : 0;
  for (int r = 0; r < repeats + warm_up; ++r) {
    IrsSolution solution{};
    PeersPlugin::call(peer.solve, "cusolverDnIRSXgesv", system.a.data(), system.b.data(), x.data(),
                      row.n, factor, 0, &solution);
    if (r < warm_up) continue;
    row.seconds.push_back(solution.seconds);
    calls.push_back(solution.call_seconds);
    row.gmres_iterations = solution.iterations;
  }
  row.median_seconds = median(row.seconds);
  row.factor_seconds = median(calls);
  row.hpl_residual = system.hpl_residual(x);
  if (row.gmres_iterations < 0) row.fallback = "cuSOLVER factored in fp64 in the end";
  return row;
}

}  // namespace

std::vector<LuSolutionRow> run_lu_solutions(const LuBench& bench, const LuOptions& options) {
  require(bench.precision == Element::fp64 && (bench.peer.empty() || bench.peer == "cusolver"),
          ErrorKind::misuse, "bench", "--mixed is of fp64, beside no peer but cusolver");
  const std::optional<IrsPeer> peer =
      bench.peer.empty() ? std::nullopt : std::make_optional<IrsPeer>();
  std::vector<LuSolutionRow> rows;
  for (const std::int64_t n : bench.sizes) {
    const UniformSystem system(n, bench.seed);
    std::array<std::vector<double>, 2> x{std::vector<double>(at(n)), std::vector<double>(at(n))};
    std::array<std::vector<double>, 2> seconds;
    std::array<std::vector<GeneralSolveResult>, 2> results;
    const int warm_up = bench.repeats > 1 ? 1 : 0;
    for (int r = 0; r < bench.repeats + warm_up; ++r) {
      for (const std::size_t narrow : {0U, 1U}) {
        const MatrixView<const double> of{system.a.data(), n, n, n};
        const MatrixView<const double> right{system.b.data(), n, 1, n};
        const MatrixView<double> left{x[narrow].data(), n, 1, n};
        const auto start = Clock::now();
        GeneralSolveResult result = narrow == 1 ? solve_general_mixed(of, right, left, options)
                                                : solve_general(of, right, left, options);
        if (r < warm_up) continue;
        seconds[narrow].push_back(seconds_since(start));
        results[narrow].push_back(std::move(result));
      }
    }
    for (const std::size_t narrow : {0U, 1U}) {
      rows.push_back(row_of(n, seconds[narrow], results[narrow]));
      rows.back().hpl_residual = system.hpl_residual(x[narrow]);
    }
    if (!peer) continue;
    for (const IrsFactor factor :
         {IrsFactor::fp64, IrsFactor::fp32, IrsFactor::tf32, IrsFactor::fp16})
      rows.push_back(irs_row(*peer, system, factor, bench.repeats));
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
