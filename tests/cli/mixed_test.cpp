// The options of mixed precision: what becomes of them in every verb, beside FP64; kl; bad input.

#include <cmath>
#include <fstream>
#include <iterator>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

const Words kMixedModel{"--variance", "1.5", "--range", "0.1", "--smoothness", "0.5"};
const Words kColumns{"--x", "x", "--y", "y"};
const Words kAccuracy{"--accuracy", "1e-4", "--tile", "32"};

class CliMixed : public testing::Test {
 protected:
  CliMixed() {
    expect_done(Words{"simulate", "--random", "240", "-o", data()} + kMixedModel + small_device());
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] std::string data() const { return path("d.csv"); }
  [[nodiscard]] Words loglik(const Words& more = {}) const {
    return Words{"loglik", data(), "--value", "z"} + kColumns + kMixedModel + small_device() + more;
  }
  [[nodiscard]] Words kl(const Words& more = {}) const {
    return Words{"kl", data()} + kColumns + kMixedModel + small_device() + more;
  }
  [[nodiscard]] std::string fitted() const {
    const std::string model = path("m.json");
    expect_done(Words{"fit", data(), "--value", "z", "--smoothness", "0.5", "-o", model} +
                kColumns + small_device());
    return model;
  }
  Scratch scratch;
};

/// The fields of "mixed", consistent with one another: 240 points in tiles of 32.
void expect_mixed(const Json& mixed, double accuracy = 1e-4) {
  EXPECT_EQ(mixed.at("accuracy_asked"), accuracy);
  EXPECT_GT(mixed.at("accuracy").get<double>(), 0);
  std::int64_t tiles = 0;
  double products = 0;
  for (const char* name : {"fp64", "fp32", "fp16", "fp8", "left_out"}) {
    tiles += mixed.at("tiles").at(name).get<std::int64_t>();
    products += mixed.at("products").at(name).get<double>();
  }
  EXPECT_EQ(tiles, 28);
  EXPECT_LT(mixed.at("tiles").at("fp64").get<std::int64_t>(), 28);
  EXPECT_NEAR(mixed.at("share_left_out").get<double>() * products,
              mixed.at("products").at("left_out").get<double>(), 1e-9);
  EXPECT_GE(mixed.at("pilot_seconds").get<double>(), 0);
  EXPECT_GE(mixed.at("retries").get<int>(), 0);
  EXPECT_GE(mixed.at("raised_tiles").get<int>(), 0);
  EXPECT_TRUE(mixed.at("note").is_string());
}

TEST_F(CliMixed, OfALogLikelihoodIsToldAndCertified) {
  const Json exact = expect_json(loglik());
  for (const char* part :
       {"log_likelihood_error", "quadratic_form_error", "log_determinant_error"}) {
    EXPECT_GT(exact.at(part).get<double>(), 0) << part;
    EXPECT_LT(exact.at(part).get<double>(), 1e-8) << part;
  }
  expect_pieces(expect_done(loglik()), {"log-likelihood ", " ± "});
  EXPECT_FALSE(exact.contains("mixed"));
  EXPECT_FALSE(exact.contains("certificate"));
  for (const Words& more :
       {Words{}, Words{"--precision-rule", "paper", "--product-rule", "lower"},
        Words{"--precisions", "fp64,fp32", "--keep-all", "--no-guard", "--order", "hilbert"}}) {
    const Json got = expect_json(loglik(kAccuracy + more));
    expect_mixed(got.at("mixed"));
    const Json& planned = got.at("planned_traffic");
    EXPECT_GT(planned.at("floor_bytes").get<std::int64_t>(), 0);
    EXPECT_LE(planned.at("floor_bytes").get<std::int64_t>(),
              planned.at("host_to_device_bytes").get<std::int64_t>() +
                  planned.at("device_to_host_bytes").get<std::int64_t>())
        << "tiles stay on the device";
    const Json& known = got.at("certificate");
    EXPECT_EQ(known.at("probes"), 32);
    EXPECT_GT(known.at("refinement_steps").get<int>(), 0);
    EXPECT_LT(known.at("backward_error").get<double>(), 1e-14);
    EXPECT_GT(known.at("divergence").get<double>(), 0);
    const double error = known.at("log_likelihood_error").get<double>();
    EXPECT_GT(error, 0);
    EXPECT_NEAR(got.at("log_likelihood").get<double>(), exact.at("log_likelihood").get<double>(),
                error + 1e-9);
    EXPECT_NEAR(got.at("quadratic_form").get<double>(), exact.at("quadratic_form").get<double>(),
                1e-8);
  }
  const Json keep = expect_json(
      loglik(kAccuracy + Words{"--precisions", "fp64,fp32", "--keep-all", "--order", "none"}));
  for (const char* name : {"fp16", "fp8", "left_out"})
    EXPECT_EQ(keep.at("mixed").at("tiles").at(name), 0) << name;
  const Json quick = expect_json(loglik(kAccuracy + Words{"--no-certificate"}));
  EXPECT_EQ(quick.at("certificate").at("probes"), 0);
  EXPECT_TRUE(quick.at("certificate").at("log_likelihood_error").is_null());
  const std::string page = path("r.html");
  const std::string text = expect_done(loglik(kAccuracy + Words{"--report", page}));
  expect_pieces(text, {"accuracy 0.0001 asked for", "tiles below the diagonal", "32 probes",
                       "Kullback-Leibler"});
  std::ifstream file(page);
  const std::string html{std::istreambuf_iterator<char>(file), {}};
  expect_pieces(html, {"of the tiles of L take fewer bits than fp64", "class=\"tile-fp64\""});
}

