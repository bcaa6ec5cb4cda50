#pragma once
// What the thread blocks share that carry out the program of a branch, and how they make small
// fronts. For front_branch_cuda.cu.
//
// Contract: as front_program.hpp has it. What another block of the launch wrote is read past the
// first-level cache, behind a wait for its flag. T is double or float.

#include <cstddef>
#include <cstring>

#include "kernels/dense/fused_state_cuda.hpp"
#include "kernels/fronts/front.hpp"
#include "kernels/fronts/front_program.hpp"
#include "scalar/log_sum.hpp"

namespace strata::front {

using namespace tile;

/// At the beginning of the program's bookkeeping.
struct Progress {
  int tickets[3];  ///< drawn of each part of the list
  int summed;      ///< blocks of sum_logarithms that are done
  int lost;        ///< of devices that make a front together: one waited for another in vain
  fused_kernel::Verdict verdict;
  LogSum sums[kProgramBytes / 32];

  /// One that another block has written.
  [[nodiscard]] __device__ LogSum sum_of(int block) const {
    const auto* from = reinterpret_cast<const long long*>(sums + block);
    const long long raw[2] = {__ldcg(from), __ldcg(from + 1)};
    static_assert(sizeof(LogSum) == sizeof raw);
    LogSum sum;
    memcpy(&sum, raw, sizeof raw);
    return sum;
  }
};
static_assert(sizeof(Progress) <= kProgramBytes);

/// The operands of factor_branch: of the first of some calls with one structure. Those of call c
/// lie c times the distances below further on, in elements.
template <class T>
struct Branch {
  T* panels;
  T* outside;
  T* work;
  const T* values;
  const std::int32_t* structure;
  std::int64_t value_count;  ///< the last of them is the shift
  T* more[kPlacesMax];       ///< operands behind the others
  int calls = 1;
  std::int64_t sweep_columns = 0;  ///< of sweep_range: m, by which bookkeeping is found
  std::int64_t to_panels = 0;
  std::int64_t to_outside = 0;
  std::int64_t to_work = 0;
  std::int64_t to_values = 0;

  [[nodiscard]] __device__ const BranchProgram& program() const {
    const auto& head = *reinterpret_cast<const BranchHeader*>(structure);
    return *reinterpret_cast<const BranchProgram*>(structure + head.program);
  }
  [[nodiscard]] __device__ const FrontRecord* records() const {
    return reinterpret_cast<const FrontRecord*>(structure + program().records);
  }
  [[nodiscard]] __device__ const FrontJob* jobs() const {
    return reinterpret_cast<const FrontJob*>(structure + program().jobs);
  }
  [[nodiscard]] __device__ std::byte* bookkeeping(int call = 0) const {
    const std::int64_t place =
        sweep_columns > 0 ? range_bookkeeping(program(), sweep_columns) : program().bookkeeping;
    return reinterpret_cast<std::byte*>(work + call * to_work + place);
  }
  [[nodiscard]] __device__ Progress* progress(int call = 0) const {
    return reinterpret_cast<Progress*>(bookkeeping(call));
  }
  [[nodiscard]] __device__ T* inverses(int call = 0) const {
    return panels + call * to_panels + program().first_inverse;
  }
  /// The diagonal of L, a number for each column.
  [[nodiscard]] __device__ double* diagonal(int call = 0) const {
    return reinterpret_cast<double*>(bookkeeping(call) + kProgramBytes);
  }
  [[nodiscard]] __device__ int* flags(int call = 0) const {
    return reinterpret_cast<int*>(diagonal(call) + 2 * std::int64_t{program().columns});
  }
  /// A place for each column.
  [[nodiscard]] __device__ T* messages(int call = 0) const {
    return reinterpret_cast<T*>(diagonal(call) + program().columns);
  }
  [[nodiscard]] __device__ int* sweep_flags(int call = 0) const {
    return flags(call) + program().flags;
  }
};

/// What a thread of a block of kThreads needs of a branch.
template <class T, int kThreads>
struct Part {
  static constexpr int kWarps = kThreads / kWarp;

  const std::int32_t* structure;
  const FrontRecord* records;
  T* panels;
  T* outside;
  T* const* more;
  T* work;
  const T* values;
  T shift;
  int* flags;
  double* diagonal;
  fused_kernel::Verdict* verdict;

