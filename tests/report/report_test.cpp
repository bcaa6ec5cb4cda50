// The whole page: which sections appear, what hostile text and numbers do to it, how large it gets.

#include "strata/report.hpp"
#include "base/json.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "strata/error.hpp"
#include "tests/report/page_checks.hpp"

namespace strata {
namespace {

using test::has;
using test::kInf;
using test::kNan;

const std::vector<std::string> kSections{"map", "path",     "hold-out", "precision",
                                         "run", "timeline", "traffic"};

bool has_section(const std::string& page, const std::string& id) {
  return has(page, "<section id=\"" + id + "\">");
}

std::size_t occurrences(const std::string& page, const std::string& text) {
  std::size_t count = 0;
  for (auto at = page.find(text); at != std::string::npos; at = page.find(text, at + 1)) ++count;
  return count;
}

Json embedded(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"report-data\">";
  const auto begin = page.find(open) + open.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

ReportMap small_map(const std::string& name = "Observed", double odd = 4) {
  MapLayer points;
  points.name = name;
  points.unit = "mm";
  points.x = {0, 1, 0.5};
  points.y = {0, 0, 1};
  points.value = {1, 2, odd};
  MapLayer grid;
  grid.name = "Predicted";
  grid.grid = MapGrid{2, 3, 0, 1, 0, 1};
  grid.value = {1, 2, 3, odd, 5, kNan};
  return {{points, grid}, "x", "y"};
}

ReportHoldOut small_hold_out() {
  ReportHoldOut h;
  h.observed = {1, 2, 3, 4};
  h.predicted = {1.1, 2.1, 2.9, 9};
  h.standard_error = {1, 1, 1, 1};
  h.rmse = 2.5;
  return h;
}

/// A triangle of three rows of tiles: fp64 on the diagonal, and below it 32, none, 16.
ReportPrecisionMap small_precision_map(const std::string& title = "A") {
  return {
      title,
      3,
      {Element::fp64, Element::fp32, Element::none, Element::fp64, Element::fp16, Element::fp64}};
}

RunReport small_run(int spans, const std::string& queue = "compute 0") {
  RunReport run;
  run.n = 1000;
  run.seconds = 2;
  run.flops = 3e12;
  run.peak_device_bytes = 1 << 20;
  run.trace.queues = {{"cuda:0", queue, 0}, {"cuda:0", "copy in", 0}};
  for (int i = 0; i < spans; ++i) {
    Span span;
    span.kind = i % 2 == 0 ? SpanKind::compute : SpanKind::load;
    span.queue = static_cast<std::uint16_t>(i % 2);
    span.operation = static_cast<std::uint16_t>(i / 2 % 3);
    span.bytes = i % 2 == 0 ? 0 : 1024;
    span.begin = 2.0 * i / spans;
    span.end = 2.0 * (i + 1) / spans;
    run.trace.add(span);
  }
  run.traffic = run.trace.traffic;
  run.planned_traffic.host_to_device_bytes = run.traffic.host_to_device_bytes;
  run.planned_traffic.floor_bytes = 512;
  return run;
}

ReportData full() {
  ReportData data;
  data.title = "A title";
  data.subtitle = "A subtitle";
  data.command = "strata fit data.csv";
  data.date = "14 May 2025";
  data.figures = {{"Range", "0.184", "km", "a note"}};
  data.map = small_map();
  data.evaluations = {
      {0.1, 0.5, 1e-3, 2, -100}, {0.2, 0.5, 2e-3, 3, -90}, {0.3, 0.5, 3e-3, 1, -95}};
  data.hold_out = small_hold_out();
  data.precision_maps = {small_precision_map(), small_precision_map("L")};
  data.run = small_run(20);
  data.run->trace.operations = {"potrf", "trsm", "syrk"};
  data.device_memory_bytes = 2 << 20;
  return data;
}

TEST(Report, an_empty_page_has_no_section) {
  const std::string page = render_report(ReportData{});
  for (const std::string& id : kSections) EXPECT_FALSE(has_section(page, id)) << id;
  EXPECT_TRUE(embedded(page).empty());
}

TEST(Report, each_section_appears_with_its_data_and_only_then) {
  const ReportData all = full();
  const std::string page = render_report(all);
  for (const std::string& id : kSections) EXPECT_TRUE(has_section(page, id)) << id;
  for (const char* text : {"A title", "A subtitle", "strata fit data.csv", "14 May 2025", "0.184",
                           "a note", "Observed", "potrf"}) {
    EXPECT_TRUE(has(page, text)) << text;
  }
  for (const std::string& id : kSections) {
    ReportData data;
    if (id == "map") data.map = all.map;
    if (id == "path") data.evaluations = all.evaluations;
    if (id == "hold-out") data.hold_out = all.hold_out;
    if (id == "precision") data.precision_maps = all.precision_maps;
    if (id == "run" || id == "timeline" || id == "traffic") data.run = all.run;
    if (id == "run") {
      data.run->trace = {};
      data.run->traffic = {};
      data.run->planned_traffic = {};
    }
    const std::string part = render_report(data);
    for (const std::string& other : kSections) {
      const bool expected = data.run && id != "run"
                                ? other == "run" || other == "timeline" || other == "traffic"
                                : other == id;
      EXPECT_EQ(has_section(part, other), expected) << id << " " << other;
    }
  }
}

TEST(Report, charts_have_a_legend_a_table_and_numbers) {
  ReportData data;
  data.charts = {{"Rate <of> it", "order", "GFLOP/s", {{"left", {512, 1024}, {1.5, 22.25}}}},
                 {"Another", "order", "seconds", {}}};
  const std::string page = render_report(data);
  EXPECT_TRUE(has_section(page, "chart-0"));
  EXPECT_TRUE(has_section(page, "chart-1"));
  EXPECT_TRUE(has(page, "Rate &lt;of&gt; it"));
  EXPECT_TRUE(has(page, "<td>1,024</td><td>22.25</td>"));
  const Json charts = embedded(page).at("charts");
  EXPECT_EQ(charts.at(0).at("series").at(0).at("name"), "left");
  EXPECT_EQ(charts.at(0).at("series").at(0).at("y").at(1), 22.25);
  EXPECT_EQ(charts.at(1).at("y"), "seconds");
  data.charts[0].series[0].y.pop_back();
  EXPECT_THROW((void)render_report(data), Error);
}

TEST(Report, axes_of_charts_are_linear_or_logarithmic) {
  ReportData data;
  data.charts = {{"a",
                  "step",
                  "error",
                  {{"one", {1, 2}, {1e-16, 1}}},
                  AxisScale::linear,
                  AxisScale::logarithmic},
                 {"b", "accuracy", "ratio", {{"two", {1e-5, 2.5}, {1, 2}}}}};
  const std::string page = render_report(data);
  const Json charts = embedded(page).at("charts");
  EXPECT_EQ(charts.at(0).at("logX"), false);
  EXPECT_EQ(charts.at(0).at("logY"), true);
  EXPECT_EQ(charts.at(1).at("logX"), true);
  EXPECT_EQ(charts.at(1).at("logY"), false);
  EXPECT_TRUE(has(page, "<td>2.500</td><td>2.000</td>"));  // x is no count
  EXPECT_TRUE(has(page, "<td>1.000×10⁻⁵</td>"));
}

TEST(Report, bars_and_tables) {
  ReportData data;
  data.bars = {{"Time <by> part", "s", {"left", "right"}, {{"a&b", {1, 3}}, {"c", {2, 0}}}}};
  data.tables = {{"Counts", {"method", "n"}, {{"mgs", "30"}, {"<b>", "5"}}}};
  const std::string page = render_report(data);
  EXPECT_TRUE(has_section(page, "bars-0"));
  EXPECT_TRUE(has_section(page, "table-0"));
  EXPECT_TRUE(has(page, "Time &lt;by&gt; part"));
  // Shares of the longest bar, 4 s: its second part begins behind the first.
  EXPECT_TRUE(has(page, "left:0.00%;width:25.00%"));
  EXPECT_TRUE(has(page, "left:25.00%;width:75.00%"));
  EXPECT_TRUE(has(page, "left:0.00%;width:50.00%"));
  EXPECT_TRUE(has(page, "a&amp;b"));
  EXPECT_TRUE(has(page, "<th scope=\"row\">&lt;b&gt;</th><td>5</td>"));
  data.bars[0].bars[1].values.pop_back();
  EXPECT_THROW((void)render_report(data), Error);
  data.bars[0].bars[1].values.push_back(0);
  data.tables[0].rows[0].push_back("too many");
  EXPECT_THROW((void)render_report(data), Error);
}

TEST(Report, a_krylov_method_is_drawn_cycle_by_cycle_and_block_by_block) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ReportData data;
  data.krylov = {"‖b − A·x‖ / ‖b‖", {1e-2, 2e-6}, {1e-3, 1e-7}, 1e-6, {}};
  KrylovDecision decision;
  decision.s = 15;
  decision.passes = 2;
  decision.wide = true;
  decision.condition = kInfinity;
  decision.what = "shrink: 15 of 30 vectors";
  data.krylov->decisions.assign(3, decision);
  data.krylov->decisions[1] = {
      .column = 15, .s = 7, .passes = 1, .condition = 1e3, .loss = 1e-14, .what = ""};
  const std::string page = render_report(data);
  const Json charts = embedded(page).at("charts");
  ASSERT_EQ(charts.size(), 4U);
  EXPECT_EQ(charts.at(0).at("logY"), true);
  EXPECT_EQ(charts.at(0).at("series").at(0).at("y"), Json::array({1e-2, 2e-6}));
  EXPECT_EQ(charts.at(0).at("series").at(1).at("y"), Json::array({1e-3, 1e-7}));
  EXPECT_EQ(charts.at(0).at("series").at(2).at("y"), Json::array({1e-6, 1e-6}));
  EXPECT_EQ(charts.at(1).at("series").at(0).at("y").at(1), 1e3);
  EXPECT_EQ(charts.at(2).at("series").at(0).at("y").at(1), 1e-14);
  EXPECT_EQ(charts.at(3).at("series").at(0).at("y"), Json::array({15, 7, 15}));
  EXPECT_EQ(charts.at(3).at("series").at(1).at("y"), Json::array({2, 1, 2}));
  EXPECT_EQ(charts.at(3).at("series").at(2).at("y"), Json::array({2, 1, 2}));
  EXPECT_TRUE(has_section(page, "table-0"));
  EXPECT_TRUE(has(page, "<td>double-double</td><td>2</td><td>∞</td>"));
  EXPECT_TRUE(has(page, "shrink: 15 of 30 vectors"));
  // With many blocks the table has those about which something was decided.
  data.krylov->decisions.assign(5000, data.krylov->decisions[1]);
  data.krylov->decisions[4998] = decision;
  const std::string many = render_report(data);
  EXPECT_TRUE(has(many, "The first 1 of 5,000 blocks"));
  EXPECT_TRUE(has(many, "shrink: 15 of 30 vectors"));
  EXPECT_LE(embedded(many).at("charts").at(1).at("series").at(0).at("x").size(), 2000U);
}

TEST(Report, a_qr_factorization_is_drawn_step_by_step) {
  ReportData data;
  data.qr_steps = {{"shifted cholesky", true, true, std::numeric_limits<double>::infinity(), 0.5},
                   {"cholesky", true, false, 4.5, 1e-15}};
  const std::string page = render_report(data);
  const Json charts = embedded(page).at("charts");
  ASSERT_EQ(charts.size(), 1U);
  EXPECT_EQ(charts.at(0).at("series").at(1).at("y"), Json::array({0.5, 1e-15}));
  EXPECT_TRUE(has(page, "a pivot failed"));
  EXPECT_TRUE(has(page, "<td>wide</td><td>plain</td><td>4.5</td>"));
}

TEST(Report, evaluations_may_have_other_parameters) {
  ReportData data = full();
  data.other_parameters = {"time scale", "a<b"};
  for (std::size_t i = 0; i < 3; ++i)
    data.evaluations[i].others = {0.5 + static_cast<double>(i), 0.25};
  const std::string page = render_report(data);
  EXPECT_TRUE(has(page, "Held fixed: smoothness = 0.5000, a&lt;b = 0.2500."));
  EXPECT_TRUE(has(page, "<th scope=\"col\">time scale</th>"));
  EXPECT_TRUE(has(page, "data-parameter=\"4\""));
  EXPECT_EQ(embedded(page)["path"]["rows"][1], Json::array({2, -90, 0.2, 0.5, 2e-3, 3, 1.5, 0.25}));
  data.evaluations[1].others.pop_back();
  EXPECT_THROW((void)render_report(data), Error);
}

TEST(Report, headings_say_what_is_seen) {
  const std::string page = render_report(full());
  EXPECT_TRUE(has(page, "The log-likelihood reached −90.00 at evaluation 2 of 3"));
  EXPECT_TRUE(has(page, "Held fixed: smoothness = 0.5000."));
  EXPECT_TRUE(has(page, "75 % of 4 held-out values lie inside their 95 % interval"));
  EXPECT_TRUE(has(page, "The run took 2.00 s at 1.50 Tflop/s"));
  EXPECT_TRUE(has(page, "10.0 KiB moved, exactly as planned, 20.00 × the floor"));
  EXPECT_TRUE(has(page, "The field predicted from 3 observations lies between 1.00 and 5.00"));
}

TEST(Report, a_difference_from_the_plan_is_shown_link_by_link) {
  ReportData data = full();
  EXPECT_FALSE(has(render_report(data), "class=\"wrong\""));
  data.run->planned_traffic.host_to_device_bytes -= 1024;
  data.run->planned_traffic.device_to_host_bytes += 1024;  // the totals agree, the links do not
  const std::string page = render_report(data);
  EXPECT_TRUE(has(page, "10.0 KiB moved, which differs from the plan by 2.00 KiB"));
  EXPECT_TRUE(has(page, "✗ 1.00 KiB more"));
  EXPECT_TRUE(has(page, "✗ 1.00 KiB less"));
}

TEST(Report, precision_maps_draw_each_run_of_tiles_and_say_shares) {
  ReportData data;
  data.precision_maps = {small_precision_map("A & B")};
  const std::string page = render_report(data);
  EXPECT_TRUE(has(page, "50 % of the tiles of A &amp; B take fewer bits than fp64"));
  EXPECT_TRUE(has(page, "class=\"tile-fp64\" d=\"M0 0h1v1h-1zM1 1h1v1h-1zM2 2h1v1h-1z\""));
  EXPECT_TRUE(has(page, "class=\"tile-fp32\" d=\"M0 1h1v1h-1z\""));
  EXPECT_TRUE(has(page, "class=\"tile-none\" d=\"M0 2h1v1h-1z\""));
  EXPECT_TRUE(has(page, "class=\"tile-fp16\" d=\"M1 2h1v1h-1z\""));
  EXPECT_FALSE(has(page, "swatch tile-fp8"));
  EXPECT_TRUE(has(page,
                  "aria-label=\"Precision of the tiles of A &amp; B, fp64 50 %, fp32 16.7 %, "
                  "fp16 16.7 %, none 16.7 %\""));
  EXPECT_TRUE(has(page, "title=\"3 of 6 tiles\""));
  EXPECT_EQ(occurrences(page, "<svg viewBox"), 1U);
  EXPECT_EQ(occurrences(render_report(full()), "<svg viewBox"), 2U);

  // One element throughout: each row is one run.
  data.precision_maps = {{"L", 3, std::vector<Element>(6, Element::fp16x2)}};
  EXPECT_TRUE(has(render_report(data), "d=\"M0 0h1v1h-1zM0 1h2v1h-2zM0 2h3v1h-3z\""));
}

TEST(Report, a_large_precision_map_is_drawn_by_squares_of_what_is_most_common) {
  // 401 rows of tiles in squares of 3 × 3, the last of them cut: fp64 on the diagonal and below it,
  // fp8 elsewhere but for one square of which six tiles are none, and one where two have as many.
  constexpr std::int64_t kTiles = 401;
  ReportPrecisionMap map{"A", kTiles, {}};
  for (std::int64_t c = 0; c < kTiles; ++c) {
    for (std::int64_t r = c; r < kTiles; ++r) {
      Element element = r - c < 6 ? Element::fp64 : Element::fp8;
      if (c < 3 && r >= 300 && r < 302) element = Element::none;
      if (c == 0 && r >= 399) element = Element::fp16;
      if (c == 1 && r >= 399) element = Element::none;
      map.elements.push_back(element);
    }
  }
  ReportData data;
  data.precision_maps = {map};
  const std::string page = render_report(data);
  EXPECT_TRUE(has(page, "viewBox=\"0 0 134 134\""));
  EXPECT_TRUE(has(page, "401 × 401 tiles; a square shows what most of 3 × 3 tiles have"));
  EXPECT_TRUE(has(page, "class=\"tile-none\" d=\"M0 100h1v1h-1z\""));
  EXPECT_TRUE(has(page, "class=\"tile-fp16\" d=\"M0 133h1v1h-1z\"")) << "the wider of three";
  EXPECT_TRUE(has(page, "M1 133h"));
  EXPECT_TRUE(has(page, "class=\"tile-fp64\" d=\"M0 0h1v1h-1zM0 1h2v1h-2zM1 2h2"));
}

TEST(Report, pinning_is_shown_apart_where_there_was_some) {
  ReportData data = full();
  data.run->pinning_seconds = 0;
  EXPECT_FALSE(has(render_report(data), "Pinning host memory"));
  data.run->pinning_seconds = 3.25;
  EXPECT_TRUE(has(render_report(data), "Pinning host memory"));
  EXPECT_TRUE(has(render_report(data), "3.25"));
}

TEST(Report, the_tuning_file_of_a_run_is_named) {
  ReportData data = full();
  EXPECT_TRUE(has(render_report(data), "<dt>Tuning</dt><dd>none</dd>"));
  data.run->tuning = "/home/a&b/potrf.json 85944171f73967e8";
  EXPECT_TRUE(has(render_report(data),
                  "<dt>Tuning</dt><dd>/home/a&amp;b/potrf.json 85944171f73967e8</dd>"));
}

TEST(Report, a_simulated_run_is_never_called_measured) {
  ReportData data = full();
  EXPECT_TRUE(has(render_report(data), "measured"));
  data.simulated = true;
  const std::string page = render_report(data);
  EXPECT_TRUE(has(page, "simulated"));
  EXPECT_FALSE(has(page, "measured"));
}

TEST(Report, a_prediction_that_is_absent_is_not_shown) {
  ReportData data;
  data.run = small_run(6);
  data.run->predicted_seconds.reset();
  EXPECT_FALSE(has(render_report(data), "<th scope=\"row\">Predicted</th>"));
  data.run->predicted_seconds = 1.75;
  const std::string page = render_report(data);
  EXPECT_TRUE(has(page, "<th scope=\"row\">Predicted</th>"));
  EXPECT_TRUE(has(page, "<td>1.75 s</td>"));
}

TEST(Report, a_plan_shows_what_is_predicted_as_its_time) {
  ReportData data;
  data.run = small_run(6);
  data.simulated = true;
  data.run->seconds = 0;
  data.run->predicted_seconds = 1.75;
  const std::string page = render_report(data);
  EXPECT_TRUE(has(page, "<th scope=\"row\">Simulated</th>"));
  EXPECT_TRUE(has(page, "<td>1.75 s</td>"));
  EXPECT_FALSE(has(page, "<th scope=\"row\">Predicted</th>"));
}

TEST(Report, hostile_text_stays_text_everywhere) {
  const std::string hostile = "</script><img src=x onerror=alert(1)>\"'&\xff\xe2\x80\xa8";
  ReportData data = full();
  data.title = data.subtitle = data.command = data.date = hostile;
  data.figures = {{hostile, hostile, hostile, hostile}};
  data.map = small_map(hostile);
  data.map->layers[0].unit = data.map->layers[1].unit = hostile;
  data.map->x_label = data.map->y_label = hostile;
  data.hold_out->unit = hostile;
  data.precision_maps = {small_precision_map(hostile)};
  data.run = small_run(20, hostile);
  data.run->policy = hostile;
  data.run->devices = {hostile};
  data.run->trace.operations = {hostile, hostile, hostile};
  const std::string page = render_report(data);
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_FALSE(has(page, "\"'&\xff"));
  EXPECT_FALSE(has(page, "\xff"));
  EXPECT_EQ(occurrences(page, "</script>"), occurrences(render_report(full()), "</script>"));
  EXPECT_TRUE(has(page, "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"));
  const Json numbers = embedded(page);
  const std::string as_unicode =
      "</script><img src=x onerror=alert(1)>\"'&\xEF\xBF\xBD\xe2\x80\xa8";
  EXPECT_EQ(numbers["timeline"]["tracks"][0]["name"], as_unicode);
  EXPECT_EQ(numbers["map"]["layers"][0]["name"], as_unicode);
  EXPECT_EQ(numbers["holdOut"]["unit"], as_unicode);
}

TEST(Report, values_that_are_not_finite_are_missing_and_harm_nothing) {
  ReportData data = full();
  data.map = small_map("Observed", kInf);
  data.map->layers[0].x[1] = kNan;
  data.evaluations = {{kNan, kInf, -kInf, 0, kNan}, {0.1, 1, 0, 2, -kInf}, {0.2, 1, 0, 2, -80}};
  data.hold_out->observed = {1, kNan, 3, kInf};
  data.hold_out->standard_error = {0, kNan, -1, kInf};
  data.run->trace.spans[3].begin = kNan;
  data.run->trace.spans[4].end = kInf;
  data.run->trace.spans[5].flops = kNan;
  data.run->flops = kInf;
  data.run->predicted_seconds = kNan;
  const std::string page = render_report(data);
  const Json numbers = embedded(page);
  EXPECT_EQ(numbers["timeline"]["seconds"], 2.0);
  EXPECT_TRUE(numbers["path"]["rows"][0][1].is_null());
  EXPECT_EQ(numbers["path"]["rows"][2][1], -80);
  EXPECT_TRUE(has(page, "The log-likelihood reached −80.00 at evaluation 3 of 3"));
  EXPECT_FALSE(has(page, ">nan"));
  EXPECT_FALSE(has(page, ">inf"));
  data.map->layers[0].value = data.map->layers[0].x = data.map->layers[0].y = {kNan, kNan};
  EXPECT_NO_THROW(static_cast<void>(embedded(render_report(data))));
}

TEST(Report, the_page_refers_to_nothing_outside_itself) {
  const std::string page = render_report(full());
  for (const char* text : {"http://", "https://", "//cdn", "@import", "url(", "src=", "fetch("}) {
    EXPECT_FALSE(has(page, text)) << text;
  }
  EXPECT_TRUE(has(page, "default-src 'none'"));
}

TEST(Report, a_huge_run_gives_a_bounded_page_that_says_it_merged) {
  ReportData data = full();
  data.run = small_run(300'000);
  MapLayer& points = data.map->layers[0];
  points.x.clear();
  points.y.clear();
  points.value.clear();
  for (int i = 0; i < 200'000; ++i) {
    points.x.push_back(i % 500);
    points.y.push_back(i / 500);
    points.value.push_back(std::sin(i));
  }
  MapLayer& grid = data.map->layers[1];
  grid.grid = MapGrid{1500, 1000, 0, 499, 0, 399};
  grid.value.assign(1'500'000, 0.25);
  data.evaluations.resize(50'000, {0.2, 1, 0, 2, -80});
  data.hold_out->observed.assign(80'000, 1);
  data.hold_out->predicted = data.hold_out->standard_error = data.hold_out->observed;
  for (ReportPrecisionMap& map : data.precision_maps) {  // the most that are drawn, no two alike
    map.tiles = 160;
    map.elements.clear();
    for (int c = 0; c < 160; ++c) {
      for (int r = c; r < 160; ++r)
        map.elements.push_back((r + c) % 2 == 0 ? Element::fp64 : Element::fp16x2);
    }
  }
  const std::string page = render_report(data);
  EXPECT_LT(page.size(), 3'000'000U);
  EXPECT_TRUE(has(page, "300,000 spans; neighbours are merged"));
  EXPECT_TRUE(has(page, "200,000 points, cell means"));
  EXPECT_TRUE(has(page, "Drawn: 1,500 of 80,000"));
  EXPECT_TRUE(has(page, "The first 400 of 50,000 evaluations"));
  const Json numbers = embedded(page);
  EXPECT_LE(numbers["map"]["layers"][1]["grid"]["nx"].get<int>(), 500);
  EXPECT_NEAR(numbers["map"]["layers"][1]["grid"]["v"]["lo"].get<double>(), 0.25, 1e-12);
}

TEST(Report, a_run_too_long_for_spans_says_so) {
  ReportData data = full();
  data.run->trace.spans.clear();
  data.run->trace.spans_added = Trace::kSpansMax + 1;
  const std::string page = render_report(data);
  EXPECT_TRUE(has(page, "The run is too long for a timeline"));
  EXPECT_FALSE(embedded(page).contains("timeline"));
}

TEST(Report, vectors_that_do_not_fit_together_are_misuse) {
  const auto kind_of = [](const ReportData& data) {
    try {
      static_cast<void>(render_report(data));
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::cancelled;
  };
  ReportData data = full();
  data.map->layers[0].x.pop_back();
  EXPECT_EQ(kind_of(data), ErrorKind::misuse);
  data = full();
  data.map->layers[1].grid->ny = 4;
  EXPECT_EQ(kind_of(data), ErrorKind::misuse);
  data = full();
  data.hold_out->predicted.pop_back();
  EXPECT_EQ(kind_of(data), ErrorKind::misuse);
  data = full();
  data.hold_out->standard_error.pop_back();
  EXPECT_EQ(kind_of(data), ErrorKind::misuse);
  for (const std::int64_t tiles : {-3, 0, 2, 4, 1 << 30}) {
    data = full();
    data.precision_maps[1].tiles = tiles;
    EXPECT_EQ(kind_of(data), ErrorKind::misuse) << tiles;
  }
  data = full();
  data.precision_maps[0].elements[2] = static_cast<Element>(kElements);
  EXPECT_EQ(kind_of(data), ErrorKind::misuse);
}

TEST(Report, write_replaces_a_file_whole) {
  const auto path = std::filesystem::path(testing::TempDir()) / "strata_report.html";
  std::ofstream(path) << std::string(1 << 20, 'x');
  write_report(path.string(), full());
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  EXPECT_EQ(text.str(), render_report(full()));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));
  std::filesystem::remove(path);
}

TEST(Report, unwritable_path_is_a_storage_error_that_names_it) {
  for (const std::string& path : {testing::TempDir() + "/strata_absent/report.html",
                                  std::string(testing::TempDir()), std::string()}) {
    try {
      write_report(path, full());
      FAIL() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::storage);
      EXPECT_NE(std::string(error.what()).find("'" + path + "'"), std::string::npos)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace strata
