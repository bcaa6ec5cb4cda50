// Branches with a program: the kernels that take their fronts one after another find the same
// factor as without, and the jobs, carried out in their order by the definition, another time.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/backend/backend.hpp"
#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_program.hpp"
#include "run/device_set.hpp"
#include "run/resident_run.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "sparse/fronts/front_schedule.hpp"
#include "sparse/fronts/inverse_panels.hpp"
#include "strata/error.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/factor_columns.hpp"
#include "tests/sparse/front_matrices.hpp"
#include "tests/sparse/front_sizes.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::kWhole;

std::shared_ptr<const FrontLayout> layout_of(const SparseAnalysis& analysis, const SparseMatrix& a,
                                             bool program, std::int64_t branch = kWhole) {
  return std::make_shared<const FrontLayout>(lay_out_fronts(
      analysis, a,
      {.tile = 512, .panel_order = 4096, .branch_entries = branch, .program = program ? 1 : 0}));
}

/// The values as the layout wants them.
BlockSource values_of(const FrontLayout& layout, const SparseMatrix& a, double shift) {
  return [&layout, &a, shift](const BlockExtent& x, std::byte* to) {
    auto* out = reinterpret_cast<double*>(to);
    if (x.col == kRawValues) {
      std::copy(a.value.begin(), a.value.end(), out);
      out[x.rows - 1] = shift;
      return;
    }
    for (std::int64_t k = 0; k < x.rows; ++k) {
      const EntryCode code = layout.entries[at(x.row + k)];
      out[k] = (code < 0 ? 0 : a.value[at(code >> 1)]) + ((code & 1) != 0 ? shift : 0);
    }
  };
}

template <class T>
std::shared_ptr<FamilyMemory> listed(const FrontLayout& layout, int family,
                                     const std::vector<T>& list) {
  return std::make_shared<FamilyMemory>(
      layout.blocks, family, [&list](const BlockExtent& x, std::byte* to) {
        std::memcpy(to, list.data() + x.row, at(x.rows) * sizeof(T));
      });
}

/// Panels by a backend, supernode after supernode, packed.
std::vector<double> factor_by(const std::string& backend, const SparseAnalysis& analysis,
                              const std::shared_ptr<const FrontLayout>& layout,
                              const SparseMatrix& a, double shift, PivotStatus* found = nullptr) {
  RunOptions options;
  options.devices = backend;
  options.device_memory_bytes = std::int64_t{1} << 28;
  DeviceSet devices(options);
  ResidentRun run(std::make_shared<const Schedule>(resident_schedule(layout, 1)), devices.machine(),
                  devices.backend(), 0, devices.device(0));
  const BlockTable& blocks = layout->blocks;
  const auto panels = std::make_shared<FamilyMemory>(blocks, fronts::kPanels);
  const auto status = std::make_shared<FamilyMemory>(blocks, fronts::kStatus);
  MemoryStore store(blocks, {panels, nullptr,
                             std::make_shared<FamilyMemory>(blocks, fronts::kValues,
                                                            values_of(*layout, a, shift)),
                             listed(*layout, fronts::kStructure, layout->structure),
                             listed(*layout, fronts::kPlaces, layout->places), status, nullptr});
  // Many blocks in a slot, and blocks that no slot holds.
  devices.shape_rings({.slot_bytes = 2048, .slots = 2, .threads = 3});
  EXPECT_GE(run.run({&store, [&](int) -> PinnedRing& { return devices.ring(0, 0); }}), 0);
  run.bring_home(fronts::kPanels, {&store, [&](int) -> PinnedRing& { return devices.ring(0, 0); }});
  if (found != nullptr) *found = *reinterpret_cast<const PivotStatus*>(status->data());
  std::vector<double> packed;
  for (std::int32_t s = 0; s < analysis.supernodes(); ++s) {
    const std::int64_t w = analysis.width(s);
    const std::int64_t order = w + analysis.row_count(s);
    const FrontUnit& unit = layout->units[at(layout->unit_of[at(s)])];
    EXPECT_NE(unit.kind, UnitKind::tiled);
    const auto* data = reinterpret_cast<const double*>(
        panels->data() + blocks.byte_offset({fronts::kPanels, unit.panel, 0}));
    for (std::int64_t j = 0; j < w; ++j)
      for (std::int64_t i = j; i < order; ++i)
        packed.push_back(data[layout->panel_place[at(s)] + i + j * layout->panel_ld[at(s)]]);
  }
  return packed;
}

