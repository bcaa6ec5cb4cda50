// potrf_batched of every backend: equal and different orders against the reference, failures that
// stay where they are, and what must not be touched.

#include <algorithm>

#include "kernels/dense/potrf_batched.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

constexpr std::int64_t kOrders[] = {0,  1,  2,  3,   4,   5,   6,   7,   8,  9,  10,
                                    11, 12, 13, 14,  15,  16,  17,  18,  31, 32, 33,
                                    63, 64, 65, 127, 128, 129, 200, 256, 300};

/// Symmetric, diagonally dominant, another matrix for each seed; NaN above the diagonal.
template <class T>
Matrix<T> member(std::int64_t n, std::int64_t padding, std::uint64_t seed) {
  return Matrix<T>(n, n, padding, [=](std::int64_t i, std::int64_t j) {
    if (i < j) return std::numeric_limits<double>::quiet_NaN();
    const double off = 2 * random_uniform(seed, static_cast<std::uint64_t>(i * 1024 + j)) - 1;
    return i == j ? static_cast<double>(n) + 1 + off : off;
  });
}

/// Factors a batch that lies in one stretch of device memory, matrix after matrix.
class BatchRunner {
 public:
  explicit BatchRunner(const Backend& backend, std::int64_t memory = 32_MiB)
      : backend_(backend),
        device_(backend.make_device(0, memory)),
        queue_(device_->make_queue(QueuePriority::normal)) {}

  template <class T>
  std::vector<PivotStatus> run(std::vector<Matrix<T>>& matrices) {
    const KernelFunction kernel = backend_.kernels().find(potrf_batched.name, kBatchElements<T>);
    if (kernel == nullptr) throw std::runtime_error("no batched potrf");
    const auto count = std::ssize(matrices);
    std::int64_t bytes = 0;
    for (const Matrix<T>& a : matrices) bytes += a.bytes();
    const Buffer memory = device_->allocate(bytes);
    const Buffer entry_memory =
        device_->allocate_host(count * static_cast<std::int64_t>(sizeof(BatchEntry)));
    const Buffer status_memory =
        device_->allocate_host(count * static_cast<std::int64_t>(sizeof(PivotStatus)));
    auto* entries = reinterpret_cast<BatchEntry*>(entry_memory.data());
    auto* statuses = reinterpret_cast<PivotStatus*>(status_memory.data());
    std::byte* at = memory.data();
    for (std::int64_t b = 0; b < count; ++b) {
      Matrix<T>& a = matrices[static_cast<std::size_t>(b)];
      ::new (static_cast<void*>(entries + b))
          BatchEntry{at, a.rows, std::max<std::int64_t>(a.ld, 1)};
      ::new (static_cast<void*>(statuses + b))
          PivotStatus{.bad_column = 99, .bad_pivot = 99, .log_determinant = 99};
      if (a.bytes() > 0) queue_->copy(at, a.data.data(), a.bytes(), CopyDirection::host_to_device);
      at += a.bytes();
    }
    kernel(*queue_, {batch_views(entries, statuses, count), potrf_batched.operands}, {});
    for (std::int64_t b = 0; b < count; ++b) {
      Matrix<T>& a = matrices[static_cast<std::size_t>(b)];
      if (a.bytes() > 0) {
        queue_->copy(a.data.data(), entries[b].data, a.bytes(), CopyDirection::device_to_host);
      }
    }
    queue_->synchronize();
    return {statuses, statuses + count};
  }

 private:
  const Backend& backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
};

class PotrfBatchedTest : public ::testing::TestWithParam<KernelParameter> {
 protected:
  template <class F>
  static void each(F&& body) {
    BatchRunner runner(*GetParam().backend);
    dispatch_native(GetParam().precision, [&](auto type) { body(runner, type); });
  }
};
INSTANTIATE_TEST_SUITE_P(Every, PotrfBatchedTest, ::testing::ValuesIn(every_backend()), name_of);

