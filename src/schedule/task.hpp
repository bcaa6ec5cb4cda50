#pragma once
// Task and Schedule: what is to be computed, in program order.
//
// Contract: executing the tasks of a Schedule in order, on one thread, is the definition of a
// correct run. A task reads its inputs and reads and writes its output (or only writes it). A
// Schedule is generated lazily, step by step (a panel or a super-tile at a time): emitting step s
// twice gives the same tasks, and the n³/6 tasks of a factorization never exist at once.

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "matrix/block_table.hpp"

namespace strata {

/// The tile operations, named after BLAS and LAPACK. L is a lower triangle; the diagonal block is
/// potrf's.
enum class Operation : std::uint8_t {
  potrf,                 ///< A ← L with L·Lᵀ = A
  trsm,                  ///< A ← A·L⁻ᵀ              inputs: L
  syrk,                  ///< C ← C − A·Aᵀ (lower)   inputs: A
  gemm,                  ///< C ← C − A·Bᵀ           inputs: A, B
  trsm_left,             ///< X ← L⁻¹·X              inputs: L
  trsm_left_transposed,  ///< X ← L⁻ᵀ·X              inputs: L
  gemm_left,             ///< X ← X − A·Y            inputs: A, Y
  gemm_left_transposed,  ///< X ← X − Aᵀ·Y           inputs: A, Y
  covariance,  ///< C_ij ← c(p_i, q_j)     inputs: P, Q (coordinates, one point a row); writes C
};
inline constexpr int kOperations = 9;
[[nodiscard]] std::string_view to_string(Operation operation) noexcept;

/// How a task uses its output block.
enum class Access : std::uint8_t { read_write, write };

struct Task {
  Operation operation = Operation::potrf;
  Access access = Access::read_write;
  /// No later task writes `out`: its value may go home (to its store) at once.
  bool final = false;
  /// Much waits for it: it goes to the queue of high priority, where there is one.
  bool urgent = false;
  std::uint8_t input_count = 0;
  std::uint16_t device = 0;
  BlockId out;
  std::array<BlockId, 2> inputs{};
};

/// Floating-point operations of a task (multiplications and additions; for `covariance` the number
/// of elements).
[[nodiscard]] double flops_of(const BlockTable& blocks, const Task& task);

/// The device that computes row `row` of tiles: 0 … D−1, D−1 … 0, and so on. Rows are dealt there
/// and back because the work of a row grows with its number: in one direction the last device would
/// get the most of every round (at 48 rows on four devices a tenth more than its share).
[[nodiscard]] constexpr int device_of_row(std::int64_t row, int devices) {
  const auto place = static_cast<int>(row % (2 * devices));
  return place < devices ? place : 2 * devices - 1 - place;
}

struct Schedule {
  BlockTable blocks;
  int devices = 1;
  /// For each family, the most distinct blocks of it that one task touches: a device must hold that
  /// many.
  std::vector<int> operands;
  std::int64_t steps = 0;
  /// Appends the tasks of one step, 0 <= step < steps, to `tasks`.
  std::function<void(std::int64_t step, std::vector<Task>& tasks)> emit;
};

}  // namespace strata
