// Sparse factors in fp32 as a user has them: solutions of fp64, and what is said of numbers that
// nothing refines; beside a dense factorization in long doubles.

#include <cmath>
#include <filesystem>

#include "tests/cli/sparse_system.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

const Words kFp32{"--precision", "fp32"};

class CliSparsePrecision : public SparseSystemFiles {
 protected:
  [[nodiscard]] double size_of(const std::string& name) const {
    return static_cast<double>(std::filesystem::file_size(path(name)));
  }
};

TEST_F(CliSparsePrecision, SolvesToFp64) {
  const Json wide = expect_json(solve());
  EXPECT_EQ(wide.at("precision"), "fp64");
  EXPECT_EQ(wide.at("certificate").at("precision"), "fp64");
  const Json j = expect_json(solve() + kFp32);
  expect_solution("x.npy");
  EXPECT_NE(slurp(path("x.npy")).find("'<f8'"), std::string::npos);
  EXPECT_EQ(j.at("precision"), "fp32");
  const Json& certificate = j.at("certificate");
  EXPECT_EQ(certificate.at("precision"), "fp32");
  EXPECT_LE(certificate.at("backward_error").get<double>(), 1e-15);
  EXPECT_GE(certificate.at("refinement_steps").get<int>(), 1) << "24 bits are not enough unrefined";
  EXPECT_LT(j.at("host_bytes").get<std::int64_t>(), wide.at("host_bytes").get<std::int64_t>());
  expect_pieces(expect_done(solve() + kFp32), {"by a sparse factor in fp32", "refinement steps"});
  expect_json(solve() + kFp32 + Words{"--shift", "0.75"});
  expect_solution("x.npy", 0.75);
  // By itself it is fp64.
  expect_done(solve("A.mtx", "auto.npy") + Words{"--precision", "auto"});
  expect_done(solve("A.mtx", "fp64.npy") + Words{"--precision", "fp64"});
  EXPECT_EQ(slurp(path("auto.npy")), slurp(path("fp64.npy")));
}

/// What fp32 cannot hold ends the run while other queues wait for what comes behind it: a full
/// front, whose places are read after its entries.
TEST_F(CliSparsePrecision, RefusesWhatItCannotHoldHoweverLargeTheFront) {
  for (const std::int64_t n : {20, 50, 60, 150}) {
    for (const double large : {1e60, -1e60}) {
      DenseMatrix<double> a{std::vector<double>(static_cast<std::size_t>(n * n), 0.01), n, n};
      for (std::int64_t i = 0; i < n; ++i) a.view()(i, i) += 2;
      a.view()(0, 0) = large;
      write_npy(path("full.npy"), std::as_const(a).view());
      for (const std::string threads : {"1", "2"})
        expect_refused({"logdet", path("full.npy"), "--precision", "fp32", "--devices", "host:1",
                        "--threads", threads},
                       3, {"fp32 cannot hold"});
    }
  }
}

TEST_F(CliSparsePrecision, ASavedFactorKeepsIt) {
  expect_done(verb("factor", "A.mtx", "wide"));
  const Json made = expect_json(verb("factor", "A.mtx", "F") + kFp32);
  EXPECT_EQ(made.at("precision"), "fp32");
  EXPECT_NEAR(size_of("F/factor"), size_of("wide/factor") / 2, 200);
  expect_pieces(expect_done(verb("factor", "A.mtx", "F") + kFp32), {"factored order 210 in fp32"});
  expect_done(solve() + kFp32);
  const Json refined = expect_json(solve("F", "y.npy") + Words{"--matrix", path("A.mtx")});
  EXPECT_EQ(slurp(path("y.npy")), slurp(path("x.npy")));
  EXPECT_EQ(refined.at("certificate").at("precision"), "fp32");
  EXPECT_GE(refined.at("certificate").at("refinement_steps").get<int>(), 1);
  // Without A it is what floats say.
  const Json alone = expect_json(solve("F", "z.npy"));
  EXPECT_EQ(alone.at("precision"), "fp32");
  EXPECT_EQ(alone.at("certificate").at("precision"), "fp32");
  EXPECT_EQ(alone.at("certificate").at("refinement_steps"), 0);
  EXPECT_TRUE(alone.at("certificate").at("backward_error").is_null());
  const DenseMatrix<double> exact = read_dense(path("y.npy"));
  const DenseMatrix<double> rough = read_dense(path("z.npy"));
  double most = 0;
  double off = 0;
  for (std::size_t k = 0; k < exact.values.size(); ++k) {
    most = std::max(most, std::abs(exact.values[k]));
    off = std::max(off, std::abs(exact.values[k] - rough.values[k]));
  }
  EXPECT_GT(off, 1e-9 * most);
  EXPECT_LT(off, condition() * std::ldexp(most, -24));
  expect_pieces(expect_done(verb("logdet", "F")), {"in fp32, as it was saved", "takes A"});
  for (const char* precision : {"fp32", "fp64"})
    for (const Words& words : {solve("F"), verb("logdet", "F"), verb("variances", "F", "v.npy")})
      refuse(words + Words{"--precision", precision}, 2, {"--precision", "is a factor"});
}

