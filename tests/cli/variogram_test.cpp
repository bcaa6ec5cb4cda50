// strata variogram: the program gives the library what its options and columns say, and writes what
// it says. What the library makes of it, its own tests compare with an oracle.

#include <cmath>
#include <filesystem>

#include "strata/variogram.hpp"
#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

class CliVariogram : public testing::Test {
 protected:
  CliVariogram() {
    for (std::size_t i = 0; i < 60; ++i) {
      points.x.push_back(10 * random_uniform(1, i));
      points.y.push_back(8 * random_uniform(2, i));
      times.push_back(std::floor(3 * random_uniform(3, i)));
      values.push_back(3 + std::sin(points.x[i]) + 0.3 * random_normal(5, i));
    }
    write_csv(path("data.csv"), {"x", "y", "day", "v"}, {points.x, points.y, times, values});
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words verb(const Words& more = {}) const {
    return Words{"variogram", path("data.csv"), "--x", "x", "--y", "y", "--value", "v"} + more;
  }
  void expect_classes(const Words& words, const Variogram& expected) const {
    const Json object = expect_json(words);
    const Json& classes = object.at("variogram").at("classes");
    ASSERT_EQ(classes.size(), expected.classes.size());
    for (std::size_t k = 0; k < classes.size(); ++k) {
      const VariogramClass& one = expected.classes[k];
      EXPECT_EQ(classes.at(k).at("pairs").get<std::int64_t>(), one.pairs);
      EXPECT_EQ(classes.at(k).at("to").get<double>(), one.to);
      EXPECT_EQ(classes.at(k).at("semivariance").get<double>(), one.semivariance);
      EXPECT_EQ(classes.at(k).at("robust").get<double>(), one.robust);
    }
    EXPECT_EQ(object.at("variogram").at("mean_square").get<double>(), expected.mean_square);
  }

  Scratch scratch;
  Points points;
  std::vector<double> times, values;
};

TEST_F(CliVariogram, OptionsReachTheLibrary) {
  VariogramOptions options;
  expect_classes(verb(), variogram(points, values, options));
  options.mean = Mean::linear;
  options.cutoff = 3;
  options.lags = 4;
  options.directions = {0, 45.5};
  options.tolerance = 30;
  expect_classes(verb({"--mean", "linear", "--cutoff", "3", "--lags", "4", "--directions", "0,45.5",
                       "--tolerance", "30"}),
                 variogram(points, values, options));
  options = {};
  options.width = 0.5;
  options.time_lags = 2;
  options.time_width = 1;
  Points timed = points;
  timed.t = times;
  expect_classes(verb({"--width", "0.5", "--time", "day", "--time-lags", "2", "--time-width", "1"}),
                 variogram(timed, values, options));
  options = {};
  options.distance = Distance::great_circle;
  expect_classes(verb({"--distance", "great-circle"}), variogram(points, values, options));
}

TEST_F(CliVariogram, WritesWhatItPrints) {
  const std::string text =
      expect_done(verb({"--directions", "0,90", "-o", path("v.csv"), "--report", path("v.html")}));
  expect_pieces(text,
                {"60 observations of v", "direction", "semivariance", "robust", "written to"});
  const Variogram expected =
      variogram(points, values, {.mean = Mean::constant, .directions = {0, 90}});
  const Table table = read_csv(path("v.csv"));
  EXPECT_EQ(table.names(), (std::vector<std::string>{"direction", "from", "to", "pairs", "distance",
                                                     "semivariance", "robust"}));
  const std::vector<double> found = table.column("semivariance");
  ASSERT_EQ(found.size(), expected.classes.size());
  for (std::size_t k = 0; k < found.size(); ++k)
    EXPECT_EQ(found[k], expected.classes[k].semivariance);
  EXPECT_GT(std::filesystem::file_size(path("v.html")), 10'000U);
}

TEST_F(CliVariogram, WhatIsHeldOutAndWhatIsNotThereIsTold) {
  expect_pieces(expect_done(verb({"--holdout", "0.5"})), {"30 observations of v, 30 held out"});
  EXPECT_EQ(expect_json(verb({"--holdout", "0.5"})).at("held_out").get<int>(), 30);
  expect_refused(verb({"--cutoff", "1e-9"}), 1, {"no two of 60 observations are within 1e-09"});
}

TEST_F(CliVariogram, ACloudHasTheRowsOfTheFile) {
  (void)expect_done(verb({"--cloud", "--cutoff", "0.7", "-o", path("cloud.csv")}));
  VariogramOptions options;
  options.cutoff = 0.7;
  const std::vector<VariogramPair> expected = variogram_cloud(points, values, options);
  const Table table = read_csv(path("cloud.csv"));
  ASSERT_EQ(table.rows(), std::ssize(expected));
  ASSERT_GT(expected.size(), 5U);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    EXPECT_EQ(table.column("first")[k], static_cast<double>(expected[k].first + 1));
    EXPECT_EQ(table.column("second")[k], static_cast<double>(expected[k].second + 1));
    EXPECT_EQ(table.column("semivariance")[k], expected[k].semivariance);
  }
}

/// The picture of a fit, and that of a variogram with a model.
TEST_F(CliVariogram, AModelIsDrawnBeside) {
  (void)expect_done(Words{"fit", path("data.csv"), "--x", "x", "--y", "y", "--value", "v",
                          "--smoothness", "0.5", "-o", path("m.json"), "--report",
                          path("fit.html")} +
                    small_device());
  const auto page = [&](const std::string& name) {
    std::ifstream file(path(name));
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_NE(page("fit.html").find("Semivariogram of the residuals, with the model"),
            std::string::npos);
  (void)expect_done(verb({"--model", path("m.json"), "--report", path("v.html")}));
  EXPECT_NE(page("v.html").find("Semivariogram of v"), std::string::npos);
  const Words drawn{"--model", path("m.json"), "--report", path("w.html")};
  expect_refused(verb(drawn + Words{"--distance", "great-circle"}), 2, {"distances are not those"});
  expect_refused(verb(drawn + Words{"--time", "day", "--time-width", "1"}), 2,
                 {"one without times", "with times"});
  expect_refused(verb({"--model", path("m.json")}), 2, {"--model", "--report"});
}

TEST_F(CliVariogram, WhatMakesNoSenseIsNamed) {
  expect_refused(verb({"--cloud"}), 2, {"--cloud", "--output"});
  expect_refused(verb({"--cloud", "-o", path("c.csv"), "--report", path("c.html")}), 2,
                 {"--report"});
  expect_refused(verb({"--cloud", "-o", path("c.csv"), "--directions", "0"}), 2, {"--directions"});
  expect_refused(verb({"--lags", "0"}), 2, {"lags is 0"});
  expect_refused(verb({"--lags", "3", "--width", "1"}), 2, {"--lags", "--width"});
  expect_refused(verb({"--tolerance", "20"}), 2, {"--tolerance", "--directions"});
  expect_refused(verb({"--cutoff", "-1"}), 2, {"--cutoff"});
  expect_refused(verb({"--directions", "0", "--tolerance", "100"}), 2, {"tolerance of 100"});
  expect_refused(verb({"--time", "day"}), 2, {"--time-width"});
  expect_refused(verb({"--time-width", "1"}), 2, {"--time "});
  expect_refused(verb({"--mean", "cubic"}), 2, {"cubic"});
  expect_refused({"variogram", path("data.csv"), "--x", "x", "--y", "y", "--value", "w"}, 2,
                 {"'w'"});
}

}  // namespace
}  // namespace strata::test
