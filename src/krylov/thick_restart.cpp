// Cycles of thick-restart Lanczos.
//
// Method: thick-restart Lanczos (Wu, Simon, "Thick-restart Lanczos method for large symmetric
// eigenvalue problems", 2000) with full reorthogonalization, the basis built by Arnoldi
// (arnoldi.hpp) vector by vector or in blocks of s. A cycle fills the basis, takes the Ritz pairs
// of the projected matrix, and begins again from the better half of them. When the pairs that are
// wanted have converged they are *locked*: they stay in the basis, and the method begins anew from
// a random vector orthogonal to them, because the space of one vector has but one copy of an
// eigenvalue that comes several times. That goes on until the best pair of what is left is not
// among the k best.
//
// Blocks may break down. Errors of A·Q = Q·T that grow from cycle to cycle make Ritz values beyond
// the norm of A, and polynomials of such values let the vectors overflow. A fixed method that meets
// a pivot that is not positive leaves vectors that are not orthonormal. Then what is not locked is
// given up, and the method begins anew, vector by vector, with projections twice.
//
// A block's H follows from its recurrence alone, one product a vector. Kept columns of H carry what
// they are in error by from cycle to cycle, and so do the vectors; how much a block multiplies that
// by depends on its polynomials, so errors are followed (arnoldi_symmetric.cpp) and blocks are kept
// as long as that allows. The polynomials of the `lanczos` basis are those that are orthogonal in
// the inner product of the last cycle at the same place. A block of them is nearly orthonormal, and
// has next to nothing in the vectors before it, as long as cycles resemble each other.

#include "krylov/thick_restart.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.hpp"
#include "base/random.hpp"

