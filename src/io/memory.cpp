#include "io/memory.hpp"

#include <unistd.h>

#include "base/bytes.hpp"
#include "base/check.hpp"

namespace strata {

std::int64_t checked_elements(std::int64_t rows, std::int64_t cols, std::int64_t element_bytes,
                              const char* where, const std::string& name) {
  const std::int64_t physical = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
                                static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  const bool fits = !__builtin_mul_overflow(rows, cols, &elements) &&
                    !__builtin_mul_overflow(elements, element_bytes, &bytes) && bytes <= physical;
  require(fits, ErrorKind::memory, where,
          "{}: a dense {} × {} matrix does not fit in this machine's memory of {}", name, rows,
          cols, format_bytes(physical));
  return elements;
}

}  // namespace strata
