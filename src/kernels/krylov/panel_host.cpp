// Steps of Krylov methods on the CPU.
//
// Method: a vector holds the four lanes of a row of spmv. An update goes over a strip of rows that
// stays in the first cache, column of Y by column, four strips of it in registers, so that X is
// read from memory once. Sums over rows, and substitution, are those of gram_host.cpp. What only
// copies takes the reference's way.

#include <algorithm>
#include <cstring>

#include "kernels/backend/operand.hpp"
#include "kernels/backend/run_fused.hpp"
#include "kernels/krylov/panel.hpp"
#include "kernels/tall/gram.hpp"
#include "scalar/lanes.hpp"

namespace strata {
namespace host {
namespace {

static_assert(kSpmvLanes == kLanes);

/// Four elements side by side, widened.
[[gnu::always_inline]] inline Lanes load_lanes(const double* from) { return Lanes::load(from); }
[[gnu::always_inline]] inline Lanes load_lanes(const float* from) {
  using Four [[gnu::vector_size(kLanes * sizeof(float))]] = float;
  Four four;
  std::memcpy(&four, from, sizeof four);
  return Lanes(__builtin_convertvector(four, Lanes::Vector));
}
[[gnu::always_inline]] inline void store_lanes(const Lanes& lanes, double* to) { lanes.store(to); }
[[gnu::always_inline]] inline void store_lanes(const Lanes& lanes, float* to) {
  using Four [[gnu::vector_size(kLanes * sizeof(float))]] = float;
  const Four four = __builtin_convertvector(lanes.values, Four);
  std::memcpy(to, &four, sizeof four);
}

/// What a row of A meets, and what becomes of its sum.
template <class T>
struct Product {
  std::int64_t rows = 0;
  const std::int32_t* start = nullptr;
  const std::int32_t* column = nullptr;
  const T* value = nullptr;
  const T* x = nullptr;
  const T* from = nullptr;
  const T* halo = nullptr;
  const T* before = nullptr;
  T* to = nullptr;
  double alpha = 0, beta = 0, gamma = 1;
};

template <class T>
struct MultiplyRows {
  [[gnu::always_inline]] static double at(const Product<T>& p, std::int32_t j) {
    return static_cast<double>(j < p.rows ? p.x[j] : p.halo[j - p.rows]);
  }
  [[gnu::always_inline]] static void run(const Product<T>* product) {
    const Product<T> p = *product;
    for (std::int64_t row = 0; row < p.rows; ++row) {
      const std::int32_t end = p.start[row + 1];
      std::int32_t e = p.start[row];
      Lanes sum;
      for (; e + kLanes <= end; e += kLanes) {
        const std::int32_t* j = p.column + e;
        const Lanes with(Lanes::Vector{at(p, j[0]), at(p, j[1]), at(p, j[2]), at(p, j[3])});
        sum = fused(load_lanes(p.value + e), with, sum);
      }
      if (e < end) {
        Lanes a;
        Lanes with;
        for (int i = 0; e + i < end; ++i) {
          a.values[i] = static_cast<double>(p.value[e + i]);
          with.values[i] = at(p, p.column[e + i]);
        }
        sum = fused(a, with, sum);
      }
      double t = (sum.values[0] + sum.values[1]) + (sum.values[2] + sum.values[3]);
      t = __builtin_fma(-p.alpha, static_cast<double>(p.from[row]), t);
      if (p.beta != 0) t = __builtin_fma(-p.beta, static_cast<double>(p.before[row]), t);
      p.to[row] = static_cast<T>(p.gamma * t);
    }
  }
};

template <class T>
void multiply_rows(const BlockView* x, std::uint32_t variant) {
  const PanelColumns columns = panel_columns(variant);
  const auto v = matrix_of<T>(x[0]);
  const auto k = matrix_of<const double>(x[5]);
  const Product<T> product{.rows = v.rows,
                           .start = static_cast<const std::int32_t*>(x[1].data),
                           .column = static_cast<const std::int32_t*>(x[2].data),
                           .value = static_cast<const T*>(x[3].data),
                           .x = v.column((variant & kSpmvOfLast) != 0 ? v.cols - 1 : columns.first),
                           .from = v.column(columns.first),
                           .halo = static_cast<const T*>(x[4].data),
                           .before = v.column(columns.third),
                           .to = v.column(columns.second),
                           .alpha = k(0, columns.second),
                           .beta = k(1, columns.second),
                           .gamma = k(2, columns.second)};
  run_fused<MultiplyRows<T>>(&product);
}

void run_spmv(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(spmv, parameters.variant, kPanelVariants | kSpmvOfLast);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    with_vectors(x[0].element,
                 [&]<class T>(std::type_identity<T>) { multiply_rows<T>(x, variant); });
  });
}

void run_panel_inner(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_inner, parameters.variant, kPanelVariants);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const std::vector<BlockView> chunks = chunks_of(calls[c][0], calls[c][1], parameters.variant);
    gram_host().inner(queue, {chunks, 3}, {});
  }
}

