// Factorizations in the memory of a device, on every backend: results, batches, and each misuse.

#include "strata/device_cholesky.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <thread>

#include "base/index.hpp"
#include "scalar/complex.hpp"
#include "strata/error.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/device_memory.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

/// min(i, j), counted from 1, with −7 above the diagonal and in the padding; its factor is ones.
template <class T>
std::vector<T> min_values(std::int64_t n, std::int64_t ld) {
  std::vector<T> values(static_cast<std::size_t>(n * ld), T{-7});
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      values[static_cast<std::size_t>(i + j * ld)] = static_cast<T>(j + 1);
    }
  }
  return values;
}
template <class T>
std::vector<T> ones_values(std::int64_t n, std::int64_t ld) {
  std::vector<T> values(static_cast<std::size_t>(n * ld), T{-7});
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) values[static_cast<std::size_t>(i + j * ld)] = T{1};
  }
  return values;
}

void expect_misuse(const std::function<void()>& call, const std::string& piece,
                   ErrorKind kind = ErrorKind::misuse) {
  try {
    call();
    ADD_FAILURE() << "was accepted: " << piece;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
  }
}

class DeviceCholesky : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] DeviceCholeskyOptions options() const { return {.device = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Backends, DeviceCholesky, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(DeviceCholesky, FactorsInPlaceAndTouchesNothingElse) {
  test::DeviceMemory memory(GetParam());
  const auto check = [&]<class T>(T, std::int64_t n, std::int64_t ld) {
    const MatrixView<T> a = memory.put(min_values<T>(n, ld), n, n, ld);
    const FactorInfo info = cholesky_in_place(a, options());
    EXPECT_TRUE(info.ok);
    EXPECT_EQ(info.first_bad_pivot, -1);
    EXPECT_EQ(info.log_determinant, 0);
    EXPECT_EQ(memory.get(a), ones_values<T>(n, ld)) << n << " " << ld;
  };
  for (const std::int64_t n : {1, 2, 63, 130, 300}) {
    for (const std::int64_t padding : {0, 1, 6}) {
      check(double{}, n, n + padding);
      check(float{}, n, n + padding);
    }
  }
}

TEST_P(DeviceCholesky, ABadPivotIsAValue) {
  test::DeviceMemory memory(GetParam());
  for (const std::int64_t bad : {0, 64, 199}) {
    std::vector<double> values = min_values<double>(200, 203);
    values[static_cast<std::size_t>(bad + bad * 203)] -= 3;
    const FactorInfo info = cholesky_in_place(memory.put(values, 200, 200, 203), options());
    EXPECT_FALSE(info.ok);
    EXPECT_EQ(info.first_bad_pivot, bad);
    EXPECT_EQ(info.bad_pivot, -2);
    EXPECT_TRUE(std::isnan(info.log_determinant));
  }
}

/// i to the power k.
template <class T>
T turned(std::int64_t k) {
  constexpr T kTurns[] = {T(1, 0), T(0, 1), T(-1, 0), T(0, -1)};
  return kTurns[(k % 4 + 4) % 4];
}
/// min(i, j)·i^(i − j), Hermitian, with numbers that are not to be read above the diagonal, in the
/// padding and as imaginary parts on the diagonal; its factor is i^(i − j).
template <class T>
std::vector<T> hermitian_values(std::int64_t n, std::int64_t ld) {
  std::vector<T> values(at(n * ld), T(-7, 3));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = j; i < n; ++i)
      values[at(i + j * ld)] =
          static_cast<RealOf<T>>(j + 1) * turned<T>(i - j) + (i == j ? T(0, 5) : T{});
  return values;
}
template <class T>
std::vector<T> hermitian_factor(std::int64_t n, std::int64_t ld) {
  std::vector<T> values(at(n * ld), T(-7, 3));
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = j; i < n; ++i) values[at(i + j * ld)] = turned<T>(i - j);
  return values;
}

TEST_P(DeviceCholesky, FactorsHermitianMatricesInPlaceAndTouchesNothingElse) {
  test::DeviceMemory memory(GetParam(), std::int64_t{128} << 20);
  const auto check = [&]<class T>(T, std::int64_t n, std::int64_t ld) {
    const MatrixView<T> a = memory.put(hermitian_values<T>(n, ld), n, n, ld);
    const FactorInfo info = cholesky_in_place(a, options());
    EXPECT_TRUE(info.ok);
    EXPECT_EQ(info.log_determinant, 0);
    EXPECT_EQ(memory.get(a), hermitian_factor<T>(n, ld)) << n << " " << ld;
  };
  for (const std::int64_t n : {1, 2, 3, 31, 63, 64, 65, 130, 300, 700}) {
    for (const std::int64_t padding : {0, 1}) {
      check(std::complex<double>{}, n, n + padding);
      check(std::complex<float>{}, n, n + padding);
    }
  }
}

