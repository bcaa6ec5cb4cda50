// Hermitian matrices: factors beside products of their parts and LAPACK, runs beside the Schedule
// in order, and what is refused.

#include <gtest/gtest.h>
#include <lapacke.h>

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <tuple>

#include "cholesky/planning.hpp"
#include "run/run.hpp"
#include "scalar/complex.hpp"
#include "store/memory_store.hpp"
#include "strata/cholesky.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/hermitian_systems.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/hermitian_oracle.hpp"
#include "tests/support/nan.hpp"
#include "tests/support/problems.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::Complex64;
using test::complex_waves;
using test::HermitianOracle;
using test::Matrix;
using test::random_hermitian;
using test::tiled_options;

// ---- planned runs

/// Every element of the lower triangle of tiles.
template <class T>
std::vector<T> lower_tiles_of(MemoryStore& store) {
  const BlockTable& blocks = store.blocks();
  std::vector<T> all;
  for (std::int64_t c = 0; c < blocks.block_cols(kMatrixFamily); ++c) {
    for (std::int64_t r = c; r < blocks.block_rows(kMatrixFamily); ++r) {
      const BlockExtent x = blocks.extent({kMatrixFamily, r, c});
      const auto* data = reinterpret_cast<const T*>(store.lend({kMatrixFamily, r, c}));
      for (std::int64_t j = 0; j < x.cols; ++j)
        for (std::int64_t i = r == c ? j : 0; i < x.rows; ++i) all.push_back(data[i + j * x.rows]);
    }
  }
  return all;
}

template <class T>
class PlannedHermitian {
 public:
  PlannedHermitian(std::int64_t n, std::int64_t tile, int devices)
      : matrix_(random_hermitian<T>(n, 7)) {
    problem_.n = n;
    problem_.tile = tile;
    problem_.devices = devices;
    problem_.precision = element_of<T>;
  }
  [[nodiscard]] Schedule schedule() const { return tile_cholesky(problem_, {}); }

  /// The definition of correct, on any backend.
  [[nodiscard]] std::vector<T> in_order(const Backend& backend) const {
    const auto store = make_store();
    run_in_order(schedule(), backend, *store, {});
    return lower_tiles_of<T>(*store);
  }
  void expect_same(const std::vector<T>& expected, std::int64_t budget, Policy policy) const {
    RunOptions options;
    options.devices = "host:" + std::to_string(problem_.devices);
    options.device_memory_bytes = budget;
    options.compute_queues = 2;
    DeviceSet devices(options);
    const auto store = make_store();
    const PlannedRun planned = plan_cholesky(problem_, devices.machine(), policy);
    ASSERT_LE(planned.plan->layout().arena_bytes(), budget);
    const RunOutcome outcome = run(*planned.plan, devices, *store, {});
    EXPECT_EQ(outcome.trace.traffic, planned.plan->totals().traffic);
    EXPECT_EQ(fold_traffic(outcome.trace.spans), planned.plan->totals().traffic);
    EXPECT_EQ(static_cast<std::int64_t>(outcome.trace.spans.size()), planned.plan->totals().steps);
    EXPECT_TRUE(test::same_bits(lower_tiles_of<T>(*store), expected))
        << "n " << problem_.n << " budget " << budget << ' ' << planned.policy;
  }
  [[nodiscard]] const Matrix<T>& matrix() const { return matrix_; }

 private:
  [[nodiscard]] std::unique_ptr<MemoryStore> make_store() const {
    const BlockTable blocks = schedule().blocks;
    return std::make_unique<MemoryStore>(
        blocks, std::vector{std::make_shared<FamilyMemory>(
                                blocks, kMatrixFamily,
                                source_of_view(matrix_.data.data(), matrix_.ld(), true)),
                            std::make_shared<FamilyMemory>(blocks, kStatusFamily)});
  }

  Matrix<T> matrix_;
  CholeskyProblem problem_;
};

template <class T>
class ComplexCholesky : public ::testing::Test {};
using ComplexTypes = ::testing::Types<Complex128, Complex64>;
TYPED_TEST_SUITE(ComplexCholesky, ComplexTypes);

