// Sparse matrices: assembly by counting, scaling, permutation.

#include "strata/sparse_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr std::int64_t kExtentMax = std::numeric_limits<std::int32_t>::max();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Sorts the entries of each row by column, stably, and adds up those of one place.
void tidy_rows(SparseMatrix& a) {
  std::vector<std::pair<std::int32_t, double>> row;
  std::int64_t kept = 0;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const std::int64_t end = a.start[at(i + 1)];
    row.clear();
    for (std::int64_t k = begin; k < end; ++k) row.emplace_back(a.column[at(k)], a.value[at(k)]);
    begin = end;
    std::stable_sort(row.begin(), row.end(),
                     [](const auto& x, const auto& y) { return x.first < y.first; });
    const std::int64_t first = kept;
    for (const auto& [column, value] : row) {
      if (kept > first && a.column[at(kept - 1)] == column) {
        a.value[at(kept - 1)] += value;
        continue;
      }
      a.column[at(kept)] = column;
      a.value[at(kept++)] = value;
    }
    a.start[at(i + 1)] = kept;
  }
  a.column.resize(at(kept));
  a.value.resize(at(kept));
}

}  // namespace

SparseMatrix sparse_from_entries(std::int64_t rows, std::int64_t cols,
                                 std::span<const std::int64_t> row,
                                 std::span<const std::int64_t> col, std::span<const double> value) {
  require(row.size() == value.size() && col.size() == value.size(), ErrorKind::misuse, "sparse",
          "{} rows, {} columns and {} values are no list of entries", row.size(), col.size(),
          value.size());
  require(rows >= 0 && cols >= 0 && rows <= kExtentMax && cols <= kExtentMax, ErrorKind::misuse,
          "sparse", "a sparse matrix of {} by {} is beyond {} rows and columns", rows, cols,
          kExtentMax);
  SparseMatrix a;
  a.rows = rows;
  a.cols = cols;
  a.start.assign(at(rows) + 1, 0);
  for (std::size_t k = 0; k < value.size(); ++k) {
    require(row[k] >= 0 && row[k] < rows && col[k] >= 0 && col[k] < cols, ErrorKind::misuse,
            "sparse", "entry ({}, {}) is outside of a matrix of {} by {}", row[k], col[k], rows,
            cols);
    ++a.start[at(row[k]) + 1];
  }
  std::partial_sum(a.start.begin(), a.start.end(), a.start.begin());
  a.column.resize(value.size());
  a.value.resize(value.size());
  std::vector<std::int64_t> next(a.start.begin(), a.start.end() - 1);
  for (std::size_t k = 0; k < value.size(); ++k) {
    const std::size_t place = at(next[at(row[k])]++);
    a.column[place] = static_cast<std::int32_t>(col[k]);
    a.value[place] = value[k];
  }
  tidy_rows(a);
  return a;
}

void require_well_formed(const SparseMatrix& a) {
  require(a.rows >= 0 && a.cols >= 0 && a.rows <= kExtentMax && a.cols <= kExtentMax &&
              std::ssize(a.start) == a.rows + 1 && a.start.front() == 0 &&
              a.start.back() == a.entries() && a.column.size() == a.value.size(),
          ErrorKind::misuse, "sparse",
          "a matrix of {} by {} with {} row starts, {} columns and {} values is not compressed by "
          "rows",
          a.rows, a.cols, a.start.size(), a.column.size(), a.value.size());
  for (std::int64_t i = 0; i < a.rows; ++i) {
    require(a.start[at(i)] <= a.start[at(i + 1)], ErrorKind::misuse, "sparse",
            "row {} ends before it begins", i);
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      const bool ascending = k == a.start[at(i)] || a.column[at(k - 1)] < j;
      require(j >= 0 && j < a.cols && ascending, ErrorKind::misuse, "sparse",
              "row {}: column {} is outside of the matrix or not behind the one before", i, j);
    }
  }
}

void multiply(const SparseMatrix& a, std::span<const double> x, std::span<double> y) {
  require(std::ssize(x) == a.cols && std::ssize(y) == a.rows, ErrorKind::misuse, "sparse",
          "vectors of {} and {} do not fit a matrix of {} by {}", x.size(), y.size(), a.rows,
          a.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double sum = 0;
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      sum += a.value[at(k)] * x[at(a.column[at(k)])];
    y[at(i)] = sum;
  }
}

Balance balance(SparseMatrix& a) {
  Balance scale{std::vector<double>(at(a.rows), 1.0), std::vector<double>(at(a.cols), 1.0)};
  const auto inverse_root = [](double square) { return square > 0 ? 1 / std::sqrt(square) : 1.0; };
  std::vector<double> squares(at(a.cols));
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double sum = 0;
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      sum += a.value[at(k)] * a.value[at(k)];
    scale.row[at(i)] = inverse_root(sum);
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      a.value[at(k)] *= scale.row[at(i)];
      squares[at(a.column[at(k)])] += a.value[at(k)] * a.value[at(k)];
    }
  }
  std::transform(squares.begin(), squares.end(), scale.col.begin(), inverse_root);
  for (std::size_t k = 0; k < a.value.size(); ++k) a.value[k] *= scale.col[at(a.column[k])];
  return scale;
}

SparseMatrix permuted(const SparseMatrix& a, std::span<const std::int32_t> order) {
  require(a.rows == a.cols && std::ssize(order) == a.rows, ErrorKind::misuse, "sparse",
          "an order of {} does not fit a matrix of {} by {}", order.size(), a.rows, a.cols);
  std::vector<std::int32_t> place(order.size(), -1);  // of each row in the new matrix
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int32_t row = order[i];
    require(row >= 0 && row < a.rows && place[at(row)] < 0, ErrorKind::misuse, "sparse",
            "row {} is in the order twice, or is none", row);
    place[at(row)] = static_cast<std::int32_t>(i);
  }
  SparseMatrix p;
  p.rows = a.rows;
  p.cols = a.cols;
  p.start.assign(at(a.rows) + 1, 0);
  p.column.reserve(a.column.size());
  p.value.reserve(a.value.size());
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const std::int64_t from = order[at(i)];
    for (std::int64_t k = a.start[at(from)]; k < a.start[at(from + 1)]; ++k) {
      p.column.push_back(place[at(a.column[at(k)])]);
      p.value.push_back(a.value[at(k)]);
    }
    p.start[at(i + 1)] = p.entries();
  }
  tidy_rows(p);
  return p;
}

std::int64_t bandwidth(const SparseMatrix& a) {
  std::int64_t widest = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      widest = std::max(widest, std::abs(i - std::int64_t{a.column[at(k)]}));
  }
  return widest;
}

Asymmetry find_asymmetry(const SparseMatrix& a, double tolerance) {
  require(a.rows == a.cols, ErrorKind::misuse, "sparse", "a matrix of {} by {} is not square",
          a.rows, a.cols);
  const auto entry = [&](std::int64_t i, std::int64_t j) {
    const auto begin = a.column.begin() + a.start[at(i)];
    const auto end = a.column.begin() + a.start[at(i + 1)];
    const auto found = std::lower_bound(begin, end, static_cast<std::int32_t>(j));
    return found != end && *found == j ? a.value[at(found - a.column.begin())] : 0.0;
  };
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      const double value = a.value[at(k)];
      const double other = entry(j, i);
      if (!(std::abs(value - other) <= tolerance * std::max(std::abs(value), std::abs(other))))
        return {.found = true, .row = i, .col = j, .value = value, .transposed = other};
    }
  }
  return {};
}

}  // namespace strata
