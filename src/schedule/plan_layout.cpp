// The layout of device memory: size classes, slots, and the places of resident blocks.
//
// Method: sizes within an eighth of each other share a class, so a block wastes at most a ninth of
// its slot (beside what alignment to 256 bytes takes). Where a schedule allows it and a budget is
// too small for that many classes there are fewer. What is resident stays where it lies; the other
// slots are cut out of the gaps, the largest class first.

#include "schedule/plan_layout.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "schedule/fixed_places.hpp"
#include "schedule/own_places.hpp"

namespace strata {
namespace {

constexpr int kDevicesMax = 4096;  // a Wait numbers the queues of all of them in 16 bits

/// Whether one slot size serves all blocks of a family.
bool is_uniform(const BlockFamily& family) {
  return family.same_slots || (family.listed.empty() && family.elements.empty());
}

/// Disks move whole pages past the page cache, from and to addresses that are multiples of them.
constexpr std::int64_t kPage = 4096;

/// The room of a block of so many bytes: of one in storage whole pages.
std::int64_t room_of(const BlockFamily& family, std::int64_t bytes) {
  if (family.in_storage && bytes >= kPage) return (bytes + kPage - 1) / kPage * kPage;
  return slot_room(bytes);
}

/// The slot that a block asks for: that of the largest of its family with its element, or its own
/// where extents are listed, unless the family has one for all.
std::int64_t slot_bytes(const BlockTable& blocks, BlockId id) {
  const BlockFamily& family = blocks.family(id.family());
  if (is_uniform(family)) return room_of(family, blocks.capacity_bytes(id.family()));
  if (!family.listed.empty()) return room_of(family, blocks.bytes(id));
  return room_of(family, std::min(family.rows, family.tile_rows) *
                             std::min(family.cols, family.tile_cols) *
                             bytes_of(blocks.element(id)));
}

/// What the blocks of one size class add up to.
struct ClassNeeds {
  std::int64_t slots_min = 0;  ///< with which every task can run
  std::int64_t blocks = 0;
  std::int64_t total_bytes = 0;
};

struct Classes {
  std::vector<std::int64_t> bytes;  ///< increasing
  std::vector<ClassNeeds> needs;

  [[nodiscard]] std::size_t of(std::int64_t slot) const {
    return static_cast<std::size_t>(std::lower_bound(bytes.begin(), bytes.end(), slot) -
                                    bytes.begin());
  }
};

/// By family: how many of its blocks ask for a slot of so many bytes.
std::map<std::int64_t, ClassNeeds> sizes_of(const Schedule& schedule, int family) {
  const BlockTable& blocks = schedule.blocks;
  std::map<std::int64_t, ClassNeeds> sizes;
  if (blocks.count(family) == 0) return sizes;
  if (is_uniform(blocks.family(family))) {
    sizes[room_of(blocks.family(family), blocks.capacity_bytes(family))] = {
        0, blocks.count(family), blocks.total_bytes(family)};
  } else {
    blocks.for_each(family, [&](BlockId id) {
      ClassNeeds& size = sizes[slot_bytes(blocks, id)];
      ++size.blocks;
      size.total_bytes += blocks.bytes(id);
    });
  }
  return sizes;
}

/// Classes in which a slot is at most `coarseness` eighths larger than what lies in it.
Classes classes_of(const Schedule& schedule, std::int64_t coarseness) {
  std::vector<std::map<std::int64_t, ClassNeeds>> families;
  std::vector<std::int64_t> all;
  for (int f = 0; f < schedule.blocks.families(); ++f) {
    families.push_back(sizes_of(schedule, f));
    for (const auto& [bytes, needs] : families.back()) all.push_back(bytes);
  }
  std::sort(all.rbegin(), all.rend());
  Classes classes;
  for (const std::int64_t bytes : all) {
    const bool same =
        !classes.bytes.empty() && bytes + bytes / 8 * coarseness >= classes.bytes.back();
    if (!same) classes.bytes.push_back(bytes);
  }
  std::reverse(classes.bytes.begin(), classes.bytes.end());
  classes.needs.resize(classes.bytes.size());
  for (std::size_t f = 0; f < families.size(); ++f) {
    std::map<std::size_t, std::int64_t> blocks;
    for (const auto& [bytes, needs] : families[f]) {
      ClassNeeds& into = classes.needs[classes.of(bytes)];
      into.blocks += needs.blocks;
      into.total_bytes += needs.total_bytes;
      blocks[classes.of(bytes)] += needs.blocks;
    }
    for (const auto& [which, count] : blocks)
      classes.needs[which].slots_min += std::min<std::int64_t>(schedule.operands[f], count);
  }
  return classes;
}

std::int64_t smallest_bytes(const Classes& classes) {
  std::int64_t bytes = 0;
  for (std::size_t c = 0; c < classes.bytes.size(); ++c)
    bytes += classes.needs[c].slots_min * classes.bytes[c];
  return bytes;
}

/// Coarseness of classes in schedules with coarse_slots: each class needs slots for the operands of
/// one task, so a budget that fine classes exceed may do for coarse ones. In the last of them any
/// block lies in any slot.
constexpr std::array<std::int64_t, 4> kCoarseness{1, 8, 64, std::int64_t{1} << 26};

/// The finest classes that a budget allows, or those that need the least.
Classes classes_within(const Schedule& schedule, std::int64_t budget) {
  Classes best = classes_of(schedule, kCoarseness.front());
  if (!schedule.coarse_slots) return best;
  for (const std::int64_t coarseness : kCoarseness) {
    if (smallest_bytes(best) <= budget) break;
    Classes coarse = classes_of(schedule, coarseness);
    if (smallest_bytes(coarse) < smallest_bytes(best)) best = std::move(coarse);
  }
  return best;
}

/// The slots of each class that a budget is to be spent on.
std::vector<std::int64_t> share_budget(const Classes& classes, std::int64_t budget) {
  std::vector<std::size_t> order(classes.bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return classes.needs[a].total_bytes < classes.needs[b].total_bytes;
  });
  std::vector<std::int64_t> counts(order.size());
  std::int64_t extra = budget - smallest_bytes(classes);
  auto classes_left = std::ssize(order);
  for (const std::size_t c : order) {
    const ClassNeeds& needs = classes.needs[c];
    counts[c] = needs.slots_min;
    if (classes.bytes[c] > 0) {
      const std::int64_t share = extra / classes_left / classes.bytes[c];
      const std::int64_t more = std::min(share, needs.blocks - needs.slots_min);
      counts[c] += more;
      extra -= more * classes.bytes[c];
    }
    --classes_left;
  }
  return counts;
}

/// The slots of one device: those of resident blocks first, then what fits between them.
class Placement {
 public:
  Placement(const Classes& classes, std::int64_t budget) : classes_(classes), budget_(budget) {}

