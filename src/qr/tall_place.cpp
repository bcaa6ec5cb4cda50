#include "qr/tall_place.hpp"

#include <algorithm>

#include "qr/in_place_passes.hpp"
#include "qr/planned_passes.hpp"

namespace strata {

template <class T>
void TallPlace<T>::copy(T* to, const T* from, CopyDirection direction) const {
  if (site_ == nullptr) {
    std::copy_n(from, q_.rows, to);
    return;
  }
  site_->queue->copy(to, from, q_.rows * static_cast<std::int64_t>(sizeof(T)), direction);
  site_->queue->synchronize();
}

template <class T>
void TallPlace<T>::move(std::int64_t from, std::int64_t to) {
  copy(q_.column(to), q_.column(from), CopyDirection::device_to_device);
}
template <class T>
void TallPlace<T>::put(std::int64_t j, const std::vector<T>& values) {
  copy(q_.column(j), values.data(), CopyDirection::host_to_device);
}
template <class T>
std::vector<T> TallPlace<T>::get(std::int64_t j) const {
  std::vector<T> values(static_cast<std::size_t>(q_.rows));
  copy(values.data(), q_.column(j), CopyDirection::device_to_host);
  return values;
}

template <class T>
std::unique_ptr<PassExecutor<T>> TallPlace<T>::passes(MatrixView<T> columns, const Options& options,
                                                      const std::vector<RowProblem>& widest) const {
  if (site_ != nullptr) return std::make_unique<InPlacePasses<T>>(*site_, options, columns);
  return std::make_unique<PlannedPasses<T>>(
      TallColumns<T>{.from = {.view = columns}, .to = columns}, options, widest);
}
template <class T>
std::unique_ptr<PassExecutor<T>> TallPlace<T>::passes(MatrixView<T> left, MatrixView<T> right,
                                                      const Options& options) const {
  if (site_ != nullptr) return std::make_unique<InPlacePasses<T>>(*site_, options, left, right);
  return std::make_unique<PlannedPasses<T>>(
      TallColumns<T>{
          .from = {.view = left}, .beside = {.view = right}, .to = left, .to_beside = right},
      options);
}

template class TallPlace<double>;
template class TallPlace<float>;

}  // namespace strata
