// Triangles of double-double on the host.
//
// Method: high and low parts lie apart, so that four neighbours of a column are a vector. The row
// of R that a step subtracts with is copied out of its columns first.

#include "kernels/tall/dd_triangles.hpp"

#include <algorithm>

#include "kernels/backend/run_fused.hpp"
#include "scalar/lanes.hpp"

namespace strata {
namespace {

using DdLanes = DoubleDoubleOf<Lanes>;

constexpr std::int64_t whole_lanes(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

[[gnu::always_inline]] inline DdLanes load(const double* hi, const double* lo) {
  return {Lanes::load(hi), Lanes::load(lo)};
}
[[gnu::always_inline]] inline void store(const DdLanes& x, double* hi, double* lo) {
  x.hi.store(hi);
  x.lo.store(lo);
}
[[gnu::always_inline]] inline DdLanes broadcast(double hi, double lo) {
  return {Lanes(hi), Lanes(lo)};
}

/// Row j of R, then the products of it. Lanes that stick out of a column at its ends are of rows
/// that are done, or below the diagonal: they are not read.
struct EliminateRow {
  [[gnu::always_inline]] static void run(double* hi, double* lo, std::int64_t n,
                                         std::int64_t stride, std::int64_t j, DoubleDouble root,
                                         double* row) {
    double* row_lo = row + stride;
    for (std::int64_t k = j + 1; k < n; ++k) {
      row[k] = hi[j + k * stride];
      row_lo[k] = lo[j + k * stride];
    }
    const DdLanes by = broadcast(root.hi, root.lo);
    const std::int64_t first = (j + 1) / kLanes * kLanes;
    for (std::int64_t k = first; k < n; k += kLanes)
      store(load(row + k, row_lo + k) / by, row + k, row_lo + k);
    for (std::int64_t k = j + 1; k < n; ++k) {
      double* column = hi + k * stride;
      double* column_lo = lo + k * stride;
      const DdLanes of_column = broadcast(row[k], row_lo[k]);
      for (std::int64_t i = first; i <= k; i += kLanes)
        store(
            subtract_product(load(column + i, column_lo + i), load(row + i, row_lo + i), of_column),
            column + i, column_lo + i);
    }
  }
};

struct AddUpperProduct {
  [[gnu::always_inline]] static void run(double* p, const double* r, const DoubleDouble* s,
                                         std::int64_t n, std::int64_t stride) {
    const std::int64_t low = n * stride;  // where low parts begin
    for (std::int64_t j = 0; j < n; ++j) {
      double* column = p + j * stride;
      for (std::int64_t k = 0; k <= j; ++k) {
        const DoubleDouble factor = s[k + j * n];
        const DdLanes by = broadcast(factor.hi, factor.lo);
        const double* of_r = r + k * stride;
        std::int64_t i = 0;
        for (; i + kLanes <= k + 1; i += kLanes)
          store(load(column + i, column + low + i) + load(of_r + i, of_r + low + i) * by,
                column + i, column + low + i);
        if (i > k) continue;
        // The last lanes end at the diagonal of R.
        const DdLanes sum =
            load(column + i, column + low + i) + load(of_r + i, of_r + low + i) * by;
        const std::size_t bytes = static_cast<std::size_t>(k + 1 - i) * sizeof(double);
        std::memcpy(column + i, &sum.hi.values, bytes);
        std::memcpy(column + low + i, &sum.lo.values, bytes);
      }
    }
  }
};

}  // namespace

DdTrailing::DdTrailing(const DoubleDouble* b, std::int64_t n, std::int64_t ld)
    : n_(n),
      stride_(whole_lanes(n)),
      hi_(static_cast<std::size_t>(n * stride_)),
      lo_(static_cast<std::size_t>(n * stride_)),
      row_(static_cast<std::size_t>(2 * stride_)) {
  for (std::int64_t k = 0; k < n; ++k) {
    double* hi = hi_.data() + k * stride_;
    double* lo = lo_.data() + k * stride_;
    for (std::int64_t i = 0; i <= k; ++i) {
      hi[i] = b[i + k * ld].hi;
      lo[i] = b[i + k * ld].lo;
    }
  }
}

void DdTrailing::eliminate(std::int64_t j, const DoubleDouble& root, DoubleDouble* r,
                           std::int64_t ld) {
  run_fused<EliminateRow>(hi_.data(), lo_.data(), n_, stride_, j, root, row_.data());
  for (std::int64_t k = j + 1; k < n_; ++k) {
    const auto at = static_cast<std::size_t>(k);
    r[j + k * ld] = {row_[at], row_[at + static_cast<std::size_t>(stride_)]};
  }
}

void dd_upper_product(DoubleDouble* p, const DoubleDouble* r, const DoubleDouble* s,
                      std::int64_t n) {
  const std::int64_t stride = whole_lanes(n);
  using Values = std::vector<double, KeptAllocator<double>>;
  Values product(static_cast<std::size_t>(2 * n * stride));
  Values of_r(product.size());
  const auto low = static_cast<std::size_t>(n * stride);
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t i = 0; i <= k; ++i) {
      const auto at = static_cast<std::size_t>(i + k * stride);
      of_r[at] = r[i + k * n].hi;
      of_r[at + low] = r[i + k * n].lo;
    }
  }
  run_fused<AddUpperProduct>(product.data(), of_r.data(), s, n, stride);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i + j * stride);
      p[i + j * n] = {product[at], product[at + low]};
    }
  }
}

}  // namespace strata
