#include "lu/scaled_system.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/index.hpp"
#include "kernels/dense/panel_status.hpp"
#include "scalar/complex.hpp"
#include "scalar/safe_range.hpp"

namespace strata {

template <class T, class A>
ScaledSystem<T, A>::ScaledSystem(MatrixView<const A> a, MatrixView<const W> b)
    : a_(a), b_(b.rows, b.cols), largest_(largest_to_factor(a, 0)) {
  exponent_ = exponent_out_of_range(largest_, element_of<T>);
  if (exponent_ != 0) {
    divided_.resize(at(a.rows * a.cols));
    for (std::int64_t j = 0; j < a.cols; ++j)
      for (std::int64_t i = 0; i < a.rows; ++i)
        divided_[at(i + j * a.rows)] = times_power(a(i, j), -exponent_);
    a_ = {divided_.data(), a.rows, a.cols, std::max<std::int64_t>(a.rows, 1)};
    largest_ = std::scalbn(largest_, -exponent_);
  }
  scale_rows_and_columns();
  if (exponent_ != 0) measure_loss(a);
  for (std::int64_t j = 0; j < b.cols; ++j) {
    const int of_column = exponent_of_column(b.rows, b.column(j), element_of<T>);
    back_.push_back(of_column - exponent_);
    for (std::int64_t i = 0; i < b.rows; ++i) b_.column(j)[i] = times_power(b(i, j), -of_column);
  }
}

template <class T, class A>
std::vector<int> ScaledSystem<T, A>::far_rows() const {
  constexpr int kFar = 500;  // powers of two
  std::vector<double> most(at(a_.rows));
  int low = 0, high = 0;  // exponents of columns
  for (std::int64_t j = 0; j < a_.cols; ++j) {
    double of_column = 0;
    for (std::int64_t i = 0; i < a_.rows; ++i) {
      const double size = largest_part(a_(i, j));
      most[at(i)] = std::max(most[at(i)], size);
      of_column = std::max(of_column, size);
    }
    const int exponent = of_column > 0 ? std::ilogb(of_column) : high;
    low = j == 0 ? exponent : std::min(low, exponent);
    high = j == 0 ? exponent : std::max(high, exponent);
  }
  std::vector<int> exponents(at(a_.rows));
  const int of_columns = high - low;
  low = high = 0;
  bool any = false;
  for (std::int64_t i = 0; i < a_.rows; ++i) {
    if (!(most[at(i)] > 0) || !std::isfinite(most[at(i)])) continue;
    exponents[at(i)] = -std::ilogb(most[at(i)]);
    low = any ? std::min(low, exponents[at(i)]) : exponents[at(i)];
    high = any ? std::max(high, exponents[at(i)]) : exponents[at(i)];
    any = true;
  }
  if (high - low <= std::max(kFar, of_columns)) exponents.clear();
  return exponents;
}

template <class T, class A>
void ScaledSystem<T, A>::scale_rows_and_columns() {
  std::vector<double> sums(at(a_.rows));
  std::vector<double> scaled_sums(at(a_.rows));
  const std::vector<int> first = far_rows();
  const auto nearer = [&](std::int64_t i, double size) {
    return first.empty() ? size : std::scalbn(size, first[at(i)]);
  };
  for (std::int64_t j = 0; j < a_.cols; ++j) {
    double most = first.empty() ? largest_of_column(a_.column(j), a_.rows) : 0;
    for (std::int64_t i = 0; i < a_.rows && !first.empty(); ++i)
      most = std::max(most, nearer(i, largest_part(a_(i, j))));
    const double scale = most > 0 && std::isfinite(most) ? std::scalbn(1.0, -std::ilogb(most)) : 1;
    column_scale_.push_back(scale);
    for (std::int64_t i = 0; i < a_.rows; ++i) {
      const double size = std::abs(static_cast<W>(a_(i, j)));
      sums[at(i)] += size;
      scaled_sums[at(i)] += nearer(i, size) * scale;
    }
  }
  for (std::int64_t i = 0; i < a_.rows; ++i) {
    norm_ = std::max(norm_, sums[at(i)]);
    row_scale_.push_back(scaled_sums[at(i)] > 0 ? nearer(i, 1 / scaled_sums[at(i)]) : 1);
  }
}

template <class T, class A>
void ScaledSystem<T, A>::measure_loss(MatrixView<const A> given) {
  std::vector<double> sums(at(a_.rows));
  for (std::int64_t j = 0; j < a_.cols; ++j) {
    for (std::int64_t i = 0; i < a_.rows; ++i) {
      const auto value = static_cast<W>(given(i, j));
      const double off = std::abs(value - static_cast<W>(times_power(a_(i, j), exponent_)));
      if (off == 0) continue;
      loss_.relative = std::max(loss_.relative, off / std::abs(value));
      sums[at(i)] += std::scalbn(off * column_scale_[at(j)] * row_scale_[at(i)], -exponent_);
    }
  }
  loss_.scaled_norm = strata::norm_inf(a_.rows, sums.data());
}

template <class T, class A>
MatrixView<const T> ScaledSystem<T, A>::factored() {
  if constexpr (std::is_same_v<T, A>) {
    return a_;
  } else {
    narrow_.resize(at(a_.rows * a_.cols));
    for (std::int64_t j = 0; j < a_.cols; ++j)
      std::transform(a_.column(j), a_.column(j) + a_.rows, narrow_.data() + j * a_.rows,
                     [](A value) { return static_cast<T>(value); });
    return {narrow_.data(), a_.rows, a_.cols, std::max<std::int64_t>(a_.rows, 1)};
  }
}

template class ScaledSystem<double, double>;
template class ScaledSystem<float, float>;
template class ScaledSystem<float, double>;
template class ScaledSystem<std::complex<double>, std::complex<double>>;
template class ScaledSystem<std::complex<float>, std::complex<float>>;
template class ScaledSystem<std::complex<float>, std::complex<double>>;

}  // namespace strata
