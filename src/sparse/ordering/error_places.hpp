#pragma once
// The places that errors of several files name.

namespace strata {

inline constexpr const char* kAnalysisWhere = "analysis";
inline constexpr const char* kFactorWhere = "factor";

}  // namespace strata
