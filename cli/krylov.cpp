// strata solve A b --method gmres, and strata eigs A: sparse matrices.

#include "cli/krylov.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

struct EigsArguments {
  std::string matrix;
  std::string vectors;
  std::string values;
  std::string which = "largest";
  std::string triangle;
  std::int64_t k = 6;
  std::int64_t basis_size = 0;
  std::int64_t restarts_max = 1000;
  std::int64_t products_max = 0;
  std::string method = "auto";
  bool no_filter = false;
  double tolerance = 1e-10;
  std::string mass;
  double sigma = 0;
  std::vector<Option> of_sigma;  // --sigma
  BlockArguments block;
  std::vector<Option> of_lanczos;   // beside those of the block
  std::vector<Option> of_products;  // of these, those that a factor has no use for

  [[nodiscard]] bool has_sigma() const { return !of_sigma.empty() && of_sigma[0].given(); }
  /// Whether the pairs are found by a factor: where that was asked for, and the smallest of a
  /// matrix that is not small unless what was asked for is Lanczos' method with products.
  [[nodiscard]] bool by_factor(std::int64_t n) const {
    if (method != "auto") return method == "shift-invert";
    if (has_sigma() || !mass.empty()) return true;
    const auto given = [](const Option& option) { return option.given(); };
    return which == "smallest" && n > kDenseEigsOrder &&
           std::none_of(of_products.begin(), of_products.end(), given) &&
           std::none_of(block.options.begin(), block.options.end(), given);
  }
};

Json decision_json(const KrylovDecision& d) {
  return {{"restart", d.restart},   {"column", d.column}, {"s", d.s},
          {"wide", d.wide},         {"passes", d.passes}, {"condition", number(d.condition)},
          {"loss", number(d.loss)}, {"what", d.what},     {"reductions", d.reductions}};
}

Json decisions_json(const std::vector<KrylovDecision>& decisions) {
  Json list = Json::array();
  for (const KrylovDecision& d : decisions) list.push_back(decision_json(d));
  return list;
}

Json halo_json(const HaloReport& halo) {
  return {{"ghost_zones", halo.ghost_zones},
          {"ghost_share", halo.ghost_share},
          {"exchanges", halo.exchanges},
          {"bytes", halo.bytes},
          {"why", halo.why}};
}

Json gmres_json(const GmresInfo& info, const GmresOptions& options) {
  Json object = strata::cli::to_json(info.report);
  Json history = Json::array();
  for (const KrylovCycle& cycle : info.history)
    history.push_back({{"vectors", cycle.vectors},
                       {"blocks", cycle.blocks},
                       {"relative_residual", number(cycle.relative_residual)},
                       {"estimated_residual", number(cycle.estimated_residual)},
                       {"failed_cholesky", cycle.failed_cholesky}});
  object["gmres"] = {{"ok", info.ok},
                     {"restart", options.restart},
                     {"s", options.s},
                     {"basis", to_string(options.basis)},
                     {"precision", to_string(options.precision)},
                     {"orthogonalization", to_string(options.orthogonalization)},
                     {"block_orthogonalization", to_string(options.block_orthogonalization)},
                     {"panel", options.panel},
                     {"reductions", info.reductions},
                     {"preconditioner", to_string(options.preconditioner.kind)},
                     {"residual_norm", number(info.residual_norm)},
                     {"relative_residual", number(info.relative_residual)},
                     {"scaled_residual", number(info.scaled_residual)},
                     {"rows_apart", number(info.rows_apart)},
                     {"restarts", info.restarts},
                     {"iterations", info.iterations},
                     {"stagnated", info.stagnated},
                     {"breakdown", info.breakdown},
                     {"why", info.why},
                     {"factorizations", info.factorizations},
                     {"failed_cholesky", info.failed_cholesky},
                     {"condition_max", number(info.condition_max)},
                     {"halo", halo_json(info.halo)},
                     {"seconds", to_json(info.seconds)},
                     {"history", std::move(history)},
                     {"decisions", decisions_json(info.decisions)}};
  if (options.preconditioner.kind == Preconditioner::block_jacobi)
    object["gmres"]["block_size"] = options.preconditioner.block_size;
  return object;
}

