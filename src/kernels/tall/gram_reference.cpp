// Reference gram and its relatives: gram.hpp word for word, one pair of columns and one lane after
// the other.

#include "kernels/tall/eight_solve.hpp"
#include "kernels/tall/gram.hpp"
#include "kernels/tall/gram_digits.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/backend/operand.hpp"
#include "scalar/dispatch.hpp"

namespace strata {
namespace reference {
namespace {

/// A column as numbers of type Real, zeros behind its rows up to a whole number of tiles.
template <class Real>
using Column = std::vector<Real>;

template <class Real, class T>
std::vector<Column<Real>> columns_of(const BlockView& v, const double* d) {
  const auto from = matrix_of<const T>(v);
  const std::int64_t tiles = (v.rows + kGramTileRows - 1) / kGramTileRows;
  std::vector<Column<Real>> columns;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    Column<Real> column(static_cast<std::size_t>(tiles * kGramTileRows));
    for (std::int64_t r = 0; r < v.rows; ++r) {
      const double scale = d == nullptr ? 1.0 : d[j];
      column[static_cast<std::size_t>(r)] =
          static_cast<Real>(static_cast<double>(from(r, j)) * scale);
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

/// The biased exponent of the largest magnitude, that of double's format.
int exponent_field(const double* x) {
  double largest = 0;
  for (int r = 0; r < kGramTileRows; ++r)
    largest = std::abs(x[r]) > largest ? std::abs(x[r]) : largest;
  return static_cast<int>(std::bit_cast<std::uint64_t>(largest) >> 52);
}

/// 1.5·2^k of two columns whose magnitudes are below 2^(field − 1022).
double extraction_start(int field_x, int field_y) {
  const int biased = field_x + field_y - 1015;  // k = (fx − 1022) + (fy − 1022) + 6, and 1023
  if (biased > 2046) return std::numeric_limits<double>::infinity();
  return std::bit_cast<double>(static_cast<std::uint64_t>(biased < 1 ? 1 : biased) << 52 |
                               std::uint64_t{1} << 51);
}

/// One tile of one lane, x and y at its first row.
template <class Real>
void add_tile(Real& sum, const Real* x, const Real* y, std::uint32_t, Real) {
  Real tile = 0;
  for (int k = 0; k < kGramLaneRows; ++k) tile = fused(x[k * kGramLanes], y[k * kGramLanes], tile);
  sum += tile;
}

void add_tile(DoubleDouble& sum, const double* x, const double* y, std::uint32_t variant,
              double start) {
  double a = start;
  double low = 0;
  for (int k = 0; k < kGramLaneRows; ++k) {
    const double xk = x[k * kGramLanes];
    const double yk = y[k * kGramLanes];
    if (variant == kExtraction) {
      const double t = fused(xk, yk, a);
      low += fused(xk, yk, -(t - a));
      a = t;
      continue;
    }
    const DoubleDouble product = two_product(xk, yk);
    if (variant == kCray) sum = add_cray(sum, product);
    if (variant == kIeee) sum = sum + product;
    if (variant == kDot2) {
      const DoubleDouble s = two_sum(sum.hi, product.hi);
      sum = {s.hi, sum.lo + (s.lo + product.lo)};
    }
  }
  if (variant == kExtraction) sum = add_cray(sum, DoubleDouble{a - start, low});
}

double sum_of(const std::array<double, kGramLanes>& lane, std::uint32_t) {
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}
float sum_of(const std::array<float, kGramLanes>& lane, std::uint32_t) {
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}
DoubleDouble sum_of(std::array<DoubleDouble, kGramLanes> lane, std::uint32_t variant) {
  if (variant == kDot2) {
    for (DoubleDouble& x : lane) x = fast_two_sum(x.hi, x.lo);
  }
  return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

// ---- by digits

using Digits = std::array<std::int32_t, kDigits>;
/// Takes the digit of least weight from a number.
std::int32_t take_digit(long long& x) {
  const long long digit = ((x + 128) & 255) - 128;
  x = (x - digit) / 256;
  return static_cast<std::int32_t>(digit);
}
Digits digits_of(double x, int exponent) {
  const double scaled = std::ldexp(x, 46 - exponent);
  const double first = std::nearbyint(scaled);
  const double rest = (scaled - first) * 0x1p48;
  const double second = std::nearbyint(rest);
  // In units of the last digit: 48 bits, of which the last eight are rounded.
  long long lower = static_cast<long long>(second) * 256 +
                    static_cast<long long>(std::nearbyint((rest - second) * 256));
  long long upper = static_cast<long long>(first);
  Digits digits{};
  for (std::size_t k = kDigits; k-- > 6;) digits[k] = take_digit(lower);
  upper += lower;
  for (std::size_t k = 6; k-- > 0;) digits[k] = take_digit(upper);
  return digits;
}

/// A column as digits, and the biased exponents of every 32 rows, which rise within a unit.
struct DigitColumn {
  explicit DigitColumn(const Column<double>& x) : digits(x.size()) {
    for (std::size_t row = 0; row < x.size(); row += kDigitRows) {
      int field = row % kGramUnitRows == 0 ? 0 : fields.back();
      for (std::size_t r = row; r < row + kDigitRows; ++r)
        field = std::max(field, static_cast<int>(std::bit_cast<std::uint64_t>(x[r]) >> 52 & 0x7ff));
      fields.push_back(field);
      if (field == kNoNumber) continue;
      for (std::size_t r = row; r < row + kDigitRows; ++r)
        digits[r] = digits_of(x[r], digit_exponent(field));
    }
  }
  std::vector<Digits> digits;
  std::vector<int> fields;
};

/// What exact sums S₀ … S₁₂ are, of two columns with these exponents.
DoubleDouble part_of(const Digits& of, int field_x, int field_y) {
  if (field_x == kNoNumber || field_y == kNoNumber)
    return DoubleDouble{std::numeric_limits<double>::quiet_NaN(), 0};
  const auto of_weights = [&of](std::size_t first, std::size_t count) {
    long long sum = 0;
    for (std::size_t k = first; k < first + count; ++k) sum = sum * 256 + of[k];
    return static_cast<double>(sum);
  };
  const double a = of_weights(0, 4) * 0x1p32;
  const double b = of_weights(4, 4);
  const double h = a + b;
  const double l = (b - (h - a)) + (of_weights(8, 3) * 0x1p-24 + of_weights(11, 2) * 0x1p-40);
  const int exponent = digit_exponent(field_x) + digit_exponent(field_y) - 68;
  const int near = std::clamp(exponent, -1000, 1000);  // where one factor would be too much
  const auto scaled = [=](double x) {
    return x * std::ldexp(1.0, near) * std::ldexp(1.0, exponent - near);
  };
  return {scaled(h), scaled(l)};
}

/// xᵀy of the rows of a unit.
DoubleDouble dot_of_unit(const DigitColumn& x, const DigitColumn& y, std::size_t unit) {
  constexpr std::size_t kPieces = kGramUnitRows / kDigitRows;
  const std::size_t begin = unit * kPieces;
  const std::size_t end = std::min(x.fields.size(), begin + kPieces);
  DoubleDouble sum{};
  Digits sums{};  // less than 2^28
  for (std::size_t piece = begin; piece < end; ++piece) {
    for (std::size_t r = piece * kDigitRows; r < (piece + 1) * kDigitRows; ++r) {
      for (std::size_t i = 0; i < kDigits; ++i) {
        for (std::size_t j = 0; i + j < kDigits; ++j)
          sums[i + j] += x.digits[r][i] * y.digits[r][j];
      }
    }
    const bool same = piece + 1 < end && x.fields[piece + 1] == x.fields[piece] &&
                      y.fields[piece + 1] == y.fields[piece];
    if (same) continue;
    sum = add_cray(sum, part_of(sums, x.fields[piece], y.fields[piece]));
    sums = {};
  }
  return sum;
}

/// xᵀy of the rows of a unit.
template <class W, class Real>
W dot_of_unit(const Column<Real>& x, const Column<Real>& y, std::size_t unit,
              std::uint32_t variant) {
  std::array<W, kGramLanes> lanes{};
  const std::size_t end = std::min(x.size(), (unit + 1) * kGramUnitRows);
  for (std::size_t tile = unit * kGramUnitRows; tile < end; tile += kGramTileRows) {
    Real start = 0;
    if constexpr (std::is_same_v<W, DoubleDouble>)
      start = extraction_start(exponent_field(&x[tile]), exponent_field(&y[tile]));
    for (std::size_t lane = 0; lane < kGramLanes; ++lane)
      add_tile(lanes[lane], &x[tile + lane], &y[tile + lane], variant, start);
  }
  return sum_of(lanes, variant);
}

/// The sum of `count` units from `first` on, of which of_unit(unit) is one.
template <class W, class OfUnit>
W sum_of_units(const OfUnit& of_unit, std::size_t first, std::size_t count) {
  if (count == 1) return of_unit(first);
  const std::size_t half = std::bit_ceil(count) / 2;
  return sum_of_units<W>(of_unit, first, half) +
         sum_of_units<W>(of_unit, first + half, count - half);
}
std::size_t units_of(std::size_t rows) { return (rows + kGramUnitRows - 1) / kGramUnitRows; }
/// xᵀy in W.
template <class W, class Real>
W dot(const Column<Real>& x, const Column<Real>& y, std::uint32_t variant) {
  if (x.empty()) return W{};
  return sum_of_units<W>([&](std::size_t unit) { return dot_of_unit<W>(x, y, unit, variant); }, 0,
                         units_of(x.size()));
}
/// The same in double-double by digits.
DoubleDouble dot(const DigitColumn& x, const DigitColumn& y) {
  if (x.digits.empty()) return DoubleDouble{};
  return sum_of_units<DoubleDouble>([&](std::size_t unit) { return dot_of_unit(x, y, unit); }, 0,
                                    units_of(x.digits.size()));
}

/// What a sum in W of elements T is of: products of floats are exact in double.
template <class W>
using RealOf = std::conditional_t<std::is_same_v<W, float>, float, double>;

template <class W>
void gram_of(const BlockView& b, const std::vector<Column<RealOf<W>>>& x, std::uint32_t variant) {
  const auto out = matrix_of<W>(b);
  if constexpr (std::is_same_v<W, DoubleDouble>) {
    if (variant == kDigitSums) {
      const std::vector<DigitColumn> digits(x.begin(), x.end());
      for (std::size_t j = 0; j < digits.size(); ++j) {
        for (std::size_t i = 0; i <= j; ++i) {
          const auto row = static_cast<std::int64_t>(i);
          const auto col = static_cast<std::int64_t>(j);
          out(row, col) = out(col, row) = dot(digits[i], digits[j]);
        }
      }
      return;
    }
  }
  for (std::int64_t j = 0; j < b.cols; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      const auto& xi = x[static_cast<std::size_t>(i)];
      const auto& xj = x[static_cast<std::size_t>(j)];
      out(i, j) = out(j, i) = dot<W>(xi, xj, variant);
    }
  }
}

float next(float acc, float q, float r) { return fused(-q, r, acc); }
double next(double acc, double q, double r) { return fused(-q, r, acc); }
DoubleDouble next(const DoubleDouble& acc, const DoubleDouble& q, const DoubleDouble& r) {
  return subtract_product(acc, q, r);
}
double rounded(const DoubleDouble& x) { return x.hi; }
double rounded(double x) { return x; }
float rounded(float x) { return x; }

/// The columns of R from `first` on, on its diagonal.
struct EightTriangle {
  MatrixView<const double> r;
  std::int64_t first;
  double operator()(int i, int j) const {
    const bool there = first + j < r.cols;
    return there ? r(first + i, first + j) : (i == j ? 1.0 : 0.0);
  }
};

/// A row of eight columns, y, becomes the row of their quotients.
void solve_eight(const EightTriangle& r, double (&y)[kEightColumns]) {
  double t[kEightColumns][kEightColumns] = {};
  const auto u = [&](int i, int j) { return i == j ? 1.0 : r(i, j) / r(i, i); };
  bool good = true;
  for (int i = 0; i < kEightColumns; ++i)
    good = invert_row(i, u, t[i]) && divides_well(r(i, i)) && good;
  if (!good) {
    for (int j = 0; j < kEightColumns; ++j) {
      for (int i = 0; i < j; ++i) y[j] = fused(-y[i], r(i, j), y[j]);
      y[j] = y[j] / r(j, j);
    }
    return;
  }
  double q[kEightColumns] = {};
  for (int j = 0; j < kEightColumns; ++j)
    for (int k = 0; k <= j; ++k) q[j] = fused(y[k], t[k][j], q[j]);
  for (int j = 0; j < kEightColumns; ++j)
    for (int k = 0; k <= j; ++k) y[j] = fused(-q[k], u(k, j), y[j]);
  for (int j = 0; j < kEightColumns; ++j)
    for (int k = 0; k <= j; ++k) q[j] = fused(y[k], t[k][j], q[j]);
  for (int j = 0; j < kEightColumns; ++j) y[j] = q[j] * (1 / r(j, j));
}

/// X·R⁻¹, all in fp64.
std::vector<Column<double>> solved_by_eights(const BlockView& v, const BlockView& r,
                                             const double* d) {
  const auto factor = matrix_of<const double>(r);
  std::vector<Column<double>> q = columns_of<double, double>(v, d);
  for (std::int64_t k = 0; k < v.rows; ++k) {
    const auto at = [&](std::int64_t j) -> double& {
      return q[static_cast<std::size_t>(j)][static_cast<std::size_t>(k)];
    };
    for (std::int64_t first = 0; first < v.cols; first += kEightColumns) {
      const std::int64_t count = std::min<std::int64_t>(kEightColumns, v.cols - first);
      double y[kEightColumns] = {};
      for (std::int64_t j = 0; j < count; ++j) {
        y[j] = at(first + j);
        for (std::int64_t i = 0; i < first; ++i) y[j] = fused(-at(i), factor(i, first + j), y[j]);
      }
      solve_eight({factor, first}, y);
      for (std::int64_t j = 0; j < count; ++j) at(first + j) = y[j];
    }
  }
  return q;
}

/// X·R⁻¹, rounded to T. S: the element of R, and of the substitution.
template <class S, class T>
std::vector<Column<T>> solved(const BlockView& v, const BlockView& r, const double* d) {
  if constexpr (std::is_same_v<S, double> && std::is_same_v<T, double>)
    return solved_by_eights(v, r, d);
  const auto factor = matrix_of<const S>(r);
  using Real = RealOf<S>;
  const std::vector<Column<Real>> x = columns_of<Real, T>(v, d);
  std::vector<Column<T>> q(x.size(), Column<T>(x.empty() ? 0 : x[0].size()));
  std::vector<S> row(x.size());
  for (std::int64_t k = 0; k < v.rows; ++k) {
    for (std::int64_t j = 0; j < v.cols; ++j) {
      const auto column = static_cast<std::size_t>(j);
      S acc(x[column][static_cast<std::size_t>(k)]);
      for (std::int64_t i = 0; i < j; ++i)
        acc = next(acc, row[static_cast<std::size_t>(i)], factor(i, j));
      row[column] = acc / factor(j, j);
      q[column][static_cast<std::size_t>(k)] = static_cast<T>(rounded(row[column]));
    }
  }
  return q;
}

template <class W, class T>
void gram_of_solved(const BlockView& b, const std::vector<Column<T>>& q, std::uint32_t variant) {
  std::vector<Column<RealOf<W>>> wide;
  for (const Column<T>& column : q) wide.emplace_back(column.begin(), column.end());
  gram_of<W>(b, wide, variant);
}

template <class T>
void store(const std::vector<Column<T>>& q, const BlockView& v) {
  const auto to = matrix_of<T>(v);
  for (std::int64_t j = 0; j < v.cols; ++j) {
    for (std::int64_t k = 0; k < v.rows; ++k)
      to(k, j) = q[static_cast<std::size_t>(j)][static_cast<std::size_t>(k)];
  }
}

const double* scales(const BlockView& d) { return static_cast<const double*>(d.data); }

void run_gram(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(gram, other_sums(parameters.variant), kDot2);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    dispatch_real(x[0].element, [&]<class W>(std::type_identity<W>) {
      dispatch_native(x[1].element, [&]<class T>(std::type_identity<T>) {
        gram_of<W>(x[0], columns_of<RealOf<W>, T>(x[1], scales(x[2])), variant);
      });
    });
  });
}

/// The two that solve and add up; `stored`: whether Q takes the place of V.
void solve_and_sum(Queue& queue, const KernelCalls& calls, std::uint32_t variant, bool stored) {
  submit_each(queue, calls, [=](const BlockView* x) {
    dispatch_native(x[1].element, [&]<class T>(std::type_identity<T>) {
      const std::vector<Column<T>> q = dispatch_real(
          x[2].element,
          [&]<class S>(std::type_identity<S>) { return solved<S, T>(x[1], x[2], scales(x[3])); });
      if (stored) store(q, x[1]);
      dispatch_real(x[0].element, [&]<class W>(std::type_identity<W>) {
        gram_of_solved<W, T>(x[0], q, variant);
      });
    });
  });
}

void run_apply_gram(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(apply_gram, other_sums(parameters.variant), kExtraction);
  solve_and_sum(queue, calls, parameters.variant, false);
}

void run_solve_right_gram(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(solve_right_gram, other_sums(parameters.variant), kExtraction);
  solve_and_sum(queue, calls, parameters.variant, true);
}

void run_solve_right(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(solve_right, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    dispatch_native(x[0].element, [&]<class T>(std::type_identity<T>) {
      dispatch_real(x[1].element, [&]<class S>(std::type_identity<S>) {
        store(solved<S, T>(x[0], x[1], scales(x[2])), x[0]);
      });
    });
  });
}

void run_solve_right_twice(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  require_variant(solve_right_twice, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    store(solved<double, double>(x[0], x[1], scales(x[2])), x[0]);
    store(solved<double, double>(x[0], x[3], scales(x[4])), x[0]);
  });
}

void run_inner(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(inner, parameters.variant, kDot2);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    dispatch_real(x[0].element, [&]<class W>(std::type_identity<W>) {
      dispatch_native(x[1].element, [&]<class T>(std::type_identity<T>) {
        const auto left = columns_of<RealOf<W>, T>(x[1], nullptr);
        const auto right = columns_of<RealOf<W>, T>(x[2], nullptr);
        const auto out = matrix_of<W>(x[0]);
        for (std::int64_t j = 0; j < out.cols; ++j) {
          for (std::int64_t i = 0; i < out.rows; ++i)
            out(i, j) = dot<W>(left[static_cast<std::size_t>(i)],
                               right[static_cast<std::size_t>(j)], variant);
        }
      });
    });
  });
}

