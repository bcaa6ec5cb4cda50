// strata qr V -o Q --r R and strata lstsq A b -o x: tall and skinny matrices.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "cli/app.hpp"

namespace strata::cli {
namespace {

struct QrArguments {
  std::string matrix;
  std::string output;
  std::string r;
  std::string method = "auto";
  std::string dependent = "drop";
  bool no_verify = false;
  bool r_only = false;
  double rank_tolerance = 0;
  std::string wide_sums = "auto";
  std::vector<Option> of_automatic;  // options that only the automatic method heeds
  std::vector<Option> of_zeros;      // and one that a method by reflections does not
};

struct LstsqArguments {
  std::string matrix;
  std::string rhs;
  std::string output;
  std::string r;
  std::string wide_sums = "auto";
};

WideSums wide_sums_called(const std::string& name) {
  if (name == "extraction") return WideSums::extraction;
  return name == "digits" ? WideSums::digits : WideSums::automatic;
}

void require_matrix_name(const char* option, const std::string& path) {
  require(path.empty() || is_called(path, ".npy") || is_called(path, ".mtx"), ErrorKind::misuse,
          "options", "{} '{}': a matrix is a file called .npy or .mtx (or these with .gz)", option,
          path);
}

/// "2, 4, 6", or the first few and how many there are.
std::string listed(const std::vector<std::int64_t>& columns) {
  constexpr std::size_t kShown = 12;
  const std::vector<std::int64_t> shown(
      columns.begin(),
      columns.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, columns.size())));
  return fmt::format("{}{}", fmt::join(shown, ", "),
                     columns.size() > kShown ? fmt::format(", … ({})", columns.size()) : "");
}

Json qr_json(const QrInfo& info, std::int64_t rows, std::int64_t cols) {
  Json object = to_json(info.report);
  Json steps = Json::array();
  for (const QrStep& step : info.steps)
    steps.push_back({{"what", step.what},
                     {"wide_sum", step.wide_sum},
                     {"wide_solve", step.wide_solve},
                     {"condition", number(step.condition)},
                     {"orthogonality", number(step.orthogonality)}});
  object["qr"] = {{"ok", info.ok},
                  {"rows", rows},
                  {"cols", cols},
                  {"rank", info.rank},
                  {"numerical_rank", info.numerical_rank},
                  {"dependent_columns", info.dependent_columns},
                  {"condition", number(info.condition)},
                  {"orthogonality", number(info.orthogonality)},
                  {"orthogonality_measured", info.measured},
                  {"residual", number(info.residual)},
                  {"method", to_string(info.method)},
                  {"passes", info.passes},
                  {"failed_cholesky", info.failed_cholesky},
                  {"shifts", info.shifts},
                  {"rescaled", info.rescaled},
                  {"steps", std::move(steps)}};
  return object;
}

std::string orthogonality_of(const QrInfo& info) {
  if (std::isnan(info.orthogonality)) return "not measured";
  return fmt::format("{:.2e} ({})", rounded_up(info.orthogonality, 3),
                     info.measured ? "measured" : "bound");
}

/// A bound; where there is none, that is said.
std::string condition_of(double condition, int digits) {
  return std::isfinite(condition)
             ? fmt::format("{:.{}e}", rounded_up(condition, digits + 1), digits)
             : "not known";
}

/// What auto could not make is not written; what other methods lose is theirs.
bool writes_result(const QrInfo& info) { return info.ok || info.method != QrMethod::automatic; }

