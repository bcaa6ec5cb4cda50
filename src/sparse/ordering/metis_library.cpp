#include "sparse/ordering/metis_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <metis.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/check.hpp"
#include "base/private_library.hpp"
#include "base/random.hpp"

static_assert(sizeof(idx_t) == 4, "METIS with 32-bit integers is expected");

namespace strata {
namespace {

// The random numbers of the call that runs on this thread.
thread_local std::uint64_t random_seed = 0;
thread_local std::uint64_t random_index = 0;

void seed_random(unsigned seed) {
  random_seed = seed;
  random_index = 0;
}

int draw_random() { return static_cast<int>(random_bits(random_seed, random_index++) >> 33); }

/// In the place of signal(): handlers stay as they are.
using Handler = void (*)(int);
Handler keep_handler(int, Handler) { return SIG_DFL; }

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

void* function_of(void* handle, const char* name, const std::string& path) {
  void* const function = dlsym(handle, name);
  require(function != nullptr, ErrorKind::device, "metis", "{} has no function {}", path, name);
  return function;
}

/// Redirects what METIS shares with the process. It allocates until that fails, then raises a
/// signal whose handler jumps out; without handlers it jumps at once.
void isolate(void* handle, const std::string& path) {
  const bool isolated = redirect_calls(handle, "rand", address(&draw_random)) &&
                        redirect_calls(handle, "srand", address(&seed_random)) &&
                        redirect_calls(handle, "raise", function_of(handle, "gk_sigthrow", path)) &&
                        (redirect_calls(handle, "__sysv_signal", address(&keep_handler)) ||
                         redirect_calls(handle, "signal", address(&keep_handler)));
  require(isolated, ErrorKind::device, "metis",
          "{} does not draw its random numbers and catch signals as METIS 5.1 does", path);
}

void check(int status, const char* what, const WeightedGraph& graph) {
  if (status == METIS_OK) return;
  fail(status == METIS_ERROR_MEMORY ? ErrorKind::memory : ErrorKind::device, "metis",
       "{} of {} vertices and {} edges failed with status {}", what, graph.size(),
       graph.neighbor.size() / 2, status);
}

/// METIS takes pointers to what is not constant, and writes nothing there.
std::int32_t* unwritten(const std::vector<std::int32_t>& values) {
  return const_cast<std::int32_t*>(values.data());
}

/// The file that the loader takes for a path or, if there is none, for the name at its end.
std::string file_of(const std::string& path) {
  void* handle = nullptr;
  for (const std::string& file : {path, std::filesystem::path(path).filename().string()})
    if (handle == nullptr && !file.empty()) handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) return path;
  link_map* entry = nullptr;
  const bool known = dlinfo(handle, RTLD_DI_LINKMAP, &entry) == 0 && entry != nullptr;
  const std::string file = known ? entry->l_name : path;
  dlclose(handle);
  return file;
}

}  // namespace

MetisLibrary::MetisLibrary() {
  const char* asked = std::getenv("STRATA_METIS");
  const bool named = asked != nullptr && *asked != '\0';
  require(named || !std::string_view(STRATA_METIS_FOUND).empty(), ErrorKind::device, "metis",
          "no METIS was found when Strata was built; STRATA_METIS may name one");
  const std::string path = named ? asked : file_of(STRATA_METIS_FOUND);
  const PrivateLibrary library = open_private_copy(path);
  require(library.handle != nullptr, ErrorKind::device, "metis",
          "no METIS; STRATA_METIS may name one: {}", library.why);
  isolate(library.handle, path);
  const auto find = [&](const char* name) { return function_of(library.handle, name, path); };
  node_nd_ = reinterpret_cast<NodeNd>(find("METIS_NodeND"));
  separate_ = reinterpret_cast<Separate>(find("METIS_ComputeVertexSeparator"));
  set_defaults_ = reinterpret_cast<SetDefaults>(find("METIS_SetDefaultOptions"));
}

const MetisLibrary& MetisLibrary::get() {
  static const MetisLibrary library;
  return library;
}

std::vector<std::int32_t> MetisLibrary::node_nd(const WeightedGraph& graph,
                                                std::int32_t seed) const {
  std::array<std::int32_t, METIS_NOPTIONS> options{};
  set_defaults_(options.data());
  options[METIS_OPTION_SEED] = seed;
  options[METIS_OPTION_COMPRESS] = 0;  // whoever calls has done that
  std::int32_t n = graph.size();
  std::vector<std::int32_t> order(graph.weight.size());
  std::vector<std::int32_t> place(graph.weight.size());
  check(node_nd_(&n, unwritten(graph.start), unwritten(graph.neighbor), unwritten(graph.weight),
                 options.data(), order.data(), place.data()),
        "nested dissection", graph);
  return order;
}

std::vector<std::int32_t> MetisLibrary::separate(const WeightedGraph& graph,
                                                 std::int32_t seed) const {
  std::array<std::int32_t, METIS_NOPTIONS> options{};
  set_defaults_(options.data());
  options[METIS_OPTION_SEED] = seed;
  std::int32_t n = graph.size();
  std::int32_t size = 0;
  std::vector<std::int32_t> part(graph.weight.size());
  check(separate_(&n, unwritten(graph.start), unwritten(graph.neighbor), unwritten(graph.weight),
                  options.data(), &size, part.data()),
        "a separator", graph);
  return part;
}

}  // namespace strata
