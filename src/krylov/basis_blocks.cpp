// The blocks of a script: V and W, the matrices by slabs of rows, what slabs exchange, and what the
// host provides or reads. Families stand in the order of their numbers (basis_script.hpp).

#include <algorithm>

#include "krylov/basis_script.hpp"

namespace strata {
namespace {

BlockFamily listed(const char* name, Element element, Origin origin, std::uint64_t identity = 0) {
  return {.name = name, .element = element, .origin = origin, .identity = identity};
}

/// Names and identities of the families of a matrix.
struct MatrixNames {
  const char *starts, *columns, *values, *halo, *index, *packed;
  std::uint64_t starts_id, columns_id, values_id, index_id;
};

/// Adds the families of what a slab has: blocks that lie one behind the other in the host's arrays.
/// An empty array gets one element, so that there is a block.
void add_matrix(const RowSlabs& slabs, const MatrixNames& names, Element element,
                BlockTable& blocks) {
  BlockFamily starts = listed(names.starts, Element::int32, Origin::stored, names.starts_id);
  BlockFamily columns = listed(names.columns, Element::int32, Origin::stored, names.columns_id);
  BlockFamily values = listed(names.values, element, Origin::stored, names.values_id);
  BlockFamily halo = listed(names.halo, element, Origin::temporary);
  std::int64_t number = 0;
  for (const RowSlab& slab : slabs.slabs) {
    starts.listed.push_back({slab.first + number++, 0, slab.rows + 1, 1});
    const std::int64_t entries = std::max<std::int64_t>(slab.entries, 1);
    columns.listed.push_back({slab.first_entry, 0, entries, 1});
    values.listed.push_back({slab.first_entry, 0, entries, 1});
    halo.listed.push_back({0, 0, std::max<std::int64_t>(slab.halo, 1), 1});
  }
  for (BlockFamily* family : {&starts, &columns, &values, &halo}) blocks.add(std::move(*family));
}

void add_links(const RowSlabs& slabs, const MatrixNames& names, Element element,
               BlockTable& blocks) {
  BlockFamily index = listed(names.index, Element::int32, Origin::stored, names.index_id);
  BlockFamily packed = listed(names.packed, element, Origin::temporary);
  std::int64_t first = 0;
  for (const HaloLink& link : slabs.links) {
    const std::int64_t count = std::ssize(link.index);
    index.listed.push_back({first, 0, count, 1});
    packed.listed.push_back({link.offset, 0, count, 1});
    first += count;
  }
  blocks.add(std::move(index));
  blocks.add(std::move(packed));
}

/// Adds the families of ghost rows; as for slabs, what is empty gets one element.
void add_ghosts(const BasisProblem& problem, BlockTable& blocks) {
  const BasisIdentities& ids = problem.identities;
  BlockFamily starts = listed("Pg", Element::int32, Origin::stored, ids.ghost_starts);
  BlockFamily columns = listed("Jg", Element::int32, Origin::stored, ids.ghost_columns);
  BlockFamily values = listed("Ag", problem.element, Origin::stored, ids.ghost_values);
  BlockFamily index = listed("Ig", Element::int32, Origin::stored, ids.ghost_index);
  if (problem.ghosts != nullptr) {
    std::int64_t first = 0;
    const auto add_index = [&](std::int64_t count) {
      index.listed.push_back({first, 0, std::max<std::int64_t>(count, 1), 1});
      first += count;
    };
    for (const HaloLink& link : problem.ghosts->links) add_index(std::ssize(link.index));
    for (const GhostZone& zone : problem.ghosts->zones) add_index(std::ssize(zone.halo));
    for (const GhostZone& zone : problem.ghosts->zones) {
      add_index(std::ssize(zone.border));
      const std::int64_t entries = std::max<std::int64_t>(zone.entries, 1);
      starts.listed.push_back({zone.first_row, 0, zone.rows + 1, 1});
      columns.listed.push_back({zone.first_entry, 0, entries, 1});
      values.listed.push_back({zone.first_entry, 0, entries, 1});
    }
  }
  for (BlockFamily* family : {&starts, &columns, &values, &index}) blocks.add(std::move(*family));
}

/// What scripts exchange of ghost rows.
void add_exchanged(const BasisProblem& problem, BlockTable& blocks) {
  BlockFamily ghosts = listed("Z", problem.element, Origin::temporary);
  BlockFamily ghost_packed = listed("Gg", problem.element, Origin::temporary);
  BlockFamily column = listed("Cg", problem.element, Origin::temporary);
  BlockFamily border = listed("Y", problem.element, Origin::temporary);
  if (problem.ghosts != nullptr) {
    for (const HaloLink& link : problem.ghosts->links)
      ghost_packed.listed.push_back({link.offset, 0, std::ssize(link.index), 1});
    for (const GhostZone& zone : problem.ghosts->zones) {
      const std::int64_t rows = std::max<std::int64_t>(zone.rows, 1);
      ghosts.listed.push_back({0, 0, rows, problem.ghosts->depth + 1});
      column.listed.push_back({0, 0, rows, 1});
      border.listed.push_back({0, 0, std::max<std::int64_t>(std::ssize(zone.border), 1), 1});
    }
  }
  for (BlockFamily* family : {&ghosts, &ghost_packed, &column, &border})
    blocks.add(std::move(*family));
}

void add_vectors(const BasisProblem& problem, BlockTable& blocks) {
  BlockFamily vectors = listed("V", problem.element, Origin::stored, problem.identities.vectors);
  vectors.stays = problem.stays;
  for (const RowSlab& slab : problem.slabs->slabs)
    vectors.listed.push_back({slab.first, 0, slab.rows, problem.columns});
  blocks.add(std::move(vectors));
}

void add_small(const BasisProblem& problem, const BasisScript& script, BlockTable& blocks) {
  BlockFamily three = listed("K", Element::fp64, Origin::stored);
  three.listed.push_back({0, 0, 3, problem.columns});
  for (std::size_t i = 0; problem.ghosts != nullptr && i < script.ranges.size(); ++i)
    three.listed.push_back({0, 0, 3, problem.ghosts->depth + 1});
  BlockFamily factors = listed("R", Element::fp64, Origin::stored);
  BlockFamily scales = listed("d", Element::fp64, Origin::stored);
  BlockFamily parts = listed("B", Element::fp64, Origin::temporary);
  BlockFamily sums = listed("S", Element::fp64, Origin::generated);
  BlockFamily taken =
      listed("C", problem.taken_wide ? Element::fp64 : problem.element, Origin::generated);
  for (const PanelFactor& factor : script.factors) {
    factors.listed.push_back({0, 0, factor.rows, factor.cols});
    factors.elements.push_back(factor.element);
    scales.listed.push_back({0, 0, factor.cols, 1});
  }
  for (const BasisScript::Sum& sum : script.sums) {
    sums.listed.push_back({0, 0, sum.rows, sum.cols});
    sums.elements.push_back(sum.element);
    for (const RowSlab& slab : problem.slabs->slabs) {
      parts.listed.push_back({0, 0, sum.rows, sum.cols * slab.chunks});
      parts.elements.push_back(sum.element);
    }
  }
  for (std::int64_t j = 0; problem.taken >= 0 && j < problem.taken_count; ++j) {
    for (const RowSlab& slab : problem.slabs->slabs)
      taken.listed.push_back({slab.first, 0, slab.rows, 1});
  }
  BlockFamily given = listed("N", Element::fp64, Origin::stored);
  for (const BasisScript::Given& one : script.given) {
    for (const RowSlab& slab : problem.slabs->slabs) {
      given.listed.push_back({slab.first, 0, slab.rows, 1});
      given.elements.push_back(one.wide ? Element::fp64 : problem.element);
    }
  }
  for (BlockFamily* family : {&three, &factors, &scales, &parts, &sums, &taken, &given})
    blocks.add(std::move(*family));
}

/// What a product of W needs beside W: values, a halo for each slab, what is packed for each link.
void add_wide_matrix(const RowSlabs& slabs, const MatrixNames& names, BlockTable& blocks) {
  BlockFamily values = listed(names.values, Element::fp64, Origin::stored, names.values_id);
  BlockFamily halo = listed(names.halo, Element::fp64, Origin::temporary);
  BlockFamily packed = listed(names.packed, Element::fp64, Origin::temporary);
  for (const RowSlab& slab : slabs.slabs) {
    values.listed.push_back({slab.first_entry, 0, std::max<std::int64_t>(slab.entries, 1), 1});
    halo.listed.push_back({0, 0, std::max<std::int64_t>(slab.halo, 1), 1});
  }
  for (const HaloLink& link : slabs.links)
    packed.listed.push_back({link.offset, 0, std::ssize(link.index), 1});
  for (BlockFamily* family : {&values, &halo, &packed}) blocks.add(std::move(*family));
}

/// W with what belongs to it; families without blocks where there is no W.
void add_wide(const BasisProblem& problem, const RowSlabs& inverse, BlockTable& blocks) {
  const RowSlabs nothing;
  const bool there = problem.wide_columns > 0;
  const BasisIdentities& ids = problem.identities;
  BlockFamily wide = listed("W", Element::fp64, Origin::stored, ids.wide);
  wide.stays = problem.stays;
  for (const RowSlab& slab : (there ? *problem.slabs : nothing).slabs)
    wide.listed.push_back({slab.first, 0, slab.rows, problem.wide_columns});
  blocks.add(std::move(wide));
  const MatrixNames of_matrix{"", "", "WA", "WH", "", "WG", 0, 0, ids.wide_values, 0};
  const MatrixNames of_inverse{"", "", "WM", "WMH", "", "WMG", 0, 0, ids.wide_inverse_values, 0};
  add_wide_matrix(there ? *problem.slabs : nothing, of_matrix, blocks);
  add_wide_matrix(there ? inverse : nothing, of_inverse, blocks);
  BlockFamily three = listed("WK", Element::fp64, Origin::stored);
  if (there) three.listed.push_back({0, 0, 3, problem.wide_columns});
  blocks.add(std::move(three));
}

}  // namespace

BlockTable basis_blocks(const BasisProblem& problem, const BasisScript& script) {
  BlockTable blocks;
  const BasisIdentities& ids = problem.identities;
  const MatrixNames of_matrix{"P", "J",        "A",         "H",        "I",
                              "G", ids.starts, ids.columns, ids.values, ids.index};
  const MatrixNames of_inverse{"MP",
                               "MJ",
                               "M",
                               "MH",
                               "MI",
                               "MG",
                               ids.inverse_starts,
                               ids.inverse_columns,
                               ids.inverse_values,
                               ids.inverse_index};
  const RowSlabs nothing;
  const RowSlabs& inverse = problem.inverse != nullptr ? *problem.inverse : nothing;
  add_vectors(problem, blocks);
  add_matrix(*problem.slabs, of_matrix, problem.element, blocks);
  add_links(*problem.slabs, of_matrix, problem.element, blocks);
  add_matrix(inverse, of_inverse, problem.element, blocks);
  add_links(inverse, of_inverse, problem.element, blocks);
  add_ghosts(problem, blocks);
  add_exchanged(problem, blocks);
  add_small(problem, script, blocks);
  add_wide(problem, inverse, blocks);
  return blocks;
}

}  // namespace strata
