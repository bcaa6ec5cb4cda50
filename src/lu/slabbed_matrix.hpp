#pragma once
// SlabbedMatrix: a square matrix in host memory, or one that comes a slab of columns at a time.
//
// Contract: what is *stored* is A or, if `transposed`, its transpose (without conjugates), as a
// file in row order has it. Columns of what is stored are provided in slabs, in ascending order,
// the same each time. Products are summed up in fp64 or wider; of a matrix in memory they have the
// bits of general_residual.hpp, but where others make them (with_products()).

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "base/work_crew.hpp"
#include "dense/dense_block.hpp"
#include "kernels/dense/general_residual.hpp"
#include "lu/matrix_products.hpp"
#include "scalar/complex.hpp"
#include "strata/matrix_view.hpp"

namespace strata {

template <class A>
class SlabbedMatrix {
 public:
  using W = WideOf<A>;
  /// Columns first … first + count − 1 of what is stored, packed, n × count.
  using Fill = std::function<void(std::int64_t first, std::int64_t count, A* to)>;

  /// The view outlives it.
  explicit SlabbedMatrix(MatrixView<const A> a)
      : n_(a.rows), columns_(a.cols), whole_(a), crew_(crew_for(n_)) {}
  /// `columns`: of a slab.
  SlabbedMatrix(std::int64_t n, bool transposed, std::int64_t columns, Fill fill)
      : n_(n),
        columns_(std::clamp<std::int64_t>(columns, 1, std::max<std::int64_t>(n, 1))),
        transposed_(transposed),
        fill_(std::move(fill)),
        crew_(crew_for(n)) {}

  [[nodiscard]] std::int64_t n() const noexcept { return n_; }
  [[nodiscard]] bool transposed() const noexcept { return transposed_; }
  [[nodiscard]] bool in_memory() const noexcept { return fill_ == nullptr; }
  /// The view of a matrix in memory.
  [[nodiscard]] MatrixView<const A> whole() const noexcept { return whole_; }

  /// Calls visit(first, slab) for all slabs of what is stored.
  template <class Visit>
  void for_slabs(const Visit& visit) const {
    if (in_memory()) return visit(std::int64_t{0}, whole_);
    for (std::int64_t first = 0; first < n_; first += columns_) {
      const std::int64_t count = std::min(columns_, n_ - first);
      visit(first, slab(first, count));
    }
  }
  /// Calls visit(first, count) for strips of 0 … n − 1, by several threads where that is worth it.
  void for_strips(const std::function<void(std::int64_t, std::int64_t)>& visit) const {
    constexpr std::int64_t kStrip = 256;
    const std::int64_t strips = (n_ + kStrip - 1) / kStrip;
    crew().share(strips,
                 [&](std::int64_t s) { visit(s * kStrip, std::min(kStrip, n_ - s * kStrip)); });
  }
  /// The threads that share work on it.
  [[nodiscard]] WorkCrew& crew() const noexcept { return *crew_; }
  /// Calls visit(i, j, element) for all elements of A, column by column of what is stored.
  template <class Visit>
  void for_elements(const Visit& visit) const {
    for_slabs([&](std::int64_t first, MatrixView<const A> slab) {
      for (std::int64_t c = 0; c < slab.cols; ++c) {
        const A* column = slab.column(c);
        for (std::int64_t r = 0; r < slab.rows; ++r)
          transposed_ ? visit(first + c, r, column[r]) : visit(r, first + c, column[r]);
      }
    });
  }
  /// Some columns of what is stored, packed.
  void read(std::int64_t first, std::int64_t count, A* to) const {
    if (!in_memory()) return fill_(first, count, to);
    for (std::int64_t c = 0; c < count; ++c) std::copy_n(whole_.column(first + c), n_, to + c * n_);
  }
  /// The same matrix, each element made another.
  [[nodiscard]] SlabbedMatrix mapped(std::function<A(A)> element) const {
    return {n_, transposed_, columns_,
            [self = *this, element](std::int64_t first, std::int64_t count, A* to) {
              self.read(first, count, to);
              std::transform(to, to + count * self.n_, to, element);
            }};
  }

  /// The same matrix, its products made by `products`; null: by the host, as before.
  [[nodiscard]] SlabbedMatrix with_products(std::shared_ptr<MatrixProducts<A>> products) const {
    SlabbedMatrix other = *this;
    other.products_ = std::move(products);
    return other;
  }

