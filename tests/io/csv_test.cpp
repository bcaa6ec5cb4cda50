#include "io/csv.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>

#include "base/random.hpp"
#include "csv_tables.hpp"
#include "scratch.hpp"
#include "strata/io.hpp"

namespace strata {
namespace {

using test::expect_error;
using test::Names;
using test::Numbers;
using test::parse;
using test::Scratch;

TEST(Csv, ReadsTheColumnsThatAreAskedFor) {
  const Table table = parse("x,name,y\n1,abc,2.5\n-3,,4e2\n");
  EXPECT_EQ(table.names(), (Names{"x", "name", "y"}));
  EXPECT_EQ(table.rows(), 2);
  EXPECT_TRUE(table.has("name"));
  EXPECT_FALSE(table.has("Name"));
  EXPECT_EQ(table.column("x"), (Numbers{1, -3}));
  EXPECT_EQ(table.column("y"), (Numbers{2.5, 400}));
}

TEST(Csv, TakesLineEndsEmptyLinesAndAMark) {
  for (const char* text :
       {"a,b\n1,2\n3,4\n", "a,b\n1,2\n3,4", "a,b\r\n1,2\r\n3,4\r\n", "a,b\r\n1,2\r\n3,4\r",
        "\xEF\xBB\xBF"
        "a,b\n1,2\n3,4\n",
        "\n\r\na,b\n\n1,2\n\r\n\n3,4\n\n\n", " a , b\n 1 ,\t2\n3, 4 \n"}) {
    const Table table = parse(text);
    EXPECT_EQ(table.names(), (Names{"a", "b"})) << text;
    EXPECT_EQ(table.column("a"), (Numbers{1, 3})) << text;
    EXPECT_EQ(table.column("b"), (Numbers{2, 4})) << text;
  }
}

TEST(Csv, ReadsQuotedFields) {
  const Table table = parse(
      "\"a \"\"q\"\"\",\"x, y\",c\r\n\"1\",\"two\nlines, \"\"\",\"3\"\r\n"
      "\"4\",\"\",6\r\n");
  EXPECT_EQ(table.names(), (Names{"a \"q\"", "x, y", "c"}));
  EXPECT_EQ(table.rows(), 2);
  EXPECT_EQ(table.column("a \"q\""), (Numbers{1, 4}));
  EXPECT_EQ(table.column("c"), (Numbers{3, 6}));
  EXPECT_EQ(parse("a\n\"7\"").column("a"), (Numbers{7}));
  EXPECT_EQ(parse("a\n\"7\"\r").column("a"), (Numbers{7}));
}

TEST(Csv, ReadsATableWithoutRows) {
  const Table table = parse("a,b");
  EXPECT_EQ(table.rows(), 0);
  EXPECT_EQ(table.column("b"), Numbers{});
}

TEST(Csv, KeepsAnEmptyLastField) {
  const Table table = parse("a,b\n1,\n2,");
  EXPECT_EQ(table.rows(), 2);
  EXPECT_EQ(table.column("a"), (Numbers{1, 2}));
  expect_error(ErrorKind::input, {"data row 1", "column 'b'", "empty"},
               [&] { (void)table.column("b"); });
}

TEST(Csv, NamesRowLineColumnAndText) {
  const struct {
    const char* field;
    const char* says;
  } cases[] = {{"abc", "'abc' is not a number"},         {"", "the field is empty"},
               {"\"\"", "the field is empty"},           {"  ", "the field is empty"},
               {"nan", "'nan' is not a finite number"},  {"-Inf", "'-Inf' is not a finite number"},
               {"NA", "'NA' is not a number"},           {"1e400", "'1e400' is too large"},
               {"12abc", "'12abc' is not a number"},     {"\"1,5\"", "'1,5' is not a number"},
               {"\"a\nb\"", "'a\\x0ab' is not a number"}};
  for (const auto& c : cases) {
    // The quoted line feed in the first row makes line and row differ.
    const Table table = parse("x,y\n\"1\n\",1\n\n3," + std::string(c.field) + "\n4,5\n");
    expect_error(ErrorKind::input, {"t.csv", "data row 2 (line 5)", "column 'y'", c.says},
                 [&] { (void)table.column("y"); });
  }
}

TEST(Csv, ListsTheColumnsThereAre) {
  const Table table = parse("x,y,rain_mm\n1,2,3\n");
  expect_error(ErrorKind::misuse, {"t.csv", "'rain'", "x, y, rain_mm"},
               [&] { (void)table.column("rain"); });
  expect_error(ErrorKind::input, {"more than one column 'x'"},
               [] { (void)parse("x,y,x\n1,2,3\n").column("x"); });
}

TEST(Csv, RefusesMalformedFiles) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {{"", "empty"},
               {"\n\r\n", "empty"},
               {"\xEF\xBB\xBF", "empty"},
               {"a,b\n1,2\n3\n", "data row 2 (line 3) has 1 fields, the header has 2"},
               {"a,b\n1,2,3\n", "data row 1 (line 2) has 3 fields"},
               {"a,b\n1,\"2\n3,4\n", "line 2: a quote is never closed"},
               {"\"a", "line 1: a quote is never closed"},
               {"a,b\n1,\"2\"x\n", "line 2: text follows a closing quote"},
               {"a\n\"1\"\rx\n", "text follows"}};
  for (const auto& c : cases) {
    expect_error(ErrorKind::input, {"t.csv", c.says}, [&] { (void)parse(c.text); });
  }
}

TEST(Csv, ReadsBackWhatItWrites) {
  const Scratch scratch;
  const Names names{"x", "a, \"b\"", "", " blank ", "z"};
  std::vector<Numbers> columns(names.size(), Numbers(2000));
  for (std::size_t k = 0; k < columns.size(); ++k) {
    for (std::size_t i = 0; i < columns[k].size(); ++i) {
      const auto value = std::bit_cast<double>(random_bits(k, i));
      columns[k][i] = std::isfinite(value) ? value : 0;
    }
  }
  for (const char* name : {"t.csv", "t.csv.gz"}) {
    write_csv(scratch.path(name), names, columns);
    const Table table = read_csv(scratch.path(name));
    EXPECT_EQ(table.names(), names);
    for (std::size_t k = 0; k < names.size(); ++k) {
      EXPECT_EQ(table.column(names[k]), columns[k]) << names[k];
    }
  }
  write_csv(scratch.path("s.csv"), {"a", "b"}, {{1, 0.1}, {-2.5, 1e300}});
  EXPECT_EQ(test::slurp(scratch.path("s.csv")), "a,b\n1,-2.5\n0.1,1e+300\n");
}

TEST(Csv, RefusesColumnsThatDoNotFit) {
  const Scratch scratch;
  const std::string path = scratch.path("t.csv");
  expect_error(ErrorKind::misuse, {"2 names for 1 columns"}, [&] {
    write_csv(path, {"a", "b"}, {{1}});
  });
  expect_error(ErrorKind::misuse, {"'b' has 2 rows", "'a' has 1"}, [&] {
    write_csv(path, {"a", "b"}, {{1}, {1, 2}});
  });
  expect_error(ErrorKind::misuse, {"0 names"}, [&] { write_csv(path, {}, {}); });
  EXPECT_EQ(scratch.files(), 0U);
}

TEST(CsvPieces, AreTheRowsOfTheWholeTable) {
  const Scratch scratch;
  // Line breaks in fields, empty lines and CRLF: what makes lines and rows differ.
  std::string text = "\xEF\xBB\xBFx,name,y\r\n";
  for (int i = 0; i < 101; ++i) {
    text += std::to_string(i) + (i % 3 == 0 ? ",\"a\nb\"," : ",c,") + std::to_string(0.5 * i);
    text += i % 7 == 0 ? "\r\n\n" : "\n";
  }
  write_csv(scratch.path("t.csv.gz"), {"x", "y"}, {{1, 2, 3}, {4, 5, 6}});
  const Table whole = read_csv(scratch.put("t.csv", text));
  for (const std::int64_t rows : {1, 2, 50, 100, 101, 102}) {
    TableReader reader(scratch.path("t.csv"));
    EXPECT_EQ(reader.names(), whole.names());
    EXPECT_TRUE(reader.has("y"));
    EXPECT_FALSE(reader.has("z"));
    Numbers x;
    Numbers y;
    for (;;) {
      const auto piece = reader.next({"y", "x"}, rows);
      ASSERT_EQ(piece.size(), 2U);
      ASSERT_EQ(piece[0].size(), piece[1].size());
      if (piece[0].empty()) break;
      EXPECT_TRUE(std::ssize(piece[0]) == rows || x.size() + piece[0].size() == 101);
      y.insert(y.end(), piece[0].begin(), piece[0].end());
      x.insert(x.end(), piece[1].begin(), piece[1].end());
    }
    EXPECT_EQ(x, whole.column("x")) << rows;
    EXPECT_EQ(y, whole.column("y")) << rows;
  }
  TableReader packed(scratch.path("t.csv.gz"));
  EXPECT_EQ(packed.next({"x"}, 10)[0], (Numbers{1, 2, 3}));
  EXPECT_EQ(packed.next({"x"}, 10)[0], Numbers{});
  packed.rewind();
  EXPECT_EQ(packed.next({"y"}, 2)[0], (Numbers{4, 5}));
}

TEST(CsvPieces, AreRefusedAsTheWholeTableIs) {
  const Scratch scratch;
  const auto reader = [&](const char* text) { return TableReader(scratch.put("t.csv", text)); };
  expect_error(ErrorKind::input, {"empty"}, [&] { (void)reader(""); });
  expect_error(ErrorKind::input, {"absent.csv"},
               [&] { (void)TableReader(scratch.path("absent.csv")); });
  expect_error(ErrorKind::misuse, {"'z'", "x, y"}, [&] { (void)reader("x,y\n").next({"z"}, 1); });
  expect_error(ErrorKind::input, {"more than one column 'x'"},
               [&] { (void)reader("x,x\n1,2\n").next({"x"}, 1); });
  TableReader late = reader("x,y\n1,2\n\n3,4\n5\n");
  EXPECT_EQ(late.next({"x"}, 2)[0], (Numbers{1, 3}));
  expect_error(ErrorKind::input, {"data row 3 (line 5) has 1 fields"},
               [&] { (void)late.next({"x"}, 2); });
  TableReader text = reader("x,y\n1,2\n3,four\n");
  EXPECT_EQ(text.next({"x"}, 1)[0], Numbers{1});
  expect_error(ErrorKind::input, {"data row 2 (line 3), column 'y'", "'four' is not a number"},
               [&] { (void)text.next({"y"}, 1); });
}

TEST(CsvPieces, AreWrittenAsOneTableThatAppearsWhenItIsComplete) {
  const Scratch scratch;
  const std::string path = scratch.path("t.csv");
  {
    TableWriter writer(path, {"a", "b"});
    writer.write({{1, 0.1}, {-2.5, 1e300}});
    writer.write({{}, {}});
    writer.write({{7}, {8}});
    expect_error(ErrorKind::misuse, {"2 names for 1 columns"}, [&] { writer.write({{1}}); });
    expect_error(ErrorKind::misuse, {"'b' has 2 rows"}, [&] { writer.write({{1}, {1, 2}}); });
    EXPECT_FALSE(std::filesystem::exists(path));
    writer.close();
    EXPECT_EQ(test::slurp(path), "a,b\n1,-2.5\n0.1,1e+300\n7,8\n");
  }
  { TableWriter given_up(scratch.path("u.csv"), {"a"}); }
  EXPECT_EQ(scratch.files(), 1U);
  expect_error(ErrorKind::misuse, {"no columns"}, [&] { TableWriter(scratch.path("v.csv"), {}); });
}

TEST(Csv, OutlivesTheTableItWasCopiedFrom) {
  Table copy = parse("a\n1\n");
  {
    const Table table = parse("a\n2\n");
    copy = table;
  }
  EXPECT_EQ(copy.column("a"), Numbers{2});
}

// The real sets: what their catalogue says of them.
TEST(Csv, ReadsRealTables) {
  const std::filesystem::path folder =
      std::filesystem::path(STRATA_SOURCE_DIR) / "../shared/data/geo";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no real tables beside the source tree";
  const Table rain = read_csv((folder / "north_american_rainfall.csv").string());
  EXPECT_EQ(rain.rows(), 1720);
  EXPECT_EQ(rain.column("precipitation_tenth_mm").front(), 985.09958175);
  const Table canopy = read_csv((folder / "bcef_canopy_height.csv.gz").string());
  EXPECT_EQ(canopy.rows(), 188717);
  double held_out = 0;
  for (const double h : canopy.column("holdout")) held_out += h;
  EXPECT_EQ(held_out, 83213);
}

}  // namespace
}  // namespace strata
