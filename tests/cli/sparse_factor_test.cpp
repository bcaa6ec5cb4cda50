// Sparse Cholesky as a user runs it: solve, factor, logdet and variances beside a dense
// factorization in long doubles.

#include <cmath>
#include <filesystem>
#include <limits>
#include <regex>
#include <utility>

#include "strata/sparse_factor.hpp"
#include "tests/cli/sparse_system.hpp"

namespace strata::test {
namespace {

using CliSparseFactor = SparseSystemFiles;

TEST_F(CliSparseFactor, SolvesAndCertifies) {
  const Json j = expect_json(solve() + Words{"--trace", path("t.json"), "--report", path("r.html"),
                                             "--ordering", "metis"});
  expect_solution("x.npy");
  AnalysisOptions options;
  options.ordering = SparseOrdering::metis;
  const SparseAnalysis analysis = analyze(a, options);
  const DenseOracle oracle(dense_of(a), a.rows);
  EXPECT_EQ(j.at("n"), a.rows);
  EXPECT_GT(j.at("tile"), 0);
  EXPECT_LE(j.at("certificate").at("backward_error").get<double>(), 1e-15);
  EXPECT_EQ(j.at("certificate").at("bytes_moved").get<std::int64_t>(),
            j.at("traffic").at("host_to_device_bytes").get<std::int64_t>() +
                j.at("traffic").at("device_to_host_bytes").get<std::int64_t>());
  EXPECT_EQ(j.at("factor").at("ok"), true);
  EXPECT_NEAR(j.at("factor").at("log_determinant").get<double>(),
              static_cast<double>(oracle.log_determinant), 1e-10);
  EXPECT_EQ(j.at("analysis").at("supernodes"), analysis.supernodes());
  EXPECT_EQ(j.at("analysis").at("factor_entries"), analysis.counts.factor_entries);
  EXPECT_EQ(j.at("analysis").at("ordering"), "metis");
  EXPECT_EQ(j.at("shift"), 0);
  for (const char* link : {"host_to_device_bytes", "device_to_host_bytes"})
    EXPECT_EQ(j.at("traffic").at(link), j.at("planned_traffic").at(link));
  const Json trace = json_of(slurp(path("t.json")));
  EXPECT_GT(trace.at("traceEvents").size(), 2U);
  expect_pieces(slurp(path("r.html")), {"Elimination tree", "Backward error", "host:0"});
  expect_pieces(expect_done(solve()),
                {"210 unknowns", "3 right-hand sides", "backward error", "log determinant",
                 "supernodes", "entries", "planned", path("x.npy")});
}

TEST_F(CliSparseFactor, TheRateIsThatOfTheFlopsAboveIt) {
  write_system(with_values(grid(24, 24, 5), 3), 1);
  // Supernodes that store many zeros: their flops are others.
  const Words relaxed{"--relax-flops", "20", "--relax-entries", "1000"};
  const Json counts = expect_json(Words{"analyze", path("A.mtx")} + relaxed);
  ASSERT_GT(counts.at("stored_flops").get<double>(), 1.5 * counts.at("flops").get<double>());
  for (const Words& words : {solve(), verb("logdet", "A.mtx"), verb("factor", "A.mtx", "F")}) {
    const std::string text = expect_done(words + relaxed);
    std::smatch found;
    ASSERT_TRUE(std::regex_search(
        text, found, std::regex("entries, (\\S+) flops[^]*factor +(\\S+) s, (\\S+) GFLOP/s")))
        << text;
    const double flops = std::stod(found[1]);
    EXPECT_NEAR(flops, counts.at("flops").get<double>(), 1e-3 * flops);
    const double rate = flops / std::stod(found[2]) / 1e9;
    EXPECT_NEAR(std::stod(found[3]), rate, 0.051 + 0.01 * rate) << text;
  }
  const std::string plan = expect_done(
      Words{"plan", "sparse", path("A.mtx"), "--devices", "emulated:1", "--device-memory", "1GiB"} +
      relaxed);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      plan, found, std::regex("predicted +(\\S+) s by the schedule \\((\\S+) GFLOP/s")))
      << plan;
  const double rate = counts.at("flops").get<double>() / std::stod(found[1]) / 1e9;
  EXPECT_NEAR(std::stod(found[2]), rate, 0.051 + 0.01 * rate) << plan;
}

