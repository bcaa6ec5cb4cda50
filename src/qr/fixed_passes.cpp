// Methods that are lists of passes, each by a small factorization of the Gram matrix before it.
//
// The residual is what the solves round (BackwardError), whatever R they are solves with; it is
// told where the last Gram matrix says how long the columns of Q are.
//
// Sources: beside the names of the methods in strata/qr.hpp.

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/tall/sketch.hpp"
#include "qr/methods.hpp"

namespace strata {
namespace {

/// One pass of a fixed method.
struct FixedPass {
  bool wide_sum = false;
  bool wide_solve = false;
  enum class Small : std::uint8_t {
    cholesky,
    shifted,
    eigenvalues,
    sketch,
  } small = Small::cholesky;
};

const char* name_of(decltype(FixedPass::small) small) {
  switch (small) {
    case FixedPass::Small::cholesky: return "cholesky";
    case FixedPass::Small::shifted: return "shifted cholesky";
    case FixedPass::Small::eigenvalues: return "eigenvalues";
    case FixedPass::Small::sketch: break;
  }
  return "sketch";
}

std::vector<FixedPass> passes_of(QrMethod method) {
  constexpr FixedPass kPlain{};
  constexpr FixedPass kWide{.wide_sum = true};
  switch (method) {
    case QrMethod::cholqr: return {kPlain};
    case QrMethod::cholqr2: return {kPlain, kPlain};
    case QrMethod::shifted_cholqr3: return {{.small = FixedPass::Small::shifted}, kPlain, kPlain};
    case QrMethod::svqr: return {{.small = FixedPass::Small::eigenvalues}};
    case QrMethod::cholqr_wide: return {kWide};
    case QrMethod::cholqr_wide_solve: return {{.wide_sum = true, .wide_solve = true}};
    case QrMethod::cholqr_wide2: return {kWide, kPlain};
    case QrMethod::svqr_wide: return {{.wide_sum = true, .small = FixedPass::Small::eigenvalues}};
    case QrMethod::rand_cholqr:
    case QrMethod::multi_sketch:
    case QrMethod::mrcqr:
    case QrMethod::mrcqr_fp64:
    case QrMethod::mrcqr_fp16: return {{.small = FixedPass::Small::sketch}, kPlain};
    case QrMethod::cgs:
    case QrMethod::cgs2:
    case QrMethod::mgs:
    case QrMethod::tsqr:
    case QrMethod::tsqr_flat:
    case QrMethod::automatic: break;
  }
  return {};
}

SketchKind sketch_of(QrMethod method) {
  switch (method) {
    case QrMethod::rand_cholqr: return SketchKind::gaussian;
    case QrMethod::mrcqr_fp64: return SketchKind::srht_fp64;
    case QrMethod::mrcqr_fp16: return SketchKind::srht_fp16;
    default: return SketchKind::srht_fp32;
  }
}

template <class T>
class FixedPasses {
 public:
  explicit FixedPasses(TallProblem<T>& problem) : p_(problem) {}

  void run() {
    const std::vector<FixedPass> passes = passes_of(p_.options().method);
    const bool sketched = passes[0].small == FixedPass::Small::sketch;
    Gram b = sketched ? Gram() : p_.first_gram(passes[0].wide_sum);
    bool failed = false;
    const double root = std::sqrt(static_cast<double>(p_.n()));
    for (std::size_t k = 0; k < passes.size(); ++k) {
      const FixedPass& pass = passes[k];
      const Gram r = factor_of(b, pass, failed);
      p_.info().failed_cholesky += failed ? 1 : 0;
      p_.info().shifts += pass.small == FixedPass::Small::shifted ? 1 : 0;
      const bool last = k + 1 == passes.size();
      double condition = std::numeric_limits<double>::infinity();
      typename TallProblem<T>::KnownOfSolve known;
      p_.during_next_solve([&] {
        const Condition of_r = condition_of(r, p_.zero_columns());
        if (!failed) condition = of_r.estimate;
        known.inverse = of_r.bound / root;
      });
      b = p_.solve(pass.wide_solve ? r : widened(rounded_to<T>(r)), pass.wide_solve,
                   !last || p_.options().verify, last || passes[k + 1].wide_sum, last, &known);
      p_.note_step({name_of(pass.small), pass.wide_sum, pass.wide_solve, condition}, b);
    }
    p_.tell_orthogonality(b);
    p_.info().ok = p_.info().ok && !failed;
    const double away = p_.info().orthogonality;
    if (!std::isfinite(away)) return;
    p_.tell_residual();
    p_.info().residual *=
        std::sqrt(1 + away);  // R is rounded, beside columns of Q that may be long
  }

