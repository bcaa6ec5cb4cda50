// Q that is not stored, and R of a matrix that is only read.
//
// Method: the automatic one, with solves that are noted and not stored; a pass that needs what they
// make of V does them again on its way (implicit_passes.hpp). Each triangle of an ill-conditioned V
// is kept, and not their product: the rounding of what one makes of V is what the next has seen,
// and a product of condition 1e20 could not be solved by in double-double.

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/check.hpp"
#include "qr/arguments.hpp"
#include "qr/dependent_columns.hpp"
#include "qr/methods.hpp"

namespace strata {
namespace {

template <class T>
void check_kept(const TallInput<T>& v, MatrixView<T> r, const QrOptions& options) {
  check_arguments(v, r, options);
  require(options.method == QrMethod::automatic, ErrorKind::misuse, "qr",
          "{} makes Q to find R: without Q there is auto", to_string(options.method));
  require(v.cols() <= kQrColumnsMax, ErrorKind::misuse, "qr",
          "{} columns are more than the {} of which R is found without Q: qr() takes more",
          v.cols(), kQrColumnsMax);
}

template <class T>
std::unique_ptr<TallProblem<T>> factored(const TallInput<T>& v, const QrOptions& options,
                                         Wanted wanted) {
  std::vector<RowProblem> widest{{.pass = RowPass::apply_gram}};
  if (wanted == Wanted::implicit_q) {
    widest = widest_passes<T>(v.rows(), v.cols(), options);
    widest[0] = {.pass = RowPass::form_gram,
                 .stages = {element_of<typename Limits<T>::Wide>},
                 .beside = v.cols()};
  }
  auto problem = std::make_unique<TallProblem<T>>(
      std::make_unique<PlannedPasses<T>>(TallColumns<T>{.from = v}, options, widest), options, 0,
      wanted);
  run_automatic(*problem);
  return problem;
}

template <class T>
QrInfo triangle_of(const TallInput<T>& v, MatrixView<T> r, const QrOptions& options) {
  check_kept(v, r, options);
  if (v.cols() == 0) return info_of_nothing(options);
  const std::unique_ptr<TallProblem<T>> problem = factored(v, options, Wanted::r);
  round_triangle(problem->r(), r);
  QrInfo info = problem->take_info();
  if (options.dependent == DependentColumns::drop) drop_rows(r, info.dependent_columns);
  return info;
}

}  // namespace

QrInfo qr_r(const TallInput<double>& v, MatrixView<double> r, const QrOptions& options) {
  return triangle_of(v, r, options);
}
QrInfo qr_r(const TallInput<float>& v, MatrixView<float> r, const QrOptions& options) {
  return triangle_of(v, r, options);
}

// ---- TallQr

template <class T>
struct TallQr<T>::State {
  using Wide = typename Limits<T>::Wide;
  static constexpr std::int64_t kBesideMost = 128;  ///< columns of C or B for one reading of V

  State(const TallInput<T>& v, const QrOptions& options)
      : m(v.rows()), n(v.cols()), verify(options.verify), r(static_cast<std::size_t>(n * n)) {
    check_kept(v, all_of_r(), options);
    require(options.dependent == DependentColumns::drop, ErrorKind::misuse, "qr",
            "columns that fill the places of dependent ones are stored or not at all: an implicit "
            "Q drops them");
    info = info_of_nothing(options);
    if (n == 0) return;
    problem = factored(v, options, Wanted::implicit_q);
    round_triangle(problem->r(), all_of_r());
    info = problem->take_info();
    drop_rows(all_of_r(), info.dependent_columns);
    for (std::int64_t j = 0; j < n; ++j) {
      if (!std::binary_search(info.dependent_columns.begin(), info.dependent_columns.end(), j))
        kept.push_back(j);
    }
  }

  [[nodiscard]] std::int64_t rank() const { return std::ssize(kept); }
  [[nodiscard]] MatrixView<T> all_of_r() { return {r.data(), n, n, std::max<std::int64_t>(n, 1)}; }
  /// Where column i of Q is among those of V.
  [[nodiscard]] std::int64_t place(std::int64_t i) const {
    return kept[static_cast<std::size_t>(i)];
  }

  /// Y ← Q·C, of a few columns.
  void apply(MatrixView<const T> c, MatrixView<T> y) {
    std::vector<double> minus(static_cast<std::size_t>(n * c.cols));
    for (std::int64_t k = 0; k < c.cols; ++k) {
      for (std::int64_t i = 0; i < rank(); ++i)
        minus[static_cast<std::size_t>(place(i) + k * n)] = -static_cast<double>(c(i, k));
    }
    problem->runner().apply(minus, y);
  }

