// Sparse matrices: assembly by counting, scaling, permutation.

#include "strata/sparse_matrix.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <thread>

#include "base/check.hpp"
#include "base/index.hpp"
#include "base/work_crew.hpp"
#include "matrix/sparse_passes.hpp"
#include "matrix/symmetry.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace {

constexpr std::int64_t kExtentMax = std::numeric_limits<std::int32_t>::max();

/// Sorts the entries of each row by column, stably, and adds up those of one place. What rounding
/// takes from a sum is added at its end (Neumaier 1974): elements that mirror each other come out
/// equal whatever the order of their entries.
void tidy_rows(SparseMatrix& a, SummedEntries* summed = nullptr) {
  std::vector<std::pair<std::int32_t, double>> row;
  std::int64_t kept = 0;
  double lost = 0;
  const auto complete = [&] {
    if (lost != 0 && std::isfinite(lost)) a.value[at(kept - 1)] += lost;
    lost = 0;
  };
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
        const DoubleDouble sum = two_sum(a.value[at(kept - 1)], value);
        a.value[at(kept - 1)] = sum.hi;
        lost += sum.lo;
        if (summed != nullptr && summed->count++ == 0) {
          summed->row = i;
          summed->col = column;
        }
        continue;
      }
      complete();
      a.column[at(kept)] = column;
      a.value[at(kept++)] = value;
    }
    complete();
    a.start[at(i + 1)] = kept;
  }
  a.column.resize(at(kept));
  a.value.resize(at(kept));
}

SparseMatrix empty_matrix(std::int64_t rows, std::int64_t cols) {
  require(rows >= 0 && cols >= 0 && rows <= kExtentMax && cols <= kExtentMax, ErrorKind::misuse,
          "sparse", "a sparse matrix of {} by {} is beyond {} rows and columns", rows, cols,
          kExtentMax);
  SparseMatrix a;
  a.rows = rows;
  a.cols = cols;
  a.start.assign(at(rows) + 1, 0);
  return a;
}

void require_inside(const SparseMatrix& a, std::int64_t row, std::int64_t col) {
  require(row >= 0 && row < a.rows && col >= 0 && col < a.cols, ErrorKind::misuse, "sparse",
          "entry ({}, {}) is outside of a matrix of {} by {}", row, col, a.rows, a.cols);
}

/// Puts entries into their rows, in the order in which they come; start[i + 1] is the number of
/// those of row i before.
class RowFiller {
 public:
  RowFiller(SparseMatrix& a, std::int64_t entries) : a_(a) {
    std::partial_sum(a.start.begin(), a.start.end(), a.start.begin());
    a.column.resize(at(entries));
    a.value.resize(at(entries));
    next_.assign(a.start.begin(), a.start.end() - 1);
  }
  void add(std::int64_t row, std::int64_t col, double value) {
    const std::size_t place = at(next_[at(row)]++);
    a_.column[place] = static_cast<std::int32_t>(col);
    a_.value[place] = value;
  }

 private:
  SparseMatrix& a_;
  std::vector<std::int64_t> next_;
};

template <class Index>
SparseMatrix from_compressed(std::int64_t rows, std::int64_t cols, std::span<const Index> start,
                             std::span<const Index> index, std::span<const double> value,
                             Compressed by, SummedEntries* summed) {
  SparseMatrix a = empty_matrix(rows, cols);
  const std::int64_t lines = by == Compressed::rows ? rows : cols;
  require(std::ssize(start) == lines + 1 && start.front() == 0 &&
              std::int64_t{start.back()} == std::ssize(value) && index.size() == value.size(),
          ErrorKind::misuse, "sparse",
          "{} starts, the last of them {}, {} indices and {} values are no compressed matrix of {} "
          "by {}",
          start.size(), start.empty() ? Index{0} : start.back(), index.size(), value.size(), rows,
          cols);
  const auto each = [&](const auto& visit) {
    for (std::int64_t line = 0; line < lines; ++line)
      for (std::int64_t k = start[at(line)]; k < std::int64_t{start[at(line + 1)]}; ++k) {
        const std::int64_t other = index[at(k)];
        visit(by == Compressed::rows ? line : other, by == Compressed::rows ? other : line, k);
      }
  };
  for (std::int64_t line = 0; line < lines; ++line)
    require(start[at(line)] <= start[at(line + 1)], ErrorKind::misuse, "sparse",
            "{} {} ends before it begins", by == Compressed::rows ? "row" : "column", line);
  each([&](std::int64_t i, std::int64_t j, std::int64_t) {
    require_inside(a, i, j);
    ++a.start[at(i) + 1];
  });
  RowFiller filler(a, std::ssize(value));
  each([&](std::int64_t i, std::int64_t j, std::int64_t k) { filler.add(i, j, value[at(k)]); });
  if (summed != nullptr) *summed = {};
  tidy_rows(a, summed);
  return a;
}

}  // namespace

