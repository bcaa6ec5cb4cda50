#pragma once
// Program: a plan that was read once, with everything that is needed to issue it again and again.
//
// Contract: of a plan for devices of one backend, whose blocks have places for good. Kernels are
// found, views are made and waits are resolved when it is compiled; issuing it takes no thread, no
// planning and no lock. Its entries are the plan's steps in their order; copies between the host
// and neighbouring places that follow each other are one entry. The plan's queues are dealt to
// lanes: steps of one lane wait for each other by its order alone, so that only waits between lanes
// are left. An entry that another lane waits for is recorded.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kernels/backend/kernel_table.hpp"
#include "schedule/plan.hpp"

namespace strata {

/// A block, and where it lies on a device.
struct PlacedBlock {
  BlockId id;
  std::byte* data;
};

/// Calls part(blocks, bytes from the first one's beginning to the last one's end) for blocks that
/// follow each other, whose bytes bytes_of(id) says: with at most `most` bytes of many, or one.
template <class BytesOf, class Part>
void for_parts(std::span<const PlacedBlock> blocks, std::int64_t most, const BytesOf& bytes_of,
               const Part& part) {
  for (std::size_t first = 0; first < blocks.size();) {
    const auto bytes_to = [&](std::size_t last) -> std::int64_t {
      return blocks[last].data - blocks[first].data + bytes_of(blocks[last].id);
    };
    std::size_t end = first + 1;
    while (end < blocks.size() && bytes_to(end) <= most) ++end;
    part(blocks.subspan(first, end - first), bytes_to(end - 1));
    first = end;
  }
}

/// Where the caller has a block on a device (BlockFamily::placed): address and leading dimension.
struct CallersPlace {
  std::byte* data = nullptr;
  std::int64_t ld = 0;
};
using CallersPlaces = std::function<CallersPlace(BlockId id, std::size_t device)>;

class Program {
 public:
  struct Entry {
    StepKind kind = StepKind::compute;
    std::uint16_t device = 0;
    int lane = 0;
    const Operation* operation = nullptr;  ///< compute
    KernelFunction kernel = nullptr;
    std::uint32_t variant = 0;
    int operands = 0;                         ///< of a call
    double work = 0;                          ///< in the operation's unit
    BlockId first;                            ///< of its operands
    std::size_t first_view = 0, views = 0;    ///< compute: of its calls; peer: to and from
    std::size_t first_block = 0, blocks = 0;  ///< load, store
    std::size_t first_wait = 0, waits = 0;
    std::int64_t bytes = 0;  ///< that a copy moves
    bool awaited = false;    ///< by an entry of another lane
  };

  /// `lanes` has a lane for each queue of the plan, `arenas` the memory of each device; `callers`
  /// is asked for blocks that the caller has. Throws Error{device} if there is no kernel.
  Program(const Plan& plan, const KernelTable& kernels, std::span<std::byte* const> arenas,
          std::span<const int> lanes, const CallersPlaces& callers = {});

  [[nodiscard]] std::span<const Entry> entries() const noexcept { return entries_; }
  /// Entries of other lanes, which have been issued before.
  [[nodiscard]] std::span<const std::size_t> waits(const Entry& entry) const {
    return std::span(waits_).subspan(entry.first_wait, entry.waits);
  }
  [[nodiscard]] std::span<const PlacedBlock> blocks(const Entry& entry) const {
    return std::span(blocks_).subspan(entry.first_block, entry.blocks);
  }
  [[nodiscard]] KernelCalls calls(const Entry& entry) const {
    return {std::span(views_).subspan(entry.first_view, entry.views), entry.operands};
  }
  /// The caller's blocks lie elsewhere now: their views in calls are made again.
  void place_again(const CallersPlaces& callers);
  /// Whether devices wait for each other within kernels.
  [[nodiscard]] bool has_shared() const noexcept { return has_shared_; }

 private:
  class Compiler;

  std::vector<Entry> entries_;
  std::vector<std::size_t> waits_;
  std::vector<PlacedBlock> blocks_;
  std::vector<BlockView> views_;
  /// Which of them are those of the caller's blocks.
  struct CallersView {
    std::size_t number;
    BlockId id;
    std::size_t device;
  };
  std::vector<CallersView> callers_views_;
  bool has_shared_ = false;
};

}  // namespace strata
