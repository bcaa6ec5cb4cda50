// eigs: eigenvalues that are known in closed form, each as often as it is one; the same bits
// wherever it runs; and the small eigenvalue problems.

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>

#include "dense/small_eigen.hpp"
#include "krylov/recurrence.hpp"
#include "strata/error.hpp"
#include "strata/krylov.hpp"
#include "tests/krylov/eigs_harness.hpp"
#include "tests/krylov/matrices.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::Pairs;
using test::pairs;

EigsOptions lanczos_options(std::int64_t k, EigenEnd which, std::int64_t s = 1,
                            std::int64_t basis_size = 0, KrylovBasis basis = KrylovBasis::lanczos) {
  EigsOptions options;
  options.k = k;
  options.which = which;
  options.method = EigsMethod::lanczos;  // whatever the order
  options.s = s;
  options.basis_size = basis_size;
  options.basis = basis;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = 256 << 20;
  return options;
}

/// ‖A·v − λ·v‖ of each pair, and |vᵢᵀvⱼ − δᵢⱼ|.
void expect_pairs(const SparseMatrix& a, const Pairs& result, double tolerance) {
  const auto n = static_cast<std::size_t>(a.rows);
  const std::size_t k = result.info.values.size();
  for (std::size_t j = 0; j < k; ++j) {
    const std::span<const double> v(result.vectors.data() + j * n, n);
    std::vector<double> y(n);
    multiply(a, v, y);
    double square = 0;
    for (std::size_t i = 0; i < n; ++i) square += std::pow(y[i] - result.info.values[j] * v[i], 2);
    EXPECT_LE(std::sqrt(square), tolerance) << j;
    for (std::size_t l = 0; l <= j; ++l) {
      double dot = 0;
      for (std::size_t i = 0; i < n; ++i) dot += v[i] * result.vectors[l * n + i];
      EXPECT_NEAR(dot, l == j ? 1 : 0, 1e-12) << l << ", " << j;
    }
  }
}

void expect_values(const Pairs& result, std::vector<double> all, const EigsOptions& options,
                   double scale) {
  std::sort(all.begin(), all.end());
  if (options.which == EigenEnd::largest) std::reverse(all.begin(), all.end());
  ASSERT_EQ(std::ssize(result.info.values), options.k) << result.info.why;
  EXPECT_TRUE(result.info.ok) << result.info.why;
  for (std::size_t i = 0; i < result.info.values.size(); ++i)
    EXPECT_NEAR(result.info.values[i], all[i], 1e-10 * scale) << i;
}

std::vector<double> laplacian_values(std::int64_t g) {
  std::vector<double> values;
  const auto part = [g](std::int64_t i) {
    return 2 - 2 * std::cos(std::numbers::pi * static_cast<double>(i) / static_cast<double>(g + 1));
  };
  for (std::int64_t i = 1; i <= g; ++i)
    for (std::int64_t j = 1; j <= g; ++j)
      for (std::int64_t k = 1; k <= g; ++k) values.push_back(part(i) + part(j) + part(k));
  return values;
}

TEST(Eigs, FindsTheEndsOfADiagonal) {
  std::vector<double> d(500);
  for (std::size_t i = 0; i < d.size(); ++i) d[(i * 7) % 500] = static_cast<double>(i + 1);
  const SparseMatrix a = test::diagonal(d);
  for (const EigenEnd which : {EigenEnd::smallest, EigenEnd::largest}) {
    for (const std::int64_t s : {1, 6}) {
      const EigsOptions options = lanczos_options(10, which, s, 40);
      const Pairs result = pairs(a, options);
      expect_values(result, d, options, 500);
      expect_pairs(a, result, 1e-10 * 500);
    }
  }
}

