#include "sparse/symmetric_system.hpp"

#include <algorithm>
#include <cmath>

#include "scalar/double_double.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {

SymmetricSystem::SymmetricSystem(const SparseMatrix& a, double shift, int exponent)
    : a_(&a), shift_(shift) {
  if (exponent != 0) {
    scaled_ = a;
    for (double& value : scaled_.value) value = std::scalbn(value, -exponent);
    shift_ = std::scalbn(shift, -exponent);
    a_ = &scaled_;
  }
  diagonal_.assign(at(n()), shift_);
  for_symmetric_entries(*a_, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
    if (i == j) diagonal_[at(i)] += a_->value[at(k)];
  });
  find_differences();
  if (exponent != 0) find_loss(a, shift, exponent);
}

/// One pass: rows ascend, so the elements that mirror a row's are next in their own rows.
void SymmetricSystem::find_differences() {
  if (is_one_triangle(*a_)) return;
  const auto note = [this](std::int32_t row, std::int32_t col, double value) {
    if (value != 0) differences_.push_back({row, col, value});
  };
  std::vector<std::int64_t> next(a_->start.begin(), a_->start.end() - 1);
  const auto is_left_of = [&](std::int32_t j, std::int32_t i) {
    return next[at(j)] < a_->start[at(j + 1)] && a_->column[at(next[at(j)])] < i;
  };
  // What stands below the diagonal alone is more than the nothing that mirrors it.
  const auto pass = [&](std::int32_t j, std::int32_t i) {
    for (; is_left_of(j, i); ++next[at(j)])
      note(a_->column[at(next[at(j)])], j, -a_->value[at(next[at(j)])]);
  };
  const auto order = static_cast<std::int32_t>(n());
  for (std::int32_t i = 0; i < order; ++i) {
    for (std::int64_t k = a_->start[at(i)]; k < a_->start[at(i + 1)]; ++k) {
      const std::int32_t j = a_->column[at(k)];
      if (j <= i) continue;
      pass(j, i);
      const bool there = is_left_of(j, i + 1);
      note(i, j, a_->value[at(k)] - (there ? a_->value[at(next[at(j)]++)] : 0));
    }
  }
  for (std::int32_t j = 0; j < order; ++j) pass(j, j);
}

double SymmetricSystem::asymmetry() const {
  if (differences_.empty()) return 0;
  const std::vector<double> root = roots();
  std::vector<double> of_row(at(n()));
  std::vector<double> of_column(at(n()));
  for (const Difference& d : differences_) {
    const double scaled = std::abs(d.value) / root[at(d.row)] / root[at(d.col)];
    of_row[at(d.row)] += scaled;
    of_column[at(d.col)] += scaled;
  }
  return std::max(*std::max_element(of_row.begin(), of_row.end()),
                  *std::max_element(of_column.begin(), of_column.end()));
}

void SymmetricSystem::find_loss(const SparseMatrix& a, double shift, int exponent) {
  const SymmetricSystem given(a, shift, 0);
  const std::vector<double> root = given.roots();
  std::vector<double> sum(at(n()));
  for_symmetric_entries(a, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
    const double value = i == j ? given.diagonal()[at(i)] : a.value[at(k)];
    const double kept = i == j ? diagonal_[at(i)] : a_->value[at(k)];
    const double off = std::abs(value - std::scalbn(kept, exponent));
    if (off == 0) return;
    loss_.relative = std::max(loss_.relative, off / std::abs(value));
    const double scaled = off / root[at(i)] / root[at(j)];
    sum[at(i)] += scaled;
    if (i != j) sum[at(j)] += scaled;
  });
  if (!sum.empty()) loss_.scaled_norm = *std::max_element(sum.begin(), sum.end());
}

double SymmetricSystem::norm() const {
  std::vector<double> sum(at(n()));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = std::abs(diagonal_[i]);
  for_symmetric_entries(*a_, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
    if (i == j) return;
    sum[at(i)] += std::abs(a_->value[at(k)]);
    sum[at(j)] += std::abs(a_->value[at(k)]);
  });
  return sum.empty() ? 0 : *std::max_element(sum.begin(), sum.end());
}

std::vector<double> SymmetricSystem::roots() const {
  std::vector<double> root;
  root.reserve(diagonal_.size());
  for (const double value : diagonal_) root.push_back(std::sqrt(value));
  return root;
}

double SymmetricSystem::scaled_norm() const {
  const std::vector<double> root = roots();
  std::vector<double> sum(at(n()), 1.0);
  for_symmetric_entries(*a_, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
    if (i == j) return;
    const double value = std::abs(a_->value[at(k)]) / root[at(i)] / root[at(j)];
    sum[at(i)] += value;
    sum[at(j)] += value;
  });
  return sum.empty() ? 1 : *std::max_element(sum.begin(), sum.end());
}

void SymmetricSystem::residual(const double* b, const double* x, double* r, double* terms) const {
  std::vector<DoubleDouble> sum(at(n()));
  for (std::int64_t i = 0; i < n(); ++i) {
    sum[at(i)] = DoubleDouble(b[i]) - two_product(shift_, x[i]);
    terms[i] = std::abs(b[i]) + std::abs(diagonal_[at(i)] * x[i]);
  }
  for_symmetric_entries(*a_, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
    const double value = a_->value[at(k)];
    sum[at(i)] = sum[at(i)] - two_product(value, x[j]);
    if (i == j) return;
    sum[at(j)] = sum[at(j)] - two_product(value, x[i]);
    terms[i] += std::abs(value * x[j]);
    terms[j] += std::abs(value * x[i]);
  });
  for (const Difference& d : differences_)
    sum[at(d.row)] = sum[at(d.row)] - two_product(d.value, x[d.col]);
  for (std::int64_t i = 0; i < n(); ++i) r[i] = sum[at(i)].hi;
}

void SymmetricSystem::multiply(MatrixView<const double> v, MatrixView<double> y) const {
  std::vector<DoubleDouble> sum(at(n()));
  for (std::int64_t c = 0; c < v.cols; ++c) {
    const double* x = v.column(c);
    for (std::int64_t i = 0; i < n(); ++i) sum[at(i)] = two_product(shift_, x[i]);
    for_symmetric_entries(*a_, [&](std::int32_t i, std::int32_t j, std::int64_t k) {
      const double value = a_->value[at(k)];
      sum[at(i)] = sum[at(i)] + two_product(value, x[j]);
      if (i != j) sum[at(j)] = sum[at(j)] + two_product(value, x[i]);
    });
    for (const Difference& d : differences_)
      sum[at(d.row)] = sum[at(d.row)] + two_product(d.value, x[d.col]);
    for (std::int64_t i = 0; i < n(); ++i) y(i, c) = sum[at(i)].hi;
  }
}

}  // namespace strata
