#pragma once
// A triangle R as solves of eights read it, and the solve of sixteen rows with it by a warp.
//
// Method: eight_solve.hpp, with the rows of a strip in registers (row_strip_cuda.hpp): eight
// columns are multiplied by the inverse of their triangle, corrected, and taken off those behind
// them, which do not wait for each other. So a thread reads 16 bytes of shared memory for each
// instruction, and nothing else. Contract: included by *_cuda.cu only.

#include "kernels/tall/eight_solve.hpp"
#include "kernels/tall/row_strip_cuda.hpp"

namespace strata::gram_gpu {

inline constexpr int kSolveEights = 16;  // at most, of a panel
inline constexpr int kSolveColumns = kSolveEights * kEight;

/// Operands of the eights before j: of each those of −R above its diagonal block, −U and T.
constexpr int operands_before(int j) { return j * (j - 1) / 2 + 2 * j; }
/// The same for each eight: what the four threads of two rows multiply its quotients by, those of
/// the columns q and q + 4.
inline constexpr int kReciprocals = kEight / 2;
/// Pairs of kEights eights in shared memory: operands, then reciprocals.
template <int kEights>
inline constexpr int kFactorPairs = operands_before(kEights) * kWarpSize + kEights* kReciprocals;

/// A panel of up to kSolveColumns columns of R, as its solve reads it. Where there are no columns,
/// U and D are those of the identity.
struct PanelFactor {
  double2 reciprocals[kSolveEights * kReciprocals];
  double2 operands[operands_before(kSolveEights) * kWarpSize];
  /// The triangles of eights of columns on the diagonal of R = D·U, as eight_solve.hpp has them.
  double unit[kSolveEights][kEight][kEight];     ///< U, zeros below its diagonal
  double inverse[kSolveEights][kEight][kEight];  ///< T
  double diagonal[kSolveEights][kEight];         ///< D
  double reciprocal[kSolveEights][kEight];       ///< of D
  unsigned bad;                                  ///< a bit for each eight whose T is not good
};

/// Prepares the panels of R (cols × cols), `width` columns each.
void prepare_panels(cudaStream_t stream, const double* r, std::int64_t ld, std::int64_t cols,
                    std::int64_t width, PanelFactor* panels);

/// Begins to copy what strips read of a panel to shared memory; by all threads.
template <int kEights>
__device__ void fetch_factor(const PanelFactor& factor, double2* to) {
  constexpr int kOperands = operands_before(kEights) * kWarpSize;
  for (int k = static_cast<int>(threadIdx.x); k < kFactorPairs<kEights>;
       k += static_cast<int>(blockDim.x))
    tile::copy_async<16>(
        to + k, k < kOperands ? factor.operands + k : factor.reciprocals + (k - kOperands), 16);
}

/// What solves read of a panel, in shared memory (fetch_factor()); as one thread sees it.
template <int kEights>
class SharedFactor {
 public:
  __device__ explicit SharedFactor(const double2* shared)
      : operands_(shared + tile::lane()),
        reciprocals_(shared + operands_before(kEights) * kWarpSize + tile::lane() % kReciprocals) {}
  [[nodiscard]] __device__ double2 operand(int k) const { return operands_[k * kWarpSize]; }
  [[nodiscard]] __device__ double2 reciprocal(int j) const {
    return reciprocals_[j * kReciprocals];
  }

 private:
  const double2* operands_;
  const double2* reciprocals_;
};

/// The same in registers.
template <int kEights>
class HeldFactor {
 public:
  __device__ explicit HeldFactor(const PanelFactor& factor) {
#pragma unroll
    for (int k = 0; k < operands_before(kEights); ++k)
      operands_[k] = factor.operands[k * kWarpSize + tile::lane()];
#pragma unroll
    for (int j = 0; j < kEights; ++j)
      reciprocals_[j] = factor.reciprocals[j * kReciprocals + tile::lane() % kReciprocals];
  }
  [[nodiscard]] __device__ double2 operand(int k) const { return operands_[k]; }
  [[nodiscard]] __device__ double2 reciprocal(int j) const { return reciprocals_[j]; }

