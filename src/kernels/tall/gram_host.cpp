// gram and its relatives on the CPU.
//
// Method: 128 rows of all columns are copied into a buffer in the first-level or second-level
// cache, solved there, put back, and added to the sums of all pairs. So a block is read once
// whatever is done to it, and what is read next is prefetched meanwhile. A vector holds the four
// lanes of a pair. Six columns stay in the first-level cache while all others meet them: in fp64
// two at a time, twelve sums for eight loads, in dd one, six sums for seven. A sum by extraction is
// four instructions a product, which on a processor with two units for fused multiply-adds and two
// for additions takes one cycle for four rows. Substitution multiplies by rounded reciprocals and
// mends what is not rounded correctly, since a division takes as long as many products. fp32 → fp32
// takes the reference's way: fp64 gives more digits at the same speed.

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "kernels/backend/operand.hpp"
#include "kernels/backend/run_fused.hpp"
#include "kernels/tall/gram.hpp"
#include "kernels/tall/gram_solve_host.hpp"
#include "scalar/dispatch.hpp"

namespace strata {
namespace host {
namespace {

/// Sums of units, added in the tree of gram.hpp as a counter carries: level k holds those of 2^k
/// units, if the number of units so far has that bit.
template <class W>
class UnitTree {
 public:
  /// Begins `count` sums side by side.
  void start(std::size_t count) {
    newest_.assign(count, W{});
    units_ = 0;
  }
  /// Where the sums of a unit go before add().
  [[nodiscard]] std::vector<W>& newest() { return newest_; }
  void add() {
    std::size_t level = 0;
    for (; (units_ >> level & 1) == 1; ++level) add_waiting(level);
    if (levels_.size() <= level) levels_.resize(level + 1);
    levels_[level] = newest_;
    ++units_;
  }
  [[nodiscard]] const std::vector<W>& sums() {
    bool first = true;
    for (std::size_t level = 0; units_ >> level != 0; ++level) {
      if ((units_ >> level & 1) == 0) continue;
      if (first) {
        newest_ = levels_[level];
      } else {
        add_waiting(level);
      }
      first = false;
    }
    return newest_;
  }

 private:
  void add_waiting(std::size_t level) {
    for (std::size_t i = 0; i < newest_.size(); ++i) newest_[i] = levels_[level][i] + newest_[i];
  }

  std::vector<W> newest_;
  std::vector<std::vector<W>> levels_;
  std::size_t units_ = 0;
};

/// Memory that a thread uses again from call to call.
struct Scratch {
  std::vector<double> x, y, low, sums;
  std::vector<int> fields;
  UnitTree<double> tree;
  UnitTree<DoubleDouble> wide_tree;

  template <class W>
  [[nodiscard]] UnitTree<W>& tree_of() {
    if constexpr (std::is_same_v<W, DoubleDouble>) return wide_tree;
    if constexpr (std::is_same_v<W, double>) return tree;
  }

