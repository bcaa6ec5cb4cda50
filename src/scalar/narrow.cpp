// Method: the conversions of half.hpp and fp8.hpp have neither branches nor calls, so the compiler
// makes vectors of the loops over them. Each loop is compiled twice, for the processor that the
// program is built for and for AVX2, whose vectors are twice as long and which has the selections
// and packings of integers that plain x86-64 puts together from several instructions. Both do the
// same operations, none of them a fused one, so they give the same bits.

#include "scalar/narrow.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr int kScaleMax = 126;                          // 2^-126 is the smallest normal float
constexpr std::int64_t kPiece = std::int64_t{1} << 16;  // what is counted in the width of a lane
constexpr std::int64_t kInfiniteFrom = rounding::magnitude_bits(Half::kInfiniteFrom);

void check_scale(double scale) {
  int exponent = 0;
  const bool power = std::frexp(scale, &exponent) == 0.5;  // scale = 2^(exponent − 1)
  require(power && std::abs(exponent - 1) <= kScaleMax, ErrorKind::misuse, "scalar",
          "a scale of {} is no power of two from 2^-126 to 2^126", scale);
}

struct Widen {
  template <class Narrow, class Real>
  [[gnu::always_inline]] static void run(const Narrow* from, Real* to, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) to[i] = static_cast<Real>(from[i]);
  }
};

struct Round {
  template <class Real, class Narrow>
  [[gnu::always_inline]] static std::int64_t run(const Real* from, Real scale, Narrow* to,
                                                 std::int64_t n) {
    std::int64_t overflows = 0;
    for (std::int64_t first = 0; first < n; first += kPiece) {
      const std::int64_t last = std::min(first + kPiece, n);
      rounding::BitsOf<Real> here = 0;
      for (std::int64_t i = first; i < last; ++i) {
        const Real x = from[i] * scale;
        to[i].bits = Narrow(x).bits;
        here += Narrow::overflows(x) ? 1U : 0U;
      }
      overflows += static_cast<std::int64_t>(here);
    }
    return overflows;
  }
};

struct Split {
  template <class Real>
  [[gnu::always_inline]] static std::int64_t run(const Real* from, double scale, Half* hi, Half* lo,
                                                 std::int64_t n) {
    std::uint64_t overflows = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = static_cast<double>(from[i]) * scale;
      const Half large(x);
      // Exact: both are multiples of the last bit of x, and they differ by 2^-11 of x at most.
      const Half small(x - static_cast<double>(large));
      const std::int64_t finite = (rounding::magnitude_bits(x) - kInfiniteFrom) >> 63;  // a mask
      hi[i].bits = large.bits;
      lo[i].bits = static_cast<std::uint16_t>(small.bits & finite);
      overflows += Half::overflows(x) ? 1U : 0U;
    }
    return static_cast<std::int64_t>(overflows);
  }
};

struct Join {
  template <class Real>
  [[gnu::always_inline]] static void run(const Half* hi, const Half* lo, Real inverse, Real* to,
                                         std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i)
      to[i] = (static_cast<Real>(hi[i]) + static_cast<Real>(lo[i])) * inverse;
  }
};

#if defined(__x86_64__)
template <class Loop, class... Arguments>
[[gnu::target("avx2")]] auto run_avx2(Arguments... arguments) {
  return Loop::run(arguments...);
}
bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") != 0;
  return has;
}
template <class Loop, class... Arguments>
auto run(Arguments... arguments) {
  return has_avx2() ? run_avx2<Loop>(arguments...) : Loop::run(arguments...);
}
#else
template <class Loop, class... Arguments>
auto run(Arguments... arguments) {
  return Loop::run(arguments...);
}
#endif

template <class Real, class Narrow>
std::int64_t round_all(const Real* from, double scale, Narrow* to, std::int64_t n) {
  check_scale(scale);
  return run<Round>(from, static_cast<Real>(scale), to, n);
}

template <class Real>
std::int64_t split_all(const Real* from, double scale, Half* hi, Half* lo, std::int64_t n) {
  check_scale(scale);
  return run<Split>(from, scale, hi, lo, n);
}

template <class Real>
void join_all(const Half* hi, const Half* lo, double scale, Real* to, std::int64_t n) {
  check_scale(scale);
  run<Join>(hi, lo, static_cast<Real>(1 / scale), to, n);
}

}  // namespace

void widen(const Half* from, float* to, std::int64_t n) { run<Widen>(from, to, n); }
void widen(const Half* from, double* to, std::int64_t n) { run<Widen>(from, to, n); }
void widen(const Fp8* from, float* to, std::int64_t n) { run<Widen>(from, to, n); }
void widen(const Fp8* from, double* to, std::int64_t n) { run<Widen>(from, to, n); }

std::int64_t round_to(const float* from, double scale, Half* to, std::int64_t n) {
  return round_all(from, scale, to, n);
}
std::int64_t round_to(const double* from, double scale, Half* to, std::int64_t n) {
  return round_all(from, scale, to, n);
}
std::int64_t round_to(const float* from, double scale, Fp8* to, std::int64_t n) {
  return round_all(from, scale, to, n);
}
std::int64_t round_to(const double* from, double scale, Fp8* to, std::int64_t n) {
  return round_all(from, scale, to, n);
}

std::int64_t split(const float* from, double scale, Half* hi, Half* lo, std::int64_t n) {
  return split_all(from, scale, hi, lo, n);
}
std::int64_t split(const double* from, double scale, Half* hi, Half* lo, std::int64_t n) {
  return split_all(from, scale, hi, lo, n);
}
void join(const Half* hi, const Half* lo, double scale, float* to, std::int64_t n) {
  join_all(hi, lo, scale, to, n);
}
void join(const Half* hi, const Half* lo, double scale, double* to, std::int64_t n) {
  join_all(hi, lo, scale, to, n);
}

}  // namespace strata
