#include "run/step_issuer.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

/// What is in the queues of a GPU cannot be taken back: a run that is cancelled waits for it. This
/// much of it, by the machine's rates, hides everything that an issuing thread may wait for, and a
/// rate that is wrong by half still ends the run within a second.
constexpr double kSecondsAhead = 0.5;

}  // namespace

void RunState::give_up(std::exception_ptr why) noexcept {
  if (why && !queue_failed()) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(why);
  }
  given_up_.store(true, std::memory_order_release);
  for (QueueLog& log : queues) log.close();
  mover.abandon();
}

bool RunState::queue_failed() const {
  return std::any_of(queues.begin(), queues.end(),
                     [](const QueueLog& log) { return log.queue().failed(); });
}

std::exception_ptr RunState::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

StepIssuer::StepIssuer(RunState& state, int device)
    : state_(state),
      layout_(state.plan.layout()),
      device_(device),
      backend_(state.backend(device)),
      clock_(state.plan.machine()),
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
  const auto is_load = [this](const Step& step) {
    return step.device == device_ && step.operand_count == 1 &&
           (step.kind == StepKind::load || step.kind == StepKind::read);
  };
  for (auto step = window.steps.begin(); step != window.steps.end(); ++step) {
    if (state_.given_up()) return;
    if (step->device != device_) continue;
    if (is_load(*step)) {
      const auto next = std::find_if(step + 1, window.steps.end(), is_load);
      if (next != window.steps.end()) state_.mover.expect(device_, window.block_of(*next));
    }
    issue(window, *step);
  }
}

void StepIssuer::issue(const PlanWindow& window, const Step& step) {
  QueueLog& log = state_.queues[step.queue];
  Queue& queue = log.queue();
  for (const Wait& wait : window.waits_of(step)) wait_for(queue, wait);
  const bool computes = step.kind == StepKind::compute;
  const double seconds = computes ? seconds_of(window, step) : 0;
  if (computes) make_room(seconds);
  if (state_.given_up()) return;  // what it waited for may never have been issued
  computes ? compute(queue, window, step) : copy(queue, window, step);
  std::shared_ptr<const Event> event = log.add(queue.record());
  if (computes) under_way_.emplace_back(std::move(event), seconds);
  under_way_seconds_ += seconds;
}

void StepIssuer::wait_for(Queue& queue, const Wait& wait) {
  const auto event = state_.queues[wait.queue].recorded(wait.sequence);
  if (event == nullptr) {  // it is done, and whether it failed is known
    if (backend_.on_host() && state_.queue_failed()) state_.give_up();
    return;
  }
  const int other = layout_.queues[wait.queue].device;
  if (&state_.backend(other) == &backend_) {
    queue.wait(*event);
  } else if (device_ == layout_.host) {
    // Its queues run host code. So one copy that waits for a device holds up none of the others.
    // What a device has not computed may not come into files as if it were sound.
    queue.submit([&state = state_, &queue, event] {  // the issuer may be gone before
      event->wait();
      if (state.given_up() || state.queue_failed()) queue.abandon();
    });
  } else {
    event->wait();  // steps before it in the plan do not wait for this one: it will be done
    if (state_.queue_failed()) state_.give_up();
  }
}

double StepIssuer::seconds_of(const PlanWindow& window, const Step& step) {
  const Kernel& kernel = kernel_of(window, step);
  return clock_.cost(device_, *step.operation, kernel.elements, step.work, step.seconds).seconds;
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

std::byte* StepIssuer::address(std::size_t device, std::int32_t slot) const {
  return state_.arenas[device] +
         layout_.devices[device].slots[static_cast<std::size_t>(slot)].offset;
}

void StepIssuer::copy(Queue& queue, const PlanWindow& window, const Step& step) {
  const std::int32_t* slots = window.slots_of(step);
  const BlockId id = window.block_of(step);
  std::byte* here = address(step.device, slots[0]);
  const bool stores = step.kind == StepKind::store || step.kind == StepKind::write;
  if (step.operand_count == 1) {
    return stores ? state_.mover.store(queue, device_, id, here, step.last)
                  : state_.mover.load(queue, device_, id, here);
  }
  std::byte* there = address(step.source, slots[1]);
  if (stores) return queue.copy(there, here, step.bytes, CopyDirection::device_to_host);
  queue.copy(here, there, step.bytes,
             step.kind == StepKind::load ? CopyDirection::host_to_device
                                         : CopyDirection::device_to_device);
}

const StepIssuer::Kernel& StepIssuer::kernel_of(const PlanWindow& window, const Step& step) {
  Elements elements;
  const std::span<const BlockId> operands = window.operands_of(step);
  for (int i = 0; i < step.operation->operands; ++i)
    elements.push_back(
        state_.plan.schedule().blocks.element(operands[static_cast<std::size_t>(i)]));
  for (const Kernel& kernel : kernels_) {
    if (kernel.operation == step.operation && kernel.elements == elements) return kernel;
  }
  const void* values = nullptr;
  for (const OperationValues& given : state_.options.values) {
    if (given.operation == step.operation->name) values = given.values;
  }
  const KernelFunction function = backend_.kernels().find(step.operation->name, elements);
  require(function != nullptr, ErrorKind::device, "run", "{} has no kernel for {} in {}",
          backend_.name(), step.operation->name, to_string(elements));
  kernels_.push_back({step.operation, elements, function, values});
  return kernels_.back();
}

void StepIssuer::compute(Queue& queue, const PlanWindow& window, const Step& step) {
  const BlockTable& blocks = state_.plan.schedule().blocks;
  const std::span<const BlockId> operands = window.operands_of(step);
  const std::int32_t* slots = window.slots_of(step);
  views_.clear();
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const BlockExtent x = blocks.extent(operands[i]);
    views_.push_back({address(step.device, slots[i]), x.rows, x.cols,
                      std::max<std::int64_t>(x.rows, 1), x.row, x.col,
                      blocks.element(operands[i])});
  }
  const Kernel& kernel = kernel_of(window, step);
  kernel.function(queue, {views_, operands_of_call(*step.operation, step.calls, views_.size())},
                  {.variant = step.variant, .values = kernel.values});
}

}  // namespace strata