 private:
  double2 operands_[operands_before(kEights)];
  double2 reciprocals_[kEights];
};

/// The eights of sixteen rows ← what they are by X·R⁻¹; ready(j) is called when eight j is.
template <int kEights, class Factor, class Ready>
__device__ void solve_eights(const Factor& factor, double (&value)[kEights][4],
                             const Ready& ready) {
#pragma unroll
  for (int j = 0; j < kEights; ++j) {
    const double2 unit = factor.operand(operands_before(j) + j);
    const double2 inverse = factor.operand(operands_before(j) + j + 1);
    const double2 reciprocal = factor.reciprocal(j);
    double q[4] = {0, 0, 0, 0};
    tile::multiply_add(q, q, value[j], inverse);
    tile::multiply_add(value[j], value[j], q, unit);
    tile::multiply_add(value[j], q, value[j], inverse);
#pragma unroll
    for (int k = 0; k < 4; ++k)
      value[j][k] = rounded_product(value[j][k], k % 2 == 0 ? reciprocal.x : reciprocal.y);
    ready(j);
#pragma unroll
    for (int k = j + 1; k < kEights; ++k)
      tile::multiply_add(value[k], value[k], value[j], factor.operand(operands_before(k) + j));
  }
}

/// y becomes the quotients of eight j of a row.
__device__ inline void solve_row(const PanelFactor& factor, int j, double (&y)[kEight]) {
  const auto& u = factor.unit[j];
  const auto& t = factor.inverse[j];
  double q[kEight] = {};
#pragma unroll
  for (int col = 0; col < kEight; ++col) {
#pragma unroll
    for (int k = 0; k <= col; ++k) q[col] = fused(y[k], t[k][col], q[col]);
  }
#pragma unroll
  for (int col = 0; col < kEight; ++col) {
#pragma unroll
    for (int k = 0; k <= col; ++k) y[col] = fused(-q[k], u[k][col], y[col]);
  }
#pragma unroll
  for (int col = kEight - 1; col >= 0; --col) {
#pragma unroll
    for (int k = 0; k <= col; ++k) q[col] = fused(y[k], t[k][col], q[col]);
    y[col] = rounded_product(q[col], factor.reciprocal[j][col]);
  }
}

/// A row by one thread, by substitution where an inverse is not good: from(c) are its elements,
/// to(c), a reference, where what becomes of them goes, and is read again.
template <class From, class To>
__device__ void solve_row_by_eights(const PanelFactor& factor, const double* r, std::int64_t r_ld,
                                    std::int64_t cols, const From& from, const To& to) {
  for (std::int64_t first = 0; first < cols; first += kEight) {
    const int j = static_cast<int>(first / kEight);
    double y[kEight];
#pragma unroll
    for (int c = 0; c < kEight; ++c) y[c] = first + c < cols ? from(first + c) : 0.0;
    for (std::int64_t i = 0; i < first; ++i) {
      const double q = to(i);
#pragma unroll
      for (int c = 0; c < kEight; ++c) {
        if (first + c < cols) y[c] = fused(-q, r[i + (first + c) * r_ld], y[c]);
      }
    }
    if ((factor.bad >> j & 1U) == 0) {
      solve_row(factor, j, y);
    } else {
#pragma unroll
      for (int c = 0; c < kEight; ++c) {
        if (first + c >= cols) continue;
        y[c] = rounded_quotient(y[c], factor.diagonal[j][c]);
#pragma unroll
        for (int k = c + 1; k < kEight; ++k) {
          if (first + k < cols) y[k] = fused(-y[c], r[first + c + (first + k) * r_ld], y[k]);
        }
      }
    }
#pragma unroll
    for (int c = 0; c < kEight; ++c) {
      if (first + c < cols) to(first + c) = y[c];
    }
  }
}

}  // namespace strata::gram_gpu
