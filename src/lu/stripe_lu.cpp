// The public calls of strata/stripe_lu.hpp.
//
// Method: B is carried along, and back substitution gives the first X. It is refined and certified
// as a solution with weak factors is (certified_solve.hpp): by plain steps, else by GMRES with the
// factors as preconditioner. Whatever the pivots were, X is handed out only with the backward error
// of a stable elimination; that error is measured with A itself.

#include "strata/stripe_lu.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "lu/certified_solve.hpp"
#include "lu/stripe_factor.hpp"
#include "matrix/array_columns.hpp"
#include "session/budget.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

constexpr const char* kMetaZigzag = "meta-zigzag";

/// The number that follows a word; 0 if there is no such one.
std::int64_t number_behind(const std::string& word, const std::string& name) {
  if (!name.starts_with(word)) return 0;
  std::int64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [behind, error] = std::from_chars(name.data() + word.size(), end, number);
  return error == std::errc() && behind == end ? number : 0;
}

/// Blocks of a matrix that comes by rows. Those of a stripe are asked for one after another: it is
/// kept until another one is.
template <class W>
class StripesOfSource {
 public:
  explicit StripesOfSource(const SlabbedMatrix<W>& a) : a_(a) {}

  void operator()(const BlockExtent& extent, std::byte* to) {
    const std::lock_guard lock(mutex_);
    const std::int64_t n = a_.n();
    if (extent.row != row_) {
      row_ = -1;
      rows_.resize(at(extent.rows * n));
      a_.read(extent.row, extent.rows, rows_.data());
      row_ = extent.row;
    }
    W* packed = reinterpret_cast<W*>(to);
    for (std::int64_t j = 0; j < extent.cols; ++j)
      for (std::int64_t i = 0; i < extent.rows; ++i)
        packed[i + j * extent.rows] = rows_[at(i * n + extent.col + j)];
  }

 private:
  const SlabbedMatrix<W>& a_;
  std::mutex mutex_;
  std::int64_t row_ = -1;
  std::vector<W> rows_;
};

template <class W>
BlockSource blocks_of(const SlabbedMatrix<W>& a) {
  if (a.in_memory()) return source_of_view<W>(a.whole().data, a.whole().ld, false);
  const auto stripes = std::make_shared<StripesOfSource<W>>(a);
  return [stripes](const BlockExtent& extent, std::byte* to) { (*stripes)(extent, to); };
}

std::string refusal_of(const LuInfo& info) {
  if (info.zero_pivot >= 0)
    return fmt::format(
        "the pivot of column {} is zero among the rows where it is searched: use partial pivoting",
        info.zero_pivot);
  if (info.not_finite >= 0)
    return fmt::format("column {} holds a number that is not finite", info.not_finite);
  return {};
}

/// Backward errors that no refinement brings down are those of bad factors.
std::string refusal_of(const Certificate& c, double growth, std::int64_t n) {
  const double wanted = 4 * 0x1p-52 * std::sqrt(static_cast<double>(std::max<std::int64_t>(n, 16)));
  if (c.backward_error <= wanted) return {};
  return fmt::format(
      "elements grew {:.1e} times, and refinement ends at a backward error of {:.1e}: use partial "
      "pivoting",
      growth, c.backward_error);
}

/// What is known of X without its condition.
template <class W>
void measure(const ScaledSystem<W>& system, MatrixView<const W> x, Certificate& c) {
  const std::int64_t n = system.n();
  MeasuredColumns<W> m(n, x.cols);
  DenseBlock sizes(n, x.cols);
  for (std::int64_t j = 0; j < x.cols; ++j) {
    for (std::int64_t i = 0; i < n; ++i) {
      sizes.column(j)[i] = std::abs(x(i, j));
      m.terms.column(j)[i] = std::abs(system.b()(i, j));
    }
  }
  if (worth_long_residuals(n, x.cols)) {
    system.a().residual_dd(system.b(), x, m.r.view());
    m.hidden = 0;
  } else {
    copy_columns<W, W>(system.b(), m.r.view());
    system.a().residual(false, x, m.r.view());
  }
  system.a().add_magnitudes(std::as_const(sizes).view(), m.terms.view());
  m.find_errors(system.norm_inf(), system.b(), x);
  set_backward_errors(m, system.loss(), c);
}

/// From L⁻¹·P·B, which was carried along.
template <class W>
void finish(const ScaledSystem<W>& system, StripeFactor<W>& factor, DenseBlockOf<W> carried,
            bool refines, MatrixView<W> x, StripeSolveResult& result) {
  accumulate(result.solve, factor.solve(carried.view(), StripeSweeps::backward));
  if (!refines) {
    measure<W>(system, std::as_const(carried).view(), result.certificate);
    return write_back(carried, system, x);
  }
  bool is_first = true;
  const auto inverse = [&](MatrixView<const W> v, bool adjoint) {
    if (std::exchange(is_first, false)) return carried;  // that of B
    const StripeSweeps sweeps = adjoint ? StripeSweeps::adjoint : StripeSweeps::both;
    return solved_in_range<W>(
        [&](MatrixView<W> r) { accumulate(result.solve, factor.solve(r, sweeps)); }, v);
  };
  CertifiedSolution<W> solution(inverse, system, result, nullptr, inverse);
  const DenseBlockOf<W>& y = solution.solve();
  result.refusal = refusal_of(result.certificate, result.info.growth, system.n());
  if (result.refusal.empty()) write_back(y, system, x);
}

