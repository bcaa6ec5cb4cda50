#include "qr/arguments.hpp"

#include "base/check.hpp"
#include "kernels/tall/sketch.hpp"

namespace strata {

template <class T>
void check_arguments(const TallInput<T>& v, MatrixView<T> r, const QrOptions& options) {
  require(v.rows() >= v.cols(), ErrorKind::misuse, "qr",
          "a {} by {} matrix has more columns than rows: factor its transpose, or fewer columns",
          v.rows(), v.cols());
  require(v.cols() <= kQrColumnsMax || options.method == QrMethod::automatic, ErrorKind::misuse,
          "qr", "{} columns are more than the {} that {} orthogonalizes at a time: auto takes more",
          v.cols(), kQrColumnsMax, to_string(options.method));
  require(r.rows == v.cols() && r.cols == v.cols(), ErrorKind::misuse, "qr",
          "R of {} by {} does not fit {} columns", r.rows, r.cols, v.cols());
  require(options.rank_tolerance >= 0 && options.rank_tolerance < 0.1, ErrorKind::misuse, "qr",
          "a rank tolerance of {} is not between 0 and 0.1", options.rank_tolerance);
  require(options.seed <= kSketchSeedMax, ErrorKind::misuse, "qr", "a seed of {} is larger than {}",
          options.seed, kSketchSeedMax);
  require(v.view.size() == 0 || v.view.data != nullptr, ErrorKind::misuse, "qr", "V has no data");
}

QrInfo info_of_nothing(const QrOptions& options) {
  QrInfo info;
  info.ok = info.measured = true;
  info.condition = 1;
  info.method = options.method;
  return info;
}

template void check_arguments(const TallInput<double>&, MatrixView<double>, const QrOptions&);
template void check_arguments(const TallInput<float>&, MatrixView<float>, const QrOptions&);

}  // namespace strata
