// strata solve and the precision of its files: float32 stays float32, and no digits are dropped
// unasked.

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "tests/cli/program.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/symmetric_kinds.hpp"
#include "tests/support/wide_elimination.hpp"

namespace strata::test {
namespace {

constexpr double kFloatEpsilon = std::numeric_limits<float>::epsilon();
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// A .npy file as NumPy writes it, row by row.
template <class T>
std::string npy_of(const DenseMatrix<double>& a, bool vector = false) {
  std::string header = "{'descr': '<f" + std::to_string(sizeof(T)) +
                       "', 'fortran_order': False, 'shape': (" + std::to_string(a.rows) +
                       (vector ? ",), }" : ", " + std::to_string(a.cols) + "), }");
  header.resize(117, ' ');
  std::string bytes("\x93NUMPY\x01\x00\x76\x00", 10);
  bytes += header + '\n';
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.cols; ++j) {
      const auto value = static_cast<T>(a.view()(i, j));
      char raw[sizeof(T)];
      std::memcpy(raw, &value, sizeof(T));
      bytes.append(raw, sizeof(T));
    }
  }
  return bytes;
}

DenseMatrix<double> to_floats(DenseMatrix<double> a) {
  for (double& value : a.values) value = static_cast<float>(value);
  return a;
}

class CliPrecision : public testing::Test {
 protected:
  static constexpr std::int64_t n = 90;

