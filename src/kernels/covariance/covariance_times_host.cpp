// covariance_times on the CPU.
//
// Method: 32 rows by 32 columns of C at a time, which covariance_host.cpp makes and which stay in
// the first-level cache while all columns of V go by (subtract_columns_host.hpp). The negative sum
// of a run is made in a block of its own, and then added to Y.

#include <algorithm>
#include <vector>

#include "kernels/backend/operand.hpp"
#include "kernels/covariance/covariance_host.hpp"
#include "kernels/covariance/covariance_times.hpp"
#include "kernels/dense/subtract_columns_host.hpp"

namespace strata {
namespace host {
namespace {

constexpr std::int64_t kStripRows = SubtractColumns::kRows;
constexpr std::int64_t kStripCols = 32;
static_assert(kCovarianceRun % kStripCols == 0);

/// `rows` rows of a block, from `first` on.
BlockView rows_of(const BlockView& block, std::int64_t first, std::int64_t rows) {
  BlockView part = block;
  part.data = static_cast<double*>(block.data) + first;
  part.row += first;
  part.rows = rows;
  return part;
}

class Strips {
 public:
  Strips(const BlockView* x, const CovarianceParameters& parameters)
      : x_(x),
        parameters_(parameters),
        c_(kStripRows * kStripCols),
        sum_(static_cast<std::size_t>(kStripRows * x[0].cols)) {}

  /// Rows of Y from `row` on, at most kStripRows.
  void subtract(std::int64_t row) {
    const std::int64_t rows = std::min(kStripRows, x_[0].rows - row);
    for (std::int64_t first = 0; first < x_[3].rows; first += kCovarianceRun) {
      std::fill(sum_.begin(), sum_.end(), 0.0);
      const std::int64_t end = std::min(first + kCovarianceRun, x_[3].rows);
      for (std::int64_t col = first; col < end; col += kStripCols)
        add(row, rows, col, std::min(kStripCols, end - col));
      const auto y = matrix_of<double>(x_[0]);
      for (std::int64_t k = 0; k < y.cols; ++k) {
        const double* from = sum_.data() + k * kStripRows;
        double* to = y.column(k) + row;
        for (std::int64_t i = 0; i < rows; ++i) to[i] += from[i];
      }
    }
  }

 private:
  /// The strip has kStripRows rows whatever there are: those behind `rows` hold old numbers, whose
  /// sums are not used.
  void add(std::int64_t row, std::int64_t rows, std::int64_t col, std::int64_t cols) {
    const BlockView strip{.data = c_.data(),
                          .rows = rows,
                          .cols = cols,
                          .ld = kStripRows,
                          .row = x_[0].row + row,
                          .col = x_[3].row + col};
    fill_covariance(strip, rows_of(x_[1], row, rows), rows_of(x_[2], col, cols), parameters_);
    run_fused<SubtractColumns>(MatrixView<double>{sum_.data(), kStripRows, x_[0].cols, kStripRows},
                               MatrixView<const double>{c_.data(), kStripRows, cols, kStripRows},
                               matrix_of<const double>(x_[3]).block(col, 0, cols, x_[3].cols));
  }

  const BlockView* x_;
  const CovarianceParameters& parameters_;
  std::vector<double> c_;
  std::vector<double> sum_;
};

}  // namespace
}  // namespace host

void covariance_times_host(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  require_variant(covariance_times, parameters.variant, 0);
  submit_each(queue, calls, [&values = parameters_of(parameters)](const BlockView* x) {
    if (x[0].cols == 0) return;
    host::Strips strips(x, values);
    for (std::int64_t row = 0; row < x[0].rows; row += host::kStripRows) strips.subtract(row);
  });
}

}  // namespace strata
