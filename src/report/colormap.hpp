#pragma once
// Colour maps of the page.
//
// Contract: 256 colours of equal perceptual steps (OKLab distance) with monotone lightness, so that
// they read in every kind of colour vision and in grey print.

#include <array>
#include <cstdint>
#include <string>

namespace strata::page {

struct Rgb {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};
using Colormap = std::array<Rgb, 256>;

/// Dark indigo over teal to light yellow: values.
[[nodiscard]] Colormap value_colormap();
/// Pale cream over copper to dark plum: standard errors (dark is uncertain).
[[nodiscard]] Colormap uncertainty_colormap();

/// "1f0a3c…": six hexadecimal digits a colour.
[[nodiscard]] std::string hex_text(const Colormap& colors);

}  // namespace strata::page
