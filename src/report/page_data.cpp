// The numbers behind the drawings, thinned to what can be seen.
//
// Method: a point layer that is denser than a panel's dots is averaged over the cells of a grid,
// and a grid with more cells than its share is averaged over k × k cells; both keep masked places
// masked. Evaluations and hold-out values are thinned by an even stride, which keeps their
// distribution. Colour scales end at the 0.5 % and 99.5 % quantiles where a few outliers would
// otherwise take more than a third of the scale.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json.hpp"
#include "report/colormap.hpp"
#include "report/columns.hpp"
#include "report/page.hpp"

namespace strata::page {
namespace {

struct Extent {
  double x0, x1, y0, y1;
};

/// Sums and counts of the finite values that fall into each cell.
class CellMeans {
 public:
  CellMeans(std::int64_t nx, std::int64_t ny)
      : nx_(nx), sum_(static_cast<std::size_t>(nx * ny)), count_(sum_.size()) {}
  void add(std::int64_t i, std::int64_t j, double value) {
    if (!std::isfinite(value)) return;
    const auto cell = static_cast<std::size_t>(j * nx_ + i);
    sum_[cell] += value;
    ++count_[cell];
  }
  [[nodiscard]] std::vector<double> means() const {
    std::vector<double> means(sum_.size(), ReportHoldOut::kAbsent);
    for (std::size_t i = 0; i < sum_.size(); ++i) {
      if (count_[i] > 0) means[i] = sum_[i] / count_[i];
    }
    return means;
  }

