// Fisher's information of the covariance parameters (Mardia and Marshall, "Maximum likelihood
// estimation of models for residual covariance in spatial regression", Biometrika 71, 1984):
// I_ij = ½·tr(Σ⁻¹·∂_iΣ·Σ⁻¹·∂_jΣ) = ½·Σ A_i∘A_j with A_i = L⁻¹·∂_iΣ·L⁻ᵀ. With M = L⁻¹·L⁻ᵀ, A of the
// nugget is M, and A of log σ² is I − τ²·M. By the other parameters Σ is differentiated by the
// five-point formula in steps of 10⁻³, whose error is 10⁻¹² of the covariance: no kernel of
// derivatives is needed, and whatever a covariance kernel computes is differentiated. At the end of
// a parameter's domain a step goes beyond it, where the formula of the covariance still holds.
//
// Observed information: with φ the search coordinates and l the profile log-likelihood, the inverse
// of −∂²l/∂φ² is the covariance of the estimates φ̂. The variance σ̂²(φ) was profiled out; by the
// inverse of a partitioned matrix, with g = ∂ log σ̂²/∂φ, var(log σ̂²) = 2/n + gᵀVg and
// cov(log σ̂², φ̂) = V·g. Other parameters by the delta method.
//
// Steps: coordinates u with x = x̂ + C·u, C·Cᵀ the covariance that is expected, so that −l is about
// |u|²/2. A second difference over ±t has the error t²/12 times a fourth derivative of order 1, and
// 4ε/t² from noise ε of l: the sum is least at t = (48·ε)^(1/4). ε comes from a difference table of
// four evaluations so close together that l itself does not change (Moré and Wild, "Estimating
// computational noise", SIAM J. Sci. Comput. 33, 2011). Near a bound steps are shorter, as long as
// 4ε/t² is at most 1/5; what has less room than that is taken as known.

#include "geostat/information.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "base/constants.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/small_matrix.hpp"
#include "kernels/backend/backend.hpp"
#include "kernels/covariance/covariance.hpp"

namespace strata {
namespace {

constexpr std::size_t kVariance = 0;
constexpr std::size_t kRange = 1;
constexpr std::size_t kSmoothness = 2;
constexpr std::size_t kNugget = 3;
constexpr std::size_t kTimeScale = 4;
constexpr std::size_t kTimeSmoothness = 5;
constexpr std::size_t kInteraction = 6;
constexpr std::size_t kAnisotropyRatio = 7;
constexpr std::size_t kAnisotropyAngle = 8;

using Dense = std::vector<double>;  // n × n, column-major

/// The covariance matrix of the points, by the kernel of the host.
class CovarianceMatrix {
 public:
  explicit CovarianceMatrix(const Points& points)
      : n_(points.size()), coordinates_(coordinate_matrix(points)) {}

  [[nodiscard]] Dense operator()(const MaternParameters& parameters) {
    const KernelFunction kernel =
        host_backend().kernels().find(covariance.name, Elements(3, Element::fp64));
    const CovarianceParameters values = covariance_of(parameters);
    Dense out(static_cast<std::size_t>(n_ * n_));
    const std::int64_t dimensions = std::ssize(coordinates_) / n_;
    const BlockView points{coordinates_.data(), n_, dimensions, n_, 0, 0};
    const std::array views{BlockView{out.data(), n_, n_, n_, 0, 0}, points, points};
    const auto device = host_backend().make_device(0, 1);  // its memory is not used
    const auto queue = device->make_queue(QueuePriority::normal);
    kernel(*queue, {views, covariance.operands}, {.values = &values});
    queue->synchronize();
    return out;
  }

