#include "krylov/chebyshev_filter.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace strata {

double ChebyshevFilter::value(double eigenvalue) const {
  const double t = (eigenvalue - center) / half_width;
  const auto d = static_cast<double>(degree);
  if (t > 1) return std::cosh(d * std::acosh(t));
  if (t < -1) return (degree % 2 == 0 ? 1 : -1) * std::cosh(d * std::acosh(-t));
  return std::cos(d * std::acos(t));
}

double ChebyshevFilter::eigenvalue(double value) const {
  if (!(value > 1)) return edge();
  return center + half_width * std::cosh(std::acosh(value) / static_cast<double>(degree));
}

double ChebyshevFilter::residual(double value, double of_polynomial) const {
  const double way = std::abs(eigenvalue(value) - (center - half_width));
  return value > 1 ? std::min(way, of_polynomial * way / (value - 1)) : way;
}

ChebyshevFilter make_filter(double outermost, double edge, double far_end, double growth,
                            std::int64_t degree_max) {
  ChebyshevFilter filter;
  filter.center = (edge + far_end) / 2;
  filter.half_width = (edge - far_end) / 2;
  const double t = (outermost - filter.center) / filter.half_width;
  const double degree = std::ceil(std::acosh(growth) / std::acosh(std::max(t, 1.0)));
  // Not a number: the outermost is at the edge.
  filter.degree =
      degree < static_cast<double>(degree_max) ? static_cast<std::int64_t>(degree) : degree_max;
  filter.degree = std::max<std::int64_t>(filter.degree, 2);
  return filter;
}

double place_of_count(const std::vector<SpectralNode>& nodes, double count) {
  constexpr double kFarthest = 8;
  double before = 0;  // up to the last node, half of its own among them
  double sum = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const double here = sum + nodes[i].count / 2;
    if (here >= count) {
      if (i == 0) return nodes[0].value;
      const double share = (count - before) / (here - before);
      return nodes[i - 1].value + share * (nodes[i].value - nodes[i - 1].value);
    }
    before = here;
    sum += nodes[i].count;
  }
  const double times = before > 0 ? std::min(count / before, kFarthest) : kFarthest;
  return nodes.front().value + times * (nodes.back().value - nodes.front().value);
}

std::pair<double, double> spectrum_bounds(const SparseMatrix& a) {
  std::pair<double, double> bounds{std::numeric_limits<double>::infinity(),
                                   -std::numeric_limits<double>::infinity()};
  for (std::int64_t i = 0; i < a.rows; ++i) {
    double center = 0;
    double radius = 0;
    for (std::int64_t e = a.start[static_cast<std::size_t>(i)];
         e < a.start[static_cast<std::size_t>(i + 1)]; ++e) {
      const double x = a.value[static_cast<std::size_t>(e)];
      if (a.column[static_cast<std::size_t>(e)] == i) {
        center += x;
      } else {
        radius += std::abs(x);
      }
    }
    bounds.first = std::min(bounds.first, center - radius);
    bounds.second = std::max(bounds.second, center + radius);
  }
  return bounds;
}

}  // namespace strata
