// From the name of a number format to its type.

#include "scalar/dispatch.hpp"

#include <gtest/gtest.h>

#include <iterator>

#include "scalar/fp8.hpp"
#include "scalar/half.hpp"

namespace strata {
namespace {

constexpr Element kAll[] = {Element::fp64,  Element::fp32,  Element::fp16,       Element::bf16,
                            Element::fp8,   Element::dd,    Element::complex128, Element::complex64,
                            Element::int32, Element::int64, Element::fp16x2,     Element::none};
static_assert(std::size(kAll) == kElements);

TEST(Dispatch, HandsOverTheTypeOfTheElement) {
  const auto size = [](auto type) { return sizeof(typename decltype(type)::type); };
  EXPECT_EQ(dispatch(Element::fp64, size), sizeof(double));
  EXPECT_EQ(dispatch(Element::fp32, size), sizeof(float));
  EXPECT_EQ(dispatch(Element::dd, size), 2 * sizeof(double));
  const auto name = [](auto type) { return element_of<typename decltype(type)::type>; };
  EXPECT_EQ(dispatch(Element::fp64, name), Element::fp64);
  EXPECT_EQ(dispatch(Element::fp32, name), Element::fp32);
  EXPECT_EQ(dispatch(Element::dd, name), Element::dd);
  EXPECT_EQ(dispatch_native(Element::fp64, name), Element::fp64);
  EXPECT_EQ(dispatch_native(Element::fp32, name), Element::fp32);
  EXPECT_THROW(dispatch_native(Element::dd, name), Error);
  for (const Element element : {Element::complex128, Element::complex64}) {
    EXPECT_EQ(dispatch(element, name), element);
    EXPECT_EQ(dispatch_blas(element, name), element);
    EXPECT_EQ(dispatch(element, size), static_cast<std::size_t>(bytes_of(element)));
    EXPECT_THROW(dispatch_native(element, name), Error);
    EXPECT_THROW(dispatch_real(element, name), Error);
  }
  EXPECT_EQ(dispatch_blas(Element::fp64, name), Element::fp64);
  EXPECT_EQ(dispatch_blas(Element::fp32, name), Element::fp32);
  EXPECT_THROW(dispatch_blas(Element::dd, name), Error);
  EXPECT_EQ(dispatch_real(Element::dd, name), Element::dd);
}

TEST(Dispatch, ReturnsWhatTheFunctionReturnsByReferenceToo) {
  int value = 0;
  int& same = dispatch(Element::fp64, [&](auto) -> int& { return value; });
  EXPECT_EQ(&same, &value);
}

TEST(Dispatch, RefusesAFormatWithoutArithmeticAndNamesIt) {
  for (const Element element : kAll) {
    bool called = false;
    const auto note = [&](auto) { called = true; };
    if (has_arithmetic(element)) {
      dispatch(element, note);
      EXPECT_TRUE(called);
      continue;
    }
    try {
      dispatch(element, note);
      ADD_FAILURE() << to_string(element);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
      EXPECT_NE(std::string(error.what()).find(to_string(element)), std::string::npos);
    }
    EXPECT_FALSE(called);
  }
}

TEST(Element, HasItsBytesAndName) {
  constexpr std::int64_t kBytes[] = {8, 4, 2, 2, 1, 16, 16, 8, 4, 8, 4, 0};
  constexpr std::string_view kNames[] = {"fp64",  "fp32",  "fp16",       "bf16",
                                         "fp8",   "dd",    "complex128", "complex64",
                                         "int32", "int64", "fp16x2",     "none"};
  for (std::size_t i = 0; i < std::size(kAll); ++i) {
    EXPECT_EQ(bytes_of(kAll[i]), kBytes[i]);
    EXPECT_EQ(to_string(kAll[i]), kNames[i]);
  }
}

TEST(Element, KnowsWhatItsPartsAre) {
  EXPECT_EQ(element_of_parts(Element::complex128), Element::fp64);
  EXPECT_EQ(element_of_parts(Element::complex64), Element::fp32);
  for (const Element element : kAll) {
    EXPECT_EQ(is_complex(element), element_of_parts(element) != element) << to_string(element);
    EXPECT_EQ(bytes_of(element),
              (is_complex(element) ? 2 : 1) * bytes_of(element_of_parts(element)));
  }
}

TEST(Element, OfACppTypeHasItsSize) {
  EXPECT_EQ(bytes_of(element_of<double>), sizeof(double));
  EXPECT_EQ(bytes_of(element_of<float>), sizeof(float));
  EXPECT_EQ(bytes_of(element_of<Half>), sizeof(Half));
  EXPECT_EQ(bytes_of(element_of<Fp8>), sizeof(Fp8));
  EXPECT_EQ(element_of<Half>, Element::fp16);
  EXPECT_EQ(element_of<std::complex<double>>, Element::complex128);
  EXPECT_EQ(element_of<std::complex<float>>, Element::complex64);
  EXPECT_EQ(element_of<Fp8>, Element::fp8);
  EXPECT_EQ(element_of<std::int32_t>, Element::int32);
  EXPECT_EQ(element_of<std::int64_t>, Element::int64);
}

}  // namespace
}  // namespace strata
