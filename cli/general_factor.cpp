// strata factor A -o DIR of a dense A by LU, and strata solve DIR b -o x with what it wrote.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <filesystem>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

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

/// Where L and U rest: where the options say, or beside their file if host memory does not hold
/// them.
StorageChoice storage_of(const GeneralFactorArguments& a, std::int64_t n, bool complex,
                         const RunOptions& options) {
  StorageChoice storage;
  storage.directories = storage_directories(a.storage);
  storage.resume = a.resume;
  const Element precision = a.precision == "fp32" ? Element::fp32 : Element::fp64;
  const std::int64_t bytes = n * n * bytes_of(precision) * (complex ? 2 : 1);
  const std::int64_t bound = options.host_memory_bytes;
  const std::int64_t room = bound > 0 ? bound : detect_machine("host").host_memory_bytes;
  if (!storage.used() && (a.resume || bytes > room)) storage.directories = {a.output};
  return storage;
}

/// A file of nothing but numbers, n of which are a column.
MatrixInFile raw_matrix(const std::string& path, Element element, bool by_rows) {
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  require(!error, ErrorKind::storage, "factor", "{}: {}", path, error.message());
  const std::int64_t size = bytes_of(element);
  auto n = static_cast<std::int64_t>(std::sqrt(static_cast<double>(bytes / size)));
  while ((n + 1) * (n + 1) * size <= bytes) ++n;
  require(n * n * size == bytes, ErrorKind::input, "factor",
          "{}: {} bytes are not those of a square matrix of {} numbers", path, bytes,
          to_string(element));
  return {path, 0, n, element, by_rows};
}

/// A matrix that need not be whole in memory, if it is a square .npy whose numbers lie in the file
/// as they are.
std::optional<MatrixInFile> matrix_in_file(const std::string& path) {
  if (!is_called(path, ".npy")) return std::nullopt;
  const NpyFile file(path);
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  const std::int64_t numbers = file.rows() * file.cols() * bytes_of(file.precision());
  if (error || !file.mapped() || file.rows() != file.cols() || bytes < numbers) return std::nullopt;
  return MatrixInFile{path, bytes - numbers, file.rows(), file.precision(), file.row_major()};
}

template <class W>
MatrixSource<W> source_in(const MatrixInFile& matrix) {
  if constexpr (is_complex_v<W>)
    return complex_source_of(matrix);
  else
    return source_of(matrix);
}

Json json_of_storage(const GeneralFactor& factor, const StorageChoice& storage) {
  Json directories = Json::array();
  for (const std::string& directory : storage.directories) directories.push_back(directory);
  const StoredParts stored = factor.stored();
  return {{"directories", directories},
          {"panels", stored.count},
          {"found", stored.found},
          {"transposed", factor.by_rows()},  // then zero_pivot and not_finite count rows of A
          {"how", stored.how}};
}

void print_found(const StoredParts& stored) {
  if (stored.found > 0)
    fmt::print("  found             {} of {} panels, from a run before\n", stored.found,
               stored.count);
}

ReportData report_of(const GeneralFactor& factor, const std::string& path) {
  ReportData data;
  data.title = fmt::format("A factor of order {} by LU", factor.n());
  data.subtitle = fmt::format("{}, in {}", path, to_string(factor.precision()));
  data.figures = {
      {"Log determinant", fmt::format("{:.8g}", factor.info().determinant.log()), "", ""}};
  data.run = factor.report();
  return data;
}