TEST_F(CliSparseFactor, FormatsAndBudgetsChangeNoBit) {
  expect_done(solve());
  const std::string expected = slurp(path("x.npy"));
  ASSERT_FALSE(expected.empty());
  (void)scratch.put("one.mtx", symmetric_text(a, "%MatrixMarket"));
  write_mtx(path("b.mtx"), std::as_const(b).view());
  expect_done({"solve", path("one.mtx"), path("b.mtx"), "-o", path("y.npy"), "--devices", "host:2",
               "--device-memory", "1MiB", "--policy", "v1"});
  EXPECT_EQ(slurp(path("y.npy")), expected);
}

TEST_F(CliSparseFactor, TellsSparseFromDenseByTheFile) {
  EXPECT_TRUE(expect_json(solve()).contains("analysis"));
  const DenseMatrix<double> dense{dense_of(a), a.rows, a.rows};
  write_mtx(path("dense.mtx"), dense.view());
  write_npy(path("dense.npy"), dense.view());
  for (const char* file : {"dense.mtx", "dense.npy"}) {
    EXPECT_FALSE(expect_json(solve(file)).contains("analysis")) << file;
    expect_solution("x.npy");
    refuse(solve(file) + Words{"--shift", "1"}, 2, {"--shift", "dense"});
    refuse(solve(file) + Words{"--condition"}, 2, {"--condition"});
  }
  // The verbs that only sparse matrices have take the same numbers from a dense file.
  EXPECT_EQ(expect_json(verb("logdet", "dense.npy"))["log_determinant"],
            expect_json(verb("logdet", "A.mtx"))["log_determinant"]);
}

TEST_F(CliSparseFactor, ASavedFactorSolvesWithTheSameBits) {
  expect_done(solve());
  const std::string direct = slurp(path("x.npy"));
  const Json made = expect_json(verb("factor", "A.mtx", "F"));
  EXPECT_EQ(made.at("factor").at("ok"), true);
  EXPECT_GT(made.at("tasks"), 0);
  const Json refined = expect_json(solve("F", "y.npy") + Words{"--matrix", path("A.mtx")});
  EXPECT_EQ(slurp(path("y.npy")), direct);
  EXPECT_LE(refined.at("certificate").at("backward_error").get<double>(), 1e-15);
  // Without A nothing is known of the error, and nothing refined.
  const Json alone = expect_json(solve("F", "z.npy"));
  EXPECT_TRUE(alone.at("certificate").at("backward_error").is_null());
  EXPECT_EQ(alone.at("certificate").at("refinement_steps"), 0);
  EXPECT_FALSE(alone.contains("tasks")) << "nothing ran";
  SparseCholeskyOptions options;
  options.run.devices = "host";
  const SparseCholesky factor(a, options);
  DenseMatrix<double> x = b;
  factor.solve(x.view());
  EXPECT_EQ(read_dense(path("z.npy")).values, x.values);
  expect_pieces(expect_done(solve("F")), {"backward error    unknown", "--matrix"});
  expect_pieces(
      expect_done(verb("factor", "A.mtx", "F") + Words{"--condition"}),
      {"factored order 210", "supernodes", "condition", "factor written to " + path("F")});
}

