// Eigenpairs of sparse symmetric matrices: what is asked for is checked, thick_restart.hpp or
// dense_eigs.hpp finds it, and what was found is certified with A on the host.

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/work_crew.hpp"
#include "device/device_host.hpp"
#include "krylov/dense_eigs.hpp"
#include "krylov/eigen_certificate.hpp"
#include "krylov/linear_system.hpp"
#include "krylov/orthogonalization.hpp"
#include "krylov/thick_restart.hpp"
#include "matrix/symmetry.hpp"
#include "strata/krylov.hpp"

namespace strata {
namespace {

constexpr double kOrthogonalityMax = 1e-6;  ///< beyond it, the vectors are what is wrong

struct NamedMethod {
  EigsMethod method;
  std::string_view name;
};
constexpr std::array kEigsMethods{NamedMethod{EigsMethod::automatic, "auto"},
                                  NamedMethod{EigsMethod::lanczos, "lanczos"},
                                  NamedMethod{EigsMethod::dense, "dense"}};

bool is_dense(const EigsOptions& options, std::int64_t n) {
  if (options.method != EigsMethod::automatic) return options.method == EigsMethod::dense;
  return n <= kDenseEigsOrder && options.s == 1 && !options.ghost_zones &&
         options.orthogonalization == QrMethod::automatic;
}

void check_lanczos(const EigsOptions& options, std::int64_t n) {
  require(options.k < n, ErrorKind::misuse, "eigs",
          "{} eigenpairs of a matrix of order {}: Lanczos' method finds fewer than its order, the "
          "dense method all",
          options.k, n);
  const std::int64_t basis = basis_size_of(options, n);
  require(options.k + 2 <= basis || basis == n, ErrorKind::misuse, "eigs",
          "{} eigenpairs need a basis of {} vectors at least, not {} (at most {})", options.k,
          options.k + 2, basis, kKrylovBasisMax);
  require(options.s >= 1 && options.s <= basis, ErrorKind::misuse, "eigs",
          "blocks of s = {} vectors do not fit a basis of {}", options.s, basis);
}

void check_options(const EigsOptions& options, const SparseMatrix& a, MatrixView<double> vectors) {
  require(options.k >= 1 && options.k <= a.rows, ErrorKind::misuse, "eigs",
          "{} eigenpairs of a matrix of order {}: at least one, and no more than its order",
          options.k, a.rows);
  require(vectors.rows == a.rows && vectors.cols == options.k, ErrorKind::misuse, "eigs",
          "vectors of {} by {} do not fit {} of order {}", vectors.rows, vectors.cols, options.k,
          a.rows);
  if (is_dense(options, a.rows)) {
    require(a.rows <= kDenseEigsOrderMax, ErrorKind::misuse, "eigs",
            "an order of {} is beyond {}, up to which there is a dense method", a.rows,
            kDenseEigsOrderMax);
  } else {
    check_lanczos(options, a.rows);
  }
  require_krylov_method(options.orthogonalization, options.s, "eigs");
  require(options.tolerance > 0 && std::isfinite(options.tolerance) && options.restarts_max >= 1 &&
              options.products_max >= 0,
          ErrorKind::misuse, "eigs", "a tolerance of {} in {} restarts and {} products is none",
          options.tolerance, options.restarts_max, options.products_max);
  const Asymmetry pair = find_asymmetry(a, kSymmetryTolerance);
  require(!std::isnan(pair.value) && !std::isnan(pair.transposed), ErrorKind::input, "eigs",
          "element ({}, {}) of A is {} and ({}, {}) is {}, counted from 0", pair.row, pair.col,
          pair.value, pair.col, pair.row, pair.transposed);
  require(!pair.found, ErrorKind::numerical, "eigs",
          "A is not symmetric: element ({}, {}) is {} and ({}, {}) is {}, counted from 0", pair.row,
          pair.col, pair.value, pair.col, pair.row, pair.transposed);
}

std::span<double> column(MatrixView<double> v, std::int64_t j) {
  return {v.column(j), static_cast<std::size_t>(v.rows)};
}

/// The largest |vᵢᵀvⱼ − δᵢⱼ|.
double orthogonality_of(MatrixView<double> v, WorkCrew& crew) {
  std::vector<double> worst(static_cast<std::size_t>(v.cols));
  crew.share(v.cols, [&](std::int64_t j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      const double dot = std::inner_product(v.column(i), v.column(i) + v.rows, v.column(j), 0.0);
      double& w = worst[static_cast<std::size_t>(j)];
      w = std::max(w, std::abs(dot - (i == j ? 1.0 : 0.0)));
    }
  });
  return worst.empty() ? 0 : *std::ranges::max_element(worst);
}

/// The pairs that are found, as vectors in the order of the system. How many.
std::int64_t find_dense(const CertifiedMatrix& of, MatrixView<double> vectors,
                        const EigsOptions& options, WorkCrew& crew, EigsInfo& info) {
  const SymmetricEigen eigen = dense_eigen(of, options, crew);
  info.dense = true;
  info.report.n = of.a.rows;
  info.report.path = "dense";
  info.report.devices = {"host"};
  info.ok = !eigen.values.empty();
  if (!info.ok) {
    info.why = "QL does not converge";
    return 0;
  }
  for (std::int64_t j = 0; j < options.k; ++j)
    std::copy_n(&eigen.vectors(0, j), of.a.rows, vectors.column(j));
  info.orthogonality = orthogonality_of(vectors, crew);
  return options.k;
}

std::int64_t find_by_lanczos(const LinearSystem& system, MatrixView<double> vectors,
                             const EigsOptions& options, WorkCrew& crew, EigsInfo& info) {
  ThickRestart method(system, options, crew);
  method.run(info);
  const std::int64_t found = std::min(method.found(), options.k);
  method.take_vectors(vectors.block(0, 0, vectors.rows, found));
  info.orthogonality = method.found() > 0 ? method.orthogonality() : 0;
  info.ok = method.finished() && found == options.k;
  info.seconds = method.seconds();
  info.report = method.take_report();
  return found;
}

/// Values with what is certified of them, and vectors in the order of the caller; what is not found
/// is zeros.
void certify(const LinearSystem& system, const CertifiedMatrix& of, MatrixView<double> vectors,
             std::int64_t found, const EigsOptions& options, WorkCrew& crew, EigsInfo& info) {
  const auto count = static_cast<std::size_t>(found);
  info.values.resize(count);
  info.residuals.resize(count);
  info.bounds.resize(count);
  std::vector<char> unresolved(count);
  crew.share(options.k, [&](std::int64_t j) {
    const std::span<double> to = column(vectors, j);
    if (j >= found) {
      std::ranges::fill(to, 0.0);
      return;
    }
    const std::vector<double> v(to.begin(), to.end());
    const CertifiedPair pair = certified(of, v, options.tolerance);
    const auto at = static_cast<std::size_t>(j);
    const int back = -system.exponent();
    info.values[at] = std::ldexp(pair.value, back);
    info.residuals[at] = std::ldexp(pair.residual, back);
    info.bounds[at] = std::ldexp(pair.bound, back);
    if (back < 0) info.bounds[at] += std::numeric_limits<double>::denorm_min();
    unresolved[at] = pair.unresolved || !std::isfinite(info.values[at]) ? 1 : 0;
    system.solution(v, to);
  });
  info.unresolved.assign(unresolved.begin(), unresolved.end());
  const double enough = std::ldexp(options.tolerance * of.norm, -system.exponent());
  info.converged =
      std::ranges::count_if(info.residuals, [enough](double r) { return r <= enough; });
}

/// What of the values is not resolved, and what would do.
std::string why_unresolved(const EigsInfo& info, const EigsOptions& options, double norm,
                           std::int64_t n) {
  const auto at =
      static_cast<std::size_t>(std::ranges::find(info.unresolved, true) - info.unresolved.begin());
  const auto count = std::ranges::count(info.unresolved, true);
  std::string why =
      fmt::format("{} of {} values {} not resolved, the first {:.3g} ± {:.1e}", count,
                  info.values.size(), count == 1 ? "is" : "are", info.values[at], info.bounds[at]);
  if (info.converged < options.k) return why;
  const double needed = kEigsResolved / 2 * std::abs(info.values[at]) / norm;
  constexpr double kRounding = 64 * std::numeric_limits<double>::epsilon();
  if (!info.dense && needed >= kRounding && needed < options.tolerance)
    return why + fmt::format(": a tolerance of {:.0e} may do", needed);
  why +=
      fmt::format(": beside {:.2g}, the largest row sum of |A|, they are rounding or zero", norm);
  if (!info.dense && n <= kDenseEigsOrderMax)
    why +=
        fmt::format(" to Lanczos' method; the dense one (--method dense) may resolve them, in {}",
                    format_bytes(dense_eigen_bytes(n)));
  return why;
}

/// Whether what was found is what was promised, and why not.
void judge(EigsInfo& info, const EigsOptions& options, double norm, std::int64_t n) {
  const auto say = [&info](const std::string& what) {
    info.why += (info.why.empty() ? "" : "; ") + what;
  };
  const bool resolved = std::ranges::count(info.unresolved, true) == 0;
  info.ok = info.ok && info.converged == options.k && resolved;
  if (info.ok) return;
  if (!info.dense && info.orthogonality > kOrthogonalityMax)
    say(fmt::format("vectors by {} are orthonormal to {:.1e} only: auto or cgs2 would do",
                    to_string(options.orthogonalization), info.orthogonality));
  if (info.converged < options.k && info.why.empty())
    say(fmt::format("{} of {} pairs are within {:.1e} of the largest row sum of |A|",
                    info.converged, options.k, options.tolerance));
  if (!resolved) say(why_unresolved(info, options, norm, n));
}

}  // namespace

