// Right preconditioners of gmres: beside A·M⁻¹ that is formed explicitly, the same bits wherever
// they run, and what becomes of those that are none.

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "base/random.hpp"
#include "krylov/basis_script.hpp"
#include "krylov/block_inverse.hpp"
#include "strata/error.hpp"
#include "strata/krylov.hpp"
#include "tests/krylov/gmres_harness.hpp"
#include "tests/krylov/matrices.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::complaint;
using test::solved;
using test::Solved;

GmresOptions preconditioned_by(Preconditioner kind, std::int64_t s = 1,
                               std::int64_t block_size = 7) {
  GmresOptions options;
  options.s = s;
  options.restart = 20;
  options.tolerance = 1e-9;
  options.preconditioner.kind = kind;
  options.preconditioner.block_size = block_size;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = 64 << 20;
  return options;
}

/// A matrix of unlike rows: a convection, and a diagonal that grows from row to row.
SparseMatrix unlike_rows(std::int64_t p = 9, std::int64_t q = 7, std::int64_t r = 5) {
  SparseMatrix a = test::grid(p, q, r, 0.3);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[static_cast<std::size_t>(i)];
         k < a.start[static_cast<std::size_t>(i + 1)]; ++k) {
      const auto e = static_cast<std::size_t>(k);
      if (a.column[e] == i) a.value[e] += 0.5 * static_cast<double>(i % 50);
    }
  }
  return a;
}

double element(const SparseMatrix& a, std::int64_t i, std::int64_t j) {
  for (std::int64_t k = a.start[static_cast<std::size_t>(i)];
       k < a.start[static_cast<std::size_t>(i + 1)]; ++k)
    if (a.column[static_cast<std::size_t>(k)] == j) return a.value[static_cast<std::size_t>(k)];
  return 0;
}

/// All elements, row by row.
std::vector<double> elements(const SparseMatrix& a) {
  std::vector<double> all(static_cast<std::size_t>(a.rows * a.cols));
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = a.start[static_cast<std::size_t>(i)];
         k < a.start[static_cast<std::size_t>(i + 1)]; ++k)
      all[static_cast<std::size_t>(i * a.cols + a.column[static_cast<std::size_t>(k)])] =
          a.value[static_cast<std::size_t>(k)];
  return all;
}

/// A·B, entry by entry.
SparseMatrix product(const SparseMatrix& a, const SparseMatrix& b) {
  test::Entries c;
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i) {
    for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k) {
      const auto via = static_cast<std::size_t>(a.column[static_cast<std::size_t>(k)]);
      for (std::int64_t l = b.start[via]; l < b.start[via + 1]; ++l)
        c.add(static_cast<std::int64_t>(i), b.column[static_cast<std::size_t>(l)],
              a.value[static_cast<std::size_t>(k)] * b.value[static_cast<std::size_t>(l)]);
    }
  }
  return c.matrix(a.rows);
}

/// That were needed; whole scripts of them are computed.
std::int64_t vectors_of(const GmresInfo& info) {
  std::int64_t count = 0;
  for (const KrylovCycle& cycle : info.history) count += cycle.vectors;
  return count;
}

// ---- blocks

