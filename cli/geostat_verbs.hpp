#pragma once
// What the verbs of Gaussian processes share: how a model, its sizes and its predictions are told.

#include <optional>
#include <string>
#include <vector>

#include "cli/geostat_data.hpp"

namespace strata::cli {

/// "a + b x + c y + d covariate" in digits.
[[nodiscard]] std::string mean_text(const std::vector<double>& coefficients,
                                    const std::vector<std::string>& covariates);

[[nodiscard]] Json likelihood_json(const Likelihood& likelihood,
                                   const MaternParameters& parameters);
/// The log-likelihood and what it is made of, with how far they may be off, a line each.
void print_likelihood(const Likelihood& likelihood, const char* indent);

/// --variance, --range and --smoothness, which are required, and --nugget.
void add_parameters(Command& app, MaternParameters& parameters);

/// Why what a model says is wrong, a line each, for a reader to know before the numbers; none: it
/// is right as far as is known. The fit of the model, called `path`, may have been distrusted, and
/// rounding may change its predictions.
[[nodiscard]] std::vector<std::string> distrust_of(const ModelFile& file, const std::string& path);
[[nodiscard]] std::vector<std::string> distrust_of(const ModelFile& file, const std::string& path,
                                                   const PredictionRounding& rounding);
/// That of a log-likelihood which is off by up to `error`, without its first words; mixed: in lower
/// precisions.
[[nodiscard]] std::string distrust_of_likelihood(double error, bool mixed);
/// That of predictions alone; empty: they are right.
[[nodiscard]] std::string distrust_of(const PredictionRounding& rounding);
/// kNumbersSaidNo if there are such lines, which are then in `remarks`.
[[nodiscard]] int status_of(const std::vector<std::string>& remarks);

/// mean_error and what else is known of rounding; nothing where it was not estimated.
void add_rounding_json(Json& object, const PredictionRounding& rounding);
void print_rounding(const PredictionRounding& rounding);

/// A semivariogram: a line for each direction and class of times, robust estimates beside where
/// there is one such line, and the curve of a model for each line of which it has one of its own.
[[nodiscard]] ReportChart variogram_chart(const Variogram& variogram,
                                          const std::optional<MaternParameters>& model,
                                          Distance distance);

/// How the matrix compares with the memory it was factored in.
void print_sizes(const RunReport& run);

[[nodiscard]] MapLayer point_layer(const char* name, MapQuantity quantity, const Points& points,
                                   const std::vector<double>& values);

/// A table of predictions, written piece by piece: the coordinates, what was observed there if
/// `observed`, then mean and standard errors.
class PredictionTable {
 public:
  PredictionTable(const std::string& path, const ColumnNames& columns, bool observed);
  /// `observations` is empty unless `observed`.
  void write(const Points& points, const std::vector<double>& observations,
             const Prediction& prediction);
  void close() { writer_.close(); }

 private:
  TableWriter writer_;
  bool observed_;
};

}  // namespace strata::cli
