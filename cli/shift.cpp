// strata shift A: what would have to be added to the diagonal of a sparse symmetric matrix.

#include <fmt/format.h>

#include <cmath>

#include "base/check.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

struct ShiftArguments {
  std::string matrix;
  std::string triangle;
  int steps = 100;
};

int run_shift(const ShiftArguments& a, const CommonOptions& common) {
  const SymmetricFile file = read_symmetric(a.matrix, a.triangle);
  check_interrupt();
  const double shift = definite_shift(file.matrix, a.steps);
  require(std::isfinite(shift), ErrorKind::numerical, "shift",
          "{}: products with the matrix leave the range of doubles", a.matrix);
  const nlohmann::json object{{"n", file.matrix.rows},
                              {"summed_entries", file.summed.count},
                              {"steps", a.steps},
                              {"definite_shift", shift}};
  return finish(common, {}, object, [&] {
    fmt::print("order {}\n  definite shift    {:.5g}: {}\n", file.matrix.rows, shift,
               shift > 0 ? "A plus this on the diagonal is positive definite, by an estimate"
                         : "A seems to be positive definite as it is");
  });
}

}  // namespace

void add_shift(CLI::App& app, CommonOptions& common, Run& run) {
  CLI::App* verb = app.add_subcommand(
      "shift", "estimate what would make a sparse symmetric matrix positive definite: its --shift");
  auto a = std::make_shared<ShiftArguments>();
  verb->add_option("A", a->matrix, "symmetric matrix: .mtx, .npy or these .gz")->required();
  add_triangle_to(*verb, a->triangle);
  verb->add_option("--steps", a->steps,
                   "products with A at most, of Lanczos' method; more come closer to the least "
                   "eigenvalue")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  verb->add_flag("--json", common.json, "print one JSON object");
  verb->callback([&run, &common, a] { run = [&common, a] { return run_shift(*a, common); }; });
}

}  // namespace strata::cli
