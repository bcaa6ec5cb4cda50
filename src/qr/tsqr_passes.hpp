#pragma once
// The tasks of the two passes of TSQR over the rows of a tall matrix.
//
// Contract: emits tasks only. V is cut into blocks of tsqr_block_rows(n) rows; the triangles of
// blocks, and of two triangles one on the other, are the nodes of a tree whose shape follows from
// the number of blocks. RowPass::triangles writes all of them (family rows::kSum, node by node, the
// whole's last); RowPass::orthogonal goes from the last node back to the blocks, with the triangles
// in rows::kFactor and behind them the n × n matrix that Q is multiplied by.
// Source: Demmel, Grigori, Hoemmen, Langou, "Communication-optimal parallel and sequential QR and
// LU factorizations", SIAM J. Sci. Comput. 34, 2012.

#include <vector>

#include "kernels/tall/householder.hpp"
#include "qr/row_passes.hpp"

namespace strata {

/// As gram_block_rows where that is four times as high as wide.
[[nodiscard]] constexpr std::int64_t tsqr_block_rows(std::int64_t n) noexcept {
  std::int64_t rows = gram_block_rows(n);
  while (rows < 4 * n) rows *= 2;
  return rows;
}

/// Nodes 0 … blocks − 1 are blocks, each later one is of two earlier ones.
class TriangleTree {
 public:
  struct Node {
    std::int64_t left = 0;
    std::int64_t right = 0;
    int level = 0;           ///< above those of its two
    std::int64_t block = 0;  ///< the last block under it
  };
  TriangleTree(std::int64_t blocks, TreeShape shape);

  [[nodiscard]] std::int64_t blocks() const noexcept { return blocks_; }
  [[nodiscard]] std::int64_t count() const noexcept { return blocks_ + std::ssize(nodes_); }
  /// The nodes that join two others; in the order of their last blocks, and of their levels for
  /// each.
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }

 private:
  std::int64_t blocks_;
  std::vector<Node> nodes_;
};

/// How many nodes the tree of an m × n matrix has.
[[nodiscard]] std::int64_t triangles_of(std::int64_t m, std::int64_t n);

[[nodiscard]] constexpr bool is_tsqr(RowPass pass) noexcept {
  return pass == RowPass::triangles || pass == RowPass::orthogonal;
}

[[nodiscard]] Schedule tsqr_pass(const RowProblem& problem);

}  // namespace strata
