// The smallest eigenpairs by a factor: against spectra that are known, LAPACK's, and what is stated
// of them; what becomes of matrices that have none of the kind.

#include "strata/shift_invert.hpp"

#include <gtest/gtest.h>
#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "base/index.hpp"
#include "base/random.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

struct Entries {
  std::int64_t n = 0;
  std::vector<std::int64_t> row, col;
  std::vector<double> value;
  void add(std::int64_t i, std::int64_t j, double v) {
    row.push_back(i);
    col.push_back(j);
    value.push_back(v);
  }
  void add_both(std::int64_t i, std::int64_t j, double v) {
    add(i, j, v);
    if (i != j) add(j, i, v);
  }
  [[nodiscard]] SparseMatrix matrix() const { return sparse_from_entries(n, n, row, col, value); }
};

/// The Laplacian of a grid of a × b × c points with zeros around, plus `shift`.
Entries laplacian(std::int64_t a, std::int64_t b, std::int64_t c, double shift = 0) {
  Entries e;
  e.n = a * b * c;
  for (std::int64_t x = 0; x < e.n; ++x) {
    const std::int64_t i = x / (b * c);
    const std::int64_t j = x / c % b;
    const std::int64_t k = x % c;
    e.add(x, x, 6 + shift);
    if (i + 1 < a) e.add_both(x, x + b * c, -1);
    if (j + 1 < b) e.add_both(x, x + c, -1);
    if (k + 1 < c) e.add_both(x, x + 1, -1);
  }
  return e;
}

std::vector<double> laplacian_values(std::int64_t a, std::int64_t b, std::int64_t c,
                                     double shift = 0) {
  const auto along = [](std::int64_t i, std::int64_t m) {
    const double s = std::sin(std::numbers::pi * static_cast<double>(i) / (2.0 * (m + 1)));
    return 4 * s * s;
  };
  std::vector<double> values;
  for (std::int64_t i = 1; i <= a; ++i)
    for (std::int64_t j = 1; j <= b; ++j)
      for (std::int64_t k = 1; k <= c; ++k)
        values.push_back(along(i, a) + along(j, b) + along(k, c) + shift);
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<double> dense_of(const SparseMatrix& a) {
  std::vector<double> dense(at(a.rows * a.rows), 0);
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t e = a.start[at(i)]; e < a.start[at(i + 1)]; ++e)
      dense[at(i + a.column[at(e)] * a.rows)] = a.value[at(e)];
  return dense;
}

/// All eigenvalues of A·v = λ·M·v by LAPACK.
std::vector<double> by_lapack(const SparseMatrix& a, const SparseMatrix* m) {
  std::vector<double> left = dense_of(a);
  std::vector<double> right(left.size(), 0);
  if (m != nullptr)
    right = dense_of(*m);
  else
    for (std::int64_t i = 0; i < a.rows; ++i) right[at(i * (a.rows + 1))] = 1;
  const auto n = static_cast<lapack_int>(a.rows);
  std::vector<double> values(at(a.rows));
  EXPECT_EQ(LAPACKE_dsygv(LAPACK_COL_MAJOR, 1, 'N', 'L', n, left.data(), n, right.data(), n,
                          values.data()),
            0);
  return values;
}

struct Found {
  ShiftInvertInfo info;
  std::vector<double> vectors;
};

Found find(const SparseMatrix& a, const SparseMatrix* m, std::int64_t k,
           const std::function<void(ShiftInvertOptions&)>& change = {}) {
  ShiftInvertOptions options;
  options.k = k;
  options.factoring.run.devices = "host:1";
  if (change) change(options);
  Found found;
  found.vectors.resize(at(a.rows * k));
  found.info = smallest_eigenpairs(
      a, m, {found.vectors.data(), a.rows, k, std::max<std::int64_t>(a.rows, 1)}, options);
  return found;
}

/// Values are the expected ones to `digits` of λ − σ, and no further off than is stated.
void expect_values(const ShiftInvertInfo& info, const std::vector<double>& expected, double digits,
                   double rounding, const std::string& what) {
  ASSERT_TRUE(info.ok) << what << ": " << info.why;
  ASSERT_LE(info.values.size(), expected.size());
  for (std::size_t i = 0; i < info.values.size(); ++i) {
    const double error = std::abs(info.values[i] - expected[i]);
    EXPECT_LE(error, digits * (expected[i] - info.sigma) + rounding) << what << ", value " << i;
    EXPECT_LE(error, info.bounds[i] + rounding) << what << ", bound of value " << i;
  }
  EXPECT_LE(info.orthogonality, 1e-12) << what;
}

