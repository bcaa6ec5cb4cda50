#pragma once
// The devices that tests of runs are repeated on.
//
// Contract: "host" is always there; "cuda" if this machine has a GPU. Device texts are as
// `--devices` takes them. Tests that need several GPUs ask `devices_text` and skip where it is
// empty: CPU devices can be made at will, GPUs cannot.

#include <string>
#include <vector>

#include "kernels/backend/backend.hpp"

namespace strata::test {

[[nodiscard]] inline std::vector<std::string> available_backends() {
  std::vector<std::string> names{"host"};
  if (cuda_backend() != nullptr) names.emplace_back("cuda");
  return names;
}

[[nodiscard]] inline const Backend& backend_of(const std::string& name) {
  return name == "cuda" ? *cuda_backend() : host_backend();
}

/// "host:2" or "cuda:0,1"; "" if the machine has fewer GPUs.
[[nodiscard]] inline std::string devices_text(const std::string& backend, int count) {
  if (backend == "host") return "host:" + std::to_string(count);
  if (static_cast<int>(backend_of(backend).devices().size()) < count) return "";
  std::string text = backend + ":0";
  for (int d = 1; d < count; ++d) text += "," + std::to_string(d);
  return text;
}

}  // namespace strata::test
