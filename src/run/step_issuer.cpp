#include "run/step_issuer.hpp"

#include <algorithm>
#include <utility>

#include "schedule/machine_model.hpp"

namespace strata {
namespace {

/// What is in the queues of a GPU cannot be taken back: a run that is cancelled waits for it. This
/// much of it, by the machine's rates, hides everything that an issuing thread may wait for, and a
/// rate that is wrong by half still ends the run within a second.
constexpr double kSecondsAhead = 0.5;

}  // namespace

void RunState::give_up(std::exception_ptr why) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
  }
  given_up_.store(true, std::memory_order_release);
  for (QueueLog& log : queues) log.close();
  mover.abandon();
}

std::exception_ptr RunState::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

StepIssuer::StepIssuer(RunState& state, int device)
    : state_(state),
      layout_(state.plan.layout()),
      first_queue_(static_cast<std::uint16_t>(layout_.queue(device, 0))),
      end_queue_(static_cast<std::uint16_t>(layout_.queue(device + 1, 0))),
      thread_([this] { work(); }) {}

StepIssuer::~StepIssuer() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void StepIssuer::hand_over(std::shared_ptr<const PlanWindow> window) {
  {
    const std::lock_guard lock(mutex_);
    windows_.push_back(std::move(window));
  }
  changed_.notify_one();
}

void StepIssuer::work() {
  try {
    for (;;) {
      std::shared_ptr<const PlanWindow> window;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return closed_ || !windows_.empty(); });
        if (windows_.empty()) return;
        window = std::move(windows_.front());
        windows_.pop_front();
      }
      issue(*window);
    }
  } catch (...) {
    state_.give_up(std::current_exception());
  }
}

void StepIssuer::issue(const PlanWindow& window) {
  for (const Step& step : window.steps) {
    if (state_.given_up()) return;
    if (step.queue >= first_queue_ && step.queue < end_queue_) issue(window, step);
  }
}

void StepIssuer::issue(const PlanWindow& window, const Step& step) {
  QueueLog& log = state_.queues[step.queue];
  Queue& queue = log.queue();
  for (std::uint32_t w = 0; w < step.wait_count; ++w) {
    const Wait& wait = window.waits[step.wait_begin + w];
    if (const auto event = state_.queues[wait.queue].recorded(wait.sequence)) queue.wait(*event);
  }
  const bool computes = step.kind == StepKind::compute;
  const double seconds = computes ? seconds_of(step.task) : 0;
  if (computes) make_room(seconds);
  if (state_.given_up()) return;  // what it waited for may never have been issued
  const BlockId id = step.task.out;
  const int device = step.task.device;
  if (step.kind == StepKind::load) state_.mover.load(queue, device, id, slot_of(step, id, 0));
  if (step.kind == StepKind::store) state_.mover.store(queue, device, id, slot_of(step, id, 0));
  if (computes) compute(queue, step);
  if (step.kind == StepKind::peer) copy_from_peer(queue, step);
  std::shared_ptr<const Event> event = log.add(queue.record());
  if (computes) under_way_.emplace_back(std::move(event), seconds);
  under_way_seconds_ += seconds;
}

double StepIssuer::seconds_of(const Task& task) const {
  const BlockTable& blocks = state_.plan.schedule().blocks;
  return kernel_seconds(state_.plan.machine().devices[task.device], task.operation,
                        blocks.family(task.out.family()).precision, flops_of(blocks, task));
}

void StepIssuer::make_room(double seconds) {
  while (!under_way_.empty() &&
         (under_way_seconds_ + seconds > kSecondsAhead || under_way_.front().first->done())) {
    under_way_.front().first->wait();
    under_way_seconds_ -= under_way_.front().second;
    under_way_.pop_front();
  }
  if (under_way_.empty()) under_way_seconds_ = 0;  // without what rounding left
}

std::byte* StepIssuer::slot_address(std::size_t device, int family, std::int32_t slot) const {
  const SlotRange& range = layout_.slots[static_cast<std::size_t>(family)];
  return state_.arenas[device] + range.offset + range.slot_bytes * slot;
}

std::byte* StepIssuer::slot_of(const Step& step, BlockId id, int operand) const {
  return slot_address(step.task.device, id.family(), step.slots[static_cast<std::size_t>(operand)]);
}

void StepIssuer::copy_from_peer(Queue& queue, const Step& step) {
  const BlockId id = step.task.out;
  queue.copy(slot_of(step, id, 0), slot_address(step.source, id.family(), step.slots[1]),
             state_.plan.schedule().blocks.bytes(id), CopyDirection::device_to_device);
}

void StepIssuer::compute(Queue& queue, const Step& step) {
  const Task& task = step.task;
  const BlockTable& blocks = state_.plan.schedule().blocks;
  const auto view = [&](BlockId id, int operand) {
    const BlockExtent x = blocks.extent(id);
    return BlockView{slot_of(step, id, operand),        x.rows, x.cols,
                     std::max<std::int64_t>(x.rows, 1), x.row,  x.col};
  };
  KernelArguments arguments;
  arguments.out = view(task.out, 0);
  for (int i = 0; i < task.input_count; ++i) {
    arguments.inputs[static_cast<std::size_t>(i)] =
        view(task.inputs[static_cast<std::size_t>(i)], i + 1);
  }
  arguments.status = state_.pivots + task.out.row();
  arguments.covariance = state_.options.covariance;
  const Precision precision = blocks.family(task.out.family()).precision;
  const PotrfOptions potrf = potrf_options(with_tuning(
      state_.options.blocking, state_.tuning.blocking_for(precision, arguments.out.cols)));
  arguments.potrf = &potrf;
  state_.backend.kernels().find(task.operation, precision)(queue, arguments);
}

}  // namespace strata
