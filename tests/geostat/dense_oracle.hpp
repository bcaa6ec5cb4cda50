#pragma once
// What the geostat tests compare with: textbook formulas in long double on whole matrices.
//
// Contract: independent of the library: its own covariance (Boost.Math), its own Cholesky, normal
// equations instead of orthogonalization. For n of a few hundred at most.

#include <boost/math/special_functions/bessel.hpp>
#include <boost/math/special_functions/gamma.hpp>
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "strata/error.hpp"
#include "strata/geostat.hpp"

namespace strata {

using Real = long double;
using Vector = std::vector<Real>;
using Matrix = std::vector<Vector>;  // rows

/// 2^(1−ν)/Γ(ν), kept from one distance to the next.
inline Real oracle_matern_factor(Real nu) {
  thread_local std::pair<Real, Real> last{-1, 0};
  if (last.first != nu) last = {nu, std::exp2(1 - nu) / boost::math::tgamma(nu)};
  return last.second;
}

inline Real oracle_covariance(const MaternParameters& p, Real h) {
  if (h == 0) return p.variance;
  const Real nu = p.smoothness;
  const Real x = h / p.range;
  return p.variance * oracle_matern_factor(nu) * std::pow(x, nu) * boost::math::cyl_bessel_k(nu, x);
}

/// The angle between two points of the sphere from the chords to the point and to its antipode (W.
/// Kahan, "How futile are mindless assessments of roundoff", 2006, section 12).
inline Real oracle_angle(Real longitude1, Real latitude1, Real longitude2, Real latitude2) {
  const Real degree = std::acos(Real{-1}) / 180;
  const auto place = [degree](Real longitude, Real latitude) {
    return Vector{std::cos(latitude * degree) * std::cos(longitude * degree),
                  std::cos(latitude * degree) * std::sin(longitude * degree),
                  std::sin(latitude * degree)};
  };
  const Vector u = place(longitude1, latitude1);
  const Vector v = place(longitude2, latitude2);
  return 2 * std::atan2(std::hypot(u[0] - v[0], u[1] - v[1], u[2] - v[2]),
                        std::hypot(u[0] + v[0], u[1] + v[1], u[2] + v[2]));
}

inline Real oracle_distance(const Separation& s, const Points& a, std::size_t i, const Points& b,
                            std::size_t j) {
  if (s.distance == Distance::great_circle)
    return static_cast<Real>(kEarthRadiusKm) * oracle_angle(a.x[i], a.y[i], b.x[j], b.y[j]);
  const Real dx = static_cast<Real>(a.x[i]) - b.x[j];
  const Real dy = static_cast<Real>(a.y[i]) - b.y[j];
  const Real dz = a.z.empty() ? 0 : static_cast<Real>(a.z[i]) - b.z[j];
  if (s.anisotropy_ratio == 1) return std::hypot(dx, dy, dz);
  // In polar coordinates: length r at `turn` from the major axis.
  const Real r = std::hypot(dx, dy);
  const Real turn = std::atan2(dy, dx) - s.anisotropy_angle * std::acos(Real{-1}) / 180;
  return std::hypot(r * std::cos(turn), r * std::sin(turn) / s.anisotropy_ratio, dz);
}

inline Real oracle_covariance(const MaternParameters& p, const Points& a, std::size_t i,
                              const Points& b, std::size_t j) {
  const Real h = oracle_distance(p.separation, a, i, b, j);
  if (!p.separation.time) return oracle_covariance(p, h);
  const TimeParameters& time = *p.separation.time;
  const Real u = std::fabs(static_cast<Real>(a.t[i]) - b.t[j]);
  const Real w = time.scale * std::pow(u * u, static_cast<Real>(time.smoothness)) + 1;
  return oracle_covariance(p, h / std::pow(w, time.interaction / Real{2})) / w;
}

/// L with L·Lᵀ = A, from the lower triangle of A.
inline Matrix oracle_cholesky(Matrix a) {
  for (std::size_t j = 0; j < a.size(); ++j) {
    const Real* of_j = a[j].data();
    for (std::size_t i = j; i < a.size(); ++i) {
      const Real* of_i = a[i].data();
      Real sum = of_i[j];
      for (std::size_t k = 0; k < j; ++k) sum -= of_i[k] * of_j[k];
      a[i][j] = i == j ? std::sqrt(sum) : sum / of_j[j];
    }
  }
  return a;
}

/// A⁻¹·b from the factor.
inline Vector oracle_solve(const Matrix& l, Vector b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= l[i][k] * b[k];
    b[i] /= l[i][i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= l[k][i] * b[k];
    b[i] /= l[i][i];
  }
  return b;
}

inline Real oracle_dot(const Vector& a, const Vector& b) {
  Real sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// The columns of an estimated mean, each a vector over the points: on the sphere of spherical
/// harmonics of degree 1, as products of sines of polar angles and cosines of longitudes.
inline Matrix oracle_design(Mean mean, const Points& points, Distance distance) {
  if (mean == Mean::zero || mean == Mean::sample) return {};
  Matrix columns{Vector(points.x.size(), 1)};
  const auto add = [&](const std::vector<double>& v) { columns.emplace_back(v.begin(), v.end()); };
  if (mean == Mean::linear && distance == Distance::great_circle) {
    const Real degree = std::acos(Real{-1}) / 180;
    for (int k = 0; k < 3; ++k) {
      Vector column;
      for (std::size_t i = 0; i < points.x.size(); ++i) {
        const Real polar = (90 - static_cast<Real>(points.y[i])) * degree;
        const Real longitude = points.x[i] * degree;
        column.push_back(k == 0   ? std::sin(polar) * std::cos(longitude)
                         : k == 1 ? std::sin(polar) * std::sin(longitude)
                                  : std::cos(polar));
      }
      columns.push_back(column);
    }
  } else if (mean == Mean::linear) {
    add(points.x);
    add(points.y);
  }
  for (const std::vector<double>& covariate : points.covariates) add(covariate);
  return columns;
}

/// Everything about data at given parameters.
struct DenseOracle {
  DenseOracle(const Points& points, const std::vector<double>& values, const MaternParameters& p,
              Mean mean)
      : points_(points),
        parameters_(p),
        mean_(mean),
        design_(oracle_design(mean, points, p.separation.distance)) {
    const std::size_t n = values.size();
    Matrix sigma(n, Vector(n));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        sigma[i][j] = oracle_covariance(p, points, i, points, j) + (i == j ? p.nugget : 0.0);
      }
    }
    factor = oracle_cholesky(std::move(sigma));
    for (std::size_t i = 0; i < n; ++i) log_determinant += 2 * std::log(factor[i][i]);
    residual_.assign(values.begin(), values.end());
    if (mean == Mean::sample) {
      Real sum = 0;
      for (const double z : values) sum += z;
      beta = {sum / static_cast<Real>(n)};
      for (Real& r : residual_) r -= beta[0];
    }
    if (!design_.empty()) {
      Vector right;
      Matrix gram(design_.size(), Vector(design_.size()));
      for (std::size_t i = 0; i < design_.size(); ++i) {
        solved_.push_back(oracle_solve(factor, design_[i]));
        right.push_back(oracle_dot(solved_[i], residual_));
        for (std::size_t j = 0; j < design_.size(); ++j) {
          gram[j][i] = oracle_dot(design_[j], solved_[i]);
        }
      }
      gram_factor_ = oracle_cholesky(gram);
      beta = oracle_solve(gram_factor_, right);
      for (std::size_t k = 0; k < design_.size(); ++k) {
        for (std::size_t i = 0; i < n; ++i) residual_[i] -= beta[k] * design_[k][i];
      }
    }
    weighted_ = oracle_solve(factor, residual_);
    quadratic_form = oracle_dot(residual_, weighted_);
    log_likelihood = -0.5L * (static_cast<Real>(n) * std::log(2 * std::acos(Real{-1})) +
                              log_determinant + quadratic_form);
  }

