#pragma once
// Files of storage and the file system that they are in, behind an interface that tests replace by
// one that fails.
//
// Contract: an operation that fails throws Error{storage}, which names the file, the offset where
// there is one, and what the system says. What was written is durable, in the sense of a loss of
// power, once a `sync` of the file has returned; its name is once `sync_directory` has. A sync that
// failed may have lost what it was to make durable, and a second one that succeeds says nothing
// about it (Rebello et al., "Can applications recover from fsync failures?", ATC 2020): nobody
// retries it. Different ranges of a file may be read and written by several threads at once.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace strata {

/// How a file reaches the disk.
enum class FileUse : std::uint8_t {
  buffered,  ///< through the page cache of the system
  direct,    ///< past it (O_DIRECT) where the file system can, else buffered
};

class File {
 public:
  File() = default;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  virtual ~File() = default;

  [[nodiscard]] virtual const std::string& path() const = 0;
  [[nodiscard]] virtual std::int64_t bytes() const = 0;
  /// Exactly so many bytes: a file that ends before them is an error.
  virtual void read(std::int64_t offset, std::byte* to, std::int64_t bytes) = 0;
  virtual void write(std::int64_t offset, const std::byte* from, std::int64_t bytes) = 0;
  virtual void sync() = 0;
  /// Reserves room on the disk, or throws before anything is written; the file is as long then.
  virtual void reserve(std::int64_t bytes) = 0;
  /// Offsets, lengths and addresses have to be multiples of it; 1: they need not.
  [[nodiscard]] virtual std::int64_t alignment() const noexcept { return 1; }
  /// The descriptor, for requests that the system takes many of at once; −1: there is none.
  [[nodiscard]] virtual int descriptor() const noexcept { return -1; }
  /// Why `direct` use was refused, in the system's words; empty: it was not, or not asked for.
  [[nodiscard]] virtual std::string why_buffered() const { return {}; }
};

/// Held until it is destroyed, by one process or by those alone that read.
class FileLock {
 public:
  FileLock() = default;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  virtual ~FileLock() = default;
};

class FileSystem {
 public:
  FileSystem() = default;
  FileSystem(const FileSystem&) = delete;
  FileSystem& operator=(const FileSystem&) = delete;
  virtual ~FileSystem() = default;

  /// A new file, empty; one of that name must not exist.
  [[nodiscard]] virtual std::unique_ptr<File> create(const std::string& path, FileUse use) = 0;
  /// A file that exists, to be read alone.
  [[nodiscard]] virtual std::unique_ptr<File> open_to_read(const std::string& path,
                                                           FileUse use) = 0;
  /// A file that exists, to be read and written.
  [[nodiscard]] virtual std::unique_ptr<File> open(const std::string& path, FileUse use) = 0;
  [[nodiscard]] virtual bool exists(const std::string& path) const = 0;
  /// Names of what a directory holds, sorted.
  [[nodiscard]] virtual std::vector<std::string> list(const std::string& directory) const = 0;
  virtual void make_directory(const std::string& path) = 0;
  virtual void rename(const std::string& from, const std::string& to) = 0;
  virtual void remove(const std::string& path) = 0;
  virtual void sync_directory(const std::string& path) = 0;
  /// When a file was last written, in seconds since some moment.
  [[nodiscard]] virtual double written_at(const std::string& path) const = 0;
  /// Locks a file, which is made if there is none. Throws Error{storage} if another has the lock.
  [[nodiscard]] virtual std::unique_ptr<FileLock> lock(const std::string& path) = 0;
  /// The same of a file that exists, beside others that have it so.
  [[nodiscard]] virtual std::unique_ptr<FileLock> lock_to_read(const std::string& path) = 0;
  /// What the file system that holds a directory has left for this user.
  [[nodiscard]] virtual std::int64_t free_bytes(const std::string& directory) const = 0;
};

/// The system's.
[[nodiscard]] FileSystem& system_files();

/// Those of a choice (StorageChoice), which names none where they are the system's.
template <class Choice>
[[nodiscard]] FileSystem& files_of(const Choice& choice) {
  return choice.files != nullptr ? *choice.files : system_files();
}

}  // namespace strata
