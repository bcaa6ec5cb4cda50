#include "schedule/fixed_places.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/index.hpp"
#include "schedule/plan_layout.hpp"
#include "schedule/shared_call.hpp"

namespace strata {
namespace {

/// Whether callers have its blocks on the devices when a run begins.
bool is_there(const BlockFamily& family) {
  return family.placed && family.identity == 0 && family.origin == Origin::stored;
}

/// By device and block: whether a task of that device uses it.
std::vector<std::vector<char>> used_blocks(const Schedule& schedule) {
  const BlockTable& blocks = schedule.blocks;
  std::vector<std::vector<char>> used(at(schedule.devices),
                                      std::vector<char>(at(blocks.count()), 0));
  TaskList list;
  for (std::int64_t step = 0; step < schedule.steps; ++step) {
    list.clear();
    schedule.emit(step, list);
    for (const Task& task : std::as_const(list).tasks()) {
      require_sharers(schedule, task);
      for (int d = task.device; d < task.device + task.sharers; ++d)
        for (const TaskOperand& operand : std::as_const(list).operands(task))
          used[at(d)][at(blocks.index(operand.id))] = 1;
    }
  }
  // What callers have has a place on every device, which takes none of its memory.
  for (int f = 0; f < blocks.families(); ++f) {
    if (!blocks.family(f).placed || is_there(blocks.family(f))) continue;
    blocks.for_each(f, [&](BlockId id) {
      for (std::vector<char>& mine : used) mine[at(blocks.index(id))] = 1;
    });
  }
  for (std::size_t k = 0; k < used.front().size(); ++k) {
    const bool any =
        std::any_of(used.begin(), used.end(), [k](const auto& mine) { return mine[k] != 0; });
    if (!any) used.front()[k] = 1;
  }
  return used;
}

/// What callers have on the devices when a run begins is on one of them.
void require_one_place(const BlockTable& blocks, const std::vector<std::vector<char>>& used) {
  for (int f = 0; f < blocks.families(); ++f) {
    if (!is_there(blocks.family(f))) continue;
    blocks.for_each(f, [&](BlockId id) {
      const auto users = std::count_if(used.begin(), used.end(), [&](const auto& mine) {
        return mine[at(blocks.index(id))] != 0;
      });
      require(users == 1, ErrorKind::misuse, "plan",
              "{} lies where the caller has it, and {} devices use it", blocks.name(id), users);
    });
  }
}

}  // namespace

void require_sharers(const Schedule& schedule, const Task& task) {
  const int behind = task.device + task.sharers;
  require(task.sharers == 1 || (task.sharers > 1 && task.sharers <= kSharersMax &&
                                behind <= schedule.devices && task.calls == 1 && task.variant == 0),
          ErrorKind::misuse, "plan", "a task of {} calls that {} devices share, from {} on, of {}",
          task.calls, task.sharers, task.device, schedule.devices);
}

std::vector<DeviceLayout> find_fixed_places(const Schedule& schedule) {
  const BlockTable& blocks = schedule.blocks;
  const std::vector<std::vector<char>> used = used_blocks(schedule);
  require_one_place(blocks, used);
  std::vector<DeviceLayout> devices(used.size());
  for (std::size_t d = 0; d < used.size(); ++d) {
    DeviceLayout& device = devices[d];
    device.place_of.assign(at(blocks.count()), -1);
    for (int f = 0; f < blocks.families(); ++f) {
      blocks.for_each(f, [&](BlockId id) {
        const std::int64_t block = blocks.index(id);
        if (used[d][at(block)] == 0) return;
        device.place_of[at(block)] = static_cast<std::int32_t>(device.slots.size());
        SlotPlace& place = device.slots.emplace_back();
        place.offset = device.arena_bytes;
        place.size_class = -1;
        place.block = block;
        place.bytes = blocks.bytes(id);
        if (blocks.family(f).placed)
          place.offset = 0;
        else
          device.arena_bytes += slot_room(place.bytes);
      });
    }
    device.arena_bytes = std::max(device.arena_bytes, slot_room(1));
  }
  return devices;
}

std::vector<std::int64_t> fixed_places_bytes(const Schedule& schedule) {
  std::vector<std::int64_t> bytes;
  for (const DeviceLayout& device : find_fixed_places(schedule))
    bytes.push_back(device.arena_bytes);
  return bytes;
}

}  // namespace strata
