// Trace and Traffic: the bookkeeping that run() and simulate() share.
//
// Method: traffic is a fold over spans. A load crosses the link from host to device, a store the
// link back, a peer copy the link between devices, a read or write that of storage, a computation
// none. Keeping the fold beside the spans lets a run that is too long to keep its spans still prove
// its byte counts.

#include "strata/trace.hpp"

#include <algorithm>

namespace strata {
namespace {

void fold(Traffic& traffic, const Span& span) noexcept {
  if (span.kind == SpanKind::load) traffic.host_to_device_bytes += span.bytes;
  if (span.kind == SpanKind::store) traffic.device_to_host_bytes += span.bytes;
  if (span.kind == SpanKind::peer) traffic.device_to_device_bytes += span.bytes;
  if (span.kind == SpanKind::read) traffic.storage_read_bytes += span.bytes;
  if (span.kind == SpanKind::write) traffic.storage_write_bytes += span.bytes;
}

}  // namespace

Traffic& operator+=(Traffic& a, const Traffic& b) noexcept {
  a.host_to_device_bytes += b.host_to_device_bytes;
  a.device_to_host_bytes += b.device_to_host_bytes;
  a.device_to_device_bytes += b.device_to_device_bytes;
  a.storage_read_bytes += b.storage_read_bytes;
  a.storage_write_bytes += b.storage_write_bytes;
  return a;
}

std::uint16_t Trace::operation_number(std::string_view name) {
  const auto found = std::find(operations.begin(), operations.end(), name);
  const auto number = static_cast<std::uint16_t>(found - operations.begin());
  if (found == operations.end()) operations.emplace_back(name);
  return number;
}

void Trace::add(const Span& span) {
  fold(traffic, span);
  if (span.kind == SpanKind::compute) flops += span.flops;
  seconds = std::max(seconds, span.end);
  if (++spans_added <= kSpansMax) {
    spans.push_back(span);
  } else if (!spans.empty()) {
    std::vector<Span>().swap(spans);  // clear() would keep the memory
  }
}

Traffic fold_traffic(const std::vector<Span>& spans) noexcept {
  Traffic traffic;
  for (const Span& span : spans) fold(traffic, span);
  return traffic;
}

}  // namespace strata
