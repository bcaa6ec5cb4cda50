#pragma once
// When the spans of a trace begin and end, in seconds.

#include <gtest/gtest.h>

#include <cstddef>
#include <utility>
#include <vector>

#include "strata/trace.hpp"

namespace strata::test {

using Times = std::vector<std::pair<double, double>>;

/// The spans of a kind, in the order of the plan.
inline Times times_of(const Trace& trace, SpanKind kind) {
  Times all;
  for (const Span& span : trace.spans) {
    if (span.kind == kind) all.emplace_back(span.begin, span.end);
  }
  return all;
}

inline void expect_times(const Trace& trace, SpanKind kind, const Times& expected) {
  const Times actual = times_of(trace, kind);
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual[i].first, expected[i].first, 1e-9) << i;
    EXPECT_NEAR(actual[i].second, expected[i].second, 1e-9) << i;
  }
}

}  // namespace strata::test
