// run(): see run.hpp.
//
// Method: one thread issues the steps of the plan, window by window, to the queues of the devices;
// each step is followed by an event, and a step's waits name the events of earlier steps. A few
// windows are in flight; the oldest is harvested (its times become spans) before a new one is
// issued, which bounds memory and the time to cancel.

#include "run/run.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "base/check.hpp"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kWindowsInFlight = 3;
constexpr std::size_t kTimesKept = 1 << 16;
constexpr std::chrono::milliseconds kProgressInterval{50};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The events of one queue that have not been harvested, and the end times of those that have.
struct QueueLog {
  Queue* queue = nullptr;
  double zero = 0;           // the queue's device clock when the run began
  std::uint64_t issued = 0;  // sequence of the last step that was issued
  std::deque<Event> events;  // of steps issued − events.size() + 1 … issued
  std::deque<double> ends;   // of the steps before those, the latest last
  double last_end = 0;

  [[nodiscard]] std::uint64_t harvested() const { return issued - events.size(); }
  [[nodiscard]] double end_of(std::uint64_t sequence) const {
    const std::uint64_t back = harvested() - sequence;
    return back < ends.size() ? ends[ends.size() - 1 - back] : 0.0;
  }
};

class Runner {
 public:
  Runner(const Plan& plan, DeviceSet& devices, BlockStore& store, const RunOptions& options)
      : plan_(plan),
        layout_(plan.layout()),
        store_(store),
        options_(options),
        backend_(devices.backend()),
        tuning_(devices.tuning()) {
    const BlockTable& blocks = plan.schedule().blocks;
    std::int64_t pivots = 1;
    for (int f = 0; f < blocks.families(); ++f) pivots = std::max(pivots, blocks.block_rows(f));
    pivot_memory_ =
        devices.device(0).allocate_host(pivots * static_cast<std::int64_t>(sizeof(PivotStatus)));
    pivots_ = reinterpret_cast<PivotStatus*>(pivot_memory_.data());
    std::uninitialized_fill_n(pivots_, pivots, PivotStatus{});
    outcome_.pivots.resize(static_cast<std::size_t>(pivots));
    for (int d = 0; d < layout_.devices; ++d) {
      arenas_.push_back(devices.arena(d, layout_.arena_bytes));
      for (Queue* queue : devices.queues(d, layout_)) queues_.emplace_back().queue = queue;
    }
    outcome_.trace.queues = trace_queues(plan);
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Nothing may touch the store, the arena or the pivots when this object is gone.
  ~Runner() { stop(); }

  RunOutcome follow() {
    set_zero();
    PlanReader reader(plan_);
    PlanWindow window;
    while (!outcome_.bad_pivot && reader.next(window)) {
      issue(window);
      in_flight_.push_back(std::move(window));
      while (in_flight_.size() >= kWindowsInFlight) harvest();
    }
    while (!outcome_.bad_pivot && !in_flight_.empty()) harvest();
    if (outcome_.bad_pivot) stop();
    for (QueueLog& log : queues_) log.queue->synchronize();
    std::copy_n(pivots_, outcome_.pivots.size(), outcome_.pivots.begin());
    outcome_.trace.seconds = seconds_since(start_);
    return std::move(outcome_);
  }

 private:
  void set_zero() {
    std::vector<Event> zeros;
    for (QueueLog& log : queues_) zeros.push_back(log.queue->record());
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      zeros[q].wait();
      queues_[q].zero = zeros[q].seconds();
    }
    start_ = last_progress_ = Clock::now();
  }

  // ---- issuing
  // ------------------------------------------------------------------------------------

  void issue(const PlanWindow& window) {
    for (const Step& step : window.steps) {
      QueueLog& log = queues_[step.queue];
      for (std::uint32_t w = 0; w < step.wait_count; ++w) {
        const Wait& wait = window.waits[step.wait_begin + w];
        const QueueLog& other = queues_[wait.queue];
        if (wait.sequence <= other.harvested()) continue;
        log.queue->wait(
            other.events[static_cast<std::size_t>(wait.sequence - other.harvested() - 1)]);
      }
      if (step.kind == StepKind::load) load(*log.queue, step);
      if (step.kind == StepKind::store) store(*log.queue, step);
      if (step.kind == StepKind::compute) compute(*log.queue, step);
      if (step.kind == StepKind::peer) copy_from_peer(*log.queue, step);
      log.events.push_back(log.queue->record());
      ++log.issued;
    }
  }

  [[nodiscard]] std::byte* slot_address(const Step& step, int family, int operand) const {
    return address_on(step.task.device, family, step.slots[static_cast<std::size_t>(operand)]);
  }
  [[nodiscard]] std::byte* address_on(std::size_t device, int family, std::int32_t slot) const {
    const SlotRange& range = layout_.slots[static_cast<std::size_t>(family)];
    return arenas_[device] + range.offset + range.slot_bytes * slot;
  }

  void load(Queue& queue, const Step& step) {
    const BlockId id = step.task.out;
    std::byte* to = slot_address(step, id.family(), 0);
    if (backend_.on_host()) {
      queue.submit([this, id, to] { store_.read(id, to); });
    } else {
      queue.copy(to, address(id), store_.blocks().bytes(id), CopyDirection::host_to_device);
    }
  }

  void store(Queue& queue, const Step& step) {
    const BlockId id = step.task.out;
    const std::byte* from = slot_address(step, id.family(), 0);
    if (backend_.on_host()) {
      queue.submit([this, id, from] { store_.write(id, from); });
    } else {
      queue.copy(address(id), from, store_.blocks().bytes(id), CopyDirection::device_to_host);
    }
  }

