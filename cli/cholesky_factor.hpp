#pragma once
// strata factor --method cholesky --storage of a dense matrix, and what is done with such a factor.

#include <string>
#include <vector>

#include "cli/app.hpp"
#include "cli/general_solve.hpp"

namespace strata::cli {

/// strata factor A -o DIR by Cholesky of a dense A, tiles in files; the exit status.
struct CholeskyFactorArguments {
  std::string matrix;
  std::string output;
  std::string triangle;
  std::string precision;             ///< of the factor: fp64 or fp32
  std::vector<std::string> storage;  ///< directories; none: that of the output
  bool resume = false;
};
int run_cholesky_factor(const CholeskyFactorArguments& arguments, const CommonOptions& common);

/// strata solve DIR b -o x with such a factor; the exit status.
int run_saved_cholesky_solve(const SavedSolve& system, const CommonOptions& common);
/// strata logdet DIR.
int run_saved_cholesky_determinant(const std::string& factor, const CommonOptions& common);

/// What follows a log-determinant: " ± 3.1e-12", or that not a digit is known; nothing for NaN.
[[nodiscard]] std::string text_of_error(double error);

}  // namespace strata::cli