void run_gram_sum(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(gram_sum, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    dispatch_real(x[0].element, [&]<class W>(std::type_identity<W>) {
      const auto c = matrix_of<W>(x[0]);
      const auto a = matrix_of<const W>(x[1]);
      const auto b = matrix_of<const W>(x[2]);
      for (std::int64_t j = 0; j < c.cols; ++j) {
        for (std::int64_t i = 0; i < c.rows; ++i) c(i, j) = a(i, j) + b(i, j);
      }
    });
  });
}

void run_column_max(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(column_max, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    dispatch_native(x[1].element, [&]<class T>(std::type_identity<T>) {
      const auto v = matrix_of<const T>(x[1]);
      for (std::int64_t j = 0; j < v.cols; ++j) {
        double largest = 0;
        for (std::int64_t r = 0; r < v.rows; ++r) {
          const auto value = std::abs(static_cast<double>(v(r, j)));
          if (!(value <= largest)) largest = value;
          if (std::isnan(largest)) break;
        }
        static_cast<double*>(x[0].data)[j] = largest;
      }
    });
  });
}

void run_column_dots(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(column_dots, parameters.variant, kNormalize - 1);
  submit_each(queue, calls, [range = column_range(parameters.variant)](const BlockView* x) {
    dispatch_native(x[1].element, [&]<class T>(std::type_identity<T>) {
      const auto v = columns_of<T, T>(x[1], nullptr);
      auto* c = static_cast<T*>(x[0].data);
      for (std::int64_t i = 0; i < x[0].rows; ++i) {
        const bool wanted = i >= range.first && i < range.first + range.count;
        c[i] = wanted ? dot<T>(v[static_cast<std::size_t>(i)], v[static_cast<std::size_t>(range.j)],
                               kExtraction)
                      : T(0);
      }
    });
  });
}

