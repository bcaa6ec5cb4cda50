// Bounds of eigenvalues.
//
// Method: for symmetric A and v of length 1 some eigenvalue lies within ‖A·v − θ·v‖₂ of θ (Parlett,
// "The symmetric eigenvalue problem", 1998, 4.5). A closer bound by the square of the residual over
// the distance to the next eigenvalue is not used: that no eigenvalue lies between is not known.

#include "krylov/eigen_certificate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "krylov/linear_system.hpp"
#include "krylov/twofold.hpp"
#include "strata/krylov.hpp"

namespace strata {
namespace {

/// ‖|A|·|v|‖₂.
double terms_of(const SparseMatrix& a, std::span<const double> v) {
  std::vector<double> sums(v.size());
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (std::int64_t k = a.start[row]; k < a.start[row + 1]; ++k) {
      const auto e = static_cast<std::size_t>(k);
      sums[row] += std::abs(a.value[e] * v[static_cast<std::size_t>(a.column[e])]);
    }
  }
  return norm_of(sums);
}

}  // namespace

CertifiedPair certified(const CertifiedMatrix& of, std::span<const double> v, double tolerance) {
  constexpr double kSum = 0x1p-30;       // the sum of the squares of a residual, generously
  constexpr double kTwofold = 0x1p-100;  // a product in twice the precision, of its terms
  constexpr double kUnderflow = 0x1p-1000;
  constexpr double kZero = 100;  // convergence is beside ‖A‖, which may be so much larger
  constexpr double kMargin = 0.1;
  const TwofoldVector product = multiply_twofold(of.a, v);
  double quotient = 0;
  double square = 0;
  for (std::size_t i = 0; i < v.size(); ++i) {
    quotient += v[i] * product.hi[i];
    square += v[i] * v[i];
  }
  CertifiedPair pair;
  pair.value = quotient / square;
  pair.residual = norm_of(minus_multiple(product, pair.value, v));
  const double length = std::sqrt(square);
  pair.bound = pair.residual / length * (1 + 2 * kSum) + of.asymmetry;
  const double magnitude = std::abs(pair.value);
  const bool told_apart = of.margin <= kMargin * magnitude;
  if (told_apart && pair.bound <= kEigsResolved * magnitude &&
      kTwofold * of.norm <= kSum * pair.bound)
    return pair;
  const double terms = terms_of(of.a, v) / length;
  pair.bound += kTwofold * terms + kUnderflow;
  const double small = kZero * tolerance * terms;
  const bool zero = std::max({magnitude, pair.bound, kMargin * of.margin}) <= small ||
                    pair.bound <= kTwofold * of.smallest;
  pair.unresolved = !((told_apart && pair.bound <= kEigsResolved * magnitude) || zero);
  return pair;
}

double smallest_of(const SparseMatrix& a, int exponent) {
  double least = std::numeric_limits<double>::infinity();
  for (const double value : a.value)
    if (value != 0) least = std::min(least, std::abs(value));
  return std::isinf(least) ? 1 : std::ldexp(least, exponent);
}

double asymmetry_of(const SparseMatrix& a) {
  if (!find_asymmetry(a, 0).found) return 0;
  std::vector<std::int64_t> row, col;
  std::vector<double> value;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const auto place = static_cast<std::size_t>(i);
    for (std::int64_t k = a.start[place]; k < a.start[place + 1]; ++k) {
      const auto e = static_cast<std::size_t>(k);
      row.insert(row.end(), {i, a.column[e]});
      col.insert(col.end(), {a.column[e], i});
      value.insert(value.end(), {a.value[e], -a.value[e]});
    }
  }
  const SparseMatrix skew = sparse_from_entries(a.rows, a.cols, row, col, value);
  double largest = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i) {
    double sum = 0;
    for (std::int64_t k = skew.start[i]; k < skew.start[i + 1]; ++k)
      sum += std::abs(skew.value[static_cast<std::size_t>(k)]);
    largest = std::max(largest, sum);
  }
  return largest / 2;
}

}  // namespace strata
