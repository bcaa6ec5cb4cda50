// Jacobi's method.
//
// Method: cyclic rotations by rows, each of an element that is not negligible beside √|aᵢᵢaⱼⱼ|,
// with Rutishauser's formulas ("The Jacobi method for real symmetric matrices", 1966): what is
// added to elements and to the diagonal is small, so each keeps the digits that it has.

#include "dense/jacobi_eigen.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace strata {
namespace {

constexpr int kSweepsMax = 40;

/// The lower triangle as a whole matrix, and the rotations so far.
class Jacobi {
 public:
  Jacobi(SquareMatrix<double> a, std::int64_t work_max)
      : a_(std::move(a)), v_(SquareMatrix<double>::identity(a_.n)), work_left_(work_max) {
    for (std::int64_t j = 0; j < a_.n; ++j)
      for (std::int64_t i = 0; i < j; ++i) a_(i, j) = a_(j, i);
  }

  /// False: it takes more work than it may.
  bool run() {
    for (int sweep = 0; sweep < kSweepsMax; ++sweep) {
      bool rotated = false;
      for (std::int64_t q = 1; q < a_.n; ++q) {
        for (std::int64_t p = 0; p < q; ++p) {
          if (is_negligible(p, q)) continue;
          if ((work_left_ -= a_.n) < 0) return false;
          rotate(p, q);
          rotated = true;
        }
      }
      if (!rotated) break;
    }
    return true;
  }

  [[nodiscard]] SymmetricEigen sorted() const {
    std::vector<std::int64_t> order(static_cast<std::size_t>(a_.n));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::ranges::stable_sort(order,
                             [&](std::int64_t i, std::int64_t j) { return a_(i, i) < a_(j, j); });
    SymmetricEigen eigen;
    eigen.vectors = SquareMatrix<double>(a_.n);
    for (std::int64_t j = 0; j < a_.n; ++j) {
      const std::int64_t from = order[static_cast<std::size_t>(j)];
      eigen.values.push_back(a_(from, from));
      std::copy_n(&v_(0, from), a_.n, &eigen.vectors(0, j));
    }
    return eigen;
  }

 private:
  [[nodiscard]] bool is_negligible(std::int64_t p, std::int64_t q) const {
    constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;
    const double x = std::abs(a_(p, q));
    return !(x > kUnit * std::sqrt(std::abs(a_(p, p))) * std::sqrt(std::abs(a_(q, q)))) ||
           x < std::numeric_limits<double>::min();
  }

  void rotate(std::int64_t p, std::int64_t q) {
    const double apq = a_(p, q);
    const double theta = (a_(q, q) - a_(p, p)) / (2 * apq);
    const double t =
        std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0));  // 0: far apart
    const double c = 1 / std::hypot(t, 1.0);
    const double s = t * c;
    const double tau = s / (1 + c);
    a_(p, p) -= t * apq;
    a_(q, q) += t * apq;
    const double pp = a_(p, p);
    const double qq = a_(q, q);
    turn(&a_(0, p), &a_(0, q), s, tau);
    a_(p, p) = pp;
    a_(q, q) = qq;
    a_(p, q) = a_(q, p) = 0;
    for (std::int64_t i = 0; i < a_.n; ++i) {
      a_(p, i) = a_(i, p);
      a_(q, i) = a_(i, q);
    }
    turn(&v_(0, p), &v_(0, q), s, tau);
  }

  /// x ← x − s·(y + τ·x), y ← y + s·(x − τ·y).
  void turn(double* x, double* y, double s, double tau) const {
    for (std::int64_t i = 0; i < a_.n; ++i) {
      const double g = x[i];
      const double h = y[i];
      x[i] = g - s * (h + g * tau);
      y[i] = h + s * (g - h * tau);
    }
  }

  SquareMatrix<double> a_, v_;
  std::int64_t work_left_;
};

}  // namespace

SymmetricEigen jacobi_eigen(SquareMatrix<double> a, std::int64_t work_max) {
  Jacobi jacobi(std::move(a), work_max);
  return jacobi.run() ? jacobi.sorted() : SymmetricEigen();
}

}  // namespace strata
