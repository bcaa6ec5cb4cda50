// Patterns: what is symmetric, what tells them apart, what is refused.

#include "sparse/ordering/pattern.hpp"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "strata/error.hpp"
#include "tests/sparse/patterns.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::pattern_of;

using Indices = std::vector<std::int64_t>;

/// Runs, and expects an error whose message holds all the words.
template <class Run>
void expect_error(ErrorKind kind, const std::vector<std::string>& words, const Run& run) {
  try {
    run();
    ADD_FAILURE() << "no error about " << words[0];
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& word : words)
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
}

/// Neighbours by the definition: whatever has an entry, in either triangle, ascending.
std::vector<std::vector<std::int32_t>> neighbors_of(const SparseMatrix& a) {
  std::vector<std::vector<std::int32_t>> lists(at(a.rows));
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int32_t j = a.column[at(k)];
      if (i == j) continue;
      lists[at(i)].push_back(j);
      lists[at(j)].push_back(static_cast<std::int32_t>(i));
    }
  }
  for (auto& list : lists) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return lists;
}

TEST(Pattern, IsTheSameOnAnyNumberOfThreads) {
  std::map<std::string, std::vector<std::vector<std::int32_t>>> neighbors;  // however it is given
  for (const test::Give give : {test::Give::lower, test::Give::upper, test::Give::both}) {
    if (test::kSanitized && give == test::Give::upper) continue;  // mirrors lower
    for (const test::Family& family : test::large_families(give)) {
      auto& expected = neighbors[family.name];
      if (expected.empty()) expected = neighbors_of(family.matrix);
      for (const int threads : {1, 2, 3, 8}) {
        if (test::kSanitized && threads != 3) continue;
        SCOPED_TRACE(
            fmt::format("{}, given {}, {} threads", family.name, static_cast<int>(give), threads));
        const SymmetricPattern p = pattern_of(family.matrix, threads);
        ASSERT_EQ(p.size(), family.matrix.rows);
        for (std::int64_t i = 0; i < family.matrix.rows; ++i) {
          const auto found = p.neighbors(i);
          ASSERT_TRUE(std::equal(found.begin(), found.end(), expected[at(i)].begin(),
                                 expected[at(i)].end()))
              << "row " << i;
        }
      }
    }
  }
}

/// A zero above the diagonal needs no mirror; what lies below stands for the matrix.
TEST(Pattern, OfZerosWithoutMirrorsIsThatOfTheLowerTriangle) {
  const SparseMatrix whole = test::large_families(test::Give::both)[5].matrix;
  SparseMatrix a = whole;
  ASSERT_LT(a.column[at(a.start[1] - 1)], 31000);
  a.column.insert(a.column.begin() + a.start[1], 31000);
  a.value.insert(a.value.begin() + a.start[1], 0.0);
  for (std::size_t i = 1; i < a.start.size(); ++i) ++a.start[i];
  for (const int threads : {1, 2, 3, 8})
    EXPECT_EQ(pattern_of(a, threads).neighbor, pattern_of(whole).neighbor) << threads;
}

TEST(Pattern, TheFirstFaultIsNamedOnAnyNumberOfThreads) {
  SparseMatrix infinite = test::large_families(test::Give::both)[5].matrix;
  SparseMatrix lopsided = infinite;
  const auto last_of = [&](std::int64_t row) { return at(infinite.start[at(row + 1)] - 1); };
  for (const std::int64_t row : {15001, 24001, 30001}) {
    infinite.value[last_of(row)] = std::numeric_limits<double>::infinity();
    lopsided.value[last_of(row)] = 3;
  }
  SparseMatrix broken = infinite;
  broken.column[last_of(9001)] = -1;
  SparseMatrix starts = infinite;
  starts.start[25000] = -3;
  SparseMatrix none;
  none.rows = none.cols = -1;
  none.start.clear();
  const std::int32_t column = infinite.column[last_of(15001)];
  for (const int threads : {1, 2, 3, 8}) {
    expect_error(ErrorKind::misuse, {"-1 by -1"}, [&] { (void)pattern_of(none, threads); });
    expect_error(ErrorKind::input, {fmt::format("(15001, {}) of A is inf", column)},
                 [&] { (void)pattern_of(infinite, threads); });
    expect_error(ErrorKind::numerical, {fmt::format("(15001, {}) is 3", column)},
                 [&] { (void)pattern_of(lopsided, threads); });
    expect_error(ErrorKind::misuse, {"row 9001: column -1"},
                 [&] { (void)pattern_of(broken, threads); });
    expect_error(ErrorKind::misuse, {"row 24999 begins at entry ", "and ends before -3"},
                 [&] { (void)pattern_of(starts, threads); });
  }
}

