#include "dense/inverse_norm.hpp"

#include <limits>
#include <numeric>
#include <optional>

#include "base/random.hpp"
#include "scalar/complex.hpp"

namespace strata {
namespace {

constexpr std::int64_t kExactOrder = 8;
constexpr std::int64_t kColumns = 4;
constexpr int kRounds = 2;  // of signs and unit vectors

template <class T>
double norm_one(std::int64_t n, const T* x) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::abs(x[i]);
  return sum;
}

/// Ones; signs that alternate and grow, against which the method was seen to be weak; random signs.
template <class T>
DenseBlockOf<T> first_columns(std::int64_t n) {
  DenseBlockOf<T> x(n, kColumns);
  for (std::int64_t i = 0; i < n; ++i) {
    x.column(0)[i] = 1;
    x.column(1)[i] =
        (i % 2 == 0 ? 1.0 : -1.0) * (1 + static_cast<double>(i) / static_cast<double>(n - 1));
    for (std::int64_t j = 2; j < kColumns; ++j)
      x.column(j)[i] =
          random_bits(static_cast<std::uint64_t>(j), static_cast<std::uint64_t>(i)) & 1U ? 1 : -1;
  }
  return x;
}

/// x/|x|, 1 for zero.
template <class T>
T sign_of(const T& x) {
  if constexpr (is_complex_v<T>) {
    const double size = std::abs(x);
    return size > 0 ? x / size : T{1};
  } else {
    return x >= 0 ? 1 : -1;
  }
}

/// Says which products it needs, one after another: with B, then in turn with Bᵀ and B.
template <class T>
class NormEstimate {
 public:
  using Block = DenseBlockOf<T>;

  explicit NormEstimate(std::int64_t n) : n_(n) {
    if (n == 0) return;
    if (n <= kExactOrder) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(n));
      std::iota(all.begin(), all.end(), 0);
      wanted_ = units(all);
      left_ = 0;
      return;
    }
    wanted_ = first_columns<T>(n);
    for (std::int64_t j = 0; j < kColumns; ++j) before_.push_back(norm_one(n, wanted_->column(j)));
  }

  /// The block whose product is needed next, or nothing: the norm is known.
  [[nodiscard]] bool done() const { return !wanted_.has_value(); }
  [[nodiscard]] bool transposed() const { return transposed_; }
  [[nodiscard]] Block& wanted() { return *wanted_; }
  /// The block is its product now.
  void go_on() {
    Block y = std::move(*wanted_);
    wanted_.reset();
    if (transposed_) {
      wanted_ = units(promising(y));
      transposed_ = false;
      return;
    }
    for (std::int64_t j = 0; j < y.cols(); ++j)
      raise(norm_one(n_, y.column(j)) / before_[static_cast<std::size_t>(j)]);
    const bool first = left_ == kRounds;
    if (left_ == 0 || !std::isfinite(largest_) || !(first || largest_ > known_)) return;
    --left_;
    known_ = largest_;
    for (std::int64_t j = 0; j < y.cols(); ++j)
      for (std::int64_t i = 0; i < n_; ++i) y.column(j)[i] = sign_of(y.column(j)[i]);
    wanted_ = std::move(y);
    transposed_ = true;
  }
  [[nodiscard]] double largest() const { return largest_; }

 private:
  void raise(double bound) {
    if (!std::isfinite(bound)) bound = std::numeric_limits<double>::infinity();
    largest_ = std::max(largest_, bound);
  }

  /// Unit vectors, which B takes to its columns: the lengths of these are lower bounds, and the
  /// greatest of all is the norm itself.
  Block units(const std::vector<std::int64_t>& columns) {
    Block y(n_, std::ssize(columns));
    for (std::int64_t j = 0; j < y.cols(); ++j)
      y.column(j)[columns[static_cast<std::size_t>(j)]] = 1;
    before_.assign(columns.size(), 1);
    return y;
  }

  /// The columns of B that are the longest to first order by products of signs with Bᵀ, none that
  /// was looked at.
  std::vector<std::int64_t> promising(const Block& y) {
    std::vector<double> gain(static_cast<std::size_t>(n_));
    for (std::int64_t j = 0; j < y.cols(); ++j) {
      raise(norm_inf(n_, y.column(j)));
      for (std::int64_t i = 0; i < n_; ++i) {
        double& most = gain[static_cast<std::size_t>(i)];
        most = std::max(most, std::abs(y.column(j)[i]));
      }
    }
    for (const std::int64_t i : used_) gain[static_cast<std::size_t>(i)] = -1;
    std::vector<std::int64_t> rows(static_cast<std::size_t>(n_));
    std::iota(rows.begin(), rows.end(), 0);
    const auto count = std::min<std::int64_t>(kColumns, n_);
    std::partial_sort(rows.begin(), rows.begin() + count, rows.end(),
                      [&](std::int64_t a, std::int64_t b) {
                        const double u = gain[static_cast<std::size_t>(a)];
                        const double v = gain[static_cast<std::size_t>(b)];
                        return u > v || (u == v && a < b);
                      });
    rows.resize(static_cast<std::size_t>(count));
    used_.insert(used_.end(), rows.begin(), rows.end());
    return rows;
  }

  std::int64_t n_;
  std::optional<Block> wanted_;
  bool transposed_ = false;     // the next product is one with Bᵀ
  std::vector<double> before_;  // norms of the columns that B is applied to
  std::vector<std::int64_t> used_;
  int left_ = kRounds;
  double known_ = 0;  // before the last round
  double largest_ = 0;
};

