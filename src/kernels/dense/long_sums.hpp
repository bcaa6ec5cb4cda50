#pragma once
// LongSums: sums of products with twice the digits, of real and of complex numbers.
//
// Contract: W is double or std::complex<double>, whose parts are summed up each for itself; factors
// are W or as narrow as W's parts in fp32. The bits are the same on every processor. Threads may
// change different sums at once. Throws nothing but std::bad_alloc.

#include <array>
#include <cstdint>
#include <vector>

#include "scalar/complex.hpp"

namespace strata {

/// A column of numbers, its real and imaginary parts apart and as wide as sums are.
template <class W>
class SplitColumn {
 public:
  static constexpr std::size_t kParts = is_complex_v<W> ? 2 : 1;

  /// The parts of x, which outlives this: a column of doubles is not copied.
  template <class T>
  void split(const T* x, std::int64_t count);
  [[nodiscard]] const double* part(std::size_t k) const { return parts_[k]; }

 private:
  std::array<const double*, kParts> parts_{};
  std::array<std::vector<double>, kParts> copies_{};
};

template <class W>
class LongSums {
 public:
  /// All are zero.
  explicit LongSums(std::int64_t count);

  void set(std::int64_t i, const W& value);
  void add(const LongSums& other);
  [[nodiscard]] W rounded(std::int64_t i) const;

  /// sum_i ← sum_i − a_(i − first)·x for i = first … first + count − 1.
  void subtract_multiple(const SplitColumn<W>& a, const W& x, std::int64_t first,
                         std::int64_t count);
  /// sum_i ← sum_i − Σ a_k·x_(skip + k) over `count` numbers, or their conjugates if `conjugate`.
  void subtract_dot(std::int64_t i, const SplitColumn<W>& a, bool conjugate,
                    const SplitColumn<W>& x, std::int64_t skip, std::int64_t count);

 private:
  std::int64_t count_;
  std::vector<double> values_;  // high parts of all sums, low parts; then those of imaginary parts

  [[nodiscard]] double* high(std::size_t part) {
    return values_.data() + 2 * static_cast<std::int64_t>(part) * count_;
  }
  [[nodiscard]] const double* high(std::size_t part) const {
    return values_.data() + 2 * static_cast<std::int64_t>(part) * count_;
  }
  [[nodiscard]] double* low(std::size_t part) { return high(part) + count_; }
  [[nodiscard]] const double* low(std::size_t part) const { return high(part) + count_; }
};

}  // namespace strata
