// Sparse factorizations against dense ones in long doubles: every way through the units.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "strata/error.hpp"
#include "strata/sparse_factor.hpp"
#include "tests/io/scratch.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/epsilon.hpp"

namespace strata {
namespace {

using test::DenseOracle;
using test::kEpsilon;

/// Sizes by which small matrices have branches, panels and tiles, or only some of them.
struct NamedSizes {
  const char* name;
  std::int64_t tile, panel_order, branch_entries;
};
constexpr std::array kNamedSizes{NamedSizes{"as large ones", 0, 0, 0},
                                 NamedSizes{"single branches", 4, 16, 1},
                                 NamedSizes{"panels", 8, 64, 30}, NamedSizes{"tiles", 3, 4, 40},
                                 NamedSizes{"only tiles", 2, 1, 1}};

SparseCholeskyOptions named_options_of(const NamedSizes& sizes) {
  SparseCholeskyOptions options;
  options.run.devices = "host";
  options.analysis.threads = 1;
  options.tile = sizes.tile;
  options.panel_order = sizes.panel_order;
  options.branch_entries = sizes.branch_entries;
  return options;
}

/// ‖b − A·x‖ / (‖A‖·‖x‖ + ‖b‖), in maximum norms, in long doubles.
double backward_error(const std::vector<double>& a, std::int64_t n, const double* x,
                      const double* b) {
  long double norm = 0;
  long double top = 0;
  long double x_max = 0;
  long double b_max = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    long double sum = 0;
    long double r = b[i];
    for (std::int64_t j = 0; j < n; ++j) {
      sum += std::abs(a[at(i + j * n)]);
      r -= static_cast<long double>(a[at(i + j * n)]) * x[j];
    }
    norm = std::max(norm, sum);
    top = std::max(top, std::abs(r));
    x_max = std::max<long double>(x_max, std::abs(x[i]));
    b_max = std::max<long double>(b_max, std::abs(b[i]));
  }
  return top == 0 ? 0 : static_cast<double>(top / (norm * x_max + b_max));
}

std::vector<double> right_sides(std::int64_t n, std::int64_t columns, std::uint64_t seed) {
  std::vector<double> b(at(n * columns));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_normal(seed, i);
  return b;
}

void expect_right(const SparseCholesky& factor, const SparseMatrix& a) {
  const std::int64_t n = a.rows;
  const std::vector<double> full = test::dense_of(a, factor.shift());
  const DenseOracle oracle(full, n);
  ASSERT_EQ(oracle.bad_column, -1);
  ASSERT_TRUE(factor.info().ok);
  EXPECT_NEAR(factor.info().log_determinant, static_cast<double>(oracle.log_determinant),
              1e-12 * std::max(1.0L, std::abs(oracle.log_determinant)));
  for (const std::int64_t columns : {1, 3}) {
    const std::vector<double> b = right_sides(n, columns, 7);
    std::vector<double> x = b;
    factor.solve({x.data(), n, columns, std::max<std::int64_t>(n, 1)});
    for (std::int64_t c = 0; c < columns; ++c)
      EXPECT_LE(backward_error(full, n, x.data() + c * n, b.data() + c * n),
                4 * kEpsilon * std::sqrt(static_cast<double>(n)));
    // Forward, then backward, is the whole.
    std::vector<double> y = b;
    factor.solve_lower({y.data(), n, columns, std::max<std::int64_t>(n, 1)});
    factor.solve_lower_transposed({y.data(), n, columns, std::max<std::int64_t>(n, 1)});
    EXPECT_EQ(x, y);
  }
}

TEST(SparseFactor, FamiliesInAllSizes) {
  for (const test::Family& family : test::families()) {
    for (const NamedSizes& sizes : kNamedSizes) {
      SCOPED_TRACE(family.name + std::string(", ") + sizes.name);
      const SparseMatrix a = test::with_values(family.matrix, 3);
      const SparseCholesky factor(a, named_options_of(sizes));
      expect_right(factor, a);
    }
  }
}

TEST(SparseFactor, RandomPatterns) {
  for (std::uint64_t seed = 0; seed < test::campaign(300, 300, 100); ++seed) {
    const auto n = static_cast<std::int64_t>(1 + random_bits(11, seed) % 40);
    const double density = std::pow(random_uniform(12, seed), 2);
    const auto give = static_cast<test::Give>(random_bits(13, seed) % 3);
    const SparseMatrix a = test::with_values(test::random_pattern(n, density, seed, give), seed);
    SparseCholeskyOptions options =
        named_options_of(kNamedSizes[random_bits(14, seed) % kNamedSizes.size()]);
    options.analysis.ordering =
        random_bits(15, seed) % 2 == 0 ? SparseOrdering::amd : SparseOrdering::natural;
    SCOPED_TRACE(seed);
    expect_right(SparseCholesky(a, options), a);
    if (testing::Test::HasFailure()) return;
  }
}

/// A hundred random patterns side by side in one matrix: components that have nothing to do with
/// each other, each with its own dense factorization.
TEST(SparseFactor, TwentyThousandRandomPatterns) {
  constexpr std::int64_t kBeside = 100;
  const std::uint64_t batches = test::campaign(200, 200, 10);
  for (std::uint64_t batch = 0; batch < batches; ++batch) {
    std::vector<SparseMatrix> parts;
    std::vector<std::int64_t> first{0};
    std::vector<std::int64_t> row;
    std::vector<std::int64_t> col;
    std::vector<double> value;
    for (std::uint64_t k = 0; k < kBeside; ++k) {
      const std::uint64_t seed = batch * kBeside + k;
      const auto n = static_cast<std::int64_t>(1 + random_bits(21, seed) % 24);
      const double density = std::pow(random_uniform(22, seed), 2);
      parts.push_back(
          test::with_values(test::random_pattern(n, density, seed, test::Give::lower), seed));
      const SparseMatrix& part = parts.back();
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t e = part.start[at(i)]; e < part.start[at(i + 1)]; ++e) {
          row.push_back(first.back() + i);
          col.push_back(first.back() + part.column[at(e)]);
          value.push_back(part.value[at(e)]);
        }
      }
      first.push_back(first.back() + n);
    }
    const std::int64_t n = first.back();
    SparseCholeskyOptions options = named_options_of(kNamedSizes[batch % kNamedSizes.size()]);
    options.analysis.ordering = batch % 2 == 0 ? SparseOrdering::amd : SparseOrdering::natural;
    const SparseCholesky factor(sparse_from_entries(n, n, row, col, value), options);
    ASSERT_TRUE(factor.info().ok) << batch;
    const std::vector<double> b = right_sides(n, 1, batch);
    std::vector<double> x = b;
    factor.solve({x.data(), n, 1, n});
    long double log_determinant = 0;
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const std::vector<double> full = test::dense_of(parts[k]);
      const std::int64_t order = parts[k].rows;
      log_determinant += DenseOracle(full, order).log_determinant;
      ASSERT_LE(backward_error(full, order, x.data() + first[k], b.data() + first[k]),
                4 * kEpsilon * std::sqrt(static_cast<double>(order)))
          << batch << ' ' << k;
    }
    EXPECT_NEAR(factor.info().log_determinant, static_cast<double>(log_determinant),
                1e-12 * std::abs(static_cast<double>(log_determinant)));
  }
}