void print_qr(const QrInfo& info, std::int64_t rows, std::int64_t cols, const QrArguments& a) {
  const RunReport& run = info.report;
  fmt::print("{} {} by {} in {} {} with {} ({}, blocks of {} rows)\n",
             a.r_only ? "R of" : "orthonormalized", rows, cols, info.passes,
             info.passes == 1 ? "pass" : "passes", fmt::join(run.devices, ", "),
             to_string(info.method), run.tile);
  if (!a.r_only) fmt::print("  orthogonality     {}\n", orthogonality_of(info));
  if (!std::isnan(info.residual))
    fmt::print("  residual          {:.2e} of each column at most\n", rounded_up(info.residual, 3));
  fmt::print("  condition         {}\n  rank              {}\n", condition_of(info.condition, 2),
             info.rank);
  if (info.numerical_rank < info.rank)
    fmt::print("  numerical rank    {} (further columns differ from others by rounding)\n",
               info.numerical_rank);
  if (!info.dependent_columns.empty())
    fmt::print("  dependent columns {} (counted from 0)\n", listed(info.dependent_columns));
  if (info.failed_cholesky > 0 || info.shifts > 0)
    fmt::print("  failed pivots     {}, shifts {}\n", info.failed_cholesky, info.shifts);
  if (info.rescaled) fmt::print("  columns were scaled first: their squares leave the range\n");
  fmt::print("  time              {:.3g} s\n", run.seconds);
  print_traffic(run);
  if (!writes_result(info)) return;
  if (!a.output.empty()) fmt::print("Q written to {}\n", a.output);
  if (!a.r.empty()) fmt::print("R written to {}\n", a.r);
}

/// A matrix that is read where it lies if it is a .npy file of its precision, mapped, in either
/// order; else it is in memory.
template <class T>
class MatrixSource {
 public:
  explicit MatrixSource(const std::string& path) {
    if (is_called(path, ".npy")) file_.emplace(path);
    if (file_ && file_->precision() == element_of<T>) return;
    file_.reset();
    const DenseMatrix<double> wide = read_dense(path);
    dense_ = {std::vector<T>(wide.values.begin(), wide.values.end()), wide.rows, wide.cols,
              wide.dimensions};
  }
  [[nodiscard]] int dimensions() const { return file_ ? file_->dimensions() : dense_.dimensions; }
  [[nodiscard]] TallInput<T> input() const {
    if (!file_) return {std::as_const(dense_).view()};
    if (file_->row_major()) return {file_->template transposed_view<T>(), true};
    return {{static_cast<const T*>(file_->elements()), file_->rows(), file_->cols(),
             std::max<std::int64_t>(file_->rows(), 1)}};
  }

 private:
  std::optional<NpyFile> file_;
  DenseMatrix<T> dense_;
};

/// Where Q is computed: in the file that it goes to, mapped, or in memory.
template <class T>
class MatrixPlace {
 public:
  MatrixPlace(const std::string& path, std::int64_t rows, std::int64_t cols) {
    std::error_code ignored;
    const auto status = std::filesystem::status(path, ignored);
    const bool whole = !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
    if (path.ends_with(".npy") && whole) {
      file_.emplace(path, element_of<T>, rows, cols);
    } else {
      dense_ = {std::vector<T>(static_cast<std::size_t>(rows * cols)), rows, cols};
    }
  }
  [[nodiscard]] MatrixView<T> view() { return file_ ? file_->template view<T>() : dense_.view(); }
  /// The first `cols` columns become the file.
  void write(const std::string& path, std::int64_t cols) {
    if (file_) return file_->close(cols);
    write_dense(path, std::as_const(dense_).view().block(0, 0, dense_.rows, cols));
  }

 private:
  std::optional<NpyOutput> file_;
  DenseMatrix<T> dense_;
};

