#pragma once
// The steps of front.hpp on the calling thread, which the reference and the host backend share but
// for how a front is factored.
//
// Contract: as front.hpp has it.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/backend/operand.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_sweep.hpp"
#include "scalar/log_sum.hpp"

namespace strata {

/// One update of order r with its places, and the part of it that is there.
template <class T>
struct UpdatePart {
  const T* data = nullptr;
  std::int64_t ld = 1;
  const std::int32_t* places = nullptr;  ///< of its rows in the front
  std::int64_t row = 0;                  ///< of its first element in the update
  std::int64_t col = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
};

/// X ← X + what of U falls into it; X lies at (row, col) of the front.
template <class T>
void add_part(const UpdatePart<T>& u, MatrixView<T> x, std::int64_t row, std::int64_t col) {
  const std::int32_t* row_places = u.places + u.row;
  const std::int32_t* row_end = row_places + u.rows;
  // Lower triangles: where U is no diagonal tile, all of it is below the diagonal.
  const std::int32_t* begin = std::lower_bound(row_places, row_end, row);
  const std::int32_t* end = std::lower_bound(begin, row_end, row + x.rows);
  for (std::int64_t j = 0; j < u.cols; ++j) {
    const std::int64_t target = u.places[u.col + j] - col;
    if (target < 0) continue;
    if (target >= x.cols) break;
    const T* from = u.data + j * u.ld;
    T* to = x.column(target) - row;
    std::int64_t i = begin - row_places;
    if (u.row + i < u.col + j) i = u.col + j - u.row;
    const std::int64_t last = end - row_places;
    for (; i < last; ++i) to[row_places[i]] += from[i];
  }
}

template <class T>
void scatter(MatrixView<T> x, std::int64_t count, const T* values, const std::int32_t* places) {
  std::fill_n(x.data, x.rows * x.cols, T{0});
  for (std::int64_t k = 0; k < count; ++k) x.data[places[k]] = values[k];
}

template <class T>
void add_updates(const BlockView* x, std::uint32_t variant) {
  const auto target = matrix_of<T>(x[0]);
  const auto* list = static_cast<const std::int32_t*>(x[2].data);
  const std::int64_t count = *list++;
  const std::int64_t begin = *list++;
  const std::int32_t* places = list + count;
  const auto* data = static_cast<const T*>(x[1].data);
  if ((variant & kTileOfUpdate) != 0) {
    add_part<T>({data, x[1].ld, places, x[1].row - begin, x[1].col - begin, x[1].rows, x[1].cols},
                target, x[0].row, x[0].col);
    return;
  }
  for (std::int64_t k = 0; k < count; ++k) {
    const std::int64_t r = list[k];
    add_part<T>({data, r, places, 0, 0, r, r}, target, x[0].row, x[0].col);
    data += r * r;
    places += r;
  }
}

// Factors, below, is how a backend factors a panel P ((w + r) × w), and what it subtracts of an
// update then: of the columns of P₂·P₂ᵀ from `first` on, r × cols of U, at and below the diagonal.
//   static PivotStatus panel(MatrixView<T> p);
//   static void update(MatrixView<T> below, std::int64_t first, MatrixView<T> u);

/// Factors a panel P ((w + r) × w) and subtracts P₂·P₂ᵀ from the lower triangle of U (r × r).
template <class T, class Factors>
PivotStatus factor_front_by(MatrixView<T> p, MatrixView<T> u) {
  const PivotStatus status = Factors::panel(p);
  if (status.bad_column < 0 && u.rows > 0)
    Factors::update(p.block(p.cols, 0, u.rows, p.cols), 0, u);
  return status;
}

/// The fronts of a branch that has a program, one after another.
template <class T, class Factors>
class ProgramFronts {
 public:
  ProgramFronts(const BlockView* x, const std::int32_t* program) : x_(x) {
    std::memcpy(&program_, program, sizeof program_);
  }

  PivotStatus run() {
    PivotStatus total;
    logarithms_ = LogSum();
    // Solves on the host need none.
    std::fill_n(data<T>(0) + program_.first_inverse, program_.inverses * kDiagonalInverses, T{0});
    for (std::int64_t f = 0; f < program_.fronts; ++f) {
      FrontRecord front;
      std::memcpy(&front, structure() + program_.records + f * kFrontRecord, sizeof front);
      const PivotStatus status = perform(front);
      if (status.bad_column >= 0) {
        total.bad_column = front.column + status.bad_column;
        total.bad_pivot = status.bad_pivot;
        return total;
      }
    }
    total.log_determinant = logarithms_.whole();
    total.log_fraction = logarithms_.fraction();
    return total;
  }

 private:
  template <class E>
  [[nodiscard]] E* data(int operand) const {
    return static_cast<E*>(x_[operand].data);
  }
  [[nodiscard]] const std::int32_t* structure() const { return data<const std::int32_t>(4); }
  /// The memory of an update.
  [[nodiscard]] T* place(std::int32_t number) const {
    if (number >= 0) return data<T>(5 + number);
    return data<T>(number == -1 ? 1 : 0);
  }

