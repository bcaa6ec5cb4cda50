// The tuning table: the nearest order, what a file keeps, and files that are none.

#include "run/potrf_tuning.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

#include "run/device_set.hpp"
#include "strata/error.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/pinned_backend.hpp"

namespace strata {
namespace {

using test::Scratch;
using test::slurp;

constexpr CholeskyBlocking kFused{CholeskyVariant::fused, 64, 0};
constexpr CholeskyBlocking kLeft{CholeskyVariant::left, 128, 256};
constexpr CholeskyBlocking kRight{CholeskyVariant::right, 0, 512};

PotrfTuning example() {
  return {
      "GPU A",
      {{Element::fp64, 1024, kFused}, {Element::fp64, 4096, kLeft}, {Element::fp32, 2048, kRight}}};
}

/// An environment variable for the time of a test.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name); old != nullptr) old_ = old, had_ = true;
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  }
  Environment(const Environment&) = delete;  // puts the variable back
  Environment& operator=(const Environment&) = delete;
  ~Environment() { had_ ? setenv(name_, old_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

void expect_refused(const std::string& path, const std::string& piece) {
  try {
    (void)read_potrf_tuning(path, "GPU A");
    FAIL() << piece;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
  }
}

TEST(PotrfTuning, TakesTheNearestOrderByRatio) {
  const PotrfTuning tuning = example();
  for (const std::int64_t n : {0, 1, 1000, 1024, 2047, 2048})  // 2048 is as near to both
    EXPECT_EQ(tuning.blocking_for(Element::fp64, n), kFused) << n;
  for (const std::int64_t n : {2049, 2600, 4096, 100000})
    EXPECT_EQ(tuning.blocking_for(Element::fp64, n), kLeft) << n;
  EXPECT_EQ(tuning.blocking_for(Element::fp32, 5), kRight);
  EXPECT_EQ(PotrfTuning{}.blocking_for(Element::fp64, 100), CholeskyBlocking{});
}

TEST(PotrfTuning, WhatIsAskedForComesBeforeTheTable) {
  EXPECT_EQ(with_tuning({}, kLeft), kLeft);
  EXPECT_EQ(with_tuning({.nb = 512}, kLeft), (CholeskyBlocking{CholeskyVariant::left, 128, 512}));
  EXPECT_EQ(with_tuning({.variant = CholeskyVariant::left, .recnb = 64}, kLeft),
            (CholeskyBlocking{CholeskyVariant::left, 64, 256}));
  const CholeskyBlocking right{.variant = CholeskyVariant::right};
  EXPECT_EQ(with_tuning(right, kLeft), right) << "tuned for another variant";
  EXPECT_EQ(with_tuning({}, {}), CholeskyBlocking{});
}

TEST(PotrfTuning, AFileKeepsTheTablesOfAllModels) {
  const Scratch scratch;
  const std::string path = scratch.path("new/folder/potrf.json");
  EXPECT_TRUE(read_potrf_tuning(path, "GPU A").entries.empty()) << "there is no file yet";
  write_potrf_tuning(path, example());
  write_potrf_tuning(path, {"GPU B", {{Element::fp64, 1024, kRight}}});
  EXPECT_EQ(read_potrf_tuning(path, "GPU A").entries, example().entries);
  EXPECT_EQ(read_potrf_tuning(path, "GPU B").blocking_for(Element::fp64, 1), kRight);
  EXPECT_TRUE(read_potrf_tuning(path, "GPU C").entries.empty());
  write_potrf_tuning(path, {"GPU A", {{Element::fp64, 1024, kLeft}}});
  const PotrfTuning again = read_potrf_tuning(path, "GPU A");
  EXPECT_EQ(again.entries.size(), 3U);
  EXPECT_EQ(again.blocking_for(Element::fp64, 1024), kLeft);
  EXPECT_EQ(again.blocking_for(Element::fp32, 2048), kRight);
}

TEST(PotrfTuning, AFileThatIsNoneIsNamed) {
  const Scratch scratch;
  const std::string good = scratch.path("good.json");
  write_potrf_tuning(good, example());
  const std::string text = slurp(good);
  expect_refused(scratch.put("cut.json", text.substr(0, text.size() / 2)), "tuning table");
  expect_refused(scratch.put("other.json", R"({"format": "strata machine 1"})"), "tuning table");
  expect_refused(scratch.put("list.json", "[1, 2]"), "tuning table");
  expect_refused(scratch.put("empty.json", ""), "tuning table");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    return scratch.put("changed.json", changed);
  };
  expect_refused(with("\"fused\"", "\"sideways\""), "sideways");
  expect_refused(with("\"recnb\": 64", "\"recnb\": 65"), "65");
  expect_refused(with("\"nb\": 256", "\"nb\": 100"), "100");
  expect_refused(with("\"n\": 1024", "\"n\": 0"), "order 0");
  expect_refused(with("\"fp64\"", "\"fp12\""), "fp12");
  expect_refused(with("\"n\": 1024", "\"n\": \"many\""), "tuning table");
  EXPECT_THROW(write_potrf_tuning(scratch.path("cut.json"), example()), Error)
      << "a file that is none is not replaced";
  EXPECT_THROW(write_potrf_tuning(scratch.path("good.json/x.json"), example()), Error);
}

// Earlier versions let runs choose what now only benchmarks do.
TEST(PotrfTuning, AFileOfAnEarlierVersionIsRead) {
  const Scratch scratch;
  const std::string path = scratch.put("old.json", R"({"format": "strata potrf 1", "tables": [
    {"model": "GPU A", "entries": [
      {"precision": "fp64", "n": 1024, "variant": "fused", "ib": 8, "recnb": 64, "nb": 0},
      {"precision": "fp64", "n": 4096, "variant": "exclusive", "ib": 4, "recnb": 128, "nb": 0},
      {"precision": "fp32", "n": 4096, "variant": "right", "ib": 4, "recnb": 0, "nb": 512}]}]})");
  const PotrfTuning old = read_potrf_tuning(path, "GPU A");
  EXPECT_EQ(old.blocking_for(Element::fp64, 1024), kFused);
  EXPECT_EQ(old.blocking_for(Element::fp64, 4096),
            (CholeskyBlocking{CholeskyVariant::fused, 128, 0}));
  EXPECT_EQ(old.blocking_for(Element::fp32, 4096), kRight);
  write_potrf_tuning(path, {"GPU A", {{Element::fp64, 1024, kLeft}}});
  EXPECT_EQ(slurp(path).find("\"ib\""), std::string::npos);
  EXPECT_EQ(read_potrf_tuning(path, "GPU A").blocking_for(Element::fp32, 4096), kRight);
}

