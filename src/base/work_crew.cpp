#include "base/work_crew.hpp"

#include <algorithm>
#include <utility>

namespace strata {
namespace {

constexpr std::int64_t kBlock = 8192;

}  // namespace

WorkCrew::~WorkCrew() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  arrived_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkCrew::share(std::int64_t count, const std::function<void(std::int64_t)>& piece) {
  if (count <= 1 || helpers_ == 0) {
    for (std::int64_t i = 0; i < count; ++i) piece(i);
    return;
  }
  // The first piece is the caller's own: were others to begin all of them, it would only wait.
  Job others(*this, count - 1, [&piece](std::int64_t i) { piece(i + 1); });
  try {
    piece(0);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    others.next_ = others.count_;
    if (!others.failure_) others.failure_ = std::current_exception();
  }
  others.finish();
}

/// Starts as many threads as there are pieces that none has begun, also where pieces add pieces: a
/// recursion that adds two at a time is work for all.
void WorkCrew::start_threads() {
  std::int64_t waiting = 0;
  for (const Job* job : jobs_) waiting += job->count_ - job->next_;
  try {
    while (std::ssize(threads_) < std::min(std::int64_t{helpers_}, busy_ + waiting))
      threads_.emplace_back([this] { help(); });
  } catch (...) {  // fewer will do
  }
}

void WorkCrew::help() {
  std::unique_lock lock(mutex_);
  for (;;) {
    arrived_.wait(lock, [this] { return closed_ || !jobs_.empty(); });
    if (closed_) return;
    Job* job = jobs_.front();
    if (job->next_ < job->count_) {
      ++busy_;
      job->run_one(lock);
      --busy_;
    } else {
      jobs_.pop_front();  // nothing is left of it to begin
    }
  }
}

WorkCrew::Job::Job(WorkCrew& crew, std::int64_t count, std::function<void(std::int64_t)> piece)
    : crew_(crew), piece_(std::move(piece)), count_(count) {
  if (crew_.helpers_ == 0 || count_ == 0) return;  // finish() does it
  {
    const std::lock_guard lock(crew_.mutex_);
    crew_.jobs_.push_back(this);
    crew_.start_threads();
  }
  crew_.arrived_.notify_all();
}

WorkCrew::Job::~Job() {
  std::unique_lock lock(crew_.mutex_);
  next_ = count_;
  leave(lock);
}

void WorkCrew::Job::finish() {
  std::unique_lock lock(crew_.mutex_);
  while (next_ < count_) run_one(lock);
  leave(lock);
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

/// Nobody knows of this job any more, or runs a piece of it.
void WorkCrew::Job::leave(std::unique_lock<std::mutex>& lock) noexcept {
  std::erase(crew_.jobs_, this);
  done_.wait(lock, [this] { return running_ == 0; });
}

/// Runs one piece; the lock is held before and after.
void WorkCrew::Job::run_one(std::unique_lock<std::mutex>& lock) {
  const std::int64_t i = next_++;
  ++running_;
  lock.unlock();
  std::exception_ptr thrown;
  try {
    piece_(i);
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  if (thrown) next_ = count_;
  if (thrown && !failure_) failure_ = thrown;
  if (--running_ == 0 && next_ >= count_) done_.notify_all();
}

std::int64_t blocks_of(std::int64_t count) noexcept { return (count + kBlock - 1) / kBlock; }

void for_blocks(WorkCrew& crew, std::int64_t count,
                const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit) {
  crew.share(blocks_of(count), [&](std::int64_t block) {
    visit(block * kBlock, std::min(count, (block + 1) * kBlock), block);
  });
}

}  // namespace strata
