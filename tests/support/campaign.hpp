#pragma once
// How many random cases a test takes. All of them are a campaign of minutes to hours, by `make
// exhaustive`; continuous integration takes fewer, and fewer yet where a sanitizer looks for errors
// of memory or threads, which every case of a kind shows alike.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>

namespace strata::test {

#ifdef STRATA_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// For a test whose claim is one of numbers, made by seconds of work that others do as well: it is
/// left out where a sanitizer looks for errors of memory or threads.
#define STRATA_LEAVE_OUT_WITH_SANITIZER() \
  if (::strata::test::kSanitized) GTEST_SKIP() << "its claim is one of numbers"

/// `all` if STRATA_EXHAUSTIVE is set in the environment, else `some`; `few` with a sanitizer.
inline std::uint64_t campaign(std::uint64_t all, std::uint64_t some, std::uint64_t few) {
  if (kSanitized) return few;
  return std::getenv("STRATA_EXHAUSTIVE") != nullptr ? all : some;
}

/// Nested loops go through the first of their combinations and every `sanitized`-th with
/// a sanitizer and every `released`-th without; all without one if STRATA_EXHAUSTIVE is set. A
/// number without a common factor with the lengths of the loops leaves out no value of any.
class Thinned {
 public:
  explicit Thinned(std::uint64_t sanitized, std::uint64_t released = 1)
      : every_(campaign(1, released, sanitized)) {}
  /// Once for each combination.
  [[nodiscard]] bool skips() { return count_++ % every_ != 0; }

 private:
  std::uint64_t every_;
  std::uint64_t count_ = 0;
};

}  // namespace strata::test
