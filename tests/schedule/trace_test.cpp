// Totals of a Trace: every span counts once, on the right link, kept or not.

#include "strata/trace.hpp"

#include <gtest/gtest.h>

#include "matrix/block_table.hpp"

namespace strata {
namespace {

Span span(SpanKind kind, std::int64_t bytes, double flops, double end) {
  Span s;
  s.kind = kind;
  s.bytes = bytes;
  s.flops = flops;
  s.begin = end - 1;
  s.end = end;
  return s;
}

TEST(Traffic, addition_is_link_by_link) {
  Traffic a{1, 2, 3, 4, 5};
  const Traffic b{10, 200, 3000, 40000, 500000};
  a += b;
  EXPECT_EQ(a, (Traffic{11, 202, 3003, 40004, 500005}));
  EXPECT_EQ(a.total(), 543225);
  (a += b) += b;
  EXPECT_EQ(a, (Traffic{31, 602, 9003, 120004, 1500005}));
}

TEST(Trace, add_folds_each_kind_into_its_own_total) {
  Trace trace;
  trace.add(span(SpanKind::load, 100, 0, 2));
  trace.add(span(SpanKind::compute, 0, 7.5, 5));
  trace.add(span(SpanKind::store, 30, 0, 4));
  trace.add(span(SpanKind::load, 1, 0, 3));
  trace.add(span(SpanKind::peer, 7, 0, 1));
  EXPECT_EQ(trace.traffic, (Traffic{101, 30, 7, 0, 0}));
  EXPECT_EQ(trace.flops, 7.5);
  EXPECT_EQ(trace.seconds, 5);
  EXPECT_EQ(trace.spans.size(), 5U);
  EXPECT_EQ(trace.spans_added, 5);
  EXPECT_EQ(trace.spans[2].kind, SpanKind::store);
}

TEST(Trace, fold_of_the_spans_equals_the_running_total) {
  Trace trace;
  for (int i = 0; i < 999; ++i) {
    trace.add(span(static_cast<SpanKind>(i % 4), std::int64_t{1} << (i % 50), i, i));
  }
  EXPECT_EQ(fold_traffic(trace.spans), trace.traffic);
  EXPECT_GT(trace.traffic.host_to_device_bytes, std::int64_t{1} << 40);
  EXPECT_EQ(fold_traffic({}), Traffic{});
}

TEST(Trace, bytes_of_a_computation_are_not_traffic) {
  Trace trace;
  trace.add(span(SpanKind::compute, 4096, 1, 1));
  EXPECT_EQ(trace.traffic.total(), 0);
  EXPECT_EQ(fold_traffic(trace.spans).total(), 0);
}

TEST(Trace, one_span_too_many_empties_the_list_but_keeps_counting) {
  Trace trace;
  for (std::int64_t i = 0; i < Trace::kSpansMax; ++i) trace.add(span(SpanKind::load, 2, 0, 1));
  EXPECT_EQ(static_cast<std::int64_t>(trace.spans.size()), Trace::kSpansMax);
  for (int i = 0; i < 3; ++i) {
    trace.add(span(SpanKind::load, 2, 0, 9));
    EXPECT_TRUE(trace.spans.empty());
  }
  EXPECT_EQ(trace.traffic.host_to_device_bytes, 2 * (Trace::kSpansMax + 3));
  EXPECT_EQ(trace.spans_added, Trace::kSpansMax + 3);
  EXPECT_EQ(trace.seconds, 9);
}

}  // namespace
}  // namespace strata
