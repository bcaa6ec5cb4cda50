// Sums of units in double-double on a GPU, by digits of eight bits on its integer tensor
// cores.
//
// Method: a thread block goes through its units, 32 rows at a time, which are pieces. The tensor
// memory accelerator brings pieces to shared memory, four ahead; each number becomes thirteen
// digits there, four rows a word, so that mma.m16n8k32 reads its operands as they lie. The digits
// of one piece are multiplied and those of the next one made between the same two barriers; half of
// the warps multiply first, half make digits first. A warp has 16 × 8 pairs of columns, with
// thirteen sums of products of digits for each pair in registers, one for each weight. Where an
// exponent changes, and at the end of a unit, they are added to its sum, which lies in shared
// memory. Where the numbers of a piece are alike its last four digits are zeros and left out, which
// changes no sum. More than 64 columns are taken in panels, the second of two in halves. Digits are
// made of words of integers: doubles share a pipe with these tensor cores, and wait for it.

#include <algorithm>
#include <bit>
#include <limits>

#include "kernels/backend/tensor_map_cuda.hpp"
#include "kernels/backend/tile_copy_cuda.hpp"
#include "kernels/tall/digit_sums_cuda.hpp"
#include "kernels/tall/gram_digits_cuda.hpp"

namespace strata::gram_gpu {
namespace {

constexpr int kPanelGroups = 8;  // groups of columns of a panel
constexpr int kOthers = 4;       // groups of another panel that it is multiplied with
constexpr int kGroupsMost = kPanelGroups + kOthers;
constexpr int kSquaresMost = 18;
constexpr int kPiece = kDigitGroup * kPieceRows;  // numbers of a group in a piece
constexpr int kRing = 4;                          // pieces in shared memory
constexpr int kBuffers = 2;                       // pieces whose digits are kept
constexpr int kFlags = 4;                         // pieces whose exponents are kept
constexpr int kValues = 4;                        // pairs of columns of a thread

struct Job {
  TensorMap left_map, right_map;  ///< boxes of a piece; where `mapped`
  bool mapped;
  Columns<double> x;
  std::int64_t left, right;  ///< first columns; `right` is not used where pairs are of one panel
  int lefts, rights;         ///< groups of columns
  std::int64_t units;
  int log_of_unit;  ///< pieces of a unit are 2^log_of_unit
  int squares;      ///< squares of pairs, one for each of the first warps
  DigitSquare square[kSquaresMost];
  DoubleDouble* to;

  [[nodiscard]] __host__ __device__ int groups() const { return lefts + rights; }
  /// Words of the digits of a piece.
  [[nodiscard]] __host__ __device__ int buffer() const {
    return kDigitGroup * kDigitColumn * groups();
  }
  [[nodiscard]] __host__ __device__ int bytes() const {
    return kRing * kPiece * 8 * groups() + kBuffers * buffer() * 4 + squares * kValues * 32 * 16;
  }
  /// The first column of a group in V.
  [[nodiscard]] __device__ std::int64_t column(int group) const {
    return group < lefts ? left + kDigitGroup * group : right + kDigitGroup * (group - lefts);
  }

  void add_square(int row0, int row1, int col) {
    square[squares++] = {{static_cast<signed char>(row0), static_cast<signed char>(row1)},
                         static_cast<signed char>(col)};
  }
  /// Deals squares to warps so that each pair of groups, a group with itself included, is in one
  /// square, with as few squares as possible: each of four columns meets an even number of groups,
  /// each of a last three too.
  void deal() {
    squares = 0;
    if (rights > 0) {
      for (int col = lefts; col < groups(); ++col)
        for (int row = 0; row < lefts; row += 2) add_square(row, row + 1, col);
      return;
    }
    for (int first = 0; first < lefts; first += 4) {
      const int count = std::min(4, lefts - first);
      for (int col = first; col < first + count; ++col)
        for (int row = 0; row < first; row += 2) add_square(row, row + 1, col);
      const int a = first, b = first + 1, c = first + 2, d = first + 3;
      if (count == 1) add_square(a, a, a);
      if (count == 2) add_square(a, a, a), add_square(a, b, b);
      if (count == 3) add_square(a, b, a), add_square(b, c, b), add_square(c, a, c);
      if (count == 4) {
        add_square(a, d, a), add_square(a, b, b), add_square(b, d, d);
        add_square(a, b, c), add_square(c, d, c);
      }
    }
  }
};

/// The biased exponents of a thread's columns.
struct Exponents {
  int row[2] = {}, col[2] = {};

  Exponents() = default;
  __device__ Exponents(const DigitSquare& square, const int* fields) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      row[half] = fields[square.row[half] * kDigitGroup + tile::lane() / 4];
      col[half] = fields[square.col * kDigitGroup + 2 * (tile::lane() % 4) + half];
    }
  }
};

