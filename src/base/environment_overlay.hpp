#pragma once
// Environment variables for the length of a scope, for libraries that can be told in no other way.
//
// Contract: `environ` points to an array of our own, with the variables replaced or added, and back
// to the array it had when the scope ends. Unlike setenv this never frees an array that another
// thread is reading in getenv: the old one stays as it was, ours is kept until the process ends.
// Where another thread has set a variable meanwhile, what it set stays and only our variables are
// put back, by setenv. Scopes nest; they do not overlap in two threads: callers hold a lock.

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace strata {

class EnvironmentOverlay {
 public:
  using Variable = std::pair<std::string, std::string>;  ///< name, value
  using Variables = std::vector<Variable>;

  explicit EnvironmentOverlay(Variables variables);
  EnvironmentOverlay(const EnvironmentOverlay&) = delete;
  EnvironmentOverlay& operator=(const EnvironmentOverlay&) = delete;
  ~EnvironmentOverlay();

 private:
  /// True if the environment is unchanged since the scope began.
  [[nodiscard]] bool untouched() const;

  Variables variables_;
  std::vector<std::optional<std::string>> old_values_;  ///< of the variables
  char** before_;
  char** ours_ = nullptr;
  std::vector<char*> as_made_;  ///< what `ours_` held
};

}  // namespace strata
