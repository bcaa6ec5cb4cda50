// What qr() would do, without data.
//
// Method: the passes of the automatic method follow from the condition; each is planned and
// simulated from what the one before it leaves on the devices, as PassRunner has them run.

#include <chrono>

#include "base/check.hpp"
#include "qr/row_passes.hpp"
#include "qr/tall_problem.hpp"
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

/// Elements of R and of the Gram matrix of a pass; the first pass, 0, has no R.
struct PassElements {
  Element factor, sum;
};
PassElements elements_of(int pass, int solves, bool doubles) {
  const Element plain = doubles ? Element::fp64 : Element::fp32;
  const Element wide = doubles ? Element::dd : Element::fp64;
  if (pass == 0) return {Element::fp64, wide};
  if (!doubles) return {pass > 1 && pass == solves ? plain : wide, wide};
  const bool shifted = pass == 1 && solves == 3;
  return {shifted || solves == 1 ? wide : plain, shifted ? wide : plain};
}

}  // namespace

RunReport simulate_qr(std::int64_t m, std::int64_t n, const Machine& machine,
                      const QrOptions& options, Element precision, double condition) {
  require(n >= 1 && n <= kQrColumnsMax && m >= n, ErrorKind::misuse, "qr",
          "a plan is of m rows and n columns, 1 <= n <= {} and n <= m, not of {} by {}",
          kQrColumnsMax, m, n);
  require(precision == Element::fp64 || precision == Element::fp32, ErrorKind::misuse, "qr",
          "V is of fp64 or fp32");
  require(condition >= 1, ErrorKind::misuse, "qr", "a condition of {} is below 1", condition);
  const bool wide = precision == Element::fp64;
  const int solves = wide ? solves_of<double>(condition) : solves_of<float>(condition);
  const Element sum = wide ? Element::dd : Element::fp64;
  RowProblem problem{.pass = RowPass::solve_gram, .m = m, .n = n};
  problem.devices = static_cast<int>(machine.devices.size());
  problem.element = precision;
  problem.block_elements = pass_block_elements(m, n, precision, machine);
  problem.sum = problem.factor = sum;
  problem.identity = 1;
  const auto schedule = [&] { return std::make_shared<const Schedule>(row_pass(problem)); };
  const PlanOptions of_policy = options_of(options.run.policy);
  // Room for the widest pass from the beginning.
  const Plan widest(schedule(), machine, of_policy);
  Residency residency;
  for (std::size_t d = 0; d < machine.devices.size(); ++d)
    residency.devices.push_back(
        {.arena_bytes = widest.layout().device(d).arena_bytes, .blocks = {}});
  RunReport report;
  for (int pass = 0; pass <= solves; ++pass) {
    problem.pass = pass == 0                           ? RowPass::gram
                   : pass == solves && !options.verify ? RowPass::solve
                                                       : RowPass::solve_gram;
    const PassElements elements = elements_of(pass, solves, wide);
    problem.factor = elements.factor;
    problem.sum = elements.sum;
    problem.stays = pass < solves;
    const auto begin = std::chrono::steady_clock::now();
    PlannedRun planned = make_planned_run(schedule(), machine, of_policy,
                                          to_string(options.run.policy), std::move(residency));
    planned.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    planned.n = n;
    planned.tile = block_rows(problem);
    const std::int64_t bytes = m * n * bytes_of(precision);
    planned.floor_bytes = (pass == 0 ? bytes : 0) + (pass == solves ? bytes : 0);
    residency = planned.plan->end();
    if (pass == 0) {
      report = make_simulated_report(std::move(planned));
    } else {
      accumulate_with_trace(report, make_simulated_report(std::move(planned)));
    }
  }
  return report;
}

}  // namespace strata