 private:
  std::int64_t nx_;
  std::vector<double> sum_;
  std::vector<int> count_;
};

Json grid_json(const MapGrid& grid, const std::vector<double>& values) {
  return {{"nx", grid.nx}, {"ny", grid.ny}, {"x0", grid.x0},         {"x1", grid.x1},
          {"y0", grid.y0}, {"y1", grid.y1}, {"v", quantized(values)}};
}

Json grid_layer(const MapLayer& layer, std::int64_t cells_max) {
  const MapGrid& grid = *layer.grid;
  std::int64_t k = 1;
  const auto coarse = [&k](std::int64_t n) { return (n + k - 1) / k; };
  while (coarse(grid.nx) * coarse(grid.ny) > cells_max) ++k;
  if (k == 1) return grid_json(grid, layer.value);
  CellMeans cells(coarse(grid.nx), coarse(grid.ny));
  for (std::int64_t j = 0; j < grid.ny; ++j) {
    for (std::int64_t i = 0; i < grid.nx; ++i) {
      cells.add(i / k, j / k, layer.value[static_cast<std::size_t>(j * grid.nx + i)]);
    }
  }
  MapGrid thin = grid;
  thin.nx = coarse(grid.nx);
  thin.ny = coarse(grid.ny);
  // Centres of the outermost coarse cells; the last may reach past the grid.
  const double dx =
      (grid.x1 - grid.x0) / static_cast<double>(std::max<std::int64_t>(grid.nx - 1, 1));
  const double dy =
      (grid.y1 - grid.y0) / static_cast<double>(std::max<std::int64_t>(grid.ny - 1, 1));
  thin.x0 = grid.x0 + dx * static_cast<double>(k - 1) / 2;
  thin.y0 = grid.y0 + dy * static_cast<double>(k - 1) / 2;
  thin.x1 = thin.x0 + dx * static_cast<double>(k * (thin.nx - 1));
  thin.y1 = thin.y0 + dy * static_cast<double>(k * (thin.ny - 1));
  return grid_json(thin, cells.means());
}

/// Many points: the mean in each cell of a grid whose cells are about square.
Json binned_layer(const MapLayer& layer, std::int64_t cells_max) {
  const auto [x0, x1] = finite_range(layer.x);
  const auto [y0, y1] = finite_range(layer.y);
  const double width = std::max(x1 - x0, 1e-300);
  const double height = std::max(y1 - y0, 1e-300);
  // One cell for six points: of points strewn at random e⁻⁶ = 0.2 % of the cells stay empty.
  const double cells =
      std::min(static_cast<double>(cells_max), static_cast<double>(layer.value.size()) / 6);
  const double nx = std::clamp(std::sqrt(cells * width / height), 1.0, cells);
  MapGrid grid;
  grid.nx = static_cast<std::int64_t>(nx);
  grid.ny = std::max<std::int64_t>(1, static_cast<std::int64_t>(cells / nx));
  const double dx = width / static_cast<double>(grid.nx);
  const double dy = height / static_cast<double>(grid.ny);
  CellMeans means(grid.nx, grid.ny);
  for (std::size_t p = 0; p < layer.value.size(); ++p) {
    if (!std::isfinite(layer.x[p]) || !std::isfinite(layer.y[p])) continue;
    means.add(std::min(grid.nx - 1, static_cast<std::int64_t>((layer.x[p] - x0) / dx)),
              std::min(grid.ny - 1, static_cast<std::int64_t>((layer.y[p] - y0) / dy)),
              layer.value[p]);
  }
  grid.x0 = x0 + dx / 2;
  grid.x1 = x1 - dx / 2;
  grid.y0 = y0 + dy / 2;
  grid.y1 = y1 - dy / 2;
  return grid_json(grid, means.means());
}

Extent extent_of(const ReportMap& map) {
  std::vector<double> xs;
  std::vector<double> ys;
  for (const MapLayer& layer : map.layers) {
    if (layer.grid) {
      const MapGrid& g = *layer.grid;
      const double dx =
          (g.x1 - g.x0) / static_cast<double>(std::max<std::int64_t>(g.nx - 1, 1)) / 2;
      const double dy =
          (g.y1 - g.y0) / static_cast<double>(std::max<std::int64_t>(g.ny - 1, 1)) / 2;
      xs.insert(xs.end(), {g.x0 - dx, g.x1 + dx});
      ys.insert(ys.end(), {g.y0 - dy, g.y1 + dy});
    } else {
      const auto [x0, x1] = finite_range(layer.x);
      const auto [y0, y1] = finite_range(layer.y);
      if (!layer.x.empty()) xs.insert(xs.end(), {x0, x1});
      if (!layer.y.empty()) ys.insert(ys.end(), {y0, y1});
    }
  }
  auto [x0, x1] = finite_range(xs);
  auto [y0, y1] = finite_range(ys);
  const double pad = 0.02 * std::max(x1 - x0, y1 - y0);
  const double least = pad > 0 ? pad : 0.5;
  return {x0 - least, x1 + least, y0 - least, y1 + least};
}

/// Ends of the colour scale that all layers of one quantity share.
Json scale_of(const ReportMap& map, MapQuantity quantity) {
  std::vector<double> values;
  for (const MapLayer& layer : map.layers) {
    if (layer.quantity != quantity) continue;
    std::copy_if(layer.value.begin(), layer.value.end(), std::back_inserter(values),
                 [](double v) { return std::isfinite(v); });
  }
  if (values.empty()) return {{"lo", 0}, {"hi", 1}, {"below", false}, {"above", false}};
  std::sort(values.begin(), values.end());
  const auto quantile = [&values](double share) {
    return values[static_cast<std::size_t>(
        std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  double lo = values.front();
  double hi = values.back();
  const double inner_lo = quantile(0.005);
  const double inner_hi = quantile(0.995);
  if (values.size() >= 200 && inner_hi > inner_lo && hi - lo > 1.5 * (inner_hi - inner_lo)) {
    lo = inner_lo;
    hi = inner_hi;
  }
  return {{"lo", lo}, {"hi", hi}, {"below", values.front() < lo}, {"above", values.back() > hi}};
}

std::vector<double> picked(const std::vector<double>& values,
                           const std::vector<std::size_t>& indices) {
  std::vector<double> out;
  out.reserve(indices.size());
  for (const std::size_t i : indices) out.push_back(values[i]);
  return out;
}

}  // namespace

std::vector<std::size_t> strided(std::size_t count, std::size_t count_max) {
  const std::size_t kept = std::min(count, count_max);
  std::vector<std::size_t> indices(kept);
  for (std::size_t i = 0; i < kept; ++i) indices[i] = i * count / kept;
  return indices;
}

Json map_data(const ReportMap& map) {
  std::int64_t grids = 0;
  for (const MapLayer& layer : map.layers) grids += layer.grid || layer.value.size() > kPointsMax;
  const std::int64_t cells_max = kCellsMax / std::max<std::int64_t>(grids, 1);
  Json layers = Json::array();
  for (const MapLayer& layer : map.layers) {
    Json entry{{"name", layer.name},
               {"unit", layer.unit},
               {"quantity", layer.quantity == MapQuantity::value ? "value" : "error"}};
    if (layer.grid) {
      entry["grid"] = grid_layer(layer, cells_max);
    } else if (layer.value.size() > kPointsMax) {
      entry["grid"] = binned_layer(layer, cells_max);
    } else {
      entry["points"] = {
          {"x", quantized(layer.x)}, {"y", quantized(layer.y)}, {"v", quantized(layer.value)}};
    }
    layers.push_back(std::move(entry));
  }
  const Extent extent = extent_of(map);
  return {{"layers", layers},
          {"x", map.x_label},
          {"y", map.y_label},
          {"extent", Json::array({extent.x0, extent.x1, extent.y0, extent.y1})},
          {"scales",
           {{"value", scale_of(map, MapQuantity::value)},
            {"error", scale_of(map, MapQuantity::standard_error)}}},
          {"colors",
           {{"value", hex_text(value_colormap())}, {"error", hex_text(uncertainty_colormap())}}}};
}

std::size_t best_evaluation(const std::vector<ReportEvaluation>& evaluations) {
  const auto rank = [](const ReportEvaluation& e) {
    return std::isfinite(e.log_likelihood) ? e.log_likelihood
                                           : -std::numeric_limits<double>::infinity();
  };
  const auto best =
      std::max_element(evaluations.begin(), evaluations.end(),
                       [&rank](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return static_cast<std::size_t>(best - evaluations.begin());
}

Json path_data(const std::vector<ReportEvaluation>& evaluations) {
  std::vector<std::size_t> kept = strided(evaluations.size(), kEvaluationsMax);
  const std::size_t best = best_evaluation(evaluations);
  if (!std::binary_search(kept.begin(), kept.end(), best)) {
    kept.insert(std::upper_bound(kept.begin(), kept.end(), best), best);
  }
  Json rows = Json::array();
  for (const std::size_t i : kept) {
    const ReportEvaluation& e = evaluations[i];
    // A value that is not finite becomes null: dump() knows no other way.
    Json row = Json::array({i + 1, e.log_likelihood, e.range, e.smoothness, e.nugget, e.variance});
    for (const double other : e.others) row.push_back(other);
    rows.push_back(std::move(row));
  }
  return {{"rows", rows}};
}

Json chart_data(const ReportChart& chart) {
  Json series = Json::array();
  for (const ReportSeries& s : chart.series) {
    series.push_back({{"name", s.name}, {"x", s.x}, {"y", s.y}});
  }
  return {{"x", chart.x_label},
          {"y", chart.y_label},
          {"logX", chart.x_scale == AxisScale::logarithmic},
          {"logY", chart.y_scale == AxisScale::logarithmic},
          {"series", series}};
}

Json hold_out_data(const ReportHoldOut& hold_out) {
  const std::vector<std::size_t> kept = strided(hold_out.observed.size(), kHoldOutMax);
  Json out{{"observed", quantized(picked(hold_out.observed, kept))},
           {"predicted", quantized(picked(hold_out.predicted, kept))},
           {"unit", hold_out.unit}};
  if (hold_out.standard_error.empty()) return out;
  out["error"] = quantized(picked(hold_out.standard_error, kept));
  // Probability integral transform: where an observation falls in its predicted distribution.
  std::vector<int> bins(10, 0);
  for (std::size_t i = 0; i < hold_out.observed.size(); ++i) {
    const double z = (hold_out.observed[i] - hold_out.predicted[i]) / hold_out.standard_error[i];
    if (std::isnan(z)) continue;
    const double probability = 0.5 * std::erfc(-z / std::sqrt(2.0));
    ++bins[static_cast<std::size_t>(std::min(9.0, 10 * probability))];
  }
  out["pit"] = bins;
  return out;
}

Json page_data(const ReportData& data, const Timeline& timeline) {
  Json out = Json::object();
  if (data.map) out["map"] = map_data(*data.map);
  if (!data.evaluations.empty()) out["path"] = path_data(data.evaluations);
  for (const ReportChart& chart : charts_of(data)) out["charts"].push_back(chart_data(chart));
  if (data.hold_out) out["holdOut"] = hold_out_data(*data.hold_out);
  if (timeline.spans > 0) out["timeline"] = timeline_data(timeline);
  return out;
}

}  // namespace strata::page
