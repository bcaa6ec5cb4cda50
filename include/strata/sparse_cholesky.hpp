#pragma once
// Analysis of a sparse symmetric matrix before its Cholesky factorization: order of elimination,
// supernodes, their row structure, and what a factorization will take.
//
// Contract: an analysis follows from the pattern of A and the options alone; it has the same bits
// on any number of threads. It knows no value of A, so one analysis serves all matrices of the same
// pattern, and it is pure data: arrays that a later factorization reads. What is misused is
// Error{misuse}; not finite is Error{input}, not symmetric Error{numerical}, naming the entries.
// Numbers of rows have 32 bits, sizes of the factor 64.
//
// Words: *order* lists rows of A as they are eliminated; the columns of L have these numbers. A
// *supernode* is a range of columns of L that are stored as one dense panel: its own columns, and
// below them its *rows*. The *parent* of a supernode is the one that owns the first of its rows; so
// supernodes form a forest, and a *branch* of it is a supernode with all below. Parents come behind
// their children and branches are contiguous (postorder).

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/machine.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

/// How rows are ordered so that L has few entries.
enum class SparseOrdering : std::uint8_t {
  best,     ///< of metis and amd the one with fewer operations, counted
  metis,    ///< nested dissection; separators by METIS (Karypis, Kumar 1998)
  amd,      ///< approximate minimum degree (Amestoy, Davis, Duff 1996)
  natural,  ///< as A is
  given,    ///< as the caller says
};
/// "best", …; and back, throwing Error{misuse} with the names there are.
[[nodiscard]] std::string_view to_string(SparseOrdering ordering) noexcept;
[[nodiscard]] SparseOrdering parse_sparse_ordering(const std::string& name);

struct AnalysisOptions {
  SparseOrdering ordering = SparseOrdering::best;
  /// With SparseOrdering::given: order[k] is the row of A that is eliminated as the k-th.
  /// Supernodes may exchange columns that do not depend on each other, which changes no entry of
  /// the factor.
  std::vector<std::int32_t> order;
  std::uint64_t seed = 1;  ///< of nested dissection
  int threads = 0;         ///< of nested dissection; 0: one for each core
  /// Amalgamation: a supernode is joined with its parent if the panel of both holds at most
  /// (1 + relax_bytes) times the entries that its columns have in L, and s more, and is factored in
  /// at most (1 + relax_flops) times their operations, and s² more. Here s is `relax_entries`, and
  /// `relax_rows` for each row below its columns, up to kRelaxRowsMax of them: the overhead of a
  /// small supernode grows with its update. So these bound the factor as a whole, too. Four zeros:
  /// no zero is stored. The defaults are measured on a GPU (docs/benchmarks.md).
  static constexpr std::int64_t kRelaxRowsMax = 512;
  double relax_bytes = 0.2;
  double relax_flops = 0.2;
  std::int64_t relax_entries = 64;
  double relax_rows = 8;
};

/// What tells patterns apart: whatever triangles were given, and whatever values.
struct PatternFingerprint {
  std::int64_t order = 0;
  std::int64_t entries = 0;  ///< below the diagonal
  std::array<std::uint64_t, 2> hash{};
  bool operator==(const PatternFingerprint&) const = default;
};

/// What a factorization will take. Operations count multiplications, additions, divisions and
/// roots of a factorization column by column, a column of c entries, the diagonal included, as c².
struct AnalysisCounts {
  double flops = 0;                         ///< of L itself, without stored zeros
  std::int64_t factor_entries = 0;          ///< of L, the diagonal included
  double stored_flops = 0;                  ///< with the zeros that supernodes store
  std::int64_t stored_entries = 0;          ///< of the lower triangles of panels
  std::int64_t panel_bytes = 0;             ///< of all panels as rectangles of doubles: the factor
  std::int64_t fundamental_supernodes = 0;  ///< before amalgamation
  /// Doubles of the widest, and of the largest panel, and the largest update (rows × rows).
  std::int64_t widest = 0;
  std::int64_t largest_panel_bytes = 0;
  std::int64_t largest_update_bytes = 0;
  /// Memory of a multifrontal factorization in postorder: the most that update matrices and the
  /// current panel take together, in bytes; a panel leaves when it is done (Liu 1986).
  std::int64_t stack_bytes = 0;
  /// Memory of a left-looking factorization beside the factor: the largest product that one
  /// supernode adds to another, in bytes.
  std::int64_t product_bytes = 0;
  std::int64_t height = 0;                 ///< supernodes on the longest way from a leaf to a root
  double critical_flops = 0;               ///< the most stored_flops on such a way
  std::int64_t empty_diagonals = 0;        ///< rows of A without a diagonal entry …
  std::int64_t first_empty_diagonal = -1;  ///< … and the first of them, in the numbering of A
};

