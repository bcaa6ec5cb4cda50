// Blocks of s vectors made orthonormal, and the decisions about them.
//
// Method: W is projected against Q, and made orthonormal by its Gram matrix, one or two times; the
// solve with R waits for the next script. `automatic` looks at each Gram matrix. With W's columns
// as long as they were before the projection, rounding there and in the solve is amplified by μ =
// κ(R)·max |w| before / |w| after, so orthogonality is lost like ε·μ, and the columns of H are in
// error like that too:
//
// * Columns are kept as far as μ is below a limit; the next block asks for no more, and
//   grows again while μ is small.
// * Beyond another limit, or once a loss beyond loss_max was measured, there is a second pass.
// * With a symmetric A columns are kept only as far as A·Q = Q·H holds as closely as is asked for
//   (arnoldi_symmetric.cpp).
// * The first Gram matrix is in double-double, unless the last one had a condition with which
//   doubles do (κ²·ε); where that turns out wrong it is formed again.
//
// Pythagoras' pass has the Gram matrix as WᵀW − PᵀP from one sum. What the vectors before, or the
// sum, are in error by is then amplified by μ², so where (loss + ε)·μ² is not small the block is
// projected, and its own Gram matrix formed, after all. Two stages: the blocks of a panel as that,
// then the panel as one block; coordinates of a block's vectors in the basis of the first stage
// become those in Q by the projection and the factor of the second.
//
// The loss of the last vector is measured by one more column of the first sum, at no cost. The
// fixed methods take what comes, with the rule of Yamazaki, Tomov and Dongarra (2015) for a pivot
// that is not positive: what is done stays, the rest of R is the identity. In svqr no pivot fails:
// the triangle is that of the Gram matrix's eigenvalues and -vectors (Stathopoulos, Wu 2002), those
// that are rounding raised, so that H follows from it as from any other R.

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/constants.hpp"
#include "krylov/arnoldi.hpp"
#include "krylov/orthogonalization.hpp"

namespace strata {
namespace {

SquareMatrix<DoubleDouble> square_of(const PanelSum& sum) {
  SquareMatrix<DoubleDouble> gram(sum.rows);
  gram.values.assign(sum.values.begin(), sum.values.end());
  return gram;
}

SquareMatrix<DoubleDouble> leading(const SquareMatrix<DoubleDouble>& r, std::int64_t n) {
  SquareMatrix<DoubleDouble> part(n);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i <= j; ++i) part(i, j) = r(i, j);
  return part;
}

struct Factor {
  SquareMatrix<DoubleDouble> r;
  std::int64_t done = 0;  ///< columns before the first pivot that is not positive
};

/// Eigenvalues below this, of the largest, are rounding of sums in W: raised to it, they leave a
/// triangle that is not singular.
template <class W>
constexpr double kEigenvalueFloor = 0x1p-104;
template <>
constexpr double kEigenvalueFloor<double> = 0x1p-52;
template <>
constexpr double kEigenvalueFloor<float> = 0x1p-23;

template <class W>
Factor factor_in(const SquareMatrix<DoubleDouble>& gram, bool by_eigenvalues) {
  SquareMatrix<W> narrow(gram.n);
  std::transform(gram.values.begin(), gram.values.end(), narrow.values.begin(),
                 [](const DoubleDouble& x) { return narrowed<W>(x); });
  SmallCholesky<W> small;
  if (by_eigenvalues)
    small.r = factor_by_eigenvalues(narrow, kEigenvalueFloor<W>);
  else
    small = small_cholesky(std::move(narrow), BadPivot::stop);
  Factor factor;
  factor.done = small.failed_column < 0 ? gram.n : small.failed_column;
  factor.r = SquareMatrix<DoubleDouble>(gram.n);
  std::transform(small.r.values.begin(), small.r.values.end(), factor.r.values.begin(),
                 [](const W& x) { return widened(x); });
  return factor;
}

/// In the precision of the sums.
Factor factor_of(const SquareMatrix<DoubleDouble>& gram, Element element,
                 bool by_eigenvalues = false) {
  if (element == Element::fp32) return factor_in<float>(gram, by_eigenvalues);
  if (element == Element::fp64) return factor_in<double>(gram, by_eigenvalues);
  return factor_in<DoubleDouble>(gram, by_eigenvalues);
}

double power_near_inverse_root(double square) {
  if (!(square > 0) || !std::isfinite(square)) return 1;
  return std::ldexp(1.0, -static_cast<int>(std::lround(std::log2(square) / 2)));
}

/// R·diag(scale)⁻¹, and nothing below the diagonal.
SquareMatrix<DoubleDouble> unscaled(SquareMatrix<DoubleDouble> r,
                                    const std::vector<double>& scale) {
  for (std::int64_t j = 0; j < r.n; ++j) {
    for (std::int64_t i = 0; i <= j && !scale.empty(); ++i)
      r(i, j) = scaled(r(i, j), 1 / scale[static_cast<std::size_t>(j)]);
    for (std::int64_t i = j + 1; i < r.n; ++i) r(i, j) = DoubleDouble();
  }
  return r;
}

PanelFactor panel_factor(const SquareMatrix<DoubleDouble>& r, const std::vector<double>& scale) {
  return {r.n, r.n, Element::fp64, {r.values.begin(), r.values.end()}, scale};
}

}  // namespace

