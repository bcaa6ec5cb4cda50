#pragma once
// KernelTable: (operation, elements of its operands) → function, one table for each backend.
//
// Contract: a kernel *submits* its work to the queue and returns; operands are packed column-major
// blocks that stay put until the work is done. The calls of one kernel may run at once. A table is
// filled in one place (table_host.cpp, table_cuda.cu, table_reference.cpp); a missing entry is
// reported by plan(), never mid-run.

#include <cstdint>
#include <span>
#include <vector>

#include "device/device.hpp"
#include "schedule/operation.hpp"

namespace strata {

/// A block in memory: column-major, ld elements from column to column. `row` and `col` are the
/// element position of its first element in the whole matrix.
struct BlockView {
  void* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 1;
  std::int64_t row = 0;
  std::int64_t col = 0;
  Element element = Element::fp64;
};

/// The calls of one task: for each, its operands in the operation's order. Valid until the kernel
/// returns.
struct KernelCalls {
  std::span<const BlockView> views;
  int operands = 0;  ///< of a call

  [[nodiscard]] std::int64_t count() const noexcept {
    return operands == 0 ? 0 : std::ssize(views) / operands;
  }
  /// The operands of call `i`.
  [[nodiscard]] const BlockView* operator[](std::int64_t i) const noexcept {
    return views.data() + i * operands;
  }
};

struct KernelParameters {
  std::uint32_t variant = 0;  ///< the task's
  /// What the run gives this operation (values that a plan does not depend on), as the operation's
  /// header says; alive until the run ends. Null: nothing.
  const void* values = nullptr;
};

using KernelFunction = void (*)(Queue& queue, const KernelCalls& calls,
                                const KernelParameters& parameters);

class KernelTable {
 public:
  struct Entry {
    const Operation* operation;
    Elements elements;
    KernelFunction function;
  };

  /// The operation outlives the table.
  void set(const Operation& operation, const Elements& elements, KernelFunction function) {
    entries_.push_back({&operation, elements, function});
  }
  /// nullptr if the backend has no such kernel.
  [[nodiscard]] KernelFunction find(std::string_view operation, const Elements& elements) const {
    for (const Entry& entry : entries_) {
      if (entry.elements == elements && entry.operation->name == operation) return entry.function;
    }
    return nullptr;
  }
  [[nodiscard]] const std::vector<Entry>& entries() const noexcept { return entries_; }

 private:
  std::vector<Entry> entries_;
};

}  // namespace strata
