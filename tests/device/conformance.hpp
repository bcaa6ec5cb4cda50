#pragma once
// What every Device, Queue, Event and Buffer promises, as a test suite.
//
// Contract: written against device.hpp alone; instantiate it with a name and a function that makes
// device `index` (0 or 1, which are to exist side by side) with a budget.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "device/device.hpp"
#include "strata/error.hpp"

namespace strata::testing {

struct DeviceMaker {
  std::string name;
  std::function<std::unique_ptr<Device>(int index, std::int64_t budget_bytes)> make;
  int devices = 2;  ///< how many there are
};

inline void PrintTo(const DeviceMaker& maker, std::ostream* stream) { *stream << maker.name; }

class DeviceConformance : public ::testing::TestWithParam<DeviceMaker> {
 protected:
  [[nodiscard]] static std::unique_ptr<Device> make(std::int64_t budget = 1_MiB, int index = 0) {
    return GetParam().make(index, budget);
  }
  /// A gate that work waits at until it is opened.
  struct Gate {
    std::promise<void> promise;
    std::shared_future<void> opened = promise.get_future().share();
    [[nodiscard]] std::function<void()> pass() const {
      return [gate = opened] { gate.wait(); };
    }
    void open() { promise.set_value(); }
  };
  static void throw_storage_error() { throw Error(ErrorKind::storage, "test", "no such sector"); }
  /// The message of the failure that synchronize throws, "" if it throws none.
  static std::string failure_of(Queue& queue) {
    try {
      queue.synchronize();
      return "";
    } catch (const std::exception& error) {
      return error.what();
    }
  }
};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);

// ---- memory

TEST_P(DeviceConformance, CountsWhatIsHandedOut) {
  const auto device = make(1000);
  EXPECT_EQ(device->budget_bytes(), 1000);
  {
    const Buffer first = device->allocate(600);
    Buffer second = device->allocate(400);
    EXPECT_EQ(first.bytes(), 600);
    EXPECT_EQ(device->allocated_bytes(), 1000);
    second = Buffer();
    EXPECT_EQ(device->allocated_bytes(), 600);
    EXPECT_EQ(device->peak_allocated_bytes(), 1000);
  }
  EXPECT_EQ(device->allocated_bytes(), 0);
  const Buffer again = device->allocate(1000);
  EXPECT_EQ(device->peak_allocated_bytes(), 1000);
}

TEST_P(DeviceConformance, RefusesWhatExceedsTheBudgetAndNamesIt) {
  const auto device = make(1_MiB);
  const Buffer held = device->allocate(1_MiB - 640);
  try {
    (void)device->allocate(641);
    FAIL() << "one byte too many was handed out";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::memory);
    EXPECT_NE(std::string(error.what()).find(format_bytes(641)), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(format_bytes(640)), std::string::npos) << error.what();
  }
  EXPECT_EQ(device->allocated_bytes(), 1_MiB - 640) << "a refusal takes nothing";
  EXPECT_NO_THROW((void)device->allocate(640));
}

TEST_P(DeviceConformance, AlignsTo256Bytes) {
  const auto device = make();
  std::vector<Buffer> buffers;
  for (const std::int64_t bytes : {1, 3, 255, 257, 4097}) {
    buffers.push_back(device->allocate(bytes));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffers.back().data()) % 256, 0U) << bytes;
  }
}

TEST_P(DeviceConformance, HostMemoryIsWritableAndNotInTheBudget) {
  const auto device = make(16);
  const Buffer host = device->allocate_host(4096);
  std::memset(host.data(), 7, 4096);
  EXPECT_EQ(host.data()[4095], std::byte{7});
  EXPECT_EQ(device->allocated_bytes(), 0);
  EXPECT_EQ(device->peak_allocated_bytes(), 0);
}

