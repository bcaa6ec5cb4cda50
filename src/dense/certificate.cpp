#include "strata/certificate.hpp"

namespace strata {

double singular_condition(Element precision) noexcept {
  return element_of_parts(precision) == Element::fp32 ? 0x1p21 : 0x1p50;
}

bool numerically_singular(double condition, Element precision) noexcept {
  return !(condition < singular_condition(precision));
}

double solution_error_wanted(Element precision) noexcept {
  return element_of_parts(precision) == Element::fp32 ? 0.1 : 1e-6;
}

}  // namespace strata
