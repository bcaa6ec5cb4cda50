// strata shift beside eigenvalues that are known in closed form.

#include <fmt/core.h>

#include <cmath>
#include <numbers>
#include <tuple>

#include "tests/cli/sparse_system.hpp"

namespace strata::test {
namespace {

/// The least shift, and the hundredth that is added to it.
constexpr double kMargin = 1.01;

class CliShift : public SparseSystemFiles {
 protected:
  [[nodiscard]] Words shift(const std::string& matrix = "A.mtx") const {
    return {"shift", path(matrix)};
  }
  [[nodiscard]] double told(const Words& more = {}) const {
    return expect_json(shift() + more).at("definite_shift").get<double>();
  }
  /// −1 beside a constant diagonal.
  void write_chain(std::int64_t n, double diagonal) {
    Edges edges(n);
    for (std::int64_t i = 1; i < n; ++i) edges.add(i, i - 1);
    SparseMatrix chain = edges.matrix();
    for (double& value : chain.value) value = -1;
    for (std::int64_t i = 0; i < n; ++i) set_diagonal(chain, i, diagonal);
    write_system(chain, 1);
  }
  /// −λ of it: its eigenvalues are diagonal − 2·cos(kπ/(n + 1)).
  [[nodiscard]] static double least_shift(std::int64_t n, double diagonal) {
    return 2 * std::cos(std::numbers::pi / static_cast<double>(n + 1)) - diagonal;
  }
};

TEST_F(CliShift, IsTheLeastEigenvalueAndAMargin) {
  for (const std::int64_t n : {2, 3, 37, 100}) {
    for (const double diagonal : {0.5, -3.0}) {
      SCOPED_TRACE(testing::Message() << n << ' ' << diagonal);
      write_chain(n, diagonal);
      const Json j = expect_json(shift());
      EXPECT_EQ(j.at("n"), n);
      EXPECT_EQ(j.at("steps"), 100);
      EXPECT_EQ(j.at("summed_entries"), 0);
      const double exact = least_shift(n, diagonal);
      const double got = j.at("definite_shift").get<double>();
      EXPECT_NEAR(got, kMargin * exact, 1e-10);
      EXPECT_EQ(j.at("definite_shift_known_by"), "factorization");
      EXPECT_EQ(j.at("factorizations"), 1);
      EXPECT_EQ(j.at("least_diagonal").at("value"), diagonal);
      // It does what it says, and much less does not.
      expect_done(verb("logdet", "A.mtx") + Words{"--shift", std::to_string(got)});
      refuse(verb("logdet", "A.mtx") + Words{"--shift", std::to_string(0.98 * exact)}, 1,
             {"not positive definite"});
    }
  }
}

/// Where few products see too little, factorizations go on.
TEST_F(CliShift, IsSharpWhereEigenvaluesAreClose) {
  const std::int64_t n = 700;
  write_chain(n, 1.999);
  const double exact = least_shift(n, 1.999);
  for (const char* steps : {"10", "700"}) {
    const Json j = expect_json(shift() + Words{"--steps", steps});
    EXPECT_EQ(j.at("steps"), std::stoi(steps));
    EXPECT_NEAR(j.at("definite_shift").get<double>(), kMargin * exact, 1e-3 * exact);
    EXPECT_LE(j.at("factorizations"), 16);
  }
}

TEST_F(CliShift, IsThatOfThePrecision) {
  const std::int64_t n = 60;
  write_chain(n, 2 - (2 - 2 * std::cos(std::numbers::pi / (n + 1))) * (1 + 1e-3));
  const Words fp32{"--precision", "fp32"};
  const double narrow = told(fp32);
  EXPECT_GT(narrow, 1.2 * told());
  const Outcome failed = run_program(verb("logdet", "A.mtx") + fp32);
  EXPECT_EQ(failed.status, 1);
  const std::string advice = "--shift ";
  const std::size_t from = failed.err.find(advice);
  ASSERT_NE(from, std::string::npos) << failed.err;
  const std::string number = failed.err.substr(
      from + advice.size(), failed.err.find(' ', from + advice.size()) - from - advice.size());
  expect_done(verb("logdet", "A.mtx") + fp32 + Words{"--shift", number});
}

TEST_F(CliShift, SaysThatTheDiagonalIsNegative) {
  set_diagonal(a, 77, -1);
  write_system(a, 1);
  const Json j = expect_json(shift());
  EXPECT_GT(j.at("definite_shift").get<double>(), 1);
  EXPECT_EQ(j.at("least_diagonal").at("row"), 77);
  expect_pieces(expect_done(shift()), {"-1 in row 77"});
  refuse(verb("logdet", "A.mtx"), 1, {"the diagonal has -1 in row 77", "factored"});
}

TEST_F(CliShift, IsNothingForADefiniteMatrix) {
  EXPECT_EQ(told(), 0);
  expect_pieces(expect_done(shift()), {"order 210", "positive definite as it is"});
  write_chain(40, 0.5);
  expect_pieces(expect_done(shift()), {"order 40", "definite shift    1.5", "1 factorization"});
}

/// The one that a failure tells, from any file with the same numbers.
TEST_F(CliShift, IsTheOneThatAFailureTells) {
  set_diagonal(a, 77, -3);
  write_system(a, 1);
  const Outcome failed = run_program(verb("logdet", "A.mtx") + Words{"--json"});
  EXPECT_EQ(failed.status, 1);
  EXPECT_NEAR(json_of(failed.out).at("definite_shift").get<double>(), told(), 1e-12);
  write_npy(path("dense.npy"), DenseMatrix<double>{dense_of(a), a.rows, a.rows}.view());
  EXPECT_NEAR(expect_json(shift("dense.npy")).at("definite_shift").get<double>(), told(), 1e-12);
}

TEST_F(CliShift, SmallOrdersAndEmptyDiagonals) {
  const std::string banner = "%%MatrixMarket matrix coordinate real symmetric\n";
  (void)scratch.put("A.mtx", banner + "0 0 0\n");
  EXPECT_EQ(told(), 0);
  (void)scratch.put("A.mtx", banner + "1 1 1\n1 1 -2\n");
  EXPECT_NEAR(told(), 2 * kMargin, 1e-15);
  (void)scratch.put("A.mtx", banner + "1 1 2\n1 1 -2\n1 1 -1\n");
  EXPECT_NEAR(told(), 3 * kMargin, 1e-15);
  EXPECT_EQ(expect_json(shift()).at("summed_entries"), 1);
  (void)scratch.put("A.mtx", banner + "2 2 2\n1 1 1e300\n2 1 -1e300\n");
  EXPECT_NEAR(told(), kMargin * (std::sqrt(5.0) - 1) / 2 * 1e300, 1e288);
  // (0 1; 1 0) has −1 among its eigenvalues.
  (void)scratch.put("A.mtx", banner + "2 2 1\n2 1 1\n");
  EXPECT_NEAR(told(), kMargin, 1e-14);
}

TEST_F(CliShift, OfZerosAndBeyondTheRange) {
  const std::string banner = "%%MatrixMarket matrix coordinate real symmetric\n";
  for (const char* entries : {"1 1 1\n1 1 0\n", "1 1 0\n", "4 4 1\n3 3 -0.0\n"}) {
    SCOPED_TRACE(entries);
    (void)scratch.put("A.mtx", banner + entries);
    expect_pieces(expect_done(shift()), {"definite shift    1: A plus"});
    expect_done(verb("logdet", "A.mtx") + Words{"--shift", "1"});
    for (const Words& words : {verb("logdet", "A.mtx"), verb("variances", "A.mtx", "v.npy"),
                               verb("factor", "A.mtx", "F")})
      refuse(words, 1, {"not positive definite", "the diagonal has", "--shift 1 would"});
  }
  (void)scratch.put("A.mtx", banner + "1 1 1\n1 1 -5e-324\n");
  expect_done(verb("logdet", "A.mtx") + Words{"--shift", fmt::format("{}", told())});
  (void)scratch.put("A.mtx", banner + "3 3 3\n2 1 -1e308\n3 1 -1e308\n3 2 -1e308\n");
  refuse(verb("logdet", "A.mtx"), 1, {"no shift that a double can hold"});
  EXPECT_EQ(run_program(shift()).status, 1);
}

TEST_F(CliShift, RefusesWhatIsNoSymmetricMatrix) {
  const std::string banner = "%%MatrixMarket matrix coordinate real ";
  refuse(shift("absent.mtx"), 3, {"absent.mtx"});
  const std::vector<std::tuple<std::string, int, Words>> cases{
      {banner + "general\n3 3 4\n1 2 5\n2 1 6\n3 3 1\n1 1 1\n", 1, {"(0, 1) is 5", "(1, 0) is 6"}},
      {banner + "general\n2 3 1\n1 2 5\n", 2, {"2 by 3"}},
      {banner + "skew-symmetric\n2 2 1\n2 1 5\n", 1, {"skew"}}};
  for (const auto& [text, status, pieces] : cases) {
    SCOPED_TRACE(text);
    (void)scratch.put("bad.mtx", text);
    refuse(shift("bad.mtx"), status, pieces);
  }
  expect_done(verb("factor", "A.mtx", "F"));
  refuse(shift("F"), 2, {path("F")});
  for (const char* steps : {"0", "-1", "10001", "1.5"})
    refuse(shift() + Words{"--steps", steps}, 2, {"--steps"});
}

}  // namespace
}  // namespace strata::test
