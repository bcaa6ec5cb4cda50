// Reference chol_dd.

#include <utility>

#include "kernels/tall/chol_dd.hpp"

namespace strata {
namespace reference {
namespace {

void exchange(MatrixView<DoubleDouble> a, std::int64_t j, std::int64_t k) {
  for (std::int64_t i = 0; i < j; ++i) std::swap(a(i, j), a(i, k));  // rows that are done
  std::swap(a(j, j), a(k, k));
  for (std::int64_t l = j + 1; l < k; ++l) std::swap(a(j, l), a(l, k));
  for (std::int64_t l = k + 1; l < a.cols; ++l) std::swap(a(j, l), a(k, l));
}

CholDdStatus factor(MatrixView<DoubleDouble> a, std::int32_t* order, bool pivoting) {
  const std::int64_t n = a.cols;
  CholDdStatus status;
  for (std::int64_t j = 0; j < n; ++j) order[j] = static_cast<std::int32_t>(j);
  for (std::int64_t j = 0; j < n; ++j) {
    std::int64_t best = -1;
    for (std::int64_t k = j; pivoting && k < n; ++k) {
      if (is_better_pivot(best < 0 ? DoubleDouble() : a(best, best), best >= 0, a(k, k))) best = k;
    }
    if (best > j) {
      exchange(a, j, best);
      std::swap(order[j], order[best]);
    }
    const DoubleDouble pivot = a(j, j);
    if (!is_pivot(pivot.hi)) {
      status.bad_column = static_cast<double>(j);
      status.bad_pivot = pivot.hi;
      for (std::int64_t k = j; k < n; ++k) {
        for (std::int64_t i = j; i <= k; ++i) a(i, k) = DoubleDouble(i == k ? 1.0 : 0.0);
      }
      break;
    }
    add_pivot(status, pivot.hi, j == 0);
    a(j, j) = square_root(pivot);
    for (std::int64_t k = j + 1; k < n; ++k) a(j, k) = a(j, k) / a(j, j);
    for (std::int64_t k = j + 1; k < n; ++k) {
      for (std::int64_t i = j + 1; i <= k; ++i)
        a(i, k) = subtract_product(a(i, k), a(j, i), a(j, k));
    }
  }
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t i = k + 1; i < n; ++i) a(i, k) = DoubleDouble();
  }
  return status;
}

}  // namespace
}  // namespace reference

void chol_dd_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  check_chol_dd(calls, parameters);
  submit_each(queue, calls, [pivoting = parameters.variant != 0](const BlockView* x) {
    *static_cast<CholDdStatus*>(x[2].data) = reference::factor(
        matrix_of<DoubleDouble>(x[0]), static_cast<std::int32_t*>(x[1].data), pivoting);
  });
}

}  // namespace strata
