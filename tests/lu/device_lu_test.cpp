// LU in the memory of a device, of one matrix and of many, on every backend: pivots and factors
// against elimination column by column, solves against products of what was given, and each misuse.

#include "strata/device_lu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <thread>

#include "base/index.hpp"
#include "base/random.hpp"
#include "scalar/complex.hpp"
#include "strata/error.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/device_memory.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::Matrix;

class DeviceLu : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] DeviceLuOptions options() const { return {.device = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Backends, DeviceLu, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

template <class T>
Matrix<T> uniform_in_square(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return test::make_matrix<T>(rows, cols, [=](auto i, auto j) {
    const auto k = static_cast<std::uint64_t>(2 * (i * 8192 + j));
    const auto re = static_cast<RealOf<T>>(2 * random_uniform(seed, k) - 1);
    if constexpr (is_complex_v<T>)
      return T(re, static_cast<RealOf<T>>(2 * random_uniform(seed, k + 1) - 1));
    else
      return re;
  });
}

/// With ld − rows numbers of padding behind each column.
template <class T>
std::vector<T> with_padding(const Matrix<T>& a, std::int64_t ld) {
  std::vector<T> values(at(ld * a.cols), T{-7});
  for (std::int64_t j = 0; j < a.cols; ++j)
    std::copy_n(a.view().column(j), a.rows, values.data() + j * ld);
  return values;
}

template <class T>
double sum_of_parts(const T& x) {
  return static_cast<double>(std::abs(real_part(x))) +
         static_cast<double>(std::abs(imaginary_part(x)));
}

/// P·A = L·U as a textbook has it, in T; the pivots.
template <class T>
std::vector<std::int64_t> eliminate_by_textbook(Matrix<T>& a) {
  std::vector<std::int64_t> pivots;
  for (std::int64_t j = 0; j < a.cols; ++j) {
    std::int64_t pivot = j;
    for (std::int64_t i = j + 1; i < a.rows; ++i)
      if (sum_of_parts(a(i, j)) > sum_of_parts(a(pivot, j))) pivot = i;
    pivots.push_back(pivot);
    for (std::int64_t c = 0; c < a.cols; ++c) std::swap(a(j, c), a(pivot, c));
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      a(i, j) /= a(j, j);
      for (std::int64_t c = j + 1; c < a.cols; ++c) a(i, c) -= a(i, j) * a(j, c);
    }
  }
  return pivots;
}

/// The largest |b − op(A)·x| over what rounds in it.
template <class T>
double share_of_residual(const Matrix<T>& a, DeviceLuSystem system, const Matrix<T>& x,
                         const Matrix<T>& b) {
  double worst = 0;
  for (std::int64_t c = 0; c < b.cols; ++c) {
    for (std::int64_t i = 0; i < b.rows; ++i) {
      WideOf<T> rest = static_cast<WideOf<T>>(b(i, c));
      double terms = sum_of_parts(b(i, c));
      for (std::int64_t j = 0; j < a.cols; ++j) {
        const T element = system == DeviceLuSystem::plain        ? a(i, j)
                          : system == DeviceLuSystem::transposed ? a(j, i)
                                                                 : conjugate<T>(a(j, i));
        rest -= static_cast<WideOf<T>>(element) * static_cast<WideOf<T>>(x(j, c));
        terms += sum_of_parts(element) * sum_of_parts(x(j, c));
      }
      worst = std::max(worst, sum_of_parts(rest) / terms);
    }
  }
  return worst;
}

TEST_P(DeviceLu, HasPivotsAndFactorsOfEliminationAndTouchesNothingElse) {
  test::DeviceMemory memory(GetParam(), std::int64_t{64} << 20);
  const auto check = [&]<class T>(T, std::int64_t n, std::int64_t padding) {
    const Matrix<T> given = uniform_in_square<T>(n, n, 5);
    const std::int64_t ld = std::max<std::int64_t>(n + padding, 1);
    const MatrixView<T> a = memory.put(with_padding(given, ld), n, n, ld);
    const MatrixView<std::int64_t> pivots =
        memory.put(std::vector<std::int64_t>(at(std::max<std::int64_t>(n, 1)), -1), n, 1,
                   std::max<std::int64_t>(n, 1));
    const DeviceLuInfo info = lu_in_place(a, pivots, options());
    ASSERT_TRUE(info.ok) << n;
    Matrix<T> expected = given;
    const std::vector<std::int64_t> expected_pivots = eliminate_by_textbook(expected);
    const std::vector<T> factors = memory.get(a);
    const std::vector<std::int64_t> found = memory.get(pivots);
    constexpr double kRounding = std::numeric_limits<RealOf<T>>::epsilon();
    double largest = 0;
    double smallest = std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < n; ++j) {
      ASSERT_EQ(found[at(j)], expected_pivots[at(j)]) << n << ": " << j;
      for (std::int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(sum_of_parts(factors[at(i + j * ld)] - expected(i, j)), 0,
                    kRounding * static_cast<double>(n) * 400)
            << n << ": " << i << ", " << j;
        largest = std::max(largest, sum_of_parts(given(i, j)));
        if (i <= j) largest = std::max(largest, sum_of_parts(factors[at(i + j * ld)]));
      }
      smallest = std::min(smallest, sum_of_parts(factors[at(j + j * ld)]));
      for (std::int64_t i = n; i < ld; ++i) ASSERT_EQ(factors[at(i + j * ld)], T{-7});
    }
    if (n == 0) return;
    EXPECT_NEAR(info.largest, largest, kRounding * largest);
    EXPECT_NEAR(info.smallest_pivot, smallest, kRounding * smallest);
  };
  for (const std::int64_t n : {0, 1, 2, 31, 64, 130, 300}) {
    for (const std::int64_t padding : {0, 3}) {
      check(double{}, n, padding);
      check(float{}, n, padding);
      check(std::complex<double>{}, n, padding);
      check(std::complex<float>{}, n, padding);
    }
  }
}

