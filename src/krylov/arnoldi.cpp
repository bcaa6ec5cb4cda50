// Arnoldi's process, vector by vector, and H of blocks.
//
// Method: classical Gram and Schmidt's method twice is two readings of Q a vector, whose sums are
// coefficients of H (Daniel, Gragg, Kaufman, Stewart 1976); all steps of a script run without the
// host. For a block, H follows from the recurrence of its vectors (Hoemmen, "Communication-avoiding
// Krylov subspace methods", 2010, 3.3). The coordinates of w_i in Q are known from the projection
// and R. So A·w_i = w_{i+1}/γ_i + α_i·w_i + β_i·w_{i−1} gives the column of H of the vector in
// which w_i is the first to have a share.

#include "krylov/arnoldi.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace strata {

double length_of(const std::vector<double>& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

RoundingLimits rounding_limits(Element element) noexcept {
  if (element == Element::fp32)
    return {.unit = static_cast<double>(std::numeric_limits<float>::epsilon()),
            .nothing_left = 1e-6,
            .plain_condition = 0,  // sums in fp64 cost no more than those in fp32
            .loss_max = 1e-3,
            .pythagoras_loss_max = 1e-3,
            .amplification_max = 1e5,
            .amplification_once = 1e3};
  return {.unit = std::numeric_limits<double>::epsilon(),
          .nothing_left = 1e-14,
          .plain_condition = 1e3,
          .loss_max = 1e-8,
          .pythagoras_loss_max = 1e-9,
          .amplification_max = 1e8,
          .amplification_once = 1e5};
}

void Arnoldi::begin(std::int64_t restart, std::vector<std::vector<double>> h,
                    std::vector<double> errors) {
  restart_ = restart;
  h_ = std::move(h);
  errors_ = std::move(errors);
  ended_ = not_finite_ = false;
  loss_ = 0;
}

std::vector<PanelSum> Arnoldi::flush() {
  reductions += std::ssize(pending_.sums);
  std::vector<PanelSum> sums = runner_.run(pending_);
  pending_ = {};
  return sums;
}

RecurrenceStep Arnoldi::step(std::int64_t i) const {
  return i < std::ssize(recurrence_) ? recurrence_[static_cast<std::size_t>(i)] : RecurrenceStep{};
}

void Arnoldi::add_vectors(std::int64_t count) {
  const std::int64_t begin = size();
  const bool modified = options_.method == QrMethod::mgs;
  const int times = options_.method == QrMethod::cgs ? 1 : 2;
  std::vector<std::vector<int>> projections;
  std::vector<int> norms;
  for (std::int64_t j = begin; j < begin + count; ++j) {
    multiply(j);
    std::vector<int>& of_vector = projections.emplace_back();
    for (std::int64_t i = 0; modified && i <= j; ++i) {
      of_vector.push_back(pending_.inner(i, 1, j + 1, 1));
      pending_.update(i, j + 1, of_vector.back());
    }
    for (int time = 0; !modified && time < times; ++time) {
      of_vector.push_back(pending_.inner(0, j + 1, j + 1, 1));
      pending_.update(0, j + 1, of_vector.back());
    }
    norms.push_back(pending_.inner(j + 1, 1, j + 1, 1));
    pending_.normalize(j + 1, norms.back());
  }
  const std::vector<PanelSum> sums = flush();
  for (std::int64_t i = 0; i < count && !ended_ && !not_finite_; ++i) {
    read_single(begin + i, sums, projections[static_cast<std::size_t>(i)],
                norms[static_cast<std::size_t>(i)]);
  }
}

/// The column behind `from` becomes A or p(A) times it. Chebyshev's polynomials follow from those
/// before by T_{i+1}(t) = 2·t·T_i(t) − T_{i−1}(t), each but the first and the last in the place of
/// the one two before it.
void Arnoldi::multiply(std::int64_t from) {
  if (!filter_) return pending_.multiply(from, from + 1, from, 0, 0, 1);
  const double gamma = 2 / filter_->half_width;
  std::int64_t before = from;
  std::int64_t last = work_;
  pending_.multiply(from, last, from, filter_->center, 0, gamma / 2);
  for (std::int64_t i = 2; i <= filter_->degree; ++i) {
    const std::int64_t to = i < filter_->degree ? work_ + 1 + i % 2 : from + 1;
    pending_.multiply(last, to, before, filter_->center, 1 / gamma, gamma);
    before = last;
    last = to;
  }
}

/// Column j of H from the sums of a vector.
void Arnoldi::read_single(std::int64_t j, const std::vector<PanelSum>& sums,
                          std::vector<int> projections, int norm) {
  products += filter_ ? filter_->degree : 1;
  std::vector<double> column(static_cast<std::size_t>(j + 2));
  std::size_t row = 0;
  for (const int p : projections) {
    const PanelSum& sum = sums[static_cast<std::size_t>(p)];
    if (sum.rows == 1 && std::ssize(projections) == j + 1) {
      column[row++] += sum(0, 0).hi;  // one by one
      continue;
    }
    for (std::int64_t i = 0; i < sum.rows; ++i) column[static_cast<std::size_t>(i)] += sum(i, 0).hi;
  }
  const double square = sums[static_cast<std::size_t>(norm)](0, 0).hi;
  column.back() = square > 0 ? std::sqrt(square) : square;
  const double length = length_of(column);
  if (!std::isfinite(length)) {
    not_finite_ = true;
    return;
  }
  if (length <= options_.limits.nothing_left * options_.norm)
    std::fill(column.begin(), column.end(), 0.0);
  if (column.back() <= options_.limits.nothing_left * length) {
    column.back() = 0;
    ended_ = true;
  }
  h_.push_back(std::move(column));
  errors_.push_back(options_.limits.unit * options_.norm);
}

/// Coordinates of w_0 … w_k, with R, in the basis that the block was projected against and has
/// become part of.
Arnoldi::Columns Arnoldi::coordinates(const Block& block, const Gram& r) {
  const std::int64_t c = block.column;
  const std::int64_t k = block.count;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  Columns w(at(k + 1), std::vector<double>(at(c + k + 1)));
  w[0][at(c)] = 1;
  for (std::int64_t j = 0; j < k; ++j) {
    std::copy(block.top[at(j)].begin(), block.top[at(j)].end(), w[at(j + 1)].begin());
    for (std::int64_t i = 0; i <= j; ++i) w[at(j + 1)][at(c + 1 + i)] = r(i, j).hi;
  }
  return w;
}

/// The columns of H that a block adds, from the coordinates of its w_0 … w_k in Q.
void Arnoldi::add_columns(const Block& block, const Columns& w) {
  const std::int64_t c = block.column;
  const std::int64_t k = block.count;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t i = 0; i < k && !not_finite_; ++i) {
    const RecurrenceStep s = step(i);
    std::vector<double> y(at(c + i + 2));
    for (std::size_t q = 0; q < y.size(); ++q) {
      y[q] = w[at(i + 1)][q] / s.gamma + s.alpha * w[at(i)][q];
      if (i > 0) y[q] += s.beta * w[at(i - 1)][q];
      if (i == 0 && q < block.known.size()) y[q] += block.known[q];
    }
    for (std::int64_t l = 0; l < c + i; ++l) {
      const std::vector<double>& known = h_[at(l)];
      const double share = w[at(i)][at(l)];
      for (std::size_t q = 0; q < known.size(); ++q) y[q] -= known[q] * share;
    }
    for (double& value : y) value /= w[at(i)][at(c + i)];
    if (!std::isfinite(length_of(y))) {
      not_finite_ = true;
      return;
    }
    h_.push_back(std::move(y));
  }
  if (options_.symmetric) {
    const std::vector<double> errors = relation_errors(block, block.r);
    errors_.insert(errors_.end(), errors.begin(), errors.end());
  }
  products += k;
}

}  // namespace strata
