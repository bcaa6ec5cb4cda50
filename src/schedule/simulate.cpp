// simulate(): a plan on a clock model.
//
// Method: discrete events. Each queue runs its steps in order; a step starts when its waits are
// met. A transfer takes its link's time. A kernel takes a share of its device's rate; kernels that
// run at once on one device are all slowed by max(1, sum of the shares). The share is what was
// measured among GEMMs, not flops over time. A triangular solve of order 2048 reaches 18 % of an
// H200's rate alone, but beside GEMMs it takes nearly the whole card for as long as it would take
// alone. (With the flops' share the prediction of a whole run was 16 % short.) Kernels that share a
// device are all slowed alike, so each device has a clock of its own that runs slower by as much:
// on it a kernel ends when its isolated time has passed, whatever comes and goes beside it.
//
// Where copies may be staged through bounce buffers, a step starts no earlier than it is issued,
// and a staged copy is made in parts, each when it is ready (StagingClock, with what it leaves
// out); a block takes the latency of the link once. Else issuing takes no time and is not looked
// at. Left out in both: run() issues half a second of kernels ahead at most.

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <optional>

#include "schedule/machine_model.hpp"
#include "schedule/plan.hpp"
#include "schedule/staging.hpp"

namespace strata {
namespace {

constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kLeftByUrgentMin = 1e-6;  // of a device, so that nothing divides by zero
/// Steps that are read ahead, as run() does: a few windows.
constexpr std::int64_t kStepsInFlight = 3 * 512;

/// A window of the plan, until all of its steps are done.
struct Flight {
  PlanWindow window;
  std::size_t left = 0;
};

struct Pending {
  const Step* step = nullptr;
  Flight* flight = nullptr;
  std::int64_t number = 0;  // in the plan
};

struct QueueState {
  std::deque<Pending> pending;
  std::vector<int> waiters;  // queues whose first step waits for a later step of this one
  std::uint64_t done = 0;
  std::uint32_t waits_met = 0;  // of the first step
  bool blocked = false;
  bool busy = false;
  bool shares = false;  // a kernel that is slowed by those beside it
  double share = 0;     // of the device's rate
  double begin = 0;
  double end_on_device_clock = 0;
};

struct DeviceState {
  double clock = 0;  // the device's own, as of `updated`
  double updated = 0;
  double slowdown = 1;
  double share = 0;
  double urgent_share = 0;
  std::vector<int> running;  // queues of kernels that share the device
};

class Simulator {
 public:
  Simulator(const Plan& plan, PlanReader& reader)
      : plan_(plan),
        blocks_(plan.schedule().blocks),
        layout_(plan.layout()),
        reader_(reader),
        kernels_(plan.machine()),
        trace_(empty_trace(plan)),
        spans_(trace_),
        queues_(layout_.queues.size()),
        devices_(layout_.devices.size()),
        ends_(layout_.queues.size(), kForever),
        device_ends_(layout_.devices.size(), kForever) {
    if (StagingClock::is_needed(plan)) staging_.emplace(plan);
  }

  Trace run() {
    refill();
    while (busy_ > 0 || (staging_ && staging_->next() < kForever)) {
      finish_earliest();
      refill();
    }
    trace_.seconds = now_;
    return std::move(trace_);
  }

 private:
  void refill() {
    while (!ended_ && in_flight_ < kStepsInFlight) {
      std::unique_ptr<Flight> flight = idle_.empty() ? std::make_unique<Flight>() : take_idle();
      ended_ = !reader_.next(flight->window);
      if (ended_) return;
      flight->left = flight->window.steps.size();
      for (const Step& step : flight->window.steps) {
        queues_[step.queue].pending.push_back({&step, flight.get(), read_++});
        if (staging_) staging_->hand_over(flight->window, step);
        finished_.emplace_back();
        finished_.back().queue = kUnfinished;
      }
      in_flight_ += std::ssize(flight->window.steps);
      flights_.push_back(std::move(flight));
      if (staging_) {
        staging_->issue(now_);
        go_on();
      }
      for (std::size_t q = 0; q < queues_.size(); ++q) try_start(static_cast<int>(q));
    }
  }

  std::unique_ptr<Flight> take_idle() {
    std::unique_ptr<Flight> flight = std::move(idle_.back());
    idle_.pop_back();
    return flight;
  }

