#include "sparse/fronts/streamed_sweeps.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>
#include <utility>

#include "device/device_host.hpp"
#include "kernels/fronts/front_program.hpp"
#include "sparse/fronts/front_homes.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

/// Numbers that a thread copies at a time.
constexpr std::int64_t kAtOnce = std::int64_t{1} << 18;

/// By column, a power of two by which floats are divided, so that their largest is about 1.
template <class T>
std::vector<int> exponents_of(MatrixView<const double> b, WorkCrew& crew) {
  std::vector<int> exponents(at(b.cols), 0);
  if constexpr (!std::is_same_v<T, double>) {
    crew.share(b.cols, [&](std::int64_t c) {
      double most = 0;
      const double* column = b.column(c);
      for (std::int64_t i = 0; i < b.rows; ++i) most = std::max(most, std::abs(column[i]));
      if (most > 0 && std::isfinite(most)) exponents[at(c)] = std::ilogb(most);
    });
  }
  return exponents;
}

/// To ← from·2^exponent.
template <class From, class To>
void copy_scaled(const From* from, std::int64_t count, int exponent, To* to) {
  if (exponent == 0) {
    std::transform(from, from + count, to, [](From v) { return static_cast<To>(v); });
    return;
  }
  std::transform(from, from + count, to, [=](From v) {
    return static_cast<To>(std::scalbn(static_cast<double>(v), exponent));
  });
}

/// B ← packed columns, by several threads.
template <class T>
void put_back(const T* from, MatrixView<double> b, std::span<const int> exponents, WorkCrew& crew) {
  const std::int64_t pieces = (b.rows + kAtOnce - 1) / kAtOnce;  // of a column
  crew.share(pieces * b.cols, [&](std::int64_t piece) {
    const std::int64_t c = piece / pieces;
    const std::int64_t first = piece % pieces * kAtOnce;
    const std::int64_t end = std::min(first + kAtOnce, b.rows);
    copy_scaled(from + first + c * b.rows, end - first, exponents[at(c)], b.column(c) + first);
  });
}

}  // namespace

bool comes_sooner(const SweepPass& pass, std::int64_t columns, const Machine& machine) {
  return comes_sooner((columns - 1) / pass.columns + 1, columns,
                      machine.devices.front().host_to_device.bytes_per_second,
                      describe_host().compute_queues);
}

bool comes_sooner(std::int64_t passes, std::int64_t columns, double link_bytes_per_second,
                  int cores) {
  constexpr double kHostRate =
      8e9;  // 7 to 8 for one column, 5 to 6 for sixteen (docs/benchmarks.md)
  const std::int64_t groups = (columns + kSweepColumns - 1) / kSweepColumns;
  const std::int64_t turns = (groups + cores - 1) / cores;
  return static_cast<double>(passes) * kHostRate <=
         static_cast<double>(turns) * link_bytes_per_second;
}

StreamedSweeps::StreamedSweeps(const SparseAnalysis& analysis, const FrontLayout& layout,
                               std::shared_ptr<FamilyMemory> panels,
                               std::shared_ptr<FamilyMemory> structure, Session& session,
                               WorkCrew& crew)
    : analysis_(analysis),
      layout_(layout),
      panels_(std::move(panels)),
      structure_(std::move(structure)),
      session_(session),
      crew_(crew),
      element_(layout.blocks.family(fronts::kPanels).element),
      budget_(session.machine().devices.front().memory_bytes),
      ranges_(std::make_shared<const SweepRanges>(sweep_ranges(analysis, layout))) {}

Schedule StreamedSweeps::schedule_of(const SweepPass& pass) const {
  return sweep_schedule(ranges_, layout_, pass, session_.devices().count(), budget_);
}

StreamedSweeps::Prepared& StreamedSweeps::prepared(const SweepPass& pass) {
  const auto known = passes_.find(pass);
  if (known != passes_.end()) return known->second;
  constexpr std::size_t kPasses = 4;  // each has a home of right-hand sides
  if (passes_.size() == kPasses) passes_.clear();
  auto schedule = std::make_shared<const Schedule>(schedule_of(pass));
  const BlockTable& blocks = schedule->blocks;
  const auto own = [&](int family) { return std::make_shared<FamilyMemory>(blocks, family); };
  Prepared fresh;
  fresh.homes = {own(sweeps::kX),
                 panels_,
                 panels_,
                 structure_,
                 structure_,
                 own(sweeps::kRows),
                 own(sweeps::kWork),
                 listed_memory(blocks, sweeps::kOrder, analysis_.order),
                 own(sweeps::kGiven),
                 own(sweeps::kFound)};
  fresh.schedule = std::move(schedule);
  return passes_.emplace(pass, std::move(fresh)).first->second;
}

template <class T>
void StreamedSweeps::run(const SweepPass& pass, MatrixView<double> b) {
  auto& [schedule, homes] = prepared(pass);
  const std::vector<int> exponents = exponents_of<T>(b, crew_);
  // Number n of a block of columns that are packed.
  const auto read = [&](const BlockExtent& x, std::byte* to) {
    T* out = reinterpret_cast<T*>(to);
    const std::int64_t end = (x.col + x.cols) * x.rows;
    for (std::int64_t n = x.col * x.rows; n < end;) {
      const std::int64_t c = x.row + n / b.rows;
      const std::int64_t i = n % b.rows;
      const std::int64_t count = std::min(b.rows - i, end - n);
      if (c < b.cols)
        copy_scaled(b.column(c) + i, count, -exponents[at(c)], out);
      else
        std::fill_n(out, count, T{0});
      out += count;
      n += count;
    }
  };
  for (const int family : {sweeps::kX, sweeps::kRows, sweeps::kWork, sweeps::kFound})
    homes[at(family)]->reset(nullptr);
  homes[sweeps::kGiven]->reset(read);
  const BlockTable& blocks = schedule->blocks;
  MemoryStore store(blocks, homes);
  SessionRun wanted;
  wanted.schedule = schedule;
  wanted.figures.n = ranges_->n;
  wanted.figures.policy = "streamed";
  (void)session_.run(wanted, store);
  for (std::int64_t block = 0; block < std::ssize(pass.widths); ++block) {
    const BlockId id(sweeps::kFound, block, 0);
    put_back(reinterpret_cast<const T*>(homes[sweeps::kFound]->data() + blocks.byte_offset(id)),
             b.block(0, blocks.extent(id).row, b.rows, pass.columns_of(block)),
             std::span(exponents).subspan(at(blocks.extent(id).row)), crew_);
  }
}

bool StreamedSweeps::solve(MatrixView<double> b, bool forward, bool backward) {
  (void)session_.take_report();
  report_ = {};
  for (std::int64_t first = 0; first < b.cols;) {
    const SweepPass pass = sweep_pass(ranges_, layout_, b.cols - first, forward, backward,
                                      session_.devices().count(), budget_);
    if (pass.widths.empty()) return false;  // for the first columns, if for any
    if (first == 0 && !session_.devices().all_on_host() &&
        !comes_sooner(pass, b.cols, session_.machine()))
      return false;
    const MatrixView<double> part = b.block(0, first, b.rows, pass.columns);
    element_ == Element::fp64 ? run<double>(pass, part) : run<float>(pass, part);
    first += pass.columns;
  }
  report_ = session_.take_report();
  report_.trace = {};
  return true;
}

}  // namespace strata
