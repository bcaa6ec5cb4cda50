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
#include "kernels/backend/blas_host.hpp"
#include "krylov/twofold.hpp"
#include "matrix/symmetry.hpp"
#include "scalar/double_double.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

constexpr const char* kWhere = "eigs";
constexpr double kUnit = std::numeric_limits<double>::epsilon() / 2;

/// Elements that mirror each other may differ by rounding: the symmetric part is what counts.
SparseMatrix symmetric_part(const SparseMatrix& a, const char* name) {
  require(a.rows == a.cols, ErrorKind::misuse, kWhere, "{} is {} by {}, and not square", name,
          a.rows, a.cols);
  require_well_formed(a);
  const Asymmetry pair = find_asymmetry(a, kSymmetryTolerance);
  require(!std::isnan(pair.value) && !std::isnan(pair.transposed), ErrorKind::input, kWhere,
          "element ({}, {}) of {} is {} and ({}, {}) is {}, counted from 0", pair.row, pair.col,
          name, pair.value, pair.col, pair.row, pair.transposed);
  require(!pair.found, ErrorKind::numerical, kWhere,
          "{} is not symmetric: element ({}, {}) is {} and ({}, {}) is {}, counted from 0", name,
          pair.row, pair.col, pair.value, pair.col, pair.row, pair.transposed);
  std::vector<std::int64_t> rows, cols;
  std::vector<double> values;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t e = a.start[at(i)]; e < a.start[at(i + 1)]; ++e) {
      const std::int64_t j = a.column[at(e)];
      const double value = a.value[at(e)];
      require(std::isfinite(value), ErrorKind::input, kWhere,
              "element ({}, {}) of {} is {}, counted from 0", i, j, name, value);
      for (const auto& [r, c] : {std::pair(i, j), std::pair(j, i)}) {
        rows.push_back(r);
        cols.push_back(c);
        values.push_back(value / 2);
      }
    }
  }
  return sparse_from_entries(a.rows, a.rows, rows, cols, values);
}

/// A − σ·M, with an entry wherever one of them has one.
SparseMatrix shifted(const SparseMatrix& a, const SparseMatrix& m, double sigma) {
  std::vector<std::int64_t> rows, cols;
  std::vector<double> values;
  const auto add = [&](const SparseMatrix& from, double times) {
    for (std::int64_t i = 0; i < from.rows; ++i) {
      for (std::int64_t e = from.start[at(i)]; e < from.start[at(i + 1)]; ++e) {
        rows.push_back(i);
        cols.push_back(from.column[at(e)]);
        values.push_back(times * from.value[at(e)]);
      }
    }
  };
  add(a, 1);
  add(m, -sigma);
  return sparse_from_entries(a.rows, a.rows, rows, cols, values);
}

/// The pencil, and a factor of it at some σ.
class ShiftedPencil {
 public:
  ShiftedPencil(SparseMatrix a, std::optional<SparseMatrix> mass,
                const SparseCholeskyOptions& options)
      : a_(std::move(a)), mass_(std::move(mass)), options_(options) {}

  [[nodiscard]] const SparseMatrix& a() const noexcept { return a_; }
  [[nodiscard]] const SparseMatrix* mass() const noexcept { return mass_ ? &*mass_ : nullptr; }
  [[nodiscard]] const SparseCholesky& factor() const noexcept { return *factor_; }
  [[nodiscard]] double sigma() const noexcept { return sigma_; }
  [[nodiscard]] std::int64_t factorizations() const noexcept { return factorizations_; }
  [[nodiscard]] double lost() const { return factor_errors(*factor_, factored()).inverse; }

  /// Whether A − σ·M was factored, and is not singular to rounding.
  bool factor_at(double sigma) {
    sigma_ = sigma;
    ++factorizations_;
    const double shift = mass_ ? 0 : -sigma;
    if (mass_) matrix_ = shifted(a_, *mass_, sigma);
    if (factor_ == nullptr) {
      SparseCholeskyOptions options = options_;
      options.shift = shift;
      factor_ = std::make_unique<SparseCholesky>(factored(), options);
    } else {
      (void)factor_->refactor(factored(), shift);
    }
    return factor_->info().ok &&
           !numerically_singular(factor_->scaled_condition(factored()), Element::fp64);
  }

