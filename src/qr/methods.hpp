#pragma once
// The methods of orthogonalization.
//
// Contract: each takes a problem that no pass has touched, orthonormalizes V and sets what info()
// says of ok, orthogonality and measured. T is double or float.

#include "qr/tall_place.hpp"
#include "qr/tall_problem.hpp"

namespace strata {

/// QrMethod::automatic.
template <class T>
void run_automatic(TallProblem<T>& problem);
/// Passes of a list: CholQR and SVQR, once and again.
template <class T>
void run_passes(TallProblem<T>& problem);
template <class T>
void run_gram_schmidt(TallProblem<T>& problem);
template <class T>
void run_tsqr(TallProblem<T>& problem);
/// The same for a V that other passes have read, none written; the residual is measured. Columns
/// that are marked zeros depend on those before them, or with a rank tolerance those that are near.
template <class T>
void run_reflections(TallProblem<T>& problem);

/// Whether the automatic method begins with a sketch of V, m × n; T is its element.
template <class T>
[[nodiscard]] bool begins_with_sketch(std::int64_t m, std::int64_t n, const QrOptions& options);
/// The passes of a method that may need most memory.
template <class T>
[[nodiscard]] std::vector<RowProblem> widest_passes(std::int64_t m, std::int64_t n,
                                                    const QrOptions& options);

/// What became of V, which holds Q: rows of R of dependent columns are zeros, as those columns are.
struct Orthonormalized {
  QrInfo info;
  SquareMatrix<DoubleDouble> r;
};
/// V, which lies in its place, becomes Q by the method of the options.
template <class T>
[[nodiscard]] Orthonormalized orthonormalized(TallPlace<T>& v, const QrOptions& options);

inline constexpr std::int64_t kColumnsOfBlock = 256;
/// More columns than one pass holds, by the automatic method, in blocks of kColumnsOfBlock.
template <class T>
[[nodiscard]] Orthonormalized run_column_blocks(TallPlace<T>& v, const QrOptions& options);

}  // namespace strata
