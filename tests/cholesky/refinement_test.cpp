// Refinement: backward errors by sums in long double, quadratic forms by a factor in long double,
// preconditioners that are bad, indefinite or broken.

#include "cholesky/refinement.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "strata/error.hpp"
#include "tests/support/perturbed_factor.hpp"

namespace strata {
namespace {

using test::Matrix;
using test::PerturbedFactor;

constexpr RefinementMethod kMethods[] = {RefinementMethod::conjugate_gradients,
                                         RefinementMethod::gmres_left,
                                         RefinementMethod::gmres_right};

Matrix<double> right_hand_sides(std::int64_t n, std::int64_t columns, std::uint64_t seed = 9) {
  return test::make_matrix<double>(
      n, columns, [&](auto i, auto j) { return test::signed_uniform(seed, i, j); });
}

double norm_of(const Matrix<double>& a) {
  double norm = 0;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double row = 0;
    for (std::int64_t j = 0; j < a.rows; ++j) row += std::abs(a(i, j));
    norm = std::max(norm, row);
  }
  return norm;
}

RefinementOptions options_for(const Matrix<double>& a, RefinementMethod method) {
  RefinementOptions options;
  options.method = method;
  options.norm = norm_of(a);
  options.steps_max = 600;
  return options;
}

TEST(Refinement, ReachesTheBackwardErrorOfFp64FromAnyAccuracy) {
  for (const std::int64_t n : {1, 2, 17, 80}) {
    for (const double nugget : {1e-1, 1e-6, 1e-10}) {  // conditions of about 1e2, 1e7, 1e10
      for (const double noise : {0.0, 1e-10, 1e-6, 1e-3, 1e-2}) {
        const PerturbedFactor factor =
            test::with_noise(test::exponential_covariance(n, 30, nugget, 4), noise, 5);
        const Matrix<double> b = right_hand_sides(n, 3);
        for (const RefinementMethod method : kMethods) {
          Matrix<double> x(n, 3);
          const Refinement out = refine(factor.product(), factor.solve(), b.view(), x.view(),
                                        options_for(factor.sigma, method));
          const std::string what = std::to_string(n) + " " + std::to_string(nugget) + " " +
                                   std::to_string(noise) + " " +
                                   std::to_string(static_cast<int>(method));
          EXPECT_TRUE(out.converged) << what << ' ' << out.backward_error << ' ' << out.steps;
          EXPECT_LE(out.backward_error, attainable_backward_error(n)) << what;
          // The residual was summed up in double, its oracle is not.
          EXPECT_LE(test::backward_error(factor.sigma, b, x), 2 * attainable_backward_error(n))
              << what;
          if (noise == 0) {
            EXPECT_LE(out.steps, 4) << what;
          }
        }
      }
    }
  }
}

TEST(Refinement, TakesFewStepsWhereThePreconditionerIsGood) {
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(100, 0.3, 0.01, 4), 1e-6, 5);
  const Matrix<double> b = right_hand_sides(100, 4);
  for (const RefinementMethod method : kMethods) {
    Matrix<double> x(100, 4);
    const Refinement out = refine(factor.product(), factor.solve(), b.view(), x.view(),
                                  options_for(factor.sigma, method));
    EXPECT_TRUE(out.converged);
    EXPECT_LE(out.steps, 6);
    EXPECT_GE(out.steps, 2) << "1e-6 squared is not enough";
    EXPECT_EQ(out.columns.size(), 4u);
  }
}

TEST(Refinement, AColumnOfABlockIsWhatItIsAlone) {
  const std::int64_t n = 60;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 5, 1e-6, 4), 1e-2, 5);
  Matrix<double> b = right_hand_sides(n, 4);
  for (std::int64_t i = 0; i < n; ++i) b(i, 1) = i == 7 ? 1e-200 : 0;  // others take fewer steps
  for (std::int64_t i = 0; i < n; ++i) b(i, 2) = 0;
  for (const RefinementMethod method : kMethods) {
    Matrix<double> x(n, 4);
    const RefinementOptions options = options_for(factor.sigma, method);
    const Refinement all = refine(factor.product(), factor.solve(), b.view(), x.view(), options);
    for (std::int64_t j = 0; j < 4; ++j) {
      Matrix<double> one(n, 1);
      const Refinement alone =
          refine(factor.product(), factor.solve(), b.view().block(0, j, n, 1), one.view(), options);
      EXPECT_EQ(std::memcmp(one.data.data(), &x(0, j), static_cast<std::size_t>(n) * 8), 0) << j;
      EXPECT_EQ(alone.columns[0].steps, all.columns[static_cast<std::size_t>(j)].steps);
    }
    EXPECT_EQ(all.columns[2].steps, 0) << "b = 0";
    EXPECT_EQ(all.columns[2].backward_error, 0);
  }
}

