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
#include "schedule/machine_model.hpp"

namespace strata {

/// What the threads of a run share.
struct RunState {
  RunState(const Plan& p, DeviceSet& d, BlockStore& s, const IssueOptions& o)
      : plan(p),
        options(o),
        devices(d),
        mover(
            d, s, p.layout(), [this](std::exception_ptr why) { give_up(std::move(why)); },
            [this] { return given_up() || queue_failed(); }) {}

  const Plan& plan;
  const IssueOptions& options;
  const DeviceSet& devices;
  std::vector<std::byte*> arenas;  ///< by device
  std::deque<QueueLog> queues;     ///< by number in the plan; a deque: a log is never moved
  BlockMover mover;

  /// The backend of a device; host memory between storage and the devices has that of the host.
  [[nodiscard]] const Backend& backend(int place) const {
    return place == plan.layout().host ? host_backend() : devices.backend(place);
  }

  /// Ends the run: no thread waits or issues from now on. The first failure is kept, unless a queue
  /// had failed before: then that is the first, and this may have come of it.
  void give_up(std::exception_ptr why = nullptr) noexcept;
  [[nodiscard]] bool given_up() const noexcept { return given_up_.load(std::memory_order_acquire); }
  [[nodiscard]] std::exception_ptr failure() const;
  /// Whether work of any queue has failed.
  [[nodiscard]] bool queue_failed() const;

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
  void wait_for(Queue& queue, const Wait& wait);
  void copy(Queue& queue, const PlanWindow& window, const Step& step);
  void compute(Queue& queue, const PlanWindow& window, const Step& step);
  /// Waits until a task of so many seconds may join those that are under way.
  void make_room(double seconds);
  [[nodiscard]] double seconds_of(const PlanWindow& window, const Step& step);
  [[nodiscard]] std::byte* address(std::size_t device, std::int32_t slot) const;

  /// A kernel with the values of the run, found once.
  struct Kernel {
    const Operation* operation;
    Elements elements;
    KernelFunction function;
    const void* values;
  };
  [[nodiscard]] const Kernel& kernel_of(const PlanWindow& window, const Step& step);

  RunState& state_;
  const PlanLayout& layout_;
  const int device_;
  const Backend& backend_;
  KernelClock clock_;
  std::vector<Kernel> kernels_;
  std::vector<BlockView> views_;  // of the step that is issued
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