struct Shared {
  unsigned long long full[kRing];                 ///< a piece is there
  int fields[kFlags][kGroupsMost * kDigitGroup];  ///< biased exponents of its columns
  // One more than the number of the last piece …
  int raised[kFlags];  ///< … in which an exponent is larger than in the piece before
  int deep[kFlags];    ///< … that has digits behind the first kShallow
};

/// The units of a thread block, whose pieces are numbered in the order it takes them.
struct Pieces {
  int log_of_unit;
  int count;

  __device__ explicit Pieces(const Job& job) : log_of_unit(job.log_of_unit) {
    const std::int64_t units =
        job.units > blockIdx.x ? (job.units - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
    count = static_cast<int>(units << log_of_unit);
    if (units > 0 && blockIdx.x + (units - 1) * gridDim.x == job.units - 1)  // the last one
      count -=
          static_cast<int>((job.units << log_of_unit) - (job.x.rows + kPieceRows - 1) / kPieceRows);
  }
  [[nodiscard]] __device__ int in_unit(int piece) const { return piece & ((1 << log_of_unit) - 1); }
  [[nodiscard]] __device__ std::int64_t unit(int piece) const {
    return blockIdx.x + std::int64_t{piece >> log_of_unit} * gridDim.x;
  }
  [[nodiscard]] __device__ std::int64_t row(int piece) const {
    return ((unit(piece) << log_of_unit) + in_unit(piece)) * kPieceRows;
  }
};

class Block {
 public:
  __device__ Block(const Job& job, Shared& shared, unsigned char* memory)
      : job_(job),
        shared_(shared),
        pieces_(job),
        raw_(reinterpret_cast<double*>(memory)),
        digits_(reinterpret_cast<unsigned*>(raw_ + kRing * kPiece * job.groups())),
        adds_(tile::warp() < job.squares) {
    columns_ = static_cast<int>(min(job.x.cols - job.left, std::int64_t{kDigitGroup * job.lefts}));
    if (job.rights > 0)
      columns_ =
          kDigitGroup * job.lefts +
          static_cast<int>(min(job.x.cols - job.right, std::int64_t{kDigitGroup * job.rights}));
    for (int c = 0; job.x.d != nullptr && c < columns_; ++c)
      scaled_ = scaled_ || job.x.d[job.column(c / kDigitGroup) + c % kDigitGroup] != 1.0;
    for (int k = static_cast<int>(threadIdx.x); k < kBuffers * job.buffer(); k += threads())
      digits_[k] = 0;  // columns that a last group lacks, and what is behind the digits
    for (int k = static_cast<int>(threadIdx.x); k < kFlags * kGroupsMost * kDigitGroup;
         k += threads())
      shared.fields[0][k] = 0;
    if (threadIdx.x < kFlags) shared.raised[threadIdx.x] = shared.deep[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
      for (auto& barrier : shared.full) tile::init_barrier(&barrier, 1);
    }
    tile::fence_async_proxy();
    __syncthreads();
  }

  __device__ void run() {
    const DigitSquare square = adds_ ? job_.square[tile::warp()] : DigitSquare{};
    const unsigned base = tile::shared_address(digits_);
    const unsigned left = base + place_left(square);
    const unsigned right = base + place_right(square);
    // Half of the warps of each scheduler make digits before they multiply.
    const bool splits_first = tile::warp() / 4 % 2 == 0;
    for (int piece = 0; piece < kRing; ++piece) start(piece);
    tile::wait_copies<0>();
    __syncthreads();
    split(0);
    DigitSums s;
    Exponents exponents{};
    if (adds_) begin_unit();
      // The last round has no piece: it only adds up the sums of the last unit.
#pragma unroll 1
    for (int piece = 0; piece <= pieces_.count; ++piece) {
      tile::wait_copies<0>();
      __syncthreads();
      start(piece + kRing);
      if (splits_first) split(piece + 1);
      if (adds_) {
        const bool begins = pieces_.in_unit(piece) == 0 || piece == pieces_.count;
        if (begins || shared_.raised[piece % kFlags] == piece + 1) {
          const Exponents now(square, shared_.fields[piece % kFlags]);
          fold(s, exponents, now, begins);
          if (begins && piece > 0) {
            end_unit(square, pieces_.unit(piece - 1));
            begin_unit();
          }
          exponents = now;
        }
        if (piece < pieces_.count) {
          const unsigned from = piece % kBuffers * job_.buffer() * 4;
          if (shared_.deep[piece % kFlags] == piece + 1) {
            s.add_piece(left + from, right + from);
          } else {
            s.add_shallow(left + from, right + from);
          }
        }
      }
      if (!splits_first) split(piece + 1);
    }
  }

