#include "sparse/fronts/inverse_panels.hpp"

#include <cblas.h>
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/host_memory.hpp"
#include "kernels/backend/blas_host.hpp"
#include "sparse/fronts/work_places.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

/// Columns that are inverted together, and of which Z_RR is gathered together. It decides the order
/// of sums: a constant.
constexpr std::int64_t kColumns = 256;

std::int64_t order_of(const SparseAnalysis& a, std::int32_t s) {
  return a.width(s) + a.row_count(s);
}

/// The panel of L, in doubles whatever the factor is in.
template <class T>
void copy_panel(const FrontFactor& factor, std::int32_t s, MatrixView<double> to) {
  const auto copy = [&](MatrixView<const T> from, std::int64_t i, std::int64_t j) {
    for (std::int64_t c = 0; c < from.cols; ++c)
      std::copy_n(from.column(c), from.rows, to.column(j + c) + i);
  };
  const FrontUnit& unit = factor.unit_of(s);
  if (unit.kind != UnitKind::tiled) return copy(factor.panel<T>(s), 0, 0);
  for (std::int64_t j = 0; j < unit.column_tiles; ++j) {
    for (std::int64_t i = j; i < unit.tiles(); ++i)
      copy(factor.tile<T>(unit, i, j), unit.cuts[at(i)], unit.cuts[at(j)]);
  }
}

/// F ← F − G·Y for the lower triangle G of a symmetric matrix, of which G holds columns from number
/// `first` on, from their diagonal block down; that block is given with both triangles.
void subtract_symmetric(MatrixView<const double> g, std::int64_t first, MatrixView<const double> y,
                        MatrixView<double> f) {
  const std::int64_t n = g.cols;
  const std::int64_t below = g.rows - n;
  blas::gemm_minus<double>(CblasNoTrans, CblasNoTrans, n, g, y.block(first, 0, n, y.cols),
                           f.block(first, 0, g.rows, f.cols));
  if (below == 0) return;
  blas::gemm_minus<double>(CblasTrans, CblasNoTrans, below, g.block(n, 0, below, n),
                           y.block(first + n, 0, below, y.cols), f.block(first, 0, n, f.cols));
}

/// The first supernode that needs the panel of each: the last one to be done. Its own number: none.
std::vector<std::int32_t> last_needs(const SparseAnalysis& a,
                                     const std::vector<std::int32_t>& owner) {
  std::vector<std::int32_t> need(at(a.supernodes()));
  for (std::int32_t s = a.supernodes(); s-- > 0;) {
    need[at(s)] = s;
    for (const std::int32_t row : a.rows(s)) need[at(owner[at(row)])] = s;
  }
  return need;
}

}  // namespace

InversePanels::InversePanels(const SparseAnalysis& analysis) : a_(analysis) {
  const std::int32_t count = a_.supernodes();
  owner_.resize(a_.order.size());
  for (std::int32_t s = 0; s < count; ++s)
    std::fill(owner_.begin() + a_.first[at(s)], owner_.begin() + a_.first[at(s) + 1], s);
  std::vector<std::vector<std::int32_t>> ends(at(count));  // of whom others have no more need
  const std::vector<std::int32_t> need = last_needs(a_, owner_);
  for (std::int32_t s = 0; s < count; ++s) ends[at(need[at(s)])].push_back(s);
  place_.resize(at(count));
  WorkPlaces places;
  for (std::int32_t s = count; s-- > 0;) {
    const std::int64_t order = order_of(a_, s);
    const std::int64_t r = a_.row_count(s);
    place_[at(s)] = places.take(s, order * a_.width(s));
    for (const std::int32_t p : ends[at(s)]) places.give_back(p);
    product_ = std::max(product_, order * std::min(a_.width(s), kColumns));
    gathered_ = std::max(gathered_, r * std::min(r, kColumns));
    rows_ = std::max(rows_, r);
  }
  panels_ = places.peak();
}

std::int64_t InversePanels::bytes() const {
  const std::int64_t elements = panels_ + product_ + gathered_ + kColumns * kColumns;
  return elements * std::int64_t{sizeof(double)} +
         std::ssize(place_) * std::int64_t{sizeof place_[0]} +
         (std::ssize(owner_) + rows_) * std::int64_t{sizeof owner_[0]};
}

MatrixView<double> InversePanels::panel(std::int32_t s) {
  const std::int64_t order = order_of(a_, s);
  return {z_.data() + place_[at(s)], order, a_.width(s), order};
}

