#pragma once
// potrf_batched: A_i ← L_i with L_i·L_iᵀ = A_i for many small matrices that lie anywhere in the
// memory of a device.
//
// Contract: one call. Operands: a view without data whose element is that of the matrices, the list
// of the matrices (BatchEntry, 3 × count int64; host memory from Device::allocate_host), and their
// statuses (PivotStatus, 4 × count fp64, as the list). Each matrix as potrf.hpp has it for one
// block: a failure of one leaves the others as they are. Orders may differ and be 0. The matrices
// do not overlap. T is double or float, or std::complex of one of them: L_i·L_iᴴ then. (Blocks of a
// schedule are factored together by a task of potrf with many calls; this is for matrices that are
// the caller's.)

#include "kernels/backend/kernel_table.hpp"
#include "kernels/dense/potrf.hpp"

namespace strata {

/// One matrix of a batch: n × n, column-major, in memory of the device; ld >= max(n, 1).
struct BatchEntry {
  void* data = nullptr;
  std::int64_t n = 0;
  std::int64_t ld = 1;
};

inline constexpr Operation potrf_batched{
    .name = "potrf_batched",
    .operands = 3,
    .access = {Access::read_write, Access::read, Access::write},
    .work = [](std::span<const BlockExtent> x, std::uint32_t) {
      return static_cast<double>(x[1].cols);  // matrices: their orders are not known to a plan
    }};

/// The operands of a call for `count` matrices.
[[nodiscard]] inline std::array<BlockView, 3> batch_views(const BatchEntry* entries,
                                                          PivotStatus* statuses,
                                                          std::int64_t count) {
  return {BlockView{}, BlockView{const_cast<BatchEntry*>(entries), 3, count, 3, 0, 0},
          BlockView{statuses, kStatusRows, count, kStatusRows, 0, 0}};
}
/// The elements of its operands, for matrices of T.
template <class T>
inline constexpr Elements kBatchElements{element_of<T>, Element::int64, Element::fp64};

/// One after another, each as potrf_reference does it.
template <class T>
void potrf_batched_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
/// LAPACK, one after another.
template <class T>
void potrf_batched_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
/// A few launches for all of them, sorted by order.
template <class T>
void potrf_batched_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
