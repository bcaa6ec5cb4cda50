// Minimization where the Hessian is roughly known: a quadratic model by regression with a prior.
//
// Method: in the coordinates u of the start, the model f_b + gᵀd + ½dᵀHd about the best point b is
// fitted to all evaluations by least squares. A value at the distance |d| is off by a cubic term of
// the size c·|d|³, so that near values count most; c is kCubic at first, and then what the model
// leaves of the values says it. Entries of H are the identity's with the standard deviation kPrior,
// so that k + 1 evaluations are enough to begin with, and after (k + 1)(k + 2)/2 the prior hardly
// matters. The next point is the model's minimum in a trust region (e.g. Conn, Scheinberg and
// Vicente, "Introduction to Derivative-Free Optimization", 2009, chapter 10); variables that it
// takes out of the box are held at their bounds, the one that is furthest out first. The covariance
// of g by the same regression says what uncertainty may hide: half its trace, along bounds only
// where g clearly points out of the box, is about the gain expected of knowing g. While that is
// more than what the step promises, the next point is beside the minimum, where g is known least.
// The search ends when both together are below `gain`, or when a value that is known from elsewhere
// is further below than the model's own errors can account for. Curvature may be the prior's alone,
// so f is tried one deviation away in each direction first; where it is lower, the search has not
// converged.

#include "geostat/minimize.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "geostat/small_matrix.hpp"

namespace strata {
namespace {

constexpr double kPrior = 0.5;
constexpr double kCubic = 0.3;
constexpr double kNoPrior = 5;  // and kNoCubic: what the values say by themselves
constexpr double kNoCubic = 0.02;
constexpr double kPriorCount = 3;
constexpr int kIdleMax = 10;
constexpr int kEvaluationsOfModel = 4;  // for each of its unknowns
constexpr double kFarthest = 4;         // deviations from the start, from variable to variable
constexpr double kSlopeGoesOn = 20;     // deviations
// Deviations: how far the best point may come from where the scale was tried before it is tried
// again. Nearer, values that gain nothing would be asked for without end.
constexpr double kNear = 0.3;

using Vector = std::vector<double>;

double scalar_product(const Vector& a, const Vector& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}
double length(const Vector& a) { return std::sqrt(scalar_product(a, a)); }

/// a + s·b
Vector sum(Vector a, const Vector& b, double s = 1) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += s * b[i];
  return a;
}

double distance(const Vector& a, const Vector& b) { return length(sum(a, b, -1)); }

/// A·x, A square and packed by columns.
Vector times(const Vector& a, const Vector& x) {
  const std::size_t k = x.size();
  Vector out(k);
  for (std::size_t j = 0; j < k; ++j) {
    for (std::size_t i = 0; i < k; ++i) out[i] += a[i + j * k] * x[j];
  }
  return out;
}

/// The inverse of a lower triangle.
Vector inverse_of_lower(const Vector& l, std::size_t k) {
  Vector out(k * k);
  for (std::size_t c = 0; c < k; ++c) {
    for (std::size_t i = c; i < k; ++i) {
      double value = i == c ? 1 : 0;
      for (std::size_t m = c; m < i; ++m) value -= l[i + m * k] * out[m + c * k];
      out[i + c * k] = value / l[i + i * k];
    }
  }
  return out;
}

struct EvaluatedPoint {
  Vector x;
  Vector u;
  double value = 0;
};

struct QuadraticModel {
  Vector g;
  Vector h;           // k × k
  Vector covariance;  // of g

  [[nodiscard]] double change(const Vector& d) const {
    return scalar_product(g, d) + 0.5 * scalar_product(d, times(h, d));
  }
};

/// The row of the regression for a displacement: d, then d_i·d_j, half of it on the diagonal.
Vector row_of(const Vector& d) {
  Vector row = d;
  for (std::size_t j = 0; j < d.size(); ++j) {
    for (std::size_t i = j; i < d.size(); ++i) row.push_back((i == j ? 0.5 : 1.0) * d[i] * d[j]);
  }
  return row;
}

enum class State : std::uint8_t { searching, converged, stuck, beaten };

class Search {
 public:
  Search(const ObjectiveFunction& f, const ScaledStart& start, const Box& box,
         const MinimizeOptions& options)
      : f_(f),
        k_(start.x0.size()),
        start_(start),
        box_(box),
        options_(options),
        inverse_(inverse_of_lower(start.factor, k_)),
        radius_(options.step) {
    for (const auto& [x, value] : start.known) add(x, value);
  }

