// strata logdet A and strata variances A: what follows from the Cholesky factor of a sparse
// symmetric matrix. What they share with strata factor and strata solve is here, too.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "cli/cholesky_factor.hpp"
#include "cli/dense_file.hpp"
#include "cli/general_solve.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOfHermitian = "is an option of matrices of complex numbers";

struct VariancesArguments {
  FactorArguments factor;
  std::string output;
  bool selected = false;
};

struct LogdetArguments : FactorArguments {
  std::vector<std::string> storage;  // directories
  std::vector<Option> of_dense;
};

int run_logdet(const LogdetArguments& a, const CommonOptions& common) {
  check_outputs(common, {}, inputs_of(a, common));
  const bool by_lu = a.is_saved() && GeneralFactor::is_at(a.matrix);
  if (by_lu || (a.is_saved() && CholeskyFactor::is_at(a.matrix))) {
    refuse_given(a.added, fmt::format("says how a matrix is factored, and '{}' is a factor{}",
                                      a.matrix, by_lu ? " by LU" : ""));
    refuse_given(a.of_dense, kOfHermitian);
    require(a.triangle.empty(), ErrorKind::misuse, "options",
            "--triangle is of a matrix, and '{}' is a factor", a.matrix);
    return by_lu ? run_saved_determinant(a.matrix, common)
                 : run_saved_cholesky_determinant(a.matrix, common);
  }
  if (!a.is_saved() && is_called(a.matrix, ".npy") && is_complex(NpyFile(a.matrix).precision()))
    return run_dense_logdet(MatrixFile(a.matrix), a, a.storage, common);
  std::optional<SparseFactorization> from_entries;
  if (!a.is_saved() && is_called(a.matrix, ".mtx")) {
    MatrixMarket entries = read_entries(a.matrix, a.triangle);
    if (entries.is_complex)
      return run_dense_logdet(MatrixFile(a.matrix, entries), a, a.storage, common);
    refuse_given(a.of_dense, kOfHermitian);
    SymmetricFile file = symmetric_of(std::move(entries), a.matrix);
    check_interrupt();
    from_entries = factor_file(std::move(file), a, common);
  }
  refuse_given(a.of_dense, kOfHermitian);
  SparseFactorization f = from_entries ? std::move(*from_entries) : read_factor(a, common);
  Json object = to_json(f);
  if (!f.factor.info().ok) return report_not_definite(common, f, std::move(object));
  object["log_determinant"] = number(f.factor.info().log_determinant);
  const FactorQuality quality = quality_of(f, true);
  add_to_json(quality, object);
  object["log_determinant_error"] = number(quality.errors.log_determinant);
  add_solves(f, object);
  const int status = finish(common, report_of(f), object, [&] {
    print_run(f);
    print_factor(f);
    print_error("absolute", quality.errors.log_determinant);
    print_condition(quality.scaled_condition);
    print_traffic_of(f);
  });
  if (!quality.singular) return status;
  return report_singular(quality.scaled_condition, f.factor.precision(), true);
}

void require_variances_name(const VariancesArguments& a) {
  const bool fine = is_called(a.output, ".mtx") || (!a.selected && is_called(a.output, ".npy"));
  require(fine, ErrorKind::misuse, "options", "--output '{}': {}", a.output,
          a.selected ? "a sparse matrix is a file called .mtx (or .mtx.gz)"
                     : "a vector is a file called .npy or .mtx (or these with .gz)");
}

/// The diagonal of the inverse; `put` gets all entries of its lower triangle where L has some.
std::vector<double> variances_of(const SparseCholesky& factor, const PutEntry& put = nullptr) {
  std::vector<double> diagonal(static_cast<std::size_t>(factor.n()));
  factor.for_selected_inverse([&](const SelectedPanel& panel) {
    const auto row = [&](std::int64_t i) { return panel.rows[static_cast<std::size_t>(i)]; };
    for (std::int64_t j = 0; j < panel.values.cols; ++j) {
      diagonal[static_cast<std::size_t>(row(j))] = panel.values(j, j);
      for (std::int64_t i = j; put && i < panel.values.rows; ++i)
        put(row(i), row(j), panel.values(i, j));
    }
    check_interrupt();
  });
  begin_output();
  return diagonal;
}

/// The same, and the file of these entries, which are written as they are made.
std::vector<double> write_selected(const std::string& path, const SparseCholesky& factor) {
  std::vector<double> diagonal;
  write_symmetric_mtx(path, factor.n(), factor.selected_entries(),
                      [&](const PutEntry& put) { diagonal = variances_of(factor, put); });
  return diagonal;
}

