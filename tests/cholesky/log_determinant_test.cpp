// Stochastic Lanczos quadrature and the divergence of two factors, against factors in long double.

#include "cholesky/log_determinant.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "cholesky/divergence.hpp"
#include "dense/tridiagonal.hpp"
#include "strata/error.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/host_probes.hpp"
#include "tests/support/perturbed_factor.hpp"

namespace strata {
namespace {

using test::estimate_log_determinant;
using test::Extended;
using test::Matrix;
using test::PerturbedFactor;
using test::WhitenedOperators;

/// d − log(1 + d), by the first terms of its series where log1p leaves too few digits.
long double extended_excess(long double d) {
  if (std::abs(d) > 1e-3L) return d - std::log1p(d);
  return d * d * (0.5L - d * (1 / 3.0L - d * (0.25L - d * (0.2L - d / 6))));
}

/// What the estimates are to find, from W = L̃⁻¹·L in long double.
struct DivergenceTruth {
  long double correction = 0;
  long double divergence = 0;

  explicit DivergenceTruth(const PerturbedFactor& factor)
      : DivergenceTruth(test::extended_cholesky(factor.sigma), test::extended(factor.l)) {}
  DivergenceTruth(const Extended& exact, const Extended& approximate) {
    Extended e = exact;
    for (std::int64_t j = 0; j < e.cols; ++j) {
      for (std::int64_t i = 0; i < e.rows; ++i) e(i, j) -= approximate(i, j);
    }
    test::extended_solve_lower(approximate, e);
    for (std::int64_t j = 0; j < e.cols; ++j) {
      const long double d = e(j, j);
      correction += 2 * std::log1p(d);
      divergence += (d * d + 2 * extended_excess(d)) / 2;
      for (std::int64_t i = j + 1; i < e.rows; ++i) divergence += e(i, j) * e(i, j) / 2;
    }
  }
};

WhitenedOperators operators_of(const PerturbedFactor& factor) {
  return {factor.product(), factor.forward(), factor.backward()};
}

constexpr int kPatterns = 8;

/// A factor of `sigma` with an error of relative size `size`, in one of the ways that factors err.
PerturbedFactor perturbed(const Matrix<double>& sigma, int pattern, double size,
                          std::uint64_t seed) {
  const std::int64_t n = sigma.rows;
  const Extended l = test::extended_cholesky(sigma);
  Extended m = test::extended(sigma);
  const auto by_element = [&](auto error) {
    return PerturbedFactor{sigma, test::make_matrix<double>(n, n, [&](auto i, auto j) {
                             return l(i, j) * (1 + size * error(i, j));
                           })};
  };
  switch (pattern) {
    case 0: return test::with_noise(sigma, size, seed);
    case 1: return by_element([](auto, auto) { return 1.0; });  // log G is a multiple of I
    case 2: return by_element([](auto i, auto j) { return i == j ? 0.0 : -1.0; });
    case 3:
      return by_element([&](auto i, auto j) {  // one tile, always towards zero
        return i >= n / 2 && j < n / 2
                   ? -random_uniform(seed, static_cast<std::uint64_t>(i * n + j))
                   : 0.0;
      });
    case 4: return by_element([&](auto i, auto j) { return i == n - 1 && j == 0 ? 1.0 : 0.0; });
    case 5:  // a nugget that was not meant
      for (std::int64_t i = 0; i < n; ++i)
        m(i, i) += size * random_uniform(seed, static_cast<std::uint64_t>(i));
      break;
    case 6:  // of rank one, positive
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < n; ++i)
          m(i, j) += size * test::signed_uniform(seed, i, 0) * test::signed_uniform(seed, j, 0);
      }
      break;
    default:  // another range: a smooth perturbation of all elements
      for (std::int64_t j = 0; j < n; ++j) {
        for (std::int64_t i = 0; i < n; ++i) {
          if (i != j) m(i, j) *= std::exp(static_cast<long double>(size) * std::log(m(i, j)));
        }
      }
  }
  return {sigma, test::rounded(test::extended_cholesky(m))};
}