 private:
  std::int64_t n_;
  Dense coordinates_;
};

/// The parameters with one of them, as an Information has it, moved by `step`.
MaternParameters moved_by(MaternParameters p, std::size_t which, double step) {
  Separation& s = p.separation;
  switch (which) {
    case kRange: p.range *= std::exp(step); break;
    case kSmoothness: p.smoothness *= std::exp(step); break;
    case kTimeScale: s.time->scale *= std::exp(step); break;
    case kTimeSmoothness: s.time->smoothness *= std::exp(step); break;
    case kInteraction: s.time->interaction += step; break;
    case kAnisotropyRatio: s.anisotropy_ratio *= std::exp(step); break;
    default: s.anisotropy_angle += step * kDegrees; break;
  }
  return p;
}

/// ∂Σ by one parameter, the nugget left out: it does not change.
Dense derivative(CovarianceMatrix& matrix, MaternParameters p, std::size_t which) {
  constexpr double h = 1e-3;
  p.nugget = 0;
  Dense sum;
  for (const auto& [steps, weight] : {std::pair{1, 8.0}, {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
    const Dense some = matrix(moved_by(p, which, steps * h));
    sum.resize(some.size());
    for (std::size_t k = 0; k < some.size(); ++k) sum[k] += weight / (12 * h) * some[k];
  }
  return sum;
}

void transpose(Dense& a, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j + 1; i < n; ++i)
      std::swap(a[static_cast<std::size_t>(i + j * n)], a[static_cast<std::size_t>(j + i * n)]);
  }
}

/// S ← L⁻¹·S·L⁻ᵀ, S symmetric.
void whiten_both_sides(CovarianceSolver& solver, Dense& s, std::int64_t n) {
  for (int side = 0; side < 2; ++side) {
    solver.solve_lower({s.data(), n, n, n});
    transpose(s, n);
  }
}

double inner(const Dense& a, const Dense& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.size(); ++k) sum += a[k] * b[k];
  return sum;
}

double ratio_of(const MaternParameters& p) { return p.nugget / p.variance; }

bool contains(const std::vector<std::size_t>& variables, std::size_t v) {
  return std::find(variables.begin(), variables.end(), v) != variables.end();
}

/// Where a search variable stands in an Information.
std::size_t information_index(std::size_t variable) {
  constexpr std::array places{kRange,          kSmoothness,  kNugget,          kTimeScale,
                              kTimeSmoothness, kInteraction, kAnisotropyRatio, kAnisotropyAngle};
  return places[variable];
}

/// What one of an Information's parameters changes when the one that it stands for does by 1.
std::array<double, kInformationOrder> units_of(const MaternParameters& p) {
  const TimeParameters time = p.separation.time.value_or(TimeParameters{});
  return {p.variance,
          p.range,
          p.smoothness,
          1,
          time.scale,
          time.smoothness,
          1,
          p.separation.anisotropy_ratio,
          kDegrees};
}

/// Where the errors go, in the order of an Information.
std::array<double*, kInformationOrder> fields_of(StandardErrors& e) {
  return {&e.variance,        &e.range,           &e.smoothness,  &e.nugget,
          &e.time_scale,      &e.time_smoothness, &e.interaction, &e.anisotropy_ratio,
          &e.anisotropy_angle};
}

/// ∂ of an Information's parameters by the coordinate of a search variable. `range_too`: the range
/// in time is a coordinate, so that the scale goes with the smoothness in time.
std::array<double, kInformationOrder> column_of(std::size_t variable, const FitSpace& space,
                                                const MaternParameters& p, bool range_too) {
  std::array<double, kInformationOrder> column{};
  column[information_index(variable)] = 1;
  if (variable == FitSpace::ratio) {
    // ∂ ratio / ∂ its coordinate, log(ratio + offset), is ratio + offset.
    const double by_coordinate = ratio_of(p) + space.offset();
    column[kNugget] = space.nugget ? 0 : p.variance * by_coordinate;
    column[kVariance] = space.nugget ? -by_coordinate / ratio_of(p) : 0;
  }
  // log a = −2α·log τ.
  if (variable == FitSpace::time_scale) column[kTimeScale] = -2 * p.separation.time->smoothness;
  if (variable == FitSpace::time_smoothness && range_too)
    column[kTimeScale] = std::log(p.separation.time->scale);
  return column;
}

}  // namespace

