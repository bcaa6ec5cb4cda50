// What qr() does with its arguments before and after a method, and with dependent columns.
//
// Method: a method of its own file orthonormalizes V in place (methods.hpp), where V lies;
// dependent columns, which are zeros then, are dropped or filled.

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "kernels/tall/sketch.hpp"
#include "qr/arguments.hpp"
#include "qr/dependent_columns.hpp"
#include "qr/planned_passes.hpp"
#include "qr/tsqr_passes.hpp"
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

}  // namespace

template <class T>
Orthonormalized orthonormalized(TallPlace<T>& v, const QrOptions& options) {
  if (v.cols() > kQrColumnsMax) return run_column_blocks(v, options);
  return orthonormalized<T>(
      v.passes(ColumnSpan{0, v.cols()}, options, widest_passes<T>(v.rows(), v.cols(), options)),
      options);
}
template Orthonormalized orthonormalized(TallPlace<double>&, const QrOptions&);
template Orthonormalized orthonormalized(TallPlace<float>&, const QrOptions&);

namespace {

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
  auto passes = std::make_unique<PlannedPasses<T>>(columns, options,
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
  TallPlace<T> place(std::vector<PlacedRows<T>>{{.site = &site, .v = v}});
  return finished(orthonormalized(place, options), place, r, options);
}

/// The views, with a valid leading dimension where a part has no rows: there any is accepted.
template <class T>
std::vector<MatrixView<T>> with_leading_dimensions(std::span<const MatrixView<T>> parts) {
  std::vector<MatrixView<T>> views(parts.begin(), parts.end());
  for (MatrixView<T>& view : views)
    if (view.rows == 0) view.ld = std::max<std::int64_t>(view.ld, 1);
  return views;
}

/// All of V, for messages and checks: its elements are not read.
template <class T>
MatrixView<T> whole_of(std::span<const MatrixView<T>> parts) {
  require(!parts.empty(), ErrorKind::misuse, "qr", "V has no parts");
  require(parts.size() <= kPartsMax, ErrorKind::misuse, "qr", "V in {} parts: {} are the most",
          parts.size(), kPartsMax);
  MatrixView<T> whole = parts[0];
  const std::int64_t multiple = qr_part_multiple(whole.cols);
  std::size_t last = parts.size() - 1;  // that has rows
  while (last > 0 && parts[last].rows == 0) --last;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    require(parts[p].cols == whole.cols && parts[p].rows >= 0, ErrorKind::misuse, "qr",
            "part {} of V is {} by {} beside a first one of {} columns", p, parts[p].rows,
            parts[p].cols, whole.cols);
    require(p >= last || parts[p].rows % multiple == 0, ErrorKind::misuse, "qr",
            "part {} of V has {} rows, which is no multiple of {}: qr_part_rows() says where V of "
            "{} columns may be cut",
            p, parts[p].rows, multiple, whole.cols);
    if (p > 0) whole.rows += parts[p].rows;
    if (whole.data == nullptr) whole.data = parts[p].data;
  }
  whole.ld = whole.rows;
  return whole;
}

template <class T>
QrInfo factor_parts(std::span<const MatrixView<T>> given, MatrixView<T> r,
                    const QrOptions& options) {
  const std::vector<MatrixView<T>> parts = with_leading_dimensions(given);
  check_arguments(TallInput<T>{.view = whole_of<T>(parts)}, r, options);
  std::vector<PlacedMatrix> matrices;
  for (const MatrixView<T>& part : parts) matrices.push_back(placed(part, "qr"));
  const std::vector<DeviceSite*> sites = choose_sites(options.run.devices, matrices, "qr");
  if (r.cols == 0) return info_of_nothing(options);
  // In one order, whatever that of the parts: two calls may want the same devices.
  std::vector<DeviceSite*> in_order = sites;
  std::sort(in_order.begin(), in_order.end(), std::less<>());
  std::vector<std::unique_lock<std::mutex>> locks;
  for (DeviceSite* site : in_order) locks.emplace_back(site->mutex);
  std::vector<PlacedRows<T>> placed_rows;
  for (std::size_t p = 0; p < parts.size(); ++p)
    placed_rows.push_back({.site = sites[p], .v = parts[p]});
  TallPlace<T> place(std::move(placed_rows));
  return finished(orthonormalized(place, options), place, r, options);
}

/// Whether V, in host memory, is in that of the one device there is, with no other bound on it.
bool computes_in_host_memory(const RunOptions& options) {
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

QrInfo qr_in_place(std::span<const MatrixView<double>> parts, MatrixView<double> r,
                   const QrOptions& options) {
  return factor_parts(parts, r, options);
}
QrInfo qr_in_place(std::span<const MatrixView<float>> parts, MatrixView<float> r,
                   const QrOptions& options) {
  return factor_parts(parts, r, options);
}

std::int64_t qr_part_multiple(std::int64_t n) {
  const auto of = [](std::int64_t columns) {
    return std::max(
        {gram_block_rows(columns), tsqr_block_rows(columns), sketch_span(sketch_buckets(columns))});
  };
  require(n >= 0, ErrorKind::misuse, "qr", "{} columns are not a matrix", n);
  if (n <= kQrColumnsMax) return of(std::max<std::int64_t>(n, 1));
  // Columns go in blocks, the last of which may be narrow.
  const std::int64_t rest = n % kColumnsOfBlock;
  return rest == 0 ? of(kColumnsOfBlock) : std::max(of(kColumnsOfBlock), of(rest));
}

std::int64_t qr_part_rows(std::int64_t m, std::int64_t n, int parts) {
  require(m >= 0 && parts >= 1, ErrorKind::misuse, "qr", "{} rows cannot be dealt to {} parts", m,
          parts);
  const std::int64_t even = (m + parts - 1) / parts;
  const auto up_to = [even](std::int64_t multiple) {
    return (even + multiple - 1) / multiple * multiple;
  };
  // A coarse multiple makes few blocks, of which a small one costs a GPU as much as some millions
  // of elements.
  constexpr std::int64_t kElements = std::int64_t{1} << 23;
  const std::int64_t longer =
      std::min(even / 32, std::max(even / 300, kElements / std::max<std::int64_t>(n, 1)));
  std::int64_t multiple = qr_part_multiple(n);
  while (2 * multiple <= even && up_to(2 * multiple) - even <= longer) multiple *= 2;
  return up_to(multiple);
}

}  // namespace strata
