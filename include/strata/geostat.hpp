#pragma once
// Gaussian processes with a Matérn covariance: likelihood, maximum likelihood fit, prediction.
//
// Contract: exact (no approximation of the covariance), on the factorization of cholesky.hpp, so n
// is bounded by host memory and not by the device's. Data are in memory; row numbers in messages
// and results count from 0. Every function checks its data first. A coordinate, covariate or value
// that is not finite is Error{input} and names its row. Lengths that do not fit, no data, or a
// parameter outside its domain are Error{misuse}. Coincident points where there is no nugget are
// Error{numerical} and name the two rows.
//
// Model: z(p) = m(p) + w(p) + ε, with the mean m of `Mean`, covariates included, the process w of
// covariance
//   c(h) = variance · 2^(1−ν)/Γ(ν) · (h/range)^ν · K_ν(h/range),   ν = smoothness,
// h the distance of `Separation`, which may also bring in directions and time, and independent ε of
// variance `nugget` for each observation. The range is not scaled by the smoothness, as in
// ExaGeoStat and in Matern() of the R package fields. Units are any in which doubles hold results.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strata/cholesky.hpp"
#include "strata/covariance_options.hpp"
#include "strata/options.hpp"
#include "strata/separation.hpp"

namespace strata {

/// Where observations were made: in the plane or in space, in one unit of length for all
/// coordinates, or on the sphere (Distance::great_circle; longitude in [−180, 360] and latitude in
/// [−90, 90], else Error{input} that names the row).
struct Points {
  std::vector<double> x;
  std::vector<double> y;
  std::vector<double> z{};  ///< third coordinate; empty: there is none
  std::vector<double> t{};  ///< time; empty: there is none
  /// Covariates of the mean, any number of them, a vector of size() for each. They have no part in
  /// distances, nor in what is one place.
  std::vector<std::vector<double>> covariates{};

  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(x.size()); }
};

struct MaternParameters {
  double variance = 1;      ///< > 0, squared units of the values
  double range = 1;         ///< > 0, units of the coordinates, or kilometres on the sphere
  double smoothness = 0.5;  ///< ν in (0, 50], on the sphere in (0, 1/2]
  double nugget = 0;        ///< >= 0, squared units of the values
  Separation separation{};  ///< fits the coordinates, else Error{misuse}
};

/// Covariates u₁, u₂, … of the points add d₁·u₁ + d₂·u₂ + … to `constant` and `linear`, whose
/// coefficients are all estimated together; with `sample` and `zero` they are Error{misuse}.
enum class Mean : std::uint8_t {
  sample,    ///< the arithmetic mean of the values is subtracted, and taken as known
  zero,      ///< nothing is subtracted
  constant,  ///< one coefficient, by generalized least squares
  /// a + b·x + c·y, by generalized least squares; z and t have no part in it. With
  /// Distance::great_circle, where a longitude is no linear quantity, a + b·u + c·v + d·w with the
  /// unit vector (u, v, w) = (cos φ·cos λ, cos φ·sin λ, sin φ), λ longitude and φ latitude.
  linear,
};

/// How many coefficients a mean has: 1, 0, 1 and 3 (with Distance::great_circle 4), and for
/// `constant` and `linear` one more for each covariate.
[[nodiscard]] std::int64_t coefficient_count(Mean mean, std::int64_t covariates = 0,
                                             Distance distance = Distance::euclidean) noexcept;

/// The two rows i < j of coincident points with the least i, then the least j; none if all points
/// differ in some coordinate, time included. On the sphere longitudes that differ by 360 are the
/// same, and all of them are at a pole. O(n log n).
[[nodiscard]] std::optional<std::pair<std::int64_t, std::int64_t>> find_coincident_points(
    const Points& points, Distance distance = Distance::euclidean);

/// How far the parts of a log-likelihood may be from those of Σ in exact arithmetic: estimates, not
/// bounds. NaN: not estimated. Infinite: Σ is so near a singular matrix that nothing is known.
struct LikelihoodError {
  double quadratic_form = std::numeric_limits<double>::quiet_NaN();
  double log_determinant = std::numeric_limits<double>::quiet_NaN();

