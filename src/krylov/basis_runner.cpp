#include "krylov/basis_runner.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "device/device_host.hpp"
#include "kernels/krylov/panel.hpp"
#include "session/budget.hpp"

namespace strata {
namespace {

/// Beside what a plan needs: blocks of other sizes come and go between those that stay.
constexpr std::int64_t kSlackBytes = 64 << 10;

/// Blocks of one column that lie behind each other in an array; zeros behind its end.
template <class T>
BlockSource source_of_array(std::span<const T> array) {
  return [array](const BlockExtent& x, std::byte* to) {
    const auto first = static_cast<std::size_t>(x.row);
    const std::size_t there = array.size() - std::min(array.size(), first);
    const std::size_t count = std::min(static_cast<std::size_t>(x.rows), there);
    if (count > 0) std::memcpy(to, array.data() + first, count * sizeof(T));
    std::fill_n(reinterpret_cast<T*>(to) + count, static_cast<std::size_t>(x.rows) - count, T(0));
  };
}

/// The values times a power of two, in fp32.
std::vector<float> scaled_floats(std::span<const double> values, double scale) {
  std::vector<float> narrow(values.size());
  std::transform(values.begin(), values.end(), narrow.begin(),
                 [scale](double x) { return static_cast<float>(x * scale); });
  return narrow;
}

BlockSource source_of_columns(const std::vector<GivenColumn>& given) {
  return [&given](const BlockExtent& x, std::byte* to) {
    auto* packed = reinterpret_cast<double*>(to);
    std::fill_n(packed, x.rows * x.cols, 0.0);
    for (const GivenColumn& one : given) {
      const std::int64_t j = one.column - x.col;
      if (j >= 0 && j < x.cols) std::copy_n(one.values.data() + x.row, x.rows, packed + j * x.rows);
    }
  };
}

std::vector<std::int32_t> indices_of(const RowSlabs& slabs) {
  std::vector<std::int32_t> index;
  for (const HaloLink& link : slabs.links)
    index.insert(index.end(), link.index.begin(), link.index.end());
  return index;
}

/// Packs the numbers of a factor in its element.
void write_factor(MemoryStore& store, std::int64_t number, const PanelFactor& factor) {
  std::vector<double> packed;
  for (const DoubleDouble& x : factor.values) {
    packed.push_back(x.hi);
    if (factor.element == Element::dd) packed.push_back(x.lo);
  }
  const auto bytes_of_values = [](const std::vector<double>& values) {
    return reinterpret_cast<const std::byte*>(values.data());
  };
  store.write(BlockId(basis::kFactors, number, 0), bytes_of_values(packed));
  std::vector<double> scale = factor.scale;
  scale.resize(static_cast<std::size_t>(factor.cols), 1.0);
  store.write(BlockId(basis::kScales, number, 0), bytes_of_values(scale));
}

PanelSum read_sum(MemoryStore& store, std::int64_t number, const BasisScript::Sum& sum) {
  const bool wide = sum.element == Element::dd;
  const auto count = static_cast<std::size_t>(sum.rows * sum.cols);
  if (sum.element == Element::fp32) {
    std::vector<float> packed(count);
    store.read(BlockId(basis::kSums, number, 0), reinterpret_cast<std::byte*>(packed.data()));
    PanelSum read{sum.rows, sum.cols, {}};
    for (const float x : packed) read.values.emplace_back(static_cast<double>(x));
    return read;
  }
  std::vector<double> packed(count * (wide ? 2 : 1));
  store.read(BlockId(basis::kSums, number, 0), reinterpret_cast<std::byte*>(packed.data()));
  PanelSum read{sum.rows, sum.cols, std::vector<DoubleDouble>(count)};
  for (std::size_t i = 0; i < count; ++i)
    read.values[i] =
        wide ? DoubleDouble{packed[2 * i], packed[2 * i + 1]} : DoubleDouble(packed[i]);
  return read;
}

BasisIdentities identities_of(const Session& session) {
  const auto next = [&] { return session.new_identity(); };
  return {next(), next(), next(), next(), next(), next(), next(), next(),
          next(), next(), next(), next(), next(), next(), next(), next()};
}

}  // namespace

BasisRunner::BasisRunner(const SparseMatrix& a, std::int64_t columns, std::int64_t block,
                         std::vector<GivenColumn> given, const RunOptions& options,
                         const char* what, std::int64_t rotated, RightInverse right,
                         std::int64_t ghost_depth, const VectorFormat& format)
    : a_(a),
      columns_(columns),
      given_(std::move(given)),
      options_(options),
      what_(what),
      session_(options_),
      identities_(identities_of(session_)),
      right_(std::move(right)),
      ghost_depth_(ghost_depth),
      format_(format) {
  halo_.asked_for_ghost_zones = ghost_depth > 0;
  if (ghost_depth_ == 1) {
    halo_.why = "plain products: blocks of one vector";
    ghost_depth_ = 0;
  } else if (ghost_depth_ > 1 && (right_.matrix != nullptr || right_.apply)) {
    halo_.why = "plain products: there is a preconditioner";
    ghost_depth_ = 0;
  }
  choose_slabs(block, rotated);
  make_memory();
  session_.set_home([this](const BlockTable& blocks) { return store_of(blocks); });
}

/// A script that needs at least as much room as any that is run.
BasisScript BasisRunner::widest_script(std::int64_t block, std::int64_t rotated) const {
  BasisScript script;
  const std::int64_t width = std::min(block + 1, columns_);
  script.multiply(0, 0, 0, 0, 0, 1);
  // As if it began behind another vector, which is a second column to exchange.
  const std::int64_t steps = ghost_depth_ > 0 ? std::min(block, ghost_depth_) : block;
  if (block > 1) script.powers(1, 0, std::vector<BasisScript::Step>(at(steps), {0, 1, 1}));
  const bool narrow = format_.element == Element::fp32;
  const Element widest = narrow ? Element::fp64 : Element::dd;
  (void)script.inner(0, columns_, 0, width, widest);
  (void)script.inner(0, columns_, 0, width, Element::fp64);
  (void)script.inner(0, width, 0, width, widest);
  if (format_.wide_columns > 0) {
    script.correct(0, 0, {columns_, 1, Element::fp64, std::vector<DoubleDouble>(at(columns_)), {}});
    script.multiply(0, 1, 0, 0, 1, 1, true);
    script.narrow(1, 0, script.inner(1, 1, 1, 1, Element::fp64, true));
  }
  for (const Element element : {Element::fp64, widest}) {
    const auto count = static_cast<std::size_t>(width * width);
    script.solve(0, {width, width, element, std::vector<DoubleDouble>(count), {}});
  }
  script.update_by(0, 0,
                   {columns_,
                    width,
                    Element::fp64,
                    std::vector<DoubleDouble>(static_cast<std::size_t>(columns_ * width)),
                    {}});
  for (int time = 0; time < 2 && rotated > 0; ++time)
    script.rotate({rotated,
                   rotated,
                   Element::fp64,
                   std::vector<DoubleDouble>(static_cast<std::size_t>(rotated * rotated)),
                   {}});
  script.put(0, {});
  return script;
}

/// The fewest slabs with which a task of the widest script finds room, and the arenas for it.
void BasisRunner::choose_slabs(std::int64_t block, std::int64_t rotated) {
  const std::int64_t there = smallest_memory(session_.machine());
  const BasisScript script = widest_script(block, rotated);
  std::int64_t needed = 0;
  std::size_t count = 0;
  WorkCrew crew(describe_host().compute_queues - 1);
  const auto cut = [&](const SparseMatrix& a, std::int64_t per_device) {
    return cut_into_slabs(a, session_.devices().count(), per_device, crew);
  };
  for (std::int64_t per_device = 1;; per_device *= 2) {
    slabs_ = cut(a_, per_device);
    if (right_.matrix != nullptr) inverse_slabs_ = cut(*right_.matrix, per_device);
    choose_ghosts();
    BasisProblem widest = problem();
    widest.taken = 0;
    needed = smallest_budget_bytes(basis_schedule(widest, script)) + kSlackBytes;
    if (needed <= there) break;
    require(slabs_.slabs.size() > count, ErrorKind::memory, what_,
            "a device memory of {} ({} bytes) is too small for {} vectors: the smallest slab of "
            "rows needs {} bytes",
            format_bytes(there), there, columns_, needed);
    count = slabs_.slabs.size();
  }
  BasisProblem widest = problem();
  widest.taken = 0;
  session_.reserve(std::array{basis_schedule(widest, script)},
                   [](std::int64_t arena) { return arena / 16 + kSlackBytes; });
}

void BasisRunner::choose_ghosts() {
  ghosts_ = {};
  if (ghost_depth_ == 0) return;
  GhostZones made = make_ghost_zones(a_, slabs_, ghost_depth_);
  halo_.ghost_share = made.share;
  halo_.ghost_zones = !made.links.empty() && made.share <= kGhostShareMax;
  halo_.why.clear();
  if (halo_.ghost_zones) {
    ghosts_ = std::move(made);
  } else {
    halo_.why = made.links.empty()
                    ? "plain products: slabs have no neighbours"
                    : fmt::format(
                          "plain products: ghost zones of depth {} would have {:.3g} times "
                          "the rows of a slab, more than {}",
                          ghost_depth_, made.share, kGhostShareMax);
  }
}

void BasisRunner::make_memory() {
  const auto append = [](std::vector<std::int32_t>& to, const std::vector<std::int32_t>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  index_ = indices_of(slabs_);
  inverse_index_ = indices_of(inverse_slabs_);
  for (const HaloLink& link : ghosts_.links) append(ghost_index_, link.index);
  for (const GhostZone& zone : ghosts_.zones) append(ghost_index_, zone.halo);
  for (const GhostZone& zone : ghosts_.zones) append(ghost_index_, zone.border);
  const Schedule empty = basis_schedule(problem(), BasisScript());
  const auto memory = [&](int family, BlockSource source) {
    fixed_[family] = std::make_shared<FamilyMemory>(empty.blocks, family, std::move(source));
  };
  const bool narrow = format_.element == Element::fp32;
  if (narrow) {
    values_ = scaled_floats(a_.value, format_.scale);
    ghost_values_ = scaled_floats(ghosts_.value, format_.scale);
    if (right_.matrix != nullptr)
      inverse_values_ = scaled_floats(right_.matrix->value, format_.inverse_scale);
  }
  const auto values_of = [&](std::span<const double> wide, std::span<const float> single) {
    return narrow ? source_of_array(single) : source_of_array(wide);
  };
  memory(basis::kVectors, nullptr);  // the first script writes all of it
  memory(basis::kStarts, source_of_array(std::span<const std::int32_t>(slabs_.start)));
  memory(basis::kColumns, source_of_array(std::span<const std::int32_t>(slabs_.column)));
  memory(basis::kValues, values_of(a_.value, values_));
  memory(basis::kHalo, nullptr);
  memory(basis::kIndex, source_of_array(std::span<const std::int32_t>(index_)));
  memory(basis::kGhostStarts, source_of_array(std::span<const std::int32_t>(ghosts_.start)));
  memory(basis::kGhostColumns, source_of_array(std::span<const std::int32_t>(ghosts_.column)));
  memory(basis::kGhostValues, values_of(ghosts_.value, ghost_values_));
  memory(basis::kGhostIndex, source_of_array(std::span<const std::int32_t>(ghost_index_)));
  if (format_.wide_columns > 0) {
    memory(basis::kWide, source_of_columns(given_));
    memory(basis::kWideValues, source_of_array(std::span<const double>(a_.value)));
  }
  if (right_.matrix == nullptr) return;
  const RowSlabs& slabs = inverse_slabs_;
  memory(basis::kInverseStarts, source_of_array(std::span<const std::int32_t>(slabs.start)));
  memory(basis::kInverseColumns, source_of_array(std::span<const std::int32_t>(slabs.column)));
  memory(basis::kInverseValues, values_of(right_.matrix->value, inverse_values_));
  if (format_.wide_columns > 0)
    memory(basis::kWideInverseValues,
           source_of_array(std::span<const double>(right_.matrix->value)));
  memory(basis::kInverseIndex, source_of_array(std::span<const std::int32_t>(inverse_index_)));
}

BasisProblem BasisRunner::problem() const {
  const bool by_matrix = right_.matrix != nullptr;
  return {.slabs = &slabs_,
          .preconditioned = by_matrix      ? Preconditioned::by_matrix
                            : right_.apply ? Preconditioned::by_host
                                           : Preconditioned::not_at_all,
          .inverse = by_matrix ? &inverse_slabs_ : nullptr,
          .ghosts = ghosts_.depth > 0 ? &ghosts_ : nullptr,
          .columns = columns_,
          .element = format_.element,
          .wide_columns = format_.wide_columns,
          .devices = session_.devices().count(),
          .identities = identities_};
}

std::unique_ptr<MemoryStore> BasisRunner::store_of(const BlockTable& blocks) const {
  std::vector<std::shared_ptr<FamilyMemory>> families;
  for (int f = 0; f < basis::kFamilies; ++f) {
    const auto fixed = fixed_.find(f);
    families.push_back(fixed != fixed_.end() ? fixed->second
                                             : std::make_shared<FamilyMemory>(blocks, f));
  }
  return std::make_unique<MemoryStore>(blocks, std::move(families));
}

/// What the host provides: coefficients of products, factors, columns.
void BasisRunner::write_small(const BasisScript& script, MemoryStore& store) const {
  const auto bytes_of_values = [](const auto& values) {
    return reinterpret_cast<const std::byte*>(values.data());
  };
  std::vector<double> three(at(3 * columns_));
  std::vector<double> wide_three(at(3 * format_.wide_columns));
  for (const BasisScript::Coefficients& c : script.coefficients) {
    std::vector<double>& of = c.wide ? wide_three : three;
    const auto to = static_cast<std::size_t>(3 * c.to);
    of[to] = c.alpha;
    of[to + 1] = c.beta;
    of[to + 2] = c.gamma;
  }
  if (right_.matrix != nullptr) three.back() = 1;  // of products with M⁻¹
  if (right_.matrix != nullptr && !wide_three.empty()) wide_three.back() = 1;
  store.write(BlockId(basis::kThree, 0, 0), bytes_of_values(three));
  if (!wide_three.empty())
    store.write(BlockId(basis::kWideThree, 0, 0), bytes_of_values(wide_three));
  // Coefficients of ghost rows: their column i + 2 takes those of V's column first + i + 1.
  for (std::size_t p = 0; ghosts_.depth > 0 && p < script.ranges.size(); ++p) {
    std::vector<double> part(at(3 * (ghosts_.depth + 1)));
    const BasisScript::Range& range = script.ranges[p];
    const std::int64_t steps = std::min(range.count, ghosts_.depth) - 1;
    if (steps > 0) std::copy_n(three.begin() + 3 * (range.first + 1), 3 * steps, part.begin() + 6);
    store.write(BlockId(basis::kThree, static_cast<std::int64_t>(p) + 1, 0), bytes_of_values(part));
  }
  for (std::size_t f = 0; f < script.factors.size(); ++f)
    write_factor(store, static_cast<std::int64_t>(f), script.factors[f]);
  std::int64_t block = 0;
  for (const BasisScript::Given& given : script.given) {
    const bool narrow = !given.wide && format_.element == Element::fp32;
    const std::vector<float> single =
        narrow ? scaled_floats(given.values, 1) : std::vector<float>();
    for (const RowSlab& slab : slabs_.slabs)
      store.write(BlockId(basis::kGiven, block++, 0),
                  narrow ? reinterpret_cast<const std::byte*>(single.data() + slab.first)
                         : reinterpret_cast<const std::byte*>(given.values.data() + slab.first));
  }
}

void BasisRunner::read_taken(MemoryStore& store, const Taken& taken) const {
  std::vector<float> single;
  const std::int64_t columns = taken.first < 0 ? 0 : taken.to.cols;
  const auto slabs = std::ssize(slabs_.slabs);
  for (std::int64_t k = 0; k < columns * slabs; ++k) {
    const RowSlab& slab = slabs_.slabs[at(k % slabs)];
    const BlockId block(basis::kTaken, k, 0);
    double* to = taken.to.column(k / slabs) + slab.first;
    if (taken.wide || format_.element == Element::fp64) {
      store.read(block, reinterpret_cast<std::byte*>(to));
      continue;
    }
    single.resize(at(slab.rows));
    store.read(block, reinterpret_cast<std::byte*>(single.data()));
    std::copy(single.begin(), single.end(), to);
  }
}

/// A sum is one of a block with itself where no update follows that takes what it says off others.
void BasisRunner::add_seconds(const BasisScript& script, const Trace& trace) {
  std::vector<bool> projects(script.sums.size());
  for (const BasisScript::Action& action : script.actions) {
    if (action.kind == BasisScript::Kind::update && action.sum >= 0)
      projects[static_cast<std::size_t>(action.sum)] = true;
  }
  const auto slabs = std::ssize(slabs_.slabs);
  KrylovSeconds seconds;
  double busy = 0;
  for (const Span& span : trace.spans) {
    if (span.kind != SpanKind::compute) continue;
    const std::string& name = trace.operations[span.operation];
    const double time = (span.end - span.begin) / session_.devices().count();
    double* part = nullptr;
    if (name == spmv.name || name.starts_with("halo")) part = &seconds.products;
    if (name == panel_update.name || name == panel_correct.name) part = &seconds.projections;
    if (name == panel_solve.name) part = &seconds.solves;
    if (name == panel_rotate.name) part = &seconds.rotations;
    // The blocks of a sum are numbered by the sum; those of its parts by the slabs beside.
    const bool of_parts = name == panel_inner.name;
    if (of_parts || name == panel_start.name || name == panel_add.name) {
      const auto sum = static_cast<std::size_t>(of_parts ? span.row / slabs : span.row);
      part = projects[sum] ? &seconds.projections : &seconds.gram;
    }
    if (part == nullptr) continue;
    *part += time;
    busy += time;
  }
  seconds_.products += seconds.products;
  seconds_.projections += seconds.projections;
  seconds_.gram += seconds.gram;
  seconds_.solves += seconds.solves;
  seconds_.rotations += seconds.rotations;
  seconds_.rest += trace.seconds - busy;
}

/// The first script, behind what makes V of the columns that are given.
BasisScript BasisRunner::begun(const BasisScript& script) const {
  BasisScript whole = script;
  whole.clear();
  if (format_.wide_columns == 0) {
    for (const GivenColumn& one : given_)
      whole.put(one.column, {one.values.begin(), one.values.end()});
  }
  const auto ahead = std::ssize(whole.actions) - std::ssize(script.actions);
  std::rotate(whole.actions.begin(), whole.actions.end() - ahead, whole.actions.end());
  return whole;
}

std::vector<PanelSum> BasisRunner::perform(const BasisScript& asked, const Taken& taken) {
  const auto begin = std::chrono::steady_clock::now();
  require(!options_.progress || options_.progress({.what = what_}), ErrorKind::cancelled, what_,
          "cancelled before step {}", scripts_ + 1);
  const BasisScript first = scripts_ == 0 ? begun(asked) : BasisScript();
  const BasisScript& script = scripts_ == 0 ? first : asked;
  BasisProblem of = problem();
  of.taken = taken.first;
  of.taken_count = taken.to.cols;
  of.taken_wide = taken.wide;
  SessionRun wanted;
  wanted.schedule = std::make_shared<const Schedule>(basis_schedule(of, script));
  const BlockTable& blocks = wanted.schedule->blocks;
  RunFigures& figures = wanted.figures;
  figures.n = a_.rows;
  figures.tile = std::int64_t{1} << slabs_.chunk_log2;
  for (const int f : {basis::kVectors, basis::kValues, basis::kColumns, basis::kStarts,
                      basis::kInverseValues, basis::kInverseColumns, basis::kInverseStarts,
                      basis::kWide, basis::kWideValues, basis::kWideInverseValues})
    figures.host_bytes += blocks.total_bytes(f);
  for (int f = basis::kThree; f <= basis::kGiven; ++f) {
    if (f != basis::kParts) figures.floor_bytes += blocks.total_bytes(f);
  }
  figures.floor_bytes += blocks.total_bytes(basis::kWideThree);
  for (const auto& [f, memory] : fixed_) {
    const bool comes = scripts_ == 0 && f != basis::kVectors;
    figures.floor_bytes += comes ? blocks.total_bytes(f) : 0;
  }
  figures.seconds = seconds_since(begin);
  const std::unique_ptr<MemoryStore> store = store_of(blocks);
  write_small(script, *store);
  IssueOptions options;
  options.progress = options_.progress;
  options.what = what_;
  add_seconds(script, session_.run(wanted, *store, options).trace);
  const HaloTraffic halo = halo_traffic(of, script);
  halo_.exchanges += halo.exchanges;
  halo_.bytes += halo.bytes;
  ++scripts_;
  std::vector<PanelSum> sums;
  for (std::size_t s = 0; s < script.sums.size(); ++s)
    sums.push_back(read_sum(*store, static_cast<std::int64_t>(s), script.sums[s]));
  read_taken(*store, taken);
  return sums;
}

/// The host multiplies by M⁻¹ between the parts.
std::vector<PanelSum> BasisRunner::perform_by_parts(const BasisScript& script, const Taken& taken) {
  std::vector<BasisScript> parts = cut_before_products(script);
  std::vector<PanelSum> sums;
  std::vector<double> v(static_cast<std::size_t>(a_.rows));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::vector<BasisScript::Action>& actions = parts[i].actions;
    if (i > 0) {
      const bool wide = actions.front().wide;
      std::vector<double> inverted(v.size());
      right_.apply(v, inverted);
      if (!wide)
        for (double& x : inverted) x *= format_.inverse_scale;
      parts[i].put((wide ? format_.wide_columns : columns_) - 1, std::move(inverted), wide);
      std::rotate(actions.begin(), actions.end() - 1, actions.end());
    }
    const bool more = i + 1 < parts.size();
    Taken of_part = taken;
    if (more) {
      const BasisScript::Action& product = parts[i + 1].actions.front();
      of_part = {product.first, {v.data(), std::ssize(v), 1, std::ssize(v)}, product.wide};
    }
    const std::vector<PanelSum> part = perform(parts[i], of_part);
    sums.insert(sums.end(), part.begin(), part.end());
  }
  return sums;
}

std::vector<PanelSum> BasisRunner::run(const BasisScript& script) {
  return run_and_take(script, -1, MatrixView<double>{});
}

std::vector<PanelSum> BasisRunner::run_and_take(const BasisScript& script, std::int64_t first,
                                                MatrixView<double> to, bool wide) {
  const Taken taken{first, to, wide};
  return right_.apply ? perform_by_parts(script, taken) : perform(script, taken);
}

}  // namespace strata