void InversePanels::run(const FrontFactor& factor, const Visit& visit) try {
  factor.begin_inverse();
  z_.resize(at(panels_));
  f_.resize(at(product_));
  rr_.resize(at(gathered_));
  own_.resize(at(kColumns * kColumns));
  in_ancestor_.resize(at(rows_));
  for (std::int32_t s = a_.supernodes(); s-- > 0;) {
    factor.element() == Element::fp64 ? copy_panel<double>(factor, s, panel(s))
                                      : copy_panel<float>(factor, s, panel(s));
    invert(s);
    visit(s, panel(s));
  }
} catch (const std::bad_alloc&) {
  fail(ErrorKind::memory, "factor", "the system refused {} of host memory; {} are free",
       format_bytes(bytes()), format_bytes(available_host_memory()));
}

/// L becomes Z, column by column from the last ones on: those behind are rows below like others.
void InversePanels::invert(std::int32_t s) {
  const std::int64_t w = a_.width(s);
  for (std::int64_t first = (w - 1) / kColumns * kColumns; first >= 0; first -= kColumns)
    invert_columns(s, first, std::min(first + kColumns, w));
}

void InversePanels::invert_columns(std::int32_t s, std::int64_t first, std::int64_t last) {
  const MatrixView<double> z = panel(s);
  const std::int64_t n = last - first;
  const std::int64_t below = z.rows - last;
  const MatrixView<double> own = z.block(first, first, n, n);  // L_JJ, then Z_JJ
  const MatrixView<double> y = z.block(last, first, below, n);
  const MatrixView<double> inverse{own_.data(), n, n, n};
  for (std::int64_t j = 0; j < n; ++j) {
    std::fill_n(inverse.column(j), n, 0.0);
    inverse(j, j) = 1;
  }
  blas::trsm_by_halves<double>(CblasLeft, CblasNoTrans, own, inverse);
  blas::trsm_by_halves<double>(CblasLeft, CblasTrans, own, inverse);
  if (below > 0) {
    blas::trsm<double>(CblasRight, CblasNoTrans, own, y);
    const MatrixView<double> f{f_.data(), below, n, below};
    std::fill_n(f_.data(), below * n, 0.0);
    for (std::int64_t k = last; k < z.cols; k += kColumns) {
      const std::int64_t columns = std::min(kColumns, z.cols - k);
      subtract_symmetric(z.block(k, k, z.rows - k, columns), k - last, y, f);
    }
    multiply_by_ancestors(s, y, f);
    blas::gemm_minus<double>(CblasTrans, CblasNoTrans, below, y, f, inverse);
    for (std::int64_t j = 0; j < n; ++j) std::copy_n(f.column(j), below, y.column(j));
  }
  for (std::int64_t j = 0; j < n; ++j) {  // rounding leaves it nearly symmetric
    for (std::int64_t i = j; i < n; ++i) own(i, j) = own(j, i) = inverse(i, j);
  }
}

void InversePanels::multiply_by_ancestors(std::int32_t s, MatrixView<const double> y,
                                          MatrixView<double> f) {
  const std::int64_t r = a_.row_count(s);
  for (std::int64_t first = 0; first < r; first += kColumns) {
    const std::int64_t last = std::min(first + kColumns, r);
    const MatrixView<double> g{rr_.data(), r - first, last - first, r - first};
    gather(s, first, last, g);
    subtract_symmetric(g, f.rows - r + first, y, f);
  }
}

/// Z of rows `first` … of s, in the columns of rows `first` … `last`; of the block on the diagonal
/// both triangles.
void InversePanels::gather(std::int32_t s, std::int64_t first, std::int64_t last,
                           MatrixView<double> to) {
  const auto rows = a_.rows(s);
  for (std::int64_t k = first; k < last;) {
    const std::int32_t p = owner_[at(rows[at(k)])];
    const std::int32_t begin = a_.first[at(p)];
    const std::int32_t end = a_.first[at(p) + 1];
    const MatrixView<const double> z = panel(p);
    find_places(s, k, p);
    for (const std::int64_t from = k; k < last && rows[at(k)] < end; ++k) {
      const double* column = z.column(rows[at(k)] - begin);
      double* out = to.column(k - first) - first;
      for (std::int64_t i = k; i < std::ssize(rows); ++i)
        out[i] = column[in_ancestor_[at(i - from)]];
    }
  }
  for (std::int64_t j = 0; j < to.cols; ++j) {
    for (std::int64_t i = 0; i < j; ++i) to(i, j) = to(j, i);
  }
}

/// Where rows k … of s lie in the panel of the ancestor among whose columns row k is.
void InversePanels::find_places(std::int32_t s, std::int64_t k, std::int32_t ancestor) {
  const auto rows = a_.rows(s).subspan(at(k));
  const auto above = a_.rows(ancestor);
  const std::int32_t begin = a_.first[at(ancestor)];
  const std::int32_t end = a_.first[at(ancestor) + 1];
  std::size_t i = 0;
  for (; i < rows.size() && rows[i] < end; ++i) in_ancestor_[i] = rows[i] - begin;
  for (std::size_t found = 0; i < rows.size(); ++i, ++found) {
    // Mostly they follow each other; else by steps that double, then by halves.
    std::size_t step = 1;
    while (found + step < above.size() && above[found + step - 1] < rows[i]) step *= 2;
    const auto from = above.begin() + static_cast<std::ptrdiff_t>(found + step / 2);
    const auto to =
        above.begin() + static_cast<std::ptrdiff_t>(std::min(found + step, above.size()));
    found = static_cast<std::size_t>(std::lower_bound(from, to, rows[i]) - above.begin());
    in_ancestor_[i] = end - begin + static_cast<std::int32_t>(found);
  }
}

