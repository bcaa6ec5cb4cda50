// Fronts that several devices make together, and factors on several GPUs.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "kernels/backend/backend.hpp"
#include "kernels/fronts/front_program.hpp"
#include "run/device_set.hpp"
#include "run/resident_run.hpp"
#include "schedule/fixed_places.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/front_program.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "strata/error.hpp"
#include "tests/sparse/dealt_factors.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/factor_columns.hpp"
#include "tests/sparse/front_matrices.hpp"
#include "tests/sparse/front_sizes.hpp"
#include "tests/sparse/options.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::dealt_matrices;
using test::dealt_to;
using test::options_on;
using test::shared_by;
using test::shared_units;
using test::whole_tree;

bool has_two_gpus() { return cuda_backend() != nullptr && cuda_backend()->devices().size() >= 2; }
bool is_serial() { return std::getenv("CUDA_LAUNCH_BLOCKING") != nullptr; }

/// The jobs that a device has of a front that several make.
std::vector<FrontJob> jobs_of(const FrontLayout& layout, const FrontUnit& unit, int rank) {
  const std::int32_t* structure =
      layout.structure.data() + layout.blocks.extent({fronts::kStructure, unit.structure, 0}).row;
  const BranchProgram program = program_of(layout, unit);
  EXPECT_GT(program.shares, 0);
  const std::int32_t* shares = structure + program.shares;
  EXPECT_EQ(shares[0], 0);
  EXPECT_EQ(shares[unit.sharers], program.job_count);
  std::vector<FrontJob> jobs(at(shares[rank + 1] - shares[rank]));
  const std::int32_t* first = structure + program.jobs + shares[rank] * kFrontJob;
  for (std::size_t k = 0; k < jobs.size(); ++k)
    std::memcpy(&jobs[k], first + static_cast<std::int64_t>(k) * kFrontJob, sizeof(FrontJob));
  return jobs;
}

/// One thread block each, of all devices that share a front, gets to the end: devices take turns,
/// and whoever has to wait for a tile of another one does.
TEST(SharedFront, JobsOfEachDeviceMeet) {
  std::int64_t tiles_made = 0;
  for (const SparseMatrix& a : dealt_matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    for (const int devices : {2, 3, 5}) {
      const FrontLayout layout = lay_out_fronts(analysis, a, shared_by(devices));
      for (const FrontUnit& unit : layout.units) {
        if (unit.sharers == 1) {
          EXPECT_EQ(program_of(layout, unit).shares, 0);
          continue;
        }
        ASSERT_EQ(unit.first, unit.last);
        ASSERT_EQ(unit.sharers, devices);
        const FrontTiles tiles{static_cast<std::int32_t>(analysis.width(unit.first)),
                               static_cast<std::int32_t>(analysis.row_count(unit.first))};
        std::vector<std::vector<FrontJob>> jobs;
        for (int rank = 0; rank < devices; ++rank) jobs.push_back(jobs_of(layout, unit, rank));
        std::vector<std::size_t> next(at(devices), 0);
        std::vector<std::int32_t> done(at(tiles.count()), 0);  // of the panel's tiles of each row
        std::int64_t made = 0;
        for (bool any = true; any;) {
          any = false;
          for (int rank = 0; rank < devices; ++rank) {
            if (next[at(rank)] == jobs[at(rank)].size()) continue;
            const FrontJob job = jobs[at(rank)][next[at(rank)]];
            ASSERT_EQ(owner_of(job.j, devices), rank);
            ASSERT_TRUE(job.front == 0 && job.j >= 0 && job.i >= job.j && job.i < tiles.count());
            const std::int32_t left = std::min(job.j, tiles.across());
            const bool in_panel = job.j < tiles.across();
            if (done[at(job.i)] < left || done[at(job.j)] < left) continue;
            if (in_panel && job.i != job.j && done[at(job.j)] <= job.j) continue;
            if (in_panel) {
              ASSERT_EQ(done[at(job.i)], job.j);
              ++done[at(job.i)];
            }
            ++next[at(rank)];
            ++made;
            any = true;
          }
        }
        ASSERT_EQ(made, std::int64_t{tiles.count()} * (tiles.count() + 1) / 2);
        tiles_made += made;
      }
    }
  }
  EXPECT_GT(tiles_made, test::kSanitized ? 100 : 500);
}

