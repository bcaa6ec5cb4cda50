// strata-bench: our rates beside a peer's, in one run. "strata bench" starts it.

#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>

#include "base/check.hpp"
#include "bench/cholesky_bench.hpp"
#include "bench/program/program.hpp"
#include "cli/program.hpp"
#include "cli/stripe_options.hpp"
#include "geostat/point_order.hpp"
#include "session/policy.hpp"

namespace strata::cli {
namespace {

struct BenchArguments {
  bench::CholeskyBench bench;
  std::string precision = "fp64";
  std::vector<std::string> policies;
  bool in_core = false;
  int repeats = 0;  ///< 0: the benchmark's own
  int ib = 0;
  int recnb = 0;
  int nb = 0;
  std::vector<std::string> variants;
  std::int64_t batch = 0;
  double gemm_seconds = 0;
  std::string matrix;  ///< "": random
  std::optional<double> condition;
  std::optional<double> smoothness;
};

Json row_json(const bench::CholeskyBenchRow& row) {
  Json object = to_json(row.run);
  object["all_seconds"] = row.seconds;
  object["source_seconds"] = row.source_seconds;
  object["residual"] = row.residual;
  if (!row.peer.name.empty()) {
    object["peer"] = {{"name", row.peer.name},
                      {"what", row.peer.what},
                      {"seconds", row.peer.seconds},
                      {"all_seconds", row.peer.all_seconds},
                      {"flops_per_second", row.run.flops / row.peer.seconds}};
    object["ratio_to_peer"] = row.peer.seconds / row.run.seconds;
  }
  return object;
}

/// Bytes over the floor of a run.
double over_floor(const RunReport& run, std::int64_t bytes) {
  return static_cast<double>(bytes) /
         static_cast<double>(std::max<std::int64_t>(1, run.planned_traffic.floor_bytes));
}

void print_rows(const std::vector<bench::CholeskyBenchRow>& rows) {
  fmt::print("{:>8} {:>6} {:22} {:>10} {:>11} {:>11} {:>9} {:>7} {:>7} {:>7} {:>11} {:>7}\n", "n",
             "tile", "policy", "seconds", "GFLOP/s", "predicted", "plan %", "in x", "out x",
             "floor x", "peer", "ratio");
  for (const bench::CholeskyBenchRow& row : rows) {
    const RunReport& run = row.run;
    const std::string predicted =
        run.predicted_seconds ? fmt::format("{:.4f}", *run.predicted_seconds) : "";
    const std::string peer =
        row.peer.name.empty() ? "" : fmt::format("{:.1f}", run.flops / row.peer.seconds / 1e9);
    const std::string ratio =
        row.peer.name.empty() ? "" : fmt::format("{:.3f}", row.peer.seconds / run.seconds);
    fmt::print(
        "{:8} {:6} {:22} {:10.4f} {:11.1f} {:>11} {:9.3f} {:7.2f} {:7.2f} {:7.2f} {:>11} {:>7}\n",
        run.n, run.tile, run.policy, run.seconds, run.flops / run.seconds / 1e9, predicted,
        100 * run.plan_seconds / run.seconds, over_floor(run, run.traffic.host_to_device_bytes),
        over_floor(run, run.traffic.device_to_host_bytes), over_floor(run, run.traffic.total()),
        peer, ratio);
    if (!(run.traffic == run.planned_traffic))
      fmt::print("         traffic differs from the plan\n");
  }
  if (!rows.empty() && !rows[0].peer.name.empty())
    fmt::print("peer: {} ({})\n", rows[0].peer.name, rows[0].peer.what);
}

/// Rate and bytes against the order, a curve for each policy.
std::vector<ReportChart> policy_charts(const std::vector<bench::CholeskyBenchRow>& rows,
                                       const std::vector<Policy>& policies) {
  ReportChart rate{"Rate against the order", "order", "GFLOP/s", {}};
  ReportChart in{"Bytes from host to device over the floor", "order", "times the floor", {}};
  ReportChart out{"Bytes from device to host over the floor", "order", "times the floor", {}};
  for (std::size_t p = 0; p < policies.size(); ++p) {
    std::array<ReportSeries, 3> series;
    for (std::size_t r = p; r < rows.size(); r += policies.size()) {
      const RunReport& run = rows[r].run;
      const std::array<double, 3> y{run.flops / run.seconds / 1e9,
                                    over_floor(run, run.traffic.host_to_device_bytes),
                                    over_floor(run, run.traffic.device_to_host_bytes)};
      for (std::size_t c = 0; c < series.size(); ++c) {
        series[c].x.push_back(static_cast<double>(run.n));
        series[c].y.push_back(y[c]);
      }
    }
    for (ReportSeries& line : series) line.name = to_string(policies[p]);
    rate.series.push_back(std::move(series[0]));
    in.series.push_back(std::move(series[1]));
    out.series.push_back(std::move(series[2]));
  }
  return {std::move(rate), std::move(in), std::move(out)};
}

std::vector<Policy> policies_of(const std::vector<std::string>& names) {
  if (names == std::vector<std::string>{"all"}) {
    return {Policy::sync, Policy::async, Policy::v1, Policy::v2, Policy::v3, Policy::opt};
  }
  std::vector<Policy> policies;
  for (const std::string& name : names) policies.push_back(parse_policy(name));
  return policies;
}

bench::TestMatrix test_matrix(const BenchArguments& arguments, std::uint64_t seed) {
  static const std::map<std::string, bench::MatrixKind> kinds{
      {"", bench::MatrixKind::random},
      {"random", bench::MatrixKind::random},
      {"graded", bench::MatrixKind::graded},
      {"matern", bench::MatrixKind::matern}};
  bench::TestMatrix matrix;
  matrix.kind = kinds.at(arguments.matrix);
  matrix.seed = seed;
  require(!arguments.condition || matrix.kind == bench::MatrixKind::graded, ErrorKind::misuse,
          "cli", "--condition {} is for --matrix graded", arguments.condition.value_or(0));
  require(!arguments.smoothness || matrix.kind == bench::MatrixKind::matern, ErrorKind::misuse,
          "cli", "--smoothness {} is for --matrix matern", arguments.smoothness.value_or(0));
  matrix.condition = arguments.condition.value_or(matrix.condition);
  matrix.smoothness = arguments.smoothness.value_or(matrix.smoothness);
  return matrix;
}

bench::InCoreBench in_core_bench(const BenchArguments& arguments, const bench::CholeskyBench& all) {
  bench::InCoreBench bench;
  bench.sizes = all.sizes;
  bench.precision = all.precision;
  if (arguments.repeats > 0) bench.repeats = arguments.repeats;
  bench.matrix = test_matrix(arguments, all.seed);
  bench.peer = all.peer;
  bench.peer_threads = all.peer_threads;
  for (const std::string& name : arguments.variants) {
    bench.variants.push_back(bench::parse_potrf_variant(name));
  }
  bench.ib = arguments.ib;
  bench.batch = arguments.batch;
  bench.gemm_seconds = arguments.gemm_seconds;
  return bench;
}

int run_bench(const BenchArguments& arguments, const CommonOptions& common) {
  bench::CholeskyBench bench = arguments.bench;
  for (const Element element : {Element::fp32, Element::complex128, Element::complex64})
    if (arguments.precision == to_string(element)) bench.precision = element;
  require(!is_complex(bench.precision) || arguments.in_core, ErrorKind::misuse, "cli",
          "--precision {} is for --in-core", arguments.precision);
  bench.seed = common.seed;
  CholeskyOptions options = common.cholesky_options();
  check_outputs(common, {}, {common.rates});
  if (arguments.repeats > 0) bench.repeats = arguments.repeats;
  options.blocking.recnb = arguments.recnb;
  options.blocking.nb = arguments.nb;
  if (arguments.in_core) return run_in_core(in_core_bench(arguments, bench), common, options);
  require(arguments.variants.empty() && arguments.ib == 0 && arguments.batch == 0 &&
              arguments.gemm_seconds == 0,
          ErrorKind::misuse, "cli",
          "--variants, --ib, --batch and --gemm-seconds are for --in-core");
  require(arguments.matrix.empty() && !arguments.condition && !arguments.smoothness,
          ErrorKind::misuse, "cli", "--matrix, --condition and --smoothness are for --in-core");
  bench.policies = policies_of(arguments.policies);
  require(bench.policies.empty() || options.path != CholeskyPath::in_core, ErrorKind::misuse, "cli",
          "--policies are for the planned path");
  const auto rows = run_cholesky_bench(bench, options);
  Json results = Json::array();
  for (const auto& row : rows) results.push_back(row_json(row));
  const Json object = {{"benchmark", "cholesky"},
                       {"precision", arguments.precision},
                       {"repeats", bench.repeats},
                       {"results", results}};
  ReportData data;
  data.title = "Cholesky benchmark";
  data.run = rows.back().run;
  if (!bench.policies.empty()) data.charts = policy_charts(rows, bench.policies);
  return finish(common, std::move(data), object, [&] { print_rows(rows); });
}

template <class B>
void add_bench_options(Command& app, B& bench, std::string& precision, int& repeats,
                       std::initializer_list<const char*> precisions = {"fp64", "fp32"}) {
  app.add_list("--n", bench.sizes, "orders, separated by commas")
      .check(positive_number())
      .capture_default_str();
  app.add_option("--precision", precision, fmt::format("{}", fmt::join(precisions, ", ")))
      .check(one_of(precisions));
  app.add_option("--repeats", repeats, "runs of which the median counts").check(in_range(1, 100));
  app.add_option("--peer-threads", bench.peer_threads, "threads of openblas (default: all cores)")
      .check(in_range(1, 1024));
}

void add_in_core_options(Command& app, BenchArguments& arguments) {
  app.add_flag("--in-core", arguments.in_core,
               "ours and the peer's alone, on a matrix that lies on the device");
  app.add_option("--matrix", arguments.matrix, "in core: random (default), graded or matern")
      .check(one_of({"random", "graded", "matern"}));
  app.add_option("--condition", arguments.condition,
                 "graded: the square of the largest over the smallest scale, 1 to 1e14 "
                 "(default: 1e6); the condition number up to a factor of about 2")
      .check(in_range(1.0, 1e14));
  app.add_option("--smoothness", arguments.smoothness, "matern: 0.5 (default) or 1.5")
      .check(one_of({0.5, 1.5}));
  app.add_list("--variants", arguments.variants,
               "in core: fused, exclusive, left, right, separated by commas");
  app.add_option("--ib", arguments.ib, "in core: columns factored at a time, 8 (default) or 4");
  app.add_option("--recnb", arguments.recnb, "tile of the fused kernel (default: tuned)");
  app.add_option("--nb", arguments.nb, "columns of a panel (default: tuned)");
  app.add_option("--batch", arguments.batch, "in core: so many matrices by potrf_batched")
      .check(in_range(2, 1'000'000));
  app.add_option("--gemm-seconds", arguments.gemm_seconds,
                 "in core: measure GEMM for so long afterwards")
      .check(positive_number());
}

void add_cholesky(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm = verb.add_subcommand("cholesky", "dense tile Cholesky, or in core");
  auto arguments = std::make_shared<BenchArguments>();
  bench::CholeskyBench& bench = arguments->bench;
  bench.sizes = {8192};
  common.add_to(algorithm);
  add_bench_options(algorithm, bench, arguments->precision, arguments->repeats,
                    {"fp64", "fp32", "complex128", "complex64"});
  algorithm.add_option("--peer", bench.peer, "openblas, cusolver, or magma where it is installed")
      .check(one_of({"openblas", "cusolver", "magma"}));
  algorithm.add_flag("--calibrate", bench.calibrate,
                     "measure rates for the tile first, and predict with them");
  algorithm.add_list("--policies", arguments->policies,
                     "a row for each of these policies, separated by commas, or all");
  add_in_core_options(algorithm, *arguments);
  algorithm.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_bench(*arguments, common); };
  });
}

