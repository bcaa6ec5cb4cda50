// Method: sums in double-double, four at once where rows have sums of their own. One sum of many
// products is added up in sixteen strands, element k in strand k mod 16, since an addition takes
// longer than what begins sixteen; strands are added in ascending order.

#include "kernels/dense/long_sums.hpp"

#include <complex>

#include "kernels/backend/run_fused.hpp"
#include "scalar/lanes.hpp"

namespace strata {
namespace {

using LongLanes = DoubleDoubleOf<Lanes>;

struct SubtractMultiple {
  [[gnu::always_inline]] static void run(const double* a, double x, std::int64_t count,
                                         double* high, double* low) {
    const Lanes factor(x);
    std::int64_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      const LongLanes sum = LongLanes(Lanes::load(high + i), Lanes::load(low + i)) -
                            two_product(Lanes::load(a + i), factor);
      sum.hi.store(high + i);
      sum.lo.store(low + i);
    }
    for (; i < count; ++i) {
      const DoubleDouble sum = DoubleDouble(high[i], low[i]) - two_product(a[i], x);
      high[i] = sum.hi;
      low[i] = sum.lo;
    }
  }
};

/// sign·Σ a_k·x_k is taken off the sum.
struct SubtractDot {
  static constexpr std::int64_t kStrands = 4;  // of lanes

  [[gnu::always_inline]] static void run(const double* a, const double* x, double sign,
                                         std::int64_t count, double* high, double* low) {
    LongLanes strands[kStrands];
    const Lanes factor(sign);
    std::int64_t k = 0;
    for (; k + kStrands * kLanes <= count; k += kStrands * kLanes)
      for (std::int64_t s = 0; s < kStrands; ++s) {
        const Lanes a_k = rounded_product(factor, Lanes::load(a + k + s * kLanes));
        strands[s] = strands[s] - two_product(a_k, Lanes::load(x + k + s * kLanes));
      }
    DoubleDouble total(*high, *low);
    for (const LongLanes& strand : strands)
      for (int lane = 0; lane < kLanes; ++lane)
        total = total + DoubleDouble(strand.hi.values[lane], strand.lo.values[lane]);
    for (; k < count; ++k) total = total - two_product(sign * a[k], x[k]);
    *high = total.hi;
    *low = total.lo;
  }
};

/// Σ of products of parts p of a and q of x belongs to part p ^ q, i·i with the other sign.
double sign_of(std::size_t p, std::size_t q, bool conjugate) {
  double sign = p == 1 && q == 1 ? -1 : 1;
  if (p == 1 && conjugate) sign = -sign;
  return sign;
}

double part_of(double x, std::size_t) { return x; }
double part_of(const std::complex<double>& x, std::size_t part) {
  return part == 0 ? x.real() : x.imag();
}

}  // namespace

template <class W>
template <class T>
void SplitColumn<W>::split(const T* x, std::int64_t count) {
  if constexpr (std::is_same_v<T, double>) {
    parts_[0] = x;
  } else {
    for (std::size_t part = 0; part < kParts; ++part) {
      copies_[part].resize(static_cast<std::size_t>(count));
      double* to = copies_[part].data();
      for (std::int64_t i = 0; i < count; ++i) to[i] = part_of(static_cast<W>(x[i]), part);
      parts_[part] = to;
    }
  }
}

template <class W>
LongSums<W>::LongSums(std::int64_t count)
    : count_(count), values_(static_cast<std::size_t>(2 * count) * SplitColumn<W>::kParts) {}

template <class W>
void LongSums<W>::set(std::int64_t i, const W& value) {
  for (std::size_t part = 0; part < SplitColumn<W>::kParts; ++part) {
    high(part)[i] = part_of(value, part);
    low(part)[i] = 0;
  }
}

template <class W>
void LongSums<W>::add(const LongSums& other) {
  for (std::size_t part = 0; part < SplitColumn<W>::kParts; ++part)
    for (std::int64_t i = 0; i < count_; ++i) {
      const DoubleDouble sum = DoubleDouble(high(part)[i], low(part)[i]) +
                               DoubleDouble(other.high(part)[i], other.low(part)[i]);
      high(part)[i] = sum.hi;
      low(part)[i] = sum.lo;
    }
}

template <class W>
W LongSums<W>::rounded(std::int64_t i) const {
  if constexpr (is_complex_v<W>)
    return {high(0)[i], high(1)[i]};
  else
    return high(0)[i];
}

template <class W>
void LongSums<W>::subtract_multiple(const SplitColumn<W>& a, const W& x, std::int64_t first,
                                    std::int64_t count) {
  for (std::size_t p = 0; p < SplitColumn<W>::kParts; ++p)
    for (std::size_t q = 0; q < SplitColumn<W>::kParts; ++q)
      run_fused<SubtractMultiple>(a.part(p), sign_of(p, q, false) * part_of(x, q), count,
                                  high(p ^ q) + first, low(p ^ q) + first);
}

template <class W>
void LongSums<W>::subtract_dot(std::int64_t i, const SplitColumn<W>& a, bool conjugate,
                               const SplitColumn<W>& x, std::int64_t skip, std::int64_t count) {
  for (std::size_t p = 0; p < SplitColumn<W>::kParts; ++p)
    for (std::size_t q = 0; q < SplitColumn<W>::kParts; ++q)
      run_fused<SubtractDot>(a.part(p), x.part(q) + skip, sign_of(p, q, conjugate), count,
                             high(p ^ q) + i, low(p ^ q) + i);
}

template class SplitColumn<double>;
template class SplitColumn<std::complex<double>>;
template class LongSums<double>;
template class LongSums<std::complex<double>>;
template void SplitColumn<double>::split(const double*, std::int64_t);
template void SplitColumn<double>::split(const float*, std::int64_t);
template void SplitColumn<std::complex<double>>::split(const std::complex<double>*, std::int64_t);
template void SplitColumn<std::complex<double>>::split(const std::complex<float>*, std::int64_t);

}  // namespace strata
