// The file system of the machine: pread, pwrite, fdatasync.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/check.hpp"
#include "store/files.hpp"

namespace strata {
namespace {

/// To what O_DIRECT asks for alignment: no disk has larger logical blocks.
constexpr std::int64_t kDirectAlignment = 4096;

[[noreturn]] void fail_on(const std::string& path, const char* what, int reason) {
  fail(ErrorKind::storage, "storage", "{}: cannot {}: {}", path, what,
       std::generic_category().message(reason));
}

[[noreturn]] void fail_at(const std::string& path, const char* what, std::int64_t offset,
                          int reason) {
  fail(ErrorKind::storage, "storage", "{}: cannot {} at byte {}: {}", path, what, offset,
       std::generic_category().message(reason));
}

class SystemFile final : public File {
 public:
  SystemFile(std::string path, int flags, FileUse use) : path_(std::move(path)) {
    constexpr mode_t kMode = 0666;
    if (use == FileUse::direct) {
      descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC | O_DIRECT, kMode);
      alignment_ = descriptor_ < 0 ? 1 : kDirectAlignment;
      if (descriptor_ < 0) why_buffered_ = std::generic_category().message(errno);
      // A file system that refuses O_DIRECT may have made the file nevertheless.
      if (descriptor_ < 0 && errno == EINVAL) flags &= ~O_EXCL;
    }
    if (descriptor_ < 0) descriptor_ = ::open(path_.c_str(), flags | O_CLOEXEC, kMode);
    if (descriptor_ < 0) fail_on(path_, (flags & O_CREAT) != 0 ? "create it" : "open it", errno);
  }
  ~SystemFile() override { (void)::close(descriptor_); }

  [[nodiscard]] const std::string& path() const override { return path_; }
  [[nodiscard]] std::int64_t bytes() const override {
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0) fail_on(path_, "look at it", errno);
    return status.st_size;
  }
  void read(std::int64_t offset, std::byte* to, std::int64_t bytes) override {
    while (bytes > 0) {
      const ssize_t done = ::pread(descriptor_, to, static_cast<std::size_t>(bytes), offset);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail_at(path_, "read", offset, errno);
      require(done > 0, ErrorKind::storage, "storage",
              "{}: the file ends at byte {}, {} bytes early", path_, offset, bytes);
      offset += done;
      to += done;
      bytes -= done;
    }
  }
  void write(std::int64_t offset, const std::byte* from, std::int64_t bytes) override {
    while (bytes > 0) {
      const ssize_t done = ::pwrite(descriptor_, from, static_cast<std::size_t>(bytes), offset);
      if (done < 0 && errno == EINTR) continue;
      if (done <= 0) fail_at(path_, "write", offset, done < 0 ? errno : ENOSPC);
      offset += done;
      from += done;
      bytes -= done;
    }
  }
  void sync() override {
    if (::fdatasync(descriptor_) != 0) fail_on(path_, "make it durable", errno);
  }
  void reserve(std::int64_t bytes) override {
    int reason = ::posix_fallocate(descriptor_, 0, std::max<std::int64_t>(bytes, 1));
    // Where there is no such call the length is all that can be had.
    if (reason == EOPNOTSUPP || reason == EINVAL)
      reason = ::ftruncate(descriptor_, bytes) == 0 ? 0 : errno;
    if (reason != 0) fail_on(path_, "reserve its room", reason);
  }
  [[nodiscard]] std::int64_t alignment() const noexcept override { return alignment_; }
  [[nodiscard]] int descriptor() const noexcept override { return descriptor_; }
  [[nodiscard]] std::string why_buffered() const override { return why_buffered_; }

 private:
  std::string path_;
  int descriptor_ = -1;
  std::int64_t alignment_ = 1;
  std::string why_buffered_;
};

class SystemLock final : public FileLock {
 public:
  SystemLock(const std::string& path, bool to_read)
      : descriptor_(
            ::open(path.c_str(), (to_read ? O_RDONLY : O_CREAT | O_RDWR) | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) fail_on(path, "open it", errno);
    if (::flock(descriptor_, (to_read ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return;
    const int reason = errno;
    (void)::close(descriptor_);
    require(reason != EWOULDBLOCK, ErrorKind::storage, "storage",
            "{}: another process works on this directory", path);
    fail_on(path, "lock it", reason);
  }
  ~SystemLock() override { (void)::close(descriptor_); }

 private:
  int descriptor_;
};

class SystemFiles final : public FileSystem {
 public:
  [[nodiscard]] std::unique_ptr<File> create(const std::string& path, FileUse use) override {
    return std::make_unique<SystemFile>(path, O_RDWR | O_CREAT | O_EXCL, use);
  }
  [[nodiscard]] std::unique_ptr<File> open_to_read(const std::string& path, FileUse use) override {
    return std::make_unique<SystemFile>(path, O_RDONLY, use);
  }
  [[nodiscard]] std::unique_ptr<File> open(const std::string& path, FileUse use) override {
    return std::make_unique<SystemFile>(path, O_RDWR, use);
  }
  [[nodiscard]] bool exists(const std::string& path) const override {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0;
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& directory) const override {
    std::error_code error;
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error))
      names.push_back(entry.path().filename().string());
    if (error) fail_on(directory, "list it", error.value());
    std::sort(names.begin(), names.end());
    return names;
  }
  void make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail_on(path, "make it", errno);
  }
  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail_on(from, "rename it", errno);
  }
  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_on(path, "remove it", errno);
  }
  void sync_directory(const std::string& path) override {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) fail_on(path, "open it", errno);
    const int reason = ::fsync(descriptor) == 0 ? 0 : errno;
    (void)::close(descriptor);
    if (reason != 0) fail_on(path, "make it durable", reason);
  }
  [[nodiscard]] double written_at(const std::string& path) const override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) fail_on(path, "look at it", errno);
    return static_cast<double>(status.st_mtim.tv_sec) +
           1e-9 * static_cast<double>(status.st_mtim.tv_nsec);
  }
  [[nodiscard]] std::unique_ptr<FileLock> lock(const std::string& path) override {
    return std::make_unique<SystemLock>(path, false);
  }
  [[nodiscard]] std::unique_ptr<FileLock> lock_to_read(const std::string& path) override {
    return std::make_unique<SystemLock>(path, true);
  }
  [[nodiscard]] std::int64_t free_bytes(const std::string& directory) const override {
    struct statvfs status {};
    if (::statvfs(directory.c_str(), &status) != 0) fail_on(directory, "look at it", errno);
    return static_cast<std::int64_t>(status.f_bavail) * static_cast<std::int64_t>(status.f_frsize);
  }
};

}  // namespace

FileSystem& system_files() {
  static SystemFiles files;
  return files;
}

}  // namespace strata