TEST(PotrfTuning, ThePlaceOfTheFile) {
  const Environment home("HOME", "/home/somebody");
  const Environment config("XDG_CONFIG_HOME", nullptr);
  const Environment tuning("STRATA_TUNING", nullptr);
  EXPECT_EQ(potrf_tuning_path(), "/home/somebody/.config/strata/potrf.json");
  {
    const Environment other("XDG_CONFIG_HOME", "/etc/xdg");
    EXPECT_EQ(potrf_tuning_path(), "/etc/xdg/strata/potrf.json");
    const Environment file("STRATA_TUNING", "/tmp/t.json");
    EXPECT_EQ(potrf_tuning_path(), "/tmp/t.json");
  }
  const Environment nobody("HOME", nullptr);
  EXPECT_EQ(potrf_tuning_path(), "");
  EXPECT_TRUE(read_potrf_tuning("", "GPU A").entries.empty());
}

TEST(PotrfTuning, TheHostNeverReadsIt) {
  const Scratch scratch;
  const Environment file("STRATA_TUNING", scratch.put("t.json", "nonsense").c_str());
  EXPECT_TRUE(potrf_tuning_of(host_backend(), 0).entries.empty());
  if (const Backend* cuda = cuda_backend(); cuda != nullptr) {
    EXPECT_THROW((void)potrf_tuning_of(*cuda, 0), Error);
  }
}

TEST(PotrfTuning, AChecksumIsThatOfTheSource) {
  // The vectors of RFC 9923, appendix C.
  EXPECT_EQ(tuning_checksum(""), "cbf29ce484222325");
  EXPECT_EQ(tuning_checksum("a"), "af63dc4c8601ec8c");
  EXPECT_EQ(tuning_checksum("foobar"), "85944171f73967e8");
  EXPECT_NE(tuning_checksum("\xff"), tuning_checksum("\x7f"));
}

