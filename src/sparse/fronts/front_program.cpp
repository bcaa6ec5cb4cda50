#include "sparse/fronts/front_program.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <queue>

#include "base/check.hpp"
#include "kernels/fronts/front.hpp"
#include "sparse/ordering/pattern.hpp"

namespace strata {
namespace {

// What jobs take on an H200, in seconds, as far as their order depends on it.
/// Thread blocks for tiles, by how many are busy on the average.
constexpr double kWorkersEach = 2.2;
constexpr double kWorkers = 264;          // thread blocks for tiles
constexpr double kTinyWorkers = 3168;     // warps for tiny fronts
constexpr double kSmallFrontTime = 5e-6;  // beside its columns
constexpr double kSmallColumnTime = 0.3e-6;
constexpr double kProductTime = 2.6e-6;  // of two tiles, where few blocks are busy
// The same over all blocks where they are busy: 32 TFLOP/s.
constexpr double kProductsTime = 2.0 * kFrontTile * kFrontTile * kFrontTile / 32e12;
constexpr double kTileTime = 8e-6;   // beside its products
constexpr double kSweepStep = 3e-6;  // of a sweep, from one tile on the diagonal to the next one
constexpr double kSweepTile = 1e-6;  // a tile on its way through
constexpr double kDiagonalTime = 12e-6;  // from one diagonal tile to the next one

// What launches take, in seconds: fitted to the times of each launch on an H200 for 22 matrices,
// from grids of 60² and 8³ to 1500² and 100³ (bench/results/2026-11-30-h200-predictions.md).
constexpr double kLaunchTime = 60e-6;  // all that have nothing to do, and the host
constexpr double kSumTime = 20e-12;    // of the logarithm of a pivot, where there are many
/// Tiles as they are listed, over the times above, by which they are listed best.
constexpr double kTilesTime = 1.16;
/// A launch for small fronts: its longest way waits for memory and pivots, and where fronts are
/// many all columns and entries of A take their time beside it.
struct SmallTimes {
  double launch;
  double front;  ///< on the longest way, with each row …
  double row;    ///< … and each column of it
  double column;
  double each_column;
  double each_entry;
};
constexpr SmallTimes kTinyTimes{0, 0.7e-6, 1.14e-6, 0, 0.76e-9, 0.12e-9};
constexpr SmallTimes kSmallTimes{20e-6, 0, 0.24e-6, 0.21e-6, 2.74e-9, 0.06e-9};

class ProgramMaker {
 public:
  ProgramMaker(std::vector<FrontRecord>& fronts, std::span<const GivenChild> given,
               std::int64_t begin, std::vector<std::int32_t>& structure)
      : fronts_(fronts), given_(given), begin_(begin), structure_(structure) {}

  ProgramCost make(const ProgramOptions& options) {
    program_.first_inverse = options.first_inverse;
    program_.first_column = options.first_column;
    classify(options.largest_below);
    count_rows();
    list_children();
    find_small_jobs();
    count_signals();
    order_jobs(options.sharers);
    constexpr std::int64_t kAlignment = 32;
    std::int64_t updates = options.updates;
    if (options.solves) updates = std::max(updates, program_.rows * kSweepColumns);
    program_.bookkeeping = (updates + kAlignment - 1) / kAlignment * kAlignment;
    write(options.sharers);
    cost_.work = program_.bookkeeping +
                 (bookkeeping_bytes(program_) + options.element_bytes - 1) / options.element_bytes;
    return cost_;
  }

 private:
  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(fronts_.size()); }
  [[nodiscard]] static bool is_small(const FrontRecord& f) {
    return f.width + f.rows <= kSmallFront;
  }
  [[nodiscard]] static FrontTiles tiles(const FrontRecord& f) { return {f.width, f.rows}; }
  [[nodiscard]] static std::int32_t update_tiles(const FrontRecord& f) {
    const std::int32_t n = tiles(f).count() - tiles(f).across();
    return n * (n + 1) / 2;
  }
  [[nodiscard]] static bool has_panel(const FrontRecord& f) {
    return f.first_tile < tiles(f).across();
  }
  /// The place of what is appended next.
  [[nodiscard]] std::int32_t place() const {
    const std::int64_t here = std::ssize(structure_) - begin_;
    require(here <= std::numeric_limits<std::int32_t>::max(), ErrorKind::misuse, "factor",
            "a branch of {} supernodes is beyond what 32 bits count", count());
    return static_cast<std::int32_t>(here);
  }

