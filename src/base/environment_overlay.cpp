#include "base/environment_overlay.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <list>
#include <mutex>
#include <string_view>

namespace strata {
namespace {

struct Environment {
  std::vector<std::string> strings;  ///< the variables that are ours, "name=value"
  std::vector<char*> array;          ///< all of them, then a null pointer
};

/// Room for one more environment that lives until the process ends: somebody may still read it.
Environment& kept_environment() {
  static std::mutex mutex;
  static std::list<Environment> kept;
  const std::scoped_lock lock(mutex);
  return kept.emplace_back();
}

bool is_named(std::string_view entry, std::string_view name) {
  return entry.size() > name.size() && entry[name.size()] == '=' &&
         entry.substr(0, name.size()) == name;
}

}  // namespace

EnvironmentOverlay::EnvironmentOverlay(Variables variables)
    : variables_(std::move(variables)), before_(environ) {
  Environment& kept = kept_environment();
  kept.strings.reserve(variables_.size());  // the array points into them
  for (const auto& [name, value] : variables_) {
    const char* old = std::getenv(name.c_str());
    old_values_.push_back(old == nullptr ? std::nullopt : std::optional<std::string>(old));
    kept.array.push_back(kept.strings.emplace_back(name + "=" + value).data());
  }
  for (char** entry = before_; entry != nullptr && *entry != nullptr; ++entry) {
    const bool replaced =
        std::any_of(variables_.begin(), variables_.end(),
                    [&](const Variable& variable) { return is_named(*entry, variable.first); });
    if (!replaced) kept.array.push_back(*entry);
  }
  kept.array.push_back(nullptr);
  as_made_ = kept.array;
  ours_ = kept.array.data();
  environ = ours_;
}

// setenv changes the array in place where the variable is there already, and makes another else; it
// may then have freed the one from before.
bool EnvironmentOverlay::untouched() const {
  return environ == ours_ && std::equal(as_made_.begin(), as_made_.end(), ours_);
}

EnvironmentOverlay::~EnvironmentOverlay() {
  if (untouched()) {
    environ = before_;
    return;
  }
  for (std::size_t i = 0; i < variables_.size(); ++i) {
    const char* name = variables_[i].first.c_str();
    if (old_values_[i]) {
      (void)setenv(name, old_values_[i]->c_str(), 1);
    } else {
      (void)unsetenv(name);
    }
  }
}

}  // namespace strata
