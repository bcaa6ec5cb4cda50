#pragma once
// QueueLog: what a run remembers of one queue between issuing a step and harvesting it.
//
// Contract: one thread adds the events of the queue's steps, in their order; any thread may wait
// until a step has been recorded; one thread, the harvesting one, takes events out again.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>

#include "device/device.hpp"

namespace strata {

class QueueLog {
 public:
  using Clock = std::chrono::steady_clock;

  explicit QueueLog(Queue& queue) : queue_(queue) {}
  QueueLog(const QueueLog&) = delete;
  QueueLog& operator=(const QueueLog&) = delete;

  [[nodiscard]] Queue& queue() const noexcept { return queue_; }

  /// The event of the next step, which is handed back.
  std::shared_ptr<const Event> add(Event event);
  /// Blocks until step `sequence` has been recorded. Null if there is nothing left to wait for: it
  /// was harvested, or the run is over.
  [[nodiscard]] std::shared_ptr<const Event> recorded(std::uint64_t sequence);
  /// The same, until a moment at most; null if it passed.
  [[nodiscard]] std::shared_ptr<const Event> recorded_by(std::uint64_t sequence,
                                                         Clock::time_point moment);
  /// Wakes all waiting threads; none waits here from now on.
  void close() noexcept;

  // ---- for the harvesting thread

  /// The event of the oldest step, which has been recorded.
  [[nodiscard]] std::shared_ptr<const Event> take();
  /// Notes when the step that was taken last ended.
  void note_end(double seconds);
  [[nodiscard]] double last_end() const noexcept { return ends_.empty() ? 0.0 : ends_.back(); }
  /// When a step that was taken ended; 0 if that was too long ago to be remembered.
  [[nodiscard]] double end_of(std::uint64_t sequence) const;

  double zero = 0;  ///< the device's clock when the run began

 private:
  [[nodiscard]] std::shared_ptr<const Event> find(std::uint64_t sequence) const;
  [[nodiscard]] bool there(std::uint64_t sequence);

  Queue& queue_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const Event>> events_;  // of the steps after `taken_`
  std::uint64_t taken_ = 0;
  std::uint64_t awaited_ = std::numeric_limits<std::uint64_t>::max();  // the least; spares wakes
  bool closed_ = false;
  std::deque<double> ends_;  // of the steps up to `taken_`, the latest last
};

}  // namespace strata
