#include "base/pending_path.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "base/output_file.hpp"
#include "strata/error.hpp"
#include "tests/io/scratch.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using test::Scratch;

TEST(PendingPath, IsRemovedUnlessItIsKept) {
  const Scratch scratch;
  {
    const PendingPath gone(scratch.put("gone", "x"));
    PendingPath kept(scratch.put("kept", "x"));
    kept.keep();
    PendingPath moved(scratch.put("moved", "x"));
    const PendingPath owner = std::move(moved);
    EXPECT_TRUE(moved.empty());  // NOLINT
    EXPECT_EQ(owner.path(), scratch.path("moved"));
    PendingPath replaced(scratch.put("first", "x"));
    replaced = PendingPath(scratch.put("second", "x"));
    EXPECT_FALSE(fs::exists(scratch.path("first")));
    EXPECT_TRUE(fs::exists(scratch.path("second")));
  }
  EXPECT_EQ(scratch.files(), 1U);
  EXPECT_TRUE(fs::exists(scratch.path("kept")));
  { const PendingPath absent(scratch.path("absent")); }
}

TEST(PendingDirectory, WhatWasMadeForItIsRemovedAgain) {
  const Scratch scratch;
  for (const char* name : {"a/b/c", "a/b/c/", "a"}) {
    {
      const PendingDirectory pending(scratch.path(name), "test");
      EXPECT_TRUE(fs::is_directory(scratch.path(name)));
    }
    EXPECT_EQ(scratch.files(), 0U) << name;
  }
  fs::create_directory(scratch.path("there"));
  { const PendingDirectory pending(scratch.path("there/b"), "test"); }
  { const PendingDirectory pending(scratch.path("there"), "test"); }
  EXPECT_TRUE(fs::is_empty(scratch.path("there")));
  {
    PendingDirectory kept(scratch.path("there/k/l"), "test");
    kept.keep();
  }
  EXPECT_TRUE(fs::is_directory(scratch.path("there/k/l")));
  test::expect_error(ErrorKind::storage, {"file/x"}, [&] {
    (void)scratch.put("file", "x");
    const PendingDirectory pending(scratch.path("file/x"), "test");
  });
}

// In a process of its own, which ends without destructors.
TEST(PendingPaths, AreAllRemovedAtOnce) {
  const Scratch scratch;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const PendingDirectory folder(scratch.path("d/e"), "test");
    OutputFile in_folder(scratch.path("d/e/f"));
    OutputFile output(scratch.path("g"));
    output.write("x");
    PendingPath kept(scratch.put("kept", "x"));
    kept.keep();
    std::vector<PendingPath> many;
    for (int k = 0; k < 40; ++k) many.emplace_back(scratch.put("m" + std::to_string(k), "x"));
    remove_pending_paths();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(scratch.files(), 1U);
  EXPECT_TRUE(fs::exists(scratch.path("kept")));
}

bool stops = false;

TEST(PendingPaths, ALongFileStopsBetweenItsPieces) {
  const Scratch scratch;
  const std::string much(std::size_t{9} << 20, 'x');
  stop_writing_when([] { return stops; });
  for (const bool in_one : {true, false}) {
    OutputFile output(scratch.path("long"));
    stops = false;
    if (!in_one) output.write(much);
    stops = true;
    test::expect_error(ErrorKind::cancelled, {"cancelled"}, [&] { output.write(much); });
  }
  EXPECT_EQ(scratch.files(), 0U);
  // A short one is whole sooner than it would be removed.
  OutputFile output(scratch.path("short"));
  output.write("x");
  output.commit();
  EXPECT_EQ(test::slurp(scratch.path("short")), "x");
  stop_writing_when(nullptr);
}

std::string watched;
std::uintmax_t watched_bytes = 0;

/// All bytes of a file are there, under some name.
bool is_there() {
  for (const auto& entry : fs::directory_iterator(watched))
    if (entry.file_size() >= watched_bytes) return true;
  return false;
}

TEST(PendingPaths, ALongFileStopsUntilItIsSeen) {
  const Scratch scratch;
  const std::string much(std::size_t{9} << 20, 'x');
  watched = fs::path(scratch.path("long")).parent_path();
  watched_bytes = much.size();
  stop_writing_when(is_there);
  {
    OutputFile output(scratch.path("long"));
    output.write(much);
    test::expect_error(ErrorKind::cancelled, {"cancelled"}, [&] { output.commit(); });
  }
  {
    OutputFile output(scratch.path("mapped"));
    std::fill_n(output.map(much.size()), much.size(), std::byte{1});
    test::expect_error(ErrorKind::cancelled, {"cancelled"},
                       [&] { output.commit_mapped(much.size()); });
  }
  stop_writing_when(nullptr);
  EXPECT_EQ(scratch.files(), 0U);
}

}  // namespace
}  // namespace strata
