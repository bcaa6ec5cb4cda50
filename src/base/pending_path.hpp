#pragma once
// What lies on the disk until it is finished: temporary files, and directories made for files.
//
// Contract: such a path is removed unless it is kept, by its destructor, or by
// remove_pending_paths() where a process ends without destructors. A program that can be
// interrupted says so by stop_writing_when(); long files then end with Error{cancelled}.
// Destructors never throw.

#include <memory>
#include <string>
#include <vector>

namespace strata {

class PendingPath {
 public:
  enum class Kind { file, directory };

  /// Nothing.
  PendingPath() = default;
  /// Before the file or directory is made, so that there is no moment at which it could be left.
  explicit PendingPath(std::string path, Kind kind = Kind::file);
  PendingPath(PendingPath&& other) noexcept = default;
  PendingPath& operator=(PendingPath&& other) noexcept;
  ~PendingPath() { remove(); }

  [[nodiscard]] bool empty() const noexcept { return entry_ == nullptr; }
  [[nodiscard]] const std::string& path() const noexcept { return entry_->path; }
  /// Removes it now, if it is there.
  void remove() noexcept;
  /// It stays, or is no longer there under this name.
  void keep() noexcept;

  struct Entry {
    std::string path;
    Kind kind = Kind::file;
  };

 private:
  [[nodiscard]] bool forget() noexcept;

  std::unique_ptr<Entry> entry_;
};

/// A directory, with those above it, of which those that had to be made are removed again unless it
/// is kept.
class PendingDirectory {
 public:
  /// Throws Error{storage} that names it, from `where`, if it cannot be made.
  PendingDirectory(const std::string& path, const char* where);
  PendingDirectory(const PendingDirectory&) = delete;  // what it made is removed once
  PendingDirectory& operator=(const PendingDirectory&) = delete;
  ~PendingDirectory();

  void keep() noexcept;

 private:
  std::vector<PendingPath> made_;  // from the outermost to the innermost
};

/// Removes all that is pending. Async-signal-safe, for a process that then ends at once.
void remove_pending_paths() noexcept;

/// What writers of long files ask after every piece: true ends them. It is called by any thread.
void stop_writing_when(bool (*stop)()) noexcept;
/// Throws Error{cancelled} if writing is to stop.
void check_writing();

}  // namespace strata
