#include "qr/planned_passes.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "qr/tsqr_passes.hpp"
#include "session/budget.hpp"

namespace strata {
namespace {

/// Packed blocks that lie somewhere else, one below the other, as the source of their family.
BlockSource source_of_bytes(const void* bytes, const BlockTable& blocks, int family) {
  return [bytes, &blocks, family](const BlockExtent& x, std::byte* to) {
    const BlockId id(family, x.row / x.rows, 0);
    const std::int64_t column = blocks.column_bytes(id);
    std::memcpy(to, static_cast<const std::byte*>(bytes) + blocks.byte_offset(id) + x.col * column,
                static_cast<std::size_t>(x.cols * column));
  };
}

std::int64_t smallest_budget_of(const std::vector<RowProblem>& passes) {
  std::int64_t bytes = 0;
  for (const RowProblem& problem : passes)
    bytes = std::max(bytes, smallest_budget_bytes(row_pass(problem)));
  return bytes;
}

template <class T>
std::vector<RowProblem> of_matrix(std::vector<RowProblem> passes, const TallColumns<T>& matrix) {
  constexpr Element kWide = std::is_same_v<T, double> ? Element::dd : Element::fp64;
  for (RowProblem& problem : passes) {
    problem.m = matrix.rows();
    problem.n = matrix.cols();
    problem.element = element_of<T>;
    problem.sum = problem.pass == RowPass::count_sketch ? Element::fp64 : kWide;
    problem.factor = kWide;
  }
  return passes;
}

QrOptions with_budget(QrOptions options, const std::vector<RowProblem>& widest) {
  if (options.run.device_memory_bytes > 0) return options;
  options.run.device_memory_bytes =
      cache_budget(options.run, DeviceSet(options.run).machine(), widest);
  return options;
}

}  // namespace

std::int64_t floor_of(const RowProblem& problem, const BlockTable& blocks, bool first) {
  std::int64_t bytes = first ? blocks.total_bytes(rows::kMatrix) : 0;
  if (writes_matrix(problem.pass) && !problem.stays) bytes += blocks.total_bytes(rows::kMatrix);
  for (const int f : {rows::kScales, rows::kFactor, rows::kSum, rows::kMaxima, rows::kBeside}) {
    const bool moves = f < blocks.families() && blocks.family(f).origin != Origin::temporary;
    bytes += moves ? blocks.total_bytes(f) : 0;
  }
  return bytes;
}

/// A block that is copied into new memory for every pass to come costs more than one that is copied
/// again, so the budget is one that caches hold. (1,000,000 × 20 on two cores of an AMD EPYC: 0.20
/// s of processor time with 16 MiB, 0.29 with 64 MiB, 0.34 with all of V. No bit depends on it.)
std::int64_t cache_budget(const RunOptions& run, const Machine& machine,
                          std::vector<RowProblem> widest) {
  constexpr std::int64_t kCacheBytes = std::int64_t{16} << 20;
  const bool cpus = std::all_of(machine.devices.begin(), machine.devices.end(),
                                [](const DeviceModel& d) { return d.kind == DeviceKind::cpu; });
  if (run.device_memory_bytes > 0 || !cpus) return 0;
  for (RowProblem& problem : widest) problem.devices = static_cast<int>(machine.devices.size());
  return std::min(std::max(kCacheBytes, 2 * smallest_budget_of(widest)), smallest_memory(machine));
}

template <class T>
PlannedPasses<T>::PlannedPasses(TallColumns<T> matrix, const QrOptions& options,
                                const std::vector<RowProblem>& widest)
    : matrix_(matrix),
      widest_(of_matrix(widest, matrix)),
      options_(with_budget(options, widest_)),
      session_(options_.run),
      identity_(session_.new_identity()),
      tsqr_identity_(session_.new_identity()) {
  session_.set_home([this](const BlockTable& blocks) {
    return std::make_unique<RowStore<T>>(
        blocks, matrix_,
        std::vector<std::shared_ptr<FamilyMemory>>(static_cast<std::size_t>(blocks.families())));
  });
  for (RowProblem& problem : widest_) problem.devices = session_.devices().count();
  const std::int64_t needed = smallest_budget_of(widest_);
  const std::int64_t there = smallest_memory(session_.machine());
  require(needed <= there, ErrorKind::memory, "qr",
          "a device memory of {} ({} bytes) is too small for {} columns: blocks of {} rows need {} "
          "bytes at least",
          format_bytes(there), there, cols(), block_rows(widest_[0]), needed);
}

template <class T>
bool PlannedPasses<T>::can_form_streamed(int triangles) {
  const std::int64_t bytes = rows() * cols() * bytes_of(widest_[0].element);
  std::int64_t there = 0;
  for (const DeviceModel& device : session_.machine().devices) there += device.memory_bytes;
  if (bytes <= there) return false;
  RowProblem widest = widest_[0];
  widest.pass = RowPass::form_gram;
  widest.stages.assign(static_cast<std::size_t>(triangles - 1), widest.factor);
  widest.beside = cols();
  if (smallest_budget_bytes(row_pass(widest)) > smallest_memory(session_.machine())) return false;
  widest_[0] = std::move(widest);
  return true;
}

/// Blocks for all passes, by the first of them; and room for the widest from the beginning:
/// what lies on a device is lost when its arena grows.
template <class T>
void PlannedPasses<T>::begin(RowPass first) {
  block_elements_ =
      has_blocks_of_its_own(first)
          ? kPassBlockElements
          : pass_block_elements(rows(), cols(), widest_[0].element, session_.machine());
  std::vector<Schedule> widest;
  for (RowProblem& problem : widest_) {
    problem.block_elements = block_elements_;
    widest.push_back(row_pass(problem));
  }
  session_.reserve(widest);
  if (tsqr_block_rows(cols()) == block_rows(widest_[0])) tsqr_identity_ = identity_;
}

/// A sketch behind another pass has V in blocks that no other pass uses. On GPUs, which want many
/// panels at a time, a task of TSQR has as many blocks as an eighth of the memory holds.
template <class T>
RowProblem PlannedPasses<T>::completed(RowProblem problem) const {
  constexpr std::int64_t kGroupMax = 32;
  problem.devices = session_.devices().count();
  problem.wide_sums = wide_sums_of(options_.wide_sums, problem.n, session_.machine());
  problem.block_elements =
      has_blocks_of_its_own(problem.pass) ? kPassBlockElements : block_elements_;
  const bool same_blocks = problem.block_elements == block_elements_ && problem.beside <= problem.n;
  problem.identity = same_blocks ? identity_ : 0;
  require(problem.identity != 0 || !session_.devices().residency().only_here(identity_),
          ErrorKind::misuse, "qr", "V is on the devices in other blocks than those of this pass");
  if (!is_tsqr(problem.pass)) return problem;
  problem.identity = tsqr_identity_;
  problem.stays = problem.stays && tsqr_identity_ == identity_;
  const std::int64_t block = block_rows(problem) * problem.n * bytes_of(problem.element);
  if (!session_.devices().all_on_host())
    problem.group =
        std::clamp<std::int64_t>(smallest_memory(session_.machine()) / (8 * block), 1, kGroupMax);
  return problem;
}

/// What the host wants of family kSum; the triangles of TSQR are kept.
template <class T>
void PlannedPasses<T>::take_sums(const BlockTable& blocks, RowStore<T>& store,
                                 const PassData<T>& data, bool tsqr) {
  if (data.sum == nullptr) return;
  std::byte* to = data.sum;
  if (tsqr) {
    triangles_.resize(static_cast<std::size_t>(blocks.total_bytes(rows::kSum)));
    to = triangles_.data();
  }
  std::int64_t bytes = 0;
  for (std::int64_t b = 0; b < blocks.block_rows(rows::kSum); ++b) {
    const BlockId id(rows::kSum, b, 0);
    bytes = blocks.bytes(id);
    store.read(id, to + b * bytes);
  }
  if (tsqr) std::copy_n(triangles_.end() - bytes, bytes, data.sum);
}

template <class T>
RunReport PlannedPasses<T>::run(RowProblem asked, const PassData<T>& data) {
  const auto start = std::chrono::steady_clock::now();
  if (data.meanwhile) data.meanwhile();
  const bool first = block_elements_ == 0;
  if (first) begin(asked.pass);
  const RowProblem problem = completed(std::move(asked));
  SessionRun pass;
  pass.schedule = std::make_shared<const Schedule>(row_pass(problem));
  const BlockTable& blocks = pass.schedule->blocks;
  pass.figures.n = problem.n;
  pass.figures.tile = block_rows(problem);
  pass.figures.floor_bytes = floor_of(problem, blocks, first);
  pass.figures.host_bytes = blocks.total_bytes(rows::kSum) + blocks.total_bytes(rows::kMaxima);
  pass.figures.seconds = seconds_since(start);
  std::vector<std::shared_ptr<FamilyMemory>> families{nullptr};
  for (int f = rows::kScales; f < blocks.families(); ++f) {
    if (f == rows::kBeside) {
      families.push_back(nullptr);
      continue;
    }
    const void* bytes = nullptr;
    if (f == rows::kScales) bytes = data.scales;
    if (f == rows::kFactor) bytes = data.factor;
    if (f == rows::kFactor && problem.pass == RowPass::orthogonal) {
      triangles_.insert(triangles_.end(), data.factor,
                        data.factor + problem.n * problem.n * std::int64_t{sizeof(double)});
      bytes = triangles_.data();
    }
    if (f == rows::kCoefficients) bytes = data.coefficients;
    families.push_back(std::make_shared<FamilyMemory>(
        blocks, f, bytes != nullptr ? source_of_bytes(bytes, blocks, f) : BlockSource()));
  }
  const bool replaced = forms_matrix(problem.pass) && data.beside.to.data == nullptr;
  RowStore<T> store(
      blocks, matrix_, std::move(families),
      replaced ? TallColumns<T>{.from = {.view = matrix_.to}, .to = matrix_.to} : data.beside);
  IssueOptions options;
  options.progress = options_.run.progress;
  options.what = "qr";
  (void)session_.run(pass, store, options);
  // Blocks of other passes are those of V before it; or the devices have what was V.
  const bool others = problem.pass == RowPass::orthogonal && tsqr_identity_ != identity_;
  if (others || replaced)
    session_.devices().forget(std::exchange(identity_, session_.new_identity()));
  if (replaced) tsqr_identity_ = identity_;
  if ((replaced || writes_matrix(problem.pass)) && matrix_.to.data != nullptr) {
    matrix_.from = {.view = matrix_.to};
    if (matrix_.to_beside.data != nullptr) matrix_.beside = {.view = matrix_.to_beside};
  }
  take_sums(blocks, store, data, problem.pass == RowPass::triangles);
  std::vector<double> of_block(static_cast<std::size_t>(problem.n));
  for (std::int64_t b = 0; data.maxima != nullptr && b < blocks.block_rows(rows::kMaxima); ++b) {
    store.read(BlockId(rows::kMaxima, b, 0), reinterpret_cast<std::byte*>(of_block.data()));
    keep_larger(of_block, data.maxima);
  }
  return session_.take_report();
}

template class PlannedPasses<double>;
template class PlannedPasses<float>;

}  // namespace strata
