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

}  // namespace strata::cli
