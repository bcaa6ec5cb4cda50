// The journal of a fit: interrupted after every few evaluations and run again, it ends with the
// bits of a fit that was not; journals of other fits are refused.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
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
    SimulateOptions simulation;
    simulation.seed = 92;
    simulation.options = host_options();
    values = simulate(points, {2, 0.08, 0.5, 0.05}, {}, simulation).values;
    options.options = host_options();
    options.standard_errors = StandardErrorMethod::observed;
    options.journal = scratch.path("j.txt");
  }
  [[nodiscard]] FitResult run() const { return fit(points, values, options); }

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
    const auto lines = [&] {
      const std::string text = test::slurp(options.journal);
      return std::count(text.begin(), text.end(), '\n');
    };
    int runs = 0;
    std::vector<double> got;
    for (bool ended = false; !ended; ++runs) {
      ASSERT_LT(runs, 400);
      const auto before = lines();
      options.options.progress = [&](const Progress&) { return lines() < before + every; };
      if (before == 0)  // the header comes with the first evaluation
        options.options.progress = [&](const Progress&) { return lines() < 13 + every; };
      const auto error = kind_of_error([&] { got = numbers_of(run()); });
      ended = !error.has_value();
      if (!ended) {
        ASSERT_EQ(*error, ErrorKind::cancelled);
        ASSERT_GT(lines(), before) << "no progress";
      }
    }
    EXPECT_GT(runs, 2);
    EXPECT_TRUE(test::same_bits(got, expected)) << "every " << every << " evaluations";
  }
}

TEST_F(FitJournalTest, AFinishedFitIsReadBack) {
  options.smoothness = 0.5;
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
  options.max_evaluations = 8;
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
  options.max_evaluations = 8;
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
