// Fronts on every backend that has them, against elimination by the definition.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/dense/potrf.hpp"
#include "kernels/fronts/front.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

/// A block of a call: numbers or places, with its place in a front.
struct FrontOperand {
  std::vector<double> numbers;
  std::vector<std::int32_t> places;
  BlockExtent extent;

  static FrontOperand of(std::vector<double> values, BlockExtent x) {
    return {std::move(values), {}, x};
  }
  static FrontOperand of(std::vector<std::int32_t> list) {
    const auto count = static_cast<std::int64_t>(list.size());
    return {{}, std::move(list), {0, 0, count, 1}};
  }
  [[nodiscard]] bool is_places() const { return !places.empty(); }
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(is_places() ? 4 * places.size() : 8 * numbers.size());
  }
  std::byte* data() {
    return is_places() ? reinterpret_cast<std::byte*>(places.data())
                       : reinterpret_cast<std::byte*>(numbers.data());
  }
};

/// One call; what the kernel wrote comes back.
void run_one(const Backend& backend, const Operation& operation,
             std::vector<FrontOperand>& operands, std::uint32_t variant = 0) {
  Elements elements;
  for (const FrontOperand& x : operands)
    elements.push_back(x.is_places() ? Element::int32 : Element::fp64);
  const KernelFunction kernel = backend.kernels().find(operation.name, elements);
  ASSERT_NE(kernel, nullptr);
  const auto device = backend.make_device(0, 64_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  for (FrontOperand& x : operands) {
    memory.push_back(device->allocate(x.bytes()));
    queue->copy(memory.back().data(), x.data(), x.bytes(), CopyDirection::host_to_device);
    views.push_back({memory.back().data(), x.extent.rows, x.extent.cols,
                     std::max<std::int64_t>(x.extent.rows, 1), x.extent.row, x.extent.col,
                     elements[static_cast<int>(views.size())]});
  }
  kernel(*queue, {views, operation.operands}, {.variant = variant});
  for (std::size_t i = 0; i < operands.size(); ++i)
    queue->copy(operands[i].data(), memory[i].data(), operands[i].bytes(),
                CopyDirection::device_to_host);
  queue->synchronize();
}

/// A backend without these kernels is left out.
std::vector<const Backend*> backends_with_fronts() {
  std::vector<const Backend*> list = all_of_them();
  std::erase_if(list, [](const Backend* backend) {
    return backend->kernels().find(clear_block.name, {Element::fp64}) == nullptr;
  });
  return list;
}

std::vector<double> random_numbers(std::int64_t count, std::uint64_t seed) {
  std::vector<double> v(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = 2 * random_uniform(seed, i) - 1;
  return v;
}

TEST(Front, ScattersAndClears) {
  for (const Backend* backend : backends_with_fronts()) {
    const std::vector<double> garbage(35, std::nan(""));
    std::vector<FrontOperand> call{FrontOperand::of(garbage, {3, 1, 7, 5}),
                                   FrontOperand::of({1, 2, 3}, {0, 0, 3, 1}),
                                   FrontOperand::of({0, 8, 34})};
    run_one(*backend, scatter_entries, call);
    std::vector<double> expected(35, 0.0);
    expected[0] = 1, expected[8] = 2, expected[34] = 3;
    EXPECT_EQ(call[0].numbers, expected);
    std::vector<FrontOperand> clear{FrontOperand::of(garbage, {3, 3, 7, 5})};
    run_one(*backend, clear_block, clear);
    EXPECT_EQ(clear[0].numbers, std::vector<double>(35, 0.0));
  }
}

/// Updates of orders 5 and 3 of a group, and the parts of a target anywhere in a front of order 12.
TEST(Front, AddsUpdatesAtTheirPlaces) {
  const std::array<std::vector<std::int32_t>, 2> places{std::vector<std::int32_t>{0, 2, 3, 7, 11},
                                                        std::vector<std::int32_t>{1, 2, 8}};
  const std::vector<double> u = random_numbers(25 + 9, 1);
  std::vector<std::int32_t> list{2, 0, 5, 3};
  for (const auto& one : places) list.insert(list.end(), one.begin(), one.end());
  for (const Backend* backend : backends_with_fronts()) {
    for (const BlockExtent x : {BlockExtent{0, 0, 12, 12},
                                {0, 0, 12, 3},
                                {3, 3, 9, 9},
                                {4, 0, 5, 4},
                                {7, 2, 5, 3},
                                {9, 4, 2, 4}}) {
      std::vector<double> expected = random_numbers(x.rows * x.cols, 2);
      std::vector<FrontOperand> call{FrontOperand::of(expected, x),
                                     FrontOperand::of(u, {0, 0, 34, 1}), FrontOperand::of(list)};
      const double* part = u.data();
      for (const auto& one : places) {
        const auto r = static_cast<std::int64_t>(one.size());
        for (std::int64_t j = 0; j < r; ++j) {
          for (std::int64_t i = j; i < r; ++i) {
            const std::int64_t row = one[static_cast<std::size_t>(i)] - x.row;
            const std::int64_t col = one[static_cast<std::size_t>(j)] - x.col;
            if (row < 0 || col < 0 || row >= x.rows || col >= x.cols) continue;
            expected[static_cast<std::size_t>(row + col * x.rows)] += part[i + j * r];
          }
        }
        part += r * r;
      }
      run_one(*backend, add_update, call);
      EXPECT_EQ(call[0].numbers, expected) << x.row << ' ' << x.col;
    }
  }
}

/// Tiles of one update give what the whole gives.
TEST(Front, AddsTilesOfAnUpdate) {
  const std::vector<std::int32_t> places{0, 2, 3, 7, 11};
  const std::vector<double> u = random_numbers(25, 3);
  const std::int64_t w = 4;  // columns of the front before its update
  std::vector<std::int32_t> list{1, static_cast<std::int32_t>(w), 5};
  list.insert(list.end(), places.begin(), places.end());
  for (const Backend* backend : backends_with_fronts()) {
    const BlockExtent x{0, 0, 12, 12};
    std::vector<FrontOperand> whole{FrontOperand::of(std::vector<double>(144), x),
                                    FrontOperand::of(u, {w, w, 5, 5}), FrontOperand::of(list)};
    run_one(*backend, add_update, whole);
    std::vector<double> sum(144);
    const std::array<std::int64_t, 3> cuts{0, 2, 5};
    for (std::size_t tj = 0; tj < 2; ++tj) {
      for (std::size_t ti = tj; ti < 2; ++ti) {
        const std::int64_t rows = cuts[ti + 1] - cuts[ti];
        const std::int64_t cols = cuts[tj + 1] - cuts[tj];
        std::vector<double> tile;
        for (std::int64_t j = 0; j < cols; ++j)
          for (std::int64_t i = 0; i < rows; ++i)
            tile.push_back(u[static_cast<std::size_t>(cuts[ti] + i + (cuts[tj] + j) * 5)]);
        std::vector<FrontOperand> call{
            FrontOperand::of(sum, x),
            FrontOperand::of(tile, {w + cuts[ti], w + cuts[tj], rows, cols}),
            FrontOperand::of(list)};
        run_one(*backend, add_update, call, kTileOfUpdate);
        sum = call[0].numbers;
      }
    }
    EXPECT_EQ(sum, whole[0].numbers);
  }
}

TEST(Front, IsFactored) {
  for (const Backend* backend : backends_with_fronts()) {
    for (const auto& [w, r] : std::array<std::array<std::int64_t, 2>, 6>{
             {{1, 1}, {2, 7}, {5, 1}, {17, 33}, {64, 3}, {130, 70}}}) {
      const std::int64_t order = w + r;
      std::vector<double> full = random_numbers(order * order, 5);  // lower triangle
      for (std::int64_t j = 0; j < order; ++j)
        full[static_cast<std::size_t>(j + j * order)] = static_cast<double>(order);
      std::vector<double> panel(full.begin(), full.begin() + order * w);
      std::vector<double> update;
      for (std::int64_t j = w; j < order; ++j)
        for (std::int64_t i = w; i < order; ++i)
          update.push_back(i >= j ? full[static_cast<std::size_t>(i + j * order)] : 77.0);
      std::vector<FrontOperand> call{FrontOperand::of(panel, {0, 0, order, w}),
                                     FrontOperand::of(update, {w, w, r, r}),
                                     FrontOperand::of({9, 9, 9, 9}, {0, 0, kStatusRows, 1})};
      run_one(*backend, factor_front, call);
      const auto a = [&](std::int64_t i, std::int64_t j) -> double& {
        return full[static_cast<std::size_t>(i + j * order)];
      };
      for (std::int64_t k = 0; k < w; ++k) {
        for (std::int64_t i = k; i < order; ++i) a(i, k) /= i == k ? std::sqrt(a(k, k)) : a(k, k);
        for (std::int64_t j = k + 1; j < order; ++j)
          for (std::int64_t i = j; i < order; ++i) a(i, j) -= a(i, k) * a(j, k);
      }
      for (std::int64_t j = 0; j < order; ++j) {
        for (std::int64_t i = j; i < order; ++i) {
          const double found = j < w
                                   ? call[0].numbers[static_cast<std::size_t>(i + j * order)]
                                   : call[1].numbers[static_cast<std::size_t>(i - w + (j - w) * r)];
          ASSERT_NEAR(found, a(i, j), 1e-12 * static_cast<double>(order)) << i << ' ' << j;
        }
        for (std::int64_t i = w; i < j && j >= w; ++i)
          EXPECT_EQ(call[1].numbers[static_cast<std::size_t>(i - w + (j - w) * r)], 77.0);
      }
      EXPECT_EQ(call[2].numbers[0], -1);
    }
  }
}

/// Fronts on a device, made by all operations in turn: all calls of each at once, or one by one.
class ManyFronts {
 public:
  explicit ManyFronts(const Backend& backend)
      : backend_(backend),
        device_(backend.make_device(0, 64_MiB)),
        queue_(device_->make_queue(QueuePriority::normal)) {}

  /// A front of w columns and r rows below, whose child's update has its order.
  void add(std::int64_t w, std::int64_t r, std::uint64_t seed) {
    const std::int64_t order = w + r;
    const BlockView panel = block(order, w, 0, std::vector<double>(size(order * w), std::nan("")));
    const BlockView update = block(r, r, w, std::vector<double>(size(r * r), std::nan("")));
    std::vector<std::int32_t> places;
    for (std::int64_t j = 0; j < w; ++j)
      places.push_back(static_cast<std::int32_t>(j * (order + 1)));
    const std::vector<double> values(places.size(), 70.0 + static_cast<double>(seed));
    scattered_.insert(scattered_.end(), {panel, block(w, 1, 0, values), block(w, 1, 0, places)});
    cleared_.push_back(update);
    std::vector<std::int32_t> list{1, 0, static_cast<std::int32_t>(order)};
    for (std::int64_t k = 0; k < order; ++k) list.push_back(static_cast<std::int32_t>(k));
    const BlockView child = block(order, order, 0, random_numbers(order * order, seed));
    const BlockView rows = block(std::ssize(list), 1, 0, list);
    for (const BlockView& x : {panel, update}) added_.insert(added_.end(), {x, child, rows});
    factored_.insert(
        factored_.end(),
        {panel, update, block(kStatusRows, 1, 0, std::vector<double>(kStatusRows, 9.0))});
  }

  /// Panels, updates and statuses, of squares the lower triangle.
  std::vector<double> results(bool together) {
    carry_out(scatter_entries, scattered_, together);
    carry_out(clear_block, cleared_, together);
    carry_out(add_update, added_, together);
    carry_out(factor_front, factored_, together);
    std::vector<double> all;
    for (const BlockView& x : factored_) {
      std::vector<double> one(size(x.rows * x.cols));
      queue_->copy(one.data(), x.data, x.rows * x.cols * 8, CopyDirection::device_to_host);
      queue_->synchronize();
      for (std::int64_t k = 0; k < x.rows * x.cols; ++k)
        if (x.rows != x.cols || k % x.rows >= k / x.rows) all.push_back(one[size(k)]);
    }
    return all;
  }

 private:
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

  template <class T>
  BlockView block(std::int64_t rows, std::int64_t cols, std::int64_t at,
                  const std::vector<T>& data) {
    const std::int64_t bytes = rows * cols * std::int64_t{sizeof(T)};
    memory_.push_back(device_->allocate(bytes));
    queue_->copy(memory_.back().data(), data.data(), bytes, CopyDirection::host_to_device);
    queue_->synchronize();
    const Element element = sizeof(T) == 8 ? Element::fp64 : Element::int32;
    return {memory_.back().data(), rows, cols, rows, at, at, element};
  }

  void carry_out(const Operation& operation, const std::vector<BlockView>& views, bool together) {
    const std::size_t count = operation.operands;
    Elements elements;
    for (std::size_t k = 0; k < count; ++k) elements.push_back(views[k].element);
    const KernelFunction kernel = backend_.kernels().find(operation.name, elements);
    const std::size_t step = together ? views.size() : count;
    for (std::size_t k = 0; k < views.size(); k += step)
      kernel(*queue_, {std::span(views).subspan(k, step), operation.operands}, {});
  }

  const Backend& backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
  std::vector<Buffer> memory_;
  std::vector<BlockView> scattered_, cleared_, added_, factored_;
};

/// Small fronts and others, more than a launch takes: each has the bits that it has alone.
TEST(Front, CallsOfOneTaskAreWhatTheyAreAlone) {
  const std::vector<std::array<std::int64_t, 2>> shapes{
      {3, 9}, {40, 30}, {1, 63}, {5, 59}, {63, 1}};
  for (const Backend* backend : backends_with_fronts()) {
    ManyFronts fronts(*backend);
    for (std::size_t c = 0; c < 61; ++c)
      fronts.add(shapes[c % shapes.size()][0], shapes[c % shapes.size()][1], c);
    for (std::size_t c = 0; c < 30; ++c) fronts.add(2 + static_cast<std::int64_t>(c), 4, c);
    const std::vector<double> expected = fronts.results(false);
    const std::vector<double> found = fronts.results(true);
    ASSERT_EQ(found.size(), expected.size());
    ASSERT_EQ(std::memcmp(found.data(), expected.data(), 8 * found.size()), 0) << backend->name();
    EXPECT_TRUE(std::none_of(found.begin(), found.end(), [](double v) { return std::isnan(v); }));
  }
}

TEST(Front, SaysWhichColumnFails) {
  for (const Backend* backend : backends_with_fronts()) {
    std::vector<FrontOperand> call{
        FrontOperand::of({1, 0, 0, 0, 0, 4, 2, 2, 0, 0, 0.5, 1}, {0, 0, 4, 3}),
        FrontOperand::of({1}, {3, 3, 1, 1}),
        FrontOperand::of({9, 9, 9, 9}, {0, 0, kStatusRows, 1})};
    run_one(*backend, factor_front, call);
    EXPECT_EQ(call[2].numbers[0], 2);
    EXPECT_EQ(call[2].numbers[1], -0.5);
  }
}

}  // namespace
}  // namespace strata::testing
