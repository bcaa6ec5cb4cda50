// chol_dd: by hand, against numbers of 113 bits, and the bits of the reference.

#include "kernels/tall/chol_dd.hpp"

#include <numeric>

#include "strata/error.hpp"
#include "tests/kernels/kernel_harness.hpp"

namespace strata::testing {
namespace {

#if defined(__SIZEOF_FLOAT128__)
__extension__ using Quad = __float128;
#else
using Quad = long double;
#endif

Quad quad_of(const DoubleDouble& x) { return static_cast<Quad>(x.hi) + static_cast<Quad>(x.lo); }
double size_of(Quad x) { return std::abs(static_cast<double>(x)); }

/// Column-major with rows that are not its own below it.
struct WideMatrix {
  static constexpr std::int64_t kPadding = 3;
  std::int64_t n = 0;
  std::vector<DoubleDouble> data;

  explicit WideMatrix(std::int64_t order)
      : n(order), data(static_cast<std::size_t>((order + kPadding) * order), DoubleDouble(-7.0)) {}
  [[nodiscard]] std::int64_t ld() const { return n + kPadding; }
  DoubleDouble& operator()(std::int64_t i, std::int64_t j) {
    return data[static_cast<std::size_t>(i + j * ld())];
  }
  const DoubleDouble& operator()(std::int64_t i, std::int64_t j) const {
    return data[static_cast<std::size_t>(i + j * ld())];
  }
};

struct Outcome {
  WideMatrix r;
  std::vector<std::int32_t> order;
  CholDdStatus status;
};

std::vector<Outcome> factored(const Backend& backend, const std::vector<WideMatrix>& matrices,
                              std::uint32_t variant) {
  const KernelFunction kernel = backend.kernels().find(chol_dd.name, kCholDdElements);
  const auto device = backend.make_device(0, 64_MiB);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  std::vector<Outcome> results;
  results.reserve(matrices.size());  // copies that have not ended read from its elements
  const auto place = [&](void* from, std::int64_t bytes, std::int64_t rows, std::int64_t cols,
                         std::int64_t ld, Element element) {
    memory.push_back(device->allocate(std::max<std::int64_t>(bytes, 1)));
    queue->copy(memory.back().data(), from, bytes, CopyDirection::host_to_device);
    views.push_back({memory.back().data(), rows, cols, ld, 0, 0, element});
  };
  for (const WideMatrix& a : matrices) {
    results.push_back(
        {a, std::vector<std::int32_t>(static_cast<std::size_t>(a.n), -1), {5, 5, 5, 5}});
    Outcome& one = results.back();
    place(one.r.data.data(), std::ssize(a.data) * 16, a.n, a.n, a.ld(), Element::dd);
    place(one.order.data(), a.n * 4, a.n, 1, std::max<std::int64_t>(a.n, 1), Element::int32);
    place(&one.status, sizeof(CholDdStatus), 4, 1, 4, Element::fp64);
  }
  queue->synchronize();
  try {
    kernel(*queue, {views, chol_dd.operands}, {.variant = variant});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    Outcome& one = results[i];
    queue->copy(one.r.data.data(), views[3 * i].data, std::ssize(one.r.data) * 16,
                CopyDirection::device_to_host);
    queue->copy(one.order.data(), views[3 * i + 1].data, one.r.n * 4,
                CopyDirection::device_to_host);
    queue->copy(&one.status, views[3 * i + 2].data, sizeof(CholDdStatus),
                CopyDirection::device_to_host);
  }
  queue->synchronize();
  return results;
}
Outcome factored(const Backend& backend, const WideMatrix& a, std::uint32_t variant = 0) {
  return factored(backend, std::vector<WideMatrix>{a}, variant)[0];
}

/// VᵀV of n + 4 rows, in 106 bits, columns of lengths that go up and down; what lies below the
/// diagonal is not a number.
WideMatrix gram_of(std::int64_t n, std::uint64_t seed) {
  const std::int64_t m = n + 4;
  const auto v = [&](std::int64_t r, std::int64_t j) {
    return std::ldexp(uniform(seed, r, j), static_cast<int>((j * 7) % 5));
  };
  WideMatrix a(n);
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t i = 0; i < n; ++i) {
      a(i, k) = DoubleDouble(i > k ? std::numeric_limits<double>::quiet_NaN() : 0.0);
      for (std::int64_t r = 0; r < m && i <= k; ++r)
        a(i, k) = a(i, k) + two_product(v(r, i), v(r, k));
    }
  }
  return a;
}