TYPED_TEST(ComplexCholesky, IsBitIdenticalToTheScheduleInOrderForEveryBudgetPolicyAndDevices) {
  test::Thinned thinned(11);
  constexpr std::int64_t kTile = 24;
  for (const std::int64_t n : {0, 1, 2, 23, 24, 25, 79, 193}) {
    std::vector<TypeParam> of_one;
    for (const int devices : {1, 2, 3, 4}) {
      const PlannedHermitian<TypeParam> c(n, kTile, devices);
      const std::vector<TypeParam> expected = c.in_order(host_backend());
      if (devices == 1) of_one = expected;
      EXPECT_TRUE(test::same_bits(expected, of_one)) << n << ", " << devices;
      const std::int64_t smallest = smallest_budget_bytes(c.schedule());
      const std::int64_t slot = 2 * 256 + kTile * kTile * std::int64_t{sizeof(TypeParam)};
      for (const Policy policy :
           {Policy::sync, Policy::async, Policy::v1, Policy::v2, Policy::v3, Policy::opt}) {
        for (const std::int64_t more : {0, 1, 5}) {
          if (!thinned.skips()) c.expect_same(expected, smallest + more * slot, policy);
        }
      }
      c.expect_same(expected, std::int64_t{1} << 24, Policy::opt);
    }
  }
}

TYPED_TEST(ComplexCholesky, ByReferenceKernelsIsNearlyTheSame) {
  for (const std::int64_t n : {1, 25, 79}) {
    const PlannedHermitian<TypeParam> c(n, 24, 1);
    const auto fast = c.in_order(host_backend());
    const auto slow = c.in_order(reference_backend());
    ASSERT_EQ(fast.size(), slow.size());
    // Both are backward stable, and the condition is below 10.
    const double bound =
        100 * static_cast<double>(n) * double{std::numeric_limits<RealOf<TypeParam>>::epsilon()};
    for (std::size_t k = 0; k < fast.size(); ++k)
      ASSERT_LE(std::abs(Complex128(fast[k]) - Complex128(slow[k])),
                bound * std::sqrt(static_cast<double>(n)));
  }
}

// ---- factors

TYPED_TEST(ComplexCholesky, IsTheFactorOfTheMatrix) {
  using R = RealOf<TypeParam>;
  for (const std::int64_t n : {0, 1, 2, 17, 40, 65}) {
    const auto a = random_hermitian<TypeParam>(n, 3);
    const CholeskyFactor factor = cholesky(std::as_const(a).view(), tiled_options("host:2", 16, 9));
    ASSERT_TRUE(factor.info().ok);
    Matrix<TypeParam> l(n, n);
    factor.copy_lower(l.view());
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < j; ++i) EXPECT_EQ(l(i, j), TypeParam{0});
      EXPECT_EQ(l(j, j).imag(), 0);
      for (std::int64_t i = j; i < n; ++i) {
        long double re = a(i, j).real(), im = a(i, j).imag(), size = 0;
        for (std::int64_t k = 0; k <= j; ++k) {
          const long double xr = l(i, k).real(), xi = l(i, k).imag();
          const long double yr = l(j, k).real(), yi = -static_cast<long double>(l(j, k).imag());
          re -= xr * yr - xi * yi;
          im -= xr * yi + xi * yr;
          size += std::hypot(xr, xi) * std::hypot(yr, yi);
        }
        ASSERT_LE(std::hypot(re, im),
                  3.0L * static_cast<long double>(n + 4) * std::numeric_limits<R>::epsilon() * size)
            << n << ": " << i << ", " << j;
      }
    }
    EXPECT_NEAR(factor.info().log_determinant, HermitianOracle(a).log_determinant(),
                20 * double{std::numeric_limits<R>::epsilon()} * (1 + static_cast<double>(n)));
  }
}

TEST(ComplexCholeskyPeer, IsLapacksFactor) {
  for (const std::int64_t n : {1, 5, 40, 129}) {
    const auto a = random_hermitian<Complex128>(n, 5);
    Matrix<Complex128> peer = a;
    ASSERT_EQ(LAPACKE_zpotrf(LAPACK_COL_MAJOR, 'L', static_cast<lapack_int>(n),
                             reinterpret_cast<lapack_complex_double*>(peer.data.data()),
                             static_cast<lapack_int>(n)),
              0);
    Matrix<Complex128> l(n, n);
    cholesky(a.view(), tiled_options("host:1", 16, 9)).copy_lower(l.view());
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = j; i < n; ++i)
        ASSERT_LE(std::abs(l(i, j) - peer(i, j)), 1e-12 * std::sqrt(static_cast<double>(n)));
  }
}

