// The file of an analysis (checksum_file.hpp); what was read is checked as analyze() would have
// made it.

#include "sparse/ordering/analysis_file.hpp"

#include "base/check.hpp"
#include "base/checksum_file.hpp"
#include "sparse/ordering/error_places.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {
namespace {

constexpr FileFormat kFormat{.name = "analysis", .version = 1, .where = kAnalysisWhere};

/// Visits everything that is saved, in its order; `Self` is constant or not.
template <class Self, class Visit>
void visit_all(Self& a, const Visit& visit) {
  visit(a.fingerprint.order);
  visit(a.fingerprint.entries);
  visit(a.fingerprint.hash);
  visit(a.ordering);
  visit(a.seed);
  auto& c = a.counts;
  visit(c.flops);
  visit(c.factor_entries);
  visit(c.stored_flops);
  visit(c.stored_entries);
  visit(c.panel_bytes);
  visit(c.fundamental_supernodes);
  visit(c.widest);
  visit(c.largest_panel_bytes);
  visit(c.largest_update_bytes);
  visit(c.stack_bytes);
  visit(c.product_bytes);
  visit(c.height);
  visit(c.critical_flops);
  visit(c.empty_diagonals);
  visit(c.first_empty_diagonal);
  visit(a.order);
  visit(a.first);
  visit(a.parent);
  visit(a.row_start);
  visit(a.row);
  visit(a.branch);
  visit(a.level);
}

}  // namespace

AnalysisFile::AnalysisFile(const SparseAnalysis& analysis, const std::string& path)
    : writer_(path, kFormat) {
  visit_all(analysis, [&](const auto& value) { writer_.add(value); });
  writer_.complete();
}

void save_analysis(const SparseAnalysis& analysis, const std::string& path) {
  require_well_formed(analysis);
  AnalysisFile(analysis, path).publish();
}

SparseAnalysis load_analysis(const std::string& path) {
  ChecksumReader reader(path, kFormat);
  SparseAnalysis analysis;
  visit_all(analysis, [&](auto& value) { reader.read(value); });
  reader.finish();
  try {
    require_well_formed(analysis);
  } catch (const Error& error) {
    fail(ErrorKind::input, kAnalysisWhere, "'{}' is no analysis: {}", path, error.what());
  }
  return analysis;
}

}  // namespace strata
