// Columns of a triangle one after the other, or spans of its first columns from the last one back.
//
// Method: Householder's reflections in double-double (Golub and Van Loan, Matrix Computations,
// 5.2). A column that is to be dropped leaves its distance from those kept before it. That is
// rounding where R tells those apart. Kept columns that differ by less than the rounding of R are
// told apart by it alone: then the direction that one of them adds is any, and a column that is
// dropped behind them leaves as much as all of it. But the first j columns of R are within rounding
// of a matrix of rank k, k of them being kept. So there is a span of k dimensions near all of them,
// that of a QR factorization with column pivoting (Golub and Van Loan, 5.4), and within it one for
// each smaller j: spans are chosen from the last column back. What they leave of a column at each
// change of rank is orthogonal to what they left before.

#include "qr/narrowed_factor.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

namespace strata {
namespace {

using Wide = SquareMatrix<DoubleDouble>;

/// I − 2·v·vᵀ, v of length 1, zero above `first`.
struct Reflection {
  std::int64_t first = 0;
  std::vector<DoubleDouble> v;

  void apply(DoubleDouble* x) const {
    DoubleDouble sum;
    for (std::size_t i = 0; i < v.size(); ++i)
      sum = sum + v[i] * x[first + static_cast<std::int64_t>(i)];
    const DoubleDouble twice = scaled(sum, 2);
    for (std::size_t i = 0; i < v.size(); ++i) {
      DoubleDouble& value = x[first + static_cast<std::int64_t>(i)];
      value = subtract_product(value, twice, v[i]);
    }
  }
};

/// That which takes x to a multiple of the unit vector `first`.
Reflection reflection_of(const DoubleDouble* x, std::int64_t first, std::int64_t n) {
  Reflection h{first, std::vector<DoubleDouble>(x + first, x + n)};
  DoubleDouble square;
  for (const DoubleDouble& value : h.v) square = square + value * value;
  if (!(square.hi > 0)) {
    h.v.assign(1, DoubleDouble());
    return h;
  }
  const DoubleDouble length = square_root(square);
  h.v[0] = h.v[0].hi > 0 ? h.v[0] + length : h.v[0] - length;
  DoubleDouble own;
  for (const DoubleDouble& value : h.v) own = own + value * value;
  const DoubleDouble by = square_root(own);
  for (DoubleDouble& value : h.v) value = value / by;
  return h;
}

double length_of(const DoubleDouble* x, std::int64_t from, std::int64_t n) {
  double square = 0;
  for (std::int64_t i = from; i < n; ++i) square += x[i].hi * x[i].hi;
  return std::sqrt(square);
}

/// R with columns of lengths near 1, so that no square over- or underflows; power: what each was
/// divided by.
Wide in_range(const Wide& r, std::vector<double>& power) {
  Wide rest(r.n);
  for (std::int64_t j = 0; j < r.n; ++j) {
    double largest = 0;
    for (std::int64_t i = 0; i <= j; ++i) largest = std::max(largest, std::abs(r(i, j).hi));
    int exponent = 0;
    if (largest > 0) std::frexp(largest, &exponent);
    power.push_back(std::ldexp(1.0, std::clamp(exponent, -1000, 1000)));
    for (std::int64_t i = 0; i <= j; ++i) rest(i, j) = scaled(r(i, j), 1 / power.back());
  }
  return rest;
}

/// Row i of R' and column i of C change their signs where the diagonal is negative.
void make_diagonal_positive(NarrowedFactor& factor) {
  const std::int64_t n = factor.r.n;
  for (std::int64_t k = 0; k < n; ++k) {
    if (!(factor.r(k, k).hi < 0)) continue;
    for (std::int64_t i = 0; i < n; ++i) factor.c(i, k) = -factor.c(i, k);
    for (std::int64_t j = k; j < n; ++j) factor.r(k, j) = -factor.r(k, j);
  }
}

/// Column by column; drops: whether the column of that number goes, at that distance from those
/// kept before it and of that length, both beside its power.
NarrowedFactor forward(Wide rest, const std::vector<double>& power,
                       const std::function<bool(std::int64_t, double, double)>& drops) {
  const std::int64_t n = rest.n;
  NarrowedFactor result{Wide(n), Wide(n), {}};
  std::vector<Reflection> reflections;
  std::vector<std::int64_t> kept;
  for (std::int64_t j = 0; j < n; ++j) {
    DoubleDouble* column = rest.values.data() + j * n;
    for (const Reflection& h : reflections) h.apply(column);
    const std::int64_t at = std::ssize(kept);
    const double length = length_of(column, 0, n);
    const double distance = length_of(column, at, n);
    if (drops(j, distance, length)) {
      result.dropped.push_back(j);
      if (length > 0) result.left = std::max(result.left, distance / length);
    } else {
      reflections.push_back(reflection_of(column, at, n));
      reflections.back().apply(column);
      kept.push_back(j);
    }
    const double back = power[static_cast<std::size_t>(j)];
    for (std::size_t i = 0; i < kept.size(); ++i) result.r(kept[i], j) = scaled(column[i], back);
  }
  for (std::size_t k = 0; k < kept.size(); ++k) {
    DoubleDouble* column = result.c.values.data() + kept[k] * n;
    column[k] = DoubleDouble(1.0);
    for (auto h = reflections.rbegin(); h != reflections.rend(); ++h) h->apply(column);
  }
  make_diagonal_positive(result);
  return result;
}

/// Spans of the first columns, each within the next one. In doubles: what R is off by is theirs.
class NestedSpans {
 public:
  explicit NestedSpans(const Wide& rest)
      : n_(rest.n),
        a_(rounded(rest)),
        basis_(SquareMatrix<double>::identity(n_)),
        lost_(static_cast<std::size_t>(n_)),
        v_(lost_) {}

