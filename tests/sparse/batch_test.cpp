// Batches of matrices of one pattern: each as by itself, whatever is beside it and wherever the
// factors are; and what calls that lie evenly are.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/backend/backend.hpp"
#include "kernels/backend/even_calls.hpp"
#include "sparse/fronts/front_batch.hpp"
#include "strata/error.hpp"
#include "strata/sparse_batch.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/sparse/front_matrices.hpp"
#include "tests/sparse/options.hpp"

namespace strata {
namespace {

using test::analysis_by_amd;
using test::options_on;

/// Matrices of one pattern, their values side by side with a gap, and right-hand sides.
struct Batch {
  SparseMatrix pattern;
  std::int64_t count;
  std::int64_t ld;
  std::vector<double> values;

  Batch(const SparseMatrix& a, std::int64_t matrices)
      : pattern(a), count(matrices), ld(a.entries() + 3), values(at(ld * matrices)) {
    for (std::int64_t k = 0; k < count; ++k) {
      const SparseMatrix one = matrix(k);
      std::copy(one.value.begin(), one.value.end(), values.begin() + k * ld);
    }
  }
  [[nodiscard]] SparseMatrix matrix(std::int64_t k) const {
    return test::with_values(pattern, 100 + static_cast<std::uint64_t>(k));
  }
  [[nodiscard]] MatrixView<const double> view() const {
    return {values.data(), pattern.entries(), count, ld};
  }
  /// Makes matrix k indefinite at row `row`.
  void spoil(std::int64_t k, std::int64_t row) {
    for (std::int64_t e = pattern.start[at(row)]; e < pattern.start[at(row + 1)]; ++e)
      if (pattern.column[at(e)] == row) values[at(k * ld + e)] = -1;
  }
  [[nodiscard]] std::vector<double> sides(std::int64_t nrhs, std::int64_t b_ld) const {
    std::vector<double> b(at(b_ld * nrhs * count));
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = 2 * random_uniform(7, i) - 1;
    return b;
  }
};

/// Against dense factorizations in long double.
void expect_right(const Batch& batch, FrontBatch& factors, std::int64_t nrhs,
                  std::span<const std::int64_t> spoiled = {}) {
  const std::int64_t n = batch.pattern.rows;
  const std::int64_t ld = n + 2;
  const std::vector<double> before = batch.sides(nrhs, ld);
  std::vector<double> x = before;
  factors.solve({x.data(), n, nrhs * batch.count, ld});
  for (std::int64_t k = 0; k < batch.count; ++k) {
    const FactorInfo& info = factors.infos()[at(k)];
    const bool bad = std::find(spoiled.begin(), spoiled.end(), k) != spoiled.end();
    ASSERT_EQ(info.ok, !bad) << "matrix " << k;
    const test::DenseOracle oracle(test::dense_of(batch.matrix(k)), n);
    if (!bad) {
      EXPECT_NEAR(info.log_determinant, static_cast<double>(oracle.log_determinant),
                  1e-12 * std::max(1.0, std::abs(info.log_determinant)));
    }
    for (std::int64_t c = k * nrhs; c < (k + 1) * nrhs; ++c) {
      const std::vector<long double> b(before.begin() + c * ld, before.begin() + c * ld + n);
      const std::vector<long double> wanted = bad ? b : oracle.solve(b);
      for (std::int64_t i = 0; i < n; ++i)
        ASSERT_NEAR(x[at(i + c * ld)], static_cast<double>(wanted[at(i)]),
                    bad ? 0 : 1e-9 * std::max(1.0, std::abs(static_cast<double>(wanted[at(i)]))))
            << "matrix " << k << ", column " << c << ", row " << i;
    }
    // What lies between the columns is left alone.
    EXPECT_EQ(std::memcmp(&x[at(k * nrhs * ld + n)], &before[at(k * nrhs * ld + n)], 16), 0);
  }
}

TEST(SparseBatch, IsRightForEachMatrixOfAllFamilies) {
  for (const test::Family& family : test::families()) {
    SCOPED_TRACE(family.name);
    if (family.matrix.rows == 0 || family.matrix.rows > 300) continue;
    const Batch batch(family.matrix, 5);
    for (const bool stays : {false, true}) {
      FrontBatch factors(analysis_by_amd(family.matrix), family.matrix, batch.count,
                         options_on("host:1", std::int64_t{1} << 28), stays);
      ASSERT_EQ(factors.resident(), stays);
      for (const std::int64_t nrhs : {1, 3, 17}) {
        factors.factor(batch.view(), 0);  // again, with the same memory
        expect_right(batch, factors, nrhs);
      }
    }
  }
}

TEST(SparseBatch, OneThatFailsSpoilsNoOther) {
  const SparseMatrix a = test::grid(9, 8, 1);
  Batch batch(a, 7);
  const std::vector<std::int64_t> spoiled{0, 3, 6};
  for (const std::int64_t k : spoiled) batch.spoil(k, 40 + k);
  for (const bool stays : {false, true}) {
    FrontBatch factors(analysis_by_amd(a), a, batch.count, options_on("host:1", 1 << 26), stays);
    factors.factor(batch.view(), 0);
    expect_right(batch, factors, 2, spoiled);
    SparseMatrix one = a;
    for (const std::int64_t k : spoiled) {
      one.value.assign(batch.view().column(k), batch.view().column(k) + a.entries());
      const SparseCholesky alone(analysis_by_amd(a), one, options_on("host:1"));
      EXPECT_EQ(factors.infos()[at(k)].first_bad_pivot, alone.info().first_bad_pivot);
      EXPECT_EQ(factors.infos()[at(k)].bad_pivot, alone.info().bad_pivot);
      EXPECT_TRUE(std::isnan(factors.infos()[at(k)].log_determinant));
    }
  }
}

/// Solutions, bit for bit, whatever the number of matrices, devices and budgets; with a shift.
TEST(SparseBatch, BitsAreThoseOfABatchOfOne) {
  const SparseMatrix a = test::grid(7, 6, 3);
  const Batch batch(a, 11);
  const std::int64_t n = a.rows;
  const std::vector<double> b = batch.sides(2, n);
  std::vector<double> wanted = b;
  std::vector<double> determinants;
  for (std::int64_t k = 0; k < batch.count; ++k) {
    FrontBatch one(analysis_by_amd(a), a, 1, options_on("host:1"));
    one.factor({batch.view().column(k), a.entries(), 1, batch.ld}, 0.25);
    one.solve({wanted.data() + 2 * k * n, n, 2, n});
    determinants.push_back(one.infos()[0].log_determinant);
  }
  const auto expect_same = [&](FrontBatch& factors) {
    factors.factor(batch.view(), 7);
    factors.factor(batch.view(), 0.25);  // another shift than before
    std::vector<double> x = b;
    factors.solve({x.data(), n, 2 * batch.count, n});
    EXPECT_EQ(std::memcmp(x.data(), wanted.data(), x.size() * sizeof(double)), 0);
    for (std::int64_t k = 0; k < batch.count; ++k)
      EXPECT_EQ(factors.infos()[at(k)].log_determinant, determinants[at(k)]);
  };
  FrontBatch staying(analysis_by_amd(a), a, batch.count, options_on("host:1", 1 << 26), true);
  expect_same(staying);
  for (const char* devices : {"host:1", "host:3"}) {
    for (const std::int64_t bytes :
         {std::int64_t{0}, std::int64_t{1} << 20, std::int64_t{1} << 24}) {
      SCOPED_TRACE(std::string(devices) + ", " + std::to_string(bytes));
      FrontBatch factors(analysis_by_amd(a), a, batch.count, options_on(devices, bytes));
      ASSERT_FALSE(factors.resident());
      expect_same(factors);
      const RunReport& report = factors.report();
      EXPECT_EQ(report.traffic.host_to_device_bytes, report.planned_traffic.host_to_device_bytes);
      EXPECT_EQ(report.traffic.device_to_host_bytes, report.planned_traffic.device_to_host_bytes);
      if (bytes > 0) {
        EXPECT_LE(report.peak_device_bytes, bytes);
      }
    }
  }
}

TEST(SparseBatch, OfNothing) {
  SparseMatrix none;
  none.start.assign(1, 0);
  SparseCholeskyBatch empty(analysis_by_amd(none), none, 3, options_on("host:1"));
  EXPECT_FALSE(empty.infos()[2].ok);
  for (const FactorInfo& info : empty.factor({nullptr, 0, 3, 1})) {
    EXPECT_TRUE(info.ok);
    EXPECT_EQ(info.log_determinant, 0);
  }
  empty.solve({nullptr, 0, 6, 1});
  const SparseMatrix a = test::grid(3, 3, 1);
  SparseCholeskyBatch no_matrix(analysis_by_amd(a), a, 0, options_on("host:1"));
  EXPECT_TRUE(no_matrix.factor({nullptr, a.entries(), 0, a.entries()}).empty());
  no_matrix.solve({nullptr, a.rows, 0, a.rows});
}

ErrorKind kind_of(const std::function<void()>& call, const std::string& part) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    return error.kind();
  }
  ADD_FAILURE() << "no error";
  return ErrorKind::device;
}

