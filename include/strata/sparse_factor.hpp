#pragma once
// Sparse symmetric positive definite systems: A = L·Lᵀ, supernode by supernode.
//
// Contract: A is given as analyze() takes it: both triangles, or one with the diagonal. It is never
// modified. L belongs to P·A·Pᵀ, P the order of the analysis; whatever goes in and comes out here,
// vectors and numbers of rows alike, is in the numbering of A. The factor has the same bits
// whatever the budgets, the number of devices and the run. A matrix that is not positive definite
// is a value (FactorInfo), which names the first row that fails in the order of elimination; what
// is misused, or no symmetric matrix, is thrown as Error. Not thread-safe, except for const calls;
// where several GPUs make fronts together, factorizations of one process take turns.
//
// Method: multifrontal (Duff, Reid 1983) on the relaxed supernodes of the analysis; the upper part
// of the tree in tiles. See docs/design/0016-fronts-as-blocks.md.

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strata/certificate.hpp"
#include "strata/matrix_view.hpp"
#include "strata/options.hpp"
#include "strata/sparse_cholesky.hpp"

namespace strata {

/// The tree level by level, as batches of small dense operations on several streams (Rennich,
/// Stosic, Davis, "Accelerating sparse Cholesky factorization on GPUs", Parallel Computing 59,
/// 2016): fronts of order up to 64 so many a launch, larger ones one by one by the BLAS. A
/// yardstick for the programs of branches that GPUs have otherwise, for one device that holds all
/// blocks.
struct LevelBatches {
  int batch = 16;       ///< fronts of a launch, at most
  int streams = 16;     ///< queues of the device, at most 64
  bool traced = false;  ///< the report's trace tells when each operation ran, which takes time
};

struct SparseCholeskyOptions {
  /// Devices, their budgets, rates and progress. Where one GPU holds L
  /// and all updates, or several do between them, L stays there until it is asked for. Where GPUs
  /// and CPUs are named ("cuda:0+host:1"), those of one kind factor unless a plan for all of them
  /// is predicted to end sooner. That follows from the pattern, the rates and the memory of the
  /// devices: the backend, and with it the bits, may change from machine to machine. With names of
  /// one kind they do not.
  RunOptions run{};
  AnalysisOptions analysis;
  double shift = 0;  ///< σ: A + σI is factored
  /// Precision of the factor: fp64, or fp32 in half the memory, for which refine() and solve() make
  /// solutions of fp64 as long as the condition is below about 1e7; A has to be in the range of
  /// floats. Vectors and results are always double; log-determinants and inverses have the digits
  /// that the factor has.
  Element precision = Element::fp64;
  /// Which fronts are cut into tiles, and of what order; how large branches are at most. 0: as it
  /// suits CPUs. Tiles change rounding, branches nothing. At most 46,340, but for branches.
  std::int64_t tile = 0;
  std::int64_t panel_order = 0;
  std::int64_t branch_entries = 0;
  std::optional<LevelBatches> batches;  ///< in place of branches and tiles
  /// Entries of the inverse will be asked for: their host memory is planned and told
  /// (RunReport::host_bytes), and what does not have it is refused before it is factored.
  bool inverse = false;
};

/// Entries of A⁻¹ where L has entries (and where supernodes store zeros), both triangles.
using SelectedInverse = SparseMatrix;

/// The columns of one supernode of it, from the diagonal down.
struct SelectedPanel {
  std::span<const std::int32_t> rows;  ///< of A; the first ones are those of the columns
  /// Element (i, j), i >= j, is that of A⁻¹ in row rows[i] and column rows[j].
  MatrixView<const double> values;
};

class SparseCholesky {
 public:
  /// Analyzes and factors. Throws as analyze() does, Error{memory} for a budget that does not
  /// suffice, saying what would, Error{device}, Error{cancelled}.
  explicit SparseCholesky(const SparseMatrix& a, const SparseCholeskyOptions& options = {});
  /// Factors with an analysis of the same pattern; options.analysis is not read. Throws
  /// Error{misuse} for another pattern.
  SparseCholesky(SparseAnalysis analysis, const SparseMatrix& a,
                 const SparseCholeskyOptions& options = {});
  SparseCholesky(SparseCholesky&&) noexcept;
  SparseCholesky& operator=(SparseCholesky&&) noexcept;
  ~SparseCholesky();