  NarrowedFactor narrowed(const std::vector<double>& power,
                          const std::vector<std::int64_t>& dropped) {
    std::vector<double> lengths;
    for (std::int64_t j = 0; j < n_; ++j) lengths.push_back(std::sqrt(square_of(j, 0, n_)));
    NarrowedFactor result{Wide(n_), Wide(n_), dropped};
    const std::int64_t rank = n_ - std::ssize(dropped);
    shrink(n_, n_, rank);
    std::vector<std::int64_t> of_row;  // kept columns, the last one first
    std::int64_t dimensions = rank;
    std::int64_t end = n_;
    const auto is_dropped = [&](std::int64_t j) {
      return std::binary_search(dropped.begin(), dropped.end(), j);
    };
    while (dimensions > 0) {
      while (is_dropped(end - 1)) --end;
      std::int64_t begin = end - 1;
      while (begin > 0 && !is_dropped(begin - 1)) --begin;
      const std::int64_t before = dimensions - (end - begin);
      shrink(dimensions, begin, before);
      for (std::int64_t j = begin; j < end; ++j) reflect(j, before + j - begin, dimensions);
      for (std::int64_t j = end - 1; j >= begin; --j) of_row.push_back(j);
      dimensions = before;
      end = begin;
    }
    std::reverse(of_row.begin(), of_row.end());
    for (std::int64_t i = 0; i < rank; ++i) {
      const std::int64_t k = of_row[static_cast<std::size_t>(i)];
      for (std::int64_t j = k; j < n_; ++j)
        result.r(k, j) = DoubleDouble(a_(i, j) * power[static_cast<std::size_t>(j)]);
      for (std::int64_t j = 0; j < n_; ++j) result.c(j, k) = DoubleDouble(basis_(j, i));
    }
    for (std::size_t j = 0; j < lost_.size(); ++j)
      if (lengths[j] > 0) result.left = std::max(result.left, std::sqrt(lost_[j]) / lengths[j]);
    make_diagonal_positive(result);
    return result;
  }

 private:
  static SquareMatrix<double> rounded(const Wide& rest) {
    SquareMatrix<double> a(rest.n);
    for (std::size_t i = 0; i < rest.values.size(); ++i) a.values[i] = rest.values[i].hi;
    return a;
  }
  [[nodiscard]] double square_of(std::int64_t j, std::int64_t from, std::int64_t to) const {
    double square = 0;
    for (std::int64_t i = from; i < to; ++i) square += a_(i, j) * a_(i, j);
    return square;
  }

