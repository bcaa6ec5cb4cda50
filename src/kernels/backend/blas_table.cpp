// Loads the BLAS of the host.
//
// Method: the file is loaded as anybody would load it, only to learn where it is, whether it is an
// OpenBLAS, and which kernels it takes by itself. Then a private copy is loaded with what we want
// in its environment, which OpenBLAS reads once, in its constructor, and the first is let go. The
// order matters: while the first is there, what the copy depends on is there, too.

#include "kernels/backend/blas_table.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include "base/check.hpp"
#include "base/environment_overlay.hpp"
#include "base/private_library.hpp"

namespace strata {
namespace {

constexpr const char* kCoretype = "OPENBLAS_CORETYPE";

/// A program may be linked with another file of OpenBLAS. Without this the one that we load finds
/// the program's table of kernels, fills it when it begins and clears it when it is let go, and the
/// program's next call of its own BLAS goes nowhere. Address sanitizers refuse it.
#ifdef STRATA_SANITIZED
constexpr int kOwnSymbolsFirst = 0;
#else
constexpr int kOwnSymbolsFirst = RTLD_DEEPBIND;
#endif

EnvironmentOverlay::Variables one_thread() { return {{"OPENBLAS_NUM_THREADS", "1"}}; }

using SetThreads = void (*)(int);

template <class F>
F function_of(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

std::string text_of(void* library, const char* function) {
  const auto call = function_of<const char* (*)()>(library, function);
  const char* text = call == nullptr ? nullptr : call();
  return text == nullptr ? std::string() : text;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

std::string real_path(const char* file) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(file, error);
  return error ? file : path.string();
}

/// Where the objects of the process are loaded.
std::vector<ElfW(Addr)> loaded_objects() {
  std::vector<ElfW(Addr)> addresses;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* into) {
        static_cast<std::vector<ElfW(Addr)>*>(into)->push_back(info->dlpi_addr);
        return 0;
      },
      &addresses);
  return addresses;
}

/// The object that a function lies in.
ElfW(Addr) object_of(const void* function) {
  Dl_info info{};
  void* entry = nullptr;
  if (dladdr1(function, &info, &entry, RTLD_DL_LINKMAP) == 0 || entry == nullptr) return 0;
  return static_cast<const link_map*>(entry)->l_addr;
}

/// One file of the request, loaded.
struct Part {
  void* handle = nullptr;
  BlasDescription about;
  SetThreads set_threads = nullptr;
};

BlasDescription describe(void* library, const std::string& file) {
  BlasDescription about;
  about.file = file;
  about.version = text_of(library, "openblas_get_config");
  about.kernels = text_of(library, "openblas_get_corename");
  if (const auto count = function_of<int (*)()>(library, "openblas_get_num_threads"))
    about.threads = count();
  return about;
}

/// A private copy of an OpenBLAS, with kernels `coretype` unless that is empty.
Part open_openblas(const std::string& path, const std::string& coretype) {
  EnvironmentOverlay::Variables variables = one_thread();
  if (!coretype.empty()) variables.emplace_back(kCoretype, coretype);
  const EnvironmentOverlay overlay(std::move(variables));
  const PrivateLibrary library = open_private_copy(path);
  Part part;
  part.handle = library.handle;
  part.about.why_shared = library.why;
  if (part.handle == nullptr) return part;
  part.about = describe(part.handle, path);
  part.about.private_copy = true;
  part.set_threads = function_of<SetThreads>(part.handle, "openblas_set_num_threads");
  return part;
}

/// A private copy of the OpenBLAS whose own choice of kernels is known, with those that the
/// processor deserves.
Part open_openblas_for(const ProcessorFeatures& processor, const std::string& path,
                       const BlasDescription& own) {
  const std::string users = environment(kCoretype);
  const bool chooses = own.version.find("DYNAMIC_ARCH") != std::string::npos;
  std::vector<std::string> wanted;
  if (users.empty() && chooses) wanted = coretypes_to_ask(processor, own.kernels);
  Part part;
  for (const std::string& coretype : wanted) {
    if (part.handle != nullptr) dlclose(part.handle);
    part = open_openblas(path, coretype);
    part.about.kernels_asked = coretype;
    if (part.handle == nullptr || as_wide_as(part.about.kernels, coretype)) break;
  }
  if (wanted.empty()) {
    part = open_openblas(path, {});
    part.about.kernels_asked = users;
    part.about.asked_by_user = !users.empty();
  }
  part.about.kernels_own = own.kernels;
  return part;
}

/// A library that is used as it is: one thread a call if other users of the library keep theirs.
Part share(void* handle, BlasDescription about, const std::vector<ElfW(Addr)>& before) {
  Part part{handle, std::move(about), nullptr};
  part.about.kernels_own = part.about.kernels;
  if (!part.about.kernels.empty()) part.about.kernels_asked = environment(kCoretype);
  part.about.asked_by_user = !part.about.kernels_asked.empty();
  for (const char* name :
       {"openblas_set_num_threads", "MKL_Set_Num_Threads", "bli_thread_set_num_threads"}) {
    void* function = dlsym(handle, name);
    if (function == nullptr) continue;
    if (std::find(before.begin(), before.end(), object_of(function)) != before.end()) continue;
    part.set_threads = reinterpret_cast<SetThreads>(function);
    part.set_threads(1);
    part.about.threads = 1;
  }
  return part;
}

Part open_part(const std::string& file, const ProcessorFeatures& processor) {
  const std::vector<ElfW(Addr)> before = loaded_objects();
  void* handle = nullptr;
  {
    const EnvironmentOverlay overlay(one_thread());  // none that have to be ended again
    handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | kOwnSymbolsFirst);
  }
  require(handle != nullptr, ErrorKind::device, "blas", "cannot load {}", dlerror());
  link_map* entry = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &entry) == 0 && entry != nullptr;
  const std::string path = known ? real_path(entry->l_name) : file;
  BlasDescription own = describe(handle, path);
  const void* setter = dlsym(handle, "openblas_set_num_threads");
  // One that only depends on an OpenBLAS has nothing to be copied for.
  if (!known || setter == nullptr || object_of(setter) != entry->l_addr) {
    return share(handle, std::move(own), before);
  }
  Part part = open_openblas_for(processor, path, own);
  if (part.handle == nullptr) {
    own.why_shared = part.about.why_shared;
    return share(handle, std::move(own), before);
  }
  dlclose(handle);
  return part;
}

