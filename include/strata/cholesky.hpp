#pragma once
// Dense symmetric positive definite systems, real or complex, of any size the host can hold.
//
// Contract: only the lower triangle of A is read; A is never modified. One call serves matrices
// that fit on the device and matrices that do not. On the planned path, and with a tile of the
// caller's, the factor is bit-identical whatever the budget, the policy and the number of devices.
// By itself a call takes the fastest tile, and may factor in core what a single GPU holds
// (CholeskyOptions). Arrays are in fp64 or fp32, or in complex128 or complex64: A is Hermitian
// then, and Lᵀ below the conjugate transpose. A complex matrix whose diagonal has an imaginary part
// is refused: Error{input} names the element.

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "strata/array_ref.hpp"
#include "strata/certificate.hpp"
#include "strata/cholesky_options.hpp"
#include "strata/options.hpp"

namespace strata {

/// How a positive definite matrix is factored.
struct CholeskyOptions {
  RunOptions run{};
  /// Order of a tile. 0: the one with which simulate_cholesky() predicts the fastest run on these
  /// devices, or, with CholeskyPath::planned, the one that follows from n and the kind of device
  /// alone.
  std::int64_t tile = 0;
  CholeskyPath path = CholeskyPath::automatic;
  CholeskyBlocking blocking{};  ///< on GPUs; zeros: as tuned
};

/// A Cholesky factor A = L·Lᵀ in packed tiles in host memory or in storage. A may be of any range:
/// where its elements are near the ends of that of the factor, a power of two times it is factored.
/// Move-only.
class CholeskyFactor {
 public:
  /// What save() wrote. If the directories of the tiles have moved, options.storage says where they
  /// are now; they may be read-only. Throws Error{input} for a file that is no such factor, or
  /// damaged, Error{storage} where the tiles are not whole.
  [[nodiscard]] static CholeskyFactor open(const std::string& directory,
                                           const RunOptions& options = {});
  /// Whether save() wrote to `directory`.
  [[nodiscard]] static bool is_at(const std::string& directory);
  CholeskyFactor(CholeskyFactor&&) noexcept;
  CholeskyFactor& operator=(CholeskyFactor&&) noexcept;
  ~CholeskyFactor();

  [[nodiscard]] std::int64_t n() const noexcept;
  [[nodiscard]] const FactorInfo& info() const noexcept;
  /// What the factorization did: times, traffic, memory.
  [[nodiscard]] const RunReport& report() const noexcept;
  [[nodiscard]] Element precision() const noexcept;
  [[nodiscard]] StoredParts stored() const;
  /// As the last solve() with A certified them; save() keeps them. NaN: there was none.
  [[nodiscard]] double scaled_condition() const noexcept;
  [[nodiscard]] double log_determinant_error() const noexcept;
  /// Writes the file "factor" in a directory, which is made if need be; whole or absent. It says
  /// where the tiles of a factor in storage rest. Throws Error{misuse} for a factor in host memory,
  /// or where the factorization failed, Error{storage}.
  void save(const std::string& directory) const;

  /// B ← A⁻¹·B for n × nrhs right-hand sides, in the factor's precision. Throws Error{misuse} if
  /// the shapes or the precision do not fit or the factorization failed. Returns what the two
  /// triangular solves did.
  RunReport solve(ArrayRef b);
  /// B ← L⁻¹·B.
  RunReport solve_lower(ArrayRef b);

  /// Copies L into the lower triangle of `out` (n × n, in the factor's precision); the rest of
  /// `out` is set to zero.
  void copy_lower(ArrayRef out) const;

