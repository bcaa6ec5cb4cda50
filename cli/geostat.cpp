// strata loglik, fit, predict: Gaussian processes.

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "cli/geostat_data.hpp"

namespace strata::cli {
namespace {

using nlohmann::json;

struct LoglikArguments {
  std::string file;
  ColumnNames columns;
  SeparationArguments separation;
  MaternParameters parameters;
  std::string mean = "constant";
  std::string holdout;
};

struct FitArguments {
  std::string file;
  ColumnNames columns;
  SeparationArguments separation;
  std::string mean = "constant";
  std::string holdout;
  std::string output;
  std::string predictions;
  std::optional<double> smoothness;
  std::optional<double> nugget;
  int evaluations = 200;
  std::int64_t grid = 4000;
};

struct PredictArguments {
  std::string model;
  std::string file;
  ColumnNames columns;
  std::string value;
  std::string output;
};

std::string mean_text(const std::vector<double>& coefficients) {
  if (coefficients.empty()) return "0";
  if (coefficients.size() == 1) return fmt::format("{:.6g}", coefficients[0]);
  return fmt::format("{:.6g} {:+.6g} x {:+.6g} y", coefficients[0], coefficients[1],
                     coefficients[2]);
}

json likelihood_json(const Likelihood& likelihood, const MaternParameters& parameters) {
  json object = to_json(likelihood.run);
  object["log_likelihood"] = number(likelihood.log_likelihood);
  object["quadratic_form"] = number(likelihood.quadratic_form);
  object["factor"] = to_json(likelihood.factor);
  object["parameters"] = to_json(parameters);
  object["mean_coefficients"] = likelihood.mean_coefficients;
  return object;
}

void print_parameters(const MaternParameters& p) {
  fmt::print(
      "  variance    {:.6g}\n  range       {:.6g}\n  smoothness  {:.6g}\n  nugget      {:.6g}\n",
      p.variance, p.range, p.smoothness, p.nugget);
  const Separation& s = p.separation;
  if (s.distance == Distance::great_circle) fmt::print("  distance    great circle, km\n");
  if (s.anisotropy_ratio != 1) {
    fmt::print("  anisotropy  {:.6g} across {:.6g} degrees\n", s.anisotropy_ratio,
               s.anisotropy_angle);
  }
  if (s.time) {
    fmt::print("  time        scale {:.6g}, smoothness {:.6g}, interaction {:.6g}\n", s.time->scale,
               s.time->smoothness, s.time->interaction);
  }
}

/// How the matrix compares with the memory it was factored in.
void print_sizes(const RunReport& run) {
  const double matrix = 8.0 * static_cast<double>(run.n) * static_cast<double>(run.n);
  fmt::print(
      "  covariance matrix {} by {}: {}; factored in {} of device memory on {} (tile {}, {})\n",
      run.n, run.n, format_bytes(static_cast<std::int64_t>(matrix)),
      format_bytes(run.peak_device_bytes), fmt::join(run.devices, ", "), run.tile, run.policy);
}

void print_loglik(const Likelihood& likelihood) {
  fmt::print("log-likelihood    {:.10g}\nquadratic form    {:.10g}\nlog determinant   {:.10g}\n",
             likelihood.log_likelihood, likelihood.quadratic_form,
             likelihood.factor.log_determinant);
  fmt::print("mean              {}\n", mean_text(likelihood.mean_coefficients));
  print_sizes(likelihood.run);
  print_traffic(likelihood.run);
}

int run_loglik(const LoglikArguments& arguments, const CommonOptions& common) {
  const Options options = common.to_options();
  const Mean mean = parse_mean(arguments.mean);
  MaternParameters parameters = arguments.parameters;
  parameters.separation = arguments.separation.separation(arguments.columns);
  const Distance distance = parameters.separation.distance;
  check_outputs(common, {}, {arguments.file, common.rates});
  const Observations data =
      read_observations(arguments.file, arguments.columns, arguments.holdout, common.seed).fit;
  check_places(data.points, data.rows, distance, arguments.file);
  if (parameters.nugget == 0) check_distinct(data, distance, arguments.file);
  check_interrupt();
  const Likelihood likelihood = log_likelihood(data.points, data.values, parameters, mean, options);
  const json object = likelihood_json(likelihood, parameters);
  if (!likelihood.factor.ok) return report_failed_factor(common, likelihood.factor, object);
  ReportData report;
  report.title = fmt::format("Log-likelihood of {} observations", data.points.size());
  report.subtitle = arguments.file;
  report.figures = {{"Log-likelihood", fmt::format("{:.8g}", likelihood.log_likelihood), "", ""}};
  report.run = likelihood.run;
  return finish(common, std::move(report), object, [&] { print_loglik(likelihood); });
}

MapLayer point_layer(const char* name, MapQuantity quantity, const Points& points,
                     const std::vector<double>& values) {
  MapLayer layer;
  layer.name = name;
  layer.quantity = quantity;
  layer.x = points.x;
  layer.y = points.y;
  layer.value = values;
  return layer;
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

// ---- fit

struct HoldoutScores {
  Prediction prediction;
  Scores scores;
};

void fill_report(ReportData& report, const FitArguments& arguments, const SplitObservations& data,
                 const FitResult& result, const Model& model,
                 const std::optional<HoldoutScores>& held, const Options& options) {
  const MaternParameters& p = result.parameters;
  report.title =
      fmt::format("{} fitted to {} observations", arguments.columns.value, data.fit.points.size());
  report.subtitle = fmt::format(
      "Gaussian process with Matérn covariance and {} mean, by exact maximum likelihood, from {}",
      arguments.mean, arguments.file);
  report.figures = {
      {"Log-likelihood", fmt::format("{:.2f}", result.likelihood.log_likelihood), "",
       fmt::format("{} evaluations", result.evaluations)},
      {"Variance", fmt::format("{:.4g}", p.variance), "", ""},
      {"Range", fmt::format("{:.4g}", p.range), "",
       p.separation.distance == Distance::great_circle ? "in kilometres"
                                                       : "in units of the coordinates"},
      {"Smoothness", fmt::format("{:.3g}", p.smoothness), "", ""},
      {"Nugget", fmt::format("{:.4g}", p.nugget), "", ""}};
  for (const FitStep& step : result.path) {
    report.evaluations.push_back(
        {step.range, step.smoothness, step.nugget, step.variance, step.log_likelihood});
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
  ReportMap map;
  map.x_label = arguments.columns.x;
  map.y_label = arguments.columns.y;
  map.layers.push_back(
      point_layer("Observed", MapQuantity::value, data.fit.points, data.fit.values));
  // A map is one of x and y: at which height and time to predict, nobody has said.
  if (data.fit.points.z.empty() && data.fit.points.t.empty()) {
    const PredictionGrid grid = make_grid(data.fit.points, arguments.grid);
    const Prediction surface = predict(model, grid.nodes, options);
    map.layers.push_back(grid_layer("Predicted", MapQuantity::value, grid, surface.mean));
    map.layers.push_back(grid_layer("Standard error", MapQuantity::standard_error, grid,
                                    surface.process_standard_error));
  }
  report.map = std::move(map);
}

json fit_json(const FitResult& result, const std::optional<HoldoutScores>& held,
              const SplitObservations& data) {
  json object = likelihood_json(result.likelihood, result.parameters);
  object["evaluations"] = result.evaluations;
  object["converged"] = result.converged;
  object["fit_seconds"] = result.seconds;
  object["observations"] = data.fit.points.size();
  if (held) object["holdout"] = to_json(held->scores, data.holdout.points.size());
  return object;
}

void print_fit(const FitArguments& arguments, const SplitObservations& data,
               const FitResult& result, const std::optional<HoldoutScores>& held) {
  fmt::print(
      "{}: {} observations fitted, {} held out\n\nfitted parameters ({} evaluations, {:.1f} s{})\n",
      arguments.file, data.fit.points.size(), data.holdout.points.size(), result.evaluations,
      result.seconds, result.converged ? "" : ", not converged");
  print_parameters(result.parameters);
  fmt::print("  mean        {}\n", mean_text(result.likelihood.mean_coefficients));
  fmt::print(
      "\nlikelihood\n  log-likelihood  {:.6f}\n  log determinant {:.6f}\n  quadratic form  "
      "{:.6f}\n",
      result.likelihood.log_likelihood, result.likelihood.factor.log_determinant,
      result.likelihood.quadratic_form);
  if (held) {
    fmt::print(
        "\nhold-out scores ({} observations)\n  RMSE      {:.6g}\n  MAE       {:.6g}\n  CRPS      "
        "{:.6g}\n  95 % interval covers {:.1f} %\n",
        data.holdout.points.size(), held->scores.rmse, held->scores.mae, held->scores.crps,
        100 * held->scores.coverage95);
  }
  fmt::print("\none evaluation of the likelihood\n");
  print_sizes(result.likelihood.run);
  print_traffic(result.likelihood.run);
}

void write_predictions(const std::string& path, const ColumnNames& columns, const Points& points,
                       const Prediction& prediction, const std::vector<double>* observed) {
  std::vector<std::string> names;
  std::vector<std::vector<double>> data;
  const auto add = [&](const std::string& name, const std::vector<double>& column) {
    names.push_back(name);
    data.push_back(column);
  };
  add(columns.x, points.x);
  add(columns.y, points.y);
  if (!points.z.empty()) add(columns.z, points.z);
  if (!points.t.empty()) add(columns.time, points.t);
  if (observed != nullptr) add(columns.value, *observed);
  add("mean", prediction.mean);
  add("standard_error", prediction.standard_error);
  add("process_standard_error", prediction.process_standard_error);
  write_csv(path, names, data);
}

FitOptions fit_options_of(const FitArguments& arguments, const CommonOptions& common) {
  FitOptions options;
  options.mean = parse_mean(arguments.mean);
  options.options = common.to_options();
  options.max_evaluations = arguments.evaluations;
  options.smoothness = arguments.smoothness;
  options.nugget = arguments.nugget;
  options.separation = arguments.separation.separation(arguments.columns);
  return options;
}

int run_fit(const FitArguments& arguments, const CommonOptions& common) {
  const FitOptions fit_options = fit_options_of(arguments, common);
  check_outputs(common, {{"--output", arguments.output}, {"--predictions", arguments.predictions}},
                {arguments.file, common.rates});
  const SplitObservations data =
      read_observations(arguments.file, arguments.columns, arguments.holdout, common.seed);
  const bool holdout = data.holdout.points.size() > 0;
  require(arguments.predictions.empty() || holdout, ErrorKind::misuse, "fit",
          "--predictions '{}': no row of {} is held out to be predicted, see --holdout",
          arguments.predictions, arguments.file);
  const Distance distance = fit_options.separation.distance;
  for (const Observations* some : {&data.fit, &data.holdout})
    check_places(some->points, some->rows, distance, arguments.file);
  if (arguments.nugget == 0.0) check_distinct(data.fit, distance, arguments.file);
  check_interrupt();
  const FitResult result = fit(data.fit.points, data.fit.values, fit_options);
  if (!result.likelihood.factor.ok) {
    return report_failed_factor(common, result.likelihood.factor,
                                likelihood_json(result.likelihood, result.parameters));
  }
  const Model model{result.parameters, fit_options.mean, result.likelihood.mean_coefficients,
                    data.fit.points, data.fit.values};
  std::optional<HoldoutScores> held;
  if (holdout) {
    held.emplace();
    held->prediction = predict(model, data.holdout.points, fit_options.options);
    held->scores =
        scores(data.holdout.values, held->prediction.mean, held->prediction.standard_error);
  }
  ReportData report;
  report.run = result.likelihood.run;
  if (!common.report.empty())
    fill_report(report, arguments, data, result, model, held, fit_options.options);
  begin_output();
  if (!arguments.predictions.empty()) {
    write_predictions(arguments.predictions, arguments.columns, data.holdout.points,
                      held->prediction, &data.holdout.values);
  }
  if (!arguments.output.empty()) {
    write_model(arguments.output,
                {model, arguments.columns, arguments.file, result.likelihood.log_likelihood});
  }
  return finish(common, std::move(report), fit_json(result, held, data), [&] {
    print_fit(arguments, data, result, held);
    if (!arguments.predictions.empty())
      fmt::print("\npredictions written to {}", arguments.predictions);
    if (!arguments.output.empty()) fmt::print("\nmodel written to {}", arguments.output);
    fmt::print("\n");
  });
}

// ---- predict

/// What was predicted, from which observations.
ReportData predict_report(const PredictArguments& arguments, const ColumnNames& columns,
                          const Model& model, const Points& targets, const Prediction& prediction) {
  ReportData report;
  report.title = fmt::format("{} predicted at {} places", columns.value, targets.size());
  report.subtitle = fmt::format("from {}", arguments.model);
  ReportMap map;
  map.x_label = columns.x;
  map.y_label = columns.y;
  map.layers.push_back(point_layer("Observed", MapQuantity::value, model.points, model.values));
  map.layers.push_back(point_layer("Predicted", MapQuantity::value, targets, prediction.mean));
  map.layers.push_back(point_layer("Standard error", MapQuantity::standard_error, targets,
                                   prediction.standard_error));
  report.map = std::move(map);
  report.run = prediction.run;
  return report;
}

/// What was observed at the places, if the table says; "none" leaves it.
std::vector<double> observed_values(const Table& table, const std::string& asked,
                                    const std::string& column) {
  if (asked == "none" || (asked.empty() && !table.has(column))) return {};
  return table.column(column);
}

void print_predict(const Prediction& prediction, const std::string& output,
                   const std::optional<Scores>& against, const std::string& column) {
  fmt::print(
      "{} predictions written to {} (mean, standard error of a new observation, and of the "
      "process)\n",
      prediction.mean.size(), output);
  if (against) {
    fmt::print("against column {}: RMSE {:.6g}, MAE {:.6g}, CRPS {:.6g}, 95 % interval covers ",
               column, against->rmse, against->mae, against->crps);
    fmt::print("{:.1f} %\n", 100 * against->coverage95);
  }
  print_sizes(prediction.run);
  print_traffic(prediction.run);
  fmt::print("  the predictions then took {:.3g} s and moved {}\n", prediction.solve.seconds,
             format_bytes(prediction.solve.traffic.total()));
}

int run_predict(const PredictArguments& arguments, const CommonOptions& common) {
  const Options options = common.to_options();
  check_outputs(common, {{"--output", arguments.output}},
                {arguments.model, arguments.file, common.rates});
  const ModelFile file = read_model(arguments.model);
  ColumnNames columns = file.columns;
  if (!arguments.columns.x.empty()) columns.x = arguments.columns.x;
  if (!arguments.columns.y.empty()) columns.y = arguments.columns.y;
  if (!arguments.columns.z.empty()) columns.z = arguments.columns.z;
  if (!arguments.columns.time.empty()) columns.time = arguments.columns.time;
  if (!arguments.value.empty() && arguments.value != "none") columns.value = arguments.value;
  const Table table = read_csv(arguments.file);
  const Points targets = columns.points_of(table);
  require(targets.size() > 0, ErrorKind::input, "data", "{}: there are no rows to predict",
          arguments.file);
  std::vector<std::int64_t> rows(targets.x.size());
  std::iota(rows.begin(), rows.end(), 1);
  check_places(targets, rows, file.model.parameters.separation.distance, arguments.file);
  const std::vector<double> observed = observed_values(table, arguments.value, columns.value);
  check_interrupt();
  const Prediction prediction = predict(file.model, targets, options);
  std::optional<Scores> against;
  if (!observed.empty()) against = scores(observed, prediction.mean, prediction.standard_error);
  json object = to_json(prediction.run);
  object["solve"] = to_json(prediction.solve);
  object["predictions"] = targets.size();
  object["parameters"] = to_json(file.model.parameters);
  if (against) object["holdout"] = to_json(*against, targets.size());
  ReportData report = predict_report(arguments, columns, file.model, targets, prediction);
  begin_output();
  write_predictions(arguments.output, columns, targets, prediction,
                    observed.empty() ? nullptr : &observed);
  return finish(common, std::move(report), object,
                [&] { print_predict(prediction, arguments.output, against, columns.value); });
}

}  // namespace

void add_loglik(CLI::App& app, CommonOptions& common, Run& run) {
  CLI::App* verb = app.add_subcommand("loglik", "exact log-likelihood of a Gaussian process");
  auto arguments = std::make_shared<LoglikArguments>();
  common.add_to(*verb);
  verb->add_option("FILE", arguments->file, "observations: .csv or .csv.gz")->required();
  arguments->columns.add_to(*verb, true);
  arguments->separation.add_to(*verb);
  verb->add_option("--variance", arguments->parameters.variance, "of the process")
      ->required()
      ->check(positive_number());
  verb->add_option("--range", arguments->parameters.range,
                   "in units of the coordinates, or kilometres with --distance great-circle")
      ->required()
      ->check(positive_number());
  verb->add_option("--smoothness", arguments->parameters.smoothness, "of the Matérn covariance")
      ->required()
      ->check(positive_number());
  verb->add_option("--nugget", arguments->parameters.nugget, "variance of the noise")
      ->check(nonnegative_number())
      ->capture_default_str();
  verb->add_option("--mean", arguments->mean, "sample, zero, constant or linear")
      ->capture_default_str();
  verb->add_option("--holdout", arguments->holdout, "rows left out: a column, a share, or none");
  verb->callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_loglik(*arguments, common); };
  });
}

