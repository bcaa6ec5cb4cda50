#pragma once
// What methods for tall and skinny matrices make of the blocks of CA-GMRES.
//
// Contract: CA-GMRES(s, restart) with the Newton basis (whose first cycle goes vector by vector)
// and double-double Cholesky QR gives its blocks, projected and not yet orthonormal; each method
// factors a copy of each, and then its own Q once more. So all of them are given the same blocks,
// up to the first that a double-double Cholesky factorization cannot factor. Source of the
// experiment: figures 22 to 24 of Yamazaki, Tomov and Dongarra, SIAM J. Sci. Comput. 37 (2015).

#include <cstdint>
#include <vector>

#include "strata/krylov.hpp"
#include "strata/qr.hpp"

namespace strata::bench {

struct BlockErrors {
  std::int64_t s = 15;
  std::int64_t restart = 60;
  std::int64_t cycles = 4;  ///< with blocks
  KrylovBasis basis = KrylovBasis::newton;
  std::vector<QrMethod> methods;
  bool balance = true;
};

/// One factorization V = Q·R.
struct FactorError {
  double orthogonality = 0;  ///< ‖I − QᵀQ‖_F, summed in double-double
  double residual = 0;       ///< ‖V − Q·R‖_F / ‖V‖_F
  double elementwise = 0;    ///< max |V − Q·R| / (|Q|·|R|), element by element
  bool failed = false;       ///< a pivot
};

/// One block and method.
struct BlockErrorRow {
  std::int64_t step = 0;  ///< blocks before it
  QrMethod method = QrMethod::cholqr;
  double condition = 0;  ///< of the block with unit columns, an estimate
  FactorError once;
  FactorError twice;  ///< Q of the first factored again; R is the product
};

/// ε·κ² and ε·κ, ε = 2^-53: what Cholesky QR loses with sums in doubles and in double-double.
[[nodiscard]] double bound_of_plain(double condition) noexcept;
[[nodiscard]] double bound_of_wide(double condition) noexcept;

[[nodiscard]] std::vector<BlockErrorRow> run_block_errors(const SparseMatrix& a,
                                                          const BlockErrors& what,
                                                          const RunOptions& options);

/// Q and R of V by a method, and how good they are; v is m × n.
struct MeasuredQr {
  std::vector<double> q;  ///< m × n
  std::vector<double> r;  ///< n × n
  double condition = 0;   ///< of Q before the method, with unit columns, by its R
  FactorError error;
};
[[nodiscard]] MeasuredQr measured_qr(MatrixView<const double> v, QrMethod method,
                                     const RunOptions& options);

}  // namespace strata::bench