  [[nodiscard]] Minimum run() {
    if (samples_.empty()) {
      evaluate(start_.x0);
      for (std::size_t i = 0; i < k_ && more(); ++i) {
        Vector u(k_);
        u[i] = radius_;
        // To the other side, if the box leaves little room on this one.
        const Vector there = inside_of(u);
        if (length(u_of(there)) < 0.5 * radius_) u[i] = -radius_;
        evaluate(inside_of(u));
      }
    }
    while (more() && state_ == State::searching) step();
    return {best().x, best().value, state_ == State::converged, state_ == State::beaten};
  }

 private:
  [[nodiscard]] bool more() const { return evaluations_ < options_.evaluations_max; }
  [[nodiscard]] const EvaluatedPoint& best() const { return samples_[best_]; }
  [[nodiscard]] Vector u_of(const Vector& x) const {
    return times(inverse_, sum(x, start_.x0, -1));
  }
  /// x₀ + C·u with what is beyond a bound taken off u_i, first of the first variable: those behind
  /// follow, as C has it, what is left of it.
  [[nodiscard]] Vector inside_of(Vector u) const {
    Vector x = start_.x0;
    for (std::size_t i = 0; i < k_; ++i) {
      for (std::size_t j = 0; j < i; ++j) x[i] += start_.factor[i + j * k_] * u[j];
      const double before = x[i];
      const double own = start_.factor[i + i * k_];
      x[i] = std::clamp(before + own * u[i], box_.lower[i], box_.upper[i]);
      u[i] = (x[i] - before) / own;
    }
    return x;
  }

  void add(const Vector& x, double value) {
    samples_.push_back({x, u_of(x), value});
    if (value < best().value) best_ = samples_.size() - 1;
  }
  [[nodiscard]] bool known(const Vector& x) const {
    return std::any_of(samples_.begin(), samples_.end(),
                       [&](const EvaluatedPoint& s) { return s.x == x; });
  }
  /// What is known already is not evaluated again: the search is over.
  void evaluate(const Vector& x) {
    if (known(x)) {
      state_ = State::stuck;
      return;
    }
    ++evaluations_;
    add(x, f_(x));
  }

  /// The regression, for a deviation of H and a size of the cubic term. In long double: weights
  /// differ by many orders of magnitude.
  [[nodiscard]] QuadraticModel fit(double prior, double cubic_size) const {
    const std::size_t m = k_ + k_ * (k_ + 1) / 2;
    std::vector<long double> normal(m * m);
    std::vector<long double> right(m);
    for (std::size_t j = 0, at = k_; j < k_; ++j) {
      for (std::size_t i = j; i < k_; ++i, ++at) {
        normal[at + at * m] += 1 / (prior * prior);
        right[at] += (i == j ? 1 : 0) / (kPrior * kPrior);
      }
    }
    for (std::size_t s = 0; s < samples_.size(); ++s) {
      if (s == best_) continue;
      const Vector d = sum(samples_[s].u, best().u, -1);
      const double cubic = cubic_size * std::pow(length(d), 3);
      const long double weight = 1 / (cubic * cubic + options_.gain * options_.gain);
      const Vector row = row_of(d);
      const double y = samples_[s].value - best().value;
      for (std::size_t a = 0; a < m; ++a) {
        right[a] += weight * row[a] * y;
        for (std::size_t b = 0; b < m; ++b) normal[a + b * m] += weight * row[a] * row[b];
      }
    }
    return model_of(std::move(normal), right, m);
  }

  [[nodiscard]] QuadraticModel model_of(std::vector<long double> normal,
                                        const std::vector<long double>& right,
                                        std::size_t m) const {
    std::vector<long double> scale(m);
    for (std::size_t a = 0; a < m; ++a) {
      // Nothing is known of a slope that no evaluation tells of: a deviation of 10.
      normal[a + a * m] += 0.01L;
      scale[a] = 1 / std::sqrt(normal[a + a * m]);
    }
    for (std::size_t a = 0; a < m; ++a) {
      for (std::size_t b = 0; b < m; ++b) normal[a + b * m] *= scale[a] * scale[b];
      normal[a + a * m] += 1e-15L;
    }
    QuadraticModel model{Vector(k_), Vector(k_ * k_), Vector(k_ * k_)};
    const auto inverse = inverse_of_spd(std::move(normal), m);
    for (std::size_t i = 0; i < k_; ++i) model.h[i + i * k_] = 1;
    if (!inverse) return model;
    std::vector<long double> solution(m);
    for (std::size_t a = 0; a < m; ++a) {
      for (std::size_t b = 0; b < m; ++b)
        solution[a] += scale[a] * (*inverse)[a + b * m] * scale[b] * right[b];
    }
    for (std::size_t i = 0; i < k_; ++i) {
      model.g[i] = static_cast<double>(solution[i]);
      for (std::size_t j = 0; j < k_; ++j)
        model.covariance[i + j * k_] =
            static_cast<double>(scale[i] * (*inverse)[i + j * m] * scale[j]);
    }
    for (std::size_t j = 0, at = k_; j < k_; ++j) {
      for (std::size_t i = j; i < k_; ++i, ++at)
        model.h[i + j * k_] = model.h[j + i * k_] = static_cast<double>(solution[at]);
    }
    return model;
  }