TEST(BlockInverse, TimesTheBlockIsTheIdentity) {
  for (const std::int64_t n : {1, 2, 5, 64, 131}) {
    // Full, without dominance and with zeros on the diagonal, so that rows have to be swapped, and
    // rows of very different size.
    test::Entries entries;
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        const double x = random_normal(5, static_cast<std::uint64_t>(i * n + j));
        if (i != j || i + 1 == n) entries.add(i, j, std::ldexp(x, static_cast<int>(40 * (i % 3))));
      }
    }
    const SparseMatrix a = entries.matrix(n);
    for (const std::int64_t size : {1, 2, 5, 64, 300}) {
      if (size == 1 && n > 1) continue;  // the diagonal is zero
      const SparseMatrix inverse = inverse_of_blocks(a, size, "test");
      require_well_formed(inverse);
      const std::vector<double> full = elements(a);
      const std::vector<double> inverted = elements(inverse);
      const auto at = [n](std::int64_t i, std::int64_t j) {
        return static_cast<std::size_t>(i * n + j);
      };
      for (std::int64_t first = 0; first < n; first += size) {
        const std::int64_t end = std::min(n, first + size);
        for (std::int64_t i = first; i < end; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            if (j < first || j >= end) {
              EXPECT_EQ(inverted[at(i, j)], 0);
              continue;
            }
            long double sum = 0;
            long double size_of = 0;
            for (std::int64_t k = first; k < end; ++k) {
              const long double term =
                  static_cast<long double>(full[at(i, k)]) * inverted[at(k, j)];
              sum += term;
              size_of += std::abs(term);
            }
            EXPECT_NEAR(static_cast<double>(sum), i == j ? 1 : 0,
                        1e-11 * static_cast<double>(size_of) + 1e-30)
                << n << ", " << size << ": " << i << ", " << j;
          }
        }
      }
    }
  }
}

TEST(BlockInverse, NamesTheRowsOfASingularBlock) {
  const auto message = [](const SparseMatrix& a, std::int64_t size) {
    return complaint(ErrorKind::input, [&] { (void)inverse_of_blocks(a, size, "test"); });
  };
  std::vector<double> d(10, 1.0);
  d[7] = 0;
  EXPECT_NE(message(test::diagonal(d), 4).find("rows 4 to 7"), std::string::npos);
  d[7] = 1e-300;  // small, and far from singular
  EXPECT_DOUBLE_EQ(element(inverse_of_blocks(test::diagonal(d), 4, "test"), 7, 7), 1e300);
  // A block of rank 2, by rounding only nearly so.
  test::Entries near;
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 3; ++j)
      near.add(i, j, 1.0 / 3 + 0.1 * static_cast<double>(i) + 0.7 * static_cast<double>(j));
  near.add(3, 3, 1);
  EXPECT_NE(message(near.matrix(4), 3).find("rows 0 to 2"), std::string::npos);
  for (const std::int64_t size : {std::int64_t{0}, kJacobiBlockMax + 1})
    (void)complaint(ErrorKind::misuse,
                    [&] { (void)inverse_of_blocks(test::diagonal({1.0}), size, "test"); });
}

// ---- gmres

/// The residuals of GMRES on A·M⁻¹, to what rounding makes of them.
void expect_history_of(const SparseMatrix& a_inverse, const std::vector<double>& b,
                       const GmresInfo& info, GmresOptions options) {
  options.preconditioner = {};
  const Solved expected = solved(a_inverse, b, options);
  ASSERT_EQ(info.history.size(), expected.info.history.size());
  EXPECT_EQ(info.iterations, expected.info.iterations);
  for (std::size_t i = 0; i < info.history.size(); ++i)
    EXPECT_NEAR(info.history[i].relative_residual, expected.info.history[i].relative_residual,
                1e-3 * expected.info.history[i].relative_residual + 1e-14);
}

TEST(GmresPreconditioned, GoesAsGmresOnTheProduct) {
  const SparseMatrix a = unlike_rows();
  const std::vector<double> b = test::row_sums(a);
  for (const std::int64_t size : {1, 7, 64, 512}) {
    const SparseMatrix inverse = inverse_of_blocks(a, size, "test");
    const SparseMatrix explicitly = product(a, inverse);
    for (const std::int64_t s : {1, 4}) {
      GmresOptions options = preconditioned_by(Preconditioner::block_jacobi, s, size);
      const Solved by_blocks = solved(a, b, options);
      EXPECT_TRUE(by_blocks.info.ok) << by_blocks.info.why;
      for (const double x : by_blocks.x) ASSERT_NEAR(x, 1, 1e-7);
      expect_history_of(explicitly, b, by_blocks.info, options);
      options.preconditioner = {.kind = Preconditioner::custom,
                                .apply = [&](std::span<const double> x, std::span<double> y) {
                                  multiply(inverse, x, y);
                                }};
      const Solved by_caller = solved(a, b, options);
      EXPECT_TRUE(by_caller.info.ok) << by_caller.info.why;
      for (const double x : by_caller.x) ASSERT_NEAR(x, 1, 1e-7);
      expect_history_of(explicitly, b, by_caller.info, options);
    }
  }
}

