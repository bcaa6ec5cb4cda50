#pragma once
// getrf_batched: P_i·A_i = L_i·U_i of many small square matrices that lie anywhere in the memory of
// a device.
//
// Contract: one call. Operands: a view without data whose element is that of the matrices, the list
// of the matrices (LuBatchEntry, 4 × count int64; host memory from Device::allocate_host), and
// their statuses (PanelStatus, 4 × count fp64, as the list). Each matrix, its pivots and its status
// as getrf.hpp has them for all columns of a matrix: what one meets leaves the others as they are.
// Orders may differ and be 0. The matrices do not overlap. T is double or float, or std::complex of
// one of them.

#include "kernels/backend/kernel_table.hpp"
#include "kernels/dense/getrf.hpp"

namespace strata {

/// One matrix of a batch: n × n, column-major, and its n pivots, in memory of the device; ld >=
/// max(n, 1).
struct LuBatchEntry {
  void* data = nullptr;
  std::int64_t n = 0;
  std::int64_t ld = 1;
  std::int64_t* pivots = nullptr;
};
static_assert(sizeof(LuBatchEntry) == 4 * sizeof(std::int64_t));

inline constexpr Operation getrf_batched{
    .name = "getrf_batched",
    .operands = 3,
    .access = {Access::read_write, Access::read, Access::write},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      return static_cast<double>(x[1].cols);  // matrices: their orders are not known to a plan
    }};

/// The operands of a call for `count` matrices.
[[nodiscard]] inline std::array<BlockView, 3> batch_views(const LuBatchEntry* entries,
                                                          PanelStatus* statuses,
                                                          std::int64_t count) {
  return {BlockView{}, BlockView{const_cast<LuBatchEntry*>(entries), 4, count, 4, 0, 0},
          BlockView{statuses, kPanelStatusRows, count, kPanelStatusRows, 0, 0}};
}

/// One after another, each as getrf_reference does it.
template <class T>
void getrf_batched_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
/// One after another by halves of the columns, in one piece of work of the queue.
template <class T>
void getrf_batched_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// A launch for each kind of order up to 256: a warp a matrix, or a thread block.
template <class T>
void getrf_batched_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
