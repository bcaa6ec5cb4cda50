// strata fit: where it searches, and what it says first where its estimates are to be doubted.

#include <algorithm>
#include <cmath>
#include <regex>
#include <set>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

class CliFitSearch : public testing::Test {
 protected:
  CliFitSearch() {
    for (std::size_t i = 0; i < 40; ++i) {
      x.push_back(10 * random_uniform(11, 2 * i));
      y.push_back(8 * random_uniform(11, 2 * i + 1));
      v.push_back(3 + std::sin(x[i]) + 0.2 * y[i] + 0.3 * random_normal(12, i));
    }
    write();
  }
  void write() { write_csv(path("d.csv"), {"x", "y", "v"}, {x, y, v}); }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words fit(const Words& more) const {
    return Words{"fit", path("d.csv"), "--x", "x", "--y", "y", "--value", "v"} + small_device() +
           more;
  }
  /// A run whose numbers are none to be trusted: it says them all the same, and ends with 1.
  [[nodiscard]] static std::string expect_doubted(const Words& words) {
    const Outcome outcome = run_program(words);
    EXPECT_EQ(outcome.status, 1) << testing::PrintToString(words) << outcome.err;
    return outcome.out;
  }
  /// What stands before the estimates.
  [[nodiscard]] static std::string head_of(const std::string& text) {
    return text.substr(0, text.find("fitted parameters"));
  }

  Scratch scratch;
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> v;
};

TEST_F(CliFitSearch, AnEstimateOnABoundIsSaidFirst) {
  const Words words = fit({"--smoothness", "0.5", "--bounds", "range=0.01:0.02,noise-ratio=0:2"});
  const Json object = expect_json(words);
  ASSERT_GE(object.at("at_bounds").size(), 1U);
  const Json& bound = object.at("at_bounds")[0];
  EXPECT_EQ(bound.at("parameter"), "range");
  EXPECT_EQ(bound.at("bound"), "upper");
  EXPECT_EQ(bound.at("value"), 0.02);
  EXPECT_EQ(bound.at("end_of_domain"), false);
  EXPECT_TRUE(object.at("standard_errors").at("range").is_null());
  expect_pieces(head_of(expect_done(words)), {"range", "upper bound", "0.02", "--bounds"});
  // Away from its bounds nothing is said.
  const Words plain = fit({"--smoothness", "0.5", "--nugget", "0.1"});
  EXPECT_TRUE(expect_json(plain).at("at_bounds").empty());
  EXPECT_EQ(head_of(expect_done(plain)).find("bound"), std::string::npos);
}

TEST_F(CliFitSearch, AnEstimateAtTheEndOfItsDomainIsSaidBesideIt) {
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(x[i] / 1.5) + std::cos(y[i]);
  write();
  const Words words = fit({"--distance", "great-circle"});
  const Json object = expect_json(words);
  std::set<std::string> ends;
  for (const Json& bound : object.at("at_bounds"))
    if (bound.at("end_of_domain") == true) ends.insert(bound.at("parameter").get<std::string>());
  EXPECT_EQ(ends, (std::set<std::string>{"noise-ratio", "smoothness"}));
  EXPECT_TRUE(object.at("remarks").empty());
  const std::string text = expect_done(words);
  EXPECT_EQ(head_of(text).find("bound"), std::string::npos) << "it is no warning: " << text;
  const std::regex smoothness("\n  smoothness +0\\.5 +at the end of its domain\n");
  const std::regex nugget("\n  nugget +0 +at the end of its domain\n");
  EXPECT_TRUE(std::regex_search(text, smoothness)) << text;
  EXPECT_TRUE(std::regex_search(text, nugget)) << text;
  expect_pieces(text, {"(± standard errors", "what is on a bound is taken as known)"});
  // What is held says nothing.
  const std::string held = expect_done(fit(
      {"--distance", "great-circle", "--smoothness", "0.5", "--nugget", "0.1", "--range", "300"}));
  EXPECT_EQ(held.find("domain"), std::string::npos) << held;
  EXPECT_EQ(held.find("taken as known"), std::string::npos) << held;
  expect_pieces(held, {"\n  smoothness     0.5\n", "\n  nugget         0.1\n"});
}

TEST_F(CliFitSearch, TheLikelihoodHasItsErrorInText) {
  const Words words = fit({"--range", "2", "--smoothness", "0.5", "--nugget", "0.1"});
  const Json object = expect_json(words);
  const auto error = object.at("log_likelihood_error").get<double>();
  const std::string text = expect_done(words);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(text, found, std::regex("log-likelihood +(\\S+) ± (\\S+)\n")));
  EXPECT_NEAR(std::stod(found[1]), object.at("log_likelihood").get<double>(), error);
  EXPECT_NEAR(std::stod(found[2]), error, 0.06 * error);
}