namespace strata {
namespace {

constexpr double kTold = 0.01;  ///< residual beside a distance: on which side a value is
/// Share of the mean coupling β below which a vector is not scaled to length 1.
constexpr double kSmallCoupling = 1e-3;
/// Beyond the norm of A by more than this share of it no Ritz value is one.
constexpr double kBeyondNorm = 1e-6;
/// Times the tolerance: with an estimated error of A·Q = Q·T above it a pair misses the tolerance,
/// since estimates are good to a factor of ten.
constexpr double kErrorMax = 10;

// ---- of filters

constexpr std::int64_t kWorkOfFilter = 3;  ///< columns of V
/// Largest eigenvalue that p(A) may have: what is beyond the edge has to stand out from its
/// rounding.
constexpr double kGrowthMax = 1e4;
/// Vectors behind the locked ones that show whether there is anything left to be found.
constexpr std::int64_t kVectorsToLook = 32;
constexpr std::int64_t kProductsOfScript = 2048;

/// A second pass costs less than a cycle that has lost what it locked.
RoundingLimits limits_of_symmetric() {
  RoundingLimits limits = rounding_limits(Element::fp64);
  limits.amplification_once = 10;
  return limits;
}

}  // namespace

std::int64_t basis_size_of(const EigsOptions& options, std::int64_t n) {
  const std::int64_t wanted =
      options.basis_size > 0 ? options.basis_size : std::max<std::int64_t>(2 * options.k + 1, 20);
  return std::min({wanted, n, kKrylovBasisMax});
}

ThickRestart::ThickRestart(const LinearSystem& system, const EigsOptions& options, WorkCrew& crew)
    : options_(options),
      n_(system.matrix().rows),
      m_(basis_size_of(options, n_)),
      norm_(system.norm()),
      entries_(system.matrix().entries()),
      spare_(options.s > 1 ? std::min(options.s, m_) : 0),
      work_(std::max(spare_, options.filter ? kWorkOfFilter : 0)),
      crew_(crew),
      bounds_(spectrum_bounds(system.matrix())),
      growth_(std::clamp(options.tolerance / std::numeric_limits<double>::epsilon() / 50, 10.0,
                         kGrowthMax)),
      runner_(system.matrix(), m_ + 1 + work_, std::min(options.s, m_), {}, options.run, "eigs",
              m_ + 1, {}, options.ghost_zones ? std::min(options.s, m_) : 0),
      arnoldi_(runner_, {.s = options.s,
                         .method = options.orthogonalization,
                         .norm = system.norm(),
                         .limits = limits_of_symmetric(),
                         .symmetric = true,
                         .relation_max = options.tolerance * system.norm() / 100}) {
  arnoldi_.set_recurrence(make_recurrence(KrylovBasis::monomial, options.s, {}, norm_));
}

void ThickRestart::run(EigsInfo& info) {
  bool more = begin_anew();
  while (more && info.restarts < options_.restarts_max) {
    fill_basis(info.restarts);
    ++info.restarts;
    overflowed_ = arnoldi_.not_finite() && spare_ == 0;
    if (overflowed_) break;
    more = look(info.restarts == options_.restarts_max || at_limit());
    if (at_limit()) break;
  }
  finished_ = !more;
  info.halo = runner_.halo();
  info.products = arnoldi_.products;
  info.factorizations = arnoldi_.factorizations;
  info.failed_cholesky = arnoldi_.failed_cholesky;
  info.condition_max = arnoldi_.condition_max;
  info.decisions = arnoldi_.decisions;
  info.filter_degree = filter_ ? filter_->degree : 0;
  info.history = history_;
  if (!finished_) info.why = why_not(info.restarts);
}

/// The first columns, a few a run: each has a place in host memory until the run is over.
void ThickRestart::take_vectors(MatrixView<double> to) {
  constexpr std::int64_t kTogether = 16;
  for (std::int64_t j = 0; j < to.cols; j += kTogether) {
    (void)runner_.run_and_take(arnoldi_.pending(), j,
                               to.block(0, j, to.rows, std::min(kTogether, to.cols - j)));
    arnoldi_.pending() = {};
  }
}

double ThickRestart::orthogonality() {
  BasisScript& script = arnoldi_.pending();
  const int number = script.inner(0, found(), 0, found());
  const PanelSum gram = arnoldi_.flush()[static_cast<std::size_t>(number)];
  double worst = 0;
  for (std::int64_t j = 0; j < found(); ++j)
    for (std::int64_t i = 0; i < found(); ++i)
      worst = std::max(worst, std::abs(gram(i, j).hi - (i == j ? 1.0 : 0.0)));
  return worst;
}

std::string ThickRestart::why_not(std::int64_t cycles) const {
  std::string why = overflowed_
                        ? "numbers are no longer finite"
                        : fmt::format("{} cycles of {} vectors were not enough", cycles, m_);
  if (at_limit()) why += fmt::format(": {} products are the limit", options_.products_max);
  if (!broken_.empty())
    why += fmt::format("; {} with s = {} in the {} basis broke down on the way ({}): 'auto' {}",
                       to_string(options_.orthogonalization), options_.s, to_string(options_.basis),
                       broken_,
                       options_.orthogonalization == QrMethod::automatic
                           ? "with a smaller s, or more cycles"
                           : "keeps as much of a block as it can, a smaller s breaks down less");
  return why;
}

/// Beyond the other value by more than what is not told apart.
bool ThickRestart::better(double x, double than) const {
  const double margin = margin_of(options_, norm_);
  return options_.which == EigenEnd::largest ? x > than + margin : x < than - margin;
}

/// A random vector orthogonal to the locked ones; false where there is none.
bool ThickRestart::begin_anew() {
  if (locked() >= n_ || locked() + 1 >= m_ + 1) return false;
  const std::int64_t c = locked();
  std::vector<double> start(static_cast<std::size_t>(n_));
  for (std::size_t i = 0; i < start.size(); ++i)
    start[i] = random_normal(options_.seed + 7919 * round_, i);
  ++round_;
  BasisScript& script = arnoldi_.pending();
  script.put(c, std::move(start));
  const int before = script.inner(c, 1, c, 1);
  for (int time = 0; time < 2 && c > 0; ++time) script.update(0, c, script.inner(0, c, c, 1));
  const int norm = script.inner(c, 1, c, 1);
  script.normalize(c, norm);
  const std::vector<PanelSum> sums = arnoldi_.flush();
  const double left = sums[static_cast<std::size_t>(norm)](0, 0).hi;
  if (!(left > 1e-20 * sums[static_cast<std::size_t>(before)](0, 0).hi)) return false;
  std::vector<std::vector<double>> h;
  for (std::int64_t i = 0; i < c; ++i) {
    h.emplace_back(static_cast<std::size_t>(i + 1)).back() =
        of_operator(locked_[static_cast<std::size_t>(i)]);
  }
  arnoldi_.begin(cycle_, std::move(h), locked_errors_);
  fresh_ = true;
  return true;
}

void ThickRestart::fill_basis(std::int64_t cycle) {
  cycle_ = cycle;
  first_ = arnoldi_.size();
  const bool looks = filter_ && fresh_ && locked() > 0;
  const std::int64_t full = looks ? std::min(m_, locked() + kVectorsToLook) : m_;
  while (arnoldi_.size() < full && !arnoldi_.ended() && !arnoldi_.not_finite()) {
    if (arnoldi_.size() > first_ && at_limit()) break;
    const std::int64_t left = full - arnoldi_.size();
    if (spare_ == 0 || !can_block()) {
      arnoldi_.add_vectors(std::min(left, steps_of_script()));
    } else {
      set_recurrence();
      arnoldi_.add_block(left);
    }
  }
  if (arnoldi_.not_finite()) {
    eigen_ = {};
    order_.clear();
    coupling_.clear();
    return;
  }
  project();
  learn();
}

std::int64_t ThickRestart::steps_of_script() const {
  const std::int64_t degree = filter_ ? filter_->degree : 1;
  const std::int64_t allowed = options_.products_max - arnoldi_.products;
  const std::int64_t most =
      options_.products_max > 0 ? std::min(allowed, kProductsOfScript) : kProductsOfScript;
  return std::clamp<std::int64_t>(most / degree, 1, kStepsOfScript);
}

/// Whether the polynomials of a block are known.
bool ThickRestart::can_block() const {
  switch (options_.basis) {
    case KrylovBasis::monomial: return true;
    case KrylovBasis::lanczos: return !steps_.empty() || arnoldi_.size() - first_ >= options_.s;
    default: return has_ritz_;
  }
}

/// Sets the recurrence of the lanczos basis: the coefficients of the last cycle at this place of
/// it; behind its end the mean of its second half, since coefficients settle.
void ThickRestart::set_recurrence() {
  if (options_.basis != KrylovBasis::lanczos) return;
  if (steps_.empty()) learn();
  const std::size_t half = steps_.size() / 2;
  const auto share = 1 / static_cast<double>(steps_.size() - half);
  RecurrenceStep mean{0, 0, 1};
  for (std::size_t i = half; i < steps_.size(); ++i) {
    mean.alpha += steps_[i].alpha * share;
    mean.beta += steps_[i].beta * share;
  }
  Recurrence recurrence;
  double before = 0;
  for (std::int64_t i = 0; i < options_.s; ++i) {
    const auto place = static_cast<std::size_t>(arnoldi_.size() - first_ + i);
    const RecurrenceStep& step = place < steps_.size() ? steps_[place] : mean;
    const double length = std::max(step.beta, kSmallCoupling * mean.beta);
    recurrence.push_back({step.alpha, before, length > 0 ? 1 / length : 1.0});
    before = step.beta;
  }
  arnoldi_.set_recurrence(std::move(recurrence));
}

/// What the next blocks are to be made of.
void ThickRestart::learn() {
  if (spare_ == 0 || options_.basis == KrylovBasis::monomial) return;
  if (options_.basis == KrylovBasis::lanczos) {
    steps_.clear();
    for (std::int64_t j = first_; j < arnoldi_.size(); ++j) {
      const std::vector<double>& column = arnoldi_.h()[static_cast<std::size_t>(j)];
      const auto place = static_cast<std::size_t>(j);
      steps_.push_back({column[place], column[place + 1], 1});
    }
    return;
  }
  if (eigen_.values.empty()) return;
  // With all that is known of the spectrum: what lies outside of it grows in the vectors of a
  // block, and so does what the kept pairs are in error by.
  std::vector<std::complex<double>> ritz(eigen_.values.begin(), eigen_.values.end());
  ritz.insert(ritz.end(), locked_.begin(), locked_.end());
  arnoldi_.set_recurrence(make_recurrence(options_.basis, options_.s, ritz, norm_));
  has_ritz_ = true;
}

/// Whether each of the `count` vectors behind the locked ones, which belong to the first Ritz
/// values, is an eigenvector within that share of the tolerance, by products with A.
bool ThickRestart::are_pairs(std::int64_t count, double share) {
  double worst = 0;
  for (std::int64_t first = 0; first < count; first += work_) {
    BasisScript& script = arnoldi_.pending();
    const std::int64_t last = std::min(first + work_, count);
    std::vector<int> norms;
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t to = m_ + 1 + i - first;
      script.multiply(locked() + i, to, to, value(i), 0, 1);
      norms.push_back(script.inner(to, 1, to, 1));
    }
    const std::vector<PanelSum> sums = arnoldi_.flush();
    arnoldi_.products += last - first;
    for (const int number : norms)
      worst = std::max(worst, std::sqrt(sums[static_cast<std::size_t>(number)](0, 0).hi));
  }
  return worst <= share * options_.tolerance * norm_;
}

