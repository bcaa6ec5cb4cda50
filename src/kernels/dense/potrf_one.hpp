#pragma once
// The factorizations of one block on the calling thread, which potrf and potrf_batched of the host
// share.
//
// Contract: as potrf.hpp has it, which also says what T may be.

#include "kernels/dense/potrf.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

template <class T>
[[nodiscard]] PivotStatus factor_reference(MatrixView<T> a);
template <class T>
[[nodiscard]] PivotStatus factor_host(MatrixView<T> a);

}  // namespace strata
