#pragma once
// Calls of a task whose operands lie at even distances from call to call, so that one launch of a
// GPU carries out all of them and computes where their operands are.
//
// Contract: plain C++; reads the views alone.

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/backend/kernel_table.hpp"

namespace strata {

/// The calls from `first` to first + count − 1.
struct EvenCalls {
  static constexpr int kOperandsMax = 6;
  std::int64_t first = 0;
  std::int64_t count = 0;
  /// Bytes from operand k of a call to that of the next.
  std::array<std::int64_t, kOperandsMax> stride{};
};

/// The most calls from `first` on, and at most `most`, that lie evenly and whose operands have the
/// same extents; at least 1. Calls of more operands than kOperandsMax come by themselves.
[[nodiscard]] inline EvenCalls even_calls(const KernelCalls& calls, std::int64_t first,
                                          std::int64_t most) {
  EvenCalls even{.first = first, .count = 1};
  if (calls.operands > EvenCalls::kOperandsMax) return even;
  const BlockView* begin = calls[first];
  const auto distance = [&](std::int64_t call, int k) {
    return static_cast<const std::byte*>(calls[call][k].data) -
           static_cast<const std::byte*>(begin[k].data);
  };
  for (; even.count < most && first + even.count < calls.count(); ++even.count) {
    const std::int64_t call = first + even.count;
    for (int k = 0; k < calls.operands; ++k) {
      const auto operand = static_cast<std::size_t>(k);
      if (even.count == 1) even.stride[operand] = distance(call, k);
      const BlockView& x = calls[call][k];
      if (distance(call, k) != even.stride[operand] * even.count || x.rows != begin[k].rows ||
          x.cols != begin[k].cols || x.ld != begin[k].ld)
        return even;
    }
  }
  return even;
}

}  // namespace strata
