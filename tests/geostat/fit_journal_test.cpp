// The journal of a fit: interrupted after every few evaluations and run again, it ends with the
// bits of a fit that was not; journals of other fits are refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/geostat/dense_oracle.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

class FitJournalTest : public testing::Test {
 protected:
  /// More than a few hundred points begin with a sample of them.
  FitJournalTest() { make(420); }
  void make(std::size_t n) {
    points = random_points(n, 91);
    SimulateOptions simulation{host_options()};
    simulation.seed = 92;
    values = simulate(points, {2, 0.08, 0.5, 0.05}, {}, simulation).values;
    static_cast<CovarianceOptions&>(options) = host_options();
    options.standard_errors = StandardErrorMethod::observed;
    options.journal = scratch.path("j.txt");
  }
  [[nodiscard]] FitResult run() const { return fit(points, values, options); }

  /// A fit that is cancelled after every so many evaluations and run again, and how often it ran.
  [[nodiscard]] std::pair<FitResult, int> interrupted_every(int every) {
    const auto lines = [&] {
      const std::string text = test::slurp(options.journal);
      return std::count(text.begin(), text.end(), '\n');
    };
    std::optional<FitResult> got;
    int runs = 0;
    for (; !got && runs < 400; ++runs) {
      const auto before = lines();
      options.run.progress = [&](const Progress&) { return lines() < before + every; };
      if (before == 0)  // the header comes with the first evaluation
        options.run.progress = [&](const Progress&) { return lines() < kHeader + every; };
      const auto error = kind_of_error([&] { got = run(); });
      if (got) continue;
      if (error != ErrorKind::cancelled || lines() <= before) {
        ADD_FAILURE() << "no progress";
        return {};
      }
    }
    options.run.progress = {};
    if (!got) ADD_FAILURE() << "it does not end";
    return {got.value_or(FitResult{}), runs};
  }
  static constexpr int kHeader = 13;  // lines

  test::Scratch scratch;
  Points points;
  std::vector<double> values;
  FitOptions options;
};

/// All numbers of a result but times.
std::vector<double> numbers_of(const FitResult& r) {
  std::vector<double> all{r.parameters.variance,
                          r.parameters.range,
                          r.parameters.smoothness,
                          r.parameters.nugget,
                          r.likelihood.log_likelihood,
                          r.likelihood.quadratic_form,
                          r.likelihood.factor.log_determinant,
                          r.standard_errors.variance,
                          r.standard_errors.range,
                          r.standard_errors.smoothness,
                          r.standard_errors.nugget,
                          static_cast<double>(r.evaluations)};
  all.insert(all.end(), r.likelihood.mean_coefficients.begin(),
             r.likelihood.mean_coefficients.end());
  for (const FitStep& s : r.path) {
    for (const double v : {s.range, s.smoothness, s.nugget, s.variance, s.log_likelihood})
      all.push_back(v);
  }
  for (const FitStage& s : r.stages) all.push_back(s.evaluations);
  return all;
}

TEST_F(FitJournalTest, AnInterruptedFitEndsWithTheSameBits) {
  options.smoothness = 0.5;
  options.journal.clear();
  const std::vector<double> expected = numbers_of(run());
  for (const int every : {7, 25, 60}) {
    if (every < 60 && test::kSanitized) continue;  // many starts
    options.journal = scratch.path("j" + std::to_string(every) + ".txt");
    const auto [result, runs] = interrupted_every(every);
    EXPECT_GT(runs, 2);
    EXPECT_TRUE(test::same_bits(numbers_of(result), expected))
        << "every " << every << " evaluations";
  }
}

// Covariances that bear no rounding to fewer bits: FP64 from the first that fails, before an
// interruption and behind it.
TEST_F(FitJournalTest, WhereLowerPrecisionsFailItGoesOnInFp64AfterAnInterruptionToo) {
  if (test::kSanitized) GTEST_SKIP() << "fewer points are not worth a decision";
  points = random_points(4500, 93);
  values.clear();
  for (std::size_t i = 0; i < points.x.size(); ++i)
    values.push_back(std::sin(3 * points.x[i]) * std::cos(2 * points.y[i]));
  options.smoothness = 1.5;
  options.nugget = 1e-9;
  options.start = {1, 0.3, 1.5, 1e-9};
  options.max_evaluations = 4;
  options.standard_errors = StandardErrorMethod::none;
  options.tile = 500;
  options.journal.clear();
  const FitResult exact = run();
  EXPECT_FALSE(exact.mixed.has_value());
  options.mixed.accuracy = 1e-6;
  const FitResult whole = run();
  options.journal = scratch.path("failed.txt");
  const auto [resumed, runs] = interrupted_every(2);
  EXPECT_GT(runs, 1);
  for (const FitResult* result : {&whole, &resumed}) {
    ASSERT_TRUE(result->mixed.has_value());
    EXPECT_EQ(result->mixed->accuracy, 0);
    EXPECT_NE(result->mixed->note.find("FP64"), std::string::npos) << result->mixed->note;
  }
  EXPECT_TRUE(test::same_bits(numbers_of(resumed), numbers_of(whole)));
  ASSERT_EQ(whole.path.size(), exact.path.size());
  for (std::size_t k = 0; k < exact.path.size(); ++k)
    EXPECT_NEAR(whole.path[k].log_likelihood, exact.path[k].log_likelihood, 1e-3) << k;
}