/// Sums in the element of the vectors, or in twice its bits.
Element Arnoldi::sums_in(bool wide) const noexcept {
  if (options_.element == Element::fp32) return wide ? Element::fp64 : Element::fp32;
  return wide ? Element::dd : Element::fp64;
}

void Arnoldi::add_block(std::int64_t count) {
  if (!krylov_method(options_.method)->by_gram) return by_columns(std::min(count, options_.s));
  if (options_.block == BlockOrthogonalization::two_stage) return by_panel(count);
  finish_block(options_.method == QrMethod::automatic
                   ? by_decision(size(), count)
                   : by_fixed_passes(size(), std::min(count, options_.s)));
}

/// The products of a block. With a symmetric A the known components of the first one are subtracted
/// at once.
void Arnoldi::generate(Block& block) {
  const std::int64_t c = block.column;
  if (options_.symmetric) block.known = known_products();
  const std::int64_t known = std::ssize(block.known);
  // A vector that continues a recurrence has one known product that is not 0, the last.
  const auto first =
      std::find_if(block.known.begin(), block.known.end(), [](double x) { return x != 0; }) -
      block.known.begin();
  const bool one = first + 1 == known;
  std::vector<BasisScript::Step> steps;
  for (std::int64_t i = 0; i < block.count; ++i) {
    const RecurrenceStep s = step(i);
    steps.push_back({s.alpha, i > 0 ? s.beta : one ? block.known.back() : 0.0, s.gamma});
  }
  if (one || first == known) return pending_.powers(c, one ? c - 1 : c, steps);
  // Behind a restart all that were kept are taken off before the recurrence goes on.
  const BasisScript::Step start = steps[0];
  pending_.multiply(c, c + 1, c, start.alpha, 0, start.gamma);
  PanelFactor part{known - first, 1, Element::fp64, {}, {}};
  for (std::int64_t l = first; l < known; ++l)
    part.values.emplace_back(start.gamma * block.known[static_cast<std::size_t>(l)]);
  pending_.update_by(first, c + 1, std::move(part));
  steps.erase(steps.begin());
  if (!steps.empty()) pending_.powers(c + 1, c, steps);
}

Arnoldi::Block Arnoldi::start_block(std::int64_t column, std::int64_t k, bool wide) {
  Block block;
  block.column = column;
  block.reductions = reductions;
  block.count = k;
  block.r = Gram::identity(k);
  block.top.assign(static_cast<std::size_t>(k),
                   std::vector<double>(static_cast<std::size_t>(block.column + 1)));
  block.decision.restart = restart_;
  block.decision.column = block.column;
  block.decision.wide = wide;
  block.decision.loss = std::numeric_limits<double>::quiet_NaN();
  generate(block);
  return block;
}

/// W ← W − Q·QᵀW; the number of the sum, whose first column is of the vector before W if it is
/// measured.
int Arnoldi::project(Block& block, bool measured) {
  const std::int64_t c = block.column;
  const std::int64_t extra = measured ? 1 : 0;
  const int sum = pending_.inner(0, c + 1, c + 1 - extra, block.count + extra);
  pending_.update(0, c + 1, sum, extra);
  ++block.decision.passes;
  return sum;
}

/// W ← W − Q·QᵀW, soon enough; the Gram matrix of what it is then.
PanelSum Arnoldi::pass(Block& block, bool measured, Element element) {
  if (options_.block != BlockOrthogonalization::classical)
    return pass_by_pythagoras(block, measured, element);
  const std::int64_t c = block.column;
  const int sum = project(block, measured);
  const int gram = pending_.inner(c + 1, block.count, c + 1, block.count, element);
  std::vector<PanelSum> sums = flush();
  read_projection(block, sums[static_cast<std::size_t>(sum)], measured ? 1 : 0);
  return std::move(sums[static_cast<std::size_t>(gram)]);
}

