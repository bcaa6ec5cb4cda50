// FileIo by io_uring, and by threads.
//
// Method: the kernel takes all requests of a call at once, up to the depth of a ring, and works on
// them as deeply as the disk likes. What comes back short is submitted again for the rest. Each
// call has a ring to itself while it lasts; rings are kept.

#include "store/file_io.hpp"

#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/work_crew.hpp"

namespace strata {
namespace {

constexpr unsigned kDepth = 64;
constexpr int kThreads = 8;

void carry_out_one(const FileRequest& request) {
  if (request.writes)
    request.file->write(request.offset, request.data, request.bytes);
  else
    request.file->read(request.offset, request.data, request.bytes);
}

class ThreadedIo final : public FileIo {
 public:
  ThreadedIo(int threads, const std::string& why_not_uring)
      : crew_(threads - 1),
        how_(why_not_uring.empty()
                 ? fmt::format("{} threads", threads)
                 : fmt::format("{} threads (io_uring: {})", threads, why_not_uring)) {}

  void carry_out(std::span<const FileRequest> requests,
                 const std::function<void(std::size_t)>& ended) override {
    // Each is ended whatever becomes of the others: a failure must leave no request under way.
    std::vector<std::exception_ptr> failures(requests.size());
    crew_.share(std::ssize(requests), [&](std::int64_t i) {
      const auto k = static_cast<std::size_t>(i);
      try {
        carry_out_one(requests[k]);
        if (ended) ended(k);
      } catch (...) {
        failures[k] = std::current_exception();
      }
    });
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
  }
  [[nodiscard]] const std::string& how() const override { return how_; }

 private:
  WorkCrew crew_;
  std::string how_;
};

class Ring {
 public:
  Ring() {
    const int status = ::io_uring_queue_init(kDepth, &ring_, 0);
    if (status < 0) throw std::system_error(-status, std::generic_category());
  }
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;
  ~Ring() { ::io_uring_queue_exit(&ring_); }

  /// Requests of files with descriptors. Failures by their number; what failed short of the kernel
  /// itself is thrown, once nothing is under way.
  void carry_out(std::span<const FileRequest> requests, std::vector<std::exception_ptr>& failures,
                 const std::function<void(std::size_t)>& ended) {
    std::vector<std::size_t> next;  // to be submitted, the first last
    std::vector<std::int64_t> done(requests.size(), 0);
    for (std::size_t i = requests.size(); i-- > 0;)
      if (requests[i].bytes > 0 && requests[i].file->descriptor() >= 0) next.push_back(i);
    std::size_t under_way = 0;  // of them, those that the kernel has been told of:
    std::int64_t in_kernel = 0;
    while (!next.empty() || under_way > 0) {
      while (!next.empty() && under_way < kDepth) {
        submit(requests[next.back()], done[next.back()], next.back());
        next.pop_back();
        ++under_way;
      }
      io_uring_cqe* entry = nullptr;
      int status = ::io_uring_submit_and_wait(&ring_, 1);
      in_kernel += std::max(status, 0);
      if (status == -EINTR || status == -EAGAIN || status == -EBUSY) status = 0;
      if (status >= 0) status = ::io_uring_peek_cqe(&ring_, &entry);
      if (status == -EAGAIN || status == -EINTR) continue;
      if (status < 0) {
        wait_for(in_kernel);
        fail(ErrorKind::storage, "storage", "io_uring: {}",
             std::generic_category().message(-status));
      }
      const auto i = static_cast<std::size_t>(::io_uring_cqe_get_data64(entry));
      const int result = entry->res;
      ::io_uring_cqe_seen(&ring_, entry);
      --under_way;
      --in_kernel;
      if (again(requests[i], done[i], result, failures[i])) {
        next.push_back(i);
      } else if (ended && !failures[i]) {
        // The next ones are under way meanwhile.
        while (!next.empty() && under_way < kDepth) {
          submit(requests[next.back()], done[next.back()], next.back());
          next.pop_back();
          ++under_way;
        }
        in_kernel += std::max(::io_uring_submit(&ring_), 0);
        ended(i);
      }
    }
  }

