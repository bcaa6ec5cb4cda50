// The polynomial of A that takes its place.
//
// Method: Where the wanted end is so dense that many cycles are still to come, A gives way to a
// polynomial p(A) (chebyshev_filter.hpp), which has the same eigenvectors and the wanted ones far
// from all others: filtered Lanczos, vector by vector (Fang, Saad, "A filtered Lanczos procedure
// for extreme and interior eigenvalue problems", 2012). The edge, beyond which some eigenvalues
// more than the wanted ones should lie, comes from how the spectrum is seen from a random vector:
// the squares of the first components of the projected eigenvectors, times the order, are about how
// many eigenvalues there are near each Ritz value (Lin, Saad, Yang, "Approximating spectral
// densities of large matrices", 2016). What a cycle then shows of p(A) is believed more, and the
// filter chosen anew where too many or too few lie beyond its edge.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "krylov/thick_restart.hpp"

namespace strata {
namespace {

constexpr std::size_t kCyclesToJudge = 5;  ///< whose progress is taken to go on
constexpr double kManyCycles = 20;         ///< by which a filter is worth what it costs
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

/// Whether A, or the filter there is, gives way to another.
bool ThickRestart::changes_filter(std::int64_t wanted_pairs) {
  if (filters_ == kFiltersMax) return false;
  const bool smallest = options_.which == EigenEnd::smallest;
  const auto inner = [&](double x, double y) { return smallest ? std::max(x, y) : std::min(x, y); };
  if (!filter_) {
    if (!is_slow() || nodes_.empty()) return false;
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
  const ChebyshevFilter filter = make_filter(outermost_value(), edge, far_end, growth_, kDegreeMax);
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
