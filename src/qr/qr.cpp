// What qr() does with its arguments before and after a method, and with dependent columns.
//
// Method: a method of its own file orthonormalizes V in place (methods.hpp); dependent columns,
// which are zeros then, are dropped, or filled by orthonormalizing random ones behind the others.

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "base/random.hpp"
#include "kernels/sketch.hpp"
#include "qr/methods.hpp"

namespace strata {
namespace {

template <class T>
void run_method(TallProblem<T>& problem) {
  switch (problem.options().method) {
    case QrMethod::automatic: return run_automatic(problem);
    case QrMethod::cgs:
    case QrMethod::cgs2:
    case QrMethod::mgs: return run_gram_schmidt(problem);
    case QrMethod::tsqr:
    case QrMethod::tsqr_flat: return run_tsqr(problem);
    default: return run_passes(problem);
  }
}

/// Whether a pass of the method writes a block that it reads again.
bool reads_what_it_wrote(QrMethod method, std::int64_t n) {
  return n > kQrColumnsMax || method == QrMethod::cgs || method == QrMethod::cgs2 ||
         method == QrMethod::mgs;
}

/// Q takes the place of `q`, which may be that of V.
template <class T>
Orthonormalized orthonormalized(TallInput<T> v, MatrixView<T> q, const QrOptions& options) {
  if (reads_what_it_wrote(options.method, q.cols) && v.view.data != q.data) {
    const TallColumns<T> columns{.from = v};
    for (std::int64_t j = 0; j < q.cols; ++j) columns.read(0, q.rows, j, 1, q.column(j));
    v = {.view = q};
  }
  if (q.cols > kQrColumnsMax) return run_column_blocks(q, options);
  TallProblem<T> problem(v, q, options);
  run_method(problem);
  SquareMatrix<DoubleDouble> r = problem.r();
  return {problem.take_info(), std::move(r)};
}

// ---- what becomes of dependent columns

/// Moves the columns that are kept to the front, in their order, and rows of R with them.
template <class T>
void drop_columns(MatrixView<T> v, MatrixView<T> r, const std::vector<std::int64_t>& dependent) {
  std::int64_t kept = 0;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    if (std::binary_search(dependent.begin(), dependent.end(), j)) continue;
    if (kept < j) {
      std::copy_n(v.column(j), v.rows, v.column(kept));
      for (std::int64_t k = 0; k < r.cols; ++k) r(kept, k) = r(j, k);
    }
    ++kept;
  }
  for (std::int64_t j = kept; j < v.cols; ++j) {
    std::fill_n(v.column(j), v.rows, T(0));
    for (std::int64_t k = 0; k < r.cols; ++k) r(j, k) = T(0);
  }
}

/// Random columns behind those that are kept are orthonormalized with them, which are so already
/// and change by rounding alone; then each goes to its place.
template <class T>
void fill_columns(MatrixView<T> v, QrInfo& info, const QrOptions& options) {
  const std::vector<std::int64_t>& dependent = info.dependent_columns;
  std::vector<std::int64_t> order;  // of columns in v
  for (std::int64_t j = 0; j < v.cols; ++j) {
    if (!std::binary_search(dependent.begin(), dependent.end(), j)) order.push_back(j);
  }
  std::vector<T> gathered;
  gathered.reserve(static_cast<std::size_t>(v.size()));
  for (const std::int64_t j : order)
    gathered.insert(gathered.end(), v.column(j), v.column(j) + v.rows);
  order.insert(order.end(), dependent.begin(), dependent.end());
  for (std::int64_t i = std::ssize(gathered); i < v.size(); ++i)
    gathered.push_back(static_cast<T>(random_uniform(16, static_cast<std::uint64_t>(i)) - 0.5));
  const MatrixView<T> all{gathered.data(), v.rows, v.cols, v.rows};
  const QrInfo completed = orthonormalized<T>({.view = all}, all, options).info;
  info.ok = info.ok && completed.ok && completed.rank == v.cols;
  info.orthogonality = completed.orthogonality;
  info.passes += completed.passes;
  for (std::int64_t k = 0; k < v.cols; ++k)
    std::copy_n(all.column(k), v.rows, v.column(order[static_cast<std::size_t>(k)]));
}

template <class T>
void check_arguments(MatrixView<T> v, MatrixView<T> r, const QrOptions& options) {
  require(v.rows >= v.cols, ErrorKind::misuse, "qr",
          "a {} by {} matrix has more columns than rows: factor its transpose, or fewer columns",
          v.rows, v.cols);
  require(v.cols <= kQrColumnsMax || options.method == QrMethod::automatic, ErrorKind::misuse, "qr",
          "{} columns are more than the {} that {} orthogonalizes at a time: auto takes more",
          v.cols, kQrColumnsMax, to_string(options.method));
  require(r.rows == v.cols && r.cols == v.cols, ErrorKind::misuse, "qr",
          "R of {} by {} does not fit {} columns", r.rows, r.cols, v.cols);
  require(options.rank_tolerance >= 0 && options.rank_tolerance < 0.1, ErrorKind::misuse, "qr",
          "a rank tolerance of {} is not between 0 and 0.1", options.rank_tolerance);
  require(options.seed <= kSketchSeedMax, ErrorKind::misuse, "qr", "a seed of {} is larger than {}",
          options.seed, kSketchSeedMax);
  require(v.size() == 0 || v.data != nullptr, ErrorKind::misuse, "qr", "V has no data");
}

template <class T>
QrInfo factor(const TallInput<T>& input, MatrixView<T> v, MatrixView<T> r,
              const QrOptions& options) {
  require(input.rows() == v.rows && input.cols() == v.cols, ErrorKind::misuse, "qr",
          "Q of {} by {} does not fit V of {} by {}", v.rows, v.cols, input.rows(), input.cols());
  check_arguments(v, r, options);
  if (v.cols == 0) {
    QrInfo info;
    info.ok = info.measured = true;
    info.condition = 1;
    info.method = options.method;
    return info;
  }
  auto [info, factor] = orthonormalized(input, v, options);
  for (std::int64_t j = 0; j < r.cols; ++j) {
    for (std::int64_t i = 0; i < r.rows; ++i)
      r(i, j) = i <= j ? static_cast<T>(factor(i, j).hi) : T(0);
  }
  if (info.dependent_columns.empty()) return info;
  if (options.dependent == DependentColumns::drop) {
    drop_columns(v, r, info.dependent_columns);
  } else {
    fill_columns(v, info, options);
  }
  return info;
}

}  // namespace

QrInfo qr(MatrixView<double> v, MatrixView<double> r, const QrOptions& options) {
  return factor({.view = v}, v, r, options);
}
QrInfo qr(MatrixView<float> v, MatrixView<float> r, const QrOptions& options) {
  return factor({.view = v}, v, r, options);
}

QrInfo qr(const TallInput<double>& v, MatrixView<double> q, MatrixView<double> r,
          const QrOptions& options) {
  return factor(v, q, r, options);
}
QrInfo qr(const TallInput<float>& v, MatrixView<float> q, MatrixView<float> r,
          const QrOptions& options) {
  return factor(v, q, r, options);
}

}  // namespace strata