  /// Mean and variance (without nugget) of the process at a target.
  [[nodiscard]] std::pair<Real, Real> predict(const Points& targets, std::size_t t) const {
    Vector c;
    for (std::size_t i = 0; i < points_.x.size(); ++i) {
      c.push_back(oracle_covariance(parameters_, points_, i, targets, t));
    }
    Real mean = oracle_dot(c, weighted_);
    Real variance = parameters_.variance - oracle_dot(c, oracle_solve(factor, c));
    if (design_.empty()) return {mean + (beta.empty() ? 0 : beta[0]), variance};
    Vector u;
    const Matrix design = oracle_design(mean_, targets, parameters_.separation.distance);
    for (std::size_t k = 0; k < design_.size(); ++k) {
      mean += design[k][t] * beta[k];
      u.push_back(design[k][t] - oracle_dot(solved_[k], c));
    }
    variance += oracle_dot(u, oracle_solve(gram_factor_, u));
    return {mean, variance};
  }

  Matrix factor;
  Vector beta;
  Real log_determinant = 0;
  Real quadratic_form = 0;
  Real log_likelihood = 0;

 private:
  Points points_;
  MaternParameters parameters_;
  Mean mean_;
  Matrix design_;
  Matrix solved_;  // Σ⁻¹X
  Matrix gram_factor_;
  Vector residual_;
  Vector weighted_;  // Σ⁻¹r
};

/// Points in [0, 1]², a pure function of the seed.
inline Points random_points(std::size_t n, std::uint64_t seed) {
  Points points;
  for (std::size_t i = 0; i < n; ++i) {
    points.x.push_back(random_uniform(seed, 2 * i));
    points.y.push_back(random_uniform(seed, 2 * i + 1));
  }
  return points;
}

/// Draws from a process, by the factor of its covariance.
class OracleField {
 public:
  OracleField(const Points& points, const MaternParameters& p)
      : factor_(
            DenseOracle(points, std::vector<double>(points.x.size(), 0.0), p, Mean::zero).factor) {}

  [[nodiscard]] std::vector<double> draw(std::uint64_t seed) const {
    std::vector<double> out;
    for (std::size_t i = 0; i < factor_.size(); ++i) {
      Real sum = 0;
      for (std::size_t k = 0; k <= i; ++k) sum += factor_[i][k] * random_normal(seed, k);
      out.push_back(static_cast<double>(sum));
    }
    return out;
  }

 private:
  Matrix factor_;
};

inline std::vector<double> simulate_field(const Points& points, const MaternParameters& p,
                                          std::uint64_t seed) {
  return OracleField(points, p).draw(seed);
}

/// Runs everything on a small host device.
inline CovarianceOptions host_options() {
  CovarianceOptions options;
  options.run.devices = "host";
  return options;
}

/// The kind of the Error that `f` throws, with its message appended to `message`.
template <class F>
std::optional<ErrorKind> kind_of_error(F&& f, std::string* message = nullptr) {
  try {
    f();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.kind();
  }
  return std::nullopt;
}

}  // namespace strata
