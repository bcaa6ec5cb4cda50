// Systems as they are solved.
//
// Method: a right preconditioner that is diagonal is a scaling of columns, so it costs nothing in
// the products. Jacobi's diagonal and blocks are those of the balanced matrix (columns divided by
// the diagonal first would hide which rows are long), so C⁻¹·M⁻¹·R⁻¹ is their inverse; it is
// permuted with the matrix. The order is one for any number of devices, since
// the sum of a row follows it: it is taken where a quarter of the matrix would need much of the
// other quarters.

#include "krylov/linear_system.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "krylov/block_inverse.hpp"
#include "matrix/sparse_passes.hpp"

namespace strata {
namespace {

double larger(double x, double y) { return std::max(x, y); }

double largest_of(std::span<const double> values, WorkCrew& crew) {
  return reduce_blocks(
      crew, std::ssize(values), 0.0,
      [&](std::int64_t begin, std::int64_t end) {
        double largest = 0;
        for (std::int64_t k = begin; k < end; ++k)
          largest = std::max(largest, std::abs(values[at(k)]));
        return largest;
      },
      larger);
}

/// Whether an entry times 2^exponent is near the end of the range, or below it.
bool loses_entries(std::span<const double> values, int exponent) {
  constexpr int kSmall = -900;
  return std::ranges::any_of(values,
                             [&](double x) { return x != 0 && std::ilogb(x) + exponent < kSmall; });
}

/// Each row times a power of two, so that its largest entry is near 1; these powers.
std::vector<double> scale_rows(SparseMatrix& a) {
  constexpr int kFar = 1000;  // a double, and so is its inverse
  std::vector<double> scale(at(a.rows), 1.0);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double largest = 0;
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      largest = std::max(largest, std::abs(a.value[at(k)]));
    if (!(largest > 0)) continue;
    const int exponent = std::clamp(-std::ilogb(largest), -kFar, kFar);
    scale[at(i)] = std::ldexp(1.0, exponent);
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      a.value[at(k)] = std::ldexp(a.value[at(k)], exponent);
  }
  return scale;
}

/// A·D⁻¹; the scales of the columns.
std::vector<double> divide_by_diagonal(SparseMatrix& a, const char* what) {
  std::vector<double> scale(at(a.cols), 0.0);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      if (a.column[at(k)] == i) scale[at(i)] = 1 / a.value[at(k)];
    }
    require(scale[at(i)] != 0 && std::isfinite(scale[at(i)]), ErrorKind::input, what,
            "element ({}, {}) of the diagonal is zero: there is no Jacobi preconditioner", i, i);
  }
  for (std::size_t k = 0; k < a.value.size(); ++k) a.value[k] *= scale[at(a.column[k])];
  return scale;
}

/// Entries whose row and column are in different quarters.
std::int64_t between_quarters(const SparseMatrix& a, WorkCrew& crew) {
  std::array<std::int64_t, 5> first{};  // rows of the quarters; compared, since division is slow
  for (std::int64_t q = 0; q <= 4; ++q) first[at(q)] = (q * a.rows + 3) / 4;
  const auto count_of = [&](std::int64_t begin, std::int64_t end) {
    std::int64_t count = 0;
    for (std::int64_t q = 0; q < 4; ++q) {
      const std::int64_t from = std::max(begin, first[at(q)]);
      const std::int64_t to = std::min(end, first[at(q + 1)]);
      if (from >= to) continue;
      for (std::int64_t k = a.start[at(from)]; k < a.start[at(to)]; ++k)
        count += a.column[at(k)] < first[at(q)] || a.column[at(k)] >= first[at(q + 1)] ? 1 : 0;
    }
    return count;
  };
  return reduce_blocks(crew, a.rows, std::int64_t{0}, count_of, std::plus<>());
}

}  // namespace

