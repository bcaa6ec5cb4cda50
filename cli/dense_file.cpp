#include "cli/dense_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "cli/app.hpp"
#include "cli/sparse.hpp"
#include "matrix/mirrored_triangles.hpp"
#include "scalar/complex.hpp"

namespace strata::cli {
namespace {

using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;

/// Calls body with a value of the type of the file's elements.
template <class F>
decltype(auto) with_element(const MatrixFile& file, F&& body) {
  switch (file.precision()) {
    case Element::fp32: return body(float{});
    case Element::complex64: return body(Complex64{});
    case Element::complex128: return body(Complex128{});
    default: return body(double{});
  }
}

/// A number in a message.
template <class T>
std::string text_of(const T& x) {
  if constexpr (is_complex_v<T>) {
    return fmt::format("{}{:+}i", x.real(), x.imag());
  } else {
    return fmt::format("{}", static_cast<double>(x));
  }
}

/// The element in row i and column j of the file.
template <class T>
T element_at(const MatrixFile& file, MatrixView<const T> stored, std::int64_t i, std::int64_t j) {
  return file.transposed() ? stored(j, i) : stored(i, j);
}

/// Whether anything but zeros stands below and above the diagonal of the file.
template <class T>
std::array<bool, 2> triangles_held(const MatrixFile& file) {
  const MatrixView<const T> a = file.stored<T>();
  std::array<bool, 2> held{};
  for (std::int64_t j = 0; j < a.cols && !(held[0] && held[1]); ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i)
      if (i != j && a(i, j) != T{0}) held[static_cast<std::size_t>(i < j)] = true;
  }
  if (file.transposed()) std::swap(held[0], held[1]);
  return held;
}

template <class T>
void require_real_diagonal(const MatrixFile& file) {
  const MatrixView<const T> a = file.stored<T>();
  for (std::int64_t i = 0; i < a.rows; ++i) {
    require(
        imaginary_part(a(i, i)) == 0, ErrorKind::numerical, "dense",
        "{}: not Hermitian: element ({}, {}) is {}, counted from 0: a diagonal has no imaginary "
        "part",
        file.path(), i, i, text_of(a(i, i)));
  }
}

/// Elements (i, j) and (j, i), of which the first is not the conjugate of the second.
template <class T>
[[noreturn]] void fail_not_hermitian(const MatrixFile& file, std::int64_t i, std::int64_t j) {
  const MatrixView<const T> a = file.stored<T>();
  const T one = element_at(file, a, i, j);
  const T other = element_at(file, a, j, i);
  const auto [lower, upper] = triangles_held<T>(file);
  std::string why;
  if (lower != upper) {
    why = fmt::format(
        "; all it holds is one triangle: --triangle {} takes that as the Hermitian "
        "matrix",
        lower ? "lower" : "upper");
  } else if (one == other) {
    why = "; equal, as in a complex symmetric matrix, where Cholesky takes conjugates";
  }
  fail(ErrorKind::numerical, "dense",
       "{}: not Hermitian: element ({}, {}) is {} and ({}, {}) is {}, counted from 0{}",
       file.path(), i, j, text_of(one), j, i, text_of(other), why);
}

template <class T>
[[noreturn]] void fail_not_mirrored(const MatrixFile& file, std::int64_t i, std::int64_t j) {
  if (file.transposed()) std::swap(i, j);
  if constexpr (is_complex_v<T>) {
    fail_not_hermitian<T>(file, i, j);
  } else {
    const MatrixView<const T> a = file.stored<T>();
    const auto [lower, upper] = triangles_held<T>(file);
    fail_not_symmetric(file.path(),
                       {true, i, j, static_cast<double>(element_at(file, a, i, j)),
                        static_cast<double>(element_at(file, a, j, i))},
                       lower == upper ? nullptr
                       : lower        ? "lower"
                                      : "upper");
  }
}

/// Fails with the first pair that differs by more than rounding. What rounding is depends on the
/// numbers in the file: a matrix that was made with 24 bits is symmetric to 24 bits. Returns
/// whether any pair differs.
template <class T>
bool differs_from_mirror(const MatrixFile& file) {
  constexpr double kTolerance =
      std::is_same_v<RealOf<T>, float> ? kSymmetryToleranceFp32 : kSymmetryTolerance;
  const MirroredTriangles found = compare_triangles(file.stored<T>(), kTolerance, check_interrupt);
  if (found.row >= 0) fail_not_mirrored<T>(file, found.row, found.column);
  return found.differ;
}

/// --triangle: there has to be something in it if there is in the other one.
template <class T>
void check_triangle_in(const MatrixFile& file, const std::string& triangle) {
  const auto [lower, upper] = triangles_held<T>(file);
  require(triangle == "lower" ? lower || !upper : upper || !lower, ErrorKind::input, "dense",
          "{}: there is nothing {} the diagonal, and something in the other triangle", file.path(),
          triangle == "lower" ? "below" : "above");
}

template <class T>
DenseMatrix<T> transpose_of(MatrixView<const T> a) {
  DenseMatrix<T> copy{std::vector<T>(static_cast<std::size_t>(a.size())), a.cols, a.rows};
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i) copy.view()(j, i) = a(i, j);
  }
  return copy;
}

}  // namespace

