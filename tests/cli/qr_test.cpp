// strata qr and strata lstsq: files in, files out, JSON and exit statuses.

#include <cmath>
#include <filesystem>
#include <fstream>

#include "strata/qr.hpp"
#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

class CliQr : public testing::Test {
 protected:
  static constexpr std::int64_t kRows = 300;
  static constexpr std::int64_t kColumns = 6;

  CliQr() {
    for (std::size_t i = 0; i < v.values.size(); ++i) v.values[i] = random_uniform(1, i) - 0.5;
    for (std::int64_t i = 0; i < kRows; ++i) v.view()(i, 4) = v.view()(i, 2);
    write_npy(path("V.npy"), std::as_const(v).view());
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Outcome strata(Words words) const { return run_program(words + small_device()); }

  Scratch scratch;
  DenseMatrix<double> v{std::vector<double>(kRows * kColumns), kRows, kColumns};
};

TEST_F(CliQr, WritesQAndRAndSaysWhatItFound) {
  const Outcome outcome =
      strata({"qr", path("V.npy"), "-o", path("Q.npy"), "--r", path("R.npy"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out);
  EXPECT_EQ(object["qr"]["rank"], 5);
  EXPECT_EQ(object["qr"]["dependent_columns"], Json::array({4}));
  EXPECT_EQ(object["qr"]["ok"], true);
  EXPECT_EQ(object["qr"]["orthogonality_measured"], true);
  EXPECT_LE(object["qr"]["orthogonality"].get<double>(), 1e-14);
  EXPECT_EQ(object["traffic"]["host_to_device_bytes"],
            object["planned_traffic"]["host_to_device_bytes"]);
  const DenseMatrix<double> q = read_dense(path("Q.npy"));
  const DenseMatrix<double> r = read_dense(path("R.npy"));
  ASSERT_EQ(q.cols, 5);
  ASSERT_EQ(r.rows, 5);
  ASSERT_EQ(r.cols, 6);
  for (std::int64_t j = 0; j < kColumns; ++j) {
    for (std::int64_t i = 0; i < kRows; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < 5; ++k) sum += q.view()(i, k) * r.view()(k, j);
      EXPECT_NEAR(sum, v.view()(i, j), 1e-14);
    }
  }
}

TEST_F(CliQr, FillsQAndTakesEveryMethodAndTellsInText) {
  const Outcome filled =
      strata({"qr", path("V.npy"), "-o", path("Q.npy"), "--dependent", "fill", "--no-verify"});
  ASSERT_EQ(filled.status, 0) << filled.err;
  EXPECT_EQ(read_dense(path("Q.npy")).cols, 6);
  EXPECT_NE(filled.out.find("dependent columns 4"), std::string::npos) << filled.out;
  // A duplicate column is what plain Cholesky QR cannot take: it says so.
  const Outcome plain = strata({"qr", path("V.npy"), "--method", "cholqr"});
  EXPECT_EQ(plain.status, 1);
  EXPECT_NE(plain.err.find("failed pivot"), std::string::npos) << plain.err;
  const Outcome unknown = strata({"qr", path("V.npy"), "--method", "householder"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("shifted-cholqr3"), std::string::npos) << unknown.err;
}

TEST_F(CliQr, FormsWideSumsByWhatItIsTold) {
  for (const std::string sums : {"auto", "extraction", "digits"}) {
    const Outcome outcome =
        strata({"qr", path("V.npy"), "--r", path(sums + ".npy"), "--wide-sums", sums, "--json"});
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    const Json object = Json::parse(outcome.out);
    EXPECT_EQ(object["qr"]["dependent_columns"], Json::array({4})) << sums;
    EXPECT_LE(object["qr"]["orthogonality"].get<double>(), 1e-14) << sums;
    const Outcome solved =
        strata({"lstsq", path("V.npy"), path("V.npy"), "-o", path("x.npy"), "--wide-sums", sums});
    EXPECT_EQ(solved.status, 1) << solved.err;  // a column depends on others
  }
  const DenseMatrix<double> plain = read_dense(path("extraction.npy"));
  EXPECT_EQ(read_dense(path("auto.npy")).values, plain.values);  // on a CPU
  const DenseMatrix<double> digits = read_dense(path("digits.npy"));
  for (std::size_t k = 0; k < plain.values.size(); ++k)
    EXPECT_NEAR(digits.values[k], plain.values[k], 1e-15 * std::abs(plain.values[0]));
  const Outcome unknown = strata({"qr", path("V.npy"), "--wide-sums", "slices"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("extraction"), std::string::npos) << unknown.err;
}

/// V in C order, as NumPy writes it.
void write_by_rows(const std::string& path, const DenseMatrix<double>& v) {
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" +
                       std::to_string(v.rows) + ", " + std::to_string(v.cols) + "), }";
  header.resize(118 - 1, ' ');
  header += '\n';
  std::ofstream file(path, std::ios::binary);
  file << "\x93NUMPY" << '\x01' << '\x00' << '\x76' << '\x00' << header;
  for (std::int64_t i = 0; i < v.rows; ++i) {
    for (std::int64_t j = 0; j < v.cols; ++j)
      file.write(reinterpret_cast<const char*>(v.values.data() + i + j * v.rows), 8);
  }
}

TEST_F(CliQr, ReadsRowsOneAfterTheOther) {
  write_by_rows(path("C.npy"), v);
  ASSERT_EQ(strata({"qr", path("V.npy"), "-o", path("Q.npy"), "--r", path("R.npy")}).status, 0);
  const Outcome outcome =
      strata({"qr", path("C.npy"), "-o", path("Q2.npy"), "--r", path("R2.npy")});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(read_dense(path("Q.npy")).values, read_dense(path("Q2.npy")).values);
  EXPECT_EQ(read_dense(path("R.npy")).values, read_dense(path("R2.npy")).values);
  const Outcome solved = strata({"lstsq", path("C.npy"), path("C.npy"), "-o", path("x.npy")});
  ASSERT_EQ(solved.status, 1) << solved.err;  // a column depends on others
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  for (std::int64_t j : {0, 1, 2, 3, 5})
    EXPECT_NEAR(x.values[static_cast<std::size_t>(7 * j)], 1, 1e-14);
}

/// Q goes from the mapped V into a mapped file: 96 MB each, with room for neither in memory.
TEST_F(CliQr, StreamsFromFileToFile) {
#ifdef STRATA_SANITIZED
  GTEST_SKIP() << "sanitizers take memory of their own";
#endif
  constexpr std::int64_t kMany = 2000000;
  DenseMatrix<double> large{std::vector<double>(kMany * kColumns), kMany, kColumns};
  for (std::size_t i = 0; i < large.values.size(); ++i)
    large.values[i] = random_uniform(3, i) - 0.5;
  for (std::int64_t i = 0; i < kMany; ++i) large.view()(i, 3) = large.view()(i, 1);
  write_npy(path("L.npy"), std::as_const(large).view());
  const std::string command = "ulimit -d 88000; OPENBLAS_NUM_THREADS=1 " STRATA_CLI " qr " +
                              path("L.npy") + " -o " + path("Q.npy") + " --r " + path("R.npy") +
                              " --devices host:1 --device-memory 4MiB --json > " + path("out.json");
  ASSERT_EQ(std::system(command.c_str()), 0);
  const Json object = Json::parse(slurp(path("out.json")));
  EXPECT_EQ(object["qr"]["dependent_columns"], Json::array({3}));
  for (const char* link : {"host_to_device_bytes", "device_to_host_bytes"})
    EXPECT_EQ(object["traffic"][link], object["planned_traffic"][link]);
  const NpyFile file(path("Q.npy"));
  ASSERT_EQ(file.cols(), 5);
  // The bits are those of a Q in memory.
  DenseMatrix<double> r{std::vector<double>(kColumns * kColumns), kColumns, kColumns};
  (void)qr(large.view(), r.view());
  EXPECT_TRUE(std::equal(large.values.begin(), large.values.begin() + 5 * kMany,
                         static_cast<const double*>(file.elements())));
  EXPECT_EQ(scratch.files(), 5U);  // nothing temporary is left
}

TEST_F(CliQr, FindsRAloneInOneReading) {
  for (std::int64_t i = 0; i < kRows; ++i)
    v.view()(i, 4) += 1e-9 * random_uniform(2, static_cast<std::uint64_t>(i));
  write_npy(path("V.npy"), std::as_const(v).view());
  const Outcome outcome = strata({"qr", path("V.npy"), "--r-only", "--r", path("R.npy"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out);
  EXPECT_EQ(object["qr"]["rank"], 6);
  EXPECT_EQ(object["qr"]["passes"], 1);
  EXPECT_TRUE(object["qr"]["orthogonality"].is_null());
  EXPECT_LE(object["traffic"]["host_to_device_bytes"].get<std::int64_t>(),
            kRows * kColumns * 8 + 1000);
  const DenseMatrix<double> r = read_dense(path("R.npy"));
  for (std::int64_t j = 0; j < kColumns; ++j) {
    double square_of_v = 0;
    double square_of_r = 0;
    for (std::int64_t i = 0; i < kRows; ++i) square_of_v += v.view()(i, j) * v.view()(i, j);
    for (std::int64_t i = 0; i < kColumns; ++i) square_of_r += r.view()(i, j) * r.view()(i, j);
    EXPECT_NEAR(square_of_r, square_of_v, 1e-13 * square_of_v);
  }
  const Outcome text = strata({"qr", path("V.npy"), "--r-only"});
  EXPECT_NE(text.out.find("R of 300 by 6 in 1 pass"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("orthogonality"), std::string::npos) << text.out;
  EXPECT_EQ(strata({"qr", path("V.npy"), "--r-only", "-o", path("Q.npy")}).status, 2);
  EXPECT_EQ(strata({"qr", path("V.npy"), "--r-only", "--method", "mgs"}).status, 2);
}

TEST_F(CliQr, TakesSketchesBySeedAndAToleranceForRank) {
  const Outcome first = strata({"qr", path("V.npy"), "--method", "tsqr", "--json"});
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(Json::parse(first.out)["qr"]["numerical_rank"], 5);
  EXPECT_EQ(strata({"qr", path("V.npy"), "--seed", "300000000"}).status, 2);
  EXPECT_EQ(strata({"qr", path("V.npy"), "--rank-tolerance", "2"}).status, 2);
  // Methods that know nothing of these say so.
  for (const char* method : {"tsqr", "cholqr2", "mgs"})
    expect_refused({"qr", path("V.npy"), "--method", method, "--rank-tolerance", "1e-10"}, 2,
                   {"--rank-tolerance is an option of --method auto"});
  expect_refused({"qr", path("V.npy"), "--method", "tsqr", "--dependent", "drop"}, 2,
                 {"--dependent drop", "tsqr"});
  EXPECT_EQ(strata({"qr", path("V.npy"), "--method", "tsqr", "--dependent", "fill"}).status, 0);
  const Outcome near = strata({"qr", path("V.npy"), "--rank-tolerance", "1e-12", "--json"});
  ASSERT_EQ(near.status, 0) << near.err;
  EXPECT_EQ(Json::parse(near.out)["qr"]["rank"], 5);
}

TEST_F(CliQr, PlansWithoutData) {
  const Words emulated{"--devices", "emulated:2", "--device-memory", "2GiB"};
  const Outcome outcome =
      run_program(Words{"plan", "qr", "--m", "1e8", "--n", "20", "--json"} + emulated);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out);
  EXPECT_EQ(object["rows"], 100000000);
  EXPECT_GE(object["planned_traffic"]["host_to_device_bytes"].get<std::int64_t>(), 16000000000);
  EXPECT_GT(object["predicted_seconds"].get<double>(), 0);
  const Outcome alone =
      run_program(Words{"plan", "qr", "--m", "1e8", "--n", "20", "--r-only", "--json"} + emulated);
  ASSERT_EQ(alone.status, 0) << alone.err;
  EXPECT_LE(Json::parse(alone.out)["planned_traffic"]["device_to_host_bytes"].get<std::int64_t>(),
            1 << 20);
  EXPECT_EQ(run_program(Words{"plan", "qr", "--m", "1.5", "--n", "20"} + emulated).status, 2);
  EXPECT_EQ(run_program(Words{"plan", "qr", "--m", "10", "--n", "20"} + emulated).status, 2);
  const Outcome text = run_program(Words{"plan", "qr", "--m", "1e6", "--n", "20"} + emulated);
  EXPECT_NE(text.out.find("qr of 1000000 by 20"), std::string::npos) << text.out;
}

TEST_F(CliQr, BadInputIsNamed) {
  v.view()(17, 3) = std::nan("");
  write_npy(path("bad.npy"), std::as_const(v).view());
  const Outcome bad = strata({"qr", path("bad.npy"), "-o", path("none.npy")});
  EXPECT_EQ(bad.status, 3);
  EXPECT_NE(bad.err.find("17, 3"), std::string::npos) << bad.err;
  EXPECT_FALSE(std::filesystem::exists(path("none.npy")));
  const DenseMatrix<double> wide{std::vector<double>(6, 1.0), 2, 3};
  write_npy(path("wide.npy"), wide.view());
  EXPECT_EQ(strata({"qr", path("wide.npy")}).status, 2);
  EXPECT_EQ(strata({"qr", path("V.npy"), "-o", path("Q.csv")}).status, 2);
}

TEST_F(CliQr, XHasTheDimensionsOfB) {
  const DenseMatrix<double> a = random_columns(30, 3, 5);
  write_npy(path("A.npy"), a.view());
  write_npy(path("b1.npy"), std::span<const double>(a.values.data(), 30));
  write_npy(path("b2.npy"), MatrixView<const double>{a.values.data(), 30, 1, 30});
  for (const int d : {1, 2}) {
    ASSERT_EQ(
        strata({"lstsq", path("A.npy"), path(d == 1 ? "b1.npy" : "b2.npy"), "-o", path("xd.npy")})
            .status,
        0);
    EXPECT_EQ(NpyFile(path("xd.npy")).dimensions(), d);
  }
}

TEST_F(CliQr, ReflectionsWriteAColumnForOneOfZerosAndStateNoCondition) {
  for (std::int64_t i = 0; i < kRows; ++i) v.view()(i, 1) = 0;
  write_npy(path("Z.npy"), std::as_const(v).view().block(0, 0, kRows, 4));
  for (const char* method : {"tsqr", "tsqr-flat"}) {
    const Words words{"qr",  path("Z.npy"), "-o",       path("Q.npy"),
                      "--r", path("R.npy"), "--method", method};
    const Json told = expect_json(words)["qr"];
    EXPECT_TRUE(told["condition"].is_null());
    EXPECT_EQ(told["rank"], 3);
    EXPECT_EQ(told["numerical_rank"], 3);
    EXPECT_EQ(read_dense(path("Q.npy")).cols, 4);
    EXPECT_EQ(read_dense(path("R.npy")).rows, 4);
    const std::string text = expect_done(words);
    expect_pieces(text, {"condition         not known", "rank              3\n"});
    EXPECT_EQ(text.find("numerical rank"), std::string::npos) << text;
  }
}

/// R cannot have the digits that a column of subnormal numbers asks for.
TEST_F(CliQr, WhatIsNotMadeIsNotWritten) {
  for (std::int64_t i = 0; i < kRows; ++i) v.view()(i, 3) *= 1e-318;
  write_npy(path("tiny.npy"), std::as_const(v).view());
  const Outcome outcome =
      strata({"qr", path("tiny.npy"), "-o", path("none.npy"), "--r", path("no_r.npy")});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("residual"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.out.find("written"), std::string::npos) << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(path("none.npy")));
  EXPECT_FALSE(std::filesystem::exists(path("no_r.npy")));
}

TEST_F(CliQr, LstsqSolvesAndNamesItsBound) {
  DenseMatrix<double> b{std::vector<double>(kRows), kRows, 1};
  for (std::int64_t i = 0; i < kRows; ++i) b.view()(i, 0) = 2 * v.view()(i, 0) - 3 * v.view()(i, 5);
  write_npy(path("b.npy"), std::as_const(b).view());
  const Outcome outcome =
      strata({"lstsq", path("V.npy"), path("b.npy"), "-o", path("x.npy"), "--json"});
  ASSERT_EQ(outcome.status, 1) << outcome.err;  // a column depends on others
  expect_complaint(outcome, 1, {"column 4 of A (counted from 0) depends on", "x is one of many"});
  const Json object = Json::parse(outcome.out);
  EXPECT_EQ(object["lstsq"]["rank"], 5);
  EXPECT_LE(object["lstsq"]["error_bound"].get<double>(), 1e-14);
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  ASSERT_EQ(x.rows, kColumns);
  const double expected[] = {2, 0, 0, 0, 0, -3};
  for (std::int64_t j = 0; j < kColumns; ++j) EXPECT_NEAR(x.view()(j, 0), expected[j], 1e-14) << j;
  const Outcome text = strata({"lstsq", path("V.npy"), path("b.npy"), "-o", path("x.npy")});
  EXPECT_NE(text.out.find("error bound"), std::string::npos) << text.out;
  // Without a file x is shown, and R goes where it is asked for.
  const Outcome shown = strata({"lstsq", path("V.npy"), path("b.npy"), "--r", path("R.npy")});
  EXPECT_EQ(shown.status, 1) << shown.err;
  EXPECT_NE(shown.out.find("x = 2, "), std::string::npos) << shown.out;
  const DenseMatrix<double> r = read_dense(path("R.npy"));
  ASSERT_EQ(r.cols, kColumns);
  double of_r = 0;
  double of_v = 0;
  for (std::int64_t i = 0; i < kColumns; ++i) of_r += r.view()(i, 1) * r.view()(i, 1);
  for (std::int64_t i = 0; i < kRows; ++i) of_v += v.view()(i, 1) * v.view()(i, 1);
  EXPECT_NEAR(of_r / of_v, 1, 1e-14);
  const Outcome in_json = strata({"lstsq", path("V.npy"), path("b.npy"), "--json"});
  ASSERT_EQ(in_json.status, 1) << in_json.err;
  EXPECT_EQ(Json::parse(in_json.out)["lstsq"]["x"].get<std::vector<double>>(), x.values);
  EXPECT_EQ(strata({"lstsq", path("V.npy"), path("b.npy"), "--r", path("R.csv")}).status, 2);
}

TEST_F(CliQr, LstsqNamesSeveralDependentColumns) {
  DenseMatrix<double> a = random_columns(9, 4, 5);
  for (std::int64_t i = 0; i < 9; ++i) a.view()(i, 1) = a.view()(i, 3) = a.view()(i, 0);
  write_npy(path("a.npy"), std::as_const(a).view());
  write_npy(path("b.npy"), random_columns(9, 1, 6).view());
  expect_complaint(strata({"lstsq", path("a.npy"), path("b.npy")}), 1,
                   {"columns 1, 3 of A (counted from 0) depend on those before them"});
}

/// The same lengths in two units, one of them rounded: x is right for these numbers, and for no
/// others near them.
TEST_F(CliQr, LstsqSaysWhereNoDigitFollowsFromRoundedNumbers) {
  DenseMatrix<double> a = random_columns(40, 3, 5);
  write_npy(path("b.npy"), random_columns(40, 1, 6).view());
  const Words lstsq{"lstsq", path("a.npy"), path("b.npy")};
  const std::string note = "no digit of it is sure";
  write_npy(path("a.npy"), std::as_const(a).view());
  EXPECT_EQ(strata(lstsq).out.find(note), std::string::npos);
  EXPECT_EQ(expect_json(lstsq)["lstsq"]["numerically_singular"], false);
  for (std::int64_t i = 0; i < 40; ++i) a.view()(i, 2) = a.view()(i, 1) / 1.609;
  write_npy(path("a.npy"), std::as_const(a).view());
  const Outcome outcome = strata(lstsq);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find(note), std::string::npos) << outcome.out;
  EXPECT_EQ(expect_json(lstsq)["lstsq"]["numerically_singular"], true);
}

TEST_F(CliQr, AnXThatLeavesTheRangeIsStatusOne) {
  const DenseMatrix<double> a{{0x1p-600, 0, 0, 0x1p-600, 0, 0}, 3, 2};
  const DenseMatrix<double> b{{0x1p600, 1, 1}, 3, 1};
  write_npy(path("a.npy"), a.view());
  write_npy(path("b.npy"), b.view());
  const Outcome outcome = strata({"lstsq", path("a.npy"), path("b.npy"), "--json"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.err.find("leave the range"), std::string::npos) << outcome.err;
  const Json told = Json::parse(outcome.out)["lstsq"];
  EXPECT_EQ(told["ok"], false);
  EXPECT_TRUE(told["error_bound"].is_null());
}

/// A small condition is no reason for other unknowns.
TEST_F(CliQr, LstsqSaysThatBIsOrthogonalButForRounding) {
  const auto solved = [this](const std::vector<double>& a, const DenseMatrix<double>& b) {
    const auto rows = static_cast<std::int64_t>(a.size());
    write_npy(path("a.npy"), DenseMatrix<double>{a, rows, 1}.view());
    write_npy(path("b.npy"), b.view());
    const Outcome outcome = strata({"lstsq", path("a.npy"), path("b.npy"), "-o", path("x.npy")});
    EXPECT_EQ(outcome.err.find("unknowns"), std::string::npos) << outcome.err;
    return outcome;
  };
  const std::string orthogonal = "orthogonal to the columns of A but for rounding";
  expect_complaint(solved({1e16, 1}, {{1e-16, -1}, 2, 1}), 1,
                   {"lstsq: b is " + orthogonal, "x is known to no digit"});
  expect_complaint(solved({1e16, 1}, {{1e16, 1, 1e-16, -1}, 2, 2}), 1,
                   {"lstsq: column 1 of b (counted from 0) is " + orthogonal});
  expect_complaint(solved({1e9, 1}, {{1e-9, -1}, 2, 1}), 1,
                   {orthogonal, "the error of x may be ", "e-04 of its size"});
  EXPECT_EQ(solved({1, 1}, {{1, -1}, 2, 1}).status, 0);
}

}  // namespace
}  // namespace strata::test
