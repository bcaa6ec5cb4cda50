#pragma once
// A sparse system in files, and the words of the verbs that take it.
//
// Contract: A.mtx and b.npy lie in a scratch directory; what is compared with is a dense
// factorization in long doubles.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "strata/io.hpp"
#include "tests/cli/program.hpp"
#include "tests/sparse/dense_oracle.hpp"

namespace strata::test {

/// The triangle of a matrix as a symmetric file, digits enough to read the same values back.
inline std::string symmetric_text(const SparseMatrix& a,
                                  const std::string& banner = "%%MatrixMarket") {
  std::ostringstream text;
  text.precision(17);
  text << banner << " matrix coordinate real symmetric\n"
       << a.rows << " " << a.cols << " " << a.entries() << "\n";
  for (std::int64_t i = 0; i < a.rows; ++i)
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      text << i + 1 << " " << a.column[at(k)] + 1 << " " << a.value[at(k)] << "\n";
  return text.str();
}

/// An element of the diagonal that is there.
inline void set_diagonal(SparseMatrix& a, std::int64_t row, double value) {
  for (std::int64_t k = a.start[at(row)]; k < a.start[at(row + 1)]; ++k)
    if (a.column[at(k)] == row) a.value[at(k)] = value;
}

class SparseSystemFiles : public testing::Test {
 protected:
  SparseSystemFiles() { write_system(with_values(grid(7, 6, 5), 3), 3); }
  void write_system(const SparseMatrix& matrix, std::int64_t columns) {
    a = matrix;
    b = random_columns(a.rows, columns, 8);
    (void)scratch.put("A.mtx", symmetric_text(a));
    write_npy(path("b.npy"), std::as_const(b).view());
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch.path(name); }
  [[nodiscard]] Words solve(const std::string& matrix = "A.mtx",
                            const std::string& out = "x.npy") const {
    return Words{"solve", path(matrix), path("b.npy"), "-o", path(out)} + small_device();
  }
  [[nodiscard]] Words verb(const std::string& name, const std::string& matrix,
                           const std::string& out = "") const {
    const Words words = Words{name, path(matrix)} + small_device();
    return out.empty() ? words : words + Words{"-o", path(out)};
  }
  /// Refused, and no file is left or made.
  void refuse(const Words& words, int status, const Words& pieces) const {
    const std::size_t before = scratch.files();
    expect_refused(words, status, pieces);
    EXPECT_EQ(scratch.files(), before);
  }
  /// X in `file` solves (A + shift·I)·X = B.
  void expect_solution(const std::string& file, double shift = 0) const {
    const DenseMatrix<double> x = read_dense(path(file));
    ASSERT_EQ(x.rows, b.rows);
    ASSERT_EQ(x.cols, b.cols);
    const DenseOracle oracle(dense_of(a, shift), a.rows);
    ASSERT_EQ(oracle.bad_column, -1);
    for (std::int64_t c = 0; c < b.cols; ++c) {
      const double* column = b.view().column(c);
      const std::vector<long double> expected =
          oracle.solve(std::vector<long double>(column, column + b.rows));
      for (std::int64_t i = 0; i < b.rows; ++i)
        ASSERT_NEAR(x.view()(i, c), static_cast<double>(expected[at(i)]), 1e-10);
    }
  }

  /// Condition in the 1-norm, exactly.
  [[nodiscard]] double condition() const {
    const std::vector<double> full = dense_of(a);
    const DenseOracle oracle(full, a.rows);
    long double norm = 0;
    long double inverse_norm = 0;
    for (std::int64_t j = 0; j < a.rows; ++j) {
      long double sum = 0;
      long double inverse_sum = 0;
      for (std::int64_t i = 0; i < a.rows; ++i) sum += std::abs(full[at(i + j * a.rows)]);
      for (const long double value : oracle.inverse_column(j)) inverse_sum += std::abs(value);
      norm = std::max(norm, sum);
      inverse_norm = std::max(inverse_norm, inverse_sum);
    }
    return static_cast<double>(norm * inverse_norm);
  }

  Scratch scratch;
  SparseMatrix a;
  DenseMatrix<double> b;
};

}  // namespace strata::test
