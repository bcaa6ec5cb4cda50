#pragma once
// One self-contained HTML page that shows what a run did.
//
// Contract: every section is optional; a section without data does not appear. The page refers to
// nothing outside itself. All text is escaped, values that are not finite are shown as missing, and
// the page stays near 3 MB at most: more points, grid cells or spans than a screen can show are
// thinned or merged, and the page says so.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "strata/element.hpp"
#include "strata/krylov.hpp"
#include "strata/options.hpp"
#include "strata/qr.hpp"

namespace strata {

/// One large number at the top of the page.
struct KeyFigure {
  std::string label;  ///< "Log-likelihood"
  std::string value;  ///< "−7,891.2"
  std::string unit;   ///< "mm"; may be empty
  std::string note;   ///< a few words under the value; may be empty
};

enum class MapQuantity : std::uint8_t {
  value,           ///< data and predictions: all such layers share one colour scale
  standard_error,  ///< all such layers share another
};

/// A regular grid; x0, x1, y0 and y1 are the centres of the outermost cells.
struct MapGrid {
  std::int64_t nx = 0;
  std::int64_t ny = 0;
  double x0 = 0;
  double x1 = 1;
  double y0 = 0;
  double y1 = 1;
};

/// One panel of the map section: points, or a regular grid.
struct MapLayer {
  std::string name;  ///< "Observed", "Predicted"
  std::string unit;  ///< of the values; may be empty
  MapQuantity quantity = MapQuantity::value;
  std::vector<double> x;      ///< points only, as long as `value`
  std::vector<double> y;      ///< points only, as long as `value`
  std::vector<double> value;  ///< grid: nx·ny values, value[j·nx + i] at column i, row j from y0
                              ///< towards y1; NaN: masked
  std::optional<MapGrid> grid;  ///< absent: the layer is points
};

struct ReportMap {
  std::vector<MapLayer> layers;  ///< in the order of the panels
  std::string x_label = "x";
  std::string y_label = "y";
};

/// One evaluation of the likelihood, in the order of the optimizer.
struct ReportEvaluation {
  double range = 0;
  double smoothness = 0;
  double nugget = 0;
  double variance = 0;
  double log_likelihood = 0;
  std::vector<double> others{};  ///< one for each of ReportData::other_parameters
};

/// Values that were kept out of the fit, and what was predicted for them.
struct ReportHoldOut {
  static constexpr double kAbsent = std::numeric_limits<double>::quiet_NaN();

  std::vector<double> observed;
  std::vector<double> predicted;
  /// Standard error of a new observation (with nugget), as long as `predicted`; empty: no intervals
  /// are drawn.
  std::vector<double> standard_error;
  std::string unit;
  double rmse = kAbsent;      ///< root mean squared error
  double mae = kAbsent;       ///< mean absolute error
  double crps = kAbsent;      ///< mean continuous ranked probability score
  double coverage = kAbsent;  ///< share of values inside their 95 % interval, 0 to 1
};

/// One line of a chart, by ascending x.
struct ReportSeries {
  std::string name;
  std::vector<double> x;  ///< above 0 where the axis is logarithmic; as long as `y`
  std::vector<double> y;  ///< what is not above 0 is missing where the axis is logarithmic
};

enum class AxisScale : std::uint8_t { linear, logarithmic };

/// Lines.
struct ReportChart {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<ReportSeries> series;
  AxisScale x_scale = AxisScale::logarithmic;
  AxisScale y_scale = AxisScale::linear;  ///< from 0
};

/// One bar of several parts, one behind the other.
struct ReportBar {
  std::string name;
  std::vector<double> values;  ///< not negative
};

/// Bars of the same parts, drawn to one scale.
struct ReportBars {
  std::string title;
  std::string unit;
  std::vector<std::string> parts;
  std::vector<ReportBar> bars;  ///< each with a value for each part
};

struct ReportTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< each with a text for each column
};

/// How a Krylov method went on, cycle by cycle and block by block.
struct ReportKrylov {
  std::string residual_label;             ///< "‖b − A·x‖ / ‖b‖"
  std::vector<double> residual;           ///< by cycle, computed with A; may be empty
  std::vector<double> estimated;          ///< by cycle, by the projected problem
  double tolerance = 0;                   ///< of the residual; 0: not drawn
  std::vector<KrylovDecision> decisions;  ///< by block
};

/// In which element each tile of the lower triangle of a matrix of tiles is kept.
struct ReportPrecisionMap {
  std::string title;       ///< "A", "L"
  std::int64_t tiles = 0;  ///< rows of tiles, as many as columns
  /// Elements of the tiles·(tiles + 1)/2 tiles on and below the diagonal, column by column; `none`
  /// for a tile that is zero.
  std::vector<Element> elements;
};

/// A forest, such as the elimination tree of a sparse matrix. It is drawn from the roots down: the
/// breadth of a node is the share of its branch in the weight of all.
struct ReportTree {
  std::string title;                 ///< "Elimination tree"
  std::string weight_label;          ///< "flops"
  std::vector<std::int32_t> parent;  ///< of each node, behind it; −1: a root
  std::vector<double> weight;        ///< of the node itself; not negative
  std::vector<std::string> label;    ///< of the node, shown when it is pointed at; or empty: none
};

struct ReportData {
  std::string title;
  std::string subtitle;
  std::string command;  ///< the command line
  std::string date;     ///< as it is to be shown
  std::vector<KeyFigure> figures;
  std::optional<ReportMap> map;
  std::vector<ReportEvaluation> evaluations;
  std::vector<std::string> other_parameters;  ///< of the evaluations, beside the four that all have
  std::optional<ReportKrylov> krylov;
  std::vector<QrStep> qr_steps;
  std::vector<ReportChart> charts;
  std::vector<ReportBars> bars;
  std::vector<ReportTable> tables;
  std::optional<ReportHoldOut> hold_out;
  std::vector<ReportPrecisionMap>
      precision_maps;  ///< side by side; the heading speaks of the first
  std::optional<ReportTree> tree;
  std::optional<RunReport> run;
  bool simulated = false;  ///< the run was simulate()'s: the page says "simulated", not "measured"
  std::int64_t device_memory_bytes = 0;  ///< the budget of a device; 0: not shown
};

/// The page as text (UTF-8). Throws Error{misuse} if vectors that belong together differ in length:
/// in a bar, a row of a table, a grid (nx·ny values) or a precision map (one element for each of
/// its tiles). Likewise if a node of a tree stands behind its parent.
[[nodiscard]] std::string render_report(const ReportData& data);

/// Writes the page; an existing file is replaced once the new one is whole. Throws as
/// `render_report`, and Error{storage} if `path` cannot be written.
void write_report(const std::string& path, const ReportData& data);

}  // namespace strata
