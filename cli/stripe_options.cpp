#include "cli/stripe_options.hpp"

#include "cli/app.hpp"
#include "session/policy.hpp"

namespace strata::cli {

void StripeArguments::add_to(Command& algorithm) {
  const Option of_order = algorithm.add_option(
      "--order", order,
      "by stripes of rows as published, not by panels: basic, zigzag or meta-zigzag:K");
  algorithm
      .add_option("--pivoting", pivoting,
                  "of stripes: none, local:ROWS of a substripe, or pairwise (of two stripes)")
      .needs(of_order)
      .capture_default_str();
  algorithm.add_option("--stripe", stripe, "rows of a stripe (default: as many as fit)")
      .needs(of_order)
      .check(nonnegative_number());
  algorithm
      .add_option("--eviction", eviction,
                  "what leaves, with stripes: idle (the longest idle, as published) or opt")
      .needs(of_order)
      .check(one_of({"idle", "opt"}))
      .capture_default_str();
  algorithm.add_flag("--gauss", gauss, "of stripes: U and right-hand sides alone, L is dropped")
      .needs(of_order);
}

std::optional<StripeOptions> StripeArguments::options() const {
  if (order.empty()) return std::nullopt;
  StripeOptions stripes;
  set_order(order, stripes);
  set_pivoting(pivoting, stripes);
  stripes.stripe = stripe;
  stripes.policy = parse_policy(eviction);
  stripes.gauss = gauss;
  return stripes;
}

}  // namespace strata::cli
