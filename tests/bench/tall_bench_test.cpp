// What the benchmarks of QR and GMRES measure, beside direct computation.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "base/random.hpp"
#include "bench/gmres_bench.hpp"
#include "bench/host_tall.hpp"
#include "bench/qr_bench.hpp"
#include "bench/qr_figures.hpp"
#include "bench/sparse_matrices.hpp"
#include "kernels/tall/gram.hpp"
#include "strata/error.hpp"

namespace strata::bench {
namespace {

RunOptions small_host(int devices = 1) {
  RunOptions options;
  options.devices = "host:" + std::to_string(devices);
  options.device_memory_bytes = 256 << 20;
  return options;
}

std::vector<double> random_matrix(std::int64_t m, std::int64_t n) {
  std::vector<double> v(static_cast<std::size_t>(m * n));
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = random_uniform(3, i) - 0.5;
  return v;
}

/// ‖I − QᵀQ‖_F in long double.
double loss_of(const std::vector<double>& q, std::int64_t m, std::int64_t n) {
  long double square = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t k = 0; k < n; ++k) {
      long double sum = j == k ? -1 : 0;
      for (std::int64_t i = 0; i < m; ++i)
        sum += static_cast<long double>(q[static_cast<std::size_t>(i + j * m)]) *
               q[static_cast<std::size_t>(i + k * m)];
      square += sum * sum;
    }
  }
  return static_cast<double>(std::sqrt(square));
}

TEST(TallBench, ErrorsOfAFactorizationAreThoseOfLongDouble) {
  constexpr std::int64_t kM = 137;
  constexpr std::int64_t kN = 7;
  std::vector<double> v = random_matrix(kM, kN);
  for (std::int64_t i = 0; i < kM; ++i)  // a condition of 1e5 or so
    v[static_cast<std::size_t>(i + 6 * kM)] =
        v[static_cast<std::size_t>(i)] + 1e-5 * v[static_cast<std::size_t>(i + 6 * kM)];
  const MeasuredQr got = measured_qr({v.data(), kM, kN, kM}, QrMethod::cholqr, small_host());
  EXPECT_NEAR(got.error.orthogonality, loss_of(got.q, kM, kN), 1e-3 * got.error.orthogonality);
  EXPECT_GT(got.error.orthogonality, 1e-12);
  EXPECT_GT(got.condition, 1e4);
  EXPECT_LT(got.condition, 1e7);
  long double difference = 0;
  long double whole = 0;
  long double worst = 0;
  for (std::int64_t j = 0; j < kN; ++j) {
    for (std::int64_t i = 0; i < kM; ++i) {
      long double d = v[static_cast<std::size_t>(i + j * kM)];
      whole += d * d;
      long double beside = 0;
      for (std::int64_t k = 0; k < kN; ++k) {
        const long double product =
            static_cast<long double>(got.q[static_cast<std::size_t>(i + k * kM)]) *
            got.r[static_cast<std::size_t>(k + j * kN)];
        d -= product;
        beside += std::abs(product);
      }
      difference += d * d;
      worst = std::max(worst, std::abs(d) / beside);
    }
  }
  EXPECT_NEAR(got.error.residual, static_cast<double>(std::sqrt(difference / whole)),
              0.02 * got.error.residual);
  EXPECT_NEAR(got.error.elementwise, static_cast<double>(worst), 0.02 * got.error.elementwise);
  EXPECT_LE(got.error.residual, 1e-15);
}