template <class T>
int factor_tall_file(const QrArguments& a, const CommonOptions& common, const QrOptions& options) {
  const MatrixSource<T> source(a.matrix);
  check_interrupt();
  const TallInput<T> input = source.input();
  const std::int64_t n = input.cols();
  const std::int64_t m = input.rows();
  MatrixPlace<T> q(a.output, a.r_only ? 0 : m, n);
  DenseMatrix<T> r{std::vector<T>(static_cast<std::size_t>(n * n)), n, n};
  const QrInfo info =
      a.r_only ? qr_r(input, r.view(), options) : qr(input, q.view(), r.view(), options);
  // What was dropped is not written: Q has fewer columns and R as many rows.
  const bool dropped = options.dependent == DependentColumns::drop;
  const std::int64_t kept = dropped ? n - std::ssize(info.dependent_columns) : n;
  const Json object = qr_json(info, m, n);
  ReportData data;
  data.title = fmt::format("QR of a {} by {} matrix", m, n);
  data.subtitle = fmt::format("{}, by {}", a.matrix, to_string(info.method));
  data.figures = {{"Condition", condition_of(info.condition, 1), "", "of unit columns"},
                  {"Rank", fmt::format("{}", info.rank), "", fmt::format("of {}", n)}};
  if (!a.r_only)
    data.figures.insert(data.figures.begin(), {"‖I − QᵀQ‖", orthogonality_of(info), "", ""});
  data.qr_steps = info.steps;
  data.run = info.report;
  begin_output();
  if (writes_result(info)) {
    if (!a.output.empty()) q.write(a.output, kept);
    if (!a.r.empty()) write_dense(a.r, std::as_const(r).view().block(0, 0, kept, n));
  }
  const int status = finish(common, std::move(data), object, [&] { print_qr(info, m, n, a); });
  if (info.ok) return status;
  const std::string residual =
      std::isnan(info.residual) ? "" : fmt::format(", residual {:.1e}", rounded_up(info.residual));
  fmt::print(stderr,
             "strata: qr: {} did not make V = Q R with orthonormal columns of this matrix: "
             "orthogonality {:.1e}{}, {}{}\n",
             to_string(info.method), rounded_up(info.orthogonality), residual,
             counted(info.failed_cholesky, "failed pivot"),
             info.method == QrMethod::automatic ? ""
             : info.rescaled && info.orthogonality < info.residual
                 ? "; elements of R are at the lower end of the range: scale V"
                 : "; --method auto may");
  return kNumbersSaidNo;
}

int run_qr(const QrArguments& a, const CommonOptions& common) {
  QrOptions options;
  options.method = parse_qr_method(a.method);
  if (options.method != QrMethod::automatic)
    refuse_given(a.of_automatic, "is an option of --method auto");
  const bool reflects = options.method == QrMethod::tsqr || options.method == QrMethod::tsqr_flat;
  if (reflects && a.dependent == "drop")
    refuse_given(a.of_zeros, fmt::format("drop is not for --method {}, which always fills",
                                         to_string(options.method)));
  options.dependent = a.dependent == "fill" ? DependentColumns::fill : DependentColumns::drop;
  options.verify = !a.no_verify;
  options.rank_tolerance = a.rank_tolerance;
  require(common.seed <= 0xfffffff, ErrorKind::misuse, "options", "--seed {}: at most {}",
          common.seed, 0xfffffff);
  options.seed = static_cast<std::uint32_t>(common.seed);
  options.run = common.run_options();
  options.wide_sums = wide_sums_called(a.wide_sums);
  require(!a.r_only || a.output.empty(), ErrorKind::misuse, "options",
          "--r-only makes no Q for --output {}", a.output);
  require_matrix_name("--output", a.output);
  require_matrix_name("--r", a.r);
  check_outputs(common, {{"--output", a.output}, {"--r", a.r}}, {a.matrix, common.rates});
  if (is_called(a.matrix, ".npy") && NpyFile(a.matrix).precision() == Element::fp32)
    return factor_tall_file<float>(a, common, options);
  return factor_tall_file<double>(a, common, options);
}

void print_lstsq(const LeastSquaresInfo& info, std::int64_t rows, const DenseMatrix<double>& x,
                 const LstsqArguments& arguments) {
  const std::int64_t cols = x.rows;
  fmt::print("{} from {} with {}\n", counted(cols, "unknown"), counted(rows, "equation"),
             fmt::join(info.report.devices, ", "));
  fmt::print("  condition         {}\n  rank              {}\n", condition_of(info.condition, 2),
             info.rank);
  if (!info.dependent_columns.empty())
    fmt::print("  dependent columns {} (counted from 0; coefficients 0)\n",
               listed(info.dependent_columns));
  fmt::print(
      "  residual          {:.6g}\n  error bound       {:.1e}\n  time              {:.3g} s\n",
      fmt::join(info.residual_norm, ", "), rounded_up(info.error_bound), info.report.seconds);
  if (numerically_singular(info.condition, Element::fp64))
    fmt::print(
        "  note              columns differ from others by no more than rounding: x is that of the "
        "numbers as they are stored; if these were rounded, no digit of it is sure\n");
  print_traffic(info.report);
  if (!arguments.output.empty()) {
    fmt::print("x written to {}\n", arguments.output);
    return;
  }
  constexpr std::size_t kShown = 20;
  const std::size_t shown = std::min(kShown, x.values.size());
  fmt::print("x = {:.16g}\n", fmt::join(x.values.begin(), x.values.begin() + shown, ", "));
  if (shown < x.values.size())
    fmt::print("    … {} more with --output or --json\n", x.values.size() - shown);
}