  [[nodiscard]] double log_likelihood() const { return (log_determinant + quadratic_form) / 2; }
};

/// Two points, rows first < second, and how far they are apart (on the sphere along the chord, in
/// kilometres; where there are times, in units in which all times are as far apart as all places).
struct ClosePoints {
  std::int64_t first = 0;
  std::int64_t second = 0;
  double distance = 0;
};

/// The closest two points if without a nugget rounding takes them for one: coincident ones, or
/// those within (100·2⁻⁵²)^(1/(2·min(ν, 1)))·extent/n of each other for the smoothness ν, extent
/// being the diagonal of the bounding box. O(n log n).
[[nodiscard]] std::optional<ClosePoints> find_nearly_coincident_points(
    const Points& points, Distance distance = Distance::euclidean, double smoothness = 1);

/// What is known of a log-likelihood whose covariance was factored in several precisions
/// (RunReport::mixed says in which), beside Likelihood::error. Its quadratic form and mean are
/// refined by conjugate gradients with Σ in FP64; its log-determinant is that of the factor, and
/// probes say how far that is from log|Σ|. Nothing here is a proven bound.
struct LikelihoodCertificate {
  /// Estimate of log|Σ| − log|L̃L̃ᵀ|, by stochastic Lanczos quadrature. NaN without probes.
  double log_determinant_difference = 0;
  /// Whether it was added. It is if it is at least twice what is not known of it: rounding errors
  /// cancel in a determinant more than they do in what probes see of it, so that the factor's own
  /// is often the better one.
  bool corrected = false;
  /// The share of the lower precisions in the error of the log-determinant: three standard errors
  /// of the estimate and more, statistical, and the estimate itself where it was not added. NaN
  /// without probes.
  double log_determinant_remainder = 0;
  /// The quadratic form is too small by at most about this, for its solves ended where they did.
  double quadratic_form_remainder = 0;
  double backward_error = 0;  ///< of the solves
  int refinement_steps = 0;
  int probes = 0;
  int lanczos_steps = 0;
  /// Kullback-Leibler divergence of the factor's Gaussian from the exact one in nats, with its
  /// standard error; NaN without probes.
  double divergence = 0;
  double divergence_error = 0;
  double seconds = 0;  ///< of refinement and probes
};

struct Likelihood {
  /// −½·(n·log 2π + log|Σ| + rᵀΣ⁻¹r), r = z − Xβ̂, natural logarithm; NaN unless factor.ok.
  double log_likelihood = 0;
  double quadratic_form = 0;  ///< rᵀΣ⁻¹r; NaN unless factor.ok
  FactorInfo factor;          ///< of Σ, nugget included
  /// β̂: none for `zero`; the mean for `sample`; a for `constant` and a, b, c (with
  /// Distance::great_circle also d) for `linear`, then those of the covariates, in the units of the
  /// data.
  std::vector<double> mean_coefficients;
  RunReport run;  ///< of the factorization
  /// With CovarianceOptions::mixed, unless the factorization ended in FP64.
  std::optional<LikelihoodCertificate> certificate;
  /// What rounding in FP64 does, which every likelihood has; NaN where it was not estimated.
  LikelihoodError rounding{};
  /// Rounding and, with a certificate, what the lower precisions leave: all that is known.
  [[nodiscard]] LikelihoodError error() const {
    LikelihoodError all = rounding;
    if (certificate) {
      all.quadratic_form += certificate->quadratic_form_remainder;
      all.log_determinant += certificate->log_determinant_remainder;
    }
    return all;
  }
};

/// The exact log-likelihood of `values` at given parameters; with CovarianceOptions::mixed to the
/// accuracy that its certificate says. A covariance that is not positive definite is reported in
/// `factor`. Throws also Error{numerical} if the points do not determine the mean (all on one line,
/// for `linear`; a covariate that is constant, or a combination of the others).
[[nodiscard]] Likelihood log_likelihood(const Points& points, std::span<const double> values,
                                        const MaternParameters& parameters, Mean mean,
                                        const CovarianceOptions& options = {});