void print_decisions(const std::vector<KrylovDecision>& decisions) {
  constexpr int kShown = 12;
  int shown = 0;
  for (const KrylovDecision& d : decisions) {
    if (d.what.empty()) continue;
    if (++shown > kShown) break;
    fmt::print("  cycle {}, column {}: {}\n", d.restart + 1, d.column, d.what);
  }
  if (shown > kShown) fmt::print("  … further decisions with --json\n");
}

void print_halo(const HaloReport& halo) {
  if (!halo.asked_for_ghost_zones) return;
  if (halo.ghost_zones) {
    fmt::print("  ghost zones       {:.3g} of a block's rows; {} exchanges\n", halo.ghost_share,
               halo.exchanges);
  } else {
    fmt::print("  ghost zones       {}\n", halo.why);
  }
}

ReportKrylov krylov_report(const GmresInfo& info, double tolerance) {
  ReportKrylov report{"‖b − A·x‖ / ‖b‖", {}, {}, tolerance, info.decisions};
  for (const KrylovCycle& cycle : info.history) {
    report.residual.push_back(cycle.relative_residual);
    report.estimated.push_back(cycle.estimated_residual);
  }
  return report;
}

ReportKrylov krylov_report(const EigsInfo& info, double tolerance) {
  ReportKrylov report{"‖A·v − λ·v‖ / ‖A‖, largest", {}, {}, tolerance, info.decisions};
  for (const EigsCycle& cycle : info.history) report.estimated.push_back(cycle.estimated_residual);
  return report;
}

ReportChart residual_chart(const std::vector<double>& residuals) {
  ReportChart chart{"Residual of each pair, computed with A",
                    "eigenpair",
                    "‖A·v − λ·v‖",
                    {{"residual", {}, residuals}},
                    AxisScale::linear,
                    AxisScale::logarithmic};
  for (std::size_t i = 0; i < residuals.size(); ++i)
    chart.series[0].x.push_back(static_cast<double>(i + 1));
  return chart;
}

void print_gmres(const GmresInfo& info, std::int64_t n, const GmresOptions& options,
                 const std::string& output) {
  fmt::print("{} {} with {} (gmres({}), s = {}, {} basis, {}, vectors in {})\n",
             info.ok ? "solved" : "did not solve", counted(n, "unknown"),
             fmt::join(info.report.devices, ", "), options.restart, options.s,
             to_string(options.basis), to_string(options.orthogonalization),
             to_string(options.precision));
  fmt::print("  residual          {:.2e} of |b|\n", rounded_up(info.relative_residual, 3));
  if (info.rows_apart >= kRowsFarApart && options.balance.value_or(true))
    fmt::print("  of scaled rows    {:.2e} of |b|: rows of A are {:.0e} apart in length\n",
               rounded_up(info.scaled_residual, 3), info.rows_apart);
  fmt::print("  cycles            {}\n  vectors           {}\n", info.restarts, info.iterations);
  if (info.factorizations > 0)
    fmt::print("  factorizations    {}, of these failed {}; estimated condition up to {:.1e}\n",
               info.factorizations, info.failed_cholesky, info.condition_max);
  print_halo(info.halo);
  print_decisions(info.decisions);
  fmt::print("  time              {:.3g} s\n", info.report.seconds);
  print_traffic(info.report);
  fmt::print("x {}written to {}\n", info.ok ? "" : "as far as it came ", output);
}

