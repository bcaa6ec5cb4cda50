#include "bench/sparse_matrices.hpp"

#include <array>
#include <cmath>
#include <vector>

#include "base/check.hpp"

namespace strata::bench {
namespace {

constexpr int kCorners = 8;
constexpr int kUnknowns = 3 * kCorners;
constexpr double kPoisson = 0.3;

using ElementMatrix = std::array<std::array<double, kUnknowns>, kUnknowns>;

struct Entries {
  std::vector<std::int64_t> row, col;
  std::vector<double> value;

  void add(std::int64_t i, std::int64_t j, double v) {
    row.push_back(i);
    col.push_back(j);
    value.push_back(v);
  }
  [[nodiscard]] SparseMatrix matrix(std::int64_t n) const {
    return sparse_from_entries(n, n, row, col, value);
  }
};

/// Corner c is at (c & 1, c >> 1 & 1, c >> 2).
int coordinate(int corner, int axis) { return corner >> axis & 1; }

/// Derivatives of the trilinear shape functions on the unit cube.
std::array<std::array<double, 3>, kCorners> gradients(const std::array<double, 3>& at) {
  std::array<std::array<double, 3>, kCorners> result{};
  for (int c = 0; c < kCorners; ++c) {
    for (int axis = 0; axis < 3; ++axis) {
      double value = 1;
      for (int k = 0; k < 3; ++k) {
        const double x = at[static_cast<std::size_t>(k)];
        const bool far = coordinate(c, k) == 1;
        value *= k == axis ? (far ? 1.0 : -1.0) : (far ? x : 1 - x);
      }
      result[static_cast<std::size_t>(c)][static_cast<std::size_t>(axis)] = value;
    }
  }
  return result;
}

/// ∫ λ·∂_i N_a·∂_j N_b + μ·(∂_j N_a·∂_i N_b + δ_ij ∇N_a·∇N_b), λ and μ Lamé's constants: the weak
/// form of linear elasticity for displacements along i at corner a and j at corner b.
ElementMatrix element_matrix() {
  const double lambda = kPoisson / ((1 + kPoisson) * (1 - 2 * kPoisson));
  const double mu = 1 / (2 * (1 + kPoisson));
  const double low = 0.5 - 0.5 / std::sqrt(3.0);
  ElementMatrix k{};
  for (int point = 0; point < kCorners; ++point) {
    std::array<double, 3> at{};
    for (int axis = 0; axis < 3; ++axis)
      at[static_cast<std::size_t>(axis)] = coordinate(point, axis) == 1 ? 1 - low : low;
    const auto g = gradients(at);
    for (std::size_t u = 0; u < kUnknowns; ++u) {
      for (std::size_t v = 0; v < kUnknowns; ++v) {
        const auto& a = g[u / 3];
        const auto& b = g[v / 3];
        const std::size_t i = u % 3;
        const std::size_t j = v % 3;
        double value = lambda * a[i] * b[j] + mu * a[j] * b[i];
        if (i == j) value += mu * (a[0] * b[0] + a[1] * b[1] + a[2] * b[2]);
        k[u][v] += value / kCorners;
      }
    }
  }
  return k;
}

}  // namespace

SparseMatrix laplacian_matrix(std::int64_t side) {
  require(side >= 1, ErrorKind::misuse, "bench", "a Laplacian of side {}", side);
  Entries a;
  const std::array<std::int64_t, 3> stride{1, side, side * side};
  for (std::int64_t i = 0; i < side * side * side; ++i) {
    a.add(i, i, 6);
    for (const std::int64_t d : stride) {
      const std::int64_t place = i / d % side;
      if (place > 0) a.add(i, i - d, -1);
      if (place + 1 < side) a.add(i, i + d, -1);
    }
  }
  return a.matrix(side * side * side);
}

SparseMatrix bar_matrix(std::int64_t p, std::int64_t q, std::int64_t r, bool fixed) {
  require(p >= 2 && q >= 2 && r >= 2, ErrorKind::misuse, "bench",
          "a bar of {} x {} x {} nodes has no elements", p, q, r);
  const ElementMatrix k = element_matrix();
  const std::int64_t still = fixed ? 3 * p * q : 0;  // unknowns of the plane z = 0
  Entries a;
  for (std::int64_t i = 0; i < still; ++i) a.add(i, i, 1);
  for (std::int64_t e = 0; e < (p - 1) * (q - 1) * (r - 1); ++e) {
    const std::int64_t x = e % (p - 1);
    const std::int64_t y = e / (p - 1) % (q - 1);
    const std::int64_t z = e / ((p - 1) * (q - 1));
    std::array<std::int64_t, kUnknowns> unknown{};
    for (int c = 0; c < kCorners; ++c) {
      const std::int64_t node =
          x + coordinate(c, 0) + p * (y + coordinate(c, 1) + q * (z + coordinate(c, 2)));
      for (int axis = 0; axis < 3; ++axis)
        unknown[static_cast<std::size_t>(3 * c + axis)] = 3 * node + axis;
    }
    for (std::size_t u = 0; u < kUnknowns; ++u) {
      for (std::size_t v = 0; v < kUnknowns; ++v) {
        if (unknown[u] >= still && unknown[v] >= still) a.add(unknown[u], unknown[v], k[u][v]);
      }
    }
  }
  return a.matrix(3 * p * q * r);
}

}  // namespace strata::bench