/// WᵀW − PᵀP from the one sum [Q W]ᵀW, in fp64 at least; the host provides the projection P.
PanelSum Arnoldi::pass_by_pythagoras(Block& block, bool measured, Element element) {
  const std::int64_t above = block.column + 1;
  const std::int64_t extra = measured ? 1 : 0;
  const int number = pending_.inner(0, above + block.count, above - extra, block.count + extra,
                                    element == Element::fp32 ? Element::fp64 : element);
  const PanelSum sum = flush()[static_cast<std::size_t>(number)];
  PanelSum projection{above, block.count + extra, {}};
  for (std::int64_t j = 0; j < projection.cols; ++j)
    for (std::int64_t i = 0; i < above; ++i) projection.values.push_back(sum(i, j));
  PanelSum gram{block.count, block.count, {}};
  for (std::int64_t j = 0; j < block.count; ++j) {
    for (std::int64_t i = 0; i < block.count; ++i) {
      DoubleDouble left = sum(above + i, j + extra);
      for (std::int64_t q = 0; q < above; ++q)
        left = subtract_product(left, sum(q, i + extra), sum(q, j + extra));
      gram.values.push_back(left);
    }
  }
  read_projection(block, projection, extra);
  PanelFactor factor{above, block.count, Element::fp64, {}, {}};
  factor.values.assign(projection.values.begin() + above * extra, projection.values.end());
  pending_.update_by(0, above, std::move(factor));
  ++block.decision.passes;
  return gram;
}

/// top ← top + P·r.
void Arnoldi::read_projection(Block& block, const PanelSum& p, std::int64_t without) {
  for (std::int64_t i = 0; without > 0 && i < p.rows; ++i) {
    const double x = std::abs(p(i, 0).hi - (i + 1 == p.rows ? 1.0 : 0.0));
    if (!(x <= block.decision.loss)) block.decision.loss = x;
  }
  for (std::int64_t j = 0; j < block.count; ++j) {
    for (std::int64_t i = 0; i < p.rows; ++i) {
      double sum = 0;
      for (std::int64_t q = 0; q <= j; ++q) sum += p(i, q + without).hi * block.r(q, j).hi;
      block.top[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)] += sum;
    }
  }
}

/// The columns' lengths before the first projection, by Pythagoras.
void Arnoldi::read_lengths(Block& block, const PanelSum& gram) const {
  for (std::int64_t j = 0; j < block.count; ++j) {
    double square = gram(j, j).hi;
    for (const double x : block.top[static_cast<std::size_t>(j)]) square += x * x;
    block.before.push_back(std::sqrt(square));
    block.finite = block.finite && std::isfinite(square);
  }
}

Arnoldi::Look Arnoldi::look(const Block& block, const PanelSum& sum, Element element) {
  Look seen;
  Gram gram = square_of(sum);
  const std::int64_t k = block.count;
  for (std::int64_t j = 0; j < k; ++j) seen.scale.push_back(power_near_inverse_root(gram(j, j).hi));
  for (std::int64_t j = 0; j < k; ++j) {
    for (std::int64_t i = 0; i < k; ++i)
      gram(i, j) = scaled(scaled(gram(i, j), seen.scale[static_cast<std::size_t>(i)]),
                          seen.scale[static_cast<std::size_t>(j)]);
  }
  const Factor factor = factor_of(gram, element);
  ++factorizations;
  // What is known of A·q_c is off already for a symmetric A: then small is what is left of it.
  const double length = options_.symmetric ? std::sqrt(sum(0, 0).hi) : block.before[0];
  if (!(length > options_.limits.nothing_left * options_.norm * step(0).gamma)) return seen;
  seen.failed = factor.done < k;
  failed_cholesky += seen.failed ? 1 : 0;
  seen.r = factor.r;
  const std::int64_t most = options_.symmetric ? related(block, seen, factor.done) : factor.done;
  seen.related = most == factor.done;
  for (seen.kept = most; seen.kept > 0; --seen.kept) {
    seen.condition = condition_of(leading(factor.r, seen.kept), {}).estimate;
    double shortened = 1;
    for (std::int64_t j = 0; j < seen.kept; ++j) {
      const double after = std::sqrt(sum(j, j).hi);
      shortened = std::max(shortened, block.before[static_cast<std::size_t>(j)] / after);
    }
    seen.amplification = seen.condition * shortened;
    if (seen.amplification <=
        (seen.kept > 1 ? options_.limits.amplification_max : 1 / options_.limits.nothing_left))
      break;
  }
  return seen;
}

