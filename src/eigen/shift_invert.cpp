// The smallest eigenpairs by a factor of A − σ·M.
//
// Method: what block_lanczos.hpp finds is solved with once more, so that components in rows of
// large elements are small to their own rounding. With X = (A − σ·M)⁻¹·M·V the pairs in that space
// are those of XᵀMV·y = (λ − σ)·XᵀMX·y, whose elements have errors of their own size; those of XᵀAX
// would have errors of the size of A. Certificates are of A, M, λ and v alone.

#include "strata/shift_invert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <utility>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "base/work_crew.hpp"
#include "dense/jacobi_eigen.hpp"
#include "dense/small_eigen.hpp"
#include "device/device_host.hpp"
#include "eigen/block_lanczos.hpp"
#include "eigen/shifted_pencil.hpp"
#include "kernels/backend/blas_host.hpp"
#include "krylov/twofold.hpp"
#include "scalar/double_double.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;

/// v of length 1, with what is known of it.
struct Pair {
  double value = 0;
  double bound = 0;
  double residual = 0;
  double terms = 0;  ///< |v|ᵀ·|A|·|v|, which cancel where the value is small
};

DoubleDouble wide(const TwofoldVector& x, std::int64_t i) {
  return DoubleDouble(x.hi[at(i)]) + DoubleDouble(x.lo[at(i)]);
}

/// What is certified of all columns; v becomes M-normalized.
std::vector<Pair> certified_pairs(const ShiftedPencil& pencil, MatrixView<double> v, double lost,
                                  WorkCrew& crew) {
  const std::int64_t n = v.rows;
  std::vector<Pair> pairs(at(v.cols));
  std::vector<double> above(at(v.cols));  // (λ − σ)·vᵀ·M·v
  DenseBlock r(n, v.cols);
  crew.share(v.cols, [&](std::int64_t j) {
    const std::span<double> x(v.column(j), at(n));
    const auto times_mass = [&](std::span<const double> of) {
      TwofoldVector product;
      if (pencil.mass() != nullptr) return multiply_twofold(*pencil.mass(), of);
      product.hi.assign(of.begin(), of.end());
      product.lo.assign(of.size(), 0);
      return product;
    };
    const auto product = [&](const TwofoldVector& of) {
      DoubleDouble sum;
      for (std::int64_t i = 0; i < n; ++i) sum = sum + DoubleDouble(x[at(i)]) * wide(of, i);
      return sum;
    };
    const double length = std::sqrt(product(times_mass(x)).hi);
    for (double& each : x) each /= length;
    const TwofoldVector ax = multiply_twofold(pencil.a(), x);
    const TwofoldVector mx = times_mass(x);
    const DoubleDouble xmx = product(mx);
    const DoubleDouble quotient = product(ax) / xmx;
    Pair& pair = pairs[at(j)];
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t e = pencil.a().start[at(i)]; e < pencil.a().start[at(i + 1)]; ++e)
        pair.terms += std::abs(x[at(i)] * pencil.a().value[at(e)] * x[pencil.a().column[at(e)]]);
    pair.value = quotient.hi;
    above[at(j)] = ((quotient - DoubleDouble(pencil.sigma())) * xmx).hi;
    double squares = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const DoubleDouble left = wide(ax, i);
      const DoubleDouble right = DoubleDouble(pair.value) * wide(mx, i);
      const double difference = (left - right).hi;
      r.column(j)[i] = difference;
      squares += difference * difference;
    }
    pair.residual = std::sqrt(squares);
  });
  pencil.factor().solve_lower(r.view());
  for (std::int64_t j = 0; j < v.cols; ++j) {
    Pair& pair = pairs[at(j)];
    const double length = std::sqrt(dot(n, r.column(j), r.column(j)));
    const double delta = above[at(j)] > 0 ? length * (1 + lost) / std::sqrt(above[at(j)]) : 1;
    const double share = delta < 1 ? delta / (1 - delta) : std::numeric_limits<double>::infinity();
    pair.bound =
        1.01 * std::abs(pair.value - pencil.sigma()) * share + kUnit * std::abs(pair.value);
    if (std::isnan(pair.bound)) pair.bound = std::numeric_limits<double>::infinity();
  }
  return pairs;
}

