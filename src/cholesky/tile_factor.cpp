#include "cholesky/tile_factor.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "base/check.hpp"
#include "base/work_crew.hpp"
#include "cholesky/mixed_tiles.hpp"
#include "cholesky/row_owners.hpp"
#include "device/device_host.hpp"
#include "kernels/convert.hpp"
#include "kernels/covariance_times.hpp"
#include "kernels/formats_host.hpp"
#include "kernels/gemm.hpp"
#include "kernels/syrk.hpp"
#include "kernels/tile_inverse.hpp"
#include "run/numa.hpp"
#include "scalar/dispatch.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

/// Columns of right-hand sides for which devices keep room beside a factor.
constexpr std::int64_t kRhsReserved = 256;

PivotStatus status_of(const FamilyMemory& statuses, std::int64_t k) {
  return reinterpret_cast<const PivotStatus*>(statuses.data())[k];
}

/// From the statuses of the diagonal tiles; those after a failure were perhaps never written.
FactorInfo info_of(const FamilyMemory& statuses, std::int64_t block_rows, std::int64_t tile) {
  FactorInfo info;
  for (std::int64_t k = 0; k < block_rows; ++k) {
    const PivotStatus pivot = status_of(statuses, k);
    if (pivot.bad_column >= 0) {
      info.ok = false;
      info.first_bad_pivot = k * tile + static_cast<std::int64_t>(pivot.bad_column);
      info.bad_pivot = pivot.bad_pivot;
      info.log_determinant = std::numeric_limits<double>::quiet_NaN();
      return info;
    }
    info.log_determinant += pivot.log_determinant;
  }
  return info;
}

/// Copies packed blocks of a rectangle back into a column-major matrix.
template <class T>
void unpack(MemoryStore& store, int family, MatrixView<T> out) {
  const BlockTable& blocks = store.blocks();
  for (std::int64_t c = 0; c < blocks.block_cols(family); ++c) {
    for (std::int64_t r = 0; r < blocks.block_rows(family); ++r) {
      const BlockExtent x = blocks.extent({family, r, c});
      const auto* from = reinterpret_cast<const T*>(store.lend_for_writing({family, r, c}));
      for (std::int64_t j = 0; j < x.cols; ++j) {
        std::copy_n(from + j * x.rows, x.rows, out.column(x.col + j) + x.row);
      }
    }
  }
}

/// The pages of a tile, which are not there yet, on the node of the device that owns its row.
void place_near(const DeviceSet& devices, const CholeskyProblem& problem, const BlockTable& blocks,
                FamilyMemory& memory) {
  const std::int64_t rows = blocks.block_rows(kMatrixFamily);
  const RowOwners owners(rows, problem.devices, problem.rates);
  std::vector<int> nodes;
  for (int d = 0; d < problem.devices; ++d) nodes.push_back(devices.node(d));
  std::vector<int> node_of_row;
  for (std::int64_t m = 0; m < rows; ++m)
    node_of_row.push_back(nodes[static_cast<std::size_t>(owners[m])]);
  for (const NumaPart& part :
       numa_parts(blocks, kMatrixFamily, node_of_row, ::sysconf(_SC_PAGESIZE))) {
    (void)NumaTopology::machine().place(memory.data() + part.offset, part.bytes, part.node);
  }
}

}  // namespace

TileFactor::TileFactor(CholeskyProblem problem, const Options& options)
    : TileFactor(problem, options, std::make_shared<DeviceSet>(options)) {}

TileFactor::TileFactor(CholeskyProblem problem, const Options& options,
                       std::shared_ptr<DeviceSet> devices)
    : options_(options), devices_(std::move(devices)), problem_(problem) {
  problem_.factor_identity = new_identity();
  problem_.points_identity = new_identity();
  planned_ = plan_path(problem_, devices_->machine(), options);
  planned_.let_go_of_trace();
  check_host_memory(planned_, options, "cholesky");
  const BlockTable& blocks = planned_.plan->schedule().blocks;
  tiles_ = std::make_shared<FamilyMemory>(blocks, kMatrixFamily);
  statuses_ = std::make_shared<FamilyMemory>(blocks, kStatusFamily);
  if (problem_.formats.map != nullptr) {
    for (int f = mixed::kSums; f < blocks.families(); ++f)
      mixed_.push_back(std::make_shared<FamilyMemory>(blocks, f));
    const PrecisionMap& map = *problem_.formats.map;
    scales_ = {map.fp16_exponent(), map.fp8_exponent(), map.inverse_exponent(), map.sum_exponent(),
               longest_sum(map.asked().accuracy)};
  }
  place_near(*devices_, problem_, blocks, *tiles_);
  pinner_ = std::make_unique<HostPinner>(*devices_, tiles_->data(),
                                         blocks.total_bytes(kMatrixFamily), options.host_pinning);
  reserve_arenas(0);
}

