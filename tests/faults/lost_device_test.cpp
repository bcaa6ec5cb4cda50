// A device that is lost in the middle of gmres(), eigs() or qr(): the error is that of the device,
// no result is written, and the next call is as if nothing had been.
//
// The devices are those of a FaultBackend in the place of GPUs. This program is one of its own,
// since a process has one CUDA backend.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <fmt/core.h>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "lu/lu_panels.hpp"
#include "strata/error.hpp"
#include "strata/krylov.hpp"
#include "strata/qr.hpp"
#include "tests/krylov/matrices.hpp"
#include "tests/lu/general_matrices.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/fault_device.hpp"
#include "tests/support/simulated_files.hpp"
#include "tests/support/storage_options.hpp"

namespace strata::test {
namespace {

constexpr int kDevices = 2;

class LostDevice : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const std::string file = folder / "libfake_given_backend.so";
    void* plugin = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(plugin, nullptr) << dlerror();
    auto** given = static_cast<const Backend**>(dlsym(plugin, "strata_given_backend"));
    ASSERT_NE(given, nullptr);
    *given = &backend();
    setenv("STRATA_CUDA_BACKEND", file.c_str(), 1);
    std::string why;
    ASSERT_EQ(cuda_backend(&why), &backend()) << why;
  }
  LostDevice() { backend().heal(); }
  ~LostDevice() override { backend().heal(); }

  static FaultBackend& backend() {
    static FaultBackend faults(kDevices);
    return faults;
  }
  static RunOptions options() {
    RunOptions run;
    run.devices = "cuda:0,1";
    run.device_memory_bytes = 16 << 20;
    return run;
  }

  /// `call` makes a result, and throws. Each device dies at ever later operations, until it does so
  /// behind the end of the call. `untouched` looks at what the call would have written.
  template <class Call, class Untouched>
  static void expect_deaths_to_be_told(Call call, Untouched untouched) {
    const auto expected = call();
    for (int d = 0; d < kDevices; ++d) {
      int deaths = 0;
      for (std::int64_t k = 1;; k += k / (kSanitized ? 2 : 4) + 1) {
        backend().set({.dying_device = d, .dies_at = k});
        bool died = false;
        try {
          EXPECT_EQ(call(), expected) << "the death of device " << d << " at " << k;
        } catch (const Error& error) {
          died = true;
          EXPECT_EQ(error.kind(), ErrorKind::device) << error.what();
          EXPECT_EQ(std::string(error.what()),
                    fmt::format("injected: host:{} died at operation {}", d, k));
          untouched();
        }
        backend().heal();
        if (!died) break;
        ++deaths;
        if (deaths % 4 == 1) {
          EXPECT_EQ(call(), expected) << "behind a death at " << k;
        }
      }
      EXPECT_GE(deaths, kSanitized ? 5 : 10) << "device " << d;
    }
    EXPECT_EQ(call(), expected);
    EXPECT_EQ(backend().buffers(), 0) << "released";
  }
};

TEST_F(LostDevice, EndsGmresAndLeavesTheInitialGuess) {
  const SparseMatrix a = grid(13, 11, 17, 0.2);
  const std::vector<double> b = row_sums(a);
  const std::vector<double> guess(b.size(), 0.25);
  std::vector<double> x;
  GmresOptions how;
  how.s = 5;
  how.restart = 15;
  how.basis = KrylovBasis::newton;
  how.run = options();
  expect_deaths_to_be_told(
      [&] {
        x = guess;
        EXPECT_TRUE(gmres(a, b, x, how).ok);
        return x;
      },
      [&] { EXPECT_EQ(x, guess); });
}

