#include "bench/peers.hpp"

#include <dlfcn.h>
#include <lapacke.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "bench/random_matrix.hpp"
#include "scalar/dispatch.hpp"

namespace strata::bench {
namespace {

template <class F>
void in_parallel(std::int64_t count, F work) {
  std::vector<std::jthread> threads;
  const auto parts = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  for (std::int64_t t = 0; t < parts; ++t) {
    threads.emplace_back([=] {
      for (std::int64_t i = t; i < count; i += parts) work(i);
    });
  }
}

lapack_int potrf(std::int64_t n, double* a) {
  return LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', static_cast<lapack_int>(n), a,
                             static_cast<lapack_int>(n));
}
lapack_int potrf(std::int64_t n, float* a) {
  return LAPACKE_spotrf_work(LAPACK_COL_MAJOR, 'L', static_cast<lapack_int>(n), a,
                             static_cast<lapack_int>(n));
}

/// LAPACK's potrf from the BLAS this program is linked with, threaded.
class LapackPeer final : public Peer {
 public:
  explicit LapackPeer(int threads)
      : threads_(threads > 0
                     ? threads
                     : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))) {
    set_threads_ = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
    require(set_threads_ != nullptr, ErrorKind::device, "bench",
            "the BLAS of this build is not OpenBLAS");
  }

  [[nodiscard]] std::string name(Precision precision) const override {
    return fmt::format("openblas {}potrf, {} threads", precision == Precision::fp32 ? "s" : "d",
                       threads_);
  }
  [[nodiscard]] std::string what() const override { return "in place, host memory"; }

  double factor(std::int64_t n, Precision precision, std::uint64_t seed) override {
    return dispatch(precision, [&]<class T>(std::type_identity<T>) { return time<T>(n, seed); });
  }

 private:
  template <class T>
  double time(std::int64_t n, std::uint64_t seed) {
    memory_.resize(static_cast<std::size_t>(n * n) * sizeof(T));  // kept, as ours is
    T* a = reinterpret_cast<T*>(memory_.data());
    in_parallel(n, [a, n, seed](std::int64_t j) {
      for (std::int64_t i = 0; i < n; ++i)
        a[i + j * n] = static_cast<T>(random_element(n, seed, i, j));
    });
    // Our kernels are single-threaded calls made by several queues; the setting is put back for
    // them.
    set_threads_(threads_);
    const auto start = std::chrono::steady_clock::now();
    const lapack_int info = potrf(n, a);
    const double elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    set_threads_(1);
    require(info == 0, ErrorKind::numerical, "bench", "openblas potrf failed with info {}", info);
    return elapsed;
  }

  std::vector<std::byte> memory_;
  int threads_;
  void (*set_threads_)(int) = nullptr;
};

/// The folder of the running program.
std::string program_folder() {
  std::array<char, 4096> path{};
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  const std::string program(path.data(), static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return program.substr(0, program.find_last_of('/'));
}

class CusolverPeer final : public Peer {
 public:
  CusolverPeer() {
    const std::string file = program_folder() + "/libstrata_peers_cuda.so";
    void* library =
        dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // stays for the rest of the process
    require(library != nullptr, ErrorKind::device, "bench", "no cuSOLVER here: {}", dlerror());
    potrf_ = reinterpret_cast<CusolverPotrf>(dlsym(library, "strata_cusolver_potrf"));
    require(potrf_ != nullptr, ErrorKind::device, "bench", "{} has no cuSOLVER peer", file);
  }

  [[nodiscard]] std::string name(Precision) const override { return "cusolver Xpotrf"; }
  [[nodiscard]] std::string what() const override { return "in place, device memory, one GPU"; }

  double factor(std::int64_t n, Precision precision, std::uint64_t seed) override {
    double seconds = 0;
    std::array<char, 512> message{};
    const int status =
        potrf_(n, precision == Precision::fp32, seed, 1, &seconds, message.data(), message.size());
    require(status == 0, ErrorKind::device, "bench", "cuSOLVER: {}", message.data());
    return seconds;
  }

 private:
  CusolverPotrf potrf_ = nullptr;
};

}  // namespace

std::unique_ptr<Peer> make_peer(const std::string& name, int threads) {
  if (name.empty()) return nullptr;
  if (name == "openblas") return std::make_unique<LapackPeer>(threads);
  if (name == "cusolver") return std::make_unique<CusolverPeer>();
  fail(ErrorKind::misuse, "bench", "'{}' is no peer: use openblas or cusolver", name);
}

}  // namespace strata::bench
