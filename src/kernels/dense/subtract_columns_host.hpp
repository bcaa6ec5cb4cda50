#pragma once
// The loops of subtract_columns on the CPU, for kernels whose Y is made on the way.
//
// Method: 32 rows of Y stay in the second-level cache for all columns of X, of which 32 rows are in
// eight vectors while the columns of Y go by. Loops over vectors are unrolled, or these are not in
// registers.

#include "kernels/backend/run_fused.hpp"
#include "scalar/lanes.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// X ← X − Y·S, for run_fused.
struct SubtractColumns {
  static constexpr std::int64_t kRowVectors = 8;
  static constexpr std::int64_t kRows = kRowVectors * kLanes;

  /// Rows of whole vectors.
  [[gnu::always_inline]] static void tile(MatrixView<double> x, MatrixView<const double> y,
                                          MatrixView<const double> s, std::int64_t row) {
    for (std::int64_t k = 0; k < x.cols; ++k) {
      double* to = x.column(k) + row;
      Lanes values[kRowVectors];
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kRowVectors; ++v) values[v] = Lanes::load(to + v * kLanes);
      for (std::int64_t i = 0; i < y.cols; ++i) {
        const Lanes minus(-s(i, k));
        const double* from = y.column(i) + row;
#pragma GCC unroll 8
        for (std::int64_t v = 0; v < kRowVectors; ++v)
          values[v] = fused(minus, Lanes::load(from + v * kLanes), values[v]);
      }
#pragma GCC unroll 8
      for (std::int64_t v = 0; v < kRowVectors; ++v) values[v].store(to + v * kLanes);
    }
  }
  [[gnu::always_inline]] static void run(MatrixView<double> x, MatrixView<const double> y,
                                         MatrixView<const double> s) {
    std::int64_t row = 0;
    for (; row + kRows <= x.rows; row += kRows) tile(x, y, s, row);
    for (std::int64_t k = 0; k < x.cols; ++k) {
      for (std::int64_t r = row; r < x.rows; ++r) {
        double value = x(r, k);
        for (std::int64_t i = 0; i < y.cols; ++i) value = fused(-s(i, k), y(r, i), value);
        x(r, k) = value;
      }
    }
  }
};

}  // namespace strata
