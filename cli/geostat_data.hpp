#pragma once
// Observations from a table, and models as files: what loglik, fit and predict share.
//
// Contract: rows whose holdout column is 1 are kept apart. A bad value is Error{input} that names
// the file, the row (counted from 1, below the header) and the column. Times are numbers, or dates,
// which are days since 1970-01-01, 00:00 UTC.

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/app.hpp"

namespace strata::cli {

struct ColumnNames {
  std::string x;
  std::string y;
  std::string value;
  std::string z{};     ///< empty: there is none
  std::string time{};  ///< empty: there is none
  std::vector<std::string> covariates{};
  bool drop_missing = false;    ///< rows without all of their values, instead of refusing them
  std::optional<bool> dates{};  ///< of a model: whether its times are dates

  void add_to(Command& app, bool with_value);
  /// For verbs with a mean.
  void add_covariates_to(Command& app);
  /// Those of the coordinates: x, y, and z and time where they are named. Throws Error{misuse} if
  /// two of them are the same.
  [[nodiscard]] std::vector<std::string> coordinates() const;
  /// Those of the coordinates, then the covariates.
  [[nodiscard]] std::vector<std::string> of_points() const;
  /// Those of a model's file, but for what was named on the command line. Throws Error{misuse}
  /// unless that is as many covariates as the model has.
  [[nodiscard]] ColumnNames or_else(const ColumnNames& model) const;
  /// Points from as many columns as of_points(), in that order; what follows is ignored.
  [[nodiscard]] Points points_of(std::vector<std::vector<double>> columns) const;
  /// What the fields of such a column may be.
  [[nodiscard]] ColumnRules rules_of(const std::string& name) const;
  /// Whether the times of a table are dates. Throws Error{input} if those of the model are not, or
  /// the other way round.
  template <class AnyTable>
  [[nodiscard]] bool has_dates(const AnyTable& table, const std::string& path) const {
    const bool there = !time.empty() && table.has(time) && table.has_dates(time);
    if (!time.empty()) check_dates(there, path);
    return there;
  }

 private:
  void check_dates(bool there, const std::string& path) const;
};

/// Takes the rows out of `columns`, and of `rows`, which have no value in one of the first `count`
/// columns; returns how many.
std::int64_t drop_incomplete(std::vector<std::vector<double>>& columns, std::size_t count,
                             std::vector<std::int64_t>& rows);
/// What `read` returns; where it finds a field without a value the message names --missing.
template <class Read>
auto with_advice(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (error.where() != kMissingField) throw;
    throw Error(error.kind(), error.where(),
                std::string(error.what()) + "; --missing drop leaves such rows out");
  }
}

/// The options that say what a covariance makes of coordinates.
struct SeparationArguments {
  std::string distance = "euclidean";
  std::string anisotropy;
  std::optional<double> time_scale;
  std::optional<double> time_smoothness;
  std::optional<double> interaction;

  /// `fitted`: for a verb that estimates what is not held.
  void add_to(Command& app, bool fitted = false);
  /// Whether none of them was given.
  [[nodiscard]] bool plain() const {
    return distance == "euclidean" && anisotropy.empty() && !time_scale && !time_smoothness &&
           !interaction;
  }
  /// Throws Error{misuse} if the options of time and the column of times do not go together, or an
  /// anisotropy is not what it may be.
  [[nodiscard]] Separation separation(const ColumnNames& columns) const;
  /// What a fit estimates: of time what is not given, of the anisotropy what is called "estimate".
  [[nodiscard]] SeparationEstimates estimates(const ColumnNames& columns) const;

 private:
  /// Ratio and angle; none: estimated.
  [[nodiscard]] std::array<std::optional<double>, 2> anisotropy_values() const;

  bool fitted_ = false;
};

/// The coordinates that there are, x, y, z, time; without the covariates.
[[nodiscard]] std::vector<std::vector<double>> columns_of(const Points& points);

struct Observations {
  Points points;
  std::vector<double> values;
  std::vector<std::int64_t> rows;   ///< of the file, counted from 1
  std::vector<std::int64_t> lines;  ///< on which they begin, counted from 1
  std::int64_t missing = 0;         ///< rows of the file that were left out, a value missing
  bool dates = false;               ///< whether the times were dates

  /// Point `i` (from 0) of these.
  void add(const Points& all, double value, std::size_t i);
};

struct SplitObservations {
  Observations fit;
  Observations holdout;
};

/// What keeps rows out of a fit: "" (a column called holdout, if there is one), "none", a column's
/// name, or a share such as 0.1: of n rows round(0.1·n), drawn at random with `seed`.
[[nodiscard]] SplitObservations read_observations(const std::string& path,
                                                  const ColumnNames& columns,
                                                  const std::string& holdout, std::uint64_t seed);

/// The points of a table, without values. Throws Error{input} if there are none.
[[nodiscard]] Observations read_places(const std::string& path, const ColumnNames& columns);

/// What times that were dates are, in files and messages.
inline constexpr const char* kTimesOfDates = "days since 1970-01-01";

/// What is told of rows that were left out and of times that were dates.
void add_rows_json(Json& object, const Observations& observations);
[[nodiscard]] std::string rows_text(const Observations& observations);

/// Throws Error{input}, naming the row of the file, if a point does not lie where `distance` says.
void check_places(const Points& points, const std::vector<std::int64_t>& rows, Distance distance,
                  const std::string& path);
/// Throws Error{numerical}, naming the two rows of the file, if points coincide and there is no
/// nugget.
void check_distinct(const Observations& observations, Distance distance, const std::string& path);
/// The same also if they are so close that rounding takes them for one at this smoothness.
void check_apart(const Observations& observations, Distance distance, double smoothness,
                 const std::string& path);

[[nodiscard]] Mean parse_mean(const std::string& name);
[[nodiscard]] const char* to_string(Mean mean);

/// A fitted model with the names of its columns, so that predict needs no options.
struct ModelFile {
  Model model;
  ColumnNames columns;
  std::string source;
  double log_likelihood = 0;
  std::string why{};  ///< the reason why the fit is not to be trusted; empty: it is
};

void write_model(const std::string& path, const ModelFile& model);
/// Throws Error{input} if the file is missing or no model.
[[nodiscard]] ModelFile read_model(const std::string& path);

/// A regular grid over the points' bounding box with about `cells` cells, and which of its nodes
/// lie near data.
struct PredictionGrid {
  MapGrid grid;
  Points nodes;                        ///< those near data
  std::vector<std::int64_t> position;  ///< of each node in the grid
};
[[nodiscard]] PredictionGrid make_grid(const Points& points, std::int64_t cells);

/// Values at the nodes, NaN elsewhere.
[[nodiscard]] std::vector<double> on_grid(const PredictionGrid& grid,
                                          const std::vector<double>& values);

}  // namespace strata::cli
