#pragma once
// The tree of panels of householder.hpp on a CPU, for any way to factor one panel.
//
// Contract: Panels has two functions:
// * static void factor(double* a, double* v, int64 ld, int64 rows, int64 n, double* tau)
//   makes reflections below the diagonal, the triangle above; v: ld elements to work with.
// * static void multiply(double* a, int64 ld, int64 rows, int64 n, const double* tau,
//                        double* work, const double* c, int64 c_ld, double* y)
//   makes y (ld × n) ← Q·C; a ← V, with its ones and zeros; work: n·(n + 2·work_width(n)) elements.
//
// The ld of a panel is a multiple of kHouseholderLanes, and panels are zero behind their rows. The
// reference and the host share what follows from that: which panels there are.

#include <algorithm>
#include <bit>
#include <cmath>
#include <type_traits>
#include <vector>

#include "kernels/backend/operand.hpp"
#include "kernels/tall/householder.hpp"
#include "scalar/dispatch.hpp"
#include "scalar/double_double.hpp"

namespace strata {

/// n rounded up to whole vectors.
[[nodiscard]] constexpr std::int64_t work_width(std::int64_t n) noexcept {
  return (n + kHouseholderLanes - 1) / kHouseholderLanes * kHouseholderLanes;
}

/// A column-major matrix of its own.
struct TallMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;

  TallMatrix(std::int64_t m, std::int64_t n)
      : rows(m), cols(n), values(static_cast<std::size_t>(m * n)) {}
  [[nodiscard]] double* at(std::int64_t i, std::int64_t j) { return values.data() + i + j * rows; }
  [[nodiscard]] const double* at(std::int64_t i, std::int64_t j) const {
    return values.data() + i + j * rows;
  }
};

template <class Panels>
class HouseholderTree {
 public:
  /// The triangle of x, n × n.
  [[nodiscard]] static TallMatrix triangle(const TallMatrix& x) {
    return triangle(x, householder_panel_rows(x.cols));
  }
  /// x ← Q·c, c n × n.
  static void product(TallMatrix& x, const TallMatrix& c) {
    product(x, c, householder_panel_rows(x.cols));
  }

 private:
  struct Panel {
    std::int64_t first = 0;  ///< row of x
    std::int64_t rows = 0;
    std::int64_t ld = 0;
    std::vector<double> a;
    std::vector<double> v;
    std::vector<double> tau;
  };

  static std::int64_t panels_of(const TallMatrix& x, std::int64_t height) {
    return std::max<std::int64_t>((x.rows + height - 1) / height, 1);
  }

  static void factor(const TallMatrix& x, std::int64_t number, std::int64_t height, Panel& panel) {
    panel.first = number * height;
    panel.rows = std::min(height, x.rows - panel.first);
    panel.ld = (panel.rows + kHouseholderLanes - 1) / kHouseholderLanes * kHouseholderLanes;
    panel.a.assign(static_cast<std::size_t>(panel.ld * x.cols), 0.0);
    panel.v.assign(static_cast<std::size_t>(panel.ld), 0.0);
    panel.tau.assign(static_cast<std::size_t>(x.cols), 0.0);
    for (std::int64_t j = 0; j < x.cols; ++j)
      std::copy_n(x.at(panel.first, j), panel.rows, panel.a.data() + j * panel.ld);
    Panels::factor(panel.a.data(), panel.v.data(), panel.ld, panel.rows, x.cols, panel.tau.data());
  }

  /// The triangle of a panel into rows number·n … of `to`.
  static void put(const Panel& panel, std::int64_t number, TallMatrix& to) {
    const std::int64_t n = to.cols;
    for (std::int64_t j = 0; j < n; ++j)
      std::copy_n(panel.a.data() + j * panel.ld, std::min(j + 1, panel.rows), to.at(number * n, j));
  }

  static std::int64_t stack_rows(std::int64_t n) { return householder_stack(n) * n; }

  static TallMatrix triangle(const TallMatrix& x, std::int64_t height) {
    const std::int64_t count = panels_of(x, height);
    TallMatrix r(count * x.cols, x.cols);
    Panel panel;
    for (std::int64_t p = 0; p < count; ++p) {
      factor(x, p, height, panel);
      put(panel, p, r);
    }
    return count == 1 ? r : triangle(r, stack_rows(x.cols));
  }