struct Coverage {
  int cases = 0;
  int covered = 0;
  int sharp = 0;  // the error is at least a fiftieth of the bound

  void add(double error, double bound) {
    ++cases;
    covered += error <= bound ? 1 : 0;
    sharp += error >= bound / 50 ? 1 : 0;
  }
};

TEST(LogDeterminant, TheStatedIntervalsCoverTheTruthAsOftenAsTheySay) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  Coverage correction;
  Coverage divergence;
  Coverage unapplied;
  std::array<int, kPatterns> missed{};
  for (int pattern = 0; pattern < kPatterns; ++pattern) {
    for (const double size : {1e-2, 1e-4, 1e-8, 1e-14}) {
      for (const std::int64_t n : {3, 20, 70}) {
        for (const std::uint64_t seed : {1, 2, 3, 4}) {
          const double range = seed % 2 == 0 ? 0.1 : 1.0;
          const double nugget =
              seed <= 2 ? 1e-2 : 1e-7;  // the larger errors are then larger than it
          const PerturbedFactor factor = perturbed(
              test::exponential_covariance(n, range, nugget, seed), pattern, size, seed + 10);
          const DivergenceTruth truth(factor);
          const LogDeterminantCorrection out = estimate_log_determinant(
              n, operators_of(factor), {.probes = 32, .seed = 100 * seed + 7, .steps_max = 100});
          const auto error = static_cast<double>(std::abs(out.correction - truth.correction));
          EXPECT_TRUE(out.converged) << pattern << ' ' << size << ' ' << n << ' ' << out.steps;
          correction.add(error, out.statistical_bound_applied());
          if (error > out.statistical_bound_applied()) ++missed[static_cast<std::size_t>(pattern)];
          unapplied.add(static_cast<double>(std::abs(truth.correction)),
                        out.statistical_bound_unapplied());
          if (size < 1e-10) continue;  // below, rounding in the operators is most of it
          divergence.add(static_cast<double>(std::abs(out.divergence - truth.divergence)),
                         3 * out.divergence_standard_error + out.divergence_truncation +
                             1e-12 * out.divergence);
        }
      }
    }
  }
  const auto rate = [](const Coverage& c) { return static_cast<double>(c.covered) / c.cases; };
  ASSERT_GE(correction.cases, 200);
  EXPECT_GE(rate(correction), 0.95);
  EXPECT_GE(rate(unapplied), 0.95);
  EXPECT_GE(rate(divergence), 0.95);
  for (int pattern = 0; pattern < kPatterns; ++pattern)
    EXPECT_LE(missed[static_cast<std::size_t>(pattern)], 4) << "of 48 of pattern " << pattern;
  EXPECT_GE(correction.sharp, correction.cases / 2) << "the intervals are no wider than need be";
}

TEST(LogDeterminant, OneSpreadIsOneStandardError) {
  // The same matrix with many seeds: errors over standard errors have a mean square of about 1.
  const std::int64_t n = 40;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 0.3, 0.01, 4), 1e-3, 5);
  const DivergenceTruth truth(factor);
  double squares = 0;
  int beyond = 0;
  constexpr int kSeeds = 200;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const LogDeterminantCorrection out =
        estimate_log_determinant(n, operators_of(factor), {.probes = 32, .seed = 5000u + seed});
    const double ratio =
        (out.correction - static_cast<double>(truth.correction)) / out.standard_error;
    squares += ratio * ratio / kSeeds;
    beyond += std::abs(ratio) > 3 ? 1 : 0;
    EXPECT_LE(out.truncation, 0.01 * out.standard_error);
  }
  EXPECT_GT(squares, 0.8);
  EXPECT_LT(squares, 1.35);
  EXPECT_LE(beyond, kSeeds / 50);
}

