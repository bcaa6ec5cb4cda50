// The tasks of a script.
//
// Method: V is a block for each slab, so a step is one task a device. Before a product each slab
// packs what others need of the vector; what arrives is put into the halo of who needs it. With
// ghost zones it is a column of the ghost rows, which are multiplied beside the slab: its halo then
// is copied from them, and theirs from its border, without anything from elsewhere. Parts of
// sums, a p × q matrix for each chunk of rows, go to the first device, are added there and then are
// read by whoever needs the sum, the host among them.

#include "krylov/basis_script.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.hpp"
#include "kernels/dense/laset.hpp"
#include "kernels/krylov/panel.hpp"

namespace strata {

void BasisScript::multiply(std::int64_t from, std::int64_t to, std::int64_t before, double alpha,
                           double beta, double gamma, bool wide) {
  actions.push_back(
      {.kind = Kind::multiply, .first = from, .second = to, .third = before, .wide = wide});
  coefficients.push_back({to, alpha, beta, gamma, wide});
}

void BasisScript::powers(std::int64_t first, std::int64_t before, const std::vector<Step>& steps) {
  actions.push_back({.kind = Kind::powers,
                     .first = first,
                     .second = std::ssize(steps),
                     .third = before,
                     .factor = static_cast<int>(ranges.size())});
  ranges.push_back({first, std::ssize(steps)});
  for (const Step& s : steps) coefficients.push_back({++first, s.alpha, s.beta, s.gamma, false});
}

int BasisScript::inner(std::int64_t first, std::int64_t rows, std::int64_t second,
                       std::int64_t cols, Element element, bool wide) {
  const int number = static_cast<int>(sums.size());
  sums.push_back({rows, cols, element});
  actions.push_back(
      {.kind = Kind::inner, .first = first, .second = second, .sum = number, .wide = wide});
  return number;
}

void BasisScript::update(std::int64_t first, std::int64_t second, int sum, std::int64_t without) {
  actions.push_back(
      {.kind = Kind::update, .first = first, .second = second, .third = without, .sum = sum});
}

void BasisScript::update_by(std::int64_t first, std::int64_t second, PanelFactor factor) {
  actions.push_back({.kind = Kind::update,
                     .first = first,
                     .second = second,
                     .factor = static_cast<int>(factors.size())});
  factors.push_back(std::move(factor));
}

void BasisScript::normalize(std::int64_t column, int sum) {
  actions.push_back({.kind = Kind::normalize, .second = column, .sum = sum});
}

void BasisScript::solve(std::int64_t first, PanelFactor factor) {
  actions.push_back(
      {.kind = Kind::solve, .first = first, .factor = static_cast<int>(factors.size())});
  factors.push_back(std::move(factor));
}

void BasisScript::rotate(PanelFactor factor) {
  actions.push_back({.kind = Kind::rotate, .factor = static_cast<int>(factors.size())});
  factors.push_back(std::move(factor));
}

void BasisScript::put(std::int64_t column, std::vector<double> values, bool wide) {
  actions.push_back(
      {.kind = Kind::put, .first = column, .factor = static_cast<int>(given.size()), .wide = wide});
  given.push_back({std::move(values), wide});
}

void BasisScript::clear() { actions.push_back({.kind = Kind::clear}); }

void BasisScript::correct(std::int64_t first, std::int64_t to, PanelFactor factor) {
  actions.push_back({.kind = Kind::correct,
                     .first = first,
                     .second = to,
                     .factor = static_cast<int>(factors.size()),
                     .wide = true});
  factors.push_back(std::move(factor));
}

void BasisScript::narrow(std::int64_t from, std::int64_t to, int sum) {
  actions.push_back({.kind = Kind::narrow, .first = from, .second = to, .sum = sum, .wide = true});
}

namespace {

/// A script that is cut: numbers of the whole become numbers of the part.
class Cutter {
 public:
  explicit Cutter(const BasisScript& whole) : whole_(whole) { begin(); }

