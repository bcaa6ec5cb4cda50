#include "run/issued_program.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "base/index.hpp"

namespace strata {

IssuedProgram::IssuedProgram(const Program& program, std::vector<ProgramLane> lanes, Times times)
    : program_(program), lanes_(std::move(lanes)), times_(times) {}

void IssuedProgram::issue(const HostCopy& copy) {
  const std::span<const Program::Entry> entries = program_.entries();
  ends_.resize(entries.size());
  if (times_ == Times::both) begins_.resize(entries.size());
  Event before;
  for (std::size_t l = 1; l < lanes_.size(); ++l) {
    if (lanes_[l].device != lanes_[l - 1].device) continue;
    if (l == 1 || lanes_[l - 1].device != lanes_[l - 2].device)
      before = lanes_[l - 1].queue->record();
    lanes_[l].queue->wait(before);
  }
  began_.resize(at(lanes_.back().device + 1));
  std::vector<std::size_t> stores;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].kind == StepKind::store && !entries[i].awaited) {
      stores.push_back(i);
    } else {
      issue(i, copy);
    }
  }
  for (const std::size_t store : stores) issue(store, copy);
  for (const ProgramLane& lane : lanes_)
    if (times_ != Times::none && began_[at(lane.device)].state() == nullptr)
      began_[at(lane.device)] = lane.queue->record();
}

void IssuedProgram::issue(std::size_t i, const HostCopy& host_copy) {
  const Program::Entry& entry = program_.entries()[i];
  Queue& queue = *lanes_[at(entry.lane)].queue;
  for (const std::size_t other : program_.waits(entry)) queue.wait(ends_[other]);
  const bool computes = entry.kind == StepKind::compute;
  if (computes && times_ != Times::none && began_[entry.device].state() == nullptr)
    began_[entry.device] = queue.record();
  if (computes && times_ == Times::both) begins_[i] = queue.record();
  if (computes)
    entry.kernel(queue, program_.calls(entry), {.variant = entry.variant});
  else
    copy(entry, queue, host_copy);
  // Each event takes the thread that issues it a microsecond, and its time takes three.
  if (entry.awaited || (computes && times_ >= Times::ends)) ends_[i] = queue.record();
}

void IssuedProgram::copy(const Program::Entry& entry, Queue& queue, const HostCopy& host_copy) {
  switch (entry.kind) {
    case StepKind::load:
      host_copy(entry, queue);
      traffic_.host_to_device_bytes += entry.bytes;
      break;
    case StepKind::store:
      host_copy(entry, queue);
      traffic_.device_to_host_bytes += entry.bytes;
      break;
    default: {
      const BlockView* views = program_.calls(entry)[0];
      queue.copy(views[0].data, views[1].data, entry.bytes, CopyDirection::device_to_device);
      traffic_.device_to_device_bytes += entry.bytes;
    }
  }
}

void IssuedProgram::wait(const ProgressCallback& progress, const char* what) {
  constexpr auto kNapMost = std::chrono::microseconds(20'000);
  const std::span<const Program::Entry> entries = program_.entries();
  Progress state{.what = what};
  for (const Program::Entry& entry : entries) state.total += entry.work;
  const auto begin = std::chrono::steady_clock::now();
  auto nap = std::chrono::microseconds(100);
  for (std::size_t i = 0; progress && times_ >= Times::ends && i < entries.size(); ++i) {
    for (; ends_[i].state() != nullptr && !ends_[i].done(); nap = std::min(2 * nap, kNapMost)) {
      std::this_thread::sleep_for(nap);
      state.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (nap < kNapMost || progress(state)) continue;
      for (const ProgramLane& lane : lanes_) lane.queue->abandon();
      for (const ProgramLane& lane : lanes_) lane.queue->synchronize();
      fail(ErrorKind::cancelled, what, "cancelled in a pass; what it writes may hold anything");
    }
    state.done += entries[i].work;
  }
  for (const ProgramLane& lane : lanes_) lane.queue->synchronize();
}

void IssuedProgram::put_spans(const std::vector<std::uint16_t>& queues, Trace& trace) const {
  const std::span<const Program::Entry> entries = program_.entries();
  std::vector<double> zero;
  for (const Event& event : began_) zero.push_back(event.seconds());
  std::vector<double> ended(entries.size(), 0);
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (ends_[i].state() != nullptr) ended[i] = ends_[i].seconds() - zero[entries[i].device];
  std::vector<double> before(lanes_.size());
  const auto put = [&](std::size_t i) {
    const Program::Entry& entry = entries[i];
    double& end = before[at(entry.lane)];
    for (const std::size_t other : program_.waits(entry)) end = std::max(end, ended[other]);
    Span span;
    span.begin = end;
    if (times_ == Times::both && entry.kind == StepKind::compute)
      span.begin = std::max(0.0, begins_[i].seconds() - zero[entry.device]);
    end = std::max(end, ended[i]);
    span.end = end;
    if (entry.kind != StepKind::compute) return;
    span.family = static_cast<std::uint8_t>(entry.first.family());
    span.operation = trace.operation_number(entry.operation->name);
    span.queue = queues[at(entry.lane)];
    span.row = static_cast<std::int32_t>(entry.first.row());
    span.col = static_cast<std::int32_t>(entry.first.col());
    span.calls = static_cast<std::uint32_t>(program_.calls(entry).count());
    span.flops = entry.work;
    trace.seconds = std::max(trace.seconds, end);
    trace.add(span);
  };
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].kind != StepKind::store || entries[i].awaited) put(i);
}

}  // namespace strata
