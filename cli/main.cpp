// The command line program: parses, runs one verb, turns errors into one line and an exit status.

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "cli/app.hpp"

namespace {

using namespace strata;
using namespace strata::cli;

int status_of(ErrorKind kind) {
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
  std::string command = "strata";
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

/// Results that nobody could read are none: the one place at which it is noticed that standard
/// output is full or closed.
int after_output(int status) {
  const bool failed = std::ferror(stdout) != 0;
  errno = 0;
  if (std::fflush(stdout) == 0 && !failed) return status;
  return complain(fmt::format("cannot write to standard output: {}",
                              errno != 0 ? std::strerror(errno) : "results are lost"),
                  kEnvironment);
}

int run_guarded(const Run& run) {
  try {
    const int status = run();
    end_progress();
    return after_output(status);
  } catch (const Error& error) {
    return complain(error.what(), status_of(error.kind()));
  } catch (const std::bad_alloc&) {
    return complain("out of host memory", kEnvironment);
  } catch (const std::exception& error) {
    return complain(error.what(), kEnvironment);
  }
}

}  // namespace

int main(int argc, char** argv) {
  watch_interrupt();
  CLI::App app{
      "Strata factors and solves systems larger than the memory of the GPU, or of the machine."};
  app.name("strata");
  app.set_version_flag("--version", std::string("strata ") + STRATA_VERSION);
  app.require_subcommand(1);
  CommonOptions common;
  for (int i = 0; i < argc; ++i)
    common.command += (i > 0 ? " " : "") + std::string(i > 0 ? argv[i] : "strata");
  app.footer(
      "Examples:\n"
      "  strata fit data.csv --x lon --y lat --value rain --holdout 0.1 -o model.json --report "
      "fit.html\n"
      "  strata predict model.json places.csv -o predictions.csv\n"
      "  strata solve A.npy b.npy -o x.npy --device-memory 512MiB\n"
      "  strata solve A.mtx b.npy -o x.npy\n"
      "  strata plan cholesky --n 1000000 --tile 8192 --devices emulated:4 --device-memory 64GiB\n"
      "'strata VERB --help' lists the options of a verb.");
  Run run;
  add_info(app, common, run);
  add_plan(app, common, run);
  add_solve(app, common, run);
  add_loglik(app, common, run);
  add_fit(app, common, run);
  add_predict(app, common, run);
  add_crossval(app, common, run);
  add_simulate(app, common, run);
  add_kl(app, common, run);
  add_qr(app, common, run);
  add_lstsq(app, common, run);
  add_eigs(app, common, run);
  add_analyze(app, common, run);
  add_factor(app, common, run);
  add_logdet(app, common, run);
  add_variances(app, common, run);
  add_schur(app, common, run);
  add_shift(app, common, run);
  add_bench(app, common, run);
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