TEST(Pattern, ListsBothDirectionsOfEachEdge) {
  for (std::uint64_t seed = 0; seed < test::campaign(300, 300, 60); ++seed) {
    const auto n = static_cast<std::int64_t>(random_bits(9, seed) % 30);
    std::vector<SymmetricPattern> all;
    for (const test::Give give : {test::Give::lower, test::Give::upper, test::Give::both})
      all.push_back(pattern_of(test::random_pattern(n, 0.2, seed, give)));
    const SparseMatrix full = test::random_pattern(n, 0.2, seed, test::Give::both);
    for (const SymmetricPattern& p : all) {
      ASSERT_EQ(p.size(), n);
      EXPECT_EQ(fingerprint_of(p), fingerprint_of(all[0]));
      for (std::int64_t i = 0; i < n; ++i) {
        std::vector<std::int32_t> expected(full.column.begin() + full.start[at(i)],
                                           full.column.begin() + full.start[at(i + 1)]);
        std::erase(expected, static_cast<std::int32_t>(i));
        const auto found = p.neighbors(i);
        EXPECT_EQ(std::vector<std::int32_t>(found.begin(), found.end()), expected);
      }
    }
  }
}

TEST(Pattern, FingerprintsTellPatternsApartAndNotValues) {
  const SparseMatrix a = test::grid(7, 6, 5);
  SparseMatrix values = a;
  for (double& v : values.value) v *= 3;
  EXPECT_EQ(pattern_fingerprint(values), pattern_fingerprint(a));
  // Any single edge more, any two rows exchanged.
  const PatternFingerprint own = pattern_fingerprint(a);
  for (std::int64_t i = 0; i < 200; ++i) {
    SparseMatrix other = a;
    const std::int64_t row = 209 - i % 100;
    const std::int64_t col = i;
    if (row == col) continue;
    Indices rows{row};
    Indices cols{col};
    for (std::int64_t r = 0; r < a.rows; ++r)
      for (std::int64_t k = a.start[at(r)]; k < a.start[at(r + 1)]; ++k) {
        rows.push_back(r);
        cols.push_back(a.column[at(k)]);
      }
    if (row < col) std::swap(rows[0], cols[0]);
    other = sparse_from_entries(a.rows, a.rows, rows, cols, std::vector<double>(rows.size(), 1.0));
    EXPECT_EQ(pattern_fingerprint(other) == own, other.entries() == a.entries());
  }
  const SparseAnalysis analysis = analyze(a);
  require_same_pattern(analysis, values);
  expect_error(ErrorKind::misuse, {"order 210", "has 30"},
               [&] { require_same_pattern(analyze(test::grid(5, 6, 1)), a); });
  // As many rows and entries, in other places.
  expect_error(ErrorKind::misuse, {"pattern"},
               [&] { require_same_pattern(analysis, test::grid(5, 6, 7)); });
}

TEST(Pattern, WhatIsNotSymmetricIsRefusedWithBothEntries) {
  const auto matrix = [](double upper) {
    return sparse_from_entries(3, 3, Indices{0, 1, 2, 0, 2}, Indices{0, 1, 2, 2, 0},
                               std::vector<double>{4, 4, 4, upper, 2});
  };
  EXPECT_EQ(pattern_of(matrix(2 * (1 + 1e-14))).neighbor.size(), 2U);
  expect_error(ErrorKind::numerical, {"(0, 2) is 2.5", "(2, 0) is 2"},
               [&] { (void)analyze(matrix(2.5)); });
  // An entry without its mirror, where others are above and below.
  const SparseMatrix lone =
      sparse_from_entries(3, 3, Indices{0, 1, 2}, Indices{1, 0, 1}, std::vector<double>{1, 1, 7});
  expect_error(ErrorKind::numerical, {"(1, 2)", "(2, 1)"}, [&] {
    SparseMatrix a = lone;
    (void)analyze(a);
  });
  expect_error(ErrorKind::misuse, {"2 by 3"},
               [] { (void)analyze(sparse_from_entries(2, 3, Indices{}, Indices{}, {})); });
  expect_error(ErrorKind::misuse, {"column"}, [&] {
    SparseMatrix a = lone;
    a.column[0] = 3;
    (void)analyze(a);
  });
}

TEST(Pattern, WhatIsNotFiniteIsRefusedWithItsPlace) {
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    SparseMatrix a = test::grid(3, 3, 1);
    a.value[5] = value;
    std::int64_t row = 0;
    while (a.start[at(row + 1)] <= 5) ++row;
    expect_error(ErrorKind::input, {fmt::format("({}, {})", row, a.column[5])},
                 [&] { (void)analyze(a); });
  }
}

TEST(Pattern, EmptyDiagonalsAreCounted) {
  const SparseMatrix a = sparse_from_entries(5, 5, Indices{0, 2, 3, 4}, Indices{0, 2, 1, 4},
                                             std::vector<double>(4, 1.0));
  const SparseAnalysis r = analyze(a);
  EXPECT_EQ(r.counts.empty_diagonals, 2);
  EXPECT_EQ(r.counts.first_empty_diagonal, 1);
  EXPECT_EQ(r.counts.factor_entries, 6);
  EXPECT_EQ(analyze(test::grid(3, 3, 1)).counts.first_empty_diagonal, -1);
}

}  // namespace
}  // namespace strata