  std::vector<BasisScript> parts() {
    for (const BasisScript::Action& action : whole_.actions) {
      if (action.kind == BasisScript::Kind::powers) {
        add_products(action);
        continue;
      }
      if (action.kind == BasisScript::Kind::multiply) begin();
      add(action);
    }
    return std::move(parts_);
  }

 private:
  void begin() {
    first_sum_ += parts_.empty() ? 0 : static_cast<int>(parts_.back().sums.size());
    parts_.emplace_back().coefficients = whole_.coefficients;
  }

  void add_products(const BasisScript::Action& powers) {
    for (std::int64_t i = 0; i < powers.second; ++i) {
      const std::int64_t from = powers.first + i;
      begin();
      add({.first = from, .second = from + 1, .third = i > 0 ? from - 1 : powers.third});
    }
  }

  void add(BasisScript::Action action) {
    BasisScript& part = parts_.back();
    if (action.sum >= 0) {
      require(action.sum >= first_sum_, ErrorKind::misuse, "krylov",
              "sum {} is read behind the product that follows it", action.sum);
      if (action.kind == BasisScript::Kind::inner)
        part.sums.push_back(whole_.sums[static_cast<std::size_t>(action.sum)]);
      action.sum -= first_sum_;
    }
    if (action.kind == BasisScript::Kind::put) {
      part.given.push_back(whole_.given[static_cast<std::size_t>(action.factor)]);
      action.factor = static_cast<int>(part.given.size()) - 1;
    } else if (action.factor >= 0) {
      part.factors.push_back(whole_.factors[static_cast<std::size_t>(action.factor)]);
      action.factor = static_cast<int>(part.factors.size()) - 1;
    }
    part.actions.push_back(action);
  }

  const BasisScript& whole_;
  std::vector<BasisScript> parts_;
  int first_sum_ = 0;
};

}  // namespace

std::vector<BasisScript> cut_before_products(const BasisScript& script) {
  return Cutter(script).parts();
}

namespace {

BlockId block(int family, std::int64_t number) { return {family, number, 0}; }

/// Where a matrix and what is exchanged for products with it lie.
struct MatrixFamilies {
  int starts, columns, values, halo, index, packed, vectors, three;
};
constexpr MatrixFamilies kOfMatrix{basis::kStarts, basis::kColumns, basis::kValues,  basis::kHalo,
                                   basis::kIndex,  basis::kPacked,  basis::kVectors, basis::kThree};
constexpr MatrixFamilies kOfInverse{
    basis::kInverseStarts, basis::kInverseColumns, basis::kInverseValues, basis::kInverseHalo,
    basis::kInverseIndex,  basis::kInversePacked,  basis::kVectors,       basis::kThree};
/// Families for W: the places of the entries are those of the families above.
constexpr MatrixFamilies kOfWide{basis::kStarts,   basis::kColumns,  basis::kWideValues,
                                 basis::kWideHalo, basis::kIndex,    basis::kWidePacked,
                                 basis::kWide,     basis::kWideThree};
constexpr MatrixFamilies kOfWideInverse{basis::kInverseStarts,
                                        basis::kInverseColumns,
                                        basis::kWideInverseValues,
                                        basis::kWideInverseHalo,
                                        basis::kInverseIndex,
                                        basis::kWideInversePacked,
                                        basis::kWide,
                                        basis::kWideThree};
/// Whether these products are done with ghost rows.
bool with_ghosts(const BasisProblem& problem, const BasisScript::Action& powers) {
  return problem.ghosts != nullptr && !problem.ghosts->links.empty() && powers.second > 1 &&
         powers.second <= problem.ghosts->depth;
}

/// Whether the first product reads the column before.
bool reads_before(const BasisScript& script, const BasisScript::Action& powers) {
  const auto found = std::find_if(
      script.coefficients.begin(), script.coefficients.end(),
      [&](const BasisScript::Coefficients& c) { return !c.wide && c.to == powers.first + 1; });
  return found != script.coefficients.end() && found->beta != 0;
}

class Emitter {
 public:
  Emitter(const BasisProblem& problem, const BasisScript& script, TaskList& tasks)
      : problem_(problem), script_(script), slabs_(*problem.slabs), tasks_(tasks) {}