int run_variances(const VariancesArguments& a, const CommonOptions& common) {
  require_variances_name(a);
  check_outputs(common, {{"--output", a.output}}, inputs_of(a.factor, common));
  FactorArguments factor = a.factor;
  factor.inverse = true;
  SparseFactorization f = read_factor(factor, common);
  Json object = to_json(f);
  if (!f.factor.info().ok) return report_not_definite(common, f, std::move(object));
  const std::vector<double> variances =
      a.selected ? write_selected(a.output, f.factor) : variances_of(f.factor);
  const auto range = std::minmax_element(variances.begin(), variances.end());
  const bool any = !variances.empty();
  object["variances"] = {{"smallest", any ? number(*range.first) : Json(nullptr)},
                         {"largest", any ? number(*range.second) : Json(nullptr)}};
  const std::int64_t entries = 2 * f.factor.selected_entries() - f.factor.n();
  if (a.selected) object["variances"]["selected_entries"] = entries;
  const FactorQuality quality = quality_of(f, true);
  add_to_json(quality, object);
  object["variances"]["relative_error"] = number(quality.errors.inverse);
  if (!a.selected)
    write_dense(a.output,
                MatrixView<const double>{variances.data(), f.factor.n(), 1,
                                         std::max<std::int64_t>(f.factor.n(), 1)},
                1);
  add_solves(f, object);
  const int status = finish(common, report_of(f), object, [&] {
    print_run(f);
    print_factor(f);
    if (any) fmt::print("  variances         from {:.6g} to {:.6g}\n", *range.first, *range.second);
    if (a.selected) fmt::print("  of the inverse    {} entries\n", entries);
    print_error("relative", quality.errors.inverse);
    print_condition(quality.scaled_condition);
    print_traffic_of(f);
    fmt::print("{} written to {}\n", a.selected ? "selected inverse" : "variances", a.output);
  });
  const bool finite =
      std::all_of(variances.begin(), variances.end(), [](double v) { return std::isfinite(v); });
  if (!finite) {  // and no other element of the inverse is larger
    fmt::print(stderr, "strata: variances: numbers leave the range of fp64\n");
    return kNumbersSaidNo;
  }
  if (!quality.singular) return status;
  return report_singular(quality.scaled_condition, f.factor.precision(), true);
}

}  // namespace

std::vector<std::string> inputs_of(const FactorArguments& a, const CommonOptions& common) {
  std::vector<std::string> inputs = a.inputs();
  inputs.push_back(common.rates);
  return inputs;
}

void print_error(const char* kind, double error) {
  if (std::isnan(error))
    return fmt::print("  error             unknown: what is lost in a factor takes A to tell\n");
  if (std::isinf(error)) return fmt::print("  error             not a digit is known\n");
  fmt::print("  error             at most about {:.1e} ({})\n", rounded_up(error), kind);
}

void FactorArguments::add_shift_to(Command& verb) {
  added.push_back(verb.add_option("--shift", shift, "factor A plus this on the diagonal")
                      .capture_default_str());
}

void FactorArguments::add_to(Command& verb) {
  add_triangle_to(verb, triangle);
  add_shift_to(verb);
  analysis.add_to(verb);
  analysis.add_saved_to(verb);
  added.insert(added.end(), analysis.added.begin(), analysis.added.end());
}

void FactorArguments::add_precision_to(Command& verb, const std::string& results) {
  added.push_back(verb.add_option("--precision", precision,
                                  "of the factor: fp64, or fp32 in half the memory, " + results)
                      .check(one_of({"fp64", "fp32"}))
                      .capture_default_str());
}

bool FactorArguments::is_saved() const { return fs::is_directory(matrix); }

std::vector<std::string> FactorArguments::inputs() const {
  std::vector<std::string> inputs = analysis.inputs();
  inputs.push_back(matrix);
  if (is_saved()) inputs.insert(inputs.end(), {matrix + "/analysis", matrix + "/factor"});
  return inputs;
}

SparseCholeskyOptions sparse_options_of(const CommonOptions& common,
                                        const FactorArguments& arguments) {
  SparseCholeskyOptions options;
  options.run = common.run_options();
  options.tile = common.tile;
  options.shift = arguments.shift;
  options.precision = arguments.precision == "fp32" ? Element::fp32 : Element::fp64;
  options.inverse = arguments.inverse;
  return options;
}

SparseFactorization factor_file(SymmetricFile file, const FactorArguments& arguments,
                                const CommonOptions& common) {
  const SparseCholeskyOptions options = sparse_options_of(common, arguments);
  SparseAnalysis analysis = analysis_of(arguments.analysis, file.matrix, common.seed);
  check_interrupt();
  SparseCholesky factor(std::move(analysis), file.matrix, options);
  check_interrupt();
  return {std::move(file), false, std::move(factor)};
}

