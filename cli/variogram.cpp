// strata variogram: how much observations differ, by the distance between them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.hpp"
#include "cli/geostat_verbs.hpp"

namespace strata::cli {
namespace {

struct VariogramArguments {
  std::string file;
  ColumnNames columns;
  VariogramOptions options;
  std::string mean = "constant";
  std::string distance = "euclidean";
  std::string holdout;
  std::string model;
  bool cloud = false;
  std::string output;
};

/// The columns of a class that say something of such a variogram, and what they say of each.
struct Columns {
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;
};

Columns columns_of(const Variogram& result, bool directions, bool times) {
  Columns out;
  const auto add = [&](const char* name, auto member) {
    out.names.emplace_back(name);
    std::vector<double>& column = out.values.emplace_back();
    for (const VariogramClass& one : result.classes)
      column.push_back(static_cast<double>(one.*member));
  };
  if (directions) add("direction", &VariogramClass::direction);
  if (times) {
    add("time_from", &VariogramClass::time_from);
    add("time_to", &VariogramClass::time_to);
  }
  add("from", &VariogramClass::from);
  add("to", &VariogramClass::to);
  add("pairs", &VariogramClass::pairs);
  add("distance", &VariogramClass::distance);
  if (times) add("time", &VariogramClass::time);
  add("semivariance", &VariogramClass::semivariance);
  add("robust", &VariogramClass::robust);
  return out;
}

/// A class in words, column by column.
std::vector<std::string> words_of(const Variogram& result, const Columns& columns, std::size_t k) {
  std::vector<std::string> words;
  for (std::size_t c = 0; c < columns.names.size(); ++c)
    words.push_back(columns.names[c] == "pairs" ? fmt::format("{}", result.classes[k].pairs)
                                                : fmt::format("{:.7g}", columns.values[c][k]));
  return words;
}

std::string mean_words(const VariogramArguments& a) {
  return a.columns.covariates.empty()
             ? a.mean
             : fmt::format("{} mean with {}", a.mean, fmt::join(a.columns.covariates, ", "));
}

void print_variogram(const VariogramArguments& a, const Variogram& result, const Observations& data,
                     const Columns& columns, std::int64_t held_out) {
  fmt::print("{}: {} of {}{}, by classes of {:.6g} up to {:.6g}{}\n", a.file,
             counted(data.points.size(), "observation"), a.columns.value,
             held_out > 0 ? fmt::format(", {} held out", held_out) : "", result.width,
             result.cutoff, a.options.distance == Distance::great_circle ? " km" : "");
  if (!result.mean_coefficients.empty())
    fmt::print("mean, by ordinary least squares: {}\n",
               mean_text(result.mean_coefficients, a.columns.covariates));
  fmt::print("mean square of the residuals: {:.6g}\n{}", result.mean_square, rows_text(data));
  for (const std::string& name : columns.names) fmt::print("{:>14}", name);
  fmt::print("\n");
  for (std::size_t k = 0; k < result.classes.size(); ++k) {
    for (const std::string& word : words_of(result, columns, k)) fmt::print("{:>14}", word);
    fmt::print("\n");
  }
  fmt::print("{:.3g} s\n", result.seconds);
  if (!a.output.empty()) fmt::print("written to {}\n", a.output);
}

Json variogram_json(const Variogram& result, const Observations& data, const Columns& columns) {
  Json object;
  Json classes = Json::array();
  for (std::size_t k = 0; k < result.classes.size(); ++k) {
    Json one;
    for (std::size_t c = 0; c < columns.names.size(); ++c) {
      if (columns.names[c] == "pairs")
        one["pairs"] = result.classes[k].pairs;
      else
        one[columns.names[c]] = number(columns.values[c][k]);
    }
    classes.push_back(std::move(one));
  }
  object["variogram"]["classes"] = std::move(classes);
  object["variogram"]["cutoff"] = result.cutoff;
  object["variogram"]["width"] = result.width;
  object["variogram"]["mean_square"] = result.mean_square;
  object["variogram"]["mean_coefficients"] = result.mean_coefficients;
  object["variogram"]["seconds"] = result.seconds;
  object["n"] = data.points.size();
  add_rows_json(object, data);
  return object;
}

/// The pairs themselves, with the rows of the file, counted from 1.
void write_cloud(const std::string& path, const std::vector<VariogramPair>& pairs,
                 const Observations& data, bool times) {
  std::vector<std::string> names{"first", "second", "distance"};
  if (times) names.emplace_back("time");
  names.emplace_back("semivariance");
  TableWriter writer(path, names);
  constexpr std::size_t kPiece = 100'000;
  for (std::size_t begin = 0; begin < pairs.size(); begin += kPiece) {
    std::vector<std::vector<double>> columns(names.size());
    for (std::size_t k = begin; k < std::min(pairs.size(), begin + kPiece); ++k) {
      const VariogramPair& pair = pairs[k];
      std::size_t c = 0;
      for (const std::int64_t row : {pair.first, pair.second})
        columns[c++].push_back(static_cast<double>(data.rows[static_cast<std::size_t>(row)]));
      columns[c++].push_back(pair.distance);
      if (times) columns[c++].push_back(pair.time);
      columns[c].push_back(pair.semivariance);
    }
    writer.write(columns);
  }
  writer.close();
}

int run_cloud(const VariogramArguments& a, const CommonOptions& common, const Observations& data) {
  const std::vector<VariogramPair> pairs = variogram_cloud(data.points, data.values, a.options);
  begin_output();
  write_cloud(a.output, pairs, data, !data.points.t.empty());
  Json object;
  object["n"] = data.points.size();
  object["variogram"]["pairs"] = pairs.size();
  add_rows_json(object, data);
  ReportData report;
  report.title = fmt::format("Pairs of {}", counted(data.points.size(), "observation"));
  report.subtitle = a.file;
  return finish(common, std::move(report), object, [&] {
    fmt::print("{}: {} of {}\n{}written to {}\n", a.file, counted(pairs.size(), "pair"),
               counted(data.points.size(), "observation"), rows_text(data), a.output);
  });
}

int run_variogram(const VariogramArguments& given, const CommonOptions& common) {
  VariogramArguments a = given;
  require(!a.cloud || !a.output.empty(), ErrorKind::misuse, "options",
          "--cloud: where do the pairs go? See --output");
  require(!a.cloud || common.report.empty(), ErrorKind::misuse, "options",
          "--report: a cloud has no page");
  require(!a.cloud || a.options.directions.empty(), ErrorKind::misuse, "options",
          "--directions: a cloud has none");
  require(a.model.empty() || !common.report.empty(), ErrorKind::misuse, "options",
          "--model: its curve is drawn on the page, see --report");
  require(a.columns.time.empty() == (a.options.time_width == 0), ErrorKind::misuse, "options",
          "--time and --time-width go together: the column of times, and the width of a class");
  a.options.mean = parse_mean(a.mean);
  a.options.distance = a.distance == "euclidean" ? Distance::euclidean : Distance::great_circle;
  a.options.progress = common.run_options().progress;
  check_outputs(common, {{"--output", a.output}}, {a.file, a.model});
  const SplitObservations all = read_observations(a.file, a.columns, a.holdout, common.seed);
  const Observations& data = all.fit;
  const std::int64_t held_out = all.holdout.points.size();
  check_places(data.points, data.rows, a.options.distance, a.file);
  check_interrupt();
  if (a.cloud) return run_cloud(a, common, data);
  std::optional<MaternParameters> model;
  if (!a.model.empty()) {
    model = read_model(a.model).model.parameters;
    require(model->separation.distance == a.options.distance, ErrorKind::misuse, "options",
            "--model {}: its distances are not those of --distance {}", a.model, a.distance);
    require(model->separation.time.has_value() == !data.points.t.empty(), ErrorKind::misuse,
            "options", "--model {} is one {} times, and the observations are {} times", a.model,
            model->separation.time ? "with" : "without",
            data.points.t.empty() ? "without" : "with");
  }
  const Variogram result = variogram(data.points, data.values, a.options);
  const Columns columns = columns_of(result, !a.options.directions.empty(), !data.points.t.empty());
  ReportData report;
  report.title = fmt::format("Semivariogram of {}", a.columns.value);
  report.subtitle = fmt::format("{} from {}, residuals by ordinary least squares, mean: {}",
                                counted(data.points.size(), "observation"), a.file, mean_words(a));
  report.charts.push_back(variogram_chart(result, model, a.options.distance));
  ReportTable table{"Classes", columns.names, {}};
  for (std::size_t k = 0; k < result.classes.size(); ++k)
    table.rows.push_back(words_of(result, columns, k));
  report.tables.push_back(std::move(table));
  Json object = variogram_json(result, data, columns);
  object["held_out"] = held_out;
  if (result.classes.empty())
    return report_failure(common,
                          fmt::format("no two of {} are within {:.6g} of each other",
                                      counted(data.points.size(), "observation"), result.cutoff),
                          object);
  begin_output();
  if (!a.output.empty()) write_csv(a.output, columns.names, columns.values);
  return finish(common, std::move(report), object,
                [&] { print_variogram(a, result, data, columns, held_out); });
}

}  // namespace

void add_variogram(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand(
      "variogram", "empirical semivariogram of all pairs of observations, on the CPU");
  add_examples(verb, {"strata variogram data.csv --x lon --y lat --value rain --report rain.html",
                      "strata variogram data.csv --x x --y y --value zinc --mean linear "
                      "--directions 0,45,90,135 -o zinc.csv"});
  auto a = std::make_shared<VariogramArguments>();
  verb.add_flag("--json", common.json, "print one JSON object");
  verb.add_option("--report", common.report, "write a self-contained HTML page with the picture");
  verb.add_option("--seed", common.seed, "of a hold-out that is drawn at random")
      .check(nonnegative_number())
      .capture_default_str();
  verb.add_option("FILE", a->file, "observations: .csv or .csv.gz").required();
  a->columns.add_to(verb, true);
  a->columns.add_covariates_to(verb);
  verb.add_option(
          "--mean", a->mean,
          "whose residuals, by ordinary least squares, are compared: sample, zero, constant "
          "or linear (in x and y; on the sphere in the unit vector's coordinates)")
      .capture_default_str();
  verb.add_option("--distance", a->distance,
                  "euclidean, or great-circle: x and y are longitude and latitude in degrees, and "
                  "distances are in kilometres")
      .check(one_of({"euclidean", "great-circle"}))
      .capture_default_str();
  VariogramOptions& o = a->options;
  verb.add_option("--cutoff", o.cutoff,
                  "largest distance (default: a third of the diagonal of the bounding box, on the "
                  "sphere of that in space)")
      .check(positive_number());
  const Option lags = verb.add_option("--lags", o.lags, "classes of distances, of equal width")
                          .capture_default_str();
  verb.add_option("--width", o.width, "of a class of distances, in the place of --lags")
      .check(positive_number())
      .excludes(lags);
  const Option directions =
      verb.add_list("--directions", o.directions,
                    "degrees counter-clockwise of x, separated by commas (default: all together)");
  verb.add_option("--tolerance", o.tolerance,
                  "degrees by which a pair may be off a direction; at the border it is in both")
      .needs(directions)
      .capture_default_str();
  verb.add_option("--time-width", o.time_width, "of a class of lags in time")
      .check(positive_number());
  verb.add_option("--time-lags", o.time_lags,
                  "classes of lags in time beside that of pairs at the same time")
      .capture_default_str();
  verb.add_option(
      "--holdout", a->holdout,
      "rows left out: a column, a share such as 0.1, or none (default: a column called holdout)");
  verb.add_option("--model", a->model, "what fit wrote: its curve is drawn beside");
  verb.add_flag(
      "--cloud", a->cloud,
      "every pair up to the cutoff, and to --time-lags, with the rows of the file (counted "
      "from 1 below the header), goes to --output");
  verb.add_option("-o,--output", a->output, "where the classes go (.csv)");
  verb.callback([&run, &common, a] { run = [&common, a] { return run_variogram(*a, common); }; });
}

}  // namespace strata::cli
