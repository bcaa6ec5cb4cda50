#include "qr/tall_place.hpp"

#include <algorithm>

#include "qr/planned_passes.hpp"

namespace strata {
namespace {

template <class T>
MatrixView<T> columns_of(MatrixView<T> v, ColumnSpan columns) {
  return v.block(0, columns.first, v.rows, columns.count);
}

}  // namespace

template <class T>
std::int64_t TallPlace<T>::rows() const noexcept {
  std::int64_t rows = 0;
  for (const PlacedRows<T>& part : parts_) rows += part.v.rows;
  return rows;
}

template <class T>
void TallPlace<T>::copy(const PlacedRows<T>& part, T* to, const T* from, CopyDirection direction) {
  if (part.site == nullptr) {
    std::copy_n(from, part.v.rows, to);
    return;
  }
  part.site->queue->copy(to, from, part.v.rows * static_cast<std::int64_t>(sizeof(T)), direction);
  part.site->queue->synchronize();
}

template <class T>
void TallPlace<T>::move(std::int64_t from, std::int64_t to) {
  for (const PlacedRows<T>& part : parts_)
    copy(part, part.v.column(to), part.v.column(from), CopyDirection::device_to_device);
}
template <class T>
void TallPlace<T>::put(std::int64_t j, const std::vector<T>& values) {
  const T* from = values.data();
  for (const PlacedRows<T>& part : parts_) {
    copy(part, part.v.column(j), from, CopyDirection::host_to_device);
    from += part.v.rows;
  }
}
template <class T>
std::vector<T> TallPlace<T>::get(std::int64_t j) const {
  std::vector<T> values(static_cast<std::size_t>(rows()));
  T* to = values.data();
  for (const PlacedRows<T>& part : parts_) {
    copy(part, to, part.v.column(j), CopyDirection::device_to_host);
    to += part.v.rows;
  }
  return values;
}

template <class T>
std::unique_ptr<PassExecutor<T>> TallPlace<T>::passes(ColumnSpan columns, const QrOptions& options,
                                                      const std::vector<RowProblem>& widest) const {
  if (on_host()) {
    const MatrixView<T> v = columns_of(parts_[0].v, columns);
    return std::make_unique<PlannedPasses<T>>(TallColumns<T>{.from = {.view = v}, .to = v}, options,
                                              widest);
  }
  std::vector<PlacedRows<T>> some;
  for (const PlacedRows<T>& part : parts_)
    some.push_back({.site = part.site, .v = columns_of(part.v, columns)});
  return std::make_unique<InPlacePasses<T>>(std::move(some), options);
}
template <class T>
std::unique_ptr<PassExecutor<T>> TallPlace<T>::passes(ColumnSpan left, ColumnSpan right,
                                                      const QrOptions& options) const {
  if (on_host()) {
    const MatrixView<T> v = columns_of(parts_[0].v, left);
    const MatrixView<T> beside = columns_of(parts_[0].v, right);
    return std::make_unique<PlannedPasses<T>>(
        TallColumns<T>{
            .from = {.view = v}, .beside = {.view = beside}, .to = v, .to_beside = beside},
        options);
  }
  std::vector<PlacedRows<T>> some;
  for (const PlacedRows<T>& part : parts_)
    some.push_back({part.site, columns_of(part.v, left), columns_of(part.v, right)});
  return std::make_unique<InPlacePasses<T>>(std::move(some), options);
}

template class TallPlace<double>;
template class TallPlace<float>;

}  // namespace strata
