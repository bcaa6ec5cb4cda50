#pragma once
// What a Cholesky factor of few digits leaves unsaid of log|Σ|, and how far the two Gaussian
// distributions are apart, both estimated with random probes.
//
// Contract: with M = L̃·L̃ᵀ and G = L̃⁻¹·Σ·L̃⁻ᵀ, log|Σ| − log|M| = tr log G, and the
// Kullback-Leibler divergence of N(0, M) from N(0, Σ), KL(N(0, Σ) ‖ N(0, M)), is
// ½·tr(G − I − log G). Neither G nor Σ exists; what multiplies by them keeps the vectors, too, on
// the devices as a rule (device_probes.hpp), and tells sums alone. Everything here is an estimate:
// the standard error is measured among the probes, no bound is proven. Equal inputs and seeds give
// equal results.

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace strata {

struct ProbeOptions {
  int probes = 32;  ///< at least 2; a block has so many columns, and each step keeps one block
  std::uint64_t seed = 1;
  int steps_max = 40;  ///< of Lanczos, each one product, one forward and one backward sweep
};

/// What a step of Lanczos tells of each probe.
struct ProbeSums {
  std::vector<double> shares;   ///< the newest vector times E times itself: the diagonal element
  std::vector<double> squares;  ///< of the norm of what is left of E times it
  /// In the first step: v_{j+1}ᵀ·E·v_j and v_jᵀ·E·v_{j+1} of neighbours; those of some pairs at
  /// least, one behind the other.
  std::vector<double> above{};
  std::vector<double> below{};
};

/// The bases of Lanczos with E = G − I, one for each probe, wherever their vectors are.
class ProbeVectors {
 public:
  virtual ~ProbeVectors() = default;
  [[nodiscard]] virtual std::int64_t n() const = 0;
  /// The newest vector of each basis is, in the first step, the probe: sign_of() over √n; later
  /// what the step before left, over a norm (∞: a basis that is whole already, whose vector is
  /// zeros). Multiplies them by E and subtracts from the products what each basis has of them, its
  /// vectors from the newest to the first, twice over.
  [[nodiscard]] virtual ProbeSums step(std::span<const double> norms) = 0;
};

/// Element i of probe j of order n, which is a sign.
[[nodiscard]] inline double sign_of(std::uint64_t seed, std::int64_t n, std::int64_t i,
                                    std::int64_t j) {
  return (random_bits(seed, static_cast<std::uint64_t>(j * n + i)) >> 63) != 0 ? 1.0 : -1.0;
}

struct LogDeterminantCorrection {
  /// Estimate of log|Σ| − log|L̃·L̃ᵀ|; NaN if a Ritz value of G was not positive.
  double correction = 0;
  /// Standard error of the mean over the probes, from their spread: √(Σ(xᵢ − x̄)²/(k·(k − 1))). 0
  /// where log G is diagonal: there each probe alone is exact.
  double standard_error = 0;
  /// How much the last step of Lanczos changed the mean. The quadrature's error falls at least
  /// geometrically, by ((√κ − 1)/(√κ + 1))² a step for G of condition κ (Ubaru, Chen, Saad 2017,
  /// section 4); while that is below ½ the change of a step exceeds all that are still to come.
  double truncation = 0;
  /// Root mean square of (vᵀG·w − wᵀG·v)/√2 over neighbouring probes: 0 for a G that is symmetric,
  /// so what there is of it is rounding in the operators, as large as it is in one vᵀG·v.
  double rounding = 0;

  /// The same for KL(N(0, Σ) ‖ N(0, L̃·L̃ᵀ)) in nats; its probes are never negative.
  double divergence = 0;
  double divergence_standard_error = 0;
  double divergence_truncation = 0;

  int probes = 0;
  int steps = 0;
  /// The change of the last step was below a hundredth of the standard error, or of what rounding
  /// hides anyway.
  bool converged = false;

  /// |ℓ(0; Σ) − ℓ̃(0)|, what the determinants alone change in a log-likelihood: ½·|correction|.
  [[nodiscard]] double likelihood_difference_at_zero() const { return std::abs(correction) / 2; }
  /// 3·(standard error + rounding) + truncation: how far log|L̃·L̃ᵀ| + correction is from log|Σ|.
  /// Statistical: with 32 probes it is exceeded in less than 5 of 100 cases, also where one
  /// eigenvalue dominates log G, so that the probes are far from normal. Where they are normal it
  /// is exceeded in less than 1 of 100 (Student's t with 31 degrees of freedom). No proven bound.
  [[nodiscard]] double statistical_bound_applied() const {
    return 3 * (standard_error + rounding) + truncation;
  }
  /// How far log|L̃·L̃ᵀ| as it is, without the correction, is from log|Σ|. Statistical likewise.
  [[nodiscard]] double statistical_bound_unapplied() const {
    return std::abs(correction) + statistical_bound_applied();
  }
};

/// By stochastic Lanczos quadrature. Throws Error{misuse} for fewer than 2 probes, less than 1 step
/// or a negative order, and what a step throws.
[[nodiscard]] LogDeterminantCorrection estimate_log_determinant(ProbeVectors& vectors,
                                                                const ProbeOptions& options = {});

/// t − log(1 + t) for t > −1, to a few units of rounding also where it is about t²/2; NaN below.
[[nodiscard]] double excess_over_log(double t);

}  // namespace strata
