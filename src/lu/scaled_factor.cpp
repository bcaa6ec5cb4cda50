#include "lu/scaled_factor.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "base/check.hpp"
#include "base/checksum_file.hpp"
#include "base/index.hpp"
#include "cholesky/certified_solution.hpp"
#include "cholesky/dense_system.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/panel_status.hpp"
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

Options in_panels(Options options, std::int64_t panel) {
  options.tile = panel;
  return options;
}

/// A scale that is no number above 0 is that of a row with elements that are none.
std::vector<int> exponents_of(const std::vector<double>& scale, int beside) {
  std::vector<int> exponent;
  for (const double s : scale)
    exponent.push_back((s > 0 && std::isfinite(s) ? std::ilogb(s) : 0) - beside);
  return exponent;
}

template <class W>
void multiply_rows(const std::vector<int>& exponent, int all, DenseBlockOf<W>& v) {
  for (std::int64_t j = 0; j < v.cols(); ++j)
    for (std::int64_t i = 0; i < v.rows(); ++i)
      v.column(j)[i] = times_power(v.column(j)[i], exponent[at(i)] + all);
}

}  // namespace

template <class N, class W>
template <class T, class A>
ScaledFactor<N, W>::ScaledFactor(const ScaledSystem<T, A>& system, const Options& options)
    : header_{.element = element_of<N>,
              .n = system.n(),
              .row_exponent = exponents_of(system.row_scale(), system.exponent()),
              .column_exponent = exponents_of(system.column_scale(), 0)},
      panels_(problem_of(system.n(), element_of<N>), options) {
  header_.panel = panels_.problem().panel;
  factor(system.a(), system.exponent());
}

/// A times 2 to `exponent` is what was given.
template <class N, class W>
template <class A>
void ScaledFactor<N, W>::factor(MatrixView<const A> a, int exponent) {
  const auto scaled = [&](std::int64_t i, std::int64_t j) {
    return static_cast<N>(
        times_power(static_cast<W>(a(i, j)),
                    header_.row_exponent[at(i)] + exponent + header_.column_exponent[at(j)]));
  };
  double largest = 0;
  std::vector<N> column(at(a.rows));
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i) column[at(i)] = scaled(i, j);
    largest = std::max(largest, largest_of_column(column.data(), a.rows));
  }
  header_.info = panels_.factor(
      [&](const BlockExtent& extent, std::byte* to) {
        auto* packed = reinterpret_cast<N*>(to);
        for (std::int64_t j = 0; j < extent.cols; ++j)
          for (std::int64_t i = 0; i < extent.rows; ++i)
            *packed++ = scaled(extent.row + i, extent.col + j);
      },
      largest);
  Determinant& det = header_.info.determinant;
  const auto sum = [](const std::vector<int>& e) {
    return std::accumulate(e.begin(), e.end(), std::int64_t{0});
  };
  if (det.sign != 0) det.exponent -= sum(header_.row_exponent) + sum(header_.column_exponent);
}

template <class N, class W>
ScaledFactor<N, W>::ScaledFactor(SavedFactor header, ChecksumReader& reader, const Options& options)
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
void ScaledFactor<N, W>::save(ChecksumWriter& writer) const {
  save_header(header_, writer);
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

template <class N, class W>
DenseBlockOf<W> ScaledFactor<N, W>::solve(MatrixView<const W> b, bool adjoint, int exponent,
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
DenseBlockOf<W> ScaledFactor<N, W>::solve_wide(MatrixView<const W> b, bool adjoint,
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

SavedFactor read_header(ChecksumReader& reader, const std::string& path) {
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
  // Before anything of that size is allocated; n was a length that the file has.
  const auto n = static_cast<double>(header.n);
  require(static_cast<double>(reader.left()) ==
              n * n * static_cast<double>(bytes_of(header.element)) + 8 * n + 8,
          ErrorKind::input, kWhere, "'{}' is truncated, or no factor of order {}", path, header.n);
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

template ScaledFactor<double, double>::ScaledFactor(const ScaledSystem<double, double>&,
                                                    const Options&);
template ScaledFactor<float, double>::ScaledFactor(const ScaledSystem<double, double>&,
                                                   const Options&);
template ScaledFactor<float, double>::ScaledFactor(const ScaledSystem<float, double>&,
                                                   const Options&);
template ScaledFactor<float, double>::ScaledFactor(const ScaledSystem<float, float>&,
                                                   const Options&);
template ScaledFactor<Complex128, Complex128>::ScaledFactor(
    const ScaledSystem<Complex128, Complex128>&, const Options&);
template ScaledFactor<Complex64, Complex128>::ScaledFactor(
    const ScaledSystem<Complex128, Complex128>&, const Options&);
template ScaledFactor<Complex64, Complex128>::ScaledFactor(
    const ScaledSystem<Complex64, Complex128>&, const Options&);
template ScaledFactor<Complex64, Complex128>::ScaledFactor(
    const ScaledSystem<Complex64, Complex64>&, const Options&);

}  // namespace strata
