#pragma once
// Lanes: four doubles that are computed side by side.
//
// Contract: each operation is that of a double in each of the lanes, with the same bits whatever
// the processor computes it with. The functions are inlined into their caller, and become vector
// instructions where it is compiled for them ([[gnu::target]]); a file that includes this one is
// compiled with -ffp-contract=off. For
// code of the host that shapes its loops for vectors.

#include <cstring>

#include "scalar/double_double.hpp"

namespace strata {

inline constexpr int kLanes = 4;

struct Lanes {
  using Vector [[gnu::vector_size(kLanes * sizeof(double))]] = double;
  Vector values{};

  Lanes() = default;
  [[gnu::always_inline]] explicit Lanes(const Vector& v) : values(v) {}
  [[gnu::always_inline]] explicit Lanes(double x) : values{x, x, x, x} {}

  [[gnu::always_inline]] static Lanes load(const double* from) {
    Lanes lanes;
    std::memcpy(&lanes.values, from, sizeof lanes.values);
    return lanes;
  }
  [[gnu::always_inline]] void store(double* to) const { std::memcpy(to, &values, sizeof values); }
  [[gnu::always_inline]] Lanes operator-() const { return Lanes(-values); }
};

[[gnu::always_inline]] inline Lanes rounded_sum(const Lanes& a, const Lanes& b) {
  return Lanes(a.values + b.values);
}
[[gnu::always_inline]] inline Lanes rounded_product(const Lanes& a, const Lanes& b) {
  return Lanes(a.values * b.values);
}
[[gnu::always_inline]] inline Lanes rounded_quotient(const Lanes& a, const Lanes& b) {
  return Lanes(a.values / b.values);
}
[[gnu::always_inline]] inline Lanes fused(const Lanes& a, const Lanes& b, const Lanes& c) {
  // All four in one expression, which compilers make one instruction of: written lane by lane, sums
  // that a loop carries were taken apart and put together again in every round.
  const Lanes::Vector x = a.values, y = b.values, z = c.values;
  return Lanes(Lanes::Vector{__builtin_fma(x[0], y[0], z[0]), __builtin_fma(x[1], y[1], z[1]),
                             __builtin_fma(x[2], y[2], z[2]), __builtin_fma(x[3], y[3], z[3])});
}

}  // namespace strata
