#include "bench/program/sparse_methods.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace strata::cli {
namespace {

using bench::SmallRate;
using bench::SparseMethod;
using bench::SparseRow;

/// Seconds by which methods are compared: those of the device, where all of it is there.
double seconds_of(const SparseMethod& method) {
  return method.device_seconds > 0 ? method.device_seconds : method.refactor.seconds;
}

double rate_of(const SparseRow& row, const SparseMethod& method) {
  return row.stored_flops / seconds_of(method);
}

const SparseMethod* find(const SparseRow& row, const std::string& name) {
  const auto found = std::find_if(row.methods.begin(), row.methods.end(),
                                  [&](const SparseMethod& method) { return method.name == name; });
  return found == row.methods.end() ? nullptr : &*found;
}

/// The line of `name` in a chart, which is appended if it is new.
ReportSeries& line_of(ReportChart& chart, const std::string& name) {
  const auto found = std::find_if(chart.series.begin(), chart.series.end(),
                                  [&](const ReportSeries& line) { return line.name == name; });
  return found == chart.series.end() ? chart.series.emplace_back(ReportSeries{name, {}, {}})
                                     : *found;
}

std::vector<const SparseRow*> by_flops(const std::vector<SparseRow>& rows) {
  std::vector<const SparseRow*> sorted;
  for (const SparseRow& row : rows)
    if (row.fine() && !row.methods.empty()) sorted.push_back(&row);
  std::sort(sorted.begin(), sorted.end(), [](const SparseRow* a, const SparseRow* b) {
    return a->stored_flops < b->stored_flops;
  });
  return sorted;
}

ReportChart rate_chart(const std::vector<const SparseRow*>& rows) {
  ReportChart chart{"Rates of the methods", "flops with stored zeros", "GFLOP/s by them", {},
                    AxisScale::logarithmic, AxisScale::logarithmic};
  for (const SparseRow* row : rows) {
    for (const SparseMethod& method : row->methods) {
      ReportSeries& line = line_of(chart, method.name);
      line.x.push_back(row->stored_flops);
      line.y.push_back(rate_of(*row, method) / 1e9);
    }
  }
  return chart;
}

/// Seconds of each other method over those of the method `ours`, where a row has it.
ReportChart speedup_chart(const std::vector<const SparseRow*>& rows, const std::string& ours) {
  ReportChart chart{"Speedup of " + ours,           "flops with stored zeros",
                    "the others' seconds over its", {},
                    AxisScale::logarithmic,         AxisScale::logarithmic};
  for (const SparseRow* row : rows) {
    const SparseMethod* mine = find(*row, ours);
    if (mine == nullptr) continue;
    for (const SparseMethod& method : row->methods) {
      if (&method == mine) continue;
      ReportSeries& line = line_of(chart, "over " + method.name);
      line.x.push_back(row->stored_flops);
      line.y.push_back(seconds_of(method) / seconds_of(*mine));
    }
  }
  return chart;
}

ReportChart work_chart(const SparseRow& row) {
  ReportChart chart{fmt::format("{}: tasks at work", row.name),
                    "ms",
                    "tasks at work",
                    {},
                    AxisScale::linear,
                    AxisScale::linear};
  for (const SparseMethod& method : row.methods) {
    if (method.trace.spans.empty()) continue;
    ReportSeries& line = line_of(chart, method.name);
    line.y = method.at_work;
    for (std::size_t k = 0; k < line.y.size(); ++k)
      line.x.push_back(1e3 * method.trace.seconds * (static_cast<double>(k) + 0.5) /
                       static_cast<double>(line.y.size()));
  }
  return chart;
}

void add_small_charts(const std::string& what, const std::vector<SmallRate>& rates,
                      ReportData& page) {
  std::int64_t order = 0;
  for (const SmallRate& rate : rates) {
    if (rate.order != order)
      page.charts.push_back({fmt::format("{} of order {} by batch and streams", what, rate.order),
                             "of a batch",
                             "GFLOP/s",
                             {},
                             AxisScale::logarithmic,
                             AxisScale::logarithmic});
    order = rate.order;
    ReportSeries& line = line_of(page.charts.back(), fmt::format("{} streams", rate.streams));
    line.x.push_back(static_cast<double>(rate.batch));
    line.y.push_back(rate.flops_per_second / 1e9);
  }
}

Json rates_json(const std::vector<SmallRate>& rates) {
  Json list = Json::array();
  for (const SmallRate& rate : rates)
    list.push_back({{"order", rate.order},
                    {"batch", rate.batch},
                    {"streams", rate.streams},
                    {"flops_per_second", rate.flops_per_second}});
  return list;
}

void print_rates(const std::vector<SmallRate>& rates, const std::string& title) {
  if (rates.empty()) return;
  fmt::print("{}\n  {:>6}{:>8}{:>9}{:>12}\n", title, "order", "batch", "streams", "GFLOP/s");
  for (const SmallRate& rate : rates)
    fmt::print("  {:>6}{:>8}{:>9}{:>12.4g}\n", rate.order, rate.batch, rate.streams,
               rate.flops_per_second / 1e9);
}

}  // namespace

SmallRates measure_small_rates(const RunOptions& run) {
  return {bench::small_front_rates(run, {}), bench::small_product_rates(run, {})};
}

Json methods_json(const SparseRow& row) {
  Json list = Json::array();
  for (const SparseMethod& method : row.methods) {
    Json object = {{"name", method.name},
                   {"seconds", method.refactor.seconds},
                   {"all_seconds", method.refactor.all_seconds},
                   {"flops_per_second", rate_of(row, method)}};
    if (method.device_seconds > 0) object["device_seconds"] = method.device_seconds;
    if (method.tasks > 0) {
      object["tasks"] = method.tasks;
      object["tasks_at_work"] = method.at_work;
    }
    list.push_back(std::move(object));
  }
  return list;
}

Json small_rates_json(const SmallRates& rates) {
  return {{"fronts", rates_json(rates.fronts)}, {"products", rates_json(rates.products)}};
}

void print_methods(const SparseRow& row) {
  if (row.methods.empty()) return;
  fmt::print("  {:<14}{:>14}{:>16}{:>12} by the flops with stored zeros\n", "method", "refactor, s",
             "on the device", "GFLOP/s");
  for (const SparseMethod& method : row.methods)
    fmt::print("  {:<14}{:>14.4g}{:>16}{:>12.4g}\n", method.name, method.refactor.seconds,
               method.device_seconds > 0 ? fmt::format("{:.4g}", method.device_seconds) : "",
               rate_of(row, method) / 1e9);
}

void print_small_rates(const SmallRates& rates) {
  print_rates(rates.fronts, "GFLOP/s of small fronts, half of whose columns are eliminated");
  print_rates(rates.products, "GFLOP/s of small products by cublasDgemmBatched");
}

void add_method_figures(const std::vector<SparseRow>& rows, const SmallRates& rates,
                        ReportData& page) {
  const std::vector<const SparseRow*> sorted = by_flops(rows);
  if (!sorted.empty()) {
    page.charts.push_back(rate_chart(sorted));
    page.charts.push_back(speedup_chart(sorted, sorted.back()->methods.back().name));
  }
  if (!rows.empty() && !rows.back().methods.empty()) {
    page.charts.push_back(work_chart(rows.back()));
    const SparseMethod* batches = find(rows.back(), "batches");
    if (batches != nullptr && page.run) page.run->trace = batches->trace;
  }
  add_small_charts("Fronts", rates.fronts, page);
  add_small_charts("Products", rates.products, page);
}

}  // namespace strata::cli
