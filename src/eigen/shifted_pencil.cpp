#include "eigen/shifted_pencil.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.hpp"
#include "base/index.hpp"
#include "matrix/symmetry.hpp"

namespace strata {
namespace {

/// A − σ·M, with an entry wherever one of them has one.
SparseMatrix shifted(const SparseMatrix& a, const SparseMatrix& m, double sigma) {
  std::vector<std::int64_t> rows, cols;
  std::vector<double> values;
  const auto add = [&](const SparseMatrix& from, double times) {
    for (std::int64_t i = 0; i < from.rows; ++i) {
      for (std::int64_t e = from.start[at(i)]; e < from.start[at(i + 1)]; ++e) {
        rows.push_back(i);
        cols.push_back(from.column[at(e)]);
        values.push_back(times * from.value[at(e)]);
      }
    }
  };
  add(a, 1);
  add(m, -sigma);
  return sparse_from_entries(a.rows, a.rows, rows, cols, values);
}

std::vector<double> diagonal(const SparseMatrix& m) {
  std::vector<double> diagonal(at(m.rows), 0);
  for (std::int64_t i = 0; i < m.rows; ++i)
    for (std::int64_t e = m.start[at(i)]; e < m.start[at(i + 1)]; ++e)
      if (m.column[at(e)] == i) diagonal[at(i)] = m.value[at(e)];
  return diagonal;
}

}  // namespace

SparseMatrix symmetric_part(const SparseMatrix& a, const char* name) {
  require(a.rows == a.cols, ErrorKind::misuse, kEigsWhere, "{} is {} by {}, and not square", name,
          a.rows, a.cols);
  require_well_formed(a);
  const Asymmetry pair = find_asymmetry(a, kSymmetryTolerance);
  require(!std::isnan(pair.value) && !std::isnan(pair.transposed), ErrorKind::input, kEigsWhere,
          "element ({}, {}) of {} is {} and ({}, {}) is {}, counted from 0", pair.row, pair.col,
          name, pair.value, pair.col, pair.row, pair.transposed);
  require(!pair.found, ErrorKind::numerical, kEigsWhere,
          "{} is not symmetric: element ({}, {}) is {} and ({}, {}) is {}, counted from 0", name,
          pair.row, pair.col, pair.value, pair.col, pair.row, pair.transposed);
  std::vector<std::int64_t> rows, cols;
  std::vector<double> values;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t e = a.start[at(i)]; e < a.start[at(i + 1)]; ++e) {
      const std::int64_t j = a.column[at(e)];
      const double value = a.value[at(e)];
      require(std::isfinite(value), ErrorKind::input, kEigsWhere,
              "element ({}, {}) of {} is {}, counted from 0", i, j, name, value);
      for (const auto& [r, c] : {std::pair(i, j), std::pair(j, i)}) {
        rows.push_back(r);
        cols.push_back(c);
        values.push_back(value / 2);
      }
    }
  }
  return sparse_from_entries(a.rows, a.rows, rows, cols, values);
}

bool ShiftedPencil::factor_at(double sigma) {
  sigma_ = sigma;
  ++factorizations_;
  const double shift = mass_ ? 0 : -sigma;
  if (mass_) matrix_ = shifted(a_, *mass_, sigma);
  if (factor_ == nullptr) {
    SparseCholeskyOptions options = options_;
    options.shift = shift;
    factor_ = std::make_unique<SparseCholesky>(factored(), options);
  } else {
    (void)factor_->refactor(factored(), shift);
  }
  return factor_->info().ok &&
         !numerically_singular(factor_->scaled_condition(factored()), Element::fp64);
}

double ShiftedPencil::scale() const {
  const std::vector<double> of_a = diagonal(a_);
  const std::vector<double> of_m = mass_ ? diagonal(*mass_) : std::vector<double>(of_a.size(), 1);
  double most = 0;
  for (std::size_t i = 0; i < of_a.size(); ++i) most = std::max(most, std::abs(of_a[i]) / of_m[i]);
  return most > 0 && std::isfinite(most) ? most : 1;
}

void find_sigma(ShiftedPencil& pencil, const std::optional<double>& given) {
  if (given) {
    require(std::isfinite(*given), ErrorKind::misuse, kEigsWhere, "a sigma of {}", *given);
    const bool found = pencil.factor_at(*given);
    const FactorInfo& info = pencil.factor().info();
    require(found, ErrorKind::numerical, kEigsWhere,
            "sigma = {:.6g} is not below all eigenvalues: A - sigma*M is {}; a smaller one would "
            "do, or none",
            *given,
            info.ok ? "singular to rounding"
                    : fmt::format("not positive definite (pivot {} is {:.3g}, counted from 0)",
                                  info.first_bad_pivot, info.bad_pivot));
    return;
  }
  if (pencil.factor_at(0)) return;
  constexpr double kFirst = 1e-6;
  constexpr double kStep = 100;
  const double scale = pencil.scale();
  for (double share = kFirst; share < 1e9; share *= kStep)
    if (pencil.factor_at(-share * scale)) return;
  fail(ErrorKind::numerical, kEigsWhere,
       "no sigma was found below the eigenvalues: {:.3g} is not; --sigma gives one",
       pencil.sigma());
}

}  // namespace strata
