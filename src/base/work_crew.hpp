#pragma once
// WorkCrew: a few threads that share pieces of work with whoever brings some.
//
// Contract: several threads may bring work at once. Threads are started when first needed.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace strata {

class WorkCrew {
 public:
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
  struct Batch;
  void help();
  void start_threads();

  int helpers_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Batch*> batches_;  // that have pieces left
  std::int64_t busy_ = 0;       // threads of the crew that run a piece
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

/// Calls visit(begin, end, block) for blocks of 0 … count − 1, which depend on count alone.
void for_blocks(WorkCrew& crew, std::int64_t count,
                const std::function<void(std::int64_t, std::int64_t, std::int64_t)>& visit);
[[nodiscard]] std::int64_t blocks_of(std::int64_t count) noexcept;

}  // namespace strata
