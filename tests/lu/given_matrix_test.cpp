// Matrices that come to the devices as they were given, beside their factors: plans are proven, the
// factors are those of panels that the host scales, and products are those of the host, by which
// solutions are certified; without another reading of the matrix.

#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <limits>
#include <string>

#include "base/index.hpp"
#include "base/random.hpp"
#include "kernels/dense/general_residual.hpp"
#include "kernels/dense/panel_product.hpp"
#include "lu/certified_solve.hpp"
#include "lu/matrix_products.hpp"
#include "lu/planning.hpp"
#include "lu/scaled_factor.hpp"
#include "scalar/power_of_two.hpp"
#include "session/policy.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/schedule/plan_checker.hpp"

namespace strata {
namespace {

using test::Matrix;

LuProblem given_problem(std::int64_t n, std::int64_t panel, std::int64_t slab, int devices) {
  LuProblem problem;
  problem.n = n;
  problem.panel = panel;
  problem.slab = slab;
  problem.devices = devices;
  problem.given = Element::fp64;
  problem.precision = Element::fp32;
  problem.factor_identity = 1;
  problem.pivots_identity = 2;
  problem.given_identity = 3;
  return problem;
}

TEST(GivenMatrix, PlansAreProvenForEveryBudget) {
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t panels : {1, 2, 5, 9}) {
      for (const std::int64_t slab : {0, 1, 3}) {
        const auto schedule = std::make_shared<const Schedule>(
            lu_factorization(given_problem(4 * panels, 4, slab, devices)));
        for (const std::int64_t extra : {0, 1, 3, 40}) {
          for (const Policy policy : {Policy::v3, Policy::opt}) {
            const Machine machine = Machine::emulated(
                devices, smallest_budget_bytes(*schedule) + extra * (4 * panels * 4 * 8 + 512));
            ASSERT_EQ(test::check_plan(Plan(schedule, machine, options_of(policy))), "")
                << devices << ' ' << panels << ' ' << slab;
          }
        }
      }
    }
  }
}

