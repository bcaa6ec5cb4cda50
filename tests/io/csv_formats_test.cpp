// Tables as spreadsheets and other programs write them. Oracle: the same table in plain CSV, or
// values written out.

#include <gtest/gtest.h>

#include <cmath>

#include "csv_tables.hpp"
#include "io/csv.hpp"
#include "scratch.hpp"
#include "strata/io.hpp"

namespace strata {
namespace {

using test::expect_error;
using test::Names;
using test::Numbers;
using test::parse;
using test::Scratch;

std::string utf16(const std::string& ascii) {
  std::string bytes = "\xFF\xFE";
  for (const char c : ascii) {
    bytes += c;
    bytes += '\0';
  }
  return bytes;
}

TEST(CsvFormats, SayTheSameTable) {
  const Scratch scratch;
  for (const std::string& text : std::vector<std::string>{
           "x,y,z\n0.1,0.2,1\n0.3,0.9,2\n", "x;y;z\n0.1;0.2;1\n0.3;0.9;2\n",
           "x\ty\tz\n0.1\t0.2\t1\n0.3\t0.9\t2\n", "x;y;z\n0,1;0,2;1\n0,3;0,9;2\n",
           "x\ty\tz\n0,1\t0,2\t1\n0,3\t0,9\t2\n", "\"x\", \"y\", \"z\"\n0.1,0.2,1\n0.3,0.9,2\n",
           " \"x\" , \"y\" ,\"z\" \n\"0.1\", \"0.2\" , 1\n0.3,0.9,2\n",
           "# a comment\nx,y,z\n# another, of two\n0.1,0.2,1\n  # one more\n0.3,0.9,2\n#\n",
           "# written by numpy\n# x,y,z\n0.1,0.2,1\n0.3,0.9,2\n", "#x;y;z\n0,1;0,2;1\n0,3;0,9;2\n",
           "x,y,z\n1.0D-1,2d-1,1\n0.3,0.9,2\n", "x,y,z\n0.1,0.2,1\n0.3,0.9,2\n  \n\t \n \r\n",
           "x,\ty,\tz\n0.1,\t0.2,\t1\n0.3,\t0.9,\t2\n",
           "\xEF\xBB\xBFx;y;z\r\n0,1;0,2;1\r\n0,3;0,9;2\r\n",
           utf16("x,y,z\n0.1,0.2,1\n0.3,0.9,2\n"),
           utf16("\"x\"\ty\tz\r\n0,1\t0,2\t1\r\n0,3\t0,9\t2\r\n")}) {
    SCOPED_TRACE(text);
    const Table table = parse(text);
    EXPECT_EQ(table.names(), (Names{"x", "y", "z"}));
    ASSERT_EQ(table.rows(), 2);
    EXPECT_EQ(table.column("x"), (Numbers{0.1, 0.3}));
    EXPECT_EQ(table.column("y"), (Numbers{0.2, 0.9}));
    EXPECT_EQ(table.column("z"), (Numbers{1, 2}));
    TableReader pieces(scratch.put("t.csv", text));
    EXPECT_EQ(pieces.names(), table.names());
    for (int pass = 0; pass < 2; ++pass, pieces.rewind()) {
      EXPECT_EQ(pieces.next({"z", "x"}, 1), (std::vector<Numbers>{{1}, {0.1}}));
      EXPECT_EQ(pieces.next({"z", "x"}, 5), (std::vector<Numbers>{{2}, {0.3}}));
      EXPECT_TRUE(pieces.next({"z"}, 5)[0].empty());
    }
  }
}

TEST(CsvFormats, WhatHasTwoMeaningsIsRefused) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {{"a;x\n1;0.5\n2;0,5\n", "data row 1 (line 2), column 'x': '0.5' has a point"},
               {"a;x\n1;0,5\n2;0.5\n", "data row 2 (line 3), column 'x': '0.5' has a point"},
               {"a;x\n1;1.234,5\n", "'1.234,5' is not a number: write it without separators"},
               {"a;x\n1;1,234,5\n", "'1,234,5' is not a number"},
               {"a\tx\n1\t1,234\n", "'1,234' may be"},
               {"a\tx\n1\t-12,000\n", "'-12,000' may be"},
               {"a,x\n1,\"0,5\"\n", "'0,5' is not a number"}};
  for (const auto& c : cases)
    expect_error(ErrorKind::input, {"t.csv", c.says}, [&] { (void)parse(c.text).column("x"); });
  EXPECT_EQ(parse("a;x\n1;1,234\n2;5\n").column("x"), (Numbers{1.234, 5}));
  EXPECT_EQ(parse("a\tx\n1\t0,234\n2\t1,5\n").column("x"), (Numbers{0.234, 1.5}));
  // A separator in a name is none; of several the one that fits the rows.
  EXPECT_EQ(parse("\"a;b\",x\n1,2\n").column("a;b"), Numbers{1});
  EXPECT_EQ(parse("a, km;x\n1,5;2,5\n").column("a, km"), Numbers{1.5});
  // A first row of text makes a comment of what looks like a header.
  EXPECT_EQ(parse("# 1,2\nx,y\n1,2\n").names(), (Names{"x", "y"}));
}

TEST(CsvFormats, APointInAFileWithDecimalCommasIsRefused) {
  const Scratch scratch;
  const struct {
    const char* text;
    const char* says;
    const char* comma;
  } cases[] = {
      // In a column of its own, before and behind the comma, which may be in a column of no use.
      {"a;x\n0,5;1.234\n", "data row 1 (line 2), column 'x': '1.234' has a point",
       "'0,5' in column 'a' (line 2)"},
      {"x;a\n1.234;1\n\n2.345;0,5\n", "data row 1 (line 2), column 'x': '1.234' has a point",
       "'0,5' in column 'a' (line 4)"},
      {"a;x\n0,5;1\n\n1;-2.5e3\n", "data row 2 (line 4), column 'x': '-2.5e3' has a point",
       "'0,5' in column 'a' (line 2)"},
      {"a\tx\n-1,25\t1.234\n", "'1.234' has a point", "'-1,25'"},
      {"a;x\n\"1,234\";1.234\n", "'1.234' has a point", "'1,234'"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    expect_error(ErrorKind::input, {"t.csv", c.says, c.comma, "write a decimal comma"},
                 [&] { (void)parse(c.text).column("x"); });
    TableReader reader(scratch.put("t.csv", c.text));
    expect_error(ErrorKind::input, {"t.csv", c.says, c.comma, "write a decimal comma"}, [&] {
      while (!reader.next({"x"}, 1)[0].empty()) continue;
    });
  }
  // Points in columns that are of no use, or that are none of numbers; commas that are no decimals.
  EXPECT_EQ(parse("a;x\n1.234;0,5\n").column("x"), Numbers{0.5});
  EXPECT_EQ(parse("a;x\n1,2,3;0.5\n").column("x"), Numbers{0.5});
  EXPECT_EQ(parse("a;x\none, two;0.5\n").column("x"), Numbers{0.5});
  EXPECT_EQ(parse("a\tx\n1,234\t0.5\n").column("x"), Numbers{0.5});
  EXPECT_EQ(parse("a,x\n\"1,5\",0.5\n").column("x"), Numbers{0.5});
  EXPECT_EQ(parse("a;x\n0,5;1970-01-02T00:00:00.0\n").column("x", {.dates = true}), Numbers{1});
}

TEST(CsvFormats, LinesOfRows) {
  EXPECT_EQ(parse("# x\n\nx,y\n1,\"a\n\"\n# no\n2,b\r\n3,c").lines(),
            (std::vector<std::int64_t>{4, 7, 8}));
  EXPECT_TRUE(parse("x\n").lines().empty());
}

TEST(CsvFormats, FieldsWithoutAValue) {
  const Table table = parse("x,y\n1,\n,2\nNA,NaN\n3,null\n4,5\n");
  const auto same = [](const Numbers& a, const Numbers& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))) return false;
    return true;
  };
  EXPECT_TRUE(same(table.column("x", {.missing = true}), {1, NAN, NAN, 3, 4}));
  EXPECT_TRUE(same(table.column("y", {.missing = true}), {NAN, 2, NAN, NAN, 5}));
  try {
    (void)table.column("x");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), kMissingField);
  }
  expect_error(ErrorKind::input, {"'inf' is not a finite number"},
               [] { (void)parse("x\ninf\n").column("x", {.missing = true}); });
  const Scratch scratch;
  TableReader pieces(scratch.put("t.csv", "x,y\n1,\n,2\n"));
  EXPECT_TRUE(
      same(pieces.next({"y", "x"}, 9, {{.missing = true}, {.missing = true}})[0], {NAN, 2}));
  pieces.rewind();
  expect_error(ErrorKind::input, {"data row 2 (line 3), column 'x': the field is empty"}, [&] {
    (void)pieces.next({"y", "x"}, 9, {{.missing = true}, {}});
  });
  expect_error(ErrorKind::misuse, {"1 rules for 2 columns"}, [&] {
    (void)pieces.next({"y", "x"}, 9, {{.missing = true}});
  });
}

