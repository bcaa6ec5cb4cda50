#pragma once
// What the verbs of sparse symmetric matrices share: the file, its analysis, its factor, and how
// they are told of.

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/app.hpp"

namespace strata::cli {

/// A matrix as the file has it, and what was summed on the way.
struct SymmetricFile {
  SparseMatrix matrix;
  SummedEntries summed;
};
/// Takes the stored triangle of a file that declares a symmetric matrix; any other matrix has to be
/// symmetric up to rounding (matrix/symmetry.hpp). Else throws Error{numerical} that names two
/// elements, and --triangle where one triangle is all there is.
[[nodiscard]] SymmetricFile symmetric_of(MatrixMarket entries, const std::string& path);
/// The same of any file of a matrix, or of one of its triangles as --triangle says; dense ones
/// without their zeros.
[[nodiscard]] SymmetricFile read_symmetric(const std::string& path, const std::string& triangle);

/// Throws Error{numerical} for two elements that should be equal; `triangle` (lower or upper) if
/// one of them is all that the file holds, else nullptr.
[[noreturn]] void fail_not_symmetric(const std::string& path, const Asymmetry& pair,
                                     const char* triangle);

/// Numbers of rows from 0 on, separated by commas, spaces or line ends; throws an error of this
/// kind that names `source` and what is no such number.
[[nodiscard]] std::vector<std::int64_t> parse_rows(std::string_view text, const std::string& source,
                                                   ErrorKind kind);
/// Numbers of rows from 0 on in a .npy or .mtx file; any other is read as text. Throws
/// Error{input}.
[[nodiscard]] std::vector<std::int64_t> read_rows(const std::string& path);

/// How the order of elimination and supernodes are found.
struct AnalysisArguments {
  std::string ordering = "best";
  std::string saved;  ///< --analysis: a file that is taken instead
  AnalysisOptions options;
  std::vector<Option> added;

  /// --ordering and the bounds of amalgamation.
  void add_to(Command& verb);
  /// --analysis, which excludes those.
  void add_saved_to(Command& verb);
  [[nodiscard]] std::vector<std::string> inputs() const { return {ordering, saved}; }
  /// With the order of the file that --ordering names.
  [[nodiscard]] AnalysisOptions to_options(std::uint64_t seed) const;
};

/// Analyzes, or reads what was saved for this pattern; throws Error{misuse} for another pattern.
[[nodiscard]] SparseAnalysis analysis_of(const AnalysisArguments& arguments,
                                         const SparseMatrix& matrix, std::uint64_t seed);

[[nodiscard]] Json to_json(const SparseAnalysis& analysis, const SummedEntries& summed);
/// The elimination tree as the report draws it.
[[nodiscard]] ReportTree tree_of(const SparseAnalysis& analysis);

/// What is factored, and how.
struct FactorArguments {
  std::string matrix;    ///< a file, or the directory of a factor
  std::string triangle;  ///< of the matrix: --triangle
  AnalysisArguments analysis;
  double shift = 0;
  std::string precision = "fp64";  ///< of the factor: fp64 or fp32
  bool inverse = false;            ///< entries of the inverse will be asked for
  std::vector<Option> added;

  /// --triangle and all others but --precision.
  void add_to(Command& verb);
  /// --shift alone.
  void add_shift_to(Command& verb);
  /// --precision, with a word on what it means for the results of the verb.
  void add_precision_to(Command& verb, const std::string& results);
  /// Whether `matrix` is the directory of a factor.
  [[nodiscard]] bool is_saved() const;
  /// Files that outputs may not replace.
  [[nodiscard]] std::vector<std::string> inputs() const;
};

/// A factor, and the matrix it is of where that was read.
struct SparseFactorization {
  SymmetricFile file;
  bool saved = false;  ///< the factor was read, and there is no report of a run
  SparseCholesky factor;