TEST_P(DeviceConformance, PinsMemoryThatExistsAndLetsGoOfIt) {
  const auto device = make(16_KiB);
  constexpr std::int64_t n = 12001;
  std::vector<std::byte> memory(n);
  for (std::int64_t i = 0; i < n; ++i) {
    memory[static_cast<std::size_t>(i)] = static_cast<std::byte>(i * 7 % 251);
  }
  const std::vector<std::byte> before = memory;
  const Buffer here = device->allocate(n);
  const auto queue = device->make_queue(QueuePriority::normal);
  for (int i = 0; i < 2; ++i) {  // what was let go of may be pinned again
    const Buffer pinned = device->pin_host(memory.data(), n);
    EXPECT_EQ(pinned.data(), memory.data());
    EXPECT_EQ(pinned.bytes(), n);
    queue->copy(here.data(), memory.data(), n, CopyDirection::host_to_device);
    queue->synchronize();
    std::fill(memory.begin(), memory.end(), std::byte{0});
    queue->copy(memory.data(), here.data(), n, CopyDirection::device_to_host);
    queue->synchronize();
    EXPECT_TRUE(memory == before);
  }
  EXPECT_EQ(device->allocated_bytes(), n) << "not in the budget";
  EXPECT_NO_THROW((void)device->pin_host(nullptr, 0));
}

TEST_P(DeviceConformance, ABufferMovesAndReleasesOnce) {
  const auto device = make(100);
  Buffer first = device->allocate(60);
  const std::byte* data = first.data();
  Buffer second = std::move(first);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(device->allocated_bytes(), 60);
  second = device->allocate(40);  // the old 60 go, after the new 40 came
  EXPECT_EQ(device->allocated_bytes(), 40);
  EXPECT_EQ(device->peak_allocated_bytes(), 100);
}

TEST_P(DeviceConformance, TwoDevicesKeepSeparateAccounts) {
  if (GetParam().devices < 2) GTEST_SKIP() << "one device";
  const auto first = make(100, 0);
  const auto second = make(50, 1);
  EXPECT_NE(first->description().name, second->description().name);
  const Buffer a = first->allocate(100);
  const Buffer b = second->allocate(50);
  EXPECT_THROW((void)second->allocate(1), Error);
  EXPECT_EQ(first->allocated_bytes(), 100);
  EXPECT_EQ(second->allocated_bytes(), 50);
}

// ---- order

TEST_P(DeviceConformance, CopiesThereAndBack) {
  const auto device = make(64_KiB);
  constexpr std::int64_t n = 4001;  // odd bytes on purpose
  const Buffer in = device->allocate_host(n);
  const Buffer out = device->allocate_host(n);
  const Buffer here = device->allocate(n);
  const Buffer there = device->allocate(n);
  for (std::int64_t i = 0; i < n; ++i) in.data()[i] = static_cast<std::byte>(i * 7 % 251);
  const auto queue = device->make_queue(QueuePriority::normal);
  queue->copy(here.data(), in.data(), n, CopyDirection::host_to_device);
  queue->copy(there.data(), here.data(), n, CopyDirection::device_to_device);
  queue->copy(out.data(), there.data(), n, CopyDirection::device_to_host);
  queue->synchronize();
  EXPECT_EQ(std::memcmp(in.data(), out.data(), n), 0);
}

