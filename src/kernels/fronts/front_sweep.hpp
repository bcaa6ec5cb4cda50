#pragma once
// Triangular solves with a branch, on the calling thread.
//
// Contract: sweep_branch and sweep_range as front.hpp has them. What rows below a front's columns
// get, and give, lies in the work memory: rows of updates one after the other, m numbers each.

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_program.hpp"

namespace strata {

template <class T>
class BranchSweep {
 public:
  /// `range`: X has all rows of the matrix.
  explicit BranchSweep(const BlockView* x, bool range = false)
      : x_(static_cast<T*>(x[0].data)),
        m_(x[0].rows),
        panels_(static_cast<const T*>(x[1].data)),
        structure_(static_cast<const std::int32_t*>(x[2].data)),
        below_(static_cast<T*>(x[3].data)) {
    BranchHeader head;
    std::memcpy(&head, structure_, sizeof head);
    BranchProgram program;
    std::memcpy(&program, structure_ + head.program, sizeof program);
    if (range) x_ += program.first_column * m_;
    fronts_.resize(static_cast<std::size_t>(program.fronts));
    std::memcpy(fronts_.data(), structure_ + program.records, fronts_.size() * sizeof(FrontRecord));
  }

  void run(bool forward) {
    if (forward) {
      for (const FrontRecord& front : fronts_) go_forward(front);
    } else {
      for (std::size_t f = fronts_.size(); f-- > 0;) go_backward(fronts_[f]);
    }
  }

 private:
  [[nodiscard]] T* own(const FrontRecord& f) const { return x_ + f.column * m_; }
  [[nodiscard]] T* below(const FrontRecord& f) const { return below_ + f.rows_before * m_; }
  /// Row `row` of a front: of X, or of what is below.
  [[nodiscard]] T* row_of(const FrontRecord& f, std::int64_t row) const {
    return row < f.width ? own(f) + row * m_ : below(f) + (row - f.width) * m_;
  }

  void go_forward(const FrontRecord& f) {
    const std::int64_t taken = std::max<std::int64_t>(f.own - f.width, 0);
    if (f.own == 0) std::fill_n(own(f), f.width * m_, T{0});
    std::copy_n(own(f) + f.width * m_, taken * m_, below(f));
    std::fill_n(below(f) + taken * m_, (f.rows - taken) * m_, T{0});
    for (std::int32_t c = 0; c < f.child_count; ++c) {
      ChildRecord child;
      std::memcpy(&child, structure_ + f.children + c * kChildRecord, sizeof child);
      if (!child.gives_rows()) continue;
      for (std::int64_t k = 0; k < child.rows; ++k) {
        const T* from = below_ + (child.rows_before + k) * m_;
        T* to = row_of(f, structure_[child.places + k]);
        for (std::int64_t r = 0; r < m_; ++r) to[r] += from[r];
      }
    }
    for (std::int64_t j = 0; j < f.width; ++j) {
      const T* l = panels_ + f.panel + j * f.ld;
      T* x = own(f) + j * m_;
      for (std::int64_t r = 0; r < m_; ++r) x[r] /= l[j];
      subtract_products(x + m_, l + j + 1, f.width - j - 1, x);
      subtract_products(below(f), l + f.width, f.rows, x);
    }
  }

  /// Y ← Y − l·xᵀ, of `count` rows.
  void subtract_products(T* y, const T* l, std::int64_t count, const T* x) const {
    if (m_ == 1) {
      for (std::int64_t i = 0; i < count; ++i) y[i] -= l[i] * x[0];
      return;
    }
    for (std::int64_t i = 0; i < count; ++i, y += m_)
      for (std::int64_t r = 0; r < m_; ++r) y[r] -= l[i] * x[r];
  }

