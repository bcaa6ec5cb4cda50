// Big potrf of every backend in every variant and blocking: backward error, graded matrices, exact
// failing columns at the edges of tiles, and what must not be read or written. A backend that
// blocks in one way only ignores the choice and runs once.

#include <cblas.h>

#include <array>

#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/nan.hpp"

namespace strata::testing {
namespace {

struct VariantParameter {
  KernelParameter kernel;
  PotrfOptions options;
};
void PrintTo(const VariantParameter& parameter, std::ostream* stream) {
  PrintTo(parameter.kernel, stream);
}

std::string name_of_variant(const ::testing::TestParamInfo<VariantParameter>& info) {
  constexpr std::array<const char*, 4> kNames{"automatic", "fused", "left", "right"};
  const PotrfOptions& o = info.param.options;
  const char* variant = o.variant == PotrfVariant::exclusive
                            ? "exclusive"
                            : kNames[static_cast<std::size_t>(o.variant)];
  return info.param.kernel.backend->name() + "_" +
         std::string(to_string(info.param.kernel.precision)) + "_" + variant + "_ib" +
         std::to_string(o.ib) + "_recnb" + std::to_string(o.recnb) + "_nb" + std::to_string(o.nb);
}

std::vector<PotrfOptions> every_blocking() {
  std::vector<PotrfOptions> all{PotrfOptions{}};
  for (const int recnb : {64, 128}) {
    for (const int ib : {4, 8}) {
      all.push_back({PotrfVariant::fused, ib, recnb, 0});
      all.push_back({PotrfVariant::exclusive, ib, recnb, 0});
      all.push_back({PotrfVariant::left, ib, recnb, 128});
      all.push_back({PotrfVariant::right, ib, recnb, 128});
    }
  }
  for (const int nb : {256, 512}) {
    all.push_back({PotrfVariant::left, 0, 0, nb});
    all.push_back({PotrfVariant::right, 0, 0, nb});
  }
  return all;
}

std::vector<VariantParameter> every_variant() {
  std::vector<VariantParameter> parameters;
  for (const KernelParameter& kernel : every_backend()) {
    if (kernel.backend->kind() == DeviceKind::cpu) {
      parameters.push_back({kernel, {}});
      continue;
    }
    for (const PotrfOptions& options : every_blocking()) parameters.push_back({kernel, options});
  }
  return parameters;
}

/// Column by column of n < 2^20 elements; uniform in [−1, 1).
double noise(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  return 2 * random_uniform(seed, static_cast<std::uint64_t>(j << 20 | i)) - 1;
}

using test::kNan;

/// NaN above the diagonal and in the padding.
template <class T, class F>
Matrix<T> lower_matrix(std::int64_t n, std::int64_t padding, F value) {
  return Matrix<T>(n, n, padding, [&](std::int64_t i, std::int64_t j) {
    return i < j ? kNan : static_cast<double>(value(i, j));
  });
}

/// min(i, j), counted from 1: every pivot is 1, and the factor is all ones.
template <class T>
Matrix<T> min_matrix(std::int64_t n, std::int64_t padding) {
  return lower_matrix<T>(n, padding, [](auto, auto j) { return j + 1; });
}

class PotrfVariantsTest : public ::testing::TestWithParam<VariantParameter> {
 protected:
  template <class F>
  static void each(F&& body) {
    const Backend& backend = *GetParam().kernel.backend;
    const auto device = backend.make_device(0, 64_MiB);
    const auto queue = device->make_queue(QueuePriority::normal);
    const Buffer memory = device->allocate_host(sizeof(PivotStatus));
    dispatch_native(GetParam().kernel.precision, [&]<class T>(std::type_identity<T> type) {
      const KernelFunction kernel =
          backend.kernels().find(potrf.name, {element_of<T>, Element::fp64});
      const PotrfValues values{[](Element precision, std::int64_t) {
        EXPECT_EQ(precision, element_of<T>);
        return GetParam().options;
      }};
      body(
          [&](Matrix<T>& a) {
            const Buffer data = device->allocate(a.bytes());
            queue->copy(data.data(), a.data.data(), a.bytes(), CopyDirection::host_to_device);
            auto* status = ::new (static_cast<void*>(memory.data()))
                PivotStatus{.bad_column = 99, .bad_pivot = 99, .log_determinant = 99};
            const std::array<BlockView, 2> views{
                BlockView{data.data(), a.rows, a.cols, a.ld, 0, 0},
                BlockView{status, kStatusRows, 1, kStatusRows, 0, 0}};
            kernel(*queue, {views, potrf.operands}, {.values = &values});
            queue->copy(a.data.data(), data.data(), a.bytes(), CopyDirection::device_to_host);
            queue->synchronize();
            return *status;
          },
          type);
    });
  }
  /// The reference adds element by element: it takes the smaller ones.
  static bool too_slow(std::int64_t n) {
    return n > 520 && GetParam().kernel.backend->name() == "reference";
  }
};
INSTANTIATE_TEST_SUITE_P(Every, PotrfVariantsTest, ::testing::ValuesIn(every_variant()),
                         name_of_variant);

template <class T>
void expect_rest_untouched(const Matrix<T>& a) {
  std::int64_t written = 0;
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t i = 0; i < j; ++i) written += std::isnan(a(i, j)) ? 0 : 1;
    for (std::int64_t i = a.rows; i < a.ld; ++i) written += std::isnan(a(i, j)) ? 0 : 1;
  }
  EXPECT_EQ(written, 0) << "elements above the diagonal or in the padding were written";
}

