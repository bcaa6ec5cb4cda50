#pragma once
// From the untyped blocks of a call to typed matrices, and calls as work of a host queue.
//
// Contract: a view of the same memory; the caller knows the block's element.

#include <string>
#include <utility>
#include <vector>

#include "kernels/backend/kernel_table.hpp"
#include "strata/error.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

template <class T>
[[nodiscard]] MatrixView<T> matrix_of(const BlockView& block) noexcept {
  return {static_cast<T*>(block.data), block.rows, block.cols, block.ld};
}

/// Throws Error{device} if `variant` has bits other than the `known` ones of a kernel.
inline void require_variant(const Operation& operation, std::uint32_t variant,
                            std::uint32_t known) {
  if ((variant & ~known) == 0) return;
  throw Error(ErrorKind::device, std::string(operation.name),
              "there is no kernel for variant " + std::to_string(variant));
}

/// Puts `body(operands)` for each call, one after another, into a queue that runs host code.
template <class F>
void submit_each(Queue& queue, const KernelCalls& calls, F body) {
  queue.submit([views = std::vector<BlockView>(calls.views.begin(), calls.views.end()),
                operands = calls.operands, body = std::move(body)] {
    const KernelCalls mine{views, operands};
    for (std::int64_t i = 0; i < mine.count(); ++i) body(mine[i]);
  });
}

}  // namespace strata
