#include "sparse/fronts/opened_sweeps.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "device/device_host.hpp"
#include "kernels/fronts/front_program.hpp"
#include "session/budget.hpp"
#include "sparse/fronts/front_homes.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "sparse/ordering/pattern.hpp"
#include "strata/error.hpp"

namespace strata {

std::string gpus_worth_it(const RunOptions& options, std::int64_t factor_bytes) {
  constexpr std::int64_t kFew = std::int64_t{256} << 20;
  const bool found = options.devices.empty() || options.devices == "auto";
  if (found && factor_bytes < kFew) return {};
  for (const DeviceChoice& choice : choose_all_devices(options.devices))
    if (choice.backend == "cuda") return to_text(choice);
  return {};
}

OpenedSweeps::OpenedSweeps(const SparseAnalysis& analysis,
                           std::shared_ptr<const FrontLayout> layout,
                           std::shared_ptr<FamilyMemory> panels, const FrontSizes& sizes,
                           const RunOptions& options, WorkCrew& crew)
    : layout_(std::move(layout)),
      panels_(std::move(panels)),
      structure_(listed_memory(layout_->blocks, fronts::kStructure, layout_->structure)),
      session_(options) {
  try {
    if (take_resident(analysis, sizes, options)) return;
  } catch (const Error& error) {  // others took the memory meanwhile
    if (error.kind() != ErrorKind::memory) throw;
    sweeps_.reset();
  }
  if (!session_.devices().all_on_host()) {
    const BlockTable& blocks = layout_->blocks;
    MemoryStore(blocks, {panels_, nullptr, nullptr, structure_, nullptr, nullptr, nullptr})
        .materialize(fronts::kStructure, describe_host().compute_queues);
    pinner_ = std::make_unique<HostPinner>(
        session_.devices(),
        std::vector<HostRange>{{structure_->data(), blocks.total_bytes(fronts::kStructure)},
                               {panels_->data(), blocks.total_bytes(fronts::kPanels)}},
        options.host_pinning);
  }
  streamed_ =
      std::make_unique<StreamedSweeps>(analysis, *layout_, panels_, structure_, session_, crew);
}

/// As FrontFactor does with one that it made itself.
bool OpenedSweeps::take_resident(const SparseAnalysis& analysis, const FrontSizes& sizes,
                                 const RunOptions& options) {
  const std::vector<DeviceChoice> choices = choose_all_devices(options.devices);
  // The work memory of other ranges has no room for right-hand sides.
  const bool stayed = sizes.range_bytes == 0 || sizes.range_bytes == kRangesThatStay;
  if (!stayed || layout_->blocks.family(fronts::kPanels).element != Element::fp64 ||
      choices.size() > 1 || sizes.devices > session_.devices().count())
    return false;
  const auto count = static_cast<int>(sizes.devices);
  const int queues = resident_queues({}, count);
  ResidentUnits units = resident_units(analysis, *layout_, count, queues, false);
  const std::int64_t there = smallest_memory(session_.machine());
  for (const std::int64_t bytes :
       resident_sweep_bytes(std::make_shared<const ResidentUnits>(units)))
    if (bytes > there) return false;
  std::vector<ResidentDevices::Place> places;
  for (int d = 0; d < count; ++d)
    places.push_back({choices.front().indices[at(d)], &session_.devices().device(d)});
  ResidentSweeps::Factor at_home;
  at_home.panels = panels_;
  at_home.structure = structure_;
  sweeps_ = std::make_unique<ResidentSweeps>(
      std::move(units), analysis.order, std::move(at_home),
      std::make_shared<ResidentDevices>(session_.devices().backend(), places, queues),
      session_.devices());
  return true;
}

bool OpenedSweeps::solve(MatrixView<double> b, bool forward, bool backward) {
  if (resident()) {
    sweeps_->solve(b, forward, backward);
    report_ = sweeps_->take_report();
    return true;
  }
  const bool solved = streamed_->solve(b, forward, backward);
  report_ = streamed_->report();
  return solved;
}

}  // namespace strata
