#pragma once
// Refinement: solutions of A·X = B to the accuracy of fp64 by a solver M⁻¹ that is accurate to some
// digits only, and quadratic forms bᵀA⁻¹b with what is not known of them.
//
// Contract: A is symmetric positive definite and known by its product with a block, in fp64; M⁻¹ is
// a fixed linear operator near A⁻¹, known likewise. Host code, in the calling thread; each
// column has its own recurrence, and all columns of a block go through an operator together. Equal
// inputs and operators give equal results. What stops a column is a value, not an exception.

#include <cstdint>
#include <vector>

#include "dense/dense_block.hpp"

namespace strata {

enum class RefinementMethod : std::uint8_t {
  conjugate_gradients,  ///< needs M⁻¹ symmetric positive definite
  gmres_left,           ///< any M⁻¹: GMRES on M⁻¹·A
  gmres_right,          ///< any M⁻¹: GMRES on A·M⁻¹, whose residuals are those of A itself
};

struct RefinementOptions {
  RefinementMethod method = RefinementMethod::conjugate_gradients;
  /// Columns for which A or M⁻¹ turned out not to be positive definite go on with gmres_right.
  bool fall_back = true;
  /// ‖A‖∞, or a bound on it or an estimate: > 0. See nonnegative_norm().
  double norm = 0;
  /// The backward error that is wanted; 0: attainable_backward_error(n).
  double tolerance = 0;
  int steps_max = 200;        ///< of each column, a step being one product and one solve
  int stagnation_steps = 20;  ///< without a gain of a tenth, after which a column is measured
  int restart = 30;           ///< of GMRES: its basis takes restart + 1 blocks of memory
};

enum class RefinementStop : std::uint8_t {
  reached,     ///< the tolerance
  stagnated,   ///< what was gained since the residual was last computed is less than half of it
  limit,       ///< steps_max
  indefinite,  ///< A or M⁻¹ is not positive definite, and there was no falling back
  failed,      ///< a number that is not finite came out of an operator, or went in
};

struct RefinedColumn {
  /// ‖b − A·x‖∞ / (norm·‖x‖∞ + ‖b‖∞) of the x that was handed back, of a residual computed anew;
  /// 0/0 counts as 0. It is the normwise backward error (Rigal, Gaches 1967) if `norm` is ‖A‖∞.
  double backward_error = 0;
  RefinementStop stop = RefinementStop::reached;
  int steps = 0;
  int replacements = 0;  ///< of the recurrence's residual by a computed one, while it went on
  /// The smallest and largest Ritz values of M⁻¹·A that conjugate gradients saw; 0 if they took no
  /// step. They lie within its spectrum in exact arithmetic: estimates of its ends from inside.
  double ritz_min = 0;
  double ritz_max = 0;
};

struct Refinement {
  bool converged = true;      ///< every column reached the tolerance
  double backward_error = 0;  ///< the largest; NaN if one is
  int steps = 0;              ///< the most of any column
  int products = 0;           ///< of a block by A, those for computed residuals included
  int solves = 0;             ///< of a block by M⁻¹
  /// False: pᵀA·p <= 0 or rᵀM⁻¹r <= 0 came up in conjugate gradients.
  bool definite = true;
  double tolerance = 0;
  double ritz_min = 0;  ///< over the columns; 0: none
  double ritz_max = 0;
  std::vector<RefinedColumn> columns;
  DenseBlock residuals{0, 0};  ///< B − A·X as computed at the end, n × r
};

/// max(4, √n)·2⁻⁵³. A residual that is summed up in fp64 carries errors up to
/// (n + 1)·2⁻⁵³·(|A|·|x| + |b|), of the order of √n with high probability (Higham, Mary, "A new
/// approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019): a target,
/// not a bound.
[[nodiscard]] double attainable_backward_error(std::int64_t n);

/// ‖A·e‖∞, e all ones: that is ‖A‖∞ where no element of A is negative, as in a Matérn covariance,
/// up to rounding; a lower bound on it otherwise.
[[nodiscard]] double nonnegative_norm(const BlockOperator& apply, std::int64_t n);

/// Improves X, which begins with what it holds (zeros, or what M⁻¹ gave), until each column reaches
/// the tolerance or cannot. No column is handed back worse than it came. Throws Error{misuse}
/// if shapes or options do not fit, and what the operators throw.
[[nodiscard]] Refinement refine(const BlockOperator& apply, const BlockSolver& precondition,
                                MatrixView<const double> b, MatrixView<double> x,
                                const RefinementOptions& options);

/// φ = bᵀA⁻¹b from x near A⁻¹b.
struct QuadraticForm {
  /// 2·bᵀx − xᵀA·x, summed up as bᵀx + rᵀx with r = b − A·x. In exact arithmetic
  /// φ − value = rᵀA⁻¹r >= 0: a lower bound, wrong by the square of the residual.
  double value = 0;
  /// rᵀM⁻¹r/λ. If 0 < λ <= λ_min(M⁻¹·A), then φ <= value + remainder in exact arithmetic: a proven
  /// bound. With λ a Ritz value it is an estimate, low by λ_min/λ at worst.
  double remainder = 0;
  /// γ·(norm·‖x‖∞ + ‖b‖∞)·‖x‖₁ with γ = (n + 2)·u/(1 − (n + 2)·u), u = 2⁻⁵³: how much rounding in r
  /// can have changed `value`, proven if `norm` >= ‖A‖∞ and A·x was summed up in fp64. A worst
  /// case: errors of either sign stay below by a factor of about √n.
  double rounding = 0;
};

/// The form of each column. `residuals` are B − A·X, as Refinement has them; `lambda` > 0 as in
/// QuadraticForm::remainder. One solve with M⁻¹.
[[nodiscard]] std::vector<QuadraticForm> quadratic_forms(MatrixView<const double> b,
                                                         MatrixView<const double> x,
                                                         MatrixView<const double> residuals,
                                                         const BlockSolver& precondition,
                                                         double lambda, double norm);

}  // namespace strata