/// A is a view, or a source.
template <class W, class Matrix>
int factor_matrix(const Matrix& a, const std::string& path, const LuOptions& options,
                  const GeneralFactorArguments& arguments, const CommonOptions& common) {
  check_interrupt();
  const Element precision = arguments.precision == "fp32" ? Element::fp32 : Element::fp64;
  GeneralFactor factor = factor_general(a, precision, options);
  const LuInfo& info = factor.info();
  Json object = to_json(factor.report());
  object["method"] = "lu";
  object["why"] = arguments.why;
  object["precision"] = to_string(factor.precision());
  object["factor"] = json_of_outcome(info, is_complex_v<W>);
  if (factor.stored().count > 0) object["storage"] = json_of_storage(factor, options.run.storage);
  if (!info.ok)
    return report_failure(
        common, "factor: " + why_no_factor(info, path, factor.precision(), factor.by_rows()),
        object);
  // What is known of any solution: of none.
  const DenseMatrix<W> none{{}, factor.n(), 0};
  DenseMatrix<W> no_x{{}, factor.n(), 0};
  const GeneralSolveResult known = factor.solve(a, none.view(), no_x.view());
  const double condition = known.certificate.scaled_condition;
  const bool singular = numerically_singular(condition, Element::fp64);
  object["log_determinant_error"] = number(known.log_determinant_error);
  object["scaled_condition"] = number(condition);
  object["numerically_singular"] = singular;
  begin_output();
  factor.save(arguments.output);
  const int status = finish(common, report_of(factor, path), object, [&] {
    const RunReport& run = factor.report();
    fmt::print("factored order {} in {} with {} (panel {}, {})\n", factor.n(),
               to_string(factor.precision()), fmt::join(run.devices, ", "), run.tile, run.policy);
    fmt::print("  method            LU: {}\n", arguments.why);
    print_factor(factor, known, is_complex_v<W>);
    print_found(factor.stored());
    fmt::print("  factor            {:.3g} s, {:.1f} GFLOP/s\n", run.seconds,
               run.seconds > 0 ? run.flops / run.seconds / 1e9 : 0);
    print_traffic(run);
    fmt::print("factor written to {}\n", arguments.output);
  });
  if (singular) return report_singular(condition, Element::fp64, true, kRowsAndColumns);
  return std::isinf(known.log_determinant_error) ? report_unknown_determinant(factor.precision())
                                                 : status;
}

template <class W>
int factor_in(const MatrixFile& file, const GeneralFactorArguments& arguments,
              const CommonOptions& common) {
  LuOptions options = lu_options_of(common.cholesky_options());
  options.run.storage = storage_of(arguments, file.rows(), is_complex_v<W>, options.run);
  const FactoredView<W> a = matrix_in<W>(file, arguments.triangle);
  return factor_matrix<W>(a.view, file.path(), options, arguments, common);
}

/// What solutions are certified by: nothing, a file whose numbers are read as they are needed, or
/// one that is in memory.
using KnownMatrix = std::variant<std::monostate, MatrixInFile, MatrixFile>;

/// The matrix of a factor in a file called .raw, whose length tells the precision of its numbers.
MatrixInFile raw_matrix_of(const GeneralFactor& factor, const std::string& path) {
  std::error_code error;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path, error));
  const bool complex = is_complex(factor.precision());
  const Element narrow = complex ? Element::complex64 : Element::fp32;
  const bool is_narrow = !error && bytes == factor.n() * factor.n() * bytes_of(narrow);
  const Element wide = complex ? Element::complex128 : Element::fp64;
  return raw_matrix(path, is_narrow ? narrow : wide, factor.by_rows());
}

/// Certified where the matrix is known; else its errors are not.
template <class W>
GeneralSolveResult solved_by(GeneralFactor& factor, const KnownMatrix& matrix,
                             const DenseMatrix<W>& b, MatrixView<W> x, const SavedSolve& system) {
  if (const auto* in_file = std::get_if<MatrixInFile>(&matrix))
    return factor.solve(source_in<W>(*in_file), b.view(), x);
  if (const auto* in_memory = std::get_if<MatrixFile>(&matrix)) {
    const FactoredView<W> a = matrix_in<W>(*in_memory, system.triangle);
    check_interrupt();
    return factor.solve(a.view, b.view(), x);
  }
  GeneralSolveResult told;
  Certificate& c = told.certificate;
  told.solve = factor.solve(b.view(), x);
  c.backward_error = c.componentwise_backward_error = c.scaled_condition;  // unknown
  c.scaled_condition = factor.scaled_condition();
  told.log_determinant_error = factor.log_determinant_error();
  c.bytes_moved = told.solve.traffic.total();
  c.precision = element_of<W>;
  return told;
}

/// Without A nothing refines x: why it may be far off although the condition is small; empty: it is
/// not. Growth up to n is ordinary and part of what a condition says.
std::string shortcoming_of_plain_solve(const GeneralFactor& factor, double log_determinant_error) {
  const double n = static_cast<double>(std::max<std::int64_t>(factor.n(), 1));
  const double growth = factor.info().growth;
  const double condition = factor.scaled_condition();
  const bool single = element_of_parts(factor.precision()) == Element::fp32;
  const double known = std::isnan(condition) ? 1 : std::max(condition, 1.0);
  const double error = growth / n * known * (single ? 0x1p-24 : 0x1p-53);
  if (growth > n && !(error <= solution_error_wanted(factor.precision())))
    return fmt::format(
        "elements grew {:.1e} times in elimination, so that x may be off by a share of {:.1e}: "
        "name A by --matrix, to refine and certify x",
        growth, std::min(error, 1.0));
  if (std::isinf(log_determinant_error))
    return "how far the factor is from A is not known: name A by --matrix, to refine and certify x";
  return {};
}

