#pragma once
// CHOLMOD of libstrata_peer_cholmod.so, where that was built.
//
// Contract: loaded once, it stays for the rest of the process. What it reports is Error{device}.
// Not thread-safe.

#include <cstdint>
#include <span>
#include <vector>

#include "bench/cholmod_peer.hpp"
#include "bench/peers_plugin.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata::bench {

class CholmodLibrary {
 public:
  /// `threads` of its BLAS; 0: all cores. Where its libraries are loaded only now, and the user has
  /// not said otherwise, its BLAS is asked for the kernels that ours was asked for, and its own
  /// loops have at most so many threads, which sleep while they wait. Throws Error{device} if there
  /// is no such file.
  explicit CholmodLibrary(int threads = 0);

  [[nodiscard]] const CholmodAbout& about() const noexcept { return about_; }

 private:
  friend class CholmodProblem;

  PeersPlugin plugin_;
  CholmodAbout about_{};
  CholmodOpen* open_ = nullptr;
  CholmodAnalyze* analyze_ = nullptr;
  CholmodFactor* factor_ = nullptr;
  CholmodLogDeterminant* log_determinant_ = nullptr;
  CholmodSolve* solve_ = nullptr;
  CholmodClose* close_ = nullptr;
};

/// A matrix with its factor.
class CholmodProblem {
 public:
  /// `lower` as lower_triangle() makes it; both stay as they are while this lives.
  CholmodProblem(const CholmodLibrary& library, const SparseMatrix& lower);
  CholmodProblem(const CholmodProblem&) = delete;
  CholmodProblem& operator=(const CholmodProblem&) = delete;
  ~CholmodProblem();

  /// order[k] is eliminated as the k-th; empty: by its METIS.
  CholmodCounts analyze(std::span<const std::int64_t> order = {});
  /// The row at which it failed; −1: done. `values` are those of a matrix with this pattern.
  [[nodiscard]] std::int64_t factor(std::span<const double> values);
  [[nodiscard]] double log_determinant() const;
  /// n × nrhs, valid until the next call.
  [[nodiscard]] std::span<const double> solve(std::span<const double> b, std::int64_t nrhs);

 private:
  const CholmodLibrary& library_;
  std::vector<std::int64_t> column_;
  void* problem_ = nullptr;
};

}  // namespace strata::bench
