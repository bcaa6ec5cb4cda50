// simulate(): a plan on a clock model.
//
// Method: discrete events. Each queue runs its steps in order; a step starts when its waits are
// met. A transfer takes its link's time. A kernel takes a share of its device's rate; kernels that
// run at once on one device are all slowed by max(1, sum of the shares). The share is what was
// measured among GEMMs, not flops over time: a triangular solve of order 2048 reaches 18 % of an
// H200's rate alone, but beside GEMMs it takes nearly the whole card for as long as it would take
// alone (with the flops' share the prediction of a whole run was 16 % short).

#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "schedule/machine_model.hpp"
#include "schedule/plan.hpp"

namespace strata {
namespace {

struct Pending {
  Step step;
  std::vector<Wait> waits;
  std::int64_t number = 0;  // in the plan
  Span span;
};

struct QueueState {
  std::deque<Pending> pending;
  bool busy = false;
  double remaining = 0;  // seconds alone
  double share = 0;      // of the device's rate
  double begin = 0;
  std::uint64_t done = 0;
};

class Simulator {
 public:
  explicit Simulator(const Plan& plan)
      : plan_(plan), reader_(plan), queues_(static_cast<std::size_t>(plan.layout().queues())) {
    trace_.queues = trace_queues(plan);
  }

  Trace run() {
    while (refill() || busy_ > 0 || in_flight_ > 0) {
      start_ready_steps();
      finish_earliest_step();
    }
    trace_.seconds = now_;
    return std::move(trace_);
  }

 private:
  /// Reads windows as run() does: a few are in flight at once.
  bool refill() {
    while (in_flight_ < kWindowsInFlight * kWindowStepsTypical && reader_.next(window_)) {
      for (const Step& step : window_.steps) {
        Pending pending;
        pending.step = step;
        const auto begin = window_.waits.begin() + step.wait_begin;
        pending.waits.assign(begin, begin + step.wait_count);
        pending.number = read_++;
        pending.span = span_of(plan_.schedule().blocks, step);
        queues_[step.queue].pending.push_back(std::move(pending));
        ++in_flight_;
      }
    }
    return in_flight_ > 0;
  }

  void start_ready_steps() {
    for (QueueState& queue : queues_) {
      if (queue.busy || queue.pending.empty()) continue;
      const Pending& next = queue.pending.front();
      const bool ready = std::all_of(next.waits.begin(), next.waits.end(), [&](const Wait& wait) {
        return queues_[wait.queue].done >= wait.sequence;
      });
      if (!ready) continue;
      queue.busy = true;
      queue.begin = now_;
      set_cost(queue, next.step);
      ++busy_;
    }
  }

  void set_cost(QueueState& queue, const Step& step) const {
    const BlockTable& blocks = plan_.schedule().blocks;
    const DeviceModel& device = plan_.machine().devices[step.task.device];
    queue.share = 0;
    if (step.kind == StepKind::load) {
      queue.remaining = transfer_seconds(device.host_to_device, blocks.bytes(step.task.out));
    } else if (step.kind == StepKind::store) {
      queue.remaining = transfer_seconds(device.device_to_host, blocks.bytes(step.task.out));
    } else if (step.kind == StepKind::peer) {
      queue.remaining =
          transfer_seconds(plan_.machine().device_to_device, blocks.bytes(step.task.out));
    } else {
      const Precision precision = blocks.family(step.task.out.family()).precision;
      const double flops = flops_of(blocks, step.task);
      queue.remaining = kernel_seconds(device, step.task.operation, precision, flops);
      queue.share = kernel_share(device, step.task.operation, precision, flops);
    }
  }

  /// How much slower the kernels of a device run now than alone, but for an urgent one, which runs
  /// as if alone and leaves the others what it does not take.
  [[nodiscard]] double slowdown(int device) const {
    const PlanLayout& layout = plan_.layout();
    const int first = layout.queue(device, 0);
    double share = 0;
    double urgent = 0;
    for (int q = first; q < first + layout.queues_per_device(); ++q) {
      const QueueState& queue = queues_[static_cast<std::size_t>(q)];
      if (queue.busy) (is_urgent(q) ? urgent : share) += queue.share;
    }
    return std::max(1.0, share / std::max(1.0 - urgent, kLeftByUrgentMin));
  }
  [[nodiscard]] bool is_urgent(int queue) const {
    const PlanLayout& layout = plan_.layout();
    return layout.urgent && queue % layout.queues_per_device() == layout.urgent_compute();
  }

  void finish_earliest_step() {
    if (busy_ == 0) return;
    slow_.resize(static_cast<std::size_t>(plan_.layout().devices));
    for (int d = 0; d < plan_.layout().devices; ++d)
      slow_[static_cast<std::size_t>(d)] = slowdown(d);
    const auto factor = [&](std::size_t q) {
      const auto device = q / static_cast<std::size_t>(plan_.layout().queues_per_device());
      // A transfer has no share.
      return queues_[q].share > 0 && !is_urgent(static_cast<int>(q)) ? slow_[device] : 1.0;
    };
    factors_.resize(queues_.size());
    double elapsed = std::numeric_limits<double>::infinity();
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      if (!queues_[q].busy) continue;
      factors_[q] = factor(q);
      elapsed = std::min(elapsed, queues_[q].remaining * factors_[q]);
    }
    now_ += elapsed;
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      QueueState& queue = queues_[q];
      if (!queue.busy) continue;
      queue.remaining -= elapsed / factors_[q];
      if (queue.remaining <= 1e-12) finish(queue);
    }
  }

  void finish(QueueState& queue) {
    Pending& pending = queue.pending.front();
    pending.span.begin = queue.begin;
    pending.span.end = now_;
    finished_.emplace(pending.number, pending.span);
    // Spans go into the trace in the order of the plan, as run() puts them there.
    for (auto next = finished_.begin(); next != finished_.end() && next->first == noted_;
         ++noted_) {
      trace_.add(next->second);
      next = finished_.erase(next);
    }
    queue.done = pending.step.sequence;
    queue.busy = false;
    queue.pending.pop_front();
    --busy_;
    --in_flight_;
  }

  static constexpr double kLeftByUrgentMin = 1e-6;  // of a device, so that nothing divides by zero
  static constexpr std::int64_t kWindowsInFlight = 3;
  static constexpr std::int64_t kWindowStepsTypical = 512;

  const Plan& plan_;
  PlanReader reader_;
  PlanWindow window_;
  std::vector<QueueState> queues_;
  std::vector<double> slow_;               // by device
  std::vector<double> factors_;            // by queue
  std::map<std::int64_t, Span> finished_;  // not yet in the trace
  Trace trace_;
  std::int64_t read_ = 0;
  std::int64_t noted_ = 0;
  std::int64_t in_flight_ = 0;
  int busy_ = 0;
  double now_ = 0;
};

}  // namespace

Trace simulate(const Plan& plan) { return Simulator(plan).run(); }

}  // namespace strata