template <class W>
int solve_saved_in(GeneralFactor factor, const MatrixFile& rhs, const KnownMatrix& matrix,
                   const SavedSolve& system, const CommonOptions& common) {
  const bool file = !std::holds_alternative<std::monostate>(matrix);
  const auto start = std::chrono::steady_clock::now();
  const DenseMatrix<W> b = columns_of<W>(rhs, false);
  DenseMatrix<W> x{std::vector<W>(b.values.size()), b.rows, b.cols};
  GeneralSolveResult told = solved_by<W>(factor, matrix, b, x.view(), system);
  Certificate& c = told.certificate;
  const LuInfo& info = factor.info();
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
  const std::string shortcoming =
      file || singular ? "" : shortcoming_of_plain_solve(factor, told.log_determinant_error);
  if (!shortcoming.empty()) {
    object["certificate"]["ok"] = false;
    object["certificate"]["why"] = shortcoming;
  }
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
  if (!shortcoming.empty()) {
    fmt::print(stderr, "strata: solve: {}\n", shortcoming);
    return kNumbersSaidNo;
  }
  return file || singular ? report_solution(check) : status;
}

}  // namespace

int run_general_factor(const MatrixFile& file, const GeneralFactorArguments& arguments,
                       const CommonOptions& common) {
  return file.is_complex() ? factor_in<std::complex<double>>(file, arguments, common)
                           : factor_in<double>(file, arguments, common);
}

int run_factor_status(const std::string& directory, const CommonOptions& common) {
  const std::optional<FactorProgress> by_cholesky = cholesky_progress(directory);
  const FactorProgress progress = by_cholesky ? *by_cholesky : general_factor_progress(directory);
  const char* parts = by_cholesky ? "tiles" : "panels";
  const bool whole =
      by_cholesky ? CholeskyFactor::is_at(directory) : GeneralFactor::is_at(directory);
  const double share = progress.work_share;
  const double left = share > 0 ? progress.seconds * (1 - share) / share : 0;
  if (common.json) {
    fmt::print("{}\n", Json{{"about", progress.about},
                            {parts, progress.count},
                            {"done", progress.done},
                            {"whole", whole},
                            {"work_share", number(share)},
                            {"seconds", number(progress.seconds)},
                            {"seconds_left", share > 0 ? number(left) : Json(nullptr)}}
                           .dump(2));
    return 0;
  }
  fmt::print("{}\n", progress.about);
  fmt::print("  {:17} {} of {}, {:.1f} % of the work\n", parts, progress.done, progress.count,
             100 * share);
  if (progress.done < progress.count && share > 0)
    fmt::print(
        "  time left         about {:.3g} s, as fast as in the {:.3g} s until the last of them\n",
        left, progress.seconds);
  if (progress.done < progress.count)
    fmt::print("a run that was interrupted goes on with the command that it had, and --resume\n");
  else if (!whole)
    fmt::print(
        "all are there; unless another directory has the factor that tells of them, the command "
        "that began it ends it with --resume\n");
  return 0;
}

std::optional<int> run_factor_in_storage(const std::string& path,
                                         const GeneralFactorArguments& arguments,
                                         const CommonOptions& common) {
  const bool raw = is_called(path, ".raw");
  require(!raw || arguments.triangle.empty(), ErrorKind::misuse, "options",
          "--triangle: a file called .raw is read as it is");
  if (!arguments.triangle.empty()) return std::nullopt;
  const std::optional<MatrixInFile> matrix =
      raw ? raw_matrix(path, element_named(arguments.element), arguments.by_rows)
          : matrix_in_file(path);
  if (!matrix) return std::nullopt;
  const bool complex = is_complex(matrix->element);
  LuOptions options = lu_options_of(common.cholesky_options());
  options.run.storage = storage_of(arguments, matrix->n, complex, options.run);
  if (!raw && !options.run.storage.used()) return std::nullopt;
  return complex ? factor_matrix<std::complex<double>>(complex_source_of(*matrix), path, options,
                                                       arguments, common)
                 : factor_matrix<double>(source_of(*matrix), path, options, arguments, common);
}

