// The memory of sparse verbs as the system counts it, beside what they plan.

#include <sys/resource.h>

#include <filesystem>

#include "tests/cli/sparse_system.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

class CliSparseMemory : public SparseSystemFiles {
 protected:
  /// What the system counts as the most memory that a run had at once; standard output goes to
  /// out.json.
  [[nodiscard]] std::int64_t peak_of(const Words& words) const {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, path("out.json").c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    Words all = Words{STRATA_CLI} + words;
    std::vector<char*> arguments;
    for (std::string& word : all) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t process = -1;
    EXPECT_EQ(posix_spawn(&process, STRATA_CLI, &actions, nullptr, arguments.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    int status = -1;
    rusage usage{};
    EXPECT_EQ(::wait4(process, &status, 0, &usage), process);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << slurp(path("out.json"));
    return std::int64_t{usage.ru_maxrss} * 1024;
  }
};

#ifndef STRATA_SANITIZED  // which take memory of their own
TEST_F(CliSparseMemory, IsWhatWasPlanned) {
  write_system(with_values(grid(20, 20, 20), 3), 1);
  constexpr std::int64_t kBeside = 16 << 20;  // BLAS, libraries, indices, buffers of files
  expect_done(Words{"factor", path("A.mtx"), "-o", path("F"), "--devices", "host:1"});
  const std::int64_t least = peak_of({"analyze", path("A.mtx")});
  for (const Words& words :
       std::vector<Words>{{"logdet", path("A.mtx")},
                          {"variances", path("A.mtx"), "-o", path("v.npy")},
                          {"variances", path("A.mtx"), "-o", path("z.mtx"), "--selected"},
                          {"variances", path("F"), "-o", path("v.npy")},
                          {"variances", path("F"), "-o", path("z.mtx"), "--selected"}}) {
    for (const char* budget : {"4MiB", "256MiB"}) {
      const Words all = words + Words{"--devices", "host:1", "--device-memory", budget};
      SCOPED_TRACE(testing::PrintToString(all));
      // Beyond the program with a matrix and its analysis.
      const std::int64_t taken = peak_of(all + Words{"--json"}) - least;
      const Json object = json_of(slurp(path("out.json")));
      const auto host = object.at("host_bytes").get<std::int64_t>();
      const std::int64_t planned = host + (object.contains("peak_device_bytes")
                                               ? object.at("peak_device_bytes").get<std::int64_t>()
                                               : 0);
      EXPECT_LE(taken, planned + kBeside);
      EXPECT_LE(host, 3 * object.at("analysis").at("panel_bytes").get<std::int64_t>());
    }
  }
}
#endif

TEST_F(CliSparseMemory, IsRefusedBeforeAnythingIsFactored) {
  write_system(with_values(grid(8, 8, 8), 3), 1);
  expect_done(Words{"factor", path("A.mtx"), "-o", path("F"), "--devices", "host:1"});
  for (const char* from : {"A.mtx", "F"}) {
    for (const bool selected : {false, true}) {
      Words words{
          "variances", path(from),        "-o",  path(selected ? "z.mtx" : "v.npy"), "--devices",
          "host:1",    "--device-memory", "1MiB"};
      if (selected) words.push_back("--selected");
      const Json whole = expect_json(words);
      const auto planned = whole.at("host_bytes").get<std::int64_t>();
      std::filesystem::remove(path(selected ? "z.mtx" : "v.npy"));
      // What is said to work is the same however little is allowed, and works (below).
      const auto panels = whole.at("analysis").at("panel_bytes").get<std::int64_t>();
      for (const std::int64_t allowed : {planned - 1, (planned + panels) / 2, planned / 10})
        refuse(words + Words{"--host-memory", std::to_string(allowed)}, 3,
               {"host memory", "inverse (beside L they take", std::to_string(planned) + " bytes"});
      EXPECT_GT(planned, panels);
      const Json bounded = expect_json(words + Words{"--host-memory", std::to_string(planned)});
      EXPECT_EQ(bounded.at("variances"), whole.at("variances"));
      std::filesystem::remove(path(selected ? "z.mtx" : "v.npy"));
      const std::string text = expect_done(words);
      expect_pieces(text, {"host memory", "planned"});
    }
  }
}

}  // namespace
}  // namespace strata::test
