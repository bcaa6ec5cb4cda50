#pragma once
// A Trace as a file that other programs show.

#include <string>

#include "strata/trace.hpp"

namespace strata {

/// Writes the trace in Chrome's trace event format (JSON; chrome://tracing, Perfetto): a process
/// for each device, a thread for each queue, a complete event for each span (microseconds), named
/// by its operation, and an instant event for each note. An existing file is replaced once the new
/// one is whole. Throws Error{storage}.
void write_chrome_trace(const Trace& trace, const std::string& path);

}  // namespace strata
