// strata bench mixed and bench estimates: the rows, their figures, and what is refused.

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/cli/program.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

const Words kMixed{"bench",   "mixed",    "--devices",    "host",        "--n",
                   "160,320", "--tile",   "32",           "--repeats",   "1",
                   "--range", "0.03,0.2", "--accuracies", "0,1e-5,1e-8", "--divergence"};

TEST(CliBench, MixedHasARowForEachSizeRangeAndAccuracy) {
  const Json object = expect_json(kMixed);
  EXPECT_EQ(object.at("benchmark"), "mixed");
  EXPECT_EQ(object.at("sizes"), Json::parse("[160,320]"));
  ASSERT_EQ(object.at("results").size(), 12U);
  std::size_t at = 0;
  for (const int n : {160, 320}) {
    for (const double range : {0.03, 0.2}) {
      double before = 0;
      double exact = 0;
      for (const double accuracy : {0.0, 1e-5, 1e-8}) {
        const Json& row = object.at("results").at(at++);
        EXPECT_EQ(row.at("n"), n);
        EXPECT_EQ(row.at("range"), range);
        EXPECT_EQ(row.at("accuracy_asked"), accuracy);
        EXPECT_TRUE(row.at("ok").get<bool>());
        const double seconds = row.at("seconds").get<double>();
        EXPECT_DOUBLE_EQ(row.at("flops_per_second").get<double>(),
                         static_cast<double>(n) * n * n / 3 / seconds);
        const double determinant = row.at("log_determinant").get<double>();
        if (accuracy == 0) {
          exact = determinant;
          EXPECT_FALSE(row.contains("divergence"));
          continue;
        }
        // The same factorization as the divergence's, so the determinants differ as it says.
        const double difference = row.at("likelihood_difference_at_zero").get<double>();
        EXPECT_NEAR(std::fabs(exact - determinant) / 2, difference, 1e-11 * std::fabs(exact));
        const double divergence = row.at("divergence").get<double>();
        EXPECT_GE(divergence, 0);
        if (accuracy == 1e-8) {
          EXPECT_LT(divergence, before);
        }
        before = divergence;
      }
    }
  }
}

TEST(CliBench, MixedDrawsItsFigures) {
  const Scratch scratch;
  const std::string page = scratch.path("mixed.html");
  const std::string said = expect_done(kMixed + Words{"--report", page});
  expect_pieces(said, {"divergence", "TFLOP/s", "likelihood at zero off by"});
  std::ifstream file(page);
  const std::string html{std::istreambuf_iterator<char>(file), {}};
  expect_pieces(html, {"Rate, range 0.03", "Rate, range 0.2", "Products left out",
                       "Kullback-Leibler divergence from FP64", "Traffic of a factorization",
                       "L, range 0.2, 1e-05"});
}

TEST(CliBench, EstimatesStandBesideThoseOfFp64) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Words command{"bench",       "estimates", "--devices",    "host",    "--n",
                      "60",          "--tile",    "32",           "--range", "0.1",
                      "--data-sets", "3",         "--accuracies", "1e-9",    "--no-guard"};
  const Json object = expect_json(command);
  EXPECT_EQ(object.at("n"), 60);
  ASSERT_EQ(object.at("results").size(), 2U);
  for (const Json& row : object.at("results")) {
    for (const char* name : {"variance", "range", "smoothness"}) {
      const Json& of = row.at(name);
      const auto quartiles = of.at("quartiles").get<std::vector<double>>();
      auto estimates = of.at("estimates").get<std::vector<double>>();
      ASSERT_EQ(estimates.size(), 3U);
      std::sort(estimates.begin(), estimates.end());
      EXPECT_DOUBLE_EQ(quartiles[0], (estimates[0] + estimates[1]) / 2);
      EXPECT_DOUBLE_EQ(quartiles[1], estimates[1]);
      EXPECT_DOUBLE_EQ(quartiles[2], (estimates[1] + estimates[2]) / 2);
      const double off = of.at("largest_relative_difference").get<double>();
      if (row.at("accuracy") == 0.0) {
        EXPECT_EQ(off, 0);
      }
      if (row.at("accuracy") == 1e-9) {
        EXPECT_LT(off, 1e-3);  // the search stops at 1e-6 of each parameter, flat as it may be
      }
    }
  }
  EXPECT_EQ(object.at("results").at(0).at("range").at("truth"), 0.1);
  const Words one{"bench",        "estimates",   "--devices", "host",    "--n",
                  "40",           "--data-sets", "1",         "--range", "0.1",
                  "--accuracies", "1e-9",        "--no-guard"};
  expect_pieces(expect_done(one), {"range 0.1", "FP64", "1e-09", "smoothness"});
  expect_refused({"bench", "estimates", "--n", "100", "--accuracies", "2"}, 2, {"2"});
  expect_refused({"bench", "mixed", "--n", "100", "--accuracies", "1e-5,2"}, 2, {"2"});
  expect_refused({"bench", "estimates", "--n", "100", "--order", "odd"}, 2, {"odd"});
}

}  // namespace
}  // namespace strata::test
