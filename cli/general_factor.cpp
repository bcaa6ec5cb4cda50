// strata factor A -o DIR of a dense A by LU, and strata solve DIR b -o x with what it wrote.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "cli/dense_system.hpp"
#include "cli/general_solve.hpp"
#include "cli/sparse.hpp"
#include "scalar/complex.hpp"

namespace strata::cli {
namespace {

/// A of a file row by row, in W: what is stored where that is as it should be, else a copy.
template <class W>
FactoredView<W> matrix_in(const MatrixFile& file, const std::string& triangle) {
  require_square(file);
  if (!triangle.empty()) check_triangle(file, triangle);
  if (!file.is_single()) return declared_view(file.stored<W>(), file, triangle);
  const MatrixView<const NarrowOf<W>> narrow = file.stored<NarrowOf<W>>();
  FactoredView<NarrowOf<W>> declared = declared_view(narrow, file, triangle);
  FactoredView<W> wide;
  wide.copy = {{}, narrow.rows, narrow.cols};
  for (std::int64_t j = 0; j < narrow.cols; ++j)
    wide.copy.values.insert(wide.copy.values.end(), declared.view.column(j),
                            declared.view.column(j) + narrow.rows);
  wide.view = std::as_const(wide.copy).view();
  return wide;
}

void print_factor(const GeneralFactor& factor, const GeneralSolveResult& known, bool complex) {
  print_condition(known.certificate.scaled_condition, kRowsAndColumns);
  fmt::print("  growth            {:.3g} of elements in elimination\n", factor.info().growth);
  print_lu_determinant(factor.info().determinant, known.log_determinant_error, complex);
  fmt::print("  host memory       {} planned\n", format_bytes(factor.report().host_bytes));
}

template <class W>
int factor_in(const MatrixFile& file, const GeneralFactorArguments& arguments,
              const CommonOptions& common) {
  const FactoredView<W> a = matrix_in<W>(file, arguments.triangle);
  check_interrupt();
  const Element precision = arguments.precision == "fp32" ? Element::fp32 : Element::fp64;
  GeneralFactor factor = factor_general(a.view, precision, common.to_options());
  const LuInfo& info = factor.info();
  Json object = to_json(factor.report());
  object["method"] = "lu";
  object["why"] = arguments.why;
  object["precision"] = to_string(factor.precision());
  object["factor"] = json_of_outcome(info, is_complex_v<W>);
  if (!info.ok)
    return report_failure(common, "factor: " + why_no_factor(info, file.path(), factor.precision()),
                          object);
  // What is known of any solution: of none.
  const DenseMatrix<W> none{{}, factor.n(), 0};
  DenseMatrix<W> no_x{{}, factor.n(), 0};
  const GeneralSolveResult known = factor.solve(a.view, none.view(), no_x.view());
  const double condition = known.certificate.scaled_condition;
  const bool singular = numerically_singular(condition, Element::fp64);
  object["log_determinant_error"] = number(known.log_determinant_error);
  object["scaled_condition"] = number(condition);
  object["numerically_singular"] = singular;
  ReportData data;
  data.title = fmt::format("A factor of order {} by LU", factor.n());
  data.subtitle = fmt::format("{}, in {}", file.path(), to_string(factor.precision()));
  data.figures = {{"Log determinant", fmt::format("{:.8g}", info.determinant.log()), "", ""}};
  data.run = factor.report();
  begin_output();
  factor.save(arguments.output);
  const int status = finish(common, std::move(data), object, [&] {
    const RunReport& run = factor.report();
    fmt::print("factored order {} in {} with {} (panel {}, {})\n", factor.n(),
               to_string(factor.precision()), fmt::join(run.devices, ", "), run.tile, run.policy);
    fmt::print("  method            LU: {}\n", arguments.why);
    print_factor(factor, known, is_complex_v<W>);
    fmt::print("  factor            {:.3g} s, {:.1f} GFLOP/s\n", run.seconds,
               run.seconds > 0 ? run.flops / run.seconds / 1e9 : 0);
    print_traffic(run);
    fmt::print("factor written to {}\n", arguments.output);
  });
  return singular ? report_singular(condition, Element::fp64, true, kRowsAndColumns) : status;
}

template <class W>
int solve_saved_in(GeneralFactor factor, const MatrixFile& rhs,
                   const std::optional<MatrixFile>& file, const SavedSolve& system,
                   const CommonOptions& common) {
  const auto start = std::chrono::steady_clock::now();
  const DenseMatrix<W> b = columns_of<W>(rhs, false);
  DenseMatrix<W> x{std::vector<W>(b.values.size()), b.rows, b.cols};
  GeneralSolveResult told;
  Certificate& c = told.certificate;
  const LuInfo& info = factor.info();
  if (file) {
    const FactoredView<W> a = matrix_in<W>(*file, system.triangle);
    check_interrupt();
    told = factor.solve(a.view, b.view(), x.view());
  } else {
    told.solve = factor.solve(b.view(), x.view());
    c.backward_error = c.componentwise_backward_error = c.scaled_condition;  // unknown
    c.scaled_condition = factor.scaled_condition();
    told.log_determinant_error = factor.log_determinant_error();
    c.bytes_moved = told.solve.traffic.total();
    c.precision = element_of<W>;
  }
  c.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // Without A nothing refines what a factor in fp32 solves.
  const Element line = file ? Element::fp64 : factor.precision();
  const bool singular =
      !std::isnan(c.scaled_condition) && numerically_singular(c.scaled_condition, line);
  Json object{{"n", factor.n()}, {"host_bytes", factor.report().host_bytes}};
  object["method"] = "lu";
  object["precision"] = to_string(factor.precision());
  object["factor"] = json_of_outcome(info, is_complex_v<W>);
  object["certificate"] = to_json(c);
  object["solve"] = to_json(told.solve);
  Certificate of_factor = c;
  of_factor.precision = singular ? line : factor.precision();
  const SolutionCheck check{of_factor, b.rows, singular, true, kRowsAndColumns};
  object["log_determinant_error"] = number(told.log_determinant_error);
  if (!std::isnan(c.scaled_condition)) object["numerically_singular"] = singular;
  if (file) {
    object["gmres_iterations"] = told.gmres_iterations;
    add_to_json(check, object);
  }
  ReportData data;
  data.title = fmt::format("A system of {}, solved", counted(b.rows, "unknown"));
  data.subtitle = fmt::format("{} with {}, by a factor by LU in {}", system.factor, rhs.path(),
                              to_string(factor.precision()));
  if (file)
    data.figures = {
        {"Backward error", fmt::format("{:.1e}", rounded_up(c.backward_error)), "", ""}};
  begin_output();
  const bool finite = std::all_of(x.values.begin(), x.values.end(), is_finite<W>);
  write_solution(system.output, std::move(x), rhs, false);
  const int status = finish(common, std::move(data), object, [&] {
    fmt::print("solved {}, {}, by a factor in {}, as it was saved\n",
               counted(factor.n(), "unknown"), counted(rhs.cols(), "right-hand side"),
               to_string(factor.precision()));
    fmt::print("  method            LU\n");
    if (file) {
      print_certificate(c, kRowsAndColumns);
      fmt::print("  refinement steps  {}\n", c.refinement_steps);
      if (told.gmres_iterations > 0)
        fmt::print("  GMRES             {}\n", counted(told.gmres_iterations, "iteration"));
    } else {
      fmt::print("  backward error    unknown: it takes A, which --matrix names\n");
      print_condition(c.scaled_condition, kRowsAndColumns);
    }
    fmt::print("  growth            {:.3g} of elements in elimination\n", info.growth);
    print_lu_determinant(info.determinant, told.log_determinant_error, is_complex_v<W>);
    fmt::print("  total             {:.3g} s\nx written to {}\n", c.seconds, system.output);
  });
  if (!finite) return report_out_of_range(Element::fp64);
  return file || singular ? report_solution(check) : status;
}

}  // namespace

int run_general_factor(const MatrixFile& file, const GeneralFactorArguments& arguments,
                       const CommonOptions& common) {
  return file.is_complex() ? factor_in<std::complex<double>>(file, arguments, common)
                           : factor_in<double>(file, arguments, common);
}

int run_saved_solve(const SavedSolve& system, const CommonOptions& common) {
  const MatrixFile rhs(system.rhs);
  std::optional<MatrixFile> matrix;
  if (!system.matrix.empty()) matrix.emplace(system.matrix);
  check_interrupt();
  GeneralFactor factor = GeneralFactor::open(system.factor, common.to_options());
  check_interrupt();
  const bool complex = is_complex(factor.precision());
  require(rhs.rows() == factor.n(), ErrorKind::misuse, "solve",
          "{} has {} rows and {} is of order {}", rhs.path(), rhs.rows(), system.factor,
          factor.n());
  if (matrix) {
    require(matrix->rows() == factor.n() && matrix->cols() == factor.n() &&
                matrix->is_complex() == complex,
            ErrorKind::misuse, "solve",
            "{} is {} by {}, of {} numbers, and {} is of order {}, of {} ones", matrix->path(),
            matrix->rows(), matrix->cols(), matrix->is_complex() ? "complex" : "real",
            system.factor, factor.n(), complex ? "complex" : "real");
  }
  return complex
             ? solve_saved_in<std::complex<double>>(std::move(factor), rhs, matrix, system, common)
             : solve_saved_in<double>(std::move(factor), rhs, matrix, system, common);
}

}  // namespace strata::cli
