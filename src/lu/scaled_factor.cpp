#include "lu/scaled_factor.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "base/checksum_file.hpp"
#include "base/index.hpp"
#include "dense/certified_solution.hpp"
#include "dense/dense_system.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/panel_status.hpp"
#include "kernels/dense/scaled_copy.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

constexpr const char* kWhere = "factor";

LuProblem problem_of(std::int64_t n, Element precision) {
  LuProblem problem;
  problem.n = n;
  problem.precision = precision;
  return problem;
}
template <class A>
LuProblem problem_of(const SlabbedMatrix<A>& a, Element precision) {
  LuProblem problem = problem_of(a.n(), precision);
  if (a.in_memory()) problem.given = element_of<A>;
  return problem;
}

LuOptions in_panels(const RunOptions& run, std::int64_t panel) {
  return {.run = run, .panel = panel};
}

/// A scale that is no number above 0 is that of a row with elements that are none.
std::vector<int> exponents_of(const std::vector<double>& scale, int beside) {
  std::vector<int> exponent;
  for (const double s : scale)
    exponent.push_back((s > 0 && std::isfinite(s) ? std::ilogb(s) : 0) - beside);
  return exponent;
}

template <class N, class A>
SavedFactor header_of(const ScaledSystem<A>& system, FactorScales scales) {
  SavedFactor header;
  header.element = element_of<N>;
  header.n = system.n();
  header.transposed = system.a().transposed();
  if (scales == FactorScales::none) {
    header.row_exponent.assign(at(header.n), -system.exponent());
    header.column_exponent.assign(at(header.n), 0);
    return header;
  }
  header.row_exponent = exponents_of(header.transposed ? system.column_scale() : system.row_scale(),
                                     system.exponent());
  header.column_exponent =
      exponents_of(header.transposed ? system.row_scale() : system.column_scale(), 0);
  return header;
}

template <class W>
void multiply_rows(const std::vector<int>& exponent, int all, DenseBlockOf<W>& v) {
  for (std::int64_t j = 0; j < v.cols(); ++j)
    for (std::int64_t i = 0; i < v.rows(); ++i)
      v.column(j)[i] = times_power(v.column(j)[i], exponent[at(i)] + all);
}

template <class W>
DenseBlockOf<W> conjugated(MatrixView<const W> v) {
  DenseBlockOf<W> out(v.rows, v.cols);
  for (std::int64_t j = 0; j < v.cols; ++j)
    for (std::int64_t i = 0; i < v.rows; ++i) out.column(j)[i] = conjugate<W>(v(i, j));
  return out;
}

}  // namespace

template <class N, class W>
template <class A>
ScaledFactor<N, W>::ScaledFactor(const ScaledSystem<A>& system, const LuOptions& options,
                                 FactorScales scales, MatrixPlace place)
    : header_(header_of<N>(system, scales)),
      known_(options.run.storage.used() ? look_at(system.a(), system.exponent(), options)
                                        : Known{}),
      place_(place),
      panels_(problem_of(system.a(), element_of<N>), options, known_.matrix, place) {
  if (std::is_same_v<N, A> && scales == FactorScales::none) {
    known_.largest = system.largest();
  } else if (!options.run.storage.used() && panels_.problem().given == Element::none) {
    known_ = look_at(system.a(), system.exponent(), options);
  }
  header_.panel = panels_.problem().panel;
  factor(system.a(), system.exponent());
}

template <class N, class W>
template <class A>
void ScaledFactor<N, W>::scale_column(const A* from, std::int64_t j, std::int64_t first,
                                      std::int64_t count, int exponent, N* to) const {
  const int* const of_rows = header_.row_exponent.data() + first;
  const int of_column = header_.column_exponent[at(j)] + exponent;
  for (std::int64_t i = 0; i < count; ++i)
    to[i] = scaled_element<N>(from[first + i], of_rows[i] + of_column);
}

