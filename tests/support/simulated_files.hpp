#pragma once
// A file system in memory whose disk behaves as badly as disks may.
//
// Contract: as store/files.hpp. On request the operation with a given number fails, or the power
// goes out before it: then everything fails until `restart`. At the restart each write that no sync
// of its file has covered is kept, dropped or garbled by the dice, sector by sector. Files and
// names that no sync of their directory has covered may be gone, and a rename may be undone. What
// files hold can be damaged.

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "store/files.hpp"
#include "strata/error.hpp"

namespace strata::test {

class SimulatedFiles final : public FileSystem {
 public:
  explicit SimulatedFiles(std::int64_t alignment = 1) : alignment_(alignment) {
    durable_directories_.insert(".");
    directories_.insert(".");
  }

  // ---- what goes wrong

  /// Operations so far: opens, reads, writes, syncs, names.
  [[nodiscard]] std::int64_t operations() const { return operations_; }
  /// The power goes out before operation `number`, counted from 0; negative: it does not.
  void lose_power_at(std::int64_t number) { power_lost_at_ = number; }
  /// Operation `number` fails once, with this text.
  void fail_at(std::int64_t number, std::string why) {
    fails_at_ = number;
    why_ = std::move(why);
  }
  /// The n-th sync from now on fails, once.
  void fail_sync(std::int64_t n) { sync_fails_in_ = n; }
  /// Writes from the n-th on, counted from now, are said to be done and are not; `count` of them.
  void drop_writes(std::int64_t n, std::int64_t count) {
    dropped_from_ = writes_ + n;
    dropped_until_ = dropped_from_ + count;
  }
  /// The n-th write from now on goes so many bytes further.
  void misdirect_write(std::int64_t n, std::int64_t by) {
    misdirected_ = writes_ + n;
    misdirected_by_ = by;
  }
  void set_room(std::int64_t bytes) { room_ = bytes; }
  /// From now on nothing but reads is allowed.
  void set_read_only() { read_only_ = true; }
  [[nodiscard]] bool power_is_lost() const { return no_power_; }

  /// The disk after a loss of power, and power again. Handles of before are dead.
  void restart(std::uint64_t seed) {
    std::uint64_t throws = 0;
    const auto dice = [&](std::uint64_t sides) { return random_bits(seed, throws++) % sides; };
    ++epoch_;
    no_power_ = false;
    power_lost_at_ = fails_at_ = sync_fails_in_ = -1;
    std::map<std::string, std::shared_ptr<Content>> survivors;
    for (const std::string& name : names()) {
      const auto now = names_.find(name);
      const auto before = durable_names_.find(name);
      const bool same =
          now != names_.end() && before != durable_names_.end() && now->second == before->second;
      const auto& kept = same || dice(2) == 0 ? names_ : durable_names_;
      if (kept.contains(name)) survivors[name] = kept.at(name);
    }
    names_ = durable_names_ = survivors;
    directories_ = durable_directories_;
    std::set<Content*> seen;
    for (auto& [name, content] : names_) {
      if (!seen.insert(content.get()).second) continue;
      for (const Pending& pending : content->pending) {
        for (std::size_t at = 0; at < pending.bytes.size(); at += kSector) {
          const std::uint64_t fate = dice(3);
          if (fate == 0) continue;
          const std::size_t count = std::min(kSector, pending.bytes.size() - at);
          std::string sector = pending.bytes.substr(at, count);
          if (fate == 2)
            for (char& c : sector) c = static_cast<char>(dice(256));
          put(content->durable, pending.offset + static_cast<std::int64_t>(at), sector);
        }
      }
      content->pending.clear();
      content->now = content->durable;
    }
  }

