// The tasks of a factorization whose tiles have precisions of their own.
//
// Method: the sum of a tile is formed in fp64 or fp32, starting from A, by products of tiles in few
// bits, which the tensor cores add up in fp32 over one tile's columns at most. It is solved with
// the diagonal tile in the precision of the sum, and only then rounded, once, to what the tile is
// kept in. Where a product is done in a coarser precision than a tile is kept in, or two operands
// differ by more than the kernels know, the tile is converted once for all such products, beside
// what is kept. Diagonal tiles are fp64.

#include "cholesky/mixed_tiles.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "cholesky/tile_tasks.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/dense/convert.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/tile_inverse.hpp"
#include "kernels/dense/tile_norm.hpp"
#include "kernels/dense/trsm.hpp"

namespace strata {
namespace {

using Pair = std::array<TilePrecision, 2>;

constexpr unsigned bit(TilePrecision precision) { return 1U << static_cast<unsigned>(precision); }

/// The operands of the product that updates tile (m, k) from column j, so that there is a kernel
/// for them: both in fp64, or neither in fp8, or both.
Pair operands_of(const PrecisionMap& map, std::int64_t m, std::int64_t k, std::int64_t j) {
  Pair pair = map.product(m, k, j);
  if (pair[0] == TilePrecision::none) return pair;
  if (!map.wide(m, k)) {  // more than the sum holds would be lost in it
    for (TilePrecision& p : pair) p = std::max(p, TilePrecision::fp32);
  }
  if (pair[0] == pair[1]) return pair;
  const auto finest = std::min(pair[0], pair[1]);
  if (finest == TilePrecision::fp64) return {finest, finest};
  for (TilePrecision& p : pair) p = std::min(p, TilePrecision::fp16);
  return pair;
}

/// Where the sum of a tile that exists is not formed in the tile itself.
Element element_of_sum(const TileFormats& formats, std::int64_t m, std::int64_t k) {
  const Element sum = formats.map->wide(m, k) ? Element::fp64 : Element::fp32;
  const Element kept = formats.element(formats.map->stored(m, k));
  return !formats.exists(m, k) || sum == kept ? Element::none : sum;
}

/// The precisions in which products take each tile (bits by TilePrecision).
std::vector<std::uint8_t> forms_of(const PrecisionMap& map) {
  const TileNorms& norms = map.norms();
  std::vector<std::uint8_t> forms(norms.matrix.size());
  for (std::int64_t j = 0; j < map.tiles(); ++j) {
    for (std::int64_t k = j + 1; k < map.tiles(); ++k) {
      for (std::int64_t m = k; m < map.tiles(); ++m) {
        const Pair pair = operands_of(map, m, k, j);
        if (pair[0] == TilePrecision::none) continue;
        forms[norms.at(m, j)] |= static_cast<std::uint8_t>(bit(pair[0]));
        forms[norms.at(k, j)] |= static_cast<std::uint8_t>(bit(pair[1]));
      }
    }
  }
  for (std::int64_t j = 0; j < map.tiles(); ++j) {
    for (std::int64_t m = j; m < map.tiles(); ++m)
      forms[norms.at(m, j)] &= static_cast<std::uint8_t>(~bit(map.stored(m, j)));
  }
  return forms;
}

/// Whether a tile is solved with what kSolvers holds: one whose sum is in fp32, and where that is
/// an inverse also one that is rounded to so few bits that the error of the solve does not show.
bool solved_in_single(const TileFormats& formats, std::int64_t m, std::int64_t k) {
  const TilePrecision kept = formats.map->stored(m, k);
  if (kept == TilePrecision::none) return false;
  return !formats.map->wide(m, k) ||
         (formats.single == Element::fp16x2 && kept >= TilePrecision::fp16);
}

/// Whether a tile of column k is.
std::vector<bool> columns_in_single(const TileFormats& formats) {
  const PrecisionMap& map = *formats.map;
  std::vector<bool> columns(static_cast<std::size_t>(map.tiles()));
  for (std::int64_t k = 0; k < map.tiles(); ++k) {
    for (std::int64_t m = k + 1; m < map.tiles(); ++m) {
      if (solved_in_single(formats, m, k)) columns[static_cast<std::size_t>(k)] = true;
    }
  }
  return columns;
}

class MixedTiles final : public TileTasks {
 public:
  MixedTiles(const CholeskyProblem& problem, const RowOwners& owners)
      : formats_(problem.formats),
        map_(*formats_.map),
        owners_(owners),
        forms_(forms_of(map_)),
        single_(columns_in_single(formats_)) {}

  void first_touch(TaskList& tasks, std::int64_t m, std::int64_t k) const override {
    if (!formats_.exists(m, k)) return;
    emit(tasks, covariance, m, k,
         {sum(m, k), BlockId(kPointsFamily, m, 0), BlockId(kPointsFamily, k, 0)});
  }

  void update(TaskList& tasks, std::int64_t m, std::int64_t k, std::int64_t j,
              Hint hint) const override {
    const Pair pair = operands_of(map_, m, k, j);
    if (pair[0] == TilePrecision::none) return;
    if (m == k) {
      emit(tasks, syrk, m, k, {{sum(m, k), hint}, form(m, j, pair[0])});
    } else {
      emit(tasks, gemm, m, k, {{sum(m, k), hint}, form(m, j, pair[0]), form(k, j, pair[1])},
           kTransposeB);
    }
  }

