#pragma once
// PotrfOptions: how the kernel potrf blocks a matrix, with what only benchmarks ask for.
//
// Contract: pure data. Runs take a CholeskyBlocking, which converts to this (potrf_options()).
// Other values than those a backend has are its to refuse (Error{misuse}), before anything is
// launched.

#include <cstdint>

#include "strata/cholesky_options.hpp"

namespace strata {

/// Numbered as CholeskyVariant, as far as that goes.
enum class PotrfVariant : std::uint8_t {
  automatic,
  fused,
  left,
  right,
  exclusive = 128,  ///< fused, but a launch a column of tiles ("loop-exclusive"), to compare with
};

/// Zeros mean "as tuned". The host ignores it.
struct PotrfOptions {
  PotrfVariant variant = PotrfVariant::automatic;
  int ib = 0;     ///< columns that are factored at a time inside a kernel: 8, or 4 to compare with
  int recnb = 0;  ///< order of a tile of the fused kernel: 64 or 128
  int nb = 0;     ///< columns of a panel of `left` and `right`: a multiple of 128

  friend bool operator==(const PotrfOptions&, const PotrfOptions&) = default;
};

[[nodiscard]] constexpr PotrfOptions potrf_options(const CholeskyBlocking& blocking) {
  return {.variant = static_cast<PotrfVariant>(blocking.variant),
          .recnb = blocking.recnb,
          .nb = blocking.nb};
}

}  // namespace strata
