#pragma once
// What the verbs of Gaussian processes share: how a model, its sizes and its predictions are told.

#include <string>
#include <vector>

#include "cli/geostat_data.hpp"

namespace strata::cli {

/// "a + b x + c y + d covariate" in digits.
[[nodiscard]] std::string mean_text(const std::vector<double>& coefficients,
                                    const std::vector<std::string>& covariates);

[[nodiscard]] nlohmann::json likelihood_json(const Likelihood& likelihood,
                                             const MaternParameters& parameters);
/// The log-likelihood and what it is made of, with how far they may be off, a line each.
void print_likelihood(const Likelihood& likelihood, const char* indent);

/// --variance, --range and --smoothness, which are required, and --nugget.
void add_parameters(CLI::App& app, MaternParameters& parameters);

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
