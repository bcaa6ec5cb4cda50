#pragma once
// What the programs strata and strata-bench have in common around their verbs.
//
// Contract: errors become one line on standard error and an exit status (app.hpp); a help or
// version that was asked for is printed.

#include "cli/app.hpp"

namespace strata::cli {

/// Parses the command line, runs the verb that it names and returns the exit status.
int run_program(CommandLine& line, const Run& run, int argc, char** argv);

/// Runs a verb; what it throws becomes a line on standard error and an exit status.
int run_guarded(const Run& run);

/// The whole command line behind the name of the program, for reports.
[[nodiscard]] std::string command_line(int argc, char** argv, const std::string& name);

}  // namespace strata::cli
