// strata eigs A --which smallest by a factor: eigenvalues of A, or of A and M.

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "cli/krylov.hpp"
#include "cli/sparse.hpp"
#include "strata/shift_invert.hpp"

namespace strata::cli {
namespace {

Json numbers_json(const std::vector<double>& values) {
  Json list = Json::array();
  for (const double value : values) list.push_back(number(value));
  return list;
}

Json smallest_json(const ShiftInvertInfo& info, std::int64_t k) {
  Json object = to_json(info.report);
  object["eigs"] = {{"ok", info.ok},
                    {"k", k},
                    {"method", "shift-invert"},
                    {"values", numbers_json(info.values)},
                    {"residuals", numbers_json(info.residuals)},
                    {"bounds", numbers_json(info.bounds)},
                    {"converged", info.converged},
                    {"sigma", number(info.sigma)},
                    {"lost", number(info.lost)},
                    {"restarts", info.restarts},
                    {"solves", info.solves},
                    {"factorizations", info.factorizations},
                    {"orthogonality", number(info.orthogonality)},
                    {"seconds", info.seconds},
                    {"why", info.why}};
  if (!info.solve_report.path.empty()) object["solves"] = to_json(info.solve_report);
  return object;
}

void print_smallest(const ShiftInvertInfo& info, std::int64_t n, const SmallestArguments& a) {
  const bool with_mass = !a.mass.empty();
  constexpr std::size_t kShown = 10;
  fmt::print("{} of {} smallest eigenvalues of order {}{} with {}\n", info.converged, a.k, n,
             with_mass ? ", with a mass matrix," : "",
             fmt::format("{}", fmt::join(info.report.devices, ", ")));
  for (std::size_t i = 0; i < std::min(kShown, info.values.size()); ++i)
    fmt::print("  {:24.16g} ± {:.1e}   residual {:.1e}{}\n", info.values[i],
               rounded_up(info.bounds[i]), rounded_up(info.residuals[i]),
               info.ok || info.bounds[i] <= a.tolerance * (info.values[i] - info.sigma)
                   ? ""
                   : "   above the tolerance");
  if (info.values.size() > kShown)
    fmt::print("  … {} more with --json or --values\n", info.values.size() - kShown);
  fmt::print("  sigma             {:.6g}: no eigenvalue is below, for A - sigma {} was factored\n",
             info.sigma, with_mass ? "M" : "I");
  fmt::print("  solves            {}, in {} cycles, beside {}\n", info.solves, info.restarts,
             counted(info.factorizations, "factorization"));
  fmt::print("  orthogonality     {:.1e}\n", rounded_up(info.orthogonality));
  fmt::print("  time              {:.3g} s\n", info.seconds);
  print_traffic(info.report);
}

}  // namespace

int run_smallest(const SparseMatrix& a, const SmallestArguments& arguments,
                 const CommonOptions& common) {
  ShiftInvertOptions options;
  options.factoring.run = common.run_options();
  options.factoring.tile = common.tile;
  options.factoring.analysis.seed = common.seed;
  options.k = arguments.k;
  options.sigma = arguments.sigma;
  options.basis_size = arguments.basis_size;
  options.restarts_max = arguments.restarts_max;
  options.tolerance = arguments.tolerance;
  options.seed = common.seed;
  std::optional<SparseMatrix> mass;
  if (!arguments.mass.empty()) mass = read_both_triangles(arguments.mass, arguments.triangle);
  check_interrupt();
  DenseMatrix<double> vectors{std::vector<double>(static_cast<std::size_t>(a.rows * arguments.k)),
                              a.rows, arguments.k};
  const ShiftInvertInfo info =
      smallest_eigenpairs(a, mass ? &*mass : nullptr, vectors.view(), options);
  ReportData data;
  data.title = fmt::format("{} smallest eigenvalues of order {}", arguments.k, a.rows);
  data.subtitle = arguments.mass.empty()
                      ? arguments.matrix
                      : fmt::format("{} with {}", arguments.matrix, arguments.mass);
  data.run = info.report;
  begin_output();
  const auto count = static_cast<std::int64_t>(info.values.size());
  if (count > 0 && !arguments.vectors.empty())
    write_dense(arguments.vectors, std::as_const(vectors).view());
  if (count > 0 && !arguments.values.empty())
    write_dense(arguments.values, MatrixView<const double>{info.values.data(), count, 1, count}, 1);
  const int status = finish(common, std::move(data), smallest_json(info, arguments.k),
                            [&] { print_smallest(info, a.rows, arguments); });
  if (info.ok) return status;
  fmt::print(stderr, "strata: eigs: {}\n", info.why);
  return kNumbersSaidNo;
}

}  // namespace strata::cli
