// column_squares on the CPU. Partial sums beside each other, added as a tree at the end: the
// compiler makes vectors of them, which it may not of a single sum; and rounding grows with a part
// of the rows only.

#include <array>

#include "kernels/backend/operand.hpp"
#include "kernels/backend/partial_sums.hpp"
#include "kernels/dense/column_squares.hpp"

namespace strata {
namespace {

template <class T>
double sum_of_squares(const T* w, std::int64_t rows) {
  constexpr auto kStride = static_cast<std::int64_t>(kPartialSums);
  std::array<double, kPartialSums> part{};
  std::int64_t i = 0;
  for (; i + kStride <= rows; i += kStride) {
    for (std::size_t p = 0; p < kPartialSums; ++p) {
      const auto value = static_cast<double>(w[i + static_cast<std::int64_t>(p)]);
      part[p] += value * value;
    }
  }
  for (std::size_t p = 0; i < rows; ++i, ++p) {
    const auto value = static_cast<double>(w[i]);
    part[p] += value * value;
  }
  add_as_tree(part);
  return part[0];
}

}  // namespace

template <class T>
void column_squares_host(Queue& queue, const KernelCalls& calls,
                         const KernelParameters& parameters) {
  require_variant(column_squares, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto s = matrix_of<double>(x[0]);
    const auto w = matrix_of<const T>(x[1]);
    for (std::int64_t j = 0; j < w.cols; ++j) s(j, 0) += sum_of_squares(w.column(j), w.rows);
  });
}

template void column_squares_host<double>(Queue&, const KernelCalls&, const KernelParameters&);
template void column_squares_host<float>(Queue&, const KernelCalls&, const KernelParameters&);

}  // namespace strata
