// FileStore: what is durable, and the journal that says so.
//
// Method: what is written for the last time waits for a thread that makes it durable behind the
// run, as much as there is at once: the files first, then one record of the journal for all of it.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "store/file_store.hpp"

namespace strata {
namespace {

constexpr char kBlockRecord = 'B';
constexpr char kNoteRecord = 'N';

/// The last value of a block in a record of one or more; behind it the hashes of its segments, or
/// its bytes.
struct BlockRecord {
  std::uint64_t block = 0;  // BlockId::bits
  std::uint32_t version = 0;
  std::uint32_t bytes = 0;  // of what is behind it
};

}  // namespace

FileStore::Recorded FileStore::recorded(const std::string& directory, FileSystem& files) {
  Recorded recorded;
  const std::string journal = directory + "/journal";
  const Journal opened = Journal::open_to_read(files, journal);
  for (const std::string& record : opened.records()) {
    if (record.empty() || record[0] != kBlockRecord) continue;
    BlockRecord block;
    for (std::size_t begin = 1; begin + sizeof block <= record.size();
         begin += sizeof block + block.bytes) {
      std::memcpy(&block, record.data() + begin, sizeof block);
      recorded.last.emplace_back().bits = block.block;
    }
  }
  recorded.seconds =
      std::max(0.0, files.written_at(journal) - files.written_at(directory + "/storage"));
  return recorded;
}

void FileStore::read_journal() {
  for (const std::string& record : journal_->records()) {
    const std::string where = directories_[0].path + "/journal";
    require(!record.empty(), ErrorKind::storage, "storage", "{}: a record without content", where);
    if (record[0] == kNoteRecord) {
      notes_.push_back(record.substr(1));
      continue;
    }
    require(record[0] == kBlockRecord, ErrorKind::storage, "storage",
            "{}: a record of an unknown kind", where);
    std::size_t begin = 1;
    while (begin < record.size()) begin = read_block_record(record, begin, where);
  }
  journal_->let_go_of_records();
}

/// What a record says of the block that begins at this byte of it; the byte behind that.
std::size_t FileStore::read_block_record(const std::string& record, std::size_t begin,
                                         const std::string& where) {
  BlockRecord block;
  const bool whole = record.size() > begin + sizeof block;
  if (whole) std::memcpy(&block, record.data() + begin, sizeof block);
  BlockId id;
  id.bits = block.block;
  require(whole && id.family() < blocks_.families() && blocks_.contains(id) &&
              blocks_.family(id.family()).in_storage,
          ErrorKind::storage, "storage", "{}: a record of no block of this matrix", where);
  const Family& family = layout(id);
  const std::size_t size = family.in_journal
                               ? static_cast<std::size_t>(blocks_.bytes(id))
                               : static_cast<std::size_t>(segments_of(id)) * sizeof(std::uint64_t);
  begin += sizeof block;
  require(block.bytes == size && record.size() >= begin + size, ErrorKind::storage, "storage",
          "{}: a record of {} is {} bytes long", where, blocks_.name(id), record.size());
  const char* content = record.data() + begin;
  state(id) = {block.version, true};
  if (family.in_journal) {
    const auto* bytes = reinterpret_cast<const std::byte*>(content);
    kept_[static_cast<std::size_t>(blocks_.index(id))].assign(bytes, bytes + size);
  } else {
    std::memcpy(hashes(id), content, size);
  }
  return begin + size;
}

void FileStore::write_last(BlockId id, const std::byte* from) {
  write(id, from);
  if (options_.temporary) {
    state(id).last = true;
    return;
  }
  if (options_.commits_at_once) {
    make_durable([&] { sync_and_record({id}); });
    return;
  }
  {
    const std::lock_guard lock(commit_mutex_);
    if (commit_failure_) std::rethrow_exception(commit_failure_);
    pending_.push_back(id);
    if (!committer_.joinable()) committer_ = std::thread([this] { commit_pending(); });
  }
  commit_changed_.notify_all();
}

/// What was written meanwhile is made durable together. A disk writes little while it makes what it
/// has durable, so this takes a fifth of the time at most.
void FileStore::commit_pending() {
  constexpr double kRest = 4;  // beside a commit
  constexpr double kRestSecondsMax = 5;
  double seconds = 0;
  std::unique_lock lock(commit_mutex_);
  for (;;) {
    commit_changed_.wait(lock, [&] { return ends_ || !pending_.empty(); });
    const std::chrono::duration<double> rest(std::min(kRest * seconds, kRestSecondsMax));
    (void)commit_changed_.wait_for(lock, rest, [&] { return ends_ || flushing_ > 0; });
    if (pending_.empty()) return;
    const auto start = std::chrono::steady_clock::now();
    const std::vector<BlockId> blocks = std::exchange(pending_, {});
    committing_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      make_durable([&] { sync_and_record(blocks); });
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    seconds = seconds_since(start);
    committing_ = false;
    if (failure) {
      commit_failure_ = failure;
      pending_.clear();
    }
    commit_changed_.notify_all();
    if (failure) return;
  }
}

void FileStore::flush() {
  std::unique_lock lock(commit_mutex_);
  ++flushing_;
  commit_changed_.notify_all();
  commit_changed_.wait(lock, [&] { return pending_.empty() && !committing_; });
  --flushing_;
  if (commit_failure_) std::rethrow_exception(commit_failure_);
}

FileStore::~FileStore() {
  {
    const std::lock_guard lock(commit_mutex_);
    ends_ = true;
  }
  commit_changed_.notify_all();
  if (committer_.joinable()) committer_.join();
}

/// After a failure nothing is: what the system has dropped by then is not known.
void FileStore::make_durable(const std::function<void()>& make) {
  require(!failed_, ErrorKind::storage, "storage",
          "{}: nothing can be made durable after a failure", directories_[0].path);
  try {
    make();
  } catch (...) {
    failed_ = true;
    throw;
  }
}

/// One record for all: where it ends early, none of them is durable.
void FileStore::sync_and_record(const std::vector<BlockId>& blocks) {
  std::set<File*> files;
  std::string record(1, kBlockRecord);
  for (const BlockId id : blocks) {
    for (std::int64_t part = 0; part < segments_of(id); ++part)
      files.insert(segment(id, part).file);
    add_to_record(id, record);
  }
  files.erase(nullptr);
  for (File* file : files) file->sync();
  append(record);
  for (const BlockId id : blocks) state(id).last = true;
}

void FileStore::add_to_record(BlockId id, std::string& record) {
  const Family& family = layout(id);
  const std::size_t size = family.in_journal
                               ? kept_[static_cast<std::size_t>(blocks_.index(id))].size()
                               : static_cast<std::size_t>(segments_of(id)) * sizeof(std::uint64_t);
  const BlockRecord block{id.bits, state(id).version, static_cast<std::uint32_t>(size)};
  record.append(reinterpret_cast<const char*>(&block), sizeof block);
  if (family.in_journal) {
    const std::vector<std::byte>& kept = kept_[static_cast<std::size_t>(blocks_.index(id))];
    record.append(reinterpret_cast<const char*>(kept.data()), size);
  } else {
    record.append(reinterpret_cast<const char*>(hashes(id)), size);
  }
}

void FileStore::append(const std::string& record) {
  const std::lock_guard lock(journal_mutex_);
  journal_->append(record);
}

void FileStore::note(const std::string& text) {
  require(!options_.to_read && !options_.temporary, ErrorKind::misuse, "storage",
          "{}: nothing can be noted in it", directories_[0].path);
  make_durable([&] { append(kNoteRecord + text); });
  notes_.push_back(text);
}

}  // namespace strata
