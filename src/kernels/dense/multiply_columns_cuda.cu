// Products of a tile in few bits with few columns of doubles, which read the tile as it lies.
//
// Method: several products are one launch. A cluster of eight thread blocks has 64 rows of an op(A)
// and up to 32 columns. Its 32 warps
// take the inner indices in pieces of 32, in turn, each into sums of its own: a warp loads 64 × 32
// numbers, eight neighbours at a time, and multiplies them on the tensor cores. All 64 rows of a
// tile of order 2048 are in flight at once; and the tile is read once, as few bits, where a tile
// that is widened first is read, written and read again as doubles.
//
// Which of a lane's eight neighbours, and which of its eight loads, makes a row of op(A) and which
// an inner index depends on how A lies: numbers are multiplied where they are, and what is
// renumbered are the rows of the tensor cores' products.
//
// Sums: a warp adds up its pieces in ascending order (each number by a fused multiply-add); the
// four sums of a block, and then the eight of a cluster, as trees; one subtraction from C. The
// order is that of the rows and inner indices, whatever the number of columns, and columns that do
// not exist are multiplied as zeros: equal inputs give equal bits.

#include "kernels/dense/multiply_columns_cuda.hpp"

#include <cooperative_groups.h>

#include <algorithm>
#include <string>

#include "kernels/backend/blas_cuda.hpp"
#include "kernels/dense/formats_cuda.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/tile_product_cuda.hpp"
#include "strata/error.hpp"

namespace strata::few_columns {
namespace {

using namespace tile;

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr int kRanks = 8;   // thread blocks of a cluster
constexpr int kRows = 64;   // of op(A), of a cluster
constexpr int kPiece = 32;  // inner indices that a warp multiplies with at a time
constexpr int kEight = 8;
constexpr int kMostGroups = 4;         // of eight columns, of a cluster
constexpr int kProductsOfLaunch = 32;  // what kernel parameters of 4 KiB hold

/// A line of A is what lies together in memory: a column, in fp8 a row.
struct Arguments {
  const void* a;
  std::int64_t plane;   ///< elements from the first plane to the second
  std::int64_t along;   ///< elements of a line
  std::int64_t lines;   ///< their number
  std::int64_t step;    ///< elements from one line to the next
  bool aligned;         ///< eight neighbours may be loaded at once
  const double* b;      ///< op(B)
  std::int64_t b_down;  ///< from one row of op(B) to the next
  std::int64_t b_right;
  double* c;
  std::int64_t ldc;
  std::int64_t rows;  ///< of C
  std::int64_t cols;
  std::int64_t inner;
  double factor;  ///< of the sums
};

/// The products of a launch; block z of the grid has the z-th.
struct Products {
  Arguments of[kProductsOfLaunch];
};

// ---- eight neighbours of A, as they lie in memory -----------------------------------------------

template <Element kElement>
struct Eight {
  static constexpr int kPlanes = kElement == Element::fp16x2 ? 2 : 1;
  static constexpr int kBytes = kElement == Element::fp8 ? 1 : 2;  // of an element
  static constexpr int kWords = kEight * kBytes / 4;
  using Stored = std::conditional_t<kBytes == 1, unsigned char, unsigned short>;
  using Vector = std::conditional_t<kBytes == 1, uint2, uint4>;

  unsigned words[kPlanes][kWords];

  /// Those of a line from `from` on that are before its end; zeros behind.
  __device__ void load(const Arguments& arguments, std::int64_t line, std::int64_t from) {
    const std::int64_t left = line < arguments.lines ? arguments.along - from : 0;
#pragma unroll
    for (int p = 0; p < kPlanes; ++p) {
      const Stored* place = static_cast<const Stored*>(arguments.a) + p * arguments.plane +
                            line * arguments.step + from;
      if (arguments.aligned && left >= kEight) {
        const Vector both = __ldg(reinterpret_cast<const Vector*>(place));
        words[p][0] = both.x;
        words[p][1] = both.y;
        if constexpr (kWords == 4) {
          words[p][2] = both.z;
          words[p][3] = both.w;
        }
      } else {
#pragma unroll
        for (int w = 0; w < kWords; ++w) words[p][w] = 0;
#pragma unroll
        for (int e = 0; e < kEight; ++e) {
          if (e < left) words[p][e * kBytes / 4] |= unsigned{__ldg(place + e)} << shift_of(e);
        }
      }
    }
  }

  /// What is stored, not unscaled.
  [[nodiscard]] __device__ double operator[](int e) const {
    if constexpr (kPlanes == 2) return half(0, e) + half(1, e);
    return half(0, e);
  }

