// HostDevice: queues are worker threads, events are completion counters.
//
// Method: a queue counts the work that it has finished; an event is a number that the count must
// reach. Waiting for an event of another queue is itself a piece of work, which blocks the waiting
// queue's thread on the other queue's condition variable. As events exist only once recorded, the
// waits form no cycle.
//
// An event remembers whether its queue was skipping work when it came by. Whoever waits for such an
// event skips, too, and takes over the failure: kernels here go by the indices that they find in
// memory, and what was not copied may be any.

#include "device/device_host.hpp"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <fstream>
#include <mutex>
#include <new>
#include <thread>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/host_memory.hpp"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;

/// Pages: what files read and write past the page cache.
constexpr std::align_val_t kAlignment{4096};

/// The progress of one queue. Shared by the queue and its events, so that an event may outlive the
/// queue.
struct Progress {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t done = 0;
};

/// How a queue came by an event. Written by the thread of the queue before the event is done.
struct Stamp {
  std::atomic<double> seconds = 0;
  bool skips = false;  ///< work before it was skipped
  std::exception_ptr failure;
};

class HostEvent final : public Event::State {
 public:
  explicit HostEvent(std::shared_ptr<Progress> progress)
      : progress_(std::move(progress)), stamp_(std::make_shared<Stamp>()) {}

  [[nodiscard]] bool done() const override {
    const std::lock_guard lock(progress_->mutex);
    return progress_->done >= target;
  }
  void wait() const override { wait_for(*progress_, target); }
  [[nodiscard]] double seconds() const override { return stamp_->seconds.load(); }

  static void wait_for(Progress& progress, std::uint64_t target) {
    std::unique_lock lock(progress.mutex);
    progress.changed.wait(lock, [&] { return progress.done >= target; });
  }

  [[nodiscard]] const std::shared_ptr<Progress>& progress() const { return progress_; }
  [[nodiscard]] const std::shared_ptr<Stamp>& stamp() const { return stamp_; }

  std::uint64_t target = 0;  ///< the count that the queue must reach

 private:
  std::shared_ptr<Progress> progress_;
  std::shared_ptr<Stamp> stamp_;
};

class HostQueue final : public Queue {
 public:
  explicit HostQueue(Clock::time_point epoch)
      : epoch_(epoch), progress_(std::make_shared<Progress>()), worker_([this] { work(); }) {}

  ~HostQueue() override {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    arrived_.notify_one();
    worker_.join();
  }

  void copy(void* destination, const void* source, std::int64_t bytes, CopyDirection) override {
    if (bytes <= 0) return;  // and the addresses may be null, which memcpy does not take
    put([=] { std::memcpy(destination, source, static_cast<std::size_t>(bytes)); }, true);
  }
  void submit(std::function<void()> function) override { put(std::move(function), true); }

  Event record() override {
    auto event = std::make_unique<HostEvent>(progress_);
    event->target = put([this, stamp = event->stamp()] { come_by(*stamp); }, false);
    return Event(std::move(event));
  }

  void wait(const Event& event) override {
    const auto* other = static_cast<const HostEvent*>(event.state());
    if (other == nullptr || other->progress() == progress_) return;
    if (other->done() && !other->stamp()->skips) return;
    put(
        [this, progress = other->progress(), target = other->target, stamp = other->stamp()] {
          HostEvent::wait_for(*progress, target);
          if (stamp->skips) skip_behind(*stamp);
        },
        false);
  }

  void synchronize() override {
    HostEvent::wait_for(*progress_, submitted_);
    std::exception_ptr failure;
    {
      const std::lock_guard lock(mutex_);
      failure = std::exchange(failure_, nullptr);
      failed_ = false;
      abandoned_ = false;
    }
    if (failure) std::rethrow_exception(failure);
  }

  void abandon() override { abandoned_ = true; }
  [[nodiscard]] bool failed() const override { return failed_; }

 private:
  struct Work {
    std::function<void()> function;
    bool skippable;  // stamps and waits are not: no waiting thread may hang
  };

  std::uint64_t put(std::function<void()> function, bool skippable) {
    {
      const std::lock_guard lock(mutex_);
      pending_.push_back({std::move(function), skippable});
    }
    arrived_.notify_one();
    return ++submitted_;
  }

  void work() {
    for (;;) {
      Work work;
      {
        std::unique_lock lock(mutex_);
        arrived_.wait(lock, [this] { return closed_ || !pending_.empty(); });
        if (pending_.empty()) return;
        work = std::move(pending_.front());
        pending_.pop_front();
      }
      if (!work.skippable || !skips()) perform(work);
      work.function = nullptr;  // what it holds is released before the work counts as done
      {
        const std::lock_guard lock(progress_->mutex);
        ++progress_->done;
      }
      progress_->changed.notify_all();
    }
  }

