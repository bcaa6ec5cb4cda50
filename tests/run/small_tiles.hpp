#pragma once
// The order of the tiles of small factorizations.

#include <cstdint>

namespace strata::test {

inline constexpr std::int64_t kTile = 8;

}  // namespace strata::test
