#include "qr/pass_runner.hpp"

#include <utility>

#include "base/check.hpp"
#include "kernels/tall/sketch.hpp"
#include "qr/planned_passes.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

template <class Values>
const std::byte* bytes_of_values(const Values& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}
template <class Values>
std::byte* bytes_of_values(Values& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

}  // namespace

template <class T>
PassRunner<T>::PassRunner(TallColumns<T> matrix, const QrOptions& options)
    : PassRunner(std::make_unique<PlannedPasses<T>>(matrix, options), options.run.progress) {}

template <class T>
void PassRunner<T>::run_pass(RowProblem problem, PassData<T> data) {
  data.meanwhile = std::exchange(meanwhile_, {});
  require(!progress_ || progress_({.what = "qr"}), ErrorKind::cancelled, "qr",
          "cancelled before pass {}", passes_ + 1);  // a short run does not ask
  accumulate_with_trace(report_, executor_->run(std::move(problem), data));
  ++passes_;
}

template <class T>
RowProblem PassRunner<T>::problem_of(RowPass pass, Element sum, Element factor) const {
  RowProblem problem;
  problem.pass = pass;
  problem.m = executor_->rows();
  problem.n = cols();
  problem.element = element_of<T>;
  problem.sum = sum;
  problem.factor = factor;
  return problem;
}

/// A pass with what the noted triangles make of V.
template <class T>
RowProblem PassRunner<T>::problem_of_noted(RowPass pass, Element sum) const {
  RowProblem problem = problem_of(pass, sum, elements_.back());
  problem.stages.assign(elements_.begin(), elements_.end() - 1);
  return problem;
}

template <class T>
template <class F>
void PassRunner<T>::note(const SquareMatrix<F>& r, const std::vector<double>& d) {
  const std::byte* bytes = bytes_of_values(r.values);
  elements_.push_back(element_of<F>);
  factors_.insert(factors_.end(), bytes, bytes + r.values.size() * sizeof(F));
  scales_.insert(scales_.end(), d.begin(), d.end());
}

/// Whether the solve to come is one that stores V, of which some were noted.
template <class T>
bool PassRunner<T>::stores_now(bool last) const {
  return keep_ == KeepMatrix::until_last && !elements_.empty() &&
         (last || std::ssize(elements_) + 1 == kTrianglesNoted);
}

/// V ← what the noted triangles make of it, which are forgotten.
template <class T>
void PassRunner<T>::store_noted(RowPass pass, Element sum, std::byte* b) {
  RowProblem problem = problem_of_noted(pass, sum);
  problem.beside = cols();
  run_pass(std::move(problem), {.scales = scales_.data(), .factor = factors_.data(), .sum = b});
  keep_ = KeepMatrix::no;
  forget_noted();
}

template <class T>
void PassRunner<T>::forget_noted() {
  elements_.clear();
  factors_.clear();
  scales_.clear();
}

/// V ← what the two noted triangles make of it; ones behind the scales are those of a sum.
template <class T>
void PassRunner<T>::store_pair(RowPass pass, Element sum, std::byte* b) {
  scales_.resize(scales_.size() + static_cast<std::size_t>(cols()), 1.0);
  run_pass(problem_of_noted(pass, sum),
           {.scales = scales_.data(), .factor = factors_.data(), .sum = b});
  forget_noted();
}

/// Whether a solve is noted as the second of a pair. If it is of another element than V, the first
/// is stored by itself.
template <class T>
template <class F>
bool PassRunner<T>::completes_pair(const SquareMatrix<F>& r, const std::vector<double>& d) {
  if (keep_ != KeepMatrix::pairs || elements_.empty()) return false;
  if constexpr (std::is_same_v<F, T>) {
    note(r, d);
    return true;
  }
  auto work = std::exchange(meanwhile_, {});
  run_pass(problem_of_noted(RowPass::solve, Element::fp64),
           {.scales = scales_.data(), .factor = factors_.data()});
  meanwhile_ = std::move(work);
  forget_noted();
  return false;
}

template <class T>
template <class W>
SquareMatrix<W> PassRunner<T>::gram(const std::vector<double>& d) {
  SquareMatrix<W> b(cols());
  run_pass(problem_of(RowPass::gram, element_of<W>, Element::fp64),
           {.scales = d.data(), .sum = bytes_of_values(b.values)});
  return b;
}

