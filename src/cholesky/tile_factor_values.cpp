// What the tiles of a factor hold, read on the host.

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.hpp"
#include "base/work_crew.hpp"
#include "cholesky/factor_norms.hpp"
#include "cholesky/mixed_tiles.hpp"
#include "cholesky/tile_factor.hpp"
#include "device/device_host.hpp"
#include "kernels/dense/formats_host.hpp"
#include "scalar/complex.hpp"
#include "scalar/dispatch.hpp"

namespace strata {

/// Calls visit(i, j, value) for the elements of a tile on or below the diagonal, column by column.
template <class T, class F>
void TileFactor::visit_tile(std::int64_t r, std::int64_t c, std::vector<T>& memory,
                            F&& visit) const {
  const BlockTable& blocks = this->blocks();
  const BlockId id(kMatrixFamily, r, c);
  if (blocks.bytes(id) == 0) return;
  const BlockExtent x = blocks.extent(id);
  thread_local std::vector<std::byte> packed;
  const BlockView block{tile_at_home(id, packed), x.rows, x.cols, x.rows, x.row, x.col,
                        blocks.element(id)};
  WideTile<T> tile;
  if constexpr (is_complex_v<T>) {  // tiles of few bits are of real matrices
    tile.view = matrix_of<const T>(block);
  } else {
    tile = widened<T>(block, scales_, memory);
  }
  for (std::int64_t j = 0; j < x.cols; ++j) {
    for (std::int64_t i = r == c ? j : 0; i < x.rows; ++i)
      visit(i, j, tile.transposed ? tile.view(j, i) : tile.view(i, j));
  }
}

std::byte* TileFactor::tile_at_home(BlockId id, std::vector<std::byte>& memory) const {
  if (tiles_ != nullptr) return tiles_->data() + blocks().byte_offset(id);
  memory.resize(static_cast<std::size_t>(blocks().bytes(id)));
  stored_->store().read(id, memory.data());
  return memory.data();
}

std::vector<TileNorm> TileFactor::measured_norms() const {
  const BlockTable& blocks = this->blocks();
  const std::int64_t rows = blocks.block_rows(kMatrixFamily);
  std::vector<TileNorm> norms(static_cast<std::size_t>(rows * (rows + 1) / 2));
  if (mixed_.empty()) return norms;
  const FamilyMemory& memory = *mixed_[mixed::kNorms - mixed::kSums];
  const auto* from = reinterpret_cast<const TileNorm*>(memory.data());
  for (std::size_t i = 0; i < norms.size(); ++i) {
    if (memory.written(static_cast<std::int64_t>(i))) norms[i] = from[i];
  }
  return norms;
}

void TileFactor::copy_columns(std::int64_t first, MatrixView<double> out) {
  check_usable(Element::fp64, out.rows);
  require(first >= 0 && first + out.cols <= problem_.n, ErrorKind::misuse, "cholesky",
          "there are no {} columns from {} on in a factor of order {}", out.cols, first,
          problem_.n);
  bring_home();
  const BlockTable& blocks = this->blocks();
  for (std::int64_t j = 0; j < out.cols; ++j) std::fill_n(out.column(j), out.rows, 0.0);
  std::vector<double> memory;
  for (std::int64_t c = 0; c < blocks.block_cols(kMatrixFamily); ++c) {
    const BlockExtent top = blocks.extent({kMatrixFamily, c, c});
    if (top.col + top.cols <= first || top.col >= first + out.cols) continue;
    const std::int64_t left = top.col - first;  // of the tiles, in `out`
    for (std::int64_t r = c; r < blocks.block_rows(kMatrixFamily); ++r) {
      const std::int64_t row = blocks.extent({kMatrixFamily, r, c}).row;
      visit_tile<double>(r, c, memory, [&](std::int64_t i, std::int64_t j, double value) {
        if (left + j >= 0 && left + j < out.cols) out(row + i, left + j) = value;
      });
    }
  }
}

double TileFactor::smallest_pivot() {
  bring_home();
  double smallest = std::numeric_limits<double>::infinity();
  std::vector<double> memory;
  for (std::int64_t k = 0; k * problem_.tile < problem_.n; ++k) {
    visit_tile<double>(k, k, memory, [&](std::int64_t i, std::int64_t j, double value) {
      if (i == j) smallest = std::min(smallest, value * value);
    });
  }
  return smallest;
}

std::vector<TileNorm> TileFactor::block_norms(std::int64_t order) {
  check_usable(Element::fp64, problem_.n);
  auto schedule = std::make_shared<const Schedule>(norms_of_factor(problem_, order));
  const BlockTable& blocks = schedule->blocks;
  MemoryStore store(blocks, {tiles_, std::make_shared<FamilyMemory>(blocks, factor_norms::kNorms)});
  IssueOptions options;
  options.what = "norms";
  run_use(0, schedule, store, options);
  (void)take_report();
  const std::int64_t rows = norm_blocks(problem_.n, order);
  std::vector<TileNorm> norms(static_cast<std::size_t>(rows * (rows + 1) / 2));
  blocks.for_each(factor_norms::kFactor, [&](BlockId id) {
    const BlockExtent x = blocks.extent(id);
    const auto* from =
        reinterpret_cast<const TileNorm*>(store.lend({factor_norms::kNorms, id.row(), id.col()}));
    const std::int64_t count = norm_blocks(x.rows, order) * norm_blocks(x.cols, order);
    for (std::int64_t b = 0; b < count; ++b) {
      const NormBlock block = norm_block(b, x.rows, x.cols, order);
      const std::int64_t r = (x.row + block.row) / order;
      const std::int64_t c = (x.col + block.col) / order;
      if (r < c) continue;
      norms[static_cast<std::size_t>(c * rows - c * (c - 1) / 2 + (r - c))] = from[b];
    }
  });
  return norms;
}

std::vector<double> TileFactor::multiply(const std::vector<double>& v) {
  bring_home();
  const BlockTable& blocks = this->blocks();
  std::vector<double> transposed(v.size(), 0.0);
  std::vector<double> product(v.size(), 0.0);
  // Each piece has elements of the result to itself, in a fixed order: the sums are the same on any
  // number of threads.
  const auto each_element = [&]<class T>(std::type_identity<T>, std::int64_t r, std::int64_t c,
                                         auto&& element) {
    thread_local std::vector<T> memory;
    const BlockExtent x = blocks.extent({kMatrixFamily, r, c});
    visit_tile<T>(r, c, memory, [&](std::int64_t i, std::int64_t j, T value) {
      element(static_cast<std::size_t>(x.row + i), static_cast<std::size_t>(x.col + j),
              static_cast<double>(value));
    });
  };
  WorkCrew crew(describe_host().compute_queues - 1);
  dispatch_native(problem_.precision, [&]<class T>(std::type_identity<T> type) {
    crew.share(blocks.block_cols(kMatrixFamily), [&](std::int64_t c) {
      for (std::int64_t r = c; r < blocks.block_rows(kMatrixFamily); ++r) {
        each_element(type, r, c,
                     [&](std::size_t i, std::size_t j, double l) { transposed[j] += l * v[i]; });
      }
    });
    crew.share(blocks.block_rows(kMatrixFamily), [&](std::int64_t r) {
      for (std::int64_t c = 0; c <= r; ++c) {
        each_element(type, r, c, [&](std::size_t i, std::size_t j, double l) {
          product[i] += l * transposed[j];
        });
      }
    });
  });
  return product;
}

template <class T>
void TileFactor::copy_lower(MatrixView<T> out) {
  bring_home();
  require(element_of<T> == problem_.precision && out.rows == problem_.n && out.cols == problem_.n,
          ErrorKind::misuse, "cholesky", "a factor of order {} in {} does not fit {} by {}",
          problem_.n, to_string(problem_.precision), out.rows, out.cols);
  const BlockTable& blocks = this->blocks();
  for (std::int64_t j = 0; j < out.cols; ++j) std::fill_n(out.column(j), out.rows, T(0));
  std::vector<T> memory;
  for (std::int64_t c = 0; c < blocks.block_cols(kMatrixFamily); ++c) {
    for (std::int64_t r = c; r < blocks.block_rows(kMatrixFamily); ++r) {
      const BlockExtent x = blocks.extent({kMatrixFamily, r, c});
      visit_tile<T>(r, c, memory, [&](std::int64_t i, std::int64_t j, T value) {
        out(x.row + i, x.col + j) = value;
      });
    }
  }
}

template void TileFactor::copy_lower(MatrixView<double>);
template void TileFactor::copy_lower(MatrixView<float>);
template void TileFactor::copy_lower(MatrixView<std::complex<double>>);
template void TileFactor::copy_lower(MatrixView<std::complex<float>>);

}  // namespace strata