/// |A − L·Lᵀ| ≤ (n + 1)·eps·|L|·|Lᵀ| element by element (Higham, "Accuracy and Stability", theorem
/// 10.3, where eps is half of this one), with both products in fp64. The products' own rounding is
/// as large for fp64 data: hence twice that.
template <class T>
void expect_backward_stable(const Matrix<T>& before, const Matrix<T>& l) {
  const auto n = static_cast<int>(before.rows);
  const auto size = static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
  std::vector<double> factor(size), absolute(size), product(size), bound(size);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i + j * n);
      factor[at] = static_cast<double>(l(i, j));
      absolute[at] = std::abs(factor[at]);
    }
  }
  const auto multiply = [n](const std::vector<double>& x, std::vector<double>& xxt) {
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, n, n, 1.0, x.data(), n, 0.0, xxt.data(),
                n);
  };
  multiply(factor, product);
  multiply(absolute, bound);
  const double eps = 2 * static_cast<double>(std::numeric_limits<T>::epsilon()) * (n + 1);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = j; i < n; ++i) {
      const auto at = static_cast<std::size_t>(i + j * n);
      const double error = std::abs(static_cast<double>(before(i, j)) - product[at]);
      ASSERT_LE(error, eps * bound[at]) << n << ": " << i << "," << j;
    }
  }
}

TEST_P(PotrfVariantsTest, ReproducesTheMatrixAndTouchesNothingElse) {
  each([](auto run, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {1,   2,   63,  64,  65,  127, 128, 129,  191,  193,  255,
                                 256, 257, 300, 383, 513, 640, 767, 1000, 1025, 2599, 2600}) {
      // The last two, of which one has aligned columns, have so many panels of 128 columns that not
      // all are treated alike.
      if (too_slow(n) || (n > 1025 && GetParam().options.nb != 128)) continue;
      const std::int64_t padding = n % 3 == 0 ? 0 : (n % 3 == 1 ? 1 : 3);
      const auto before = lower_matrix<T>(n, padding, [n](auto i, auto j) {
        // Dominant in norm only: off-diagonal elements up to 1, the diagonal about 2·√n.
        return i == j ? 2.5 * std::sqrt(static_cast<double>(n)) : noise(3, i, j);
      });
      auto l = before;
      const PivotStatus status = run(l);
      ASSERT_EQ(status.bad_column, -1) << n;
      expect_rest_untouched(l);
      expect_backward_stable(before, l);
      double log_determinant = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        log_determinant += 2 * std::log(static_cast<double>(l(j, j)));
      }
      EXPECT_NEAR(status.log_determinant, log_determinant, 1e-12 * log_determinant) << n;
    }
  });
}

TEST_P(PotrfVariantsTest, EveryLeadingDimensionGivesTheSameFactor) {
  each([](auto run, auto type) {
    using T = typename decltype(type)::type;
    test::Thinned thinned(5);
    for (const std::int64_t n : {64, 129, 300, 513}) {
      for (const std::int64_t padding : {0, 1, 2, 3, 8, 61}) {
        if (thinned.skips()) continue;
        auto a = min_matrix<T>(n, padding);
        const auto ones = lower_matrix<T>(n, padding, [](auto, auto) { return 1; });
        const PivotStatus status = run(a);
        EXPECT_EQ(status.bad_column, -1);
        EXPECT_EQ(status.log_determinant, 0);
        EXPECT_TRUE(same_values(a, ones)) << n << ": " << padding;
      }
    }
  });
}

/// D·B·D with a well conditioned B: its condition is about that of D².
TEST_P(PotrfVariantsTest, GradedMatrices) {
  each([](auto run, auto type) {
    using T = typename decltype(type)::type;
    test::Thinned thinned(3);
    for (const double condition : {1e2, 1e6, 1e10, 1e14}) {
      for (const bool rising : {false, true}) {
        if (thinned.skips()) continue;
        constexpr std::int64_t n = 450;
        const auto d = [=](std::int64_t i) {
          const double share = static_cast<double>(rising ? n - 1 - i : i) / (n - 1);
          return std::pow(condition, -share / 2);
        };
        const auto before = lower_matrix<T>(n, 1, [&](auto i, auto j) {
          const double b = i == j ? 2.5 * std::sqrt(static_cast<double>(n)) : noise(5, i, j);
          return d(i) * b * d(j);
        });
        auto l = before;
        ASSERT_EQ(run(l).bad_column, -1) << condition;
        expect_backward_stable(before, l);
      }
    }
  });
}

