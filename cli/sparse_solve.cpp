// strata solve A b -o x of a sparse A by its Cholesky factor, or with a factor that was saved.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

void require_rows(const DenseMatrix<double>& b, std::int64_t n, const std::string& rhs,
                  const std::string& matrix) {
  require(b.rows == n, ErrorKind::misuse, "solve", "{} has {} rows and {} is of order {}", rhs,
          b.rows, matrix, n);
}

/// Solves, refines where A is known, and says how good that is: NaN if it is unknown.
Certificate solve_with(const SparseFactorization& f, bool known, double scaled_condition,
                       const DenseMatrix<double>& b, DenseMatrix<double>& x) {
  x = b;
  f.factor.solve(x.view());
  check_interrupt();
  Certificate certificate;
  certificate.factor = f.factor.info();
  certificate.precision = f.factor.precision();
  certificate.backward_error = std::numeric_limits<double>::quiet_NaN();
  certificate.componentwise_backward_error = certificate.backward_error;
  if (known) certificate = refine(f.factor, f.file.matrix, b.view(), x.view(), scaled_condition);
  certificate.bytes_moved = f.factor.report().traffic.total() + f.factor.solves().traffic.total();
  return certificate;
}

void print_solve(const SparseFactorization& f, const Certificate& c, bool known,
                 std::int64_t columns) {
  const std::string system =
      f.factor.shift() == 0 ? "" : fmt::format(" of (A + {:.6g}·I)·x = b", f.factor.shift());
  fmt::print("solved {}{}, {}, by a sparse factor in {}\n", counted(f.factor.n(), "unknown"),
             system, counted(columns, "right-hand side"), to_string(f.factor.precision()));
  if (!known) return fmt::print("  backward error    unknown: it takes A, which --matrix names\n");
  print_certificate(c);
  fmt::print("  refinement steps  {}\n", c.refinement_steps);
}

bool all_finite(const DenseMatrix<double>& x) {
  return std::all_of(x.values.begin(), x.values.end(), [](double v) { return std::isfinite(v); });
}

/// Why a solution is not what was promised; empty if it is.
std::string complaint_of(const SolutionCheck& check) {
  const Certificate& c = check.certificate;
  const bool single = element_of_parts(c.precision) == Element::fp32;
  const double promised =
      backward_error_promised(check.of_factor ? Element::fp64 : c.precision, check.n);
  if (check.n == 0) return {};
  const std::string advice =
      single ? fmt::format("; {} in fp32 is not enough for this matrix: --precision fp64",
                           check.of_factor ? "a factor" : "a solution")
             : "";
  const double wanted = solution_error_wanted(check.of_factor ? Element::fp64 : c.precision);
  if (std::isinf(c.forward_error)) return fmt::format("not a digit of x is known{}", advice);
  if (c.forward_error > wanted)
    return fmt::format(
        "the error of x may be {:.1e} of its largest element, and {:.0e} is what is wanted{}",
        rounded_up(c.forward_error), wanted, advice);
  // Row by row, or as far as the condition lets x go: rows in which x is zero but for rounding have
  // no small error of their own.
  const double as_in_full = promised * std::max(1.0, c.scaled_condition);
  const bool near = c.componentwise_backward_error <= promised || c.forward_error <= as_in_full ||
                    !check.of_factor;
  if (c.backward_error <= promised && near) return {};
  return fmt::format(
      "refinement ended at a backward error of {:.2e} in the norm and {:.2e} row by row, above "
      "{:.1e}{}",
      rounded_up(c.backward_error, 3), rounded_up(c.componentwise_backward_error, 3), promised,
      check.of_factor ? advice : "");
}

}  // namespace

double backward_error_promised(Element precision, std::int64_t n) {
  const double epsilon = element_of_parts(precision) == Element::fp32
                             ? double{std::numeric_limits<float>::epsilon()}
                             : std::numeric_limits<double>::epsilon();
  return 4 * epsilon * std::sqrt(static_cast<double>(n));
}