/// How many of the first `most` vectors satisfy A·Q = Q·H as closely as is asked for; the first is
/// kept unchecked.
std::int64_t Arnoldi::related(const Block& block, const Look& seen, std::int64_t most) const {
  Block part = block;
  part.count = most;
  const std::vector<double> errors =
      relation_errors(part, unscaled(leading(seen.r, most), seen.scale));
  std::int64_t kept = 0;
  while (kept < most &&
         (kept == 0 || errors[static_cast<std::size_t>(kept)] <= options_.relation_max))
    ++kept;
  return kept;
}

void Arnoldi::truncate(Block& block, Look& seen) const {
  block.count = seen.kept;
  block.top.resize(static_cast<std::size_t>(seen.kept));
  block.r = leading(block.r, seen.kept);
  seen.r = leading(seen.r, seen.kept);
  seen.scale.resize(static_cast<std::size_t>(seen.kept));
}

/// W ← W·diag(scale)·R⁻¹ as soon as there is a script; W was (new W)·R·diag(scale)⁻¹.
void Arnoldi::finish_pass(Block& block, const Gram& r, const std::vector<double>& scale) {
  pending_.solve(block.column + 1, panel_factor(r, scale));
  block.r = upper_product(unscaled(r, scale), block.r);
}

/// The projection again, and sums in doubles unless a fixed method has others.
void Arnoldi::second_pass(Block& block, Element element) {
  const Factor factor = factor_of(square_of(pass(block, false, element)), element);
  ++factorizations;
  failed_cholesky += factor.done < block.count ? 1 : 0;
  finish_pass(block, factor.r, {});
}

Arnoldi::Block Arnoldi::by_fixed_passes(std::int64_t column, std::int64_t k) {
  const KrylovMethod& method = *krylov_method(options_.method);
  Block block = start_block(column, k, method.wide);
  const Element element = sums_in(method.wide);
  const PanelSum of_block = pass(block, column > 0, element);
  read_lengths(block, of_block);
  const Factor factor = factor_of(square_of(of_block), element, method.by_eigenvalues);
  ++factorizations;
  failed_cholesky += factor.done < k ? 1 : 0;
  block.decision.condition = factor.done < k ? kInfinity : condition_of(factor.r, {}).estimate;
  condition_max = std::max(condition_max, block.decision.condition);
  finish_pass(block, factor.r, {});
  if (method.passes == 2) second_pass(block, sums_in(false));
  block.decision.s = k;
  keep_decision(block.decision, block);
  return block;
}

/// Projected once, then column by column; of cgs2 a column once more against all that are before it
/// by then, so that neither projection leaves anything that the length of a short column magnifies.
void Arnoldi::by_columns(std::int64_t k) {
  Block block = start_block(size(), k, false);
  const std::int64_t c = block.column;
  const int sum = project(block, c > 0);
  const bool modified = options_.method == QrMethod::mgs;
  const bool twice = options_.method == QrMethod::cgs2;
  std::vector<std::vector<int>> products_of(static_cast<std::size_t>(k));
  std::vector<int> again;
  std::vector<int> norms;
  for (std::int64_t j = 0; j < k; ++j) {
    std::vector<int>& numbers = products_of[static_cast<std::size_t>(j)];
    for (std::int64_t i = 0; modified && i < j; ++i) {
      numbers.push_back(pending_.inner(c + 1 + i, 1, c + 1 + j, 1));
      pending_.update(c + 1 + i, c + 1 + j, numbers.back());
    }
    if (!modified && j > 0) {
      numbers.push_back(pending_.inner(c + 1, j, c + 1 + j, 1));
      pending_.update(c + 1, c + 1 + j, numbers.back());
    }
    if (twice) {
      again.push_back(pending_.inner(0, c + 1 + j, c + 1 + j, 1));
      pending_.update(0, c + 1 + j, again.back());
    }
    norms.push_back(pending_.inner(c + 1 + j, 1, c + 1 + j, 1));
    pending_.normalize(c + 1 + j, norms.back());
  }
  const std::vector<PanelSum> sums = flush();
  read_projection(block, sums[static_cast<std::size_t>(sum)], c > 0 ? 1 : 0);
  for (std::int64_t j = 0; j < k; ++j) {
    std::int64_t row = 0;
    for (const int number : products_of[static_cast<std::size_t>(j)]) {
      const PanelSum& part = sums[static_cast<std::size_t>(number)];
      for (std::int64_t i = 0; i < part.rows; ++i) block.r(row++, j) = part(i, 0);
    }
    if (twice) {
      const PanelSum& part = sums[static_cast<std::size_t>(again[static_cast<std::size_t>(j)])];
      for (std::int64_t i = 0; i <= c; ++i)
        block.top[static_cast<std::size_t>(j)][static_cast<std::size_t>(i)] += part(i, 0).hi;
      for (std::int64_t i = 0; i < j; ++i) block.r(i, j) = block.r(i, j) + part(c + 1 + i, 0);
    }
    const double square =
        sums[static_cast<std::size_t>(norms[static_cast<std::size_t>(j)])](0, 0).hi;
    block.r(j, j) = DoubleDouble(square > 0 ? std::sqrt(square) : square);
  }
  block.decision.s = k;
  block.decision.passes += twice ? 1 : 0;
  block.decision.condition = condition_of(block.r, {}).estimate;
  condition_max = std::max(condition_max, block.decision.condition);
  keep_decision(block.decision, block);
  finish_block(block);
}

