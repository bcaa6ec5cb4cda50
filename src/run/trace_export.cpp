// A Trace as Chrome trace events.
//
// Method: the event format of Google's "Trace Event Format" document: metadata events ("M") name
// the processes (devices) and threads (queues), complete events ("X") carry begin and duration in
// microseconds, instant events ("i") what was decided. The events are printed one by one, because a
// document tree of a million spans would take a gigabyte.

#include "strata/trace_export.hpp"
#include "base/json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <ostream>

#include "base/output_file.hpp"

namespace strata {
namespace {

/// A JSON string literal; bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text) { return Json(text).dump_ascii(); }

std::string event_name(const Trace& trace, const Span& span) {
  if (span.kind == SpanKind::load) return "load";
  if (span.kind == SpanKind::store) return "store";
  if (span.kind == SpanKind::peer) return "peer copy";
  if (span.kind == SpanKind::read) return "read";
  if (span.kind == SpanKind::write) return "write";
  if (span.operation < trace.operations.size()) return trace.operations[span.operation];
  return fmt::format("operation {}", span.operation);
}

const char* category(SpanKind kind) {
  switch (kind) {
    case SpanKind::load: return "load";
    case SpanKind::store: return "store";
    case SpanKind::peer: return "peer";
    case SpanKind::read: return "read";
    case SpanKind::write: return "write";
    case SpanKind::compute: break;
  }
  return "compute";
}

/// JSON knows no NaN and no infinity.
double finite(double value) { return std::isfinite(value) ? value : 0; }

int process_of(const Trace& trace, std::size_t queue) {
  return queue < trace.queues.size() ? trace.queues[queue].device_index : 0;
}

void write_names(const Trace& trace, std::ostream& out) {
  std::map<int, std::string> devices;
  for (const TraceQueue& queue : trace.queues) devices.emplace(queue.device_index, queue.device);
  const char* separator = "";
  for (const auto& [process, name] : devices) {
    out << separator
        << fmt::format(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})",
                       process, json_text(name));
    separator = ",\n";
  }
  for (std::size_t queue = 0; queue < trace.queues.size(); ++queue) {
    const int process = process_of(trace, queue);
    out << separator
        << fmt::format(
               R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}}}})",
               process, queue, json_text(trace.queues[queue].name))
        << separator
        << fmt::format(R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},)"
                       R"("args":{{"sort_index":{}}}}})",
                       process, queue, queue);
  }
}

void write_span(const Trace& trace, const Span& span, fmt::memory_buffer& line) {
  const double begin = finite(span.begin);
  const double duration = std::fmax(0.0, finite(span.end - begin));
  fmt::format_to(
      std::back_inserter(line),
      R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{)",
      json_text(event_name(trace, span)), category(span.kind), process_of(trace, span.queue),
      span.queue, begin * 1e6, duration * 1e6);
  const std::string family = span.family < trace.families.size() ? trace.families[span.family]
                                                                 : fmt::format("{}", span.family);
  fmt::format_to(std::back_inserter(line), R"("block":{},"row":{},"col":{})",
                 json_text(fmt::format("{}({},{})", family, span.row, span.col)), span.row,
                 span.col);
  if (span.kind == SpanKind::compute) {
    fmt::format_to(std::back_inserter(line), R"(,"calls":{},"flops":{:.17g}}}}})", span.calls,
                   finite(span.flops));
  } else {
    fmt::format_to(std::back_inserter(line), R"(,"bytes":{}}}}})", span.bytes);
  }
}

}  // namespace

void write_chrome_trace(const Trace& trace, const std::string& path) {
  replace_file(path, [&trace](std::ostream& out) {
    out << R"({"displayTimeUnit":"ms","traceEvents":[)" << '\n';
    write_names(trace, out);
    bool first = trace.queues.empty();
    fmt::memory_buffer line;
    for (const Span& span : trace.spans) {
      line.clear();
      write_span(trace, span, line);
      if (!first) out << ",\n";
      first = false;
      out.write(line.data(), static_cast<std::streamsize>(line.size()));
    }
    for (const TraceNote& note : trace.notes) {
      if (!first) out << ",\n";
      first = false;
      out << fmt::format(R"({{"ph":"i","s":"g","name":{},"cat":"decision","pid":0,"tid":0,)"
                         R"("ts":{:.3f}}})",
                         json_text(note.text), finite(note.at) * 1e6);
    }
    out << "\n]}\n";
  });
}

}  // namespace strata
