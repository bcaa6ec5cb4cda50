#include "qr/pass_runner.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <type_traits>

#include "base/bytes.hpp"
#include "qr/tsqr_passes.hpp"
#include "run/run.hpp"
#include "session/budget.hpp"
#include "session/planned_run.hpp"
#include "session/policy.hpp"
#include "session/report.hpp"

namespace strata {
namespace {

/// A packed block that lies somewhere else, as the source of its family.
BlockSource source_of_bytes(const void* bytes, std::int64_t element_bytes) {
  return [bytes, element_bytes](const BlockExtent& x, std::byte* to) {
    std::memcpy(to, static_cast<const std::byte*>(bytes) + x.col * x.rows * element_bytes,
                static_cast<std::size_t>(x.rows * x.cols * element_bytes));
  };
}

/// The least bytes of a pass: what of V is not on the devices in, and out what was written.
std::int64_t floor_of(const RowProblem& problem, const BlockTable& blocks, bool first) {
  std::int64_t bytes = first ? blocks.total_bytes(rows::kMatrix) : 0;
  if (writes_matrix(problem.pass) && !problem.stays) bytes += blocks.total_bytes(rows::kMatrix);
  for (const int f : {rows::kScales, rows::kFactor, rows::kSum, rows::kMaxima})
    bytes += blocks.total_bytes(f);
  return bytes;
}

/// On CPUs a budget that nobody asked for is one that their caches hold: a block that is copied
/// into new memory for every pass to come costs more than one that is copied again. (1,000,000 × 20
/// on two cores of an AMD EPYC: 0.20 s of processor time with 16 MiB, 0.29 with 64 MiB, 0.34 with
/// all of V. No bit depends on it.)
Options with_budget(Options options, RowProblem problem) {
  constexpr std::int64_t kCacheBytes = std::int64_t{16} << 20;
  if (options.device_memory_bytes > 0) return options;
  const DeviceSet devices(options);
  if (!devices.all_on_host()) return options;
  problem.devices = devices.count();
  options.device_memory_bytes =
      std::min(std::max(kCacheBytes, 2 * smallest_budget_bytes(row_pass(problem))),
               smallest_memory(devices.machine()));
  return options;
}

template <class T>
RowProblem widest_problem(const TallColumns<T>& matrix) {
  constexpr Element kWide = std::is_same_v<T, double> ? Element::dd : Element::fp64;
  RowProblem problem;
  problem.pass = RowPass::solve_gram;
  problem.m = matrix.rows();
  problem.n = matrix.cols();
  problem.element = element_of<T>;
  problem.sum = kWide;
  problem.factor = kWide;
  return problem;
}

}  // namespace

template <class T>
PassRunner<T>::PassRunner(TallColumns<T> matrix, const Options& options)
    : matrix_(matrix),
      options_(with_budget(options, widest_problem(matrix))),
      devices_(options_),
      identity_(new_identity()),
      tsqr_identity_(tsqr_block_rows(matrix.cols()) == gram_block_rows(matrix.cols())
                         ? identity_
                         : new_identity()) {
  RowProblem problem = widest_problem(matrix);
  problem.devices = devices_.count();
  const std::int64_t needed = smallest_budget_bytes(row_pass(problem));
  const std::int64_t there = smallest_memory(devices_.machine());
  require(needed <= there, ErrorKind::memory, "qr",
          "a device memory of {} ({} bytes) is too small for {} columns: blocks of {} rows need {} "
          "bytes at least",
          format_bytes(there), there, problem.n, gram_block_rows(problem.n), needed);
  // Room for the widest pass from the beginning: what lies on a device is lost when its arena
  // grows.
  const Plan plan(std::make_shared<const Schedule>(row_pass(problem)), devices_.machine(),
                  options_of(options_.policy));
  for (int d = 0; d < devices_.count(); ++d)
    (void)devices_.arena(d, plan.layout().device(static_cast<std::size_t>(d)).arena_bytes);
}

/// The plan of a pass from what the one before has left; where that leaves no place for another
/// pass, what is only on the devices is brought home first.
template <class T>
PlannedRun PassRunner<T>::plan_of(const RowProblem& problem) {
  const auto planned = [&](const RowProblem& of) {
    return make_planned_run(std::make_shared<const Schedule>(row_pass(of)), devices_.machine(),
                            options_of(options_.policy), to_string(options_.policy),
                            devices_.residency());
  };
  try {
    return planned(problem);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory || !devices_.residency().only_here(identity_)) throw;
  }
  // In slots of the sizes that the last pass had, which its other blocks have a say in.
  RowProblem last = last_;
  last.stays = false;
  Schedule nothing = row_pass(last);
  nothing.steps = 0;
  const PlannedRun fetch = make_planned_run(std::make_shared<const Schedule>(std::move(nothing)),
                                            devices_.machine(), options_of(options_.policy),
                                            to_string(options_.policy), devices_.residency());
  RowStore<T> store(fetch.plan->schedule().blocks, matrix_,
                    {nullptr, nullptr, nullptr, nullptr, nullptr, nullptr});
  RunOptions options;
  options.what = "fetch";
  accumulate(report_, make_report(fetch, run(*fetch.plan, devices_, store, options).trace));
  return planned(problem);
}

