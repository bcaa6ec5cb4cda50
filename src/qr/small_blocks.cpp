#include "qr/small_blocks.hpp"

#include <algorithm>
#include <utility>

namespace strata {
namespace {

constexpr std::int64_t kAlignment = 256;  // of the small blocks, as slots of devices have it

}  // namespace

SmallBlocks::SmallBlocks(const BlockTable& blocks, std::vector<Lane> lanes, int kept,
                         const Moves& moves, const std::vector<HeldBlock>& held)
    : blocks_(blocks), lanes_(std::move(lanes)), kept_(kept) {
  std::int64_t bytes = 0;
  std::int64_t staged = 0;
  for (int f = rows::kScales; f < kFamilies; ++f) {
    staged_[at(f)] = staged;
    if (moves[at(f)]) staged += staged_bytes(f);
    held_[at(f)].resize(static_cast<std::size_t>(blocks.count(f)));
    if (f == kept) continue;
    first_[at(f)] = bytes;
    bytes += blocks.count(f) * slot_bytes(f);
  }
  // Behind sums there is room for the factor that the next pass has.
  const std::int64_t further = kept == rows::kSum ? 1 : 0;
  for (const Lane& lane : lanes_) {
    base_.push_back(lane.site->work(std::max(bytes, kAlignment)));
    if (kept != 0)
      kept_base_.push_back(lane.site->kept((blocks.count(kept) + further) * slot_bytes(kept)));
    staging_.push_back(lane.site->staging(std::max(staged, kAlignment)));
  }
  if (kept == rows::kFactor) std::copy(held.begin(), held.end(), held_[at(kept)].begin());
}

void SmallBlocks::load(int f, const std::byte* from) {
  for (std::size_t memory = 0; memory < lanes_.size(); ++memory) {
    std::copy_n(from, staged_bytes(f), staged(f, memory));
    for_each(f, [&](BlockId id, std::int64_t offset) {
      copy(memory, address(id, memory), staged(f, memory) + offset, id,
           CopyDirection::host_to_device);
      held(id).in |= 1U << memory;
    });
  }
}

void SmallBlocks::fetch(int f) {
  for_each(f, [&](BlockId id, std::int64_t offset) {
    const std::size_t memory = held(id).home;
    copy(memory, staged(f, memory) + offset, address(id, memory), id,
         CopyDirection::device_to_host);
  });
}

void SmallBlocks::fetch(BlockId id) {
  const std::size_t memory = held(id).home;
  copy(memory, on_host(id), address(id, memory), id, CopyDirection::device_to_host);
}

void SmallBlocks::take(int f, std::byte* to) const {
  for_each(f, [&](BlockId id, std::int64_t offset) {
    std::copy_n(staged(f, held(id).home) + offset, blocks_.bytes(id), to + offset);
  });
}

void SmallBlocks::read(BlockId id, std::size_t memory) {
  HeldBlock& block = held(id);
  if (block.in == 0 || (block.in >> memory & 1U) != 0) return;
  copy(memory, address(id, memory), address(id, block.home), id, CopyDirection::device_to_device);
  block.in |= 1U << memory;
}

std::int64_t SmallBlocks::slot_bytes(int f) const {
  return (blocks_.capacity_bytes(f) + kAlignment - 1) / kAlignment * kAlignment;
}

void SmallBlocks::copy(std::size_t memory, std::byte* to, const std::byte* from, BlockId id,
                       CopyDirection direction) {
  const std::int64_t bytes = blocks_.bytes(id);
  lanes_[memory].queue->copy(to, from, bytes, direction);
  switch (direction) {
    case CopyDirection::host_to_device: traffic_.host_to_device_bytes += bytes; break;
    case CopyDirection::device_to_host: traffic_.device_to_host_bytes += bytes; break;
    case CopyDirection::device_to_device: traffic_.device_to_device_bytes += bytes; break;
  }
}

}  // namespace strata