SparseFactorization read_factor(const FactorArguments& arguments, const CommonOptions& common) {
  if (!arguments.is_saved()) {
    SymmetricFile file = read_symmetric(arguments.matrix, arguments.triangle);
    check_interrupt();
    return factor_file(std::move(file), arguments, common);
  }
  const std::string given = first_given(arguments.added);
  require(given.empty(), ErrorKind::misuse, "options",
          "{} says how a matrix is factored, and '{}' is a factor", given, arguments.matrix);
  require(arguments.triangle.empty(), ErrorKind::misuse, "options",
          "--triangle is of a matrix, and '{}' is a factor", arguments.matrix);
  const SparseCholeskyOptions options = sparse_options_of(common, arguments);
  require_no_part_of_a_factor(arguments.matrix);
  require(!GeneralFactor::is_at(arguments.matrix) && !CholeskyFactor::is_at(arguments.matrix),
          ErrorKind::misuse, "options",
          "'{}' is a factor of a dense matrix, which 'strata solve' and 'strata logdet' take",
          arguments.matrix);
  SparseCholesky factor = SparseCholesky::open(arguments.matrix, options);
  check_interrupt();
  return {{}, true, std::move(factor)};
}

void print_traffic_of(const SparseFactorization& f) {
  if (!f.saved) print_traffic(f.factor.report());
  if (f.factor.solves().path.empty()) return;
  fmt::print("  solves, and what brought L home\n");
  print_traffic(f.factor.solves());
}

void add_solves(const SparseFactorization& f, Json& object) {
  if (!f.factor.solves().path.empty()) object["solves"] = to_json(f.factor.solves());
}

Json to_json(const SparseFactorization& f) {
  const RunReport& run = f.factor.report();
  Json object = f.saved ? Json{{"n", f.factor.n()}, {"host_bytes", run.host_bytes}} : to_json(run);
  object["factor"] = to_json(f.factor.info());
  object["precision"] = to_string(f.factor.precision());
  object["shift"] = f.factor.shift();
  object["analysis"] = to_json(f.analysis(), f.file.summed);
  return object;
}

FactorQuality quality_of(const SparseFactorization& f, bool errors) {
  FactorQuality quality;
  if (f.file.matrix.rows != f.factor.n()) return quality;  // a factor that was saved, without A
  const Element precision = f.factor.precision();
  quality.scaled_condition = f.factor.scaled_condition(f.file.matrix);
  quality.singular = numerically_singular(quality.scaled_condition, precision);
  if (errors || (quality.singular && precision == Element::fp32))
    quality.errors = factor_errors(f.factor, f.file.matrix);
  // What was lost in a factor in fp32, measured, says more than its condition.
  const bool known = std::isfinite(quality.errors.inverse);
  if (precision == Element::fp32) quality.singular = quality.singular && !known;
  quality.singular = quality.singular || std::isinf(quality.errors.inverse);
  return quality;
}

void add_to_json(const FactorQuality& quality, Json& object) {
  object["scaled_condition"] = number(quality.scaled_condition);
  if (!std::isnan(quality.scaled_condition)) object["numerically_singular"] = quality.singular;
}

void print_condition(double scaled_condition, const char* scaled) {
  if (std::isnan(scaled_condition)) return;
  fmt::print("  condition         {:.2e} of the matrix scaled {} (an estimate)\n", scaled_condition,
             scaled);
}

int report_singular(double scaled_condition, Element precision, bool of_factor,
                    const char* scaled) {
  const bool single = precision == Element::fp32;
  fmt::print(
      stderr,
      "strata: {}: scaled {} its condition is about {:.1e}, and from {:.1e} on not a digit is "
      "sure{}\n",
      single && of_factor ? "a factor in fp32 cannot tell the matrix from a singular one"
                          : "the matrix is numerically singular",
      scaled, scaled_condition, singular_condition(precision),
      single ? " in fp32: --precision fp64" : "");
  return kNumbersSaidNo;
}

int report_unknown_determinant(Element precision) {
  fmt::print(stderr, "strata: not a digit of the log-determinant is known{}\n",
             element_of_parts(precision) == Element::fp32
                 ? "; a factor in fp32 is not enough for this matrix: --precision fp64"
                 : "");
  return kNumbersSaidNo;
}

