#pragma once
// From the untyped block of a KernelArguments to a typed matrix.
//
// Contract: a view of the same memory; the caller knows the block's precision.

#include "kernels/kernel_table.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

template <class T>
[[nodiscard]] MatrixView<T> matrix_of(const BlockView& block) noexcept {
  return {static_cast<T*>(block.data), block.rows, block.cols, block.ld};
}

}  // namespace strata
