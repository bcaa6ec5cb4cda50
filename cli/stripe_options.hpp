#pragma once
// --order, --pivoting, --stripe, --eviction and --gauss: LU by stripes in the place of panels, of
// plan lu and bench lu.

#include <memory>
#include <optional>
#include <string>

#include "cli/command.hpp"
#include "strata/stripe_lu.hpp"

namespace strata::cli {

struct StripeArguments {
  std::string order;
  std::string pivoting = "local:200";
  std::int64_t stripe = 0;
  std::string eviction = "idle";
  bool gauss = false;

  void add_to(Command& algorithm);
  /// Absent without --order. Throws Error{misuse} for names that are none.
  [[nodiscard]] std::optional<StripeOptions> options() const;
};

}  // namespace strata::cli
