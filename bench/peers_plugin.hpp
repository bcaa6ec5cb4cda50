#pragma once
// A shared object with peers, from the folder of the running program: libstrata_peers_cuda.so, or
// libstrata_peer_cholmod.so.
//
// Contract: it stays for the rest of the process. What it lacks, and what its functions report, is
// Error{device}.

#include <array>
#include <cstdint>
#include <string>

#include "base/check.hpp"

namespace strata::bench {

class PeersPlugin {
 public:
  /// Throws Error{device} if there is no such file.
  explicit PeersPlugin(const std::string& name = "libstrata_peers_cuda.so");

  template <class F>
  void bind(F*& function, const char* name) const {
    function = reinterpret_cast<F*>(address_of(name));
  }
  /// Calls a function with its arguments and a place for a message.
  template <class F, class... Args>
  static void call(F* function, const char* what, Args... args) {
    std::array<char, 512> message{};
    const int status = function(args..., message.data(), std::ssize(message));
    require(status == 0, ErrorKind::device, "bench", "{}: {}", what, message.data());
  }

 private:
  [[nodiscard]] void* address_of(const char* name) const;

  std::string file_;
  void* library_ = nullptr;
};

}  // namespace strata::bench