  /// x ← x − Yᵀ·l, of `count` rows.
  void subtract_sum(T* x, const T* l, std::int64_t count, const T* y) const {
    if (m_ == 1) {
      // Sums that do not wait for each other.
      T sum[4] = {};
      std::int64_t i = 0;
      for (; i + 4 <= count; i += 4)
        for (std::int64_t k = 0; k < 4; ++k) sum[k] += l[i + k] * y[i + k];
      for (; i < count; ++i) sum[0] += l[i] * y[i];
      x[0] -= (sum[0] + sum[1]) + (sum[2] + sum[3]);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i, y += m_)
      for (std::int64_t r = 0; r < m_; ++r) x[r] -= l[i] * y[r];
  }

  void go_backward(const FrontRecord& f) {
    for (std::int64_t k = 0; k < f.rows; ++k) {
      const std::int32_t place = structure_[f.places + k];
      const T* from = f.parent < 0 ? x_ + place * m_
                                   : row_of(fronts_[static_cast<std::size_t>(f.parent)], place);
      std::copy_n(from, m_, below(f) + k * m_);
    }
    const FrontTiles tiles{f.width, f.rows, f.later};
    for (std::int64_t j = f.width; j-- > 0;) {
      const T* l = panels_ + f.panel + j * f.ld;
      T* x = own(f) + j * m_;
      for (std::int32_t i = tiles.count(); i-- > static_cast<std::int32_t>(j) / kFrontTile;) {
        const std::int64_t begin = std::max<std::int64_t>(tiles.begin(i), j + 1);
        subtract_sum(x, l + begin, tiles.begin(i + 1) - begin, row_of(f, begin));
      }
      for (std::int64_t r = 0; r < m_; ++r) x[r] /= l[j];
    }
  }

  T* x_;
  std::int64_t m_;
  const T* panels_;
  const std::int32_t* structure_;
  T* below_;
  std::vector<FrontRecord> fronts_;
};

/// sweep_branch, or where X has all rows of the matrix sweep_range, of a call with so many
/// operands.
template <class T>
void sweep_with_rows(const BlockView* x, int operands, std::uint32_t variant, bool range) {
  const std::int64_t m = x[0].rows;
  const bool forward = (variant & kSweepForward) != 0;
  T* below = static_cast<T*>(x[3].data);
  const int end_of_given = 4 + static_cast<int>(variant / kSweepGiven);
  for (int k = end_of_given; k < operands && forward; ++k)
    std::copy_n(static_cast<const T*>(x[k].data), x[k].rows * x[k].cols, below + x[k].col * m);
  BranchSweep<T>(x, range).run(forward);
  for (int k = 4; k < end_of_given; ++k)
    std::copy_n(below + x[k].row * m, x[k].rows * x[k].cols, static_cast<T*>(x[k].data));
}

/// The columns of B for take_rows and put_rows: how many there are, and their leading dimension.
struct ColumnsOfRows {
  std::int64_t count;
  std::int64_t ld;
  /// n: of the rows of X. Shorter columns are those of a packed matrix that was cut otherwise.
  ColumnsOfRows(const BlockView& b, std::int64_t n)
      : count(b.rows < n ? b.rows * b.cols / n : b.cols), ld(b.rows < n ? n : b.ld) {}
};

/// take_rows: calls each(element of X, element of B, which is null where B has none).
template <class T, class Each>
void for_rows_in_order(const BlockView& x, const BlockView& b, const BlockView& order,
                       const Each& each) {
  const ColumnsOfRows columns(b, x.cols);
  const auto* list = static_cast<const std::int32_t*>(order.data);
  for (std::int64_t i = 0; i < x.cols; ++i) {
    T* column = static_cast<T*>(x.data) + i * x.rows;
    T* row = static_cast<T*>(b.data) + (order.rows > 0 ? list[i] : i);
    for (std::int64_t r = 0; r < x.rows; ++r)
      each(column[r], r < columns.count ? row + r * columns.ld : nullptr);
  }
}
template <class T>
void take_rows_of(const BlockView* x) {
  for_rows_in_order<T>(x[0], x[1], x[2],
                       [](T& here, const T* there) { here = there != nullptr ? *there : T{0}; });
}
template <class T>
void put_rows_of(const BlockView* x) {
  for_rows_in_order<T>(x[1], x[0], x[2], [](const T& here, T* there) {
    if (there != nullptr) *there = here;
  });
}

}  // namespace strata
