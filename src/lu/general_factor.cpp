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
#include "matrix/array_columns.hpp"

namespace strata {
namespace {

constexpr FileFormat kGeneralFactorFormat{"general factor", 2, "factor"};
constexpr FileFormat kStoredFactorFormat{"factor in storage", 2, "factor"};

bool begins_with(const std::string& path, const std::string& prefix) {
  std::ifstream file(path, std::ios::binary);
  std::string found(prefix.size(), '\0');
  file.read(found.data(), std::ssize(found));
  return file.good() && found == prefix;
}

/// A factor in the format that `precision` names, made by make(std::in_place_type<…>).
template <class Make>
auto of_precision(Element precision, const Make& make) {
  switch (precision) {
    case Element::fp32: return make(std::in_place_type<ScaledFactor<float, double>>);
    case Element::complex128:
      return make(std::in_place_type<ScaledFactor<std::complex<double>, std::complex<double>>>);
    case Element::complex64:
      return make(std::in_place_type<ScaledFactor<std::complex<float>, std::complex<double>>>);
    default: return make(std::in_place_type<ScaledFactor<double, double>>);
  }
}

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
GeneralSolveResult solve_certified(AnyFactor& any, const SlabbedMatrix<W>& a, MatrixView<const W> b,
                                   MatrixView<W> x) {
  const auto start = std::chrono::steady_clock::now();
  return with_factor_of<W>(any, [&](auto& factor) {
    require_usable(factor.info());
    require(a.n() == factor.n(), ErrorKind::misuse, "solve",
            "a matrix of order {} is not that of a factor of order {}", a.n(), factor.n());
    check_solve_shapes(MatrixView<const W>{nullptr, a.n(), a.n(), a.n()}, b, x);
    const ScaledSystem<W> system(a, b, element_of<W>);
    GeneralSolveResult result;
    set_factor(factor.info(), factor.report(), result);
    const auto inverse = [&](MatrixView<const W> v, bool adjoint) {
      return factor.solve(v, adjoint, system.exponent(), result.solve);
    };
    typename CertifiedSolution<W>::Inverse precondition;
    if (is_narrow(factor))
      precondition = [&](MatrixView<const W> v, bool adjoint) {
        return factor.solve_wide(v, adjoint, system.exponent());
      };
    CertifiedSolution<W> solution(inverse, system, result,
                                  factor.products(system, false, result.solve), precondition);
    write_back(solution.solve(), system, x);
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
  std::vector<std::string> directories;  ///< of storage
  std::int64_t host_memory_bytes = 0;    ///< as of the options
};

namespace {

GeneralFactor open_stored(const std::string& directory, const std::string& path,
                          const RunOptions& options) {
  ChecksumReader reader(path, kStoredFactorFormat);
  StoredPlace place;
  SavedFactor header = read_stored_header(reader, path, place);
  reader.finish();
  RunOptions in_storage = options;
  in_storage.storage.resume = in_storage.storage.to_read = true;
  if (!options.storage.used()) in_storage.storage.directories = place.directories_from(directory);
  const Element precision = header.element;
  return GeneralFactor(of_precision(precision, [&]<class F>(std::in_place_type_t<F> type) {
    return std::make_unique<GeneralFactor::State>(
        GeneralFactor::State{AnyFactor(type, std::move(header), place, in_storage), precision,
                             in_storage.storage.directories, options.host_memory_bytes});
  }));
}

}  // namespace

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
  return begins_with(path, kGeneralFactorFormat.prefix()) ||
         begins_with(path, kStoredFactorFormat.prefix());
}

FactorProgress general_factor_progress(const std::string& directory) {
  return StoredPanels::progress_at(directory);
}

bool GeneralFactor::by_rows() const noexcept {
  return std::visit([](const auto& factor) { return factor.header().transposed; }, state_->factor);
}

StoredParts GeneralFactor::stored() const {
  return std::visit([](auto& factor) { return factor.stored(); }, state_->factor);
}

void GeneralFactor::save(const std::string& directory) const {
  require_usable(info());
  const bool in_storage = stored().count > 0;
  PendingDirectory place(directory, kGeneralFactorFormat.where);
  ChecksumWriter writer(directory + "/factor",
                        in_storage ? kStoredFactorFormat : kGeneralFactorFormat);
  std::visit(
      [&](auto& factor) {
        factor.save(writer);
        if (in_storage)
          save_place(StoredPlace::seen_from(directory, factor.place().matrix, state_->directories),
                     writer);
      },
      state_->factor);
  writer.finish();
  place.keep();
}

GeneralFactor GeneralFactor::open(const std::string& directory, const RunOptions& options) {
  const std::string path = directory + "/factor";
  if (begins_with(path, kStoredFactorFormat.prefix())) return open_stored(directory, path, options);
  ChecksumReader reader(path, kGeneralFactorFormat);
  SavedFactor header = read_header(reader, path);
  const Element precision = header.element;
  RunOptions in_memory = options;
  in_memory.storage = {};
  auto state = of_precision(precision, [&]<class F>(std::in_place_type_t<F> type) {
    return std::make_unique<State>(State{AnyFactor(type, std::move(header), reader, in_memory),
                                         precision,
                                         {},
                                         options.host_memory_bytes});
  });
  reader.finish();
  return GeneralFactor(std::move(state));
}

RunReport GeneralFactor::solve(ConstArrayRef b, ArrayRef x) {
  return with_wide(b, x,
                   [&](auto right, auto out) { return solve_plainly(state_->factor, right, out); });
}

namespace {

/// Columns of a slab: of a few tens of MiB, and an eighth of the host memory that may be used.
template <class W>
SlabbedMatrix<W> slabbed(const MatrixSource<W>& a, std::int64_t host_memory_bytes) {
  require(a.n >= 0 && (a.fill != nullptr || a.n == 0), ErrorKind::misuse, "factor",
          "there is no source of a matrix of order {}", a.n);
  constexpr std::int64_t kSlabBytes = std::int64_t{64} << 20;
  const std::int64_t bytes =
      host_memory_bytes > 0 ? std::min(kSlabBytes, host_memory_bytes / 8) : kSlabBytes;
  const std::int64_t column = std::max<std::int64_t>(a.n, 1) * std::int64_t{sizeof(W)};
  return {a.n, a.by_rows, bytes / column, a.fill};
}

template <class W>
SlabbedMatrix<W> whole(MatrixView<const W> a, const char* where) {
  require(a.rows == a.cols, ErrorKind::misuse, where, "a {} by {} matrix is not square", a.rows,
          a.cols);
  return SlabbedMatrix<W>(a);
}

template <class W>
GeneralFactor factor_any(const SlabbedMatrix<W>& a, Element precision, const LuOptions& options) {
  const Element parts = element_of_parts(precision);
  require(parts == Element::fp64 || parts == Element::fp32, ErrorKind::misuse, "factor",
          "a factor cannot be in {}", to_string(precision));
  const DenseBlockOf<W> none(a.n(), 0);
  const ScaledSystem<W> system(a, none.view(), element_of<W>);
  const auto make = [&]<class F>(std::in_place_type_t<F> type, Element element) {
    return GeneralFactor(std::make_unique<GeneralFactor::State>(
        GeneralFactor::State{AnyFactor(type, system, options), element,
                             options.run.storage.directories, options.run.host_memory_bytes}));
  };
  return parts == Element::fp64
             ? make(std::in_place_type<ScaledFactor<W, W>>, element_of<W>)
             : make(std::in_place_type<ScaledFactor<NarrowOf<W>, W>>, element_of<NarrowOf<W>>);
}

template <class W>
GeneralSolveResult solve_with(GeneralFactor::State& state, const SlabbedMatrix<W>& a,
                              MatrixView<const W> b, MatrixView<W> x) {
  GeneralSolveResult result = solve_certified(state.factor, a, b, x);
  result.factor_precision = state.precision;
  return result;
}

}  // namespace

GeneralSolveResult GeneralFactor::solve(ConstArrayRef a, ConstArrayRef b, ArrayRef x) {
  return with_wide(b, x, [&]<class W>(MatrixView<const W> right, MatrixView<W> out) {
    const ReadColumns<W> of(a, "solve");
    return solve_with(*state_, whole(of.view(), "solve"), right, out);
  });
}
GeneralSolveResult GeneralFactor::solve(const MatrixSource<double>& a, ConstArrayRef b,
                                        ArrayRef x) {
  return with_wide<double>(b, x, [&](auto right, auto out) {
    return solve_with(*state_, slabbed(a, state_->host_memory_bytes), right, out);
  });
}
GeneralSolveResult GeneralFactor::solve(const MatrixSource<std::complex<double>>& a,
                                        ConstArrayRef b, ArrayRef x) {
  return with_wide<std::complex<double>>(b, x, [&](auto right, auto out) {
    return solve_with(*state_, slabbed(a, state_->host_memory_bytes), right, out);
  });
}

GeneralFactor factor_general(ConstArrayRef a, Element precision, const LuOptions& options) {
  const auto factored = [&]<class W>(std::type_identity<W>) {
    const ReadColumns<W> of(a, "factor");
    return factor_any(whole(of.view(), "factor"), precision, options);
  };
  return is_complex(a.element) ? factored(std::type_identity<std::complex<double>>{})
                               : factored(std::type_identity<double>{});
}
GeneralFactor factor_general(const MatrixSource<double>& a, Element precision,
                             const LuOptions& options) {
  return factor_any(slabbed(a, options.run.host_memory_bytes), precision, options);
}
GeneralFactor factor_general(const MatrixSource<std::complex<double>>& a, Element precision,
                             const LuOptions& options) {
  return factor_any(slabbed(a, options.run.host_memory_bytes), precision, options);
}

}  // namespace strata
