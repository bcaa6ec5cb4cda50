// Policies: names, and what each asks of a plan beyond the one before it.

#include "session/policy.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "strata/error.hpp"

namespace strata {
namespace {

constexpr std::array<Policy, 7> kEvery{Policy::sync, Policy::async, Policy::v1,  Policy::v2,
                                       Policy::v3,   Policy::opt,   Policy::idle};

TEST(Policies, HaveNames) {
  std::set<std::string> names;
  for (const Policy policy : kEvery) {
    EXPECT_EQ(parse_policy(to_string(policy)), policy);
    names.insert(to_string(policy));
  }
  EXPECT_EQ(names, (std::set<std::string>{"sync", "async", "v1", "v2", "v3", "opt", "idle"}));
  for (const char* name : {"best", "", "V3", "opt "}) {
    EXPECT_THROW((void)parse_policy(name), Error) << name;
  }
}

TEST(Policies, AreStepsOneAfterTheOther) {
  for (const Policy policy : kEvery) {
    const PlanOptions options = options_of(policy);
    const bool ours = policy == Policy::opt;
    EXPECT_EQ(options.one_queue, policy == Policy::sync);
    EXPECT_EQ(options.copies_in_stream, policy <= Policy::async);
    EXPECT_EQ(options.keep, policy <= Policy::async ? Keep::nothing
                            : policy == Policy::v1  ? Keep::accumulator
                                                    : Keep::all);
    EXPECT_EQ(options.retain, policy == Policy::v3 || policy == Policy::idle);
    EXPECT_EQ(options.eviction, ours                     ? Eviction::furthest_next_use
                                : policy == Policy::idle ? Eviction::longest_idle
                                                         : Eviction::least_recently_used);
    EXPECT_EQ(options.lookahead > 1, ours) << "the others know nothing of the future";
    EXPECT_FALSE(options.urgent_queue);
  }
}

}  // namespace
}  // namespace strata