/// Larger blocks know more of A, and the inverse itself ends in one step.
TEST(GmresPreconditioned, TakesFewerVectors) {
  const SparseMatrix a = unlike_rows();
  const std::vector<double> b = test::row_sums(a);
  const auto vectors = [&](Preconditioner kind, std::int64_t size) {
    const Solved result = solved(a, b, preconditioned_by(kind, 1, size));
    EXPECT_TRUE(result.info.ok);
    return vectors_of(result.info);
  };
  EXPECT_LT(vectors(Preconditioner::block_jacobi, 35), vectors(Preconditioner::jacobi, 1));
  EXPECT_LT(vectors(Preconditioner::jacobi, 1), vectors(Preconditioner::none, 1));
  EXPECT_LE(vectors(Preconditioner::block_jacobi, 512), 2);
}

/// As the caller numbers and scales: under a balance and another order M stays what it is.
TEST(GmresPreconditioned, IsThatOfTheMatrixAsGiven) {
  SparseMatrix a = unlike_rows(13, 11, 17);
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.rows); ++i) {
    const double scale = std::ldexp(1.0, static_cast<int>(i * 5 % 21) - 10);
    for (std::int64_t k = a.start[i]; k < a.start[i + 1]; ++k)
      a.value[static_cast<std::size_t>(k)] *= scale;
  }
  const std::vector<double> b = test::row_sums(a);
  const SparseMatrix inverse = inverse_of_blocks(a, 11, "test");
  for (const bool balanced : {false, true}) {
    for (const std::int64_t s : {1, 5}) {
      GmresOptions options = preconditioned_by(Preconditioner::block_jacobi, s, 11);
      options.tolerance = 1e-6;
      options.balance = balanced;
      const Solved by_blocks = solved(a, b, options);
      EXPECT_TRUE(by_blocks.info.ok) << by_blocks.info.why;
      options.preconditioner = {.kind = Preconditioner::custom,
                                .apply = [&](std::span<const double> x, std::span<double> y) {
                                  multiply(inverse, x, y);
                                }};
      const Solved by_caller = solved(a, b, options);
      EXPECT_TRUE(by_caller.info.ok) << by_caller.info.why;
      EXPECT_EQ(by_caller.info.iterations, by_blocks.info.iterations);
      ASSERT_EQ(by_caller.info.history.size(), by_blocks.info.history.size());
      for (std::size_t i = 0; i < by_caller.info.history.size(); ++i)
        EXPECT_NEAR(by_caller.info.history[i].relative_residual,
                    by_blocks.info.history[i].relative_residual,
                    1e-3 * by_blocks.info.history[i].relative_residual);
    }
  }
}

TEST(GmresPreconditioned, TakesAnInitialGuess) {
  const SparseMatrix a = unlike_rows();
  const std::vector<double> b = test::row_sums(a);
  GmresOptions options = preconditioned_by(Preconditioner::block_jacobi, 4);
  EXPECT_EQ(solved(a, b, options, 1.0).info.restarts, 0);
  const Solved near = solved(a, b, options, 1.0 + 1e-5);
  EXPECT_TRUE(near.info.ok);
  EXPECT_GE(near.info.restarts, 1);
  EXPECT_LT(vectors_of(near.info), vectors_of(solved(a, b, options).info));
  // Relative to b, not to what is left of it.
  EXPECT_LE(near.info.history.back().relative_residual, 1e-9);
}

// ---- where it runs