  __device__ explicit Part(const Branch<T>& branch, int call = 0)
      : structure(branch.structure),
        records(branch.records()),
        panels(branch.panels + call * branch.to_panels),
        outside(branch.outside + call * branch.to_outside),
        more(branch.more),
        work(branch.work + call * branch.to_work),
        values(branch.values + call * branch.to_values),
        shift(values[branch.value_count - 1]),
        flags(branch.flags(call)),
        diagonal(branch.diagonal(call)),
        verdict(&branch.progress(call)->verdict) {}

  [[nodiscard]] __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  /// Number of this warp in its block; constant where there is one warp.
  [[nodiscard]] __device__ static int own_warp() { return kWarps == 1 ? 0 : warp(); }
  __device__ static void synchronize() {
    if constexpr (kWarps == 1) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  [[nodiscard]] __device__ T* update_of(const FrontRecord& front) const {
    return memory_of(front.place) + front.update;
  }
  /// That of an update.
  [[nodiscard]] __device__ T* memory_of(int place) const {
    if (place >= 0) return place == 0 ? work : more[place - 1];
    return place == -1 ? outside : panels;
  }
  [[nodiscard]] __device__ T* panel_of(const FrontRecord& front) const {
    return (front.panel_place == 0 ? panels : more[front.panel_place - 1]) + front.panel;
  }
  __device__ void wait_for_children(const FrontRecord& front) const {
    if (front.expected > 0 && own_warp() == 0)
      (void)fused_kernel::await(flags + front.flag, front.expected);
    synchronize();
  }
  /// Behind a barrier with those who wrote.
  __device__ void signal_parent(const FrontRecord& front) const {
    if (front.parent >= 0 && thread() == 0)
      fused_kernel::signal(flags + records[front.parent].flag);
  }

  /// The entry of A that belongs to `place` of a panel.
  [[nodiscard]] __device__ T value_of(const FrontRecord& front, int source, int place) const {
    const T value = source < 0 ? T{0} : values[source];
    return place % (front.ld + 1) == 0 ? value + shift : value;
  }

  /// What add_child needs of a child: prepared by a lane each, for columns of its update from `b0`.
  struct Given {
    const T* columns;  ///< element (a, b) is at columns + b·ld + a, within a column of tiles
    int ld;
    int places;
  };
  [[nodiscard]] __device__ Given given(const ChildRecord& child, int b0) const {
    const int ld = child.ld_update - b0 / kFrontTile * kFrontTile;
    return {memory_of(child.place) + child.update +
                (update_column(child.ld_update, kFrontTile, b0) - b0 * ld),
            ld, child.places};
  }
  /// That of lane k.
  [[nodiscard]] __device__ static Given from_lane(const Given& mine, int k) {
    constexpr unsigned kAll = 0xffffffffU;
    return {reinterpret_cast<const T*>(
                __shfl_sync(kAll, reinterpret_cast<unsigned long long>(mine.columns), k)),
            __shfl_sync(kAll, mine.ld, k), __shfl_sync(kAll, mine.places, k)};
  }

  /// X, of whose front it begins at (row, col), gets what falls into it of rows a0 … a1 − 1 and
  /// columns b0 … b1 − 1 of a child's update, where that is not above the diagonal.
  /// kColumns of them are on their way at once.
  template <int kColumns = 4>
  __device__ void add_child(T* x, int ld, int row, int col, Given child, int a0, int a1, int b0,
                            int b1) const {
    const std::int32_t* places = structure + child.places;
    for (;;) {  // a column of tiles of the update at a time
      const int end = min(b1, (b0 / kFrontTile + 1) * kFrontTile);
      for (int a = a0 + lane(); a < a1; a += kWarp) {
        T* to = x + places[a] - row;
        const T* from = child.columns + a;
        for (int b = b0 + own_warp(); b < end; b += kColumns * kWarps) {
          T value[kColumns];
          int place[kColumns];
#pragma unroll
          for (int k = 0; k < kColumns; ++k) {
            const int column = b + k * kWarps;
            const bool inside = column < end && column <= a;
            place[k] = inside ? places[column] - col : -1;
            value[k] = inside ? __ldcg(from + static_cast<std::int64_t>(column) * child.ld) : T{0};
          }
#pragma unroll
          for (int k = 0; k < kColumns; ++k)
            if (place[k] >= 0) to[place[k] * ld] += value[k];
        }
      }
      if (end == b1) return;
      // The next columns lie behind the last of these, and are shorter.
      child.columns += static_cast<std::int64_t>(end) * kFrontTile - kFrontTile;
      child.ld -= kFrontTile;
      b0 = end;
    }
  }

  /// The record of child number `c`, if there is one.
  [[nodiscard]] __device__ ChildRecord child_of(const FrontRecord& front, int c) const {
    if (c >= front.child_count) return {};
    return reinterpret_cast<const ChildRecord*>(structure + front.children)[c];
  }
};

/// Small fronts, each assembled and eliminated column by column in shared memory: `x` holds one.
template <class T, int kThreads>
struct SmallFronts {
  using P = Part<T, kThreads>;
  static constexpr int kWarps = P::kWarps;