void check_matrix(const SparseMatrix& a, const char* what, WorkCrew& crew) {
  require_well_formed(a, crew);
  require(a.rows == a.cols, ErrorKind::misuse, what, "a matrix of {} by {} is not square", a.rows,
          a.cols);
  require(a.rows > 0, ErrorKind::misuse, what, "a matrix without rows has no solution");
  const auto first_bad = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t k = begin; k < end; ++k)
      if (!std::isfinite(a.value[at(k)])) return k;
    return a.entries();
  };
  const std::int64_t bad =
      reduce_blocks(crew, a.entries(), a.entries(), first_bad,
                    [](std::int64_t x, std::int64_t y) { return std::min(x, y); });
  if (bad == a.entries()) return;
  const std::int64_t row =
      std::upper_bound(a.start.begin(), a.start.end(), bad) - a.start.begin() - 1;
  fail(ErrorKind::input, what, "entry ({}, {}) of the matrix is {}", row, a.column[at(bad)],
       a.value[at(bad)]);
}

double rows_apart(const SparseMatrix& a, WorkCrew& crew) {
  struct Lengths {
    double longest = 0;
    double shortest = std::numeric_limits<double>::infinity();
  };
  const auto of_rows = [&](std::int64_t begin, std::int64_t end) {
    Lengths lengths;
    for (std::int64_t i = begin; i < end; ++i) {
      double largest = 0;
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
        largest = std::max(largest, std::abs(a.value[at(k)]));
      if (largest == 0) continue;
      lengths = {std::max(lengths.longest, largest), std::min(lengths.shortest, largest)};
    }
    return lengths;
  };
  const Lengths all =
      reduce_blocks(crew, a.rows, Lengths(), of_rows, [](const Lengths& x, const Lengths& y) {
        return Lengths{std::max(x.longest, y.longest), std::min(x.shortest, y.shortest)};
      });
  return all.longest > 0 ? all.longest / all.shortest : 1;
}

LinearSystem::LinearSystem(const SparseMatrix& a, const SystemOptions& options, WorkCrew& crew)
    : what_(options.what), crew_(crew) {
  const RightPreconditioner& right = options.preconditioner;
  require((right.kind == Preconditioner::custom) == static_cast<bool>(right.apply),
          ErrorKind::misuse, what_, "preconditioner {} {} a function", to_string(right.kind),
          right.apply ? "takes no" : "without");
  matrix_ = a;
  scale_matrix(options);
  if (right.kind == Preconditioner::block_jacobi)
    inverse_ = inverse_of_blocks(matrix_, right.block_size, what_);
  apply_ = right.apply;
  if (options.reorder) reorder();
  measure();
}

void LinearSystem::scale_matrix(const SystemOptions& options) {
  exponent_ = scaling_exponent(matrix_.value, crew_);
  std::vector<double> rows;  // by which they were multiplied, to keep what one power would lose
  if (exponent_ != 0 && options.balance && loses_entries(matrix_.value, exponent_)) {
    exponent_ = 0;
    rows = scale_rows(matrix_);
  } else if (exponent_ != 0) {
    for (double& value : matrix_.value) value = std::ldexp(value, exponent_);
  }
  if (options.balance) {
    Balance scale = balance(matrix_, crew_);
    row_ = std::move(scale.row);
    col_ = std::move(scale.col);
    for (std::size_t i = 0; i < rows.size(); ++i) row_[i] *= rows[i];
  }
  if (options.preconditioner.kind == Preconditioner::jacobi) {
    std::vector<double> scale = divide_by_diagonal(matrix_, what_);
    for (std::size_t j = 0; j < col_.size(); ++j) scale[j] *= col_[j];
    col_ = std::move(scale);
  }
}

void LinearSystem::reorder() {
  constexpr std::int64_t kShare = 20;  // of the entries
  const std::int64_t between = between_quarters(matrix_, crew_);
  if (between <= matrix_.entries() / kShare) return;
  std::vector<std::int32_t> order = reverse_cuthill_mckee(matrix_);
  SparseMatrix ordered = permuted(matrix_, order);
  if (between_quarters(ordered, crew_) >= between) return;
  matrix_ = std::move(ordered);
  if (inverse_) inverse_ = permuted(*inverse_, order);
  order_ = std::move(order);
}

