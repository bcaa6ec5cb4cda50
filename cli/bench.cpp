// strata bench: starts the program of the benchmarks, strata-bench, in place of this one.

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "base/check.hpp"
#include "cli/app.hpp"

namespace strata::cli {

void add_bench(Command& app) {
  app.add_subcommand("bench", "benchmarks, with peers beside them (the program strata-bench)");
}

bool starts_bench(int argc, char** argv) {
  return argc > 1 && std::string_view(argv[1]) == "bench";
}

int start_bench(char** argv) {
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const std::string beside = (self.parent_path() / "strata-bench").string();
  char** words = argv + 1;
  std::string name = "strata-bench";
  words[0] = name.data();
  execv(beside.c_str(), words);
  const std::string why = std::strerror(errno);
  execvp(name.c_str(), words);
  fail(ErrorKind::input, "cli",
       "{}: {}, and no strata-bench is on the PATH: 'make build' builds it, and it belongs beside "
       "strata",
       beside, why);
}

}  // namespace strata::cli
