#pragma once
// Peers of tall matrices on a GPU, and the reading of one there.

#include "bench/cuda_peers.hpp"
#include "bench/peers_plugin.hpp"

namespace strata::bench {

struct TallPeers : PeersPlugin {
  TallPeers() { bind(time, "strata_tall_time"); }
  TallTime* time = nullptr;
};

}  // namespace strata::bench
