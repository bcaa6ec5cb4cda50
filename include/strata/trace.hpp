#pragma once
// Trace and Traffic: what happened, or would happen, on which queue and when.
//
// Contract: run() and simulate() return the same Trace for the same Plan, up to the times.
// `Traffic` is a fold over a Trace and equals the Plan's to the byte. Times are seconds since the
// run began.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// peer: a copy between devices; read, write: copies out of storage and into it.
enum class SpanKind : std::uint8_t { load, store, compute, peer, read, write };

struct Span {
  SpanKind kind = SpanKind::compute;
  std::uint8_t family = 0;      ///< index into Trace::families: of the block written or moved, …
  std::uint16_t operation = 0;  ///< for compute: index into Trace::operations
  std::uint16_t queue = 0;      ///< index into Trace::queues
  std::int32_t row = 0;  ///< … and its block row and column (of the first call's first block)
  std::int32_t col = 0;
  std::uint32_t calls = 1;  ///< for compute
  std::int64_t bytes = 0;   ///< moved (all kinds but compute)
  double flops = 0;         ///< done (compute)
  double begin = 0;
  double end = 0;
};

/// One track: a queue of a device, or of host memory between storage and devices.
struct TraceQueue {
  std::string device;  ///< "cuda:0", "host memory"
  std::string name;    ///< "copy in", "copy out", "compute 0", …, "peer in"
  std::uint16_t device_index = 0;
};

/// Bytes over each link.
struct Traffic {
  std::int64_t host_to_device_bytes = 0;
  std::int64_t device_to_host_bytes = 0;
  std::int64_t device_to_device_bytes = 0;
  std::int64_t storage_read_bytes = 0;
  std::int64_t storage_write_bytes = 0;

  [[nodiscard]] std::int64_t total() const noexcept {
    return host_to_device_bytes + device_to_host_bytes + device_to_device_bytes +
           storage_read_bytes + storage_write_bytes;
  }
  bool operator==(const Traffic&) const = default;
};
Traffic& operator+=(Traffic& a, const Traffic& b) noexcept;

/// What a method decided, and when.
struct TraceNote {
  double at = 0;  ///< seconds
  std::string text;
};

struct Trace {
  std::vector<TraceQueue> queues;
  std::vector<std::string> operations;  ///< "gemm", "potrf", … as spans number them
  std::vector<std::string> families;    ///< "A", "X", … as spans number them
  std::vector<Span> spans;              ///< in the order of the plan; empty past `kSpansMax` steps
  std::vector<TraceNote> notes;         ///< in their order, kept whatever becomes of the spans
  Traffic traffic;                      ///< folded span by span, also where the spans are not kept
  double seconds = 0;
  double flops = 0;
  std::int64_t spans_added = 0;  ///< by `add`, kept or not

  /// Spans kept at most; a longer run keeps its totals only.
  static constexpr std::int64_t kSpansMax = 1'000'000;

  /// The number of an operation, which is appended if it is new.
  [[nodiscard]] std::uint16_t operation_number(std::string_view name);
  /// Adds a span to the totals, and keeps it; the span that is one too many empties `spans` for
  /// good, so that a trace is either whole or absent.
  void add(const Span& span);
};

/// Recomputes the traffic from the spans alone.
[[nodiscard]] Traffic fold_traffic(const std::vector<Span>& spans) noexcept;

}  // namespace strata
