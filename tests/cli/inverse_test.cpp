// strata inverse: matrices whose inverses are known exactly, by either method, real and complex,
// and what it refuses.

#include <algorithm>
#include <cmath>
#include <complex>
#include <filesystem>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

using Complex128 = std::complex<double>;
constexpr std::int64_t kInverted = 90;

/// min(i, j) + 1: positive definite; its inverse has 2 on the diagonal, 1 at its end, −1 beside it.
double smaller_index(std::int64_t i, std::int64_t j) {
  return static_cast<double>(std::min(i, j) + 1);
}
double inverse_of_smaller_index(std::int64_t i, std::int64_t j) {
  if (i == j) return i + 1 == kInverted ? 1 : 2;
  return std::abs(i - j) == 1 ? -1 : 0;
}

class CliInverse : public testing::Test {
 protected:
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words command(const std::string& matrix) const {
    return {"inverse", path(matrix), "-o", path("X.npy"), "--devices", "host:1"};
  }
  template <class T, class F>
  void write(const std::string& name, const F& element) const {
    DenseMatrix<T> a{std::vector<T>(static_cast<std::size_t>(kInverted * kInverted)), kInverted,
                     kInverted};
    for (std::int64_t j = 0; j < kInverted; ++j)
      for (std::int64_t i = 0; i < kInverted; ++i) a.view()(i, j) = element(i, j);
    write_npy(path(name), std::as_const(a).view());
  }
  void refuse(const Words& words, int status, const Words& pieces) const {
    expect_refused(words, status, pieces);
    EXPECT_FALSE(std::filesystem::exists(path("X.npy")));
  }
  template <class F>
  void expect_inverse(const F& element, double limit) const {
    const DenseMatrix<double> x = read_dense(path("X.npy"));
    ASSERT_EQ(x.rows, kInverted);
    ASSERT_EQ(x.cols, kInverted);
    double apart = 0;
    for (std::int64_t j = 0; j < kInverted; ++j)
      for (std::int64_t i = 0; i < kInverted; ++i)
        apart = std::max(apart, std::abs(x.view()(i, j) - element(i, j)));
    EXPECT_LE(apart, limit);
  }

  Scratch scratch;
};

TEST_F(CliInverse, IsThatOfPositiveDefiniteMatricesByEitherMethod) {
  write<double>("A.npy", smaller_index);
  for (const char* method : {"auto", "cholesky", "lu"}) {
    const Json object = expect_json(command("A.npy") + Words{"--method", method});
    EXPECT_EQ(object.at("method"), std::string(method) == "lu" ? "lu" : "cholesky");
    const double bound = object.at("certificate").at("forward_error").get<double>();
    EXPECT_LE(bound, 1e-9);
    expect_inverse(inverse_of_smaller_index, 2 * bound);
  }
  expect_done(command("A.npy") + Words{"--precision", "mixed"});
  expect_inverse(inverse_of_smaller_index, 1e-10);
}

TEST_F(CliInverse, OfAMatrixThatIsNotSymmetricIsNotItsTransposes) {
  // Rows of a unit upper bidiagonal matrix in reverse order: its inverse has ones.
  const auto element = [](std::int64_t i, std::int64_t j) {
    const std::int64_t row = kInverted - 1 - i;
    return row == j ? 1.0 : row + 1 == j ? -1.0 : 0.0;
  };
  const auto inverse = [](std::int64_t i, std::int64_t j) {
    return i <= kInverted - 1 - j ? 1.0 : 0.0;
  };
  write<double>("A.npy", element);
  const Json object = expect_json(command("A.npy"));
  EXPECT_EQ(object.at("method"), "lu");
  expect_inverse(inverse, 1e-12);
  // The same by rows, and as text.
  DenseMatrix<double> a{std::vector<double>(static_cast<std::size_t>(kInverted * kInverted)),
                        kInverted, kInverted};
  for (std::int64_t j = 0; j < kInverted; ++j)
    for (std::int64_t i = 0; i < kInverted; ++i) a.view()(i, j) = element(i, j);
  write_rows(scratch, "rows.npy", a);
  (void)expect_json(command("rows.npy"));
  expect_inverse(inverse, 1e-12);
  write_dense(path("A.mtx"), std::as_const(a).view(), 2);
  (void)expect_json(command("A.mtx"));
  expect_inverse(inverse, 1e-12);
}

TEST_F(CliInverse, OfComplexMatricesIsComplex) {
  // D·M·D⁻¹ for D = diag(i^k): complex, Hermitian, and not symmetric.
  const auto turned = [](double x, std::int64_t k) {
    constexpr Complex128 kTurns[] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
    return x * kTurns[(k % 4 + 4) % 4];
  };
  write<Complex128>("A.npy", [&](auto i, auto j) { return turned(smaller_index(i, j), i - j); });
  for (const char* method : {"auto", "lu"}) {
    (void)expect_json(command("A.npy") + Words{"--method", method});
    const DenseMatrix<Complex128> x = NpyFile(path("X.npy")).to_dense_complex();
    double apart = 0;
    for (std::int64_t j = 0; j < kInverted; ++j)
      for (std::int64_t i = 0; i < kInverted; ++i)
        apart = std::max(apart,
                         std::abs(x.view()(i, j) - turned(inverse_of_smaller_index(i, j), i - j)));
    EXPECT_LE(apart, 1e-10) << method;
  }
}

TEST_F(CliInverse, HasThePrecisionOfTheFile) {
  write<float>("A.npy", [](auto i, auto j) {
    return static_cast<float>(i == j ? 2 : i + 1 == j ? 1 : 0);
  });
  const Words by_lu = command("A.npy") + Words{"--method", "lu"};
  refuse(command("A.npy"), 1, {"one triangle", "--method lu"});
  EXPECT_EQ(expect_json(by_lu).at("certificate").at("precision"), "fp32");
  EXPECT_EQ(expect_json(by_lu + Words{"--precision", "fp64"}).at("certificate").at("precision"),
            "fp64");
  expect_inverse(
      [](auto i, auto j) {
        return i > j ? 0.0 : std::ldexp((j - i) % 2 == 0 ? 1 : -1, static_cast<int>(i - j - 1));
      },
      1e-15);
}

TEST_F(CliInverse, RefusesWhatHasNoneAndWhatItDoesNotTake) {
  write<double>("one.npy", [](auto, auto) { return 1.0; });
  refuse(command("one.npy"), 1, {"singular"});
  const DenseMatrix<double> tall = random_columns(kInverted, 3, 1);
  write_npy(path("tall.npy"), std::as_const(tall).view());
  refuse(command("tall.npy"), 2, {"tall.npy"});
  (void)scratch.put("sparse.mtx",
                    "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n");
  refuse(command("sparse.mtx"), 2, {"sparse", "strata variances"});
  write<double>("A.npy", smaller_index);
  refuse({"inverse", path("A.npy"), "-o", path("X.txt"), "--devices", "host:1"}, 2, {".npy"});
  refuse({"inverse", path("A.npy"), "-o", path("A.npy"), "--devices", "host:1"}, 2, {"A.npy"});
  ASSERT_EQ(run_program(
                {"factor", path("A.npy"), "--method", "lu", "-o", path("F"), "--devices", "host:1"})
                .status,
            0);
  refuse({"inverse", path("F"), "-o", path("X.npy")}, 2, {"is a factor"});
}

}  // namespace
}  // namespace strata::test
