// Method: the lower triangle is mirrored, or the upper one where nothing lies below the diagonal.
// Walking through the rows in order fills the neighbours of every vertex in order, so nothing is
// sorted. The fingerprint is XXH3 (128 bits) of both arrays.

#include "sparse/pattern.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr double kSymmetryTolerance = 1e-12;

struct Triangles {
  std::int64_t below = 0;
  std::int64_t above = 0;
};

/// Counts entries, and looks at each value once.
Triangles scan(const SparseMatrix& a) {
  Triangles count;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)];
      require(std::isfinite(a.value[at(k)]), ErrorKind::input, "analyze",
              "element ({}, {}) of A is {}", i, j, a.value[at(k)]);
      count.below += j < i ? 1 : 0;
      count.above += j > i ? 1 : 0;
    }
  }
  return count;
}

/// Calls visit(i, j) for the entries off the diagonal of one triangle, i ascending, then j.
template <class Visit>
void for_triangle(const SparseMatrix& a, bool lower, const Visit& visit) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k) {
      const std::int32_t j = a.column[at(k)];
      if (lower ? j < i : j > i) visit(static_cast<std::int32_t>(i), j);
    }
  }
}

/// Row i lists the neighbours before it when its turn comes (lower), or finds them there (upper):
/// in both cases they were all smaller, and those behind it come in the order of their rows.
void fill(const SparseMatrix& a, bool lower, SymmetricPattern& p) {
  std::vector<std::int64_t> next(p.start.begin(), p.start.end() - 1);
  for_triangle(a, lower, [&](std::int32_t i, std::int32_t j) {
    p.neighbor[at(next[at(i)]++)] = j;
    p.neighbor[at(next[at(j)]++)] = i;
  });
}

}  // namespace

SymmetricPattern symmetric_pattern(const SparseMatrix& a) {
  require_well_formed(a);
  require(a.rows == a.cols, ErrorKind::misuse, "analyze", "A is {} by {}, not square", a.rows,
          a.cols);
  const Triangles count = scan(a);
  if (count.below > 0 && count.above > 0) {
    const Asymmetry pair = find_asymmetry(a, kSymmetryTolerance);
    require(!pair.found, ErrorKind::input, "analyze",
            "A is not symmetric: element ({}, {}) is {}, element ({}, {}) is {}", pair.row,
            pair.col, pair.value, pair.col, pair.row, pair.transposed);
  }
  const bool lower = count.above == 0 || count.below > 0;
  SymmetricPattern p;
  p.start.assign(at(a.rows) + 1, 0);
  for_triangle(a, lower, [&](std::int32_t i, std::int32_t j) {
    ++p.start[at(i) + 1];
    ++p.start[at(j) + 1];
  });
  std::partial_sum(p.start.begin(), p.start.end(), p.start.begin());
  p.neighbor.resize(at(p.start.back()));
  fill(a, lower, p);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    const auto begin = a.column.begin() + a.start[at(i)];
    const auto end = a.column.begin() + a.start[at(i + 1)];
    if (std::binary_search(begin, end, static_cast<std::int32_t>(i))) continue;
    if (p.empty_diagonals++ == 0) p.first_empty_diagonal = i;
  }
  return p;
}

PatternFingerprint fingerprint_of(const SymmetricPattern& p) {
  const auto start = XXH3_128bits(p.start.data(), p.start.size() * sizeof p.start[0]);
  const auto all = XXH3_128bits_withSeed(p.neighbor.data(),
                                         p.neighbor.size() * sizeof p.neighbor[0], start.low64);
  return {.order = p.size(),
          .entries = std::ssize(p.neighbor) / 2,
          .hash = {all.low64 ^ start.high64, all.high64}};
}

}  // namespace strata