TEST_P(DeviceCholesky, FactorsHermitianMatricesOfSeveralPanelsInPlace) {
  // Panels of 512 columns; rows below them go through limited memory, in pieces beyond 3,000 or so.
  const bool on_host = GetParam() == "host";
  test::DeviceMemory memory(GetParam(), std::int64_t{512} << 20);
  const auto check = [&]<class T>(T, std::int64_t n, std::int64_t ld) {
    const MatrixView<T> a = memory.put(hermitian_values<T>(n, ld), n, n, ld);
    EXPECT_TRUE(cholesky_in_place(a, options()).ok);
    EXPECT_TRUE(memory.get(a) == hermitian_factor<T>(n, ld)) << n << " " << ld;
  };
  check(std::complex<double>{}, 1100, 1100);
  check(std::complex<float>{}, 1100, 1101);
  if (on_host) return;
  for (const std::int64_t n : {1700, 4200}) {
    check(std::complex<double>{}, n, n + 1);
    check(std::complex<float>{}, n, n);
  }
}

TEST_P(DeviceCholesky, FactorsBatchesOfHermitianMatricesAndTellsOfEachWhatItMeets) {
  const auto check = [&]<class T>(T) {
    test::DeviceMemory memory(GetParam(), std::int64_t{64} << 20);
    std::vector<MatrixView<T>> batch;
    const std::vector<std::int64_t> orders{0, 1, 2, 17, 40, 63, 64, 65, 129, 40, 200};
    for (std::size_t m = 0; m < orders.size(); ++m) {
      const std::int64_t n = orders[m];
      const std::int64_t ld = n + 1;
      std::vector<T> values = hermitian_values<T>(n, ld);
      if (m == 4) values[at(7 + 7 * ld)] -= T(3, 0);
      if (m == 8) values[at(100 + 100 * ld)] = std::numeric_limits<RealOf<T>>::quiet_NaN();
      batch.push_back(memory.put(values, n, n, ld));
    }
    const std::vector<FactorInfo> infos =
        cholesky_batched(std::span<const MatrixView<T>>(batch), options());
    ASSERT_EQ(infos.size(), orders.size());
    for (std::size_t m = 0; m < orders.size(); ++m) {
      EXPECT_EQ(infos[m].first_bad_pivot, m == 4 ? 7 : m == 8 ? 100 : -1) << m;
      if (m == 4) {
        EXPECT_EQ(infos[m].bad_pivot, -2);
      }
      if (m == 4 || m == 8) continue;
      EXPECT_EQ(infos[m].log_determinant, 0);
      EXPECT_EQ(memory.get(batch[m]), hermitian_factor<T>(orders[m], orders[m] + 1)) << m;
    }
  };
  check(std::complex<double>{});
  check(std::complex<float>{});
}

TEST_P(DeviceCholesky, AutoIsTheDeviceOfTheMatrix) {
  if (GetParam() == "host" && cuda_backend() != nullptr) GTEST_SKIP() << "auto is a GPU here";
  test::DeviceMemory memory(GetParam());
  const MatrixView<double> a = memory.put(min_values<double>(20, 20), 20, 20, 20);
  EXPECT_TRUE(cholesky_in_place(a).ok);
  EXPECT_EQ(memory.get(a), ones_values<double>(20, 20));
}

TEST_P(DeviceCholesky, ABatchTellsOfEachMatrix) {
  test::DeviceMemory memory(GetParam());
  std::vector<MatrixView<double>> batch;
  for (const std::int64_t n : {5, 0, 64, 200, 1, 33}) {
    std::vector<double> values = min_values<double>(n, n + 2);
    if (n == 64) values[static_cast<std::size_t>(40 + 40 * 66)] -= 3;
    batch.push_back(memory.put(values, n, n, n + 2));
  }
  batch.push_back({nullptr, 0, 0, 1});
  const std::vector<FactorInfo> infos =
      cholesky_batched(std::span<const MatrixView<double>>(batch), options());
  ASSERT_EQ(infos.size(), batch.size());
  for (std::size_t b = 0; b < batch.size(); ++b) {
    EXPECT_EQ(infos[b].ok, b != 2);
    EXPECT_EQ(infos[b].first_bad_pivot, b == 2 ? 40 : -1);
    if (b != 2 && batch[b].rows > 0) {
      EXPECT_EQ(memory.get(batch[b]), ones_values<double>(batch[b].rows, batch[b].ld)) << b;
    }
  }
  EXPECT_EQ(infos[2].bad_pivot, -2);
  EXPECT_TRUE(cholesky_batched(std::span<const MatrixView<float>>(), options()).empty());
}

