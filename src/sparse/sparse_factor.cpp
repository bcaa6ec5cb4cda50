// The public calls: see strata/sparse_factor.hpp.

#include "strata/sparse_factor.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "base/checksum_file.hpp"
#include "base/pending_path.hpp"
#include "scalar/safe_range.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "sparse/fronts/inverse_panels.hpp"
#include "sparse/ordering/analysis_file.hpp"
#include "sparse/ordering/error_places.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {

struct SparseCholesky::State {
  FrontFactor factor;
};

namespace {

constexpr FileFormat kFactorFormat{.name = "factor", .version = 8, .where = kFactorWhere};

/// Hash of the order of elimination and the rows of supernodes, which the numbers of a factor
/// belong to. A pattern alone has many of them.
std::uint64_t structure_hash(const SparseAnalysis& a) {
  std::uint64_t hash = 0;
  const auto add = [&hash](const auto& list) {
    hash = XXH3_64bits_withSeed(list.data(), list.size() * sizeof list[0], hash);
  };
  add(a.order);
  add(a.first);
  add(a.row);
  return hash;
}

/// L is there.
void require_success(const FrontFactor& factor) {
  if (factor.info().ok) return;
  require(factor.info().first_bad_pivot < 0, ErrorKind::misuse, kFactorWhere,
          "there is no factor to solve with: the factorization failed at row {}",
          factor.info().first_bad_pivot);
  fail(ErrorKind::misuse, kFactorWhere,
       "there is no factor to solve with: the last factorization was not completed");
}

/// And at home.
void require_factor(const FrontFactor& factor) {
  require_success(factor);
  factor.bring_home();
}

void require_columns(MatrixView<const double> b, std::int64_t n) {
  require(b.rows == n && b.cols >= 0 && b.ld >= std::max<std::int64_t>(b.rows, 1),
          ErrorKind::misuse, kFactorWhere,
          "{} by {} numbers with a leading dimension of {} do not fit a factor of order {}", b.rows,
          b.cols, b.ld, n);
}

/// Right-hand sides in the order of elimination and in the type of the factor. Each column is
/// multiplied by a power of two that makes its largest element about 1 where floats, which hold
/// less than doubles, or doubles near the ends of their range ask for it.
template <class T>
struct Ordered {
  std::vector<T> x;
  std::vector<int> exponent;  ///< by column
  std::int64_t rows;

  [[nodiscard]] MatrixView<T> view() {
    return {x.data(), rows, std::ssize(exponent), std::max<std::int64_t>(rows, 1)};
  }
};

/// Element k of a column is element place(k) of that of B.
template <class T, class Place>
Ordered<T> ordered(MatrixView<const double> b, const Place& place) {
  Ordered<T> result{std::vector<T>(at(b.rows * b.cols)), std::vector<int>(at(b.cols)), b.rows};
  for (std::int64_t c = 0; c < b.cols; ++c) {
    const double* from = b.column(c);
    T* to = result.x.data() + c * b.rows;
    double most = 0;
    for (std::int64_t k = 0; k < b.rows; ++k) most = std::max(most, std::abs(from[k]));
    int exponent = exponent_out_of_range(most, Element::fp64);
    if constexpr (!std::is_same_v<T, double>)
      if (most > 0 && std::isfinite(most)) exponent = std::ilogb(most);
    for (std::int64_t k = 0; k < b.rows; ++k)
      to[k] =
          static_cast<T>(exponent == 0 ? from[place(k)] : std::scalbn(from[place(k)], -exponent));
    result.exponent[at(c)] = exponent;
  }
  return result;
}

/// 2^(−exponent) times the columns.
template <class T, class Place>
void put_back(const Ordered<T>& ordered, int divided, MatrixView<double> b, const Place& place) {
  for (std::int64_t c = 0; c < b.cols; ++c) {
    const T* from = ordered.x.data() + c * b.rows;
    const int exponent = ordered.exponent[at(c)] - divided;
    double* to = b.column(c);
    for (std::int64_t k = 0; k < b.rows; ++k) {
      const auto value = static_cast<double>(from[k]);
      to[place(k)] = exponent == 0 ? value : std::scalbn(value, exponent);
    }
  }
}

enum class Half : std::uint8_t { forward, backward, both };

template <class T>
void sweep(const FrontFactor& factor, Half half, int divided, MatrixView<double> b) {
  const std::vector<std::int32_t>& order = factor.analysis().order;
  const auto as_in_a = [&](std::int64_t k) { return std::int64_t{order[at(k)]}; };
  const auto as_in_l = [](std::int64_t k) { return k; };
  Ordered<T> x = half == Half::backward ? ordered<T>(b, as_in_l) : ordered<T>(b, as_in_a);
  if (half != Half::backward) sweep_forward<T>(factor, x.view());
  if (half != Half::forward) sweep_backward<T>(factor, x.view());
  if (half == Half::forward)
    put_back(x, divided, b, as_in_l);
  else
    put_back(x, divided, b, as_in_a);
}

/// With the factor of 2^(−exponent)·A: `in_range`, X as it solves with that matrix. Half a solve is
/// in fp64 whatever the factor is in.
void sweep(const FrontFactor& factor, Half half, MatrixView<double> b, bool in_range = false) {
  require_success(factor);
  require_columns(b, std::ssize(factor.analysis().order));
  const int exponent = factor.exponent();
  const bool single = factor.element() == Element::fp32 && half == Half::both;
  if (exponent == 0 && b.rows > 0 && (single || factor.element() == Element::fp64)) {
    const bool forward = half != Half::backward;
    const bool backward = half != Half::forward;
    if (factor.solves_there()) return factor.solve_there(b, forward, backward);
    if (factor.solve_streamed(b, forward, backward)) return;
  }
  factor.bring_home();
  const int divided = in_range ? 0 : half == Half::both ? exponent : exponent / 2;
  single ? sweep<float>(factor, half, divided, b) : sweep<double>(factor, half, divided, b);
}

}  // namespace

