#include "base/work_crew.hpp"

#include <algorithm>
#include <exception>

namespace strata {

/// Lives on the stack of the thread that brought it. All members are guarded by the crew's mutex.
struct WorkCrew::Batch {
  const std::function<void(std::int64_t)>& piece;
  std::int64_t count;
  std::int64_t next = 0;
  std::int64_t running = 0;
  std::exception_ptr failure;
  std::condition_variable finished;

  /// Runs one piece; the lock is held before and after.
  void run_one(std::unique_lock<std::mutex>& lock) {
    const std::int64_t i = next++;
    ++running;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      piece(i);
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    if (thrown) next = count;
    if (thrown && !failure) failure = thrown;
    if (--running == 0 && next >= count) finished.notify_all();
  }
};

WorkCrew::~WorkCrew() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkCrew::share(std::int64_t count, const std::function<void(std::int64_t)>& piece) {
  if (count == 1 || helpers_ == 0) {
    for (std::int64_t i = 0; i < count; ++i) piece(i);
    return;
  }
  Batch batch{.piece = piece, .count = count, .failure = nullptr, .finished = {}};
  std::unique_lock lock(mutex_);
  while (std::ssize(threads_) < std::min<std::int64_t>(helpers_, count - 1)) {
    threads_.emplace_back([this] { help(); });
  }
  batches_.push_back(&batch);
  arrived_.notify_all();
  while (batch.next < batch.count) batch.run_one(lock);
  std::erase(batches_, &batch);
  batch.finished.wait(lock, [&] { return batch.running == 0; });
  if (batch.failure) std::rethrow_exception(batch.failure);
}

void WorkCrew::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return closed_ || !batches_.empty(); });
    if (closed_) return;
    Batch* batch = batches_.front();
    if (batch->next < batch->count) {
      batch->run_one(lock);
    } else {
      batches_.pop_front();  // nothing is left of it to begin
    }
  }
}

}  // namespace strata
