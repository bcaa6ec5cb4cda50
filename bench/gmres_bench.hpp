#pragma once
// bench gmres: communication-avoiding GMRES beside GMRES, by us both, in one process.
//
// Contract: A·x = b with b = A·(1, …, 1) and x = 0 at first. For each preconditioner vector by
// vector with CGS2 and MGS, then for each s, basis, precision and orthogonalization, within blocks
// and against the vectors before, as far as the two go with each other. Each is solved `repeats`
// times, and the run of median seconds is reported. `ratio` is the seconds of GMRES with CGS2 and
// the same preconditioner over those of the row. The parts of the time are a mean over the devices
// (KrylovSeconds). Results have the same bits on any number of devices, so of device counts only
// the seconds differ.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "strata/krylov.hpp"

namespace strata::bench {

struct GmresBench {
  SparseMatrix matrix;
  std::int64_t restart = 60;
  std::int64_t restarts_max = 100;
  std::vector<std::int64_t> s{15, 30};
  std::vector<KrylovBasis> bases{KrylovBasis::newton};
  std::vector<QrMethod> methods{QrMethod::cholqr, QrMethod::cholqr2, QrMethod::cholqr_wide,
                                QrMethod::automatic};
  /// A pair that gmres() does not take (goes_with) has no row.
  std::vector<BlockOrthogonalization> blocks{BlockOrthogonalization::classical};
  std::int64_t panel = 0;  ///< of two_stage, as of GmresOptions
  std::vector<Preconditioner> preconditioners{Preconditioner::none};
  /// Elements of the vectors; the yardsticks are in the first of them, and are run once.
  std::vector<Element> precisions{Element::fp64};
  std::int64_t block_size = 32;  ///< of block_jacobi
  double tolerance = 1e-6;
  bool balance = true;
  bool ghost_zones = false;  ///< of the rows with s > 1
  int repeats = 3;
  /// Run once more on each of so many devices of the kind that the options name: the rows of the
  /// last preconditioner, s and basis, and GMRES with CGS2 and that preconditioner.
  std::vector<std::int64_t> device_counts;
};

struct GmresRow {
  std::int64_t s = 1;
  KrylovBasis basis = KrylovBasis::newton;
  QrMethod method = QrMethod::automatic;
  BlockOrthogonalization block = BlockOrthogonalization::classical;
  Preconditioner preconditioner = Preconditioner::none;
  Element precision = Element::fp64;
  std::int64_t devices = 1;
  std::vector<double> all_seconds;
  double seconds = 0;  ///< the median, from the call to the return
  double ratio = 0;
  GmresInfo info;  ///< of the run with that; its trace is kept in the last row alone
};

/// Throws Error{misuse} for what gmres() would refuse, and where no pair of methods goes together.
/// `told`, if there is one, is called with each row when it is done.
[[nodiscard]] std::vector<GmresRow> run_gmres_bench(
    const GmresBench& bench, const RunOptions& options,
    const std::function<void(const GmresRow&)>& told = {});

/// "gmres cgs2", "s = 15 newton cholqr-wide", "s = 15 newton auto two-stage, jacobi".
[[nodiscard]] std::string name_of(const GmresRow& row);

}  // namespace strata::bench