  /// The largest a_ii/m_ii in size: of what order shifts are.
  [[nodiscard]] double scale() const {
    const std::vector<double> of_a = diagonal(a_);
    const std::vector<double> of_m = mass_ ? diagonal(*mass_) : std::vector<double>(of_a.size(), 1);
    double most = 0;
    for (std::size_t i = 0; i < of_a.size(); ++i)
      most = std::max(most, std::abs(of_a[i]) / of_m[i]);
    return most > 0 && std::isfinite(most) ? most : 1;
  }

 private:
  [[nodiscard]] const SparseMatrix& factored() const { return mass_ ? matrix_ : a_; }
  [[nodiscard]] static std::vector<double> diagonal(const SparseMatrix& m) {
    std::vector<double> diagonal(at(m.rows), 0);
    for (std::int64_t i = 0; i < m.rows; ++i)
      for (std::int64_t e = m.start[at(i)]; e < m.start[at(i + 1)]; ++e)
        if (m.column[at(e)] == i) diagonal[at(i)] = m.value[at(e)];
    return diagonal;
  }

  SparseMatrix a_;
  std::optional<SparseMatrix> mass_;
  SparseCholeskyOptions options_;
  SparseMatrix matrix_;  // A − σ·M, where there is an M
  double sigma_ = 0;
  std::unique_ptr<SparseCholesky> factor_;
  std::int64_t factorizations_ = 0;
};

/// σ below the spectrum: as given, 0, or steps of a hundred downwards from a small share of A.
void find_sigma(ShiftedPencil& pencil, const std::optional<double>& given) {
  if (given) {
    require(std::isfinite(*given), ErrorKind::misuse, kWhere, "a sigma of {}", *given);
    const bool found = pencil.factor_at(*given);
    const FactorInfo& info = pencil.factor().info();
    require(found, ErrorKind::numerical, kWhere,
            "sigma = {:.6g} is not below all eigenvalues: A - sigma*M is {}; a smaller one would "
            "do, or none",
            *given,
            info.ok ? "singular to rounding"
                    : fmt::format("not positive definite (pivot {} is {:.3g}, counted from 0)",
                                  info.first_bad_pivot, info.bad_pivot));
    return;
  }
  if (pencil.factor_at(0)) return;
  constexpr double kFirst = 1e-6;
  constexpr double kStep = 100;
  const double scale = pencil.scale();
  for (double share = kFirst; share < 1e9; share *= kStep)
    if (pencil.factor_at(-share * scale)) return;
  fail(ErrorKind::numerical, kWhere,
       "no sigma was found below the eigenvalues: {:.3g} is not; --sigma gives one",
       pencil.sigma());
}

