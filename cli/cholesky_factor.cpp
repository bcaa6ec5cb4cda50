// strata factor A -o DIR --method cholesky --storage of a dense A, and strata solve and logdet with
// what it wrote.

#include "cli/cholesky_factor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "cli/dense_system.hpp"
#include "cli/sparse.hpp"
#include "scalar/complex.hpp"

namespace strata::cli {
namespace {

/// A of a file that host memory need not hold, as it lies there; its lower triangle is factored.
template <class A>
MatrixView<const A> view_in_place(const MatrixFile& file, const std::string& triangle, bool differs,
                                  const char* what) {
  const char* in_place = file.transposed() ? "upper" : "lower";
  const char* by = file.transposed() ? "rows" : "columns";
  require(triangle.empty() || triangle == in_place, ErrorKind::input, what,
          "{}: --triangle {}: of a file by {} the {} triangle can be factored where it lies",
          file.path(), triangle, by, in_place);
  require(!triangle.empty() || !differs || !file.transposed(), ErrorKind::input, what,
          "{}: elements that mirror each other differ by rounding, and the file is by rows: "
          "--triangle upper takes those above the diagonal",
          file.path());
  require(!is_complex_v<A> || !file.transposed(), ErrorKind::input, what,
          "{}: a Hermitian matrix that rests in storage is taken by columns (Fortran's order), and "
          "this file is by rows",
          file.path());
  return file.stored<A>();
}

GivenTriangles given_of(const MatrixFile& file, const std::string& triangle) {
  return check_symmetric(file, triangle) ? GivenTriangles::both : GivenTriangles::lower;
}

/// use(what is stored of A), in the numbers of the file.
template <class Use>
auto with_stored(const MatrixFile& file, const std::string& triangle, GivenTriangles given,
                 const char* what, const Use& use) {
  const bool differs = given == GivenTriangles::both;
  if (file.is_complex())
    return file.is_single()
               ? use(view_in_place<std::complex<float>>(file, triangle, differs, what))
               : use(view_in_place<std::complex<double>>(file, triangle, differs, what));
  return file.is_single() ? use(view_in_place<float>(file, triangle, differs, what))
                          : use(view_in_place<double>(file, triangle, differs, what));
}

/// use(T{}) for the numbers of a factor.
template <class W, class Use>
auto in_precision(const CholeskyFactor& factor, const Use& use) {
  return element_of_parts(factor.precision()) == Element::fp64 ? use(W{}) : use(NarrowOf<W>{});
}

/// What is known of a factor by its A, and by a solution with it: that of a file which was written
/// to while it was factored, and is again as it was before, has tiles of both.
template <class A>
SolveResult known_of(CholeskyFactor& factor, MatrixView<const A> a, GivenTriangles given) {
  using W = WideOf<A>;
  return in_precision<W>(factor, [&]<class T>(T) {
    DenseMatrix<W> b{{}, a.rows, a.rows > 0 ? 1 : 0};
    for (std::int64_t i = 0; i < a.rows; ++i)
      b.values.push_back(static_cast<W>(i % 3 == 0 ? -1 : 1));
    DenseMatrix<T> x{std::vector<T>(b.values.size()), b.rows, b.cols};
    return solve(factor, a, std::as_const(b).view(), x.view(), given);
  });
}

void print_log_determinant(double value, double error) {
  fmt::print("  log determinant   {:.15g}{}\n", value, text_of_error(error));
}

int report_factored(const MatrixFile& file, CholeskyFactor factor, const SolveResult& known,
                    const CholeskyFactorArguments& arguments, Json object,
                    const CommonOptions& common) {
  const StoredParts stored = factor.stored();
  const double condition = known.certificate.scaled_condition;
  const bool singular = numerically_singular(condition, factor.precision());
  object["log_determinant_error"] = number(known.log_determinant_error);
  object["scaled_condition"] = number(condition);
  object["numerically_singular"] = singular;
  begin_output();
  if (!singular) factor.save(arguments.output);
  ReportData data;
  data.title = fmt::format("A factor of order {} by Cholesky", factor.n());
  data.subtitle = fmt::format("{}, in {}", file.path(), to_string(factor.precision()));
  data.figures = {
      {"Log determinant", fmt::format("{:.8g}", factor.info().log_determinant), "", ""}};
  data.run = factor.report();
  const int status = finish(common, std::move(data), object, [&] {
    const RunReport& run = factor.report();
    fmt::print("factored order {} in {} with {} (tile {}, {})\n", factor.n(),
               to_string(factor.precision()), fmt::join(run.devices, ", "), run.tile, run.policy);
    fmt::print("  method            Cholesky\n");
    print_condition(condition);
    print_log_determinant(factor.info().log_determinant, known.log_determinant_error);
    if (stored.found > 0)
      fmt::print("  found             {} of {} tiles, from a run before\n", stored.found,
                 stored.count);
    fmt::print("  factor            {:.3g} s, {:.1f} GFLOP/s\n", run.seconds,
               run.seconds > 0 ? run.flops / run.seconds / 1e9 : 0);
    print_traffic(run);
    if (singular)
      fmt::print("no factor written: no digit of what it solves is sure\n");
    else
      fmt::print("factor written to {}\n", arguments.output);
  });
  if (singular) return report_singular(condition, factor.precision(), true);
  return std::isinf(known.log_determinant_error) ? report_unknown_determinant(factor.precision())
                                                 : status;
}

/// What solutions in W are certified by; no value: it is not at hand.
struct MatrixAtHand {
  std::optional<MatrixFile> file{};
  GivenTriangles given = GivenTriangles::lower;
};

/// X in T of a factor in T; certified where A is at hand.
template <class T>
SolveResult solution_by(CholeskyFactor& factor, const MatrixAtHand& matrix,
                        const SavedSolve& system, MatrixView<const WideOf<T>> b, MatrixView<T> x) {
  if (matrix.file) {
    return with_stored(*matrix.file, system.triangle, matrix.given, "solve",
                       [&]<class A>(MatrixView<const A> a) {
                         if constexpr (is_complex_v<A> == is_complex_v<T>)
                           return solve(factor, a, b, x, matrix.given);
                         else
                           return SolveResult();  // was refused
                       });
  }
  SolveResult told;
  Certificate& c = told.certificate;
  for (std::int64_t j = 0; j < b.cols; ++j)
    std::transform(b.column(j), b.column(j) + b.rows, x.column(j),
                   [](WideOf<T> value) { return static_cast<T>(value); });
  told.solve = factor.solve(x);
  c.factor = factor.info();
  c.precision = element_of<T>;
  c.backward_error = c.componentwise_backward_error = std::numeric_limits<double>::quiet_NaN();
  c.scaled_condition = factor.scaled_condition();
  told.log_determinant_error = factor.log_determinant_error();
  c.bytes_moved = told.solve.traffic.total();
  return told;
}

template <class T>
int solve_by_cholesky_in(CholeskyFactor& factor, const MatrixFile& rhs, const MatrixAtHand& matrix,
                         const SavedSolve& system, const CommonOptions& common) {
  using W = WideOf<T>;
  const auto start = std::chrono::steady_clock::now();
  const DenseMatrix<W> b = columns_of<W>(rhs, false);
  if constexpr (!std::is_same_v<T, W>) require_held_in_fp32(b.view(), rhs);
  DenseMatrix<T> x{std::vector<T>(b.values.size()), b.rows, b.cols};
  SolveResult told = solution_by<T>(factor, matrix, system, b.view(), x.view());
  Certificate& c = told.certificate;
  c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool certified = matrix.file.has_value();
  const bool singular =
      !std::isnan(c.scaled_condition) && numerically_singular(c.scaled_condition, c.precision);
  Json object{{"n", factor.n()},
              {"method", "cholesky"},
              {"precision", to_string(factor.precision())},
              {"factor", to_json(factor.info())},
              {"certificate", to_json(c)},
              {"solve", to_json(told.solve)},
              {"log_determinant_error", number(told.log_determinant_error)}};
  if (!std::isnan(c.scaled_condition)) object["numerically_singular"] = singular;
  const SolutionCheck check{c, b.rows, singular, false};
  if (certified) add_to_json(check, object);
  ReportData data;
  data.title = fmt::format("A system of {}, solved", counted(b.rows, "unknown"));
  data.subtitle = fmt::format("{} with {}, by a factor by Cholesky in {}", system.factor,
                              rhs.path(), to_string(factor.precision()));
  if (certified)
    data.figures = {
        {"Backward error", fmt::format("{:.1e}", rounded_up(c.backward_error)), "", ""}};
  begin_output();
  const bool finite = std::all_of(x.values.begin(), x.values.end(), is_finite<T>);
  write_solution(system.output, std::move(x), rhs, false);
  const int status = finish(common, std::move(data), object, [&] {
    fmt::print("solved {}, {}, by a factor in {}, as it was saved\n",
               counted(factor.n(), "unknown"), counted(rhs.cols(), "right-hand side"),
               to_string(factor.precision()));
    fmt::print("  method            Cholesky\n");
    if (certified) {
      print_certificate(c);
      fmt::print("  refinement steps  {}\n", c.refinement_steps);
    } else {
      fmt::print("  backward error    unknown: it takes A, which --matrix names\n");
      print_condition(c.scaled_condition);
    }
    print_log_determinant(factor.info().log_determinant, told.log_determinant_error);
    fmt::print("  total             {:.3g} s\nx written to {}\n", c.seconds, system.output);
  });
  if (!finite) return report_out_of_range(c.precision);
  return certified || singular ? report_solution(check) : status;
}

}  // namespace

std::string text_of_error(double error) {
  if (std::isnan(error)) return "";
  if (!std::isfinite(error)) return ", of which not a digit is known";
  return fmt::format(" ± {:.1e}", rounded_up(error));
}

int run_cholesky_factor(const CholeskyFactorArguments& arguments, const CommonOptions& common) {
  const MatrixFile file(arguments.matrix);
  check_interrupt();
  CholeskyOptions options = common.cholesky_options();
  options.run.storage.directories = storage_directories(arguments.storage);
  options.run.storage.resume = arguments.resume;
  if (!options.run.storage.used()) options.run.storage.directories = {arguments.output};
  const GivenTriangles given = given_of(file, arguments.triangle);
  return with_stored(
      file, arguments.triangle, given, "factor", [&]<class A>(MatrixView<const A> a) {
        if (arguments.precision == "fp32") require_held_in_fp32(a, file);
        check_interrupt();
        CholeskyFactor factor =
            cholesky(a, arguments.precision == "fp32" ? Element::fp32 : Element::fp64, options);
        const StoredParts stored = factor.stored();
        Json directories = Json::array();
        for (const std::string& directory : options.run.storage.directories)
          directories.push_back(directory);
        Json object = to_json(factor.report());
        object["method"] = "cholesky";
        object["precision"] = to_string(factor.precision());
        object["factor"] = to_json(factor.info());
        object["storage"] = {{"directories", directories},
                             {"tiles", stored.count},
                             {"found", stored.found},
                             {"how", stored.how}};
        if (!factor.info().ok)
          return report_failed_factor(common, factor.info(), object,
                                      failed_place(a, factor.info(), factor.precision()));
        const SolveResult known = known_of(factor, a, given);
        const double promised = backward_error_promised(factor.precision(), factor.n());
        if (factor.n() > 0 && !(known.certificate.backward_error <= promised))
          return report_failure(
              common,
              fmt::format("factor: a solution by the factor has a backward error of {:.1e}: {} "
                          "changed while it was factored",
                          rounded_up(known.certificate.backward_error), file.path()),
              object);
        return report_factored(file, std::move(factor), known, arguments, std::move(object),
                               common);
      });
}

int run_saved_cholesky_solve(const SavedSolve& system, const CommonOptions& common) {
  const MatrixFile rhs(system.rhs);
  check_interrupt();
  const CholeskyOptions options = common.cholesky_options();
  require(options.path != CholeskyPath::in_core, ErrorKind::misuse, "options",
          "a factor in storage is not made in core");
  CholeskyFactor factor = CholeskyFactor::open(system.factor, options.run);
  check_interrupt();
  const bool complex = is_complex(factor.precision());
  require(rhs.rows() == factor.n(), ErrorKind::misuse, "solve",
          "{} has {} rows and {} is of order {}", rhs.path(), rhs.rows(), system.factor,
          factor.n());
  MatrixAtHand matrix;
  if (!system.matrix.empty()) {
    const MatrixFile& file = matrix.file.emplace(system.matrix);
    require_matrix_of_factor(system, {factor.n(), complex},
                             {file.rows(), file.cols(), file.is_complex()});
    matrix.given = given_of(file, system.triangle);
  }
  const auto solve_in = [&]<class T>(T) {
    return solve_by_cholesky_in<T>(factor, rhs, matrix, system, common);
  };
  return complex ? in_precision<std::complex<double>>(factor, solve_in)
                 : in_precision<double>(factor, solve_in);
}

int run_saved_cholesky_determinant(const std::string& path, const CommonOptions& common) {
  const CholeskyFactor factor = CholeskyFactor::open(path, common.run_options());
  const double condition = factor.scaled_condition();
  const bool singular =
      !std::isnan(condition) && numerically_singular(condition, factor.precision());
  Json object{{"n", factor.n()},
              {"method", "cholesky"},
              {"precision", to_string(factor.precision())},
              {"factor", to_json(factor.info())},
              {"log_determinant", number(factor.info().log_determinant)},
              {"log_determinant_error", number(factor.log_determinant_error())},
              {"scaled_condition", number(condition)},
              {"numerically_singular", singular}};
  ReportData data;
  data.title = fmt::format("The log-determinant of a matrix of order {}", factor.n());
  data.subtitle =
      fmt::format("{}, a factor by Cholesky in {}", path, to_string(factor.precision()));
  data.figures = {
      {"Log determinant", fmt::format("{:.8g}", factor.info().log_determinant), "", ""}};
  begin_output();
  const int status = finish(common, std::move(data), object, [&] {
    fmt::print("a factor by Cholesky of order {} in {}, as it was saved\n", factor.n(),
               to_string(factor.precision()));
    print_log_determinant(factor.info().log_determinant, factor.log_determinant_error());
    print_condition(condition);
  });
  if (singular) return report_singular(condition, factor.precision(), true);
  return std::isinf(factor.log_determinant_error()) ? report_unknown_determinant(factor.precision())
                                                    : status;
}

}  // namespace strata::cli
