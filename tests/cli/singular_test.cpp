// Matrices that are singular but for rounding, and numbers that leave the range: what the verbs of
// direct solves say, and with which exit status.

#include <cmath>
#include <complex>
#include <filesystem>
#include <sstream>

#include "tests/cli/sparse_system.hpp"

namespace strata::test {
namespace {

class CliSingular : public SparseSystemFiles {
 protected:
  /// A weighted graph without a grounded node, of which rounding has left a positive definite
  /// matrix, or nearly.
  void write_graph(double lift) {
    SparseMatrix graph = with_values(grid(9, 7, 1), 3, 0);
    std::vector<double> sum(at(graph.rows));
    for (std::int64_t i = 0; i < graph.rows; ++i)
      for (std::int64_t k = graph.start[at(i)]; k < graph.start[at(i + 1)]; ++k) {
        const std::int64_t j = graph.column[at(k)];
        if (j == i) continue;
        graph.value[at(k)] = -std::abs(graph.value[at(k)]);
        sum[at(i)] -= graph.value[at(k)];
        sum[at(j)] -= graph.value[at(k)];
      }
    for (std::int64_t i = 0; i < graph.rows; ++i) set_diagonal(graph, i, sum[at(i)] * (1 + lift));
    write_system(graph, 2);
    write_npy(path("A.npy"), DenseMatrix<double>{dense_of(graph), graph.rows, graph.rows}.view());
  }
  [[nodiscard]] std::vector<Words> verbs() const {
    return {solve(), solve("A.npy"), verb("logdet", "A.mtx"), verb("factor", "A.mtx", "F"),
            verb("variances", "A.mtx", "v.npy")};
  }
};

TEST_F(CliSingular, IsSaidWithStatus1) {
  write_graph(1e-15);
  for (const Words& words : verbs()) {
    SCOPED_TRACE(testing::PrintToString(words));
    expect_complaint(run_program(words), 1, {"numerically singular", "condition"});
    const Outcome outcome = run_program(words + Words{"--json"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_EQ(json_of(outcome.out).at("numerically_singular"), true);
  }
  EXPECT_EQ(read_dense(path("x.npy")).rows, a.rows) << "written all the same";
  EXPECT_FALSE(std::filesystem::exists(path("F"))) << "what solves with it would not know";
  // In fp32 already what fp64 takes: a factor cannot tell.
  write_graph(1e-8);
  for (const Words& words : verbs()) expect_done(words);
  for (const Words& words :
       {verb("logdet", "A.mtx"), verb("variances", "A.mtx", "v.npy"), solve()}) {
    const Outcome outcome = run_program(words + Words{"--precision", "fp32"});
    EXPECT_EQ(outcome.status, 1);
    EXPECT_NE(outcome.err.find("--precision fp64"), std::string::npos) << outcome.err;
  }
}

TEST_F(CliSingular, UnitsAreNothingSingular) {
  SparseMatrix units = with_values(grid(9, 7, 1), 3, 0.1);
  for (std::int64_t i = 0; i < units.rows; ++i)
    for (std::int64_t k = units.start[at(i)]; k < units.start[at(i + 1)]; ++k)
      units.value[at(k)] *= std::pow(10.0, static_cast<double>(i % 13 + units.column[at(k)] % 13));
  write_system(units, 2);
  for (const Words& words :
       {solve(), verb("logdet", "A.mtx"), verb("variances", "A.mtx", "v.npy")}) {
    const Json j = expect_json(words);
    EXPECT_EQ(j.at("numerically_singular"), false);
    EXPECT_LT(j.at("scaled_condition").get<double>(), 1e4);
  }
}

/// What is written with status 0 are numbers.
TEST_F(CliSingular, NumbersThatLeaveTheRange) {
  const auto refuse = [this](const Words& words, const Words& pieces) {
    SCOPED_TRACE(testing::PrintToString(words));
    expect_complaint(run_program(words), 1, pieces);
  };
  const SparseMatrix plain = a;
  const DenseMatrix<double> rhs = b;
  for (double& value : a.value) value *= 1e-200;
  (void)scratch.put("A.mtx", symmetric_text(a));
  write_npy(path("A.npy"), DenseMatrix<double>{dense_of(a), a.rows, a.rows}.view());
  for (double& value : b.values) value *= 1e200;
  write_npy(path("b.npy"), std::as_const(b).view());
  for (const Words& words : {solve(), solve("A.npy")}) refuse(words, {"leave the range of fp64"});
  a = plain;
  for (double& value : a.value) value *= 1e-310;
  (void)scratch.put("A.mtx", symmetric_text(a));
  write_npy(path("A.npy"), DenseMatrix<double>{dense_of(a), a.rows, a.rows}.view());
  refuse(verb("variances", "A.mtx", "v.npy"), {"leave the range"});
  refuse(verb("variances", "A.mtx", "v.mtx") + Words{"--selected"}, {"leave the range"});
  // Where x does not, neither does anything on the way.
  b = rhs;
  for (double& value : b.values) value *= 1e-310;
  write_npy(path("b.npy"), std::as_const(b).view());
  for (const Words& words : {solve(), solve("A.npy")}) {
    const Json certificate = expect_json(words).at("certificate");
    EXPECT_LE(certificate.at("backward_error").get<double>(), 1e-15);
    EXPECT_LE(certificate.at("componentwise_backward_error").get<double>(), 1e-14);
    EXPECT_LE(certificate.at("forward_error").get<double>(), 1e-10);
  }
  // Doubles that floats hold only without digits are refused.
  expect_refused(solve("A.npy") + Words{"--precision", "fp32"}, 3, {"fp32 cannot hold"});
}

/// [3 1; 1 d] is positive definite from the d above 1/3 on, by 5.6e-17 there; the last pivot is
/// rounding.
TEST_F(CliSingular, APivotOfRoundingIsNoProofThatAMatrixIsNotPositiveDefinite) {
  const auto write = [this](double d) {
    std::ostringstream entries;
    entries.precision(17);
    entries << "3\n1 1 3\n2 1 1\n2 2 " << d << "\n";
    (void)scratch.put("A.mtx",
                      "%%MatrixMarket matrix coordinate real symmetric\n2 2 " + entries.str());
    (void)scratch.put("S.mtx", "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n3 3 1\n" +
                                   entries.str().substr(2));
    write_npy(path("A.npy"), DenseMatrix<double>{{3, 1, 1, d}, 2, 2}.view());
    using Complex = std::complex<double>;
    write_npy(path("C.npy"), DenseMatrix<Complex>{{3, 1, 1, d}, 2, 2}.view());
    write_npy(path("b.npy"), DenseMatrix<double>{{1, 2}, 2, 1}.view());
  };
  const Words cholesky{"--method", "cholesky"};
  const std::vector<Words> failing{
      solve("A.npy") + cholesky,
      solve("C.npy") + cholesky,
      solve(),
      verb("logdet", "A.mtx"),
      verb("logdet", "A.npy"),
      verb("logdet", "C.npy"),
      verb("variances", "A.mtx", "v.npy"),
      verb("factor", "A.mtx", "F"),
      verb("factor", "A.npy", "F") + cholesky,
      verb("factor", "A.npy", "G") + cholesky + Words{"--storage", path("G")},
      verb("schur", "S.mtx", "s.npy") + Words{"--keep", "2"}};
  const std::string rounding = " not positive definite to rounding: ";
  const auto expect_said = [&](const Words& words, bool is_rounding) {
    SCOPED_TRACE(testing::PrintToString(words));
    std::filesystem::remove_all(path("G"));
    const Outcome outcome = run_program(words);
    expect_complaint(outcome, 1, {is_rounding ? rounding : " not positive definite: "});
  };
  // The reason why it is LU, which may fail as well.
  const auto expect_reason = [&](const Words& words, bool is_rounding) {
    SCOPED_TRACE(testing::PrintToString(words));
    const Json object = json_of(run_program(words + Words{"--json"}).out);
    expect_pieces(object.at("why").get<std::string>(),
                  {is_rounding ? rounding : " not positive definite: ", "pivot 1 is "});
  };
  write(0.33333333333333337);
  for (const Words& words : failing) expect_said(words, true);
  expect_reason(solve("A.npy"), true);
  expect_reason(verb("factor", "A.npy", "H"), true);
  // What is more than rounding in fp64 is not so in fp32.
  const Words narrow{"--precision", "fp32"};
  const std::string in_fp32 = " in fp32 is not positive definite to rounding: ";
  write(0.33333331);
  for (const Words& words : failing) expect_said(words, false);
  expect_reason(solve("A.npy"), false);
  expect_reason(verb("factor", "A.npy", "H"), false);
  expect_complaint(run_program(verb("logdet", "A.mtx") + narrow), 1, {in_fp32});
  write(0.3);
  for (const Words& words : failing) expect_said(words, false);
  expect_complaint(run_program(verb("logdet", "A.mtx") + narrow), 1,
                   {" in fp32 is not positive definite: "});
}

}  // namespace
}  // namespace strata::test