TEST(PotrfTuning, ATableKnowsItsFile) {
  const Scratch scratch;
  const std::string path = scratch.path("potrf.json");
  EXPECT_EQ(PotrfTuning{}.source, "none");
  EXPECT_EQ(read_potrf_tuning("", "GPU A").source, "none");
  EXPECT_EQ(read_potrf_tuning(path, "GPU A").source, "none") << "there is no file yet";
  write_potrf_tuning(path, example());
  const std::string before = read_potrf_tuning(path, "GPU A").source;
  EXPECT_EQ(before, path + " " + tuning_checksum(slurp(path)));
  EXPECT_EQ(read_potrf_tuning(path, "GPU B").source, before) << "it was read all the same";
  write_potrf_tuning(path, {"GPU B", {{Element::fp64, 1024, kRight}}});
  EXPECT_NE(read_potrf_tuning(path, "GPU A").source, before) << "other bytes";
}

RunOptions in_little_memory() {
  RunOptions options;
  options.device_memory_bytes = 1 << 20;
  return options;
}

TEST(PotrfTuning, ThePlannedPathIgnoresIt) {
  const test::PinnedBackend gpu;  // anything but the host
  const Scratch scratch;
  const std::string path = scratch.path("potrf.json");
  const Environment file("STRATA_TUNING", path.c_str());
  PotrfTuning table = example();
  table.model = gpu.devices()[0].model;
  write_potrf_tuning(path, table);
  const std::string identity = path + " " + tuning_checksum(slurp(path));
  for (const CholeskyPath tuned : {CholeskyPath::automatic, CholeskyPath::in_core}) {
    const DeviceSet devices(gpu, {0}, in_little_memory(), tuned);
    EXPECT_EQ(devices.tuning().blocking_for(Element::fp64, 1024), kFused);
    EXPECT_EQ(devices.tuning().source, identity);
  }
  // With the caller's blocking too, which is then all there is.
  for (const CholeskyBlocking& blocking : {CholeskyBlocking{}, CholeskyBlocking{.recnb = 128}}) {
    const DeviceSet devices(gpu, {0}, in_little_memory(), CholeskyPath::planned);
    EXPECT_TRUE(devices.tuning().entries.empty());
    EXPECT_EQ(devices.tuning().source, "ignored");
    EXPECT_EQ(with_tuning(blocking, devices.tuning().blocking_for(Element::fp64, 1024)), blocking);
  }
  // Ignored is not even read.
  (void)scratch.put("potrf.json", "nonsense");
  EXPECT_THROW(DeviceSet(gpu, {0}, in_little_memory(), CholeskyPath::automatic), Error);
  EXPECT_EQ(DeviceSet(gpu, {0}, in_little_memory(), CholeskyPath::planned).tuning().source,
            "ignored");
  EXPECT_EQ(
      DeviceSet(host_backend(), {0}, in_little_memory(), CholeskyPath::automatic).tuning().source,
      "none")
      << "the host has nothing to tune";
}

TEST(PotrfTuning, OptionsThatDoNotExistAreRefused) {
  for (const CholeskyBlocking& good : {CholeskyBlocking{}, kFused, kLeft, kRight})
    EXPECT_NO_THROW(check_blocking(good));
  const std::vector<std::pair<CholeskyBlocking, std::string>> bad{
      {{.recnb = 96}, "recnb is 96"}, {{.nb = 127}, "nb is 127"}, {{.nb = -128}, "nb is -128"}};
  for (const auto& [options, piece] : bad) {
    try {
      check_blocking(options);
      ADD_FAILURE() << piece;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse);
      EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
    }
  }
  EXPECT_THROW(check_blocking({.variant = static_cast<CholeskyVariant>(9)}), Error);
  EXPECT_THROW((void)parse_variant("up"), Error);
  EXPECT_THROW((void)parse_variant("exclusive"), Error);
  for (const char* name : {"auto", "fused", "left", "right"})
    EXPECT_STREQ(to_string(parse_variant(name)), name);
}

}  // namespace
}  // namespace strata