std::vector<std::string> split(const std::string& files) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= files.size()) {
    const std::size_t end = std::min(files.find(':', begin), files.size());
    if (end > begin) parts.push_back(files.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// The function `name` of the first part that has it.
template <class F>
bool found(F& function, const char* name, const std::vector<Part>& parts) {
  return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
    function = function_of<F>(part.handle, name);
    return function != nullptr;
  });
}
template <class F>
void find(F& function, const char* name, const std::vector<Part>& parts, const std::string& files) {
  if (found(function, name, parts)) return;
  fail(ErrorKind::device, "blas", "{} lacks {}", files, name);
}

BlasTable table_of(const std::vector<Part>& parts, const std::string& files) {
  BlasTable table;
  find(table.dgemm, "cblas_dgemm", parts, files);
  find(table.sgemm, "cblas_sgemm", parts, files);
  find(table.dsyrk, "cblas_dsyrk", parts, files);
  find(table.ssyrk, "cblas_ssyrk", parts, files);
  find(table.dsymm, "cblas_dsymm", parts, files);
  find(table.dtrmm, "cblas_dtrmm", parts, files);
  find(table.strmm, "cblas_strmm", parts, files);
  find(table.dtrsm, "cblas_dtrsm", parts, files);
  find(table.strsm, "cblas_strsm", parts, files);
  find(table.zgemm, "cblas_zgemm", parts, files);
  find(table.cgemm, "cblas_cgemm", parts, files);
  find(table.zherk, "cblas_zherk", parts, files);
  find(table.cherk, "cblas_cherk", parts, files);
  find(table.zhemm, "cblas_zhemm", parts, files);
  find(table.ztrmm, "cblas_ztrmm", parts, files);
  find(table.ctrmm, "cblas_ctrmm", parts, files);
  find(table.ztrsm, "cblas_ztrsm", parts, files);
  find(table.ctrsm, "cblas_ctrsm", parts, files);
  find(table.dpotrf, "dpotrf_", parts, files);
  find(table.spotrf, "spotrf_", parts, files);
  find(table.zpotrf, "zpotrf_", parts, files);
  find(table.cpotrf, "cpotrf_", parts, files);
  (void)found(table.dgetrf, "dgetrf_", parts);
  (void)found(table.sgetrf, "sgetrf_", parts);
  (void)found(table.zgetrf, "zgetrf_", parts);
  (void)found(table.cgetrf, "cgetrf_", parts);
  (void)found(table.dgeqrf, "dgeqrf_", parts);
  (void)found(table.dorgqr, "dorgqr_", parts);
  return table;
}

/// The libraries of one request; `files` as in the contract.
BlasLibrary load_files(const std::string& files, const ProcessorFeatures& processor) {
  std::vector<Part> parts;
  for (const std::string& file : split(files)) parts.push_back(open_part(file, processor));
  BlasLibrary library;
  library.functions = table_of(parts, files);
  const auto described = std::find_if(parts.begin(), parts.end(), [](const Part& part) {
    return !part.about.version.empty() || part.set_threads != nullptr;
  });
  const Part& first = described == parts.end() ? parts.front() : *described;
  library.about = first.about;
  library.set_threads = first.set_threads;
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.about.file);
  library.about.file = fmt::format("{}", fmt::join(names, ":"));
  require(library.about.version.find("USE64BITINT") == std::string::npos, ErrorKind::device, "blas",
          "{} counts in 64 bits, 32 are needed", library.about.file);
  return library;
}

}  // namespace

BlasLibrary load_blas(const BlasRequest& request) {
  static std::mutex mutex;  // the environment is one
  const std::scoped_lock lock(mutex);
  if (!split(request.files).empty()) return load_files(request.files, request.processor);
  // As it was found when this was built; then by name alone, for another machine.
  try {
    return load_files(STRATA_BLAS_FOUND, request.processor);
  } catch (const Error& found) {
    try {
      return load_files(STRATA_BLAS_NAMES, request.processor);
    } catch (const Error& named) {
      fail(ErrorKind::device, "blas", "no BLAS; STRATA_BLAS may name one: {}; {}", found.what(),
           named.what());
    }
  }
}

const BlasLibrary& host_blas() {
  static const BlasLibrary library = load_blas({.files = environment("STRATA_BLAS")});
  return library;
}

}  // namespace strata
