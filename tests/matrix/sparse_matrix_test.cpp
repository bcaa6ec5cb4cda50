// Sparse matrices: assembly, scaling, order, and what is refused.

#include "strata/sparse_matrix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "base/random.hpp"
#include "matrix/sparse_passes.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

using Indices = std::vector<std::int64_t>;

SparseMatrix sample() {
  // [1 0 2; 0 0 0; 3 4 5], the 5 in two parts.
  return sparse_from_entries(3, 3, Indices{2, 0, 2, 2, 0, 2}, Indices{2, 2, 0, 1, 0, 2},
                             std::vector<double>{2, 2, 3, 4, 1, 3});
}

TEST(SparseMatrix, IsAssembledFromEntriesInAnyOrder) {
  const SparseMatrix a = sample();
  EXPECT_EQ(a.start, (Indices{0, 2, 2, 5}));
  EXPECT_EQ(a.column, (std::vector<std::int32_t>{0, 2, 0, 1, 2}));
  EXPECT_EQ(a.value, (std::vector<double>{1, 2, 3, 4, 5}));
  require_well_formed(a);
  std::vector<double> y(3);
  multiply(a, std::vector<double>{1, 10, 100}, y);
  EXPECT_EQ(y, (std::vector<double>{201, 0, 543}));
  EXPECT_EQ(bandwidth(a), 2);
}

TEST(SparseMatrix, SaysWhatWasSummed) {
  SummedEntries summed;
  const SparseMatrix a =
      sparse_from_entries(3, 3, Indices{2, 2, 0, 2, 0, 2}, Indices{1, 1, 2, 1, 2, 0},
                          std::vector<double>{1, 2, 3, 4, 5, 6}, &summed);
  EXPECT_EQ(a.value, (std::vector<double>{8, 6, 7}));
  EXPECT_EQ(summed.count, 3);
  EXPECT_EQ(summed.row, 0);
  EXPECT_EQ(summed.col, 2);
  (void)sparse_from_entries(3, 3, Indices{1}, Indices{1}, std::vector<double>{1}, &summed);
  EXPECT_EQ(summed.count, 0);
  EXPECT_EQ(summed.row, -1);
}

/// One matrix as rows and as columns, with indices of 32 and of 64 bits.
template <class Index>
void expect_from_compressed() {
  const std::vector<Index> row_start{0, 2, 2, 6};
  const std::vector<Index> column{2, 0, 2, 0, 2, 1};  // unsorted, (2, 2) twice
  const std::vector<double> by_row{2, 1, 2, 3, 3, 4};
  SummedEntries summed;
  const SparseMatrix a = sparse_from_compressed(3, 3, std::span<const Index>(row_start), column,
                                                by_row, Compressed::rows, &summed);
  EXPECT_EQ(a.start, sample().start);
  EXPECT_EQ(a.column, sample().column);
  EXPECT_EQ(a.value, sample().value);
  EXPECT_EQ(summed.count, 1);
  EXPECT_EQ(summed.row, 2);
  EXPECT_EQ(summed.col, 2);
  const std::vector<Index> col_start{0, 2, 3, 6};
  const std::vector<Index> row{2, 0, 2, 0, 2, 2};
  const std::vector<double> by_col{3, 1, 4, 2, 2, 3};
  const SparseMatrix b = sparse_from_compressed(3, 3, std::span<const Index>(col_start), row,
                                                by_col, Compressed::columns, &summed);
  EXPECT_EQ(b.start, a.start);
  EXPECT_EQ(b.column, a.column);
  EXPECT_EQ(b.value, a.value);
  EXPECT_EQ(summed.count, 1);
  // What is out of range is named; what does not fit together is refused.
  for (const Index wrong : {Index{3}, Index{-1}, std::numeric_limits<Index>::max()}) {
    std::vector<Index> bad = column;
    bad[3] = wrong;
    try {
      (void)sparse_from_compressed(3, 3, std::span<const Index>(row_start), bad, by_row);
      ADD_FAILURE() << wrong;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
      EXPECT_NE(std::string(error.what()).find("(2, " + std::to_string(wrong)), std::string::npos)
          << error.what();
    }
  }
  for (const std::vector<Index>& bad :
       {std::vector<Index>{}, {0, 2, 6}, {1, 2, 2, 6}, {0, 2, 2, 5}, {0, 7, 2, 6}, {0, 2, -2, 6}})
    EXPECT_THROW((void)sparse_from_compressed(3, 3, std::span<const Index>(bad), column, by_row),
                 Error);
  EXPECT_EQ(
      sparse_from_compressed(0, 0, std::span<const Index>(std::vector<Index>{0}), {}, {}).entries(),
      0);
}