/// XᵀMY, n × k each, M·Y given.
SquareMatrix<double> products(MatrixView<const double> x, MatrixView<const double> my,
                              WorkCrew& crew) {
  constexpr std::int64_t kVectors = 16;
  const std::int64_t k = x.cols;
  SquareMatrix<double> h(k);
  const MatrixView<double> to{h.values.data(), k, k, k};
  crew.share((k + kVectors - 1) / kVectors, [&](std::int64_t piece) {
    const std::int64_t begin = piece * kVectors;
    const std::int64_t some = std::min(kVectors, k - begin);
    blas::gemm_minus<double>(CblasTrans, CblasNoTrans, x.rows, x, my.block(0, begin, my.rows, some),
                             to.block(0, begin, k, some));
  });
  for (std::int64_t j = 0; j < k; ++j)
    for (std::int64_t i = 0; i <= j; ++i) h(i, j) = h(j, i) = -(h(i, j) + h(j, i)) / 2;
  return h;
}

/// OUT ← X·Y, n × k.
void combine(MatrixView<const double> x, const SquareMatrix<double>& y, MatrixView<double> out,
             WorkCrew& crew) {
  constexpr std::int64_t kRows = 4096;
  const std::int64_t k = x.cols;
  const MatrixView<const double> by{y.values.data(), k, k, k};
  crew.share((x.rows + kRows - 1) / kRows, [&](std::int64_t piece) {
    const std::int64_t begin = piece * kRows;
    const std::int64_t rows = std::min(kRows, x.rows - begin);
    const MatrixView<double> to = out.block(begin, 0, rows, k);
    for (std::int64_t j = 0; j < k; ++j) std::fill_n(to.column(j), rows, 0.0);
    blas::gemm_minus<double>(CblasNoTrans, CblasNoTrans, k, x.block(begin, 0, rows, k), by, to);
    for (std::int64_t j = 0; j < k; ++j)
      for (std::int64_t i = 0; i < rows; ++i) to(i, j) = -to(i, j);
  });
}

DenseBlock times_mass(const ShiftedPencil& pencil, MatrixView<const double> v, WorkCrew& crew) {
  DenseBlock mv(v.rows, v.cols);
  crew.share(v.cols, [&](std::int64_t j) {
    const std::span<const double> x(v.column(j), at(v.rows));
    if (pencil.mass() != nullptr)
      multiply(*pencil.mass(), x, {mv.column(j), at(v.rows)});
    else
      std::copy(x.begin(), x.end(), mv.column(j));
  });
  return mv;
}

