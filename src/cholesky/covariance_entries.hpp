#pragma once
// CovarianceEntries: small blocks of a covariance, in host memory.
//
// Contract: for estimates that look at few entries. Equal inputs give equal bits on any machine
// with the same build, whatever devices factor the matrix. Works in the calling thread's stead on
// one host queue. Not thread-safe.

#include <cstdint>
#include <memory>

#include "device/device.hpp"
#include "kernels/covariance/covariance.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

class CovarianceEntries {
 public:
  explicit CovarianceEntries(const CovarianceParameters& parameters);

  /// OUT ← c(p_i, q_j), p and q n × d coordinates, numbered from `row` and `col` on: with
  /// same_points the nugget is added where the two numbers are the same. OUT has ld = rows.
  void fill(MatrixView<const double> p, std::int64_t row, MatrixView<const double> q,
            std::int64_t col, MatrixView<double> out);

 private:
  CovarianceParameters parameters_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
  KernelFunction kernel_;
};

}  // namespace strata
