// Method: a handful of control points in OKLCh (lightness, chroma, hue; B. Ottosson, "A perceptual
// color space for image processing", 2020) are joined by straight lines of lightness, chroma and
// hue, sampled finely, brought into sRGB by lowering the chroma where needed, and resampled to
// equal distance in OKLab. Equal steps in the data are then equal steps to the eye.

#include "report/colormap.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

namespace strata::page {
namespace {

struct Lch {
  double lightness;
  double chroma;
  double hue_degrees;
};

using Triple = std::array<double, 3>;

Triple lab_of(const Lch& color) {
  const double angle = color.hue_degrees * std::numbers::pi / 180;
  return {color.lightness, color.chroma * std::cos(angle), color.chroma * std::sin(angle)};
}

/// Linear sRGB of an OKLab colour; the matrices are Ottosson's.
Triple linear_rgb(const Triple& lab) {
  const auto cube = [](double v) { return v * v * v; };
  const double l = cube(lab[0] + 0.3963377774 * lab[1] + 0.2158037573 * lab[2]);
  const double m = cube(lab[0] - 0.1055613458 * lab[1] - 0.0638541728 * lab[2]);
  const double s = cube(lab[0] - 0.0894841775 * lab[1] - 1.2914855480 * lab[2]);
  return {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
          -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
          -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
}

bool in_gamut(const Lch& color) {
  const Triple rgb = linear_rgb(lab_of(color));
  return std::all_of(rgb.begin(), rgb.end(), [](double v) { return v >= 0 && v <= 1; });
}

Lch clipped(Lch color) {
  while (color.chroma > 0 && !in_gamut(color)) color.chroma -= 0.001;
  color.chroma = std::max(color.chroma, 0.0);
  return color;
}

/// The sRGB transfer function (IEC 61966-2-1), as a byte.
std::uint8_t encoded(double linear) {
  const double v = std::clamp(linear, 0.0, 1.0);
  const double s = v <= 0.0031308 ? 12.92 * v : 1.055 * std::pow(v, 1 / 2.4) - 0.055;
  return static_cast<std::uint8_t>(std::lround(255 * s));
}

Lch along(const std::vector<Lch>& points, double share) {
  const double place = share * static_cast<double>(points.size() - 1);
  const auto i = std::min(static_cast<std::size_t>(place), points.size() - 2);
  const double t = place - static_cast<double>(i);
  const Lch& a = points[i];
  const Lch& b = points[i + 1];
  return {std::lerp(a.lightness, b.lightness, t), std::lerp(a.chroma, b.chroma, t),
          std::lerp(a.hue_degrees, b.hue_degrees, t)};
}

Colormap colormap(const std::vector<Lch>& points) {
  constexpr std::size_t samples = 2049;
  std::vector<Triple> labs(samples);
  std::vector<double> length(samples, 0.0);
  for (std::size_t i = 0; i < samples; ++i) {
    labs[i] = lab_of(clipped(along(points, static_cast<double>(i) / (samples - 1))));
    if (i == 0) continue;
    length[i] = length[i - 1] + std::hypot(labs[i][0] - labs[i - 1][0], labs[i][1] - labs[i - 1][1],
                                           labs[i][2] - labs[i - 1][2]);
  }
  Colormap colors;
  for (std::size_t i = 0; i < colors.size(); ++i) {
    const double target = length.back() * static_cast<double>(i) / 255;
    const auto place = std::lower_bound(length.begin(), length.end(), target) - length.begin();
    const Triple rgb = linear_rgb(labs[std::min(static_cast<std::size_t>(place), samples - 1)]);
    colors[i] = {encoded(rgb[0]), encoded(rgb[1]), encoded(rgb[2])};
  }
  return colors;
}

}  // namespace

Colormap value_colormap() {
  return colormap({{0.24, 0.085, 300},
                   {0.37, 0.115, 277},
                   {0.50, 0.100, 238},
                   {0.63, 0.105, 190},
                   {0.77, 0.155, 150},
                   {0.93, 0.170, 108}});
}

Colormap uncertainty_colormap() {
  return colormap({{0.955, 0.030, 95},
                   {0.85, 0.085, 72},
                   {0.72, 0.135, 46},
                   {0.57, 0.150, 20},
                   {0.41, 0.130, -8},
                   {0.25, 0.085, -38}});
}

std::string hex_text(const Colormap& colors) {
  std::string text;
  for (const Rgb& color : colors) {
    text += fmt::format("{:02x}{:02x}{:02x}", color.red, color.green, color.blue);
  }
  return text;
}

}  // namespace strata::page
