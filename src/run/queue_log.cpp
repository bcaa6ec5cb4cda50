#include "run/queue_log.hpp"

#include <algorithm>
#include <utility>

namespace strata {
namespace {

constexpr std::size_t kEndsKept = 1 << 16;
constexpr std::uint64_t kNobody = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::shared_ptr<const Event> QueueLog::add(Event event) {
  auto shared = std::make_shared<const Event>(std::move(event));
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    events_.push_back(shared);
    wake = taken_ + events_.size() >= awaited_;
    if (wake) awaited_ = kNobody;  // those who still wait say so again
  }
  if (wake) changed_.notify_all();
  return shared;
}

std::shared_ptr<const Event> QueueLog::find(std::uint64_t sequence) const {
  if (sequence <= taken_ || sequence > taken_ + events_.size()) return nullptr;
  return events_[static_cast<std::size_t>(sequence - taken_ - 1)];
}

bool QueueLog::there(std::uint64_t sequence) {
  if (closed_ || sequence <= taken_ + events_.size()) return true;
  awaited_ = std::min(awaited_, sequence);
  return false;
}

std::shared_ptr<const Event> QueueLog::recorded(std::uint64_t sequence) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return there(sequence); });
  return find(sequence);
}

std::shared_ptr<const Event> QueueLog::recorded_by(std::uint64_t sequence,
                                                   Clock::time_point moment) {
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, moment, [&] { return there(sequence); });
  return find(sequence);
}

void QueueLog::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

std::shared_ptr<const Event> QueueLog::take() {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Event> event = std::move(events_.front());
  events_.pop_front();
  ++taken_;
  return event;
}

void QueueLog::note_end(double seconds) {
  ends_.push_back(seconds);
  if (ends_.size() > kEndsKept) ends_.pop_front();
}

double QueueLog::end_of(std::uint64_t sequence) const {
  // `taken_` is read without the lock by the one thread that changes it.
  const std::uint64_t back = taken_ - sequence;
  return back < ends_.size() ? ends_[ends_.size() - 1 - static_cast<std::size_t>(back)] : 0.0;
}

}  // namespace strata