  void try_start(int q) {
    QueueState& queue = queues_[at(q)];
    if (queue.busy || queue.blocked || queue.pending.empty()) return;
    const Pending& next = queue.pending.front();
    if (staging_ && !staging_->may_begin(*next.step)) return;
    const std::span<const Wait> waits = next.flight->window.waits_of(*next.step);
    for (; queue.waits_met < waits.size(); ++queue.waits_met) {
      const Wait& wait = waits[queue.waits_met];
      if (queues_[wait.queue].done >= wait.sequence) continue;
      queues_[wait.queue].waiters.push_back(q);
      queue.blocked = true;
      return;
    }
    queue.waits_met = 0;
    queue.busy = true;
    queue.begin = now_;
    ++busy_;
    begin(q, *next.step, next.flight->window);
  }

  void begin(int q, const Step& step, const PlanWindow& window) {
    QueueState& queue = queues_[at(q)];
    queue.shares = false;
    queue.share = 0;
    if (step.kind != StepKind::compute) {
      if (staging_ && staging_->is_staged(q, step.sequence)) {
        ends_[at(q)] = now_ + link_of(step).latency_seconds + part_seconds(q, step);
      } else {
        ends_[at(q)] = now_ + transfer_seconds(link_of(step), step.bytes);
      }
      return;
    }
    Elements elements;
    const std::span<const BlockId> operands = window.operands_of(step);
    for (int i = 0; i < step.operation->operands; ++i)
      elements.push_back(blocks_.element(operands[at(i)]));
    const KernelClock::Cost cost =
        kernels_.cost(step.device, *step.operation, elements, step.work, step.seconds);
    queue.share = std::max(cost.share, step.share);
    DeviceState& device = devices_[step.device];
    advance_clock(device);
    // An urgent kernel runs as if alone and leaves the others what it does not take.
    if (layout_.queues[at(q)].role == QueueRole::urgent) {
      ends_[at(q)] = now_ + cost.seconds;
      device.urgent_share += queue.share;
    } else {
      queue.shares = true;
      queue.end_on_device_clock = device.clock + cost.seconds;
      device.share += queue.share;
      device.running.push_back(q);
    }
    set_pace(step.device);
  }

  [[nodiscard]] LinkRate link_of(const Step& step) const {
    if (step.kind == StepKind::read) return plan_.machine().storage->read;
    if (step.kind == StepKind::write) return plan_.machine().storage->write;
    const DeviceModel& device = plan_.machine().devices[step.device];
    return step.kind == StepKind::load    ? device.host_to_device
           : step.kind == StepKind::store ? device.device_to_host
                                          : peer_link_;
  }

  /// Seconds of the next part of a staged copy; infinite until it is ready.
  [[nodiscard]] double part_seconds(int q, const Step& step) const {
    const std::int64_t bytes = staging_->part_bytes(q);
    return bytes == 0 ? kForever : static_cast<double>(bytes) / link_of(step).bytes_per_second;
  }

  /// The queues that may, since something was issued: they start a step, or the next part of one.
  void go_on() {
    staging_->for_each_touched([this](int q) {
      QueueState& queue = queues_[at(q)];
      if (!queue.busy) return try_start(q);
      const Step& step = *queue.pending.front().step;
      if (ends_[at(q)] == kForever && staging_->is_staged(q, step.sequence))
        ends_[at(q)] = now_ + part_seconds(q, step);
    });
  }

  /// A copy of a queue has ended, or a part of it: whether that was the last.
  bool end_part(int q) {
    const Step& step = *queues_[at(q)].pending.front().step;
    if (!staging_->is_staged(q, step.sequence)) return true;
    const bool last = staging_->part_copied(q, now_);
    if (!last) ends_[at(q)] = now_ + part_seconds(q, step);
    go_on();
    return last;
  }

  void advance_clock(DeviceState& device) const {
    device.clock += (now_ - device.updated) / device.slowdown;
    device.updated = now_;
  }

  /// After the kernels of a device have changed: how fast its clock runs, and who ends next on it.
  void set_pace(std::size_t d) {
    DeviceState& device = devices_[d];
    device.slowdown =
        std::max(1.0, device.share / std::max(1.0 - device.urgent_share, kLeftByUrgentMin));
    double next = kForever;
    for (const int q : device.running) next = std::min(next, queues_[at(q)].end_on_device_clock);
    device_ends_[d] =
        now_ + std::max(next - device.clock, 0.0) * (device.running.empty() ? 1 : device.slowdown);
  }