  /// Whether products are made elsewhere than by the host.
  [[nodiscard]] bool has_products() const noexcept { return products_ != nullptr; }

  /// R ← R − op(A)·X, op(A) being A or, if `adjoint`, its (conjugate) transposed.
  void residual(bool adjoint, MatrixView<const W> x, MatrixView<W> r) const {
    if (x.cols == 0) return;  // no reason to read A
    if (products_) return products_->residual(adjoint, x, r);
    if (!transposed_) return subtract_stored(adjoint, x, r);
    // A = Sᵀ, so A·x is the conjugate of Sᴴ·x̄, and Aᴴ·x that of S·x̄.
    if constexpr (is_complex_v<W>) {
      DenseBlockOf<W> y(x.rows, x.cols);
      for (std::int64_t j = 0; j < x.cols; ++j)
        for (std::int64_t i = 0; i < x.rows; ++i) y.column(j)[i] = std::conj(x(i, j));
      conjugate_all(r);
      subtract_stored(!adjoint, std::as_const(y).view(), r);
      conjugate_all(r);
    } else {
      subtract_stored(!adjoint, x, r);
    }
  }
  /// R ← B − A·X, summed up in double-double and then rounded; one reading of A.
  void residual_dd(MatrixView<const W> b, MatrixView<const W> x, MatrixView<W> r) const {
    if (x.cols == 0) return;
    if (products_) return products_->residual_dd(b, x, r);
    std::vector<LongSums<W>> sums(at(x.cols), LongSums<W>(n_));
    for (std::int64_t c = 0; c < x.cols; ++c)
      for (std::int64_t i = 0; i < n_; ++i) sums[at(c)].set(i, b(i, c));
    for_slabs([&](std::int64_t first, MatrixView<const A> slab) {
      if (transposed_)
        subtract_transposed_dd(slab, x, first, std::span(sums));
      else
        subtract_dd(slab, x.block(first, 0, slab.cols, x.cols), std::span(sums));
    });
    for (std::int64_t c = 0; c < x.cols; ++c)
      for (std::int64_t i = 0; i < n_; ++i) r(i, c) = sums[at(c)].rounded(i);
  }
  /// Y ← Y + |A|·X for X >= 0.
  void add_magnitudes(MatrixView<const double> x, MatrixView<double> y) const {
    if (products_) return products_->add_magnitudes(x, y);
    for_slabs([&](std::int64_t first, MatrixView<const A> slab) {
      if (transposed_)
        add_magnitudes_transposed(slab, x, y.block(first, 0, slab.cols, y.cols));
      else
        strata::add_magnitudes(slab, x.block(first, 0, slab.cols, x.cols), y);
    });
  }

 private:
  [[nodiscard]] static std::shared_ptr<WorkCrew> crew_for(std::int64_t n) {
    constexpr std::int64_t kSmall = 1024;  // of which one thread makes short work
    const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    return std::make_shared<WorkCrew>(n < kSmall ? 0 : cores - 1);
  }
  [[nodiscard]] MatrixView<const A> slab(std::int64_t first, std::int64_t count) const {
    if (!buffer_) buffer_ = std::make_shared<std::vector<A>>(at(n_ * columns_));
    fill_(first, count, buffer_->data());
    return {buffer_->data(), n_, count, std::max<std::int64_t>(n_, 1)};
  }
  void subtract_stored(bool adjoint, MatrixView<const W> x, MatrixView<W> r) const {
    for_slabs([&](std::int64_t first, MatrixView<const A> slab) {
      if (adjoint)
        general_residual(slab, true, x, r.block(first, 0, slab.cols, r.cols));
      else
        general_residual(slab, false, x.block(first, 0, slab.cols, x.cols), r);
    });
  }
  static void conjugate_all(MatrixView<W> v) {
    for (std::int64_t j = 0; j < v.cols; ++j)
      for (std::int64_t i = 0; i < v.rows; ++i) v(i, j) = conjugate<W>(v(i, j));
  }

  std::int64_t n_ = 0;
  std::int64_t columns_ = 1;
  bool transposed_ = false;
  MatrixView<const A> whole_{};
  Fill fill_;
  std::shared_ptr<MatrixProducts<A>> products_;
  std::shared_ptr<WorkCrew> crew_;
  mutable std::shared_ptr<std::vector<A>> buffer_;  // one slab at a time, of all copies
};

}  // namespace strata
