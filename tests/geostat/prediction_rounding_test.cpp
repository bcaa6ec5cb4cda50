// What predictions say of their rounding, against the same predictions in 50 digits: targets at
// data, near them, between and far away, and observations that are left out.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/geostat/fifty_digits.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

struct Exact {
  Digits mean = 0;
  Digits variance = 0;  ///< of the process
};

/// L⁻¹·b, for the lower triangle l.
std::vector<Digits> forward(const std::vector<std::vector<Digits>>& l, std::vector<Digits> b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= l[i][k] * b[k];
    b[i] /= l[i][i];
  }
  return b;
}

Digits product(const std::vector<Digits>& a, const std::vector<Digits>& b) {
  Digits sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Kriging with a mean of zero, with the sample's, or with one that is estimated.
std::vector<Exact> exact_predictions(const Points& at, const std::vector<double>& values,
                                     const MaternParameters& p, Mean mean, const Points& targets) {
  const std::size_t n = values.size();
  const std::vector<std::vector<Digits>> l = covariance_factor(p, at);
  std::vector<Digits> z(values.begin(), values.end());
  const std::vector<Digits> one = forward(l, std::vector<Digits>(n, Digits(1)));
  Digits beta = 0;
  if (mean == Mean::sample) {
    for (const Digits& v : z) beta += v / n;
  } else if (mean == Mean::constant) {
    beta = product(one, forward(l, z)) / product(one, one);
  }
  for (Digits& v : z) v -= beta;
  z = forward(l, z);
  std::vector<Exact> out;
  for (std::size_t t = 0; t < targets.x.size(); ++t) {
    std::vector<Digits> c;
    for (std::size_t i = 0; i < n; ++i)
      c.push_back(Digits(p.variance) * correlation(p, at, i, targets, t));
    c = forward(l, c);
    Digits variance = Digits(p.variance) - product(c, c);
    if (mean == Mean::constant) {
      const Digits u = 1 - product(one, c);
      variance += u * u / product(one, one);
    }
    out.push_back({beta + product(c, z), variance});
  }
  return out;
}

Points without(Points points, std::size_t row) {
  for (std::vector<double>* c : {&points.x, &points.y})
    c->erase(c->begin() + static_cast<std::ptrdiff_t>(row));
  return points;
}

Points targets_of(const RoundingProblem& problem) {
  const Points& p = problem.points;
  const double unit = p.x[0] > 1000 ? 1000 : 1;
  Points out;
  const auto add = [&](double x, double y) {
    out.x.push_back(x);
    out.y.push_back(y);
  };
  add(p.x[3], p.y[3]);
  add(p.x[5] + 1e-7 * unit, p.y[5]);
  add(p.x[7] + 1e-3 * unit, p.y[7]);
  add((p.x[1] + p.x[2]) / 2, (p.y[1] + p.y[2]) / 2);
  add(p.x[11] + 3 * unit, p.y[11]);
  return out;
}

/// Holds predictions against the truth. At a data point, where the standard error is 0, no error is
/// beside it.
struct Held {
  Tally means{};
  Tally standard_errors{};
  int lost = 0;

  void add(const PredictionRounding& rounding, const std::vector<double>& mean,
           const std::vector<double>& standard_error, const std::vector<Exact>& exact,
           const std::string& label) {
    double worst_mean = 0;
    double worst_error = 0;
    bool is_lost = false;
    for (std::size_t t = 0; t < exact.size(); ++t) {
      const double off = std::abs(static_cast<double>(Digits(mean[t]) - exact[t].mean));
      const Digits root = sqrt(exact[t].variance > 0 ? exact[t].variance : Digits(0));
      const double wrong = std::abs(static_cast<double>(Digits(standard_error[t]) - root));
      worst_mean = std::max(worst_mean, off);
      worst_error = std::max(worst_error, wrong);
      const auto error = static_cast<double>(root);
      if (error > 1e-15) is_lost = is_lost || off > 0.2 * error || wrong > 0.2 * error;
    }
    means.add(worst_mean, Digits(0), rounding.mean_error, label + " mean");
    standard_errors.add(worst_error, Digits(0), rounding.standard_error_error, label + " error");
    if (!is_lost) return;
    ++lost;
    EXPECT_FALSE(rounding.ok()) << label;
  }
};

TEST(PredictionRounding, HoldsTheTruthOfFiftyDigits) {
  Held predicted;
  Held left_out;
  int all_well = 0;
  const std::uint64_t seeds = test::campaign(400, 12, 4);
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const RoundingProblem problem(seed);
    const std::string label = "seed " + std::to_string(seed);
    const MaternParameters& p = problem.parameters;
    const Model model{p, problem.mean, {}, problem.points, problem.values};
    const Points targets = targets_of(problem);
    CovarianceOptions options = host_options();
    options.tile = 16;
    if (kind_of_error([&] { (void)predict(model, targets, options); })) continue;
    const Prediction got = predict(model, targets, options);
    predicted.add(got.rounding, got.mean, got.process_standard_error,
                  exact_predictions(model.points, model.values, p, model.mean, targets), label);
    all_well += got.rounding.ok() ? 1 : 0;
    const CrossValidation one = leave_one_out(model.points, model.values, p, model.mean, options);
    std::vector<double> mean;
    std::vector<double> standard_error;
    std::vector<Exact> exact;
    for (const std::size_t row : {9, 33}) {
      std::vector<double> others = model.values;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(row));
      const Points here{{model.points.x[row]}, {model.points.y[row]}};
      exact.push_back(
          exact_predictions(without(model.points, row), others, p, model.mean, here)[0]);
      exact.back().variance += Digits(p.nugget);
      mean.push_back(one.mean[row]);
      standard_error.push_back(one.standard_error[row]);
    }
    left_out.add(one.rounding, mean, standard_error, exact, label + " left out");
  }
  EXPECT_GT(2 * all_well, predicted.means.all) << "an ordinary model is right";
  if (seeds > 4) {
    EXPECT_GT(predicted.lost, 0) << "or it is no test of what is lost";
    for (Held* held : {&predicted, &left_out}) {
      held->means.expect_fair();
      held->standard_errors.expect_fair();
    }
  }
}

