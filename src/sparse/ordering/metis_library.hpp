#pragma once
// METIS, loaded at run time as a private instance.
//
// Contract: calls may be made from several threads at once, and what a call returns follows from
// its arguments, the seed included, alone. Nothing of the process is changed: METIS draws its
// random numbers with rand() and catches signals while it runs, and both are redirected in our
// instance. Failures are Error{memory, device}.
//
// Which file it is was decided when Strata was configured; $STRATA_METIS names another, with 32-bit
// integers.

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.hpp"

namespace strata {

/// An undirected graph as METIS takes it; the neighbours of v are neighbor[start[v]] … , without v,
/// and `weight` is of vertices.
struct WeightedGraph {
  std::vector<std::int32_t> start{0};
  std::vector<std::int32_t> neighbor;
  std::vector<std::int32_t> weight;

  [[nodiscard]] std::int32_t size() const noexcept {
    return static_cast<std::int32_t>(weight.size());
  }
};

/// A seed of METIS, of a sequence of them.
[[nodiscard]] inline std::int32_t metis_seed(std::uint64_t seed, std::uint64_t index) {
  return static_cast<std::int32_t>(random_bits(seed, index) >> 33);
}

class MetisLibrary {
 public:
  /// The one of this process. Throws Error{device} if there is none.
  [[nodiscard]] static const MetisLibrary& get();

  /// Nested dissection: result[k] is the vertex that comes k-th. At least one vertex.
  [[nodiscard]] std::vector<std::int32_t> node_nd(const WeightedGraph& graph,
                                                  std::int32_t seed) const;
  /// 0 or 1 for the vertices of two parts without edges between them, 2 for those that separate.
  [[nodiscard]] std::vector<std::int32_t> separate(const WeightedGraph& graph,
                                                   std::int32_t seed) const;

 private:
  MetisLibrary();
  using NodeNd = int (*)(std::int32_t*, std::int32_t*, std::int32_t*, std::int32_t*, std::int32_t*,
                         std::int32_t*, std::int32_t*);
  using Separate = NodeNd;  // the same types, other meanings
  using SetDefaults = int (*)(std::int32_t*);
  NodeNd node_nd_ = nullptr;
  Separate separate_ = nullptr;
  SetDefaults set_defaults_ = nullptr;
};

}  // namespace strata
