#pragma once
// How a Cholesky factorization is to be computed: the road it takes, and the blocking of a part
// that lies in the memory of a device.
//
// Contract: pure data. Nothing here changes what is computed, only in which order its sums are
// formed.

#include <cstdint>

namespace strata {

/// The road of a matrix in host memory.
enum class CholeskyPath : std::uint8_t {
  /// In core where a single GPU holds the matrix and that is the faster road, else planned.
  automatic,
  in_core,  ///< the whole matrix is one tile on one device; Error{memory} if it does not fit
  /// Tiles that come and go: any size, and the same bits whatever the budget, the policy, the rates
  /// and the number of devices. (A tile that is not asked for follows from n and the kind of
  /// device; only a budget that cannot hold the three tiles of a task makes it smaller. The tuning
  /// file is not read: blocking is the caller's, and the backend's where it is zero.)
  planned,
};

/// The algorithms of an in-core factorization on a GPU; the host has one.
enum class CholeskyVariant : std::uint8_t {
  automatic,  ///< by the order and the tuning table
  fused,      ///< one launch: tiles in the order of their dependences
  left,       ///< panels, each updated by everything to its left just before it is factored
  right,      ///< panels, each applied to everything to its right once it is factored
};

/// How a GPU blocks a matrix in its memory; zeros mean "as tuned", on the planned path "as the
/// backend has it". The host ignores it.
struct CholeskyBlocking {
  CholeskyVariant variant = CholeskyVariant::automatic;
  int recnb = 0;  ///< order of a tile of the fused kernel: 64 or 128
  int nb = 0;     ///< columns of a panel of `left` and `right`: a multiple of 128

  friend bool operator==(const CholeskyBlocking&, const CholeskyBlocking&) = default;
};

}  // namespace strata
