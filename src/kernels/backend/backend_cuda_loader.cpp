// Finds and loads libstrata_cuda.so, once.
//
// Method: the candidates in order; the first file that exists is loaded, and if that fails its
// reason is the answer (a second, older plugin further down the list would only confuse). The
// plugin stays loaded until the process ends: its devices have threads and handles that must not
// lose their code. One that was built for other headers is refused before anything in it is called
// but the question which. Without a driver the file that was found is left alone: it loads cuBLAS,
// which takes 0.12 s and 100 MB to say that there is no GPU.

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "base/check.hpp"
#include "kernels/backend/backend.hpp"

namespace strata {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFile = "libstrata_cuda.so";
constexpr const char* kDriver = "libcuda.so.1";
constexpr const char* kFunction = "strata_cuda_backend";
constexpr const char* kVersionFunction = "strata_cuda_backend_version";
constexpr const char* kVersion = STRATA_BACKEND_VERSION;  // of this library, by CMake

struct Loaded {
  const Backend* backend = nullptr;
  std::string why;  ///< if there is no backend
};

/// The folders of the executable and of the object that this code is in (the library, where it is
/// shared), without repetition.
std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  const auto add = [&](const fs::path& file) {
    std::error_code error;
    const fs::path folder = fs::canonical(file, error).parent_path();
    if (!error && (folders.empty() || folders.back() != folder)) folders.push_back(folder);
  };
  add("/proc/self/exe");
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_folders), &info) != 0 &&
      info.dli_fname != nullptr) {
    add(info.dli_fname);
  }
  return folders;
}

Loaded open(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return {nullptr, fmt::format("cannot load {}", dlerror())};
  const auto refuse = [&](std::string why) {
    dlclose(library);
    return Loaded{nullptr, std::move(why)};
  };
  void* function = dlsym(library, kFunction);
  if (function == nullptr)
    return refuse(fmt::format("{} is no CUDA backend: it lacks {}", file, kFunction));
  void* version = dlsym(library, kVersionFunction);
  if (version == nullptr) {
    return refuse(fmt::format("{} was built for a version before {} was asked for, this is {}",
                              file, kVersionFunction, kVersion));
  }
  const std::string built_for = reinterpret_cast<BackendVersion>(version)();
  if (built_for != kVersion)
    return refuse(
        fmt::format("{} was built for version {}, this is {}", file, built_for, kVersion));
  try {
    return {&reinterpret_cast<BackendFactory>(function)(), {}};
  } catch (const std::exception& error) {
    return {nullptr, fmt::format("{}: {}", file, error.what())};
  }
}

/// The file that was found, where there is a driver that its devices need.
Loaded open_found(const std::string& file) {
  void* driver = dlopen(kDriver, RTLD_LAZY | RTLD_LOCAL);
  if (driver == nullptr)
    return {nullptr, fmt::format("no driver for {}: cannot load {}", file, dlerror())};
  Loaded loaded = open(file);
  dlclose(driver);  // the CUDA runtime has opened it, if anything
  return loaded;
}

Loaded load() {
  if (const char* named = std::getenv("STRATA_CUDA_BACKEND"); named != nullptr && *named != '\0') {
    std::error_code error;
    const fs::path file = fs::absolute(named, error);  // a bare name is no search
    return open(error ? named : file.string());
  }
  std::string looked;
  for (const fs::path& folder : own_folders()) {
    for (const fs::path& place : {folder, folder.parent_path() / "lib"}) {
      std::error_code error;
      if (fs::exists(place / kFile, error)) return open_found((place / kFile).string());
      looked += looked.empty() ? place.string() : " or " + place.string();
    }
  }
  Loaded loaded = open(kFile);
  if (loaded.backend == nullptr) {
    loaded.why = fmt::format("{} is not in {}; {}", kFile, looked, loaded.why);
  }
  return loaded;
}

}  // namespace

const Backend* cuda_backend(std::string* why) {
  static const Loaded loaded = load();
  if (why != nullptr) *why = loaded.why;
  return loaded.backend;
}

}  // namespace strata