 private:
  __device__ static int threads() { return static_cast<int>(blockDim.x); }
  [[nodiscard]] __device__ double* place(int piece, int group) const {
    return raw_ + (piece % kRing * job_.groups() + group) * kPiece;
  }
  [[nodiscard]] __device__ DoubleDouble* sums() const {
    return reinterpret_cast<DoubleDouble*>(digits_ + kBuffers * job_.buffer()) +
           tile::warp() * kValues * tile::kWarp + tile::lane();
  }

  /// Starts the copy of a piece to shared memory; called by all threads.
  __device__ void start(int piece) {
    if (piece >= pieces_.count) return;
    const Columns<double>& x = job_.x;
    if (job_.mapped) {
      if (threadIdx.x != 0) return;
      unsigned long long* full = &shared_.full[piece % kRing];
      tile::arrive_expecting(full, job_.groups() * kPiece * 8);
      const int row = static_cast<int>(pieces_.row(piece));
      tile::copy_by_tma(place(piece, 0), &job_.left_map, row, static_cast<int>(job_.left), full);
      if (job_.rights > 0)
        tile::copy_by_tma(place(piece, job_.lefts), &job_.right_map, row,
                          static_cast<int>(job_.right), full);
      return;
    }
    const std::int64_t row = pieces_.row(piece) + tile::lane();
    for (int c = tile::warp(); c < kDigitGroup * job_.groups(); c += threads() / tile::kWarp) {
      const std::int64_t col = job_.column(c / kDigitGroup) + c % kDigitGroup;
      const bool inside = row < x.rows && col < x.cols;
      tile::copy_async<8>(place(piece, 0) + c * kPieceRows + tile::lane(),
                          inside ? x.data + col * x.ld + row : x.data, inside ? 8 : 0);
    }
    tile::commit_copies();
  }

  /// Makes the digits of a piece, eight threads a column, four rows a thread.
  __device__ void split(int piece) {
    if (piece >= pieces_.count) return;
    if (job_.mapped) tile::wait_phase(&shared_.full[piece % kRing], piece / kRing % 2);
    const bool begins = pieces_.in_unit(piece) == 0;
    unsigned* to = digits_ + piece % kBuffers * job_.buffer() + tile::lane() % 8;
#pragma unroll 1
    for (int first = 4 * tile::warp(); first < columns_; first += threads() / 8) {
      const int c = first + tile::lane() / 8;
      int field = begins ? 0 : shared_.fields[(piece + kFlags - 1) % kFlags][c];
      const auto* rows =
          reinterpret_cast<const double2*>(place(piece, 0) + c * kPieceRows) + tile::lane() % 8;
      // Two pairs of rows, so that neighbours have no bank conflicts.
      double2 v[2] = {rows[0], rows[8]};
      if (scaled_) {
        const std::int64_t col = job_.column(c / kDigitGroup) + c % kDigitGroup;
        const double d = col < job_.x.cols ? job_.x.d[col] : 1.0;
        for (double2& two : v)
          two = make_double2(rounded_product(two.x, d), rounded_product(two.y, d));
      }
      unsigned largest = 0;
#pragma unroll
      for (const double2& two : v) {
        largest = max(largest, static_cast<unsigned>(__double2hiint(two.x)) & 0x7fffffffU);
        largest = max(largest, static_cast<unsigned>(__double2hiint(two.y)) & 0x7fffffffU);
      }
#pragma unroll
      for (int apart = 1; apart < 8; apart *= 2)
        largest = max(largest, __shfl_xor_sync(0xffffffffU, largest, apart));
      const int most = static_cast<int>(largest >> 20);
      if (most > field) {
        field = most;
        if (!begins) shared_.raised[piece % kFlags] = piece + 1;
      }
      if (tile::lane() % 8 == 0) shared_.fields[piece % kFlags][c] = field;
      if (put_digits(v, field, to + c * kDigitColumn)) shared_.deep[piece % kFlags] = piece + 1;
    }
  }

  // Functions of the warps that add up:

  __device__ void begin_unit() const {
#pragma unroll
    for (int v = 0; v < kValues; ++v) sums()[v * tile::kWarp] = DoubleDouble{};
  }
  /// Adds the sums of digits to those of the unit and sets them to zero: for all pairs, or for
  /// those with an exponent that changes.
  __device__ void fold(DigitSums& s, const Exponents& e, const Exponents& now, bool all) const {
#pragma unroll
    for (int v = 0; v < kValues; ++v) {
      const bool same = e.row[v / 2] == now.row[v / 2] && e.col[v % 2] == now.col[v % 2];
      if (same && !all) continue;
      DoubleDouble& sum = sums()[v * tile::kWarp];
      sum = next_sum(sum, part_of(s, v, e.row[v / 2], e.col[v % 2]));
#pragma unroll
      for (int weight = 0; weight < kDigits; ++weight) s.of[weight][v] = 0;
    }
  }
  __device__ void end_unit(const DigitSquare& square, std::int64_t unit) const {
    const Pairs pairs{job_.x.cols, job_.x.cols, true};
#pragma unroll
    for (int v = 0; v < kValues; ++v) {
      const int row = square.row[v / 2];
      const std::int64_t i = job_.column(row) + tile::lane() / 4;
      const std::int64_t j = job_.column(square.col) + 2 * (tile::lane() % 4) + v % 2;
      const bool twice = row == square.col && i > j;  // below the diagonal of a group with itself
      if (!twice && max(i, j) < job_.x.cols)
        job_.to[unit * pairs.count() + pairs.number(min(i, j), max(i, j))] =
            sums()[v * tile::kWarp];
    }
  }

