#include "bench/sparse_matrices.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <system_error>
#include <vector>

#include "base/check.hpp"
#include "base/random.hpp"

namespace strata::bench {
namespace {

constexpr int kCorners = 8;
constexpr int kUnknowns = 3 * kCorners;
constexpr double kPoisson = 0.3;
constexpr std::int64_t kRowsMax = std::numeric_limits<std::int32_t>::max();

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

/// p × q × r points, x first.
struct Grid {
  std::int64_t p = 0;
  std::int64_t q = 0;
  std::int64_t r = 0;

  /// Calls visit(j, axes) for the points j whose coordinates differ by at most 1 from those of i,
  /// ascending, with the number of axes along which they do.
  template <class Visit>
  void visit_around(std::int64_t i, const Visit& visit) const {
    const std::array<std::int64_t, 3> at{i % p, i / p % q, i / (p * q)};
    for (std::int64_t z = std::max<std::int64_t>(at[2] - 1, 0); z <= at[2] + 1 && z < r; ++z) {
      for (std::int64_t y = std::max<std::int64_t>(at[1] - 1, 0); y <= at[1] + 1 && y < q; ++y) {
        for (std::int64_t x = std::max<std::int64_t>(at[0] - 1, 0); x <= at[0] + 1 && x < p; ++x) {
          const std::int64_t axes = (x != at[0]) + (y != at[1]) + (z != at[2]);
          visit(x + p * (y + q * z), axes);
        }
      }
    }
  }
};

/// What two nodes of a grid of cubes have in common.
using NodeBlock = std::array<std::array<double, 3>, 3>;

/// The sum over all cubes that have both nodes, which differ by at most 1 along each axis.
NodeBlock node_block(const ElementMatrix& k, const Grid& nodes, std::int64_t i, std::int64_t j) {
  const auto place = [&](std::int64_t node) {
    return std::array<std::int64_t, 3>{node % nodes.p, node / nodes.p % nodes.q,
                                       node / (nodes.p * nodes.q)};
  };
  const auto at = place(i);
  const auto other = place(j);
  const std::array<std::int64_t, 3> count{nodes.p, nodes.q, nodes.r};
  NodeBlock sum{};
  for (int corner = 0; corner < kCorners; ++corner) {  // of the cube at which node i is
    int across = 0;                                    // its corner at which node j is
    bool fits = true;
    for (int axis = 0; axis < 3; ++axis) {
      const auto d = static_cast<std::size_t>(axis);
      const std::int64_t cube = at[d] - coordinate(corner, axis);
      const std::int64_t of_other = other[d] - cube;
      fits = fits && cube >= 0 && cube + 1 < count[d] && of_other >= 0 && of_other <= 1;
      across |= static_cast<int>(of_other & 1) << axis;
    }
    if (!fits) continue;
    for (std::size_t u = 0; u < 3; ++u) {
      for (std::size_t v = 0; v < 3; ++v)
        sum[u][v] +=
            k[static_cast<std::size_t>(3 * corner) + u][static_cast<std::size_t>(3 * across) + v];
    }
  }
  return sum;
}

/// N of "family:N"; none if the name does not begin with the family.
std::optional<std::int64_t> size_in(const std::string& name, const std::string& family) {
  if (!name.starts_with(family + ":")) return std::nullopt;
  const std::string text = name.substr(family.size() + 1);
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
  require(error == std::errc{} && end == text.data() + text.size() && size >= 1, ErrorKind::misuse,
          "bench", "'{}' is no matrix: {}:N takes a number above 0", name, family);
  return size;
}

}  // namespace

SparseMatrix stencil_matrix(Stencil stencil, std::int64_t side) {
  const std::int64_t depth = stencil == Stencil::points5 ? 1 : side;
  require(side >= 1 && side <= kRowsMax / side && side * side <= kRowsMax / depth,
          ErrorKind::misuse, "bench", "a Laplacian of side {}", side);
  const double diagonal = stencil == Stencil::points5 ? 4 : stencil == Stencil::points7 ? 6 : 26;
  const Grid grid{side, side, depth};
  SparseMatrix a;
  a.rows = a.cols = side * side * depth;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    grid.visit_around(i, [&](std::int64_t j, std::int64_t axes) {
      if (axes > 1 && stencil != Stencil::points27) return;
      a.column.push_back(static_cast<std::int32_t>(j));
      a.value.push_back(j == i ? diagonal : -1);
    });
    a.start.push_back(a.entries());
  }
  return a;
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

SparseMatrix elastic_cube_matrix(std::int64_t side) {
  require(side >= 1 && 3 * side <= kRowsMax / (side + 1) / (side + 1), ErrorKind::misuse, "bench",
          "a cube of {} elements a side", side);
  const ElementMatrix k = element_matrix();
  const Grid nodes{side + 1, side + 1, side + 1};
  const auto moves = [&](std::int64_t node) { return node % nodes.p > 0; };
  const auto unknown = [&](std::int64_t node) {  // the first of three
    return 3 * (node - node / nodes.p - 1);
  };
  SparseMatrix a;
  a.rows = a.cols = 3 * side * nodes.q * nodes.r;
  for (std::int64_t node = 0; node < nodes.p * nodes.q * nodes.r; ++node) {
    if (!moves(node)) continue;
    std::vector<std::int64_t> others;
    std::vector<NodeBlock> blocks;
    nodes.visit_around(node, [&](std::int64_t other, std::int64_t) {
      if (!moves(other)) return;
      others.push_back(other);
      // Sums in the same order on both sides of the diagonal.
      blocks.push_back(node_block(k, nodes, std::max(node, other), std::min(node, other)));
    });
    for (std::size_t u = 0; u < 3; ++u) {
      for (std::size_t b = 0; b < others.size(); ++b) {
        for (std::size_t v = 0; v < 3; ++v) {
          a.column.push_back(static_cast<std::int32_t>(unknown(others[b])) +
                             static_cast<std::int32_t>(v));
          const bool below = others[b] < node || (others[b] == node && v <= u);
          a.value.push_back(below ? blocks[b][u][v] : blocks[b][v][u]);
        }
      }
      a.start.push_back(a.entries());
    }
  }
  return a;
}

std::optional<SparseMatrix> generated_matrix(const std::string& name) {
  if (const auto side = size_in(name, "2d5")) return stencil_matrix(Stencil::points5, *side);
  if (const auto side = size_in(name, "3d7")) return stencil_matrix(Stencil::points7, *side);
  if (const auto side = size_in(name, "3d27")) return stencil_matrix(Stencil::points27, *side);
  if (const auto side = size_in(name, "hex")) return elastic_cube_matrix(*side);
  return std::nullopt;
}

std::vector<std::string> matrix_collection(std::int64_t count) {
  struct Family {
    const char* name;
    std::int64_t least;
    std::int64_t most;
  };
  constexpr std::array<Family, 4> kFamilies{
      {{"2d5", 40, 400}, {"3d7", 8, 30}, {"3d27", 6, 24}, {"hex", 3, 12}}};
  constexpr auto kCount = static_cast<std::int64_t>(kFamilies.size());
  const std::int64_t steps = std::max<std::int64_t>((count + kCount - 1) / kCount - 1, 1);
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < count; ++i) {
    const Family& family = kFamilies[static_cast<std::size_t>(i % kCount)];
    const std::int64_t side = family.least + (family.most - family.least) * (i / kCount) / steps;
    names.push_back(fmt::format("{}:{}", family.name, side));
  }
  return names;
}

