#pragma once
// Session: the devices of a solver, what lies on them from run to run, and the runs themselves.
//
// Contract: a run follows a plan that starts from what the one before left on the devices. Plans
// are kept, and serve again where the same tasks are to be done from the same residency. Where
// blocks that are only on the devices leave no place for a plan, they go home first. Reports are
// added up, each with the bytes that its plan says and those that were moved. A session knows no
// algorithm and no kind of store or device. Several may share devices if only one at a time leaves
// blocks that are nowhere else. Not thread-safe.

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "run/run.hpp"
#include "session/planned_run.hpp"
#include "store/block_store.hpp"

namespace strata {

/// A schedule that is to be run.
struct SessionRun {
  std::shared_ptr<const Schedule> schedule;
  /// What the report says beside the plan; `policy` and the prediction may be left out. Those of
  /// Session::adopted() are known.
  RunFigures figures{};
  HomeModel homes{};  ///< for the prediction
  /// The same work with fewer blocks at a time, for where there is no place for the schedule's.
  std::shared_ptr<const Schedule> narrower{};
};

class Session {
 public:
  explicit Session(const RunOptions& options);
  /// On these devices; of the options only the policy is read.
  Session(std::shared_ptr<DeviceSet> devices, const RunOptions& options);

  [[nodiscard]] DeviceSet& devices() const noexcept { return *devices_; }
  /// For a family whose blocks are to be known from plan to plan.
  [[nodiscard]] std::uint64_t new_identity() const noexcept { return devices_->new_identity(); }
  /// By which runs are planned: that of the devices, or of the plan that was adopted.
  [[nodiscard]] const Machine& machine() const noexcept {
    return adopted_ ? adopted_->plan->machine() : devices_->machine();
  }

  /// Takes a plan from empty devices that was chosen elsewhere, and forgets all others. It is kept
  /// until the next, its machine is that of all later plans, and its options are those of later
  /// plans of its schedule.
  void adopt(PlannedRun planned);
  [[nodiscard]] const PlannedRun& adopted() const noexcept { return *adopted_; }
  /// Says where blocks that stay on the devices rest when they have to come home: makes a store for
  /// the blocks of a schedule that was run, to which only families that stay are written.
  void set_home(std::function<std::unique_ptr<BlockStore>(const BlockTable&)> home) {
    home_ = std::move(home);
  }

  /// Memory on the devices, as far as their budgets go: what lies there is lost when it grows. As
  /// much as the widest of these schedules needs, and what `beside` makes of that;
  void reserve(std::span<const Schedule> widest,
               const std::function<std::int64_t(std::int64_t)>& beside = {});
  /// as the adopted plan needs, and `bytes` beside it.
  void reserve_beside_adopted(std::int64_t bytes);

  /// Plans and runs. The report is that of this run alone, until the session is used again. Throws
  /// as Plan and run() do; a run that fails takes along what was only on the devices.
  const RunReport& run(SessionRun wanted, BlockStore& store, const IssueOptions& options = {});

  /// Whether blocks that the last run had are only on the devices.
  [[nodiscard]] bool only_here() const;
  /// Brings them home, by a run of its own.
  void fetch() { fetch(last_.figures); }

  /// Plans that were made to be run, as opposed to those that served again.
  [[nodiscard]] std::int64_t plans_made() const noexcept { return plans_made_; }
  /// The sum of the reports of all runs since it was taken, their traces one behind the other.
  [[nodiscard]] RunReport& report();
  [[nodiscard]] RunReport take_report() { return std::exchange(report(), {}); }

 private:
  [[nodiscard]] bool is_adopted(const SessionRun& wanted) const noexcept {
    return adopted_ && adopted_->plan->shared_schedule() == wanted.schedule;
  }
  [[nodiscard]] const PlannedRun* kept_plan(const SessionRun& wanted);
  [[nodiscard]] const PlannedRun& plan_of(SessionRun& wanted);
  void fetch(const RunFigures& figures);
  const RunReport& follow(const Plan& plan, const RunFigures& figures, BlockStore& store,
                          const IssueOptions& options);

  std::shared_ptr<DeviceSet> devices_;
  Policy policy_;
  std::function<std::unique_ptr<BlockStore>(const BlockTable&)> home_;
  std::optional<PlannedRun> adopted_;
  std::list<PlannedRun> plans_;  ///< the one that was used last comes first
  std::int64_t plans_made_ = 0;
  SessionRun last_;                       ///< the run that was made last
  std::optional<RunReport> last_report_;  ///< not yet in …
  RunReport sum_;
};

}  // namespace strata
