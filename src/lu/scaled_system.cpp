#include "lu/scaled_system.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/index.hpp"
#include "base/random.hpp"
#include "kernels/dense/panel_status.hpp"
#include "scalar/complex.hpp"
#include "scalar/safe_range.hpp"

namespace strata {
namespace {

constexpr int kFar = 1000;  // of an exponent: its power is a double, and so is its inverse

/// The exponent of a scale by which `size` becomes about 1; 0 for what is no number above 0.
int exponent_against(double size) {
  if (!(size > 0)) return 0;
  return std::isfinite(size) ? std::clamp(-std::ilogb(size), -kFar, kFar) : -kFar;
}

std::vector<double> powers_of(const std::vector<int>& exponents) {
  std::vector<double> powers;
  for (const int e : exponents) powers.push_back(std::scalbn(1.0, e));
  return powers;
}

/// What a column's scale is multiplied with in the probe: of any sign, between 1/2 and 1.
double probe_weight(std::int64_t j) {
  constexpr std::uint64_t kSeed = 0x70726f6265;
  const double u = 2 * random_uniform(kSeed, static_cast<std::uint64_t>(j)) - 1;
  return u < 0 ? (u - 1) / 2 : (u + 1) / 2;
}

bool far_apart(const std::vector<double>& scale) {
  constexpr double kApart = 1024;
  if (scale.empty()) return false;
  const auto [least, most] = std::minmax_element(scale.begin(), scale.end());
  return *most / kApart > *least;
}

}  // namespace

template <class A>
ScaledSystem<A>::ScaledSystem(SlabbedMatrix<A> a, MatrixView<const W> b, Element precision)
    : a_(std::move(a)), b_(b.rows, b.cols), precision_(precision) {
  scale_columns_and_rows();
  const SlabbedMatrix<A> given = a_;
  exponent_ = exponent_out_of_range(largest_, precision_);
  if (exponent_ != 0) {
    divide(exponent_);
    scale_columns_and_rows();
  }
  for (std::int64_t j = 0; j < b.cols; ++j) {
    const int of_column = exponent_of_column(b.rows, b.column(j), precision_);
    back_.push_back(of_column - exponent_);
    for (std::int64_t i = 0; i < b.rows; ++i) b_.column(j)[i] = times_power(b(i, j), -of_column);
  }
  balance_where_far_apart();
  rows_are_apart_ = far_apart(row_scale_);
  if (exponent_ != 0) measure_loss(given);
}

template <class A>
void ScaledSystem<A>::divide(int exponent) {
  const auto element = [exponent](A x) { return times_power(x, -exponent); };
  if (!a_.in_memory()) {
    a_ = a_.mapped(element);
    return;
  }
  const std::int64_t n = a_.n();
  divided_.resize(at(n * n));
  for (std::int64_t j = 0; j < n; ++j) {
    const A* column = a_.whole().column(j);
    std::transform(column, column + n, divided_.data() + j * n, element);
  }
  a_ = SlabbedMatrix<A>(MatrixView<const A>{divided_.data(), n, n, std::max<std::int64_t>(n, 1)});
}

/// Columns by their largest elements, then rows by their sums; beside it the largest of all, and
/// the probe. Where the transpose is stored, a column is known after the last slab alone, and rows
/// take another pass.
template <class A>
void ScaledSystem<A>::scale_columns_and_rows() {
  const std::int64_t n = a_.n();
  std::vector<double> sums(at(n));
  std::vector<double> scaled_sums(at(n));
  column_scale_.clear();
  row_scale_.clear();
  probe_ = {.v = std::vector<double>(at(n)), .product = std::vector<W>(at(n))};
  largest_ = norm_ = 0;
  const auto add_scale = [&](double most) {
    largest_ = std::max(largest_, most);
    const auto j = std::ssize(column_scale_);
    column_scale_.push_back(std::isfinite(most) ? std::scalbn(1.0, exponent_against(most)) : 1);
    probe_.v[at(j)] = column_scale_.back() * probe_weight(j);
  };
  const auto add = [&](std::int64_t i, std::int64_t j, A value) {
    const auto wide = static_cast<W>(value);
    const double size = std::abs(wide);
    sums[at(i)] += size;
    scaled_sums[at(i)] += size * column_scale_[at(j)];
    probe_.product[at(i)] += wide * probe_.v[at(j)];
  };
  if (a_.transposed()) {
    std::vector<double> most(at(n));
    a_.for_elements([&](std::int64_t, std::int64_t j, A value) {
      most[at(j)] = std::max(most[at(j)], largest_of_column(&value, 1));
    });
    for (const double of_column : most) add_scale(of_column);
    a_.for_elements(add);
  } else {
    a_.for_slabs([&](std::int64_t first, MatrixView<const A> slab) {
      std::vector<double> most(at(slab.cols));
      a_.crew().share(slab.cols,
                      [&](std::int64_t j) { most[at(j)] = largest_of_column(slab.column(j), n); });
      for (const double of_column : most) add_scale(of_column);
      // Sums have the order of the columns on any number of threads.
      a_.for_strips([&](std::int64_t row, std::int64_t rows) {
        for (std::int64_t j = 0; j < slab.cols; ++j)
          for (std::int64_t i = row; i < row + rows; ++i) add(i, first + j, slab(i, j));
      });
    });
  }
  for (std::int64_t i = 0; i < n; ++i) {
    norm_ = std::max(norm_, sums[at(i)]);
    row_scale_.push_back(scaled_sums[at(i)] > 0 ? 1 / scaled_sums[at(i)] : 1);
  }
  probe_.magnitudes = std::move(scaled_sums);
}

/// Alternates between sums of rows and of columns, each made about 1, until they stay.
template <class A>
typename ScaledSystem<A>::Scales ScaledSystem<A>::balanced(bool rows_first) const {
  constexpr int kPasses = 12;
  const std::int64_t n = a_.n();
  Scales s{std::vector<int>(at(n)), std::vector<int>(at(n)), std::vector<double>(at(n)),
           std::vector<double>(at(n))};
  int settled = 0;  // passes that changed nothing much
  for (int pass = 0; pass < kPasses && settled < 2; ++pass) {
    const bool of_rows = (pass % 2 == 0) == rows_first;
    const std::vector<double> row = powers_of(s.row);
    const std::vector<double> column = powers_of(s.column);
    std::vector<double> sums(at(n));
    a_.for_elements([&](std::int64_t i, std::int64_t j, A value) {
      sums[at(of_rows ? i : j)] += std::abs(static_cast<W>(value)) * row[at(i)] * column[at(j)];
    });
    std::vector<int>& exponents = of_rows ? s.row : s.column;
    int most = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const int before = exponents[at(i)];
      exponents[at(i)] = std::clamp(before + exponent_against(sums[at(i)]), -kFar, kFar);
      most = std::max(most, std::abs(exponents[at(i)] - before));
    }
    settled = most <= 1 ? settled + 1 : 0;
  }
  const std::vector<double> row = powers_of(s.row);
  const std::vector<double> column = powers_of(s.column);
  std::int64_t elements = 0;
  a_.for_elements([&](std::int64_t i, std::int64_t j, A value) {
    const double given = std::abs(static_cast<W>(value));
    const double size = given * row[at(i)] * column[at(j)];
    s.of_row[at(i)] += size;
    s.of_column[at(j)] += size;
    if (!(given > 0) || !std::isfinite(size)) return;
    s.spread += size > 0 ? std::abs(std::ilogb(size)) : kFar;
    ++elements;
  });
  s.spread /= static_cast<double>(std::max<std::int64_t>(elements, 1));
  return s;
}