TEST(TallBench, BlocksOfGmresHaveTheErrorsThatTheMethodsPromise) {
  BlockErrors what;
  what.s = 10;
  what.restart = 20;
  what.cycles = 2;
  what.methods = {QrMethod::cholqr, QrMethod::cholqr_wide, QrMethod::tsqr};
  const std::vector<BlockErrorRow> rows = run_block_errors(laplacian_matrix(9), what, small_host());
  ASSERT_EQ(rows.size(), 12U);  // two cycles of two blocks, three methods
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const BlockErrorRow& row = rows[k];
    EXPECT_EQ(row.step, static_cast<std::int64_t>(k / 3));
    EXPECT_EQ(row.method, what.methods[k % 3]);
    EXPECT_EQ(row.condition, rows[k / 3 * 3].condition);
    EXPECT_GT(row.condition, 2);
    const double bound = row.method == QrMethod::cholqr        ? bound_of_plain(row.condition)
                         : row.method == QrMethod::cholqr_wide ? bound_of_wide(row.condition)
                                                               : 0;
    EXPECT_LE(row.once.orthogonality, 100 * bound + 4e-15) << k;
    EXPECT_LE(row.twice.orthogonality, 4e-15) << k;
    for (const FactorError& error : {row.once, row.twice}) {
      EXPECT_LE(error.residual, 2e-15) << k;
      // Reflections bound a column, not an element beside |Q|·|R|, which may be small.
      EXPECT_LE(error.elementwise, row.method == QrMethod::tsqr ? 1e-13 : 2e-14) << k;
      EXPECT_FALSE(error.failed);
    }
  }
}

TEST(TallBench, InstructionsOfAProduct) {
  std::map<std::string, ProductCount> counts;
  for (const ProductCount& one : count_products()) counts[one.what] = one;
  ASSERT_EQ(counts.size(), 4U);
  // Two instructions make a product, and each addition has its own number.
  EXPECT_EQ(counts.at("Cray").total(), 2 + 11);
  EXPECT_EQ(counts.at("IEEE").total(), 2 + 20);
  EXPECT_EQ(counts.at("Dot2").total(), 10);
  EXPECT_EQ(counts.at("extraction").fused, 2);
  EXPECT_EQ(counts.at("extraction").total(), 4 + 12.0 / 32);
}

TEST(TallBench, OfWhatIsTunedOneIsTaken) {
  constexpr std::int64_t kM = 20000;
  const std::vector<TunedSum> all = run_tuned_sums({3, 20}, kM, 1, small_host());
  for (const std::int64_t n : {3, 20}) {
    int taken = 0;
    std::set<std::int64_t> heights;
    for (const TunedSum& one : all) {
      if (one.n != n) continue;
      EXPECT_GT(one.seconds, 0);
      EXPECT_TRUE(heights.insert(one.rows).second);
      if (one.taken) {
        EXPECT_EQ(one.rows, gram_block_rows(n));
      }
      taken += one.taken ? 1 : 0;
    }
    EXPECT_EQ(taken, 1) << n;
    EXPECT_GE(heights.size(), 2U) << n;
    EXPECT_EQ(*heights.begin(), std::max<std::int64_t>(gram_block_rows(n) / 8, kGramUnitRows));
  }
}

TEST(TallBench, ReductionsAndOperationsOfTheMethods) {
  constexpr std::int64_t kN = 6;
  const auto m = static_cast<double>(2 * gram_block_rows(kN));
  std::map<QrMethod, MethodCounts> counts;
  for (const MethodCounts& one : count_methods(kN)) counts[one.method] = one;
  EXPECT_EQ(counts.at(QrMethod::mgs).reductions, kN * (kN + 1) / 2);
  EXPECT_EQ(counts.at(QrMethod::cgs).reductions, 2 * kN - 1);
  EXPECT_EQ(counts.at(QrMethod::cgs2).reductions, 3 * kN - 2);
  for (const QrMethod method :
       {QrMethod::cholqr, QrMethod::cholqr_wide, QrMethod::svqr, QrMethod::tsqr})
    EXPECT_EQ(counts.at(method).reductions, 1) << to_string(method);
  EXPECT_DOUBLE_EQ(counts.at(QrMethod::cholqr).flops, 2 * m * kN * kN);
  // A column is orthogonalized with 4·m operations for each one before it, and by CGS2 twice.
  for (const auto& [method, one] : counts) EXPECT_GE(one.flops, 1.9 * m * kN * kN);
  EXPECT_DOUBLE_EQ(counts.at(QrMethod::cgs2).flops - counts.at(QrMethod::cgs).flops,
                   4 * m * kN * (kN - 1) / 2);
  // Reflections of a panel once for R, and two and a half times as much for Q.
  EXPECT_NEAR(counts.at(QrMethod::tsqr).flops, 7 * m * kN * kN, 1e-2 * m * kN * kN);
}