void add_lu(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm = verb.add_subcommand("lu", "dense LU with partial pivoting, by panels");
  auto bench = std::make_shared<bench::LuBench>();
  auto precision = std::make_shared<std::string>("fp64");
  bench->sizes = {4096};
  common.add_to(algorithm);
  add_bench_options(algorithm, *bench, *precision, bench->repeats,
                    {"fp64", "fp32", "complex128", "complex64"});
  algorithm.add_option("--peer", bench->peer, "openblas; in core and with --mixed cusolver")
      .check(one_of({"openblas", "cusolver"}));
  algorithm.add_flag("--overwrite", bench->overwrites,
                     "the factors lie where the matrix was, so that host memory holds one");
  algorithm.add_flag("--mixed", bench->mixed,
                     "certified solutions of one right-hand side, by factors in fp64 and in fp32");
  algorithm.add_flag("--halves", bench->halves,
                     "in core, in fp32: large products of fp16 parts, on tensor cores");
  algorithm.add_flag("--in-core", bench->in_core,
                     "the factorization alone, of a matrix that lies in the memory of a GPU");
  algorithm
      .add_option("--batch", bench->batch,
                  "in core: so many matrices by getrf_batched, beside cuBLAS's")
      .check(in_range(2, 1'000'000));
  auto storage = std::make_shared<std::vector<std::string>>();
  algorithm.add_list("--storage", *storage,
                     "L and U in files in these directories, of a matrix that is made as it is "
                     "needed; with --host-memory");
  auto stripes = std::make_shared<StripeArguments>();
  stripes->add_to(algorithm);
  algorithm.callback([&run, &common, bench, precision, storage, stripes] {
    for (const Element element : {Element::fp32, Element::complex128, Element::complex64})
      if (*precision == to_string(element)) bench->precision = element;
    run = [&common, bench, storage, stripes] {
      bench->seed = common.seed;
      bench->stripes = stripes->options();
      require(bench->batch == 0 || bench->in_core, ErrorKind::misuse, "cli",
              "--batch is for --in-core");
      require(!bench->stripes || !storage->empty(), ErrorKind::misuse, "cli",
              "--order {} is for --storage", stripes->order);
      require(!bench->halves || (bench->in_core && bench->precision == Element::fp32),
              ErrorKind::misuse, "cli", "--halves is for --in-core --precision fp32");
      require(!bench->overwrites || (!bench->in_core && storage->empty() && !bench->mixed),
              ErrorKind::misuse, "cli", "--overwrite is for runs from host memory");
      require(!bench->mixed || (!bench->in_core && storage->empty()), ErrorKind::misuse, "cli",
              "--mixed is for runs from host memory");
      if (bench->mixed) return run_lu_mixed(*bench, common);
      if (!storage->empty()) return run_lu_storage(*bench, *storage, common);
      return bench->in_core ? run_lu_in_core_comparison(*bench, common)
                            : run_lu_comparison(*bench, common);
    };
  });
}