  void copy_from_peer(Queue& queue, const Step& step) {
    const BlockId id = step.task.out;
    queue.copy(slot_address(step, id.family(), 0),
               address_on(step.source, id.family(), step.slots[1]), store_.blocks().bytes(id),
               CopyDirection::device_to_device);
  }

  [[nodiscard]] std::byte* address(BlockId id) const {
    std::byte* memory = store_.address(id);
    require(memory != nullptr, ErrorKind::misuse, "run",
            "block {} does not rest in memory, where a GPU can copy it", store_.blocks().name(id));
    return memory;
  }

  void compute(Queue& queue, const Step& step) {
    const Task& task = step.task;
    const BlockTable& blocks = plan_.schedule().blocks;
    const auto view = [&](BlockId id, int operand) {
      const BlockExtent x = blocks.extent(id);
      return BlockView{slot_address(step, id.family(), operand), x.rows, x.cols,
                       std::max<std::int64_t>(x.rows, 1),        x.row,  x.col};
    };
    KernelArguments arguments;
    arguments.out = view(task.out, 0);
    for (int i = 0; i < task.input_count; ++i) {
      arguments.inputs[static_cast<std::size_t>(i)] =
          view(task.inputs[static_cast<std::size_t>(i)], i + 1);
    }
    arguments.status = pivots_ + task.out.row();
    arguments.covariance = options_.covariance;
    const Precision precision = blocks.family(task.out.family()).precision;
    const PotrfOptions potrf =
        with_tuning(options_.potrf, tuning_.options_for(precision, arguments.out.cols));
    arguments.potrf = &potrf;
    backend_.kernels().find(task.operation, precision)(queue, arguments);
  }

  // ---- harvesting
  // ---------------------------------------------------------------------------------

  void harvest() {
    const PlanWindow window = std::move(in_flight_.front());
    in_flight_.pop_front();
    std::vector<std::uint64_t> last(queues_.size(), 0);
    for (const Step& step : window.steps) last[step.queue] = step.sequence;
    for (std::size_t q = 0; q < queues_.size(); ++q) {
      if (last[q] > queues_[q].harvested())
        await(queues_[q].events[last[q] - queues_[q].harvested() - 1]);
    }
    for (const Step& step : window.steps) note(window, step);
    if (std::any_of(queues_.begin(), queues_.end(),
                    [](const QueueLog& l) { return l.queue->failed(); })) {
      throw_failure();
    }
  }

  /// Waits for an event, telling progress and looking for failures meanwhile.
  void await(const Event& event) {
    std::chrono::microseconds pause{20};
    while (!event.done()) {
      tell_progress();
      std::this_thread::sleep_for(pause);
      pause = std::min<std::chrono::microseconds>(pause * 2, std::chrono::milliseconds(1));
    }
    tell_progress();
  }

  void tell_progress() {
    if (!options_.progress || Clock::now() - last_progress_ < kProgressInterval) return;
    last_progress_ = Clock::now();
    const Progress progress{outcome_.trace.flops, plan_.totals().flops, seconds_since(start_),
                            options_.what};
    if (!options_.progress(progress)) {
      stop();
      fail(ErrorKind::cancelled, "run", "cancelled after {:.1f} s", progress.seconds);
    }
  }

  void note(const PlanWindow& window, const Step& step) {
    QueueLog& log = queues_[step.queue];
    Span span = span_of(plan_.schedule().blocks, step);
    span.end = log.events.front().seconds() - log.zero;
    span.begin = log.last_end;
    for (std::uint32_t w = 0; w < step.wait_count; ++w) {
      const Wait& wait = window.waits[step.wait_begin + w];
      span.begin = std::max(span.begin, queues_[wait.queue].end_of(wait.sequence));
    }
    span.begin = std::min(span.begin, span.end);
    log.events.pop_front();
    log.last_end = span.end;
    log.ends.push_back(span.end);
    if (log.ends.size() > kTimesKept) log.ends.pop_front();
    if (step.kind == StepKind::store && !backend_.on_host()) store_.mark_written(step.task.out);
    if (step.kind == StepKind::compute && step.task.operation == Operation::potrf) {
      outcome_.bad_pivot |= pivots_[step.task.out.row()].bad_column >= 0;
    }
    outcome_.trace.add(span);
  }

  void throw_failure() {
    for (QueueLog& log : queues_) log.queue->abandon();
    std::exception_ptr first;
    for (QueueLog& log : queues_) {
      try {
        log.queue->synchronize();
      } catch (...) {
        if (!first) first = std::current_exception();
      }
    }
    std::rethrow_exception(first);
  }

  /// Ends all work as soon as the backend can; failures on the way are not news any more.
  void stop() noexcept {
    for (QueueLog& log : queues_) log.queue->abandon();
    for (QueueLog& log : queues_) {
      try {
        log.queue->synchronize();
      } catch (...) {  // the queue is being given up
      }
    }
  }

  const Plan& plan_;
  const PlanLayout& layout_;
  BlockStore& store_;
  const RunOptions& options_;
  const Backend& backend_;
  const PotrfTuning& tuning_;
  Buffer pivot_memory_;
  PivotStatus* pivots_ = nullptr;
  std::vector<std::byte*> arenas_;  // by device
  std::deque<QueueLog> queues_;     // a deque: a log is never moved
  std::deque<PlanWindow> in_flight_;
  RunOutcome outcome_;
  Clock::time_point start_;
  Clock::time_point last_progress_;
};

}  // namespace

RunOutcome run(const Plan& plan, DeviceSet& devices, BlockStore& store, const RunOptions& options) {
  return Runner(plan, devices, store, options).follow();
}

}  // namespace strata