/// Room for right-hand sides beside a factor that fits, so that it need not make way for them.
void TileFactor::reserve_arenas(std::int64_t bytes) {
  const std::int64_t size = bytes_of(problem_.precision);
  const std::int64_t tile = std::min(problem_.tile, problem_.n);
  const std::int64_t wanted =
      std::max({bytes, kRhsReserved * problem_.n * size, 3 * tile * tile * size,
                planned_.plan->schedule().blocks.total_bytes(kMatrixFamily) / 8});
  for (int d = 0; d < problem_.devices; ++d) {
    const auto index = static_cast<std::size_t>(d);
    const std::int64_t arena = planned_.plan->layout().devices[index].arena_bytes;
    const std::int64_t budget = planned_.plan->machine().devices[index].memory_bytes;
    (void)devices_->arena(d, std::min(budget, arena + wanted));
  }
}

const FactorInfo& TileFactor::factor_stored(BlockSource source) {
  tiles_->reset(std::move(source));  // whose blocks are packed when they are first loaded
  return factor_loaded();
}

void TileFactor::load(BlockSource source, int threads) {
  tiles_->reset(std::move(source));
  MemoryStore store(planned_.plan->schedule().blocks, {tiles_, statuses_});
  store.materialize(kMatrixFamily, threads);
}

const FactorInfo& TileFactor::factor_loaded() {
  MemoryStore store(planned_.plan->schedule().blocks, {tiles_, statuses_});
  return factor(store, {});
}

const FactorInfo& TileFactor::factor_covariance(const double* points,
                                                const CovarianceParameters& parameters) {
  tiles_->reset(nullptr);
  const BlockTable& blocks = planned_.plan->schedule().blocks;
  auto coordinates = std::make_shared<FamilyMemory>(
      blocks, kPointsFamily, source_of_view(points, std::max<std::int64_t>(problem_.n, 1), false));
  std::vector<std::shared_ptr<FamilyMemory>> families{tiles_, statuses_, coordinates};
  for (const auto& memory : mixed_) {
    memory->reset(nullptr);
    families.push_back(memory);
  }
  MemoryStore store(blocks, std::move(families));
  return factor(store, {{covariance.name, &parameters},
                        {gemm.name, &scales_},
                        {syrk.name, &scales_},
                        {convert.name, &scales_},
                        {invert_factor.name, &scales_},
                        {multiply_inverse.name, &scales_}});
}

const FactorInfo& TileFactor::factor(MemoryStore& store, std::vector<OperationValues> values) {
  let_go();  // its values are about to change
  statuses_->reset(nullptr);
  const auto count = store.blocks().block_rows(kMatrixFamily);
  std::fill_n(reinterpret_cast<PivotStatus*>(statuses_->data()), count, PivotStatus{});
  const PotrfValues potrf_values{[this](Element precision, std::int64_t n) {
    return potrf_options(
        with_tuning(options_.blocking, devices_->tuning().blocking_for(precision, n)));
  }};
  values.push_back({potrf.name, &potrf_values});
  RunOptions options;
  options.values = std::move(values);
  options.progress = options_.progress;
  options.what = "factor";
  options.watched = kStatusFamily;
  options.watch = [&](BlockId id) { return status_of(*statuses_, id.col()).bad_column >= 0; };
  const PlannedRun& planned = plan_of_factor();
  RunOutcome outcome = run(*planned.plan, *devices_, store, options);
  info_ = info_of(*statuses_, count, problem_.tile);
  report_ = make_report(planned, std::move(outcome.trace));
  report_.tuning = devices_->tuning().source;
  report_.pinning_seconds = pinner_->seconds();
  report_.pinned_bytes = pinner_->pinned_bytes();
  factored_ = info_.ok;
  return info_;
}

FamilyHome TileFactor::home_of_tiles() const {
  const bool loaded = problem_.n > 0 && tiles_->written(0);
  return {.pinning = options_.host_pinning,
          .from_source = problem_.point_dimensions == 0 && !loaded,
          .pinned_bytes = pinner_->pinned_bytes()};
}

