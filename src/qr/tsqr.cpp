// TSQR: Householder QR of blocks of rows, and of their triangles up a tree.
//
// Method: tsqr_passes.hpp. Q is orthonormal to rounding for any V, with two readings and one
// writing of it. Why it is not the automatic method: a column takes several passes over a block in
// fast memory, one after the other, where a Gram matrix takes one; and R says of dependent columns
// no more than rounding left of them.

#include <cmath>
#include <limits>

#include "qr/methods.hpp"
#include "qr/tsqr_passes.hpp"

namespace strata {
namespace {

template <class T>
void conclude(TallProblem<T>& p) {
  using Wide = typename Limits<T>::Wide;
  const auto columns = static_cast<double>(p.n());
  p.info().measured = p.options().verify;
  // Unmeasured: n reflections of a few roundings each, once for every level of the tree (Higham,
  // Accuracy and Stability, 19.3), and at most log₂(m/n) + 2 levels of panels within blocks.
  const auto blocks = static_cast<double>(triangles_of(p.m(), p.n()) + 1) / 2;
  const double levels = 2 + std::log2(static_cast<double>(p.m()) / columns) +
                        (p.options().method == QrMethod::tsqr_flat ? blocks : 0);
  p.info().orthogonality =
      p.options().verify
          ? distance_from_identity(widened(p.runner().template gram<Wide>(p.scales())), {})
          : 8 * columns * levels * Limits<double>::kUnit + 2.1 * columns * Limits<T>::kUnit;
  p.info().ok =
      !p.options().verify || p.info().orthogonality <= Limits<T>::kPromise * std::sqrt(columns);
  QrStep step{std::string(to_string(p.options().method)), false, false,
              condition_of(p.r(), {}).estimate};
  if (p.info().measured) step.orthogonality = p.info().orthogonality;
  p.note_step(std::move(step), {});
}

}  // namespace

template <class T>
void run_tsqr(TallProblem<T>& p) {
  using Gram = SquareMatrix<DoubleDouble>;
  const TreeShape shape =
      p.options().method == QrMethod::tsqr ? TreeShape::binary : TreeShape::flat;
  const SquareMatrix<double> top = p.runner().triangle(shape);
  Gram r(p.n());
  Gram signs = Gram::identity(p.n());
  SquareMatrix<double> c = SquareMatrix<double>::identity(p.n());
  for (std::int64_t j = 0; j < p.n(); ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      const double x = top(i, j);
      // What is not finite in V is not in R either; V is as it was.
      if (!(std::abs(x) <= static_cast<double>(std::numeric_limits<T>::max())))
        p.complain_of_elements_or_length(j);
      r(i, j) = DoubleDouble(x);
    }
    if (r(j, j).hi < 0) {
      signs(j, j) = DoubleDouble(-1.0);
      c(j, j) = -1;
    }
  }
  p.runner().orthogonal(c, shape, !p.options().verify);
  p.accumulate_factor(upper_product(signs, r));
  conclude(p);
}

template void run_tsqr(TallProblem<double>&);
template void run_tsqr(TallProblem<float>&);

}  // namespace strata
