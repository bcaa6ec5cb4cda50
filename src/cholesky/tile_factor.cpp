#include "cholesky/tile_factor.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "base/check.hpp"
#include "base/work_crew.hpp"
#include "cholesky/mixed_tiles.hpp"
#include "device/device_host.hpp"
#include "kernels/covariance/covariance_times.hpp"
#include "kernels/dense/convert.hpp"
#include "kernels/dense/formats_host.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/tile_inverse.hpp"
#include "run/numa.hpp"
#include "scalar/dispatch.hpp"
#include "schedule/row_owners.hpp"
#include "session/budget.hpp"
#include "store/joined_store.hpp"

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

/// The same of a product, which subtracts.
void unpack_negated(MemoryStore& store, int family, MatrixView<double> out) {
  unpack(store, family, out);
  for (std::int64_t j = 0; j < out.cols; ++j)
    std::transform(out.column(j), out.column(j) + out.rows, out.column(j), std::negate<>());
}

/// A family that is read from columns of a caller's.
std::shared_ptr<FamilyMemory> memory_of(const BlockTable& blocks, int family, const double* data,
                                        std::int64_t ld) {
  const std::int64_t stride = std::max<std::int64_t>(ld, 1);
  return std::make_shared<FamilyMemory>(blocks, family, source_of_view(data, stride, false));
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

TileFactor::TileFactor(CholeskyProblem problem, const CholeskyOptions& options,
                       const StoredMatrix& matrix)
    : TileFactor(problem, options, std::make_shared<DeviceSet>(options.run, options.path), matrix) {
}

TileFactor::TileFactor(CholeskyProblem problem, const CholeskyOptions& options,
                       std::shared_ptr<DeviceSet> devices, const StoredMatrix& matrix)
    : options_(options), session_(std::move(devices), options.run), problem_(problem) {
  problem_.factor_identity = session_.new_identity();
  problem_.points_identity = session_.new_identity();
  if (options.run.storage.used()) rest_in_storage(matrix);
  PlannedRun planned = plan_path(problem_, session_.machine(), options_);
  if (!problem_.formats.in_storage)
    check_host_memory(planned, options.run, "cholesky", "", kOtherwise);
  session_.adopt(std::move(planned));
  const BlockTable& blocks = this->blocks();
  if (!problem_.formats.in_storage)
    tiles_ = std::make_shared<FamilyMemory>(blocks, kMatrixFamily);
  else if (stored_ == nullptr)
    stored_ = std::make_unique<StoredTiles>(problem_, options.run.storage, matrix);
  statuses_ = std::make_shared<FamilyMemory>(blocks, kStatusFamily);
  if (problem_.formats.map != nullptr) {
    for (int f = mixed::kSums; f < blocks.families(); ++f)
      mixed_.push_back(std::make_shared<FamilyMemory>(blocks, f));
    const PrecisionMap& map = *problem_.formats.map;
    scales_ = {map.fp16_exponent(), map.fp8_exponent(), map.inverse_exponent(), map.sum_exponent(),
               longest_sum(map.asked().accuracy)};
  }
  homes_ = std::make_shared<std::map<std::uint64_t, std::shared_ptr<FamilyMemory>>>();
  keep(problem_.factor_identity, tiles_);
  session_.set_home([homes = homes_, stored = stored_.get(),
                     tiles = problem_.factor_identity](const BlockTable& of) {
    std::vector<std::shared_ptr<FamilyMemory>> families;
    for (int f = 0; f < of.families(); ++f) {
      const auto found = homes->find(of.family(f).identity);
      families.push_back(found == homes->end() ? nullptr : found->second);
    }
    auto memory = std::make_unique<MemoryStore>(of, std::move(families));
    std::vector<JoinedStore::Part> parts;
    for (int f = 0; f < of.families(); ++f) {
      if (stored != nullptr && of.family(f).identity == tiles)
        parts.push_back({&stored->store(), kMatrixFamily});
      else
        parts.push_back({memory.get(), f});
    }
    return std::make_unique<JoinedStore>(of, std::move(parts), std::move(memory));
  });
  if (tiles_ != nullptr) {
    place_near(session_.devices(), problem_, blocks, *tiles_);
    pinner_ =
        std::make_unique<HostPinner>(session_.devices(), tiles_->data(),
                                     blocks.total_bytes(kMatrixFamily), options.run.host_pinning);
  }
  reserve_arenas(0);
}

/// What a directory has already decides the tile and what is left to do.
void TileFactor::rest_in_storage(const StoredMatrix& matrix) {
  problem_.formats.in_storage = true;
  problem_.durable = matrix.hash != 0;
  const StorageChoice& storage = options_.run.storage;
  const std::int64_t tile =
      problem_.durable && storage.resume ? StoredTiles::at(storage).problem.tile : 0;
  if (tile == 0) return;
  const bool same = options_.tile == 0 || options_.tile == tile;
  require(same || storage.to_read, ErrorKind::misuse, "storage",
          "{}: the tiles there have the order {}: a run that goes on with them cannot have {}",
          storage.directories[0], tile, options_.tile);
  options_.tile = problem_.tile = tile;
  stored_ = std::make_unique<StoredTiles>(problem_, storage, matrix);
  problem_.done = stored_->done();
}

/// Room for right-hand sides beside a factor that fits, so that it need not make way for them.
void TileFactor::reserve_arenas(std::int64_t bytes) {
  const std::int64_t size = bytes_of(problem_.precision);
  const std::int64_t tile = std::min(problem_.tile, problem_.n);
  session_.reserve_beside_adopted(
      std::max({bytes, kRhsReserved * problem_.n * size, 3 * tile * tile * size,
                blocks().total_bytes(kMatrixFamily) / 8}));
}

const FactorInfo& TileFactor::factor_stored(BlockSource source) {
  if (stored_ != nullptr)
    stored_->set_source(std::move(source));
  else
    tiles_->reset(std::move(source));
  const FactorInfo& info = factor_loaded();
  if (stored_ != nullptr) {
    stored_->flush();
    stored_->set_source(nullptr);
  }
  return info;
}

void TileFactor::load(BlockSource source, int threads) {
  require(tiles_ != nullptr, ErrorKind::misuse, "cholesky", "a matrix in storage is not loaded");
  tiles_->reset(std::move(source));
  MemoryStore store(blocks(), {tiles_, statuses_});
  store.materialize(kMatrixFamily, threads);
}

const FactorInfo& TileFactor::factor_loaded() {
  MemoryStore store(blocks(), {tiles_, statuses_});
  return factor(store, {});
}

const FactorInfo& TileFactor::factor_covariance(const double* points,
                                                const CovarianceParameters& parameters) {
  if (tiles_ != nullptr) tiles_->reset(nullptr);
  const BlockTable& blocks = this->blocks();
  std::vector<std::shared_ptr<FamilyMemory>> families{
      tiles_, statuses_, memory_of(blocks, kPointsFamily, points, problem_.n)};
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
  if (stored_ != nullptr) stored_->read_statuses(*statuses_);
  const PotrfValues potrf_values{[this](Element precision, std::int64_t n) {
    return potrf_options(
        with_tuning(options_.blocking, session_.devices().tuning().blocking_for(precision, n)));
  }};
  values.push_back({potrf.name, &potrf_values});
  IssueOptions options;
  options.values = std::move(values);
  options.progress = options_.run.progress;
  options.what = "factor";
  options.watched = kStatusFamily;
  options.watch = [&](BlockId id) { return status_of(*statuses_, id.col()).bad_column >= 0; };
  SessionRun factorization;
  factorization.schedule = session_.adopted().plan->shared_schedule();
  factorization.homes = homes_beside(home_of_tiles());
  with_tiles(store,
             [&](BlockStore& all) { (void)session_.run(std::move(factorization), all, options); });
  info_ = info_of(*statuses_, count, problem_.tile);
  report_ = take_report();
  if (pinner_ != nullptr) {
    report_.pinning_seconds = pinner_->seconds();
    report_.pinned_bytes = pinner_->pinned_bytes();
  }
  factored_ = info_.ok;
  return info_;
}

/// Runs with a store of these families whose tiles are where they rest.
template <class Run>
void TileFactor::with_tiles(MemoryStore& memory, const Run& run) {
  if (stored_ == nullptr) return run(memory);
  const BlockTable& blocks = memory.blocks();
  StoredTiles::Statuses statuses(*stored_, *statuses_);
  std::vector<JoinedStore::Part> parts{{&stored_->store(), kMatrixFamily}};
  for (int f = 1; f < blocks.families(); ++f) {
    const bool durable = blocks.family(f).in_storage;
    parts.push_back({durable ? static_cast<BlockStore*>(&statuses) : &memory, f});
  }
  JoinedStore joined(blocks, std::move(parts));
  run(joined);
}

void TileFactor::adopt_stored() {
  require(stored_ != nullptr && stored_->tiles_done() == stored_->tiles(), ErrorKind::storage,
          "cholesky", "{}: {} of {} tiles are factored: go on with the matrix, and resume",
          options_.run.storage.directories.at(0), stored_tiles_done(),
          stored_ == nullptr ? 0 : stored_->tiles());
  stored_->read_statuses(*statuses_);
  info_ = info_of(*statuses_, blocks().block_rows(kMatrixFamily), problem_.tile);
  const PlannedRun& planned = session_.adopted();
  report_.n = planned.n;
  report_.tile = planned.tile;
  report_.host_bytes = planned.host_bytes;
  report_.storage = stored_->how();
  factored_ = info_.ok;
}

StoredParts TileFactor::stored_count() const {
  if (stored_ == nullptr) return {};
  return {stored_->tiles(), stored_->tiles_done(), stored_->how()};
}

FamilyHome TileFactor::home_of_tiles() const {
  if (tiles_ == nullptr) return {.pinning = HostPinning::never, .from_source = true};
  const bool loaded = problem_.n > 0 && tiles_->written(0);
  return {.pinning = options_.run.host_pinning,
          .from_source = problem_.point_dimensions == 0 && !loaded,
          .pinned_bytes = pinner_->pinned_bytes()};
}

void TileFactor::let_go() {
  factored_ = false;
  session_.devices().forget(problem_.factor_identity);
}

/// Not there: never made, let go of, or lost with a run that failed.
void TileFactor::check_there() const {
  require(factored_ || !info_.ok, ErrorKind::misuse, "cholesky",
          "there is no factor: the matrix was not factored, or a run that failed took along what "
          "was only on the devices");
}

void TileFactor::bring_home() {
  check_there();
  run_keeping_factor([&] { session_.fetch(); });
  (void)session_.take_report();
}

SolveProblem TileFactor::solve_problem(std::int64_t rhs) const {
  SolveProblem problem;
  describe_factor(problem_, problem);
  problem.rhs = rhs;
  problem.rhs_tile = choose_rhs_tile(rhs, problem_, session_.machine());
  problem.products_at_once = choose_products_at_once(problem, session_.machine());
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
template <class Run>
void TileFactor::run_keeping_factor(const Run& run) {
  const bool was_factored = factored_;
  if (session_.only_here()) factored_ = false;
  run();
  factored_ = was_factored;
}

void TileFactor::run_use(std::int64_t floor_bytes, std::shared_ptr<const Schedule> schedule,
                         MemoryStore& store, const IssueOptions& options,
                         std::shared_ptr<const Schedule> narrower) {
  const PlannedRun& factor = session_.adopted();
  RunFigures figures{.n = factor.n,
                     .tile = factor.tile,
                     .floor_bytes = floor_bytes,
                     .host_bytes = factor.host_bytes,
                     .in_core = factor.in_core};
  const HomeModel home_model = homes_beside(home_of_tiles(), schedule->blocks.families());
  run_keeping_factor([&] {
    with_tiles(store, [&](BlockStore& all) {
      (void)session_.run({std::move(schedule), std::move(figures), home_model, std::move(narrower)},
                         all, options);
    });
  });
}

RunReport TileFactor::take_report() {
  RunReport report = session_.take_report();
  report.tuning = session_.devices().tuning().source;
  if (stored_ != nullptr) report.storage = stored_->how();
  return report;
}

template <class T>
RunReport TileFactor::sweep(Sweep direction, MatrixView<T> b) {
  check_usable(element_of<T>, b.rows);
  const SolveProblem problem = solve_problem(b.cols);
  auto schedule = std::make_shared<const Schedule>(triangular_solve(problem, direction));
  SolveProblem left_looking = problem;
  left_looking.products_at_once = 0;
  auto narrower = problem.products_at_once == 0
                      ? nullptr
                      : std::make_shared<const Schedule>(triangular_solve(left_looking, direction));
  const BlockTable& blocks = schedule->blocks;
  auto solution = std::make_shared<FamilyMemory>(blocks, kSolutionFamily,
                                                 source_of_view<T>(b.data, b.ld, false));
  MemoryStore store(blocks, {tiles_, solution});
  IssueOptions options;
  options.values = {{gemm.name, &scales_}};
  options.what = "solve";
  options.progress = options_.run.progress;
  run_use(floor_of(problem, blocks), schedule, store, options, std::move(narrower));
  unpack(store, kSolutionFamily, b);
  return take_report();
}

TargetChunks TileFactor::target_chunks(std::int64_t targets, std::int64_t columns,
                                       std::int64_t chunk) const {
  return choose_target_chunks(whitened_problem(targets, columns), session_.machine(), chunk);
}

void TileFactor::reserve_for_targets(std::int64_t targets, std::int64_t columns) {
  if (factored_) bring_home();  // memory that grows loses what is there
  reserve_arenas(target_chunks(targets, columns, 0).device_bytes);
}

RunReport TileFactor::sum_whitened(const TargetChunk& chunk, const ProgressCallback& progress) {
  check_usable(Element::fp64, problem_.n);
  WhitenedProblem problem = whitened_problem(chunk.products.rows, chunk.products.cols);
  problem.target_tile = chunk.tile;
  auto schedule = std::make_shared<const Schedule>(whitened_sums(problem));
  const BlockTable& blocks = schedule->blocks;
  if (whitened_ == nullptr || !(whitened_problem_ == problem)) {
    whitened_ = std::make_shared<FamilyMemory>(blocks, whitened::kWhitened);
    whitened_problem_ = problem;
  }
  whitened_->reset(nullptr);
  const auto view = [&](int family, const double* data, std::int64_t rows) {
    return memory_of(blocks, family, data, rows);
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
  IssueOptions options;
  options.values = {{covariance.name, chunk.parameters}, {gemm.name, &scales_}};
  options.what = "predict";
  options.progress = progress;
  run_use(floor_of(problem, blocks), schedule, store, options);
  unpack_negated(store, whitened::kProducts, chunk.products);
  const std::int64_t targets = problem.targets;
  unpack(store, whitened::kSquares, MatrixView<double>{chunk.squares, targets, 1, targets});
  return take_report();
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
  problem = choose_product_tiles(problem, session_.machine());
  const bool as_factored =
      problem_.precision == Element::fp64 && problem.tile == std::min(problem_.tile, problem_.n);
  problem.points_identity = as_factored ? problem_.points_identity : 0;
  return problem;
}

void TileFactor::multiply_columns(const ProductProblem& problem, const CovarianceTimes& operands) {
  auto schedule = std::make_shared<const Schedule>(covariance_product(problem));
  const BlockTable& blocks = schedule->blocks;
  CovarianceParameters cross = *operands.parameters;
  cross.same_points = false;  // the nugget is in what Y begins with
  const MatrixView<const double> v = operands.v;
  const auto minus_nugget = [&](const BlockExtent& x, std::byte* to) {
    auto* out = reinterpret_cast<double*>(to);
    for (std::int64_t j = 0; j < x.cols; ++j) {
      const double* from = v.column(x.col + j) + x.row;
      std::transform(from, from + x.rows, out + j * x.rows,
                     [&](double element) { return -cross.nugget * element; });
    }
  };
  MemoryStore store(blocks,
                    {tiles_, memory_of(blocks, product::kRowPoints, operands.points, problem.n),
                     memory_of(blocks, product::kColumnPoints, operands.points, problem.n),
                     memory_of(blocks, product::kRight, v.data, v.ld),
                     std::make_shared<FamilyMemory>(blocks, product::kProduct, minus_nugget)});
  IssueOptions options;
  options.values = {{covariance_times.name, &cross}};
  options.what = "multiply";
  options.progress = options_.run.progress;
  run_use(floor_of(problem, blocks), schedule, store, options);
  unpack_negated(store, product::kProduct, operands.y);
}

RunReport TileFactor::multiply_covariance(const CovarianceTimes& operands) {
  const auto& [points, parameters, v, y] = operands;
  require(v.rows == problem_.n && y.rows == problem_.n && v.cols == y.cols, ErrorKind::misuse,
          "cholesky", "{} by {} and {} by {} do not fit a covariance of {} points", v.rows, v.cols,
          y.rows, y.cols, problem_.n);
  constexpr std::int64_t kColumnsMax = 256;  // generation is the lesser part
  const ProductProblem widest = product_problem(std::min(v.cols, kColumnsMax));
  const std::int64_t most = std::max<std::int64_t>(widest.columns, 1);
  for (std::int64_t first = 0; first == 0 || first < v.cols; first += most) {
    ProductProblem problem = widest;
    problem.columns = std::min(most, v.cols - first);
    multiply_columns(problem, {points, parameters, v.block(0, first, v.rows, problem.columns),
                               y.block(0, first, y.rows, problem.columns)});
  }
  return take_report();
}

template RunReport TileFactor::sweep(Sweep, MatrixView<double>);
template RunReport TileFactor::sweep(Sweep, MatrixView<float>);
template RunReport TileFactor::sweep(Sweep, MatrixView<std::complex<double>>);
template RunReport TileFactor::sweep(Sweep, MatrixView<std::complex<float>>);

}  // namespace strata