  /// False if there is not room for one task beside these blocks.
  bool place(std::span<const ResidentBlock> resident) {
    slots.clear();
    end = 0;
    counts_.assign(classes_.bytes.size(), 0);
    gaps_.clear();
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;
    for (const ResidentBlock& block : resident) {
      const std::size_t c = classes_.of(block.slot_bytes);
      add(block.offset, c);
      taken.emplace_back(block.offset, block.offset + block.slot_bytes);
    }
    std::sort(taken.begin(), taken.end());
    std::int64_t free = 0;
    for (const auto& [first, last] : taken) {
      if (first > free) gaps_.emplace_back(free, first);
      free = std::max(free, last);
    }
    gaps_.emplace_back(free, budget_);
    // What is resident must not take the room of blocks of other sizes.
    const std::vector<std::int64_t> share = share_budget(classes_, budget_);
    std::vector<std::int64_t> least;
    for (std::size_t c = 0; c < share.size(); ++c) {
      const bool fresh = !resident.empty() && counts_[c] == 0;
      least.push_back(fresh ? std::max(share[c], classes_.needs[c].slots_min)
                            : classes_.needs[c].slots_min);
    }
    if (!fill(least)) return false;
    (void)fill(share);
    return true;
  }

  std::vector<SlotPlace> slots;
  std::int64_t end = 0;

 private:
  void add(std::int64_t offset, std::size_t c) {
    slots.push_back({offset, static_cast<std::int32_t>(c)});
    ++counts_[c];
    end = std::max(end, offset + classes_.bytes[c]);
  }

  /// Slots until each class has as many as `wanted`, as far as there is room.
  bool fill(const std::vector<std::int64_t>& wanted) {
    bool all = true;
    for (std::size_t c = wanted.size(); c-- > 0;) {
      std::size_t gap = 0;
      while (counts_[c] < wanted[c] && gap < gaps_.size()) {
        auto& [first, last] = gaps_[gap];
        if (last - first < classes_.bytes[c]) {
          ++gap;
          continue;
        }
        add(first, c);
        first += classes_.bytes[c];
      }
      all = all && counts_[c] >= wanted[c];
    }
    return all;
  }

