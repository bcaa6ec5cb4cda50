#pragma once
// LogSum: a sum of logarithms that does not depend on the order or grouping of its terms.
//
// Contract: each term is rounded to a multiple of 2⁻⁵²; these are added exactly, as integers. Terms
// are finite and below 2³¹ in size, at most 2³¹ of them. So parts of a factor that different
// devices, or branches, have made add up to the same log-determinant, however they are cut. The
// rounding of a term is that of a double between 1 and 2: the logarithm itself is not known better.

#include <cstdint>

namespace strata {

class LogSum {
 public:
  constexpr LogSum() = default;

  constexpr void add(double term) {
    const auto whole = static_cast<std::int64_t>(term);  // towards zero: what is left is exact
    const double rest = (term - static_cast<double>(whole)) * kUnits;
    whole_ += whole;
    add_parts(static_cast<std::int64_t>(rest < 0 ? rest - 0.5 : rest + 0.5));
  }
  constexpr void add(const LogSum& other) {
    whole_ += other.whole_;
    add_parts(other.parts_);
  }

  /// The largest integer that is not above the sum, and what is left; both are exact.
  [[nodiscard]] constexpr double whole() const { return static_cast<double>(whole_); }
  [[nodiscard]] constexpr double fraction() const { return static_cast<double>(parts_) / kUnits; }
  [[nodiscard]] constexpr double value() const { return whole() + fraction(); }

 private:
  static constexpr int kBits = 52;
  static constexpr double kUnits = static_cast<double>(std::int64_t{1} << kBits);

  constexpr void add_parts(std::int64_t parts) {
    parts_ += parts;
    whole_ += parts_ >> kBits;
    parts_ &= (std::int64_t{1} << kBits) - 1;
  }

  std::int64_t whole_ = 0;
  std::int64_t parts_ = 0;  ///< of 2⁻⁵², 0 … 2⁵² − 1
};

}  // namespace strata
