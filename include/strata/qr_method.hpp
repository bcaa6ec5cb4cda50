#pragma once
// The methods by which columns are made orthonormal, and their names.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

/// How Q is made orthonormal. "Wide" are sums in twice the digits of V: double-double for fp64,
/// fp64 for fp32. A pass reads V once, and from the second on writes it too; Gram and Schmidt's
/// methods read it for every column, or pair of columns.
enum class QrMethod : std::uint8_t {
  /// Any finite matrix to O(ε): wide sums, from 24 columns of fp64 on of a sketch, and as many
  /// passes as its condition asks for.
  automatic,
  cholqr,           ///< Cholesky QR: loses orthogonality like κ²
  cholqr2,          ///< twice: to O(ε) for κ below 1e8 (Yamamoto, Nakatsukasa et al. 2015)
  shifted_cholqr3,  ///< with a shift, then twice (Fukaya, Kannan et al. 2020)
  svqr,             ///< by the singular values of the Gram matrix (Stathopoulos, Wu 2002)
  cholqr_wide,      ///< Cholesky QR with wide sums: loses like κ (Yamazaki, Tomov, Dongarra 2015)
  cholqr_wide_solve,  ///< the same with R and the solve wide too, Q rounded last
  cholqr_wide2,       ///< cholqr_wide, then cholqr
  svqr_wide,          ///< svqr with wide sums
  cgs,                ///< Gram and Schmidt's method, a column with all before it at once
  cgs2,               ///< the same, each column twice
  mgs,                ///< the modified one, a column with each before it in turn
  tsqr,               ///< Householder QR, a binary tree of blocks (Demmel, Grigori et al. 2012)
  tsqr_flat,          ///< the same, one block after the other
  /// The triangle of a random sketch of V, then cholqr: to O(ε) for κ below 1e15 or so. The sketch
  /// is Gaussian (Balabanov 2022), …
  rand_cholqr,
  multi_sketch,  ///< … CountSketch and then Gaussian (Higgins, Szyld, Boman, Yamazaki 2025), …
  mrcqr,         ///< … or a Hadamard transform in single precision (arXiv 2606.18411), …
  mrcqr_fp64,    ///< … in double …
  mrcqr_fp16,    ///< … or half, which bear less ill-conditioned columns
};

/// "auto", "cholqr", …; and back, throwing Error{misuse} with the names there are.
[[nodiscard]] std::string_view to_string(QrMethod method) noexcept;
[[nodiscard]] QrMethod parse_qr_method(const std::string& name);
[[nodiscard]] const std::vector<QrMethod>& qr_methods();

}  // namespace strata
