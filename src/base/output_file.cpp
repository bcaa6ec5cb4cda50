// Write beside, then rename: the one order in which POSIX promises that readers see old or new.

#include "base/output_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kBufferBytes = 1 << 20;
/// What is written or encoded at once: a few milliseconds, then it may be told to stop.
constexpr std::size_t kPieceBytes = 4 << 20;

// Permissions of a new file: those of the one that it replaces, else what the process's mask
// leaves.
void copy_permissions(const std::string& from, int to) {
  struct stat status {};
  if (::stat(from.c_str(), &status) == 0) {
    // Refused on some file systems; the new file then keeps the usual permissions.
    [[maybe_unused]] const int ignored = ::fchmod(to, status.st_mode & 0777);
  }
}

}  // namespace

OutputFile::OutputFile(std::string path, Encode encode)
    : path_(std::move(path)), target_(path_), encode_(std::move(encode)) {
  buffer_.reserve(kBufferBytes);
  std::error_code ignored;
  const fs::file_status status = fs::status(path_, ignored);
  if (fs::is_directory(status)) fail_errno(EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    // A device or a pipe is written to; renaming would replace it.
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail_errno(errno);
    return;
  }
  if (fs::exists(status) && fs::is_symlink(path_, ignored)) target_ = fs::canonical(path_).string();
  open_temporary();  // last: a constructor that throws has no destructor to remove the file
}

void OutputFile::open_temporary() {
  static std::atomic<unsigned> counter{0};
  const std::string folder = fs::path(target_).parent_path().string();
  const std::string stem = folder.empty() ? "." : folder;
  // A name that is taken was left by a process that was killed and had the same number.
  int reason = EEXIST;
  for (int attempt = 0; attempt < 100 && descriptor_ < 0 && reason == EEXIST; ++attempt) {
    temporary_ = PendingPath(fmt::format("{}/.strata-{}-{}.tmp", stem, ::getpid(), counter++));
    descriptor_ = ::open(temporary_.path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) break;
    reason = errno;
    temporary_.keep();  // it is another's, or not there
  }
  if (descriptor_ < 0) fail_errno(reason);
  copy_permissions(target_, descriptor_);
}

OutputFile::~OutputFile() {
  unmap();
  if (descriptor_ >= 0) ::close(descriptor_);
}

void OutputFile::fail_errno(int reason) const {
  fail(ErrorKind::storage, "file", "cannot write '{}': {}", path_, std::strerror(reason));
}

void OutputFile::write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) flush();  // keeps the order, and the capacity
  if (bytes.size() < kBufferBytes) {
    buffer_ += bytes;
  } else {
    write_through(bytes);
  }
}

void OutputFile::flush() {
  write_through(buffer_);
  buffer_.clear();
}

void OutputFile::write_through(std::string_view bytes) {
  while (!bytes.empty()) {
    if (pieces_++ > 0) check_writing();
    const std::string_view piece = bytes.substr(0, kPieceBytes);
    bytes.remove_prefix(piece.size());
    encode_ ? write_raw(encode_(piece, false)) : write_raw(piece);
  }
}

void OutputFile::write_raw(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail_errno(errno);
    bytes.remove_prefix(static_cast<std::size_t>(put));
  }
}

// Room is taken at once: a page of a mapped file for which there is none kills the process.
std::byte* OutputFile::map(std::size_t bytes) {
  require(!temporary_.empty() && !encode_, ErrorKind::storage, "file",
          "cannot write '{}' as mapped memory: it is not a file of bytes as they are", path_);
  const int reason = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes));
  if (reason != 0) fail_errno(reason);
  pieces_ = bytes > kPieceBytes ? 2 : 1;
  void* address = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (address == MAP_FAILED) fail_errno(errno);
  mapping_ = address;
  mapping_bytes_ = bytes;
  return static_cast<std::byte*>(mapping_);
}

void OutputFile::unmap() noexcept {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_bytes_);
  mapping_ = nullptr;
}

void OutputFile::commit_mapped(std::size_t bytes) {
  if (::msync(mapping_, mapping_bytes_, MS_SYNC) != 0) fail_errno(errno);
  unmap();
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) fail_errno(errno);
  commit();
}

void OutputFile::commit() {
  complete();
  publish();
}

void OutputFile::complete() {
  flush();
  if (encode_) write_raw(encode_({}, true));
  if (!temporary_.empty() && ::fsync(descriptor_) != 0) fail_errno(errno);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail_errno(errno);
  // Writing a long file to disk may have taken seconds without a check for cancellation.
  if (pieces_ > 1 && !temporary_.empty()) check_writing();
}

void OutputFile::publish() {
  if (temporary_.empty()) return;
  if (::rename(temporary_.path().c_str(), target_.c_str()) != 0) fail_errno(errno);
  temporary_.keep();
}

void replace_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  OutputFile file(path);  // first: a path that cannot be written is noticed before the work
  std::ostringstream text;
  write(text);
  file.write(std::move(text).str());
  file.commit();
}

}  // namespace strata