void expect_same(const Outcome& got, const Outcome& expected, const std::string& what) {
  EXPECT_TRUE(std::equal(got.r.data.begin(), got.r.data.end(), expected.r.data.begin())) << what;
  EXPECT_EQ(got.order, expected.order) << what;
  const auto same = [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  EXPECT_EQ(got.status.bad_column, expected.status.bad_column) << what;
  EXPECT_TRUE(same(got.status.bad_pivot, expected.status.bad_pivot)) << what;
  EXPECT_EQ(got.status.least, expected.status.least) << what;
  EXPECT_EQ(got.status.largest, expected.status.largest) << what;
}

class CholDd : public ::testing::TestWithParam<const Backend*> {};
INSTANTIATE_TEST_SUITE_P(Every, CholDd, ::testing::ValuesIn(all_of_them()), backend_name);

TEST_P(CholDd, ByHand) {
  WideMatrix a(3);  // RᵀR with R = (2 1 3; 0 1 −1; 0 0 4)
  const double of[3][3] = {{4, 2, 6}, {0, 2, 2}, {0, 0, 26}};
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) a(i, j) = DoubleDouble(of[i][j]);
  }
  const Outcome plain = factored(*GetParam(), a);
  const double r[3][3] = {{2, 1, 3}, {0, 1, -1}, {0, 0, 4}};
  for (std::int64_t i = 0; i < 3; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(plain.r(i, j), DoubleDouble(r[i][j]));
    EXPECT_EQ(plain.order[static_cast<std::size_t>(i)], i);
    EXPECT_EQ(plain.r.data[static_cast<std::size_t>(3 + i)], DoubleDouble(-7.0));  // below it
  }
  EXPECT_EQ(plain.status.bad_column, -1);
  EXPECT_EQ(plain.status.least, 1);
  EXPECT_EQ(plain.status.largest, 16);
  // The largest diagonal first: 26; then 4 − 36/26 and 2 − 4/26, which is less.
  const Outcome pivoted = factored(*GetParam(), a, kDiagonalPivoting);
  EXPECT_EQ(pivoted.order, (std::vector<std::int32_t>{2, 0, 1}));
  EXPECT_NEAR(pivoted.r(0, 0).hi, std::sqrt(26), 1e-15);
  EXPECT_NEAR(pivoted.r(1, 1).hi, std::sqrt(4 - 36.0 / 26), 1e-15);
}

TEST_P(CholDd, IsRightInManyDigitsAndHasTheBitsOfTheReference) {
  for (const std::int64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 64, 97, 136, 137}) {
    const WideMatrix a = gram_of(n, 20);
    for (const std::uint32_t variant : {0U, kDiagonalPivoting}) {
      const Outcome got = factored(*GetParam(), a, variant);
      const std::string what = std::to_string(n) + ' ' + std::to_string(variant);
      expect_same(got, factored(reference_backend(), a, variant), what);
      EXPECT_EQ(got.status.bad_column, -1) << what;
      std::vector<std::int32_t> sorted = got.order;
      std::sort(sorted.begin(), sorted.end());
      std::vector<std::int32_t> all(static_cast<std::size_t>(n));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(sorted, all) << what;
      double worst = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        for (std::int64_t i = 0; i < n; ++i) {
          if (i > k) {
            EXPECT_EQ(got.r(i, k), DoubleDouble());
            continue;
          }
          const std::int64_t p = got.order[static_cast<std::size_t>(i)];
          const std::int64_t q = got.order[static_cast<std::size_t>(k)];
          Quad rest = quad_of(a(std::min(p, q), std::max(p, q)));
          for (std::int64_t l = 0; l <= i; ++l) rest -= quad_of(got.r(l, i)) * quad_of(got.r(l, k));
          worst = std::max(worst, size_of(rest) / std::sqrt(a(p, p).hi * a(q, q).hi));
        }
      }
      EXPECT_LE(worst, 0x1p-104 * 4 * static_cast<double>(n + 4)) << what;
      for (std::int64_t j = 1; j < n && variant == kDiagonalPivoting; ++j)
        EXPECT_LE(got.r(j, j).hi, got.r(j - 1, j - 1).hi) << what;
    }
  }
}

