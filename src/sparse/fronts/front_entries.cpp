#include "sparse/fronts/front_entries.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {

PermutedEntries permuted_entries(const SparseAnalysis& analysis, const SparseMatrix& a) {
  const auto n = std::ssize(analysis.order);
  std::vector<std::int32_t> column_of(at(n));
  for (std::int64_t k = 0; k < n; ++k)
    column_of[at(analysis.order[at(k)])] = static_cast<std::int32_t>(k);
  PermutedEntries p;
  p.start.assign(at(n) + 1, 0);
  std::vector<char> has_diagonal(at(n));
  for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t) {
    const std::int32_t c = std::min(column_of[at(i)], column_of[at(j)]);
    ++p.start[at(c) + 1];
    if (i == j) has_diagonal[at(c)] = 1;
  });
  for (std::int64_t c = 0; c < n; ++c)
    p.start[at(c) + 1] += p.start[at(c)] + (has_diagonal[at(c)] != 0 ? 0 : 1);
  p.row.resize(at(p.start.back()));
  p.code.resize(at(p.start.back()));
  std::vector<std::int64_t> next(p.start.begin(), p.start.end() - 1);
  const auto put = [&](std::int32_t c, std::int32_t r, EntryCode code) {
    const std::int64_t k = next[at(c)]++;
    p.row[at(k)] = r;
    p.code[at(k)] = code;
  };
  for (std::int32_t c = 0; c < n; ++c)
    if (has_diagonal[at(c)] == 0) put(c, c, -1);
  for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
    const std::int32_t u = column_of[at(i)];
    const std::int32_t v = column_of[at(j)];
    put(std::min(u, v), std::max(u, v), 2 * k + (i == j ? 1 : 0));
  });
  return p;
}

void append_places(const SparseAnalysis& a, std::int32_t s, std::vector<std::int32_t>& to) {
  const std::int32_t p = a.parent[at(s)];
  const std::int32_t begin = a.first[at(p)];
  const std::int32_t end = a.first[at(p) + 1];
  const auto above = a.rows(p);
  std::size_t k = 0;
  for (const std::int32_t row : a.rows(s)) {
    if (row < end) {
      to.push_back(row - begin);
      continue;
    }
    while (k < above.size() && above[k] < row) ++k;
    require(k < above.size() && above[k] == row, ErrorKind::misuse, "factor",
            "row {} of supernode {} is no row of its parent", row, s);
    to.push_back(end - begin + static_cast<std::int32_t>(k));
  }
}

}  // namespace strata
