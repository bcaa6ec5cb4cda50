// Fisher's information of the covariance parameters (Mardia and Marshall, "Maximum likelihood
// estimation of models for residual covariance in spatial regression", Biometrika 71, 1984):
// I_ij = ½·tr(Σ⁻¹·∂_iΣ·Σ⁻¹·∂_jΣ) = ½·Σ A_i∘A_j with A_i = L⁻¹·∂_iΣ·L⁻ᵀ. With M = L⁻¹·L⁻ᵀ, A of the
// nugget is M, and A of log σ² is I − τ²·M. Σ is differentiated in log range and log smoothness by
// the five-point formula in steps of 10⁻³, whose error is 10⁻¹² of the covariance: no kernel of
// derivatives is needed, and whatever a covariance kernel computes is differentiated.
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
// computational noise", SIAM J. Sci. Comput. 33, 2011).

#include "geostat/information.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "geostat/gaussian_process.hpp"
#include "geostat/small_matrix.hpp"
#include "kernels/backend.hpp"
#include "kernels/covariance.hpp"

namespace strata {
namespace {

constexpr std::size_t kVariance = 0;
constexpr std::size_t kRange = 1;
constexpr std::size_t kSmoothness = 2;
constexpr std::size_t kNugget = 3;

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

/// ∂Σ/∂ log of one parameter, the nugget left out: it does not change.
Dense derivative(CovarianceMatrix& matrix, MaternParameters p, double MaternParameters::*which) {
  constexpr double h = 1e-3;
  p.nugget = 0;
  Dense sum;
  for (const auto& [steps, weight] : {std::pair{1, 8.0}, {-1, -8.0}, {2, -1.0}, {-2, 1.0}}) {
    MaternParameters moved = p;
    moved.*which *= std::exp(steps * h);
    const Dense some = matrix(moved);
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

/// Where a search variable stands in an Information.
std::size_t place_of(std::size_t variable) {
  return variable == FitSpace::range        ? kRange
         : variable == FitSpace::smoothness ? kSmoothness
                                            : kNugget;
}

/// ∂ log ratio / ∂ its coordinate, log(ratio + offset).
double stretch(const FitSpace& space, double ratio) { return 1 + space.ratio_offset / ratio; }

double ratio_of(const MaternParameters& p) { return p.nugget / p.variance; }

bool contains(const std::vector<std::size_t>& variables, std::size_t v) {
  return std::find(variables.begin(), variables.end(), v) != variables.end();
}

}  // namespace

Information expected_information(const Points& points, const MaternParameters& parameters,
                                 const Options& options, const char* where) {
  const std::int64_t n = points.size();
  CovarianceMatrix matrix(points);
  Options in_fp64 = options;  // what it says of steps and standard errors is no place to save
  in_fp64.mixed = {};
  CovarianceSolver solver = covariance_solver(points, in_fp64);
  factor_or_fail(solver, parameters, where);
  Dense m(static_cast<std::size_t>(n * n));
  for (std::int64_t i = 0; i < n; ++i) m[static_cast<std::size_t>(i + i * n)] = 1;
  whiten_both_sides(solver, m, n);
  Dense range = derivative(matrix, parameters, &MaternParameters::range);
  whiten_both_sides(solver, range, n);
  Dense smoothness = derivative(matrix, parameters, &MaternParameters::smoothness);
  whiten_both_sides(solver, smoothness, n);
  Dense variance = m;
  for (double& v : variance) v *= -parameters.nugget;
  for (std::int64_t i = 0; i < n; ++i) variance[static_cast<std::size_t>(i + i * n)] += 1;
  const std::array<const Dense*, 4> all{&variance, &range, &smoothness, &m};
  Information out{};
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j <= i; ++j) out[i][j] = out[j][i] = 0.5 * inner(*all[i], *all[j]);
  }
  return out;
}

std::optional<std::vector<double>> covariance_of_search(const Information& information,
                                                        const FitSpace& space,
                                                        const MaternParameters& parameters,
                                                        const std::vector<std::size_t>& variables) {
  // ∂(log σ², log range, log ν, τ²) by each coordinate; first the variance, where it is free.
  std::vector<std::array<double, 4>> jacobian;
  if (!space.nugget) jacobian.push_back({1, 0, 0, parameters.nugget});
  const std::size_t skipped = jacobian.size();
  for (const std::size_t v : variables) {
    std::array<double, 4> column{};
    column[place_of(v)] = 1;
    if (v == FitSpace::ratio) {
      const double by_log_ratio = stretch(space, ratio_of(parameters));
      column[kNugget] = space.nugget ? 0 : parameters.nugget * by_log_ratio;
      column[kVariance] = space.nugget ? -by_log_ratio : 0;
    }
    jacobian.push_back(column);
  }
  const std::size_t k = jacobian.size();
  std::vector<double> of_coordinates(k * k);
  for (std::size_t a = 0; a < k; ++a) {
    for (std::size_t b = 0; b < k; ++b) {
      for (std::size_t i = 0; i < 4; ++i) {
        for (std::size_t j = 0; j < 4; ++j)
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
  const FitSpace::Values values{p.range, p.smoothness, ratio_of(p)};
  const bool ratio = space.inside(FitSpace::ratio, values);
  std::vector<std::size_t> rows;
  if (!space.nugget || ratio) rows.push_back(kVariance);
  if (space.inside(FitSpace::range, values)) rows.push_back(kRange);
  if (space.inside(FitSpace::smoothness, values)) rows.push_back(kSmoothness);
  if (!space.nugget && ratio) rows.push_back(kNugget);
  const std::size_t k = rows.size();
  std::vector<double> some;
  for (const std::size_t b : rows) {
    for (const std::size_t a : rows) some.push_back(information[a][b]);
  }
  const auto covariance = inverse_of_spd(std::move(some), k);
  if (!covariance) return out;
  const std::array<double*, 4> to{&out.variance, &out.range, &out.smoothness, &out.nugget};
  const std::array<double, 4> scale{p.variance, p.range, p.smoothness, 1};
  for (std::size_t a = 0; a < k; ++a)
    *to[rows[a]] = scale[rows[a]] * std::sqrt((*covariance)[a + a * k]);
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
    for (int attempt = 0; attempt < 3; ++attempt) {
      const ObjectiveValue a = f.along(i, t[i]);
      const ObjectiveValue b = f.along(i, -t[i]);
      up[i] = a.value;
      down[i] = b.value;
      const double second = (a.value - 2 * value + b.value) / (t[i] * t[i]);
      out.hessian[i + i * k] = second;
      out.slope[i] = (a.log_variance - b.log_variance) / (2 * t[i]);
      // A direction in which less or more is known than was expected: again, in its own scale.
      if (second > 1.0 / 16 && second < 16) break;
      t[i] *= second > 0 ? std::clamp(step / (t[i] * std::sqrt(second)), 0.1, 10.0) : 4;
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

StandardErrors observed_standard_errors(
    const std::function<ObjectiveValue(const FitSpace::Values&)>& objective, std::int64_t n,
    const FitSpace& space, const MaternParameters& p, const std::vector<std::size_t>& variables,
    const std::vector<double>& scale, double noise) {
  StandardErrors out;
  out.method = StandardErrorMethod::observed;
  const std::size_t k = variables.size();
  const auto factor = factor_of_spd(scale, k);
  if (k == 0 || !factor) return out;
  const FitSpace::Values centre{p.range, p.smoothness, ratio_of(p)};
  Differences f(objective, space, centre, variables, *factor);
  const double value = f.at(std::vector<double>(k)).value;
  out.noise = std::max(noise_of(f, value), noise);
  const Curvature found =
      curvature_of(f, value, std::clamp(std::pow(48 * out.noise, 0.25), 0.05, 0.5));
  out.evaluations = f.evaluations();
  const auto v = inverse_of_spd(found.hessian, k);  // of u
  if (!v) return out;
  // The variance of a function whose derivatives by u are given.
  const auto variance_of = [&](const std::vector<double>& slope) {
    double sum = 0;
    for (std::size_t a = 0; a < k; ++a) {
      for (std::size_t b = 0; b < k; ++b) sum += slope[a] * (*v)[a + b * k] * slope[b];
    }
    return sum;
  };
  const auto slope_of = [&](std::size_t variable) {
    std::vector<double> slope(k);
    for (std::size_t i = 0; i < k; ++i) {
      if (variables[i] != variable) continue;
      for (std::size_t j = 0; j <= i; ++j) slope[j] = f.factor()[i + j * k];
    }
    return slope;
  };
  if (contains(variables, FitSpace::range))
    out.range = p.range * std::sqrt(variance_of(slope_of(FitSpace::range)));
  if (contains(variables, FitSpace::smoothness))
    out.smoothness = p.smoothness * std::sqrt(variance_of(slope_of(FitSpace::smoothness)));
  std::vector<double> slope = found.slope;  // of log σ̂²
  const bool ratio = contains(variables, FitSpace::ratio);
  const double profiled = space.nugget ? 0 : 2 / static_cast<double>(n);
  if (!space.nugget || ratio) out.variance = p.variance * std::sqrt(profiled + variance_of(slope));
  if (space.nugget || !ratio) return out;
  const std::vector<double> of_ratio = slope_of(FitSpace::ratio);
  for (std::size_t j = 0; j < k; ++j) slope[j] += stretch(space, centre[2]) * of_ratio[j];
  out.nugget = p.nugget * std::sqrt(profiled + variance_of(slope));
  return out;
}

}  // namespace strata
