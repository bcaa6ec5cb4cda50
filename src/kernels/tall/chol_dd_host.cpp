// chol_dd on the CPU: what is left is held apart from R, four elements of a column a vector.

#include <utility>

#include "kernels/tall/chol_dd.hpp"
#include "kernels/tall/dd_triangles.hpp"

namespace strata {
namespace host {
namespace {

std::int64_t pivot_of(const DdTrailing& rest, std::int64_t j) {
  std::int64_t best = -1;
  for (std::int64_t k = j; k < rest.n(); ++k) {
    if (is_better_pivot(best < 0 ? DoubleDouble() : rest(best, best), best >= 0, rest(k, k)))
      best = k;
  }
  return best < 0 ? j : best;
}

CholDdStatus factor(MatrixView<DoubleDouble> a, std::int32_t* order, bool pivoting) {
  const std::int64_t n = a.cols;
  CholDdStatus status;
  DdTrailing rest(a.data, n, a.ld);
  for (std::int64_t j = 0; j < n; ++j) {
    order[j] = static_cast<std::int32_t>(j);
    for (std::int64_t i = 0; i < n; ++i) a(i, j) = DoubleDouble();
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const std::int64_t best = pivoting ? pivot_of(rest, j) : j;
    if (best > j) {
      rest.exchange(j, best);
      for (std::int64_t i = 0; i < j; ++i) std::swap(a(i, j), a(i, best));
      std::swap(order[j], order[best]);
    }
    const DoubleDouble pivot = rest(j, j);
    if (!is_pivot(pivot.hi)) {
      status.bad_column = static_cast<double>(j);
      status.bad_pivot = pivot.hi;
      for (std::int64_t k = j; k < n; ++k) a(k, k) = DoubleDouble(1.0);
      break;
    }
    add_pivot(status, pivot.hi, j == 0);
    a(j, j) = square_root(pivot);
    rest.eliminate(j, a(j, j), a.data, a.ld);
  }
  return status;
}

}  // namespace
}  // namespace host

void chol_dd_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  check_chol_dd(calls, parameters);
  submit_each(queue, calls, [pivoting = parameters.variant != 0](const BlockView* x) {
    *static_cast<CholDdStatus*>(x[2].data) = host::factor(
        matrix_of<DoubleDouble>(x[0]), static_cast<std::int32_t*>(x[1].data), pivoting);
  });
}

}  // namespace strata
