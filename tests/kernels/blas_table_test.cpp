// The BLAS of the host kernels: what it computes, which kernels it gets, and that it is ours alone.
// fake_openblas.cpp stands for an OpenBLAS that does not know the processor.

#include "kernels/backend/blas_table.hpp"

#include <dlfcn.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/environment_overlay.hpp"
#include "base/random.hpp"
#include "kernels/backend/blas_host.hpp"
#include "strata/error.hpp"
#include "tests/kernels/processors.hpp"

namespace strata::testing {
namespace {

using Variables = EnvironmentOverlay::Variables;

std::string fake() {
  return (std::filesystem::canonical("/proc/self/exe").parent_path() / "libfake_openblas.so")
      .string();
}

BlasDescription load_fake(const ProcessorFeatures& processor, const std::string& has,
                          const std::string& users_choice = "") {
  const EnvironmentOverlay overlay(
      Variables{{"STRATA_FAKE_KERNELS", has}, {"OPENBLAS_CORETYPE", users_choice}});
  char** const before = environ;
  const BlasDescription about = load_blas({.files = fake(), .processor = processor}).about;
  EXPECT_EQ(environ, before);
  EXPECT_TRUE(about.private_copy) << about.why_shared;
  EXPECT_EQ(about.file, fake());
  EXPECT_EQ(about.threads, 1);
  return about;
}

TEST(BlasKernels, AreThoseThatTheProcessorDeserves) {
  const BlasDescription wide = load_fake(kAvx512, "");
  EXPECT_EQ(wide.kernels, "SKYLAKEX");
  EXPECT_EQ(wide.kernels_own, "Prescott");
  EXPECT_EQ(wide.kernels_asked, "SKYLAKEX");
  EXPECT_FALSE(wide.asked_by_user);
  EXPECT_EQ(wide.version, "OpenBLAS 0.0.0 DYNAMIC_ARCH SKYLAKEX");
}

TEST(BlasKernels, AreTheNextBestWhereTheLibraryHasNoOthers) {
  EXPECT_EQ(load_fake(kAvx512, "HASWELL,").kernels, "HASWELL");
  const BlasDescription none = load_fake(kAvx512, "ZEN,");
  EXPECT_EQ(none.kernels, "Prescott");
  EXPECT_EQ(none.kernels_asked, "HASWELL");
}

TEST(BlasKernels, AreTheLibrarysOwnOnAnOldProcessor) {
  const BlasDescription old = load_fake(kSse, "");
  EXPECT_EQ(old.kernels, "Prescott");
  EXPECT_EQ(old.kernels_asked, "");
}

TEST(BlasKernels, AreTheUsersChoiceBeforeAll) {
  const BlasDescription chosen = load_fake(kAvx512, "", "NEHALEM");
  EXPECT_EQ(chosen.kernels, "NEHALEM");
  EXPECT_EQ(chosen.kernels_asked, "NEHALEM");
  EXPECT_TRUE(chosen.asked_by_user);
}

TEST(BlasInstance, LeavesOneThatTheProcessLoadedAlone) {
  const EnvironmentOverlay overlay(
      Variables{{"OPENBLAS_CORETYPE", ""}, {"OPENBLAS_NUM_THREADS", "6"}});
  void* const theirs = dlopen(fake().c_str(), RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(theirs, nullptr) << dlerror();
  const auto threads = reinterpret_cast<int (*)()>(dlsym(theirs, "openblas_get_num_threads"));
  const int before = threads();
  ASSERT_EQ(before, 6);
  const BlasLibrary ours = load_blas({.files = fake(), .processor = kAvx512});
  EXPECT_EQ(ours.about.threads, 1);
  EXPECT_EQ(threads(), before);
  ASSERT_NE(ours.set_threads, nullptr);
  ours.set_threads(3);
  EXPECT_EQ(threads(), before);
  EXPECT_STREQ(reinterpret_cast<const char* (*)()>(dlsym(theirs, "openblas_get_corename"))(),
               "Prescott");
  dlclose(theirs);
}

/// The OpenBLAS that this program is linked with, as NumPy's is in the process of a guest.
class Linked : public ::testing::Test {
 protected:
  void SetUp() override {
    if (host_blas().about.kernels.empty()) GTEST_SKIP() << "the BLAS of this build is no OpenBLAS";
    library_ = dlopen(host_blas().about.file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    ASSERT_NE(library_, nullptr) << dlerror();
  }
  [[nodiscard]] void* find(const char* name) const { return dlsym(library_, name); }

  void* library_ = nullptr;
};

TEST_F(Linked, KeepsItsThreadsAndItsKernels) {
  const auto get = reinterpret_cast<int (*)()>(find("openblas_get_num_threads"));
  const auto set = reinterpret_cast<void (*)(int)>(find("openblas_set_num_threads"));
  ASSERT_TRUE(get != nullptr && set != nullptr);
  const int before = get();
  set(2);
  const EnvironmentOverlay overlay(Variables{{"OPENBLAS_CORETYPE", ""}});
  const BlasLibrary ours = load_blas({});
  EXPECT_TRUE(ours.about.private_copy) << ours.about.why_shared;
  EXPECT_EQ(ours.about.threads, 1);
  EXPECT_NE(reinterpret_cast<void*>(ours.functions.dgemm), find("cblas_dgemm"));
  EXPECT_NE(reinterpret_cast<void*>(ours.functions.dpotrf), find("dpotrf_"));
  std::vector<double> a{4, 2, 2, 5};
  blas::potrf<double>({a.data(), 2, 2, 2});
  EXPECT_EQ(get(), 2);
  ours.set_threads(1);
  EXPECT_EQ(get(), 2);
  set(before);
}

// Two files of OpenBLAS have their tables of kernels under one name.
TEST_F(Linked, ComputesAfterAnotherFileOfItWasLoaded) {
#ifdef STRATA_SANITIZED
  GTEST_SKIP() << "sanitizers refuse what keeps two files apart";
#endif
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / fmt::format("strata-openblas-{}.so", getpid());
  std::filesystem::copy_file(host_blas().about.file, file);
  const BlasLibrary other = load_blas({.files = file.string()});
  std::filesystem::remove(file);
  EXPECT_TRUE(other.about.private_copy) << other.about.why_shared;
  const BlasTable theirs{.dsyrk =
                             reinterpret_cast<decltype(BlasTable::dsyrk)>(find("cblas_dsyrk"))};
  for (const auto dsyrk : {theirs.dsyrk, other.functions.dsyrk}) {
    const std::vector<double> a{1, 2, 3, 4};
    std::vector<double> c{10, 10, 10, 10};
    dsyrk(CblasColMajor, CblasLower, CblasNoTrans, 2, 2, -1, a.data(), 2, 1, c.data(), 2);
    EXPECT_EQ(c, (std::vector<double>{0, -4, 10, -10}));
  }
}

TEST_F(Linked, OneThatTookLesserKernelsIsNoModel) {
  const std::vector<std::string> better = coretypes_to_ask(processor_features(), "Prescott");
  if (better.empty()) GTEST_SKIP() << "this processor deserves no better";
  const EnvironmentOverlay overlay(Variables{{"OPENBLAS_CORETYPE", "Prescott"}});
  const BlasDescription lesser = load_blas({}).about;
  EXPECT_EQ(lesser.kernels, "Prescott");
  const EnvironmentOverlay again(Variables{{"OPENBLAS_CORETYPE", ""}});
  const BlasDescription ours = load_blas({}).about;
  EXPECT_TRUE(as_wide_as(ours.kernels, better.back())) << ours.kernels;
}

TEST(BlasTable, IsOneForAllThreads) {
  std::vector<const BlasTable*> seen(4);
  std::vector<std::thread> threads;
  for (const BlasTable*& table : seen) threads.emplace_back([&] { table = &blas_table(); });
  for (std::thread& thread : threads) thread.join();
  for (const BlasTable* table : seen) EXPECT_EQ(table, &blas_table());
}

TEST(BlasTable, NamesTheFileThatIsMissingOrNoBlas) {
  const auto complaint = [](const std::string& files) -> std::string {
    try {
      (void)load_blas({.files = files});
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::device);
      return error.what();
    }
    return "";
  };
  const std::string absent = complaint("/no/such/libblas.so");
  EXPECT_NE(absent.find("/no/such/libblas.so"), std::string::npos) << absent;
  EXPECT_EQ(absent.find('\n'), std::string::npos) << absent;
  const std::string other = complaint("libm.so.6");
  EXPECT_NE(other.find("libm.so.6"), std::string::npos) << other;
  EXPECT_NE(other.find("cblas_dgemm"), std::string::npos) << other;
  const std::string second = complaint("libm.so.6:libno_such_lapack.so");
  EXPECT_NE(second.find("libno_such_lapack.so"), std::string::npos) << second;
}

template <class T>
struct Values {
  Values(int rows_, int cols_, std::uint64_t seed)
      : rows(rows_), cols(cols_), data(static_cast<std::size_t>(rows_) * cols_) {
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<T>(2 * random_uniform(seed, i) - 1);
  }
  T& operator()(int i, int j) { return data[static_cast<std::size_t>(i + j * rows)]; }
  MatrixView<T> view() { return {data.data(), rows, cols, rows}; }

  int rows, cols;
  std::vector<T> data;
};

template <class T>
class BlasCalls : public ::testing::Test {
 protected:
  static constexpr double kTolerance = std::is_same_v<T, double> ? 1e-13 : 1e-4;
};
using Precisions = ::testing::Types<double, float>;
TYPED_TEST_SUITE(BlasCalls, Precisions);

TYPED_TEST(BlasCalls, GemmAgainstPlainLoops) {
  using T = TypeParam;
  for (const auto& [m, n, k] :
       {std::array{1, 1, 1}, std::array{37, 5, 19}, std::array{64, 65, 3}}) {
    Values<T> a(m, k, 1);
    Values<T> b(n, k, 2);
    Values<T> c(m, n, 3);
    Values<T> expected = c;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i)
        for (int p = 0; p < k; ++p) expected(i, j) -= a(i, p) * b(j, p);
    blas::gemm_minus<T>(CblasNoTrans, CblasTrans, k, a.view(), b.view(), c.view());
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i)
        ASSERT_NEAR(c(i, j), expected(i, j), this->kTolerance) << i << " " << j;
  }
}

TYPED_TEST(BlasCalls, PotrfAgainstPlainLoops) {
  using T = TypeParam;
  for (const int n : {1, 2, 33, 130}) {
    Values<T> a(n, n, 4);
    for (int j = 0; j < n; ++j) a(j, j) += static_cast<T>(n);
    Values<T> expected = a;
    for (int j = 0; j < n; ++j) {
      for (int p = 0; p < j; ++p)
        for (int i = j; i < n; ++i) expected(i, j) -= expected(i, p) * expected(j, p);
      const T pivot = std::sqrt(expected(j, j));
      for (int i = j; i < n; ++i) expected(i, j) /= pivot;
      expected(j, j) = pivot;
    }
    EXPECT_EQ(blas::potrf(a.view()), 0);
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < n; ++i)  // above the diagonal nothing has changed
        ASSERT_NEAR(a(i, j), expected(i, j), this->kTolerance * n) << i << " " << j;
    a(n - 1, n - 1) = T{-1};
    for (int j = 0; j < n - 1; ++j) {
      for (int i = j + 1; i < n; ++i) a(i, j) = 0;
      a(j, j) = 1;
    }
    EXPECT_EQ(blas::potrf(a.view()), n) << "the column counted from 1";
  }
}

}  // namespace
}  // namespace strata::testing