/// How far the Gaussian process that a factor in several precisions stands for, N(0, L̃L̃ᵀ), is
/// from N(0, Σ).
struct PrecisionDivergence {
  bool exact = false;  ///< by two factors; else an estimate, with standard errors
  /// Kullback-Leibler divergence KL(N(0, Σ) ‖ N(0, L̃L̃ᵀ)), nats; NaN unless factor.ok.
  double divergence = 0;
  double divergence_error = 0;            ///< standard error of the estimate; 0 if it is exact
  double log_determinant_difference = 0;  ///< log|Σ| − log|L̃L̃ᵀ|
  double log_determinant_error = 0;       ///< statistical, as LikelihoodCertificate's; 0 if exact
  int probes = 0;
  int lanczos_steps = 0;
  FactorInfo factor;  ///< L̃, or if it failed, L
  RunReport run;      ///< of L̃

  /// ℓ(0; Σ) − ℓ̃(0) without sign, the two log-likelihoods at y = 0: what Ren, Ltaief, Abdulah and
  /// Keyes, "Accelerating mixed-precision out-of-core Cholesky factorization with static task
  /// scheduling", 2024, report in the divergence's place.
  [[nodiscard]] double likelihood_difference_at_zero() const {
    return log_determinant_difference < 0 ? -log_determinant_difference / 2
                                          : log_determinant_difference / 2;
  }
};

enum class DivergenceMethod : std::uint8_t {
  automatic,  ///< `exact` for up to 4096 points
  exact,      ///< from L and L̃: two n × n matrices in host memory, and 2n³/3 operations more
  estimate,   ///< by CovarianceOptions::probing, at least 2 probes
};

/// The divergence of CovarianceOptions::mixed from FP64 for the covariance of these points. Throws
/// as log_likelihood(), also Error{misuse} if CovarianceOptions::mixed is not on.
[[nodiscard]] PrecisionDivergence precision_divergence(
    const Points& points, const MaternParameters& parameters, const CovarianceOptions& options,
    DivergenceMethod method = DivergenceMethod::automatic);

/// 0 < lower < upper, for interaction also 0 = lower.
struct Bounds {
  double lower = 0;
  double upper = 0;
};

/// Which parameters of a Separation a fit estimates; it holds the others.
struct SeparationEstimates {
  bool time_scale = false;
  bool time_smoothness = false;
  bool interaction = false;       ///< not with great_circle
  bool anisotropy_ratio = false;  ///< not with great_circle, nor has the angle a place there
  bool anisotropy_angle = false;

  [[nodiscard]] bool of_time() const noexcept {
    return time_scale || time_smoothness || interaction;
  }
};

/// How standard errors of the estimates are found.
enum class StandardErrorMethod : std::uint8_t {
  none,
  automatic,  ///< `expected` for up to 3000 points, else `observed`
  /// From Fisher's expected information, tr(Σ⁻¹·∂_iΣ·Σ⁻¹·∂_jΣ)/2: four matrices of order n in host
  /// memory, and one more for each parameter of SeparationEstimates. Source: Mardia and Marshall,
  /// Biometrika 71, 1984.
  expected,
  /// From second differences of the log-likelihood at the estimate, in steps that follow from its
  /// measured noise: k² + k + 4 more evaluations on all points or some more, k of the parameters
  /// being estimated beside the variance (16 for range, smoothness and nugget).
  observed,
};

/// Standard errors of the estimates; NaN where a parameter is held, at a bound or 0, if the search
/// did not converge, or where they cannot be found. What is at a bound counts as known there.
struct StandardErrors {
  double variance = std::numeric_limits<double>::quiet_NaN();
  double range = std::numeric_limits<double>::quiet_NaN();
  double smoothness = std::numeric_limits<double>::quiet_NaN();
  double nugget = std::numeric_limits<double>::quiet_NaN();
  double time_scale = std::numeric_limits<double>::quiet_NaN();
  double time_smoothness = std::numeric_limits<double>::quiet_NaN();
  double interaction = std::numeric_limits<double>::quiet_NaN();
  double anisotropy_ratio = std::numeric_limits<double>::quiet_NaN();
  double anisotropy_angle = std::numeric_limits<double>::quiet_NaN();  ///< degrees
  StandardErrorMethod method = StandardErrorMethod::none;              ///< never automatic
  int evaluations = 0;  ///< on all points, for `observed`
  double noise = 0;     ///< of the log-likelihood, as measured for `observed`

