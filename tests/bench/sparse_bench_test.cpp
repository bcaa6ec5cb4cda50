// What the benchmark of sparse Cholesky factorizations measures and compares, beside direct
// computation.

#include "bench/sparse_bench.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "bench/sparse_matrices.hpp"
#include "strata/error.hpp"

namespace strata::bench {
namespace {

SparseBench small_bench() {
  SparseBench bench;
  bench.options.run.devices = "host:1";
  bench.options.run.device_memory_bytes = 64 << 20;
  bench.options.analysis.ordering = SparseOrdering::metis;
  bench.repeats = 2;
  bench.nrhs = 3;
  return bench;
}

TEST(SparseFigures, HistogramsAddUpToTheAnalysis) {
  for (const std::string name : {"2d5:31", "3d27:7", "hex:4"}) {
    const SparseAnalysis a = analyze(*generated_matrix(name));
    const std::vector<WidthBin> bins = width_histogram(a);
    WidthBin all;
    for (std::size_t k = 0; k < bins.size(); ++k) {
      EXPECT_EQ(bins[k].width_max, std::int64_t{1} << k);
      all.supernodes += bins[k].supernodes;
      all.flops += bins[k].flops;
      all.multifrontal_calls += bins[k].multifrontal_calls;
      all.left_looking_calls += bins[k].left_looking_calls;
    }
    EXPECT_EQ(all.supernodes, a.supernodes());
    EXPECT_NEAR(all.flops, a.counts.stored_flops, 1e-12 * all.flops);
    EXPECT_GE(bins.back().width_max, a.counts.widest);
    EXPECT_LT(bins.back().width_max / 2, a.counts.widest);
    std::int64_t multifrontal = 0;
    std::int64_t left_looking = 0;
    for (std::int32_t s = 0; s < a.supernodes(); ++s) {
      std::set<std::int32_t> above;  // the supernodes that own rows of s
      for (const std::int32_t row : a.rows(s)) {
        std::int32_t owner = s;
        while (a.first[static_cast<std::size_t>(owner) + 1] <= row) ++owner;
        above.insert(owner);
      }
      multifrontal += above.empty() ? 1 : 3;
      // syrk for each, gemm for all but the last.
      left_looking += above.empty() ? 1 : 2 + 2 * std::ssize(above) - 1;
    }
    EXPECT_EQ(all.multifrontal_calls, multifrontal) << name;
    EXPECT_EQ(all.left_looking_calls, left_looking) << name;
    std::int64_t supernodes = 0;
    double flops = 0;
    for (const TreeLevel& level : tree_levels(a)) {
      supernodes += level.supernodes;
      flops += level.flops;
    }
    EXPECT_EQ(supernodes, a.supernodes());
    EXPECT_NEAR(flops, a.counts.stored_flops, 1e-12 * flops);
  }
}

TEST(SparseFigures, SupernodesAreInTheBinOfTheirWidth) {
  AnalysisOptions options;
  options.ordering = SparseOrdering::natural;
  options.relax_bytes = options.relax_flops = 0;
  options.relax_entries = 0;
  options.relax_rows = 0;
  // A diagonal matrix, and a dense one of order 5.
  const std::vector<std::int64_t> three{0, 1, 2};
  const std::vector<double> ones(3, 1.0);
  std::vector<WidthBin> bins =
      width_histogram(analyze(sparse_from_entries(3, 3, three, three, ones), options));
  ASSERT_EQ(bins.size(), 1U);
  EXPECT_EQ(bins[0].supernodes, 3);
  EXPECT_EQ(bins[0].multifrontal_calls, 3);
  EXPECT_EQ(bins[0].left_looking_calls, 3);
  std::vector<std::int64_t> row;
  std::vector<std::int64_t> col;
  for (std::int64_t i = 0; i < 25; ++i) {
    row.push_back(i / 5);
    col.push_back(i % 5);
  }
  bins = width_histogram(
      analyze(sparse_from_entries(5, 5, row, col, std::vector<double>(25, 1.0)), options));
  ASSERT_EQ(bins.size(), 4U);
  EXPECT_EQ(bins[3].supernodes, 1) << "5 is above 4 and up to 8";
  EXPECT_EQ(bins[0].supernodes + bins[1].supernodes + bins[2].supernodes, 0);
  EXPECT_EQ(bins[3].flops, 25 + 16 + 9 + 4 + 1);
}

TEST(SparseBench, BackwardErrorsAreThoseOfLongDouble) {
  const SparseMatrix lower = lower_triangle(elastic_cube_matrix(2));
  const auto n = static_cast<std::size_t>(lower.rows);
  std::vector<double> x(n);
  std::vector<double> b(n);
  for (std::size_t i = 0; i < n; ++i) {
    x[i] = random_uniform(1, i) - 0.5;
    b[i] = random_uniform(2, i) - 0.5;
  }
  std::vector<std::vector<long double>> a(n, std::vector<long double>(n));
  for (std::size_t i = 0; i < n; ++i) {
    for (auto e = static_cast<std::size_t>(lower.start[i]);
         e < static_cast<std::size_t>(lower.start[i + 1]); ++e) {
      const auto j = static_cast<std::size_t>(lower.column[e]);
      a[i][j] = a[j][i] = lower.value[e];
    }
  }
  long double residual = 0;
  long double norm = 0;
  long double of_x = 0;
  long double of_b = 0;
  for (std::size_t i = 0; i < n; ++i) {
    long double r = b[i];
    long double sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      r -= a[i][j] * x[j];
      sum += std::abs(a[i][j]);
    }
    residual = std::max(residual, std::abs(r));
    norm = std::max(norm, sum);
    of_x = std::max<long double>(of_x, std::abs(x[i]));
    of_b = std::max<long double>(of_b, std::abs(b[i]));
  }
  const auto expected = static_cast<double>(residual / (norm * of_x + of_b));
  EXPECT_NEAR(backward_error(lower, b, x), expected, 1e-14 * expected);
  x[5] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(backward_error(lower, b, x)));
}

