// strata solve, against residuals and a log-determinant computed here, and what it refuses.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>

#include "tests/cli/program.hpp"
#include "tests/support/problems.hpp"

namespace strata::test {
namespace {

/// log|A| by elimination in long double.
double log_determinant(const DenseMatrix<double>& a) {
  const auto n = static_cast<std::size_t>(a.rows);
  std::vector<long double> u(a.values.begin(), a.values.end());
  long double sum = 0;
  for (std::size_t k = 0; k < n; ++k) {
    sum += std::log(u[k + k * n]);
    for (std::size_t i = k + 1; i < n; ++i) {
      const long double factor = u[i + k * n] / u[k + k * n];
      for (std::size_t j = k; j < n; ++j) u[i + j * n] -= factor * u[k + j * n];
    }
  }
  return static_cast<double>(sum);
}

class CliSolve : public testing::Test {
 protected:
  /// A.npy and b.npy in the folder.
  void write_system(std::int64_t n, std::int64_t columns) {
    a = positive_definite(n, 7);
    b = random_columns(n, columns, 8);
    write_npy(path("A.npy"), std::as_const(a).view());
    write_npy(path("b.npy"), std::as_const(b).view());
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words command(const std::string& matrix = "A.npy", const std::string& rhs = "b.npy",
                              const std::string& out = "x.npy") const {
    return Words{"solve", path(matrix), path(rhs), "-o", path(out)} + small_device();
  }
  [[nodiscard]] Words cholesky() const { return command() + Words{"--method", "cholesky"}; }
  /// Refused, and no file is left or made, although all of them were asked for.
  void refuse(const Words& words, int status, const Words& pieces) const {
    const std::size_t before = scratch.files();
    expect_refused(words + Words{"--trace", path("t.json"), "--report", path("r.html")}, status,
                   pieces);
    EXPECT_EQ(scratch.files(), before);
  }

  Scratch scratch;
  DenseMatrix<double> a;
  DenseMatrix<double> b;
};

TEST_F(CliSolve, SolvesAndCertifies) {
  const std::int64_t n = 193;
  write_system(n, 3);
  const Json object = expect_json(
      command() + Words{"--tile", "32", "--trace", path("t.json"), "--report", path("r.html")});
  expect_run_fields(object, n);
  EXPECT_EQ(object.at("tile"), 32);
  EXPECT_EQ(object.at("pinned_bytes"), 0) << "on a CPU nothing is";
  EXPECT_EQ(object.at("tuning"), "none") << "nor is there anything to tune";
  EXPECT_EQ(object.at("pinning_seconds"), 0);
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  ASSERT_EQ(x.rows, n);
  ASSERT_EQ(x.cols, 3);
  const double bound = 10 * static_cast<double>(n) * std::numeric_limits<double>::epsilon();
  EXPECT_LE(backward_error(a.view(), b.view(), x.view()), bound);
  EXPECT_LE(object.at("certificate").at("backward_error").get<double>(), bound);
  EXPECT_GE(object.at("certificate").at("refinement_steps").get<int>(), 0);
  EXPECT_EQ(object.at("factor").at("ok"), true);
  EXPECT_EQ(object.at("factor").at("first_bad_pivot"), -1);
  const double expected = log_determinant(a);
  EXPECT_NEAR(object.at("factor").at("log_determinant").get<double>(), expected, 1e-12 * expected);
  EXPECT_EQ(object.at("solve").at("traffic").at("host_to_device_bytes"),
            object.at("solve").at("planned_traffic").at("host_to_device_bytes"));
  const Json trace = json_of(slurp(path("t.json")));
  EXPECT_GT(trace.at("traceEvents").size(), 10U);
  const std::string page = slurp(path("r.html"));
  EXPECT_NE(page.find("193"), std::string::npos);
}

TEST_F(CliSolve, BudgetsAndFormatsDoNotChangeABit) {
  write_system(150, 1);
  write_mtx(path("A.mtx.gz"), std::as_const(a).view());
  write_npy(path("A.npy.gz"), std::as_const(a).view());
  write_mtx(path("b.mtx"), std::as_const(b).view());
  expect_done(command() + Words{"--tile", "32"});
  // The numbers behind the header, which has the dimensions of b.
  const auto numbers_of = [](const std::string& file) {
    return file.substr(file.size() - std::min<std::size_t>(file.size(), 150 * sizeof(double)));
  };
  const std::string expected = numbers_of(slurp(path("x.npy")));
  ASSERT_EQ(expected.size(), 150 * sizeof(double));
  for (const std::string matrix : {"A.mtx.gz", "A.npy.gz"}) {
    expect_done({"solve", path(matrix), path("b.mtx"), "-o", path("y.npy"), "--tile", "32",
                 "--devices", "host:2", "--device-memory", "96KiB", "--host-pinning", "ahead"});
    EXPECT_EQ(numbers_of(slurp(path("y.npy"))), expected) << matrix;
  }
}

TEST_F(CliSolve, InCoreIsWithinRoundingOfThePlannedPath) {
  write_system(190, 2);
  const Words planned = command() + Words{"--reproducible"};
  const Json tiles = expect_json(planned + Words{"--tile", "32"});
  EXPECT_EQ(tiles.at("path"), "planned");
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  const Json core = expect_json(command() + Words{"--path", "in-core", "--variant", "left"});
  expect_run_fields(core, 190);
  EXPECT_EQ(core.at("path"), "in-core");
  EXPECT_EQ(core.at("tile"), 190);
  EXPECT_EQ(core.at("tasks"), 1);
  EXPECT_EQ(core.at("solve").at("path"), "in-core");
  EXPECT_LE(core.at("certificate").at("backward_error").get<double>(), 1e-15);
  const DenseMatrix<double> y = read_dense(path("x.npy"));
  // Both have a backward error of 1e-15 at most, and the condition of A is below 5.
  double largest = 0;
  for (const double value : x.values) largest = std::max(largest, std::abs(value));
  for (std::size_t k = 0; k < x.values.size(); ++k)
    EXPECT_NEAR(x.values[k], y.values[k], 1e-14 * largest);
  expect_pieces(expect_done(command() + Words{"--path", "in-core"}), {"in-core, tile 190"});
}

TEST_F(CliSolve, InCoreNeverFallsBack) {
  write_system(190, 1);
  const Words small{"solve",     path("A.npy"), path("b.npy"),     "-o",    path("x.npy"),
                    "--devices", "host",        "--device-memory", "200KiB"};
  refuse(small + Words{"--path", "in-core"}, 3, {"288800 bytes", "200 KiB", "190"});
  expect_done(small + Words{"--path", "planned", "--tile", "32"});
  std::filesystem::remove(path("x.npy"));
  const Words core = command() + Words{"--path", "in-core"};
  refuse(core + Words{"--tile", "32"}, 2, {"tile", "32"});
  refuse(core + Words{"--reproducible"}, 2, {"--reproducible", "in-core"});
  refuse(command() + Words{"--path", "sideways"}, 2, {"'sideways'"});
  refuse(command() + Words{"--variant", "up"}, 2, {"'up'"});
}

TEST_F(CliSolve, MemoryThatIsNotThereIsRefused) {
  write_system(60, 1);
  const std::string before = slurp(path("A.npy"));
  const Words solve{"solve",       path("A.npy"), path("b.npy"), "-o",
                    path("x.npy"), "--devices",   "host"};
  refuse(solve + Words{"--device-memory", "900TiB"}, 3, {"900 TiB asked", "free"});
  refuse(solve + Words{"--device-memory", "500"}, 3, {"500 bytes", "smallest", "host memory"});
  refuse(solve + Words{"--host-memory", "1KiB"}, 3, {"1.00 KiB", "order 60", "host memory"});
  EXPECT_EQ(slurp(path("A.npy")), before);
}

TEST_F(CliSolve, InCoreNamesTheSamePivot) {
  write_system(100, 1);
  a.view()(70, 70) = -3;
  write_npy(path("A.npy"), std::as_const(a).view());
  refuse(cholesky() + Words{"--path", "in-core"}, 1, {"not positive definite", "pivot 70 is -"});
}

TEST_F(CliSolve, OrderNoneAndOne) {
  for (const std::int64_t n : {0, 1}) {
    write_system(n, 2);
    const Json object = expect_json(command());
    expect_run_fields(object, n);
    EXPECT_EQ(object.at("factor").at("ok"), true);
    EXPECT_EQ(read_dense(path("x.npy")).rows, n);
  }
}

TEST_F(CliSolve, TextNamesTheCertificateAndTheFiles) {
  write_system(20, 1);
  const std::string text = expect_done(command() + Words{"--report", path("r.html")});
  expect_pieces(text, {"20 unknowns", "backward error", "log determinant", "planned", "measured",
                       path("x.npy"), path("r.html")});
  EXPECT_EQ(text.find("DIFFER"), std::string::npos);
}

TEST_F(CliSolve, NotPositiveDefiniteNamesThePivot) {
  write_system(100, 1);
  // Eliminating rows 0 to 69 leaves pivot 70 lower than it was: below −3.
  a.view()(70, 70) = -3;
  write_npy(path("A.npy"), std::as_const(a).view());
  refuse(cholesky() + Words{"--tile", "32"}, 1, {"not positive definite", "pivot 70 is -"});
  const Outcome outcome = run_program(cholesky() + Words{"--tile", "32", "--json"});
  expect_complaint(outcome, 1, {"pivot 70"});
  const Json object = json_of(outcome.out);
  EXPECT_EQ(object.at("factor").at("ok"), false);
  EXPECT_EQ(object.at("factor").at("first_bad_pivot"), 70);
  EXPECT_LT(object.at("factor").at("bad_pivot").get<double>(), -3.0);
  EXPECT_TRUE(object.at("factor").at("log_determinant").is_null());
  EXPECT_FALSE(std::filesystem::exists(path("x.npy")));
}

TEST_F(CliSolve, OverflowIsCalledNaN) {
  // L21 = 1e300/1e-150 overflows, so the last pivot is 1 − ∞ or a NaN: never a success.
  a = {{1e-300, 1e300, 1e300, 1}, 2, 2};
  b = random_columns(2, 1, 1);
  write_npy(path("A.npy"), std::as_const(a).view());
  write_npy(path("b.npy"), std::as_const(b).view());
  refuse(cholesky(), 1, {"pivot 1"});
}

TEST_F(CliSolve, NotSymmetricNamesBothElements) {
  write_system(80, 1);
  a.view()(70, 3) = 0.25;
  a.view()(3, 70) = 0.5;
  write_npy(path("A.npy"), std::as_const(a).view());
  refuse(cholesky(), 1, {"not symmetric", "(70, 3)", "(3, 70)", "0.25", "0.5"});
}

TEST_F(CliSolve, ShapesThatDoNotFit) {
  write_system(20, 1);
  const DenseMatrix<double> short_rhs = random_columns(19, 1, 1);
  write_npy(path("short.npy"), short_rhs.view());
  refuse(command("A.npy", "short.npy"), 2, {"short.npy", "19", "20"});
  const DenseMatrix<double> wide = random_columns(20, 21, 1);
  write_npy(path("wide.npy"), wide.view());
  refuse(command("wide.npy"), 2, {"wide.npy", "20 by 21", "not square"});
}

TEST_F(CliSolve, FilesThatAreNoMatrices) {
  write_system(20, 1);
  write_mtx(path("good.mtx"), std::as_const(a).view());
  write_npy(path("good.npy.gz"), std::as_const(a).view());
  const std::string npy = slurp(path("A.npy"));
  const std::string mtx = slurp(path("good.mtx"));
  const std::string gz = slurp(path("good.npy.gz"));
  std::string corrupt = gz;
  corrupt[gz.size() / 2] = static_cast<char>(corrupt[gz.size() / 2] ^ 0x55);
  const std::vector<std::pair<std::string, std::string>> cases{
      {"cut.npy", npy.substr(0, npy.size() - 9)},
      {"head.npy", npy.substr(0, 20)},
      {"bad.npy", "not an array"},
      {"empty.npy", ""},
      {"cut.mtx", mtx.substr(0, mtx.size() / 2)},
      {"bad.mtx", "%%MatrixMarket nonsense\n"},
      {"cut.npy.gz", gz.substr(0, gz.size() / 2)},
      {"corrupt.npy.gz", corrupt}};
  for (const auto& [name, bytes] : cases) {
    (void)scratch.put(name, bytes);
    refuse(command(name), 3, {name});
  }
  refuse(command("absent.npy"), 3, {"absent.npy"});
  refuse(command("A.npy", "absent.mtx"), 3, {"absent.mtx"});
  // The suffix decides, not a part of the path.
  std::filesystem::create_directory(path("dir.npy"));
  (void)scratch.put("dir.npy/text.csv", "1,2\n");
  refuse(command("dir.npy/text.csv"), 2, {"text.csv", ".npy"});
  std::filesystem::copy(path("good.mtx"), path("dir.npy/good.mtx"));
  expect_done(command("dir.npy/good.mtx"));
}

TEST_F(CliSolve, NumbersThatAreNotFinite) {
  write_system(20, 1);
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    DenseMatrix<double> c = a;
    c.view()(11, 5) = bad;
    write_npy(path("C.npy"), std::as_const(c).view());
    refuse(command("C.npy"), 3, {"C.npy", "11", "5", std::isnan(bad) ? "nan" : "inf"});
    DenseMatrix<double> d = b;
    d.view()(13, 0) = bad;
    write_npy(path("d.npy"), std::as_const(d).view());
    refuse(command("A.npy", "d.npy"), 3, {"d.npy", "13"});
  }
}

TEST_F(CliSolve, OutputsAreCheckedBeforeInputsAreRead) {
  // No input exists: what is complained about first is the output.
  refuse(command("A.npy", "b.npy", "no/x.npy"), 3, {"--output", "no/x.npy"});
  refuse(command("A.npy", "b.npy", "x.txt"), 2, {"x.txt", ".npy"});
  expect_refused(command() + Words{"--trace", path("no/t.json")}, 3, {"--trace", "no/t.json"});
  expect_refused(command() + Words{"--report", scratch.path("")}, 3, {"--report", "directory"});
  expect_refused(command() + Words{"--report", path("same"), "--trace", path("same")}, 2,
                 {"--trace", "--report", "same"});
  write_system(5, 1);
  refuse(command("A.npy", "b.npy", "b.npy"), 2, {"--output", "b.npy"});
  EXPECT_EQ(read_dense(path("b.npy")).values, b.values);
}

TEST_F(CliSolve, AnOlderResultSurvivesAFailure) {
  write_system(20, 1);
  (void)scratch.put("x.npy", "old");
  refuse(command("absent.npy"), 3, {"absent.npy"});
  EXPECT_EQ(slurp(path("x.npy")), "old");
}

}  // namespace
}  // namespace strata::test
