#include "lu/stripe_factor.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "kernels/dense/getrf.hpp"
#include "lu/lu_candidates.hpp"
#include "session/budget.hpp"
#include "session/policy.hpp"
#include "store/joined_store.hpp"

namespace strata {
namespace {

/// Rows of a stripe at most by rule: products of blocks of this order are near the rate of a CPU,
/// or of a GPU.
constexpr std::int64_t kStripeRowsCpu = 512;
constexpr std::int64_t kStripeRowsGpu = 2048;
constexpr std::int64_t kStripeRowsMin = 8;

Schedule factorization_in(StripeProblem problem, std::int64_t stripe) {
  problem.stripe = stripe;
  problem.rhs_tile = stripe_rhs_tile(problem.rhs, stripe);
  return stripe_factorization(problem);
}

/// What host memory, or devices that read storage themselves, hold of stripes at once; 0: all.
std::int64_t cache_bytes(const Machine& machine) {
  if (!machine.storage) return 0;
  if (machine.storage->host_bytes > 0) return machine.storage->host_bytes;
  std::int64_t bytes = 0;
  for (const DeviceModel& device : machine.devices) bytes += device.memory_bytes;
  return bytes;
}

std::int64_t rule_stripe(const StripeProblem& problem, const Machine& machine) {
  const std::int64_t n = std::max<std::int64_t>(problem.n, 1);
  std::int64_t stripe = std::min(n, is_cpu(machine) ? kStripeRowsCpu : kStripeRowsGpu);
  const std::int64_t cache = cache_bytes(machine);
  const std::int64_t row = n * bytes_of(problem.precision);
  const auto fits = [&] {
    if (cache > 0 && (problem.meta + 2) * stripe * row > cache) return false;
    return smallest_budget_bytes(factorization_in(problem, stripe)) <= smallest_memory(machine);
  };
  while (stripe > kStripeRowsMin && !fits()) stripe = std::max(stripe * 3 / 4, kStripeRowsMin);
  const std::int64_t stripes = (n + stripe - 1) / stripe;
  return (n + stripes - 1) / stripes;
}

/// The first of the columns in which something went wrong.
void note_first(std::int64_t column, std::int64_t& first) {
  if (first < 0 || column < first) first = column;
}

}  // namespace

StripeProblem stripe_problem(std::int64_t n, Element precision, std::int64_t rhs,
                             const Machine& machine, const StripeOptions& stripes) {
  require(n >= 0 && rhs >= 0, ErrorKind::misuse, "lu", "{} stripes of {} right-hand sides", n, rhs);
  require(stripes.stripe >= 0 && stripes.substripe >= 0 && stripes.meta >= 1 &&
              stripes.pair_columns >= 0,
          ErrorKind::misuse, "options",
          "a stripe of {} rows, substripes of {}, {} at once, pairs by {} columns: these are no "
          "stripes",
          stripes.stripe, stripes.substripe, stripes.meta, stripes.pair_columns);
  require_devices(machine);
  StripeProblem problem;
  problem.n = n;
  problem.meta = stripes.order == StripeOrder::meta_zigzag ? stripes.meta : 1;
  problem.zigzag = stripes.order != StripeOrder::basic;
  problem.discards = stripes.gauss;
  problem.rhs = rhs;
  problem.in_storage = machine.storage.has_value();
  problem.precision = precision;
  problem.pair_columns = stripes.pair_columns;  // the rule asks what fits
  problem.devices = static_cast<int>(machine.devices.size());
  problem.stripe = stripes.stripe > 0 ? std::min(stripes.stripe, std::max<std::int64_t>(n, 1))
                                      : rule_stripe(problem, machine);
  if (stripes.pair_columns > 0)
    problem.pair_columns = std::min(stripes.pair_columns, problem.stripe);
  problem.substripe =
      problem.pair_columns > 0 ? problem.stripe : std::min(stripes.substripe, problem.stripe);
  problem.rhs_tile = stripe_rhs_tile(rhs, problem.stripe);
  return problem;
}

PlannedRun plan_stripes(const StripeProblem& problem, const Machine& machine,
                        const StripeOptions& stripes) {
  const auto begin = std::chrono::steady_clock::now();
  const auto schedule = std::make_shared<const Schedule>(stripe_factorization(problem));
  PlannedRun planned =
      make_planned_run(schedule, machine, options_of(stripes.policy),
                       fmt::format("{} {}", to_string(stripes.policy), order_name(stripes)));
  planned.n = problem.n;
  planned.tile = problem.stripe;
  LuProblem as_panels;
  as_panels.n = problem.n;
  as_panels.precision = problem.precision;
  as_panels.devices = problem.devices;
  planned.floor_bytes = lu_floor_bytes(as_panels, smallest_memory(machine));
  const BlockTable& blocks = schedule->blocks;
  for (int f = 0; f < blocks.families(); ++f)
    if (!blocks.family(f).in_storage) planned.host_bytes += blocks.total_bytes(f);
  if (problem.in_storage) planned.host_bytes += host_bytes_beside_storage(*planned.plan);
  planned.seconds = seconds_since(begin);
  return planned;
}

template <class T>
StripeFactor<T>::StripeFactor(std::int64_t n, std::int64_t rhs, const StripeOptions& stripes)
    : run_(stripes.run),
      session_(std::make_shared<DeviceSet>(run_), run_),
      problem_(stripe_problem(n, element_of<T>, rhs, session_.machine(), stripes)) {
  session_.adopt(plan_stripes(problem_, session_.machine(), stripes));
  if (problem_.in_storage) {
    StorageOptions storage;
    storage.directories = run_.storage.directories;
    storage.about = fmt::format("LU of order {} in {}, stripes of {} rows", n,
                                to_string(problem_.precision), problem_.stripe);
    storage.temporary = true;
    storage.journal_bytes = 0;  // small blocks rest in files, too
    storage.files = run_.storage.files;
    files_ = FileStore::create(blocks(), storage);
  } else {
    check_host_memory(session_.adopted(), run_, "lu");
    stripes_ = std::make_shared<FamilyMemory>(blocks(), kStripeFamily);
  }
  pivots_ = std::make_shared<FamilyMemory>(blocks(), kStripePivotsFamily);
  statuses_ = std::make_shared<FamilyMemory>(blocks(), kStripeStatusFamily);
  if (!files_) pairs_ = std::make_shared<FamilyMemory>(blocks(), kStripePairFamily);
  pair_pivots_ = std::make_shared<FamilyMemory>(blocks(), kStripePairPivotsFamily);
}

template <class T>
std::unique_ptr<BlockStore> StripeFactor<T>::store_of(const BlockTable& blocks,
                                                      std::shared_ptr<FamilyMemory> right) {
  std::vector<std::shared_ptr<FamilyMemory>> families{stripes_, pivots_, std::move(right), pairs_,
                                                      pair_pivots_};
  if (blocks.families() > kStripeStatusFamily) families.push_back(statuses_);
  auto memory = std::make_unique<MemoryStore>(blocks, families);
  std::vector<JoinedStore::Part> parts;
  for (int f = 0; f < blocks.families(); ++f) parts.push_back({memory.get(), f});
  if (files_)
    for (const int f : {kStripeFamily, kStripePairFamily})
      parts[static_cast<std::size_t>(f)].store = files_.get();
  return std::make_unique<JoinedStore>(blocks, std::move(parts), std::move(memory));
}

template <class T>
RunReport StripeFactor<T>::take_report() {
  RunReport report = session_.take_report();
  if (files_) report.storage = files_->how();
  return report;
}

namespace {

/// Blocks of right-hand sides that were written, back to where they came from.
template <class T>
void copy_back(const BlockTable& blocks, const FamilyMemory& right, MatrixView<T> b) {
  blocks.for_each(kStripeRightFamily, [&](BlockId id) {
    const BlockExtent x = blocks.extent(id);
    const auto* from = reinterpret_cast<const T*>(right.data() + blocks.byte_offset(id));
    for (std::int64_t j = 0; j < x.cols; ++j)
      std::copy_n(from + j * x.rows, x.rows, b.column(x.col + j) + x.row);
  });
}

}  // namespace

template <class T>
const LuInfo& StripeFactor<T>::factor(BlockSource source, double largest, MatrixView<T> b) {
  if (files_)
    files_->set_source(kStripeFamily, std::move(source));
  else
    stripes_->reset(std::move(source));
  const auto right = std::make_shared<FamilyMemory>(blocks(), kStripeRightFamily,
                                                    source_of_view<T>(b.data, b.ld, false));
  const auto store = store_of(blocks(), right);
  IssueOptions options;
  options.progress = run_.progress;
  options.what = "factor";
  options.watched = kStripeStatusFamily;
  options.watch = [&](BlockId id) {
    const std::int64_t place = id.row() + id.col() * blocks().block_rows(kStripeStatusFamily);
    const PanelStatus& status = reinterpret_cast<const PanelStatus*>(statuses_->data())[place];
    // By pairs rows below may bring a pivot yet.
    return status.not_finite >= 0 || (status.zero_pivot >= 0 && problem_.pair_columns == 0);
  };
  SessionRun run;
  run.schedule = session_.adopted().plan->shared_schedule();
  (void)session_.run(std::move(run), *store, options);
  report_ = take_report();
  if (files_) files_->set_source(kStripeFamily, nullptr);
  set_info(largest);
  if (info_.ok) copy_back(blocks(), *right, b);
  return info_;
}

template <class T>
void StripeFactor<T>::set_info(double largest) {
  const std::int64_t count = blocks().block_rows(kStripeStatusFamily);
  double met = largest;
  std::int64_t not_finite = -1;
  info_ = {};
  multiplier_ = 0;
  blocks().for_each(kStripeStatusFamily, [&](BlockId id) {
    const std::int64_t place = id.row() + id.col() * count;
    if (!statuses_->written(place)) return;
    const PanelStatus status = reinterpret_cast<const PanelStatus*>(statuses_->data())[place];
    const std::int64_t first = id.col() * problem_.stripe;
    double& largest_there = id.row() > id.col() ? multiplier_ : met;
    largest_there = std::max(largest_there, status.largest);
    if (id.row() == id.col() && status.zero_pivot >= 0)
      note_first(first + static_cast<std::int64_t>(status.zero_pivot), info_.zero_pivot);
    if (status.not_finite >= 0)
      note_first(first + static_cast<std::int64_t>(status.not_finite), not_finite);
  });
  // What a pivot of zero makes of the rest is no outcome of its own.
  if (info_.zero_pivot < 0) info_.not_finite = not_finite;
  info_.ok = info_.zero_pivot < 0 && info_.not_finite < 0;
  info_.growth = largest > 0 ? met / largest : 1;
  info_.determinant.mantissa = std::numeric_limits<double>::quiet_NaN();
}

template <class T>
RunReport StripeFactor<T>::solve(MatrixView<T> x, StripeSweeps sweeps) {
  require(info_.ok && x.rows == problem_.n, ErrorKind::misuse, "lu",
          "there are no stripes of order {} to solve with", x.rows);
  require(!problem_.discards || sweeps == StripeSweeps::backward, ErrorKind::misuse, "lu",
          "multipliers that were dropped cannot solve");
  StripeProblem problem = problem_;
  problem.rhs = x.cols;
  problem.rhs_tile = stripe_rhs_tile(x.cols, problem.stripe);
  const auto schedule = std::make_shared<const Schedule>(stripe_solve(problem, sweeps));
  const BlockTable& of_solve = schedule->blocks;
  const auto right = std::make_shared<FamilyMemory>(of_solve, kStripeRightFamily,
                                                    source_of_view<T>(x.data, x.ld, false));
  const auto store = store_of(of_solve, right);
  IssueOptions options;
  options.progress = run_.progress;
  options.what = "solve";
  SessionRun run;
  run.schedule = schedule;
  run.figures.n = problem.n;
  run.figures.tile = problem.stripe;
  (void)session_.run(std::move(run), *store, options);
  copy_back(of_solve, *right, x);
  return take_report();
}

template <class T>
void StripeFactor<T>::read(std::int64_t i, std::int64_t k, T* to) {
  const BlockId id{kStripeFamily, i, k};
  auto* bytes = reinterpret_cast<std::byte*>(to);
  if (files_) return files_->read(id, bytes);
  const std::byte* from = stripes_->data() + blocks().byte_offset(id);
  std::copy_n(from, blocks().bytes(id), bytes);
}

template class StripeFactor<double>;
template class StripeFactor<std::complex<double>>;

}  // namespace strata