/// Where the condition is small, and what A explains of b smaller than what rounding leaves of the
/// products with its columns: that. Else nothing.
std::string why_orthogonal(const LeastSquaresInfo& info, std::int64_t columns) {
  constexpr double kConditionSmall = 1e8;
  constexpr double kApart = 1e6;  // below, no such condition makes the error too large
  if (!(info.condition <= kConditionSmall)) return {};
  const std::size_t n = info.qtb.size() / static_cast<std::size_t>(columns);
  std::int64_t worst = -1;
  double least = 1 / kApart;
  for (std::int64_t k = 0; k < columns; ++k) {
    const auto column = static_cast<std::size_t>(k);
    double fitted = 0;  // the length of A·x
    for (std::size_t i = 0; i < n; ++i) fitted = std::hypot(fitted, info.qtb[i + column * n]);
    const double residual = info.residual_norm[column];
    if (!(residual > 0) || fitted / residual > least) continue;
    least = fitted / residual;
    worst = k;
  }
  if (worst < 0) return {};
  const std::string b = columns == 1 ? "b" : fmt::format("column {} of b (counted from 0)", worst);
  return fmt::format(
      "{} is orthogonal to the columns of A but for rounding: {}", b,
      std::isfinite(info.error_bound)
          ? fmt::format("the error of x may be {:.1e} of its size", rounded_up(info.error_bound))
          : "x is known to no digit beside its size");
}

int run_lstsq(const LstsqArguments& arguments, const CommonOptions& common) {
  const LeastSquaresOptions options{.wide_sums = wide_sums_called(arguments.wide_sums),
                                    .run = common.run_options()};
  require_matrix_name("--output", arguments.output);
  require_matrix_name("--r", arguments.r);
  check_outputs(common, {{"--output", arguments.output}, {"--r", arguments.r}},
                {arguments.matrix, arguments.rhs, common.rates});
  const MatrixSource<double> a_source(arguments.matrix);
  const MatrixSource<double> b_source(arguments.rhs);
  const TallInput<double> a = a_source.input();
  const TallInput<double> b = b_source.input();
  check_interrupt();
  DenseMatrix<double> x{std::vector<double>(static_cast<std::size_t>(a.cols() * b.cols())),
                        a.cols(), b.cols()};
  const LeastSquaresInfo info = least_squares(a, b, x.view(), options);
  Json object = to_json(info.report);
  object["lstsq"] = {{"ok", info.ok},
                     {"rows", a.rows()},
                     {"cols", a.cols()},
                     {"rank", info.rank},
                     {"dependent_columns", info.dependent_columns},
                     {"condition", number(info.condition)},
                     {"numerically_singular", numerically_singular(info.condition, Element::fp64)},
                     {"residual_norm", info.residual_norm},
                     {"refinements", info.refinements},
                     {"error_bound", number(info.error_bound)}};
  if (arguments.output.empty()) object["lstsq"]["x"] = x.values;
  ReportData data;
  data.title = fmt::format("Least squares: {} unknowns, {} equations", a.cols(), a.rows());
  data.subtitle = fmt::format("{} with {}", arguments.matrix, arguments.rhs);
  data.figures = {{"Condition", condition_of(info.condition, 1), "", "of unit columns"},
                  {"Error bound", fmt::format("{:.1e}", rounded_up(info.error_bound)), "", ""}};
  data.run = info.report;
  begin_output();
  if (!arguments.output.empty())
    write_dense(arguments.output, std::as_const(x).view(), b_source.dimensions());
  if (!arguments.r.empty())
    write_dense(arguments.r, MatrixView<const double>{info.r.data(), a.cols(), a.cols(), a.cols()});
  const int status =
      finish(common, std::move(data), object, [&] { print_lstsq(info, a.rows(), x, arguments); });
  if (info.ok) return status;
  if (!std::all_of(x.values.begin(), x.values.end(), [](double v) { return std::isfinite(v); })) {
    fmt::print(stderr, "strata: lstsq: numbers of x leave the range of fp64\n");
  } else if (!info.dependent_columns.empty()) {
    const bool one = info.dependent_columns.size() == 1;
    fmt::print(
        stderr,
        "strata: lstsq: {} {} of A (counted from 0) {} on those before {} and {} 0: x is one of "
        "many that fit as well\n",
        one ? "column" : "columns", listed(info.dependent_columns), one ? "depends" : "depend",
        one ? "it" : "them", one ? "has a coefficient of" : "have coefficients of");
  } else if (const std::string why = why_orthogonal(info, b.cols()); !why.empty()) {
    fmt::print(stderr, "strata: lstsq: {}\n", why);
  } else {
    fmt::print(stderr,
               "strata: lstsq: with a condition of {:.1e} the error of x may be {:.1e}: other "
               "unknowns, or fewer, would determine it better\n",
               rounded_up(info.condition), rounded_up(info.error_bound));
  }
  return kNumbersSaidNo;
}

}  // namespace