  /// The tile columns of a front that are made here.
  PivotStatus perform(const FrontRecord& front) {
    const FrontTiles tiles{front.width, front.rows};
    const std::int64_t order = std::int64_t{front.width} + front.rows;
    T* panel = front.panel_place == 0 ? data<T>(0) : place(front.panel_place);
    const MatrixView<T> p{panel + front.panel, order, front.width, front.ld};
    const bool has_panel = front.first_tile < tiles.across();
    const std::int64_t first =
        tiles.begin(std::max(front.first_tile, tiles.across())) - front.width;
    const std::int64_t last = tiles.begin(std::max(front.last_tile, tiles.across())) - front.width;
    const std::int64_t columns = last - first;
    update_.assign(static_cast<std::size_t>(front.rows * columns), T{0});
    const MatrixView<T> u{update_.data(), front.rows, columns,
                          std::max<std::int64_t>(front.rows, 1)};
    if (has_panel) std::fill_n(p.data, p.ld * p.cols, T{0});
    put_entries(front, p, first, u);
    for (std::int64_t c = 0; c < front.child_count; ++c) {
      ChildRecord child;
      std::memcpy(&child, structure() + front.children + c * kChildRecord, sizeof child);
      add_child(child, has_panel, p, first, u);
    }
    const PivotStatus status = has_panel ? Factors::panel(p) : PivotStatus{};
    if (status.bad_column >= 0) return status;
    for (std::int64_t j = 0; has_panel && j < front.width; ++j)
      logarithms_.add(2 * std::log(static_cast<double>(p(j, j))));
    if (columns == 0) return status;
    Factors::update(p.block(front.width, 0, front.rows, front.width), first, u);
    T* to = place(front.place) + front.update;
    for (std::int64_t b = 0; b < columns; ++b) {
      const auto column = static_cast<std::int32_t>(first + b);
      std::copy_n(&u(column, b), front.rows - column,
                  to + update_column(front.ld_update, front.step, column) + column);
    }
    return status;
  }

  void put_entries(const FrontRecord& front, MatrixView<T> p, std::int64_t first,
                   MatrixView<T> u) const {
    const auto* values = data<const T>(3);
    const T shift = values[x_[3].rows - 1];
    const std::int32_t* places = structure() + front.entries;
    const std::int32_t* sources = places + front.entry_count;
    for (std::int64_t e = 0; e < front.entry_count; ++e) {
      const std::int64_t i = places[e] % p.ld;
      const std::int64_t j = places[e] / p.ld;
      T& to = j < p.cols ? p(i, j) : u(i - p.cols, j - p.cols - first);
      to = (sources[e] < 0 ? T{0} : values[sources[e]]) + (i == j ? shift : T{0});
    }
  }

  void add_child(const ChildRecord& child, bool has_panel, MatrixView<T> p, std::int64_t first,
                 MatrixView<T> u) const {
    const T* from = place(child.place) + child.update;
    const std::int32_t* places = structure() + child.places;
    for (std::int32_t b = child.first_column; b < child.last_column; ++b) {
      const T* column = from + update_column(child.ld_update, kFrontTile, b);
      const std::int64_t j = places[b] - p.cols - first;
      const bool in_panel = places[b] < p.cols;
      if (in_panel ? !has_panel : j < 0 || j >= u.cols) continue;
      T* to = in_panel ? p.column(places[b]) : u.column(j) - p.cols;
      for (std::int32_t a = b; a < child.rows; ++a) to[places[a]] += column[a];
    }
  }