void Arnoldi::keep_decision(KrylovDecision decision, const Block& block) {
  decision.reductions = reductions - block.reductions;
  runner_.note(fmt::format("cycle {}, column {}: {} vectors, {} {} in {}, condition {:.1e}{}{}",
                           decision.restart + 1, decision.column, decision.s, decision.passes,
                           decision.passes == 1 ? "pass" : "passes",
                           to_string(sums_in(decision.wide)), decision.condition,
                           decision.what.empty() ? "" : "; ", decision.what));
  decisions.push_back(std::move(decision));
}

/// H of a block that is in Q. One that has ended gives the column of what it began with.
void Arnoldi::finish_block(const Block& block) {
  if (!block.finite) {
    not_finite_ = true;
    return;
  }
  add_columns(block, coordinates(block, block.r));
  ended_ = block.ended;
}

/// Whether the first vector of the block is in the space already, or is no vector. The block is
/// that vector then, with nothing beside the space.
bool Arnoldi::ends_here(Block& block, const Look& seen) {
  if (!block.finite) {
    block.count = 0;
    return true;
  }
  if (seen.kept > 0) return false;
  if (block.before[0] <= options_.limits.nothing_left * options_.norm * step(0).gamma)
    std::fill(block.top[0].begin(), block.top[0].end(), 0.0);
  block.count = 1;
  block.r = Gram(1);
  block.ended = true;
  block.decision.s = 0;
  block.decision.condition = kInfinity;
  block.decision.what = "end: the next vector is in the space";
  keep_decision(block.decision, block);
  return true;
}

/// Whether Pythagoras' Gram matrix is not to be relied on.
bool Arnoldi::is_lost(const Look& seen, std::int64_t asked) const {
  if (options_.block == BlockOrthogonalization::classical) return false;
  const double error = loss_ + options_.limits.unit;
  return seen.failed || seen.kept < asked ||
         !(error * seen.amplification * seen.amplification <= options_.limits.pythagoras_loss_max);
}

/// What the vectors have lost by this block, about.
void Arnoldi::note_loss(const Look& seen, const Block& block, bool by_pythagoras) {
  if (block.decision.passes > 1) return;
  const double error = loss_ + options_.limits.unit;
  loss_ = error * seen.amplification * (by_pythagoras ? seen.amplification : 1.0);
}

