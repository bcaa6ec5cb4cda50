#include "base/host_memory.hpp"

#include <sys/sysinfo.h>
#include <unistd.h>

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

WholePages::WholePages(std::byte* data, std::int64_t bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t first_page = (begin + page - 1) / page * page;
  const std::uintptr_t end = (begin + static_cast<std::uintptr_t>(bytes)) / page * page;
  first = data + (first_page - begin);
  size = end > first_page ? end - first_page : 0;
}

}  // namespace strata
