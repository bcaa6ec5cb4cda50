#pragma once
// strata solve of dense general systems, by LU with partial pivoting.

#include <string>

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
                      const Options& options);

/// strata factor A -o DIR by LU; the exit status.
struct GeneralFactorArguments {
  std::string output;
  std::string triangle;
  std::string precision;  ///< of the factor: fp64 or fp32
  std::string why;        ///< as of GeneralSystem
};
int run_general_factor(const MatrixFile& file, const GeneralFactorArguments& arguments,
                       const CommonOptions& common);

/// strata solve DIR b -o x with a factor by LU that was saved; the exit status.
struct SavedSolve {
  std::string factor;
  std::string rhs;
  std::string output;
  std::string matrix;    ///< A, to refine and certify with; empty: it is not at hand
  std::string triangle;  ///< of `matrix`
};
int run_saved_solve(const SavedSolve& system, const CommonOptions& common);

/// ok, zero_pivot, not_finite, growth and the determinant. A complex determinant has a phase and a
/// value of two parts in the place of a sign and a value.
[[nodiscard]] Json json_of_outcome(const LuInfo& info, bool complex);
/// log |det A| with its error (inf: no digit is known, NaN: that is not known) and its sign or
/// phase.
void print_lu_determinant(const Determinant& det, double error, bool complex);
/// "A.npy: the matrix is singular: …"
[[nodiscard]] std::string why_no_factor(const LuInfo& info, const std::string& path,
                                        Element precision);

}  // namespace strata::cli