namespace {

void add_wide_sums(Command& verb, std::string& sums) {
  verb.add_option("--wide-sums", sums,
                  "how sums in double-double are formed: by extraction, with the same bits on CPUs "
                  "and GPUs, or by digits, which are for the tensor cores of GPUs; auto: digits on "
                  "GPUs, of 20 columns or more")
      .check(one_of({"auto", "extraction", "digits"}))
      .capture_default_str();
}

}  // namespace

void add_qr(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("qr", "orthonormalize the columns of a tall matrix, V = Q R");
  add_examples(verb, {"strata qr V.npy -o Q.npy --r R.npy"});
  auto a = std::make_shared<QrArguments>();
  common.add_run_options(verb);
  verb.add_option("V", a->matrix, "matrix with more rows than columns: .npy, .mtx or these .gz")
      .required();
  verb.add_option("-o,--output", a->output, "where Q goes: .npy or .mtx");
  verb.add_option("--r", a->r, "where R goes: .npy or .mtx");
  std::string names;
  for (const QrMethod method : qr_methods())
    names += (names.empty() ? "" : ", ") + std::string(to_string(method));
  verb.add_option("--method", a->method, names).capture_default_str();
  a->of_zeros.push_back(
      verb.add_option("--dependent", a->dependent,
                      "columns that depend on others (by auto; of other methods those of zeros): "
                      "drop them from Q, or fill their places with other orthonormal ones, as "
                      "tsqr always does")
          .check(one_of({"drop", "fill"}))
          .capture_default_str());
  verb.add_flag("--r-only", a->r_only,
                "R, rank and condition alone: V is read once, or twice where it is very "
                "ill-conditioned");
  verb.add_flag("--no-verify", a->no_verify,
                "bound the orthogonality instead of measuring it, by auto and tsqr");
  a->of_automatic.push_back(
      verb.add_option("--rank-tolerance", a->rank_tolerance,
                      "of auto: columns that are this near, beside their length, to the span of "
                      "those before them are dependent; 0: only those that are so exactly")
          .capture_default_str());
  add_wide_sums(verb, a->wide_sums);
  verb.callback([&run, &common, a] { run = [&common, a] { return run_qr(*a, common); }; });
}

void add_lstsq(Command& app, CommonOptions& common, Run& run) {
  Command verb =
      app.add_subcommand("lstsq", "least squares: x that minimizes |b - A x|, for a tall A");
  add_examples(verb, {"strata lstsq A.npy b.npy -o x.npy"});
  auto a = std::make_shared<LstsqArguments>();
  common.add_run_options(verb);
  verb.add_option("A", a->matrix, "matrix: .npy, .mtx or these .gz").required();
  verb.add_option("b", a->rhs, "right-hand sides: .npy, .mtx or these .gz").required();
  verb.add_option("-o,--output", a->output, "where x goes: .npy or .mtx (else it is shown)");
  verb.add_option("--r", a->r, "where R of A goes: .npy or .mtx");
  add_wide_sums(verb, a->wide_sums);
  verb.callback([&run, &common, a] { run = [&common, a] { return run_lstsq(*a, common); }; });
}

}  // namespace strata::cli