template <class T>
template <class W, class F>
SquareMatrix<W> PassRunner<T>::solve_gram(const SquareMatrix<F>& r, const std::vector<double>& d,
                                          bool last) {
  SquareMatrix<W> b(cols());
  if (stores_now(last)) {
    note(r, d);
    store_noted(RowPass::form_gram, element_of<W>, bytes_of_values(b.values));
    return b;
  }
  if (keep_ == KeepMatrix::yes || (keep_ == KeepMatrix::until_last && !last)) {
    note(r, d);
    run_pass(
        problem_of_noted(RowPass::apply_gram, element_of<W>),
        {.scales = scales_.data(), .factor = factors_.data(), .sum = bytes_of_values(b.values)});
    return b;
  }
  if (completes_pair(r, d)) {
    store_pair(RowPass::solve_gram, element_of<W>, bytes_of_values(b.values));
    return b;
  }
  if (keep_ == KeepMatrix::pairs) {
    if constexpr (std::is_same_v<F, T> && std::is_same_v<W, T>) {
      if (!last) {
        note(r, d);
        run_pass(problem_of_noted(RowPass::apply_gram, element_of<W>),
                 {.scales = scales_.data(),
                  .factor = factors_.data(),
                  .sum = bytes_of_values(b.values)});
        return b;
      }
    }
  } else {
    keep_ = KeepMatrix::no;  // of until_last: the first solve is the last
  }
  RowProblem problem = problem_of(RowPass::solve_gram, element_of<W>, element_of<F>);
  problem.stays = !last;
  run_pass(
      std::move(problem),
      {.scales = d.data(), .factor = bytes_of_values(r.values), .sum = bytes_of_values(b.values)});
  return b;
}

template <class T>
template <class W, class F>
SquareMatrix<W> PassRunner<T>::apply_gram(const SquareMatrix<F>& r, const std::vector<double>& d) {
  SquareMatrix<W> b(cols());
  run_pass(
      problem_of(RowPass::apply_gram, element_of<W>, element_of<F>),
      {.scales = d.data(), .factor = bytes_of_values(r.values), .sum = bytes_of_values(b.values)});
  return b;
}

template <class T>
template <class F>
void PassRunner<T>::solve(const SquareMatrix<F>& r, const std::vector<double>& d, bool last) {
  if (stores_now(last)) {
    note(r, d);
    return store_noted(RowPass::form, Element::fp64, nullptr);
  }
  if (keep_ == KeepMatrix::yes || (keep_ == KeepMatrix::until_last && !last)) return note(r, d);
  if (completes_pair(r, d)) return store_pair(RowPass::solve, Element::fp64, nullptr);
  if (keep_ != KeepMatrix::pairs) keep_ = KeepMatrix::no;
  RowProblem problem = problem_of(RowPass::solve, Element::fp64, element_of<F>);
  problem.stays = !last;
  run_pass(std::move(problem), {.scales = d.data(), .factor = bytes_of_values(r.values)});
}

template <class T>
std::vector<T> PassRunner<T>::columns(std::vector<std::uint32_t> steps) {
  std::vector<T> coefficients(steps.size() * static_cast<std::size_t>(cols()));
  RowProblem problem = problem_of(RowPass::columns, element_of<T>, Element::fp64);
  problem.steps = std::move(steps);
  run_pass(std::move(problem), {.sum = bytes_of_values(coefficients)});
  return coefficients;
}

template <class T>
std::vector<double> PassRunner<T>::sketch(std::uint32_t variant, const std::vector<double>& d) {
  std::vector<double> s(static_cast<std::size_t>(2 * cols() * cols()));
  RowProblem problem = problem_of(RowPass::sketch, Element::fp64, Element::fp64);
  problem.variant = variant;
  run_pass(std::move(problem), {.scales = d.data(), .sum = bytes_of_values(s)});
  return s;
}

/// B of a pass with a CountSketch, whose scales are those of V, and ones.
template <class T>
void PassRunner<T>::run_count_pass(RowPass pass, Element sum, std::uint32_t seed,
                                   std::vector<double> d, std::byte* b) {
  d.resize(2 * d.size(), 1.0);
  RowProblem problem = problem_of(pass, sum, Element::fp64);
  problem.variant = sketch_variant(SketchKind::count, seed);
  run_pass(std::move(problem), {.scales = d.data(), .sum = b});
}

template <class T>
std::vector<double> PassRunner<T>::multi_sketch(std::uint32_t seed, const std::vector<double>& d) {
  std::vector<double> s(static_cast<std::size_t>(2 * cols() * cols()));
  run_count_pass(RowPass::count_sketch, Element::fp64, seed, d, bytes_of_values(s));
  return s;
}

template <class T>
SquareMatrix<DoubleDouble> PassRunner<T>::sketch_gram(std::uint32_t seed,
                                                      const std::vector<double>& d) {
  SquareMatrix<DoubleDouble> b(cols());
  run_count_pass(RowPass::count_gram, Element::dd, seed, d, bytes_of_values(b.values));
  return b;
}

template <class T>
std::vector<double> PassRunner<T>::inner_columns(std::int64_t left) {
  std::vector<double> s(static_cast<std::size_t>(left * (cols() - left)));
  RowProblem problem = problem_of(RowPass::inner_columns, Element::fp64, Element::fp64);
  problem.left = left;
  run_pass(std::move(problem), {.sum = bytes_of_values(s)});
  return s;
}

template <class T>
void PassRunner<T>::subtract_columns(const std::vector<double>& s, std::int64_t left) {
  RowProblem problem = problem_of(RowPass::subtract_columns, Element::fp64, Element::fp64);
  problem.left = left;
  run_pass(std::move(problem), {.factor = bytes_of_values(s)});
}

