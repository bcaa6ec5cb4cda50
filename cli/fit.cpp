// strata fit: maximum likelihood, hold-out scores, a model for predict.

#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"
#include "cli/fit_search.hpp"
#include "cli/geostat_verbs.hpp"
#include "cli/precision.hpp"
#include "cli/starting_devices.hpp"

namespace strata::cli {
namespace {

struct FitArguments {
  std::string file;
  ColumnNames columns;
  SeparationArguments separation;
  PrecisionArguments precision;
  std::string mean = "constant";
  std::string holdout;
  std::string output;
  std::string predictions;
  SearchArguments search;
  std::int64_t grid = 4000;
  std::string errors = "auto";
  std::string journal;
};

constexpr std::pair<const char*, StandardErrorMethod> kStandardErrorMethods[] = {
    {"auto", StandardErrorMethod::automatic},
    {"expected", StandardErrorMethod::expected},
    {"observed", StandardErrorMethod::observed},
    {"none", StandardErrorMethod::none}};

StandardErrorMethod parse_errors(const std::string& name) {
  for (const auto& [known, method] : kStandardErrorMethods)
    if (name == known) return method;
  fail(ErrorKind::misuse, "options", "--standard-errors '{}': use auto, expected, observed or none",
       name);
}

Json errors_json(const StandardErrors& errors, const SeparationEstimates& estimated) {
  Json object{{"method", "none"},
              {"evaluations", errors.evaluations},
              {"variance", number(errors.variance)},
              {"range", number(errors.range)},
              {"smoothness", number(errors.smoothness)},
              {"nugget", number(errors.nugget)}};
  if (estimated.of_time()) {
    object["time"] = {{"scale", number(errors.time_scale)},
                      {"smoothness", number(errors.time_smoothness)},
                      {"interaction", number(errors.interaction)}};
  }
  if (estimated.anisotropy_ratio || estimated.anisotropy_angle) {
    object["anisotropy"] = {{"ratio", number(errors.anisotropy_ratio)},
                            {"angle", number(errors.anisotropy_angle)}};
  }
  for (const auto& [name, method] : kStandardErrorMethods)
    if (method == errors.method) object["method"] = name;
  return object;
}

Json stages_json(const std::vector<FitStage>& stages) {
  Json all = Json::array();
  for (const FitStage& stage : stages) {
    all.push_back(
        {{"points", stage.points}, {"evaluations", stage.evaluations}, {"seconds", stage.seconds}});
  }
  return all;
}

/// A parameter with its standard error, where there is one, or the bound that it is on.
void print_parameter(const char* name, double value, double error, const std::string& bound = "") {
  const std::string beside = std::isnan(error) ? bound : fmt::format("± {:.2g}", error);
  if (beside.empty()) return fmt::print("  {:<13}  {:.6g}\n", name, value);
  fmt::print("  {:<13}  {:<12}  {}\n", name, fmt::format("{:.6g}", value), beside);
}

void print_parameters(const FitResult& result, const SeparationEstimates& estimated) {
  const MaternParameters& p = result.parameters;
  const StandardErrors& errors = result.standard_errors;
  const auto bound = [&result](const char* name) { return bound_text(result, name); };
  print_parameter("variance", p.variance, errors.variance, bound("variance"));
  print_parameter("range", p.range, errors.range, bound("range"));
  print_parameter("smoothness", p.smoothness, errors.smoothness, bound("smoothness"));
  print_parameter("nugget", p.nugget, errors.nugget, bound("noise-ratio"));
  const Separation& s = p.separation;
  if (s.distance == Distance::great_circle) fmt::print("  distance       great circle, km\n");
  if (s.anisotropy_ratio != 1 || estimated.anisotropy_ratio) {
    fmt::print("  anisotropy\n");
    print_parameter("  ratio", s.anisotropy_ratio, errors.anisotropy_ratio,
                    bound("anisotropy-ratio"));
    print_parameter("  angle", s.anisotropy_angle, errors.anisotropy_angle);
  }
  if (s.time) {
    fmt::print("  time           half of the covariance is left after {:.6g}\n",
               std::pow(s.time->scale, -0.5 / s.time->smoothness));
    print_parameter("  scale", s.time->scale, errors.time_scale, bound("time-range"));
    print_parameter("  smoothness", s.time->smoothness, errors.time_smoothness,
                    bound("time-smoothness"));
    print_parameter("  interaction", s.time->interaction, errors.interaction, bound("interaction"));
  }
}

/// Beside range, smoothness, nugget and variance: what the separation has.
std::vector<std::string> other_parameters(const FitOptions& options) {
  std::vector<std::string> names;
  if (options.separation.time) names = {"time scale", "time smoothness", "interaction"};
  if (options.separation.anisotropy_ratio != 1 || options.estimate.anisotropy_ratio) {
    names.emplace_back("anisotropy ratio");
    names.emplace_back("anisotropy angle");
  }
  return names;
}

/// Their values, in the same order.
std::vector<double> other_values(const FitOptions& options, const Separation& s) {
  std::vector<double> values;
  if (s.time) values = {s.time->scale, s.time->smoothness, s.time->interaction};
  if (options.separation.anisotropy_ratio != 1 || options.estimate.anisotropy_ratio) {
    values.push_back(s.anisotropy_ratio);
    values.push_back(s.anisotropy_angle);
  }
  return values;
}

MapLayer grid_layer(const char* name, MapQuantity quantity, const PredictionGrid& grid,
                    const std::vector<double>& values) {
  MapLayer layer;
  layer.name = name;
  layer.quantity = quantity;
  layer.value = on_grid(grid, values);
  layer.grid = grid.grid;
  return layer;
}

struct HoldoutScores {
  Prediction prediction;
  Scores scores;
};

/// The semivariogram of the residuals, of a sample where there are many observations, with the
/// model. None where its numbers are out of the range of doubles.
std::optional<ReportChart> residual_chart(const Observations& data,
                                          const MaternParameters& parameters,
                                          const FitOptions& options) {
  constexpr std::int64_t kMost = 20'000;  // 2e8 pairs, a second or two
  VariogramOptions how;
  how.mean = options.mean;
  how.distance = parameters.separation.distance;
  const std::int64_t n = data.points.size();
  Observations some;
  for (std::int64_t i = 0; n > kMost && i < n; ++i)
    if (random_uniform(1, static_cast<std::uint64_t>(i)) * static_cast<double>(n) < kMost)
      some.add(data.points, data.values[static_cast<std::size_t>(i)], static_cast<std::size_t>(i));
  const Observations& used = n > kMost ? some : data;
  ReportChart chart;
  try {
    chart = variogram_chart(variogram(used.points, used.values, how), parameters, how.distance);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::numerical) throw;
    return std::nullopt;
  }
  chart.title =
      fmt::format("Semivariogram of the residuals{}, with the model",
                  n > kMost ? fmt::format(" ({} observations drawn)", used.points.size()) : "");
  return chart;
}

void fill_report(ReportData& report, const FitArguments& arguments, const SplitObservations& data,
                 const FitResult& result, const Model& model,
                 const std::optional<HoldoutScores>& held, const FitOptions& options) {
  const MaternParameters& p = result.parameters;
  report.title = fmt::format("{} fitted to {}", arguments.columns.value,
                             counted(data.fit.points.size(), "observation"));
  report.subtitle = fmt::format(
      "Gaussian process with Matérn covariance and {} mean{}, by exact maximum likelihood, from {}",
      arguments.mean,
      arguments.columns.covariates.empty()
          ? ""
          : fmt::format(" with {}", fmt::join(arguments.columns.covariates, ", ")),
      arguments.file);
  report.figures = {
      {"Log-likelihood", fmt::format("{:.2f}", result.likelihood.log_likelihood), "",
       counted(result.evaluations, "evaluation")},
      {"Variance", fmt::format("{:.4g}", p.variance), "", ""},
      {"Range", fmt::format("{:.4g}", p.range), "",
       p.separation.distance == Distance::great_circle ? "in kilometres"
                                                       : "in units of the coordinates"},
      {"Smoothness", fmt::format("{:.3g}", p.smoothness), "", ""},
      {"Nugget", fmt::format("{:.4g}", p.nugget), "", ""}};
  report.other_parameters = other_parameters(options);
  const std::vector<double> others = other_values(options, p.separation);
  for (std::size_t k = 0; k < others.size(); ++k) {
    std::string label = report.other_parameters[k];
    label.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(label.front())));
    report.figures.push_back({label, fmt::format("{:.4g}", others[k]), "", ""});
  }
  for (const FitStep& step : result.path) {
    report.evaluations.push_back({step.range, step.smoothness, step.nugget, step.variance,
                                  step.log_likelihood, other_values(options, step.separation)});
  }
  if (held) {
    report.hold_out = ReportHoldOut{data.holdout.values,
                                    held->prediction.mean,
                                    held->prediction.standard_error,
                                    "",
                                    held->scores.rmse,
                                    held->scores.mae,
                                    held->scores.crps,
                                    held->scores.coverage95};
  }
  report.run = result.likelihood.run;
  add_precision_map(report, result.mixed);
  if (data.fit.points.t.empty()) {
    if (auto chart = residual_chart(data.fit, p, options)) report.charts.push_back(*chart);
  }
  ReportMap map;
  map.x_label = arguments.columns.x;
  map.y_label = arguments.columns.y;
  map.layers.push_back(
      point_layer("Observed", MapQuantity::value, data.fit.points, data.fit.values));
  // A map is one of x and y: at which height and time to predict was not said, and the covariates
  // between observations are unknown.
  if (data.fit.points.z.empty() && data.fit.points.t.empty() &&
      data.fit.points.covariates.empty()) {
    const PredictionGrid grid = make_grid(data.fit.points, arguments.grid);
    const Prediction surface = predict(model, grid.nodes, options);
    map.layers.push_back(grid_layer("Predicted", MapQuantity::value, grid, surface.mean));
    map.layers.push_back(grid_layer("Standard error", MapQuantity::standard_error, grid,
                                    surface.process_standard_error));
  }
  report.map = std::move(map);
}

