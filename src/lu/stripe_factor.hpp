#pragma once
// StripeFactor: L·U by stripes in host memory or in temporary files, with the devices that make it.
//
// Contract: T is double or std::complex<double>. Factored once. What a run leaves on the devices is
// not used by the next. Not thread-safe.

#include <memory>
#include <string>

#include "lu/stripe_tasks.hpp"
#include "run/device_set.hpp"
#include "session/session.hpp"
#include "store/file_store.hpp"
#include "store/memory_store.hpp"
#include "strata/stripe_lu.hpp"

namespace strata {

/// The stripes of a matrix on a machine: StripeOptions::stripe, or by rule, all of about the same
/// number of rows. Throws Error{misuse} for options that make none.
[[nodiscard]] StripeProblem stripe_problem(std::int64_t n, Element precision, std::int64_t rhs,
                                           const Machine& machine, const StripeOptions& stripes);

/// The plan of a factorization. Throws Error{memory} where it does not fit.
[[nodiscard]] PlannedRun plan_stripes(const StripeProblem& problem, const Machine& machine,
                                      const StripeOptions& stripes);

template <class T>
class StripeFactor {
 public:
  /// For a matrix of order n, with `rhs` columns of B.
  StripeFactor(std::int64_t n, std::int64_t rhs, const StripeOptions& stripes);

  /// Factors the matrix that `source` provides, whose largest element has this magnitude, and
  /// carries B along: B ← L⁻¹·P·B, where LuInfo::ok. The determinant is not found.
  const LuInfo& factor(BlockSource source, double largest, MatrixView<T> b);
  /// X ← A⁻¹·X, U⁻¹·X or A⁻ᴴ·X.
  RunReport solve(MatrixView<T> x, StripeSweeps sweeps);

  [[nodiscard]] const StripeProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] const LuInfo& info() const noexcept { return info_; }
  [[nodiscard]] const RunReport& report() const noexcept { return report_; }
  /// The largest element of L below the diagonal blocks.
  [[nodiscard]] double largest_multiplier() const noexcept { return multiplier_; }
  /// As FileStore has it; empty: it is in host memory.
  [[nodiscard]] std::string how() const { return files_ ? files_->how() : std::string(); }
  /// A block as it rests, packed.
  void read(std::int64_t i, std::int64_t k, T* to);
  [[nodiscard]] const std::int64_t* pivots() const {
    return reinterpret_cast<const std::int64_t*>(pivots_->data());
  }

 private:
  /// All families of a schedule, B at `right`.
  [[nodiscard]] std::unique_ptr<BlockStore> store_of(const BlockTable& blocks,
                                                     std::shared_ptr<FamilyMemory> right);
  [[nodiscard]] RunReport take_report();
  void set_info(double largest);
  [[nodiscard]] const BlockTable& blocks() const {
    return session_.adopted().plan->schedule().blocks;
  }

  RunOptions run_;
  Session session_;  ///< which has adopted the plan of the factorization
  StripeProblem problem_;
  std::shared_ptr<FamilyMemory> stripes_;  ///< null: in …
  std::unique_ptr<FileStore> files_;
  std::shared_ptr<FamilyMemory> pivots_;
  std::shared_ptr<FamilyMemory> pairs_;  ///< null: in files
  std::shared_ptr<FamilyMemory> pair_pivots_;
  std::shared_ptr<FamilyMemory> statuses_;
  LuInfo info_;
  double multiplier_ = 0;
  RunReport report_;
};

}  // namespace strata