TEST(Refinement, ReplacesResidualsOfLongRecurrences) {
  // No preconditioner at all: hundreds of steps, whose residual drifts.
  const std::int64_t n = 100;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 2, 1e-4, 4), 0, 5);
  const Matrix<double> b = right_hand_sides(n, 2);
  Matrix<double> x(n, 2);
  RefinementOptions options = options_for(factor.sigma, RefinementMethod::conjugate_gradients);
  options.steps_max = 2000;
  const Refinement out = refine(
      factor.product(), [](MatrixView<double>) {}, b.view(), x.view(), options);
  EXPECT_TRUE(out.converged) << out.backward_error;
  EXPECT_GT(out.steps, 50);
  EXPECT_GE(out.columns[0].replacements, 1);
  EXPECT_LE(test::backward_error(factor.sigma, b, x), 2 * attainable_backward_error(n));
}

TEST(Refinement, NoticesAPreconditionerThatIsNotPositiveDefinite) {
  const std::int64_t n = 40;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 0.3, 0.1, 4), 1e-3, 5);
  const Matrix<double> b = right_hand_sides(n, 2);
  const BlockSolver solve = factor.solve();
  const BlockSolver negative = [&](MatrixView<double> v) {
    solve(v);
    for (std::int64_t j = 0; j < v.cols; ++j) {
      for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) = -v(i, j);
    }
  };
  RefinementOptions options = options_for(factor.sigma, RefinementMethod::conjugate_gradients);
  options.fall_back = false;
  Matrix<double> x(n, 2);
  const Refinement left = refine(factor.product(), negative, b.view(), x.view(), options);
  EXPECT_FALSE(left.definite);
  EXPECT_FALSE(left.converged);
  EXPECT_EQ(left.columns[0].stop, RefinementStop::indefinite);
  EXPECT_EQ(left.backward_error, 1) << "x is zero still";
  options.fall_back = true;
  const Refinement out = refine(factor.product(), negative, b.view(), x.view(), options);
  EXPECT_FALSE(out.definite);
  EXPECT_TRUE(out.converged);
  EXPECT_LE(test::backward_error(factor.sigma, b, x), 2 * attainable_backward_error(n));
}

TEST(Refinement, AMatrixThatIsNotPositiveDefiniteIsNoticedToo) {
  const std::int64_t n = 12;
  PerturbedFactor factor = test::with_noise(test::exponential_covariance(n, 0.3, 0.1, 4), 0, 5);
  factor.sigma(4, 4) = -3;
  const Matrix<double> b = right_hand_sides(n, 1);
  Matrix<double> x(n, 1);
  const Refinement out = refine(factor.product(), factor.solve(), b.view(), x.view(),
                                options_for(factor.sigma, RefinementMethod::conjugate_gradients));
  EXPECT_FALSE(out.definite);
  EXPECT_TRUE(out.converged) << "GMRES takes any matrix";
  EXPECT_LE(test::backward_error(factor.sigma, b, x), 2 * attainable_backward_error(n));
}

TEST(Refinement, GmresTakesAnyPreconditionerAndRestarts) {
  const std::int64_t n = 60;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 1, 1e-3, 4), 1e-2, 5);
  const Matrix<double> b = right_hand_sides(n, 2);
  const BlockSolver solve = factor.solve();
  const BlockSolver skew = [&](MatrixView<double> v) {
    solve(v);
    for (std::int64_t j = 0; j < v.cols; ++j) {
      for (std::int64_t i = 0; i + 1 < v.rows; ++i) v(i, j) += 0.1 * v(i + 1, j);
    }
  };
  for (const RefinementMethod method :
       {RefinementMethod::gmres_left, RefinementMethod::gmres_right}) {
    for (const int restart : {4, 10, 100}) {
      RefinementOptions options = options_for(factor.sigma, method);
      options.restart = restart;
      Matrix<double> x(n, 2);
      const Refinement out = refine(factor.product(), skew, b.view(), x.view(), options);
      EXPECT_TRUE(out.converged) << restart << ' ' << out.backward_error;
      EXPECT_LE(test::backward_error(factor.sigma, b, x), 2 * attainable_backward_error(n));
    }
  }
}

