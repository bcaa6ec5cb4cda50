// Small eigenvalue problems.
//
// Method: Hessenberg matrices by the QR algorithm with implicit double shifts (Francis 1961; Golub
// and Van Loan, Matrix Computations, 7.5), eigenvalues alone, deflated at subdiagonal elements that
// are negligible beside their neighbours. Symmetric matrices by Householder's reduction to
// tridiagonal form and QL with implicit shifts (same book, 8.3). LAPACK would do; but it comes from
// the host's BLAS, whose sums have the order of the processor, and the history of convergence would
// depend on that.

#include "krylov/small_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace strata {
namespace {

using Reals = SquareMatrix<double>;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// A reflection I − τ·v·vᵀ of three (or two) elements that takes (x, y, z) to a multiple of e₁.
struct Reflection {
  double v[3] = {1, 0, 0};
  double tau = 0;

  Reflection(double x, double y, double z) {
    const double scale = std::max({std::abs(x), std::abs(y), std::abs(z)});
    if (scale == 0 || (y == 0 && z == 0)) return;
    x /= scale;
    y /= scale;
    z /= scale;
    const double length = std::copysign(std::sqrt(x * x + y * y + z * z), x);
    v[1] = y / (x + length);
    v[2] = z / (x + length);
    tau = (x + length) / length;
  }
};

class FrancisQr {
 public:
  explicit FrancisQr(Reals h) : h_(std::move(h)) {
    for (std::int64_t j = 0; j < h_.n; ++j) {
      for (std::int64_t i = j + 2; i < h_.n; ++i) h_(i, j) = 0;
      for (std::int64_t i = 0; i < std::min(j + 2, h_.n); ++i) norm_ += std::abs(h_(i, j));
    }
  }

  std::vector<std::complex<double>> run() {
    if (!std::isfinite(norm_)) return {};
    std::int64_t end = h_.n;  // rows below are done
    int steps = 0;
    std::int64_t budget = 100 * h_.n;
    while (end > 0) {
      const std::int64_t begin = first_of_block(end);
      if (end - begin <= 2) {
        if (end - begin == 1) values_.emplace_back(h_(begin, begin), 0.0);
        if (end - begin == 2) add_pair(begin);
        end = begin;
        steps = 0;
        continue;
      }
      if (--budget < 0) return {};
      sweep(begin, end, ++steps % 10 == 0);
    }
    return std::move(values_);
  }

 private:
  /// The first row of the unreduced block that ends before `end`.
  std::int64_t first_of_block(std::int64_t end) {
    std::int64_t k = end - 1;
    for (; k > 0; --k) {
      double around = std::abs(h_(k - 1, k - 1)) + std::abs(h_(k, k));
      if (around == 0) around = norm_;
      if (std::abs(h_(k, k - 1)) <= kEpsilon * around) {
        h_(k, k - 1) = 0;
        break;
      }
    }
    return k;
  }

  void add_pair(std::int64_t k) {
    const double half = (h_(k, k) - h_(k + 1, k + 1)) / 2;
    const double mean = (h_(k, k) + h_(k + 1, k + 1)) / 2;
    const double square = half * half + h_(k, k + 1) * h_(k + 1, k);
    const double root = std::sqrt(std::abs(square));
    if (square < 0) {
      values_.emplace_back(mean, root);
      values_.emplace_back(mean, -root);
      return;
    }
    values_.emplace_back(mean + root, 0.0);
    values_.emplace_back(mean - root, 0.0);
  }

  /// One implicit double step on rows begin … end − 1; `exceptional`: with shifts of no meaning,
  /// against cycles.
  void sweep(std::int64_t begin, std::int64_t end, bool exceptional) {
    const std::int64_t l = end - 1;
    double trace = h_(l - 1, l - 1) + h_(l, l);
    double determinant = h_(l - 1, l - 1) * h_(l, l) - h_(l - 1, l) * h_(l, l - 1);
    if (exceptional) {
      const double s = std::abs(h_(l, l - 1)) + std::abs(h_(l - 1, l - 2));
      trace = 1.5 * s;
      determinant = s * s;
    }
    const std::int64_t b = begin;
    double x = h_(b, b) * h_(b, b) + h_(b, b + 1) * h_(b + 1, b) - trace * h_(b, b) + determinant;
    double y = h_(b + 1, b) * (h_(b, b) + h_(b + 1, b + 1) - trace);
    double z = h_(b + 1, b) * h_(b + 2, b + 1);
    for (std::int64_t k = begin; k < l; ++k) {
      const int size = k + 2 < end ? 3 : 2;
      reflect(Reflection(x, y, size == 3 ? z : 0.0), k, size, std::max(begin, k - 1), begin, end);
      x = h_(k + 1, k);
      y = k + 2 < end ? h_(k + 2, k) : 0.0;
      z = k + 3 < end ? h_(k + 3, k) : 0.0;
    }
  }

  /// From both sides, on rows and columns k … k + size − 1 of the block.
  void reflect(const Reflection& p, std::int64_t k, int size, std::int64_t first_column,
               std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = first_column; j < end; ++j) {
      double sum = 0;
      for (int i = 0; i < size; ++i) sum += p.v[i] * h_(k + i, j);
      for (int i = 0; i < size; ++i) h_(k + i, j) -= p.tau * p.v[i] * sum;
    }
    for (int i = 1; i < size && first_column < k; ++i) h_(k + i, first_column) = 0;
    const std::int64_t last_row = std::min(k + 4, end);
    for (std::int64_t r = begin; r < last_row; ++r) {
      double sum = 0;
      for (int i = 0; i < size; ++i) sum += p.v[i] * h_(r, k + i);
      for (int i = 0; i < size; ++i) h_(r, k + i) -= p.tau * p.v[i] * sum;
    }
  }