  /// Which part of the list a front is for.
  enum class Part : std::uint8_t { tiny, small, tiles };
  void classify(const std::vector<std::int32_t>& largest_below) {
    part_.assign(fronts_.size(), Part::tiny);
    for (std::int32_t f = 0; f < count(); ++f) {
      const std::int32_t order = largest_below[at(f)];
      part_[at(f)] =
          order <= kTinyFront ? Part::tiny : (order <= kSmallFront ? Part::small : Part::tiles);
    }
  }

  void count_rows() {
    std::int32_t places = 0;
    for (const FrontRecord& front : fronts_) places = std::max(places, front.place);
    for (std::int32_t place = 0; place <= places; ++place) {
      for (FrontRecord& front : fronts_) {
        if (std::max(front.place, 0) != place) continue;
        front.rows_before = program_.rows;
        program_.rows += front.rows;
      }
    }
    for (const GivenChild& child : given_)
      if (child.record.gives_rows()) program_.rows += child.record.rows;
  }

  void list_children() {
    first_child_.assign(fronts_.size(), -1);
    std::vector<std::int32_t> next(fronts_.size(), -1);
    for (std::int32_t f = count(); f-- > 0;) {  // so that lists ascend
      const std::int32_t p = fronts_[at(f)].parent;
      if (p < 0) continue;
      next[at(f)] = first_child_[at(p)];
      first_child_[at(p)] = f;
    }
    std::size_t given = 0;
    for (std::int32_t f = 0; f < count(); ++f) {
      FrontRecord& front = fronts_[at(f)];
      std::vector<ChildRecord> children;
      const auto add = [&](ChildRecord child) {
        if (child.rows == 0) return;
        child.cuts = is_small(front) ? -1 : place();
        if (!is_small(front)) cut_places(child, tiles(front));
        children.push_back(child);
      };
      // Those from before the branch come first in postorder.
      for (; given < given_.size() && given_[given].front == f; ++given) add(given_[given].record);
      for (std::int32_t c = first_child_[at(f)]; c >= 0; c = next[at(c)]) {
        const FrontRecord& child = fronts_[at(c)];
        add({child.update, child.ld_update, 0, child.rows, child.places, -1, 0, child.rows, 0,
             child.rows_before});
      }
      if ((std::ssize(structure_) - begin_) % 2 != 0) structure_.push_back(0);
      front.children = place();
      front.child_count = static_cast<std::int32_t>(children.size());
      structure_.resize(structure_.size() + children.size() * at(kChildRecord));
      put(structure_.data() + begin_ + front.children, children);
    }
  }

  void cut_places(const ChildRecord& child, const FrontTiles& above) {
    std::int32_t k = 0;
    for (std::int32_t t = 0; t <= above.count(); ++t) {
      while (k < child.rows && structure_[at(begin_ + child.places + k)] < above.begin(t)) ++k;
      structure_.push_back(k);
    }
  }

  [[nodiscard]] static double small_time(const FrontRecord& f) {
    return kSmallFrontTime + kSmallColumnTime * f.width;
  }

