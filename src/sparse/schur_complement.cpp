// Schur complements: the factor of what is eliminated, and solves with it, some columns at a time.

#include <algorithm>

#include "base/check.hpp"
#include "sparse/ordering/entry_checks.hpp"
#include "sparse/ordering/pattern.hpp"
#include "strata/sparse_factor.hpp"

namespace strata {
namespace {

constexpr const char* kSchurWhere = "schur";
constexpr std::int64_t kSchurColumnsAtOnce = 64;

/// An element of A between a row that is eliminated and one that is kept, both by their numbers
/// among their own.
struct Coupling {
  std::int32_t eliminated;
  double value;
};

struct Split {
  SparseMatrix eliminated;             ///< A_RR, its lower triangle
  std::vector<std::int64_t> row_of;    ///< of A, by row of A_RR
  std::vector<std::int32_t> place_of;  ///< by row of A: in A_RR, or −1 − its place in K
  std::vector<std::vector<Coupling>> couplings;  ///< by kept row
  std::vector<double> kept;                      ///< A_KK
};

Split split(const SparseMatrix& a, std::span<const std::int64_t> kept) {
  const auto order = std::ssize(kept);
  Split s;
  s.place_of.assign(at(a.rows), 0);
  for (std::int64_t i = 0; i < order; ++i) {
    const std::int64_t row = kept[at(i)];
    require(row >= 0 && row < a.rows, ErrorKind::misuse, kSchurWhere,
            "row {} cannot be kept: A has {} rows", row, a.rows);
    require(s.place_of[at(row)] == 0, ErrorKind::misuse, kSchurWhere, "row {} is kept twice", row);
    s.place_of[at(row)] = static_cast<std::int32_t>(-1 - i);
  }
  for (std::int64_t row = 0; row < a.rows; ++row) {
    if (s.place_of[at(row)] < 0) continue;
    s.place_of[at(row)] = static_cast<std::int32_t>(s.row_of.size());
    s.row_of.push_back(row);
  }
  s.couplings.resize(at(order));
  s.kept.assign(at(order * order), 0.0);
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> cols;
  std::vector<double> values;
  for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
    std::int32_t p = s.place_of[at(i)];
    std::int32_t q = s.place_of[at(j)];
    const double value = a.value[at(k)];
    if (p < q) std::swap(p, q);
    if (q >= 0) {
      rows.push_back(p);
      cols.push_back(q);
      values.push_back(value);
    } else if (p >= 0) {
      s.couplings[at(-1 - q)].push_back({p, value});
    } else {
      s.kept[at((-1 - p) + (-1 - q) * order)] = value;
      s.kept[at((-1 - q) + (-1 - p) * order)] = value;
    }
  });
  const auto n = std::ssize(s.row_of);
  s.eliminated = sparse_from_entries(n, n, rows, cols, values);
  return s;
}

}  // namespace

SchurComplement schur_complement(const SparseMatrix& a, std::span<const std::int64_t> kept,
                                 const SparseCholeskyOptions& options) {
  WorkCrew crew(checking_threads() - 1);
  require_symmetric(a, kSchurWhere, crew);
  require(options.precision == Element::fp64, ErrorKind::misuse, kSchurWhere,
          "a Schur complement in {} would have its digits alone: fp64 it is",
          to_string(options.precision));
  Split s = split(a, kept);
  SchurComplement result;
  result.order = std::ssize(kept);
  SparseCholeskyOptions of_rows = options;
  if (options.analysis.ordering == SparseOrdering::given) {
    of_rows.analysis.order.clear();
    for (const std::int32_t row : options.analysis.order) {
      require(row >= 0 && row < a.rows, ErrorKind::misuse, kSchurWhere,
              "row {} is in the order, not in A", row);
      if (s.place_of[at(row)] >= 0) of_rows.analysis.order.push_back(s.place_of[at(row)]);
    }
  }
  const SparseCholesky factor(s.eliminated, of_rows);
  result.factor = factor.info();
  result.run = factor.report();
  if (!result.factor.ok) {
    result.factor.first_bad_pivot = s.row_of[at(result.factor.first_bad_pivot)];
    return result;
  }
  result.values = std::move(s.kept);
  const std::int64_t n = factor.n();
  const std::int64_t order = result.order;
  std::vector<double> x;
  for (std::int64_t first = 0; first < order; first += kSchurColumnsAtOnce) {
    const std::int64_t count = std::min(kSchurColumnsAtOnce, order - first);
    x.assign(at(n * count), 0.0);
    for (std::int64_t c = 0; c < count; ++c)
      for (const Coupling& one : s.couplings[at(first + c)])
        x[at(one.eliminated + c * n)] += one.value;
    factor.solve({x.data(), n, count, std::max<std::int64_t>(n, 1)});
    for (std::int64_t c = 0; c < count; ++c) {
      double* column = result.values.data() + (first + c) * order;
      column[first + c] += options.shift;
      for (std::int64_t i = first + c; i < order; ++i)
        for (const Coupling& one : s.couplings[at(i)])
          column[i] -= one.value * x[at(one.eliminated + c * n)];
      for (std::int64_t i = first + c + 1; i < order; ++i)
        result.values[at(first + c + i * order)] = column[i];
    }
  }
  return result;
}

}  // namespace strata
