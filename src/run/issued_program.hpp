#pragma once
// IssuedProgram: the entries of a program in queues of devices.
//
// Contract: issue() puts every entry into the queue of its lane, in the program's order, behind
// what is in the first lane of each device. Copies between devices are its own; those from and to
// the host are the caller's. A store that no entry waits for comes behind all others: a copy to
// memory that is not page-locked holds up the thread that issues it. Program and queues outlive it;
// whoever issued it waits for the queues, whatever is thrown meanwhile. Not thread-safe.

#include <cstdint>
#include <functional>
#include <vector>

#include "device/device.hpp"
#include "run/program.hpp"
#include "strata/options.hpp"
#include "strata/trace.hpp"

namespace strata {

/// The queue of a lane, and the device of the plan to which it belongs. Lanes of a device follow
/// each other.
struct ProgramLane {
  Queue* queue = nullptr;
  int device = 0;
};

class IssuedProgram {
 public:
  /// Puts a load or store of its blocks into the queue.
  using HostCopy = std::function<void(const Program::Entry& entry, Queue& queue)>;
  /// What is recorded of times: nothing; when the first task of each device began; also when each
  /// task ended; also when each began.
  enum class Times : std::uint8_t { none, begin, ends, both };

  IssuedProgram(const Program& program, std::vector<ProgramLane> lanes, Times times);

  void issue(const HostCopy& copy);
  /// Returns when all entries are done. Asks `progress` meanwhile, in the name of `what`: if it
  /// says so, what has not begun is skipped and Error{cancelled} thrown. Throws the first failure
  /// of a queue.
  void wait(const ProgressCallback& progress, const char* what);

  /// Bytes that the copies of the program moved. What devices that share a task write to each other
  /// is not counted.
  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }
  /// When the first task of the first device began, by that device's clock, if that was recorded:
  /// for one that is done.
  [[nodiscard]] double began() const { return began_.front().seconds(); }
  /// Appends a span for each task; lane `i` is queue `queues[i]` of the trace. Devices have clocks
  /// of their own, which begin with their first task. Where only ends are known a task begins when
  /// the task before it in its queue and what it waits for have ended. For programs that are done.
  void put_spans(const std::vector<std::uint16_t>& queues, Trace& trace) const;

 private:
  void issue(std::size_t entry, const HostCopy& copy);
  void copy(const Program::Entry& entry, Queue& queue, const HostCopy& host_copy);

  const Program& program_;
  std::vector<ProgramLane> lanes_;
  Times times_;
  std::vector<Event> began_;   // by device: before its first task
  std::vector<Event> begins_;  // by entry
  std::vector<Event> ends_;    // by entry
  Traffic traffic_;
};

}  // namespace strata