Information expected_information(const Points& points, const MaternParameters& parameters,
                                 const CovarianceOptions& options, const char* where,
                                 const std::vector<std::size_t>& variables) {
  const std::int64_t n = points.size();
  CovarianceMatrix matrix(points);
  // What it says of steps and standard errors is no place to save.
  CovarianceOptions in_fp64 = options;
  in_fp64.mixed = {};
  CovarianceSolver solver = covariance_solver(points, in_fp64);
  factor_or_fail(solver, parameters, where);
  std::array<Dense, kInformationOrder> all;
  Dense& m = all[kNugget];
  m.resize(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) m[static_cast<std::size_t>(i + i * n)] = 1;
  whiten_both_sides(solver, m, n);
  std::vector<std::size_t> differentiated{kRange, kSmoothness};
  for (const std::size_t v : variables)
    if (v > FitSpace::ratio) differentiated.push_back(information_index(v));
  for (const std::size_t which : differentiated) {
    all[which] = derivative(matrix, parameters, which);
    whiten_both_sides(solver, all[which], n);
  }
  all[kVariance] = m;
  for (double& v : all[kVariance]) v *= -parameters.nugget;
  for (std::int64_t i = 0; i < n; ++i) all[kVariance][static_cast<std::size_t>(i + i * n)] += 1;
  Information out{};
  for (std::size_t i = 0; i < kInformationOrder; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      if (all[i].empty() || all[j].empty()) continue;
      out[i][j] = out[j][i] = 0.5 * inner(all[i], all[j]);
    }
  }
  return out;
}

std::optional<std::vector<double>> covariance_of_search(const Information& information,
                                                        const FitSpace& space,
                                                        const MaternParameters& parameters,
                                                        const std::vector<std::size_t>& variables) {
  // ∂ of the parameters by each coordinate; first by the variance, where it is free.
  std::vector<std::array<double, kInformationOrder>> jacobian;
  if (!space.nugget) jacobian.push_back({1, 0, 0, parameters.nugget});
  const std::size_t skipped = jacobian.size();
  const bool range_too = contains(variables, FitSpace::time_scale);
  for (const std::size_t v : variables)
    jacobian.push_back(column_of(v, space, parameters, range_too));
  const std::size_t k = jacobian.size();
  std::vector<double> of_coordinates(k * k);
  for (std::size_t a = 0; a < k; ++a) {
    for (std::size_t b = 0; b < k; ++b) {
      for (std::size_t i = 0; i < kInformationOrder; ++i) {
        for (std::size_t j = 0; j < kInformationOrder; ++j)
          of_coordinates[a + b * k] += jacobian[a][i] * information[i][j] * jacobian[b][j];
      }
    }
  }
  const auto inverse = inverse_of_spd(std::move(of_coordinates), k);
  if (!inverse) return std::nullopt;
  std::vector<double> out;
  for (std::size_t b = skipped; b < k; ++b) {
    for (std::size_t a = skipped; a < k; ++a) out.push_back((*inverse)[a + b * k]);
  }
  return out;
}

StandardErrors expected_standard_errors(const Information& information, const FitSpace& space,
                                        const MaternParameters& p) {
  StandardErrors out;
  out.method = StandardErrorMethod::expected;
  const FitSpace::Values values = values_of(p);
  std::vector<std::size_t> rows;
  if (!space.nugget || space.inside(FitSpace::ratio, values)) rows.push_back(kVariance);
  for (const std::size_t v : space.free) {
    if (space.inside(v, values) && !(v == FitSpace::ratio && space.nugget))
      rows.push_back(information_index(v));
  }
  const std::size_t k = rows.size();
  std::vector<double> some;
  for (const std::size_t b : rows) {
    for (const std::size_t a : rows) some.push_back(information[a][b]);
  }
  const auto covariance = inverse_of_spd(std::move(some), k);
  if (!covariance) return out;
  const auto to = fields_of(out);
  const auto units = units_of(p);
  for (std::size_t a = 0; a < k; ++a)
    *to[rows[a]] = units[rows[a]] * std::sqrt((*covariance)[a + a * k]);
  return out;
}

