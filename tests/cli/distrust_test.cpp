// Models and predictions that rounding has made wrong: fit says so in the file, predict, crossval
// and simulate say so first and end with status 1, and write what they were asked to.

#include <cmath>
#include <filesystem>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

/// A random walk at 20 places on a line, whose exponential covariance is flat to 14 digits for a
/// range of 4e12.
class CliDistrust : public testing::Test {
 protected:
  CliDistrust() {
    std::vector<double> x;
    std::vector<double> y;
    std::vector<double> v;
    double walk = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      x.push_back(static_cast<double>(i) / 20);
      y.push_back(0);
      v.push_back(walk += random_normal(3, i));
    }
    write_csv(path("d.csv"), {"x", "y", "v"}, {x, y, v});
    write_csv(path("t.csv"), {"x", "y"}, {{0.021, 0.513, 1.25}, {0, 0, 0}});
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words fit(const Words& more) const {
    return Words{"fit",
                 path("d.csv"),
                 "--x",
                 "x",
                 "--y",
                 "y",
                 "--value",
                 "v",
                 "--mean",
                 "zero",
                 "--nugget",
                 "0",
                 "--smoothness",
                 "0.5",
                 "--standard-errors",
                 "none",
                 "-o",
                 path("m.json")} +
           small_device() + more;
  }
  [[nodiscard]] Words predict() const {
    return Words{"predict", path("m.json"), path("t.csv"), "-o", path("p.csv")} + small_device();
  }
  [[nodiscard]] Words crossval() const {
    return Words{"crossval", path("m.json"), "-o", path("c.csv")} + small_device();
  }
  [[nodiscard]] Words simulate() const {
    return Words{"simulate",    "--model", path("m.json"), "--at",
                 path("t.csv"), "-o",      path("s.csv")} +
           small_device();
  }
  [[nodiscard]] Json model() const { return Json::parse(slurp(path("m.json"))); }
  void write_model(const Json& object) const { (void)scratch.put("m.json", object.dump()); }

  /// Status 1, the sentence in the first line and in JSON, and the file.
  void expect_distrusted(const Words& words, const std::string& file, const Words& pieces) const {
    SCOPED_TRACE(words[0]);
    std::filesystem::remove(path(file));
    const Outcome text = run_program(words);
    EXPECT_EQ(text.status, 1) << text.err;
    expect_pieces(text.out.substr(0, text.out.find('\n')), pieces);
    EXPECT_TRUE(std::filesystem::exists(path(file)));
    const Outcome outcome = run_program(words + Words{"--json"});
    EXPECT_EQ(outcome.status, 1) << outcome.err;
    const Json object = json_of(outcome.out);
    ASSERT_TRUE(object.is_object()) << outcome.out;
    ASSERT_FALSE(object.at("remarks").empty());
    expect_pieces(object.at("remarks")[0].get<std::string>(), pieces);
  }

  Scratch scratch;
};

TEST_F(CliDistrust, AModelThatIsNotToBeTrustedSaysSo) {
  const Outcome fitted = run_program(fit({"--range", "4e12"}));
  ASSERT_EQ(fitted.status, 1) << fitted.err;
  const Json object = model();
  EXPECT_EQ(object.at("trusted"), false);
  const std::string why = object.at("why").get<std::string>();
  expect_pieces(fitted.out, {"NOT TO BE TRUSTED: " + why});
  const Words pieces{"NOT TO BE TRUSTED", "m.json", why};
  expect_distrusted(predict(), "p.csv", pieces);
  expect_distrusted(crossval(), "c.csv", pieces);
  expect_distrusted(crossval() + Words{"--folds", "4"}, "c.csv", pieces);
  expect_distrusted(simulate(), "s.csv", pieces);
  const Outcome held = run_program(fit({"--range", "4e12", "--holdout", "0.2"}));
  EXPECT_EQ(held.status, 1) << held.err;
  expect_pieces(held.out, {"hold-out: NOT TO BE TRUSTED: rounding changes means by "});
}

TEST_F(CliDistrust, PredictionsThatRoundingChangesAreSaidToBe) {
  const Outcome fitted = run_program(fit({"--range", "4e12"}));
  ASSERT_EQ(fitted.status, 1) << fitted.err;
  Json object = model();
  object.erase("trusted");  // as an older program wrote it
  object.erase("why");
  object["parameters"]["range"] = 1e14;
  object["parameters"]["nugget"] = 1e-15 * object["parameters"]["variance"].get<double>();
  write_model(object);
  const Words pieces{"NOT TO BE TRUSTED", "rounding", "standard errors", "nugget"};
  expect_distrusted(predict(), "p.csv", pieces);
  expect_distrusted(crossval(), "c.csv", pieces);
  expect_distrusted(crossval() + Words{"--folds", "4"}, "c.csv", pieces);
}

TEST_F(CliDistrust, ALikelihoodOfWhichNoDigitIsKnownIsSaidToBe) {
  const auto likelihood = [this](const char* range) {
    return Words{"loglik",     path("d.csv"), "--x",          "x",    "--y",     "y",
                 "--value",    "v",           "--mean",       "zero", "--range", range,
                 "--variance", "1e12",        "--smoothness", "0.5"} +
           small_device();
  };
  // At 4e12 the covariance is one of ones but for 14 digits.
  const Outcome text = run_program(likelihood("4e12"));
  EXPECT_EQ(text.status, 1) << text.err;
  const Words pieces{"NOT TO BE TRUSTED: rounding changes the log-likelihood", "nugget"};
  expect_pieces(text.out.substr(0, text.out.find('\n')), pieces);
  const Outcome outcome = run_program(likelihood("4e12") + Words{"--json"});
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  const Json object = json_of(outcome.out);
  ASSERT_TRUE(object.is_object()) << outcome.out;
  expect_pieces(object.at("remarks").at(0).get<std::string>(), pieces);
  EXPECT_TRUE(expect_json(likelihood("0.5")).at("remarks").empty());
}

TEST_F(CliDistrust, OrdinaryPredictionsStateTheirRounding) {
  const std::string text = expect_done(fit({"--range", "0.5"}));
  EXPECT_EQ(text.find("TRUSTED"), std::string::npos);
  EXPECT_FALSE(model().contains("trusted"));
  for (const Words& words : {predict(), crossval(), crossval() + Words{"--folds", "4"}}) {
    SCOPED_TRACE(words[0]);
    expect_pieces(expect_done(words),
                  {"rounding: means within about ", ", standard errors within"});
    const Json said = expect_json(words);
    EXPECT_TRUE(said.at("remarks").empty());
    for (const char* error :
         {"mean_error", "standard_error_error", "mean_error_share", "standard_error_error_share"}) {
      EXPECT_GT(said.at(error).get<double>(), 0) << error;
      EXPECT_LT(said.at(error).get<double>(), 1e-6) << error;
    }
  }
  EXPECT_TRUE(expect_json(simulate()).at("remarks").empty());
  // What calls itself not trusted gives the reason.
  Json object = model();
  object["trusted"] = false;
  write_model(object);
  expect_refused(predict(), 3, {"m.json"});
}

}  // namespace
}  // namespace strata::test
