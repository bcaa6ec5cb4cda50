#pragma once
// strata bench sparse --methods: text, JSON and drawings of bench/sparse_methods.hpp.

#include <nlohmann/json.hpp>
#include <vector>

#include "bench/sparse_bench.hpp"
#include "strata/report.hpp"

namespace strata::cli {

/// Fronts of order 8 to 64, by batches of 1 to 256 and 1, 4 and 16 streams.
[[nodiscard]] std::vector<bench::SmallFrontRate> measure_small_fronts(const Options& run);

[[nodiscard]] nlohmann::json methods_json(const bench::SparseRow& row);
[[nodiscard]] nlohmann::json small_fronts_json(const std::vector<bench::SmallFrontRate>& rates);

/// Nothing where there are none.
void print_methods(const bench::SparseRow& row);
void print_small_fronts(const std::vector<bench::SmallFrontRate>& rates);

/// Rates and speedups of all matrices, what is at work in the last one, with the timeline of its
/// batches in the place of that of ours, and small fronts.
void add_method_figures(const std::vector<bench::SparseRow>& rows,
                        const std::vector<bench::SmallFrontRate>& rates, ReportData& page);

}  // namespace strata::cli