TEST_F(FitJournalTest, AFinishedFitIsReadBack) {
  options.smoothness = 0.5;
  if (test::kSanitized) options.relative_tolerance = 1e-2;
  const FitResult first = run();
  const std::string text = test::slurp(options.journal);
  const FitResult again = run();
  EXPECT_EQ(test::slurp(options.journal), text);
  EXPECT_TRUE(test::same_bits(numbers_of(again), numbers_of(first)));
  EXPECT_EQ(again.likelihood.run.n, 420);
  for (std::size_t k = 0; k < first.path.size(); ++k)
    EXPECT_EQ(again.path[k].seconds, first.path[k].seconds);
  // More evaluations than before go on where they ended.
  options.journal = scratch.path("few.txt");
  options.max_evaluations = 4;
  EXPECT_FALSE(run().converged);
  options.max_evaluations = 200;
  EXPECT_TRUE(test::same_bits(numbers_of(run()), numbers_of(first)));
}

TEST_F(FitJournalTest, OfAnotherFitIsRefusedAndSaysWhatDiffers) {
  make(60);
  options.max_evaluations = 3;
  options.standard_errors = StandardErrorMethod::none;
  (void)run();
  const auto refused = [&](const char* piece) {
    std::string message;
    EXPECT_EQ(kind_of_error([&] { (void)run(); }, &message), ErrorKind::input) << piece;
    EXPECT_NE(message.find(piece), std::string::npos) << message;
  };
  const FitOptions before = options;
  values[17] = std::nextafter(values[17], 9.0);
  refused("'values ");
  values[17] = std::nextafter(values[17], -9.0);
  points.x[3] += 1e-15;
  refused("'points 60 ");
  points.x[3] = random_points(60, 91).x[3];
  options.mean = Mean::linear;
  refused("'mean ");
  options = before;
  options.smoothness = 0.5;
  refused("smoothness estimated");
  options = before;
  options.range_bounds = Bounds{0.1, 0.2};
  refused("range bounds automatic");
  options = before;
  options.seed = 2;
  refused("seed 2");
  options = before;
  EXPECT_EQ(kind_of_error([&] { (void)run(); }), std::nullopt);
}

TEST_F(FitJournalTest, ThatIsNoneIsRefused) {
  make(60);
  const auto refused = [&](const std::string& text, const char* piece) {
    (void)scratch.put("j.txt", text);
    std::string message;
    EXPECT_EQ(kind_of_error([&] { (void)run(); }, &message), ErrorKind::input) << text;
    EXPECT_NE(message.find(piece), std::string::npos) << message;
    EXPECT_EQ(test::slurp(options.journal), text) << "it was overwritten";
  };
  refused("", "is not the journal");
  refused("x,y\n1,2\n", "is not the journal");
  options.max_evaluations = 3;
  std::filesystem::remove(options.journal);
  (void)run();
  const std::string good = test::slurp(options.journal);
  refused(good + "evaluation 0 1 2\n", "no evaluation");
  refused(good + "garbage\n", "garbage");
  std::string moved = good;
  const std::size_t line = moved.find("evaluation 0 ");
  ASSERT_NE(line, std::string::npos);
  moved.replace(line, 12, "evaluation 1");
  refused(moved, "made elsewhere");
  // What has no end is not read.
  for (const char* place : {"/dev/zero", "/dev/null"}) {
    options.journal = place;
    std::string message;
    EXPECT_EQ(kind_of_error([&] { (void)run(); }, &message), ErrorKind::input) << place;
    EXPECT_NE(message.find(place), std::string::npos) << message;
  }
  options.journal = scratch.path("absent/j.txt");
  EXPECT_EQ(kind_of_error([&] { (void)run(); }), ErrorKind::storage);
}

}  // namespace
}  // namespace strata