template <class N, class W>
template <class A>
typename ScaledFactor<N, W>::Known ScaledFactor<N, W>::look_at(const SlabbedMatrix<A>& a,
                                                               int exponent,
                                                               const LuOptions& options) const {
  Known known;
  const bool hashes = options.run.storage.used();
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  const auto add = [&](const auto& values) {
    XXH3_64bits_update(&state, values.data(), values.size() * sizeof(values[0]));
  };
  add(std::vector<std::int64_t>{header_.n, static_cast<std::int64_t>(header_.element),
                                header_.transposed ? 1 : 0});
  add(header_.row_exponent);
  add(header_.column_exponent);
  a.for_slabs([&](std::int64_t first, MatrixView<const A> slab) {
    std::vector<double> largest(at(slab.cols));
    std::vector<std::uint64_t> hash(at(hashes ? slab.cols : 0));
    a.crew().share(slab.cols, [&](std::int64_t j) {
      if (hashes) hash[at(j)] = XXH3_64bits(slab.column(j), at(slab.rows) * sizeof(A));
      constexpr std::int64_t kPiece = 512;
      std::array<N, kPiece> scaled;
      double most = 0;
      for (std::int64_t i = 0; i < slab.rows; i += kPiece) {
        const std::int64_t count = std::min(kPiece, slab.rows - i);
        scale_column(slab.column(j), first + j, i, count, exponent, scaled.data());
        most = std::max(most, largest_of_column(scaled.data(), count));
      }
      largest[at(j)] = most;
    });
    add(hash);
    known.columns.insert(known.columns.end(), hash.begin(), hash.end());
    for (const double of_column : largest) known.largest = std::max(known.largest, of_column);
  });
  if (hashes) known.matrix = XXH3_64bits_digest(&state);
  return known;
}

template <class N, class W>
template <class A>
bool ScaledFactor<N, W>::is_as_it_was(std::int64_t j, const A* column) const {
  return known_.columns.empty() ||
         known_.columns[at(j)] == XXH3_64bits(column, at(header_.n) * sizeof(A));
}

template <class N, class W>
template <class A>
void ScaledFactor<N, W>::factor(const SlabbedMatrix<A>& a, int exponent) {
  if (panels_.problem().given != Element::none) {
    std::vector<std::int64_t> exponents(header_.row_exponent.begin(), header_.row_exponent.end());
    for (std::int64_t& e : exponents) e += exponent;
    exponents.insert(exponents.end(), header_.column_exponent.begin(),
                     header_.column_exponent.end());
    header_.info =
        panels_.factor(source_of_view<A>(a.whole().data, a.whole().ld, false), exponents);
  } else {
    header_.info = factor_loaded(a, exponent);
  }
  Determinant& det = header_.info.determinant;
  const auto sum = [](const std::vector<int>& e) {
    return std::accumulate(e.begin(), e.end(), std::int64_t{0});
  };
  if (det.sign != 0) det.exponent -= sum(header_.row_exponent) + sum(header_.column_exponent);
}

/// Panels are scaled by the host while they are loaded.
template <class N, class W>
template <class A>
LuInfo ScaledFactor<N, W>::factor_loaded(const SlabbedMatrix<A>& a, int exponent) {
  return panels_.factor(
      [&](const BlockExtent& extent, std::byte* to) {
        auto* packed = reinterpret_cast<N*>(to);
        std::atomic<std::int64_t> changed = -1;
        const auto put = [&](std::int64_t j, const A* whole_column) {
          if (!is_as_it_was(extent.col + j, whole_column)) changed = extent.col + j;
          scale_column(whole_column, extent.col + j, extent.row, extent.rows, exponent,
                       packed + j * extent.rows);
        };
        if (a.in_memory()) {
          for (std::int64_t j = 0; j < extent.cols; ++j) put(j, a.whole().column(extent.col + j));
        } else if constexpr (std::is_same_v<A, N>) {  // in place
          a.read(extent.col, extent.cols, packed);
          a.crew().share(extent.cols, [&](std::int64_t j) { put(j, packed + j * extent.rows); });
        } else {
          std::vector<A> columns(at(a.n() * extent.cols));
          a.read(extent.col, extent.cols, columns.data());
          a.crew().share(extent.cols, [&](std::int64_t j) { put(j, columns.data() + j * a.n()); });
        }
        require(changed < 0, ErrorKind::input, kWhere,
                "the matrix changed while it was factored: {} {}, counted from 0, is not what it "
                "was when it was read before",
                a.transposed() ? "row" : "column", changed.load());
      },
      known_.largest);
}

template <class N, class W>
template <class A>
std::shared_ptr<MatrixProducts<A>> ScaledFactor<N, W>::products(const ScaledSystem<A>& system,
                                                                bool same, RunReport& report) {
  const SlabbedMatrix<A>& a = system.a();
  const LuProblem& problem = panels_.problem();
  Session& session = panels_.session();
  if (!a.in_memory() || !devices_hold_both(problem, element_of<A>, session.machine(), place_))
    return nullptr;
  const bool there = same && problem.given == element_of<A>;
  if (problem.given == Element::none)  // the factor was opened, with no room beside it
    session.reserve_beside_adopted((problem.n + kColumnsBeside * 4) * problem.n *
                                   bytes_of(element_of<A>));
  const MatrixProductProblem of_products{
      .n = problem.n,
      .panel = problem.panel,
      .given = element_of<A>,
      .devices = problem.devices,
      .given_identity = there ? problem.given_identity : session.new_identity(),
      .precision = problem.precision,
      .factor_identity = problem.factor_identity,
      .pivots_identity = problem.pivots_identity};
  auto products =
      std::make_shared<MatrixOnDevices<A>>(session, a.whole(), of_products, panels_.home(), report);
  require_same_matrix<A>(*products, system.probe());
  return products;
}

