// QR with column pivoting (Businger, Golub, "Linear least squares solutions by Householder
// transformations", 1965), of the small R alone. What counts of a column is measured anew in every
// step, O(m³) in all: a length that is downdated is lost where columns are dependent to rounding,
// which is what this is for.

#include "qr/truncated_solution.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "base/constants.hpp"

namespace strata {
namespace {

double square_below(const double* x, std::int64_t from, std::int64_t to) {
  return std::inner_product(x + from, x + to, x + from, 0.0);
}

}  // namespace

PivotedTriangle::PivotedTriangle(const SquareMatrix<DoubleDouble>& r,
                                 const std::vector<std::int64_t>& dropped)
    : n_(r.n), m_(r.n - std::ssize(dropped)) {
  for (std::int64_t j = 0; j < n_; ++j)
    if (!std::binary_search(dropped.begin(), dropped.end(), j)) rows_.push_back(j);
  kept_ = rows_;
  for (const std::int64_t j : rows_)
    for (const std::int64_t i : rows_) t_.push_back(i <= j ? r(i, j).hi : 0.0);
  head_.assign(static_cast<std::size_t>(m_), 0.0);
  for (std::int64_t j = 0; j < m_; ++j) reflect(j);
}

void PivotedTriangle::reflect(std::int64_t j) {
  std::int64_t longest = j;
  double most = -1;
  for (std::int64_t k = j; k < m_; ++k) {
    const double square = square_below(&at(0, k), j, m_);
    if (square > most) most = square, longest = k;
  }
  if (longest != j) {
    std::swap_ranges(&at(0, j), &at(0, j) + m_, &at(0, longest));
    std::swap(kept_[static_cast<std::size_t>(j)], kept_[static_cast<std::size_t>(longest)]);
  }
  const double length = std::sqrt(std::max(most, 0.0));
  if (length == 0) return;
  // v = x ± ‖x‖·e₁, I − 2·v·vᵀ/vᵀv
  double& head = head_[static_cast<std::size_t>(j)];
  head = at(j, j) + std::copysign(length, at(j, j));
  const double half = 0.5 * (head * head + square_below(&at(0, j), j + 1, m_));
  for (std::int64_t k = j + 1; k < m_; ++k) {
    const double s = (head * at(j, k) + std::inner_product(&at(0, j) + j + 1, &at(0, j) + m_,
                                                           &at(0, k) + j + 1, 0.0)) /
                     half;
    at(j, k) -= s * head;
    for (std::int64_t i = j + 1; i < m_; ++i) at(i, k) -= s * at(i, j);
  }
  at(j, j) = -std::copysign(length, at(j, j));
}

std::vector<std::int64_t> PivotedTriangle::counts() const {
  std::vector<std::int64_t> out;
  for (int digits = 1; digits <= 17 && m_ > 0; ++digits) {
    const double least = digits == 17 ? 0 : std::pow(10.0, -digits) * std::abs(at(0, 0));
    std::int64_t count = 0;
    while (count < m_ && std::abs(at(count, count)) > least) ++count;
    if (count > 0 && (out.empty() || count > out.back())) out.push_back(count);
  }
  return out;
}

std::vector<double> PivotedTriangle::placed(std::int64_t count, std::vector<double> y) const {
  for (std::int64_t j = count - 1; j >= 0; --j) {
    const double x = y[static_cast<std::size_t>(j)] /= at(j, j);
    for (std::int64_t i = 0; i < j; ++i) y[static_cast<std::size_t>(i)] -= x * at(i, j);
  }
  std::vector<double> out(static_cast<std::size_t>(n_));
  for (std::int64_t j = 0; j < count; ++j)
    out[static_cast<std::size_t>(kept_[static_cast<std::size_t>(j)])] =
        y[static_cast<std::size_t>(j)];
  return out;
}

std::vector<double> PivotedTriangle::solve(std::int64_t count, std::vector<double> c) const {
  std::vector<double> y;
  for (const std::int64_t i : rows_) y.push_back(c[static_cast<std::size_t>(i)]);
  for (std::int64_t j = 0; j < count; ++j) {
    const double head = head_[static_cast<std::size_t>(j)];
    const double half =
        0.5 * (head * head + square_below(&t_[static_cast<std::size_t>(j * m_)], j + 1, m_));
    double s = head * y[static_cast<std::size_t>(j)];
    for (std::int64_t i = j + 1; i < m_; ++i) s += at(i, j) * y[static_cast<std::size_t>(i)];
    s /= half;
    y[static_cast<std::size_t>(j)] -= s * head;
    for (std::int64_t i = j + 1; i < m_; ++i) y[static_cast<std::size_t>(i)] -= s * at(i, j);
  }
  return placed(count, std::move(y));
}

std::vector<double> PivotedTriangle::solve_squared(std::int64_t count,
                                                   const std::vector<double>& g) const {
  std::vector<double> y;
  for (std::int64_t i = 0; i < count; ++i) {
    double value = g[static_cast<std::size_t>(kept_[static_cast<std::size_t>(i)])];
    for (std::int64_t j = 0; j < i; ++j) value -= at(j, i) * y[static_cast<std::size_t>(j)];
    y.push_back(value / at(i, i));
  }
  return placed(count, std::move(y));
}

void improve(std::vector<double>& x, const PivotedTriangle& r, const std::vector<DoubleDouble>& c,
             const MeasuredResidual& measured) {
  constexpr int kRefinements = 3;
  double least = measured(x).length;
  if (!std::isfinite(least)) least = kInfinity;
  const auto rounded = [](const std::vector<DoubleDouble>& wide) {
    std::vector<double> out;
    for (const DoubleDouble& value : wide) out.push_back(value.hi);
    return out;
  };
  for (const std::int64_t count : r.counts()) {
    std::vector<double> tried = r.solve(count, rounded(c));
    double before = kInfinity;
    for (int step = 0; step < kRefinements; ++step) {
      const ResidualProducts of = measured(tried);
      if (of.length < least) {
        least = of.length;
        x = tried;
      }
      if (!(of.length < 0.999 * before)) break;
      before = of.length;
      const std::vector<double> change = r.solve_squared(count, rounded(of.products));
      std::transform(tried.begin(), tried.end(), change.begin(), tried.begin(), std::plus<>());
    }
  }
}

}  // namespace strata