SparseMatrix lower_triangle(const SparseMatrix& a) {
  require(a.rows == a.cols, ErrorKind::misuse, "bench", "a matrix of {} rows and {} columns",
          a.rows, a.cols);
  SparseMatrix lower;
  lower.rows = lower.cols = a.rows;
  Entries above;
  bool below = false;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t e = a.start[static_cast<std::size_t>(i)];
         e < a.start[static_cast<std::size_t>(i + 1)]; ++e) {
      const std::int32_t j = a.column[static_cast<std::size_t>(e)];
      const double value = a.value[static_cast<std::size_t>(e)];
      below = below || j < i;
      if (!below && j >= i) above.add(j, i, value);
      if (j > i) continue;
      lower.column.push_back(j);
      lower.value.push_back(value);
    }
    lower.start.push_back(lower.entries());
  }
  if (!below) return above.matrix(a.rows);
  if (lower.entries() == a.entries()) return lower;
  const Asymmetry found = find_asymmetry(a, 1e-12);
  require(!found.found, ErrorKind::numerical, "bench",
          "the matrix is not symmetric: ({}, {}) is {} and ({}, {}) is {}", found.row, found.col,
          found.value, found.col, found.row, found.transposed);
  return lower;
}

SparseMatrix rescaled(const SparseMatrix& lower, std::uint64_t seed) {
  SparseMatrix a = lower;
  const auto scale = [seed](std::int64_t i) {
    return 0.95 + 0.1 * random_uniform(seed, static_cast<std::uint64_t>(i));
  };
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t e = a.start[static_cast<std::size_t>(i)];
         e < a.start[static_cast<std::size_t>(i + 1)]; ++e)
      a.value[static_cast<std::size_t>(e)] *=
          scale(i) * scale(a.column[static_cast<std::size_t>(e)]);
  }
  return a;
}

}  // namespace strata::bench