TEST_P(PotrfVariantsTest, NamesTheBadColumnExactly) {
  each([](auto run, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {513, 700}) {
      if (too_slow(n)) continue;
      for (const std::int64_t bad :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{63}, std::int64_t{64}, std::int64_t{127},
            std::int64_t{128}, std::int64_t{129}, std::int64_t{500}, n - 2, n - 1}) {
        auto a = min_matrix<T>(n, 1);
        a(bad, bad) -= T{3};  // its pivot was 1
        const PivotStatus status = run(a);
        EXPECT_EQ(status.bad_column, bad) << n;
        EXPECT_EQ(status.bad_pivot, -2) << n << ": " << bad;
        EXPECT_EQ(status.log_determinant, 0);
        expect_rest_untouched(a);
        // What stands before the failure is the factor.
        for (std::int64_t j = 0; j < bad; ++j) ASSERT_EQ(a(bad, j), T{1}) << n << ": " << j;
      }
    }
  });
}

TEST_P(PotrfVariantsTest, TheFirstOfSeveralBadColumnsIsNamed) {
  each([](auto run, auto type) {
    using T = typename decltype(type)::type;
    const std::vector<std::vector<std::int64_t>> cases{{0, 300},        {63, 64},   {64, 65, 400},
                                                       {127, 128, 129}, {200, 511}, {510, 511},
                                                       {15, 16},        {79, 80},   {95, 96, 112}};
    for (const auto& bad : cases) {
      for (int repeat = 0; repeat < (test::kSanitized ? 1 : 5); ++repeat) {
        auto a = min_matrix<T>(512, 0);
        for (const std::int64_t k : bad) a(k, k) = -5;
        const PivotStatus status = run(a);
        ASSERT_EQ(status.bad_column, bad[0]);
        ASSERT_EQ(status.bad_pivot, -5 - static_cast<double>(bad[0]));
      }
    }
  });
}

TEST_P(PotrfVariantsTest, ANanIsReportedAsNanInItsRow) {
  each([](auto run, auto type) {
    using T = typename decltype(type)::type;
    const std::vector<std::pair<std::int64_t, std::int64_t>> places{
        {0, 0},     {63, 10},   {64, 64},   {65, 0},    {127, 126}, {128, 63},
        {200, 200}, {300, 128}, {449, 448}, {449, 449}, {449, 0}};
    for (const auto& [row, col] : places) {
      auto a =
          lower_matrix<T>(450, 2, [](auto i, auto j) { return i == j ? 60.0 : noise(7, i, j); });
      a(row, col) = std::numeric_limits<T>::quiet_NaN();
      const PivotStatus status = run(a);
      EXPECT_EQ(status.bad_column, row) << col;
      EXPECT_TRUE(std::isnan(status.bad_pivot)) << row << "," << col;
      expect_rest_untouched(a);
    }
  });
}

TEST_P(PotrfVariantsTest, AnInfinitePivotIsBad) {
  each([](auto run, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t bad : {0, 64, 127, 300, 449}) {
      auto a =
          lower_matrix<T>(450, 0, [](auto i, auto j) { return i == j ? 60.0 : noise(7, i, j); });
      a(bad, bad) = std::numeric_limits<T>::infinity();
      const PivotStatus status = run(a);
      EXPECT_EQ(status.bad_column, bad);
      EXPECT_EQ(status.bad_pivot, std::numeric_limits<double>::infinity());
    }
  });
}

TEST_P(PotrfVariantsTest, GivesTheSameBitsEveryTime) {
  each([](auto run, auto type) {
    using T = typename decltype(type)::type;
    // On a GPU warps that did not wait for each other where they should once gave other bits in one
    // of some twenty thousand diagonal blocks: many runs are a chance to see it, not a certainty.
    const PotrfOptions& options = GetParam().options;
    const bool many = GetParam().kernel.backend->kind() == DeviceKind::gpu &&
                      options.variant == PotrfVariant::fused && options.ib == 8;
    for (const std::int64_t n : {300, 1025, 2500}) {
      if (too_slow(n) || (n > 1025 && !many)) continue;
      const std::int64_t padding = n > 1025 ? 0 : 1;  // columns aligned, or not
      const auto before = lower_matrix<T>(n, padding, [n](auto i, auto j) {
        return i == j ? 2.5 * std::sqrt(static_cast<double>(n)) : noise(9, i, j);
      });
      auto first = before;
      const PivotStatus once = run(first);
      for (int again = 0; again < (n > 1025 ? 60 : 3); ++again) {
        auto second = before;
        const PivotStatus twice = run(second);
        ASSERT_TRUE(same_bits(first, second)) << n << ", run " << again;
        ASSERT_EQ(once.log_determinant, twice.log_determinant);
      }
    }
  });
}

