// Loading cuDSS, with a library of the test in its place (fake_cudss.cpp).

#include "bench/cudss.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "base/check.hpp"
#include "bench/cudss_problem.hpp"

namespace strata::bench {
namespace {

/// A file beside the program of the tests.
CudssLibrary load(const std::string& name) {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const std::string file = folder / name;
  const std::array<const char*, 2> files{"libno_such_cudss.so", file.c_str()};
  return CudssLibrary(files);
}

/// The one line that it throws.
template <class F>
std::string cudss_complaint(F&& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(CudssLibrary, IsLoadedWithItsVersion) {
  const CudssLibrary cudss = load("libfake_cudss.so");
  EXPECT_EQ(cudss.version(), "1.2.3");
  const std::string failed =
      cudss_complaint([&] { InstalledLibrary::check("cudssDestroy", cudss.destroy(nullptr)); });
  EXPECT_EQ(failed, "cudssDestroy: status 7");
}

TEST(CudssLibrary, RefusesAnotherMajorVersion) {
  ASSERT_EQ(setenv("FAKE_CUDSS_MAJOR", "0", 1), 0);
  const std::string other = cudss_complaint([] { (void)load("libfake_cudss.so"); });
  ASSERT_EQ(unsetenv("FAKE_CUDSS_MAJOR"), 0);
  EXPECT_NE(other.find("cuDSS 0.2.3"), std::string::npos) << other;
}

TEST(CudssLibrary, SaysWhatIsMissing) {
  const std::string absent = cudss_complaint([] { (void)load("libno_such_cudss.so"); });
  EXPECT_NE(absent.find("cuDSS is not installed"), std::string::npos) << absent;
  const std::string lacking = cudss_complaint([] { (void)load("libfake_magma.so"); });
  EXPECT_NE(lacking.find("lacks cudssGetProperty"), std::string::npos) << lacking;
}

TEST(CudssPeer, WantsAGpuFirst) {
  const std::string host = cudss_complaint([] { CudssPeer peer("host:1"); });
  EXPECT_NE(host.find("'host:1' is no GPU"), std::string::npos) << host;
  EXPECT_THROW(CudssPeer("nonsense:1"), Error);
}

}  // namespace
}  // namespace strata::bench
