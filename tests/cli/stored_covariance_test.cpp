// --storage of the verbs for Gaussian processes: what host memory does not hold rests in files, all
// results are those of memory to the bit, and nothing of it is left.

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/random.hpp"
#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

class CliStoredCovariance : public testing::Test {
 protected:
  CliStoredCovariance() {
    std::vector<double> x;
    std::vector<double> y;
    std::vector<double> z;
    for (std::uint64_t i = 0; i < 160; ++i) {
      x.push_back(random_uniform(1, i));
      y.push_back(random_uniform(2, i));
      z.push_back(std::sin(5 * x.back()) + y.back() + 0.1 * random_uniform(3, i));
    }
    write_csv(path("data.csv"), {"x", "y", "z"}, {x, y, z});
    write_csv(path("places.csv"), {"x", "y"}, {y, x});
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] static Words in_tiles() { return {"--devices", "host:2", "--tile", "20"}; }
  /// Less than half of the triangle.
  [[nodiscard]] Words in_storage() const {
    return in_tiles() + Words{"--host-memory", "80KiB", "--storage", path("a") + "," + path("b")};
  }
  [[nodiscard]] Words of_data(const std::string& verb) const {
    return {verb, path("data.csv"), "--x", "x", "--y", "y", "--value", "z"};
  }
  void expect_nothing_left() const {
    for (const std::string name : {"a", "b"}) EXPECT_TRUE(std::filesystem::is_empty(path(name)));
  }

  Scratch scratch;
  Words model{"--variance", "1.2", "--range", "0.3", "--smoothness", "1.5", "--nugget", "0.01"};
};

TEST_F(CliStoredCovariance, LikelihoodsAreThoseOfMemory) {
  for (const Words& more :
       {Words{}, Words{"--accuracy", "1e-5", "--no-guard"}, Words{"--mean", "linear"}}) {
    const Json memory = expect_json(of_data("loglik") + model + more + in_tiles());
    const Json stored = expect_json(of_data("loglik") + model + more + in_storage());
    for (const char* name : {"log_likelihood", "quadratic_form"})
      EXPECT_EQ(stored.at(name), memory.at(name)) << name;
    // Estimated by sums whose order depends on the memory of devices.
    const double error = memory.at("log_likelihood_error").get<double>();
    EXPECT_NEAR(stored.at("log_likelihood_error").get<double>(), error, 1e-9 * error);
    EXPECT_EQ(stored.at("mean_coefficients"), memory.at("mean_coefficients"));
    EXPECT_NE(stored.at("storage_io").get<std::string>().find(path("b")), std::string::npos);
    EXPECT_FALSE(memory.contains("storage_io"));
    EXPECT_GT(stored.at("traffic").at("storage_write_bytes").get<std::int64_t>(), 0);
    Json planned = stored.at("planned_traffic");
    planned.erase("floor_bytes");
    EXPECT_EQ(planned, stored.at("traffic"));
    EXPECT_LE(stored.at("host_bytes").get<std::int64_t>(), 80 * 1024 + 160 * 4 * 8);
    expect_nothing_left();
  }
}

TEST_F(CliStoredCovariance, FilesAreUsedOnlyWhereHostMemoryDoesNotHoldTheFactor) {
  const Json object =
      expect_json(of_data("loglik") + model + in_tiles() + Words{"--storage", path("c")});
  EXPECT_FALSE(object.contains("storage_io"));
  EXPECT_FALSE(std::filesystem::exists(path("c")));
  expect_refused(of_data("loglik") + model + in_tiles() + Words{"--host-memory", "80KiB"}, 3,
                 {"host memory of 80.0 KiB", "--storage DIR"});
  expect_refused(of_data("loglik") + model + in_storage() + Words{"--path", "in-core"}, 2,
                 {"in core"});
}

TEST_F(CliStoredCovariance, PredictionsAndAllElseAreThoseOfMemory) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const Words fit = of_data("fit") + Words{"--smoothness", "1.5", "--nugget", "0.01"};
  (void)expect_done(fit + in_tiles() + Words{"-o", path("m.json")});
  const Json stored = expect_json(fit + in_storage() + Words{"-o", path("n.json")});
  EXPECT_EQ(stored.at("parameters"), json_of(slurp(path("m.json"))).at("parameters"));
  struct Twice {
    Words words;
    std::string output;
  };
  for (const Twice& twice :
       {Twice{{"predict", path("m.json"), path("places.csv")}, "p"},
        Twice{{"crossval", path("m.json")}, "c"},
        Twice{{"simulate", path("places.csv"), "--x", "x", "--y", "y"}, "s"}}) {
    const std::string in_memory = path(twice.output + "1.csv");
    const std::string from_files = path(twice.output + "2.csv");
    const Words more = twice.words[0] == "simulate" ? model : Words{};
    (void)expect_done(twice.words + more + in_tiles() + Words{"-o", in_memory});
    (void)expect_done(twice.words + more + in_storage() + Words{"-o", from_files});
    EXPECT_EQ(slurp(from_files), slurp(in_memory)) << twice.words[0];
    expect_nothing_left();
  }
}

TEST_F(CliStoredCovariance, ADirectoryThatDoesNotServe) {
  const Words words = of_data("loglik") + model + in_tiles() + Words{"--host-memory", "80KiB"};
  expect_refused(words + Words{"--storage", path("none/below")}, 3, {path("none")});
  expect_refused(words + Words{"--storage", path("data.csv")}, 3, {path("data.csv")});
  for (const std::string second : {"a", "a/", "./a"})
    expect_refused(words + Words{"--storage", path("a") + "," + path(second)}, 2, {"named twice"});
  expect_refused(words + Words{"--storage", ""}, 2, {"--storage", "no name"});
}

}  // namespace
}  // namespace strata::test
