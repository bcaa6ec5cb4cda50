// FileStore and its journal: over losses of power at every operation, failures of the disk, damage
// of every file, and as any store is.

#include "store/file_store.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "tests/io/scratch.hpp"
#include "tests/store/conformance.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/simulated_files.hpp"

namespace strata::test {
namespace {

std::shared_ptr<FileIo> one_thread() { return make_threaded_io(1); }

BlockTable in_storage(BlockTable table) {
  for (int f = 0; f < table.families(); ++f) table.keep_in_storage(f);
  return table;
}

/// A store with the folder that it is in.
class InFolder final : public BlockStore {
 public:
  InFolder(const BlockTable& table, const std::vector<BlockSource>& sources, StorageOptions options,
           int directories) {
    for (int d = 0; d < directories; ++d)
      options.directories.push_back(folder_.path("d" + std::to_string(d)));
    store_ = FileStore::create(in_storage(table), options);
    for (std::size_t f = 0; f < sources.size(); ++f)
      store_->set_source(static_cast<int>(f), sources[f]);
  }
  [[nodiscard]] const BlockTable& blocks() const override { return store_->blocks(); }
  void read(BlockId id, std::byte* to) override { store_->read(id, to); }
  void write(BlockId id, const std::byte* from) override { store_->write(id, from); }

 private:
  Scratch folder_;
  std::unique_ptr<FileStore> store_;
};

StoreMaker in_folders(const std::string& name, std::int64_t journal_bytes, int directories,
                      std::shared_ptr<FileIo> (*io)()) {
  return {name, [=](const BlockTable& table, const std::vector<BlockSource>& sources) {
            StorageOptions options;
            options.journal_bytes = journal_bytes;
            options.io = io();
            return std::make_unique<InFolder>(table, sources, options, directories);
          }};
}

INSTANTIATE_TEST_SUITE_P(
    Files, StoreConformance,
    ::testing::Values(in_folders("InTheJournal", 1 << 20, 1, [] { return one_thread(); }),
                      in_folders("ByThreads", 0, 3,
                                 [] { return std::shared_ptr<FileIo>(make_threaded_io(4)); }),
                      in_folders("AsTheSystemLikes", 0, 2,
                                 [] { return std::shared_ptr<FileIo>(make_file_io()); })),
    [](const auto& info) { return info.param.name; });

/// A matrix of a few blocks of several segments each, with an odd rest, and small blocks beside it.
BlockTable small_problem() {
  BlockTable table;
  table.add(
      {.name = "A", .rows = 700, .cols = 9, .tile_rows = 700, .tile_cols = 2, .in_storage = true});
  table.add({.name = "p",
             .rows = 1,
             .cols = 9,
             .tile_rows = 1,
             .tile_cols = 2,
             .element = Element::int64,
             .in_storage = true});
  return table;
}

StorageOptions simulated(SimulatedFiles& files, int directories, bool at_once = true) {
  StorageOptions options;
  options.commits_at_once = at_once;
  for (int d = 0; d < directories; ++d) options.directories.push_back("d" + std::to_string(d));
  options.segment_bytes = 4096;
  options.journal_bytes = 64;
  options.matrix = 42;
  options.files = &files;
  options.io = one_thread();
  return options;
}

std::unique_ptr<FileStore> open_or_create(const BlockTable& table, const StorageOptions& options) {
  return FileStore::is_at(options.directories[0], *options.files)
             ? FileStore::open(table, options)
             : FileStore::create(table, options);
}

std::vector<std::byte> contents(FileStore& store, BlockId id) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(store.blocks().bytes(id)));
  store.read(id, bytes.data());
  return bytes;
}

/// Writes intermediate values, then last ones, of what is not there yet; checks what is.
void do_the_work(const BlockTable& table, const StorageOptions& options, int& found) {
  const auto store = open_or_create(table, options);
  for (const BlockId id : blocks_of(table)) {
    if (store->is_last(id)) {
      ASSERT_EQ(contents(*store, id), pattern(table, id, 7)) << table.name(id);
      ++found;
      continue;
    }
    if (id.col() % 2 == 0) {
      store->write(id, pattern(table, id, 1).data());
      ASSERT_EQ(contents(*store, id), pattern(table, id, 1));
    }
    store->write_last(id, pattern(table, id, 7).data());
  }
  store->flush();
  for (const BlockId id : blocks_of(table)) {
    ASSERT_TRUE(store->is_last(id)) << table.name(id);
    ASSERT_EQ(contents(*store, id), pattern(table, id, 7)) << table.name(id);
  }
}

