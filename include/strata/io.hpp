#pragma once
// The files that people have: NumPy .npy, Matrix Market .mtx and .csv tables.
//
// Contract:
// * Every reader also takes the file gzipped; compressed data are recognized by their first bytes
//   and unpacked in memory (several members are joined). How much a compressed file unpacks to is
//   bounded by memory only: do not read archives from strangers on a machine that must not run out.
// * A file that is missing, truncated or malformed is Error{input}, never a wrong number; the
//   message names the file, the place and the offending text. Sizes that a file announces are
//   checked against its length before anything is allocated.
// * A writer puts everything into a temporary file in the same folder and renames it when it is
//   complete, so a reader sees the old file or the whole new one. What goes wrong is Error{storage}
//   and leaves nothing behind. A name that ends in .gz is written compressed. A path that is a
//   device or a pipe is written directly.
// * Matrices in memory are column-major, extents are 64-bit, indices are 0-based.

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strata/array_ref.hpp"
#include "strata/element.hpp"
#include "strata/matrix_view.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

/// A matrix that owns its elements: column-major, packed (ld = max(1, rows)).
template <class T>
struct DenseMatrix {
  std::vector<T> values;  ///< rows · cols elements
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  int dimensions = 2;  ///< of the array that was read; 1: a vector, of one column

  [[nodiscard]] MatrixView<T> view() noexcept {
    return {values.data(), rows, cols, rows > 1 ? rows : 1};
  }
  [[nodiscard]] MatrixView<const T> view() const noexcept {
    return {values.data(), rows, cols, rows > 1 ? rows : 1};
  }
};

/// A .npy array of one or two dimensions, of either byte order and either memory order (format
/// versions 1.0, 2.0 and 3.0): fp64, fp32, complex128, complex64, or integers and truth values,
/// which become fp64 and have to be numbers that it holds exactly. Move-only; immutable, so many
/// threads may read it.
///
/// An uncompressed file whose elements are in this machine's byte order is mapped, not read: pages
/// come in when they are touched, and the file may be larger than memory. It must not be shortened
/// while it is open. Anything else is held in memory in native byte order.
/// Source of the format: NumPy Enhancement Proposal 1 and numpy.lib.format.
class NpyFile {
 public:
  /// Throws Error{input} if the file cannot be read or is not such an array, Error{memory}.
  explicit NpyFile(const std::string& path);
  NpyFile(NpyFile&&) noexcept;
  NpyFile& operator=(NpyFile&&) noexcept;
  ~NpyFile();

