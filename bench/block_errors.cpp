#include "bench/block_errors.hpp"

#include <algorithm>
#include <cmath>

#include "bench/compensated_sum.hpp"
#include "krylov/gmres_blocks.hpp"

namespace strata::bench {
namespace {

constexpr double kUnit = 0x1p-53;

/// Residuals of V = Q·R, the products summed as if in twice the digits.
void add_residuals(MatrixView<const double> v, const std::vector<double>& q,
                   const std::vector<double>& r, FactorError& error) {
  const auto at = [](const std::vector<double>& a, std::int64_t i, std::int64_t j,
                     std::int64_t rows) { return a[static_cast<std::size_t>(i + j * rows)]; };
  error.elementwise = 0;
  double of_difference = 0;
  double of_v = 0;
  for (std::int64_t j = 0; j < v.cols; ++j) {
    for (std::int64_t i = 0; i < v.rows; ++i) {
      CompensatedSum difference;
      double beside = 0;
      difference.add(v(i, j));
      for (std::int64_t k = 0; k <= j; ++k) {
        const double x = at(q, i, k, v.rows);
        const double y = at(r, k, j, v.cols);
        difference.add_product(-x, y);
        beside += std::abs(x) * std::abs(y);
      }
      const double d = difference.value();
      of_difference += d * d;
      of_v += v(i, j) * v(i, j);
      if (beside > 0) error.elementwise = std::max(error.elementwise, std::abs(d) / beside);
    }
  }
  error.residual = of_v > 0 ? std::sqrt(of_difference / of_v) : 0;
}

/// r ← s·r, both upper triangular, rounded once an element.
std::vector<double> product_of(const std::vector<double>& s, const std::vector<double>& r,
                               std::int64_t n) {
  std::vector<double> product(r.size());
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i <= j; ++i) {
      CompensatedSum sum;
      for (std::int64_t k = i; k <= j; ++k)
        sum.add_product(s[static_cast<std::size_t>(i + k * n)],
                        r[static_cast<std::size_t>(k + j * n)]);
      product[static_cast<std::size_t>(i + j * n)] = sum.value();
    }
  }
  return product;
}

}  // namespace

double bound_of_plain(double condition) noexcept { return kUnit * condition * condition; }
double bound_of_wide(double condition) noexcept { return kUnit * condition; }

MeasuredQr measured_qr(MatrixView<const double> v, QrMethod method, const RunOptions& options) {
  MeasuredQr result;
  result.q.resize(static_cast<std::size_t>(v.size()));
  for (std::int64_t j = 0; j < v.cols; ++j)
    std::copy_n(v.column(j), v.rows, result.q.data() + j * v.rows);
  result.r.resize(static_cast<std::size_t>(v.cols * v.cols));
  QrOptions how;
  how.method = method;
  how.run = options;
  const QrInfo info = qr(MatrixView<double>{result.q.data(), v.rows, v.cols, v.rows},
                         MatrixView<double>{result.r.data(), v.cols, v.cols, v.cols}, how);
  result.condition = info.condition;
  result.error.orthogonality = info.orthogonality;
  result.error.failed = info.failed_cholesky > 0;
  add_residuals(v, result.q, result.r, result.error);
  return result;
}

std::vector<BlockErrorRow> run_block_errors(const SparseMatrix& a, const BlockErrors& what,
                                            const RunOptions& options) {
  std::vector<BlockErrorRow> rows;
  std::int64_t step = 0;
  bool whole = true;
  const auto look = [&](std::int64_t, std::int64_t, MatrixView<const double> block) {
    const double condition = measured_qr(block, QrMethod::automatic, options).condition;
    whole = whole && bound_of_wide(condition) < 1;
    for (std::size_t m = 0; whole && m < what.methods.size(); ++m) {
      const QrMethod method = what.methods[m];
      const MeasuredQr once = measured_qr(block, method, options);
      const MeasuredQr again =
          measured_qr({once.q.data(), block.rows, block.cols, block.rows}, method, options);
      BlockErrorRow row{step, method, condition, once.error, again.error};
      add_residuals(block, again.q, product_of(again.r, once.r, block.cols), row.twice);
      rows.push_back(row);
    }
    ++step;
  };
  GmresOptions how;
  how.s = what.s;
  how.restart = what.restart;
  how.basis = what.basis;
  how.restarts_max = what.cycles + (what.basis == KrylovBasis::monomial ? 0 : 1);
  how.orthogonalization = QrMethod::cholqr_wide;
  how.tolerance = 0;
  how.balance = what.balance;
  how.run = options;
  std::vector<double> x(static_cast<std::size_t>(a.rows), 1.0);
  std::vector<double> b(static_cast<std::size_t>(a.rows));
  multiply(a, x, b);
  std::fill(x.begin(), x.end(), 0.0);
  (void)gmres_observed(a, b, x, how, look);
  return rows;
}

}  // namespace strata::bench
