// strata predict: kriging at new places, from a table of any length.

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "cli/geostat_verbs.hpp"
#include "cli/precision.hpp"
#include "cli/starting_devices.hpp"

namespace strata::cli {
namespace {

struct PredictArguments {
  std::string model;
  std::string file;
  ColumnNames columns;
  PrecisionArguments precision;
  std::string value;
  std::string output;
};

/// What was predicted, from which observations.
ReportData predict_report(const PredictArguments& arguments, const ColumnNames& columns,
                          const Model& model, const Points& targets, const Prediction& prediction,
                          const RunReport& run) {
  ReportData report;
  report.title = fmt::format("{} predicted at {}", columns.value, counted(targets.size(), "place"));
  report.subtitle = fmt::format("from {}", arguments.model);
  ReportMap map;
  map.x_label = columns.x;
  map.y_label = columns.y;
  map.layers.push_back(point_layer("Observed", MapQuantity::value, model.points, model.values));
  map.layers.push_back(point_layer("Predicted", MapQuantity::value, targets, prediction.mean));
  map.layers.push_back(point_layer("Standard error", MapQuantity::standard_error, targets,
                                   prediction.standard_error));
  report.map = std::move(map);
  report.run = run;
  return report;
}

/// The places of a file, piece by piece, with what was observed there if that is wanted.
class Places {
 public:
  Places(const std::string& path, const ColumnNames& columns, const std::string& value,
         Distance distance)
      : reader_(path), columns_(columns), names_(columns.of_points()), needed_(names_.size()) {
    for (const std::string& name : names_) rules_.push_back(columns.rules_of(name));
    dates_ = columns.has_dates(reader_, path);
    named_ = value != "none" && (!value.empty() || reader_.has(columns.value));
    if (named_) {
      names_.push_back(columns.value);
      rules_.push_back({.missing = true});  // it is what is to be predicted
    }
    // Once through the file first, so that a bad row is found before the work.
    for (Piece piece = read(kRows); !piece.rows.empty(); piece = read(kRows)) {
      count_ += std::ssize(piece.rows);
      if (named_)
        known_ += std::count_if(piece.columns.back().begin(), piece.columns.back().end(),
                                [](double v) { return !std::isnan(v); });
      check_places(columns_.points_of(std::move(piece.columns)), piece.rows, distance, path);
      check_interrupt();
    }
    missing_ = rows_read_ - count_;
    reader_.rewind();
    rows_read_ = 0;
    require(count_ > 0, ErrorKind::input, "data",
            "{}: there are no rows to predict, but for {} with a value missing", path, missing_);
  }

  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  /// Places at which there is a value to score against.
  [[nodiscard]] std::int64_t known() const noexcept { return known_; }
  [[nodiscard]] bool observed() const noexcept { return known_ > 0; }
  /// Whether there is a column of values, of which none may be known.
  [[nodiscard]] bool named() const noexcept { return named_; }
  /// What is told of the rows.
  [[nodiscard]] Observations told() const {
    Observations rows;
    rows.missing = missing_;
    rows.dates = dates_;
    return rows;
  }
  [[nodiscard]] Points next(std::int64_t most) {
    Piece piece = read(most);
    if (observed())
      values_.insert(values_.end(), piece.columns.back().begin(), piece.columns.back().end());
    return columns_.points_of(std::move(piece.columns));
  }
  /// What was observed at the first `count` places that it was not yet told of; NaN: nothing.
  [[nodiscard]] std::vector<double> take_observed(std::int64_t count) {
    if (!observed()) return {};
    const auto end = values_.begin() + count;
    std::vector<double> out(values_.begin(), end);
    values_.erase(values_.begin(), end);
    return out;
  }

 private:
  static constexpr std::int64_t kRows = 1 << 16;

  struct Piece {
    std::vector<std::vector<double>> columns;
    std::vector<std::int64_t> rows;
  };

