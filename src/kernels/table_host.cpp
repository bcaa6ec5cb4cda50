// The table of the host kernels.

#include "kernels/column_squares.hpp"
#include "kernels/covariance.hpp"
#include "kernels/gemm.hpp"
#include "kernels/laset.hpp"
#include "kernels/potrf.hpp"
#include "kernels/potrf_batched.hpp"
#include "kernels/syrk.hpp"
#include "kernels/tables.hpp"
#include "kernels/trmm.hpp"
#include "kernels/trsm.hpp"

namespace strata {
namespace {

template <class T>
void add(KernelTable& table) {
  constexpr Element element = element_of<T>;
  table.set(potrf, {element, Element::fp64}, potrf_host<T>);
  table.set(potrf_batched, kBatchElements<T>, potrf_batched_host<T>);
  table.set(trmm, Elements(2, element), trmm_host<T>);
  table.set(trsm, Elements(2, element), trsm_host<T>);
  table.set(syrk, Elements(2, element), syrk_host<T>);
  table.set(gemm, Elements(3, element), gemm_host<T>);
  table.set(covariance, Elements(3, element), covariance_host<T>);
  table.set(laset, Elements(1, element), laset_host<T>);
  table.set(column_squares, {Element::fp64, element}, column_squares_host<T>);
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