  const Classes& classes_;
  std::int64_t budget_;
  std::vector<std::int64_t> counts_;
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps_;
};

/// Calls visit(block, its name) for the blocks of a residency that the schedule knows.
template <class Visit>
void for_known(const Residency::Node& node, const BlockTable& blocks, const Visit& visit) {
  std::map<std::uint64_t, int> family_of;
  for (int f = 0; f < blocks.families(); ++f) {
    if (blocks.family(f).identity != 0) family_of[blocks.family(f).identity] = f;
  }
  for (const ResidentBlock& block : node.blocks) {
    const auto found = family_of.find(block.identity);
    if (found == family_of.end()) continue;
    const BlockId id(found->second, block.row, block.col);
    require(blocks.contains(id), ErrorKind::misuse, "plan",
            "the residency has a block ({},{}) that {} has not", block.row, block.col,
            blocks.family(found->second).name);
    const BlockExtent x = blocks.extent(id);
    require(x.rows == block.rows && x.cols == block.cols && blocks.element(id) == block.element,
            ErrorKind::misuse, "plan",
            "the residency has {} as {} by {} in {}, the schedule as {} by {} in {}",
            blocks.name(id), block.rows, block.cols, to_string(block.element), x.rows, x.cols,
            to_string(blocks.element(id)));
    visit(block, id);
  }
}

/// Those whose slots are of a class of this plan.
std::vector<ResidentBlock> usable(const Residency::Node& node, const Schedule& schedule,
                                  const Classes& classes) {
  std::vector<ResidentBlock> kept;
  for_known(node, schedule.blocks, [&](const ResidentBlock& block, BlockId id) {
    const std::size_t c = classes.of(slot_bytes(schedule.blocks, id));
    if (classes.bytes[c] == block.slot_bytes) kept.push_back(block);
  });
  // Where there is no room for all, those that were listed last go.
  std::stable_partition(kept.begin(), kept.end(),
                        [](const ResidentBlock& block) { return block.only_here; });
  return kept;
}

void lay_out(DeviceLayout& device, const Classes& classes, std::int64_t budget,
             std::vector<ResidentBlock> resident, std::int64_t arena_bytes) {
  if (!resident.empty()) {
    Placement placement(classes, std::min(budget, arena_bytes));
    // As many as leave room; those that were listed last go first.
    while (!resident.empty() && !placement.place(resident))
      resident.resize(resident.size() - (resident.size() + 63) / 64);
    if (!resident.empty()) {
      device.slots = std::move(placement.slots);
      device.arena_bytes = placement.end;
      device.resident = std::move(resident);
      return;
    }
  }
  Placement placement(classes, budget);
  (void)placement.place({});
  device.slots = std::move(placement.slots);
  device.arena_bytes = placement.end;
}

void add_queues(PlanLayout& layout, std::size_t d, int compute_queues, bool urgent, bool peers) {
  DeviceLayout& device = layout.devices[d];
  const auto add = [&](QueueRole role, int number) {
    layout.queues.push_back(
        {static_cast<std::uint16_t>(d), role, static_cast<std::uint16_t>(number)});
    return static_cast<int>(layout.queues.size()) - 1;
  };
  device.first_queue = device.copy_in = add(QueueRole::copy_in, 0);
  device.copy_out = add(QueueRole::copy_out, 0);
  device.compute_queues = std::max(1, compute_queues);
  for (int q = 0; q < device.compute_queues; ++q) {
    const int queue = add(QueueRole::compute, q);
    if (q == 0) device.first_compute = queue;
  }
  if (urgent) device.urgent = add(QueueRole::urgent, 0);
  if (peers) device.peer_in = add(QueueRole::peer_in, 0);
  device.queue_count = static_cast<int>(layout.queues.size()) - device.first_queue;
}

/// What the blocks that come by way of host memory ask for there: one of each size at a time.
Classes classes_on_host(const Schedule& schedule, const Classes& classes) {
  const BlockTable& blocks = schedule.blocks;
  Classes on_host{classes.bytes, std::vector<ClassNeeds>(classes.bytes.size())};
  for (int f = 0; f < blocks.families(); ++f) {
    if (!blocks.family(f).in_storage) continue;
    for (const auto& [bytes, needs] : sizes_of(schedule, f)) {
      ClassNeeds& into = on_host.needs[classes.of(bytes)];
      into.blocks += needs.blocks;
      into.total_bytes += needs.total_bytes;
      into.slots_min = std::min<std::int64_t>(into.blocks, 1);
    }
  }
  return on_host;
}

/// Host memory as a place between storage and the devices, behind them.
void add_host(PlanLayout& layout, const Schedule& schedule, const Machine& machine,
              const Classes& classes) {
  const Classes on_host = classes_on_host(schedule, classes);
  const std::int64_t budget = machine.storage->host_bytes;
  const std::int64_t smallest = smallest_bytes(on_host);
  require(budget >= smallest, ErrorKind::memory, "plan",
          "a host memory of {} ({} bytes) is too small between storage and the devices: the "
          "smallest that works with these tiles is {} bytes",
          format_bytes(budget), budget, smallest);
  layout.host = static_cast<int>(layout.devices.size());
  DeviceLayout& host = layout.devices.emplace_back();
  lay_out(host, on_host, budget, {}, 0);
  const auto add = [&](QueueRole role) {
    layout.queues.push_back({static_cast<std::uint16_t>(layout.host), role, 0});
    return static_cast<int>(layout.queues.size()) - 1;
  };
  host.first_queue = host.copy_in = add(QueueRole::copy_in);
  host.copy_out = add(QueueRole::copy_out);
  host.queue_count = 2;
}

bool has_families_in_storage(const BlockTable& blocks) {
  for (int f = 0; f < blocks.families(); ++f)
    if (blocks.family(f).in_storage) return true;
  return false;
}

}  // namespace