Json fit_json(const FitResult& result, const std::optional<HoldoutScores>& held,
              const SplitObservations& data, const FitOptions& options) {
  Json object = likelihood_json(result.likelihood, result.parameters);
  if (result.mixed) {
    object["search"]["mixed"] = to_json(*result.mixed);
    object["search"]["likelihood_in_fp64"] = !result.likelihood.certificate;
  }
  add_search_json(object, result, options);
  const SeparationEstimates& estimated = options.estimate;
  if (estimated.anisotropy_ratio || estimated.anisotropy_angle) {
    const Separation& s = result.parameters.separation;  // a ratio of 1 is an estimate, too
    object["parameters"]["anisotropy"] = {{"ratio", s.anisotropy_ratio},
                                          {"angle", s.anisotropy_angle}};
  }
  object["stages"] = stages_json(result.stages);
  object["standard_errors"] = errors_json(result.standard_errors, estimated);
  object["fit_seconds"] = result.seconds;
  object["observations"] = data.fit.points.size();
  add_rows_json(object, data.fit);
  if (held) {
    object["holdout"] = to_json(held->scores, data.holdout.points.size());
    if (!held->prediction.rounding.ok())
      object["remarks"].push_back("hold-out: " + distrust_of(held->prediction.rounding));
  }
  return object;
}