 private:
  [[nodiscard]] __device__ static constexpr int shift_of(int e) { return e * kBytes % 4 * 8; }

  [[nodiscard]] __device__ double half(int p, int e) const {
    const unsigned word = words[p][e * kBytes / 4];
    if constexpr (kBytes == 2) {
      return widened(static_cast<unsigned short>(word >> shift_of(e)));
    } else {
      // Two at a time, as the instruction has them.
      const auto both = static_cast<__nv_fp8x2_storage_t>(word >> shift_of(e & ~1));
      const __half2_raw halves = __nv_cvt_fp8x2_to_halfraw2(both, __NV_E4M3);
      return widened(e % 2 == 0 ? halves.x : halves.y);
    }
  }
  [[nodiscard]] __device__ static double widened(unsigned short bits) {
    return static_cast<double>(__half2float(__ushort_as_half(bits)));
  }
};

// ---- a thread block -----------------------------------------------------------------------------

/// Shared memory of a thread block, for kGroups times eight columns.
template <int kGroups>
struct Memory {
  static constexpr int kColumns = kEight * kGroups;
  static constexpr int kLdPiece = 36;        // neither form of A has bank conflicts
  static constexpr int kLdSums = kRows + 2;  // nor have the sums

  union OfWarp {
    double b[2][kColumns * kLdPiece];  ///< the piece of op(B), and the next
    double sums[kColumns * kLdSums];
  };
  OfWarp of[kWarps];
  double sums[kColumns * kRows];
};

/// `kAlongInner`: the lines of A run along the inner index, otherwise along the rows of op(A).
template <Element kElement, bool kAlongInner, int kGroups>
class BlockProduct {
 public:
  using SharedMemory = Memory<kGroups>;

  __device__ BlockProduct(const Arguments& arguments, SharedMemory& memory)
      : arguments_(arguments),
        memory_(memory),
        cluster_(cooperative_groups::this_cluster()),
        first_row_(std::int64_t{blockIdx.x / kRanks} * kRows),
        first_column_(std::int64_t{blockIdx.y} * kColumns),
        pieces_((arguments.inner + kPiece - 1) / kPiece) {}

  __device__ void run() const {
    double c[kEach];  // long before it is needed
    each_own([&](int n, int, double* place) { c[n] = *place; });
    Sums sums = {};
    multiply(sums);
    add_warps(sums);
    cluster_.sync();
    each_own([&](int n, int own, double* place) {
      double of[kRanks];
#pragma unroll
      for (int r = 0; r < kRanks; ++r) of[r] = cluster_.map_shared_rank(memory_.sums, r)[own];
      static_assert(kRanks == 8);
      const double sum = ((of[0] + of[1]) + (of[2] + of[3])) + ((of[4] + of[5]) + (of[6] + of[7]));
      *place = c[n] + arguments_.factor * sum;
    });
    cluster_.sync();  // no block leaves while its sums are read
  }

 private:
  static constexpr int kColumns = SharedMemory::kColumns;
  static constexpr int kOwn = kColumns * kRows / kRanks;          ///< elements of C of a block
  static constexpr int kEach = (kOwn + kThreads - 1) / kThreads;  ///< of a thread
  /// The next piece of A is on its way while one is multiplied with, where there is room for it in
  /// registers beside the sums.
  static constexpr bool kAhead = kGroups < kMostGroups || kElement != Element::fp16x2;

  using Piece = Eight<kElement>[kEight];
  /// Rows in pairs, as the instruction has them.
  using Sums = double[kEight / 2][kGroups][4];

  __device__ void load_a(std::int64_t piece, Piece& a) const {
#pragma unroll
    for (int v = 0; v < kEight; ++v) {
      const std::int64_t row =
          first_row_ + (kAlongInner ? kEight * v + lane() / 4 : lane() / 4 * 8);
      const std::int64_t inner =
          piece * kPiece + (kAlongInner ? lane() % 4 * 8 : 4 * v + lane() % 4);
      a[v].load(arguments_, kAlongInner ? row : inner, kAlongInner ? inner : row);
    }
  }

  [[nodiscard]] __device__ static int place_of(int inner, int column) {
    return column * SharedMemory::kLdPiece + inner + inner / kEight;
  }
  /// Begins to bring a piece of op(B); zeros behind its last row and column.
  __device__ void copy_b(std::int64_t piece, int slot) const {
    const std::int64_t row = piece * kPiece + lane();
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const std::int64_t column = first_column_ + j;
      const bool inside = row < arguments_.inner && column < arguments_.cols;
      const double* from = arguments_.b;
      if (inside) from += row * arguments_.b_down + column * arguments_.b_right;
      copy_async<8>(memory_.of[warp()].b[slot] + place_of(lane(), j), from, inside ? 8 : 0);
    }
    commit_copies();
  }

