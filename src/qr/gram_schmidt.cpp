// The methods of Gram and Schmidt, column by column: yardsticks.

#include <cmath>

#include "qr/methods.hpp"

namespace strata {
namespace {

/// The steps of a method of Gram and Schmidt's (Golub and Van Loan, Matrix Computations, 5.2).
std::vector<std::uint32_t> column_steps(QrMethod method, std::int64_t n) {
  std::vector<std::uint32_t> steps;
  for (std::int64_t j = 0; j < n; ++j) {
    if (method == QrMethod::mgs) {
      for (std::int64_t i = 0; i < j; ++i) steps.push_back(column_variant(j, i, 1));
    } else {
      for (int k = 0; k < (method == QrMethod::cgs2 ? 2 : 1) && j > 0; ++k)
        steps.push_back(column_variant(j, 0, j));
    }
    steps.push_back(column_variant(j, j, 1) | kNormalize);
  }
  return steps;
}

}  // namespace

template <class T>
void run_gram_schmidt(TallProblem<T>& p) {
  using Wide = typename Limits<T>::Wide;
  using Gram = SquareMatrix<DoubleDouble>;
  (void)p.first_gram(true);  // for what cannot be squared, and what is not finite
  if (p.info().rescaled) (void)p.solve(Gram::identity(p.n()), false, false, false, true);
  const std::vector<std::uint32_t> steps = column_steps(p.options().method, p.n());
  const std::vector<T> coefficients = p.runner().columns(steps);
  Gram r(p.n());
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const ColumnRange range = column_range(steps[s]);
    const T* c = coefficients.data() + static_cast<std::int64_t>(s) * p.n();
    for (std::int64_t i = range.first; i < range.first + range.count; ++i) {
      const bool length = (steps[s] & kNormalize) != 0;
      const T value = length ? std::sqrt(c[i]) : c[i];
      r(i, range.j) = r(i, range.j) + DoubleDouble(static_cast<double>(value));
    }
  }
  p.accumulate_factor(r);
  Gram b;
  if (p.options().verify) b = widened(p.runner().template gram<Wide>(p.scales()));
  p.tell_orthogonality(b);
  p.note_step({std::string(to_string(p.options().method)), false, false,
               condition_of(p.r(), p.zero_columns()).estimate},
              b);
}

template void run_gram_schmidt(TallProblem<double>&);
template void run_gram_schmidt(TallProblem<float>&);

}  // namespace strata
