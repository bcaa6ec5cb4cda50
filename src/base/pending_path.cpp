// Method: pending paths stand in a table of fixed size, so that a signal handler can walk through
// it. Whoever takes an entry out of the table removes its path, the owner or the handler; an entry
// that the handler took is never freed, for it may still be reading it.

#include "base/pending_path.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

/// Far more than files that are written at once; what finds no place is removed by its destructor
/// alone.
constexpr std::size_t kPlaces = 256;

std::array<std::atomic<PendingPath::Entry*>, kPlaces> pending{};
std::atomic<bool (*)()> stop_asked = nullptr;

static_assert(std::atomic<PendingPath::Entry*>::is_always_lock_free, "used by signal handlers");

}  // namespace

PendingPath::PendingPath(std::string path, Kind kind)
    : entry_(std::make_unique<Entry>(Entry{std::move(path), kind})) {
  for (std::atomic<Entry*>& place : pending) {
    Entry* free_place = nullptr;
    if (place.compare_exchange_strong(free_place, entry_.get())) return;
  }
}

PendingPath& PendingPath::operator=(PendingPath&& other) noexcept {
  if (this == &other) return *this;
  remove();
  entry_ = std::move(other.entry_);
  return *this;
}

/// Takes the entry out of the table; false if a handler has it.
bool PendingPath::forget() noexcept {
  for (std::atomic<Entry*>& place : pending) {
    Entry* own = entry_.get();
    if (place.compare_exchange_strong(own, nullptr)) return true;
  }
  return false;
}

void PendingPath::remove() noexcept {
  if (empty()) return;
  const char* path = entry_->path.c_str();
  entry_->kind == Kind::file ? ::unlink(path) : ::rmdir(path);
  keep();
}

void PendingPath::keep() noexcept {
  if (empty()) return;
  if (!forget()) static_cast<void>(entry_.release());
  entry_.reset();
}

PendingDirectory::PendingDirectory(const std::string& path, const char* where) {
  std::vector<fs::path> missing;
  std::error_code error;
  for (fs::path p = fs::absolute(path, error).lexically_normal(); !error && !fs::exists(p, error);
       p = p.parent_path()) {
    if (!p.has_filename()) continue;  // "F/" names the same as "F"
    missing.push_back(p);
  }
  while (!error && !missing.empty()) {
    made_.emplace_back(missing.back().string(), PendingPath::Kind::directory);
    fs::create_directory(missing.back(), error);
    missing.pop_back();
  }
  require(!error && fs::is_directory(path, error), ErrorKind::storage, where,
          "cannot make the directory '{}': {}", path, error.message());
}

PendingDirectory::~PendingDirectory() {
  while (!made_.empty()) made_.pop_back();
}

void PendingDirectory::keep() noexcept {
  for (PendingPath& path : made_) path.keep();
}

void remove_pending_paths() noexcept {
  std::array<const char*, kPlaces> directory{};
  std::size_t directories = 0;
  for (std::atomic<PendingPath::Entry*>& place : pending) {
    const PendingPath::Entry* entry = place.exchange(nullptr);
    if (entry == nullptr) continue;
    if (entry->kind == PendingPath::Kind::file) {
      ::unlink(entry->path.c_str());
    } else {
      directory[directories++] = entry->path.c_str();
    }
  }
  // Whichever stands first in the table, what lies in another one is removed before it.
  for (std::size_t pass = 0; pass < directories; ++pass)
    for (std::size_t k = 0; k < directories; ++k) ::rmdir(directory[k]);
}

void stop_writing_when(bool (*stop)()) noexcept { stop_asked = stop; }

void check_writing() {
  bool (*const stop)() = stop_asked;
  if (stop != nullptr && stop()) fail(ErrorKind::cancelled, "file", "cancelled");
}

}  // namespace strata
