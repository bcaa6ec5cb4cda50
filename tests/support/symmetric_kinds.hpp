#pragma once
// Symmetric matrices of the kinds that go wrong: penalties, units, near-dependent rows, clusters,
// integers of known rank, and the ends of the range.
//
// Contract: a matrix is a function of its seed and of the precision whose range it has to fit; its
// kind is seed % kSymmetricKinds. Both triangles are equal to the bit. Most are positive definite
// but for rounding; some are singular or, by little, indefinite.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "strata/element.hpp"

namespace strata::test {

/// An n × n symmetric matrix, column-major.
struct Symmetric {
  std::string kind;
  std::int64_t n = 0;
  std::vector<double> full;

  Symmetric() = default;
  /// The element of the lower triangle, i >= j, stands for both.
  Symmetric(std::int64_t order, const std::function<double(std::int64_t, std::int64_t)>& element)
      : n(order), full(static_cast<std::size_t>(order * order)) {
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = j; i < n; ++i) set(i, j, element(i, j));
  }
  [[nodiscard]] double operator()(std::int64_t i, std::int64_t j) const {
    return full[static_cast<std::size_t>(i + j * n)];
  }
  void set(std::int64_t i, std::int64_t j, double value) {
    full[static_cast<std::size_t>(i + j * n)] = full[static_cast<std::size_t>(j + i * n)] = value;
  }
  void add(std::int64_t i, std::int64_t j, double value) { set(i, j, (*this)(i, j) + value); }
};

/// Random numbers of one matrix.
struct Draw {
  std::uint64_t seed = 0;

  [[nodiscard]] double uniform(std::int64_t which) const {
    return random_uniform(seed, static_cast<std::uint64_t>(which));
  }
  [[nodiscard]] double normal(std::int64_t which) const {
    return random_normal(seed, static_cast<std::uint64_t>(which));
  }
  [[nodiscard]] std::int64_t integer(std::int64_t which, std::int64_t below) const {
    return static_cast<std::int64_t>(uniform(which) * static_cast<double>(below));
  }
  /// 10 to a power from `low` to `high`.
  [[nodiscard]] double size(std::int64_t which, double low, double high) const {
    return std::pow(10.0, low + (high - low) * uniform(which));
  }
};

/// Σ_k x(i, k)·x(j, k) over k below `terms`.
inline Symmetric gram_matrix(std::int64_t n, std::int64_t terms,
                             const std::function<double(std::int64_t, std::int64_t)>& x) {
  return {n, [&](auto i, auto j) {
            double sum = 0;
            for (std::int64_t k = 0; k < terms; ++k) sum += x(i, k) * x(j, k);
            return sum;
          }};
}

inline Symmetric path_matrix(std::int64_t n) {
  return {n, [](auto i, auto j) { return i == j ? 2.0 : i == j + 1 ? -1.0 : 0.0; }};
}

inline Symmetric well_conditioned(std::int64_t n, const Draw& draw) {
  Symmetric a = gram_matrix(n, n, [&](auto i, auto k) { return draw.normal(1000 + i + 100 * k); });
  for (std::int64_t i = 0; i < n; ++i) a.add(i, i, static_cast<double>(n));
  return a;
}

