#include "bench/peers.hpp"

#include "base/check.hpp"

namespace strata::bench {

double Peer::factor(std::int64_t n, Element precision, std::uint64_t seed) {
  Matrices a{.n = n, .ld = n, .precision = precision};
  const std::unique_ptr<Device> device = backend_.make_device(0, a.bytes());
  const Buffer memory = device->allocate(a.bytes());
  a.data = memory.data();
  in_place_->fill(a, {.seed = seed});
  return in_place_->peer_potrf(a);
}

std::unique_ptr<Peer> make_peer(const std::string& name, int threads) {
  if (name.empty()) return nullptr;
  if (name == "openblas")
    return std::make_unique<Peer>(make_host_in_place(threads), host_backend());
  require(name == "cusolver" || name == "magma", ErrorKind::misuse, "bench",
          "'{}' is no peer: use openblas, cusolver or magma", name);
  std::string why;
  const Backend* cuda = cuda_backend(&why);
  require(cuda != nullptr, ErrorKind::device, "bench", "no GPU for {}: {}", name, why);
  return std::make_unique<Peer>(make_cuda_in_place(name), *cuda);
}

}  // namespace strata::bench