/// Eigenvalues of a cube come three and six times: none may be missing, none be there twice too
/// often.
TEST(Eigs, FindsEigenvaluesAsOftenAsTheyAreOne) {
  constexpr std::int64_t kEdge = 8;
  const SparseMatrix a = test::laplacian(kEdge);
  for (const auto& [s, basis] :
       {std::pair(1, KrylovBasis::monomial), std::pair(8, KrylovBasis::lanczos),
        std::pair(20, KrylovBasis::lanczos), std::pair(8, KrylovBasis::newton),
        std::pair(8, KrylovBasis::chebyshev), std::pair(5, KrylovBasis::monomial)}) {
    for (const EigenEnd which : {EigenEnd::smallest, EigenEnd::largest}) {
      if (test::kSanitized && (which == EigenEnd::smallest) != (s == 8)) continue;
      const EigsOptions options = lanczos_options(17, which, s, 50, basis);
      const Pairs result = pairs(a, options);
      expect_values(result, laplacian_values(kEdge), options, 12);
      expect_pairs(a, result, 1e-10 * 12);
    }
  }
}

/// Blocks cost one product a vector, and no more cycles than single vectors do. Errors that grow
/// from block to block, as the Chebyshev polynomials of an interval with a gap make them, would
/// never let pairs converge.
TEST(Eigs, TakesAsManyProductsInBlocksAsVectorByVector) {
  std::vector<double> gap(1200), even(1200);
  for (std::size_t i = 0; i < gap.size(); ++i) {
    const auto x = static_cast<double>(i) / 12000;
    gap[i] = i < 600 ? x : 0.9 + x;
    even[i] = static_cast<double>(i + 1);
  }
  for (const std::vector<double>& d : {gap, even}) {
    if (test::kSanitized && d == even) continue;
    const SparseMatrix a = test::diagonal(d);
    const Pairs single = pairs(a, lanczos_options(10, EigenEnd::largest, 1, 30));
    ASSERT_TRUE(single.info.ok) << single.info.why;
    for (const KrylovBasis basis :
         {KrylovBasis::lanczos, KrylovBasis::newton, KrylovBasis::chebyshev}) {
      const EigsOptions options = lanczos_options(10, EigenEnd::largest, 15, 30, basis);
      const Pairs result = pairs(a, options);
      expect_values(result, d, options, d.back());
      EXPECT_LE(result.info.restarts, single.info.restarts + 2) << to_string(basis);
      // Beside them those by which the pairs are checked.
      EXPECT_LE(result.info.products, single.info.products + 2 * (10 + 30)) << to_string(basis);
      if (basis != KrylovBasis::lanczos) continue;
      const auto blocks = std::count_if(result.info.decisions.begin(), result.info.decisions.end(),
                                        [](const KrylovDecision& d) { return d.s > 1; });
      EXPECT_GE(4 * blocks, std::ssize(result.info.decisions));
    }
  }
}

/// Newton's polynomials multiply the error of A·Q = Q·T by 1e3 a cycle, and blocks of monomials
/// fail at once: a fixed method keeps such blocks as they are, until numbers are no longer finite.
TEST(Eigs, GoesOnVectorByVectorWhereBlocksOfAFixedMethodBreakDown) {
  constexpr std::int64_t kEdge = 14;
  const SparseMatrix a = test::laplacian(kEdge);
  struct Broken {
    QrMethod method;
    KrylovBasis basis;
    std::int64_t s;
    EigenEnd which;
  };
  for (const Broken& broken :
       {Broken{QrMethod::cholqr, KrylovBasis::newton, 4, EigenEnd::largest},
        Broken{QrMethod::cholqr, KrylovBasis::monomial, 12, EigenEnd::smallest},
        Broken{QrMethod::cholqr, KrylovBasis::lanczos, 20, EigenEnd::smallest},
        Broken{QrMethod::cholqr2, KrylovBasis::newton, 12, EigenEnd::largest},
        Broken{QrMethod::cholqr_wide, KrylovBasis::newton, 4, EigenEnd::smallest},
        Broken{QrMethod::cholqr_wide2, KrylovBasis::monomial, 12, EigenEnd::largest},
        Broken{QrMethod::cgs, KrylovBasis::newton, 4, EigenEnd::largest},
        Broken{QrMethod::mgs, KrylovBasis::lanczos, 20, EigenEnd::smallest}}) {
    if (test::kSanitized && (broken.s == 4 || broken.method == QrMethod::mgs)) continue;
    EigsOptions options = lanczos_options(6, broken.which, broken.s, 40, broken.basis);
    options.orthogonalization = broken.method;
    options.restarts_max = 60;
    options.filter = false;
    const Pairs result = pairs(a, options);
    SCOPED_TRACE(to_string(broken.method));
    expect_values(result, laplacian_values(kEdge), options, 12);
    expect_pairs(a, result, 1e-10 * 12);
    EXPECT_EQ(std::ssize(result.info.history), result.info.restarts);
    EXPECT_TRUE(std::any_of(
        result.info.decisions.begin(), result.info.decisions.end(),
        [](const KrylovDecision& d) { return d.what.find("single: ") != std::string::npos; }));
  }
}

