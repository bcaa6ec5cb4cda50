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
#include "run/step_issuer.hpp"

namespace strata {
namespace {

using Clock = QueueLog::Clock;

constexpr std::size_t kWindowsInFlight = 3;
/// How often progress is told and failures are looked for, at least.
constexpr std::chrono::milliseconds kAttention{50};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class Runner {
 public:
  Runner(const Plan& plan, DeviceSet& devices, BlockStore& store, const RunOptions& options)
      : state_(plan, devices, store, options) {
    const BlockTable& blocks = plan.schedule().blocks;
    const PlanLayout& layout = plan.layout();
    std::int64_t pivots = 1;
    for (int f = 0; f < blocks.families(); ++f) pivots = std::max(pivots, blocks.block_rows(f));
    pivot_memory_ =
        devices.device(0).allocate_host(pivots * static_cast<std::int64_t>(sizeof(PivotStatus)));
    state_.pivots = reinterpret_cast<PivotStatus*>(pivot_memory_.data());
    std::uninitialized_fill_n(state_.pivots, pivots, PivotStatus{});
    outcome_.pivots.resize(static_cast<std::size_t>(pivots));
    for (int d = 0; d < layout.devices; ++d) {
      state_.arenas.push_back(devices.arena(d, layout.arena_bytes));
      for (Queue* queue : devices.queues(d, layout)) state_.queues.emplace_back(*queue);
    }
    outcome_.trace.queues = trace_queues(plan);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Nothing may touch the store, the arena or the pivots when this object is gone.
  ~Runner() { (void)stop(); }

  RunOutcome follow() {
    set_zero();
    for (int d = 0; d < state_.plan.layout().devices; ++d) issuers_.emplace_back(state_, d);
    PlanReader reader(state_.plan);
    for (;;) {
      auto window = std::make_shared<PlanWindow>();
      if (outcome_.bad_pivot || !reader.next(*window)) break;
      in_flight_.push_back(window);
      for (StepIssuer& issuer : issuers_) issuer.hand_over(window);
      while (in_flight_.size() >= kWindowsInFlight) harvest();
    }
    while (!outcome_.bad_pivot && !in_flight_.empty()) harvest();
    if (outcome_.bad_pivot) (void)stop();
    issuers_.clear();
    for (QueueLog& log : state_.queues) log.queue().synchronize();
    state_.mover.finish();
    if (state_.failure()) throw_failure();
    std::copy_n(state_.pivots, outcome_.pivots.size(), outcome_.pivots.begin());
    outcome_.trace.seconds = seconds_since(start_);
    return std::move(outcome_);
  }

 private:
  void set_zero() {
    std::vector<Event> zeros;
    for (QueueLog& log : state_.queues) zeros.push_back(log.queue().record());
    for (std::size_t q = 0; q < zeros.size(); ++q) {
      zeros[q].wait();
      state_.queues[q].zero = zeros[q].seconds();
    }
    start_ = last_attention_ = Clock::now();
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
    std::chrono::microseconds pause{20};
    while (!event->done()) {
      pay_attention();
      std::this_thread::sleep_for(pause);
      pause = std::min<std::chrono::microseconds>(pause * 2, std::chrono::milliseconds(1));
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
    Span span = span_of(state_.plan.schedule().blocks, step);
    span.end = log.take()->seconds() - log.zero;
    span.begin = log.last_end();
    for (std::uint32_t w = 0; w < step.wait_count; ++w) {
      const Wait& wait = window.waits[step.wait_begin + w];
      span.begin = std::max(span.begin, state_.queues[wait.queue].end_of(wait.sequence));
    }
    span.begin = std::min(span.begin, span.end);
    log.note_end(span.end);
    if (step.kind == StepKind::store && !log.queue().failed()) state_.mover.stored(step.task.out);
    if (step.kind == StepKind::compute && step.task.operation == Operation::potrf) {
      outcome_.bad_pivot |= state_.pivots[step.task.out.row()].bad_column >= 0;
    }
    outcome_.trace.add(span);
  }

  void look_for_failures() {
    const auto failed = [](const QueueLog& log) { return log.queue().failed(); };
    if (state_.given_up() || std::any_of(state_.queues.begin(), state_.queues.end(), failed)) {
      throw_failure();
    }
  }

  [[noreturn]] void throw_failure() {
    const std::exception_ptr of_queue = stop();
    const std::exception_ptr of_issuer = state_.failure();
    std::rethrow_exception(of_issuer ? of_issuer : of_queue);
  }

  /// Ends all work as soon as the backend can. The first failure of a queue, of which there are
  /// news only until this has been called once.
  std::exception_ptr stop() noexcept {
    for (QueueLog& log : state_.queues) log.queue().abandon();
    state_.give_up();
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

  RunState state_;
  Buffer pivot_memory_;
  std::deque<std::shared_ptr<const PlanWindow>> in_flight_;
  RunOutcome outcome_;
  Clock::time_point start_;
  Clock::time_point last_attention_;
  std::deque<StepIssuer> issuers_;  // last: they use all of the above
};

}  // namespace

RunOutcome run(const Plan& plan, DeviceSet& devices, BlockStore& store, const RunOptions& options) {
  return Runner(plan, devices, store, options).follow();
}

}  // namespace strata
