// strata logdet of a dense Hermitian matrix of complex numbers. Real ones are factored as sparse
// matrices: sparse_factor.cpp.

#include <fmt/format.h>

#include <cmath>

#include "cli/app.hpp"
#include "cli/dense_system.hpp"
#include "cli/sparse.hpp"

namespace strata::cli {
namespace {

/// log|A| in T of what is stored in A. What A loses by narrowing, half a unit of each element, is
/// within what is said of the factor.
template <class T, class A>
LogDeterminant determinant_in(const MatrixFile& file, const std::string& triangle,
                              const CholeskyOptions& options, GivenTriangles given) {
  const FactoredView<A> factored = factored_view(file.stored<A>(), file, triangle, false);
  if constexpr (std::is_same_v<T, A>) {
    return log_determinant(factored.view, options, given);
  } else {
    if constexpr (std::is_same_v<T, std::complex<float>>) require_held_in_fp32(factored.view, file);
    DenseMatrix<T> copy{{}, factored.view.rows, factored.view.cols};
    copy.values.reserve(static_cast<std::size_t>(factored.view.size()));
    for (std::int64_t j = 0; j < factored.view.cols; ++j) {
      for (std::int64_t i = 0; i < factored.view.rows; ++i)
        copy.values.push_back(static_cast<T>(factored.view(i, j)));
    }
    return log_determinant(std::as_const(copy).view(), options, given);
  }
}

LogDeterminant determinant_of(const MatrixFile& file, const FactorArguments& arguments,
                              const CholeskyOptions& options, GivenTriangles given) {
  using Narrow = std::complex<float>;
  using Wide = std::complex<double>;
  const std::string& triangle = arguments.triangle;
  if (arguments.precision == "fp32") {
    return file.is_single() ? determinant_in<Narrow, Narrow>(file, triangle, options, given)
                            : determinant_in<Narrow, Wide>(file, triangle, options, given);
  }
  return file.is_single() ? determinant_in<Wide, Narrow>(file, triangle, options, given)
                          : determinant_in<Wide, Wide>(file, triangle, options, given);
}

void print_determinant(const LogDeterminant& d) {
  const RunReport& run = d.run;
  fmt::print("factored {}, in {} with {} ({}, tile {}, {})\n", counted(run.n, "unknown"),
             to_string(d.precision), fmt::join(run.devices, ", "), run.path, run.tile, run.policy);
  fmt::print("  log determinant   {:.15g}\n", d.factor.log_determinant);
  if (std::isfinite(d.error)) {
    fmt::print("  error             at most about {:.1e} (absolute)\n", rounded_up(d.error));
  } else {
    fmt::print("  error             not a digit is known\n");
  }
  print_condition(d.scaled_condition);
  fmt::print("  factor            {:.3g} s, {:.1f} GFLOP/s\n  total             {:.3g} s\n",
             run.seconds, run.seconds > 0 ? run.flops / run.seconds / 1e9 : 0, d.seconds);
  print_traffic(run);
}

}  // namespace

int run_dense_logdet(const MatrixFile& file, const FactorArguments& arguments,
                     const std::vector<std::string>& storage, const CommonOptions& common) {
  std::vector<Option> of_sparse = arguments.added;
  std::erase_if(of_sparse, [](const Option& o) { return o.name() == "--precision"; });
  refuse_given(of_sparse, fmt::format("is an option of sparse matrices, and {} is of complex "
                                      "numbers, factored as a dense one",
                                      file.path()));
  const GivenTriangles given =
      check_symmetric(file, arguments.triangle) ? GivenTriangles::both : GivenTriangles::lower;
  CholeskyOptions options = common.cholesky_options();
  options.run.storage.directories = storage_directories(storage);
  const LogDeterminant d = determinant_of(file, arguments, options, given);
  Json object = to_json(d.run);
  object["factor"] = to_json(d.factor);
  object["precision"] = to_string(d.precision);
  if (!d.factor.ok) {
    const FailedPlace place =
        file.is_single() ? failed_place(file.stored<std::complex<float>>(), d.factor, d.precision)
                         : failed_place(file.stored<std::complex<double>>(), d.factor, d.precision);
    return report_failed_factor(common, d.factor, object, place);
  }
  const bool singular = numerically_singular(d.scaled_condition, d.precision);
  object["log_determinant"] = number(d.factor.log_determinant);
  object["log_determinant_error"] = number(d.error);
  object["scaled_condition"] = number(d.scaled_condition);
  object["numerically_singular"] = singular;
  ReportData data;
  data.title = fmt::format("The log-determinant of a matrix of order {}", d.run.n);
  data.subtitle = fmt::format("{}, in {}", file.path(), to_string(d.precision));
  data.figures = {{"Log determinant", fmt::format("{:.8g}", d.factor.log_determinant), "", ""}};
  data.run = d.run;
  const int status = finish(common, std::move(data), object, [&] { print_determinant(d); });
  if (d.run.n == 0) return status;
  if (singular) return report_singular(d.scaled_condition, d.precision, true);
  return std::isinf(d.error) ? report_unknown_determinant(d.precision) : status;
}

}  // namespace strata::cli
