// The Matérn covariance on a GPU.
//
// A thread computes kRowsOfThread elements of one column after another: neighbouring threads have
// neighbouring rows, so that writes coalesce, the coordinates of its rows stay in registers and
// those of a column are one load for the block. What an element needs is chosen at launch and not
// inside the loop: the distance (in the plane, in space, or any) and the correlation. That of
// smoothness 1/2, 3/2, 5/2 is a closed form; that of another comes from the polynomials of
// matern_table.hpp, which a small kernel computes before and each block copies to shared memory,
// and above their smoothness from bessel_k.hpp itself.
//
// Writing is what should bound it. A double takes some 40 operations in FP64. For single precision
// from coordinates in double only the square of the distance over range is formed in FP64, where
// coordinates cancel; root, exponential and polynomial follow in FP32. With u = 2^-24 the root of
// the rounded square is good to 1.5u relative, so the exponential of −x to (2 + 1.5x)u, and with
// variance, polynomial and product the element to 4(1 + x)u, x = distance / range.
//
// Which kernel serves follows from the parameters alone, never from the size of a block: equal
// elements are equal to the last bit wherever a plan cuts its tiles.

#include <algorithm>
#include <type_traits>

#include "device/device_cuda.hpp"
#include "kernels/bessel_k.hpp"
#include "kernels/covariance.hpp"
#include "kernels/covariance_lag.hpp"
#include "kernels/matern_table.hpp"
#include "kernels/operand.hpp"

namespace strata {
namespace {

constexpr int kThreads = 128;          // of a block, along the rows
constexpr int kRowsOfThread = 2;       // kThreads apart
constexpr int kColsOfBlock = 64;       // one after the other
constexpr double kNothing = 1500;      // beyond this x the correlation is 0 for every smoothness
constexpr float kNothingSingle = 300;  // … and below every float, times a variance up to 2^100
using Form = BesselOrder::Form;

// ---- distances: `row(i)` loads a point of the rows, `col(j)` one of the columns, and `lag(a, b)`
// has their distance over range as x, and a factor

/// Without one.
template <class Real>
struct LagInSpace {
  Real x;
  static constexpr Real factor = 1;
};

/// Euclidean, in D dimensions. range lies in [2^-400, 2^400].
template <class X, int D>
struct Euclidean {
  struct Point {
    double coordinate[D];
  };
  const X* p;
  const X* q;
  std::int64_t p_ld;
  std::int64_t q_ld;
  double range;
  double inverse;
  double inverse_square;

  __device__ static Point load(const X* data, std::int64_t ld, std::int64_t i) {
    Point point;
#pragma unroll
    for (int k = 0; k < D; ++k) point.coordinate[k] = static_cast<double>(data[i + k * ld]);
    return point;
  }
  __device__ Point row(std::int64_t i) const { return load(p, p_ld, i); }
  __device__ Point col(std::int64_t j) const { return load(q, q_ld, j); }
  __device__ static double square(const Point& a, const Point& b) {
    double sum = 0;
#pragma unroll
    for (int k = 0; k < D; ++k) {
      const double difference = a.coordinate[k] - b.coordinate[k];
      sum += difference * difference;
    }
    return sum;
  }
  template <class Real>
  __device__ LagInSpace<Real> lag(const Point& a, const Point& b) const {
    if constexpr (std::is_same_v<Real, float>) {
      return {sqrtf(static_cast<float>(square(a, b) * inverse_square))};
    } else {
      // The quotient, by its reciprocal and one correction of the remainder.
      const double h = std::sqrt(square(a, b));
      const double x = h * inverse;
      return {x < 2 * kNothing ? fma(fma(-x, range, h), inverse, x) : x};  // not for infinity
    }
  }
};

/// Any rule.
template <class X>
struct AnyDistance {
  using Point = std::int64_t;
  const X* p;
  const X* q;
  std::int64_t p_ld;
  std::int64_t q_ld;
  LagRule rule;

  __device__ Point row(std::int64_t i) const { return i; }
  __device__ Point col(std::int64_t j) const { return j; }
  template <class Real>
  __device__ Lag lag(Point i, Point j) const {
    return lag_between(rule, p + i, p_ld, q + j, q_ld);
  }
};

// ---- correlations, times the variance

/// Smoothness 1/2, 3/2, 5/2.
template <class R, Form form>
struct Closed {
  using Real = R;
  R variance;

