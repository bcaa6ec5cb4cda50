// strata solve A b -o x: dense symmetric and Hermitian positive definite systems here; others that
// are dense by LU (general_solve.cpp), sparse ones by their factors (sparse_solve.cpp) or by GMRES
// (krylov.cpp).

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "cli/app.hpp"
#include "cli/cholesky_factor.hpp"
#include "cli/dense_system.hpp"
#include "cli/general_solve.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"
#include "scalar/complex.hpp"

namespace strata::cli {
namespace {

struct SolveArguments {
  bool inverse = false;  ///< the identity is the right-hand side
  FactorArguments factor;
  SparseSystem system;
  std::string precision = "auto";
  std::string method = "auto";
  GmresArguments gmres;
  std::vector<std::string> storage;  // directories
  std::vector<Option> of_dense;
  std::vector<Option> of_sparse;  // options of sparse matrices and their factors
  std::vector<Option> condition;  // one of them
};

void print_solve(const SolveResult& result, std::int64_t columns, const std::string& output) {
  const Certificate& c = result.certificate;
  const RunReport& factor = result.factor;
  fmt::print("solved {}, {}, in {} with {} ({}, tile {}, {})\n", counted(factor.n, "unknown"),
             counted(columns, "right-hand side"), to_string(c.precision),
             fmt::join(factor.devices, ", "), factor.path, factor.tile, factor.policy);
  fmt::print("  method            Cholesky\n");
  print_certificate(c);
  fmt::print("  log determinant   {:.15g}{}\n  refinement steps  {}\n", c.factor.log_determinant,
             text_of_error(result.log_determinant_error), c.refinement_steps);
  fmt::print("  factor            {:.3g} s, {:.1f} GFLOP/s\n  total             {:.3g} s\n",
             factor.seconds, factor.seconds > 0 ? factor.flops / factor.seconds / 1e9 : 0,
             c.seconds);
  print_traffic(factor);
  fmt::print("x written to {}\n", output);
}

int solve_by_lu(const MatrixFile& matrix, const MatrixFile& rhs, const SolveArguments& arguments,
                const CommonOptions& common, const CholeskyOptions& options, std::string why) {
  require(!options.run.storage.used(), ErrorKind::numerical, "solve",
          "{}: LU in storage is made by 'strata factor {} -o DIR --storage …', for 'strata solve "
          "DIR'",
          why, matrix.path());
  return run_general_solve({matrix, rhs, arguments.factor.triangle, arguments.precision,
                            arguments.system.output, std::move(why)},
                           common, lu_options_of(options));
}

/// What says without a factorization that A is not positive definite; empty: nothing does.
template <class A>
std::string bad_diagonal(MatrixView<const A> a, const MatrixFile& matrix) {
  for (std::int64_t i = 0; i < a.rows; ++i) {
    if (!(real_part(a(i, i)) > 0))
      return fmt::format("{}: not positive definite: element ({}, {}) is {}, counted from 0",
                         matrix.path(), i, i, real_part(a(i, i)));
  }
  return {};
}

/// A solution in T of A as it is stored, or as it was widened.
template <class T, class A>
int solve_in(MatrixView<const A> a, const MatrixFile& matrix, const MatrixFile& rhs,
             const SolveArguments& arguments, const CommonOptions& common,
             const CholeskyOptions& options, GivenTriangles given) {
  const std::string& output = arguments.system.output;
  if (arguments.method == "auto") {
    const std::string why = bad_diagonal(a, matrix);
    if (!why.empty()) return solve_by_lu(matrix, rhs, arguments, common, options, why);
  }
  // The lower triangle of what is stored is what is factored; where both differ, rows have to be
  // those of the file.
  const FactoredView<A> factored =
      factored_view(a, matrix, arguments.factor.triangle, given == GivenTriangles::both);
  using W = WideOf<T>;
  const DenseMatrix<W> b = columns_of<W>(rhs, factored.conjugate);
  if constexpr (!std::is_same_v<T, W>) require_held_in_fp32(b.view(), rhs);
  check_interrupt();
  DenseMatrix<T> x{std::vector<T>(b.values.size()), b.rows, b.cols};
  const SolveResult result = solve(factored.view, b.view(), x.view(), options, given);
  const Certificate& certificate = result.certificate;
  const FailedPlace place = failed_place(a, certificate.factor, certificate.precision);
  if (!certificate.factor.ok && arguments.method == "auto")
    return solve_by_lu(
        matrix, rhs, arguments, common, options,
        fmt::format("{}: {}{}: pivot {} is {:.6g}, counted from 0", matrix.path(),
                    not_definite(certificate.factor, place), std::is_same_v<T, W> ? "" : " in fp32",
                    certificate.factor.first_bad_pivot, certificate.factor.bad_pivot));
  Json object = to_json(result.factor);
  object["method"] = "cholesky";
  object["factor"] = to_json(certificate.factor);
  object["certificate"] = to_json(certificate);
  if (!certificate.factor.ok)
    return report_failed_factor(common, certificate.factor, object, place);
  object["solve"] = to_json(result.solve);
  object["log_determinant_error"] = number(result.log_determinant_error);
  const bool singular = numerically_singular(certificate.scaled_condition, certificate.precision);
  object["numerically_singular"] = singular;
  const SolutionCheck check{certificate, b.rows, singular, false};
  add_to_json(check, object);
  ReportData data;
  data.title = fmt::format("A system of {}, solved", counted(b.rows, "unknown"));
  data.subtitle =
      fmt::format("{} with {}, in {}", matrix.path(), rhs.path(), to_string(certificate.precision));
  data.figures = {
      {"Backward error", fmt::format("{:.1e}", rounded_up(certificate.backward_error)), "", ""},
      {"Log determinant", fmt::format("{:.8g}", certificate.factor.log_determinant), "", ""}};
  data.run = result.factor;
  begin_output();
  const bool finite = std::all_of(x.values.begin(), x.values.end(), is_finite<T>);
  write_solution(output, std::move(x), rhs, factored.conjugate);
  (void)finish(common, std::move(data), object, [&] { print_solve(result, rhs.cols(), output); });
  return finite ? report_solution(check) : report_out_of_range(certificate.precision);
}

int solve_dense(const MatrixFile& matrix, const SolveArguments& arguments,
                const CommonOptions& common, const CholeskyOptions& options) {
  refuse_given(
      arguments.of_sparse,
      fmt::format("is an option of sparse matrices, and {} is {}", matrix.path(),
                  matrix.is_complex() ? "of complex numbers, solved as a dense one" : "dense"));
  const MatrixFile rhs =
      arguments.inverse ? MatrixFile::identity(matrix.rows()) : MatrixFile(arguments.system.rhs);
  check_interrupt();
  check_shapes(matrix, rhs);
  const std::string& triangle = arguments.factor.triangle;
  const bool mixed = arguments.precision == "mixed";
  require(!mixed || arguments.method != "cholesky", ErrorKind::misuse, "options",
          "--precision mixed is of LU: --method lu");
  if (mixed || arguments.method == "lu") {
    if (!triangle.empty()) check_triangle(matrix, triangle);
    return solve_by_lu(matrix, rhs, arguments, common, options,
                       arguments.method == "lu" ? "as asked for" : "--precision mixed is of LU");
  }
  GivenTriangles given = GivenTriangles::lower;
  try {
    if (check_symmetric(matrix, triangle)) given = GivenTriangles::both;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numerical || arguments.method != "auto") throw;
    if (triangle.empty() && holds_one_triangle(matrix))
      fail(ErrorKind::numerical, "solve", "{}, --method lu as it is", error.what());
    return solve_by_lu(matrix, rhs, arguments, common, options, error.what());
  }
  const auto solve_with = [&]<class T, class A>(T, MatrixView<const A> a) {
    return solve_in<T>(a, matrix, rhs, arguments, common, options, given);
  };
  return matrix.is_complex()
             ? solve_in_either<std::complex<float>, std::complex<double>>(
                   matrix, rhs, arguments.precision, solve_with)
             : solve_in_either<float, double>(matrix, rhs, arguments.precision, solve_with);
}

void require_not_mixed(const SolveArguments& arguments, const std::string& but) {
  require(arguments.precision != "mixed", ErrorKind::misuse, "options",
          "--precision mixed is of dense matrices by LU, {}", but);
}

int solve_sparse(std::optional<SymmetricFile> file, const SolveArguments& arguments,
                 const CommonOptions& common) {
  require(arguments.method != "lu", ErrorKind::misuse, "options",
          "--method lu is for dense matrices, and '{}' is sparse", arguments.factor.matrix);
  FactorArguments factor = arguments.factor;
  require_not_mixed(arguments, fmt::format("and '{}' is sparse: --precision fp32 is such a factor",
                                           factor.matrix));
  refuse_given(common.of_dense_factors,
               fmt::format("is an option of dense matrices, and {} is sparse", factor.matrix));
  refuse_given(arguments.of_dense,
               fmt::format("is an option of dense matrices, and {} is sparse", factor.matrix));
  require(file || arguments.precision == "auto", ErrorKind::misuse, "options",
          "--precision {} says how a matrix is factored, and '{}' is a factor", arguments.precision,
          factor.matrix);
  factor.precision = arguments.precision == "fp32" ? "fp32" : "fp64";
  require(!file || arguments.system.matrix.empty(), ErrorKind::misuse, "options",
          "--matrix is for a factor that was saved, and {} is a matrix", factor.matrix);
  return run_sparse_solve(std::move(file), arguments.system, factor, common);
}

/// By a factor of a dense matrix.
int solve_by_saved(const SolveArguments& arguments, const CommonOptions& common, bool by_lu) {
  const std::string& path = arguments.factor.matrix;
  const std::string factor = by_lu ? "a factor by LU" : "a factor by Cholesky of a dense matrix";
  require(arguments.precision == "auto", ErrorKind::misuse, "options",
          "--precision {} says how a matrix is factored, and '{}' is a factor", arguments.precision,
          path);
  require(arguments.method == "auto" || arguments.method == (by_lu ? "lu" : "cholesky"),
          ErrorKind::misuse, "options", "--method {}: '{}' is {}", arguments.method, path, factor);
  refuse_given(arguments.factor.added,
               fmt::format("is an option of sparse matrices, and '{}' is {}", path, factor));
  refuse_given(arguments.condition,
               fmt::format("is an option of sparse factors, and '{}' is {}", path, factor));
  require(!arguments.system.matrix.empty() || arguments.factor.triangle.empty(), ErrorKind::misuse,
          "options", "--triangle is of a matrix, and '{}' is a factor", path);
  const SavedSolve system{path, arguments.system.rhs, arguments.system.output,
                          arguments.system.matrix, arguments.factor.triangle};
  return by_lu ? run_saved_solve(system, common) : run_saved_cholesky_solve(system, common);
}

/// What the first file is decides: a factor, a sparse matrix or a dense one.
int solve_by_factors(const SolveArguments& arguments, const CommonOptions& common,
                     const CholeskyOptions& options) {
  const std::string& path = arguments.factor.matrix;
  refuse_given(arguments.gmres.block.options, "is an option of --method gmres");
  if (arguments.factor.is_saved()) require_no_part_of_a_factor(path);
  if (arguments.factor.is_saved()) {
    refuse_given(arguments.of_dense, fmt::format("is of a matrix, and '{}' is a factor", path));
    const bool by_lu = GeneralFactor::is_at(path);
    return by_lu || CholeskyFactor::is_at(path) ? solve_by_saved(arguments, common, by_lu)
                                                : solve_sparse(std::nullopt, arguments, common);
  }
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
  CholeskyOptions options = common.cholesky_options();
  options.run.storage.directories = storage_directories(arguments.storage);
  const SparseSystem& system = arguments.system;
  require(is_called(system.output, ".npy") || is_called(system.output, ".mtx"), ErrorKind::misuse,
          "solve", "--output '{}': the solution is a file called .npy or .mtx (or these with .gz)",
          system.output);
  std::vector<std::string> inputs = arguments.factor.inputs();
  inputs.insert(inputs.end(), {system.rhs, system.matrix, common.rates});
  check_outputs(common, {{"--output", system.output}}, inputs);
  if (arguments.method != "gmres") return solve_by_factors(arguments, common, options);
  for (const auto& of_factors :
       {arguments.of_sparse, arguments.of_dense, common.of_factors, common.of_dense_factors})
    refuse_given(of_factors, "is an option of --method cholesky and lu");
  require_not_mixed(arguments, "not of --method gmres");
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
  arguments.condition.push_back(
      verb.add_flag("--condition", arguments.system.condition,
                    "estimate the condition of a sparse A in the 1-norm"));
  arguments.of_sparse.push_back(arguments.condition.front());
}

/// The inverse of a dense matrix, in the precision of its file unless another is asked for.
int run_inverse(SolveArguments arguments, const CommonOptions& common) {
  const std::string& path = arguments.factor.matrix;
  const std::string& output = arguments.system.output;
  require(is_called(output, ".npy") || is_called(output, ".mtx"), ErrorKind::misuse, "inverse",
          "--output '{}': the inverse is a file called .npy or .mtx (or these with .gz)", output);
  check_outputs(common, {{"--output", output}}, {path, common.rates});
  require(!arguments.factor.is_saved(), ErrorKind::misuse, "inverse",
          "'{}' is a factor: 'strata solve' takes it, with columns of the identity", path);
  std::optional<MatrixFile> matrix;
  if (is_called(path, ".mtx")) {
    const MatrixMarket entries = read_entries(path, arguments.factor.triangle);
    require(entries.is_array || entries.is_complex, ErrorKind::misuse, "inverse",
            "{} is sparse, and its inverse is not: 'strata variances' has its diagonal, 'strata "
            "solve' columns of it",
            path);
    matrix.emplace(path, entries);
  } else {
    matrix.emplace(path);
  }
  require_square(*matrix);
  if (arguments.precision == "auto") arguments.precision = matrix->is_single() ? "fp32" : "fp64";
  return solve_dense(*matrix, arguments, common, common.cholesky_options());
}

}  // namespace

