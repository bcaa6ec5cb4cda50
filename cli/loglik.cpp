// strata loglik: the exact log-likelihood at given parameters.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "cli/geostat_verbs.hpp"
#include "cli/precision.hpp"
#include "cli/starting_devices.hpp"

namespace strata::cli {
namespace {

struct LoglikArguments {
  std::string file;
  ColumnNames columns;
  SeparationArguments separation;
  PrecisionArguments precision;
  MaternParameters parameters;
  std::string mean = "constant";
  std::string holdout;
};

void print_loglik(const Likelihood& likelihood, const std::vector<std::string>& covariates) {
  print_likelihood(likelihood, "");
  fmt::print("mean              {}\n", mean_text(likelihood.mean_coefficients, covariates));
  print_mixed(likelihood.run.mixed);
  print_certificate(likelihood.certificate);
  print_sizes(likelihood.run);
  print_traffic(likelihood.run);
}

/// The line of a log-likelihood of which no digit can be relied on; none where some can.
std::vector<std::string> remarks_of(const Likelihood& likelihood) {
  const double error = likelihood.rounding.log_likelihood();
  if (error < std::max(0.1, 0.01 * std::abs(likelihood.log_likelihood))) return {};
  return {"NOT TO BE TRUSTED: " + distrust_of_likelihood(error, false)};
}

int run_loglik(const LoglikArguments& arguments, const CommonOptions& common) {
  const CovarianceOptions options = arguments.precision.to_options(common);
  const Mean mean = parse_mean(arguments.mean);
  MaternParameters parameters = arguments.parameters;
  parameters.separation = arguments.separation.separation(arguments.columns);
  const Distance distance = parameters.separation.distance;
  check_outputs(common, {}, {arguments.file, common.rates});
  const StartingDevices starting(options.run.devices);
  const Observations data =
      read_observations(arguments.file, arguments.columns, arguments.holdout, common.seed).fit;
  check_places(data.points, data.rows, distance, arguments.file);
  if (parameters.nugget == 0) check_distinct(data, distance, arguments.file);
  check_interrupt();
  const Likelihood likelihood = log_likelihood(data.points, data.values, parameters, mean, options);
  Json object = likelihood_json(likelihood, parameters);
  add_rows_json(object, data);
  if (!likelihood.factor.ok)
    return report_failed_factor(common, likelihood.factor, object,
                                {parameters.variance + parameters.nugget, data.points.size()});
  const std::vector<std::string> remarks = remarks_of(likelihood);
  object["remarks"] = remarks;
  ReportData report;
  report.title = fmt::format("Log-likelihood of {}", counted(data.points.size(), "observation"));
  report.subtitle = arguments.file;
  report.figures = {{"Log-likelihood", fmt::format("{:.8g}", likelihood.log_likelihood), "", ""}};
  report.run = likelihood.run;
  add_precision_map(report, likelihood.run.mixed);
  const int written = finish(common, std::move(report), object, [&] {
    for (const std::string& remark : remarks) fmt::print("{}\n", remark);
    print_loglik(likelihood, arguments.columns.covariates);
    fmt::print("{}", rows_text(data));
  });
  return written == kDone ? status_of(remarks) : written;
}

}  // namespace

void add_loglik(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("loglik", "exact log-likelihood of a Gaussian process");
  add_examples(verb, {"strata loglik data.csv --x lon --y lat --value rain --variance 2 --range "
                      "0.3 --smoothness 0.5",
                      "strata loglik data.csv --x lon --y lat --value rain --variance 2 --range "
                      "0.3 --smoothness 0.5 --accuracy 1e-7"});
  auto arguments = std::make_shared<LoglikArguments>();
  common.add_to(verb);
  verb.add_option("FILE", arguments->file, "observations: .csv or .csv.gz").required();
  arguments->columns.add_to(verb, true);
  arguments->columns.add_covariates_to(verb);
  arguments->separation.add_to(verb);
  arguments->precision.add_to(verb);
  arguments->precision.add_probes_to(verb, true);
  add_parameters(verb, arguments->parameters);
  verb.add_option("--mean", arguments->mean, "sample, zero, constant or linear")
      .capture_default_str();
  verb.add_option(
      "--holdout", arguments->holdout,
      "rows left out: a column, a share such as 0.1, or none (default: a column called holdout)");
  verb.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_loglik(*arguments, common); };
  });
}

}  // namespace strata::cli
