// The table of the host kernels.

#include <complex>

#include "kernels/backend/tables.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/covariance/covariance_times.hpp"
#include "kernels/dense/column_squares.hpp"
#include "kernels/dense/convert.hpp"
#include "kernels/dense/copy_rows.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/getrf_batched.hpp"
#include "kernels/dense/laset.hpp"
#include "kernels/dense/lu_back.hpp"
#include "kernels/dense/lu_update.hpp"
#include "kernels/dense/mixed_products.hpp"
#include "kernels/dense/panel_product.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/potrf_batched.hpp"
#include "kernels/dense/scaled_copy.hpp"
#include "kernels/dense/stripe.hpp"
#include "kernels/dense/stripe_pair.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/take_diagonal.hpp"
#include "kernels/dense/tile_inverse.hpp"
#include "kernels/dense/tile_norm.hpp"
#include "kernels/dense/trmm.hpp"
#include "kernels/dense/trsm.hpp"
#include "kernels/fronts/front.hpp"
#include "kernels/krylov/paired.hpp"
#include "kernels/krylov/panel.hpp"
#include "kernels/tall/gram.hpp"
#include "kernels/tall/householder.hpp"
#include "kernels/tall/sketch.hpp"
#include "kernels/tall/subtract_columns.hpp"

namespace strata {
namespace host {
namespace {

/// What dense systems need, real or complex.
template <class T>
void add_dense(KernelTable& table) {
  constexpr Element element = element_of<T>;
  table.set(potrf, {element, Element::fp64}, potrf_host<T>);
  table.set(potrf_batched, kBatchElements<T>, potrf_batched_host<T>);
  table.set(trmm, Elements(2, element), trmm_host<T>);
  table.set(trsm, Elements(2, element), trsm_host<T>);
  table.set(syrk, Elements(2, element), syrk_host<T>);
  table.set(gemm, Elements(3, element), gemm_host<T>);
  table.set(getrf, kGetrfElements<T>, getrf_host<T>);
  table.set(getrf_batched, kGetrfElements<T>, getrf_batched_host<T>);
  table.set(lu_update, kLuUpdateElements<T>, lu_update_host<T>);
  table.set(lu_back, Elements(2, element), lu_back_host<T>);
  table.set(copy_rows, Elements(2, element), copy_rows_host<T>);
  table.set(take_diagonal, Elements(2, element), take_diagonal_host<T>);
  add_panel_product<T>(table, panel_product_host<T>);
  table.set(stripe_factor, kGetrfElements<T>, stripe_factor_host<T>);
  table.set(stripe_row, kStripeRowElements<T>, stripe_row_host<T>);
  table.set(stripe_column, kStripeColumnElements<T>, stripe_column_host<T>);
  table.set(stripe_pair_factor, kPairFactorElements<T>, stripe_pair_factor_host<T>);
  table.set(stripe_pair_row, kPairRowElements<T>, stripe_pair_row_host<T>);
  table.set(stripe_pair_update, kPairUpdateElements<T>, stripe_pair_update_host<T>);
}

template <class T>
void add(KernelTable& table) {
  constexpr Element element = element_of<T>;
  add_dense<T>(table);
  table.set(covariance, Elements(3, element), covariance_host<T>);
  table.set(laset, Elements(1, element), laset_host<T>);
  table.set(column_squares, {Element::fp64, element}, column_squares_host<T>);
  table.set(tile_norm, {Element::fp64, element}, tile_norm_host<T>);
  table.set(multiply_inverse, {element, Element::fp16x2}, multiply_inverse_host<T>);
  add_kernels<T>(table, front_host<T>());
}

void add_mixed(KernelTable& table) {
  table.set(invert_factor, {Element::fp16x2, Element::fp64}, invert_factor_host);
  for (const Elements& elements : kMixedGemms) table.set(gemm, elements, gemm_mixed_host);
  for (const Elements& elements : kMixedGemmsOfHost) table.set(gemm, elements, gemm_mixed_host);
  for (const Elements& elements : kMixedSyrks) table.set(syrk, elements, syrk_mixed_host);
  table.set(syrk, kMixedSyrkOfHost, syrk_mixed_host);
  for (const Elements& elements : kConversions) table.set(convert, elements, convert_host);
}

}  // namespace
}  // namespace host

const KernelTable& host_kernels() {
  static const KernelTable table = [] {
    KernelTable kernels;
    host::add<double>(kernels);
    host::add<float>(kernels);
    host::add_dense<std::complex<double>>(kernels);
    host::add_dense<std::complex<float>>(kernels);
    host::add_mixed(kernels);
    for_scaled_copies([&]<class N, class A>() {
      kernels.set(scaled_copy, kScaledCopyElements<N, A>, scaled_copy_host<N, A>);
    });
    add_kernels(kernels, gram_host());
    add_kernels(kernels, householder_host());
    add_sketch(kernels, sketch_host, continue_sketch_host);
    add_subtract_columns(kernels, subtract_columns_host);
    add_kernels(kernels, panel_host());
    add_kernels(kernels, paired_host());
    kernels.set(block_norms, Elements(2, Element::fp64), block_norms_host);
    kernels.set(covariance, {Element::fp32, Element::fp64, Element::fp64},
                covariance_host<float, double>);
    kernels.set(covariance_times, kCovarianceTimesElements, covariance_times_host);
    return kernels;
  }();
  return table;
}

}  // namespace strata
