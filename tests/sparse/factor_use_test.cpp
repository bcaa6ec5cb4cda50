// What is done with a sparse factor, and what is said of matrices that have none.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "sparse/fronts/front_factor.hpp"
#include "strata/error.hpp"
#include "strata/sparse_factor.hpp"
#include "tests/sparse/dense_oracle.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::DenseOracle;

SparseCholeskyOptions sized_options_of(std::int64_t tile, std::int64_t panel_order,
                                       std::int64_t branch_entries) {
  SparseCholeskyOptions options;
  options.run.devices = "host";
  options.analysis.ordering = SparseOrdering::amd;
  options.tile = tile;
  options.panel_order = panel_order;
  options.branch_entries = branch_entries;
  return options;
}

constexpr std::array<std::array<std::int64_t, 3>, 3> kUsedSizes{{{0, 0, 0}, {4, 8, 60}, {2, 1, 1}}};

template <class F>
Error error_of(const F& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::misuse, "", ""};
}

class Directory {
 public:
  explicit Directory(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / (name + "." + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
  }
  ~Directory() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// The failing row is the first in the order of elimination, and its pivot that of exact
/// elimination, however the tree is cut.
TEST(SparseFactorUse, NamesTheRowThatFails) {
  int failures = 0;
  for (std::uint64_t seed = 0; seed < test::campaign(300, 300, 60); ++seed) {
    const auto n = static_cast<std::int64_t>(2 + random_bits(31, seed) % 30);
    SparseMatrix a =
        test::with_values(test::random_pattern(n, 0.15, seed, test::Give::lower), seed);
    const auto row =
        static_cast<std::int64_t>(random_bits(32, seed) % static_cast<std::uint64_t>(n));
    for (std::int64_t k = a.start[at(row)]; k < a.start[at(row) + 1]; ++k)
      if (a.column[at(k)] == row) a.value[at(k)] *= 0.1;
    const SparseAnalysis analysis = analyze(a, sized_options_of(0, 0, 0).analysis);
    // In the order of elimination, densely.
    const std::vector<double> full = test::dense_of(a);
    std::vector<double> permuted(full.size());
    for (std::int64_t j = 0; j < n; ++j)
      for (std::int64_t i = 0; i < n; ++i)
        permuted[at(i + j * n)] = full[at(analysis.order[at(i)] + analysis.order[at(j)] * n)];
    const DenseOracle oracle(permuted, n);
    for (const auto& [tile, panel_order, branch_entries] : kUsedSizes) {
      const SparseCholesky factor(analysis, a, sized_options_of(tile, panel_order, branch_entries));
      ASSERT_EQ(factor.info().ok, oracle.bad_column < 0) << seed;
      if (factor.info().ok) continue;
      ++failures;
      EXPECT_EQ(factor.info().first_bad_pivot, analysis.order[at(oracle.bad_column)]) << seed;
      EXPECT_NEAR(factor.info().bad_pivot, oracle.bad_pivot,
                  1e-12 * (1 + std::abs(oracle.bad_pivot)));
      EXPECT_TRUE(std::isnan(factor.info().log_determinant));
      std::vector<double> x(at(n), 1.0);
      EXPECT_EQ(error_of([&] { factor.solve({x.data(), n, 1, n}); }).kind(), ErrorKind::misuse);
    }
  }
  EXPECT_GT(failures, test::kSanitized ? 20 : 100);
}

TEST(SparseFactorUse, TheShiftMakesItDefinite) {
  for (std::uint64_t seed = 0; seed < test::campaign(50, 50, 10); ++seed) {
    SparseMatrix a = test::with_values(test::grid(6, 5, 2), seed);
    for (std::int64_t i = 0; i < a.rows; ++i)
      for (std::int64_t k = a.start[at(i)]; k < a.start[at(i) + 1]; ++k)
        if (a.column[at(k)] == i) a.value[at(k)] -= 1.5;
    SparseCholesky factor(a, sized_options_of(4, 8, 60));
    ASSERT_FALSE(factor.info().ok);
    const DefiniteShift found = definite_shift(factor, a);
    const double shift = found.shift;
    EXPECT_TRUE(found.factored);
    EXPECT_TRUE(factor.refactor(a, shift).ok) << shift;
    EXPECT_EQ(factor.shift(), shift);
    EXPECT_FALSE(factor.refactor(a, 0.9 * shift).ok) << shift;  // and is not far too large
  }
  EXPECT_EQ(definite_shift(test::with_values(test::grid(5, 5, 1), 1)).shift, 0);
}

TEST(SparseFactorUse, AnEmptyDiagonalFails) {
  const std::vector<std::int64_t> row{0, 1, 2, 2};
  const std::vector<std::int64_t> col{0, 0, 0, 2};
  const std::vector<double> value{4, 1, 1, 4};
  const SparseMatrix a = sparse_from_entries(3, 3, row, col, value);
  SparseCholeskyOptions options = sized_options_of(0, 0, 0);
  options.analysis.ordering = SparseOrdering::natural;
  SparseCholesky factor(a, options);
  EXPECT_FALSE(factor.info().ok);
  EXPECT_EQ(factor.info().first_bad_pivot, 1);
  EXPECT_TRUE(factor.refactor(a, 1.0).ok);
}

TEST(SparseFactorUse, RefusesWhatIsNoSuchMatrix) {
  const SparseMatrix good = test::with_values(test::grid(5, 4, 1), 1);
  SparseCholesky factor(good, sized_options_of(0, 0, 0));
  SparseMatrix bad = good;
  bad.value[7] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(error_of([&] { (void)factor.refactor(bad); }).kind(), ErrorKind::input);
  EXPECT_FALSE(factor.info().ok);
  const Error pattern =
      error_of([&] { (void)factor.refactor(test::with_values(test::grid(4, 5, 1), 1)); });
  EXPECT_EQ(pattern.kind(), ErrorKind::misuse);
  EXPECT_TRUE(factor.refactor(good).ok);
  // Both triangles that differ.
  SparseMatrix both = test::with_values(test::random_pattern(9, 0.5, 3, test::Give::both), 1);
  SparseCholesky other(both, sized_options_of(0, 0, 0));
  for (std::int64_t k = both.start[3]; k < both.start[4]; ++k)
    if (both.column[at(k)] > 3) both.value[at(k)] += 1;
  EXPECT_NE(std::string(error_of([&] { (void)other.refactor(both); }).what()).find("not symmetric"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { (void)factor.refactor(good, std::nan("")); }).kind(), ErrorKind::misuse);
}

TEST(SparseFactorUse, RefusesWhatDoesNotFit) {
  const SparseMatrix a = test::with_values(test::grid(5, 4, 1), 1);
  const std::int64_t n = a.rows;
  const SparseAnalysis analysis = analyze(a, sized_options_of(0, 0, 0).analysis);
  SparseCholesky factor(analysis, a, sized_options_of(0, 0, 0));
  std::vector<double> x(at(2 * n), 1.0);
  const std::vector<double> before = x;
  const MatrixView<const double> b{before.data(), n, 2, n};
  const auto is_misuse = [](const auto& call) {
    EXPECT_EQ(error_of(call).kind(), ErrorKind::misuse);
  };
  is_misuse([&] { factor.solve({x.data(), n, 2, 1}); });
  is_misuse([&] { factor.solve({x.data(), n - 1, 2, n}); });
  is_misuse([&] { (void)refine(factor, a, {before.data(), n, 2, 1}, {x.data(), n, 2, n}); });
  is_misuse([&] { (void)refine(factor, a, b, {x.data(), n, 2, 1}); });
  is_misuse([&] { (void)solve(a, b, {x.data(), n, 2, 1}, sized_options_of(0, 0, 0)); });
  is_misuse([&] { (void)solve(a, b, {x.data(), n, 1, n}, sized_options_of(0, 0, 0)); });
  EXPECT_EQ(x, before);
  // Analyses that are none: one whose arrays have gone elsewhere, one whose rows are not there.
  SparseAnalysis empty = analysis;
  const SparseAnalysis taken = std::move(empty);
  is_misuse([&] { (void)SparseCholesky(empty, a, sized_options_of(0, 0, 0)); });
  is_misuse([&] {
    (void)simulate_sparse_cholesky(empty, a, Machine::emulated(1, 1 << 20),
                                   sized_options_of(0, 0, 0));
  });
  SparseAnalysis wrong = analysis;
  for (std::int32_t s = 0; s < wrong.supernodes(); ++s) {
    const std::int32_t p = wrong.parent[at(s)];
    if (p < 0 || wrong.row_count(s) < 2 || wrong.row_count(p) == 0) continue;
    std::int32_t& last = wrong.row[at(wrong.row_start[at(s) + 1] - 1)];
    const auto above = wrong.rows(p);
    for (std::int32_t row = wrong.first[at(p) + 1]; row < n; ++row)
      if (row > wrong.row[at(wrong.row_start[at(s) + 1] - 2)] &&
          !std::binary_search(above.begin(), above.end(), row)) {
        last = row;
        is_misuse([&] { (void)SparseCholesky(wrong, a, sized_options_of(0, 0, 0)); });
        s = wrong.supernodes();
        break;
      }
  }
  // Matrices that are none.
  SparseMatrix bad = a;
  bad.value.pop_back();
  is_misuse([&] { (void)factor.refactor(bad); });
  bad = a;
  bad.cols = n + 1;
  is_misuse([&] { (void)factor.refactor(bad); });
  is_misuse([&] { (void)definite_shift(bad); });
  EXPECT_EQ(std::string(error_of([&] {
                          factor.solve({x.data(), n, 2, n});
                        }).what())
                .find("row"),
            std::string::npos);  // no row has failed
  EXPECT_TRUE(factor.refactor(a).ok);
  for (const std::int64_t large :
       {std::int64_t{1} << 20, std::numeric_limits<std::int64_t>::max()}) {
    is_misuse([&] { (void)SparseCholesky(a, sized_options_of(large, 0, 0)); });
    is_misuse([&] { (void)SparseCholesky(a, sized_options_of(0, large, 0)); });
  }
}

/// Arrays of more than one of the pieces in which they are looked at.
TEST(SparseFactorUse, OfALargeMatrixEveryPieceIsLookedAt) {
  constexpr std::int64_t kSide = 200;
  std::vector<std::int64_t> row;
  std::vector<std::int64_t> col;
  std::vector<double> value;
  const auto put = [&](std::int64_t i, std::int64_t j, double v) {
    row.push_back(i);
    col.push_back(j);
    value.push_back(v);
  };
  for (std::int64_t i = 0; i < kSide * kSide; ++i) {
    put(i, i, 4.5);
    if (i % kSide > 0) put(i, i - 1, -1);
    if (i >= kSide) put(i, i - kSide, -1);
  }
  const SparseMatrix a = sparse_from_entries(kSide * kSide, kSide * kSide, row, col, value);
  SparseCholeskyOptions options;
  options.run.devices = "host";
  SparseCholesky factor(a, options);
  ASSERT_TRUE(factor.info().ok);
  const double log_determinant = factor.info().log_determinant;

  const std::size_t entries = a.value.size();
  for (const std::size_t k : {std::size_t{0}, std::size_t{65535}, std::size_t{65536}, entries / 2,
                              entries - 2, entries - 1}) {
    for (const double wrong :
         {std::numeric_limits<double>::quiet_NaN(), -std::numeric_limits<double>::quiet_NaN(),
          std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
      SparseMatrix bad = a;
      bad.value[k] = wrong;
      try {
        factor.refactor(bad);
        ADD_FAILURE() << "element " << k << " was taken for a number: " << wrong;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::input) << error.what();
      }
    }
    SparseMatrix large = a;  // numbers of the largest exponent are numbers
    large.value[k] = k == entries - 1 ? 1e308 : std::copysign(1e-308, a.value[k]);
    EXPECT_NO_THROW((void)factor.refactor(large)) << k;
  }

  // An entry that moved to where the pattern has none, in the last row alone.
  SparseMatrix moved = a;
  --moved.column[entries - 2];
  EXPECT_THROW((void)factor.refactor(moved), Error);
  ASSERT_TRUE(factor.refactor(a).ok);
  EXPECT_EQ(factor.info().log_determinant, log_determinant);
}

TEST(SparseFactorUse, ANaNStaysInTheCertificate) {
  const std::vector<std::int64_t> zero{0};
  const std::vector<double> one{1};
  const SparseMatrix a = sparse_from_entries(1, 1, zero, zero, one);
  for (const bool first : {true, false}) {
    const double nan = std::nan("");
    const std::vector<double> b{first ? nan : 1, first ? 1 : nan};
    std::vector<double> x(2);
    const SparseSolveResult result = solve(a, MatrixView<const double>{b.data(), 1, 2, 1},
                                           {x.data(), 1, 2, 1}, sized_options_of(0, 0, 0));
    EXPECT_TRUE(std::isnan(result.certificate.backward_error));
  }
}

TEST(SparseFactorUse, RefinesAndCertifies) {
  // Ill-conditioned: a chain that is barely definite.
  const std::int64_t n = 500;
  std::vector<std::int64_t> row, col;
  std::vector<double> value;
  for (std::int64_t i = 0; i < n; ++i) {
    row.push_back(i), col.push_back(i), value.push_back(2);
    if (i > 0) row.push_back(i), col.push_back(i - 1), value.push_back(-1);
  }
  const SparseMatrix a = sparse_from_entries(n, n, row, col, value);
  std::vector<double> b(at(2 * n));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = random_normal(1, i);
  std::vector<double> x(b.size());
  const SparseSolveResult result =
      solve(a, MatrixView<const double>{b.data(), n, 2, n}, MatrixView<double>{x.data(), n, 2, n},
            sized_options_of(4, 8, 60));
  EXPECT_TRUE(result.certificate.factor.ok);
  EXPECT_LE(result.certificate.backward_error, 4 * std::numeric_limits<double>::epsilon());
  for (std::int64_t i = 0; i < n; ++i) {
    const double r = 2 * x[at(i)] - (i > 0 ? x[at(i - 1)] : 0) - (i + 1 < n ? x[at(i + 1)] : 0);
    EXPECT_NEAR(r, b[at(i)], 1e-9);
  }
  // A factor of a matrix nearby solves by refinement, too.
  SparseMatrix nearby = a;
  for (double& v : nearby.value) v *= 1 + 1e-9;
  const SparseCholesky factor(nearby, sized_options_of(0, 0, 0));
  std::copy(b.begin(), b.end(), x.begin());
  factor.solve({x.data(), n, 2, n});
  const Certificate certificate =
      refine(factor, a, MatrixView<const double>{b.data(), n, 2, n}, {x.data(), n, 2, n});
  EXPECT_GT(certificate.refinement_steps, 0);
  EXPECT_LE(certificate.backward_error, 4 * std::numeric_limits<double>::epsilon());
}

/// A factor in floats, refined, solves as one in doubles does.
TEST(SparseFactorUse, FloatsAreRefinedToDoubles) {
  for (const test::Family& family : test::families()) {
    for (const auto& [tile, panel_order, branch_entries] : kUsedSizes) {
      SCOPED_TRACE(family.name);
      const SparseMatrix a = test::with_values(family.matrix, 9, 0.1);
      const std::int64_t n = a.rows;
      SparseCholeskyOptions options = sized_options_of(tile, panel_order, branch_entries);
      const SparseCholesky wide(a, options);
      options.precision = Element::fp32;
      const SparseCholesky factor(a, options);
      ASSERT_TRUE(factor.info().ok);
      EXPECT_EQ(factor.precision(), Element::fp32);
      EXPECT_NEAR(factor.info().log_determinant, wide.info().log_determinant,
                  1e-5 * (1 + static_cast<double>(n)));
      for (const double size : {1.0, 1e60, 1e-60}) {
        std::vector<double> b(at(2 * n));
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = size * random_normal(2, i);
        std::vector<double> x = b;
        const MatrixView<double> view{x.data(), n, 2, std::max<std::int64_t>(n, 1)};
        factor.solve(view);
        const Certificate certificate =
            refine(factor, a,
                   MatrixView<const double>{b.data(), n, 2, std::max<std::int64_t>(n, 1)}, view);
        EXPECT_LE(certificate.backward_error, 4 * std::numeric_limits<double>::epsilon());
        EXPECT_EQ(certificate.precision, Element::fp32);
        wide.solve({b.data(), n, 2, std::max<std::int64_t>(n, 1)});
        for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], b[i], 1e-10 * size);
      }
      const std::vector<double> exact = wide.inverse_diagonal();
      const std::vector<double> diagonal = factor.inverse_diagonal();
      for (std::size_t i = 0; i < exact.size(); ++i)
        EXPECT_NEAR(diagonal[i], exact[i], 1e-3 * exact[i]);
    }
  }
  SparseMatrix large = test::with_values(test::grid(3, 3, 1), 1);
  large.value[0] = 1e60;
  SparseCholeskyOptions options = sized_options_of(0, 0, 0);
  options.precision = Element::fp32;
  EXPECT_EQ(error_of([&] { (void)SparseCholesky(large, options); }).kind(), ErrorKind::input);
  large.value[0] = 1e-50;  // and no diagonal element that is no longer a normal float
  EXPECT_EQ(error_of([&] { (void)SparseCholesky(large, options); }).kind(), ErrorKind::input);
  const std::vector<std::int64_t> kept{0};
  EXPECT_EQ(error_of([&] { (void)schur_complement(large, kept, options); }).kind(),
            ErrorKind::misuse);
  options.precision = Element::fp16;
  EXPECT_EQ(error_of([&] { (void)SparseCholesky(large, options); }).kind(), ErrorKind::misuse);
}

