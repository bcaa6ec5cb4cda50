#pragma once
// TallPlace: a Q where it lies, in memory of the host or of devices.
//
// Contract: what is done to columns beside the passes is done here, one column at a time, and who
// carries out passes over some of its columns comes from here. T is double or float.

#include <memory>
#include <vector>

#include "device/device.hpp"
#include "qr/in_place_passes.hpp"
#include "qr/pass_executor.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

/// first … first + count − 1.
struct ColumnSpan {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

template <class T>
class TallPlace {
 public:
  /// In host memory.
  explicit TallPlace(MatrixView<T> q) : parts_{{.v = q}} {}
  /// In parts, ranges of its rows in their order, each in memory of a site whose mutex is held.
  explicit TallPlace(std::vector<PlacedRows<T>> parts) : parts_(std::move(parts)) {}

  [[nodiscard]] std::int64_t rows() const noexcept;
  [[nodiscard]] std::int64_t cols() const noexcept { return parts_[0].v.cols; }

  /// Column `to` ← column `from`.
  void move(std::int64_t from, std::int64_t to);
  void put(std::int64_t j, const std::vector<T>& values);
  [[nodiscard]] std::vector<T> get(std::int64_t j) const;

  /// Passes over some of the columns, which they read and write; widest: as PlannedPasses has it.
  [[nodiscard]] std::unique_ptr<PassExecutor<T>> passes(ColumnSpan columns,
                                                        const QrOptions& options,
                                                        const std::vector<RowProblem>& widest = {
                                                            {.pass = RowPass::solve_gram}}) const;
  /// Passes over two blocks of columns.
  [[nodiscard]] std::unique_ptr<PassExecutor<T>> passes(ColumnSpan left, ColumnSpan right,
                                                        const QrOptions& options) const;

 private:
  [[nodiscard]] bool on_host() const noexcept { return parts_[0].site == nullptr; }
  static void copy(const PlacedRows<T>& part, T* to, const T* from, CopyDirection direction);

  std::vector<PlacedRows<T>> parts_;
};

extern template class TallPlace<double>;
extern template class TallPlace<float>;

}  // namespace strata