  /// The size of the cubic term, from what the model leaves of the values; it counts as much as
  /// kPriorCount more of them that it is kCubic.
  [[nodiscard]] double cubic_of(const QuadraticModel& model) const {
    double square = kPriorCount * kCubic * kCubic;
    double count = kPriorCount - static_cast<double>(k_ + k_ * (k_ + 1) / 2);
    for (std::size_t s = 0; s < samples_.size(); ++s) {
      const Vector d = sum(samples_[s].u, best().u, -1);
      const double size = length(d);
      if (s == best_ || size > 3) continue;
      const double left = std::fabs(samples_[s].value - best().value - model.change(d));
      square += std::pow(std::max(left - options_.gain, 0.0) / std::pow(size, 3), 2);
      count += 1;
    }
    return std::clamp(std::sqrt(square / std::max(count, kPriorCount)), 0.01, 3.0);
  }

  /// The minimum of the model in the trust region: (H + µI)·d = −g with the least µ that makes
  /// H + µI positive definite and d short enough.
  [[nodiscard]] Vector minimum_of(const QuadraticModel& model) const {
    double low = 0;
    double high = 0;
    Vector shortest(k_);
    for (int attempt = 0; attempt < 60; ++attempt) {
      const double mu = attempt == 0 ? 0 : high == 0 ? 2 * low + 0.01 : 0.5 * (low + high);
      Vector a = model.h;
      for (std::size_t i = 0; i < k_; ++i) a[i + i * k_] += mu;
      const auto factor = factor_of_spd(a, k_);
      const Vector d = factor ? solve_spd(*factor, sum(Vector(k_), model.g, -1)) : Vector(k_);
      const double size = length(d);
      if (!factor || size > radius_) {
        low = mu;
        continue;
      }
      if (mu == 0 || size > 0.9 * radius_) return d;
      shortest = d;
      high = mu;
      if (high - low < 1e-6 * high) break;
    }
    return shortest;
  }

  /// A step, and the bounds at which it holds variables: their directions out of the box.
  struct Inside {
    Vector d;
    std::vector<Vector> outward;
  };

  /// The same among the steps that stay in the box. A variable is held by a stiff spring.
  [[nodiscard]] Inside minimum_inside(QuadraticModel model) const {
    constexpr double kStiff = 1e6;  // the model's own curvature is about 1
    std::vector<bool> held(k_);
    Inside out;
    while (true) {
      out.d = minimum_of(model);
      const Vector x = sum(best().x, times(start_.factor, out.d));
      std::size_t worst = k_;
      double furthest = 0;
      for (std::size_t i = 0; i < k_; ++i) {
        const double beyond = std::max(box_.lower[i] - x[i], x[i] - box_.upper[i]);
        if (held[i] || beyond <= furthest * length(row_of_factor(i))) continue;
        worst = i;
        furthest = beyond / length(row_of_factor(i));
      }
      if (worst == k_) {
        out.d = sum(u_of(point_at(out.d)), best().u, -1);  // without what the springs gave
        return out;
      }
      held[worst] = true;
      const Vector c = row_of_factor(worst);
      const double stiffness = kStiff / scalar_product(c, c);
      const bool below = x[worst] < box_.lower[worst];
      const double room = (below ? box_.lower : box_.upper)[worst] - best().x[worst];
      out.outward.push_back(sum(Vector(k_), c, (below ? -1 : 1) / length(c)));
      for (std::size_t j = 0; j < k_; ++j) {
        model.g[j] -= stiffness * room * c[j];
        for (std::size_t i = 0; i < k_; ++i) model.h[i + j * k_] += stiffness * c[i] * c[j];
      }
    }
  }
  /// What is not known of g, without what it says across the bounds at which the minimum lies for
  /// sure: kSure deviations.
  [[nodiscard]] Vector covariance_inside(const QuadraticModel& model, const Inside& inside) const {
    constexpr double kSure = 3;
    const Vector slope = sum(times(model.h, inside.d), model.g);
    std::vector<Vector> across;  // orthonormal
    for (const Vector& outward : inside.outward) {
      const double deviation = std::sqrt(scalar_product(outward, times(model.covariance, outward)));
      if (-scalar_product(slope, outward) < kSure * deviation) continue;
      Vector rest = outward;
      for (const Vector& other : across) rest = sum(rest, other, -scalar_product(rest, other));
      if (length(rest) > 1e-6) across.push_back(sum(Vector(k_), rest, 1 / length(rest)));
    }
    Vector covariance = model.covariance;
    for (const Vector& n : across) {  // (I − n·nᵀ)·V·(I − n·nᵀ)
      const Vector vn = times(covariance, n);
      const double nvn = scalar_product(n, vn);
      for (std::size_t j = 0; j < k_; ++j) {
        for (std::size_t i = 0; i < k_; ++i)
          covariance[i + j * k_] += nvn * n[i] * n[j] - n[i] * vn[j] - vn[i] * n[j];
      }
    }
    return covariance;
  }
  [[nodiscard]] Vector row_of_factor(std::size_t i) const {
    Vector row(k_);
    for (std::size_t j = 0; j < k_; ++j) row[j] = start_.factor[i + j * k_];
    return row;
  }