/// The Ritz pairs of what is not locked, from the wanted end inwards in `order_`.
void ThickRestart::project() {
  const std::int64_t active = arnoldi_.size() - locked();
  SquareMatrix<double> t(active);
  const auto h = [&](std::int64_t i, std::int64_t j) {
    const std::vector<double>& column = arnoldi_.h()[static_cast<std::size_t>(j + locked())];
    const auto row = static_cast<std::size_t>(i + locked());
    return row < column.size() ? column[row] : 0.0;
  };
  for (std::int64_t j = 0; j < active; ++j)
    for (std::int64_t i = j; i < active; ++i) t(i, j) = (h(i, j) + h(j, i)) / 2;
  eigen_ = symmetric_eigen(std::move(t), crew_);
  require(active == 0 || !eigen_.values.empty() || spare_ > 0, ErrorKind::numerical, "eigs",
          "the projected problem of order {} has no eigenvalues that QL finds", active);
  coupling_.clear();
  order_.resize(eigen_.values.size());
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  if (filter_ || options_.which == EigenEnd::largest) std::reverse(order_.begin(), order_.end());
  for (const std::int64_t i : order_) {
    double sum = 0;
    for (std::int64_t j = 0; j < active; ++j) sum += h(active, j) * eigen_.vectors(j, i);
    coupling_.push_back(sum);
  }
}

