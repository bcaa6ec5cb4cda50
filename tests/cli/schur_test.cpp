// strata schur beside an elimination in long doubles.

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <tuple>

#include "tests/cli/sparse_system.hpp"

namespace strata::test {
namespace {

using Rows = std::vector<std::int64_t>;

/// Every third row from the last down, so that neither the order nor the first rows are plain.
Rows scattered(std::int64_t n, std::int64_t count) {
  Rows rows;
  for (std::int64_t i = 0; i < count; ++i) rows.push_back(n - 1 - (3 * i) % n);
  return rows;
}

std::string joined(const Rows& rows, const std::string& separator) {
  std::string text;
  for (const std::int64_t row : rows) text += (text.empty() ? "" : separator) + std::to_string(row);
  return text;
}

class CliSchur : public SparseSystemFiles {
 protected:
  [[nodiscard]] Words schur(const std::string& keep, const std::string& out = "S.npy",
                            const std::string& matrix = "A.mtx") const {
    return verb("schur", matrix, out) + Words{"--keep", keep};
  }
  /// A_KK − A_KR·A_RR⁻¹·A_RK of A + shift·I, column by column.
  [[nodiscard]] std::vector<long double> expected(const Rows& kept, double shift) const {
    const std::vector<double> full = dense_of(a, shift);
    Rows others;
    for (std::int64_t i = 0; i < a.rows; ++i)
      if (std::find(kept.begin(), kept.end(), i) == kept.end()) others.push_back(i);
    const auto part = [&](const Rows& rows, std::int64_t column) {
      std::vector<double> values;
      for (const std::int64_t row : rows) values.push_back(full[at(row + column * a.rows)]);
      return values;
    };
    std::vector<double> eliminated;
    for (const std::int64_t column : others)
      for (const double value : part(others, column)) eliminated.push_back(value);
    const DenseOracle oracle(eliminated, std::ssize(others));
    EXPECT_EQ(oracle.bad_column, -1);
    std::vector<long double> s;
    for (const std::int64_t column : kept) {
      const std::vector<double> coupling = part(others, column);
      const std::vector<long double> x =
          oracle.solve(std::vector<long double>(coupling.begin(), coupling.end()));
      for (const std::int64_t row : kept) {
        const std::vector<double> of_row = part(others, row);
        s.push_back(full[at(row + column * a.rows)] -
                    std::inner_product(of_row.begin(), of_row.end(), x.begin(), 0.0L));
      }
    }
    return s;
  }
  void expect_complement(const std::string& file, const Rows& kept, double shift = 0) const {
    const DenseMatrix<double> s = read_dense(path(file));
    const auto order = std::ssize(kept);
    ASSERT_EQ(s.rows, order);
    ASSERT_EQ(s.cols, order);
    const std::vector<long double> exact = expected(kept, shift);
    for (std::size_t k = 0; k < exact.size(); ++k)
      ASSERT_NEAR(s.values[k], static_cast<double>(exact[k]), 1e-13) << k;
    for (std::int64_t j = 0; j < order; ++j)
      for (std::int64_t i = 0; i < j; ++i) ASSERT_EQ(s.view()(i, j), s.view()(j, i));
  }
};

TEST_F(CliSchur, IsWhatEliminationLeaves) {
  for (const std::int64_t count : {1, 2, 5, 64, 65}) {
    SCOPED_TRACE(count);
    const Rows kept = scattered(a.rows, count);
    const Json j = expect_json(schur(joined(kept, ",")));
    expect_complement("S.npy", kept);
    EXPECT_EQ(j.at("n"), a.rows);
    EXPECT_EQ(j.at("kept"), count);
    EXPECT_EQ(j.at("eliminated"), a.rows - count);
    EXPECT_EQ(j.at("shift"), 0);
    EXPECT_EQ(j.at("factor").at("ok"), true);
    EXPECT_GT(j.at("tasks"), 0);
    EXPECT_GT(j.at("schur_seconds"), 0);
    for (const char* link : {"host_to_device_bytes", "device_to_host_bytes"})
      EXPECT_EQ(j.at("traffic").at(link), j.at("planned_traffic").at(link));
  }
  // A single row is a matrix, too, and no vector.
  expect_done(schur("7"));
  EXPECT_NE(slurp(path("S.npy")).find("(1, 1)"), std::string::npos);
}

/// det A = det A_RR · det S.
TEST_F(CliSchur, SplitsTheDeterminant) {
  const Rows kept = scattered(a.rows, 17);
  const Json j = expect_json(schur(joined(kept, ",")));
  const DenseMatrix<double> s = read_dense(path("S.npy"));
  const DenseOracle whole(dense_of(a), a.rows);
  const DenseOracle left(s.values, s.rows);
  EXPECT_NEAR(j.at("factor").at("log_determinant").get<double>(),
              static_cast<double>(whole.log_determinant - left.log_determinant), 1e-10);
}

TEST_F(CliSchur, RowsComeInListsAndFiles) {
  const Rows kept = scattered(a.rows, 30);
  expect_done(schur(joined(kept, ",")));
  const std::string same = slurp(path("S.npy"));
  ASSERT_FALSE(same.empty());
  const std::vector<double> numbers(kept.begin(), kept.end());
  write_npy(path("rows.npy"), std::span<const double>(numbers));
  write_mtx(path("rows.mtx"), std::span<const double>(numbers));
  (void)scratch.put("lines", joined(kept, "\n") + "\n");
  (void)scratch.put("mixed.txt", "\r\n " + joined(kept, ", \t") + "\r\n\r\n");
  for (const char* file : {"rows.npy", "rows.mtx", "lines", "mixed.txt"}) {
    SCOPED_TRACE(file);
    expect_done(schur(path(file)));
    EXPECT_EQ(slurp(path("S.npy")), same);
  }
  expect_done(schur(path("lines"), "S.mtx"));
  expect_complement("S.mtx", kept);
}

TEST_F(CliSchur, ShiftsAndOrdersAndReports) {
  const Rows kept = scattered(a.rows, 9);
  const std::string keep = joined(kept, ",");
  EXPECT_EQ(expect_json(schur(keep) + Words{"--shift", "0.75"}).at("shift"), 0.75);
  expect_complement("S.npy", kept, 0.75);
  for (const char* ordering : {"amd", "natural"}) {
    expect_done(schur(keep) + Words{"--ordering", ordering});
    expect_complement("S.npy", kept);
  }
  expect_pieces(expect_done(schur(keep) + Words{"--trace", path("t.json"), "--report",
                                                path("r.html"), "--shift", "0.5"}),
                {"eliminated 201 of 210 rows", "shift", "log determinant", "planned",
                 "Schur complement of order 9 written to " + path("S.npy")});
  EXPECT_GT(json_of(slurp(path("t.json"))).at("traceEvents").size(), 2U);
  expect_pieces(slurp(path("r.html")), {"Schur complement of order 9", "201 of 210", "host:0"});
  // A dense file has the same numbers.
  expect_done(schur(keep));
  const std::string same = slurp(path("S.npy"));
  write_npy(path("dense.npy"), DenseMatrix<double>{dense_of(a), a.rows, a.rows}.view());
  expect_done(schur(keep, "S.npy", "dense.npy"));
  EXPECT_EQ(slurp(path("S.npy")), same);
}

/// Nothing to eliminate leaves the matrix, in the order asked for.
TEST_F(CliSchur, AllRowsLeaveTheMatrix) {
  Rows kept(at(a.rows));
  std::iota(kept.rbegin(), kept.rend(), 0);
  const Json j = expect_json(schur(joined(kept, ",")) + Words{"--shift", "2"});
  EXPECT_EQ(j.at("eliminated"), 0);
  EXPECT_EQ(j.at("factor").at("log_determinant"), 0);
  const DenseMatrix<double> s = read_dense(path("S.npy"));
  const std::vector<double> full = dense_of(a, 2);
  for (std::int64_t k = 0; k < a.rows; ++k)
    for (std::int64_t i = 0; i < a.rows; ++i)
      ASSERT_EQ(s.view()(i, k), full[at(kept[at(i)] + kept[at(k)] * a.rows)]);
}

/// What stays may be anything; what is eliminated may not.
TEST_F(CliSchur, OnlyWhatIsEliminatedHasToBeDefinite) {
  set_diagonal(a, 77, -3);
  write_system(a, 1);
  expect_done(schur("3,77,150"));
  expect_complement("S.npy", {3, 77, 150});
  EXPECT_LT(read_dense(path("S.npy")).view()(1, 1), -3);
  std::filesystem::remove(path("S.npy"));
  refuse(schur("3,150"), 1, {"what is eliminated is not positive", "row 77", "--shift"});
  const Outcome outcome = run_program(schur("3,150") + Words{"--shift", "1", "--json"});
  expect_complaint(outcome, 1, {"eliminated + 1 I", "row 77"});
  const Json j = json_of(outcome.out);
  EXPECT_EQ(j.at("factor").at("ok"), false);
  EXPECT_EQ(j.at("factor").at("first_bad_pivot"), 77);
  EXPECT_LE(j.at("factor").at("bad_pivot").get<double>(), -2.0);
  const double shift = j.at("definite_shift").get<double>();
  expect_done(schur("3,150") + Words{"--shift", std::to_string(shift)});
}

TEST_F(CliSchur, RefusesRowsThatAreNone) {
  refuse(schur("3,210"), 2, {"row 210", "210 rows"});
  refuse(schur("3,5,3"), 2, {"row 3", "twice"});
  refuse(schur("3,-1"), 2, {"--keep", "'-1' is no number of a row"});
  refuse(schur("2147483648"), 2, {"'2147483648' is no number"});
  refuse(schur("99999999999999999999"), 2, {"no number of a row"});
  refuse(schur(""), 2, {"--keep ''", "no row"});
  refuse(schur(","), 2, {"--keep ','", "no row"});
  refuse(verb("schur", "A.mtx", "S.npy"), 2, {"--keep"});
  refuse(schur(path("absent.txt")), 3, {"absent.txt"});
  refuse(schur(path("absent.npy")), 3, {"absent.npy"});
  refuse(schur(path("")), 3, {"directory"});
  const std::vector<std::tuple<std::string, int, Words>> files{
      {"", 3, {"rows.txt", "no row"}},
      {"1 2\nthree\n", 3, {"rows.txt", "'three'"}},
      {"1 2.5", 3, {"'2.5'"}},
      {"4 0x10", 3, {"'0x10'"}},
      {std::string("1\0002", 3), 3, {"no number"}},
      {"0 210\n", 2, {"row 210"}},
      {"5\n5\n", 2, {"row 5", "twice"}}};
  for (const auto& [text, status, pieces] : files) {
    SCOPED_TRACE(text);
    refuse(schur(scratch.put("rows.txt", text)), status, pieces);
  }
  const std::vector<double> half{1, 2.5};
  write_npy(path("half.npy"), std::span<const double>(half));
  refuse(schur(path("half.npy")), 3, {"half.npy", "element 1", "2.5"});
}

TEST_F(CliSchur, RefusesMatricesAndOutputs) {
  refuse(schur("0", "S.txt"), 2, {"S.txt", ".npy"});
  refuse(schur("0", "no/S.npy"), 3, {"--output", "no/S.npy"});
  refuse(schur("0", "A.mtx"), 2, {"--output", "A.mtx"});
  write_npy(path("rows.npy"), std::span<const double>(std::vector<double>{1}));
  refuse(schur(path("rows.npy"), "rows.npy"), 2, {"--output", "rows.npy"});
  refuse(schur("0", "S.npy", "absent.mtx"), 3, {"absent.mtx"});
  expect_done(verb("factor", "A.mtx", "F"));
  refuse(schur("0", "S.npy", "F"), 2, {"directory"});
  refuse({"schur", path("A.mtx"), "--keep", "0", "-o", path("S.npy"), "--devices", "host",
          "--device-memory", "500"},
         3, {"500 bytes", "needs"});
  (void)scratch.put("flat.mtx", "%%MatrixMarket matrix coordinate real general\n2 3 1\n1 2 5\n");
  refuse(schur("0", "S.npy", "flat.mtx"), 2, {"2 by 3"});
  // No row of an empty matrix can stay.
  write_system(with_values(Edges(0).matrix(), 1), 1);
  refuse(schur("0"), 2, {"row 0", "0 rows"});
}

}  // namespace
}  // namespace strata::test