TEST(SparseFactorUse, EstimatesTheCondition) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto n = static_cast<std::int64_t>(1 + random_bits(41, seed) % 40);
    const SparseMatrix a = test::with_values(
        test::random_pattern(n, 0.2, seed, static_cast<test::Give>(seed % 3)), seed, 1e-6);
    const SparseCholesky factor(a, sized_options_of(4, 8, 60));
    const std::vector<double> full = test::dense_of(a);
    const DenseOracle oracle(full, n);
    long double norm = 0;
    long double inverse = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      long double sum = 0;
      for (std::int64_t i = 0; i < n; ++i) sum += std::abs(full[at(i + j * n)]);
      norm = std::max(norm, sum);
      sum = 0;
      for (const long double v : oracle.inverse_column(j)) sum += std::abs(v);
      inverse = std::max(inverse, sum);
    }
    const double exact = static_cast<double>(norm * inverse);
    EXPECT_LE(factor.condition(a), exact * (1 + 1e-8)) << seed;
    EXPECT_GE(factor.condition(a), exact / 3) << seed;
  }
}

TEST(SparseFactorUse, LeavesTheSchurComplement) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto n = static_cast<std::int64_t>(1 + random_bits(51, seed) % 30);
    const SparseMatrix a = test::with_values(
        test::random_pattern(n, 0.2, seed, static_cast<test::Give>(seed % 3)), seed);
    const std::vector<std::int32_t> shuffled = test::random_order(n, seed);
    const auto count =
        static_cast<std::size_t>(random_bits(52, seed) % static_cast<std::uint64_t>(n + 1));
    const std::vector<std::int64_t> kept(shuffled.begin(),
                                         shuffled.begin() + static_cast<std::ptrdiff_t>(count));
    SparseCholeskyOptions options = sized_options_of(4, 8, 60);
    options.shift = 0.25;
    const SchurComplement s = schur_complement(a, kept, options);
    ASSERT_TRUE(s.factor.ok);
    ASSERT_EQ(s.values.size(), count * count);
    // Its inverse is that part of the inverse of A.
    const DenseOracle whole(test::dense_of(a, 0.25), n);
    for (std::size_t j = 0; j < count; ++j) {
      const std::vector<long double> column = whole.inverse_column(kept[j]);
      for (std::size_t i = 0; i < count; ++i) {
        long double sum = i == j ? -1 : 0;
        for (std::size_t k = 0; k < count; ++k)
          sum += static_cast<long double>(s.values[i + k * count]) * column[at(kept[k])];
        EXPECT_NEAR(static_cast<double>(sum), 0, 1e-12) << seed << ' ' << i << ' ' << j;
        EXPECT_EQ(s.values[i + j * count], s.values[j + i * count]);
      }
    }
  }
  SparseMatrix a = test::with_values(test::grid(4, 4, 1), 1);
  const std::vector<std::int64_t> twice{3, 3};
  EXPECT_EQ(error_of([&] { (void)schur_complement(a, twice); }).kind(), ErrorKind::misuse);
  const std::vector<std::int64_t> none{16};
  EXPECT_EQ(error_of([&] { (void)schur_complement(a, none); }).kind(), ErrorKind::misuse);
  const std::vector<std::int64_t> kept{0, 1};
  for (std::int64_t k = a.start[9]; k < a.start[10]; ++k)
    if (a.column[at(k)] == 9) a.value[at(k)] = -1;
  const SchurComplement failed = schur_complement(a, kept, sized_options_of(0, 0, 0));
  EXPECT_FALSE(failed.factor.ok);
  EXPECT_EQ(failed.factor.first_bad_pivot, 9);
  EXPECT_TRUE(failed.values.empty());
}

