#pragma once
// Q, R and what qr() says of them, and the options of a small run.

#include "strata/qr.hpp"
#include "tests/qr/tall_matrices.hpp"

namespace strata::test {

template <class T>
struct Factored {
  Matrix<T> q;
  Matrix<T> r;
  QrInfo info;
};
template <class T>
Factored<T> factored(const Matrix<T>& v, const QrOptions& options) {
  Factored<T> result{v, Matrix<T>(v.cols, v.cols), {}};
  result.info = qr(result.q.view(), result.r.view(), options);
  return result;
}

/// One CPU device with room for everything.
inline QrOptions plain(QrMethod method = QrMethod::automatic) {
  QrOptions options;
  options.method = method;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = 256 << 20;
  options.run.compute_queues = 1;
  return options;
}

}  // namespace strata::test
