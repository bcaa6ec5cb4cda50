#include "qr/pass_runner.hpp"

#include "base/check.hpp"
#include "qr/planned_passes.hpp"
#include "qr/tsqr_passes.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

template <class W>
const std::byte* bytes_of_values(const std::vector<W>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}
template <class W>
std::byte* bytes_of_values(std::vector<W>& values) {
  return reinterpret_cast<std::byte*>(values.data());
}

}  // namespace

template <class T>
PassRunner<T>::PassRunner(TallColumns<T> matrix, const Options& options)
    : PassRunner(std::make_unique<PlannedPasses<T>>(matrix, options), options.progress) {}

template <class T>
void PassRunner<T>::run_pass(RowProblem problem, const PassData& data) {
  require(!progress_ || progress_({.what = "qr"}), ErrorKind::cancelled, "qr",
          "cancelled before pass {}", passes_ + 1);  // a run of a moment asks nobody
  RunReport report = executor_->run(std::move(problem), data);
  if (passes_++ == 0) {
    report_ = std::move(report);
  } else {
    accumulate_with_trace(report_, report);
  }
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
void PassRunner<T>::solve(const SquareMatrix<F>& r, const std::vector<double>& d) {
  run_pass(problem_of(RowPass::solve, Element::fp64, element_of<F>),
           {.scales = d.data(), .factor = bytes_of_values(r.values)});
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
std::vector<double> PassRunner<T>::triangles(TreeShape shape) {
  const std::int64_t nodes = triangles_of(executor_->rows(), cols());
  std::vector<double> triangles(static_cast<std::size_t>(nodes * cols() * cols()));
  RowProblem problem = problem_of(RowPass::triangles, Element::fp64, Element::fp64);
  problem.shape = shape;
  run_pass(std::move(problem), {.sum = bytes_of_values(triangles)});
  return triangles;
}

template <class T>
void PassRunner<T>::orthogonal(const std::vector<double>& nodes, TreeShape shape, bool last) {
  RowProblem problem = problem_of(RowPass::orthogonal, Element::fp64, Element::fp64);
  problem.shape = shape;
  problem.stays = !last;
  run_pass(std::move(problem), {.factor = bytes_of_values(nodes)});
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
template void PassRunner<double>::solve(const SquareMatrix<double>&, const std::vector<double>&);
template void PassRunner<double>::solve(const SquareMatrix<DoubleDouble>&,
                                        const std::vector<double>&);
template void PassRunner<float>::solve(const SquareMatrix<float>&, const std::vector<double>&);
template void PassRunner<float>::solve(const SquareMatrix<double>&, const std::vector<double>&);

}  // namespace strata