  [[nodiscard]] int dimensions() const noexcept;  ///< 1 or 2
  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] std::int64_t cols() const noexcept;     ///< 1 for a one-dimensional array
  [[nodiscard]] Element precision() const noexcept;     ///< fp64, fp32, complex128 or complex64
  [[nodiscard]] bool fortran_order() const noexcept;    ///< as the file's header says
  [[nodiscard]] bool row_major() const noexcept;        ///< C order, where that makes a difference
  [[nodiscard]] bool mapped() const noexcept;           ///< the elements lie in the file itself
  [[nodiscard]] const void* elements() const noexcept;  ///< rows · cols native elements, packed
  [[nodiscard]] const std::string& name() const noexcept;  ///< the path it was opened with

  /// The array as a rows × cols view, T double or float or std::complex of one of them. Throws
  /// Error{misuse} if `T` is not the file's precision or the file is row-major.
  template <class T>
  [[nodiscard]] MatrixView<const T> view() const;

  /// The transpose of a row-major array, without a copy: cols × rows, column-major. A symmetric
  /// matrix may be read through it as it is, a Hermitian one as its conjugate; its lower triangle
  /// is then the file's upper one. Throws Error{misuse} if `T` is not the file's precision or the
  /// file is column-major.
  template <class T>
  [[nodiscard]] MatrixView<const T> transposed_view() const;

  /// Reads every element once; throws Error{input} naming the first that is NaN or infinite, of
  /// complex numbers in either part.
  void require_finite() const;

  /// A copy, widened to fp64 and column-major. Throws Error{memory}; Error{input} for complex
  /// numbers.
  [[nodiscard]] DenseMatrix<double> to_dense() const;
  /// The same widened to complex128, of real numbers, too.
  [[nodiscard]] DenseMatrix<std::complex<double>> to_dense_complex() const;

  struct State;  ///< private to the library
  explicit NpyFile(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

/// The array in `path` as an fp64 column-major matrix (one-dimensional: n × 1), all elements
/// finite. Throws Error{input, memory}.
[[nodiscard]] DenseMatrix<double> read_npy(const std::string& path);

/// Writes a two-dimensional array, in the matrix's element, in Fortran order (format version 1.0).
/// Throws Error{storage}.
void write_npy(const std::string& path, ConstArrayRef matrix);
/// Writes a one-dimensional array.
void write_npy(const std::string& path, std::span<const double> vector);
void write_npy(const std::string& path, std::span<const float> vector);
void write_npy(const std::string& path, std::span<const std::complex<double>> vector);
void write_npy(const std::string& path, std::span<const std::complex<float>> vector);

/// A .npy array, fp64 or fp32 in Fortran order, that is filled where it lies: in a mapped file,
/// which may be larger than memory, and which appears under its name when it is complete. Its
/// length is reserved on the disk first. Move-only.
class NpyOutput {
 public:
  /// Zeros. Throws Error{misuse} for a name that ends in .gz, another precision or negative
  /// extents; Error{storage} if there is no room, or what is there is not a regular file.
  NpyOutput(const std::string& path, Element precision, std::int64_t rows, std::int64_t cols);
  NpyOutput(NpyOutput&&) noexcept;
  NpyOutput& operator=(NpyOutput&&) noexcept;
  /// Leaves nothing behind without close().
  ~NpyOutput();

  /// All of the array, T double or float. Throws Error{misuse} if T is not its precision.
  template <class T>
  [[nodiscard]] MatrixView<T> view() const;

  /// Makes the first `cols` columns visible as a file of their own, a matrix whatever their number
  /// is. Throws Error{misuse, storage}. Nothing may follow.
  void close(std::int64_t cols);

  struct State;  ///< private to the library

 private:
  std::unique_ptr<State> state_;
};

/// Which triangle of a square matrix.
enum class Triangle { lower, upper };

/// A Matrix Market file: real, complex, integer or pattern (every entry is 1); coordinate or array;
/// general, symmetric (or, being real, hermitian), hermitian or skew-symmetric. Source of the
/// format: Boisvert, Pozo, Remington, "The Matrix Market exchange formats: initial design", NISTIR
/// 5935, 1996.
struct MatrixMarket {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool symmetric = false;       ///< only the lower triangle is held
  bool skew_symmetric = false;  ///< only the strictly lower triangle is held
  bool hermitian = false;       ///< of complex numbers, only the lower triangle is held
  bool is_array = false;        ///< dense: `row` and `col` are empty
  /// Coordinate: entry k is at (row[k], col[k]), 0-based, in the order of the file, where one
  /// position may come several times. Array: the elements that are held, column by column.
  std::vector<std::int64_t> row;
  std::vector<std::int64_t> col;
  std::vector<double> value;
  std::vector<double>
      imaginary;  ///< of complex numbers, whose real parts are in `value`; else empty
  bool is_complex = false;

  /// Entries that are held.
  [[nodiscard]] std::int64_t entries() const noexcept {
    return static_cast<std::int64_t>(value.size());
  }
  /// The whole matrix: both triangles of a symmetric one, repeated entries summed. Throws
  /// Error{memory}, before it allocates, if rows · cols elements exceed this machine's memory;
  /// Error{input} for complex numbers.
  [[nodiscard]] DenseMatrix<double> to_dense() const;
  /// The same in complex128, of real numbers, too.
  [[nodiscard]] DenseMatrix<std::complex<double>> to_dense_complex() const;
  /// The same as a sparse matrix; of an array the elements that are not zero. Throws Error{misuse}
  /// beyond 2^31 - 1 rows or columns, Error{memory}; Error{input} for complex numbers.
  [[nodiscard]] SparseMatrix to_sparse() const;
  /// Makes this the symmetric matrix, of complex numbers the Hermitian one, that has the diagonal
  /// and this triangle of the one there was; what the other triangle held is gone. `name` stands
  /// for the file in messages. Throws Error{misuse} if it is not square, Error{input} if only the
  /// other triangle holds anything.
  void take_triangle(Triangle triangle, const std::string& name);
};

/// Reads a Matrix Market file, in UTF-8 or UTF-16. A symmetric coordinate file stores each pair of
/// elements once, in either triangle; so does a hermitian one. Throws Error{input} with the line
/// number: a bad header, an index outside the matrix, a value that is not a finite number, or no
/// integer that a double holds where the header says integer. So it does for an imaginary part on
/// the diagonal of a hermitian matrix, and for fewer or more entries than announced. Error{memory}.
[[nodiscard]] MatrixMarket read_mtx(const std::string& path);

/// Writes a dense matrix (array, real or complex, general), digits enough to read the same values
/// back in the matrix's precision. Throws Error{storage}.
void write_mtx(const std::string& path, ConstArrayRef matrix);
/// Writes an n × 1 matrix.
void write_mtx(const std::string& path, std::span<const double> vector);
/// Writes the lower triangle of a symmetric sparse matrix, both of whose triangles are given or the
/// lower one (coordinate, real, symmetric). Throws Error{misuse} for a matrix that is not square,
/// Error{storage}.
void write_symmetric_mtx(const std::string& path, const SparseMatrix& matrix);
/// The same of n rows and so many entries, each of which `fill` puts once: in row i and column j or
/// the other way round, in any order. Throws Error{misuse} if they are more or fewer; what `fill`
/// throws passes through.
using PutEntry = std::function<void(std::int64_t i, std::int64_t j, double value)>;
void write_symmetric_mtx(const std::string& path, std::int64_t n, std::int64_t entries,
                         const std::function<void(const PutEntry&)>& fill);

/// A dense matrix or vector from a .npy or .mtx file (or .npy.gz, .mtx.gz); one column of a .mtx is
/// a vector. Throws Error{misuse} for any other name, Error{input} for complex numbers, else as
/// read_npy and read_mtx.
[[nodiscard]] DenseMatrix<double> read_dense(const std::string& path);
/// Writes what read_dense reads, or a complex one, in the element of the matrix: a matrix whatever
/// the number of its columns is, or one column as a vector, a .npy array of one dimension, where
/// `dimensions` is 1.
void write_dense(const std::string& path, ConstArrayRef matrix, int dimensions = 2);

/// What the fields of a column may be beside numbers.
struct ColumnRules {
  /// Without a value: empty, NA, N/A, #N/A, NaN, null (in any case) or a point; read as NaN.
  bool missing = false;
  /// Dates with or without a time of day, as ISO 8601 has them (2026-11-27, 2026-11-27T12:30:00Z);
  /// read as days since 1970-01-01, 00:00 UTC, and UTC where they name no zone. A column holds
  /// dates or numbers, not both. Refused are numbers all of which are dates without dashes, of more
  /// than one month (20200131, 20200201), since their differences are no days.
  bool dates = false;
};
/// Where an Error{input} comes from that tells of a field without a value.
inline constexpr const char* kMissingField = "missing";

/// A .csv file: one row of column names, then data. Cheap to copy; immutable.
///
/// Fields are separated by commas, semicolons or tabs, whichever the header has, and may be quoted
/// ("" is a quote inside quotes), also behind blanks; lines end in LF or CRLF. Lines that are empty
/// or blank and lines that begin with # are skipped; the last such line above the data is the
/// header if it has as many names as the first row has fields, some of them numbers. Between
/// semicolons and tabs numbers may have decimal commas. Where any field of the file has one, a
/// number with a point is refused, since 1.234 may be 1234 there; so is what may be thousands
/// between tabs (1,234, but not 0,123). UTF-8, its byte order mark ignored, or
/// UTF-16. Source: RFC 4180. Only the columns that are asked for have to hold numbers. Data rows in
/// messages count from 1, below the header, lines from 1, the header included.
class Table {
 public:
  [[nodiscard]] const std::vector<std::string>& names() const noexcept;
  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] bool has(std::string_view name) const noexcept;

  /// One column as numbers, rows() of them. Throws Error{misuse}, with the names there are, if
  /// there is no such column; Error{input}, with row, line, column and text, at a field that is not
  /// what it may be, or if two columns have that name.
  [[nodiscard]] std::vector<double> column(std::string_view name, ColumnRules rules = {}) const;
  /// Whether the first value of a column is a date. Throws as column().
  [[nodiscard]] bool has_dates(std::string_view name) const;
  /// The line of the file, from 1, on which each data row begins. O(bytes of the file).
  [[nodiscard]] std::vector<std::int64_t> lines() const;

  struct State;  ///< private to the library
  explicit Table(std::shared_ptr<const State> state);

 private:
  std::shared_ptr<const State> state_;
};

