// Arrays of any strides and elements, as columns.

#include "matrix/array_columns.hpp"

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <numeric>
#include <vector>

#include "strata/error.hpp"

namespace strata {
namespace {

using Complex128 = std::complex<double>;

/// 0, 1, 2, … in memory.
template <class T>
std::vector<T> counted(std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<float>(i));
  return values;
}

template <class F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::misuse);
    return error.what();
  }
  return "not refused";
}

struct Layout {
  const char* name;
  std::int64_t first, rows, cols, row_stride, col_stride;
};
// Each among 24 elements.
constexpr std::array<Layout, 7> kLayouts{{{"columns", 0, 4, 5, 1, 4},
                                          {"columns with room", 1, 3, 4, 1, 5},
                                          {"rows", 0, 4, 5, 5, 1},
                                          {"every other", 1, 2, 3, 2, 7},
                                          {"upside down", 3, 4, 5, -1, 4},
                                          {"from the right", 20, 4, 6, 1, -4},
                                          {"one row", 2, 1, 6, 9, 3}}};

template <class T>
void expect_elements(const Layout& of) {
  std::vector<T> values = counted<T>(24);
  const ArrayRef array{
      values.data() + of.first, element_of<T>, of.rows, of.cols, of.row_stride, of.col_stride};
  const auto number = [&](std::int64_t i, std::int64_t j) {
    return static_cast<T>(static_cast<float>(of.first + i * of.row_stride + j * of.col_stride));
  };
  const ReadColumns<T> read(array, "test");
  FilledColumns<T> filled(array, "test");
  for (std::int64_t j = 0; j < of.cols; ++j)
    for (std::int64_t i = 0; i < of.rows; ++i) {
      ASSERT_EQ(read.view()(i, j), number(i, j)) << of.name;
      ASSERT_EQ(filled.view()(i, j), number(i, j)) << of.name << ": begins with what was there";
      filled.view()(i, j) += static_cast<T>(100.0F);
    }
  filled.write_back();
  std::vector<T> expected = counted<T>(24);
  for (std::int64_t j = 0; j < of.cols; ++j)
    for (std::int64_t i = 0; i < of.rows; ++i)
      expected[static_cast<std::size_t>(of.first + i * of.row_stride + j * of.col_stride)] +=
          static_cast<T>(100.0F);
  EXPECT_EQ(values, expected) << of.name << ": those elements and no other";
}

TEST(ArrayColumns, AreTheElementsOfEveryLayout) {
  for (const Layout& of : kLayouts) {
    expect_elements<double>(of);
    expect_elements<float>(of);
    expect_elements<std::complex<float>>(of);
    expect_elements<Complex128>(of);
  }
}

TEST(ArrayColumns, AreTheCallersOwnMemoryWhereItLiesByColumns) {
  std::vector<double> values = counted<double>(24);
  const MatrixView<double> view{values.data() + 1, 3, 4, 5};
  EXPECT_EQ(ReadColumns<double>(view, "test").view().data, view.data);
  FilledColumns<double> filled(view, "test");
  EXPECT_EQ(filled.view().data, view.data);
  EXPECT_EQ(filled.view().ld, 5);
  filled.write_back();  // of nothing
  EXPECT_EQ(values, counted<double>(24));
  const ConstArrayRef backward{values.data() + 20, Element::fp64, 4, 6, 1, -4};
  EXPECT_GE(ReadColumns<double>(backward, "test").view().ld, 4) << "no negative leading dimension";
  const ConstArrayRef turned = ConstArrayRef(view).transposed();
  const ReadColumns<double> rows(turned, "test");
  EXPECT_NE(rows.view().data, view.data);
  EXPECT_EQ(rows.view()(3, 2), view(2, 3));
}

TEST(ArrayColumns, WidenAndNeverNarrow) {
  const std::vector<float> values = counted<float>(6);
  const ConstArrayRef array(values.data(), 2, 3, 2);
  EXPECT_EQ(ReadColumns<double>(array, "test").view()(1, 2), 5.0);
  EXPECT_EQ(ReadColumns<Complex128>(array, "test").view()(1, 2), Complex128(5, 0));
  const std::vector<Complex128> numbers = counted<Complex128>(6);
  EXPECT_EQ(
      refusal([&] { (void)ReadColumns<double>(ConstArrayRef(numbers.data(), 2, 3, 2), "test"); }),
      "complex128 where fp64 is needed");
  std::vector<float> out = counted<float>(6);
  EXPECT_EQ(refusal([&] { (void)FilledColumns<double>(ArrayRef(out.data(), 2, 3, 2), "test"); }),
            "fp32 where fp64 is needed");
}

TEST(ArrayColumns, NeedNoAlignment) {
  const std::vector<double> values = counted<double>(6);
  std::vector<std::byte> bytes(6 * sizeof(double) + 1);
  std::memcpy(bytes.data() + 1, values.data(), 6 * sizeof(double));
  const ArrayRef array{bytes.data() + 1, Element::fp64, 2, 3, 1, 2};
  FilledColumns<double> filled(array, "test");
  EXPECT_EQ(filled.view()(1, 2), 5.0);
  filled.view()(1, 2) = 7;
  filled.write_back();
  EXPECT_EQ(ReadColumns<double>(array, "test").view()(1, 2), 7.0);
}

TEST(ArrayColumns, RefuseWhatIsNoArrayOfNumbers) {
  const double value = 0;
  const auto refused = [](ConstArrayRef a) { return refusal([&] { check_array(a, "test"); }); };
  EXPECT_EQ(refused({&value, Element::int32, 1, 1, 1, 1}),
            "an array of int32 is none of fp64, fp32, complex128 or complex64");
  EXPECT_EQ(refused({&value, Element::dd, 1, 1, 1, 1}),
            "an array of dd is none of fp64, fp32, complex128 or complex64");
  EXPECT_EQ(refused({&value, Element::fp64, -1, 1, 1, 1}), "an array of -1 by 1");
  EXPECT_EQ(refused({nullptr, Element::fp64, 1, 2, 1, 1}), "an array of 1 by 2 has no data");
  check_array({nullptr, Element::fp64, 0, 2, 1, 1}, "test");
  double place = 0;
  const ArrayRef one_place{&place, Element::fp64, 2, 2, 0, 0};
  EXPECT_EQ(ReadColumns<double>(one_place, "test").view()(1, 1), 0.0) << "all the same";
  EXPECT_EQ(refusal([&] { (void)FilledColumns<double>(one_place, "test"); }),
            "an array that is filled has one place for several elements");
}

}  // namespace
}  // namespace strata
