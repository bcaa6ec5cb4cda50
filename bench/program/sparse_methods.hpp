#pragma once
// strata bench sparse --methods: text, JSON and drawings of bench/sparse_methods.hpp.

#include <vector>

#include "base/json.hpp"
#include "bench/sparse_bench.hpp"
#include "strata/report.hpp"

namespace strata::cli {

/// What is small by batches and streams: our fronts, and products by cuBLAS.
struct SmallRates {
  std::vector<bench::SmallRate> fronts;
  std::vector<bench::SmallRate> products;
};
[[nodiscard]] SmallRates measure_small_rates(const RunOptions& run);

[[nodiscard]] Json methods_json(const bench::SparseRow& row);
[[nodiscard]] Json small_rates_json(const SmallRates& rates);

/// Nothing where there are none.
void print_methods(const bench::SparseRow& row);
void print_small_rates(const SmallRates& rates);

/// Rates and speedups of all matrices, what is at work in the last one, with the timeline of its
/// batches in the place of that of ours, and what is small.
void add_method_figures(const std::vector<bench::SparseRow>& rows, const SmallRates& rates,
                        ReportData& page);

}  // namespace strata::cli