/// Reads a table and checks its shape. Throws Error{input}: no header, a row with more or fewer
/// fields than the header, an open quote; Error{memory}.
[[nodiscard]] Table read_csv(const std::string& path);

/// A .csv file that is read from the first row to the last, a piece at a time: for tables that one
/// does not want in memory. An uncompressed file is mapped, so that only what is being read has to
/// be there; a compressed one is unpacked in memory as a whole. Move-only.
class TableReader {
 public:
  /// Throws Error{input} if the file cannot be read or has no header.
  explicit TableReader(const std::string& path);
  TableReader(TableReader&&) noexcept;
  TableReader& operator=(TableReader&&) noexcept;
  ~TableReader();

  [[nodiscard]] const std::vector<std::string>& names() const noexcept;
  [[nodiscard]] bool has(std::string_view name) const noexcept;
  [[nodiscard]] bool has_dates(std::string_view name) const;
  /// Begins again at the first row.
  void rewind() noexcept;

  /// These columns of the next `rows` rows, fewer at the end of the file, none behind it; rules for
  /// each column, or for none. Throws as read_csv and Table::column, and what is wrong with later
  /// rows when they are read.
  [[nodiscard]] std::vector<std::vector<double>> next(const std::vector<std::string>& columns,
                                                      std::int64_t rows,
                                                      const std::vector<ColumnRules>& rules = {});

  struct State;  ///< private to the library

 private:
  std::unique_ptr<State> state_;
};

/// A .csv file that is written piece by piece, as write_csv does it: it appears when it is
/// complete.
class TableWriter {
 public:
  /// Throws Error{misuse} without names, Error{storage}.
  TableWriter(const std::string& path, const std::vector<std::string>& names);
  TableWriter(TableWriter&&) noexcept;
  TableWriter& operator=(TableWriter&&) noexcept;
  /// Leaves nothing behind without close().
  ~TableWriter();

  /// The next rows, a vector for each column. Throws Error{misuse} if they do not fit together,
  /// Error{storage}.
  void write(const std::vector<std::vector<double>>& columns);
  /// Makes the file visible. Throws Error{storage}. Nothing may follow.
  void close();

  struct State;  ///< private to the library

 private:
  std::unique_ptr<State> state_;
};

/// Writes columns of equal length, digits enough to read the same values back. A value that is not
/// finite is written as nan or inf, which read_csv's column() refuses. Throws Error{misuse} if
/// names and columns do not fit together, Error{storage}.
void write_csv(const std::string& path, const std::vector<std::string>& names,
               const std::vector<std::vector<double>>& columns);

}  // namespace strata
