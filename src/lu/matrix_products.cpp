#include "lu/matrix_products.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/index.hpp"
#include "kernels/dense/panel_product.hpp"
#include "lu/planning.hpp"
#include "scalar/double_double.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

/// Blocks of Y: the columns of the first begin as `y`, and all others with zeros.
template <class V>
BlockSource beginning_of_sums(MatrixView<const V> y) {
  return [y](const BlockExtent& extent, std::byte* to) {
    auto* out = reinterpret_cast<V*>(to);
    for (std::int64_t j = 0; j < extent.cols; ++j, out += extent.rows) {
      if (extent.col + j < y.cols)
        std::copy_n(y.column(extent.col + j), extent.rows, out);
      else
        std::fill_n(out, extent.rows, V{});
    }
  };
}

/// high + low ← high + low + other, part by part.
template <class V>
void add_long(V& high, V& low, const V& other_high, const V& other_low) {
  if constexpr (is_complex_v<V>) {
    const DoubleDouble re = add_cray(DoubleDouble(high.real(), low.real()),
                                     DoubleDouble(other_high.real(), other_low.real()));
    const DoubleDouble im = add_cray(DoubleDouble(high.imag(), low.imag()),
                                     DoubleDouble(other_high.imag(), other_low.imag()));
    high = V(re.hi, im.hi);
    low = V(re.lo, im.lo);
  } else {
    const DoubleDouble sum = add_cray(DoubleDouble(high, low), DoubleDouble(other_high, other_low));
    high = sum.hi;
    low = sum.lo;
  }
}

}  // namespace

template <class A>
void require_same_matrix(MatrixProducts<A>& products, const ProbeProduct<A>& probe) {
  using W = WideOf<A>;
  const std::int64_t n = std::ssize(probe.v);
  std::vector<W> r = probe.product;
  std::vector<W> v(probe.v.begin(), probe.v.end());
  products.residual(false, MatrixView<const W>{v.data(), n, 1, n},
                    MatrixView<W>{r.data(), n, 1, n});
  // Both sums are within (n + 8) roundings, of complex numbers twice as large ones.
  const double relative = 4 * static_cast<double>(n + 8) * 0x1p-53 * (is_complex_v<W> ? 2 : 1);
  const double of_underflow = static_cast<double>(n) * std::numeric_limits<double>::denorm_min();
  for (std::int64_t i = 0; i < n; ++i) {
    const double most = relative * probe.magnitudes[at(i)] + 4 * of_underflow;
    if (!std::isfinite(most)) continue;  // of A itself, which is said elsewhere
    require(std::abs(r[at(i)]) <= most, ErrorKind::device, "solve",
            "what the devices hold of the matrix is not the matrix: a product with its row {} is "
            "off by {:.2e}, where rounding is below {:.2e}",
            i, std::abs(r[at(i)]), most);
  }
}

template <class A>
MatrixOnDevices<A>::MatrixOnDevices(Session& session, MatrixView<const A> a,
                                    const MatrixProductProblem& problem,
                                    std::shared_ptr<FamilyMemory> factor, RunReport& report)
    : session_(session), a_(a), problem_(problem), factor_(std::move(factor)), report_(report) {}