TEST(CsvFormats, Dates) {
  const Table table = parse("t,n\n,1\n1970-01-02,2\n\"1970-01-03T12:00Z\",3\n");
  const Numbers days = table.column("t", {.missing = true, .dates = true});
  EXPECT_TRUE(std::isnan(days[0]));
  EXPECT_EQ(days[1], 1);
  EXPECT_EQ(days[2], 2.5);
  EXPECT_TRUE(table.has_dates("t"));
  EXPECT_FALSE(table.has_dates("n"));
  expect_error(ErrorKind::input, {"'1970-01-02' is not a number"},
               [&] { (void)table.column("t", {.missing = true}); });
  for (const char* text : {"t\n1970-01-02\n3\n", "t\n3\n1970-01-02\n"})
    expect_error(ErrorKind::input, {"data row 2", "number"},
                 [&] { (void)parse(text).column("t", {.dates = true}); });
  expect_error(ErrorKind::input, {"'1970-02-30' is not a number"},
               [] { (void)parse("t\n1970-02-30\n").column("t", {.dates = true}); });
  const Scratch scratch;
  TableReader pieces(scratch.put("t.csv", "t,x\n1970-01-02,1\n2,1\n"));
  EXPECT_TRUE(pieces.has_dates("t"));
  EXPECT_EQ(pieces.next({"t"}, 1, {{.dates = true}})[0], Numbers{1});
  expect_error(ErrorKind::input, {"data row 2", "below dates"},
               [&] { (void)pieces.next({"t"}, 1, {{.dates = true}}); });
}

