// Columns of the inverse of a factor.

#include <algorithm>

#include "cholesky/tile_factor.hpp"
#include "kernels/dense/gemm.hpp"

namespace strata {

RunReport TileFactor::sum_inverse(std::int64_t first, std::int64_t column_tile,
                                  std::span<double> squares, const ProgressCallback& progress) {
  check_usable(Element::fp64, problem_.n);
  InverseProblem problem;
  describe_factor(problem_, problem);
  problem.first = first;
  problem.column_tile = column_tile;
  problem.columns = std::ssize(squares);
  auto schedule = std::make_shared<const Schedule>(inverse_diagonal(problem));
  const BlockTable& blocks = schedule->blocks;
  const BlockSource zeros = [](const BlockExtent& x, std::byte* to) {
    std::fill_n(reinterpret_cast<double*>(to), x.rows * x.cols, 0.0);
  };
  MemoryStore store(blocks, {tiles_, std::make_shared<FamilyMemory>(blocks, inverse::kColumns),
                             std::make_shared<FamilyMemory>(blocks, inverse::kSquares, zeros)});
  IssueOptions options;
  options.values = {{gemm.name, &scales_}};
  options.what = "inverse";
  options.progress = progress;
  run_use(floor_of(problem, blocks), schedule, store, options);
  store.blocks().for_each(inverse::kSquares, [&](BlockId id) {
    const BlockExtent x = store.blocks().extent(id);
    std::copy_n(reinterpret_cast<const double*>(store.lend(id)), x.rows, squares.data() + x.row);
  });
  return take_report();
}

}  // namespace strata
