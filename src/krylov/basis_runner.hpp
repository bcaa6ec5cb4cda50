#pragma once
// BasisRunner: the vectors of a Krylov method on the devices, and scripts that are run on them.
//
// Contract: V has one row for each row of a square sparse matrix and `columns` columns, zeros at
// first but for those that the caller gives. Each script is planned, simulated and run (Session); V
// and the matrix stay on the devices between scripts where there is room. Slabs of rows are one for
// each device, or as many more as the budget asks for; no bit depends on them. With a right
// preconditioner A·M⁻¹ takes the place of A in all products, and the last column of V is its work
// space. M⁻¹ is a matrix that lies on the devices as A does, or the host multiplies by it: then a
// vector travels to the host and back. The reports of all runs are added up. Throws as run() does.

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "krylov/basis_script.hpp"
#include "session/session.hpp"
#include "store/memory_store.hpp"
#include "strata/krylov.hpp"
#include "strata/options.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata {

/// A ghost row costs its entries once more for each product; with more of them than this share of a
/// slab's rows the products take longer than what exchanges cost.
inline constexpr double kGhostShareMax = 0.5;

/// A column of V, or of W if there is one, that is not zeros at first; it outlives the runner.
struct GivenColumn {
  std::int64_t column = 0;
  std::span<const double> values;
};

/// In which element V and the matrices are, and what lies beside. With W, the columns that are
/// given are those of W, and products of V are with what is left of γ·A and δ·M⁻¹ in that element:
/// powers of two by which neither overflows.
struct VectorFormat {
  Element element = Element::fp64;  ///< or fp32
  std::int64_t wide_columns = 0;  ///< of W, in fp64; the last one is of work with a preconditioner
  double scale = 1;               ///< γ
  double inverse_scale = 1;       ///< δ
};

/// M⁻¹; one of both, or neither. The matrix outlives the runner.
struct RightInverse {
  const SparseMatrix* matrix = nullptr;
  std::function<void(std::span<const double> x, std::span<double> y)> apply;  ///< y ← M⁻¹·x
};

class BasisRunner {
 public:
  /// `block` is how many columns a script adds at most, `rotated` how many it rotates. `a` outlives
  /// the runner. `what` names the operation in errors and progress. Throws Error{memory} if a
  /// device cannot hold what a task needs at least. Ghost zones of depth `ghost_depth` (0: not
  /// asked for) serve products of a block of so many vectors, unless a slab would have more ghost
  /// rows than kGhostShareMax of its own, or there is a preconditioner.
  BasisRunner(const SparseMatrix& a, std::int64_t columns, std::int64_t block,
              std::vector<GivenColumn> given, const RunOptions& options, const char* what,
              std::int64_t rotated = 0, RightInverse right = {}, std::int64_t ghost_depth = 0,
              const VectorFormat& format = {});

  /// Runs the script and returns its sums.
  std::vector<PanelSum> run(const BasisScript& script);
  /// Runs the script, then copies columns of V, or of W, from `first` on into those of `to`.
  std::vector<PanelSum> run_and_take(const BasisScript& script, std::int64_t first,
                                     MatrixView<double> to, bool wide = false);
  /// The same of one column.
  std::vector<PanelSum> run_and_take(const BasisScript& script, std::int64_t column,
                                     std::span<double> to, bool wide = false) {
    return run_and_take(script, column,
                        MatrixView<double>{to.data(), std::ssize(to), 1, std::ssize(to)}, wide);
  }

  [[nodiscard]] std::int64_t rows() const noexcept { return slabs_.rows; }
  [[nodiscard]] std::int64_t scripts() const noexcept { return scripts_; }
  [[nodiscard]] const RowSlabs& slabs() const noexcept { return slabs_; }
  /// What was exchanged by all scripts so far.
  [[nodiscard]] const HaloReport& halo() const noexcept { return halo_; }
  [[nodiscard]] RunReport take_report() { return session_.take_report(); }
  /// Into the trace, behind the scripts so far.
  void note(std::string text) {
    Trace& trace = session_.report().trace;
    trace.notes.push_back({trace.seconds, std::move(text)});
  }
  /// Seconds of all scripts so far; what the host does besides is not in them.
  [[nodiscard]] const KrylovSeconds& seconds() const noexcept { return seconds_; }

 private:
  void choose_slabs(std::int64_t block, std::int64_t rotated);
  void choose_ghosts();
  void make_memory();
  [[nodiscard]] BasisScript widest_script(std::int64_t block, std::int64_t rotated) const;
  [[nodiscard]] BasisProblem problem() const;
  /// Columns that are copied to the host behind a script, from `first` on; −1: none.
  struct Taken {
    std::int64_t first = -1;
    MatrixView<double> to;
    bool wide = false;
  };
  std::vector<PanelSum> perform_by_parts(const BasisScript& script, const Taken& taken);
  [[nodiscard]] std::unique_ptr<MemoryStore> store_of(const BlockTable& blocks) const;
  [[nodiscard]] BasisScript begun(const BasisScript& script) const;
  std::vector<PanelSum> perform(const BasisScript& asked, const Taken& taken);
  void write_small(const BasisScript& script, MemoryStore& store) const;
  void read_taken(MemoryStore& store, const Taken& taken) const;
  void add_seconds(const BasisScript& script, const Trace& trace);

  const SparseMatrix& a_;
  std::int64_t columns_;
  std::vector<GivenColumn> given_;
  RunOptions options_;
  const char* what_;
  Session session_;
  BasisIdentities identities_;
  RightInverse right_;
  std::int64_t ghost_depth_;  ///< asked for
  RowSlabs slabs_, inverse_slabs_;
  GhostZones ghosts_;  ///< of depth 0: none
  HaloReport halo_;
  std::vector<std::int32_t> index_, inverse_index_;  ///< of all links
  std::vector<std::int32_t> ghost_index_;            ///< of all links, halos and borders
  VectorFormat format_;
  std::vector<float> values_, inverse_values_, ghost_values_;  ///< where V is in fp32
  /// Families that are the same in all scripts: V and what belongs to the matrices.
  std::map<int, std::shared_ptr<FamilyMemory>> fixed_;
  KrylovSeconds seconds_;
  std::int64_t scripts_ = 0;
};

}  // namespace strata
