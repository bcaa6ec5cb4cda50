// Panels of LU in one launch: see lu_panel_cuda.hpp. How a panel is factored: see
// lu_panel_block_cuda.hpp.

#include "kernels/dense/lu_panel_cuda.hpp"

#include <algorithm>
#include <complex>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/dense/lu_panel_block_cuda.hpp"
#include "strata/error.hpp"

namespace strata::lu_cuda {
namespace {

template <class T, int kWide, int kRows, class Group>
__global__ void __launch_bounds__(Group::kThreads, 1)
    run_panel(const __grid_constant__ Panel<T> panel) {
  extern __shared__ __align__(16) unsigned char memory[];
  PanelBlock<T, kWide, kRows, Group>(panel, memory, panel.cols).run();
}

// ---- launches -----------------------------------------------------------------------------------

/// Columns and rows of a thread: kThreadBytes, 128 registers of elements.
constexpr int kThreadBytes = 512;

template <class T>
struct Shapes {
  static constexpr int kSize = static_cast<int>(sizeof(T));
  static constexpr int kWideMost = kSize == 16 ? 16 : 32;
  static constexpr int kRowsLeast = kThreadBytes / kSize / kWideMost;
};

template <class T, int kWide, int kRows, class Group>
void launch(const CudaStream& stream, Panel<T> panel, int blocks) {
  panel.rows_each = (panel.rows + 32 * blocks - 1) / (32 * blocks) * 32;
  const auto kernel = run_panel<T, kWide, kRows, Group>;
  const int bytes = PanelMemory<T, kWide, Group>::bytes(panel.cols);
  require_cuda(cudaFuncSetAttribute(
                   kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                   PanelMemory<T, kWide, Group>::bytes(static_cast<int>(kPanelColumnsMost))),
               "cudaFuncSetAttribute");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(Group::kThreads);
  config.dynamicSmemBytes = static_cast<std::size_t>(bytes);
  config.stream = stream.get();
  cudaLaunchAttribute attributes[2]{};
  cudaLaunchAttribute& attribute = attributes[0];
  if constexpr (Group::kShared) {
    require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
                 "cudaFuncSetAttribute");
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(blocks);
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
  } else {
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
  }
  config.attrs = attributes;
  config.numAttrs = 1;
  if (panel.started != nullptr) {
    attributes[1].id = cudaLaunchAttributeLaunchCompletionEvent;
    attributes[1].val.launchCompletionEvent.event = panel.started;
    attributes[1].val.launchCompletionEvent.flags = 0;
    config.numAttrs = 2;
  }
  require_cuda(cudaLaunchKernelEx(&config, kernel, panel), "the panel's launch");
  blas::require_launched("lu panel");
}

/// More blocks than hold the rows, since they share the search of rows of U, too.
int cluster_of(std::int64_t rows) {
  if (rows <= kWarpRows) return 2;  // messages take a cluster, and one block is none
  return rows <= 4 * kPanelThreads ? kClusterMost / 2 : kClusterMost;
}

constexpr std::int64_t kMessagesBytes =
    2 * static_cast<std::int64_t>(kBlocksMost) * kMessageBytesMost;

}  // namespace

std::int64_t panel_scratch_bytes() {
  return kMessagesBytes + kBlocksMost * static_cast<std::int64_t>(sizeof(int));
}

template <class T>
void factor_panel(const CudaStream& stream, MatrixView<T> a, std::int64_t* pivots,
                  std::int64_t base, void* scratch, int number, cudaEvent_t started) {
  constexpr int kSize = static_cast<int>(sizeof(T));
  constexpr int kWide = Shapes<T>::kWideMost;
  constexpr int kRows = Shapes<T>::kRowsLeast;
  if (a.cols == 0 || a.rows == 0) return;
  auto* messages = static_cast<unsigned char*>(scratch);
  constexpr int kEpochs = 1024;  // more than the barriers of a panel
  const Panel<T> panel{a.data,
                       a.ld,
                       static_cast<int>(a.rows),
                       static_cast<int>(a.cols),
                       0,
                       pivots,
                       base,
                       messages,
                       reinterpret_cast<int*>(messages + kMessagesBytes),
                       number * kEpochs,
                       started};
  const int processors = std::min(multiprocessors(), kBlocksMost);
  const auto blocks_of = [&](int rows_each) {
    return static_cast<int>((a.rows + kPanelThreads * rows_each - 1) / (kPanelThreads * rows_each));
  };
  const auto fits = [&](int rows_each) {
    return a.rows <= std::int64_t{kClusterMost} * kPanelThreads * rows_each;
  };
  const int blocks = cluster_of(a.rows);
  if constexpr (kSize == 4) {
    if (fits(kRows / 4)) return launch<T, kWide, kRows / 4, ClusterGroup>(stream, panel, blocks);
  }
  if (fits(kRows / 2)) return launch<T, kWide, kRows / 2, ClusterGroup>(stream, panel, blocks);
  // With more elements a thread of complex128 has no registers for what it works with.
  constexpr int kWideOfFull = kSize == 16 ? kWide / 2 : kWide;
  if (fits(kRows)) return launch<T, kWideOfFull, kRows, ClusterGroup>(stream, panel, blocks);
  if constexpr (kSize == 8 || kSize == 16) {
    if (fits(kRows * 2))
      return launch<T, kWide / 2, kRows * 2, ClusterGroup>(stream, panel, blocks);
  }
  if (constexpr int kHalfRows = kRows * 2; kWide > 8 && blocks_of(kHalfRows) <= processors)
    return launch<T, kWide / 2, kHalfRows, GridGroup>(stream, panel, blocks_of(kHalfRows));
  constexpr int kMostRows = kThreadBytes / kSize / 8;
  if (blocks_of(kMostRows) <= processors)
    return launch<T, 8, kMostRows, GridGroup>(stream, panel, blocks_of(kMostRows));
  throw Error(
      ErrorKind::device, "getrf",
      "a panel of " + std::to_string(a.rows) + " rows is more than this GPU's registers hold");
}

#define STRATA_INSTANTIATE(T)                                                                  \
  template void factor_panel<T>(const CudaStream&, MatrixView<T>, std::int64_t*, std::int64_t, \
                                void*, int, cudaEvent_t);
STRATA_INSTANTIATE(double)
STRATA_INSTANTIATE(float)
STRATA_INSTANTIATE(std::complex<double>)
STRATA_INSTANTIATE(std::complex<float>)
#undef STRATA_INSTANTIATE

}  // namespace strata::lu_cuda
