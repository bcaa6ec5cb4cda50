#include "sparse/fronts/resident_sweeps.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_program.hpp"
#include "sparse/fronts/front_program.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

constexpr std::int64_t kNumber = sizeof(double);

/// Calls copy(bytes, first byte where columns are packed) for the columns of B, all at once where
/// they are.
template <class Copy>
void for_column_bytes(MatrixView<double> b, const Copy& copy) {
  const bool packed = b.ld == b.rows;
  const std::int64_t count = packed ? b.rows * b.cols : b.rows;
  for (std::int64_t c = 0; c < (packed ? 1 : b.cols); ++c)
    copy(std::as_writable_bytes(std::span(b.column(c), at(count))), c * count * kNumber);
}

}  // namespace

std::int64_t ResidentSweeps::bytes_of(const SparseAnalysis& analysis) {
  const std::int64_t n = std::ssize(analysis.order);
  return n * (2 * kSweepColumns * kNumber + 4) + 4096;
}

ResidentSweeps::ResidentSweeps(const SparseAnalysis& analysis, const FrontLayout& layout,
                               ResidentRun& run, DeviceSet& devices)
    : run_(run), devices_(devices), columns_(kSweepColumns) {
  const std::int64_t n = std::ssize(analysis.order);
  for (std::int32_t u = 0; u < std::ssize(layout.units); ++u) {
    columns_ = std::min(columns_, sweep_columns(program_of(layout, layout.units[at(u)])));
    add_unit(analysis, layout, u);
  }
  connect(layout);
  for (int d = 0; d < run_.devices(); ++d)
    x_.push_back(devices_.device(d).allocate(n * columns_ * kNumber));
  b_ = devices_.device(0).allocate(n * columns_ * kNumber);
  order_ = devices_.device(0).allocate(n * std::int64_t{sizeof(std::int32_t)});
  run_.queue().copy(order_.data(), analysis.order.data(), order_.bytes(),
                    CopyDirection::host_to_device);
}

void ResidentSweeps::add_unit(const SparseAnalysis& analysis, const FrontLayout& layout,
                              std::int32_t u) {
  const FrontUnit& from = layout.units[at(u)];
  Unit unit;
  unit.device = from.device;
  const auto before = std::count_if(units_.begin(), units_.end(),
                                    [&](const Unit& other) { return other.device == unit.device; });
  unit.queue = static_cast<int>(before % run_.queues());
  unit.first = analysis.first[at(from.first)];
  unit.columns = analysis.first[at(from.last + 1)] - unit.first;
  for (std::int32_t s = from.first; s <= from.last; ++s) {
    if (analysis.parent[at(s)] <= from.last) continue;  // in this unit, or it has none
    for (std::int32_t p = analysis.parent[at(s)]; p >= 0; p = analysis.parent[at(p)])
      unit.ancestors.push_back(layout.unit_of[at(p)]);
  }
  std::sort(unit.ancestors.begin(), unit.ancestors.end());
  unit.ancestors.erase(std::unique(unit.ancestors.begin(), unit.ancestors.end()),
                       unit.ancestors.end());
  unit.panels = run_.view({fronts::kPanels, from.panel, 0}, unit.device);
  unit.structure = run_.view({fronts::kStructure, from.structure, 0}, unit.device);
  unit.work = run_.view({fronts::kWork, from.work, 0}, unit.device);
  units_.push_back(std::move(unit));
}

/// What each unit takes, and from whom: rows of a block of updates are side by side on both sides.
void ResidentSweeps::connect(const FrontLayout& layout) {
  struct Giver {
    std::int32_t unit;
    std::size_t number;
  };
  std::map<std::int64_t, Giver> giver_of;  // by block
  for (std::int32_t u = 0; u < std::ssize(layout.units); ++u) {
    const FrontUnit& unit = layout.units[at(u)];
    for (std::size_t k = 0; k < unit.given.size(); ++k)
      giver_of.emplace(unit.given[k], Giver{u, k});
  }
  for (std::int32_t u = 0; u < std::ssize(layout.units); ++u) {
    const FrontUnit& unit = layout.units[at(u)];
    const std::int64_t end = program_of(layout, unit).rows;
    for (std::size_t k = 0; k < unit.rows_taken.size(); ++k) {
      const Giver giver = giver_of.at(unit.rows_taken[k].block);
      const std::int64_t from = layout.units[at(giver.unit)].given_rows[giver.number];
      const std::int64_t to = unit.rows_taken[k].first;
      const std::int64_t next = k + 1 < unit.rows_taken.size() ? unit.rows_taken[k + 1].first : end;
      units_[at(u)].incoming.push_back({giver.unit, from, to, next - to});
    }
  }
}

