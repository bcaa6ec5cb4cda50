// strata qr and strata lstsq: files in, files out, JSON and exit statuses.

#include <cmath>
#include <filesystem>

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
  const json object = json::parse(outcome.out);
  EXPECT_EQ(object["qr"]["rank"], 5);
  EXPECT_EQ(object["qr"]["dependent_columns"], json::array({4}));
  EXPECT_TRUE(object["qr"]["ok"]);
  EXPECT_TRUE(object["qr"]["orthogonality_measured"]);
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
  EXPECT_NE(plain.err.find("failed pivots"), std::string::npos) << plain.err;
  const Outcome unknown = strata({"qr", path("V.npy"), "--method", "householder"});
  EXPECT_EQ(unknown.status, 2);
  EXPECT_NE(unknown.err.find("shifted-cholqr3"), std::string::npos) << unknown.err;
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

TEST_F(CliQr, LstsqSolvesAndNamesItsBound) {
  DenseMatrix<double> b{std::vector<double>(kRows), kRows, 1};
  for (std::int64_t i = 0; i < kRows; ++i) b.view()(i, 0) = 2 * v.view()(i, 0) - 3 * v.view()(i, 5);
  write_npy(path("b.npy"), std::as_const(b).view());
  const Outcome outcome =
      strata({"lstsq", path("V.npy"), path("b.npy"), "-o", path("x.npy"), "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json object = json::parse(outcome.out);
  EXPECT_EQ(object["lstsq"]["rank"], 5);
  EXPECT_LE(object["lstsq"]["error_bound"].get<double>(), 1e-14);
  const DenseMatrix<double> x = read_dense(path("x.npy"));
  ASSERT_EQ(x.rows, kColumns);
  const double expected[] = {2, 0, 0, 0, 0, -3};
  for (std::int64_t j = 0; j < kColumns; ++j) EXPECT_NEAR(x.view()(j, 0), expected[j], 1e-14) << j;
  const Outcome text = strata({"lstsq", path("V.npy"), path("b.npy"), "-o", path("x.npy")});
  EXPECT_NE(text.out.find("error bound"), std::string::npos) << text.out;
  EXPECT_EQ(strata({"lstsq", path("V.npy"), path("V.npy")}).status, 2);  // nowhere to go
}

}  // namespace
}  // namespace strata::test