  [[nodiscard]] double trace(const Vector& a) const {
    double out = 0;
    for (std::size_t i = 0; i < k_; ++i) out += a[i + i * k_];
    return out;
  }

  /// The first axis of a covariance, by the power method, times its deviation.
  [[nodiscard]] static Vector first_axis(const Vector& covariance, std::size_t k) {
    Vector axis(k);
    for (std::size_t i = 0; i < k; ++i) axis[i] = 1 + 0.1 * static_cast<double>(i);
    double size = 0;
    for (int i = 0; i < 50; ++i) {
      axis = times(covariance, axis);
      size = length(axis);
      if (size == 0) return axis;
      for (double& v : axis) v /= size;
    }
    for (double& v : axis) v *= std::sqrt(size);
    return axis;
  }

  /// The point of the box at a displacement from the best one.
  [[nodiscard]] Vector point_at(const Vector& d) const { return inside_of(sum(best().u, d)); }

  /// Whether the rival is lower than all that is to be expected here. The model has its minimum in
  /// the trust region then. The value there is off by the cubic term, whose size is that of one
  /// deviation. What uncertainty hides of a gain is the square of a normal variable in some
  /// directions, beyond four times its mean once in a hundred times.
  [[nodiscard]] bool is_beaten(double promised, double hidden, double size) const {
    if (!(options_.rival < best().value) || size > 0.9 * radius_) return false;
    const double most = promised + 4 * hidden + 3 * cubic_ * std::pow(size, 3);
    return best().value - most > options_.rival;
  }

  /// The same by what the values say by themselves, and by a slope that would have to go on for
  /// kSlopeGoesOn deviations. A curvature that is the prior's, or small beside what the values
  /// leave open of it, takes a long flat slope for a minimum near by.
  [[nodiscard]] bool is_beaten_by_values() const {
    const QuadraticModel free = fit(kNoPrior, kNoCubic);
    const Inside inside = minimum_inside(free);
    Vector slope = free.g;
    for (const Vector& outward : inside.outward)
      slope = sum(slope, outward, std::max(0.0, -scalar_product(slope, outward)));
    const double steepest = length(slope) + std::sqrt(trace(covariance_inside(free, inside)));
    return is_beaten(-free.change(inside.d), 0, length(inside.d)) &&
           best().value - kSlopeGoesOn * steepest > options_.rival;
  }