void add_inverse(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("inverse", "inverse of a dense matrix, certified");
  add_examples(verb, {"strata inverse A.npy -o X.npy",
                      "strata inverse A.npy -o X.npy --method lu --device-memory 2GiB"});
  auto arguments = std::make_shared<SolveArguments>();
  arguments->inverse = true;
  common.add_to(verb);
  verb.add_option("A", arguments->factor.matrix, "matrix: .npy, .mtx or .mtx.gz").required();
  verb.add_option("-o,--output", arguments->system.output, "where the inverse goes: .npy or .mtx")
      .required();
  verb.add_option("--precision", arguments->precision,
                  "auto, fp64, fp32 or mixed, as of 'strata solve'; auto is that of the file")
      .check(one_of({"auto", "fp64", "fp32", "mixed"}))
      .capture_default_str();
  verb.add_option("--method", arguments->method,
                  "auto, cholesky or lu; auto is cholesky, and lu where A is not symmetric "
                  "positive definite")
      .check(one_of({"auto", "cholesky", "lu"}))
      .capture_default_str();
  verb.add_option("--triangle", arguments->factor.triangle,
                  "lower or upper: the matrix is symmetric, and that triangle of the file counts")
      .check(one_of({"lower", "upper"}));
  verb.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_inverse(*arguments, common); };
  });
}