/// Few elements beside a diagonal that dominates.
inline Symmetric sparse_dominant(std::int64_t n, const Draw& draw) {
  Symmetric a(n, [&](auto i, auto j) {
    const bool kept = i > j && draw.uniform(2000 + i + 100 * j) < 0.15;
    return kept ? 2 * draw.uniform(20'000 + i + 100 * j) - 1 : 0.0;
  });
  for (std::int64_t i = 0; i < n; ++i) {
    double sum = 0.01;
    for (std::int64_t j = 0; j < n; ++j) sum += std::abs(a(i, j));
    a.set(i, i, sum);
  }
  return a;
}

/// A graph's Laplacian, of weights 1 or random ones; it is connected.
inline Symmetric graph_matrix(std::int64_t n, const Draw& draw) {
  Symmetric a(n, [&](auto i, auto j) {
    if (i == j || (i != j + 1 && draw.uniform(3000 + i + 100 * j) > 0.1)) return 0.0;
    return draw.seed % 2 == 0 ? -1.0 : -draw.uniform(30'000 + i + 100 * j) - 0x1p-20;
  });
  for (std::int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum -= i == j ? 0 : a(i, j);
    a.set(j, j, sum);
  }
  return a;
}

/// A matrix with these eigenvalues, but for rounding: three random reflections of a diagonal.
inline Symmetric with_eigenvalues(std::int64_t n, const Draw& draw,
                                  const std::function<double(std::int64_t)>& eigenvalue) {
  Symmetric a(n, [&](auto i, auto j) { return i == j ? eigenvalue(i) : 0.0; });
  for (std::int64_t k = 0; k < 3; ++k) {
    std::vector<double> v(static_cast<std::size_t>(n));
    std::vector<double> product(v.size());
    double square = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      v[static_cast<std::size_t>(i)] = draw.normal(4000 + i + 100 * k);
      square += v[static_cast<std::size_t>(i)] * v[static_cast<std::size_t>(i)];
    }
    double inner = 0;
    for (std::size_t i = 0; i < v.size(); ++i) {
      for (std::size_t j = 0; j < v.size(); ++j)
        product[i] += a.full[i + j * v.size()] * v[j] * (2 / square);
      inner += product[i] * v[i] / square;
    }
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = j; i < n; ++i) {
        const auto r = static_cast<std::size_t>(i);
        const auto c = static_cast<std::size_t>(j);
        a.add(i, j, 2 * inner * v[r] * v[c] - product[r] * v[c] - v[r] * product[c]);
      }
    }
  }
  return a;
}

/// Penalties on diagonal elements, or on the differences of two unknowns, which makes twins.
inline Symmetric penalized(std::int64_t n, const Draw& draw, bool of_differences) {
  Symmetric a = draw.seed % 2 == 0 ? path_matrix(n) : sparse_dominant(n, draw);
  for (std::int64_t k = 0; k < 1 + draw.integer(2, 3); ++k) {
    const std::int64_t i = draw.integer(10 + k, n);
    const std::int64_t j = draw.integer(20 + k, n);
    const double penalty = draw.size(30 + k, of_differences ? 4 : 8, 20);
    a.add(i, i, penalty);
    if (!of_differences || i == j) continue;
    a.add(j, j, penalty);
    a.add(i, j, -penalty);
  }
  return a;
}

/// Rows that hold their own value, in 1, beside others in 1e9.
inline Symmetric dirichlet_matrix(std::int64_t n, const Draw& draw) {
  const Symmetric inner = draw.seed % 2 == 0 ? path_matrix(n) : sparse_dominant(n, draw);
  const auto held = [&](std::int64_t i) { return draw.uniform(5000 + i) < 0.3; };
  return {n, [&](auto i, auto j) {
            if (held(i) || held(j)) return i == j ? 1.0 : 0.0;
            return 1e9 * inner(i, j);
          }};
}

/// The covariance of points on a line, most of which have a twin nearby.
inline Symmetric twin_covariance(std::int64_t n, const Draw& draw) {
  const double apart = draw.size(2, -16, -1);
  const auto point = [&](std::int64_t i) {
    return draw.uniform(6000 + i / 2) + (i % 2 == 1 ? apart : 0.0);
  };
  const bool smooth = draw.uniform(3) < 0.3;
  return {n, [&](auto i, auto j) {
            const double d = std::abs(point(i) - point(j)) / 0.2;
            return std::exp(smooth ? -d * d : -d);
          }};
}

