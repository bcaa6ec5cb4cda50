// From the words of a command line to an exit status: what main() does in each of our programs.

#include "cli/program.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

namespace strata::cli {
namespace {

int exit_status_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::misuse: return kUsage;
    case ErrorKind::numerical: return kNumbersSaidNo;
    case ErrorKind::cancelled: return kCancelled;
    case ErrorKind::input:
    case ErrorKind::memory:
    case ErrorKind::device:
    case ErrorKind::storage: return kEnvironment;
  }
  return kEnvironment;
}

/// File names may hold anything; a message is one line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  return text;
}

int complain(const std::string& message, int status) {
  end_progress();
  note_told();
  fmt::print(stderr, "strata: {}\n", one_line(message));
  return status;
}

/// Results that could not be written fail the command: the one place at which it is noticed that
/// standard output is full or closed.
int after_output(int status) {
  const bool failed = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed) return status;
  return complain(fmt::format("cannot write to standard output: {}",
                              errno != 0 ? std::strerror(errno) : "results are lost"),
                  kEnvironment);
}

}  // namespace

int run_guarded(const Run& run) {
  try {
    const int status = run();
    end_progress();
    return after_output(status);
  } catch (const Error& error) {
    return complain(error.what(), exit_status_of(error.kind()));
  } catch (const std::bad_alloc&) {
    return complain("out of host memory", kEnvironment);
  } catch (const std::exception& error) {
    return complain(error.what(), kEnvironment);
  }
}

std::string command_line(int argc, char** argv, const std::string& name) {
  std::string command = name;
  for (int i = 1; i < argc; ++i) command += std::string(" ") + argv[i];
  return command;
}

int run_program(CommandLine& line, const Run& run, int argc, char** argv) {
  try {
    if (const std::optional<int> status = line.parse(argc, argv)) return after_output(*status);
  } catch (const UsageError& error) {
    return complain(error.what(), kUsage);
  }
  return run_guarded(run);
}

}  // namespace strata::cli
