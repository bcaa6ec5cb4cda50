// strata solve A b -o x: symmetric positive definite systems, dense ones here; sparse ones by their
// factors (sparse_solve.cpp) or by GMRES (krylov.cpp).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "cli/app.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"
#include "matrix/symmetry.hpp"

namespace strata::cli {
namespace {

struct SolveArguments {
  FactorArguments factor;
  SparseSystem system;
  std::string precision = "auto";
  std::string method = "cholesky";
  GmresArguments gmres;
  std::vector<CLI::Option*> of_sparse;  // options of sparse matrices and their factors
};

/// An open file: its elements as they lie there, mapped where the file allows it, or in memory.
class MatrixFile {
 public:
  explicit MatrixFile(std::string path) : path_(std::move(path)) {
    if (is_called(path_, ".npy")) {
      file_.emplace(path_);
      file_->require_finite();
      return;
    }
    dense_ = read_dense(path_);
  }
  MatrixFile(std::string path, DenseMatrix<double> dense)
      : path_(std::move(path)), dense_(std::move(dense)) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::int64_t rows() const noexcept { return file_ ? file_->rows() : dense_.rows; }
  [[nodiscard]] std::int64_t cols() const noexcept { return file_ ? file_->cols() : dense_.cols; }
  [[nodiscard]] int dimensions() const noexcept {
    return file_ ? file_->dimensions() : dense_.dimensions;
  }
  /// Precision of its elements; decimal numbers count as fp64.
  [[nodiscard]] Element precision() const noexcept {
    return file_ ? file_->precision() : Element::fp64;
  }
  /// Whether stored() is the transpose.
  [[nodiscard]] bool transposed() const noexcept { return file_ && file_->row_major(); }

  /// The elements without a copy, T as precision() says. For a row-major file the transpose: a
  /// symmetric matrix equals it.
  template <class T>
  [[nodiscard]] MatrixView<const T> stored() const {
    if (file_) return transposed() ? file_->transposed_view<T>() : file_->view<T>();
    if constexpr (std::is_same_v<T, double>) {
      return dense_.view();
    }
    fail(ErrorKind::misuse, "solve", "{}: holds no {}", path_, to_string(element_of<T>));
  }

  /// A copy in fp64.
  [[nodiscard]] DenseMatrix<double> dense() const { return file_ ? file_->to_dense() : dense_; }