  /// Whole subtrees of tiny fronts, with those beside them that have the same parent, up to a time;
  /// other small fronts by themselves.
  void find_small_jobs() {
    double all = 0;
    for (std::int32_t f = 0; f < count(); ++f)
      if (part_[at(f)] == Part::tiny) all += small_time(fronts_[at(f)]);
    const double most = std::clamp(all / kTinyWorkers / 6, 20e-6, 200e-6);
    std::vector<std::int32_t> begin(fronts_.size());  // of the subtree
    std::vector<double> time(fronts_.size());
    std::vector<char> whole(fronts_.size(), 1);
    for (std::int32_t f = 0; f < count(); ++f) {
      const FrontRecord& front = fronts_[at(f)];
      begin[at(f)] = first_child_[at(f)] < 0 ? f : begin[at(first_child_[at(f)])];
      time[at(f)] += small_time(front);
      const bool leaf = first_child_[at(f)] < 0;
      if (part_[at(f)] != Part::tiny || (time[at(f)] > most && !leaf)) whole[at(f)] = 0;
      if (front.parent < 0) continue;
      time[at(front.parent)] += time[at(f)];
      if (whole[at(f)] == 0) whole[at(front.parent)] = 0;
    }
    job_of_.assign(fronts_.size(), -1);
    double held = 0;
    for (std::int32_t f = 0; f < count(); ++f) {
      const FrontRecord& front = fronts_[at(f)];
      if (whole[at(f)] == 0) {
        if (!is_small(front)) continue;
        add_small(f, f);
        held = most;
        continue;
      }
      if (front.parent >= 0 && whole[at(front.parent)] != 0) continue;
      const bool joins = !small_.empty() && small_.back().j + 1 == begin[at(f)] &&
                         held + time[at(f)] <= most &&
                         fronts_[at(small_.back().j)].parent == front.parent;
      if (joins) {
        for (std::int32_t k = begin[at(f)]; k <= f; ++k)
          job_of_[at(k)] = static_cast<std::int32_t>(small_.size()) - 1;
        small_.back().j = f;
        held += time[at(f)];
        continue;
      }
      add_small(begin[at(f)], f);
      held = time[at(f)];
    }
  }
  void add_small(std::int32_t from, std::int32_t to) {
    for (std::int32_t k = from; k <= to; ++k)
      job_of_[at(k)] = static_cast<std::int32_t>(small_.size());
    small_.push_back({from, -1, to});
  }

  void count_signals() {
    for (FrontRecord& front : fronts_) {
      front.flag = program_.flags;
      front.inverses = program_.inverses;
      program_.flags += 1 + (is_small(front) ? 0 : tiles(front).count());
      program_.inverses += is_small(front) || !has_panel(front) ? 0 : tiles(front).across();
      front.expected = front.expected_rows = 0;
    }
    for (std::int32_t f = 0; f < count(); ++f) {
      const FrontRecord& front = fronts_[at(f)];
      if (front.parent < 0) continue;
      const bool same = is_small(front) && job_of_[at(f)] == job_of_[at(front.parent)];
      if (same) continue;
      FrontRecord& parent = fronts_[at(front.parent)];
      parent.expected += is_small(front) ? 1 : update_tiles(front);
      parent.expected_rows += is_small(front) ? 1 : tiles(front).count() - tiles(front).across();
    }
  }

  /// Something that is listed as a whole: a small front, a tile on the diagonal, the tiles below
  /// it, or all tiles of an update.
  struct Item {
    double key;  ///< when it can begin, or how long the way is from it to the end
    std::int32_t front;
    std::int32_t column;  ///< of tiles
    bool below;           ///< the tiles below the one on the diagonal, rather than that
  };
  struct Later {
    bool operator()(const Item& x, const Item& y) const {
      return x.key != y.key ? x.key > y.key : x.front > y.front;
    }
  };
  struct Shorter {
    bool operator()(const Item& x, const Item& y) const {
      return x.key != y.key ? x.key < y.key : x.front > y.front;
    }
  };

  [[nodiscard]] double way_of(std::int32_t f) const {
    const FrontRecord& front = fronts_[at(f)];
    if (is_small(front)) return small_time(front);
    return tiles(front).across() * (kDiagonalTime + kTileTime + kProductTime) +
           (front.rows > 0 ? kTileTime + kProductTime * tiles(front).across() : 0);
  }

  /// The first two parts: what the longest way waits for comes first, so children come before
  /// their parents.
  void list_small_jobs(const std::vector<double>& way, std::vector<std::int32_t>& missing) {
    for (const Part part : {Part::tiny, Part::small}) {
      const std::size_t first = jobs_.size();
      for (const FrontJob& job : small_) {
        if (part_[at(job.j)] != part) continue;
        jobs_.push_back(job);
        for (std::int32_t f = job.front; f <= job.j; ++f)
          if (fronts_[at(f)].parent > job.j) --missing[at(fronts_[at(f)].parent)];
      }
      std::sort(jobs_.begin() + static_cast<std::ptrdiff_t>(first), jobs_.end(),
                [&](const FrontJob& x, const FrontJob& y) {
                  return way[at(x.j)] != way[at(y.j)] ? way[at(x.j)] > way[at(y.j)] : x.j < y.j;
                });
      (part == Part::tiny ? program_.tiny_jobs : program_.small_jobs) =
          static_cast<std::int32_t>(jobs_.size() - first);
    }
  }

