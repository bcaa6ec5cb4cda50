#pragma once
// Journal: records that are durable one after the other.
//
// Contract: a file of records, each with its length, its number, the hash of the one before and its
// own (XXH3, 64 bits). `append` returns when the record is durable; after a failure nothing can be
// appended any more. What a crash left of the last record is dropped when the file is opened; a
// record that is damaged before others is Error{storage}, which names file and offset. Numbers are
// little-endian.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/files.hpp"

namespace strata {

class Journal {
 public:
  /// A new file, whose name is not durable yet.
  [[nodiscard]] static Journal create(FileSystem& files, const std::string& path);
  /// What there is of one.
  [[nodiscard]] static Journal open(FileSystem& files, const std::string& path);
  /// The same, to which nothing can be appended.
  [[nodiscard]] static Journal open_to_read(FileSystem& files, const std::string& path);

  [[nodiscard]] const std::vector<std::string>& records() const noexcept { return records_; }
  /// Forgets the records that `open` has read.
  void let_go_of_records() { std::vector<std::string>().swap(records_); }
  void append(std::string_view record);

 private:
  explicit Journal(std::unique_ptr<File> file) : file_(std::move(file)) {}
  void read_records();

  std::unique_ptr<File> file_;
  std::vector<std::string> records_;
  std::int64_t end_ = 0;         ///< of the last whole record
  std::uint64_t number_ = 0;     ///< of the next
  std::uint64_t last_hash_ = 0;  ///< of the last
  bool failed_ = false;
};

}  // namespace strata