TEST_P(DeviceLu, SolvesAllThreeSystems) {
  test::DeviceMemory memory(GetParam(), std::int64_t{64} << 20);
  const auto check = [&]<class T>(T, std::int64_t n, std::int64_t m) {
    const Matrix<T> given = uniform_in_square<T>(n, n, 7);
    const Matrix<T> b = uniform_in_square<T>(n, m, 8);
    const MatrixView<T> a = memory.put(with_padding(given, n + 1), n, n, n + 1);
    const MatrixView<std::int64_t> pivots = memory.put(std::vector<std::int64_t>(at(n)), n, 1, n);
    ASSERT_TRUE(lu_in_place(a, pivots, options()).ok);
    for (const DeviceLuSystem system :
         {DeviceLuSystem::plain, DeviceLuSystem::transposed, DeviceLuSystem::adjoint}) {
      const MatrixView<T> x = memory.put(with_padding(b, n + 2), n, m, n + 2);
      solve_in_place(MatrixView<const T>(a), MatrixView<const std::int64_t>(pivots), x, system,
                     options());
      const std::vector<T> values = memory.get(x);
      Matrix<T> solution(n, m);
      for (std::int64_t c = 0; c < m; ++c)
        for (std::int64_t i = 0; i < n; ++i) solution(i, c) = values[at(i + c * (n + 2))];
      EXPECT_LE(share_of_residual(given, system, solution, b),
                40 * static_cast<double>(n + 1) * std::numeric_limits<RealOf<T>>::epsilon())
          << n << ", " << m << ", " << static_cast<int>(system);
    }
  };
  for (const std::int64_t n : {1, 2, 65, 300, 1100}) {
    for (const std::int64_t m : {0, 1, 5, 70}) {
      if (n > 1024 && m != 5) continue;  // exchanges of more columns than are done at once
      check(double{}, n, m);
      check(float{}, n, m);
      check(std::complex<double>{}, n, m);
      check(std::complex<float>{}, n, m);
    }
  }
}

/// Matrices and pivots in device memory for one call.
template <class T>
struct LuBatch {
  std::vector<Matrix<T>> given;
  std::vector<MatrixView<T>> matrices;
  std::vector<MatrixView<std::int64_t>> pivots;

  void add(test::DeviceMemory& memory, Matrix<T> a, std::int64_t padding) {
    const std::int64_t n = a.rows;
    const std::int64_t ld = std::max<std::int64_t>(n + padding, 1);
    matrices.push_back(memory.put(with_padding(a, ld), n, n, ld));
    pivots.push_back(memory.put(std::vector<std::int64_t>(at(std::max<std::int64_t>(n, 1)), -1), n,
                                1, std::max<std::int64_t>(n, 1)));
    given.push_back(std::move(a));
  }
};

