#include "io/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/check.hpp"
#include "io/text.hpp"

namespace strata {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

// A regular file, a pipe or a device, open for reading.
class InputFile {
 public:
  explicit InputFile(const std::string& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_.value < 0 || ::fstat(descriptor_.value, &status_) != 0) fail_errno(errno);
    if (S_ISDIR(status_.st_mode)) fail_errno(EISDIR);
  }

  // The length of a regular file, 0 for anything else.
  [[nodiscard]] std::size_t length() const {
    return S_ISREG(status_.st_mode) ? static_cast<std::size_t>(status_.st_size) : 0;
  }

  // Reads until the end, whatever the length was said to be.
  [[nodiscard]] std::string read_all() const {
    std::string bytes;
    bytes.resize(length() + 1);
    std::size_t filled = 0;
    for (;;) {
      if (filled == bytes.size()) bytes.resize(std::max(2 * filled, kBufferBytes));
      const ssize_t got = ::read(descriptor_.value, bytes.data() + filled, bytes.size() - filled);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) fail_errno(errno);
      if (got == 0) break;
      filled += static_cast<std::size_t>(got);
    }
    bytes.resize(filled);
    return bytes;
  }

  // nullptr if this file cannot be mapped.
  [[nodiscard]] const char* map() const {
    if (length() == 0) return nullptr;
    void* address = ::mmap(nullptr, length(), PROT_READ, MAP_PRIVATE, descriptor_.value, 0);
    return address == MAP_FAILED ? nullptr : static_cast<const char*>(address);
  }

 private:
  // A member, so that it is closed also when the constructor throws.
  struct Descriptor {
    explicit Descriptor(int descriptor) : value(descriptor) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
      if (value >= 0) ::close(value);
    }
    int value;
  };

  [[noreturn]] void fail_errno(int reason) const {
    fail(ErrorKind::input, "file", "cannot read {}: {}", path_, std::strerror(reason));
  }

  const std::string& path_;
  Descriptor descriptor_;
  struct stat status_ {};
};

}  // namespace

FileBytes::FileBytes(std::string bytes, std::string name)
    : held_(std::move(bytes)), name_(std::move(name)) {}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : held_(std::move(other.held_)),
      name_(std::move(other.name_)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)) {}

FileBytes::~FileBytes() {
  if (mapping_ != nullptr) ::munmap(const_cast<char*>(mapping_), mapping_bytes_);
}

FileBytes FileBytes::read(const std::string& path) try {
  std::string bytes = InputFile(path).read_all();
  if (is_gzip(bytes)) return {gunzip(bytes, path), path};
  require(!path.ends_with(".gz"), ErrorKind::input, "gzip", "{}: the data are not gzip", path);
  return {std::move(bytes), path};
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "file", "{} does not fit in memory", path);
} catch (const std::length_error&) {
  fail(ErrorKind::memory, "file", "{} does not fit in memory", path);
}

FileBytes FileBytes::map(const std::string& path) {
  {
    const InputFile file(path);
    FileBytes mapped({}, path);
    mapped.mapping_ = file.map();
    mapped.mapping_bytes_ = mapped.mapping_ != nullptr ? file.length() : 0;
    if (mapped.mapped() && !is_gzip(mapped.bytes()) && !path.ends_with(".gz")) return mapped;
  }
  return read(path);
}

FileBytes FileBytes::as_text(FileBytes file) try {
  std::optional<std::string> text = utf8_of_utf16(file.bytes(), file.name());
  if (!text) return file;
  return {std::move(*text), file.name()};
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "file", "the text does not fit in memory");
}

OutputFile open_output(const std::string& path) {
  if (!path.ends_with(".gz")) return OutputFile(path);
  auto encoder = std::make_shared<GzipEncoder>();
  return OutputFile(
      path, [encoder](std::string_view bytes, bool last) { return encoder->encode(bytes, last); });
}

}  // namespace strata
