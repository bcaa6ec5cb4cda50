#pragma once
// FileIo: many ranges of files read and written at once.
//
// Contract: `carry_out` returns when all requests have ended, whether they did well or not, so that
// their memory may go; it throws the failure of the first of them, in their order, that failed.
// Several threads may call it at once. Requests of one call must not overlap where one writes.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "store/files.hpp"

namespace strata {

struct FileRequest {
  File* file = nullptr;
  std::int64_t offset = 0;
  std::byte* data = nullptr;  ///< only read from where `writes`
  std::int64_t bytes = 0;
  bool writes = false;
};

class FileIo {
 public:
  FileIo() = default;
  FileIo(const FileIo&) = delete;
  FileIo& operator=(const FileIo&) = delete;
  virtual ~FileIo() = default;

  /// `ended`, if given, is called once for each request that did well, by any thread, while others
  /// are under way; it does not throw.
  virtual void carry_out(std::span<const FileRequest> requests,
                         const std::function<void(std::size_t)>& ended = nullptr) = 0;
  /// "io_uring", or how else and why: "4 threads (io_uring: Operation not permitted)".
  [[nodiscard]] virtual const std::string& how() const = 0;
};

/// By so many threads, with pread and pwrite; `why_not_uring` goes into how().
[[nodiscard]] std::unique_ptr<FileIo> make_threaded_io(int threads,
                                                       const std::string& why_not_uring = {});
/// By io_uring where the system allows it, else by threads. Files without a descriptor are always
/// read and written by the calling thread.
[[nodiscard]] std::unique_ptr<FileIo> make_file_io();

}  // namespace strata
