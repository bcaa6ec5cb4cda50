// Small eigenvalue problems.
//
// Method: Hessenberg matrices by the QR algorithm with implicit double shifts (Francis 1961; Golub
// and Van Loan, Matrix Computations, 7.5), eigenvalues alone, deflated at subdiagonal elements that
// are negligible beside their neighbours. Symmetric matrices by Householder's reduction to
// tridiagonal form and QL with implicit shifts (same book, 8.3), which needs no vectors: what is
// done to these is noted, and then done to a few rows at a time, by several threads. LAPACK would
// do; but it comes from the host's BLAS, whose sums have the order of the processor, and the
// history of convergence would depend on that.

#include "dense/small_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/backend/run_fused.hpp"
#include "scalar/lanes.hpp"

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

/// The reflections I − τ·v·vᵀ that make a matrix tridiagonal, in their order; v has zeros up to
/// `first` and is stored from there on.
struct TridiagonalReflection {
  std::int64_t first = 0;
  double tau = 0;
  std::vector<double> v;
};

struct Tridiagonal {
  std::vector<double> diagonal, off;  ///< off[i] is T(i + 1, i)
  std::vector<TridiagonalReflection> reflections;
};

/// A = Q·T·Qᵀ, Q the product of the reflections.
Tridiagonal tridiagonalize(Reals a) {
  const std::int64_t n = a.n;
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < j; ++i) a(i, j) = a(j, i);
  Tridiagonal t;
  std::vector<double> w(static_cast<std::size_t>(n));
  for (std::int64_t k = 0; k + 2 < n; ++k) {
    double square = 0;
    for (std::int64_t i = k + 2; i < n; ++i) square += a(i, k) * a(i, k);
    if (square == 0) continue;
    const double head = a(k + 1, k);
    const double length = std::copysign(std::sqrt(head * head + square), head);
    const double tau = (head + length) / length;
    const std::int64_t m = n - k - 1;
    TridiagonalReflection& reflection = t.reflections.emplace_back(
        TridiagonalReflection{k + 1, tau, std::vector<double>(static_cast<std::size_t>(m))});
    double* v = reflection.v.data();
    for (std::int64_t i = 0; i < m; ++i) v[i] = i == 0 ? 1 : a(k + 1 + i, k) / (head + length);
    // A·v by columns, of which the loop makes vectors; A is symmetric to the last bit.
    std::fill_n(w.begin(), m, 0.0);
    for (std::int64_t j = 0; j < m; ++j) {
      const double* column = &a(k + 1, k + 1 + j);
      for (std::int64_t i = 0; i < m; ++i) w[static_cast<std::size_t>(i)] += column[i] * v[j];
    }
    double dot = 0;
    for (std::int64_t i = 0; i < m; ++i) {
      double& x = w[static_cast<std::size_t>(i)];
      x *= tau;
      dot += x * v[i];
    }
    for (std::int64_t i = 0; i < m; ++i) w[static_cast<std::size_t>(i)] -= tau / 2 * dot * v[i];
    for (std::int64_t j = 0; j < m; ++j) {
      double* column = &a(k + 1, k + 1 + j);
      const double wj = w[static_cast<std::size_t>(j)];
      for (std::int64_t i = 0; i < m; ++i)
        column[i] -= v[i] * wj + w[static_cast<std::size_t>(i)] * v[j];
    }
    a(k + 1, k) = a(k, k + 1) = -length;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    t.diagonal.push_back(a(i, i));
    t.off.push_back(i + 1 < n ? a(i + 1, i) : 0.0);
  }
  return t;
}

/// A rotation of the columns `column` and the one behind it.
struct PlaneRotation {
  std::int64_t column;
  double c, s;
};

/// QL with implicit shifts on a tridiagonal matrix, whose diagonal becomes the eigenvalues; the
/// rotations of what its columns are a basis of, in their order. False: no convergence.
bool implicit_ql(Tridiagonal& t, std::vector<PlaneRotation>& rotations) {
  const auto n = std::ssize(t.diagonal);
  const auto d = [&](std::int64_t i) -> double& { return t.diagonal[static_cast<std::size_t>(i)]; };
  const auto e = [&](std::int64_t i) -> double& { return t.off[static_cast<std::size_t>(i)]; };
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
        rotations.push_back({i, c, s});
      }
      if (r == 0 && i >= l) continue;
      d(l) -= p;
      e(l) = g;
      e(m) = 0;
    }
  }
  return true;
}

