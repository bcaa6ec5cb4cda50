// sketch.hpp on the CPU.
//
// Method: the elements of Ω for a tile of rows are drawn once for all columns; the rows of S go
// side by side, each a chain of its own. In count the rows of a tile go side by side.

#include "kernels/backend/run_fused.hpp"
#include "kernels/tall/sketch_loops.hpp"
#include "scalar/lanes.hpp"

namespace strata {
namespace {

/// sums_i ← fma(omega_i, x_r, sums_i) over the rows of a tile; `padded` rows of Ω, zeros at the
/// end.
struct AddColumn {
  [[gnu::always_inline]] static void run(const double* omega, std::int64_t padded, const double* x,
                                         std::int64_t rows, double* sums) {
    for (std::int64_t i = 0; i < padded; i += 2 * kLanes) {
      Lanes a;
      Lanes b;
      for (std::int64_t r = 0; r < rows; ++r) {
        const Lanes value(x[r]);
        a = fused(Lanes::load(omega + r * padded + i), value, a);
        b = fused(Lanes::load(omega + r * padded + i + kLanes), value, b);
      }
      a.store(sums + i);
      b.store(sums + i + kLanes);
    }
  }
};

/// The tiles of a column; a product with a sign is exact.
struct CountColumn {
  template <class T>
  [[gnu::always_inline]] static void run(const T* x, std::int64_t rows, double scale,
                                         const std::int64_t* bucket, const double* sign,
                                         double* c) {
    const std::int64_t whole = rows - rows % kSketchCountRows;
    for (std::int64_t r = 0; r < whole; r += kSketchCountRows) {
      double* __restrict to = c + *bucket++;
      for (std::int64_t i = 0; i < kSketchCountRows; ++i)
        to[i] += static_cast<double>(x[r + i]) * scale * sign[r + i];
    }
    for (std::int64_t r = whole; r < rows; ++r)
      c[*bucket + r - whole] += static_cast<double>(x[r]) * scale * sign[r];
  }
};

struct VectorProducts {
  template <class T>
  static void count(const T* x, std::int64_t rows, double scale, const CountPlaces& places,
                    double* c) {
    run_fused<CountColumn>(x, rows, scale, places.bucket.data(), places.sign.data(), c);
  }
  static void add_tile(std::uint64_t seed, const double* x, std::int64_t ld, std::int64_t rows,
                       std::int64_t n, std::int64_t first_row, double* s, std::int64_t s_rows) {
    thread_local std::vector<double> omega;
    thread_local std::vector<double> sums;
    const std::int64_t padded = (s_rows + 2 * kLanes - 1) / (2 * kLanes) * (2 * kLanes);
    omega.assign(static_cast<std::size_t>(padded * rows), 0.0);
    sums.resize(static_cast<std::size_t>(padded));
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < s_rows; ++i)
        omega[static_cast<std::size_t>(i + r * padded)] = sketch_normal(seed, first_row + r, i);
    }
    for (std::int64_t k = 0; k < n; ++k) {
      run_fused<AddColumn>(static_cast<const double*>(omega.data()), padded, x + k * ld, rows,
                           sums.data());
      for (std::int64_t i = 0; i < s_rows; ++i)
        s[i + k * s_rows] += sums[static_cast<std::size_t>(i)];
    }
  }
};

}  // namespace

void sketch_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  sketch_on_cpu<VectorProducts>(queue, calls, parameters);
}
void continue_sketch_host(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  continue_sketch_on_cpu<VectorProducts>(queue, calls, parameters);
}

}  // namespace strata