namespace {

/// The objective along u, x = x̂ + C·u, and what was found of it.
class Differences {
 public:
  Differences(const std::function<ObjectiveValue(const FitSpace::Values&)>& objective,
              const FitSpace& space, const FitSpace::Values& centre,
              const std::vector<std::size_t>& variables, std::vector<double> factor)
      : objective_(objective),
        space_(space),
        centre_(centre),
        variables_(variables),
        c_(std::move(factor)),
        k_(variables.size()) {}

  [[nodiscard]] ObjectiveValue at(const std::vector<double>& u) {
    ++evaluations_;
    FitSpace own = space_;
    own.free = variables_;
    own.held = centre_;
    std::vector<double> x = own.coordinates(centre_);
    for (std::size_t i = 0; i < k_; ++i) {
      for (std::size_t j = 0; j <= i; ++j) x[i] += c_[i + j * k_] * u[j];
    }
    return objective_(own.values(x));
  }
  [[nodiscard]] ObjectiveValue along(std::size_t i, double t, std::size_t j = 0, double s = 0) {
    std::vector<double> u(k_);
    u[i] += t;
    u[j] += s;
    return at(u);
  }
  /// How far one may go along u_i, to either side and with another one as far, in the box.
  [[nodiscard]] double reach(std::size_t i) const {
    FitSpace own = space_;
    own.free = variables_;
    const std::vector<double> x = own.coordinates(centre_);
    const Box box = own.box();
    double out = std::numeric_limits<double>::infinity();
    for (std::size_t r = i; r < k_; ++r) {
      const double room = std::min(x[r] - box.lower[r], box.upper[r] - x[r]);
      if (c_[r + i * k_] != 0) out = std::min(out, 0.5 * room / std::fabs(c_[r + i * k_]));
    }
    return out;
  }
  [[nodiscard]] int evaluations() const noexcept { return evaluations_; }
  [[nodiscard]] const std::vector<double>& factor() const noexcept { return c_; }
  [[nodiscard]] std::size_t size() const noexcept { return k_; }

 private:
  const std::function<ObjectiveValue(const FitSpace::Values&)>& objective_;
  const FitSpace& space_;
  FitSpace::Values centre_;
  std::vector<std::size_t> variables_;
  std::vector<double> c_;
  std::size_t k_;
  int evaluations_ = 0;
};

/// The noise of the objective: second differences of four values beside each other; each is a sum
/// of noises of variance 6ε².
double noise_of(Differences& f, double value) {
  constexpr double kClose = 1e-7;  // changes the objective by 10⁻¹⁴
  std::array<double, 4> values{value};
  for (std::size_t k = 1; k < 4; ++k) values[k] = f.along(0, kClose * static_cast<double>(k)).value;
  double square = 0;
  for (std::size_t k = 0; k < 2; ++k) {
    const double difference = values[k] - 2 * values[k + 1] + values[k + 2];
    square += difference * difference / 12;
  }
  return std::max(std::sqrt(square), 1e-16 * std::fabs(value));
}

/// Second derivatives along u and first ones of log σ̂².
struct Curvature {
  std::vector<double> hessian;
  std::vector<double> slope;
};

Curvature curvature_of(Differences& f, double value, double step) {
  const std::size_t k = f.size();
  Curvature out{std::vector<double>(k * k), std::vector<double>(k)};
  std::vector<double> t(k, step);
  std::vector<double> up(k);
  std::vector<double> down(k);
  for (std::size_t i = 0; i < k; ++i) {
    const double reach = f.reach(i);
    t[i] = std::min(step, reach);
    for (int attempt = 0; attempt < 3; ++attempt) {
      const ObjectiveValue a = f.along(i, t[i]);
      const ObjectiveValue b = f.along(i, -t[i]);
      up[i] = a.value;
      down[i] = b.value;
      const double second = (a.value - 2 * value + b.value) / (t[i] * t[i]);
      out.hessian[i + i * k] = second;
      out.slope[i] = (a.log_variance - b.log_variance) / (2 * t[i]);
      // A direction in which less or more is known than was expected: again, in its own scale.
      if ((second > 1.0 / 16 && second < 16) || (second < 1 && t[i] == reach) || attempt == 2)
        break;
      t[i] *= second > 0 ? std::clamp(step / (t[i] * std::sqrt(second)), 0.1, 10.0) : 4;
      t[i] = std::min(t[i], reach);
    }
  }
  for (std::size_t i = 0; i < k; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double both = f.along(i, t[i], j, t[j]).value + f.along(i, -t[i], j, -t[j]).value;
      const double alone = up[i] + down[i] + up[j] + down[j];
      out.hessian[i + j * k] = out.hessian[j + i * k] =
          (both - alone + 2 * value) / (2 * t[i] * t[j]);
    }
  }
  return out;
}

}  // namespace