constexpr int kStripLanes = 4;
constexpr std::int64_t kStripRows = std::int64_t{kStripLanes} * kLanes;

/// A column of a strip of rows.
struct StripColumn {
  Lanes part[kStripLanes];

  [[gnu::always_inline]] static StripColumn load(const double* from) {
    StripColumn column;
#pragma GCC unroll 4
    for (int k = 0; k < kStripLanes; ++k) column.part[k] = Lanes::load(from + k * kLanes);
    return column;
  }
  [[gnu::always_inline]] void store(double* to) const {
#pragma GCC unroll 4
    for (int k = 0; k < kStripLanes; ++k) part[k].store(to + k * kLanes);
  }
  /// this ← this + a·x.
  [[gnu::always_inline]] void add(const Lanes& a, const StripColumn& x) {
#pragma GCC unroll 4
    for (int k = 0; k < kStripLanes; ++k)
      part[k] = rounded_sum(part[k], rounded_product(a, x.part[k]));
  }
  [[gnu::always_inline]] void scale(const Lanes& a) {
#pragma GCC unroll 4
    for (int k = 0; k < kStripLanes; ++k) part[k] = rounded_product(a, part[k]);
  }
};

/// Rows of the identity, kStripRows behind each other for each column, times the reflections, then
/// the rotations. What is done to an element does not depend on the rows beside it.
struct TurnRows {
  [[gnu::always_inline]] static void run(double* x, const Tridiagonal* t,
                                         const std::vector<PlaneRotation>* rotations) {
    for (const TridiagonalReflection& reflection : t->reflections) {
      const double* v = reflection.v.data();
      const auto m = std::ssize(reflection.v);
      double* columns = x + reflection.first * kStripRows;
      StripColumn w;
      for (std::int64_t j = 0; j < m; ++j)
        w.add(Lanes(v[j]), StripColumn::load(columns + j * kStripRows));
      w.scale(Lanes(reflection.tau));
      for (std::int64_t j = 0; j < m; ++j) {
        StripColumn column = StripColumn::load(columns + j * kStripRows);
        column.add(Lanes(-v[j]), w);
        column.store(columns + j * kStripRows);
      }
    }
    // The lower column of a rotation is mostly the upper one of the next.
    std::int64_t held = 0;
    StripColumn upper = StripColumn::load(x);
    for (const PlaneRotation& rotation : *rotations) {
      double* low = x + rotation.column * kStripRows;
      if (held != rotation.column + 1) {
        upper.store(x + held * kStripRows);
        upper = StripColumn::load(low + kStripRows);
      }
      const StripColumn lower = StripColumn::load(low);
      StripColumn turned = lower;
      turned.scale(Lanes(rotation.s));
      turned.add(Lanes(rotation.c), upper);
      turned.store(low + kStripRows);
      turned = lower;
      turned.scale(Lanes(rotation.c));
      turned.add(Lanes(-rotation.s), upper);
      upper = turned;
      held = rotation.column;
    }
    upper.store(x + held * kStripRows);
  }
};

}  // namespace

std::vector<std::complex<double>> hessenberg_eigenvalues(Reals h) {
  return FrancisQr(std::move(h)).run();
}

SymmetricEigen symmetric_eigen(Reals a, WorkCrew& crew) {
  SymmetricEigen eigen;
  Tridiagonal t = tridiagonalize(std::move(a));
  std::vector<PlaneRotation> rotations;
  if (!implicit_ql(t, rotations)) return eigen;
  const auto n = std::ssize(t.diagonal);
  std::vector<std::int64_t> order(t.diagonal.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    return t.diagonal[static_cast<std::size_t>(i)] < t.diagonal[static_cast<std::size_t>(j)];
  });
  for (const std::int64_t from : order)
    eigen.values.push_back(t.diagonal[static_cast<std::size_t>(from)]);
  eigen.vectors = Reals(n);
  crew.share((n + kStripRows - 1) / kStripRows, [&](std::int64_t strip) {
    const std::int64_t first = strip * kStripRows;
    const std::int64_t rows = std::min(kStripRows, n - first);
    std::vector<double> x(static_cast<std::size_t>(n * kStripRows));
    for (std::int64_t r = 0; r < rows; ++r)
      x[static_cast<std::size_t>((first + r) * kStripRows + r)] = 1;
    run_fused<TurnRows>(x.data(), &t, &rotations);
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t from = order[static_cast<std::size_t>(j)];
      std::copy_n(x.begin() + from * kStripRows, rows, &eigen.vectors(first, j));
    }
  });
  return eigen;
}

}  // namespace strata
