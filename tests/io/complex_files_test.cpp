// Files of complex numbers. Oracle: bytes and text put together here after the formats' published
// descriptions; one file as NumPy 1.24 wrote it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>

#include "io/mtx.hpp"
#include "io/npy.hpp"
#include "scratch.hpp"
#include "strata/io.hpp"

namespace strata {
namespace {

using test::expect_error;
using test::Scratch;
using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;

std::string complex_npy_of(const std::string& descr, bool fortran, const std::string& shape,
                           const std::string& data) {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
                     ", 'shape': " + shape + ", }";
  while ((10 + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(text.size() & 0xff);
  bytes += static_cast<char>(text.size() >> 8);
  return bytes + text + data;
}

/// Parts as bytes of either order; this machine is little endian.
template <class R>
std::string packed_parts(const std::vector<std::complex<R>>& values, bool big_endian) {
  std::string bytes;
  for (const std::complex<R>& value : values) {
    for (const R part : {value.real(), value.imag()}) {
      std::string one(sizeof(R), '\0');
      std::memcpy(one.data(), &part, sizeof(R));
      if (big_endian) std::reverse(one.begin(), one.end());
      bytes += one;
    }
  }
  return bytes;
}

/// Element (i, j) of the test matrices.
Complex128 complex_element(std::int64_t i, std::int64_t j) {
  return {0.25 + 10.0 * static_cast<double>(i), -static_cast<double>(j) - 0.5};
}

template <class T>
void expect_complex_read(const std::string& kind) {
  using R = typename T::value_type;
  const Scratch scratch;
  for (const bool fortran : {false, true}) {
    for (const bool big : {false, true}) {
      for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{1, 1},
                                       {3, 1},
                                       {1, 4},
                                       {5, 3},
                                       {70, 65},
                                       {0, 2}}) {
        std::vector<T> values;
        for (std::int64_t k = 0; k < rows * cols; ++k)
          values.push_back(static_cast<T>(fortran ? complex_element(k % rows, k / rows)
                                                  : complex_element(k / cols, k % cols)));
        const std::string shape = "(" + std::to_string(rows) + ", " + std::to_string(cols) + ")";
        const std::string path = scratch.put(
            "a.npy",
            complex_npy_of((big ? ">" : "<") + kind, fortran, shape, packed_parts<R>(values, big)));
        const NpyFile file(path);
        EXPECT_EQ(file.precision(), element_of<T>);
        EXPECT_EQ(file.mapped(), !big);
        file.require_finite();
        const DenseMatrix<Complex128> a = file.to_dense_complex();
        ASSERT_EQ(a.rows, rows);
        ASSERT_EQ(a.cols, cols);
        for (std::int64_t j = 0; j < cols; ++j) {
          for (std::int64_t i = 0; i < rows; ++i) {
            ASSERT_EQ(a.view()(i, j), complex_element(i, j));
            ASSERT_EQ(file.row_major() ? file.transposed_view<T>()(j, i) : file.view<T>()(i, j),
                      static_cast<T>(complex_element(i, j)));
          }
        }
        expect_error(ErrorKind::input, {path, std::string(to_string(element_of<T>)), "real"},
                     [&] { (void)file.to_dense(); });
        expect_error(ErrorKind::input, {path, "real"}, [&] { (void)read_npy(path); });
        expect_error(ErrorKind::misuse, {path, "fp64"}, [&] { (void)file.view<double>(); });
      }
    }
  }
}

TEST(ComplexNpy, IsReadInEitherOrderOfBytesAndOfElements) {
  expect_complex_read<Complex128>("c16");
  expect_complex_read<Complex64>("c8");
}

TEST(ComplexNpy, AsNumpyWritesIt) {
  // np.save of np.array([[1+2j, 3-4j]], dtype='>c8')
  const std::string text = "{'descr': '>c8', 'fortran_order': False, 'shape': (1, 2), }";
  std::string bytes = std::string("\x93NUMPY\x01\x00v\x00", 10) + text;
  bytes += std::string(127 - bytes.size(), ' ') + "\n";
  bytes += std::string("\x3f\x80\x00\x00\x40\x00\x00\x00\x40\x40\x00\x00\xc0\x80\x00\x00", 16);
  const NpyFile file = parse_npy(FileBytes(bytes, "n.npy"));
  EXPECT_EQ(file.to_dense_complex().values, (std::vector<Complex128>{{1, 2}, {3, -4}}));
}

TEST(ComplexNpy, OfRealNumbersIsWidened) {
  const Scratch scratch;
  write_npy(scratch.path("r.npy"), std::vector<float>{1.5F, -2});
  EXPECT_EQ(NpyFile(scratch.path("r.npy")).to_dense_complex().values,
            (std::vector<Complex128>{1.5, -2}));
}

TEST(ComplexNpy, NamesTheFirstElementThatIsNotFiniteInEitherPart) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  for (const bool fortran : {false, true}) {
    for (const auto& [bad, text] : {std::pair<Complex128, const char*>{{1, kNan}, "1+nan"},
                                    {{kNan, 0}, "nan+0i"},
                                    {{2, -INFINITY}, "2-inf"}}) {
      std::vector<Complex128> values(6, {1, 1});
      values[5] = {kNan, kNan};
      values[fortran ? 3 : 4] = bad;  // (1, 1) of a 2 × 3 matrix
      const NpyFile file = parse_npy(FileBytes(
          complex_npy_of("<c16", fortran, "(2, 3)", packed_parts<double>(values, false)), "a.npy"));
      expect_error(ErrorKind::input, {"a.npy", "(1, 1)", text}, [&] { file.require_finite(); });
    }
  }
}

TEST(ComplexNpy, ReadsBackWhatItWrites) {
  const Scratch scratch;
  std::vector<Complex128> wide;
  std::vector<Complex64> narrow;
  for (int k = 0; k < 12; ++k) {
    wide.emplace_back(std::sin(k), 1e-300 * k);
    narrow.emplace_back(static_cast<Complex64>(Complex128(std::cos(k), k)));
  }
  for (const char* name : {"a.npy", "a.npy.gz"}) {
    write_npy(scratch.path(name), MatrixView<const Complex128>{wide.data(), 4, 3, 4});
    const NpyFile a(scratch.path(name));
    EXPECT_EQ(a.precision(), Element::complex128);
    EXPECT_EQ(a.rows(), 4);
    EXPECT_EQ(a.to_dense_complex().values, wide);
    write_npy(scratch.path(name), std::span<const Complex64>(narrow));
    const NpyFile b(scratch.path(name));
    EXPECT_EQ(b.precision(), Element::complex64);
    EXPECT_EQ(b.dimensions(), 1);
    EXPECT_TRUE(std::equal(narrow.begin(), narrow.end(), b.view<Complex64>().data));
  }
  EXPECT_NE(test::slurp(scratch.path("a.npy")).find("'<c8'"), std::string::npos);
  expect_error(ErrorKind::misuse, {"fp64 or fp32"},
               [&] { NpyOutput(scratch.path("o.npy"), Element::complex128, 2, 2); });
}

// ---- Matrix Market

const std::string kMatrixBanner = "%%MatrixMarket matrix ";

std::vector<Complex128> complex_dense_of(const std::string& text) {
  return parse_mtx(text, "a.mtx").to_dense_complex().values;
}

TEST(ComplexMtx, IsReadInEveryForm) {
  const Complex128 i(0, 1);
  const std::vector<Complex128> hermitian{2, 1.0 + 3.0 * i, 1.0 - 3.0 * i, 5};
  EXPECT_EQ(complex_dense_of(kMatrixBanner + "array complex general\n2 2\n2 0\n1 3\n1 -3\n5 0\n"),
            hermitian);
  EXPECT_EQ(complex_dense_of(kMatrixBanner + "array complex hermitian\n2 2\n2 0\n1 3\n5 0\n"),
            hermitian);
  EXPECT_EQ(complex_dense_of(kMatrixBanner +
                             "coordinate complex hermitian\n2 2 3\n1 1 2 0\n2 1 1 3\n2 2 5 0\n"),
            hermitian);
  EXPECT_EQ(complex_dense_of(kMatrixBanner +
                             "coordinate complex hermitian\n2 2 3\n1 1 2 0\n1 2 1 -3\n2 2 5 0\n"),
            hermitian)
      << "in the upper triangle";
  EXPECT_EQ(complex_dense_of(
                kMatrixBanner +
                "coordinate complex general\n2 2 4\n1 1 2 0\n2 1 1 3\n1 2 1 -3\n2 2 5D0 0\n"),
            hermitian);
  const std::vector<Complex128> symmetric{2.0 + i, 1.0 + 3.0 * i, 1.0 + 3.0 * i, 5};
  EXPECT_EQ(complex_dense_of(kMatrixBanner +
                             "coordinate complex symmetric\n2 2 3\n1 1 2 1\n2 1 1 3\n2 2 5 0\n"),
            symmetric);
  EXPECT_EQ(complex_dense_of(kMatrixBanner + "array complex symmetric\n2 2\n2 1\n1 3\n5 0\n"),
            symmetric);
  EXPECT_EQ(complex_dense_of(kMatrixBanner + "coordinate complex skew-symmetric\n2 2 1\n2 1 1 3\n"),
            (std::vector<Complex128>{0, 1.0 + 3.0 * i, -1.0 - 3.0 * i, 0}));
  EXPECT_EQ(
      complex_dense_of(kMatrixBanner + "coordinate complex general\n1 2 2\n1 2 1 1\n1 2 2 -3\n"),
      (std::vector<Complex128>{0, 3.0 - 2.0 * i}))
      << "added up";
  EXPECT_EQ(complex_dense_of(kMatrixBanner + "coordinate real symmetric\n2 2 1\n2 1 7\n"),
            (std::vector<Complex128>{0, 7, 7, 0}));
  EXPECT_EQ(complex_dense_of(kMatrixBanner + "array complex hermitian\n0 0\n"),
            std::vector<Complex128>{});
  EXPECT_EQ(complex_dense_of(kMatrixBanner +
                             "array complex hermitian\n3 3\n1 0\n0 1\n0 2\n2 0\n0 3\n3 0\n"),
            (std::vector<Complex128>{1, i, 2.0 * i, -i, 2, 3.0 * i, -2.0 * i, -3.0 * i, 3}));
  const MatrixMarket m =
      parse_mtx(kMatrixBanner + "coordinate complex hermitian\n2 2 1\n1 2 1 -3\n", "a.mtx");
  EXPECT_TRUE(m.is_complex);
  EXPECT_TRUE(m.hermitian);
  EXPECT_FALSE(m.symmetric);
  EXPECT_EQ(m.imaginary, std::vector<double>{3});
}

TEST(ComplexMtx, RefusesWhatIsMalformed) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"coordinate complex general\n2 2 1\n1 1 1.25\n", "line 3: the imaginary part is missing"},
      {"coordinate complex general\n2 2 1\n1 1\n", "bytes follow"},
      {"array complex general\n1 1\n1 x\n", "'x' is not a number"},
      {"array complex general\n1 1\n1 inf\n", "'inf' is not a finite number"},
      {"array complex general\n1 1\nnan 1\n", "'nan' is not a finite number"},
      {"array complex general\n1 1\n1 2 3\n", "unexpected text '3'"},
      {"coordinate complex hermitian\n2 2 1\n2 2 1 -0.5\n",
       "line 3: the diagonal of a hermitian matrix is real, and entry (2, 2) has an imaginary part "
       "-0.5"},
      {"array complex hermitian\n2 2\n1 0\n1 3\n5 1e-30\n",
       "line 5: the diagonal of a hermitian matrix is real, and entry (2, 2)"},
      {"array complex hermitian\n3 3\n1 0\n0 1\n0 2\n2 4\n0 3\n3 0\n", "entry (2, 2)"},
      {"coordinate complex hermitian\n2 2 2\n2 1 1 1\n1 2 1 -1\n", "holds each pair once"},
      {"coordinate complex skew-symmetric\n2 2 1\n1 1 3 0\n", "no diagonal entry (1, 1)"},
      {"array complex general\n100 100\n1 1\n", "bytes follow"},
  };
  for (const auto& c : cases)
    expect_error(ErrorKind::input, {"bad.mtx", c.says},
                 [&] { (void)parse_mtx(kMatrixBanner + c.text, "bad.mtx"); });
}

