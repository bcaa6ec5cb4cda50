// Method: QL iterations with implicit Wilkinson shifts, whose rotations are applied to the first
// row of the identity (Golub, Welsch, "Calculation of Gauss quadrature rules", Math. Comp. 23,
// 1969, 221-230; the iteration is that of Dubrulle, Martin, Wilkinson, "The implicit QL algorithm",
// Numer. Math. 12, 1968, 377-383). Matrices have orders from 100 to some thousands, so that
// O(order²) is little.

#include "dense/tridiagonal.hpp"

#include <cmath>
#include <cstddef>
#include <limits>

#include "base/check.hpp"

namespace strata {
namespace {

class QlIteration {
 public:
  QlIteration(std::vector<double>& d, std::vector<double>& e, std::vector<double>& z)
      : d_(d), e_(e), z_(z) {}

  /// Splits eigenvalue l off the rest. False: not within the iterations that always suffice.
  bool converge(std::size_t l) {
    constexpr int kIterationsMax = 100;
    for (int i = 0; i < kIterationsMax; ++i) {
      const std::size_t m = end_of_block(l);
      if (m == l) return true;
      sweep(l, m);
    }
    return false;
  }

 private:
  /// The first row at or behind l that the next one does not hang on.
  [[nodiscard]] std::size_t end_of_block(std::size_t l) const {
    constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;
    std::size_t m = l;
    while (m + 1 < d_.size() &&
           !(std::abs(e_[m]) <= kUnit * (std::abs(d_[m]) + std::abs(d_[m + 1]))))
      ++m;
    return m;
  }

  /// Chases the bulge from row m up to row l.
  void sweep(std::size_t l, std::size_t m) {
    const double half_gap = (d_[l + 1] - d_[l]) / (2 * e_[l]);
    double g =
        d_[m] - d_[l] + e_[l] / (half_gap + std::copysign(std::hypot(half_gap, 1.0), half_gap));
    double c = 1;
    double s = 1;
    double shift = 0;
    for (std::size_t i = m; i-- > l;) {
      const double f = s * e_[i];
      const double b = c * e_[i];
      const double r = std::hypot(f, g);
      e_[i + 1] = r;
      if (r == 0) {  // the block fell apart here
        d_[i + 1] -= shift;
        e_[m] = 0;
        return;
      }
      s = f / r;
      c = g / r;
      const double next = d_[i + 1] - shift;
      const double t = (d_[i] - next) * s + 2 * c * b;
      shift = s * t;
      d_[i + 1] = next + shift;
      g = c * t - b;
      const double z = z_[i + 1];
      z_[i + 1] = s * z_[i] + c * z;
      z_[i] = c * z_[i] - s * z;
    }
    d_[l] -= shift;
    e_[l] = g;
    e_[m] = 0;
  }

  std::vector<double>& d_;
  std::vector<double>& e_;
  std::vector<double>& z_;
};

}  // namespace

TridiagonalSpectrum spectrum_of(std::vector<double> diagonal, std::vector<double> off) {
  require(off.size() + 1 == diagonal.size(), ErrorKind::misuse, "cholesky",
          "{} elements beside a diagonal of {}", off.size(), diagonal.size());
  off.push_back(0);
  std::vector<double> first(diagonal.size());
  first.front() = 1;
  QlIteration iteration(diagonal, off, first);
  bool converged = true;
  for (std::size_t l = 0; l < diagonal.size(); ++l) converged = converged && iteration.converge(l);
  for (double& z : first) z *= z;
  if (!converged) diagonal.assign(diagonal.size(), std::numeric_limits<double>::quiet_NaN());
  return {std::move(diagonal), std::move(first)};
}

}  // namespace strata
