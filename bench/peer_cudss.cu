// cuDSS in libstrata_peers_cuda.so. See cudss.hpp, cuda_peers.hpp.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/cuda_peers.hpp"
#include "bench/cudss.hpp"
#include "bench/plugin_cuda.hpp"

namespace {

using strata::bench::check;
using strata::bench::CudssLibrary;
using strata::bench::CudssMatrix;
using strata::bench::guarded;

const CudssLibrary& cudss() {
  static const CudssLibrary& instance = *new CudssLibrary;  // the driver may be gone at the end
  return instance;
}

void call(const char* function, int status) {
  strata::bench::InstalledLibrary::check(function, status);
}

/// Memory of the GPU in use.
template <class T>
class Numbers {
 public:
  explicit Numbers(std::int64_t count) {
    void* data = nullptr;
    check(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(T)), "cudaMalloc");
    data_.reset(static_cast<T*>(data));
  }
  void put(const T* source, std::int64_t count) {
    check(cudaMemcpy(data_.get(), source, static_cast<std::size_t>(count) * sizeof(T),
                     cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  [[nodiscard]] T* get() const { return data_.get(); }

 private:
  struct Free {
    void operator()(T* data) const { (void)cudaFree(data); }
  };
  std::unique_ptr<T, Free> data_;
};

bool is_there(const void* data) {
  cudaPointerAttributes attributes{};
  check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes");
  return attributes.type == cudaMemoryTypeDevice;
}

void wait() { check(cudaDeviceSynchronize(), "cudaDeviceSynchronize"); }

/// Columns of right-hand sides or solutions, in memory of the GPU.
class Columns {
 public:
  Columns(std::int64_t n, std::int64_t count, const double* values) {
    call("cudssMatrixCreateDn",
         cudss().create_dense(&matrix_, n, count, n, values, CudssLibrary::kDoubles, 0));
  }
  Columns(const Columns&) = delete;  // owns what cuDSS made
  Columns& operator=(const Columns&) = delete;
  ~Columns() { (void)cudss().destroy_matrix(matrix_); }
  [[nodiscard]] void* get() const { return matrix_; }

 private:
  void* matrix_ = nullptr;
};

class Problem {
 public:
  explicit Problem(const CudssMatrix& matrix)
      : n_(matrix.n),
        entries_(matrix.start[matrix.n]),
        nrhs_(matrix.nrhs),
        start_(matrix.n + 1),
        column_(entries_),
        value_(entries_),
        b_(matrix.n * matrix.nrhs),
        x_(matrix.n * matrix.nrhs) {
    if (entries_ > std::numeric_limits<std::int32_t>::max())
      throw std::runtime_error(std::to_string(entries_) + " entries do not go in 32 bits");
    const std::vector<std::int32_t> start(matrix.start, matrix.start + n_ + 1);
    start_.put(start.data(), n_ + 1);
    column_.put(matrix.column, entries_);
    value_.put(matrix.value, entries_);
    call("cudssCreate", cudss().create(&handle_));
    if (std::getenv("CUDSS_THREADING_LIB") != nullptr)
      call("cudssSetThreadingLayer", cudss().set_threading_layer(handle_, nullptr));
    call("cudssConfigCreate", cudss().create_config(&config_));
    call("cudssMatrixCreateCsr",
         cudss().create_sparse(&a_, n_, n_, entries_, start_.get(), nullptr, column_.get(),
                               value_.get(), CudssLibrary::kIntegers32, CudssLibrary::kIntegers32,
                               CudssLibrary::kDoubles, CudssLibrary::kPositiveDefinite,
                               CudssLibrary::kLowerTriangle, 0));
  }
  Problem(const Problem&) = delete;  // owns what cuDSS made
  Problem& operator=(const Problem&) = delete;
  ~Problem() {
    forget();
    (void)cudss().destroy_matrix(a_);
    (void)cudss().destroy_config(config_);
    (void)cudss().destroy(handle_);
  }

  void analyze(std::int64_t& factor_entries) {
    forget();
    call("cudssDataCreate", cudss().create_data(handle_, &data_));
    execute("analysis", CudssLibrary::kAnalysis, nullptr, nullptr);
    std::size_t written = 0;
    call("cudssDataGet", cudss().get_data(handle_, data_, CudssLibrary::kFactorEntries,
                                          &factor_entries, sizeof factor_entries, &written));
  }

  /// The row in its own numbering at which it failed, or −1.
  std::int64_t factor(const double* value) {
    const bool there = is_there(value);
    if (!there) value_.put(value, entries_);
    call("cudssMatrixSetValues", cudss().set_values(a_, there ? value : value_.get()));
    execute("factorization",
            factored_ ? CudssLibrary::kRefactorization : CudssLibrary::kFactorization, nullptr,
            nullptr);
    factored_ = true;
    int info = 0;
    std::size_t written = 0;
    call("cudssDataGet",
         cudss().get_data(handle_, data_, CudssLibrary::kInfo, &info, sizeof info, &written));
    return info == 0 ? -1 : info - 1;
  }

  void solve(const double* b, std::int64_t nrhs, double* x) {
    if (nrhs > nrhs_) throw std::runtime_error("more right-hand sides than room");
    const bool there = is_there(b);
    if (!there) b_.put(b, n_ * nrhs);
    const Columns right(n_, nrhs, there ? b : b_.get());
    const Columns solution(n_, nrhs, there ? x : x_.get());
    execute("solve", CudssLibrary::kSolve, solution.get(), right.get());
    if (!there)
      check(cudaMemcpy(x, x_.get(), static_cast<std::size_t>(n_ * nrhs) * sizeof(double),
                       cudaMemcpyDeviceToHost),
            "cudaMemcpy");
  }

 private:
  void execute(const char* what, int phase, void* x, void* b) {
    call(what, cudss().execute(handle_, phase, config_, data_, a_, x, b));
    wait();
  }

  void forget() {
    if (data_ != nullptr) (void)cudss().destroy_data(handle_, data_);
    data_ = nullptr;
    factored_ = false;
  }

  std::int64_t n_;
  std::int64_t entries_;
  std::int64_t nrhs_;
  Numbers<std::int32_t> start_;
  Numbers<std::int32_t> column_;
  Numbers<double> value_;
  Numbers<double> b_;
  Numbers<double> x_;
  void* handle_ = nullptr;
  void* config_ = nullptr;
  void* data_ = nullptr;
  void* a_ = nullptr;
  bool factored_ = false;
};

Problem& of(void* problem) { return *static_cast<Problem*>(problem); }

}  // namespace

extern "C" int strata_cudss_start(char* version, std::int64_t version_bytes, char* message,
                                  std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    std::snprintf(version, static_cast<std::size_t>(version_bytes), "%s",
                  cudss().version().c_str());
  });
}

