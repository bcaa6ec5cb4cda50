// What qr() does with its arguments before and after a method, and with dependent columns.
//
// Method: a method of its own file orthonormalizes V in place (methods.hpp), where V lies;
// dependent columns, which are zeros then, are dropped or filled.

#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "qr/arguments.hpp"
#include "qr/dependent_columns.hpp"
#include "qr/planned_passes.hpp"
#include "run/device_set.hpp"

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

template <class T>
Orthonormalized orthonormalized(std::unique_ptr<PassExecutor<T>> executor, const QrOptions& options,
                                Wanted wanted = Wanted::q) {
  TallProblem<T> problem(std::move(executor), options, 0, wanted);
  run_method(problem);
  SquareMatrix<DoubleDouble> r = problem.r();
  return {problem.take_info(), std::move(r)};
}

/// V, which lies in its place, becomes Q.
template <class T>
Orthonormalized orthonormalized(TallPlace<T>& v, const QrOptions& options) {
  if (v.cols() > kQrColumnsMax) return run_column_blocks(v, options);
  return orthonormalized<T>(
      v.passes(v.columns(0, v.cols()), options.run, widest_passes<T>(v.rows(), v.cols(), options)),
      options);
}

/// Q takes the place of `q`, which may be that of V.
template <class T>
Orthonormalized orthonormalized(const TallInput<T>& v, MatrixView<T> q, const QrOptions& options) {
  TallPlace<T> place(q);
  if (v.view.data == q.data) return orthonormalized(place, options);
  const TallColumns<T> columns{.from = v, .to = q};
  if (reads_what_it_wrote(options.method, q.cols)) {
    for (std::int64_t j = 0; j < q.cols; ++j) columns.read(0, q.rows, j, 1, q.column(j));
    return orthonormalized(place, options);
  }
  auto passes = std::make_unique<PlannedPasses<T>>(columns, options.run,
                                                   widest_passes<T>(q.rows, q.cols, options));
  // A V that passes through the devices is read once a pass in any case, and need not be stored
  // between them.
  const bool apart =
      options.method == QrMethod::automatic && passes->can_form_streamed(kTrianglesNoted);
  return orthonormalized<T>(std::move(passes), options, apart ? Wanted::q_apart : Wanted::q);
}

/// What the caller gets of a V that was orthonormalized in its place.
template <class T>
QrInfo finished(Orthonormalized outcome, TallPlace<T>& q, MatrixView<T> r,
                const QrOptions& options) {
  QrInfo info = std::move(outcome.info);
  round_triangle(outcome.r, r);
  if (info.dependent_columns.empty()) return info;
  if (options.dependent == DependentColumns::drop) {
    drop_columns(q, r, info.dependent_columns);
  } else {
    fill_columns<T>(q, info, [&] { return orthonormalized(q, options); });
  }
  return info;
}

template <class T>
QrInfo factor_in_place(MatrixView<T> v, MatrixView<T> r, const QrOptions& options) {
  check_arguments(TallInput<T>{.view = v}, r, options);
  const PlacedMatrix placed_v = placed(v, "qr");
  DeviceSite& site = choose_site(options.run.devices, std::span(&placed_v, 1), "qr");
  if (v.cols == 0) return info_of_nothing(options);
  const std::lock_guard lock(site.mutex);
  TallPlace<T> place(v, &site);
  return finished(orthonormalized(place, options), place, r, options);
}

/// Whether V, in host memory, is in that of the one device there is, with no other bound on it.
bool computes_in_host_memory(const Options& options) {
  if (options.device_memory_bytes > 0 || options.policy != Policy::opt) return false;
  const std::vector<DeviceChoice> choices = choose_all_devices(options.devices);
  return choices.size() == 1 && choices[0].indices.size() == 1 &&
         backend_named(choices[0].backend, options.devices).on_host();
}

template <class T>
QrInfo factor(const TallInput<T>& input, MatrixView<T> v, MatrixView<T> r,
              const QrOptions& options) {
  require(input.rows() == v.rows && input.cols() == v.cols, ErrorKind::misuse, "qr",
          "Q of {} by {} does not fit V of {} by {}", v.rows, v.cols, input.rows(), input.cols());
  require(v.size() == 0 || v.data != nullptr, ErrorKind::misuse, "qr", "Q has no data");
  if (!input.by_rows && input.view.data == v.data && computes_in_host_memory(options.run))
    return factor_in_place(v, r, options);
  check_arguments(input, r, options);
  if (v.cols == 0) return info_of_nothing(options);
  TallPlace<T> place(v);
  return finished(orthonormalized(input, v, options), place, r, options);
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

QrInfo qr_in_place(MatrixView<double> v, MatrixView<double> r, const QrOptions& options) {
  return factor_in_place(v, r, options);
}
QrInfo qr_in_place(MatrixView<float> v, MatrixView<float> r, const QrOptions& options) {
  return factor_in_place(v, r, options);
}

}  // namespace strata
