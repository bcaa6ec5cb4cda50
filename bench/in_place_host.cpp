// Host memory and the LAPACK of the host kernels, threaded. See in_place.hpp.
//
// It is an instance of its own: the threads of the peer are not those of our kernels.

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.hpp"
#include "base/work_crew.hpp"
#include "bench/compensated_sum.hpp"
#include "bench/in_place.hpp"
#include "bench/peer_blas.hpp"
#include "bench/timed_runs.hpp"
#include "scalar/dispatch.hpp"

namespace strata::bench {
namespace {

int lapack_potrf(std::int64_t order, double* a, std::int64_t leading) {
  const int n = static_cast<int>(order);
  const int ld = static_cast<int>(leading);
  int info = 0;
  peer_blas().functions.dpotrf("L", &n, a, &ld, &info, 1);
  return info;
}
int lapack_potrf(std::int64_t order, float* a, std::int64_t leading) {
  const int n = static_cast<int>(order);
  const int ld = static_cast<int>(leading);
  int info = 0;
  peer_blas().functions.spotrf("L", &n, a, &ld, &info, 1);
  return info;
}

void multiply_by_peer(int m, const double* a, const double* b, double* c) {
  peer_blas().functions.dgemm(CblasColMajor, CblasNoTrans, CblasTrans, m, m, m, -1, a, m, b, m, 1,
                              c, m);
}
void multiply_by_peer(int m, const float* a, const float* b, float* c) {
  peer_blas().functions.sgemm(CblasColMajor, CblasNoTrans, CblasTrans, m, m, m, -1, a, m, b, m, 1,
                              c, m);
}

double vector_element(std::uint64_t seed, std::int64_t i) {
  return random_uniform(seed + 1, static_cast<std::uint64_t>(i)) - 0.5;
}

class HostInPlace final : public InPlace {
 public:
  explicit HostInPlace(int threads) : threads_(threads > 0 ? threads : all_cores()) {}

  void fill(const Matrices& a, const TestMatrix& matrix) override {
    dispatch_native(a.precision, [&]<class T>(std::type_identity<T>) {
      crew_.share(a.count * a.n, [&](std::int64_t column) {
        const std::int64_t b = column / a.n;
        const std::int64_t j = column % a.n;
        T* out = static_cast<T*>(a.data) + b * a.ld * a.n + j * a.ld;
        std::fill_n(out, j, T{0});
        for (std::int64_t i = j; i < a.n; ++i) {
          out[i] = static_cast<T>(element(of_batch(matrix, b), a.n, i, j));
        }
      });
    });
  }

  [[nodiscard]] double residual(const Matrices& l, const TestMatrix& matrix) override {
    double worst = 0;
    dispatch_native(l.precision, [&]<class T>(std::type_identity<T>) {
      const T* last = static_cast<const T*>(l.data) + (l.count - 1) * l.ld * l.n;
      worst = residual_of(last, l.n, l.ld, of_batch(matrix, l.count - 1));
    });
    return worst;
  }

  [[nodiscard]] std::string peer_name(Element precision, bool batched) const override {
    return fmt::format("openblas {}potrf, {} threads{}", precision == Element::fp32 ? "s" : "d",
                       threads_, batched ? ", one matrix after another" : "");
  }
  [[nodiscard]] std::string peer_what() const override { return "in place, host memory"; }

  [[nodiscard]] double peer_potrf(const Matrices& a) override {
    int info = 0;
    const double elapsed = threaded([&] {
      dispatch_native(a.precision, [&]<class T>(std::type_identity<T>) {
        T* data = static_cast<T*>(a.data);
        for (std::int64_t b = 0; b < a.count && info == 0; ++b) {
          info = lapack_potrf(a.n, data + b * a.ld * a.n, a.ld);
        }
      });
    });
    require(info == 0, ErrorKind::numerical, "bench", "openblas potrf failed with info {}", info);
    return elapsed;
  }

  [[nodiscard]] double gemm_rate(Element precision, double seconds) override {
    constexpr int kOrder = 1024;
    double flops = 0;
    const auto start = Clock::now();
    (void)threaded([&] {
      dispatch_native(precision, [&]<class T>(std::type_identity<T>) {
        std::vector<T> values(3 * kOrder * kOrder);
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<T>(2 * random_uniform(1, i) - 1);
        do {
          multiply_by_peer(kOrder, values.data(), values.data() + kOrder * kOrder,
                           values.data() + 2 * kOrder * kOrder);
          flops += 2.0 * kOrder * kOrder * kOrder;
        } while (seconds_since(start) < seconds);
      });
    });
    return flops / seconds_since(start);
  }

  [[nodiscard]] std::int64_t free_bytes() override { return -1; }

 private:
  template <class F>
  double threaded(F&& work) {
    set_peer_threads(threads_);
    const auto start = Clock::now();
    work();
    return seconds_since(start);
  }

  template <class T>
  static double residual_of(const T* l, std::int64_t n, std::int64_t ld, const TestMatrix& matrix) {
    const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
    std::vector<double> v(at(n));
    std::vector<CompensatedSum> y(at(n));
    for (std::int64_t i = 0; i < n; ++i) v[at(i)] = vector_element(matrix.seed, i);
    for (std::int64_t j = 0; j < n; ++j) {
      CompensatedSum w;
      for (std::int64_t i = j; i < n; ++i)
        w.add_product(static_cast<double>(l[i + j * ld]), v[at(i)]);
      for (std::int64_t i = j; i < n; ++i)
        y[at(i)].add_product(static_cast<double>(l[i + j * ld]), w);
    }
    double worst = 0;
    double norm_a = 0;
    double norm_v = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      double norm = 0;
      for (std::int64_t j = 0; j < n; ++j) {
        const auto a = static_cast<double>(static_cast<T>(element(matrix, n, i, j)));
        y[at(i)].add_product(-a, v[at(j)]);
        norm += std::abs(a);
      }
      const double error = std::abs(y[at(i)].value());
      if (!(error <= worst)) worst = error;  // keeps a NaN
      norm_a = std::max(norm_a, norm);
      norm_v = std::max(norm_v, std::abs(v[at(i)]));
    }
    return worst / (norm_a * norm_v);
  }

  int threads_;
  WorkCrew crew_{all_cores() - 1};
};

}  // namespace

std::unique_ptr<InPlace> make_host_in_place(int threads) {
  return std::make_unique<HostInPlace>(threads);
}

}  // namespace strata::bench
