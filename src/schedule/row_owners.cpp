#include "schedule/row_owners.hpp"

#include <algorithm>

#include "schedule/task.hpp"

namespace strata {
namespace {

/// Rates closer than this are alike: two measurements of one device differ by as much.
constexpr double kAlike = 0.002;

bool are_alike(const std::vector<double>& rates) {
  if (rates.empty()) return true;
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  return *least <= 0 || *most <= *least * (1 + kAlike);
}

}  // namespace

RowOwners::RowOwners(std::int64_t rows, int devices, const std::vector<double>& rates)
    : owners_(static_cast<std::size_t>(rows)), last_(static_cast<std::size_t>(devices), -1) {
  std::vector<double> work(static_cast<std::size_t>(devices), 0.0);
  const bool alike = are_alike(rates);
  for (std::int64_t row = rows; row-- > 0;) {
    auto owner = static_cast<std::size_t>(device_of_row(row, devices));
    if (!alike) {
      const double more = static_cast<double>(row + 1) * static_cast<double>(row + 1);
      const auto end = [&](std::size_t d) { return (work[d] + more) / rates[d]; };
      owner = 0;
      for (std::size_t d = 1; d < work.size(); ++d) {
        if (end(d) < end(owner)) owner = d;
      }
      work[owner] += more;
    }
    owners_[static_cast<std::size_t>(row)] = static_cast<std::uint16_t>(owner);
    last_[owner] = std::max(last_[owner], row);
  }
}

}  // namespace strata
