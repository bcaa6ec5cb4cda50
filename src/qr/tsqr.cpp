// TSQR: Householder QR of blocks of rows, and of their triangles up a tree.
//
// Method: tsqr_passes.hpp. Q is orthonormal to rounding for any V, with two readings and one
// writing of it. Why it is not the automatic method: a column takes several passes over a block in
// fast memory, one after the other, where a Gram matrix takes one; and R says of dependent columns
// no more than rounding left of them.
// As the last resort of the automatic method (run_reflections()): columns that are known to depend
// on others, or are near them, take their directions out of Q, by a small factor above its tree.
// ‖v_j − Q·r_j‖ is measured by k random combinations of rows, ω·V before and ω·Q behind. The square
// of what k of them see of a vector is k times that of its length, on average, and by χ² below 1 −
// 2·√(14/k) of that once in a million times (Laurent, Massart, "Adaptive estimation of a quadratic
// functional by model selection", 2000, lemma 1); of 32 below a quarter.
// Where nothing is measured, the errors are bounded. A column passes j + 1 reflections on each
// level of panels. What one of them rounds is told beside the length of what it is applied to. It
// is a sum of k + 5 roundings, twice (v·(τ·vᵀa), ‖v‖²·τ = 2), what the length of x is off by, in v
// and τ, and a few more. In all that is no more than √(9·(k + 5) + 80) units where signs are
// independent. V + E is then exactly Q₀·R with Q₀ orthonormal, so the condition needs E alone. A
// column shorter than 2^-960 is scaled first: products of its elements would underflow.

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/tall/sketch.hpp"
#include "qr/methods.hpp"
#include "qr/narrowed_factor.hpp"
#include "qr/tsqr_passes.hpp"