TEST(Refinement, StopsWhereNothingIsGained) {
  const std::int64_t n = 50;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 5, 1e-6, 4), 1e-4, 5);
  const Matrix<double> b = right_hand_sides(n, 2);
  for (const RefinementMethod method : kMethods) {
    RefinementOptions options = options_for(factor.sigma, method);
    options.tolerance = 1e-25;
    Matrix<double> x(n, 2);
    const Refinement out = refine(factor.product(), factor.solve(), b.view(), x.view(), options);
    EXPECT_FALSE(out.converged);
    EXPECT_EQ(out.columns[0].stop, RefinementStop::stagnated);
    EXPECT_LE(out.backward_error, attainable_backward_error(n)) << "what can be had is kept";
    EXPECT_LT(out.steps, 200);
    options.steps_max = 1;
    Matrix<double> one(n, 2);
    const Refinement limited =
        refine(factor.product(), factor.solve(), b.view(), one.view(), options);
    EXPECT_EQ(limited.columns[1].stop, RefinementStop::limit);
    EXPECT_EQ(limited.steps, 1);
    EXPECT_LT(limited.backward_error, 1e-2) << "one step is taken into account";
    options.steps_max = 0;
    Matrix<double> none(n, 2);
    const Refinement measured =
        refine(factor.product(), factor.solve(), b.view(), none.view(), options);
    EXPECT_EQ(measured.columns[0].stop, RefinementStop::limit);
    EXPECT_EQ(measured.backward_error, 1);
  }
}

TEST(Refinement, HandsBackNothingWorseThanItGot) {
  const std::int64_t n = 30;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 0.3, 0.1, 4), 0, 5);
  const Matrix<double> b = right_hand_sides(n, 1);
  Matrix<double> x(n, 1);
  const RefinementOptions options =
      options_for(factor.sigma, RefinementMethod::conjugate_gradients);
  ASSERT_TRUE(refine(factor.product(), factor.solve(), b.view(), x.view(), options).converged);
  const std::vector<double> good = x.data;
  for (const RefinementMethod method : kMethods) {
    RefinementOptions again = options_for(factor.sigma, method);
    again.tolerance = 1e-25;
    const BlockSolver wild = [](MatrixView<double> v) {
      for (std::int64_t i = 0; i < v.rows; ++i) v(i, 0) *= 1e9 * (1 + i);
    };
    again.steps_max = 1;
    const Refinement out = refine(factor.product(), wild, b.view(), x.view(), again);
    EXPECT_LE(out.backward_error, attainable_backward_error(n));
    EXPECT_LE(test::backward_error(factor.sigma, b, x), 2 * attainable_backward_error(n));
  }
  Matrix<double> from_good(n, 1);
  from_good.data = good;
  const Refinement at_once =
      refine(factor.product(), factor.solve(), b.view(), from_good.view(), options);
  EXPECT_EQ(at_once.steps, 0);
  EXPECT_TRUE(test::same_bits(from_good.data, good));
}

TEST(Refinement, ANumberThatIsNotFiniteStopsItsColumnAlone) {
  const std::int64_t n = 20;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 0.3, 0.1, 4), 1e-3, 5);
  Matrix<double> b = right_hand_sides(n, 3);
  b(3, 1) = std::numeric_limits<double>::quiet_NaN();
  for (const RefinementMethod method : kMethods) {
    Matrix<double> x(n, 3);
    const Refinement out = refine(factor.product(), factor.solve(), b.view(), x.view(),
                                  options_for(factor.sigma, method));
    EXPECT_FALSE(out.converged);
    EXPECT_TRUE(std::isnan(out.backward_error));
    EXPECT_EQ(out.columns[1].stop, RefinementStop::failed);
    EXPECT_EQ(out.columns[0].stop, RefinementStop::reached);
    EXPECT_EQ(out.columns[2].stop, RefinementStop::reached);
    const BlockSolver broken = [](MatrixView<double> v) {
      v(0, 0) = std::numeric_limits<double>::infinity();
    };
    Matrix<double> y(n, 1);
    const Refinement failed = refine(factor.product(), broken, b.view().block(0, 0, n, 1), y.view(),
                                     options_for(factor.sigma, method));
    EXPECT_EQ(failed.columns[0].stop, RefinementStop::failed);
    EXPECT_EQ(failed.backward_error, 1) << "x is as it was";
  }
}