TEST(SparseBatch, BadInputIsNamed) {
  const SparseMatrix a = test::grid(4, 3, 1);
  Batch batch(a, 4);
  SparseCholeskyOptions options = options_on("host:1");
  SparseCholeskyBatch factors(analysis_by_amd(a), a, 4, options);
  std::vector<double> b(at(a.rows * 4));
  const MatrixView<double> sides{b.data(), a.rows, 4, a.rows};
  EXPECT_EQ(kind_of([&] { factors.solve(sides); }, "not completed"), ErrorKind::misuse);
  (void)factors.factor(batch.view());
  factors.solve(sides);
  EXPECT_EQ(kind_of([&] { factors.solve(sides.block(0, 0, a.rows, 3)); }, "4 matrices"),
            ErrorKind::misuse);
  EXPECT_EQ(kind_of(
                [&] {
                  (void)factors.factor({batch.values.data(), a.entries() - 1, 4, batch.ld});
                },
                "4 matrices"),
            ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { (void)factors.factor(batch.view(), std::nan("")); }, "shift"),
            ErrorKind::misuse);
  batch.values[at(2 * batch.ld + 1)] = std::numeric_limits<double>::infinity();
  EXPECT_EQ(kind_of([&] { (void)factors.factor(batch.view()); }, "matrix 2 of the batch"),
            ErrorKind::input);
  EXPECT_EQ(kind_of([&] { factors.solve(sides); }, "not completed"), ErrorKind::misuse);
  const SparseMatrix both = test::random_pattern(12, 0.4, 3, test::Give::both);
  Batch whole(both, 3);
  SparseCholeskyBatch of_both(analysis_by_amd(both), both, 3, options);
  EXPECT_TRUE(of_both.factor(whole.view())[1].ok);
  for (std::int64_t i = 0; i < 6; ++i)  // above the diagonal alone
    for (std::int64_t e = both.start[at(i)]; e < both.start[at(i + 1)]; ++e)
      if (both.column[at(e)] > i) whole.values[at(whole.ld + e)] *= 1.5;
  EXPECT_EQ(kind_of([&] { (void)of_both.factor(whole.view()); }, "matrix 1 of the batch"),
            ErrorKind::numerical);
  options.precision = Element::fp32;
  EXPECT_EQ(kind_of([&] { SparseCholeskyBatch(analysis_by_amd(a), a, 4, options); }, "fp32"),
            ErrorKind::misuse);
  options = options_on("host:1");
  options.tile = 64;
  EXPECT_EQ(kind_of([&] { SparseCholeskyBatch(analysis_by_amd(a), a, 4, options); }, "sizes"),
            ErrorKind::misuse);
  EXPECT_EQ(
      kind_of([&] { SparseCholeskyBatch(analysis_by_amd(a), a, -1, options_on("host:1")); }, "-1"),
      ErrorKind::misuse);
  EXPECT_EQ(
      kind_of([&] { SparseCholeskyBatch(analysis_by_amd(a), a, 4, options_on("host:1", 4096)); },
              "too small"),
      ErrorKind::memory);
  const SparseMatrix other = test::grid(4, 4, 1);
  EXPECT_EQ(
      kind_of([&] { SparseCholeskyBatch(analysis_by_amd(other), a, 4, options_on("host:1")); }, ""),
      ErrorKind::misuse);
}

