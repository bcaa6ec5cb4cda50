// What qr() and qr_r() would do, without data.
//
// Method: the passes of the automatic method follow from the condition; each is planned and
// simulated from what the one before it leaves on the devices, as PassRunner has them run.

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "qr/methods.hpp"
#include "qr/planned_passes.hpp"
#include "session/planned_run.hpp"
#include "session/policy.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

/// Solves by the automatic method.
template <class T>
int solves_of(double condition) {
  return condition <= Limits<T>::kOneSolve ? 1 : condition <= Limits<T>::kUnshifted ? 2 : 3;
}

/// Elements of R and of the Gram matrix of a pass; the first pass, 0, has no R. hides: whether a
/// solve in doubles would hide the condition; nearly: whether V is nearly orthonormal.
struct PassElements {
  Element factor, sum;
};
PassElements elements_of(int pass, int solves, bool doubles, bool hides, bool nearly) {
  const Element plain = doubles ? Element::fp64 : Element::fp32;
  const Element wide = doubles ? Element::dd : Element::fp64;
  if (pass == 0) return {Element::fp64, wide};
  const bool shifted = solves == 3;  // behind which all solves are wide
  const bool one_wide = solves == 1 && !nearly;
  if (!doubles) return {pass > 0 && pass == solves && !shifted && !one_wide ? plain : wide, wide};
  return {shifted || one_wide || (hides && pass == 1) ? wide : plain, plain};
}

/// What all passes have in common, and what is wrong with it.
RowProblem problem_of(std::int64_t m, std::int64_t n, const Machine& machine, Element precision,
                      double condition) {
  require(n >= 1 && m >= n, ErrorKind::misuse, "qr",
          "a plan is of m rows and n columns, 1 <= n <= m, not of {} by {}", m, n);
  require(n <= kQrColumnsMax, ErrorKind::misuse, "qr",
          "{} columns are more than the {} of a plan: qr() takes more, in blocks of {}, of each of "
          "which there is one",
          n, kQrColumnsMax, kColumnsOfBlock);
  require(precision == Element::fp64 || precision == Element::fp32, ErrorKind::misuse, "qr",
          "V is of fp64 or fp32");
  require(condition >= 1, ErrorKind::misuse, "qr", "a condition of {} is below 1", condition);
  RowProblem problem{.pass = RowPass::gram, .m = m, .n = n};
  problem.devices = static_cast<int>(machine.devices.size());
  problem.element = precision;
  problem.block_elements = pass_block_elements(m, n, precision, machine);
  problem.sum = problem.factor = precision == Element::fp64 ? Element::dd : Element::fp64;
  problem.identity = 1;
  return problem;
}

/// The machine with the memory by which passes over this matrix go.
Machine with_cache_budget(Machine machine, const QrOptions& options, const RowProblem& matrix,
                          std::vector<RowProblem> widest) {
  for (RowProblem& problem : widest) {
    problem.m = matrix.m;
    problem.n = matrix.n;
    problem.element = matrix.element;
    problem.sum = problem.factor = matrix.sum;
  }
  const std::int64_t bytes = cache_budget(options.run, machine, std::move(widest));
  for (DeviceModel& device : machine.devices)
    if (bytes > 0) device.memory_bytes = bytes;
  return machine;
}

std::string name_of(const RowProblem& problem) {
  const std::string sum = fmt::format("Gram matrix in {}", to_string(problem.sum));
  const std::string solve = fmt::format("solve in {}", to_string(problem.factor));
  switch (problem.pass) {
    case RowPass::count_gram: return "Gram matrix of a sketch";
    case RowPass::gram: return sum;
    case RowPass::solve: return solve;
    case RowPass::apply_gram: return solve + " that is not stored, " + sum;
    default: return solve + ", " + sum;
  }
}