/// By how much what rounding does to A·x = b may exceed x for the scales alone, as an exponent:
/// the largest C_j times the largest R_i·|b_i|, over all columns of b.
template <class A>
double ScaledSystem<A>::excess(const Scales& s) const {
  // Out of the range, zeros, or not yet balanced: an overflow would hide its row from the bound.
  const auto lost = [](double sum) { return !(sum >= 0x1p-30 && sum <= 0x1p30); };
  if (std::any_of(s.of_row.begin(), s.of_row.end(), lost) ||
      std::any_of(s.of_column.begin(), s.of_column.end(), lost))
    return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::int64_t j = 0; j < b_.cols(); ++j) {
    int most = std::numeric_limits<int>::min();
    for (std::int64_t i = 0; i < a_.n(); ++i) {
      const double size = largest_part(b_.column(j)[i]);
      if (size > 0 && std::isfinite(size)) most = std::max(most, std::ilogb(size) + s.row[at(i)]);
    }
    if (most == std::numeric_limits<int>::min()) continue;
    sum += most + *std::max_element(s.column.begin(), s.column.end());
  }
  return sum;
}

/// Where rows or columns are in units that differ much, what is the largest of a column says little
/// of the others: rows of D·A for a scale D come to nothing in it. There balanced sums, which D
/// does not change. With zeros these depend on where they begin, and what brings more elements near
/// 1 is taken, as by Curtis and Reid ("On the automatic scaling of matrices for Gaussian
/// elimination", J. Inst. Math. Appl. 10, 1972). Where the matrix falls apart, as a permutation
/// does, that is alike, and the units of its parts are those of rows or of columns: b says of
/// which.
template <class A>
void ScaledSystem<A>::balance_where_far_apart() {
  if (!far_apart(row_scale_) && !far_apart(column_scale_)) return;
  const Scales of_columns = balanced(false);
  const Scales of_rows = balanced(true);
  const double by_rows = excess(of_rows);
  const double by_columns = excess(of_columns);
  if (std::isinf(by_rows) && std::isinf(by_columns)) return;
  const bool alike = std::abs(of_rows.spread - of_columns.spread) <= 1;
  const bool rows_first = std::isinf(by_rows) || std::isinf(by_columns) || alike
                              ? by_rows < by_columns
                              : of_rows.spread < of_columns.spread;
  const Scales& s = rows_first ? of_rows : of_columns;
  column_scale_ = powers_of(s.column);
  for (std::int64_t i = 0; i < a_.n(); ++i)
    row_scale_[at(i)] = std::scalbn(1 / s.of_row[at(i)], s.row[at(i)]);
}

template <class A>
void ScaledSystem<A>::measure_loss(const SlabbedMatrix<A>& given) {
  std::vector<double> sums(at(given.n()));
  given.for_elements([&](std::int64_t i, std::int64_t j, A element) {
    const auto value = static_cast<W>(element);
    const A divided = times_power(element, -exponent_);
    const double off = std::abs(value - static_cast<W>(times_power(divided, exponent_)));
    if (off == 0) return;
    loss_.relative = std::max(loss_.relative, off / std::abs(value));
    sums[at(i)] += std::scalbn(off * column_scale_[at(j)] * row_scale_[at(i)], -exponent_);
  });
  loss_.scaled_norm = strata::norm_inf(given.n(), sums.data());
}

template class ScaledSystem<double>;
template class ScaledSystem<float>;
template class ScaledSystem<std::complex<double>>;
template class ScaledSystem<std::complex<float>>;

}  // namespace strata
