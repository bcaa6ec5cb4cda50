// GeneralFactor of strata/lu.hpp: a factor in one of four formats, its file, and solves with it.

#include <algorithm>
#include <chrono>
#include <complex>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/check.hpp"
#include "base/checksum_file.hpp"
#include "base/elapsed_time.hpp"
#include "base/pending_path.hpp"
#include "lu/certified_solve.hpp"
#include "lu/scaled_factor.hpp"

namespace strata {
namespace {

constexpr FileFormat kGeneralFactorFormat{"general factor", 1, "factor"};

using AnyFactor = std::variant<ScaledFactor<double, double>, ScaledFactor<float, double>,
                               ScaledFactor<std::complex<double>, std::complex<double>>,
                               ScaledFactor<std::complex<float>, std::complex<double>>>;

template <class N, class W>
[[nodiscard]] constexpr bool is_narrow(const ScaledFactor<N, W>&) {
  return !std::is_same_v<N, W>;
}

/// use(factor) where its solutions are in W.
template <class W, class Use>
auto with_factor_of(AnyFactor& any, const Use& use) {
  using Narrow = ScaledFactor<NarrowOf<W>, W>;
  using Full = ScaledFactor<W, W>;
  require(std::holds_alternative<Narrow>(any) || std::holds_alternative<Full>(any),
          ErrorKind::misuse, "solve", "a factor of {} numbers cannot solve for {} ones",
          is_complex_v<W> ? "real" : "complex", is_complex_v<W> ? "complex" : "real");
  if (auto* narrow = std::get_if<Narrow>(&any)) return use(*narrow);
  return use(std::get<Full>(any));
}

void require_usable(const LuInfo& info) {
  require(info.ok, ErrorKind::misuse, "factor", "there is no factor: {} in column {}",
          info.not_finite >= 0 ? "a number that is not finite" : "a pivot of zero",
          info.not_finite >= 0 ? info.not_finite : info.zero_pivot);
}

template <class W>
RunReport solve_plainly(AnyFactor& any, MatrixView<const W> b, MatrixView<W> x) {
  return with_factor_of<W>(any, [&](auto& factor) {
    require_usable(factor.info());
    require(b.rows == factor.n() && x.rows == b.rows && x.cols == b.cols, ErrorKind::misuse,
            "solve",
            "right-hand sides of {} by {} and solutions of {} by {} do not fit a factor of "
            "order {}",
            b.rows, b.cols, x.rows, x.cols, factor.n());
    RunReport report;
    const DenseBlockOf<W> y = factor.solve(b, false, 0, report);
    copy_columns<W, W>(y.view(), x);
    return report;
  });
}

template <class W>
GeneralSolveResult solve_certified(AnyFactor& any, MatrixView<const W> a, MatrixView<const W> b,
                                   MatrixView<W> x) {
  const auto start = std::chrono::steady_clock::now();
  return with_factor_of<W>(any, [&](auto& factor) {
    require_usable(factor.info());
    require(a.rows == factor.n() && a.cols == a.rows, ErrorKind::misuse, "solve",
            "a {} by {} matrix is not that of a factor of order {}", a.rows, a.cols, factor.n());
    check_solve_shapes(a, b, x);
    const ScaledSystem<W, W> system(a, b);
    GeneralSolveResult result;
    set_factor(factor.info(), factor.report(), result);
    const auto inverse = [&](MatrixView<const W> v, bool adjoint) {
      return factor.solve(v, adjoint, system.exponent(), result.solve);
    };
    typename CertifiedSolution<W, W>::Inverse precondition;
    if (is_narrow(factor))
      precondition = [&](MatrixView<const W> v, bool adjoint) {
        return factor.solve_wide(v, adjoint, system.exponent());
      };
    CertifiedSolution<W, W> solution(inverse, system, result, precondition);
    write_back<W, W>(solution.solve(), system, x);
    if (is_narrow(factor)) result.fallback = solution.shortcoming();
    factor.note(result.certificate.scaled_condition, result.log_determinant_error);
    Certificate& c = result.certificate;
    c.precision = element_of<W>;
    c.bytes_moved = result.factor.traffic.total() + result.solve.traffic.total();
    c.seconds = seconds_since(start);
    return result;
  });
}

}  // namespace

struct GeneralFactor::State {
  AnyFactor factor;
  Element precision;
};

GeneralFactor::GeneralFactor(std::unique_ptr<State> state) : state_(std::move(state)) {}
GeneralFactor::GeneralFactor(GeneralFactor&&) noexcept = default;
GeneralFactor& GeneralFactor::operator=(GeneralFactor&&) noexcept = default;
GeneralFactor::~GeneralFactor() = default;

std::int64_t GeneralFactor::n() const noexcept {
  return std::visit([](const auto& factor) { return factor.n(); }, state_->factor);
}
Element GeneralFactor::precision() const noexcept { return state_->precision; }
const LuInfo& GeneralFactor::info() const noexcept {
  return std::visit([](const auto& factor) -> const LuInfo& { return factor.info(); },
                    state_->factor);
}
const RunReport& GeneralFactor::report() const noexcept {
  return std::visit([](const auto& factor) -> const RunReport& { return factor.report(); },
                    state_->factor);
}

double GeneralFactor::scaled_condition() const noexcept {
  return std::visit([](const auto& factor) { return factor.header().scaled_condition; },
                    state_->factor);
}
double GeneralFactor::log_determinant_error() const noexcept {
  return std::visit([](const auto& factor) { return factor.header().log_determinant_error; },
                    state_->factor);
}

bool GeneralFactor::is_at(const std::string& directory) {
  const std::string path = directory + "/factor";
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  std::string found(kGeneralFactorFormat.prefix().size(), '\0');
  file.read(found.data(), std::ssize(found));
  return file.good() && found == kGeneralFactorFormat.prefix();
}

void GeneralFactor::save(const std::string& directory) const {
  require_usable(info());
  PendingDirectory place(directory, kGeneralFactorFormat.where);
  ChecksumWriter writer(directory + "/factor", kGeneralFactorFormat);
  std::visit([&](const auto& factor) { factor.save(writer); }, state_->factor);
  writer.finish();
  place.keep();
}

GeneralFactor GeneralFactor::open(const std::string& directory, const Options& options) {
  const std::string path = directory + "/factor";
  ChecksumReader reader(path, kGeneralFactorFormat);
  SavedFactor header = read_header(reader, path);
  const Element precision = header.element;
  const auto read = [&]<class F>(std::in_place_type_t<F> type) {
    return std::make_unique<State>(
        State{AnyFactor(type, std::move(header), reader, options), precision});
  };
  std::unique_ptr<State> state;
  switch (precision) {
    case Element::fp32: state = read(std::in_place_type<ScaledFactor<float, double>>); break;
    case Element::complex128:
      state = read(std::in_place_type<ScaledFactor<std::complex<double>, std::complex<double>>>);
      break;
    case Element::complex64:
      state = read(std::in_place_type<ScaledFactor<std::complex<float>, std::complex<double>>>);
      break;
    default: state = read(std::in_place_type<ScaledFactor<double, double>>); break;
  }
  reader.finish();
  return GeneralFactor(std::move(state));
}

RunReport GeneralFactor::solve(MatrixView<const double> b, MatrixView<double> x) {
  return solve_plainly(state_->factor, b, x);
}
RunReport GeneralFactor::solve(MatrixView<const std::complex<double>> b,
                               MatrixView<std::complex<double>> x) {
  return solve_plainly(state_->factor, b, x);
}
GeneralSolveResult GeneralFactor::solve(MatrixView<const double> a, MatrixView<const double> b,
                                        MatrixView<double> x) {
  GeneralSolveResult result = solve_certified(state_->factor, a, b, x);
  result.factor_precision = precision();
  return result;
}
GeneralSolveResult GeneralFactor::solve(MatrixView<const std::complex<double>> a,
                                        MatrixView<const std::complex<double>> b,
                                        MatrixView<std::complex<double>> x) {
  GeneralSolveResult result = solve_certified(state_->factor, a, b, x);
  result.factor_precision = precision();
  return result;
}

namespace {

template <class W>
GeneralFactor factor_any(MatrixView<const W> a, Element precision, const Options& options) {
  require(a.rows == a.cols, ErrorKind::misuse, "factor", "a {} by {} matrix is not square", a.rows,
          a.cols);
  const Element parts = element_of_parts(precision);
  require(parts == Element::fp64 || parts == Element::fp32, ErrorKind::misuse, "factor",
          "a factor cannot be in {}", to_string(precision));
  const DenseBlockOf<W> none(a.rows, 0);
  const ScaledSystem<W, W> system(a, none.view());
  using State = GeneralFactor::State;
  if (parts == Element::fp64)
    return GeneralFactor(std::make_unique<State>(
        State{AnyFactor(std::in_place_type<ScaledFactor<W, W>>, system, options), element_of<W>}));
  return GeneralFactor(std::make_unique<State>(
      State{AnyFactor(std::in_place_type<ScaledFactor<NarrowOf<W>, W>>, system, options),
            element_of<NarrowOf<W>>}));
}

}  // namespace

GeneralFactor factor_general(MatrixView<const double> a, Element precision,
                             const Options& options) {
  return factor_any(a, precision, options);
}
GeneralFactor factor_general(MatrixView<const std::complex<double>> a, Element precision,
                             const Options& options) {
  return factor_any(a, precision, options);
}

}  // namespace strata
