#include "cli/general_solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/check.hpp"
#include "cli/dense_system.hpp"
#include "cli/sparse.hpp"
#include "scalar/complex.hpp"

namespace strata::cli {
namespace {

Json json_of(const Determinant& det, bool complex) {
  Json object = {{"log", number(det.log())}};
  if (complex) {
    const std::complex<double> value = det.complex_value();
    object["phase"] = Json::array({number(det.phase.real()), number(det.phase.imag())});
    object["value"] = Json::array({number(value.real()), number(value.imag())});
  } else {
    object["sign"] = det.sign;
    object["value"] = number(det.value());
  }
  return object;
}

/// "a negative determinant", "a determinant of phase 0.3".
/// What bounds the error of the logarithm bounds that of the phase, too: log1p of a matrix that is
/// small has imaginary parts no larger than the bound of its real ones.
std::string described(const Determinant& det, double error, bool complex) {
  if (complex && !(error < 1)) return "a determinant whose phase is not known";
  if (complex) {
    const int digits = std::clamp(static_cast<int>(std::floor(-std::log10(error))), 0, 6);
    return fmt::format("a determinant of phase {:.{}f} ± {:.1e}", std::arg(det.phase), digits,
                       rounded_up(error + std::pow(10.0, -digits) / 2));
  }
  return det.sign < 0 ? "a negative determinant" : "a positive determinant";
}

bool is_mixed(const GeneralSystem& system) { return system.precision == "mixed"; }

Json json_of_mixed(const GeneralSolveResult& result) {
  return {{"factor_precision", to_string(result.factor_precision)},
          {"gmres_iterations", result.gmres_iterations},
          {"fallback", result.fallback.empty() ? Json(nullptr) : Json(result.fallback)}};
}

void print_mixed_precision(const GeneralSolveResult& result, const GeneralSystem& system) {
  if (!is_mixed(system)) return;
  const std::string_view precision = to_string(result.factor_precision);
  if (!result.fallback.empty()) {
    fmt::print("  factors           in {}, after those in fp32: {}\n", precision, result.fallback);
  } else if (result.gmres_iterations > 0) {
    fmt::print("  factors           in {}, which {} of GMRES refine\n", precision,
               counted(result.gmres_iterations, "iteration"));
  } else {
    fmt::print("  factors           in {}\n", precision);
  }
}

void print_solve(const GeneralSolveResult& result, const GeneralSystem& system) {
  const Certificate& c = result.certificate;
  const RunReport& factor = result.factor;
  fmt::print("solved {}, {}, in {} with {} ({}, tile {}, {})\n", counted(factor.n, "unknown"),
             counted(system.rhs.cols(), "right-hand side"), to_string(c.precision),
             fmt::join(factor.devices, ", "), factor.path, factor.tile, factor.policy);
  fmt::print("  method            LU: {}\n", system.why);
  print_mixed_precision(result, system);
  print_certificate(c, kRowsAndColumns);
  fmt::print("  growth            {:.3g} of elements in elimination\n", result.info.growth);
  print_lu_determinant(result.info.determinant, result.log_determinant_error,
                       system.matrix.is_complex());
  fmt::print("  refinement steps  {}\n", c.refinement_steps);
  fmt::print("  factor            {:.3g} s, {:.1f} GFLOP/s\n  total             {:.3g} s\n",
             factor.seconds, factor.seconds > 0 ? factor.flops / factor.seconds / 1e9 : 0,
             c.seconds);
  print_traffic(factor);
  fmt::print("x written to {}\n", system.output);
}

/// A solution in T of A as it is stored, or as it was widened.
template <class T, class A>
int solve_in(MatrixView<const A> stored, const GeneralSystem& system, const CommonOptions& common,
             const LuOptions& options) {
  const FactoredView<A> a = declared_view(stored, system.matrix, system.triangle);
  using W = WideOf<T>;
  const DenseMatrix<W> b = columns_of<W>(system.rhs, false);
  if constexpr (!std::is_same_v<T, W>) require_held_in_fp32(b.view(), system.rhs);
  check_interrupt();
  DenseMatrix<T> x{std::vector<T>(b.values.size()), b.rows, b.cols};
  GeneralSolveResult result;
  if constexpr (std::is_same_v<T, A> && std::is_same_v<T, W>) {
    result = is_mixed(system) ? solve_general_mixed(a.view, b.view(), x.view(), options)
                              : solve_general(a.view, b.view(), x.view(), options);
  } else {
    result = solve_general(a.view, b.view(), x.view(), options);
  }
  const Certificate& certificate = result.certificate;
  Json object = to_json(result.factor);
  object["method"] = "lu";
  object["why"] = system.why;
  if (is_mixed(system)) object["mixed"] = json_of_mixed(result);
  object["factor"] = json_of_outcome(result.info, is_complex_v<T>);
  object["certificate"] = to_json(certificate);
  if (!result.info.ok)
    return report_failure(
        common, "solve: " + why_no_factor(result.info, system.matrix.path(), certificate.precision),
        object);
  object["solve"] = to_json(result.solve);
  object["hpl_residual"] = number(result.hpl_residual);
  object["log_determinant_error"] = number(result.log_determinant_error);
  const bool singular = numerically_singular(certificate.scaled_condition, certificate.precision);
  object["numerically_singular"] = singular;
  const SolutionCheck check{certificate, b.rows, singular, false, kRowsAndColumns};
  add_to_json(check, object);
  ReportData data;
  data.title = fmt::format("A system of {}, solved", counted(b.rows, "unknown"));
  data.subtitle = fmt::format("{} with {}, by LU in {}", system.matrix.path(), system.rhs.path(),
                              to_string(result.factor_precision));
  data.figures = {
      {"Backward error", fmt::format("{:.1e}", rounded_up(certificate.backward_error)), "", ""},
      {"Log determinant", fmt::format("{:.8g}", certificate.factor.log_determinant), "", ""}};
  data.run = result.factor;
  begin_output();
  const bool finite = std::all_of(x.values.begin(), x.values.end(), is_finite<T>);
  write_solution(system.output, std::move(x), system.rhs, false);
  (void)finish(common, std::move(data), object, [&] { print_solve(result, system); });
  return finite ? report_solution(check) : report_out_of_range(certificate.precision);
}

}  // namespace

Json json_of_outcome(const LuInfo& info, bool complex) {
  return {{"ok", info.ok},
          {"zero_pivot", info.zero_pivot},
          {"not_finite", info.not_finite},
          {"growth", number(info.growth)},
          {"determinant", json_of(info.determinant, complex)}};
}

void print_lu_determinant(const Determinant& det, double error, bool complex) {
  if (std::isfinite(error)) {
    fmt::print("  log determinant   {:.15g} ± {:.1e}, of {}\n", det.log(), rounded_up(error),
               described(det, error, complex));
  } else if (std::isnan(error)) {
    fmt::print("  log determinant   {:.15g}, of {}; its error is unknown\n", det.log(),
               described(det, error, complex));
  } else {
    fmt::print("  log determinant   {:.15g}, of which not a digit is known, nor its {}\n",
               det.log(), complex ? "phase" : "sign");
  }
}

std::string why_no_factor(const LuInfo& info, const std::string& path, Element precision,
                          bool transposed) {
  const std::string_view line = transposed ? "row" : "column";
  if (info.not_finite >= 0)
    return fmt::format("{}: elimination leaves the range of {} in {} {}, counted from 0", path,
                       to_string(precision), line, info.not_finite);
  return fmt::format("{}: the matrix is singular: the pivot of {} {} is zero, counted from 0", path,
                     line, info.zero_pivot);
}

int run_general_solve(const GeneralSystem& system, const CommonOptions& common,
                      const LuOptions& options) {
  const auto solve_with = [&]<class T, class A>(T, MatrixView<const A> a) {
    return solve_in<T>(a, system, common, options);
  };
  return system.matrix.is_complex() ? solve_in_either<std::complex<float>, std::complex<double>>(
                                          system.matrix, system.rhs, system.precision, solve_with)
                                    : solve_in_either<float, double>(system.matrix, system.rhs,
                                                                     system.precision, solve_with);
}

}  // namespace strata::cli
