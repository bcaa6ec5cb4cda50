// From the name of a number format to its type.

#include "scalar/dispatch.hpp"

#include <gtest/gtest.h>

namespace strata {
namespace {

constexpr Precision kAll[] = {Precision::fp64, Precision::fp32, Precision::fp16, Precision::fp8,
                              Precision::dd};

TEST(Dispatch, HandsOverTheTypeOfThePrecision) {
  const auto size = [](auto type) { return sizeof(typename decltype(type)::type); };
  EXPECT_EQ(dispatch(Precision::fp64, size), sizeof(double));
  EXPECT_EQ(dispatch(Precision::fp32, size), sizeof(float));
  const auto name = [](auto type) { return precision_of<typename decltype(type)::type>; };
  EXPECT_EQ(dispatch(Precision::fp64, name), Precision::fp64);
  EXPECT_EQ(dispatch(Precision::fp32, name), Precision::fp32);
}

TEST(Dispatch, ReturnsWhatTheFunctionReturnsByReferenceToo) {
  int value = 0;
  int& same = dispatch(Precision::fp64, [&](auto) -> int& { return value; });
  EXPECT_EQ(&same, &value);
}

TEST(Dispatch, RefusesAFormatWithoutArithmeticAndNamesIt) {
  for (const Precision precision : kAll) {
    bool called = false;
    const auto note = [&](auto) { called = true; };
    if (has_arithmetic(precision)) {
      dispatch(precision, note);
      EXPECT_TRUE(called);
      continue;
    }
    try {
      dispatch(precision, note);
      ADD_FAILURE() << to_string(precision);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
      EXPECT_NE(std::string(error.what()).find(to_string(precision)), std::string::npos);
    }
    EXPECT_FALSE(called);
  }
}

TEST(Precision, HasItsBytesAndName) {
  constexpr std::int64_t kBytes[] = {8, 4, 2, 1, 16};
  constexpr std::string_view kNames[] = {"fp64", "fp32", "fp16", "fp8", "dd"};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(bytes_of(kAll[i]), kBytes[i]);
    EXPECT_EQ(to_string(kAll[i]), kNames[i]);
  }
}

}  // namespace
}  // namespace strata
