#pragma once
// cuDSS through libstrata_peers_cuda.so, for one matrix on one GPU.
//
// Contract: what it reports is Error{device}; each call has finished when it returns. Not
// thread-safe.

#include <cstdint>
#include <span>
#include <string>

#include "bench/cuda_peers.hpp"
#include "bench/peers_plugin.hpp"
#include "strata/sparse_matrix.hpp"

namespace strata::bench {

class CudssPeer {
 public:
  /// On the first device that `devices` names, as `--devices` does. Throws Error{device} if that is
  /// no GPU, or if the plugin or cuDSS is not there.
  explicit CudssPeer(const std::string& devices);

  [[nodiscard]] const std::string& version() const noexcept { return version_; }

 private:
  friend class CudssProblem;

  int device_;
  PeersPlugin plugin_;
  std::string version_;
  CudssOpen* open_ = nullptr;
  CudssAnalyze* analyze_ = nullptr;
  CudssFactor* factor_ = nullptr;
  CudssSolve* solve_ = nullptr;
  CudssClose* close_ = nullptr;
};

/// A matrix with its factor, on the GPU.
class CudssProblem {
 public:
  /// `lower` as lower_triangle() makes it; `nrhs`: right-hand sides of a solve, at most.
  CudssProblem(const CudssPeer& peer, const SparseMatrix& lower, std::int64_t nrhs);
  CudssProblem(const CudssProblem&) = delete;  // owns memory of the GPU
  CudssProblem& operator=(const CudssProblem&) = delete;
  ~CudssProblem();

  /// Order, tree, memory: the entries of L.
  std::int64_t analyze();
  /// Values as CudssFactor has them. The row in cuDSS's order at which it failed; −1: done.
  [[nodiscard]] std::int64_t factor(const double* values);
  /// As CudssSolve has them.
  void solve(const double* b, std::int64_t nrhs, double* x);

 private:
  const CudssPeer& peer_;
  void* problem_ = nullptr;
};

}  // namespace strata::bench
