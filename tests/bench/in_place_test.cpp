// Filling and the residual in host memory, against LAPACK and plain loops.

#include "bench/in_place.hpp"

#include <gtest/gtest.h>
#include <lapacke.h>

#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "kernels/backend/backend.hpp"

namespace strata::bench {
namespace {

struct Case {
  const char* name;
  MatrixKind kind;
  std::int64_t n;
};
void PrintTo(const Case& c, std::ostream* stream) { *stream << c.name << " " << c.n; }

class HostInPlace : public testing::TestWithParam<Case> {
 protected:
  /// Two matrices, each with two rows of padding that must not be touched.
  HostInPlace()
      : matrix_{.kind = GetParam().kind, .seed = 11, .condition = 1e4, .smoothness = 1.5},
        n_(GetParam().n),
        ld_(n_ + 2),
        values_(static_cast<std::size_t>(2 * ld_ * n_), -77),
        a_{.data = values_.data(), .n = n_, .ld = ld_, .count = 2} {
    in_place_->fill(a_, matrix_);
  }

  double& at(std::int64_t b, std::int64_t i, std::int64_t j) {
    return values_[static_cast<std::size_t>(b * ld_ * n_ + i + j * ld_)];
  }
  void factor() {
    for (std::int64_t b = 0; b < 2; ++b) {
      ASSERT_EQ(LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', static_cast<lapack_int>(n_), &at(b, 0, 0),
                               static_cast<lapack_int>(ld_)),
                0);
    }
  }

  const std::unique_ptr<InPlace> in_place_ = make_host_in_place(1);
  TestMatrix matrix_;
  std::int64_t n_;
  std::int64_t ld_;
  std::vector<double> values_;
  Matrices a_;
};

TEST_P(HostInPlace, FillsLowerTriangles) {
  for (std::int64_t b = 0; b < 2; ++b) {
    const TestMatrix matrix = of_batch(matrix_, b);
    for (std::int64_t j = 0; j < n_; ++j) {
      for (std::int64_t i = 0; i < n_; ++i)
        EXPECT_EQ(at(b, i, j), i < j ? 0 : element(matrix, n_, i, j));
      EXPECT_EQ(at(b, n_, j), -77);
      EXPECT_EQ(at(b, n_ + 1, j), -77);
    }
  }
}

/// The residual of a factor with one wrong element can be written down: with e added to l_pq,
/// L·Lᵀ·v changes by e·w_q in row p and by e·l_iq·v_p in every row i, and by e²·v_p in row p.
TEST_P(HostInPlace, ResidualIsTheErrorThatWasMade) {
  factor();
  EXPECT_LT(in_place_->residual(a_, matrix_), 1e-15);
  const std::int64_t p = n_ - 1;
  const std::int64_t q = n_ / 3;
  const double e = 1e-3 * at(1, q, q);
  const TestMatrix last = of_batch(matrix_, 1);
  std::vector<double> v;
  double norm_v = 0;
  for (std::int64_t i = 0; i < n_; ++i) {
    v.push_back(random_uniform(last.seed + 1, static_cast<std::uint64_t>(i)) - 0.5);
    norm_v = std::max(norm_v, std::abs(v.back()));
  }
  double w = 0;
  for (std::int64_t i = q; i < n_; ++i) w += at(1, i, q) * v[static_cast<std::size_t>(i)];
  double worst = 0;
  double norm_a = 0;
  for (std::int64_t i = 0; i < n_; ++i) {
    double error = i < q ? 0 : e * at(1, i, q) * v[static_cast<std::size_t>(p)];
    if (i == p) error += e * w + e * e * v[static_cast<std::size_t>(p)];
    worst = std::max(worst, std::abs(error));
    double norm = 0;
    for (std::int64_t j = 0; j < n_; ++j) norm += std::abs(element(last, n_, i, j));
    norm_a = std::max(norm_a, norm);
  }
  at(1, p, q) += e;
  const double expected = worst / (norm_a * norm_v);
  // The factor's own residual, below 1e-15, is the rest: no more than this share of any of them.
  EXPECT_GT(expected, 1e-5);
  EXPECT_NEAR(in_place_->residual(a_, matrix_), expected, 1e-10 * expected);
  at(1, p, q) = std::nan("");
  EXPECT_TRUE(std::isnan(in_place_->residual(a_, matrix_)));
}

/// Host and GPU fill the same matrix and find the same residual of the same wrong factor.
TEST_P(HostInPlace, CudaDoesTheSame) {
  const Backend* cuda = cuda_backend();
  if (cuda == nullptr) GTEST_SKIP() << "no GPU";
  const std::unique_ptr<Device> device = cuda->make_device(0, 16_MiB);
  const std::unique_ptr<Queue> queue = device->make_queue(QueuePriority::normal);
  const std::unique_ptr<InPlace> in_place = make_cuda_in_place();
  const Buffer memory = device->allocate(a_.bytes());
  Matrices there = a_;
  there.data = memory.data();
  in_place->fill(there, matrix_);
  std::vector<double> filled(values_.size());
  queue->copy(filled.data(), there.data, a_.bytes(), CopyDirection::device_to_host);
  queue->synchronize();
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t j = 0; j < n_; ++j) {
      for (std::int64_t i = 0; i < n_; ++i) {
        const double value = filled[static_cast<std::size_t>(&at(b, i, j) - values_.data())];
        EXPECT_NEAR(value, at(b, i, j), 1e-14 * std::abs(at(b, i, j)));
      }
    }
  }
  factor();
  at(1, n_ - 1, n_ / 3) += 1e-3 * at(1, n_ / 3, n_ / 3);
  queue->copy(there.data, values_.data(), a_.bytes(), CopyDirection::host_to_device);
  queue->synchronize();
  const double expected = in_place_->residual(a_, matrix_);
  EXPECT_GT(expected, 1e-5);
  EXPECT_NEAR(in_place->residual(there, matrix_), expected, 1e-10 * expected);
}

INSTANTIATE_TEST_SUITE_P(Matrices, HostInPlace,
                         testing::Values(Case{"random", MatrixKind::random, 1},
                                         Case{"random", MatrixKind::random, 70},
                                         Case{"graded", MatrixKind::graded, 33},
                                         Case{"matern", MatrixKind::matern, 2},
                                         Case{"matern", MatrixKind::matern, 101}),
                         [](const auto& info) {
                           return std::string(info.param.name) + "_" + std::to_string(info.param.n);
                         });

}  // namespace
}  // namespace strata::bench