void add_potf2(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm =
      verb.add_subcommand("potf2", "every variant and blocking of the in-core factorization");
  auto arguments = std::make_shared<Potf2Arguments>();
  bench::Potf2Bench& bench = arguments->bench;
  bench.sizes = {512, 1024, 2048, 4096, 8192, 16384};
  common.add_to(algorithm);
  add_bench_options(algorithm, bench, arguments->precision, bench.repeats);
  algorithm.add_flag("--peer", bench.peer, "the device's peer beside ours");
  algorithm
      .add_list("--share-of", bench.share_of,
                "also factor these orders, separated by commas, and say what share of that time "
                "their diagonal blocks of order 64 to 1024 would take at most")
      .check(positive_number());
  algorithm.add_flag("--tune", arguments->tune,
                     "write the best of each order to the tuning table of this GPU");
  algorithm.add_option("-o,--output", arguments->output,
                       "the tuning table (default: where runs read it)");
  algorithm.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_potf2(*arguments, common); };
  });
}

void add_covariance(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm =
      verb.add_subcommand("covariance", "generating a block of a covariance matrix");
  auto bench = std::make_shared<bench::CovarianceBench>();
  auto precision = std::make_shared<std::string>();
  common.add_device_options(algorithm);
  algorithm.add_option("--n", bench->n, "rows and columns (default: 16384 on a GPU, else 1024)")
      .check(positive_number());
  algorithm.add_list("--smoothness", bench->smoothness, "one or more, separated by commas")
      .check(positive_number())
      .capture_default_str();
  algorithm.add_option("--precision", *precision, "of the elements: fp64 or fp32 (default: both)")
      .check(one_of({"fp64", "fp32"}));
  algorithm.add_option("--repeats", bench->repeats, "runs of which the median counts")
      .check(in_range(1, 100));
  algorithm.callback([&run, &common, bench, precision] {
    if (!precision->empty())
      bench->precisions = {*precision == "fp32" ? Element::fp32 : Element::fp64};
    run = [&common, bench] { return run_covariance(*bench, common); };
  });
}

