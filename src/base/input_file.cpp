#include "base/input_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace strata {

InputFile::Descriptor::~Descriptor() {
  if (value >= 0) ::close(value);
}

InputFile::InputFile(std::string path, const char* where)
    : path_(std::move(path)),
      where_(where),
      descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (descriptor_.value < 0 || ::fstat(descriptor_.value, &status_) != 0) fail_errno(errno);
  if (S_ISDIR(status_.st_mode)) fail_errno(EISDIR);
  const bool device =
      S_ISBLK(status_.st_mode) || (S_ISCHR(status_.st_mode) && ::isatty(descriptor_.value) == 0);
  require(!device, ErrorKind::input, where_, "cannot read {}: it is a device, not a file", path_);
}

std::size_t InputFile::length() const {
  return S_ISREG(status_.st_mode) ? static_cast<std::size_t>(status_.st_size) : 0;
}

std::string InputFile::read_all() const {
  constexpr std::size_t kBufferBytes = 1 << 20;
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

const char* InputFile::map() const {
  if (length() == 0) return nullptr;
  void* address = ::mmap(nullptr, length(), PROT_READ, MAP_PRIVATE, descriptor_.value, 0);
  return address == MAP_FAILED ? nullptr : static_cast<const char*>(address);
}

void InputFile::fail_errno(int reason) const {
  fail(ErrorKind::input, where_, "cannot read {}: {}", path_, std::strerror(reason));
}

void require_regular_or_absent(const std::string& path, const char* where) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  require(S_ISREG(status.st_mode), ErrorKind::input, where, "'{}' is not a regular file", path);
}

}  // namespace strata