TEST(SparseMatrix, IsMadeOfCompressedRowsOrColumns) {
  expect_from_compressed<std::int32_t>();
  expect_from_compressed<std::int64_t>();
}

TEST(SparseMatrix, IsBalancedByRowsThenColumns) {
  SparseMatrix a = sample();
  const SparseMatrix before = a;
  const Balance scale = balance(a);
  EXPECT_DOUBLE_EQ(scale.row[0], 1 / std::sqrt(5));
  EXPECT_EQ(scale.row[1], 1);
  for (std::int64_t j = 0; j < 3; ++j) {
    double square = 0;
    for (std::size_t k = 0; k < a.value.size(); ++k)
      square += a.column[k] == j ? a.value[k] * a.value[k] : 0;
    EXPECT_NEAR(square, 1, 1e-15) << j;
  }
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t k = a.start[static_cast<std::size_t>(i)];
         k < a.start[static_cast<std::size_t>(i + 1)]; ++k) {
      const auto e = static_cast<std::size_t>(k);
      EXPECT_NEAR(a.value[e],
                  before.value[e] * scale.row[static_cast<std::size_t>(i)] *
                      scale.col[static_cast<std::size_t>(a.column[e])],
                  1e-15);
    }
  }
}

/// Several blocks of rows with entries of many sizes, some rows and columns empty.
SparseMatrix scattered(std::int64_t rows, std::int64_t cols) {
  Indices row;
  Indices col;
  std::vector<double> value;
  for (std::uint64_t k = 0; k < static_cast<std::uint64_t>(5 * rows); ++k) {
    row.push_back(
        static_cast<std::int64_t>(random_uniform(1, k) * 0.9 * static_cast<double>(rows)));
    col.push_back(
        static_cast<std::int64_t>(random_uniform(2, k) * 0.9 * static_cast<double>(cols)));
    value.push_back(std::exp(20 * random_normal(3, k)));
  }
  return sparse_from_entries(rows, cols, row, col, value);
}

/// As many as add up columns by themselves, and fewer.
TEST(SparseMatrix, ABalanceHasTheSameBitsOnAnyNumberOfThreads) {
  for (const auto& [rows, cols] : {std::pair(20000, 20000), std::pair(17, 30000), {30000, 17}}) {
    const SparseMatrix given = scattered(rows, cols);
    SparseMatrix expected = given;
    WorkCrew nobody(0);
    const Balance scale = balance(expected, nobody);
    for (const int helpers : {1, 6, 7, 15}) {
      SparseMatrix a = given;
      WorkCrew crew(helpers);
      const Balance found = balance(a, crew);
      EXPECT_EQ(found.row, scale.row) << helpers;
      EXPECT_EQ(found.col, scale.col) << helpers;
      EXPECT_EQ(a.value, expected.value) << helpers;
    }
  }
}

/// Rows whose begin or end lies outside of the entries are not read.
TEST(SparseMatrix, TheFirstWrongRowIsNamedOnAnyNumberOfThreads) {
  const SparseMatrix good = scattered(40000, 40000);
  WorkCrew crew(3);
  require_well_formed(good, crew);
  const auto expect_named = [&](const SparseMatrix& a, const std::string& row) {
    for (const bool shared : {true, false}) {
      try {
        shared ? require_well_formed(a, crew) : require_well_formed(a);
        ADD_FAILURE() << row << " is taken";
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()).find("row " + row), std::string::npos) << error.what();
      }
    }
  };
  for (const std::int64_t wrong : {std::int64_t{-1}, good.entries() + 1, std::int64_t{1} << 60}) {
    SparseMatrix a = good;
    a.start[20000] = a.start[35000] = wrong;
    expect_named(a, "19999");
  }
  SparseMatrix a = good;
  for (const std::int64_t row : {35000, 9000})
    a.column[static_cast<std::size_t>(a.start[static_cast<std::size_t>(row)])] = 40000;
  expect_named(a, "9000");
}

TEST(SparseMatrix, IsPermutedAndReordered) {
  // A path of 200 vertices in a scattered order has a bandwidth of 1 in the right one.
  constexpr std::int64_t kOrder = 200;
  Indices row;
  Indices col;
  std::vector<double> value;
  const auto place = [](std::int64_t i) { return i * 77 % kOrder; };
  for (std::int64_t i = 0; i + 1 < kOrder; ++i) {  // one triangle: the pattern is made symmetric
    row.push_back(place(i));
    col.push_back(place(i + 1));
    value.push_back(static_cast<double>(i + 1));
  }
  const SparseMatrix a = sparse_from_entries(kOrder, kOrder, row, col, value);
  ASSERT_GT(bandwidth(a), 50);
  const std::vector<std::int32_t> order = reverse_cuthill_mckee(a);
  std::vector<std::int32_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int32_t> all(kOrder);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
  const SparseMatrix p = permuted(a, order);
  require_well_formed(p);
  EXPECT_EQ(bandwidth(p), 1);
  std::vector<double> x(kOrder);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  std::vector<double> y(kOrder);
  multiply(a, x, y);
  std::vector<double> xp(kOrder);
  std::vector<double> yp(kOrder);
  for (std::size_t i = 0; i < xp.size(); ++i) xp[i] = x[static_cast<std::size_t>(order[i])];
  multiply(p, xp, yp);
  for (std::size_t i = 0; i < yp.size(); ++i)
    EXPECT_EQ(yp[i], y[static_cast<std::size_t>(order[i])]);
}

