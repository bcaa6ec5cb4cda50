// gmres with vectors in fp32: solutions to any tolerance of fp64, under any scaling, and what is
// told where fp32 does not do. Bits on devices, budgets and policies: gmres_test.cpp,
// ghost_zones_test.cpp.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "strata/krylov.hpp"
#include "tests/krylov/gmres_harness.hpp"
#include "tests/krylov/matrices.hpp"

namespace strata {
namespace {

using test::residual_of;
using test::solved;
using test::Solved;
using test::with;

TEST(GmresSingle, SolvesToAnyToleranceWithVectorsInSinglePrecision) {
  const SparseMatrix a = test::grid(9, 7, 5, 0.3);
  const std::vector<double> b = test::row_sums(a);
  const auto check = [&](GmresOptions options, const std::string& what) {
    options.precision = Element::fp32;
    options.tolerance = 1e-13;
    const Solved result = solved(a, b, options);
    EXPECT_TRUE(result.info.ok) << what << ": " << result.info.why;
    const double residual = residual_of(a, b, result.x);
    EXPECT_LE(residual, 1e-13) << what;
    EXPECT_NEAR(result.info.relative_residual, residual, 1e-2 * residual + 1e-15) << what;
    for (const double x : result.x) ASSERT_NEAR(x, 1, 1e-11) << what;
    EXPECT_LE(result.info.restarts, 8) << what;
  };
  for (const QrMethod method : {QrMethod::automatic, QrMethod::mgs, QrMethod::cgs, QrMethod::cgs2})
    check(with(1, 20, method), std::string(to_string(method)));
  for (const QrMethod method : {QrMethod::automatic, QrMethod::cholqr, QrMethod::cholqr2,
                                QrMethod::cholqr_wide, QrMethod::cholqr_wide2, QrMethod::svqr,
                                QrMethod::svqr_wide, QrMethod::cgs2, QrMethod::mgs}) {
    for (const KrylovBasis basis :
         {KrylovBasis::monomial, KrylovBasis::newton, KrylovBasis::chebyshev})
      check(with(4, 20, method, basis),
            std::string(to_string(method)) + ", " + std::string(to_string(basis)));
  }
  for (const BlockOrthogonalization block :
       {BlockOrthogonalization::pythagorean, BlockOrthogonalization::two_stage}) {
    for (const QrMethod method :
         {QrMethod::automatic, QrMethod::cholqr, QrMethod::cholqr_wide, QrMethod::svqr}) {
      GmresOptions options = with(4, 20, method, KrylovBasis::newton);
      options.block_orthogonalization = block;
      check(options, std::string(to_string(block)) + ", " + std::string(to_string(method)));
    }
  }
}

/// Elements that floats do not hold: of A, of b, and of both.
TEST(GmresSingle, SinglePrecisionHoldsAnyScaling) {
  const SparseMatrix plain = test::grid(7, 6, 5, 0.2);
  for (const double of_a : {1.0, 0x1p400, 0x1p-400}) {
    for (const double of_b : {1.0, 0x1p150, 0x1p-150}) {
      for (const Preconditioner kind :
           {Preconditioner::none, Preconditioner::jacobi, Preconditioner::block_jacobi}) {
        SparseMatrix a = plain;
        for (double& value : a.value) value *= of_a;
        std::vector<double> b = test::row_sums(plain);
        for (double& value : b) value *= of_b;
        GmresOptions options = with(5, 30, QrMethod::automatic);
        options.precision = Element::fp32;
        options.tolerance = 1e-12;
        options.preconditioner = {.kind = kind, .block_size = 4, .apply = {}};
        const Solved result = solved(a, b, options);
        EXPECT_TRUE(result.info.ok) << of_a << ", " << of_b << ": " << result.info.why;
        for (const double x : result.x) ASSERT_NEAR(x * of_a / of_b, 1, 1e-9);
      }
    }
  }
}

TEST(GmresSingle, SinglePrecisionTakesAnInitialGuessAndPreconditioners) {
  const SparseMatrix a = test::laplacian(6);
  const std::vector<double> b = test::row_sums(a);
  GmresOptions options = with(1, 20, QrMethod::automatic);
  options.precision = Element::fp32;
  std::vector<double> x(b.size(), 1.0);
  const GmresInfo info = gmres(a, b, x, options);
  EXPECT_TRUE(info.ok);
  EXPECT_EQ(info.restarts, 0);
  EXPECT_EQ(x, std::vector<double>(b.size(), 1.0));
  // A function of the host: in fp64 whatever the vectors are in.
  options.tolerance = 1e-12;
  options.s = 4;
  std::vector<double> expected(b.size(), 0.5);
  options.preconditioner.kind = Preconditioner::jacobi;
  const GmresInfo by_matrix = gmres(a, b, expected, options);
  EXPECT_TRUE(by_matrix.ok) << by_matrix.why;
  options.preconditioner.kind = Preconditioner::custom;
  options.preconditioner.apply = [](std::span<const double> v, std::span<double> y) {
    for (std::size_t i = 0; i < v.size(); ++i) y[i] = v[i] / 6;
  };
  std::fill(x.begin(), x.end(), 0.5);
  const GmresInfo by_host = gmres(a, b, x, options);
  EXPECT_TRUE(by_host.ok) << by_host.why;
  EXPECT_LE(residual_of(a, b, x), 1e-12);
  EXPECT_EQ(by_host.restarts, by_matrix.restarts);
}

/// κ of 1e12 leaves fp32 nothing: what is told is true, and it ends.
TEST(GmresSingle, TellsWhereSinglePrecisionDoesNotDo) {
  std::vector<double> d(300);
  for (std::size_t i = 0; i < d.size(); ++i)
    d[i] = std::pow(10.0, -12.0 * static_cast<double>(i) / 299);
  const SparseMatrix a = test::diagonal(d);
  const std::vector<double> b(d.size(), 1.0);
  GmresOptions options = with(5, 30, QrMethod::automatic);
  options.precision = Element::fp32;
  options.restarts_max = 60;
  options.balance = false;  // which solves a diagonal
  const Solved result = solved(a, b, options);
  EXPECT_FALSE(result.info.ok);
  EXPECT_FALSE(result.info.why.empty());
  EXPECT_NEAR(result.info.relative_residual, residual_of(a, b, result.x),
              1e-6 * result.info.relative_residual);
}

}  // namespace
}  // namespace strata