  static Scratch& mine() {
    thread_local Scratch scratch;
    return scratch;
  }
};

template <class T>
void load_tile(const BlockView& v, const double* d, std::int64_t row, double* x) {
  const auto from = matrix_of<const T>(v);
  const std::int64_t rows = std::min<std::int64_t>(kGramTileRows, v.rows - row);
  for (std::int64_t j = 0; j < v.cols; ++j) {
    const T* column = from.column(j) + row;
    double* to = x + j * kGramTileRows;
    const double scale = d == nullptr ? 1.0 : d[j];
    for (std::int64_t r = 0; r < rows; ++r) to[r] = static_cast<double>(column[r]) * scale;
    std::fill(to + rows, to + kGramTileRows, 0.0);
  }
}

/// What is read after the tile at `row`.
template <class T>
tile::Ahead after_tile(const BlockView& v, std::int64_t row) {
  const auto from = matrix_of<const T>(v);
  const std::int64_t next = row + kGramTileRows;
  if (next >= v.rows) return {};
  constexpr auto kBytes = static_cast<std::int64_t>(sizeof(T));
  return {.first = reinterpret_cast<const char*>(from.data + next),
          .columns = from.cols,
          .stride = from.ld * kBytes,
          .bytes = std::min<std::int64_t>(kGramTileRows, v.rows - next) * kBytes};
}

/// Rounds the tile to T, in the block and in the tile itself.
template <class T>
void store_tile(double* x, std::int64_t row, const BlockView& v, bool stored) {
  const auto to = matrix_of<T>(v);
  const std::int64_t rows = std::min<std::int64_t>(kGramTileRows, v.rows - row);
  for (std::int64_t j = 0; j < v.cols; ++j) {
    double* from = x + j * kGramTileRows;
    if (sizeof(T) < sizeof(double)) {
      for (std::int64_t r = 0; r < rows; ++r)
        from[r] = static_cast<double>(static_cast<T>(from[r]));
    }
    if (!stored) continue;
    T* column = to.column(j) + row;
    for (std::int64_t r = 0; r < rows; ++r) column[r] = static_cast<T>(from[r]);
  }
}

/// R, packed.
template <class S>
std::vector<S> factor_of(const BlockView& r) {
  const auto from = matrix_of<const S>(r);
  std::vector<S> packed;
  packed.reserve(static_cast<std::size_t>(from.size()));
  for (std::int64_t j = 0; j < from.cols; ++j)
    packed.insert(packed.end(), from.column(j), from.column(j) + from.rows);
  return packed;
}

/// The sum of four lanes in W; in dd the low parts of the lanes follow the high ones.
template <class W>
W sum_of_lanes(const double* lane, std::uint32_t variant) {
  if constexpr (std::is_same_v<W, double>) {
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
  } else {
    DoubleDouble of[kGramLanes];
    for (int i = 0; i < kGramLanes; ++i) {
      of[i] = {lane[i], lane[kGramLanes + i]};
      if (variant == kDot2) of[i] = fast_two_sum(of[i].hi, of[i].lo);
    }
    return (of[0] + of[1]) + (of[2] + of[3]);
  }
}
template <class W>
constexpr std::size_t kStride = kGramLanes * sizeof(W) / sizeof(double);  ///< of a pair's lanes

/// The end of a unit: its sums go into the tree, and its lanes begin at 0 again.
template <class W>
void end_unit(std::vector<double>& lanes, UnitTree<W>& tree, std::uint32_t variant = kExtraction) {
  std::vector<W>& sums = tree.newest();
  for (std::size_t p = 0; p < sums.size(); ++p)
    sums[p] = sum_of_lanes<W>(lanes.data() + p * kStride<W>, variant);
  tree.add();
  std::fill(lanes.begin(), lanes.end(), 0.0);
}

/// Whether the tile at `row` is the last of its unit.
bool ends_unit(std::int64_t row, std::int64_t rows) {
  const std::int64_t next = row + kGramTileRows;
  return next >= rows || next % kGramUnitRows == 0;
}

/// Calls f with the type that sums of a block are in: double or DoubleDouble.
template <class F>
void with_sum(const BlockView& b, F&& f) {
  b.element == Element::dd ? f(std::type_identity<DoubleDouble>{})
                           : f(std::type_identity<double>{});
}

template <class W>
void put_gram(const BlockView& block, const std::vector<W>& sums) {
  const auto b = matrix_of<W>(block);
  for (std::int64_t i = 0; i < b.cols; ++i) {
    for (std::int64_t j = i; j < b.cols; ++j)
      b(i, j) = b(j, i) = sums[static_cast<std::size_t>(tile::first_pair(i, b.cols) + j - i)];
  }
}

/// What is done to the tiles of a block, in this order.
struct Pass {
  const BlockView* factor = nullptr;    ///< solved with, if there is one
  const BlockView* then = nullptr;      ///< in doubles: solved with behind that, if there is one,
  const double* then_scales = nullptr;  ///< of columns that are scaled between
  bool stored = false;                  ///< Q takes the place of V
  const BlockView* sums = nullptr;      ///< added up, if there is a place
  std::uint32_t variant = kExtraction;
};

/// A triangle in doubles, as tiles of doubles are solved with it.
struct Triangle {
  explicit Triangle(const BlockView& block) : n(block.cols), r(factor_of<double>(block)) {
    for (std::int64_t j = 0; j < n; ++j)
      divisors.emplace_back(r[static_cast<std::size_t>(j + j * n)]);
    for (std::int64_t j = 0; j < n; j += kEightColumns) eights.emplace_back(r.data(), n, j);
  }
  void solve(double* x, const tile::Ahead& ahead) const {
    run_fused<tile::SolveEights>(x, n, r.data(), divisors.data(), eights.data(), ahead);
  }

