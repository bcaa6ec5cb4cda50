#include "sparse/fronts/sweep_schedule.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_program.hpp"
#include "session/budget.hpp"
#include "sparse/fronts/front_program.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

/// Bytes to which places in the memory of a device are aligned.
constexpr std::int64_t kAlignment = 256;
/// Elements in a column of a block that is cut into columns.
constexpr std::int64_t kOneColumn = 65536;

std::int64_t work_of(const BranchProgram& program, std::int64_t m, std::int64_t element) {
  return range_bookkeeping(program, m) + (bookkeeping_bytes(program) + element - 1) / element;
}

/// The extent of a block of at least `elements` elements, cut into columns so that no bounce buffer
/// of a device has to hold all at once. Less than one column is added.
BlockExtent in_columns(std::int64_t elements, std::int64_t row = 0) {
  if (elements <= kOneColumn) return {row, 0, elements, 1};
  return {row, 0, kOneColumn, (elements - 1) / kOneColumn + 1};
}

class RangeMaker {
 public:
  RangeMaker(const SparseAnalysis& analysis, const FrontLayout& layout)
      : a_(analysis), layout_(layout) {}

  SweepRanges make() {
    out_.n = std::ssize(a_.order);
    const std::vector<FrontUnit>& units = layout_.units;
    for (std::size_t u = 0; u < units.size(); ++u)
      if (units[u].first_tile <= 0) add(units[u], u + 1 < units.size() ? &units[u + 1] : nullptr);
    return std::move(out_);
  }

 private:
  /// Adds the range of a unit with a panel; where its front is cut, `next` has the first columns of
  /// its update.
  void add(const FrontUnit& unit, const FrontUnit* next) {
    const BlockTable& blocks = layout_.blocks;
    const BlockId panel{fronts::kPanels, unit.panel, 0};
    const BlockId structure{fronts::kStructure, unit.structure, 0};
    SweepRanges::Range& range = out_.ranges.emplace_back();
    range.panel = unit.panel;
    range.structure = unit.structure;
    range.bytes = blocks.bytes(panel) + blocks.bytes(structure) + 2 * kAlignment;
    range.elements = static_cast<double>(unit.inverses);
    const std::int64_t element = bytes_of(blocks.element(panel));
    const BranchProgram program = program_of(layout_, unit);
    out_.most_bytes = std::max(out_.most_bytes, range.bytes);
    out_.work_one = std::max(out_.work_one, work_of(program, 1, element));
    out_.work_many = std::max(out_.work_many, work_of(program, kSweepColumns, element));
    const std::int64_t own = a_.row_start[at(unit.last + 1)] - a_.row_start[at(unit.first)];
    if (unit.first_tile == 0 && own > 0) give(range, next->given.front(), 0, own);
    for (std::size_t k = 0; k < unit.given.size(); ++k) {
      const std::int64_t end = k + 1 < unit.given.size() ? unit.given_rows[k + 1] : own;
      give(range, unit.given[k], unit.given_rows[k], end - unit.given_rows[k]);
    }
    out_.most_rows = std::max(out_.most_rows, waiting_);
    for (const FrontUnit::RowsTaken& taken : unit.rows_taken) {
      const std::int64_t gift = gift_of_.at(taken.block);
      range.taken.push_back(gift);
      out_.gifts[at(gift)].to = taken.first;
      waiting_ -= out_.gifts[at(gift)].rows;
    }
  }

  void give(SweepRanges::Range& range, std::int64_t block, std::int64_t from, std::int64_t rows) {
    gift_of_.emplace(block, std::ssize(out_.gifts));
    range.given.push_back(std::ssize(out_.gifts));
    out_.gifts.push_back({from, 0, rows});
    waiting_ += rows;
  }

  const SparseAnalysis& a_;
  const FrontLayout& layout_;
  SweepRanges out_;
  std::map<std::int64_t, std::int64_t> gift_of_;  // by block of updates
  std::int64_t waiting_ = 0;                      // rows of gifts
};

/// Bytes of the blocks that stay on the device while ranges come and go.
std::int64_t lasting_bytes(const SweepRanges& ranges, const SweepPass& pass, Element element) {
  std::int64_t numbers = 0;
  for (const std::int64_t m : pass.widths) numbers += m * (ranges.n + ranges.most_rows);
  const bool many =
      std::any_of(pass.widths.begin(), pass.widths.end(), [](auto m) { return m > 1; });
  numbers += many ? ranges.work_many : ranges.work_one;
  const std::int64_t blocks = std::ssize(pass.widths) * (1 + std::ssize(ranges.gifts)) + 1;
  return numbers * bytes_of(element) + blocks * kAlignment;
}

