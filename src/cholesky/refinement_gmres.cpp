// Restarted GMRES with a preconditioner, for several right-hand sides.
//
// Method: iterative refinement whose corrections are computed by GMRES(m) (Saad, Schultz, "GMRES",
// SIAM J. Sci. Stat. Comput. 7, 1986; as refinement with a factor of low precision: Carson, Higham,
// "Accelerating the solution of linear systems by iterative refinement in three precisions", SIAM
// J. Sci. Comput. 40, 2018). Each column has its own basis, by classical Gram-Schmidt done twice,
// which keeps it orthogonal to working accuracy (Giraud, Langou, Rozložník, van den Eshof,
// "Rounding error analysis of the classical Gram-Schmidt orthogonalization process", Numer. Math.
// 101, 2005), and its own rotations. A cycle stops a column at a reduction of 1e-8: what the
// recurrence says further down is no longer true of the residual, which is computed anew before the
// next cycle.

#include <algorithm>
#include <cmath>

#include "base/constants.hpp"
#include "cholesky/refined_columns.hpp"

namespace strata {
namespace {

constexpr double kReduction = 1e-8;  // of a cycle

class Gmres {
 public:
  Gmres(RefinedColumns& columns, bool left) : columns_(columns), left_(left) {}

  void run() {
    while (begin_cycle()) {
      for (int k = 0; k < columns_.options().restart && any_live(); ++k) step(k);
      end_cycle();
    }
  }

 private:
  struct Lane {
    bool live = false;                     // its basis grows
    double target = 0;                     // for its residual in this cycle
    std::vector<std::vector<double>> h{};  // columns of the triangle that the rotations leave
    std::vector<double> cosines{};
    std::vector<double> sines{};
    std::vector<double> g{};  // rotated right-hand side; the last one is the residual's norm
  };

  [[nodiscard]] Lane& lane(std::int64_t j) { return lanes_[static_cast<std::size_t>(j)]; }
  [[nodiscard]] bool any_live() const {
    return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& l) { return l.live; });
  }

  /// The first vector of each basis; false if no column goes on.
  bool begin_cycle() {
    const std::int64_t n = columns_.n();
    lanes_.assign(static_cast<std::size_t>(columns_.count()), Lane());
    basis_.assign(1, DenseBlock(n, columns_.count()));
    DenseBlock& first = basis_.front();
    bool any = false;
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      if (!columns_.goes_on(j)) continue;
      any = true;
      std::copy_n(columns_.residual(j), n, first.column(j));
    }
    if (any && left_) columns_.precondition(first);
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      if (!columns_.goes_on(j)) continue;
      const double norm = std::sqrt(dot(n, first.column(j), first.column(j)));
      if (!(norm > 0) || !std::isfinite(norm)) {
        columns_.stop(j, RefinementStop::failed);
        first.clear_column(j);
        continue;
      }
      Lane& l = lane(j);
      l.live = true;
      l.g = {norm};
      l.target = kReduction * norm;
      if (!left_) {
        const double scale = columns_.scale(j, norm_inf(n, columns_.x(j)));
        l.target = std::max(l.target, 0.5 * columns_.options().tolerance * scale);
      }
      scale_column(first.column(j), 1 / norm);
    }
    return any;
  }

  void scale_column(double* x, double factor) const {
    std::transform(x, x + columns_.n(), x, [=](double element) { return factor * element; });
  }

  /// One more vector of each basis that grows.
  void step(int k) {
    DenseBlock from = basis_[static_cast<std::size_t>(k)];
    DenseBlock& next = basis_.emplace_back(columns_.n(), columns_.count());
    if (!left_) columns_.precondition(from);
    columns_.apply(from, next);
    if (left_) columns_.precondition(next);
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      if (lane(j).live) extend(j, k);
      if (!lane(j).live) next.clear_column(j);
    }
  }

  void extend(std::int64_t j, int k) {
    const std::int64_t n = columns_.n();
    Lane& l = lane(j);
    double* w = basis_.back().column(j);
    std::vector<double> h(static_cast<std::size_t>(k) + 1);
    for (int pass = 0; pass < 2; ++pass) {
      std::vector<double> more;
      for (int i = 0; i <= k; ++i) more.push_back(dot(n, basis_[at(i)].column(j), w));
      for (int i = 0; i <= k; ++i) {
        add_scaled(n, -more[at(i)], basis_[at(i)].column(j), w);
        h[at(i)] += more[at(i)];
      }
    }
    const double below = std::sqrt(dot(n, w, w));
    double size = below;
    for (const double element : h) size = std::hypot(size, element);
    ++columns_[j].steps;
    if (!std::isfinite(size) || size == 0) {  // those before it are still worth something
      l.live = false;
      if (k == 0) columns_.stop(j, RefinementStop::failed);
      return;
    }
    const bool closed = below <= kUnitRoundoff * size;  // the basis spans an invariant space
    rotate(l, h, closed ? 0 : below);
    l.live = !closed && std::abs(l.g.back()) > l.target &&
             columns_[j].steps < columns_.options().steps_max;
    if (l.live) scale_column(w, 1 / below);
  }

  /// Givens rotations keep the least squares problem triangular.
  static void rotate(Lane& l, std::vector<double> h, double below) {
    const std::size_t k = h.size() - 1;
    for (std::size_t i = 0; i < k; ++i) {
      const double upper = h[i];
      h[i] = l.cosines[i] * upper + l.sines[i] * h[i + 1];
      h[i + 1] = l.cosines[i] * h[i + 1] - l.sines[i] * upper;
    }
    const double length = std::hypot(h[k], below);
    l.cosines.push_back(length == 0 ? 1 : h[k] / length);
    l.sines.push_back(length == 0 ? 0 : below / length);
    h[k] = length;
    l.g.push_back(-l.sines[k] * l.g[k]);
    l.g[k] *= l.cosines[k];
    l.h.push_back(std::move(h));
  }

  /// Takes the combination of each basis with the least residual.
  void end_cycle() {
    DenseBlock change(columns_.n(), columns_.count());
    std::vector<bool> which(lanes_.size());
    for (std::int64_t j = 0; j < columns_.count(); ++j) {
      which[static_cast<std::size_t>(j)] = columns_.goes_on(j);
      const Lane& l = lane(j);
      std::vector<double> y(l.g.begin(), l.g.begin() + std::ssize(l.h));
      for (std::size_t i = y.size(); i-- > 0;) {
        y[i] = l.h[i][i] == 0 ? 0 : y[i] / l.h[i][i];
        for (std::size_t row = 0; row < i; ++row) y[row] -= l.h[i][row] * y[i];
      }
      for (std::size_t i = 0; i < y.size(); ++i)
        add_scaled(columns_.n(), y[i], basis_[i].column(j), change.column(j));
    }
    if (std::find(which.begin(), which.end(), true) == which.end()) return;
    if (!left_) columns_.precondition(change);
    (void)columns_.measure(which, change, true);
  }

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  RefinedColumns& columns_;
  bool left_;
  std::vector<Lane> lanes_;
  std::vector<DenseBlock> basis_;
};

}  // namespace

void refine_by_gmres(RefinedColumns& columns, bool left) { Gmres(columns, left).run(); }

}  // namespace strata