extern "C" int strata_cudss_open(const CudssMatrix* matrix, int device, void** problem,
                                 char* message, std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] {
    check(cudaSetDevice(device), "cudaSetDevice");
    *problem = std::make_unique<Problem>(*matrix).release();
  });
}

extern "C" int strata_cudss_analyze(void* problem, std::int64_t* factor_entries, char* message,
                                    std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] { of(problem).analyze(*factor_entries); });
}

extern "C" int strata_cudss_factor(void* problem, const double* value, std::int64_t* bad_row,
                                   char* message, std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] { *bad_row = of(problem).factor(value); });
}

extern "C" int strata_cudss_solve(void* problem, const double* b, std::int64_t nrhs, double* x,
                                  char* message, std::int64_t message_bytes) {
  return guarded(message, message_bytes, [&] { of(problem).solve(b, nrhs, x); });
}

extern "C" int strata_cudss_close(void* problem, char* message, std::int64_t message_bytes) {
  return guarded(message, message_bytes,
                 [&] { std::unique_ptr<Problem>(static_cast<Problem*>(problem)).reset(); });
}

static_assert(std::is_same_v<decltype(strata_cudss_start), strata::bench::CudssStart>);
static_assert(std::is_same_v<decltype(strata_cudss_open), strata::bench::CudssOpen>);
static_assert(std::is_same_v<decltype(strata_cudss_analyze), strata::bench::CudssAnalyze>);
static_assert(std::is_same_v<decltype(strata_cudss_factor), strata::bench::CudssFactor>);
static_assert(std::is_same_v<decltype(strata_cudss_solve), strata::bench::CudssSolve>);
static_assert(std::is_same_v<decltype(strata_cudss_close), strata::bench::CudssClose>);