/// V ← the eigenvectors in the space of (A − σ·M)⁻¹·M·V, ascending; M·V is given. False where they
/// are not independent.
bool turn(const ShiftedPencil& pencil, MatrixView<const double> mass_vectors,
          MatrixView<double> vectors, WorkCrew& crew) {
  const std::int64_t n = vectors.rows;
  const std::int64_t k = vectors.cols;
  DenseBlock mv(n, k);
  DenseBlock x(n, k);
  for (std::int64_t j = 0; j < k; ++j) {
    std::copy_n(mass_vectors.column(j), n, mv.column(j));
    std::copy_n(mass_vectors.column(j), n, x.column(j));
  }
  pencil.factor().solve(x.view());
  DenseBlock mx = times_mass(pencil, std::as_const(x).view(), crew);
  crew.share(k, [&](std::int64_t j) {
    const double length = std::sqrt(dot(n, x.column(j), mx.column(j)));
    for (DenseBlock* block : {&x, &mx, &mv})
      for (std::int64_t i = 0; i < n; ++i) block->column(j)[i] /= length;
  });
  const SmallCholesky<double> h = small_cholesky(
      products(std::as_const(x).view(), std::as_const(mx).view(), crew), BadPivot::stop);
  if (h.failed_column >= 0) return false;
  // R⁻ᵀ·G·R⁻¹.
  SquareMatrix<double> g = products(std::as_const(x).view(), std::as_const(mv).view(), crew);
  const auto solve_rows = [&](SquareMatrix<double>& b) {  // B ← R⁻ᵀ·B
    for (std::int64_t j = 0; j < k; ++j) {
      for (std::int64_t i = 0; i < k; ++i) {
        double sum = b(i, j);
        for (std::int64_t l = 0; l < i; ++l) sum -= h.r(l, i) * b(l, j);
        b(i, j) = sum / h.r(i, i);
      }
    }
  };
  const auto transpose = [&](SquareMatrix<double>& b) {
    for (std::int64_t j = 0; j < k; ++j)
      for (std::int64_t i = 0; i < j; ++i) std::swap(b(i, j), b(j, i));
  };
  solve_rows(g);
  transpose(g);
  solve_rows(g);
  // Values that are far apart keep digits of their own by rotations.
  constexpr double kFarApart = 1e4;
  constexpr std::int64_t kWork = std::int64_t{1} << 36;  // elements: seconds
  SymmetricEigen eigen;
  if (g(k - 1, k - 1) > kFarApart * g(0, 0)) eigen = jacobi_eigen(g, kWork);
  if (eigen.values.empty()) eigen = symmetric_eigen(std::move(g), crew);
  if (eigen.values.empty()) return false;
  for (std::int64_t j = 0; j < k; ++j) {  // Y ← R⁻¹·S
    for (std::int64_t i = k; i-- > 0;) {
      double sum = eigen.vectors(i, j);
      for (std::int64_t l = i + 1; l < k; ++l) sum -= h.r(i, l) * eigen.vectors(l, j);
      eigen.vectors(i, j) = sum / h.r(i, i);
    }
  }
  combine(std::as_const(x).view(), eigen.vectors, vectors, crew);
  return true;
}

LanczosShape shape_of(const ShiftInvertOptions& options, std::int64_t n) {
  constexpr std::int64_t kFewPairs = 32;
  LanczosShape shape;
  shape.k = options.k;
  shape.block = std::min<std::int64_t>(options.k <= kFewPairs ? 8 : 16, n);
  const std::int64_t least = options.k + 2 * shape.block;
  const std::int64_t wanted = options.basis_size > 0
                                  ? options.basis_size
                                  : std::max(2 * options.k, options.k + 5 * shape.block);
  shape.basis = std::min(std::max(wanted, least), n);
  return shape;
}

void require_definite_mass(const SparseMatrix& mass, const SparseCholeskyOptions& asked) {
  SparseCholeskyOptions options = asked;
  options.shift = 0;
  const SparseCholesky factor(mass, options);
  require(factor.info().ok, ErrorKind::numerical, kEigsWhere,
          "M is not positive definite: pivot {} is {:.3g}, counted from 0; the mass of each "
          "unknown has to be positive",
          factor.info().first_bad_pivot, factor.info().bad_pivot);
}

/// Whether a bound is as small as is wanted, or rounding, and the value has digits or is zero to
/// rounding.
bool is_known(const Pair& pair, double wanted, double scale) {
  constexpr double kRounding = 1e-14;  // of the terms
  constexpr double kZero = 1e-18;      // of the matrix
  constexpr double kResolved = 1e-2;   // of the value
  const bool zero = std::max(std::abs(pair.value), pair.bound) <= kZero * scale;
  return pair.bound <= kRounding * pair.terms ||
         (pair.bound <= wanted && (zero || pair.bound <= kResolved * std::abs(pair.value)));
}

