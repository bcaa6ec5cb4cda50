// strata solve and strata logdet of Hermitian matrices, beside elimination of the parts in 113
// bits, and what they refuse.

#include <cmath>
#include <complex>
#include <limits>

#include "tests/cli/program.hpp"
#include "tests/support/hermitian_oracle.hpp"

namespace strata::test {
namespace {

using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;

/// Hermitian to the last bit, positive definite.
template <class T>
DenseMatrix<T> hermitian_of(std::int64_t n, std::uint64_t seed) {
  DenseMatrix<T> a{std::vector<T>(static_cast<std::size_t>(n * n)), n, n};
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      const auto k = static_cast<std::uint64_t>(2 * (i + j * n));
      const Complex128 z(random_uniform(seed, k) - 0.5, random_uniform(seed, k + 1) - 0.5);
      a.view()(i, j) = static_cast<T>(i == j ? Complex128(static_cast<double>(n)) : z);
      a.view()(j, i) = std::conj(a.view()(i, j));
    }
  }
  return a;
}

template <class T>
DenseMatrix<T> columns_of(std::int64_t n, std::int64_t count) {
  DenseMatrix<T> b{{}, n, count};
  for (std::int64_t k = 0; k < n * count; ++k)
    b.values.push_back(static_cast<T>(std::polar(1.0, 0.7 * static_cast<double>(k * k))));
  return b;
}

class CliComplex : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words solve(const std::string& matrix, const std::string& rhs,
                            const std::string& out = "x.npy") const {
    return Words{"solve", path(matrix), path(rhs), "-o", path(out)} + small_device();
  }
  [[nodiscard]] Words logdet(const std::string& matrix) const {
    return Words{"logdet", path(matrix), "--devices", "host"};
  }
  /// x solves A·x = b to `bound`.
  template <class A, class B>
  void expect_solution(const DenseMatrix<A>& a, const DenseMatrix<B>& b, double bound,
                       const std::string& name = "x.npy") const {
    const DenseMatrix<Complex128> x = name.ends_with(".npy")
                                          ? NpyFile(path(name)).to_dense_complex()
                                          : read_mtx(path(name)).to_dense_complex();
    ASSERT_EQ(x.rows, b.rows);
    ASSERT_EQ(x.cols, b.cols);
    const auto view = a.view();
    const HermitianOracle oracle(view);
    for (std::int64_t c = 0; c < b.cols; ++c)
      EXPECT_LE(oracle.forward_error(b.view(), x.view(), c), bound) << name << " " << c;
  }

  Scratch scratch;
};

TEST_F(CliComplex, SolvesAndCertifies) {
  const std::int64_t n = 97;
  const auto a = hermitian_of<Complex128>(n, 7);
  const auto b = columns_of<Complex128>(n, 3);
  write_npy(path("A.npy"), a.view());
  write_npy(path("b.npy"), b.view());
  const Json object =
      expect_json(solve("A.npy", "b.npy") +
                  Words{"--tile", "32", "--trace", path("t.json"), "--report", path("r.html")});
  expect_run_fields(object, n);
  EXPECT_GE(object.at("flops").get<double>(), 4.0 * n * n * n / 3);
  const Json& c = object.at("certificate");
  EXPECT_EQ(c.at("precision"), "complex128");
  EXPECT_EQ(c.at("ok"), true);
  EXPECT_LE(c.at("backward_error").get<double>(), 1e-15);
  expect_solution(a, b, c.at("forward_error").get<double>());
  EXPECT_LE(c.at("forward_error").get<double>(), 1e-12);
  const auto view = a.view();
  EXPECT_NEAR(object.at("factor").at("log_determinant").get<double>(),
              HermitianOracle(view).log_determinant(), 1e-10);
  EXPECT_EQ(NpyFile(path("x.npy")).precision(), Element::complex128);
  expect_pieces(
      expect_done(solve("A.npy", "b.npy")),
      {"97 unknowns, 3 right-hand sides, in complex128", "backward error", "log determinant"});
}

