// strata solve A b -o x: symmetric and Hermitian positive definite systems, dense ones here; sparse
// ones by their factors (sparse_solve.cpp) or by GMRES (krylov.cpp).

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "cli/app.hpp"
#include "cli/dense_file.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"
#include "scalar/complex.hpp"

namespace strata::cli {
namespace {

struct SolveArguments {
  FactorArguments factor;
  SparseSystem system;
  std::string precision = "auto";
  std::string method = "cholesky";
  GmresArguments gmres;
  std::vector<Option> of_sparse;  // options of sparse matrices and their factors
};

/// Whether elements of A that mirror each other differ by rounding, where both are taken.
bool check_system(const MatrixFile& a, const MatrixFile& b, const std::string& triangle) {
  const bool differs = check_symmetric(a, triangle);
  require(b.rows() == a.rows(), ErrorKind::misuse, "solve", "{} has {} rows and {} is of order {}",
          b.path(), b.rows(), a.path(), a.rows());
  return differs;
}

/// Whether it is solved in fp32, or in complex numbers of it: as was asked for; for auto only if
/// both files hold it, since fp64 holds whatever is in either, and no digits are dropped unasked.
bool solved_in_fp32(const std::string& asked, const MatrixFile& a, const MatrixFile& b) {
  return asked == "auto" ? a.is_single() && b.is_single() : asked == "fp32";
}

void print_solve(const SolveResult& result, std::int64_t columns, const std::string& output) {
  const Certificate& c = result.certificate;
  const RunReport& factor = result.factor;
  fmt::print("solved {}, {}, in {} with {} ({}, tile {}, {})\n", counted(factor.n, "unknown"),
             counted(columns, "right-hand side"), to_string(c.precision),
             fmt::join(factor.devices, ", "), factor.path, factor.tile, factor.policy);
  print_certificate(c);
  fmt::print("  log determinant   {:.15g}\n  refinement steps  {}\n", c.factor.log_determinant,
             c.refinement_steps);
  fmt::print("  factor            {:.3g} s, {:.1f} GFLOP/s\n  total             {:.3g} s\n",
             factor.seconds, factor.seconds > 0 ? factor.flops / factor.seconds / 1e9 : 0,
             c.seconds);
  print_traffic(factor);
  fmt::print("x written to {}\n", output);
}

/// Right-hand sides as W. Complex ones of a real matrix are real ones twice: the real parts, and
/// behind them the imaginary parts.
template <class W>
DenseMatrix<W> columns_of(const MatrixFile& rhs, bool conjugated) {
  if constexpr (is_complex_v<W>) {
    DenseMatrix<W> b = rhs.dense<W>();
    if (conjugated)
      std::transform(b.values.begin(), b.values.end(), b.values.begin(), conjugate<W>);
    return b;
  } else {
    if (!rhs.is_complex()) return rhs.dense<W>();
    const auto whole = rhs.dense<std::complex<W>>();
    DenseMatrix<W> b{{}, whole.rows, 2 * whole.cols, whole.dimensions};
    std::transform(whole.values.begin(), whole.values.end(), std::back_inserter(b.values),
                   real_part<std::complex<W>>);
    std::transform(whole.values.begin(), whole.values.end(), std::back_inserter(b.values),
                   imaginary_part<std::complex<W>>);
    return b;
  }
}

/// X in the form that the file of right-hand sides has.
template <class T>
void write_solution(const std::string& output, DenseMatrix<T> x, const MatrixFile& rhs,
                    bool conjugated) {
  if constexpr (is_complex_v<T>) {
    if (conjugated)
      std::transform(x.values.begin(), x.values.end(), x.values.begin(), conjugate<T>);
  } else if (rhs.is_complex()) {
    const std::size_t count = x.values.size() / 2;
    DenseMatrix<std::complex<T>> whole{{}, x.rows, x.cols / 2};
    for (std::size_t k = 0; k < count; ++k)
      whole.values.emplace_back(x.values[k], x.values[count + k]);
    return write_dense(output, std::as_const(whole).view(), rhs.dimensions());
  }
  write_dense(output, std::as_const(x).view(), rhs.dimensions());
}

/// A solution in T of A as it is stored, or as it was widened.
template <class T, class A>
int solve_in(MatrixView<const A> a, const MatrixFile& matrix, const MatrixFile& rhs,
             const SolveArguments& arguments, const CommonOptions& common, const Options& options,
             GivenTriangles given) {
  const std::string& output = arguments.system.output;
  // The lower triangle of what is stored is what is factored; where both differ, rows have to be
  // those of the file.
  const FactoredView<A> factored =
      factored_view(a, matrix, arguments.factor.triangle, given == GivenTriangles::both);
  using W = std::conditional_t<is_complex_v<T>, std::complex<double>, double>;
  const DenseMatrix<W> b = columns_of<W>(rhs, factored.conjugate);
  if constexpr (!std::is_same_v<T, W>) require_held_in_fp32(b.view(), rhs);
  check_interrupt();
  DenseMatrix<T> x{std::vector<T>(b.values.size()), b.rows, b.cols};
  const SolveResult result = solve(factored.view, b.view(), x.view(), options, given);
  const Certificate& certificate = result.certificate;
  Json object = to_json(result.factor);
  object["factor"] = to_json(certificate.factor);
  object["certificate"] = to_json(certificate);
  if (!certificate.factor.ok) return report_failed_factor(common, certificate.factor, object);
  object["solve"] = to_json(result.solve);
  const bool singular = numerically_singular(certificate.scaled_condition, certificate.precision);
  object["numerically_singular"] = singular;
  const SolutionCheck check{certificate, b.rows, singular, false};
  add_to_json(check, object);
  ReportData data;
  data.title = fmt::format("A system of {}, solved", counted(b.rows, "unknown"));
  data.subtitle =
      fmt::format("{} with {}, in {}", matrix.path(), rhs.path(), to_string(certificate.precision));
  data.figures = {
      {"Backward error", fmt::format("{:.1e}", certificate.backward_error), "", ""},
      {"Log determinant", fmt::format("{:.8g}", certificate.factor.log_determinant), "", ""}};
  data.run = result.factor;
  begin_output();
  const bool finite = std::all_of(x.values.begin(), x.values.end(), is_finite<T>);
  write_solution(output, std::move(x), rhs, factored.conjugate);
  (void)finish(common, std::move(data), object, [&] { print_solve(result, rhs.cols(), output); });
  return finite ? report_solution(check) : report_out_of_range(certificate.precision);
}

/// In Narrow or Wide: float and double, or complex numbers of them.
template <class Narrow, class Wide>
int solve_in_either(const MatrixFile& matrix, const MatrixFile& rhs,
                    const SolveArguments& arguments, const CommonOptions& common,
                    const Options& options, GivenTriangles given) {
  const auto solve_with = [&]<class T, class A>(T, MatrixView<const A> a) {
    return solve_in<T>(a, matrix, rhs, arguments, common, options, given);
  };
  if (solved_in_fp32(arguments.precision, matrix, rhs)) {
    if (matrix.is_single()) return solve_with(Narrow{}, matrix.stored<Narrow>());
    require_held_in_fp32(matrix.stored<Wide>(), matrix);
    return solve_with(Narrow{}, matrix.stored<Wide>());
  }
  if (!matrix.is_single()) return solve_with(Wide{}, matrix.stored<Wide>());
  const MatrixView<const Narrow> narrow = matrix.stored<Narrow>();
  DenseMatrix<Wide> wide{std::vector<Wide>(static_cast<std::size_t>(narrow.size())), narrow.rows,
                         narrow.cols};
  for (std::int64_t j = 0; j < narrow.cols; ++j)
    std::copy_n(narrow.column(j), narrow.rows, wide.view().column(j));
  return solve_with(Wide{}, std::as_const(wide).view());
}

int solve_dense(const MatrixFile& matrix, const SolveArguments& arguments,
                const CommonOptions& common, const Options& options) {
  refuse_given(
      arguments.of_sparse,
      fmt::format("is an option of sparse matrices, and {} is {}", matrix.path(),
                  matrix.is_complex() ? "of complex numbers, solved as a dense one" : "dense"));
  const MatrixFile rhs(arguments.system.rhs);
  check_interrupt();
  const GivenTriangles given = check_system(matrix, rhs, arguments.factor.triangle)
                                   ? GivenTriangles::both
                                   : GivenTriangles::lower;
  return matrix.is_complex()
             ? solve_in_either<std::complex<float>, std::complex<double>>(matrix, rhs, arguments,
                                                                          common, options, given)
             : solve_in_either<float, double>(matrix, rhs, arguments, common, options, given);
}

int solve_sparse(std::optional<SymmetricFile> file, const SolveArguments& arguments,
                 const CommonOptions& common) {
  FactorArguments factor = arguments.factor;
  refuse_given(common.of_dense_factors,
               fmt::format("is an option of dense matrices, and {} is sparse", factor.matrix));
  require(file || arguments.precision == "auto", ErrorKind::misuse, "options",
          "--precision {} says how a matrix is factored, and '{}' is a factor", arguments.precision,
          factor.matrix);
  factor.precision = arguments.precision == "fp32" ? "fp32" : "fp64";
  require(!file || arguments.system.matrix.empty(), ErrorKind::misuse, "options",
          "--matrix is for a factor that was saved, and {} is a matrix", factor.matrix);
  return run_sparse_solve(std::move(file), arguments.system, factor, common);
}

/// What the first file is decides: a factor, a sparse matrix or a dense one.
int solve_by_cholesky(const SolveArguments& arguments, const CommonOptions& common,
                      const Options& options) {
  const std::string& path = arguments.factor.matrix;
  refuse_given(arguments.gmres.block.options, "is an option of --method gmres");
  if (arguments.factor.is_saved()) return solve_sparse(std::nullopt, arguments, common);
  if (!is_called(path, ".mtx")) return solve_dense(MatrixFile(path), arguments, common, options);
  std::optional<MatrixMarket> entries = read_entries(path, arguments.factor.triangle);
  if (entries->is_array || entries->is_complex) {
    const MatrixFile matrix(path, *entries);
    entries.reset();
    return solve_dense(matrix, arguments, common, options);
  }
  SymmetricFile file = symmetric_of(std::move(*entries), path);
  entries.reset();  // the matrix itself is enough to hold
  return solve_sparse(std::move(file), arguments, common);
}

int run_solve(const SolveArguments& arguments, const CommonOptions& common) {
  const Options options = common.to_options();
  const SparseSystem& system = arguments.system;
  require(is_called(system.output, ".npy") || is_called(system.output, ".mtx"), ErrorKind::misuse,
          "solve", "--output '{}': the solution is a file called .npy or .mtx (or these with .gz)",
          system.output);
  std::vector<std::string> inputs = arguments.factor.inputs();
  inputs.insert(inputs.end(), {system.rhs, system.matrix, common.rates});
  check_outputs(common, {{"--output", system.output}}, inputs);
  if (arguments.method != "gmres") return solve_by_cholesky(arguments, common, options);
  for (const auto& options : {arguments.of_sparse, common.of_factors, common.of_dense_factors})
    refuse_given(options, "is an option of --method cholesky");
  GmresArguments gmres = arguments.gmres;
  gmres.precision = arguments.precision == "fp32" ? Element::fp32 : Element::fp64;
  return run_gmres({arguments.factor.matrix, system.rhs, system.output, arguments.factor.triangle},
                   gmres, common);
}

void add_sparse_options(Command& verb, SolveArguments& arguments) {
  arguments.factor.add_to(verb);
  arguments.of_sparse = arguments.factor.added;
  arguments.of_sparse.push_back(
      verb.add_option("--matrix", arguments.system.matrix,
                      "of a factor that was saved: A, to refine and certify x"));
  arguments.of_sparse.push_back(
      verb.add_flag("--condition", arguments.system.condition,
                    "estimate the condition of a sparse A in the 1-norm"));
}

}  // namespace

void add_solve(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand(
      "solve", "solve A x = b, A symmetric or Hermitian positive definite, or sparse");
  add_examples(verb,
               {"strata solve A.npy b.npy -o x.npy --device-memory 512MiB",
                "strata solve A.mtx b.npy -o x.npy --precision fp32",
                "strata solve A.mtx b.npy -o x.npy --method gmres --preconditioner block-jacobi",
                "strata solve factor/ b.npy -o x.npy --matrix A.mtx"});
  auto arguments = std::make_shared<SolveArguments>();
  common.add_to(verb);
  verb.add_option("A", arguments->factor.matrix,
                  "matrix: .npy, .mtx or .mtx.gz; or what 'strata factor -o' wrote")
      .required();
  verb.add_option("b", arguments->system.rhs, "right-hand sides: .npy, .mtx or .mtx.gz").required();
  verb.add_option("-o,--output", arguments->system.output, "where the solution goes: .npy or .mtx")
      .required();
  verb.add_option("--precision", arguments->precision,
                  "auto, fp64 or fp32, of complex numbers that of their parts; auto is fp32 where "
                  "both files hold it (.npy of float32 or complex64), else fp64. The solution is "
                  "written in it. Of a sparse A it is that of the "
                  "factor, or of the vectors of gmres, by itself fp64; the solution is in fp64, "
                  "refined with A")
      .check(one_of({"auto", "fp64", "fp32"}))
      .capture_default_str();
  verb.add_option("--method", arguments->method,
                  "cholesky (sparse where A is a .mtx of coordinates), or gmres (sparse A: "
                  "restarted, s vectors at a time)")
      .check(one_of({"cholesky", "gmres"}))
      .capture_default_str();
  add_sparse_options(verb, *arguments);
  arguments->gmres.add_to(verb);
  verb.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_solve(*arguments, common); };
  });
}

}  // namespace strata::cli