void print_fit(const FitArguments& arguments, const SplitObservations& data,
               const FitResult& result, const std::optional<HoldoutScores>& held,
               const FitOptions& options) {
  fmt::print("{}: {} fitted, {} held out\n{}", arguments.file,
             counted(data.fit.points.size(), "observation"), data.holdout.points.size(),
             rows_text(data.fit));
  for (const std::string& remark : remarks_of(result, options)) fmt::print("{}\n", remark);
  if (held && !held->prediction.rounding.ok())
    fmt::print("hold-out: {}\n", distrust_of(held->prediction.rounding));
  fmt::print("\nfitted parameters ({}, {:.1f} s{})\n", counted(result.evaluations, "evaluation"),
             result.seconds, result.converged ? "" : ", not converged");
  print_parameters(result, options.estimate);
  fmt::print("  mean           {}\n",
             mean_text(result.likelihood.mean_coefficients, arguments.columns.covariates));
  if (result.standard_errors.method != StandardErrorMethod::none) {
    fmt::print(
        "  (± standard errors, by the {} information{})\n",
        result.standard_errors.method == StandardErrorMethod::expected ? "expected" : "observed",
        result.at_bounds.empty() ? "" : "; what is on a bound is taken as known");
  }
  for (const FitStage& stage : result.stages) {
    fmt::print("  before, on {} of the observations: {}, {:.1f} s\n", stage.points,
               counted(stage.evaluations, "evaluation"), stage.seconds);
  }
  fmt::print("\nlikelihood\n");
  print_likelihood(result.likelihood, "  ");
  if (held) {
    fmt::print(
        "\nhold-out scores ({})\n  RMSE      {:.6g}\n  MAE       {:.6g}\n  CRPS      "
        "{:.6g}\n  95 % interval covers {:.1f} %\n",
        counted(data.holdout.points.size(), "observation"), held->scores.rmse, held->scores.mae,
        held->scores.crps, 100 * held->scores.coverage95);
  }
  if (result.mixed) {
    fmt::print("\nthe search in lower precisions; the likelihood above {}\n",
               result.likelihood.certificate ? "too, for FP64 has no room" : "in FP64");
    print_mixed(result.mixed);
    print_certificate(result.likelihood.certificate);
  }
  fmt::print("\none evaluation of the likelihood\n");
  print_sizes(result.likelihood.run);
  print_traffic(result.likelihood.run);
}

FitOptions fit_options_of(const FitArguments& arguments, const CommonOptions& common) {
  FitOptions options{arguments.precision.to_options(common)};
  options.mean = parse_mean(arguments.mean);
  options.separation = arguments.separation.separation(arguments.columns);
  options.estimate = arguments.separation.estimates(arguments.columns);
  options.standard_errors = parse_errors(arguments.errors);
  options.journal = arguments.journal;
  options.seed = common.seed;
  arguments.search.apply(options);
  return options;
}

