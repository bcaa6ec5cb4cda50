// Reference of paired.hpp, row after row.

#include "kernels/krylov/paired.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/backend/operand.hpp"
#include "scalar/double_double.hpp"

namespace strata {
namespace reference::paired {
namespace {

/// Calls element(j, i) for the elements of a block.
template <class F>
void each_element(const BlockView& x, F&& element) {
  for (std::int64_t j = 0; j < x.cols; ++j) {
    for (std::int64_t i = 0; i < x.rows; ++i) element(i, j);
  }
}

void quotient(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_quotient, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto out = matrix_of<double>(x[0]);
    const auto y = matrix_of<const double>(x[1]);
    const auto d = matrix_of<const double>(x[2]);
    each_element(x[0], [&](std::int64_t i, std::int64_t j) { out(i, j) = y(i, j) / d(0, j); });
  });
}

void start(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_start, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto w = matrix_of<double>(x[0]);
    const auto y = matrix_of<double>(x[1]);
    const auto v = matrix_of<const double>(x[2]);
    each_element(x[0], [&](std::int64_t i, std::int64_t j) {
      w(i, j) = v(i, j);
      y(i, j) = 0;
    });
  });
}

void gather(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_gather, parameters.variant, 0);
  submit_each(queue, calls, [operands = calls.operands](const BlockView* x) {
    const auto g = matrix_of<double>(x[0]);
    for (int k = 1; k < operands; ++k) {
      const auto w = matrix_of<const double>(x[k]);
      const SharedRows rows = shared_rows(x[0], x[k]);
      for (std::int64_t j = 0; j < g.cols; ++j)
        std::copy_n(w.column(j) + rows.in_w, rows.count, g.column(j) + rows.in_g);
    }
  });
}

void excess(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_excess, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto y = matrix_of<double>(x[0]);
    const auto v = matrix_of<const double>(x[1]);
    each_element(x[0], [&](std::int64_t i, std::int64_t j) { y(i, j) = -y(i, j) - v(i, j); });
  });
}

void dots(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_dots, parameters.variant, kPairedWithNext | kPairedWithLast);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* operands) {
    const auto p = matrix_of<double>(operands[0]);
    const auto x = matrix_of<const double>(operands[1]);
    const auto y = matrix_of<const double>(operands[2]);
    for (std::int64_t j = 0; j < p.cols; ++j) {
      const std::int64_t of_x = paired_column(j, p.cols, variant);
      p(0, j) = p(1, j) = 0;
      for (std::int64_t i = 0; of_x >= 0 && i < y.rows; ++i) {
        const DoubleDouble product = two_product(x(i, of_x), y(i, j));
        const DoubleDouble sum = two_sum(p(0, j), product.hi);
        p(0, j) = sum.hi;
        p(1, j) += sum.lo + product.lo;
      }
    }
  });
}

void sum(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_sum, parameters.variant, 0);
  submit_each(queue, calls, [operands = calls.operands](const BlockView* x) {
    const auto s = matrix_of<double>(x[0]);
    for (std::int64_t j = 0; j < s.cols; ++j) {
      DoubleDouble all;
      for (int k = 1; k < operands; ++k) {
        const auto p = matrix_of<const double>(x[k]);
        const DoubleDouble next = two_sum(all.hi, p(0, j));
        all = {next.hi, all.lo + (next.lo + p(1, j))};
      }
      s(0, j) = all.hi + all.lo;
    }
  });
}

void subtract(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(paired_subtract, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* operands) {
    const auto y = matrix_of<double>(operands[0]);
    const auto x = matrix_of<const double>(operands[1]);
    const auto s = matrix_of<const double>(operands[2]);
    each_element(operands[0], [&](std::int64_t i, std::int64_t j) {
      y(i, j) = std::fma(-s(0, j), x(i, j), y(i, j));
    });
  });
}

}  // namespace
}  // namespace reference::paired

PairedKernels paired_reference() {
  using namespace reference::paired;
  return {quotient, start, gather, excess, dots, sum, subtract};
}

}  // namespace strata
