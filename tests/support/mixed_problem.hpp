#pragma once
// Small mixed factorizations: of a field whose tiles need every precision there is.
//
// Contract: norms are those of the dense factor by LAPACK, so that maps are what a perfect pilot
// would make of them.

#include <memory>
#include <utility>
#include <vector>

#include "cholesky/mixed_tiles.hpp"
#include "cholesky/tile_cholesky.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/dense/convert.hpp"
#include "kernels/dense/formats_reference.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/tile_inverse.hpp"
#include "run/run.hpp"
#include "store/memory_store.hpp"
#include "tests/support/gaussian.hpp"

namespace strata::test {

/// Norms of the tiles of A and of its factor L.
inline TileNorms exact_norms(const Matrix<double>& a, const Matrix<double>& l, std::int64_t tile) {
  TileNorms norms;
  norms.tile = tile;
  norms.tiles = (a.rows + tile - 1) / tile;
  double total = 0;
  for (std::int64_t c = 0; c < norms.tiles; ++c) {
    for (std::int64_t r = c; r < norms.tiles; ++r) {
      double square_a = 0, square_l = 0, largest = 0;
      for (std::int64_t j = c * tile; j < std::min(c * tile + tile, a.cols); ++j) {
        for (std::int64_t i = r * tile; i < std::min(r * tile + tile, a.rows); ++i) {
          square_a += a(i, j) * a(i, j);
          square_l += l(i, j) * l(i, j);
          largest = std::max(largest, std::fabs(l(i, j)));
        }
      }
      norms.matrix.push_back(std::sqrt(square_a));
      norms.factor.push_back(std::sqrt(square_l));
      norms.largest.push_back(largest);
      total += (r == c ? 1 : 2) * square_a;
    }
  }
  norms.frobenius = std::sqrt(total);
  for (std::int64_t k = 0; k < l.rows; ++k)
    norms.smallest_pivot =
        std::min(k == 0 ? l(0, 0) * l(0, 0) : norms.smallest_pivot, l(k, k) * l(k, k));
  return norms;
}

/// With it tiles of a weakly correlated field are kept in every precision.
inline constexpr double kSmallAccuracy = 3e-9;

/// The covariance of n points in tiles of `tile`, with a map of precisions.
struct MixedCase {
  CovarianceParameters parameters;
  Matrix<double> points;
  Matrix<double> a;  ///< dense
  Matrix<double> l;  ///< by LAPACK
  CholeskyProblem problem;
  TileScales scales;

  MixedCase(std::int64_t n, std::int64_t tile, double range, const MixedPrecision& asked,
            Element single, int devices = 1, double nugget = 0)
      : parameters{1, range, 0.5, nugget, true},
        points(ordered_points(n, tile, 3)),
        a(exponential_covariance(points, range, nugget)),
        l(dense_factor(a)) {
    problem.n = n;
    problem.tile = tile;
    problem.devices = devices;
    problem.point_dimensions = 2;
    set_map(exact_norms(a, l, tile), asked, single);
  }
  MixedCase(std::int64_t n, std::int64_t tile, Element single, int devices = 1)
      : MixedCase(n, tile, 0.02, {.accuracy = kSmallAccuracy}, single, devices) {}

  void set_map(TileNorms norms, const MixedPrecision& asked, Element single) {
    problem.formats = {std::make_shared<const PrecisionMap>(std::move(norms), asked), single};
    scales = {map().fp16_exponent(), map().fp8_exponent(), map().inverse_exponent(),
              map().sum_exponent()};
  }
  [[nodiscard]] const PrecisionMap& map() const { return *problem.formats.map; }

  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable blocks = tile_cholesky(problem, {}).blocks;
    std::vector<std::shared_ptr<FamilyMemory>> families;
    for (int f = 0; f < blocks.families(); ++f) {
      families.push_back(std::make_shared<FamilyMemory>(
          blocks, f,
          f == kPointsFamily ? source_of_view(points.data.data(), points.ld(), false)
                             : BlockSource()));
    }
    return std::make_unique<MemoryStore>(blocks, std::move(families));
  }
  /// Points into this.
  [[nodiscard]] IssueOptions run_options() const {
    IssueOptions options;
    options.values = {{covariance.name, &parameters}, {gemm.name, &scales},
                      {syrk.name, &scales},           {convert.name, &scales},
                      {invert_factor.name, &scales},  {multiply_inverse.name, &scales}};
    return options;
  }
  /// L in a store after a run, as numbers; zero above the diagonal and where tiles are left out.
  [[nodiscard]] Matrix<double> lower_in(MemoryStore& store) const {
    Matrix<double> m(problem.n, problem.n);
    store.blocks().for_each(kMatrixFamily, [&](BlockId id) {
      if (store.blocks().bytes(id) == 0) return;
      const BlockExtent x = store.blocks().extent(id);
      std::vector<std::byte> bytes(static_cast<std::size_t>(store.blocks().bytes(id)));
      store.read(id, bytes.data());
      const BlockView view{
          bytes.data(), x.rows, x.cols, x.rows, x.row, x.col, store.blocks().element(id)};
      for (std::int64_t j = 0; j < x.cols; ++j) {
        for (std::int64_t i = id.row() == id.col() ? j : 0; i < x.rows; ++i)
          m(x.row + i, x.col + j) = element_at(view, scales, i, j);
      }
    });
    return m;
  }
};

/// A map that mixes precisions at random, as no field does, of a covariance with so much nugget
/// that it stays positive definite.
inline MixedCase scrambled_case(std::int64_t n, std::int64_t tile, Element single) {
  MixedCase c(n, tile, 0.05, {.accuracy = 1e-6}, single, 1, 3);
  TileNorms norms = exact_norms(c.a, c.l, tile);
  for (std::int64_t j = 0; j < norms.tiles; ++j) {
    for (std::int64_t i = j; i < norms.tiles; ++i) {
      const std::size_t at = norms.at(i, j);
      norms.factor[at] = i == j ? 1 : std::exp2(-22 + 34 * random_uniform(8, at));
    }
  }
  c.set_map(std::move(norms), {.accuracy = 1e-6}, single);
  return c;
}

}  // namespace strata::test