TEST(LogDeterminant, TheIntervalHoldsWhereOneEigenvalueDominates) {
  // Each probe is the square of one nearly normal number: as skewed as probes get.
  const std::int64_t n = 60;
  const PerturbedFactor factor =
      perturbed(test::exponential_covariance(n, 0.3, 0.01, 4), 6, 1e-2, 5);
  const DivergenceTruth truth(factor);
  int covered = 0;
  constexpr int kSeeds = test::kSanitized ? 100 : 400;
  for (int seed = 0; seed < kSeeds; ++seed) {
    const LogDeterminantCorrection out =
        estimate_log_determinant(n, operators_of(factor), {.probes = 32, .seed = 900u + seed});
    const auto error = static_cast<double>(std::abs(out.correction - truth.correction));
    covered += error <= out.statistical_bound_applied() ? 1 : 0;
  }
  EXPECT_GE(covered, kSeeds * 95 / 100);
}

TEST(LogDeterminant, AnExactFactorNeedsNoCorrection) {
  for (const std::int64_t n : {1, 2, 17, 60}) {
    // Integers: the factor of min(i, j) is all ones, and of I it is I.
    PerturbedFactor ones{test::min_matrix<double>(n), Matrix<double>(n, n)};
    PerturbedFactor unit{Matrix<double>(n, n), Matrix<double>(n, n)};
    for (std::int64_t j = 0; j < n; ++j) {
      unit.sigma(j, j) = unit.l(j, j) = 1;
      for (std::int64_t i = j; i < n; ++i) ones.l(i, j) = 1;
    }
    const LogDeterminantCorrection none = estimate_log_determinant(n, operators_of(unit));
    EXPECT_EQ(none.correction, 0);
    EXPECT_EQ(none.statistical_bound_unapplied(), 0);
    EXPECT_EQ(none.divergence, 0);
    EXPECT_EQ(none.steps, 1);
    EXPECT_TRUE(none.converged);
    const LogDeterminantCorrection about = estimate_log_determinant(n, operators_of(ones));
    EXPECT_LE(std::abs(about.correction), about.statistical_bound_applied());
    EXPECT_LE(about.statistical_bound_unapplied(), 1e-14 * static_cast<double>(n * n));
    EXPECT_LE(about.divergence, 1e-26 * static_cast<double>(n * n * n));
    EXPECT_TRUE(about.converged);
  }
}

TEST(LogDeterminant, IsExactWhereTheProbesHaveNothingToGuess) {
  // log G is diagonal: each probe has the trace, whatever its signs.
  const std::int64_t n = 50;
  const Matrix<double> sigma = test::exponential_covariance(n, 0.3, 0.01, 4);
  const PerturbedFactor scaled = perturbed(sigma, 1, 1e-3, 0);
  const LogDeterminantCorrection out = estimate_log_determinant(n, operators_of(scaled));
  const double expected = -2 * static_cast<double>(n) * std::log1p(1e-3);
  EXPECT_NEAR(out.correction, expected, 1e-13 * std::abs(expected));
  EXPECT_LE(out.standard_error, 1e-12 * std::abs(expected));
  const DivergenceTruth truth(scaled);
  EXPECT_NEAR(out.divergence, static_cast<double>(truth.divergence), 1e-9 * out.divergence);
  EXPECT_NEAR(out.likelihood_difference_at_zero(), -expected / 2, 1e-12);
}

