#pragma once
// Running the command line program as a user would, and what its tests share.
//
// Contract: no shell, standard input is empty, standard output and error are pipes (so no
// terminal), signals are as a fresh shell would have them. Every run ends: after kPatience the
// program is killed, which a test sees as status −1.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/random.hpp"
#include "strata/io.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/campaign.hpp"

extern char** environ;  // NOLINT

namespace strata::test {

using Words = std::vector<std::string>;

struct Outcome {
  int status = -1;  ///< of exit; −1: ended by a signal
  std::string out;
  std::string err;
};

class Program {
 public:
  /// `output`: a file that is standard output, instead of what finish() returns.
  explicit Program(const Words& words, const std::string& file = STRATA_CLI,
                   const std::string& output = "") {
    std::array<int, 2> out{};
    std::array<int, 2> err{};
    if (::pipe2(out.data(), O_CLOEXEC) != 0 || ::pipe2(err.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (output.empty()) {
      posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    } else {
      posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY, 0);
    }
    posix_spawn_file_actions_adddup2(&actions, err[1], 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    Words all{file};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : all) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (posix_spawn(&process_, file.c_str(), &actions, &attributes, arguments.data(), environ) != 0)
      process_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    ::close(out[1]);
    ::close(err[1]);
    pipes_ = {pollfd{out[0], POLLIN, 0}, pollfd{err[0], POLLIN, 0}};
  }
  Program(const Program&) = delete;  // owns a process
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (process_ > 0) finish();
    for (const pollfd& pipe : pipes_)
      if (pipe.fd >= 0) ::close(pipe.fd);
  }

  void interrupt(int signal = SIGINT) const {
    if (process_ > 0) ::kill(process_, signal);
  }

  /// Reads what the program says until it ends.
  Outcome finish() {
    Outcome outcome;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    std::array<std::string*, 2> texts{&outcome.out, &outcome.err};
    while (pipes_[0].fd >= 0 || pipes_[1].fd >= 0) {
      if (std::chrono::steady_clock::now() > deadline) ::kill(process_, SIGKILL);
      if (::poll(pipes_.data(), pipes_.size(), 200) < 0) continue;
      for (std::size_t i = 0; i < pipes_.size(); ++i) {
        if (pipes_[i].fd < 0 || pipes_[i].revents == 0) continue;
        std::array<char, 4096> buffer{};
        const ssize_t got = ::read(pipes_[i].fd, buffer.data(), buffer.size());
        if (got > 0) texts[i]->append(buffer.data(), static_cast<std::size_t>(got));
        if (got == 0) {
          ::close(pipes_[i].fd);
          pipes_[i].fd = -1;
        }
      }
    }
    int status = 0;
    if (process_ > 0 && ::waitpid(process_, &status, 0) == process_ && WIFEXITED(status))
      outcome.status = WEXITSTATUS(status);
    process_ = -1;
    return outcome;
  }

 private:
  static constexpr std::chrono::seconds kPatience{120};

  pid_t process_ = -1;
  std::array<pollfd, 2> pipes_{pollfd{-1, 0, 0}, pollfd{-1, 0, 0}};
};

/// Null where the text is no JSON.
inline Json json_of(const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const JsonError&) {
    return nullptr;
  }
}

inline Outcome run_program(const Words& words, const std::string& file = STRATA_CLI) {
  return Program(words, file).finish();
}

inline Words operator+(Words a, const Words& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A run that must succeed and stay silent on standard error.
inline std::string expect_done(const Words& words) {
  const Outcome outcome = run_program(words);
  EXPECT_EQ(outcome.status, 0) << testing::PrintToString(words) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  return outcome.out;
}

/// The same with --json: exactly one object on standard output.
inline Json expect_json(const Words& words) {
  const std::string text = expect_done(words + Words{"--json"});
  const Json object = json_of(text);
  EXPECT_TRUE(object.is_object()) << text;
  return object;
}

inline void expect_pieces(const std::string& text, const Words& pieces) {
  for (const std::string& piece : pieces)
    EXPECT_NE(text.find(piece), std::string::npos) << "'" << piece << "' is not in: " << text;
}

/// One line on standard error that begins with "strata: " and holds each piece.
inline void expect_complaint(const Outcome& outcome, int status, const Words& pieces) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.err.rfind("strata: ", 0), 0U) << outcome.err;
  EXPECT_EQ(outcome.err.find('\n') + 1, outcome.err.size()) << outcome.err;
  EXPECT_LT(outcome.err.size(), 400U) << outcome.err;
  expect_pieces(outcome.err, pieces);
}