  static void product(TallMatrix& x, const TallMatrix& c, std::int64_t height) {
    const std::int64_t n = x.cols;
    std::vector<Panel> panels(static_cast<std::size_t>(panels_of(x, height)));
    TallMatrix above(std::ssize(panels) * n, n);
    for (std::int64_t p = 0; p < std::ssize(panels); ++p) {
      Panel& panel = panels[static_cast<std::size_t>(p)];
      factor(x, p, height, panel);
      put(panel, p, above);
    }
    if (panels.size() > 1) product(above, c, stack_rows(n));
    const TallMatrix& with = panels.size() > 1 ? above : c;
    std::vector<double> y;
    std::vector<double> work(static_cast<std::size_t>(n * (n + 2 * work_width(n))));
    for (std::int64_t p = 0; p < std::ssize(panels); ++p) {
      Panel& panel = panels[static_cast<std::size_t>(p)];
      y.resize(panel.a.size());
      Panels::multiply(panel.a.data(), panel.ld, panel.rows, n, panel.tau.data(), work.data(),
                       with.at(p * n, 0), with.rows, y.data());
      for (std::int64_t j = 0; j < n; ++j)
        std::copy_n(y.data() + j * panel.ld, panel.rows, x.at(panel.first, j));
    }
  }
};

// ---- blocks of calls

inline TallMatrix tall_of(const BlockView& view) {
  TallMatrix x(view.rows, view.cols);
  dispatch_native(view.element, [&]<class T>(std::type_identity<T>) {
    const auto from = matrix_of<const T>(view);
    for (std::int64_t j = 0; j < x.cols; ++j) std::copy_n(from.column(j), x.rows, x.at(0, j));
  });
  return x;
}
/// Rows from `first` on.
inline void store_rows(const TallMatrix& x, std::int64_t first, const BlockView& view) {
  dispatch_native(view.element, [&]<class T>(std::type_identity<T>) {
    const auto to = matrix_of<T>(view);
    for (std::int64_t j = 0; j < view.cols; ++j) {
      for (std::int64_t i = 0; i < view.rows; ++i) to(i, j) = static_cast<T>(*x.at(first + i, j));
    }
  });
}
inline TallMatrix stacked(const BlockView& a, const BlockView& b) {
  TallMatrix x(a.rows + b.rows, a.cols);
  for (std::int64_t j = 0; j < x.cols; ++j) {
    std::copy_n(matrix_of<const double>(a).column(j), a.rows, x.at(0, j));
    std::copy_n(matrix_of<const double>(b).column(j), b.rows, x.at(a.rows, j));
  }
  return x;
}

template <class Panels>
struct HouseholderOnCpu {
  using Tree = HouseholderTree<Panels>;

  static void run_r(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
    require_variant(householder_r, parameters.variant, 0);
    submit_each(queue, calls,
                [](const BlockView* x) { store_rows(Tree::triangle(tall_of(x[1])), 0, x[0]); });
  }
  static void run_q(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
    require_variant(householder_q, parameters.variant, 0);
    submit_each(queue, calls, [](const BlockView* x) {
      TallMatrix q = tall_of(x[0]);
      Tree::product(q, tall_of(x[1]));
      store_rows(q, 0, x[0]);
    });
  }
  static void run_stacked_r(Queue& queue, const KernelCalls& calls,
                            const KernelParameters& parameters) {
    require_variant(stacked_r, parameters.variant, 0);
    submit_each(queue, calls, [](const BlockView* x) {
      store_rows(Tree::triangle(stacked(x[1], x[2])), 0, x[0]);
    });
  }
  static void run_stacked_q(Queue& queue, const KernelCalls& calls,
                            const KernelParameters& parameters) {
    require_variant(stacked_q, parameters.variant, 0);
    submit_each(queue, calls, [](const BlockView* x) {
      TallMatrix q = stacked(x[2], x[3]);
      Tree::product(q, tall_of(x[4]));
      store_rows(q, 0, x[0]);
      store_rows(q, x[0].rows, x[1]);
    });
  }
  [[nodiscard]] static HouseholderKernels kernels() {
    return {.householder_r = run_r,
            .householder_q = run_q,
            .stacked_r = run_stacked_r,
            .stacked_q = run_stacked_q};
  }
};

// ---- a panel, for any loops over its rows

/// 2^-e of the contract.
[[gnu::always_inline]] inline double power_of(double largest) {
  const int field = static_cast<int>(std::bit_cast<std::uint64_t>(largest) >> 52);
  return std::bit_cast<double>(static_cast<std::uint64_t>(std::max(2046 - field, 1)) << 52);
}

