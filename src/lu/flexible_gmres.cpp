// Method: Saad, "A flexible inner-outer preconditioned GMRES algorithm" (SIAM J. Sci. Comput. 14,
// 1993). What the preconditioner made of each basis vector is kept, and y is combined of that: the
// recurrence then holds for products with S itself, whatever the preconditioner lost. Triangular
// solves in fp32 with a factor whose condition is near 1/u lose that much that a recurrence with
// one and the same M⁻¹ (src/cholesky/refinement_gmres.cpp) ends at a larger residual than it says.
// The basis by classical Gram-Schmidt done twice, the triangle by Givens rotations with real
// cosines.

#include "lu/flexible_gmres.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "base/index.hpp"
#include "scalar/complex.hpp"

namespace strata {
namespace {

template <class W>
class FlexibleGmres {
 public:
  FlexibleGmres(const GmresOperators<W>& operators, MatrixView<const W> v, double wanted)
      : operators_(operators), n_(v.rows), lanes_(at(v.cols)) {
    Block& first = basis_.emplace_back(n_, v.cols);
    for (std::int64_t j = 0; j < v.cols; ++j) {
      Lane& l = lanes_[at(j)];
      const double norm = norm_of(v.column(j));
      l.live = norm > 0 && std::isfinite(norm);
      l.broken = !std::isfinite(norm);
      l.start = norm;
      l.target = wanted * norm;
      l.g = {W{norm}};
      for (std::int64_t i = 0; i < n_ && l.live; ++i) first.column(j)[i] = v(i, j) / norm;
    }
  }

  GmresSolution<W> solve(int iterations_max) {
    for (int k = 0; k < iterations_max && any_live(); ++k) step(k);
    GmresSolution<W> out{Block(n_, std::ssize(lanes_)), {}, 0};
    for (std::int64_t j = 0; j < std::ssize(lanes_); ++j) {
      combine(lanes_[at(j)], j, out.y.column(j));
      out.reduction.push_back(reduction_of(lanes_[at(j)]));
      out.iterations += static_cast<int>(std::ssize(lanes_[at(j)].h));
    }
    return out;
  }

 private:
  using Block = DenseBlockOf<W>;
  struct Lane {
    bool live = false;    // its basis grows
    bool broken = false;  // a number that is not finite came before any gain
    double start = 0;
    double target = 0;
    std::vector<std::vector<W>> h{};  // columns of the triangle that the rotations leave
    std::vector<double> cosines{};
    std::vector<W> sines{};
    std::vector<W> g{};  // rotated right-hand side; the last one is the residual
  };

  [[nodiscard]] double norm_of(const W* x) const {
    double most = norm_inf(n_, x);
    if (!(most > 0) || !std::isfinite(most)) return most;
    double sum = 0;
    for (std::int64_t i = 0; i < n_; ++i) sum += square_of(W{x[i] / most});
    return most * std::sqrt(sum);
  }
  [[nodiscard]] W inner(const W* x, const W* y) const {
    W sum{0};
    for (std::int64_t i = 0; i < n_; ++i) sum += product_of(conjugate(x[i]), y[i]);
    return sum;
  }
  void add(const W& factor, const W* x, W* y) const {
    for (std::int64_t i = 0; i < n_; ++i) y[i] += product_of(factor, x[i]);
  }
  [[nodiscard]] bool any_live() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.live; });
  }
  [[nodiscard]] static double reduction_of(const Lane& l) {
    if (l.broken) return std::numeric_limits<double>::quiet_NaN();
    return l.start > 0 ? std::abs(l.g.back()) / l.start : 0;
  }

  void step(int k) {
    made_.push_back(operators_.precondition(std::as_const(basis_[at(k)]).view()));
    basis_.push_back(operators_.apply(std::as_const(made_.back()).view()));
    for (std::int64_t j = 0; j < std::ssize(lanes_); ++j) {
      if (lanes_[at(j)].live) extend(lanes_[at(j)], j, k);
      if (!lanes_[at(j)].live) basis_.back().clear_column(j);
    }
  }

  void extend(Lane& l, std::int64_t j, int k) {
    W* w = basis_.back().column(j);
    std::vector<W> h(at(k + 1));
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<W> more;
      for (int i = 0; i <= k; ++i) more.push_back(inner(basis_[at(i)].column(j), w));
      for (int i = 0; i <= k; ++i) {
        add(-more[at(i)], basis_[at(i)].column(j), w);
        h[at(i)] += more[at(i)];
      }
    }
    const double below = norm_of(w);
    double size = below;
    for (const W& element : h) size = std::hypot(size, std::abs(element));
    if (!std::isfinite(size) || size == 0) {  // what came before it is still worth something
      l.live = false;
      l.broken = k == 0;
      return;
    }
    const bool closed = below <= std::numeric_limits<double>::epsilon() / 2 * size;
    rotate(l, std::move(h), closed ? 0 : below);
    l.live = !closed && std::abs(l.g.back()) > l.target;
    for (std::int64_t i = 0; i < n_ && l.live; ++i) w[i] /= below;
  }

  /// [c s; −s̄ c] with a real c takes (h, below) to a multiple of (1, 0).
  static void rotate(Lane& l, std::vector<W> h, double below) {
    const std::size_t k = h.size() - 1;
    h.push_back(W{below});
    for (std::size_t i = 0; i < k; ++i) {
      const W upper = h[i];
      h[i] = l.cosines[i] * upper + product_of(l.sines[i], h[i + 1]);
      h[i + 1] = l.cosines[i] * h[i + 1] - product_of(conjugate(l.sines[i]), upper);
    }
    const double size = std::abs(h[k]);
    const double length = std::hypot(size, below);
    const W phase = size > 0 ? W{h[k] / size} : W{1};
    l.cosines.push_back(length > 0 ? size / length : 1);
    l.sines.push_back(length > 0 ? W{phase * (below / length)} : W{0});
    h[k] = phase * length;
    h.pop_back();
    l.g.push_back(-product_of(conjugate(l.sines[k]), l.g[k]));
    l.g[k] *= l.cosines[k];
    l.h.push_back(std::move(h));
  }

  /// Least squares by the triangle, and y = Σ of what the preconditioner made.
  void combine(const Lane& l, std::int64_t j, W* y) const {
    if (l.broken) return;
    std::vector<W> factors(l.g.begin(), l.g.begin() + std::ssize(l.h));
    for (std::size_t i = factors.size(); i-- > 0;) {
      factors[i] = l.h[i][i] == W{0} ? W{0} : DivisionBy<W>(l.h[i][i])(factors[i]);
      for (std::size_t row = 0; row < i; ++row) factors[row] -= product_of(l.h[i][row], factors[i]);
    }
    for (std::size_t i = 0; i < factors.size(); ++i) add(factors[i], made_[i].column(j), y);
  }

  const GmresOperators<W>& operators_;
  std::int64_t n_;
  std::vector<Lane> lanes_;
  std::vector<Block> basis_;
  std::vector<Block> made_;
};

}  // namespace

template <class W>
GmresSolution<W> flexible_gmres(const GmresOperators<W>& operators, MatrixView<const W> v,
                                double wanted, int iterations_max) {
  return FlexibleGmres<W>(operators, v, wanted).solve(iterations_max);
}

template GmresSolution<double> flexible_gmres(const GmresOperators<double>&,
                                              MatrixView<const double>, double, int);
template GmresSolution<std::complex<double>> flexible_gmres(
    const GmresOperators<std::complex<double>>&, MatrixView<const std::complex<double>>, double,
    int);

}  // namespace strata
