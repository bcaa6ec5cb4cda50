#include "sparse/fronts/front_homes.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "device/device_host.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

/// The pages of the updates that a plan stores, in ranges that have none in common.
std::vector<HostRange> stored_updates(const Plan& plan, const BlockTable& blocks,
                                      std::byte* memory) {
  std::set<std::int64_t> stored;
  PlanReader reader(plan);
  PlanWindow window;
  while (reader.next(window)) {
    for (const Step& step : window.steps) {
      const BlockId id = window.block_of(step);
      if (step.kind == StepKind::store && id.family() == fronts::kUpdates) stored.insert(id.row());
    }
  }
  constexpr std::int64_t kPage = 4096;
  std::vector<HostRange> ranges;
  std::int64_t end = 0;  // of the last one, from the beginning of the memory
  const std::int64_t all = (blocks.total_bytes(fronts::kUpdates) + kPage - 1) / kPage * kPage;
  for (const std::int64_t row : stored) {
    const BlockId id(fronts::kUpdates, row, 0);
    const std::int64_t first = blocks.byte_offset(id) / kPage * kPage;
    const std::int64_t behind =
        std::min(all, (blocks.byte_offset(id) + blocks.bytes(id) + kPage - 1) / kPage * kPage);
    if (ranges.empty() || first > end) {
      ranges.push_back({memory + first, behind - first});
    } else {
      ranges.back().bytes += std::max<std::int64_t>(behind - end, 0);
    }
    end = std::max(end, behind);
  }
  return ranges;
}

}  // namespace

FrontHomes::FrontHomes(const FrontLayout& layout, std::shared_ptr<FamilyMemory> panels,
                       DeviceSet& devices, const Plan& plan, HostPinning pinning)
    : layout_(layout), staged_(!devices.all_on_host()) {
  const BlockTable& blocks = layout.blocks;
  const auto plain = [&](int family) { return std::make_shared<FamilyMemory>(blocks, family); };
  families_ = {std::move(panels),
               plain(fronts::kUpdates),
               plain(fronts::kValues),
               listed_memory(blocks, fronts::kStructure, layout.structure),
               listed_memory(blocks, fronts::kPlaces, layout.places),
               plain(fronts::kStatus),
               plain(fronts::kWork)};
  std::vector<HostRange> ranges;
  if (staged_) {
    MemoryStore all(blocks, families_);
    for (const int family : {fronts::kStructure, fronts::kPlaces})
      all.materialize(family, describe_host().compute_queues);
    for (const int family : {fronts::kStatus, fronts::kValues, fronts::kStructure, fronts::kPlaces})
      ranges.push_back({families_[at(family)]->data(), blocks.total_bytes(family)});
    const auto updates = stored_updates(plan, blocks, families_[fronts::kUpdates]->data());
    ranges.insert(ranges.end(), updates.begin(), updates.end());
    ranges.push_back({families_[fronts::kPanels]->data(), blocks.total_bytes(fronts::kPanels)});
  }
  pinner_ = std::make_unique<HostPinner>(devices, std::move(ranges), pinning);
}

MemoryStore FrontHomes::store(BlockSource values) {
  families_[fronts::kPanels]->reset(nullptr);
  families_[fronts::kUpdates]->reset(nullptr);
  families_[fronts::kStatus]->reset(nullptr);
  families_[fronts::kValues]->reset(std::move(values));
  if (staged_)
    MemoryStore(layout_.blocks, families_)
        .materialize(fronts::kValues, describe_host().compute_queues);
  return {layout_.blocks, families_};
}

void FrontHomes::let_go_of_updates() {
  if (staged_) return;
  auto& updates = families_[fronts::kUpdates];
  updates.reset();
  updates = std::make_shared<FamilyMemory>(layout_.blocks, fronts::kUpdates);
}

}  // namespace strata