/// `at_once`: operations come in one order; else what is committed together depends on threads.
std::int64_t expect_survival(bool at_once, int directories) {
  const BlockTable table = small_problem();
  std::int64_t operations = 0;
  {
    SimulatedFiles files(4096);
    int found = 0;
    do_the_work(table, simulated(files, directories, at_once), found);
    operations = files.operations();
  }
  int survived = 0;
  const auto seeds = static_cast<std::int64_t>(test::campaign(40, at_once ? 6 : 3, 1));
  for (std::int64_t at = 0; at < operations; ++at) {
    for (std::int64_t seed = 0; seed < seeds; ++seed) {
      SimulatedFiles files(4096);
      files.lose_power_at(at);
      int found = 0;
      try {
        do_the_work(table, simulated(files, directories, at_once), found);
        EXPECT_FALSE(at_once) << "it lost its power";
      } catch (const Error& error) {
        EXPECT_TRUE(files.power_is_lost()) << error.what();
      }
      if (::testing::Test::HasFailure()) return 0;
      files.restart(static_cast<std::uint64_t>(1000 * at + seed));
      // And once more, in the middle of what is left.
      files.lose_power_at(files.operations() + 1 + (at * 7 + seed * 13) % 40);
      try {
        do_the_work(table, simulated(files, directories, at_once), found);
      } catch (const Error& error) {
        EXPECT_TRUE(files.power_is_lost()) << error.what();
      }
      files.restart(static_cast<std::uint64_t>(at + 1000 * seed));
      found = 0;
      try {
        do_the_work(table, simulated(files, directories, at_once), found);
      } catch (const Error& error) {
        ADD_FAILURE() << "operation " << at << " seed " << seed << ": " << error.what();
      }
      survived += found;
      if (::testing::Test::HasFailure()) return 0;
    }
  }
  // Behind the run, how much is committed before the power goes out depends on threads.
  EXPECT_GT(survived, at_once ? operations : 0) << "what was durable is not done again";
  return operations * seeds;
}

TEST(FileStore, SurvivesALossOfPowerAtEveryOperation) {
  std::int64_t runs = 0;
  for (const bool at_once : {true, false}) {
    for (int directories = 1; directories <= 3; ++directories) {
      runs += expect_survival(at_once, directories);
      if (HasFatalFailure()) return;
    }
  }
  RecordProperty("runs_with_losses_of_power", std::to_string(runs));
}

TEST(FileStore, EveryFailureOfAnOperationIsToldAndCanBeResumed) {
  const BlockTable table = small_problem();
  SimulatedFiles counted(4096);
  int found = 0;
  do_the_work(table, simulated(counted, 2), found);
  for (std::int64_t at = 0; at < counted.operations(); ++at) {
    SimulatedFiles files(4096);
    files.fail_at(at, "Input/output error");
    try {
      do_the_work(table, simulated(files, 2), found);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::storage);
      EXPECT_NE(std::string(error.what()).find("Input/output error"), std::string::npos);
      EXPECT_NE(std::string(error.what()).find(": "), 0U) << "names the file";
    }
    if (HasFatalFailure()) return;
    try {
      do_the_work(table, simulated(files, 2), found);
    } catch (const Error& error) {
      FAIL() << at << ": " << error.what();
    }
    if (HasFatalFailure()) return;
  }
}

TEST(FileStore, RetriesNoSyncThatFailed) {
  const BlockTable table = small_problem();
  SimulatedFiles files;
  const StorageOptions options = simulated(files, 1);
  const BlockId first(0, 0, 0);
  const BlockId second(0, 0, 1);
  {
    const auto store = FileStore::create(table, options);
    store->write_last(first, pattern(table, first, 7).data());
    files.fail_sync(0);
    EXPECT_THROW(store->write_last(second, pattern(table, second, 7).data()), Error);
    // The disk is well again, and says so; what it has dropped is not known.
    EXPECT_THROW(store->write_last(second, pattern(table, second, 7).data()), Error);
    EXPECT_THROW(store->write_last({0, 0, 2}, pattern(table, {0, 0, 2}, 7).data()), Error);
    EXPECT_THROW(store->note("done"), Error);
    EXPECT_FALSE(store->is_last(second));
  }
  const auto again = FileStore::open(table, options);
  EXPECT_TRUE(again->is_last(first));
  EXPECT_FALSE(again->is_last(second));
  EXPECT_EQ(contents(*again, first), pattern(table, first, 7));
}