  void emit(std::int64_t step) {
    if (step >= std::ssize(script_.actions)) return take(step - std::ssize(script_.actions));
    const BasisScript::Action& action = script_.actions[static_cast<std::size_t>(step)];
    switch (action.kind) {
      case BasisScript::Kind::multiply: multiply(action); break;
      case BasisScript::Kind::powers: powers(action); break;
      case BasisScript::Kind::inner: inner(action); break;
      case BasisScript::Kind::update: update(action, 0); break;
      case BasisScript::Kind::normalize: update(action, kPanelNormalize); break;
      case BasisScript::Kind::solve: solve(action); break;
      case BasisScript::Kind::rotate: rotate(action); break;
      case BasisScript::Kind::put: put(action); break;
      case BasisScript::Kind::clear: clear(); break;
      case BasisScript::Kind::correct: correct(action); break;
      case BasisScript::Kind::narrow: narrow(action); break;
    }
  }

 private:
  [[nodiscard]] int device(std::int64_t slab) const {
    return slabs_.slabs[static_cast<std::size_t>(slab)].device;
  }
  [[nodiscard]] std::int64_t count() const { return std::ssize(slabs_.slabs); }
  [[nodiscard]] static int vectors_of(bool wide) { return wide ? basis::kWide : basis::kVectors; }

  void multiply(const BasisScript::Action& action) {
    const PanelColumns columns{action.first, action.second, action.third};
    const MatrixFamilies& matrix = action.wide ? kOfWide : kOfMatrix;
    if (problem_.preconditioned == Preconditioned::not_at_all)
      return product(slabs_, matrix, action.first, columns, 0);
    const std::int64_t last = (action.wide ? problem_.wide_columns : problem_.columns) - 1;
    if (problem_.preconditioned == Preconditioned::by_matrix)
      product(*problem_.inverse, action.wide ? kOfWideInverse : kOfInverse, action.first,
              {.first = action.first, .second = last, .third = action.first}, 0);
    product(slabs_, matrix, last, columns, kSpmvOfLast);
  }

  /// Emits the product of one of the two matrices with column `of`.
  void product(const RowSlabs& slabs, const MatrixFamilies& matrix, std::int64_t of,
               const PanelColumns& columns, std::uint32_t flags) {
    for (std::int64_t l = 0; l < std::ssize(slabs.links); ++l) {
      const int from = slabs.links[static_cast<std::size_t>(l)].from;
      tasks_.add(halo_pack, device(from),
                 {block(matrix.packed, l), block(matrix.vectors, from), block(matrix.index, l)},
                 panel_variant({.first = of}));
    }
    std::size_t l = 0;
    for (std::int64_t s = 0; s < count(); ++s) {
      const std::size_t first = l;
      for (; l < slabs.links.size() && slabs.links[l].to == s; ++l)
        tasks_.add(l == first ? halo_start : halo_put, device(s),
                   {block(matrix.halo, s),
                    {block(matrix.packed, static_cast<std::int64_t>(l)), Hint::last_use}});
      own_rows(s, matrix, l > first, columns, flags);
    }
  }

  void own_rows(std::int64_t s, const MatrixFamilies& matrix, bool halo,
                const PanelColumns& columns, std::uint32_t flags) {
    // A slab without neighbours reads no halo: any numbers are one.
    tasks_.add(spmv, device(s),
               {block(matrix.vectors, s), block(matrix.starts, s), block(matrix.columns, s),
                block(matrix.values, s),
                halo ? TaskOperand(block(matrix.halo, s), Hint::last_use)
                     : TaskOperand(block(matrix.values, s)),
                block(matrix.three, 0)},
               panel_variant(columns) | flags);
  }

