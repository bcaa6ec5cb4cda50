#pragma once
// Seconds of repeated runs, of which the median counts.

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "base/elapsed_time.hpp"

namespace strata::bench {

using Clock = std::chrono::steady_clock;

struct SparseTiming {
  double seconds = 0;      ///< the median, from the call to the return
  double cpu_seconds = 0;  ///< of all threads of the process, in that run
  std::vector<double> all_seconds;
};

/// CPU time of all threads, in the program and in the kernel.
inline double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Runs of one thing.
class Runs {
 public:
  /// `rested`: threads of a BLAS wait for work by spinning for a while after a call, which would be
  /// part of what comes next.
  template <class Work>
  void time(bool rested, const Work& work) {
    if (rested) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    const double cpu = cpu_seconds();
    const auto begin = Clock::now();
    work();
    const std::chrono::duration<double> wall = Clock::now() - begin;
    seconds_.push_back(std::max(wall.count(), 1e-9));
    cpu_seconds_.push_back(cpu_seconds() - cpu);
  }

  /// The runs of another as one.
  void add_sum_of(const Runs& parts) {
    seconds_.push_back(std::accumulate(parts.seconds_.begin(), parts.seconds_.end(), 0.0));
    cpu_seconds_.push_back(
        std::accumulate(parts.cpu_seconds_.begin(), parts.cpu_seconds_.end(), 0.0));
  }

  [[nodiscard]] SparseTiming timing() const {
    std::vector<std::size_t> order(seconds_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t i, std::size_t j) { return seconds_[i] < seconds_[j]; });
    if (order.empty()) return {};
    const std::size_t middle = order[order.size() / 2];
    return {seconds_[middle], cpu_seconds_[middle], seconds_};
  }

 private:
  std::vector<double> seconds_;
  std::vector<double> cpu_seconds_;
};

}  // namespace strata::bench
