// A Q that is not stored.

#include <gtest/gtest.h>

#include "qr/pass_runner.hpp"
#include "qr/planned_passes.hpp"
#include "qr/tall_problem.hpp"
#include "tests/qr/factored.hpp"
#include "tests/qr/many_digits.hpp"
#include "tests/qr/procrustes.hpp"
#include "tests/support/backends.hpp"
#include "tests/support/campaign.hpp"

namespace strata {
namespace {

using test::executed_as_planned;
using test::Factored;
using test::factored;
using test::kind_of;
using test::on;
using test::Tall;

/// Y = Q·C by the contract of apply(): a chain of fused multiply-adds.
template <class T>
test::Matrix<T> product(const test::Matrix<T>& q, const test::Matrix<T>& c) {
  return test::make_matrix<T>(q.rows, c.cols, [&](auto i, auto k) {
    double sum = 0;
    for (std::int64_t j = 0; j < q.cols; ++j)
      sum = std::fma(static_cast<double>(c(j, k)), static_cast<double>(q(i, j)), sum);
    return sum;
  });
}

/// max |C − QᵀB| beside the length of the column of B, against sums of 600 bits.
double error_of_transposed(const Tall& q, const Tall& b, const Tall& c) {
  test::Many worst = 0;
  for (std::int64_t k = 0; k < b.cols; ++k) {
    test::Many square = 0;
    for (std::int64_t r = 0; r < b.rows; ++r) square += test::Many(b(r, k)) * test::Many(b(r, k));
    for (std::int64_t i = 0; i < q.cols; ++i) {
      test::Many sum = -test::Many(c(i, k));
      for (std::int64_t r = 0; r < b.rows; ++r) sum += test::Many(q(r, i)) * test::Many(b(r, k));
      worst = std::max(worst, test::Many(abs(test::Many(sum / sqrt(square)))));
    }
  }
  return static_cast<double>(worst);
}

struct Applied {
  Tall q{0, 0};
  Tall y{0, 0};
  Tall c{0, 0};
};
Applied applied(TallQr<double>& tall, const Tall& small, const Tall& b, int times = 1) {
  Applied result{Tall(tall.rows(), tall.cols()), Tall(tall.rows(), small.cols),
                 Tall(tall.cols(), b.cols)};
  for (int k = 0; k < times; ++k) {
    EXPECT_TRUE(executed_as_planned(tall.apply(small.view(), result.y.view())));
    EXPECT_TRUE(executed_as_planned(tall.apply_transposed({.view = b.view()}, result.c.view())));
    EXPECT_TRUE(executed_as_planned(tall.write(result.q.view())));
  }
  return result;
}

class TallQrs : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Backends, TallQrs, ::testing::ValuesIn(test::available_backends()),
                         [](const auto& info) { return info.param; });

TEST_P(TallQrs, AnImplicitQHasTheBitsOfTheOneThatIsStored) {
  // One triangle, and two; blocks of 4096 rows.
  for (const double condition : {1e3, 1e17}) {
    const Tall v = test::with_condition(9001, 40, condition, 5);
    const Tall before = v;
    const Tall small = test::random_tall(40, 3, 6);
    const Tall b = test::random_tall(9001, 2, 7);
    const Factored<double> stored = factored(v, on("host:1", 64 << 20));
    // Behind a shift V is looked at before it is stored.
    ASSERT_EQ(stored.info.passes, condition < 1e4 ? 2 : 4);
    Tall c(0, 0);
    for (const int devices : {1, 2, 3}) {
      const std::string text = test::devices_text(GetParam(), devices);
      if (text.empty()) continue;
      for (const std::int64_t budget : {6 << 20, 64 << 20}) {
        for (const Policy policy : {Policy::sync, Policy::v1, Policy::opt}) {
          if (policy != Policy::opt && (devices != 2 || budget > 6 << 20)) continue;
          if (devices == 3 && budget > 6 << 20) continue;
          if (test::kSanitized && (devices == 1) != (condition < 1e4)) continue;
          if (test::kSanitized && devices == 2 && policy != Policy::sync) continue;
          TallQr<double> tall({.view = v.view()}, on(text, budget, policy));
          EXPECT_TRUE(executed_as_planned(tall.info().report));
          EXPECT_EQ(tall.info().passes, stored.info.passes - 1 - stored.info.shifts);
          EXPECT_FALSE(tall.info().measured);
          EXPECT_GE(tall.info().orthogonality, test::orthogonality_of(stored.q, 40));
          // Twice where V stays on the device: the others must not have changed it.
          const Applied got = applied(tall, small, b, budget > 6 << 20 ? 2 : 1);
          const std::string where = text + ' ' + std::to_string(budget);
          EXPECT_TRUE(test::same_bits(got.q.data, stored.q.data)) << where << ' ' << condition;
          for (std::int64_t j = 0; j < 40; ++j) {
            for (std::int64_t i = 0; i < 40; ++i) EXPECT_EQ(tall.r()(i, j), stored.r(i, j));
          }
          EXPECT_TRUE(tall.info().measured && tall.info().ok);
          EXPECT_EQ(tall.info().orthogonality, stored.info.orthogonality);
          // The bound of the orthogonality, which was not measured, is in the first.
          EXPECT_NEAR(tall.info().condition / stored.info.condition, 1, 1e-9);
          EXPECT_TRUE(test::same_bits(got.y.data, product(stored.q, small).data)) << where;
          if (c.data.empty()) {
            c = got.c;
            EXPECT_LE(error_of_transposed(stored.q, b, c), 2e-16) << condition;
          }
          EXPECT_TRUE(test::same_bits(got.c.data, c.data)) << where;
        }
      }
    }
    EXPECT_TRUE(test::same_bits(v.data, before.data));
  }
}

/// More triangles than any matrix of these tests asks for, of different elements.
TEST(PassRunner, KeepsTheMatrixAndHasTheBitsOfTheOneThatIsStored) {
  const std::int64_t n = 23;
  const auto triangle = [&](std::uint64_t seed) {
    SquareMatrix<DoubleDouble> r(n);
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < j; ++i)
        r(i, j) = two_sum(0.2 * test::normal(seed, static_cast<std::uint64_t>(i + n * j)), 0x1p-70);
      r(j, j) = two_sum(1 + 0.1 * static_cast<double>(j % 3), 0x1p-60);
    }
    return r;
  };
  std::vector<double> d(n, 1.0);
  d[4] = 4;
  d[7] = 0;  // a column that is taken away
  const Tall v = test::random_tall(30001, n, 90);
  Tall stored = v;
  Tall q(30001, n);
  const QrOptions options = on("host:2", 4 << 20);
  PassRunner<double> storing({.from = {.view = stored.view()}, .to = stored.view()}, options);
  PassRunner<double> keeping(std::make_unique<PlannedPasses<double>>(
                                 TallColumns<double>{.from = {.view = v.view()}}, options),
                             nullptr, KeepMatrix::yes);
  const auto last = rounded_to<double>(triangle(3));
  const std::vector<double> ones(n, 1.0);
  for (PassRunner<double>* runner : {&storing, &keeping}) (void)runner->gram<DoubleDouble>(ones);
  const auto sums = [&](PassRunner<double>& runner) {
    std::vector<SquareMatrix<DoubleDouble>> b;
    b.push_back(runner.solve_gram<DoubleDouble>(triangle(1), d, false));
    b.push_back(runner.solve_gram<DoubleDouble>(triangle(2), ones, false));
    b.push_back(widened(runner.solve_gram<double>(last, ones, true)));
    return b;
  };
  const auto expected = sums(storing);
  const auto got = sums(keeping);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(got[k].values, expected[k].values) << k;
  std::vector<std::int64_t> places;
  for (std::int64_t j = 0; j < n; ++j) places.push_back(n - 1 - j);
  const auto b = widened(keeping.form(q.view(), places, true));
  EXPECT_EQ(b.values, expected[2].values);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < 30001; ++i) ASSERT_EQ(q(i, n - 1 - j), stored(i, j)) << i << j;
  }
  EXPECT_EQ(storing.passes(), 4);
  EXPECT_EQ(keeping.passes(), 5);
  EXPECT_TRUE(executed_as_planned(keeping.take_report()));
}