template <class T>
SquareMatrix<double> PassRunner<T>::triangle(TreeShape shape) {
  SquareMatrix<double> r(cols());
  RowProblem problem = problem_of(RowPass::triangles, Element::fp64, Element::fp64);
  problem.shape = shape;
  run_pass(std::move(problem), {.sum = bytes_of_values(r.values)});
  return r;
}

template <class T>
void PassRunner<T>::orthogonal(const SquareMatrix<double>& c, TreeShape shape, bool last) {
  RowProblem problem = problem_of(RowPass::orthogonal, Element::fp64, Element::fp64);
  problem.shape = shape;
  problem.stays = !last;
  run_pass(std::move(problem), {.factor = bytes_of_values(c.values)});
}

template <class T>
void PassRunner<T>::apply(const std::vector<double>& minus, MatrixView<T> y) {
  RowProblem problem = problem_of_noted(RowPass::apply, Element::fp64);
  problem.beside = y.cols;
  PassData<T> data{.scales = scales_.data(), .factor = factors_.data()};
  data.coefficients = minus.data();
  data.beside = {.from = {.view = y}, .to = y};
  run_pass(std::move(problem), data);
}

template <class T>
template <class W>
std::vector<W> PassRunner<T>::apply_transposed(const TallInput<T>& b) {
  std::vector<W> c(static_cast<std::size_t>(cols() * b.cols()));
  RowProblem problem = problem_of_noted(RowPass::apply_transposed, element_of<W>);
  problem.beside = b.cols();
  PassData<T> data{.scales = scales_.data(), .factor = factors_.data(), .sum = bytes_of_values(c)};
  data.beside = {.from = b};
  run_pass(std::move(problem), data);
  return c;
}

template <class T>
SquareMatrix<double> PassRunner<T>::form(MatrixView<T> to, std::vector<std::int64_t> places,
                                         bool sum) {
  SquareMatrix<double> b(sum ? cols() : 0);
  RowProblem problem = problem_of_noted(sum ? RowPass::form_gram : RowPass::form, Element::fp64);
  problem.beside = cols();
  PassData<T> data{.scales = scales_.data(), .factor = factors_.data()};
  if (sum) data.sum = bytes_of_values(b.values);
  data.beside = {.from = {.view = to}, .to = to, .places = std::move(places)};
  run_pass(std::move(problem), data);
  return b;
}

template <class T>
std::vector<double> PassRunner<T>::maxima() {
  std::vector<double> largest(static_cast<std::size_t>(cols()));
  run_pass(problem_of(RowPass::maxima, Element::fp64, Element::fp64), {.maxima = largest.data()});
  return largest;
}

template class PassRunner<double>;
template class PassRunner<float>;
template SquareMatrix<double> PassRunner<double>::gram(const std::vector<double>&);
template SquareMatrix<DoubleDouble> PassRunner<double>::gram(const std::vector<double>&);
template SquareMatrix<float> PassRunner<float>::gram(const std::vector<double>&);
template SquareMatrix<double> PassRunner<float>::gram(const std::vector<double>&);
template SquareMatrix<double> PassRunner<double>::solve_gram(const SquareMatrix<double>&,
                                                             const std::vector<double>&, bool);
template SquareMatrix<DoubleDouble> PassRunner<double>::solve_gram(const SquareMatrix<double>&,
                                                                   const std::vector<double>&,
                                                                   bool);
template SquareMatrix<double> PassRunner<double>::solve_gram(const SquareMatrix<DoubleDouble>&,
                                                             const std::vector<double>&, bool);
template SquareMatrix<DoubleDouble> PassRunner<double>::solve_gram(
    const SquareMatrix<DoubleDouble>&, const std::vector<double>&, bool);
template SquareMatrix<float> PassRunner<float>::solve_gram(const SquareMatrix<float>&,
                                                           const std::vector<double>&, bool);
template SquareMatrix<double> PassRunner<float>::solve_gram(const SquareMatrix<float>&,
                                                            const std::vector<double>&, bool);
template SquareMatrix<float> PassRunner<float>::solve_gram(const SquareMatrix<double>&,
                                                           const std::vector<double>&, bool);
template SquareMatrix<double> PassRunner<float>::solve_gram(const SquareMatrix<double>&,
                                                            const std::vector<double>&, bool);
template SquareMatrix<DoubleDouble> PassRunner<double>::apply_gram(
    const SquareMatrix<DoubleDouble>&, const std::vector<double>&);
template std::vector<DoubleDouble> PassRunner<double>::apply_transposed(const TallInput<double>&);
template std::vector<double> PassRunner<float>::apply_transposed(const TallInput<float>&);
template SquareMatrix<double> PassRunner<float>::apply_gram(const SquareMatrix<double>&,
                                                            const std::vector<double>&);
template void PassRunner<double>::solve(const SquareMatrix<double>&, const std::vector<double>&,
                                        bool);
template void PassRunner<double>::solve(const SquareMatrix<DoubleDouble>&,
                                        const std::vector<double>&, bool);
template void PassRunner<float>::solve(const SquareMatrix<float>&, const std::vector<double>&,
                                       bool);
template void PassRunner<float>::solve(const SquareMatrix<double>&, const std::vector<double>&,
                                       bool);

}  // namespace strata