  /// Whether there is one; if not, `method` is none.
  [[nodiscard]] bool any() const noexcept {
    for (const double e : {variance, range, smoothness, nugget, time_scale, time_smoothness,
                           interaction, anisotropy_ratio, anisotropy_angle}) {
      if (e == e) return true;
    }
    return false;
  }
};

/// run.progress: what = "fit", done = evaluations so far (with the fraction of the current one),
/// total = max_evaluations.
struct FitOptions : CovarianceOptions {
  Mean mean = Mean::constant;
  std::optional<double> range{};       ///< hold the range at this; else it is estimated
  std::optional<double> smoothness{};  ///< hold ν at this; else it is estimated
  std::optional<double> nugget{};      ///< hold the nugget at this (0: none); else it is estimated
  Separation separation{};             ///< held at this, but for what `estimate` says
  /// Which parameters of the separation are estimated; their values in `separation` are ignored.
  /// With times, `separation` needs TimeParameters even if all of them are estimated.
  SeparationEstimates estimate{};
  /// Where to start; else chosen on a sample of the points. Its variance matters only if the nugget
  /// is held at a positive value, of its separation what `estimate` names.
  std::optional<MaternParameters> start{};
  /// Else 1/20 of the least distance between two places to 10 times the points' extent.
  std::optional<Bounds> range_bounds{};
  std::optional<Bounds> smoothness_bounds{};  ///< else 0.05 to 5, on the sphere to 1/2
  /// Bounds of nugget/variance; else 0 to 10,000, and from 1e-8 if points are nearly coincident
  /// (find_nearly_coincident_points() with the smoothness that is held, or 1), from 1e-14 if the
  /// nugget is held.
  std::optional<Bounds> noise_ratio_bounds{};
  /// Bounds of scale^(−1/(2·smoothness)), the time after which half of the covariance is left; read
  /// if the scale is estimated. Else from the times.
  std::optional<Bounds> time_range_bounds{};
  std::optional<Bounds> time_smoothness_bounds{};   ///< else 0.05 to 1
  std::optional<Bounds> interaction_bounds{};       ///< else 0 to 1, with a z coordinate to 2/3
  std::optional<Bounds> anisotropy_ratio_bounds{};  ///< else 0.02 to 1
  /// On all points; else 50, and 50 more for each parameter that is estimated beside the variance.
  std::optional<int> max_evaluations{};
  /// Stop when the search radius, relative to each parameter, is below this, or when less than a
  /// thousandth of this is to be gained in log-likelihood for each observation.
  double relative_tolerance = 1e-6;
  /// How FitResult::standard_errors of the estimates are computed.
  StandardErrorMethod standard_errors = StandardErrorMethod::automatic;
  /// Seed of the samples on which the search begins.
  std::uint64_t seed = 1;
  /// A file for the finished evaluations. If it is there, the fit takes them from it and goes on
  /// behind them: an interrupted fit that is run again ends with the same bits. Devices and memory
  /// may be others then. A file of other data, options or another version is Error{input}.
  std::string journal{};
};

/// One evaluation of the likelihood during a fit.
struct FitStep {
  double range = 0;
  double smoothness = 0;
  double nugget = 0;          ///< NaN if the factorization failed
  double variance = 0;        ///< the best for the other parameters; NaN if it failed
  double log_likelihood = 0;  ///< −∞ if it failed
  double seconds = 0;         ///< that this evaluation took
  Separation separation{};    ///< the angle as it came, any number of half turns
};

