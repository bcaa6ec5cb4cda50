// Sites of devices: what of them outlives the calls, and what may not outlive the process.

#include "run/device_site.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <span>
#include <thread>
#include <vector>

namespace strata {
namespace {

std::ptrdiff_t threads_of_this_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

DeviceSite& site_of_the_host(std::vector<double>& memory) {
  const PlacedMatrix matrix =
      placed(MatrixView<double>{memory.data(), std::ssize(memory), 1, std::ssize(memory)}, "test");
  return choose_site("host:1", std::span(&matrix, 1), "test");
}

std::ptrdiff_t threads_before = 0;

TEST(DeviceSite, IsKeptFromCallToCall) {
  std::vector<double> memory(4);
  DeviceSite& first = site_of_the_host(memory);
  EXPECT_EQ(&first, &site_of_the_host(memory));
  EXPECT_NE(first.queue, nullptr);
}

TEST(DeviceSiteDeathTest, OfTheHostLeavesNoThreadToTheEndOfTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto body = [] {
    std::thread([] {}).join();  // behind the first one sanitizers have one of their own
    threads_before = threads_of_this_process();
    // Run behind the destructors of what the process makes from here on.
    std::atexit([] {
      // The kernel may show a thread for a moment after it was joined.
      const auto last = std::chrono::steady_clock::now() + std::chrono::seconds(10);
      while (threads_of_this_process() > threads_before && std::chrono::steady_clock::now() < last)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      _exit(threads_of_this_process() == threads_before ? 0 : 3);
    });
    std::vector<double> memory(4);
    site_of_the_host(memory);
    if (threads_of_this_process() == threads_before) _exit(2);  // there is nothing to end
    std::exit(1);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strata
