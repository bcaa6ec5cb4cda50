#pragma once
// StepIssuer: the thread that puts the steps of one device into its queues, in the plan's order.
//
// Contract: windows are handed over in order; each issuer takes the steps of its device out of
// them, and runs ahead of the device by half a second of predicted work at most, so that a run that
// is given up ends soon. A step that waits for one of another device waits, here on the host, until
// that one has been recorded; one that moves a block may wait for a slot of a ring
// (pinned_ring.hpp). Steps wait only for steps before them in the plan, and what is in a queue
// never waits for the host: of all steps that are not issued yet the first can always be, so there
// is no deadlock. A failure ends the run (RunState::give_up), on all devices.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "run/block_mover.hpp"
#include "run/queue_log.hpp"
#include "run/run.hpp"

namespace strata {

/// What the threads of a run share.
struct RunState {
  RunState(const Plan& p, DeviceSet& d, BlockStore& s, const RunOptions& o)
      : plan(p),
        options(o),
        backend(d.backend()),
        tuning(d.tuning()),
        mover(d, s, p.layout().devices,
              [this](std::exception_ptr why) { give_up(std::move(why)); }) {}

  const Plan& plan;
  const RunOptions& options;
  const Backend& backend;
  const PotrfTuning& tuning;
  PivotStatus* pivots = nullptr;   ///< by block row, in memory that devices reach
  std::vector<std::byte*> arenas;  ///< by device
  std::deque<QueueLog> queues;     ///< by number in the plan; a deque: a log is never moved
  BlockMover mover;

  /// Ends the run: nobody waits or issues from now on. The first failure is kept.
  void give_up(std::exception_ptr why = nullptr) noexcept;
  [[nodiscard]] bool given_up() const noexcept { return given_up_.load(std::memory_order_acquire); }
  [[nodiscard]] std::exception_ptr failure() const;

 private:
  std::atomic<bool> given_up_ = false;
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
};

class StepIssuer {
 public:
  /// `state` outlives the issuer.
  StepIssuer(RunState& state, int device);
  StepIssuer(const StepIssuer&) = delete;
  StepIssuer& operator=(const StepIssuer&) = delete;
  /// Returns when all that was handed over has been issued, or the run was given up.
  ~StepIssuer();

  void hand_over(std::shared_ptr<const PlanWindow> window);

 private:
  void work();
  void issue(const PlanWindow& window);
  void issue(const PlanWindow& window, const Step& step);
  void copy_from_peer(Queue& queue, const Step& step);
  void compute(Queue& queue, const Step& step);
  /// Waits until a task of so many seconds may join those that are under way.
  void make_room(double seconds);
  [[nodiscard]] double seconds_of(const Task& task) const;
  [[nodiscard]] std::byte* slot_address(std::size_t device, int family, std::int32_t slot) const;
  [[nodiscard]] std::byte* slot_of(const Step& step, BlockId id, int operand) const;

  RunState& state_;
  const PlanLayout& layout_;
  std::uint16_t first_queue_;  // the device's own are this one …
  std::uint16_t end_queue_;    // … up to this one
  /// Tasks that were issued and may not be done, in that order, and their predicted seconds.
  std::deque<std::pair<std::shared_ptr<const Event>, double>> under_way_;
  double under_way_seconds_ = 0;
  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const PlanWindow>> windows_;
  bool closed_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace strata
