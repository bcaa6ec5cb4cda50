// strata bench potf2: every variant and blocking, and the tuning table that comes of them.

#include <fmt/core.h>

#include "base/check.hpp"
#include "bench/program/program.hpp"

namespace strata::cli {
namespace {

using bench::Potf2Measurement;
using bench::Potf2Result;
using bench::Potf2Row;
using bench::TimedOrder;

constexpr PotrfVariant kVariants[] = {PotrfVariant::fused, PotrfVariant::left, PotrfVariant::right};

Json measurement_json(const Potf2Measurement& m, double flops) {
  return {{"variant", bench::to_string(m.options.variant)},
          {"ib", m.options.ib},
          {"recnb", m.options.recnb},
          {"nb", m.options.nb},
          {"seconds", m.seconds},
          {"flops_per_second", flops / m.seconds}};
}

Json row_json(const Potf2Row& row) {
  Json measurements = Json::array();
  for (const Potf2Measurement& m : row.measurements)
    measurements.push_back(measurement_json(m, row.flops));
  Json object = {{"n", row.n},
                 {"best", measurement_json(row.best(), row.flops)},
                 {"measurements", measurements}};
  if (!row.peer.name.empty()) {
    object["peer"] = {{"name", row.peer.name},
                      {"seconds", row.peer.seconds},
                      {"flops_per_second", row.flops / row.peer.seconds}};
    object["ratio_to_peer"] = row.peer.seconds / row.best().seconds;
  }
  return object;
}

Json order_json(const TimedOrder& order) {
  return {{"n", order.n},
          {"seconds", order.seconds},
          {"flops_per_second", order.flops / order.seconds}};
}

/// The small orders of which a matrix of order `whole.n` can have several diagonal blocks.
std::vector<TimedOrder> blocks_of(const TimedOrder& whole, const Potf2Result& result) {
  std::vector<TimedOrder> blocks;
  for (const TimedOrder& small : result.small) {
    if (small.n < whole.n) blocks.push_back(small);
  }
  return blocks;
}

void put_shares(Json& object, const Potf2Result& result) {
  object["small"] = Json::array();
  for (const TimedOrder& small : result.small) object["small"].push_back(order_json(small));
  if (result.whole.empty()) return;
  object["share_of"] = Json::array();
  for (const TimedOrder& whole : result.whole) {
    Json entry = order_json(whole);
    entry["upper_bounds"] = Json::array();
    for (const TimedOrder& small : blocks_of(whole, result)) {
      const double seconds = seconds_bound(whole, small);
      entry["upper_bounds"].push_back(
          {{"nb", small.n}, {"seconds", seconds}, {"share", seconds / whole.seconds}});
    }
    object["share_of"].push_back(entry);
  }
}

void print_shares(const Potf2Result& result) {
  fmt::print("one factorization of a small order\n{:>8} {:>11} {:>10}\n", "nb", "seconds",
             "GFLOP/s");
  for (const TimedOrder& small : result.small) {
    fmt::print("{:8} {:11.4g} {:10.1f}\n", small.n, small.seconds,
               small.flops / small.seconds / 1e9);
  }
  for (const TimedOrder& whole : result.whole) {
    fmt::print(
        "n = {}: {:.4g} s, {:.1f} GFLOP/s; n/nb diagonal blocks, if nothing hid them (an "
        "upper bound):\n",
        whole.n, whole.seconds, whole.flops / whole.seconds / 1e9);
    for (const TimedOrder& small : blocks_of(whole, result)) {
      const double seconds = seconds_bound(whole, small);
      fmt::print("{:8} {:11.4g} {:9.1f}%\n", small.n, seconds, 100 * seconds / whole.seconds);
    }
  }
}

void print_rows(const Potf2Result& result) {
  fmt::print("{} ({}), GFLOP/s\n", result.device, result.model);
  fmt::print("{:>8} {:>10} {:>10} {:>10} {:>10}  {}\n", "n", "fused", "left", "right", "peer",
             "best");
  for (const Potf2Row& row : result.rows) {
    const auto rate = [&](double seconds) {
      return fmt::format("{:.1f}", row.flops / seconds / 1e9);
    };
    const auto best_of = [&](PotrfVariant variant) {
      const Potf2Measurement* m = row.best(variant);
      return m == nullptr ? std::string("-") : rate(m->seconds);
    };
    const PotrfOptions& o = row.best().options;
    const std::string best = result.tunable
                                 ? fmt::format("{} ib {} recnb {} nb {}",
                                               bench::to_string(o.variant), o.ib, o.recnb, o.nb)
                                 : fmt::format("{} (nothing to tune)", rate(row.best().seconds));
    fmt::print("{:8} {:>10} {:>10} {:>10} {:>10}  {}\n", row.n, best_of(kVariants[0]),
               best_of(kVariants[1]), best_of(kVariants[2]),
               row.peer.name.empty() ? "-" : rate(row.peer.seconds), best);
  }
}

/// One line: over the orders, the best of the measurements that `belongs` takes.
template <class F>
void add_series(ReportChart& chart, const Potf2Result& result, std::string name, F belongs) {
  ReportSeries series;
  series.name = std::move(name);
  for (const Potf2Row& row : result.rows) {
    double seconds = 0;
    for (const Potf2Measurement& m : row.measurements) {
      if (belongs(m.options) && (seconds == 0 || m.seconds < seconds)) seconds = m.seconds;
    }
    if (seconds == 0) continue;
    series.x.push_back(static_cast<double>(row.n));
    series.y.push_back(row.flops / seconds / 1e9);
  }
  if (!series.x.empty()) chart.series.push_back(std::move(series));
}

ReportChart variants_chart(const Potf2Result& result) {
  ReportChart chart{
      "Rate against the order: the best blocking of each variant", "order", "GFLOP/s", {}};
  for (const PotrfVariant variant : kVariants) {
    add_series(chart, result, bench::to_string(variant),
               [=](const PotrfOptions& o) { return o.variant == variant && o.ib != 4; });
  }
  if (!result.tunable) add_series(chart, result, "ours", [](const PotrfOptions&) { return true; });
  ReportSeries peer;
  for (const Potf2Row& row : result.rows) {
    if (row.peer.name.empty()) continue;
    peer.name = row.peer.name;
    peer.x.push_back(static_cast<double>(row.n));
    peer.y.push_back(row.flops / row.peer.seconds / 1e9);
  }
  if (!peer.x.empty()) chart.series.push_back(std::move(peer));
  return chart;
}

void add_share_charts(ReportData& data, const Potf2Result& result) {
  ReportChart times{"Time of one factorization of a small order", "order", "microseconds", {}};
  times.series.emplace_back().name = "ours";
  for (const TimedOrder& small : result.small) {
    times.series[0].x.push_back(static_cast<double>(small.n));
    times.series[0].y.push_back(1e6 * small.seconds);
  }
  if (!result.small.empty()) data.charts.push_back(std::move(times));
  ReportChart shares{"Diagonal blocks in the whole, if nothing hid them: an upper bound",
                     "order of a block",
                     "percent of the time",
                     {}};
  for (const TimedOrder& whole : result.whole) {
    ReportSeries line;
    line.name = fmt::format("n = {}", whole.n);
    for (const TimedOrder& small : blocks_of(whole, result)) {
      line.x.push_back(static_cast<double>(small.n));
      line.y.push_back(100 * seconds_bound(whole, small) / whole.seconds);
    }
    if (!line.x.empty()) shares.series.push_back(std::move(line));
  }
  if (!shares.series.empty()) data.charts.push_back(std::move(shares));
}

ReportData page_of(const Potf2Result& result) {
  ReportData data;
  data.title = "Tuning of potrf";
  data.subtitle = fmt::format("{}, {}", result.device, result.model);
  data.charts.push_back(variants_chart(result));
  add_share_charts(data, result);
  if (!result.tunable) return data;
  ReportChart tiles{"fused: inner block and tile", "order", "GFLOP/s", {}};
  for (const int ib : {4, 8}) {
    for (const int recnb : {64, 128}) {
      add_series(tiles, result, fmt::format("ib {}, recnb {}", ib, recnb),
                 [=](const PotrfOptions& o) {
                   return o.variant == PotrfVariant::fused && o.ib == ib && o.recnb == recnb;
                 });
    }
  }
  data.charts.push_back(std::move(tiles));
  for (const PotrfVariant variant : {PotrfVariant::left, PotrfVariant::right}) {
    ReportChart panels{
        fmt::format("{}: width of a panel", bench::to_string(variant)), "order", "GFLOP/s", {}};
    for (const int nb : {128, 256, 512, 1024}) {
      add_series(panels, result, fmt::format("nb {}", nb),
                 [=](const PotrfOptions& o) { return o.variant == variant && o.nb == nb; });
    }
    if (!panels.series.empty()) data.charts.push_back(std::move(panels));
  }
  return data;
}

}  // namespace

int run_potf2(const Potf2Arguments& arguments, const CommonOptions& common) {
  const CholeskyOptions options = common.cholesky_options();
  require(arguments.tune || arguments.output.empty(), ErrorKind::misuse, "cli",
          "--output '{}' is for --tune", arguments.output);
  const std::string path = arguments.output.empty() ? potrf_tuning_path() : arguments.output;
  require(!arguments.tune || !path.empty(), ErrorKind::misuse, "cli",
          "there is no place for the table: name one with --output");
  check_outputs(common, {{"--output", arguments.output}}, {});
  bench::Potf2Bench bench = arguments.bench;
  bench.precision = arguments.precision == "fp32" ? Element::fp32 : Element::fp64;
  bench.seed = common.seed;
  const Potf2Result result = run_potf2_bench(bench, options);
  const bool writes = arguments.tune && result.tunable;
  Json results = Json::array();
  for (const Potf2Row& row : result.rows) results.push_back(row_json(row));
  Json object = {{"benchmark", "potf2"},     {"precision", arguments.precision},
                 {"repeats", bench.repeats}, {"device", result.device},
                 {"model", result.model},    {"results", results}};
  put_shares(object, result);
  if (writes) {
    begin_output();
    write_potrf_tuning(path, result.tuning(bench.precision));
    object["tuning"] = path;
  }
  return finish(common, page_of(result), object, [&] {
    print_rows(result);
    print_shares(result);
    if (writes) fmt::print("table written to {}\n", path);
  });
}

}  // namespace strata::cli