void add_fit(CLI::App& app, CommonOptions& common, Run& run) {
  CLI::App* verb = app.add_subcommand("fit", "fit a Gaussian process by exact maximum likelihood");
  auto arguments = std::make_shared<FitArguments>();
  common.add_to(*verb);
  verb->add_option("FILE", arguments->file, "observations: .csv or .csv.gz")->required();
  arguments->columns.add_to(*verb, true);
  arguments->separation.add_to(*verb);
  verb->add_option("--mean", arguments->mean, "sample, zero, constant or linear (in x and y)")
      ->capture_default_str();
  verb->add_option("--smoothness", arguments->smoothness, "hold the smoothness at this")
      ->check(positive_number());
  verb->add_option("--nugget", arguments->nugget, "hold the nugget at this; 0 for none")
      ->check(nonnegative_number());
  verb->add_option("--holdout", arguments->holdout,
                   "rows kept for scoring: a column, a share such as 0.1, or none (default: a "
                   "column called holdout)");
  verb->add_option("--max-evaluations", arguments->evaluations, "of the likelihood")
      ->capture_default_str()
      ->check(positive_number());
  verb->add_option("-o,--output", arguments->output, "write the model, for predict");
  verb->add_option("--predictions", arguments->predictions,
                   "write the hold-out predictions (.csv)");
  verb->add_option("--grid", arguments->grid, "cells of the report's map")
      ->capture_default_str()
      ->check(positive_number());
  verb->callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_fit(*arguments, common); };
  });
}

void add_predict(CLI::App& app, CommonOptions& common, Run& run) {
  CLI::App* verb = app.add_subcommand("predict", "kriging: mean and standard error at new places");
  auto arguments = std::make_shared<PredictArguments>();
  common.add_to(*verb);
  verb->add_option("MODEL", arguments->model, "what fit wrote with -o")->required();
  verb->add_option("FILE", arguments->file, "places: .csv or .csv.gz")->required();
  arguments->columns.add_to(*verb, false);
  verb->add_option("--value", arguments->value,
                   "column of observed values to score against, or none (default: the model's, if "
                   "FILE has it)");
  verb->add_option("-o,--output", arguments->output, "where the predictions go (.csv)")->required();
  verb->callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_predict(*arguments, common); };
  });
}

}  // namespace strata::cli