TEST(Refinement, MisuseIsNamedAndWhatOperatorsThrowComesOut) {
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(5, 0.3, 0.1, 4), 0, 5);
  const Matrix<double> b = right_hand_sides(5, 2);
  Matrix<double> x(5, 2), narrow(5, 1);
  const auto with = [&](auto change) {
    RefinementOptions options = options_for(factor.sigma, RefinementMethod::conjugate_gradients);
    change(options);
    return refine(factor.product(), factor.solve(), b.view(), x.view(), options);
  };
  EXPECT_THROW((void)with([](auto& o) { o.norm = 0; }), Error);
  EXPECT_THROW((void)with([](auto& o) { o.norm = std::numeric_limits<double>::quiet_NaN(); }),
               Error);
  EXPECT_THROW((void)with([](auto& o) { o.tolerance = -1; }), Error);
  EXPECT_THROW((void)with([](auto& o) { o.restart = 0; }), Error);
  EXPECT_THROW((void)with([](auto& o) { o.steps_max = -1; }), Error);
  EXPECT_THROW((void)refine(factor.product(), factor.solve(), b.view(), narrow.view(), {}), Error);
  const BlockSolver throws = [](MatrixView<double>) { throw std::runtime_error("broken"); };
  EXPECT_THROW((void)refine(factor.product(), throws, b.view(), x.view(),
                            options_for(factor.sigma, RefinementMethod::gmres_left)),
               std::runtime_error);
  Matrix<double> none(5, 0);
  RefinementOptions options = options_for(factor.sigma, RefinementMethod::conjugate_gradients);
  EXPECT_TRUE(
      refine(factor.product(), factor.solve(), none.view(), none.view(), options).converged);
  Matrix<double> empty(0, 2);
  EXPECT_TRUE(
      refine(factor.product(), factor.solve(), empty.view(), empty.view(), options).converged);
}

TEST(Refinement, TheNormOfANonnegativeMatrixIsItsLargestRowSum) {
  const Matrix<double> a = test::exponential_covariance(33, 0.3, 0.1, 4);
  const PerturbedFactor factor = test::with_noise(a, 0, 5);
  EXPECT_NEAR(nonnegative_norm(factor.product(), 33), norm_of(a), 1e-14 * norm_of(a));
}