void print_certificate(const Certificate& c, const char* scaled) {
  fmt::print("  backward error    {:.2e} in the norm, {:.2e} row by row\n",
             rounded_up(c.backward_error, 3), rounded_up(c.componentwise_backward_error, 3));
  if (std::isnan(c.forward_error)) return;
  if (std::isfinite(c.forward_error)) {
    fmt::print("  forward error     at most about {:.1e} of the largest element\n",
               rounded_up(c.forward_error));
  } else {
    fmt::print("  forward error     not a digit is known\n");
  }
  print_condition(c.scaled_condition, scaled);
}

int report_out_of_range(Element precision) {
  fmt::print(stderr, "strata: solve: numbers of x leave the range of {}\n", to_string(precision));
  return kNumbersSaidNo;
}

void add_to_json(const SolutionCheck& check, Json& object) {
  std::string why = complaint_of(check);
  if (check.singular && check.n > 0) why = "numerically singular";
  object["certificate"]["ok"] = why.empty();
  if (!why.empty()) object["certificate"]["why"] = why;
}

int report_solution(const SolutionCheck& check) {
  const Certificate& c = check.certificate;
  if (check.n == 0) return kDone;
  if (check.singular)
    return report_singular(c.scaled_condition, c.precision, check.of_factor, check.scaled);
  const std::string why = complaint_of(check);
  if (why.empty()) return kDone;
  fmt::print(stderr, "strata: solve: {}\n", why);
  return kNumbersSaidNo;
}

int run_sparse_solve(std::optional<SymmetricFile> file, const SparseSystem& system,
                     const FactorArguments& arguments, const CommonOptions& common) {
  const auto start = std::chrono::steady_clock::now();
  const DenseMatrix<double> b = read_dense(system.rhs);
  check_interrupt();
  const bool known = file || !system.matrix.empty();
  require(known || !system.condition, ErrorKind::misuse, "options",
          "--condition takes A: name it by --matrix");
  if (file) require_rows(b, file->matrix.rows, system.rhs, arguments.matrix);
  FactorArguments of_factor = arguments;
  if (!system.matrix.empty()) of_factor.triangle.clear();  // it is that of --matrix
  SparseFactorization f =
      file ? factor_file(std::move(*file), arguments, common) : read_factor(of_factor, common);
  require_rows(b, f.factor.n(), system.rhs, arguments.matrix);
  if (!system.matrix.empty()) f.file = read_symmetric(system.matrix, arguments.triangle);
  Json object = to_json(f);
  if (!f.factor.info().ok) return report_not_definite(common, f, std::move(object));
  DenseMatrix<double> x;
  const FactorQuality quality = quality_of(f, false);
  Certificate certificate = solve_with(f, known, quality.scaled_condition, b, x);
  certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double condition = system.condition ? f.factor.condition(f.file.matrix) : 0;
  object["certificate"] = to_json(certificate);
  object["certificate"]["of"] = f.factor.shift() == 0 ? "A" : "A + shift*I";
  add_to_json(quality, object);
  const SolutionCheck check{certificate, b.rows, quality.singular, true};
  if (known) add_to_json(check, object);
  if (system.condition) object["condition"] = number(condition);
  ReportData data = report_of(f);
  data.title = fmt::format("A sparse system of {}, solved", counted(b.rows, "unknown"));
  data.subtitle = fmt::format("{} with {}; {}", arguments.matrix, system.rhs, data.subtitle);
  if (known)
    data.figures.insert(
        data.figures.begin(),
        {"Backward error", fmt::format("{:.1e}", rounded_up(certificate.backward_error)), "", ""});
  begin_output();
  write_dense(system.output, std::as_const(x).view(), b.dimensions);
  add_solves(f, object);
  const int status = finish(common, std::move(data), object, [&] {
    print_run(f);
    print_solve(f, certificate, known, b.cols);
    print_factor(f);
    if (system.condition) fmt::print("  condition         {:.2e} (an estimate)\n", condition);
    fmt::print("  total             {:.3g} s\n", certificate.seconds);
    print_traffic_of(f);
    fmt::print("x written to {}\n", system.output);
  });
  if (!all_finite(x)) return report_out_of_range(Element::fp64);
  if (!known) return status;
  return report_solution(check);
}

}  // namespace strata::cli
