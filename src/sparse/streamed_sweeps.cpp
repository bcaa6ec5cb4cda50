#include "sparse/streamed_sweeps.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "kernels/front_program.hpp"
#include "run/run.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"
#include "sparse/pattern.hpp"

namespace strata {
namespace {

/// Rows of right-hand sides that a thread puts in order at a time.
constexpr std::int64_t kRowsAtOnce = 16384;

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

double scaled(double value, int exponent) {
  return exponent == 0 ? value : std::scalbn(value, exponent);
}

}  // namespace

StreamedSweeps::StreamedSweeps(const SparseAnalysis& analysis, const FrontLayout& layout,
                               std::shared_ptr<FamilyMemory> panels,
                               std::shared_ptr<FamilyMemory> structure, DeviceSet& devices,
                               WorkCrew& crew, const PlanOptions& options)
    : analysis_(analysis),
      layout_(layout),
      panels_(std::move(panels)),
      structure_(std::move(structure)),
      devices_(devices),
      crew_(crew),
      options_(options),
      element_(layout.blocks.family(fronts::kPanels).element),
      budget_(devices.machine().devices.front().memory_bytes),
      ranges_(std::make_shared<const SweepRanges>(sweep_ranges(analysis, layout))) {}

Schedule StreamedSweeps::schedule_of(const SweepPass& pass) const {
  return sweep_schedule(ranges_, layout_, pass, devices_.count(), budget_);
}

bool StreamedSweeps::fits(const SweepPass& pass) const {
  return smallest_budget_bytes(schedule_of(pass)) <= budget_;
}

std::vector<std::int64_t> StreamedSweeps::widths_for(std::int64_t columns, SweepPass pass) const {
  const auto one_more = [&](std::int64_t m) {
    pass.widths.push_back(m);
    const bool first = pass.widths.size() == 1;
    const bool holds = first ? fits(pass) : comfortable_bytes(*ranges_, pass, element_) <= budget_;
    if (!holds) pass.widths.pop_back();
    return holds;
  };
  while (columns > 0 && one_more(columns == 1 ? 1 : kSweepColumns))
    columns -= std::min(columns, pass.widths.back());
  if (!pass.widths.empty()) return pass.widths;
  while (columns > 0 && one_more(1)) --columns;
  return pass.widths;
}

StreamedSweeps::Planned& StreamedSweeps::planned(const SweepPass& pass) {
  const auto known = plans_.find(pass);
  if (known != plans_.end()) return known->second;
  constexpr std::size_t kPlans = 4;  // each has a home of right-hand sides
  if (plans_.size() == kPlans) plans_.clear();
  auto schedule = std::make_shared<const Schedule>(schedule_of(pass));
  Planned fresh;
  fresh.x = std::make_shared<FamilyMemory>(schedule->blocks, sweeps::kX);
  fresh.rows = std::make_shared<FamilyMemory>(schedule->blocks, sweeps::kRows);
  fresh.work = std::make_shared<FamilyMemory>(schedule->blocks, sweeps::kWork);
  fresh.run = make_planned_run(std::move(schedule), devices_.machine(), options_, "streamed");
  fresh.run.n = ranges_->n;
  fresh.run.let_go_of_trace();
  return plans_.emplace(pass, std::move(fresh)).first->second;
}

template <class T>
void StreamedSweeps::run(const SweepPass& pass, MatrixView<double> b) {
  Planned& plan = planned(pass);
  const std::vector<int> exponents = exponents_of<T>(b, crew_);
  const auto place = [&](std::int64_t k, bool as_in_a) {
    return as_in_a ? std::int64_t{analysis_.order[at(k)]} : k;
  };
  const auto read = [&](const BlockExtent& x, std::byte* to) {
    T* out = reinterpret_cast<T*>(to);
    for (std::int64_t k = x.col; k < x.col + x.cols; ++k) {
      const std::int64_t row = place(k, pass.forward);
      for (std::int64_t c = x.row; c < x.row + x.rows; ++c)
        *out++ = c < b.cols ? static_cast<T>(scaled(b(row, c), -exponents[at(c)])) : T{0};
    }
  };
  for (const auto& family : {plan.rows, plan.work}) family->reset(nullptr);
  plan.x->reset(read);
  const BlockTable& blocks = plan.run.plan->schedule().blocks;
  MemoryStore store(blocks,
                    {plan.x, panels_, panels_, structure_, structure_, plan.rows, plan.work});
  RunReport report = make_report(plan.run, strata::run(*plan.run.plan, devices_, store, {}).trace);
  report.trace = {};
  if (report_.tasks == 0)
    report_ = std::move(report);
  else
    accumulate(report_, report);
  const auto* from = reinterpret_cast<const T*>(plan.x->data());
  for (std::int64_t block = 0; block < std::ssize(pass.widths); ++block) {
    const BlockExtent x = blocks.extent({sweeps::kX, block, 0});
    const std::int64_t end = std::min(x.row + x.rows, b.cols);
    crew_.share((x.cols + kRowsAtOnce - 1) / kRowsAtOnce, [&](std::int64_t piece) {
      const std::int64_t last = std::min((piece + 1) * kRowsAtOnce, x.cols);
      for (std::int64_t k = piece * kRowsAtOnce; k < last; ++k) {
        const std::int64_t row = place(k, pass.backward);
        for (std::int64_t c = x.row; c < end; ++c)
          b(row, c) = scaled(static_cast<double>(from[k * x.rows + c - x.row]), exponents[at(c)]);
      }
    });
    from += x.rows * x.cols;
  }
}

bool StreamedSweeps::solve(MatrixView<double> b, bool forward, bool backward) {
  SweepPass pass{{}, forward, backward};
  report_ = {};
  for (std::int64_t first = 0; first < b.cols;) {
    pass.widths = widths_for(b.cols - first, {{}, forward, backward});
    if (pass.widths.empty()) return false;  // for the first columns, if for any
    std::int64_t columns = 0;
    for (const std::int64_t m : pass.widths) columns += m;
    columns = std::min(columns, b.cols - first);
    const MatrixView<double> part = b.block(0, first, b.rows, columns);
    element_ == Element::fp64 ? run<double>(pass, part) : run<float>(pass, part);
    first += columns;
  }
  return true;
}

}  // namespace strata
