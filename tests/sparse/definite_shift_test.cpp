// Shifts that make a matrix positive definite, beside spectra in closed form and Cholesky in long
// doubles.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "strata/error.hpp"
#include "strata/sparse_factor.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/options.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::DenseOracle;
using test::options_in;

/// The Laplacian of a p × q grid, less `less` on the diagonal.
SparseMatrix laplacian(std::int64_t p, std::int64_t q, double less) {
  SparseMatrix a = test::grid(p, q, 1);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      a.value[at(k)] = a.column[at(k)] == i ? 4 - less : -1;
  return a;
}

double least_eigenvalue(std::int64_t p, std::int64_t q) {
  const auto of = [](std::int64_t n) {
    return 2 - 2 * std::cos(std::numbers::pi / static_cast<double>(n + 1));
  };
  return of(p) + of(q);
}

/// What is advised is factored when it is followed, by this precision, and is not much more than
/// what is needed.
void expect_good(const SparseMatrix& a, double needed, Element precision) {
  const DefiniteShift found = definite_shift(a, {}, options_in(precision));
  EXPECT_TRUE(found.factored);
  EXPECT_GT(found.shift, needed);
  EXPECT_LE(found.factorizations, 16);
  SparseCholeskyOptions options = options_in(precision);
  options.shift = found.shift;
  const SparseCholesky factor(a, options);
  EXPECT_TRUE(factor.info().ok);
  EXPECT_FALSE(numerically_singular(factor.scaled_condition(a), precision));
  const double rounding = (precision == Element::fp32 ? 0x1p-18 : 0x1p-46) * 8;
  EXPECT_LE(found.shift, 1.02 * needed + rounding);
  // After a failure, by the factor that failed.
  options.shift = 0;
  SparseCholesky failed(a, options);
  if (failed.info().ok) return;  // in floats
  const DefiniteShift advised = definite_shift(failed, a);
  EXPECT_TRUE(advised.factored);
  EXPECT_NEAR(advised.shift, found.shift, 0.02 * found.shift);
}

TEST(DefiniteShift, OfOrdinarySpectra) {
  test::Thinned thinned(5);
  for (const Element precision : {Element::fp64, Element::fp32}) {
    for (const std::int64_t n : {16, 40, 70}) {
      for (const double part : {1.0 + 1e-9, 2.0, 30.0}) {
        if (thinned.skips()) continue;
        SCOPED_TRACE(testing::Message() << to_string(precision) << ' ' << n << ' ' << part);
        const double least = least_eigenvalue(n, n);
        expect_good(laplacian(n, n, part * least), (part - 1) * least, precision);
      }
    }
  }
}

/// Units of 1e9 beside 1: Lanczos' method sees nothing of the rows that are small, the diagonal
/// does.
TEST(DefiniteShift, SeesTheDiagonal) {
  SparseMatrix a = test::with_values(test::grid(8, 8, 1), 2, 1);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      if (i == 27 || j == 27)
        a.value[at(k)] = i == j ? -9999 : 0;
      else
        a.value[at(k)] *= 1e9;
    }
  const DefiniteShift found = definite_shift(a, {}, options_in(Element::fp64));
  EXPECT_EQ(found.least_row, 27);
  EXPECT_EQ(found.least_diagonal, -9999);
  EXPECT_TRUE(found.factored);
  EXPECT_GT(found.shift, 9999);
  EXPECT_LT(found.shift, 1.02 * 9999);
}

TEST(DefiniteShift, IsProvenWhereNothingIsFactored) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SparseMatrix a =
        test::with_values(test::random_pattern(20, 0.2, seed, test::Give::both), seed, 0.1);
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
        if (a.column[at(k)] == i) a.value[at(k)] -= 1 + random_uniform(seed, at(i));
    const DefiniteShift found =
        definite_shift(a, {.factorizations_max = 0}, options_in(Element::fp64));
    EXPECT_TRUE(found.proven);
    EXPECT_FALSE(found.factored);
    EXPECT_EQ(found.factorizations, 0);
    EXPECT_EQ(DenseOracle(test::dense_of(a, found.shift), a.rows).bad_column, -1);
  }
}

