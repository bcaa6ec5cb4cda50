#pragma once
// ChebyshevFilter: a polynomial of a symmetric matrix that tells one end of its spectrum apart.
//
// Contract: p(λ) = T_degree((λ − center)/half_width). From the edge, center + half_width, to the
// far end, center − half_width, |p| is at most 1. Beyond the edge p grows from 1 on and is
// monotone, so that the eigenvectors of p(A) with the largest eigenvalues are those of A with the
// eigenvalues farthest beyond the edge, in the same order. A negative half width has the smallest
// eigenvalues beyond the edge.

#include <cstdint>
#include <utility>
#include <vector>

#include "strata/sparse_matrix.hpp"

namespace strata {

struct ChebyshevFilter {
  std::int64_t degree = 2;  ///< at least 2
  double center = 0;
  double half_width = 1;

  [[nodiscard]] double edge() const noexcept { return center + half_width; }
  /// p(λ).
  [[nodiscard]] double value(double eigenvalue) const;
  /// The λ beyond the edge with p(λ) = value; the edge where the value is at most 1.
  [[nodiscard]] double eigenvalue(double value) const;
  /// A bound of ‖A·v − λ·v‖ from ‖p(A)·v − p(λ)·v‖, p(λ) = value, v of length 1. A chord of p from
  /// λ to another eigenvalue is at least as steep as the one to the far end at the height 1,
  /// because p is convex beyond the edge. Never more than the way to the far end.
  [[nodiscard]] double residual(double value, double of_polynomial) const;
};

/// With p(outermost) = growth, or the growth that `degree_max` allows. `outermost` lies beyond the
/// edge as seen from the far end.
[[nodiscard]] ChebyshevFilter make_filter(double outermost, double edge, double far_end,
                                          double growth, std::int64_t degree_max);

/// Eigenvalues at about one place of the spectrum.
struct SpectralNode {
  double value = 0;
  double count = 0;  ///< how many there are, by estimate
};

/// Nodes are in the order of the spectrum, the end that is sought first. Where about `count`
/// eigenvalues lie before: between nodes by interpolation, each having one half of its own before
/// it; behind the last one as if their density went on, 8 times as far at most.
[[nodiscard]] double place_of_count(const std::vector<SpectralNode>& nodes, double count);

/// Bounds of the spectrum of a symmetric matrix, by Gershgorin's discs.
[[nodiscard]] std::pair<double, double> spectrum_bounds(const SparseMatrix& a);

}  // namespace strata
