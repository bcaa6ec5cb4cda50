#pragma once
// By which of the methods of qr() the vectors of a Krylov method are made orthonormal.
//
// Contract: there is one list, from which gmres(), eigs() and goes_with() take what they accept,
// and Arnoldi what it does: a method that is not on it is refused, and never carried out as
// another.

#include <cstdint>
#include <string>

#include "strata/krylov.hpp"

namespace strata {

/// How a method makes the vectors behind a basis orthonormal.
struct KrylovMethod {
  QrMethod method = QrMethod::automatic;
  bool of_vectors = false;  ///< with s = 1
  bool of_blocks = false;   ///< with s > 1
  /// How blocks are made orthonormal: by the triangle of a Gram matrix, the first of `passes` with
  /// wide sums if `wide`; else column by column.
  bool by_gram = false;
  bool wide = false;
  int passes = 1;
  /// The triangle is that of the eigenvalues of the Gram matrix, not Cholesky's.
  bool by_eigenvalues = false;
};

/// Null of a method that no vectors of a Krylov method are made orthonormal by.
[[nodiscard]] const KrylovMethod* krylov_method(QrMethod method) noexcept;

/// Throws Error{misuse}, naming those that are possible, of a method that does not make blocks of s
/// vectors orthonormal.
void require_krylov_method(QrMethod method, std::int64_t s, const char* where);

/// Those that go with `block` in words, "auto, cholqr or svqr"; classical: of blocks of s vectors.
[[nodiscard]] std::string krylov_method_names(BlockOrthogonalization block, std::int64_t s);

}  // namespace strata
