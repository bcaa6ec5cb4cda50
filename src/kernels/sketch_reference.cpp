// Reference of sketch.hpp, word for word; its transform is also the host's.

#include <cmath>
#include <string>
#include <vector>

#include "kernels/sketch_loops.hpp"

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
};

}  // namespace

void require_sketch(std::uint32_t variant) {
  if (sketch_kind(variant) <= SketchKind::srht_fp16) return;
  throw Error(ErrorKind::device, "sketch",
              "there is no kernel for variant " + std::to_string(variant));
}

void sketch_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  sketch_on_cpu<PlainProducts>(queue, calls, parameters);
}

}  // namespace strata