  /// A job of a sweep, and when it is worth to begin it.
  struct Timed {
    double begin;
    FrontJob job;
  };
  static void list_by_time(std::vector<Timed>& timed, std::vector<FrontJob>& to) {
    std::stable_sort(timed.begin(), timed.end(),
                     [](const Timed& x, const Timed& y) { return x.begin < y.begin; });
    for (const Timed& one : timed) to.push_back(one.job);
  }

  /// Lists the jobs of sweeps with fronts of the third part. Forward, rows of tiles below the
  /// columns need all columns: they begin when these are about done, so that what others wait for
  /// is not behind them. Backward, columns of tiles begin with the rows below, which are there.
  void list_sweeps() {
    std::vector<double> begin(fronts_.size());
    std::vector<double> end(fronts_.size());
    std::vector<Timed> timed;
    for (std::int32_t f = 0; f < count(); ++f) {
      const FrontRecord& front = fronts_[at(f)];
      end[at(f)] = begin[at(f)] + (part_[at(f)] == Part::tiles ? sweep_time(front) : 0);
      if (front.parent >= 0)
        begin[at(front.parent)] = std::max(begin[at(front.parent)], end[at(f)]);
      if (part_[at(f)] != Part::tiles) continue;
      if (is_small(front)) timed.push_back({begin[at(f)], {f, -1, f}});
      const std::int32_t across = tiles(front).across();
      for (std::int32_t i = 0; !is_small(front) && i < tiles(front).count(); ++i)
        timed.push_back({begin[at(f)] + kSweepStep * std::min(i, across), {f, i, 0}});
    }
    list_by_time(timed, forward_);
    timed.clear();
    for (std::int32_t f = count(); f-- > 0;) {
      const FrontRecord& front = fronts_[at(f)];
      if (part_[at(f)] != Part::tiles) continue;
      begin[at(f)] = front.parent < 0 ? 0 : end[at(front.parent)];
      end[at(f)] = begin[at(f)] + sweep_time(front);
      if (is_small(front)) timed.push_back({begin[at(f)], {f, -1, f}});
      const std::int32_t across = tiles(front).across();
      for (std::int32_t j = across; !is_small(front) && j-- > 0;)
        timed.push_back({begin[at(f)] + kSweepStep * (across - 1 - j), {f, 0, j}});
    }
    list_by_time(timed, backward_);
  }
  [[nodiscard]] static double sweep_time(const FrontRecord& front) {
    if (is_small(front)) return kSweepStep;
    return kSweepStep * (1 + tiles(front).across()) + kSweepTile * tiles(front).count();
  }

  /// The third part while it is listed.
  struct Listing {
    std::vector<double> way;            // from the beginning of each front to the end
    std::vector<std::int32_t> missing;  // signals of children
    std::vector<double> there;          // when the last child was done
    std::priority_queue<Item, std::vector<Item>, Later> pending;
    std::priority_queue<Item, std::vector<Item>, Shorter> ready;
    double now = 0;   // when the next job is begun
    double end = 0;   // of all that were
    double busy = 0;  // of all workers
    double products = 0;
    double workers = kWorkers;

    void begin(double work) {
      now += work / workers;
      busy += work;
    }
    void begin_tiles(double tiles, double products_each) {
      begin(tiles * (kTileTime + kProductTime * products_each));
      products += tiles * products_each;
    }
  };