/// Calls take(first column of X, sums of device d, d) for all devices in their order.
template <class A>
template <class V, class Take>
void MatrixOnDevices<A>::multiply(std::uint32_t variant, MatrixView<const V> x,
                                  MatrixView<const V> y, const Take& take) {
  for (std::int64_t first = 0; first < x.cols; first += kColumnsBeside) {
    MatrixProductProblem problem = problem_;
    problem.columns = std::min(kColumnsBeside, x.cols - first);
    problem.variant = variant;
    SessionRun wanted;
    wanted.schedule = std::make_shared<const Schedule>(panel_products(problem));
    const std::shared_ptr<const Schedule> schedule = wanted.schedule;  // has the blocks below
    const BlockTable& blocks = schedule->blocks;
    wanted.figures = {.n = problem.n, .tile = problem.panel};
    wanted.homes.families.assign(at(blocks.families()),
                                 {.pinning = HostPinning::never, .from_source = true});
    const MatrixView<const V> of_x = x.block(0, first, x.rows, problem.columns);
    const MatrixView<const V> of_y = y.block(0, first, y.rows, problem.columns);
    const auto sums =
        std::make_shared<FamilyMemory>(blocks, kSumsFamily, beginning_of_sums<V>(of_y));
    MemoryStore store(blocks,
                      {factor_, nullptr,
                       FamilyMemory::without_memory(blocks, kRightSideFamily,
                                                    source_of_view<V>(of_x.data, x.ld, false)),
                       FamilyMemory::without_memory(blocks, kGivenFamily,
                                                    source_of_view<A>(a_.data, a_.ld, false)),
                       sums});
    IssueOptions options;
    options.what = "product";
    (void)session_.run(std::move(wanted), store, options);
    accumulate(report_, session_.take_report());
    for (std::int64_t d = 0; d < std::min<std::int64_t>(problem.devices, schedule->steps); ++d) {
      const BlockId id{kSumsFamily, 0, d};
      const BlockExtent extent = blocks.extent(id);
      take(first,
           MatrixView<const V>{reinterpret_cast<const V*>(store.lend_for_writing(id)), extent.rows,
                               extent.cols, extent.rows},
           d);
    }
  }
}

template <class A>
void MatrixOnDevices<A>::residual(bool adjoint, MatrixView<const W> x, MatrixView<W> r) {
  multiply<W>(adjoint ? kAdjointPanel : 0, x, r,
              [&](std::int64_t first, MatrixView<const W> sums, std::int64_t d) {
                for (std::int64_t j = 0; j < sums.cols; ++j)
                  for (std::int64_t i = 0; i < sums.rows; ++i)
                    r(i, first + j) = d == 0 ? sums(i, j) : r(i, first + j) + sums(i, j);
              });
}

template <class A>
void MatrixOnDevices<A>::residual_dd(MatrixView<const W> b, MatrixView<const W> x,
                                     MatrixView<W> r) {
  std::vector<W> low(at(r.rows * std::min(kColumnsBeside, r.cols)));
  multiply<W>(kLongProduct, x, b,
              [&](std::int64_t first, MatrixView<const W> sums, std::int64_t d) {
                const std::int64_t columns = sums.cols / 2;
                for (std::int64_t j = 0; j < columns; ++j) {
                  W* const high = r.column(first + j);
                  W* const rest = low.data() + j * r.rows;
                  for (std::int64_t i = 0; i < sums.rows; ++i) {
                    if (d == 0) {
                      high[i] = sums(i, j);
                      rest[i] = sums(i, columns + j);
                    } else {
                      add_long(high[i], rest[i], sums(i, j), sums(i, columns + j));
                    }
                  }
                }
              });
}

template <class A>
void MatrixOnDevices<A>::add_magnitudes(MatrixView<const double> x, MatrixView<double> y) {
  multiply<double>(kMagnitudesOfPanel, x, y,
                   [&](std::int64_t first, MatrixView<const double> sums, std::int64_t d) {
                     for (std::int64_t j = 0; j < sums.cols; ++j)
                       for (std::int64_t i = 0; i < sums.rows; ++i)
                         y(i, first + j) = d == 0 ? sums(i, j) : y(i, first + j) + sums(i, j);
                   });
}

#define STRATA_REQUIRE_SAME_MATRIX(A) \
  template void require_same_matrix(MatrixProducts<A>&, const ProbeProduct<A>&);
STRATA_REQUIRE_SAME_MATRIX(double)
STRATA_REQUIRE_SAME_MATRIX(float)
STRATA_REQUIRE_SAME_MATRIX(std::complex<double>)
STRATA_REQUIRE_SAME_MATRIX(std::complex<float>)
#undef STRATA_REQUIRE_SAME_MATRIX

template class MatrixOnDevices<double>;
template class MatrixOnDevices<float>;
template class MatrixOnDevices<std::complex<double>>;
template class MatrixOnDevices<std::complex<float>>;

}  // namespace strata
