// The command line program: parses, runs one verb, turns errors into one line and an exit status.

#include "cli/program.hpp"

int main(int argc, char** argv) {
  using namespace strata::cli;
  if (starts_bench(argc, argv)) return run_guarded([argv] { return start_bench(argv); });
  watch_interrupt();
  CommandLine line(
      "strata",
      "Strata factors and solves systems larger than the memory of the GPU, or of the machine.",
      std::string("strata ") + STRATA_VERSION);
  Command app = line.program();
  app.require_subcommand();
  CommonOptions common;
  common.command = command_line(argc, argv, "strata");
  app.footer(
      "Examples:\n"
      "  strata fit data.csv --x lon --y lat --value rain --holdout 0.1 -o model.json --report "
      "fit.html\n"
      "  strata predict model.json places.csv -o predictions.csv\n"
      "  strata solve A.npy b.npy -o x.npy --device-memory 512MiB\n"
      "  strata solve A.mtx b.npy -o x.npy\n"
      "  strata plan cholesky --n 1000000 --tile 8192 --devices emulated:4 --device-memory 64GiB\n"
      "'strata VERB --help' lists the options of a verb.");
  Run run;
  add_info(app, common, run);
  add_plan(app, common, run);
  add_solve(app, common, run);
  add_inverse(app, common, run);
  add_loglik(app, common, run);
  add_variogram(app, common, run);
  add_fit(app, common, run);
  add_predict(app, common, run);
  add_crossval(app, common, run);
  add_simulate(app, common, run);
  add_kl(app, common, run);
  add_qr(app, common, run);
  add_lstsq(app, common, run);
  add_eigs(app, common, run);
  add_analyze(app, common, run);
  add_factor(app, common, run);
  add_logdet(app, common, run);
  add_variances(app, common, run);
  add_schur(app, common, run);
  add_shift(app, common, run);
  add_bench(app);
  return run_program(line, run, argc, argv);
}