TEST(QuadraticForms, AreBoundedOnBothSidesAndWrongBySquareOfTheResidual) {
  for (const std::int64_t n : {1, 5, 60}) {
    const Matrix<double> a = test::exponential_covariance(n, 0.5, 0.01, 4);
    const test::Extended exact = test::extended_cholesky(a);
    const Matrix<double> b = right_hand_sides(n, 3);
    const test::Extended solution = test::extended_solve(exact, b);
    // M = A/(1 ± 0.1) exactly: the spectrum of M⁻¹A is known.
    for (const double scale : {0.9, 1.1}) {
      const PerturbedFactor factor = {a, test::make_matrix<double>(n, n, [&](auto i, auto j) {
                                        return exact(i, j) /
                                               std::sqrt(static_cast<long double>(scale));
                                      })};
      for (const double wrong : {1e-2, 1e-5, 0.0}) {
        const Matrix<double> x = test::make_matrix<double>(n, 3, [&](auto i, auto j) {
          return solution(i, j) * (1 + wrong * test::signed_uniform(3, i, j));
        });
        Matrix<double> r = b;
        for (std::int64_t j = 0; j < 3; ++j) {
          for (std::int64_t i = 0; i < n; ++i) {
            long double sum = b(i, j);
            for (std::int64_t k = 0; k < n; ++k) sum -= static_cast<long double>(a(i, k)) * x(k, j);
            r(i, j) = static_cast<double>(sum);
          }
        }
        const auto forms =
            quadratic_forms(b.view(), x.view(), r.view(), factor.solve(), scale, norm_of(a));
        for (std::int64_t j = 0; j < 3; ++j) {
          long double phi = 0;
          for (std::int64_t i = 0; i < n; ++i) phi += b(i, j) * solution(i, j);
          const QuadraticForm& form = forms[static_cast<std::size_t>(j)];
          const auto error = static_cast<double>(phi - form.value);
          EXPECT_GE(error, -form.rounding);
          EXPECT_LE(error, form.remainder + form.rounding);
          EXPECT_LE(form.rounding, 1e-10 * form.value) << "not everything is rounding";
          if (wrong > 0 && n > 1) {
            EXPECT_NEAR(form.remainder, error, 1e-6 * error + form.rounding)
                << "M is A but for a factor, so the bound is sharp";
            EXPECT_LE(error, 100 * wrong * wrong * static_cast<double>(phi));
            EXPECT_GE(error, 0.01 * wrong * wrong * static_cast<double>(phi));
          }
        }
      }
    }
  }
  const Matrix<double> b(3, 1), low(2, 1);
  const BlockSolver none = [](MatrixView<double>) {};
  EXPECT_THROW((void)quadratic_forms(b.view(), b.view(), low.view(), none, 1, 1), Error);
  EXPECT_THROW((void)quadratic_forms(b.view(), b.view(), b.view(), none, 0, 1), Error);
}

TEST(QuadraticForms, AreThoseOfFp64AfterRefinement) {
  const std::int64_t n = 80;
  const PerturbedFactor factor =
      test::with_noise(test::exponential_covariance(n, 1, 1e-3, 4), 1e-3, 5);
  const test::Extended exact = test::extended_cholesky(factor.sigma);
  const Matrix<double> b = right_hand_sides(n, 2);
  Matrix<double> x(n, 2);
  const Refinement out = refine(factor.product(), factor.solve(), b.view(), x.view(),
                                options_for(factor.sigma, RefinementMethod::conjugate_gradients));
  ASSERT_TRUE(out.converged);
  EXPECT_GT(out.ritz_min, 0.5);
  EXPECT_LT(out.ritz_min, 1);
  EXPECT_GT(out.ritz_max, 1);
  EXPECT_LT(out.ritz_max, 2);
  const auto forms = quadratic_forms(b.view(), x.view(), out.residuals.view(), factor.solve(),
                                     out.ritz_min, norm_of(factor.sigma));
  const test::Extended solution = test::extended_solve(exact, b);
  for (std::int64_t j = 0; j < 2; ++j) {
    long double phi = 0;
    for (std::int64_t i = 0; i < n; ++i) phi += b(i, j) * solution(i, j);
    const QuadraticForm& form = forms[static_cast<std::size_t>(j)];
    EXPECT_NEAR(form.value, static_cast<double>(phi), form.rounding);
    EXPECT_NEAR(form.value, static_cast<double>(phi), 1e-12 * form.value);
    EXPECT_LE(form.remainder, 1e-20 * form.value);
  }
}

TEST(RitzValues, LieInTheSpectrumAndFindItsEnds) {
  // M = I and a diagonal A: the spectrum is what it says.
  const std::int64_t n = 40;
  PerturbedFactor factor{Matrix<double>(n, n), Matrix<double>(n, n)};
  for (std::int64_t i = 0; i < n; ++i) {
    factor.sigma(i, i) = 0.5 + static_cast<double>(i) / 20;
    factor.l(i, i) = 1;
  }
  const Matrix<double> b = right_hand_sides(n, 1);
  Matrix<double> x(n, 1);
  const Refinement out = refine(factor.product(), factor.solve(), b.view(), x.view(),
                                options_for(factor.sigma, RefinementMethod::conjugate_gradients));
  EXPECT_TRUE(out.converged);
  EXPECT_GE(out.ritz_min, 0.5 - 1e-12);
  EXPECT_LE(out.ritz_max, 2.45 + 1e-12);
  EXPECT_NEAR(out.ritz_min, 0.5, 1e-6);
  EXPECT_NEAR(out.ritz_max, 2.45, 1e-6);
}

}  // namespace
}  // namespace strata