TEST_F(CliComplex, MovesWhatPlanSays) {
  const std::int64_t n = 150;
  write_npy(path("A.npy"), hermitian_of<Complex128>(n, 5).view());
  write_npy(path("b.npy"), columns_of<Complex128>(n, 1).view());
  const Words machine{"--devices", "host:2", "--device-memory", "128KiB", "--tile", "32"};
  const Words plan = Words{"plan", "cholesky", "--n", "150"} + machine;
  const Json planned = expect_json(plan + Words{"--precision", "complex128"});
  const Json solved =
      expect_json(Words{"solve", path("A.npy"), path("b.npy"), "-o", path("x.npy")} + machine);
  EXPECT_EQ(planned.at("planned_traffic"), solved.at("planned_traffic"));
  EXPECT_EQ(planned.at("traffic"), solved.at("traffic"));
  EXPECT_EQ(planned.at("flops"), solved.at("flops"));
  EXPECT_EQ(planned.at("flops").get<double>(), 4 * expect_json(plan).at("flops").get<double>());
  const Json narrow = expect_json(plan + Words{"--precision", "complex64"});
  EXPECT_LT(narrow.at("host_bytes").get<double>(), 0.6 * planned.at("host_bytes").get<double>());
  expect_refused(plan + Words{"--precision", "complex128", "--generated"}, 2, {"complex128"});
}

TEST_F(CliComplex, TakesEitherOrderPrecisionAndFormat) {
  const std::int64_t n = 33;
  const auto a = hermitian_of<Complex128>(n, 9);
  const auto narrow = hermitian_of<Complex64>(n, 9);
  const auto b = columns_of<Complex128>(n, 2);
  const auto narrow_b = columns_of<Complex64>(n, 2);
  write_npy(path("F.npy"), a.view());
  write_rows(scratch, "C.npy", a);
  write_mtx(path("M.mtx"), a.view());
  write_npy(path("f.npy"), narrow.view());
  write_rows(scratch, "c.npy", narrow);
  write_npy(path("b.npy"), b.view());
  write_npy(path("b4.npy"), narrow_b.view());
  for (const char* file : {"F.npy", "C.npy", "M.mtx"}) {
    (void)expect_done(solve(file, "b.npy"));
    expect_solution(a, b, 1e-13);
    (void)expect_done(solve(file, "b.npy", "x.mtx"));
    expect_solution(a, b, 1e-13, "x.mtx");
    const Json single = expect_json(solve(file, "b.npy") + Words{"--precision", "fp32"});
    EXPECT_EQ(single.at("certificate").at("precision"), "complex64");
    EXPECT_EQ(NpyFile(path("x.npy")).precision(), Element::complex64);
    expect_solution(a, b, 1e-5);
  }
  for (const char* file : {"f.npy", "c.npy"}) {
    EXPECT_EQ(expect_json(solve(file, "b4.npy")).at("certificate").at("precision"), "complex64");
    expect_solution(narrow, narrow_b, 1e-5);
    EXPECT_EQ(expect_json(solve(file, "b.npy")).at("certificate").at("precision"), "complex128");
    expect_solution(narrow, b, 1e-13);
  }
}

TEST_F(CliComplex, TakesATriangleOfEitherOrder) {
  const std::int64_t n = 20;
  const auto a = hermitian_of<Complex128>(n, 11);
  const auto b = columns_of<Complex128>(n, 1);
  write_npy(path("b.npy"), b.view());
  for (const bool lower : {true, false}) {
    DenseMatrix<Complex128> half = a;
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i)
        if (lower ? i < j : i > j) half.view()(i, j) = 0;
    const std::string name = lower ? "lower" : "upper";
    write_npy(path("F.npy"), half.view());
    write_rows(scratch, "C.npy", half);
    write_mtx(path("M.mtx"), half.view());
    for (const char* file : {"F.npy", "C.npy", "M.mtx"}) {
      expect_refused(solve(file, "b.npy"), 1, {"not Hermitian", "--triangle " + name});
      expect_refused(solve(file, "b.npy") + Words{"--triangle", lower ? "upper" : "lower"}, 3,
                     {"nothing"});
      (void)expect_done(solve(file, "b.npy") + Words{"--triangle", name});
      expect_solution(a, b, 1e-13);
      const Json object = expect_json(logdet(file) + Words{"--triangle", name});
      const auto view = a.view();
      EXPECT_NEAR(object.at("log_determinant").get<double>(),
                  HermitianOracle(view).log_determinant(),
                  object.at("log_determinant_error").get<double>());
    }
  }
}

