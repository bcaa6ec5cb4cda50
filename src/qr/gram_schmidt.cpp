// The methods of Gram and Schmidt, column by column: yardsticks.
//
// What they lose is orthogonality, never the residual: each product with a column of Q that is
// subtracted rounds a partial sum, of v_j and what was subtracted of it before, twice, and a column
// is divided by its length at last. These are told where lengths of columns of Q were measured;
// signs of roundings are taken to be independent (backward_error.hpp).

#include <algorithm>
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

/// The largest ‖v_j − Q·r_j‖/‖v_j‖. lengths: of V; sizes, terms: sums of the magnitudes of the
/// coefficients of each column, and how many there are; longest: column of Q.
double residual_bound(const std::vector<double>& lengths, const std::vector<double>& sizes,
                      const std::vector<double>& terms, double longest, double unit) {
  constexpr double kDeviations = 8;
  double worst = 0;
  for (std::size_t j = 0; j < lengths.size(); ++j) {
    if (!(lengths[j] > 0)) continue;
    const double count = 2 * terms[j] + 4;
    const double most = std::min(count, kDeviations * std::sqrt(count));
    worst = std::max(worst, most * (1 + longest * sizes[j] / lengths[j]));
  }
  return worst * unit;
}

}  // namespace

template <class T>
void run_gram_schmidt(TallProblem<T>& p) {
  using Wide = typename Limits<T>::Wide;
  using Gram = SquareMatrix<DoubleDouble>;
  const Gram first = p.first_gram(true);  // for what cannot be squared, and what is not finite
  std::vector<double> lengths;
  for (std::int64_t j = 0; j < p.n(); ++j)
    lengths.push_back(std::sqrt(std::max(first(j, j).hi, 0.0)));
  std::vector<double> sizes(lengths.size());
  std::vector<double> terms(lengths.size());
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
      sizes[static_cast<std::size_t>(range.j)] += std::abs(static_cast<double>(value));
      terms[static_cast<std::size_t>(range.j)] += 1;
    }
  }
  p.accumulate_factor(r);
  Gram b;
  if (p.options().verify) b = widened(p.runner().template gram<Wide>(p.scales()));
  p.tell_orthogonality(b);
  if (const double away = p.info().orthogonality; std::isfinite(away)) {
    const double longest = std::sqrt(1 + away);
    p.tell_residual(residual_bound(lengths, sizes, terms, longest, Limits<T>::kUnit));
  }
  p.note_step({std::string(to_string(p.options().method)), false, false,
               condition_of(p.r(), p.zero_columns()).estimate},
              b);
}

template void run_gram_schmidt(TallProblem<double>&);
template void run_gram_schmidt(TallProblem<float>&);

}  // namespace strata
