#pragma once
// Other people's factorizations with memory of their own, beside our planned one.

#include <memory>
#include <string>
#include <utility>

#include "bench/in_place.hpp"
#include "kernels/backend/backend.hpp"

namespace strata::bench {

class Peer {
 public:
  Peer(std::unique_ptr<InPlace> in_place, const Backend& backend)
      : in_place_(std::move(in_place)), backend_(backend) {}

  /// "openblas dpotrf, 2 threads", and what its time covers.
  [[nodiscard]] std::string name(Element precision) const {
    return in_place_->peer_name(precision, false);
  }
  [[nodiscard]] std::string what() const { return in_place_->peer_what(); }
  /// Fills a matrix (not timed) on device 0 of its backend and factors it once; returns the
  /// seconds. Throws Error.
  [[nodiscard]] double factor(std::int64_t n, Element precision, std::uint64_t seed);

 private:
  std::unique_ptr<InPlace> in_place_;
  const Backend& backend_;
};

/// nullptr for "". Throws Error{misuse} for an unknown name and Error{device} if the peer is not
/// installed here.
[[nodiscard]] std::unique_ptr<Peer> make_peer(const std::string& name, int threads);

}  // namespace strata::bench
