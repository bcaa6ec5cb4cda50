// Method: of s points in each tile of b, L_ij has s rows whose squared lengths say how much of a
// point's variance tile j explains beyond the tiles before it. That depends little on how densely
// tile j is sampled, so ‖L_ij‖_F grows like √(b/s) only. Tiles of A are sums over pairs of points,
// estimated from pairs of fewer points still.

#include "cholesky/pilot.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "base/work_crew.hpp"
#include "cholesky/cholesky_candidates.hpp"
#include "cholesky/covariance_entries.hpp"
#include "cholesky/tile_factor.hpp"
#include "dense/dense_block.hpp"
#include "device/device_host.hpp"

namespace strata {
namespace {

/// Points of a tile whose pairs estimate the norm of a tile of A.
constexpr std::int64_t kPairPoints = 32;

/// What estimates of norms below the diagonal are multiplied by. Without it 94 of 1225 tiles of
/// 102,400 points with weak correlation (range 0.026 in the unit square, H200, 2026-11-22) had to
/// be raised and everything done again.
constexpr double kMargin = 1.3;

/// Chooses rows out of n points in tiles of `tile`: `of_first` of the first tile, `per_tile` of
/// each other.
std::vector<std::int64_t> chosen_rows(std::int64_t n, std::int64_t tile, std::int64_t per_tile,
                                      std::int64_t of_first) {
  std::vector<std::int64_t> rows;
  for (std::int64_t first = 0; first < n; first += tile) {
    const std::int64_t size = std::min(tile, n - first);
    const std::int64_t count = std::min(first == 0 ? of_first : per_tile, size);
    for (std::int64_t i = 0; i < count; ++i)
      rows.push_back(first + (2 * i + 1) * size / (2 * count));
  }
  return rows;
}

std::vector<double> coordinates_of(MatrixView<const double> points,
                                   const std::vector<std::int64_t>& rows) {
  std::vector<double> out;
  for (std::int64_t c = 0; c < points.cols; ++c) {
    for (const std::int64_t row : rows) out.push_back(points(row, c));
  }
  return out;
}

/// Where the chosen rows of each tile begin, and their number behind the last.
std::vector<std::int64_t> first_of_tiles(const std::vector<std::int64_t>& rows, std::int64_t tile) {
  std::vector<std::int64_t> first;
  for (std::int64_t k = 0; k < std::ssize(rows); ++k) {
    if (rows[static_cast<std::size_t>(k)] / tile == std::ssize(first)) first.push_back(k);
  }
  first.push_back(std::ssize(rows));
  return first;
}

/// Squares of the norms of the tiles of A, from `per_tile` points of each; and that of A.
void estimate_matrix(MatrixView<const double> points, std::int64_t tile,
                     const CovarianceParameters& parameters, TileNorms& norms) {
  const std::int64_t n = points.rows;
  const std::vector<std::int64_t> rows = chosen_rows(n, tile, kPairPoints, kPairPoints);
  const std::vector<double> some = coordinates_of(points, rows);
  const std::vector<std::int64_t> first = first_of_tiles(rows, tile);
  const auto count = std::ssize(rows);
  const auto at = [&](std::int64_t t) { return first[static_cast<std::size_t>(t)]; };
  const auto size = [&](std::int64_t t) {
    return static_cast<double>(std::min(tile, n - t * tile));
  };
  const auto coordinates = [&](std::int64_t t) {
    return MatrixView<const double>{some.data() + at(t), at(t + 1) - at(t), points.cols, count};
  };
  const auto estimate_tile = [&](CovarianceEntries& entries, std::vector<double>& values,
                                 std::int64_t i, std::int64_t j) {
    const std::int64_t m = at(i + 1) - at(i);
    const std::int64_t k = at(j + 1) - at(j);
    values.resize(static_cast<std::size_t>(m * k));
    entries.fill(coordinates(i), at(i), coordinates(j), at(j), {values.data(), m, k, m});
    double square = 0;
    double diagonal = 0;
    for (std::int64_t e = 0; e < m * k; ++e) {
      const double value = values[static_cast<std::size_t>(e)];
      (i == j && e % (m + 1) == 0 ? diagonal : square) += value * value;
    }
    const auto md = static_cast<double>(m);
    const double pairs = i == j ? (md > 1 ? size(i) * (size(i) - 1) / (md * (md - 1)) : 0)
                                : size(i) * size(j) / (md * static_cast<double>(k));
    norms.matrix[norms.at(i, j)] = std::sqrt(square * pairs + diagonal * size(i) / md);
  };
  WorkCrew crew(describe_host().compute_queues - 1);
  crew.share(norms.tiles, [&](std::int64_t j) {
    CovarianceEntries entries(parameters);
    std::vector<double> values;
    for (std::int64_t i = j; i < norms.tiles; ++i) estimate_tile(entries, values, i, j);
  });
  double total = 0;
  for (std::int64_t j = 0; j < norms.tiles; ++j) {
    for (std::int64_t i = j; i < norms.tiles; ++i) {
      const double norm = norms.matrix[norms.at(i, j)];
      total += (i == j ? 1 : 2) * norm * norm;
    }
  }
  norms.frobenius = std::sqrt(total);
}

/// Norms of the tiles of A, and what else does not need a factor.
TileNorms norms_of_matrix(MatrixView<const double> points, std::int64_t tile,
                          const CovarianceParameters& parameters) {
  TileNorms norms;
  norms.tiles = (points.rows + tile - 1) / tile;
  norms.tile = tile;
  norms.matrix.resize(static_cast<std::size_t>(norms.tiles * (norms.tiles + 1) / 2));
  estimate_matrix(points, tile, parameters, norms);
  return norms;
}

/// A factor of the covariance of these rows.
TileFactor factor_of_rows(const std::vector<double>& points, std::int64_t dimensions,
                          std::int64_t tile, CholeskyOptions options,
                          std::shared_ptr<DeviceSet> devices) {
  CholeskyProblem problem;
  problem.tile = tile;
  problem.devices = devices->count();
  problem.n = std::ssize(points) / dimensions;
  problem.point_dimensions = dimensions;
  // No tile of it has to come home: norms are told where it lies.
  problem.formats.kept = true;
  problem.formats.kept = factor_stays(problem, devices->machine());
  options.path = CholeskyPath::automatic;
  options.tile = tile;
  options.run.host_pinning = HostPinning::never;
  return TileFactor(problem, options, std::move(devices));
}

/// Rows `first` … `last` − 1 of `columns`, one after the other in memory.
void gather_rows(const DenseBlock& columns, std::int64_t first, std::int64_t last,
                 std::vector<double>& rows) {
  const std::int64_t length = columns.cols();
  rows.resize(static_cast<std::size_t>((last - first) * length));
  for (std::int64_t c = 0; c < length; ++c) {
    for (std::int64_t a = first; a < last; ++a)
      rows[static_cast<std::size_t>((a - first) * length + c)] = columns.column(c)[a];
  }
}

/// Norms of tile (i, j), `rows` of which the whole has `size`, each of `length` elements.
void set_tile_of_scout(const std::vector<double>& rows, std::int64_t length, double size,
                       std::size_t at, bool diagonal, TileNorms& norms) {
  const std::int64_t count = std::ssize(rows) / length;
  double square = 0;  // of the products of rows
  double trace = 0;
  double largest = 0;
  for (std::int64_t a = 0; a < count; ++a) {
    for (std::int64_t b = 0; b <= a; ++b) {
      const double product = dot(length, rows.data() + a * length, rows.data() + b * length);
      square += (a == b ? 1 : 2) * product * product;
      if (a == b) trace += product;
    }
  }
  for (const double element : rows) largest = std::max(largest, std::abs(element));
  const double margin = diagonal ? 1 : kMargin;
  norms.factor[at] = margin * std::sqrt(trace * size / static_cast<double>(count));
  norms.largest[at] = largest;
  norms.coherence[at] = trace > 0 ? std::sqrt(square) / trace : 1;
}

/// Norms of the tiles of L from a factor of some rows, the first of each tile at `first`.
void scout_factor(TileFactor& factor, const std::vector<std::int64_t>& first, std::int64_t n,
                  TileNorms& norms) {
  const auto at = [&](std::int64_t t) { return first[static_cast<std::size_t>(t)]; };
  norms.factor.resize(norms.matrix.size());
  norms.largest.resize(norms.matrix.size());
  norms.coherence.resize(norms.matrix.size());
  WorkCrew crew(describe_host().compute_queues - 1);
  for (std::int64_t j = 0; j < norms.tiles; ++j) {
    DenseBlock columns(first.back(), at(j + 1) - at(j));
    factor.copy_columns(at(j), columns.view());
    crew.share(norms.tiles - j, [&](std::int64_t k) {
      const std::int64_t i = j + k;
      thread_local std::vector<double> rows;
      gather_rows(columns, at(i), at(i + 1), rows);
      const auto size = static_cast<double>(std::min(norms.tile, n - i * norms.tile));
      set_tile_of_scout(rows, columns.cols(), size, norms.at(i, j), i == j, norms);
    });
  }
}

}  // namespace

Pilot fly_pilot(MatrixView<const double> points, std::int64_t tile, std::int64_t per_tile,
                const CovarianceParameters& parameters, const CholeskyOptions& options,
                std::shared_ptr<DeviceSet> devices) {
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t n = points.rows;
  Pilot pilot;
  pilot.norms = norms_of_matrix(points, tile, parameters);
  const std::vector<double> some = coordinates_of(points, chosen_rows(n, tile, per_tile, per_tile));
  // Points of a tile are too few to keep a GPU busy: some tiles of the whole make one.
  constexpr std::int64_t kTilesOfOne = 4;
  const std::int64_t together = std::clamp<std::int64_t>(tile / per_tile, 1, kTilesOfOne);
  TileFactor factor =
      factor_of_rows(some, points.cols, together * per_tile, options, std::move(devices));
  pilot.factor = factor.factor_covariance(some.data(), parameters);
  if (pilot.factor.ok) {
    const std::vector<TileNorm> kept = factor.block_norms(per_tile);
    pilot.norms.smallest_pivot = std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < pilot.norms.tiles; ++j) {
      for (std::int64_t i = j; i < pilot.norms.tiles; ++i) {
        const auto size = static_cast<double>(std::min(tile, n - i * tile));
        const double taken = std::min(static_cast<double>(per_tile), size);
        const TileNorm& norm = kept[pilot.norms.at(i, j)];
        const double margin = i == j ? 1 : kMargin;
        pilot.norms.factor.push_back(margin * std::sqrt(norm.square * size / taken));
        pilot.norms.largest.push_back(norm.largest);
        if (i == j)
          pilot.norms.smallest_pivot = std::min(pilot.norms.smallest_pivot, norm.least_pivot);
      }
    }
  }
  factor.let_go();
  pilot.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return pilot;
}

