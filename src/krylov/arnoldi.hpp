#pragma once
// Arnoldi: an orthonormal basis Q of a Krylov space, and A in it.
//
// Contract: A·Q_j = Q_{j+1}·H for the j columns of H that there are; column j of V is q_j, j from
// 0, and q_0 … q_size are there. Vectors are added one by one, or in blocks of s that are computed
// first and made orthonormal then. What was decided about blocks is told. What is still to be done
// on the devices when a block is complete waits in `pending`, to be run with what comes next.

#include <cstdint>
#include <optional>
#include <vector>

#include "dense/square_matrix.hpp"
#include "krylov/basis_runner.hpp"
#include "krylov/chebyshev_filter.hpp"
#include "krylov/recurrence.hpp"
#include "strata/krylov.hpp"

namespace strata {

/// Most steps of a script that adds vectors one by one, before the host looks at its sums.
inline constexpr std::int64_t kStepsOfScript = 16;

/// ‖x‖.
[[nodiscard]] double length_of(const std::vector<double>& x);

/// What rounding is, and how much of it is taken, by the element of the vectors.
struct RoundingLimits {
  double unit = 0;  ///< the distance from 1 to the next number
  /// Beside the length of A·q, what is left of it by this is rounding.
  double nothing_left = 0;
  double plain_condition = 0;      ///< with which sums in the element itself do; 0: none
  double loss_max = 0;             ///< of orthogonality, before blocks have a second pass
  double pythagoras_loss_max = 0;  ///< of one pass by Pythagoras that is taken as it is
  /// How much projection and solve may amplify rounding: columns of a block are kept up to this, …
  double amplification_max = 0;
  double amplification_once = 0;  ///< … and up to this one pass is enough
};
[[nodiscard]] RoundingLimits rounding_limits(Element element) noexcept;

struct ArnoldiOptions {
  std::int64_t s = 1;
  QrMethod method = QrMethod::automatic;
  /// Approximate norm of A: a product that is rounding beside it counts as zero. 0: only zeros do.
  double norm = 0;
  Element element = Element::fp64;  ///< of the vectors; the limits are those of it
  RoundingLimits limits = rounding_limits(element);
  BlockOrthogonalization block = BlockOrthogonalization::classical;
  std::int64_t panel = 0;  ///< of two_stage, at least s
  /// A is symmetric, and so H but for rounding: what A·q_c has in the vectors before q_c is known.
  bool symmetric = false;
  /// Symmetric A: a block keeps no more vectors than have relation_error() below this, but one.
  double relation_max = 0;
};

class Arnoldi {
 public:
  Arnoldi(BasisRunner& runner, const ArnoldiOptions& options)
      : runner_(runner), options_(options), s_now_(options.s) {}

  /// The basis is q_0 … q_size with H as given: `h` has `size` columns. In the cycle `restart`.
  /// `errors`: relation_error() of these, for symmetric A.
  void begin(std::int64_t restart, std::vector<std::vector<double>> h = {},
             std::vector<double> errors = {});
  void set_recurrence(Recurrence recurrence) { recurrence_ = std::move(recurrence); }
  void set_method(QrMethod method) { options_.method = method; }
  /// From here on the basis and H are those of p(A), whose norm is about `norm`, and vectors are
  /// added one by one. The products with A that p takes lie in three columns from `work` on.
  void set_filter(const ChebyshevFilter& filter, double norm, std::int64_t work) {
    filter_ = filter;
    options_.norm = norm;
    work_ = work;
  }
  /// From here on they are those of A again.
  void clear_filter(double norm) {
    filter_.reset();
    options_.norm = norm;
  }

  /// Adds up to `count` vectors one by one (fewer where the space ends).
  void add_vectors(std::int64_t count);
  /// Adds a block of at most `count` vectors.
  void add_block(std::int64_t count);

  /// Columns of H, each as long as it has rows that may not be zero.
  [[nodiscard]] const std::vector<std::vector<double>>& h() const noexcept { return h_; }
  [[nodiscard]] std::int64_t size() const noexcept { return std::ssize(h_); }
  /// Symmetric A: about ‖A·q_j − Q·h_j‖, followed through the recurrences of all blocks.
  [[nodiscard]] double relation_error(std::int64_t j) const {
    return errors_[static_cast<std::size_t>(j)];
  }
  /// The last column of H has nothing below its diagonal: the space is invariant.
  [[nodiscard]] bool ended() const noexcept { return ended_; }
  /// A sum was NaN or infinite; H has its columns up to there.
  [[nodiscard]] bool not_finite() const noexcept { return not_finite_; }
  [[nodiscard]] BasisScript& pending() noexcept { return pending_; }
  /// Runs what is pending; its sums.
  std::vector<PanelSum> flush();

