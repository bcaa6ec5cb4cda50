#pragma once
// Residency: which blocks lie in the memory of the devices between two plans.
//
// Contract: what a run leaves, and what a plan may start from. A block that is listed rests at home
// with the same value, so that it may be forgotten at any time; or it is only here
// (BlockFamily::stays), and a plan that starts from it has to keep it or to bring it home. Blocks
// are named by the identity of their family, since each plan numbers its families for itself. Pure
// data.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "strata/element.hpp"

namespace strata {

struct ResidentBlock {
  std::uint64_t identity = 0;  ///< of its family, not 0
  std::int64_t row = 0;        ///< block row and column
  std::int64_t col = 0;
  std::int64_t rows = 0;  ///< extent, in elements
  std::int64_t cols = 0;
  Element element = Element::fp64;
  std::int64_t offset = 0;      ///< from the arena's start
  std::int64_t slot_bytes = 0;  ///< of the slot in which it lies
  bool only_here = false;       ///< its home has no value, or an older one
  bool operator==(const ResidentBlock&) const = default;
};

struct Residency {
  struct Node {
    std::int64_t arena_bytes = 0;  ///< that exist: a plan that needs more starts from nothing
    std::vector<ResidentBlock> blocks;
    bool operator==(const Node&) const = default;
  };
  std::vector<Node> devices;

  [[nodiscard]] bool empty() const noexcept {
    return std::all_of(devices.begin(), devices.end(),
                       [](const Node& node) { return node.blocks.empty(); });
  }
  /// Whether a family has blocks that are nowhere else.
  [[nodiscard]] bool only_here(std::uint64_t identity) const noexcept {
    return std::any_of(devices.begin(), devices.end(), [=](const Node& node) {
      return std::any_of(node.blocks.begin(), node.blocks.end(), [=](const ResidentBlock& b) {
        return b.only_here && b.identity == identity;
      });
    });
  }
  /// Forgets the blocks of a family, whose values are no longer those at home.
  void forget(std::uint64_t identity) {
    for (Node& node : devices)
      std::erase_if(node.blocks, [=](const ResidentBlock& b) { return b.identity == identity; });
  }
  bool operator==(const Residency&) const = default;
};

}  // namespace strata