/// L of A + I/2 by so many devices of a backend, all of which may be the same, supernode after
/// supernode; of each device that has them, the panels of shared fronts.
std::vector<std::vector<double>> panels_by(const Backend& backend, const FrontSizes& sizes,
                                           const SparseAnalysis& analysis, const SparseMatrix& a) {
  const auto count = static_cast<int>(sizes.devices);
  const auto layout = std::make_shared<const FrontLayout>(lay_out_fronts(analysis, a, sizes));
  const BlockTable& blocks = layout->blocks;
  RunOptions options;
  options.device_memory_bytes = std::int64_t{1} << 28;
  DeviceSet devices(std::vector<DevicePlace>(at(count), {&backend, 0}), options);
  std::vector<ResidentRun::Place> places;
  for (int d = 0; d < count; ++d) places.push_back({0, &devices.device(d)});
  ResidentRun run(std::make_shared<const Schedule>(resident_schedule(layout, count)),
                  devices.machine(), backend, places, 2);
  const auto listed = [&](int family, const std::vector<std::int32_t>& list) {
    return std::make_shared<FamilyMemory>(
        blocks, family, [&list](const BlockExtent& x, std::byte* to) {
          std::memcpy(to, list.data() + x.row, at(x.rows) * sizeof(std::int32_t));
        });
  };
  const auto values = [&](const BlockExtent& x, std::byte* to) {
    std::memcpy(to, a.value.data(), a.value.size() * sizeof(double));
    reinterpret_cast<double*>(to)[x.rows - 1] = 0.5;
  };
  const auto panels = std::make_shared<FamilyMemory>(blocks, fronts::kPanels);
  MemoryStore store(
      blocks,
      {panels, nullptr, std::make_shared<FamilyMemory>(blocks, fronts::kValues, values),
       listed(fronts::kStructure, layout->structure), listed(fronts::kPlaces, layout->places),
       std::make_shared<FamilyMemory>(blocks, fronts::kStatus), nullptr});
  for (int times = 0; times < 3; ++times) {
    run.run({&store, [&](int d) -> PinnedRing& { return devices.ring(d, 0); }});
    EXPECT_EQ(run.traffic(), run.plan().totals().traffic);
    // What the pattern says is loaded once.
    EXPECT_EQ(run.plan().start().empty(), times == 0);
  }
  run.bring_home(fronts::kPanels,
                 {&store, [&](int d) -> PinnedRing& { return devices.ring(d, 0); }});
  EXPECT_EQ(run.traffic(), run.plan().totals().traffic);
  std::vector<std::vector<double>> found;
  for (std::int32_t s = 0; s < analysis.supernodes(); ++s) {
    const FrontUnit& unit = layout->units[at(layout->unit_of[at(s)])];
    const BlockId id{fronts::kPanels, unit.panel, 0};
    std::vector<std::byte> there(at(blocks.bytes(id)));
    for (int d = 0; d < unit.sharers; ++d) {
      std::memcpy(there.data(), panels->data() + blocks.byte_offset(id), there.size());
      if (unit.sharers > 1) {
        const auto queue = devices.device(d).make_queue(QueuePriority::normal);
        queue->copy(there.data(), run.view(id, d).data, std::ssize(there),
                    CopyDirection::device_to_host);
        queue->synchronize();
      }
      const auto* data = reinterpret_cast<const double*>(there.data()) + layout->panel_place[at(s)];
      std::vector<double>& l = found.emplace_back();
      for (std::int64_t j = 0; j < analysis.width(s); ++j)
        for (std::int64_t i = j; i < analysis.width(s) + analysis.row_count(s); ++i)
          l.push_back(data[i + j * layout->panel_ld[at(s)]]);
    }
  }
  return found;
}

