// strata solve of dense matrices that are not symmetric positive definite: by LU, with what it says
// of it, and what it refuses. Oracle: the right-hand side of a known x; elimination in 113 bits.

#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>
#include <limits>

#include <fmt/core.h>

#include "base/index.hpp"
#include "tests/cli/program.hpp"
#include "tests/support/wide_elimination.hpp"

namespace strata::test {
namespace {

constexpr std::int64_t kN = 120;

class CliGeneralSolve : public testing::Test {
 protected:
  CliGeneralSolve() : a(random_columns(kN, kN, 5)), b(random_columns(kN, 1, 6)) { write(); }

  void write() const {
    write_npy(path("A.npy"), std::as_const(a).view());
    write_npy(path("b.npy"), std::as_const(b).view());
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words command(const std::string& matrix = "A.npy",
                              const std::string& rhs = "b.npy") const {
    return Words{"solve", path(matrix), path(rhs), "-o", path("x.npy"), "--devices", "host:1"};
  }
  void expect_solution(double forward_error) const {
    const DenseMatrix<double> x = read_dense(path("x.npy"));
    EXPECT_LE(wide_errors(a.values, b.values, x.values).forward, forward_error);
    EXPECT_LE(forward_error, 1e-6);
  }
  /// Refused, and no x is written.
  void refuse(const Words& words, int status, const Words& pieces) const {
    expect_refused(words, status, pieces);
    EXPECT_FALSE(std::filesystem::exists(path("x.npy")));
  }
  /// Symmetric, with eigenvalues of both signs and a positive diagonal.
  void make_indefinite() {
    for (std::int64_t j = 0; j < kN; ++j) {
      for (std::int64_t i = 0; i < j; ++i) a.view()(i, j) = a.view()(j, i);
      a.view()(j, j) = std::abs(a.view()(j, j)) + 0.01;
    }
    write();
  }

  Scratch scratch;
  DenseMatrix<double> a;
  DenseMatrix<double> b;
};

TEST_F(CliGeneralSolve, TakesLuWhereTheMatrixIsNotSymmetricAndSaysSo) {
  const Json object = expect_json(command());
  EXPECT_EQ(object.at("method"), "lu");
  expect_pieces(object.at("why").get<std::string>(), {"A.npy", "not symmetric", "(1, 0)"});
  expect_run_fields(object, kN);
  EXPECT_EQ(object.at("certificate").at("ok"), true);
  EXPECT_LT(object.at("hpl_residual").get<double>(), 16);
  EXPECT_GE(object.at("factor").at("growth").get<double>(), 1);
  expect_solution(object.at("certificate").at("forward_error").get<double>());
  expect_pieces(expect_done(command()), {"method            LU: ", "not symmetric", "growth",
                                         "scaled by rows and columns", "refinement steps"});
}

TEST_F(CliGeneralSolve, TakesCholeskyWhereItCanAndSaysSo) {
  a = positive_definite(kN, 3);
  write();
  EXPECT_EQ(expect_json(command()).at("method"), "cholesky");
  expect_pieces(expect_done(command()), {"method            Cholesky"});
  const Json by_lu = expect_json(command() + Words{"--method", "lu"});
  EXPECT_EQ(by_lu.at("method"), "lu");
  EXPECT_EQ(by_lu.at("why"), "as asked for");
  expect_solution(by_lu.at("certificate").at("forward_error").get<double>());
}

TEST_F(CliGeneralSolve, TakesLuWhereASymmetricMatrixIsIndefinite) {
  make_indefinite();
  for (const bool zero_diagonal : {false, true}) {
    if (zero_diagonal) {
      a.view()(40, 40) = 0;
      write();
    }
    const Json object = expect_json(command());
    EXPECT_EQ(object.at("method"), "lu");
    expect_pieces(object.at("why").get<std::string>(),
                  {"not positive definite", zero_diagonal ? "element (40, 40) is 0" : "pivot "});
    expect_solution(object.at("certificate").at("forward_error").get<double>());
    std::filesystem::remove(path("x.npy"));
    refuse(command() + Words{"--method", "cholesky"}, 1, {"not positive definite"});
  }
}

TEST_F(CliGeneralSolve, TakesOneTriangleOfAnIndefiniteMatrix) {
  make_indefinite();
  DenseMatrix<double> lower = a;
  DenseMatrix<double> upper = a;
  for (std::int64_t j = 0; j < kN; ++j)
    for (std::int64_t i = 0; i < j; ++i) lower.view()(i, j) = upper.view()(j, i) = 7;
  write_npy(path("L.npy"), std::as_const(lower).view());
  write_npy(path("U.npy"), std::as_const(upper).view());
  for (const auto& [file, triangle] : {std::pair("L.npy", "lower"), {"U.npy", "upper"}}) {
    for (const char* method : {"auto", "lu"}) {
      const Json object =
          expect_json(command(file) + Words{"--triangle", triangle, "--method", method});
      EXPECT_EQ(object.at("method"), "lu");
      expect_solution(object.at("certificate").at("forward_error").get<double>());
    }
  }
}

TEST_F(CliGeneralSolve, ReadsRowsAndColumnsAndDecimals) {
  // The same matrix row by row, which NumPy writes by itself; and as decimals.
  std::string row_major = "{'descr': '<f8', 'fortran_order': False, 'shape': (120, 120), }";
  row_major.resize(117, ' ');
  row_major += '\n';
  std::string npy("\x93NUMPY\x01\x00\x76\x00", 10);
  npy += row_major;
  for (std::int64_t i = 0; i < kN; ++i)
    for (std::int64_t j = 0; j < kN; ++j)
      npy.append(reinterpret_cast<const char*>(&a.view()(i, j)), sizeof(double));
  (void)scratch.put("rows.npy", npy);
  std::string mtx = "%%MatrixMarket matrix array real general\n120 120\n";
  for (const double value : a.values) mtx += fmt::format("{:.17g}\n", value);
  (void)scratch.put("A.mtx", mtx);
  for (const char* file : {"rows.npy", "A.mtx"}) {
    const Json object = expect_json(command(file));
    EXPECT_EQ(object.at("method"), "lu");
    expect_solution(object.at("certificate").at("forward_error").get<double>());
  }
}

TEST_F(CliGeneralSolve, InFp32IsCertifiedToo) {
  const Json object = expect_json(command() + Words{"--precision", "fp32"});
  EXPECT_EQ(object.at("certificate").at("precision"), "fp32");
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  EXPECT_LE(wide_errors(a.values, b.values, x.values).forward,
            object.at("certificate").at("forward_error").get<double>());
}

TEST_F(CliGeneralSolve, MixedIsRefinedToFp64AndSaysHow) {
  const Words mixed{"--precision", "mixed"};
  const Json object = expect_json(command() + mixed);
  EXPECT_EQ(object.at("method"), "lu");
  EXPECT_EQ(object.at("mixed").at("factor_precision"), "fp32");
  EXPECT_EQ(object.at("mixed").at("gmres_iterations"), 0);
  EXPECT_TRUE(object.at("mixed").at("fallback").is_null());
  const Json& certificate = object.at("certificate");
  EXPECT_EQ(certificate.at("precision"), "fp64");
  EXPECT_LE(certificate.at("backward_error").get<double>(), 1e-15);
  EXPECT_LE(certificate.at("componentwise_backward_error").get<double>(), 3e-15);
  expect_solution(certificate.at("forward_error").get<double>());
  // Half of what the factors of fp64 take.
  const Json plain = expect_json(command() + Words{"--method", "lu"});
  EXPECT_LT(object.at("host_bytes").get<double>(), 0.6 * plain.at("host_bytes").get<double>());
  EXPECT_FALSE(plain.contains("mixed"));
  expect_pieces(expect_done(command() + mixed + Words{"--method", "lu"}),
                {"LU: as asked for", "factors           in fp32\n", "in fp64 with"});
  a = positive_definite(kN, 3);
  write();
  EXPECT_EQ(expect_json(command() + mixed).at("why"), "--precision mixed is of LU");
}

TEST_F(CliGeneralSolve, MixedSaysWhereGmresAndWhereFp64Did) {
  // Rows of another matrix and, but for 1e-9 and 1e-15, a sum of them.
  const DenseMatrix<double> other = random_columns(kN, kN, 15);
  for (const double apart : {1e-9, 1e-15}) {
    for (std::int64_t j = 0; j < kN; ++j)
      a.view()(50, j) = a.view()(10, j) + a.view()(70, j) / 2 + apart * other.view()(50, j);
    write();
    const Outcome outcome = run_program(command() + Words{"--precision", "mixed", "--json"});
    const Json object = Json::parse(outcome.out);
    const double forward_error = object.at("certificate").at("forward_error").is_null()
                                     ? std::numeric_limits<double>::infinity()
                                     : object.at("certificate").at("forward_error").get<double>();
    const DenseMatrix<double> x = read_dense(path("x.npy"));
    EXPECT_LE(wide_errors(a.values, b.values, x.values).forward, forward_error);
    const std::string text = run_program(command() + Words{"--precision", "mixed"}).out;
    if (apart == 1e-9) {
      EXPECT_EQ(outcome.status, 0);
      EXPECT_EQ(object.at("mixed").at("factor_precision"), "fp32");
      EXPECT_GT(object.at("mixed").at("gmres_iterations").get<int>(), 0);
      expect_pieces(text, {"factors           in fp32, which", "iterations of GMRES refine"});
    } else {
      EXPECT_EQ(object.at("mixed").at("factor_precision"), "fp64");
      EXPECT_TRUE(object.at("mixed").at("fallback").is_string());
      expect_pieces(text, {"factors           in fp64, after those in fp32: "});
      EXPECT_EQ(outcome.status, run_program(command() + Words{"--method", "lu"}).status);
    }
  }
}

TEST_F(CliGeneralSolve, MixedIsOfLuAndOfDenseMatrices) {
  const Words mixed{"--precision", "mixed"};
  refuse(command() + mixed + Words{"--method", "cholesky"}, 2, {"mixed", "--method lu"});
  refuse(command() + mixed + Words{"--method", "gmres"}, 2, {"mixed"});
  (void)scratch.put("S.mtx",
                    "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n");
  refuse(command("S.mtx") + mixed, 2, {"mixed", "S.mtx", "--precision fp32"});
  // Singular is singular.
  for (std::int64_t i = 0; i < kN; ++i) a.view()(i, 33) = 0;
  write();
  refuse(command() + mixed, 1, {"singular", "column 33"});
  // Files of float32 are solved in fp64.
  const DenseMatrix<double> of = random_columns(kN, kN, 5);
  DenseMatrix<float> narrow{{of.values.begin(), of.values.end()}, kN, kN};
  write_npy(path("A4.npy"), std::as_const(narrow).view());
  a.values.assign(narrow.values.begin(), narrow.values.end());
  const Json object = expect_json(command("A4.npy") + mixed);
  EXPECT_EQ(object.at("mixed").at("factor_precision"), "fp32");
  expect_solution(object.at("certificate").at("forward_error").get<double>());
}

TEST_F(CliGeneralSolve, AFactorThatWasSavedSolvesLater) {
  const Words factor{"factor", path("A.npy"), "-o", path("F"), "--devices", "host:1"};
  for (const char* precision : {"fp64", "fp32"}) {
    const Json made = expect_json(factor + Words{"--precision", precision});
    EXPECT_EQ(made.at("method"), "lu");
    expect_pieces(made.at("why").get<std::string>(), {"not symmetric"});
    EXPECT_EQ(made.at("precision"), precision);
    const Words matrix{"--matrix", path("A.npy")};
    const Json object = expect_json(command("F") + matrix);
    EXPECT_EQ(object.at("method"), "lu");
    EXPECT_EQ(object.at("precision"), precision);
    EXPECT_EQ(object.at("certificate").at("precision"), "fp64");
    EXPECT_EQ(object.at("certificate").at("ok"), true);
    EXPECT_LE(object.at("certificate").at("backward_error").get<double>(), 1e-15);
    expect_solution(object.at("certificate").at("forward_error").get<double>());
    EXPECT_NEAR(object.at("certificate").at("scaled_condition").get<double>(),
                made.at("scaled_condition").get<double>(),
                1e-3 * made.at("scaled_condition").get<double>());
    const WideDeterminant det = wide_determinant(a.values, kN);
    EXPECT_NEAR(made.at("factor").at("determinant").at("log").get<double>(), det.log,
                made.at("log_determinant_error").get<double>());
    expect_pieces(expect_done(command("F") + matrix),
                  {"as it was saved", "backward error", precision});
    // Without A nothing is known, and that is said.
    const Json alone = expect_json(command("F"));
    EXPECT_TRUE(alone.at("certificate").at("backward_error").is_null());
    EXPECT_FALSE(alone.at("certificate").contains("ok"));
    const DenseMatrix<double> x = read_dense(path("x.npy"));
    EXPECT_LE(wide_errors(a.values, b.values, x.values).forward,
              std::string(precision) == "fp32" ? 0.1 : 1e-10);
    EXPECT_EQ(alone.at("certificate").at("scaled_condition"), made.at("scaled_condition"));
    EXPECT_EQ(alone.at("log_determinant_error"), made.at("log_determinant_error"));
    expect_pieces(expect_done(command("F")),
                  {"unknown: it takes A, which --matrix names", "scaled by rows and columns"});
  }
  expect_pieces(
      expect_done(factor + Words{"--method", "lu"}),
      {"LU: as asked for", "condition", "growth", "log determinant", "factor written to"});
}

/// Wilkinson's matrix, whose condition says nothing of what growth does: with L and U alone x is
/// wrong, and that is said; with A it is refined.
TEST_F(CliGeneralSolve, AFactorWithGrowthIsNotTrustedWithoutTheMatrix) {
  for (const char* precision : {"fp64", "fp32"}) {
    const bool single = std::string(precision) == "fp32";
    for (const std::int64_t n : {12, 35, 45, 60}) {
      DenseMatrix<double> w{std::vector<double>(at(n * n)), n, n};
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < n; ++i)
          w.view()(i, j) = i == j || j + 1 == n ? 1 : i > j ? -1 : 0;
      const DenseMatrix<double> right = random_columns(n, 1, 9);
      write_npy(path("W.npy"), std::as_const(w).view());
      write_npy(path("w.npy"), std::as_const(right).view());
      (void)run_program({"factor", path("W.npy"), "-o", path("F"), "--devices", "host:1",
                         "--precision", precision, "--method", "lu"});
      const Outcome alone = run_program(command("F", "w.npy"));
      const double error =
          wide_errors(w.values, right.values, read_dense(path("x.npy")).values).forward;
      if (alone.status == 0) {
        EXPECT_LE(error, single ? 0.1 : 1e-6) << precision << ' ' << n;
      } else {
        EXPECT_EQ(alone.status, 1);
        expect_pieces(alone.err, {"name A by --matrix"});
      }
      if (n != 35) {  // where x is right to about what is wanted
        EXPECT_EQ(alone.status, n == 12 ? 0 : 1) << precision << ' ' << n << ": " << alone.err;
      }
      if (single) continue;
      const Json refined = expect_json(command("F", "w.npy") + Words{"--matrix", path("W.npy")});
      EXPECT_LE(wide_errors(w.values, right.values, read_dense(path("x.npy")).values).forward,
                refined.at("certificate").at("forward_error").get<double>());
    }
  }
}

TEST_F(CliGeneralSolve, AFactorOfASingularMatrixSaysSoLater) {
  for (std::int64_t j = 0; j < kN; ++j)
    a.view()(50, j) = (a.view()(10, j) + 3 * a.view()(70, j)) / 7;
  write();
  const Words fp64{"numerically singular", "1.1e+15"};
  // Without A nothing refines a factor in fp32, whose own line is what it is held to.
  const Words fp32{"a factor in fp32 cannot tell the matrix from a singular one", "2.1e+06"};
  for (const char* precision : {"fp64", "fp32"}) {
    expect_complaint(run_program({"factor", path("A.npy"), "-o", path("F"), "--devices", "host:1",
                                  "--precision", precision}),
                     1, fp64);
    expect_complaint(run_program(command("F") + Words{"--matrix", path("A.npy")}), 1, fp64);
    expect_complaint(run_program(command("F")), 1, precision == std::string("fp64") ? fp64 : fp32);
  }
}

TEST_F(CliGeneralSolve, FactorTakesLuWhereCholeskyFailsOrNumbersAreComplex) {
  const Words factor{"factor", path("A.npy"), "-o", path("F"), "--devices", "host:1"};
  make_indefinite();
  expect_pieces(expect_json(factor).at("why").get<std::string>(),
                {"A.npy", "not positive definite: pivot "});
  const Json object = expect_json(command("F") + Words{"--matrix", path("A.npy")});
  expect_solution(object.at("certificate").at("forward_error").get<double>());
  // A factor by Cholesky stays one of sparse matrices.
  expect_refused(factor + Words{"--method", "cholesky"}, 1, {"not positive definite", "--shift"});
  a = positive_definite(kN, 3);
  write();
  EXPECT_FALSE(expect_json(factor).contains("method"));
  const Json again = expect_json(command("F") + Words{"--matrix", path("A.npy")});
  EXPECT_EQ(again.at("certificate").at("of"), "A");
  expect_solution(again.at("certificate").at("forward_error").get<double>());
  // Complex numbers, row by row as NumPy writes them.
  using Complex = std::complex<double>;
  DenseMatrix<Complex> z{{}, kN, kN};
  DenseMatrix<Complex> rhs{{}, kN, 1};
  const DenseMatrix<double> parts = random_columns(2 * kN, kN + 1, 9);
  for (std::int64_t j = 0; j < kN; ++j)
    for (std::int64_t i = 0; i < kN; ++i)
      z.values.emplace_back(parts.view()(i, j), parts.view()(kN + i, j));
  for (std::int64_t i = 0; i < kN; ++i)
    rhs.values.emplace_back(parts.view()(i, kN), parts.view()(kN + i, kN));
  write_npy(path("Z.npy"), std::as_const(z).view());
  write_npy(path("c.npy"), std::as_const(rhs).view());
  write_rows(scratch, "Z.npy", z);
  for (const char* precision : {"fp64", "fp32"}) {
    (void)expect_done(Words{"factor", path("Z.npy"), "-o", path("F"), "--precision", precision});
    const Json solved = expect_json(command("F", "c.npy") + Words{"--matrix", path("Z.npy")});
    EXPECT_EQ(solved.at("certificate").at("ok"), true);
    EXPECT_LE(solved.at("certificate").at("backward_error").get<double>(), 1e-15);
    const DenseMatrix<Complex> x = NpyFile(path("x.npy")).to_dense_complex();
    const Json plain = expect_json(command("Z.npy", "c.npy"));
    const DenseMatrix<Complex> expected = NpyFile(path("x.npy")).to_dense_complex();
    double most = 0;
    double off = 0;
    for (std::int64_t i = 0; i < kN; ++i) {
      most = std::max(most, std::abs(expected.values[at(i)]));
      off = std::max(off, std::abs(expected.values[at(i)] - x.values[at(i)]));
    }
    EXPECT_LE(off, 1e-10 * most);
  }
  expect_refused(command("F", "c.npy") + Words{"--matrix", path("A.npy")}, 2,
                 {"of real numbers", "of complex ones"});
}

TEST_F(CliGeneralSolve, DeterminantsOfFactorsThatWereSaved) {
  // A triangle times a permutation: the product of the diagonal.
  for (const std::string precision : {"fp64", "fp32"}) {
    DenseMatrix<double> t{std::vector<double>(36), 6, 6};
    double log = 0;
    for (std::int64_t j = 0; j < 6; ++j) {
      const double diagonal = static_cast<double>(j + 2) * (j == 3 ? -1 : 1);
      log += std::log(std::abs(diagonal));
      for (std::int64_t i = 0; i <= j; ++i)
        t.values[at(j * 6 + (i + 1) % 6)] = i == j ? diagonal : static_cast<double>(i - j);
    }
    write_npy(path("T.npy"), std::as_const(t).view());
    (void)expect_done({"factor", path("T.npy"), "-o", path("T" + precision), "--precision",
                       precision, "--devices", "host:1"});
    const Json object = expect_json({"logdet", path("T" + precision)});
    const double error = object.at("log_determinant_error").get<double>();
    EXPECT_LE(std::abs(object.at("log_determinant").get<double>() - log), error);
    EXPECT_LT(error, precision == "fp64" ? 1e-12 : 1e-3);
    // A cycle of six is odd, and one element is negative.
    EXPECT_EQ(object.at("factor").at("determinant").at("sign"), 1);
    EXPECT_FALSE(object.at("numerically_singular").get<bool>());
    const std::string text = expect_done({"logdet", path("T" + precision)});
    EXPECT_NE(text.find("log determinant   8.52516136106541"), std::string::npos) << text;
  }
}

TEST_F(CliGeneralSolve, FactorsThatDoNotFitAreRefused) {
  const Words factor{"factor", path("A.npy"), "-o", path("F"), "--devices", "host:1"};
  refuse(factor + Words{"--method", "cholesky"}, 1, {"not symmetric"});
  refuse(factor + Words{"--shift", "1"}, 2, {"--shift", "factored by LU"});
  (void)expect_done(factor);
  refuse(command("F") + Words{"--precision", "fp32"}, 2, {"--precision fp32", "is a factor"});
  refuse(command("F") + Words{"--method", "cholesky"}, 2, {"is a factor by LU"});
  refuse(command("F") + Words{"--shift", "1"}, 2, {"--shift"});
  refuse(command("F") + Words{"--triangle", "lower"}, 2, {"--triangle is of a matrix"});
  expect_refused({"logdet", path("F"), "--shift", "1"}, 2, {"--shift", "factor by LU"});
  expect_refused({"logdet", path("F"), "--triangle", "lower"}, 2, {"--triangle is of a matrix"});
  expect_refused({"variances", path("F"), "-o", path("v.npy")}, 2, {"factor of a dense matrix"});
  const DenseMatrix<double> other = random_columns(kN, kN, 99);
  write_npy(path("other.npy"), other.view());
  const Outcome wrong = run_program(command("F") + Words{"--matrix", path("other.npy")});
  EXPECT_EQ(wrong.status, 1) << wrong.out;
  std::filesystem::remove(path("x.npy"));
  const DenseMatrix<double> short_rhs = random_columns(kN - 1, 1, 1);
  write_npy(path("short.npy"), short_rhs.view());
  refuse(command("F", "short.npy"), 2, {"119 rows", "order 120"});
  refuse(command("F") + Words{"--matrix", path("short.npy")}, 2, {"119 by 1", "order 120"});
  std::string damaged = slurp(path("F/factor"));
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  (void)scratch.put("F/factor", damaged);
  refuse(command("F"), 3, {"damaged"});
  for (std::int64_t i = 0; i < kN; ++i) a.view()(i, 33) = 0;
  write();
  expect_refused({"factor", path("A.npy"), "-o", path("S"), "--devices", "host:1"}, 1,
                 {"singular", "column 33"});
  EXPECT_FALSE(std::filesystem::exists(path("S")));
}

TEST_F(CliGeneralSolve, TakesComplexMatrices) {
  // The oracle solves [B −C; C B]·[u; v] = [Re b; Im b] for A = B + C·i.
  using Complex = std::complex<double>;
  const std::int64_t n = kN / 2;
  for (const bool symmetric : {false, true}) {
    DenseMatrix<Complex> z{{}, n, n};
    DenseMatrix<Complex> rhs{{}, n, 1};
    const DenseMatrix<double> parts = random_columns(2 * n, n, 9);
    for (std::int64_t j = 0; j < n; ++j) {
      rhs.values.emplace_back(b.values[at(j)], b.values[at(n + j)]);
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t row = symmetric ? std::min(i, j) : i;
        const std::int64_t column = symmetric ? std::max(i, j) : j;
        z.values.emplace_back(parts.view()(row, column), parts.view()(n + row, column));
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i) {
        const Complex value = z.view()(i, j);
        a.view()(i, j) = a.view()(n + i, n + j) = value.real();
        a.view()(n + i, j) = value.imag();
        a.view()(i, n + j) = -value.imag();
      }
    }
    write_npy(path("Z.npy"), std::as_const(z).view());
    write_npy(path("c.npy"), std::as_const(rhs).view());
    for (const bool rows : {false, true}) {
      if (rows) write_rows(scratch, "Z.npy", z);
      const Json object = expect_json(command("Z.npy", "c.npy"));
      EXPECT_EQ(object.at("method"), "lu");
      expect_pieces(object.at("why").get<std::string>(), {"not Hermitian"});
      EXPECT_EQ(object.at("certificate").at("ok"), true);
      const DenseMatrix<Complex> x = NpyFile(path("x.npy")).to_dense_complex();
      std::vector<double> both;
      for (const Complex& value : x.values) both.push_back(value.real());
      for (const Complex& value : x.values) both.push_back(value.imag());
      // A part is off by at most the magnitude of the error, and the largest part is at least the
      // largest magnitude over the root of two.
      const double bound = object.at("certificate").at("forward_error").get<double>();
      EXPECT_LE(wide_errors(a.values, b.values, both).forward, std::sqrt(2.0) * bound);
      EXPECT_LE(bound, 1e-6);
    }
    expect_pieces(expect_done(command("Z.npy", "c.npy")), {"LU: ", "a determinant of phase "});
  }
  // det = 48 − 6i
  (void)scratch.put("S.mtx",
                    "%%MatrixMarket matrix coordinate complex symmetric\n"
                    "2 2 3\n1 1 2 0\n2 1 1 3\n2 2 20 0\n");
  (void)scratch.put("two.mtx", "%%MatrixMarket matrix array real general\n2 1\n1\n1\n");
  const Json det = expect_json(command("S.mtx", "two.mtx")).at("factor").at("determinant");
  EXPECT_NEAR(det.at("log").get<double>(), std::log(std::hypot(48, 6)), 1e-14);
  EXPECT_NEAR(det.at("value")[std::size_t{0}].get<double>(), 48, 1e-13);
  EXPECT_NEAR(det.at("value")[std::size_t{1}].get<double>(), -6, 1e-13);
  EXPECT_NEAR(det.at("phase")[std::size_t{1}].get<double>(), -6 / std::hypot(48, 6), 1e-14);
}

TEST_F(CliGeneralSolve, SingularMatricesAreNamedWithTheColumn) {
  for (std::int64_t i = 0; i < kN; ++i) a.view()(i, 33) = 0;
  write();
  refuse(command(), 1, {"singular", "column 33"});
  const Outcome outcome = run_program(command() + Words{"--json"});
  expect_complaint(outcome, 1, {"column 33"});
  const Json object = Json::parse(outcome.out);
  EXPECT_EQ(object.at("factor").at("ok"), false);
  EXPECT_EQ(object.at("factor").at("zero_pivot"), 33);
  EXPECT_EQ(object.at("factor").at("determinant").at("sign"), 0);
}

TEST_F(CliGeneralSolve, NumericallySingularMatricesHaveStatusOne) {
  for (std::int64_t j = 0; j < kN; ++j)
    a.view()(50, j) = (a.view()(10, j) + 3 * a.view()(70, j)) / 7;
  write();
  const Outcome outcome = run_program(command());
  expect_complaint(outcome, 1, {"numerically singular", "by rows and columns"});
  EXPECT_EQ(run_program(command() + Words{"--json"}).status, 1);
}

TEST_F(CliGeneralSolve, NumbersThatAreNotFiniteAreNamed) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    DenseMatrix<double> wrong = a;
    wrong.view()(17, 4) = bad;
    write_npy(path("wrong.npy"), std::as_const(wrong).view());
    refuse(command("wrong.npy"), 3, {"wrong.npy", "17", "4", std::isnan(bad) ? "nan" : "inf"});
    DenseMatrix<double> of_b = b;
    of_b.values[11] = bad;
    write_npy(path("of_b.npy"), std::as_const(of_b).view());
    refuse(command("A.npy", "of_b.npy"), 3, {"of_b.npy", "11"});
  }
}

