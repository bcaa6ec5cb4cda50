#include "eigen/block_lanczos.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/index.hpp"
#include "base/random.hpp"
#include "dense/small_eigen.hpp"
#include "kernels/backend/blas_host.hpp"

namespace strata {
namespace {

/// What a thread computes at a time: so many rows of all vectors, or products with so many vectors.
constexpr std::int64_t kRows = 4096;
constexpr std::int64_t kVectors = 16;
/// A vector of which less is left beside those before it is nothing but rounding, …
constexpr double kNothing = 1e-13;
/// … and one of which less is left is not as orthogonal to them as it is to be.
constexpr double kLittle = 1e-3;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

std::int64_t pieces(std::int64_t count, std::int64_t each) { return (count + each - 1) / each; }

}  // namespace

BlockLanczos::BlockLanczos(std::int64_t n, const SparseMatrix* mass, Operator apply,
                           const LanczosShape& shape, std::uint64_t seed, WorkCrew& crew)
    : n_(n),
      mass_(mass),
      apply_(std::move(apply)),
      shape_(shape),
      seed_(seed),
      crew_(crew),
      v_(n, shape.basis + shape.block),
      mv_(mass != nullptr ? n : 0, mass != nullptr ? shape.basis + shape.block : 0),
      t_(shape.basis + shape.block),
      next_(shape.block, shape.block) {}

void BlockLanczos::multiply_by_mass(std::int64_t first, std::int64_t count) {
  if (mass_ == nullptr) return;
  crew_.share(pieces(n_, kRows), [&](std::int64_t piece) {
    const std::int64_t end = std::min((piece + 1) * kRows, n_);
    for (std::int64_t c = first; c < first + count; ++c) {
      const double* x = v_.column(c);
      double* y = mv_.column(c);
      for (std::int64_t i = piece * kRows; i < end; ++i) {
        double sum = 0;
        for (std::int64_t e = mass_->start[at(i)]; e < mass_->start[at(i + 1)]; ++e)
          sum = std::fma(mass_->value[at(e)], x[mass_->column[at(e)]], sum);
        y[i] = sum;
      }
    }
  });
}

void BlockLanczos::project(std::int64_t before, std::int64_t first, std::int64_t count,
                           DenseBlock& h) {
  if (before == 0) return;
  const MatrixView<double> w = v(first, count);
  DenseBlock more(before, count);
  crew_.share(pieces(before, kVectors), [&](std::int64_t piece) {
    const std::int64_t begin = piece * kVectors;
    const std::int64_t some = std::min(kVectors, before - begin);
    blas::gemm_minus<double>(CblasTrans, CblasNoTrans, n_, mass_of(begin, some), w,
                             more.view().block(begin, 0, some, count));
  });
  for (std::int64_t j = 0; j < count; ++j) {
    for (std::int64_t i = 0; i < before; ++i) {
      more.column(j)[i] = -more.column(j)[i];
      h.column(j)[i] += more.column(j)[i];
    }
  }
  crew_.share(pieces(n_, kRows), [&](std::int64_t piece) {
    const std::int64_t begin = piece * kRows;
    const std::int64_t rows = std::min(kRows, n_ - begin);
    blas::gemm_minus<double>(CblasNoTrans, CblasNoTrans, before,
                             std::as_const(v_).view().block(begin, 0, rows, before),
                             std::as_const(more).view(), w.block(begin, 0, rows, count));
  });
}

/// Vectors that are orthonormal, and to those before them, and that nothing leads to.
void BlockLanczos::add_random(std::int64_t first, std::int64_t count) {
  for (std::int64_t c = first; c < first + count; ++c) {
    DenseBlock h(std::max<std::int64_t>(c, 1), 1);
    double length = 0;
    // What is left of a random vector in a space of few further dimensions may be short.
    for (int tries = 0; tries < 3 && !(length > 0); ++tries) {
      double* x = v_.column(c);
      const auto number = static_cast<std::uint64_t>(randoms_++ * n_);
      for (std::int64_t i = 0; i < n_; ++i)
        x[i] = random_normal(seed_, number + static_cast<std::uint64_t>(i));
      for (int pass = 0; pass < 4; ++pass) {
        project(c, c, 1, h);
        length = normalize(c);
      }
    }
  }
}

/// W ← Q with W = Q·R, of which `count` columns at most are new; W is orthogonal to all before it.
void BlockLanczos::orthonormalize(std::int64_t first, std::int64_t count, DenseBlock& r) {
  for (std::int64_t j = 0; j < last_; ++j) {
    const std::int64_t c = first + j;
    double* w = v_.column(c);
    const double whole = sizes_[at(j)];
    const std::int64_t ahead = std::min(j, count);
    for (int pass = 0; pass < 2; ++pass) {
      for (std::int64_t i = 0; i < ahead; ++i) {
        const double h = length_with(first + i, w);
        add_scaled(n_, -h, v_.column(first + i), w);
        r.column(j)[i] += h;
      }
    }
    if (j >= count) continue;
    const auto left = [&] { return std::sqrt(dot(n_, w, w)); };
    if (!(left() > kNothing * whole)) {
      add_random(c, 1);
      continue;
    }
    double length = normalize(c);
    if (!(left() * length > kLittle * whole)) {
      DenseBlock h(std::max<std::int64_t>(c, 1), 1);
      project(c, c, 1, h);
      const double again = normalize(c);
      if (!(again > kLittle)) {  // what was left was rounding
        add_random(c, 1);
        continue;
      }
      length *= again;
    }
    r.column(j)[j] = length;
  }
}

/// vᵀ·M·w of a column of the basis.
double BlockLanczos::length_with(std::int64_t column, const double* w) const {
  return dot(n_, mass_of(column, 1).data, w);
}

/// A column of length 1, and M times it; its length before. 0: it is zero, and stays so.
double BlockLanczos::normalize(std::int64_t column) {
  multiply_by_mass(column, 1);
  double* w = v_.column(column);
  const double length = std::sqrt(std::max(length_with(column, w), 0.0));
  if (!(length > 0)) return 0;
  for (std::int64_t i = 0; i < n_; ++i) w[i] /= length;
  multiply_by_mass(column, 1);
  return length;
}

/// The same by Cholesky factors of WᵀMW, twice: false, and W and R as they were, where a column is
/// near to depend on others, or some are not new.
bool BlockLanczos::orthonormalize_at_once(std::int64_t first, std::int64_t count, DenseBlock& r) {
  constexpr double kNear = 1e-6;
  if (count < last_) return false;
  for (std::int64_t j = 0; j < count; ++j) {
    const double* w = v_.column(first + j);
    if (!(std::sqrt(dot(n_, w, w)) > kLittle * sizes_[at(j)])) return false;
  }
  DenseBlock kept(n_, count);
  std::copy_n(v_.column(first), n_ * count, kept.column(0));
  SquareMatrix<double> whole = SquareMatrix<double>::identity(count);
  for (int pass = 0; pass < 2; ++pass) {
    multiply_by_mass(first, count);
    DenseBlock g(count, count);
    blas::gemm_minus<double>(CblasTrans, CblasNoTrans, n_, mass_of(first, count), v(first, count),
                             g.view());
    SquareMatrix<double> b(count);
    for (std::int64_t j = 0; j < count; ++j)
      for (std::int64_t i = 0; i <= j; ++i) b(i, j) = -(g.column(j)[i] + g.column(i)[j]) / 2;
    std::vector<double> lengths;
    for (std::int64_t j = 0; j < count; ++j) lengths.push_back(std::sqrt(std::max(b(j, j), 0.0)));
    const SmallCholesky<double> factor = small_cholesky(std::move(b), BadPivot::stop);
    bool apart = factor.failed_column < 0;
    for (std::int64_t j = 0; j < count && apart; ++j)
      apart = factor.r(j, j) > kNear * lengths[at(j)];
    if (!apart) {
      std::copy_n(kept.column(0), n_ * count, v_.column(first));
      return false;
    }
    crew_.share(pieces(n_, kRows), [&](std::int64_t piece) {
      const std::int64_t begin = piece * kRows;
      const std::int64_t rows = std::min(kRows, n_ - begin);
      blas::solve_upper_on_right<double>({factor.r.values.data(), count, count, count},
                                         v(first, count).block(begin, 0, rows, count));
    });
    SquareMatrix<double> product(count);
    for (std::int64_t j = 0; j < count; ++j)
      for (std::int64_t i = 0; i <= j; ++i)
        for (std::int64_t l = i; l <= j; ++l) product(i, j) += factor.r(i, l) * whole(l, j);
    whole = std::move(product);
  }
  multiply_by_mass(first, count);
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t i = 0; i <= j; ++i) r.column(j)[i] = whole(i, j);
  return true;
}

