#pragma once
// The pattern of a symmetric matrix as a graph.
//
// Contract: vertices are rows; neighbours of a vertex ascend, both directions of each edge are
// listed, and no vertex is its own. So the same for a matrix of which one triangle is given, or
// both, on any number of threads.

#include <cstdint>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "base/uninitialized_vector.hpp"
#include "base/work_crew.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {

/// Entries that are worth a thread: some ten times what waking it takes.
inline constexpr std::int64_t kEntriesPerThread = 32768;

struct SymmetricPattern {
  std::vector<std::int64_t> start{0};
  UninitializedVector<std::int32_t> neighbor;
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

/// Whether what lies below the diagonal stands for the matrix: always, unless only the upper
/// triangle was given.
[[nodiscard]] inline bool is_given_below(const SparseMatrix& a) {
  bool above = false;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    if (a.start[at(i)] == a.start[at(i + 1)]) continue;  // columns ascend
    if (a.column[at(a.start[at(i)])] < i) return true;
    above = above || a.column[at(a.start[at(i + 1)] - 1)] > i;
  }
  return !above;
}

/// Whether one triangle was given, or none.
[[nodiscard]] inline bool is_one_triangle(const SparseMatrix& a) {
  bool below = false;
  bool above = false;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      below = below || a.column[at(k)] < i;
      above = above || a.column[at(k)] > i;
    }
  }
  return !below || !above;
}

/// Calls visit(i, j, k) for the entries k of the diagonal and of one triangle: each pair of
/// symmetric elements once. Rows ascend, then columns.
template <class Visit>
void for_symmetric_entries(const SparseMatrix& a, const Visit& visit) {
  const bool lower = is_given_below(a);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int32_t j = a.column[at(k)];
      if (j == i || (lower ? j < i : j > i)) visit(static_cast<std::int32_t>(i), j, k);
    }
  }
}

/// Throws as analyze() does for what is no symmetric matrix; `where` is the place that it names.
void require_symmetric(const SparseMatrix& a, const char* where, WorkCrew& crew);
/// The same, and its graph.
[[nodiscard]] SymmetricPattern symmetric_pattern(const SparseMatrix& a, WorkCrew& crew);

[[nodiscard]] PatternFingerprint fingerprint_of(const SymmetricPattern& pattern);

}  // namespace strata
