#pragma once
// Options of factors in storage, as tests of them share.

#include <cstdint>
#include <string>
#include <utility>

#include "strata/options.hpp"
#include "tests/io/scratch.hpp"

namespace strata::test {

/// What a run may use, as a share of the factor; 0: what is free.
struct StorageBudget {
  std::string devices = "host:1";
  double host = 0;
  double device = 0;
};

/// Options of a factor of so many bytes.
inline RunOptions within_budget(const StorageBudget& budget, std::int64_t bytes) {
  const auto share = [&](double of) {
    return static_cast<std::int64_t>(of * static_cast<double>(bytes));
  };
  RunOptions options;
  options.devices = budget.devices;
  options.host_memory_bytes = share(budget.host);
  options.device_memory_bytes = share(budget.device);
  return options;
}

/// The same with so many directories of a folder.
inline RunOptions in_folders(RunOptions options, const Scratch& folder, int directories,
                             bool resume = false) {
  options.storage.resume = resume;
  for (int d = 0; d < directories; ++d)
    options.storage.directories.push_back(folder.path("d" + std::to_string(d)));
  return options;
}

/// The same of a method.
template <class Method>
Method in_folders(Method options, const Scratch& folder, int directories, bool resume = false) {
  options.run = in_folders(std::move(options.run), folder, directories, resume);
  return options;
}

}  // namespace strata::test