const PlannedRun& TileFactor::plan_of_factor() {
  const Residency& now = devices_->residency();
  const FamilyHome home = home_of_tiles();
  // The home that the tiles were planned for is as empty as the devices. What is page-locked by now
  // is a matter of milliseconds; whether the matrix is there already, of a whole load.
  const auto predicts = [&](const Plan& plan) {
    return devices_->all_on_host() ||
           plan.options().homes.families.front().from_source == home.from_source;
  };
  if (now.empty() && predicts(*planned_.plan)) return planned_;
  if (continued_.plan && continued_.plan->start() == now && predicts(*continued_.plan))
    return continued_;
  const auto start = std::chrono::steady_clock::now();
  const Plan& first = *planned_.plan;
  PlanOptions options = first.options();
  options.homes = homes_beside(home);
  continued_ =
      make_planned_run(first.shared_schedule(), first.machine(), options, planned_.policy, now);
  continued_.let_go_of_trace();
  continued_.take_figures_of(planned_);
  continued_.floor_bytes = planned_.floor_bytes;
  continued_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return continued_;
}

void TileFactor::let_go() {
  factored_ = false;
  devices_->forget(problem_.factor_identity);
}

/// Not there: never made, let go of, or lost with a run that failed.
void TileFactor::check_there() const {
  require(factored_ || !info_.ok, ErrorKind::misuse, "cholesky",
          "there is no factor: the matrix was not factored, or a run that failed took along what "
          "was only on the devices");
}

void TileFactor::bring_home() {
  check_there();
  if (!devices_->residency().only_here(problem_.factor_identity)) return;
  // No task, and a family that does not stay: what is only on the devices is stored.
  Schedule schedule = triangular_solve(solve_problem(0), Sweep::forward);
  BlockTable blocks;
  BlockFamily tiles = schedule.blocks.family(kFactorFamily);
  tiles.stays = false;
  blocks.add(std::move(tiles));
  blocks.add(schedule.blocks.family(kSolutionFamily));
  if (schedule.blocks.families() > 2) blocks.add(schedule.blocks.family(2));
  schedule.blocks = std::move(blocks);
  const PlannedRun planned = make_planned_run(std::make_shared<const Schedule>(std::move(schedule)),
                                              planned_.plan->machine(), planned_.plan->options(),
                                              planned_.policy, devices_->residency());
  MemoryStore store(planned.plan->schedule().blocks, {tiles_, nullptr});
  RunOptions options;
  options.what = "fetch";
  (void)run_keeping_factor(*planned.plan, store, options);
}

const PlannedRun& TileFactor::plan_of_use(const UseProblem& problem) {
  const Residency& now = devices_->residency();
  for (KeptPlan& kept : uses_) {
    if (!(kept.problem == problem) || !(kept.planned.plan->start() == now)) continue;
    kept.planned.seconds = 0;
    return kept.planned;
  }
  constexpr std::size_t kKept = 8;  // refinement alternates between solves and products
  if (uses_.size() == kKept) uses_.pop_front();
  const Machine& machine = planned_.plan->machine();
  const Policy policy = options_.policy;
  const HomeModel homes = homes_beside(home_of_tiles());
  const auto plan_one = [&]<class Problem>(const Problem& one) {
    if constexpr (std::is_same_v<Problem, SweepProblem>)
      return plan_solve(one.solve, one.direction, machine, policy, now, homes);
    else if constexpr (std::is_same_v<Problem, WhitenedProblem>)
      return plan_whitened_sums(one, machine, policy, now, homes);
    else if constexpr (std::is_same_v<Problem, InverseProblem>)
      return plan_inverse_diagonal(one, machine, policy, now, homes);
    else
      return plan_covariance_product(one, machine, policy, now, homes);
  };
  try {
    uses_.push_back({problem, std::visit(plan_one, problem)});
  } catch (const Error& error) {
    // A plan in which tiles that are only on the devices have no place.
    if (error.kind() != ErrorKind::memory || !now.only_here(problem_.factor_identity)) throw;
    bring_home();
    uses_.push_back({problem, std::visit(plan_one, problem)});
  }
  uses_.back().planned.let_go_of_trace();
  uses_.back().planned.take_figures_of(planned_);
  return uses_.back().planned;
}

SolveProblem TileFactor::solve_problem(std::int64_t rhs) const {
  SolveProblem problem;
  describe_factor(problem_, problem);
  problem.rhs = rhs;
  problem.rhs_tile = choose_rhs_tile(rhs, problem_, devices_->machine());
  problem.products_at_once = choose_products_at_once(problem, devices_->machine());
  return problem;
}