 private:
  using Wide = typename Limits<T>::Wide;
  using Gram = SquareMatrix<DoubleDouble>;

  /// 2n rows.
  std::vector<double> sketch() {
    const std::uint32_t seed = p_.options().seed;
    if (p_.options().method == QrMethod::multi_sketch)
      return p_.runner().multi_sketch(seed, p_.scales());
    return p_.runner().sketch(sketch_variant(sketch_of(p_.options().method), seed), p_.scales());
  }

  Gram factor_of(const Gram& b, const FixedPass& pass, bool& failed) {
    failed = false;
    if (pass.small == FixedPass::Small::sketch) return sketched_factor();
    return pass.wide_sum ? widened(small_factor<Wide>(b, pass.small, failed))
                         : widened(small_factor<T>(b, pass.small, failed));
  }

  /// The triangle of a sketch of V, whose columns are scaled to lengths near 1 by powers of two.
  Gram sketched_factor() {
    // A column whose length T cannot hold, or nearly so, has an element in its sketch that is not
    // much shorter.
    constexpr double kLong = 0x1p-24 * static_cast<double>(std::numeric_limits<T>::max());
    const auto in_range = [](const std::vector<double>& s) {
      return std::all_of(s.begin(), s.end(), [](double x) { return std::abs(x) <= kLong; });
    };
    const std::int64_t rows = 2 * p_.n();
    std::vector<double> s = sketch();
    // A column of a sketch is zero as well where it has left the range of its element.
    const auto vanishes = [&](std::int64_t j) {
      const auto* column = s.data() + j * rows;
      return std::all_of(column, column + rows, [](double x) { return x == 0; });
    };
    bool again = !in_range(s);
    for (std::int64_t j = 0; j < p_.n() && !again; ++j) {
      if (!vanishes(j) || p_.is_zero(j)) continue;
      p_.mark_columns_of_zeros();
      again = !p_.is_zero(j);
    }
    if (again) {
      p_.rescale();
      s = sketch();
    }
    for (std::int64_t j = 0; j < p_.n(); ++j) {
      double* column = s.data() + j * rows;
      double largest = 0;
      for (std::int64_t i = 0; i < rows; ++i) largest = std::max(largest, std::abs(column[i]));
      int exponent = 0;
      std::frexp(largest, &exponent);
      // As far as both are numbers: a column of 1e-320 comes no nearer to 1 than that.
      const double power =
          std::min(std::ldexp(1.0, std::clamp(-exponent, -1000, 1000)), 0x1p1023 / p_.scale(j));
      for (std::int64_t i = 0; i < rows; ++i) column[i] *= power;
      p_.scale(j) *= power;
    }
    SquareMatrix<double> r = upper_factor(SquareValues<double>(s.begin(), s.end()), rows, p_.n());
    for (std::int64_t j = 0; j < p_.n(); ++j) {  // a pivot of 0 is one of rounding
      if (!p_.is_zero(j) && !(r(j, j) > 0)) r(j, j) = Limits<double>::kUnit;
    }
    return widened(r);
  }

  template <class W>
  SquareMatrix<W> small_factor(const Gram& b, FixedPass::Small kind, bool& failed) {
    SquareMatrix<W> narrow = rounded_to<W>(b);
    if (kind == FixedPass::Small::eigenvalues) {
      const double floor = std::is_same_v<W, T> ? 2 * Limits<T>::kUnit : Limits<T>::kWideEpsilon;
      SquareMatrix<W> r = factor_by_eigenvalues(narrow, floor);
      for (std::int64_t j = 0; j < p_.n(); ++j) {
        for (std::int64_t i = 0; p_.is_zero(j) && i < p_.n(); ++i) r(i, j) = r(j, i) = W(0.0F);
      }
      return r;
    }
    if (kind == FixedPass::Small::shifted) {
      const auto rows = static_cast<double>(p_.m());
      const auto columns = static_cast<double>(p_.n());
      const double shift = 11 * (rows * columns + columns * (columns + 1)) * Limits<T>::kUnit *
                           largest_eigenvalue(rounded_to<double>(b));
      for (std::int64_t j = 0; j < p_.n(); ++j)
        narrow(j, j) = narrow(j, j) + narrowed<W>(DoubleDouble(shift));
    }
    SmallCholesky<W> small = small_cholesky(std::move(narrow), BadPivot::stop, 0, p_.zeros());
    failed = small.failed_column >= 0;
    return std::move(small.r);
  }

  TallProblem<T>& p_;
};

}  // namespace

template <class T>
void run_passes(TallProblem<T>& problem) {
  FixedPasses<T>(problem).run();
}

template void run_passes(TallProblem<double>&);
template void run_passes(TallProblem<float>&);

}  // namespace strata