TEST(SparseBench, DisagreementIsFound) {
  SparseSolver good;
  good.log_determinant = -1234.5;
  good.backward_error = 2e-16;
  EXPECT_EQ(disagreement(good, good), "");
  SparseSolver other = good;
  other.log_determinant *= 1 + 5e-11;
  other.backward_error = 9e-14;
  EXPECT_EQ(disagreement(other, good), "");
  other.log_determinant = good.log_determinant * (1 + 2e-10);
  EXPECT_NE(disagreement(other, good).find("log-determinants"), std::string::npos);
  EXPECT_NE(disagreement(good, other).find("log-determinants"), std::string::npos);
  EXPECT_EQ(solution_disagreement(other, good), "") << "determinants are not looked at";
  other = good;
  other.backward_error = 1e-12;
  EXPECT_NE(disagreement(other, good).find("backward errors"), std::string::npos);
  EXPECT_NE(solution_disagreement(other, good).find("backward errors"), std::string::npos);
  EXPECT_EQ(disagreement(good, other), "") << "the peer's own error is not ours";
  for (double SparseSolver::*value :
       {&SparseSolver::log_determinant, &SparseSolver::backward_error}) {
    other = good;
    other.*value = std::numeric_limits<double>::quiet_NaN();
    EXPECT_NE(disagreement(other, good), "");
  }
  other = good;
  other.bad_row = 3;
  EXPECT_NE(disagreement(other, good).find("bad rows 3 and -1"), std::string::npos);
  EXPECT_NE(disagreement(good, other).find("bad rows -1 and 3"), std::string::npos);
  good.bad_row = 4;
  EXPECT_EQ(disagreement(good, other), "") << "in another order another row may be the first";
}

void expect_timing(const SparseTiming& timing) {
  EXPECT_EQ(timing.all_seconds.size(), 2U);
  EXPECT_GT(timing.seconds, 0);
  EXPECT_GE(timing.cpu_seconds, 0);
}

void expect_solver(const SparseSolver& solver, const SparseAnalysis& analysis) {
  for (const SparseTiming* timing :
       {&solver.analysis, &solver.factor, &solver.refactor, &solver.solve, &solver.solve_many})
    expect_timing(*timing);
  EXPECT_EQ(solver.flops, analysis.counts.flops);
  EXPECT_EQ(solver.factor_entries, static_cast<double>(analysis.counts.factor_entries));
  EXPECT_GT(solver.supernodes, 0);
  EXPECT_GE(solver.panel_bytes, 8 * analysis.counts.factor_entries);
  EXPECT_LT(solver.backward_error, 1e-15);
  EXPECT_EQ(solver.bad_row, -1);
}