  void finish_earliest() {
    const auto first = std::min_element(ends_.begin(), ends_.end());
    const auto device = std::min_element(device_ends_.begin(), device_ends_.end());
    if (staging_ && staging_->next() < std::min(*first, *device)) {
      now_ = staging_->next();
      staging_->advance(now_);
      return go_on();
    }
    if (*first <= *device) {
      now_ = *first;
      const int q = static_cast<int>(first - ends_.begin());
      if (!staging_ || end_part(q)) finish(q);
      return;
    }
    now_ = *device;
    const std::vector<int>& running =
        devices_[static_cast<std::size_t>(device - device_ends_.begin())].running;
    finish(*std::min_element(running.begin(), running.end(), [&](int a, int b) {
      return queues_[at(a)].end_on_device_clock < queues_[at(b)].end_on_device_clock;
    }));
  }

  void finish(int q) {
    QueueState& queue = queues_[at(q)];
    const Pending pending = queue.pending.front();
    const Step& step = *pending.step;
    ends_[at(q)] = kForever;
    if (step.kind == StepKind::compute) leave_device(q, step.device);
    Span& span = finished_[at(pending.number - noted_)];
    span = spans_.span_of(pending.flight->window, step);
    span.begin = queue.begin;
    span.end = now_;
    // Spans go into the trace in the order of the plan, as run() puts them there.
    for (; !finished_.empty() && finished_.front().queue != kUnfinished; ++noted_) {
      trace_.add(finished_.front());
      finished_.pop_front();
    }
    queue.done = step.sequence;
    queue.busy = false;
    queue.pending.pop_front();
    --busy_;
    --in_flight_;
    if (--pending.flight->left == 0) retire();
    wake(queue);
    try_start(q);
  }

  void leave_device(int q, std::size_t d) {
    QueueState& queue = queues_[at(q)];
    DeviceState& device = devices_[d];
    advance_clock(device);
    if (queue.shares) {
      device.running.erase(std::find(device.running.begin(), device.running.end(), q));
      device.share = 0;  // added up again, so that rounding does not
      for (const int other : device.running) device.share += queues_[at(other)].share;
    } else {
      device.urgent_share = 0;  // there is one urgent queue
    }
    set_pace(d);
  }

  /// Windows whose steps are all done are read into again.
  void retire() {
    while (!flights_.empty() && flights_.front()->left == 0) {
      idle_.push_back(std::move(flights_.front()));
      flights_.pop_front();
    }
  }

  void wake(QueueState& queue) {
    woken_.swap(queue.waiters);
    for (const int waiter : woken_) queues_[at(waiter)].blocked = false;
    for (const int waiter : woken_) try_start(waiter);
    woken_.clear();
  }

  template <class I>
  static constexpr std::size_t at(I i) {
    return static_cast<std::size_t>(i);
  }
  static constexpr std::uint16_t kUnfinished = 0xffff;

  const Plan& plan_;
  const BlockTable& blocks_;
  const PlanLayout& layout_;
  PlanReader& reader_;
  KernelClock kernels_;
  LinkRate peer_link_ = peer_link(plan_.machine());
  std::optional<StagingClock> staging_;  // only where something may be staged
  Trace trace_;
  SpanMaker spans_;
  std::vector<QueueState> queues_;
  std::vector<DeviceState> devices_;
  std::vector<double> ends_;         // by queue: of copies, or parts of them, and urgent kernels
  std::vector<double> device_ends_;  // by device: of the kernel that ends next
  std::deque<std::unique_ptr<Flight>> flights_;
  std::vector<std::unique_ptr<Flight>> idle_;
  std::deque<Span> finished_;  // not yet in the trace; the first is that of step noted_
  std::vector<int> woken_;
  std::int64_t read_ = 0;
  std::int64_t noted_ = 0;
  std::int64_t in_flight_ = 0;
  int busy_ = 0;
  bool ended_ = false;
  double now_ = 0;
};

}  // namespace

Trace simulate(const Plan& plan, PlanReader& reader) { return Simulator(plan, reader).run(); }

Trace simulate(const Plan& plan) {
  PlanReader reader(plan);
  return simulate(plan, reader);
}

}  // namespace strata
