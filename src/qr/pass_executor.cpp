#include "qr/pass_executor.hpp"

#include <algorithm>
#include <cmath>

#include "session/budget.hpp"

namespace strata {

std::uint32_t wide_sums_of(WideSums asked, std::int64_t n, bool gpus) {
  constexpr std::int64_t kLeast = 20;
  if (asked != WideSums::automatic) return asked == WideSums::digits ? kDigitSums : kExtraction;
  return gpus && n >= kLeast ? kDigitSums : kExtraction;
}

std::uint32_t wide_sums_of(WideSums asked, std::int64_t n, const Machine& machine) {
  return wide_sums_of(asked, n,
                      std::all_of(machine.devices.begin(), machine.devices.end(),
                                  [](const DeviceModel& d) { return d.kind == DeviceKind::gpu; }));
}

std::int64_t pass_block_elements(std::int64_t m, std::int64_t n, Element element,
                                 const Machine& machine) {
  constexpr std::int64_t kMost = std::int64_t{1} << 23;
  constexpr std::int64_t kRowsMost = std::int64_t{1} << 19;  // half a bounce buffer of a column
  if (is_cpu(machine)) return kPassBlockElements;
  const auto devices = static_cast<std::int64_t>(machine.devices.size());
  const std::int64_t memory = smallest_memory(machine);
  std::int64_t elements = kMost;
  while (elements > kPassBlockElements &&
         (m * n < 8 * devices * elements || 16 * elements * bytes_of(element) > memory ||
          gram_block_rows(n, elements) > kRowsMost))
    elements /= 2;
  return elements;
}

void keep_larger(const std::vector<double>& of_block, double* largest) {
  for (std::size_t j = 0; j < of_block.size(); ++j) {
    if (std::isnan(of_block[j]) || of_block[j] > largest[j]) largest[j] = of_block[j];
  }
}

}  // namespace strata