  const Job& job_;
  Shared& shared_;
  Pieces pieces_;
  double* raw_;
  unsigned* digits_;
  int columns_ = 0;
  bool scaled_ = false;
  bool adds_;
};

template <int kWarpsMost, int kResident>
__global__ void __launch_bounds__(32 * kWarpsMost, kResident)
    add_digits(const __grid_constant__ Job job) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Shared shared;
  Block block(job, shared, memory);
  block.run();
}

template <int kWarpsMost, int kResident>
void launch(cudaStream_t stream, const Job& job, int warps) {
  const auto kernel = add_digits<kWarpsMost, kResident>;
  const auto bytes = static_cast<std::size_t>(job.bytes());
  require_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(bytes)),
               "shared memory of sums of digits");
  int resident = 0;
  require_cuda(
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, tile::kWarp * warps, bytes),
      "sums of digits");
  const std::int64_t across = std::int64_t{multiprocessors()} * std::max(resident, 1);
  kernel<<<static_cast<unsigned>(std::min(job.units, across)),
           static_cast<unsigned>(tile::kWarp * warps), bytes, stream>>>(job);
  require_cuda(cudaGetLastError(), "sums of digits");
}

/// Launches the kernel; where thread blocks have fewer warps, more of them run at once.
void add_up(cudaStream_t stream, Job job) {
  job.deal();
  const auto map_of = [&](int groups) {
    return make_tensor_map({job.x.data, job.x.rows, job.x.cols, job.x.ld}, kPieceRows,
                           kDigitGroup * groups);
  };
  if (job.mapped) job.left_map = map_of(job.lefts);
  if (job.mapped && job.rights > 0) job.right_map = map_of(job.rights);
  // Each warp makes the digits of four columns in a round. For a few columns more thread blocks are
  // faster than more warps.
  const int rounds = kDigitGroup * job.groups() / 4;
  const int most = job.rights > 0 ? 16 : (job.squares > 8 ? 12 : 0);
  const int warps = std::max(job.squares, std::min(rounds, most));
  if (warps <= 2) return launch<2, 8>(stream, job, warps);
  if (warps <= 3) return launch<3, 5>(stream, job, warps);
  if (warps <= 4) return launch<4, 4>(stream, job, warps);
  if (warps <= 5) return launch<5, 3>(stream, job, warps);
  if (warps <= 8) return launch<8, 2>(stream, job, warps);
  if (warps <= 12) return launch<12, 1>(stream, job, warps);
  if (warps <= 16) return launch<16, 1>(stream, job, warps);
  launch<20, 1>(stream, job, warps);
}

}  // namespace

void digit_unit_sums(cudaStream_t stream, const Columns<double>& x, int tiles_of_unit,
                     DoubleDouble* units) {
  if (x.rows == 0 || x.cols == 0) return;
  Job job{};
  job.x = x;
  job.units = units_of(x.rows, tiles_of_unit);
  job.log_of_unit =
      std::countr_zero(static_cast<unsigned>(tiles_of_unit * kGramTileRows / kPieceRows));
  job.to = units;
  job.mapped = tile::columns_aligned(x.data, x.ld) &&
               x.rows <= std::numeric_limits<int>::max() - kGramUnitRows;
  const auto groups = static_cast<int>((x.cols + kDigitGroup - 1) / kDigitGroup);
  for (int j = 0; j < groups; j += kPanelGroups) {
    job.left = kDigitGroup * j;
    job.lefts = std::min(kPanelGroups, groups - j);
    job.rights = 0;
    add_up(stream, job);
    const int end = j + job.lefts;
    for (int right = j; right < end && j > 0; right += kOthers) {
      job.right = kDigitGroup * right;
      job.rights = std::min(kOthers, end - right);
      job.lefts = kPanelGroups;
      for (int i = 0; i < j; i += kPanelGroups) {
        job.left = kDigitGroup * i;
        add_up(stream, job);
      }
    }
  }
}

}  // namespace strata::gram_gpu
