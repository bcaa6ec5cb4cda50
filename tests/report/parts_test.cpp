// The parts of the page: text, columns, colour maps, merged timelines.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/json.hpp"
#include "report/colormap.hpp"
#include "report/columns.hpp"
#include "report/text.hpp"
#include "report/timeline.hpp"
#include "tests/report/page_checks.hpp"

namespace strata::page {
namespace {

using test::kInf;
using test::kNan;

TEST(Text, escape_leaves_no_markup_and_no_broken_utf8) {
  EXPECT_EQ(escape("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(escape("Matérn − 𝜈"), "Matérn − 𝜈");
  const std::string r = "\xEF\xBF\xBD";
  EXPECT_EQ(escape("\xC0\xBC"), r + r);          // an overlong '<'
  EXPECT_EQ(escape("\xED\xA0\x80"), r + r + r);  // a surrogate
  EXPECT_EQ(escape("\xE2\x82"), r + r);          // cut short
  EXPECT_EQ(escape(std::string_view("\0x", 2)), r + "x");
}

TEST(Text, numbers) {
  EXPECT_EQ(count_text(1234567), "1,234,567");
  EXPECT_EQ(count_text(-999), "−999");
  EXPECT_EQ(number_text(-7891.24), "−7,891");
  EXPECT_EQ(number_text(0.18345), "0.1835");
  EXPECT_EQ(number_text(99.996), "100.0");
  EXPECT_EQ(number_text(3.2e-7, 2), "3.2×10⁻⁷");
  EXPECT_EQ(number_text(kNan), "–");
  EXPECT_EQ(number_text(-kInf), "–");
  EXPECT_EQ(fixed_text(-0.001, 2), "0.00");
  EXPECT_EQ(fixed_text(-1234.5, 2), "−1,234.50");
  EXPECT_EQ(seconds_text(0.0000123), "12.3 µs");
  EXPECT_EQ(seconds_text(0.0123), "12.3 ms");
  EXPECT_EQ(seconds_text(12.34), "12.3 s");
  EXPECT_EQ(seconds_text(200), "3 min 20 s");
  EXPECT_EQ(seconds_text(7500), "2 h 05 min");
  EXPECT_EQ(rate_text(41.23e12, "flop/s"), "41.2 Tflop/s");
  EXPECT_EQ(rate_text(999.9, "B"), "1.00 kB");
  EXPECT_EQ(percent_text(0.9419), "94.2 %");
  EXPECT_EQ(percent_text(1), "100 %");
  EXPECT_EQ(percent_text(0.00001), "under 0.1 %");
  EXPECT_EQ(plural(1, "point"), "1 point");
  EXPECT_EQ(plural(2000, "point"), "2,000 points");
}

/// An independent decoder: RFC 4648 by a bit buffer.
std::vector<std::uint8_t> decoded(const std::string& text) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  unsigned buffer = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=') break;
    buffer = buffer << 6 | static_cast<unsigned>(alphabet.find(c));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::uint8_t>(buffer >> bits));
  }
  return bytes;
}

TEST(Columns, base64_is_rfc_4648) {
  const auto bytes = [](std::string_view s) {
    return std::vector<std::uint8_t>(s.begin(), s.end());
  };
  EXPECT_EQ(base64(bytes("")), "");
  EXPECT_EQ(base64(bytes("f")), "Zg==");
  EXPECT_EQ(base64(bytes("fo")), "Zm8=");
  EXPECT_EQ(base64(bytes("foobar")), "Zm9vYmFy");
  EXPECT_EQ(decoded(base64(std::vector<std::uint32_t>{0x04030201U, 0xfffefdfcU})),
            (std::vector<std::uint8_t>{1, 2, 3, 4, 0xfc, 0xfd, 0xfe, 0xff}));
  EXPECT_EQ(decoded(base64(std::vector<float>{1.0F})),
            (std::vector<std::uint8_t>{0, 0, 0x80, 0x3f}));
}

TEST(Columns, quantized_values_come_back_within_half_a_step) {
  const std::vector<double> values{-3, 7.25, kNan, 0.1, kInf, 12, -kInf, 11.9999};
  const Json column = quantized(values);
  const auto bytes = decoded(column["q"].get<std::string>());
  ASSERT_EQ(bytes.size(), 2 * values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const int code = bytes[2 * i] | bytes[2 * i + 1] << 8;
    EXPECT_EQ(code == 65535, !std::isfinite(values[i])) << i;
    if (code == 65535) continue;
    EXPECT_NEAR(-3 + 15.0 * code / 65534, values[i], 15.0 / 131068 * 1.0001) << i;
  }
}

TEST(Columns, ranges_at_the_edge_of_double_do_not_overflow) {
  const Json column = quantized({-1.7e308, 0, 1.7e308});
  const auto bytes = decoded(column["q"].get<std::string>());
  EXPECT_EQ(bytes, (std::vector<std::uint8_t>{0, 0, 0xff, 0x7f, 0xfe, 0xff}));
  EXPECT_EQ(quantized({kNan, kNan})["q"], "/////w==");
  EXPECT_EQ(quantized({5, 5})["lo"], 5.0);
}

/// Lightness L* (CIE 1976) of an sRGB colour: another space than the one the maps are built in.
double lightness(const Rgb& color) {
  const auto linear = [](int byte) {
    const double v = byte / 255.0;
    return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4);
  };
  const double y =
      0.2126 * linear(color.red) + 0.7152 * linear(color.green) + 0.0722 * linear(color.blue);
  return y > 0.008856 ? 116 * std::cbrt(y) - 16 : 903.3 * y;
}

