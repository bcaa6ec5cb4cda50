// GeneralFactor: what is read from a file solves to the bit as what was saved, solutions are what
// elimination in 113 bits says, and no damage goes unnoticed.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "base/index.hpp"
#include "strata/error.hpp"
#include "strata/lu.hpp"
#include "tests/io/scratch.hpp"
#include "tests/lu/complex_matrices.hpp"
#include "tests/support/nan.hpp"

namespace strata {
namespace {

using test::Complex128;
using test::Matrix;
using test::Scratch;

LuOptions saved_on(const std::string& devices = "host:1", std::int64_t memory = 0) {
  LuOptions options;
  options.run.devices = devices;
  options.run.device_memory_bytes = memory;
  options.panel = 16;
  return options;
}

Matrix<double> several_columns(std::int64_t n, std::int64_t columns) {
  return test::make_matrix<double>(n, columns,
                                   [](auto i, auto j) { return test::signed_uniform(77, i, j); });
}

double forward_error(const Matrix<double>& a, const Matrix<double>& b, const Matrix<double>& x,
                     std::int64_t j = 0) {
  const std::vector<double> column(b.view().column(j), b.view().column(j) + b.rows);
  const std::vector<double> mine(x.view().column(j), x.view().column(j) + x.rows);
  return test::wide_errors(a.data, column, mine).forward;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_error(ErrorKind kind, const std::string& piece, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "no error with " << piece;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(piece), std::string::npos) << error.what();
  }
}

TEST(GeneralFactor, ComesBackAsItWas) {
  const Scratch scratch;
  for (const Element precision : {Element::fp64, Element::fp32}) {
    for (const std::int64_t n : {0, 1, 15, 16, 53}) {
      const Matrix<double> a = test::random_general(n, 3);
      const Matrix<double> b = several_columns(n, 3);
      GeneralFactor made = factor_general(a.view(), precision, saved_on());
      const std::string folder =
          scratch.path("of" + std::to_string(n) + std::string(to_string(precision)));
      EXPECT_FALSE(GeneralFactor::is_at(folder));
      made.save(folder);
      EXPECT_TRUE(GeneralFactor::is_at(folder));
      Matrix<double> x(n, 3);
      Matrix<double> certified(n, 3);
      (void)made.solve(b.view(), x.view());
      const GeneralSolveResult expected = made.solve(a.view(), b.view(), certified.view());
      for (const auto& [devices, memory] :
           {std::pair<const char*, std::int64_t>{"host:1", 0}, {"host:2", 0}, {"host:1", 40000}}) {
        GeneralFactor read = GeneralFactor::open(folder, saved_on(devices, memory).run);
        EXPECT_EQ(read.n(), n);
        EXPECT_EQ(read.precision(), precision);
        EXPECT_EQ(read.info().growth, made.info().growth);
        EXPECT_EQ(read.info().determinant.log(), made.info().determinant.log());
        EXPECT_EQ(read.info().determinant.sign, made.info().determinant.sign);
        Matrix<double> again(n, 3);
        (void)read.solve(b.view(), again.view());
        EXPECT_EQ(again.data, x.data) << n << ' ' << devices;
        const GeneralSolveResult result = read.solve(a.view(), b.view(), again.view());
        EXPECT_EQ(again.data, certified.data) << n << ' ' << devices;
        EXPECT_EQ(result.certificate.forward_error, expected.certificate.forward_error);
        EXPECT_TRUE(std::isnan(
            GeneralFactor::open(folder, saved_on(devices, memory).run).scaled_condition()));
        read.save(scratch.path("certified"));
        const GeneralFactor later = GeneralFactor::open(scratch.path("certified"), saved_on().run);
        EXPECT_EQ(later.scaled_condition(), expected.certificate.scaled_condition);
        EXPECT_EQ(later.log_determinant_error(), expected.log_determinant_error);
        for (std::int64_t j = 0; j < 3 && n > 0; ++j)
          EXPECT_LE(forward_error(a, b, again, j), result.certificate.forward_error) << n;
        EXPECT_LE(result.certificate.forward_error, 1e-6) << n;
        EXPECT_LE(result.certificate.backward_error, 4 * 0x1p-52) << n;
        // Any panel is the file's.
        EXPECT_EQ(read.report().tile, 16);
      }
      GeneralFactor same = factor_general(a.view(), precision, saved_on("host:2"));
      same.save(scratch.path("same"));
      EXPECT_EQ(bytes_of(scratch.path("same/factor")), bytes_of(folder + "/factor"));
    }
  }
}

TEST(GeneralFactor, OfComplexNumbers) {
  const Scratch scratch;
  for (const Element precision : {Element::fp64, Element::complex64}) {
    const Matrix<Complex128> a = test::random_complex(37, 37, 3);
    const Matrix<Complex128> b = test::random_complex(37, 2, 4);
    GeneralFactor made = factor_general(a.view(), precision, saved_on());
    made.save(scratch.path("Z"));
    GeneralFactor read = GeneralFactor::open(scratch.path("Z"), saved_on().run);
    EXPECT_EQ(read.precision(),
              precision == Element::fp64 ? Element::complex128 : Element::complex64);
    EXPECT_EQ(read.info().determinant.phase, made.info().determinant.phase);
    Matrix<Complex128> x(37, 2);
    const GeneralSolveResult result = read.solve(a.view(), b.view(), x.view());
    for (const std::int64_t j : {0, 1})
      EXPECT_LE(test::complex_errors(a, b, x, j).forward, result.certificate.forward_error);
    EXPECT_LE(result.certificate.forward_error, 1e-6);
    Matrix<double> real(37, 1);
    expect_error(ErrorKind::misuse, "complex numbers cannot solve for real ones",
                 [&] { (void)read.solve(several_columns(37, 1).view(), real.view()); });
  }
}

// One in fp32 does not fall back: it says what it does not reach.
TEST(GeneralFactor, InFp32IsRefinedAsFarAsItGoes) {
  for (int digits = 2; digits <= 16; digits += 2) {
    const Matrix<double> a = test::matrix_of_condition(40, std::pow(10.0, digits), 3);
    const Matrix<double> b = several_columns(40, 1);
    GeneralFactor factor = factor_general(a.view(), Element::fp32, saved_on());
    Matrix<double> x(40, 1);
    const GeneralSolveResult result = factor.solve(a.view(), b.view(), x.view());
    EXPECT_EQ(result.factor_precision, Element::fp32);
    EXPECT_LE(forward_error(a, b, x), result.certificate.forward_error) << digits;
    if (digits <= 8) {
      EXPECT_EQ(result.fallback, "") << digits;
      EXPECT_LE(result.certificate.forward_error, 1e-6) << digits;
    }
    if (digits >= 16) {
      EXPECT_NE(result.fallback, "") << digits;
    }
  }
}

TEST(GeneralFactor, OfAnotherMatrixKnowsNoDigit) {
  for (const Element precision : {Element::fp64, Element::fp32}) {
    const Matrix<double> a = test::random_general(40, 3);
    const Matrix<double> other = test::random_general(40, 8);
    const Matrix<double> b = several_columns(40, 1);
    GeneralFactor factor = factor_general(a.view(), precision, saved_on());
    Matrix<double> x(40, 1);
    const GeneralSolveResult result = factor.solve(other.view(), b.view(), x.view());
    EXPECT_LE(forward_error(other, b, x), result.certificate.forward_error);
    EXPECT_GT(result.certificate.forward_error, 1e-6);
  }
}

TEST(GeneralFactor, OfAnyRange) {
  const Scratch scratch;
  const Matrix<double> plain = test::random_general(24, 3);
  for (const double scale : {1e300, 1e-240, 1e60}) {
    for (const Element precision : {Element::fp64, Element::fp32}) {
      const Matrix<double> a = test::make_matrix<double>(24, 24, [&](auto i, auto j) {
        return plain(i, j) * scale * (i == 3 ? 1e-30 : 1) * (j == 5 ? 1e-20 : 1);
      });
      const Matrix<double> b = several_columns(24, 1);
      factor_general(a.view(), precision, saved_on()).save(scratch.path("F"));
      GeneralFactor factor = GeneralFactor::open(scratch.path("F"), saved_on().run);
      Matrix<double> x(24, 1);
      (void)factor.solve(b.view(), x.view());
      EXPECT_LE(forward_error(a, b, x), precision == Element::fp64 ? 1e-12 : 1e-3) << scale;
      const GeneralSolveResult result = factor.solve(a.view(), b.view(), x.view());
      EXPECT_LE(forward_error(a, b, x), result.certificate.forward_error) << scale;
      EXPECT_LE(result.certificate.forward_error, 1e-6) << scale;
      const test::WideDeterminant det = test::wide_determinant(plain.data, 24);
      EXPECT_NEAR(factor.info().determinant.log(),
                  det.log + 24 * std::log(scale) - 50 * std::log(10.0),
                  precision == Element::fp64 ? 1e-9 : 1e-2);
    }
  }
}

TEST(GeneralFactor, OfASingularMatrixIsNone) {
  const Scratch scratch;
  for (const double bad : {0.0, test::kNan}) {
    Matrix<double> a = test::random_general(20, 9);
    for (std::int64_t i = 0; i < 20; ++i) a(i, 12) = bad;
    GeneralFactor factor = factor_general(a.view(), Element::fp64, saved_on());
    EXPECT_FALSE(factor.info().ok);
    Matrix<double> x(20, 1);
    expect_error(ErrorKind::misuse, "column 12", [&] { factor.save(scratch.path("F")); });
    expect_error(ErrorKind::misuse, "column 12",
                 [&] { (void)factor.solve(several_columns(20, 1).view(), x.view()); });
    EXPECT_FALSE(GeneralFactor::is_at(scratch.path("F")));
    EXPECT_EQ(scratch.files(), 0U);
  }
}

TEST(GeneralFactor, ShapesThatDoNotFit) {
  const Matrix<double> a = test::random_general(20, 9);
  GeneralFactor factor = factor_general(a.view(), Element::fp64, saved_on());
  Matrix<double> x(20, 1);
  Matrix<double> two(20, 2);
  expect_error(ErrorKind::misuse, "order 20",
               [&] { (void)factor.solve(several_columns(19, 1).view(), x.view()); });
  expect_error(ErrorKind::misuse, "order 20",
               [&] { (void)factor.solve(several_columns(20, 1).view(), two.view()); });
  expect_error(ErrorKind::misuse, "order 20", [&] {
    (void)factor.solve(test::random_general(19, 9).view(), several_columns(20, 1).view(), x.view());
  });
  expect_error(ErrorKind::misuse, "not square",
               [&] { (void)factor_general(Matrix<double>(3, 4).view()); });
  expect_error(ErrorKind::misuse, "fp16", [&] { (void)factor_general(a.view(), Element::fp16); });
}

TEST(GeneralFactor, NoDamageGoesUnnoticed) {
  const Scratch scratch;
  const Matrix<double> a = test::random_general(20, 9);
  factor_general(a.view(), Element::fp64, saved_on()).save(scratch.path("F"));
  const std::string path = scratch.path("F/factor");
  const std::string whole = bytes_of(path);
  const auto open = [&] { (void)GeneralFactor::open(scratch.path("F"), saved_on().run); };
  for (std::size_t k = 0; k < whole.size(); k += k < 400 ? 1 : 37) {
    for (const int bit : {0, 7}) {
      std::string damaged = whole;
      damaged[k] = static_cast<char>(damaged[k] ^ (1 << bit));
      (void)scratch.put("F/factor", damaged);
      expect_error(ErrorKind::input, "factor", open);
    }
  }
  for (std::size_t length = 0; length < whole.size(); length += length < 300 ? 1 : 101) {
    (void)scratch.put("F/factor", whole.substr(0, length));
    expect_error(ErrorKind::input, "factor", open);
  }
  (void)scratch.put("F/factor", whole + "x");
  expect_error(ErrorKind::input, "factor", open);
  (void)scratch.put("F/factor", "strata general factor 3\n" + whole.substr(24));
  expect_error(ErrorKind::input, "another version", open);
  EXPECT_TRUE(GeneralFactor::is_at(scratch.path("F")));
  (void)scratch.put("F/factor", "strata factor 1\n");
  EXPECT_FALSE(GeneralFactor::is_at(scratch.path("F")));
  expect_error(ErrorKind::input, "no general factor", open);
  (void)scratch.put("F/factor", whole);
  EXPECT_NO_THROW(open());
}

}  // namespace
}  // namespace strata