  [[nodiscard]] std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& [name, content] : names_) all.insert(name);
    for (const auto& [name, content] : durable_names_) all.insert(name);
    return all;
  }
  /// The bytes of a file, to be looked at and damaged.
  [[nodiscard]] std::string& content(const std::string& path) { return names_.at(path)->now; }
  [[nodiscard]] std::map<std::string, std::string> contents() const {
    std::map<std::string, std::string> all;
    for (const auto& [name, content] : names_) all[name] = content->now;
    return all;
  }

  // ---- as a file system

  [[nodiscard]] std::unique_ptr<File> create(const std::string& path, FileUse use) override {
    begin_change(path);
    const std::lock_guard lock(mutex_);
    if (names_.contains(path)) fail(path + ": cannot create it: File exists");
    if (!directories_.contains(parent(path))) fail(path + ": cannot create it: No such directory");
    names_[path] = std::make_shared<Content>();
    return std::make_unique<Handle>(*this, path, names_[path], use);
  }
  [[nodiscard]] std::unique_ptr<File> open(const std::string& path, FileUse use) override {
    if (read_only_) fail(path + ": cannot open it: Read-only file system");
    return open_to_read(path, use);
  }
  [[nodiscard]] std::unique_ptr<File> open_to_read(const std::string& path, FileUse use) override {
    begin(path);
    const std::lock_guard lock(mutex_);
    if (!names_.contains(path)) fail(path + ": cannot open it: No such file");
    return std::make_unique<Handle>(*this, path, names_[path], use);
  }
  [[nodiscard]] bool exists(const std::string& path) const override {
    const std::lock_guard lock(mutex_);
    return names_.contains(path) || directories_.contains(path);
  }
  [[nodiscard]] std::vector<std::string> list(const std::string& directory) const override {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const auto& [name, content] : names_)
      if (parent(name) == directory) found.push_back(name.substr(directory.size() + 1));
    return found;
  }
  void make_directory(const std::string& path) override {
    begin_change(path);
    const std::lock_guard lock(mutex_);
    directories_.insert(path);
  }
  void rename(const std::string& from, const std::string& to) override {
    begin_change(from);
    const std::lock_guard lock(mutex_);
    names_[to] = names_.at(from);
    names_.erase(from);
  }
  void remove(const std::string& path) override {
    begin_change(path);
    const std::lock_guard lock(mutex_);
    names_.erase(path);
  }
  void sync_directory(const std::string& path) override {
    begin(path);
    const std::lock_guard lock(mutex_);
    for (const std::string& directory : directories_)
      if (parent(directory) == path) durable_directories_.insert(directory);
    for (const std::string& name : names()) {
      if (parent(name) != path) continue;
      const auto now = names_.find(name);
      if (now == names_.end())
        durable_names_.erase(name);
      else
        durable_names_[name] = now->second;
    }
  }
  [[nodiscard]] double written_at(const std::string&) const override { return 0; }
  [[nodiscard]] std::unique_ptr<FileLock> lock(const std::string& path) override {
    begin_change(path);
    const std::lock_guard guard(mutex_);
    if (locks_.contains({path, epoch_}) || read_locks_.contains({path, epoch_}))
      fail(path + ": another process works on this directory");
    locks_.insert({path, epoch_});
    names_.try_emplace(path, std::make_shared<Content>());
    return std::make_unique<Lock>(*this, path, epoch_, false);
  }
  [[nodiscard]] std::unique_ptr<FileLock> lock_to_read(const std::string& path) override {
    begin(path);
    const std::lock_guard guard(mutex_);
    if (!names_.contains(path)) fail(path + ": cannot open it: No such file");
    if (locks_.contains({path, epoch_})) fail(path + ": another process works on this directory");
    read_locks_.insert({path, epoch_});
    return std::make_unique<Lock>(*this, path, epoch_, true);
  }
  [[nodiscard]] std::int64_t free_bytes(const std::string&) const override { return room_; }

 private:
  void begin_change(const std::string& path) {
    if (read_only_) fail(path + ": Read-only file system");
    begin(path);
  }

  static constexpr std::size_t kSector = 512;
  struct Pending {
    std::int64_t offset;
    std::string bytes;
  };
  struct Content {
    std::string now;
    std::string durable;
    std::vector<Pending> pending;  // since the last sync
  };

  class Lock final : public FileLock {
   public:
    Lock(SimulatedFiles& files, std::string path, int epoch, bool to_read)
        : files_(files), path_(std::move(path)), epoch_(epoch), to_read_(to_read) {}
    ~Lock() override {
      const std::lock_guard guard(files_.mutex_);
      if (!to_read_) files_.locks_.erase({path_, epoch_});
      const auto mine = files_.read_locks_.find({path_, epoch_});
      if (to_read_ && mine != files_.read_locks_.end()) files_.read_locks_.erase(mine);
    }

   private:
    SimulatedFiles& files_;
    std::string path_;
    int epoch_;
    bool to_read_;
  };

  class Handle final : public File {
   public:
    Handle(SimulatedFiles& files, std::string path, std::shared_ptr<Content> content, FileUse use)
        : files_(files),
          path_(std::move(path)),
          content_(std::move(content)),
          epoch_(files.epoch_),
          direct_(use == FileUse::direct) {}
    [[nodiscard]] const std::string& path() const override { return path_; }
    [[nodiscard]] std::int64_t bytes() const override { return std::ssize(content_->now); }
    void read(std::int64_t offset, std::byte* to, std::int64_t bytes) override {
      begin();
      const std::lock_guard lock(files_.mutex_);
      check(offset, to, bytes);
      if (offset + bytes > std::ssize(content_->now))
        fail(path_ + ": the file ends at byte " + std::to_string(content_->now.size()));
      std::memcpy(to, content_->now.data() + offset, static_cast<std::size_t>(bytes));
    }
    void write(std::int64_t offset, const std::byte* from, std::int64_t bytes) override {
      begin();
      const std::lock_guard lock(files_.mutex_);
      check(offset, from, bytes);
      const std::int64_t number = files_.writes_++;
      if (number >= files_.dropped_from_ && number < files_.dropped_until_) return;
      if (number == files_.misdirected_) offset += files_.misdirected_by_;
      std::string text(reinterpret_cast<const char*>(from), static_cast<std::size_t>(bytes));
      put(content_->now, offset, text);
      content_->pending.push_back({offset, std::move(text)});
    }
    void sync() override {
      begin();
      const std::lock_guard lock(files_.mutex_);
      if (files_.sync_fails_in_ >= 0 && files_.sync_fails_in_-- == 0) {
        // As Linux does: what could not be written counts as clean from then on.
        content_->pending.clear();
        fail(path_ + ": cannot make it durable: Input/output error");
      }
      content_->durable = content_->now;
      content_->pending.clear();
    }
    void reserve(std::int64_t bytes) override {
      begin();
      const std::lock_guard lock(files_.mutex_);
      if (bytes > files_.room_) fail(path_ + ": cannot reserve its room: No space left on device");
      const auto size = static_cast<std::size_t>(bytes);
      if (content_->now.size() < size) content_->now.resize(size, '\0');
    }
    [[nodiscard]] std::int64_t alignment() const noexcept override {
      return direct_ ? files_.alignment_ : 1;
    }

   private:
    void begin() const {
      if (epoch_ != files_.epoch_) fail(path_ + ": a handle of before the loss of power");
      files_.begin(path_);
    }
    void check(std::int64_t offset, const std::byte* data, std::int64_t bytes) const {
      const std::int64_t to = alignment();
      if (offset % to != 0 || bytes % to != 0 ||
          reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(to) != 0)
        fail(path_ + ": not aligned");
    }

    SimulatedFiles& files_;
    std::string path_;
    std::shared_ptr<Content> content_;
    int epoch_;
    bool direct_;
  };

  [[noreturn]] static void fail(const std::string& what) {
    throw Error(ErrorKind::storage, "storage", what);
  }
  static std::string parent(const std::string& path) {
    const std::size_t slash = path.find_last_of('/');
    return slash == std::string::npos ? "." : path.substr(0, slash);
  }
  static void put(std::string& all, std::int64_t offset, const std::string& bytes) {
    const std::size_t end = static_cast<std::size_t>(offset) + bytes.size();
    if (all.size() < end) all.resize(end, '\0');
    all.replace(static_cast<std::size_t>(offset), bytes.size(), bytes);
  }
  void begin(const std::string& path) {
    const std::lock_guard lock(mutex_);
    const std::int64_t number = operations_++;
    no_power_ = no_power_ || (power_lost_at_ >= 0 && number >= power_lost_at_);
    if (no_power_) fail(path + ": there is no power");
    if (number == fails_at_) fail(path + ": " + why_);
  }

  mutable std::mutex mutex_;
  std::int64_t alignment_;
  std::map<std::string, std::shared_ptr<Content>> names_;
  std::map<std::string, std::shared_ptr<Content>> durable_names_;
  std::set<std::string> directories_;
  std::set<std::string> durable_directories_;
  bool read_only_ = false;
  std::set<std::pair<std::string, int>> locks_;
  std::multiset<std::pair<std::string, int>> read_locks_;
  int epoch_ = 0;
  bool no_power_ = false;
  std::int64_t operations_ = 0;
  std::int64_t writes_ = 0;
  std::int64_t power_lost_at_ = -1;
  std::int64_t fails_at_ = -1;
  std::string why_;
  std::int64_t sync_fails_in_ = -1;
  std::int64_t dropped_from_ = -1;
  std::int64_t dropped_until_ = -1;
  std::int64_t misdirected_ = -1;
  std::int64_t misdirected_by_ = 0;
  std::int64_t room_ = std::int64_t{1} << 40;
};

}  // namespace strata::test