TEST_F(LostDevice, EndsEigsAndWritesNoVectors) {
  const SparseMatrix a = grid(9, 8, 31);
  constexpr std::int64_t kPairs = 4;
  const std::vector<double> before(static_cast<std::size_t>(a.rows * kPairs), -7);
  std::vector<double> vectors;
  EigsOptions how;
  how.k = kPairs;
  how.s = 4;
  how.basis_size = 20;
  how.run = options();
  expect_deaths_to_be_told(
      [&] {
        vectors = before;
        EXPECT_TRUE(eigs(a, {vectors.data(), a.rows, kPairs, a.rows}, how).ok);
        return vectors;
      },
      [&] { EXPECT_EQ(vectors, before); });
}

/// Q takes the place of V, so of V nothing is promised; of R, which is written at the end, that it
/// is not.
TEST_F(LostDevice, EndsQrAndWritesNoR) {
  constexpr std::int64_t kRows = 150'000;  // blocks have 32,768
  constexpr std::int64_t kColumns = 8;
  std::vector<double> given(kRows * kColumns);
  for (std::size_t i = 0; i < given.size(); ++i) {
    // Columns near the first one, so that there are several passes.
    given[i] = i < kRows ? random_normal(5, i) : given[i % kRows] + 1e-9 * random_normal(6, i);
  }
  const std::vector<double> no_r(kColumns * kColumns, -7);
  // V stays on the devices between passes, or is streamed.
  for (const std::int64_t budget : {std::int64_t{64} << 20, std::int64_t{3} << 20}) {
    QrOptions how;
    how.run = options();
    how.run.device_memory_bytes = budget;
    std::vector<double> r;
    expect_deaths_to_be_told(
        [&] {
          std::vector<double> v = given;
          r = no_r;
          EXPECT_TRUE(qr(MatrixView<double>{v.data(), kRows, kColumns, kRows},
                         MatrixView<double>{r.data(), kColumns, kColumns, kColumns}, how)
                          .ok);
          v.insert(v.end(), r.begin(), r.end());
          return v;
        },
        [&] { EXPECT_EQ(r, no_r); });
  }
}

/// What a GPU has not computed does not come into files: a run that goes on where it was lost ends
/// with the bits of one that was not. Half the operations die where they are called.
TEST_F(LostDevice, EndsLuInStorageWhichGoesOnToTheSameBits) {
  constexpr std::int64_t kOrder = 96;
  const Matrix<double> a = random_general(kOrder, 21);
  LuOptions options{.run = within_budget({"cuda:0,1", 0.8, 0.35}, kOrder * kOrder * 8), .panel = 8};
  options.run.storage.directories = {"a", "b"};
  options.run.storage.resume = true;
  const auto factor_of = [&](SimulatedFiles& files) {
    options.run.storage.files = &files;
    LuProblem problem;
    problem.n = kOrder;
    LuPanels panels(problem, options, 7);
    (void)panels.factor(source_of_view<double>(a.data.data(), a.ld(), false), 1);
    Matrix<double> factors = make_matrix<double>(kOrder, kOrder, [](auto, auto) { return 0.0; });
    panels.copy_factors(factors.view());
    return factors.data;
  };
  SimulatedFiles untouched(4096);
  const std::vector<double> expected = factor_of(untouched);
  for (int d = 0; d < kDevices; ++d) {
    int deaths = 0;
    for (std::int64_t k = 1;; k += kSanitized ? 7 : 1) {
      SimulatedFiles files(4096);
      backend().set({.dying_device = d, .dies_at = k, .throws = k % 2 == 0});
      bool died = false;
      try {
        EXPECT_EQ(factor_of(files), expected);
      } catch (const Error& error) {
        died = true;
        EXPECT_EQ(std::string(error.what()),
                  fmt::format("injected: host:{} died at operation {}", d, k));
      }
      backend().heal();
      if (!died) break;
      ++deaths;
      ASSERT_EQ(factor_of(files), expected) << "device " << d << " at " << k;
    }
    EXPECT_GE(deaths, kSanitized ? 5 : 40) << "device " << d;
  }
}

}  // namespace
}  // namespace strata::test