template <class T>
void PassRunner<T>::run_pass(const RowProblem& problem, const std::vector<double>& d,
                             const std::byte* factor, std::byte* sum, std::vector<double>* maxima) {
  const auto begin = std::chrono::steady_clock::now();
  require(!options_.progress || options_.progress({.what = "qr"}), ErrorKind::cancelled, "qr",
          "cancelled before pass {}", passes_ + 1);  // a run of a moment asks nobody
  PlannedRun planned = plan_of(problem);
  const BlockTable& blocks = planned.plan->schedule().blocks;
  planned.n = problem.n;
  planned.tile = is_tsqr(problem.pass) ? tsqr_block_rows(problem.n) : gram_block_rows(problem.n);
  planned.floor_bytes = floor_of(problem, blocks, passes_ == 0);
  planned.host_bytes = blocks.total_bytes(rows::kSum) + blocks.total_bytes(rows::kMaxima);
  planned.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::vector<std::shared_ptr<FamilyMemory>> families{
      nullptr, std::make_shared<FamilyMemory>(blocks, rows::kScales, source_of_bytes(d.data(), 8)),
      std::make_shared<FamilyMemory>(blocks, rows::kFactor,
                                     source_of_bytes(factor, bytes_of(problem.factor)))};
  for (const int f : {rows::kParts, rows::kSum, rows::kMaxima})
    families.push_back(std::make_shared<FamilyMemory>(blocks, f));
  RowStore<T> store(blocks, matrix_, std::move(families));
  RunOptions options;
  options.progress = options_.progress;
  options.what = "qr";
  RunOutcome outcome = run(*planned.plan, devices_, store, options);
  RunReport report = make_report(planned, std::move(outcome.trace));
  last_ = problem;
  if (writes_matrix(problem.pass) && matrix_.to.data != nullptr) {
    matrix_.from = {.view = matrix_.to};
    if (matrix_.to_beside.data != nullptr) matrix_.beside = {.view = matrix_.to_beside};
  }
  if (passes_++ == 0) {
    report_ = std::move(report);
  } else {
    accumulate(report_, report);
  }
  for (std::int64_t b = 0; sum != nullptr && b < blocks.block_rows(rows::kSum); ++b) {
    const BlockId id(rows::kSum, b, 0);
    store.read(id, sum + b * blocks.bytes(id));
  }
  if (maxima == nullptr) return;
  std::vector<double> of_block(static_cast<std::size_t>(problem.n));
  for (std::int64_t b = 0; b < blocks.block_rows(rows::kMaxima); ++b) {
    store.read(BlockId(rows::kMaxima, b, 0), reinterpret_cast<std::byte*>(of_block.data()));
    for (std::size_t j = 0; j < of_block.size(); ++j) {
      double& largest = (*maxima)[j];
      if (std::isnan(of_block[j]) || of_block[j] > largest) largest = of_block[j];
    }
  }
}

template <class T>
RowProblem PassRunner<T>::problem_of(RowPass pass, Element sum, Element factor) const {
  RowProblem problem;
  problem.pass = pass;
  problem.m = matrix_.rows();
  problem.n = matrix_.cols();
  problem.devices = devices_.count();
  problem.element = element_of<T>;
  problem.sum = sum;
  problem.factor = factor;
  problem.identity = identity_;
  return problem;
}

template <class T>
template <class W>
SquareMatrix<W> PassRunner<T>::gram(const std::vector<double>& d) {
  SquareMatrix<W> b(matrix_.cols());
  run_pass(problem_of(RowPass::gram, element_of<W>, Element::fp64), d, nullptr,
           reinterpret_cast<std::byte*>(b.values.data()), nullptr);
  return b;
}

template <class T>
template <class W, class F>
SquareMatrix<W> PassRunner<T>::solve_gram(const SquareMatrix<F>& r, const std::vector<double>& d,
                                          bool last) {
  SquareMatrix<W> b(matrix_.cols());
  RowProblem problem = problem_of(RowPass::solve_gram, element_of<W>, element_of<F>);
  problem.stays = !last;
  run_pass(problem, d, reinterpret_cast<const std::byte*>(r.values.data()),
           reinterpret_cast<std::byte*>(b.values.data()), nullptr);
  return b;
}