/// Where a GPU answers: the bits of factors by themselves, from host and from its own memory.
TEST(SparseBatch, OnAGpuBitsAreThoseOfOneFactor) {
  if (cuda_backend() == nullptr) GTEST_SKIP() << "no GPU";
  for (const SparseMatrix& a :
       {test::grid(5, 1, 1), test::grid(30, 30, 1), test::grid(12, 11, 10)}) {
    const std::int64_t n = a.rows;
    Batch batch(a, 37);
    const std::vector<std::int64_t> spoiled{4, 5, 20};
    for (const std::int64_t k : spoiled) batch.spoil(k, n / 2);
    FrontBatch factors(analysis_by_amd(a), a, batch.count, options_on("cuda:0"));
    ASSERT_TRUE(factors.resident());
    for (const std::int64_t nrhs : {1, 2, 19}) {
      factors.factor(batch.view(), 0);
      const std::vector<double> b = batch.sides(nrhs, n);
      std::vector<double> x = b;
      factors.solve({x.data(), n, nrhs * batch.count, n});
      for (std::int64_t k = 0; k < batch.count; ++k) {
        SparseMatrix one = a;
        one.value.assign(batch.view().column(k), batch.view().column(k) + a.entries());
        const SparseCholesky alone(analysis_by_amd(a), one, options_on("cuda:0"));
        const FactorInfo& info = factors.infos()[at(k)];
        ASSERT_EQ(info.ok, alone.info().ok) << "matrix " << k;
        EXPECT_EQ(info.first_bad_pivot, alone.info().first_bad_pivot);
        if (info.ok) {
          EXPECT_EQ(info.log_determinant, alone.info().log_determinant);
        }
        std::vector<double> wanted(b.begin() + k * nrhs * n, b.begin() + (k + 1) * nrhs * n);
        if (info.ok) alone.solve({wanted.data(), n, nrhs, n});
        EXPECT_EQ(std::memcmp(wanted.data(), x.data() + k * nrhs * n, at(nrhs * n) * 8), 0)
            << "matrix " << k << " of order " << n << ", " << nrhs << " right-hand sides";
      }
    }
  }
}