TEST(ComplexMtx, IsNotTakenForRealNumbers) {
  const MatrixMarket m = parse_mtx(kMatrixBanner + "array complex general\n1 1\n1 2\n", "a.mtx");
  expect_error(ErrorKind::input, {"complex"}, [&] { (void)m.to_dense(); });
  expect_error(ErrorKind::input, {"complex"}, [&] { (void)m.to_sparse(); });
  const Scratch scratch;
  const std::string path =
      scratch.put("c.mtx", kMatrixBanner + "array complex general\n1 1\n1 2\n");
  expect_error(ErrorKind::input, {path, "complex"}, [&] { (void)read_dense(path); });
}

std::vector<Complex128> complex_triangle_of(const std::string& text, Triangle triangle) {
  MatrixMarket m = parse_mtx(kMatrixBanner + text, "a.mtx");
  m.take_triangle(triangle, "a.mtx");
  EXPECT_TRUE(m.hermitian);
  return m.to_dense_complex().values;
}

TEST(ComplexMtx, ATriangleStandsForAHermitianMatrix) {
  const Complex128 i(0, 1);
  const std::vector<Complex128> of_lower{2, 1.0 + 3.0 * i, 1.0 - 3.0 * i, 5};
  const std::vector<Complex128> of_upper{2, 4.0 + 7.0 * i, 4.0 - 7.0 * i, 5};
  const std::string array = "array complex general\n2 2\n2 0\n1 3\n4 -7\n5 0\n";
  const std::string entries =
      "coordinate complex general\n2 2 4\n1 1 2 0\n2 1 1 3\n1 2 4 -7\n2 2 5 0\n";
  for (const std::string& text : {array, entries}) {
    EXPECT_EQ(complex_triangle_of(text, Triangle::lower), of_lower) << text;
    EXPECT_EQ(complex_triangle_of(text, Triangle::upper), of_upper) << text;
  }
  EXPECT_EQ(complex_triangle_of("coordinate complex general\n2 2 1\n1 2 0 1\n", Triangle::upper),
            (std::vector<Complex128>{0, -i, i, 0}));
  expect_error(ErrorKind::input, {"nothing below"}, [&] {
    (void)complex_triangle_of("coordinate complex general\n2 2 1\n1 2 0 1\n", Triangle::lower);
  });
  expect_error(ErrorKind::numerical, {"complex symmetric"}, [&] {
    (void)complex_triangle_of("coordinate complex symmetric\n2 2 1\n2 1 0 1\n", Triangle::lower);
  });
}

TEST(ComplexMtx, ReadsBackWhatItWrites) {
  const Scratch scratch;
  const std::vector<Complex128> wide{{1, 0.1}, {-2, 0}, {1e-300, 3}, {0, 1.0 / 3}};
  for (const char* name : {"a.mtx", "a.mtx.gz"}) {
    write_mtx(scratch.path(name), MatrixView<const Complex128>{wide.data(), 2, 2, 2});
    EXPECT_EQ(read_mtx(scratch.path(name)).to_dense_complex().values, wide);
  }
  const std::vector<Complex64> narrow{{1, 0.1F}};
  write_dense(scratch.path("f.mtx"), MatrixView<const Complex64>{narrow.data(), 1, 1, 1});
  EXPECT_EQ(test::slurp(scratch.path("f.mtx")),
            "%%MatrixMarket matrix array complex general\n1 1\n1 0.1\n");
}

}  // namespace
}  // namespace strata