  /// Whether f was tried about one deviation away down the slope and to both sides of each
  /// variable, and where a model without a prior has its minimum, and is not lower there. Curvature
  /// may be the prior's alone, by which a long flat slope looks like a minimum. Where f is lower
  /// the search is over: the scale is wrong.
  [[nodiscard]] bool scale_holds(const QuadraticModel& model) {
    if (!tried_at_.empty() && distance(best().u, tried_at_) < kNear) return true;
    const Vector from = best().u;
    const double here = best().value;
    const int before = evaluations_;
    tried_at_ = from;
    for (std::size_t v = 0; v <= 2 * k_ && more(); ++v) {
      Vector way(k_);
      if (v > 0) way[(v - 1) / 2] = v % 2 == 0 ? 1 : -1;
      if (v == 0 ? lower_down_the_slope(model) : lower_towards(way, from, here, 0.9)) {
        state_ = State::stuck;
        return false;
      }
    }
    // As the values say it by themselves.
    const QuadraticModel free = fit(kNoPrior, kNoCubic);
    const Inside inside = minimum_inside(free);
    const Vector x = point_at(inside.d);
    if (-free.change(inside.d) > options_.gain && !known(x) && more()) {
      evaluate(x);
      if (samples_.back().value < here - options_.gain) {
        state_ = State::stuck;
        return false;
      }
    }
    return evaluations_ == before;  // else the model is to be made again
  }
  /// Evaluates f one deviation from the best point down the slope of the model, unless it is known
  /// about there; whether it is lower.
  [[nodiscard]] bool lower_down_the_slope(const QuadraticModel& model) {
    const double slope = length(model.g);
    return slope > 0 &&
           lower_towards(sum(Vector(k_), model.g, -1 / slope), best().u, best().value, 0.95);
  }
  [[nodiscard]] bool lower_towards(const Vector& way, const Vector& from, double here,
                                   double cosine) {
    const Vector x = inside_of(sum(from, way));
    if (is_tried(from, way, cosine) || known(x) || distance(u_of(x), from) < 0.5) return false;
    evaluate(x);
    return samples_.back().value < here - options_.gain;
  }
  /// `cosine`: the least, of the angle between a direction that was tried and `way`.
  [[nodiscard]] bool is_tried(const Vector& from, const Vector& way, double cosine) const {
    return std::any_of(samples_.begin(), samples_.end(), [&](const EvaluatedPoint& s) {
      const Vector d = sum(s.u, from, -1);
      const double size = length(d);
      return size >= 0.5 && size <= 1.5 && scalar_product(d, way) > cosine * size;
    });
  }

  /// One evaluation, or several that try the scale, or none and the end.
  void step() {
    const QuadraticModel model = fit(kPrior, cubic_);
    cubic_ = cubic_of(model);
    const Inside inside = minimum_inside(model);
    Vector d = inside.d;
    const double promised = -model.change(d);
    const Vector covariance = covariance_inside(model, inside);
    const double hidden = 0.5 * trace(covariance);
    if (promised + hidden < options_.gain) {
      if (scale_holds(model)) state_ = State::converged;
      return;
    }
    if (is_beaten(promised, hidden, length(d)) && is_beaten_by_values()) {
      state_ = State::beaten;
      return;
    }
    Vector x = point_at(d);
    if (hidden > promised) {
      // As far as the uncertainty reaches, to the side that the model takes for the lower one, if
      // the box has room there.
      Vector axis = first_axis(covariance, k_);
      const double reach = length(axis);
      for (double& v : axis) v *= std::min(1.0, std::min(radius_, 1.0) / reach);
      const double side =
          scalar_product(model.g, axis) + scalar_product(axis, times(model.h, d)) > 0 ? -1 : 1;
      const Vector from = u_of(x);
      x = point_at(sum(d, axis, side));
      if (length(sum(u_of(x), from, -1)) < 0.5 * length(axis)) x = point_at(sum(d, axis, -side));
    }
    d = sum(u_of(x), best().u, -1);
    const double before = best().value;
    const double wanted = -model.change(d);
    const double size = length(d);
    evaluate(x);
    if (state_ != State::searching) return;
    const double gained = before - samples_.back().value;
    if (wanted > options_.gain && gained < 0.1 * wanted) radius_ = 0.5 * std::min(radius_, size);
    if (gained > 0.5 * wanted && size > 0.8 * radius_) radius_ *= 2;
    idle_ = gained > options_.gain ? 0 : idle_ + 1;
    if (radius_ < options_.tolerance) state_ = State::converged;
    // Where the scale is right the minimum is near, and a model needs far fewer evaluations.
    const auto unknowns = static_cast<int>((k_ + 1) * (k_ + 2) / 2);
    const double away = length(sum(best().u, u_of(start_.x0), -1));
    if (idle_ > kIdleMax || evaluations_ > kEvaluationsOfModel * unknowns ||
        away > kFarthest * std::sqrt(static_cast<double>(k_)))
      state_ = State::stuck;
  }

  const ObjectiveFunction& f_;
  std::size_t k_;
  const ScaledStart& start_;
  const Box& box_;
  const MinimizeOptions& options_;
  Vector inverse_;   // of C
  Vector tried_at_;  ///< the best point when the scale was tried; none: it was not
  double radius_;
  std::vector<EvaluatedPoint> samples_;
  std::size_t best_ = 0;
  int evaluations_ = 0;
  double cubic_ = kCubic;
  int idle_ = 0;  ///< evaluations that gained nothing, in a row
  State state_ = State::searching;
};

}  // namespace

Minimum minimize_scaled(const ObjectiveFunction& f, const ScaledStart& start, const Box& box,
                        const MinimizeOptions& options) {
  return Search(f, start, box, options).run();
}

}  // namespace strata
