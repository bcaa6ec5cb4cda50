#pragma once
// Runs a kernel of any backend on blocks of any elements, several calls at once.
//
// Contract: as kernel_harness.hpp; results may be asked for in many digits.

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "scalar/double_double.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {

using Many = boost::multiprecision::number<
    boost::multiprecision::cpp_bin_float<400, boost::multiprecision::digit_base_2>,
    boost::multiprecision::et_off>;

/// An operand of any element, three rows of padding below it where it has more than one column.
struct Block {
  Element element = Element::fp64;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 1;
  std::vector<std::byte> bytes;

  Block() = default;
  Block(Element e, std::int64_t r, std::int64_t c)
      : element(e),
        rows(r),
        cols(c),
        ld(r + 3),
        bytes(static_cast<std::size_t>(ld * c * bytes_of(e)), std::byte{0x7b}) {}
  template <class T>
  [[nodiscard]] MatrixView<T> as() {
    EXPECT_EQ(element_of<T>, element);
    return {reinterpret_cast<T*>(bytes.data()), rows, cols, ld};
  }
  [[nodiscard]] double hi(std::int64_t i, std::int64_t j) const {
    const std::byte* at = bytes.data() + (i + j * ld) * bytes_of(element);
    if (element == Element::fp32) return static_cast<double>(*reinterpret_cast<const float*>(at));
    return *reinterpret_cast<const double*>(at);
  }
  [[nodiscard]] Many many(std::int64_t i, std::int64_t j) const {
    if (element != Element::dd) return Many(hi(i, j));
    const auto* at = reinterpret_cast<const double*>(bytes.data()) + 2 * (i + j * ld);
    return Many(at[0]) + Many(at[1]);
  }
};

template <class F>
Block make(Element element, std::int64_t rows, std::int64_t cols, F value) {
  Block block(element, rows, cols);
  for (std::int64_t j = 0; j < cols; ++j) {
    for (std::int64_t i = 0; i < rows; ++i) {
      const double x = value(i, j);
      if (element == Element::fp64) block.as<double>()(i, j) = x;
      if (element == Element::fp32) block.as<float>()(i, j) = static_cast<float>(x);
      if (element == Element::dd) {
        const double low =
            std::ldexp(random_uniform(99, static_cast<std::uint64_t>(i + 997 * j)), -55);
        block.as<DoubleDouble>()(i, j) = fast_two_sum(x, x * low);
      }
    }
  }
  return block;
}

/// Runs an operation for several calls; its operands come back.
inline void run(const Backend& backend, const Operation& operation, std::vector<Block>& blocks,
                std::uint32_t variant = 0) {
  Elements elements;
  for (int i = 0; i < operation.operands; ++i)
    elements.push_back(blocks[static_cast<std::size_t>(i)].element);
  const KernelFunction kernel = backend.kernels().find(operation.name, elements);
  ASSERT_NE(kernel, nullptr) << operation.name << " in " << to_string(elements);
  const auto device = backend.make_device(0, 256_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  for (Block& block : blocks) {
    memory.push_back(device->allocate(std::max<std::int64_t>(std::ssize(block.bytes), 1)));
    queue->copy(memory.back().data(), block.bytes.data(), std::ssize(block.bytes),
                CopyDirection::host_to_device);
    views.push_back({.data = memory.back().data(),
                     .rows = block.rows,
                     .cols = block.cols,
                     .ld = block.ld,
                     .element = block.element});
  }
  try {
    kernel(*queue, {views, operation.operands}, {.variant = variant});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    queue->copy(blocks[i].bytes.data(), views[i].data, std::ssize(blocks[i].bytes),
                CopyDirection::device_to_host);
  queue->synchronize();
}

/// Magnitudes over many octaves, so that low parts and exponents of tiles matter.
inline double uneven(std::int64_t i, std::int64_t j) {
  return std::ldexp(uniform(5, i, j), static_cast<int>((i * 7 + j * 3) % 23) - 11);
}
inline double power(std::int64_t j, std::int64_t) {
  return std::ldexp(1.0, static_cast<int>(j % 5) - 2);
}

/// Upper triangular and well-conditioned; NaN below, which is not read.
inline Block triangle(Element element, std::int64_t n) {
  return make(element, n, n, [](auto i, auto j) {
    if (i > j) return std::numeric_limits<double>::quiet_NaN();
    return i == j ? 1.5 + uniform(6, i, j) : uniform(7, i, j) / 4;
  });
}

}  // namespace strata::testing
