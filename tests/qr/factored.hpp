#pragma once
// Q, R and what qr() says of them, and the options of a small run.

#include <gtest/gtest.h>

#include "strata/error.hpp"
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

/// Two compute queues on each device, with a budget; bits that CPUs and GPUs share.
inline QrOptions on(const std::string& devices, std::int64_t budget, Policy policy = Policy::opt,
                    QrMethod method = QrMethod::automatic) {
  QrOptions options;
  options.method = method;
  options.run.devices = devices;
  options.run.device_memory_bytes = budget;
  options.run.policy = policy;
  options.run.compute_queues = 2;
  options.wide_sums = WideSums::extraction;
  return options;
}

inline bool executed_as_planned(const RunReport& report) {
  return report.traffic == static_cast<const Traffic&>(report.planned_traffic);
}

/// What f throws.
template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::numerical, "", ""};
}
template <class F>
ErrorKind kind_of(F&& f) {
  return error_of(f).kind();
}

/// One CPU device with room for everything; bits that GPUs share.
inline QrOptions plain(QrMethod method = QrMethod::automatic) {
  QrOptions options;
  options.method = method;
  options.run.devices = "host:1";
  options.run.device_memory_bytes = 256 << 20;
  options.run.compute_queues = 1;
  options.wide_sums = WideSums::extraction;
  return options;
}

/// What least_squares() takes of them.
inline LeastSquaresOptions for_least_squares(const QrOptions& options) {
  return {.wide_sums = options.wide_sums, .run = options.run};
}

}  // namespace strata::test