  std::int64_t n;
  std::vector<double> r;
  std::vector<tile::Divisor> divisors;
  std::vector<tile::Eight> eights;
};

void scale_columns(double* x, std::int64_t n, const double* scales) {
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t r = 0; r < kGramTileRows; ++r) x[r + j * kGramTileRows] *= scales[j];
}

/// W: what sums are in.
template <class T, class W>
void perform(const BlockView& v, const double* d, const Pass& pass) {
  Scratch& scratch = Scratch::mine();
  UnitTree<W>& tree = scratch.tree_of<W>();
  const std::int64_t n = v.cols;
  const auto buffer = static_cast<std::size_t>(n * kGramTileRows);
  const tile::Sum sum{pass.variant, std::is_same_v<W, DoubleDouble>};
  const bool wide = pass.factor != nullptr && pass.factor->element == Element::dd;
  scratch.x.resize(buffer);
  if (wide) scratch.low.resize(buffer);
  scratch.fields.resize(static_cast<std::size_t>(n));
  if (pass.sums != nullptr) {
    const auto pairs = static_cast<std::size_t>(tile::pairs(n));
    scratch.sums.assign(pairs * kStride<W>, 0.0);
    tree.start(pairs);
  }
  std::optional<Triangle> triangle;
  std::optional<Triangle> then;
  if (pass.factor != nullptr && !wide) triangle.emplace(*pass.factor);
  if (pass.then != nullptr) then.emplace(*pass.then);
  const auto r_wide = wide ? factor_of<DoubleDouble>(*pass.factor) : std::vector<DoubleDouble>();
  std::vector<tile::Divisor> divisors;
  for (std::int64_t j = 0; j < n && wide; ++j)
    divisors.emplace_back(r_wide[static_cast<std::size_t>(j + j * n)].hi);
  double* x = scratch.x.data();
  for (std::int64_t row = 0; row < v.rows; row += kGramTileRows) {
    load_tile<T>(v, d, row, x);
    // The longest of the steps has the time to wait for what comes next.
    const tile::Ahead ahead = after_tile<T>(v, row);
    const tile::Ahead with_solve = pass.sums == nullptr ? ahead : tile::Ahead{};
    if (wide)
      run_fused<tile::SolveWide>(x, scratch.low.data(), n, r_wide.data(), divisors.data(),
                                 with_solve);
    if (triangle) {
      if constexpr (std::is_same_v<T, double>) {
        triangle->solve(x, then ? tile::Ahead{} : with_solve);
        if (then) {
          scale_columns(x, n, pass.then_scales);
          then->solve(x, with_solve);
        }
      } else {
        run_fused<tile::Solve>(x, n, triangle->r.data(), triangle->divisors.data(), with_solve);
      }
    }
    if (pass.factor != nullptr) store_tile<T>(x, row, v, pass.stored);
    if (pass.sums == nullptr) continue;
    run_fused<tile::AddTile>(sum, x, n, ahead, scratch.fields.data(), scratch.sums.data());
    if (ends_unit(row, v.rows)) end_unit(scratch.sums, tree, pass.variant);
  }
  if (pass.sums != nullptr) put_gram(*pass.sums, tree.sums());
}

void perform(const BlockView& v, const BlockView& d, const Pass& pass) {
  dispatch_native(v.element, [&]<class T>(std::type_identity<T>) {
    const auto* scales = static_cast<const double*>(d.data);
    if (pass.sums == nullptr) return perform<T, double>(v, scales, pass);
    with_sum(*pass.sums, [&]<class W>(std::type_identity<W>) { perform<T, W>(v, scales, pass); });
  });
}

/// Whether a call is in floats alone, which the reference does.
bool is_single(const BlockView& a, const BlockView& b) {
  return a.element == Element::fp32 && b.element == Element::fp32;
}

/// Calls of which `single` says so, and sums by digits, which are for GPUs, take the reference's
/// way.
template <class Single, class Body>
void run(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters,
         KernelFunction reference, Single single, Body body) {
  if (calls.count() > 0 && (single(calls[0]) || parameters.variant == kDigitSums))
    return reference(queue, calls, parameters);
  submit_each(queue, calls, body);
}

void run_gram(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(gram, other_sums(parameters.variant), kDot2);
  run(
      queue, calls, parameters, gram_reference().gram,
      [](const BlockView* x) { return is_single(x[0], x[1]); },
      [variant = parameters.variant](const BlockView* x) {
        perform(x[1], x[2], {.sums = &x[0], .variant = variant});
      });
}

bool solves_in_single(const BlockView* x) { return is_single(x[0], x[1]) || is_single(x[1], x[2]); }

void run_apply_gram(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(apply_gram, other_sums(parameters.variant), kExtraction);
  run(queue, calls, parameters, gram_reference().apply_gram, solves_in_single,
      [](const BlockView* x) { perform(x[1], x[3], {.factor = &x[2], .sums = &x[0]}); });
}

void run_solve_right_gram(Queue& queue, const KernelCalls& calls,
                          const KernelParameters& parameters) {
  require_variant(solve_right_gram, other_sums(parameters.variant), kExtraction);
  run(queue, calls, parameters, gram_reference().solve_right_gram, solves_in_single,
      [](const BlockView* x) {
        perform(x[1], x[3], {.factor = &x[2], .stored = true, .sums = &x[0]});
      });
}

void run_solve_right(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(solve_right, parameters.variant, 0);
  run(
      queue, calls, parameters, gram_reference().solve_right,
      [](const BlockView* x) { return is_single(x[0], x[1]); },
      [](const BlockView* x) { perform(x[0], x[2], {.factor = &x[1], .stored = true}); });
}

void run_solve_right_twice(Queue& queue, const KernelCalls& calls,
                           const KernelParameters& parameters) {
  require_variant(solve_right_twice, parameters.variant, 0);
  submit_each(queue, calls, [](const BlockView* x) {
    perform(x[0], x[2],
            {.factor = &x[1],
             .then = &x[3],
             .then_scales = static_cast<const double*>(x[4].data),
             .stored = true});
  });
}

template <class T, class W>
void inner_of(const BlockView& b, const BlockView& x, const BlockView& y, std::uint32_t variant) {
  Scratch& scratch = Scratch::mine();
  UnitTree<W>& tree = scratch.tree_of<W>();
  const tile::Sum sum{variant, std::is_same_v<W, DoubleDouble>};
  const auto pairs = static_cast<std::size_t>(x.cols * y.cols);
  scratch.x.resize(static_cast<std::size_t>(x.cols * kGramTileRows));
  scratch.y.resize(static_cast<std::size_t>(y.cols * kGramTileRows));
  scratch.fields.resize(static_cast<std::size_t>(y.cols));
  scratch.sums.assign(pairs * kStride<W>, 0.0);
  tree.start(pairs);
  for (std::int64_t row = 0; row < x.rows; row += kGramTileRows) {
    load_tile<T>(x, nullptr, row, scratch.x.data());
    load_tile<T>(y, nullptr, row, scratch.y.data());
    run_fused<tile::AddInner>(sum, scratch.x.data(), x.cols, scratch.y.data(), y.cols,
                              after_tile<T>(x, row), after_tile<T>(y, row), scratch.fields.data(),
                              scratch.sums.data());
    if (ends_unit(row, x.rows)) end_unit(scratch.sums, tree, variant);
  }
  const auto out = matrix_of<W>(b);
  const std::vector<W>& sums = tree.sums();
  for (std::int64_t i = 0; i < x.cols; ++i) {
    for (std::int64_t j = 0; j < y.cols; ++j)
      out(i, j) = sums[static_cast<std::size_t>(i * y.cols + j)];
  }
}

void run_inner(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(inner, parameters.variant, kDot2);
  run(
      queue, calls, parameters, gram_reference().inner,
      [](const BlockView* x) { return is_single(x[0], x[1]); },
      [variant = parameters.variant](const BlockView* x) {
        dispatch_native(x[1].element, [&]<class T>(std::type_identity<T>) {
          with_sum(x[0], [&]<class W>(std::type_identity<W>) {
            inner_of<T, W>(x[0], x[1], x[2], variant);
          });
        });
      });
}

void dots_of(const BlockView& c, const BlockView& v, const ColumnRange& range) {
  Scratch& scratch = Scratch::mine();
  scratch.x.resize(kGramTileRows);
  scratch.y.resize(kGramTileRows);
  scratch.sums.assign(static_cast<std::size_t>(range.count * kGramLanes), 0.0);
  scratch.tree.start(static_cast<std::size_t>(range.count));
  const auto column = [&](std::int64_t j) {
    BlockView one = v;
    one.data = matrix_of<double>(v).column(j);
    one.cols = 1;
    return one;
  };
  for (std::int64_t row = 0; row < v.rows; row += kGramTileRows) {
    load_tile<double>(column(range.j), nullptr, row, scratch.y.data());
    for (std::int64_t i = 0; i < range.count; ++i) {
      load_tile<double>(column(range.first + i), nullptr, row, scratch.x.data());
      run_fused<tile::AddOne>(scratch.x.data(), scratch.y.data(),
                              scratch.sums.data() + i * kGramLanes);
    }
    if (ends_unit(row, v.rows)) end_unit(scratch.sums, scratch.tree);
  }
  auto* to = static_cast<double*>(c.data);
  std::fill(to, to + c.rows, 0.0);
  const std::vector<double>& sums = scratch.tree.sums();
  std::copy(sums.begin(), sums.end(), to + range.first);
}

void run_column_dots(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  require_variant(column_dots, parameters.variant, kNormalize - 1);
  run(
      queue, calls, parameters, gram_reference().column_dots,
      [](const BlockView* x) { return is_single(x[0], x[1]); },
      [range = column_range(parameters.variant)](const BlockView* x) {
        dots_of(x[0], x[1], range);
      });
}

void run_column_update(Queue& queue, const KernelCalls& calls, const KernelParameters& parameters) {
  if ((parameters.variant & kNormalize) != 0)
    return gram_reference().column_update(queue, calls, parameters);
  require_variant(column_update, parameters.variant, kNormalize - 1);
  run(
      queue, calls, parameters, gram_reference().column_update,
      [](const BlockView* x) { return is_single(x[0], x[1]); },
      [range = column_range(parameters.variant)](const BlockView* x) {
        const auto v = matrix_of<double>(x[0]);
        const auto* c = static_cast<const double*>(x[1].data);
        for (std::int64_t i = range.first; i < range.first + range.count; ++i)
          run_fused<tile::Subtract>(c[i], static_cast<const double*>(v.column(i)),
                                    v.column(range.j), v.rows);
      });
}

}  // namespace
}  // namespace host

GramKernels gram_host() {
  GramKernels kernels = gram_reference();  // sums of blocks and largest elements are as they are
  kernels.gram = host::run_gram;
  kernels.apply_gram = host::run_apply_gram;
  kernels.solve_right_gram = host::run_solve_right_gram;
  kernels.solve_right = host::run_solve_right;
  kernels.solve_right_twice = host::run_solve_right_twice;
  kernels.inner = host::run_inner;
  kernels.column_dots = host::run_column_dots;
  kernels.column_update = host::run_column_update;
  return kernels;
}

}  // namespace strata