// Coordinates that differ by rounding from those of an observation: its value is what is predicted
// and the standard error is 0, which no error is a tenth of.
TEST(PredictionRounding, IsNotJudgedBesideAStandardErrorOfZero) {
  Model model{{1, 0.3, 0.5, 0}, Mean::zero, {}, random_points(40, 5), {}};
  model.points.x[0] = 0.3;
  for (std::size_t i = 0; i < 40; ++i) model.values.push_back(random_normal(6, i));
  const Points at{{0.1 + 0.2, model.points.x[1], 0.5}, {model.points.y[0], model.points.y[1], 2}};
  ASSERT_NE(at.x[0], model.points.x[0]);
  const Prediction got = predict(model, at, host_options());
  EXPECT_TRUE(got.rounding.ok());
  EXPECT_LT(got.rounding.mean_error, 1e-10);
  EXPECT_LT(got.rounding.standard_error_error_share, 1e-10);
  const Prediction exact =
      predict(model, {{model.points.x[1]}, {model.points.y[1]}}, host_options());
  EXPECT_TRUE(exact.rounding.ok());
  EXPECT_TRUE(std::isnan(exact.rounding.mean_error_share));
}

// In pieces and in one go the hardest targets are looked at; other units change nothing.
TEST(PredictionRounding, IsTheSameForPiecesAndUnits) {
  Model model{{2, 5, 1.5, 0}, Mean::constant, {}, random_points(60, 7), {}};
  for (std::size_t i = 0; i < 60; ++i) model.values.push_back(random_normal(8, i));
  const Points targets = random_points(200, 9);
  const Prediction whole = predict(model, targets, host_options());
  const auto source = [&, next = std::size_t{0}](std::int64_t) mutable {
    Points piece;
    if (next < targets.x.size()) {
      piece.x.push_back(targets.x[next]);
      piece.y.push_back(targets.y[next++]);
    }
    return piece;
  };
  const StreamedPrediction streamed = predict(
      model, source, [](const Points&, const Prediction&) {}, host_options());
  EXPECT_EQ(streamed.rounding.mean_error, whole.rounding.mean_error);
  EXPECT_EQ(streamed.rounding.standard_error_error, whole.rounding.standard_error_error);
  Model scaled = model;
  scaled.parameters.variance = std::ldexp(model.parameters.variance, 900);
  for (double& v : scaled.values) v = std::ldexp(v, 450);
  const Prediction other = predict(scaled, targets, host_options());
  EXPECT_EQ(other.rounding.mean_error, std::ldexp(whole.rounding.mean_error, 450));
  EXPECT_EQ(other.rounding.mean_error_share, whole.rounding.mean_error_share);
}

}  // namespace
}  // namespace strata
