#pragma once
// What GPU kernels that make Matérn covariances share: distances, correlations, and which of them
// the parameters of a task ask for. Included by .cu files only.
//
// What an element needs is chosen at launch and not inside a loop: the distance (in the plane, in
// space, or any) and the correlation. That of smoothness 1/2, 3/2, 5/2 is a closed form; that of
// another comes from the polynomials of matern_table.hpp, which a small kernel computes before and
// each block copies to shared memory, and above their smoothness from bessel_k.hpp itself. The
// choice follows from the parameters alone, never from the size of a block: equal elements are
// equal to the last bit wherever a plan cuts its tiles.

#include <type_traits>

#include "device/device_cuda.hpp"
#include "kernels/bessel_k.hpp"
#include "kernels/covariance.hpp"
#include "kernels/covariance_lag.hpp"
#include "kernels/matern_table.hpp"

namespace strata::covariance_gpu {

constexpr int kThreads = 128;          // of a block, along the rows
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
  static constexpr bool kInSingle = true;  ///< its lag may be asked for in single precision
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
  static constexpr bool kInSingle = false;
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
static __global__ void __launch_bounds__(32) matern_table_kernel(double* table, BesselOrder order) {
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

/// c(a, b), with the nugget if `same`.
template <class Distance, class Correlation>
__device__ typename Correlation::Real element(const Distance& distance,
                                              const Correlation& correlation,
                                              const typename Distance::Point& a,
                                              const typename Distance::Point& b, bool same,
                                              double nugget) {
  using Real = typename Correlation::Real;
  const auto lag = distance.template lag<Real>(a, b);
  Real c = correlation(lag.x) * lag.factor;
  if (same) c += static_cast<Real>(nugget);
  return c;
}

// ---- what the parameters ask for

/// What every call of a task has in common.
struct Common {
  cudaStream_t stream = nullptr;
  CovarianceParameters parameters;
  BesselOrder order;
  const double* table = nullptr;  ///< null: not tabulated

  [[nodiscard]] double nugget() const { return parameters.same_points ? parameters.nugget : 0; }
};

constexpr std::int64_t kTableBytes =
    kMaternTablePieces * kMaternTableCount * static_cast<std::int64_t>(sizeof(double));

[[nodiscard]] inline bool needs_table(const CovarianceParameters& values) {
  return bessel_order(values.smoothness).form == Form::general &&
         values.smoothness <= kMaternTableSmoothnessMost;
}

/// For a task with these parameters; fills `table`, kTableBytes of the device, if they need one.
inline Common common_of(cudaStream_t stream, const CovarianceParameters& values, double* table) {
  Common what{stream, values, bessel_order(values.smoothness), nullptr};
  if (needs_table(values)) {
    matern_table_kernel<<<kMaternTablePieces, 32, 0, stream>>>(table, what.order);
    require_cuda(cudaGetLastError(), "matern_table");
    what.table = table;
  }
  return what;
}

/// Calls use(correlation), with arithmetic in R where it is a closed form.
template <class R, class Use>
void with_correlation(const Common& what, const Use& use) {
  const R variance = static_cast<R>(what.parameters.variance);
  switch (what.order.form) {
    case Form::half: return use(Closed<R, Form::half>{variance});
    case Form::three_halves: return use(Closed<R, Form::three_halves>{variance});
    case Form::five_halves: return use(Closed<R, Form::five_halves>{variance});
    case Form::general: break;
  }
  const double factor = what.parameters.variance;
  if (what.table == nullptr) return use(Direct{factor, what.order});
  use(Tabulated{factor, what.order, what.table});
}

template <class X, int D>
Euclidean<X, D> euclidean(const Common& what, const BlockView& p, const BlockView& q) {
  const double inverse = 1 / what.parameters.range;
  return {static_cast<const X*>(p.data),
          static_cast<const X*>(q.data),
          p.ld,
          q.ld,
          what.parameters.range,
          inverse,
          inverse * inverse};
}

/// Calls use(distance) for points P of rows and Q of columns.
template <class X, class Use>
void with_distance(const Common& what, const BlockView& p, const BlockView& q, const Use& use) {
  const LagRule rule = lag_rule(what.parameters, p.cols);
  if (rule.plain() && rule.range > 0x1p-400 && rule.range < 0x1p400) {
    if (p.cols == 2) return use(euclidean<X, 2>(what, p, q));
    if (p.cols == 3) return use(euclidean<X, 3>(what, p, q));
  }
  use(AnyDistance<X>{static_cast<const X*>(p.data), static_cast<const X*>(q.data), p.ld, q.ld,
                     rule});
}

}  // namespace strata::covariance_gpu
