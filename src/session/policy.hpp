#pragma once
// Policies: their names, and what they ask of a plan.

#include <string>

#include "schedule/plan.hpp"

namespace strata {

/// "v3", "opt", …; and back, throwing Error{misuse}.
[[nodiscard]] const char* to_string(Policy policy) noexcept;
[[nodiscard]] Policy parse_policy(const std::string& name);

/// The literature's policies (Ren, Ltaief, Abdulah, Keyes, "Accelerating Mixed-Precision
/// Out-of-Core Cholesky Factorization with Static Task Scheduling", 2024), each one step from the
/// one before, and ours, which is what PlanOptions are by themselves; and that of Carcenac, "From
/// tile algorithm to stripe algorithm", 2013.
[[nodiscard]] PlanOptions options_of(Policy policy);

}  // namespace strata
