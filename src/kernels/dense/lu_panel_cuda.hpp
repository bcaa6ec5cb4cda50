#pragma once
// A panel of LU with partial pivoting in one launch.
//
// Contract: a (m × b, m >= b) is the panel from the row of its diagonal on; b at most
// kPanelColumnsMost, m at most what the registers of the GPU hold. Row exchanges are done within
// these b columns; pivots[j] = base + the row of the panel that was exchanged with row j. The bits
// do not depend on what else the GPU does, of real numbers not on m either: every element has its
// products taken off in the order of the columns, one rounding each, by plain sums and by tensor
// cores alike. Those of complex128 depend on how many columns the kernel for so many rows takes at
// a time. Only for *_cuda.cu.

#include "device/device_cuda.hpp"
#include "strata/matrix_view.hpp"

namespace strata::lu_cuda {

inline constexpr std::int64_t kPanelColumnsMost = 256;

/// What the panels of one factorization need beside the matrix, all zeros before the first.
[[nodiscard]] std::int64_t panel_scratch_bytes();

/// `number` counts the panels that were given this scratch since it was zeroed. The event
/// `started`, if there is one, is recorded when all thread blocks of the panel run. Throws
/// Error{device}, for a panel that is too tall, too.
template <class T>
void factor_panel(const CudaStream& stream, MatrixView<T> a, std::int64_t* pivots,
                  std::int64_t base, void* scratch, int number, cudaEvent_t started = nullptr);

}  // namespace strata::lu_cuda