/// Gram matrices of integers: of rank `rank`, exactly.
inline Symmetric integer_matrix(std::int64_t n, std::int64_t rank, const Draw& draw) {
  return gram_matrix(n, rank, [&](auto i, auto k) {
    return static_cast<double>(draw.integer(7000 + i + 100 * k, 17) - 8);
  });
}

/// A path's matrix less almost, or a little more than, its smallest eigenvalue.
inline Symmetric barely_definite(std::int64_t n, const Draw& draw) {
  const double s = std::sin(1.5707963267948966 / static_cast<double>(n + 1));
  const double off = draw.size(2, -17, -1) * (draw.uniform(3) < 0.7 ? 1 : -1);
  Symmetric a = path_matrix(n);
  for (std::int64_t i = 0; i < n; ++i) a.add(i, i, -4 * s * s * (1 - off));
  return a;
}

inline constexpr std::uint64_t kSymmetricKinds = 16;

/// Those that have no range in mind.
inline Symmetric symmetric_in_range(std::uint64_t kind, std::int64_t n, const Draw& draw) {
  const auto scaled = [n](Symmetric a, const std::function<double(std::int64_t)>& unit) {
    return Symmetric(n, [&](auto i, auto j) { return a(i, j) * unit(i) * unit(j); });
  };
  const double share = 1 / static_cast<double>(n);
  switch (kind) {
    case 0: return well_conditioned(n, draw);
    case 1: return penalized(n, draw, false);
    case 2: return penalized(n, draw, true);
    case 3:
      return scaled(well_conditioned(n, draw), [&](auto i) { return draw.size(100 + i, -8, 8); });
    case 4: {  // graded
      const double digits = 16 * draw.uniform(2);
      return scaled(
          Symmetric(n, [](auto i, auto j) { return i == j       ? 1.0
                                                   : i == j + 1 ? 0.3
                                                                : 0.0; }),
          [&](auto i) { return std::pow(10.0, -digits * share * static_cast<double>(i)); });
    }
    case 5: return {n, [](auto i, auto j) { return 1 / static_cast<double>(i + j + 1); }};
    case 6: {  // Cauchy
      const auto x = [&](auto i) { return draw.uniform(200 + i) + 1e-3; };
      return {n, [&](auto i, auto j) { return 1 / (x(i) + x(j)); }};
    }
    case 7:  // Vandermonde
      return gram_matrix(n, n + 5, [&](auto i, auto k) {
        return std::pow(draw.uniform(300 + k), static_cast<double>(i));
      });
    case 8: return dirichlet_matrix(n, draw);
    case 9: {  // a graph that is grounded weakly
      Symmetric a = graph_matrix(n, draw);
      a.add(draw.integer(2, n), draw.integer(2, n), draw.size(3, -17, 0));
      return a;
    }
    case 10: {  // near singular
      const double digits = 18 * draw.uniform(2);
      return with_eigenvalues(n, draw, [&](auto i) {
        return std::pow(10.0, -digits * static_cast<double>(i) * share);
      });
    }
    case 11: {  // clusters
      const double width = draw.size(2, -16, -6);
      const double low = draw.size(3, -12, 0);
      return with_eigenvalues(n, draw, [&](auto i) {
        return (i % 2 == 0 ? 1 : low) * (1 + width * static_cast<double>(i));
      });
    }
    case 12: return integer_matrix(n, 1 + draw.integer(2, n + n / 2), draw);
    case 13: return twin_covariance(n, draw);
    default: return barely_definite(n, draw);
  }
}

inline const char* symmetric_kind(std::uint64_t kind) {
  constexpr const char* kNames[kSymmetricKinds] = {"well-conditioned",
                                                   "penalties",
                                                   "penalties of differences",
                                                   "units",
                                                   "graded",
                                                   "Hilbert",
                                                   "Cauchy",
                                                   "Vandermonde",
                                                   "held",
                                                   "graph",
                                                   "near singular",
                                                   "clusters",
                                                   "integers",
                                                   "twins",
                                                   "barely definite",
                                                   "end of the range"};
  return kNames[kind];
}