  void powers(const BasisScript::Action& action) {
    const bool ghosts = with_ghosts(problem_, action);
    for (std::int64_t s = 0; ghosts && s < count(); ++s) {
      if (zone(s).rows > 0) tasks_.add(laset, device(s), {block(basis::kGhosts, s)});
    }
    if (ghosts) exchange(action.first, 1);
    if (ghosts && reads_before(script_, action)) exchange(action.third, 0);
    for (std::int64_t i = 0; i < action.second; ++i) {
      const std::int64_t from = action.first + i;
      const PanelColumns columns{from, from + 1, i > 0 ? from - 1 : action.third};
      if (!ghosts) {
        multiply({.first = columns.first, .second = columns.second, .third = columns.third});
        continue;
      }
      for (std::int64_t s = 0; s < count(); ++s)
        product_with_ghosts(s, columns, i, i + 1 == action.second, action.factor);
    }
  }

  [[nodiscard]] const GhostZone& zone(std::int64_t s) const {
    return problem_.ghosts->zones[static_cast<std::size_t>(s)];
  }

  /// A column of V in all ghost rows becomes their column `to`.
  void exchange(std::int64_t column, std::int64_t to) {
    const std::vector<HaloLink>& links = problem_.ghosts->links;
    for (std::int64_t l = 0; l < std::ssize(links); ++l) {
      const int from = links[static_cast<std::size_t>(l)].from;
      tasks_.add(halo_pack, device(from),
                 {block(basis::kGhostPacked, l), block(basis::kVectors, from),
                  block(basis::kGhostIndex, l)},
                 panel_variant({.first = column}));
    }
    for (std::int64_t l = 0; l < std::ssize(links); ++l) {
      const int s = links[static_cast<std::size_t>(l)].to;
      const bool starts = l == 0 || links[static_cast<std::size_t>(l - 1)].to != s;
      const bool ends =
          l + 1 == std::ssize(links) || links[static_cast<std::size_t>(l + 1)].to != s;
      tasks_.add(starts ? halo_start : halo_put, device(s),
                 {block(basis::kGhostColumn, s), {block(basis::kGhostPacked, l), Hint::last_use}});
      if (ends)
        tasks_.add(panel_put, device(s),
                   {block(basis::kGhosts, s), {block(basis::kGhostColumn, s), Hint::last_use}},
                   panel_variant({.first = to}));
    }
  }

  /// Product i of a slab, and of its ghost rows unless it is the last.
  void product_with_ghosts(std::int64_t s, const PanelColumns& columns, std::int64_t i, bool last,
                           int number) {
    const auto links = std::ssize(problem_.ghosts->links);
    const BlockId ghosts = block(basis::kGhosts, s);
    const bool halo = zone(s).rows > 0;
    if (halo)
      tasks_.add(halo_pack, device(s),
                 {block(basis::kHalo, s),
                  {ghosts, last ? Hint::last_use : Hint::none},
                  block(basis::kGhostIndex, links + s)},
                 panel_variant({.first = 1 + i}));
    own_rows(s, kOfMatrix, halo, columns, 0);
    if (!halo || last) return;
    tasks_.add(halo_pack, device(s),
               {block(basis::kBorder, s), block(basis::kVectors, s),
                block(basis::kGhostIndex, links + count() + s)},
               panel_variant({.first = columns.first}));
    tasks_.add(spmv, device(s),
               {ghosts,
                block(basis::kGhostStarts, s),
                block(basis::kGhostColumns, s),
                block(basis::kGhostValues, s),
                {block(basis::kBorder, s), Hint::last_use},
                block(basis::kThree, 1 + number)},
               panel_variant({.first = 1 + i, .second = 2 + i, .third = i}));
  }

  void inner(const BasisScript::Action& action) {
    const BlockId sum = block(basis::kSums, action.sum);
    const auto part = [&](std::int64_t s) {
      return block(basis::kParts, action.sum * count() + s);
    };
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(panel_inner, device(s), {part(s), block(vectors_of(action.wide), s)},
                 panel_variant(
                     {.first = action.first, .second = action.second, .third = slabs_.chunk_log2}));
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(
          s == 0 ? panel_start : panel_add, device(0),
          {{sum, s + 1 == count() ? Hint::last_write : Hint::none}, {part(s), Hint::last_use}});
  }

