#pragma once
// FileStore: blocks in files, in one or several directories, with a journal of what is durable.
//
// Contract: as block_store.hpp, for the families of a table that are in storage. Blocks of a family
// are cut into segments of one size, which are dealt to the directories in turn. Each segment has a
// hash (XXH3, 64 bits) over its content and its identity: matrix, family, block, version, part and
// length; what is read and is not what was last written, be it damaged, old, or another block's, is
// Error{storage}, which names file and offset. What `write_last` has written is made durable behind
// it, several blocks at a time, and the journal says so then; `flush` waits for that. What was not
// written comes from the family's source, if it has one. A directory is of one process at a time,
// or of several that read, of one matrix and one version of the format (docs/file_format.md); one
// that is not is refused, untouched. After a failure to make something durable nothing more can be
// made so.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "store/aligned_buffers.hpp"
#include "store/block_store.hpp"
#include "store/file_io.hpp"
#include "store/files.hpp"
#include "store/journal.hpp"
#include "store/memory_store.hpp"

namespace strata {

struct StorageOptions {
  std::vector<std::string> directories;  ///< made where they do not exist, in one that does
  std::int64_t segment_bytes = std::int64_t{4} << 20;  ///< at most; a multiple of 4096
  /// Blocks of families of so small ones are kept in the journal itself, and in memory.
  std::int64_t journal_bytes = 16384;
  /// What the blocks are of, e.g. a hash of the source: a directory of another is refused.
  std::uint64_t matrix = 0;
  std::string about{};  ///< a line for readers; it has to be the same
  /// Files that have no names, and are gone with the process, whatever its end: nothing of them is
  /// ever durable. For `create`.
  bool temporary = false;
  bool reserves = true;  ///< room for all blocks, before anything is written
  /// `write_last` waits until its block is durable.
  bool commits_at_once = false;
  bool to_read = false;  ///< for `open`: nothing can be written, and others may read meanwhile
  FileSystem* files = nullptr;   ///< null: the system's
  std::shared_ptr<FileIo> io{};  ///< null: as make_file_io() has it
};

class FileStore final : public BlockStore {
  class Unopened {
    friend class FileStore;
    Unopened() = default;
  };

 public:
  /// For `create` and `open`.
  FileStore(Unopened, BlockTable blocks, StorageOptions options);
  /// Tries to make durable what is not yet.
  ~FileStore() override;

  /// New files, with room for all blocks. Throws Error{storage} if a directory holds some already,
  /// or has no room for its share, which it names; nothing is written then.
  [[nodiscard]] static std::unique_ptr<FileStore> create(BlockTable blocks, StorageOptions options);
  /// What `create` made with the same table, as far as it is durable.
  [[nodiscard]] static std::unique_ptr<FileStore> open(BlockTable blocks, StorageOptions options);
  /// Whether a directory holds such files.
  [[nodiscard]] static bool is_at(const std::string& directory, FileSystem& files = system_files());
  /// What the journal of a directory, the first one, says that is durable; it may be in use.
  struct Recorded {
    std::vector<BlockId> last;
    double seconds = 0;  ///< from when the directory was made until the last record
  };
  [[nodiscard]] static Recorded recorded(const std::string& directory,
                                         FileSystem& files = system_files());
  /// StorageOptions::matrix of what is there.
  [[nodiscard]] static std::uint64_t matrix(const std::string& directory,
                                            FileSystem& files = system_files());
  /// The number behind a word in what a directory says of itself; 0: there is none.
  [[nodiscard]] static std::int64_t number_behind(const std::string& word,
                                                  const std::string& about);
  /// StorageOptions::about of what is there.
  [[nodiscard]] static std::string about(const std::string& directory,
                                         FileSystem& files = system_files());

  [[nodiscard]] const BlockTable& blocks() const override { return blocks_; }
  void read(BlockId id, std::byte* to) override;
  void write(BlockId id, const std::byte* from) override;
  void write_last(BlockId id, const std::byte* from) override;
  /// Waits until all that `write_last` has written is durable. Throws what went wrong with that, as
  /// a later `write_last` does, too.
  void flush();