TEST(TallQr, ReadsVOnceACallAndNotAtAllWhereItStaysOnTheDevice) {
  const Tall v = test::with_condition(25001, 40, 4e11, 5);
  const Tall small = test::random_tall(40, 3, 6);
  const std::int64_t bytes = v.view().size() * 8;
  const std::int64_t of_y = 25001 * 3 * 8;
  const std::int64_t rest = 40 * 40 * 100;  // triangles and sums
  Tall y(25001, 3);
  Tall q(25001, 40);
  TallQr<double> streamed({.view = v.view()}, on("host:1", 6 << 20));
  const Traffic of_factors = streamed.info().report.traffic;
  EXPECT_LE(of_factors.host_to_device_bytes, 2 * bytes + rest);  // κ asks for two
  EXPECT_LE(of_factors.device_to_host_bytes, rest);
  const Traffic of_apply = streamed.apply(small.view(), y.view()).traffic;
  EXPECT_LE(of_apply.host_to_device_bytes, bytes + rest);
  EXPECT_EQ(of_apply.device_to_host_bytes, of_y);
  const Traffic of_write = streamed.write(q.view()).traffic;
  EXPECT_LE(of_write.host_to_device_bytes, bytes + rest);
  EXPECT_GE(of_write.device_to_host_bytes, bytes);
  EXPECT_LE(of_write.device_to_host_bytes, bytes + rest);
  TallQr<double> resident({.view = v.view()}, on("host:1", 64 << 20));
  EXPECT_LE(resident.info().report.traffic.host_to_device_bytes, bytes + rest);
  for (int twice = 0; twice < 2; ++twice) {
    EXPECT_LE(resident.apply(small.view(), y.view()).traffic.host_to_device_bytes, rest);
    EXPECT_LE(resident.write(q.view()).traffic.host_to_device_bytes, rest);
    EXPECT_LE(resident.apply_transposed({.view = y.view()}, Tall(40, 3).view())
                  .traffic.host_to_device_bytes,
              of_y + rest);
  }
}

