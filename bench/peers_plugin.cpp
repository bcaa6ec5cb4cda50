#include "bench/peers_plugin.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>

namespace strata::bench {
namespace {

/// The folder of the running program.
std::string program_folder() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  const std::string program(path.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return program.substr(0, program.find_last_of('/'));
}

}  // namespace

PeersPlugin::PeersPlugin(const std::string& name) : file_(program_folder() + "/" + name) {
  library_ = dlopen(file_.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(library_ != nullptr, ErrorKind::device, "bench", "no peers here: {}", dlerror());
}

void* PeersPlugin::address_of(const char* name) const {
  void* address = dlsym(library_, name);
  require(address != nullptr, ErrorKind::device, "bench", "{} lacks {}", file_, name);
  return address;
}

}  // namespace strata::bench