  __device__ void begin() {}
  /// Polynomial(x)·variance.
  __device__ R scaled(R x) const {
    if constexpr (form == Form::half) return variance;
    if constexpr (form == Form::three_halves) return variance * x + variance;
    return variance * (x + x * x * (R{1} / 3)) + variance;
  }
  __device__ R operator()(R x) const {
    if constexpr (std::is_same_v<R, float>) {
      if (x < 80.0F) return scaled(x) * expf(-x);
      const float third = expf(x * (-1.0F / 3));  // no exponential may lose digits before the end
      return x > kNothingSingle ? 0.0F : scaled(x) * third * third * third;
    } else {
      return x > kNothing ? 0.0 : damped(scaled(x), x);
    }
  }
};

/// Any smoothness, element by element.
struct Direct {
  using Real = double;
  double variance;
  BesselOrder order;

  __device__ void begin() {}
  __device__ double operator()(double x) const { return variance * matern_correlation(order, x); }
};

/// Smoothness up to kMaternTableSmoothnessMost.
struct Tabulated {
  using Real = double;
  double variance;
  BesselOrder order;
  const double* table;  ///< in the memory of the device, then of the block

  __device__ void begin() {
    __shared__ double of_block[kMaternTablePieces * kMaternTableCount];
    for (int i = threadIdx.x; i < kMaternTablePieces * kMaternTableCount; i += kThreads) {
      of_block[i] = table[i];
    }
    __syncthreads();
    table = of_block;
  }
  __device__ double operator()(double x) const {
    if (x >= kMaternTableLeast && x < kMaternTableMost) {
      return variance * matern_table_correlation(table, x);
    }
    return variance * matern_correlation(order, x);
  }
};

/// One block a piece, its first threads a coefficient each.
__global__ void __launch_bounds__(32) matern_table_kernel(double* table, BesselOrder order) {
  __shared__ double values[kMaternTableCount];
  __shared__ double chebyshev[kMaternTableCount];
  const int k = static_cast<int>(threadIdx.x);
  const int piece = static_cast<int>(blockIdx.x);
  if (k < kMaternTableCount) values[k] = matern_table_value(order, piece, k);
  __syncthreads();
  if (k < kMaternTableCount) chebyshev[k] = matern_table_chebyshev(values, k);
  __syncthreads();
  if (k < kMaternTableCount) {
    table[piece * kMaternTableCount + k] = matern_table_power(chebyshev, k);
  }
}

// ---- the kernel

template <class T, class Distance, class Correlation>
__global__ void __launch_bounds__(kThreads)
    covariance_kernel(BlockView out, Distance distance, Correlation correlation, double nugget) {
  using Real = typename Correlation::Real;
  correlation.begin();
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads * kRowsOfThread) + threadIdx.x;
  typename Distance::Point rows[kRowsOfThread];
#pragma unroll
  for (int r = 0; r < kRowsOfThread; ++r) {  // a thread without a row computes the last one, too
    rows[r] = distance.row(min(first + r * kThreads, out.rows - 1));
  }
  // Column that has the nugget in the first row.
  const std::int64_t diagonal = out.row + first - out.col;
  for (std::int64_t start = static_cast<std::int64_t>(blockIdx.y) * kColsOfBlock; start < out.cols;
       start += static_cast<std::int64_t>(gridDim.y) * kColsOfBlock) {
    const std::int64_t end = min(start + kColsOfBlock, out.cols);
    T* column = static_cast<T*>(out.data) + start * out.ld;
#pragma unroll 2
    for (std::int64_t j = start; j < end; ++j, column += out.ld) {
      const typename Distance::Point q = distance.col(j);
#pragma unroll
      for (int r = 0; r < kRowsOfThread; ++r) {
        const std::int64_t i = first + r * kThreads;
        const auto lag = distance.template lag<Real>(rows[r], q);
        Real c = correlation(lag.x) * lag.factor;
        if (j == diagonal + r * kThreads) c += static_cast<Real>(nugget);
        if (i < out.rows) column[i] = static_cast<T>(c);
      }
    }
  }
}

/// What every call of a task has in common.
struct Launch {
  cudaStream_t stream = nullptr;
  CovarianceParameters parameters;
  BesselOrder order;
  const double* table = nullptr;  ///< null: not tabulated

