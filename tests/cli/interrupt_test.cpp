// SIGINT: an orderly end within two seconds, wherever it strikes. The bound here is wider than the
// contract's, for sanitizers and busy machines; without a notice of SIGINT these runs take longer.

#include <sys/stat.h>

#include <thread>

#include "tests/cli/program.hpp"

namespace strata::test {
namespace {

using Clock = std::chrono::steady_clock;

/// Interrupts a run after `delay` and expects its end as cancelled, with nothing written.
void expect_cancelled(const Words& words, std::chrono::milliseconds delay, const Scratch& scratch) {
  const std::size_t before = scratch.files();
  Program program(words);
  std::this_thread::sleep_for(delay);
  const auto start = Clock::now();
  program.interrupt();
  const Outcome outcome = program.finish();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  expect_complaint(outcome, 130, {"cancelled"});
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(scratch.files(), before);
}

class CliInterrupt : public testing::Test {
 protected:
  CliInterrupt() {
    std::vector<std::vector<double>> columns(3);
    for (std::uint64_t i = 0; i < 6000; ++i)
      for (std::uint64_t c = 0; c < 3; ++c) columns[c].push_back(random_uniform(5, 3 * i + c));
    write_csv(scratch.path("data.csv"), {"x", "y", "z"}, columns);
  }
  [[nodiscard]] Words verb(const std::string& name) const {
    return {name,
            scratch.path("data.csv"),
            "--x",
            "x",
            "--y",
            "y",
            "--value",
            "z",
            "--devices",
            "host",
            "--device-memory",
            "3MiB",
            "--tile",
            "32",
            "--report",
            scratch.path("r.html"),
            "--trace",
            scratch.path("t.json")};
  }
  Scratch scratch;
};

TEST_F(CliInterrupt, LogLikelihood) {
  // A smoothness with a Bessel function and small tiles: many seconds of work.
  expect_cancelled(verb("loglik") + Words{"--variance", "1", "--range", "0.1", "--smoothness",
                                          "1.3", "--nugget", "0.1"},
                   std::chrono::milliseconds(500), scratch);
}

TEST_F(CliInterrupt, Fit) {
  expect_cancelled(verb("fit") + Words{"-o", scratch.path("m.json"), "--json"},
                   std::chrono::milliseconds(1500), scratch);
}

TEST_F(CliInterrupt, APlanThatIsBeingMade) {
  expect_cancelled({"plan", "cholesky", "--n", "1000000", "--tile", "1024", "--devices",
                    "emulated:1", "--device-memory", "16GiB", "--report", scratch.path("r.html")},
                   std::chrono::milliseconds(500), scratch);
}

TEST_F(CliInterrupt, ASparseFactor) {
  // In its natural order a grid has a band of side², in tiles that are small.
  constexpr std::int64_t kSide = 32;
  std::string text = "%%MatrixMarket matrix coordinate real symmetric\n";
  constexpr std::int64_t kOrder = kSide * kSide * kSide;
  const std::string order = std::to_string(kOrder);
  const std::string entries = std::to_string(4 * kOrder - 3 * kSide * kSide);
  text += order + " " + order + " " + entries + "\n";
  for (std::int64_t i = 0; i < kOrder; ++i) {
    const std::string row = std::to_string(i + 1) + " ";
    text += row + row + "7\n";
    for (const std::int64_t step : {std::int64_t{1}, kSide, kSide * kSide})
      if (i / step % kSide > 0) text += row + std::to_string(i + 1 - step) + " -1\n";
  }
  expect_cancelled({"factor", scratch.put("A.mtx", text), "-o", scratch.path("F"), "--ordering",
                    "natural", "--tile", "32", "--devices", "host"},
                   std::chrono::milliseconds(800), scratch);
}

TEST_F(CliInterrupt, WhileAnInputIsRead) {
  // Nobody ever writes into the pipe that it reads.
  const std::string pipe = scratch.path("pipe.csv");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expect_cancelled({"loglik", pipe, "--x", "x", "--y", "y", "--value", "z", "--variance", "1",
                    "--range", "1", "--smoothness", "1"},
                   std::chrono::milliseconds(500), scratch);
}

}  // namespace
}  // namespace strata::test
