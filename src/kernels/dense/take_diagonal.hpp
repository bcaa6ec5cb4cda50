#pragma once
// take_diagonal: the diagonal of a column panel, as a row of its own.
//
// Contract: operands D (1 × b, written) and A (n × b, read), columns c … c + b − 1 of a matrix of
// order n and all of their rows, c the column of A's view. D is of A's element. T is double or
// float, or std::complex of one of them. A unit of work is an element that is copied.

#include "kernels/backend/kernel_table.hpp"

namespace strata {

inline constexpr Operation take_diagonal{
    .name = "take_diagonal",
    .operands = 2,
    .access = {Access::write, Access::read},
    .work = [](std::span<const BlockExtent> x,
               std::uint32_t) { return static_cast<double>(x[0].cols); },
    .flops_per_work = 0,
    .nominal_cost = 10};

template <class T>
void take_diagonal_reference(Queue& queue, const KernelCalls& calls,
                             const KernelParameters& parameters);
template <class T>
void take_diagonal_host(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);
template <class T>
void take_diagonal_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters);

}  // namespace strata