TEST_F(CliFitSearch, ASearchThatRanOutIsStatus1AndSaysNoStandardErrors) {
  const Words words = fit({"--max-evaluations", "3", "-o", path("m.json")});
  const std::string text = expect_doubted(words);
  expect_pieces(head_of(text), {"NOT CONVERGED", "--max-evaluations"});
  EXPECT_EQ(text.find("standard errors, by"), std::string::npos) << text;
  const Json object = Json::parse(expect_doubted(words + Words{"--json"}));
  EXPECT_EQ(object.at("converged"), false);
  EXPECT_EQ(object.at("evaluations"), 3);
  EXPECT_EQ(object.at("standard_errors").at("method"), "none");
  expect_pieces(object.at("remarks")[0].get<std::string>(), {"NOT CONVERGED"});
  EXPECT_TRUE(std::filesystem::exists(path("m.json"))) << "what was found is written";
}

TEST_F(CliFitSearch, WhatIsHeldWhereItBeginsAndItsBounds) {
  const Json held = expect_json(fit({"--range", "1.5", "--smoothness", "0.5"}));
  EXPECT_EQ(held.at("parameters").at("range"), 1.5);
  EXPECT_TRUE(held.at("standard_errors").at("range").is_null());
  const Json all = expect_json(fit({"--range", "1.5", "--smoothness", "0.5", "--nugget", "0"}));
  EXPECT_EQ(all.at("evaluations"), 1);
  // From elsewhere it comes to the same, without the samples.
  const Json free = expect_json(fit({"--smoothness", "0.5"}));
  const Json from =
      expect_json(fit({"--smoothness", "0.5", "--start", "range=0.5,noise-ratio=0.5"}));
  EXPECT_TRUE(from.at("stages").empty());
  EXPECT_NEAR(from.at("log_likelihood").get<double>(), free.at("log_likelihood").get<double>(),
              1e-3);
  const Json bounded = expect_json(fit({"--bounds", "smoothness=0.2:0.4"}));
  EXPECT_LE(bounded.at("parameters").at("smoothness").get<double>(), 0.4 * (1 + 1e-12));
  const Words smooth{"--smoothness", "0.5"};
  expect_refused(fit(smooth + Words{"--start", "range=1"}), 2, {"--start", "noise-ratio"});
  expect_refused(fit(smooth + Words{"--start", "range=1,smoothness=1"}), 2,
                 {"smoothness=1", "range, noise-ratio"});
  expect_refused(fit({"--start", "range=a"}), 2, {"'a'"});
  expect_refused(fit({"--start", "length=1"}), 2, {"length=1", "range, smoothness, noise-ratio"});
  expect_refused(fit({"--bounds", "range=1"}), 2, {"NAME=LOWER:UPPER"});
  expect_refused(fit({"--bounds", "range=2:1"}), 2, {"range", "2 and 1"});
  expect_refused(fit({"--bounds", "time-range=1:2"}), 2, {"time-range"});
  expect_refused(fit({"--range", "-1"}), 2, {"-1"});
}

TEST_F(CliFitSearch, TwinsAreNamedByTheRowsOfTheFile) {
  x.push_back(x[4] + 1e-12);
  y.push_back(y[4]);
  v.push_back(v[4] + 0.1);
  write();
  expect_refused(fit({"--nugget", "0", "--smoothness", "1.5", "-o", path("m.json")}), 1,
                 {"d.csv", "data rows 5 and 41 (lines 6 and 42)", "nugget"});
  EXPECT_GT(expect_json(fit({"--smoothness", "1.5"})).at("parameters").at("nugget").get<double>(),
            0);
}

TEST_F(CliFitSearch, AnAnisotropyThatWasEstimatedIsSaidWhateverItIs) {
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = random_normal(13, i);
  write();
  const Json object = expect_json(fit({"--smoothness", "0.5", "--anisotropy", "estimate",
                                       "--bounds", "anisotropy-ratio=0.9999999:1"}));
  EXPECT_NEAR(object.at("parameters").at("anisotropy").at("ratio").get<double>(), 1, 1e-6);
  EXPECT_TRUE(object.at("standard_errors").contains("anisotropy"));
}

TEST_F(CliFitSearch, ALinearMeanOnTheSphereHasAModelOfItsOwn) {
  for (double& longitude : x) longitude = 165 + 3 * longitude;  // over the date line
  write();
  const Json fitted = expect_json(fit({"--distance", "great-circle", "--mean", "linear",
                                       "--smoothness", "0.5", "-o", path("m.json")}));
  EXPECT_EQ(fitted.at("mean_coefficients").size(), 4U);
  Json model = Json::parse(slurp(path("m.json")));
  EXPECT_EQ(model.at("format"), "strata model 4");
  write_csv(path("t.csv"), {"x", "y"}, {{185, -175}, {4, 4}});
  expect_done(Words{"predict", path("m.json"), path("t.csv"), "-o", path("p.csv")} +
              small_device());
  const std::vector<double> mean = read_csv(path("p.csv")).column("mean");
  EXPECT_NEAR(mean[0], mean[1], 1e-10);
  // One of longitude and latitude, as models were before.
  model["format"] = "strata model 2";
  model["mean_coefficients"] = Json::array({1.0, 0.1, 0.2});
  (void)scratch.put("old.json", model.dump());
  expect_refused({"predict", path("old.json"), path("t.csv"), "-o", path("q.csv")}, 3,
                 {"old.json", "longitude", "again"});
}

}  // namespace
}  // namespace strata::test
