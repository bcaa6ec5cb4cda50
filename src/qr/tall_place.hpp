#pragma once
// TallPlace: a Q where it lies, in memory of the host or of a device.
//
// Contract: what is done to columns beside the passes is done here, one column at a time, and who
// carries out passes over some of its columns comes from here. T is double or float.

#include <memory>
#include <vector>

#include "device/device.hpp"
#include "qr/pass_executor.hpp"
#include "run/device_site.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

template <class T>
class TallPlace {
 public:
  /// site: of the device in whose memory Q lies, its mutex held; null: the host's.
  explicit TallPlace(MatrixView<T> q, DeviceSite* site = nullptr) : q_(q), site_(site) {}

  [[nodiscard]] std::int64_t rows() const noexcept { return q_.rows; }
  [[nodiscard]] std::int64_t cols() const noexcept { return q_.cols; }
  [[nodiscard]] MatrixView<T> columns(std::int64_t first, std::int64_t count) const {
    return q_.block(0, first, q_.rows, count);
  }

  /// Column `to` ← column `from`.
  void move(std::int64_t from, std::int64_t to);
  void put(std::int64_t j, const std::vector<T>& values);
  [[nodiscard]] std::vector<T> get(std::int64_t j) const;

  /// Passes over some of the columns, which they read and write; widest: as PlannedPasses has it.
  [[nodiscard]] std::unique_ptr<PassExecutor<T>> passes(MatrixView<T> columns,
                                                        const Options& options,
                                                        const std::vector<RowProblem>& widest = {
                                                            {.pass = RowPass::solve_gram}}) const;
  /// Passes over two blocks of columns.
  [[nodiscard]] std::unique_ptr<PassExecutor<T>> passes(MatrixView<T> left, MatrixView<T> right,
                                                        const Options& options) const;

 private:
  void copy(T* to, const T* from, CopyDirection direction) const;

  MatrixView<T> q_;
  DeviceSite* site_;
};

extern template class TallPlace<double>;
extern template class TallPlace<float>;

}  // namespace strata
