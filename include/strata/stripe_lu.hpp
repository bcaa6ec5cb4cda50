#pragma once
// Dense general systems by stripes of rows, as Carcenac published it for disks ("From tile
// algorithm to stripe algorithm", 2013), beside lu() and factor_general().
//
// Contract: stripes of rows are eliminated one after another, B carried along; rows of L and U are
// written over those of A, in files where RunOptions::storage says so. Pivots are searched within
// substripes, or not at all, so the factors may be bad where partial pivoting has good ones: growth
// and residual are measured, X is refined by GMRES with these factors, and where that does not do,
// X is refused. With the same stripes and substripes X has the same bits whatever the order
// (but with pivots by pairs), the policy, the budgets and the numbers of devices and directories.
//

#include <complex>
#include <cstdint>
#include <string>

#include "strata/array_ref.hpp"
#include "strata/lu.hpp"

namespace strata {

/// In which order the stripes below take what has been eliminated.
enum class StripeOrder : std::uint8_t {
  basic,   ///< from the first to the last, each time
  zigzag,  ///< forth and back in turn
  /// The same, several stripes at once: those below go past a meta-stripe once.
  meta_zigzag,
};

struct StripeOptions {
  /// Rows. 0: so many that host memory between storage and the devices holds a meta-stripe and two
  /// more, and devices a few blocks, up to a size at which products are fast.
  std::int64_t stripe = 0;
  /// Rows of a substripe, among which a pivot is searched, from that of its column on; 0: what is
  /// on the diagonal is the pivot.
  std::int64_t substripe = 200;
  /// Not 0: rows of two stripes are pivots of each other (block-pairwise pivoting), so many columns
  /// at a time, and those of a whole stripe of itself. X then depends on the order of stripes.
  std::int64_t pair_columns = 0;
  StripeOrder order = StripeOrder::zigzag;
  std::int64_t meta = 2;  ///< stripes of a meta-stripe, with meta_zigzag
  /// The published one is Policy::idle; run.policy is not read.
  Policy policy = Policy::idle;
  /// false: X is what the factors give, B carried along. Its backward errors are measured, and it
  /// is refused for pivots alone; no more of the certificate is found.
  bool refines = true;
  /// Gaussian elimination as published: L is dropped while it is made, and nothing is refined.
  bool gauss = false;
  RunOptions run{};  ///< devices; budgets, storage, progress
};

/// "basic", "zigzag", "meta-zigzag:2"; and back into `order` and `meta`, throwing Error{misuse}.
[[nodiscard]] std::string order_name(const StripeOptions& stripes);
void set_order(const std::string& name, StripeOptions& stripes);
/// "none", "local:200" with the rows of a substripe, "pairwise" or "pairwise:64" with the columns
/// at a time, into `substripe` and `pair_columns`; likewise.
void set_pivoting(const std::string& name, StripeOptions& stripes);

/// As of solve_general(), with these differences: the determinant is not found, and
/// log_determinant is NaN.
struct StripeSolveResult : GeneralSolveResult {
  std::int64_t stripe = 0;        ///< rows
  double largest_multiplier = 0;  ///< of L: at most 1 with partial pivoting
  /// Why X was left as it was: a zero on the diagonal of U, a number that is not finite, or a
  /// backward error that is not one of fp64 after refinement. Empty: X is there.
  std::string refusal;
  std::string how;  ///< how files are read and written; empty: it was in host memory
};

/// Solves A·X = B; X may not overlap A or B. A source gives its matrix by rows
/// (MatrixSource::by_rows), of which the host holds those of a stripe beside what the options
/// allow. Files are temporary: nothing of them is left, and a run that ends is begun again. Throws
/// Error{memory} where the stripes do not fit.
[[nodiscard]] StripeSolveResult solve_by_stripes(ConstArrayRef a, ConstArrayRef b, ArrayRef x,
                                                 const StripeOptions& stripes);
[[nodiscard]] StripeSolveResult solve_by_stripes(const MatrixSource<double>& a, ConstArrayRef b,
                                                 ArrayRef x, const StripeOptions& stripes);
[[nodiscard]] StripeSolveResult solve_by_stripes(const MatrixSource<std::complex<double>>& a,
                                                 ConstArrayRef b, ArrayRef x,
                                                 const StripeOptions& stripes);

/// What the factorization would do on `machine`, without any data, with `rhs` columns of B.
[[nodiscard]] RunReport simulate_stripes(std::int64_t n, const Machine& machine,
                                         const StripeOptions& stripes,
                                         Element precision = Element::fp64, std::int64_t rhs = 1);

}  // namespace strata