void LinearSystem::measure() {
  if (!preconditioned()) {
    const auto largest_sum = [&](std::int64_t begin, std::int64_t end) {
      double largest = 0;
      for (std::int64_t i = begin; i < end; ++i) {
        double sum = 0;
        for (std::int64_t k = matrix_.start[at(i)]; k < matrix_.start[at(i + 1)]; ++k)
          sum += std::abs(matrix_.value[at(k)]);
        largest = std::max(largest, sum);
      }
      return largest;
    };
    norm_ = reduce_blocks(crew_, matrix_.rows, norm_, largest_sum, larger);
    return;
  }
  std::vector<double> signs(at(matrix_.rows));
  for (std::size_t i = 0; i < signs.size(); ++i) signs[i] = random_uniform(1, i) < 0.5 ? -1 : 1;
  std::vector<double> inverted(signs.size());
  precondition(signs, inverted);
  multiply(matrix_, inverted, signs);
  for (const double x : signs) norm_ = std::max(norm_, std::abs(x));
}

void LinearSystem::precondition(std::span<const double> u, std::span<double> y) const {
  inverse_ ? multiply(*inverse_, u, y) : call(u, y);
}

void LinearSystem::call(std::span<const double> u, std::span<double> y) const {
  std::vector<double> given(u.size());
  bool finite = true;
  for (std::size_t i = 0; i < u.size(); ++i) {
    const std::size_t to = order_.empty() ? i : at(order_[i]);
    given[to] = row_.empty() ? u[i] : u[i] / row_[to];
    finite = finite && std::isfinite(given[to]);
  }
  if (!finite) {  // the method will notice
    std::fill(y.begin(), y.end(), std::numeric_limits<double>::quiet_NaN());
    return;
  }
  std::vector<double> result(u.size());
  apply_(given, result);
  for (std::size_t i = 0; i < result.size(); ++i)
    require(std::isfinite(result[i]), ErrorKind::misuse, what_,
            "element {} of the preconditioner's result is {}", i, result[i]);
  for (std::size_t i = 0; i < u.size(); ++i) {
    const std::size_t from = order_.empty() ? i : at(order_[i]);
    y[i] = col_.empty() ? result[from] : result[from] / col_[from];
    if (exponent_ != 0) y[i] = std::ldexp(y[i], -exponent_);
  }
}

std::vector<double> LinearSystem::rhs(std::span<const double> b) const {
  std::vector<double> scaled(b.size());
  for_blocks(crew_, std::ssize(b), [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t from = order_.empty() ? at(i) : at(order_[at(i)]);
      scaled[at(i)] = row_.empty() ? b[from] : row_[from] * b[from];
    }
  });
  return scaled;
}

std::vector<double> LinearSystem::unknowns(std::span<const double> x, int shift) const {
  std::vector<double> u(x.size());
  for_blocks(crew_, std::ssize(x), [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t from = order_.empty() ? at(i) : at(order_[at(i)]);
      u[at(i)] = col_.empty() ? x[from] : x[from] / col_[from];
      if (shift != 0) u[at(i)] = std::ldexp(u[at(i)], shift);
    }
  });
  return u;
}

void LinearSystem::solution(std::span<const double> u, std::span<double> x, int shift) const {
  for_blocks(crew_, std::ssize(u), [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t to = order_.empty() ? at(i) : at(order_[at(i)]);
      x[to] = col_.empty() ? u[at(i)] : u[at(i)] * col_[to];
      if (shift != 0) x[to] = std::ldexp(x[to], shift);
    }
  });
}

void require_finite(std::span<const double> values, const char* what, const char* name) {
  for (std::size_t i = 0; i < values.size(); ++i)
    require(std::isfinite(values[i]), ErrorKind::input, what, "element {} of {} is {}", i, name,
            values[i]);
}

double norm_of(std::span<const double> x) {
  double largest = 0;
  for (const double value : x) largest = std::max(largest, std::abs(value));
  if (!(largest > 0)) return largest;
  double sum = 0;
  for (const double value : x) sum += value / largest * (value / largest);
  return largest * std::sqrt(sum);
}

int scaling_exponent(std::span<const double> values, WorkCrew& crew) {
  constexpr int kFar = 128;  // a product of four numbers of this size still has room for sums
  const double largest = largest_of(values, crew);
  if (!(largest > 0) || !std::isfinite(largest)) return 0;
  const int exponent = std::ilogb(largest);
  return std::abs(exponent) > kFar ? -exponent : 0;
}

}  // namespace strata