WhitenedProblem TileFactor::whitened_problem(std::int64_t targets, std::int64_t columns) const {
  WhitenedProblem problem;
  describe_factor(problem_, problem);
  problem.targets = targets;
  problem.columns = columns;
  return problem;
}

void TileFactor::check_usable(Element element, std::int64_t rows) const {
  check_there();
  require(factored_, ErrorKind::misuse, "cholesky",
          "there is no factor to solve with: the factorization failed at pivot {}",
          info_.first_bad_pivot);
  require(element == problem_.precision, ErrorKind::misuse, "cholesky",
          "a factor in {} cannot solve in {}", to_string(problem_.precision), to_string(element));
  require(rows == problem_.n, ErrorKind::misuse, "cholesky",
          "a right-hand side of {} rows does not fit a factor of order {}", rows, problem_.n);
}

/// A run that fails leaves nothing on the devices: not the tiles either that were only there.
RunOutcome TileFactor::run_keeping_factor(const Plan& plan, MemoryStore& store,
                                          const RunOptions& options) {
  const bool at_stake = devices_->residency().only_here(problem_.factor_identity);
  const bool was_factored = factored_;
  if (at_stake) factored_ = false;
  RunOutcome outcome = run(plan, *devices_, store, options);
  factored_ = was_factored;
  return outcome;
}

RunReport TileFactor::run_use(const UseProblem& problem, MemoryStore& store,
                              const RunOptions& options) {
  const PlannedRun& planned = plan_of_use(problem);
  RunReport report = make_report(planned, run_keeping_factor(*planned.plan, store, options).trace);
  report.tuning = devices_->tuning().source;
  return report;
}

template <class T>
RunReport TileFactor::sweep(Sweep direction, MatrixView<T> b) {
  check_usable(element_of<T>, b.rows);
  const SolveProblem problem = solve_problem(b.cols);
  const BlockTable blocks = triangular_solve(problem, direction).blocks;
  auto solution = std::make_shared<FamilyMemory>(blocks, kSolutionFamily,
                                                 source_of_view<T>(b.data, b.ld, false));
  MemoryStore store(blocks, {tiles_, solution});
  RunOptions options;
  options.values = {{gemm.name, &scales_}};
  options.what = "solve";
  options.progress = options_.progress;
  RunReport report = run_use(SweepProblem{problem, direction}, store, options);
  unpack(store, kSolutionFamily, b);
  return report;
}

TargetChunks TileFactor::target_chunks(std::int64_t targets, std::int64_t columns,
                                       std::int64_t chunk) const {
  return choose_target_chunks(whitened_problem(targets, columns), planned_.plan->machine(), chunk);
}

void TileFactor::reserve_for_targets(std::int64_t targets, std::int64_t columns) {
  if (factored_) bring_home();  // memory that grows loses what is there
  reserve_arenas(target_chunks(targets, columns, 0).device_bytes);
}

RunReport TileFactor::sum_whitened(const TargetChunk& chunk, const ProgressCallback& progress) {
  check_usable(Element::fp64, problem_.n);
  WhitenedProblem problem = whitened_problem(chunk.products.rows, chunk.products.cols);
  problem.target_tile = chunk.tile;
  const BlockTable blocks = whitened_sums(problem).blocks;
  if (whitened_ == nullptr || !(whitened_problem_ == problem)) {
    whitened_ = std::make_shared<FamilyMemory>(blocks, whitened::kWhitened);
    whitened_problem_ = problem;
  }
  whitened_->reset(nullptr);
  const auto view = [&](int family, const double* data, std::int64_t rows) {
    const std::int64_t ld = std::max<std::int64_t>(rows, 1);
    return std::make_shared<FamilyMemory>(blocks, family, source_of_view(data, ld, false));
  };
  const auto zeros = [&](int family) {
    return std::make_shared<FamilyMemory>(blocks, family, [](const BlockExtent& x, std::byte* to) {
      std::fill_n(reinterpret_cast<double*>(to), x.rows * x.cols, 0.0);
    });
  };
  MemoryStore store(blocks, {tiles_, whitened_, view(whitened::kPoints, chunk.points, problem.n),
                             view(whitened::kTargets, chunk.targets, problem.targets),
                             view(whitened::kRight, chunk.right, problem.n),
                             zeros(whitened::kProducts), zeros(whitened::kSquares)});
  RunOptions options;
  options.values = {{covariance.name, chunk.parameters}, {gemm.name, &scales_}};
  options.what = "predict";
  options.progress = progress;
  RunReport report = run_use(problem, store, options);
  unpack(store, whitened::kProducts, chunk.products);
  for (std::int64_t j = 0; j < chunk.products.cols; ++j) {  // a product subtracts
    double* column = chunk.products.column(j);
    std::transform(column, column + chunk.products.rows, column, std::negate<>());
  }
  const std::int64_t targets = problem.targets;
  unpack(store, whitened::kSquares, MatrixView<double>{chunk.squares, targets, 1, targets});
  return report;
}

