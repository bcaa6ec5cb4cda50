#pragma once
// What tests of LU by stripes share: options by name.

#include <string>

#include "strata/stripe_lu.hpp"

namespace strata::test {

[[nodiscard]] inline StripeOptions stripes_of(std::int64_t stripe, std::int64_t substripe,
                                              const std::string& order = "zigzag") {
  StripeOptions options;
  options.stripe = stripe;
  options.substripe = substripe;
  set_order(order, options);
  return options;
}

[[nodiscard]] inline StripeOptions with_run(StripeOptions options, const RunOptions& run) {
  options.run = run;
  return options;
}

[[nodiscard]] inline RunOptions on_one_cpu() {
  RunOptions options;
  options.devices = "host:1";
  return options;
}

}  // namespace strata::test