class SweepTasks {
 public:
  SweepTasks(std::shared_ptr<const SweepRanges> ranges, const SweepPass& pass, std::int64_t room)
      : ranges_(std::move(ranges)), pass_(pass) {
    const auto count = std::ssize(ranges_->ranges);
    first_kept_ = count;
    if (!pass_.forward || !pass_.backward) return;
    std::int64_t all = 0;
    for (const SweepRanges::Range& range : ranges_->ranges) all += range.bytes;
    if (all > room) room -= 3 * ranges_->most_bytes;
    while (first_kept_ > 0 && room >= ranges_->ranges[at(first_kept_ - 1)].bytes)
      room -= ranges_->ranges[at(--first_kept_)].bytes;
  }

  /// Steps: right-hand sides are permuted, ranges swept one by one, solutions permuted back.
  [[nodiscard]] std::int64_t steps() const { return 2 + sweeps(); }

  void emit(std::int64_t step, TaskList& tasks) const {
    const std::int64_t count = std::ssize(ranges_->ranges);
    const bool forward = pass_.forward && step <= count;
    for (std::int64_t k = 0; k < std::ssize(pass_.widths); ++k) {
      if (step == 0) {
        tasks.add(take_rows, 0,
                  {BlockId(sweeps::kX, k, 0), BlockId(sweeps::kGiven, k, 0),
                   BlockId(sweeps::kOrder, pass_.forward ? 0 : 1, 0)});
      } else if (step + 1 == steps()) {
        tasks.add(put_rows, 0,
                  {{BlockId(sweeps::kFound, k, 0), Hint::last_write},
                   {BlockId(sweeps::kX, k, 0), Hint::last_use},
                   BlockId(sweeps::kOrder, pass_.backward ? 0 : 1, 0)});
      } else {
        sweep(forward ? step - 1 : sweeps() - step, k, forward, tasks);
      }
    }
  }

 private:
  [[nodiscard]] std::int64_t sweeps() const {
    return std::ssize(ranges_->ranges) * ((pass_.forward ? 1 : 0) + (pass_.backward ? 1 : 0));
  }
  [[nodiscard]] BlockId rows_block(std::int64_t gift, std::int64_t k) const {
    return {sweeps::kRows, gift * std::ssize(pass_.widths) + k, 0};
  }

  void sweep(std::int64_t r, std::int64_t k, bool forward, TaskList& tasks) const {
    const SweepRanges::Range& range = ranges_->ranges[at(r)];
    const bool again = !forward && pass_.forward && r < first_kept_;
    const auto given = static_cast<std::uint32_t>(forward ? range.given.size() : 0);
    Task& task = tasks.add(
        sweep_range, 0,
        {BlockId(sweeps::kX, k, 0),
         BlockId(again ? sweeps::kPanelsAgain : sweeps::kPanels, range.panel, 0),
         BlockId(again ? sweeps::kStructureAgain : sweeps::kStructure, range.structure, 0),
         BlockId(sweeps::kWork, 0, 0)},
        (forward ? kSweepForward : kSweepBackward) + given * kSweepGiven);
    task.work = std::max(2 * range.elements * static_cast<double>(pass_.widths[at(k)]), 1.0);
    if (!forward || (range.given.empty() && range.taken.empty())) return;
    std::vector<TaskOperand> written;
    std::vector<TaskOperand> read;
    for (const std::int64_t gift : range.given) written.emplace_back(rows_block(gift, k));
    for (const std::int64_t gift : range.taken)
      read.emplace_back(rows_block(gift, k), Hint::last_use);
    tasks.add_more(written, read);
  }

  std::shared_ptr<const SweepRanges> ranges_;
  SweepPass pass_;
  std::int64_t first_kept_ = 0;  // from this range on, L stays for the way back
};

std::vector<BlockExtent> extents_of_x(const SweepRanges& ranges, const SweepPass& pass) {
  std::vector<BlockExtent> x;
  for (const std::int64_t m : pass.widths) x.push_back({0, 0, m, ranges.n});
  return x;
}
/// Blocks of right-hand sides as the caller gives them. Long columns are cut, so that several
/// threads fill and empty a bounce buffer together; less than one cut column is added.
std::vector<BlockExtent> extents_of_columns(const SweepRanges& ranges, const SweepPass& pass) {
  std::vector<BlockExtent> columns;
  std::int64_t first = 0;
  for (std::int64_t k = 0; k < std::ssize(pass.widths); ++k) {
    const std::int64_t count = pass.columns_of(k);
    columns.push_back(ranges.n > kOneColumn ? in_columns(ranges.n * count, first)
                                            : BlockExtent{first, 0, ranges.n, count});
    first += count;
  }
  return columns;
}
std::vector<BlockExtent> extents_of_rows(const SweepRanges& ranges, const SweepPass& pass) {
  std::vector<BlockExtent> rows;
  for (const SweepRanges::Gift& gift : ranges.gifts)
    for (const std::int64_t m : pass.widths) rows.push_back({gift.from, gift.to, m, gift.rows});
  return rows;
}

}  // namespace