TEST(EvenCalls, AreThoseAtEvenDistances) {
  std::vector<double> memory(1000);
  const auto view = [&](std::int64_t place, std::int64_t rows) {
    return BlockView{memory.data() + place, rows, 1, rows, 0, 0, Element::fp64};
  };
  // The first operand lies evenly for all calls, the second, which the first three share, not.
  std::vector<BlockView> views;
  const std::int64_t second[] = {900, 900, 900, 901, 902, 903};
  for (std::int64_t k = 0; k < 6; ++k) {
    views.push_back(view(10 * k, k < 5 ? 5 : 6));
    views.push_back(view(second[k], 1));
  }
  const KernelCalls calls{views, 2};
  EvenCalls even = even_calls(calls, 0, 100);
  EXPECT_EQ(even.count, 3);
  EXPECT_EQ(even.stride[0], 80);
  EXPECT_EQ(even.stride[1], 0);
  EXPECT_EQ(even_calls(calls, 0, 2).count, 2);
  even = even_calls(calls, 3, 100);  // the last has other extents
  EXPECT_EQ(even.first, 3);
  EXPECT_EQ(even.count, 2);
  EXPECT_EQ(even.stride[1], 8);
  EXPECT_EQ(even_calls(calls, 5, 100).count, 1);
  const std::vector<BlockView> wide(14,
                                    view(0, 5));  // two calls of more operands than are looked at
  EXPECT_EQ(even_calls({wide, 7}, 0, 100).count, 1);
}

}  // namespace
}  // namespace strata
