// strata simulate: places, realizations and seeds; given observations; and with bad input.

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

const Words kSimulatedModel{"--variance", "1.5", "--range", "0.2", "--smoothness", "0.5"};

class CliSimulate : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words simulate(const Words& more) const {
    return Words{"simulate", "-o", path("f.csv")} + more + small_device();
  }
  Scratch scratch;
};

TEST_F(CliSimulate, OnAGridAtRandomPlacesAndAtThoseOfAFile) {
  const Json object = expect_json(simulate(kSimulatedModel + Words{"--grid", "5,3", "-r", "2"}));
  expect_run_fields(object, 15);
  EXPECT_EQ(object.at("locations"), 15);
  EXPECT_EQ(object.at("realizations"), 2);
  EXPECT_GT(object.at("multiply").at("flops").get<double>(), 0);
  const Table grid = read_csv(path("f.csv"));
  EXPECT_EQ(grid.names(), (Words{"x", "y", "z1", "z2"}));
  EXPECT_EQ(grid.column("x")[4], 1);
  EXPECT_EQ(grid.column("y")[14], 1);
  EXPECT_NE(grid.column("z1"), grid.column("z2"));
  // The same places from a file, in the same order, are the same fields.
  write_csv(path("p.csv"), {"a", "b"}, {grid.column("x"), grid.column("y")});
  expect_done(
      Words{"simulate", path("p.csv"), "--x", "a", "--y", "b", "-o", path("g.csv"), "-r", "2"} +
      kSimulatedModel + small_device());
  EXPECT_EQ(read_csv(path("g.csv")).column("z2"), grid.column("z2"));
  // One realization is the first of many; another seed is another field; a mean is added.
  expect_done(simulate(kSimulatedModel + Words{"--grid", "5,3"}));
  EXPECT_EQ(read_csv(path("f.csv")).column("z"), grid.column("z1"));
  expect_done(simulate(kSimulatedModel + Words{"--grid", "5,3", "--mean", "2,1,-1"}));
  EXPECT_EQ(read_csv(path("f.csv")).column("z")[14], grid.column("z1")[14] + 2);
  expect_done(simulate(kSimulatedModel + Words{"--grid", "5,3", "--seed", "2"}));
  EXPECT_NE(read_csv(path("f.csv")).column("z"), grid.column("z1"));
  const std::string text = expect_done(simulate(
      kSimulatedModel + Words{"--random", "40", "--nugget", "0.5", "--report", path("r.html")}));
  expect_pieces(text, {"1 realization at", "40 places", path("f.csv"), "host to device"});
  const Table random = read_csv(path("f.csv"));
  EXPECT_EQ(random.rows(), 40);
  for (const char* name : {"x", "y"}) {
    for (const double v : random.column(name)) EXPECT_TRUE(v >= 0 && v < 1);
  }
}

TEST_F(CliSimulate, AFileMayFollowAListOfNumbers) {
  write_csv(path("p.csv"), {"a", "b"}, {{0, 0.3, 0.5}, {0.1, 0.7, 0.2}});
  const Words places{"--x", "a", "--y", "b", "-o", path("f.csv")};
  const Words more = kSimulatedModel + places + small_device();
  expect_done(Words{"simulate", path("p.csv"), "--mean", "2,1,-1", "--anisotropy", "0.5,-30"} +
              more);
  const std::string before = slurp(path("f.csv"));
  expect_done(Words{"simulate", "--mean", "2,1,-1", path("p.csv"), "--anisotropy", "0.5,-30"} +
              more);
  EXPECT_EQ(slurp(path("f.csv")), before);
  expect_done(Words{"simulate", "--mean", "2,1,-1", "--anisotropy", "0.5,-30", path("p.csv")} +
              more);
  EXPECT_EQ(slurp(path("f.csv")), before);
  // A number after the list is no part of it, but a file.
  expect_refused(Words{"simulate", "--mean", "2", "1"} + more, 3, {"1"});
}

TEST_F(CliSimulate, GivenObservationsHonoursThem) {
  expect_done(simulate(kSimulatedModel + Words{"--random", "40"}));
  const Words fit{"fit", path("f.csv"),  "--x",          "x",   "--y",      "y", "--value", "z",
                  "-o",  path("m.json"), "--smoothness", "0.5", "--nugget", "0"};
  expect_done(fit + small_device());
  expect_done(Words{"simulate", "--model", path("m.json"), "--at", path("f.csv"), "-o",
                    path("c.csv"), "-r", "3"} +
              small_device());
  const Table observed = read_csv(path("f.csv"));
  for (const char* name : {"z1", "z2", "z3"})
    EXPECT_EQ(read_csv(path("c.csv")).column(name), observed.column("z"));
}

