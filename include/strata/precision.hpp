#pragma once
// The old name of element.hpp.
#include "strata/element.hpp"
