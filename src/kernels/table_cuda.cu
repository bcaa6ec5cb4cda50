// The table of the CUDA kernels, and what the plugin exports.
//
// Each entry calls its kernel through CudaQueue::attempt: with the queue's GPU current, not at all
// once the queue has failed, and with an error of a launch kept as the queue's failure.

#include <complex>

#include "device/device_cuda.hpp"
#include "kernels/backend/backend.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/covariance/covariance_times.hpp"
#include "kernels/dense/column_squares.hpp"
#include "kernels/dense/convert.hpp"
#include "kernels/dense/copy_rows.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/getrf.hpp"
#include "kernels/dense/getrf_batched.hpp"
#include "kernels/dense/hermitian_kernels_cuda.hpp"
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
#include "kernels/fronts/front_cuda.hpp"
#include "kernels/krylov/paired_cuda.hpp"
#include "kernels/krylov/panel_cuda.hpp"
#include "kernels/tall/gram_cuda.hpp"
#include "kernels/tall/householder_cuda.hpp"
#include "kernels/tall/sketch_cuda.hpp"
#include "kernels/tall/subtract_columns.hpp"

namespace strata {
namespace {

template <KernelFunction kernel>
void attempt(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  static_cast<CudaQueue&>(queue).attempt([&] { kernel(queue, calls, parameters); });
}

template <class T>
void add(KernelTable& table) {
  constexpr Element element = element_of<T>;
  table.set(potrf, {element, Element::fp64}, attempt<potrf_cuda<T>>);
  table.set(potrf_batched, kBatchElements<T>, attempt<potrf_batched_cuda<T>>);
  table.set(trmm, Elements(2, element), attempt<trmm_cuda<T>>);
  table.set(trsm, Elements(2, element), attempt<trsm_cuda<T>>);
  table.set(syrk, Elements(2, element), attempt<syrk_cuda<T>>);
  table.set(gemm, Elements(3, element), attempt<gemm_cuda<T>>);
  table.set(covariance, Elements(3, element), attempt<covariance_cuda<T>>);
  table.set(laset, Elements(1, element), attempt<laset_cuda<T>>);
  table.set(column_squares, {Element::fp64, element}, attempt<column_squares_cuda<T>>);
  table.set(tile_norm, {Element::fp64, element}, attempt<tile_norm_cuda<T>>);
  table.set(multiply_inverse, {element, Element::fp16x2}, attempt<multiply_inverse_cuda<T>>);
}

template <class T>
void add_lu(KernelTable& table) {
  table.set(getrf, kGetrfElements<T>, attempt<getrf_cuda<T>>);
  table.set(getrf_batched, kGetrfElements<T>, attempt<getrf_batched_cuda<T>>);
  table.set(stripe_factor, kGetrfElements<T>, attempt<stripe_factor_cuda<T>>);
  table.set(stripe_row, kStripeRowElements<T>, attempt<stripe_row_cuda<T>>);
  table.set(stripe_column, kStripeColumnElements<T>, attempt<stripe_column_cuda<T>>);
  table.set(stripe_pair_factor, kPairFactorElements<T>, attempt<stripe_pair_factor_cuda<T>>);
  table.set(stripe_pair_row, kPairRowElements<T>, attempt<stripe_pair_row_cuda<T>>);
  table.set(stripe_pair_update, kPairUpdateElements<T>, attempt<stripe_pair_update_cuda<T>>);
  table.set(lu_update, kLuUpdateElements<T>, attempt<lu_update_cuda<T>>);
  table.set(lu_back, Elements(2, element_of<T>), attempt<lu_back_cuda<T>>);
  table.set(copy_rows, Elements(2, element_of<T>), attempt<copy_rows_cuda<T>>);
  table.set(take_diagonal, Elements(2, element_of<T>), attempt<take_diagonal_cuda<T>>);
  add_panel_product<T>(table, attempt<panel_product_cuda<T>>);
}

template <class T>
void add_hermitian(KernelTable& table) {
  constexpr Element element = element_of<T>;
  table.set(potrf, {element, Element::fp64}, attempt<hermitian::potrf_cuda<T>>);
  table.set(potrf_batched, kBatchElements<T>, attempt<hermitian::potrf_batched_cuda<T>>);
  table.set(trmm, Elements(2, element), attempt<hermitian::trmm_cuda<T>>);
  table.set(trsm, Elements(2, element), attempt<hermitian::trsm_cuda<T>>);
  table.set(syrk, Elements(2, element), attempt<hermitian::syrk_cuda<T>>);
  table.set(gemm, Elements(3, element), attempt<hermitian::gemm_cuda<T>>);
}

void add_mixed(KernelTable& table) {
  table.set(invert_factor, {Element::fp16x2, Element::fp64}, attempt<invert_factor_cuda>);
  for (const Elements& elements : kMixedGemms) table.set(gemm, elements, attempt<gemm_mixed_cuda>);
  for (const Elements& elements : kMixedSyrks) table.set(syrk, elements, attempt<syrk_mixed_cuda>);
  for (const Elements& elements : kConversions) table.set(convert, elements, attempt<convert_cuda>);
}

template <class T>
FrontKernels fronts() {
  return {.scatter_entries = attempt<scatter_entries_cuda<T>>,
          .clear_block = attempt<clear_block_cuda<T>>,
          .add_update = attempt<add_update_cuda<T>>,
          .factor_front = attempt<factor_front_cuda<T>>,
          .factor_branch = attempt<factor_branch_cuda<T>>,
          .factor_shared = attempt<factor_shared_cuda<T>>,
          .sweep_branch = attempt<sweep_branch_cuda<T>>,
          .sweep_range = attempt<sweep_range_cuda<T>>,
          .take_rows = attempt<take_rows_cuda<T>>,
          .put_rows = attempt<put_rows_cuda<T>>};
}

class CudaBackend final : public Backend {
 public:
  CudaBackend() {
    add<double>(kernels_);
    add<float>(kernels_);
    add_lu<double>(kernels_);
    add_lu<float>(kernels_);
    add_lu<std::complex<double>>(kernels_);
    add_lu<std::complex<float>>(kernels_);
    add_hermitian<std::complex<double>>(kernels_);
    add_hermitian<std::complex<float>>(kernels_);
    add_mixed(kernels_);
    for_scaled_copies([&]<class N, class A>() {
      kernels_.set(scaled_copy, kScaledCopyElements<N, A>, attempt<scaled_copy_cuda<N, A>>);
    });
    add_kernels(kernels_, {.gram = attempt<gram_cuda>,
                           .apply_gram = attempt<apply_gram_cuda>,
                           .solve_right_gram = attempt<solve_right_gram_cuda>,
                           .solve_right = attempt<solve_right_cuda>,
                           .solve_right_twice = attempt<solve_right_twice_cuda>,
                           .inner = attempt<inner_cuda>,
                           .gram_sum = attempt<gram_sum_cuda>,
                           .column_max = attempt<column_max_cuda>,
                           .column_dots = attempt<column_dots_cuda>,
                           .column_update = attempt<column_update_cuda>});
    add_kernels(kernels_, {.householder_r = attempt<householder_r_cuda>,
                           .householder_q = attempt<householder_q_cuda>,
                           .stacked_r = attempt<stacked_r_cuda>,
                           .stacked_q = attempt<stacked_q_cuda>});
    add_kernels<double>(kernels_, fronts<double>());
    add_kernels<float>(kernels_, fronts<float>());
    add_sketch(kernels_, attempt<sketch_cuda>, attempt<continue_sketch_cuda>);
    add_subtract_columns(kernels_, attempt<subtract_columns_cuda>);
    add_kernels(kernels_, {.spmv = attempt<spmv_cuda>,
                           .halo_pack = attempt<halo_pack_cuda>,
                           .halo_start = attempt<halo_start_cuda>,
                           .halo_put = attempt<halo_put_cuda>,
                           .inner = attempt<panel_inner_cuda>,
                           .start = attempt<panel_start_cuda>,
                           .add = attempt<panel_add_cuda>,
                           .update = attempt<panel_update_cuda>,
                           .solve = attempt<panel_solve_cuda>,
                           .rotate = attempt<panel_rotate_cuda>,
                           .take = attempt<panel_take_cuda>,
                           .put = attempt<panel_put_cuda>,
                           .correct = attempt<panel_correct_cuda>,
                           .narrow = attempt<panel_narrow_cuda>});
    add_kernels(kernels_, {.quotient = attempt<paired_quotient_cuda>,
                           .start = attempt<paired_start_cuda>,
                           .gather = attempt<paired_gather_cuda>,
                           .excess = attempt<paired_excess_cuda>,
                           .dots = attempt<paired_dots_cuda>,
                           .sum = attempt<paired_sum_cuda>,
                           .subtract = attempt<paired_subtract_cuda>});
    kernels_.set(block_norms, Elements(2, Element::fp64), attempt<block_norms_cuda>);
    kernels_.set(covariance, {Element::fp32, Element::fp64, Element::fp64},
                 attempt<covariance_cuda<float, double>>);
    kernels_.set(covariance_times, kCovarianceTimesElements, attempt<covariance_times_cuda>);
    (void)describe_cuda_devices();  // throws if no GPU answers
  }
  [[nodiscard]] std::string name() const override { return "cuda"; }
  [[nodiscard]] std::vector<DeviceDescription> devices() const override {
    return describe_cuda_devices();
  }
  [[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                    std::int64_t budget_bytes) const override {
    return make_cuda_device(index, budget_bytes);
  }
  [[nodiscard]] const KernelTable& kernels() const override { return kernels_; }
  [[nodiscard]] bool reaches(int index, const void* first, std::int64_t bytes) const override {
    return cuda_device_owns(index, first, bytes);
  }
  [[nodiscard]] bool linked(int from, int to) const override {
    return cuda_devices_linked(from, to);
  }
  [[nodiscard]] bool on_host() const override { return false; }
  [[nodiscard]] DeviceKind kind() const override { return DeviceKind::gpu; }

 private:
  KernelTable kernels_;
};

}  // namespace
}  // namespace strata

extern "C" const char* strata_cuda_backend_version() { return STRATA_BACKEND_VERSION; }

extern "C" const strata::Backend& strata_cuda_backend() {
  static const strata::CudaBackend backend;
  return backend;
}