/// The operator is applied to the block that comes next.
void BlockLanczos::expand() {
  last_ = there_ - done_;
  for (std::int64_t j = 0; j < last_; ++j)
    std::copy_n(mv(done_ + j, 1).data, n_, v_.column(there_ + j));
  apply_(v(there_, last_));
  solves_ += last_;
  sizes_.clear();
  for (std::int64_t j = 0; j < last_; ++j)
    sizes_.push_back(std::sqrt(dot(n_, v_.column(there_ + j), v_.column(there_ + j))));
  DenseBlock h(there_, last_);
  for (int pass = 0; pass < 2; ++pass) project(there_, there_, last_, h);
  for (std::int64_t j = 0; j < last_; ++j)
    for (std::int64_t i = 0; i < there_; ++i)
      t_(std::max(i, done_ + j), std::min(i, done_ + j)) = h.column(j)[i];
  const std::int64_t fresh = std::min(last_, n_ - there_);
  DenseBlock r(shape_.block, shape_.block);
  if (!orthonormalize_at_once(there_, fresh, r)) orthonormalize(there_, fresh, r);
  next_ = std::move(r);
  done_ = there_;
  there_ += fresh;
}

void BlockLanczos::solve_projected() {
  SquareMatrix<double> t(done_);
  for (std::int64_t j = 0; j < done_; ++j)
    for (std::int64_t i = j; i < done_; ++i) t(i, j) = t_(i, j);
  SymmetricEigen eigen = symmetric_eigen(std::move(t), crew_);
  ritz_.assign(eigen.values.rbegin(), eigen.values.rend());
  s_ = SquareMatrix<double>(done_);
  estimates_.assign(at(done_), 0);
  if (ritz_.empty()) {  // QL did not converge: nothing is known
    ritz_.assign(at(done_), 0);
    estimates_.assign(at(done_), std::numeric_limits<double>::infinity());
    s_ = SquareMatrix<double>::identity(done_);
    return;
  }
  for (std::int64_t j = 0; j < done_; ++j) {
    for (std::int64_t i = 0; i < done_; ++i) s_(i, j) = eigen.vectors(i, done_ - 1 - j);
    double squares = 0;
    for (std::int64_t i = 0; i < there_ - done_; ++i) {
      double sum = 0;
      for (std::int64_t l = 0; l < last_; ++l) sum += next_.column(l)[i] * s_(done_ - last_ + l, j);
      squares += sum * sum;
    }
    estimates_[at(j)] = std::sqrt(squares);
  }
}