 private:
  /// The most that the kernel moves by one call is just below 2 GiB.
  static constexpr std::int64_t kBytesMax = std::int64_t{1} << 30;

  /// Until the kernel has ended so many requests, without a call to it that may fail again: it must
  /// not write to memory that the caller has given up.
  void wait_for(std::int64_t requests) {
    io_uring_cqe* entry = nullptr;
    while (requests > 0) {
      if (::io_uring_peek_cqe(&ring_, &entry) == 0) {
        ::io_uring_cqe_seen(&ring_, entry);
        --requests;
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    }
  }

  void submit(const FileRequest& request, std::int64_t done, std::size_t number) {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);  // there is one: no more are under way
    const auto bytes = static_cast<unsigned>(std::min(request.bytes - done, kBytesMax));
    const int descriptor = request.file->descriptor();
    const auto offset = static_cast<std::uint64_t>(request.offset + done);
    if (request.writes)
      ::io_uring_prep_write(entry, descriptor, request.data + done, bytes, offset);
    else
      ::io_uring_prep_read(entry, descriptor, request.data + done, bytes, offset);
    ::io_uring_sqe_set_data64(entry, number);
  }

  /// Whether a request has a rest.
  static bool again(const FileRequest& request, std::int64_t& done, int result,
                    std::exception_ptr& failure) {
    if (result == -EINTR || result == -EAGAIN) return true;
    if (result > 0) {
      done += result;
      // A direct read or write of a rest has to be aligned, too; what is not ends as it can.
      return done < request.bytes;
    }
    const char* what = request.writes ? "write" : "read";
    const std::string why = result < 0       ? std::generic_category().message(-result)
                            : request.writes ? std::generic_category().message(ENOSPC)
                                             : std::string("the file ends there");
    failure = std::make_exception_ptr(
        Error(ErrorKind::storage, "storage",
              fmt::format("{}: cannot {} at byte {}: {}", request.file->path(), what,
                          request.offset + done, why)));
    return false;
  }

  io_uring ring_{};
};

class UringIo final : public FileIo {
 public:
  UringIo() { rings_.push_back(std::make_unique<Ring>()); }

  void carry_out(std::span<const FileRequest> requests,
                 const std::function<void(std::size_t)>& ended) override {
    std::unique_ptr<Ring> ring = take();
    std::vector<std::exception_ptr> failures(requests.size());
    ring->carry_out(requests, failures, ended);
    {
      const std::lock_guard lock(mutex_);
      rings_.push_back(std::move(ring));
    }
    for (std::size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].file->descriptor() < 0) {
        carry_out_one(requests[i]);
        if (ended) ended(i);
      }
      if (failures[i]) std::rethrow_exception(failures[i]);
    }
  }
  [[nodiscard]] const std::string& how() const override { return how_; }

 private:
  std::unique_ptr<Ring> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!rings_.empty()) {
        std::unique_ptr<Ring> ring = std::move(rings_.back());
        rings_.pop_back();
        return ring;
      }
    }
    return std::make_unique<Ring>();
  }

  std::string how_ = "io_uring";
  std::mutex mutex_;
  std::vector<std::unique_ptr<Ring>> rings_;  // that no call has
};

}  // namespace

std::unique_ptr<FileIo> make_threaded_io(int threads, const std::string& why_not_uring) {
  return std::make_unique<ThreadedIo>(std::max(threads, 1), why_not_uring);
}

std::unique_ptr<FileIo> make_file_io() {
  try {
    return std::make_unique<UringIo>();
  } catch (const std::system_error& error) {
    return make_threaded_io(kThreads, error.code().message());
  }
}

}  // namespace strata