template <class T>
double norm_one_of(std::int64_t n, const BlockSolverOf<T>& apply,
                   const BlockSolverOf<T>& transposed) {
  NormEstimate<T> estimate(n);
  while (!estimate.done()) {
    (estimate.transposed() ? transposed : apply)(estimate.wanted().view());
    estimate.go_on();
  }
  return estimate.largest();
}

template <class T>
double norm_of_scaled(const std::vector<double>& scale, const BlockSolverOf<T>& solve) {
  const auto n = std::ssize(scale);
  const auto multiply = [&](MatrixView<T> b) {
    for (std::int64_t j = 0; j < b.cols; ++j)
      for (std::int64_t i = 0; i < n; ++i) b(i, j) *= scale[static_cast<std::size_t>(i)];
  };
  const BlockSolverOf<T> scaled = [&](MatrixView<T> b) {
    multiply(b);
    solve(b);
    multiply(b);
  };
  return norm_one_of<T>(n, scaled, scaled);
}

}  // namespace

double estimate_symmetric_norm(std::int64_t n, const BlockSolver& apply) {
  return norm_one_of<double>(n, apply, apply);
}

double estimate_norm_one(std::int64_t n, const BlockSolver& apply, const BlockSolver& transposed) {
  return norm_one_of<double>(n, apply, transposed);
}
double estimate_norm_one(std::int64_t n, const BlockSolverOf<std::complex<double>>& apply,
                         const BlockSolverOf<std::complex<double>>& transposed) {
  return norm_one_of<std::complex<double>>(n, apply, transposed);
}

/// Both begin with B, so products that both still need are of one kind.
template <class T>
std::pair<double, double> estimate_norms_one(std::int64_t n, const BlockSolverPair<T>& apply,
                                             const BlockSolverPair<T>& transposed) {
  NormEstimate<T> first(n);
  NormEstimate<T> second(n);
  const auto block_of = [n](NormEstimate<T>& estimate) {
    return estimate.done() ? MatrixView<T>{nullptr, n, 0, std::max<std::int64_t>(n, 1)}
                           : estimate.wanted().view();
  };
  while (!first.done() || !second.done()) {
    const bool of_transposed = first.done() ? second.transposed() : first.transposed();
    (of_transposed ? transposed : apply)(block_of(first), block_of(second));
    if (!first.done()) first.go_on();
    if (!second.done()) second.go_on();
  }
  return {first.largest(), second.largest()};
}

template std::pair<double, double> estimate_norms_one(std::int64_t, const BlockSolverPair<double>&,
                                                      const BlockSolverPair<double>&);
template std::pair<double, double> estimate_norms_one(std::int64_t,
                                                      const BlockSolverPair<std::complex<double>>&,
                                                      const BlockSolverPair<std::complex<double>>&);

double estimate_scaled_inverse_norm(const std::vector<double>& scale, const BlockSolver& solve) {
  return norm_of_scaled(scale, solve);
}
double estimate_scaled_inverse_norm(const std::vector<double>& scale,
                                    const BlockSolverOf<std::complex<double>>& solve) {
  return norm_of_scaled(scale, solve);
}

}  // namespace strata
