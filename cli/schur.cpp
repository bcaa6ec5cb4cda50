// strata schur A --keep ROWS -o S: what elimination of all other rows leaves of a sparse matrix.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

struct SchurArguments {
  FactorArguments factor;  // of what is eliminated; no saved one, and no saved analysis
  std::string keep;
  std::string output;
};

/// --keep: numbers of rows with commas or blanks between, or the name of a file.
bool is_list(const std::string& text) {
  return text.find_first_not_of("0123456789-, \t") == std::string::npos;
}

std::vector<std::int64_t> kept_rows(const std::string& keep) {
  const bool list = is_list(keep);
  std::vector<std::int64_t> rows =
      list ? parse_rows(keep, "--keep", ErrorKind::misuse) : read_rows(keep);
  require(!rows.empty(), list ? ErrorKind::misuse : ErrorKind::input, "schur",
          "--keep '{}' names no row, and nothing would be left", keep);
  return rows;
}

void print_schur(const SchurComplement& s, const Json& object) {
  const RunReport& run = s.run;
  fmt::print("eliminated {} of {} rows with {} (sparse, tile {}, {})\n",
             object["eliminated"].get<std::int64_t>(), object["n"].get<std::int64_t>(),
             fmt::join(run.devices, ", "), run.tile, run.policy);
  if (object["shift"] != 0)
    fmt::print("  shift             {:.6g}\n", object["shift"].get<double>());
  fmt::print("  log determinant   {:.15g} of the rows that were eliminated\n",
             s.factor.log_determinant);
  fmt::print(
      "  factor            {:.3g} s, {:.1f} GFLOP/s, stored zeros included\n"
      "  total             {:.3g} s\n",
      run.seconds, run.seconds > 0 ? run.flops / run.seconds / 1e9 : 0,
      object["schur_seconds"].get<double>());
  print_traffic(run);
}

void write_square(const std::string& path, const SchurComplement& s) {
  const MatrixView<const double> view{s.values.data(), s.order, s.order,
                                      std::max<std::int64_t>(s.order, 1)};
  write_dense(path, view);
}

int run_schur(const SchurArguments& a, const CommonOptions& common) {
  require(is_called(a.output, ".npy") || is_called(a.output, ".mtx"), ErrorKind::misuse, "schur",
          "--output '{}': a dense matrix is a file called .npy or .mtx (or these with .gz)",
          a.output);
  require(!a.factor.is_saved(), ErrorKind::misuse, "options",
          "'{}' is a directory: rows are eliminated from a matrix, .mtx or .npy", a.factor.matrix);
  std::vector<std::string> inputs = a.factor.inputs();
  inputs.insert(inputs.end(), {common.rates, is_list(a.keep) ? "" : a.keep});
  check_outputs(common, {{"--output", a.output}}, inputs);
  SparseCholeskyOptions options = sparse_options_of(common, a.factor);
  options.analysis = a.factor.analysis.to_options(common.seed);
  const std::vector<std::int64_t> kept = kept_rows(a.keep);
  const SymmetricFile file = read_symmetric(a.factor.matrix, a.factor.triangle);
  check_interrupt();
  const auto start = std::chrono::steady_clock::now();
  const SchurComplement s = schur_complement(file.matrix, kept, options);
  Json object = to_json(s.run);
  object["n"] = file.matrix.rows;
  object["kept"] = kept.size();
  object["eliminated"] = file.matrix.rows - std::ssize(kept);
  object["summed_entries"] = file.summed.count;
  object["shift"] = options.shift;
  object["factor"] = to_json(s.factor);
  if (!s.factor.ok) {
    const NotDefinite failure{
        .what = "what is eliminated",
        .info = s.factor,
        .shift = options.shift,
        .place = failed_place(file.matrix, s.factor, options.shift, options.precision)};
    const DefiniteShift shift = definite_shift(file.matrix, shift_search(s.run.flops), options);
    return report_not_definite(common, failure, shift, std::move(object));
  }
  object["schur_seconds"] =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ReportData data;
  data.title = fmt::format("A Schur complement of order {}", s.order);
  data.subtitle = fmt::format("{}, {} of {} rows eliminated", a.factor.matrix,
                              file.matrix.rows - s.order, file.matrix.rows);
  data.figures = {{"Log determinant", fmt::format("{:.8g}", s.factor.log_determinant), "",
                   "of the rows that were eliminated"}};
  data.run = s.run;
  begin_output();
  write_square(a.output, s);
  return finish(common, std::move(data), object, [&] {
    print_schur(s, object);
    fmt::print("Schur complement of order {} written to {}\n", s.order, a.output);
  });
}

}  // namespace

void add_schur(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand(
      "schur", "Schur complement: what eliminating all other rows leaves of a sparse matrix");
  add_examples(verb, {"strata schur A.mtx --keep 0,5,9 -o S.npy"});
  auto a = std::make_shared<SchurArguments>();
  common.add_factor_options(verb);
  verb.add_option("A", a->factor.matrix,
                  "symmetric matrix: .mtx, .npy or these .gz; positive definite in the rows that "
                  "are eliminated")
      .required();
  verb.add_option(
          "--keep", a->keep,
          "the rows that stay, from 0, in the order of the result: numbers with commas or "
          "blanks between, or a file: .npy, .mtx, or text with spaces, commas or lines between")
      .required();
  verb.add_option("-o,--output", a->output, "where the result goes, dense: .npy or .mtx")
      .required();
  add_triangle_to(verb, a->factor.triangle);
  a->factor.add_shift_to(verb);
  a->factor.analysis.add_to(verb);
  verb.callback([&run, &common, a] { run = [&common, a] { return run_schur(*a, common); }; });
}

}  // namespace strata::cli
