// subtract_columns: by hand, against long double, and the bits of the reference.

#include "kernels/tall/subtract_columns.hpp"

#include <array>

#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

template <class T>
Matrix<T> subtracted(const Backend& backend, const Matrix<T>& x, const Matrix<T>& y,
                     const Matrix<double>& s, std::uint32_t variant = 0) {
  const KernelFunction kernel =
      backend.kernels().find(subtract_columns.name, {element_of<T>, element_of<T>, Element::fp64});
  const auto device = backend.make_device(0, 64_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  const auto load = [&](const auto& matrix, Element element) {
    memory.push_back(device->allocate(matrix.bytes()));
    queue->copy(memory.back().data(), matrix.data.data(), matrix.bytes(),
                CopyDirection::host_to_device);
    views.push_back({memory.back().data(), matrix.rows, matrix.cols, matrix.ld, 0, 0, element});
  };
  load(x, element_of<T>);
  load(y, element_of<T>);
  load(s, Element::fp64);
  try {
    kernel(*queue, {views, subtract_columns.operands}, {.variant = variant});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  Matrix<T> result = x;
  queue->copy(result.data.data(), views[0].data, result.bytes(), CopyDirection::device_to_host);
  queue->synchronize();
  return result;
}

template <class T>
Matrix<T> block(std::uint64_t seed, std::int64_t rows, std::int64_t cols) {
  return {rows, cols, 3, [&](auto i, auto j) { return uniform(seed, i, j); }};
}

class SubtractColumns : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, SubtractColumns, ::testing::ValuesIn(every_backend()), name_of);

TEST_P(SubtractColumns, ByHand) {
  each([]<class T>(Runner&, std::type_identity<T>) {
    const Matrix<T> x(3, 2, 1, [](auto i, auto j) { return 10.0 * static_cast<double>(i + j); });
    const Matrix<T> y(3, 2, 1, [](auto i, auto j) { return static_cast<double>(i + 3 * j + 1); });
    const Matrix<double> s(2, 2, 0, [](auto i, auto j) { return static_cast<double>(i - j); });
    const Matrix<T> got = subtracted(*GetParam().backend, x, y, s);
    // S = (0 −1; 1 0): the first column loses y₂, the second gains y₁.
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got(i, 0), 10 * i - (i + 4));
      EXPECT_EQ(got(i, 1), 10 * (i + 1) + (i + 1));
    }
    EXPECT_THROW((void)subtracted(*GetParam().backend, x, y, s, 1), Error);
  });
}

TEST_P(SubtractColumns, HasTheBitsOfTheReferenceAndIsRight) {
  each([]<class T>(Runner&, std::type_identity<T>) {
    for (const auto& [rows, p, q] : std::vector<std::array<std::int64_t, 3>>{
             {1, 1, 1}, {31, 2, 5}, {32, 3, 7}, {33, 4, 1}, {300, 17, 33}}) {
      const Matrix<T> x = block<T>(1, rows, p);
      const Matrix<T> y = block<T>(2, rows, q);
      const Matrix<double> s = block<double>(3, q, p);
      const Matrix<T> got = subtracted(*GetParam().backend, x, y, s);
      EXPECT_TRUE(same_bits(got, subtracted(reference_backend(), x, y, s)));
      for (std::int64_t k = 0; k < p; ++k) {
        for (std::int64_t r = 0; r < rows; ++r) {
          long double exact = x(r, k);
          for (std::int64_t i = 0; i < q; ++i) exact -= static_cast<long double>(y(r, i)) * s(i, k);
          const double unit = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
          EXPECT_NEAR(static_cast<double>(got(r, k)), static_cast<double>(exact),
                      unit * static_cast<double>(q + 1));
        }
      }
    }
  });
}

}  // namespace
}  // namespace strata::testing