ProductProblem TileFactor::product_problem(std::int64_t columns) const {
  ProductProblem problem;
  problem.n = problem_.n;
  problem.columns = columns;
  problem.point_dimensions = problem_.point_dimensions;
  problem.devices = problem_.devices;
  problem.rates = problem_.rates;
  problem.factor_tile = problem_.tile;
  problem.factor_precision = problem_.precision;
  problem.factor_formats = problem_.formats;
  problem.factor_identity = problem_.factor_identity;
  problem = choose_product_tiles(problem, planned_.plan->machine());
  const bool as_factored =
      problem_.precision == Element::fp64 && problem.tile == std::min(problem_.tile, problem_.n);
  problem.points_identity = as_factored ? problem_.points_identity : 0;
  return problem;
}

RunReport TileFactor::multiply_columns(const ProductProblem& problem,
                                       const CovarianceTimes& operands) {
  const BlockTable blocks = covariance_product(problem).blocks;
  CovarianceParameters cross = *operands.parameters;
  cross.same_points = false;  // the nugget is in what Y begins with
  const auto view = [&](int family, const double* data, std::int64_t ld) {
    return std::make_shared<FamilyMemory>(blocks, family, source_of_view(data, ld, false));
  };
  const MatrixView<const double> v = operands.v;
  const auto minus_nugget = [&](const BlockExtent& x, std::byte* to) {
    auto* out = reinterpret_cast<double*>(to);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      const double* from = v.column(x.col + j) + x.row;
      std::transform(from, from + x.rows, out + j * x.rows,
                     [&](double element) { return -cross.nugget * element; });
    }
  };
  const std::int64_t ld = std::max<std::int64_t>(problem.n, 1);
  MemoryStore store(
      blocks,
      {tiles_, view(product::kRowPoints, operands.points, ld),
       view(product::kColumnPoints, operands.points, ld), view(product::kRight, v.data, v.ld),
       std::make_shared<FamilyMemory>(blocks, product::kProduct, minus_nugget)});
  RunOptions options;
  options.values = {{covariance_times.name, &cross}};
  options.what = "multiply";
  options.progress = options_.progress;
  RunReport report = run_use(problem, store, options);
  unpack(store, product::kProduct, operands.y);
  for (std::int64_t j = 0; j < operands.y.cols; ++j) {  // a product subtracts
    double* column = operands.y.column(j);
    std::transform(column, column + operands.y.rows, column, std::negate<>());
  }
  return report;
}

RunReport TileFactor::multiply_covariance(const CovarianceTimes& operands) {
  const auto& [points, parameters, v, y] = operands;
  require(v.rows == problem_.n && y.rows == problem_.n && v.cols == y.cols, ErrorKind::misuse,
          "cholesky", "{} by {} and {} by {} do not fit a covariance of {} points", v.rows, v.cols,
          y.rows, y.cols, problem_.n);
  constexpr std::int64_t kColumnsMax = 256;  // generation is the lesser part
  const ProductProblem widest = product_problem(std::min(v.cols, kColumnsMax));
  const std::int64_t most = std::max<std::int64_t>(widest.columns, 1);
  RunReport total;
  for (std::int64_t first = 0; first == 0 || first < v.cols; first += most) {
    ProductProblem problem = widest;
    problem.columns = std::min(most, v.cols - first);
    RunReport report =
        multiply_columns(problem, {points, parameters, v.block(0, first, v.rows, problem.columns),
                                   y.block(0, first, y.rows, problem.columns)});
    if (first == 0) {
      total = std::move(report);
    } else {
      accumulate(total, report);
    }
  }
  return total;
}

template RunReport TileFactor::sweep(Sweep, MatrixView<double>);
template RunReport TileFactor::sweep(Sweep, MatrixView<float>);

}  // namespace strata
