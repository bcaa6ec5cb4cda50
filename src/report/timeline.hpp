#pragma once
// Spans of a trace, merged to what a screen can show.
//
// Contract: one track a queue, its boxes in order of time. Up to kBoxesMax spans are kept one by
// one; beyond that neighbours of a queue are merged until about kBoxesMax boxes are left, one box
// for each operation of a group, its length the busy time. Busy time, bytes and flops of the boxes
// add up to those of the spans. A span whose times are not finite is left out of the boxes.

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "strata/options.hpp"
#include "strata/report.hpp"

namespace strata::page {

inline constexpr std::size_t kBoxesMax = 40'000;

/// What a box is coloured by: 0 load (from the host or another device), 1 store, 2 + operation.
[[nodiscard]] int code_of(const Span& span);
[[nodiscard]] std::string code_name(int code, const std::vector<std::string>& operations);

struct Box {
  double begin = 0;
  double end = 0;
  double busy_seconds = 0;  ///< more than end − begin only where merged spans overlapped
  double bytes = 0;
  double flops = 0;
  std::int32_t row = 0;  ///< of the block of the first span
  std::int32_t col = 0;
  std::uint32_t count = 1;  ///< spans in it
  int code = 0;
};

struct Track {
  std::string device;
  std::string name;
  std::vector<Box> boxes;
  std::vector<double> seconds;  ///< busy, for each code
  std::int64_t spans = 0;
  double busy_seconds = 0;
  double bytes = 0;
  double flops = 0;
};

struct Timeline {
  std::vector<Track> tracks;
  std::vector<std::string> operations;  ///< as in Trace
  double seconds = 0;                   ///< length of the time axis
  std::int64_t spans = 0;
  bool merged = false;
};

[[nodiscard]] Timeline timeline_of(const Trace& trace);
[[nodiscard]] Json timeline_data(const Timeline& timeline);

}  // namespace strata::page