TEST(CsvFormats, DatesWithoutDashesAreNoNumbers) {
  const Scratch scratch;
  for (const char* text : {"t\n20200131\n20200201\n", "t\n20200131.0\n\n20200131\n20191201\n",
                           "t\n\n\"20200131\"\n18000228\n"}) {
    SCOPED_TRACE(text);
    const Names pieces{"t.csv", "data row 1 (line ", "column 't'", "write 2020-01-31"};
    const ColumnRules rules{.missing = true, .dates = true};
    expect_error(ErrorKind::input, pieces, [&] { (void)parse(text).column("t", rules); });
    EXPECT_EQ(parse(text).column("t", {.missing = true}).back() > 18000000, true);
    TableReader reader(scratch.put("t.csv", text));
    expect_error(ErrorKind::input, pieces, [&] {
      while (!reader.next({"t"}, 1, {rules})[0].empty()) continue;
    });
  }
  // One month, where days are a day apart; a number that is no date; years of another time.
  for (const char* text :
       {"t\n20200131\n20200101\n", "t\n20200131\n20200230\n", "t\n20200131\n20201301\n",
        "t\n20200131\n17991231\n", "t\n20200131\n22000101\n", "t\n20200131\n20200201.5\n",
        "t\n20200131\n-20200201\n"}) {
    EXPECT_EQ(parse(text).column("t", {.dates = true})[0], 20200131) << text;
  }
}

TEST(CsvFormats, NamesThatWouldBeTakenForFormatsAreQuoted) {
  const Scratch scratch;
  const Names names{"#x", "a;b", "c\td"};
  write_csv(scratch.path("t.csv"), names, {{1}, {2}, {3}});
  EXPECT_EQ(read_csv(scratch.path("t.csv")).names(), names);
}

}  // namespace
}  // namespace strata