/// v of length 1, with what is known of it.
struct Pair {
  double value = 0;
  double bound = 0;
  double residual = 0;
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
  DenseBlock mx(n, k);
  crew.share(k, [&](std::int64_t j) {
    const auto times_mass = [&] {
      const std::span<double> to(mx.column(j), at(n));
      if (pencil.mass() != nullptr)
        multiply(*pencil.mass(), {x.column(j), at(n)}, to);
      else
        std::copy_n(x.column(j), n, to.begin());
    };
    times_mass();
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
  require(factor.info().ok, ErrorKind::numerical, kWhere,
          "M is not positive definite: pivot {} is {:.3g}, counted from 0; the mass of each "
          "unknown has to be positive",
          factor.info().first_bad_pivot, factor.info().bad_pivot);
}

/// Sorted, with what is certified of them.
void certify(const ShiftedPencil& pencil, MatrixView<double> vectors, double tolerance,
             WorkCrew& crew, ShiftInvertInfo& info) {
  const std::vector<Pair> pairs = certified_pairs(pencil, vectors, info.lost, crew);
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
    info.converged += pair.bound <= tolerance * (pair.value - pencil.sigma()) ? 1 : 0;
  }
  DenseBlock mv(vectors.rows, vectors.cols);
  crew.share(vectors.cols, [&](std::int64_t j) {
    const std::span<const double> x(vectors.column(j), at(vectors.rows));
    if (pencil.mass() != nullptr)
      multiply(*pencil.mass(), x, {mv.column(j), at(vectors.rows)});
    else
      std::copy(x.begin(), x.end(), mv.column(j));
  });
  const SquareMatrix<double> h = products(vectors, std::as_const(mv).view(), crew);
  for (std::int64_t j = 0; j < h.n; ++j)
    for (std::int64_t i = 0; i <= j; ++i)
      info.orthogonality = std::max(info.orthogonality, std::abs(h(i, j) - (i == j ? 1 : 0)));
}

/// A σ nearer to what was found, if that was looked for and is far off; whether there is one.
bool move_nearer(ShiftedPencil& pencil, const std::vector<double>& theta) {
  const double first = 1 / theta.front();  // above σ
  const double spread = 1 / theta.back() - first;
  if (first <= 10 * spread || !(first > 0)) return false;
  const double before = pencil.sigma();
  const double sigma = before + first - std::max(spread, 1e-4 * first);
  if (pencil.factor_at(sigma)) return true;
  (void)pencil.factor_at(before);
  return false;
}

void check(const SparseMatrix& a, MatrixView<double> vectors, const ShiftInvertOptions& options) {
  const std::int64_t n = a.rows;
  require(options.k >= 1 && options.k <= n, ErrorKind::misuse, kWhere,
          "{} eigenpairs of a matrix of order {}: at least one, and no more than its order",
          options.k, n);
  require(vectors.rows == n && vectors.cols == options.k, ErrorKind::misuse, kWhere,
          "vectors of {} by {} do not fit {} of order {}", vectors.rows, vectors.cols, options.k,
          n);
  require(options.tolerance > 0 && std::isfinite(options.tolerance) && options.restarts_max >= 1 &&
              options.basis_size >= 0,
          ErrorKind::misuse, kWhere, "a tolerance of {} in {} restarts of {} vectors is none",
          options.tolerance, options.restarts_max, options.basis_size);
  require(options.factoring.precision == Element::fp64, ErrorKind::misuse, kWhere,
          "eigenpairs by a factor take one in fp64");
}

std::optional<SparseMatrix> checked_mass(const SparseMatrix* mass, std::int64_t n,
                                         const SparseCholeskyOptions& options) {
  if (mass == nullptr) return std::nullopt;
  require(mass->rows == n && mass->cols == n, ErrorKind::misuse, kWhere,
          "M of {} by {} beside A of order {}", mass->rows, mass->cols, n);
  SparseMatrix m = symmetric_part(*mass, "M");
  require_definite_mass(m, options);
  return m;
}

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
  if (!found)
    return fmt::format(
        "after {} restarts the estimated residuals are up to {:.1e} of the values: more restarts, "
        "or a larger basis, may do",
        info.restarts, lanczos.residual());
  return fmt::format(
      "{} of {} pairs have bounds within {:.1e} of their distance to sigma: that is what A, as it "
      "is conditioned, lets be known",
      info.converged, options.k, options.tolerance);
}

}  // namespace

ShiftInvertInfo smallest_eigenpairs(const SparseMatrix& a, const SparseMatrix* mass,
                                    MatrixView<double> vectors, const ShiftInvertOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t n = a.rows;
  check(a, vectors, options);
  WorkCrew crew(describe_host().compute_queues - 1);
  ShiftedPencil pencil(symmetric_part(a, "A"), checked_mass(mass, n, options.factoring),
                       options.factoring);
  find_sigma(pencil, options.sigma);
  const auto keep_going = [&, progress = options.factoring.run.progress] {
    if (!progress) return;
    Progress state{.what = "eigs"};
    state.seconds = seconds_since(start);
    if (!progress(state)) fail(ErrorKind::cancelled, kWhere, "cancelled between two blocks");
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
  const bool turned = turn(pencil, lanczos->mass_vectors(), vectors, crew);
  if (turned) certify(pencil, vectors, options.tolerance, crew, info);
  for (std::int64_t j = 0; j < options.k && !turned; ++j) std::fill_n(vectors.column(j), n, 0.0);
  info.sigma = pencil.sigma();
  info.factor = pencil.factor().info();
  info.factorizations = pencil.factorizations();
  info.restarts = lanczos->restarts();
  info.solves += lanczos->solves() + options.k;
  info.report = pencil.factor().report();
  info.solve_report = pencil.factor().solves();
  info.ok = turned && found && info.converged == options.k;
  if (!info.ok) info.why = why_not(info, *lanczos, turned, found, options);
  info.seconds = seconds_since(start);
  return info;
}

}  // namespace strata