void print_run(const SparseFactorization& f) {
  const std::string_view precision = to_string(f.factor.precision());
  if (f.saved)
    return fmt::print("a factor of order {} in {}, as it was saved\n", f.factor.n(), precision);
  const RunReport& run = f.factor.report();
  fmt::print("factored order {} in {} with {} (sparse, tile {}, {})\n", f.factor.n(), precision,
             fmt::join(run.devices, ", "), run.tile, run.policy);
}

void print_factor(const SparseFactorization& f) {
  const SparseAnalysis& a = f.analysis();
  if (f.factor.shift() != 0)
    fmt::print("  shift             {:.6g}: of A + shift·I, not of A\n", f.factor.shift());
  if (f.file.summed.count > 0)
    fmt::print(
        "  entries           {} were added to others at their places, the first at ({}, {})\n",
        f.file.summed.count, f.file.summed.row, f.file.summed.col);
  const bool single = f.factor.precision() == Element::fp32;
  fmt::print("  log determinant   {:.{}g}\n", f.factor.info().log_determinant, single ? 7 : 15);
  fmt::print("  L                 {} entries, {:.4g} flops, in {} as panels\n",
             a.counts.factor_entries, a.counts.flops,
             format_bytes(a.counts.panel_bytes / (single ? 2 : 1)));
  fmt::print("  supernodes        {}, ordered by {}\n", a.supernodes(), to_string(a.ordering));
  const RunReport& run = f.factor.report();
  if (run.host_bytes > 0)
    fmt::print("  host memory       {} planned\n", format_bytes(run.host_bytes));
  if (f.saved) return;
  // By the flops above: those of the run have the zeros that supernodes store, too.
  fmt::print("  analysis          {:.3g} s\n  factor            {:.3g} s, {:.1f} GFLOP/s\n",
             a.seconds.total(), run.seconds,
             run.seconds > 0 ? a.counts.flops / run.seconds / 1e9 : 0);
}

ReportData report_of(const SparseFactorization& f) {
  const SparseAnalysis& a = f.analysis();
  ReportData data;
  data.title = fmt::format("A sparse Cholesky factor of order {}", f.factor.n());
  data.subtitle = fmt::format("{} supernodes, ordered by {}, in {}", a.supernodes(),
                              to_string(a.ordering), to_string(f.factor.precision()));
  const int digits = f.factor.precision() == Element::fp32 ? 7 : 8;
  data.figures = {
      {"Log determinant", fmt::format("{:.{}g}", f.factor.info().log_determinant, digits), "", ""},
      {"Entries of L", fmt::format("{:.3g}", static_cast<double>(a.counts.factor_entries)), "", ""},
      {"Flops", fmt::format("{:.3g}", a.counts.flops), "", "of L"}};
  data.tree = tree_of(a);
  if (!f.saved) data.run = f.factor.report();
  return data;
}

namespace {

/// A row is empty if neither it nor the column that mirrors it holds anything but zeros.
void count_empty_rows(const SparseMatrix& a, NotDefinite& failure) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  std::vector<bool> holds(at(a.rows));
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t k = a.start[at(i)]; k < a.start[at(i + 1)]; ++k)
      if (a.value[at(k)] != 0) holds[at(i)] = holds[at(a.column[at(k)])] = true;
  }
  const auto first = std::find(holds.begin(), holds.end(), false);
  failure.empty_rows = std::count(first, holds.end(), false);
  if (failure.empty_rows > 0) failure.first_empty_row = first - holds.begin();
}

}  // namespace

FailedPlace failed_place(const SparseMatrix& a, const FactorInfo& info, double shift,
                         Element precision) {
  FailedPlace place{.n = a.rows, .precision = precision};
  if (info.first_bad_pivot < 0 || info.first_bad_pivot >= a.rows) return place;
  const auto row = static_cast<std::size_t>(info.first_bad_pivot);
  place.diagonal = shift;
  for (std::int64_t k = a.start[row]; k < a.start[row + 1]; ++k) {
    const auto at = static_cast<std::size_t>(k);
    if (a.column[at] == info.first_bad_pivot) place.diagonal += a.value[at];
  }
  return place;
}

FailedPlace failed_place(const SparseFactorization& f) {
  return failed_place(f.file.matrix, f.factor.info(), f.factor.shift(), f.factor.precision());
}

DefiniteShiftOptions shift_search(double flops) {
  constexpr double kSeconds = 2e10;  // a few of a core
  DefiniteShiftOptions options;
  if (flops > kSeconds) options.factorizations_max = 0;
  return options;
}

std::string known_by(const DefiniteShift& shift) {
  if (shift.factored) return "factored, " + counted(shift.factorizations, "factorization");
  return shift.proven ? "proven by Gershgorin's discs" : "no double is large enough";
}

