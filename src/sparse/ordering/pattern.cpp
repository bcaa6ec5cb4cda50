// Method: rows are looked at in blocks by several threads. If both triangles were given and are
// mirrors of each other, the neighbours of a vertex are its row. Otherwise the lower triangle is
// mirrored, or the upper one where nothing lies below the diagonal. To mirror, and to compare with
// the mirror, each thread has a range of rows and walks through the entries that lie in these rows
// or in columns of the same numbers. So it alone touches what belongs to its range, and because
// rows ascend, neighbours come in order and nothing is sorted. The fingerprint is XXH3 (128 bits)
// of both arrays.
//
// What is wrong with a matrix is named by the checks of src/matrix, on one thread.

#include "sparse/ordering/pattern.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"
#include "matrix/symmetry.hpp"
#include "sparse/ordering/entry_checks.hpp"

namespace strata {
namespace {

/// What was found in a block of rows, or in all.
struct RowCounts {
  bool sound = true;  ///< compressed by rows, and finite
  std::int64_t below = 0;
  std::int64_t above = 0;
  std::int64_t empty_diagonals = 0;
  std::int64_t first_empty_diagonal = -1;

  void add(const RowCounts& later) {
    sound = sound && later.sound;
    below += later.below;
    above += later.above;
    if (empty_diagonals == 0) first_empty_diagonal = later.first_empty_diagonal;
    empty_diagonals += later.empty_diagonals;
  }
};

struct CheckedRows {
  RowCounts counts;
  std::vector<std::int64_t> behind;  ///< of each row the first entry behind the diagonal
  bool mirrored = false;             ///< both triangles were given, with entries in the same places

  [[nodiscard]] bool given_below() const { return counts.below > 0 || counts.above == 0; }
};

RowCounts count_rows(const SparseMatrix& a, std::int64_t begin, std::int64_t end,
                     std::span<std::int64_t> behind) {
  RowCounts c;
  const std::int32_t* column = a.column.data();
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t first = a.start[at(i)];
    const std::int64_t last = a.start[at(i + 1)];
    c.sound = c.sound && 0 <= first && first <= last && last <= a.entries();
    if (!c.sound) return c;
    bool ascending = first == last || (column[first] >= 0 && column[last - 1] < a.cols);
    for (std::int64_t k = first + 1; k < last; ++k) ascending &= column[k - 1] < column[k];
    std::int64_t below = 0;
    for (std::int64_t k = first; k < last; ++k) below += column[k] < i ? 1 : 0;
    const bool has_diagonal = first + below < last && column[first + below] == i;
    behind[at(i)] = first + below + (has_diagonal ? 1 : 0);
    c.sound = ascending;
    c.below += below;
    c.above += last - behind[at(i)];
    if (!has_diagonal && c.empty_diagonals++ == 0) c.first_empty_diagonal = i;
  }
  const std::int64_t first = a.start[at(begin)];
  c.sound = c.sound && std::isfinite(largest_magnitude(
                           std::span(a.value).subspan(at(first), at(a.start[at(end)] - first))));
  return c;
}

struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] bool has(std::int64_t i) const { return begin <= i && i < end; }
};

/// Calls visit(range) for ranges of rows, one for each thread, with about as many entries each.
template <class Visit>
void for_ranges(const SparseMatrix& a, WorkCrew& crew, const Visit& visit) {
  const std::int64_t ranges =
      std::min<std::int64_t>(crew.helpers() + 1, a.entries() / kEntriesPerThread + 1);
  const auto cut = [&](std::int64_t r) {
    if (r == ranges) return a.rows;
    return std::lower_bound(a.start.begin(), a.start.end(), a.entries() / ranges * r) -
           a.start.begin();
  };
  crew.share(ranges, [&](std::int64_t r) { visit(Range{cut(r), cut(r + 1)}); });
}

/// Calls visit(i, j, k) for the entries k beside the diagonal of one triangle whose row i or column
/// j is in the range. Rows ascend, then columns.
template <class Visit>
void for_entries_of(const SparseMatrix& a, bool lower, Range range, const Visit& visit) {
  const std::int32_t* column = a.column.data();
  const std::int64_t last_row = lower ? a.rows : range.end;
  for (std::int64_t i = lower ? range.begin : 0; i < last_row; ++i) {
    Range columns = range;
    if (range.has(i)) columns = lower ? Range{0, i} : Range{i + 1, a.rows};
    std::int64_t k = a.start[at(i)];
    const std::int64_t end = a.start[at(i + 1)];
    if (k == end || column[k] >= columns.end || column[end - 1] < columns.begin) continue;
    if (column[k] < columns.begin)
      k = std::lower_bound(column + k, column + end, columns.begin) - column;
    for (; k < end && column[k] < columns.end; ++k) visit(i, column[k], k);
  }
}

/// Whether each entry below the diagonal has one above it with its value, and each above one below.
bool is_mirrored(const SparseMatrix& a, const CheckedRows& rows, WorkCrew& crew) {
  if (rows.counts.below != rows.counts.above) return false;
  std::vector<std::int64_t> next = rows.behind;
  std::atomic<bool> all = true;
  const auto diagonal = [&](std::int64_t i) {
    const std::int64_t k = rows.behind[at(i)] - 1;
    return k >= a.start[at(i)] && a.column[at(k)] == i ? a.value[at(k)] : 0.0;
  };
  for_ranges(a, crew, [&](Range range) {
    bool mirrored = true;
    for_entries_of(a, true, range, [&](std::int64_t i, std::int32_t j, std::int64_t k) {
      if (!range.has(j)) return;
      const std::int64_t other = next[at(j)]++;
      mirrored = mirrored && other < a.start[at(j + 1)] && a.column[at(other)] == i &&
                 (a.value[at(k)] == a.value[at(other)] ||
                  is_symmetric_pair(a.value[at(k)], a.value[at(other)], diagonal(i), diagonal(j),
                                    kSymmetryTolerance));
    });
    if (!mirrored) all = false;
  });
  return all;
}