void ResidentSweeps::copy_columns(const Unit& unit, std::int64_t columns, int from, int to,
                                  Queue& queue) {
  queue.copy(x_of(to) + unit.first * columns, x_of(from) + unit.first * columns,
             unit.columns * columns * kNumber, CopyDirection::device_to_device);
}

void ResidentSweeps::call(Unit& unit, std::int64_t columns, std::uint32_t variant) {
  const BlockView x{x_of(unit.device) + unit.first * columns,
                    columns,
                    unit.columns,
                    columns,
                    0,
                    0,
                    Element::fp64};
  run_.call_on(queue_of(unit), sweep_branch, std::array{x, unit.panels, unit.structure, unit.work},
               variant);
  if (units_.size() > 1) unit.done = queue_of(unit).record();
}

void ResidentSweeps::sweep_forward(Unit& unit, std::int64_t columns) {
  Queue& queue = queue_of(unit);
  for (const Incoming& one : unit.incoming) {
    const Unit& other = units_[at(one.unit)];
    queue.wait(other.done);
    queue.copy(static_cast<double*>(unit.work.data) + one.to * columns,
               static_cast<const double*>(other.work.data) + one.from * columns,
               one.rows * columns * kNumber, CopyDirection::device_to_device);
  }
  call(unit, columns, kSweepForward);
}

void ResidentSweeps::sweep_backward(Unit& unit, std::int64_t columns) {
  Queue& queue = queue_of(unit);
  for (const std::int32_t a : unit.ancestors) {
    const Unit& above = units_[at(a)];
    if (above.device == unit.device) {
      queue.wait(above.done);
      continue;
    }
    Event& there = there_[at(unit.device)][at(a)];
    if (there.state() == nullptr) {
      queue.wait(above.done);
      copy_columns(above, columns, above.device, unit.device, queue);
      there = queue.record();
    } else {
      queue.wait(there);
    }
  }
  call(unit, columns, kSweepBackward);
}

void ResidentSweeps::sweep_units(std::int64_t columns, bool forward, bool backward) {
  if (units_.size() > 1) {
    const Event begin = run_.queue().record();
    for (const Unit& unit : units_) {
      queue_of(unit).wait(begin);
      if (unit.device != 0) copy_columns(unit, columns, 0, unit.device, queue_of(unit));
    }
  }
  for (std::size_t u = 0; u < units_.size() && forward; ++u) sweep_forward(units_[u], columns);
  there_ = std::vector<std::vector<Event>>(x_.size());
  for (std::vector<Event>& events : there_) events.resize(units_.size());
  for (std::size_t u = units_.size(); u-- > 0 && backward;) sweep_backward(units_[u], columns);
  if (units_.size() == 1) return;
  for (const Unit& unit : units_) {
    run_.queue().wait(unit.done);
    if (unit.device != 0) copy_columns(unit, columns, unit.device, 0, run_.queue());
  }
}

void ResidentSweeps::solve(MatrixView<double> b, bool forward, bool backward) {
  const std::int64_t n = b.rows;
  const BlockView order{order_.data(), n, 1, n, 0, 0, Element::int32};
  const BlockView none{order_.data(), 0, 1, 1, 0, 0, Element::int32};
  PinnedRing& ring = devices_.ring(0, 0);
  const RingGuard until_all_is_home(ring);
  for (std::int64_t first = 0; first < b.cols;) {
    const std::int64_t columns = b.cols - first == 1 ? 1 : columns_;
    const std::int64_t count = std::min(columns, b.cols - first);
    const MatrixView<double> part = b.block(0, first, n, count);
    const BlockView x{x_of(0), columns, n, columns, 0, 0, Element::fp64};
    BlockView there{part.data, n, count, part.ld, 0, 0, Element::fp64};
    const bool reached = run_.reaches(part.data, (part.ld * (count - 1) + n) * kNumber);
    if (!reached) {
      there.data = b_.data();
      there.ld = n;
      for_column_bytes(part, [&](std::span<std::byte> some, std::int64_t first_byte) {
        run_.send(b_.data() + first_byte, some, ring);
      });
    }
    run_.call(take_rows, {x, there, forward ? order : none});
    sweep_units(columns, forward, backward);
    run_.call(put_rows, {there, x, backward ? order : none});
    if (!reached)
      for_column_bytes(part, [&](std::span<std::byte> some, std::int64_t first_byte) {
        run_.receive(b_.data() + first_byte, some, ring);
      });
    first += count;
  }
  run_.finish(ring);
}

}  // namespace strata