TEST(SparseBench, MeasuresWithoutAPeer) {
  const SparseBench bench = small_bench();
  const SparseMatrix a = *generated_matrix("3d7:7");
  const SparseRow row = run_sparse_bench("3d7:7", a, bench, nullptr);
  EXPECT_EQ(row.n, 343);
  EXPECT_EQ(row.entries, (a.entries() + 343) / 2);
  EXPECT_FALSE(row.peer);
  EXPECT_TRUE(row.fine());
  expect_solver(row.ours, analyze(a, bench.options.analysis));
  EXPECT_EQ(row.ours.supernodes, analyze(a, bench.options.analysis).supernodes());
  SparseBench none = bench;
  none.repeats = 0;
  EXPECT_THROW((void)run_sparse_bench("3d7:7", a, none, nullptr), Error);
}

#ifdef STRATA_PEER_CHOLMOD
TEST(SparseBench, CholmodFactorsInOurOrder) {
  const CholmodLibrary cholmod(2);
  EXPECT_NE(std::string(cholmod.about().version).find('.'), std::string::npos);
  EXPECT_FALSE(std::string(cholmod.about().blas).empty());
  SparseBench bench = small_bench();
  for (const std::string name : {"2d5:25", "3d27:6", "hex:3"}) {
    const SparseMatrix a = *generated_matrix(name);
    const SparseRow row = run_sparse_bench(name, a, bench, &cholmod);
    EXPECT_EQ(row.disagreement, "") << name;
    ASSERT_TRUE(row.peer);
    const SparseAnalysis analysis = analyze(a, bench.options.analysis);
    expect_solver(row.ours, analysis);
    expect_solver(*row.peer, analysis);
    expect_timing(row.peer->analysis_given);
    EXPECT_GT(row.peer->own_flops, 0);
    EXPECT_DOUBLE_EQ(row.speedup(), row.peer->refactor.seconds / row.ours.refactor.seconds);
    // The last values are not those of A, and both have them.
    EXPECT_NEAR(row.ours.log_determinant, row.peer->log_determinant,
                1e-12 * std::abs(row.peer->log_determinant));
  }
  bench.options.analysis.ordering = SparseOrdering::natural;
  const SparseRow row = run_sparse_bench("2d5:9", *generated_matrix("2d5:9"), bench, &cholmod);
  EXPECT_EQ(row.peer->flops, row.ours.flops);
  EXPECT_NE(row.peer->own_flops, row.ours.flops) << "that is of its METIS";
}

TEST(SparseBench, BothSeeThatAMatrixIsNotDefinite) {
  const CholmodLibrary cholmod(1);
  SparseMatrix a = *generated_matrix("2d5:6");
  for (std::int64_t e = a.start[20]; e < a.start[21]; ++e)
    if (a.column[static_cast<std::size_t>(e)] == 20) a.value[static_cast<std::size_t>(e)] = -1;
  const SparseRow row = run_sparse_bench("bad", a, small_bench(), &cholmod);
  EXPECT_GE(row.ours.bad_row, 0);
  EXPECT_GE(row.peer->bad_row, 0);
  EXPECT_EQ(row.disagreement, "");
  EXPECT_FALSE(row.fine());
}

TEST(Cholmod, SolvesWithManyRightHandSides) {
  const CholmodLibrary cholmod(1);
  const SparseMatrix a = *generated_matrix("3d7:5");
  const SparseMatrix lower = lower_triangle(a);
  CholmodProblem problem(cholmod, lower);
  const CholmodCounts counts = problem.analyze();
  EXPECT_GE(counts.factor_entries, static_cast<double>(lower.entries()));
  ASSERT_EQ(problem.factor(lower.value), -1);
  const auto n = static_cast<std::size_t>(a.rows);
  std::vector<double> x(2 * n);
  std::vector<double> b(2 * n);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = random_uniform(3, i) - 0.5;
  multiply(a, std::span(x).first(n), std::span(b).first(n));
  multiply(a, std::span(x).subspan(n), std::span(b).subspan(n));
  const std::span<const double> got = problem.solve(b, 2);
  ASSERT_EQ(got.size(), x.size());
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(got[i], x[i], 1e-13) << i;
}
#endif