SparseMatrix sparse_from_entries(std::int64_t rows, std::int64_t cols,
                                 std::span<const std::int64_t> row,
                                 std::span<const std::int64_t> col, std::span<const double> value,
                                 SummedEntries* summed) {
  require(row.size() == value.size() && col.size() == value.size(), ErrorKind::misuse, "sparse",
          "{} rows, {} columns and {} values are no list of entries", row.size(), col.size(),
          value.size());
  SparseMatrix a = empty_matrix(rows, cols);
  for (std::size_t k = 0; k < value.size(); ++k) {
    require_inside(a, row[k], col[k]);
    ++a.start[at(row[k]) + 1];
  }
  RowFiller filler(a, std::ssize(value));
  for (std::size_t k = 0; k < value.size(); ++k) filler.add(row[k], col[k], value[k]);
  if (summed != nullptr) *summed = {};
  tidy_rows(a, summed);
  return a;
}

SparseMatrix sparse_from_compressed(std::int64_t rows, std::int64_t cols,
                                    std::span<const std::int32_t> start,
                                    std::span<const std::int32_t> index,
                                    std::span<const double> value, Compressed by,
                                    SummedEntries* summed) {
  return from_compressed(rows, cols, start, index, value, by, summed);
}

SparseMatrix sparse_from_compressed(std::int64_t rows, std::int64_t cols,
                                    std::span<const std::int64_t> start,
                                    std::span<const std::int64_t> index,
                                    std::span<const double> value, Compressed by,
                                    SummedEntries* summed) {
  return from_compressed(rows, cols, start, index, value, by, summed);
}

namespace {

void require_compressed(const SparseMatrix& a) {
  require(a.rows >= 0 && a.cols >= 0 && a.rows <= kExtentMax && a.cols <= kExtentMax &&
              std::ssize(a.start) == a.rows + 1 && a.start.front() == 0 &&
              a.start.back() == a.entries() && a.column.size() == a.value.size(),
          ErrorKind::misuse, "sparse",
          "a matrix of {} by {} with {} row starts, {} columns and {} values is not compressed by "
          "rows",
          a.rows, a.cols, a.start.size(), a.column.size(), a.value.size());
}

void require_rows(const SparseMatrix& a, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    require(a.start[at(i)] <= a.start[at(i + 1)] && a.start[at(i)] >= 0 &&
                a.start[at(i + 1)] <= a.entries(),
            ErrorKind::misuse, "sparse",
            "row {} begins at entry {} and ends before {}, of {} entries", i, a.start[at(i)],
            a.start[at(i + 1)], a.entries());
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      const bool ascending = k == a.start[at(i)] || a.column[at(k - 1)] < j;
      require(j >= 0 && j < a.cols && ascending, ErrorKind::misuse, "sparse",
              "row {}: column {} is outside of the matrix or not behind the one before", i, j);
    }
  }
}

}  // namespace

void require_well_formed(const SparseMatrix& a) {
  require_compressed(a);
  require_rows(a, 0, a.rows);
}