std::string_view to_string(EigsMethod method) noexcept {
  for (const NamedMethod& named : kEigsMethods) {
    if (named.method == method) return named.name;
  }
  return "?";
}

EigsMethod parse_eigs_method(const std::string& name) {
  std::string names;
  for (const NamedMethod& named : kEigsMethods) {
    if (named.name == name) return named.method;
    names += (names.empty() ? "" : ", ") + std::string(named.name);
  }
  fail(ErrorKind::misuse, "eigs", "there is no method '{}': {}", name, names);
}

EigsInfo eigs(const SparseMatrix& a, MatrixView<double> vectors, const EigsOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  WorkCrew crew(describe_host().compute_queues - 1);
  check_matrix(a, "eigs", crew);
  check_options(options, a, vectors);
  const LinearSystem system(a, {.reorder = options.reorder, .what = "eigs"}, crew);
  const bool dense = is_dense(options, a.rows);
  const CertifiedMatrix of{system.matrix(), system.norm(), asymmetry_of(system.matrix()),
                           dense ? 0 : margin_of(options, system.norm()),
                           smallest_of(a, system.exponent())};
  EigsInfo info;
  const std::int64_t found = dense ? find_dense(of, vectors, options, crew, info)
                                   : find_by_lanczos(system, vectors, options, crew, info);
  certify(system, of, vectors, found, options, crew, info);
  judge(info, options, std::ldexp(of.norm, -system.exponent()), a.rows);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (info.dense) info.report.seconds = seconds;
  info.seconds.host = seconds - info.seconds.total();
  return info;
}

}  // namespace strata
