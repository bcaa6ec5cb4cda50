// Models as files, JSON with the observations: fit writes them, predict, crossval and simulate read
// them.

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.hpp"
#include "base/input_file.hpp"
#include "base/output_file.hpp"
#include "cli/geostat_data.hpp"

namespace strata::cli {
namespace {

constexpr const char* kModelFormat = "strata model 1";
/// With z, time, or a distance other than the plane's, which a reader of the first must not miss.
constexpr const char* kModelFormat2 = "strata model 2";
/// With covariates, which a reader of the second must not miss.
constexpr const char* kModelFormat3 = "strata model 3";
/// With a linear mean on the sphere, whose coefficients a reader of the third would take for
/// others.
constexpr const char* kModelFormat4 = "strata model 4";
constexpr std::array kModelFormats{kModelFormat, kModelFormat2, kModelFormat3, kModelFormat4};

bool is_mean(const Json& name) {
  return name == "sample" || name == "zero" || name == "constant" || name == "linear";
}

bool linear_on_sphere(const Model& model) {
  return model.mean == Mean::linear &&
         model.parameters.separation.distance == Distance::great_circle;
}

const char* format_of(const Model& model) {
  const Separation& s = model.parameters.separation;
  if (linear_on_sphere(model)) return kModelFormat4;
  if (!model.points.covariates.empty()) return kModelFormat3;
  const bool plain = s.distance == Distance::euclidean && s.anisotropy_ratio == 1 && !s.time &&
                     model.points.z.empty();
  return plain ? kModelFormat : kModelFormat2;
}

bool is_separation(const Separation& s) {
  return s.anisotropy_ratio > 0 && s.anisotropy_ratio <= 1 && std::isfinite(s.anisotropy_angle) &&
         (!s.time || (s.time->scale > 0 && s.time->smoothness > 0 && s.time->smoothness <= 1 &&
                      s.time->interaction >= 0 && s.time->interaction <= 1));
}

/// What to_json made of it.
Separation separation_of(const Json& parameters) {
  Separation s;
  if (parameters.contains("distance")) s.distance = Distance::great_circle;
  if (parameters.contains("anisotropy")) {
    s.anisotropy_ratio = parameters.at("anisotropy").at("ratio").get<double>();
    s.anisotropy_angle = parameters.at("anisotropy").at("angle").get<double>();
  }
  if (parameters.contains("time")) {
    const Json& time = parameters.at("time");
    s.time = TimeParameters{time.at("scale").get<double>(), time.at("smoothness").get<double>(),
                            time.at("interaction").get<double>()};
  }
  return s;
}

bool is_complete(const Model& model, const ColumnNames& columns) {
  const MaternParameters& p = model.parameters;
  const std::size_t n = model.values.size();
  const std::vector<std::vector<double>>& covariates = model.points.covariates;
  const auto coefficients = static_cast<std::int64_t>(model.mean_coefficients.size());
  return p.variance > 0 && p.range > 0 && p.smoothness > 0 && p.smoothness <= 50 && p.nugget >= 0 &&
         is_separation(p.separation) && n > 0 && model.points.x.size() == n &&
         model.points.y.size() == n && (model.points.z.empty() || model.points.z.size() == n) &&
         model.points.t.size() == (p.separation.time ? n : 0) &&
         covariates.size() == columns.covariates.size() &&
         (covariates.empty() || model.mean == Mean::constant || model.mean == Mean::linear) &&
         std::all_of(covariates.begin(), covariates.end(),
                     [n](const std::vector<double>& c) { return c.size() == n; }) &&
         coefficients ==
             coefficient_count(model.mean, std::ssize(covariates), p.separation.distance);
}

}  // namespace

void write_model(const std::string& path, const ModelFile& file) {
  Json object = {
      {"format", format_of(file.model)},
      {"source", file.source},
      {"columns", {{"x", file.columns.x}, {"y", file.columns.y}, {"value", file.columns.value}}},
      {"parameters", to_json(file.model.parameters)},
      {"mean", to_string(file.model.mean)},
      {"mean_coefficients", file.model.mean_coefficients},
      {"log_likelihood", number(file.log_likelihood)},
      {"x", file.model.points.x},
      {"y", file.model.points.y},
      {"value", file.model.values}};
  if (!file.model.points.z.empty()) {
    object["columns"]["z"] = file.columns.z;
    object["z"] = file.model.points.z;
  }
  if (!file.model.points.t.empty()) {
    object["columns"]["time"] = file.columns.time;
    if (file.columns.dates.value_or(false)) object["columns"]["times"] = kTimesOfDates;
    object["t"] = file.model.points.t;
  }
  if (!file.model.points.covariates.empty()) {
    object["columns"]["covariates"] = file.columns.covariates;
    object["covariates"] = file.model.points.covariates;
  }
  if (!file.why.empty()) {
    object["trusted"] = false;
    object["why"] = file.why;
  }
  replace_file(path, [&](std::ostream& out) { out << object.dump() << '\n'; });
}

ModelFile read_model(const std::string& path) {
  const std::string text = InputFile(path, "model").read_all();
  try {
    const Json object = Json::parse(text);
    const Json& format = object.at("format");
    require(std::count(kModelFormats.begin(), kModelFormats.end(), format) == 1 &&
                is_mean(object.at("mean")),
            ErrorKind::input, "model", "{}: is not a model that fit wrote", path);
    ModelFile file;
    file.source = object.at("source").get<std::string>();
    const Json& columns = object.at("columns");
    file.columns = {columns.at("x").get<std::string>(), columns.at("y").get<std::string>(),
                    columns.at("value").get<std::string>()};
    const Json& p = object.at("parameters");
    file.model.parameters = {p.at("variance").get<double>(), p.at("range").get<double>(),
                             p.at("smoothness").get<double>(), p.at("nugget").get<double>()};
    require(!p.contains("distance") || p.at("distance") == "great-circle", ErrorKind::input,
            "model", "{}: there is no such distance", path);
    file.model.parameters.separation = separation_of(p);
    file.model.mean = parse_mean(object.at("mean").get<std::string>());
    require(format == kModelFormat4 || !linear_on_sphere(file.model), ErrorKind::input, "model",
            "{}: its mean is linear in longitude and latitude, which differ by a jump at the date "
            "line; fit it again for a mean that is linear on the sphere",
            path);
    file.model.mean_coefficients = object.at("mean_coefficients").get<std::vector<double>>();
    file.log_likelihood = object.at("log_likelihood").get<double>();
    if (object.contains("trusted") && !object.at("trusted").get<bool>())
      file.why = object.at("why").get<std::string>();
    file.model.points = {object.at("x").get<std::vector<double>>(),
                         object.at("y").get<std::vector<double>>()};
    if (object.contains("z")) {
      file.columns.z = columns.at("z").get<std::string>();
      file.model.points.z = object.at("z").get<std::vector<double>>();
    }
    if (object.contains("t")) {
      file.columns.time = columns.at("time").get<std::string>();
      file.columns.dates = columns.contains("times");
      file.model.points.t = object.at("t").get<std::vector<double>>();
    }
    if (object.contains("covariates")) {
      file.columns.covariates = columns.at("covariates").get<std::vector<std::string>>();
      file.model.points.covariates =
          object.at("covariates").get<std::vector<std::vector<double>>>();
    }
    file.model.values = object.at("value").get<std::vector<double>>();
    require(is_complete(file.model, file.columns), ErrorKind::input, "model",
            "{}: is not a model that fit wrote: its parameters or lengths do not fit", path);
    return file;
  } catch (const JsonError&) {
    fail(ErrorKind::input, "model", "{}: is not a model that fit wrote", path);
  }
}

}  // namespace strata::cli
