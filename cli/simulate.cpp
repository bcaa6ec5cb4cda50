// strata simulate: Gaussian fields at given places, on a grid or at random places, and given
// observations by a model.

#include <fmt/core.h>

#include <charconv>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/random.hpp"
#include "cli/geostat_verbs.hpp"
#include "cli/precision.hpp"

namespace strata::cli {
namespace {

struct SimulateArguments {
  std::string file;
  std::string grid;
  std::int64_t random = 0;
  std::string model;
  std::string at;
  ColumnNames columns;
  SeparationArguments separation;
  PrecisionArguments precision;
  MaternParameters parameters{0, 0, 0, 0};
  std::vector<double> mean;
  std::int64_t realizations = 1;
  bool process = false;
  std::string output;
};

/// A regular grid over the unit square, its border included, x running fastest.
Points grid_points(const std::string& text) {
  std::int64_t nx = 0;
  std::int64_t ny = 0;
  const char* end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, nx);
  const bool comma = first.ec == std::errc{} && first.ptr != end && *first.ptr == ',';
  const auto second = comma ? std::from_chars(first.ptr + 1, end, ny) : first;
  require(comma && second.ec == std::errc{} && second.ptr == end && nx >= 2 && ny >= 2,
          ErrorKind::misuse, "options", "--grid {}: use NX,NY, both at least 2", text);
  Points points;
  for (std::int64_t k = 0; k < nx * ny; ++k) {
    points.x.push_back(static_cast<double>(k % nx) / static_cast<double>(nx - 1));
    points.y.push_back(static_cast<double>(k / nx) / static_cast<double>(ny - 1));
  }
  return points;
}

/// Uniform in the unit square; other random numbers than those of the fields.
Points random_places(std::int64_t count, std::uint64_t seed) {
  const std::uint64_t own = random_bits(seed, 2);
  Points points;
  for (std::int64_t k = 0; k < count; ++k) {
    const auto index = static_cast<std::uint64_t>(2 * k);
    points.x.push_back(random_uniform(own, index));
    points.y.push_back(random_uniform(own, index + 1));
  }
  return points;
}

Observations places_of(const std::string& path, const ColumnNames& columns, Distance distance) {
  Observations places = read_places(path, columns);
  check_places(places.points, places.rows, distance, path);
  return places;
}

void check_arguments(const SimulateArguments& a) {
  const int places = (a.file.empty() ? 0 : 1) + (a.grid.empty() ? 0 : 1) + (a.random > 0 ? 1 : 0) +
                     (a.at.empty() ? 0 : 1);
  require(places == 1, ErrorKind::misuse, "options",
          "simulate needs one of FILE, --grid, --random and --at, not {}", places);
  require(a.model.empty() == a.at.empty(), ErrorKind::misuse, "options",
          "--model and --at go together: a model's observations, and where to simulate");
  const bool given =
      a.parameters.variance > 0 && a.parameters.range > 0 && a.parameters.smoothness > 0;
  require(given || !a.model.empty(), ErrorKind::misuse, "options",
          "simulate needs --variance, --range and --smoothness, or --model");
  require(a.model.empty() ||
              (a.parameters.variance == 0 && a.parameters.range == 0 &&
               a.parameters.smoothness == 0 && a.parameters.nugget == 0 && a.mean.empty()),
          ErrorKind::misuse, "options", "the parameters and the mean are those of --model");
  require(!a.file.empty() || !a.at.empty() ||
              (a.columns.z.empty() && a.columns.time.empty() && a.columns.covariates.empty()),
          ErrorKind::misuse, "options", "--z, --time and --covariates are columns of FILE or --at");
  require(a.model.empty() || a.separation.plain(), ErrorKind::misuse, "options",
          "distance, anisotropy and time are those of --model");
  require(a.file.empty() || !(a.columns.x.empty() || a.columns.y.empty()), ErrorKind::misuse,
          "options", "{} needs --x and --y", a.file);
}

struct Simulated {
  Observations places;
  Simulation fields;
  ColumnNames columns{"x", "y", "z"};
  MaternParameters parameters;
  std::vector<std::string> remarks;
};

Simulated run_simulation(const SimulateArguments& a, const CommonOptions& common) {
  SimulateOptions options{a.precision.to_options(common)};
  options.realizations = a.realizations;
  options.seed = common.seed;
  options.noise = !a.process;
  Simulated out;
  if (!a.model.empty()) {
    const ModelFile file = read_model(a.model);
    out.columns = a.columns.or_else(file.columns);
    out.parameters = file.model.parameters;
    out.remarks = distrust_of(file, a.model);
    out.places = places_of(a.at, out.columns, out.parameters.separation.distance);
    check_interrupt();
    out.fields = conditional_simulate(file.model, out.places.points, options);
    return out;
  }
  if (!a.columns.x.empty()) out.columns.x = a.columns.x;
  if (!a.columns.y.empty()) out.columns.y = a.columns.y;
  for (const auto coordinate : {&ColumnNames::z, &ColumnNames::time})
    out.columns.*coordinate = a.columns.*coordinate;
  out.columns.covariates = a.columns.covariates;
  out.columns.drop_missing = a.columns.drop_missing;
  if (!out.columns.z.empty()) out.columns.value = "value";
  out.parameters = a.parameters;
  out.parameters.separation = a.separation.separation(out.columns);
  const Distance distance = out.parameters.separation.distance;
  if (!a.grid.empty()) {
    out.places.points = grid_points(a.grid);
  } else if (a.random > 0) {
    out.places.points = random_places(a.random, common.seed);
  } else {
    out.places = places_of(a.file, out.columns, distance);
  }
  check_interrupt();
  out.fields = simulate(out.places.points, out.parameters, a.mean, options);
  return out;
}

void write_fields(const SimulateArguments& a, const Simulated& out) {
  std::vector<std::string> names = out.columns.coordinates();
  std::vector<std::vector<double>> columns = columns_of(out.places.points);
  const std::int64_t n = out.places.points.size();
  for (std::int64_t r = 0; r < a.realizations; ++r) {
    names.push_back(a.realizations == 1 ? out.columns.value
                                        : fmt::format("{}{}", out.columns.value, r + 1));
    const auto begin = out.fields.values.begin() + r * n;
    columns.emplace_back(begin, begin + n);
  }
  write_csv(a.output, names, columns);
}

int run_simulate(const SimulateArguments& a, const CommonOptions& common) {
  check_arguments(a);
  check_outputs(common, {{"--output", a.output}}, {a.file, a.model, a.at, common.rates});
  const Simulated out = run_simulation(a, common);
  Json object = to_json(out.fields.run);
  object["multiply"] = to_json(out.fields.multiply);
  object["realizations"] = a.realizations;
  object["locations"] = out.places.points.size();
  object["parameters"] = to_json(out.parameters);
  object["seed"] = common.seed;
  object["remarks"] = out.remarks;
  add_rows_json(object, out.places);
  ReportData report;
  report.title = fmt::format("{} simulated at {}", out.columns.value,
                             counted(out.places.points.size(), "place"));
  report.subtitle =
      fmt::format("seed {}, first of {}", common.seed, counted(a.realizations, "realization"));
  report.run = out.fields.run;
  add_precision_map(report, out.fields.run.mixed);
  if (!common.report.empty()) {
    const auto begin = out.fields.values.begin();
    ReportMap map;
    map.x_label = out.columns.x;
    map.y_label = out.columns.y;
    map.layers.push_back(point_layer("Simulated", MapQuantity::value, out.places.points,
                                     {begin, begin + out.places.points.size()}));
    report.map = std::move(map);
  }
  begin_output();
  write_fields(a, out);
  const int written = finish(common, std::move(report), object, [&] {
    for (const std::string& remark : out.remarks) fmt::print("{}\n", remark);
    fmt::print("{} at {} written to {} (seed {}{})\n", counted(a.realizations, "realization"),
               counted(out.places.points.size(), "place"), a.output, common.seed,
               a.model.empty() ? "" : ", given the observations of " + a.model);
    fmt::print("{}", rows_text(out.places));
    print_mixed(out.fields.run.mixed);
    print_sizes(out.fields.run);
    print_traffic(out.fields.run);
    fmt::print("  the product with the factor then took {:.3g} s and moved {}\n",
               out.fields.multiply.seconds, format_bytes(out.fields.multiply.traffic.total()));
  });
  return written == kDone ? status_of(out.remarks) : written;
}

}  // namespace

