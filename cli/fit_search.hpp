#pragma once
// Where a fit searches: the options that hold parameters, start and bound the search, and what is
// told of how it ended.
//
// Contract: as app.hpp has it for verbs. Parameters have the names of FitBound, with dashes.

#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"

namespace strata::cli {

struct SearchArguments {
  std::optional<double> range;
  std::optional<double> smoothness;
  std::optional<double> nugget;
  std::string start;
  std::string bounds;
  std::optional<int> evaluations;

  void add_to(Command& app);
  /// Into options that say already what is estimated of the separation. Throws Error{misuse} for
  /// names and numbers that cannot be, and for a start or bounds of what is held.
  void apply(FitOptions& options) const;
};

/// "smoothness", "at its upper bound 5 …": what a reader has to know before the numbers, a line
/// each; none if there is nothing.
[[nodiscard]] std::vector<std::string> remarks_of(const FitResult& result,
                                                  const FitOptions& options);
/// Where on a bound the estimate of this parameter is, in a few words: "at the end of its domain".
/// Empty: on none, or it was held.
[[nodiscard]] std::string bound_text(const FitResult& result, const std::string& parameter);
/// The reason why the estimates are not to be trusted; empty: they are.
[[nodiscard]] std::string distrust_of(const FitResult& result);
/// "converged", "at_bounds", "remarks" and what else tells how far a fit is to be trusted.
void add_search_json(Json& object, const FitResult& result, const FitOptions& options);
/// kDone, or kNumbersSaidNo where the estimates are none.
[[nodiscard]] int status_of(const FitResult& result);

}  // namespace strata::cli