  const BlockView* x_;
  BranchProgram program_{};
  std::vector<T> update_;
  LogSum logarithms_;
};

/// All supernodes of a branch, from the first to the last.
template <class T, class Factors>
PivotStatus factor_supernodes(const BlockView* x) {
  auto* panel = static_cast<T*>(x[0].data);
  auto* outside = static_cast<T*>(x[1].data);
  const auto* values = static_cast<const T*>(x[3].data);
  const auto* structure = static_cast<const std::int32_t*>(x[4].data);
  auto* work = static_cast<T*>(x[5].data);
  struct Pending {
    const T* update;
    std::int64_t rows;
    const std::int32_t* places;
  };
  std::vector<Pending> pending;
  PivotStatus total;
  std::int64_t columns = 0;
  BranchHeader header;
  std::memcpy(&header, structure, sizeof header);
  if (header.program != 0) return ProgramFronts<T, Factors>(x, structure + header.program).run();
  structure += kBranchHeader;
  for (std::int64_t k = 0; k < header.supernodes; ++k) {
    BranchStructure s;
    std::memcpy(&s, structure, sizeof s);
    const std::int32_t* places = structure + kBranchRecord;
    const std::int32_t* rows = places + s.entries;
    structure = rows + (s.inside != 0 ? s.rows : 0);
    T* update = (s.inside != 0 ? work : outside) + s.offset;
    const std::int64_t order = std::int64_t{s.width} + s.rows;
    const MatrixView<T> p{panel + s.panel, order, s.width, order};
    const MatrixView<T> u{update, s.rows, s.rows, std::max<std::int64_t>(s.rows, 1)};
    scatter<T>(p, s.entries, values, places);
    values += s.entries;
    std::fill_n(update, u.ld * u.cols, T{0});
    const std::size_t first = pending.size() - static_cast<std::size_t>(s.children);
    for (std::size_t c = first; c < pending.size(); ++c) {
      const Pending& child = pending[c];
      const UpdatePart<T> part{child.update, child.rows, child.places, 0, 0,
                               child.rows,   child.rows};
      add_part<T>(part, p, 0, 0);
      add_part<T>(part, u, s.width, s.width);
    }
    pending.resize(first);
    const PivotStatus status = factor_front_by<T, Factors>(p, u);
    if (status.bad_column >= 0) {
      total.bad_column = static_cast<double>(columns) + status.bad_column;
      total.bad_pivot = status.bad_pivot;
      return total;
    }
    total.log_determinant += status.log_determinant;
    if (s.inside != 0) pending.push_back({update, s.rows, rows});
    columns += s.width;
  }
  return total;
}

/// The first of the devices makes the front, for all; the others have nothing to do.
template <class T, class Factors>
void share_a_front(const BlockView* x, const SharedCall& call, int operands) {
  if (call.phase != SharePhase::work || call.rank != 0) return;
  *status_of(x[2]) = factor_supernodes<T, Factors>(x);
  // What a task writes, in the order in which others' operands are: work memory is for each alone.
  constexpr int kWritten[] = {0, 1, 2};
  const auto copy = [](const BlockView& from, const BlockView& to) {
    std::memcpy(to.data, from.data,
                static_cast<std::size_t>(from.rows * from.cols * bytes_of(from.element)));
  };
  for (int other = 0; other + 1 < call.sharers; ++other) {
    const BlockView* there = x + call.first_of(other, operands);
    for (const int k : kWritten) copy(x[k], there[k]);
    for (int k = 4; k < call.written; ++k) copy(x[factor_shared.operands + k - 4], there[k]);
  }
}

/// The kernels of a backend that runs on the host.
template <class T, class Factors>
FrontKernels front_kernels() {
  FrontKernels k;
  k.scatter_entries = [](Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
    require_variant(scatter_entries, p.variant, 0);
    submit_each(queue, calls, [](const BlockView* x) {
      scatter<T>(matrix_of<T>(x[0]), x[1].rows, static_cast<const T*>(x[1].data),
                 static_cast<const std::int32_t*>(x[2].data));
    });
  };
  k.clear_block = [](Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
    require_variant(clear_block, p.variant, 0);
    submit_each(queue, calls,
                [](const BlockView* x) { scatter<T>(matrix_of<T>(x[0]), 0, nullptr, nullptr); });
  };
  k.add_update = [](Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
    require_variant(add_update, p.variant, kTileOfUpdate);
    submit_each(queue, calls,
                [variant = p.variant](const BlockView* x) { add_updates<T>(x, variant); });
  };
  k.factor_front = [](Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
    require_variant(factor_front, p.variant, 0);
    submit_each(queue, calls, [](const BlockView* x) {
      *status_of(x[2]) = factor_front_by<T, Factors>(matrix_of<T>(x[0]), matrix_of<T>(x[1]));
    });
  };
  k.factor_branch = [](Queue& queue, const KernelCalls& calls, const KernelParameters&) {
    submit_each(queue, calls,
                [](const BlockView* x) { *status_of(x[2]) = factor_supernodes<T, Factors>(x); });
  };
  k.factor_shared = [](Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
    submit_each(queue, calls, [variant = p.variant, operands = calls.operands](const BlockView* x) {
      if (variant == 0)
        *status_of(x[2]) = factor_supernodes<T, Factors>(x);
      else
        share_a_front<T, Factors>(x, SharedCall::of(variant), operands);
    });
  };
  k.sweep_branch = [](Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
    require_variant(sweep_branch, p.variant % kSweepGiven, kSweepForward | kSweepBackward);
    submit_each(queue, calls, [variant = p.variant, operands = calls.operands](const BlockView* x) {
      sweep_with_rows<T>(x, operands, variant, false);
    });
  };
  k.sweep_range = [](Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
    require_variant(sweep_range, p.variant % kSweepGiven, kSweepForward | kSweepBackward);
    submit_each(queue, calls, [variant = p.variant, operands = calls.operands](const BlockView* x) {
      sweep_with_rows<T>(x, operands, variant, true);
    });
  };
  k.take_rows = [](Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
    require_variant(take_rows, p.variant, 0);
    submit_each(queue, calls, [](const BlockView* x) { take_rows_of<T>(x); });
  };
  k.put_rows = [](Queue& queue, const KernelCalls& calls, const KernelParameters& p) {
    require_variant(put_rows, p.variant, 0);
    submit_each(queue, calls, [](const BlockView* x) { put_rows_of<T>(x); });
  };
  return k;
}

}  // namespace strata