  std::int64_t factorizations = 0;
  std::int64_t failed_cholesky = 0;
  std::int64_t products = 0;
  std::int64_t reductions = 0;  ///< sums over rows
  double condition_max = 0;
  std::vector<KrylovDecision> decisions;

 private:
  using Gram = SquareMatrix<DoubleDouble>;
  using Columns = std::vector<std::vector<double>>;
  /// A block while it is made orthonormal: W = Q·top + (new vectors)·r.
  struct Block {
    std::int64_t column = 0;  ///< of the vector before it
    std::int64_t count = 0;
    /// Symmetric A: what was taken off A·q_c before anything else, in the vectors before q_c.
    std::vector<double> known;
    Columns top;
    Gram r;
    std::vector<double> before;  ///< lengths before the first projection
    KrylovDecision decision;
    bool finite = true;
    bool ended = false;           ///< its first vector is in the space
    std::int64_t reductions = 0;  ///< before it
  };
  /// Blocks of a first stage, in the basis that it has left behind.
  struct Panel {
    std::int64_t column = 0;  ///< of the vector before it
    std::int64_t count = 0;   ///< vectors
    std::vector<Block> blocks;
  };
  /// What a Gram matrix says of a block.
  struct Look {
    Gram r;                     ///< of the block with its columns scaled
    std::vector<double> scale;  ///< by these
    bool failed = false;
    std::int64_t kept = 0;     ///< leading columns that can be told apart
    double condition = 0;      ///< of these, with unit columns
    double amplification = 0;  ///< of rounding, by projection and solve
    bool related = true;       ///< false: it is relation_max that further columns miss
  };

  void multiply(std::int64_t from);
  void read_single(std::int64_t j, const std::vector<PanelSum>& sums, std::vector<int> projections,
                   int norm);
  void generate(Block& block);
  [[nodiscard]] std::vector<double> known_products() const;
  [[nodiscard]] std::vector<double> relation_errors(const Block& block, const Gram& r) const;
  Block start_block(std::int64_t column, std::int64_t k, bool wide);
  void by_columns(std::int64_t k);
  Block by_fixed_passes(std::int64_t column, std::int64_t k);
  Block by_decision(std::int64_t column, std::int64_t k);
  void by_panel(std::int64_t k);
  void second_stage(Panel& panel);
  int project(Block& block, bool measured);
  PanelSum pass(Block& block, bool measured, Element element);
  PanelSum pass_by_pythagoras(Block& block, bool measured, Element element);
  [[nodiscard]] bool is_lost(const Look& seen, std::int64_t asked) const;
  void note_loss(const Look& seen, const Block& block, bool by_pythagoras);
  void read_projection(Block& block, const PanelSum& p, std::int64_t without);
  void read_lengths(Block& block, const PanelSum& gram) const;
  Look look(const Block& block, const PanelSum& gram, Element element);
  [[nodiscard]] std::int64_t related(const Block& block, const Look& seen, std::int64_t most) const;
  void truncate(Block& block, Look& seen) const;
  void finish_pass(Block& block, const Gram& r, const std::vector<double>& scale);
  void second_pass(Block& block, Element element = Element::fp64);
  [[nodiscard]] Element sums_in(bool wide) const noexcept;
  bool ends_here(Block& block, const Look& seen);
  void adapt(const Block& block, const Look& seen, std::int64_t asked);
  void keep_decision(KrylovDecision decision, const Block& block);
  void finish_block(const Block& block);
  [[nodiscard]] static Columns coordinates(const Block& block, const Gram& r);
  void add_columns(const Block& block, const Columns& w);
  [[nodiscard]] RecurrenceStep step(std::int64_t i) const;

  BasisRunner& runner_;
  ArnoldiOptions options_;
  Recurrence recurrence_;
  std::optional<ChebyshevFilter> filter_;
  std::int64_t work_ = 0;  ///< column of V from which on a filter has its products
  Columns h_;
  std::vector<double> errors_;  ///< of the columns of H
  BasisScript pending_;
  std::int64_t restart_ = 0;
  std::int64_t s_now_ = 1;
  bool wide_ = true;
  bool careful_ = false;  ///< a loss was measured that one pass would not mend
  double loss_ = 0;       ///< of the vectors that there are, by estimate; of `pythagorean`
  bool ended_ = false;
  bool not_finite_ = false;
};

}  // namespace strata