void require_matrix_of_factor(const SavedSolve& system, const FactorShape& factor,
                              const MatrixShape& a) {
  require(a.rows == factor.n && a.cols == factor.n && a.complex == factor.complex,
          ErrorKind::misuse, "solve",
          "{} is {} by {}, of {} numbers, and {} is of order {}, of {} ones", system.matrix, a.rows,
          a.cols, a.complex ? "complex" : "real", system.factor, factor.n,
          factor.complex ? "complex" : "real");
}

int run_saved_solve(const SavedSolve& system, const CommonOptions& common) {
  const MatrixFile rhs(system.rhs);
  check_interrupt();
  GeneralFactor factor =
      GeneralFactor::open(system.factor, lu_options_of(common.cholesky_options()).run);
  check_interrupt();
  const bool complex = is_complex(factor.precision());
  require(rhs.rows() == factor.n(), ErrorKind::misuse, "solve",
          "{} has {} rows and {} is of order {}", rhs.path(), rhs.rows(), system.factor,
          factor.n());
  const auto check = [&](std::int64_t rows, std::int64_t cols, bool is_complex) {
    require_matrix_of_factor(system, {factor.n(), complex}, {rows, cols, is_complex});
  };
  KnownMatrix matrix;
  if (!system.matrix.empty()) {
    // A factor that host memory need not hold is of a matrix that it need not hold, either.
    std::optional<MatrixInFile> in_file;
    if (is_called(system.matrix, ".raw")) {
      require(system.triangle.empty(), ErrorKind::misuse, "options",
              "--triangle: a file called .raw is read as it is");
      in_file = raw_matrix_of(factor, system.matrix);
    } else if (factor.stored().count > 0 && system.triangle.empty()) {
      in_file = matrix_in_file(system.matrix);
    }
    if (in_file) {
      check(in_file->n, in_file->n, is_complex(in_file->element));
      matrix = *in_file;
    } else {
      const auto& file = matrix.emplace<MatrixFile>(system.matrix);
      check(file.rows(), file.cols(), file.is_complex());
    }
  }
  return complex
             ? solve_saved_in<std::complex<double>>(std::move(factor), rhs, matrix, system, common)
             : solve_saved_in<double>(std::move(factor), rhs, matrix, system, common);
}

void require_no_part_of_a_factor(const std::string& directory) {
  std::error_code error;
  require(
      std::filesystem::exists(directory + "/factor", error) ||
          !std::filesystem::exists(directory + "/storage", error),
      ErrorKind::input, "factor",
      "{}: in this directory rests the part of a factor that another one tells of, or that is "
      "not whole: 'strata factor {} --status' tells how far it is, and the command that began it "
      "goes on with --resume",
      directory, directory);
  require(std::filesystem::exists(directory + "/factor", error) ||
              std::filesystem::exists(directory + "/analysis", error),
          ErrorKind::input, "factor", "{}: there is no factor in this directory", directory);
}

int run_saved_determinant(const std::string& factor, const CommonOptions& common) {
  const GeneralFactor saved = GeneralFactor::open(factor, common.run_options());
  const Determinant& determinant = saved.info().determinant;
  const double error = saved.log_determinant_error();
  const double condition = saved.scaled_condition();
  const bool complex = is_complex(saved.precision());
  const bool singular = !std::isnan(condition) && numerically_singular(condition, Element::fp64);
  Json object{{"n", saved.n()},
              {"method", "lu"},
              {"precision", to_string(saved.precision())},
              {"factor", json_of_outcome(saved.info(), complex)},
              {"log_determinant", number(determinant.log())},
              {"log_determinant_error", number(error)},
              {"scaled_condition", number(condition)},
              {"numerically_singular", singular}};
  ReportData data;
  data.title = fmt::format("The log-determinant of a matrix of order {}", saved.n());
  data.subtitle = fmt::format("{}, a factor by LU in {}", factor, to_string(saved.precision()));
  data.figures = {{"Log determinant", fmt::format("{:.8g}", determinant.log()), "", ""}};
  begin_output();
  const int status = finish(common, std::move(data), object, [&] {
    fmt::print("a factor by LU of order {} in {}, as it was saved\n", saved.n(),
               to_string(saved.precision()));
    print_lu_determinant(determinant, error, complex);
    print_condition(condition, kRowsAndColumns);
    fmt::print("  growth            {:.3g} of elements in elimination\n", saved.info().growth);
  });
  if (singular) return report_singular(condition, Element::fp64, true, kRowsAndColumns);
  return std::isinf(error) ? report_unknown_determinant(saved.precision()) : status;
}

}  // namespace strata::cli
