#include "cli/geostat_verbs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.hpp"
#include "cli/precision.hpp"

namespace strata::cli {
namespace {

/// Digits of a value that its error leaves: 10 as a rule, as many as tell it.
int digits_of(double value, double error) {
  constexpr int kFewest = 10;
  if (!(std::isfinite(error) && error > 0) || value == 0) return kFewest;
  const double known = std::ceil(std::log10(std::abs(value) / error)) + 1;
  return static_cast<int>(std::clamp(known, double{kFewest}, 17.0));
}

}  // namespace

std::string mean_text(const std::vector<double>& coefficients,
                      const std::vector<std::string>& covariates) {
  if (coefficients.empty()) return "0";
  std::vector<std::string> names;
  if (coefficients.size() == covariates.size() + 3) names = {"x", "y"};
  if (coefficients.size() == covariates.size() + 4)
    names = {"cos(y) cos(x)", "cos(y) sin(x)", "sin(y)"};
  names.insert(names.end(), covariates.begin(), covariates.end());
  std::string text = fmt::format("{:.6g}", coefficients[0]);
  for (std::size_t k = 0; k < names.size(); ++k)
    text += fmt::format(" {:+.6g} {}", coefficients[k + 1], names[k]);
  return text;
}

Json likelihood_json(const Likelihood& likelihood, const MaternParameters& parameters) {
  Json object = to_json(likelihood.run);
  object["log_likelihood"] = number(likelihood.log_likelihood);
  object["quadratic_form"] = number(likelihood.quadratic_form);
  const LikelihoodError error = likelihood.error();
  object["log_likelihood_error"] = number(error.log_likelihood());
  object["quadratic_form_error"] = number(error.quadratic_form);
  object["log_determinant_error"] = number(error.log_determinant);
  object["factor"] = to_json(likelihood.factor);
  object["parameters"] = to_json(parameters);
  object["mean_coefficients"] = likelihood.mean_coefficients;
  if (likelihood.certificate) object["certificate"] = certificate_json(likelihood);
  return object;
}

void print_likelihood(const Likelihood& likelihood, const char* indent) {
  const LikelihoodError error = likelihood.error();
  const auto print_value = [indent](const char* name, double value, double off) {
    fmt::print("{}{:<17} {:.{}g}{}\n", indent, name, value, digits_of(value, off), error_text(off));
  };
  print_value("log-likelihood", likelihood.log_likelihood, error.log_likelihood());
  print_value("quadratic form", likelihood.quadratic_form, error.quadratic_form);
  print_value("log determinant", likelihood.factor.log_determinant, error.log_determinant);
}

void add_parameters(Command& app, MaternParameters& parameters) {
  app.add_option("--variance", parameters.variance, "of the process")
      .required()
      .check(positive_number());
  app.add_option("--range", parameters.range,
                 "in units of the coordinates, or kilometres with --distance great-circle")
      .required()
      .check(positive_number());
  app.add_option("--smoothness", parameters.smoothness, "of the Matérn covariance")
      .required()
      .check(positive_number());
  app.add_option("--nugget", parameters.nugget, "variance of the noise")
      .check(nonnegative_number())
      .capture_default_str();
}

std::vector<std::string> distrust_of(const ModelFile& file, const std::string& path) {
  if (file.why.empty()) return {};
  return {fmt::format("NOT TO BE TRUSTED, said the fit of {}: {}", path, file.why)};
}

std::string distrust_of_likelihood(double error, bool mixed) {
  return fmt::format(
      "{} the log-likelihood by {}{}",
      mixed ? "rounding, or what lower precisions leave out, changes" : "rounding changes",
      std::isfinite(error) ? fmt::format("up to {:.2g}", rounded_up(error))
                           : "more than can be told",
      mixed ? "; a finer --accuracy or none, or a nugget above 0, helps"
            : ", for the covariance is near a singular one; a nugget above 0 helps");
}

std::string distrust_of(const PredictionRounding& rounding) {
  if (rounding.ok()) return "";
  const auto part = [](double share, const char* of) {
    return std::isfinite(share) ? fmt::format("up to {:.2g} of {}", rounded_up(share), of)
                                : std::string("more than can be told");
  };
  return fmt::format(
      "NOT TO BE TRUSTED: rounding changes means by {}, standard errors by {}, for the covariance "
      "is near a singular one; a nugget above 0 helps",
      part(rounding.mean_error_share, "their standard errors"),
      part(rounding.standard_error_error_share, "themselves"));
}

std::vector<std::string> distrust_of(const ModelFile& file, const std::string& path,
                                     const PredictionRounding& rounding) {
  std::vector<std::string> out = distrust_of(file, path);
  if (!rounding.ok()) out.push_back(distrust_of(rounding));
  return out;
}

int status_of(const std::vector<std::string>& remarks) {
  return remarks.empty() ? kDone : kNumbersSaidNo;
}

void add_rounding_json(Json& object, const PredictionRounding& rounding) {
  if (std::isnan(rounding.mean_error)) return;
  object["mean_error"] = number(rounding.mean_error);
  object["standard_error_error"] = number(rounding.standard_error_error);
  object["mean_error_share"] = number(rounding.mean_error_share);
  object["standard_error_error_share"] = number(rounding.standard_error_error_share);
}

void print_rounding(const PredictionRounding& rounding) {
  if (std::isnan(rounding.mean_error)) return;
  const auto within = [](double error) {
    return std::isfinite(error) ? fmt::format("within about {:.2g}", rounded_up(error))
                                : std::string("off by more than can be told");
  };
  fmt::print("  rounding: means {}, standard errors {}\n", within(rounding.mean_error),
             within(rounding.standard_error_error));
}

namespace {

/// "30 degrees, 0 to 1 in time"; empty where the line is that of all pairs.
std::string line_name(const VariogramClass& of, bool times) {
  std::string name = std::isnan(of.direction) ? "" : fmt::format("{:g} degrees", of.direction);
  if (!times) return name;
  if (!name.empty()) name += ", ";
  return name + (of.time_to > 0 ? fmt::format("{:g} to {:g} in time", of.time_from, of.time_to)
                                : "at one time");
}

ReportSeries curve_of(const MaternParameters& model, const std::string& name, double cutoff,
                      double time, double direction) {
  constexpr int kPoints = 100;
  ReportSeries curve{name, {}, {}};
  for (int k = 1; k <= kPoints; ++k) {
    curve.x.push_back(cutoff * k / kPoints);
    curve.y.push_back(semivariance(model, curve.x.back(), time, direction));
  }
  return curve;
}

}  // namespace

ReportChart variogram_chart(const Variogram& variogram,
                            const std::optional<MaternParameters>& model, Distance distance) {
  constexpr std::size_t kLinesMax = 5;
  ReportChart chart;
  chart.title = "Semivariogram";
  chart.x_label = distance == Distance::great_circle ? "distance, km" : "distance";
  chart.y_label = "semivariance";
  chart.x_scale = AxisScale::linear;
  const bool times =
      std::ranges::any_of(variogram.classes, [](const auto& one) { return one.time_to > 0; });
  std::vector<std::string> names;
  std::vector<ReportSeries> curves;
  for (const VariogramClass& one : variogram.classes) {
    const std::string name = line_name(one, times);
    if (names.empty() || names.back() != name) {
      if (names.size() == kLinesMax) break;
      names.push_back(name);
      chart.series.push_back({name.empty() ? "Matheron" : name, {}, {}});
      const bool own =
          times || (model && model->separation.anisotropy_ratio != 1 && !std::isnan(one.direction));
      if (model && (own || curves.empty())) {
        const bool along = model->separation.anisotropy_ratio != 1 && std::isnan(one.direction);
        curves.push_back(curve_of(*model,
                                  fmt::format("model{}{}{}", along ? " along its major axis" : "",
                                              own ? ", " : "", own ? name : ""),
                                  variogram.cutoff, (one.time_from + one.time_to) / 2,
                                  one.direction));
      }
    }
    chart.series.back().x.push_back(one.distance);
    chart.series.back().y.push_back(one.semivariance);
  }
  if (chart.series.size() == 1) {
    ReportSeries robust{"Cressie and Hawkins", chart.series.front().x, {}};
    for (const VariogramClass& one : variogram.classes) robust.y.push_back(one.robust);
    chart.series.push_back(std::move(robust));
  }
  chart.series.insert(chart.series.end(), curves.begin(), curves.end());
  return chart;
}

void print_sizes(const RunReport& run) {
  const double matrix = 8.0 * static_cast<double>(run.n) * static_cast<double>(run.n);
  fmt::print(
      "  covariance matrix {} by {}: {}; factored in {} of device memory on {} (tile {}, {})\n",
      run.n, run.n, format_bytes(static_cast<std::int64_t>(matrix)),
      format_bytes(run.peak_device_bytes), fmt::join(run.devices, ", "), run.tile, run.policy);
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

namespace {

std::vector<std::string> prediction_names(const ColumnNames& columns, bool observed) {
  std::vector<std::string> names = columns.coordinates();
  if (observed) names.push_back(columns.value);
  for (const char* name : {"mean", "standard_error", "process_standard_error"})
    names.emplace_back(name);
  return names;
}

}  // namespace

PredictionTable::PredictionTable(const std::string& path, const ColumnNames& columns, bool observed)
    : writer_(path, prediction_names(columns, observed)), observed_(observed) {}

void PredictionTable::write(const Points& points, const std::vector<double>& observations,
                            const Prediction& prediction) {
  std::vector<std::vector<double>> data = columns_of(points);
  if (observed_) data.push_back(observations);
  data.push_back(prediction.mean);
  data.push_back(prediction.standard_error);
  data.push_back(prediction.process_standard_error);
  writer_.write(data);
}

}  // namespace strata::cli
