// strata bench cholesky --in-core: the matrix lies on the device; ours and the peer's rates.

#include <fmt/core.h>

#include <map>

#include "base/bytes.hpp"
#include "bench/program/program.hpp"

namespace strata::cli {
namespace {

using bench::InCoreResult;
using bench::InCoreRow;

Json row_json(const InCoreRow& row, const InCoreResult& result) {
  const double flops = row.matrices.flops();
  Json object = {{"n", row.matrices.n},
                 {"variant", bench::to_string(row.options.variant)},
                 {"ib", row.options.ib},
                 {"recnb", row.options.recnb},
                 {"nb", row.options.nb},
                 {"count", row.matrices.count},
                 {"matrix_bytes", row.matrices.bytes()},
                 {"seconds", row.seconds},
                 {"all_seconds", row.all_seconds},
                 {"flops", flops},
                 {"flops_per_second", flops / row.seconds},
                 {"residual", number(row.residual)}};
  if (row.extra_device_bytes >= 0) object["extra_device_bytes"] = row.extra_device_bytes;
  if (result.gemm_flops_per_second > 0) {
    object["ratio_to_gemm"] = flops / row.seconds / result.gemm_flops_per_second;
  }
  if (!row.peer.name.empty()) {
    object["peer"] = {{"name", row.peer.name},
                      {"what", row.peer.what},
                      {"seconds", row.peer.seconds},
                      {"all_seconds", row.peer.all_seconds},
                      {"flops_per_second", flops / row.peer.seconds}};
    object["ratio_to_peer"] = row.peer.seconds / row.seconds;
    object["peer"]["residual"] = number(*row.peer.residual);
    object["residual_ratio"] = number(row.residual / *row.peer.residual);
  }
  return object;
}

/// "graded, condition 1e+06".
std::string to_text(const bench::TestMatrix& matrix) {
  switch (matrix.kind) {
    case bench::MatrixKind::graded: return fmt::format("graded, condition {:g}", matrix.condition);
    case bench::MatrixKind::matern:
      return fmt::format("matern, smoothness {:g}", matrix.smoothness);
    case bench::MatrixKind::random: break;
  }
  return "random";
}

void put_matrix(Json& object, const bench::TestMatrix& matrix) {
  const std::string text = to_text(matrix);
  object["matrix"] = text.substr(0, text.find(','));
  if (matrix.kind == bench::MatrixKind::graded) object["condition"] = matrix.condition;
  if (matrix.kind == bench::MatrixKind::matern) object["smoothness"] = matrix.smoothness;
}

void print_rows(const InCoreResult& result, const bench::TestMatrix& matrix) {
  fmt::print("{} ({}), in core, matrix: {}\n", result.device, result.model, to_text(matrix));
  fmt::print(
      "{:>8} {:>7} {:7} {:>3} {:>5} {:>5} {:>11} {:>10} {:>10} {:>7} {:>9} {:>9} {:>6} {:>10}\n",
      "n", "count", "variant", "ib", "recnb", "nb", "seconds", "GFLOP/s", "peer", "ratio",
      "residual", "peer's", "ratio", "extra");
  for (const InCoreRow& row : result.rows) {
    const double flops = row.matrices.flops();
    const bool peer = !row.peer.name.empty();
    fmt::print(
        "{:8} {:7} {:7} {:3} {:5} {:5} {:11.4g} {:10.1f} {:>10} {:>7} {:9.1e} {:>9} {:>6} {:>10}\n",
        row.matrices.n, row.matrices.count, bench::to_string(row.options.variant), row.options.ib,
        row.options.recnb, row.options.nb, row.seconds, flops / row.seconds / 1e9,
        peer ? fmt::format("{:.1f}", flops / row.peer.seconds / 1e9) : "",
        peer ? fmt::format("{:.3f}", row.peer.seconds / row.seconds) : "", row.residual,
        peer ? fmt::format("{:.1e}", *row.peer.residual) : "",
        peer ? fmt::format("{:.2f}", row.residual / *row.peer.residual) : "",
        row.extra_device_bytes >= 0 ? format_bytes(row.extra_device_bytes) : "");
  }
  if (result.gemm_flops_per_second > 0)
    fmt::print("GEMM, sustained: {:.1f} GFLOP/s\n", result.gemm_flops_per_second / 1e9);
  if (!result.rows.empty() && !result.rows[0].peer.name.empty())
    fmt::print("peer: {} ({})\n", result.rows[0].peer.name, result.rows[0].peer.what);
}

ReportData page_of(const InCoreResult& result, const bench::TestMatrix& matrix) {
  ReportData data;
  data.title = "Cholesky in core";
  data.subtitle = fmt::format("{}, {}; matrix: {}", result.device, result.model, to_text(matrix));
  ReportChart chart{"Rate against the order", "order", "GFLOP/s", {}};
  std::map<std::string, ReportSeries> series;
  for (const InCoreRow& row : result.rows) {
    const auto put = [&](const std::string& name, double seconds) {
      ReportSeries& line = series[name];
      line.name = name;
      if (!line.x.empty() && line.x.back() == static_cast<double>(row.matrices.n)) return;
      line.x.push_back(static_cast<double>(row.matrices.n));
      line.y.push_back(row.matrices.flops() / seconds / 1e9);
    };
    put(bench::to_string(row.options.variant), row.seconds);
    if (!row.peer.name.empty()) put(row.peer.name, row.peer.seconds);
  }
  for (auto& [name, line] : series) chart.series.push_back(std::move(line));
  data.charts.push_back(std::move(chart));
  return data;
}

}  // namespace

int run_in_core(const bench::InCoreBench& bench, const CommonOptions& common,
                const CholeskyOptions& options) {
  const InCoreResult result = run_in_core_bench(bench, options);
  Json results = Json::array();
  for (const InCoreRow& row : result.rows) results.push_back(row_json(row, result));
  Json object = {{"benchmark", bench.batch > 0 ? "potrf_batched" : "cholesky in core"},
                 {"precision", to_string(bench.precision)},
                 {"repeats", bench.repeats},
                 {"device", result.device},
                 {"model", result.model},
                 {"results", results}};
  put_matrix(object, bench.matrix);
  if (bench.gemm_seconds > 0) {
    object["gemm"] = {{"seconds", bench.gemm_seconds},
                      {"flops_per_second", result.gemm_flops_per_second}};
  }
  return finish(common, page_of(result, bench.matrix), object,
                [&] { print_rows(result, bench.matrix); });
}

}  // namespace strata::cli
