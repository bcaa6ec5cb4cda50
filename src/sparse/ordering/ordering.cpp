// The better of two orders is found by counting, not by a rule: METIS and AMD run at the same time,
// on threads of one crew, and the elimination trees of both are counted.

#include "sparse/ordering/ordering.hpp"

#include <amd.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "sparse/ordering/nested_dissection.hpp"

namespace strata {
namespace {

struct OrderingName {
  SparseOrdering ordering;
  std::string_view name;
};
constexpr std::array<OrderingName, 5> kNames{{{SparseOrdering::best, "best"},
                                              {SparseOrdering::metis, "metis"},
                                              {SparseOrdering::amd, "amd"},
                                              {SparseOrdering::natural, "natural"},
                                              {SparseOrdering::given, "given"}}};

void check_amd(int status, const SymmetricPattern& p) {
  if (status == AMD_OK) return;
  fail(status == AMD_OUT_OF_MEMORY ? ErrorKind::memory : ErrorKind::misuse, "amd",
       "minimum degree of {} rows with {} neighbours failed with status {}", p.size(),
       p.neighbor.size(), status);
}

std::vector<std::int32_t> order_by(SparseOrdering ordering, const SymmetricPattern& pattern,
                                   const AnalysisOptions& options, WorkCrew& crew) {
  switch (ordering) {
    case SparseOrdering::metis: return nested_dissection(pattern, options.seed, crew);
    case SparseOrdering::amd: return approximate_minimum_degree(pattern);
    case SparseOrdering::given: return options.order;
    case SparseOrdering::natural:
    case SparseOrdering::best: break;
  }
  std::vector<std::int32_t> order(at(pattern.size()));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

CountedTree count(SparseOrdering ordering, const SymmetricPattern& pattern,
                  const AnalysisOptions& options, WorkCrew& crew) {
  CountedTree result{
      ordering, ordered_tree(pattern, order_by(ordering, pattern, options, crew), crew), {}};
  result.counts = column_counts(pattern, result.tree, crew);
  return result;
}

}  // namespace

std::string_view to_string(SparseOrdering ordering) noexcept {
  for (const OrderingName& known : kNames)
    if (known.ordering == ordering) return known.name;
  return "?";
}

SparseOrdering parse_sparse_ordering(const std::string& name) {
  std::string names;
  for (const OrderingName& known : kNames) {
    if (known.name == name) return known.ordering;
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  fail(ErrorKind::misuse, "analyze", "'{}' is no order of elimination: {}", name, names);
}

std::vector<std::int32_t> approximate_minimum_degree(const SymmetricPattern& p) {
  const std::int32_t n = p.size();
  std::vector<std::int32_t> order(at(n));
  std::iota(order.begin(), order.end(), 0);
  if (p.neighbor.empty()) return order;
  if (p.start.back() <= std::numeric_limits<std::int32_t>::max()) {
    const std::vector<std::int32_t> start(p.start.begin(), p.start.end());
    check_amd(amd_order(n, start.data(), p.neighbor.data(), order.data(), nullptr, nullptr), p);
    return order;
  }
  const std::vector<SuiteSparse_long> start(p.start.begin(), p.start.end());
  const std::vector<SuiteSparse_long> neighbor(p.neighbor.begin(), p.neighbor.end());
  std::vector<SuiteSparse_long> wide(at(n));
  check_amd(amd_l_order(n, start.data(), neighbor.data(), wide.data(), nullptr, nullptr), p);
  std::transform(wide.begin(), wide.end(), order.begin(),
                 [](SuiteSparse_long row) { return static_cast<std::int32_t>(row); });
  return order;
}

CountedTree counted_tree(const SymmetricPattern& pattern, const AnalysisOptions& options,
                         WorkCrew& crew) {
  if (options.ordering != SparseOrdering::best)
    return count(options.ordering, pattern, options, crew);
  std::array<CountedTree, 2> candidate;
  crew.share(2, [&](std::int64_t i) {
    candidate[at(i)] =
        count(i == 0 ? SparseOrdering::metis : SparseOrdering::amd, pattern, options, crew);
  });
  const bool first = flops_of(candidate[0].counts) <= flops_of(candidate[1].counts);
  return std::move(candidate[first ? 0 : 1]);
}

}  // namespace strata
