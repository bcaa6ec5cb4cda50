// Lanczos beside a factor.

#include "cholesky/tile_factor.hpp"
#include "kernels/covariance/covariance_times.hpp"
#include "kernels/dense/gemm.hpp"

namespace strata {

LanczosProblem TileFactor::lanczos_problem(std::int64_t vectors, int steps_max) const {
  LanczosProblem problem;
  describe_factor(problem_, problem);
  problem.vectors = vectors;
  problem.products_at_once = solve_problem(vectors).products_at_once;
  problem.column_points_identity = session_.new_identity();
  problem.work_identity = session_.new_identity();
  return choose_lanczos_blocks(std::move(problem), steps_max, session_.machine());
}

RunReport TileFactor::step_lanczos(std::shared_ptr<const Schedule> schedule,
                                   std::shared_ptr<const Schedule> narrower,
                                   const std::vector<std::shared_ptr<FamilyMemory>>& families,
                                   const CovarianceParameters& parameters) {
  check_usable(Element::fp64, problem_.n);
  const BlockTable& blocks = schedule->blocks;
  std::vector<std::shared_ptr<FamilyMemory>> all{tiles_};
  all.insert(all.end(), families.begin(), families.end());
  MemoryStore store(blocks, std::move(all));
  IssueOptions options;
  options.values = {{covariance_times.name, &parameters}, {gemm.name, &scales_}};
  options.what = "log-determinant";
  options.progress = options_.run.progress;
  std::int64_t floor = blocks.total_bytes(lanczos::kSums);
  const bool first = blocks.families() == lanczos::kBasis + 1;
  floor += blocks.total_bytes(first ? lanczos::kBasis : lanczos::kNorms);
  run_use(floor, std::move(schedule), store, options, std::move(narrower));
  return take_report();
}

}  // namespace strata
