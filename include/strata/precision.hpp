#pragma once
// The old name of an element type, until the last of its users is renamed.

#include "strata/element.hpp"

namespace strata {

using Precision = Element;
template <class T>
inline constexpr Element precision_of = element_of<T>;

}  // namespace strata