TEST(Eigs, ABreakdownWithNoCyclesLeftSaysWhatFailedAndWhatWouldDo) {
  EigsOptions options = lanczos_options(6, EigenEnd::largest, 12, 40, KrylovBasis::monomial);
  options.orthogonalization = QrMethod::cholqr;
  options.restarts_max = 1;
  options.filter = false;
  const SparseMatrix a = test::laplacian(14);
  const Pairs blocks = pairs(a, options);
  EXPECT_FALSE(blocks.info.ok);
  for (const char* part : {"1 cycles", "cholqr", "s = 12", "monomial", "no longer finite", "auto"})
    EXPECT_NE(blocks.info.why.find(part), std::string::npos) << blocks.info.why;
  // Vector by vector there is nothing to fall back to: one projection a vector is what was asked
  // for, and leaves vectors that are not orthogonal.
  options.orthogonalization = QrMethod::mgs;
  options.s = 1;
  options.restarts_max = test::kSanitized ? 40 : 100;
  const Pairs single = pairs(a, options);
  EXPECT_FALSE(single.info.ok);
  EXPECT_NE(single.info.why.find("mgs are orthonormal to"), std::string::npos) << single.info.why;
  EXPECT_NE(single.info.why.find("cgs2"), std::string::npos) << single.info.why;
}

TEST(Eigs, WorksWhereTheSpaceEndsAtOnce) {
  const SparseMatrix one = test::diagonal(std::vector<double>(60, 3.0));
  Pairs result = pairs(one, lanczos_options(5, EigenEnd::largest));
  expect_values(result, std::vector<double>(60, 3.0), lanczos_options(5, EigenEnd::largest), 3);
  expect_pairs(one, result, 1e-12);
  std::vector<double> two(60, -2.0);
  two[13] = two[31] = 5;
  result = pairs(test::diagonal(two), lanczos_options(4, EigenEnd::largest, 3));
  expect_values(result, two, lanczos_options(4, EigenEnd::largest), 5);
  // All pairs but one of a matrix of order 6.
  const SparseMatrix small = test::grid(3, 2, 1);
  expect_pairs(small, pairs(small, lanczos_options(5, EigenEnd::smallest)), 1e-9);
}

bool chose_a_filter(const Pairs& result) {
  return result.info.filter_degree > 0 &&
         std::any_of(result.info.decisions.begin(), result.info.decisions.end(),
                     [](const KrylovDecision& d) { return d.what.starts_with("filter: "); });
}