  void order_jobs(int sharers) {
    Listing list;
    list.workers *= sharers;
    list.way.resize(fronts_.size());
    list.missing.resize(fronts_.size());
    list.there.resize(fronts_.size());
    for (std::int32_t f = count(); f-- > 0;) {
      const std::int32_t p = fronts_[at(f)].parent;
      list.way[at(f)] = way_of(f) + (p < 0 ? 0 : list.way[at(p)]);
    }
    for (std::int32_t f = 0; f < count(); ++f) list.missing[at(f)] = fronts_[at(f)].expected;
    list_small_jobs(list.way, list.missing);
    list_sweeps();
    for (std::int32_t f = 0; f < count(); ++f)
      if (part_[at(f)] == Part::tiles && list.missing[at(f)] == 0)
        list.ready.push({list.way[at(f)], f,
                         has_panel(fronts_[at(f)]) ? 0 : tiles(fronts_[at(f)]).across(), false});
    while (!list.ready.empty() || !list.pending.empty()) {
      if (list.ready.empty()) list.now = std::max(list.now, list.pending.top().key);
      while (!list.pending.empty() && list.pending.top().key <= list.now) {
        Item item = list.pending.top();
        list.pending.pop();
        const FrontTiles t = tiles(fronts_[at(item.front)]);
        item.key =
            list.way[at(item.front)] -
            (is_small(fronts_[at(item.front)])
                 ? 0
                 : std::min(item.column, t.across()) * (kDiagonalTime + kTileTime + kProductTime));
        list.ready.push(item);
      }
      const Item item = list.ready.top();
      list.ready.pop();
      begin_jobs(item, list);
    }
    const double end = std::max(list.now, list.end);
    const double products = list.products * kProductsTime / sharers;
    double columns = 0;
    for (const FrontRecord& front : fronts_) columns += front.width;
    cost_.seconds =
        kLaunchTime + kSumTime * columns + small_seconds() + std::max(kTilesTime * end, products);
    cost_.share = products / cost_.seconds;
    cost_.workers = end > 0 ? kWorkersEach * list.busy / end : 0;
  }

  void front_done(std::int32_t f, double when, std::int32_t signals, Listing& list) const {
    list.end = std::max(list.end, when);
    const std::int32_t p = fronts_[at(f)].parent;
    if (p < 0) return;
    list.there[at(p)] = std::max(list.there[at(p)], when);
    list.missing[at(p)] -= signals;
    if (list.missing[at(p)] == 0) list.pending.push({list.there[at(p)], p, 0, false});
  }

  void begin_jobs(const Item& item, Listing& list) {
    const FrontRecord& front = fronts_[at(item.front)];
    if (is_small(front)) {
      jobs_.push_back({item.front, -1, item.front});
      front_done(item.front, list.now + small_time(front), 1, list);
      list.begin(small_time(front));
      return;
    }
    const FrontTiles t = tiles(front);
    const double products = std::min(item.column, t.across());
    if (item.column < t.across() && !item.below) {
      jobs_.push_back({item.front, item.column, item.column});
      list.begin_tiles(1, products);
      list.end = std::max(list.end, list.now + kDiagonalTime);
      if (item.column + 1 < t.count())
        list.pending.push({list.now + kDiagonalTime, item.front, item.column, true});
      return;
    }
    if (item.column < t.across()) {
      for (std::int32_t i = item.column + 1; i < t.count(); ++i)
        jobs_.push_back({item.front, i, item.column});
      list.begin_tiles(t.count() - item.column - 1, products);
      list.end = std::max(list.end, list.now + kTileTime);
      list.pending.push({list.now + kTileTime, item.front, item.column + 1, false});
      return;
    }
    const std::int32_t first = std::max(t.across(), front.first_tile);
    for (std::int32_t j = first; j < front.last_tile; ++j)
      for (std::int32_t i = j; i < t.count(); ++i) jobs_.push_back({item.front, i, j});
    list.begin_tiles(t.before(front.last_tile) - t.before(first), products);
    front_done(item.front, list.now + kTileTime + kProductTime * products, update_tiles(front),
               list);
  }

  /// Seconds of the first two parts: the longest way of jobs, and what all fronts take beside it.
  [[nodiscard]] double small_seconds() const {
    double seconds = 0;
    for (const Part part : {Part::tiny, Part::small}) {
      const SmallTimes& times = part == Part::tiny ? kTinyTimes : kSmallTimes;
      double all = 0;
      double longest = 0;
      std::vector<double> begin(fronts_.size(), 0);  // of a front's job, as its children allow
      for (const FrontJob& job : small_) {
        if (part_[at(job.j)] != part) continue;
        double end = 0;
        for (std::int32_t f = job.front; f <= job.j; ++f) end = std::max(end, begin[at(f)]);
        for (std::int32_t f = job.front; f <= job.j; ++f) {
          const FrontRecord& front = fronts_[at(f)];
          all += times.each_column * front.width + times.each_entry * front.entry_count;
          end += times.front + times.row * (front.width + front.rows) + times.column * front.width;
        }
        longest = std::max(longest, end);
        for (std::int32_t f = job.front; f <= job.j; ++f)
          if (const std::int32_t p = fronts_[at(f)].parent; p > job.j)
            begin[at(p)] = std::max(begin[at(p)], end);
      }
      if (longest > 0) seconds += times.launch + longest + all;
    }
    return seconds;
  }