template <class W>
StripeSolveResult solve_stripes(const SlabbedMatrix<W>& a, MatrixView<const W> b, MatrixView<W> x,
                                const StripeOptions& stripes) {
  const auto start = std::chrono::steady_clock::now();
  check_solve_shapes(MatrixView<const W>{nullptr, a.n(), a.n(), std::max<std::int64_t>(a.n(), 1)},
                     b, x);
  const ScaledSystem<W> system(a, b, element_of<W>);
  StripeFactor<W> factor(a.n(), b.cols, stripes);
  StripeSolveResult result;
  DenseBlockOf<W> carried(b.rows, b.cols);
  copy_columns<W, W>(system.b(), carried.view());
  (void)factor.factor(blocks_of(system.a()), system.largest(), carried.view());
  set_factor(factor.info(), factor.report(), result);
  result.factor_precision = element_of<W>;
  result.stripe = factor.problem().stripe;
  result.largest_multiplier = factor.largest_multiplier();
  result.how = factor.how();
  result.refusal = refusal_of(factor.info());
  if (result.refusal.empty())
    finish<W>(system, factor, std::move(carried), stripes.refines && !stripes.gauss, x, result);
  Certificate& c = result.certificate;
  const double rows = static_cast<double>(std::max<std::int64_t>(a.n(), 1));
  result.hpl_residual = c.backward_error / (0x1p-53 * rows);
  c.precision = element_of<W>;
  c.bytes_moved = result.factor.traffic.total() + result.solve.traffic.total();
  c.seconds = seconds_since(start);
  return result;
}

template <class W>
SlabbedMatrix<W> whole_matrix(MatrixView<const W> a) {
  require(a.rows == a.cols, ErrorKind::misuse, "solve", "a {} by {} matrix is not square", a.rows,
          a.cols);
  return SlabbedMatrix<W>(a);
}

template <class W>
SlabbedMatrix<W> matrix_by_rows(const MatrixSource<W>& a) {
  require(a.n >= 0 && (a.fill != nullptr || a.n == 0), ErrorKind::misuse, "solve",
          "there is no source of a matrix of order {}", a.n);
  require(a.by_rows, ErrorKind::misuse, "solve",
          "stripes are rows: a matrix of order {} that comes by columns has none", a.n);
  constexpr std::int64_t kSlabBytes = std::int64_t{16} << 20;
  return {a.n, true, kSlabBytes / (std::max<std::int64_t>(a.n, 1) * std::int64_t{sizeof(W)}),
          a.fill};
}

}  // namespace

std::string order_name(const StripeOptions& stripes) {
  switch (stripes.order) {
    case StripeOrder::basic: return "basic";
    case StripeOrder::zigzag: return "zigzag";
    default: return fmt::format("{}:{}", kMetaZigzag, stripes.meta);
  }
}

void set_order(const std::string& name, StripeOptions& stripes) {
  if (name == "basic" || name == "zigzag") {
    stripes.order = name == "basic" ? StripeOrder::basic : StripeOrder::zigzag;
    return;
  }
  const std::int64_t meta = number_behind(std::string(kMetaZigzag) + ':', name);
  require(meta >= 1, ErrorKind::misuse, "options",
          "'{}' is no order of stripes: use basic, zigzag or {}:K with K stripes at once", name,
          kMetaZigzag);
  stripes.order = StripeOrder::meta_zigzag;
  stripes.meta = meta;
}

void set_pivoting(const std::string& name, StripeOptions& stripes) {
  constexpr std::int64_t kPairColumns = 64;  // products of so many are near the rate of a CPU
  const std::int64_t rows = number_behind("local:", name);
  const std::int64_t columns = name == "pairwise" ? kPairColumns : number_behind("pairwise:", name);
  require(rows >= 1 || columns >= 1 || name == "none", ErrorKind::misuse, "options",
          "'{}' is no way to search pivots of stripes: use none, local:ROWS or pairwise[:COLUMNS]",
          name);
  stripes.substripe = rows;
  stripes.pair_columns = columns;
}

StripeSolveResult solve_by_stripes(ConstArrayRef a, ConstArrayRef b, ArrayRef x,
                                   const StripeOptions& stripes) {
  return with_wide(b, x, [&]<class W>(MatrixView<const W> right, MatrixView<W> out) {
    const ReadColumns<W> of(a, "solve");
    return solve_stripes(whole_matrix(of.view()), right, out, stripes);
  });
}
StripeSolveResult solve_by_stripes(const MatrixSource<double>& a, ConstArrayRef b, ArrayRef x,
                                   const StripeOptions& stripes) {
  return with_wide<double>(b, x, [&](auto right, auto out) {
    return solve_stripes(matrix_by_rows(a), right, out, stripes);
  });
}
StripeSolveResult solve_by_stripes(const MatrixSource<std::complex<double>>& a, ConstArrayRef b,
                                   ArrayRef x, const StripeOptions& stripes) {
  return with_wide<std::complex<double>>(b, x, [&](auto right, auto out) {
    return solve_stripes(matrix_by_rows(a), right, out, stripes);
  });
}

RunReport simulate_stripes(std::int64_t n, const Machine& machine, const StripeOptions& stripes,
                           Element precision, std::int64_t rhs) {
  const StripeProblem problem = stripe_problem(n, precision, rhs, machine, stripes);
  PlannedRun planned = plan_stripes(problem, machine, stripes);
  if (!problem.in_storage) check_host_memory(planned, stripes.run, "lu");
  return make_simulated_report(std::move(planned));
}

}  // namespace strata