TEST_P(DeviceConformance, CopiesOfNothingNeedNoMemory) {
  const auto device = make(64_KiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  for (const CopyDirection direction :
       {CopyDirection::host_to_device, CopyDirection::device_to_host}) {
    queue->copy(nullptr, nullptr, 0, direction);
  }
  EXPECT_NO_THROW(queue->synchronize());
}

TEST_P(DeviceConformance, CopiesBetweenDevices) {
  if (GetParam().devices < 2) GTEST_SKIP() << "one device";
  const auto first = make(4_KiB, 0);
  const auto second = make(4_KiB, 1);
  const Buffer in = first->allocate_host(1000);
  const Buffer out = second->allocate_host(1000);
  for (int i = 0; i < 1000; ++i) in.data()[i] = static_cast<std::byte>(i % 253);
  const Buffer a = first->allocate(1000);
  const Buffer b = second->allocate(1000);
  const auto from = first->make_queue(QueuePriority::normal);
  const auto to = second->make_queue(QueuePriority::high);
  from->copy(a.data(), in.data(), 1000, CopyDirection::host_to_device);
  const Event loaded = from->record();
  to->wait(loaded);
  to->copy(b.data(), a.data(), 1000, CopyDirection::device_to_device);
  to->copy(out.data(), b.data(), 1000, CopyDirection::device_to_host);
  to->synchronize();
  EXPECT_EQ(std::memcmp(in.data(), out.data(), 1000), 0);
}

TEST_P(DeviceConformance, AQueueKeepsItsOrder) {
  const auto device = make();
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<int> seen;  // touched by the queue alone until it is synchronized
  for (int i = 0; i < 500; ++i) queue->submit([&seen, i] { seen.push_back(i); });
  queue->synchronize();
  std::vector<int> expected(500);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(seen, expected);
}

TEST_P(DeviceConformance, CallsReturnBeforeTheWorkIsDone) {
  const auto device = make();
  const auto queue = device->make_queue(QueuePriority::normal);
  Gate gate;
  bool ran = false;
  queue->submit(gate.pass());
  queue->submit([&] { ran = true; });
  const Event event = queue->record();
  EXPECT_FALSE(event.done());  // had a call waited, this line would never be reached
  gate.open();
  event.wait();
  EXPECT_TRUE(event.done());
  EXPECT_TRUE(ran);
}

TEST_P(DeviceConformance, AnEventOrdersTwoQueues) {
  const auto device = make();
  const auto first = device->make_queue(QueuePriority::normal);
  const auto second = device->make_queue(QueuePriority::high);
  Gate gate;
  int value = 0;
  int seen = -1;
  first->submit(gate.pass());
  first->submit([&] { value = 42; });
  const Event written = first->record();
  second->wait(written);
  second->submit([&] { seen = value; });
  const Event read = second->record();
  EXPECT_FALSE(read.done());
  gate.open();
  read.wait();
  EXPECT_EQ(seen, 42);
}

TEST_P(DeviceConformance, AnEventOrdersOnlyWhatComesBeforeIt) {
  const auto device = make();
  const auto first = device->make_queue(QueuePriority::normal);
  const auto second = device->make_queue(QueuePriority::normal);
  const Buffer host = device->allocate_host(1);
  const Buffer memory = device->allocate(1);
  Gate gate;
  const Event early = first->record();
  first->submit(gate.pass());  // after the event: must not hold up the second queue
  second->wait(early);
  // A copy, because functions of two queues may share one thread.
  second->copy(memory.data(), host.data(), 1, CopyDirection::host_to_device);
  const Event copied = second->record();
  copied.wait();
  EXPECT_TRUE(copied.done());
  gate.open();
  first->synchronize();
}

TEST_P(DeviceConformance, TwoQueuesPassABallByEvents) {
  const auto device = make();
  const auto first = device->make_queue(QueuePriority::normal);
  const auto second = device->make_queue(QueuePriority::normal);
  int ball = 0;  // never touched by both at once: the events say who has it
  int faults = 0;
  Event last;
  for (int round = 0; round < 100; ++round) {
    for (Queue* queue : {first.get(), second.get()}) {
      queue->wait(last);
      const int expected = 2 * round + (queue == second.get() ? 1 : 0);
      queue->submit([&, expected] { faults += ball++ == expected ? 0 : 1; });
      last = queue->record();
    }
  }
  last.wait();
  EXPECT_EQ(ball, 200);
  EXPECT_EQ(faults, 0);
}

// ---- events

TEST_P(DeviceConformance, AnEmptyEventIsDone) {
  const auto device = make();
  const Event event;
  EXPECT_TRUE(event.done());
  event.wait();
  const auto queue = device->make_queue(QueuePriority::normal);
  queue->wait(event);
  queue->synchronize();
}

TEST_P(DeviceConformance, TimesOfAQueueDoNotDecrease) {
  const auto device = make();
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Event> events;
  for (int i = 0; i < 20; ++i) {
    queue->submit([] {});
    events.push_back(queue->record());
  }
  queue->synchronize();
  EXPECT_GE(events.front().seconds(), 0);
  for (std::size_t i = 1; i < events.size(); ++i) {
    ASSERT_TRUE(events[i].done());
    EXPECT_GE(events[i].seconds(), events[i - 1].seconds()) << i;
  }
  EXPECT_GT(events.back().seconds(), 0);
}

TEST_P(DeviceConformance, AnEventOutlivesItsQueue) {
  const auto device = make();
  Event event;
  std::atomic<int> runs = 0;
  {
    const auto queue = device->make_queue(QueuePriority::normal);
    for (int i = 0; i < 50; ++i) queue->submit([&] { ++runs; });
    event = queue->record();
  }
  EXPECT_EQ(runs, 50) << "a queue finishes what it was given before it goes";
  EXPECT_TRUE(event.done());
  event.wait();
}

TEST_P(DeviceConformance, WhatAFunctionHoldsIsReleased) {
  const auto device = make();
  const auto queue = device->make_queue(QueuePriority::normal);
  const auto held = std::make_shared<int>(1);
  queue->submit([held] {});
  queue->submit(throw_storage_error);
  queue->submit([held] {});  // skipped
  EXPECT_NE(failure_of(*queue), "");
  EXPECT_EQ(held.use_count(), 1);
}

// ---- failure

TEST_P(DeviceConformance, AFailureSkipsLaterWorkAndIsThrownOnce) {
  const auto device = make();
  const auto queue = device->make_queue(QueuePriority::normal);
  bool before = false;
  bool after = false;
  queue->submit([&] { before = true; });
  queue->submit(throw_storage_error);
  queue->submit([&] { after = true; });
  queue->submit([] { throw Error(ErrorKind::storage, "test", "a second failure"); });
  const Event event = queue->record();
  event.wait();  // completes all the same
  EXPECT_TRUE(queue->failed());
  queue->submit([&] { after = true; });
  try {
    queue->synchronize();
    FAIL() << "the failure was lost";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::storage);
    EXPECT_STREQ(error.what(), "no such sector");
  }
  EXPECT_TRUE(before);
  EXPECT_FALSE(after);
  EXPECT_FALSE(queue->failed());
  EXPECT_EQ(failure_of(*queue), "");
  queue->submit([&] { after = true; });  // usable again
  queue->synchronize();
  EXPECT_TRUE(after);
}

