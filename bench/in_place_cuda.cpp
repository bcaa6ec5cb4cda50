// Device memory, cuSOLVER and MAGMA, through libstrata_peers_cuda.so. See in_place.hpp,
// cuda_peers.hpp.

#include <array>

#include "base/check.hpp"
#include "bench/cuda_peers.hpp"
#include "bench/in_place.hpp"
#include "bench/peers_plugin.hpp"

namespace strata::bench {
namespace {

/// The functions of the plugin.
struct Plugin : PeersPlugin {
  Plugin() {
    bind(fill, "strata_bench_fill");
    bind(residual, "strata_bench_residual");
    bind(free_bytes, "strata_bench_free_bytes");
    bind(potrf, "strata_cusolver_potrf");
    bind(potrf_batched, "strata_cusolver_potrf_batched");
    bind(gemm_rate, "strata_dgemm_rate");
    bind(magma_start, "strata_magma_start");
    bind(magma_potrf, "strata_magma_potrf");
  }

  BenchFill* fill = nullptr;
  BenchResidual* residual = nullptr;
  BenchFreeBytes* free_bytes = nullptr;
  CusolverPotrf* potrf = nullptr;
  CusolverPotrfBatched* potrf_batched = nullptr;
  DgemmRate* gemm_rate = nullptr;
  MagmaStart* magma_start = nullptr;
  MagmaPotrf* magma_potrf = nullptr;
};

class CudaInPlace : public InPlace {
 public:
  void fill(const Matrices& a, const TestMatrix& matrix) override {
    Plugin::call(plugin_.fill, "filling", a.data, a.n, a.ld, a.count, single(a.precision), matrix);
  }
  [[nodiscard]] double residual(const Matrices& l, const TestMatrix& matrix) override {
    double worst = 0;
    const void* last = static_cast<const std::byte*>(l.data) + (l.count - 1) * l.bytes_each();
    Plugin::call(plugin_.residual, "residual", last, l.n, l.ld, single(l.precision),
                 of_batch(matrix, l.count - 1), &worst);
    return worst;
  }

  [[nodiscard]] std::string peer_name(Element, bool batched) const override {
    return batched ? "cusolver potrfBatched" : "cusolver Xpotrf";
  }
  [[nodiscard]] std::string peer_what() const override {
    return "in place, device memory, one GPU";
  }
  [[nodiscard]] double peer_potrf(const Matrices& a) override {
    double seconds = 0;
    int info = 0;
    if (a.count > 1) {
      Plugin::call(plugin_.potrf_batched, "cuSOLVER", a.data, a.n, a.ld, a.count,
                   single(a.precision), &seconds, &info);
    } else {
      Plugin::call(plugin_.potrf, "cuSOLVER", a.data, a.n, a.ld, single(a.precision), &seconds,
                   &info);
    }
    require(info == 0, ErrorKind::numerical, "bench", "cuSOLVER failed with info {}", info);
    return seconds;
  }

  [[nodiscard]] double gemm_rate(Element precision, double seconds) override {
    double rate = 0;
    Plugin::call(plugin_.gemm_rate, "cuBLAS", single(precision), seconds, &rate);
    return rate;
  }
  [[nodiscard]] std::int64_t free_bytes() override {
    std::int64_t bytes = 0;
    Plugin::call(plugin_.free_bytes, "memory", &bytes);
    return bytes;
  }

 protected:
  static bool single(Element precision) { return precision == Element::fp32; }
  [[nodiscard]] const Plugin& plugin() const noexcept { return plugin_; }

 private:
  Plugin plugin_;
};

/// MAGMA is the peer; GEMM is still cuBLAS's.
class CudaInPlaceBesideMagma final : public CudaInPlace {
 public:
  CudaInPlaceBesideMagma() {
    std::array<char, 64> version{};
    Plugin::call(plugin().magma_start, "magma", version.data(), std::ssize(version));
    version_ = version.data();
  }

  [[nodiscard]] std::string peer_name(Element precision, bool) const override {
    return fmt::format("magma {} {}potrf_native", version_, single(precision) ? "s" : "d");
  }
  [[nodiscard]] std::string peer_what() const override {
    return "in place, device memory, one GPU, by the clock of the host";
  }
  [[nodiscard]] double peer_potrf(const Matrices& a) override {
    require(a.count == 1, ErrorKind::misuse, "bench", "magma takes one matrix here, not {}",
            a.count);
    double seconds = 0;
    int info = 0;
    Plugin::call(plugin().magma_potrf, "magma", a.data, a.n, a.ld, single(a.precision), &seconds,
                 &info);
    require(info == 0, ErrorKind::numerical, "bench", "MAGMA failed with info {}", info);
    return seconds;
  }

 private:
  std::string version_;
};

}  // namespace

std::unique_ptr<InPlace> make_cuda_in_place(const std::string& peer) {
  if (peer == "magma") return std::make_unique<CudaInPlaceBesideMagma>();
  return std::make_unique<CudaInPlace>();
}

}  // namespace strata::bench
