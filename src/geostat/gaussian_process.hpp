#pragma once
// GaussianProcess: the data of one problem beside a CovarianceSolver, ready for many evaluations.
//
// Contract: checks nothing (the public functions have), evaluates −2·log-likelihood's two parts for
// any covariance. One evaluation is one factorization and one solve with L, or, where L has few
// digits, refined solves with it and what probes say of its determinant.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cholesky/covariance_solver.hpp"
#include "geostat/mean_basis.hpp"
#include "geostat/ordered_points.hpp"
#include "geostat/regression.hpp"

namespace strata {

/// The coordinates of a point: two, and one each for z and t where there are.
[[nodiscard]] std::int64_t coordinate_count(const Points& points);

/// The points as the n × coordinate_count() matrix that CovarianceSolver takes: x, y, z, t …
[[nodiscard]] std::vector<double> coordinate_matrix(const Points& points);
/// … and a view of it; n > 0 rows.
[[nodiscard]] MatrixView<const double> view_of(const std::vector<double>& coordinates,
                                               std::int64_t n);
/// A solver for the covariance of these points; of the other ones in their order, with what is
/// known of it.
[[nodiscard]] CovarianceSolver covariance_solver(const Points& points,
                                                 const CovarianceOptions& options,
                                                 std::shared_ptr<const Scout> scout = nullptr);
[[nodiscard]] CovarianceSolver covariance_solver(const OrderedPoints& ordered,
                                                 const CovarianceOptions& options);
/// The parameters as the covariance kernels take them.
[[nodiscard]] CovarianceParameters covariance_of(const MaternParameters& parameters);
/// Factors; throws Error{numerical} if the covariance is not positive definite.
void factor_or_fail(CovarianceSolver& solver, const MaternParameters& parameters,
                    const char* where);

class GaussianProcess {
 public:
  /// `distance`: what a linear mean is linear in. `parameters`: of the only covariance that will be
  /// evaluated, if there is but one.
  GaussianProcess(const Points& points, std::span<const double> values, Mean mean,
                  Distance distance, const CovarianceOptions& options,
                  const MaternParameters* parameters = nullptr);

  struct Evaluation {
    FactorInfo factor;
    double quadratic_form = 0;  ///< NaN unless factor.ok
    std::vector<double> mean_coefficients{};
    std::optional<LikelihoodCertificate> certificate{};
  };
  [[nodiscard]] Evaluation evaluate(const MaternParameters& parameters, const char* where);
  /// What rounding in FP64 does to the last evaluation, whose factorization succeeded: two solves
  /// with its factor and n·64 elements of Σ more. `evaluation` as evaluate() returned it.
  [[nodiscard]] LikelihoodError rounding(const MaternParameters& parameters,
                                         const Evaluation& evaluation);

  [[nodiscard]] std::int64_t n() const noexcept { return n_; }
  /// What the last factorization did.
  [[nodiscard]] const RunReport& report() const noexcept { return solver_.report(); }

 private:
  void evaluate_by_factor(Evaluation& out, const char* where);
  void evaluate_refined(Evaluation& out, const char* where);
  void estimate_log_determinant(Evaluation& out);

  OrderedPoints points_;
  Probing probing_;
  std::int64_t n_;
  Mean mean_;
  MeanBasis basis_;
  double shift_ = 0;          ///< subtracted from the values: less to cancel in the residual
  std::vector<double> data_;  ///< [X | z − shift], n × (p + 1)
  std::vector<double> work_;  ///< the same, whitened
  std::vector<double> coefficients_;  ///< of the columns of X, by the last evaluation
  CovarianceSolver solver_;
};

/// −½·(n·log 2π + log_determinant + quadratic_form).
[[nodiscard]] double gaussian_log_likelihood(std::int64_t n, double log_determinant,
                                             double quadratic_form);

}  // namespace strata
