// Columns of a factor and of its inverse.

#include <algorithm>

#include "base/check.hpp"
#include "cholesky/tile_factor.hpp"
#include "kernels/formats_host.hpp"
#include "kernels/gemm.hpp"

namespace strata {

RunReport TileFactor::sum_inverse(std::int64_t first, std::int64_t column_tile,
                                  std::span<double> squares, const ProgressCallback& progress) {
  check_usable(Element::fp64, problem_.n);
  InverseProblem problem;
  problem.n = problem_.n;
  problem.tile = problem_.tile;
  problem.first = first;
  problem.column_tile = column_tile;
  problem.columns = std::ssize(squares);
  problem.precision = problem_.precision;
  problem.formats = problem_.formats;
  problem.devices = problem_.devices;
  problem.rates = problem_.rates;
  problem.factor_identity = problem_.factor_identity;
  problem.points_identity = problem_.points_identity;
  problem.point_dimensions = problem_.point_dimensions;
  const BlockTable blocks = inverse_diagonal(problem).blocks;
  const BlockSource zeros = [](const BlockExtent& x, std::byte* to) {
    std::fill_n(reinterpret_cast<double*>(to), x.rows * x.cols, 0.0);
  };
  MemoryStore store(blocks, {tiles_, std::make_shared<FamilyMemory>(blocks, inverse::kColumns),
                             std::make_shared<FamilyMemory>(blocks, inverse::kSquares, zeros)});
  RunOptions options;
  options.values = {{gemm.name, &scales_}};
  options.what = "inverse";
  options.progress = progress;
  RunReport report = run_use(problem, store, options);
  store.blocks().for_each(inverse::kSquares, [&](BlockId id) {
    const BlockExtent x = store.blocks().extent(id);
    std::copy_n(reinterpret_cast<const double*>(store.lend(id)), x.rows, squares.data() + x.row);
  });
  return report;
}

void TileFactor::copy_columns(std::int64_t first, MatrixView<double> out) {
  check_usable(Element::fp64, out.rows);
  require(first >= 0 && first + out.cols <= problem_.n, ErrorKind::misuse, "cholesky",
          "there are no {} columns from {} on in a factor of order {}", out.cols, first,
          problem_.n);
  bring_home();
  const BlockTable& blocks = planned_.plan->schedule().blocks;
  for (std::int64_t j = 0; j < out.cols; ++j) std::fill_n(out.column(j), out.rows, 0.0);
  std::vector<double> memory;
  for (std::int64_t c = 0; c < blocks.block_cols(kMatrixFamily); ++c) {
    const BlockExtent top = blocks.extent({kMatrixFamily, c, c});
    if (top.col + top.cols <= first || top.col >= first + out.cols) continue;
    for (std::int64_t r = c; r < blocks.block_rows(kMatrixFamily); ++r) {
      const BlockExtent x = blocks.extent({kMatrixFamily, r, c});
      if (blocks.bytes({kMatrixFamily, r, c}) == 0) continue;
      const WideTile<double> tile =
          widened<double>({tiles_->data() + blocks.byte_offset({kMatrixFamily, r, c}), x.rows,
                           x.cols, x.rows, x.row, x.col, blocks.element({kMatrixFamily, r, c})},
                          scales_, memory);
      const std::int64_t end = std::min(x.col + x.cols, first + out.cols);
      for (std::int64_t column = std::max(x.col, first); column < end; ++column) {
        const std::int64_t j = column - x.col;
        for (std::int64_t i = r == c ? j : 0; i < x.rows; ++i)
          out(x.row + i, column - first) = tile.transposed ? tile.view(j, i) : tile.view(i, j);
      }
    }
  }
}

}  // namespace strata
