#pragma once
// Whole files in, whole files out.
//
// Contract: FileBytes is the content of one file, unpacked if it is gzipped, either mapped or held
// in memory. What is written goes through OutputFile (base/output_file.hpp). Destructors never
// throw.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/output_file.hpp"
#include "io/gzip.hpp"

namespace strata {

class FileBytes {
 public:
  /// Takes bytes that are in memory already; `name` stands for the path in messages.
  FileBytes(std::string bytes, std::string name);
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&&) = delete;
  FileBytes(const FileBytes&) = delete;  // may own a mapping
  FileBytes& operator=(const FileBytes&) = delete;
  ~FileBytes();

  /// Reads the file into memory and unpacks it if it is gzipped. Throws Error{input, memory}.
  static FileBytes read(const std::string& path);
  /// Maps the file read-only where that is possible, else as read(). Throws Error{input, memory}.
  static FileBytes map(const std::string& path);
  /// The same file as a text in UTF-8, where it is one in UTF-16. Throws Error{input, memory}.
  [[nodiscard]] static FileBytes as_text(FileBytes file);

  [[nodiscard]] std::string_view bytes() const noexcept {
    return mapping_ != nullptr ? std::string_view(mapping_, mapping_bytes_) : held_;
  }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] bool mapped() const noexcept { return mapping_ != nullptr; }

 private:
  std::string held_;
  std::string name_;
  const char* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
};

/// A file to be written, compressed if its name ends in .gz. Throws Error{storage}.
[[nodiscard]] OutputFile open_output(const std::string& path);

}  // namespace strata
