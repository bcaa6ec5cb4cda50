#pragma once
// Entries of the inverse where a factor has entries, supernode by supernode.
//
// Contract: from the last supernode to the first; what a pass takes beside the factor follows from
// the analysis. The factor stays as it is, and whatever it is in, the inverse is in doubles.
//
// Method: with Z the inverse, columns J and the rows R below them, Y = L_RJ·L_JJ⁻¹:
// Z_RJ = −Z_RR·Y, Z_JJ = (L_JJ·L_JJᵀ)⁻¹ − Yᵀ·Z_RJ (Erisman, Tinney, "On computing certain elements
// of the inverse of a sparse matrix", 1975, in blocks). Z_RR lies in the panels of Z of the
// ancestors whose columns are among R. So a panel of Z takes the place of a copy of L's, and is
// kept until the last supernode that has rows among its columns is done.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/uninitialized_vector.hpp"
#include "sparse/fronts/front_factor.hpp"
#include "strata/matrix_view.hpp"
#include "strata/sparse_factor.hpp"

namespace strata {

class InversePanels {
 public:
  /// Decides where panels lie; nothing of that size is allocated.
  explicit InversePanels(const SparseAnalysis& analysis);

  /// Bytes of memory that run() takes beside the factor.
  [[nodiscard]] std::int64_t bytes() const;

  /// Calls visit(s, Z_JJ above Z_RJ) for each supernode; of Z_JJ the lower triangle counts. The
  /// view lasts until `visit` returns.
  using Visit = std::function<void(std::int32_t s, MatrixView<const double> panel)>;
  void run(const FrontFactor& factor, const Visit& visit);

 private:
  void invert(std::int32_t s);
  void invert_columns(std::int32_t s, std::int64_t first, std::int64_t last);
  void multiply_by_ancestors(std::int32_t s, MatrixView<const double> y, MatrixView<double> f);
  void gather(std::int32_t s, std::int64_t first, std::int64_t last, MatrixView<double> to);
  void find_places(std::int32_t s, std::int64_t k, std::int32_t ancestor);
  [[nodiscard]] MatrixView<double> panel(std::int32_t s);

  const SparseAnalysis& a_;
  std::vector<std::int32_t> owner_;  // by column of L: its supernode
  std::vector<std::int64_t> place_;  // by supernode: of its panel's first element
  std::vector<std::int32_t> in_ancestor_;
  std::int64_t panels_ = 0;  // elements that lie side by side, at most; likewise below
  std::int64_t product_ = 0;
  std::int64_t gathered_ = 0;
  std::int64_t rows_ = 0;
  UninitializedVector<double> z_, f_, rr_, own_;
};

/// Bytes of host memory that the next three take beside the factor, and their result.
[[nodiscard]] std::int64_t inverse_bytes(const SparseAnalysis& analysis);

/// What is asked for beside the factor, for messages about host memory.
[[nodiscard]] std::string beside_factor(const SparseAnalysis& analysis, bool inverse);

[[nodiscard]] std::vector<double> inverse_diagonal(const FrontFactor& factor);
[[nodiscard]] SelectedInverse selected_inverse(const FrontFactor& factor);
void for_selected_inverse(const FrontFactor& factor,
                          const std::function<void(const SelectedPanel&)>& visit);

}  // namespace strata
