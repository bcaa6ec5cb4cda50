#pragma once
// bench eigs: communication-avoiding Lanczos beside Lanczos vector by vector, in one process.
//
// Contract: the k largest eigenvalues of diag(1, …, m), which are m, m − 1, …; so errors are known.
// For each m first vector by vector, then with a filter where Lanczos is slow, as eigs() does
// unless told otherwise, then without one for each s and orthogonalization; each is computed
// `repeats` times, and the run of median seconds is told. `ratio` is the seconds of that over those
// of Lanczos vector by vector. A case that does not converge is a row as any other.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "strata/krylov.hpp"

namespace strata::bench {

struct EigsBench {
  std::vector<std::int64_t> sizes{600'000, 800'000, 1'000'000};
  std::int64_t basis_size = 200;
  std::int64_t k = 100;
  std::vector<std::int64_t> s{20, 30};
  KrylovBasis basis = KrylovBasis::lanczos;
  /// d, 2 × d and dd of Yamazaki, Tomov and Dongarra (2015), and our own choice.
  std::vector<QrMethod> methods{QrMethod::cholqr, QrMethod::cholqr2, QrMethod::cholqr_wide,
                                QrMethod::automatic};
  bool only_filtered = false;  ///< none of the others; their ratio is 1 then
  double tolerance = 1e-10;
  std::int64_t restarts_max = 300;
  int repeats = 1;
  std::uint64_t seed = 1;
};

struct EigsRow {
  std::int64_t m = 0;
  std::int64_t s = 1;
  QrMethod method = QrMethod::automatic;
  bool filter = false;
  std::vector<double> all_seconds;
  double seconds = 0;  ///< the median, from the call to the return
  double ratio = 0;
  double error = 0;     ///< the largest |value − exact| over m, by place; NaN: not all were found
  double residual = 0;  ///< the largest ‖A·v − λ·v‖ over m; NaN as above
  EigsInfo info;        ///< of that run; its trace is kept in the last row alone
};

/// `told`, if there is one, is called with each row when it is done. Throws as eigs() does.
[[nodiscard]] std::vector<EigsRow> run_eigs_bench(
    const EigsBench& bench, const RunOptions& options,
    const std::function<void(const EigsRow&)>& told = {});

/// "lanczos", "lanczos, filtered", "s = 20 cholqr-wide".
[[nodiscard]] std::string name_of(const EigsRow& row);

}  // namespace strata::bench