TEST_F(CliSparseFactor, LogDeterminantAndVariances) {
  const DenseOracle oracle(dense_of(a), a.rows);
  std::vector<std::vector<long double>> inverse;  // its columns
  for (std::int64_t i = 0; i < a.rows; ++i) inverse.push_back(oracle.inverse_column(i));
  expect_done(verb("factor", "A.mtx", "F"));
  for (const char* from : {"A.mtx", "F"}) {
    SCOPED_TRACE(from);
    EXPECT_NEAR(expect_json(verb("logdet", from)).at("log_determinant").get<double>(),
                static_cast<double>(oracle.log_determinant), 1e-10);
    const Json j = expect_json(verb("variances", from, "v.npy"));
    const DenseMatrix<double> v = read_dense(path("v.npy"));
    ASSERT_EQ(v.rows, a.rows);
    double least = std::numeric_limits<double>::infinity();
    expect_done(verb("variances", from, "z.mtx") + Words{"--selected"});
    const MatrixMarket selected = read_mtx(path("z.mtx"));
    EXPECT_TRUE(selected.symmetric);
    EXPECT_GE(selected.entries(), a.entries());
    const DenseMatrix<double> z = selected.to_dense();
    for (std::int64_t i = 0; i < a.rows; ++i) {
      EXPECT_NEAR(v.values[at(i)], static_cast<double>(inverse[at(i)][at(i)]), 1e-10);
      EXPECT_EQ(v.values[at(i)], z.view()(i, i));
      least = std::min(least, v.values[at(i)]);
    }
    for (std::int64_t k = 0; k < selected.entries(); ++k)
      EXPECT_NEAR(selected.value[at(k)],
                  static_cast<double>(inverse[at(selected.col[at(k)])][at(selected.row[at(k)])]),
                  1e-10);
    EXPECT_EQ(j.at("variances").at("smallest"), least);
  }
  expect_pieces(expect_done(verb("logdet", "A.mtx")), {"log determinant", "supernodes"});
  expect_pieces(expect_done(verb("variances", "A.mtx", "v.npy")), {"variances", path("v.npy")});
}

TEST_F(CliSparseFactor, NotPositiveDefiniteNamesTheRowAndAShift) {
  // All other rows are dominated by their diagonals, so that only row 77 can fail.
  set_diagonal(a, 77, -3);
  write_system(a, 2);
  refuse(solve(), 1, {"not positive definite", "row 77", "the pivot is -", "--shift"});
  for (const Words& words :
       {verb("factor", "A.mtx", "F"), verb("logdet", "A.mtx"), verb("variances", "A.mtx", "v.npy")})
    refuse(words, 1, {"row 77", "--shift"});
  const Outcome outcome = run_program(solve() + Words{"--json"});
  expect_complaint(outcome, 1, {"row 77"});
  const Json j = json_of(outcome.out);
  EXPECT_EQ(j.at("factor").at("ok"), false);
  EXPECT_EQ(j.at("factor").at("first_bad_pivot"), 77);
  EXPECT_LE(j.at("factor").at("bad_pivot").get<double>(), -3.0);
  EXPECT_TRUE(j.at("factor").at("log_determinant").is_null());
  const double shift = j.at("definite_shift").get<double>();
  EXPECT_GT(shift, 3);
  EXPECT_EQ(j.at("empty_rows"), 0);
  EXPECT_EQ(outcome.err.find("nothing but zeros"), std::string::npos);
  const Json shifted = expect_json(solve() + Words{"--shift", std::to_string(shift)});
  EXPECT_NEAR(shifted.at("shift").get<double>(), shift, 1e-5);
  // A shift that does not suffice is named, and so is the one that would.
  refuse(solve() + Words{"--shift", "2.5"}, 1, {"the matrix + 2.5 I", "row 77", "--shift"});
}

TEST_F(CliSparseFactor, ShiftsAndSavesThem) {
  const std::string shift = "0.75";
  const Json j = expect_json(solve() + Words{"--shift", shift});
  EXPECT_EQ(j.at("shift"), 0.75);
  EXPECT_EQ(j.at("certificate").at("of"), "A + shift*I");
  expect_solution("x.npy", 0.75);
  expect_pieces(expect_done(solve() + Words{"--shift", shift}),
                {"unknowns of (A + 0.75·I)·x = b", "of A + shift·I, not of A"});
  const std::string direct = slurp(path("x.npy"));
  expect_done(verb("factor", "A.mtx", "F") + Words{"--shift", shift});
  expect_done(solve("F") + Words{"--matrix", path("A.mtx")});
  EXPECT_EQ(slurp(path("x.npy")), direct);
  EXPECT_EQ(expect_json(verb("logdet", "F"))["shift"], 0.75);
  expect_solution("x.npy", 0.75);
  expect_json(solve() + Words{"--shift", "-0.001"});
  expect_solution("x.npy", -0.001);
}