/// Within rounding of the reference below the diagonal, the same bits elsewhere. For these matrices
/// the factor is about √n on the diagonal and about 1/√n below, with condition below 10.
template <class T>
void expect_factor(const Matrix<T>& actual, const Matrix<T>& before, std::int64_t n) {
  Matrix<T> expected = before;
  if (n > 0) {
    Runner reference(reference_backend());
    ASSERT_EQ(reference.factor(expected).bad_column, -1);
  }
  const double order = static_cast<double>(n);
  const double bound = 8 * order * std::numeric_limits<T>::epsilon();
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < actual.ld; ++i) {
      if (i < j || i >= n) {
        ASSERT_TRUE(std::isnan(actual(i, j))) << n << ": " << i << "," << j << " was written";
      } else {
        ASSERT_NEAR(actual(i, j), expected(i, j), bound) << n << ": " << i << "," << j;
      }
    }
  }
}

TEST_P(PotrfBatchedTest, EqualOrders) {
  each([](BatchRunner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : kOrders) {
      std::vector<Matrix<T>> batch;
      for (std::uint64_t b = 0; b < 5; ++b) batch.push_back(member<T>(n, 0, 10 + b));
      const auto before = batch;
      const std::vector<PivotStatus> statuses = runner.run(batch);
      for (std::size_t b = 0; b < batch.size(); ++b) {
        EXPECT_EQ(statuses[b].bad_column, -1) << n;
        expect_factor(batch[b], before[b], n);
        double log_determinant = 0;
        for (std::int64_t j = 0; j < n; ++j) {
          log_determinant += 2 * std::log(static_cast<double>(batch[b](j, j)));
        }
        EXPECT_NEAR(statuses[b].log_determinant, log_determinant, 1e-12 * log_determinant);
      }
    }
  });
}

TEST_P(PotrfBatchedTest, DifferentOrdersAndPaddings) {
  each([](BatchRunner& runner, auto type) {
    using T = typename decltype(type)::type;
    std::vector<Matrix<T>> batch;
    for (std::int64_t round = 0; round < 2; ++round) {
      for (std::size_t k = 0; k < std::size(kOrders); ++k) {
        // Neighbours in the batch are far apart in order.
        const std::int64_t n = kOrders[(7 * k) % std::size(kOrders)];
        batch.push_back(member<T>(n, round == 0 ? static_cast<std::int64_t>(k % 4) : 5, 50 + k));
      }
    }
    const auto before = batch;
    const std::vector<PivotStatus> statuses = runner.run(batch);
    for (std::size_t b = 0; b < batch.size(); ++b) {
      EXPECT_EQ(statuses[b].bad_column, -1);
      expect_factor(batch[b], before[b], batch[b].rows);
    }
  });
}

TEST_P(PotrfBatchedTest, AFailureNamesItsColumnAndLeavesItsNeighbours) {
  each([](BatchRunner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {7, 16, 31, 64, 129}) {
      for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{5}, n / 2, n - 1}) {
        std::vector<Matrix<T>> batch;
        for (std::uint64_t b = 0; b < 7; ++b) batch.push_back(member<T>(n, 1, 70 + b));
        auto healthy = batch;
        (void)runner.run(healthy);
        batch[1](bad, bad) = -1;  // less than its pivot can be
        batch[3](bad, bad / 2) = std::numeric_limits<T>::quiet_NaN();
        batch[6](bad, bad) = std::numeric_limits<T>::infinity();
        const std::vector<PivotStatus> statuses = runner.run(batch);
        for (const std::size_t b : {1U, 3U, 6U}) {
          EXPECT_EQ(statuses[b].bad_column, bad) << n << ": " << b;
        }
        EXPECT_LE(statuses[1].bad_pivot, -1 + 1e-6);
        EXPECT_TRUE(std::isnan(statuses[3].bad_pivot));
        EXPECT_EQ(statuses[6].bad_pivot, std::numeric_limits<double>::infinity());
        for (const std::size_t b : {0U, 2U, 4U, 5U}) {
          EXPECT_EQ(statuses[b].bad_column, -1);
          EXPECT_TRUE(same_bits(batch[b], healthy[b])) << n << ": " << b;
        }
        for (const Matrix<T>& a : batch) {
          for (std::int64_t j = 0; j < n; ++j) {
            for (std::int64_t i = 0; i < j; ++i) ASSERT_TRUE(std::isnan(a(i, j)));
            ASSERT_TRUE(std::isnan(a(n, j)));
          }
        }
      }
    }
  });
}