void run_column_update(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(column_update, parameters.variant, 2 * kNormalize - 1);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    const ColumnRange range = column_range(variant);
    dispatch_native(x[0].element, [&]<class T>(std::type_identity<T>) {
      const auto v = matrix_of<T>(x[0]);
      const auto* c = static_cast<const T*>(x[1].data);
      T* column = v.column(range.j);
      if ((variant & kNormalize) != 0) {
        const T length = std::sqrt(c[range.j]);
        for (std::int64_t r = 0; r < v.rows && length > 0; ++r) column[r] /= length;
        return;
      }
      for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
        const T* with = v.column(i);
        for (std::int64_t r = 0; r < v.rows; ++r) column[r] = fused(-c[i], with[r], column[r]);
      }
    });
  });
}

}  // namespace
}  // namespace reference

GramKernels gram_reference() {
  return {.gram = reference::run_gram,
          .apply_gram = reference::run_apply_gram,
          .solve_right_gram = reference::run_solve_right_gram,
          .solve_right = reference::run_solve_right,
          .solve_right_twice = reference::run_solve_right_twice,
          .inner = reference::run_inner,
          .gram_sum = reference::run_gram_sum,
          .column_max = reference::run_column_max,
          .column_dots = reference::run_column_dots,
          .column_update = reference::run_column_update};
}

}  // namespace strata
