// strata loglik, fit and predict on small data, against a dense oracle and with bad input.

#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

using Real = long double;

struct Data {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> z;
};

Data make_data(std::size_t n, std::uint64_t seed) {
  Data data;
  for (std::size_t i = 0; i < n; ++i) {
    data.x.push_back(10 * random_uniform(seed, 2 * i));
    data.y.push_back(8 * random_uniform(seed, 2 * i + 1));
    data.z.push_back(3 + std::sin(data.x[i]) + 0.2 * data.y[i] + 0.3 * random_normal(seed + 1, i));
  }
  return data;
}

struct Parameters {
  Real variance;
  Real range;
  bool three_halves;
  Real nugget;
};

/// The closed forms of the Matérn covariance at smoothness 1/2 and 3/2.
Real covariance(const Parameters& p, Real h) {
  const Real r = h / p.range;
  return p.variance * (p.three_halves ? 1 + r : 1) * std::exp(-r);
}

struct Oracle {
  Real log_likelihood = 0;
  Real quadratic_form = 0;
  Real log_determinant = 0;
};

/// A⁻¹·B by elimination without pivoting, columns of B in `b`; returns log|A|.
Real eliminate(std::vector<std::vector<Real>> a, std::vector<std::vector<Real>>& b) {
  const std::size_t n = a.size();
  Real log_determinant = 0;
  for (std::size_t k = 0; k < n; ++k) {
    log_determinant += std::log(a[k][k]);
    for (std::size_t i = 0; i < n; ++i) {
      if (i == k) continue;
      const Real factor = a[i][k] / a[k][k];
      for (std::size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      for (auto& column : b) column[i] -= factor * column[k];
    }
  }
  for (auto& column : b)
    for (std::size_t i = 0; i < n; ++i) column[i] /= a[i][i];
  return log_determinant;
}

Real dot(const std::vector<Real>& a, const std::vector<Real>& b) {
  Real sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// −½(n log 2π + log|Σ| + rᵀΣ⁻¹r), by normal equations where the mean is estimated.
Oracle oracle(const Data& data, const Parameters& p, const std::string& mean) {
  const std::size_t n = data.x.size();
  std::vector<std::vector<Real>> sigma(n, std::vector<Real>(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      const Real h = std::hypot(static_cast<Real>(data.x[i]) - data.x[j],
                                static_cast<Real>(data.y[i]) - data.y[j]);
      sigma[i][j] = covariance(p, h) + (i == j ? p.nugget : 0);
    }
  }
  std::vector<Real> r(data.z.begin(), data.z.end());
  std::vector<std::vector<Real>> design;
  if (mean == "sample") {
    const Real average = dot(r, std::vector<Real>(n, 1)) / static_cast<Real>(n);
    for (Real& value : r) value -= average;
  }
  if (mean == "constant" || mean == "linear") design.emplace_back(n, 1);
  if (mean == "linear") {
    design.emplace_back(data.x.begin(), data.x.end());
    design.emplace_back(data.y.begin(), data.y.end());
  }
  std::vector<std::vector<Real>> solved = design;
  solved.push_back(r);
  Oracle out;
  out.log_determinant = eliminate(sigma, solved);
  const std::vector<Real> weighted = solved.back();
  out.quadratic_form = dot(r, weighted);
  if (!design.empty()) {
    std::vector<std::vector<Real>> gram;
    std::vector<Real> right;
    for (const auto& column : design) {
      gram.emplace_back();
      for (std::size_t k = 0; k < design.size(); ++k) gram.back().push_back(dot(column, solved[k]));
      right.push_back(dot(column, weighted));
    }
    std::vector<std::vector<Real>> beta{right};
    eliminate(gram, beta);
    out.quadratic_form -= dot(beta[0], right);
  }
  out.log_likelihood = -0.5L * (static_cast<Real>(n) * std::log(2 * std::acos(Real{-1})) +
                                out.log_determinant + out.quadratic_form);
  return out;
}

void expect_close(const Json& value, Real expected, double relative) {
  EXPECT_NEAR(value.get<double>(), static_cast<double>(expected),
              relative * std::abs(static_cast<double>(expected)));
}

class CliGeostat : public testing::Test {
 protected:
  CliGeostat() { write_csv(path("data.csv"), {"lon", "lat", "rain"}, {data.x, data.y, data.z}); }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words verb(const std::string& name, const std::string& file = "data.csv") const {
    return Words{name, path(file), "--x", "lon", "--y", "lat", "--value", "rain"} + small_device();
  }
  [[nodiscard]] Words loglik(const std::string& file = "data.csv",
                             const std::string& nugget = "0.1") const {
    return verb("loglik", file) +
           Words{"--variance", "1.2", "--range", "1.5", "--smoothness", "0.5", "--nugget", nugget};
  }
  /// A fit of two parameters: what is tested is the program, not the optimizer.
  [[nodiscard]] Words fit(const std::string& file = "data.csv") const {
    return verb("fit", file) + Words{"--smoothness", "0.5"};
  }
  /// Refused, and none of the files that were asked for is made.
  void refuse(const Words& words, int status, const Words& pieces) const {
    const std::size_t before = scratch.files();
    expect_refused(words + Words{"--trace", path("t.json"), "--report", path("r.html")}, status,
                   pieces);
    EXPECT_EQ(scratch.files(), before);
  }
  void refuse_both(const std::string& file, int status, const Words& pieces) const {
    refuse(loglik(file), status, pieces);
    refuse(fit(file) + Words{"-o", path("m.json")}, status, pieces);
  }

  Scratch scratch;
  Data data = make_data(40, 11);
};

TEST_F(CliGeostat, LogLikelihoodIsExact) {
  for (const bool three_halves : {false, true}) {
    for (const std::string mean : {"sample", "zero", "constant", "linear"}) {
      SCOPED_TRACE(mean + (three_halves ? " 3/2" : " 1/2"));
      const Json object =
          expect_json(verb("loglik") + Words{"--variance", "1.2", "--range", "1.5", "--smoothness",
                                             three_halves ? "1.5" : "0.5", "--nugget", "0.1",
                                             "--mean", mean, "--tile", "16"});
      const Oracle expected = oracle(data, {1.2, 1.5, three_halves, 0.1}, mean);
      expect_run_fields(object, 40);
      expect_close(object.at("log_likelihood"), expected.log_likelihood, 1e-10);
      expect_close(object.at("quadratic_form"), expected.quadratic_form, 1e-10);
      expect_close(object.at("factor").at("log_determinant"), expected.log_determinant, 1e-10);
      EXPECT_EQ(object.at("factor").at("ok"), true);
      EXPECT_EQ(object.at("mean_coefficients").size(), mean == "linear" ? 3U
                                                       : mean == "zero" ? 0U
                                                                        : 1U);
      EXPECT_EQ(object.at("parameters"), Json::parse(R"({"variance": 1.2, "range": 1.5, "nugget":
          0.1, "smoothness": )" + std::string(three_halves ? "1.5}" : "0.5}")));
    }
  }
}

TEST_F(CliGeostat, HoldoutByColumnByShareAndNone) {
  std::vector<double> flags(40, 0.0);
  Data kept;
  for (std::size_t i = 0; i < 40; ++i) {
    flags[i] = i % 4 == 1 ? 1.0 : 0.0;
    if (flags[i] == 1.0) continue;
    kept.x.push_back(data.x[i]);
    kept.y.push_back(data.y[i]);
    kept.z.push_back(data.z[i]);
  }
  write_csv(path("h.csv.gz"), {"lon", "lat", "holdout", "rain"}, {data.x, data.y, flags, data.z});
  const Json by_name = expect_json(loglik("h.csv.gz"));
  EXPECT_EQ(by_name.at("n"), 30);
  expect_close(by_name.at("log_likelihood"),
               oracle(kept, {1.2, 1.5, false, 0.1}, "constant").log_likelihood, 1e-10);
  EXPECT_EQ(expect_json(loglik("h.csv.gz") + Words{"--holdout", "none"}).at("n"), 40);
  const Words share = loglik("h.csv.gz") + Words{"--holdout", "0.5"};
  const Json half = expect_json(share);
  EXPECT_EQ(half.at("n"), 20);
  EXPECT_EQ(expect_json(share).at("log_likelihood"), half.at("log_likelihood"));
  EXPECT_NE(expect_json(share + Words{"--seed", "2"}).at("log_likelihood"),
            half.at("log_likelihood"));
}

TEST_F(CliGeostat, FitModelPredict) {
  const Json fitted =
      expect_json(fit() + Words{"--holdout", "0.25", "--seed", "3", "-o", path("m.json"),
                                "--predictions", path("p.csv"), "--report", path("r.html"),
                                "--trace", path("t.json"), "--grid", "100"});
  const std::int64_t held = fitted.at("holdout").at("observations").get<std::int64_t>();
  ASSERT_GT(held, 0);
  expect_run_fields(fitted, 40 - held);
  EXPECT_EQ(fitted.at("observations"), 40 - held);
  EXPECT_GT(fitted.at("evaluations").get<int>(), 0);
  for (const std::string score : {"rmse", "mae", "crps", "coverage95"})
    EXPECT_GE(fitted.at("holdout").at(score).get<double>(), 0.0);

  const Table table = read_csv(path("p.csv"));
  ASSERT_EQ(table.rows(), held);
  EXPECT_EQ(table.names(),
            (Words{"lon", "lat", "rain", "mean", "standard_error", "process_standard_error"}));
  double square = 0;
  const std::vector<double> rain = table.column("rain");
  const std::vector<double> mean = table.column("mean");
  for (std::size_t i = 0; i < rain.size(); ++i) square += (rain[i] - mean[i]) * (rain[i] - mean[i]);
  expect_close(fitted.at("holdout").at("rmse"), std::sqrt(square / static_cast<double>(held)),
               1e-12);

  // The model alone predicts the same at the same places.
  const Json predicted = expect_json(
      Words{"predict", path("m.json"), path("p.csv"), "-o", path("q.csv")} + small_device());
  EXPECT_EQ(predicted.at("predictions"), held);
  EXPECT_EQ(predicted.at("parameters"), fitted.at("parameters"));
  EXPECT_EQ(predicted.at("holdout"), fitted.at("holdout"));
  expect_run_fields(predicted, 40 - held);
  EXPECT_GT(predicted.at("solve").at("flops").get<double>(), 0);
  EXPECT_EQ(slurp(path("q.csv")), slurp(path("p.csv")));

  // Its likelihood is the one that loglik finds.
  const auto number = [&](const char* name) { return fitted.at("parameters").at(name).dump(); };
  const Json again = expect_json(
      verb("loglik") + Words{"--holdout", "0.25", "--seed", "3", "--variance", number("variance"),
                             "--range", number("range"), "--smoothness", number("smoothness"),
                             "--nugget", number("nugget")});
  expect_close(again.at("log_likelihood"), fitted.at("log_likelihood").get<double>(), 1e-10);

  EXPECT_TRUE(json_of(slurp(path("t.json"))).is_object());
  std::string page = slurp(path("r.html"));
  ASSERT_GT(page.size(), 1000U);
  const std::string svg = "http://www.w3.org/2000/svg";
  for (std::size_t at = page.find(svg); at != std::string::npos; at = page.find(svg))
    page.erase(at, svg.size());
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
}

TEST_F(CliGeostat, FitTellsStandardErrorsAndKeepsAJournal) {
  const Words words = verb("fit") + Words{"--smoothness", "0.5"};
  const Json fitted = expect_json(words + Words{"--journal", path("j.txt")});
  EXPECT_TRUE(fitted.at("converged").get<bool>());
  const Json& errors = fitted.at("standard_errors");
  EXPECT_EQ(errors.at("method"), "expected");
  EXPECT_GT(errors.at("range").get<double>(), 0);
  EXPECT_TRUE(errors.at("smoothness").is_null()) << "it is held";
  EXPECT_TRUE(fitted.at("stages").is_array());
  const std::string text = expect_done(words);
  expect_pieces(text, {"±", "by the expected information"});
  const Json observed = expect_json(words + Words{"--standard-errors", "observed"});
  EXPECT_GT(observed.at("standard_errors").at("evaluations").get<int>(), 3);
  EXPECT_TRUE(expect_json(words + Words{"--standard-errors", "none"})
                  .at("standard_errors")
                  .at("range")
                  .is_null());
  // Again, from the journal; a journal of other data is refused, and so is one that is no file.
  const Json again = expect_json(words + Words{"--journal", path("j.txt")});
  EXPECT_EQ(again.at("parameters"), fitted.at("parameters"));
  EXPECT_EQ(again.at("fit_seconds").get<double>() > 0, true);
  refuse(words + Words{"--journal", path("j.txt"), "--mean", "zero"}, 3, {"j.txt", "mean"});
  refuse(words + Words{"--journal", path("data.csv")}, 2, {"--journal", "data.csv"});
  refuse(words + Words{"--standard-errors", "wald"}, 2, {"wald", "expected"});
}

TEST_F(CliGeostat, CrossValidation) {
  expect_done(fit() + Words{"-o", path("m.json")});
  const Words crossval = Words{"crossval", path("m.json")} + small_device();
  const Json one = expect_json(crossval + Words{"-o", path("c.csv")});
  expect_run_fields(one, 40);
  EXPECT_EQ(one.at("crossval").at("method"), "leave-one-out");
  EXPECT_GT(one.at("inverse").at("flops").get<double>(), 0);
  const Table table = read_csv(path("c.csv"));
  EXPECT_EQ(table.names(), (Words{"lon", "lat", "rain", "mean", "standard_error"}));
  const std::vector<double> rain = table.column("rain");
  const std::vector<double> mean = table.column("mean");
  double square = 0;
  for (std::size_t i = 0; i < 40; ++i) square += (rain[i] - mean[i]) * (rain[i] - mean[i]);
  expect_close(one.at("crossval").at("rmse"), std::sqrt(square / 40), 1e-12);
  // As many folds as observations are the same.
  const Json all = expect_json(crossval + Words{"--folds", "40"});
  expect_close(all.at("crossval").at("rmse"), std::sqrt(square / 40), 1e-9);
  const Json blocks = expect_json(crossval + Words{"--folds", "4", "--blocks", "-o", path("b.csv"),
                                                   "--report", path("r.html")});
  EXPECT_EQ(blocks.at("crossval").at("method"), "blocks");
  EXPECT_EQ(read_csv(path("b.csv")).column("fold").size(), 40U);
  const std::string text = expect_done(crossval + Words{"--folds", "5"});
  expect_pieces(text, {"40 observations", "5 folds", "RMSE", "CRPS"});
  refuse(crossval + Words{"--folds", "1"}, 2, {"--folds 1"});
  refuse(crossval + Words{"--folds", "41"}, 2, {"41", "40 points"});
  refuse(crossval + Words{"--blocks"}, 2, {"--folds"});
  refuse(Words{"crossval", path("absent.json")} + small_device(), 3, {"absent.json"});
}

TEST_F(CliGeostat, PredictWhereNothingWasObserved) {
  expect_done(fit() + Words{"-o", path("m.json")});
  write_csv(path("places.csv"), {"x", "y"}, {{1, 2, 3}, {4, 5, 6}});
  const Words predict = Words{"predict", path("m.json"), path("places.csv")} + small_device();
  refuse(predict + Words{"-o", path("q.csv")}, 2, {"lon", "x, y"});
  const std::string text = expect_done(
      predict + Words{"-o", path("q.csv"), "--x", "x", "--y", "y", "--report", path("r.html")});
  expect_pieces(text, {"3 predictions", path("q.csv"), "host to device", path("r.html")});
  const Table table = read_csv(path("q.csv"));
  EXPECT_EQ(table.names(), (Words{"x", "y", "mean", "standard_error", "process_standard_error"}));
  // A column of observations that is not to be used may hold anything.
  (void)scratch.put("na.csv", "lon,lat,rain\n1,2,unknown\n");
  const Words na =
      Words{"predict", path("m.json"), path("na.csv"), "-o", path("n.csv")} + small_device();
  refuse(na, 3, {"na.csv", "row 1", "rain", "unknown"});
  expect_done(na + Words{"--value", "none"});
  EXPECT_EQ(read_csv(path("n.csv")).rows(), 1);
}

TEST_F(CliGeostat, TablesThatDoNotServe) {
  refuse(verb("loglik") +
             Words{"--variance", "1", "--range", "1", "--smoothness", "1", "--value", "rain"},
         2, {"--value"});
  (void)scratch.put("names.csv", "a,b,c\n1,2,3\n");
  refuse_both("names.csv", 2, {"lon", "a, b, c"});
  (void)scratch.put("text.csv", "lon,lat,rain\n1,2,3\n4,five,6\n");
  refuse_both("text.csv", 3, {"row 2", "lat", "five"});
  (void)scratch.put("nan.csv", "lon,lat,rain\n1,2,nan\n4,5,6\n");
  refuse_both("nan.csv", 3, {"row 1", "rain", "nan"});
  (void)scratch.put("inf.csv", "lon,lat,rain\n1,2,3\n-inf,5,6\n");
  refuse_both("inf.csv", 3, {"row 2", "lon", "inf"});
  (void)scratch.put("ragged.csv", "lon,lat,rain\n1,2,3\n4,5\n");
  refuse_both("ragged.csv", 3, {"ragged.csv", "2"});
  (void)scratch.put("empty.csv", "");
  refuse_both("empty.csv", 3, {"empty.csv"});
  (void)scratch.put("header.csv", "lon,lat,rain\n");
  refuse_both("header.csv", 3, {"header.csv"});
  refuse_both("absent.csv", 3, {"absent.csv"});
  (void)scratch.put("cut.csv.gz", "\x1f\x8b\x08");
  refuse_both("cut.csv.gz", 3, {"cut.csv.gz"});
}

TEST_F(CliGeostat, HoldoutsThatDoNotServe) {
  write_csv(path("all.csv"), {"lon", "lat", "rain", "holdout"}, {{1, 2}, {3, 5}, {5, 6}, {1, 1}});
  refuse_both("all.csv", 3, {"all.csv", "2 of them held out"});
  write_csv(path("two.csv"), {"lon", "lat", "rain", "holdout"}, {{1, 2}, {3, 5}, {5, 6}, {0, 2}});
  refuse_both("two.csv", 3, {"row 2", "2"});
  for (const std::string share : {"1.5", "1", "-0.1", "nan"})
    refuse(fit() + Words{"--holdout", share}, 2, {"--holdout " + share});
  refuse(fit() + Words{"--holdout", "nowhere"}, 2, {"nowhere", "lon, lat, rain"});
  refuse(fit() + Words{"--predictions", path("p.csv")}, 2, {"--predictions", "--holdout"});
}

TEST_F(CliGeostat, CoincidentPointsNeedANugget) {
  write_csv(path("twice.csv"), {"lon", "lat", "rain", "holdout"},
            {{9, 1, 2, 3, 1}, {9, 5, 6, 7, 5}, {1, 2, 3, 4, 5}, {1, 0, 0, 0, 0}});
  // Rows and lines are those of the file, although row 1 is held out.
  const Words pieces{"data rows 2 and 5 (lines 3 and 6)", "(1, 5)", "nugget"};
  refuse(loglik("twice.csv", "0"), 1, pieces);
  refuse(fit("twice.csv") + Words{"--nugget", "0", "-o", path("m.json")}, 1, pieces);
  expect_done(loglik("twice.csv", "0.1"));
}

TEST_F(CliGeostat, ACovarianceThatIsNumericallySingular) {
  // Points a rounding error apart, and a smooth process without noise.
  write_csv(path("near.csv"), {"lon", "lat", "rain"},
            {{0, 1e-9, 2e-9, 3e-9}, {0, 0, 0, 0}, {1, 2, 3, 4}});
  const Words words = verb("loglik", "near.csv") +
                      Words{"--variance", "1", "--range", "100", "--smoothness", "2.5"};
  refuse(words, 1, {"not positive definite to rounding: pivot"});
  const Outcome outcome = run_program(words + Words{"--json"});
  const Json object = json_of(outcome.out);
  EXPECT_EQ(object.at("factor").at("ok"), false);
  EXPECT_TRUE(object.at("log_likelihood").is_null());
}

TEST_F(CliGeostat, ParametersOutsideTheirDomain) {
  const Words all{"--variance", "1", "--range", "1", "--smoothness", "1", "--nugget", "0.1"};
  for (std::size_t i = 0; i < all.size(); i += 2) {
    for (const std::string bad : {"-1", "0", "nan", "inf", "x"}) {
      if (all[i] == "--nugget" && bad == "0") continue;
      Words words = all;
      words[i + 1] = bad;
      refuse(verb("loglik") + words, 2, {all[i], bad});
    }
  }
  refuse(verb("loglik") + Words{"--variance", "1", "--range", "1", "--smoothness", "51"}, 2,
         {"51"});
  for (const std::string option : {"--smoothness", "--nugget"})
    for (const std::string bad : {"-1", "nan"})
      refuse(verb("fit") + Words{option, bad}, 2, {option, bad});
  refuse(fit() + Words{"--mean", "median"}, 2, {"median", "linear"});
  refuse(fit() + Words{"--policy", "magic"}, 2, {"magic"});
}

TEST_F(CliGeostat, ABudgetThatIsTooSmall) {
  const Words words{"loglik",
                    path("data.csv"),
                    "--x",
                    "lon",
                    "--y",
                    "lat",
                    "--value",
                    "rain",
                    "--variance",
                    "1",
                    "--range",
                    "1",
                    "--smoothness",
                    "0.5",
                    "--tile",
                    "16",
                    "--devices",
                    "host",
                    "--device-memory"};
  const Outcome outcome = run_program(words + Words{"500"});
  expect_complaint(outcome, 3, {"500 bytes", "smallest"});
  EXPECT_EQ(outcome.out, "");
  std::string smallest = outcome.err.substr(0, outcome.err.rfind(" bytes"));
  smallest = smallest.substr(smallest.rfind(' ') + 1);
  EXPECT_LE(expect_json(words + Words{smallest}).at("peak_device_bytes").get<std::int64_t>(),
            std::stoll(smallest));
}

TEST_F(CliGeostat, OutputsAreCheckedFirst) {
  // The input does not even exist.
  for (const std::string option : {"-o", "--predictions"})
    refuse(fit("absent.csv") + Words{option, path("no/m")}, 3, {"no/m", "cannot write"});
  refuse(fit() + Words{"-o", path("data.csv")}, 2, {"--output", "data.csv"});
  expect_refused(loglik() + Words{"--report", "/proc/none/r.html"}, 3, {"/proc/none/r.html"});
}

TEST_F(CliGeostat, ModelsThatAreNone) {
  expect_done(fit() + Words{"-o", path("m.json")});
  const std::string text = slurp(path("m.json"));
  const auto changed = [&](const std::function<void(Json&)>& change) {
    Json model = Json::parse(text);
    change(model);
    return model.dump();
  };
  const std::vector<std::string> cases{"",
                                       "{}",
                                       "[1, 2]",
                                       text.substr(0, text.size() / 2),
                                       "\x1f\x8b nonsense",
                                       changed([](Json& m) { m["format"] = "strata model 99"; }),
                                       changed([](Json& m) { m["x"].erase(0); }),
                                       changed([](Json& m) { m["value"][0] = nullptr; }),
                                       changed([](Json& m) { m["value"][0] = "1"; }),
                                       changed([](Json& m) { m["mean"] = "median"; }),
                                       changed([](Json& m) {
                                         m["mean_coefficients"] = Json::array({1, 2});
                                       }),
                                       changed([](Json& m) { m["parameters"]["range"] = -1; }),
                                       changed([](Json& m) { m["parameters"].erase("nugget"); })};
  for (const std::string& model : cases) {
    (void)scratch.put("bad.json", model);
    refuse(
        Words{"predict", path("bad.json"), path("data.csv"), "-o", path("q.csv")} + small_device(),
        3, {"bad.json"});
  }
  refuse(Words{"predict", path("none.json"), path("data.csv"), "-o", path("q.csv")}, 3,
         {"none.json"});
  refuse(Words{"predict", path(""), path("data.csv"), "-o", path("q.csv")}, 3, {path("")});
}

}  // namespace
}  // namespace strata::test
