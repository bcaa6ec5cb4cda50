// What a sparse factor leaves unsaid of the matrix, measured: conditions, and errors of what
// follows from L alone.
//
// Method of factor_errors: with F = L⁻¹·A·L⁻ᵀ − I, what was lost on the way to L,
//   log det A − log det L·Lᵀ = tr log(I + F),  (A⁻¹)_ii = yᵀ·(I + F)⁻¹·y with yᵀ·y = (L⁻ᵀ·L⁻¹)_ii,
// so that the first is about tr F, and ‖F‖₂/(1 − ‖F‖₂) bounds the relative error of every variance,
// however ill-conditioned A is. Products of F with random signs v have E vᵀ·F·v = tr F with
// variance at most 2·‖F‖_F² and E ‖F·v‖² = ‖F‖_F² (Hutchinson 1990); a second product finds a
// single large eigenvalue, for which few probes are a poor sample.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "base/random.hpp"
#include "dense/inverse_norm.hpp"
#include "sparse/ordering/pattern.hpp"
#include "sparse/symmetric_system.hpp"
#include "strata/sparse_factor.hpp"

namespace strata {
namespace {

constexpr std::int64_t kProbes = 8;
constexpr double kRoundingMargin = 4;  // sums of the sweeps and of the inverse are rounded as L was

void require_factored(const SparseCholesky& factor, const SparseMatrix& a) {
  require_same_pattern(factor.analysis(), a);
  require(factor.info().ok, ErrorKind::misuse, "factor", "there is no factor to measure");
}

/// F.
class Loss {
 public:
  Loss(const SparseCholesky& factor, const SparseMatrix& a)
      : factor_(factor),
        system_(a, factor.shift(), factor.exponent()),
        half_(factor.exponent() / 2) {}

  [[nodiscard]] std::int64_t n() const { return system_.n(); }
  [[nodiscard]] const SymmetricSystem& system() const noexcept { return system_; }

  [[nodiscard]] DenseBlock times(const DenseBlock& v) const {
    DenseBlock w = v;
    factor_.solve_lower_transposed(w.view());
    scale(w, half_);
    DenseBlock y(n(), v.cols());
    system_.multiply(std::as_const(w).view(), y.view());
    factor_.solve_lower(y.view());
    scale(y, half_);
    for (std::int64_t j = 0; j < v.cols(); ++j) add_scaled(n(), -1, v.column(j), y.column(j));
    return y;
  }

 private:
  void scale(DenseBlock& x, int exponent) const {
    if (exponent == 0) return;
    for (std::int64_t j = 0; j < x.cols(); ++j)
      for (std::int64_t i = 0; i < n(); ++i) x.column(j)[i] = std::scalbn(x.column(j)[i], exponent);
  }

  const SparseCholesky& factor_;
  SymmetricSystem system_;
  int half_;
};

struct LossNorms {
  double trace = 0;  ///< |tr F|, at most about
  double norm = 0;   ///< of F
};

LossNorms norms_of(const Loss& loss) {
  const std::int64_t n = loss.n();
  const bool exact = n <= kProbes;
  DenseBlock v(n, exact ? n : kProbes);
  for (std::int64_t j = 0; j < v.cols(); ++j)
    for (std::int64_t i = 0; i < n; ++i)
      v.column(j)[i] = exact ? (i == j ? 1 : 0)
                       : (random_bits(static_cast<std::uint64_t>(j + 1), at(i)) & 1U) != 0U ? 1
                                                                                            : -1;
  DenseBlock w = loss.times(v);
  double trace = 0;
  double squares = 0;
  for (std::int64_t j = 0; j < v.cols(); ++j) {
    trace += dot(n, v.column(j), w.column(j));
    squares += dot(n, w.column(j), w.column(j));
  }
  if (exact) return {std::abs(trace), std::sqrt(squares)};
  LossNorms result;
  const double frobenius = std::sqrt(squares / kProbes);
  result.trace = std::abs(trace / kProbes) + 4 * std::sqrt(2.0 / kProbes) * frobenius;
  result.norm = frobenius;
  std::vector<double> before(kProbes);
  for (std::int64_t j = 0; j < kProbes; ++j) {
    const double length = std::sqrt(dot(n, w.column(j), w.column(j)));
    if (length > 0)
      for (std::int64_t i = 0; i < n; ++i) w.column(j)[i] /= length;
  }
  w = loss.times(w);
  for (std::int64_t j = 0; j < kProbes; ++j)
    result.norm = std::max(result.norm, std::sqrt(dot(n, w.column(j), w.column(j))));
  return result;
}

/// What rounding the logarithms of the pivots does, which are at most the diagonal of A.
double rounding_of_logarithms(const SymmetricSystem& system, double log_determinant) {
  double sizes = 0;
  double all = 0;
  for (const double value : system.diagonal()) {
    sizes += std::abs(std::log(value));
    all += std::log(value);
  }
  return 2 * kUnitRoundoff *
         (sizes + std::max(all - log_determinant, 0.0) + std::abs(log_determinant));
}

}  // namespace

double SparseCholesky::condition(const SparseMatrix& a) const {
  require_factored(*this, a);
  if (n() == 0) return 0;
  const SymmetricSystem system(a, shift(), exponent());
  return system.norm() *
         estimate_symmetric_norm(n(), [this](MatrixView<double> b) { solve_in_range(b); });
}

double SparseCholesky::scaled_condition(const SparseMatrix& a) const {
  require_factored(*this, a);
  if (n() == 0) return 1;
  const SymmetricSystem system(a, shift(), exponent());
  return system.scaled_norm() *
         estimate_scaled_inverse_norm(system.roots(),
                                      [this](MatrixView<double> b) { solve_in_range(b); });
}

FactorErrors factor_errors(const SparseCholesky& factor, const SparseMatrix& a) {
  require_factored(factor, a);
  if (factor.n() == 0) return {};
  const Loss loss(factor, a);
  LossNorms norms = norms_of(loss);
  if (const double lost = loss.system().loss().scaled_norm; lost > 0) {
    // ‖L⁻¹·E·L⁻ᵀ‖₂ of digits E that the range took is at most that of E, scaled, times ‖S⁻¹‖.
    const double of_inverse = lost * factor.scaled_condition(a);
    norms.norm += of_inverse;
    norms.trace += static_cast<double>(factor.n()) * of_inverse;
  }
  const double norm = kRoundingMargin * (norms.norm + kUnitRoundoff);
  if (!(norm < 0.5)) {
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    return {kUnknown, kUnknown};
  }
  const double of_scale =
      static_cast<double>(factor.exponent()) * static_cast<double>(factor.n()) * std::log(2.0);
  const double in_range = factor.info().log_determinant - of_scale;
  FactorErrors errors;
  errors.inverse = norm / (1 - norm);
  errors.log_determinant = kRoundingMargin / 2 * norms.trace + norm * norm / (1 - norm) +
                           2 * static_cast<double>(factor.n()) * kUnitRoundoff +
                           rounding_of_logarithms(loss.system(), in_range) +
                           2 * kUnitRoundoff * std::abs(factor.info().log_determinant) +
                           // The logarithm of 2 is rounded, and so is its product.
                           4 * kUnitRoundoff * std::abs(of_scale);
  return errors;
}

}  // namespace strata
