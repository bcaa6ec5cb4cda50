// The polynomial of A that takes its place.
//
// Method: Where the wanted end is so dense that many cycles are still to come, A gives way to a
// polynomial p(A) (chebyshev_filter.hpp), which has the same eigenvectors and the wanted ones far
// from all others: filtered Lanczos, vector by vector (Fang, Saad, "A filtered Lanczos procedure
// for extreme and interior eigenvalue problems", 2012). The edge, beyond which some eigenvalues
// more than the wanted ones should lie, comes from how the spectrum is seen from a random vector.
// The squares of the first components of the projected eigenvectors, times the order, are about how
// many eigenvalues there are near each Ritz value (Lin, Saad, Yang, "Approximating spectral
// densities of large matrices", 2016). What a cycle then shows of p(A) is believed more, and the
// filter chosen anew where too many or too few lie beyond its edge.
//
// A filter may not cost more than it saves. What the cycles without it would have cost follows from
// their progress, in products with A, and vectors that are made orthonormal count as the products
// that take as long. The degree is such that two cycles fit into that, and when it is used up the
// filter is given up for good.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "krylov/thick_restart.hpp"

namespace strata {
namespace {

constexpr std::size_t kCyclesToJudge = 5;  ///< whose progress is taken to go on
constexpr double kManyCycles = 20;         ///< by which a filter is worth what it costs
/// Progress slows down as the inner pairs are what is left: by so much more cycles are taken than
/// the last ones let expect, of dense ends.
constexpr double kSlowerLater = 8;
constexpr double kMostCycles = 1000;   ///< that are expected at the slowest progress
constexpr double kCyclesOfFilter = 2;  ///< at least, by the products that are allowed
constexpr double kLeastGrowth = 1.25;  ///< below it a polynomial tells nothing apart
constexpr std::int64_t kDegreeMax = 20'000;
constexpr std::int64_t kDegreeMin = 4;  ///< below it the end is not dense

}  // namespace

/// How the spectrum is seen from the random vector that the cycle began with.
void ThickRestart::note_density() {
  nodes_.clear();
  const auto left = static_cast<double>(n_ - locked());
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (filter_ && !(ritz(at) > 1)) break;
    nodes_.push_back({value(at), left * std::pow(eigen_.vectors(0, order_[i]), 2)});
  }
  if (filter_) nodes_.push_back({filter_->edge(), 0});
}

/// Eigenvalues that should lie beyond the edge, the locked ones not among them: between the
/// wanted ones and those that the basis holds.
double ThickRestart::count_beyond() const {
  const std::int64_t more = std::max<std::int64_t>((m_ - options_.k) / 2, 4);
  return static_cast<double>(std::max(options_.k - locked(), std::int64_t{1}) + more);
}

bool ThickRestart::is_slow() const {
  if (ways_.size() <= kCyclesToJudge) return false;
  const double gain = (ways_[ways_.size() - 1 - kCyclesToJudge] - ways_.back()) / kCyclesToJudge;
  return ways_.back() > kManyCycles * gain;
}

/// What the cycles to come cost without a filter, in products with A: bytes are what counts.
double ThickRestart::plain_products(std::int64_t wanted_pairs) const {
  const auto n = static_cast<double>(n_);
  const auto m = static_cast<double>(m_);
  const double of_product = 12 * static_cast<double>(entries_) + 24 * n;
  const double of_projections = 4 * 8 * n * 0.75 * m;  // twice, a reading for sums and an update
  const double gain = (ways_[ways_.size() - 1 - kCyclesToJudge] - ways_.back()) / kCyclesToJudge;
  const double cycles =
      gain > 0 ? std::min(kSlowerLater * ways_.back() / gain, kMostCycles) : kMostCycles;
  const auto added =
      static_cast<double>(std::max<std::int64_t>((m_ - locked() - wanted_pairs) / 2, 1));
  return cycles * added * (1 + of_projections / of_product);
}

bool ThickRestart::filter_is_dear() const {
  return filter_ && static_cast<double>(arnoldi_.products) > products_allowed_;
}

/// From here on products are with A itself.
void ThickRestart::give_up_filter() {
  decide(fmt::format("no filter: {} products are more than it saves", arnoldi_.products));
  filter_.reset();
  filters_ = kFiltersMax;
  nodes_.clear();
  ways_.clear();
  arnoldi_.clear_filter(norm_);
}

/// Whether A, or the filter there is, gives way to another, or to A.
bool ThickRestart::changes_filter(std::int64_t wanted_pairs) {
  if (filter_is_dear()) {
    give_up_filter();
    return true;
  }
  if (filters_ == kFiltersMax) return false;
  const bool smallest = options_.which == EigenEnd::smallest;
  const auto inner = [&](double x, double y) { return smallest ? std::max(x, y) : std::min(x, y); };
  if (!filter_) {
    if (!is_slow() || nodes_.empty()) return false;
    plain_cost_ = plain_products(wanted_pairs);
    products_allowed_ = static_cast<double>(arnoldi_.products) + plain_cost_;
    const auto last = std::min(wanted_pairs, std::ssize(order_) - 1);
    return set_filter(inner(place_of_count(nodes_, count_beyond()), value(last)));
  }
  std::int64_t beyond = 0;
  while (beyond < std::ssize(order_) && ritz(beyond) > 1) ++beyond;
  double seen = 0;
  for (const SpectralNode& node : nodes_) seen += node.count;
  if (beyond < wanted_pairs) {
    // Too few; how far they are from the edge says about where those are that are missing.
    const double times =
        std::clamp(count_beyond() / std::max({seen, static_cast<double>(beyond), 1.0}), 1.5, 8.0);
    const double outermost = outermost_value();
    return set_filter(outermost + times * (filter_->edge() - outermost));
  }
  const bool many = seen > 2 * count_beyond();
  const bool steep = ritz(0) > 100 * growth_;
  if (!fresh_ || !(many || steep)) return false;
  return set_filter(many ? place_of_count(nodes_, count_beyond()) : filter_->edge());
}

/// The best eigenvalue that is known.
double ThickRestart::outermost_value() const {
  if (order_.empty()) return locked_.empty() ? 0 : locked_[0];
  if (locked_.empty()) return value(0);
  return better(locked_[0], value(0)) ? locked_[0] : value(0);
}

/// False where the end is not dense enough for it to be of use.
bool ThickRestart::set_filter(double edge) {
  const double far_end = options_.which == EigenEnd::smallest ? bounds_.second : bounds_.first;
  const double allowed = (products_allowed_ - static_cast<double>(arnoldi_.products)) /
                         (kCyclesOfFilter * static_cast<double>(m_));
  const auto most =
      static_cast<std::int64_t>(std::clamp(allowed, 2.0, static_cast<double>(kDegreeMax)));
  const double outermost = outermost_value();
  const ChebyshevFilter filter = make_filter(outermost, edge, far_end, growth_, most);
  if (!(filter.value(outermost) > kLeastGrowth)) return false;
  ++filters_;
  if (filter.degree < kDegreeMin) return false;
  filter_ = filter;
  spare_ = 0;
  ways_.clear();
  arnoldi_.set_method(QrMethod::cgs2);
  arnoldi_.set_filter(filter, growth_, m_ + 1);
  decide(fmt::format("filter: degree {}, edge {:.6g}", filter.degree, filter.edge()));
  return true;
}

}  // namespace strata