namespace strata {
namespace {

using Gram = SquareMatrix<DoubleDouble>;

/// Orthogonality that was not measured: n reflections of a few roundings each, once for every level
/// of the tree (Higham, Accuracy and Stability, 19.3), and at most log₂(m/n) + 2 levels of panels
/// within blocks.
template <class T>
double bound_of(const TallProblem<T>& p) {
  const auto columns = static_cast<double>(p.n());
  const auto blocks = static_cast<double>(triangles_of(p.m(), p.n()) + 1) / 2;
  const double levels = 2 + std::log2(static_cast<double>(p.m()) / columns) +
                        (p.options().method == QrMethod::tsqr_flat ? blocks : 0);
  return 8 * columns * levels * Limits<double>::kUnit + 2.1 * columns * Limits<T>::kUnit;
}

/// How many panels an element passes within a block of rows.
std::int64_t levels_of_block(std::int64_t rows, std::int64_t n) {
  std::int64_t levels = 1;
  std::int64_t height = householder_panel_rows(n);
  while (rows > height) {
    rows = (rows + height - 1) / height * n;
    height = householder_stack(n) * n;
    ++levels;
  }
  return levels;
}

/// What the triangle of V may be off by, E of the method above: of the last column, beside its
/// length, and ‖E‖_F of unit columns.
struct TriangleError {
  double column = 0;
  double whole = 0;
};
template <class T>
TriangleError error_of_triangle(const TallProblem<T>& p, TreeShape shape) {
  constexpr double kDeviations = 8;
  const std::int64_t n = p.n();
  const TriangleTree tree((triangles_of(p.m(), n) + 1) / 2, shape);
  const int height = tree.nodes().empty() ? 0 : tree.nodes().back().level;
  const std::int64_t panels =
      levels_of_block(std::min(p.m(), tsqr_block_rows(n)), n) + height * levels_of_block(2 * n, n);
  const double chain =
      5 + static_cast<double>(householder_panel_rows(n)) / static_cast<double>(kHouseholderLanes);
  const double one = std::sqrt(9 * chain + 80) * Limits<double>::kUnit;
  const auto columns = static_cast<double>(n);
  const auto levels = static_cast<double>(panels);
  // Squares add up: j + 1 reflections a level of column j.
  return {kDeviations * one * std::sqrt(levels * columns),
          kDeviations * one * std::sqrt(levels * columns * (columns + 1) / 2)};
}

/// R of V·diag(powers), as its tree leaves it, signs and all. What is not finite in V is not in R
/// either; V is as it was, but for these.
struct Triangle {
  Gram r;
  std::vector<double> powers;
};
template <class T>
Gram finite_triangle_of(TallProblem<T>& p, TreeShape shape) {
  const SquareMatrix<double> top = p.runner().triangle(shape);
  Gram r(p.n());
  for (std::int64_t j = 0; j < p.n(); ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      if (!(std::abs(top(i, j)) <= static_cast<double>(std::numeric_limits<T>::max())))
        p.complain_of_elements_or_length(j);
      r(i, j) = DoubleDouble(top(i, j));
    }
  }
  return r;
}

std::vector<double> lengths_of(const Gram& r) {
  std::vector<double> lengths;
  for (std::int64_t j = 0; j < r.n; ++j) {
    double length = 0;
    for (std::int64_t i = 0; i <= j; ++i) length = std::hypot(length, r(i, j).hi);
    lengths.push_back(length);
  }
  return lengths;
}

template <class T>
Triangle triangle_of(TallProblem<T>& p, TreeShape shape) {
  Gram r = finite_triangle_of(p, shape);
  std::vector<double> powers = p.lengthen_short_columns(lengths_of(r), Limits<double>::kLengthMin);
  if (std::ranges::any_of(powers, [](double power) { return power != 1; }))
    r = finite_triangle_of(p, shape);
  return {std::move(r), std::move(powers)};
}

template <class T>
void conclude(TallProblem<T>& p, TreeShape shape) {
  using Wide = typename Limits<T>::Wide;
  const auto columns = static_cast<double>(p.n());
  p.info().measured = p.options().verify;
  p.info().orthogonality =
      p.options().verify
          ? distance_from_identity(widened(p.runner().template gram<Wide>(p.scales())), {})
          : bound_of(p);
  p.info().ok =
      !p.options().verify || p.info().orthogonality <= Limits<T>::kPromise * std::sqrt(columns);
  // Q is as far from Q₀ as its own reflections round, and R is rounded for the caller.
  const TriangleError error = error_of_triangle(p, shape);
  p.tell_residual(error.column + bound_of(p) + Limits<T>::kUnit,
                  error.whole * p.inverse_of_triangle());
  QrStep step{std::string(to_string(p.options().method)), false, false,
              condition_of(p.r(), {}).estimate};
  if (p.info().measured) step.orthogonality = p.info().orthogonality;
  p.note_step(std::move(step), {});
}

/// Ω·V·diag(d) of Gaussian sketches, 32 rows or more; one after the other, each 2n × n.
template <class T>
std::vector<double> probes_of(TallProblem<T>& p, const std::vector<double>& d) {
  constexpr std::int64_t kRows = 32;
  std::vector<double> rows;
  for (std::uint32_t k = 0; 2 * p.n() * k < kRows; ++k) {
    const std::uint32_t seed = (p.options().seed + k) % (kSketchSeedMax + 1);
    const std::vector<double> s = p.runner().sketch(sketch_variant(SketchKind::gaussian, seed), d);
    rows.insert(rows.end(), s.begin(), s.end());
  }
  return rows;
}

/// The largest ‖v_j − Q·r_j‖ beside the lengths that the problem was given, or their own, by Ω·V
/// and Ω·Q; d: the scales of V; beside: these lengths of its columns, scaled.
template <class T>
double residual_by_probes(const TallProblem<T>& p, const std::vector<double>& of_v,
                          const std::vector<double>& of_q, const std::vector<double>& d,
                          const std::vector<double>& beside) {
  const std::int64_t n = p.n();
  const std::int64_t rows = 2 * n;
  double worst = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const auto column = static_cast<std::size_t>(j);
    double left = 0;
    for (std::size_t first = 0; first < of_v.size(); first += static_cast<std::size_t>(rows * n)) {
      for (std::int64_t k = 0; k < rows; ++k) {
        const auto at = [&](std::int64_t i) {
          return first + static_cast<std::size_t>(k + i * rows);
        };
        DoubleDouble rest(of_v[at(j)]);
        for (std::int64_t i = 0; i <= j; ++i)
          rest = subtract_product(rest, DoubleDouble(of_q[at(i)]), scaled(p.r()(i, j), d[column]));
        left += rest.hi * rest.hi;
      }
    }
    if (beside[column] > 0) worst = std::max(worst, std::sqrt(left) / beside[column]);
  }
  const double probes = static_cast<double>(of_v.size()) / static_cast<double>(n);
  const double least = std::max(0.25, 1 - 2 * std::sqrt(14 / probes));
  return worst / std::sqrt(least * probes) + Limits<T>::kUnit;  // R is rounded for the caller
}

}  // namespace