void add_qr_kernels(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm =
      verb.add_subcommand("qr", "passes over a tall matrix in the memory of devices, and qr");
  auto arguments = std::make_shared<QrBenchArguments>();
  bench::QrBench* bench = &arguments->bench;
  common.add_device_options(algorithm);
  algorithm.add_option("--m", bench->m, "rows (default: 4000000 on a GPU, else 100000)")
      .check(positive_number());
  algorithm.add_list("--n", bench->columns, "columns, one or more, separated by commas")
      .check(positive_number())
      .capture_default_str();
  algorithm.add_flag("--peer", bench->peers,
                     "cuBLAS and cuSOLVER beside ours, or the BLAS and LAPACK of the host");
  algorithm
      .add_list("--methods", arguments->methods,
                "whole calls by these methods, separated by commas, all, or none")
      .capture_default_str();
  algorithm.add_flag("!--no-verify", bench->verify,
                     "time whole calls that do not measure the orthogonality of Q, as the peers do "
                     "not; one more call tells it");
  algorithm.add_option("--condition", bench->condition, "of V, about: 1 is uniformly random")
      .check(in_range(1.0, 1e30))
      .capture_default_str();
  algorithm.add_flag("--floats", bench->floats, "V is in FP32: sums in FP32 (s) and FP64 (ss)");
  algorithm.add_option("--passes", arguments->passes, "of methods, whose errors are drawn")
      .check(in_range(1, 10))
      .capture_default_str();
  algorithm.add_option("--figures", arguments->figures,
                       "write a page: errors pass by pass, rates against the rows, kernels beside "
                       "BLAS, instructions");
  algorithm.add_option("--repeats", bench->repeats, "runs of which the median counts")
      .check(in_range(1, 100));
  algorithm.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_qr_kernels(*arguments, common); };
  });
}