TEST_F(CliComplex, SolvesForRealColumnsAndForComplexOnesOfARealMatrix) {
  const std::int64_t n = 25;
  const auto a = hermitian_of<Complex128>(n, 13);
  const auto real_a = positive_definite(n, 3);
  const auto b = columns_of<Complex128>(n, 2);
  const auto real_b = random_columns(n, 2, 4);
  write_npy(path("A.npy"), a.view());
  write_npy(path("R.npy"), real_a.view());
  write_npy(path("b.npy"), b.view());
  write_npy(path("r.npy"), real_b.view());
  (void)expect_done(solve("A.npy", "r.npy"));
  const DenseMatrix<Complex128> wide_b{
      std::vector<Complex128>(real_b.values.begin(), real_b.values.end()), n, 2};
  expect_solution(a, wide_b, 1e-13);
  const Json object = expect_json(solve("R.npy", "b.npy"));
  EXPECT_EQ(object.at("certificate").at("precision"), "fp64");
  EXPECT_EQ(NpyFile(path("x.npy")).precision(), Element::complex128);
  const DenseMatrix<Complex128> wide_a{
      std::vector<Complex128>(real_a.values.begin(), real_a.values.end()), n, n};
  expect_solution(wide_a, b, 1e-13);
  expect_pieces(expect_done(solve("R.npy", "b.npy")), {"2 right-hand sides, in fp64"});
  write_npy(path("v.npy"),
            std::span<const Complex128>(b.values.data(), static_cast<std::size_t>(n)));
  (void)expect_done(solve("R.npy", "v.npy") + Words{"--precision", "fp32"});
  EXPECT_EQ(NpyFile(path("x.npy")).dimensions(), 1);
  EXPECT_EQ(NpyFile(path("x.npy")).precision(), Element::complex64);
}

TEST_F(CliComplex, TakesCoordinates) {
  const auto file = scratch.put("A.mtx",
                                "%%MatrixMarket matrix coordinate complex hermitian\n3 3 5\n"
                                "1 1 2 0\n2 2 3 0\n3 3 1 0\n2 1 0.5 -1\n3 2 0 0.25\n");
  (void)scratch.put("b.mtx", "%%MatrixMarket matrix array complex general\n3 1\n1 1\n0 -2\n3 0\n");
  const DenseMatrix<Complex128> a = read_mtx(file).to_dense_complex();
  (void)expect_done(solve("A.mtx", "b.mtx"));
  expect_solution(a, read_mtx(path("b.mtx")).to_dense_complex(), 1e-14);
  EXPECT_EQ(NpyFile(path("x.npy")).dimensions(), 1);
  // |A| = 2·3·1 − |0.5 − i|²·1 − 2·|0.25 i|²
  EXPECT_NEAR(expect_json(logdet("A.mtx")).at("log_determinant").get<double>(),
              std::log(6 - 1.25 - 0.125), 1e-14);
}

TEST_F(CliComplex, LogdetTellsItsError) {
  const std::int64_t n = 61;
  const auto a = hermitian_of<Complex128>(n, 17);
  write_npy(path("A.npy"), a.view());
  const auto view = a.view();
  const double expected = HermitianOracle(view).log_determinant();
  const Json object = expect_json(logdet("A.npy"));
  EXPECT_EQ(object.at("precision"), "complex128");
  EXPECT_EQ(object.at("numerically_singular"), false);
  EXPECT_LE(std::abs(object.at("log_determinant").get<double>() - expected),
            object.at("log_determinant_error").get<double>());
  EXPECT_LE(object.at("log_determinant_error").get<double>(), 1e-9);
  const Json single = expect_json(logdet("A.npy") + Words{"--precision", "fp32"});
  EXPECT_EQ(single.at("precision"), "complex64");
  EXPECT_LE(std::abs(single.at("log_determinant").get<double>() - expected),
            single.at("log_determinant_error").get<double>());
  expect_pieces(expect_done(logdet("A.npy")),
                {"log determinant", "error", "in complex128", "condition"});
  expect_refused(logdet("A.npy") + Words{"--shift", "1"}, 2, {"--shift", "complex"});
}

