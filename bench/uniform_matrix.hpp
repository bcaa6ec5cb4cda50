#pragma once
// A general matrix of uniform numbers, made column by column by all threads, and what a solution
// leaves of a right-hand side, without the matrix in memory.
//
// Contract: element (i, j) is a function of the seed and the place j·n + i, uniform in [−1, 1), in
// both parts of complex numbers. Sums of residuals are in fp64 or complex128.

#include <algorithm>
#include <cmath>
#include <complex>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "base/index.hpp"
#include "base/random.hpp"
#include "base/work_crew.hpp"
#include "scalar/complex.hpp"

namespace strata::bench {

inline int helping_threads() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())) - 1;
}

template <class T>
struct UniformMatrix {
  std::int64_t n = 0;
  std::uint64_t seed = 1;

  /// Element `place`, counted by columns.
  [[nodiscard]] T at_place(std::int64_t place) const {
    const auto number = [&](std::int64_t k) {
      return static_cast<RealOf<T>>(2 * random_uniform(seed, static_cast<std::uint64_t>(k)) - 1);
    };
    if constexpr (is_complex_v<T>) {
      return {number(2 * place), number(2 * place + 1)};
    } else {
      return number(place);
    }
  }
  /// Columns first … first + count − 1, one behind the other.
  void fill(std::int64_t first, std::int64_t count, T* to) const {
    for (std::int64_t k = 0; k < n * count; ++k) to[k] = at_place(first * n + k);
  }
  void fill_all(T* to) const {
    WorkCrew crew(helping_threads());
    crew.share(n, [&](std::int64_t j) { fill(j, 1, to + j * n); });
  }
};

/// What x leaves of b, of a matrix whose columns `fill(first, count, to)` writes.
struct LinearResidual {
  double largest = 0;  ///< max |b − A·x|, NaN if there is one
  /// largest / (u·(‖A‖∞·‖x‖∞ + ‖b‖∞)·n), u the rounding of T.
  double hpl = 0;
};
template <class T, class Fill>
[[nodiscard]] LinearResidual residual_of(std::int64_t n, const Fill& fill, const std::vector<T>& x,
                                         const std::vector<T>& b) {
  using W = WideOf<T>;
  const std::int64_t rows = std::max<std::int64_t>(n, 1);
  const std::int64_t columns = std::clamp<std::int64_t>((std::int64_t{1} << 20) / rows, 1, rows);
  std::vector<W> r(b.begin(), b.end());
  std::vector<double> sums(at(n));
  std::mutex mutex;
  std::condition_variable turn;
  std::int64_t next = 0;  // strips are added in their order, so that equal runs give equal sums
  bool failed = false;    // nobody waits for a strip that threw
  const auto add_strip = [&](std::int64_t strip) {
    const std::int64_t first = strip * columns;
    const std::int64_t count = std::min(columns, n - first);
    std::vector<T> a(at(n * count));
    fill(first, count, a.data());
    std::vector<W> products(at(n));
    std::vector<double> magnitudes(at(n));
    for (std::int64_t c = 0; c < count; ++c) {
      const auto factor = static_cast<W>(x[at(first + c)]);
      for (std::int64_t i = 0; i < n; ++i) {
        const auto element = static_cast<W>(a[at(c * n + i)]);
        products[at(i)] += element * factor;
        magnitudes[at(i)] += std::abs(element);
      }
    }
    std::unique_lock lock(mutex);
    turn.wait(lock, [&] { return next == strip || failed; });
    for (std::int64_t i = 0; i < n; ++i) {
      r[at(i)] -= products[at(i)];
      sums[at(i)] += magnitudes[at(i)];
    }
    ++next;
    turn.notify_all();
  };
  WorkCrew crew(helping_threads());
  crew.share((n + columns - 1) / columns, [&](std::int64_t strip) {
    try {
      add_strip(strip);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failed = true;
      turn.notify_all();
      throw;
    }
  });
  LinearResidual result;
  double norm_x = 0;
  double norm_b = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double size = std::abs(r[at(i)]);
    if (!(size <= result.largest)) result.largest = size;  // keeps a NaN
    norm_x = std::max<double>(norm_x, std::abs(static_cast<W>(x[at(i)])));
    norm_b = std::max<double>(norm_b, std::abs(static_cast<W>(b[at(i)])));
  }
  const double norm_a = n == 0 ? 0 : *std::max_element(sums.begin(), sums.end());
  const double u = std::numeric_limits<RealOf<T>>::epsilon() / 2;
  result.hpl = result.largest / (u * (norm_a * norm_x + norm_b) * static_cast<double>(rows));
  return result;
}

}  // namespace strata::bench
