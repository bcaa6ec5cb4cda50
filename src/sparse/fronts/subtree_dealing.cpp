#include "sparse/fronts/subtree_dealing.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/check.hpp"
#include "kernels/fronts/front_program.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

class Dealer {
 public:
  Dealer(const SparseAnalysis& analysis, int devices, const DealingTimes& times, bool shares)
      : a_(analysis), devices_(devices), times_(times), shares_(shares && devices > 1) {
    const std::int32_t count = a_.supernodes();
    own_.resize(at(count));
    subtree_.resize(at(count));
    children_.resize(at(count));
    device_.resize(at(count));
    done_.resize(at(count));
    shared_.resize(at(count));
    for (std::int32_t s = 0; s < count; ++s) {
      const double order = static_cast<double>(order_of(s));
      own_[at(s)] =
          a_.flops(s) * times_.flop + order * order / 2 * times_.element + times_.supernode;
      subtree_[at(s)] += own_[at(s)];
      if (a_.parent[at(s)] < 0) continue;
      subtree_[at(a_.parent[at(s)])] += subtree_[at(s)];
      children_[at(a_.parent[at(s)])].push_back(s);
    }
  }

  SubtreeDealing deal() {
    Dealt best;  // all on one
    best.seconds = 0;
    Largest largest;
    for (std::int32_t s = 0; s < a_.supernodes(); ++s) {
      if (a_.parent[at(s)] >= 0) continue;
      largest.emplace(subtree_[at(s)], s);
      best.seconds += subtree_[at(s)];
      best.roots.push_back({s, 0});
    }
    double in_top = 0;
    // More subtrees than these are no easier to deal evenly, and each is a launch.
    constexpr int kSubtreesEach = 64;
    for (int splits = 0; splits < kSubtreesEach * devices_ && !largest.empty() && devices_ > 1;
         ++splits) {
      evaluate(largest, best);
      const std::int32_t s = largest.top().second;
      largest.pop();
      top_.insert(std::lower_bound(top_.begin(), top_.end(), s), s);
      in_top += own_[at(s)];
      // The rest of the work can be divided by the devices at best.
      if (in_top / devices_ > best.seconds) break;
      for (const std::int32_t c : children_[at(s)]) largest.emplace(subtree_[at(c)], c);
    }
    return told_of_all(best);
  }

 private:
  using Largest = std::priority_queue<std::pair<double, std::int32_t>>;
  /// Where a supernode goes, or the subtree that it is the root of.
  struct Place {
    std::int32_t supernode;
    std::int32_t device;
    char shared = 0;
  };
  struct Dealt {
    std::vector<Place> roots;  ///< of subtrees that are dealt whole
    std::vector<Place> top;
    double seconds = 0;
  };

  [[nodiscard]] std::int64_t order_of(std::int32_t s) const {
    return a_.width(s) + a_.row_count(s);
  }

  [[nodiscard]] SubtreeDealing told_of_all(const Dealt& dealt) const {
    const std::size_t count = own_.size();
    SubtreeDealing all{std::vector<std::int32_t>(count, 0), std::vector<char>(count, 0),
                       std::vector<char>(count, 0), dealt.seconds};
    for (const Place& root : dealt.roots)
      std::fill(all.device.begin() + a_.branch[at(root.supernode)],
                all.device.begin() + root.supernode + 1, root.device);
    for (const Place& place : dealt.top) {
      all.device[at(place.supernode)] = place.device;
      all.top[at(place.supernode)] = 1;
      all.shared[at(place.supernode)] = place.shared;
    }
    return all;
  }

  /// Deals these subtrees, then follows the top, with as many shared fronts as is best; `best` ← if
  /// it is better.
  void evaluate(const Largest& largest, Dealt& best) {
    const std::vector<std::int32_t> roots = deal_roots(largest);
    std::vector<std::int32_t> by_work;  // of the top, what can be shared
    for (const std::int32_t s : top_)
      if (shares_ && order_of(s) > kSmallFront) by_work.push_back(s);
    std::sort(by_work.begin(), by_work.end(), [&](std::int32_t x, std::int32_t y) {
      return own_[at(x)] != own_[at(y)] ? own_[at(x)] > own_[at(y)] : x > y;
    });
    for (const std::int32_t s : top_) shared_[at(s)] = 0;
    std::size_t sharing = 0;
    for (;;) {
      if (const double seconds = follow_top(); seconds < best.seconds) {
        best.seconds = seconds;
        best.roots.clear();
        best.top.clear();
        for (const std::int32_t s : roots) best.roots.push_back({s, device_[at(s)]});
        for (const std::int32_t s : top_) best.top.push_back({s, device_[at(s)], shared_[at(s)]});
      }
      if (sharing == by_work.size()) return;
      for (const std::size_t next = std::min(sharing + sharing / 4 + 1, by_work.size());
           sharing < next; ++sharing)
        shared_[at(by_work[sharing])] = 1;
    }
  }