std::int64_t inverse_bytes(const SparseAnalysis& analysis) {
  return InversePanels(analysis).bytes() +
         std::ssize(analysis.order) * std::int64_t{sizeof(double)};
}

std::string beside_factor(const SparseAnalysis& analysis, bool inverse) {
  if (!inverse) return {};
  return fmt::format(", with entries of its inverse (beside L they take {})",
                     format_bytes(inverse_bytes(analysis)));
}

std::vector<double> inverse_diagonal(const FrontFactor& factor) {
  const SparseAnalysis& a = factor.analysis();
  std::vector<double> diagonal(a.order.size());
  InversePanels(a).run(factor, [&](std::int32_t s, MatrixView<const double> panel) {
    for (std::int64_t j = 0; j < panel.cols; ++j)
      diagonal[at(a.order[at(a.first[at(s)] + j)])] = std::scalbn(panel(j, j), -factor.exponent());
  });
  return diagonal;
}

void for_selected_inverse(const FrontFactor& factor,
                          const std::function<void(const SelectedPanel&)>& visit) {
  const SparseAnalysis& a = factor.analysis();
  std::vector<std::int32_t> rows;
  std::vector<double> scaled;  // of A, where the factor is that of a power of two times A
  InversePanels(a).run(factor, [&](std::int32_t s, MatrixView<const double> panel) {
    if (factor.exponent() != 0) {
      scaled.clear();
      for (std::int64_t j = 0; j < panel.cols; ++j)
        for (std::int64_t i = 0; i < panel.rows; ++i)
          scaled.push_back(std::scalbn(panel(i, j), -factor.exponent()));
      panel = {scaled.data(), panel.rows, panel.cols, panel.rows};
    }
    rows.assign(a.order.begin() + a.first[at(s)], a.order.begin() + a.first[at(s) + 1]);
    for (const std::int32_t row : a.rows(s)) rows.push_back(a.order[at(row)]);
    visit({rows, panel});
  });
}

SelectedInverse selected_inverse(const FrontFactor& factor) {
  const SparseAnalysis& a = factor.analysis();
  SelectedInverse z;
  z.rows = z.cols = std::ssize(a.order);
  z.start.assign(at(z.rows) + 1, 0);
  for (std::int32_t s = 0; s < a.supernodes(); ++s) {
    const std::int64_t order = order_of(a, s);
    for (std::int64_t j = 0; j < a.width(s); ++j)
      z.start[at(a.order[at(a.first[at(s)] + j)]) + 1] += order;
    for (const std::int32_t row : a.rows(s)) z.start[at(a.order[at(row)]) + 1] += a.width(s);
  }
  std::partial_sum(z.start.begin(), z.start.end(), z.start.begin());
  z.column.resize(at(z.start.back()));
  z.value.resize(at(z.start.back()));
  std::vector<std::int64_t> next(z.start.begin(), z.start.end() - 1);
  for_selected_inverse(factor, [&](const SelectedPanel& panel) {
    const auto put = [&](std::int32_t row, std::int32_t column, double value) {
      const std::size_t place = at(next[at(row)]++);
      z.column[place] = column;
      z.value[place] = value;
    };
    for (std::int64_t j = 0; j < panel.values.cols; ++j) {
      for (std::int64_t i = j; i < panel.values.rows; ++i) {
        put(panel.rows[at(i)], panel.rows[at(j)], panel.values(i, j));
        if (i > j) put(panel.rows[at(j)], panel.rows[at(i)], panel.values(i, j));
      }
    }
  });
  std::vector<std::pair<std::int32_t, double>> row;
  for (std::int64_t i = 0; i < z.rows; ++i) {
    row.clear();
    for (std::int64_t k = z.start[at(i)]; k < z.start[at(i) + 1]; ++k)
      row.emplace_back(z.column[at(k)], z.value[at(k)]);
    std::sort(row.begin(), row.end(),
              [](const auto& x, const auto& y) { return x.first < y.first; });
    for (std::size_t k = 0; k < row.size(); ++k) {
      z.column[at(z.start[at(i)]) + k] = row[k].first;
      z.value[at(z.start[at(i)]) + k] = row[k].second;
    }
  }
  return z;
}

}  // namespace strata