void add_to_json(const DefiniteShift& shift, Json& object) {
  object["definite_shift"] = number(shift.shift);
  object["definite_shift_known_by"] = shift.factored ? Json("factorization")
                                      : shift.proven ? Json("discs")
                                                     : Json(nullptr);
  object["factorizations"] = shift.factorizations;
  object["least_diagonal"] = {{"row", shift.least_row}, {"value", number(shift.least_diagonal)}};
}

int report_not_definite(const CommonOptions& common, const NotDefinite& failure,
                        const DefiniteShift& shift, Json object) {
  const FactorInfo& info = failure.info;
  add_to_json(shift, object);
  object["empty_rows"] = failure.empty_rows;
  end_progress();
  if (common.json) fmt::print("{}\n", object.dump(2));
  const bool single = failure.place.precision == Element::fp32;
  std::string what = failure.what;
  if (failure.shift != 0) what += fmt::format(" + {:.6g} I", failure.shift);
  if (single) what += " in fp32";
  std::string advice = "; no shift that a double can hold would make it so";
  if (std::isfinite(shift.shift))
    advice = fmt::format(
        "; --shift {} would make it so ({}), and what is computed then is that of A + shift·I",
        shift.shift, known_by(shift));
  if (shift.proven) advice += "; 'strata shift' finds a smaller one";
  if (failure.empty_rows > 0)
    advice = fmt::format(
                 "; {} of its rows {} nothing but zeros, row {} the first: leave out such rows and "
                 "columns, or put 1 on their diagonal",
                 failure.empty_rows, failure.empty_rows == 1 ? "holds" : "hold",
                 failure.first_empty_row) +
             advice;
  if (shift.least_row >= 0 && shift.least_diagonal <= 0) {
    advice =
        fmt::format("; the diagonal has {:.6g} in row {}", shift.least_diagonal, shift.least_row) +
        advice;
  } else if (single) {
    advice += "; in --precision fp64 it may be";
  }
  fmt::print(stderr, "strata: {} is {}: in row {} (counted from 0) the pivot is {:.6g}{}\n", what,
             not_definite(info, failure.place), info.first_bad_pivot, info.bad_pivot, advice);
  return kNumbersSaidNo;
}

int report_not_definite(const CommonOptions& common, SparseFactorization& f, Json object) {
  NotDefinite failure{.info = f.factor.info(), .shift = f.factor.shift(), .place = failed_place(f)};
  count_empty_rows(f.file.matrix, failure);
  const DefiniteShift shift =
      definite_shift(f.factor, f.file.matrix, shift_search(f.analysis().counts.flops));
  return report_not_definite(common, failure, shift, std::move(object));
}

void add_logdet(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand("logdet",
                                    "log-determinant of a positive definite matrix, sparse "
                                    "symmetric or dense Hermitian, or of any "
                                    "that was factored before");
  add_examples(verb, {"strata logdet Q.mtx", "strata logdet factor/"});
  auto a = std::make_shared<LogdetArguments>();
  common.add_factor_options(verb);
  verb.add_option(
          "A", a->matrix,
          "symmetric matrix: .mtx, .npy or these .gz, with complex numbers a Hermitian one, "
          "factored as a dense one; or what 'strata factor -o' wrote")
      .required();
  a->add_to(verb);
  a->add_precision_to(verb, "which has fewer digits; how many is told");
  a->of_dense.push_back(verb.add_list(
      "--storage", a->storage,
      "of complex numbers: directories, separated by commas, in whose files the factor rests where "
      "host memory (--host-memory) does not hold it; gone with the command"));
  verb.callback([&run, &common, a] { run = [&common, a] { return run_logdet(*a, common); }; });
}

void add_variances(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand(
      "variances", "diagonal of the inverse of a sparse matrix: variances, if it is a precision");
  add_examples(verb, {"strata variances Q.mtx -o variances.npy",
                      "strata variances Q.mtx -o inverse.mtx --selected"});
  auto a = std::make_shared<VariancesArguments>();
  common.add_factor_options(verb);
  verb.add_option("A", a->factor.matrix,
                  "symmetric matrix: .mtx, .npy or these .gz; or what 'strata factor -o' wrote")
      .required();
  verb.add_option("-o,--output", a->output, "where they go: .npy or .mtx").required();
  verb.add_flag("--selected", a->selected,
                "write the inverse where L has entries, a symmetric .mtx");
  a->factor.add_to(verb);
  a->factor.add_precision_to(verb, "whose variances have fewer digits; how many is told");
  verb.callback([&run, &common, a] { run = [&common, a] { return run_variances(*a, common); }; });
}

}  // namespace strata::cli
