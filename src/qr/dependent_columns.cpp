#include "qr/dependent_columns.hpp"

#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "qr/backward_error.hpp"

namespace strata {
namespace {

/// The columns that are kept, by number, in the place of the first ones.
template <class T>
std::vector<std::int64_t> move_to_front(TallPlace<T>& q,
                                        const std::vector<std::int64_t>& dependent) {
  std::vector<std::int64_t> kept;
  for (std::int64_t j = 0; j < q.cols(); ++j) {
    if (std::binary_search(dependent.begin(), dependent.end(), j)) continue;
    if (std::ssize(kept) < j) q.move(j, std::ssize(kept));
    kept.push_back(j);
  }
  return kept;
}

}  // namespace

template <class T>
void drop_rows(MatrixView<T> r, const std::vector<std::int64_t>& dependent) {
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < r.rows; ++i) {
    if (std::binary_search(dependent.begin(), dependent.end(), i)) continue;
    for (std::int64_t k = 0; k < r.cols; ++k) r(kept, k) = r(i, k);
    ++kept;
  }
  for (; kept < r.rows; ++kept) {
    for (std::int64_t k = 0; k < r.cols; ++k) r(kept, k) = T(0);
  }
}

template <class T>
void drop_columns(TallPlace<T>& q, MatrixView<T> r, const std::vector<std::int64_t>& dependent) {
  const std::vector<std::int64_t> kept = move_to_front(q, dependent);
  const std::vector<T> zeros(static_cast<std::size_t>(q.rows()));
  for (std::int64_t j = std::ssize(kept); j < q.cols(); ++j) q.put(j, zeros);
  drop_rows(r, dependent);
}

/// Random columns come last, so that those of V are orthonormalized before them; then each goes to
/// its place, the last one first, since none of V comes before the place that it has.
template <class T>
void fill_columns(TallPlace<T>& q, QrInfo& info, const std::function<Orthonormalized()>& again) {
  const std::vector<std::int64_t>& dependent = info.dependent_columns;
  const std::int64_t m = q.rows();
  const std::int64_t n = q.cols();
  const std::vector<std::int64_t> kept = move_to_front(q, dependent);
  std::vector<T> random(static_cast<std::size_t>(m));
  for (std::int64_t j = std::ssize(kept); j < n; ++j) {
    for (std::int64_t i = 0; i < m; ++i)
      random[static_cast<std::size_t>(i)] =
          static_cast<T>(random_uniform(16, static_cast<std::uint64_t>(j * m + i)) - 0.5);
    q.put(j, random);
  }
  const QrInfo completed = again().info;
  info.ok = info.ok && completed.ok && completed.rank == n;
  // Columns that were orthonormal changed by what they were not, and by rounding.
  info.residual += combined_residuals(n) * completed.residual + info.orthogonality;
  info.orthogonality = completed.orthogonality;
  info.passes += completed.passes;
  std::vector<std::vector<T>> filled;
  for (std::int64_t j = std::ssize(kept); j < n; ++j) filled.push_back(q.get(j));
  for (std::int64_t i = std::ssize(kept) - 1; i >= 0; --i) {
    const std::int64_t j = kept[static_cast<std::size_t>(i)];
    if (j != i) q.move(i, j);
  }
  for (std::size_t k = 0; k < filled.size(); ++k) q.put(dependent[k], filled[k]);
}

template void drop_rows(MatrixView<double>, const std::vector<std::int64_t>&);
template void drop_rows(MatrixView<float>, const std::vector<std::int64_t>&);
template void drop_columns(TallPlace<double>&, MatrixView<double>,
                           const std::vector<std::int64_t>&);
template void drop_columns(TallPlace<float>&, MatrixView<float>, const std::vector<std::int64_t>&);
template void fill_columns(TallPlace<double>&, QrInfo&, const std::function<Orthonormalized()>&);
template void fill_columns(TallPlace<float>&, QrInfo&, const std::function<Orthonormalized()>&);

}  // namespace strata
