// laset of every backend: blocks of the identity wherever they lie.

#include "kernels/dense/laset.hpp"
#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

class LasetTest : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Every, LasetTest, ::testing::ValuesIn(every_backend()), name_of);

/// One task of a call for each place; the blocks come back, with the padding below their rows.
template <class T>
void run_laset(const Backend& backend, std::vector<Matrix<T>>& blocks,
               const std::vector<std::pair<std::int64_t, std::int64_t>>& places,
               std::uint32_t variant = 0) {
  const KernelFunction kernel = backend.kernels().find(laset.name, Elements(1, element_of<T>));
  ASSERT_NE(kernel, nullptr);
  const auto device = backend.make_device(0, 64_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  for (std::size_t c = 0; c < blocks.size(); ++c) {
    memory.push_back(device->allocate(blocks[c].bytes()));
    queue->copy(memory.back().data(), blocks[c].data.data(), blocks[c].bytes(),
                CopyDirection::host_to_device);
    views.push_back({memory.back().data(), blocks[c].rows, blocks[c].cols, blocks[c].ld,
                     places[c].first, places[c].second});
  }
  try {
    kernel(*queue, {views, laset.operands}, {.variant = variant});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  for (std::size_t c = 0; c < blocks.size(); ++c)
    queue->copy(blocks[c].data.data(), views[c].data, blocks[c].bytes(),
                CopyDirection::device_to_host);
  queue->synchronize();
}

TEST_P(LasetTest, IsTheIdentityAtEveryPlace) {
  dispatch_native(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    std::vector<Matrix<T>> blocks;
    std::vector<Matrix<T>> expected;
    std::vector<std::pair<std::int64_t, std::int64_t>> places;
    for (const std::int64_t rows : {1, 5, 64, 255, 256, 257, 600}) {
      for (const std::int64_t cols : {1, 3, 70}) {
        for (const std::int64_t col : {0, 7, 250, 1000}) {
          const std::int64_t row = 8;
          places.emplace_back(row, col);
          blocks.push_back(Matrix<T>(rows, cols, 2, [](auto, auto) { return 5; }));
          expected.push_back(Matrix<T>(
              rows, cols, 2, [&](auto i, auto j) { return i + row == j + col ? 1.0 : 0.0; }));
        }
      }
    }
    run_laset(*GetParam().backend, blocks, places);
    for (std::size_t c = 0; c < blocks.size(); ++c)
      EXPECT_TRUE(same_values(blocks[c], expected[c])) << c;
  });
}

TEST_P(LasetTest, HasNoVariants) {
  dispatch_native(GetParam().precision, [](auto type) {
    using T = typename decltype(type)::type;
    std::vector<Matrix<T>> blocks{Matrix<T>(2, 2, 0, [](auto, auto) { return 5; })};
    EXPECT_THROW(run_laset(*GetParam().backend, blocks, {{0, 0}}, 1), Error);
  });
}

}  // namespace
}  // namespace strata::testing