constexpr std::int64_t kBatchOrders[] = {0,   1,   2,   3,   7,   8,   9,   15, 16,
                                         17,  24,  31,  32,  33,  47,  63,  64, 65,
                                         100, 127, 128, 129, 200, 255, 256, 257};

TEST_P(DeviceLu, BatchesHaveThePivotsAndFactorsOfElimination) {
  const auto check = [&]<class T>(T) {
    test::DeviceMemory memory(GetParam(), std::int64_t{128} << 20);
    LuBatch<T> batch;
    for (const std::int64_t n : kBatchOrders)
      for (std::uint64_t seed = 30; seed < 33; ++seed)
        batch.add(memory, uniform_in_square<T>(n, n, seed), static_cast<std::int64_t>(seed % 3));
    const std::vector<DeviceLuInfo> infos =
        lu_batched(std::span<const MatrixView<T>>(batch.matrices), batch.pivots, options());
    ASSERT_EQ(infos.size(), batch.given.size());
    constexpr double kRounding = std::numeric_limits<RealOf<T>>::epsilon();
    for (std::size_t m = 0; m < infos.size(); ++m) {
      const MatrixView<T> a = batch.matrices[m];
      const std::int64_t n = a.rows;
      EXPECT_TRUE(infos[m].ok) << n;
      Matrix<T> expected = batch.given[m];
      const std::vector<std::int64_t> expected_pivots = eliminate_by_textbook(expected);
      const std::vector<T> factors = memory.get(a);
      const std::vector<std::int64_t> found = memory.get(batch.pivots[m]);
      for (std::int64_t j = 0; j < n; ++j) {
        ASSERT_EQ(found[at(j)], expected_pivots[at(j)]) << n << ": " << j;
        for (std::int64_t i = 0; i < n; ++i)
          ASSERT_NEAR(sum_of_parts(factors[at(i + j * a.ld)] - expected(i, j)), 0,
                      kRounding * static_cast<double>(n) * 400)
              << n << ": " << i << ", " << j;
        for (std::int64_t i = n; i < a.ld; ++i) ASSERT_EQ(factors[at(i + j * a.ld)], T{-7});
      }
    }
  };
  check(double{});
  check(float{});
  check(std::complex<double>{});
  check(std::complex<float>{});
}

// All candidates of a column of Hadamard's matrices are alike, and all numbers of elimination
// exact.
TEST_P(DeviceLu, BatchesTakeTheFirstOfElementsThatAreAlike) {
  const auto check = [&]<class T>(T) {
    test::DeviceMemory memory(GetParam());
    LuBatch<T> batch;
    for (const std::int64_t n : {2, 4, 8, 16, 32, 64, 128, 256})
      batch.add(memory,
                test::make_matrix<T>(
                    n, n,
                    [](auto i, auto j) {
                      return std::popcount(static_cast<std::uint64_t>(i & j)) % 2 == 0 ? 1.0 : -1.0;
                    }),
                0);
    const std::vector<DeviceLuInfo> infos =
        lu_batched(std::span<const MatrixView<T>>(batch.matrices), batch.pivots, options());
    ASSERT_EQ(infos.size(), batch.given.size());
    for (std::size_t m = 0; m < infos.size(); ++m) {
      Matrix<T> expected = batch.given[m];
      EXPECT_EQ(memory.get(batch.pivots[m]), eliminate_by_textbook(expected)) << expected.rows;
      EXPECT_EQ(memory.get(batch.matrices[m]), expected.data) << expected.rows;
      EXPECT_TRUE(infos[m].ok);
      EXPECT_EQ(infos[m].largest, static_cast<double>(expected.rows));
    }
  };
  check(double{});
  check(float{});
  check(std::complex<double>{});
  check(std::complex<float>{});
}

