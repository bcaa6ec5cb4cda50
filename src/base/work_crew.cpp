#include "base/work_crew.hpp"

#include <algorithm>
#include <exception>

namespace strata {
namespace {

constexpr std::int64_t kBlock = 8192;

}  // namespace

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
  batches_.push_back(&batch);
  start_threads();
  arrived_.notify_all();
  while (batch.next < batch.count) batch.run_one(lock);
  std::erase(batches_, &batch);
  batch.finished.wait(lock, [&] { return batch.running == 0; });
  if (batch.failure) std::rethrow_exception(batch.failure);
}

/// As many as there are pieces that nobody has begun, also where pieces bring pieces: a recursion
/// that brings two at a time is work for all.
void WorkCrew::start_threads() {
  std::int64_t waiting = -1;  // whoever brings a batch begins one
  for (const Batch* batch : batches_) waiting += batch->count - batch->next;
  while (std::ssize(threads_) < std::min(std::int64_t{helpers_}, busy_ + waiting))
    threads_.emplace_back([this] { help(); });
}

void WorkCrew::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return closed_ || !batches_.empty(); });
    if (closed_) return;
    Batch* batch = batches_.front();
    if (batch->next < batch->count) {
      ++busy_;
      batch->run_one(lock);
      --busy_;
    } else {
      batches_.pop_front();  // nothing is left of it to begin
    }
  }
}

std::int64_t blocks_of(std::int64_t count) noexcept { return (count + kBlock - 1) / kBlock; }

void for_blocks(WorkCrew& crew, std::int64_t count,
                const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) {
  crew.share(blocks_of(count), [&](std::int64_t block) {
    visit(block * kBlock, std::min(count, (block + 1) * kBlock), block);
  });
}

}  // namespace strata
