// CHOLMOD as a peer: see cholmod_peer.hpp. Part of libstrata_peer_cholmod.so alone, because of its
// license and because not everybody has it.

#include "bench/cholmod_peer.hpp"

#include <cholmod.h>
#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace strata::bench {
namespace {

/// As its functions count, with longs for the indices: L may have more than 2³¹ entries.
class Problem {
 public:
  explicit Problem(const CholmodMatrix& matrix) : matrix_(matrix) {
    cholmod_l_start(&common_);
    common_.print = 0;
    common_.useGPU = 0;
    common_.supernodal = CHOLMOD_SUPERNODAL;
    common_.final_ll = 1;
    common_.quick_return_if_not_posdef = 1;
    common_.nmethods = 1;
    common_.postorder = 1;
  }
  Problem(const Problem&) = delete;  // owns what CHOLMOD allocated
  Problem& operator=(const Problem&) = delete;
  ~Problem() {
    cholmod_l_free_factor(&factor_, &common_);
    for (cholmod_dense** dense : {&x_, &y_, &e_}) cholmod_l_free_dense(dense, &common_);
    cholmod_l_finish(&common_);
  }

  void analyze(const std::int64_t* order, CholmodCounts& counts) {
    cholmod_l_free_factor(&factor_, &common_);
    common_.method[0].ordering = order == nullptr ? CHOLMOD_METIS : CHOLMOD_GIVEN;
    cholmod_sparse a = sparse(matrix_.value);
    order_.clear();
    if (order != nullptr) order_.assign(order, order + matrix_.n);
    factor_ =
        cholmod_l_analyze_p(&a, order == nullptr ? nullptr : order_.data(), nullptr, 0, &common_);
    require(factor_ != nullptr && common_.status == CHOLMOD_OK, "cholmod_l_analyze_p");
    counts = {common_.fl, common_.lnz, static_cast<std::int64_t>(factor_->nsuper),
              static_cast<std::int64_t>(factor_->xsize * sizeof(double))};
  }

  /// The row at which it failed, or −1.
  std::int64_t factor(const double* value) {
    cholmod_sparse a = sparse(value);
    const int done = cholmod_l_factorize(&a, factor_, &common_);
    require(done != 0 && (common_.status == CHOLMOD_OK || common_.status == CHOLMOD_NOT_POSDEF),
            "cholmod_l_factorize");
    if (factor_->minor >= factor_->n) return -1;
    return static_cast<const SuiteSparse_long*>(factor_->Perm)[factor_->minor];
  }

  [[nodiscard]] double log_determinant() const {
    const auto* super = static_cast<const SuiteSparse_long*>(factor_->super);
    const auto* rows = static_cast<const SuiteSparse_long*>(factor_->pi);
    const auto* panel = static_cast<const SuiteSparse_long*>(factor_->px);
    const auto* x = static_cast<const double*>(factor_->x);
    double sum = 0;
    for (std::size_t s = 0; s < factor_->nsuper; ++s) {
      const SuiteSparse_long ld = rows[s + 1] - rows[s];
      for (SuiteSparse_long j = 0; j < super[s + 1] - super[s]; ++j)
        sum += std::log(x[panel[s] + j * (ld + 1)]);
    }
    return 2 * sum;
  }

  const double* solve(const double* b, std::int64_t nrhs) {
    cholmod_dense right{};
    right.nrow = right.d = factor_->n;
    right.ncol = static_cast<std::size_t>(nrhs);
    right.nzmax = right.nrow * right.ncol;
    right.x = const_cast<double*>(b);  // it only reads them
    right.xtype = CHOLMOD_REAL;
    right.dtype = CHOLMOD_DOUBLE;
    const int done =
        cholmod_l_solve2(CHOLMOD_A, factor_, &right, nullptr, &x_, nullptr, &y_, &e_, &common_);
    require(done != 0 && common_.status == CHOLMOD_OK, "cholmod_l_solve2");
    return static_cast<const double*>(x_->x);
  }

 private:
  void require(bool fine, const char* function) const {
    if (!fine)
      throw std::runtime_error(std::string(function) + ": status " +
                               std::to_string(common_.status));
  }

