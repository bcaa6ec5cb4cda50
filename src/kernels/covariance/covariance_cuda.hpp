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
//
// Elements are made a few at a time. In double precision, distances in the plane or in space with
// correlations of closed form have a short way without branches (regular_math_cuda.hpp). It is
// taken where a distance is neither zero nor at an end of the range, element by element: what an
// element is depends on its points alone.

#include <algorithm>
#include <bit>
#include <type_traits>

#include "device/device_cuda.hpp"
#include "kernels/covariance/bessel_k.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/covariance/covariance_lag.hpp"
#include "kernels/covariance/matern_table.hpp"
#include "kernels/covariance/regular_math_cuda.hpp"

namespace strata::covariance_gpu {

constexpr int kThreads = 128;          // of a block, along the rows
constexpr double kNothing = 1500;      // beyond this x the correlation is 0 for every smoothness
constexpr double kRegularMost = 690;   // up to this x the exponential needs no care
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
  static constexpr bool kHasRegular = true;
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
  unsigned least;    ///< the high word of the least square that is regular, …
  unsigned regular;  ///< … and how many high words are

  [[nodiscard]] __device__ bool is_regular(double square) const {
    return static_cast<unsigned>(__double2hiint(square)) - least < regular;
  }
  /// The quotient of distance and range, by its reciprocal and one correction of the remainder.
  [[nodiscard]] __device__ double quotient(double h) const {
    const double x = h * inverse;
    return fma(fma(-x, range, h), inverse, x);
  }

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
      const double h = std::sqrt(square(a, b));
      const double x = h * inverse;
      return {x < 2 * kNothing ? quotient(h) : x};  // not for infinity
    }
  }
};

/// Any rule.
template <class X>
struct AnyDistance {
  static constexpr bool kInSingle = false;
  static constexpr bool kHasRegular = false;
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
  static constexpr bool kHasRegular = std::is_same_v<R, double>;
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
  /// For x up to kRegularMost.
  __device__ R of_regular(R x) const { return scaled(x) * regular::exp_of_minus(x); }
};

/// Any smoothness, element by element.
struct Direct {
  using Real = double;
  static constexpr bool kHasRegular = false;
  double variance;
  BesselOrder order;

  __device__ void begin() {}
  __device__ double operator()(double x) const { return variance * matern_correlation(order, x); }
};

/// Smoothness up to kMaternTableSmoothnessMost.
struct Tabulated {
  using Real = double;
  static constexpr bool kHasRegular = false;
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

template <class Distance, class Correlation>
inline constexpr bool kHasRegular = Distance::kHasRegular&& Correlation::kHasRegular;

/// c(a, b), whatever their distance. Not inlined where it is the exception.
template <class Distance, class Correlation>
__device__ typename Correlation::Real any_element(const Distance& distance,
                                                  const Correlation& correlation,
                                                  const typename Distance::Point& a,
                                                  const typename Distance::Point& b) {
  const auto lag = distance.template lag<typename Correlation::Real>(a, b);
  return correlation(lag.x) * lag.factor;
}
template <class Distance, class Correlation>
__device__ __noinline__ double irregular_element(const Distance& distance,
                                                 const Correlation& correlation,
                                                 typename Distance::Point a,
                                                 typename Distance::Point b) {
  return any_element(distance, correlation, a, b);
}

/// c[r][k] = c(rows[r], cols[k]), without a nugget.
template <int kRows, int kCols, class Distance, class Correlation>
__device__ void elements(const Distance& distance, const Correlation& correlation,
                         const typename Distance::Point (&rows)[kRows],
                         const typename Distance::Point (&cols)[kCols],
                         typename Correlation::Real (&c)[kRows][kCols]) {
  if constexpr (kHasRegular<Distance, Correlation>) {
    double square[kRows][kCols];
    bool regular = true;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kCols; ++k) {
        square[r][k] = Distance::square(rows[r], cols[k]);
        regular = regular && distance.is_regular(square[r][k]);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kCols; ++k)  // of a square that is not regular, something without a trap
        c[r][k] = correlation.of_regular(distance.quotient(regular::square_root(square[r][k])));
    }
    if (regular) return;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
#pragma unroll
      for (int k = 0; k < kCols; ++k) {
        if (!distance.is_regular(square[r][k]))
          c[r][k] = irregular_element(distance, correlation, rows[r], cols[k]);
      }
    }
  } else {
#pragma unroll
    for (int k = 0; k < kCols; ++k) {
#pragma unroll
      for (int r = 0; r < kRows; ++r)
        c[r][k] = any_element(distance, correlation, rows[r], cols[k]);
    }
  }
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
  const double range = what.parameters.range;
  const double inverse = 1 / range;
  const auto high_word = [](double value) {
    return static_cast<unsigned>(std::bit_cast<std::uint64_t>(value) >> 32U);
  };
  const unsigned least = high_word(0x1p-900);
  return {static_cast<const X*>(p.data),
          static_cast<const X*>(q.data),
          p.ld,
          q.ld,
          range,
          inverse,
          inverse * inverse,
          least,
          high_word(kRegularMost * range * (kRegularMost * range)) - least};
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
