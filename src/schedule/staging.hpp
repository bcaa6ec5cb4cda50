#pragma once
// StagingClock: the host's part of copies in simulate(): threads that issue steps, bounce buffers,
// and the page-locking of homes beside the run.
//
// Contract: each device has a thread that issues its steps in the plan's order. That takes no time,
// but for a load that is staged: the thread waits for a free bounce buffer, fills it at the staging
// rate, and so on part by part; the copy may begin when the first part is filled. A store that is
// staged waits for free bounce buffers on their way out; each is emptied at the staging rate behind
// its copy, one after the other. A load or store of a block that is on its way home, and whatever
// waits for a step of another device that is not issued yet, holds up what is issued after it.
// Who asks tells the time, which never goes back. Pure arithmetic.

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "schedule/plan.hpp"

namespace strata {

class StagingClock {
 public:
  /// Whether any copy of the plan could be staged: else there is nothing here to ask.
  [[nodiscard]] static bool is_needed(const Plan& plan);

  /// `plan` outlives the clock.
  explicit StagingClock(const Plan& plan);

  /// The next step of the plan; its window stays as it is until the step is done.
  void hand_over(const PlanWindow& window, const Step& step) {
    issuers_[step.device].steps.push_back({&window, &step});
  }
  /// Issues what can be, as of `now`.
  void issue(double now);
  /// Whether a step may begin: it was issued, or the first part of its copy was.
  [[nodiscard]] bool may_begin(const Step& step) const {
    return begun_[step.queue] >= step.sequence;
  }

  /// When something happens here next; infinite: only what others do makes it go on.
  [[nodiscard]] double next() const;
  /// What happens here by `now`, and what is issued then.
  void advance(double now);

  /// Whether a copy that may begin goes through bounce buffers: then it is made in parts.
  [[nodiscard]] bool is_staged(int queue, std::uint64_t sequence) const {
    const std::deque<Copy>& copies = copies_[static_cast<std::size_t>(queue)];
    return !copies.empty() && copies.front().sequence == sequence;
  }
  /// The bytes of the next part of the staged copy that its queue is at; 0: it is not ready.
  [[nodiscard]] std::int64_t part_bytes(int queue) const;
  /// That part has been copied. Whether it was the last.
  bool part_copied(int queue, double now);

  /// Calls visit(queue) for the queues that may go on since this was last called.
  template <class F>
  void for_each_touched(F&& visit) {
    for (std::size_t i = 0; i < touched_.size(); ++i) visit(touched_[i]);
    touched_.clear();
  }

 private:
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  /// A staged copy, from when its first part is issued until its last is copied.
  struct Copy {
    std::uint64_t sequence = 0;
    std::int64_t bytes = 0;
    std::int64_t ready = 0;   // parts: filled, or with a buffer to be copied into
    std::int64_t copied = 0;  // parts
    bool load = false;
  };
  /// A bounce buffer on its way home.
  struct Parcel {
    int queue = 0;
    std::int64_t bytes = 0;
    std::int64_t block = 0;
    bool last = false;  // of its block
    bool copied = false;
  };
  struct Item {
    const PlanWindow* window = nullptr;
    const Step* step = nullptr;
  };
  /// The thread that issues the steps of a device, and its bounce buffers.
  struct Issuer {
    std::deque<Item> steps;  // that are not issued
    bool amid = false;       // the first of them is, in part
    bool stages = false;
    LinkRate rate;
    std::int64_t part_bytes = 1;
    int free_in = 0;
    int free_out = 0;
    double filled_at = kForever;  // the buffer that is being filled
    std::deque<Parcel> parcels;   // in the order in which they are emptied
    double emptied_at = kForever;
  };
  /// When the home of a family is page-locked.
  struct Pinning {
    bool from_source = false;
    std::int64_t begun_bytes = 0;  // that are page-locked in the beginning
    double piece_seconds = 0;      // 0: nothing is page-locked beside the run
    double all_seconds = 0;        // then all of it is
  };

  [[nodiscard]] static Pinning pinning_of(const Plan& plan, int family);
  [[nodiscard]] static bool stages(const Pinning& pinning, std::int64_t bytes);

  bool issue_of(std::size_t device, double now);
  [[nodiscard]] bool is_held_up(const Item& item) const;
  [[nodiscard]] bool is_staged_at(const Issuer& issuer, const Item& item, double now) const;
  bool issue_parts(Issuer& issuer, double now);
  bool part_filled(Issuer& issuer);
  bool part_emptied(Issuer& issuer, double now);
  void begin_emptying(Issuer& issuer, double now);
  void issued(Issuer& issuer, const Step& step);
  void may_begin_now(const Step& step);
  [[nodiscard]] std::int64_t parts_of(const Issuer& issuer, const Copy& copy) const {
    return (copy.bytes + issuer.part_bytes - 1) / issuer.part_bytes;
  }
  [[nodiscard]] std::int64_t bytes_of_part(const Issuer& issuer, const Copy& copy,
                                           std::int64_t part) const {
    return std::min(issuer.part_bytes, copy.bytes - part * issuer.part_bytes);
  }

  const BlockTable& blocks_;
  const PlanLayout& layout_;
  std::vector<Issuer> issuers_;           // by device
  std::vector<Pinning> pinning_;          // by family
  std::vector<std::uint64_t> begun_;      // by queue: steps that may begin
  std::vector<std::uint64_t> issued_;     // by queue: steps that are issued, with all their parts
  std::vector<std::deque<Copy>> copies_;  // by queue
  std::vector<std::uint8_t> state_;       // by block
  std::vector<int> touched_;
};

}  // namespace strata