TEST_F(CliMixed, OfOtherVerbs) {
  const std::string model = fitted();
  const Json fit = expect_json(Words{"fit", data(), "--value", "z", "--smoothness", "0.5"} +
                               kColumns + small_device() + kAccuracy);
  expect_mixed(fit.at("search").at("mixed"));
  EXPECT_EQ(fit.at("search").at("likelihood_in_fp64"), true);
  EXPECT_FALSE(fit.contains("mixed"));
  const Words at{"predict", model, data(), "-o", path("p.csv")};
  const Json exact = expect_json(at + small_device());
  const Table before = read_csv(path("p.csv"));
  const Json predicted = expect_json(at + small_device() + kAccuracy);
  expect_mixed(predicted.at("mixed"));
  EXPECT_FALSE(exact.contains("certificate"));
  EXPECT_GT(predicted.at("certificate").at("variance_error").get<double>(), 0);
  const Table after = read_csv(path("p.csv"));
  for (std::size_t i = 0; i < 240; ++i)
    EXPECT_NEAR(before.column("mean")[i], after.column("mean")[i], 1e-8) << i;
  const Json crossval = expect_json(Words{"crossval", model} + small_device() + kAccuracy);
  expect_mixed(crossval.at("mixed"));
  EXPECT_GT(crossval.at("certificate").at("variance_error").get<double>(), 0);
  EXPECT_GT(crossval.at("certificate").at("mean_error").get<double>(), 0);
  EXPECT_EQ(crossval.at("crossval").at("rmse_error"), crossval.at("certificate").at("mean_error"));
  const Json field = expect_json(Words{"simulate", "--random", "240", "-o", path("f.csv")} +
                                 kMixedModel + small_device() + kAccuracy);
  expect_mixed(field.at("mixed"));
}

TEST_F(CliMixed, HasADivergence) {
  const Json exact = expect_json(kl(kAccuracy));
  expect_mixed(exact.at("mixed"));
  EXPECT_EQ(exact.at("method"), "exact");
  EXPECT_EQ(exact.at("divergence_error"), 0);
  const double divergence = exact.at("divergence").get<double>();
  EXPECT_GT(divergence, 0);
  const double difference = exact.at("log_determinant_difference").get<double>();
  EXPECT_EQ(exact.at("likelihood_difference_at_zero").get<double>(), std::abs(difference) / 2);
  const Json estimate = expect_json(kl(kAccuracy + Words{"--estimate", "--probes", "64"}));
  EXPECT_EQ(estimate.at("method"), "estimate");
  EXPECT_EQ(estimate.at("probes"), 64);
  EXPECT_NEAR(estimate.at("divergence").get<double>(), divergence,
              4 * estimate.at("divergence_error").get<double>());
  EXPECT_NEAR(estimate.at("log_determinant_difference").get<double>(), difference,
              estimate.at("log_determinant_error").get<double>());
  const Json other =
      expect_json(kl(kAccuracy + Words{"--estimate", "--probes", "64", "--seed", "9"}));
  EXPECT_NE(other.at("divergence"), estimate.at("divergence"));
  expect_pieces(expect_done(kl(kAccuracy)), {"divergence", "y = 0", "accuracy 0.0001 asked for"});
  const Outcome singular =
      run_program(Words{"kl", data(), "--variance", "1", "--range", "1000", "--smoothness", "20"} +
                  kColumns + small_device() + kAccuracy);
  expect_complaint(singular, 1, {"not positive definite"});
}

TEST_F(CliMixed, RefusesWhatIsNone) {
  expect_refused(loglik({"--accuracy", "1e-13"}), 2, {"1e-13", "1e-12"});
  expect_refused(loglik({"--accuracy", "0.01"}), 2, {"0.01", "1e-3"});
  expect_refused(loglik({"--accuracy", "-1"}), 2, {"-1"});
  expect_refused(loglik({"--accuracy", "1e-5", "--precisions", "fp32,fp16"}), 2,
                 {"fp32,fp16", "without fp64"});
  expect_refused(loglik({"--accuracy", "1e-5", "--precisions", "fp64,fp4"}), 2, {"fp64,fp4"});
  expect_refused(loglik({"--accuracy", "1e-5", "--precision-rule", "best"}), 2, {"best"});
  expect_refused(loglik({"--accuracy", "1e-5", "--product-rule", "best"}), 2, {"best"});
  expect_refused(loglik({"--order", "random"}), 2, {"random"});
  expect_refused(loglik({"--accuracy", "1e-5", "--probes", "1"}), 2, {"--probes"});
  for (const Words& alone : {Words{"--keep-all"}, Words{"--no-guard"}, Words{"--no-certificate"},
                             Words{"--precision-rule", "paper"}, Words{"--precisions", "fp64"}})
    expect_refused(loglik(alone), 2, {alone[0], "need --accuracy"});
  expect_refused(kl(), 2, {"--accuracy 0"});
  expect_refused(Words{"kl", data()} + kMixedModel + kAccuracy, 2, {"--x and --y"});
  expect_refused(Words{"kl", path("none.csv")} + kColumns + kMixedModel + kAccuracy, 3,
                 {"none.csv"});
}

}  // namespace
}  // namespace strata::test
