// The solve operations by BLAS.

#include "kernels/solve.hpp"

#include "kernels/blas_host.hpp"
#include "kernels/operand.hpp"

namespace strata {

template <class T>
void trsm_left_host(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    blas::trsm_by_halves(CblasLeft, CblasNoTrans, matrix_of<const T>(arguments.inputs[0]),
                         matrix_of<T>(arguments.out));
  });
}

template <class T>
void trsm_left_transposed_host(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    blas::trsm_by_halves(CblasLeft, CblasTrans, matrix_of<const T>(arguments.inputs[0]),
                         matrix_of<T>(arguments.out));
  });
}

template <class T>
void gemm_left_host(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto a = matrix_of<const T>(arguments.inputs[0]);
    blas::gemm_minus(CblasNoTrans, CblasNoTrans, a.cols, a, matrix_of<const T>(arguments.inputs[1]),
                     matrix_of<T>(arguments.out));
  });
}

template <class T>
void gemm_left_transposed_host(Queue& queue, const KernelArguments& arguments) {
  queue.submit([arguments] {
    const auto a = matrix_of<const T>(arguments.inputs[0]);
    blas::gemm_minus(CblasTrans, CblasNoTrans, a.rows, a, matrix_of<const T>(arguments.inputs[1]),
                     matrix_of<T>(arguments.out));
  });
}

template void trsm_left_host<double>(Queue&, const KernelArguments&);
template void trsm_left_host<float>(Queue&, const KernelArguments&);
template void trsm_left_transposed_host<double>(Queue&, const KernelArguments&);
template void trsm_left_transposed_host<float>(Queue&, const KernelArguments&);
template void gemm_left_host<double>(Queue&, const KernelArguments&);
template void gemm_left_host<float>(Queue&, const KernelArguments&);
template void gemm_left_transposed_host<double>(Queue&, const KernelArguments&);
template void gemm_left_transposed_host<float>(Queue&, const KernelArguments&);

}  // namespace strata
