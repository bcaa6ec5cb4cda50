// Reference of sketch.hpp, word for word; its transform is also the host's.

#include <cmath>
#include <string>
#include <vector>

#include "kernels/tall/sketch_loops.hpp"

namespace strata {
namespace {

struct PlainProducts {
  /// s ← s + Ω·x, a tile of rows of x.
  static void add_tile(std::uint64_t seed, const double* x, std::int64_t ld, std::int64_t rows,
                       std::int64_t n, std::int64_t first_row, double* s, std::int64_t s_rows) {
    for (std::int64_t k = 0; k < n; ++k) {
      for (std::int64_t i = 0; i < s_rows; ++i) {
        double sum = 0;
        for (std::int64_t r = 0; r < rows; ++r)
          sum = fused(sketch_normal(seed, first_row + r, i), x[r + k * ld], sum);
        s[i + k * s_rows] += sum;
      }
    }
  }
  template <class T>
  static void count(const T* x, std::int64_t rows, double scale, const CountPlaces& places,
                    double* c) {
    for (std::int64_t r = 0; r < rows; ++r) {
      const auto row = static_cast<std::size_t>(r);
      c[places.bucket[row / kSketchCountRows] + r % kSketchCountRows] +=
          static_cast<double>(x[r]) * scale * places.sign[row];
    }
  }
};

}  // namespace

void sketch_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  sketch_on_cpu<PlainProducts>(queue, calls, parameters);
}
void continue_sketch_reference(Queue& queue, const KernelCalls& calls,
                               const KernelParameters& parameters) {
  continue_sketch_on_cpu<PlainProducts>(queue, calls, parameters);
}

}  // namespace strata
