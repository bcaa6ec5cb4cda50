#pragma once
// Binary files with a version and a checksum.
//
// Contract: a line of text that names the format, then numbers as the machine that wrote them has
// them (a word tells the byte order), then XXH3 (64 bits) of all before. Arrays are preceded by
// their lengths, which are checked against the length of the file before anything is allocated. A
// file is whole or absent. Errors are Error{storage} for writing, Error{input} for reading, and
// name the file.

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.hpp"
#include "base/output_file.hpp"

namespace strata {

struct FileFormat {
  const char* name;  ///< what a file holds: "analysis"
  int version;
  const char* where;  ///< of errors

  [[nodiscard]] std::string prefix() const { return std::string("strata ") + name + " "; }
  [[nodiscard]] std::string line() const { return prefix() + std::to_string(version) + "\n"; }
};

inline constexpr std::uint64_t kFileByteOrder = 0x0102030405060708;

class ChecksumWriter {
 public:
  ChecksumWriter(const std::string& path, const FileFormat& format) : file_(path) {
    XXH3_64bits_reset(&hash_);
    write(format.line());
    add(kFileByteOrder);
  }
  template <class T>
  void add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    write({reinterpret_cast<const char*>(&value), sizeof value});
  }
  template <class T>
  void add(const std::vector<T>& values) {
    add(static_cast<std::uint64_t>(values.size()));
    add_all(std::span<const T>(values));
  }
  /// Without their number.
  template <class T>
  void add_all(std::span<const T> values) {
    write({reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }
  void finish() {
    complete();
    publish();
  }
  /// The same in two steps, for files that belong together.
  void complete() {
    add(static_cast<std::uint64_t>(XXH3_64bits_digest(&hash_)));
    file_.complete();
  }
  void publish() { file_.publish(); }

 private:
  void write(std::string_view bytes) {
    XXH3_64bits_update(&hash_, bytes.data(), bytes.size());
    file_.write(bytes);
  }
  OutputFile file_;
  XXH3_state_t hash_{};
};

class ChecksumReader {
 public:
  ChecksumReader(const std::string& path, const FileFormat& format)
      : path_(path), where_(format.where) {
    // Looked at before it is opened: to open a pipe waits for its writer.
    std::error_code error;
    if (std::filesystem::is_regular_file(path, error)) file_.open(path, std::ios::binary);
    require(file_.is_open(), ErrorKind::input, where_, "cannot read '{}'", path);
    left_ = static_cast<std::int64_t>(std::filesystem::file_size(path));
    XXH3_64bits_reset(&hash_);
    const std::string line = format.line();
    std::string found(line.size(), '\0');
    if (left_ >= std::ssize(found)) take(found.data(), found.size());
    require(found.starts_with(format.prefix()), ErrorKind::input, where_, "'{}' is no {}", path,
            format.name);
    require(found == line, ErrorKind::input, where_,
            "'{}' holds the {} of another version of this program: make it again", path,
            format.name);
    std::uint64_t order = 0;
    read(order);
    require(order == kFileByteOrder, ErrorKind::input, where_,
            "'{}' was written by a machine with another byte order", path);
  }
  template <class T>
  void read(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    take(reinterpret_cast<char*>(&value), sizeof value);
  }
  template <class T>
  void read(std::vector<T>& values) {
    std::uint64_t count = 0;
    read(count);
    require(count <= static_cast<std::uint64_t>(left_) / sizeof(T), ErrorKind::input, where_,
            "'{}' is truncated: {} numbers announced, {} bytes left", path_, count, left_);
    values.resize(count);
    read_all(std::span<T>(values));
  }
  /// As many as there is room for.
  template <class T>
  void read_all(std::span<T> values) {
    take(reinterpret_cast<char*>(values.data()), values.size_bytes());
  }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Bytes of the file that were not read yet, the checksum's among them.
  [[nodiscard]] std::int64_t left() const noexcept { return left_; }
  void finish() {
    const std::uint64_t computed = XXH3_64bits_digest(&hash_);
    std::uint64_t stored = 0;
    read(stored);
    require(left_ == 0, ErrorKind::input, where_, "'{}' is damaged: {} bytes are behind its end",
            path_, left_);
    require(stored == computed, ErrorKind::input, where_,
            "'{}' is damaged: its checksum is {:016x}, that of its content {:016x}", path_, stored,
            computed);
  }

 private:
  void take(char* to, std::size_t bytes) {
    const bool enough = static_cast<std::int64_t>(bytes) <= left_;
    if (enough) file_.read(to, static_cast<std::streamsize>(bytes));
    require(enough && file_.good(), ErrorKind::input, where_, "'{}' is truncated", path_);
    left_ -= static_cast<std::int64_t>(bytes);
    XXH3_64bits_update(&hash_, to, bytes);
  }
  std::string path_;
  const char* where_;
  std::ifstream file_;
  std::int64_t left_ = 0;
  XXH3_state_t hash_{};
};

}  // namespace strata