/// A run that must fail: a complaint, and nothing on standard output.
inline void expect_refused(const Words& words, int status, const Words& pieces) {
  // Refusals are alike, and with a sanitizer a start takes as long as a solve.
  static Thinned refusals(3);
  if (refusals.skips()) return;
  SCOPED_TRACE(testing::PrintToString(words));
  const Outcome outcome = run_program(words);
  expect_complaint(outcome, status, pieces);
  EXPECT_EQ(outcome.out, "");
}

/// The fields that every verb with a factorization promises, consistent with one another.
inline void expect_run_fields(const Json& object, std::int64_t n) {
  const Words links{"host_to_device_bytes", "device_to_host_bytes", "device_to_device_bytes",
                    "storage_read_bytes", "storage_write_bytes"};
  EXPECT_EQ(object.at("n"), n);
  EXPECT_GT(object.at("tile").get<std::int64_t>(), 0);
  EXPECT_FALSE(object.at("policy").get<std::string>().empty());
  EXPECT_GE(object.at("devices").size(), 1U);
  EXPECT_FALSE(object.at("tuning").get<std::string>().empty());
  EXPECT_GE(object.at("seconds").get<double>(), 0.0);
  EXPECT_GE(object.at("predicted_seconds").get<double>(), 0.0);
  const double order = static_cast<double>(n);
  EXPECT_GE(object.at("flops").get<double>(), order * order * order / 3);
  EXPECT_EQ(object.at("flops_per_second").get<double>() > 0, n > 0);
  EXPECT_EQ(object.at("tasks").get<std::int64_t>() > 0, n > 0);
  EXPECT_EQ(object.at("peak_device_bytes").get<std::int64_t>() > 0, n > 0);
  EXPECT_GE(object.at("planned_traffic").at("floor_bytes").get<std::int64_t>(), 0);
  for (const std::string& link : links) {
    EXPECT_GE(object.at("planned_traffic").at(link).get<std::int64_t>(), 0);
    EXPECT_EQ(object.at("traffic").at(link), object.at("planned_traffic").at(link));
  }
}

/// A = G·Gᵀ + n·I, symmetric to the last bit, from uniform G.
inline DenseMatrix<double> positive_definite(std::int64_t n, std::uint64_t seed) {
  std::vector<double> g(static_cast<std::size_t>(n * n));
  for (std::size_t k = 0; k < g.size(); ++k) g[k] = random_uniform(seed, k) - 0.5;
  DenseMatrix<double> a{std::vector<double>(g.size()), n, n};
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      double sum = i == j ? static_cast<double>(n) : 0;
      for (std::int64_t k = 0; k < n; ++k)
        sum += g[static_cast<std::size_t>(i + k * n)] * g[static_cast<std::size_t>(j + k * n)];
      a.view()(i, j) = a.view()(j, i) = sum;
    }
  }
  return a;
}

inline DenseMatrix<double> random_columns(std::int64_t rows, std::int64_t cols,
                                          std::uint64_t seed) {
  DenseMatrix<double> b{std::vector<double>(static_cast<std::size_t>(rows * cols)), rows, cols};
  for (std::size_t k = 0; k < b.values.size(); ++k) b.values[k] = random_uniform(seed, k) - 0.5;
  return b;
}

/// Options that keep a run small and off any GPU.
inline Words small_device() { return {"--devices", "host", "--device-memory", "4MiB"}; }

/// A square matrix in C order, as NumPy writes it by itself.
template <class T>
void write_rows(const Scratch& scratch, const std::string& name, const DenseMatrix<T>& a) {
  ASSERT_EQ(a.rows, a.cols);
  std::vector<T> turned;
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t j = 0; j < a.cols; ++j) turned.push_back(a.view()(i, j));
  write_npy(scratch.path(name), MatrixView<const T>{turned.data(), a.cols, a.rows, a.cols});
  std::string bytes = slurp(scratch.path(name));
  const std::size_t order = bytes.find("True");
  const std::size_t end = bytes.find(" \n", order);  // blanks fill the header
  ASSERT_NE(end, std::string::npos);
  bytes.erase(end, 1).replace(order, 4, "False");
  (void)scratch.put(name, bytes);
}

}  // namespace strata::test
