#pragma once
// Matrices of the benchmarks where they are factored: filling them, other people's factorizations
// of them, and how good a factor is.
//
// Contract: one object serves host memory, another the memory of GPUs through
// libstrata_peers_cuda.so. Calls return when their work is done. A peer works on the same memory as
// ours: there need be only one copy of a matrix.

#include <cstdint>
#include <memory>
#include <string>

#include "bench/test_matrix.hpp"
#include "strata/element.hpp"

namespace strata::bench {

/// `count` matrices of order n, one after another, ld·n elements apart.
struct Matrices {
  void* data = nullptr;
  std::int64_t n = 0;
  std::int64_t ld = 0;
  std::int64_t count = 1;
  Element precision = Element::fp64;

  [[nodiscard]] std::int64_t bytes_each() const { return ld * n * bytes_of(precision); }
  [[nodiscard]] std::int64_t bytes() const { return count * bytes_each(); }
  /// Multiplications and additions of all factorizations: n³/3 each, with the lower terms; of
  /// complex numbers four times as many.
  [[nodiscard]] double flops() const {
    const auto order = static_cast<double>(n);
    return (is_complex(precision) ? 4 : 1) * static_cast<double>(count) *
           (order * order * order / 3 + order * order / 2 + order / 6);
  }
};

class InPlace {
 public:
  InPlace() = default;
  InPlace(const InPlace&) = delete;
  InPlace& operator=(const InPlace&) = delete;
  virtual ~InPlace() = default;

  /// Lower triangles as test_matrix.hpp has them, of complex numbers as HermitianFill
  /// (cuda_peers.hpp) has them, of seed + b for matrix b; zeros above.
  virtual void fill(const Matrices& a, const TestMatrix& matrix) = 0;
  /// ‖A·v − L·(Lᵀ·v)‖∞ / (‖A‖∞·‖v‖∞) for one random v and the last of the factored matrices,
  /// evaluated as compensated_sum.hpp has it.
  [[nodiscard]] virtual double residual(const Matrices& l, const TestMatrix& matrix) = 0;

  /// The peer in full: "cusolver Xpotrf"; and what its time covers.
  [[nodiscard]] virtual std::string peer_name(Element precision, bool batched) const = 0;
  [[nodiscard]] virtual std::string peer_what() const = 0;
  /// The peer's seconds for the factorizations. Throws Error{numerical} if it calls one bad.
  [[nodiscard]] virtual double peer_potrf(const Matrices& a) = 0;

  /// The rate of the peer's GEMM over about `seconds`, in flops a second.
  [[nodiscard]] virtual double gemm_rate(Element precision, double seconds) = 0;
  /// Memory of the device that is free; −1 if that is not known.
  [[nodiscard]] virtual std::int64_t free_bytes() = 0;
};

/// For host memory; `threads` of the peer, 0: all cores.
[[nodiscard]] std::unique_ptr<InPlace> make_host_in_place(int threads);
/// For device memory; `peer`: "cusolver" or "magma". Throws Error{device} where
/// libstrata_peers_cuda.so or the peer is not.
[[nodiscard]] std::unique_ptr<InPlace> make_cuda_in_place(const std::string& peer = "cusolver");

}  // namespace strata::bench