TEST(FileStore, TellsLaterWhatWentWrongBehindAWrite) {
  const BlockTable table = small_problem();
  SimulatedFiles files;
  const StorageOptions options = simulated(files, 2, false);
  const BlockId first(0, 0, 0);
  const BlockId second(0, 0, 1);
  {
    const auto store = FileStore::create(table, options);
    store->write_last(first, pattern(table, first, 7).data());
    store->flush();
    EXPECT_TRUE(store->is_last(first));
    files.fail_sync(0);
    store->write_last(second, pattern(table, second, 7).data());
    EXPECT_THROW(store->flush(), Error);
    EXPECT_THROW(store->flush(), Error) << "it is not forgotten";
    EXPECT_THROW(store->write_last(second, pattern(table, second, 7).data()), Error);
    EXPECT_THROW(store->note("done"), Error);
    EXPECT_FALSE(store->is_last(second));
  }
  {
    const auto again = FileStore::open(table, options);
    EXPECT_TRUE(again->is_last(first));
    EXPECT_FALSE(again->is_last(second));
    again->write_last(second, pattern(table, second, 7).data());
    // It ends without being asked to flush.
  }
  const auto again = FileStore::open(table, options);
  for (const BlockId id : {first, second}) {
    EXPECT_TRUE(again->is_last(id));
    EXPECT_EQ(contents(*again, id), pattern(table, id, 7));
  }
}

TEST(FileStore, ReadsNothingButWhatWasWritten) {
  const BlockTable table = small_problem();
  // A write that is lost, one that goes elsewhere, at each place.
  for (std::int64_t n = 0; n < 40; ++n) {
    for (const bool lost : {true, false}) {
      SimulatedFiles files(4096);
      const auto store = FileStore::create(table, simulated(files, 2));
      const auto ids = blocks_of(table);
      for (const BlockId id : ids) store->write(id, pattern(table, id, 1).data());
      if (lost)
        files.drop_writes(n, 1);
      else
        files.misdirect_write(n, 4096);
      for (const BlockId id : ids) store->write(id, pattern(table, id, 2).data());
      int told = 0;
      for (const BlockId id : ids) {
        try {
          ASSERT_EQ(contents(*store, id), pattern(table, id, 2)) << table.name(id);
        } catch (const Error& error) {
          EXPECT_NE(std::string(error.what()).find(".blocks: A(0,"), std::string::npos)
              << error.what();
          ++told;
        }
      }
      // Later writes mend what went too far, but for the block whose write it was.
      const std::int64_t segments = 4 * 3 + 2;
      EXPECT_EQ(told > 0, n < segments) << n << ' ' << lost;
    }
  }
}

TEST(FileStore, NoticesEveryFlippedBit) {
  const BlockTable table = small_problem();
  SimulatedFiles files(4096);
  const StorageOptions options = simulated(files, 2);
  int found = 0;
  do_the_work(table, options, found);
  const auto whole = files.contents();
  std::int64_t told = 0;
  std::int64_t harmless = 0;
  for (const auto& [name, bytes] : whole) {
    const std::size_t stride = std::max<std::size_t>(bytes.size() / 400, 1);
    for (std::size_t at = 0; at < bytes.size(); at += stride) {
      files.content(name)[at] ^= static_cast<char>(1 << (at / stride % 8));
      try {
        const auto store = FileStore::open(table, options);
        for (const BlockId id : blocks_of(table)) {
          // A damaged last record is what a crash leaves: the block is written again.
          if (!store->is_last(id)) continue;
          ASSERT_EQ(contents(*store, id), pattern(table, id, 7)) << name << " byte " << at;
        }
        ++harmless;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::storage) << error.what();
        EXPECT_NE(std::string(error.what()).find(name.substr(0, 2)), std::string::npos)
            << error.what();
        ++told;
      }
      files.content(name)[at] = bytes[at];
    }
  }
  EXPECT_GT(told, 1000);
  EXPECT_GT(harmless, 0) << "the fill behind the last element of a block";
  // Nothing else was harmless than that and the last record.
  const std::string& journal = whole.at("d0/journal");
  std::int64_t silent = 0;
  for (std::size_t at = 0; at + 200 < journal.size(); ++at) {
    files.content("d0/journal")[at] ^= 0x10;
    try {
      (void)FileStore::open(table, options);
      ++silent;
    } catch (const Error&) {
    }
    files.content("d0/journal")[at] = journal[at];
  }
  EXPECT_EQ(silent, 0) << "a journal that is damaged in the middle";
}

