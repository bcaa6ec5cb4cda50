// strata kl: how far a covariance in several precisions is from itself in FP64.

#include <fmt/core.h>

#include "base/check.hpp"
#include "cli/geostat_verbs.hpp"
#include "cli/precision.hpp"

namespace strata::cli {
namespace {

struct KlArguments {
  std::string file;
  ColumnNames columns;
  SeparationArguments separation;
  PrecisionArguments precision;
  MaternParameters parameters;
  bool estimate = false;
};

Json kl_json(const PrecisionDivergence& result, const MaternParameters& parameters) {
  Json object = to_json(result.run);
  object["divergence"] = number(result.divergence);
  object["divergence_error"] = number(result.divergence_error);
  object["likelihood_difference_at_zero"] = number(result.likelihood_difference_at_zero());
  object["log_determinant_difference"] = number(result.log_determinant_difference);
  object["log_determinant_error"] = number(result.log_determinant_error);
  object["method"] = result.exact ? "exact" : "estimate";
  object["probes"] = result.probes;
  object["lanczos_steps"] = result.lanczos_steps;
  object["factor"] = to_json(result.factor);
  object["parameters"] = to_json(parameters);
  return object;
}

void print_kl(const PrecisionDivergence& result) {
  fmt::print("Kullback-Leibler divergence   {:.6g}{}\n", result.divergence,
             result.exact ? ""
                          : fmt::format(" ± {:.2g} (estimate by {} probes)",
                                        rounded_up(result.divergence_error), result.probes));
  fmt::print("difference at y = 0           {:.6g}{}\n", result.likelihood_difference_at_zero(),
             result.exact
                 ? ""
                 : fmt::format(" (to {:.2g})", rounded_up(result.log_determinant_error / 2)));
  print_mixed(result.run.mixed);
  print_sizes(result.run);
}

int run_kl(const KlArguments& arguments, const CommonOptions& common) {
  require(arguments.precision.accuracy > 0, ErrorKind::misuse, "options",
          "--accuracy {}: kl compares lower precisions with FP64, give 1e-12 to 1e-3",
          arguments.precision.accuracy);
  require(!arguments.columns.x.empty() && !arguments.columns.y.empty(), ErrorKind::misuse,
          "options", "{} needs --x and --y", arguments.file);
  const CovarianceOptions options = arguments.precision.to_options(common);
  MaternParameters parameters = arguments.parameters;
  parameters.separation = arguments.separation.separation(arguments.columns);
  check_outputs(common, {}, {arguments.file, common.rates});
  const Observations places = read_places(arguments.file, arguments.columns);
  const Distance distance = parameters.separation.distance;
  check_places(places.points, places.rows, distance, arguments.file);
  if (parameters.nugget == 0) check_distinct(places, distance, arguments.file);
  check_interrupt();
  const PrecisionDivergence result = precision_divergence(
      places.points, parameters, options,
      arguments.estimate ? DivergenceMethod::estimate : DivergenceMethod::automatic);
  Json object = kl_json(result, parameters);
  add_rows_json(object, places);
  if (!result.factor.ok)
    return report_failed_factor(common, result.factor, object,
                                {parameters.variance + parameters.nugget, places.points.size()});
  ReportData report;
  report.title = fmt::format("Divergence from FP64 at {}", counted(places.points.size(), "place"));
  report.subtitle = arguments.file;
  report.figures = {{"Kullback-Leibler divergence", fmt::format("{:.3g}", result.divergence), "",
                     result.exact ? "by both factors" : "estimated"},
                    {"Difference at y = 0",
                     fmt::format("{:.3g}", result.likelihood_difference_at_zero()), "", ""}};
  report.run = result.run;
  add_precision_map(report, result.run.mixed);
  return finish(common, std::move(report), object, [&] {
    print_kl(result);
    fmt::print("{}", rows_text(places));
  });
}

}  // namespace

void add_kl(Command& app, CommonOptions& common, Run& run) {
  Command verb =
      app.add_subcommand("kl", "divergence of a covariance in lower precisions from FP64");
  add_examples(verb, {"strata kl places.csv --x lon --y lat --variance 2 --range 0.3 --smoothness "
                      "0.5 --accuracy 1e-7"});
  auto arguments = std::make_shared<KlArguments>();
  common.add_to(verb);
  verb.add_option("FILE", arguments->file, "places: .csv or .csv.gz").required();
  arguments->columns.add_to(verb, false);
  arguments->separation.add_to(verb);
  arguments->precision.add_to(verb);
  arguments->precision.add_probes_to(verb, false);
  add_parameters(verb, arguments->parameters);
  verb.add_flag("--estimate", arguments->estimate,
                "by probes (default: from both factors, for up to 4096 places)");
  verb.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_kl(*arguments, common); };
  });
}

}  // namespace strata::cli
