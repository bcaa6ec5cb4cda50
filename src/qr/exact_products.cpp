#include "qr/exact_products.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace strata {
namespace {

class ExactSum {
 public:
  void add_product(double x, double y) {
    if (x == 0 || y == 0) return;
    __extension__ using Wide = unsigned __int128;
    int of_x = 0;
    int of_y = 0;
    const Wide whole = static_cast<Wide>(mantissa(x, of_x)) * mantissa(y, of_y);
    const int place = of_x + of_y + kPoint;
    const int shift = place % kLimbBits;
    const std::int64_t sign = (x < 0) == (y < 0) ? 1 : -1;
    auto limb = static_cast<std::size_t>(place / kLimbBits);
    for (Wide left = whole; left != 0; left >>= kLimbBits, ++limb) {
      const std::uint64_t part = (static_cast<std::uint64_t>(left) & kLimb) << shift;
      limbs_[limb] += sign * static_cast<std::int64_t>(part & kLimb);
      limbs_[limb + 1] += sign * static_cast<std::int64_t>(part >> kLimbBits);
    }
    if (++added_ == kAddedMax) carry();
  }
  [[nodiscard]] bool is_zero() {
    carry();
    return std::ranges::all_of(limbs_, [](std::int64_t limb) { return limb == 0; });
  }

 private:
  static constexpr int kLimbBits = 32;
  static constexpr std::uint64_t kLimb = 0xffffffff;
  static constexpr int kPoint = 2 * 1126;             ///< the least double is 2^52·2^-1126
  static constexpr std::int64_t kAddedMax = 1 << 28;  ///< limbs of 64 bits hold so many

  static std::uint64_t mantissa(double x, int& exponent) {
    const double part = std::frexp(std::abs(x), &exponent);
    exponent -= 53;
    return static_cast<std::uint64_t>(std::ldexp(part, 53));
  }
  /// All limbs but the last get 32 bits; the last has the sign.
  void carry() {
    for (std::size_t i = 0; i + 1 < limbs_.size(); ++i) {
      limbs_[i + 1] += limbs_[i] >> kLimbBits;
      limbs_[i] &= static_cast<std::int64_t>(kLimb);
    }
    added_ = 0;
  }

  std::array<std::int64_t, 140> limbs_{};  ///< of 32 bits, times 2^(32·i − kPoint)
  std::int64_t added_ = 0;
};

}  // namespace

bool is_orthogonal(const TallInput<double>& a, const TallInput<double>& b, std::int64_t k,
                   const std::vector<std::int64_t>& without) {
  for (std::int64_t j = 0; j < a.cols(); ++j) {
    if (std::ranges::binary_search(without, j)) continue;
    ExactSum sum;
    for (std::int64_t i = 0; i < a.rows(); ++i) sum.add_product(a(i, j), b(i, k));
    if (!sum.is_zero()) return false;
  }
  return true;
}

}  // namespace strata
