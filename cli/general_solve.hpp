#pragma once
// strata solve of dense general systems, by LU with partial pivoting.

#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"
#include "cli/dense_file.hpp"

namespace strata::cli {

struct GeneralSystem {
  const MatrixFile& matrix;
  const MatrixFile& rhs;
  std::string triangle;   ///< lower or upper: the matrix is that triangle, mirrored
  std::string precision;  ///< as --precision has it
  std::string output;
  std::string why;  ///< why LU: "A.npy: not symmetric: …"
};

/// Solves, writes x and tells; the exit status.
int run_general_solve(const GeneralSystem& system, const CommonOptions& common,
                      const LuOptions& options);

/// strata factor A -o DIR by LU; the exit status.
struct GeneralFactorArguments {
  std::string output;
  std::string triangle;
  std::string precision;             ///< of the factor: fp64 or fp32
  std::string why;                   ///< as of GeneralSystem
  std::vector<std::string> storage;  ///< directories
  bool resume = false;
  std::string element = "fp64";  ///< of a file called .raw
  bool by_rows = false;          ///< likewise
};
int run_general_factor(const MatrixFile& file, const GeneralFactorArguments& arguments,
                       const CommonOptions& common);

/// The same of a matrix in a file that need not be whole in memory, if L and U are to rest in
/// storage; nothing: they are not, or the file is not such a one.
std::optional<int> run_factor_in_storage(const std::string& path,
                                         const GeneralFactorArguments& arguments,
                                         const CommonOptions& common);

/// strata factor --status DIR: how much is factored of what rests there; the exit status.
int run_factor_status(const std::string& directory, const CommonOptions& common);

/// strata solve DIR b -o x with a factor by LU that was saved; the exit status.
struct SavedSolve {
  std::string factor;
  std::string rhs;
  std::string output;
  std::string matrix;    ///< A, to refine and certify with; empty: it is not at hand
  std::string triangle;  ///< of `matrix`
};
int run_saved_solve(const SavedSolve& system, const CommonOptions& common);
struct FactorShape {
  std::int64_t n = 0;
  bool complex = false;
};
struct MatrixShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool complex = false;
};
/// Throws Error{misuse} where --matrix cannot be what was factored.
void require_matrix_of_factor(const SavedSolve& system, const FactorShape& factor,
                              const MatrixShape& a);
/// Throws Error{input} for a directory in which a run that did not end has left a part of one.
void require_no_part_of_a_factor(const std::string& directory);
/// strata logdet of such a factor.
int run_saved_determinant(const std::string& factor, const CommonOptions& common);

/// ok, zero_pivot, not_finite, growth and the determinant. A complex determinant has a phase and a
/// value of two parts in the place of a sign and a value.
[[nodiscard]] Json json_of_outcome(const LuInfo& info, bool complex);
/// log |det A| with its error (inf: no digit is known, NaN: that is not known) and its sign or
/// phase.
void print_lu_determinant(const Determinant& det, double error, bool complex);
/// "A.npy: the matrix is singular: …". Where the transpose was factored, it names a row of A.
[[nodiscard]] std::string why_no_factor(const LuInfo& info, const std::string& path,
                                        Element precision, bool transposed = false);

}  // namespace strata::cli
