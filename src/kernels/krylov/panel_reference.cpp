// Reference steps of Krylov methods: panel.hpp word for word, an element after the other. Sums over
// rows, and substitution, are the reference's of gram.hpp.

#include "kernels/krylov/panel.hpp"

#include <cmath>
#include <cstring>

#include "kernels/backend/operand.hpp"
#include "kernels/tall/gram.hpp"
#include "scalar/dispatch.hpp"

namespace strata {
namespace reference {
namespace {

template <class T>
void spmv_of(const BlockView* x, std::uint32_t variant) {
  const PanelColumns columns = panel_columns(variant);
  const auto v = matrix_of<T>(x[0]);
  const auto* start = static_cast<const std::int32_t*>(x[1].data);
  const auto* column = static_cast<const std::int32_t*>(x[2].data);
  const auto* value = static_cast<const T*>(x[3].data);
  const auto* halo = static_cast<const T*>(x[4].data);
  const auto k = matrix_of<const double>(x[5]);
  const double alpha = k(0, columns.second);
  const double beta = k(1, columns.second);
  const double gamma = k(2, columns.second);
  const std::int64_t of = (variant & kSpmvOfLast) != 0 ? v.cols - 1 : columns.first;
  for (std::int64_t row = 0; row < v.rows; ++row) {
    double lane[kSpmvLanes] = {};
    const std::int64_t entries = start[row + 1] - start[row];
    const std::int64_t padded = (entries + kSpmvLanes - 1) / kSpmvLanes * kSpmvLanes;
    for (std::int64_t e = 0; e < padded; ++e) {
      double a = 0;
      double with = 0;
      if (e < entries) {
        const std::int64_t j = column[start[row] + e];
        a = static_cast<double>(value[start[row] + e]);
        with = static_cast<double>(j < v.rows ? v(j, of) : halo[j - v.rows]);
      }
      lane[e % kSpmvLanes] = fused(a, with, lane[e % kSpmvLanes]);
    }
    double t = (lane[0] + lane[1]) + (lane[2] + lane[3]);
    t = fused(-alpha, static_cast<double>(v(row, columns.first)), t);
    if (beta != 0) t = fused(-beta, static_cast<double>(v(row, columns.third)), t);
    v(row, columns.second) = static_cast<T>(gamma * t);
  }
}

void run_spmv(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(spmv, parameters.variant, kPanelVariants | kSpmvOfLast);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    with_vectors(x[0].element, [&]<class T>(std::type_identity<T>) { spmv_of<T>(x, variant); });
  });
}

void run_halo_pack(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(halo_pack, parameters.variant, 1023U);
  submit_each(queue, calls, [from = panel_columns(parameters.variant).first](const BlockView* x) {
    with_vectors(x[0].element, [&]<class T>(std::type_identity<T>) {
      auto* g = static_cast<T*>(x[0].data);
      const T* v = matrix_of<T>(x[1]).column(from);
      const auto* index = static_cast<const std::int32_t*>(x[2].data);
      for (std::int64_t i = 0; i < x[0].rows; ++i) g[i] = v[index[i]];
    });
  });
}

void put_halo(const BlockView* x) {
  std::memcpy(element_at(x[0], x[1].row), x[1].data,
              static_cast<std::size_t>(x[1].rows * bytes_of(x[1].element)));
}

void run_halo_start(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(halo_start, parameters.variant, 0);
  submit_each(queue, calls, put_halo);
}

void run_halo_put(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(halo_put, parameters.variant, 0);
  submit_each(queue, calls, put_halo);
}

void run_panel_inner(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_inner, parameters.variant, kPanelVariants);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const std::vector<BlockView> chunks = chunks_of(calls[c][0], calls[c][1], parameters.variant);
    gram_reference().inner(queue, {chunks, 3}, {});
  }
}

/// `fresh`: S is written, else added to.
void sum_chunks(Queue& queue, const KernelCalls& calls, bool fresh) {
  submit_each(queue, calls, [fresh](const BlockView* x) {
    dispatch_real(x[0].element, [&]<class W>(std::type_identity<W>) {
      const auto s = matrix_of<W>(x[0]);
      const auto b = matrix_of<const W>(x[1]);
      const std::int64_t chunks = s.cols == 0 ? 0 : b.cols / s.cols;
      for (std::int64_t k = 0; k < chunks; ++k) {
        for (std::int64_t j = 0; j < s.cols; ++j) {
          for (std::int64_t i = 0; i < s.rows; ++i) {
            const W part = b(i, k * s.cols + j);
            s(i, j) = fresh && k == 0 ? part : s(i, j) + part;
          }
        }
      }
    });
  });
}

void run_start(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_start, parameters.variant, 0);
  sum_chunks(queue, calls, true);
}

