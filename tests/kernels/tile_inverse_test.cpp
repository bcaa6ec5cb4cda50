// invert_factor and multiply_inverse of every backend: against inverses and products in long
// double.

#include <gtest/gtest.h>

#include <cmath>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "kernels/backend/backend.hpp"
#include "kernels/dense/formats_reference.hpp"
#include "kernels/dense/tile_inverse.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata {
namespace {

constexpr TileScales kInverseScales{.fp16 = 9, .fp8 = 5, .inverse = 6, .sum = 11};
constexpr TileScales kOfInverse{.fp16 = kInverseScales.inverse};

/// A block that travels to a device and back.
struct Block {
  BlockView view;
  std::vector<std::byte> bytes;
  Block(Element element, std::int64_t rows, std::int64_t cols)
      : bytes(static_cast<std::size_t>(rows * cols * bytes_of(element))) {
    view = {bytes.data(), rows, cols, rows, 0, 0, element};
  }
  Block(const Block&) = delete;  // the view is of the bytes
  Block& operator=(const Block&) = delete;
};

void run_on_blocks(const Backend& backend, const Operation& operation, Block& out, Block& in) {
  const KernelFunction kernel =
      backend.kernels().find(operation.name, {out.view.element, in.view.element});
  ASSERT_NE(kernel, nullptr);
  const auto device = backend.make_device(0, 256_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  for (Block* block : {&out, &in}) {
    memory.push_back(device->allocate(std::ssize(block->bytes)));
    queue->copy(memory.back().data(), block->bytes.data(), std::ssize(block->bytes),
                CopyDirection::host_to_device);
    views.push_back(block->view);
    views.back().data = memory.back().data();
  }
  kernel(*queue, {views, operation.operands}, {.variant = 0, .values = &kInverseScales});
  queue->copy(out.bytes.data(), memory[0].data(), std::ssize(out.bytes),
              CopyDirection::device_to_host);
  queue->synchronize();
}

/// A well-conditioned lower triangle; what is above it is not to be read.
void fill_factor(Block& l) {
  for (std::int64_t j = 0; j < l.view.cols; ++j) {
    for (std::int64_t i = 0; i < l.view.rows; ++i) {
      const double u = 2 * random_uniform(5, static_cast<std::uint64_t>(4096 * j + i)) - 1;
      const double below = u / std::sqrt(static_cast<double>(l.view.cols));
      set_element(l.view, {}, i, j, i == j ? 1 + 0.5 * u : i > j ? below : NAN);
    }
  }
}

TEST(TileInverse, IsThatOfTheFactor) {
  for (const Backend* backend : testing::all_of_them()) {
    for (const std::int64_t n : {1, 2, 31, 64, 65, 130}) {
      Block l(Element::fp64, n, n);
      fill_factor(l);
      Block u(Element::fp16x2, n, n);
      run_on_blocks(*backend, invert_factor, u, l);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < i; ++j)
          ASSERT_EQ(element_at(u.view, kOfInverse, i, j), 0) << backend->name();
        // L·Uᵀ = I, column i.
        for (std::int64_t r = 0; r < n; ++r) {
          long double sum = 0;
          double size = 0;
          for (std::int64_t k = 0; k <= r; ++k) {
            const double term = element_at(l.view, {}, r, k) * element_at(u.view, kOfInverse, i, k);
            sum += term;
            size += std::fabs(term);
          }
          ASSERT_NEAR(static_cast<double>(sum), r == i ? 1 : 0, 0x1p-21 * size + 1e-9)
              << backend->name() << " order " << n << " at " << r << "," << i;
        }
      }
    }
  }
}

TEST(TileInverse, ProductsAreThoseOfTheNumbersThatAreHeld) {
  for (const Backend* backend : testing::all_of_them()) {
    for (const Element element : {Element::fp64, Element::fp32}) {
      for (const auto& [m, n] :
           {std::pair<std::int64_t, std::int64_t>{1, 1}, {5, 3}, {64, 65}, {33, 130}, {200, 64}}) {
        Block l(Element::fp64, n, n);
        fill_factor(l);
        Block u(Element::fp16x2, n, n);
        run_on_blocks(reference_backend(), invert_factor, u, l);
        Block w(element, m, n);
        Block before(element, m, n);
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = 0; i < m; ++i) {
            const double value =
                2 * random_uniform(6, static_cast<std::uint64_t>(4096 * j + i)) - 1;
            set_element(w.view, {}, i, j, value);
            set_element(before.view, {}, i, j, value);
          }
        }
        run_on_blocks(*backend, multiply_inverse, w, u);
        for (std::int64_t j = 0; j < n; ++j) {
          for (std::int64_t i = 0; i < m; ++i) {
            long double sum = 0;
            double size = 0;
            for (std::int64_t k = 0; k < n; ++k) {
              const double term =
                  element_at(before.view, {}, i, k) * element_at(u.view, kOfInverse, k, j);
              sum += term;
              size += std::fabs(term);
            }
            const double rounding = 0x1p-21 + 0x1p-23 * (static_cast<double>(n) / 4 + 4);
            ASSERT_NEAR(element_at(w.view, {}, i, j), static_cast<double>(sum), rounding * size)
                << backend->name() << " " << m << " by " << n << " at " << i << "," << j;
          }
        }
      }
    }
  }
}

TEST(TileInverse, WhatIsTooLargeIsNotFinite) {
  for (const Backend* backend : testing::all_of_them()) {
    Block l(Element::fp64, 2, 2);
    set_element(l.view, {}, 0, 0, 1e-6);
    set_element(l.view, {}, 1, 0, 0);
    set_element(l.view, {}, 1, 1, 1);
    Block u(Element::fp16x2, 2, 2);
    run_on_blocks(*backend, invert_factor, u, l);
    Block w(Element::fp32, 1, 2);
    set_element(w.view, {}, 0, 0, 1);
    set_element(w.view, {}, 0, 1, 1);
    run_on_blocks(*backend, multiply_inverse, w, u);
    if (backend->name() == "reference") continue;  // its products have no planes to overflow
    EXPECT_FALSE(std::isfinite(element_at(w.view, {}, 0, 0))) << backend->name();
  }
}

}  // namespace
}  // namespace strata