MatrixFile::MatrixFile(std::string path) : path_(std::move(path)) {
  if (is_called(path_, ".npy")) {
    file_.emplace(path_);
    file_->require_finite();
  } else if (is_called(path_, ".mtx")) {
    take(read_mtx(path_));
  } else {
    real_ = read_dense(path_);  // says which files it takes
  }
}

MatrixFile::MatrixFile(std::string path, const MatrixMarket& entries) : path_(std::move(path)) {
  take(entries);
}

void MatrixFile::take(const MatrixMarket& entries) {
  if (entries.is_complex) {
    complex_ = entries.to_dense_complex();
    if (complex_->cols == 1) complex_->dimensions = 1;
  } else {
    real_ = entries.to_dense();
    if (real_.cols == 1) real_.dimensions = 1;
  }
}

MatrixFile MatrixFile::identity(std::int64_t n) {
  MatrixFile file;
  file.path_ = "the identity";
  file.identity_ = n;
  return file;
}

std::int64_t MatrixFile::rows() const noexcept {
  if (identity_) return *identity_;
  return file_ ? file_->rows() : complex_ ? complex_->rows : real_.rows;
}
std::int64_t MatrixFile::cols() const noexcept {
  if (identity_) return *identity_;
  return file_ ? file_->cols() : complex_ ? complex_->cols : real_.cols;
}
int MatrixFile::dimensions() const noexcept {
  return file_ ? file_->dimensions() : complex_ ? complex_->dimensions : real_.dimensions;
}
Element MatrixFile::precision() const noexcept {
  return file_ ? file_->precision() : complex_ ? Element::complex128 : Element::fp64;
}

template <class T>
MatrixView<const T> MatrixFile::stored() const {
  if (file_) return transposed() ? file_->transposed_view<T>() : file_->view<T>();
  require(element_of<T> == precision() && !identity_, ErrorKind::misuse, "dense", "{}: holds no {}",
          path_, to_string(element_of<T>));
  if constexpr (std::is_same_v<T, double>) {
    return real_.view();
  } else if constexpr (std::is_same_v<T, Complex128>) {
    return complex_->view();
  } else {
    return {};
  }
}
template MatrixView<const double> MatrixFile::stored() const;
template MatrixView<const float> MatrixFile::stored() const;
template MatrixView<const Complex128> MatrixFile::stored() const;
template MatrixView<const Complex64> MatrixFile::stored() const;

namespace {

template <class W>
DenseMatrix<W> identity_of(std::int64_t n) {
  DenseMatrix<W> identity{std::vector<W>(static_cast<std::size_t>(n * n)), n, n};
  for (std::int64_t i = 0; i < n; ++i) identity.view()(i, i) = 1;
  return identity;
}

}  // namespace

template <>
DenseMatrix<double> MatrixFile::dense() const {
  if (identity_) return identity_of<double>(*identity_);
  require(!is_complex(), ErrorKind::input, "dense",
          "{}: holds complex numbers, and real ones are needed here", path_);
  return file_ ? file_->to_dense() : real_;
}
template <>
DenseMatrix<Complex128> MatrixFile::dense() const {
  if (identity_) return identity_of<Complex128>(*identity_);
  if (file_) return file_->to_dense_complex();
  if (complex_) return *complex_;
  return {std::vector<Complex128>(real_.values.begin(), real_.values.end()), real_.rows, real_.cols,
          real_.dimensions};
}

