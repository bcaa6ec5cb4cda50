#pragma once
// A shared library of somebody else, where it is installed: loaded at run time, never linked.
//
// Contract: loaded once, it stays for the rest of the process. Throws std::runtime_error with one
// line. Used by what does not link Strata, so it needs nothing of it.

#include <dlfcn.h>

#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace strata::bench {

class InstalledLibrary {
 public:
  /// Takes the first of the files that loads. `name` is what messages call it.
  InstalledLibrary(std::string name, std::span<const char* const> files) : name_(std::move(name)) {
    std::string why;
    for (const char* file : files) {
      library_ = dlopen(file, RTLD_NOW | RTLD_LOCAL);
      if (library_ != nullptr) return;
      why += std::string(why.empty() ? "" : "; ") + dlerror();
    }
    throw std::runtime_error(name_ + " is not installed: " + why);
  }

  template <class F>
  void bind(F*& function, const char* symbol) const {
    function = reinterpret_cast<F*>(dlsym(library_, symbol));
    if (function == nullptr) throw std::runtime_error("this " + name_ + " lacks " + symbol);
  }

  /// Checks the status of functions that return 0 if all is well.
  static void check(const char* function, int status) {
    if (status != 0)
      throw std::runtime_error(std::string(function) + ": status " + std::to_string(status));
  }

 private:
  std::string name_;
  void* library_ = nullptr;
};

}  // namespace strata::bench