void require_well_formed(const SparseMatrix& a, WorkCrew& crew) {
  require_compressed(a);
  try {
    for_blocks(crew, a.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      require_rows(a, begin, end);
    });
  } catch (const Error&) {
    require_rows(a, 0, a.rows);  // names the first one
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

namespace {

enum class Lines : std::uint8_t { rows, columns };

/// The lengths of the rows or columns, also where squares leave the range of doubles. Sums have the
/// order of the entries.
std::vector<double> lengths_of(const SparseMatrix& a, Lines lines, WorkCrew& crew) {
  constexpr int kManyThreads = 7;  // who find all entries of a few columns sooner than one adds all
  const auto each = [&](const auto& visit) {
    if (lines == Lines::rows) {
      for_blocks(crew, a.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
        for (std::int64_t i = begin; i < end; ++i)
          for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
            visit(at(i), a.value[at(k)]);
      });
    } else if (crew.helpers() < kManyThreads) {
      for (std::size_t k = 0; k < a.value.size(); ++k) visit(at(a.column[k]), a.value[k]);
    } else {
      // Each reads all entries for its own columns.
      const std::int64_t parts = crew.helpers() + 1;
      crew.share(parts, [&](std::int64_t part) {
        const auto first = static_cast<std::int32_t>(a.cols * part / parts);
        const auto end = static_cast<std::int32_t>(a.cols * (part + 1) / parts);
        for (std::size_t k = 0; k < a.value.size(); ++k)
          if (a.column[k] >= first && a.column[k] < end) visit(at(a.column[k]), a.value[k]);
      });
    }
  };
  std::vector<double> length(at(lines == Lines::rows ? a.rows : a.cols));
  each([&](std::size_t line, double x) { length[line] += x * x; });
  constexpr double kSmall = 0x1p-900;
  const auto is_safe = [](double square) { return square > kSmall && square < 1 / kSmall; };
  if (std::ranges::all_of(length, is_safe)) {
    for (double& x : length) x = std::sqrt(x);
    return length;
  }
  std::vector<double> largest(length.size());
  each([&](std::size_t line, double x) { largest[line] = std::max(largest[line], std::abs(x)); });
  std::vector<double> shares(length.size());
  each([&](std::size_t line, double x) {
    if (largest[line] > 0) shares[line] += x / largest[line] * (x / largest[line]);
  });
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = is_safe(length[i]) ? std::sqrt(length[i]) : largest[i] * std::sqrt(shares[i]);
  return length;
}

double inverse(double length) { return length > 0 ? 1 / length : 1.0; }

/// Scales rows of those lengths to length 1, then the columns.
void balance_once(SparseMatrix& a, const std::vector<double>& of_rows, Balance& scale,
                  WorkCrew& crew) {
  for_blocks(crew, a.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (std::int64_t i = begin; i < end; ++i) {
      const double by = inverse(of_rows[at(i)]);
      scale.row[at(i)] *= by;
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) a.value[at(k)] *= by;
    }
  });
  std::vector<double> by = lengths_of(a, Lines::columns, crew);
  std::ranges::transform(by, by.begin(), inverse);
  for (std::size_t j = 0; j < by.size(); ++j) scale.col[j] *= by[j];
  for_blocks(crew, a.entries(), [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (std::int64_t k = begin; k < end; ++k) a.value[at(k)] *= by[at(a.column[at(k)])];
  });
}

}  // namespace

/// Sinkhorn's iteration on the squares of the elements (Sinkhorn, Knopp, "Concerning nonnegative
/// matrices and doubly stochastic matrices", 1967), which ends with rows and columns of length 1
/// whatever the rows and columns were multiplied by before, as one round does not.
Balance balance(SparseMatrix& a) {
  WorkCrew crew(static_cast<int>(std::max(1U, std::thread::hardware_concurrency())) - 1);
  return balance(a, crew);
}

Balance balance(SparseMatrix& a, WorkCrew& crew) {
  Balance scale{std::vector<double>(at(a.rows), 1.0), std::vector<double>(at(a.cols), 1.0)};
  constexpr int kRounds = 100;
  constexpr double kEven = 1.5;  // rows that differ less are left alone, …
  constexpr double kMore = 1.2;  // … others are brought as near as this
  for (int round = 0; round < kRounds; ++round) {
    const std::vector<double> rows = lengths_of(a, Lines::rows, crew);
    const double most = round > 1 ? kMore : kEven;
    const bool even = std::ranges::all_of(
        rows, [most](double x) { return x == 0 || (x <= most && x >= 1 / most); });
    if (round > 0 && even) break;
    balance_once(a, rows, scale, crew);
  }
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
  // Entry (i, j) asks row j for column i. Rows are asked for columns that ascend, so each needs to
  // be walked through once.
  std::vector<std::int64_t> next(a.start.begin(), a.start.end() - 1);
  const auto transposed = [&](std::int64_t i, std::int64_t j) {
    std::int64_t& k = next[at(j)];
    const std::int64_t end = a.start[at(j + 1)];
    while (k < end && a.column[at(k)] < i) ++k;
    return k < end && a.column[at(k)] == i ? a.value[at(k)] : 0.0;
  };
  const auto diagonal = [&](std::int64_t i) {
    const auto end = a.column.begin() + a.start[at(i + 1)];
    const auto found = std::lower_bound(a.column.begin() + a.start[at(i)], end, i);
    return found != end && *found == i ? a.value[at(found - a.column.begin())] : 0.0;
  };
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      const double value = a.value[at(k)];
      const double other = transposed(i, j);
      if (value == other) continue;  // before diagonals are looked for
      if (!is_symmetric_pair(value, other, diagonal(i), diagonal(j), tolerance))
        return {.found = true, .row = i, .col = j, .value = value, .transposed = other};
    }
  }
  return {};
}

}  // namespace strata