TEST(TallBench, ErrorsPassByPassOfTheFourMatrices) {
  const std::vector<PassErrors> all =
      run_pass_errors(2, {QrMethod::cholqr, QrMethod::cholqr_wide, QrMethod::tsqr}, small_host());
  ASSERT_EQ(all.size(), 12U);
  const auto of = [&](const std::string& matrix, QrMethod method) {
    const auto at = std::find_if(all.begin(), all.end(), [&](const PassErrors& one) {
      return one.matrix == matrix && one.method == method;
    });
    EXPECT_NE(at, all.end());
    return *at;
  };
  EXPECT_NEAR(std::log10(of("K20", QrMethod::cholqr).condition), 12, 0.7);
  EXPECT_GE(of("K30", QrMethod::cholqr).condition, 1e17);
  EXPECT_TRUE(of("K20", QrMethod::cholqr).errors[0].failed);
  EXPECT_FALSE(of("K20", QrMethod::cholqr_wide).errors[0].failed);
  // The table of the issue: double-double Cholesky QR, then once more.
  EXPECT_NEAR(std::log10(of("K20", QrMethod::cholqr_wide).errors[0].orthogonality), -5, 1.3);
  EXPECT_LE(of("K20", QrMethod::cholqr_wide).errors[1].orthogonality, 1e-13);
  EXPECT_LE(of("K20", QrMethod::cholqr_wide).conditions[1], 1.01);
  for (const std::string matrix : {"K20", "K30", "Hilbert", "synthetic"})
    EXPECT_LE(of(matrix, QrMethod::tsqr).errors[0].orthogonality, 2e-14) << matrix;
}

TEST(TallBench, TheHostsLapackMakesColumnsOrthonormal) {
  constexpr std::int64_t kM = 301;
  constexpr std::int64_t kN = 9;
  for (const TallWork work : {TallWork::cholesky_qr, TallWork::householder}) {
    std::vector<double> v = random_matrix(kM, kN);
    EXPECT_GT(host_tall_seconds(v, kM, kN, work), 0);
    EXPECT_LE(loss_of(v, kM, kN), 1e-13);
  }
  std::vector<double> zeros(kM * kN);
  EXPECT_THROW((void)host_tall_seconds(zeros, kM, kN, TallWork::cholesky_qr), Error);
  EXPECT_THROW((void)host_tall_seconds(zeros, kM, kN, TallWork::read), Error);
  EXPECT_THROW((void)host_tall_seconds(zeros, kM, kN + 1, TallWork::gram_gemm), Error);
  std::vector<float> floats(kM * kN, 1.0F);
  EXPECT_GT(host_tall_seconds(floats, kM, kN, TallWork::gram_syrk), 0);
}

TEST(TallBench, WholeCallsStandBesideThePeer) {
  QrBench bench;
  bench.m = 2000;
  bench.columns = {3, 8};
  bench.repeats = 1;
  bench.peers = true;
  bench.methods = {QrMethod::automatic, QrMethod::tsqr};
  const QrBenchResult result = run_qr_bench(bench, small_host());
  for (const std::int64_t n : bench.columns) {
    double peer = 0;
    double read = 0;
    int whole = 0;
    for (const QrBenchRow& row : result.rows) {
      if (row.n != n) continue;
      if (row.what == "read") read = row.seconds;
      if (row.what == "openblas geqrf, orgqr") peer = row.seconds;
      EXPECT_DOUBLE_EQ(row.times_read, row.seconds / read) << row.what;
      if (!row.info) continue;
      ++whole;
      EXPECT_TRUE(row.info->ok);
      EXPECT_TRUE(row.whole);
      EXPECT_DOUBLE_EQ(row.ratio_to_peer, peer / row.seconds);
    }
    EXPECT_EQ(whole, 2);
  }
}

