// Eigenpairs of sparse symmetric matrices: what is asked for is checked, thick_restart.hpp finds
// it, and what was found is checked with A on the host.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <tuple>

#include "base/check.hpp"
#include "base/work_crew.hpp"
#include "device/device_host.hpp"
#include "krylov/linear_system.hpp"
#include "krylov/orthogonalization.hpp"
#include "krylov/thick_restart.hpp"
#include "matrix/symmetry.hpp"
#include "strata/krylov.hpp"

namespace strata {
namespace {

constexpr double kOrthogonalityMax = 1e-6;  ///< beyond it, the vectors are what is wrong

void check_options(const EigsOptions& options, const SparseMatrix& a, MatrixView<double> vectors) {
  require_well_formed(a);
  require(a.rows == a.cols, ErrorKind::misuse, "eigs", "a matrix of {} by {} is not square", a.rows,
          a.cols);
  require(options.k >= 1 && options.k < a.rows, ErrorKind::misuse, "eigs",
          "{} eigenpairs of a matrix of order {}: at least one, and fewer than its order",
          options.k, a.rows);
  require(vectors.rows == a.rows && vectors.cols == options.k, ErrorKind::misuse, "eigs",
          "vectors of {} by {} do not fit {} of order {}", vectors.rows, vectors.cols, options.k,
          a.rows);
  const std::int64_t basis = basis_size_of(options, a.rows);
  require(options.k + 2 <= basis || basis == a.rows, ErrorKind::misuse, "eigs",
          "{} eigenpairs need a basis of {} vectors at least, not {} (at most {})", options.k,
          options.k + 2, basis, kKrylovBasisMax);
  require(options.s >= 1 && options.s <= basis, ErrorKind::misuse, "eigs",
          "blocks of s = {} vectors do not fit a basis of {}", options.s, basis);
  require_krylov_method(options.orthogonalization, options.s, "eigs");
  require(options.tolerance > 0 && std::isfinite(options.tolerance) && options.restarts_max >= 1,
          ErrorKind::misuse, "eigs", "a tolerance of {} in {} restarts is none", options.tolerance,
          options.restarts_max);
  const Asymmetry pair = find_asymmetry(a, kSymmetryTolerance);
  require(!pair.found, ErrorKind::numerical, "eigs",
          "A is not symmetric: element ({}, {}) is {} and ({}, {}) is {}, counted from 0", pair.row,
          pair.col, pair.value, pair.col, pair.row, pair.transposed);
}

/// Rayleigh quotient and residual with A; v has length 1.
std::pair<double, double> checked(const SparseMatrix& a, std::span<const double> v) {
  std::vector<double> product(v.size());
  multiply(a, v, product);
  double quotient = 0;
  double square = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    quotient += v[i] * product[i];
    square += v[i] * v[i];
  }
  quotient /= square;
  for (std::size_t i = 0; i < v.size(); ++i) product[i] -= quotient * v[i];
  return {quotient, norm_of(product)};
}

}  // namespace

EigsInfo eigs(const SparseMatrix& a, MatrixView<double> vectors, const EigsOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  check_options(options, a, vectors);
  const LinearSystem system(a, {.reorder = options.reorder, .what = "eigs"});
  EigsInfo info;
  WorkCrew crew(describe_host().compute_queues - 1);
  ThickRestart method(system, options, crew);
  method.run(info);
  const double enough = options.tolerance * system.norm();
  const std::int64_t found = std::min(method.found(), options.k);
  const auto column = [&](std::int64_t j) {
    return std::span<double>(vectors.column(j), static_cast<std::size_t>(a.rows));
  };
  method.take_vectors(vectors.block(0, 0, a.rows, found));
  info.values.resize(static_cast<std::size_t>(found));
  info.residuals.resize(static_cast<std::size_t>(found));
  crew.share(options.k, [&](std::int64_t j) {
    if (j >= found) {
      std::ranges::fill(column(j), 0.0);
      return;
    }
    const std::vector<double> v(column(j).begin(), column(j).end());
    system.solution(v, column(j));
    const auto at = static_cast<std::size_t>(j);
    std::tie(info.values[at], info.residuals[at]) = checked(a, column(j));
  });
  info.converged = std::ranges::count_if(info.residuals,
                                         [enough](double residual) { return residual <= enough; });
  info.orthogonality = method.found() > 0 ? method.orthogonality() : 0;
  info.ok = method.finished() && info.converged == options.k;
  if (!info.ok && info.orthogonality > kOrthogonalityMax) {
    info.why += fmt::format("{}vectors by {} are orthonormal to {:.1e} only: auto or cgs2 would do",
                            info.why.empty() ? "" : "; ", to_string(options.orthogonalization),
                            info.orthogonality);
  }
  if (!info.ok && info.why.empty())
    info.why = fmt::format("{} of {} pairs are within {:.1e} of the largest row sum of |A|",
                           info.converged, options.k, options.tolerance);
  info.seconds = method.seconds();
  info.report = method.take_report();
  info.seconds.host =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() -
      info.seconds.total();
  return info;
}

}  // namespace strata
