#pragma once
// The factorizations of one block on the calling thread, which potrf and potrf_batched of the host
// share.
//
// Contract: as potrf.hpp has it. T is double or float.

#include "kernels/potrf.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

template <class T>
[[nodiscard]] PivotStatus factor_reference(MatrixView<T> a);
template <class T>
[[nodiscard]] PivotStatus factor_host(MatrixView<T> a);

}  // namespace strata
