// Faults: what is missing, cut off, corrupt, full or in the way is an error that names the file,
// and leaves nothing behind.

#include "io/file.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <thread>

#include "scratch.hpp"
#include "strata/io.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;
using test::expect_error;
using test::Scratch;

std::string gzip(const std::string& text) { return GzipEncoder().encode(text, true); }

// "a,b\n1,2\n" compressed by gzip(1): bytes that this library did not make.
const std::string kForeignGzip(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x4b\xd4\x49\xe2\x32\xd4\x31\xe2\x02\x00\x7b\x07\x97"
    "\x0a\x08\x00\x00\x00",
    28);

TEST(Gzip, UnpacksWhatGzipMade) { EXPECT_EQ(gunzip(kForeignGzip, "f"), "a,b\n1,2\n"); }

TEST(Gzip, JoinsMembersAndIgnoresPadding) {
  const std::string two = gzip("one,") + gzip("") + gzip("two");
  EXPECT_EQ(gunzip(two, "f"), "one,two");
  EXPECT_EQ(gunzip(two + std::string(512, '\0'), "f"), "one,two");
}

TEST(Gzip, EveryCutAndEveryFlippedBitIsNoticed) {
  std::string text;
  for (int k = 0; k < 400; ++k) text += std::to_string(k * k) + "\n";
  const std::string good = gzip(text);
  for (std::size_t length = 2; length < good.size(); ++length) {
    expect_error(ErrorKind::input, {"f.gz"}, [&] { (void)gunzip(good.substr(0, length), "f.gz"); });
  }
  int unnoticed = 0;
  for (std::size_t bit = 16; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    try {
      EXPECT_EQ(gunzip(bad, "f.gz"), text) << "bit " << bit;
      ++unnoticed;  // time stamp, operating system, extra flags: no data
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
    }
  }
  EXPECT_LE(unnoticed, 8 * 7);
}

TEST(Gzip, RefusesForeignBytesBehindTheData) {
  expect_error(ErrorKind::input, {"f.gz", "4 bytes"},
               [] { (void)gunzip(gzip("x") + "oops", "f.gz"); });
}

TEST(Gzip, CompressesStreamsOfManyPieces) {
  GzipEncoder encoder;
  std::string packed;
  std::string text;
  for (int k = 0; k < 300; ++k) {
    const std::string piece(static_cast<std::size_t>(k * 37), static_cast<char>('a' + k % 26));
    text += piece;
    packed += encoder.encode(piece, false);
  }
  packed += encoder.encode({}, true);
  EXPECT_LT(packed.size(), text.size() / 50);
  EXPECT_EQ(gunzip(packed, "f"), text);
}

TEST(FileBytes, RecognizesGzipByContent) {
  const Scratch scratch;
  EXPECT_EQ(FileBytes::read(scratch.put("a.csv", kForeignGzip)).bytes(), "a,b\n1,2\n");
  EXPECT_EQ(FileBytes::map(scratch.put("b.csv.gz", kForeignGzip)).bytes(), "a,b\n1,2\n");
  const std::string plain = scratch.put("c.csv.gz", "a,b\n1,2\n");
  expect_error(ErrorKind::input, {plain, "not gzip"}, [&] { (void)FileBytes::read(plain); });
  expect_error(ErrorKind::input, {plain, "not gzip"}, [&] { (void)FileBytes::map(plain); });
}

TEST(FileBytes, NamesWhatItCannotRead) {
  const Scratch scratch;
  const std::string missing = scratch.path("missing");
  expect_error(ErrorKind::input, {missing, "No such file"}, [&] { (void)read_csv(missing); });
  expect_error(ErrorKind::input, {missing, "No such file"}, [&] { (void)read_mtx(missing); });
  expect_error(ErrorKind::input, {missing, "No such file"}, [&] { (void)NpyFile(missing); });
  fs::create_directory(scratch.path("folder"));
  // It has no end.
  for (const auto& read : {FileBytes::read, FileBytes::map})
    expect_error(ErrorKind::input, {"/dev/zero", "a device"}, [&] { (void)read("/dev/zero"); });
  expect_error(ErrorKind::input, {"folder", "directory"},
               [&] { (void)FileBytes::read(scratch.path("folder")); });
}