struct AnalysisSeconds {
  double pattern = 0;
  double ordering = 0;
  double symbolic = 0;
  [[nodiscard]] double total() const noexcept { return pattern + ordering + symbolic; }
};

struct SparseAnalysis {
  PatternFingerprint fingerprint;
  SparseOrdering ordering = SparseOrdering::natural;  ///< the one that was taken, never best
  std::uint64_t seed = 0;

  std::vector<std::int32_t> order;  ///< n: row of A that is eliminated as the k-th
  /// Supernode s has the columns first[s] … first[s + 1] − 1 of L; one more than supernodes.
  std::vector<std::int32_t> first{0};
  /// Parent of each supernode; −1: a root. All rows of a supernode are columns or rows of its
  /// parent.
  std::vector<std::int32_t> parent;
  /// Rows of supernode s below its columns: row_start[s] … row_start[s + 1] − 1 of `row`, which
  /// holds numbers of columns of L, ascending.
  std::vector<std::int64_t> row_start{0};
  std::vector<std::int32_t> row;
  std::vector<std::int32_t> branch;  ///< the first supernode of the branch that ends with s
  /// 0 for a leaf, else one more than the largest of its children: supernodes of a level do not
  /// depend on each other.
  std::vector<std::int32_t> level;

  AnalysisCounts counts;
  AnalysisSeconds seconds;  ///< not saved

  [[nodiscard]] std::int32_t supernodes() const noexcept {
    return static_cast<std::int32_t>(parent.size());
  }
  [[nodiscard]] std::int64_t width(std::int32_t s) const {
    return first[static_cast<std::size_t>(s) + 1] - first[static_cast<std::size_t>(s)];
  }
  [[nodiscard]] std::int64_t row_count(std::int32_t s) const {
    return row_start[static_cast<std::size_t>(s) + 1] - row_start[static_cast<std::size_t>(s)];
  }
  [[nodiscard]] std::span<const std::int32_t> rows(std::int32_t s) const {
    return std::span(row).subspan(static_cast<std::size_t>(row_start[static_cast<std::size_t>(s)]),
                                  static_cast<std::size_t>(row_count(s)));
  }
  /// Bytes of the panel of s, stored as a rectangle of doubles.
  [[nodiscard]] std::int64_t panel_bytes(std::int32_t s) const {
    return (width(s) + row_count(s)) * width(s) * 8;
  }
  /// Operations of the columns of s, and of their updates of others.
  [[nodiscard]] double flops(std::int32_t s) const;
};

/// A is symmetric: both triangles, or one with the diagonal, which then stands for both; in this
/// case values above and below the diagonal must agree to 1e-12. Its values count for nothing else.
/// Throws Error{input} naming both entries that differ, or an entry that is not finite,
/// Error{misuse} for what is not square or options that make no sense, Error{device} where METIS
/// is asked for and not installed, Error{memory}.
[[nodiscard]] SparseAnalysis analyze(const SparseMatrix& a, const AnalysisOptions& options = {});

[[nodiscard]] PatternFingerprint pattern_fingerprint(const SparseMatrix& a);
/// Throws Error{misuse} unless `a` has the pattern that was analyzed.
void require_same_pattern(const SparseAnalysis& analysis, const SparseMatrix& a);
/// Throws Error{misuse} unless the arrays fit together as SparseAnalysis says.
void require_well_formed(const SparseAnalysis& analysis);

/// Writes an analysis to a binary file with a version and a checksum. Throws Error{storage}.
void save_analysis(const SparseAnalysis& analysis, const std::string& path);
/// Reads it back, equal in all but `seconds`. Throws Error{input} for a file that is damaged,
/// truncated, of another version or none of these, Error{memory}.
[[nodiscard]] SparseAnalysis load_analysis(const std::string& path);

/// The supernodes of one level together.
struct TreeLevel {
  std::int64_t supernodes = 0;
  std::int64_t columns = 0;
  std::int64_t widest = 0;
  std::int64_t panel_bytes = 0;
  double flops = 0;
};
/// From the leaves (0) to the last root.
[[nodiscard]] std::vector<TreeLevel> tree_levels(const SparseAnalysis& analysis);

/// The largest branches whose panels and stack of updates need at most `bytes_max` together: each
/// is told by its last supernode, ascending. What is in none of them is above all of them.
[[nodiscard]] std::vector<std::int32_t> branches_within(const SparseAnalysis& analysis,
                                                        std::int64_t bytes_max);

/// Where the rows of supernode s from `ancestor`'s first column on lie in the panel of `ancestor`:
/// element i is the place of row rows(s)[from + i], `from` being the first that is not before that
/// column. A place below width(ancestor) is one of its columns.
[[nodiscard]] std::vector<std::int32_t> relative_indices(const SparseAnalysis& analysis,
                                                         std::int32_t s, std::int32_t ancestor);

}  // namespace strata