  Reals h_;
  double norm_ = 0;
  std::vector<std::complex<double>> values_;
};

/// A = Q·T·Qᵀ, T tridiagonal; q ← Q. off[i] is T(i + 1, i).
void tridiagonalize(Reals& a, Reals& q, std::vector<double>& diagonal, std::vector<double>& off) {
  const std::int64_t n = a.n;
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < j; ++i) a(i, j) = a(j, i);
  q = Reals::identity(n);
  std::vector<double> v(static_cast<std::size_t>(n));
  std::vector<double> w(static_cast<std::size_t>(n));
  const auto at = [](std::vector<double>& x, std::int64_t i) -> double& {
    return x[static_cast<std::size_t>(i)];
  };
  for (std::int64_t k = 0; k + 2 < n; ++k) {
    double square = 0;
    for (std::int64_t i = k + 2; i < n; ++i) square += a(i, k) * a(i, k);
    if (square == 0) continue;
    const double head = a(k + 1, k);
    const double length = std::copysign(std::sqrt(head * head + square), head);
    const double tau = (head + length) / length;
    for (std::int64_t i = k + 1; i < n; ++i) at(v, i) = i == k + 1 ? 1 : a(i, k) / (head + length);
    double dot = 0;
    for (std::int64_t i = k + 1; i < n; ++i) {
      double sum = 0;
      for (std::int64_t j = k + 1; j < n; ++j) sum += a(j, i) * at(v, j);
      at(w, i) = tau * sum;
      dot += at(w, i) * at(v, i);
    }
    for (std::int64_t i = k + 1; i < n; ++i) at(w, i) -= tau / 2 * dot * at(v, i);
    for (std::int64_t j = k + 1; j < n; ++j)
      for (std::int64_t i = k + 1; i < n; ++i) a(i, j) -= at(v, i) * at(w, j) + at(w, i) * at(v, j);
    a(k + 1, k) = a(k, k + 1) = -length;
    for (std::int64_t r = 0; r < n; ++r) at(w, r) = 0;
    for (std::int64_t j = k + 1; j < n; ++j)
      for (std::int64_t r = 0; r < n; ++r) at(w, r) += q(r, j) * at(v, j);
    for (std::int64_t j = k + 1; j < n; ++j)
      for (std::int64_t r = 0; r < n; ++r) q(r, j) -= tau * at(w, r) * at(v, j);
  }
  for (std::int64_t i = 0; i < n; ++i) {
    diagonal.push_back(a(i, i));
    off.push_back(i + 1 < n ? a(i + 1, i) : 0.0);
  }
}

/// QL with implicit shifts on a tridiagonal matrix; q ← q·(its rotations). False: no convergence.
bool implicit_ql(std::vector<double>& diagonal, std::vector<double>& off, Reals& q) {
  const std::int64_t n = q.n;
  const auto d = [&](std::int64_t i) -> double& { return diagonal[static_cast<std::size_t>(i)]; };
  const auto e = [&](std::int64_t i) -> double& { return off[static_cast<std::size_t>(i)]; };
  for (std::int64_t l = 0; l < n; ++l) {
    for (int step = 0;; ++step) {
      std::int64_t m = l;
      while (m + 1 < n && std::abs(e(m)) > kEpsilon / 2 * (std::abs(d(m)) + std::abs(d(m + 1))))
        ++m;
      if (m == l) break;
      if (step == 60) return false;
      double g = (d(l + 1) - d(l)) / (2 * e(l));
      double r = std::hypot(g, 1.0);
      g = d(m) - d(l) + e(l) / (g + std::copysign(r, g));
      double s = 1;
      double c = 1;
      double p = 0;
      std::int64_t i = m - 1;
      for (; i >= l; --i) {
        const double f = s * e(i);
        const double b = c * e(i);
        r = std::hypot(f, g);
        e(i + 1) = r;
        if (r == 0) {
          d(i + 1) -= p;
          e(m) = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d(i + 1) - p;
        r = (d(i) - g) * s + 2 * c * b;
        p = s * r;
        d(i + 1) = g + p;
        g = c * r - b;
        for (std::int64_t k = 0; k < n; ++k) {
          const double above = q(k, i + 1);
          q(k, i + 1) = s * q(k, i) + c * above;
          q(k, i) = c * q(k, i) - s * above;
        }
      }
      if (r == 0 && i >= l) continue;
      d(l) -= p;
      e(l) = g;
      e(m) = 0;
    }
  }
  return true;
}

}  // namespace

std::vector<std::complex<double>> hessenberg_eigenvalues(Reals h) {
  return FrancisQr(std::move(h)).run();
}

SymmetricEigen symmetric_eigen(Reals a) {
  SymmetricEigen eigen;
  Reals q;
  std::vector<double> diagonal;
  std::vector<double> off;
  tridiagonalize(a, q, diagonal, off);
  if (!implicit_ql(diagonal, off, q)) return eigen;
  std::vector<std::int64_t> order(diagonal.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    return diagonal[static_cast<std::size_t>(i)] < diagonal[static_cast<std::size_t>(j)];
  });
  eigen.vectors = Reals(q.n);
  for (std::int64_t j = 0; j < q.n; ++j) {
    const std::int64_t from = order[static_cast<std::size_t>(j)];
    eigen.values.push_back(diagonal[static_cast<std::size_t>(from)]);
    for (std::int64_t i = 0; i < q.n; ++i) eigen.vectors(i, j) = q(i, from);
  }
  return eigen;
}

}  // namespace strata
