// Method: a queue works in order, so its spans hardly overlap and can be merged greedily. A group
// takes the next span as long as it stays within a bucket of 2·T·Q·C/kBoxesMax seconds (T the
// length of the run, Q the number of queues, C the number of operations in this one). At least one
// of two neighbouring groups is longer than a bucket together with the next span, so a queue has at
// most kBoxesMax/(Q·C) groups, give or take one, and the page stays bounded. A group becomes one
// box for each operation in it, as long as that operation's busy time: a pixel that covers several
// groups then blends the operations in the right proportions, which the longest one alone would
// hide.

#include "report/timeline.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/json.hpp"
#include "report/columns.hpp"

namespace strata::page {
namespace {

constexpr int kCodes = 256;  // one byte of the page's data: what is past them is the last

Box box_of(const Span& span) {
  Box box;
  box.begin = std::max(span.begin, 0.0);
  box.end = std::max(span.end, box.begin);
  box.busy_seconds = box.end - box.begin;
  (span.kind == SpanKind::compute ? box.flops : box.bytes) =
      span.kind == SpanKind::compute ? (std::isfinite(span.flops) ? span.flops : 0)
                                     : static_cast<double>(span.bytes);
  box.row = span.row;
  box.col = span.col;
  box.code = code_of(span);
  return box;
}

/// The boxes first … last of a track as one box for each code, side by side from where they begin.
void append_group(std::vector<Box>& out, std::vector<Box>::const_iterator first,
                  std::vector<Box>::const_iterator last) {
  if (last - first == 1) {
    out.push_back(*first);
    return;
  }
  std::map<int, Box> sums;
  double end = first->end;
  double busy_seconds = 0;
  for (auto box = first; box != last; ++box) {
    auto [place, is_new] = sums.try_emplace(box->code, *box);
    Box& sum = place->second;
    end = std::max(end, box->end);
    busy_seconds += box->busy_seconds;
    if (is_new) continue;
    sum.busy_seconds += box->busy_seconds;
    sum.bytes += box->bytes;
    sum.flops += box->flops;
    sum.count += box->count;
  }
  // Spans that overlap are busy for longer than the group lasts: shorten them alike.
  const double length = end - first->begin;
  const double shrink = busy_seconds > length ? length / busy_seconds : 1;
  double begin = first->begin;
  for (auto& [code, sum] : sums) {
    sum.begin = begin;
    sum.end = begin += shrink * sum.busy_seconds;
    out.push_back(sum);
  }
}

/// Merges neighbours of a track; `boxes` is in order of begin.
std::vector<Box> merged(const std::vector<Box>& boxes, double bucket_seconds) {
  std::vector<Box> out;
  auto first = boxes.begin();
  double end = 0;
  for (auto box = boxes.begin(); box != boxes.end(); ++box) {
    if (std::max(box->end, end) - first->begin > bucket_seconds && box != first) {
      append_group(out, first, box);
      first = box;
      end = 0;
    }
    end = std::max(end, box->end);
  }
  if (first != boxes.end()) append_group(out, first, boxes.end());
  return out;
}

std::vector<Track> empty_tracks(const Trace& trace) {
  std::size_t count = trace.queues.size();
  for (const Span& span : trace.spans) count = std::max<std::size_t>(count, span.queue + 1U);
  std::vector<Track> tracks(count);
  for (std::size_t i = 0; i < count; ++i) {
    tracks[i].device = i < trace.queues.size() ? trace.queues[i].device : "";
    tracks[i].name = i < trace.queues.size() ? trace.queues[i].name : fmt::format("queue {}", i);
    tracks[i].seconds.assign(kCodes, 0.0);
  }
  return tracks;
}

Json track_data(const Track& track, double seconds) {
  // 32-bit ticks of the whole run: a step of a few nanoseconds for a run of ten seconds.
  const auto ticks = [seconds](double time) {
    const double share = seconds > 0 ? std::clamp(time / seconds, 0.0, 1.0) : 0.0;
    return static_cast<std::uint32_t>(std::llround(share * 4294967295.0));
  };
  std::vector<std::uint32_t> begin, end, count, row, col;
  std::vector<std::uint8_t> code;
  std::vector<float> amount;
  for (const Box& box : track.boxes) {
    const bool known = box.count == 1;
    begin.push_back(ticks(box.begin));
    end.push_back(ticks(box.end));
    count.push_back(box.count);
    code.push_back(static_cast<std::uint8_t>(box.code));
    amount.push_back(static_cast<float>(box.code < 2 ? box.bytes : box.flops));
    row.push_back(known ? static_cast<std::uint32_t>(box.row) : 0xffffffffU);
    col.push_back(known ? static_cast<std::uint32_t>(box.col) : 0U);
  }
  return {{"device", track.device},
          {"name", track.name},
          {"share", seconds > 0 ? track.busy_seconds / seconds : 0},
          {"begin", base64(begin)},
          {"end", base64(end)},
          {"count", base64(count)},
          {"code", base64(code)},
          {"amount", base64(amount)},
          {"row", base64(row)},
          {"col", base64(col)}};
}

}  // namespace

int code_of(const Span& span) {
  switch (span.kind) {
    case SpanKind::load:
    case SpanKind::peer:
    case SpanKind::read: return 0;
    case SpanKind::store:
    case SpanKind::write: return 1;
    case SpanKind::compute: break;
  }
  return std::min(2 + span.operation, kCodes - 1);
}

std::string code_name(int code, const std::vector<std::string>& operations) {
  if (code == 0) return "load";
  if (code == 1) return "store";
  const auto operation = static_cast<std::size_t>(code - 2);
  return operation < operations.size() ? operations[operation]
                                       : fmt::format("operation {}", operation);
}

Timeline timeline_of(const Trace& trace) {
  Timeline timeline;
  timeline.tracks = empty_tracks(trace);
  timeline.operations = trace.operations;
  timeline.seconds = std::isfinite(trace.seconds) ? std::max(trace.seconds, 0.0) : 0.0;
  for (const Span& span : trace.spans) {
    if (!std::isfinite(span.begin) || !std::isfinite(span.end)) continue;
    const Box box = box_of(span);
    Track& track = timeline.tracks[span.queue];
    track.boxes.push_back(box);
    track.seconds[static_cast<std::size_t>(box.code)] += box.busy_seconds;
    track.busy_seconds += box.busy_seconds;
    track.bytes += box.bytes;
    track.flops += box.flops;
    ++track.spans;
    ++timeline.spans;
    timeline.seconds = std::max(timeline.seconds, box.end);
  }
  timeline.merged = timeline.spans > static_cast<std::int64_t>(kBoxesMax);
  const double per_code = 2 * timeline.seconds * static_cast<double>(timeline.tracks.size()) /
                          static_cast<double>(kBoxesMax);
  for (Track& track : timeline.tracks) {
    std::stable_sort(track.boxes.begin(), track.boxes.end(),
                     [](const Box& a, const Box& b) { return a.begin < b.begin; });
    if (!timeline.merged) continue;
    const auto codes = std::count_if(track.seconds.begin(), track.seconds.end(),
                                     [](double seconds) { return seconds > 0; });
    track.boxes = merged(track.boxes, per_code * static_cast<double>(std::max<long>(codes, 1)));
  }
  return timeline;
}

Json timeline_data(const Timeline& timeline) {
  Json tracks = Json::array();
  int codes = 2;
  for (const Track& track : timeline.tracks) {
    tracks.push_back(track_data(track, timeline.seconds));
    for (const Box& box : track.boxes) codes = std::max(codes, box.code + 1);
  }
  Json names = Json::array();
  for (int code = 0; code < codes; ++code) names.push_back(code_name(code, timeline.operations));
  return {{"seconds", timeline.seconds}, {"names", names}, {"tracks", tracks}};
}

}  // namespace strata::page
