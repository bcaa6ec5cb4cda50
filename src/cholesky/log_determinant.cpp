// Stochastic Lanczos quadrature near the identity.
//
// Method: tr f(G) is the mean of vᵀf(G)·v over random vectors v of independent signs (Hutchinson
// 1990). Up to the error of Gauss quadrature vᵀf(G)·v = n·Σ_j τ_j²·f(θ_j), with the eigenvalues θ
// of the tridiagonal matrix of Lanczos started at v/√n and the first elements τ of its eigenvectors
// (Ubaru, Chen, Saad, "Fast estimation of tr(f(A)) via stochastic Lanczos quadrature", SIAM J.
// Matrix Anal. Appl. 38, 2017, algorithm 1). Here G is near I, and log|Σ| − log|M| may be 1e-10
// where n is a million: so Lanczos is run on E = G − I, whose products are G·v − v, and f is log(1
// + t). What rounding does then has the size of the rounding of E·v, not that of n·log 1. The basis
// is orthogonalized twice against all of itself, since few steps are taken (ProbeVectors). Signs,
// and not normal vectors: the variance of vᵀF·v is then 2·Σ_{i≠j} F_ij², without the diagonal
// (Avron, Toledo, "Randomized algorithms for estimating the trace", J. ACM 58, 2011), which is what
// a systematic error of a factor shows up in.

#include "cholesky/log_determinant.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "dense/tridiagonal.hpp"

namespace strata {
namespace {

/// Mean and standard error of samples.
struct Sample {
  double mean = 0;
  double standard_error = 0;
};

Sample sample_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Sample out;
  for (const double value : values) out.mean += value / count;
  for (const double value : values) out.standard_error += (value - out.mean) * (value - out.mean);
  out.standard_error = std::sqrt(out.standard_error / (count * (count - 1)));
  return out;
}

class Lanczos {
 public:
  Lanczos(ProbeVectors& vectors, const ProbeOptions& options)
      : n_(vectors.n()),
        vectors_(vectors),
        options_(options),
        lanes_(static_cast<std::size_t>(options.probes)) {}

  LogDeterminantCorrection run() {
    LogDeterminantCorrection out;
    out.probes = options_.probes;
    std::vector<double> norms;
    while (!out.converged && out.steps < options_.steps_max) {
      const ProbeSums sums = vectors_.step(norms);
      if (out.steps == 0) out.rounding = asymmetry(sums);
      ++out.steps;
      norms.clear();
      for (std::size_t j = 0; j < lanes_.size(); ++j)
        norms.push_back(extend(lanes_[j], sums.shares[j], std::sqrt(sums.squares[j])));
      estimate(out);
      if (std::isnan(out.correction)) break;
    }
    return out;
  }

 private:
  struct Lane {
    bool closed = false;  // its basis spans an invariant space
    std::vector<double> diagonal{};
    std::vector<double> off{};
  };

  /// From the products with the probes, in pairs of neighbours: all pairs would say little more.
  [[nodiscard]] double asymmetry(const ProbeSums& sums) const {
    const auto n = static_cast<double>(n_);
    double square = 0;
    for (std::size_t pair = 0; pair < sums.above.size(); ++pair) {
      const double difference = n * (sums.above[pair] - sums.below[pair]);
      square += difference * difference / 2;
    }
    return std::sqrt(square / static_cast<double>(sums.above.size()));
  }

  /// A row of the tridiagonal matrix; says by what the next vector is to be divided.
  [[nodiscard]] double extend(Lane& l, double share, double norm) const {
    if (!l.closed) {
      l.diagonal.push_back(share);
      double size = norm;
      for (const double d : l.diagonal) size = std::max(size, std::abs(d));
      for (const double o : l.off) size = std::max(size, o);
      l.closed = norm <= 8 * kUnitRoundoff * size || std::ssize(l.diagonal) == n_;
      if (!l.closed) l.off.push_back(norm);
    }
    return l.closed ? std::numeric_limits<double>::infinity() : norm;
  }

  void estimate(LogDeterminantCorrection& out) {
    std::vector<double> logs;
    std::vector<double> divergences;
    bool open = false;
    for (const Lane& l : lanes_) {
      std::vector<double> off = l.off;
      off.resize(l.diagonal.size() - 1);  // the last one belongs to the next step
      const TridiagonalSpectrum spectrum = spectrum_of(l.diagonal, std::move(off));
      double log = 0;
      double divergence = 0;
      for (std::size_t i = 0; i < spectrum.values.size(); ++i) {
        const double t = spectrum.values[i];
        log += spectrum.weights[i] *
               (t > -1 ? std::log1p(t) : std::numeric_limits<double>::quiet_NaN());
        divergence += spectrum.weights[i] * excess_over_log(t) / 2;
      }
      logs.push_back(static_cast<double>(n_) * log);
      divergences.push_back(static_cast<double>(n_) * divergence);
      open = open || !l.closed;
    }
    const Sample correction = sample_of(logs);
    const Sample divergence = sample_of(divergences);
    const bool first = out.steps == 1;
    out.truncation = first && open ? std::abs(correction.mean)
                     : first       ? 0
                                   : std::abs(correction.mean - out.correction);
    out.divergence_truncation = first && open ? divergence.mean
                                : first       ? 0
                                              : std::abs(divergence.mean - out.divergence);
    out.correction = correction.mean;
    out.standard_error = correction.standard_error;
    out.divergence = divergence.mean;
    out.divergence_standard_error = divergence.standard_error;
    const double hidden = std::max(out.rounding, kUnitRoundoff * std::abs(out.correction));
    out.converged =
        !open || (!first && out.truncation <= 0.01 * std::max(out.standard_error, hidden) &&
                  out.divergence_truncation <=
                      std::max(0.01 * out.divergence_standard_error, 1e-4 * out.divergence));
  }

  std::int64_t n_;
  ProbeVectors& vectors_;
  const ProbeOptions& options_;
  std::vector<Lane> lanes_;
};

}  // namespace

LogDeterminantCorrection estimate_log_determinant(ProbeVectors& vectors,
                                                  const ProbeOptions& options) {
  require(options.probes >= 2, ErrorKind::misuse, "log_determinant",
          "{} probes have no spread: at least 2", options.probes);
  require(options.steps_max >= 1, ErrorKind::misuse, "log_determinant",
          "{} steps of Lanczos estimate nothing", options.steps_max);
  require(vectors.n() >= 0, ErrorKind::misuse, "log_determinant", "an order of {}", vectors.n());
  if (vectors.n() > 0) return Lanczos(vectors, options).run();
  LogDeterminantCorrection none;
  none.probes = options.probes;
  none.converged = true;
  return none;
}

double excess_over_log(double t) {
  constexpr double kSeries = 0.25;
  if (!(t > -1)) return std::numeric_limits<double>::quiet_NaN();
  if (std::abs(t) > kSeries) return t - std::log1p(t);
  // t²·(1/2 − t/3 + t²/4 − …): at |t| = ¼ the 26th term is below 2⁻⁵³ of the first.
  double sum = 0;
  for (int k = 28; k >= 2; --k) sum = 1.0 / k - t * sum;
  return t * t * sum;
}

}  // namespace strata
