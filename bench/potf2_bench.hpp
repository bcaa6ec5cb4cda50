#pragma once
// bench potf2: our in-core factorization in every variant and blocking, for the tuning table.
//
// Contract: measured as in in_core_bench.hpp. What the backend refuses is left out. The host has
// nothing to tune: one measurement an order. The fused kernel is also measured with ib = 4, which
// runs cannot ask for: to compare with, never the best.
//
// Besides, the time t(nb) of one factorization of small orders, 64 to 1024, in the blocking that
// runs take (the tuning table's, if there is one), and of whole matrices of the orders asked for. A
// blocked factorization of order n contains n/nb factorizations of diagonal blocks of order nb; if
// nothing else ran beside any of them, they would be the share n/nb·t(nb) over the time of the
// whole. What runs beside them makes the true share smaller: it is an upper bound.

#include "bench/in_core_bench.hpp"

namespace strata::bench {

struct Potf2Bench {
  std::vector<std::int64_t> sizes;
  Element precision = Element::fp64;
  int repeats = 3;
  std::uint64_t seed = 1;
  bool peer = false;  ///< the peer of the device beside ours
  int peer_threads = 0;
  std::vector<std::int64_t> share_of;  ///< orders of whole matrices
};

struct Potf2Measurement {
  PotrfOptions options;
  double seconds = 0;  ///< the median
};

struct Potf2Row {
  std::int64_t n = 0;
  double flops = 0;
  std::vector<Potf2Measurement> measurements;  ///< not empty
  PeerResult peer{};

  /// The fastest that runs can ask for; of a variant, nullptr if there is none.
  [[nodiscard]] const Potf2Measurement& best() const;
  [[nodiscard]] const Potf2Measurement* best(PotrfVariant variant) const;
};

struct TimedOrder {
  std::int64_t n = 0;
  double flops = 0;
  double seconds = 0;  ///< the median
};

/// The seconds that n/nb small factorizations would take one after another.
[[nodiscard]] double seconds_bound(const TimedOrder& whole, const TimedOrder& small);

struct Potf2Result {
  std::string device;
  std::string model;
  bool tunable = false;
  std::vector<Potf2Row> rows;
  std::vector<TimedOrder> small;  ///< 64, 128 … 1024, but for those that the device has no room for
  std::vector<TimedOrder> whole;  ///< as asked for

  /// The fastest of each order.
  [[nodiscard]] PotrfTuning tuning(Element precision) const;
};

[[nodiscard]] Potf2Result run_potf2_bench(const Potf2Bench& bench, const CholeskyOptions& options);

}  // namespace strata::bench
