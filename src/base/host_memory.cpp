#include "base/host_memory.hpp"

#include <sys/sysinfo.h>

#include <fstream>
#include <string>

namespace strata {

std::int64_t available_host_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    std::int64_t kib = 0;
    if (word == "MemAvailable:" && file >> kib) return kib * 1024;
  }
  struct sysinfo info {};
  return sysinfo(&info) == 0 ? static_cast<std::int64_t>(info.freeram) * info.mem_unit : 0;
}

}  // namespace strata
