// Certified solves with Cholesky factors that rest in storage, at once or later, and matrices of
// any range. Oracles: the same in host memory, whose bits they have, and elimination in 113 bits.

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "scalar/complex.hpp"
#include "strata/cholesky.hpp"
#include "strata/error.hpp"
#include "tests/cholesky/random_matrices.hpp"
#include "tests/io/scratch.hpp"
#include "tests/support/campaign.hpp"
#include "tests/support/problems.hpp"
#include "tests/support/simulated_files.hpp"
#include "tests/support/storage_options.hpp"
#include "tests/support/wide_elimination.hpp"

namespace strata {
namespace {

using test::in_folders;
using test::Matrix;
using test::Scratch;

using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

/// Hermitian and positive definite, in T, times a power of two.
template <class T>
Matrix<T> definite_in(std::int64_t n, std::uint64_t seed, int exponent = 0) {
  const Matrix<double> real = test::random_spd_matrix<double>(n, seed);
  return test::make_matrix<T>(n, n, [&](auto i, auto j) {
    const double value = std::ldexp(real.view()(i, j), exponent);
    if constexpr (is_complex_v<T>) {
      const double other =
          i == j ? 0
                 : std::ldexp(0.25 * static_cast<double>(i - j) / static_cast<double>(n), exponent);
      return T(static_cast<RealOf<T>>(value), static_cast<RealOf<T>>(other));
    } else {
      return static_cast<T>(value);
    }
  });
}

template <class W>
Matrix<W> right_sides_of(std::int64_t n) {
  return test::make_matrix<W>(
      n, 2, [](auto i, auto j) { return W(static_cast<double>((3 * i + 5 * j) % 11) - 4.5); });
}

/// Options of a factor of A in tiles of 12, in files.
CholeskyOptions filed(std::int64_t n, std::int64_t bytes_of_element, const Scratch& folder) {
  const RunOptions run =
      test::within_budget({"host:1", 0.6, 0}, n * (n + 12) / 2 * bytes_of_element);
  return {.run = in_folders(run, folder, 2), .tile = 12};
}

CholeskyOptions in_memory_by_tiles() {
  CholeskyOptions options;
  options.run.devices = "host:1";
  options.tile = 12;
  return options;
}

void expect_same_certificate(const SolveResult& a, const SolveResult& b) {
  const Certificate& one = a.certificate;
  const Certificate& two = b.certificate;
  EXPECT_EQ(one.backward_error, two.backward_error);
  EXPECT_EQ(one.componentwise_backward_error, two.componentwise_backward_error);
  EXPECT_EQ(one.scaled_condition, two.scaled_condition);
  EXPECT_EQ(one.forward_error, two.forward_error);
  EXPECT_EQ(one.refinement_steps, two.refinement_steps);
  EXPECT_EQ(one.factor.log_determinant, two.factor.log_determinant);
  EXPECT_EQ(a.log_determinant_error, b.log_determinant_error);
}

/// A in A's numbers, factored and solved in T: in memory, in temporary files, and by a durable
/// factor that is opened again.
template <class T, class A>
void expect_bits_of_memory_for(std::int64_t n, int exponent) {
  SCOPED_TRACE(fmt::format("{} of {}, order {}, times 2 to {}", to_string(element_of<T>),
                           to_string(element_of<A>), n, exponent));
  using W = WideOf<T>;
  const Matrix<A> a = definite_in<A>(n, 4, exponent);
  const Matrix<W> b = right_sides_of<W>(n);
  const Matrix<T> nothing = test::make_matrix<T>(n, 2, [](auto, auto) { return T(0); });
  const Scratch folder;
  const CholeskyOptions files = filed(n, sizeof(T), folder);
  Matrix<T> expected = nothing;
  Matrix<T> x = nothing;
  SolveResult memory;
  if constexpr (std::is_same_v<T, A> || sizeof(T) < sizeof(A)) {
    const auto solve_with = [&](const CholeskyOptions& options, Matrix<T>& to) {
      if constexpr (std::is_same_v<T, A>) {
        const auto of_t = test::make_matrix<T>(
            n, 2, [&](auto i, auto j) { return static_cast<T>(b.view()(i, j)); });
        return solve(a.view(), of_t.view(), to.view(), options);
      } else {
        return solve(a.view(), b.view(), to.view(), options);
      }
    };
    memory = solve_with(in_memory_by_tiles(), expected);
    EXPECT_EQ(memory.factor.storage, "");
    const SolveResult stored = solve_with(files, x);
    EXPECT_NE(stored.factor.storage, "");
    EXPECT_EQ(stored.factor.traffic, stored.factor.planned_traffic);
    EXPECT_TRUE(x.data == expected.data);
    expect_same_certificate(stored, memory);
  }
  const Element parts = element_of_parts(element_of<T>);
  const std::string home = folder.path("f");
  {
    CholeskyFactor factor = cholesky(a.view(), parts, files);
    EXPECT_EQ(factor.precision(), element_of<T>);
    EXPECT_GT(factor.stored().count, 0);
    EXPECT_TRUE(std::isnan(factor.scaled_condition()));
    x = nothing;
    const SolveResult certified = solve(factor, a.view(), b.view(), x.view());
    if (memory.certificate.precision == element_of<T> && memory.factor.n == n) {
      EXPECT_TRUE(x.data == expected.data);
      expect_same_certificate(certified, memory);
    }
    expected = x;
    factor.save(home);
  }
  EXPECT_TRUE(CholeskyFactor::is_at(home));
  CholeskyOptions plain;
  plain.run.devices = "host:1";
  CholeskyFactor opened = CholeskyFactor::open(home, plain.run);
  EXPECT_GT(opened.scaled_condition(), 1);
  EXPECT_GT(opened.log_determinant_error(), 0);
  x = nothing;
  const SolveResult again = solve(opened, a.view(), b.view(), x.view());
  EXPECT_TRUE(x.data == expected.data);
  EXPECT_LE(again.certificate.forward_error, 1e-2);
  // Another matrix, of which one element differs.
  Matrix<A> other = a;
  other(n - 1, 0) += other(n - 1, 0) * static_cast<RealOf<A>>(0.5);
  EXPECT_THROW((void)solve(opened, std::as_const(other).view(), b.view(), x.view()), Error);
  // Without A.
  Matrix<T> plainly =
      test::make_matrix<T>(n, 2, [&](auto i, auto j) { return static_cast<T>(b.view()(i, j)); });
  (void)opened.solve(plainly.view());
  for (std::int64_t i = 0; i < n; ++i)
    EXPECT_NEAR(std::abs(plainly(i, 0) - x(i, 0)), 0,
                1e-4 * std::ldexp(1.0, -exponent) + std::numeric_limits<RealOf<T>>::denorm_min());
}

TEST(SavedCholesky, HasTheBitsAndTheCertificateOfMemory) {
  for (const int exponent : {0, 1000, -1000}) {
    expect_bits_of_memory_for<double, double>(70, exponent);
    expect_bits_of_memory_for<Complex128, Complex128>(40, exponent);
  }
  for (const int exponent : {0, 110, -110}) {
    expect_bits_of_memory_for<float, float>(50, exponent);
    expect_bits_of_memory_for<float, double>(61, exponent);
    expect_bits_of_memory_for<double, float>(50, exponent);
    expect_bits_of_memory_for<Complex64, Complex64>(40, exponent);
    expect_bits_of_memory_for<Complex64, Complex128>(40, exponent);
    expect_bits_of_memory_for<Complex128, Complex64>(40, exponent);
  }
}

TEST(SavedCholesky, NoFilesAreMadeForWhatHostMemoryHolds) {
  const Matrix<double> a = definite_in<double>(60, 3);
  const Scratch folder;
  CholeskyOptions options = filed(60, 8, folder);
  options.run.host_memory_bytes = 1 << 20;
  Matrix<double> x = a;
  EXPECT_EQ(solve(a.view(), a.view(), x.view(), options).factor.storage, "");
  EXPECT_NE(cholesky(a.view(), options).report().storage, "") << "what is to stay is written";
}

/// A factor of A at the ends of the range is one of A: L, x, log|A| and bad pivots.
TEST(Cholesky, TakesMatricesNearTheEndsOfTheRange) {
  constexpr std::int64_t kOrder = 30;
  const Matrix<double> a = definite_in<double>(kOrder, 7);
  Matrix<double> l(kOrder, kOrder);
  CholeskyFactor plain = cholesky(a.view(), in_memory_by_tiles());
  plain.copy_lower(l.view());
  for (const int exponent : {1010, -1040, 902, -902}) {
    const Matrix<double> far = definite_in<double>(kOrder, 7, exponent);
    CholeskyFactor factor = cholesky(far.view(), in_memory_by_tiles());
    ASSERT_TRUE(factor.info().ok) << exponent;
    EXPECT_NEAR(factor.info().log_determinant,
                plain.info().log_determinant + kOrder * exponent * std::log(2.0), 1e-9);
    Matrix<double> of_far(kOrder, kOrder);
    factor.copy_lower(of_far.view());
    // Elements of A that are subnormal numbers have lost digits.
    const double digits = exponent < -1000 ? 1e-4 : 0;
    for (std::int64_t j = 0; j < kOrder; ++j)
      for (std::int64_t i = j; i < kOrder; ++i)
        EXPECT_NEAR(std::ldexp(of_far(i, j), -exponent / 2), l(i, j), digits * l(j, j)) << exponent;
    Matrix<double> x = definite_in<double>(kOrder, 7, exponent);
    (void)factor.solve(x.view());
    Matrix<double> half = definite_in<double>(kOrder, 7, exponent);
    (void)factor.solve_lower(half.view());
    for (std::int64_t j = 0; j < kOrder; ++j) {
      for (std::int64_t i = 0; i < kOrder; ++i) {
        EXPECT_NEAR(x(i, j), i == j ? 1 : 0, 1e-13 + digits) << exponent;
        // L⁻¹·A = Lᵀ.
        EXPECT_NEAR(std::ldexp(half(i, j), -exponent / 2), i <= j ? l(j, i) : 0,
                    1e-13 * kOrder + digits * kOrder)
            << exponent;
      }
    }
    Matrix<double> bad = far;
    bad(4, 4) = -std::ldexp(1.0, exponent);
    const CholeskyFactor none = cholesky(std::as_const(bad).view(), in_memory_by_tiles());
    EXPECT_EQ(none.info().first_bad_pivot, 4);
    EXPECT_NEAR(std::ldexp(none.info().bad_pivot, -exponent), -1, 0.5);
  }
}

/// Integers times a power of two that makes them subnormal, and right-hand sides that are: nothing
/// is lost on the way.
TEST(Cholesky, SolvesInSubnormalNumbersAsInOthers) {
  constexpr std::int64_t kOrder = 24;
  for (const int exponent : {0, -1040, -1068}) {
    const auto a = test::make_matrix<double>(kOrder, kOrder, [&](auto i, auto j) {
      const auto off = static_cast<double>((i + j) % 3) - 1;  // symmetric
      return std::ldexp(i == j ? 20.0 + static_cast<double>(i % 4) : off, exponent);
    });
    Matrix<double> x(kOrder, 1);
    for (std::int64_t i = 0; i < kOrder; ++i)
      for (std::int64_t j = 0; j < kOrder; ++j) x(i, 0) += a(i, j) * static_cast<double>(1 + j % 2);
    CholeskyFactor factor = cholesky(a.view(), in_memory_by_tiles());
    ASSERT_TRUE(factor.info().ok) << exponent;
    (void)factor.solve(x.view());
    for (std::int64_t i = 0; i < kOrder; ++i)
      EXPECT_NEAR(x(i, 0), static_cast<double>(1 + i % 2), 1e-14) << exponent;
  }
}

/// ± of log|A| beside 113 bits, as a solve states it.
TEST(SavedCholesky, ASolveTellsWhatItsLogDeterminantMayBeOff) {
  for (std::uint64_t seed = 0; seed < test::campaign(200, 60, 20); ++seed) {
    const auto n = static_cast<std::int64_t>(1 + seed % 23);
    // D·S·D, D of powers far apart, S near singular for some.
    const Matrix<double> s = definite_in<double>(n, seed);
    const double shift =
        static_cast<double>(n) - 1 - std::pow(10.0, -static_cast<double>(seed % 9));
    const auto a = test::make_matrix<double>(n, n, [&](auto i, auto j) {
      const auto power = [&](std::int64_t k) {
        return static_cast<int>(random_bits(seed, static_cast<std::uint64_t>(k)) % 40) - 20;
      };
      return std::ldexp(s.view()(i, j) - (i == j && seed % 2 == 0 ? 0.5 * shift : 0),
                        power(i) + power(j));
    });
    const Matrix<double> b = right_sides_of<double>(n);
    Matrix<double> x = b;
    const SolveResult result = solve(a.view(), b.view(), x.view(), in_memory_by_tiles());
    if (!result.certificate.factor.ok) {
      EXPECT_TRUE(std::isnan(result.log_determinant_error));
      continue;
    }
    const double exact = test::wide_determinant(a.data, n).log;
    EXPECT_LE(std::abs(result.certificate.factor.log_determinant - exact),
              result.log_determinant_error)
        << seed;
  }
}

TEST(SavedCholesky, SaysHowFarItIs) {
  const Matrix<double> a = definite_in<double>(100, 3);
  const Scratch folder;
  CholeskyOptions options = filed(100, 8, folder);
  options.run.storage.directories.resize(1);
  const std::string directory = options.run.storage.directories[0];
  EXPECT_FALSE(cholesky_progress(directory).has_value());
  options.run.storage.resume = true;
  std::int64_t told = 0;
  options.run.progress = [&](const Progress&) { return ++told < 3; };
  try {
    (void)cholesky(a.view(), options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled) << error.what();
  }
  options.run.progress = nullptr;
  (void)cholesky(a.view(), options);
  const std::optional<FactorProgress> progress = cholesky_progress(directory);
  ASSERT_TRUE(progress.has_value());
  EXPECT_EQ(progress->count, 45);
  EXPECT_EQ(progress->done, 45);
  EXPECT_EQ(progress->work_share, 1);
  EXPECT_NE(progress->about.find("Cholesky of order 100"), std::string::npos);
  // As a run would have left it that was killed: a record that was cut off.
  const std::string journal = directory + "/journal";
  std::filesystem::resize_file(journal, std::filesystem::file_size(journal) - 5);
  const FactorProgress before = cholesky_progress(directory).value();
  EXPECT_LT(before.done, 45);
  EXPECT_GT(before.work_share, 0);
  EXPECT_LT(before.work_share, 1);
}

TEST(SavedCholesky, RefusesWhatIsNoFactor) {
  const Matrix<double> a = definite_in<double>(40, 3);
  const Matrix<double> b = right_sides_of<double>(40);
  Matrix<double> x = b;
  Matrix<float> narrow = test::make_matrix<float>(40, 2, [](auto, auto) { return 0.0F; });
  const Scratch folder;
  CholeskyFactor memory = cholesky(a.view(), in_memory_by_tiles());
  EXPECT_THROW(memory.save(folder.path("m")), Error);
  EXPECT_FALSE(std::filesystem::exists(folder.path("m")));
  EXPECT_THROW((void)solve(memory, a.view(), b.view(), x.view()), Error);
  CholeskyFactor factor = cholesky(a.view(), filed(40, 8, folder));
  EXPECT_THROW((void)solve(factor, a.view(), b.view(), narrow.view()), Error);
  EXPECT_THROW((void)solve(factor, a.view().block(0, 0, 39, 39), b.view(), x.view()), Error);
  EXPECT_THROW((void)solve(factor, a.view(), b.view().block(0, 0, 39, 2), x.view()), Error);
  const std::string home = folder.path("f");
  EXPECT_FALSE(CholeskyFactor::is_at(home));
  factor.save(home);
  // Every byte of the file counts.
  std::string bytes;
  {
    std::ifstream file(home + "/factor", std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (std::size_t k = 0; k <= bytes.size(); ++k) {
    std::string damaged = bytes;
    if (k < bytes.size())
      damaged[k] = static_cast<char>(damaged[k] ^ (1 << (k % 8)));
    else
      damaged.pop_back();
    std::ofstream(home + "/factor", std::ios::binary) << damaged;
    EXPECT_THROW((void)CholeskyFactor::open(home), Error) << k;
  }
  std::ofstream(home + "/factor", std::ios::binary) << bytes;
  // The tiles are in use, then free, then somewhere else.
  EXPECT_THROW((void)CholeskyFactor::open(home), Error);
}

TEST(SavedCholesky, IsFoundWhereItsDirectoriesWereMoved) {
  const Matrix<double> a = definite_in<double>(40, 3);
  const Matrix<double> b = right_sides_of<double>(40);
  const Scratch folder;
  CholeskyOptions options = filed(40, 8, folder);
  options.run.storage.directories = {folder.path("whole"), folder.path("beside")};
  Matrix<double> expected = b;
  {
    CholeskyFactor factor = cholesky(a.view(), options);
    factor.save(folder.path("whole"));
    (void)factor.solve(expected.view());
  }
  std::filesystem::rename(folder.path("whole"), folder.path("moved"));
  Matrix<double> x = b;
  (void)CholeskyFactor::open(folder.path("moved")).solve(x.view());
  EXPECT_TRUE(x.data == expected.data) << "its own directory moves with it";
  std::filesystem::rename(folder.path("beside"), folder.path("elsewhere"));
  EXPECT_THROW((void)CholeskyFactor::open(folder.path("moved")), Error);
  CholeskyOptions there;
  there.run.storage.directories = {folder.path("moved"), folder.path("elsewhere")};
  x = b;
  (void)CholeskyFactor::open(folder.path("moved"), there.run).solve(x.view());
  EXPECT_TRUE(x.data == expected.data);
}

}  // namespace
}  // namespace strata
