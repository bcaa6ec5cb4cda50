// Entries of the inverse where a factor has entries.
//
// Method: from the last supernode to the first. With Z the inverse, a front's columns J and rows R,
// Y = L₂₁·L₁₁⁻¹:  Z_RJ = −Z_RR·Y,  Z_JJ = (L₁₁·L₁₁ᵀ)⁻¹ − Yᵀ·Z_RJ; Z_RR is known from the front of
// the parent, which holds all of R (Erisman, Tinney, "On computing certain elements of the inverse
// of a sparse matrix", 1975, in blocks). A front's inverse is kept until its last child, which
// comes first, and its first child have been done with it.

#include <cblas.h>

#include <algorithm>
#include <vector>

#include "kernels/blas_host.hpp"
#include "sparse/front_factor.hpp"
#include "sparse/pattern.hpp"

namespace strata {
namespace {

class InversePanels {
 public:
  explicit InversePanels(const FrontFactor& factor) : factor_(factor), a_(factor.analysis()) {}

  std::vector<double> all() {
    const std::int32_t count = a_.supernodes();
    std::vector<std::int64_t> begin(at(count) + 1);
    std::vector<std::int32_t> children(at(count));
    for (std::int32_t s = 0; s < count; ++s) {
      begin[at(s) + 1] = begin[at(s)] + a_.panel_bytes(s) / 8;
      if (a_.parent[at(s)] >= 0) ++children[at(a_.parent[at(s)])];
    }
    std::vector<double> result(at(begin.back()));
    fronts_.resize(at(count));
    for (std::int32_t s = count; s-- > 0;) {
      const std::int64_t order = a_.width(s) + a_.row_count(s);
      const MatrixView<double> z{result.data() + begin[at(s)], order, a_.width(s), order};
      invert(s, z);
      if (children[at(s)] > 0) keep_front(s, z);
      const std::int32_t p = a_.parent[at(s)];
      if (p >= 0 && --children[at(p)] == 0) fronts_[at(p)] = {};
    }
    return result;
  }

 private:
  /// The panel of L, in doubles whatever the factor is in.
  MatrixView<const double> panel_of_factor(std::int32_t s) {
    return factor_.element() == Element::fp64 ? copy_of_panel<double>(s) : copy_of_panel<float>(s);
  }
  template <class T>
  MatrixView<const double> copy_of_panel(std::int32_t s) {
    const std::int64_t w = a_.width(s);
    const std::int64_t order = w + a_.row_count(s);
    panel_.resize(std::max(panel_.size(), at(order * w)));
    const MatrixView<double> p{panel_.data(), order, w, order};
    const auto copy = [&](MatrixView<const T> from, std::int64_t i, std::int64_t j) {
      for (std::int64_t c = 0; c < from.cols; ++c)
        std::copy_n(from.column(c), from.rows, p.column(j + c) + i);
    };
    const FrontUnit& unit = factor_.unit_of(s);
    if (unit.kind == UnitKind::tiled) {
      for (std::int64_t j = 0; j < unit.column_tiles; ++j) {
        for (std::int64_t i = j; i < unit.tiles(); ++i)
          copy(factor_.tile<T>(unit, i, j), unit.cuts[at(i)], unit.cuts[at(j)]);
      }
    } else {
      copy(factor_.panel<T>(s), 0, 0);
    }
    return p;
  }

  /// Z_RR of s, both triangles, from the front of its parent.
  MatrixView<const double> rows_of_parent(std::int32_t s) {
    const std::int64_t r = a_.row_count(s);
    below_.resize(std::max(below_.size(), at(r * r)));
    const MatrixView<double> z{below_.data(), r, r, std::max<std::int64_t>(r, 1)};
    if (r == 0) return z;
    const std::int32_t p = a_.parent[at(s)];
    const std::int64_t order = a_.width(p) + a_.row_count(p);
    const std::vector<std::int32_t> place = relative_indices(a_, s, p);
    for (std::int64_t j = 0; j < r; ++j) {
      const double* from = fronts_[at(p)].data() + place[at(j)] * order;
      double* to = z.column(j);
      for (std::int64_t i = 0; i < r; ++i) to[i] = from[place[at(i)]];
    }
    return z;
  }

  void invert(std::int32_t s, MatrixView<double> z) {
    const std::int64_t w = z.cols;
    const std::int64_t r = z.rows - w;
    const MatrixView<const double> l = panel_of_factor(s);
    const MatrixView<const double> l11 = l.block(0, 0, w, w);
    for (std::int64_t j = 0; j < w; ++j) {  // Z_JJ ← (L₁₁·L₁₁ᵀ)⁻¹
      std::fill_n(z.column(j), z.rows, 0.0);
      z(j, j) = 1;
    }
    const MatrixView<double> own = z.block(0, 0, w, w);
    blas::trsm_by_halves<double>(CblasLeft, CblasNoTrans, l11, own);
    blas::trsm_by_halves<double>(CblasLeft, CblasTrans, l11, own);
    if (r > 0) {
      y_.resize(std::max(y_.size(), at(r * w)));
      const MatrixView<double> y{y_.data(), r, w, r};
      for (std::int64_t j = 0; j < w; ++j) std::copy_n(l.column(j) + w, r, y.column(j));
      blas::trsm<double>(CblasRight, CblasNoTrans, l11, y);
      const MatrixView<double> rows = z.block(w, 0, r, w);
      blas::gemm_minus<double>(CblasNoTrans, CblasNoTrans, r, rows_of_parent(s), y, rows);
      blas::gemm_minus<double>(CblasTrans, CblasNoTrans, r, y, rows, own);
    }
    for (std::int64_t j = 0; j < w; ++j) {  // rounding leaves it nearly symmetric
      for (std::int64_t i = 0; i < j; ++i) own(i, j) = own(j, i);
    }
  }

  /// The front of A⁻¹ of s, both triangles, for its children; Z_RR is still in `below_`.
  void keep_front(std::int32_t s, MatrixView<const double> z) {
    const std::int64_t order = z.rows;
    const std::int64_t w = z.cols;
    std::vector<double>& front = fronts_[at(s)];
    front.resize(at(order * order));
    for (std::int64_t j = 0; j < w; ++j) {
      std::copy_n(z.column(j), order, front.data() + j * order);
      for (std::int64_t i = w; i < order; ++i) front[at(i * order + j)] = z(i, j);
    }
    for (std::int64_t j = w; j < order; ++j)
      std::copy_n(below_.data() + (j - w) * (order - w), order - w, front.data() + j * order + w);
  }

  const FrontFactor& factor_;
  const SparseAnalysis& a_;
  std::vector<std::vector<double>> fronts_;  // by supernode: empty unless children need it
  std::vector<double> panel_, below_, y_;
};

}  // namespace

std::vector<double> inverse_panels(const FrontFactor& factor) {
  return InversePanels(factor).all();
}

}  // namespace strata
