#pragma once
// Checks at the public boundary.
//
// Contract: `require` throws `Error` with a formatted one-line message when the condition does not
// hold.

#include <fmt/core.h>

#include <utility>

#include "strata/error.hpp"

namespace strata {

/// Throws `Error{kind, where, message}`; the message is formatted as by fmt.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, const char* where, fmt::format_string<Args...> format,
                       Args&&... args) {
  throw Error(kind, where, fmt::format(format, std::forward<Args>(args)...));
}

/// Throws as `fail` does unless `condition` holds.
template <class... Args>
void require(bool condition, ErrorKind kind, const char* where, fmt::format_string<Args...> format,
             Args&&... args) {
  if (!condition) fail(kind, where, format, std::forward<Args>(args)...);
}

}  // namespace strata