TEST_F(CliGeneralSolve, ShapesThatDoNotFit) {
  const DenseMatrix<double> wide = random_columns(kN, kN + 1, 1);
  write_npy(path("wide.npy"), wide.view());
  refuse(command("wide.npy"), 2, {"120 by 121", "not square"});
  const DenseMatrix<double> short_rhs = random_columns(kN - 1, 1, 1);
  write_npy(path("short.npy"), short_rhs.view());
  refuse(command("A.npy", "short.npy"), 2, {"short.npy", "119", "120"});
}

TEST_F(CliGeneralSolve, OverflowIsNoSuccess) {
  for (double& value : a.values) value *= 1e-200;
  for (double& value : b.values) value *= 1e200;
  write();
  const Outcome outcome = run_program(command());
  expect_complaint(outcome, 1, {"leave the range of fp64"});
  // In elimination: rows that differ by more than the range.
  a = {{1, -1, 1.7e308, 1.7e308}, 2, 2};
  b = random_columns(2, 1, 1);
  write();
  const Outcome grown = run_program(command());
  EXPECT_TRUE(grown.status == 0 || grown.status == 1);
  if (grown.status == 0) expect_solution(1e-6);
}

TEST_F(CliGeneralSolve, AMatrixOfOneTriangleIsAskedAbout) {
  for (std::int64_t j = 0; j < kN; ++j) {
    for (std::int64_t i = 0; i < j; ++i) a.view()(i, j) = 0;
    a.view()(j, j) += 100;
  }
  write();
  refuse(command(), 1, {"not symmetric", "--triangle lower", "--method lu"});
  const Json object = expect_json(command() + Words{"--method", "lu"});
  expect_solution(object.at("certificate").at("forward_error").get<double>());
}

