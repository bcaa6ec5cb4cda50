#include "sparse/subtree_dealing.hpp"

#include <algorithm>
#include <queue>
#include <utility>

#include "base/check.hpp"
#include "kernels/front_program.hpp"
#include "sparse/pattern.hpp"

namespace strata {
namespace {

class Dealer {
 public:
  Dealer(const SparseAnalysis& analysis, int devices, const DealingTimes& times)
      : a_(analysis), devices_(devices), times_(times) {
    const std::int32_t count = a_.supernodes();
    own_.resize(at(count));
    subtree_.resize(at(count));
    children_.resize(at(count));
    for (std::int32_t s = 0; s < count; ++s) {
      const auto order = static_cast<double>(a_.width(s) + a_.row_count(s));
      own_[at(s)] =
          a_.flops(s) * times_.flop + order * order / 2 * times_.element + times_.supernode;
      subtree_[at(s)] += own_[at(s)];
      if (a_.parent[at(s)] < 0) continue;
      subtree_[at(a_.parent[at(s)])] += subtree_[at(s)];
      children_[at(a_.parent[at(s)])].push_back(s);
    }
  }

  SubtreeDealing deal() {
    SubtreeDealing best = all_on_one();
    if (devices_ == 1) return best;
    std::priority_queue<std::pair<double, std::int32_t>> largest;
    for (std::int32_t s = 0; s < a_.supernodes(); ++s)
      if (a_.parent[at(s)] < 0) largest.emplace(subtree_[at(s)], s);
    top_.assign(at(a_.supernodes()), 0);
    double in_top = 0;
    // More subtrees than these are no easier to deal evenly, and each is a launch.
    constexpr int kSubtreesEach = 64;
    for (int splits = 0; splits < kSubtreesEach * devices_ && !largest.empty(); ++splits) {
      SubtreeDealing next = evaluate(largest);
      if (next.seconds < best.seconds) best = std::move(next);
      const std::int32_t s = largest.top().second;
      largest.pop();
      top_[at(s)] = 1;
      in_top += own_[at(s)];
      // The rest of the work can be divided by the devices at best.
      if (in_top / devices_ > best.seconds) break;
      for (const std::int32_t c : children_[at(s)]) largest.emplace(subtree_[at(c)], c);
    }
    return best;
  }

 private:
  [[nodiscard]] SubtreeDealing all_on_one() const {
    SubtreeDealing dealing{std::vector<std::int32_t>(own_.size(), 0),
                           std::vector<char>(own_.size(), 0), 0};
    for (std::int32_t s = 0; s < a_.supernodes(); ++s)
      if (a_.parent[at(s)] < 0) dealing.seconds += subtree_[at(s)];
    return dealing;
  }

  /// Deals these subtrees, then follows the top.
  [[nodiscard]] SubtreeDealing evaluate(
      std::priority_queue<std::pair<double, std::int32_t>> largest) const {
    SubtreeDealing dealing{std::vector<std::int32_t>(own_.size(), -1), top_, 0};
    std::vector<double> busy(at(devices_));  // until when
    double all = 0;
    for (auto copy = largest; !copy.empty(); copy.pop()) all += copy.top().first;
    // Subtrees that are too small to matter stay with those beside them, so that both are one
    // launch.
    const double matters = all / devices_ / 64;
    std::vector<std::int32_t> root;  // of the others
    for (; !largest.empty(); largest.pop()) {
      const auto [seconds, s] = largest.top();
      if (seconds < matters && !root.empty()) break;
      const auto d = std::min_element(busy.begin(), busy.end()) - busy.begin();
      busy[at(d)] += seconds + (busy[at(d)] > 0 ? times_.handover : 0);
      mark_subtree(s, static_cast<std::int32_t>(d), dealing);
      root.push_back(s);
    }
    std::vector<std::int32_t> small;
    for (; !largest.empty(); largest.pop()) small.push_back(largest.top().second);
    std::sort(root.begin(), root.end());
    for (const std::int32_t s : small) {
      auto beside = std::lower_bound(root.begin(), root.end(), s);
      if (beside == root.end()) --beside;
      const std::int32_t d = dealing.device[at(*beside)];
      busy[at(d)] += subtree_[at(s)];
      mark_subtree(s, d, dealing);
    }
    follow_top(dealing, busy);
    return dealing;
  }

  void mark_subtree(std::int32_t s, std::int32_t device, SubtreeDealing& dealing) const {
    std::fill(dealing.device.begin() + a_.branch[at(s)], dealing.device.begin() + s + 1, device);
  }

  /// Each supernode of the top to the device that is done with it first.
  void follow_top(SubtreeDealing& dealing, std::vector<double> busy) const {
    std::vector<double> done(own_.size(), 0);
    const std::vector<double> dealt = busy;
    for (std::int32_t s = 0; s < a_.supernodes(); ++s) {
      if (top_[at(s)] == 0) {
        done[at(s)] = dealt[at(dealing.device[at(s)])];
        continue;
      }
      double soonest = 0;
      for (int d = 0; d < devices_; ++d) {
        double begin = busy[at(d)];
        for (const std::int32_t c : children_[at(s)]) {
          const double update =
              static_cast<double>(packed_elements(a_.row_count(c)) * bytes_of(Element::fp64));
          const bool travels = dealing.device[at(c)] != d;
          begin = std::max(begin, done[at(c)] + (travels ? update * times_.byte : 0));
        }
        const double end = begin + times_.handover + own_[at(s)] +
                           times_.column * static_cast<double>(a_.width(s));
        if (dealing.device[at(s)] >= 0 && end >= soonest) continue;
        soonest = end;
        dealing.device[at(s)] = d;
      }
      done[at(s)] = busy[at(dealing.device[at(s)])] = soonest;
    }
    dealing.seconds = *std::max_element(busy.begin(), busy.end());
  }

  const SparseAnalysis& a_;
  int devices_;
  DealingTimes times_;
  std::vector<double> own_;      // seconds of each supernode
  std::vector<double> subtree_;  // and of all below it, too
  std::vector<std::vector<std::int32_t>> children_;
  std::vector<char> top_;
};

}  // namespace

SubtreeDealing deal_subtrees(const SparseAnalysis& analysis, int devices,
                             const DealingTimes& times) {
  require(devices >= 1, ErrorKind::misuse, "factor", "subtrees for {} devices", devices);
  return Dealer(analysis, devices, times).deal();
}

}  // namespace strata