/// About ‖A·y − θ·y − (coupling)·q‖ of a Ritz pair: what the basis is in error by, and what H has
/// beside the symmetric matrix that was taken for it.
double ThickRestart::error(std::int64_t i) const {
  const std::int64_t from = order_[static_cast<std::size_t>(i)];
  std::vector<double> left(static_cast<std::size_t>(arnoldi_.size()));
  double square = 0;
  for (std::int64_t j = 0; j < eigen_.vectors.n; ++j) {
    const double share = eigen_.vectors(j, from);
    square += std::pow(arnoldi_.relation_error(locked() + j) * share, 2);
    const std::vector<double>& column = arnoldi_.h()[static_cast<std::size_t>(locked() + j)];
    for (std::size_t l = 0; l < std::min(column.size(), left.size()); ++l)
      left[l] += column[l] * share;
    left[static_cast<std::size_t>(locked() + j)] -= ritz(i) * share;
  }
  for (const double x : left) square += x * x;
  return std::sqrt(square);
}

/// The k-th best of the locked values.
double ThickRestart::worst_locked() const {
  std::vector<double> sorted = locked_;
  std::sort(sorted.begin(), sorted.end());
  if (options_.which == EigenEnd::largest) std::reverse(sorted.begin(), sorted.end());
  return sorted[static_cast<std::size_t>(options_.k - 1)];
}

