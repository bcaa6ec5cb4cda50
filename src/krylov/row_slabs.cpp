// Slabs of rows: the columns that are not a slab's own are sorted, so those of one other slab come
// together, and numbered by their place.

#include "krylov/row_slabs.hpp"

#include <algorithm>
#include <limits>

#include "base/check.hpp"
#include "base/index.hpp"
#include "kernels/krylov/panel.hpp"

namespace strata {
namespace {

void sort_and_keep_one(std::vector<std::int32_t>& columns) {
  std::sort(columns.begin(), columns.end());
  columns.erase(std::unique(columns.begin(), columns.end()), columns.end());
}

/// The columns of a slab that are rows of others, ascending.
std::vector<std::int32_t> outside_columns(const SparseMatrix& a, const RowSlab& slab,
                                          WorkCrew& crew) {
  std::vector<std::vector<std::int32_t>> of_block(at(blocks_of(slab.entries)));
  for_blocks(crew, slab.entries, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
    std::vector<std::int32_t>& outside = of_block[at(block)];
    for (std::int64_t k = slab.first_entry + begin; k < slab.first_entry + end; ++k) {
      const std::int32_t j = a.column[at(k)];
      if (j < slab.first || j >= slab.first + slab.rows) outside.push_back(j);
    }
    sort_and_keep_one(outside);
  });
  std::vector<std::int32_t> outside;
  for (const std::vector<std::int32_t>& some : of_block)
    outside.insert(outside.end(), some.begin(), some.end());
  sort_and_keep_one(outside);
  return outside;
}

}  // namespace

RowSlabs cut_into_slabs(const SparseMatrix& a, int devices, std::int64_t per_device,
                        WorkCrew& crew) {
  RowSlabs cut;
  cut.rows = a.rows;
  cut.chunk_log2 = panel_chunk_log2(a.rows);
  const std::int64_t height = std::int64_t{1} << cut.chunk_log2;
  const std::int64_t chunks = (a.rows + height - 1) / height;
  const std::int64_t used = std::min<std::int64_t>(devices, chunks);
  const std::int64_t count = std::min(used * per_device, chunks);
  cut.start.reserve(at(a.rows + count));
  for (std::int64_t s = 0; s < count; ++s) {
    RowSlab slab;
    const std::int64_t first_chunk = s * chunks / count;
    slab.chunks = (s + 1) * chunks / count - first_chunk;
    slab.device = static_cast<int>(s * used / count);
    slab.first = first_chunk * height;
    slab.rows = std::min(a.rows, (first_chunk + slab.chunks) * height) - slab.first;
    slab.first_entry = a.start[at(slab.first)];
    slab.entries = a.start[at(slab.first + slab.rows)] - slab.first_entry;
    require(slab.entries < std::numeric_limits<std::int32_t>::max(), ErrorKind::misuse, "krylov",
            "rows {} to {} have {} entries, more than one device counts: use more devices",
            slab.first, slab.first + slab.rows - 1, slab.entries);
    cut.slabs.push_back(slab);
  }
  const auto owner = [&](std::int64_t row) {
    const auto behind =
        std::upper_bound(cut.slabs.begin(), cut.slabs.end(), row,
                         [](std::int64_t r, const RowSlab& slab) { return r < slab.first; });
    return static_cast<int>(behind - cut.slabs.begin()) - 1;
  };
  std::vector<std::int32_t> place;  // of several slabs
  if (count > 1) {
    cut.column.resize(a.column.size());
    place.assign(at(a.rows), -1);
  }
  for (int s = 0; s < static_cast<int>(count); ++s) {
    RowSlab& slab = cut.slabs[at(s)];
    const bool all = slab.rows == a.rows;
    const std::vector<std::int32_t> outside =
        all ? std::vector<std::int32_t>() : outside_columns(a, slab, crew);
    slab.halo = std::ssize(outside);
    for (std::int64_t i = 0; i < slab.halo; ++i) {
      const std::int32_t j = outside[at(i)];
      place[at(j)] = static_cast<std::int32_t>(slab.rows + i);
      const int from = owner(j);
      if (cut.links.empty() || cut.links.back().to != s || cut.links.back().from != from)
        cut.links.push_back({from, s, i, {}});
      cut.links.back().index.push_back(static_cast<std::int32_t>(j - cut.slabs[at(from)].first));
    }
    for (std::int64_t row = slab.first; row <= slab.first + slab.rows; ++row)
      cut.start.push_back(static_cast<std::int32_t>(a.start[at(row)] - slab.first_entry));
    if (all) {
      cut.column = a.column;
      continue;
    }
    for_blocks(crew, slab.entries, [&](std::int64_t begin, std::int64_t end, std::int64_t) {
      for (std::int64_t k = slab.first_entry + begin; k < slab.first_entry + end; ++k) {
        const std::int32_t j = a.column[at(k)];
        const bool own = j >= slab.first && j < slab.first + slab.rows;
        cut.column[at(k)] = own ? static_cast<std::int32_t>(j - slab.first) : place[at(j)];
      }
    });
  }
  return cut;
}

}  // namespace strata