Json numbers(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

Json eigs_json(const EigsInfo& info, const EigsOptions& options,
               const std::vector<std::string>& without_effect) {
  Json object = strata::cli::to_json(info.report);
  Json history = Json::array();
  for (const EigsCycle& cycle : info.history)
    history.push_back(
        {{"locked", cycle.locked}, {"estimated_residual", number(cycle.estimated_residual)}});
  object["eigs"] = {{"ok", info.ok},
                    {"k", options.k},
                    {"s", options.s},
                    {"basis", to_string(options.basis)},
                    {"method", info.dense ? "dense" : "lanczos"},
                    {"values", numbers(info.values)},
                    {"residuals", numbers(info.residuals)},
                    {"bounds", numbers(info.bounds)},
                    {"unresolved", info.unresolved},
                    {"converged", info.converged},
                    {"restarts", info.restarts},
                    {"products", info.products},
                    {"filter_degree", info.filter_degree},
                    {"orthogonality", number(info.orthogonality)},
                    {"without_effect", without_effect},
                    {"why", info.why},
                    {"factorizations", info.factorizations},
                    {"failed_cholesky", info.failed_cholesky},
                    {"condition_max", number(info.condition_max)},
                    {"halo", halo_json(info.halo)},
                    {"history", std::move(history)},
                    {"seconds", to_json(info.seconds)},
                    {"decisions", decisions_json(info.decisions)}};
  return object;
}

/// Which options were given that the method has no use for: those of Lanczos' method where a small
/// order was taken for a dense matrix.
std::vector<std::string> without_effect_of(const EigsInfo& info, const EigsArguments& a) {
  std::vector<std::string> names;
  if (!info.dense) return names;
  for (const auto& options : {a.of_lanczos, a.block.options})
    for (const Option& option : options)
      if (option.given()) names.push_back(option.name());
  return names;
}

void print_eigs(const EigsInfo& info, std::int64_t n, const EigsArguments& a,
                const std::vector<std::string>& without_effect) {
  constexpr std::size_t kShown = 10;
  fmt::print(
      "{} of {} {} eigenvalues of order {} with {}\n", info.converged, a.k, a.which, n,
      info.dense ? "a dense method" : fmt::format("{}", fmt::join(info.report.devices, ", ")));
  for (std::size_t i = 0; i < std::min(kShown, info.values.size()); ++i)
    fmt::print("  {:24.16g} ± {:.1e}   residual {:.1e}{}\n", info.values[i],
               rounded_up(info.bounds[i]), rounded_up(info.residuals[i]),
               info.unresolved[i] ? "   not resolved" : "");
  if (info.values.size() > kShown)
    fmt::print("  … {} more with --json or --values\n", info.values.size() - kShown);
  if (!info.dense)
    fmt::print("  cycles            {}\n  products          {}\n", info.restarts, info.products);
  if (!without_effect.empty())
    fmt::print("  without effect    {} ({} for --method lanczos)\n",
               fmt::join(without_effect, ", "), without_effect.size() == 1 ? "it is" : "they are");
  fmt::print("  orthogonality     {:.1e}\n", rounded_up(info.orthogonality));
  print_halo(info.halo);
  print_decisions(info.decisions);
  fmt::print("  time              {:.3g} s\n", info.report.seconds);
  if (!info.dense) print_traffic(info.report);
}

/// What is not shift-invert's; throws Error{misuse} for options that exclude each other.
EigsMethod method_of(const EigsArguments& a) {
  const bool asked = a.method == "shift-invert" || a.has_sigma() || !a.mass.empty();
  require(!asked || a.which == "smallest", ErrorKind::misuse, "options",
          "--method shift-invert, --sigma and --mass find the smallest eigenvalues: --which "
          "smallest");
  require(a.method == "auto" || a.method == "shift-invert" || !asked, ErrorKind::misuse, "options",
          "--sigma and --mass are options of --method shift-invert");
  if (asked) {
    refuse_given(a.of_products, "is an option of --method lanczos");
    refuse_given(a.block.options, "is an option of --method lanczos");
  }
  return a.method == "shift-invert" ? EigsMethod::automatic : parse_eigs_method(a.method);
}

int run_eigs(const EigsArguments& a, const CommonOptions& common) {
  EigsOptions options;
  options.run = common.run_options();
  options.k = a.k;
  options.which = a.which == "smallest" ? EigenEnd::smallest : EigenEnd::largest;
  options.basis_size = a.basis_size;
  options.s = a.block.s;
  options.basis = parse_krylov_basis(a.block.basis);
  options.orthogonalization = parse_qr_method(a.block.orth);
  options.tolerance = a.tolerance;
  options.restarts_max = a.restarts_max;
  options.products_max = a.products_max;
  options.method = method_of(a);
  if (options.method == EigsMethod::dense)
    for (const auto& given : {a.of_lanczos, a.block.options})
      refuse_given(given, "is an option of --method lanczos");
  options.filter = !a.no_filter;
  options.reorder = !a.block.natural_order;
  options.ghost_zones = a.block.ghost_zones;
  options.seed = common.seed;
  for (const auto& [option, path] : {std::pair("--output", a.vectors), {"--values", a.values}})
    require(path.empty() || is_called(path, ".npy") || is_called(path, ".mtx"), ErrorKind::misuse,
            "options", "{} '{}': a matrix is a file called .npy or .mtx (or these with .gz)",
            option, path);
  check_outputs(common, {{"--output", a.vectors}, {"--values", a.values}},
                {a.matrix, a.mass, common.rates});
  const SparseMatrix matrix = read_both_triangles(a.matrix, a.triangle);
  check_interrupt();
  require(a.k >= 1 && a.k <= matrix.rows, ErrorKind::misuse, "eigs",
          "k = {} eigenpairs of a matrix of order {}: k has to be between 1 and {}", a.k,
          matrix.rows, matrix.rows);
  if (a.by_factor(matrix.rows)) {
    SmallestArguments smallest{a.matrix, a.mass, a.vectors, a.values, a.triangle};
    if (a.has_sigma()) smallest.sigma = a.sigma;
    smallest.k = a.k;
    smallest.basis_size = a.basis_size;
    smallest.restarts_max = a.restarts_max;
    smallest.tolerance = a.tolerance;
    return run_smallest(matrix, smallest, common);
  }
  DenseMatrix<double> vectors{std::vector<double>(static_cast<std::size_t>(matrix.rows * a.k)),
                              matrix.rows, a.k};
  const EigsInfo info = eigs(matrix, vectors.view(), options);
  ReportData data;
  data.title = fmt::format("{} {} eigenvalues of order {}", a.k, a.which, matrix.rows);
  data.subtitle = a.matrix;
  data.krylov = krylov_report(info, a.tolerance);
  if (!info.residuals.empty()) data.charts.push_back(residual_chart(info.residuals));
  data.run = info.report;
  begin_output();
  const auto count = static_cast<std::int64_t>(info.values.size());
  if (count > 0 && !a.vectors.empty())
    write_dense(a.vectors, std::as_const(vectors).view().block(0, 0, matrix.rows, count));
  if (count > 0 && !a.values.empty())
    write_dense(a.values, MatrixView<const double>{info.values.data(), count, 1, count}, 1);
  const std::vector<std::string> without_effect = without_effect_of(info, a);
  const int status = finish(common, std::move(data), eigs_json(info, options, without_effect),
                            [&] { print_eigs(info, matrix.rows, a, without_effect); });
  if (info.ok) return status;
  fmt::print(stderr, "strata: eigs: {}\n", info.why);
  return kNumbersSaidNo;
}

}  // namespace