TEST(FileBytes, ReadsEmptyFilesAndPipes) {
  const Scratch scratch;
  EXPECT_EQ(FileBytes::read(scratch.put("empty", "")).bytes(), "");
  EXPECT_EQ(FileBytes::map(scratch.path("empty")).bytes(), "");
  const std::string pipe = scratch.path("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string text(3'000'000, 'x');
  std::thread writer([&] { std::ofstream(pipe) << text; });
  EXPECT_EQ(FileBytes::read(pipe).bytes(), text);
  writer.join();
}

TEST(OutputFile, AppearsOnlyWhenCommitted) {
  const Scratch scratch;
  const std::string path = scratch.put("out", "old");
  {
    OutputFile file = open_output(path);
    file.write(std::string(5'000'000, 'x'));
    EXPECT_EQ(scratch.files(), 2U);
    EXPECT_EQ(test::slurp(path), "old");
  }
  EXPECT_EQ(scratch.files(), 1U);
  EXPECT_EQ(test::slurp(path), "old");
  OutputFile file = open_output(path);
  file.write("new");
  file.commit();
  EXPECT_EQ(test::slurp(path), "new");
  EXPECT_EQ(scratch.files(), 1U);
}

TEST(OutputFile, KeepsTheOrderOfSmallAndLargePieces) {
  const Scratch scratch;
  const std::string large(2'500'000, 'L');
  for (const char* name : {"out", "out.gz"}) {
    OutputFile file = open_output(scratch.path(name));
    for (const std::string& piece : {std::string("a"), large, std::string("b"), std::string("c")}) {
      file.write(piece);
    }
    file.commit();
    EXPECT_EQ(FileBytes::read(scratch.path(name)).bytes(), "a" + large + "bc");
  }
}

TEST(OutputFile, FollowsLinksAndKeepsPermissions) {
  const Scratch scratch;
  const std::string path = scratch.put("real", "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real", scratch.path("link"));
  write_csv(scratch.path("link"), {"a"}, {{1}});
  EXPECT_TRUE(fs::is_symlink(scratch.path("link")));
  EXPECT_EQ(test::slurp(path), "a\n1\n");
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST(OutputFile, NamesWhatItCannotWrite) {
  const Scratch scratch;
  const std::vector<double> x{1, 2};
  const std::string nowhere = scratch.path("no/such/folder/x.npy");
  expect_error(ErrorKind::storage, {nowhere, "No such file"}, [&] { write_npy(nowhere, x); });
  const std::string under_file = scratch.put("file", "") + "/x.mtx";
  expect_error(ErrorKind::storage, {under_file, "Not a directory"},
               [&] { write_mtx(under_file, x); });
  fs::create_directory(scratch.path("folder.csv"));
  expect_error(ErrorKind::storage, {"folder.csv", "directory"},
               [&] { write_csv(scratch.path("folder.csv"), {"x"}, {x}); });
  EXPECT_EQ(scratch.files(), 2U);
}

// /dev/full refuses every byte, as a full disk does; it must also still be a device afterwards.
TEST(OutputFile, ReportsAFullDisk) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const std::vector<double> x{1, 2};
  expect_error(ErrorKind::storage, {"/dev/full", "No space"}, [&] { write_npy("/dev/full", x); });
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

TEST(OutputFile, LeavesNothingBehindWhenTheDiskFillsUp) {
  const Scratch scratch;
  const std::string path = scratch.put("x.npy", "old");
  const std::vector<double> x(500'000, 1.0);
  // A limit on the size of files stands for a disk that fills up half-way.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 1'500'000;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  expect_error(ErrorKind::storage, {path, "File too large"}, [&] { write_npy(path, x); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(scratch.files(), 1U);
  EXPECT_EQ(test::slurp(path), "old");
}

}  // namespace
}  // namespace strata