TEST(ShiftInvert, FindsTheLeastOfGrids) {
  struct Case {
    std::int64_t a, b, c, k;
  };
  for (const Case& one : std::vector<Case>{{1, 1, 1, 1},
                                           {2, 1, 1, 1},
                                           {3, 3, 3, 27},
                                           {5, 5, 1, 24},
                                           {9, 8, 7, 6},
                                           {12, 12, 12, 20},
                                           {30, 30, 1, 60},
                                           {400, 1, 1, 10}}) {
    const std::string what = std::to_string(one.a) + " " + std::to_string(one.b) + " " +
                             std::to_string(one.c) + " k " + std::to_string(one.k);
    const SparseMatrix a = laplacian(one.a, one.b, one.c).matrix();
    const std::vector<double> expected = laplacian_values(one.a, one.b, one.c);
    const Found found = find(a, nullptr, one.k);
    expect_values(found.info, expected, 1e-13, 4e-15, what);
    EXPECT_EQ(found.info.sigma, 0) << what;
    EXPECT_EQ(found.info.factorizations, 1);
    for (std::size_t i = 0; i < found.info.values.size(); ++i)
      EXPECT_LE(found.info.residuals[i], 1e-11) << what;
  }
}

/// Eigenvalues that come more often than a block has vectors.
TEST(ShiftInvert, FindsWhatComesManyTimes) {
  constexpr std::int64_t kCopies = 21;
  Entries e;
  const Entries one = laplacian(7, 5, 1);
  e.n = one.n * kCopies;
  for (std::int64_t copy = 0; copy < kCopies; ++copy)
    for (std::size_t i = 0; i < one.row.size(); ++i)
      e.add(one.row[i] + copy * one.n, one.col[i] + copy * one.n, one.value[i]);
  std::vector<double> expected;
  for (const double value : laplacian_values(7, 5, 1))
    for (std::int64_t copy = 0; copy < kCopies; ++copy) expected.push_back(value);
  for (const std::int64_t k : {5, 21, 30, 64})
    expect_values(find(e.matrix(), nullptr, k).info, expected, 1e-13, 1e-15, std::to_string(k));
}

/// The graph has three parts, so that 0 comes three times; A is singular and is shifted.
TEST(ShiftInvert, ShiftsWhatIsSingular) {
  Entries e;
  e.n = 350;
  const auto connect = [&](std::int64_t i, std::int64_t j, double w) {
    e.add(i, i, w);
    e.add(j, j, w);
    e.add_both(i, j, -w);
  };
  std::int64_t first = 0;
  for (const std::int64_t count : {100, 200, 50}) {
    for (std::int64_t i = first; i + 1 < first + count; ++i) {
      connect(i, i + 1, 1 + static_cast<double>(i % 3));
      if (i + 7 < first + count) connect(i, i + 7, 0.5);
    }
    first += count;
  }
  const SparseMatrix a = e.matrix();
  const Found found = find(a, nullptr, 8);
  expect_values(found.info, by_lapack(a, nullptr), 1e-12, 3e-14, "graph");
  EXPECT_LT(found.info.sigma, 0);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LE(std::abs(found.info.values[i]), 1e-14);
  EXPECT_GT(found.info.values[3], 1e-5);
}

TEST(ShiftInvert, FindsNegativeValues) {
  for (const double shift : {-3.0, -6.0, -100.0, -0.2}) {
    const SparseMatrix a = laplacian(11, 10, 3, shift).matrix();
    const Found found = find(a, nullptr, 9);
    expect_values(found.info, laplacian_values(11, 10, 3, shift), 1e-12, 4e-14,
                  std::to_string(shift));
    EXPECT_LT(found.info.sigma, found.info.values[0]);
    const Found given = find(a, nullptr, 9, [&](ShiftInvertOptions& o) {
      o.sigma = laplacian_values(11, 10, 3, shift)[0] - 0.01;
    });
    expect_values(given.info, laplacian_values(11, 10, 3, shift), 1e-12, 4e-14, "given");
    EXPECT_EQ(given.info.factorizations, 1);
  }
}

