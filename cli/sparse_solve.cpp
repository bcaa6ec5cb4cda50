// strata solve A b -o x of a sparse A by its Cholesky factor, or with a factor that was saved.

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "base/check.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

using nlohmann::json;

void require_rows(const DenseMatrix<double>& b, std::int64_t n, const std::string& rhs,
                  const std::string& matrix) {
  require(b.rows == n, ErrorKind::misuse, "solve", "{} has {} rows and {} is of order {}", rhs,
          b.rows, matrix, n);
}

/// Solves, refines where A is known, and says how good that is: NaN if nobody can.
Certificate solve_with(const SparseFactorization& f, bool known, const DenseMatrix<double>& b,
                       DenseMatrix<double>& x) {
  x = b;
  f.factor.solve(x.view());
  check_interrupt();
  Certificate certificate;
  certificate.factor = f.factor.info();
  certificate.precision = f.factor.precision();
  certificate.backward_error = std::numeric_limits<double>::quiet_NaN();
  if (known) certificate = refine(f.factor, f.file.matrix, b.view(), x.view());
  certificate.bytes_moved = f.factor.report().traffic.total();
  return certificate;
}

void print_solve(const SparseFactorization& f, const Certificate& c, bool known,
                 std::int64_t columns) {
  fmt::print("solved {} unknowns, {} right-hand sides, by a sparse factor in {}\n", f.factor.n(),
             columns, to_string(f.factor.precision()));
  if (known) {
    fmt::print("  backward error    {:.2e}\n  refinement steps  {}\n", c.backward_error,
               c.refinement_steps);
  } else {
    fmt::print("  backward error    unknown: it takes A, which --matrix names\n");
  }
}

/// What solutions of symmetric positive definite systems are held to: 4ε·√n, as a backward error.
int report_accuracy(const Certificate& c, std::int64_t n) {
  const double promised =
      4 * std::numeric_limits<double>::epsilon() * std::sqrt(static_cast<double>(n));
  if (c.backward_error <= promised || n == 0) return kDone;
  fmt::print(stderr,
             "strata: solve: refinement ended at a backward error of {:.2e}, above {:.1e}{}\n",
             c.backward_error, promised,
             c.precision == Element::fp64
                 ? ""
                 : "; a factor in fp32 is not enough for this matrix: --precision fp64");
  return kNumbersSaidNo;
}

}  // namespace

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
  json object = to_json(f);
  if (!f.factor.info().ok) return report_not_definite(common, f, std::move(object));
  DenseMatrix<double> x;
  Certificate certificate = solve_with(f, known, b, x);
  certificate.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const double condition = system.condition ? f.factor.condition(f.file.matrix) : 0;
  object["certificate"] = to_json(certificate);
  if (system.condition) object["condition"] = number(condition);
  ReportData data = report_of(f);
  data.title = fmt::format("A sparse system of {} unknowns, solved", b.rows);
  data.subtitle = fmt::format("{} with {}; {}", arguments.matrix, system.rhs, data.subtitle);
  if (known)
    data.figures.insert(
        data.figures.begin(),
        {"Backward error", fmt::format("{:.1e}", certificate.backward_error), "", ""});
  begin_output();
  write_dense(system.output, std::as_const(x).view());
  const int status = finish(common, std::move(data), object, [&] {
    print_run(f);
    print_solve(f, certificate, known, b.cols);
    print_factor(f);
    if (system.condition) fmt::print("  condition         {:.2e} (an estimate)\n", condition);
    fmt::print("  total             {:.3g} s\n", certificate.seconds);
    if (!f.saved) print_traffic(f.factor.report());
    fmt::print("x written to {}\n", system.output);
  });
  return known && status == kDone ? report_accuracy(certificate, b.rows) : status;
}

}  // namespace strata::cli