  [[nodiscard]] std::int64_t n() const noexcept;
  [[nodiscard]] const SparseAnalysis& analysis() const noexcept;
  /// first_bad_pivot is a row of A.
  [[nodiscard]] const FactorInfo& info() const noexcept;
  /// What the last factorization did.
  [[nodiscard]] const RunReport& report() const noexcept;
  /// What devices have done since then for solves, and to bring L home, all of it together. `path`
  /// is empty if nothing: the host solves with an L that is at home.
  [[nodiscard]] const RunReport& solves() const noexcept;
  [[nodiscard]] double shift() const noexcept;
  [[nodiscard]] Element precision() const noexcept;
  /// L is that of 2^(−exponent)·(A + shift·I): an even number where A is so near the ends of the
  /// range of its precision that numbers on the way would leave it, else 0. Solves, determinants
  /// and inverses are those of A all the same, host memory's where it is not 0.
  [[nodiscard]] int exponent() const noexcept;

  /// Factors another matrix of the same pattern, A + shift·I. Plans and memory are used again.
  /// Throws Error{misuse} for another pattern, after which the factor is gone.
  const FactorInfo& refactor(const SparseMatrix& a, double shift = 0);

  /// The same with values alone, as many and in the order of those of the last matrix, in host
  /// memory or in that of the first device: for a factor in fp64 that stays on GPUs. Nothing is
  /// checked: one triangle is read, and what is no number is no positive pivot. Throws
  /// Error{misuse} for other factors.
  const FactorInfo& refactor_values(std::span<const double> values, double shift = 0);

  // Below: throw Error{misuse} if shapes do not fit, or the last factorization failed or was not
  // completed.

  /// B ← A⁻¹·B, n × nrhs. By the GPUs that hold L, or, if a GPU made it but does not hold it, by
  /// its way through that one, once for as many columns as its budget holds; else by the host.
  void solve(MatrixView<double> b) const;
  /// B ← 2^exponent·A⁻¹·B, whose numbers are in range where those of A⁻¹·B may not be.
  void solve_in_range(MatrixView<double> b) const;
  /// B ← L⁻¹·P·B, whose rows are in the order of elimination; in fp64 whatever L is in, as is the
  /// next.
  void solve_lower(MatrixView<double> b) const;
  /// B ← Pᵀ·L⁻ᵀ·B, of rows in the order of elimination.
  void solve_lower_transposed(MatrixView<double> b) const;

  /// The diagonal of A⁻¹: marginal variances where A is a precision matrix (n). Beside L it takes
  /// the panels of the inverse on the way from the root (SparseCholeskyOptions::inverse). Throws
  /// Error{memory}.
  [[nodiscard]] std::vector<double> inverse_diagonal() const;
  /// (Takahashi, Fagan, Chin 1973; Erisman, Tinney 1975.) The result takes 12 bytes an entry.
  [[nodiscard]] SelectedInverse selected_inverse() const;
  /// The same panel by panel, from the last supernode to the first, in the memory of
  /// inverse_diagonal(). A panel is there until `visit` returns; what that throws passes through.
  void for_selected_inverse(const std::function<void(const SelectedPanel&)>& visit) const;
  /// Those of its lower triangle.
  [[nodiscard]] std::int64_t selected_entries() const;
  /// An estimate from below of ‖A‖₁·‖A⁻¹‖₁, mostly exact to a digit (Higham, Tisseur 2000), by up
  /// to five solves of four right-hand sides; A is the matrix that was factored, without the shift,
  /// which is added.
  [[nodiscard]] double condition(const SparseMatrix& a) const;
  /// The same of A scaled to a unit diagonal, as Certificate has it: what numerically_singular() is
  /// told. Never above what a factor of so few digits can tell from singular.
  [[nodiscard]] double scaled_condition(const SparseMatrix& a) const;

  /// Writes both into a directory, which is made: both or none. Throws Error{storage, cancelled}.
  void save(const std::string& directory) const;
  /// Reads both back; it can solve at once. With a factor that GPUs made the GPUs of `options`
  /// solve if they are named, or if L has 256 MiB or more. From the first solve on L stays on them
  /// if it is in fp64, stayed where it was made, and as many GPUs hold it and all updates; else it
  /// streams. With others, and where memory is too short for that, the host solves. Throws
  /// Error{input} for what is damaged, truncated or none of these, Error{memory}.
  [[nodiscard]] static SparseCholesky open(const std::string& directory,
                                           const SparseCholeskyOptions& options = {});

  struct State;  ///< private to the library