  const P& part;
  T* x;

  /// `last`: of its job.
  __device__ void factor(int f, int last) const {
    const FrontRecord front = part.records[f];
    const int order = front.width + front.rows;
    const int ld = order | 1;
    const ChildRecord mine = part.child_of(front, lane());
    assemble_entries(front, order, ld);
    for (int first = 0; first < front.child_count; first += kWarp) {
      const ChildRecord own = first == 0 ? mine : part.child_of(front, first + lane());
      const auto given = part.given(own, own.first_column);
      for (int k = 0; k < min(kWarp, front.child_count - first); ++k) {
        part.add_child(x, ld, 0, 0, P::from_lane(given, k), 0,
                       __shfl_sync(0xffffffffU, own.rows, k),
                       __shfl_sync(0xffffffffU, own.first_column, k),
                       __shfl_sync(0xffffffffU, own.last_column, k));
        P::synchronize();
      }
    }
    eliminate(ld, order, front);
    put(ld, front);
    P::synchronize();
    if (front.parent > last) part.signal_parent(front);
  }

 private:
  __device__ void assemble_entries(const FrontRecord& front, int order, int ld) const {
    const std::int32_t* places = part.structure + front.entries;
    const std::int32_t* sources = places + front.entry_count;
    const int own = P::thread();
    const bool has = own < front.entry_count;
    const int place = has ? places[own] : 0;
    const T value = has ? part.value_of(front, sources[own], place) : T{0};
    for (int n = own; n < order * ld; n += kThreads) x[n] = 0;
    P::synchronize();
    if (has) x[place % front.ld + place / front.ld * ld] = value;
    for (int e = own + kThreads; e < front.entry_count; e += kThreads) {
      const int at = places[e];
      x[at % front.ld + at / front.ld * ld] = part.value_of(front, sources[e], at);
    }
    P::synchronize();
  }

  [[nodiscard]] __device__ static bool is_good(T pivot) { return pivot > 0 && !isinf(pivot); }

  /// Columns stay as they were before they are scaled: one barrier each.
  __device__ void eliminate(int ld, int order, const FrontRecord& front) const {
    for (int c = 0; c < front.width; ++c) {
      const T* column = x + c * ld;
      const T pivot = column[c];
      const bool good = is_good(pivot);
      if (!good && P::thread() == 0)
        fused_kernel::report_least(part.verdict, front.column + c, static_cast<double>(pivot));
      const T inverse = good ? T{1} / pivot : T{0};
      for (int j = c + 1 + P::own_warp(); j < order; j += kWarps) {
        const T factor = column[j] * inverse;
        T* to = x + j * ld;
        for (int i = j + lane(); i < order; i += kWarp) to[i] -= column[i] * factor;
      }
      P::synchronize();
    }
  }

  __device__ void put(int ld, const FrontRecord& front) const {
    const int order = front.width + front.rows;
    for (int c = P::own_warp(); c < front.width; c += kWarps) {
      const T pivot = x[c + c * ld];
      const bool good = is_good(pivot);
      const T root = good ? sqrt(pivot) : T{0};
      const T inverse = good ? T{1} / root : T{0};
      T* to = part.panels + front.panel + c * front.ld;
      for (int i = lane(); i < order; i += kWarp)
        to[i] = i < c ? T{0} : (i == c ? root : x[i + c * ld] * inverse);
      if (lane() == 0) part.diagonal[front.column + c] = static_cast<double>(root);
    }
    T* update = part.update_of(front);
    const T* from = x + front.width * (ld + 1);
    for (int b = P::own_warp(); b < front.rows; b += kWarps) {
      T* to = update + update_column(front.ld_update, front.step, b);
      for (int a = b + lane(); a < front.rows; a += kWarp) to[a] = from[a + b * ld];
    }
  }
};

}  // namespace strata::front