  void update(const BasisScript::Action& action, std::uint32_t flags) {
    const BlockId by = action.factor >= 0 ? block(basis::kFactors, action.factor)
                                          : block(basis::kSums, action.sum);
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(
          panel_update, device(s), {block(basis::kVectors, s), by},
          panel_variant({.first = action.first, .second = action.second, .third = action.third}) |
              flags);
  }

  void solve(const BasisScript::Action& action) {
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(panel_solve, device(s),
                 {block(basis::kVectors, s), block(basis::kFactors, action.factor),
                  block(basis::kScales, action.factor)},
                 panel_variant({.first = action.first}));
  }

  void rotate(const BasisScript::Action& action) {
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(panel_rotate, device(s),
                 {block(basis::kVectors, s), block(basis::kFactors, action.factor)});
  }

  void put(const BasisScript::Action& action) {
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(
          panel_put, device(s),
          {block(vectors_of(action.wide), s), block(basis::kGiven, action.factor * count() + s)},
          panel_variant({.first = action.first}));
  }

  void clear() {
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(laset, device(s), {block(basis::kVectors, s)});
  }

  void correct(const BasisScript::Action& action) {
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(panel_correct, device(s),
                 {block(basis::kWide, s), block(basis::kVectors, s),
                  block(basis::kFactors, action.factor)},
                 panel_variant({.first = action.first, .second = action.second}));
  }

  void narrow(const BasisScript::Action& action) {
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(
          panel_narrow, device(s),
          {block(basis::kVectors, s), block(basis::kWide, s), block(basis::kSums, action.sum)},
          panel_variant({.first = action.first, .second = action.second}));
  }

  /// The j-th of the columns that go home.
  void take(std::int64_t j) {
    for (std::int64_t s = 0; s < count(); ++s)
      tasks_.add(panel_take, device(s),
                 {{block(basis::kTaken, j * count() + s), Hint::last_write},
                  block(vectors_of(problem_.taken_wide), s)},
                 panel_variant({.first = problem_.taken + j}));
  }

  const BasisProblem& problem_;
  const BasisScript& script_;
  const RowSlabs& slabs_;
  TaskList& tasks_;
};

std::int64_t elements_of(const std::vector<HaloLink>& links) {
  std::int64_t elements = 0;
  for (const HaloLink& link : links) elements += std::ssize(link.index);
  return elements;
}

}  // namespace

HaloTraffic halo_traffic(const BasisProblem& problem, const BasisScript& script) {
  HaloTraffic traffic;
  Element element = problem.element;
  const auto add = [&](std::int64_t times, std::int64_t columns, const std::vector<HaloLink>& by) {
    if (by.empty()) return;
    traffic.exchanges += times;
    traffic.bytes += times * columns * elements_of(by) * bytes_of(element);
  };
  for (const BasisScript::Action& action : script.actions) {
    element = action.wide ? Element::fp64 : problem.element;
    const bool powers = action.kind == BasisScript::Kind::powers;
    if (powers && with_ghosts(problem, action)) {
      add(1, reads_before(script, action) ? 2 : 1, problem.ghosts->links);
    } else if (powers || action.kind == BasisScript::Kind::multiply) {
      add(powers ? action.second : 1, 1, problem.slabs->links);
      if (problem.inverse != nullptr) add(powers ? action.second : 1, 1, problem.inverse->links);
    }
  }
  return traffic;
}

Schedule basis_schedule(const BasisProblem& problem, const BasisScript& script) {
  auto outline = std::make_shared<BasisScript>();
  outline->actions = script.actions;
  outline->coefficients = script.coefficients;
  Schedule schedule;
  schedule.devices = problem.devices;
  schedule.blocks = basis_blocks(problem, script);
  for (int f = 0; f < basis::kFamilies; ++f)
    schedule.operands.push_back(schedule.blocks.count(f) > 0 ? 1 : 0);
  schedule.steps = std::ssize(script.actions) + (problem.taken >= 0 ? problem.taken_count : 0);
  schedule.emit = [problem, outline = std::move(outline)](std::int64_t step, TaskList& tasks) {
    Emitter(problem, *outline, tasks).emit(step);
  };
  return schedule;
}

}  // namespace strata
