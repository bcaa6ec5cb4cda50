#pragma once
// The small blocks beside a V that lies in the memory of devices.
//
// Contract: each memory has a place for each block; which of them hold its value follows from the
// tasks, in their order: a task finds what it reads in its own memory. One family may be kept, from
// a pass that has it as sums to the next, which has it and one block more as factors: only its last
// block goes to or comes from the host. What goes and comes passes through the staging memory of
// the sites, so that copies are put into queues like tasks and the host waits once a pass.

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "qr/row_passes.hpp"
#include "run/device_site.hpp"
#include "strata/trace.hpp"

namespace strata {

/// A queue that takes the tasks of one device of a schedule, and the memory that it works in.
struct Lane {
  DeviceSite* site = nullptr;
  Queue* queue = nullptr;
  std::size_t memory = 0;
};

/// Which memories hold the value of a small block, bit by bit, and who wrote it.
struct HeldBlock {
  std::uint32_t in = 0;
  std::uint32_t home = 0;
};
inline constexpr std::size_t kMemoriesMax = 32;

class SmallBlocks {
 public:
  static constexpr int kFamilies = rows::kMaxima + 1;
  /// Whether a family goes to or comes from the host.
  using Moves = std::array<bool, kFamilies>;

  /// lanes: the first of each memory; kept: a family, 0 for none; held: of it, as the pass before
  /// left it. Throws Error{memory}.
  SmallBlocks(const BlockTable& blocks, std::vector<Lane> lanes, int kept, const Moves& moves,
              const std::vector<HeldBlock>& held);

  [[nodiscard]] std::byte* address(BlockId id, std::size_t memory) const {
    const int f = id.family();
    std::byte* first = f == kept_ ? kept_base_[memory] : base_[memory] + first_[at(f)];
    return first + number(id) * slot_bytes(f);
  }
  /// From the packed blocks of a family on the host, to each memory.
  void load(int f, const std::byte* from);
  /// To the host, behind what is in the queue of the memory that has it; there when that is done.
  void fetch(int f);
  /// One block of a family that moves.
  void fetch(BlockId id);
  /// Where a block of a family that is not kept comes to; of one that was not fetched there is
  /// nothing there, and room for it.
  [[nodiscard]] std::byte* on_host(BlockId id) const {
    return staged(id.family(), held(id).home) + blocks_.byte_offset(id);
  }
  void take(int f, std::byte* to) const;
  /// A task in a memory reads a block, whose value is copied there first where it is not; or writes
  /// it. What the task waits for, its queue has been told before.
  void read(BlockId id, std::size_t memory);
  void write(BlockId id, std::size_t memory) {
    held(id) = {1U << memory, static_cast<std::uint32_t>(memory)};
  }
  /// Which memories hold the blocks of the kept family; they are given up.
  [[nodiscard]] std::vector<HeldBlock> take_held() { return std::move(held_[at(kept_)]); }
  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }

 private:
  [[nodiscard]] static std::size_t at(int f) { return static_cast<std::size_t>(f); }
  [[nodiscard]] std::int64_t number(BlockId id) const {
    return id.col() * blocks_.block_rows(id.family()) + id.row();
  }
  [[nodiscard]] const HeldBlock& held(BlockId id) const {
    return held_[at(id.family())][static_cast<std::size_t>(number(id))];
  }
  [[nodiscard]] HeldBlock& held(BlockId id) {
    return held_[at(id.family())][static_cast<std::size_t>(number(id))];
  }
  [[nodiscard]] std::byte* staged(int f, std::size_t memory) const {
    return staging_[memory] + staged_[at(f)];
  }
  [[nodiscard]] std::int64_t staged_bytes(int f) const {
    return f == kept_ ? blocks_.capacity_bytes(f) : blocks_.total_bytes(f);
  }
  [[nodiscard]] std::int64_t slot_bytes(int f) const;
  void copy(std::size_t memory, std::byte* to, const std::byte* from, BlockId id,
            CopyDirection direction);
  /// visit(block, where it is among those that are packed).
  template <class F>
  void for_each(int f, F&& visit) const {
    std::int64_t offset = 0;
    std::int64_t left = blocks_.count(f);
    blocks_.for_each(f, [&](BlockId id) {
      if (--left > 0 && f == kept_) return;
      visit(id, offset);
      offset += blocks_.bytes(id);
    });
  }

  const BlockTable& blocks_;
  std::vector<Lane> lanes_;  ///< one a memory
  int kept_;
  std::vector<std::byte*> base_;
  std::vector<std::byte*> kept_base_;
  std::vector<std::byte*> staging_;
  std::array<std::int64_t, kFamilies> first_{};
  std::array<std::int64_t, kFamilies> staged_{};
  std::array<std::vector<HeldBlock>, kFamilies> held_;
  Traffic traffic_;
};

}  // namespace strata