  void finish(TaskList& tasks, std::int64_t m, std::int64_t k) const override {
    if (m == k) return finish_diagonal(tasks, k);
    if (!formats_.exists(m, k)) return;
    const Hint stay = owners_.is_last_of_its_device(m) ? Hint::release : Hint::retain;
    const BlockId x = sum(m, k);
    const BlockId kept = tile(m, k);
    const Hint last = x == kept ? Hint::last_write : Hint::none;
    if (!solved_in_single(formats_, m, k)) {
      emit(tasks, trsm, m, k, {{x, last}, {tile(k, k), stay}}, kRightSide | kTransposeL);
    } else if (formats_.single == Element::fp16x2) {
      emit(tasks, multiply_inverse, m, k, {{x, last}, solver(k)});
    } else {
      emit(tasks, trsm, m, k, {{x, last}, solver(k)}, kRightSide | kTransposeL);
    }
    emit(tasks, tile_norm, m, k, {{BlockId(mixed::kNorms, m, k), Hint::last_write}, x});
    if (x != kept) emit(tasks, convert, m, k, {{kept, Hint::last_write}, x});
    for (const TilePrecision p :
         {TilePrecision::fp64, TilePrecision::fp32, TilePrecision::fp16, TilePrecision::fp8}) {
      if ((forms_[map_.norms().at(m, k)] & bit(p)) != 0)
        emit(tasks, convert, m, k, {form(m, k, p), kept});
    }
  }

 private:
  static BlockId tile(std::int64_t m, std::int64_t k) { return {kMatrixFamily, m, k}; }
  static BlockId solver(std::int64_t k) { return {mixed::kSolvers, k, 0}; }
  [[nodiscard]] BlockId sum(std::int64_t m, std::int64_t k) const {
    return element_of_sum(formats_, m, k) == Element::none ? tile(m, k)
                                                           : BlockId(mixed::kSums, m, k);
  }
  [[nodiscard]] BlockId form(std::int64_t m, std::int64_t k, TilePrecision precision) const {
    if (map_.stored(m, k) == precision) return tile(m, k);
    return {mixed::kForms + static_cast<int>(precision), m, k};
  }

  void finish_diagonal(TaskList& tasks, std::int64_t k) const {
    const Hint stay = owners_.is_last_of_its_device(k) ? Hint::release : Hint::retain;
    const BlockId status(kStatusFamily, 0, k);
    emit(tasks, potrf, k, k, {{tile(k, k), Hint::last_write | stay}, {status, Hint::last_write}});
    if (!single_[static_cast<std::size_t>(k)]) return;
    if (formats_.single == Element::fp16x2) {
      emit(tasks, invert_factor, k, k, {solver(k), tile(k, k)});
    } else {
      emit(tasks, convert, k, k, {solver(k), tile(k, k)});
    }
  }

  void emit(TaskList& tasks, const Operation& operation, std::int64_t m, std::int64_t k,
            std::initializer_list<TaskOperand> operands, std::uint32_t variant = 0) const {
    Task& task = tasks.add(operation, owners_[m], operands, variant);
    task.urgent = m == k;  // the whole column waits for its diagonal tile
  }

  TileFormats formats_;
  const PrecisionMap& map_;
  RowOwners owners_;
  std::vector<std::uint8_t> forms_;
  std::vector<bool> single_;
};

}  // namespace

std::unique_ptr<const TileTasks> mixed_tile_tasks(const CholeskyProblem& problem,
                                                  const RowOwners& owners) {
  return std::make_unique<const MixedTiles>(problem, owners);
}

void add_mixed_families(const CholeskyProblem& problem, Schedule& schedule) {
  const PrecisionMap& map = *problem.formats.map;
  const TileNorms& norms = map.norms();
  const auto add = [&](const char* name, std::vector<Element> elements, Origin origin,
                       int operands) {
    schedule.blocks.add({.name = name,
                         .rows = problem.n,
                         .cols = problem.n,
                         .tile_rows = problem.tile,
                         .tile_cols = problem.tile,
                         .shape = Shape::lower,
                         .origin = origin,
                         .elements = std::move(elements)});
    schedule.operands.push_back(operands);
  };
  std::vector<Element> sums;
  for (std::int64_t k = 0; k < map.tiles(); ++k) {
    for (std::int64_t m = k; m < map.tiles(); ++m)
      sums.push_back(element_of_sum(problem.formats, m, k));
  }
  add("W", std::move(sums), Origin::temporary, 1);
  schedule.blocks.add({.name = "T",
                       .rows = map.tiles() * kTileNormOrder,
                       .cols = map.tiles() * kTileNormOrder,
                       .tile_rows = kTileNormOrder,
                       .tile_cols = kTileNormOrder,
                       .shape = Shape::lower,
                       .origin = Origin::generated});
  schedule.operands.push_back(1);
  schedule.blocks.add({.name = "D",
                       .rows = problem.n,
                       .cols = std::min(problem.tile, problem.n),
                       .tile_rows = problem.tile,
                       .tile_cols = problem.tile,
                       .element = problem.formats.single,
                       .origin = Origin::temporary});
  schedule.operands.push_back(1);
  const std::vector<std::uint8_t> forms = forms_of(map);
  constexpr std::array<const char*, 4> names{"L64", "L32", "L16", "L8"};
  for (std::size_t p = 0; p < names.size(); ++p) {
    const auto precision = static_cast<TilePrecision>(p);
    std::vector<Element> elements(norms.matrix.size(), Element::none);
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if ((forms[i] & bit(precision)) != 0) elements[i] = problem.formats.element(precision);
    }
    add(names[p], std::move(elements), Origin::temporary, 2);
  }
}

}  // namespace strata