  [[nodiscard]] double nugget() const { return parameters.same_points ? parameters.nugget : 0; }
};

template <class T, class Distance, class Correlation>
void launch(const Launch& what, const BlockView& out, const Distance& distance,
            const Correlation& correlation) {
  constexpr std::int64_t rows = kThreads * kRowsOfThread;
  const dim3 blocks(static_cast<unsigned>((out.rows + rows - 1) / rows),
                    static_cast<unsigned>(std::min<std::int64_t>(
                        (out.cols + kColsOfBlock - 1) / kColsOfBlock, 65535)));
  covariance_kernel<T>
      <<<blocks, kThreads, 0, what.stream>>>(out, distance, correlation, what.nugget());
  require_cuda(cudaGetLastError(), "covariance");
}

/// Arithmetic in R where the correlation is a closed form.
template <class R, class T, class Distance>
void choose_correlation(const Launch& what, const BlockView& out, const Distance& distance) {
  const R variance = static_cast<R>(what.parameters.variance);
  switch (what.order.form) {
    case Form::half: return launch<T>(what, out, distance, Closed<R, Form::half>{variance});
    case Form::three_halves:
      return launch<T>(what, out, distance, Closed<R, Form::three_halves>{variance});
    case Form::five_halves:
      return launch<T>(what, out, distance, Closed<R, Form::five_halves>{variance});
    case Form::general: break;
  }
  const double factor = what.parameters.variance;
  if (what.table == nullptr) return launch<T>(what, out, distance, Direct{factor, what.order});
  launch<T>(what, out, distance, Tabulated{factor, what.order, what.table});
}

template <class T, class X, int D>
void choose_arithmetic(const Launch& what, const BlockView& out, const BlockView& p,
                       const BlockView& q) {
  const double inverse = 1 / what.parameters.range;
  const Euclidean<X, D> distance{static_cast<const X*>(p.data),
                                 static_cast<const X*>(q.data),
                                 p.ld,
                                 q.ld,
                                 what.parameters.range,
                                 inverse,
                                 inverse * inverse};
  const double variance = what.parameters.variance;
  if constexpr (std::is_same_v<T, float> && std::is_same_v<X, double>) {
    if (variance > 0x1p-100 && variance < 0x1p100) {
      return choose_correlation<float, T>(what, out, distance);
    }
  }
  choose_correlation<double, T>(what, out, distance);
}

template <class T, class X>
void choose_distance(const Launch& what, const BlockView& out, const BlockView& p,
                     const BlockView& q) {
  if (out.rows == 0 || out.cols == 0) return;
  const LagRule rule = lag_rule(what.parameters, p.cols);
  if (rule.plain() && rule.range > 0x1p-400 && rule.range < 0x1p400) {
    if (p.cols == 2) return choose_arithmetic<T, X, 2>(what, out, p, q);
    if (p.cols == 3) return choose_arithmetic<T, X, 3>(what, out, p, q);
  }
  choose_correlation<double, T>(what, out,
                                AnyDistance<X>{static_cast<const X*>(p.data),
                                               static_cast<const X*>(q.data), p.ld, q.ld, rule});
}

}  // namespace

template <class T, class X>
void covariance_cuda(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(covariance, parameters.variant, 0);
  auto& cuda = static_cast<CudaQueue&>(queue);
  const CovarianceParameters& values = parameters_of(parameters);
  Launch what{cuda.stream(), values, bessel_order(values.smoothness), nullptr};
  if (what.order.form == Form::general && values.smoothness <= kMaternTableSmoothnessMost) {
    constexpr std::int64_t bytes =
        kMaternTablePieces * kMaternTableCount * static_cast<std::int64_t>(sizeof(double));
    auto* table = static_cast<double*>(cuda.scratch(bytes));
    matern_table_kernel<<<kMaternTablePieces, 32, 0, what.stream>>>(table, what.order);
    require_cuda(cudaGetLastError(), "matern_table");
    what.table = table;
  }
  for (std::int64_t i = 0; i < calls.count(); ++i) {
    choose_distance<T, X>(what, calls[i][0], calls[i][1], calls[i][2]);
  }
}

template void covariance_cuda<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_cuda<float>(Queue&, const KernelCalls&, const KernelParameters&);
template void covariance_cuda<float, double>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
