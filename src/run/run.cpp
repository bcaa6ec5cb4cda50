// run(): see run.hpp.
//
// Method: the calling thread reads the plan, window by window, and hands each window to one thread
// a device (step_issuer.hpp), which issues the steps of its device; each step is followed by an
// event, and a step's waits name the events of earlier steps. A few windows are in flight; the
// oldest is harvested by the calling thread (its times become spans) before a new one is handed
// out, which bounds memory. The time to cancel is bounded by how far ahead the threads issue.

#include "run/run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "run/step_issuer.hpp"

namespace strata {
namespace {

using Clock = QueueLog::Clock;

constexpr std::size_t kWindowsInFlight = 3;
/// How often progress is told and failures are looked for, at least.
constexpr std::chrono::milliseconds kAttention{50};

class Runner {
 public:
  Runner(const Plan& plan, DeviceSet& devices, BlockStore& store, const IssueOptions& options)
      : devices_(devices), state_(plan, devices, store, options) {
    require(plan.start().empty() || plan.start() == devices.residency(), ErrorKind::misuse, "run",
            "the plan starts from blocks that are not, or no longer, on the devices");
    devices.set_residency({});  // until all is done
    const PlanLayout& layout = plan.layout();
    for (std::size_t d = 0; d < layout.devices.size(); ++d) {
      const int device = static_cast<int>(d);
      const std::int64_t bytes = layout.devices[d].arena_bytes;
      const bool host = device == layout.host;
      state_.arenas.push_back(host ? devices.host_arena(bytes) : devices.arena(device, bytes));
      for (Queue* queue : host ? devices.host_queues(layout) : devices.queues(device, layout))
        state_.queues.emplace_back(*queue);
    }
    outcome_.trace = empty_trace(plan);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Nothing may touch the store or the arena when this object is gone.
  ~Runner() { (void)stop(); }

  RunOutcome follow() {
    set_zero();
    for (std::size_t d = 0; d < state_.plan.layout().devices.size(); ++d)
      issuers_.emplace_back(state_, static_cast<int>(d));
    PlanReader reader(state_.plan);
    for (;;) {
      auto window = std::make_shared<PlanWindow>();
      if (outcome_.ended_early || !reader.next(*window)) break;
      in_flight_.push_back(window);
      for (StepIssuer& issuer : issuers_) issuer.hand_over(window);
      while (in_flight_.size() >= kWindowsInFlight) harvest();
    }
    while (!outcome_.ended_early && !in_flight_.empty()) harvest();
    if (outcome_.ended_early) (void)stop();
    issuers_.clear();
    for (QueueLog& log : state_.queues) log.queue().synchronize();
    state_.mover.finish();
    if (state_.failure()) throw_failure();
    outcome_.trace.seconds = seconds_since(start_);
    if (!outcome_.ended_early) devices_.set_residency(state_.plan.end());
    return std::move(outcome_);
  }

 private:
  /// The run begins before the zero of any queue, so that no span ends after its seconds.
  void set_zero() {
    start_ = last_attention_ = Clock::now();
    std::vector<Event> zeros;
    for (QueueLog& log : state_.queues) zeros.push_back(log.queue().record());
    for (std::size_t q = 0; q < zeros.size(); ++q) {
      zeros[q].wait();
      state_.queues[q].zero = zeros[q].seconds();
    }
  }

  void harvest() {
    const std::shared_ptr<const PlanWindow> window = in_flight_.front();
    std::vector<std::uint64_t> last(state_.queues.size(), 0);
    for (const Step& step : window->steps) last[step.queue] = step.sequence;
    for (std::size_t q = 0; q < last.size(); ++q) {
      if (last[q] > 0) await(state_.queues[q], last[q]);
    }
    for (const Step& step : window->steps) note(*window, step);
    in_flight_.pop_front();
    look_for_failures();
  }

  /// Waits until a step has been issued and is done, paying attention meanwhile.
  void await(QueueLog& log, std::uint64_t sequence) {
    std::shared_ptr<const Event> event;
    while ((event = log.recorded_by(sequence, Clock::now() + kAttention)) == nullptr) {
      if (state_.given_up()) throw_failure();
      pay_attention();
    }
    // Looked at so often that what is slept too long is a small share of the wait.
    const Clock::time_point begin = Clock::now();
    while (!event->done()) {
      pay_attention();
      const auto waited = Clock::now() - begin;
      std::this_thread::sleep_for(std::clamp<Clock::duration>(
          waited / 16, std::chrono::microseconds(5), std::chrono::milliseconds(1)));
    }
    pay_attention();
  }

  void pay_attention() {
    if (Clock::now() - last_attention_ < kAttention) return;
    last_attention_ = Clock::now();
    look_for_failures();
    if (!state_.options.progress) return;
    const Progress progress{outcome_.trace.flops, state_.plan.totals().flops, seconds_since(start_),
                            state_.options.what};
    if (!state_.options.progress(progress)) {
      (void)stop();
      fail(ErrorKind::cancelled, "run", "cancelled after {:.1f} s", progress.seconds);
    }
  }

  void note(const PlanWindow& window, const Step& step) {
    QueueLog& log = state_.queues[step.queue];
    Span span = spans_.span_of(window, step);
    span.end = log.take()->seconds() - log.zero;
    span.begin = log.last_end();
    for (const Wait& wait : window.waits_of(step))
      span.begin = std::max(span.begin, state_.queues[wait.queue].end_of(wait.sequence));
    span.begin = std::min(span.begin, span.end);
    log.note_end(span.end);
    const bool stores = step.kind == StepKind::store || step.kind == StepKind::write;
    if (stores && step.operand_count == 1 && !log.queue().failed())
      note_stored(window.block_of(step), step);
    outcome_.trace.add(span);
  }

  void note_stored(BlockId id, const Step& step) {
    state_.mover.stored(step.device, id);
    const IssueOptions& options = state_.options;
    if (id.family() != options.watched || !options.watch) return;
    state_.mover.await_home(id);
    if (!state_.given_up()) outcome_.ended_early |= options.watch(id);
  }

  void look_for_failures() {
    if (state_.given_up() || state_.queue_failed()) throw_failure();
  }

  [[noreturn]] void throw_failure() {
    const std::exception_ptr of_queue = stop();
    const std::exception_ptr of_issuer = state_.failure();
    if (of_issuer || of_queue) std::rethrow_exception(of_issuer ? of_issuer : of_queue);
    fail(ErrorKind::device, "run", "a device failed and does not say how");
  }

  /// Ends all work as soon as the backend can. The first failure of a queue, of which there are
  /// news only until this has been called once.
  std::exception_ptr stop() noexcept {
    state_.give_up();  // first: what waits for an abandoned queue looks here
    for (QueueLog& log : state_.queues) log.queue().abandon();
    issuers_.clear();
    std::exception_ptr first;
    for (QueueLog& log : state_.queues) {
      try {
        log.queue().synchronize();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    state_.mover.finish();
    return first;
  }

  DeviceSet& devices_;
  RunState state_;
  std::deque<std::shared_ptr<const PlanWindow>> in_flight_;
  RunOutcome outcome_;
  SpanMaker spans_{outcome_.trace};
  Clock::time_point start_;
  Clock::time_point last_attention_;
  std::deque<StepIssuer> issuers_;  // last: they use all of the above
};

}  // namespace

RunOutcome run(const Plan& plan, DeviceSet& devices, BlockStore& store,
               const IssueOptions& options) {
  return Runner(plan, devices, store, options).follow();
}

}  // namespace strata