  /// Rows of the lower triangle are columns of the upper one, which is what it is quickest with.
  [[nodiscard]] cholmod_sparse sparse(const double* value) const {
    cholmod_sparse a{};
    a.nrow = a.ncol = static_cast<std::size_t>(matrix_.n);
    a.nzmax = static_cast<std::size_t>(matrix_.start[matrix_.n]);
    // It writes to none of them.
    a.p = const_cast<std::int64_t*>(matrix_.start);
    a.i = const_cast<std::int64_t*>(matrix_.column);
    a.x = const_cast<double*>(value);
    a.stype = 1;
    a.itype = CHOLMOD_LONG;
    a.xtype = CHOLMOD_REAL;
    a.dtype = CHOLMOD_DOUBLE;
    a.sorted = 1;
    a.packed = 1;
    return a;
  }

  CholmodMatrix matrix_;
  cholmod_common common_{};
  cholmod_factor* factor_ = nullptr;
  cholmod_dense* x_ = nullptr;
  cholmod_dense* y_ = nullptr;
  cholmod_dense* e_ = nullptr;
  std::vector<SuiteSparse_long> order_;
};

/// The function as CHOLMOD's own calls would find it.
template <class F>
F* find(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_DEFAULT, name));
}

template <std::size_t kSize>
void put(char (&place)[kSize], const char* text) {
  std::snprintf(place, kSize, "%s", text == nullptr ? "" : text);
}

void start(int threads, CholmodAbout& about) {
  about = {};
  if (auto* set = find<void(int)>("openblas_set_num_threads")) set(threads);
  std::array<int, 3> version{};
  cholmod_l_version(version.data());
  std::snprintf(about.version, sizeof about.version, "%d.%d.%d", version[0], version[1],
                version[2]);
  Dl_info file{};
  if (dladdr(dlsym(RTLD_DEFAULT, "dgemm_"), &file) != 0) put(about.blas, file.dli_fname);
  if (auto* name = find<char*()>("openblas_get_corename")) put(about.blas_kernels, name());
  if (auto* count = find<int()>("openblas_get_num_threads")) about.blas_threads = count();
  if (auto* limit = find<int()>("omp_get_thread_limit")) about.openmp_threads = limit();
}

template <class Work>
int reported(char* message, std::int64_t message_bytes, const Work& work) {
  try {
    work();
    return 0;
  } catch (const std::exception& error) {
    std::snprintf(message, static_cast<std::size_t>(message_bytes), "%s", error.what());
    return -1;
  }
}

}  // namespace
}  // namespace strata::bench

using namespace strata::bench;

extern "C" int strata_cholmod_start(int threads, CholmodAbout* about, char* message,
                                    std::int64_t message_bytes) {
  return reported(message, message_bytes, [&] { start(threads, *about); });
}

extern "C" int strata_cholmod_open(const CholmodMatrix* matrix, void** problem, char* message,
                                   std::int64_t message_bytes) {
  return reported(message, message_bytes,
                  [&] { *problem = std::make_unique<Problem>(*matrix).release(); });
}

extern "C" int strata_cholmod_analyze(void* problem, const std::int64_t* order,
                                      CholmodCounts* counts, char* message,
                                      std::int64_t message_bytes) {
  return reported(message, message_bytes,
                  [&] { static_cast<Problem*>(problem)->analyze(order, *counts); });
}

extern "C" int strata_cholmod_factor(void* problem, const double* value, std::int64_t* bad_row,
                                     char* message, std::int64_t message_bytes) {
  return reported(message, message_bytes,
                  [&] { *bad_row = static_cast<Problem*>(problem)->factor(value); });
}

extern "C" int strata_cholmod_log_determinant(void* problem, double* log_determinant, char* message,
                                              std::int64_t message_bytes) {
  return reported(message, message_bytes, [&] {
    *log_determinant = static_cast<const Problem*>(problem)->log_determinant();
  });
}

extern "C" int strata_cholmod_solve(void* problem, const double* b, std::int64_t nrhs,
                                    const double** x, char* message, std::int64_t message_bytes) {
  return reported(message, message_bytes,
                  [&] { *x = static_cast<Problem*>(problem)->solve(b, nrhs); });
}

extern "C" int strata_cholmod_close(void* problem, char* message, std::int64_t message_bytes) {
  return reported(message, message_bytes,
                  [&] { std::unique_ptr<Problem>(static_cast<Problem*>(problem)).reset(); });
}