void require_square(const MatrixFile& a) {
  require(a.rows() == a.cols(), ErrorKind::misuse, "dense", "{}: a {} by {} matrix is not square",
          a.path(), a.rows(), a.cols());
}

bool check_symmetric(const MatrixFile& a, const std::string& triangle) {
  require_square(a);
  if (!triangle.empty()) check_triangle(a, triangle);
  return with_element(a, [&]<class T>(T) {
    require_real_diagonal<T>(a);
    return triangle.empty() && differs_from_mirror<T>(a);
  });
}

void check_triangle(const MatrixFile& a, const std::string& triangle) {
  with_element(a, [&]<class T>(T) { check_triangle_in<T>(a, triangle); });
}

bool holds_one_triangle(const MatrixFile& a) {
  return with_element(a, [&]<class T>(T) {
    const auto [lower, upper] = triangles_held<T>(a);
    return lower != upper;
  });
}

template <class W>
void require_held_in_fp32(MatrixView<const W> a, const MatrixFile& file) {
  using Narrow = std::conditional_t<is_complex_v<W>, Complex64, float>;
  for (std::int64_t j = 0; j < a.cols; ++j) {
    check_interrupt();
    std::int64_t largest = 0;
    for (std::int64_t i = 1; i < a.rows; ++i)
      if (std::abs(a(i, j)) > std::abs(a(largest, j))) largest = i;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      const auto value = static_cast<Narrow>(a(i, j));
      const bool digits =
          i != largest || static_cast<W>(value) == a(i, j) || std::isnormal(std::abs(value));
      require(is_finite(value) && digits, ErrorKind::input, "solve",
              "{}: element ({}, {}) is {}, which {} cannot hold", file.path(), i, j,
              text_of(a(i, j)), to_string(element_of<Narrow>));
    }
  }
}
template void require_held_in_fp32(MatrixView<const double>, const MatrixFile&);
template void require_held_in_fp32(MatrixView<const Complex128>, const MatrixFile&);

template <class A>
FactoredView<A> factored_view(MatrixView<const A> stored, const MatrixFile& file,
                              const std::string& triangle, bool whole) {
  FactoredView<A> out;
  out.view = stored;
  const bool turn =
      triangle.empty() ? whole && file.transposed() : (triangle == "upper") != file.transposed();
  if (turn) {
    out.copy = transpose_of(stored);
    out.view = std::as_const(out.copy).view();
  }
  // What mirrors a Hermitian matrix is its conjugate: of a row-major file what is stored, of any
  // the copy whose lower triangle is the upper one.
  out.conjugate = is_complex_v<A> && turn != file.transposed();
  return out;
}
template FactoredView<double> factored_view(MatrixView<const double>, const MatrixFile&,
                                            const std::string&, bool);
template FactoredView<float> factored_view(MatrixView<const float>, const MatrixFile&,
                                           const std::string&, bool);
template FactoredView<Complex128> factored_view(MatrixView<const Complex128>, const MatrixFile&,
                                                const std::string&, bool);
template FactoredView<Complex64> factored_view(MatrixView<const Complex64>, const MatrixFile&,
                                               const std::string&, bool);

template <class A>
FactoredView<A> declared_view(MatrixView<const A> stored, const MatrixFile& file,
                              const std::string& triangle) {
  FactoredView<A> out;
  out.view = stored;
  if (!file.transposed() && triangle.empty()) return out;
  out.copy = transpose_of(stored);
  if (!file.transposed()) out.copy = transpose_of(std::as_const(out.copy).view());
  const MatrixView<A> a = out.copy.view();
  for (std::int64_t j = 0; j < a.cols && !triangle.empty(); ++j) {
    for (std::int64_t i = j + 1; i < a.rows; ++i) {
      if (triangle == "lower")
        a(j, i) = conjugate<A>(a(i, j));
      else
        a(i, j) = conjugate<A>(a(j, i));
    }
  }
  out.view = std::as_const(out.copy).view();
  return out;
}
template FactoredView<double> declared_view(MatrixView<const double>, const MatrixFile&,
                                            const std::string&);
template FactoredView<float> declared_view(MatrixView<const float>, const MatrixFile&,
                                           const std::string&);
template FactoredView<Complex128> declared_view(MatrixView<const Complex128>, const MatrixFile&,
                                                const std::string&);
template FactoredView<Complex64> declared_view(MatrixView<const Complex64>, const MatrixFile&,
                                               const std::string&);

}  // namespace strata::cli
