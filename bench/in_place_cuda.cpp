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
    bind(hermitian_fill, "strata_hermitian_fill");
    bind(hermitian_residual, "strata_hermitian_residual");
    bind(hermitian_potrf, "strata_cusolver_hermitian_potrf");
    bind(gemm_rate, "strata_dgemm_rate");
    bind(magma_start, "strata_magma_start");
    bind(magma_potrf, "strata_magma_potrf");
  }

  BenchFill* fill = nullptr;
  BenchResidual* residual = nullptr;
  BenchFreeBytes* free_bytes = nullptr;
  CusolverPotrf* potrf = nullptr;
  CusolverPotrfBatched* potrf_batched = nullptr;
  HermitianFill* hermitian_fill = nullptr;
  HermitianResidual* hermitian_residual = nullptr;
  CusolverHermitianPotrf* hermitian_potrf = nullptr;
  DgemmRate* gemm_rate = nullptr;
  MagmaStart* magma_start = nullptr;
  MagmaPotrf* magma_potrf = nullptr;
};

class CudaInPlace : public InPlace {
 public:
  void fill(const Matrices& a, const TestMatrix& matrix) override {
    if (is_complex(a.precision)) {
      for (std::int64_t b = 0; b < a.count; ++b)
        Plugin::call(plugin_.hermitian_fill, "filling",
                     static_cast<void*>(static_cast<std::byte*>(a.data) + b * a.bytes_each()), a.n,
                     a.ld, parts_of(a.precision), matrix.seed + static_cast<std::uint64_t>(b));
      return;
    }
    Plugin::call(plugin_.fill, "filling", a.data, a.n, a.ld, a.count, single(a.precision), matrix);
  }
  [[nodiscard]] double residual(const Matrices& l, const TestMatrix& matrix) override {
    double worst = 0;
    const void* last = static_cast<const std::byte*>(l.data) + (l.count - 1) * l.bytes_each();
    if (is_complex(l.precision)) {
      Plugin::call(plugin_.hermitian_residual, "residual", last, l.n, l.ld, parts_of(l.precision),
                   matrix.seed + static_cast<std::uint64_t>(l.count - 1), &worst);
      return worst;
    }
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
    if (is_complex(a.precision)) {
      require(a.count == 1, ErrorKind::misuse, "bench",
              "cusolver takes one complex matrix here, not {}", a.count);
      Plugin::call(plugin_.hermitian_potrf, "cuSOLVER", a.data, a.n, a.ld, parts_of(a.precision),
                   &seconds, &info);
    } else if (a.count > 1) {
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
    require(!is_complex(precision), ErrorKind::misuse, "bench",
            "--gemm-seconds is for real matrices, not {}", to_string(precision));
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
  static LuElement parts_of(Element precision) {
    return precision == Element::complex128 ? LuElement::complex128 : LuElement::complex64;
  }
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
    require(a.count == 1 && !is_complex(a.precision), ErrorKind::misuse, "bench",
            "magma takes one real matrix here, not {} in {}", a.count, to_string(a.precision));
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