void run_add(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_add, parameters.variant, 0);
  sum_chunks(queue, calls, false);
}

/// Y ← Y − X·S, each element in fp64 until it is complete.
template <class T, class Y>
void subtract_panel_products(const MatrixView<T>& x, const MatrixView<const double>& s,
                             const MatrixView<Y>& y) {
  for (std::int64_t j = 0; j < s.cols; ++j) {
    for (std::int64_t r = 0; r < y.rows; ++r) {
      auto sum = static_cast<double>(y(r, j));
      for (std::int64_t i = 0; i < s.rows; ++i)
        sum = fused(-s(i, j), static_cast<double>(x(r, i)), sum);
      y(r, j) = static_cast<Y>(sum);
    }
  }
}

/// x/√s, unless s is not positive.
double normalized(double x, double s) { return s > 0 ? x / std::sqrt(s) : x; }

void run_update(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_update, parameters.variant, kPanelVariants | kPanelNormalize);
  submit_each(queue, calls, [variant = parameters.variant](const BlockView* x) {
    const PanelColumns columns = panel_columns(variant);
    const auto whole = matrix_of<const double>(x[1]);
    const auto s = whole.block(0, columns.third, whole.rows, whole.cols - columns.third);
    with_vectors(x[0].element, [&]<class T>(std::type_identity<T>) {
      const auto v = matrix_of<T>(x[0]);
      const auto y = v.block(0, columns.second, v.rows, s.cols);
      if ((variant & kPanelNormalize) == 0)
        return subtract_panel_products(v.block(0, columns.first, v.rows, s.rows), s, y);
      for (std::int64_t r = 0; r < v.rows; ++r)
        y(r, 0) = static_cast<T>(normalized(static_cast<double>(y(r, 0)), s(0, 0)));
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

void run_narrow(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_narrow, parameters.variant, kPanelVariants);
  submit_each(queue, calls, [columns = panel_columns(parameters.variant)](const BlockView* x) {
    float* v = matrix_of<float>(x[0]).column(columns.second);
    const double* w = matrix_of<double>(x[1]).column(columns.first);
    const double square = *static_cast<const double*>(x[2].data);
    for (std::int64_t r = 0; r < x[0].rows; ++r)
      v[r] = static_cast<float>(normalized(w[r], square));
  });
}

void run_solve(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_solve, parameters.variant, 1023U);
  for (std::int64_t c = 0; c < calls.count(); ++c) {
    const BlockView* x = calls[c];
    const BlockView views[] = {panel_of(x[0], panel_columns(parameters.variant).first, x[1].cols),
                               x[1], x[2]};
    gram_reference().solve_right(queue, {views, 3}, {});
  }
}

void run_rotate(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_rotate, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    const auto v = matrix_of<double>(x[0]);
    const auto s = matrix_of<const double>(x[1]);
    std::vector<double> row(static_cast<std::size_t>(s.rows));
    for (std::int64_t r = 0; r < v.rows; ++r) {
      for (std::int64_t i = 0; i < s.rows; ++i) row[static_cast<std::size_t>(i)] = v(r, i);
      for (std::int64_t j = 0; j < s.cols; ++j) {
        double sum = 0;
        for (std::int64_t i = 0; i < s.rows; ++i)
          sum = fused(s(i, j), row[static_cast<std::size_t>(i)], sum);
        v(r, j) = sum;
      }
    }
  });
}

void run_put(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_put, parameters.variant, 1023U);
  submit_each(queue, calls, [to = panel_columns(parameters.variant).first](const BlockView* x) {
    std::memcpy(element_at(x[0], to * x[0].ld), x[1].data,
                static_cast<std::size_t>(x[0].rows * bytes_of(x[0].element)));
  });
}

void run_take(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(panel_take, parameters.variant, 1023U);
  submit_each(queue, calls, [from = panel_columns(parameters.variant).first](const BlockView* x) {
    std::memcpy(x[0].data, element_at(x[1], from * x[1].ld),
                static_cast<std::size_t>(x[1].rows * bytes_of(x[1].element)));
  });
}

}  // namespace
}  // namespace reference

PanelKernels panel_reference() {
  return {.spmv = reference::run_spmv,
          .halo_pack = reference::run_halo_pack,
          .halo_start = reference::run_halo_start,
          .halo_put = reference::run_halo_put,
          .inner = reference::run_panel_inner,
          .start = reference::run_start,
          .add = reference::run_add,
          .update = reference::run_update,
          .solve = reference::run_solve,
          .rotate = reference::run_rotate,
          .take = reference::run_take,
          .put = reference::run_put,
          .correct = reference::run_correct,
          .narrow = reference::run_narrow};
}

}  // namespace strata