TEST_P(DeviceLu, BatchesTellOfEachMatrixWhatACallOfItsOwnTells) {
  const auto check = [&]<class T>(T) {
    test::DeviceMemory memory(GetParam(), std::int64_t{64} << 20);
    LuBatch<T> batch;
    for (const std::int64_t n : {1, 5, 16, 20, 32, 40, 64, 90, 128, 150, 256}) {
      const Matrix<T> sound = uniform_in_square<T>(n, n, 40);
      const std::int64_t bad = n / 3;
      batch.add(memory, sound, 0);
      Matrix<T> singular = sound;  // a column of zeros
      std::fill_n(singular.view().column(bad), n, T{0});
      batch.add(memory, singular, 1);
      Matrix<T> infinite = sound;
      infinite(n - 1, bad) = std::numeric_limits<RealOf<T>>::infinity();
      batch.add(memory, infinite, 0);
      Matrix<T> nan = sound;
      nan(bad, bad) = std::numeric_limits<RealOf<T>>::quiet_NaN();
      batch.add(memory, nan, 2);
      batch.add(memory, test::make_matrix<T>(n, n, [](auto, auto) { return 0.0; }), 0);
      batch.add(memory, sound, 0);
    }
    const std::vector<DeviceLuInfo> infos =
        lu_batched(std::span<const MatrixView<T>>(batch.matrices), batch.pivots, options());
    ASSERT_EQ(infos.size(), batch.given.size());
    for (std::size_t m = 0; m < infos.size(); ++m) {
      const std::int64_t n = batch.given[m].rows;
      const MatrixView<T> alone = memory.put(with_padding(batch.given[m], n), n, n, n);
      const MatrixView<std::int64_t> pivots = memory.put(std::vector<std::int64_t>(at(n)), n, 1, n);
      const DeviceLuInfo info = lu_in_place(alone, pivots, options());
      const std::string which = std::to_string(n) + ", matrix " + std::to_string(m % 6);
      EXPECT_EQ(infos[m].ok, info.ok) << which;
      EXPECT_EQ(infos[m].zero_pivot, info.zero_pivot) << which;
      EXPECT_EQ(infos[m].not_finite, info.not_finite) << which;
      constexpr double kRounding = std::numeric_limits<RealOf<T>>::epsilon();
      if (info.not_finite < 0) {
        EXPECT_NEAR(infos[m].largest, info.largest, 100 * kRounding * info.largest) << which;
        EXPECT_NEAR(infos[m].smallest_pivot, info.smallest_pivot,
                    1e4 * kRounding * static_cast<double>(n) * info.largest)
            << which;
        EXPECT_EQ(memory.get(batch.pivots[m]), memory.get(pivots)) << which;
      }
      if (m % 6 == 5) {
        EXPECT_EQ(memory.get(batch.matrices[m]), memory.get(batch.matrices[m - 5])) << which;
      }
    }
  };
  check(double{});
  check(float{});
  check(std::complex<double>{});
  check(std::complex<float>{});
}

TEST_P(DeviceLu, WhatEliminationMeetsIsAValue) {
  test::DeviceMemory memory(GetParam());
  const std::int64_t n = 100;
  const MatrixView<std::int64_t> pivots = memory.put(std::vector<std::int64_t>(at(n)), n, 1, n);
  // Columns 40 and 41 are equal.
  Matrix<double> twins = test::make_matrix<double>(
      n, n, [](auto i, auto j) { return i == j || (i == 40 && j == 41) ? 1.0 : 0.0; });
  twins(41, 41) = 0;
  DeviceLuInfo info = lu_in_place(memory.put(with_padding(twins, n), n, n, n), pivots, options());
  EXPECT_FALSE(info.ok);
  EXPECT_EQ(info.zero_pivot, 41);
  EXPECT_EQ(info.not_finite, -1);
  EXPECT_EQ(info.smallest_pivot, 0);
  Matrix<double> infinite = uniform_in_square<double>(n, n, 3);
  infinite(12, 7) = std::numeric_limits<double>::quiet_NaN();
  info = lu_in_place(memory.put(with_padding(infinite, n), n, n, n), pivots, options());
  EXPECT_FALSE(info.ok);
  EXPECT_EQ(info.not_finite, 7);
}

TEST_P(DeviceLu, AutoIsTheDeviceOfTheMatrix) {
  if (GetParam() == "host" && cuda_backend() != nullptr) GTEST_SKIP() << "auto is a GPU here";
  test::DeviceMemory memory(GetParam());
  const MatrixView<double> a = memory.put(std::vector<double>{0, 2, 1, 0}, 2, 2, 2);
  const MatrixView<std::int64_t> pivots = memory.put(std::vector<std::int64_t>(2), 2, 1, 2);
  EXPECT_TRUE(lu_in_place(a, pivots).ok);
  EXPECT_EQ(memory.get(a), (std::vector<double>{2, 0, 0, 1}));
  EXPECT_EQ(memory.get(pivots), (std::vector<std::int64_t>{1, 1}));
}

