#include "cli/dense_system.hpp"

#include <algorithm>
#include <iterator>

#include "scalar/complex.hpp"

namespace strata::cli {

void check_shapes(const MatrixFile& a, const MatrixFile& b) {
  require_square(a);
  require(b.rows() == a.rows(), ErrorKind::misuse, "solve", "{} has {} rows and {} is of order {}",
          b.path(), b.rows(), a.path(), a.rows());
}

bool solved_in_fp32(const std::string& asked, const MatrixFile& a, const MatrixFile& b) {
  return asked == "auto" ? a.is_single() && b.is_single() : asked == "fp32";
}

template <class W>
DenseMatrix<W> columns_of(const MatrixFile& rhs, bool conjugated) {
  if constexpr (is_complex_v<W>) {
    DenseMatrix<W> b = rhs.dense<W>();
    if (conjugated)
      std::transform(b.values.begin(), b.values.end(), b.values.begin(), conjugate<W>);
    return b;
  } else {
    if (!rhs.is_complex()) return rhs.dense<W>();
    const auto whole = rhs.dense<std::complex<W>>();
    DenseMatrix<W> b{{}, whole.rows, 2 * whole.cols, whole.dimensions};
    std::transform(whole.values.begin(), whole.values.end(), std::back_inserter(b.values),
                   real_part<std::complex<W>>);
    std::transform(whole.values.begin(), whole.values.end(), std::back_inserter(b.values),
                   imaginary_part<std::complex<W>>);
    return b;
  }
}
template DenseMatrix<double> columns_of(const MatrixFile&, bool);
template DenseMatrix<std::complex<double>> columns_of(const MatrixFile&, bool);

template <class T>
void write_solution(const std::string& output, DenseMatrix<T> x, const MatrixFile& rhs,
                    bool conjugated) {
  if constexpr (is_complex_v<T>) {
    if (conjugated)
      std::transform(x.values.begin(), x.values.end(), x.values.begin(), conjugate<T>);
  } else if (rhs.is_complex()) {
    const std::size_t count = x.values.size() / 2;
    DenseMatrix<std::complex<T>> whole{{}, x.rows, x.cols / 2};
    for (std::size_t k = 0; k < count; ++k)
      whole.values.emplace_back(x.values[k], x.values[count + k]);
    return write_dense(output, std::as_const(whole).view(), rhs.dimensions());
  }
  write_dense(output, std::as_const(x).view(), rhs.dimensions());
}
template void write_solution(const std::string&, DenseMatrix<float>, const MatrixFile&, bool);
template void write_solution(const std::string&, DenseMatrix<double>, const MatrixFile&, bool);
template void write_solution(const std::string&, DenseMatrix<std::complex<float>>,
                             const MatrixFile&, bool);
template void write_solution(const std::string&, DenseMatrix<std::complex<double>>,
                             const MatrixFile&, bool);

}  // namespace strata::cli
