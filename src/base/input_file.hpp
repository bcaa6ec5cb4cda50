#pragma once
// Files that are read whole.
//
// Contract: a regular file, a pipe or a terminal, whose ends come; a directory and a device, which
// may have none, are refused. Errors are Error{input}, from `where`, and name the path.

#include <sys/stat.h>

#include <cstddef>
#include <string>

namespace strata {

class InputFile {
 public:
  explicit InputFile(std::string path, const char* where = "file");
  InputFile(const InputFile&) = delete;  // owns a descriptor
  InputFile& operator=(const InputFile&) = delete;

  /// The length of a regular file, 0 for anything else.
  [[nodiscard]] std::size_t length() const;
  /// Reads until the end, whatever the length was said to be.
  [[nodiscard]] std::string read_all() const;
  /// A private mapping of length() bytes for reading, which the caller unmaps; null if this file
  /// cannot be mapped.
  [[nodiscard]] const char* map() const;

 private:
  // A member, so that it is closed also when the constructor throws.
  struct Descriptor {
    explicit Descriptor(int descriptor) : value(descriptor) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor();
    int value;
  };
  [[noreturn]] void fail_errno(int reason) const;

  std::string path_;
  const char* where_;
  Descriptor descriptor_;
  struct stat status_ {};
};

/// For a file that will be written as well: that it is regular, or not there.
void require_regular_or_absent(const std::string& path, const char* where);

}  // namespace strata
