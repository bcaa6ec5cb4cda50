// A grid of a few values for each variable, then BOBYQA (minimize.cpp) for some dozens of
// evaluations from its best points, chosen greedily so that none is near one that is better. A
// noise ratio of exactly 0 is a search of its own, in which it stays: that edge of the domain has
// maxima of its own, which a search inside of it comes near to but slowly.

#include "geostat/fit_modes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "geostat/minimize.hpp"

namespace strata {
namespace {

using Values = FitSpace::Values;

/// Ranges, evenly in their logarithm and by about a factor of 4. They begin where neighbours are as
/// little correlated as with a smoothness of 1/2 and half of their typical distance, and end at the
/// extent; the shortest distance is one more where it is much less. Correlations reach about
/// range·√(8·smoothness) (Lindgren, Rue, Lindström 2011): the same range is much longer for a
/// smooth process.
std::vector<double> ranges_of(const Scales& s, double smoothness) {
  const double from = 0.5 * s.spacing.median / std::sqrt(std::max(2 * smoothness, 1.0));
  const int steps =
      std::clamp(static_cast<int>(std::lround(std::log(s.extent / from) / 1.4)), 2, 8);
  std::vector<double> out;
  if (s.spacing.least < 0.1 * s.spacing.median) out.push_back(s.spacing.least);
  for (int k = 0; k <= steps; ++k)
    out.push_back(from * std::pow(s.extent / from, static_cast<double>(k) / steps));
  return out;
}

/// The parameters of time of a grid: ranges in time from a hundredth of the times' extent to all of
/// it; of others the middle of their domain.
std::vector<Values> begins_in_time(const FitSpace& space, double time_extent) {
  Values v = space.held;
  if (space.is_free(FitSpace::time_smoothness)) v[FitSpace::time_smoothness] = 0.5;
  if (space.is_free(FitSpace::interaction)) {
    const Bounds& bounds = space.bounds[FitSpace::interaction];
    v[FitSpace::interaction] = 0.5 * (bounds.lower + bounds.upper);
  }
  if (!space.is_free(FitSpace::time_scale)) return {v};
  std::vector<Values> out;
  for (const double range : {0.01, 0.1, 1.0}) {
    v[FitSpace::time_scale] = time_scale_of(range * time_extent, v[FitSpace::time_smoothness]);
    out.push_back(v);
  }
  return out;
}

/// Values of a variable that is searched, or the one at which it is held.
std::vector<double> choices(const FitSpace& space, std::size_t variable,
                            std::vector<double> searched) {
  if (!space.is_free(variable)) return {space.held[variable]};
  std::vector<double> out;
  for (const double value : searched) {
    const Bounds& b = space.bounds[variable];
    const double inside = std::clamp(value, b.lower, b.upper);
    if (out.empty() || inside != out.back()) out.push_back(inside);
  }
  return out;
}

/// The space of a search from there: with a ratio of 0 that of the edge, else coordinates in which
/// a ratio of this size has a logarithm.
FitSpace around(const FitSpace& space, const Values& v) {
  if (!space.is_free(FitSpace::ratio)) return space;
  if (v[FitSpace::ratio] == 0) return without_nugget(space);
  FitSpace out = space;
  out.ratio_offset = std::clamp(0.1 * v[FitSpace::ratio], 1e-15, 1e-3);
  return out;
}

/// How far apart two places are for searches: 1 is a factor that many of them will not cross.
double apart(const FitSpace& space, const Values& a, const Values& b) {
  const double least = space.nugget ? 0 : 1e-12;
  double out = 0;
  for (const std::size_t v : space.free) {
    double d = 0;
    switch (v) {
      case FitSpace::interaction: d = std::fabs(a[v] - b[v]); break;
      case FitSpace::anisotropy_angle: d = std::fabs(a[v] - b[v]) / 40; break;
      case FitSpace::ratio:
        d = (a[v] == 0) != (b[v] == 0) ? 1
                                       : std::fabs(std::log((a[v] + least) / (b[v] + least))) / 4.5;
        break;
      case FitSpace::smoothness: d = std::fabs(std::log(a[v] / b[v])) / 1.3; break;
      default: d = std::fabs(std::log(a[v] / b[v])) / 1.5; break;
    }
    out = std::max(out, d);
  }
  return out;
}

void sort(std::vector<Mode>& modes) {
  std::stable_sort(modes.begin(), modes.end(),
                   [](const Mode& a, const Mode& b) { return a.value < b.value; });
}

/// The best of these, none within `near` of a better one.
std::vector<Mode> apart_from_better(const FitSpace& space, std::vector<Mode> all, std::size_t most,
                                    double near) {
  sort(all);
  std::vector<Mode> out;
  for (const Mode& mode : all) {
    if (out.size() == most) break;
    if (std::none_of(out.begin(), out.end(),
                     [&](const Mode& o) { return apart(space, mode.at, o.at) < near; }))
      out.push_back(mode);
  }
  return out;
}

Mode downhill(const FitFunction& f, const FitSpace& whole, const Mode& from, double step,
              double tolerance) {
  const FitSpace space = around(whole, from.at);
  if (space.free.empty()) return from;
  const int most = 30 * static_cast<int>(space.free.size());
  const Minimum end =
      minimize([&](const std::vector<double>& x) { return f(space.values(x)); },
               space.coordinates(from.at), space.box(), {step, tolerance, 1e-6, most});
  return {space.values(end.x), end.value};
}

/// Noise ratios of a grid; with a nugget that is held, such that variances are about that of the
/// data.
std::vector<double> ratios_of(const FitSpace& space) {
  if (!space.nugget) return {1e-6, 1e-2, 0.3, 10};
  const double of_data = *space.nugget / space.data_variance;
  return {0.01 * of_data, 0.3 * of_data, 3 * of_data, 30 * of_data};
}

/// Directions, where they are searched; the area of the ellipse stays.
std::vector<Values> turned(const FitSpace& space, Values v) {
  std::vector<Values> out;
  const bool ratio = space.is_free(FitSpace::anisotropy_ratio);
  const bool angle = space.is_free(FitSpace::anisotropy_angle);
  if (ratio) {
    if (space.is_free(FitSpace::range)) v[FitSpace::range] *= std::sqrt(2.0);
    v[FitSpace::anisotropy_ratio] = 0.5;
  }
  for (int quarter = 0; quarter < (angle ? 4 : ratio ? 1 : 0); ++quarter) {
    if (angle) v[FitSpace::anisotropy_angle] = 45.0 * quarter;
    out.push_back(v);
  }
  return out;
}

}  // namespace

std::vector<Values> coarse_grid(const FitSpace& space, const Scales& scales) {
  std::vector<Values> out;
  for (Values v : begins_in_time(space, scales.time_extent)) {
    for (const double smoothness : choices(space, FitSpace::smoothness, {0.5, 1.2, 3})) {
      for (const double range : choices(space, FitSpace::range, ranges_of(scales, smoothness))) {
        for (const double ratio : choices(space, FitSpace::ratio, ratios_of(space))) {
          v[FitSpace::range] = range;
          v[FitSpace::smoothness] = smoothness;
          v[FitSpace::ratio] = ratio;
          out.push_back(v);
        }
      }
    }
  }
  return out;
}

std::vector<Mode> find_modes(const FitFunction& f, const FitSpace& space,
                             const std::vector<Values>& begins, std::size_t searches) {
  std::vector<Mode> all;
  const auto evaluate = [&](const Values& wanted) {
    const FitSpace own = around(space, wanted);
    const Values v = own.values(own.coordinates(wanted));
    all.push_back({v, f(v)});
  };
  for (const Values& v : begins) evaluate(v);
  for (const Mode& mode : apart_from_better(space, all, 2, 1))
    for (const Values& v : turned(space, mode.at)) evaluate(v);
  std::vector<Mode> ends;
  for (const Mode& mode : apart_from_better(space, all, searches, 1))
    ends.push_back(downhill(f, space, mode, 0.4, 0.02));
  std::vector<Mode> modes = apart_from_better(space, std::move(ends), searches, 0.2);
  // The best two to where they end: what they were worth so far is no reason to prefer one.
  for (std::size_t k = 0; k < std::min<std::size_t>(2, modes.size()); ++k)
    modes[k] = downhill(f, space, modes[k], 0.1, 1e-3);
  sort(modes);
  return modes;
}

}  // namespace strata