/// The first `count` Ritz vectors in the place of the basis.
void BlockLanczos::rotate(std::int64_t count) {
  const MatrixView<const double> s{s_.values.data(), done_, count,
                                   std::max<std::int64_t>(done_, 1)};
  for (DenseBlock* block : {&v_, &mv_}) {
    if (block->cols() == 0) continue;
    crew_.share(pieces(n_, kRows), [&](std::int64_t piece) {
      const std::int64_t begin = piece * kRows;
      const std::int64_t rows = std::min(kRows, n_ - begin);
      DenseBlock turned(rows, count);
      const MatrixView<double> here = block->view().block(begin, 0, rows, done_);
      blas::gemm_minus<double>(CblasNoTrans, CblasNoTrans, done_, here, s, turned.view());
      for (std::int64_t j = 0; j < count; ++j)
        for (std::int64_t i = 0; i < rows; ++i) here(i, j) = -turned.column(j)[i];
    });
  }
}

/// The Ritz vectors of the largest values, and the block that comes next, or nothing behind them.
void BlockLanczos::restart(std::int64_t keep, bool with_next) {
  rotate(keep);
  const std::int64_t next = with_next ? there_ - done_ : 0;
  for (DenseBlock* block : {&v_, &mv_})
    for (std::int64_t j = 0; j < next && block->cols() > 0; ++j)
      std::copy_n(block->column(done_ + j), n_, block->column(keep + j));
  std::fill(t_.values.begin(), t_.values.end(), 0.0);
  for (std::int64_t j = 0; j < keep; ++j) t_(j, j) = ritz_[at(j)];
  done_ = keep;
  there_ = keep + next;
  last_ = 0;
}

