#include "session/session.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "session/policy.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

/// A cycle of a Krylov method has some dozens of blocks, each with a plan of its own.
constexpr std::size_t kPlansKept = 32;

/// Whether blocks come from the same sources: a prediction for one home then serves for the other.
/// What is page-locked by now is a matter of milliseconds; a source, of a whole load.
bool predicts_alike(const HomeModel& a, const HomeModel& b) {
  return std::equal(a.families.begin(), a.families.end(), b.families.begin(), b.families.end(),
                    [](const FamilyHome& one, const FamilyHome& other) {
                      return one.from_source == other.from_source;
                    });
}

}  // namespace

Session::Session(const RunOptions& options)
    : Session(std::make_shared<DeviceSet>(options), options) {}

Session::Session(std::shared_ptr<DeviceSet> devices, const RunOptions& options)
    : devices_(std::move(devices)), policy_(options.policy) {}

void Session::adopt(PlannedRun planned) {
  plans_.clear();
  planned.let_go_of_trace();
  adopted_ = std::move(planned);
}

void Session::reserve(std::span<const Schedule> widest,
                      const std::function<std::int64_t(std::int64_t)>& beside) {
  std::vector<std::int64_t> bytes(machine().devices.size());
  for (const Schedule& schedule : widest) {
    const Plan plan(std::make_shared<const Schedule>(schedule), machine(), options_of(policy_));
    for (std::size_t d = 0; d < static_cast<std::size_t>(schedule.devices); ++d) {
      const std::int64_t arena = plan.layout().device(d).arena_bytes;
      bytes[d] = std::max(bytes[d], arena + (beside ? beside(arena) : 0));
    }
  }
  for (std::size_t d = 0; d < bytes.size(); ++d)
    (void)devices_->arena(static_cast<int>(d),
                          std::min(machine().devices[d].memory_bytes, bytes[d]));
}

void Session::reserve_beside_adopted(std::int64_t bytes) {
  const std::vector<DeviceLayout>& layouts = adopted_->plan->layout().devices;
  for (std::size_t d = 0; d < static_cast<std::size_t>(adopted_->plan->schedule().devices); ++d)
    (void)devices_->arena(static_cast<int>(d), std::min(machine().devices[d].memory_bytes,
                                                        layouts[d].arena_bytes + bytes));
}

/// Null if there is none from what is on the devices.
const PlannedRun* Session::kept_plan(const SessionRun& wanted) {
  const auto serves = [&](const PlannedRun& kept) {
    const Residency& now = devices_->residency();
    const Residency& start = kept.plan->start();
    return (start == now || (start.empty() && now.empty())) &&
           (devices_->all_on_host() || predicts_alike(kept.plan->options().homes, wanted.homes)) &&
           (kept.plan->shared_schedule() == wanted.schedule ||
            same_work(kept.plan->schedule(), *wanted.schedule));
  };
  if (is_adopted(wanted) && serves(*adopted_)) return &*adopted_;
  const auto found = std::find_if(plans_.begin(), plans_.end(), serves);
  if (found == plans_.end()) return nullptr;
  plans_.splice(plans_.begin(), plans_, found);  // the others' places say which is to go
  return &plans_.front();
}

/// Adds the seconds that it takes to the figures of the run.
const PlannedRun& Session::plan_of(SessionRun& wanted) {
  const auto begin = std::chrono::steady_clock::now();
  const PlannedRun* planned = kept_plan(wanted);
  if (planned == nullptr && wanted.narrower) {
    SessionRun narrower = wanted;
    narrower.schedule = wanted.narrower;
    planned = kept_plan(narrower);
  }
  if (planned == nullptr) {
    const bool known = is_adopted(wanted);
    PlanOptions options = known ? adopted_->plan->options() : options_of(policy_);
    options.homes = wanted.homes;
    try {
      plans_.push_front(make_planned_run(wanted.schedule, machine(), options,
                                         known ? adopted_->policy : to_string(policy_),
                                         devices_->residency()));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::memory || !(wanted.narrower || only_here())) throw;
      wanted.figures.seconds += seconds_since(begin);
      if (wanted.narrower)
        wanted.schedule = std::exchange(wanted.narrower, nullptr);
      else
        fetch(wanted.figures);
      return plan_of(wanted);
    }
    ++plans_made_;
    if (plans_.size() > kPlansKept) plans_.pop_back();
    planned = &plans_.front();
    plans_.front().let_go_of_trace();
  }
  wanted.figures.seconds += seconds_since(begin);
  return *planned;
}

const RunReport& Session::run(SessionRun wanted, BlockStore& store, const IssueOptions& options) {
  if (is_adopted(wanted)) wanted.figures = *adopted_;
  const PlannedRun& planned = plan_of(wanted);
  if (wanted.figures.policy.empty()) wanted.figures.policy = planned.policy;
  wanted.figures.predicted_seconds = planned.predicted_seconds;
  last_ = std::move(wanted);
  return follow(*planned.plan, last_.figures, store, options);
}

const RunReport& Session::follow(const Plan& plan, const RunFigures& figures, BlockStore& store,
                                 const IssueOptions& options) {
  (void)report();  // adds the one before
  last_report_ = make_report(plan, figures, strata::run(plan, *devices_, store, options).trace);
  return *last_report_;
}

bool Session::only_here() const {
  if (last_.schedule == nullptr) return false;
  const BlockTable& blocks = last_.schedule->blocks;
  for (int f = 0; f < blocks.families(); ++f) {
    if (blocks.family(f).stays && devices_->residency().only_here(blocks.family(f).identity))
      return true;
  }
  return false;
}

/// For a run with these figures. No task, and nothing stays: what is only on the devices is stored,
/// out of slots of the sizes that the last run had, in which all of its blocks have a say.
void Session::fetch(const RunFigures& figures) {
  if (!only_here()) return;
  Schedule nothing = *last_.schedule;
  nothing.steps = 0;
  for (int f = 0; f < nothing.blocks.families(); ++f)
    if (nothing.blocks.family(f).stays)
      nothing.blocks.keep(f, nothing.blocks.family(f).identity, false);
  PlannedRun planned = make_planned_run(std::make_shared<const Schedule>(std::move(nothing)),
                                        machine(), policy_, devices_->residency());
  planned.n = figures.n;
  planned.tile = figures.tile;
  planned.host_bytes = figures.host_bytes;
  IssueOptions options;
  options.what = "fetch";
  const auto store = home_(planned.plan->schedule().blocks);
  (void)follow(*planned.plan, planned, *store, options);
}

RunReport& Session::report() {
  if (last_report_) accumulate_with_trace(sum_, *std::exchange(last_report_, {}));
  return sum_;
}

}  // namespace strata
