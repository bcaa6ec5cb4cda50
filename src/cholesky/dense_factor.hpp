#pragma once
// What is behind CholeskyFactor: tiles of a power of two times A, which solve(), log_determinant()
// and the file of a factor share.
//
// Contract: T is the element of the factor, A that of the matrix as it is given: the same, or the
// wider or narrower one. A whose elements are near the ends of the range of T is factored as
// 2^(−k)·A, k even; what CholeskyFactor hands out is that of A.

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "cholesky/tile_factor.hpp"
#include "dense/dense_system.hpp"
#include "dense/inverse_norm.hpp"
#include "scalar/complex.hpp"
#include "session/report.hpp"
#include "strata/cholesky.hpp"

namespace strata {

struct CholeskyFactor::State {
  TileFactor tiles;
  FactorInfo info{};
  StoredMatrix matrix{};                   ///< A, where tiles are durable, and k
  std::vector<std::string> directories{};  ///< of storage
  /// As a certificate with A found them; NaN: none was made.
  double scaled_condition = std::numeric_limits<double>::quiet_NaN();
  double log_determinant_error = std::numeric_limits<double>::quiet_NaN();

  /// Sets `info` to what the tiles say of A.
  void note_info();
};

/// Until when tiles in storage are kept.
enum class StoredUntil : std::uint8_t {
  released,  ///< temporary files, gone with the factor; none where host memory holds it
  removed,   ///< durable, by which a run that did not end is gone on with
};

/// Factors the lower triangle of A, which need not outlive the call.
template <class T, class A>
[[nodiscard]] CholeskyFactor factor_lower(MatrixView<const A> a, const CholeskyOptions& options,
                                          StoredUntil until);

/// What tells A, factored in T, from other matrices; never 0.
template <class T, class A>
[[nodiscard]] std::uint64_t hash_of_lower(MatrixView<const A> a);

/// B ← 2^k·A⁻¹·B.
template <class T>
RunReport solve_scaled(CholeskyFactor& factor, MatrixView<T> b) {
  return factor.state().tiles.sweep(Sweep::both, b);
}

/// ‖S⁻¹‖∞ of S = D·A·D, D = diag(scale), by a factor of A, which is complex where W is; `solves`
/// counts what it takes.
template <class W>
[[nodiscard]] double scaled_inverse_norm(CholeskyFactor& factor, const std::vector<double>& scale,
                                         RunReport& solves) {
  std::vector<double> root;
  for (const double d : scale) root.push_back(1 / d);
  return estimate_scaled_inverse_norm(root, [&](MatrixView<W> v) {
    if (element_of_parts(factor.precision()) == Element::fp64) {
      accumulate(solves, solve_scaled(factor, v));
    } else {
      using N = NarrowOf<W>;
      OwnedColumns<N> narrow{v.rows, v.cols};
      copy_columns<W, N>(v, narrow.view());
      accumulate(solves, solve_scaled(factor, narrow.view()));
      copy_columns<N, W>(narrow.view(), v);
    }
  });
}

/// A certificate of no solution: what is known of the factor by its A.
template <class T>
[[nodiscard]] SolveResult certify_factor(CholeskyFactor& factor, MatrixView<const T> a,
                                         GivenTriangles given);

}  // namespace strata
