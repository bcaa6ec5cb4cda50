// The table of the reference kernels.

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
  table.set(Operation::potrf, precision, potrf_reference<T>);
  table.set_batched(precision, potrf_batched_reference<T>);
  table.set(Operation::trsm, precision, trsm_reference<T>);
  table.set(Operation::syrk, precision, syrk_reference<T>);
  table.set(Operation::gemm, precision, gemm_reference<T>);
  table.set(Operation::trsm_left, precision, trsm_left_reference<T>);
  table.set(Operation::trsm_left_transposed, precision, trsm_left_transposed_reference<T>);
  table.set(Operation::gemm_left, precision, gemm_left_reference<T>);
  table.set(Operation::gemm_left_transposed, precision, gemm_left_transposed_reference<T>);
  table.set(Operation::covariance, precision, covariance_reference<T>);
}

}  // namespace

const KernelTable& reference_kernels() {
  static const KernelTable table = [] {
    KernelTable kernels;
    add<double>(kernels);
    add<float>(kernels);
    return kernels;
  }();
  return table;
}

}  // namespace strata