Scout fly_scout(MatrixView<const double> points, std::int64_t tile,
                const CovarianceParameters& parameters) {
  constexpr std::int64_t kPoints = 32;
  // What a coarse tile explains depends on how many points it has.
  constexpr std::int64_t kPointsOfFirst = 512;
  constexpr std::int64_t kTile = 256;
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t n = points.rows;
  Scout scout;
  scout.parameters = parameters;
  scout.norms = norms_of_matrix(points, tile, parameters);
  const std::vector<std::int64_t> rows = chosen_rows(n, tile, kPoints, kPointsOfFirst);
  const std::vector<double> some = coordinates_of(points, rows);
  CholeskyOptions on_host;
  on_host.run.devices = "host";
  on_host.run.device_memory_bytes = std::int64_t{1} << 28;
  TileFactor factor = factor_of_rows(some, points.cols, std::min(kTile, std::ssize(rows)), on_host,
                                     std::make_shared<DeviceSet>(on_host.run));
  scout.factor = factor.factor_covariance(some.data(), parameters);
  if (scout.factor.ok) {
    scout_factor(factor, first_of_tiles(rows, tile), n, scout.norms);
    scout.norms.smallest_pivot = factor.smallest_pivot();
  }
  scout.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return scout;
}

}  // namespace strata
