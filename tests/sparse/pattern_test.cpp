// Patterns: what is symmetric, what tells them apart, what is refused.

#include "sparse/pattern.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "strata/error.hpp"
#include "tests/sparse/patterns.hpp"

namespace strata {
namespace {

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

TEST(Pattern, ListsBothDirectionsOfEachEdge) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto n = static_cast<std::int64_t>(random_bits(9, seed) % 30);
    std::vector<SymmetricPattern> all;
    for (const test::Give give : {test::Give::lower, test::Give::upper, test::Give::both})
      all.push_back(symmetric_pattern(test::random_pattern(n, 0.2, seed, give)));
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
  EXPECT_EQ(symmetric_pattern(matrix(2 * (1 + 1e-14))).neighbor.size(), 2U);
  expect_error(ErrorKind::input, {"(0, 2) is 2.5", "(2, 0) is 2"},
               [&] { (void)analyze(matrix(2.5)); });
  // An entry without its mirror, where others are above and below.
  const SparseMatrix lone =
      sparse_from_entries(3, 3, Indices{0, 1, 2}, Indices{1, 0, 1}, std::vector<double>{1, 1, 7});
  expect_error(ErrorKind::input, {"(1, 2)", "(2, 1)"}, [&] {
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
