// Steps of Krylov methods on the CPU.
//
// Method: a vector holds the four lanes of a row of spmv. An update goes over a strip of rows that
// stays in the first cache, column of Y by column, four strips of it in registers, so that X is
// read from memory once. Sums over rows, and substitution, are those of gram_host.cpp. What only
// copies takes the reference's way.

#include <algorithm>

#include "kernels/gram.hpp"
#include "kernels/operand.hpp"
#include "kernels/panel.hpp"
#include "kernels/run_fused.hpp"
#include "scalar/lanes.hpp"

namespace strata {
namespace {

static_assert(kSpmvLanes == kLanes);

/// What a row of A meets, and what becomes of its sum.
struct Product {
  std::int64_t rows = 0;
  const std::int32_t* start = nullptr;
  const std::int32_t* column = nullptr;
  const double* value = nullptr;
  const double* x = nullptr;
  const double* from = nullptr;
  const double* halo = nullptr;
  const double* before = nullptr;
  double* to = nullptr;
  double alpha = 0, beta = 0, gamma = 1;
};

struct Multiply {
  [[gnu::always_inline]] static double at(const Product& p, std::int32_t j) {
    return j < p.rows ? p.x[j] : p.halo[j - p.rows];
  }
  [[gnu::always_inline]] static void run(const Product* product) {
    const Product p = *product;
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const std::int32_t end = p.start[row + 1];
      std::int32_t e = p.start[row];
      Lanes sum;
      for (; e + kLanes <= end; e += kLanes) {
        const std::int32_t* j = p.column + e;
        const Lanes with(Lanes::Vector{at(p, j[0]), at(p, j[1]), at(p, j[2]), at(p, j[3])});
        sum = fused(Lanes::load(p.value + e), with, sum);
      }
      if (e < end) {
        Lanes a;
        Lanes with;
        for (int i = 0; e + i < end; ++i) {
          a.values[i] = p.value[e + i];
          with.values[i] = at(p, p.column[e + i]);
        }
        sum = fused(a, with, sum);
      }
      double t = (sum.values[0] + sum.values[1]) + (sum.values[2] + sum.values[3]);
      t = __builtin_fma(-p.alpha, p.from[row], t);
      if (p.beta != 0) t = __builtin_fma(-p.beta, p.before[row], t);
      p.to[row] = p.gamma * t;
    }
  }
};

void run_spmv(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(spmv, parameters.variant, kPanelVariants | kSpmvOfLast);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    const PanelColumns columns = panel_columns(variant);
    const auto v = matrix_of<double>(x[0]);
    const auto k = matrix_of<const double>(x[5]);
    const Product product{.rows = v.rows,
                          .start = static_cast<const std::int32_t*>(x[1].data),
                          .column = static_cast<const std::int32_t*>(x[2].data),
                          .value = static_cast<const double*>(x[3].data),
                          .x = v.column((variant & kSpmvOfLast) != 0 ? v.cols - 1 : columns.first),
                          .from = v.column(columns.first),
                          .halo = static_cast<const double*>(x[4].data),
                          .before = v.column(columns.third),
                          .to = v.column(columns.second),
                          .alpha = k(0, columns.second),
                          .beta = k(1, columns.second),
                          .gamma = k(2, columns.second)};
    run_fused<Multiply>(&product);
  });
}

void run_inner(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_inner, parameters.variant, kPanelVariants);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const std::vector<BlockView> chunks = chunks_of(calls[c][0], calls[c][1], parameters.variant);
    gram_host().inner(queue, {chunks, 3}, {});
  }
}

constexpr std::int64_t kStripRows = 256;

/// y ← y − X·s on a strip of rows; X has p columns.
struct Update {
  [[gnu::always_inline]] static void run(const double* x, double* y, std::int64_t ld,
                                         std::int64_t rows, const double* s, std::int64_t p) {
    constexpr int kVectors = 4;
    std::int64_t r = 0;
    for (; r + kVectors * kLanes <= rows; r += kVectors * kLanes) {
      Lanes sum[kVectors];
      for (int k = 0; k < kVectors; ++k) sum[k] = Lanes::load(y + r + k * kLanes);
      for (std::int64_t i = 0; i < p; ++i) {
        const Lanes minus(-s[i]);
        for (int k = 0; k < kVectors; ++k)
          sum[k] = fused(minus, Lanes::load(x + i * ld + r + k * kLanes), sum[k]);
      }
      for (int k = 0; k < kVectors; ++k) sum[k].store(y + r + k * kLanes);
    }
    for (; r < rows; ++r) {
      double sum = y[r];
      for (std::int64_t i = 0; i < p; ++i) sum = __builtin_fma(-s[i], x[i * ld + r], sum);
      y[r] = sum;
    }
  }
};

void run_update(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  if ((parameters.variant & kPanelNormalize) != 0)
    return panel_reference().update(queue, calls, parameters);
  require_variant(panel_update, parameters.variant, kPanelVariants);
  submit_each(queue, calls, [columns = panel_columns(parameters.variant)](const BlockView* x) {
    const auto v = matrix_of<double>(x[0]);
    const auto whole = matrix_of<const double>(x[1]);
    const auto s = whole.block(0, columns.third, whole.rows, whole.cols - columns.third);
    for (std::int64_t row = 0; row < v.rows; row += kStripRows) {
      const std::int64_t rows = std::min(kStripRows, v.rows - row);
      for (std::int64_t j = 0; j < s.cols; ++j)
        run_fused<Update>(static_cast<const double*>(v.column(columns.first)) + row,
                          v.column(columns.second + j) + row, v.ld, rows, s.column(j), s.rows);
    }
  });
}

/// A strip of X is put aside; what is subtracted of 0 are the columns of X times those of −S.
void run_rotate(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_rotate, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto v = matrix_of<double>(x[0]);
    const auto s = matrix_of<const double>(x[1]);
    std::vector<double> minus;
    for (std::int64_t j = 0; j < s.cols; ++j) {
      for (std::int64_t i = 0; i < s.rows; ++i) minus.push_back(-s(i, j));
    }
    std::vector<double> strip(static_cast<std::size_t>(s.rows * kStripRows));
    for (std::int64_t row = 0; row < v.rows; row += kStripRows) {
      const std::int64_t rows = std::min(kStripRows, v.rows - row);
      for (std::int64_t i = 0; i < s.rows; ++i)
        std::copy_n(v.column(i) + row, rows, strip.data() + i * kStripRows);
      for (std::int64_t j = 0; j < s.cols; ++j) {
        std::fill_n(v.column(j) + row, rows, 0.0);
        run_fused<Update>(static_cast<const double*>(strip.data()), v.column(j) + row, kStripRows,
                          rows, static_cast<const double*>(minus.data() + j * s.rows), s.rows);
      }
    }
  });
}

void run_solve(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_solve, parameters.variant, 1023U);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const BlockView views[] = {panel_of(x[0], panel_columns(parameters.variant).first, x[1].cols),
                               x[1], x[2]};
    gram_host().solve_right(queue, {views, 3}, {});
  }
}

}  // namespace

PanelKernels panel_host() {
  PanelKernels kernels = panel_reference();
  kernels.spmv = run_spmv;
  kernels.inner = run_inner;
  kernels.update = run_update;
  kernels.solve = run_solve;
  kernels.rotate = run_rotate;
  return kernels;
}

}  // namespace strata