  /// The next `most` rows that are complete; fewer only at the end of the file.
  Piece read(std::int64_t most) {
    Piece out;
    out.columns.resize(names_.size());
    while (std::ssize(out.rows) < most) {
      Piece some;
      some.columns =
          with_advice([&] { return reader_.next(names_, most - std::ssize(out.rows), rules_); });
      if (some.columns[0].empty()) break;
      some.rows.resize(some.columns[0].size());
      std::iota(some.rows.begin(), some.rows.end(), rows_read_ + 1);
      rows_read_ += std::ssize(some.rows);
      drop_incomplete(some.columns, needed_, some.rows);
      out.rows.insert(out.rows.end(), some.rows.begin(), some.rows.end());
      for (std::size_t k = 0; k < names_.size(); ++k)
        out.columns[k].insert(out.columns[k].end(), some.columns[k].begin(), some.columns[k].end());
    }
    return out;
  }

  TableReader reader_;
  ColumnNames columns_;
  std::vector<std::string> names_;
  std::size_t needed_ = 0;  // of these, for a prediction
  std::vector<ColumnRules> rules_;
  bool dates_ = false;
  bool named_ = false;
  std::int64_t rows_read_ = 0;
  std::int64_t count_ = 0;
  std::int64_t known_ = 0;
  std::int64_t missing_ = 0;
  std::vector<double> values_;
};

/// Scores of pieces, as one.
class RunningScores {
 public:
  /// What was observed, NaN where nothing was, beside what was predicted.
  void add(std::vector<double> observed, const Prediction& prediction) {
    std::vector<double> mean = prediction.mean;
    std::vector<double> error = prediction.standard_error;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < observed.size(); ++i) {
      if (std::isnan(observed[i])) continue;
      observed[kept] = observed[i];
      mean[kept] = mean[i];
      error[kept++] = error[i];
    }
    for (std::vector<double>* list : {&observed, &mean, &error}) list->resize(kept);
    if (kept > 0) add(scores(observed, mean, error), static_cast<std::int64_t>(kept));
  }
  /// The means of all pieces; a single piece keeps its bits.
  [[nodiscard]] Scores mean() const {
    if (pieces_ == 1) return last_;
    return {std::sqrt(sum_.rmse / count_), sum_.mae / count_, sum_.crps / count_,
            sum_.coverage95 / count_};
  }

 private:
  void add(const Scores& part, std::int64_t count) {
    const auto weight = static_cast<double>(count);
    sum_.rmse += weight * part.rmse * part.rmse;
    sum_.mae += weight * part.mae;
    sum_.crps += weight * part.crps;
    sum_.coverage95 += weight * part.coverage95;
    count_ += weight;
    last_ = part;
    ++pieces_;
  }

  Scores last_;
  int pieces_ = 0;
  Scores sum_;
  double count_ = 0;
};

void print_predict(const StreamedPrediction& prediction, const std::string& output,
                   const std::optional<Scores>& against, const Places& places,
                   const std::string& column, const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) fmt::print("{}\n", remark);
  fmt::print(
      "{} written to {} (mean, standard error of a new observation, and of the "
      "process)\n",
      counted(prediction.targets, "prediction"), output);
  if (against) {
    fmt::print("against column {}{}: RMSE {:.6g}, MAE {:.6g}, CRPS {:.6g}, 95 % interval covers ",
               column,
               places.known() < places.count() ? " at " + counted(places.known(), "place") : "",
               against->rmse, against->mae, against->crps);
    fmt::print("{:.1f} %\n", 100 * against->coverage95);
  } else if (places.named()) {
    fmt::print("column {} holds no value to score against\n", column);
  }
  fmt::print("{}", rows_text(places.told()));
  print_mixed(prediction.run.mixed);
  print_certificate(prediction.certificate);
  print_rounding(prediction.rounding);
  print_sizes(prediction.run);
  print_traffic(prediction.run);
  fmt::print("  the predictions then took {:.3g} s and moved {}\n", prediction.solve.seconds,
             format_bytes(prediction.solve.traffic.total()));
}