TEST(DefiniteShift, OfSingularDefiniteAndExtremeMatrices) {
  const DefiniteShift none =
      definite_shift(test::with_values(test::grid(5, 5, 1), 1), {}, options_in(Element::fp64));
  EXPECT_EQ(none.shift, 0);
  EXPECT_TRUE(none.factored);
  // Singular: a closed chain. What is advised leaves nothing singular.
  SparseMatrix cycle = test::grid(9, 1, 1);
  std::vector<std::int64_t> row, col;
  std::vector<double> value;
  for (std::int64_t i = 0; i < 9; ++i) {
    row.push_back(i), col.push_back(i), value.push_back(2);
    row.push_back(std::max(i, (i + 1) % 9)), col.push_back(std::min(i, (i + 1) % 9));
    value.push_back(-1);
  }
  cycle = sparse_from_entries(9, 9, row, col, value);
  for (const Element precision : {Element::fp64, Element::fp32}) {
    const DefiniteShift found = definite_shift(cycle, {}, options_in(precision));
    EXPECT_TRUE(found.factored);
    EXPECT_GT(found.shift, 0);
    EXPECT_LT(found.shift, precision == Element::fp32 ? 1e-4 : 1e-12);
  }
  for (const int exponent : {-1000, 1000}) {
    SparseMatrix a = laplacian(6, 6, 1);
    for (double& v : a.value) v = std::ldexp(v, exponent);
    const double needed = 1 - least_eigenvalue(6, 6);
    const DefiniteShift found = definite_shift(a, {}, options_in(Element::fp64));
    EXPECT_TRUE(found.factored);
    EXPECT_NEAR(std::ldexp(found.shift, -exponent), 1.01 * needed, 1e-8);
  }
  EXPECT_EQ(definite_shift(sparse_from_entries(0, 0, {}, {}, {})).shift, 0);
  EXPECT_THROW((void)definite_shift(cycle, {.steps = 0}), Error);
}

/// A symmetric matrix of order n with these entries in its lower triangle.
struct Entry {
  std::int64_t row, col;
  double value;
};
SparseMatrix matrix_of(std::int64_t n, const std::vector<Entry>& entries) {
  std::vector<std::int64_t> row, col;
  std::vector<double> value;
  for (const Entry& e : entries)
    row.push_back(e.row), col.push_back(e.col), value.push_back(e.value);
  return sparse_from_entries(n, n, row, col, value);
}

/// What is advised is the same, or says that there is none, after a failure and without one.
void expect_definite_with_shift(const SparseMatrix& a) {
  for (const int most : {0, 40}) {
    const DefiniteShift found =
        definite_shift(a, {.factorizations_max = most}, options_in(Element::fp64));
    EXPECT_TRUE(found.factored || found.proven);
    EXPECT_GT(found.shift, 0);
    ASSERT_TRUE(std::isfinite(found.shift));
    EXPECT_EQ(DenseOracle(test::dense_of(a, found.shift), a.rows).bad_column, -1) << found.shift;
    SparseCholesky failed(a, options_in(Element::fp64));
    ASSERT_FALSE(failed.info().ok);
    const DefiniteShift advised = definite_shift(failed, a, {.factorizations_max = most});
    EXPECT_EQ(DenseOracle(test::dense_of(a, advised.shift), a.rows).bad_column, -1);
  }
}

TEST(DefiniteShift, OfMatricesWithoutSize) {
  for (const double zero : {0.0, -0.0}) {
    expect_definite_with_shift(matrix_of(1, {{0, 0, zero}}));
    expect_definite_with_shift(
        matrix_of(4, {{0, 0, zero}, {1, 1, zero}, {2, 2, zero}, {3, 3, zero}, {2, 0, zero}}));
  }
  expect_definite_with_shift(matrix_of(1, {}));
  expect_definite_with_shift(matrix_of(4, {}));
}

/// Squares of such numbers leave the range, and shifts of subnormal ones are rounded.
TEST(DefiniteShift, AtTheEndsOfTheRange) {
  for (const double size : {5e-324, 1.5e-323, 1e-320, 1e-250, 1e-200, 1e160, 1e200, 1e260}) {
    SCOPED_TRACE(size);
    expect_definite_with_shift(matrix_of(1, {{0, 0, -size}}));
    expect_definite_with_shift(matrix_of(2, {{0, 0, 0.0}, {1, 0, size}}));
    SparseMatrix a = laplacian(6, 6, 8);
    for (double& v : a.value) v *= size;
    expect_definite_with_shift(a);
  }
  // −λ_min is twice the largest double.
  const double most = std::numeric_limits<double>::max();
  const SparseMatrix a = matrix_of(3, {{1, 0, -most}, {2, 0, -most}, {2, 1, -most}});
  for (const int factorizations : {0, 40}) {
    const DefiniteShift none =
        definite_shift(a, {.factorizations_max = factorizations}, options_in(Element::fp64));
    EXPECT_FALSE(none.factored);
    EXPECT_FALSE(none.proven);
    EXPECT_TRUE(std::isinf(none.shift));
  }
}

}  // namespace
}  // namespace strata
