// The analysis from pattern to panels: order, elimination tree, counts, supernodes, rows, and sums
// over them.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "base/check.hpp"
#include "base/work_crew.hpp"
#include "sparse/ordering/entry_checks.hpp"
#include "sparse/ordering/ordering.hpp"
#include "sparse/ordering/pattern.hpp"
#include "sparse/ordering/supernodes.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {
namespace {

void check_options(const AnalysisOptions& o) {
  const auto fine = [](double x) { return std::isfinite(x) && x >= 0; };
  require(fine(o.relax_bytes) && fine(o.relax_flops) && fine(o.relax_rows) && o.relax_entries >= 0,
          ErrorKind::misuse, "analyze",
          "amalgamation by {} of bytes, {} of flops, {} entries and {} a row: none may be negative",
          o.relax_bytes, o.relax_flops, o.relax_entries, o.relax_rows);
  require(o.threads >= 0, ErrorKind::misuse, "analyze", "{} threads", o.threads);
  require(o.ordering == SparseOrdering::given || o.order.empty(), ErrorKind::misuse, "analyze",
          "an order of {} rows was given, and '{}' was asked for", o.order.size(),
          to_string(o.ordering));
}

class Clock {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Branches, levels, and the longest way.
void measure_tree(SparseAnalysis& a) {
  const std::int32_t count = a.supernodes();
  a.branch.resize(at(count));
  a.level.assign(at(count), 0);
  std::vector<double> way(at(count));
  for (std::int32_t s = 0; s < count; ++s) a.branch[at(s)] = s;
  for (std::int32_t s = 0; s < count; ++s) {
    way[at(s)] += a.flops(s);
    a.counts.critical_flops = std::max(a.counts.critical_flops, way[at(s)]);
    a.counts.height = std::max<std::int64_t>(a.counts.height, a.level[at(s)] + 1);
    const std::int32_t p = a.parent[at(s)];
    if (p < 0) continue;
    a.branch[at(p)] = std::min(a.branch[at(p)], a.branch[at(s)]);
    a.level[at(p)] = std::max(a.level[at(p)], a.level[at(s)] + 1);
    way[at(p)] = std::max(way[at(p)], way[at(s)]);
  }
}

/// The largest rows × columns that s adds to one of its ancestors: its rows that are columns there,
/// times all from these on.
std::int64_t largest_product(const SparseAnalysis& a, std::int32_t s,
                             const std::vector<std::int32_t>& owner) {
  const auto rows = a.rows(s);
  const std::int64_t count = std::ssize(rows);
  std::int64_t largest = 0;
  for (std::int64_t k = 0; k < count;) {
    const std::int32_t target = owner[at(rows[at(k)])];
    const std::int64_t from = k;
    while (k < count && owner[at(rows[at(k)])] == target) ++k;
    largest = std::max(largest, (count - from) * (k - from));
  }
  return largest;
}

void measure_panels(SparseAnalysis& a) {
  AnalysisCounts& c = a.counts;
  std::vector<std::int32_t> owner(a.order.size());
  for (std::int32_t s = 0; s < a.supernodes(); ++s)
    std::fill_n(owner.begin() + a.first[at(s)], a.width(s), s);
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    const std::int64_t w = a.width(s);
    const std::int64_t r = a.row_count(s);
    c.stored_flops += a.flops(s);
    c.stored_entries += w * (w + 1) / 2 + w * r;
    c.panel_bytes += a.panel_bytes(s);
    c.widest = std::max(c.widest, w);
    c.largest_panel_bytes = std::max(c.largest_panel_bytes, a.panel_bytes(s));
    c.largest_update_bytes = std::max(c.largest_update_bytes, r * r * 8);
    c.product_bytes = std::max(c.product_bytes, 8 * largest_product(a, s, owner));
  }
}

}  // namespace

void measure_supernodes(SparseAnalysis& a) {
  AnalysisCounts& c = a.counts;
  c.critical_flops = c.stored_flops = 0;
  c.height = c.stored_entries = c.panel_bytes = c.widest = 0;
  c.largest_panel_bytes = c.largest_update_bytes = c.product_bytes = 0;
  measure_tree(a);
  measure_panels(a);
}

double SparseAnalysis::flops(std::int32_t s) const {
  return panel_flops(static_cast<double>(width(s)), static_cast<double>(row_count(s)));
}

SparseAnalysis analyze(const SparseMatrix& matrix, const AnalysisOptions& options) {
  check_options(options);
  Clock clock;
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  WorkCrew crew((options.threads > 0 ? options.threads : std::max(1, cores)) - 1);
  SparseAnalysis a;
  const SymmetricPattern pattern = symmetric_pattern(matrix, crew);
  a.fingerprint = fingerprint_of(pattern);
  a.counts.empty_diagonals = pattern.empty_diagonals;
  a.counts.first_empty_diagonal = pattern.first_empty_diagonal;
  a.seconds.pattern = clock.lap();
  const CountedTree counted = counted_tree(pattern, options, crew);
  a.ordering = counted.ordering;
  a.seed = options.seed;
  a.seconds.ordering = clock.lap();
  for (const std::int32_t count : counted.counts) a.counts.factor_entries += count;
  a.counts.flops = flops_of(counted.counts);
  const SupernodeForest fundamental = fundamental_supernodes(counted.tree.parent, counted.counts);
  a.counts.fundamental_supernodes = fundamental.size();
  FinalForest final = final_forest(fundamental, amalgamate(fundamental, options));
  a.counts.stack_bytes = final.stack_bytes;
  a.order.resize(final.old_column.size());
  for (std::size_t k = 0; k < a.order.size(); ++k)
    a.order[k] = counted.tree.order[at(final.old_column[k])];
  RowStructure rows = row_structure(pattern, final.forest, a.order, crew);
  a.first = std::move(final.forest.first);
  a.parent = std::move(final.forest.parent);
  a.row_start = std::move(rows.row_start);
  a.row = std::move(rows.row);
  measure_supernodes(a);
  a.seconds.symbolic = clock.lap();
  return a;
}

PatternFingerprint pattern_fingerprint(const SparseMatrix& a) {
  WorkCrew crew(checking_threads() - 1);
  return fingerprint_of(symmetric_pattern(a, crew));
}

void require_same_pattern(const SparseAnalysis& analysis, const SparseMatrix& a) {
  const PatternFingerprint own = pattern_fingerprint(a);
  const PatternFingerprint& other = analysis.fingerprint;
  require(
      own == other, ErrorKind::misuse, "analyze",
      "A has order {} and {} entries below the diagonal, pattern {:016x}; what was analyzed has "
      "{} and {}, pattern {:016x}",
      own.order, own.entries, own.hash[0], other.order, other.entries, other.hash[0]);
}

}  // namespace strata
