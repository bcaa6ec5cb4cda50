#pragma once
// A process that is killed in the middle of its work.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <system_error>

namespace strata::test {

/// When to kill: after so many microseconds and, if a file is named, once it is so long, which a
/// slow machine reaches, too.
struct KillAt {
  useconds_t after = 0;
  std::string file{};
  std::uintmax_t bytes = 0;
};

/// Does the work in another process, and kills that; it may have ended before.
template <class Work>
void kill_in_the_middle(const Work& work, const KillAt& at) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
    } catch (const std::exception& error) {
      std::fputs(error.what(), stderr);
      ::_exit(1);
    }
    ::_exit(0);
  }
  ::usleep(at.after);
  int status = 0;
  bool ended = false;
  const auto long_enough = [&] {
    std::error_code none;
    const std::uintmax_t bytes = std::filesystem::file_size(at.file, none);
    return !none && bytes >= at.bytes;
  };
  while (!at.file.empty() && !ended && !long_enough()) {
    ended = ::waitpid(child, &status, WNOHANG) == child;
    ::usleep(100);
  }
  if (!ended) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) != 0) << "it failed by itself";
}

}  // namespace strata::test
