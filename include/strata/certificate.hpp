#pragma once
// What factorizations and solves say of their numbers, whatever the method: outcomes, certificates,
// of which matrix these are, and what is known of factors in storage.

#include <cstdint>
#include <limits>
#include <string>

#include "strata/element.hpp"

namespace strata {

/// The numerical outcome of a factorization.
struct [[nodiscard]] FactorInfo {
  bool ok = true;
  std::int64_t first_bad_pivot =
      -1;  ///< 0-based global index of the first pivot that is not positive; −1: none
  double bad_pivot = 0;        ///< its value; NaN if the data held a NaN
  double log_determinant = 0;  ///< of A, natural logarithm; only if ok
  double growth = 1;  ///< max |L_ij|² / max A_ii; at most 1 for a positive definite matrix
};

/// What a solve hands back.
struct [[nodiscard]] Certificate {
  FactorInfo factor;
  /// max over columns of ‖b − A·x‖∞ / (‖A‖∞·‖x‖∞ + ‖b‖∞), summed up in fp64; 0/0 counts as 0, and
  /// it is NaN if the solution holds one.
  double backward_error = 0;
  /// max over columns and rows of |b − A·x| / (|A|·|x| + |b|): the least relative change of every
  /// element that makes x exact (Oettli, Prager 1964). Unlike the one above it sees rows that are
  /// small beside others. 0/0 counts as 0.
  double componentwise_backward_error = 0;
  /// An estimate of ‖S‖∞·‖S⁻¹‖∞, S = D·A·D with D = diag(A)^(−1/2): the condition that bad scaling
  /// does not raise. Estimates are from below, mostly exact to a digit. NaN: not asked for.
  double scaled_condition = std::numeric_limits<double>::quiet_NaN();
  /// max over columns of a bound on ‖x − A⁻¹·b‖∞ / ‖x‖∞, A and b as they were given; as reliable as
  /// the estimates it takes. 0/0 counts as 0. Inf: not a digit is known. NaN: not asked for.
  double forward_error = std::numeric_limits<double>::quiet_NaN();
  int refinement_steps = 0;
  Element precision = Element::fp64;  ///< of the factor and the solution
  std::int64_t bytes_moved = 0;
  double seconds = 0;
};

/// The scaled condition, as Certificate has it, from which on less than a digit of A⁻¹·b follows
/// from A as numbers of that precision hold it: 1/(8·u), u half a unit in the last place; 1.1e15 in
/// fp64, 2.1e6 in fp32. Factors of matrices that are singular but for rounding have more.
[[nodiscard]] double singular_condition(Element precision) noexcept;
/// Whether A is numerically singular: a condition from there on, or one that is no number.
[[nodiscard]] bool numerically_singular(double condition, Element precision) noexcept;

/// What is wanted of Certificate::forward_error, by the precision of the solution: above 1e-6 in
/// fp64 and 0.1 in fp32, which holds seven digits, x is refined further, and if that does not help
/// it counts as no solution.
[[nodiscard]] double solution_error_wanted(Element precision) noexcept;

/// What of a symmetric A is read.
enum class GivenTriangles : std::uint8_t {
  lower,  ///< the elements on and below the diagonal
  /// All. Elements that mirror each other (complex ones are then conjugates of each other) may
  /// differ by rounding. What is factored is the lower triangle, but residuals, so X and the
  /// certificate, are those of A as it is given.
  both,
};

/// What is known of a factor in storage beside its numbers: its parts, which are tiles of Cholesky
/// or panels of LU, how many of them a run that did not end had left, and how files are read and
/// written: "io_uring, O_DIRECT".
struct StoredParts {
  std::int64_t count = 0;  ///< 0: it is in host memory
  std::int64_t found = 0;
  std::string how{};
};

/// How much is durable of a factor in storage that may still be in the making.
struct FactorProgress {
  std::string about;       ///< "Cholesky of order 16384 in fp64, tiles of order 512"
  std::int64_t count = 0;  ///< tiles of Cholesky, panels of LU
  std::int64_t done = 0;   ///< those of them that are durable
  double work_share = 0;   ///< of the floating-point operations of all
  double seconds = 0;      ///< from when its directory was made until the last tile or panel
};

}  // namespace strata
