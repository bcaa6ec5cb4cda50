#pragma once
// ThickRestart: thick-restart Lanczos with locking, on the devices.
//
// Contract: `run` seeks the k eigenpairs at one end of a symmetric matrix and tells how that went;
// what was found are the first found() columns of V, orthonormal, from the wanted end inwards.
//
// Columns of V: the locked pairs, those that are being sought, one vector behind them, and those
// for products with A. Values and residuals that are reported are computed on the host with A
// itself.

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/work_crew.hpp"
#include "dense/small_eigen.hpp"
#include "krylov/arnoldi.hpp"
#include "krylov/chebyshev_filter.hpp"
#include "krylov/linear_system.hpp"
#include "strata/krylov.hpp"

namespace strata {

/// Vectors of the basis, for a matrix of order n.
[[nodiscard]] std::int64_t basis_size_of(const EigsOptions& options, std::int64_t n);

/// Values that are closer to each other are not told apart: which of them are found is open.
[[nodiscard]] inline double margin_of(const EigsOptions& options, double norm) {
  return 10 * options.tolerance * norm;
}

/// Filters that are tried at most.
inline constexpr int kFiltersMax = 6;

class ThickRestart {
 public:
  ThickRestart(const LinearSystem& system, const EigsOptions& options, WorkCrew& crew);

  /// Fills what `info` tells of the way: cycles, products, decisions, history and, where not all
  /// was found, why. Throws as BasisRunner::run(), and Error{numerical} if a projected problem has
  /// no eigenvalues that QL finds.
  void run(EigsInfo& info);

  /// Nothing is left to be sought.
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  [[nodiscard]] std::int64_t found() const noexcept { return std::ssize(locked_); }
  /// The first to.cols vectors that were found, n × to.cols, in the order of the system's rows.
  void take_vectors(MatrixView<double> to);
  /// The largest |vᵢᵀvⱼ − δᵢⱼ| of those that were found.
  [[nodiscard]] double orthogonality();
  [[nodiscard]] const KrylovSeconds& seconds() const noexcept { return runner_.seconds(); }
  [[nodiscard]] RunReport take_report() { return runner_.take_report(); }

 private:
  [[nodiscard]] std::int64_t locked() const { return std::ssize(locked_); }
  [[nodiscard]] std::string why_not(std::int64_t cycles) const;
  [[nodiscard]] bool better(double x, double than) const;
  bool begin_anew();
  void fill_basis(std::int64_t cycle);
  [[nodiscard]] std::int64_t steps_of_script() const;
  [[nodiscard]] bool can_block() const;
  void set_recurrence();
  void learn();
  bool are_pairs(std::int64_t count, double share = 1);
  void project();

  /// The i-th Ritz value of A, or, with a filter, of p(A).
  [[nodiscard]] double ritz(std::int64_t i) const {
    return eigen_.values[static_cast<std::size_t>(order_[static_cast<std::size_t>(i)])];
  }
  [[nodiscard]] double ritz_residual(std::int64_t i) const {
    return std::abs(coupling_[static_cast<std::size_t>(i)]);
  }
  [[nodiscard]] double of_operator(double eigenvalue) const {
    return filter_ ? filter_->value(eigenvalue) : eigenvalue;
  }
  /// The i-th Ritz value of A; with a filter the edge where a Ritz value of p(A) says no more.
  [[nodiscard]] double value(std::int64_t i) const {
    return filter_ ? filter_->eigenvalue(ritz(i)) : ritz(i);
  }
  [[nodiscard]] double residual(std::int64_t i) const {
    return filter_ ? filter_->residual(ritz(i), ritz_residual(i)) : ritz_residual(i);
  }
  [[nodiscard]] double error(std::int64_t i) const;
  [[nodiscard]] double worst_locked() const;
  [[nodiscard]] std::int64_t wanted() const;
  [[nodiscard]] bool at_limit() const;
  [[nodiscard]] std::string breakdown(std::int64_t wanted_pairs) const;
  void go_on_by_vectors(const std::string& why);
  void decide(std::string what);
  bool look(bool last);

  // ---- the filter, thick_restart_filter.cpp
  void note_density();
  [[nodiscard]] double count_beyond() const;
  [[nodiscard]] bool is_slow() const;
  [[nodiscard]] double plain_products(std::int64_t wanted_pairs) const;
  [[nodiscard]] bool filter_is_dear() const;
  void give_up_filter();
  bool changes_filter(std::int64_t wanted_pairs);
  [[nodiscard]] double outermost_value() const;
  bool set_filter(double edge);

  void rotate(const std::vector<std::size_t>& keep, std::int64_t count, bool tail);
  bool restart(std::int64_t least);
  bool lock(std::int64_t count, bool anyway);
  void keep_best(std::int64_t count);

  EigsOptions options_;
  std::int64_t n_, m_;
  double norm_;
  std::int64_t entries_;  ///< of A
  std::int64_t spare_;    ///< the longest block; 0: vector by vector
  std::int64_t work_;     ///< columns of V behind the basis, for products
  WorkCrew& crew_;
  std::pair<double, double> bounds_;  ///< of the spectrum of A
  double growth_;                     ///< of a filter
  BasisRunner runner_;
  Arnoldi arnoldi_;
  std::vector<double> locked_;  ///< from the wanted end inwards
  std::vector<double> locked_errors_;
  SymmetricEigen eigen_;
  std::int64_t first_ = 0;  ///< column at which the cycle began
  Recurrence steps_;
  std::vector<std::int64_t> order_;
  std::vector<double> coupling_;  ///< of the Ritz vectors, in their order, with the last vector
  std::vector<EigsCycle> history_;
  std::int64_t cycle_ = 0;
  std::uint64_t round_ = 0;
  std::string broken_;       ///< why blocks were given up
  bool overflowed_ = false;  ///< vector by vector
  bool has_ritz_ = false;
  bool finished_ = false;
  bool fresh_ = false;  ///< nothing but a random vector was kept from the cycle before
  std::optional<ChebyshevFilter> filter_;
  int filters_ = 0;                  ///< that were tried
  double plain_cost_ = 0;            ///< of the cycles that filters save, in products with A
  double products_allowed_ = 0;      ///< with A, all told, before a filter is given up
  std::vector<SpectralNode> nodes_;  ///< as seen from the last random vector, without locked ones
  std::vector<double> ways_;  ///< to convergence behind each cycle, since something was locked
};

}  // namespace strata