TEST_P(DeviceConformance, AFailureSkipsCopiesThatFollow) {
  const auto device = make();
  const auto queue = device->make_queue(QueuePriority::normal);
  const Buffer host = device->allocate_host(2);
  const Buffer memory = device->allocate(1);
  host.data()[0] = std::byte{1};
  host.data()[1] = std::byte{2};
  queue->copy(memory.data(), host.data(), 1, CopyDirection::host_to_device);
  queue->submit(throw_storage_error);
  queue->record().wait();
  ASSERT_TRUE(queue->failed());
  queue->copy(memory.data(), host.data() + 1, 1, CopyDirection::host_to_device);
  EXPECT_EQ(failure_of(*queue), "no such sector");
  queue->copy(host.data() + 1, memory.data(), 1, CopyDirection::device_to_host);
  queue->synchronize();
  EXPECT_EQ(host.data()[1], std::byte{1});
}

TEST_P(DeviceConformance, AFailureHangsNobody) {
  const auto device = make();
  const auto bad = device->make_queue(QueuePriority::normal);
  const auto good = device->make_queue(QueuePriority::normal);
  bad->submit(throw_storage_error);
  bad->submit([] {});
  const Event event = bad->record();
  good->wait(event);
  bool ran = false;
  good->submit([&] { ran = true; });
  const std::string of_good = failure_of(*good);
  EXPECT_EQ(of_good, ran ? "" : "no such sector") << "it ran, or says why it did not";
  EXPECT_FALSE(good->failed());
  EXPECT_EQ(failure_of(*bad), "no such sector");
  ran = false;
  good->submit([&] { ran = true; });  // usable again
  good->synchronize();
  EXPECT_TRUE(ran);
}

TEST_P(DeviceConformance, AnUnreadFailureDiesWithItsQueue) {
  const auto device = make();
  const auto queue = device->make_queue(QueuePriority::normal);
  queue->submit(throw_storage_error);
  // no synchronize: the destructor must neither throw nor hang
}

TEST_P(DeviceConformance, AbandonedWorkIsSkippedAndEventsComplete) {
  const auto device = make();
  const auto queue = device->make_queue(QueuePriority::normal);
  Gate gate;
  bool ran = false;
  queue->submit(gate.pass());
  queue->submit([&] { ran = true; });
  const Event event = queue->record();
  queue->abandon();
  gate.open();
  event.wait();
  EXPECT_EQ(failure_of(*queue), "") << "giving up is no failure";
  EXPECT_FALSE(ran);
  queue->submit([&] { ran = true; });  // usable again
  queue->synchronize();
  EXPECT_TRUE(ran);
}

}  // namespace strata::testing