template <class T>
void run_tsqr(TallProblem<T>& p) {
  const TreeShape shape =
      p.options().method == QrMethod::tsqr ? TreeShape::binary : TreeShape::flat;
  const Gram r = triangle_of(p, shape).r;
  Gram signs = Gram::identity(p.n());
  for (std::int64_t j = 0; j < p.n(); ++j) {
    if (r(j, j).hi < 0) signs(j, j) = DoubleDouble(-1.0);
  }
  p.runner().orthogonal(rounded_to<double>(signs), shape, !p.options().verify);
  p.accumulate_factor(upper_product(signs, r));
  conclude(p, shape);
}

template <class T>
void run_reflections(TallProblem<T>& p) {
  using Wide = typename Limits<T>::Wide;
  const std::vector<double> unit = p.scales();
  const std::vector<double> of_v = probes_of(p, unit);
  p.restart();
  const auto [r, powers] = triangle_of(p, TreeShape::binary);
  std::vector<double> given = p.lengths();
  for (std::size_t j = 0; j < given.size(); ++j) given[j] *= powers[j];
  const NarrowedFactor narrowed = p.options().rank_tolerance > 0
                                      ? narrowed_factor(r, given, p.near())
                                      : narrowed_factor(r, p.zero_columns());
  std::vector<double> beside = given.empty() ? lengths_of(r) : given;
  for (std::size_t j = 0; j < beside.size(); ++j) beside[j] *= unit[j] / powers[j];
  p.set_zeros(narrowed.dropped);
  p.runner().orthogonal(rounded_to<double>(narrowed.c), TreeShape::binary, true);
  p.accumulate_factor(narrowed.r);
  QrInfo& info = p.info();
  info.measured = p.options().verify;
  info.orthogonality = bound_of(p);
  if (info.measured)
    info.orthogonality = distance_from_identity(widened(p.runner().template gram<Wide>(p.scales())),
                                                p.zero_columns()) +
                         p.rounding_of_sums();
  // A bound of n reflections is far above what they do, and would fail most that are good.
  const double orthogonality = info.measured ? info.orthogonality : 0;
  p.tell_residual(residual_by_probes(p, of_v, probes_of(p, p.scales()), unit, beside));
  info.ok = orthogonality <= p.promise() && info.residual <= p.residual_promise();
  QrStep step{"reflections", false, false, std::numeric_limits<double>::infinity()};
  if (info.measured) step.orthogonality = info.orthogonality;
  p.note_step(std::move(step), {});
}

template void run_tsqr(TallProblem<double>&);
template void run_tsqr(TallProblem<float>&);
template void run_reflections(TallProblem<double>&);
template void run_reflections(TallProblem<float>&);

}  // namespace strata
