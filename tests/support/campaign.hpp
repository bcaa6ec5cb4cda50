#pragma once
// How many random cases a test takes. All of them are a campaign of minutes to hours, by `make
// exhaustive`; continuous integration takes fewer, and fewer yet where a sanitizer looks for errors
// of memory or threads, which every case of a kind shows alike.

#include <cstdint>
#include <cstdlib>

namespace strata::test {

/// `all` if STRATA_EXHAUSTIVE is set in the environment, else `some`; `few` with a sanitizer.
inline std::uint64_t campaign(std::uint64_t all, std::uint64_t some, std::uint64_t few) {
#ifdef STRATA_SANITIZED
  (void)all;
  (void)some;
  return few;
#else
  (void)few;
  return std::getenv("STRATA_EXHAUSTIVE") != nullptr ? all : some;
#endif
}

}  // namespace strata::test
