#pragma once
// WorkCrew: a few threads that share pieces of work with whoever brings some.
//
// Contract: several threads may bring work at once. Threads are started when first needed. Pieces
// that were brought earlier are begun earlier.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace strata {

class WorkCrew {
 public:
  /// Pieces piece(0) … piece(count − 1) that the crew begins while whoever brought them does
  /// something else. Lives until they are done, and no longer than its crew.
  class Job;

  /// `helpers`: threads beside the one that brings work.
  explicit WorkCrew(int helpers) : helpers_(helpers) {}
  WorkCrew(const WorkCrew&) = delete;
  WorkCrew& operator=(const WorkCrew&) = delete;
  ~WorkCrew();

  [[nodiscard]] int helpers() const noexcept { return helpers_; }
  /// Calls piece(0) … piece(count − 1), by the crew and the calling thread, and returns when all
  /// are done. Throws what a piece threw first; pieces that were not begun by then are left.
  void share(std::int64_t count, const std::function<void(std::int64_t)>& piece);

 private:
  void help();
  void start_threads();

  int helpers_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Job*> jobs_;  // that have pieces left
  std::int64_t busy_ = 0;  // threads of the crew that run a piece
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

class WorkCrew::Job {
 public:
  Job(WorkCrew& crew, std::int64_t count, std::function<void(std::int64_t)> piece);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  /// Pieces that were not begun are left; those that were are waited for.
  ~Job();

  /// Does the pieces that no thread has begun, and returns when all are done. Throws what a piece
  /// threw first; pieces that were not begun by then are left.
  void finish();

 private:
  friend class WorkCrew;
  void run_one(std::unique_lock<std::mutex>& lock);
  void leave(std::unique_lock<std::mutex>& lock) noexcept;

  WorkCrew& crew_;
  std::function<void(std::int64_t)> piece_;
  std::int64_t count_;
  std::int64_t next_ = 0;  // this and what follows is guarded by the crew's mutex
  std::int64_t running_ = 0;
  std::exception_ptr failure_;
  std::condition_variable done_;
};

/// Calls visit(begin, end, block) for blocks of 0 … count − 1, which depend on count alone.
void for_blocks(WorkCrew& crew, std::int64_t count,
                const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit);
[[nodiscard]] std::int64_t blocks_of(std::int64_t count) noexcept;

}  // namespace strata
