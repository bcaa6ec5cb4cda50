// Steps of recurrences by columns, on the CPU.
//
// Method: a dot product is eight of them beside each other, two vectors of four, which are added
// two by two at the end: the chain of a single one would wait for each addition. Sums of a few
// parts, and what only copies, take the reference's way.

#include <array>

#include "kernels/backend/operand.hpp"
#include "kernels/backend/run_fused.hpp"
#include "kernels/krylov/paired.hpp"
#include "scalar/lanes.hpp"

namespace strata {
namespace host::paired {
namespace {

/// A sum and what was lost in it.
template <class Real>
struct Kept {
  Real sum{};
  Real lost{};

  [[gnu::always_inline]] void add(const Real& value, const Real& lost_before) {
    const DoubleDoubleOf<Real> next = two_sum(sum, value);
    sum = next.hi;
    lost = rounded_sum(lost, rounded_sum(next.lo, lost_before));
  }
  [[gnu::always_inline]] void add_product(const Real& a, const Real& b) {
    const DoubleDoubleOf<Real> product = two_product(a, b);
    add(product.hi, product.lo);
  }
};

struct PairedDot {
  static constexpr std::int64_t kVectors = 2;
  static constexpr std::int64_t kStride = kVectors * kLanes;

  [[gnu::always_inline]] static void run(const double* x, const double* y, std::int64_t rows,
                                         double* out) {
    std::array<Kept<Lanes>, kVectors> kept;
    std::int64_t i = 0;
    for (; i + kStride <= rows; i += kStride) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        const std::int64_t at = i + static_cast<std::int64_t>(v) * kLanes;
        kept[v].add_product(Lanes::load(x + at), Lanes::load(y + at));
      }
    }
    Kept<double> all;
    for (; i < rows; ++i) all.add_product(x[i], y[i]);
    for (const Kept<Lanes>& four : kept) {
      for (int lane = 0; lane < kLanes; ++lane)
        all.add(four.sum.values[lane], four.lost.values[lane]);
    }
    out[0] = all.sum;
    out[1] = all.lost;
  }
};

struct PairedSubtract {
  [[gnu::always_inline]] static void run(double* y, const double* x, std::int64_t rows, double s) {
    for (std::int64_t i = 0; i < rows; ++i) y[i] = __builtin_fma(-s, x[i], y[i]);
  }
};

void dots(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_dots, parameters.variant, kPairedWithNext | kPairedWithLast);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* operands) {
    const auto p = matrix_of<double>(operands[0]);
    const auto x = matrix_of<const double>(operands[1]);
    const auto y = matrix_of<const double>(operands[2]);
    for (std::int64_t j = 0; j < p.cols; ++j) {
      const std::int64_t of_x = paired_column(j, p.cols, variant);
      run_fused<PairedDot>(of_x < 0 ? nullptr : x.column(of_x), y.column(j),
                           of_x < 0 ? std::int64_t{0} : y.rows, p.column(j));
    }
  });
}

void subtract(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_subtract, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* operands) {
    const auto y = matrix_of<double>(operands[0]);
    const auto x = matrix_of<const double>(operands[1]);
    const auto s = matrix_of<const double>(operands[2]);
    for (std::int64_t j = 0; j < y.cols; ++j)
      run_fused<PairedSubtract>(y.column(j), x.column(j), y.rows, s(0, j));
  });
}

}  // namespace
}  // namespace host::paired

PairedKernels paired_host() {
  PairedKernels kernels = paired_reference();
  kernels.dots = host::paired::dots;
  kernels.subtract = host::paired::subtract;
  return kernels;
}

}  // namespace strata
