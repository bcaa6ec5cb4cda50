#include "sparse/fronts/resident_sweeps.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <numeric>
#include <utility>

#include "base/elapsed_time.hpp"
#include "schedule/fixed_places.hpp"
#include "session/report.hpp"
#include "sparse/fronts/front_homes.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

constexpr std::int64_t kNumber = sizeof(double);
/// Bytes that a thread copies at a time: less does not keep one busy that had to be woken.
constexpr std::int64_t kTogether = std::int64_t{256} << 10;

/// Calls copy(bytes of the caller, where they are on the device) for packed columns there: for as
/// many together as follow each other.
template <class Copy>
void for_columns(const PlacedBlock& block, const MatrixView<double>& b, const Copy& copy) {
  const bool packed = b.ld == b.rows;
  const std::int64_t together = packed ? b.cols : 1;
  for (std::int64_t c = 0; c < b.cols; c += together)
    copy(std::as_writable_bytes(std::span(b.column(c), at(b.rows * together))),
         block.data + c * b.rows * kNumber);
}

/// Right-hand sides of the caller on their way to a device, and back.
class ColumnCopies {
 public:
  ColumnCopies(std::span<const MatrixView<double>> columns, PinnedRing& ring)
      : columns_(columns), ring_(ring) {}

  void send(Queue& queue, std::span<const PlacedBlock> blocks) const {
    if (!together(blocks))
      return each(blocks, [&](std::span<std::byte> here, std::byte* there) {
        ResidentRun::send(queue, there, here, ring_);
      });
    parts(blocks, [&](std::span<const PlacedBlock> some, std::int64_t bytes, std::int64_t pieces) {
      ring_.send(queue, some.front().data, bytes, pieces, [&](std::int64_t k, std::byte* to) {
        each(piece(some, k, pieces), [&](std::span<std::byte> here, std::byte* there) {
          std::copy(here.begin(), here.end(), to + (there - some.front().data));
        });
      });
    });
  }

  void receive(Queue& queue, std::span<const PlacedBlock> blocks) const {
    if (!together(blocks))
      return each(blocks, [&](std::span<std::byte> here, std::byte* there) {
        ResidentRun::receive(queue, there, here, ring_);
      });
    parts(blocks, [&](std::span<const PlacedBlock> some, std::int64_t bytes, std::int64_t pieces) {
      const auto take = [this, some, pieces](std::int64_t k, const std::byte* from) {
        each(piece(some, k, pieces), [&](std::span<std::byte> here, const std::byte* there) {
          std::copy_n(from + (there - some.front().data), here.size(), here.data());
        });
      };
      // What fails ends the ring's work, which the run sees by its queues.
      ring_.receive(queue, some.front().data, bytes, pieces, take, [](std::exception_ptr) {});
    });
  }

 private:
  [[nodiscard]] std::int64_t block_bytes() const {
    return columns_.front().rows * columns_.front().cols * kNumber;
  }
  /// Whether copies of their own would be too many.
  [[nodiscard]] bool together(std::span<const PlacedBlock> blocks) const {
    return blocks.size() > 1 && block_bytes() <= ring_.shape().slot_bytes;
  }
  template <class Part>
  void parts(std::span<const PlacedBlock> blocks, const Part& part) const {
    for_parts(
        blocks, ring_.shape().slot_bytes, [this](BlockId) { return block_bytes(); },
        [&](std::span<const PlacedBlock> some, std::int64_t bytes) {
          part(some, bytes, std::min<std::int64_t>(std::ssize(some), bytes / kTogether + 1));
        });
  }
  [[nodiscard]] static std::span<const PlacedBlock> piece(std::span<const PlacedBlock> some,
                                                          std::int64_t k, std::int64_t pieces) {
    const std::int64_t first = std::ssize(some) * k / pieces;
    return some.subspan(at(first), at(std::ssize(some) * (k + 1) / pieces - first));
  }
  template <class Copy>
  void each(std::span<const PlacedBlock> blocks, const Copy& copy) const {
    for (const PlacedBlock& block : blocks) for_columns(block, columns_[at(block.id.row())], copy);
  }

  std::span<const MatrixView<double>> columns_;
  PinnedRing& ring_;
};

}  // namespace

ResidentSweeps::ResidentSweeps(ResidentUnits units, std::span<const std::int32_t> order,
                               Factor factor, std::shared_ptr<ResidentDevices> on,
                               DeviceSet& devices, std::int64_t together)
    : units_(std::make_shared<const ResidentUnits>(std::move(units))),
      factor_(std::move(factor)),
      on_(std::move(on)),
      devices_(devices),
      order_(order.begin(), order.end()) {
  if (!units_->apart && units_->units.size() > 1) {  // and what leaves rows where they are
    order_.resize(2 * order.size());
    std::iota(order_.begin() + std::ssize(order), order_.end(), 0);
  }
  if (units_->n == 0) return;
  const ResidentPass largest = largest_pass(*units_, together);
  const std::vector<std::int64_t> bytes =
      fixed_places_bytes(resident_sweep_schedule(units_, largest));
  for (int d = 0; d < on_->count(); ++d) {
    x_.push_back(on_->device(d).allocate(elements_of_x(*units_, largest) * kNumber));
    arenas_.push_back(on_->device(d).allocate(bytes[at(d)]));
  }
}