/// Rows that are held by a large number. What that does to the others is a matrix that LAPACK
/// takes.
TEST(ShiftInvert, KeepsDigitsBesidePenalties) {
  for (const double penalty : {1e6, 1e10, 1e14}) {
    Entries e = laplacian(8, 7, 5);
    std::vector<char> held(at(e.n), 0);
    for (std::int64_t i = 0; i < e.n; i += 9) {
      held[at(i)] = 1;
      e.add(i, i, penalty);
    }
    const SparseMatrix a = e.matrix();
    const std::vector<double> dense = dense_of(a);
    Entries rest;
    std::vector<std::int64_t> number(at(e.n), -1);
    for (std::int64_t i = 0; i < e.n; ++i)
      if (held[at(i)] == 0) number[at(i)] = rest.n++;
    for (std::int64_t i = 0; i < e.n; ++i) {
      for (std::int64_t j = 0; j < e.n; ++j) {
        if (held[at(i)] != 0 || held[at(j)] != 0) continue;
        double value = dense[at(i + j * e.n)];
        for (std::int64_t h = 0; h < e.n; h += 9)
          value -= dense[at(i + h * e.n)] * dense[at(h + j * e.n)] / dense[at(h * (e.n + 1))];
        if (value != 0) rest.add(number[at(i)], number[at(j)], value);
      }
    }
    const Found found = find(a, nullptr, 10);
    expect_values(found.info, by_lapack(rest.matrix(), nullptr), 1e-11,
                  4e-14 + 20 / penalty / penalty, std::to_string(penalty));
    for (std::size_t i = 0; i < 10; ++i)
      EXPECT_LE(found.info.bounds[i], 1e-11 * found.info.values[i]) << penalty;
  }
}

/// A mass matrix as finite elements have it, of units of its own, and a random one.
TEST(ShiftInvert, TakesAMassMatrix) {
  for (const double unit : {1.0, 1e-9, 1e12}) {
    for (const bool regular : {true, false}) {
      const Entries stiffness = laplacian(9, 8, 4);
      Entries mass;
      mass.n = stiffness.n;
      for (std::size_t i = 0; i < stiffness.row.size(); ++i) {
        const bool diagonal = stiffness.row[i] == stiffness.col[i];
        if (stiffness.row[i] < stiffness.col[i]) continue;
        const double random = regular ? 1 : 0.5 + random_uniform(5, i);
        mass.add_both(stiffness.row[i], stiffness.col[i],
                      unit * (diagonal ? 8 * random : random * 1.1));
      }
      const SparseMatrix a = stiffness.matrix();
      const SparseMatrix m = mass.matrix();
      const Found found = find(a, &m, 15);
      const std::vector<double> expected = by_lapack(a, &m);
      expect_values(found.info, expected, 1e-12, 3e-14 * expected.back(), std::to_string(unit));
    }
  }
}

/// Neither rounding between elements that mirror each other, nor the devices, changes what is
/// found.
TEST(ShiftInvert, IsTheSameOnAnyDevices) {
  Entries e = laplacian(13, 12, 9);
  const SparseMatrix a = e.matrix();
  const Found one = find(a, nullptr, 12);
  const Found two =
      find(a, nullptr, 12, [](ShiftInvertOptions& o) { o.factoring.run.devices = "host:2"; });
  EXPECT_EQ(one.info.values, two.info.values);
  EXPECT_EQ(one.vectors, two.vectors);
  SparseMatrix rounded = a;
  for (std::size_t i = 0; i < rounded.value.size(); i += 3) rounded.value[i] *= 1 + 0x1p-52;
  expect_values(find(rounded, nullptr, 12).info, laplacian_values(13, 12, 9), 1e-12, 1e-14, "");
}