TEST(SparseFactorUse, IsSavedAndOpened) {
  const Directory directory("strata_factor_test");
  for (const auto& [tile, panel_order, branch_entries] : kUsedSizes) {
    const SparseMatrix a = test::with_values(test::grid(9, 7, 5), 5);
    SparseCholeskyOptions options = sized_options_of(tile, panel_order, branch_entries);
    options.precision = tile == 4 ? Element::fp32 : Element::fp64;
    const SparseCholesky factor(a, options);
    factor.save(directory.path());
    SparseCholesky opened = SparseCholesky::open(directory.path(), sized_options_of(0, 0, 0));
    EXPECT_EQ(opened.info().log_determinant, factor.info().log_determinant);
    std::vector<double> x(at(a.rows), 1.0);
    std::vector<double> y(at(a.rows), 1.0);
    factor.solve({x.data(), a.rows, 1, a.rows});
    opened.solve({y.data(), a.rows, 1, a.rows});
    EXPECT_EQ(x, y);
    EXPECT_EQ(opened.inverse_diagonal(), factor.inverse_diagonal());
    EXPECT_TRUE(opened.refactor(a, 1).ok);
  }
}

TEST(SparseFactorUse, RefusesDamagedFiles) {
  const Directory directory("strata_factor_damage");
  const SparseMatrix a = test::with_values(test::grid(5, 4, 3), 5);
  const SparseCholesky factor(a, sized_options_of(0, 0, 0));
  const std::string path = directory.path() + "/factor";
  const auto complaint = [&] {
    return error_of([&] { (void)SparseCholesky::open(directory.path()); });
  };
  const auto write = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  };
  EXPECT_EQ(complaint().kind(), ErrorKind::input);
  factor.save(directory.path());
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  std::size_t step = 1;
  for (std::size_t i = 0; i < whole.size(); i += step, step += 1 + step / 8) {
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    write(damaged);
    EXPECT_EQ(complaint().kind(), ErrorKind::input) << i;
    write(whole.substr(0, i));
    EXPECT_EQ(complaint().kind(), ErrorKind::input) << i;
  }
  write(whole + "x");
  EXPECT_EQ(complaint().kind(), ErrorKind::input);
  write(whole);
  EXPECT_TRUE(SparseCholesky::open(directory.path()).info().ok);
  // The factor of another matrix beside the analysis.
  SparseCholesky(test::with_values(test::grid(3, 4, 5), 5), sized_options_of(0, 0, 0))
      .save(directory.path());
  write(whole);
  EXPECT_NE(std::string(complaint().what()).find("not a factor by the analysis"),
            std::string::npos);
}

