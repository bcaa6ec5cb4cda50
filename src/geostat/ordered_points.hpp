#pragma once
// OrderedPoints: points in the order in which they stand in their covariance matrix.
//
// Contract: the order follows from the points, the options, the parameters if they are given, and
// the rates of a device, never from how many there are or their memory. What a caller gives for
// each point goes in by ordered(), what a caller gets comes out by restore(). With PointOrder::none
// both change nothing.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "strata/geostat.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

struct Scout;

class OrderedPoints {
 public:
  /// By options.order, in boxes of the tile that a mixed factor has; by x, y and z, never by time,
  /// and on the sphere by longitude and latitude as if these were of the plane. Throws
  /// Error{misuse, device} as the options say. `parameters`: of the covariance that will be
  /// factored (null: of several, or not known yet), so that options without an order get the one in
  /// which lower precisions are predicted to be faster.
  OrderedPoints(const Points& points, const CovarianceOptions& options,
                const MaternParameters* parameters = nullptr);

  /// With the order that was taken, where there are lower precisions.
  [[nodiscard]] CovarianceOptions options_of(CovarianceOptions options) const;
  [[nodiscard]] const Points& points() const noexcept { return points_; }
  /// What the order was chosen by, where it was; else null.
  [[nodiscard]] std::shared_ptr<const Scout> scout() const noexcept { return scout_; }
  /// The row, as given, of the point that comes k-th.
  [[nodiscard]] std::int64_t row(std::int64_t k) const {
    return rows_.empty() ? k : rows_[static_cast<std::size_t>(k)];
  }
  /// One value for each point, in their order here.
  [[nodiscard]] std::vector<double> ordered(std::span<const double> values) const;
  /// Rows of n, back in the order in which the points were given.
  void restore(MatrixView<double> rows) const;

 private:
  PointOrder order_ = PointOrder::none;
  std::vector<std::int64_t> rows_;  ///< point rows_[k] comes k-th; empty: as they were given
  Points points_;
  std::shared_ptr<const Scout> scout_;
};

}  // namespace strata