/// The passes one after the other, with room for the widest from the beginning.
QrPlan simulated(const std::vector<RowProblem>& passes, const std::vector<RowProblem>& widest,
                 const Machine& machine, const QrOptions& options) {
  const auto schedule = [](const RowProblem& problem) {
    return std::make_shared<const Schedule>(row_pass(problem));
  };
  const PlanOptions of_policy = options_of(options.run.policy);
  Residency residency;
  residency.devices.resize(machine.devices.size());
  for (const RowProblem& problem : widest) {
    const Plan plan(schedule(problem), machine, of_policy);
    for (std::size_t d = 0; d < machine.devices.size(); ++d) {
      std::int64_t& bytes = residency.devices[d].arena_bytes;
      bytes = std::max(bytes, plan.layout().device(d).arena_bytes);
    }
  }
  const std::vector<Residency::Node> reserved = residency.devices;
  QrPlan plan;
  for (std::size_t pass = 0; pass < passes.size(); ++pass) {
    const RowProblem& problem = passes[pass];
    const auto begin = std::chrono::steady_clock::now();
    PlannedRun planned =
        make_planned_run(schedule(problem), machine, options.run.policy, std::move(residency));
    planned.seconds = seconds_since(begin);
    planned.n = problem.n;
    planned.tile = block_rows(problem);
    planned.floor_bytes = floor_of(problem, planned.plan->schedule().blocks, pass == 0);
    residency = planned.plan->end();
    for (std::size_t d = 0; d < reserved.size(); ++d)  // arenas do not shrink
      residency.devices[d].arena_bytes =
          std::max(residency.devices[d].arena_bytes, reserved[d].arena_bytes);
    RunReport report = make_simulated_report(std::move(planned));
    plan.passes.push_back(
        {name_of(problem), report.planned_traffic, report.predicted_seconds.value_or(0)});
    accumulate_with_trace(plan.report, std::move(report));
  }
  return plan;
}

}  // namespace

QrPlan simulate_qr(std::int64_t m, std::int64_t n, const Machine& given, const QrOptions& options,
                   Element precision, double condition) {
  const Machine machine =
      with_cache_budget(given, options, problem_of(m, n, given, precision, condition),
                        precision == Element::fp64 ? widest_passes<double>(m, n, options)
                                                   : widest_passes<float>(m, n, options));
  RowProblem problem = problem_of(m, n, machine, precision, condition);
  problem.wide_sums = wide_sums_of(options.wide_sums, n, machine);
  const bool doubles = precision == Element::fp64;
  std::vector<RowProblem> widest =
      doubles ? widest_passes<double>(m, n, options) : widest_passes<float>(m, n, options);
  for (RowProblem& of : widest) {
    const RowPass pass = of.pass;
    of = problem;
    of.pass = pass;
  }
  std::vector<RowProblem> passes;
  const bool sketched = doubles && begins_with_sketch<double>(m, n, options);
  if (sketched) {
    problem.pass = RowPass::count_gram;
    problem.factor = Element::fp64;
    passes.push_back(problem);
  }
  // What a sketch was good for takes two solves, as after a wide sum, whose place it takes.
  const bool good = sketched && condition <= sketched_condition_max(n);
  const bool hides = doubles && !good && hides_condition<double>(n, condition);
  const bool nearly = !good && condition <= kNearlyOrthonormal;
  const int solves = good      ? 2
                     : doubles ? solves_of<double>(condition)
                               : solves_of<float>(condition);
  for (int pass = good ? 1 : 0; pass <= solves; ++pass) {
    const bool last = pass == solves;
    const bool shifted = pass == 1 && solves == 3;
    const PassElements elements = elements_of(pass, solves, doubles, hides, nearly);
    problem.factor = elements.factor;
    if (shifted) {  // V is looked at behind the shift before it is stored
      problem.pass = RowPass::apply_gram;
      problem.sum = elements_of(0, solves, doubles, hides, nearly).sum;
      passes.push_back(problem);
    }
    problem.pass = pass == 0                              ? RowPass::gram
                   : shifted || (last && !options.verify) ? RowPass::solve
                                                          : RowPass::solve_gram;
    problem.sum = elements.sum;
    problem.stays = !last;
    passes.push_back(problem);
  }
  return simulated(passes, widest, machine, options);
}

QrPlan simulate_qr_r(std::int64_t m, std::int64_t n, const Machine& given, const QrOptions& options,
                     Element precision, double condition) {
  const Machine machine =
      with_cache_budget(given, options, problem_of(m, n, given, precision, condition),
                        {{.pass = RowPass::apply_gram}});
  RowProblem problem = problem_of(m, n, machine, precision, condition);
  problem.wide_sums = wide_sums_of(options.wide_sums, n, machine);
  const double once =
      precision == Element::fp64 ? Limits<double>::kUnshifted : Limits<float>::kUnshifted;
  RowProblem widest = problem;
  widest.pass = RowPass::apply_gram;
  std::vector<RowProblem> passes{problem};
  passes[0].factor = Element::fp64;
  if (condition > once) passes.push_back(widest);
  return simulated(passes, {widest}, machine, options);
}

}  // namespace strata