template <class N, class W>
ScaledFactor<N, W>::ScaledFactor(SavedFactor header, ChecksumReader& reader,
                                 const RunOptions& options)
    : header_(std::move(header)),
      panels_(problem_of(header_.n, element_of<N>), in_panels(options, header_.panel)) {
  panels_.adopt(header_.info);
  reader.read_all(panels_.exchanges_for_writing());
  const std::span<const std::int64_t> exchanges = panels_.exchanges();
  for (std::int64_t j = 0; j < header_.n; ++j) {
    const std::int64_t below = header_.n - j / header_.panel * header_.panel;
    require(exchanges[at(j)] >= 0 && exchanges[at(j)] < below, ErrorKind::input, kWhere,
            "'{}' is no factor: column {} exchanges row {}", reader.path(), j, exchanges[at(j)]);
  }
  reader.read_all(panels_.bytes_for_writing());
}

template <class N, class W>
ScaledFactor<N, W>::ScaledFactor(SavedFactor header, const StoredPlace& place,
                                 const RunOptions& options)
    : header_(std::move(header)),
      known_{.matrix = place.matrix},
      panels_(problem_of(header_.n, element_of<N>), in_panels(options, header_.panel),
              place.matrix) {
  panels_.adopt_stored(header_.info);
}

template <class N, class W>
StoredParts ScaledFactor<N, W>::stored() const {
  if (!in_storage()) return {};
  return {panels_.count(), panels_.found(), panels_.how()};
}

template <class N, class W>
void ScaledFactor<N, W>::save(ChecksumWriter& writer) {
  save_header(header_, writer);
  if (in_storage()) return;
  panels_.bring_home();
  writer.add_all(panels_.exchanges());
  writer.add_all(panels_.bytes());
}

template <class N, class W>
DenseBlockOf<W> ScaledFactor<N, W>::scaled(MatrixView<const W> b, bool adjoint,
                                           int exponent) const {
  DenseBlockOf<W> v(b.rows, b.cols);
  copy_columns<W, W>(b, v.view());
  multiply_rows(adjoint ? header_.column_exponent : header_.row_exponent, adjoint ? 0 : exponent,
                v);
  return v;
}

template <class N, class W>
void ScaledFactor<N, W>::scale_back(DenseBlockOf<W>& x, bool adjoint, int exponent) const {
  multiply_rows(adjoint ? header_.row_exponent : header_.column_exponent, adjoint ? exponent : 0,
                x);
}

/// The factors are those of S. With A = Sᵀ, A⁻¹·b is the conjugate of S⁻ᴴ·b̄, and A⁻ᴴ·b that of
/// S⁻¹·b̄.
template <class N, class W>
template <class Solve>
DenseBlockOf<W> ScaledFactor<N, W>::by_stored(MatrixView<const W> b, bool adjoint,
                                              const Solve& solve) const {
  if (!header_.transposed) return solve(b, adjoint);
  const DenseBlockOf<W> y = conjugated<W>(b);
  const DenseBlockOf<W> x = solve(y.view(), !adjoint);
  return conjugated<W>(x.view());
}

template <class N, class W>
DenseBlockOf<W> ScaledFactor<N, W>::solve(MatrixView<const W> b, bool adjoint, int exponent,
                                          RunReport& report) {
  return by_stored(b, adjoint, [&](MatrixView<const W> v, bool of_adjoint) {
    return solve_stored(v, of_adjoint, exponent, report);
  });
}

template <class N, class W>
DenseBlockOf<W> ScaledFactor<N, W>::solve_wide(MatrixView<const W> b, bool adjoint, int exponent) {
  panels_.bring_home();
  return by_stored(b, adjoint, [&](MatrixView<const W> v, bool of_adjoint) {
    return solve_stored_wide(v, of_adjoint, exponent);
  });
}

template <class N, class W>
DenseBlockOf<W> ScaledFactor<N, W>::solve_stored(MatrixView<const W> b, bool adjoint, int exponent,
                                                 RunReport& report) {
  const BlockSolverOf<N> solve = [&](MatrixView<N> v) {
    accumulate(report, panels_.solve(v, adjoint ? kAdjointFactor : 0));
  };
  const DenseBlockOf<W> v = scaled(b, adjoint, exponent);
  DenseBlockOf<W> x = solved_in_range<N>(solve, v.view());
  scale_back(x, adjoint, exponent);
  return x;
}