  /// C ← QᵀB, of a few columns; `first` is the number of the first of them in messages.
  void apply_transposed(const TallInput<T>& b, MatrixView<T> c, std::int64_t first) {
    const std::vector<Wide> sums = problem->runner().template apply_transposed<Wide>(b);
    for (std::int64_t k = 0; k < c.cols; ++k) {
      for (std::int64_t i = 0; i < rank(); ++i) {
        c(i, k) = static_cast<T>(leading(sums[static_cast<std::size_t>(place(i) + k * n)]));
        if (!std::isfinite(c(i, k))) complain_of(b, k, first + k);
      }
    }
  }

  /// A column of B whose products are not finite.
  [[noreturn]] void complain_of(const TallInput<T>& b, std::int64_t k, std::int64_t number) const {
    for (std::int64_t i = 0; i < m; ++i)
      require(std::isfinite(b(i, k)), ErrorKind::input, "qr", "element ({}, {}) of B is {}", i,
              number, b(i, k));
    fail(ErrorKind::input, "qr", "column {} of B is so long that products with it overflow",
         number);
  }

  std::int64_t m;
  std::int64_t n;
  bool verify;
  std::vector<T> r;
  std::vector<std::int64_t> kept;  ///< the columns of V that are not dependent
  QrInfo info;
  std::unique_ptr<TallProblem<T>> problem;  ///< null where n is 0
};

template <class T>
TallQr<T>::TallQr(const TallInput<T>& v, const QrOptions& options)
    : state_(std::make_unique<State>(v, options)) {}
template <class T>
TallQr<T>::TallQr(TallQr&&) noexcept = default;
template <class T>
TallQr<T>& TallQr<T>::operator=(TallQr&&) noexcept = default;
template <class T>
TallQr<T>::~TallQr() = default;

template <class T>
std::int64_t TallQr<T>::rows() const noexcept {
  return state_->m;
}
template <class T>
std::int64_t TallQr<T>::cols() const noexcept {
  return state_->rank();
}
template <class T>
MatrixView<const T> TallQr<T>::r() const noexcept {
  return {state_->r.data(), state_->rank(), state_->n, std::max<std::int64_t>(state_->n, 1)};
}
template <class T>
const QrInfo& TallQr<T>::info() const noexcept {
  return state_->info;
}

template <class T>
RunReport TallQr<T>::apply(MatrixView<const T> c, MatrixView<T> y) {
  require(c.rows == cols() && y.rows == rows() && y.cols == c.cols, ErrorKind::misuse, "qr",
          "Q of {} by {} times {} by {} is not {} by {}", rows(), cols(), c.rows, c.cols, y.rows,
          y.cols);
  if (y.size() == 0) return {};
  if (cols() == 0) {
    for (std::int64_t k = 0; k < y.cols; ++k) std::fill_n(y.column(k), y.rows, T(0));
    return {};
  }
  for (std::int64_t k = 0; k < c.cols; k += State::kBesideMost) {
    const std::int64_t count = std::min(State::kBesideMost, c.cols - k);
    state_->apply(c.block(0, k, c.rows, count), y.block(0, k, y.rows, count));
  }
  return state_->problem->runner().take_report();
}

template <class T>
RunReport TallQr<T>::apply_transposed(const TallInput<T>& b, MatrixView<T> c) {
  require(c.rows == cols() && b.rows() == rows() && c.cols == b.cols(), ErrorKind::misuse, "qr",
          "the transpose of Q of {} by {} times {} by {} is not {} by {}", rows(), cols(), b.rows(),
          b.cols(), c.rows, c.cols);
  if (c.size() == 0) return {};
  for (std::int64_t k = 0; k < c.cols; k += State::kBesideMost) {
    const std::int64_t count = std::min(State::kBesideMost, c.cols - k);
    const MatrixView<const T> part =
        b.by_rows ? b.view.block(k, 0, count, rows()) : b.view.block(0, k, rows(), count);
    state_->apply_transposed({part, b.by_rows}, c.block(0, k, c.rows, count), k);
  }
  return state_->problem->runner().take_report();
}

template <class T>
RunReport TallQr<T>::write(MatrixView<T> q) {
  require(q.rows == rows() && q.cols == cols(), ErrorKind::misuse, "qr",
          "a place of {} by {} does not fit Q of {} by {}", q.rows, q.cols, rows(), cols());
  if (q.size() == 0) return {};
  State& s = *state_;
  std::vector<std::int64_t> places(static_cast<std::size_t>(s.n), -1);
  for (std::int64_t i = 0; i < s.rank(); ++i) places[static_cast<std::size_t>(s.place(i))] = i;
  const auto b = s.problem->runner().form(q, std::move(places), s.verify);
  if (s.verify) {
    s.info.orthogonality = distance_from_identity(widened(b), s.info.dependent_columns) +
                           s.problem->rounding_of_sums();
    s.info.measured = true;
    s.info.ok = s.info.ok && s.info.orthogonality <= s.problem->promise();
  }
  return s.problem->runner().take_report();
}

template class TallQr<double>;
template class TallQr<float>;

}  // namespace strata
