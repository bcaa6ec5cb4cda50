// Arnoldi: A·Q = Q·H and QᵀQ = I, whatever the basis and however its blocks are made orthonormal;
// and slabs of rows.

#include "krylov/arnoldi.hpp"

#include <gtest/gtest.h>

#include <fmt/core.h>
#include <algorithm>
#include <cmath>

#include "base/random.hpp"
#include "krylov/row_slabs.hpp"
#include "tests/krylov/matrices.hpp"

namespace strata {
namespace {

struct Expected {
  QrMethod method;
  double orthogonality;
  double relation;
  BlockOrthogonalization block = BlockOrthogonalization::classical;
  std::int64_t panel = 0;
};

class Relation : public ::testing::Test {
 protected:
  static constexpr std::int64_t kVectors = 24;

  /// The worst of |QᵀQ − I| and |A·Q − Q·H|. With a symmetric A errors are followed.
  void measure(const Expected& expected, std::int64_t s, const Recurrence& recurrence,
               const std::string& what, bool symmetric = false) {
    const auto n = static_cast<std::size_t>(a.rows);
    std::vector<double> start(n);
    double square = 0;
    for (std::size_t i = 0; i < n; ++i) {
      start[i] = random_normal(3, i);
      square += start[i] * start[i];
    }
    for (double& x : start) x /= std::sqrt(square);
    RunOptions options;
    options.devices = "host:2";
    options.device_memory_bytes = 64 << 20;
    BasisRunner runner(a, kVectors + 1, std::max(s, expected.panel), {{0, start}}, options, "test");
    RoundingLimits limits = rounding_limits(Element::fp64);
    if (symmetric) limits.amplification_once = 10;
    Arnoldi arnoldi(runner, {.s = s,
                             .method = expected.method,
                             .norm = 12,
                             .limits = limits,
                             .block = expected.block,
                             .panel = expected.panel,
                             .symmetric = symmetric,
                             .relation_max = expected.relation / 4});
    arnoldi.set_recurrence(recurrence);
    arnoldi.begin(0);
    while (arnoldi.size() < kVectors) {
      s == 1 ? arnoldi.add_vectors(5 < kVectors - arnoldi.size() ? 5 : kVectors - arnoldi.size())
             : arnoldi.add_block(kVectors - arnoldi.size());
      ASSERT_FALSE(arnoldi.ended() || arnoldi.not_finite()) << what;
    }
    std::vector<std::vector<double>> q;
    for (std::int64_t j = 0; j <= kVectors; ++j) {
      std::vector<double>& column = q.emplace_back(n);
      (void)runner.run_and_take(arnoldi.pending(), j, column);
      arnoldi.pending() = {};
    }
    double orthogonality = 0;
    double relation = 0;
    double followed = 0;
    for (std::size_t j = 0; j < q.size(); ++j) {
      for (std::size_t l = 0; l <= j; ++l) {
        double dot = 0;
        for (std::size_t i = 0; i < n; ++i) dot += q[l][i] * q[j][i];
        orthogonality = std::max(orthogonality, std::abs(dot - (l == j ? 1 : 0)));
      }
    }
    for (std::size_t j = 0; j + 1 < q.size(); ++j) {
      std::vector<double> y(n);
      multiply(a, q[j], y);
      const std::vector<double>& h = arnoldi.h()[j];
      ASSERT_LE(h.size(), j + 2);
      for (std::size_t l = 0; l < h.size(); ++l)
        for (std::size_t i = 0; i < n; ++i) y[i] -= q[l][i] * h[l];
      double left = 0;
      for (const double x : y) left += x * x;
      relation = std::max(relation, std::sqrt(left));
      if (symmetric)
        followed = std::max(followed, arnoldi.relation_error(static_cast<std::int64_t>(j)));
    }
    EXPECT_LE(orthogonality, expected.orthogonality) << what;
    EXPECT_LE(relation, expected.relation) << what;
    reductions = arnoldi.reductions;
    decisions = arnoldi.decisions;
    lost = orthogonality;
    if (!symmetric) return;
    EXPECT_LE(relation, 10 * followed) << what;
    EXPECT_LE(followed, expected.relation / 4) << what;
  }
  std::int64_t reductions = 0;
  std::vector<KrylovDecision> decisions;
  double lost = 0;