std::int64_t PlanLayout::arena_bytes() const noexcept {
  std::int64_t bytes = 0;
  for (std::size_t d = 0; d < devices.size(); ++d)
    if (static_cast<int>(d) != host) bytes = std::max(bytes, devices[d].arena_bytes);
  return bytes;
}

std::int32_t PlanLayout::class_of(const BlockTable& blocks, BlockId id) const {
  const std::int32_t known = class_of_family[static_cast<std::size_t>(id.family())];
  if (known >= 0) return known;
  const auto found =
      std::lower_bound(class_bytes.begin(), class_bytes.end(), slot_bytes(blocks, id));
  return static_cast<std::int32_t>(found - class_bytes.begin());
}

std::int64_t slots_of_family(const PlanLayout& layout, std::size_t device, int family) {
  const std::int32_t c = layout.class_of_family[static_cast<std::size_t>(family)];
  const std::vector<SlotPlace>& slots = layout.devices[device].slots;
  return std::count_if(slots.begin(), slots.end(),
                       [&](const SlotPlace& slot) { return slot.size_class == c; });
}

bool loses_nothing(const Residency& start, const PlanLayout& layout) {
  const auto only_here = [](const std::vector<ResidentBlock>& blocks) {
    return std::count_if(blocks.begin(), blocks.end(),
                         [](const ResidentBlock& block) { return block.only_here; });
  };
  for (std::size_t d = 0; d < start.devices.size(); ++d) {
    const std::int64_t kept = d < layout.devices.size() ? only_here(layout.devices[d].resident) : 0;
    if (only_here(start.devices[d].blocks) != kept) return false;
  }
  return true;
}

std::int64_t smallest_budget_bytes(const Schedule& schedule) {
  if (schedule.own_places) return smallest_own_places_bytes(schedule);
  if (schedule.resident) {
    const std::vector<std::int64_t> bytes = fixed_places_bytes(schedule);
    return *std::max_element(bytes.begin(), bytes.end());
  }
  return smallest_bytes(classes_within(schedule, 0));
}

std::int64_t smallest_host_bytes(const Schedule& schedule, std::int64_t device_bytes) {
  return smallest_bytes(classes_on_host(schedule, classes_within(schedule, device_bytes)));
}

/// The layout of a schedule whose blocks have places of their own.
PlanLayout layout_of_stays(const Schedule& schedule, const Machine& machine,
                           const LayoutOptions& options, const Residency& start) {
  require(start.empty(), ErrorKind::misuse, "plan",
          "blocks with places of their own do not stay from plan to plan");
  PlanLayout layout;
  layout.class_of_family.assign(static_cast<std::size_t>(schedule.blocks.families()), -1);
  layout.devices.resize(static_cast<std::size_t>(schedule.devices));
  std::vector<std::vector<SlotPlace>> stays =
      find_own_places(schedule, options.first_step, machine);
  const bool peers = schedule.devices > 1 && machine.device_to_device.bytes_per_second > 0;
  for (std::size_t d = 0; d < layout.devices.size(); ++d) {
    layout.devices[d].slots = std::move(stays[d]);
    for (const SlotPlace& stay : layout.devices[d].slots)
      layout.devices[d].arena_bytes =
          std::max(layout.devices[d].arena_bytes, stay.offset + stay.bytes);
    add_queues(layout, d, machine.devices[d].compute_queues, options.urgent_queue, peers);
  }
  return layout;
}

