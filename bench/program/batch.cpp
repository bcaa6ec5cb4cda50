// strata bench sparse --batch: many matrices of one pattern, together and one by one.

#include <fmt/core.h>

#include "base/output_file.hpp"
#include "bench/program/program.hpp"
#include "bench/sparse_batch_bench.hpp"
#include "cli/krylov.hpp"

namespace strata::cli {
namespace {

using bench::BatchRow;
using bench::BatchTimes;
using bench::SparseTiming;

Json times_json(const BatchTimes& times) {
  Json object;
  const auto put = [&](const char* name, const SparseTiming& timing) {
    if (!timing.all_seconds.empty())
      object[name] = {{"seconds", timing.seconds}, {"all_seconds", timing.all_seconds}};
  };
  put("factor", times.factor);
  put("solve", times.solve);
  put("factor_there", times.factor_there);
  put("solve_there", times.solve_there);
  return object;
}

Json row_json(const BatchRow& row) {
  return {{"name", row.name},
          {"n", row.n},
          {"matrices", row.count},
          {"flops", row.flops},
          {"path", row.path},
          {"together", times_json(row.together)},
          {"one_by_one", times_json(row.one_by_one)},
          {"backward_error", number(row.backward_error)},
          {"different", row.different}};
}

void print_row(const BatchRow& row) {
  fmt::print("\n{}: {} matrices of order {}, {:.4g} flops each; {}\n", row.name, row.count, row.n,
             row.flops, row.path);
  fmt::print("  {:<28}{:>14}{:>14}{:>9}\n", "seconds of all", "together", "one by one", "ratio");
  const auto line = [](const char* what, const SparseTiming& batch, const SparseTiming& single) {
    if (!batch.all_seconds.empty())
      fmt::print("  {:<28}{:>14.4g}{:>14.4g}{:>9.3g}\n", what, batch.seconds, single.seconds,
                 single.seconds / batch.seconds);
  };
  line("factor", row.together.factor, row.one_by_one.factor);
  line("solve", row.together.solve, row.one_by_one.solve);
  line("factor, values on the GPU", row.together.factor_there, row.one_by_one.factor_there);
  line("solve, vectors on the GPU", row.together.solve_there, row.one_by_one.solve_there);
  fmt::print("  largest backward error {:.2g}; {} solutions with other bits one by one\n",
             row.backward_error, row.different);
}

}  // namespace

int run_batch_comparison(const SparseBenchArguments& arguments, const bench::SparseBench& bench,
                         const CommonOptions& common) {
  Json object = {
      {"benchmark", "sparse batch"}, {"repeats", bench.repeats}, {"results", Json::array()}};
  for (const std::string& name : arguments.matrices) {
    const BatchRow row = bench::run_batch_bench(name, bench_matrix(name), arguments.batch, bench);
    check_interrupt();
    end_progress();
    object["results"].push_back(row_json(row));
    if (!common.json) print_row(row);
  }
  if (!arguments.output.empty()) {
    begin_output();
    OutputFile file(arguments.output);
    file.write(object.dump(2) + "\n");
    file.commit();
  }
  if (common.json) fmt::print("{}\n", object.dump());
  return kDone;
}

}  // namespace strata::cli
