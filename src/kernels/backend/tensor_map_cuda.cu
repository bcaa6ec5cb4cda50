// Tensor maps: see tensor_map_cuda.hpp.
//
// The driver makes them. Its function is asked for at run time, so that the library is linked, and
// loads, where there is no driver.

#include "kernels/backend/tensor_map_cuda.hpp"

#include <cudaTypedefs.h>

#include <array>

#include "device/device_cuda.hpp"

namespace strata {
namespace {

using Encode = PFN_cuTensorMapEncodeTiled_v12000;

Encode encode_tiled() {
  static const Encode function = [] {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    constexpr unsigned kVersion = 12000;  // of the function's type
    require_cuda(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, kVersion,
                                                  cudaEnableDefault, &result),
                 "cuTensorMapEncodeTiled");
    if (result != cudaDriverEntryPointSuccess) {
      require_cuda(cudaErrorNotSupported, "cuTensorMapEncodeTiled");
    }
    return reinterpret_cast<Encode>(found);
  }();
  return function;
}

}  // namespace

TensorMap make_tensor_map(MatrixView<const double> matrix, int box_rows, int box_cols) {
  const std::array<cuuint64_t, 2> extents{static_cast<cuuint64_t>(matrix.rows),
                                          static_cast<cuuint64_t>(matrix.cols)};
  const std::array<cuuint64_t, 1> stride{static_cast<cuuint64_t>(matrix.ld) * sizeof(double)};
  const std::array<cuuint32_t, 2> box{static_cast<cuuint32_t>(box_rows),
                                      static_cast<cuuint32_t>(box_cols)};
  const std::array<cuuint32_t, 2> steps{1, 1};
  TensorMap map;
  // The function takes pointers to what it does not change.
  const CUresult status =
      encode_tiled()(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 2, const_cast<double*>(matrix.data),
                     extents.data(), stride.data(), box.data(), steps.data(),
                     CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) require_cuda(cudaErrorInvalidValue, "cuTensorMapEncodeTiled");
  return map;
}

namespace {

template <class T>
TensorMap group_map(MatrixView<const T> matrix, int groups, int cols) {
  constexpr bool kWide = sizeof(T) == sizeof(double);
  const std::array<cuuint64_t, 3> extents{kGroupRows, static_cast<cuuint64_t>(matrix.cols),
                                          static_cast<cuuint64_t>(matrix.rows / kGroupRows)};
  const std::array<cuuint64_t, 2> strides{static_cast<cuuint64_t>(matrix.ld) * sizeof(T),
                                          kGroupRows * sizeof(T)};
  const std::array<cuuint32_t, 3> box{kGroupRows, static_cast<cuuint32_t>(cols),
                                      static_cast<cuuint32_t>(groups)};
  const std::array<cuuint32_t, 3> steps{1, 1, 1};
  TensorMap map;
  const CUresult status = encode_tiled()(
      &map, kWide ? CU_TENSOR_MAP_DATA_TYPE_FLOAT64 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3,
      const_cast<T*>(matrix.data), extents.data(), strides.data(), box.data(), steps.data(),
      CU_TENSOR_MAP_INTERLEAVE_NONE, kWide ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_64B,
      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (status != CUDA_SUCCESS) require_cuda(cudaErrorInvalidValue, "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace

TensorMap make_group_map(MatrixView<const double> matrix, int groups, int cols) {
  return group_map(matrix, groups, cols);
}
TensorMap make_group_map(MatrixView<const float> matrix, int groups, int cols) {
  return group_map(matrix, groups, cols);
}

}  // namespace strata