double room_of_differences(double noise) { return 2 * std::max(0.1, std::sqrt(20 * noise)); }

StandardErrors observed_standard_errors(
    const std::function<ObjectiveValue(const FitSpace::Values&)>& objective, std::int64_t n,
    const FitSpace& space, const MaternParameters& p, const std::vector<std::size_t>& variables,
    const std::vector<double>& scale, double noise) {
  StandardErrors out;
  out.method = StandardErrorMethod::observed;
  const std::size_t k = variables.size();
  const auto factor = factor_of_spd(scale, k);
  if (k == 0 || !factor) return out;
  Differences f(objective, space, values_of(p), variables, *factor);
  const double value = f.at(std::vector<double>(k)).value;
  out.noise = std::max(noise_of(f, value), noise);
  const Curvature found =
      curvature_of(f, value, std::clamp(std::pow(48 * out.noise, 0.25), 0.05, 0.5));
  out.evaluations = f.evaluations();
  const auto v = inverse_of_spd(found.hessian, k);  // of u
  if (!v) return out;
  // ∂ by u of the logarithm of the variance that was profiled out, then of each parameter.
  const double profiled = space.nugget ? 0 : 2 / static_cast<double>(n);
  const bool range_too = contains(variables, FitSpace::time_scale);
  std::array<std::vector<double>, kInformationOrder> slopes;
  if (!space.nugget || contains(variables, FitSpace::ratio)) slopes[kVariance] = found.slope;
  if (!space.nugget && contains(variables, FitSpace::ratio)) {
    slopes[kNugget] = found.slope;
    for (double& slope : slopes[kNugget]) slope *= p.nugget;
  }
  for (std::size_t i = 0; i < k; ++i) {
    const auto column = column_of(variables[i], space, p, range_too);
    for (std::size_t place = 0; place < kInformationOrder; ++place) {
      if (place == kVariance || column[place] == 0) continue;
      slopes[place].resize(k);
      for (std::size_t j = 0; j <= i; ++j)
        slopes[place][j] += column[place] * f.factor()[i + j * k];
    }
  }
  const auto to = fields_of(out);
  const auto units = units_of(p);
  for (std::size_t place = 0; place < kInformationOrder; ++place) {
    const std::vector<double>& slope = slopes[place];
    if (slope.empty()) continue;
    double sum = place == kVariance ? profiled
                 : place == kNugget ? profiled * p.nugget * p.nugget
                                    : 0;
    for (std::size_t a = 0; a < k; ++a) {
      for (std::size_t b = 0; b < k; ++b) sum += slope[a] * (*v)[a + b * k] * slope[b];
    }
    *to[place] = units[place] * std::sqrt(sum);
  }
  return out;
}

}  // namespace strata
