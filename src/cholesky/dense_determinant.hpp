#pragma once
// What rounding does to the log-determinant of a dense matrix: the head of dense_determinant.cpp.

#include "strata/element.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// A bound of the error of log|A| by a factor in `precision` of `near` = 2^(−exponent)·A, with
/// ‖S⁻¹‖∞ = `inverse_norm`; `lost` is ‖D·E·D‖∞ of what `near` and its factored triangle are off A
/// beside rounding.
template <class A>
[[nodiscard]] double determinant_error(Element precision, MatrixView<const A> near,
                                       double inverse_norm, double lost, double log_determinant,
                                       int exponent);

}  // namespace strata
