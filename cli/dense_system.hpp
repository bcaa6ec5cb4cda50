#pragma once
// Dense systems A·X = B as files: in what they are solved, right-hand sides, and the solution.

#include <algorithm>
#include <complex>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "cli/app.hpp"
#include "cli/dense_file.hpp"
#include "scalar/complex.hpp"

namespace strata::cli {

/// Where Cholesky's factorization of a dense A in that precision failed.
template <class A>
[[nodiscard]] FailedPlace failed_place(MatrixView<const A> a, const FactorInfo& info,
                                       Element precision) {
  const std::int64_t row = info.first_bad_pivot;
  FailedPlace place{.n = a.rows, .precision = precision};
  if (row >= 0 && row < a.rows) place.diagonal = static_cast<double>(real_part(a(row, row)));
  return place;
}

/// Throws Error{misuse} if A is not square or B has other rows.
void check_shapes(const MatrixFile& a, const MatrixFile& b);

/// Whether it is solved in fp32, or in complex numbers of it: as was asked for; for auto only if
/// both files hold it, since fp64 holds whatever is in either, and no digits are dropped unasked.
[[nodiscard]] bool solved_in_fp32(const std::string& asked, const MatrixFile& a,
                                  const MatrixFile& b);

/// Right-hand sides as W, double or complex numbers of it. Complex ones of a real matrix are real
/// ones twice: the real parts, and behind them the imaginary parts.
template <class W>
[[nodiscard]] DenseMatrix<W> columns_of(const MatrixFile& rhs, bool conjugated);

/// X in the form that the file of right-hand sides has.
template <class T>
void write_solution(const std::string& output, DenseMatrix<T> x, const MatrixFile& rhs,
                    bool conjugated);

/// solve_with(T{}, what is stored of A or a copy of it), for T the precision that is solved in,
/// Narrow or Wide: float and double, or complex numbers of them.
template <class Narrow, class Wide, class SolveWith>
int solve_in_either(const MatrixFile& matrix, const MatrixFile& rhs, const std::string& precision,
                    const SolveWith& solve_with) {
  if (solved_in_fp32(precision, matrix, rhs)) {
    if (matrix.is_single()) return solve_with(Narrow{}, matrix.stored<Narrow>());
    require_held_in_fp32(matrix.stored<Wide>(), matrix);
    return solve_with(Narrow{}, matrix.stored<Wide>());
  }
  if (!matrix.is_single()) return solve_with(Wide{}, matrix.stored<Wide>());
  const MatrixView<const Narrow> narrow = matrix.stored<Narrow>();
  DenseMatrix<Wide> wide{std::vector<Wide>(static_cast<std::size_t>(narrow.size())), narrow.rows,
                         narrow.cols};
  for (std::int64_t j = 0; j < narrow.cols; ++j)
    std::copy_n(narrow.column(j), narrow.rows, wide.view().column(j));
  return solve_with(Wide{}, std::as_const(wide).view());
}

}  // namespace strata::cli
