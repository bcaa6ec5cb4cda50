#include "lu/lu_panels.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/host_memory.hpp"
#include "base/index.hpp"
#include "kernels/backend/blas_host.hpp"
#include "kernels/dense/general_residual.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/row_exchange.hpp"
#include "scalar/complex.hpp"
#include "scalar/dispatch.hpp"
#include "schedule/machine_model.hpp"
#include "session/budget.hpp"
#include "store/joined_store.hpp"

namespace strata {
namespace {

/// The devices of the options; "auto" means the host where the first device has no kernels of LU.
std::shared_ptr<DeviceSet> devices_of(const LuOptions& options, Element precision) {
  const CholeskyPath path = options.reproducible ? CholeskyPath::planned : CholeskyPath::automatic;
  auto devices = std::make_shared<DeviceSet>(options.run, path);
  const Elements elements{precision, Element::int64, Element::fp64};
  if (options.run.devices != "auto" || has_kernel(devices->machine().devices[0], getrf, elements))
    return devices;
  RunOptions on_host = options.run;
  on_host.devices = "host";
  return std::make_shared<DeviceSet>(on_host, path);
}

}  // namespace

LuPanels::LuPanels(LuProblem problem, const LuOptions& options, std::uint64_t matrix,
                   MatrixPlace place)
    : options_(options),
      session_(devices_of(options, problem.precision), options.run),
      problem_(problem) {
  problem_.factor_identity = session_.new_identity();
  problem_.pivots_identity = session_.new_identity();
  problem_.in_storage = options.run.storage.used();
  if (problem_.given != Element::none &&
      !devices_hold_both(problem_, problem_.given, session_.machine(), place))
    problem_.given = Element::none;
  problem_.given_identity = problem_.given == Element::none ? 0 : session_.new_identity();
  if (problem_.in_storage) {
    problem_.devices = static_cast<int>(session_.machine().devices.size());
    if (options.run.storage.resume) problem_.panel = StoredPanels::panel_at(options.run.storage);
    if (options.run.storage.resume && problem_.panel > 0) {
      const bool same = options.panel == 0 || options.panel == problem_.panel;
      require(same || options.run.storage.to_read, ErrorKind::misuse, "storage",
              "{}: the panels there have {} columns: a run that goes on with them cannot have {}",
              options.run.storage.directories[0], problem_.panel, options.panel);
      options_.panel = problem_.panel;
      stored_ = std::make_unique<StoredPanels>(problem_, options.run.storage, matrix);
      problem_.done = stored_->done();
    }
    plan(false);
    if (!stored_) stored_ = std::make_unique<StoredPanels>(problem_, options.run.storage, matrix);
    return;
  }
  open_memory(nullptr);
}

LuPanels::LuPanels(LuProblem problem, const LuOptions& options, std::byte* home)
    : options_(options),
      session_(devices_of(options, problem.precision), options.run),
      problem_(problem) {
  problem_.factor_identity = session_.new_identity();
  problem_.pivots_identity = session_.new_identity();
  open_memory(home);
}

/// `home`: of the panels; null: they are given memory.
void LuPanels::open_memory(std::byte* home) {
  plan(home != nullptr);
  panels_ = home != nullptr ? std::make_shared<FamilyMemory>(blocks(), kPanelFamily, home)
                            : std::make_shared<FamilyMemory>(blocks(), kPanelFamily);
  pivots_ = std::make_shared<FamilyMemory>(blocks(), kPivotsFamily);
  statuses_ = std::make_shared<FamilyMemory>(blocks(), kPanelStatusFamily);
  if (has_given()) {
    session_.set_home([panels = panels_](const BlockTable& of_last) {
      std::vector<std::shared_ptr<FamilyMemory>> memories(at(of_last.families()));
      memories[kPanelFamily] = panels;
      return std::make_unique<MemoryStore>(of_last, std::move(memories));
    });
  } else {
    // A caller's first and last page may be somebody else's, too.
    const WholePages pages(panels_->data(), blocks().total_bytes(kPanelFamily));
    pinner_ = std::make_unique<HostPinner>(session_.devices(), pages.first,
                                           static_cast<std::int64_t>(pages.size),
                                           options_.run.host_pinning);
  }
  // Room for right-hand sides beside a factor that fits, so that it need not make way for them.
  const std::int64_t beside =
      problem_.given == Element::none ? bytes_of(problem_.precision) : 3 * bytes_of(problem_.given);
  session_.reserve_beside_adopted(kColumnsBeside * problem_.n * beside);
}

void LuPanels::plan(bool overwrites) {
  problem_.halves = options_.halves && problem_.precision == Element::fp32;
  PlannedRun planned = plan_lu(problem_, session_.machine(), options_);
  if (overwrites) planned.host_bytes -= planned.plan->schedule().blocks.total_bytes(kPanelFamily);
  if (!problem_.in_storage) check_host_memory(planned, options_.run, "lu");
  session_.adopt(std::move(planned));
}

RunReport LuPanels::take_report() {
  RunReport report = session_.take_report();
  report.tuning = session_.devices().tuning().source;
  if (stored_) report.storage = stored_->how();
  return report;
}

bool LuPanels::has_status(std::int64_t panel) const {
  return stored_ ? stored_->has_status(panel) : statuses_->written(panel);
}

PanelStatus LuPanels::status_of(std::int64_t panel) const {
  if (stored_) return stored_->status(panel);
  return reinterpret_cast<const PanelStatus*>(statuses_->data())[panel];
}

const LuInfo& LuPanels::factor(BlockSource source, double largest) {
  if (stored_) {
    factor_in_storage(std::move(source));
  } else {
    if (source) panels_->reset(std::move(source));
    std::fill_n(reinterpret_cast<PanelStatus*>(statuses_->data()), count(), PanelStatus{});
    MemoryStore store(blocks(), {panels_, pivots_, statuses_});
    run_factorization(store);
    report_.pinning_seconds = pinner_->seconds();
    report_.pinned_bytes = pinner_->pinned_bytes();
  }
  info_ = info_of(largest);
  return info_;
}

const LuInfo& LuPanels::factor(BlockSource given, const std::vector<std::int64_t>& exponents) {
  std::fill_n(reinterpret_cast<PanelStatus*>(statuses_->data()), count(), PanelStatus{});
  const auto of_exponents =
      source_of_view<std::int64_t>(exponents.data(), std::max<std::int64_t>(problem_.n, 1), false);
  const auto diagonal = std::make_shared<FamilyMemory>(blocks(), kDiagonalFamily);
  const auto largest = std::make_shared<FamilyMemory>(blocks(), kLargestFamily);
  MemoryStore store(
      blocks(),
      {panels_, pivots_, statuses_,
       FamilyMemory::without_memory(blocks(), kGivenFamily, std::move(given)),
       FamilyMemory::without_memory(blocks(), kExponentsFamily, of_exponents), diagonal, largest});
  run_factorization(store);
  const std::byte* const first = diagonal->data();
  diagonal_.assign(first, first + blocks().total_bytes(kDiagonalFamily));
  double most = 0;
  for (std::int64_t p = 0; p < count(); ++p)
    if (largest->written(p))
      most = std::max(most, reinterpret_cast<const double*>(largest->data())[p]);
  info_ = info_of(most);
  return info_;
}

void LuPanels::bring_home() {
  if (!has_given() || !session_.only_here()) return;
  const std::int64_t bytes = blocks().total_bytes(kPanelFamily);
  require(bytes <= available_host_memory(), ErrorKind::memory, "lu",
          "a factor of {} does not fit into host memory, of which {} are free", format_bytes(bytes),
          format_bytes(available_host_memory()));
  session_.fetch();
}

void LuPanels::factor_in_storage(BlockSource source) {
  // More is written where panels leave host memory before they are factored.
  const std::int64_t written = session_.adopted().plan->totals().traffic.storage_write_bytes;
  JoinedStore store =
      stored_->factorization(blocks(), std::move(source), written > stored_->bytes_to_write());
  run_factorization(store);
  stored_->flush();
}

void LuPanels::run_factorization(BlockStore& store) {
  IssueOptions options;
  options.progress = options_.run.progress;
  options.what = "factor";
  options.watched = kPanelStatusFamily;
  options.watch = [&](BlockId id) { return status_of(id.col()).not_finite >= 0; };
  SessionRun factorization;
  factorization.schedule = session_.adopted().plan->shared_schedule();
  factorization.homes = session_.adopted().plan->options().homes;
  (void)session_.run(std::move(factorization), store, options);
  report_ = take_report();
}

LuInfo LuPanels::info_of(double largest) {
  LuInfo info;
  double met = largest;
  for (std::int64_t p = 0; p < count(); ++p) {
    if (!has_status(p)) break;  // behind a panel that ended the run
    const PanelStatus status = status_of(p);
    const auto column = [&](double in_panel) {
      return p * problem_.panel + static_cast<std::int64_t>(in_panel);
    };
    if (status.zero_pivot >= 0 && info.zero_pivot < 0) info.zero_pivot = column(status.zero_pivot);
    met = std::max(met, status.largest);
    if (status.not_finite < 0) continue;
    info.not_finite = column(status.not_finite);
    break;
  }
  info.ok = info.zero_pivot < 0 && info.not_finite < 0;
  info.growth = largest > 0 ? met / largest : 1;
  if (info.not_finite < 0) read_diagonal();
  if (info.not_finite < 0)
    info.determinant = dispatch_blas(problem_.precision, [&](auto type) {
      return determinant_of<typename decltype(type)::type>();
    });
  return info;
}

/// Takes a power of two out of x, so that its larger part is at least 1/2 and below 1; of 0 none.
template <class W>
int take_exponent(W& x) {
  int exponent = 0;
  (void)std::frexp(largest_part(x), &exponent);
  x = times_power(x, -exponent);
  return exponent;
}

void LuPanels::read_diagonal() {
  if (!stored_) return;
  exchanges_ = stored_->exchanges();
  diagonal_ = stored_->diagonal();
}

template <class T>
MatrixView<const T> LuPanels::lower_at_home(std::int64_t p) const {
  const BlockId id{kPanelFamily, 0, p};
  const BlockExtent x = blocks().extent(id);
  const std::int64_t rows = x.rows - x.col;
  if (stored_) {
    rows_ = stored_->triangle(true, p);
    return {reinterpret_cast<const T*>(rows_.data()), rows, x.cols, rows};
  }
  const std::byte* data = panels_->data() + blocks().byte_offset(id);
  return {reinterpret_cast<const T*>(data) + x.col, rows, x.cols, x.rows};
}

template <class T>
MatrixView<const T> LuPanels::upper_at_home(std::int64_t p) const {
  const BlockId id{kPanelFamily, 0, p};
  const BlockExtent x = blocks().extent(id);
  const std::int64_t rows = x.col + x.cols;
  if (stored_) rows_ = stored_->triangle(false, p);
  const std::byte* data = stored_ ? rows_.data() : panels_->data() + blocks().byte_offset(id);
  return {reinterpret_cast<const T*>(data), rows, x.cols, stored_ ? rows : x.rows};
}

const std::int64_t* LuPanels::exchanges_at_home(std::int64_t p) const {
  return exchanges().data() + p * problem_.panel;
}

template <class T>
std::vector<T> LuPanels::diagonal_of(std::int64_t p) const {
  const std::int64_t first = p * problem_.panel;
  if (stored_ || has_given()) {
    const T* all = reinterpret_cast<const T*>(diagonal_.data());
    return {all + first, all + std::min(first + problem_.panel, problem_.n)};
  }
  const MatrixView<const T> upper = upper_at_home<T>(p);
  std::vector<T> diagonal;
  for (std::int64_t j = 0; j < upper.cols; ++j) diagonal.push_back(upper(first + j, j));
  return diagonal;
}

template <class T>
Determinant LuPanels::determinant_of() const {
  using W = WideOf<T>;
  W product{1};
  std::int64_t exponent = 0;
  int sign = 1;
  for (std::int64_t p = 0; p < count(); ++p) {
    const std::vector<T> diagonal = diagonal_of<T>(p);
    const std::int64_t* exchanged = exchanges_at_home(p);
    for (std::int64_t j = 0; j < std::ssize(diagonal); ++j) {
      auto pivot = static_cast<W>(diagonal[at(j)]);
      exponent += take_exponent(pivot);
      product = product_of(product, pivot);
      exponent += take_exponent(product);
      if (exchanged[j] != j) sign = -sign;
    }
  }
  const double size = std::abs(product);
  if (size == 0) return {0, 0, 0, 0};
  int last = 0;
  Determinant det;
  det.mantissa = std::frexp(size, &last);
  det.exponent = exponent + last;
  det.phase = std::complex<double>(static_cast<double>(sign)) * (product / size);
  det.sign = is_complex_v<T> ? 1 : static_cast<int>(det.phase.real());
  return det;
}

std::span<std::byte> LuPanels::bytes_for_writing() {
  return {panels_->data(), static_cast<std::size_t>(blocks().total_bytes(kPanelFamily))};
}

std::span<std::int64_t> LuPanels::exchanges_for_writing() {
  return {reinterpret_cast<std::int64_t*>(pivots_->data()), at(problem_.n)};
}

std::span<const std::byte> LuPanels::bytes() const {
  return {panels_->data(), static_cast<std::size_t>(blocks().total_bytes(kPanelFamily))};
}

std::span<const std::int64_t> LuPanels::exchanges() const {
  if (stored_) return exchanges_;
  return {reinterpret_cast<const std::int64_t*>(pivots_->data()), at(problem_.n)};
}

void LuPanels::adopt_stored(const LuInfo& info) {
  require(found() == count(), ErrorKind::storage, "storage",
          "{}: {} of {} panels are factored: go on with 'factor --resume'",
          options_.run.storage.directories[0], found(), count());
  read_diagonal();
  info_ = info;
  report_.n = problem_.n;
  report_.tile = problem_.panel;
  report_.host_bytes = session_.adopted().host_bytes;
}

void LuPanels::adopt(const LuInfo& info) {
  for (std::int64_t p = 0; p < count(); ++p) {
    panels_->mark_written(p);
    pivots_->mark_written(p);
  }
  info_ = info;
  report_.n = problem_.n;
  report_.tile = problem_.panel;
  report_.host_bytes = session_.adopted().host_bytes;
}

void LuPanels::check_usable(Element element, std::int64_t rows) const {
  require(info_.not_finite < 0, ErrorKind::misuse, "lu",
          "there is no factor to solve with: column {} is not finite", info_.not_finite);
  require(info_.zero_pivot < 0, ErrorKind::misuse, "lu",
          "the factor cannot solve: pivot {} is zero", info_.zero_pivot);
  require(element == problem_.precision, ErrorKind::misuse, "lu",
          "a factor in {} cannot solve in {}", to_string(problem_.precision), to_string(element));
  require(rows == problem_.n, ErrorKind::misuse, "lu",
          "a right-hand side of {} rows does not fit a factor of order {}", rows, problem_.n);
}

template <class T>
RunReport LuPanels::solve(MatrixView<T> b, std::uint32_t variant) {
  check_usable(element_of<T>, b.rows);
  LuSolveProblem problem;
  problem.n = problem_.n;
  problem.panel = problem_.panel;
  problem.variant = variant;
  problem.precision = problem_.precision;
  problem.devices = problem_.devices;
  problem.factor_identity = problem_.factor_identity;
  problem.pivots_identity = problem_.pivots_identity;
  problem.given = problem_.given;
  problem.given_identity = problem_.given_identity;
  problem.in_storage = problem_.in_storage;
  problem = with_right_sides(problem, b.cols, session_.machine());
  SessionRun wanted;
  wanted.schedule = std::make_shared<const Schedule>(lu_solve(problem));
  const BlockTable& of_solve = wanted.schedule->blocks;
  const PlannedRun& factor = session_.adopted();
  wanted.figures = {.n = factor.n,
                    .tile = factor.tile,
                    .floor_bytes = floor_of_solve(of_solve),
                    .host_bytes = factor.host_bytes,
                    .in_core = factor.in_core};
  wanted.homes.families.assign(at(of_solve.families()),
                               {.pinning = HostPinning::never, .from_source = true});
  wanted.homes.families[kPanelFamily] = {.pinning = options_.run.host_pinning,
                                         .from_source = false,
                                         .pinned_bytes = pinner_ ? pinner_->pinned_bytes() : 0};
  auto right_sides = std::make_shared<FamilyMemory>(of_solve, kRightSideFamily,
                                                    source_of_view<T>(b.data, b.ld, false));
  std::vector<std::shared_ptr<FamilyMemory>> memories{panels_, pivots_, std::move(right_sides)};
  memories.resize(at(of_solve.families()));
  MemoryStore memory(of_solve, std::move(memories));
  JoinedStore store = stored_ ? stored_->solve(of_solve, memory)
                              : JoinedStore(of_solve, {{&memory, kPanelFamily},
                                                       {&memory, kPivotsFamily},
                                                       {&memory, kRightSideFamily},
                                                       {&memory, kGivenFamily}});
  IssueOptions options;
  options.what = "solve";
  options.progress = options_.run.progress;
  const std::shared_ptr<const Schedule> schedule = wanted.schedule;  // which has the blocks below
  (void)session_.run(std::move(wanted), store, options);
  for (std::int64_t c = 0; c < of_solve.block_cols(kRightSideFamily) && b.rows > 0; ++c) {
    const BlockExtent x = of_solve.extent({kRightSideFamily, 0, c});
    const auto* from = reinterpret_cast<const T*>(store.lend_for_writing({kRightSideFamily, 0, c}));
    for (std::int64_t j = 0; j < x.cols; ++j)
      std::copy_n(from + j * x.rows, x.rows, b.column(x.col + j));
  }
  return take_report();
}

/// As lu_update and lu_back (src/kernels/dense) have it, a panel's diagonal block widened as a
/// whole.
template <class T>
void LuPanels::solve_wide(MatrixView<WideOf<T>> b, bool adjoint) const {
  using W = WideOf<T>;
  check_usable(element_of<T>, b.rows);
  const std::int64_t count = this->count();
  const CBLAS_TRANSPOSE op = adjoint ? blas::kAdjoint<W> : CblasNoTrans;
  std::vector<W> wide;
  for (std::int64_t s = 0; s < 2 * count && b.cols > 0; ++s) {
    const std::int64_t p = s < count ? s : 2 * count - 1 - s;
    const bool lower = (s < count) != adjoint;
    const MatrixView<const T> rows = lower ? lower_at_home<T>(p) : upper_at_home<T>(p);
    const std::int64_t first = p * problem_.panel;
    const std::int64_t width = rows.cols;
    const std::int64_t below = problem_.n - first - width;
    const std::int64_t diagonal_row = lower ? 0 : first;
    const MatrixView<W> here = b.block(first, 0, width, b.cols);
    const MatrixView<W> beside =
        lower ? b.block(first + width, 0, below, b.cols) : b.block(0, 0, first, b.cols);
    const MatrixView<const T> of_beside =
        lower ? rows.block(width, 0, below, width) : rows.block(0, 0, first, width);
    wide.clear();
    for (std::int64_t j = 0; j < width; ++j)
      std::copy_n(rows.column(j) + diagonal_row, width, std::back_inserter(wide));
    const MatrixView<const W> diagonal{wide.data(), width, width, width};
    const auto solve_here = [&] {
      blas::solve_triangle<W>(lower ? CblasLower : CblasUpper, op, lower ? CblasUnit : CblasNonUnit,
                              diagonal, here);
    };
    const MatrixView<W> exchanged = b.block(first, 0, problem_.n - first, b.cols);
    if (adjoint) {
      general_residual<T>(of_beside, true, beside, here);
      solve_here();
      if (lower) exchange_rows_back(exchanged, exchanges_at_home(p), width);
    } else {
      if (lower) exchange_rows(exchanged, exchanges_at_home(p), width);
      solve_here();
      general_residual<T>(of_beside, false, here, beside);
    }
  }
}

std::vector<std::int64_t> LuPanels::pivots() const {
  require(info_.not_finite < 0, ErrorKind::misuse, "lu",
          "there are no pivots: column {} is not finite", info_.not_finite);
  std::vector<std::int64_t> all;
  for (std::int64_t p = 0; p < blocks().block_cols(kPivotsFamily); ++p) {
    const BlockExtent x = blocks().extent({kPivotsFamily, 0, p});
    const std::int64_t* exchanged = exchanges_at_home(p);
    for (std::int64_t j = 0; j < x.cols; ++j) all.push_back(x.col + exchanged[j] + 1);
  }
  return all;
}

template <class T>
void LuPanels::copy_factors(MatrixView<T> out) const {
  const std::vector<std::int64_t> exchanges = pivots();
  require(element_of<T> == problem_.precision, ErrorKind::misuse, "lu",
          "a factor in {} cannot be copied as {}", to_string(problem_.precision),
          to_string(element_of<T>));
  require(out.rows == problem_.n && out.cols == problem_.n, ErrorKind::misuse, "lu",
          "a factor of order {} does not fit into {} by {}", problem_.n, out.rows, out.cols);
  require(stored_ || out.data == nullptr ||
              static_cast<void*>(out.data) != static_cast<void*>(panels_->data()),
          ErrorKind::misuse, "lu", "a factor cannot be copied to where it lies itself");
  for (std::int64_t p = 0; p < count(); ++p) {
    const std::int64_t first = p * problem_.panel;
    const MatrixView<const T> upper = upper_at_home<T>(p);
    for (std::int64_t j = 0; j < upper.cols; ++j)
      std::copy_n(upper.column(j), upper.rows, out.column(first + j));
    const MatrixView<const T> lower = lower_at_home<T>(p);
    for (std::int64_t j = 0; j < lower.cols; ++j) {
      T* column = out.column(first + j);
      std::copy_n(lower.column(j), lower.rows, column + first);
      // What later panels exchanged.
      for (std::int64_t i = first + lower.cols; i < problem_.n; ++i)
        std::swap(column[i], column[exchanges[at(i)] - 1]);
    }
  }
}

template RunReport LuPanels::solve(MatrixView<double>, std::uint32_t);
template RunReport LuPanels::solve(MatrixView<float>, std::uint32_t);
template RunReport LuPanels::solve(MatrixView<std::complex<double>>, std::uint32_t);
template RunReport LuPanels::solve(MatrixView<std::complex<float>>, std::uint32_t);
template void LuPanels::solve_wide<double>(MatrixView<double>, bool) const;
template void LuPanels::solve_wide<float>(MatrixView<double>, bool) const;
template void LuPanels::solve_wide<std::complex<double>>(MatrixView<std::complex<double>>,
                                                         bool) const;
template void LuPanels::solve_wide<std::complex<float>>(MatrixView<std::complex<double>>,
                                                        bool) const;
template void LuPanels::copy_factors(MatrixView<double>) const;
template void LuPanels::copy_factors(MatrixView<float>) const;
template void LuPanels::copy_factors(MatrixView<std::complex<double>>) const;
template void LuPanels::copy_factors(MatrixView<std::complex<float>>) const;

}  // namespace strata
