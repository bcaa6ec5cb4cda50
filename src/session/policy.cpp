#include "session/policy.hpp"

#include <array>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr std::array<std::pair<Policy, const char*>, 7> kPolicies{{{Policy::sync, "sync"},
                                                                   {Policy::async, "async"},
                                                                   {Policy::v1, "v1"},
                                                                   {Policy::v2, "v2"},
                                                                   {Policy::v3, "v3"},
                                                                   {Policy::opt, "opt"},
                                                                   {Policy::idle, "idle"}}};

}  // namespace

const char* to_string(Policy policy) noexcept {
  for (const auto& [value, name] : kPolicies) {
    if (value == policy) return name;
  }
  return "?";
}

Policy parse_policy(const std::string& name) {
  for (const auto& [value, known] : kPolicies) {
    if (name == known) return value;
  }
  fail(ErrorKind::misuse, "options", "'{}' is no policy: use sync, async, v1, v2, v3, opt or idle",
       name);
}

PlanOptions options_of(Policy policy) {
  PlanOptions options;
  if (policy == Policy::opt) return options;
  options.eviction = Eviction::least_recently_used;
  options.lookahead = 1;
  switch (policy) {
    case Policy::sync: options.one_queue = true; [[fallthrough]];
    case Policy::async:
      options.keep = Keep::nothing;
      options.copies_in_stream = true;
      break;
    case Policy::v1: options.keep = Keep::accumulator; break;
    case Policy::v3: options.retain = true; break;
    case Policy::idle:
      options.eviction = Eviction::longest_idle;
      options.retain = true;
      break;
    default: break;
  }
  return options;
}

}  // namespace strata