TEST(Colormap, lightness_is_monotone_with_even_steps) {
  for (const auto& [colors, sign] :
       {std::pair(value_colormap(), 1), {uncertainty_colormap(), -1}}) {
    const double whole = sign * (lightness(colors[255]) - lightness(colors[0]));
    EXPECT_GT(whole, 65);
    for (std::size_t i = 0; i + 16 < colors.size(); i += 16) {
      const double step =
          sign * (lightness(colors[i + 16]) - lightness(colors[i])) / whole * 256 / 16;
      EXPECT_GT(step, 0.35) << i;
      EXPECT_LT(step, 1.9) << i;
    }
  }
}

TEST(Colormap, text_has_six_digits_a_color) {
  Colormap colors{};
  colors[1] = {255, 1, 16};
  EXPECT_EQ(hex_text(colors).size(), 6U * 256U);
  EXPECT_EQ(hex_text(colors).substr(0, 18), "000000ff0110000000");
}

Span span(int queue, SpanKind kind, int operation, double begin, double end) {
  Span s;
  s.queue = static_cast<std::uint16_t>(queue);
  s.kind = kind;
  s.operation = static_cast<std::uint8_t>(operation);
  s.begin = begin;
  s.end = end;
  s.bytes = kind == SpanKind::compute ? 0 : 10;
  s.flops = kind == SpanKind::compute ? 3 : 0;
  return s;
}

TEST(Timeline, few_spans_stay_as_they_are) {
  Trace trace;
  trace.queues = {{"d", "a", 0}, {"d", "b", 0}};
  trace.add(span(1, SpanKind::compute, 4, 1, 2));
  trace.add(span(0, SpanKind::load, 0, 0.5, 0.75));
  trace.add(span(1, SpanKind::store, 0, 0, 1));
  const Timeline timeline = timeline_of(trace);
  EXPECT_FALSE(timeline.merged);
  EXPECT_EQ(timeline.seconds, 2);
  ASSERT_EQ(timeline.tracks.size(), 2U);
  ASSERT_EQ(timeline.tracks[1].boxes.size(), 2U);
  EXPECT_EQ(timeline.tracks[1].boxes[0].code, 1);  // in the order of time, not of arrival
  EXPECT_EQ(timeline.tracks[1].boxes[1].code, 6);
  EXPECT_EQ(timeline.tracks[1].busy_seconds, 2);
  EXPECT_EQ(timeline.tracks[0].bytes, 10);
  EXPECT_EQ(timeline.tracks[1].flops, 3);
}

TEST(Timeline, no_spans_and_unknown_queues) {
  EXPECT_EQ(timeline_of(Trace{}).spans, 0);
  Trace trace;
  trace.add(span(2, SpanKind::compute, 0, 0, 0));
  const Timeline timeline = timeline_of(trace);
  ASSERT_EQ(timeline.tracks.size(), 3U);
  EXPECT_EQ(timeline.tracks[2].name, "queue 2");
  EXPECT_EQ(code_name(0, {}), "load");
  EXPECT_EQ(code_name(3, {"potrf"}), "operation 1");
  EXPECT_EQ(code_name(2, {"potrf"}), "potrf");
}

TEST(Timeline, merging_keeps_sums_order_and_a_bounded_number_of_boxes) {
  Trace trace;
  const int count = 300'000;
  double time = 0;
  for (int i = 0; i < count; ++i) {
    const double length = 1e-5 * (1 + i % 7) * (i % 1000 == 0 ? 500 : 1);
    trace.spans.push_back(span(i % 3, i % 3 == 0 ? SpanKind::load : SpanKind::compute, i / 3 % 4,
                               time, time + 2 * length));
    time += length;
  }
  const Timeline timeline = timeline_of(trace);
  EXPECT_TRUE(timeline.merged);
  std::size_t boxes = 0;
  for (int q = 0; q < 3; ++q) {
    const Track& track = timeline.tracks[static_cast<std::size_t>(q)];
    boxes += track.boxes.size();
    double busy = 0, expected_busy = 0, flops = 0, bytes = 0;
    std::int64_t spans = 0;
    std::array<double, 6> by_code{}, expected_by_code{};
    for (std::size_t i = 0; i < track.boxes.size(); ++i) {
      const Box& box = track.boxes[i];
      EXPECT_GE(box.begin, track.boxes[i == 0 ? 0 : i - 1].begin);
      busy += box.busy_seconds;
      flops += box.flops;
      bytes += box.bytes;
      spans += box.count;
      by_code[static_cast<std::size_t>(box.code)] += box.busy_seconds;
    }
    for (const Span& s : trace.spans) {
      if (s.queue != q) continue;
      expected_busy += s.end - s.begin;
      expected_by_code[static_cast<std::size_t>(code_of(s))] += s.end - s.begin;
    }
    EXPECT_EQ(spans, count / 3);
    EXPECT_NEAR(busy, expected_busy, 1e-9 * expected_busy);
    EXPECT_EQ(flops, q == 0 ? 0 : 3.0 * count / 3);
    EXPECT_EQ(bytes, q == 0 ? 10.0 * count / 3 : 0);
    for (std::size_t code = 0; code < by_code.size(); ++code) {
      EXPECT_NEAR(by_code[code], expected_by_code[code], 1e-9 * expected_busy) << code;
    }
  }
  EXPECT_LE(boxes, kBoxesMax + 100);
  EXPECT_GT(boxes, kBoxesMax / 20);
}

TEST(Timeline, spans_at_one_moment_merge_into_one_box_for_each_operation) {
  Trace trace;
  for (std::size_t i = 0; i <= kBoxesMax; ++i) {
    trace.spans.push_back(span(0, SpanKind::compute, static_cast<int>(i % 5), 0, 0));
  }
  EXPECT_EQ(timeline_of(trace).tracks[0].boxes.size(), 5U);
}

}  // namespace
}  // namespace strata::page
