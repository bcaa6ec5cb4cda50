// Sparse matrices of which both triangles are given and differ by rounding: solutions and what is
// said of them, beside elimination in 113 bits.

#include <gtest/gtest.h>

#include <cmath>

#include "strata/sparse_factor.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/options.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/epsilon.hpp"
#include "tests/support/wide_elimination.hpp"

namespace strata {
namespace {

using test::kEpsilon;
using test::options_in;

Certificate certificate_of(const SparseMatrix& a, const std::vector<double>& b,
                           std::vector<double>& x, Element precision) {
  const std::int64_t n = a.rows;
  return solve(a, MatrixView<const double>{b.data(), n, 1, n},
               MatrixView<double>{x.data(), n, 1, n}, options_in(precision))
      .certificate;
}

/// Elements that mirror each other and differ by rounding: x and what is said of it are those of A
/// as it is given, not of one of its triangles.
TEST(SparseAsymmetry, IsThatOfBothTriangles) {
  for (const Element precision : {Element::fp64, Element::fp32}) {
    std::uint64_t told_apart = 0;
    const std::uint64_t cases = test::campaign(500, 60, 20);
    for (std::uint64_t seed = 0; seed < cases; ++seed) {
      SCOPED_TRACE(testing::Message() << to_string(precision) << ' ' << seed);
      const double digits = precision == Element::fp32 ? 4 : 9;
      SparseMatrix a = test::with_values(test::random_pattern(25, 0.15, seed, test::Give::both),
                                         seed, std::pow(10.0, -digits * random_uniform(62, seed)));
      test::in_units(a, [&](std::int64_t i) {
        return std::ldexp(1.0, static_cast<int>(12 * random_uniform(seed + 77, at(i))));
      });
      const std::vector<double> symmetric = test::dense_of(a);
      const std::int64_t n = a.rows;
      const std::vector<double> full = test::nearly_symmetric(symmetric, n, 9e-13, seed);
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
          a.value[at(k)] = full[at(i + a.column[at(k)] * n)];
      std::vector<double> b(at(n));
      for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_normal(63 + seed, i);
      std::vector<double> x(b.size());
      const Certificate c = certificate_of(a, b, x, precision);
      ASSERT_TRUE(c.factor.ok);
      const test::WideErrors truth = test::wide_errors(full, b, x);
      EXPECT_LE(truth.forward, c.forward_error * (1 + 1e-6));
      EXPECT_NEAR(c.componentwise_backward_error, truth.componentwise, 1e-3 * kEpsilon);
      EXPECT_LE(c.componentwise_backward_error, 4 * kEpsilon) << "as far as fp64 goes";
      told_apart += test::wide_errors(symmetric, b, x).forward > 2 * c.forward_error ? 1 : 0;
    }
    EXPECT_GT(told_apart, cases / 2) << "the other matrix has another solution";
  }
}

/// The same where an element has nothing that mirrors it, in either triangle.
TEST(SparseAsymmetry, IsThatOfElementsInOneTriangleAlone) {
  const double d = 1e-9;
  const double noise = 5e-13;
  const std::vector<double> full{
      1, 1 - d, noise, 0,     1 - d, 1, 0,     noise,
      0, 0,     1,     1 - d, noise, 0, 1 - d, 1};  // by columns: (2, 0), (3, 1) and (0, 3)
  std::vector<std::int64_t> row, col;
  std::vector<double> value;
  for (std::int64_t k = 0; k < 16; ++k) {
    if (full[at(k)] == 0) continue;
    row.push_back(k % 4);
    col.push_back(k / 4);
    value.push_back(full[at(k)]);
  }
  const SparseMatrix a = sparse_from_entries(4, 4, row, col, value);
  const std::vector<double> b{1, 1, 1, -1};
  std::vector<double> x(4);
  const Certificate c = certificate_of(a, b, x, Element::fp64);
  const test::WideErrors truth = test::wide_errors(full, b, x);
  EXPECT_LE(truth.forward, c.forward_error * (1 + 1e-6));
  for (const std::size_t one : {2U, 7U, 12U}) {
    std::vector<double> other = full;
    other[one] = 0;
    EXPECT_GT(test::wide_errors(other, b, x).forward, 20 * c.forward_error)
        << "which is another system";
  }
}

}  // namespace
}  // namespace strata