/// Dense ends: a thousandth of the spectrum holds what is wanted. Without a filter hundreds of
/// cycles are needed, or more than there are.
TEST(Eigs, AFilterFindsWhatManyCyclesWouldNot) {
  STRATA_LEAVE_OUT_WITH_SANITIZER();
  std::vector<double> even(4000), square(4000), triples(3000), gap(2000);
  for (std::size_t i = 0; i < even.size(); ++i) {
    even[i] = static_cast<double>(i) - 2000;  // both signs
    square[i] = std::pow(static_cast<double>(i + 1) / 4000, 2);
    if (i < triples.size()) triples[i] = static_cast<double>(i / 3 + 1);
    // Two thousandths of the spectrum for half of the eigenvalues: the first filters have either
    // all of them beyond the edge or few of them.
    if (i < gap.size()) gap[i] = static_cast<double>(i < 1000 ? 2 * i + 2 : 1000'000 + i) / 1e6;
  }
  struct Case {
    const std::vector<double>* d;
    EigenEnd which;
    std::int64_t k, s, basis;
  };
  for (const Case& c :
       {Case{&even, EigenEnd::smallest, 12, 1, 26}, Case{&even, EigenEnd::largest, 12, 6, 26},
        Case{&square, EigenEnd::smallest, 10, 1, 30}, Case{&square, EigenEnd::smallest, 1, 1, 12},
        Case{&triples, EigenEnd::largest, 14, 1, 30}, Case{&triples, EigenEnd::smallest, 14, 5, 30},
        Case{&gap, EigenEnd::smallest, 9, 1, 24}}) {
    if (test::kSanitized && c.d == &gap) continue;
    const SparseMatrix a = test::diagonal(*c.d);
    EigsOptions options = lanczos_options(c.k, c.which, c.s, c.basis);
    options.restarts_max = 60;
    const Pairs result = pairs(a, options);
    const double norm = std::max(std::abs(c.d->front()), std::abs(c.d->back()));
    SCOPED_TRACE(fmt::format("k {}, s {}, norm {}", c.k, c.s, norm));
    expect_values(result, *c.d, options, norm);
    expect_pairs(a, result, 1e-10 * norm);
    EXPECT_TRUE(chose_a_filter(result));
    // Decisions are in the trace too, when they were made.
    const Trace& trace = result.info.report.trace;
    ASSERT_EQ(trace.notes.size(), result.info.decisions.size());
    for (std::size_t i = 0; i < trace.notes.size(); ++i) {
      EXPECT_NE(trace.notes[i].text.find(result.info.decisions[i].what), std::string::npos);
      EXPECT_GE(trace.notes[i].at, i > 0 ? trace.notes[i - 1].at : 0.0);
      EXPECT_LE(trace.notes[i].at, trace.seconds);
    }
    if (test::kSanitized && c.k > 1) continue;
    options.filter = false;
    const Pairs plain = pairs(a, options);
    EXPECT_FALSE(plain.info.ok);
    EXPECT_EQ(plain.info.filter_degree, 0);
  }
}

TEST(Eigs, AFilterFindsEigenvaluesAsOftenAsTheyAreOne) {
  constexpr std::int64_t kEdge = 20;
  const SparseMatrix a = test::laplacian(kEdge);
  for (const EigenEnd which : {EigenEnd::smallest, EigenEnd::largest}) {
    if (test::kSanitized && which == EigenEnd::largest) continue;
    const EigsOptions options = lanczos_options(20, which, 1, 41);
    const Pairs result = pairs(a, options);
    expect_values(result, laplacian_values(kEdge), options, 12);
    expect_pairs(a, result, 1e-10 * 12);
    EXPECT_TRUE(chose_a_filter(result));
  }
}

/// Where Lanczos is fast it stays as it is, to the last bit.
TEST(Eigs, ThereIsNoFilterWhereFewCyclesDo) {
  const SparseMatrix a = test::grid(9, 8, 11);
  EigsOptions options = lanczos_options(6, EigenEnd::smallest, 1, 24);
  const Pairs result = pairs(a, options);
  EXPECT_EQ(result.info.filter_degree, 0);
  options.filter = false;
  const Pairs plain = pairs(a, options);
  EXPECT_EQ(result.vectors, plain.vectors);
  EXPECT_EQ(result.info.products, plain.info.products);
}

class EigsRuns : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, EigsRuns, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

void expect_same_course(const EigsInfo& a, const EigsInfo& b, const std::string& where) {
  ASSERT_EQ(a.history.size(), b.history.size()) << where;
  for (std::size_t i = 0; i < a.history.size(); ++i) {
    EXPECT_EQ(a.history[i].locked, b.history[i].locked) << where << ", cycle " << i;
    EXPECT_EQ(a.history[i].estimated_residual, b.history[i].estimated_residual)
        << where << ", cycle " << i;
  }
  ASSERT_EQ(a.decisions.size(), b.decisions.size()) << where;
  for (std::size_t i = 0; i < a.decisions.size(); ++i) {
    const KrylovDecision& x = a.decisions[i];
    const KrylovDecision& y = b.decisions[i];
    EXPECT_EQ(std::tie(x.restart, x.column, x.s, x.wide, x.passes, x.what),
              std::tie(y.restart, y.column, y.s, y.wide, y.passes, y.what))
        << where << ", block " << i << ": " << x.what << " / " << y.what;
  }
}

TEST_P(EigsRuns, HaveTheSameBitsOnAnyDevicesAndBudget) {
  for (const auto& [s, filtered] : {std::pair(1, false), std::pair(6, false), std::pair(1, true)}) {
    const SparseMatrix a = filtered ? test::grid(1, 3, 400) : test::grid(9, 8, 11);
    EigsOptions options = lanczos_options(6, EigenEnd::smallest, s, filtered ? 16 : 24);
    const Pairs expected = pairs(a, options);
    ASSERT_TRUE(expected.info.ok) << expected.info.why;
    ASSERT_GE(expected.info.restarts, 3);
    ASSERT_EQ(chose_a_filter(expected), filtered);
    ASSERT_EQ(std::ssize(expected.info.history), expected.info.restarts);
    ASSERT_EQ(expected.info.decisions.empty(), s == 1 && !filtered);
    for (const int devices : {1, 2, 3, 4}) {
      options.run.devices = test::devices_text(GetParam(), devices);
      if (options.run.devices.empty()) continue;
      for (const std::int64_t budget : {std::int64_t{64} << 20, std::int64_t{400'000}}) {
        if (budget < 1 << 20 && devices == 3) continue;
        if (test::kSanitized && devices != (budget < 1 << 20 ? 2 : 3)) continue;
        options.run.device_memory_bytes = budget;
        const Pairs result = pairs(a, options);
        EXPECT_EQ(result.vectors, expected.vectors) << options.run.devices << ", " << budget;
        EXPECT_EQ(result.info.values, expected.info.values);
        EXPECT_EQ(result.info.restarts, expected.info.restarts);
        expect_same_course(result.info, expected.info,
                           fmt::format("{}, {}", options.run.devices, budget));
        EXPECT_EQ(result.info.report.traffic,
                  static_cast<const Traffic&>(result.info.report.planned_traffic));
      }
    }
  }
}

TEST(Eigs, BadInputIsNamed) {
  SparseMatrix a = test::laplacian(4);
  const auto message = [&](ErrorKind kind, const EigsOptions& options) -> std::string {
    try {
      (void)pairs(a, options);
    } catch (const Error& error) {
      EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "nothing was refused";
    return "";
  };
  (void)message(ErrorKind::misuse, lanczos_options(64, EigenEnd::largest));
  (void)message(ErrorKind::misuse, lanczos_options(0, EigenEnd::largest));
  (void)message(ErrorKind::misuse, lanczos_options(10, EigenEnd::largest, 1, 11));
  (void)message(ErrorKind::misuse, lanczos_options(5, EigenEnd::largest, 30, 20));
  a = test::grid(4, 4, 4, 0.25);
  const std::string text = message(ErrorKind::numerical, lanczos_options(5, EigenEnd::largest));
  EXPECT_NE(text.find("(0, 4) is -0.75 and (4, 0) is -1.25"), std::string::npos) << text;
  a = test::laplacian(4);
  a.value[0] = NAN;
  (void)message(ErrorKind::input, lanczos_options(5, EigenEnd::largest));
}

TEST(Eigs, TooFewCyclesAreTold) {
  EigsOptions options = lanczos_options(10, EigenEnd::smallest, 1, 21);
  options.restarts_max = 2;
  const Pairs result = pairs(test::laplacian(12), options);
  EXPECT_FALSE(result.info.ok);
  EXPECT_FALSE(result.info.why.empty());
  EXPECT_EQ(result.info.restarts, 2);
}

// ---- small problems

TEST(SmallEigen, FindsTheRootsOfACompanionMatrix) {
  // (x² + 1)(x² − 2x + 5)(x − 3)(x + 4)(x − 0.5): i, 1 ± 2i, 3, −4, 0.5.
  std::vector<double> p{1};
  const auto times = [&p](const std::vector<double>& q) {
    std::vector<double> product(p.size() + q.size() - 1);
    for (std::size_t i = 0; i < p.size(); ++i)
      for (std::size_t j = 0; j < q.size(); ++j) product[i + j] += p[i] * q[j];
    p = product;
  };
  times({1, 0, 1});
  times({5, -2, 1});
  times({-3, 1});
  times({4, 1});
  times({-0.5, 1});
  const auto n = std::ssize(p) - 1;
  SquareMatrix<double> h(n);
  for (std::int64_t i = 0; i + 1 < n; ++i) h(i + 1, i) = 1;
  for (std::int64_t i = 0; i < n; ++i) h(i, n - 1) = -p[static_cast<std::size_t>(i)];
  std::vector<std::complex<double>> roots = hessenberg_eigenvalues(h);
  ASSERT_EQ(std::ssize(roots), n);
  using C = std::complex<double>;
  for (const C& root : {C(0, 1), C(0, -1), C(1, 2), C(1, -2), C(3, 0), C(-4, 0), C(0.5, 0)}) {
    const auto nearest = std::min_element(roots.begin(), roots.end(), [&](C x, C y) {
      return std::abs(x - root) < std::abs(y - root);
    });
    EXPECT_LE(std::abs(*nearest - root), 1e-12) << root;
    roots.erase(nearest);
  }
}

TEST(SmallEigen, FindsThoseOfATridiagonalMatrixAndOfItselfTimesVectors) {
  constexpr std::int64_t kOrder = 61;
  SquareMatrix<double> h(kOrder);
  for (std::int64_t i = 0; i < kOrder; ++i) {
    h(i, i) = 2;
    if (i > 0) h(i, i - 1) = h(i - 1, i) = -1;
  }
  std::vector<double> values;
  for (const auto& z : hessenberg_eigenvalues(h)) {
    EXPECT_EQ(z.imag(), 0);
    values.push_back(z.real());
  }
  std::sort(values.begin(), values.end());
  WorkCrew crew(2);
  const SymmetricEigen eigen = symmetric_eigen(h, crew);
  ASSERT_EQ(std::ssize(values), kOrder);
  ASSERT_EQ(std::ssize(eigen.values), kOrder);
  for (std::int64_t k = 0; k < kOrder; ++k) {
    const double exact =
        2 - 2 * std::cos(std::numbers::pi * static_cast<double>(k + 1) / (kOrder + 1));
    EXPECT_NEAR(values[static_cast<std::size_t>(k)], exact, 1e-13);
    EXPECT_NEAR(eigen.values[static_cast<std::size_t>(k)], exact, 1e-13);
  }
  // Full matrices of orders around the rows of a strip: A·v = λ·v, vᵀv = 1.
  for (const std::int64_t n : {1, 2, 3, 15, 16, 17, 40}) {
    SquareMatrix<double> a(n);
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i <= j; ++i)
        a(i, j) = a(j, i) = std::sin(static_cast<double>(i * i + 3 * j + i * j));
    const SymmetricEigen full = symmetric_eigen(a, crew);
    ASSERT_EQ(std::ssize(full.values), n);
    for (std::int64_t j = 0; j < n; ++j) {
      double length = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (std::int64_t k = 0; k < n; ++k) sum += a(i, k) * full.vectors(k, j);
        EXPECT_NEAR(sum, full.values[static_cast<std::size_t>(j)] * full.vectors(i, j), 1e-13);
        length += full.vectors(i, j) * full.vectors(i, j);
      }
      EXPECT_NEAR(length, 1, 1e-13);
    }
    WorkCrew alone(0);
    EXPECT_EQ(symmetric_eigen(a, alone).vectors.values, full.vectors.values);
  }
}

TEST(Recurrence, OrdersNumbersByLeja) {
  using C = std::complex<double>;
  const std::vector<C> ordered = leja_ordered({C(1, 0), C(2, 0), C(3, 0), C(10, 0)}, 3);
  EXPECT_EQ(ordered, (std::vector<C>{C(10, 0), C(1, 0), C(3, 0)}));
  // A pair stays together, and its half where only one fits.
  const std::vector<C> pair = leja_ordered({C(0, 5), C(0, -5), C(1, 0)}, 2);
  EXPECT_EQ(pair, (std::vector<C>{C(0, 5), C(0, -5)}));
  EXPECT_EQ(leja_ordered({C(0, 5), C(0, -5), C(9, 0)}, 2), (std::vector<C>{C(9, 0), C(0, 0)}));
}

}  // namespace
}  // namespace strata