  /// The pieces of this warp.
  __device__ void multiply(Sums& sums) const {
    const int first = static_cast<int>(cluster_.block_rank()) * kWarps + warp();
    constexpr int kStride = kRanks * kWarps;
    int slot = 0;
    Piece a;
    if (first < pieces_) {
      load_a(first, a);
      copy_b(first, slot);
    }
    for (std::int64_t piece = first; piece < pieces_; piece += kStride) {
      const bool more = piece + kStride < pieces_;
      Piece next;
      if constexpr (kAhead) {
        if (more) load_a(piece + kStride, next);
      }
      if (more) copy_b(piece + kStride, 1 - slot);
      more ? wait_copies<1>() : wait_copies<0>();
      __syncwarp();
      multiply(a, memory_.of[warp()].b[slot], sums);
      __syncwarp();  // before the piece of op(B) is overwritten
      slot = 1 - slot;
      if (!more) break;
      if constexpr (kAhead) {
#pragma unroll
        for (int v = 0; v < kEight; ++v) a[v] = next[v];
      } else {
        load_a(piece + kStride, a);
      }
    }
  }

  __device__ static void multiply(const Piece& a, const double* b, Sums& sums) {
#pragma unroll
    for (int q = 0; q < kEight; ++q) {
      const int inner = kAlongInner ? lane() % 4 * 8 + q : 4 * q + lane() % 4;
      double factors[kGroups];
#pragma unroll
      for (int g = 0; g < kGroups; ++g) factors[g] = b[place_of(inner, g * kEight + lane() / 4)];
#pragma unroll
      for (int i = 0; i < kEight / 2; ++i) {
        const double even = kAlongInner ? a[2 * i][q] : a[q][2 * i];
        const double odd = kAlongInner ? a[2 * i + 1][q] : a[q][2 * i + 1];
#pragma unroll
        for (int g = 0; g < kGroups; ++g) multiply_add(sums[i][g], even, odd, factors[g]);
      }
    }
  }

  /// In shared memory, rows are in the order of the instruction.
  __device__ void add_warps(const Sums& sums) const {
    constexpr int kLd = SharedMemory::kLdSums;
    double* mine = memory_.of[warp()].sums;
#pragma unroll
    for (int i = 0; i < kEight / 2; ++i) {
#pragma unroll
      for (int g = 0; g < kGroups; ++g) {
#pragma unroll
        for (int n = 0; n < 4; ++n) {
          const int column = g * kEight + lane() % 4 * 2 + n % 2;
          mine[column * kLd + (2 * i + n / 2) * kEight + lane() / 4] = sums[i][g][n];
        }
      }
    }
    __syncthreads();
    static_assert(kWarps == 4);
    for (int n = static_cast<int>(threadIdx.x); n < kColumns * kRows; n += kThreads) {
      const int at = n / kRows * kLd + n % kRows;
      memory_.sums[n] = (memory_.of[0].sums[at] + memory_.of[1].sums[at]) +
                        (memory_.of[2].sums[at] + memory_.of[3].sums[at]);
    }
  }

  /// f(n, its number among the sums, where it is in C): this thread's elements of C. A block has
  /// every row of some columns.
  template <class F>
  __device__ void each_own(F&& f) const {
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int mine = n * kThreads + static_cast<int>(threadIdx.x);
      const int own = static_cast<int>(cluster_.block_rank()) * kOwn + mine;
      const int r = own % kRows;
      const std::int64_t row = first_row_ + (kAlongInner ? r : r % kEight * kEight + r / kEight);
      const std::int64_t column = first_column_ + own / kRows;
      if (mine < kOwn && row < arguments_.rows && column < arguments_.cols)
        f(n, own, arguments_.c + row + column * arguments_.ldc);
    }
  }

  const Arguments& arguments_;
  SharedMemory& memory_;
  cooperative_groups::cluster_group cluster_;
  std::int64_t first_row_;
  std::int64_t first_column_;
  std::int64_t pieces_;
};

template <Element kElement, bool kAlongInner, int kGroups>
__global__ void __cluster_dims__(kRanks, 1, 1) __launch_bounds__(kThreads, 2)
    subtract_blocks(const __grid_constant__ Products products) {
  extern __shared__ __align__(16) unsigned char bytes[];
  auto& memory = *reinterpret_cast<Memory<kGroups>*>(bytes);
  const Arguments& arguments = products.of[blockIdx.z];
  // The grid is that of the largest product. A cluster leaves as a whole.
  if (blockIdx.x / kRanks * kRows >= arguments.rows) return;
  BlockProduct<kElement, kAlongInner, kGroups>(arguments, memory).run();
}