  [[nodiscard]] const SparseAnalysis& analysis() const { return factor.analysis(); }
};

[[nodiscard]] SparseCholeskyOptions sparse_options_of(const CommonOptions& common,
                                                      const FactorArguments& arguments);
/// Analyzes and factors what was read.
[[nodiscard]] SparseFactorization factor_file(SymmetricFile file, const FactorArguments& arguments,
                                              const CommonOptions& common);
/// The same of a file, or the factor that was saved.
[[nodiscard]] SparseFactorization read_factor(const FactorArguments& arguments,
                                              const CommonOptions& common);

/// Fields of the run, `factor`, `precision`, `shift` and `analysis`.
[[nodiscard]] Json to_json(const SparseFactorization& f);
/// What devices moved to factor, unless the factor was saved, and for solves with it, if anything:
/// as text, and as field `solves`.
void print_traffic_of(const SparseFactorization& f);
void add_solves(const SparseFactorization& f, Json& object);
/// What is known of a factor beside A: nothing, NaN, where A is not at hand.
struct FactorQuality {
  double scaled_condition = std::numeric_limits<double>::quiet_NaN();
  FactorErrors errors{std::numeric_limits<double>::quiet_NaN(),
                      std::numeric_limits<double>::quiet_NaN()};
  bool singular = false;  ///< as far as the factor tells
};
/// `errors`: they are wanted, too.
[[nodiscard]] FactorQuality quality_of(const SparseFactorization& f, bool errors);
/// Fields scaled_condition and numerically_singular.
void add_to_json(const FactorQuality& quality, Json& object);
/// The files that a verb reads which takes a matrix or a factor.
[[nodiscard]] std::vector<std::string> inputs_of(const FactorArguments& a,
                                                 const CommonOptions& common);
/// How far results are off at most; `kind` is absolute or relative.
void print_error(const char* kind, double error);

/// How the matrix is scaled that the condition is of.
inline constexpr const char* kUnitDiagonal = "to a unit diagonal";
inline constexpr const char* kRowsAndColumns = "by rows and columns";
void print_condition(double scaled_condition, const char* scaled = kUnitDiagonal);
/// One line on standard error where A is numerically singular; the exit status.
int report_singular(double scaled_condition, Element precision, bool of_factor,
                    const char* scaled = kUnitDiagonal);
/// The same where its condition does not say so, but no digit of its determinant is known.
int report_unknown_determinant(Element precision);
/// What ran on what.
void print_run(const SparseFactorization& f);
/// Log-determinant, entries of L, supernodes, and seconds.
void print_factor(const SparseFactorization& f);
/// The page's figures of a factor, its tree, and its run.
[[nodiscard]] ReportData report_of(const SparseFactorization& f);
/// What a factorization failed at.
struct NotDefinite {
  std::string what = "the matrix";  ///< that was factored, + shift·I
  FactorInfo info;
  double shift = 0;
  FailedPlace place;
  std::int64_t empty_rows = 0;  ///< that hold nothing but zeros
  std::int64_t first_empty_row = -1;
};
/// Where Cholesky's factorization of A + shift·I failed.
[[nodiscard]] FailedPlace failed_place(const SparseMatrix& a, const FactorInfo& info, double shift,
                                       Element precision);
[[nodiscard]] FailedPlace failed_place(const SparseFactorization& f);
/// How a shift is searched for after a failed factorization of so many operations: by further ones,
/// where that takes seconds.
[[nodiscard]] DefiniteShiftOptions shift_search(double flops);
/// What is said of a shift: that it was factored, or is proven.
[[nodiscard]] std::string known_by(const DefiniteShift& shift);
/// Fields definite_shift, definite_shift_known_by, and least_diagonal with its row.
void add_to_json(const DefiniteShift& shift, Json& object);
/// One line on standard error with the row, its pivot and the shift that does, and `object` if
/// --json asks for it; the exit status.
int report_not_definite(const CommonOptions& common, const NotDefinite& failure,
                        const DefiniteShift& shift, Json object);
/// The same with the shift that `f` finds, which then is another factor.
int report_not_definite(const CommonOptions& common, SparseFactorization& f, Json object);

/// What is said of a solution that is not what was promised, 4ε·√n as a backward error and a
/// forward error of solution_error_wanted() at most, of a singular matrix, and of numbers that left
/// the range; the exit status.
struct SolutionCheck {
  const Certificate& certificate;
  std::int64_t n = 0;
  bool singular = false;
  bool of_factor = false;  ///< the precision is that of a factor, and x is in fp64
  const char* scaled = kUnitDiagonal;
};
int report_solution(const SolutionCheck& check);
/// What a solution in this precision of n unknowns is to stay within.
[[nodiscard]] double backward_error_promised(Element precision, std::int64_t n);
/// Field `ok` of `certificate`: whether it is what was promised; and `why`, where it is not.
void add_to_json(const SolutionCheck& check, Json& object);
int report_out_of_range(Element precision);
/// Backward errors, condition and the bound of the error.
void print_certificate(const Certificate& certificate, const char* scaled = kUnitDiagonal);

/// strata solve of a sparse matrix, or with a saved factor.
struct SparseSystem {
  std::string rhs;
  std::string output;
  std::string matrix;      ///< of a saved factor: A itself, to refine and certify with
  bool condition = false;  ///< whether it is estimated
};
/// Solves, writes x and tells; the exit status. `file` is what FactorArguments::matrix holds, where
/// it is no saved factor.
int run_sparse_solve(std::optional<SymmetricFile> file, const SparseSystem& system,
                     const FactorArguments& arguments, const CommonOptions& common);

}  // namespace strata::cli