ColumnNames named_columns(const PredictArguments& arguments, const ModelFile& file) {
  ColumnNames columns = arguments.columns.or_else(file.columns);
  if (!arguments.value.empty() && arguments.value != "none") columns.value = arguments.value;
  return columns;
}

int run_predict(const PredictArguments& arguments, const CommonOptions& common) {
  const CovarianceOptions options = arguments.precision.to_options(common);
  check_outputs(common, {{"--output", arguments.output}},
                {arguments.model, arguments.file, common.rates});
  const StartingDevices starting(options.run.devices);
  const ModelFile file = read_model(arguments.model);
  const ColumnNames columns = named_columns(arguments, file);
  Places places(arguments.file, columns, arguments.value,
                file.model.parameters.separation.distance);
  std::optional<PredictionTable> table;
  RunningScores scored;
  // Only the report's map needs everything at once.
  const bool keep = !common.report.empty();
  Points all;
  Prediction known;
  const StreamedPrediction prediction = predict(
      file.model, [&](std::int64_t most) { return places.next(most); },
      [&](const Points& targets, const Prediction& part) {
        if (!table) table.emplace(arguments.output, columns, places.observed());
        const std::vector<double> observed = places.take_observed(targets.size());
        table->write(targets, observed, part);
        if (places.observed()) scored.add(observed, part);
        if (!keep) return;
        const auto add = [](std::vector<double>& to, const std::vector<double>& from) {
          to.insert(to.end(), from.begin(), from.end());
        };
        add(all.x, targets.x);
        add(all.y, targets.y);
        add(known.mean, part.mean);
        add(known.standard_error, part.standard_error);
      },
      options, 0, places.count());
  std::optional<Scores> against;
  if (places.observed()) against = scored.mean();
  Json object = to_json(prediction.run);
  object["solve"] = to_json(prediction.solve);
  object["predictions"] = prediction.targets;
  object["parameters"] = to_json(file.model.parameters);
  if (prediction.certificate) object["certificate"] = to_json(*prediction.certificate);
  if (against) object["holdout"] = to_json(*against, places.known());
  add_rounding_json(object, prediction.rounding);
  const std::vector<std::string> remarks = distrust_of(file, arguments.model, prediction.rounding);
  object["remarks"] = remarks;
  add_rows_json(object, places.told());
  ReportData report;
  report.run = prediction.run;
  if (keep) report = predict_report(arguments, columns, file.model, all, known, prediction.run);
  add_precision_map(report, prediction.run.mixed);
  begin_output();
  table->close();
  const int written = finish(common, std::move(report), object, [&] {
    print_predict(prediction, arguments.output, against, places, columns.value, remarks);
  });
  return written == kDone ? status_of(remarks) : written;
}

}  // namespace

void add_predict(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("predict", "kriging: mean and standard error at new places");
  add_examples(verb, {"strata predict model.json places.csv -o predictions.csv"});
  auto arguments = std::make_shared<PredictArguments>();
  common.add_to(verb);
  verb.add_option("MODEL", arguments->model, "what fit wrote with -o").required();
  verb.add_option("FILE", arguments->file, "places: .csv or .csv.gz").required();
  arguments->columns.add_to(verb, false);
  arguments->columns.add_covariates_to(verb);
  arguments->precision.add_to(verb);
  verb.add_option("--value", arguments->value,
                  "column of observed values to score against where they are known, or none "
                  "(default: the model's, if FILE has it)");
  verb.add_option("-o,--output", arguments->output, "where the predictions go (.csv)").required();
  verb.callback([&run, &common, arguments] {
    run = [&common, arguments] { return run_predict(*arguments, common); };
  });
}

}  // namespace strata::cli
