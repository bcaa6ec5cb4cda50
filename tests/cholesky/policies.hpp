#pragma once
// The policies that tests of operations try.

#include "session/policy.hpp"

namespace strata::test {

inline constexpr Policy kPolicies[] = {Policy::sync, Policy::async, Policy::v1,
                                       Policy::v2,   Policy::v3,    Policy::opt};

}  // namespace strata::test