TEST_P(PotrfBatchedTest, NamesEveryBadColumnOfABatchAtOnce) {
  each([](BatchRunner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {16, 33, 130}) {
      std::vector<Matrix<T>> batch;
      for (std::int64_t bad = 0; bad < n; ++bad) {
        batch.push_back(Matrix<T>(n, n, 0, [](auto i, auto j) { return std::min(i, j) + 1; }));
        batch.back()(bad, bad) -= T{3};  // its pivot was 1
      }
      const std::vector<PivotStatus> statuses = runner.run(batch);
      for (std::int64_t bad = 0; bad < n; ++bad) {
        const PivotStatus& status = statuses[static_cast<std::size_t>(bad)];
        ASSERT_EQ(status.bad_column, bad) << n;
        ASSERT_EQ(status.bad_pivot, -2) << n << ": " << bad;
      }
    }
  });
}

TEST_P(PotrfBatchedTest, GivesTheSameBitsInAnyCompany) {
  each([](BatchRunner& runner, auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {5, 16, 31, 64, 200}) {
      std::vector<Matrix<T>> alone{member<T>(n, 0, 1)};
      // In even and odd places, beside its like and beside another kind.
      std::vector<Matrix<T>> among{member<T>(n, 0, 2),  member<T>(n, 0, 3),  member<T>(n, 0, 1),
                                   member<T>(n, 0, 1),  member<T>(16, 0, 4), member<T>(n, 0, 1),
                                   member<T>(40, 0, 5), member<T>(n, 0, 1),  member<T>(n, 0, 1)};
      const std::vector<PivotStatus> status = runner.run(alone);
      const std::vector<PivotStatus> statuses = runner.run(among);
      for (const std::size_t b : {2U, 3U, 5U, 7U, 8U}) {
        EXPECT_TRUE(same_bits(alone[0], among[b])) << n << ": " << b;
        EXPECT_EQ(status[0].log_determinant, statuses[b].log_determinant) << n << ": " << b;
      }
    }
  });
}

// Many times the same, all at once: a chance to see warps that do not wait for each other.
TEST_P(PotrfBatchedTest, EqualMatricesGetEqualBits) {
  const bool on_gpu = GetParam().backend->kind() == DeviceKind::gpu;
  const std::size_t count = on_gpu ? 6000 : 8;
  BatchRunner runner(*GetParam().backend, on_gpu ? 1024_MiB : 32_MiB);
  dispatch_native(GetParam().precision, [&](auto type) {
    using T = typename decltype(type)::type;
    for (const std::int64_t n : {16, 32, 128}) {
      for (int again = 0; again < (on_gpu ? 3 : 1); ++again) {
        std::vector<Matrix<T>> batch(count, member<T>(n, 0, 1));
        (void)runner.run(batch);
        for (std::size_t b = 1; b < count; ++b) ASSERT_TRUE(same_bits(batch[0], batch[b])) << b;
      }
    }
  });
}

TEST_P(PotrfBatchedTest, ThousandsOfSmallOnes) {
  each([](BatchRunner& runner, auto type) {
    using T = typename decltype(type)::type;
    std::vector<Matrix<T>> batch;
    for (std::int64_t b = 0; b < 4000; ++b) {
      batch.push_back(
          Matrix<T>(1 + b % 19, 1 + b % 19, 0, [](auto i, auto j) { return std::min(i, j) + 1; }));
    }
    const std::vector<PivotStatus> statuses = runner.run(batch);
    for (std::size_t b = 0; b < batch.size(); ++b) {
      ASSERT_EQ(statuses[b].bad_column, -1) << b;
      for (std::int64_t j = 0; j < batch[b].cols; ++j) {
        for (std::int64_t i = j; i < batch[b].rows; ++i) ASSERT_EQ(batch[b](i, j), T{1}) << b;
      }
    }
  });
}

TEST_P(PotrfBatchedTest, NoMatricesAtAll) {
  each([](BatchRunner& runner, auto type) {
    using T = typename decltype(type)::type;
    std::vector<Matrix<T>> batch;
    EXPECT_TRUE(runner.run(batch).empty());
  });
}

}  // namespace
}  // namespace strata::testing