TEST(TallBench, DealsVToDevicesWithTheSameResult) {
  QrBench bench;
  bench.m = 3 * qr_part_multiple(6) + 100;
  bench.columns = {6};
  bench.repeats = 1;
  bench.methods = {QrMethod::automatic};
  bench.deal_on_cpus = true;
  RunOptions options = small_host();
  options.device_memory_bytes = std::int64_t{64} << 20;
  for (const bool floats : {false, true}) {
    bench.floats = floats;
    options.devices = "host:1";
    const QrBenchResult one = run_qr_bench(bench, options);
    options.devices = "host:3";
    const QrBenchResult three = run_qr_bench(bench, options);
    ASSERT_EQ(one.rows.size(), floats ? 8U : 15U);
    ASSERT_EQ(three.rows.size(), 2U);  // read, qr auto
    EXPECT_EQ(three.devices, 3);
    const QrBenchRow& row = three.rows.back();
    EXPECT_TRUE(row.info->ok);
    EXPECT_EQ(row.info->orthogonality, one.rows.back().info->orthogonality);
    EXPECT_EQ(row.info->condition, one.rows.back().info->condition);
    EXPECT_EQ(row.info->report.devices.size(), 3U);
    EXPECT_GT(row.waiting, 0);
    EXPECT_LT(row.waiting + row.reduction, row.seconds + 1);
    EXPECT_GT(row.reduction, 0);
  }
  bench.peers = true;
  EXPECT_THROW((void)run_qr_bench(bench, options), Error);
}

TEST(TallBench, HasTheConditionThatIsAskedFor) {
  QrBench bench;
  bench.m = 3000;
  bench.columns = {6};
  bench.repeats = 1;
  bench.condition = 1e12;
  bench.methods = {QrMethod::automatic};
  const QrBenchResult result = run_qr_bench(bench, small_host());
  const QrInfo& info = *result.rows.back().info;
  EXPECT_TRUE(info.ok);
  EXPECT_GT(info.condition, 1e11);
  EXPECT_LT(info.condition, 1e14);
  EXPECT_EQ(info.passes, 3);
}

TEST(GmresBench, HasTheYardsticksFirstAndEveryCaseOnce) {
  GmresBench bench;
  bench.matrix = laplacian_matrix(8);
  bench.restart = 20;
  bench.s = {5, 10};
  bench.bases = {KrylovBasis::monomial, KrylovBasis::newton};
  bench.methods = {QrMethod::cholqr2, QrMethod::automatic};
  bench.device_counts = {2, 3};
  std::vector<std::string> told;
  const std::vector<GmresRow> rows = run_gmres_bench(
      bench, small_host(), [&](const GmresRow& row) { told.push_back(name_of(row)); });
  ASSERT_EQ(rows.size(), 2U + 8U + 2U * 3U);
  ASSERT_EQ(told.size(), rows.size());
  EXPECT_EQ(told[0], "gmres cgs2");
  EXPECT_EQ(told[1], "gmres mgs");
  EXPECT_EQ(told[2], "s = 5 monomial cholqr2");
  EXPECT_EQ(told[9], "s = 10 newton auto");
  EXPECT_EQ(told[15], "s = 10 newton auto");
  for (const GmresRow& row : rows) {
    EXPECT_TRUE(row.info.ok) << name_of(row);
    EXPECT_GT(row.seconds, 0);
    EXPECT_NEAR(row.info.seconds.total(), row.seconds, 0.2 * row.seconds + 1e-3);
  }
  EXPECT_EQ(rows[0].ratio, 1);
  EXPECT_DOUBLE_EQ(rows[5].ratio, rows[0].seconds / rows[5].seconds);
  EXPECT_EQ(rows[10].devices, 2);
  EXPECT_EQ(rows[15].devices, 3);
  // The same history on any number of devices.
  for (const std::size_t other : {std::size_t{12}, std::size_t{15}}) {
    ASSERT_EQ(rows[9].info.history.size(), rows[other].info.history.size());
    for (std::size_t k = 0; k < rows[9].info.history.size(); ++k)
      EXPECT_EQ(rows[9].info.history[k].relative_residual,
                rows[other].info.history[k].relative_residual);
  }
  bench.s = {21};
  EXPECT_THROW((void)run_gmres_bench(bench, small_host()), Error);
}