TEST_P(DeviceLu, ThreadsMayCallAtOnce) {
  test::DeviceMemory memory(GetParam());
  const std::int64_t n = 80;
  const Matrix<double> given = uniform_in_square<double>(n, n, 2);
  std::vector<MatrixView<double>> matrices;
  std::vector<MatrixView<std::int64_t>> pivots;
  for (int i = 0; i < 4; ++i) {
    matrices.push_back(memory.put(with_padding(given, n), n, n, n));
    pivots.push_back(memory.put(std::vector<std::int64_t>(at(n)), n, 1, n));
  }
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < 4; ++i)
    threads.emplace_back(
        [&, i] { EXPECT_TRUE(lu_in_place(matrices[i], pivots[i], options()).ok); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 1; i < 4; ++i) {
    EXPECT_EQ(memory.get(matrices[i]), memory.get(matrices[0]));
    EXPECT_EQ(memory.get(pivots[i]), memory.get(pivots[0]));
  }
}

void expect_refused(ErrorKind kind, const std::string& piece, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "was accepted: " << piece;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
  }
}

TEST_P(DeviceLu, MisuseIsRefusedBeforeAnythingIsWritten) {
  test::DeviceMemory memory(GetParam());
  const std::int64_t n = 40;
  const std::vector<double> values = with_padding(uniform_in_square<double>(n, n, 1), n + 2);
  const MatrixView<double> a = memory.put(values, n, n, n + 2);
  const MatrixView<std::int64_t> pivots = memory.put(std::vector<std::int64_t>(at(n)), n, 1, n);
  const MatrixView<double> b = memory.put(std::vector<double>(at(n)), n, 1, n);
  const auto refuse = [&](MatrixView<double> bad, MatrixView<std::int64_t> by,
                          const std::string& piece) {
    expect_refused(ErrorKind::misuse, piece, [&] { (void)lu_in_place(bad, by, options()); });
    expect_refused(ErrorKind::misuse, piece, [&] {
      solve_in_place(MatrixView<const double>(bad), MatrixView<const std::int64_t>(by), b,
                     DeviceLuSystem::plain, options());
    });
  };
  refuse({a.data, n, n - 1, n + 2}, pivots, "40 by 39");
  refuse({a.data, n, n, n - 1}, pivots, "leading dimension of 39");
  refuse({nullptr, n, n, n + 2}, pivots, "no data");
  refuse(a, {pivots.data, n - 1, 1, n}, "39 by 1 pivots");
  refuse(a, {nullptr, n, 1, n}, "no data");
  expect_refused(ErrorKind::misuse, "right-hand sides of 39 by 1", [&] {
    solve_in_place(MatrixView<const double>(a), MatrixView<const std::int64_t>(pivots),
                   MatrixView<double>{b.data, n - 1, 1, n}, DeviceLuSystem::plain, options());
  });
  expect_refused(ErrorKind::misuse, "9 is no system", [&] {
    solve_in_place(MatrixView<const double>(a), MatrixView<const std::int64_t>(pivots), b,
                   static_cast<DeviceLuSystem>(9), options());
  });
  expect_refused(ErrorKind::misuse, "'nonsense'",
                 [&] { (void)lu_in_place(a, pivots, {.device = "nonsense"}); });
  const std::vector<MatrixView<double>> two{a, a};
  const std::vector<MatrixView<std::int64_t>> one{pivots};
  expect_refused(ErrorKind::misuse, "1 vectors of pivots for 2 matrices", [&] {
    (void)lu_batched(std::span<const MatrixView<double>>(two), one, options());
  });
  const std::vector<MatrixView<double>> oblong{a, {a.data, n, n - 1, n + 2}};
  expect_refused(ErrorKind::misuse, "40 by 39", [&] {
    (void)lu_batched(std::span<const MatrixView<double>>(oblong),
                     std::vector<MatrixView<std::int64_t>>{pivots, pivots}, options());
  });
  EXPECT_EQ(memory.get(a), values);
}

TEST(DeviceLuOnAGpu, RefusesAHostPointer) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  test::DeviceMemory memory("cuda");
  const MatrixView<double> a = memory.put(std::vector<double>{1}, 1, 1, 1);
  std::int64_t pivot = 0;
  expect_refused(ErrorKind::misuse, "host pointer", [&] {
    (void)lu_in_place(a, MatrixView<std::int64_t>{&pivot, 1, 1, 1}, {"cuda:0"});
  });
}

}  // namespace
}  // namespace strata
