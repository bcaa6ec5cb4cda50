#pragma once
// The kernels of panel.hpp on a GPU. Contract: as there. Included by .cu files only.

#include "kernels/krylov/panel.hpp"

namespace strata {

void spmv_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void halo_pack_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void halo_start_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void halo_put_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_inner_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_start_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_add_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_update_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_solve_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_rotate_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_put_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_take_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_correct_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
void panel_narrow_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