  CliPrecision() {
    (void)scratch.put("A4.npy", npy_of<float>(a));
    (void)scratch.put("b4.npy", npy_of<float>(b));
    (void)scratch.put("A8.npy", npy_of<double>(a));
    (void)scratch.put("b8.npy", npy_of<double>(b));
    write_mtx(path("A.mtx"), std::as_const(a).view());
    write_mtx(path("b.mtx"), std::as_const(b).view());
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words command(const std::string& matrix, const std::string& rhs,
                              const std::string& out = "x.npy") const {
    return Words{"solve", path(matrix), path(rhs), "-o", path(out)} + small_device();
  }

  /// Solves, and expects the solution in floats or doubles: the file's own words and bytes, what
  /// is certified, and a backward error that this precision has and no other.
  void expect_solved_in(std::size_t bytes, const Words& words) const {
    SCOPED_TRACE(testing::PrintToString(words));
    const Json object = expect_json(words);
    expect_run_fields(object, n);
    const std::string file = slurp(path("x.npy"));
    EXPECT_NE(file.find(bytes == 4 ? "'<f4'" : "'<f8'"), std::string::npos);
    EXPECT_EQ(file.size() % 64, static_cast<std::size_t>(3 * n) * bytes % 64);
    EXPECT_EQ(file.size() / 64, (128 + static_cast<std::size_t>(3 * n) * bytes) / 64);
    const Json& certificate = object.at("certificate");
    EXPECT_EQ(certificate.at("precision"), bytes == 4 ? "fp32" : "fp64");
    const DenseMatrix<double> x = read_dense(path("x.npy"));
    ASSERT_EQ(x.rows, n);
    ASSERT_EQ(x.cols, 3);
    const double error = backward_error(a.view(), b.view(), x.view());
    const double eps = bytes == 4 ? kFloatEpsilon : kEpsilon;
    EXPECT_LE(error, 10 * static_cast<double>(n) * eps);
    if (bytes == 4) {
      EXPECT_GT(error, 1e-3 * kFloatEpsilon) << "was solved in fp64";
      // In fp32 the certificate has digits: its sums are those of fp64.
      EXPECT_NEAR(certificate.at("backward_error").get<double>(), error,
                  static_cast<double>(n + 2) * kEpsilon);
    } else {
      EXPECT_LE(certificate.at("backward_error").get<double>(),
                10 * static_cast<double>(n) * kEpsilon);
    }
  }

  Scratch scratch;
  DenseMatrix<double> a = to_floats(positive_definite(n, 17));
  DenseMatrix<double> b = to_floats(random_columns(n, 3, 18));
};

/// Elements that mirror each other and differ by rounding: of [1 1−d; 1−d+e 1]·x = (1, 1) the
/// solution is (d, d−e)/det, of the transposed matrix (d−e, d)/det.
TEST_F(CliPrecision, SolvesWhatTheFileHoldsWhereItsTrianglesDiffer) {
  const double d = 1e-10;
  const std::vector<double> full{1, (1 - d) + 5e-13, 1 - d, 1};  // by columns
  const std::vector<double> ones{1, 1};
  const std::vector<Wide> exact = wide_solution(full, ones);
  write_npy(path("b.npy"), MatrixView<const double>{ones.data(), 2, 1, 2});
  write_npy(path("F.npy"), MatrixView<const double>{full.data(), 2, 2, 2});
  std::ofstream(path("C.npy"), std::ios::binary) << npy_of<double>({full, 2, 2});
  std::ofstream file(path("A.mtx"));
  file << "%%MatrixMarket matrix coordinate real general\n2 2 4\n";
  for (int k = 0; k < 4; ++k)
    file << k % 2 + 1 << ' ' << k / 2 + 1 << ' ' << fmt::format("{}", full[k]) << '\n';
  file.close();
  for (const std::string name : {"F.npy", "C.npy", "A.mtx"}) {
    SCOPED_TRACE(name);
    const Json object = expect_json(Words{"solve", path(name), path("b.npy"), "-o", path("x.npy")});
    const DenseMatrix<double> x = read_dense(path("x.npy"));
    for (std::size_t i = 0; i < 2; ++i) {
      const auto error = static_cast<double>(static_cast<Wide>(x.values[i]) / exact[i] - 1);
      EXPECT_LE(std::abs(error), object["certificate"]["forward_error"].get<double>() + 1e-15);
      EXPECT_LE(std::abs(error), 1e-4) << "the transposed matrix is 5e-3 away";
    }
  }
}

TEST_F(CliPrecision, Float32StaysFloat32) {
  expect_solved_in(4, command("A4.npy", "b4.npy") + Words{"--tile", "32"});
  expect_solved_in(4, command("A4.npy", "b4.npy") + Words{"--path", "in-core"});
}

TEST_F(CliPrecision, AMixedPairIsSolvedInFp64) {
  for (const auto& [matrix, rhs] :
       std::vector<std::pair<std::string, std::string>>{{"A4.npy", "b8.npy"},
                                                        {"A8.npy", "b4.npy"},
                                                        {"A4.npy", "b.mtx"},
                                                        {"A.mtx", "b4.npy"},
                                                        {"A8.npy", "b8.npy"}}) {
    expect_solved_in(8, command(matrix, rhs));
  }
}

TEST_F(CliPrecision, WhatIsAskedForIsDone) {
  for (const std::string digits : {"4", "8"}) {
    const Words words = command("A" + digits + ".npy", "b" + digits + ".npy");
    expect_solved_in(4, words + Words{"--precision", "fp32"});
    expect_solved_in(8, words + Words{"--precision", "fp64"});
  }
  expect_solved_in(4, command("A.mtx", "b.mtx") + Words{"--precision", "fp32"});
  expect_solved_in(4, command("A4.npy", "b4.npy") + Words{"--precision", "auto"});
  // The same numbers: fp32 of doubles that floats hold is fp32 of floats, to the last bit.
  (void)expect_done(command("A8.npy", "b8.npy") + Words{"--precision", "fp32"});
  const std::string of_doubles = slurp(path("x.npy"));
  (void)expect_done(command("A4.npy", "b4.npy"));
  EXPECT_EQ(slurp(path("x.npy")), of_doubles);
  expect_refused(command("A4.npy", "b4.npy") + Words{"--precision", "fp16"}, 2, {"--precision"});
}

TEST_F(CliPrecision, AVectorOfFloatsStaysOne) {
  DenseMatrix<double> v = b;
  v.cols = 1;
  v.values.resize(static_cast<std::size_t>(n));
  (void)scratch.put("v4.npy", npy_of<float>(v, true));
  (void)expect_done(command("A4.npy", "v4.npy"));
  const std::string file = slurp(path("x.npy"));
  EXPECT_NE(file.find("'<f4'"), std::string::npos);
  EXPECT_NE(file.find("(90,)"), std::string::npos);
}

TEST_F(CliPrecision, AMatrixMarketFileReadsBackAsTheSameFloats) {
  (void)expect_done(command("A4.npy", "b4.npy"));
  (void)expect_done(command("A4.npy", "b4.npy", "x.mtx"));
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  const DenseMatrix<double> y = read_dense(path("x.mtx"));
  ASSERT_EQ(x.values.size(), y.values.size());
  for (std::size_t k = 0; k < x.values.size(); ++k)
    EXPECT_EQ(static_cast<float>(y.values[k]), static_cast<float>(x.values[k])) << k;
  // Nine digits name any float; seventeen would pretend to more.
  EXPECT_LT(slurp(path("x.mtx")).size(), y.values.size() * 16 + 100);
}

TEST_F(CliPrecision, WhatFp32CannotHoldIsRefused) {
  DenseMatrix<double> huge = a;
  huge.view()(40, 40) = 1e39;
  (void)scratch.put("huge.npy", npy_of<double>(huge));
  const Words fp32{"--precision", "fp32"};
  expect_refused(command("huge.npy", "b8.npy") + fp32, 3,
                 {"huge.npy", "(40, 40)", "1e+39", "fp32"});
  DenseMatrix<double> large = b;
  large.view()(7, 2) = -1e300;
  (void)scratch.put("large.npy", npy_of<double>(large));
  expect_refused(command("A4.npy", "large.npy") + fp32, 3, {"large.npy", "(7, 2)", "-1e+300"});
}

TEST_F(CliPrecision, SymmetricIsWhatTheFilesDigitsCanSay) {
  // The last bit of a float: no sum in fp32 is sure of it.
  DenseMatrix<double> rounded = a;
  rounded.view()(70, 3) = std::nextafter(static_cast<float>(a.view()(70, 3)), 1e9F);
  (void)scratch.put("rounded4.npy", npy_of<float>(rounded));
  (void)scratch.put("rounded8.npy", npy_of<double>(rounded));
  (void)expect_done(command("rounded4.npy", "b4.npy"));
  (void)expect_done(command("rounded4.npy", "b4.npy") + Words{"--precision", "fp64"});
  // A hundred times that is no rounding, and half of it is not in a file of doubles; the elements
  // are named as the file has them, row by row.
  const Words cholesky{"--method", "cholesky"};
  DenseMatrix<double> wrong = a;
  wrong.view()(70, 3) = 0.25;
  wrong.view()(3, 70) = 0.25 + 1e-5 * a.view()(70, 70);
  (void)scratch.put("wrong4.npy", npy_of<float>(wrong));
  expect_refused(command("wrong4.npy", "b4.npy") + cholesky, 1,
                 {"not symmetric", "(70, 3) is 0.25"});
  wrong.view()(3, 70) = 0.25 + 1e-10 * a.view()(70, 70);
  (void)scratch.put("wrong8.npy", npy_of<double>(wrong));
  expect_refused(command("wrong8.npy", "b8.npy") + cholesky, 1,
                 {"not symmetric", "(70, 3) is 0.25"});
  expect_refused(command("wrong8.npy", "b8.npy") + cholesky + Words{"--precision", "fp32"}, 1,
                 {"not symmetric"});
}

TEST_F(CliPrecision, AMatrixThatIsNotSquareIsNamedAsTheFileHasIt) {
  (void)scratch.put("wide.npy", npy_of<float>(random_columns(n, n + 1, 3)));
  expect_refused(command("wide.npy", "b4.npy"), 2, {"wide.npy", "90 by 91", "not square"});
}

/// Backward errors of a few ulps, and no digit of the element in the largest unit: doubles are
/// refined until there are, floats cannot always be.
TEST_F(CliPrecision, AnXOfWhichNothingIsKnownIsNoSolution) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < campaign(6, 6, 2); ++seed) {
    SCOPED_TRACE(seed);
    const Symmetric wide = in_wide_units(seed, 8, 18);
    const DenseMatrix<double> matrix{wide.full, 8, 8};
    const DenseMatrix<double> rhs{row_sums(wide), 8, 1};
    (void)scratch.put("W8.npy", npy_of<double>(matrix));
    (void)scratch.put("w8.npy", npy_of<double>(rhs));
    (void)scratch.put("W4.npy", npy_of<float>(matrix));
    (void)scratch.put("w4.npy", npy_of<float>(rhs));
    write_mtx(path("W.mtx"), matrix.view());
    for (const Words& words : {command("W8.npy", "w8.npy"), command("W.mtx", "w8.npy")}) {
      const Json certificate = expect_json(words).at("certificate");
      EXPECT_EQ(certificate.at("ok"), true);
      EXPECT_LE(certificate.at("forward_error").get<double>(), 1e-6);
    }
    for (const Words& words : {command("W4.npy", "w4.npy"),
                               command("W8.npy", "w8.npy") + Words{"--precision", "fp32"}}) {
      std::filesystem::remove(path("x.npy"));
      const Outcome outcome = run_program(words + Words{"--json"});
      EXPECT_EQ(read_dense(path("x.npy")).rows, 8) << "written in any case";
      const Json certificate = json_of(outcome.out).at("certificate");
      const Json& forward = certificate.at("forward_error");
      const bool known = !forward.is_null() && forward.get<double>() <= 0.1;
      EXPECT_LE(certificate.at("componentwise_backward_error").get<double>(), 1e-6);
      EXPECT_EQ(certificate.at("ok"), known);
      EXPECT_EQ(outcome.status, known ? 0 : 1);
      if (known) continue;
      ++refused;
      EXPECT_NE(certificate.at("why").get<std::string>().find("of x"), std::string::npos);
      expect_complaint(run_program(words), 1, {"of x", "--precision fp64"});
    }
  }
  EXPECT_GT(refused, kSanitized ? 0 : 2);
}

TEST_F(CliPrecision, TextNamesIt) {
  expect_pieces(expect_done(command("A4.npy", "b4.npy")),
                {"90 unknowns", "3 right-hand", "in fp32"});
  expect_pieces(expect_done(command("A8.npy", "b4.npy")), {"in fp64"});
}

}  // namespace
}  // namespace strata::test