MatrixMarket read_entries(const std::string& path, const std::string& triangle) {
  MatrixMarket entries;
  if (is_called(path, ".mtx")) {
    entries = read_mtx(path);
  } else {
    DenseMatrix<double> dense = read_dense(path);
    entries.rows = dense.rows;
    entries.cols = dense.cols;
    entries.is_array = true;
    entries.value = std::move(dense.values);
  }
  if (!triangle.empty())
    entries.take_triangle(triangle == "lower" ? Triangle::lower : Triangle::upper, path);
  return entries;
}

void require_real(const MatrixMarket& entries, const std::string& path) {
  require(!entries.is_complex, ErrorKind::input, "sparse",
          "{}: holds complex numbers, and real ones are needed here", path);
}

SparseMatrix read_sparse(const std::string& path, const std::string& triangle) {
  const MatrixMarket entries = read_entries(path, triangle);
  require_real(entries, path);
  return entries.to_sparse();
}

SparseMatrix read_both_triangles(const std::string& path, const std::string& triangle) {
  MatrixMarket entries = read_entries(path, triangle);
  require_real(entries, path);
  return entries.symmetric ? entries.to_sparse() : symmetric_of(std::move(entries), path).matrix;
}

Option add_triangle_to(Command& verb, std::string& triangle) {
  return verb
      .add_option("--triangle", triangle,
                  "lower or upper: take this triangle of A as the symmetric matrix (default: A as "
                  "its file declares it)")
      .check(one_of({"lower", "upper"}));
}