/// The search on a sample of the points, before all of them.
struct FitStage {
  std::int64_t points = 0;
  int evaluations = 0;
  double seconds = 0;
};

/// An estimate that lies on a bound of its search: the likelihood may be larger beyond.
struct FitBound {
  /// "range", "smoothness", "noise ratio", or "variance" with a nugget that is held, "time range" …
  std::string parameter;
  double bound = 0;  ///< of the noise ratio, and of τ for the time range
  bool upper = false;
  bool natural = false;  ///< the end of the parameter's domain, as a nugget of 0: nothing is beyond
};

struct FitResult {
  MaternParameters parameters;
  Likelihood likelihood;      ///< at `parameters`; its `run` is that of the last factorization
  int evaluations = 0;        ///< on all points
  std::vector<FitStep> path;  ///< on all points
  std::vector<FitStage> stages;
  StandardErrors standard_errors;
  /// With CovarianceOptions::mixed: of the search's last evaluation. The search evaluates all
  /// points in those precisions, but to an accuracy of 0.04/n at least, since noise hides where the
  /// maximum is; with refined solves but without probes, and samples in FP64. `likelihood`, and
  /// with it the variance, is evaluated in FP64 at the end, or if that has no room, it has a
  /// certificate. Where that shows likelihoods of the search to be off by far more than its
  /// accuracy, it goes on in FP64.
  std::optional<MixedReport> mixed;
  bool converged = false;  ///< false: stopped by max_evaluations, and the maximum is elsewhere
  std::vector<FitBound> at_bounds;
  /// How much rounding may change the log-likelihood at the estimates: what likelihood.rounding
  /// estimates, or what was measured where that is more; with CovarianceOptions::mixed also by how
  /// much the search's likelihood there differs from that in FP64. Where it is not small beside 1,
  /// nothing here is an estimate of anything: a nugget, or a finer accuracy, helps.
  double noise = 0;
  double seconds = 0;
};

/// Maximum likelihood estimates. Unless a start is given, the search goes through nested random
/// samples, each four times as large as the one before, and all points come last; what the last
/// sample says of the parameters is the scale of the search there. On at most 500 points it looks
/// for several maxima, from short ranges to long, smooth and rough, with a nugget and without. With
/// the nugget estimated or 0 the variance is profiled out: Σ = σ²(R + g·I), σ̂² = rᵀ(R + g·I)⁻¹r /
/// n. A factorization that fails on the way counts as a very bad value. An estimated angle comes
/// out in [0, 180). Throws also Error{numerical} if the values do not vary about their mean, points
/// are nearly coincident and the nugget is held at 0, all points coincide, in space or (where a
/// parameter of time is estimated) in time, or no covariance was positive definite. Throws
/// Error{cancelled} if progress says so.
[[nodiscard]] FitResult fit(const Points& points, std::span<const double> values,
                            const FitOptions& options = {});

/// What prediction needs to know.
struct Model {
  MaternParameters parameters;
  Mean mean = Mean::constant;
  /// As in Likelihood::mean_coefficients, d₁, d₂, … included; if empty they are estimated again.
  std::vector<double> mean_coefficients;
  Points points;
  std::vector<double> values;
};

/// What is known of predictions whose covariance was factored in several precisions. Their means
/// are those of Σ to FP64, by refined solves. Errors are estimates, with the rounding of FP64,
/// which the weights of some targets tell: spread evenly, and those that are known least.
struct PredictionCertificate {
  double backward_error = 0;  ///< of the solves
  int refinement_steps = 0;
  /// How far a variance of the process may be from that of Σ, at any target: by the Ritz values
  /// that the refinement saw, and rounding.
  double variance_error = 0;
  double mean_error = 0;  ///< how far a mean may be, at any target
};

/// How far predictions may be from those of Σ in exact arithmetic, for FP64 rounds: estimates, not
/// bounds, at some of the targets. These are the ones with the least and the largest standard
/// errors, those with the largest means, and some spread evenly. Infinite: Σ is so near a singular
/// matrix that nothing is known. NaN: not estimated, as where there is a PredictionCertificate,
/// which holds rounding, and for a share also where every target is a data point without nugget.
struct PredictionRounding {
  /// A prediction is wrong whose error is a larger part of its standard error.
  static constexpr double kShareMax = 0.1;