CallersPlaces ResidentSweeps::places_of(const ResidentPass& pass) const {
  return [this, pass](BlockId id, std::size_t device) -> CallersPlace {
    switch (id.family()) {
      case resident_sweeps::kX: {
        const std::int64_t place = place_in_x(*units_, pass, id.row()) * kNumber;
        // The view of an operand that tasks write.
        return {const_cast<std::byte*>(x_[device].data()) + place, pass.width};
      }
      case resident_sweeps::kColumns: {
        const MatrixView<double>& b = columns_[at(id.row())];
        return {reinterpret_cast<std::byte*>(b.data), b.ld};
      }
      default: {
        constexpr std::array kOfFactor = {fronts::kPanels, fronts::kStructure, -1, fronts::kWork};
        const BlockId block(kOfFactor[at(id.family())], id.row(), 0);
        const BlockView there = factor_.run->view(block, static_cast<int>(device));
        return {static_cast<std::byte*>(there.data), there.ld};
      }
    }
  };
}

ResidentSweeps::Ready& ResidentSweeps::prepared(const ResidentPass& pass) {
  const auto known = passes_.find(pass);
  if (known != passes_.end()) return known->second;
  constexpr std::size_t kPasses = 8;
  if (passes_.size() == kPasses) passes_.clear();
  ResidentRun::Memory memory{.arenas = {}, .callers = places_of(pass), .start = constants_};
  for (Buffer& arena : arenas_) memory.arenas.push_back(arena.data());
  auto schedule = std::make_shared<const Schedule>(resident_sweep_schedule(units_, pass));
  const BlockTable& blocks = schedule->blocks;
  auto order = listed_memory(blocks, resident_sweeps::kOrder, order_);
  Ready ready;
  ready.store = std::make_unique<MemoryStore>(
      blocks,
      std::vector<std::shared_ptr<FamilyMemory>>{
          factor_.panels, factor_.structure, std::move(order), nullptr, nullptr, nullptr, nullptr});
  ready.run = std::make_unique<ResidentRun>(std::move(schedule), devices_.machine(), on_,
                                            std::move(memory));
  return passes_.emplace(pass, std::move(ready)).first->second;
}

void ResidentSweeps::carry_out(const ResidentPass& pass, std::vector<MatrixView<double>> columns) {
  Ready& ready = prepared(pass);
  ResidentRun& run = *ready.run;
  columns_ = std::move(columns);
  const auto same = [](const MatrixView<double>& a, const MatrixView<double>& b) {
    return a.data == b.data && a.ld == b.ld;
  };
  if (pass.placed && !std::equal(columns_.begin(), columns_.end(), ready.columns.begin(),
                                 ready.columns.end(), same)) {
    run.place_again();
    ready.columns = columns_;
  }
  const auto is_columns = [](std::span<const PlacedBlock> blocks) {
    return blocks.front().id.family() == resident_sweeps::kColumns;
  };
  const ColumnCopies copies(columns_, devices_.ring(0, 0));
  const auto load = [&](int, Queue& queue, std::span<const PlacedBlock> blocks) {
    if (!is_columns(blocks)) return false;
    copies.send(queue, blocks);
    return true;
  };
  const auto take = [&](int, Queue& queue, std::span<const PlacedBlock> blocks) {
    if (!is_columns(blocks)) return false;
    copies.receive(queue, blocks);
    return true;
  };
  const auto ring = [this](int d) -> PinnedRing& { return devices_.ring(d, 0); };
  const auto start = std::chrono::steady_clock::now();
  run.run_untimed({ready.store.get(), ring, load, take});
  Trace trace;
  trace.seconds = seconds_since(start);
  constants_ = run.constants();
  trace.traffic = run.traffic();
  RunFigures figures;
  figures.n = units_->n;
  figures.policy = "none";
  accumulate(report_, make_report(run.plan(), figures, std::move(trace)));
}

/// What lies in memory of the device is taken as it is; of a device of the host that stands for one
/// in tests, nothing does.
bool ResidentSweeps::reaches(MatrixView<double> b) const {
  return !devices_.all_on_host() && on_->reaches(b.data, (b.ld * (b.cols - 1) + b.rows) * kNumber);
}

void ResidentSweeps::solve(MatrixView<double> b, bool forward, bool backward) {
  if (b.rows == 0) return;
  ResidentPass pass = largest_pass(*units_);
  pass.forward = forward;
  pass.backward = backward;
  for (std::int64_t first = 0; first < b.cols; first += pass.columns) {
    pass.width = b.cols - first == 1 ? 1 : units_->columns;
    pass.columns = std::min(pass.width, b.cols - first);
    const MatrixView<double> part = b.block(0, first, b.rows, pass.columns);
    pass.placed = reaches(part);
    carry_out(pass, {part});
  }
}

void ResidentSweeps::solve_each(MatrixView<double> b, std::int64_t nrhs,
                                std::span<const std::int32_t> matrices) {
  ResidentPass pass;
  pass.units.assign(matrices.begin(), matrices.end());
  pass.width = nrhs == 1 ? 1 : units_->columns;
  pass.placed = reaches(b);
  for (std::int64_t first = 0; first < nrhs; first += pass.columns) {
    pass.columns = std::min(pass.width, nrhs - first);
    std::vector<MatrixView<double>> parts;
    for (const std::int32_t k : matrices)
      parts.push_back(b.block(0, k * nrhs + first, b.rows, pass.columns));
    carry_out(pass, std::move(parts));
  }
}

RunReport ResidentSweeps::take_report() { return std::exchange(report_, {}); }

}  // namespace strata
