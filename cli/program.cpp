// From the words of a command line to an exit status: what main() does in each of our programs.

#include "cli/program.hpp"

#include <fmt/format.h>

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

/// CLI11 complains about what is missing before what is superfluous; a misspelt word is both, and
/// the word itself helps more.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto code = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool missing = code == CLI::ExitCodes::RequiredError;
  if (!missing && code != CLI::ExitCodes::ExtrasError) return error.what();
  const CLI::App* verb = &app;
  std::string command = app.get_name();
  while (!verb->get_subcommands().empty()) {
    verb = verb->get_subcommands().front();
    command += " " + verb->get_name();
  }
  std::vector<std::string> choices;
  for (const CLI::App* choice : verb->get_subcommands([](const CLI::App*) { return true; }))
    choices.push_back(choice->get_name());
  const std::vector<std::string> words = app.remaining(true);
  if (!words.empty() && (choices.empty() || words[0].rfind('-', 0) == 0))
    return fmt::format("'{}' is not expected by {}: see {} --help", words[0], command, command);
  if (!words.empty())
    return fmt::format("'{}' is not one of {}", words[0], fmt::join(choices, ", "));
  if (!choices.empty())
    return fmt::format("{} needs one of {}: see {} --help", command, fmt::join(choices, ", "),
                       command);
  return fmt::format("{}: see {} --help", error.what(), command);
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

int run_program(CLI::App& app, const Run& run, int argc, char** argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return after_output(app.exit(help));
  } catch (const CLI::CallForVersion& version) {
    return after_output(app.exit(version));
  } catch (const CLI::ParseError& error) {
    return complain(usage_message(app, error), kUsage);
  }
  return run_guarded(run);
}

}  // namespace strata::cli