/// Carries out the program of the only branch; what no job has written is NaN.
class Interpreter {
 public:
  Interpreter(const FrontLayout& layout, const SparseMatrix& a, double shift)
      : structure_(layout.structure.data() +
                   layout.blocks.extent({fronts::kStructure, layout.units[0].structure, 0}).row),
        values_(a.value),
        shift_(shift),
        panels_(at(layout.blocks.bytes({fronts::kPanels, 0, 0}) / 8), std::nan("")),
        outside_(at(layout.blocks.bytes({fronts::kUpdates, 0, 0}) / 8), std::nan("")),
        work_(at(layout.blocks.bytes({fronts::kWork, 0, 0}) / 8), std::nan("")) {
    BranchHeader head;
    std::memcpy(&head, structure_, sizeof head);
    EXPECT_GT(head.program, 0);
    EXPECT_EQ(head.program % 2, 0);
    std::memcpy(&program_, structure_ + head.program, sizeof program_);
    fronts_.resize(at(program_.fronts));
    std::memcpy(fronts_.data(), structure_ + program_.records,
                fronts_.size() * sizeof(FrontRecord));
    jobs_.resize(at(program_.job_count));
    std::memcpy(jobs_.data(), structure_ + program_.jobs, jobs_.size() * sizeof(FrontJob));
    flags_.assign(at(program_.flags), 0);
    EXPECT_GE(std::ssize(work_) * 8, program_.bookkeeping * 8 + bookkeeping_bytes(program_));
  }

