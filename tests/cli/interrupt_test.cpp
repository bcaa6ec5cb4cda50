// SIGINT, SIGTERM and SIGHUP: an orderly end within two seconds, wherever it strikes. The bound
// here is wider than the contract's, for sanitizers and busy machines; without a notice of them
// these runs take longer.

#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "tests/cli/program.hpp"
#include "tests/support/campaign.hpp"

namespace strata::test {
namespace {

using Clock = std::chrono::steady_clock;

/// Interrupts a run when `due` says so and expects its end as cancelled, with nothing written.
void expect_cancelled_when(const Words& words, const std::function<bool()>& due, int signal,
                           const Scratch& scratch) {
  const std::size_t before = scratch.files();
  Program program(words);
  const auto latest = Clock::now() + std::chrono::seconds(60);
  while (!due() && Clock::now() < latest) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  const auto start = Clock::now();
  program.interrupt(signal);
  const Outcome outcome = program.finish();
  EXPECT_LT(Clock::now() - start, std::chrono::seconds(10));
  expect_complaint(outcome, 130, {"cancelled"});
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(scratch.files(), before);
}

void expect_cancelled(const Words& words, std::chrono::milliseconds delay, const Scratch& scratch) {
  const auto due = Clock::now() + delay;
  expect_cancelled_when(
      words, [due] { return Clock::now() >= due; }, SIGINT, scratch);
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
  /// A matrix of a grid with this on its diagonal; where it lies.
  [[nodiscard]] std::string grid(int diagonal) const {
    std::string text = "%%MatrixMarket matrix coordinate real symmetric\n";
    const std::string order = std::to_string(kOrder);
    const std::string entries = std::to_string(4 * kOrder - 3 * kSide * kSide);
    text += order + " " + order + " " + entries + "\n";
    for (std::int64_t i = 0; i < kOrder; ++i) {
      const std::string row = std::to_string(i + 1) + " ";
      text += row + row + std::to_string(diagonal) + "\n";
      for (const std::int64_t step : {std::int64_t{1}, kSide, kSide * kSide})
        if (i / step % kSide > 0) text += row + std::to_string(i + 1 - step) + " -1\n";
    }
    return scratch.put("A.mtx", text);
  }
  /// Memory for a part of what is computed with, so that it comes and goes.
  [[nodiscard]] Words streamed() const {
    return {"--devices",       "host:1",
            "--device-memory", "8MiB",
            "--report",        scratch.path("r.html"),
            "--trace",         scratch.path("t.json")};
  }
  static constexpr std::int64_t kSide = 32;
  static constexpr std::int64_t kOrder = kSide * kSide * kSide;
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
  expect_cancelled({"factor", grid(7), "-o", scratch.path("F"), "--ordering", "natural", "--tile",
                    "32", "--devices", "host"},
                   std::chrono::milliseconds(800), scratch);
}

TEST_F(CliInterrupt, ALongTallMatrix) {
  // Column by column, and with memory for a small part: each step reads V again.
  constexpr std::int64_t kRows = 100'000;
  constexpr std::int64_t kColumns = 60;
  const DenseMatrix<double> v = random_columns(kRows, kColumns, 3);
  write_npy(scratch.path("V.npy"), v.view());
  expect_cancelled(Words{"qr", scratch.path("V.npy"), "-o", scratch.path("Q.npy"), "--r",
                         scratch.path("R.npy"), "--method", "mgs"} +
                       streamed(),
                   std::chrono::milliseconds(800), scratch);
}

TEST_F(CliInterrupt, CyclesOfGmres) {
  const std::string matrix = grid(6);
  const std::vector<double> b(kOrder, 1.0);
  write_npy(scratch.path("b.npy"), b);
  expect_cancelled(Words{"solve", matrix, scratch.path("b.npy"), "-o", scratch.path("x.npy"),
                         "--method", "gmres", "--restart", "60", "--tolerance", "1e-14"} +
                       streamed(),
                   std::chrono::milliseconds(1200), scratch);
}

TEST_F(CliInterrupt, CyclesOfEigs) {
  expect_cancelled(
      Words{"eigs", grid(6), "-o", scratch.path("V.npy"), "--values", scratch.path("w.npy"), "--k",
            "60", "--which", "smallest", "--method", "lanczos"} +
          streamed(),
      std::chrono::milliseconds(1200), scratch);
}

/// Whether a temporary file lies in a folder.
bool is_written_in(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().rfind(".strata-", 0) == 0) return true;
  return false;
}

TEST_F(CliInterrupt, WhileAFactorIsSaved) {
  // In its natural order a grid has a factor of 250 MB. It is as well if both files were complete
  // by then, but a factor is there as a whole or not at all.
  const std::string matrix = grid(7);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (kSanitized && signal != SIGTERM) continue;
    const std::string folder = scratch.path("F");
    Program program({"factor", matrix, "-o", folder, "--ordering", "natural", "--devices", "host"});
    const auto latest = Clock::now() + std::chrono::seconds(60);
    while (!is_written_in(folder) && Clock::now() < latest)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    program.interrupt(signal);
    const Outcome outcome = program.finish();
    EXPECT_EQ(outcome.status, 130) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder));
  }
}

TEST_F(CliInterrupt, BehindAFactorThatWasSavedIsTooLate) {
  const std::string folder = scratch.path("F");
  Program program({"factor", grid(7), "-o", folder, "--ordering", "natural", "--devices", "host"});
  const auto latest = Clock::now() + std::chrono::seconds(60);
  while (!std::filesystem::exists(folder + "/factor") && Clock::now() < latest)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.interrupt(SIGINT);
  const Outcome outcome = program.finish();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("factor written to"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder + "/analysis"));
}

TEST_F(CliInterrupt, AFactorInStorageSaysHowItGoesOn) {
  constexpr std::int64_t kRows = 900;
  std::vector<double> a(kRows * kRows);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = random_uniform(9, i);
  write_npy(scratch.path("A.npy"), MatrixView<const double>{a.data(), kRows, kRows, kRows});
  const std::string folder = scratch.path("S");
  const Words words{
      "factor", scratch.path("A.npy"), "-o",     folder,          "--storage", folder, "--tile",
      "3",      "--devices",           "host:1", "--host-memory", "2MiB"};
  Program program(words);
  const auto latest = Clock::now() + std::chrono::seconds(60);
  while (!std::filesystem::exists(folder + "/storage") && Clock::now() < latest)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  program.interrupt(SIGINT);
  expect_complaint(program.finish(), 130, {"cancelled", "--resume"});
  EXPECT_FALSE(std::filesystem::exists(folder + "/factor"));
}

TEST_F(CliInterrupt, ATemporaryFileIsRemovedByWhateverSignal) {
  // Two million numbers, compressed: the table is being written for seconds.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    expect_cancelled_when(
        {"simulate", "--random", "2000", "--variance", "1", "--range", "0.1", "--smoothness", "0.5",
         "-r", "1000", "-o", scratch.path("fields.csv.gz"), "--devices", "host"},
        [&] { return is_written_in(scratch.path("")); }, signal, scratch);
  }
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
