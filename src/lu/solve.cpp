// General systems, solved and certified: solve_general() and solve_general_mixed() of
// strata/lu.hpp. The method is told in certified_solve.hpp.

#include <algorithm>
#include <chrono>
#include <complex>
#include <type_traits>
#include <utility>

#include "base/bytes.hpp"
#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/host_memory.hpp"
#include "base/index.hpp"
#include "lu/certified_solve.hpp"
#include "lu/scaled_factor.hpp"
#include "matrix/array_columns.hpp"
#include "scalar/dispatch.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

/// By factors in T; where rows are far apart, of R·A·C, scales rounded to powers of two.
template <class T, class A>
GeneralSolveResult solve_scaled(const ScaledSystem<A>& system, MatrixView<T> x,
                                const LuOptions& options) {
  using W = WideOf<T>;
  GeneralSolveResult result;
  ScaledFactor<T, W> factor(system, options,
                            system.rows_are_apart() ? FactorScales::balanced : FactorScales::none);
  set_factor(factor.info(), factor.report(), result);
  result.factor_precision = element_of<T>;
  if (!result.info.ok) return result;
  const auto inverse = [&](MatrixView<const W> b, bool adjoint) {
    return factor.solve(b, adjoint, system.exponent(), result.solve);
  };
  CertifiedSolution<A> solution(inverse, system, result,
                                factor.products(system, true, result.solve));
  write_back(solution.solve(), system, x);
  return result;
}

/// By factors in fp32, if that is as good; else `fallback` says why it is not, and x is as it was.
template <class T>
GeneralSolveResult solve_narrow(const ScaledSystem<T>& system, MatrixView<T> x,
                                const LuOptions& options) {
  GeneralSolveResult result;
  using N = NarrowOf<T>;
  LuOptions of_factor = options;
  of_factor.halves = true;
  ScaledFactor<N, T> factor(system, of_factor);
  set_factor(factor.info(), factor.report(), result);
  result.factor_precision = element_of<N>;
  if (!result.info.ok) {
    result.fallback = result.info.not_finite >= 0 ? "elimination in fp32 leaves its range"
                                                  : "in fp32 the matrix is singular";
    return result;
  }
  const auto inverse = [&](MatrixView<const T> b, bool adjoint) {
    return factor.solve(b, adjoint, system.exponent(), result.solve);
  };
  const auto precondition = [&](MatrixView<const T> b, bool adjoint) {
    return factor.solve_wide(b, adjoint, system.exponent());
  };
  CertifiedSolution<T> solution(inverse, system, result,
                                factor.products(system, true, result.solve), precondition);
  const DenseBlockOf<T>& y = solution.solve();
  result.fallback = solution.shortcoming();
  if (result.fallback.empty()) write_back(y, system, x);
  return result;
}

template <class T, class A>
GeneralSolveResult solve_system(MatrixView<const A> a, MatrixView<const WideOf<A>> b,
                                MatrixView<T> x, const LuOptions& options, bool narrow) {
  const auto start = std::chrono::steady_clock::now();
  require(a.rows == a.cols, ErrorKind::misuse, "solve", "a {} by {} matrix is not square", a.rows,
          a.cols);
  require(!options.run.storage.used(), ErrorKind::misuse, "solve",
          "a factor in storage is made by factor_general()");
  check_solve_shapes(a, b, x);
  const ScaledSystem<A> system(a, b, element_of<T>);
  GeneralSolveResult result;
  if constexpr (std::is_same_v<T, A> && std::is_same_v<T, WideOf<T>>) {
    if (narrow) result = solve_narrow(system, x, options);
  }
  if (!narrow || !result.fallback.empty()) {
    GeneralSolveResult before = std::exchange(result, solve_scaled(system, x, options));
    result.fallback = std::move(before.fallback);
    result.gmres_iterations = before.gmres_iterations;
    result.certificate.bytes_moved = before.factor.traffic.total() + before.solve.traffic.total();
  }
  Certificate& c = result.certificate;
  c.precision = element_of<T>;
  c.bytes_moved += result.factor.traffic.total() + result.solve.traffic.total();
  c.seconds = seconds_since(start);
  return result;
}

}  // namespace

namespace {

/// By factors of X's precision, or narrower ones first.
GeneralSolveResult solve_array(ConstArrayRef a, ConstArrayRef b, ArrayRef x,
                               const LuOptions& options, bool narrow) {
  return with_system(
      a, b, x,
      [&]<class A, class W, class T>(MatrixView<const A> of, MatrixView<const W> right,
                                     MatrixView<T> out) -> GeneralSolveResult {
        require(!narrow || (std::is_same_v<A, W> && std::is_same_v<T, W>), ErrorKind::misuse,
                "solve", "a system of {} and {} is not solved by narrower factors",
                to_string(element_of<A>), to_string(element_of<T>));
        if constexpr (std::is_same_v<T, A> || std::is_same_v<A, W>) {
          return solve_system(of, right, out, options, narrow);
        } else {
          fail(ErrorKind::misuse, "solve", "a matrix of {} is not factored in {}",
               to_string(element_of<A>), to_string(element_of<T>));
        }
      });
}

}  // namespace

GeneralSolveResult solve_general(ConstArrayRef a, ConstArrayRef b, ArrayRef x,
                                 const LuOptions& options) {
  return solve_array(a, b, x, options, false);
}
GeneralSolveResult solve_general_mixed(ConstArrayRef a, ConstArrayRef b, ArrayRef x,
                                       const LuOptions& options) {
  return solve_array(a, b, x, options, true);
}

GeneralSolveResult inverse_general(ConstArrayRef a, ArrayRef x, const LuOptions& options) {
  check_array(a, "inverse");
  require(a.rows == a.cols, ErrorKind::misuse, "inverse", "a {} by {} matrix is not square", a.rows,
          a.cols);
  const std::int64_t n = a.rows;
  const std::int64_t bytes = n * n * bytes_of(Element::fp64) * (is_complex(a.element) ? 2 : 1);
  require(bytes <= available_host_memory(), ErrorKind::memory, "inverse",
          "the identity of order {} takes {}, and {} of host memory are free", n,
          format_bytes(bytes), format_bytes(available_host_memory()));
  return dispatch_blas(a.element, [&]<class A>(std::type_identity<A>) {
    using W = WideOf<A>;
    std::vector<W> identity(at(n * n));
    for (std::int64_t i = 0; i < n; ++i) identity[at(i * (n + 1))] = W{1};
    return solve_general(a, MatrixView<const W>{identity.data(), n, n, n}, x, options);
  });
}

}  // namespace strata