  /// Device by device; of each as they were. Returns how many those before each have, and all.
  std::vector<std::int32_t> deal_jobs(std::int32_t sharers) {
    require(sharers == 1 || (count() == 1 && !is_small(fronts_.front())), ErrorKind::misuse,
            "factor", "{} devices share {} fronts", sharers, count());
    std::stable_sort(jobs_.begin(), jobs_.end(), [&](const FrontJob& x, const FrontJob& y) {
      return owner_of(x.j, sharers) < owner_of(y.j, sharers);
    });
    std::vector<std::int32_t> before(at(sharers) + 1, 0);
    for (const FrontJob& job : jobs_) ++before[at(owner_of(job.j, sharers)) + 1];
    for (std::size_t k = 1; k < before.size(); ++k) before[k] += before[k - 1];
    return before;
  }

  void write(std::int32_t sharers) {
    std::vector<std::int32_t> shares;
    if (sharers > 1) shares = deal_jobs(sharers);
    BranchProgram& program = program_;
    program.fronts = count();
    program.columns = fronts_.back().column + fronts_.back().width;
    if (!has_panel(fronts_.back())) program.columns = 0;
    program.job_count = static_cast<std::int32_t>(jobs_.size());
    if ((std::ssize(structure_) - begin_) % 2 != 0) structure_.push_back(0);
    const std::int32_t head = place();
    constexpr std::int32_t kProgram = sizeof(BranchProgram) / sizeof(std::int32_t);
    const std::int64_t all = head + kProgram + std::int64_t{count()} * kFrontRecord +
                             std::ssize(jobs_) * kFrontJob + std::ssize(forward_) * kFrontJob +
                             std::ssize(backward_) * kFrontJob + std::ssize(shares);
    require(all <= std::numeric_limits<std::int32_t>::max(), ErrorKind::misuse, "factor",
            "a program of {} jobs is beyond what 32 bits count", jobs_.size());
    program.records = head + kProgram;
    program.jobs = program.records + count() * kFrontRecord;
    program.forward_jobs = program.jobs + program.job_count * kFrontJob;
    program.forward_count = static_cast<std::int32_t>(forward_.size());
    program.backward_jobs = program.forward_jobs + program.forward_count * kFrontJob;
    program.backward_count = static_cast<std::int32_t>(backward_.size());
    if (sharers > 1) program.shares = program.backward_jobs + program.backward_count * kFrontJob;
    structure_.resize(at(begin_ + all));
    std::int32_t* base = structure_.data() + begin_;
    std::memcpy(base + head, &program, sizeof program);
    put(base + program.records, fronts_);
    put(base + program.jobs, jobs_);
    put(base + program.forward_jobs, forward_);
    put(base + program.backward_jobs, backward_);
    if (sharers > 1) put(base + program.shares, shares);
    base[offsetof(BranchHeader, program) / sizeof(std::int32_t)] = head;
  }

  template <class T>
  static void put(std::int32_t* to, const std::vector<T>& list) {
    if (!list.empty()) std::memcpy(to, list.data(), list.size() * sizeof(T));
  }

  std::vector<FrontRecord>& fronts_;
  std::span<const GivenChild> given_;
  std::int64_t begin_;
  std::vector<std::int32_t>& structure_;
  std::vector<FrontJob> small_;
  std::vector<std::int32_t> job_of_;  // of small fronts
  std::vector<FrontJob> jobs_, forward_, backward_;
  std::vector<Part> part_;
  std::vector<std::int32_t> first_child_;
  BranchProgram program_{};
  ProgramCost cost_{};
};

}  // namespace

ProgramCost append_program(std::vector<FrontRecord> fronts, std::span<const GivenChild> given,
                           const ProgramOptions& options, std::int64_t begin,
                           std::vector<std::int32_t>& structure) {
  return ProgramMaker(fronts, given, begin, structure).make(options);
}

BranchProgram program_of(const FrontLayout& layout, const FrontUnit& unit) {
  const std::int32_t* structure =
      layout.structure.data() + layout.blocks.extent({fronts::kStructure, unit.structure, 0}).row;
  BranchHeader head;
  std::memcpy(&head, structure, sizeof head);
  BranchProgram program;
  std::memcpy(&program, structure + head.program, sizeof program);
  return program;
}

}  // namespace strata