/// How many of the Ritz values, from the end inwards, are among the k best that are known.
std::int64_t ThickRestart::wanted() const {
  const auto count = std::min<std::int64_t>(options_.k, std::ssize(order_));
  std::int64_t i = 0;
  for (; i < count; ++i) {
    // Better Ritz values (i of them) and locked ones that are no worse take their places first.
    const auto ahead = std::count_if(locked_.begin(), locked_.end(),
                                     [&](double x) { return !better(value(i), x); });
    if (i + ahead >= options_.k) break;
  }
  return i;
}

bool ThickRestart::at_limit() const {
  return options_.products_max > 0 && arnoldi_.products >= options_.products_max;
}

/// Why the vectors of a cycle with blocks are of no use; empty: they are, or there are no blocks.
std::string ThickRestart::breakdown(std::int64_t wanted_pairs) const {
  if (spare_ == 0) return "";
  if (arnoldi_.not_finite() || (order_.empty() && arnoldi_.size() > locked()))
    return "numbers are no longer finite";
  for (const double x : eigen_.values) {
    if (!(std::abs(x) <= (1 + kBeyondNorm) * norm_))
      return fmt::format("a Ritz value of {:.3g} is beyond {:.3g}, the largest row sum of |A|", x,
                         norm_);
  }
  for (std::int64_t i = 0; i < wanted_pairs; ++i) {
    if (error(i) > kErrorMax * options_.tolerance * norm_)
      return fmt::format("A·Q = Q·T is in error by {:.1e} of |A|", error(i) / norm_);
  }
  return "";
}

/// From here on there are no blocks, and no fixed method, which may be what let them break down.
void ThickRestart::go_on_by_vectors(const std::string& why) {
  spare_ = 0;
  arnoldi_.set_method(QrMethod::cgs2);
  decide("single: " + why);
}

void ThickRestart::decide(std::string what) {
  KrylovDecision decision;
  decision.restart = cycle_;
  decision.column = locked();
  decision.what = std::move(what);
  runner_.note(fmt::format("cycle {}, column {}: {}", cycle_ + 1, decision.column, decision.what));
  arnoldi_.decisions.push_back(std::move(decision));
}

/// After a cycle: locks, begins anew or restarts; after the last one what is best is locked as it
/// is. False: there is nothing more to be done.
bool ThickRestart::look(bool last) {
  const std::int64_t w = wanted();
  const double enough = options_.tolerance * norm_ / 4;
  EigsCycle& cycle = history_.emplace_back();
  for (std::int64_t i = 0; i < w; ++i)
    cycle.estimated_residual = std::max(cycle.estimated_residual, residual(i) / norm_);
  cycle.locked = locked();
  if (std::string why = breakdown(w); !why.empty()) {
    if (arnoldi_.not_finite()) cycle.estimated_residual = std::nan("");
    go_on_by_vectors(why);
    broken_ = std::move(why);
    return last || begin_anew();
  }
  if (fresh_) note_density();
  if (w == 0) {
    const bool told = arnoldi_.ended() || order_.empty() || residual(0) <= enough ||
                      ritz_residual(0) <= kTold * std::abs(ritz(0) - of_operator(worst_locked()));
    if (told) return false;
    if (!last && filter_is_dear()) {
      give_up_filter();
      return begin_anew();
    }
    return last || !restart(1);
  }
  bool converged = true;
  double way = 0;  // on a logarithmic scale, the sum over the pairs
  for (std::int64_t i = 0; i < w; ++i) {
    converged = converged && residual(i) <= enough;
    way += std::log(std::max(residual(i) / enough, 1.0)) / static_cast<double>(w);
  }
  ways_.push_back(way);
  if (!converged && !arnoldi_.ended() && !last) {
    if (options_.filter && changes_filter(w)) return begin_anew();
    if (!restart(w)) return true;
    ways_.clear();
    keep_best(w);
    return begin_anew();
  }
  ways_.clear();
  products_allowed_ = static_cast<double>(arnoldi_.products) + plain_cost_;
  if (!lock(w, last)) {
    if (!filter_) {
      go_on_by_vectors("pairs from blocks miss the tolerance");
    } else {
      growth_ /= 30;
      set_filter(filter_->edge());
    }
  }
  return last || begin_anew();
}