void add_gmres(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm =
      verb.add_subcommand("gmres", "GMRES by blocks of s vectors beside GMRES vector by vector");
  auto arguments = std::make_shared<GmresBenchArguments>();
  common.add_run_options(algorithm);
  arguments->add_to(algorithm);
  algorithm.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_gmres_comparison(*arguments, common); };
  });
}

/// One case for each accuracy.
struct CaseArguments {
  std::string rule = "factor";
  std::string order = "kd";
  std::vector<double> accuracies{1e-5};
  std::string precisions = "fp64,fp32,fp16,fp8";
  bool keep_all = false;
  bool no_guard = false;

  void add_to(Command& algorithm) {
    algorithm.add_list("--accuracies", accuracies, "one or more, separated by commas; 0: FP64");
    algorithm.add_option("--rule", rule, "factor or paper")
        .check(one_of({"factor", "paper"}))
        .capture_default_str();
    algorithm.add_option("--precisions", precisions).capture_default_str();
    algorithm.add_option("--order", order, "of the points: none, hilbert, kd or coarse")
        .capture_default_str();
    algorithm.add_flag("--keep-all", keep_all, "leave no product out");
    algorithm.add_flag("--no-guard", no_guard, "do not make the accuracy finer");
  }

  [[nodiscard]] std::vector<MixedPrecision> cases() const {
    std::vector<MixedPrecision> all;
    for (const double accuracy : accuracies) {
      MixedPrecision asked;
      asked.accuracy = accuracy;
      asked.rule = rule == "paper" ? PrecisionRule::paper : PrecisionRule::factor;
      asked.allowed = parse_precisions(precisions);
      asked.keep_all = keep_all;
      asked.guard = !no_guard;
      all.push_back(asked);
    }
    return all;
  }
};

