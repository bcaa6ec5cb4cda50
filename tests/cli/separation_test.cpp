// loglik, fit and predict with a third coordinate, times, anisotropy and on the sphere: the program
// gives the library what its options and columns say. What the library makes of it, its own tests
// compare with an oracle.

#include <cmath>

#include "strata/geostat.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

class CliSeparation : public testing::Test {
 protected:
  CliSeparation() {
    for (std::size_t i = 0; i < 36; ++i) {
      points.x.push_back(160 + 40 * random_uniform(1, i));
      points.y.push_back(80 * random_uniform(2, i) - 40);
      points.z.push_back(10 * random_uniform(3, i));
      points.t.push_back(5 * random_uniform(4, i));
      values.push_back(3 + std::sin(points.x[i] / 5) + 0.3 * random_normal(5, i));
    }
    write_csv(path("data.csv"), {"x", "y", "height", "hour", "v"},
              {points.x, points.y, points.z, points.t, values});
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words verb(const std::string& name, const Words& more) const {
    return Words{name, path("data.csv"), "--x", "x", "--y", "y", "--value", "v"} + small_device() +
           more;
  }
  [[nodiscard]] Words loglik(const Words& more) const {
    return verb("loglik", Words{"--variance", "1.2", "--range", "300", "--smoothness", "0.4",
                                "--nugget", "0.1"} +
                              more);
  }
  /// What the library says, with those coordinates and that separation.
  [[nodiscard]] double expected(bool z, const Separation& separation) const {
    Points some = points;
    if (!z) some.z = {};
    if (!separation.time) some.t = {};
    return log_likelihood(some, values, {1.2, 300, 0.4, 0.1, separation}, Mean::constant)
        .log_likelihood;
  }
  void expect_likelihood(const Words& options, bool z, const Separation& separation) const {
    const double value = expected(z, separation);
    EXPECT_NEAR(expect_json(loglik(options)).at("log_likelihood").get<double>(), value,
                1e-10 * std::fabs(value));
    EXPECT_GT(std::fabs(value - expected(false, {})), 1e-3) << "the options change nothing";
  }

  Scratch scratch;
  Points points;
  std::vector<double> values;
};

TEST_F(CliSeparation, OptionsReachTheLikelihood) {
  const Distance plane = Distance::euclidean;
  expect_likelihood({"--z", "height", "--anisotropy", "0.05,-30"}, true, {plane, 0.05, -30, {}});
  expect_likelihood({"--time", "hour", "--time-scale", "2"}, false,
                    {plane, 1, 0, TimeParameters{2, 1, 0}});
  expect_likelihood({"--time", "hour", "--time-scale", "2", "--time-smoothness", "0.7",
                     "--interaction", "0.5", "--z", "height"},
                    true, {plane, 1, 0, TimeParameters{2, 0.7, 0.5}});
  expect_likelihood({"--distance", "great-circle"}, false, {Distance::great_circle, 1, 0, {}});
}

TEST_F(CliSeparation, ParametersAreSaidOnlyWhereTheyAreNotPlain) {
  const Json plain = expect_json(loglik({"--distance", "euclidean"})).at("parameters");
  EXPECT_EQ(plain.size(), 4U);
  const Json all =
      expect_json(loglik({"--time", "hour", "--time-scale", "2", "--anisotropy", "0.5,30"}))
          .at("parameters");
  EXPECT_EQ(all.at("anisotropy"), Json::parse(R"({"ratio": 0.5, "angle": 30})"));
  EXPECT_EQ(all.at("time"), Json::parse(R"({"scale": 2, "smoothness": 1, "interaction": 0})"));
  EXPECT_EQ(expect_json(loglik({"--distance", "great-circle"})).at("parameters").at("distance"),
            "great-circle");
}

TEST_F(CliSeparation, FitModelPredict) {
  const std::vector<std::pair<Words, Words>> cases{
      {{"--distance", "great-circle"}, {"x", "y"}},
      {{"--distance", "great-circle", "--time", "hour", "--time-scale", "2"}, {"x", "y", "hour"}},
      {{"--z", "height", "--time", "hour", "--time-scale", "2", "--interaction", "0.5",
        "--anisotropy", "0.5,30"},
       {"x", "y", "height", "hour"}}};
  for (const auto& [options, coordinates] : cases) {
    SCOPED_TRACE(options[1]);
    const Json fitted =
        expect_json(verb("fit", options + Words{"--smoothness", "0.5", "--holdout", "0.3", "-o",
                                                path("m.json"), "--predictions", path("p.csv"),
                                                "--report", path("r.html"), "--grid", "30"}));
    Words names = coordinates;
    for (const char* name : {"v", "mean", "standard_error", "process_standard_error"})
      names.push_back(name);
    EXPECT_EQ(read_csv(path("p.csv")).names(), names);
    EXPECT_EQ(Json::parse(slurp(path("m.json"))).at("format"), "strata model 2");
    const Json predicted = expect_json(
        Words{"predict", path("m.json"), path("p.csv"), "-o", path("q.csv")} + small_device());
    EXPECT_EQ(predicted.at("parameters"), fitted.at("parameters"));
    EXPECT_EQ(predicted.at("holdout"), fitted.at("holdout"));
    EXPECT_EQ(slurp(path("q.csv")), slurp(path("p.csv")));
  }
  EXPECT_NE(expect_done(verb("fit", {"--smoothness", "0.5", "--distance", "great-circle"}))
                .find("great circle, km"),
            std::string::npos);
}

/// The words of a fit that ends soon.
Words soon(const Words& more) { return Words{"--smoothness", "0.5", "--nugget", "0.1"} + more; }

TEST_F(CliSeparation, AFitEstimatesWhatOfTimeIsNotGiven) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Words time{"--time", "hour"};
  const auto of_time = [&](const Words& held) {
    return expect_json(verb("fit", soon(time + held))).at("parameters").at("time");
  };
  // What the library says with the same to estimate.
  FitOptions options;
  options.smoothness = 0.5;
  options.nugget = 0.1;
  options.separation.time = TimeParameters{};
  options.estimate = {true, true, true, false, false};
  Points some = points;
  some.z = {};
  const auto expected = [&] { return *fit(some, values, options).parameters.separation.time; };
  TimeParameters best = expected();
  Json got = of_time({});
  EXPECT_NEAR(got.at("scale").get<double>(), best.scale, 1e-9 * best.scale);
  EXPECT_NEAR(got.at("smoothness").get<double>(), best.smoothness, 1e-9);
  EXPECT_NEAR(got.at("interaction").get<double>(), best.interaction, 1e-9);
  options.separation.time = TimeParameters{2, 1, 0.25};
  options.estimate = {false, true, false, false, false};
  best = expected();
  got = of_time({"--time-scale", "2", "--interaction", "0.25"});
  EXPECT_EQ(got.at("scale"), 2);
  EXPECT_EQ(got.at("interaction"), 0.25);
  EXPECT_NEAR(got.at("smoothness").get<double>(), best.smoothness, 1e-9);
  const Json sphere = of_time({"--distance", "great-circle"});
  EXPECT_EQ(sphere.at("interaction"), 0) << "there is no other on the sphere";
}