  /// Tells each root its device and when it is done; returns the roots.
  std::vector<std::int32_t> deal_roots(Largest largest) {
    busy_.assign(at(devices_), 0);
    double all = 0;
    for (Largest copy = largest; !copy.empty(); copy.pop()) all += copy.top().first;
    // Subtrees that are too small to matter stay with those beside them, so that both are one
    // launch.
    const double matters = all / devices_ / 64;
    std::vector<std::int32_t> roots;  // those that do
    for (; !largest.empty(); largest.pop()) {
      const auto [seconds, s] = largest.top();
      if (seconds < matters && !roots.empty()) break;
      const auto d = std::min_element(busy_.begin(), busy_.end()) - busy_.begin();
      busy_[at(d)] += seconds + (busy_[at(d)] > 0 ? times_.handover : 0);
      device_[at(s)] = static_cast<std::int32_t>(d);
      roots.push_back(s);
    }
    std::vector<std::int32_t> small;
    for (; !largest.empty(); largest.pop()) small.push_back(largest.top().second);
    std::sort(roots.begin(), roots.end());
    for (const std::int32_t s : small) {
      auto beside = std::lower_bound(roots.begin(), roots.end(), s);
      if (beside == roots.end()) --beside;
      device_[at(s)] = device_[at(*beside)];
      busy_[at(device_[at(s)])] += subtree_[at(s)];
    }
    roots.insert(roots.end(), small.begin(), small.end());
    for (const std::int32_t s : roots) {
      done_[at(s)] = busy_[at(device_[at(s)])];
      shared_[at(s)] = 0;
    }
    return roots;
  }

  /// When what a supernode needs of its children is there, on device d; −1: on all.
  [[nodiscard]] double given_at(std::int32_t s, std::int32_t d) const {
    double when = 0;
    for (const std::int32_t c : children_[at(s)]) {
      const double update =
          static_cast<double>(packed_elements(a_.row_count(c)) * bytes_of(Element::fp64));
      const bool travels = shared_[at(c)] == 0 && device_[at(c)] != d;  // else it is there
      when = std::max(when, done_[at(c)] + (travels ? update * times_.byte : 0));
    }
    return when;
  }

  /// Each supernode of the top to the device that is done with it first, or to all; returns when
  /// all are done.
  double follow_top() {
    std::vector<double> busy = busy_;
    for (const std::int32_t s : top_) {
      const auto width = static_cast<double>(a_.width(s));
      if (shared_[at(s)] != 0) {
        const double begin = std::max(*std::max_element(busy.begin(), busy.end()), given_at(s, -1));
        device_[at(s)] = 0;
        done_[at(s)] = begin + times_.handover + own_[at(s)] / devices_ +
                       (times_.column + times_.shared_column) * width;
        std::fill(busy.begin(), busy.end(), done_[at(s)]);
        continue;
      }
      double soonest = 0;
      for (std::int32_t d = 0; d < devices_; ++d) {
        const double end = std::max(busy[at(d)], given_at(s, d)) + times_.handover + own_[at(s)] +
                           times_.column * width;
        if (d > 0 && end >= soonest) continue;
        soonest = end;
        device_[at(s)] = d;
      }
      done_[at(s)] = busy[at(device_[at(s)])] = soonest;
    }
    return *std::max_element(busy.begin(), busy.end());
  }

  const SparseAnalysis& a_;
  int devices_;
  DealingTimes times_;
  bool shares_;
  std::vector<double> own_;      // seconds of each supernode
  std::vector<double> subtree_;  // and of all below it, too
  std::vector<std::vector<std::int32_t>> children_;
  std::vector<std::int32_t> top_;  // ascending
  std::vector<double> busy_;       // of each device, until when by its whole subtrees
  // State of roots and of the top while a dealing is evaluated:
  std::vector<std::int32_t> device_;
  std::vector<double> done_;
  std::vector<char> shared_;
};

}  // namespace

SubtreeDealing deal_subtrees(const SparseAnalysis& analysis, int devices, const DealingTimes& times,
                             bool shares) {
  require(devices >= 1, ErrorKind::misuse, "factor", "subtrees for {} devices", devices);
  return Dealer(analysis, devices, times, shares).deal();
}

}  // namespace strata
