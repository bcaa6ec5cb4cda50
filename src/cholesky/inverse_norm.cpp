#include "cholesky/inverse_norm.hpp"

#include <limits>
#include <numeric>

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

template <class T>
class NormEstimate {
 public:
  using Block = DenseBlockOf<T>;

  NormEstimate(std::int64_t n, const BlockSolverOf<T>& apply, const BlockSolverOf<T>& transposed)
      : n_(n), apply_(apply), transposed_(transposed) {}

  double run() {
    if (n_ == 0) return 0;
    if (n_ <= kExactOrder) {
      std::vector<std::int64_t> all(static_cast<std::size_t>(n_));
      std::iota(all.begin(), all.end(), 0);
      (void)unit_columns(all);
      return largest_;
    }
    Block y = first_columns<T>(n_);
    std::vector<double> before(kColumns);
    for (std::int64_t j = 0; j < kColumns; ++j)
      before[static_cast<std::size_t>(j)] = norm_one(n_, y.column(j));
    apply_(y.view());
    for (std::int64_t j = 0; j < kColumns; ++j)
      raise(norm_one(n_, y.column(j)) / before[static_cast<std::size_t>(j)]);
    std::vector<std::int64_t> used;
    for (int round = 0; round < kRounds && std::isfinite(largest_); ++round) {
      const double known = largest_;
      y = unit_columns(promising(std::move(y), used));
      if (!(largest_ > known)) break;
    }
    return largest_;
  }

 private:
  void raise(double bound) {
    if (!std::isfinite(bound)) bound = std::numeric_limits<double>::infinity();
    largest_ = std::max(largest_, bound);
  }

  /// Columns of B; their lengths are lower bounds, and of all columns the norm itself.
  Block unit_columns(const std::vector<std::int64_t>& columns) {
    Block y(n_, std::ssize(columns));
    for (std::int64_t j = 0; j < y.cols(); ++j)
      y.column(j)[columns[static_cast<std::size_t>(j)]] = 1;
    apply_(y.view());
    for (std::int64_t j = 0; j < y.cols(); ++j) raise(norm_one(n_, y.column(j)));
    return y;
  }

  /// The columns of B that are the longest to first order, none that was looked at.
  std::vector<std::int64_t> promising(Block y, std::vector<std::int64_t>& used) {
    for (std::int64_t j = 0; j < y.cols(); ++j)
      for (std::int64_t i = 0; i < n_; ++i) y.column(j)[i] = sign_of(y.column(j)[i]);
    transposed_(y.view());
    std::vector<double> gain(static_cast<std::size_t>(n_));
    for (std::int64_t j = 0; j < y.cols(); ++j) {
      raise(norm_inf(n_, y.column(j)));
      for (std::int64_t i = 0; i < n_; ++i) {
        double& most = gain[static_cast<std::size_t>(i)];
        most = std::max(most, std::abs(y.column(j)[i]));
      }
    }
    for (const std::int64_t i : used) gain[static_cast<std::size_t>(i)] = -1;
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
    used.insert(used.end(), rows.begin(), rows.end());
    return rows;
  }

  std::int64_t n_;
  const BlockSolverOf<T>& apply_;
  const BlockSolverOf<T>& transposed_;
  double largest_ = 0;
};

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
  return NormEstimate<T>(n, scaled, scaled).run();
}

}  // namespace

double estimate_symmetric_norm(std::int64_t n, const BlockSolver& apply) {
  return NormEstimate<double>(n, apply, apply).run();
}

double estimate_norm_one(std::int64_t n, const BlockSolver& apply, const BlockSolver& transposed) {
  return NormEstimate<double>(n, apply, transposed).run();
}
double estimate_norm_one(std::int64_t n, const BlockSolverOf<std::complex<double>>& apply,
                         const BlockSolverOf<std::complex<double>>& transposed) {
  return NormEstimate<std::complex<double>>(n, apply, transposed).run();
}

double estimate_scaled_inverse_norm(const std::vector<double>& scale, const BlockSolver& solve) {
  return norm_of_scaled(scale, solve);
}
double estimate_scaled_inverse_norm(const std::vector<double>& scale,
                                    const BlockSolverOf<std::complex<double>>& solve) {
  return norm_of_scaled(scale, solve);
}

}  // namespace strata