SparseCholesky::SparseCholesky(std::unique_ptr<State> state) : state_(std::move(state)) {}
SparseCholesky::SparseCholesky(SparseCholesky&&) noexcept = default;
SparseCholesky& SparseCholesky::operator=(SparseCholesky&&) noexcept = default;
SparseCholesky::~SparseCholesky() = default;

SparseCholesky::SparseCholesky(const SparseMatrix& a, const SparseCholeskyOptions& options)
    : SparseCholesky(analyze(a, options.analysis), a, options) {}

SparseCholesky::SparseCholesky(SparseAnalysis analysis, const SparseMatrix& a,
                               const SparseCholeskyOptions& options)
    : state_(std::make_unique<State>(State{FrontFactor(std::move(analysis), options)})) {
  state_->factor.factor(a, options.shift);
}

std::int64_t SparseCholesky::n() const noexcept { return std::ssize(analysis().order); }
const SparseAnalysis& SparseCholesky::analysis() const noexcept {
  return state_->factor.analysis();
}
const FactorInfo& SparseCholesky::info() const noexcept { return state_->factor.info(); }
const RunReport& SparseCholesky::report() const noexcept { return state_->factor.report(); }
const RunReport& SparseCholesky::solves() const noexcept { return state_->factor.solves(); }
double SparseCholesky::shift() const noexcept { return state_->factor.shift(); }
int SparseCholesky::exponent() const noexcept { return state_->factor.exponent(); }
Element SparseCholesky::precision() const noexcept { return state_->factor.element(); }

const FactorInfo& SparseCholesky::refactor(const SparseMatrix& a, double shift) {
  state_->factor.factor(a, shift);
  return info();
}

const FactorInfo& SparseCholesky::refactor_values(std::span<const double> values, double shift) {
  state_->factor.factor_values(values, shift);
  return info();
}

void SparseCholesky::solve(MatrixView<double> b) const { sweep(state_->factor, Half::both, b); }
void SparseCholesky::solve_in_range(MatrixView<double> b) const {
  sweep(state_->factor, Half::both, b, true);
}
void SparseCholesky::solve_lower(MatrixView<double> b) const {
  sweep(state_->factor, Half::forward, b);
}
void SparseCholesky::solve_lower_transposed(MatrixView<double> b) const {
  sweep(state_->factor, Half::backward, b);
}