Json to_json(const KrylovSeconds& seconds) {
  return {
      {"products", seconds.products}, {"projections", seconds.projections}, {"gram", seconds.gram},
      {"solves", seconds.solves},     {"rotations", seconds.rotations},     {"host", seconds.host},
      {"rest", seconds.rest}};
}

void BlockArguments::add_to(Command& verb) {
  options.push_back(
      verb.add_option("--s", s, "vectors that are computed before they are orthogonalized")
          .capture_default_str());
  options.push_back(
      verb.add_option("--basis", basis,
                      "of such a block: monomial, newton, chebyshev; of eigs also lanczos")
          .capture_default_str());
  options.push_back(verb.add_option("--orth", orth,
                                    "auto (decides about precision, passes and s as it goes), "
                                    "cholqr, cholqr2, cholqr-wide, cholqr-wide2, svqr, svqr-wide, "
                                    "cgs, cgs2 or mgs; with --s 1 auto, cgs, cgs2 or mgs")
                        .capture_default_str());
  options.push_back(
      verb.add_flag("--natural-order", natural_order, "rows as they are, not reordered"));
  options.push_back(verb.add_flag("--ghost-zones", ghost_zones,
                                  "rows near those of a device are computed there too, so that the "
                                  "s products of a block need one exchange"));
}

void GmresArguments::add_to(Command& verb) {
  block.add_to(verb);
  const auto keep = [this](Option option) { block.options.push_back(option); };
  keep(verb.add_option("--restart", restart, "vectors of a cycle of gmres").capture_default_str());
  keep(verb.add_option("--restarts-max", restarts_max, "cycles of gmres").capture_default_str());
  keep(verb.add_option("--tolerance", tolerance, "of |b - A x| over |b|, for gmres")
           .capture_default_str());
  keep(verb.add_flag(
      "--balance", balance,
      "scale rows and columns of A to length 1 first; without where that does not do (default: "
      "where rows are 8192 times and more apart in length)"));
  keep(verb.add_flag("--no-balance", no_balance, "never scale rows and columns of A"));
  keep(verb.add_option("--block-orth", block_orth,
                       "of a block against the vectors before: classical (two sums a pass), "
                       "pythagorean (one) or two-stage (one, and one a panel)")
           .capture_default_str());
  keep(verb.add_option("--panel", panel, "vectors of the second of two stages; 0: a cycle")
           .capture_default_str());
  keep(verb.add_option("--preconditioner", preconditioner,
                       "from the right: none, jacobi (the diagonal of A) or block-jacobi "
                       "(diagonal blocks of consecutive rows)")
           .capture_default_str());
  keep(verb.add_option("--block-size", block_size, "rows of a block of block-jacobi")
           .capture_default_str());
}