TEST(SparseMethods, FactorTheSameMatrixEachInItsWay) {
  const SparseMatrix lower = lower_triangle(*generated_matrix("3d7:9"));
  const SparseBench bench = small_bench();
  const SparseAnalysis analysis = analyze(lower, bench.options.analysis);
  const std::vector<SparseMethod> methods =
      compare_methods(lower, analysis, bench.options, {.batch = 8, .streams = 3}, 2);
  ASSERT_EQ(methods.size(), 3U);
  EXPECT_EQ(methods[0].name, "CPU");
  EXPECT_EQ(methods[1].name, "one by one");
  EXPECT_EQ(methods[2].name, "batches");
  for (const SparseMethod& method : methods) {
    EXPECT_EQ(method.refactor.all_seconds.size(), 2U);
    EXPECT_NEAR(method.log_determinant, methods[0].log_determinant,
                1e-12 * std::abs(methods[0].log_determinant));
    EXPECT_EQ(method.trace.spans.empty(), method.name == "CPU");
    EXPECT_EQ(method.device_seconds > 0, method.name != "CPU");
  }
  // As many fronts, in fewer tasks.
  EXPECT_LT(methods[2].trace.spans.size(), methods[1].trace.spans.size());
  EXPECT_EQ(methods[1].trace.queues.size(), 1U);
  EXPECT_EQ(methods[2].trace.queues.size(), 3U);
  EXPECT_NEAR(methods[2].trace.flops, methods[1].trace.flops, 1e-9 * methods[1].trace.flops);
  SparseMatrix bad = lower;
  bad.value.front() = -1;
  EXPECT_THROW((void)compare_methods(bad, analysis, bench.options, {}, 1), Error);
}

TEST(SparseMethods, WhatTheDeviceCannotHoldIsLeftOut) {
  const SparseMatrix lower = lower_triangle(*generated_matrix("3d7:12"));
  SparseBench bench = small_bench();
  bench.options.run.device_memory_bytes = 1 << 20;
  const std::vector<SparseMethod> methods = compare_methods(
      lower, analyze(lower, bench.options.analysis), bench.options, bench.levels, 1);
  ASSERT_EQ(methods.size(), 1U);
  EXPECT_EQ(methods[0].name, "CPU");
}

TEST(SparseMethods, TasksAtWorkAddUpToTheirTime) {
  Trace trace;
  trace.seconds = 4;
  for (const auto& [begin, end] :
       std::vector<std::pair<double, double>>{{0, 1}, {0.5, 2.5}, {0.75, 4}, {3.9, 4}, {2, 2}}) {
    Span span;
    span.begin = begin;
    span.end = end;
    trace.spans.push_back(span);
  }
  const std::vector<double> work = tasks_at_work(trace, 4);
  const std::vector<double> expected{1 + 0.5 + 0.25, 2, 1.5, 1.1};
  for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(work[k], expected[k], 1e-12);
  EXPECT_EQ(tasks_at_work({}, 3), std::vector<double>(3, 0.0));
}

TEST(SparseMethods, SmallFrontsHaveARateForEachChoice) {
  RunOptions run;
  run.devices = "host:1";
  SmallRuns runs{.orders = {2, 9}, .batches = {1, 7, 100}, .streams = {1, 3}, .repeats = 2};
  const auto rates = small_front_rates(run, runs);
  EXPECT_TRUE(small_product_rates(run, runs).empty()) << "there is no cuBLAS for CPUs";
  ASSERT_EQ(rates.size(), 12U);
  for (const SmallRate& rate : rates) EXPECT_GT(rate.flops_per_second, 0);
  EXPECT_EQ(rates.front().order, 2);
  EXPECT_EQ(rates.back().order, 9);
  EXPECT_EQ(rates.back().batch, 100);
  EXPECT_EQ(rates.back().streams, 3);
  runs.orders = {1};
  EXPECT_THROW((void)small_front_rates(run, runs), Error);
}

}  // namespace
}  // namespace strata::bench
