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

#include "cholesky/tile_factor.hpp"
#include "device/device_host.hpp"
#include "kernels/tables.hpp"

namespace strata {
namespace {

/// Points of a tile whose pairs estimate the norm of a tile of A.
constexpr std::int64_t kPairPoints = 32;

/// What estimates of norms below the diagonal are multiplied by. Without it 94 of 1225 tiles of
/// 102,400 points with weak correlation (range 0.026 in the unit square, H200, 2026-11-22) had to
/// be raised and everything done again.
constexpr double kMargin = 1.3;

/// Of n points in tiles of `tile`, `per_tile` of each: all tiles but the last have as many.
std::vector<std::int64_t> chosen_rows(std::int64_t n, std::int64_t tile, std::int64_t per_tile) {
  std::vector<std::int64_t> rows;
  for (std::int64_t first = 0; first < n; first += tile) {
    const std::int64_t size = std::min(tile, n - first);
    const std::int64_t count = std::min(per_tile, size);
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

/// Squares of the norms of the tiles of A, from `per_tile` points of each; and that of A.
void estimate_matrix(MatrixView<const double> points, std::int64_t tile,
                     const CovarianceParameters& parameters, TileNorms& norms) {
  const std::int64_t n = points.rows;
  const std::vector<std::int64_t> rows = chosen_rows(n, tile, std::min(kPairPoints, tile));
  const std::vector<double> some = coordinates_of(points, rows);
  const auto count = std::ssize(rows);
  std::vector<std::int64_t> first;  // of each tile, among those that were chosen
  for (std::int64_t i = 0; i < count; ++i) {
    if (i == 0 ||
        rows[static_cast<std::size_t>(i)] / tile != rows[static_cast<std::size_t>(i - 1)] / tile)
      first.push_back(i);
  }
  first.push_back(count);
  const auto device = host_backend().make_device(0, std::int64_t{1} << 20);
  const auto queue = device->make_queue(QueuePriority::normal);
  const KernelFunction kernel = host_kernels().find(covariance.name, Elements(3, Element::fp64));
  std::vector<double> values;
  double total = 0;
  for (std::int64_t j = 0; j < norms.tiles; ++j) {
    for (std::int64_t i = j; i < norms.tiles; ++i) {
      const auto at = [&](std::int64_t t) { return first[static_cast<std::size_t>(t)]; };
      const std::int64_t m = at(i + 1) - at(i);
      const std::int64_t k = at(j + 1) - at(j);
      values.resize(static_cast<std::size_t>(m * k));
      const auto coordinates = [&](std::int64_t t, std::int64_t size) {
        return BlockView{const_cast<double*>(some.data()) + at(t), size, points.cols, count, at(t)};
      };
      const BlockView views[] = {
          {values.data(), m, k, m, at(i), at(j)}, coordinates(i, m), coordinates(j, k)};
      kernel(*queue, {views, 3}, {.variant = 0, .values = &parameters});
      queue->synchronize();
      double square = 0;
      double diagonal = 0;
      for (std::int64_t e = 0; e < m * k; ++e) {
        const double value = values[static_cast<std::size_t>(e)];
        (i == j && e % (m + 1) == 0 ? diagonal : square) += value * value;
      }
      const auto size = [&](std::int64_t t) {
        return static_cast<double>(std::min(tile, n - t * tile));
      };
      const auto md = static_cast<double>(m);
      const double pairs = i == j ? (md > 1 ? size(i) * (size(i) - 1) / (md * (md - 1)) : 0)
                                  : size(i) * size(j) / (md * static_cast<double>(k));
      square = square * pairs + diagonal * size(i) / md;
      norms.matrix[norms.at(i, j)] = std::sqrt(square);
      total += i == j ? square : 2 * square;
    }
  }
  norms.frobenius = std::sqrt(total);
}

}  // namespace

Pilot fly_pilot(MatrixView<const double> points, std::int64_t tile, std::int64_t per_tile,
                const CovarianceParameters& parameters, const Options& options,
                std::shared_ptr<DeviceSet> devices) {
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t n = points.rows;
  Pilot pilot;
  pilot.norms.tiles = (n + tile - 1) / tile;
  pilot.norms.tile = tile;
  const auto count = static_cast<std::size_t>(pilot.norms.tiles * (pilot.norms.tiles + 1) / 2);
  pilot.norms.matrix.resize(count);
  estimate_matrix(points, tile, parameters, pilot.norms);

  const std::vector<std::int64_t> rows = chosen_rows(n, tile, per_tile);
  const std::vector<double> some = coordinates_of(points, rows);
  CholeskyProblem problem;
  problem.n = std::ssize(rows);
  problem.point_dimensions = points.cols;
  Options run = options;
  run.mixed = {};
  run.path = CholeskyPath::automatic;
  run.tile = std::min(per_tile, tile);
  run.host_pinning = HostPinning::never;
  TileFactor factor(problem, run, std::move(devices));
  pilot.factor = factor.factor_covariance(some.data(), parameters);
  if (pilot.factor.ok) {
    const std::vector<TileNorm> kept = factor.kept_norms();
    for (std::int64_t j = 0; j < pilot.norms.tiles; ++j) {
      for (std::int64_t i = j; i < pilot.norms.tiles; ++i) {
        const auto size = static_cast<double>(std::min(tile, n - i * tile));
        const double taken = std::min(static_cast<double>(per_tile), size);
        const TileNorm& norm = kept[pilot.norms.at(i, j)];
        const double margin = i == j ? 1 : kMargin;
        pilot.norms.factor.push_back(margin * std::sqrt(norm.square * size / taken));
        pilot.norms.largest.push_back(norm.largest);
      }
    }
    pilot.norms.smallest_pivot = factor.smallest_pivot();
  }
  pilot.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return pilot;
}

}  // namespace strata
