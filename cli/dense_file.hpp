#pragma once
// Files of dense matrices, real or complex, as the verbs of dense systems take them.
//
// Contract: elements stay where they lie, mapped, where the file allows it. A matrix has to be
// symmetric, in complex numbers Hermitian, up to rounding; what is refused is named by its place in
// the file, counted from 0.

#include <complex>
#include <optional>
#include <string>
#include <vector>

#include "strata/io.hpp"

namespace strata::cli {

/// An open file: its elements as they lie there, mapped where the file allows it, or in memory.
class MatrixFile {
 public:
  /// Any file that read_dense takes, or the same with complex numbers. Throws Error{input} for
  /// numbers that are not finite.
  explicit MatrixFile(std::string path);
  /// Entries that were read; one column of a .mtx is a vector.
  MatrixFile(std::string path, const MatrixMarket& entries);
  /// The identity, which is in no file and takes no memory; stored() has nothing to give of it.
  [[nodiscard]] static MatrixFile identity(std::int64_t n);

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] std::int64_t cols() const noexcept;
  [[nodiscard]] int dimensions() const noexcept;
  /// That of its elements; decimal numbers count as fp64 or complex128.
  [[nodiscard]] Element precision() const noexcept;
  [[nodiscard]] bool is_complex() const noexcept { return strata::is_complex(precision()); }
  /// Whether its numbers, or their parts, are fp32.
  [[nodiscard]] bool is_single() const noexcept {
    return element_of_parts(precision()) == Element::fp32;
  }
  /// Whether stored() is the transpose.
  [[nodiscard]] bool transposed() const noexcept { return file_ && file_->row_major(); }

  /// The elements without a copy, T as precision() says. For a row-major file the transpose: a
  /// symmetric matrix equals it, a Hermitian one is its conjugate.
  template <class T>
  [[nodiscard]] MatrixView<const T> stored() const;

  /// A copy in W, double or std::complex<double>. Throws Error{input} for complex numbers in
  /// double.
  template <class W>
  [[nodiscard]] DenseMatrix<W> dense() const;

 private:
  MatrixFile() = default;
  void take(const MatrixMarket& entries);

  std::string path_;
  std::optional<std::int64_t> identity_;  // its order
  std::optional<NpyFile> file_;
  DenseMatrix<double> real_;
  std::optional<DenseMatrix<std::complex<double>>> complex_;
};

/// Throws Error{misuse} for a matrix that is not square.
void require_square(const MatrixFile& a);

/// Throws Error{misuse} for a matrix that is not square; Error{numerical} naming the first pair of
/// elements that differ by more than rounding, or an imaginary part on the diagonal. With
/// `triangle`, lower or upper, only that triangle counts: Error{input} if all there is stands in
/// the other one. Returns whether elements of A that mirror each other differ at all, where both
/// are taken.
[[nodiscard]] bool check_symmetric(const MatrixFile& a, const std::string& triangle);

/// Throws Error{input} if there is nothing in `triangle`, lower or upper, and something in the
/// other one.
void check_triangle(const MatrixFile& a, const std::string& triangle);

/// Whether all that is not zero beside the diagonal lies on one side of it: a triangular matrix, or
/// a symmetric one of which half was written.
[[nodiscard]] bool holds_one_triangle(const MatrixFile& a);

/// Throws Error{input} naming an element that fp32 cannot hold: too large, or the largest of its
/// column and no normal number, so without its digits. W: double, std::complex<double>.
template <class W>
void require_held_in_fp32(MatrixView<const W> a, const MatrixFile& file);

/// A matrix as a factorization of its lower triangle takes it.
template <class A>
struct FactoredView {
  DenseMatrix<A> copy;  ///< what had to be turned round
  MatrixView<const A> view;
  bool conjugate = false;  ///< it is the conjugate of the file's matrix
};
/// `stored`, or a copy in another precision of what is stored in that form, so that its lower
/// triangle is the one that `triangle` says; `whole`: all of the rows are those of the file.
template <class A>
[[nodiscard]] FactoredView<A> factored_view(MatrixView<const A> stored, const MatrixFile& file,
                                            const std::string& triangle, bool whole);
/// The matrix that the file declares, row by row: what is stored, or a copy of it that is turned
/// round; with `triangle` a copy in which that triangle is mirrored.
template <class A>
[[nodiscard]] FactoredView<A> declared_view(MatrixView<const A> stored, const MatrixFile& file,
                                            const std::string& triangle);

struct CommonOptions;
struct FactorArguments;
/// strata logdet of a Hermitian matrix of complex numbers; the exit status.
int run_dense_logdet(const MatrixFile& file, const FactorArguments& arguments,
                     const std::vector<std::string>& storage, const CommonOptions& common);

}  // namespace strata::cli