  SparseMatrix a = test::grid(8, 7, 9, 0.2);
};

TEST_F(Relation, HoldsVectorByVector) {
  for (const Expected& expected :
       {Expected{QrMethod::cgs2, 1e-14, 1e-13}, Expected{QrMethod::automatic, 1e-14, 1e-13},
        Expected{QrMethod::mgs, 1e-10, 1e-13}, Expected{QrMethod::cgs, 1e-8, 1e-13}})
    measure(expected, 1, {}, std::string(to_string(expected.method)));
}

/// Powers of A/8 up to the fifth have a condition near 1e4; what is lost follows from it.
TEST_F(Relation, HoldsByBlocksOfPowers) {
  const Recurrence powers = make_recurrence(KrylovBasis::monomial, 5, {}, 12);
  for (const Expected& expected :
       {Expected{QrMethod::cholqr2, 1e-12, 1e-9}, Expected{QrMethod::cholqr_wide2, 1e-12, 1e-9},
        Expected{QrMethod::cholqr_wide, 1e-6, 1e-9}, Expected{QrMethod::automatic, 1e-8, 1e-9},
        Expected{QrMethod::svqr, 1e-6, 1e-9}, Expected{QrMethod::svqr_wide, 1e-8, 1e-9},
        Expected{QrMethod::cgs2, 1e-14, 1e-9}, Expected{QrMethod::mgs, 1e-6, 1e-9}})
    measure(expected, 5, powers, std::string(to_string(expected.method)));
}

/// Twelve powers are beyond what sums in doubles tell apart. A column twice is orthogonal all the
/// same. A triangle whose eigenvalues are raised leaves columns that are not, but of lengths near
/// 1, where Cholesky's pivots are noise (1e11); and as it is the triangle that they were solved
/// with, H belongs to them.
TEST_F(Relation, HoldsWhereSumsInDoublesTellNothing) {
  const Recurrence powers = make_recurrence(KrylovBasis::monomial, 12, {}, 12);
  measure({QrMethod::cgs2, 1e-14, 1e-5}, 12, powers, "cgs2");
  measure({QrMethod::svqr_wide, 1e-4, 1e-5}, 12, powers, "svqr-wide");
  measure({QrMethod::svqr, 1.5, 1e-5}, 12, powers, "svqr");
  const double by_eigenvalues = lost;
  measure({QrMethod::cholqr, 1e15, 1e-5}, 12, powers, "cholqr");
  EXPECT_GT(lost, 1e6 * by_eigenvalues);
}

/// Five powers of A and the vectors before them have μ near 1e7: one pass of two sums loses ε·μ, by
/// Pythagoras ε·μ² in doubles. What has a second pass or a second stage loses nothing.
TEST_F(Relation, HoldsByPythagorasAndInTwoStages) {
  const Recurrence powers = make_recurrence(KrylovBasis::monomial, 5, {}, 12);
  const auto pythagorean = BlockOrthogonalization::pythagorean;
  const auto two_stage = BlockOrthogonalization::two_stage;
  const std::int64_t blocks = 5;  // of 24 vectors
  struct Case {
    Expected expected;
    std::int64_t reductions;  // 0: as many as it decides
  };
  for (const auto& [expected, count] :
       {Case{{QrMethod::cholqr, 5e-2, 1e-9, pythagorean}, blocks},
        Case{{QrMethod::cholqr2, 1e-12, 1e-9, pythagorean}, 2 * blocks},
        Case{{QrMethod::cholqr_wide, 1e-5, 1e-9, pythagorean}, blocks},
        Case{{QrMethod::cholqr_wide2, 1e-12, 1e-9, pythagorean}, 2 * blocks},
        Case{{QrMethod::svqr, 5e-2, 1e-9, pythagorean}, blocks},
        Case{{QrMethod::svqr_wide, 1e-5, 1e-9, pythagorean}, blocks},
        Case{{QrMethod::svqr, 1e-12, 1e-9, two_stage, 24}, blocks + 1},
        Case{{QrMethod::svqr_wide, 1e-12, 1e-9, two_stage, 10}, blocks + 3},
        Case{{QrMethod::automatic, 1e-8, 1e-9, pythagorean}, 0},
        Case{{QrMethod::cholqr, 1e-12, 1e-9, two_stage, 24}, blocks + 1},
        Case{{QrMethod::cholqr_wide, 1e-12, 1e-9, two_stage, 24}, blocks + 1},
        Case{{QrMethod::cholqr, 1e-12, 1e-9, two_stage, 10}, blocks + 3},
        Case{{QrMethod::cholqr, 1e-12, 1e-9, two_stage, 7}, 7 + 4},
        Case{{QrMethod::automatic, 1e-12, 1e-9, two_stage, 24}, 0}}) {
    const std::string what = fmt::format("{}, {}, panel {}", to_string(expected.method),
                                         to_string(expected.block), expected.panel);
    measure(expected, 5, powers, what);
    std::int64_t told = 0;
    for (const KrylovDecision& d : decisions) told += d.reductions;
    EXPECT_EQ(told, reductions) << what;
    EXPECT_EQ(reductions, count > 0 ? count : told) << what;
  }
  // Beside two sums a pass.
  measure({QrMethod::cholqr2, 1e-12, 1e-9}, 5, powers, "twice");
  EXPECT_EQ(reductions, 4 * blocks);
  measure({QrMethod::cholqr_wide, 1e-6, 1e-9}, 5, powers, "once");
  EXPECT_EQ(reductions, 2 * blocks);
  const double projected = lost;
  measure({QrMethod::cholqr_wide, 1e-5, 1e-9, pythagorean}, 5, powers, "wide, by Pythagoras");
  const double wide = lost;
  measure({QrMethod::cholqr, 5e-2, 1e-9, pythagorean}, 5, powers, "by Pythagoras");
  EXPECT_GT(wide, 100 * projected);
  EXPECT_GT(lost, 100 * wide);
}

/// In a good basis one sum a block is enough for what decides by itself.
TEST_F(Relation, PythagorasTakesOneSumWhereThatIsEnough) {
  const std::vector<std::complex<double>> ritz{{11.3, 0}, {0.6, 0}, {6, 0}, {3, 0}};
  const Recurrence newton = make_recurrence(KrylovBasis::newton, 2, ritz, 12);
  measure({QrMethod::automatic, 1e-8, 1e-9, BlockOrthogonalization::pythagorean}, 2, newton,
          "pairs");
  std::int64_t single = 0;
  for (const KrylovDecision& d : decisions) single += d.reductions == 1 ? 1 : 0;
  EXPECT_GE(single, std::ssize(decisions) / 2);
  // Where it is not, it says so, and is as good as with two sums.
  const Recurrence powers = make_recurrence(KrylovBasis::monomial, 12, {}, 12);
  measure({QrMethod::automatic, 1e-8, 1e-6, BlockOrthogonalization::pythagorean}, 12, powers,
          "powers");
  bool said = false;
  for (const KrylovDecision& d : decisions)
    said = said || (d.reductions > 1 && (d.what.find("projected") != std::string::npos ||
                                         d.what.find("wide") != std::string::npos));
  EXPECT_TRUE(said);
}

/// A block that cannot be told apart is cut, and what is kept is as good as any.
TEST_F(Relation, HoldsWhereBlocksAreCut) {
  const Recurrence powers = make_recurrence(KrylovBasis::monomial, 24, {}, 12);
  measure({QrMethod::automatic, 1e-8, 1e-6}, 24, powers, "24 powers");
  measure({QrMethod::automatic, 1e-12, 1e-6, BlockOrthogonalization::two_stage, 24}, 24, powers,
          "24 powers in two stages");
}

TEST_F(Relation, HoldsInTheOtherBases) {
  const std::vector<std::complex<double>> ritz{{11.3, 0}, {0.6, 0}, {6, 0.3},
                                               {6, -0.3}, {3, 0.1}, {3, -0.1}};
  for (const KrylovBasis basis : {KrylovBasis::newton, KrylovBasis::chebyshev}) {
    for (const std::int64_t s : {2, 3, 6, 8}) {
      measure({QrMethod::automatic, 1e-9, 1e-9}, s, make_recurrence(basis, s, ritz, 12),
              std::string(to_string(basis)) + " " + std::to_string(s));
    }
  }
  // Numbers far from 1, so that vectors are scaled.
  for (double& x : a.value) x *= 1e6;
  std::vector<std::complex<double>> large = ritz;
  for (auto& z : large) z *= 1e6;
  measure({QrMethod::automatic, 1e-8, 1e-3}, 6,
          make_recurrence(KrylovBasis::newton, 6, large, 1.2e7), "scaled");
}

/// The errors of the relation that are followed are those that there are, and blocks are cut where
/// they would be larger than is asked for: here powers, whose conditions are 1e8 and more.
TEST_F(Relation, IsFollowedForASymmetricMatrix) {
  a = test::grid(8, 7, 9);
  for (const double most : {1e-12, 1e-9, 1e-6}) {
    for (const std::int64_t s : {5, 12, 24}) {
      const Expected expected{QrMethod::automatic, 1e-13, most};
      const std::string what = std::to_string(s) + " to " + std::to_string(std::log10(most));
      measure(expected, s, make_recurrence(KrylovBasis::monomial, s, {}, 12), "powers, " + what,
              true);
      measure(expected, s, Recurrence(static_cast<std::size_t>(s), RecurrenceStep{6, 3, 1.0 / 3}),
              "Chebyshev, " + what, true);
    }
  }
}

// ---- scripts

/// A step is a task a device, whatever the vectors; what travels between slabs comes on top.
TEST(BasisScript, HasFewTasks) {
  WorkCrew crew(2);
  const SparseMatrix a = test::grid(40, 7, 9);  // neighbours are in the next slab at most
  for (const int devices : {1, 2, 4}) {
    const RowSlabs cut = cut_into_slabs(a, devices, 1, crew);
    ASSERT_EQ(std::ssize(cut.slabs), devices);
    ASSERT_EQ(std::ssize(cut.links), 2 * (devices - 1));
    BasisScript script;
    script.multiply(0, 1, 0, 0, 0, 1);
    script.update(0, 1, script.inner(0, 60, 1, 30));
    script.normalize(1, script.inner(1, 1, 1, 1, Element::dd));
    BasisProblem problem;
    problem.slabs = &cut;
    problem.columns = 91;
    problem.devices = devices;
    problem.stays = false;
    const Schedule schedule = basis_schedule(problem, script);
    const std::vector<std::int64_t> expected{devices + 2 * std::ssize(cut.links), 2 * devices,
                                             devices, 2 * devices, devices};
    ASSERT_EQ(schedule.steps, std::ssize(expected));
    for (std::int64_t step = 0; step < schedule.steps; ++step) {
      TaskList tasks;
      schedule.emit(step, tasks);
      EXPECT_EQ(std::ssize(tasks.tasks()), expected[static_cast<std::size_t>(step)]) << step;
      for (const Task& task : tasks.tasks()) {
        EXPECT_EQ(task.calls, 1U);
        EXPECT_LT(task.device, devices);
      }
    }
  }
}

// ---- slabs

TEST(RowSlabs, MultiplyAsTheMatrix) {
  const SparseMatrix a = test::grid(11, 9, 13, 0.1);
  std::vector<double> x(static_cast<std::size_t>(a.rows));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = random_normal(8, i);
  std::vector<double> expected(x.size());
  multiply(a, x, expected);
  WorkCrew crew(2);
  for (const auto& [devices, per_device] :
       {std::pair(1, 1), std::pair(3, 1), std::pair(4, 2), std::pair(2, 64), std::pair(40, 1)}) {
    const RowSlabs cut = cut_into_slabs(a, devices, per_device, crew);
    std::int64_t rows = 0;
    for (std::size_t s = 0; s < cut.slabs.size(); ++s) {
      const RowSlab& slab = cut.slabs[s];
      EXPECT_EQ(slab.first, rows);
      EXPECT_EQ(slab.first % (std::int64_t{1} << cut.chunk_log2), 0);
      EXPECT_TRUE(s == 0 || cut.slabs[s - 1].device <= slab.device);
      EXPECT_LT(slab.device, devices);
      rows += slab.rows;
      std::vector<double> halo(static_cast<std::size_t>(slab.halo), NAN);
      for (const HaloLink& link : cut.links) {
        if (link.to != static_cast<int>(s)) continue;
        const std::int64_t from = cut.slabs[static_cast<std::size_t>(link.from)].first;
        for (std::size_t i = 0; i < link.index.size(); ++i)
          halo[static_cast<std::size_t>(link.offset) + i] =
              x[static_cast<std::size_t>(from + link.index[i])];
      }
      for (std::int64_t r = 0; r < slab.rows; ++r) {
        const auto place = static_cast<std::size_t>(slab.first + r) + s;
        double sum = 0;
        for (std::int32_t e = cut.start[place]; e < cut.start[place + 1]; ++e) {
          const auto k = static_cast<std::size_t>(slab.first_entry + e);
          const std::int32_t j = cut.column[k];
          sum += a.value[k] * (j < slab.rows ? x[static_cast<std::size_t>(slab.first + j)]
                                             : halo[static_cast<std::size_t>(j - slab.rows)]);
        }
        EXPECT_EQ(sum, expected[static_cast<std::size_t>(slab.first + r)]);
      }
    }
    EXPECT_EQ(rows, a.rows);
  }
}

}  // namespace
}  // namespace strata
