// Reference solve operations: forward substitution from the first row down, back substitution from
// the last row up (with l_ki for the transposed factor), and plain products.

#include "kernels/operand.hpp"
#include "kernels/solve.hpp"

namespace strata {

template <class T>
void trsm_left_reference(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto x = matrix_of<T>(arguments.out);
    const auto l = matrix_of<const T>(arguments.inputs[0]);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        T sum = x(i, j);
        for (std::int64_t k = 0; k < i; ++k) sum -= l(i, k) * x(k, j);
        x(i, j) = sum / l(i, i);
      }
    }
  });
}

template <class T>
void trsm_left_transposed_reference(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto x = matrix_of<T>(arguments.out);
    const auto l = matrix_of<const T>(arguments.inputs[0]);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t i = x.rows - 1; i >= 0; --i) {
        T sum = x(i, j);
        for (std::int64_t k = i + 1; k < x.rows; ++k) sum -= l(k, i) * x(k, j);
        x(i, j) = sum / l(i, i);
      }
    }
  });
}

template <class T>
void gemm_left_reference(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto x = matrix_of<T>(arguments.out);
    const auto a = matrix_of<const T>(arguments.inputs[0]);
    const auto y = matrix_of<const T>(arguments.inputs[1]);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        T sum = x(i, j);
        for (std::int64_t k = 0; k < a.cols; ++k) sum -= a(i, k) * y(k, j);
        x(i, j) = sum;
      }
    }
  });
}

template <class T>
void gemm_left_transposed_reference(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto x = matrix_of<T>(arguments.out);
    const auto a = matrix_of<const T>(arguments.inputs[0]);
    const auto y = matrix_of<const T>(arguments.inputs[1]);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      for (std::int64_t i = 0; i < x.rows; ++i) {
        T sum = x(i, j);
        for (std::int64_t k = 0; k < a.rows; ++k) sum -= a(k, i) * y(k, j);
        x(i, j) = sum;
      }
    }
  });
}

template void trsm_left_reference<double>(Queue&, const KernelArguments&);
template void trsm_left_reference<float>(Queue&, const KernelArguments&);
template void trsm_left_transposed_reference<double>(Queue&, const KernelArguments&);
template void trsm_left_transposed_reference<float>(Queue&, const KernelArguments&);
template void gemm_left_reference<double>(Queue&, const KernelArguments&);
template void gemm_left_reference<float>(Queue&, const KernelArguments&);
template void gemm_left_transposed_reference<double>(Queue&, const KernelArguments&);
template void gemm_left_transposed_reference<float>(Queue&, const KernelArguments&);

}  // namespace strata
