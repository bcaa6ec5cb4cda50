#pragma once
// Output files that are either whole or absent.
//
// Contract: everything goes to a temporary file in the same folder, which commit() renames, so a
// reader sees the old file or the whole new one and a failure leaves nothing behind; without
// commit() the destructor removes it. A symbolic link is followed, permissions are kept; what is
// not a regular file (a pipe, /dev/stdout) is written in place. Errors are Error{storage} and name
// the path; a long file ends with Error{cancelled} where writing is to stop (pending_path.hpp),
// until it is complete on the disk.
// Destructors never throw.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "base/pending_path.hpp"

namespace strata {

class OutputFile {
 public:
  /// Turns bytes into what is stored, e.g. compresses them; `last` ends the stream.
  using Encode = std::function<std::string(std::string_view bytes, bool last)>;

  /// Throws Error{storage} if no file can be made there.
  explicit OutputFile(std::string path, Encode encode = nullptr);
  OutputFile(const OutputFile&) = delete;  // owns a descriptor and a temporary file
  OutputFile& operator=(const OutputFile&) = delete;
  ~OutputFile();

  /// Appends bytes. Throws Error{storage}.
  void write(std::string_view bytes);
  /// In the place of write(): the file as memory, `bytes` of zeros that have their room on the
  /// disk. Without an encoding, once. Throws Error{storage} if there is no room, or if the path is
  /// written in place.
  [[nodiscard]] std::byte* map(std::size_t bytes);
  /// Makes what was written visible under the path. Throws Error{storage}. Nothing may follow.
  void commit();
  /// The same in two steps, for files that belong together: all of them are complete on the disk
  /// before the first one is seen.
  void complete();
  void publish();
  /// The same of the first `bytes` of a file that is mapped.
  void commit_mapped(std::size_t bytes);

 private:
  void open_temporary();
  void write_through(std::string_view bytes);
  void write_raw(std::string_view bytes);
  void flush();
  void unmap() noexcept;
  [[noreturn]] void fail_errno(int reason) const;

  std::string path_;       // as the caller named it
  std::string target_;     // what is replaced: the path, or the file a symbolic link leads to
  PendingPath temporary_;  // empty if the path is written directly
  std::string buffer_;
  Encode encode_;
  std::int64_t pieces_ = 0;  // written so far; a file of more than one is long
  int descriptor_ = -1;
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
};

/// Writes a text file that `write` fills. Throws Error{storage}; what `write` throws passes
/// through.
void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace strata