SweepRanges sweep_ranges(const SparseAnalysis& analysis, const FrontLayout& layout) {
  return RangeMaker(analysis, layout).make();
}

std::int64_t SweepPass::columns_of(std::int64_t k) const {
  std::int64_t before = 0;
  for (std::int64_t i = 0; i < k; ++i) before += widths[at(i)];
  return std::min(widths[at(k)], columns - before);
}

std::int64_t comfortable_bytes(const SweepRanges& ranges, const SweepPass& pass, Element element) {
  std::int64_t columns = 0;  // bytes of the largest block of right-hand sides on its way
  for (const BlockExtent& x : extents_of_columns(ranges, pass))
    columns = std::max(columns, x.rows * x.cols * bytes_of(element));
  return lasting_bytes(ranges, pass, element) +
         std::max(2 * ranges.most_bytes, columns + 4 * ranges.n + 2 * kAlignment);
}

Schedule sweep_schedule(std::shared_ptr<const SweepRanges> ranges, const FrontLayout& layout,
                        const SweepPass& pass, int devices, std::int64_t budget) {
  const Element element = layout.blocks.family(fronts::kPanels).element;
  const std::int64_t room = budget - lasting_bytes(*ranges, pass, element);
  Schedule schedule;
  const auto add = [&](const char* name, Element of, Origin origin,
                       std::vector<BlockExtent> extents) {
    BlockFamily family{.name = name, .element = of, .origin = origin};
    family.listed = std::move(extents);
    (void)schedule.blocks.add(std::move(family));
  };
  const std::vector<BlockExtent>& panels = layout.blocks.family(fronts::kPanels).listed;
  const std::vector<BlockExtent>& structures = layout.blocks.family(fronts::kStructure).listed;
  const bool many =
      std::any_of(pass.widths.begin(), pass.widths.end(), [](auto m) { return m > 1; });
  add("X", element, Origin::temporary, extents_of_x(*ranges, pass));
  add("L", element, Origin::stored, panels);
  add("L again", element, Origin::stored, panels);
  add("structure", Element::int32, Origin::stored, structures);
  add("structure again", Element::int32, Origin::stored, structures);
  add("rows", element, Origin::temporary, extents_of_rows(*ranges, pass));
  add("work", element, Origin::temporary,
      {in_columns(many ? ranges->work_many : ranges->work_one)});
  add("order", Element::int32, Origin::stored, {{0, 0, ranges->n, 1}, {ranges->n, 0, 0, 1}});
  add("B", element, Origin::stored, extents_of_columns(*ranges, pass));
  add("solutions", element, Origin::generated, extents_of_columns(*ranges, pass));
  schedule.devices = devices;
  schedule.operands.assign(at(schedule.blocks.families()), 1);
  for (const SweepRanges::Range& range : ranges->ranges)
    schedule.operands[sweeps::kRows] =
        std::max(schedule.operands[sweeps::kRows],
                 static_cast<int>(range.given.size() + range.taken.size()));
  schedule.own_places = true;
  auto tasks = std::make_shared<const SweepTasks>(std::move(ranges), pass, room);
  schedule.steps = tasks->steps();
  schedule.emit = [tasks](std::int64_t step, TaskList& list) { tasks->emit(step, list); };
  return schedule;
}

SweepPass sweep_pass(const std::shared_ptr<const SweepRanges>& ranges, const FrontLayout& layout,
                     std::int64_t columns, bool forward, bool backward, int devices,
                     std::int64_t budget) {
  const Element element = layout.blocks.family(fronts::kPanels).element;
  SweepPass pass{{}, 0, forward, backward};
  const auto take = [&](std::int64_t m) {
    SweepPass more = pass;
    more.widths.push_back(m);
    more.columns += std::min(m, columns - pass.columns);
    const bool holds =
        pass.widths.empty()
            ? smallest_budget_bytes(sweep_schedule(ranges, layout, more, devices, budget)) <= budget
            : comfortable_bytes(*ranges, more, element) <= budget;
    if (holds) pass = std::move(more);
    return holds;
  };
  while (pass.columns < columns && take(columns - pass.columns == 1 ? 1 : kSweepColumns)) continue;
  if (pass.widths.empty())
    while (pass.columns < columns && take(1)) continue;
  return pass;
}

}  // namespace strata
