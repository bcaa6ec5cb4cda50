#pragma once
// The parts of the report page, each a pure function from data to text.
//
// Contract: a section returns HTML that is already escaped, or an empty string if it has no data.
// Drawing is the script's: a section leaves a placeholder, and `page_data` the numbers for it.

#include <string>
#include <string_view>

#include "base/json.hpp"
#include "report/timeline.hpp"
#include "strata/report.hpp"

namespace strata::page {

/// CSS and JavaScript of the page, without their enclosing elements.
[[nodiscard]] std::string style();
[[nodiscard]] std::string script();
[[nodiscard]] std::string_view script_core();
[[nodiscard]] std::string_view script_maps();
[[nodiscard]] std::string_view script_charts();
[[nodiscard]] std::string_view script_curves();
[[nodiscard]] std::string_view script_timeline();

[[nodiscard]] std::string header_section(const ReportData& data);
[[nodiscard]] std::string map_section(const ReportData& data);
[[nodiscard]] std::string path_section(const ReportData& data);
[[nodiscard]] std::string hold_out_section(const ReportData& data);
[[nodiscard]] std::string charts_section(const ReportData& data);
[[nodiscard]] std::string bars_section(const ReportData& data);
[[nodiscard]] std::string tables_section(const ReportData& data);
[[nodiscard]] std::string precision_section(const ReportData& data);
[[nodiscard]] std::string tree_section(const ReportData& data);
[[nodiscard]] std::string run_section(const ReportData& data);
[[nodiscard]] std::string timeline_section(const ReportData& data, const Timeline& timeline);
[[nodiscard]] std::string traffic_section(const ReportData& data);

/// The numbers behind the drawings. Columns are quantized and base64-coded: see columns.hpp.
[[nodiscard]] Json page_data(const ReportData& data, const Timeline& timeline);
[[nodiscard]] Json map_data(const ReportMap& map);
[[nodiscard]] Json path_data(const std::vector<ReportEvaluation>& evaluations);
[[nodiscard]] Json chart_data(const ReportChart& chart);
[[nodiscard]] Json hold_out_data(const ReportHoldOut& hold_out);

/// All charts and tables of the page in their order: those of a Krylov method and of a QR
/// factorization, then those that are given.
[[nodiscard]] std::vector<ReportChart> charts_of(const ReportData& data);
[[nodiscard]] std::vector<ReportTable> tables_of(const ReportData& data);
/// Every k-th of `count` indices, so that there are at most `count_max`.
[[nodiscard]] std::vector<std::size_t> strided(std::size_t count, std::size_t count_max);

/// Index of the largest finite log-likelihood; 0 if none is finite. `evaluations` is not empty.
[[nodiscard]] std::size_t best_evaluation(const std::vector<ReportEvaluation>& evaluations);

/// Points drawn at most in a map panel; a layer with more becomes a grid of cell means.
inline constexpr std::size_t kPointsMax = 20'000;
/// Grid cells of all panels together.
inline constexpr std::int64_t kCellsMax = 300'000;
/// Evaluations drawn and listed at most.
inline constexpr std::size_t kEvaluationsMax = 2'000;
inline constexpr std::size_t kEvaluationRowsMax = 400;
/// Rows of tiles that a precision map draws at most.
inline constexpr std::int64_t kTileRowsMax = 160;
/// Hold-out values drawn at most.
inline constexpr std::size_t kHoldOutMax = 1'500;

}  // namespace strata::page