TEST_F(CliSeparation, AFitEstimatesAnAnisotropyIfItIsAskedTo) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Words all{"--time", "hour", "--z", "height"};
  const Json fitted = expect_json(
      verb("fit", {"--smoothness", "0.5", "--anisotropy", "estimate", "--time", "hour",
                   "--interaction", "0", "--report", path("r.html"), "-o", path("m.json")}));
  const Json& parameters = fitted.at("parameters");
  const Json& errors = fitted.at("standard_errors");
  EXPECT_LT(parameters.at("anisotropy").at("ratio").get<double>(), 1);
  for (const char* name : {"ratio", "angle"}) EXPECT_TRUE(errors.at("anisotropy").contains(name));
  for (const char* name : {"scale", "smoothness", "interaction"})
    EXPECT_TRUE(errors.at("time").contains(name));
  EXPECT_TRUE(errors.at("time").at("interaction").is_null()) << "it is held";
  EXPECT_EQ(Json::parse(slurp(path("m.json"))).at("parameters"), parameters);
  expect_pieces(slurp(path("r.html")),
                {"Time scale", "Anisotropy ratio", "time smoothness", "interaction = 0"});
  const Json turned = expect_json(verb("fit", soon({"--anisotropy", "0.5,estimate"})));
  EXPECT_EQ(turned.at("parameters").at("anisotropy").at("ratio"), 0.5);
  expect_pieces(expect_done(verb("fit", soon({"--anisotropy", "estimate,20"}))),
                {"    ratio", "    angle        20\n"});
  expect_pieces(expect_done(verb("fit", soon(Words{"--anisotropy", "0.5,30"} + all))),
                {"anisotropy\n", "  ratio", "0.5", "half of the covariance is left after",
                 "  scale", "  interaction"});
  expect_refused(verb("fit", {"--anisotropy", "guess"}), 2, {"--anisotropy 'guess'", "estimate"});
  expect_refused(loglik({"--anisotropy", "estimate"}), 2, {"--anisotropy 'estimate'"});
  expect_refused(verb("fit", {"--anisotropy", "estimate", "--distance", "great-circle"}), 2,
                 {"the anisotropy is to be estimated"});
}