TEST(TallQr, DropsDependentColumns) {
  Tall v = test::integers_of_rank(300, 9, 9, 60);
  for (std::int64_t i = 0; i < 300; ++i) {
    v(i, 3) = 2 * v(i, 0) - v(i, 1);
    v(i, 6) = 0;
  }
  const Factored<double> stored = factored(v, test::plain());
  TallQr<double> tall({.view = v.view()}, test::plain());
  ASSERT_EQ(tall.cols(), 7);
  EXPECT_EQ(tall.info().dependent_columns, (std::vector<std::int64_t>{3, 6}));
  const Applied got = applied(tall, test::random_tall(7, 2, 8), test::random_tall(300, 130, 9));
  for (std::int64_t j = 0; j < 7; ++j) {
    for (std::int64_t i = 0; i < 300; ++i) EXPECT_EQ(got.q(i, j), stored.q(i, j));
    for (std::int64_t k = 0; k < 9; ++k) EXPECT_EQ(tall.r()(j, k), stored.r(j, k));
  }
  EXPECT_TRUE(test::same_bits(got.y.data, product(got.q, test::random_tall(7, 2, 8)).data));
  EXPECT_LE(error_of_transposed(got.q, test::random_tall(300, 130, 9), got.c), 2e-16);

  const Tall zeros(50, 3);
  TallQr<double> nothing({.view = zeros.view()}, test::plain());
  EXPECT_EQ(nothing.cols(), 0);
  Tall y = test::random_tall(50, 2, 10);
  (void)nothing.apply(Tall(0, 2).view(), y.view());
  for (const double x : y.data) EXPECT_EQ(x, 0);
  (void)nothing.write(Tall(50, 0).view());
  (void)nothing.apply_transposed({.view = y.view()}, Tall(0, 2).view());
  TallQr<double> empty({.view = Tall(4, 0).view()}, test::plain());
  EXPECT_EQ(empty.rows(), 4);
  EXPECT_TRUE(empty.info().ok);
}

TEST(TallQr, OfFloatsAndOfRowsOneAfterTheOther) {
  for (const std::int64_t m : {1, 7, 1024, 1025, 3001}) {
    const std::int64_t n = std::min<std::int64_t>(m, 6);
    const auto v = test::make_matrix<float>(m, n, [&](auto i, auto j) {
      return test::normal(70, static_cast<std::uint64_t>(i + j * m)) * (j == 4 ? 1e-3 : 1);
    });
    const auto rows = test::make_matrix<float>(n, m, [&](auto i, auto j) { return v(j, i); });
    const Factored<float> stored = factored(v, test::plain());
    TallQr<float> made(TallInput<float>{rows.view(), true}, test::plain());
    TallQr<float> tall = std::move(made);
    test::Matrix<float> q(m, n);
    (void)tall.write(q.view());
    EXPECT_TRUE(test::same_bits(q.data, stored.q.data)) << m;
    EXPECT_TRUE(tall.info().ok);
    const auto small =
        test::make_matrix<float>(n, 2, [](auto i, auto k) { return 1 + i + 2.5 * k; });
    test::Matrix<float> y(m, 2);
    (void)tall.apply(small.view(), y.view());
    EXPECT_TRUE(test::same_bits(y.data, product(q, small).data)) << m;
    // Qᵀ·V is R, in columns and in rows one after the other.
    test::Matrix<float> r(n, n);
    test::Matrix<float> same(n, n);
    (void)tall.apply_transposed({.view = v.view()}, r.view());
    (void)tall.apply_transposed(TallInput<float>{rows.view(), true}, same.view());
    EXPECT_TRUE(test::same_bits(r.data, same.data));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i < n; ++i)
        EXPECT_NEAR(r(i, j), tall.r()(i, j), 1e-6 * std::sqrt(static_cast<double>(m)));
    }
  }
}