/// Every device that shares a front has its panel, with the bits of one that makes all.
void compare_sharers(const Backend& backend, const std::string& alone) {
  for (const SparseMatrix& a : {test::with_values(test::grid(11, 10, 9), 8),
                                test::with_values(test::grid(5, 5, 4, true, 3), 3)}) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    FrontFactor whole(analysis, options_on(alone, std::int64_t{1} << 28), whole_tree());
    whole.factor(a, 0.5);
    whole.bring_home();
    for (const int devices : {2, 3, 4, 5}) {
      const FrontSizes sizes = shared_by(devices);
      const FrontLayout layout = lay_out_fronts(analysis, a, sizes);
      ASSERT_GT(shared_units(layout), 0);
      const auto found = panels_by(backend, sizes, analysis, a);
      std::size_t k = 0;
      for (std::int32_t s = 0; s < analysis.supernodes(); ++s) {
        const MatrixView<const double> l = whole.panel<double>(s);
        std::vector<double> wanted;
        for (std::int64_t j = 0; j < l.cols; ++j)
          for (std::int64_t i = j; i < l.rows; ++i) wanted.push_back(l(i, j));
        const int sharers = layout.units[at(layout.unit_of[at(s)])].sharers;
        for (int d = 0; d < sharers; ++d, ++k)
          ASSERT_EQ(found[k], wanted)
              << "supernode " << s << " on device " << d << " of " << sharers;
      }
      ASSERT_EQ(k, found.size());
    }
  }
}

TEST(SharedFront, IsOnEachDevice) { compare_sharers(reference_backend(), "reference"); }

/// Devices that are one GPU, whose kernels are at work at once.
TEST(SharedFrontOnAGpu, IsOnEachDevice) {
  if (cuda_backend() == nullptr || is_serial()) GTEST_SKIP() << "no GPU that works at once";
  compare_sharers(*cuda_backend(), "cuda:0");
}

/// Each of the devices that share fronts has all of those: where there is no room for that, they
/// share none, and where there is none for that either, nothing stays. Both kinds can be planned.
TEST(SharedFront, IsOnDevicesThatHaveRoom) {
  const SparseMatrix a = test::with_values(test::grid(17, 16, 15), 8);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  const auto layout_in = [&](std::int64_t bytes, FrontSizes& sizes) {
    sizes = {.program = 1};
    sizes.free_handover = true;
    return resident_layout(analysis, a, sizes, false, Element::fp64, Machine::emulated(2, bytes),
                           true);
  };
  const auto bytes_of = [&](const std::shared_ptr<const FrontLayout>& layout) {
    std::vector<std::int64_t> bytes = fixed_places_bytes(front_schedule(layout, 2));
    const std::vector<std::int64_t> sweeps = resident_sweep_bytes(
        std::make_shared<const ResidentUnits>(resident_units(analysis, *layout, 2, 1, true)));
    for (std::size_t d = 0; d < bytes.size(); ++d) bytes[d] += sweeps[d];
    return *std::max_element(bytes.begin(), bytes.end());
  };
  FrontSizes sizes;
  const auto shared = layout_in(1 << 30, sizes);
  ASSERT_NE(shared, nullptr);
  EXPECT_EQ(sizes.shares, 1);
  EXPECT_GT(shared_units(*shared), 0);
  ASSERT_NE(layout_in(bytes_of(shared), sizes), nullptr);
  EXPECT_EQ(sizes.shares, 1);
  const auto apart = layout_in(bytes_of(shared) - 1, sizes);
  ASSERT_NE(apart, nullptr);
  EXPECT_EQ(sizes.shares, 0);
  EXPECT_EQ(shared_units(*apart), 0);
  EXPECT_EQ(layout_in(bytes_of(apart) - 1, sizes), nullptr);
  for (const auto& layout : {shared, apart}) {
    const PlannedRun planned = plan_resident(analysis, layout, Machine::emulated(2, 1 << 30), {});
    EXPECT_GT(planned.predicted_seconds.value_or(0), 0);
  }
}