  struct State;  ///< private to the library
  explicit CholeskyFactor(std::unique_ptr<State> state);
  [[nodiscard]] State& state() noexcept { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// Factors A (n × n, lower triangle). A numerical failure is in `info()`; everything else is thrown
/// as Error. With RunOptions::storage L rests in files, of which host memory takes what
/// RunOptions::host_memory_bytes says: tile by tile it is durable there, and with
/// StorageChoice::resume what a run that did not end has left is gone on with, to the same bits.
[[nodiscard]] CholeskyFactor cholesky(ConstArrayRef a, const CholeskyOptions& options = {});
/// The same in `precision`, fp64 or fp32, of complex numbers that of their parts, whatever A is in.
[[nodiscard]] CholeskyFactor cholesky(ConstArrayRef a, Element precision,
                                      const CholeskyOptions& options = {});

/// What cholesky() has left in the directories of options.storage, where they are now; they may be
/// read-only. Throws Error{storage} unless it is a factor, and whole.
[[nodiscard]] CholeskyFactor open_cholesky(const RunOptions& options);

/// What the journal of a directory of storage, the first one, says; it may be in use; nothing: no
/// such factor is in it. Throws Error{storage} where it cannot be read.
[[nodiscard]] std::optional<FactorProgress> cholesky_progress(const std::string& directory);

/// What `solve` hands back beside x.
struct SolveResult {
  Certificate certificate;
  /// A bound of what rounding did to log|A|, as LogDeterminant has it. NaN: the factorization
  /// failed.
  double log_determinant_error = std::numeric_limits<double>::quiet_NaN();
  RunReport factor;
  RunReport solve;
};

/// Solves A·X = B for n × nrhs right-hand sides; X may not overlap A or B. If A is not positive
/// definite, X is left as it was and certificate.factor.ok is false. One step of iterative
/// refinement is taken if it improves, further ones, with residuals in double-double, where
/// forward_error is above solution_error_wanted(). The system is factored and solved in the
/// precision of X; residuals, so the certificate and the refinement, are those of A and B as they
/// are given, in fp64. In complex64 and complex128 all that holds as in fp32 and fp64, errors of an
/// element being the magnitudes of their complex differences; X is complex where A is. Where A or a
/// column of B is near the ends of the range, a power of two times it is solved with. Elements of X
/// that leave the range all the same are not finite, and then backward_error is NaN. The condition
/// takes a few solves. Throws Error{misuse} for shapes or elements that do not fit.
[[nodiscard]] SolveResult solve(ConstArrayRef a, ConstArrayRef b, ArrayRef x,
                                const CholeskyOptions& options = {},
                                GivenTriangles given = GivenTriangles::lower);

/// The same with a factor in storage that is durable, of this A: nothing is factored, and what is
/// found of the condition and the log-determinant is kept with the factor. X is in the precision of
/// the factor. With no right-hand side that is all. Throws Error{numerical} where A is another
/// matrix.
[[nodiscard]] SolveResult solve(CholeskyFactor& factor, ConstArrayRef a, ConstArrayRef b,
                                ArrayRef x, GivenTriangles given = GivenTriangles::lower);

/// log|A| of a dense matrix, and how far it may be off.
struct [[nodiscard]] LogDeterminant {
  FactorInfo factor;  ///< log|A| is in it
  /// A bound of what rounding did to log|A|, A as it was given; as reliable as the estimate of
  /// ‖S⁻¹‖∞ that it takes. Inf: not a digit is known. NaN: the factorization failed.
  double error = std::numeric_limits<double>::quiet_NaN();
  double scaled_condition = std::numeric_limits<double>::quiet_NaN();  ///< as Certificate has it
  Element precision = Element::fp64;                                   ///< of the factor
  RunReport run;                                                       ///< the factorization
  double seconds = 0;
};
/// Factors A as `cholesky` does, and scales it as `solve` does where it is near the ends of the
/// range. What is factored is the lower triangle; with `both`, A may be Hermitian up to rounding,
/// and the error is that of log|det A| of A as it is given.
[[nodiscard]] LogDeterminant log_determinant(ConstArrayRef a, const CholeskyOptions& options = {},
                                             GivenTriangles given = GivenTriangles::lower);

/// What `cholesky` of order n would do on `machine`, without any data: the planned traffic, and a
/// simulated trace with its predicted seconds (`seconds` is 0: nothing runs). `generated`: the
/// matrix is a covariance that is generated on the devices. Throws Error{memory} as `cholesky`
/// would.
[[nodiscard]] RunReport simulate_cholesky(std::int64_t n, const Machine& machine,
                                          const CholeskyOptions& options = {},
                                          Element precision = Element::fp64,
                                          bool generated = false);

}  // namespace strata
