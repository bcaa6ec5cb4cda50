// Which format a dense matrix is in: its name decides.

#include "base/check.hpp"
#include "matrix/array_columns.hpp"
#include "strata/io.hpp"

namespace strata {
namespace {

enum class Format { npy, mtx };

Format format_of(const std::string& path) {
  std::string_view stem = path;
  if (stem.ends_with(".gz")) stem.remove_suffix(3);
  require(stem.ends_with(".npy") || stem.ends_with(".mtx"), ErrorKind::misuse, "io",
          "{}: a matrix or a vector is a file called .npy or .mtx (or these with .gz)", path);
  return stem.ends_with(".npy") ? Format::npy : Format::mtx;
}

template <class T>
void write(const std::string& path, MatrixView<const T> matrix, int dimensions) {
  const bool npy = format_of(path) == Format::npy;
  if (npy && matrix.cols == 1 && dimensions == 1) {
    write_npy(path, std::span(matrix.data, static_cast<std::size_t>(matrix.rows)));
  } else if (npy) {
    write_npy(path, matrix);
  } else {
    write_mtx(path, matrix);
  }
}

}  // namespace

DenseMatrix<double> read_dense(const std::string& path) {
  if (format_of(path) == Format::npy) return read_npy(path);
  const MatrixMarket entries = read_mtx(path);
  require(!entries.is_complex, ErrorKind::input, "mtx",
          "{}: holds complex numbers, and real ones are needed here", path);
  DenseMatrix<double> dense = entries.to_dense();
  if (dense.cols == 1) dense.dimensions = 1;
  return dense;
}

void write_dense(const std::string& path, ConstArrayRef matrix, int dimensions) {
  with_columns(matrix, "io", [&](auto columns) { write(path, columns, dimensions); });
}

}  // namespace strata
