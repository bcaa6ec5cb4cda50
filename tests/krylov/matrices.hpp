#pragma once
// Sparse matrices of tests.

#include <cstdint>
#include <vector>

#include "strata/sparse_matrix.hpp"

namespace strata::test {

/// Entries as they come.
struct Entries {
  std::vector<std::int64_t> row, col;
  std::vector<double> value;

  void add(std::int64_t i, std::int64_t j, double v) {
    row.push_back(i);
    col.push_back(j);
    value.push_back(v);
  }
  [[nodiscard]] SparseMatrix matrix(std::int64_t n) const {
    return sparse_from_entries(n, n, row, col, value);
  }
};

/// The seven-point Laplacian on a grid of p × q × r points, and c/2 of a convection along x and y.
inline SparseMatrix grid(std::int64_t p, std::int64_t q, std::int64_t r, double c = 0) {
  Entries a;
  const auto id = [&](std::int64_t x, std::int64_t y, std::int64_t z) {
    return (x * q + y) * r + z;
  };
  for (std::int64_t x = 0; x < p; ++x) {
    for (std::int64_t y = 0; y < q; ++y) {
      for (std::int64_t z = 0; z < r; ++z) {
        const std::int64_t i = id(x, y, z);
        a.add(i, i, 6);
        if (x > 0) a.add(i, id(x - 1, y, z), -1 - c);
        if (x + 1 < p) a.add(i, id(x + 1, y, z), -1 + c);
        if (y > 0) a.add(i, id(x, y - 1, z), -1 - c);
        if (y + 1 < q) a.add(i, id(x, y + 1, z), -1 + c);
        if (z > 0) a.add(i, id(x, y, z - 1), -1);
        if (z + 1 < r) a.add(i, id(x, y, z + 1), -1);
      }
    }
  }
  return a.matrix(p * q * r);
}
inline SparseMatrix laplacian(std::int64_t n) { return grid(n, n, n); }

inline SparseMatrix diagonal(const std::vector<double>& d) {
  Entries a;
  for (std::size_t i = 0; i < d.size(); ++i)
    a.add(static_cast<std::int64_t>(i), static_cast<std::int64_t>(i), d[i]);
  return a.matrix(static_cast<std::int64_t>(d.size()));
}

/// A·(1, …, 1).
inline std::vector<double> row_sums(const SparseMatrix& a) {
  std::vector<double> ones(static_cast<std::size_t>(a.cols), 1.0);
  std::vector<double> b(static_cast<std::size_t>(a.rows));
  multiply(a, ones, b);
  return b;
}

}  // namespace strata::test