  /// Rows 0 … to − 1 of the first columns become those of a span of `to` dimensions near them; the
  /// rest of rows 0 … from − 1 is lost.
  void shrink(std::int64_t from, std::int64_t columns, std::int64_t to) {
    if (from == to) return;
    std::vector<std::int64_t> left(static_cast<std::size_t>(columns));
    std::iota(left.begin(), left.end(), 0);
    for (std::int64_t k = 0; k < to && !left.empty(); ++k) {
      double largest = -1;
      auto pivot = left.begin();
      for (auto j = left.begin(); j != left.end(); ++j) {
        const double square = square_of(*j, k, from);
        if (square > largest) {
          largest = square;
          pivot = j;
        }
      }
      reflect(*pivot, k, from);
      left.erase(pivot);
    }
    for (std::int64_t j = 0; j < columns; ++j) {
      lost_[static_cast<std::size_t>(j)] += square_of(j, to, from);
      for (std::int64_t i = to; i < from; ++i) a_(i, j) = 0;
    }
  }

  /// Takes rows from … to − 1 of column j to a multiple of the first of them.
  void reflect(std::int64_t j, std::int64_t from, std::int64_t to) {
    const double length = std::sqrt(square_of(j, from, to));
    if (!(length > 0)) return;
    for (std::int64_t i = from; i < to; ++i) at(i) = a_(i, j) / length;
    const double sign = at(from) > 0 ? 1 : -1;
    const double by = 1 / (1 + std::abs(at(from)));  // 2/‖v‖²
    at(from) += sign;
    for (std::int64_t k = 0; k < n_; ++k) {
      double sum = 0;
      for (std::int64_t i = from; i < to; ++i) sum += at(i) * a_(i, k);
      sum *= by;
      for (std::int64_t i = from; i < to; ++i) a_(i, k) -= sum * at(i);
    }
    for (std::int64_t i = from + 1; i < to; ++i) a_(i, j) = 0;
    std::vector<double> sums(static_cast<std::size_t>(n_));
    for (std::int64_t i = from; i < to; ++i)
      for (std::int64_t k = 0; k < n_; ++k)
        sums[static_cast<std::size_t>(k)] += basis_(k, i) * at(i);
    for (std::int64_t i = from; i < to; ++i)
      for (std::int64_t k = 0; k < n_; ++k)
        basis_(k, i) -= sums[static_cast<std::size_t>(k)] * by * at(i);
  }
  double& at(std::int64_t i) { return v_[static_cast<std::size_t>(i)]; }

  std::int64_t n_;
  SquareMatrix<double> a_;      ///< columns in the basis
  SquareMatrix<double> basis_;  ///< its columns
  std::vector<double> lost_;    ///< of each column, squared
  std::vector<double> v_;       ///< of a reflection
};

}  // namespace

NarrowedFactor narrowed_factor(const Wide& r, const std::vector<std::int64_t>& dropped) {
  std::vector<double> power;
  const Wide rest = in_range(r, power);
  NarrowedFactor result = forward(rest, power, [&](std::int64_t j, double, double) {
    return std::binary_search(dropped.begin(), dropped.end(), j);
  });
  // Little enough not to be told from the rounding of R.
  if (result.left <= 4 * std::sqrt(static_cast<double>(r.n)) * 0x1p-53) return result;
  NarrowedFactor nested = NestedSpans(rest).narrowed(power, dropped);
  return nested.left < result.left ? nested : result;
}

NarrowedFactor narrowed_factor(const Wide& r, const std::vector<double>& lengths,
                               double tolerance) {
  std::vector<double> power;
  const Wide rest = in_range(r, power);
  return forward(rest, power, [&](std::int64_t j, double distance, double length) {
    const auto at = static_cast<std::size_t>(j);
    return distance <= tolerance * (lengths.empty() ? length : lengths[at] / power[at]);
  });
}

}  // namespace strata