TEST(SparseMatrix, AnAsymmetryIsFound) {
  SparseMatrix a = sample();
  const Asymmetry pair = find_asymmetry(a, 1e-12);
  ASSERT_TRUE(pair.found);
  EXPECT_EQ(pair.row, 0);
  EXPECT_EQ(pair.col, 2);
  EXPECT_EQ(pair.value, 2);
  EXPECT_EQ(pair.transposed, 3);
  const SparseMatrix symmetric = sparse_from_entries(2, 2, Indices{0, 1, 1}, Indices{1, 0, 1},
                                                     std::vector<double>{7, 7 * (1 + 1e-14), 1});
  EXPECT_FALSE(find_asymmetry(symmetric, 1e-12).found);
  EXPECT_TRUE(find_asymmetry(symmetric, 1e-15).found);
}

/// Against looking at all pairs.
TEST(SparseMatrix, TheFirstAsymmetryIsFound) {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    constexpr std::int64_t kOrder = 9;
    std::vector<double> dense(kOrder * kOrder);
    Indices row;
    Indices col;
    std::vector<double> value;
    for (std::int64_t k = 0; k < kOrder * kOrder; ++k) {
      const std::int64_t i = k / kOrder;
      const std::int64_t j = k % kOrder;
      const auto pair = static_cast<std::uint64_t>(std::max(i, j) * kOrder + std::min(i, j));
      if (random_uniform(seed, pair) < 0.6) continue;
      if (random_uniform(seed, 100 + static_cast<std::uint64_t>(k)) < 0.01) continue;  // no mirror
      row.push_back(i);
      col.push_back(j);
      value.push_back(random_uniform(seed, 200 + static_cast<std::uint64_t>(k)) < 0.01 ? 2 : 1);
      dense[static_cast<std::size_t>(k)] = value.back();
    }
    const Asymmetry pair = find_asymmetry(sparse_from_entries(kOrder, kOrder, row, col, value), 0);
    std::int64_t first = 0;
    const auto mirror = [&](std::int64_t k) {
      return dense[static_cast<std::size_t>(k % kOrder * kOrder + k / kOrder)];
    };
    const auto has = [&](std::int64_t k) { return dense[static_cast<std::size_t>(k)] != 0; };
    while (first < kOrder * kOrder &&
           (!has(first) || dense[static_cast<std::size_t>(first)] == mirror(first)))
      ++first;
    EXPECT_EQ(pair.found, first < kOrder * kOrder);
    if (!pair.found) continue;
    ++found;
    EXPECT_EQ(pair.row * kOrder + pair.col, first);
    EXPECT_EQ(pair.transposed, mirror(first));
  }
  EXPECT_GT(found, 50);
}

TEST(SparseMatrix, WhatIsNoMatrixIsRefused) {
  const std::vector<double> one{1};
  EXPECT_THROW((void)sparse_from_entries(2, 2, Indices{2}, Indices{0}, one), Error);
  EXPECT_THROW((void)sparse_from_entries(2, 2, Indices{0}, Indices{-1}, one), Error);
  EXPECT_THROW((void)sparse_from_entries(2, 2, Indices{0, 1}, Indices{0}, one), Error);
  EXPECT_THROW((void)sparse_from_entries(std::int64_t{1} << 31, 1, Indices{}, Indices{}, {}),
               Error);
  for (int fault = 0; fault < 4; ++fault) {
    SparseMatrix a = sample();
    if (fault == 0) a.column[1] = 0;
    if (fault == 1) a.column[4] = 3;
    if (fault == 2) a.start[1] = 3, a.start[2] = 2;
    if (fault == 3) a.value.pop_back();
    EXPECT_THROW(require_well_formed(a), Error) << fault;
  }
  SparseMatrix a = sample();
  std::vector<double> y(2);
  EXPECT_THROW(multiply(a, std::vector<double>(3), y), Error);
  EXPECT_THROW((void)permuted(a, std::vector<std::int32_t>{0, 1, 1}), Error);
  a.cols = 4;
  EXPECT_THROW((void)reverse_cuthill_mckee(a), Error);
}

}  // namespace
}  // namespace strata
