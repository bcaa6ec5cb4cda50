#pragma once
// KernelTable: (operation, precision) → function, one table for each backend.
//
// Contract: a kernel *submits* its work to the queue and returns; operands are packed column-major
// blocks that stay put until the work is done. A table is filled in one place (table_host.cpp,
// table_cuda.cu, table_reference.cpp); a missing entry is reported by plan(), never mid-run.

#include <array>
#include <cstdint>

#include "device/device.hpp"
#include "kernels/potrf_options.hpp"
#include "schedule/task.hpp"

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
};

/// What potrf tells about one diagonal block; read once, at the end of a run.
struct PivotStatus {
  std::int64_t bad_column =
      -1;  ///< first column (0-based, within the block) whose pivot is not positive; −1: none
  double bad_pivot = 0;        ///< the value of that pivot before its square root; NaN if it is NaN
  double log_determinant = 0;  ///< Σ 2·log L_jj over the block, valid if bad_column is −1
};

/// Matérn covariance c(h) = variance · 2^(1−ν)/Γ(ν) · (h/range)^ν · K_ν(h/range), plus the nugget
/// where the two points are the same observation (same element row and column).
struct CovarianceParameters {
  double variance = 1;      ///< c(0) without the nugget, in squared units of the data
  double range = 1;         ///< in units of the coordinates
  double smoothness = 0.5;  ///< ν > 0
  double nugget = 0;        ///< in squared units of the data
  /// The two coordinate families are the same points, so that the nugget belongs on the diagonal.
  bool same_points = true;
};

struct KernelArguments {
  BlockView out;
  std::array<BlockView, 2> inputs{};
  /// potrf: where to report; memory from Device::allocate_host, never null.
  PivotStatus* status = nullptr;
  /// potrf: how; null: as tuned. Read before the call returns.
  const PotrfOptions* potrf = nullptr;
  /// covariance: alive until the run ends; never null.
  const CovarianceParameters* covariance = nullptr;
};

using KernelFunction = void (*)(Queue& queue, const KernelArguments& arguments);

/// One matrix of a batch: n × n, column-major, in memory of the device; ld >= max(n, 1).
struct BatchEntry {
  void* data = nullptr;
  std::int64_t n = 0;
  std::int64_t ld = 1;
};

/// A batch of factorizations, of equal or different orders. Both arrays are host memory from
/// Device::allocate_host, stay put until the work is done, and hold `count` elements.
struct BatchArguments {
  const BatchEntry* entries = nullptr;
  PivotStatus* statuses = nullptr;  ///< one a matrix, overwritten, as potrf does
  std::int64_t count = 0;
};

using BatchFunction = void (*)(Queue& queue, const BatchArguments& arguments);

class KernelTable {
 public:
  void set(Operation operation, Precision precision, KernelFunction function) {
    at(operation, precision) = function;
  }
  /// nullptr if the backend has no such kernel.
  [[nodiscard]] KernelFunction find(Operation operation, Precision precision) const {
    return entries_[static_cast<std::size_t>(operation)][static_cast<std::size_t>(precision)];
  }
  /// potrf of a batch; nullptr if the backend has none.
  [[nodiscard]] BatchFunction find_batched(Precision precision) const {
    return batched_[static_cast<std::size_t>(precision)];
  }
  void set_batched(Precision precision, BatchFunction function) {
    batched_[static_cast<std::size_t>(precision)] = function;
  }

 private:
  KernelFunction& at(Operation operation, Precision precision) {
    return entries_[static_cast<std::size_t>(operation)][static_cast<std::size_t>(precision)];
  }
  std::array<std::array<KernelFunction, 5>, kOperations> entries_{};
  std::array<BatchFunction, 5> batched_{};
};

}  // namespace strata