 private:
  std::string path_;
  std::optional<NpyFile> file_;
  DenseMatrix<double> dense_;
};

/// Throws Error{input} naming an element that fp32 cannot hold: too large, or the largest of its
/// column and no normal number, so without its digits.
void require_held_in_fp32(MatrixView<const double> a, const MatrixFile& file) {
  for (std::int64_t j = 0; j < a.cols; ++j) {
    check_interrupt();
    std::int64_t largest = 0;
    for (std::int64_t i = 1; i < a.rows; ++i)
      if (std::abs(a(i, j)) > std::abs(a(largest, j))) largest = i;
    for (std::int64_t i = 0; i < a.rows; ++i) {
      const auto value = static_cast<float>(a(i, j));
      const bool digits =
          i != largest || static_cast<double>(value) == a(i, j) || std::isnormal(value);
      require(std::isfinite(value) && digits, ErrorKind::input, "solve",
              "{}: element ({}, {}) is {}, which fp32 cannot hold", file.path(), i, j, a(i, j));
    }
  }
}

/// Whether anything but zeros stands below and above the diagonal of the file.
template <class T>
std::array<bool, 2> triangles_held(const MatrixFile& file) {
  const MatrixView<const T> a = file.stored<T>();
  std::array<bool, 2> held{};
  for (std::int64_t j = 0; j < a.cols && !(held[0] && held[1]); ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i)
      if (i != j && a(i, j) != 0) held[static_cast<std::size_t>(i < j)] = true;
  }
  if (file.transposed()) std::swap(held[0], held[1]);
  return held;
}

/// Throws Error{numerical} naming the first pair that differs by more than rounding, in blocks that
/// stay in the cache. What rounding is depends on the numbers in the file: a matrix that was made
/// with 24 bits is symmetric to 24 bits. Returns whether any pair differs.
template <class T>
bool check_symmetric(const MatrixFile& file) {
  bool differs = false;
  const MatrixView<const T> a = file.stored<T>();
  constexpr std::int64_t kBlock = 64;
  constexpr double kTolerance =
      std::is_same_v<T, float> ? kSymmetryToleranceFp32 : kSymmetryTolerance;
  const auto complain = [&](std::int64_t i, std::int64_t j) {
    if (file.transposed()) std::swap(i, j);
    const auto element = [&](std::int64_t r, std::int64_t c) {
      return static_cast<double>(file.transposed() ? a(c, r) : a(r, c));
    };
    const auto [lower, upper] = triangles_held<T>(file);
    fail_not_symmetric(file.path(), {true, i, j, element(i, j), element(j, i)},
                       lower == upper ? nullptr
                       : lower        ? "lower"
                                      : "upper");
  };
  for (std::int64_t jb = 0; jb < a.cols; jb += kBlock) {
    check_interrupt();
    for (std::int64_t ib = jb; ib < a.rows; ib += kBlock) {
      for (std::int64_t j = jb; j < std::min(jb + kBlock, a.cols); ++j) {
        for (std::int64_t i = std::max(ib, j + 1); i < std::min(ib + kBlock, a.rows); ++i) {
          if (a(i, j) == a(j, i)) continue;
          differs = true;
          if (!is_symmetric_pair(a(i, j), a(j, i), a(i, i), a(j, j), kTolerance)) complain(i, j);
        }
      }
    }
  }
  return differs;
}

/// --triangle: there has to be something in it if there is in the other one.
template <class T>
void check_triangle(const MatrixFile& file, const std::string& triangle) {
  const auto [lower, upper] = triangles_held<T>(file);
  require(triangle == "lower" ? lower || !upper : upper || !lower, ErrorKind::input, "solve",
          "{}: there is nothing {} the diagonal, and something in the other triangle", file.path(),
          triangle == "lower" ? "below" : "above");
}

/// Whether elements of A that mirror each other differ by rounding, where both are taken.
bool check_system(const MatrixFile& a, const MatrixFile& b, const std::string& triangle) {
  require(a.rows() == a.cols(), ErrorKind::misuse, "solve", "{}: a {} by {} matrix is not square",
          a.path(), a.rows(), a.cols());
  const bool single = a.precision() == Element::fp32;
  bool differs = false;
  if (triangle.empty()) {
    differs = single ? check_symmetric<float>(a) : check_symmetric<double>(a);
  } else {
    single ? check_triangle<float>(a, triangle) : check_triangle<double>(a, triangle);
  }
  require(b.rows() == a.rows(), ErrorKind::misuse, "solve", "{} has {} rows and {} is of order {}",
          b.path(), b.rows(), a.path(), a.rows());
  return differs;
}

/// The precision that was asked for; for auto fp32 only if both files hold it: fp64 holds whatever
/// is in either, and no digits are dropped unasked.
Element precision_for(const std::string& asked, const MatrixFile& a, const MatrixFile& b) {
  if (asked != "auto") return asked == "fp32" ? Element::fp32 : Element::fp64;
  const bool both = a.precision() == Element::fp32 && b.precision() == Element::fp32;
  return both ? Element::fp32 : Element::fp64;
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

template <class T>
DenseMatrix<T> transposed(MatrixView<const T> a) {
  DenseMatrix<T> copy{std::vector<T>(static_cast<std::size_t>(a.size())), a.cols, a.rows};
  for (std::int64_t j = 0; j < a.cols; ++j) {
    for (std::int64_t i = 0; i < a.rows; ++i) copy.view()(j, i) = a(i, j);
  }
  return copy;
}

/// A solution in T of A as it is stored, or as it was widened.
template <class T, class A>
int solve_in(MatrixView<const A> a, const MatrixFile& matrix, const MatrixFile& rhs,
             const SolveArguments& arguments, const CommonOptions& common, const Options& options,
             GivenTriangles given) {
  const std::string& output = arguments.system.output;
  // The lower triangle of what is stored is what is factored; where both differ, rows have to be
  // those of the file.
  const std::string& triangle = arguments.factor.triangle;
  DenseMatrix<A> copy;
  if (triangle.empty() ? given == GivenTriangles::both && matrix.transposed()
                       : (triangle == "upper") != matrix.transposed()) {
    copy = transposed(a);
    a = std::as_const(copy).view();
  }
  const DenseMatrix<double> b = rhs.dense();
  if constexpr (std::is_same_v<T, float>) require_held_in_fp32(b.view(), rhs);
  check_interrupt();
  DenseMatrix<T> x{std::vector<T>(b.values.size()), b.rows, b.cols};
  const SolveResult result = solve(a, b.view(), x.view(), options, given);
  const Certificate& certificate = result.certificate;
  nlohmann::json object = to_json(result.factor);
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
  const bool finite =
      std::all_of(x.values.begin(), x.values.end(), [](T v) { return std::isfinite(v); });
  write_dense(output, std::as_const(x).view(), rhs.dimensions());
  (void)finish(common, std::move(data), object, [&] { print_solve(result, b.cols, output); });
  return finite ? report_solution(check) : report_out_of_range(certificate.precision);
}

int solve_dense(const MatrixFile& matrix, const SolveArguments& arguments,
                const CommonOptions& common, const Options& options) {
  refuse_given(arguments.of_sparse,
               fmt::format("is an option of sparse matrices, and {} is dense", matrix.path()));
  const MatrixFile rhs(arguments.system.rhs);
  check_interrupt();
  const GivenTriangles given = check_system(matrix, rhs, arguments.factor.triangle)
                                   ? GivenTriangles::both
                                   : GivenTriangles::lower;
  const bool single = matrix.precision() == Element::fp32;
  if (precision_for(arguments.precision, matrix, rhs) == Element::fp32) {
    if (single)
      return solve_in<float>(matrix.stored<float>(), matrix, rhs, arguments, common, options,
                             given);
    require_held_in_fp32(matrix.stored<double>(), matrix);
    return solve_in<float>(matrix.stored<double>(), matrix, rhs, arguments, common, options, given);
  }
  if (!single)
    return solve_in<double>(matrix.stored<double>(), matrix, rhs, arguments, common, options,
                            given);
  const MatrixView<const float> narrow = matrix.stored<float>();
  DenseMatrix<double> wide{std::vector<double>(static_cast<std::size_t>(narrow.size())),
                           narrow.rows, narrow.cols};
  for (std::int64_t j = 0; j < narrow.cols; ++j)
    std::copy_n(narrow.column(j), narrow.rows, wide.view().column(j));
  return solve_in<double>(std::as_const(wide).view(), matrix, rhs, arguments, common, options,
                          given);
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
  if (entries->is_array) {
    const MatrixFile matrix(path, entries->to_dense());
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

void add_sparse_options(CLI::App& verb, SolveArguments& arguments) {
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

void add_solve(CLI::App& app, CommonOptions& common, Run& run) {
  CLI::App* verb =
      app.add_subcommand("solve", "solve A x = b, A symmetric positive definite or sparse");
  add_examples(*verb,
               {"strata solve A.npy b.npy -o x.npy --device-memory 512MiB",
                "strata solve A.mtx b.npy -o x.npy --precision fp32",
                "strata solve A.mtx b.npy -o x.npy --method gmres --preconditioner block-jacobi",
                "strata solve factor/ b.npy -o x.npy --matrix A.mtx"});
  auto arguments = std::make_shared<SolveArguments>();
  common.add_to(*verb);
  verb->add_option("A", arguments->factor.matrix,
                   "matrix: .npy, .mtx or .mtx.gz; or what 'strata factor -o' wrote")
      ->required();
  verb->add_option("b", arguments->system.rhs, "right-hand sides: .npy, .mtx or .mtx.gz")
      ->required();
  verb->add_option("-o,--output", arguments->system.output, "where the solution goes: .npy or .mtx")
      ->required();
  verb->add_option("--precision", arguments->precision,
                   "auto, fp64 or fp32; auto is fp32 where both files hold it (.npy of float32), "
                   "else fp64. The solution is written in it. Of a sparse A it is that of the "
                   "factor, or of the vectors of gmres, by itself fp64; the solution is in fp64, "
                   "refined with A")
      ->check(CLI::IsMember({"auto", "fp64", "fp32"}))
      ->capture_default_str();
  verb->add_option("--method", arguments->method,
                   "cholesky (sparse where A is a .mtx of coordinates), or gmres (sparse A: "
                   "restarted, s vectors at a time)")
      ->check(CLI::IsMember({"cholesky", "gmres"}))
      ->capture_default_str();
  add_sparse_options(*verb, *arguments);
  arguments->gmres.add_to(*verb);
  verb->callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_solve(*arguments, common); };
  });
}

}  // namespace strata::cli
