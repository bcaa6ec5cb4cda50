// Loading MAGMA, with a library of the test in its place (fake_magma.cpp).

#include "bench/magma.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <vector>

#include "bench/in_place.hpp"

namespace strata::bench {
namespace {

/// It lies beside the program of the tests.
MagmaLibrary load_fake() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string file = folder / "libfake_magma.so";
  const std::array<const char*, 2> files{"libno_such_magma.so", file.c_str()};
  return MagmaLibrary(files);
}

template <class T>
void expect_factor(const MagmaLibrary& magma, Element precision, double tolerance) {
  const std::int64_t n = 31;
  const std::int64_t ld = 34;
  const std::unique_ptr<InPlace> in_place = make_host_in_place(1);
  std::vector<T> values(static_cast<std::size_t>(ld * n), T{-77});
  const Matrices a{.data = values.data(), .n = n, .ld = ld, .precision = precision};
  const TestMatrix matrix{.kind = MatrixKind::matern};
  in_place->fill(a, matrix);
  EXPECT_EQ(magma.potrf(3, values.data(), n, ld), 0);
  EXPECT_LT(in_place->residual(a, matrix), tolerance);
  EXPECT_EQ(values[static_cast<std::size_t>(n)], T{-77});
  values[0] = -1;
  EXPECT_EQ(magma.potrf(3, values.data(), n, ld), 1);
}

TEST(MagmaLibrary, IsLoadedAndCalledByItsPrototypes) {
  const MagmaLibrary magma = load_fake();
  EXPECT_EQ(magma.version(), "2.80.7");
  expect_factor<double>(magma, Element::fp64, 1e-15);
  expect_factor<float>(magma, Element::fp32, 1e-6);
}

/// The one line that it throws.
template <class F>
std::string magma_complaint(F&& work) {
  try {
    work();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(MagmaLibrary, SaysWhatIsMissing) {
  constexpr std::array<const char*, 2> kNone{"libno_such_magma.so", "libno_such_magma.so.2"};
  const std::string absent = magma_complaint([&] { MagmaLibrary magma(kNone); });
  EXPECT_NE(absent.find("MAGMA is not installed: libno_such_magma.so:"), std::string::npos);
  EXPECT_NE(absent.find("libno_such_magma.so.2:"), std::string::npos);
  EXPECT_EQ(absent.find('\n'), std::string::npos);
  constexpr std::array<const char*, 1> kOther{"libz.so.1"};
  EXPECT_EQ(magma_complaint([&] { MagmaLibrary magma(kOther); }), "this MAGMA lacks magma_init");
}

TEST(MagmaLibrary, RefusesOrdersThatItsIntegersCannotIndex) {
  const MagmaLibrary magma = load_fake();
  double never_touched = 0;
  const std::int64_t most = 46340;  // its square is the last below 2³¹
  EXPECT_NE(magma_complaint([&] { (void)magma.potrf(3, &never_touched, most + 1, most + 1); }), "");
  EXPECT_EQ(magma_complaint([&] { (void)magma.potrf(0, &never_touched, most, most); }), "");
}

}  // namespace
}  // namespace strata::bench
