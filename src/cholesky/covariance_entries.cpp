#include "cholesky/covariance_entries.hpp"

#include "kernels/backend/backend.hpp"
#include "kernels/backend/tables.hpp"

namespace strata {

CovarianceEntries::CovarianceEntries(const CovarianceParameters& parameters)
    : parameters_(parameters),
      device_(host_backend().make_device(0, std::int64_t{1} << 20)),
      queue_(device_->make_queue(QueuePriority::normal)),
      kernel_(host_kernels().find(covariance.name, Elements(3, Element::fp64))) {}

void CovarianceEntries::fill(MatrixView<const double> p, std::int64_t row,
                             MatrixView<const double> q, std::int64_t col, MatrixView<double> out) {
  const auto coordinates = [](MatrixView<const double> at, std::int64_t first) {
    return BlockView{const_cast<double*>(at.data), at.rows, at.cols, at.ld, first};
  };
  const BlockView views[] = {
      {out.data, out.rows, out.cols, out.ld, row, col}, coordinates(p, row), coordinates(q, col)};
  kernel_(*queue_, {views, 3}, {.variant = 0, .values = &parameters_});
  queue_->synchronize();
}

}  // namespace strata