 private:
  explicit SparseCholesky(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Refines X, a solution of A·X = B by this factor, with residuals in double-double, until its
/// backward error is a few ulps row by row, or neither that nor the corrections are halved any
/// longer, and says what it is. With what scaled_condition() says it bounds the error of X, too,
/// which takes one more solve of each column. A + shift·I counts as A. Where both triangles of A
/// are given and differ by rounding, residuals, so X and what is said of it, are those of A as
/// given.
[[nodiscard]] Certificate refine(
    const SparseCholesky& factor, const SparseMatrix& a, MatrixView<const double> b,
    MatrixView<double> x, double scaled_condition = std::numeric_limits<double>::quiet_NaN());

/// How far what follows from L alone is off, which nothing refines: bounds as far as 16 products
/// with random vectors tell, of a wide margin. Inf: not a digit is known.
struct FactorErrors {
  double log_determinant = 0;  ///< absolute
  double inverse = 0;          ///< of elements of the diagonal of the inverse, relative
};
/// Measured on the factor, A + shift·I the matrix that was factored, by two solves of eight
/// right-hand sides.
[[nodiscard]] FactorErrors factor_errors(const SparseCholesky& factor, const SparseMatrix& a);

/// What `solve` of a sparse matrix hands back beside x.
struct SparseSolveResult {
  Certificate certificate;
  RunReport factor;
  AnalysisSeconds analysis;
};

/// Solves (A + shift·I)·X = B, n × nrhs; X may not overlap B. If that matrix is not positive
/// definite, X is left as it was and certificate.factor.ok is false.
[[nodiscard]] SparseSolveResult solve(const SparseMatrix& a, MatrixView<const double> b,
                                      MatrixView<double> x,
                                      const SparseCholeskyOptions& options = {});

/// What elimination of some rows leaves of a matrix.
struct SchurComplement {
  FactorInfo factor;  ///< of the rows that were eliminated; first_bad_pivot is a row of A
  RunReport run;      ///< of their factorization
  std::int64_t order = 0;
  /// order × order, column-major, both triangles: row i belongs to kept[i]. Empty unless factor.ok.
  std::vector<double> values;
};
/// S = A_KK − A_KR·A_RR⁻¹·A_RK of A + shift·I, K the rows `kept` (no row twice) and R the others.
/// In fp64. Throws as SparseCholesky does, and Error{misuse} for rows that A has not.
[[nodiscard]] SchurComplement schur_complement(const SparseMatrix& a,
                                               std::span<const std::int64_t> kept,
                                               const SparseCholeskyOptions& options = {});

/// A shift that makes a matrix positive definite, and how that is known.
struct DefiniteShift {
  double shift = 0;  ///< 0: A is positive definite as it is; infinite: no double is large enough
  bool factored = false;        ///< A + shift·I was factored, and is not numerically singular
  bool proven = false;          ///< it is positive definite by the discs of Gershgorin
  int factorizations = 0;       ///< that were tried
  double least_diagonal = 0;    ///< of A
  std::int64_t least_row = -1;  ///< where that is
};
struct DefiniteShiftOptions {
  int steps = 100;              ///< products with A at most, of Lanczos' method
  int factorizations_max = 40;  ///< 0: the bound by Gershgorin's discs alone
};
/// A small shift for which A + shift·I is positive definite: in fp64 about a hundredth above the
/// least. Begins with −λ_min by Lanczos' method and the least diagonal element, factors A with
/// that, doubles it until a factorization succeeds, and then finds λ_min by that factor. Throws as
/// SparseCholesky does.
[[nodiscard]] DefiniteShift definite_shift(const SparseMatrix& a,
                                           const DefiniteShiftOptions& options = {},
                                           const SparseCholeskyOptions& factoring = {});
/// The same by the devices, in the precision and with the analysis of a factor, which may have
/// failed; it is another one afterwards.
[[nodiscard]] DefiniteShift definite_shift(SparseCholesky& factor, const SparseMatrix& a,
                                           const DefiniteShiftOptions& options = {});

/// What a factorization would do on `machine`, without values: planned traffic, simulated seconds.
[[nodiscard]] RunReport simulate_sparse_cholesky(const SparseAnalysis& analysis,
                                                 const SparseMatrix& a, const Machine& machine,
                                                 const SparseCholeskyOptions& options = {});
/// The same of the first solve with it, of so many right-hand sides in host memory: planned traffic
/// (SparseCholesky::solves). Its `path` is empty where the host solves.
[[nodiscard]] RunReport simulate_sparse_solve(const SparseAnalysis& analysis, const SparseMatrix& a,
                                              const Machine& machine, std::int64_t columns,
                                              const SparseCholeskyOptions& options = {});

}  // namespace strata
