#pragma once
// The pattern of a symmetric matrix as a graph.
//
// Contract: vertices are rows; neighbours of a vertex ascend, both directions of each edge are
// listed, and no vertex is its own. So the same for a matrix of which one triangle is given, or
// both.

#include <cstdint>
#include <span>
#include <vector>

#include "strata/sparse_cholesky.hpp"

namespace strata {

/// Indices of vectors.
[[nodiscard]] constexpr std::size_t at(std::int64_t i) noexcept {
  return static_cast<std::size_t>(i);
}

struct SymmetricPattern {
  std::vector<std::int64_t> start{0};
  std::vector<std::int32_t> neighbor;
  std::int64_t empty_diagonals = 0;
  std::int64_t first_empty_diagonal = -1;

  [[nodiscard]] std::int32_t size() const noexcept {
    return static_cast<std::int32_t>(start.size() - 1);
  }
  [[nodiscard]] std::int64_t degree(std::int64_t v) const {
    return start[at(v + 1)] - start[at(v)];
  }
  [[nodiscard]] std::span<const std::int32_t> neighbors(std::int64_t v) const {
    return std::span(neighbor).subspan(at(start[at(v)]), at(degree(v)));
  }
};

/// Throws as analyze() does for what is no symmetric matrix.
[[nodiscard]] SymmetricPattern symmetric_pattern(const SparseMatrix& a);

[[nodiscard]] PatternFingerprint fingerprint_of(const SymmetricPattern& pattern);

}  // namespace strata