TEST_F(CliSparseFactor, EmptyDiagonalsNeedAShift) {
  (void)scratch.put(
      "A.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 3\n1 1 2\n3 1 1\n3 3 2\n");
  a = sparse_from_entries(3, 3, std::vector<std::int64_t>{0, 1, 2, 2},
                          std::vector<std::int64_t>{0, 1, 0, 2}, std::vector<double>{2, 0, 1, 2});
  b = random_columns(3, 1, 5);
  write_npy(path("b.npy"), std::as_const(b).view());
  refuse(solve(), 1,
         {"not positive definite", "row 1", "pivot is 0",
          "1 of its rows holds nothing but zeros, row 1 the first", "that of A + shift·I"});
  expect_done(solve() + Words{"--shift", "0.5"});
  expect_solution("x.npy", 0.5);
  // Rows of which one triangle tells nothing are not empty.
  (void)scratch.put("A.mtx",
                    "%%MatrixMarket matrix coordinate real symmetric\n4 4 4\n1 1 2\n2 1 0\n3 1 1\n"
                    "3 3 -2\n");
  b = random_columns(4, 1, 5);
  write_npy(path("b.npy"), std::as_const(b).view());
  refuse(solve(), 1, {"2 of its rows hold nothing but zeros, row 1 the first"});
}

TEST_F(CliSparseFactor, TakesAnAnalysis) {
  expect_done({"analyze", path("A.mtx"), "--ordering", "amd", "-o", path("analysis")});
  expect_done(solve() + Words{"--ordering", "amd"});
  const std::string expected = slurp(path("x.npy"));
  const Words with{"--analysis", path("analysis")};
  const Json j = expect_json(solve() + with);
  EXPECT_EQ(j.at("analysis").at("ordering"), "amd");
  EXPECT_EQ(slurp(path("x.npy")), expected);
  expect_done(verb("factor", "A.mtx", "F") + with);
  (void)scratch.put("other.mtx", symmetric_text(with_values(grid(7, 6, 4), 3)));
  refuse(verb("logdet", "other.mtx") + with, 2, {"168", "210"});
  refuse(solve() + with + Words{"--ordering", "metis"}, 2, {"--analysis", "--ordering"});
  refuse(solve() + Words{"--analysis", path("A.mtx")}, 3, {"A.mtx", "no analysis"});
  refuse(solve() + Words{"--ordering", "upwards"}, 2, {"upwards"});
}

TEST_F(CliSparseFactor, EstimatesTheCondition) {
  const double exact = condition();
  const double estimate = expect_json(solve() + Words{"--condition"}).at("condition").get<double>();
  EXPECT_LE(estimate, exact * (1 + 1e-10));
  EXPECT_GE(estimate, exact / 3);
  expect_pieces(expect_done(solve() + Words{"--condition"}), {"condition"});
  // With a saved factor it takes A.
  expect_done(verb("factor", "A.mtx", "F"));
  const Words matrix{"--matrix", path("A.mtx"), "--condition"};
  EXPECT_EQ(expect_json(solve("F") + matrix)["condition"], estimate);
  refuse(solve("F") + Words{"--condition"}, 2, {"--condition", "--matrix"});
}

TEST_F(CliSparseFactor, RefusesWhatIsNoFactor) {
  expect_done(verb("factor", "A.mtx", "F"));
  (void)scratch.put("other.mtx", symmetric_text(with_values(grid(7, 6, 4), 3)));
  refuse(solve("F") + Words{"--matrix", path("other.mtx")}, 2, {"168", "210"});
  refuse(solve("F") + Words{"--shift", "1"}, 2, {"--shift", path("F")});
  refuse(verb("logdet", "F") + Words{"--ordering", "amd"}, 2, {"--ordering"});
  refuse(verb("factor", "F", "G"), 2, {"directory"});
  refuse(solve("F") + Words{"--precision", "fp32"}, 2, {"fp32"});
  refuse(solve() + Words{"--matrix", path("A.mtx")}, 2, {"--matrix"});
  const std::string whole = slurp(path("F/factor"));
  std::string damaged = whole;
  damaged[whole.size() - 100] = static_cast<char>(damaged[whole.size() - 100] ^ 1);
  (void)scratch.put("F/factor", damaged);
  refuse(solve("F"), 3, {"F/factor", "damaged"});
  (void)scratch.put("F/factor", whole.substr(0, whole.size() - 9));
  refuse(verb("logdet", "F"), 3, {"F/factor"});
  (void)scratch.put("F/factor", "");
  refuse(verb("variances", "F", "v.npy"), 3, {"F/factor"});
  std::filesystem::remove(path("F/analysis"));
  refuse(verb("logdet", "F"), 3, {"F/analysis"});
}