TEST_F(CliGeneralSolve, BitsDoNotDependOnBudgets) {
  const Words panels{"--tile", "16"};
  const Words reproducible{"--reproducible"};
  for (const Words& words : {panels, reproducible}) {
    std::vector<double> first;
    for (const char* memory : {"70KiB", "100KiB", "1MiB"}) {
      for (const char* devices : {"host:1", "host:2"}) {
        (void)expect_done(Words{"solve", path("A.npy"), path("b.npy"), "-o", path("x.npy"),
                                "--devices", devices, "--device-memory", memory} +
                          words);
        const DenseMatrix<double> x = read_dense(path("x.npy"));
        if (first.empty()) first = x.values;
        EXPECT_EQ(x.values, first) << memory << ' ' << devices;
      }
    }
  }
}

TEST_F(CliGeneralSolve, APlanIsWhatTheRunThenReports) {
  for (const char* memory : {"70KiB", "100KiB", "1MiB"}) {
    for (const char* devices : {"host:1", "host:2"}) {
      const Words words{"--tile", "16", "--devices", devices, "--device-memory", memory};
      const Json plan = expect_json(Words{"plan", "lu", "--n", "120"} + words);
      const Json run =
          expect_json(Words{"solve", path("A.npy"), path("b.npy"), "-o", path("x.npy")} + words);
      for (const char* field : {"planned_traffic", "tile", "policy", "tasks", "flops"})
        EXPECT_EQ(plan.at(field), run.at(field)) << field << ' ' << memory << ' ' << devices;
      for (const char* bytes :
           {"host_to_device_bytes", "device_to_host_bytes", "device_to_device_bytes"})
        EXPECT_EQ(plan.at("planned_traffic").at(bytes), run.at("traffic").at(bytes))
            << bytes << ' ' << memory << ' ' << devices;
    }
  }
  expect_pieces(expect_done({"plan", "lu", "--n", "100000", "--devices", "emulated:2",
                             "--device-memory", "16GiB"}),
                {"lu of order 100000", "panel ", "floor", "peak memory", "predicted"});
  expect_refused({"plan", "lu", "--n", "100", "--generated"}, 2, {"--generated"});
}

TEST_F(CliGeneralSolve, WhatCannotFitIsRefusedWithWhatWould) {
  refuse(command() + Words{"--device-memory", "2KiB"}, 3, {"too small for order 120", "smallest"});
  refuse(command() + Words{"--host-memory", "10KiB"}, 3, {"host memory", "order 120"});
  refuse(command() + Words{"--path", "in-core"}, 2, {"LU has no in-core path"});
  (void)scratch.put("S.mtx",
                    "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n");
  refuse(command("S.mtx") + Words{"--method", "lu"}, 2, {"--method lu is for dense matrices"});
  refuse(command() + Words{"--method", "qr"}, 2, {"qr"});
}

}  // namespace
}  // namespace strata::test
