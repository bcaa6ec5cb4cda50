// What people have as files of observations: rows without values, dates, separators; and which
// columns are refused. Oracle: the same run of a plain table.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "tests/cli/program.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

class CliReading : public testing::Test {
 protected:
  CliReading() {
    std::string plain = "x,y,when,z\n";
    for (std::uint64_t i = 0; i < 30; ++i)
      plain += row(i, std::to_string(10957 + i) + ".5");  // 2000-01-01T12:00 and later
    (void)scratch.put("plain.csv", plain);
  }
  static std::string row(std::uint64_t i, const std::string& when) {
    return std::to_string(random_uniform(1, i)) + "," + std::to_string(random_uniform(2, i)) + "," +
           when + "," + std::to_string(random_normal(3, i)) + "\n";
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words loglik(const std::string& file, const Words& more = {}) const {
    return Words{"loglik",       path(file), "--x",        "x",  "--y",     "y",
                 "--value",      "z",        "--variance", "1",  "--range", "0.3",
                 "--smoothness", "0.5",      "--nugget",   "0.1"} +
           small_device() + more;
  }
  [[nodiscard]] Words fit(const std::string& file, const Words& more = {}) const {
    return Words{"fit",      path(file), "--x",
                 "x",        "--y",      "y",
                 "--value",  "z",        "--smoothness",
                 "0.5",      "--range",  "0.3",
                 "--nugget", "0.1",      "--standard-errors",
                 "none",     "-o",       path("m.json")} +
           small_device() + more;
  }
  [[nodiscard]] Words predict(const std::string& file, const Words& more = {}) const {
    return Words{"predict", path("m.json"), path(file), "-o", path("p.csv")} + small_device() +
           more;
  }
  static Json likelihood(const Words& words) { return expect_json(words).at("log_likelihood"); }
  Scratch scratch;
};

TEST_F(CliReading, RowsWithoutAValueAreLeftOutAndCounted) {
  std::string text = slurp(path("plain.csv"));
  const std::string first = text.substr(0, text.find('\n') + 1);
  (void)scratch.put("holes.csv", first + "NA,0.5,1,1\n" + text.substr(first.size()) +
                                     "0.1,0.2,1,\n0.1,,1,2\n0.3,0.2,,2\n");
  expect_refused(loglik("holes.csv"), 3,
                 {"data row 1 (line 2)", "column 'x'", "'NA'", "--missing drop"});
  // The time is not asked for: three rows, not four.
  (void)scratch.put("kept.csv", text + "0.3,0.2,,2\n");
  const Json object = expect_json(loglik("holes.csv", {"--missing", "drop"}));
  EXPECT_EQ(object.at("missing_rows"), 3);
  EXPECT_EQ(object.at("n"), 31);
  EXPECT_EQ(object.at("log_likelihood"), likelihood(loglik("kept.csv")));
  expect_pieces(expect_done(loglik("holes.csv", {"--missing", "drop"})), {"rows left out", "3,"});
  EXPECT_EQ(expect_json(loglik("plain.csv")).at("missing_rows"), 0);
  expect_pieces(expect_done(fit("holes.csv", {"--missing", "drop"})), {"rows left out", "3,"});
  expect_refused(loglik("holes.csv", {"--missing", "maybe"}), 2, {"--missing", "maybe"});
  (void)scratch.put("none.csv", "x,y,z\n,1,2\n1,2,NA\n");
  expect_refused(loglik("none.csv", {"--missing", "drop"}), 3, {"no observations", "2 more"});
  // Rows are those of the file although some before them are left out.
  (void)scratch.put("twice.csv", "x,y,z\n,1,2\n1,2,3\n,,\n1,2,4\n");
  Words twice = loglik("twice.csv", {"--missing", "drop"});
  twice.erase(std::find(twice.begin(), twice.end(), "--nugget"), twice.end() - 6);
  EXPECT_EQ(run_program(twice).status, 1);
  expect_pieces(run_program(twice).err, {"data rows 2 and 4 (lines 3 and 5)"});
}

TEST_F(CliReading, PlacesWithoutAValueArePredicted) {
  expect_done(fit("plain.csv"));
  (void)scratch.put("empty.csv", "x,y,z\n0.5,0.5,\n0.6,0.6,NA\n");
  (void)scratch.put("some.csv", "x,y,z\n0.5,0.5,\n0.6,0.6,1\n0.7,0.1,2\n");
  (void)scratch.put("known.csv", "x,y,z\n0.6,0.6,1\n0.7,0.1,2\n");
  (void)scratch.put("bare.csv", "x,y\n0.5,0.5\n0.6,0.6\n");
  expect_pieces(expect_done(predict("empty.csv")), {"2 predictions", "no value to score against"});
  const std::string empty = slurp(path("p.csv"));
  const Json bare = expect_json(predict("bare.csv"));
  EXPECT_EQ(slurp(path("p.csv")), empty);
  EXPECT_FALSE(bare.contains("holdout"));
  EXPECT_FALSE(expect_json(predict("empty.csv")).contains("holdout"));
  const Json some = expect_json(predict("some.csv"));
  EXPECT_EQ(read_csv(path("p.csv")).rows(), 3);
  EXPECT_EQ(some.at("predictions"), 3);
  // Products with another number of places round otherwise.
  const Json known = expect_json(predict("known.csv")).at("holdout");
  EXPECT_EQ(some.at("holdout").at("observations"), known.at("observations"));
  for (const char* score : {"rmse", "mae", "crps", "coverage95"}) {
    const double expected = known.at(score).get<double>();
    EXPECT_NEAR(some.at("holdout").at(score).get<double>(), expected, 1e-13 * expected) << score;
  }
  expect_pieces(expect_done(predict("some.csv")), {"at 2 places"});
  (void)scratch.put("nowhere.csv", "x,y\n0.5,\n0.6,0.6\n");
  expect_refused(predict("nowhere.csv"), 3, {"column 'y'", "--missing drop"});
  const Json dropped = expect_json(predict("nowhere.csv", {"--missing", "drop"}));
  EXPECT_EQ(dropped.at("predictions"), 1);
  EXPECT_EQ(dropped.at("missing_rows"), 1);
}

TEST_F(CliReading, DatesAreDaysSince1970) {
  std::string dates = "x,y,when,z\n";
  for (std::uint64_t i = 0; i < 30; ++i) {
    const std::string day = (i < 9 ? "0" : "") + std::to_string(i + 1);
    dates += row(i, i % 2 == 0 ? "2000-01-" + day + "T12:00:00Z" : "2000-01-" + day + " 14:00+02");
  }
  (void)scratch.put("dates.csv", dates);
  const Words time{"--time", "when", "--time-scale", "0.1"};
  const Json object = expect_json(loglik("dates.csv", time));
  EXPECT_EQ(object.at("log_likelihood"), likelihood(loglik("plain.csv", time)));
  EXPECT_EQ(object.at("times"), "days since 1970-01-01");
  EXPECT_FALSE(expect_json(loglik("plain.csv", time)).contains("times"));
  expect_pieces(expect_done(loglik("dates.csv", time)), {"days since 1970-01-01"});
  const Words held = time + Words{"--time-smoothness", "0.5", "--interaction", "0"};
  expect_done(fit("dates.csv", held));
  (void)scratch.put("later.csv", "x,y,when\n0.5,0.5,2000-02-01\n");
  (void)scratch.put("number.csv", "x,y,when\n0.5,0.5,10988\n");
  expect_done(predict("later.csv"));
  EXPECT_EQ(read_csv(path("p.csv")).column("when").at(0), 10988);
  expect_refused(predict("number.csv"), 3, {"'when' holds numbers", "days since 1970-01-01"});
  expect_done(fit("plain.csv", held));
  expect_done(predict("number.csv"));
  expect_refused(predict("later.csv"), 3, {"'when' holds dates", "numbers"});
}

TEST_F(CliReading, AColumnIsNamedOnce) {
  const auto with = [&](const Words& columns) {
    return Words{"loglik", path("plain.csv")} + columns +
           Words{"--variance", "1", "--range", "0.3", "--smoothness", "0.5", "--time-scale", "1"} +
           small_device();
  };
  for (const Words& columns :
       std::vector<Words>{{"--x", "x", "--y", "x", "--value", "z"},
                          {"--x", "x", "--y", "y", "--value", "x"},
                          {"--x", "x", "--y", "y", "--z", "x", "--value", "z"},
                          {"--x", "y", "--y", "x", "--time", "x", "--value", "z"}})
    expect_refused(
        with(columns +
             (columns.size() == 8 && columns[4] == "--time" ? Words{} : Words{"--time", "when"})),
        2, {"column 'x' is named"});
}

TEST_F(CliReading, AShareIsThatManyRows) {
  std::string text = "x,y,z\n";
  for (std::uint64_t i = 0; i < 105; ++i)
    text += std::to_string(random_uniform(1, i)) + "," + std::to_string(random_uniform(2, i)) +
            "," + std::to_string(i) + "\n";
  (void)scratch.put("many.csv", text);
  std::set<std::vector<double>> drawn;
  for (const char* seed : {"1", "2", "3", "1"}) {
    for (const auto& [share, held] : {std::pair("0.1", 11), {"0.25", 26}, {"0.5", 53}, {"0", 0}}) {
      if (kSanitized && *seed != '2') continue;
      const Json object = expect_json(loglik("many.csv", {"--holdout", share, "--seed", seed}));
      EXPECT_EQ(object.at("n"), 105 - held) << share;
    }
    expect_done(
        fit("many.csv", {"--holdout", "0.1", "--seed", seed, "--predictions", path("h.csv")}));
    drawn.insert(read_csv(path("h.csv")).column("z"));
  }
  EXPECT_EQ(drawn.size(), 3U);  // by the seed alone
  for (const std::vector<double>& rows : drawn) EXPECT_EQ(rows.size(), 11U);
}

TEST_F(CliReading, FormatsOfOtherProgramsGiveTheSameLikelihood) {
  std::string text = slurp(path("plain.csv"));
  const Json expected = likelihood(loglik("plain.csv"));
  std::string other = "# exported\n" + text + "  \n";
  std::replace(other.begin(), other.end(), ',', ';');
  std::replace(other.begin(), other.end(), '.', ',');
  (void)scratch.put("other.csv", other);
  EXPECT_EQ(likelihood(loglik("other.csv")), expected);
  std::replace(text.begin(), text.end(), ',', '\t');
  (void)scratch.put("tabs.csv", text);
  EXPECT_EQ(likelihood(loglik("tabs.csv")), expected);
}

// ---- output

TEST_F(CliReading, AFullDiskBehindStandardOutputIsToldByAllVerbs) {
  expect_done(fit("plain.csv"));
  (void)scratch.put("bare.csv", "x,y\n0.5,0.5\n");
  (void)scratch.put("A.mtx",
                    "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 4\n2 2 5\n");
  write_npy(path("b.npy"), std::vector<double>{1, 2});
  const std::string a = path("A.mtx");
  const DenseMatrix<double> tall = random_columns(20, 3, 1);
  write_npy(path("V.npy"), tall.view());
  std::vector<Words> runs{loglik("plain.csv"),
                          fit("plain.csv"),
                          predict("bare.csv"),
                          Words{"crossval", path("m.json")} + small_device(),
                          Words{"simulate", "--random", "5", "--variance", "1", "--range", "1",
                                "--smoothness", "0.5", "-o", path("s.csv")} +
                              small_device(),
                          Words{"kl", path("plain.csv"), "--x", "x", "--y", "y", "--variance", "1",
                                "--range", "0.3", "--smoothness", "0.5", "--accuracy", "1e-4"} +
                              small_device(),
                          Words{"plan", "cholesky", "--n", "1000", "--devices", "emulated:1",
                                "--device-memory", "1GiB"},
                          Words{"info"},
                          Words{"analyze", a},
                          Words{"logdet", a} + small_device(),
                          Words{"shift", a},
                          Words{"variances", a, "-o", path("v.npy")} + small_device(),
                          Words{"solve", a, path("b.npy"), "-o", path("x.npy")} + small_device(),
                          Words{"eigs", a, "--k", "1"} + small_device(),
                          Words{"qr", path("V.npy"), "-o", path("Q.npy")} + small_device()};
  for (Words& words : runs) {
    for (int with_json = 0; with_json < 2; ++with_json) {
      if (with_json == 1) words.emplace_back("--json");
      SCOPED_TRACE(testing::PrintToString(words));
      const Outcome outcome = Program(words, STRATA_CLI, "/dev/full").finish();
      expect_complaint(outcome, 3, {"No space left on device"});
    }
  }
  EXPECT_EQ(Program({"--help"}, STRATA_CLI, "/dev/full").finish().status, 3);
  EXPECT_EQ(Program({"--version"}, STRATA_CLI, "/dev/full").finish().status, 3);
}

TEST_F(CliReading, WhatHasNoEndIsNotRead) {
  expect_refused(fit("plain.csv", {"--journal", "/dev/full"}), 3, {"/dev/full", "regular file"});
  const std::string zero = "/dev/zero";
  const std::string named = path("zero.npy");
  std::filesystem::create_symlink(zero, named);
  expect_refused(Words{"predict", zero, path("plain.csv"), "-o", path("p.csv")} + small_device(), 3,
                 {zero, "device"});
  expect_refused(Words{"solve", named, named, "-o", path("x.npy")} + small_device(), 3,
                 {"zero.npy", "device"});
  expect_refused(Words{"loglik", zero, "--x", "x", "--y", "y", "--value", "z", "--variance", "1",
                       "--range", "1", "--smoothness", "0.5"} +
                     small_device(),
                 3, {zero, "device"});
  expect_refused(Words{"plan", "cholesky", "--n", "256", "--rates", zero} + small_device(), 3,
                 {zero, "device"});
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  (void)scratch.put("A.mtx",
                    "%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n1 1 1\n2 2 1\n");
  expect_refused(Words{"factor", path("A.mtx"), "-o", path("F"), "--analysis", pipe}, 3,
                 {"cannot read", "pipe"});
}

TEST_F(CliReading, ADashIsNoFile) {
  const std::size_t before = scratch.files();
  const Words simulate =
      Words{"simulate", "--random", "5", "--variance", "1", "--range", "1", "--smoothness", "0.5"} +
      small_device();
  expect_refused(simulate + Words{"-o", "-"}, 2, {"--output '-'", "/dev/stdout"});
  expect_refused(loglik("plain.csv", {"--report", "-"}), 2, {"--report '-'"});
  expect_refused(loglik("plain.csv", {"--trace", "-"}), 2, {"--trace '-'"});
  expect_refused(Words{"info", "--calibrate", "-o", "-"}, 2, {"'-'"});
  EXPECT_EQ(scratch.files(), before);
}

TEST_F(CliReading, AResultOnStandardOutputIsThereAlone) {
  const Words simulate =
      Words{"simulate", "--random", "5", "--variance", "1", "--range", "1", "--smoothness", "0.5"} +
      small_device();
  expect_done(simulate + Words{"-o", path("s.csv")});
  const std::string stdout_name = "/dev/stdout";
  const Outcome piped = run_program(simulate + Words{"-o", stdout_name});
  EXPECT_EQ(piped.status, 0);
  EXPECT_EQ(piped.out, slurp(path("s.csv")));
  expect_pieces(piped.err, {"1 realization at 5 places written to /dev/stdout"});
  expect_refused(simulate + Words{"-o", stdout_name, "--json"}, 2,
                 {"--output '/dev/stdout' is standard output", "--json"});
  // Whatever it is called: standard output is a named pipe here, and a file there.
  const std::string pipe = path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  Outcome outcome = Program(simulate + Words{"-o", pipe}, STRATA_CLI, pipe).finish();
  std::string text(1 << 16, '\0');
  const ssize_t got = ::read(reader, text.data(), text.size());
  ::close(reader);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  EXPECT_EQ(text, piped.out);
  expect_pieces(outcome.err, {"1 realization at 5 places written to " + pipe});
  const std::string file = scratch.put("out.csv", "");
  outcome = Program(simulate + Words{"-o", stdout_name}, STRATA_CLI, file).finish();
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(slurp(file), piped.out);
  expect_pieces(outcome.err, {"1 realization at 5 places"});
  // Any of the outputs, of any verb; beside another file text stays where it is.
  const Outcome page = run_program(loglik("plain.csv", {"--report", stdout_name}));
  EXPECT_EQ(page.status, 0);
  EXPECT_EQ(page.out.substr(page.out.size() - 8), "</html>\n");
  expect_pieces(page.err, {"log-likelihood", "report written to"});
  expect_refused(loglik("plain.csv", {"--trace", stdout_name, "--json"}), 2, {"--trace"});
  expect_pieces(expect_done(loglik("plain.csv", {"--report", path("r.html")})), {"log-likelihood"});
  // What nobody reads takes both.
  const Outcome nothing =
      Program(simulate + Words{"-o", "/dev/null", "--json"}, STRATA_CLI, "/dev/null").finish();
  EXPECT_EQ(nothing.status, 0) << nothing.err;
}

TEST_F(CliReading, DatesWithoutDashesAreRefused) {
  std::string text = "x,y,when,z\n";
  for (std::uint64_t i = 0; i < 5; ++i) text += row(i, i < 3 ? "20200131" : "20200201");
  (void)scratch.put("bare_dates.csv", text);
  expect_refused(loglik("bare_dates.csv", {"--time", "when", "--time-scale", "0.1"}), 3,
                 {"data row 1 (line 2), column 'when'", "write 2020-01-31"});
  expect_done(loglik("bare_dates.csv"));  // of another column nothing is asked
}

TEST_F(CliReading, ABadHoldoutIsNamedByItsLine) {
  (void)scratch.put("flags.csv", "x,y,z,holdout\n1,2,3,0\n\n2,3,4,2\n");
  expect_refused(loglik("flags.csv"), 3, {"data row 2 (line 4)", "holdout is 2"});
}

}  // namespace
}  // namespace strata::test
