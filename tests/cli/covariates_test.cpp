// Covariates from columns of tables: fit, loglik, predict, crossval and simulate give the library
// what their options and the model's file say.

#include <algorithm>
#include <cmath>

#include "strata/geostat.hpp"
#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

class CliCovariates : public testing::Test {
 protected:
  CliCovariates() {
    for (std::size_t i = 0; i < 40; ++i) {
      points.x.push_back(10 * random_uniform(1, i));
      points.y.push_back(8 * random_uniform(2, i));
      cover.push_back(100 * random_uniform(3, i));
      height.push_back(1000 + 300 * random_uniform(4, i));
      values.push_back(3 + std::sin(points.x[i]) + 0.2 * cover[i] - 0.01 * height[i] +
                       0.3 * random_normal(5, i));
    }
    write_csv(path("data.csv"), {"lon", "tree cover", "height", "lat", "rain"},
              {points.x, cover, height, points.y, values});
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words verb(const std::string& name, const Words& more) const {
    return Words{name, path("data.csv"), "--x", "lon", "--y", "lat", "--value", "rain"} +
           small_device() + more;
  }
  [[nodiscard]] Words loglik(const Words& more) const {
    return verb("loglik", Words{"--variance", "1.2", "--range", "1.5", "--smoothness", "0.5",
                                "--nugget", "0.1"} +
                              more);
  }
  [[nodiscard]] Words fit(const Words& more) const {
    return verb("fit", Words{"--smoothness", "0.5", "-o", path("m.json")} + more);
  }
  [[nodiscard]] Words predict(const std::string& file, const Words& more = {}) const {
    return Words{"predict", path("m.json"), path(file), "-o", path("q.csv")} + small_device() +
           more;
  }

  Scratch scratch;
  Points points;
  std::vector<double> cover;
  std::vector<double> height;
  std::vector<double> values;
};

TEST_F(CliCovariates, OptionsReachTheLikelihood) {
  const std::vector<std::pair<std::string, std::vector<std::vector<double>>>> cases{
      {"tree cover", {cover}},
      {"tree cover,height", {cover, height}},
      {"height,tree cover", {height, cover}},
      {"lat", {points.y}}};
  for (const auto& [names, covariates] : cases) {
    for (const bool linear : {false, true}) {
      if (linear && names == "lat") continue;
      SCOPED_TRACE(names + (linear ? " linear" : " constant"));
      points.covariates = covariates;
      const Likelihood expected = log_likelihood(points, values, {1.2, 1.5, 0.5, 0.1},
                                                 linear ? Mean::linear : Mean::constant);
      const Json got =
          expect_json(loglik({"--covariates", names, "--mean", linear ? "linear" : "constant"}));
      EXPECT_NEAR(got.at("log_likelihood").get<double>(), expected.log_likelihood, 1e-9);
      const auto coefficients = got.at("mean_coefficients").get<std::vector<double>>();
      ASSERT_EQ(coefficients.size(), expected.mean_coefficients.size());
      for (std::size_t k = 0; k < coefficients.size(); ++k)
        EXPECT_NEAR(coefficients[k], expected.mean_coefficients[k], 1e-8) << k;
    }
  }
  expect_pieces(expect_done(loglik({"--covariates", "tree cover,height", "--mean", "linear"})),
                {" x ", " y ", " tree cover ", " height\n"});
}

TEST_F(CliCovariates, TheOptionTakesOneWord) {
  const Json expected = expect_json(loglik({"--covariates", "height"}));
  const Json got = expect_json(Words{"loglik", "--covariates", "height", path("data.csv"), "--x",
                                     "lon", "--y", "lat", "--value", "rain", "--variance", "1.2",
                                     "--range", "1.5", "--smoothness", "0.5", "--nugget", "0.1"} +
                               small_device());
  EXPECT_EQ(got.at("log_likelihood"), expected.at("log_likelihood"));
}

TEST_F(CliCovariates, FitModelPredict) {
  for (const std::string mean : {"constant", "linear"}) {
    SCOPED_TRACE(mean);
    const Json fitted =
        expect_json(fit({"--covariates", "tree cover,height", "--mean", mean, "--holdout", "0.3",
                         "--predictions", path("p.csv"), "--report", path("r.html")}));
    const Json model = Json::parse(slurp(path("m.json")));
    EXPECT_EQ(model.at("format"), "strata model 3");
    EXPECT_EQ(model.at("columns").at("covariates"), Json::parse(R"(["tree cover", "height"])"));
    EXPECT_EQ(model.at("covariates").size(), 2U);
    EXPECT_EQ(model.at("mean_coefficients").size(), mean == "linear" ? 5U : 3U);
    expect_pieces(slurp(path("r.html")), {mean + " mean with tree cover, height"});

    // The rows that were held out, from the table itself: the same predictions and scores.
    const Table held = read_csv(path("p.csv"));
    EXPECT_EQ(held.names(),
              (Words{"lon", "lat", "rain", "mean", "standard_error", "process_standard_error"}));
    const std::vector<double> rain = held.column("rain");
    std::vector<std::vector<double>> rows(5);
    for (const double z : rain) {
      const auto i =
          static_cast<std::size_t>(std::find(values.begin(), values.end(), z) - values.begin());
      ASSERT_LT(i, values.size());
      std::size_t k = 0;
      for (const std::vector<double>* column : {&height, &points.x, &points.y, &cover, &values})
        rows[k++].push_back((*column)[i]);
    }
    write_csv(path("places.csv"), {"height", "lon", "lat", "tree cover", "rain"}, rows);
    const Json predicted = expect_json(predict("places.csv"));
    EXPECT_EQ(predicted.at("holdout"), fitted.at("holdout"));
    EXPECT_EQ(slurp(path("q.csv")), slurp(path("p.csv")));

    // Under other names.
    write_csv(path("other.csv"), {"h", "lon", "lat", "c", "rain"}, rows);
    expect_refused(predict("other.csv"), 2, {"other.csv", "tree cover", "h, lon, lat, c, rain"});
    expect_done(predict("other.csv", {"--covariates", "c,h"}));
    EXPECT_EQ(slurp(path("q.csv")), slurp(path("p.csv")));
    expect_refused(predict("other.csv", {"--covariates", "c"}), 2, {"--covariates 'c'", "2"});
  }
}

TEST_F(CliCovariates, CrossValidationAndSimulation) {
  expect_done(fit({"--covariates", "tree cover"}));
  const Json one =
      expect_json(Words{"crossval", path("m.json"), "-o", path("c.csv")} + small_device());
  EXPECT_EQ(read_csv(path("c.csv")).names(),
            (Words{"lon", "lat", "rain", "mean", "standard_error"}));
  const Json model = Json::parse(slurp(path("m.json")));
  const Json& p = model.at("parameters");
  points.covariates = {cover};
  const CrossValidation expected =
      leave_one_out(points, values,
                    {p.at("variance").get<double>(), p.at("range").get<double>(), 0.5,
                     p.at("nugget").get<double>()},
                    Mean::constant);
  EXPECT_NEAR(one.at("crossval").at("rmse").get<double>(), expected.scores.rmse, 1e-9);

  const Words fields{"-o", path("f.csv")};
  expect_done(Words{"simulate", "--model", path("m.json"), "--at", path("data.csv")} +
              small_device() + fields);
  EXPECT_EQ(read_csv(path("f.csv")).rows(), 40);
  write_csv(path("bare.csv"), {"lon", "lat"}, {points.x, points.y});
  expect_refused(Words{"simulate", "--model", path("m.json"), "--at", path("bare.csv")} +
                     small_device() + fields,
                 2, {"bare.csv", "tree cover"});

  const Words plain =
      Words{"simulate", path("data.csv"), "--x", "lon",          "--y", "lat",      "--variance",
            "1.2",      "--range",        "1.5", "--smoothness", "0.5", "--nugget", "0.1"} +
      small_device() + fields;
  expect_done(plain);
  const std::vector<double> centred = read_csv(path("f.csv")).column("z");
  expect_done(plain + Words{"--covariates", "tree cover", "--mean", "3,0.5"});
  const std::vector<double> got = read_csv(path("f.csv")).column("z");
  for (std::size_t i = 0; i < 40; ++i) EXPECT_NEAR(got[i], centred[i] + 3 + 0.5 * cover[i], 1e-9);
  expect_refused(plain + Words{"--covariates", "tree cover", "--mean", "3"}, 2,
                 {"1 coefficients", "2 or 4"});
  expect_refused(plain + Words{"--covariates", "tree cover"}, 2, {"0 coefficients", "2 or 4"});
  expect_refused(Words{"simulate", "--grid", "3,3", "--variance", "1", "--range", "1",
                       "--smoothness", "0.5", "--covariates", "a"} +
                     fields,
                 2, {"--covariates", "FILE"});
}

TEST_F(CliCovariates, BadOptionsAndColumns) {
  for (const std::string bad : {"", ",", "height,", ",height", "height,,lat", "height,height"})
    expect_refused(loglik({"--covariates", bad}), 2, {"--covariates"});
  expect_refused(loglik({"--covariates"}), 2, {"--covariates"});
  expect_refused(loglik({"--covariates", "slope"}), 2, {"slope", "tree cover, height"});
  for (const std::string mean : {"sample", "zero"})
    expect_refused(fit({"--covariates", "height", "--mean", mean}), 2, {"1 covariates", mean});
  expect_refused(loglik({"--covariates", "lat", "--mean", "linear"}), 1,
                 {"4 coefficients of the mean"});
  const Words kl{"kl",           path("data.csv"),
                 "--x",          "lon",
                 "--y",          "lat",
                 "--variance",   "1",
                 "--range",      "1",
                 "--smoothness", "0.5",
                 "--accuracy",   "1e-6",
                 "--covariates", "height"};
  expect_refused(kl, 2, {"--covariates"});
  // A model without covariates has no use for them.
  expect_done(fit({}));
  EXPECT_EQ(Json::parse(slurp(path("m.json"))).at("format"), "strata model 1");
  expect_refused(predict("data.csv", {"--covariates", "height"}), 2,
                 {"--covariates 'height'", "0"});
  height[6] = std::nan("");
  write_csv(path("data.csv"), {"lon", "height", "lat", "rain"},
            {points.x, height, points.y, values});
  expect_refused(loglik({"--covariates", "height"}), 3, {"data.csv", "row 7", "height", "nan"});
  height.assign(40, 0.1);
  write_csv(path("data.csv"), {"lon", "height", "lat", "rain"},
            {points.x, height, points.y, values});
  expect_refused(loglik({"--covariates", "height"}), 1, {"2 coefficients", "covariate constant"});
}

TEST_F(CliCovariates, ModelsThatDoNotHoldTogether) {
  expect_done(fit({"--covariates", "tree cover,height"}));
  const Json model = Json::parse(slurp(path("m.json")));
  const auto refuse = [&](const std::function<void(Json&)>& change) {
    Json bad = model;
    change(bad);
    (void)scratch.put("m.json", bad.dump());
    expect_refused(predict("data.csv"), 3, {"m.json"});
  };
  refuse([](Json& m) { m.erase("covariates"); });
  refuse([](Json& m) { m["covariates"].erase(0); });
  refuse([](Json& m) { m["covariates"][1].erase(0); });
  refuse([](Json& m) { m["covariates"][1][0] = nullptr; });
  refuse([](Json& m) { m["columns"].erase("covariates"); });
  refuse([](Json& m) { m["columns"]["covariates"].erase(0); });
  refuse([](Json& m) { m["mean_coefficients"].erase(0); });
  refuse([](Json& m) {
    m["mean"] = "sample";
    m["mean_coefficients"] = Json::array({1});
  });
}

}  // namespace
}  // namespace strata::test