TEST(LogDeterminant, TakesMoreStepsWhereGIsFarFromTheIdentity) {
  const std::int64_t n = 60;
  const Matrix<double> sigma = test::exponential_covariance(n, 0.5, 1e-3, 4);
  PerturbedFactor far{sigma, Matrix<double>(n, n)};
  for (std::int64_t i = 0; i < n; ++i) far.l(i, i) = std::sqrt(sigma(i, i));
  const DivergenceTruth truth(far);
  const LogDeterminantCorrection out =
      estimate_log_determinant(n, operators_of(far), {.probes = 64, .seed = 3, .steps_max = 60});
  EXPECT_TRUE(out.converged);
  EXPECT_GT(out.steps, 6);
  EXPECT_LE(std::abs(out.correction - static_cast<double>(truth.correction)),
            out.statistical_bound_applied());
  EXPECT_LE(std::abs(out.divergence - static_cast<double>(truth.divergence)),
            3 * out.divergence_standard_error + out.divergence_truncation);
  const LogDeterminantCorrection few =
      estimate_log_determinant(n, operators_of(far), {.probes = 64, .seed = 3, .steps_max = 2});
  EXPECT_FALSE(few.converged);
  EXPECT_EQ(few.steps, 2);
  EXPECT_GT(few.truncation, out.truncation);
  const LogDeterminantCorrection near = estimate_log_determinant(
      n, operators_of(test::with_noise(sigma, 1e-8, 5)), {.probes = 64, .seed = 3});
  EXPECT_LE(near.steps, 4);
}

TEST(LogDeterminant, OperatorsThatAreNotOfAPositiveMatrixAreNoticed) {
  const std::int64_t n = 10;
  PerturbedFactor factor = test::with_noise(test::exponential_covariance(n, 0.3, 0.1, 4), 0, 5);
  factor.sigma(3, 3) = -50;
  const LogDeterminantCorrection out = estimate_log_determinant(n, operators_of(factor));
  EXPECT_TRUE(std::isnan(out.correction));
  EXPECT_FALSE(out.converged);
  EXPECT_THROW((void)estimate_log_determinant(n, operators_of(factor), {.probes = 1}), Error);
  EXPECT_THROW((void)estimate_log_determinant(n, operators_of(factor), {.steps_max = 0}), Error);
  EXPECT_EQ(estimate_log_determinant(0, operators_of(factor)).correction, 0);
}

TEST(LogDeterminant, EqualSeedsGiveEqualBits) {
  const std::int64_t n = 30;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 0.3, 0.01, 4), 1e-4, 5);
  const auto with = [&](std::uint64_t seed) {
    return estimate_log_determinant(n, operators_of(factor), {.probes = 8, .seed = seed});
  };
  EXPECT_EQ(with(3).correction, with(3).correction);
  EXPECT_NE(with(3).correction, with(4).correction);
}

TEST(ExcessOverLog, HasDigitsFromTheSmallestToTheLargest) {
  for (const double t :
       {1e-300, -1e-12, 1e-8, -1e-3, 0.1, 0.2499, 0.2501, -0.2499, -0.2501, -0.9, 3.0, 1e10}) {
    const long double expected = extended_excess(t);
    EXPECT_NEAR(excess_over_log(t), static_cast<double>(expected),
                1e-14 * static_cast<double>(expected))
        << t;
  }
  EXPECT_EQ(excess_over_log(0), 0);
  EXPECT_TRUE(std::isnan(excess_over_log(-1)));
  EXPECT_TRUE(std::isnan(excess_over_log(std::numeric_limits<double>::quiet_NaN())));
}

TEST(Divergence, IsThatInLongDoubleFromThe1eMinus28thToTheFirst) {
  for (const std::int64_t n : {1, 2, 33, 90}) {
    const Matrix<double> sigma = test::exponential_covariance(n, 0.3, 0.01, 4);
    const Extended exact = test::extended_cholesky(sigma);
    const Matrix<double> l = test::rounded(exact);
    for (const double size : {0.3, 1e-3, 1e-8, 1e-14}) {
      const PerturbedFactor factor = perturbed(sigma, 0, size, 6);
      const DivergenceTruth truth(test::extended(l),
                                  test::extended(factor.l));  // of the factors as they are
      const auto columns_of = [](const Matrix<double>& of) {
        return [&of](std::int64_t first, MatrixView<double> out) {
          for (std::int64_t j = 0; j < out.cols; ++j)
            std::copy_n(&of(0, first + j), out.rows, out.column(j));
        };
      };
      for (const std::int64_t chunk : {1, 7, 256}) {
        const Divergence out =
            kullback_leibler(n, columns_of(l), columns_of(factor.l), factor.forward(), chunk);
        EXPECT_NEAR(out.divergence, static_cast<double>(truth.divergence), 1e-12 * out.divergence)
            << n << ' ' << size;
        EXPECT_GT(out.divergence, 0);
        EXPECT_NEAR(out.log_determinant_difference, static_cast<double>(truth.correction),
                    1e-12 * static_cast<double>(n) * size);
        EXPECT_EQ(out.likelihood_difference_at_zero(),
                  std::abs(out.log_determinant_difference) / 2);
      }
      const Divergence same = kullback_leibler(n, columns_of(l), columns_of(l), factor.forward());
      EXPECT_EQ(same.divergence, 0);
      EXPECT_EQ(same.log_determinant_difference, 0);
    }
  }
}