TEST(GivenMatrix, PlansOfProductsAreProven) {
  for (const int devices : {1, 2, 5}) {
    for (const std::uint32_t variant : {0U, kAdjointPanel, kMagnitudesOfPanel, kLongProduct}) {
      MatrixProductProblem problem;
      problem.n = 14;
      problem.panel = 4;
      problem.columns = 3;
      problem.variant = variant;
      problem.devices = devices;
      problem.given_identity = 3;
      const auto schedule = std::make_shared<const Schedule>(panel_products(problem));
      for (const std::int64_t extra : {0, 1000, 100'000}) {
        const Machine machine =
            Machine::emulated(devices, smallest_budget_bytes(*schedule) + extra);
        ASSERT_EQ(test::check_plan(Plan(schedule, machine, options_of(Policy::opt))), "");
      }
    }
  }
}

/// Each panel is loaded once and made once, before anything else is done to it.
TEST(GivenMatrix, IsLoadedOnceAndScaledFirst) {
  for (const std::int64_t slab : {0, 1, 2, 3}) {
    std::vector<int> made(5);
    for (const test::FlatTask& task :
         test::tasks_of(lu_factorization(given_problem(20, 4, slab, 1)))) {
      const auto j = static_cast<std::size_t>(task.operands[0].id.col());
      if (task.task.operation->name == "scaled_copy") {
        EXPECT_EQ(made[j]++, 0);
        EXPECT_EQ(task.operands[2].id, BlockId(kGivenFamily, 0, task.operands[0].id.col()));
      } else {
        EXPECT_EQ(made[j], 1);
      }
    }
    EXPECT_EQ(std::count(made.begin(), made.end(), 1), 5);
  }
}

TEST(GivenMatrix, IsHeldBesideTheFactorWhereBothFit) {
  LuProblem problem;
  problem.n = 32768;
  const std::int64_t gib = std::int64_t{1} << 30;
  const auto held = [&](Element precision, Element given, int devices, std::int64_t bytes,
                        MatrixPlace place = MatrixPlace::gpus) {
    problem.precision = precision;
    return devices_hold_both(problem, given, Machine::emulated(devices, bytes), place);
  };
  EXPECT_TRUE(held(Element::fp64, Element::fp64, 1, 20 * gib));
  EXPECT_FALSE(held(Element::fp64, Element::fp64, 1, 16 * gib));
  EXPECT_TRUE(held(Element::fp32, Element::fp64, 1, 15 * gib));
  EXPECT_TRUE(held(Element::fp64, Element::fp64, 2, 10 * gib));
  EXPECT_FALSE(held(Element::fp64, Element::fp64, 1, 20 * gib, MatrixPlace::host));
  problem.n = 100;  // the host's affair
  EXPECT_FALSE(held(Element::fp64, Element::fp64, 1, 20 * gib));
  problem.n = 32768;
  problem.in_storage = true;
  EXPECT_FALSE(held(Element::fp64, Element::fp64, 1, 20 * gib));
}

RunOptions on_host_devices(int devices) {
  RunOptions options;
  options.devices = "host:" + std::to_string(devices);
  options.compute_queues = 2;
  return options;
}

template <class T>
T small_number(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  const auto part = [&](std::uint64_t s) {
    return static_cast<RealOf<T>>(
        std::floor(random_uniform(s, static_cast<std::uint64_t>(i + 8192 * j)) * 17) - 8);
  };
  if constexpr (is_complex_v<T>)
    return {part(seed), part(seed + 1)};
  else
    return part(seed);
}
template <class T>
Matrix<T> integers(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return test::make_matrix<T>(rows, cols,
                              [=](auto i, auto j) { return small_number<T>(seed, i, j); });
}

template <class A>
class Products : public ::testing::Test {};
using ProductElements = ::testing::Types<double, float, std::complex<double>, std::complex<float>>;
TYPED_TEST_SUITE(Products, ProductElements);

/// More columns than go at a time, with integers, so that every order of sums is exact.
TYPED_TEST(Products, AreTheHostsAndLeaveTheMatrixThere) {
  using A = TypeParam;
  using W = WideOf<A>;
  for (const int devices : {1, 2, 3}) {
    for (const std::int64_t n : {1, 5, 16, 70}) {
      for (const std::int64_t columns : {1, 3, 70}) {
        SCOPED_TRACE(::testing::Message() << devices << ' ' << n << ' ' << columns);
        const Matrix<A> a = integers<A>(n, n, 1);
        const Matrix<W> x = integers<W>(n, columns, 3);
        const Matrix<W> b = integers<W>(n, columns, 5);
        const RunOptions options = on_host_devices(devices);
        Session session(options);
        RunReport report;
        const MatrixProductProblem problem{.n = n,
                                           .panel = 6,
                                           .given = element_of<A>,
                                           .devices = devices,
                                           .given_identity = session.new_identity()};
        MatrixProductProblem widest = problem;
        widest.columns = std::min(columns, kColumnsBeside);
        widest.variant = kLongProduct;
        // Blocks stay where they are: room for columns of other widths is beside them.
        session.reserve(std::array{panel_products(widest)},
                        [](std::int64_t arena) { return arena; });
        const SlabbedMatrix<A> host(a.view());
        const SlabbedMatrix<A> there = host.with_products(
            std::make_shared<MatrixOnDevices<A>>(session, a.view(), problem, nullptr, report));
        for (const bool adjoint : {false, true}) {
          Matrix<W> expected = b;
          Matrix<W> got = b;
          host.residual(adjoint, x.view(), expected.view());
          there.residual(adjoint, x.view(), got.view());
          EXPECT_EQ(got.data, expected.data);
        }
        Matrix<W> expected(n, columns);
        Matrix<W> got(n, columns);
        host.residual_dd(b.view(), x.view(), expected.view());
        there.residual_dd(b.view(), x.view(), got.view());
        EXPECT_EQ(got.data, expected.data);
        const auto sizes = test::make_matrix<double>(
            n, columns, [&](auto i, auto j) { return std::abs(x(i, j)); });
        auto expected_sizes = test::make_matrix<double>(n, columns, [](auto, auto) { return 1.0; });
        Matrix<double> got_sizes = expected_sizes;
        host.add_magnitudes(sizes.view(), expected_sizes.view());
        there.add_magnitudes(sizes.view(), got_sizes.view());
        for (std::size_t i = 0; i < got_sizes.data.size(); ++i)
          ASSERT_NEAR(got_sizes.data[i], expected_sizes.data[i], 1e-12 * expected_sizes.data[i]);
        EXPECT_EQ(report.traffic, report.planned_traffic);
        // The matrix came once; X and Y with each product.
        const std::int64_t size = bytes_of(element_of<W>);
        const std::int64_t of_sums = n * columns * size;
        const std::int64_t users = std::min<std::int64_t>(devices, (n + 5) / 6);
        const std::int64_t real = n * columns * bytes_of(Element::fp64);
        EXPECT_EQ(report.traffic.host_to_device_bytes, n * n * bytes_of(element_of<A>) +
                                                           users * (3 * of_sums + real) +
                                                           users * (4 * of_sums + real));
      }
    }
  }
}

/// 1 + small − 1: what is left is small, though fp64 loses it.
TEST(ProductsOnDevices, KeepTwiceTheDigitsOfLongSums) {
  const std::int64_t n = 30;
  const double small = 0x1p-80;
  const auto a = test::make_matrix<double>(n, n, [&](auto, auto j) {
    return j == 0 ? 1.0 : j == 7 ? small : j == n - 1 ? -1.0 : 0.0;
  });
  const auto x = test::make_matrix<double>(n, 1, [](auto, auto) { return 1.0; });
  const Matrix<double> b(n, 1);
  for (const int devices : {1, 2, 4}) {
    Session session(on_host_devices(devices));
    RunReport report;
    MatrixOnDevices<double> products(
        session, a.view(),
        {.n = n, .panel = 7, .devices = devices, .given_identity = session.new_identity()}, nullptr,
        report);
    Matrix<double> r(n, 1);
    products.residual_dd(b.view(), x.view(), r.view());
    for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(r(i, 0), -small);
  }
}

/// Rows and columns in units far apart, where factors are of the scaled matrix.
Matrix<double> in_units(std::int64_t n, int digits) {
  return test::make_matrix<double>(n, n, [=](auto i, auto j) {
    return test::signed_uniform(8, i, j) *
           std::pow(10.0, static_cast<double>((i * 7 + j * 3) % 5) * digits / 5.0);
  });
}

/// A factor by the host's loads and one of the matrix on devices.
template <class N>
struct BothFactors {
  Matrix<double> b;
  ScaledSystem<double> system;
  LuOptions options;
  ScaledFactor<N, double> of_host;
  ScaledFactor<N, double> of_devices;

  BothFactors(const Matrix<double>& a, FactorScales scales, int devices)
      : b(test::make_matrix<double>(a.rows, 2,
                                    [](auto i, auto j) { return test::signed_uniform(21, i, j); })),
        system(a.view(), b.view(), Element::fp64),
        options({.run = on_host_devices(devices), .panel = 16}),
        of_host(system, options, scales, MatrixPlace::host),
        of_devices(system, options, scales, MatrixPlace::any_devices) {}
};

template <class N>
void expect_the_same_factor(BothFactors<N>& both, int devices) {
  const std::int64_t n = both.b.rows;
  EXPECT_EQ(both.of_host.info().growth, both.of_devices.info().growth);
  EXPECT_EQ(both.of_host.info().determinant.log(), both.of_devices.info().determinant.log());
  EXPECT_EQ(both.of_host.info().determinant.sign, both.of_devices.info().determinant.sign);
  const RunReport& report = both.of_devices.report();
  EXPECT_EQ(report.traffic, report.planned_traffic);
  if (devices == 1) {  // several have panels of each other
    EXPECT_EQ(report.traffic.host_to_device_bytes, n * n * 8 + n * 16);
    // The factor is there alone: only pivots, statuses, diagonals and largest elements came home.
    EXPECT_LT(report.traffic.device_to_host_bytes, 100 * n + 1000);
  }
  RunReport solves;
  for (const bool adjoint : {false, true}) {
    const DenseBlock expected = both.of_host.solve(both.b.view(), adjoint, 0, solves);
    const DenseBlock x = both.of_devices.solve(both.b.view(), adjoint, 0, solves);
    for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(x.column(0)[i], expected.column(0)[i]);
  }
  // What asks for it at home has it, and solves go on.
  const DenseBlock before = both.of_devices.solve(both.b.view(), false, 0, solves);
  if (std::is_same_v<N, float>) {
    const DenseBlock expected = both.of_host.solve_wide(both.b.view(), true, 0);
    const DenseBlock wide = both.of_devices.solve_wide(both.b.view(), true, 0);
    for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(wide.column(1)[i], expected.column(1)[i]);
  }
  const DenseBlock after = both.of_devices.solve(both.b.view(), false, 0, solves);
  for (std::int64_t i = 0; i < n; ++i) EXPECT_EQ(after.column(1)[i], before.column(1)[i]);
}

/// Residuals do not read the matrix again, but for another one they do.
template <class N>
void expect_products(BothFactors<N>& both, const Matrix<double>& a, int devices) {
  const std::int64_t n = a.rows;
  RunReport products;
  EXPECT_EQ(both.of_host.products(both.system, true, products), nullptr);
  const auto there = both.of_devices.products(both.system, true, products);
  ASSERT_NE(there, nullptr);
  DenseBlock r(n, 2);
  there->residual(false, both.b.view(), r.view());
  EXPECT_LE(products.traffic.host_to_device_bytes, devices * 4 * n * 2 * 8);
  Matrix<double> other = a;
  other(0, 0) += 1;
  const SlabbedMatrix<double> slabs(other.view());
  const ScaledSystem<double> system_of_other(slabs, both.b.view(), Element::fp64);
  const auto of_other = both.of_devices.products(system_of_other, false, products);
  Matrix<double> expected(n, 2);
  Matrix<double> got(n, 2);
  slabs.residual(false, both.b.view(), expected.view());
  of_other->residual(false, both.b.view(), got.view());
  for (std::size_t i = 0; i < got.data.size(); ++i)
    ASSERT_NEAR(got.data[i], expected.data[i], 1e-12 * both.system.norm_inf());
}

template <class N>
void expect_a_true_certificate(BothFactors<N>& both, const Matrix<double>& a) {
  const std::int64_t n = a.rows;
  GeneralSolveResult result;
  set_factor(both.of_devices.info(), both.of_devices.report(), result);
  const auto inverse = [&](MatrixView<const double> v, bool adjoint) {
    return both.of_devices.solve(v, adjoint, both.system.exponent(), result.solve);
  };
  CertifiedSolution<double>::Inverse precondition;
  if (std::is_same_v<N, float>)
    precondition = [&](MatrixView<const double> v, bool adjoint) {
      return both.of_devices.solve_wide(v, adjoint, both.system.exponent());
    };
  CertifiedSolution<double> solution(inverse, both.system, result,
                                     both.of_devices.products(both.system, true, result.solve),
                                     precondition);
  Matrix<double> x(n, 2);
  write_back(solution.solve(), both.system, x.view());
  for (std::int64_t j = 0; j < 2; ++j) {
    const std::vector<double> column(both.b.view().column(j), both.b.view().column(j) + n);
    const std::vector<double> mine(x.view().column(j), x.view().column(j) + n);
    const test::WideErrors exact = test::wide_errors(a.data, column, mine);
    EXPECT_LE(exact.forward, result.certificate.forward_error);
    EXPECT_LE(exact.componentwise, result.certificate.componentwise_backward_error);
    EXPECT_LE(result.certificate.forward_error, 1e-6);
  }
}

template <class N>
void expect_the_hosts_factor(const Matrix<double>& a, FactorScales scales, int devices) {
  BothFactors<N> both(a, scales, devices);
  expect_the_same_factor(both, devices);
  expect_products(both, a, devices);
  expect_a_true_certificate(both, a);
}

TEST(GivenMatrix, HasTheHostsFactorAndATrueCertificate) {
  for (const int devices : {1, 2}) {
    for (const std::int64_t n : {1, 17, 100}) {
      SCOPED_TRACE(::testing::Message() << devices << ' ' << n);
      expect_the_hosts_factor<double>(test::random_general(n), FactorScales::none, devices);
      expect_the_hosts_factor<double>(in_units(n, 12), FactorScales::balanced, devices);
      expect_the_hosts_factor<float>(test::random_general(n), FactorScales::balanced, devices);
      expect_the_hosts_factor<float>(in_units(n, 20), FactorScales::balanced, devices);
    }
  }
}

template <class A>
class CopiesOfGivenMatrices : public ::testing::Test {};
TYPED_TEST_SUITE(CopiesOfGivenMatrices, ProductElements);

template <class A>
Matrix<A> random_of(std::int64_t n) {
  return test::make_matrix<A>(n, n, [](auto i, auto j) {
    const auto part = [&](std::uint64_t seed) {
      return static_cast<RealOf<A>>(test::signed_uniform(seed, i, j));
    };
    if constexpr (is_complex_v<A>)
      return A{part(31), part(32)};
    else
      return part(31);
  });
}

/// What is loaded differs from what the scales were made of, as if a transfer had failed: factor
/// and residuals agree with each other, and the host has to tell.
TYPED_TEST(CopiesOfGivenMatrices, ThatAreNotTheMatrixAreTold) {
  using A = TypeParam;
  using W = WideOf<A>;
  const std::int64_t n = 70;
  for (const int devices : {1, 2}) {
    for (const bool same : {true, false}) {
      for (const std::int64_t at_element : {std::int64_t{0}, n * n / 2 + 3, n * n - 1}) {
        Matrix<A> a = random_of<A>(n);
        const Matrix<W> b(n, 1);
        const ScaledSystem<A> system(a.view(), b.view(), element_of<A>);
        const LuOptions options{.run = on_host_devices(devices), .panel = 16};
        A& element = a.data[at(at_element)];
        const A right = element;
        if (same) element = -right;
        ScaledFactor<A, W> factor(system, options, FactorScales::balanced,
                                  MatrixPlace::any_devices);
        element = same ? right : right * RealOf<A>{1.0009765625};
        RunReport report;
        try {
          (void)factor.products(system, same, report);
          FAIL() << "no error";
        } catch (const Error& error) {
          EXPECT_EQ(error.kind(), ErrorKind::device);
          EXPECT_NE(std::string(error.what()).find("its row " + std::to_string(at_element % n)),
                    std::string::npos)
              << error.what();
        }
        element = right;
        EXPECT_NE(factor.products(system, false, report), nullptr);  // now it is
      }
    }
  }
}

/// Rows and columns in any units, zeros, columns of subnormal numbers, and what is not finite.
TYPED_TEST(CopiesOfGivenMatrices, AreTheMatrixInAnyUnits) {
  using A = TypeParam;
  using W = WideOf<A>;
  const std::int64_t n = 70;
  const Matrix<A> random = random_of<A>(n);
  constexpr int kFarthest = std::numeric_limits<RealOf<A>>::max_exponent - 8;
  for (const int farthest : {0, 20, kFarthest}) {
    for (const int kind : {0, 1, 2, 3}) {
      auto a = test::make_matrix<A>(n, n, [&](auto i, auto j) {
        const int of_row = kind == 1 ? static_cast<int>(i) % 3 - 1 : 0;
        const int of_column = kind == 2 ? static_cast<int>(j) % 3 - 1 : 0;
        if (kind == 3 && (i * 7 + j) % 5 != 0) return A{};
        return times_power(random(i, j), (of_row + of_column) * farthest);
      });
      for (std::int64_t i = 0; kind == 2 && i < n; ++i)
        a(i, 3) = times_power(random(i, 3), 8 - std::numeric_limits<RealOf<A>>::max_exponent - 12);
      const Matrix<W> b(n, 1);
      const ScaledSystem<A> system(a.view(), b.view(), element_of<W>);
      Session session(on_host_devices(2));
      RunReport report;
      const MatrixProductProblem problem{.n = n,
                                         .panel = 16,
                                         .given = element_of<A>,
                                         .devices = 2,
                                         .given_identity = session.new_identity()};
      MatrixOnDevices<A> there(session, system.a().whole(), problem, nullptr, report);
      EXPECT_NO_THROW(require_same_matrix<A>(there, system.probe())) << farthest << ' ' << kind;
      Matrix<A> wrong(n, n);
      std::copy_n(system.a().whole().data, n * n, wrong.data.begin());
      wrong(5, 3) = wrong(5, 3) * RealOf<A>{1.5};
      MatrixProductProblem other = problem;
      other.given_identity = session.new_identity();
      MatrixOnDevices<A> not_there(session, wrong.view(), other, nullptr, report);
      if (wrong(5, 3) != A{}) {
        EXPECT_THROW(require_same_matrix<A>(not_there, system.probe()), Error)
            << farthest << ' ' << kind;
      }
    }
  }
}

/// Numbers near both ends of the range, which are divided by a power of two.
TEST(GivenMatrix, MayBeNearTheEndsOfTheRange) {
  for (const double power : {0x1p1010, 0x1p-1000}) {
    Matrix<double> a = test::random_general(40);
    for (double& value : a.data) value *= power;
    const auto b = test::make_matrix<double>(40, 1, [](auto i, auto) { return 1.0 + double(i); });
    const ScaledSystem<double> system(a.view(), b.view(), Element::fp64);
    LuOptions options;
    options.run = on_host_devices(1);
    options.panel = 16;
    ScaledFactor<double, double> of_host(system, options, FactorScales::none, MatrixPlace::host);
    ScaledFactor<double, double> there(system, options, FactorScales::none,
                                       MatrixPlace::any_devices);
    EXPECT_EQ(of_host.info().determinant.exponent, there.info().determinant.exponent);
    EXPECT_EQ(of_host.info().determinant.mantissa, there.info().determinant.mantissa);
    RunReport report;
    const DenseBlock expected = of_host.solve(system.b(), false, system.exponent(), report);
    const DenseBlock got = there.solve(system.b(), false, system.exponent(), report);
    for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(got.column(0)[i], expected.column(0)[i]);
  }
}

/// What is singular or not finite is said with the column, as of the host's.
TEST(GivenMatrix, SaysWhatIsSingularOrNotFinite) {
  Matrix<double> a = test::random_general(50);
  for (std::int64_t i = 0; i < 50; ++i) a(i, 33) = 0;
  const Matrix<double> b(50, 1);
  LuOptions options;
  options.run = on_host_devices(1);
  options.panel = 16;
  const ScaledSystem<double> singular(a.view(), b.view(), Element::fp64);
  const ScaledFactor<double, double> factor(singular, options, FactorScales::balanced,
                                            MatrixPlace::any_devices);
  EXPECT_EQ(factor.info().zero_pivot, 33);
  a(40, 20) = std::numeric_limits<double>::infinity();
  const ScaledSystem<double> infinite(a.view(), b.view(), Element::fp64);
  const ScaledFactor<float, double> other(infinite, options, FactorScales::balanced,
                                          MatrixPlace::any_devices);
  EXPECT_EQ(other.info().not_finite, 20);
  Matrix<double> regular = a;
  regular(40, 20) = 1;
  for (std::int64_t i = 0; i < 50; ++i) regular(i, 33) = i == 33 ? 1 : 0;
  const ScaledSystem<double> of_regular(regular.view(), b.view(), Element::fp64);
  ScaledFactor<double, double> good(of_regular, options, FactorScales::balanced,
                                    MatrixPlace::any_devices);
  RunReport report;
  EXPECT_NO_THROW((void)good.products(infinite, false, report));  // the matrix is to blame
}

}  // namespace
}  // namespace strata