std::string refused(const std::function<void()>& call, ErrorKind kind) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST(ShiftInvert, RefusesWhatHasNoSuchPairs) {
  const SparseMatrix a = laplacian(6, 5, 4).matrix();
  const std::vector<double> values = laplacian_values(6, 5, 4);
  const auto with_sigma = [&](double sigma) {
    return [&a, sigma] {
      (void)find(a, nullptr, 3, [sigma](ShiftInvertOptions& o) { o.sigma = sigma; });
    };
  };
  EXPECT_NE(refused(with_sigma(values[2] + 1e-3), ErrorKind::numerical).find("not below"),
            std::string::npos);
  (void)refused(with_sigma(std::nan("")), ErrorKind::misuse);
  for (const std::int64_t k : {std::int64_t{0}, std::int64_t{-1}, a.rows + 1})
    (void)refused(
        [&] {
          ShiftInvertOptions options;
          options.k = k;
          (void)smallest_eigenpairs(a, nullptr, {nullptr, a.rows, k, a.rows}, options);
        },
        ErrorKind::misuse);
  Entries mass;
  mass.n = a.rows;
  for (std::int64_t i = 0; i < a.rows; ++i) mass.add(i, i, i == 77 ? -1 : 1);
  SparseMatrix m = mass.matrix();
  EXPECT_NE(refused([&] { (void)find(a, &m, 3); }, ErrorKind::numerical).find("77"),
            std::string::npos);
  m = laplacian(6, 5, 3).matrix();
  (void)refused([&] { (void)find(a, &m, 3); }, ErrorKind::misuse);
  SparseMatrix skew = a;
  skew.value[1] += 1;
  (void)refused([&] { (void)find(skew, nullptr, 3); }, ErrorKind::numerical);
  skew.value[1] = std::nan("");
  (void)refused([&] { (void)find(skew, nullptr, 3); }, ErrorKind::input);
  (void)refused(
      [&] {
        (void)find(a, nullptr, 3, [](ShiftInvertOptions& o) {
          o.factoring.run.progress = [](const Progress&) { return false; };
        });
      },
      ErrorKind::cancelled);
}

/// Few values that differ, so that blocks end what they lead to: identities, copies, integers.
TEST(ShiftInvert, GoesOnWhereNothingLeadsFurther) {
  const auto diagonal = [](std::int64_t n, const std::function<double(std::int64_t)>& at_row) {
    Entries e;
    e.n = n;
    for (std::int64_t i = 0; i < n; ++i) e.add(i, i, at_row(i));
    return e.matrix();
  };
  for (const std::int64_t n : {10, 100, 350})
    for (const std::int64_t k : {std::int64_t{1}, std::int64_t{6}, 9 * n / 10, n})
      expect_values(find(diagonal(n, [](std::int64_t) { return 1.0; }), nullptr, k).info,
                    std::vector<double>(at(n), 1.0), 1e-14, 0, "identity " + std::to_string(n));
  for (const std::int64_t seed : {1, 2, 3, 4}) {
    const SparseMatrix a =
        diagonal(125, [](std::int64_t i) { return static_cast<double>(i % 7) - 3; });
    expect_values(find(a, nullptr, 30,
                       [&](ShiftInvertOptions& o) { o.seed = static_cast<std::uint64_t>(seed); })
                      .info,
                  by_lapack(a, nullptr), 1e-12, 1e-14, "integers " + std::to_string(seed));
  }
  Entries e;
  e.n = 180;
  for (std::int64_t i = 0; i < e.n; i += 3) {
    for (std::int64_t j = 0; j < 3; ++j) e.add(i + j, i + j, 2);
    for (std::int64_t j = 0; j < 2; ++j) e.add_both(i + j, i + j + 1, -1);
  }
  expect_values(find(e.matrix(), nullptr, 10).info, by_lapack(e.matrix(), nullptr), 1e-13, 1e-14,
                "copies");
  // One heavy mass: beside its own value the others are those of a chain that is held there. So far
  // apart, bounds may be above the tolerance; they hold all the same.
  const SparseMatrix stiffness = laplacian(199, 1, 1).matrix();
  Entries held;
  held.n = 198;
  for (std::int64_t i = 0; i < 198; ++i) {
    held.add(i, i, 6 / 0.005);
    if (i + 1 < 198 && i != 4) held.add_both(i, i + 1, -1 / 0.005);
  }
  const std::vector<double> others = by_lapack(held.matrix(), nullptr);
  for (const double heavy : {1e10, 1e12, 1e14}) {
    const SparseMatrix mass = diagonal(199, [&](std::int64_t i) { return i == 5 ? heavy : 0.005; });
    const ShiftInvertInfo info = find(stiffness, &mass, 6).info;
    for (std::size_t i = 1; i < 6; ++i) {
      double nearest = 1e300;
      for (const double value : others)
        nearest = std::min(nearest, std::abs(value - info.values[i]));
      EXPECT_LE(nearest, info.bounds[i] + 1e-9) << heavy << ", value " << i;
    }
  }
}

