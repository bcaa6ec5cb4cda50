#pragma once
// Whether the triangles of a dense matrix mirror each other, up to rounding (symmetry.hpp).
//
// Contract: the answer is the same on any number of threads. What is thrown between blocks ends the
// search and is thrown by it.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/work_crew.hpp"
#include "matrix/symmetry.hpp"
#include "scalar/complex.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

struct MirroredTriangles {
  bool differ = false;  ///< in any element, be it by rounding
  /// The first pair that differs by more than rounding is (row, column), row > column, and its
  /// mirror; first by columns, 64 at a time. −1: there is none.
  std::int64_t row = -1;
  std::int64_t column = -1;
};

/// Compares a(i, j) with (the conjugate of) a(j, i) for all i > j of a square matrix, in blocks of
/// which both sides stay in the cache. `between` is called between them, by several threads.
template <class T>
[[nodiscard]] MirroredTriangles compare_triangles(MatrixView<const T> a, double tolerance,
                                                  WorkCrew& crew,
                                                  const std::function<void()>& between = {}) {
  using Wide = WideOf<T>;
  constexpr std::int64_t kBlock = 64;
  const std::int64_t strips = (a.cols + kBlock - 1) / kBlock;
  std::vector<MirroredTriangles> found(static_cast<std::size_t>(strips));
  std::atomic<std::int64_t> first_apart{strips};
  const auto compare = [&](std::int64_t s) {
    MirroredTriangles& here = found[static_cast<std::size_t>(s)];
    const std::int64_t end = std::min((s + 1) * kBlock, a.cols);
    for (std::int64_t ib = s * kBlock; ib < a.rows; ib += kBlock) {
      if (first_apart < s) return;
      if (between) between();
      for (std::int64_t j = s * kBlock; j < end; ++j) {
        for (std::int64_t i = std::max(ib, j + 1); i < std::min(ib + kBlock, a.rows); ++i) {
          const T mirror = conjugate<T>(a(j, i));
          if (a(i, j) == mirror) continue;
          here.differ = true;
          if (is_symmetric_pair(static_cast<Wide>(a(i, j)), static_cast<Wide>(mirror),
                                static_cast<double>(real_part(a(i, i))),
                                static_cast<double>(real_part(a(j, j))), tolerance))
            continue;
          here.row = i;
          here.column = j;
          std::int64_t least = first_apart;
          while (s < least && !first_apart.compare_exchange_weak(least, s)) {
          }
          return;
        }
      }
    }
  };
  crew.share(strips, compare);
  if (first_apart < strips) return found[static_cast<std::size_t>(first_apart.load())];
  MirroredTriangles all;
  for (const MirroredTriangles& one : found) all.differ = all.differ || one.differ;
  return all;
}

/// By as many threads as the matrix is worth.
template <class T>
[[nodiscard]] MirroredTriangles compare_triangles(MatrixView<const T> a, double tolerance,
                                                  const std::function<void()>& between = {}) {
  constexpr std::int64_t kSmall = 512;
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  WorkCrew crew(a.rows < kSmall ? 0 : cores - 1);
  return compare_triangles(a, tolerance, crew, between);
}

}  // namespace strata