/// Where there are several GPUs: the same bits as on one, in core, with fronts that they make
/// together, and in ranges; solutions, too.
TEST(DealtFactorOnGpus, HasTheBitsOfOneGpu) {
  if (!has_two_gpus() || is_serial()) GTEST_SKIP() << "fewer than two GPUs that work at once";
  AnalysisOptions options;
  options.ordering = SparseOrdering::metis;
  for (const SparseMatrix& a : {test::with_values(test::grid(30, 29, 28), 7),
                                test::with_values(test::grid(9, 9, 8, true, 3), 8)}) {
    const SparseAnalysis analysis = analyze(a, options);
    FrontFactor whole(analysis, options_on("cuda:0", std::int64_t{2} << 30), whole_tree());
    whole.factor(a, 0);
    whole.bring_home();
    constexpr std::int64_t kColumns = 19;
    std::vector<double> b(at(a.rows * kColumns));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_uniform(3, i) - 0.5;
    std::vector<double> wanted = b;
    whole.solve_there({wanted.data(), a.rows, kColumns, a.rows}, true, true);
    for (const FrontSizes& sizes :
         {dealt_to(2), shared_by(2), dealt_to(2, std::int64_t{2} << 20)}) {
      FrontFactor dealt(analysis, options_on("cuda:0,1", std::int64_t{2} << 30), sizes);
      for (int run = 0; run < (sizes.shares != 0 ? 20 : 3); ++run) {
        dealt.factor(a, 0);
        ASSERT_TRUE(dealt.info().ok);
        ASSERT_EQ(dealt.resident(), sizes.range_bytes == kRangesThatStay);
        ASSERT_EQ(shared_units(dealt.layout()) > 1, sizes.shares == 1);
        EXPECT_EQ(dealt.info().log_determinant, whole.info().log_determinant);
        dealt.bring_home();
        for (std::int32_t c = 0; c < a.rows; ++c)
          ASSERT_EQ(test::column_of<double>(dealt, c), test::column_of<double>(whole, c)) << c;
        if (!dealt.resident()) continue;
        std::vector<double> x = b;
        dealt.solve_there({x.data(), a.rows, kColumns, a.rows}, true, true);
        ASSERT_EQ(x, wanted);
      }
    }
  }
}

TEST(DealtFactorOnGpus, OfFloatsHasTheBitsOfOneGpu) {
  if (!has_two_gpus() || is_serial()) GTEST_SKIP() << "fewer than two GPUs that work at once";
  const SparseMatrix a = test::with_values(test::grid(21, 20, 19), 7);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  SparseCholeskyOptions options = options_on("cuda:0", std::int64_t{2} << 30);
  options.precision = Element::fp32;
  FrontFactor whole(analysis, options, whole_tree());
  whole.factor(a, 0);
  whole.bring_home();
  options.run.devices = "cuda:0,1";
  FrontFactor shared(analysis, options, shared_by(2));
  shared.factor(a, 0);
  ASSERT_GT(shared_units(shared.layout()), 0);
  shared.bring_home();
  for (std::int32_t c = 0; c < a.rows; ++c)
    ASSERT_EQ(test::column_of<float>(shared, c), test::column_of<float>(whole, c)) << c;
  EXPECT_EQ(shared.info().log_determinant, whole.info().log_determinant);
}

/// The pivot that fails may be in a column of either GPU.
TEST(DealtFactorOnGpus, NamesTheFirstBadPivotOfAFrontThatTheyShare) {
  if (!has_two_gpus() || is_serial()) GTEST_SKIP() << "fewer than two GPUs that work at once";
  const SparseMatrix a = test::with_values(test::grid(21, 20, 19), 5);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  FrontFactor shared(analysis, options_on("cuda:0,1", std::int64_t{2} << 30), shared_by(2));
  const auto columns = std::ssize(analysis.order);
  for (const std::int64_t before : {1, 2, 70, 130, 200, 333, 600}) {
    const SparseMatrix bad = test::with_bad_row(a, analysis.order[at(columns - before)]);
    const SparseCholesky expected(analysis, bad, options_on("reference"));
    for (int run = 0; run < 20; ++run) {  // GPUs put together what they found at the same time
      shared.factor(bad, 0);
      EXPECT_FALSE(shared.info().ok);
      EXPECT_EQ(shared.info().first_bad_pivot, expected.info().first_bad_pivot);
      EXPECT_NEAR(shared.info().bad_pivot, expected.info().bad_pivot,
                  1e-9 * std::abs(expected.info().bad_pivot));
    }
    shared.factor(a, 0);
    EXPECT_TRUE(shared.info().ok);
  }
}

/// Kernels that run one after another do not meet: that is told, and nothing waits for ever.
TEST(DealtFactorOnGpus, WhatDoesNotMeetIsTold) {
  if (!has_two_gpus() || !is_serial())
    GTEST_SKIP() << "needs two GPUs and CUDA_LAUNCH_BLOCKING, and a minute";
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 5);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  FrontFactor shared(analysis, options_on("cuda:0,1", std::int64_t{2} << 30), shared_by(2));
  EXPECT_THROW(shared.factor(a, 0), Error);
  EXPECT_FALSE(shared.info().ok);
  FrontFactor dealt(analysis, options_on("cuda:0,1", std::int64_t{2} << 30), dealt_to(2));
  dealt.factor(a, 0);
  EXPECT_TRUE(dealt.info().ok);
}

}  // namespace
}  // namespace strata