// ---- launches -----------------------------------------------------------------------------------

struct Extents {
  std::int64_t rows = 0;  ///< the most of a product
  std::int64_t cols = 0;
  int products = 0;
};

template <Element kElement, bool kAlongInner, int kGroups>
void launch(cudaStream_t stream, const Products& products, const Extents& most) {
  const auto kernel = subtract_blocks<kElement, kAlongInner, kGroups>;
  constexpr int kBytes = sizeof(Memory<kGroups>);
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
               "shared memory of a product with few columns");
  constexpr std::int64_t kColumns = Memory<kGroups>::kColumns;
  const dim3 blocks(static_cast<unsigned>((most.rows + kRows - 1) / kRows * kRanks),
                    static_cast<unsigned>((most.cols + kColumns - 1) / kColumns),
                    static_cast<unsigned>(most.products));
  kernel<<<blocks, kThreads, kBytes, stream>>>(products);
  blas::require_launched("a product with few columns");
}

template <Element kElement, bool kAlongInner>
void launch_columns(cudaStream_t stream, const Products& products, const Extents& most) {
  if (most.cols <= kEight) return launch<kElement, kAlongInner, 1>(stream, products, most);
  if (most.cols <= 2 * kEight) return launch<kElement, kAlongInner, 2>(stream, products, most);
  launch<kElement, kAlongInner, kMostGroups>(stream, products, most);
}

template <Element kElement>
void launch_form(cudaStream_t stream, const Products& products, const Extents& most,
                 bool along_inner) {
  along_inner ? launch_columns<kElement, true>(stream, products, most)
              : launch_columns<kElement, false>(stream, products, most);
}

void launch_element(cudaStream_t stream, Element element, const Products& products,
                    const Extents& most, bool along_inner) {
  switch (element) {
    case Element::fp16x2: return launch_form<Element::fp16x2>(stream, products, most, along_inner);
    case Element::fp16: return launch_form<Element::fp16>(stream, products, most, along_inner);
    case Element::fp8: return launch_form<Element::fp8>(stream, products, most, along_inner);
    default: break;
  }
  throw Error(ErrorKind::device, "gemm",
              "there is no kernel for few columns and " + std::string(to_string(element)));
}

}  // namespace

void subtract_products(cudaStream_t stream, std::span<const ProductOperands> operands,
                       const TileScales& scales, std::uint32_t variant) {
  if (operands.empty()) return;
  const bool a_transposed = (variant & kTransposeA) != 0;
  const bool b_transposed = (variant & kTransposeB) != 0;
  const Element element = operands[0].a.element;
  const bool by_rows = element == Element::fp8;
  const int bytes_of_eight = kEight * (by_rows ? 1 : 2);
  Products products;
  Extents most;
  const auto launch_those = [&] {
    if (most.products > 0) launch_element(stream, element, products, most, by_rows != a_transposed);
    most = {};
  };
  for (const auto& [c, a, b] : operands) {
    const std::int64_t inner = a_transposed ? a.rows : a.cols;
    if (c.rows == 0 || c.cols == 0 || inner == 0) continue;
    const formats::TileLayout tile = formats::layout_of(a, scales);
    const std::int64_t step = by_rows ? tile.row_step : tile.col_step;
    const std::int64_t plane = element == Element::fp16x2 ? tile.plane : 0;
    products.of[most.products++] = {
        .a = a.data,
        .plane = plane,
        .along = by_rows ? a.cols : a.rows,
        .lines = by_rows ? a.rows : a.cols,
        .step = step,
        .aligned = reinterpret_cast<std::uintptr_t>(a.data) % bytes_of_eight == 0 &&
                   step % kEight == 0 && plane % kEight == 0,
        .b = static_cast<const double*>(b.data),
        .b_down = b_transposed ? b.ld : 1,
        .b_right = b_transposed ? 1 : b.ld,
        .c = static_cast<double*>(c.data),
        .ldc = c.ld,
        .rows = c.rows,
        .cols = c.cols,
        .inner = inner,
        .factor = -tile.inverse};
    most.rows = std::max(most.rows, c.rows);
    most.cols = std::max(most.cols, c.cols);
    if (most.products == kProductsOfLaunch) launch_those();
  }
  launch_those();
}

}  // namespace strata::few_columns