  /// Where blocks of a family come from until they are written.
  void set_source(int family, BlockSource source);
  /// Whether the last value of a block is durable; not while others are made so.
  [[nodiscard]] bool is_last(BlockId id) const;
  /// Forgets what is known of a block's values: it comes from its source again.
  void forget(BlockId id);
  /// A record of the caller's own, durable when this returns; and those that are.
  void note(const std::string& text);
  [[nodiscard]] const std::vector<std::string>& notes() const noexcept { return notes_; }

  /// "/disk1, /disk2: io_uring, O_DIRECT", or how else and why.
  [[nodiscard]] std::string how() const;

 private:
  struct Directory {
    std::string path;
    std::unique_ptr<FileLock> lock;
    std::vector<std::unique_ptr<File>> files;  // by family; null: kept in the journal
  };
  /// How a family lies in the files.
  struct Family {
    bool in_journal = false;
    std::int64_t segment_bytes = 0;
    std::int64_t segments = 0;  // of all of its blocks
  };
  /// What is known of a block.
  struct State {
    std::uint32_t version = 0;  // 0: never written
    bool last = false;
  };
  struct Segment {
    File* file = nullptr;
    std::int64_t offset = 0;
    std::int64_t begin = 0;  // in the block
    std::int64_t bytes = 0;
  };

  void lock_directories();
  void make_files();
  void make_temporary_files();
  void remove_files() noexcept;
  [[nodiscard]] std::string header_of(std::size_t directory) const;
  [[nodiscard]] std::string file_of(std::size_t directory, int family) const;
  [[nodiscard]] std::int64_t file_bytes(int family) const;
  /// Whether a family has files of its own: it is in storage, and not in the journal.
  [[nodiscard]] bool in_files(int family) const {
    return !hashes_[static_cast<std::size_t>(family)].empty();
  }
  void read_journal();
  [[nodiscard]] std::size_t read_block_record(const std::string& record, std::size_t begin,
                                              const std::string& where);
  [[nodiscard]] const Family& layout(BlockId id) const {
    return families_[static_cast<std::size_t>(id.family())];
  }
  [[nodiscard]] State& state(BlockId id) {
    return states_[static_cast<std::size_t>(blocks_.index(id))];
  }
  [[nodiscard]] std::int64_t segments_of(BlockId id) const;
  /// Throws Error{storage} unless a block is of a family in storage.
  void check(BlockId id) const;
  [[nodiscard]] Segment segment(BlockId id, std::int64_t part) const;
  [[nodiscard]] std::uint64_t hash(BlockId id, std::uint32_t version, std::int64_t part,
                                   const std::byte* data, std::int64_t bytes) const;
  [[nodiscard]] std::uint64_t* hashes(BlockId id);
  void carry_out(BlockId id, std::byte* data, bool writes, std::uint32_t version,
                 std::uint64_t* made);
  void append(const std::string& record);
  void add_to_record(BlockId id, std::string& record);
  void make_durable(const std::function<void()>& make);
  void commit_pending();
  void sync_and_record(const std::vector<BlockId>& blocks);

  BlockTable blocks_;
  StorageOptions options_;
  FileSystem& files_;
  std::vector<Family> families_;
  std::vector<Directory> directories_;
  std::vector<BlockSource> sources_;                // by family
  std::vector<State> states_;                       // by block
  std::vector<std::int64_t> first_segments_;        // by block, among those of its family
  std::vector<std::vector<std::uint64_t>> hashes_;  // by family: of the segments of its blocks
  AlignedBuffers buffers_;
  std::vector<std::vector<std::byte>> kept_;  // by block, of families in the journal
  std::unique_ptr<Journal> journal_;
  std::mutex journal_mutex_;
  // What is written and not durable yet, and the thread that makes it so.
  std::mutex commit_mutex_;
  std::condition_variable commit_changed_;
  std::vector<BlockId> pending_;
  bool committing_ = false;
  int flushing_ = 0;  // who waits for it
  bool ends_ = false;
  std::exception_ptr commit_failure_;
  std::thread committer_;
  std::atomic<bool> failed_ = false;  // to make something durable
  std::vector<std::string> notes_;
};

}  // namespace strata