constexpr std::int64_t kStripRows = 256;

/// y ← y − X·s on a strip of rows; X has p columns.
template <class T, class Y>
struct Update {
  [[gnu::always_inline]] static void run(const T* x, Y* y, std::int64_t ld, std::int64_t rows,
                                         const double* s, std::int64_t p) {
    constexpr int kVectors = 4;
    std::int64_t r = 0;
    for (; r + kVectors * kLanes <= rows; r += kVectors * kLanes) {
      Lanes sum[kVectors];
      for (int k = 0; k < kVectors; ++k) sum[k] = load_lanes(y + r + k * kLanes);
      for (std::int64_t i = 0; i < p; ++i) {
        const Lanes minus(-s[i]);
        for (int k = 0; k < kVectors; ++k)
          sum[k] = fused(minus, load_lanes(x + i * ld + r + k * kLanes), sum[k]);
      }
      for (int k = 0; k < kVectors; ++k) store_lanes(sum[k], y + r + k * kLanes);
    }
    for (; r < rows; ++r) {
      auto sum = static_cast<double>(y[r]);
      for (std::int64_t i = 0; i < p; ++i)
        sum = __builtin_fma(-s[i], static_cast<double>(x[i * ld + r]), sum);
      y[r] = static_cast<Y>(sum);
    }
  }
};

/// Y ← Y − X·S, strip by strip.
template <class T, class Y>
void subtract_panel_products(const MatrixView<T>& x, const MatrixView<const double>& s,
                             const MatrixView<Y>& y) {
  for (std::int64_t row = 0; row < y.rows; row += kStripRows) {
    const std::int64_t rows = std::min(kStripRows, y.rows - row);
    for (std::int64_t j = 0; j < s.cols; ++j)
      run_fused<Update<T, Y>>(static_cast<const T*>(x.data) + row, y.column(j) + row, x.ld, rows,
                              s.column(j), s.rows);
  }
}

void run_update(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  if ((parameters.variant & kPanelNormalize) != 0)
    return panel_reference().update(queue, calls, parameters);
  require_variant(panel_update, parameters.variant, kPanelVariants);
  submit_each(queue, calls, [columns = panel_columns(parameters.variant)](const BlockView* x) {
    const auto whole = matrix_of<const double>(x[1]);
    const auto s = whole.block(0, columns.third, whole.rows, whole.cols - columns.third);
    with_vectors(x[0].element, [&]<class T>(std::type_identity<T>) {
      const auto v = matrix_of<T>(x[0]);
      subtract_panel_products(v.block(0, columns.first, v.rows, s.rows), s,
                              v.block(0, columns.second, v.rows, s.cols));
    });
  });
}

void run_correct(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_correct, parameters.variant, kPanelVariants);
  submit_each(queue, calls, [columns = panel_columns(parameters.variant)](const BlockView* x) {
    const auto w = matrix_of<double>(x[0]);
    const auto v = matrix_of<float>(x[1]);
    const auto s = matrix_of<const double>(x[2]);
    subtract_panel_products(v.block(0, columns.first, v.rows, s.rows), s,
                            w.block(0, columns.second, w.rows, s.cols));
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
        run_fused<Update<double, double>>(
            static_cast<const double*>(strip.data()), v.column(j) + row, kStripRows, rows,
            static_cast<const double*>(minus.data() + j * s.rows), s.rows);
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
}  // namespace host

PanelKernels panel_host() {
  PanelKernels kernels = panel_reference();
  kernels.spmv = host::run_spmv;
  kernels.inner = host::run_panel_inner;
  kernels.update = host::run_update;
  kernels.solve = host::run_solve;
  kernels.rotate = host::run_rotate;
  kernels.correct = host::run_correct;
  return kernels;
}

}  // namespace strata