TEST(FileStore, RefusesWhatIsNotItsOwnAndLeavesItUntouched) {
  const BlockTable table = small_problem();
  SimulatedFiles files(4096);
  int found = 0;
  do_the_work(table, simulated(files, 2), found);
  auto before = files.contents();
  const auto refused = [&](const StorageOptions& options, const BlockTable& of, bool opens,
                           const std::string& why) {
    try {
      (void)(opens ? FileStore::open(of, options) : FileStore::create(of, options));
      ADD_FAILURE() << "taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::storage) << error.what();
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
    EXPECT_TRUE(files.contents() == before) << "untouched";
  };
  StorageOptions other = simulated(files, 2);
  other.matrix = 43;
  refused(other, table, true, "d0/storage: the directory is of another matrix");
  StorageOptions elsewhere = simulated(files, 2);
  elsewhere.about = "LU of order 3";
  refused(elsewhere, table, true,
          "d0/storage: the directory is of another factorization than this, LU of order 3");
  refused(simulated(files, 2), table, false, "d0: the directory holds blocks already");
  refused(simulated(files, 1), table, true,
          "d0/storage: it was directory 1 of 2 of its factor, and is named as 1 of 1");
  StorageOptions swapped = simulated(files, 2);
  std::swap(swapped.directories[0], swapped.directories[1]);
  refused(swapped, table, true, "d1/storage: it was directory 2 of 2");
  StorageOptions absent = simulated(files, 2);
  absent.directories[1] = "d7";
  refused(absent, table, true, "d7: there are no blocks in it");
  BlockTable wider;
  wider.add(
      {.name = "A", .rows = 700, .cols = 9, .tile_rows = 700, .tile_cols = 3, .in_storage = true});
  refused(simulated(files, 2), wider, true,
          "d0/storage: the directory is of the same factorization");
  {
    const auto open = FileStore::open(table, simulated(files, 2));
    refused(simulated(files, 2), table, true, "d0/lock");
  }
  // Directories of a creation that did not end are no obstacle, those of others are.
  StorageOptions beside = simulated(files, 1);
  beside.directories = {"d9", "d0"};
  refused(beside, table, false, "d0: the directory holds blocks already");
  files.content("d0/storage").replace(0, 16, "strata storage 1");
  before = files.contents();
  refused(simulated(files, 2), table, true, "d0/storage: the directory has another version");
}

TEST(FileStore, RefusesADiskThatIsTooSmallBeforeItWrites) {
  const BlockTable table = small_problem();
  SimulatedFiles files(4096);
  const StorageOptions options = simulated(files, 1);
  const std::int64_t needed = (4 * 3 + 2) * 4096;  // four blocks of 11,200 bytes, one of 5,600
  files.set_room(needed - 1);
  try {
    (void)FileStore::create(table, options);
    FAIL() << "there is no room";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(needed)), std::string::npos)
        << error.what();
  }
  EXPECT_TRUE(files.contents().empty());
  files.set_room(needed);
  int found = 0;
  do_the_work(table, options, found);
}

TEST(FileStore, IsOfOneProcessAtATime) {
  const Scratch folder;
  const BlockTable table = small_problem();
  StorageOptions options;
  options.directories = {folder.path("a"), folder.path("b")};
  auto store = FileStore::create(table, options);
  EXPECT_THROW((void)FileStore::open(table, options), Error);
  const BlockId id(0, 0, 1);
  store->write_last(id, pattern(table, id, 3).data());
  store->flush();
  store->note("so far");
  EXPECT_NE(store->how(), "");
  store.reset();
  const auto again = FileStore::open(table, options);
  EXPECT_TRUE(again->is_last(id));
  EXPECT_EQ(contents(*again, id), pattern(table, id, 3));
  EXPECT_EQ(again->notes(), std::vector<std::string>{"so far"});
  EXPECT_THROW((void)contents(*again, {0, 0, 2}), Error) << "was never written";
}