TEST(SparseFactorUse, SimulatesWithoutValues) {
  const SparseMatrix a = test::with_values(test::grid(9, 8, 7), 5);
  const SparseCholeskyOptions options = sized_options_of(24, 48, 400);
  const SparseAnalysis analysis = analyze(a, options.analysis);
  // L goes home from two devices, with these sizes, and from one that does not hold it.
  const std::int64_t factor = analysis.counts.stored_entries * 8;
  for (const auto& [devices, memory] :
       {std::pair{1, std::int64_t{1} << 20}, {1, factor}, {2, std::int64_t{1} << 20}}) {
    const RunReport report =
        simulate_sparse_cholesky(analysis, a, Machine::emulated(devices, memory), options);
    EXPECT_GT(report.predicted_seconds.value_or(0), 0);
    EXPECT_LE(report.peak_device_bytes, memory);
    const bool stays = devices == 1 && memory > factor;
    EXPECT_EQ(report.planned_traffic.device_to_host_bytes >= factor, !stays);
    EXPECT_GE(report.planned_traffic.host_to_device_bytes, std::ssize(a.value) * 8);
    EXPECT_NEAR(report.flops, analysis.counts.stored_flops, 0.2 * analysis.counts.stored_flops);
  }
}

/// GPUs and CPUs: those of one kind, unless a plan for all ends sooner.
TEST(SparseFactorUse, TakesDevicesOfOneKindWhereThatIsPredictedToBeFaster) {
  const SparseMatrix a = test::with_values(test::grid(24, 24, 24), 5);
  const SparseCholeskyOptions options = sized_options_of(0, 0, 0);
  const SparseAnalysis analysis = analyze(a, options.analysis);
  Machine machine = Machine::emulated(2, std::int64_t{1} << 30);
  DeviceModel& gpu = machine.devices[0];
  DeviceModel& cpu = machine.devices[1];
  cpu.kind = DeviceKind::cpu;
  cpu.rate(Element::fp64) = 100e9;
  const auto chosen = [&] { return sooner_alone(analysis, a, machine, options); };
  const auto seconds = [&](const Machine& some) {
    return simulate_sparse_cholesky(analysis, a, some, options).predicted_seconds.value_or(0);
  };
  EXPECT_EQ(chosen(), DeviceKind::gpu);
  EXPECT_EQ(seconds(machine), seconds(only(machine, DeviceKind::gpu)));
  EXPECT_EQ(simulate_sparse_cholesky(analysis, a, machine, options).devices.size(), 1U);
  EXPECT_EQ(sooner_alone(analysis, a, only(machine, DeviceKind::gpu), options), std::nullopt);
  // A GPU that has not the memory for any of it, nor has it beside CPUs.
  gpu = Machine::emulated(1, 100).devices.front();
  EXPECT_EQ(chosen(), DeviceKind::cpu);
  EXPECT_EQ(seconds(machine), seconds(only(machine, DeviceKind::cpu)));
}

}  // namespace
}  // namespace strata