/// What householder.hpp says of a panel. Loops has, for columns that are zero behind their rows,
///   static double dot(const double* x, const double* y, int64 rows)     in lanes
///   static void subtract(double t, const double* v, double* x, int64 rows)   x_r ← fma(−t, v_r,
///   x_r)
///   static void combine(const double* v, int64 ld, int64 p, const double* w, int64 stride,
///                       double* y, int64 rows)   y_r ← the chain of fma(−w_k, v_rk, ·) from 0 on
/// and rows is rounded up to whole vectors as they like. `v` is a column of `ld` elements for a
/// reflection.
template <class Loops>
struct PanelSteps {
  /// Returns τ; v is the reflection, with its 1 and zeros above.
  [[gnu::always_inline]] static double reflect(double* x, double* v, std::int64_t j,
                                               std::int64_t rows) {
    double largest = 0;
    for (std::int64_t r = j; r < rows; ++r) {
      const double size = std::abs(x[r]);
      largest = size > largest ? size : largest;
    }
    const double power = power_of(largest);
    for (std::int64_t r = 0; r <= j; ++r) v[r] = 0;
    for (std::int64_t r = j + 1; r < rows; ++r) v[r] = x[r] * power;
    const double sigma = Loops::dot(v, v, rows);
    double scale = 0;
    double tau = 0;
    if (sigma != 0) {
      const double y = x[j] * power;
      const double length = std::sqrt(fused(y, y, sigma));
      const double beta = y >= 0 ? -length : length;
      scale = 1 / (y - beta);
      tau = (beta - y) / beta;
      x[j] = beta / power;
    }
    v[j] = 1;
    for (std::int64_t r = j + 1; r < rows; ++r) x[r] = v[r] = v[r] * scale;
    return tau;
  }

  [[gnu::always_inline]] static void factor(double* a, double* v, std::int64_t ld,
                                            std::int64_t rows, std::int64_t n, double* tau) {
    for (std::int64_t j = 0; j < std::min(rows, n); ++j) {
      tau[j] = reflect(a + j * ld, v, j, rows);
      for (std::int64_t k = j + 1; k < n; ++k) {
        double* x = a + k * ld;
        Loops::subtract(tau[j] * Loops::dot(v, x, rows), v, x, rows);
      }
    }
  }

  /// W, p × n by rows of `width` elements, which are zeros from n on; x, of as many, is C by rows
  /// for it. So the columns of C are side by side in a vector.
  [[gnu::always_inline]] static void weigh(const double* v, std::int64_t ld, std::int64_t p,
                                           std::int64_t n, const double* g, const double* tau,
                                           const double* x, std::int64_t width, double* w) {
    std::copy_n(x, p * width, w);
    for (std::int64_t j = 0; j < p; ++j) {
      for (std::int64_t r = j + 1; r < p; ++r)
        Loops::subtract(-v[r + j * ld], x + r * width, w + j * width, width);
    }
    for (std::int64_t k = p - 1; k >= 0; --k) {
      double* of_k = w + k * width;
      for (std::int64_t i = 0; i < n; ++i) of_k[i] = tau[k] * of_k[i];
      for (std::int64_t j = 0; j < k; ++j)
        Loops::subtract(g[j + k * n], of_k, w + j * width, width);
    }
  }

  [[gnu::always_inline]] static void multiply(double* a, std::int64_t ld, std::int64_t rows,
                                              std::int64_t n, const double* tau, double* work,
                                              const double* c, std::int64_t c_ld, double* y) {
    const std::int64_t p = std::min(rows, n);
    const std::int64_t width = work_width(n);
    double* g = work;
    double* x = g + n * n;
    double* w = x + n * width;
    for (std::int64_t k = 0; k < p; ++k) {
      double* v = a + k * ld;
      std::fill_n(v, k, 0.0);
      v[k] = 1;
      for (std::int64_t j = 0; j < k; ++j) g[j + k * n] = Loops::dot(a + j * ld, v, rows);
    }
    for (std::int64_t r = 0; r < p; ++r) {
      std::fill_n(x + r * width, width, 0.0);
      for (std::int64_t k = 0; k < n; ++k) x[k + r * width] = c[r + k * c_ld];
    }
    weigh(a, ld, p, n, g, tau, x, width, w);
    for (std::int64_t k = 0; k < n; ++k) {
      double* to = y + k * ld;
      Loops::combine(a, ld, p, w + k, width, to, rows);
      for (std::int64_t i = 0; i < p; ++i) to[i] = c[i + k * c_ld] + to[i];
    }
  }
};

}  // namespace strata
