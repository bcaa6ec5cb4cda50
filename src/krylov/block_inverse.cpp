// Inverses of diagonal blocks.
//
// Method: rows, then columns of a block are scaled by powers of two until their largest elements
// are between 1 and 2, so that bad scaling is not taken for singularity; Gauss and Jordan's
// elimination with partial pivoting inverts the block in place. A block is singular where a pivot
// is zero or its condition in the 1-norm, from the inverse itself, is not below 1/ε.

#include "krylov/block_inverse.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/check.hpp"
#include "base/index.hpp"
#include "dense/square_matrix.hpp"
#include "strata/krylov.hpp"

namespace strata {
namespace {

using Block = SquareMatrix<double>;

Block block_of(const SparseMatrix& a, std::int64_t first, std::int64_t n) {
  Block b(n);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t k = a.start[at(first + i)]; k < a.start[at(first + i + 1)]; ++k) {
      const std::int64_t j = a.column[at(k)] - first;
      if (j >= 0 && j < n) b(i, j) = a.value[at(k)];
    }
  }
  return b;
}

/// The power of two that brings the largest element between 1 and 2; 1 for zeros.
double scale_of(double largest) {
  return largest > 0 ? std::ldexp(1.0, -std::ilogb(largest)) : 1.0;
}

double one_norm(const Block& b) {
  double norm = 0;
  for (std::int64_t j = 0; j < b.n; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < b.n; ++i) sum += std::abs(b(i, j));
    norm = sum <= norm ? norm : sum;  // keeps a NaN
  }
  return norm;
}

void swap_rows(Block& b, std::int64_t i, std::int64_t k) {
  for (std::int64_t j = 0; i != k && j < b.n; ++j) std::swap(b(i, j), b(k, j));
}

/// B ← B⁻¹; false where a pivot is zero.
bool invert(Block& b) {
  std::vector<std::int64_t> pivot;
  for (std::int64_t k = 0; k < b.n; ++k) {
    std::int64_t largest = k;
    for (std::int64_t i = k + 1; i < b.n; ++i)
      if (std::abs(b(i, k)) > std::abs(b(largest, k))) largest = i;
    if (!(std::abs(b(largest, k)) > 0)) return false;
    pivot.push_back(largest);
    swap_rows(b, k, largest);
    const double inverse = 1 / b(k, k);
    b(k, k) = 1;
    for (std::int64_t j = 0; j < b.n; ++j) b(k, j) *= inverse;
    for (std::int64_t i = 0; i < b.n; ++i) {
      if (i == k) continue;
      const double factor = b(i, k);
      b(i, k) = 0;
      for (std::int64_t j = 0; j < b.n; ++j) b(i, j) -= factor * b(k, j);
    }
  }
  for (std::int64_t k = b.n; k-- > 0;) {
    const std::int64_t other = pivot[at(k)];
    for (std::int64_t i = 0; other != k && i < b.n; ++i) std::swap(b(i, k), b(i, other));
  }
  return true;
}

/// B ← B⁻¹; false where it is singular.
bool invert_scaled(Block& b) {
  std::vector<double> row(at(b.n), 0.0);
  std::vector<double> col(at(b.n), 0.0);
  for (std::int64_t j = 0; j < b.n; ++j)
    for (std::int64_t i = 0; i < b.n; ++i) row[at(i)] = std::max(row[at(i)], std::abs(b(i, j)));
  std::transform(row.begin(), row.end(), row.begin(), scale_of);
  for (std::int64_t j = 0; j < b.n; ++j) {
    for (std::int64_t i = 0; i < b.n; ++i)
      col[at(j)] = std::max(col[at(j)], std::abs(b(i, j) *= row[at(i)]));
    col[at(j)] = scale_of(col[at(j)]);
    for (std::int64_t i = 0; i < b.n; ++i) b(i, j) *= col[at(j)];
  }
  const double norm = one_norm(b);
  if (!invert(b) || !(norm * one_norm(b) < 1 / std::numeric_limits<double>::epsilon()))
    return false;
  bool finite = true;
  for (std::int64_t j = 0; j < b.n; ++j) {
    for (std::int64_t i = 0; i < b.n; ++i)
      finite = std::isfinite(b(i, j) *= col[at(i)] * row[at(j)]) && finite;
  }
  return finite;
}

}  // namespace

SparseMatrix inverse_of_blocks(const SparseMatrix& a, std::int64_t size, const char* what) {
  require(size >= 1 && size <= kJacobiBlockMax, ErrorKind::misuse, what,
          "blocks of {} rows for block-Jacobi are not between 1 and {}", size, kJacobiBlockMax);
  SparseMatrix inverse;
  inverse.rows = inverse.cols = a.rows;
  for (std::int64_t first = 0; first < a.rows; first += size) {
    const std::int64_t n = std::min(size, a.rows - first);
    Block b = block_of(a, first, n);
    require(invert_scaled(b), ErrorKind::input, what,
            "the diagonal block of rows {} to {} is singular: there is no block-Jacobi "
            "preconditioner with blocks of {}",
            first, first + n - 1, size);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        if (b(i, j) == 0) continue;
        inverse.column.push_back(static_cast<std::int32_t>(first + j));
        inverse.value.push_back(b(i, j));
      }
      inverse.start.push_back(inverse.entries());
    }
  }
  return inverse;
}

}  // namespace strata