TEST_P(DeviceCholesky, ThreadsMayCallAtOnce) {
  test::DeviceMemory memory(GetParam());
  std::vector<MatrixView<double>> matrices;
  for (int t = 0; t < 4; ++t)
    matrices.push_back(memory.put(min_values<double>(90, 90), 90, 90, 90));
  {
    std::vector<std::jthread> threads;
    for (const MatrixView<double> a : matrices) {
      threads.emplace_back([a, this] { EXPECT_TRUE(cholesky_in_place(a, options()).ok); });
    }
  }
  for (const MatrixView<double> a : matrices) EXPECT_EQ(memory.get(a), ones_values<double>(90, 90));
}

TEST_P(DeviceCholesky, MisuseIsRefusedBeforeAnythingIsWritten) {
  test::DeviceMemory memory(GetParam());
  const MatrixView<double> a = memory.put(min_values<double>(40, 42), 40, 40, 42);
  const auto refuse = [&](MatrixView<double> bad, const std::string& piece) {
    expect_misuse([&] { (void)cholesky_in_place(bad, options()); }, piece);
    const std::vector<MatrixView<double>> batch{a, bad};
    expect_misuse(
        [&] { (void)cholesky_batched(std::span<const MatrixView<double>>(batch), options()); },
        piece);
  };
  refuse({a.data, 40, 39, 42}, "40 by 39");
  refuse({a.data, -1, -1, 42}, "-1 by -1");
  refuse({a.data, 40, 40, 39}, "39");
  refuse({a.data, 0, 0, 0}, "leading dimension of 0");
  refuse({nullptr, 40, 40, 42}, "no data");
  refuse({a.data, 40, 40, std::numeric_limits<std::int64_t>::max()}, "40 columns");
  std::byte* skewed = reinterpret_cast<std::byte*>(a.data) + 4;
  refuse({reinterpret_cast<double*>(skewed), 40, 40, 42}, "not aligned");
  const auto with = [&](DeviceCholeskyOptions options, const std::string& piece,
                        ErrorKind kind = ErrorKind::misuse) {
    if (options.device == "auto") options.device = GetParam();
    expect_misuse([&] { (void)cholesky_in_place(a, options); }, piece, kind);
  };
  with({.recnb = 32}, "recnb is 32");
  with({.nb = 64}, "nb is 64");
  with({.variant = static_cast<CholeskyVariant>(7)}, "7 is no variant");
  with({.device = "nonsense"}, "'nonsense'");
  with({.device = "host:2"}, "'host:2' names 2 devices");
  with({.device = "cuda:99"}, "cuda:99", ErrorKind::device);
  EXPECT_EQ(memory.get(a), min_values<double>(40, 42));
}

TEST(DeviceCholeskyOnAGpu, RefusesAHostPointer) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  std::vector<double> values = min_values<double>(40, 40);
  for (const char* device : {"cuda:0", "auto"}) {
    expect_misuse(
        [&] {
          (void)cholesky_in_place(MatrixView<double>{values.data(), 40, 40, 40}, {device});
        },
        "host pointer");
  }
  // The last column lies past the end of the memory.
  test::DeviceMemory memory("cuda");
  MatrixView<double> a = memory.put(min_values<double>(40, 40), 40, 40, 40);
  a.ld = std::int64_t{1} << 30;
  expect_misuse([&] { (void)cholesky_in_place(a, {"cuda:0"}); }, "not in memory of cuda:0");
  EXPECT_EQ(values, min_values<double>(40, 40));
}

TEST_P(DeviceCholesky, EveryVariantGivesTheFactor) {
  test::DeviceMemory memory(GetParam());
  for (const CholeskyVariant variant : {CholeskyVariant::automatic, CholeskyVariant::fused,
                                        CholeskyVariant::left, CholeskyVariant::right}) {
    const MatrixView<double> a = memory.put(min_values<double>(300, 301), 300, 300, 301);
    const DeviceCholeskyOptions choice{.device = GetParam(), .variant = variant, .nb = 128};
    EXPECT_TRUE(cholesky_in_place(a, choice).ok);
    EXPECT_EQ(memory.get(a), ones_values<double>(300, 301));
  }
}

}  // namespace
}  // namespace strata