TEST(SparseFactor, SelectedInverse) {
  for (const test::Family& family : test::families()) {
    for (const NamedSizes& sizes : {kNamedSizes[0], kNamedSizes[3]}) {
      SCOPED_TRACE(family.name + std::string(", ") + sizes.name);
      const SparseMatrix a = test::with_values(family.matrix, 5);
      const SparseCholesky factor(a, named_options_of(sizes));
      const DenseOracle oracle(test::dense_of(a), a.rows);
      const SelectedInverse z = factor.selected_inverse();
      const std::vector<double> diagonal = factor.inverse_diagonal();
      for (std::int64_t i = 0; i < a.rows; ++i) {
        const std::vector<long double> column = oracle.inverse_column(i);
        EXPECT_NEAR(diagonal[at(i)], static_cast<double>(column[at(i)]),
                    1e-9 * static_cast<double>(column[at(i)]));
        for (std::int64_t k = z.start[at(i)]; k < z.start[at(i + 1)]; ++k)
          EXPECT_NEAR(z.value[at(k)], static_cast<double>(column[at(z.column[at(k)])]),
                      1e-9 * static_cast<double>(column[at(i)]));
        for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
          EXPECT_TRUE(std::binary_search(z.column.begin() + z.start[at(i)],
                                         z.column.begin() + z.start[at(i + 1)], a.column[at(k)]));
      }
    }
  }
}

TEST(SparseFactor, ReportsSayTheTile) {
  const SparseMatrix a = test::with_values(test::grid(5, 4, 3), 1);
  SparseCholeskyOptions options = named_options_of(kNamedSizes[3]);
  const SparseAnalysis analysis = analyze(a, options.analysis);
  EXPECT_EQ(SparseCholesky(analysis, a, options).report().tile, 3);
  const Machine machine = Machine::emulated(1, 1 << 24);
  EXPECT_EQ(simulate_sparse_cholesky(analysis, a, machine, options).tile, 3);
  options.tile = 0;
  EXPECT_GT(SparseCholesky(analysis, a, options).report().tile, 0);
  EXPECT_GT(simulate_sparse_cholesky(analysis, a, machine, options).tile, 0);
}

// Two orders of one pattern whose panels have the same sizes: the numbers of one are not those of
// the other.
TEST(SparseFactor, AFactorIsOfItsOwnAnalysis) {
  const test::Scratch scratch;
  const SparseMatrix a = test::with_values(test::random_pattern(9, 1, 1, test::Give::lower), 1);
  SparseCholeskyOptions options = named_options_of(kNamedSizes[0]);
  options.analysis.ordering = SparseOrdering::given;
  for (const char* name : {"one", "other"}) {
    options.analysis.order = test::random_order(9, name[1]);
    SparseCholesky(a, options).save(scratch.path(name));
    EXPECT_EQ(SparseCholesky::open(scratch.path(name)).analysis().order, options.analysis.order);
  }
  std::filesystem::copy_file(scratch.path("one/factor"), scratch.path("other/factor"),
                             std::filesystem::copy_options::overwrite_existing);
  test::expect_error(ErrorKind::input, {"other/factor", "analysis"},
                     [&] { (void)SparseCholesky::open(scratch.path("other")); });
}

}  // namespace
}  // namespace strata