/// How far numbers that nothing refines are off at most is told, and they are not further off.
TEST_F(CliSparsePrecision, SaysHowAccurateTheRestIs) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  const DenseOracle oracle(dense_of(a), a.rows);
  for (const bool single : {true, false}) {
    SCOPED_TRACE(single);
    const Words more = single ? kFp32 : Words{};
    const double unit = single ? 0x1p-24 : 0x1p-53;
    const Json logdet = expect_json(verb("logdet", "A.mtx") + more);
    const double told = logdet.at("log_determinant_error").get<double>();
    EXPECT_GT(told, 0);
    EXPECT_LE(told, static_cast<double>(a.rows) * condition() * unit / 2) << "and says something";
    const double off = std::abs(logdet.at("log_determinant").get<double>() -
                                static_cast<double>(oracle.log_determinant));
    EXPECT_LT(off, told);
    EXPECT_EQ(off > 1e-10, single) << "was computed in another precision";
    const Json j = expect_json(verb("variances", "A.mtx", "v.npy") + more);
    const double bound = j.at("variances").at("relative_error").get<double>();
    EXPECT_LE(bound, 10 * condition() * unit);
    const DenseMatrix<double> v = read_dense(path("v.npy"));
    double worst = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      const auto exact = static_cast<double>(oracle.inverse_column(i)[at(i)]);
      worst = std::max(worst, std::abs(v.values[at(i)] - exact) / exact);
    }
    EXPECT_LT(worst, bound);
    EXPECT_EQ(worst > 1e-10, single);
    for (const Json& object : {logdet, j}) {
      EXPECT_LE(object.at("scaled_condition").get<double>(), condition() * 1.001);
      EXPECT_EQ(object.at("numerically_singular"), false);
    }
  }
  expect_pieces(expect_done(verb("logdet", "A.mtx") + kFp32), {"at most about", "absolute"});
  expect_pieces(expect_done(verb("variances", "A.mtx", "z.mtx") + kFp32 + Words{"--selected"}),
                {"at most about", "relative", "condition"});
  // A saved factor does not know A.
  expect_done(verb("factor", "A.mtx", "F") + kFp32);
  EXPECT_TRUE(expect_json(verb("logdet", "F")).at("log_determinant_error").is_null());
  EXPECT_TRUE(
      expect_json(verb("variances", "F", "v.npy")).at("variances").at("relative_error").is_null());
}

TEST_F(CliSparsePrecision, WhatOnlyFp64CanFactorIsToldSo) {
  // A pair of rows whose determinant floats round to 0.
  (void)scratch.put("A.mtx",
                    "%%MatrixMarket matrix coordinate real symmetric\n"
                    "3 3 4\n1 1 1\n2 1 1\n2 2 1.000000001\n3 3 1\n");
  b = random_columns(3, 1, 5);
  write_npy(path("b.npy"), std::as_const(b).view());
  for (const Words& words : {solve(), verb("factor", "A.mtx", "F"), verb("logdet", "A.mtx"),
                             verb("variances", "A.mtx", "v.npy")})
    refuse(words + kFp32, 1, {"the matrix in fp32 is not positive", "--precision fp64"});
  EXPECT_LE(expect_json(solve()).at("certificate").at("backward_error").get<double>(), 1e-15);
  // What no precision can factor has its shift as ever.
  set_diagonal(a, 77, -3);
  (void)scratch.put("A.mtx", symmetric_text(a));
  refuse(verb("logdet", "A.mtx") + kFp32, 1, {"in fp32", "row 77", "--shift"});
}

TEST_F(CliSparsePrecision, ARefinementThatStopsShortIsStatus1) {
  // A pair of rows whose determinant is 1e-9 of the product of the diagonal, and 1.6e-7 of it with
  // elements that are rounded to floats: positive, but a step of refinement brings less than 1 %.
  (void)scratch.put("A.mtx",
                    "%%MatrixMarket matrix coordinate real symmetric\n"
                    "3 3 4\n1 1 1.0951\n2 1 0.7556\n2 2 0.5213508908510014\n3 3 1\n");
  b = random_columns(3, 1, 5);
  write_npy(path("b.npy"), std::as_const(b).view());
  const Outcome short_of_it = run_program(solve() + kFp32);
  expect_complaint(short_of_it, 1, {"cannot tell", "fp32", "--precision fp64"});
  expect_pieces(short_of_it.out, {"x written to"});
  EXPECT_EQ(read_dense(path("x.npy")).rows, 3) << "written all the same";
  expect_complaint(run_program(verb("factor", "A.mtx", "F") + kFp32), 1, {"fp32"});
  EXPECT_FALSE(std::filesystem::exists(path("F"))) << "without A it would not be known";
  EXPECT_LE(expect_json(solve()).at("certificate").at("backward_error").get<double>(), 1e-15);
}

TEST_F(CliSparsePrecision, RefusesWhatFloatsCannotHoldAndOtherPrecisions) {
  const SparseMatrix before = a;
  for (const char* precision : {"fp16", "auto", "double"})
    for (const Words& words : {verb("factor", "A.mtx", "F"), verb("logdet", "A.mtx")})
      refuse(words + Words{"--precision", precision}, 2, {"--precision", precision});
  for (const double value : {1e60, 1e-50}) {
    a = before;
    set_diagonal(a, 19, value);
    (void)scratch.put("A.mtx", symmetric_text(a));
    refuse(verb("factor", "A.mtx", "F") + kFp32, 3, {"1e", "fp32"});
  }
}

TEST_F(CliSparsePrecision, SmallOrders) {
  for (const std::int64_t n : {0, 1}) {
    write_system(with_values(Edges(n).matrix(), 1), 2);
    EXPECT_EQ(expect_json(solve() + kFp32).at("certificate").at("precision"), "fp32");
    EXPECT_EQ(read_dense(path("x.npy")).rows, n);
    const double error =
        expect_json(verb("logdet", "A.mtx") + kFp32).at("log_determinant_error").get<double>();
    EXPECT_LE(error, std::ldexp(static_cast<double>(8 * n), -24)) << "a condition of 1";
    expect_done(verb("factor", "A.mtx", "F") + kFp32);
    expect_done(verb("variances", "F", "v.npy"));
  }
}

}  // namespace
}  // namespace strata::test
