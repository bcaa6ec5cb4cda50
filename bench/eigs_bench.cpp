#include "bench/eigs_bench.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>

namespace strata::bench {
namespace {

SparseMatrix diagonal_matrix(std::int64_t m) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(m));
  std::iota(place.begin(), place.end(), std::int64_t{0});
  std::vector<double> value(place.size());
  std::iota(value.begin(), value.end(), 1.0);
  return sparse_from_entries(m, m, place, place, value);
}

/// By place: a value that is missing or comes twice moves those behind it by 1 at least.
void measure(EigsRow& row, std::int64_t k) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto m = static_cast<double>(row.m);
  row.error = row.residual = std::ssize(row.info.values) == k ? 0 : kNan;
  if (std::ssize(row.info.values) != k) return;
  for (std::size_t i = 0; i < row.info.values.size(); ++i) {
    row.error =
        std::max(row.error, std::abs(row.info.values[i] - (m - static_cast<double>(i))) / m);
    row.residual = std::max(row.residual, row.info.residuals[i] / m);
  }
}

EigsRow run_case(const EigsBench& bench, const SparseMatrix& a, std::int64_t s, QrMethod method,
                 bool filter, const RunOptions& options) {
  EigsRow row;
  row.m = a.rows;
  row.s = s;
  row.method = method;
  row.filter = filter;
  EigsOptions how;
  how.k = bench.k;
  how.which = EigenEnd::largest;
  how.method = EigsMethod::lanczos;
  how.basis_size = bench.basis_size;
  how.s = s;
  how.basis = bench.basis;
  how.orthogonalization = method;
  how.filter = filter;
  how.tolerance = bench.tolerance;
  how.restarts_max = bench.restarts_max;
  how.seed = bench.seed;
  how.run = options;
  std::vector<EigsInfo> infos;
  std::vector<double> vectors(static_cast<std::size_t>(a.rows * bench.k));
  for (int r = 0; r < bench.repeats; ++r) {
    const auto begin = std::chrono::steady_clock::now();
    infos.push_back(eigs(a, {vectors.data(), a.rows, bench.k, a.rows}, how));
    row.all_seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::vector<std::size_t> order(infos.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t i, std::size_t j) { return row.all_seconds[i] < row.all_seconds[j]; });
  const std::size_t median = order[(order.size() - 1) / 2];
  row.seconds = row.all_seconds[median];
  row.info = std::move(infos[median]);
  measure(row, bench.k);
  return row;
}

}  // namespace

std::vector<EigsRow> run_eigs_bench(const EigsBench& bench, const RunOptions& options,
                                    const std::function<void(const EigsRow&)>& told) {
  std::vector<EigsRow> rows;
  const auto add = [&](EigsRow row, double single) {
    row.ratio = single > 0 ? row.seconds / single : 1;
    if (!rows.empty()) rows.back().info.report.trace = {};
    rows.push_back(std::move(row));
    if (told) told(rows.back());
  };
  for (const std::int64_t m : bench.sizes) {
    const SparseMatrix a = diagonal_matrix(m);
    double single = 0;
    if (!bench.only_filtered) {
      add(run_case(bench, a, 1, QrMethod::automatic, false, options), 0);
      single = rows.back().seconds;
    }
    add(run_case(bench, a, 1, QrMethod::automatic, true, options), single);
    for (const std::int64_t s : bench.s) {
      if (bench.only_filtered) break;
      for (const QrMethod method : bench.methods)
        add(run_case(bench, a, s, method, false, options), single);
    }
  }
  return rows;
}

std::string name_of(const EigsRow& row) {
  if (row.filter) return "lanczos, filtered";
  return row.s == 1 ? "lanczos" : fmt::format("s = {} {}", row.s, to_string(row.method));
}

}  // namespace strata::bench