TEST_P(CholDd, OfManyColumns) {
  const std::int64_t n = kCholDdColumnsMax;
  // Strongly diagonal: sums of a few products tell whether rows are right.
  WideMatrix a(n);
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t i = 0; i <= k; ++i)
      a(i, k) =
          DoubleDouble(i == k ? 600.0 - static_cast<double>((k * 37) % 101) : uniform(3, i, k));
  }
  for (const std::uint32_t variant : {0U, kDiagonalPivoting})
    expect_same(factored(*GetParam(), a, variant), factored(reference_backend(), a, variant),
                "512");
}

TEST_P(CholDd, TellsThePivotThatFailsAndKeepsWhatIsDone) {
  for (const double bad : {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN(),
                           std::numeric_limits<double>::infinity()}) {
    for (const std::int64_t at : {0, 1, 7, 20}) {
      WideMatrix a = gram_of(21, 22);
      const Outcome whole = factored(reference_backend(), a);
      a(at, at) = DoubleDouble(bad);
      const Outcome got = factored(*GetParam(), a);
      EXPECT_EQ(got.status.bad_column, static_cast<double>(at));
      EXPECT_FALSE(got.status.bad_pivot > 0 && std::isfinite(got.status.bad_pivot));
      for (std::int64_t k = 0; k < 21; ++k) {
        for (std::int64_t i = 0; i <= k; ++i) {
          // Above the bad diagonal its column is what it was.
          const DoubleDouble expected = i < at ? whole.r(i, k) : DoubleDouble(i == k ? 1.0 : 0.0);
          EXPECT_EQ(got.r(i, k), expected) << bad << ' ' << at << ' ' << i << ' ' << k;
        }
      }
    }
  }
}

TEST_P(CholDd, PivotingTellsTheRank) {
  // Three of ten columns of integers are sums of others.
  const std::int64_t n = 10;
  const auto v = [](std::int64_t r, std::int64_t j) {
    const auto of = [r](std::int64_t c) { return std::round(64 * uniform(30, r, c)); };
    return j == 3 ? of(0) + of(1) : j == 6 ? of(2) - of(5) : j == 9 ? of(9 - 1) : of(j);
  };
  WideMatrix a(n);
  for (std::int64_t k = 0; k < n; ++k) {
    for (std::int64_t i = 0; i <= k; ++i) {
      double sum = 0;
      for (std::int64_t r = 0; r < 40; ++r) sum += v(r, i) * v(r, k);
      a(i, k) = DoubleDouble(sum);
    }
  }
  const Outcome got = factored(*GetParam(), a, kDiagonalPivoting);
  expect_same(got, factored(reference_backend(), a, kDiagonalPivoting), "rank");
  // What is left of dependent columns is rounding, of either sign.
  std::int64_t rank = 0;
  while (rank < n && got.r(rank, rank).hi > 1e-10 &&
         (got.status.bad_column < 0 || static_cast<double>(rank) < got.status.bad_column))
    ++rank;
  EXPECT_EQ(rank, 7);
  // Columns that are not numbers come last.
  WideMatrix b = gram_of(9, 23);
  for (std::int64_t i = 0; i <= 4; ++i)
    b(i, 4) = DoubleDouble(std::numeric_limits<double>::quiet_NaN());
  const Outcome last = factored(*GetParam(), b, kDiagonalPivoting);
  EXPECT_EQ(last.status.bad_column, 8);
  EXPECT_EQ(last.order.back(), 4);
}

TEST_P(CholDd, OfSeveralCallsAndOfNoColumns) {
  const std::vector<WideMatrix> many{gram_of(5, 24), WideMatrix(0), gram_of(40, 25),
                                     gram_of(140, 26)};
  const std::vector<Outcome> got = factored(*GetParam(), many, kDiagonalPivoting);
  for (std::size_t i = 0; i < many.size(); ++i)
    expect_same(got[i], factored(reference_backend(), many[i], kDiagonalPivoting),
                std::to_string(i));
  EXPECT_EQ(got[1].status.bad_column, -1);
}

TEST_P(CholDd, RefusesOtherVariantsAndTooManyColumns) {
  EXPECT_THROW((void)factored(*GetParam(), gram_of(3, 1), 2), Error);
  EXPECT_THROW((void)factored(*GetParam(), WideMatrix(kCholDdColumnsMax + 1)), Error);
}

}  // namespace
}  // namespace strata::testing