/// Sorted, with what is certified of them.
void certify(const ShiftedPencil& pencil, MatrixView<double> vectors, double tolerance,
             WorkCrew& crew, ShiftInvertInfo& info) {
  const std::vector<Pair> pairs = certified_pairs(pencil, vectors, info.lost, crew);
  const double scale = pencil.scale();
  info.values.clear();
  info.bounds.clear();
  info.residuals.clear();
  info.converged = 0;
  info.orthogonality = 0;
  std::vector<std::int64_t> order(pairs.size());
  for (std::size_t j = 0; j < order.size(); ++j) order[j] = static_cast<std::int64_t>(j);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    return pairs[at(i)].value < pairs[at(j)].value;
  });
  const DenseBlock before = [&] {
    DenseBlock copy(vectors.rows, vectors.cols);
    for (std::int64_t j = 0; j < vectors.cols; ++j)
      std::copy_n(vectors.column(j), vectors.rows, copy.column(j));
    return copy;
  }();
  for (std::size_t j = 0; j < order.size(); ++j) {
    const Pair& pair = pairs[at(order[j])];
    std::copy_n(before.column(order[j]), vectors.rows,
                vectors.column(static_cast<std::int64_t>(j)));
    info.values.push_back(pair.value);
    info.bounds.push_back(pair.bound);
    info.residuals.push_back(pair.residual);
    info.converged += is_known(pair, tolerance * (pair.value - pencil.sigma()), scale) ? 1 : 0;
  }
  const DenseBlock mv = times_mass(pencil, vectors, crew);
  const SquareMatrix<double> h = products(vectors, mv.view(), crew);
  for (std::int64_t j = 0; j < h.n; ++j)
    for (std::int64_t i = 0; i <= j; ++i)
      info.orthogonality = std::max(info.orthogonality, std::abs(h(i, j) - (i == j ? 1 : 0)));
}

/// The pairs that are asked for, of those in a space that may have some more: what is left of other
/// eigenvectors shrinks by each solve, until bounds no longer do.
bool polish(const ShiftedPencil& pencil, MatrixView<const double> mass_vectors,
            MatrixView<double> vectors, const ShiftInvertOptions& options, WorkCrew& crew,
            ShiftInvertInfo& info) {
  constexpr int kSteps = 8;
  DenseBlock all(vectors.rows, mass_vectors.cols);
  if (!turn(pencil, mass_vectors, all.view(), crew)) return false;
  double before = std::numeric_limits<double>::infinity();
  for (int step = 0;; ++step) {
    for (std::int64_t j = 0; j < vectors.cols; ++j)
      std::copy_n(all.column(j), vectors.rows, vectors.column(j));
    certify(pencil, vectors, options.tolerance, crew, info);
    info.solves += mass_vectors.cols;
    double worst = 0;
    for (std::size_t j = 0; j < info.bounds.size(); ++j)
      worst = std::max(worst, info.bounds[j] / (info.values[j] - pencil.sigma()));
    if (info.converged == options.k || step == kSteps || !(worst < before / 2)) return true;
    before = worst;
    const DenseBlock mass_of = times_mass(pencil, std::as_const(all).view(), crew);
    if (!turn(pencil, mass_of.view(), all.view(), crew)) return true;
  }
}

/// The same in the larger space, where that finds more.
void polish_further(const ShiftedPencil& pencil, MatrixView<const double> space,
                    MatrixView<double> vectors, const ShiftInvertOptions& options, WorkCrew& crew,
                    ShiftInvertInfo& info) {
  ShiftInvertInfo other = info;
  DenseBlock found(vectors.rows, vectors.cols);
  if (!polish(pencil, space, found.view(), options, crew, other)) return;
  if (other.converged <= info.converged) return;
  for (std::int64_t j = 0; j < vectors.cols; ++j)
    std::copy_n(found.column(j), vectors.rows, vectors.column(j));
  info = std::move(other);
}

/// A σ nearer to what was found, if that was looked for and is far off; whether there is one.
bool move_nearer(ShiftedPencil& pencil, const std::vector<double>& theta) {
  const double first = 1 / theta.front();  // above σ
  const double spread = 1 / theta.back() - first;
  // Where there is one value, or many at one place, nothing is gained.
  if (first <= 10 * spread || !(spread > 1e-6 * first)) return false;
  const double before = pencil.sigma();
  const double sigma = before + first - std::max(spread, 1e-3 * first);
  if (pencil.factor_at(sigma)) return true;
  (void)pencil.factor_at(before);
  return false;
}