TEST_F(CliSimulate, WhatDoesNotServe) {
  const auto refuse = [&](const Words& words, int status, const Words& pieces) {
    const std::size_t before = scratch.files();
    expect_refused(words, status, pieces);
    EXPECT_EQ(scratch.files(), before);
  };
  refuse(simulate(kSimulatedModel), 2, {"one of FILE, --grid, --random and --at"});
  refuse(simulate(kSimulatedModel + Words{"--grid", "5,3", "--random", "4"}), 2, {"not 2"});
  refuse(simulate(kSimulatedModel + Words{"--grid", "5"}), 2, {"NX,NY"});
  refuse(simulate(kSimulatedModel + Words{"--grid", "5,1"}), 2, {"5,1", "at least 2"});
  refuse(simulate(kSimulatedModel + Words{"--grid", "5,3,2"}), 2, {"5,3,2"});
  refuse(simulate(Words{"--grid", "5,3"}), 2, {"--variance"});
  refuse(simulate(kSimulatedModel + Words{"--at", "a.csv"}), 2, {"--model and --at"});
  refuse(simulate(kSimulatedModel + Words{"--grid", "5,3", "--mean", "1,2"}), 2,
         {"2 coefficients"});
  refuse(simulate(kSimulatedModel + Words{path("absent.csv")}), 2, {"--x"});
  refuse(simulate(kSimulatedModel + Words{path("absent.csv"), "--x", "x", "--y", "y"}), 3,
         {"absent.csv"});
  write_csv(path("twice.csv"), {"x", "y"}, {{1, 2, 1}, {1, 2, 1}});
  refuse(simulate(kSimulatedModel + Words{path("twice.csv"), "--x", "x", "--y", "y"}), 1,
         {"0 and 2"});
}

TEST_F(CliSimulate, APredictionOfManyPlacesIsStreamed) {
  expect_done(simulate(kSimulatedModel + Words{"--random", "30", "--nugget", "0.2"}));
  expect_done(Words{"fit", path("f.csv"), "--x", "x", "--y", "y", "--value", "z", "-o",
                    path("m.json"), "--smoothness", "0.5"} +
              small_device());
  // More targets than are computed at a time (8192 / 15 blocks of 15); the places twice.
  std::vector<double> x;
  std::vector<double> y;
  for (int k = 0; k < 20000; ++k) {
    x.push_back(random_uniform(5, static_cast<std::uint64_t>(k % 10000)));
    y.push_back(random_uniform(6, static_cast<std::uint64_t>(k % 10000)));
  }
  write_csv(path("t.csv"), {"x", "y", "z"}, {x, y, x});
  const Json object = expect_json(
      Words{"predict", path("m.json"), path("t.csv"), "-o", path("p.csv")} + small_device());
  EXPECT_EQ(object.at("predictions"), 20000);
  const Table table = read_csv(path("p.csv"));
  ASSERT_EQ(table.rows(), 20000);
  EXPECT_EQ(table.column("x"), x);
  const std::vector<double> mean = table.column("mean");
  double square = 0;
  double largest = 0;
  for (std::size_t k = 0; k < 20000; ++k) {
    square += (mean[k] - x[k]) * (mean[k] - x[k]);
    largest = std::max(largest, std::fabs(mean[k]));
  }
  for (std::size_t k = 0; k < 10000; ++k)
    ASSERT_NEAR(mean[k], mean[k + 10000], 1e-12 * largest) << k;
  EXPECT_NEAR(object.at("holdout").at("rmse").get<double>(), std::sqrt(square / 20000), 1e-12);
  // A bad row at the end is found before anything is computed, and no file is left.
  (void)scratch.put("bad.csv", slurp(path("t.csv")) + "1,two,3\n");
  const std::size_t before = scratch.files();
  expect_refused(
      Words{"predict", path("m.json"), path("bad.csv"), "-o", path("q.csv")} + small_device(), 3,
      {"bad.csv", "row 20001", "two"});
  EXPECT_EQ(scratch.files(), before);
}

}  // namespace
}  // namespace strata::test