/// behind them, if `tail`, the last vector of the basis.
void ThickRestart::rotate(const std::vector<std::size_t>& keep, std::int64_t count, bool tail) {
  const std::int64_t rows = arnoldi_.size() + (tail ? 1 : 0);
  const auto kept = std::ssize(keep);
  PanelFactor factor{rows, kept + count + (tail ? 1 : 0), Element::fp64, {}, {}};
  factor.values.resize(static_cast<std::size_t>(rows * factor.cols));
  const auto at = [&](std::int64_t i, std::int64_t j) -> DoubleDouble& {
    return factor.values[static_cast<std::size_t>(i + j * rows)];
  };
  for (std::int64_t j = 0; j < kept; ++j)
    at(static_cast<std::int64_t>(keep[static_cast<std::size_t>(j)]), j) = DoubleDouble(1.0);
  for (std::int64_t j = 0; j < count; ++j) {
    const std::int64_t from = order_[static_cast<std::size_t>(j)];
    for (std::int64_t i = 0; i < eigen_.vectors.n; ++i)
      at(locked() + i, kept + j) = DoubleDouble(eigen_.vectors(i, from));
  }
  if (tail) at(rows - 1, kept + count) = DoubleDouble(1.0);
  arnoldi_.pending().rotate(std::move(factor));
}

/// The better half of the Ritz vectors, `least` of them at least. True: by products with A these
/// `least` are pairs already. With a filter that is worth the products: where eigenvalues are
/// closer to each other than the tolerance p(A) says it late.
bool ThickRestart::restart(std::int64_t least) {
  const auto active = std::ssize(order_);
  const std::int64_t most = std::max<std::int64_t>(active - 1, 0);
  const std::int64_t count = std::min(least + (active - least) / 2, most);
  std::vector<std::size_t> all(locked_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  rotate(all, count, true);
  std::vector<std::vector<double>> h;
  for (const double x : locked_) h.emplace_back(h.size() + 1).back() = x;
  for (std::int64_t j = 0; j < count; ++j) {
    std::vector<double>& column = h.emplace_back(static_cast<std::size_t>(locked() + count + 1));
    column[static_cast<std::size_t>(locked() + j)] = ritz(j);
    column.back() = coupling_[static_cast<std::size_t>(j)];
  }
  std::vector<double> errors = locked_errors_;
  for (std::int64_t j = 0; j < count; ++j) errors.push_back(error(j));
  arnoldi_.begin(cycle_ + 1, std::move(h), std::move(errors));
  fresh_ = false;
  return filter_ && are_pairs(least, 0.5);
}

/// The first `count` Ritz pairs are locked; of all that are, the k best stay, in their order.
/// False: they are not what the projected matrix says of them, and none is, unless `anyway`.
bool ThickRestart::lock(std::int64_t count, bool anyway) {
  std::vector<std::size_t> keep(locked_.size());
  std::iota(keep.begin(), keep.end(), std::size_t{0});
  rotate(keep, count, false);
  const bool check = spare_ > 0 || (filter_ && filters_ < kFiltersMax);
  if (check && !anyway && !are_pairs(count)) return false;
  keep_best(count);
  return true;
}

/// Locks the k best of the locked vectors and of the first `count` Ritz vectors behind them, in
/// order of their values: a rotation of its own, since new ones go between the old.
void ThickRestart::keep_best(std::int64_t count) {
  std::vector<double> values = locked_;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(value(i));
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return options_.which == EigenEnd::largest ? values[i] > values[j] : values[i] < values[j];
  });
  order.resize(std::min<std::size_t>(order.size(), static_cast<std::size_t>(options_.k)));
  PanelFactor permutation{std::ssize(values), std::ssize(order), Element::fp64, {}, {}};
  permutation.values.resize(values.size() * order.size());
  locked_.clear();
  for (std::size_t j = 0; j < order.size(); ++j) {
    permutation.values[order[j] + j * values.size()] = DoubleDouble(1.0);
    locked_.push_back(values[order[j]]);
  }
  locked_errors_.assign(locked_.size(), options_.tolerance * norm_);
  arnoldi_.pending().rotate(std::move(permutation));
}

}  // namespace strata