void check(const SparseMatrix& a, MatrixView<double> vectors, const ShiftInvertOptions& options) {
  const std::int64_t n = a.rows;
  require(options.k >= 1 && options.k <= n, ErrorKind::misuse, kEigsWhere,
          "{} eigenpairs of a matrix of order {}: at least one, and no more than its order",
          options.k, n);
  require(vectors.rows == n && vectors.cols == options.k, ErrorKind::misuse, kEigsWhere,
          "vectors of {} by {} do not fit {} of order {}", vectors.rows, vectors.cols, options.k,
          n);
  require(options.tolerance > 0 && std::isfinite(options.tolerance), ErrorKind::misuse, kEigsWhere,
          "a tolerance of {}", options.tolerance);
  require(options.restarts_max >= 1, ErrorKind::misuse, kEigsWhere, "{} restarts",
          options.restarts_max);
  require(options.basis_size >= 0, ErrorKind::misuse, kEigsWhere, "a basis of {} vectors",
          options.basis_size);
  require(options.factoring.precision == Element::fp64, ErrorKind::misuse, kEigsWhere,
          "eigenpairs by a factor take one in fp64");
}

std::optional<SparseMatrix> checked_mass(const SparseMatrix* mass, std::int64_t n,
                                         const SparseCholeskyOptions& options) {
  if (mass == nullptr) return std::nullopt;
  require(mass->rows == n && mass->cols == n, ErrorKind::misuse, kEigsWhere,
          "M of {} by {} beside A of order {}", mass->rows, mass->cols, n);
  SparseMatrix m = symmetric_part(*mass, "M");
  require_definite_mass(m, options);
  return m;
}

/// Brings A and M into the middle of the range by powers of two, where they are far from it, and
/// what is found back.
class MiddleOfRange {
 public:
  MiddleOfRange(SparseMatrix& a, std::optional<SparseMatrix>& mass)
      : of_a_(bring(a)), of_mass_(mass ? bring(*mass) : 0) {}

  [[nodiscard]] double there(double sigma) const { return std::scalbn(sigma, of_mass_ - of_a_); }
  void bring_back(ShiftInvertInfo& info, MatrixView<double> vectors) const {
    if (of_a_ == 0 && of_mass_ == 0) return;
    const auto scale = [](std::vector<double>& values, int exponent) {
      for (double& value : values) value = std::scalbn(value, exponent);
    };
    scale(info.values, of_a_ - of_mass_);
    scale(info.bounds, of_a_ - of_mass_);
    for (double& bound : info.bounds) bound += std::numeric_limits<double>::denorm_min();
    scale(info.residuals, of_a_ - of_mass_ / 2);
    info.sigma = std::scalbn(info.sigma, of_a_ - of_mass_);
    for (std::int64_t j = 0; j < vectors.cols; ++j)
      for (std::int64_t i = 0; i < vectors.rows; ++i)
        vectors(i, j) = std::scalbn(vectors(i, j), -of_mass_ / 2);
  }

 private:
  /// The even exponent by which its elements were divided.
  static int bring(SparseMatrix& m) {
    constexpr int kFar = 100;
    double most = 0;
    for (const double value : m.value) most = std::max(most, std::abs(value));
    const int exponent = most > 0 ? std::ilogb(most) / 2 * 2 : 0;
    if (std::abs(exponent) <= kFar) return 0;
    for (double& value : m.value) value = std::scalbn(value, -exponent);
    return exponent;
  }

  int of_a_, of_mass_;
};

/// Solves with the factor of a pencil. A host solves with a few columns in one thread, GPUs with
/// sixteen as with one.
class Solver {
 public:
  Solver(const ShiftedPencil& pencil, WorkCrew& crew) : pencil_(pencil), crew_(crew) {}

  void operator()(MatrixView<double> x) {
    constexpr std::int64_t kColumns = 4;
    const SparseCholesky& factor = pencil_.factor();
    const bool first = std::exchange(solved_with_, &factor) != &factor;
    if (first || !factor.solves().path.empty() || x.cols <= kColumns) return factor.solve(x);
    crew_.share((x.cols + kColumns - 1) / kColumns, [&](std::int64_t piece) {
      const std::int64_t begin = piece * kColumns;
      factor.solve(x.block(0, begin, x.rows, std::min(kColumns, x.cols - begin)));
    });
  }

 private:
  const ShiftedPencil& pencil_;
  WorkCrew& crew_;
  const SparseCholesky* solved_with_ = nullptr;
};

