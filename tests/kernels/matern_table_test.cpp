// The polynomials that a GPU takes for the Matérn correlation, computed here on the CPU from the
// same header, against Boost.Math in long double.

#include "kernels/covariance/matern_table.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.hpp"
#include "kernels/covariance/covariance_boost.hpp"

namespace strata {
namespace {

/// The coefficients of all pieces, as the kernel computes them.
std::vector<double> table_of(const BesselOrder& order) {
  std::vector<double> table;
  for (int piece = 0; piece < kMaternTablePieces; ++piece) {
    double values[kMaternTableCount];
    double chebyshev[kMaternTableCount];
    for (int k = 0; k < kMaternTableCount; ++k) values[k] = matern_table_value(order, piece, k);
    for (int k = 0; k < kMaternTableCount; ++k) chebyshev[k] = matern_table_chebyshev(values, k);
    for (int k = 0; k < kMaternTableCount; ++k) table.push_back(matern_table_power(chebyshev, k));
  }
  return table;
}

void expect_accurate(const std::vector<double>& table, double nu, double x) {
  const long double expected = matern_correlation_boost(nu, x);
  const long double error = matern_table_correlation(table.data(), x) - expected;
  EXPECT_TRUE(std::fabs(error) <= 1e-13L * expected) << "nu " << nu << " x " << x;
}

TEST(MaternTable, RandomOrdersAndArguments) {
  for (std::uint64_t i = 0; i < 150; ++i) {
    const double nu =
        i % 3 == 0 ? 0.004 * static_cast<double>(i + 1) : 10 - 10 * random_uniform(1, i);
    const auto table = table_of(bessel_order(nu));
    for (std::uint64_t k = 0; k < 200; ++k) {
      expect_accurate(table, nu, std::exp2(-12 + 21 * random_uniform(2 + i, k)));
    }
  }
}

TEST(MaternTable, BoundariesOfPieces) {
  for (const double nu : {0.05, 0.3, 1.0, 2.7, 9.99, 10.0}) {
    const auto table = table_of(bessel_order(nu));
    for (const double x :
         {0x1p-12, 0.125, 0.140625, 1.875, 2.0, 2.25, 3.5, std::nextafter(512.0, 0)}) {
      expect_accurate(table, nu, x);
      if (x > kMaternTableLeast) expect_accurate(table, nu, std::nextafter(x, 0));
      if (x < 511) expect_accurate(table, nu, std::nextafter(x, 1000));
    }
  }
}

TEST(MaternTable, PlacesCoverTheTable) {
  EXPECT_EQ(matern_table_place(kMaternTableLeast).piece, 0);
  EXPECT_EQ(matern_table_place(kMaternTableLeast).t, -1);
  EXPECT_EQ(matern_table_place(std::nextafter(kMaternTableMost, 0)).piece, kMaternTablePieces - 1);
  EXPECT_EQ(matern_table_place(1).piece, 12 * 8);
  EXPECT_EQ(matern_table_place(1.0625).t, 0);  // the middle of [1, 1.125)
}

}  // namespace
}  // namespace strata