std::vector<double> SparseCholesky::inverse_diagonal() const {
  require_factor(state_->factor);
  return strata::inverse_diagonal(state_->factor);
}

SelectedInverse SparseCholesky::selected_inverse() const {
  require_factor(state_->factor);
  return strata::selected_inverse(state_->factor);
}

void SparseCholesky::for_selected_inverse(
    const std::function<void(const SelectedPanel&)>& visit) const {
  require_factor(state_->factor);
  strata::for_selected_inverse(state_->factor, visit);
}

std::int64_t SparseCholesky::selected_entries() const { return analysis().counts.stored_entries; }

namespace {

/// Those that say where panels lie, in the order in which files have them.
template <class Each>
void for_saved_sizes(FrontSizes& sizes, const Each& each) {
  for (std::int64_t* size : {&sizes.tile, &sizes.panel_order, &sizes.branch_entries, &sizes.program,
                             &sizes.range_bytes, &sizes.devices, &sizes.shares})
    each(*size);
}

}  // namespace

void SparseCholesky::save(const std::string& directory) const {
  require_factor(state_->factor);
  PendingDirectory place(directory, kFactorWhere);
  require_well_formed(analysis());
  AnalysisFile beside(analysis(), directory + "/analysis");
  ChecksumWriter writer(directory + "/factor", kFactorFormat);
  const FrontFactor& factor = state_->factor;
  writer.add(structure_hash(analysis()));
  FrontSizes sizes = factor.sizes();
  if (sizes.batch > 0) sizes.branch_entries = 1;  // the same panels
  for_saved_sizes(sizes, [&](std::int64_t& size) { writer.add(size); });
  writer.add(factor.layout().parts);
  writer.add(shift());
  writer.add(exponent());
  writer.add(info().log_determinant);
  writer.add(factor.element());
  const std::span<const std::byte> bytes = factor.bytes();
  writer.add(static_cast<std::uint64_t>(bytes.size()));
  writer.add_all(bytes);
  writer.complete();
  beside.publish();
  writer.publish();
  place.keep();
}

SparseCholesky SparseCholesky::open(const std::string& directory,
                                    const SparseCholeskyOptions& options) {
  SparseAnalysis analysis = load_analysis(directory + "/analysis");
  const std::string path = directory + "/factor";
  ChecksumReader reader(path, kFactorFormat);
  std::uint64_t structure = 0;
  reader.read(structure);
  require(structure == structure_hash(analysis), ErrorKind::input, kFactorWhere,
          "'{}' is not a factor by the analysis beside it", path);
  FrontSizes sizes;
  for_saved_sizes(sizes, [&](std::int64_t& size) { reader.read(size); });
  std::vector<std::int32_t> parts;
  reader.read(parts);
  SparseCholeskyOptions as_saved = options;
  double shift = 0;
  int exponent = 0;
  FactorInfo info;
  reader.read(shift);
  reader.read(exponent);
  reader.read(info.log_determinant);
  reader.read(as_saved.precision);
  std::uint64_t count = 0;
  reader.read(count);
  std::unique_ptr<State> state;
  try {
    state =
        std::make_unique<State>(State{FrontFactor(std::move(analysis), as_saved, sizes, parts)});
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::misuse) throw;
    fail(ErrorKind::input, kFactorWhere, "'{}' is no factor: {}", path, error.what());
  }
  state->factor.reserve();
  const std::span<std::byte> bytes = state->factor.bytes();
  require(count == bytes.size(), ErrorKind::input, kFactorWhere,
          "'{}' has {} bytes where {} belong", path, count, bytes.size());
  reader.read_all(bytes);
  reader.finish();
  state->factor.adopt(info, shift, exponent);
  return SparseCholesky(std::move(state));
}

RunReport simulate_sparse_cholesky(const SparseAnalysis& analysis, const SparseMatrix& a,
                                   const Machine& machine, const SparseCholeskyOptions& options) {
  require_same_pattern(analysis, a);
  require_devices(machine);
  require(!options.batches, ErrorKind::misuse, "plan", "level batches have no plan");
  const auto kind = sooner_alone(analysis, a, machine, options);
  return make_simulated_report(
      plan_factorization(analysis, a, kind ? only(machine, *kind) : machine, options));
}

}  // namespace strata
