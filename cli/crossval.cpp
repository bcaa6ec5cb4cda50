// strata crossval: how well observations are predicted from others, with the covariance held.

#include <fmt/core.h>

#include "base/check.hpp"
#include "cli/geostat_verbs.hpp"
#include "cli/precision.hpp"
#include "cli/starting_devices.hpp"

namespace strata::cli {
namespace {

struct CrossvalArguments {
  std::string model;
  int folds = 0;
  bool blocks = false;
  PrecisionArguments precision;
  std::string output;
};

void print_crossval(const CrossvalArguments& a, const CrossValidation& result, std::size_t count,
                    const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) fmt::print("{}\n", remark);
  fmt::print("{}: {}, {}\n", a.model, counted(count, "observation"),
             a.folds == 0 ? "each predicted from all others"
                          : fmt::format("in {} folds, {}", a.folds,
                                        a.blocks ? "compact blocks" : "at random"));
  const Scores& s = result.scores;
  // No mean of absolute errors or of their squares changes by more than the errors do.
  const std::string error = result.certificate ? error_text(result.certificate->mean_error) : "";
  fmt::print(
      "  RMSE      {:.6g}{}\n  MAE       {:.6g}{}\n  CRPS      {:.6g}\n  95 % interval covers "
      "{:.1f} %\n",
      s.rmse, error, s.mae, error, s.crps, 100 * s.coverage95);
  print_mixed(result.run.mixed);
  print_certificate(result.certificate, a.folds == 0);
  print_rounding(result.rounding);
  print_sizes(result.run);
  print_traffic(result.run);
  if (!a.output.empty()) fmt::print("predictions written to {}\n", a.output);
}

int run_crossval(const CrossvalArguments& a, const CommonOptions& common) {
  require(a.folds != 1, ErrorKind::misuse, "options",
          "--folds 1: use 2 or more, or 0 to leave one out at a time");
  require(!a.blocks || a.folds > 1, ErrorKind::misuse, "options", "--blocks needs --folds");
  CrossValidationOptions options{a.precision.to_options(common)};
  options.folds = a.folds;
  options.blocks = a.blocks;
  options.seed = common.seed;
  check_outputs(common, {{"--output", a.output}}, {a.model, common.rates});
  const StartingDevices starting(options.run.devices);
  const ModelFile file = read_model(a.model);
  const Model& model = file.model;
  check_interrupt();
  const CrossValidation result =
      a.folds == 0
          ? leave_one_out(model.points, model.values, model.parameters, model.mean, options)
          : cross_validate(model.points, model.values, model.parameters, model.mean, options);
  Json object = to_json(result.run);
  object["crossval"] = to_json(result.scores, model.points.size());
  object["crossval"]["folds"] = a.folds == 0 ? model.points.size() : a.folds;
  object["crossval"]["method"] = a.folds == 0 ? "leave-one-out" : a.blocks ? "blocks" : "random";
  object["parameters"] = to_json(model.parameters);
  if (result.certificate) {
    object["certificate"] = to_json(*result.certificate);
    for (const char* score : {"rmse_error", "mae_error"})
      object["crossval"][score] = number(result.certificate->mean_error);
  }
  add_rounding_json(object, result.rounding);
  const std::vector<std::string> remarks = distrust_of(file, a.model, result.rounding);
  object["remarks"] = remarks;
  if (a.folds == 0) object["inverse"] = to_json(result.inverse);
  ReportData report;
  report.title = fmt::format("Cross-validation of {} of {}",
                             counted(model.points.size(), "observation"), file.columns.value);
  report.subtitle = fmt::format("by the model {}", a.model);
  report.hold_out = ReportHoldOut{
      model.values,       result.mean,       result.standard_error, "",
      result.scores.rmse, result.scores.mae, result.scores.crps,    result.scores.coverage95};
  report.run = result.run;
  add_precision_map(report, result.run.mixed);
  begin_output();
  if (!a.output.empty()) {
    std::vector<std::string> names = file.columns.coordinates();
    for (const std::string& name :
         {file.columns.value, std::string("mean"), std::string("standard_error")})
      names.push_back(name);
    std::vector<std::vector<double>> columns = columns_of(model.points);
    for (const auto* column : {&model.values, &result.mean, &result.standard_error})
      columns.push_back(*column);
    if (a.folds > 0) {
      names.emplace_back("fold");
      columns.emplace_back(result.fold.begin(), result.fold.end());
    }
    write_csv(a.output, names, columns);
  }
  const int written = finish(common, std::move(report), object,
                             [&] { print_crossval(a, result, model.values.size(), remarks); });
  return written == kDone ? status_of(remarks) : written;
}

}  // namespace

void add_crossval(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("crossval", "cross-validation of a model, its covariance held");
  add_examples(verb, {"strata crossval model.json --folds 10 -o residuals.csv"});
  auto a = std::make_shared<CrossvalArguments>();
  common.add_to(verb);
  a->precision.add_to(verb);
  verb.add_option("MODEL", a->model, "what fit wrote with -o").required();
  verb.add_option("--folds", a->folds,
                  "how many parts, each predicted from the others, at random by --seed; 0: leave "
                  "one out, exactly, from one factorization")
      .check(nonnegative_number())
      .capture_default_str();
  verb.add_flag("--blocks", a->blocks, "folds are compact blocks of the plane");
  verb.add_option("-o,--output", a->output, "where the predictions go (.csv)");
  verb.callback([&run, &common, a] { run = [&common, a] { return run_crossval(*a, common); }; });
}

}  // namespace strata::cli