struct MixedArguments {
  bench::MixedBench bench;
  CaseArguments cases;
};

struct EstimatesArguments {
  bench::EstimatesBench bench;
  CaseArguments cases;
};

void add_mixed(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm =
      verb.add_subcommand("mixed", "covariance matrices factored in several precisions");
  auto arguments = std::make_shared<MixedArguments>();
  common.add_to(algorithm);
  algorithm.add_list("--n", arguments->bench.sizes, "points, one or more, separated by commas")
      .check(positive_number())
      .capture_default_str();
  algorithm.add_list("--range", arguments->bench.ranges, "one or more, separated by commas")
      .check(positive_number());
  arguments->cases.add_to(algorithm);
  algorithm.add_flag("--divergence", arguments->bench.divergence,
                     "also how far each factor is from FP64, by Kullback and Leibler");
  algorithm.add_option("--repeats", arguments->bench.repeats, "runs of which the median counts")
      .check(in_range(1, 100));
  algorithm.callback([&run, &common, arguments] {
    run = [&common, arguments] {
      arguments->bench.order = parse_point_order(arguments->cases.order);
      arguments->bench.cases = arguments->cases.cases();
      arguments->bench.seed = common.seed;
      return run_mixed(arguments->bench, common);
    };
  });
}

void add_estimates(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm = verb.add_subcommand(
      "estimates", "maximum likelihood estimates from simulated data, beside those of FP64");
  auto arguments = std::make_shared<EstimatesArguments>();
  arguments->cases.accuracies = {1e-5, 1e-7};
  common.add_to(algorithm);
  bench::EstimatesBench& bench = arguments->bench;
  algorithm.add_option("--n", bench.n, "points").check(positive_number()).capture_default_str();
  algorithm.add_option("--data-sets", bench.data_sets, "simulated for each range")
      .check(in_range(1, 10'000))
      .capture_default_str();
  algorithm.add_list("--range", bench.ranges, "one or more, separated by commas")
      .check(positive_number());
  algorithm.add_option("--smoothness", bench.smoothness)
      .check(positive_number())
      .capture_default_str();
  arguments->cases.add_to(algorithm);
  algorithm.callback([&run, &common, arguments] {
    run = [&common, arguments] {
      arguments->bench.cases = arguments->cases.cases();
      arguments->bench.order = parse_point_order(arguments->cases.order);
      arguments->bench.seed = common.seed;
      return run_estimates(arguments->bench, common);
    };
  });
}

void add_eigs_comparison(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm =
      verb.add_subcommand("eigs", "Lanczos by blocks of s vectors beside Lanczos vector by vector");
  auto arguments = std::make_shared<EigsBenchArguments>();
  common.add_run_options(algorithm);
  arguments->add_to(algorithm);
  algorithm.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_eigs_comparison(*arguments, common); };
  });
}

void add_sparse(Command& verb, CommonOptions& common, Run& run) {
  Command algorithm = verb.add_subcommand("sparse", "sparse Cholesky factorization beside CHOLMOD");
  auto arguments = std::make_shared<SparseBenchArguments>();
  common.add_factor_options(algorithm);
  arguments->add_to(algorithm);
  algorithm.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_sparse_comparison(*arguments, common); };
  });
}

void add_algorithms(Command& app, CommonOptions& common, Run& run) {
  add_cholesky(app, common, run);
  add_lu(app, common, run);
  add_potf2(app, common, run);
  add_covariance(app, common, run);
  add_qr_kernels(app, common, run);
  add_gmres(app, common, run);
  add_eigs_comparison(app, common, run);
  add_mixed(app, common, run);
  add_estimates(app, common, run);
  add_sparse(app, common, run);
}

}  // namespace
}  // namespace strata::cli

int main(int argc, char** argv) {
  using namespace strata::cli;
  watch_interrupt();
  CommandLine line("strata bench", "Benchmarks of Strata, with peers beside them.",
                   std::string("strata ") + STRATA_VERSION);
  Command app = line.program();
  app.require_subcommand();
  CommonOptions common;
  common.command = command_line(argc, argv, "strata bench");
  Run run;
  add_algorithms(app, common, run);
  return run_program(line, run, argc, argv);
}
