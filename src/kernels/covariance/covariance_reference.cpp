// The Matérn covariance exactly as the formulas read, in long double, with the Bessel and gamma
// functions of Boost.Math: slow, and independent of bessel_k.hpp and covariance_lag.hpp, whose
// errors it is there to find. Angles on the sphere are by their tangent (Vincenty, "Direct and
// inverse solutions of geodesics on the ellipsoid", Survey Review 23, 1975, equations 14 to 16, of
// no flattening), not by the haversine.

#include <cmath>
#include <vector>

#include "kernels/backend/operand.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/covariance/covariance_boost.hpp"
#include "kernels/covariance/covariance_reference.hpp"

namespace strata {
namespace reference {
namespace {

using Real = long double;

constexpr Real kDegree = 3.14159265358979323846264338L / 180;

/// The angle between two points of the sphere, longitude and latitude in degrees, by its tangent: a
/// cross product over a scalar product.
Real angle_between(const std::vector<Real>& a, const std::vector<Real>& b) {
  const Real turn = (a[0] - b[0]) * kDegree;
  const Real phi = a[1] * kDegree;
  const Real psi = b[1] * kDegree;
  const Real east = std::cos(psi) * std::sin(turn);
  const Real north = std::cos(phi) * std::sin(psi) - std::sin(phi) * std::cos(psi) * std::cos(turn);
  return std::atan2(std::hypot(east, north),
                    std::sin(phi) * std::sin(psi) + std::cos(phi) * std::cos(psi) * std::cos(turn));
}

/// The distance between two points, the time (if there is one) not counted.
Real distance_between(const Separation& separation, std::vector<Real> a, std::vector<Real> b) {
  if (separation.distance == Distance::great_circle)
    return static_cast<Real>(kEarthRadiusKm) * angle_between(a, b);
  if (separation.anisotropy_ratio != 1) {  // each point turned, then stretched
    const Real angle = separation.anisotropy_angle * kDegree;
    for (std::vector<Real>* point : {&a, &b}) {
      const Real x = (*point)[0];
      const Real y = (*point)[1];
      (*point)[0] = std::cos(angle) * x + std::sin(angle) * y;
      (*point)[1] = (std::cos(angle) * y - std::sin(angle) * x) / separation.anisotropy_ratio;
    }
  }
  Real square = 0;
  for (std::size_t k = 0; k < a.size(); ++k) square += (a[k] - b[k]) * (a[k] - b[k]);
  return std::sqrt(square);
}

/// Without the nugget.
Real covariance_of(const CovarianceParameters& parameters, std::vector<Real> a,
                   std::vector<Real> b) {
  Real w = 1;
  Real beta = 0;
  if (const auto& time = parameters.separation.time) {
    const Real u = std::fabs(a.back() - b.back());
    a.pop_back();
    b.pop_back();
    w = time->scale * std::pow(u, 2 * static_cast<Real>(time->smoothness)) + 1;
    beta = time->interaction;
  }
  const Real h = distance_between(parameters.separation, a, b);
  const Real range = parameters.range * std::pow(w, beta / 2);
  return parameters.variance / w * matern_correlation_boost(parameters.smoothness, h / range);
}

template <class X>
std::vector<Real> point_of(const BlockView& points, std::int64_t i) {
  std::vector<Real> point;
  for (std::int64_t k = 0; k < points.cols; ++k)
    point.push_back(static_cast<const X*>(points.data)[i + k * points.ld]);
  return point;
}

}  // namespace

template <class X>
Real covariance_element(const CovarianceParameters& parameters, const BlockView& p, std::int64_t i,
                        const BlockView& q, std::int64_t j) {
  return covariance_of(parameters, point_of<X>(p, i), point_of<X>(q, j));
}

template Real covariance_element<double>(const CovarianceParameters&, const BlockView&,
                                         std::int64_t, const BlockView&, std::int64_t);

namespace {

template <class T, class X>
void compute(const BlockView& out, const BlockView& p, const BlockView& q,
             const CovarianceParameters& parameters) {
  for (std::int64_t j = 0; j < out.cols; ++j) {
    for (std::int64_t i = 0; i < out.rows; ++i) {
      Real c = covariance_element<X>(parameters, p, i, q, j);
      if (parameters.same_points && out.row + i == out.col + j) c += parameters.nugget;
      static_cast<T*>(out.data)[i + j * out.ld] = static_cast<T>(c);
    }
  }
}

}  // namespace
}  // namespace reference

template <class T, class X>
void covariance_reference(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(covariance, parameters.variant, 0);
  submit_each(queue, calls, [&values = parameters_of(parameters)](const BlockView* x) {
    reference::compute<T, X>(x[0], x[1], x[2], values);
  });
}

template void covariance_reference<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_reference<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_reference<float, double>(Queue&, const KernelCalls&,
                                                  const KernelParameters&);

}  // namespace strata
