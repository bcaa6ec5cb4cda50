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

/// Row i lists the neighbours before it when its turn comes (lower), or finds them there (upper):
/// in both cases they were all smaller, and those behind it come in the order of their rows.
void fill(const SparseMatrix& a, SymmetricPattern& p) {
  std::vector<std::int64_t> next(p.start.begin(), p.start.end() - 1);
  for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t) {
    if (i == j) return;
    p.neighbor[at(next[at(i)]++)] = j;
    p.neighbor[at(next[at(j)]++)] = i;
  });
}

}  // namespace

void require_symmetric(const SparseMatrix& a, const char* where) {
  require_well_formed(a);
  require(a.rows == a.cols, ErrorKind::misuse, where, "A is {} by {}, not square", a.rows, a.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      require(std::isfinite(a.value[at(k)]), ErrorKind::input, where, "element ({}, {}) of A is {}",
              i, a.column[at(k)], a.value[at(k)]);
  }
  if (is_one_triangle(a)) return;  // it stands for both
  const Asymmetry pair = find_asymmetry(a, kSymmetryTolerance);
  require(!pair.found, ErrorKind::input, where,
          "A is not symmetric: element ({}, {}) is {}, element ({}, {}) is {}", pair.row, pair.col,
          pair.value, pair.col, pair.row, pair.transposed);
}

SymmetricPattern symmetric_pattern(const SparseMatrix& a) {
  require_symmetric(a, "analyze");
  SymmetricPattern p;
  p.start.assign(at(a.rows) + 1, 0);
  for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t) {
    if (i == j) return;
    ++p.start[at(i) + 1];
    ++p.start[at(j) + 1];
  });
  std::partial_sum(p.start.begin(), p.start.end(), p.start.begin());
  p.neighbor.resize(at(p.start.back()));
  fill(a, p);
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
