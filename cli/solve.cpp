// strata solve A b -o x: dense symmetric positive definite systems.

#include <fmt/format.h>

#include <cmath>

#include "base/check.hpp"
#include "cli/app.hpp"

namespace strata::cli {
namespace {

struct SolveArguments {
  std::string matrix;
  std::string rhs;
  std::string output;
};

/// A square matrix as a column-major view: mapped where the file allows it, else in memory.
class MatrixFile {
 public:
  explicit MatrixFile(const std::string& path) {
    if (is_called(path, ".npy")) {
      file_.emplace_back(path);
      file_[0].require_finite();
      if (file_[0].precision() == Precision::fp64) {
        // A symmetric matrix equals its transpose, so a row-major file needs no copy.
        view_ = file_[0].row_major() ? file_[0].transposed_view<double>() : file_[0].view<double>();
        return;
      }
      dense_ = file_[0].to_dense();
    } else {
      dense_ = read_dense(path);
    }
    view_ = std::as_const(dense_).view();
  }
  MatrixFile(const MatrixFile&) = delete;  // the view points into the object
  MatrixFile& operator=(const MatrixFile&) = delete;

  [[nodiscard]] MatrixView<const double> view() const noexcept { return view_; }

 private:
  std::vector<NpyFile> file_;
  DenseMatrix<double> dense_;
  MatrixView<const double> view_;
};

/// Throws Error{numerical} naming the first pair that differs by more than rounding, in blocks that
/// stay in the cache.
void check_symmetric(MatrixView<const double> a, const std::string& path) {
  require(a.rows == a.cols, ErrorKind::misuse, "solve", "{}: a {} by {} matrix is not square", path,
          a.rows, a.cols);
  constexpr std::int64_t kBlock = 64;
  constexpr double kTolerance = 1e-12;
  for (std::int64_t jb = 0; jb < a.cols; jb += kBlock) {
    check_interrupt();
    for (std::int64_t ib = jb; ib < a.rows; ib += kBlock) {
      for (std::int64_t j = jb; j < std::min(jb + kBlock, a.cols); ++j) {
        for (std::int64_t i = std::max(ib, j + 1); i < std::min(ib + kBlock, a.rows); ++i) {
          const double scale = std::max(
              {std::abs(a(i, i)), std::abs(a(j, j)), std::abs(a(i, j)), std::abs(a(j, i))});
          require(std::abs(a(i, j) - a(j, i)) <= kTolerance * scale, ErrorKind::numerical, "solve",
                  "{}: not symmetric: element ({}, {}) is {} and ({}, {}) is {}", path, i, j,
                  a(i, j), j, i, a(j, i));
        }
      }
    }
  }
}

void print_solve(const SolveResult& result, MatrixView<const double> b, const std::string& output) {
  const Certificate& c = result.certificate;
  const RunReport& factor = result.factor;
  fmt::print("solved {} unknowns, {} right-hand sides, with {} ({}, tile {}, {})\n", b.rows, b.cols,
             fmt::join(factor.devices, ", "), factor.path, factor.tile, factor.policy);
  fmt::print("  backward error    {:.2e}\n  log determinant   {:.15g}\n  refinement steps  {}\n",
             c.backward_error, c.factor.log_determinant, c.refinement_steps);
  fmt::print("  factor            {:.3g} s, {:.1f} GFLOP/s\n  total             {:.3g} s\n",
             factor.seconds, factor.seconds > 0 ? factor.flops / factor.seconds / 1e9 : 0,
             c.seconds);
  print_traffic(factor);
  fmt::print("x written to {}\n", output);
}

int run_solve(const SolveArguments& arguments, const CommonOptions& common) {
  const Options options = common.to_options();
  require(is_called(arguments.output, ".npy") || is_called(arguments.output, ".mtx"),
          ErrorKind::misuse, "solve",
          "--output '{}': the solution is a file called .npy or .mtx (or these with .gz)",
          arguments.output);
  check_outputs(common, {{"--output", arguments.output}},
                {arguments.matrix, arguments.rhs, common.rates});
  const MatrixFile matrix(arguments.matrix);
  check_symmetric(matrix.view(), arguments.matrix);
  const DenseMatrix<double> b = read_dense(arguments.rhs);
  check_interrupt();
  require(b.rows == matrix.view().rows, ErrorKind::misuse, "solve",
          "{} has {} rows and {} is of order {}", arguments.rhs, b.rows, arguments.matrix,
          matrix.view().rows);
  DenseMatrix<double> x{std::vector<double>(b.values.size()), b.rows, b.cols};
  const SolveResult result = solve(matrix.view(), b.view(), x.view(), options);
  const Certificate& certificate = result.certificate;
  nlohmann::json object = to_json(result.factor);
  object["factor"] = to_json(certificate.factor);
  object["certificate"] = to_json(certificate);
  if (!certificate.factor.ok) return report_failed_factor(common, certificate.factor, object);
  object["solve"] = to_json(result.solve);
  ReportData data;
  data.title = fmt::format("A system of {} unknowns, solved", b.rows);
  data.subtitle = fmt::format("{} with {}", arguments.matrix, arguments.rhs);
  data.figures = {
      {"Backward error", fmt::format("{:.1e}", certificate.backward_error), "", ""},
      {"Log determinant", fmt::format("{:.8g}", certificate.factor.log_determinant), "", ""}};
  data.run = result.factor;
  begin_output();
  write_dense(arguments.output, std::as_const(x).view());
  return finish(common, std::move(data), object,
                [&] { print_solve(result, b.view(), arguments.output); });
}

}  // namespace

void add_solve(CLI::App& app, CommonOptions& common, Run& run) {
  CLI::App* verb =
      app.add_subcommand("solve", "solve A x = b for a dense symmetric positive definite A");
  auto arguments = std::make_shared<SolveArguments>();
  common.add_to(*verb);
  verb->add_option("A", arguments->matrix, "matrix: .npy, .mtx or .mtx.gz")->required();
  verb->add_option("b", arguments->rhs, "right-hand sides: .npy, .mtx or .mtx.gz")->required();
  verb->add_option("-o,--output", arguments->output, "where the solution goes: .npy or .mtx")
      ->required();
  verb->callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_solve(*arguments, common); };
  });
}

}  // namespace strata::cli