bool BlockLanczos::run(double tolerance, std::int64_t restarts_max,
                       const std::function<void()>& keep_going) {
  constexpr std::int64_t kFew = 128;  // vectors of which eigenpairs cost little
  const std::int64_t k = shape_.k;
  if (there_ == 0) {
    there_ = std::min(shape_.block, n_);
    add_random(0, there_);
  }
  for (;;) {
    if (there_ > done_ && has_room()) expand();
    keep_going();
    const bool full = !has_room() || there_ == done_;
    if (!full && (done_ < k + shape_.block || done_ > kFew)) continue;
    solve_projected();
    residual_ = 0;
    bool converged = done_ >= k;
    for (std::int64_t i = 0; i < std::min(k, done_); ++i) {
      const double share = estimates_[at(i)] / ritz_[at(i)];
      residual_ = std::max(residual_, share);
      converged =
          converged && share <= std::max(tolerance, 16 * kEpsilon * ritz_[0] / ritz_[at(i)]);
    }
    const bool whole = there_ == done_;
    const bool ends = full && restarts_ >= restarts_max;
    if (converged || whole || ends) {
      kept_ = std::min(k, done_);
      values_.assign(ritz_.begin(), ritz_.begin() + kept_);
      restart(std::ssize(values_), true);
      return converged || whole;
    }
    if (!full) continue;
    ++restarts_;
    restart(std::max(k, std::min(done_ - shape_.block, k + (done_ - k) / 2)), true);
  }
}

bool BlockLanczos::finds_another(const std::function<void()>& keep_going) {
  constexpr double kSame = 1e-9;
  constexpr double kKnown = 0.02;  // estimated residuals beside their value
  constexpr int kCycles = 10;
  const auto k = std::ssize(values_);
  kept_ = k;
  if (k == n_) return false;
  there_ = std::min(done_ + shape_.block, n_);
  add_random(done_, there_ - done_);
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    while (has_room() && there_ > done_) {
      expand();
      keep_going();
    }
    solve_projected();
    for (std::int64_t i = 0; i < k; ++i)
      if (ritz_[at(i)] > values_[at(i)] * (1 + kSame)) return true;
    if (there_ == done_ || estimates_[at(k)] <= kKnown * ritz_[at(k)]) break;
    restart(std::max(k, std::min(done_ - shape_.block, k + (done_ - k) / 2)), true);
    ++restarts_;
  }
  kept_ = std::min(k + 2 * shape_.block, done_);
  restart(kept_, false);
  return false;
}

}  // namespace strata
