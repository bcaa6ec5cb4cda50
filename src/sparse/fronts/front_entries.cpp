#include "sparse/fronts/front_entries.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/check.hpp"
#include "sparse/ordering/error_places.hpp"
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

namespace {

template <class T>
BlockSource typed_values_of(const FrontLayout& layout, const SparseMatrix& a, ScaledShift shift,
                            WorkCrew& crew) {
  return [&layout, &a, shift, &crew](const BlockExtent& x, std::byte* to) {
    auto* out = reinterpret_cast<T*>(to);
    // A float that is no longer normal has lost its digits; off the diagonal that may not matter.
    const auto checked = [exponent = shift.exponent](double value, bool on_diagonal) {
      const T held = static_cast<T>(value);
      const bool exact = std::is_same_v<T, double> || value == 0;
      require(std::isfinite(held) && (!on_diagonal || exact || std::isnormal(held)),
              ErrorKind::input, kFactorWhere,
              "an element of A + shift·I is {}, which {} cannot hold", std::scalbn(value, exponent),
              to_string(element_of<T>));
      return held;
    };
    if (x.col == kRawValues && std::is_same_v<T, double>) {  // finite, as is known by now
      for_blocks(crew, std::ssize(a.value),
                 [&](std::int64_t begin, std::int64_t end, std::int64_t) {
                   std::copy(a.value.begin() + begin, a.value.begin() + end, out + begin);
                 });
      out[x.rows - 1] = static_cast<T>(shift.shift);
      return;
    }
    if (x.col == kRawValues) {
      for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
        if (i == j) (void)checked(a.value[at(k)] + shift.shift, true);
      });
      for (std::size_t k = 0; k < a.value.size(); ++k) out[k] = checked(a.value[k], false);
      out[x.rows - 1] = checked(shift.shift, false);
      return;
    }
    const bool of_range = x.col == kRangeValues;  // whose program adds the shift
    if (of_range) out[x.rows - 1] = checked(shift.shift, false);
    for (std::int64_t k = 0; k < x.rows - (of_range ? 1 : 0); ++k) {
      const EntryCode code = layout.entries[at(x.row + k)];
      const double value = code < 0 ? 0.0 : a.value[at(code >> 1)];
      const bool on_diagonal = (code & 1) != 0;
      out[k] = checked(on_diagonal ? value + shift.shift : value, on_diagonal);
      if (of_range) out[k] = checked(value, false);
    }
  };
}

}  // namespace

BlockSource values_of(const FrontLayout& layout, const SparseMatrix& a, ScaledShift shift,
                      Element element, WorkCrew& crew) {
  return element == Element::fp64 ? typed_values_of<double>(layout, a, shift, crew)
                                  : typed_values_of<float>(layout, a, shift, crew);
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
