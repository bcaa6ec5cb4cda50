#include "kernels/host_residual.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/blas_table.hpp"

namespace strata {

void symmetric_residual(MatrixView<const double> a, MatrixView<const double> x,
                        MatrixView<double> r) {
  if (r.rows == 0 || r.cols == 0) return;
  blas_table().dsymm(CblasColMajor, CblasLeft, CblasLower, static_cast<int>(r.rows),
                     static_cast<int>(r.cols), -1.0, a.data, static_cast<int>(a.ld), x.data,
                     static_cast<int>(x.ld), 1.0, r.data, static_cast<int>(r.ld));
}

double symmetric_norm_inf(MatrixView<const double> a) {
  std::vector<double> sums(static_cast<std::size_t>(a.rows), 0.0);
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t i = j; i < a.rows; ++i) {
      const double value = std::abs(a(i, j));
      sums[static_cast<std::size_t>(i)] += value;
      if (i != j) sums[static_cast<std::size_t>(j)] += value;
    }
  }
  double norm = 0;
  for (const double sum : sums) norm = std::isnan(sum) ? sum : std::max(norm, sum);
  return norm;
}

}  // namespace strata