TEST_F(CliComplex, RefusesWhatIsNotHermitianAndSaysWhere) {
  const std::int64_t n = 70;
  const Words cholesky{"--method", "cholesky"};
  const auto good = hermitian_of<Complex128>(n, 19);
  write_npy(path("b.npy"), columns_of<Complex128>(n, 1).view());
  const auto refused = [&](const DenseMatrix<Complex128>& a, int status, const Words& pieces) {
    write_npy(path("A.npy"), a.view());
    expect_refused(solve("A.npy", "b.npy") + cholesky, status, pieces);
    expect_refused(logdet("A.npy"), status, pieces);
    write_rows(scratch, "A.npy", a);
    expect_refused(solve("A.npy", "b.npy") + cholesky, status, pieces);
    EXPECT_FALSE(std::filesystem::exists(path("x.npy")));
  };
  DenseMatrix<Complex128> a = good;  // complex symmetric
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < j; ++i) a.view()(i, j) = a.view()(j, i);
  refused(a, 1, {"not Hermitian", "(1, 0)", "(0, 1)", "complex symmetric"});
  a = good;
  a.view()(66, 3) += Complex128(0, 1e-3);
  refused(a, 1, {"not Hermitian", "(66, 3)", "(3, 66)"});
  a = good;
  a.view()(68, 68) = {70, 1e-20};
  refused(a, 1, {"not Hermitian", "(68, 68)", "70+1e-20i", "imaginary"});
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const Complex128 bad : {Complex128(1, kNan), Complex128(kNan, 1), Complex128(1, INFINITY)}) {
    a = good;
    a.view()(5, 9) = bad;
    refused(a, 3,
            {"(5, 9)",
             std::isfinite(bad.real()) ? std::isnan(bad.imag()) ? "1+nan" : "1+inf" : "nan+1i"});
  }
  a = good;
  a.view()(40, 40) = -3;
  refused(a, 1, {"not positive definite", "pivot 40"});
  write_npy(path("A.npy"), good.view());
  (void)scratch.put("nan.mtx", "%%MatrixMarket matrix array complex general\n1 1\n1 nan\n");
  expect_refused(solve("A.npy", "nan.mtx"), 3, {"line 3", "nan"});
  (void)scratch.put("d.mtx",
                    "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 2 3\n");
  expect_refused(solve("d.mtx", "b.npy"), 3, {"line 3", "(1, 1)", "imaginary"});
  (void)scratch.put("s.mtx",
                    "%%MatrixMarket matrix coordinate complex symmetric\n70 70 1\n2 1 2 3\n");
  expect_refused(solve("s.mtx", "b.npy") + cholesky, 1, {"(1, 0)", "2+3i", "complex symmetric"});
}

TEST_F(CliComplex, DifferencesOfRoundingAreTaken) {
  const std::int64_t n = 40;
  auto a = hermitian_of<Complex128>(n, 23);
  a.view()(3, 30) *= 1 + 4e-13;
  write_npy(path("F.npy"), a.view());
  write_rows(scratch, "C.npy", a);
  const auto b = columns_of<Complex128>(n, 1);
  write_npy(path("b.npy"), b.view());
  for (const char* file : {"F.npy", "C.npy"}) {
    (void)expect_done(solve(file, "b.npy"));
    const auto x = NpyFile(path("x.npy")).to_dense_complex();
    EXPECT_LE(hermitian_errors(a.view(), b.view(), x.view(), 0).normwise, 1e-15) << file;
  }
}

TEST_F(CliComplex, IsRefusedWhereRealNumbersAreNeeded) {
  write_npy(path("A.npy"), hermitian_of<Complex128>(5, 1).view());
  (void)scratch.put("A.mtx",
                    "%%MatrixMarket matrix coordinate complex hermitian\n1 1 1\n1 1 2 0\n");
  write_npy(path("b.npy"), std::vector<double>(5, 1.0));
  for (const char* file : {"A.npy", "A.mtx"}) {
    for (const Words& words :
         {Words{"factor", path(file), "-o", path("f"), "--method", "cholesky"},
          Words{"analyze", path(file)}, Words{"eigs", path(file), "--k", "1"},
          Words{"variances", path(file), "-o", path("v.npy")},
          Words{"qr", path(file), "-o", path("q.npy")},
          Words{"solve", path(file), path("b.npy"), "-o", path("x.npy"), "--method", "gmres"}})
      expect_refused(words, 3, {path(file), "complex", "real"});
  }
  expect_refused(solve("A.npy", "b.npy") + Words{"--shift", "1"}, 2, {"--shift", "complex"});
}

}  // namespace
}  // namespace strata::test