TEST(Divergence, HasTheDirectionItSays) {
  // One variable: KL(N(0, s) ‖ N(0, m)) = ½·(s/m − 1 − log(s/m)).
  const auto of = [](double l, double approximate) {
    const auto constant = [](double value) {
      return [value](std::int64_t, MatrixView<double> out) { out(0, 0) = value; };
    };
    return kullback_leibler(1, constant(l), constant(approximate),
                            [=](MatrixView<double> b) { b(0, 0) /= approximate; })
        .divergence;
  };
  EXPECT_NEAR(of(2, 1), (3 - std::log(4.0)) / 2, 1e-15);
  EXPECT_NEAR(of(1, 2), (std::log(4.0) - 0.75) / 2, 1e-15);
  EXPECT_TRUE(std::isnan(of(-1, 2))) << "no factor";
  EXPECT_THROW((void)kullback_leibler(1, nullptr, nullptr, nullptr, 0), Error);
  EXPECT_EQ(kullback_leibler(0, nullptr, nullptr, nullptr).divergence, 0);
}

TEST(TridiagonalSpectrum, IsThatOfTheSecondDifference) {
  for (const std::size_t n : {1u, 2u, 5u, 40u, 100u}) {
    const TridiagonalSpectrum out =
        spectrum_of(std::vector<double>(n, 2.0), std::vector<double>(n - 1, -1.0));
    // 2 − 2·cos(kπ/(n + 1)), first elements √(2/(n + 1))·sin(kπ/(n + 1)).
    std::vector<std::pair<double, double>> found;
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      found.emplace_back(out.values[i], out.weights[i]);
      sum += out.weights[i];
    }
    std::sort(found.begin(), found.end());
    EXPECT_NEAR(sum, 1, 1e-14);
    for (std::size_t k = 1; k <= n; ++k) {
      const double angle = static_cast<double>(k) * std::acos(-1.0) / static_cast<double>(n + 1);
      EXPECT_NEAR(found[k - 1].first, 2 - 2 * std::cos(angle), 1e-14);
      EXPECT_NEAR(found[k - 1].second,
                  2 / static_cast<double>(n + 1) * std::sin(angle) * std::sin(angle), 1e-13);
    }
  }
  // Tiny numbers are as good as any, zeros split, and what is not a number is said.
  const TridiagonalSpectrum tiny = spectrum_of({0, 0}, {1e-200});
  EXPECT_NEAR(std::abs(tiny.values[0]), 1e-200, 1e-214);
  EXPECT_NEAR(tiny.weights[0], 0.5, 1e-15);
  const TridiagonalSpectrum split = spectrum_of({3, 5, 7}, {0, 0});
  EXPECT_EQ(split.values, (std::vector<double>{3, 5, 7}));
  EXPECT_EQ(split.weights, (std::vector<double>{1, 0, 0}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(spectrum_of({1, nan}, {1}).values[0]));
  EXPECT_THROW((void)spectrum_of({1, 2}, {}), Error);
}

}  // namespace
}  // namespace strata