/// Throws for the first fault of a matrix that has one.
void name_fault(const SparseMatrix& a, const char* where) {
  require_well_formed(a);
  require(a.rows == a.cols, ErrorKind::misuse, where, "A is {} by {}, not square", a.rows, a.cols);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      require(std::isfinite(a.value[at(k)]), ErrorKind::input, where, "element ({}, {}) of A is {}",
              i, a.column[at(k)], a.value[at(k)]);
  }
}

CheckedRows check_rows(const SparseMatrix& a, const char* where, WorkCrew& crew) {
  CheckedRows rows;
  RowCounts& counts = rows.counts;
  counts.sound = a.rows >= 0 && a.rows == a.cols && std::ssize(a.start) == a.rows + 1 &&
                 a.rows <= std::numeric_limits<std::int32_t>::max() && a.start.front() == 0 &&
                 a.start.back() == a.entries() && a.column.size() == a.value.size();
  if (counts.sound) {
    rows.behind.resize(at(a.rows));
    std::vector<RowCounts> of_block(at(blocks_of(a.rows)));
    for_blocks(crew, a.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
      of_block[at(block)] = count_rows(a, begin, end, rows.behind);
    });
    for (const RowCounts& block : of_block) counts.add(block);
  }
  if (!counts.sound) name_fault(a, where);
  if (counts.below == 0 || counts.above == 0) return rows;  // one triangle stands for both
  rows.mirrored = is_mirrored(a, rows, crew);
  if (rows.mirrored) return rows;
  const Asymmetry pair = find_asymmetry(a, kSymmetryTolerance);
  require(!pair.found, ErrorKind::numerical, where,
          "A is not symmetric: element ({}, {}) is {} and ({}, {}) is {}, counted from 0", pair.row,
          pair.col, pair.value, pair.col, pair.row, pair.transposed);
  return rows;  // zeros, or noise, are there whose mirrors are not
}

/// The rows without their diagonals.
void copy_rows(const SparseMatrix& a, const CheckedRows& rows, SymmetricPattern& p,
               WorkCrew& crew) {
  const auto diagonal = [&](std::int64_t i) {
    const std::int64_t k = rows.behind[at(i)] - 1;
    return k >= a.start[at(i)] && a.column[at(k)] == i ? k : rows.behind[at(i)];
  };
  for_blocks(crew, a.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    for (std::int64_t i = begin; i < end; ++i)
      p.start[at(i + 1)] = a.start[at(i + 1)] - rows.behind[at(i)] + diagonal(i) - a.start[at(i)];
  });
  std::partial_sum(p.start.begin(), p.start.end(), p.start.begin());
  p.neighbor.resize(at(p.start.back()));
  for_blocks(crew, a.rows, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
    const auto column = a.column.begin();
    for (std::int64_t i = begin; i < end; ++i)
      std::copy(column + rows.behind[at(i)], column + a.start[at(i + 1)],
                std::copy(column + a.start[at(i)], column + diagonal(i),
                          p.neighbor.begin() + p.start[at(i)]));
  });
}

/// Row i lists the neighbours before it when its turn comes (lower), or finds them there (upper):
/// in both cases they were all smaller, and those behind it come in the order of their rows.
void mirror_triangle(const SparseMatrix& a, bool lower, SymmetricPattern& p, WorkCrew& crew) {
  for_ranges(a, crew, [&](Range range) {
    for_entries_of(a, lower, range, [&](std::int64_t i, std::int32_t j, std::int64_t) {
      if (range.has(i)) ++p.start[at(i) + 1];
      if (range.has(j)) ++p.start[at(j) + 1];
    });
  });
  std::partial_sum(p.start.begin(), p.start.end(), p.start.begin());
  p.neighbor.resize(at(p.start.back()));
  std::vector<std::int64_t> next(p.start.begin(), p.start.end() - 1);
  for_ranges(a, crew, [&](Range range) {
    for_entries_of(a, lower, range, [&](std::int64_t i, std::int32_t j, std::int64_t) {
      if (range.has(i)) p.neighbor[at(next[at(i)]++)] = j;
      if (range.has(j)) p.neighbor[at(next[at(j)]++)] = static_cast<std::int32_t>(i);
    });
  });
}

}  // namespace

void require_symmetric(const SparseMatrix& a, const char* where, WorkCrew& crew) {
  (void)check_rows(a, where, crew);
}

SymmetricPattern symmetric_pattern(const SparseMatrix& a, WorkCrew& crew) {
  const CheckedRows rows = check_rows(a, "analyze", crew);
  SymmetricPattern p;
  p.start.assign(at(a.rows) + 1, 0);
  p.empty_diagonals = rows.counts.empty_diagonals;
  p.first_empty_diagonal = rows.counts.first_empty_diagonal;
  if (rows.mirrored) {
    copy_rows(a, rows, p, crew);
  } else {
    mirror_triangle(a, rows.given_below(), p, crew);
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