void add_simulate(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("simulate", "exact simulation of Gaussian fields");
  add_examples(verb, {"strata simulate places.csv --x lon --y lat --variance 2 --range 0.3 "
                      "--smoothness 0.5 -o fields.csv"});
  auto a = std::make_shared<SimulateArguments>();
  common.add_to(verb);
  verb.add_option("FILE", a->file, "places: .csv or .csv.gz, with --x and --y");
  verb.add_option("--grid", a->grid, "NX,NY: a regular grid over the unit square instead");
  verb.add_option("--random", a->random, "so many random places in the unit square instead")
      .check(positive_number());
  verb.add_option("--model", a->model, "what fit wrote with -o: simulate given its observations …");
  verb.add_option("--at", a->at, "… at these places: .csv or .csv.gz");
  a->columns.add_to(verb, false);
  a->columns.add_covariates_to(verb);
  a->separation.add_to(verb);
  a->precision.add_to(verb);
  verb.add_option("--variance", a->parameters.variance, "of the process").check(positive_number());
  verb.add_option("--range", a->parameters.range,
                  "in units of the coordinates, or kilometres with --distance great-circle")
      .check(positive_number());
  verb.add_option("--smoothness", a->parameters.smoothness, "of the Matérn covariance")
      .check(positive_number());
  verb.add_option("--nugget", a->parameters.nugget, "variance of the noise")
      .check(nonnegative_number())
      .capture_default_str();
  verb.add_list("--mean", a->mean,
                "of the field: a, or a,b,c for a + b·x + c·y, then one for each of --covariates "
                "(default: 0)");
  verb.add_option("-r,--realizations", a->realizations, "how many fields")
      .check(positive_number())
      .capture_default_str();
  verb.add_flag("--process", a->process, "fields of the process alone, without the nugget");
  verb.add_option("-o,--output", a->output, "where the fields go (.csv)").required();
  verb.callback([&run, &common, a] { run = [&common, a] { return run_simulate(*a, common); }; });
}

}  // namespace strata::cli