void add_solve(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand(
      "solve", "solve A x = b, A dense, or sparse and symmetric positive definite or not");
  add_examples(verb,
               {"strata solve A.npy b.npy -o x.npy --device-memory 512MiB",
                "strata solve A.npy b.npy -o x.npy --precision mixed",
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
  verb.add_option(
          "--precision", arguments->precision,
          "auto, fp64, fp32 or mixed, of complex numbers that of their parts; auto is fp32 "
          "where both files hold it (.npy of float32 or complex64), else fp64. The solution "
          "is written in it. mixed, of a dense A: LU in fp32, the solution refined to fp64; "
          "where that cannot be, LU in fp64. Of a sparse A it is that of the "
          "factor, or of the vectors of gmres, by itself fp64; the solution is in fp64, "
          "refined with A")
      .check(one_of({"auto", "fp64", "fp32", "mixed"}))
      .capture_default_str();
  verb.add_option("--method", arguments->method,
                  "auto, cholesky (sparse where A is a .mtx of coordinates), lu (dense A, with "
                  "partial pivoting), or gmres (sparse A: restarted, s vectors at a time). auto is "
                  "cholesky, and lu for a dense A that is not symmetric positive definite")
      .check(one_of({"auto", "cholesky", "lu", "gmres"}))
      .capture_default_str();
  arguments->of_dense.push_back(verb.add_list(
      "--storage", arguments->storage,
      "of a dense symmetric positive definite A: directories, separated by commas, best on as many "
      "disks, in whose files the factor rests where host memory (--host-memory) does not hold it; "
      "gone with the command"));
  add_sparse_options(verb, *arguments);
  arguments->gmres.add_to(verb);
  verb.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_solve(*arguments, common); };
  });
}

}  // namespace strata::cli
