// WorkCrew: every piece once, by several threads, and what happens when one fails.

#include "base/work_crew.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <thread>

#include "base/check.hpp"

namespace strata::test {
namespace {

TEST(WorkCrew, DoesEachPieceOnceForSeveralAtOnce) {
  WorkCrew crew(3);
  std::vector<std::vector<int>> done(4, std::vector<int>(501));
  std::vector<std::jthread> bringers;
  for (std::size_t b = 0; b < done.size(); ++b) {
    bringers.emplace_back([&, b] {
      for (int round = 0; round < 20; ++round) {
        crew.share(501, [&](std::int64_t i) { ++done[b][static_cast<std::size_t>(i)]; });
        for (const int times : done[b]) ASSERT_EQ(times, round + 1) << "not done on return";
      }
    });
  }
}

TEST(WorkCrew, WorksBesideTheCaller) {
  WorkCrew crew(2);
  std::mutex mutex;
  std::condition_variable changed;
  int together = 0;
  bool met = true;
  crew.share(3, [&](std::int64_t) {
    std::unique_lock lock(mutex);
    ++together;
    changed.notify_all();
    met &= changed.wait_for(lock, std::chrono::seconds(5), [&] { return together == 3; });
  });
  EXPECT_TRUE(met) << "three pieces were not under way at once";
}

TEST(WorkCrew, PiecesThatBringTwoAtATimeAreWorkForAll) {
  WorkCrew crew(7);
  std::mutex mutex;
  std::condition_variable changed;
  int together = 0;
  bool met = true;
  const std::function<void(int)> halve = [&](int depth) {
    if (depth < 3) {
      crew.share(2, [&](std::int64_t) { halve(depth + 1); });
      return;
    }
    std::unique_lock lock(mutex);
    ++together;
    changed.notify_all();
    met &= changed.wait_for(lock, std::chrono::seconds(5), [&] { return together == 8; });
  };
  halve(0);
  EXPECT_TRUE(met) << "the eight leaves of a recursion were not under way at once";
}

TEST(WorkCrew, BlocksHaveEachElementOnceWhateverTheThreads) {
  for (const std::int64_t count : {0, 1, 8191, 8192, 8193, 100'000}) {
    std::vector<std::int64_t> expected;
    for (const int helpers : {0, 1, 2, 7}) {
      WorkCrew crew(helpers);
      std::vector<std::int64_t> block_of(static_cast<std::size_t>(count), -1);
      for_blocks(crew, count, [&](std::int64_t begin, std::int64_t end, std::int64_t block) {
        ASSERT_LT(block, blocks_of(count));
        for (std::int64_t i = begin; i < end; ++i) {
          std::int64_t& owner = block_of[static_cast<std::size_t>(i)];
          EXPECT_EQ(owner, -1) << "element " << i << " twice";
          owner = block;
        }
      });
      EXPECT_EQ(std::count(block_of.begin(), block_of.end(), -1), 0) << count;
      if (helpers == 0) expected = block_of;
      EXPECT_EQ(block_of, expected) << count;
    }
  }
}

TEST(WorkCrew, PassesOnAFailureAndLivesOn) {
  for (const int helpers : {0, 3}) {
    WorkCrew crew(helpers);
    std::atomic<int> begun = 0;
    const auto failing = [&](std::int64_t i) {
      ++begun;
      if (i == 10) fail(ErrorKind::input, "test", "piece {}", i);
    };
    EXPECT_THROW(crew.share(100'000, failing), Error);
    EXPECT_LT(begun, 100'000);
    std::atomic<int> sum = 0;
    crew.share(100, [&](std::int64_t i) { sum += static_cast<int>(i); });
    EXPECT_EQ(sum, 4950);
    crew.share(0, failing);
  }
}

TEST(WorkCrew, ABroughtJobIsBegunWhileItsBringerDoesSomethingElse) {
  WorkCrew crew(2);
  std::mutex mutex;
  std::condition_variable changed;
  int done = 0;
  WorkCrew::Job job(crew, 5, [&](std::int64_t) {
    const std::lock_guard lock(mutex);
    ++done;
    changed.notify_all();
  });
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, std::chrono::seconds(5), [&] { return done == 5; }));
  }
  job.finish();
  EXPECT_EQ(done, 5);
}

TEST(WorkCrew, SeveralJobsAtATimeAreDoneEachOnceAndOneMayFail) {
  for (const int helpers : {0, 1, 3}) {
    WorkCrew crew(helpers);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::vector<std::atomic<int>>> done(4);
      std::deque<WorkCrew::Job> jobs;
      for (std::size_t k = 0; k < done.size(); ++k) {
        done[k] = std::vector<std::atomic<int>>(30);
        jobs.emplace_back(crew, 30, [&done, k](std::int64_t i) {
          ++done[k][static_cast<std::size_t>(i)];
          if (k == 2 && i == 3) fail(ErrorKind::input, "test", "piece {}", i);
        });
      }
      for (std::size_t k = 0; k < done.size(); ++k) {
        if (k == 2) {
          EXPECT_THROW(jobs[k].finish(), Error);
          continue;
        }
        jobs[k].finish();
        for (const std::atomic<int>& times : done[k]) ASSERT_EQ(times, 1);
      }
    }
  }
}

TEST(WorkCrew, AJobThatIsGivenUpEndsWithWhatWasBegun) {
  for (const int helpers : {0, 3}) {
    WorkCrew crew(helpers);
    std::atomic<int> begun = 0;
    std::atomic<int> ended = 0;
    {
      const WorkCrew::Job job(crew, 100'000, [&](std::int64_t) {
        ++begun;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        ++ended;
      });
      if (helpers > 0)
        while (begun == 0) std::this_thread::yield();
    }
    EXPECT_LT(begun, 100'000);
    EXPECT_EQ(begun, ended) << "not waited for";
  }
}

}  // namespace
}  // namespace strata::test