TYPED_TEST(ComplexCholesky, CountsFourTimesTheFlopsOfARealMatrix) {
  const std::int64_t n = 100;
  const CholeskyFactor factor =
      cholesky(random_hermitian<TypeParam>(n, 3).view(), tiled_options("host:1", 16, 9));
  const auto real = test::random_spd_matrix<double>(n, 3);
  const CholeskyFactor of_real = cholesky(real.view(), tiled_options("host:1", 16, 9));
  EXPECT_DOUBLE_EQ(factor.report().flops, 4 * of_real.report().flops);
  EXPECT_EQ(factor.report().traffic, factor.report().planned_traffic);
}

// ---- what is refused

TYPED_TEST(ComplexCholesky, NamesThePivotThatIsNotPositive) {
  using R = RealOf<TypeParam>;
  auto a = random_hermitian<TypeParam>(40, 31);
  a(23, 23) = R{-7};
  const CholeskyFactor factor = cholesky(std::as_const(a).view(), tiled_options("host:1", 16, 9));
  EXPECT_FALSE(factor.info().ok);
  EXPECT_EQ(factor.info().first_bad_pivot, 23);
  EXPECT_LT(factor.info().bad_pivot, -7);
  for (const bool imaginary : {false, true}) {
    auto spoilt = random_hermitian<TypeParam>(40, 31);
    spoilt(20, 3) = imaginary ? TypeParam(1, static_cast<R>(test::kNan))
                              : TypeParam(static_cast<R>(test::kNan), 1);
    const CholeskyFactor none =
        cholesky(std::as_const(spoilt).view(), tiled_options("host:1", 16, 9));
    EXPECT_FALSE(none.info().ok);
    EXPECT_EQ(none.info().first_bad_pivot, 20);
    EXPECT_TRUE(std::isnan(none.info().bad_pivot));
  }
}

TYPED_TEST(ComplexCholesky, RefusesADiagonalThatIsNotReal) {
  for (const std::int64_t i : {0, 7, 39}) {
    for (const double part : {1e-30, -2.0, test::kNan}) {
      auto a = random_hermitian<TypeParam>(40, 37);
      a(i, i).imag(static_cast<RealOf<TypeParam>>(part));
      try {
        (void)cholesky(std::as_const(a).view(), tiled_options("host:1", 16, 9));
        ADD_FAILURE() << i;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input);
        const std::string what = error.what();
        EXPECT_NE(what.find("(" + std::to_string(i) + ", " + std::to_string(i) + ")"),
                  std::string::npos)
            << what;
        EXPECT_NE(what.find("Hermitian"), std::string::npos) << what;
      }
    }
  }
}

TEST(ComplexCholeskyUse, RefusesAnotherElementThanTheFactors) {
  CholeskyFactor factor =
      cholesky(random_hermitian<Complex128>(8, 1).view(), tiled_options("host:1", 16, 9));
  Matrix<double> real(8, 1);
  EXPECT_THROW((void)factor.solve(real.view()), Error);
  Matrix<Complex64> narrow(8, 1);
  EXPECT_THROW((void)factor.solve(narrow.view()), Error);
  EXPECT_THROW(factor.copy_lower(Matrix<double>(8, 8).view()), Error);
}

TEST(ComplexPlan, MovesTwiceTheBytesAndTakesFourTimesTheFlops) {
  CholeskyOptions options;
  options.tile = 64;
  options.path = CholeskyPath::planned;
  const auto planned = [&](Element element, std::int64_t slots) {
    const Machine machine = Machine::emulated(2, slots * 64 * 64 * bytes_of(element));
    return simulate_cholesky(1000, machine, options, element);
  };
  const RunReport real = planned(Element::fp64, 40);
  const RunReport complex = planned(Element::complex128, 40);
  EXPECT_EQ(complex.flops, 4 * real.flops);
  EXPECT_NEAR(static_cast<double>(complex.planned_traffic.total()),
              2 * static_cast<double>(real.planned_traffic.total()),
              0.05 * static_cast<double>(complex.planned_traffic.total()));
  EXPECT_GT(*complex.predicted_seconds, *real.predicted_seconds);
}

}  // namespace
}  // namespace strata