// Blocks of several launches come to the GPU in any order, and none may wait for one that has no
// place: a hang is how this fails. And each gives the bits it gives alone.
TEST(PotrfOnAGpu, SeveralAtOnceGetToTheEnd) {
  const Backend* cuda = cuda_backend();
  if (cuda == nullptr) GTEST_SKIP() << "no GPU";
  constexpr std::size_t kQueues = 6;
  constexpr std::int64_t n = 1500;
  const auto device = cuda->make_device(0, 256_MiB);
  std::vector<std::unique_ptr<Queue>> queues;
  for (std::size_t q = 0; q < kQueues; ++q) {
    queues.push_back(device->make_queue(q == 1 ? QueuePriority::high : QueuePriority::normal));
  }
  const Buffer memory = device->allocate_host(kQueues * sizeof(PivotStatus));
  const KernelFunction kernel = cuda->kernels().find(potrf.name, {Element::fp64, Element::fp64});
  const auto before = lower_matrix<double>(
      n, 0, [](auto i, auto j) { return i == j ? 2.5 * std::sqrt(1.0 * n) : noise(11, i, j); });
  for (const int recnb : {64, 128}) {
    const PotrfValues values{[recnb](Element, std::int64_t) {
      return PotrfOptions{.variant = PotrfVariant::fused, .recnb = recnb};
    }};
    auto alone = before;
    for (int round = 0; round < 20; ++round) {
      const std::size_t count = round == 0 ? 1 : kQueues;
      std::vector<Buffer> data;
      for (std::size_t q = 0; q < count; ++q) {
        data.push_back(device->allocate(before.bytes()));
        queues[q]->copy(data[q].data(), before.data.data(), before.bytes(),
                        CopyDirection::host_to_device);
        queues[q]->synchronize();
      }
      auto* statuses = reinterpret_cast<PivotStatus*>(memory.data());
      for (std::size_t q = 0; q < count; ++q) {
        auto* status = ::new (static_cast<void*>(statuses + q)) PivotStatus{};
        const std::array<BlockView, 2> views{BlockView{data[q].data(), n, n, before.ld, 0, 0},
                                             BlockView{status, kStatusRows, 1, kStatusRows, 0, 0}};
        kernel(*queues[q], {views, potrf.operands}, {.values = &values});
      }
      for (std::size_t q = 0; q < count; ++q) {
        queues[q]->synchronize();
        auto result = before;
        queues[q]->copy(result.data.data(), data[q].data(), before.bytes(),
                        CopyDirection::device_to_host);
        queues[q]->synchronize();
        ASSERT_EQ(statuses[q].bad_column, -1) << recnb << ", round " << round;
        if (round == 0) alone = result;
        ASSERT_TRUE(same_bits(alone, result)) << recnb << ", round " << round << ", queue " << q;
      }
    }
  }
}

TEST(PotrfOptionsOnAGpu, ThatDoNotExistAreRefused) {
  const Backend* cuda = cuda_backend();
  if (cuda == nullptr) GTEST_SKIP() << "no GPU";
  const auto device = cuda->make_device(0, 16_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  const Buffer memory = device->allocate_host(sizeof(PivotStatus));
  const Buffer data = device->allocate(256 * 256 * 8);
  auto* status = ::new (static_cast<void*>(memory.data())) PivotStatus{};
  const std::array<BlockView, 2> views{BlockView{data.data(), 256, 256, 256, 0, 0},
                                       BlockView{status, kStatusRows, 1, kStatusRows, 0, 0}};
  for (const PotrfOptions& options :
       {PotrfOptions{PotrfVariant::fused, 5, 0, 0}, PotrfOptions{PotrfVariant::fused, 0, 96, 0},
        PotrfOptions{PotrfVariant::left, 0, 0, 100},
        PotrfOptions{PotrfVariant::right, 0, 0, -128}}) {
    const PotrfValues values{[&](Element, std::int64_t) { return options; }};
    try {
      cuda->kernels().find(potrf.name, {Element::fp64, Element::fp64})(
          *queue, {views, potrf.operands}, {.values = &values});
      queue->synchronize();
      ADD_FAILURE() << options.ib << " " << options.recnb << " " << options.nb;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::misuse) << error.what();
    }
  }
}

}  // namespace
}  // namespace strata::testing