  double mean_error = std::numeric_limits<double>::quiet_NaN();
  double standard_error_error = std::numeric_limits<double>::quiet_NaN();  ///< with nugget or not
  /// The largest error of a mean beside its standard error, …
  double mean_error_share = std::numeric_limits<double>::quiet_NaN();
  /// … and of a standard error of the process beside itself.
  double standard_error_error_share = std::numeric_limits<double>::quiet_NaN();

  /// Whether no share is above kShareMax.
  [[nodiscard]] bool ok() const noexcept {
    return !(mean_error_share > kShareMax) && !(standard_error_error_share > kShareMax);
  }
};

struct Prediction {
  std::vector<double> mean;  ///< of a new observation, and of the process
  /// Standard error of a new observation: with the nugget and the uncertainty of the estimated
  /// mean.
  std::vector<double> standard_error;
  std::vector<double> process_standard_error;  ///< of m(p) + w(p): without the nugget
  RunReport run;                               ///< of the factorization
  RunReport solve;  ///< of what was computed for the targets, all chunks together; no trace
  std::optional<PredictionCertificate> certificate;  ///< as Likelihood::certificate
  PredictionRounding rounding;  ///< where it is not ok(), predictions are wrong
};

/// Kriging: the best linear unbiased prediction at `targets`, and its standard errors. Targets have
/// as many covariates as the model's points, in the same order, else Error{misuse}. The
/// coefficients of `constant` and `linear` are treated as estimated (universal kriging), those of
/// `sample` and `zero` as known. At most `chunk` targets are computed at a time and need n·chunk·8
/// bytes on each device, or of host memory where a device lacks room; 0: as many as there is room
/// for beside the factor, up to some thousands. In the same tiles the result is the same to the
/// last bit for any budget, policy and number of devices, and for any chunk of at least half a tile
/// or 1024. Throws also Error{numerical} if the model's covariance is not positive definite.
[[nodiscard]] Prediction predict(const Model& model, const Points& targets,
                                 const CovarianceOptions& options = {}, std::int64_t chunk = 0);

/// Hands over the next targets, at most `most` of them and at least one; none when there are no
/// more.
using TargetSource = std::function<Points(std::int64_t most)>;
/// Takes the next targets with what was predicted there (means and standard errors only), in the
/// order in which they came.
using PredictionSink = std::function<void(const Points& targets, const Prediction& part)>;

struct StreamedPrediction {
  std::int64_t targets = 0;
  RunReport run;    ///< of the factorization
  RunReport solve;  ///< of what was computed for the targets, all pieces together; no trace
  std::optional<PredictionCertificate> certificate;  ///< as Likelihood::certificate
  PredictionRounding rounding;                       ///< as Prediction::rounding
};

/// predict() for more targets than one wants in memory: they are asked for, predicted and handed on
/// piece by piece, in some thousands (`chunk`, if it is given). The predictions are those of
/// predict() to the last bit, however the source portions them. `expected`: how many there will be,
/// for progress alone; 0: not known. Throws as predict(), also Error{misuse} if there are none, and
/// what the callbacks throw.
[[nodiscard]] StreamedPrediction predict(const Model& model, const TargetSource& source,
                                         const PredictionSink& sink,
                                         const CovarianceOptions& options = {},
                                         std::int64_t chunk = 0, std::int64_t expected = 0);

struct SimulateOptions : CovarianceOptions {
  std::int64_t realizations = 1;
  std::uint64_t seed = 1;
  /// Fields of new observations, the nugget included; else of m(p) + w(p) alone. A process that is
  /// very smooth for the distances of its points needs the nugget to be positive definite.
  bool noise = true;
};

struct Simulation {
  /// A column for each realization, points (or targets) × realizations, column-major.
  std::vector<double> values;
  RunReport run;       ///< of the factorization
  RunReport multiply;  ///< of the product with its factor
};

