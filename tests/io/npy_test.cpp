// Oracle: files put together here byte by byte after the format's published description.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <type_traits>

#include "io/npy.hpp"
#include "scratch.hpp"
#include "strata/io.hpp"

namespace strata {
namespace {

using test::expect_error;
using test::Scratch;

static_assert(!std::is_copy_constructible_v<NpyFile>);
static_assert(std::is_nothrow_move_constructible_v<NpyFile>);

std::string raw_npy(int major, const std::string& dictionary, const std::string& data,
                    std::size_t align = 64) {
  const std::size_t prefix = major == 1 ? 10 : 12;
  std::string text = dictionary;
  while ((prefix + text.size() + 1) % align != 0) text += ' ';
  text += '\n';
  std::string bytes("\x93NUMPY", 6);
  bytes += static_cast<char>(major);
  bytes += '\0';
  for (std::size_t i = 0; i < prefix - 8; ++i) {
    bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  return bytes + text + data;
}

// Elements as bytes, in the named order.
template <class T>
std::string packed(const std::vector<T>& values, bool big_endian) {
  std::string bytes;
  for (const T value : values) {
    std::string one(sizeof(T), '\0');
    std::memcpy(one.data(), &value, sizeof(T));
    if (big_endian != (std::endian::native == std::endian::big)) {
      std::reverse(one.begin(), one.end());
    }
    bytes += one;
  }
  return bytes;
}

std::string dictionary(const std::string& descr, bool fortran, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }";
}

// Element (i, j) of the test matrix.
double element(std::int64_t i, std::int64_t j) { return 0.25 + 10.0 * double(i) - double(j); }

template <class T>
std::vector<T> elements(std::int64_t rows, std::int64_t cols, bool fortran) {
  std::vector<T> values;
  for (std::int64_t k = 0; k < rows * cols; ++k) {
    values.push_back(
        static_cast<T>(fortran ? element(k % rows, k / rows) : element(k / cols, k % cols)));
  }
  return values;
}

void expect_elements(const DenseMatrix<double>& a, std::int64_t rows, std::int64_t cols) {
  ASSERT_EQ(a.rows, rows);
  ASSERT_EQ(a.cols, cols);
  for (std::int64_t j = 0; j < cols; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) EXPECT_EQ(a.view()(i, j), element(i, j));
  }
}

struct Case {
  int version;
  bool fortran;
  bool big_endian;
  bool fp32;
};

class NpyFormats : public testing::TestWithParam<Case> {};

TEST_P(NpyFormats, ReadsEveryVersionOrderAndType) {
  const Case c = GetParam();
  const bool fortran = c.fortran;
  const Scratch scratch;
  const std::string descr = std::string(c.big_endian ? ">" : "<") + (c.fp32 ? "f4" : "f8");
  const std::string data = c.fp32 ? packed(elements<float>(67, 130, fortran), c.big_endian)
                                  : packed(elements<double>(67, 130, fortran), c.big_endian);
  const std::string path =
      scratch.put("a.npy", raw_npy(c.version, dictionary(descr, fortran, "(67, 130)"), data));
  expect_elements(read_npy(path), 67, 130);

  const NpyFile file(path);
  EXPECT_EQ(file.dimensions(), 2);
  EXPECT_EQ(file.precision(), c.fp32 ? Element::fp32 : Element::fp64);
  EXPECT_EQ(file.fortran_order(), fortran);
  EXPECT_EQ(file.row_major(), !fortran);
  EXPECT_EQ(file.mapped(), c.big_endian == (std::endian::native == std::endian::big));
  const auto check = [&](const auto& view) {
    EXPECT_EQ(view(fortran ? 66 : 129, fortran ? 129 : 66), element(66, 129));
    EXPECT_EQ(view.rows, fortran ? 67 : 130);
    EXPECT_EQ(view.ld, fortran ? 67 : 130);
  };
  if (c.fp32) {
    check(fortran ? file.view<float>() : file.transposed_view<float>());
    expect_error(ErrorKind::misuse, {"fp64", "fp32"}, [&] { (void)file.view<double>(); });
  } else {
    check(fortran ? file.view<double>() : file.transposed_view<double>());
    expect_error(ErrorKind::misuse, {"fp64", "fp32"}, [&] { (void)file.view<float>(); });
  }
}

template <class T>
void expect_integers(const std::string& kind, const std::vector<T>& values) {
  const Scratch scratch;
  for (const bool big_endian : {false, true}) {
    const std::string descr = (sizeof(T) == 1 ? "|" : big_endian ? ">" : "<") + kind;
    SCOPED_TRACE(descr);
    const auto n = static_cast<std::int64_t>(values.size());
    for (const std::string& shape : {fmt::format("({},)", n), fmt::format("(1, {})", n)}) {
      const std::string path = scratch.put(
          "i.npy", raw_npy(1, dictionary(descr, false, shape), packed(values, big_endian)));
      const NpyFile file(path);
      EXPECT_EQ(file.precision(), Element::fp64);
      EXPECT_FALSE(file.mapped());
      const DenseMatrix<double> a = read_npy(path);
      ASSERT_EQ(std::ssize(a.values), n);
      for (std::size_t k = 0; k < values.size(); ++k)
        EXPECT_EQ(static_cast<long double>(a.values[k]), static_cast<long double>(values[k]));
    }
  }
}

TEST(Npy, ReadsIntegersExactly) {
  expect_integers<std::int8_t>("i1", {-128, -1, 0, 127});
  expect_integers<std::uint8_t>("u1", {0, 255});
  expect_integers<std::uint8_t>("b1", {0, 1});
  expect_integers<std::int16_t>("i2", {-32768, 0, 32767});
  expect_integers<std::uint16_t>("u2", {0, 65535});
  expect_integers<std::int32_t>("i4", {std::numeric_limits<std::int32_t>::min(), 7});
  expect_integers<std::uint32_t>("u4", {0, std::numeric_limits<std::uint32_t>::max()});
  expect_integers<std::int64_t>("i8", {std::numeric_limits<std::int64_t>::min(), -5,
                                       std::int64_t{1} << 53, (std::int64_t{1} << 62) + 1024});
  expect_integers<std::uint64_t>("u8", {0, std::uint64_t{1} << 63});
}

TEST(Npy, NamesAnIntegerThatIsNoDouble) {
  const Scratch scratch;
  const auto refuse = [&](const std::string& descr, const std::string& data, bool fortran,
                          const std::string& place) {
    const std::string path =
        scratch.put("i.npy", raw_npy(1, dictionary(descr, fortran, "(2, 3)"), data));
    expect_error(ErrorKind::input, {path, "element " + place, "counted from 0", "exactly"},
                 [&] { (void)NpyFile(path); });
  };
  std::vector<std::int64_t> values(6, 3);
  values[4] = (std::int64_t{1} << 53) + 1;
  refuse("<i8", packed(values, false), false, "(1, 1)");
  refuse(">i8", packed(values, true), true, "(0, 2)");
  values[4] = std::numeric_limits<std::int64_t>::max();
  refuse("<i8", packed(values, false), false, "(1, 1)");
  std::vector<std::uint64_t> large(6, 3);
  large[5] = std::numeric_limits<std::uint64_t>::max();
  refuse("<u8", packed(large, false), false, "(1, 2)");
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (int k = 0; k < 24; ++k) {
    cases.push_back({k % 3 + 1, (k / 3) % 2 == 1, (k / 6) % 2 == 1, (k / 12) % 2 == 1});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(All, NpyFormats, testing::ValuesIn(all_cases()));

TEST(Npy, ReadsOneDimension) {
  const Scratch scratch;
  const std::string data = packed(std::vector<double>{1.5, -2.25, 1e300}, false);
  for (const bool fortran : {false, true}) {
    const NpyFile file(scratch.put("v.npy", raw_npy(1, dictionary("<f8", fortran, "(3,)"), data)));
    EXPECT_EQ(file.dimensions(), 1);
    EXPECT_EQ(file.rows(), 3);
    EXPECT_EQ(file.cols(), 1);
    EXPECT_FALSE(file.row_major());
    EXPECT_EQ(file.view<double>()(2, 0), 1e300);
  }
}

TEST(Npy, ReadsOddButLegalHeaders) {
  const Scratch scratch;
  const std::string data = packed(elements<double>(2, 3, true), false);
  for (const char* text : {
           "{\"shape\":(2,3),\"fortran_order\":True,\"descr\":\"<f8\"}",
           "{'descr': '<f8', 'fortran_order': True, 'shape': (2L, 3L)}",
           " { 'fortran_order' : True , 'shape' : ( 2 , 3 , ) , 'descr' : '<f8' , } ",
       }) {
    expect_elements(read_npy(scratch.put("a.npy", raw_npy(2, text, data))), 2, 3);
  }
}

// A header whose length is not a multiple of 8 leaves the elements unaligned in the mapped file.
TEST(Npy, CopiesUnalignedElements) {
  const Scratch scratch;
  std::string text = dictionary("<f8", true, "(2, 3)");
  while ((10 + text.size() + 1) % 8 != 3) text += ' ';
  const std::string path =
      scratch.put("a.npy", raw_npy(1, text, packed(elements<double>(2, 3, true), false), 1));
  const NpyFile file(path);
  EXPECT_FALSE(file.mapped());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(file.elements()) % 8, 0U);
  expect_elements(read_npy(path), 2, 3);
}

TEST(Npy, ReadsEmptyArrays) {
  const Scratch scratch;
  for (const char* shape : {"(0,)", "(0, 4)", "(4, 0)", "(0, 1000000000000000000)"}) {
    const DenseMatrix<double> a =
        read_npy(scratch.put("a.npy", raw_npy(1, dictionary("<f8", false, shape), "")));
    EXPECT_EQ(a.rows * a.cols, 0) << shape;
    EXPECT_TRUE(a.values.empty());
  }
}

TEST(Npy, RefusesMalformedFiles) {
  const std::string eight(8, '\0');
  const std::string good = dictionary("<f8", false, "(1,)");
  const struct {
    std::string bytes;
    const char* says;
  } cases[] = {
      {"", "not a .npy"},
      {"PK\x03\x04 something else", "not a .npy"},
      {std::string("\x93NUMPY", 6), "truncated"},
      {std::string("\x93NUMPY\x01\x00\x80", 9), "truncated"},
      {raw_npy(1, good, eight).substr(0, 40), "truncated"},
      {raw_npy(4, good, eight), "version 4.0"},
      {raw_npy(1, dictionary("<c4", false, "(2,)"), eight), "'<c4'"},
      {raw_npy(1, dictionary("<c32", false, "(1,)"), eight), "'<c32'"},
      {raw_npy(1, dictionary("<f16", false, "(1,)"), eight), "'<f16'"},
      {raw_npy(1, dictionary("<c16", false, "(1,)"), eight), "8 bytes found"},
      {raw_npy(1, dictionary("|c8", false, "(1,)"), eight), "'|c8'"},
      {raw_npy(1, dictionary("<i3", false, "(1,)"), eight), "'<i3'"},
      {raw_npy(1, dictionary("<f2", false, "(4,)"), eight), "'<f2'"},
      {raw_npy(1, dictionary("|i8", false, "(1,)"), eight), "'|i8'"},
      {raw_npy(1, dictionary("<i4", false, "(3,)"), eight), "8 bytes found"},
      {raw_npy(1, dictionary("|O", false, "(1,)"), eight), "'|O'"},
      {raw_npy(1, dictionary("", false, "(1,)"), eight), "''"},
      {raw_npy(1, "{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (1,)}", eight),
       "'[("},
      {raw_npy(1, dictionary("<f8", false, "()"), eight), "0 dimensions"},
      {raw_npy(1, dictionary("<f8", false, "(1, 1, 1)"), eight), "3 dimensions"},
      {raw_npy(1, dictionary("<f8", false, "(-1,)"), eight), "'-1"},
      {raw_npy(1, dictionary("<f8", false, "(99999999999999999999,)"), eight), "extent"},
      {raw_npy(1, dictionary("<f8", false, "(1 2)"), eight), "')' expected"},
      {raw_npy(1, "{'descr': '<f8', 'shape': (1,)}", eight), "missing"},
      {raw_npy(1, "{'descr': '<f8', 'descr': '<f8', 'shape': (1,)}", eight), "unexpected key"},
      {raw_npy(1, "{'colour': 3}", eight), "'colour'"},
      {raw_npy(1, "{'descr': '<f8", eight), "open quote"},
      {raw_npy(1, good + " {}", eight), "nothing more"},
      {raw_npy(1, "{'descr': '<f8', 'fortran_order': 1, 'shape': (1,)}", eight), "True or False"},
      {raw_npy(1, good, eight.substr(1)), "7 bytes found"},
      {raw_npy(1, good, eight + "x"), "9 bytes found"},
      {raw_npy(1, dictionary("<f8", false, "(4611686018427387904, 2)"), eight), "8 bytes found"},
      {raw_npy(1, dictionary("<f8", false, "(1000000000000000000,)"), eight), "8 bytes found"},
      // 2^61 + 1 elements of 8 bytes are 8 bytes modulo 2^64
      {raw_npy(1, dictionary("<f8", false, "(2305843009213693953,)"), eight), "8 bytes found"},
      {raw_npy(1, dictionary("<f8", false, "(4294967297, 4294967296)"), eight), "8 bytes found"},
  };
  for (const auto& c : cases) {
    expect_error(ErrorKind::input, {"bad.npy", c.says},
                 [&] { (void)parse_npy(FileBytes(c.bytes, "bad.npy")); });
  }
}

// Every type of two or three printable characters is either one of those the documentation names or
// refused by its name, whatever size its last character may be taken for.
TEST(Npy, RefusesEveryTypeItDoesNotName) {
  const std::set<std::string> named = {"<f4", "<f8", "<c8", "<c16", "<i1", "<i2", "<i4", "<i8",
                                       "<u1", "<u2", "<u4", "<u8",  "<b1", "|i1", "|u1", "|b1"};
  int accepted = 0;
  const auto look_at = [&](const std::string& descr, int bytes) {
    const std::string file = raw_npy(1, dictionary(descr, true, "(1,)"), std::string(bytes, '\0'));
    if (named.contains(descr)) {
      EXPECT_EQ(parse_npy(FileBytes(file, "any.npy")).rows(), 1) << descr;
      ++accepted;
    } else {
      expect_error(ErrorKind::input, {"any.npy", "'" + descr + "'", "not supported"},
                   [&] { (void)parse_npy(FileBytes(file, "any.npy")); });
    }
  };
  for (char kind = 'A'; kind <= 'z'; ++kind) {
    if (kind == '\\') continue;  // an escape of the message
    for (char size = '0'; size <= 'z'; ++size) {
      if (size == '\\') continue;
      for (const char order : {'<', '|'}) look_at(std::string{order, kind, size}, size - '0');
    }
    look_at(std::string{'<', kind, '1', '6'}, 16);
  }
  EXPECT_EQ(accepted, 16);
}

TEST(Npy, NamesTheFirstElementThatIsNotFinite) {
  const Scratch scratch;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const bool fortran : {false, true}) {
    std::vector<double> values(6, 1.0);
    values[5] = nan;
    values[fortran ? 3 : 4] = -INFINITY;  // (1, 1) of a 2 × 3 matrix in either order
    const std::string path = scratch.put(
        "a.npy", raw_npy(1, dictionary("<f8", fortran, "(2, 3)"), packed(values, false)));
    expect_error(ErrorKind::input, {path, "(1, 1)", "-inf"}, [&] { (void)read_npy(path); });
    EXPECT_EQ(NpyFile(path).rows(), 2);  // opening does not look at the elements
  }
}

TEST(Npy, ViewsRefuseTheOtherOrder) {
  const std::string data = packed(elements<double>(2, 2, true), false);
  const NpyFile columns =
      parse_npy(FileBytes(raw_npy(1, dictionary("<f8", true, "(2, 2)"), data), "c.npy"));
  const NpyFile rows =
      parse_npy(FileBytes(raw_npy(1, dictionary("<f8", false, "(2, 2)"), data), "r.npy"));
  expect_error(ErrorKind::misuse, {"c.npy"}, [&] { (void)columns.transposed_view<double>(); });
  expect_error(ErrorKind::misuse, {"r.npy"}, [&] { (void)rows.view<double>(); });
}

TEST(Npy, MovesWithItsElements) {
  const Scratch scratch;
  const std::string path = scratch.path("v.npy");
  write_npy(path, std::vector<double>{1, 2, 3});
  NpyFile a(path);
  const NpyFile b(std::move(a));
  EXPECT_EQ(b.view<double>()(2, 0), 3);
}

TEST(Npy, WritesWhatTheFormatSays) {
  const Scratch scratch;
  const std::vector<double> values = elements<double>(3, 2, true);
  write_npy(scratch.path("a.npy"), MatrixView<const double>{values.data(), 3, 2, 3});
  EXPECT_EQ(test::slurp(scratch.path("a.npy")),
            raw_npy(1, dictionary("<f8", true, "(3, 2)"), packed(values, false)));
  write_npy(scratch.path("v.npy"), std::vector<double>{7, 8});
  EXPECT_EQ(test::slurp(scratch.path("v.npy")),
            raw_npy(1, dictionary("<f8", true, "(2,)"), packed(std::vector<double>{7, 8}, false)));
  const std::vector<float> floats = elements<float>(3, 2, true);
  write_npy(scratch.path("f.npy"), MatrixView<const float>{floats.data(), 3, 2, 3});
  EXPECT_EQ(test::slurp(scratch.path("f.npy")),
            raw_npy(1, dictionary("<f4", true, "(3, 2)"), packed(floats, false)));
  for (const int dimensions : {1, 2}) {
    write_dense(scratch.path("w.npy"), MatrixView<const float>{floats.data(), 6, 1, 6}, dimensions);
    EXPECT_EQ(test::slurp(scratch.path("w.npy")),
              raw_npy(1, dictionary("<f4", true, dimensions == 1 ? "(6,)" : "(6, 1)"),
                      packed(floats, false)));
    EXPECT_EQ(read_dense(scratch.path("w.npy")).dimensions, dimensions);
  }
  write_dense(scratch.path("m.npy"), MatrixView<const float>{floats.data(), 3, 2, 3}, 1);
  EXPECT_EQ(read_dense(scratch.path("m.npy")).dimensions, 2) << "two columns are no vector";
  write_mtx(scratch.path("w.mtx"), std::vector<double>{7, 8});
  EXPECT_EQ(read_dense(scratch.path("w.mtx")).dimensions, 1);
  EXPECT_EQ(scratch.files(), 6U);
}

TEST(Npy, WritesPartsOfLargerMatrices) {
  const Scratch scratch;
  std::vector<double> values(5 * 4, -1);
  const MatrixView<double> all{values.data(), 5, 4, 5};
  const MatrixView<double> part = all.block(1, 2, 3, 2);
  for (std::int64_t j = 0; j < 2; ++j) {
    for (std::int64_t i = 0; i < 3; ++i) part(i, j) = element(i, j);
  }
  for (const char* name : {"a.npy", "a.npy.gz", "a.mtx", "a.mtx.gz"}) {
    write_dense(scratch.path(name), part);
    expect_elements(read_dense(scratch.path(name)), 3, 2);
  }
}

TEST(Npy, RoundTripsLargerThanTheBuffers) {
  const Scratch scratch;
  std::vector<double> values(700'001);
  std::iota(values.begin(), values.end(), 0.125);
  for (const char* name : {"v.npy", "v.npy.gz"}) {
    write_npy(scratch.path(name), values);
    EXPECT_EQ(read_npy(scratch.path(name)).values, values);
  }
  EXPECT_TRUE(NpyFile(scratch.path("v.npy")).mapped());
  EXPECT_FALSE(NpyFile(scratch.path("v.npy.gz")).mapped());
}

TEST(Dense, NamesTheFormatsItKnows) {
  expect_error(ErrorKind::misuse, {"a.csv", ".npy", ".mtx"}, [] { (void)read_dense("a.csv"); });
  expect_error(ErrorKind::misuse, {"x"}, [] { write_dense("x", MatrixView<const double>{}); });
}

TEST(NpyOutput, IsFilledWhereItLiesAndMayLoseColumns) {
  const Scratch scratch;
  for (const std::int64_t cols : {0, 1, 2, 11, 12}) {
    const std::string path = scratch.path("filled.npy");
    NpyOutput output(path, Element::fp32, 100, 12);
    const MatrixView<float> view = output.view<float>();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(view.data) % 64, 0U);
    for (std::int64_t k = 0; k < view.size(); ++k) EXPECT_EQ(view.data[k], 0);
    for (std::int64_t k = 0; k < view.size(); ++k) view.data[k] = static_cast<float>(k) + 0.5F;
    output.close(cols);
    const NpyFile file(path);
    EXPECT_TRUE(file.mapped() || cols == 0);
    EXPECT_EQ(file.dimensions(), 2) << "one column is a matrix all the same";
    ASSERT_EQ(file.rows(), 100);
    ASSERT_EQ(file.cols(), cols);
    const auto* elements = static_cast<const float*>(file.elements());
    for (std::int64_t k = 0; k < 100 * cols; ++k)
      ASSERT_EQ(elements[k], static_cast<float>(k) + 0.5F);
  }
}

TEST(NpyOutput, LeavesWhatWasThereUntilItIsClosed) {
  const Scratch scratch;
  const std::string path = scratch.path("a.npy");
  write_npy(path, std::vector<double>{1, 2, 3});
  {
    const NpyOutput output(path, Element::fp64, 1000, 2);
    output.view<double>()(0, 0) = 7;
  }
  EXPECT_EQ(read_npy(path).values, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(scratch.files(), 1U);
  NpyOutput output(path, Element::fp64, 3, 2);
  EXPECT_THROW((void)output.view<float>(), Error);
  EXPECT_THROW(output.close(3), Error);
  output.close(2);
  EXPECT_EQ(NpyFile(path).cols(), 2);
}

TEST(NpyOutput, RefusesWhereNoFileCanBeFilled) {
  const Scratch scratch;
  const auto kind = [](const std::string& path, std::int64_t rows) {
    try {
      const NpyOutput output(path, Element::fp64, rows, 2);
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::numerical;
  };
  EXPECT_EQ(kind(scratch.path("a.npy.gz"), 3), ErrorKind::misuse);
  EXPECT_EQ(kind(scratch.path("a.npy"), -1), ErrorKind::misuse);
  EXPECT_EQ(kind(scratch.path("a.npy"), std::int64_t{1} << 60), ErrorKind::misuse);
  EXPECT_EQ(kind(scratch.path("none/a.npy"), 3), ErrorKind::storage);
  EXPECT_EQ(kind("/dev/null", 3), ErrorKind::storage);
  EXPECT_EQ(kind(scratch.path("large.npy"), std::int64_t{1} << 55), ErrorKind::storage);
  EXPECT_EQ(scratch.files(), 0U);
}

}  // namespace
}  // namespace strata