int run_fit(const FitArguments& arguments, const CommonOptions& common) {
  const FitOptions fit_options = fit_options_of(arguments, common);
  check_outputs(common,
                {{"--output", arguments.output},
                 {"--predictions", arguments.predictions},
                 {"--journal", arguments.journal}},
                {arguments.file, common.rates});
  const StartingDevices starting(fit_options.run.devices);
  const SplitObservations data =
      read_observations(arguments.file, arguments.columns, arguments.holdout, common.seed);
  const bool holdout = data.holdout.points.size() > 0;
  require(arguments.predictions.empty() || holdout, ErrorKind::misuse, "fit",
          "--predictions '{}': no row of {} is held out to be predicted, see --holdout",
          arguments.predictions, arguments.file);
  const Distance distance = fit_options.separation.distance;
  for (const Observations* some : {&data.fit, &data.holdout})
    check_places(some->points, some->rows, distance, arguments.file);
  if (fit_options.nugget == 0.0)
    check_apart(data.fit, distance, fit_options.smoothness.value_or(1), arguments.file);
  check_interrupt();
  const FitResult result = fit(data.fit.points, data.fit.values, fit_options);
  if (!result.likelihood.factor.ok) {
    const MaternParameters& p = result.parameters;
    return report_failed_factor(common, result.likelihood.factor,
                                likelihood_json(result.likelihood, p),
                                {p.variance + p.nugget, data.fit.points.size()});
  }
  const Model model{result.parameters, fit_options.mean, result.likelihood.mean_coefficients,
                    data.fit.points, data.fit.values};
  std::optional<HoldoutScores> held;
  if (holdout) {
    held.emplace();
    held->prediction = predict(model, data.holdout.points, fit_options);
    held->scores =
        scores(data.holdout.values, held->prediction.mean, held->prediction.standard_error);
  }
  ReportData report;
  report.run = result.likelihood.run;
  if (!common.report.empty())
    fill_report(report, arguments, data, result, model, held, fit_options);
  begin_output();
  if (!arguments.predictions.empty()) {
    PredictionTable table(arguments.predictions, arguments.columns, true);
    table.write(data.holdout.points, data.holdout.values, held->prediction);
    table.close();
  }
  if (!arguments.output.empty()) {
    ColumnNames columns = arguments.columns;
    columns.dates = data.fit.dates;
    write_model(arguments.output, {model, columns, arguments.file, result.likelihood.log_likelihood,
                                   distrust_of(result)});
  }
  const Json object = fit_json(result, held, data, fit_options);
  const int written = finish(common, std::move(report), object, [&] {
    print_fit(arguments, data, result, held, fit_options);
    if (!arguments.predictions.empty())
      fmt::print("\npredictions written to {}", arguments.predictions);
    if (!arguments.output.empty()) fmt::print("\nmodel written to {}", arguments.output);
    fmt::print("\n");
  });
  const bool lost = held && !held->prediction.rounding.ok();
  return written == kDone ? (lost ? kNumbersSaidNo : status_of(result)) : written;
}

}  // namespace

void add_fit(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("fit", "fit a Gaussian process by exact maximum likelihood");
  add_examples(verb,
               {"strata fit data.csv --x lon --y lat --value rain -o model.json --report fit.html",
                "strata fit data.csv --x lon --y lat --value rain --mean linear --holdout 0.1 "
                "--predictions holdout.csv"});
  auto arguments = std::make_shared<FitArguments>();
  common.add_to(verb);
  verb.add_option("FILE", arguments->file, "observations: .csv or .csv.gz").required();
  arguments->columns.add_to(verb, true);
  arguments->columns.add_covariates_to(verb);
  arguments->separation.add_to(verb, true);
  arguments->precision.add_to(verb);
  verb.add_option("--mean", arguments->mean, "sample, zero, constant or linear (in x and y)")
      .capture_default_str();
  arguments->search.add_to(verb);
  verb.add_option("--holdout", arguments->holdout,
                  "rows kept for scoring: a column, a share such as 0.1, or none (default: a "
                  "column called holdout)");
  verb.add_option(
          "--standard-errors", arguments->errors,
          "of the estimates: auto, expected (up to 3000 observations), observed (k^2 + k + 4 "
          "or a few more evaluations for k parameters) or none")
      .capture_default_str();
  verb.add_option("--journal", arguments->journal,
                  "keep finished evaluations here; if it is there, go on behind them");
  verb.add_option("-o,--output", arguments->output, "write the model, for predict");
  verb.add_option("--predictions", arguments->predictions, "write the hold-out predictions (.csv)");
  verb.add_option("--grid", arguments->grid, "cells of the report's map")
      .capture_default_str()
      .check(positive_number());
  verb.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_fit(*arguments, common); };
  });
}

}  // namespace strata::cli
