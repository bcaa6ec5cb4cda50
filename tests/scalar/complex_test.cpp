// Real and complex numbers under the same names.

#include "scalar/complex.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace strata {
namespace {

using C = std::complex<double>;

TEST(Complex, OfARealNumberChangesNothing) {
  EXPECT_EQ(conjugate(-2.5), -2.5);
  EXPECT_EQ(real_part(-2.5F), -2.5F);
  EXPECT_EQ(imaginary_part(-2.5F), 0.0F);
  EXPECT_EQ(square_of(-3.0), 9.0);
  EXPECT_EQ(times_power(3.0, -1), 1.5);
  EXPECT_FALSE(is_complex_v<double>);
}

TEST(Complex, HasItsParts) {
  const C z(3, -4);
  EXPECT_EQ(conjugate(z), C(3, 4));
  EXPECT_EQ(real_part(z), 3);
  EXPECT_EQ(imaginary_part(z), -4);
  EXPECT_EQ(square_of(z), 25);
  EXPECT_EQ(times_power(z, 2), C(12, -16));
  EXPECT_TRUE((is_complex_v<std::complex<float>>));
}

TEST(Complex, IsFiniteInBothParts) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(is_finite(C(1, 2)));
  for (const double bad : {kInfinity, -kInfinity, kNan}) {
    EXPECT_FALSE(is_finite(C(bad, 2)));
    EXPECT_FALSE(is_finite(C(1, bad)));
    EXPECT_FALSE(is_finite(bad));
  }
}

}  // namespace
}  // namespace strata
