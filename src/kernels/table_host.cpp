// The table of the host kernels.

#include "kernels/covariance.hpp"
#include "kernels/gemm.hpp"
#include "kernels/potrf.hpp"
#include "kernels/potrf_batched.hpp"
#include "kernels/solve.hpp"
#include "kernels/syrk.hpp"
#include "kernels/tables.hpp"
#include "kernels/trsm.hpp"

namespace strata {
namespace {

template <class T>
void add(KernelTable& table) {
  constexpr Precision precision = precision_of<T>;
  table.set(Operation::potrf, precision, potrf_host<T>);
  table.set_batched(precision, potrf_batched_host<T>);
  table.set(Operation::trsm, precision, trsm_host<T>);
  table.set(Operation::syrk, precision, syrk_host<T>);
  table.set(Operation::gemm, precision, gemm_host<T>);
  table.set(Operation::trsm_left, precision, trsm_left_host<T>);
  table.set(Operation::trsm_left_transposed, precision, trsm_left_transposed_host<T>);
  table.set(Operation::gemm_left, precision, gemm_left_host<T>);
  table.set(Operation::gemm_left_transposed, precision, gemm_left_transposed_host<T>);
  table.set(Operation::covariance, precision, covariance_host<T>);
}

}  // namespace

const KernelTable& host_kernels() {
  static const KernelTable table = [] {
    KernelTable kernels;
    add<double>(kernels);
    add<float>(kernels);
    return kernels;
  }();
  return table;
}

}  // namespace strata