TEST(TallQr, IsOrthonormalWhateverTheCondition) {
  const std::pair<const char*, Tall> cases[] = {
      {"K10", test::krylov(10)},
      {"K25", test::krylov(25)},
      {"K30", test::krylov(30)},
      {"Hilbert 100 x 100", test::hilbert(100, 100)},
      {"Lauchli 1e-20", test::lauchli(20, [](auto) { return 1e-20; })},
      {"graded to 1e-250", test::graded(500, 20, 1e250)},
      {"glued", test::glued(500, 4, 5, 1e8, 1e8)},
  };
  for (const auto& [name, v] : cases) {
    TallQr<double> tall({.view = v.view()}, test::plain());
    Tall q(v.rows, v.cols);
    Tall r(v.cols, v.cols);
    const double bound = tall.info().orthogonality;
    (void)tall.write(q.view());
    for (std::int64_t j = 0; j < v.cols; ++j)
      std::copy_n(tall.r().column(j), v.cols, r.view().column(j));
    const double promise = 1e-14 * std::sqrt(static_cast<double>(v.cols));
    const double error = test::orthogonality_in_many_digits(q, v.cols);
    EXPECT_LE(error, promise) << name;
    EXPECT_GE(bound, error) << name;
    EXPECT_GE(tall.info().orthogonality, error * (1 - 1e-9)) << name;
    EXPECT_LE(test::residual_of(v, q, r), promise) << name;
    // An orthogonal matrix keeps the columns orthonormal.
    const Tall turn = test::rounded(test::random_orthonormal(v.cols, v.cols, 4));
    Tall y(v.rows, v.cols);
    (void)tall.apply(turn.view(), y.view());
    EXPECT_LE(test::orthogonality_in_many_digits(y, v.cols), 2 * promise) << name;
  }
}

TEST(TallQr, RefusesWhatItCannotDo) {
  const Tall v = test::random_tall(3000, 5, 13);
  const auto kind = [&](const Tall& of, const QrOptions& options) {
    return kind_of([&] { TallQr<double> tall({.view = of.view()}, options); });
  };
  QrOptions other = test::plain();
  other.dependent = DependentColumns::fill;
  EXPECT_EQ(kind(v, other), ErrorKind::misuse);
  other = test::plain();
  other.method = QrMethod::cholqr2;
  EXPECT_EQ(kind(v, other), ErrorKind::misuse);
  EXPECT_EQ(kind(Tall(3, 4), test::plain()), ErrorKind::misuse);
  EXPECT_EQ(kind(v, on("host:1", 20000)), ErrorKind::memory);
  Tall broken = v;
  broken(1234, 3) = std::nan("");
  EXPECT_EQ(kind(broken, test::plain()), ErrorKind::input);

  TallQr<double> tall({.view = v.view()}, test::plain());
  Tall y(3000, 2);
  Tall c(5, 2);
  EXPECT_EQ(kind_of([&] { (void)tall.apply(Tall(4, 2).view(), y.view()); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { (void)tall.apply(c.view(), Tall(3000, 3).view()); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { (void)tall.write(Tall(3000, 4).view()); }), ErrorKind::misuse);
  EXPECT_EQ(kind_of([&] { (void)tall.apply_transposed({.view = v.view()}, c.view()); }),
            ErrorKind::misuse);
  y(77, 1) = HUGE_VAL;
  try {
    (void)tall.apply_transposed({.view = y.view()}, c.view());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find("(77, 1) of B"), std::string::npos) << error.what();
  }
  for (std::int64_t i = 0; i < 3000; ++i) y(i, 1) = 1.7e308;
  EXPECT_EQ(kind_of([&] { (void)tall.apply_transposed({.view = y.view()}, c.view()); }),
            ErrorKind::input);
  // It can be used after that.
  (void)tall.apply_transposed({.view = y.view().block(0, 0, 3000, 1)}, c.view().block(0, 0, 5, 1));
  EXPECT_EQ(c(0, 0), 0);
}

}  // namespace
}  // namespace strata