/// Exact simulation: y = m + L·ε, Σ = L·Lᵀ, ε standard normal and a function of the seed and its
/// place in the order of the points alone; with CovarianceOptions::mixed the covariance of y is
/// that of the factor. `mean_coefficients` as in Likelihood: one or those of `linear`, and one more
/// for each covariate, or none if there are no covariates. In the same tiles the fields are the
/// same to the last bit for any budget, policy and number of devices. Throws also Error{numerical}
/// if the covariance is not positive definite. Source: Chilès and Delfiner, "Geostatistics", 2nd
/// ed., 2012, section 7.
[[nodiscard]] Simulation simulate(const Points& points, const MaternParameters& parameters,
                                  std::span<const double> mean_coefficients = {},
                                  const SimulateOptions& options = {});

/// Simulation at `targets` given the model's observations, by kriging the difference between them
/// and an unconditional simulation at data and targets together; that takes a factorization of that
/// order. At a target that was observed (with the same covariates), without nugget, it is the
/// observation. Mean and variance over many realizations are those of predict(): `standard_error`
/// with noise, else `process_standard_error`. Throws as simulate() and predict(). Source: the same,
/// section 7.3.
[[nodiscard]] Simulation conditional_simulate(const Model& model, const Points& targets,
                                              const SimulateOptions& options = {});

/// How good predictions were, over all observations.
struct Scores {
  double rmse = 0;        ///< root mean square error
  double mae = 0;         ///< mean absolute error
  double crps = 0;        ///< mean continuous ranked probability score of the normal predictions
  double coverage95 = 0;  ///< share of observations inside the central 95 % interval
};

/// Compares predictions with what was observed; standard errors are >= 0. The score is that of
/// Gneiting and Raftery, "Strictly proper scoring rules, prediction, and estimation", 2007, section
/// 4.2, with the sign that makes small good.
[[nodiscard]] Scores scores(std::span<const double> observed, std::span<const double> mean,
                            std::span<const double> standard_error);

// ---- cross-validation: the covariance is held, the mean is estimated from what is kept

struct CrossValidationOptions : CovarianceOptions {
  int folds = 10;          ///< 2 to n
  bool blocks = false;     ///< compact blocks of the plane, of about equal counts; else at random
  std::uint64_t seed = 1;  ///< of random folds
};

/// What each observation is predicted to be by others: a new observation there, nugget included.
struct CrossValidation {
  std::vector<double> mean;
  std::vector<double> standard_error;
  std::vector<int>
      fold;  ///< of each observation, 0 … folds − 1; none if one was left out at a time
  Scores scores;
  RunReport run;      ///< of the factorization; of folds, the last
  RunReport inverse;  ///< of the diagonal of the inverse, if one was left out at a time; no trace
  /// As Prediction::certificate; of folds, the worst. If one was left out at a time,
  /// `variance_error` is relative: of the diagonal elements of Σ⁻¹ from which variances come, and
  /// with them the means, whose `mean_error` is absolute always.
  std::optional<PredictionCertificate> certificate;
  /// As Prediction::rounding, of these standard errors, nugget included; of folds, the worst.
  PredictionRounding rounding;
};

/// Every fold is predicted from all others: a factorization for each. Throws as predict(), also
/// Error{misuse} for a number of folds that cannot be.
[[nodiscard]] CrossValidation cross_validate(const Points& points, std::span<const double> values,
                                             const MaternParameters& parameters, Mean mean,
                                             const CrossValidationOptions& options = {});

/// Every observation is predicted from all others, exactly, from one factorization and the diagonal
/// of its inverse, n³/3 operations each. Throws as predict(), also Error{misuse} for one point,
/// Error{numerical} if the mean is not determined without one of the points. Source: Dubrule,
/// "Cross validation of kriging in a unique neighborhood", 1983.
[[nodiscard]] CrossValidation leave_one_out(const Points& points, std::span<const double> values,
                                            const MaternParameters& parameters, Mean mean,
                                            const CovarianceOptions& options = {});

}  // namespace strata