  void run() {
    for (const FrontJob& job : jobs_) {
      const FrontRecord& front = fronts_[at(job.front)];
      ASSERT_EQ(flags_[at(front.flag)], front.expected) << "children of front " << job.front;
      if (job.i < 0) {
        for (std::int32_t f = job.front; f <= job.j; ++f) {
          if (f > job.front) {
            ASSERT_EQ(fronts_[at(f)].expected, 0);
          }
          small(fronts_[at(f)]);
          if (fronts_[at(f)].parent > job.j) ++flags_[at(fronts_[at(fronts_[at(f)].parent)].flag)];
        }
      } else {
        tile(front, job.i, job.j);
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
  [[nodiscard]] const std::vector<double>& panels() const { return panels_; }
  [[nodiscard]] const std::vector<FrontRecord>& fronts() const { return fronts_; }
  [[nodiscard]] const std::vector<FrontJob>& jobs() const { return jobs_; }

 private:
  double& update_of(const FrontRecord& f, std::int64_t a, std::int64_t b) {
    EXPECT_LE(f.place, 0);
    std::vector<double>& memory = f.place < 0 ? outside_ : work_;
    return memory[at(f.update + a +
                     update_column(f.ld_update, f.step, static_cast<std::int32_t>(b)))];
  }
  [[nodiscard]] double given(const ChildRecord& child, std::int64_t a, std::int64_t b) const {
    EXPECT_EQ(child.place, 0);
    return work_[at(child.update + a +
                    update_column(child.ld_update, kFrontTile, static_cast<std::int32_t>(b)))];
  }
  [[nodiscard]] ChildRecord child_of(const FrontRecord& f, std::int32_t c) const {
    ChildRecord child;
    EXPECT_EQ(f.children % 2, 0);
    std::memcpy(&child, structure_ + f.children + c * kChildRecord, sizeof child);
    return child;
  }
  double value_of(const FrontRecord& f, std::int32_t e) {
    const std::int32_t place = structure_[f.entries + e];
    const std::int32_t source = structure_[f.entries + f.entry_count + e];
    return (source < 0 ? 0 : values_[at(source)]) + (place % (f.ld + 1) == 0 ? shift_ : 0);
  }

  void small(const FrontRecord& f) {
    const std::int64_t order = f.width + f.rows;
    ASSERT_LE(order, kSmallFront);
    std::vector<double> x(at(order * order));
    for (std::int32_t e = 0; e < f.entry_count; ++e) {
      const std::int32_t place = structure_[f.entries + e];
      x[at(place % f.ld + place / f.ld * order)] = value_of(f, e);
    }
    for (std::int32_t c = 0; c < f.child_count; ++c) {
      const ChildRecord child = child_of(f, c);
      const std::int32_t* p = structure_ + child.places;
      for (std::int64_t b = 0; b < child.rows; ++b)
        for (std::int64_t a = b; a < child.rows; ++a)
          x[at(p[a] + p[b] * order)] += given(child, a, b);
    }
    for (std::int64_t k = 0; k < f.width; ++k) {
      for (std::int64_t j = k + 1; j < order; ++j)
        for (std::int64_t i = j; i < order; ++i)
          x[at(i + j * order)] -=
              x[at(i + k * order)] * x[at(j + k * order)] / x[at(k * (order + 1))];
      const double root = std::sqrt(x[at(k * (order + 1))]);
      for (std::int64_t i = k; i < order; ++i)
        panels_[at(f.panel + i + k * f.ld)] = x[at(i + k * order)] / root;
    }
    for (std::int64_t b = 0; b < f.rows; ++b)
      for (std::int64_t a = b; a < f.rows; ++a)
        update_of(f, a, b) = x[at(f.width + a + (f.width + b) * order)];
  }

  void tile(const FrontRecord& f, std::int32_t i, std::int32_t j) {
    ASSERT_GT(f.width + f.rows, kSmallFront);
    const FrontTiles t{f.width, f.rows};
    const std::int32_t* done = flags_.data() + f.flag + 1;
    const bool in_panel = j < t.across();
    ASSERT_LT(i, t.count());
    ASSERT_GE(i, j);
    if (in_panel) {
      ASSERT_EQ(done[i], j);
      if (i != j) {
        ASSERT_GT(done[j], j);
      }
    } else {
      ASSERT_EQ(done[i], t.across());
      ASSERT_EQ(done[j], t.across());
    }
    const std::int64_t row = t.begin(i);
    const std::int64_t col = t.begin(j);
    const std::int64_t rows = t.begin(i + 1) - row;
    const std::int64_t cols = t.begin(j + 1) - col;
    std::vector<double> x(at(rows * cols));
    if (in_panel) {
      const std::int32_t* entries = structure_ + f.tile_entries + t.before(j) + i - j;
      for (std::int32_t e = entries[0]; e < entries[1]; ++e) {
        const std::int32_t place = structure_[f.entries + e];
        ASSERT_TRUE(place % f.ld >= row && place % f.ld < row + rows && place / f.ld >= col &&
                    place / f.ld < col + cols);
        x[at(place % f.ld - row + (place / f.ld - col) * rows)] = value_of(f, e);
      }
    }
    for (std::int32_t c = 0; c < f.child_count; ++c) {
      const ChildRecord child = child_of(f, c);
      const std::int32_t* p = structure_ + child.places;
      const std::int32_t* cuts = structure_ + child.cuts;
      for (std::int64_t b = cuts[j]; b < cuts[j + 1]; ++b)
        for (std::int64_t a = std::max<std::int64_t>(cuts[i], b); a < cuts[i + 1]; ++a)
          x[at(p[a] - row + (p[b] - col) * rows)] += given(child, a, b);
    }
    const std::int64_t depth = in_panel ? j * kFrontTile : f.width;
    const double* l = panels_.data() + f.panel;
    for (std::int64_t k = 0; k < depth; ++k)
      for (std::int64_t b = 0; b < cols; ++b)
        for (std::int64_t a = i == j ? b : 0; a < rows; ++a)
          x[at(a + b * rows)] -= l[row + a + k * f.ld] * l[col + b + k * f.ld];
    if (!in_panel) {
      for (std::int64_t b = 0; b < cols; ++b)
        for (std::int64_t a = i == j ? b : 0; a < rows; ++a)
          update_of(f, row - f.width + a, col - f.width + b) = x[at(a + b * rows)];
      if (f.parent >= 0) ++flags_[at(fronts_[at(f.parent)].flag)];
      return;
    }
    double* out = panels_.data() + f.panel + row + col * f.ld;
    for (std::int64_t b = 0; b < cols; ++b) {
      for (std::int64_t a = i == j ? b : 0; a < rows; ++a) {
        double sum = x[at(a + b * rows)];
        for (std::int64_t k = 0; k < b; ++k)
          sum -= out[a + k * f.ld] * l[col + b + (col + k) * f.ld];
        const bool diagonal = i == j && a == b;
        out[a + b * f.ld] = diagonal ? std::sqrt(sum) : sum / l[col + b + (col + b) * f.ld];
      }
    }
    ++flags_[at(f.flag + 1 + i)];
  }

  const std::int32_t* structure_;
  const std::vector<double>& values_;
  double shift_;
  BranchProgram program_{};
  std::vector<FrontRecord> fronts_;
  std::vector<FrontJob> jobs_;
  std::vector<int> flags_;
  std::vector<double> panels_, outside_, work_;
};

std::vector<SparseMatrix> program_matrices() { return test::front_matrices(31); }

TEST(FrontProgram, SerialKernelsFindTheSameFactor) {
  for (const SparseMatrix& a : program_matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    for (const double shift : {0.0, 0.5}) {
      const std::vector<double> expected =
          factor_by("host", analysis, layout_of(analysis, a, false), a, shift);
      EXPECT_EQ(factor_by("host", analysis, layout_of(analysis, a, true), a, shift), expected);
    }
  }
}

TEST(FrontProgram, JobsInTheirOrderMakeTheFactor) {
  for (const SparseMatrix& a : program_matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    const auto layout = layout_of(analysis, a, true);
    ASSERT_EQ(layout->units.size(), 1U);
    Interpreter interpreter(*layout, a, 0.25);
    interpreter.run();
    if (HasFatalFailure()) return;
    const std::vector<double> expected = factor_by("host", analysis, layout, a, 0.25);
    std::size_t k = 0;
    std::int64_t jobs = 0;
    for (const FrontRecord& front : interpreter.fronts()) {
      for (std::int64_t j = 0; j < front.width; ++j) {
        for (std::int64_t i = j; i < front.width + front.rows; ++i, ++k) {
          const double found = interpreter.panels()[at(front.panel + i + j * front.ld)];
          ASSERT_NEAR(found, expected[k], 1e-11 * (1 + std::abs(expected[k]))) << i << ' ' << j;
        }
      }
      const FrontTiles t{front.width, front.rows};
      if (front.width + front.rows > kSmallFront) jobs += t.count() * (t.count() + 1) / 2;
    }
    ASSERT_EQ(k, expected.size());
    for (const FrontJob& job : interpreter.jobs()) jobs -= job.i >= 0 ? 1 : 0;
    EXPECT_EQ(jobs, 0);
  }
}

/// A factor that stays on an emulated device: values alone make another one, solves run where it
/// is, and it goes home when it is asked for.
TEST(FrontProgram, AFactorThatStaysSolvesWhereItIs) {
  for (const SparseMatrix& a : program_matrices()) {
    SparseCholeskyOptions options;
    options.run.devices = "host:1";
    FrontFactor factor(test::analysis_by_amd(a), options,
                       {.panel_order = 4096, .branch_entries = kWhole, .program = 1});
    factor.factor(a, 0);
    ASSERT_TRUE(factor.info().ok);
    ASSERT_TRUE(factor.resident() && factor.solves_there());
    SparseMatrix b = a;
    for (double& value : b.value) value *= 1.5;
    factor.factor_values(b.value, 0.5);
    ASSERT_TRUE(factor.info().ok);
    EXPECT_EQ(factor.report().traffic.host_to_device_bytes, 8 * (std::ssize(b.value) + 1));
    SparseCholesky expected(factor.analysis(), b, [] {
      SparseCholeskyOptions same;
      same.run.devices = "host:1";
      same.shift = 0.5;
      return same;
    }());
    EXPECT_NEAR(factor.info().log_determinant, expected.info().log_determinant,
                1e-12 * (1 + std::abs(expected.info().log_determinant)));
    const std::int64_t n = a.rows;
    constexpr std::int64_t kColumns = 11;
    std::vector<double> x(at(n * kColumns));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = random_uniform(3, i) - 0.5;
    for (const bool forward : {true, false}) {
      for (const bool backward : {true, false}) {
        if (!forward && !backward) continue;
        std::vector<double> found = x;
        std::vector<double> wanted = x;
        const MatrixView<double> to{wanted.data(), n, kColumns, n};
        factor.solve_there({found.data(), n, kColumns, n}, forward, backward);
        if (forward && backward) expected.solve(to);
        if (!backward) expected.solve_lower(to);
        if (!forward) expected.solve_lower_transposed(to);
        for (std::size_t i = 0; i < x.size(); ++i)
          ASSERT_NEAR(found[i], wanted[i], 1e-11 * (1 + std::abs(wanted[i]))) << i;
      }
    }
    factor.bring_home();
    EXPECT_EQ(std::ssize(inverse_diagonal(factor)), n);
  }
}

/// Each packed update has its own elements, and no more memory than columns of tiles need.
TEST(FrontProgram, UpdatesArePackedByColumnsOfTiles) {
  for (const std::int32_t rows : {1, 2, 63, 64, 65, 127, 128, 129, 400, 1001}) {
    const std::int32_t ld = rows + rows % 2;
    std::vector<int> owners(at(update_elements(rows, ld, kFrontTile)));
    for (std::int32_t b = 0; b < rows; ++b)
      for (std::int32_t a = b; a < rows; ++a) ++owners.at(at(update_column(ld, kFrontTile, b) + a));
    EXPECT_EQ(*std::max_element(owners.begin(), owners.end()), 1);
    EXPECT_LE(std::ssize(owners), std::int64_t{ld} * (ld + 1) / 2 + std::int64_t{ld} * 33);
    EXPECT_EQ(update_column(ld, 0, rows - 1), ld * (rows - 1));
  }
}

/// A tree that is cut into ranges of the postorder, whatever they are and whatever memory there is,
/// its large fronts into parts, has the bits of one that stays, where sums are made in the order of
/// their terms. Planned traffic is the traffic that is measured.
TEST(FrontProgram, RangesHaveTheBitsOfTheWholeTree) {
  std::int64_t ranges = 0;
  std::int64_t parts = 0;
  std::int64_t left = 0;
  for (const SparseMatrix& a : program_matrices()) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    SparseCholeskyOptions options;
    options.run.devices = "reference";
    FrontFactor whole(analysis, options,
                      {.panel_order = 4096, .branch_entries = kWhole, .program = 1});
    whole.factor(a, 0.5);
    whole.bring_home();
    for (const std::int64_t bytes : {200'000, 20'000, 2'000, 1}) {
      if (test::kSanitized && bytes != 2'000) continue;
      const FrontSizes sizes{.panel_order = 4096,
                             .branch_entries = kWhole,
                             .program = 1,
                             .range_values = bytes > 1,
                             .range_bytes = bytes};
      const SplitAnalysis split = split_supernodes(analysis, bytes, Element::fp64);
      auto layout = std::make_shared<const FrontLayout>(
          lay_out_fronts(split.analysis, a, sizes, Element::fp64, split.parts));
      const std::int64_t least = smallest_budget_bytes(front_schedule(layout, 1));
      for (const std::int64_t budget : {least, least + least / 2, std::int64_t{1} << 28}) {
        options.run.device_memory_bytes = budget;
        FrontFactor factor(analysis, options, sizes);
        factor.factor(a, 0.5);
        factor.factor(a, 0.5);
        ASSERT_FALSE(factor.resident());
        ASSERT_EQ(factor.sizes().range_bytes, bytes);
        ASSERT_TRUE(factor.info().ok);
        EXPECT_EQ(factor.report().traffic, static_cast<Traffic>(factor.report().planned_traffic));
        EXPECT_LE(factor.report().peak_device_bytes, budget);
        for (std::int32_t c = 0; c < a.rows; ++c)
          ASSERT_EQ(test::column_of<double>(factor, c), test::column_of<double>(whole, c)) << c;
        EXPECT_EQ(factor.info().log_determinant, whole.info().log_determinant);
        ranges += std::ssize(factor.layout().units);
        for (const FrontUnit& unit : factor.layout().units) parts += unit.first_tile > 0 ? 1 : 0;
        left += factor.report().traffic.device_to_host_bytes >
                        factor.layout().blocks.total_bytes(fronts::kPanels) +
                            factor.layout().blocks.total_bytes(fronts::kStatus)
                    ? 1
                    : 0;
      }
    }
  }
  EXPECT_GT(ranges, test::kSanitized ? 300 : 1000);
  EXPECT_GT(parts, test::kSanitized ? 50 : 300) << "units of columns of an update";
  EXPECT_GT(left, test::kSanitized ? 5 : 20) << "updates that had to leave the device";
}

/// One whose program was made elsewhere is opened, solves, and is made again as it suits the host.
TEST(FrontProgram, AFactorMadeElsewhereIsFactoredAgainAsItSuits) {
  const SparseMatrix a = test::with_values(test::grid(13, 12, 11), 8);
  SparseCholeskyOptions options;
  options.run.devices = "host:1";
  const FrontSizes whole{.panel_order = 4096, .branch_entries = kWhole, .program = 1};
  FrontFactor made(test::analysis_by_amd(a), options, whole);
  made.factor(a, 0);
  made.bring_home();
  FrontFactor opened(test::analysis_by_amd(a), options, whole);
  opened.reserve();
  std::copy(made.bytes().begin(), made.bytes().end(), opened.bytes().begin());
  opened.adopt(made.info(), 0);
  std::vector<double> x(at(a.rows), 1.0);
  std::vector<double> y = x;
  sweep_forward<double>(made, {x.data(), a.rows, 1, a.rows});
  sweep_forward<double>(opened, {y.data(), a.rows, 1, a.rows});
  EXPECT_EQ(x, y);
  opened.factor(a, 0);
  EXPECT_FALSE(opened.resident());
  EXPECT_EQ(opened.sizes().program, 0);
  EXPECT_NEAR(opened.info().log_determinant, made.info().log_determinant, 1e-10);
}

TEST(FrontProgram, FloatsThatHoldNoElementAreRefused) {
  SparseMatrix a = test::with_values(test::grid(4, 4, 1), 8);
  a.value.back() = 1e300;
  SparseCholeskyOptions options;
  options.run.devices = "host:1";
  options.precision = Element::fp32;
  FrontFactor factor(test::analysis_by_amd(a), options, {.branch_entries = kWhole, .program = 1});
  EXPECT_THROW(factor.factor(a, 0), Error);
  a.value.back() = 1e-42;  // on the diagonal
  EXPECT_THROW(factor.factor(a, 0), Error);
}

TEST(FrontProgram, NothingStaysToo) {
  SparseMatrix nothing;
  nothing.start = {0};
  SparseCholeskyOptions options;
  options.run.devices = "host:1";
  FrontFactor factor(test::analysis_by_amd(nothing), options,
                     {.branch_entries = kWhole, .program = 1});
  factor.factor(nothing, 0);
  EXPECT_TRUE(factor.info().ok);
  EXPECT_EQ(factor.info().log_determinant, 0);
}

TEST(FrontProgram, AFactorThatStaysNamesTheFirstBadPivot) {
  SparseMatrix a = test::with_values(test::grid(9, 8, 7), 5);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  for (const std::int64_t row : {0, 100, 300}) {
    const SparseMatrix bad = test::with_bad_row(a, row);
    SparseCholeskyOptions options;
    options.run.devices = "host:1";
    FrontFactor factor(analysis, options,
                       {.panel_order = 4096, .branch_entries = kWhole, .program = 1});
    factor.factor(bad, 0);
    EXPECT_FALSE(factor.info().ok);
    const SparseCholesky expected(analysis, bad, options);
    EXPECT_EQ(factor.info().first_bad_pivot, expected.info().first_bad_pivot);
    EXPECT_THROW(factor.factor_values(std::vector<double>(3), 0), Error);
  }
}

/// Where a GPU answers: of each matrix the same as on the host, the same bits again, in core and
/// with so little memory that the tree is cut.
TEST(FrontsOnAGpu, AgreeWithTheHost) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  std::vector<SparseMatrix> list = program_matrices();
  list.push_back(test::with_values(test::grid(24, 23, 22), 77));
  for (const SparseMatrix& a : list) {
    const SparseAnalysis analysis = test::analysis_by_amd(a);
    SparseCholeskyOptions options;
    options.run.devices = "host";
    const SparseCholesky expected(analysis, a, options);
    options.run.devices = "cuda:0";
    std::vector<double> first;
    for (const std::int64_t megabytes : {2048, 2048, 64}) {
      options.run.device_memory_bytes = megabytes << 20;
      SparseCholesky factor(analysis, a, options);
      ASSERT_TRUE(factor.info().ok);
      EXPECT_NEAR(factor.info().log_determinant, expected.info().log_determinant,
                  1e-12 * (1 + std::abs(expected.info().log_determinant)));
      constexpr std::int64_t kColumns = 10;
      std::vector<double> x(at(a.rows * kColumns));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = random_uniform(4, i) - 0.5;
      std::vector<double> wanted = x;
      factor.solve({x.data(), a.rows, kColumns, a.rows});
      expected.solve({wanted.data(), a.rows, kColumns, a.rows});
      double most = 0;
      for (const double v : wanted) most = std::max(most, std::abs(v));
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(x[i], wanted[i], 1e-10 * most) << i;
      if (first.empty()) first = x;
      if (megabytes > 100) {
        EXPECT_EQ(x, first);
      }
      const std::vector<double> variances = factor.inverse_diagonal();
      const std::vector<double> expected_variances = expected.inverse_diagonal();
      for (std::size_t i = 0; i < variances.size(); ++i)
        ASSERT_NEAR(variances[i], expected_variances[i], 1e-9 * expected_variances[i]);
      const double before = factor.info().log_determinant;
      EXPECT_EQ(factor.refactor(a).log_determinant, before);
    }
  }
}

TEST(FrontsOnAGpu, NameTheFirstBadPivotAndTakeFloats) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  SparseMatrix a = test::with_values(test::grid(19, 18, 17), 5);
  const SparseAnalysis analysis = test::analysis_by_amd(a);
  SparseCholeskyOptions options;
  options.run.devices = "cuda:0";
  options.run.device_memory_bytes = std::int64_t{2} << 30;
  options.precision = Element::fp32;
  const SparseCholesky floats(analysis, a, options);
  std::vector<double> b(at(a.rows), 1.0);
  std::vector<double> x(at(a.rows));
  EXPECT_LT(refine(floats, a, {b.data(), a.rows, 1, a.rows}, {x.data(), a.rows, 1, a.rows})
                .backward_error,
            1e-15);
  options.precision = Element::fp64;
  for (const std::int64_t row : {0, 1000, 5000}) {
    const SparseMatrix bad = test::with_bad_row(a, row);
    const SparseCholesky factor(analysis, bad, options);
    SparseCholeskyOptions on_host;
    on_host.run.devices = "host";
    const SparseCholesky expected(analysis, bad, on_host);
    EXPECT_FALSE(factor.info().ok);
    EXPECT_EQ(factor.info().first_bad_pivot, expected.info().first_bad_pivot);
    EXPECT_NEAR(factor.info().bad_pivot, expected.info().bad_pivot,
                1e-12 * std::abs(expected.info().bad_pivot));
  }
}

}  // namespace
}  // namespace strata