class PreconditionedRuns : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, PreconditionedRuns,
                         ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(PreconditionedRuns, HaveTheSameBitsOnAnyDevicesAndBudget) {
  // 2431 rows, reordered; blocks of 7 and 50 rows go across the borders of slabs.
  const SparseMatrix a = unlike_rows(13, 11, 17);
  const std::vector<double> b = test::row_sums(a);
  for (const std::int64_t size : {7, 50}) {
    for (const bool by_caller : {false, true}) {
      GmresOptions options = preconditioned_by(Preconditioner::block_jacobi, 5, size);
      options.restart = 5;
      const SparseMatrix inverse = inverse_of_blocks(a, size, "test");
      if (by_caller)
        options.preconditioner = {.kind = Preconditioner::custom,
                                  .apply = [&](std::span<const double> x, std::span<double> y) {
                                    multiply(inverse, x, y);
                                  }};
      const Solved expected = solved(a, b, options);
      ASSERT_TRUE(expected.info.ok) << expected.info.why;
      ASSERT_GE(expected.info.restarts, 2);
      for (const int devices : {1, 2, 3, 4}) {
        options.run.devices = test::devices_text(GetParam(), devices);
        if (options.run.devices.empty()) continue;
        for (const std::int64_t budget : {std::int64_t{64} << 20, std::int64_t{400'000}}) {
          if (test::kSanitized && devices != (budget < 1 << 20 ? 2 : 3)) continue;
          options.run.device_memory_bytes = budget;
          const Solved result = solved(a, b, options);
          EXPECT_EQ(result.x, expected.x) << options.run.devices << ", " << budget;
          ASSERT_EQ(result.info.history.size(), expected.info.history.size());
          for (std::size_t i = 0; i < result.info.history.size(); ++i)
            EXPECT_EQ(result.info.history[i].relative_residual,
                      expected.info.history[i].relative_residual);
          EXPECT_EQ(result.info.report.traffic,
                    static_cast<const Traffic&>(result.info.report.planned_traffic));
          EXPECT_LE(result.info.report.peak_device_bytes, budget);
        }
      }
    }
  }
}

/// A vector goes to the caller and comes back for each product; the products are those of the
/// cycles and one residual more for each, and one at the beginning.
TEST(GmresPreconditioned, TheCallersVectorsAreCounted) {
  const SparseMatrix a = unlike_rows();
  const std::vector<double> b = test::row_sums(a);
  std::int64_t calls = 0;
  GmresOptions options = preconditioned_by(Preconditioner::custom, 4);
  options.preconditioner.apply = [&](std::span<const double> x, std::span<double> y) {
    ++calls;
    std::copy(x.begin(), x.end(), y.begin());
  };
  const Solved own = solved(a, b, options);
  ASSERT_TRUE(own.info.ok);
  const std::int64_t products = calls - 2;  // the norm of the product; x at the end
  EXPECT_GE(products, own.info.iterations + own.info.restarts + 1);
  const Solved none = solved(a, b, preconditioned_by(Preconditioner::none, 4));
  EXPECT_EQ(own.info.iterations, none.info.iterations);
  const Traffic& with_caller = own.info.report.traffic;
  const Traffic& without = none.info.report.traffic;
  const std::int64_t vectors = products * a.rows * std::int64_t{sizeof(double)};
  EXPECT_GE(with_caller.device_to_host_bytes - without.device_to_host_bytes, vectors);
  EXPECT_GE(with_caller.host_to_device_bytes - without.host_to_device_bytes, vectors);
  EXPECT_LE(with_caller.device_to_host_bytes - without.device_to_host_bytes, vectors * 11 / 10);
}

// ---- what is none

TEST(GmresPreconditioned, WhatIsNoPreconditionerIsRefused) {
  const SparseMatrix a = test::laplacian(4);
  const std::vector<double> b(64, 1.0);
  const auto message = [&](ErrorKind kind, const GmresOptions& options) {
    return complaint(kind, [&] { (void)solved(a, b, options); });
  };
  EXPECT_NE(message(ErrorKind::misuse, preconditioned_by(Preconditioner::custom)).find("custom"),
            std::string::npos);
  GmresOptions both = preconditioned_by(Preconditioner::jacobi);
  both.preconditioner.apply = [](std::span<const double>, std::span<double>) {};
  EXPECT_NE(message(ErrorKind::misuse, both).find("jacobi"), std::string::npos);
  EXPECT_NE(message(ErrorKind::misuse, preconditioned_by(Preconditioner::block_jacobi, 1, 0))
                .find("0 rows"),
            std::string::npos);
  GmresOptions bad = preconditioned_by(Preconditioner::custom, 3);
  int calls = 0;
  bad.preconditioner.apply = [&](std::span<const double> x, std::span<double> y) {
    std::copy(x.begin(), x.end(), y.begin());
    if (++calls == 3) y[17] = NAN;
  };
  EXPECT_NE(message(ErrorKind::misuse, bad).find("element 17 of the preconditioner's result"),
            std::string::npos);
  bad.preconditioner.apply = [&](std::span<const double>, std::span<double>) {
    if (++calls == 6) throw std::runtime_error("of the caller");
  };
  calls = 0;
  EXPECT_THROW((void)solved(a, b, bad), std::runtime_error);
  SparseMatrix singular = a;
  for (std::int64_t k = a.start[9]; k < a.start[10]; ++k)
    singular.value[static_cast<std::size_t>(k)] = 0;
  EXPECT_NE(
      complaint(
          ErrorKind::input,
          [&] { (void)solved(singular, b, preconditioned_by(Preconditioner::block_jacobi, 1, 4)); })
          .find("rows 8 to 11"),
      std::string::npos);
  EXPECT_EQ(parse_preconditioner("block-jacobi"), Preconditioner::block_jacobi);
  EXPECT_THROW((void)parse_preconditioner("custom"), Error);
}

/// A map that is not one map: the residual is computed with A, so the result is not taken for one.
TEST(GmresPreconditioned, AnInverseThatChangesIsNoQuietError) {
  const SparseMatrix a = unlike_rows();
  GmresOptions options = preconditioned_by(Preconditioner::custom, 4);
  options.restarts_max = 3;
  double factor = 1;
  options.preconditioner.apply = [&](std::span<const double> x, std::span<double> y) {
    factor *= 1.1;
    for (std::size_t i = 0; i < x.size(); ++i) y[i] = factor * x[i];
  };
  const std::vector<double> b = test::row_sums(a);
  const Solved result = solved(a, b, options);
  EXPECT_FALSE(result.info.ok);
  std::vector<double> r(b.size());
  multiply(a, result.x, r);
  double square = 0;
  double length = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    square += (b[i] - r[i]) * (b[i] - r[i]);
    length += b[i] * b[i];
  }
  EXPECT_NEAR(result.info.relative_residual, std::sqrt(square / length),
              1e-9 * result.info.relative_residual);
}

/// A script that is cut has the numbers of its sums and factors from the beginning of each part.
TEST(BasisScript, IsCutBeforeProducts) {
  BasisScript script;
  script.update_by(0, 5, {2, 1, Element::fp64, std::vector<DoubleDouble>(2), {}});
  script.multiply(0, 1, 0, 0, 0, 1);
  script.normalize(1, script.inner(1, 1, 1, 1));
  script.multiply(1, 2, 0, 0, 0, 1);
  script.update(0, 2, script.inner(0, 2, 2, 1));
  script.solve(0, {3, 3, Element::fp64, std::vector<DoubleDouble>(9), {}});
  const std::vector<BasisScript> parts = cut_before_products(script);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].actions.size(), 1U);
  EXPECT_EQ(parts[1].sums.size(), 1U);
  EXPECT_EQ(parts[2].sums.size(), 1U);
  EXPECT_EQ(parts[2].sums[0].rows, 2);
  EXPECT_EQ(parts[2].actions[2].sum, 0);
  EXPECT_EQ(parts[2].factors[0].rows, 3);
  EXPECT_EQ(parts[2].actions[3].factor, 0);
  script.multiply(2, 3, 0, 0, 0, 1);
  script.update(0, 3, 1);
  (void)complaint(ErrorKind::misuse, [&] { (void)cut_before_products(script); });
}

}  // namespace
}  // namespace strata