template <class T>
template <class W, class F>
SquareMatrix<W> PassRunner<T>::apply_gram(const SquareMatrix<F>& r, const std::vector<double>& d) {
  SquareMatrix<W> b(matrix_.cols());
  run_pass(problem_of(RowPass::apply_gram, element_of<W>, element_of<F>), d,
           reinterpret_cast<const std::byte*>(r.values.data()),
           reinterpret_cast<std::byte*>(b.values.data()), nullptr);
  return b;
}

template <class T>
template <class F>
void PassRunner<T>::solve(const SquareMatrix<F>& r, const std::vector<double>& d) {
  run_pass(problem_of(RowPass::solve, Element::fp64, element_of<F>), d,
           reinterpret_cast<const std::byte*>(r.values.data()), nullptr, nullptr);
}

template <class T>
std::vector<T> PassRunner<T>::columns(std::vector<std::uint32_t> steps) {
  std::vector<T> coefficients(steps.size() * static_cast<std::size_t>(matrix_.cols()));
  RowProblem problem = problem_of(RowPass::columns, element_of<T>, Element::fp64);
  problem.steps = std::move(steps);
  run_pass(problem, {}, nullptr, reinterpret_cast<std::byte*>(coefficients.data()), nullptr);
  return coefficients;
}

template <class T>
std::vector<double> PassRunner<T>::sketch(std::uint32_t variant, const std::vector<double>& d) {
  std::vector<double> s(static_cast<std::size_t>(2 * matrix_.cols() * matrix_.cols()));
  RowProblem problem = problem_of(RowPass::sketch, Element::fp64, Element::fp64);
  problem.variant = variant;
  run_pass(problem, d, nullptr, reinterpret_cast<std::byte*>(s.data()), nullptr);
  return s;
}

template <class T>
std::vector<double> PassRunner<T>::inner_columns(std::int64_t left) {
  std::vector<double> s(static_cast<std::size_t>(left * (matrix_.cols() - left)));
  RowProblem problem = problem_of(RowPass::inner_columns, Element::fp64, Element::fp64);
  problem.left = left;
  run_pass(problem, {}, nullptr, reinterpret_cast<std::byte*>(s.data()), nullptr);
  return s;
}

template <class T>
void PassRunner<T>::subtract_columns(const std::vector<double>& s, std::int64_t left) {
  RowProblem problem = problem_of(RowPass::subtract_columns, Element::fp64, Element::fp64);
  problem.left = left;
  run_pass(problem, {}, reinterpret_cast<const std::byte*>(s.data()), nullptr, nullptr);
}

/// On GPUs, which want many panels at a time, a task has as many blocks as an eighth of the memory
/// holds.
template <class T>
RowProblem PassRunner<T>::tsqr_problem(RowPass pass, TreeShape shape) const {
  constexpr std::int64_t kGroupMax = 32;
  RowProblem problem = problem_of(pass, Element::fp64, Element::fp64);
  problem.identity = tsqr_identity_;
  problem.shape = shape;
  const std::int64_t block = tsqr_block_rows(problem.n) * problem.n * bytes_of(problem.element);
  if (!devices_.all_on_host())
    problem.group =
        std::clamp<std::int64_t>(smallest_memory(devices_.machine()) / (8 * block), 1, kGroupMax);
  return problem;
}

template <class T>
std::vector<double> PassRunner<T>::triangles(TreeShape shape) {
  const std::int64_t n = matrix_.cols();
  std::vector<double> nodes(static_cast<std::size_t>(triangles_of(matrix_.rows(), n) * n * n));
  run_pass(tsqr_problem(RowPass::triangles, shape), {}, nullptr,
           reinterpret_cast<std::byte*>(nodes.data()), nullptr);
  return nodes;
}

template <class T>
void PassRunner<T>::orthogonal(const std::vector<double>& nodes, TreeShape shape, bool last) {
  RowProblem problem = tsqr_problem(RowPass::orthogonal, shape);
  problem.stays = !last && tsqr_identity_ == identity_;
  run_pass(problem, {}, reinterpret_cast<const std::byte*>(nodes.data()), nullptr, nullptr);
}

template <class T>
std::vector<double> PassRunner<T>::maxima() {
  std::vector<double> largest(static_cast<std::size_t>(matrix_.cols()));
  run_pass(problem_of(RowPass::maxima, Element::fp64, Element::fp64), largest, nullptr, nullptr,
           &largest);
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
