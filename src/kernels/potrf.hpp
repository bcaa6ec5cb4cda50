#pragma once
// potrf: A ← L with L·Lᵀ = A, one diagonal block.
//
// Contract: `out` is n × n; only its lower triangle is read and written. `*status` is overwritten:
// bad_column is the first column whose pivot, after the columns before it are eliminated, is not
// positive and finite (a NaN and +∞ count as bad), bad_pivot that pivot before its square root, and
// log_determinant = Σ 2·log L_jj. After a failure the columns from bad_column on hold no meaning.
// A failure is a value: no kernel throws for it. T is double or float.

#include "kernels/kernel_table.hpp"

namespace strata {

/// Column by column, as written in a textbook (Golub, Van Loan, "Matrix Computations", §4.2).
template <class T>
void potrf_reference(Queue& queue, const KernelArguments& arguments);
/// LAPACK, with the diagonal looked at afterwards.
template <class T>
void potrf_host(Queue& queue, const KernelArguments& arguments);
/// One launch, or panels of one launch each and cuBLAS between them: potrf_cuda.cu.
template <class T>
void potrf_cuda(Queue& queue, const KernelArguments& arguments);

}  // namespace strata
