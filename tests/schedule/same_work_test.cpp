// same_work(): schedules are the same by their blocks and tasks, whoever made them.

#include <gtest/gtest.h>

#include <functional>

#include "schedule/task.hpp"

namespace strata {
namespace {

constexpr Operation add_to{.name = "add_to",
                           .operands = 2,
                           .access = {Access::read_write, Access::read},
                           .work = [](std::span<const BlockExtent>, std::uint32_t) { return 1.0; }};
constexpr Operation other = add_to;

/// What may differ, of one task among several.
struct Parts {
  BlockFamily family{.name = "A", .rows = 40, .cols = 8, .tile_rows = 8, .tile_cols = 8};
  const Operation* operation = &add_to;
  std::function<void(Task&)> change = [](Task&) {};
  Hint hint = Hint::none;
  std::int64_t read = 4;
  std::function<void(Schedule&)> rest = [](Schedule&) {};
};

Schedule made_of(const Parts& parts) {
  Schedule schedule;
  schedule.blocks.add(parts.family);
  schedule.operands = {2};
  schedule.steps = 4;
  schedule.emit = [parts](std::int64_t step, TaskList& tasks) {
    const bool last = step == 3;
    Task& task = tasks.add(last ? *parts.operation : add_to, 0,
                           {{BlockId(0, step, 0), last ? parts.hint : Hint::none},
                            BlockId(0, last ? parts.read : 4, 0)});
    if (last) parts.change(task);
  };
  parts.rest(schedule);
  return schedule;
}

TEST(SameWork, OfTwoThatAreMadeAlike) { EXPECT_TRUE(same_work(made_of({}), made_of({}))); }

TEST(SameWork, NotWhereAnythingOfTheBlocksOrOfTheLastTaskDiffers) {
  const std::vector<std::function<void(Parts&)>> changes{
      [](Parts& p) { p.family.name = "B"; },
      [](Parts& p) { p.family.rows = 39; },
      [](Parts& p) { p.family.cols = 7; },
      [](Parts& p) { p.family.element = Element::fp32; },
      [](Parts& p) { p.family.elements.assign(5, Element::fp32); },
      [](Parts& p) { p.family.origin = Origin::temporary; },
      [](Parts& p) { p.family.identity = 3; },
      [](Parts& p) { p.family.identity = 3, p.family.stays = true; },
      [](Parts& p) {
        p.family.listed.assign(5, {0, 0, 8, 8});
      },
      [](Parts& p) { p.operation = &other; },
      [](Parts& p) { p.hint = Hint::last_write; },
      [](Parts& p) { p.read = 0; },
      [](Parts& p) { p.change = [](Task& t) { t.device = 1; }; },
      [](Parts& p) { p.change = [](Task& t) { t.variant = 1; }; },
      [](Parts& p) { p.change = [](Task& t) { t.urgent = true; }; },
      [](Parts& p) { p.change = [](Task& t) { t.sharers = 2; }; },
      [](Parts& p) { p.change = [](Task& t) { t.queue = 0; }; },
      [](Parts& p) { p.change = [](Task& t) { t.work = 2; }; },
      [](Parts& p) { p.change = [](Task& t) { t.seconds = 2; }; },
      [](Parts& p) { p.change = [](Task& t) { t.share = 0.5; }; },
      [](Parts& p) { p.rest = [](Schedule& s) { s.steps = 3; }; },
      [](Parts& p) { p.rest = [](Schedule& s) { s.devices = 2; }; },
      [](Parts& p) { p.rest = [](Schedule& s) { s.operands = {3}; }; },
      [](Parts& p) { p.rest = [](Schedule& s) { s.coarse_slots = true; }; },
      [](Parts& p) { p.rest = [](Schedule& s) { s.few_slots = true; }; },
      [](Parts& p) { p.rest = [](Schedule& s) { s.own_places = true; }; },
      [](Parts& p) { p.rest = [](Schedule& s) { s.resident = true; }; },
      [](Parts& p) { p.rest = [](Schedule& s) { s.blocks.add({.name = "empty"}); }; },
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Parts parts;
    changes[i](parts);
    EXPECT_TRUE(same_work(made_of(parts), made_of(parts))) << i;
    EXPECT_FALSE(same_work(made_of({}), made_of(parts))) << i;
    EXPECT_FALSE(same_work(made_of(parts), made_of({}))) << i;
  }
}

}  // namespace
}  // namespace strata