/// As many pairs as there are motions that no force resists, and fewer.
TEST(ShiftInvert, FindsMotionsOfFreeBodies) {
  Entries e;
  for (const std::int64_t count : {40, 30, 20}) {
    for (std::int64_t i = 0; i < count; ++i) {
      e.add(e.n + i, e.n + i, i == 0 || i + 1 == count ? 1 : 2);
      if (i > 0) e.add_both(e.n + i, e.n + i - 1, -1);
    }
    e.n += count;
  }
  for (const std::int64_t k : {1, 2, 3, 6, 20})
    expect_values(find(e.matrix(), nullptr, k).info, by_lapack(e.matrix(), nullptr), 1e-11, 4e-15,
                  std::to_string(k));
}

/// Rows without an entry are eigenvectors of zero.
TEST(ShiftInvert, FindsEmptyRows) {
  Entries e = laplacian(6, 5, 1);
  e.n += 20;
  for (const std::int64_t k : {1, 5, 20, 25}) {
    const Found found = find(e.matrix(), nullptr, k);
    std::vector<double> expected(20, 0.0);
    for (const double value : laplacian_values(6, 5, 1)) expected.push_back(value);
    expect_values(found.info, expected, 1e-12, 1e-14, std::to_string(k));
  }
}

TEST(ShiftInvert, TakesMatricesNearTheEndsOfTheRange) {
  const std::vector<double> values = laplacian_values(9, 8, 1);
  for (const int exponent : {-1000, -500, 500, 1000}) {
    SparseMatrix a = laplacian(9, 8, 1).matrix();
    for (double& value : a.value) value = std::scalbn(value, exponent);
    const Found found = find(a, nullptr, 5);
    ASSERT_TRUE(found.info.ok) << exponent << ": " << found.info.why;
    for (std::size_t i = 0; i < 5; ++i)
      EXPECT_NEAR(std::scalbn(found.info.values[i], -exponent), values[i], 1e-12) << exponent;
    Entries mass;
    mass.n = a.rows;
    for (std::int64_t i = 0; i < a.rows; ++i) mass.add(i, i, std::scalbn(1.0, exponent));
    const SparseMatrix m = mass.matrix();
    const Found pencil = find(a, &m, 5);
    ASSERT_TRUE(pencil.info.ok) << exponent << ": " << pencil.info.why;
    for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(pencil.info.values[i], values[i], 1e-12);
  }
}

/// A σ so far below that values have no digits is no success.
TEST(ShiftInvert, SaysThatValuesHaveNoDigits) {
  const SparseMatrix a = laplacian(60, 1, 1, -4).matrix();
  const Found far = find(a, nullptr, 4, [](ShiftInvertOptions& o) { o.sigma = -1e13; });
  EXPECT_FALSE(far.info.ok);
  EXPECT_NE(far.info.why.find("sigma"), std::string::npos) << far.info.why;
}

/// What is not found in one cycle of a small basis is told.
TEST(ShiftInvert, SaysWhatWasNotFound) {
  const SparseMatrix a = laplacian(40, 40, 1).matrix();
  const Found found = find(a, nullptr, 30, [](ShiftInvertOptions& o) {
    o.basis_size = 47;
    o.restarts_max = 1;
  });
  EXPECT_FALSE(found.info.ok);
  EXPECT_NE(found.info.why.find("restarts"), std::string::npos) << found.info.why;
  const std::vector<double> expected = laplacian_values(40, 40, 1);
  for (std::size_t i = 0; i < found.info.values.size(); ++i) {  // bounds hold all the same
    double nearest = 1e300;
    for (const double value : expected)
      nearest = std::min(nearest, std::abs(value - found.info.values[i]));
    EXPECT_LE(nearest, found.info.bounds[i] + 1e-14);
  }
}

}  // namespace
}  // namespace strata