TEST(FileStore, OpensWhatMayOnlyBeReadBesideOthersThatRead) {
  const BlockTable table = small_problem();
  SimulatedFiles files;
  StorageOptions options = simulated(files, 2);
  int found = 0;
  do_the_work(table, options, found);
  StorageOptions to_read = options;
  to_read.to_read = true;
  {
    const auto writer = FileStore::open(table, options);
    EXPECT_THROW((void)FileStore::open(table, to_read), Error);
  }
  {
    const auto reader = FileStore::open(table, to_read);
    EXPECT_THROW((void)FileStore::open(table, options), Error);
  }
  files.set_read_only();
  EXPECT_THROW((void)FileStore::open(table, options), Error);
  const auto first = FileStore::open(table, to_read);
  const auto second = FileStore::open(table, to_read);
  for (FileStore* store : {first.get(), second.get()}) {
    for (const BlockId id : blocks_of(table)) {
      EXPECT_TRUE(store->is_last(id));
      EXPECT_EQ(contents(*store, id), pattern(table, id, 7)) << table.name(id);
    }
    const BlockId id(0, 0, 1);
    EXPECT_THROW(store->write(id, pattern(table, id, 3).data()), Error);
    EXPECT_THROW(store->note("more"), Error);
    EXPECT_EQ(contents(*store, id), pattern(table, id, 7));
  }
  EXPECT_EQ(FileStore::recorded("d0", files).last.size(), blocks_of(table).size());
  EXPECT_EQ(FileStore::about("d0", files), options.about);
}

TEST(FileStore, SurvivesTheKillOfItsProcess) {
  const BlockTable table = small_problem();
  for (int kill = 0; kill < static_cast<int>(test::campaign(60, 20, 3)); ++kill) {
    const Scratch folder;
    StorageOptions options;
    options.directories = {folder.path("a"), folder.path("b")};
    options.segment_bytes = 4096;
    options.journal_bytes = 64;
    options.files = &system_files();
    int found = 0;
    for (int attempt = 0; attempt < 3; ++attempt) {
      const pid_t child = ::fork();
      if (child == 0) {
        options.io = one_thread();
        int mine = 0;
        do_the_work(table, options, mine);
        ::_exit(0);
      }
      ::usleep(static_cast<useconds_t>(random_bits(static_cast<std::uint64_t>(kill), 3) % 30000));
      ::kill(child, SIGKILL);
      int status = 0;
      ::waitpid(child, &status, 0);
    }
    options.io = one_thread();
    do_the_work(table, options, found);
    if (HasFatalFailure()) return;
  }
}

// ---- FileIo

TEST(FileIo, MovesRangesOfManyFilesAndNamesWhatFails) {
  const Scratch folder;
  for (const bool threads : {true, false}) {
    const auto io = threads ? make_threaded_io(4) : make_file_io();
    std::vector<std::unique_ptr<File>> files;
    std::vector<std::vector<std::byte>> parts;
    std::vector<FileRequest> requests;
    for (int f = 0; f < 3; ++f)
      files.push_back(system_files().create(folder.path(std::to_string(f) + (threads ? "t" : "u")),
                                            FileUse::buffered));
    for (std::size_t k = 0; k < 200; ++k) {
      parts.emplace_back(1 + k * 37 % 5000);
      for (std::size_t b = 0; b < parts[k].size(); ++b)
        parts[k][b] = static_cast<std::byte>(random_bits(k, b));
    }
    for (std::size_t k = 0; k < parts.size(); ++k)
      requests.push_back({files[k % 3].get(), static_cast<std::int64_t>(k / 3 * 5000),
                          parts[k].data(), std::ssize(parts[k]), true});
    io->carry_out(requests);
    std::vector<std::vector<std::byte>> back;
    for (const auto& part : parts) back.emplace_back(part.size());
    for (std::size_t k = 0; k < parts.size(); ++k) {
      requests[k].data = back[k].data();
      requests[k].writes = false;
    }
    io->carry_out(requests);
    EXPECT_TRUE(back == parts);
    EXPECT_FALSE(io->how().empty());
    requests[100].offset = 1 << 20;  // past the end
    back.assign(back.size(), {});
    for (std::size_t k = 0; k < parts.size(); ++k) {
      back[k].resize(parts[k].size());
      requests[k].data = back[k].data();
    }
    try {
      io->carry_out(requests);
      ADD_FAILURE() << "nothing is there";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::storage);
      EXPECT_NE(std::string(error.what()).find(files[1]->path()), std::string::npos);
      EXPECT_NE(std::string(error.what()).find("byte"), std::string::npos) << error.what();
    }
    back[100] = parts[100];
    EXPECT_TRUE(back == parts) << "the others are done";
    io->carry_out({});
  }
}

}  // namespace
}  // namespace strata::test