int run_gmres(const SystemFiles& files, const GmresArguments& arguments,
              const CommonOptions& common) {
  GmresOptions options;
  options.run = common.run_options();
  options.restart = arguments.restart;
  options.restarts_max = arguments.restarts_max;
  options.s = arguments.block.s;
  options.basis = parse_krylov_basis(arguments.block.basis);
  options.orthogonalization = parse_qr_method(arguments.block.orth);
  options.precision = arguments.precision;
  options.tolerance = arguments.tolerance;
  require(!arguments.balance || !arguments.no_balance, ErrorKind::misuse, "options",
          "--balance and --no-balance exclude each other");
  if (arguments.balance || arguments.no_balance) options.balance = arguments.balance;
  options.block_orthogonalization = parse_block_orthogonalization(arguments.block_orth);
  options.panel = arguments.panel;
  options.preconditioner.kind = parse_preconditioner(arguments.preconditioner);
  options.preconditioner.block_size = arguments.block_size;
  options.reorder = !arguments.block.natural_order;
  options.ghost_zones = arguments.block.ghost_zones;
  const SparseMatrix a = read_sparse(files.matrix, files.triangle);
  const DenseMatrix<double> b = read_dense(files.rhs);
  check_interrupt();
  require(b.cols == 1, ErrorKind::misuse, "solve", "{} has {} columns: gmres solves for one",
          files.rhs, b.cols);
  DenseMatrix<double> x{std::vector<double>(b.values.size()), b.rows, 1};
  const GmresInfo info = gmres(a, b.values, x.values, options);
  ReportData data;
  data.title = fmt::format("A sparse system of {}", counted(b.rows, "unknown"));
  data.subtitle = fmt::format("{} with {}, by gmres({}), s = {}", files.matrix, files.rhs,
                              options.restart, options.s);
  data.figures = {
      {"Residual", fmt::format("{:.1e}", rounded_up(info.relative_residual)), "", "of |b|"},
      {"Cycles", fmt::format("{}", info.restarts), "", ""}};
  data.krylov = krylov_report(info, options.tolerance);
  data.run = info.report;
  begin_output();
  write_dense(files.output, std::as_const(x).view(), b.dimensions);
  const int status = finish(common, std::move(data), gmres_json(info, options),
                            [&] { print_gmres(info, b.rows, options, files.output); });
  if (info.ok) return status;
  fmt::print(stderr, "strata: solve: {}; the residual is {:.2e} of |b|\n", info.why,
             rounded_up(info.relative_residual, 3));
  return kNumbersSaidNo;
}

void add_eigs(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("eigs", "eigenpairs of a sparse symmetric matrix");
  add_examples(verb, {"strata eigs A.mtx --k 6 --which smallest --values w.npy -o V.npy",
                      "strata eigs K.mtx --mass M.mtx --k 20 --which smallest -o modes.npy"});
  auto a = std::make_shared<EigsArguments>();
  common.add_run_options(verb);
  verb.add_option("A", a->matrix, "symmetric matrix: .mtx, .npy or these .gz").required();
  add_triangle_to(verb, a->triangle);
  verb.add_option("--k", a->k, "how many").capture_default_str();
  verb.add_option("--which", a->which, "at which end of the spectrum: smallest or largest")
      .check(one_of({"smallest", "largest"}))
      .capture_default_str();
  verb.add_option("-o,--output", a->vectors, "where the vectors go: .npy or .mtx");
  verb.add_option("--values", a->values, "where the eigenvalues go: .npy or .mtx");
  const auto keep = [&a](Option option) { a->of_lanczos.push_back(option); };
  keep(verb.add_option("--basis-size", a->basis_size, "vectors that are held; 0: by k")
           .capture_default_str());
  verb.add_option("--method", a->method,
                  "lanczos (products with A), shift-invert (the smallest, by a factor of A - sigma "
                  "M), dense (all eigenvalues, on the host) or auto: dense up to an order of 1000, "
                  "else shift-invert for the smallest")
      .capture_default_str();
  verb.add_option(
      "--mass", a->mass,
      "positive definite M of A v = l M v: .mtx, .npy or these .gz; --triangle goes for it too");
  a->of_sigma.push_back(verb.add_option("--sigma", a->sigma,
                                        "below all eigenvalues, and near to them (default: 0, or "
                                        "what a few factorizations find)"));
  keep(verb.add_option("--restarts-max", a->restarts_max, "cycles").capture_default_str());
  a->of_products = {
      verb.add_option("--products-max", a->products_max,
                      "products with A; 0: as many as the cycles take")
          .capture_default_str(),
      verb.add_flag("--no-filter", a->no_filter,
                    "products with A alone, never with a Chebyshev polynomial of it")};
  for (const Option& option : a->of_products) keep(option);
  verb.add_option("--tolerance", a->tolerance,
                  "of |A v - l v| over the largest row sum of |A|; by a factor, of the bound of an "
                  "eigenvalue over its distance to sigma")
      .capture_default_str();
  a->block.basis = to_string(KrylovBasis::lanczos);
  a->block.add_to(verb);
  verb.callback([&run, &common, a] { run = [&common, a] { return run_eigs(*a, common); }; });
}

}  // namespace strata::cli