Arnoldi::Block Arnoldi::by_decision(std::int64_t column, std::int64_t count) {
  const std::int64_t asked = std::min(count, s_now_);
  Block block = start_block(column, asked, wide_);
  const std::int64_t c = block.column;
  const PanelSum first = pass(block, c > 0, sums_in(wide_));
  read_lengths(block, first);
  Look seen = look(block, first, sums_in(wide_));
  const bool cut = seen.kept < asked && seen.related;
  const bool blurred =
      !wide_ && (seen.failed || seen.condition > options_.limits.plain_condition || cut);
  const bool lost = is_lost(seen, asked);
  if (block.finite && (blurred || lost)) {
    block.decision.what =
        blurred ? fmt::format("wide: a condition of {:.1e} in doubles", seen.condition)
                : fmt::format("projected: amplification {:.1e}", seen.amplification);
    wide_ = block.decision.wide = wide_ || blurred;
    (void)pending_.inner(c + 1, asked, c + 1, asked, sums_in(wide_));
    const std::vector<PanelSum> sums = flush();
    seen = look(block, sums[0], sums_in(wide_));
  }
  if (ends_here(block, seen)) return block;
  if (seen.kept < asked) truncate(block, seen);
  finish_pass(block, seen.r, seen.scale);
  careful_ = careful_ || block.decision.loss > options_.limits.loss_max;
  if (careful_ || seen.amplification > options_.limits.amplification_once) second_pass(block);
  note_loss(seen, block, options_.block != BlockOrthogonalization::classical && !lost && !blurred);
  block.decision.s = block.count;
  block.decision.condition = seen.condition;
  condition_max = std::max(condition_max, seen.condition);
  adapt(block, seen, asked);
  return block;
}

/// Blocks one after the other, each orthonormal to what one pass does, then all of them again.
void Arnoldi::by_panel(std::int64_t count) {
  Panel panel;
  panel.column = size();
  const std::int64_t wanted = std::min(count, options_.panel);
  bool more = true;
  while (more && panel.count < wanted) {
    const std::int64_t column = panel.column + panel.count;
    const std::int64_t left = wanted - panel.count;
    panel.blocks.push_back(options_.method == QrMethod::automatic
                               ? by_decision(column, left)
                               : by_fixed_passes(column, std::min(left, options_.s)));
    const Block& block = panel.blocks.back();
    more = block.finite && !block.ended;
    panel.count += more ? block.count : 0;
  }
  second_stage(panel);
}

void Arnoldi::second_stage(Panel& panel) {
  const std::int64_t c = panel.column;
  Block all;
  all.column = c;
  all.count = panel.count;
  all.r = Gram::identity(panel.count);
  all.top.assign(static_cast<std::size_t>(panel.count),
                 std::vector<double>(static_cast<std::size_t>(c + 1)));
  if (panel.count > 0) {
    second_pass(all);
    decisions[decisions.size() - (panel.blocks.back().ended ? 2 : 1)].reductions += 1;
    loss_ = 0;
  }
  const Columns first_stage =
      coordinates(all, all.r);  // of the vectors before and in the panel, in Q
  for (const Block& block : panel.blocks) {
    if (!block.finite) {
      not_finite_ = true;
      return;
    }
    Columns w = coordinates(block, block.r);
    for (std::vector<double>& of_vector : w) {
      std::vector<double> in_q(of_vector.size());
      const auto before = static_cast<std::size_t>(c + 1);
      std::copy_n(of_vector.begin(), std::min(before, of_vector.size()), in_q.begin());
      for (std::size_t j = before; j < of_vector.size(); ++j) {
        if (j - before >= first_stage.size() - 1) continue;  // what a block that ended has not
        const std::vector<double>& to = first_stage[j - before + 1];
        for (std::size_t i = 0; i <= j; ++i) in_q[i] += to[i] * of_vector[j];
      }
      of_vector = std::move(in_q);
    }
    add_columns(block, w);
    ended_ = block.ended;
  }
}

/// What the next block is to be like.
void Arnoldi::adapt(const Block& block, const Look& seen, std::int64_t asked) {
  KrylovDecision decision = block.decision;
  const auto say = [&decision](std::string text) {
    decision.what += (decision.what.empty() ? "" : "; ") + std::move(text);
  };
  if (block.count < asked) {
    say(fmt::format("shrink: {} of {} vectors {}", block.count, asked,
                    seen.related ? "can be told apart" : "have A·Q = Q·H within the tolerance"));
    s_now_ = block.count;
  } else if (asked == s_now_ && s_now_ < options_.s &&
             seen.amplification <= std::sqrt(options_.limits.amplification_max)) {
    s_now_ = std::min(options_.s, 2 * s_now_);
    say(fmt::format("grow: {} vectors next, amplification {:.1e}", s_now_, seen.amplification));
  }
  if (wide_ && seen.condition <= options_.limits.plain_condition) {
    wide_ = false;
    say(fmt::format("plain: sums in doubles next, condition {:.1e}", seen.condition));
  }
  keep_decision(std::move(decision), block);
}

}  // namespace strata
