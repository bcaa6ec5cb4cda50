// The numbers that example 02 prints, against its model written down again: a Matérn covariance of
// smoothness 3/2 in closed form, a Cholesky factorization in plain loops, and an unknown mean.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

namespace {

using Real = long double;

/// What the example says it found.
struct Printed {
  double variance = 0, range = 0, nugget = 0, log_likelihood = 0;
  std::array<double, 2> mean{}, error{};
};

Printed run_example() {
  std::string text;
  std::FILE* pipe = popen(EXAMPLE_02, "r");
  if (pipe == nullptr) return {};
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  EXPECT_EQ(pclose(pipe), 0) << text;
  Printed p;
  const int read = std::sscanf(
      text.c_str(), "variance %lf, range %lf, nugget %lf, log-likelihood %lf %lf +- %lf %lf +- %lf",
      &p.variance, &p.range, &p.nugget, &p.log_likelihood, &p.mean[0], &p.error[0], &p.mean[1],
      &p.error[1]);
  EXPECT_EQ(read, 8) << text;
  return p;
}

struct Field {
  std::vector<Real> x, y, value;
};

/// The example's data.
Field data() {
  Field field;
  for (int i = 0; i < 400; ++i) {
    const double t = 0.05 * i;
    field.x.push_back(0.05 * t * std::cos(t));
    field.y.push_back(0.05 * t * std::sin(t));
    field.value.push_back(std::sin(3 * static_cast<double>(field.x.back())) +
                          std::cos(2 * static_cast<double>(field.y.back())) +
                          0.05 * std::sin(37.0 * i));
  }
  return field;
}

class Model {
 public:
  Model(const Field& field, Real variance, Real range, Real nugget)
      : field_(field), variance_(variance), range_(range), nugget_(nugget), n_(field.x.size()) {
    l_.resize(n_ * n_);
    for (std::size_t j = 0; j < n_; ++j) {
      for (std::size_t i = j; i < n_; ++i) {
        Real sum = covariance(field.x[i], field.y[i], j) + (i == j ? nugget : 0);
        for (std::size_t k = 0; k < j; ++k) sum -= l_[i * n_ + k] * l_[j * n_ + k];
        l_[i * n_ + j] = i == j ? std::sqrt(sum) : sum / l_[j * n_ + j];
      }
    }
    ones_ = whitened(std::vector<Real>(n_, 1));
    residual_ = whitened(field.value);
    information_ = dot(ones_, ones_);
    mean_ = dot(ones_, residual_) / information_;
    for (std::size_t i = 0; i < n_; ++i) residual_[i] -= mean_ * ones_[i];
  }

  [[nodiscard]] Real log_likelihood() const {
    Real sum =
        static_cast<Real>(n_) * std::log(2 * std::acos(Real{-1})) + dot(residual_, residual_);
    for (std::size_t i = 0; i < n_; ++i) sum += 2 * std::log(l_[i * n_ + i]);
    return -sum / 2;
  }

  /// Mean and standard error of a new observation, the mean's uncertainty included.
  [[nodiscard]] std::pair<Real, Real> predict(Real x, Real y) const {
    std::vector<Real> c;
    for (std::size_t i = 0; i < n_; ++i) c.push_back(covariance(x, y, i));
    const std::vector<Real> w = whitened(c);
    const Real rest = 1 - dot(ones_, w);
    const Real variance = variance_ - dot(w, w) + rest * rest / information_ + nugget_;
    return {mean_ + dot(w, residual_), std::sqrt(variance)};
  }

 private:
  [[nodiscard]] Real covariance(Real x, Real y, std::size_t j) const {
    const Real h = std::hypot(x - field_.x[j], y - field_.y[j]) / range_;
    return variance_ * (1 + h) * std::exp(-h);
  }
  [[nodiscard]] std::vector<Real> whitened(std::vector<Real> b) const {
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t k = 0; k < i; ++k) b[i] -= l_[i * n_ + k] * b[k];
      b[i] /= l_[i * n_ + i];
    }
    return b;
  }
  static Real dot(const std::vector<Real>& a, const std::vector<Real>& b) {
    Real sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  }

  const Field& field_;
  Real variance_, range_, nugget_;
  std::size_t n_;
  std::vector<Real> l_, ones_, residual_;
  Real information_ = 0, mean_ = 0;
};

class GaussianProcess : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (std::filesystem::exists(EXAMPLE_02)) printed = run_example();
  }
  void SetUp() override {
    if (!std::filesystem::exists(EXAMPLE_02)) GTEST_SKIP() << EXAMPLE_02 << " was not built";
  }

  static inline Printed printed;
  static inline const Field field = data();
};

TEST_F(GaussianProcess, TheLikelihoodIsThatOfTheParameters) {
  const Model model(field, printed.variance, printed.range, printed.nugget);
  const auto expected = static_cast<double>(model.log_likelihood());
  EXPECT_GT(expected, 0);
  // Parameters are printed to six digits and the value to eight. At a maximum half a unit of the
  // sixth changes it by n/2 squares of 5e-6, a part in 1e11, so that the value's own rounding, half
  // a unit of the eighth digit, is what is left.
  EXPECT_NEAR(printed.log_likelihood, expected, 5e-8 * expected);
}

TEST_F(GaussianProcess, TheParametersAreAMaximum) {
  const Model best(field, printed.variance, printed.range, printed.nugget);
  // A hundredth to either side is some 2,000 times what six digits can say.
  for (const Real factor : {0.99L, 1.01L}) {
    const Real v = printed.variance, r = printed.range, g = printed.nugget;
    EXPECT_LT(Model(field, factor * v, r, g).log_likelihood(), best.log_likelihood());
    EXPECT_LT(Model(field, v, factor * r, g).log_likelihood(), best.log_likelihood());
    EXPECT_LT(Model(field, v, r, factor * g).log_likelihood(), best.log_likelihood());
    EXPECT_LT(Model(field, factor * v, factor * r, g).log_likelihood(), best.log_likelihood());
    EXPECT_LT(Model(field, factor * v, r / factor, g).log_likelihood(), best.log_likelihood());
  }
}

TEST_F(GaussianProcess, ThePredictionsAreThoseOfTheParameters) {
  const Model model(field, printed.variance, printed.range, printed.nugget);
  const std::array<std::pair<Real, Real>, 2> places{{{0.1L, 0.2L}, {0.3L, -0.1L}}};
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto [mean, error] = model.predict(places[i].first, places[i].second);
    // Printed with six decimals, from parameters of six digits, to whose relative errors of 5e-6
    // a standard error is about as sensitive, and a mean between data less.
    EXPECT_NEAR(printed.mean[i], static_cast<double>(mean), 1e-5 * static_cast<double>(mean));
    EXPECT_NEAR(printed.error[i], static_cast<double>(error), 2e-5 * static_cast<double>(error));
  }
}

}  // namespace