/// Whether the k pairs of largest 1/(λ − σ) were found, and no other was seen.
bool find_pairs(BlockLanczos& lanczos, std::int64_t restarts_max,
                const std::function<void()>& keep_going) {
  constexpr double kEstimated = 1e-13;
  constexpr int kTries = 20;
  bool found = lanczos.run(kEstimated, restarts_max, keep_going);
  for (int tries = 0; found && lanczos.finds_another(keep_going); ++tries)
    found = tries < kTries && lanczos.run(kEstimated, restarts_max, keep_going);
  return found;
}

std::string why_not(const ShiftInvertInfo& info, const BlockLanczos& lanczos, bool turned,
                    bool found, const ShiftInvertOptions& options) {
  if (!turned) return "the vectors that were found depend on each other";
  if (!found && info.restarts < options.restarts_max)
    return "pairs that were missing were found again and again: 1/(lambda - sigma) of the first is "
           "so far above the others that its rounding hides them; another sigma may do";
  if (!found)
    return fmt::format(
        "after {} restarts the estimated residuals are up to {:.1e} of the values: more restarts, "
        "or a larger basis, may do",
        info.restarts, lanczos.residual());
  return fmt::format(
      "{} of {} pairs have bounds within {:.1e} of their distance to sigma, and of a hundredth of "
      "themselves: a larger --tolerance takes what there is, a sigma nearer to the values may find "
      "more digits",
      info.converged, options.k, options.tolerance);
}

}  // namespace

ShiftInvertInfo smallest_eigenpairs(const SparseMatrix& a, const SparseMatrix* mass,
                                    MatrixView<double> vectors, const ShiftInvertOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t n = a.rows;
  check(a, vectors, options);
  WorkCrew crew(describe_host().compute_queues - 1);
  SparseMatrix of = symmetric_part(a, "A");
  std::optional<SparseMatrix> with = checked_mass(mass, n, options.factoring);
  const MiddleOfRange range(of, with);
  ShiftedPencil pencil(std::move(of), std::move(with), options.factoring);
  find_sigma(pencil, options.sigma ? std::optional(range.there(*options.sigma)) : std::nullopt);
  const auto keep_going = [&, progress = options.factoring.run.progress] {
    if (!progress) return;
    Progress state{.what = "eigs"};
    state.seconds = seconds_since(start);
    if (!progress(state)) fail(ErrorKind::cancelled, kEigsWhere, "cancelled between two blocks");
  };
  const auto method = [&] {
    return std::make_unique<BlockLanczos>(n, pencil.mass(), Solver(pencil, crew),
                                          shape_of(options, n), options.seed, crew);
  };
  ShiftInvertInfo info;
  auto lanczos = method();
  if (!options.sigma && pencil.sigma() != 0) {
    constexpr double kRough = 1e-2;
    (void)lanczos->run(kRough, options.restarts_max, keep_going);
    if (move_nearer(pencil, lanczos->values())) {
      info.solves = lanczos->solves();
      lanczos = method();
    }
  }
  const bool found = find_pairs(*lanczos, options.restarts_max, keep_going);
  info.lost = pencil.lost();
  const MatrixView<const double> space = lanczos->mass_vectors();
  const bool turned = polish(pencil, space.block(0, 0, n, options.k), vectors, options, crew, info);
  if (turned && found && info.converged < options.k && space.cols > options.k)
    polish_further(pencil, space, vectors, options, crew, info);
  for (std::int64_t j = 0; j < options.k && !turned; ++j) std::fill_n(vectors.column(j), n, 0.0);
  info.sigma = pencil.sigma();
  info.factor = pencil.factor().info();
  info.factorizations = pencil.factorizations();
  info.restarts = lanczos->restarts();
  info.solves += lanczos->solves();
  info.report = pencil.factor().report();
  info.solve_report = pencil.factor().solves();
  info.ok = turned && found && info.converged == options.k;
  if (!info.ok) info.why = why_not(info, *lanczos, turned, found, options);
  range.bring_back(info, vectors);
  info.seconds = seconds_since(start);
  return info;
}

}  // namespace strata
