#pragma once
// Indices into vectors, from the signed numbers that rows and columns are counted by.

#include <cstddef>
#include <cstdint>

namespace strata {

[[nodiscard]] constexpr std::size_t at(std::int64_t i) noexcept {
  return static_cast<std::size_t>(i);
}

}  // namespace strata
