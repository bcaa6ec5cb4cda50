#include "io/mtx.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/random.hpp"
#include "scratch.hpp"
#include "strata/io.hpp"

namespace strata {
namespace {

using test::expect_error;
using test::Scratch;

using Values = std::vector<double>;

const std::string kReal = "%%MatrixMarket matrix coordinate real general\n";
const std::string kSymmetric = "%%MatrixMarket matrix coordinate real symmetric\n";
const std::string kSkew = "%%MatrixMarket matrix coordinate real skew-symmetric\n";
const std::string kArray = "%%MatrixMarket matrix array real general\n";

std::vector<double> dense(const std::string& text) {
  return parse_mtx(text, "a.mtx").to_dense().values;
}

TEST(Mtx, ReadsCoordinates) {
  const MatrixMarket a =
      parse_mtx(kReal + "% a comment\n\n2 3 3\n1 1 1.5\n\n 2\t3  -4 \r\n2 1 1e2", "a.mtx");
  EXPECT_EQ(a.rows, 2);
  EXPECT_EQ(a.cols, 3);
  EXPECT_FALSE(a.symmetric);
  EXPECT_FALSE(a.is_array);
  EXPECT_EQ(a.row, (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(a.col, (std::vector<std::int64_t>{0, 2, 0}));
  EXPECT_EQ(a.value, (std::vector<double>{1.5, -4, 100}));
  EXPECT_EQ(a.to_dense().values, (std::vector<double>{1.5, 100, 0, 0, 0, -4}));
}

TEST(Mtx, ReadsIntegersPatternsAndOddBanners) {
  EXPECT_EQ(dense("%%MatrixMarket matrix coordinate integer general\n1 2 1\n1 2 7\n"),
            (std::vector<double>{0, 7}));
  EXPECT_EQ(dense("%%MatrixMarket matrix coordinate pattern general\n2 2 2\n1 2\n2 1\n"),
            (std::vector<double>{0, 1, 1, 0}));
  EXPECT_EQ(dense("%MatrixMarket MATRIX Coordinate REAL General\n1 1 1\n1 1 3"),
            (std::vector<double>{3}));
  EXPECT_EQ(dense(kReal + "0 0 0\n"), std::vector<double>{});
}

TEST(Mtx, SumsRepeatedEntriesAndFillsBothTriangles) {
  EXPECT_EQ(dense(kReal + "1 1 3\n1 1 1\n1 1 2\n1 1 4\n"), (std::vector<double>{7}));
  EXPECT_EQ(dense(kSymmetric + "2 2 4\n1 1 1\n2 1 3\n2 1 0.5\n2 2 9\n"),
            (std::vector<double>{1, 3.5, 3.5, 9}));
  EXPECT_EQ(dense(kSkew + "2 2 1\n2 1 3\n"), (std::vector<double>{0, 3, -3, 0}));
}

// A file that stores the upper triangle means the same matrix.
TEST(Mtx, TurnsTheUpperTriangleIntoTheLower) {
  const MatrixMarket a = parse_mtx(kSymmetric + "3 3 2\n1 3 5\n2 2 1\n", "a.mtx");
  EXPECT_TRUE(a.symmetric);
  EXPECT_EQ(a.row, (std::vector<std::int64_t>{2, 1}));
  EXPECT_EQ(a.col, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(dense(kSkew + "2 2 1\n1 2 3\n"), (std::vector<double>{0, -3, 3, 0}));
  // Each pair once, in either triangle; in both it may be meant twice or once.
  EXPECT_EQ(dense(kSymmetric + "3 3 3\n2 1 5\n2 2 1\n1 3 4\n"),
            (std::vector<double>{0, 5, 4, 5, 1, 0, 4, 0, 0}));
  EXPECT_EQ(dense(kSkew + "3 3 3\n2 1 5\n1 3 4\n3 2 7\n"),
            (std::vector<double>{0, 5, -4, -5, 0, 7, 4, -7, 0}));
  EXPECT_EQ(dense(kSymmetric + "3 3 3\n2 1 5\n3 2 1\n2 1 4\n"),  // summed, as ever
            (std::vector<double>{0, 9, 0, 9, 0, 1, 0, 1, 0}));
  for (const char* entries : {"2 1 5\n3 1 1\n1 2 5\n", "1 2 5\n3 1 1\n2 1 4\n"})
    expect_error(ErrorKind::input, {"a.mtx", "pair once", "(2, 1)", "(1, 2)"},
                 [&] { (void)parse_mtx(kSymmetric + "3 3 3\n" + entries, "a.mtx"); });
}

TEST(Mtx, BecomesASparseMatrix) {
  const auto sparse = [](const std::string& text) { return parse_mtx(text, "a.mtx").to_sparse(); };
  const SparseMatrix a = sparse(kReal + "2 3 4\n2 3 -4\n1 1 1.5\n2 1 1\n2 1 2\n");
  EXPECT_EQ(a.rows, 2);
  EXPECT_EQ(a.cols, 3);
  EXPECT_EQ(a.start, (std::vector<std::int64_t>{0, 1, 3}));
  EXPECT_EQ(a.column, (std::vector<std::int32_t>{0, 0, 2}));
  EXPECT_EQ(a.value, (std::vector<double>{1.5, 3, -4}));
  const SparseMatrix s = sparse(kSymmetric + "2 2 2\n1 1 5\n2 1 7\n");
  EXPECT_EQ(s.column, (std::vector<std::int32_t>{0, 1, 0}));
  EXPECT_EQ(s.value, (std::vector<double>{5, 7, 7}));
  EXPECT_EQ(sparse(kSkew + "2 2 1\n2 1 7\n").value, (std::vector<double>{-7, 7}));
  const SparseMatrix d = sparse(kArray + "2 2\n1\n0\n0\n4\n");
  EXPECT_EQ(d.column, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(d.value, (std::vector<double>{1, 4}));
}

TEST(Mtx, ReadsArrays) {
  EXPECT_EQ(dense(kArray + "2 2\n1\n2\n3\n4\n"), (std::vector<double>{1, 2, 3, 4}));
  const MatrixMarket a =
      parse_mtx("%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", "a.mtx");
  EXPECT_TRUE(a.is_array && a.symmetric);
  EXPECT_EQ(a.entries(), 6);
  EXPECT_EQ(a.to_dense().values, (std::vector<double>{1, 2, 3, 2, 4, 5, 3, 5, 6}));
  EXPECT_EQ(dense("%%MatrixMarket matrix array integer skew-symmetric\n3 3\n1\n2\n3\n"),
            (std::vector<double>{0, 1, 2, -1, 0, 3, -2, -3, 0}));
  EXPECT_EQ(dense("%%MatrixMarket matrix array real skew-symmetric\n0 0\n"), std::vector<double>{});
}

TEST(Mtx, ReadsWhatProgramsWriteBesideTheFormat) {
  const std::string body = "2 2 3\n1 1 4\n2 1 1\n2 2 5\n";
  const std::vector<double> expected{4, 1, 1, 5};
  for (const std::string& text : std::vector<std::string>{
           kSymmetric + body, "\xEF\xBB\xBF" + kSymmetric + body,
           "%%MatrixMarket matrix coordinate real hermitian\n" + body,
           "%%MatrixMarket matrix coordinate integer hermitian\n" + body,
           kSymmetric + "  % c\n" + body, kSymmetric + "\t%\n%\n" + body,
           kSymmetric + "2 2 3 % sizes\n1 1 4 %\n2 1 1 % one\n2 2 5\n % last\n"}) {
    EXPECT_EQ(dense(text), expected) << text;
  }
  EXPECT_EQ(dense(kSymmetric + "2 2 3 % sizes\n1 1 4.0D+00 % d\n2 1 1d0\n2 2 5\n % last\n"),
            expected);
  const Scratch scratch;
  std::string wide = "\xFF\xFE";
  for (const char c : kSymmetric + body) {
    wide += c;
    wide += '\0';
  }
  EXPECT_EQ(read_mtx(scratch.put("a.mtx", wide)).to_dense().values, expected);
}

TEST(Mtx, IntegersAreIntegers) {
  const std::string banner = "%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 ";
  const struct {
    const char* text;
    double value;
  } fine[] = {{"7", 7},
              {"-3", -3},
              {"4.0", 4},
              {"1e3", 1000},
              {"9007199254740992", 0x1p53},
              {"9007199254740994", 0x1p53 + 2},
              {"-9223372036854775808", -0x1p63}};
  for (const auto& c : fine) EXPECT_EQ(dense(banner + c.text + "\n"), Values{c.value}) << c.text;
  for (const char* text : {"4.5", "1e-3", "0.5"})
    expect_error(ErrorKind::input, {"line 3", text, "not an integer"},
                 [&] { (void)dense(banner + text + "\n"); });
  for (const char* text : {"9007199254740993", "9223372036854775807", "-9007199254740993"})
    expect_error(ErrorKind::input, {"line 3", text, "cannot hold"},
                 [&] { (void)dense(banner + text + "\n"); });
}

TEST(Mtx, ATriangleIsTakenAsTheSymmetricMatrix) {
  const auto taken = [](const std::string& text, Triangle triangle) {
    MatrixMarket a = parse_mtx(text, "a.mtx");
    a.take_triangle(triangle, "a.mtx");
    EXPECT_TRUE(a.symmetric);
    return a.to_dense().values;
  };
  const std::string both = kReal + "2 2 5\n1 1 4\n1 2 7\n2 1 1\n2 2 5\n1 2 1\n";
  EXPECT_EQ(taken(both, Triangle::lower), (Values{4, 1, 1, 5}));
  EXPECT_EQ(taken(both, Triangle::upper), (Values{4, 8, 8, 5}));
  const std::string array = kArray + "3 3\n1\n2\n3\n4\n5\n6\n7\n8\n9\n";
  EXPECT_EQ(taken(array, Triangle::lower), (Values{1, 2, 3, 2, 5, 6, 3, 6, 9}));
  EXPECT_EQ(taken(array, Triangle::upper), (Values{1, 4, 7, 4, 5, 8, 7, 8, 9}));
  EXPECT_EQ(taken(kSymmetric + "2 2 2\n1 1 4\n2 1 1\n", Triangle::upper), (Values{4, 1, 1, 0}));
  EXPECT_EQ(taken(kReal + "2 2 1\n1 1 4\n", Triangle::upper), (Values{4, 0, 0, 0}));
  expect_error(ErrorKind::input, {"a.mtx", "nothing above"},
               [&] { taken(kReal + "2 2 2\n1 1 4\n2 1 1\n", Triangle::upper); });
  expect_error(ErrorKind::input, {"a.mtx", "nothing below"},
               [&] { taken(kArray + "2 2\n1\n0\n3\n4\n", Triangle::lower); });
  expect_error(ErrorKind::misuse, {"2 by 3"},
               [&] { taken(kReal + "2 3 1\n1 1 4\n", Triangle::lower); });
  expect_error(ErrorKind::misuse, {"skew"},
               [&] { taken(kSkew + "2 2 1\n2 1 4\n", Triangle::lower); });
}

TEST(Mtx, RefusesMalformedFiles) {
  const struct {
    std::string text;
    const char* says;
  } cases[] = {
      {"", "not a Matrix Market"},
      {"1 1 1\n", "not a Matrix Market"},
      {"%%MatrixMarket vector coordinate real general\n", "'vector'"},
      {"%%MatrixMarket matrix banded real general\n", "'banded'"},
      {"%%MatrixMarket matrix coordinate quaternion general\n", "'quaternion'"},
      {"%%MatrixMarket matrix coordinate complex general\n", "sizes is missing"},
      {"%%MatrixMarket matrix coordinate complex hermitian\n2 3 1\n", "2 × 3"},
      {"%%MatrixMarket matrix coordinate complex triangular\n", "'triangular'"},
      {"%%MatrixMarket matrix coordinate real triangular\n", "'triangular'"},
      {"%%MatrixMarket matrix coordinate real\n", "''"},
      {"%%MatrixMarket matrix array pattern general\n", "pattern"},
      {kReal, "sizes is missing"},
      {kReal + "2 2\n", "''"},
      {kReal + "2 -2 1\n", "'-2'"},
      {kReal + "2 2.0 1\n", "'2.0'"},
      {kReal + "2 2 1 1\n", "unexpected text '1'"},
      {kReal + "2 9223372036854775808 1\n", "'9223372036854775808'"},
      {kSymmetric + "2 3 0\n", "2 × 3"},
      {kReal + "2 2 1000000000000000000\n1 1 1\n", "1000000000000000000 entries announced"},
      {kReal + "9 9 9223372036854775807\n1 1 1\n", "bytes follow"},
      {kArray + "4611686018427387904 4\n1\n", "more than any file"},
      {kArray + "1000000000 1000000000\n1\n", "bytes follow"},
      {kArray + "9223372036854775807 1\n1\n", "more than any file"},
      {"%%MatrixMarket matrix array real symmetric\n9223372036854775807 9223372036854775807\n1\n",
       "more than any file"},
      {kReal + "2 2 2\n1 1 1.25\n1 2 \n", "value is missing"},
      {kReal + "2 2 2\n1 1 1.25\n\n     \n", "2 entries announced, 1 found"},
      {kReal + "2 2 1\n1 1 1\n2 2 2\n", "line 4: more than the 1 entries"},
      {kReal + "2 2 1\n0 1 1\n", "line 3: row 0 is outside 1 ... 2"},
      {kReal + "2 2 1\n1 3 1\n", "column 3 is outside 1 ... 2"},
      {kReal + "2 2 1\n-1 1 1\n", "row -1"},
      {kReal + "2 2 1\n1.0 1 1\n", "'1.0' is not a row number"},
      {kReal + "2 2 1\n1 x 1\n", "'x' is not a column number"},
      {kReal + "2 2 1\n1 1 1 7\n", "unexpected text '7'"},
      {kReal + "2 2 1\n1 1 nan\n", "line 3: 'nan' is not a finite number"},
      {kReal + "2 2 1\n1 1 1e999\n", "too large"},
      {kReal + "2 2 1\n1 1 abc\n", "'abc' is not a number"},
      {kSkew + "2 2 1\n1 1 3\n", "no diagonal entry (1, 1)"},
  };
  for (const auto& c : cases) {
    expect_error(ErrorKind::input, {"bad.mtx", c.says},
                 [&] { (void)parse_mtx(c.text, "bad.mtx"); });
  }
}

TEST(Mtx, RefusesDenseCopiesPastMemory) {
  const MatrixMarket a = parse_mtx(kReal + "4000000000 4000000000 1\n1 1 1\n", "a.mtx");
  expect_error(ErrorKind::memory, {"4000000000 × 4000000000"}, [&] { (void)a.to_dense(); });
}

TEST(Mtx, ReadsBackWhatItWrites) {
  const Scratch scratch;
  std::vector<double> values(37 * 11);
  for (std::size_t k = 0; k < values.size(); ++k) values[k] = random_normal(3, k) * 1e-7;
  for (const char* name : {"a.mtx", "a.mtx.gz"}) {
    write_mtx(scratch.path(name), MatrixView<const double>{values.data(), 37, 11, 37});
    const MatrixMarket a = read_mtx(scratch.path(name));
    EXPECT_TRUE(a.is_array);
    EXPECT_EQ(a.rows, 37);
    EXPECT_EQ(a.cols, 11);
    EXPECT_EQ(a.value, values);
  }
  write_mtx(scratch.path("v.mtx"), std::vector<double>{1, 0.1});
  EXPECT_EQ(test::slurp(scratch.path("v.mtx")),
            "%%MatrixMarket matrix array real general\n2 1\n1\n0.1\n");
  const std::vector<float> floats{1, 0.1F};
  write_mtx(scratch.path("f.mtx"), MatrixView<const float>{floats.data(), 2, 1, 2});
  EXPECT_EQ(test::slurp(scratch.path("f.mtx")), test::slurp(scratch.path("v.mtx")));
}

TEST(Mtx, WritesTheLowerTriangleOfASparseMatrix) {
  const test::Scratch scratch;
  const std::string file = scratch.path("s.mtx");
  const std::vector<std::int64_t> row{0, 2, 2, 0, 1};
  const std::vector<std::int64_t> col{0, 2, 0, 2, 1};
  const std::vector<double> value{1, 0.1, -3, -3, 1e-300};
  write_symmetric_mtx(file, sparse_from_entries(3, 3, row, col, value));
  EXPECT_EQ(test::slurp(file),
            "%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n2 2 1e-300\n3 1 -3\n3 "
            "3 0.1\n");
  const MatrixMarket read = read_mtx(file);
  EXPECT_TRUE(read.symmetric);
  EXPECT_EQ(read.to_sparse().value, (std::vector<double>{1, -3, 1e-300, -3, 0.1}));
  write_symmetric_mtx(file, SparseMatrix{});
  EXPECT_EQ(read_mtx(file).rows, 0);
  test::expect_error(ErrorKind::misuse, {"2 by 3"},
                     [&] { write_symmetric_mtx(file, sparse_from_entries(2, 3, {}, {}, {})); });
}

// The real sets: what their catalogue says of them.
TEST(Mtx, ReadsRealMatrices) {
  const std::filesystem::path folder =
      std::filesystem::path(STRATA_SOURCE_DIR) / "../shared/data/sparse";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no real matrices beside the source tree";
  const struct {
    const char* file;
    std::int64_t n;
    std::int64_t entries;
  } cases[] = {{"1138_bus.mtx.gz", 1138, 2596},
               {"Trefethen_2000.mtx.gz", 2000, 21953},
               {"bcsstk16.mtx.gz", 4884, 147631},
               {"mdual_laplacian.mtx.gz", 258569, 771701}};
  for (const auto& c : cases) {
    const MatrixMarket a = read_mtx((folder / c.file).string());
    EXPECT_EQ(a.rows, c.n) << c.file;
    EXPECT_EQ(a.cols, c.n) << c.file;
    EXPECT_EQ(a.entries(), c.entries) << c.file;
    EXPECT_TRUE(a.symmetric) << c.file;
    for (std::size_t k = 0; k < a.row.size(); ++k) ASSERT_GE(a.row[k], a.col[k]) << c.file;
  }
  // Trefethen: the primes on the diagonal, ones where |i − j| is a power of two.
  const DenseMatrix<double> t = read_mtx((folder / cases[1].file).string()).to_dense();
  const MatrixView<const double> a = t.view();
  EXPECT_EQ(a(0, 0), 2);
  EXPECT_EQ(a(1999, 1999), 17389);
  EXPECT_EQ(a(100, 100 + 512), 1);
  EXPECT_EQ(a(100 + 512, 100), 1);
  EXPECT_EQ(a(100, 103), 0);
}

}  // namespace
}  // namespace strata