TEST(GmresBench, AsksForGhostZonesInBlocksAlone) {
  GmresBench bench;
  bench.matrix = laplacian_matrix(8);
  bench.restart = 20;
  bench.s = {2};
  bench.methods = {QrMethod::cholqr_wide};
  bench.repeats = 1;
  bench.ghost_zones = true;
  for (const GmresRow& row : run_gmres_bench(bench, small_host()))
    EXPECT_EQ(row.info.halo.asked_for_ghost_zones, row.s > 1) << name_of(row);
}

/// One sum a pass, and one a panel, where there were two; fewer cycles with a preconditioner, each
/// beside GMRES with the same.
TEST(GmresBench, ComparesOrthogonalizationsOfBlocksAndPreconditioners) {
  GmresBench bench;
  bench.matrix = laplacian_matrix(8);
  // Different diagonal elements, so that Jacobi's preconditioner is not a multiple of I.
  for (std::int64_t i = 0; i < bench.matrix.rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (std::int64_t e = bench.matrix.start[row]; e < bench.matrix.start[row + 1]; ++e)
      bench.matrix.value[static_cast<std::size_t>(e)] *=
          std::pow(10, 3.0 * static_cast<double>(i % 7) / 6);
  }
  bench.balance = false;
  bench.restart = 20;
  bench.restarts_max = 200;
  bench.repeats = 1;
  bench.s = {5};
  bench.bases = {KrylovBasis::monomial};
  bench.methods = {QrMethod::cholqr_wide, QrMethod::cholqr2};
  bench.blocks = {BlockOrthogonalization::classical, BlockOrthogonalization::pythagorean,
                  BlockOrthogonalization::two_stage};
  bench.preconditioners = {Preconditioner::none, Preconditioner::jacobi,
                           Preconditioner::block_jacobi};
  bench.block_size = 64;
  bench.device_counts = {2};
  const std::vector<GmresRow> rows = run_gmres_bench(bench, small_host());
  // Two yardsticks; both methods classical and pythagorean, one in two stages.
  ASSERT_EQ(rows.size(), 3U * (2 + 5) + (1 + 5));
  std::vector<std::string> names;
  for (std::size_t i = 7; i < 14; ++i) names.push_back(name_of(rows[i]));
  EXPECT_EQ(names,
            (std::vector<std::string>{
                "gmres cgs2, jacobi", "gmres mgs, jacobi", "s = 5 monomial cholqr-wide, jacobi",
                "s = 5 monomial cholqr2, jacobi", "s = 5 monomial cholqr-wide pythagorean, jacobi",
                "s = 5 monomial cholqr2 pythagorean, jacobi",
                "s = 5 monomial cholqr-wide two-stage, jacobi"}));
  EXPECT_EQ(name_of(rows.back()), "s = 5 monomial cholqr-wide two-stage, block-jacobi");
  EXPECT_EQ(rows.back().devices, 2);
  for (std::size_t group = 0; group < 3; ++group) {
    const auto at = [&](std::size_t i) -> const GmresRow& { return rows[7 * group + i]; };
    EXPECT_EQ(at(0).ratio, 1);
    EXPECT_DOUBLE_EQ(at(4).ratio, at(0).seconds / at(4).seconds);
    for (std::size_t i = 0; i < 7 && group > 0; ++i) {
      EXPECT_TRUE(at(i).info.ok) << name_of(at(i));
      EXPECT_LT(at(i).info.iterations, rows[i].info.iterations) << name_of(at(i));
    }
    const auto sums = [&](std::size_t i) {
      return static_cast<double>(at(i).info.reductions) /
             static_cast<double>(at(i).info.iterations);
    };
    EXPECT_LT(sums(4), 0.75 * sums(2));
    EXPECT_LT(sums(5), 0.75 * sums(3));
    EXPECT_LT(sums(6), sums(3));
  }
  bench.methods = {QrMethod::cholqr2};
  EXPECT_THROW((void)run_gmres_bench(bench, small_host()), Error);
  bench.blocks = {BlockOrthogonalization::classical};
  bench.panel = 10;
  EXPECT_THROW((void)run_gmres_bench(bench, small_host()), Error);
}

}  // namespace
}  // namespace strata::bench