TEST_F(CliSparseFactor, RefusesMatricesAndShapes) {
  const std::string banner = "%%MatrixMarket matrix coordinate real ";
  const std::vector<std::tuple<std::string, int, Words>> cases{
      {banner + "general\n3 3 4\n1 2 5\n2 1 6\n3 3 1\n1 1 1\n", 1, {"(0, 1) is 5", "(1, 0) is 6"}},
      {banner + "general\n2 3 1\n1 2 5\n", 2, {"2 by 3"}},
      {banner + "skew-symmetric\n2 2 1\n2 1 5\n", 1, {"skew"}},
      {banner + "symmetric\n2 2 2\n1 1 nan\n2 2 1\n", 3, {"line 3", "nan"}},
      {banner + "symmetric\n3000000000 3000000000 1\n1 1 1\n", 2, {"3000000000"}}};
  for (const auto& [text, status, pieces] : cases) {
    (void)scratch.put("bad.mtx", text);
    SCOPED_TRACE(text);
    refuse(verb("logdet", "bad.mtx"), status, pieces);
    refuse(verb("factor", "bad.mtx", "F"), status, pieces);
  }
  refuse(solve("absent.mtx"), 3, {"absent.mtx"});
  for (const Words& dense :
       {Words{"--path", "in-core"}, Words{"--variant", "left"}, Words{"--reproducible"}}) {
    refuse(solve() + dense, 2, {dense[0], "A.mtx is sparse"});
    refuse(solve() + Words{"--method", "gmres"} + dense, 2, {dense[0], "cholesky"});
  }
  refuse(solve() + Words{"--method", "gmres", "--tile", "64"}, 2, {"--tile", "cholesky"});
  refuse(solve() + Words{"--s", "4"}, 2, {"--s", "gmres"});
  refuse(solve() + Words{"--method", "gmres", "--shift", "1"}, 2, {"--shift", "cholesky"});
  const Words factor{"logdet", path("A.mtx"), "--devices", "host"};
  refuse(factor + Words{"--device-memory", "500"}, 3, {"500 bytes", "needs"});
  refuse(factor + Words{"--host-memory", "1KiB"}, 3, {"1.00 KiB", "host memory"});
  const DenseMatrix<double> flat = random_columns(17, 1, 1);
  write_npy(path("b.npy"), flat.view());
  refuse(solve(), 2, {"b.npy", "17", "210"});
}

TEST_F(CliSparseFactor, OutputsAreCheckedFirst) {
  refuse(verb("factor", "absent.mtx", "no/F"), 3, {"--output", "no/F"});
  refuse(verb("factor", "absent.mtx", "A.mtx"), 3, {"--output", "A.mtx", "directory"});
  refuse(verb("variances", "absent.mtx", "v.txt"), 2, {"v.txt", ".npy"});
  refuse(verb("variances", "absent.mtx", "v.npy") + Words{"--selected"}, 2, {"v.npy", ".mtx"});
  refuse(verb("variances", "A.mtx", "A.mtx"), 2, {"--output", "A.mtx"});
  expect_done(verb("factor", "A.mtx", "F"));
  refuse(solve("F", "F/factor.npy") + Words{"--matrix", path("F/factor.npy")}, 2,
         {"--output", "F/factor.npy"});
  // Over an older factor, and with a slash behind its name.
  expect_done(verb("factor", "A.mtx", "F/") + Words{"--shift", "1"});
  EXPECT_EQ(expect_json(verb("logdet", "F"))["shift"], 1);
}

TEST_F(CliSparseFactor, SmallOrders) {
  for (const std::int64_t n : {0, 1}) {
    write_system(with_values(Edges(n).matrix(), 1), 2);
    EXPECT_EQ(expect_json(solve()).at("factor").at("ok"), true);
    EXPECT_EQ(read_dense(path("x.npy")).rows, n);
    expect_done(verb("factor", "A.mtx", "F"));
    expect_done(verb("variances", "F", "v.npy"));
    expect_done(verb("variances", "F", "z.mtx") + Words{"--selected"});
    EXPECT_EQ(read_mtx(path("z.mtx")).rows, n);
  }
}

}  // namespace
}  // namespace strata::test
