// Reference trsm: substitution, each element of X in one place.
//
// On the left, columns of X by themselves: x_i = (x_i − Σ_k l_ik·x_k) / l_ii over the k < i, from
// the first row down; with Lᴴ, conj(l_ki) over the k > i, from the last row up. On the right, rows
// of X by themselves: x_j = (x_j − Σ_k x_k·conj(l_jk)) / conj(l_jj) over the k < j with Lᴴ, l_kj
// over the k > j with L.

#include "kernels/backend/operand.hpp"
#include "kernels/dense/trsm.hpp"
#include "scalar/complex.hpp"

namespace strata {
namespace {

template <class T>
void substitute_left(MatrixView<T> x, MatrixView<const T> l) {
  for (std::int64_t j = 0; j < x.cols; ++j) {
    for (std::int64_t i = 0; i < x.rows; ++i) {
      T sum = x(i, j);
      for (std::int64_t k = 0; k < i; ++k) sum -= l(i, k) * x(k, j);
      x(i, j) = sum / l(i, i);
    }
  }
}

template <class T>
void substitute_left_transposed(MatrixView<T> x, MatrixView<const T> l) {
  for (std::int64_t j = 0; j < x.cols; ++j) {
    for (std::int64_t i = x.rows - 1; i >= 0; --i) {
      T sum = x(i, j);
      for (std::int64_t k = i + 1; k < x.rows; ++k) sum -= conjugate<T>(l(k, i)) * x(k, j);
      x(i, j) = sum / conjugate<T>(l(i, i));
    }
  }
}

template <class T>
void substitute_right(MatrixView<T> x, MatrixView<const T> l) {
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t j = x.cols - 1; j >= 0; --j) {
      T sum = x(i, j);
      for (std::int64_t k = j + 1; k < x.cols; ++k) sum -= x(i, k) * l(k, j);
      x(i, j) = sum / l(j, j);
    }
  }
}

template <class T>
void substitute_right_transposed(MatrixView<T> x, MatrixView<const T> l) {
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t j = 0; j < x.cols; ++j) {
      T sum = x(i, j);
      for (std::int64_t k = 0; k < j; ++k) sum -= x(i, k) * conjugate<T>(l(j, k));
      x(i, j) = sum / conjugate<T>(l(j, j));
    }
  }
}

}  // namespace

template <class T>
void trsm_reference(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(trsm, parameters.variant, kTransposeL | kRightSide);
  const bool transposed = (parameters.variant & kTransposeL) != 0;
  const auto solve = (parameters.variant & kRightSide) != 0
                         ? (transposed ? substitute_right_transposed<T> : substitute_right<T>)
                         : (transposed ? substitute_left_transposed<T> : substitute_left<T>);
  submit_each(queue, calls,
              [solve](const BlockView* x) { solve(matrix_of<T>(x[0]), matrix_of<const T>(x[1])); });
}

template void trsm_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void trsm_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void trsm_reference<std::complex<double>>(Queue&, const KernelCalls&,
                                                   const KernelParameters&);
template void trsm_reference<std::complex<float>>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
