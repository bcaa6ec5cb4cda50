// strata factor --method cholesky --storage and strata solve --storage of dense matrices: factors
// in files, solved with at once and later; what is refused. Oracle: elimination in 113 bits, and
// factors in memory.

#include <algorithm>
#include <atomic>
#include <complex>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "base/index.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/wide_elimination.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kDefiniteOrder = 120;

class CliStoredCholesky : public testing::Test {
 protected:
  CliStoredCholesky()
      : a(random_columns(kDefiniteOrder, kDefiniteOrder, 5)),
        b(random_columns(kDefiniteOrder, 1, 6)) {
    const auto element = [&](std::int64_t i, std::int64_t j) -> double& {
      return a.values[at(i + j * kDefiniteOrder)];
    };
    for (std::int64_t j = 0; j < kDefiniteOrder; ++j) {
      for (std::int64_t i = 0; i < j; ++i) element(j, i) = element(i, j);
      element(j, j) = 40 + static_cast<double>(j);
    }
    write_npy(path("A.npy"), std::as_const(a).view());
    write_rows(scratch, "C.npy", a);
    write_npy(path("b.npy"), std::as_const(b).view());
    differs = a;
    differs.values[at(3 + 7 * kDefiniteOrder)] *= 1 + 0x1p-52;  // (3, 7) and not (7, 3)
    write_npy(path("D.npy"), std::as_const(differs).view());
    write_rows(scratch, "Drows.npy", differs);
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words factor(const std::string& matrix, const std::string& output,
                             const Words& more = {}) const {
    return Words{"factor",   path(matrix), "-o",        path(output),
                 "--method", "cholesky",   "--devices", "host:1"} +
           Words{"--storage", path(output) + "," + path(output + "2"), "--host-memory", "60KiB"} +
           more;
  }
  [[nodiscard]] Words solve(const std::string& what, const Words& more = {}) const {
    return Words{"solve", path(what), path("b.npy"), "-o", path("x.npy"), "--devices", "host:1"} +
           more;
  }
  [[nodiscard]] double forward_error(const DenseMatrix<double>& of) const {
    return wide_errors(of.values, b.values, read_dense(path("x.npy")).values).forward;
  }

  Scratch scratch;
  DenseMatrix<double> a;
  DenseMatrix<double> b;
  DenseMatrix<double> differs;
};

TEST_F(CliStoredCholesky, FactorsInEitherOrderAndSolvesLater) {
  const double log = wide_determinant(a.values, kDefiniteOrder).log;
  for (const std::string matrix : {"A.npy", "C.npy"}) {
    const std::string out = "f" + matrix;
    const Json object = expect_json(factor(matrix, out));
    EXPECT_EQ(object.at("method"), "cholesky");
    EXPECT_EQ(object.at("storage").at("directories").size(), 2U);
    EXPECT_EQ(object.at("storage").at("found"), 0);
    EXPECT_EQ(object.at("traffic"), [&] {
      Json planned = object.at("planned_traffic");
      planned.erase("floor_bytes");
      return planned;
    }());
    EXPECT_LE(object.at("host_bytes").get<std::int64_t>(), 60 * 1024);
    EXPECT_NEAR(object.at("factor").at("log_determinant").get<double>(), log,
                object.at("log_determinant_error").get<double>());
    const Json solved = expect_json(solve(out, {"--matrix", path(matrix)}));
    EXPECT_EQ(solved.at("certificate").at("ok"), true);
    const double bound = solved.at("certificate").at("forward_error").get<double>();
    EXPECT_LE(forward_error(a), bound);
    EXPECT_LE(bound, 1e-10);
    const Json plain = expect_json(solve(out));
    EXPECT_LE(forward_error(a), 1e-13);
    EXPECT_TRUE(plain.at("certificate").at("backward_error").is_null());
    EXPECT_EQ(plain.at("certificate").at("scaled_condition"), object.at("scaled_condition"));
    expect_pieces(expect_done(solve(out)), {"backward error    unknown", "--matrix"});
    const Json determinant = expect_json({"logdet", path(out)});
    EXPECT_EQ(determinant.at("log_determinant"), object.at("factor").at("log_determinant"));
    EXPECT_EQ(determinant.at("log_determinant_error"), object.at("log_determinant_error"));
    const Json status = expect_json({"factor", path(out), "--status"});
    EXPECT_EQ(status.at("done"), status.at("tiles"));
    EXPECT_EQ(status.at("work_share"), 1.0);
    EXPECT_EQ(status.at("whole"), true);
  }
  expect_pieces(expect_done({"factor", path("fA.npy"), "--status"}),
                {"Cholesky of order 120", "tiles", "100.0 %"});
}

TEST_F(CliStoredCholesky, SolvesAtOnceByFilesThatAreGone) {
  const Words stored{"--storage", path("s"), "--host-memory", "60KiB", "--tile", "16"};
  const Json memory = expect_json(solve("A.npy", {"--tile", "16"}));
  const std::vector<double> expected = read_dense(path("x.npy")).values;
  const Json object = expect_json(solve("A.npy", stored));
  EXPECT_TRUE(read_dense(path("x.npy")).values == expected);
  EXPECT_FALSE(memory.contains("storage_io"));
  EXPECT_TRUE(object.contains("storage_io"));
  EXPECT_EQ(object.at("certificate").at("forward_error"),
            memory.at("certificate").at("forward_error"));
  EXPECT_TRUE(std::filesystem::is_empty(path("s")));
  expect_refused(solve("A.npy", {"--host-memory", "60KiB", "--tile", "16"}), 3, {"--storage DIR"});
  DenseMatrix<double> indefinite = a;
  indefinite.values[0] = -1;
  write_npy(path("I.npy"), std::as_const(indefinite).view());
  expect_refused(solve("I.npy", stored), 1, {"not positive definite", "strata factor"});
  expect_refused(solve("A.npy", stored + Words{"--method", "lu"}), 1, {"strata factor"});
}

TEST_F(CliStoredCholesky, ElementsThatMirrorEachOtherMayDiffer) {
  (void)expect_json(factor("D.npy", "d"));
  const Json solved = expect_json(solve("d", {"--matrix", path("D.npy")}));
  EXPECT_LE(forward_error(differs), solved.at("certificate").at("forward_error").get<double>());
  expect_refused(factor("Drows.npy", "r"), 3, {"--triangle upper"});
  expect_refused(factor("Drows.npy", "r", {"--triangle", "lower"}), 3, {"the upper triangle"});
  expect_refused(factor("D.npy", "r", {"--triangle", "upper"}), 3, {"the lower triangle"});
  (void)expect_json(factor("Drows.npy", "r", {"--triangle", "upper"}));
  expect_refused(solve("d", {"--matrix", path("Drows.npy"), "--triangle", "upper"}), 1,
                 {"not the one that was factored"});
}

TEST_F(CliStoredCholesky, TakesHermitianMatricesByColumns) {
  DenseMatrix<std::complex<double>> z{{}, kDefiniteOrder, kDefiniteOrder};
  for (std::int64_t j = 0; j < kDefiniteOrder; ++j)
    for (std::int64_t i = 0; i < kDefiniteOrder; ++i)
      z.values.emplace_back(a.values[at(i + j * kDefiniteOrder)],
                            i == j ? 0.0 : (i < j ? -0.25 : 0.25));
  write_npy(path("z.npy"), std::as_const(z).view());
  write_rows(scratch, "zc.npy", z);
  const DenseMatrix<std::complex<double>> rhs{
      {z.values.begin(), z.values.begin() + kDefiniteOrder}, kDefiniteOrder, 1};
  write_npy(path("b.npy"), std::as_const(rhs).view());
  expect_refused(factor("zc.npy", "f"), 3, {"by columns"});
  const Json object = expect_json(factor("z.npy", "f"));
  EXPECT_EQ(object.at("precision"), "complex128");
  const Json determinant = expect_json({"logdet", path("z.npy"), "--devices", "host:1", "--storage",
                                        path("s"), "--host-memory", "100KiB"});
  EXPECT_TRUE(determinant.contains("storage_io"));
  EXPECT_NEAR(determinant.at("log_determinant").get<double>(),
              object.at("factor").at("log_determinant").get<double>(),
              determinant.at("log_determinant_error").get<double>());
  expect_refused({"logdet", path("A.npy"), "--storage", path("s")}, 2, {"complex numbers"});
  const Json solved = expect_json(solve("f", {"--matrix", path("z.npy")}));
  EXPECT_LE(solved.at("certificate").at("forward_error").get<double>(), 1e-10);
  const auto x = NpyFile(path("x.npy")).to_dense_complex();
  for (std::int64_t i = 0; i < kDefiniteOrder; ++i)  // A's first column is A·e₁
    EXPECT_LE(std::abs(x.values[at(i)] - (i == 0 ? 1.0 : 0.0)), 1e-13) << i;
}

TEST_F(CliStoredCholesky, GoesOnWithWhatIsThereAndSaysWhatIsNot) {
  const Words command = factor("A.npy", "f", {"--tile", "16"});
  (void)expect_done(command);
  expect_refused(command, 3, {path("f"), "holds blocks already"});
  const std::string journal = path("f") + "/journal";
  std::filesystem::resize_file(journal, std::filesystem::file_size(journal) - 5);
  std::filesystem::remove(path("f") + "/factor");
  expect_refused(solve("f"), 3, {"the part of a factor", "--resume", "--status"});
  expect_pieces(expect_done({"factor", path("f"), "--status"}), {"of 36", "--resume"});
  const Json object = expect_json(command + Words{"--resume"});
  EXPECT_GT(object.at("storage").at("found").get<int>(), 0);
  EXPECT_LT(object.at("storage").at("found").get<int>(), 36);
  (void)expect_json(solve("f", {"--matrix", path("A.npy")}));
  expect_refused(solve("f", {"--matrix", path("D.npy"), "--triangle", "upper"}), 3,
                 {"the lower triangle"});
  expect_refused(solve("f", {"--method", "lu"}), 2, {"by Cholesky"});
  expect_refused(solve("f", {"--storage", path("s")}), 2, {"--storage", "is a factor"});
  expect_refused({"variances", path("f"), "-o", path("v.npy")}, 2, {"a factor of a dense matrix"});
  // A sparse factor in the same directory is one, whatever rests beside it.
  (void)expect_done({"factor", path("A.npy"), "-o", path("f"), "--method", "cholesky"});
  (void)expect_done({"variances", path("f"), "-o", path("v.npy")});
}

/// A file that is written to while it is factored, and is as before at the end: a factor that is
/// written is one of the matrix, whatever tiles were read meanwhile.
TEST_F(CliStoredCholesky, AMixtureOfTwoMatricesIsNoFactor) {
  const auto bytes_of = [&](const std::string& name) {
    std::ifstream file(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  DenseMatrix<double> other = a;
  for (double& value : other.values) value *= 2;
  write_npy(path("O.npy"), std::as_const(other).view());
  const std::string of_a = bytes_of("A.npy");
  const std::string of_other = bytes_of("O.npy");
  const auto overwrite = [&](const std::string& bytes) {
    std::fstream file(path("A.npy"), std::ios::binary | std::ios::in | std::ios::out);
    file.write(bytes.data(), std::ssize(bytes));
  };
  for (int run = 0; run < (kSanitized ? 3 : 12); ++run) {
    const std::string out = "m" + std::to_string(run);
    std::atomic<bool> over = false;
    std::thread writer([&] {
      while (!over) {
        overwrite(of_other);
        overwrite(of_a);
      }
    });
    const Outcome outcome = run_program(factor("A.npy", out, {"--tile", "8"}));
    over = true;
    writer.join();
    overwrite(of_a);
    if (outcome.status != 0) {
      EXPECT_FALSE(std::filesystem::exists(path(out) + "/factor"));
      continue;
    }
    const Outcome solved = run_program(solve(out, {"--matrix", path("A.npy")}));
    if (solved.status == 0) {
      EXPECT_LE(forward_error(a), 1e-10);
    }
  }
}

TEST_F(CliStoredCholesky, WritesNoFactorThatIsSingularOrNone) {
  DenseMatrix<double> bad = a;
  bad.values[at(5 * (kDefiniteOrder + 1))] = -1;
  write_npy(path("B.npy"), std::as_const(bad).view());
  expect_refused(factor("B.npy", "f"), 1, {"pivot 5"});
  EXPECT_FALSE(std::filesystem::exists(path("f") + "/factor"));
  expect_refused(factor("A.raw", "g"), 2, {".raw", "LU"});
  expect_refused(factor("A.npy", "g", {"--shift", "1"}), 2, {"--shift"});
}

}  // namespace
}  // namespace strata::test