  void perform(const Work& work) {
    try {
      work.function();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      failed_ = true;
    }
  }

  [[nodiscard]] bool skips() const { return failed_ || abandoned_; }

  void come_by(Stamp& stamp) {
    stamp.seconds = std::chrono::duration<double>(Clock::now() - epoch_).count();
    const std::lock_guard lock(mutex_);
    stamp.skips = skips();
    stamp.failure = failure_;
  }

  void skip_behind(const Stamp& stamp) {
    const std::lock_guard lock(mutex_);
    if (stamp.failure && !failure_) failure_ = stamp.failure;
    failed_ = failed_ || stamp.failure != nullptr;
    abandoned_ = true;
  }

  Clock::time_point epoch_;
  std::shared_ptr<Progress> progress_;
  std::uint64_t submitted_ = 0;  // touched by the submitting thread alone
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Work> pending_;
  std::exception_ptr failure_;
  std::atomic<bool> failed_ = false;
  std::atomic<bool> abandoned_ = false;
  bool closed_ = false;
  std::thread worker_;  // last: it uses all of the above
};

/// What is handed out. Shared with the buffers, which give their bytes back.
struct Account {
  std::mutex mutex;
  std::int64_t allocated = 0;
  std::int64_t peak = 0;
};

std::byte* allocate_aligned(std::int64_t bytes) {
  return static_cast<std::byte*>(
      ::operator new(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1)), kAlignment));
}
void release_aligned(std::byte* data) { ::operator delete(data, kAlignment); }

class HostDevice final : public Device {
 public:
  HostDevice(int index, std::int64_t budget_bytes)
      : description_(describe_host()),
        budget_(budget_bytes),
        account_(std::make_shared<Account>()) {
    description_.name = fmt::format("host:{}", index);
  }

  [[nodiscard]] const DeviceDescription& description() const override { return description_; }
  [[nodiscard]] std::int64_t budget_bytes() const override { return budget_; }
  [[nodiscard]] std::int64_t allocated_bytes() const override {
    const std::lock_guard lock(account_->mutex);
    return account_->allocated;
  }
  [[nodiscard]] std::int64_t peak_allocated_bytes() const override {
    const std::lock_guard lock(account_->mutex);
    return account_->peak;
  }

  Buffer allocate(std::int64_t bytes) override {
    require(bytes >= 0, ErrorKind::misuse, "device", "{}: {} bytes were asked for",
            description_.name, bytes);
    const std::lock_guard lock(account_->mutex);
    const std::int64_t left = budget_ - account_->allocated;
    require(bytes <= left, ErrorKind::memory, "device", "{}: {} asked, {} left of a budget of {}",
            description_.name, format_bytes(bytes), format_bytes(left), format_bytes(budget_));
    std::byte* data = obtain(bytes);
    account_->allocated += bytes;
    account_->peak = std::max(account_->peak, account_->allocated);
    return {data, bytes, [account = account_, bytes](std::byte* memory) {
              release_aligned(memory);
              const std::lock_guard inner(account->mutex);
              account->allocated -= bytes;
            }};
  }

  Buffer allocate_host(std::int64_t bytes) override {
    return {obtain(bytes), bytes, release_aligned};
  }

  Buffer pin_host(std::byte* data, std::int64_t bytes) override {
    return {data, bytes, [](std::byte*) {}};  // a copy from here is a copy from anywhere
  }

  std::unique_ptr<Queue> make_queue(QueuePriority) override {
    return std::make_unique<HostQueue>(epoch_);
  }

 private:
  [[nodiscard]] std::byte* obtain(std::int64_t bytes) const {
    try {
      return allocate_aligned(bytes);
    } catch (const std::bad_alloc&) {
      fail(ErrorKind::memory, "device", "{}: the system refused {}; {} are free", description_.name,
           format_bytes(bytes), format_bytes(available_host_memory()));
    }
  }

  DeviceDescription description_;
  std::int64_t budget_;
  std::shared_ptr<Account> account_;
  Clock::time_point epoch_ = Clock::now();
};

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "CPU";
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

}  // namespace

std::unique_ptr<Device> make_host_device(int index, std::int64_t budget_bytes) {
  require(budget_bytes >= 0, ErrorKind::misuse, "device", "a budget cannot be {} bytes",
          budget_bytes);
  return std::make_unique<HostDevice>(index, budget_bytes);
}

DeviceDescription describe_host() {
  static const std::string model = cpu_model();
  return {"host:0", model, available_host_memory(), usable_cores()};
}

}  // namespace strata