/// The layout of a resident schedule.
PlanLayout layout_for_good(const Schedule& schedule, const Machine& machine,
                           const LayoutOptions& options, const Residency& start) {
  PlanLayout layout;
  layout.class_of_family.assign(static_cast<std::size_t>(schedule.blocks.families()), -1);
  layout.devices = find_fixed_places(schedule);
  for (std::size_t d = 0; d < layout.devices.size(); ++d) {
    DeviceLayout& device = layout.devices[d];
    const DeviceModel& model = machine.devices[d];
    require(model.memory_bytes >= device.arena_bytes, ErrorKind::memory, "plan",
            "{}: a device memory of {} ({} bytes) does not hold all blocks: they take {} bytes",
            model.name, format_bytes(model.memory_bytes), model.memory_bytes, device.arena_bytes);
    add_queues(layout, d, model.compute_queues, options.urgent_queue, schedule.devices > 1);
    if (d >= start.devices.size()) continue;
    for_known(start.devices[d], schedule.blocks, [&](const ResidentBlock& block, BlockId id) {
      const std::int32_t number =
          device.place_of[static_cast<std::size_t>(schedule.blocks.index(id))];
      require(number >= 0 && device.slots[static_cast<std::size_t>(number)].offset == block.offset,
              ErrorKind::misuse, "plan", "the residency has {} at another place of {}",
              schedule.blocks.name(id), model.name);
      device.resident.push_back(block);
    });
  }
  return layout;
}

PlanLayout make_layout(const Schedule& schedule, const Machine& machine,
                       const LayoutOptions& options, const Residency& start) {
  require(static_cast<int>(machine.devices.size()) >= schedule.devices && schedule.devices >= 1 &&
              schedule.devices <= kDevicesMax,
          ErrorKind::misuse, "plan", "a schedule for {} devices cannot run on {}", schedule.devices,
          machine.devices.size());
  const BlockTable& blocks = schedule.blocks;
  const bool by_host =
      machine.storage && machine.storage->host_bytes > 0 && has_families_in_storage(blocks);
  require(!by_host || !(schedule.resident || schedule.own_places), ErrorKind::misuse, "plan",
          "blocks that come from storage by way of host memory have no places of their own");
  if (schedule.resident) return layout_for_good(schedule, machine, options, start);
  for (int f = 0; f < blocks.families(); ++f)
    require(!blocks.family(f).placed, ErrorKind::misuse, "plan",
            "{} lies where the caller has it, in a schedule that is not resident",
            blocks.family(f).name);
  if (schedule.own_places) return layout_of_stays(schedule, machine, options, start);
  std::int64_t budget = machine.devices.front().memory_bytes;
  for (int d = 0; d < schedule.devices; ++d)
    budget = std::min(budget, machine.devices[static_cast<std::size_t>(d)].memory_bytes);
  const Classes classes = classes_within(schedule, budget);
  const std::int64_t smallest = smallest_bytes(classes);
  PlanLayout layout;
  layout.class_bytes = classes.bytes;
  for (int f = 0; f < blocks.families(); ++f) {
    const bool known = is_uniform(blocks.family(f)) && blocks.count(f) > 0;
    layout.class_of_family.push_back(known ? static_cast<std::int32_t>(classes.of(room_of(
                                                 blocks.family(f), blocks.capacity_bytes(f))))
                                           : -1);
  }
  layout.devices.resize(static_cast<std::size_t>(schedule.devices));
  const bool peers = schedule.devices > 1 && machine.device_to_device.bytes_per_second > 0;
  for (std::size_t d = 0; d < layout.devices.size(); ++d) {
    const DeviceModel& model = machine.devices[d];
    require(model.memory_bytes >= smallest, ErrorKind::memory, "plan",
            "{}: a device memory of {} ({} bytes) is too small: the smallest that works with these "
            "tiles is {} bytes",
            model.name, format_bytes(model.memory_bytes), model.memory_bytes, smallest);
    const Residency::Node node = d < start.devices.size() ? start.devices[d] : Residency::Node();
    lay_out(layout.devices[d], classes, model.memory_bytes, usable(node, schedule, classes),
            node.arena_bytes);
    add_queues(layout, d, model.compute_queues, options.urgent_queue, peers);
  }
  if (by_host) add_host(layout, schedule, machine, classes);
  return layout;
}

}  // namespace strata