template <class N, class W>
DenseBlockOf<W> ScaledFactor<N, W>::solve_stored_wide(MatrixView<const W> b, bool adjoint,
                                                      int exponent) const {
  DenseBlockOf<W> x = scaled(b, adjoint, exponent);
  panels_.template solve_wide<N>(x.view(), adjoint);
  scale_back(x, adjoint, exponent);
  return x;
}

void save_header(const SavedFactor& header, ChecksumWriter& writer) {
  writer.add(header.element);
  writer.add(header.n);
  writer.add(header.panel);
  writer.add(static_cast<std::uint8_t>(header.transposed ? 1 : 0));
  writer.add(header.row_exponent);
  writer.add(header.column_exponent);
  writer.add(header.info.growth);
  const Determinant& det = header.info.determinant;
  writer.add(det.sign);
  writer.add(det.mantissa);
  writer.add(det.exponent);
  writer.add(det.phase.real());
  writer.add(det.phase.imag());
  writer.add(header.scaled_condition);
  writer.add(header.log_determinant_error);
}

namespace {

SavedFactor read_common_header(ChecksumReader& reader, const std::string& path) {
  SavedFactor header;
  std::uint8_t element = 0;
  static_assert(sizeof(Element) == sizeof element);
  reader.read(element);
  header.element = static_cast<Element>(element);
  const Element parts = element_of_parts(header.element);
  const bool number = header.element == Element::fp64 || header.element == Element::fp32 ||
                      header.element == Element::complex128 || header.element == Element::complex64;
  reader.read(header.n);
  reader.read(header.panel);
  std::uint8_t transposed = 0;
  reader.read(transposed);
  header.transposed = transposed != 0;
  reader.read(header.row_exponent);
  reader.read(header.column_exponent);
  require(number && parts != Element::none && header.n >= 0 && header.panel >= 1 &&
              std::ssize(header.row_exponent) == header.n &&
              std::ssize(header.column_exponent) == header.n,
          ErrorKind::input, kWhere, "'{}' is no factor of order {} in panels of {}", path, header.n,
          header.panel);
  const auto far = [](int exponent) { return std::abs(exponent) > 4096; };
  require(std::none_of(header.row_exponent.begin(), header.row_exponent.end(), far) &&
              std::none_of(header.column_exponent.begin(), header.column_exponent.end(), far),
          ErrorKind::input, kWhere, "'{}' is no factor: a scale of it is no double", path);
  reader.read(header.info.growth);
  Determinant& det = header.info.determinant;
  double re = 0;
  double im = 0;
  reader.read(det.sign);
  reader.read(det.mantissa);
  reader.read(det.exponent);
  reader.read(re);
  reader.read(im);
  det.phase = {re, im};
  reader.read(header.scaled_condition);
  reader.read(header.log_determinant_error);
  return header;
}

}  // namespace

SavedFactor read_header(ChecksumReader& reader, const std::string& path) {
  SavedFactor header = read_common_header(reader, path);
  // Before anything of that size is allocated; n was a length that the file has.
  const auto n = static_cast<double>(header.n);
  require(static_cast<double>(reader.left()) ==
              n * n * static_cast<double>(bytes_of(header.element)) + 8 * n + 8,
          ErrorKind::input, kWhere, "'{}' is truncated, or no factor of order {}", path, header.n);
  return header;
}

SavedFactor read_stored_header(ChecksumReader& reader, const std::string& path,
                               StoredPlace& place) {
  SavedFactor header = read_common_header(reader, path);
  place = read_place(reader, path);
  return header;
}

template class ScaledFactor<double, double>;
template class ScaledFactor<float, double>;
template class ScaledFactor<std::complex<double>, std::complex<double>>;
template class ScaledFactor<std::complex<float>, std::complex<double>>;

namespace {
using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;
}  // namespace

#define STRATA_SCALED_FACTOR(N, W, A)                                                              \
  template ScaledFactor<N, W>::ScaledFactor(const ScaledSystem<A>&, const LuOptions&,              \
                                            FactorScales, MatrixPlace);                            \
  template std::shared_ptr<MatrixProducts<A>> ScaledFactor<N, W>::products(const ScaledSystem<A>&, \
                                                                           bool, RunReport&);
STRATA_SCALED_FACTOR(double, double, double)
STRATA_SCALED_FACTOR(float, double, double)
STRATA_SCALED_FACTOR(float, double, float)
STRATA_SCALED_FACTOR(Complex128, Complex128, Complex128)
STRATA_SCALED_FACTOR(Complex64, Complex128, Complex128)
STRATA_SCALED_FACTOR(Complex64, Complex128, Complex64)
#undef STRATA_SCALED_FACTOR

}  // namespace strata
