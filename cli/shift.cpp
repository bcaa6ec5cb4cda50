// strata shift A: what would have to be added to the diagonal of a sparse symmetric matrix.

#include <fmt/core.h>

#include <cmath>

#include "cli/krylov.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

struct ShiftArguments {
  FactorArguments factor;
  int steps = 100;
};

int run_shift(const ShiftArguments& a, const CommonOptions& common) {
  check_outputs(common, {}, {a.factor.matrix, common.rates});
  const SymmetricFile file = read_symmetric(a.factor.matrix, a.factor.triangle);
  check_interrupt();
  SparseCholeskyOptions options = sparse_options_of(common, a.factor);
  options.analysis = a.factor.analysis.to_options(common.seed);
  const DefiniteShift found = definite_shift(file.matrix, {.steps = a.steps}, options);
  Json object{{"n", file.matrix.rows},
              {"summed_entries", file.summed.count},
              {"steps", a.steps},
              {"precision", a.factor.precision}};
  add_to_json(found, object);
  const int status = finish(common, {}, object, [&] {
    fmt::print("order {}\n", file.matrix.rows);
    if (found.least_row >= 0 && found.least_diagonal <= 0)
      fmt::print("  diagonal          {:.6g} in row {}\n", found.least_diagonal, found.least_row);
    fmt::print("  definite shift    {}: {} ({})\n", found.shift,
               std::isinf(found.shift) ? "none makes A positive definite"
               : found.shift > 0       ? "A plus this on the diagonal is positive definite"
                                       : "A is positive definite as it is",
               known_by(found));
  });
  return std::isinf(found.shift) ? kNumbersSaidNo : status;
}

}  // namespace

void add_shift(Command& app, CommonOptions& common, Run& run) {
  Command verb = app.add_subcommand(
      "shift", "find what makes a sparse symmetric matrix positive definite: its --shift");
  add_examples(verb, {"strata shift A.mtx"});
  auto a = std::make_shared<ShiftArguments>();
  common.add_factor_options(verb);
  verb.add_option("A", a->factor.matrix, "symmetric matrix: .mtx, .npy or these .gz").required();
  add_triangle_to(verb, a->factor.triangle);
  a->factor.analysis.add_to(verb);
  a->factor.add_precision_to(verb, "in which A is to be factored");
  verb.add_option(
          "--steps", a->steps,
          "products with A at most, of Lanczos' method, before A is factored with what they "
          "say")
      .check(in_range(1, 10'000))
      .capture_default_str();
  verb.callback([&run, &common, a] { run = [&common, a] { return run_shift(*a, common); }; });
}

}  // namespace strata::cli
