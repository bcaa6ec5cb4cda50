#pragma once
// LuPanels: P·A = L·U in column panels in host memory or in storage, with the devices that made it.
//
// Contract: factored once. What the run leaves on the devices is where solves start (Session); with
// LuProblem::given the factor is nowhere else until it is asked for (bring_home()). What
// a factorization in storage that did not end has left is gone on with, to the same bits. Not
// thread-safe.

#include <memory>
#include <span>
#include <vector>

#include "kernels/dense/getrf.hpp"
#include "lu/planning.hpp"
#include "lu/stored_panels.hpp"
#include "run/host_pinner.hpp"
#include "scalar/complex.hpp"
#include "session/session.hpp"
#include "store/memory_store.hpp"
#include "strata/lu.hpp"

namespace strata {

class LuPanels {
 public:
  /// `problem.panel` and `problem.devices` are filled in from the options. Throws Error{memory}
  /// when the host cannot hold the factor or a device budget does not suffice.
  /// `matrix` tells what rests in storage from other matrices. LuProblem::given stays only if the
  /// devices hold such a matrix beside the factor.
  LuPanels(LuProblem problem, const LuOptions& options, std::uint64_t matrix = 0,
           MatrixPlace place = MatrixPlace::gpus);
  /// The same, in memory of the caller's, which holds the matrix, n × n numbers by columns.
  LuPanels(LuProblem problem, const LuOptions& options, std::byte* home);
  LuPanels(LuPanels&&) = default;
  LuPanels& operator=(LuPanels&&) = delete;  // would let go of memory that is being pinned

  [[nodiscard]] const LuProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] const LuInfo& info() const noexcept { return info_; }
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }

  /// Factors the matrix that `source` provides, or, without one, the one in the caller's memory.
  /// Its largest element has this magnitude.
  const LuInfo& factor(BlockSource source, double largest);
  /// The same of the matrix as it is given, with LuProblem::given; `exponents`: of all rows, then
  /// of all columns.
  const LuInfo& factor(BlockSource given, const std::vector<std::int64_t>& exponents);
  /// Brings a factor home that is on the devices alone, for what is below but solve(). Throws
  /// Error{memory} where the host has no room for it.
  void bring_home();
  /// Where panels are, or go if they leave the devices; null: in storage.
  [[nodiscard]] std::shared_ptr<FamilyMemory> home() const noexcept { return panels_; }
  /// The devices, with what lies on them.
  [[nodiscard]] Session& session() noexcept { return session_; }
  /// B ← A⁻¹·B, n × nrhs, or as LuSolveProblem::variant says. T is the factor's type.
  template <class T>
  RunReport solve(MatrixView<T> b, std::uint32_t variant);
  /// B ← A⁻¹·B or, if `adjoint`, A⁻ᴴ·B with factors in T, fp32 or complex64, and all else in fp64,
  /// on the host: rounding is that of fp64 times the condition of L·U.
  template <class T>
  void solve_wide(MatrixView<WideOf<T>> b, bool adjoint) const;

  [[nodiscard]] bool in_storage() const noexcept { return stored_ != nullptr; }
  /// Panels that were factored before, in storage; and all of them.
  [[nodiscard]] std::int64_t found() const noexcept { return problem_.done; }
  [[nodiscard]] std::int64_t count() const { return blocks().block_cols(kPivotsFamily); }
  /// How files are read and written: "io_uring, O_DIRECT".
  [[nodiscard]] std::string how() const { return stored_->how(); }
  /// Takes a factor in storage, which is whole, with what is known of it.
  void adopt_stored(const LuInfo& info);

  /// What a file keeps: the panels, and what getrf exchanged, counted from a panel's diagonal.
  [[nodiscard]] std::span<const std::byte> bytes() const;
  [[nodiscard]] std::span<const std::int64_t> exchanges() const;
  /// Takes a factor that was saved, whose bytes and exchanges are then written in place.
  void adopt(const LuInfo& info);
  [[nodiscard]] std::span<std::byte> bytes_for_writing();
  [[nodiscard]] std::span<std::int64_t> exchanges_for_writing();

  /// As LuFactor has them.
  [[nodiscard]] std::vector<std::int64_t> pivots() const;
  template <class T>
  void copy_factors(MatrixView<T> out) const;

 private:
  [[nodiscard]] bool has_given() const { return problem_.given != Element::none; }
  [[nodiscard]] LuInfo info_of(double largest);
  void read_diagonal();
  template <class T>
  [[nodiscard]] Determinant determinant_of() const;
  /// The rows of panel p from its diagonal on (L), or those up to its diagonal block (U), as they
  /// are at home, until the next ones are asked for; and what getrf exchanged.
  template <class T>
  [[nodiscard]] MatrixView<const T> lower_at_home(std::int64_t p) const;
  template <class T>
  [[nodiscard]] MatrixView<const T> upper_at_home(std::int64_t p) const;
  [[nodiscard]] const std::int64_t* exchanges_at_home(std::int64_t p) const;
  [[nodiscard]] bool has_status(std::int64_t panel) const;
  [[nodiscard]] PanelStatus status_of(std::int64_t panel) const;
  /// The diagonal of panel p.
  template <class T>
  [[nodiscard]] std::vector<T> diagonal_of(std::int64_t p) const;
  /// `overwrites`: the caller has the memory of the panels.
  void plan(bool overwrites);
  void open_memory(std::byte* home);
  void run_factorization(BlockStore& store);
  void factor_in_storage(BlockSource source);
  [[nodiscard]] const BlockTable& blocks() const {
    return session_.adopted().plan->schedule().blocks;
  }
  [[nodiscard]] RunReport take_report();
  void check_usable(Element element, std::int64_t rows) const;

  LuOptions options_;
  Session session_;  ///< which has adopted the plan of the factorization
  LuProblem problem_;
  std::shared_ptr<FamilyMemory> panels_;
  std::shared_ptr<FamilyMemory> pivots_;
  std::shared_ptr<FamilyMemory> statuses_;
  std::unique_ptr<HostPinner> pinner_;    ///< null: panels stay on the devices, or are in storage
  std::unique_ptr<StoredPanels> stored_;  ///< null: they are in memory
  std::vector<std::int64_t> exchanges_;   ///< of panels in storage
  std::vector<std::byte> diagonal_;       ///< likewise, and of those that stay on the devices
  mutable std::vector<std::byte> rows_;   ///< of a panel of them, which were read last
  LuInfo info_;
  RunReport report_;
};

}  // namespace strata