TEST_F(CliSeparation, ModelsThatDoNotHoldTogether) {
  const Words fit{"--smoothness", "0.5", "--time", "hour",
                  "--time-scale", "2",   "-o",     path("m.json")};
  expect_done(verb("fit", fit));
  const Json model = Json::parse(slurp(path("m.json")));
  const auto refuse = [&](const std::function<void(Json&)>& change) {
    Json bad = model;
    change(bad);
    (void)scratch.put("bad.json", bad.dump());
    expect_refused(Words{"predict", path("bad.json"), path("data.csv"), "-o", path("q.csv")}, 3,
                   {"bad.json"});
  };
  refuse([](Json& m) { m.erase("t"); });
  refuse([](Json& m) { m["t"].erase(0); });
  refuse([](Json& m) { m["parameters"].erase("time"); });
  refuse([](Json& m) { m["parameters"]["time"]["scale"] = 0; });
  refuse([](Json& m) { m["parameters"]["distance"] = "taxicab"; });
  refuse([](Json& m) { m["parameters"]["anisotropy"] = {{"ratio", 2}, {"angle", 0}}; });
}

TEST_F(CliSeparation, BadOptionsAndPlaces) {
  expect_refused(loglik({"--distance", "taxicab"}), 2, {"taxicab"});
  expect_refused(loglik({"--anisotropy", "0.5"}), 2, {"--anisotropy"});
  expect_refused(loglik({"--anisotropy", "1.5,0"}), 2, {"anisotropy ratio is 1.5"});
  expect_refused(loglik({"--time", "hour"}), 2, {"--time-scale"});
  expect_refused(loglik({"--time-scale", "1"}), 2, {"--time"});
  expect_refused(loglik({"--time", "hour", "--time-scale", "1", "--interaction", "1.5"}), 2,
                 {"interaction is 1.5"});
  expect_refused(loglik({"--time", "minute", "--time-scale", "1"}), 2, {"minute"});
  expect_refused(loglik({"--z", "depth"}), 2, {"depth"});
  expect_refused(loglik({"--z", "height", "--distance", "great-circle"}), 2, {"z coordinate"});
  expect_refused(verb("fit", {"--smoothness", "1.5", "--distance", "great-circle"}), 2,
                 {"smoothness is 1.5", "not positive definite"});
  points.y[20] = 95;
  write_csv(path("data.csv"), {"x", "y", "v"}, {points.x, points.y, values});
  expect_refused(loglik({"--distance", "great-circle"}), 3, {"data.csv", "row 21", "95"});
  points.x[4] = points.x[30] = 180;
  points.x[30] = -180;
  points.y[4] = points.y[30] = points.y[20] = 12;
  write_csv(path("data.csv"), {"x", "y", "v"}, {points.x, points.y, values});
  expect_refused(verb("loglik", {"--variance", "1", "--range", "300", "--smoothness", "0.4",
                                 "--distance", "great-circle"}),
                 1, {"rows 5 and 31"});
}

}  // namespace
}  // namespace strata::test