/// The matrix of a seed, of order 1 … n_max <= 40, with elements in the range of `element`.
inline Symmetric symmetric_matrix(std::uint64_t seed, std::int64_t n_max = 40,
                                  Element element = Element::fp64) {
  const std::uint64_t kind = seed % kSymmetricKinds;
  const Draw draw{random_bits(91, seed)};
  const std::int64_t n = 1 + draw.integer(0, n_max);
  Symmetric a = symmetric_in_range(kind + 1 < kSymmetricKinds ? kind : draw.seed % 14, n, draw);
  a.kind = std::string(symmetric_kind(kind)) + ", seed " + std::to_string(seed) + ", order " +
           std::to_string(n);
  if (kind + 1 < kSymmetricKinds) return a;
  // Nothing overflows; of the smallest some elements are subnormal.
  const int top = element == Element::fp64 ? 1023 : 127;
  const int bottom = element == Element::fp64 ? -1074 : -149;
  double largest = 0;
  for (const double x : a.full) largest = std::max(largest, std::abs(x));
  const auto range = draw.integer(5, top / 3);
  const auto target =
      static_cast<int>(draw.uniform(4) < 0.5 ? top - 1 - range / 8 : bottom + 2 + range);
  const int exponent = target - std::ilogb(largest);
  for (double& x : a.full) x = std::ldexp(x, exponent);
  return a;
}

/// A right-hand side for it: random, of a solution of ones, one element, or zeros; of any size.
inline std::vector<double> right_hand_side(const Symmetric& a, std::uint64_t seed) {
  const Draw draw{random_bits(92, seed)};
  std::vector<double> b(static_cast<std::size_t>(a.n));
  const std::int64_t what = draw.integer(0, 8);
  for (std::int64_t i = 0; i < a.n; ++i) {
    double& x = b[static_cast<std::size_t>(i)];
    if (what < 4) x = draw.normal(10 + i) * (what == 0 ? draw.size(100 + i, -8, 8) : 1.0);
    for (std::int64_t j = 0; j < a.n && what > 4; ++j) x += a(i, j);
  }
  if (what == 4) b[static_cast<std::size_t>(draw.integer(1, a.n))] = 1;
  if (what == 5 || std::any_of(b.begin(), b.end(), [](double x) { return !std::isfinite(x); }))
    std::fill(b.begin(), b.end(), 0.0);
  return b;
}

/// D·M·D, M of a condition of about 10, with units D over so many decades: a solution that is well
/// known row by row, beside which backward errors see nothing of its elements in large units.
inline Symmetric in_wide_units(std::uint64_t seed, std::int64_t n, double decades) {
  std::vector<double> unit;
  for (std::int64_t i = 0; i < n; ++i)
    unit.push_back(
        std::pow(10.0, decades * (random_uniform(seed, static_cast<std::uint64_t>(i)) - 0.5)));
  return {n, [&](std::int64_t i, std::int64_t j) {
            const double element =
                i == j ? 2.0 : random_normal(seed + 1, static_cast<std::uint64_t>(i + j * n)) / n;
            return element * unit[static_cast<std::size_t>(i)] * unit[static_cast<std::size_t>(j)];
          }};
}

/// Moler's: L·Lᵀ for a unit lower triangle of −1, integers; its condition grows like 4^n.
inline Symmetric moler(std::int64_t n) {
  return {n, [](std::int64_t i, std::int64_t j) {
            return static_cast<double>(i == j ? i + 1 : std::min(i, j) - 1);
          }};
}

/// A·1, rounded.
inline std::vector<double> row_sums(const Symmetric& a) {
  std::vector<double> b(static_cast<std::size_t>(a.n));
  for (std::int64_t i = 0; i < a.n; ++i)
    for (std::int64_t j = 0; j < a.n; ++j) b[static_cast<std::size_t>(i)] += a(i, j);
  return b;
}

}  // namespace strata::test
