// The covariance kernels: the reference on data checked by hand, host and CUDA against it.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kernels/backend/backend.hpp"
#include "kernels/covariance/covariance.hpp"
#include "strata/error.hpp"

namespace strata {
namespace {

/// Runs what is submitted at once; enough of a queue for a host kernel.
class ImmediateQueue final : public Queue {
 public:
  void copy(void* destination, const void* source, std::int64_t bytes, CopyDirection) override {
    std::memcpy(destination, source, static_cast<std::size_t>(bytes));
  }
  void submit(std::function<void()> function) override { function(); }
  [[nodiscard]] Event record() override { return {}; }
  void wait(const Event&) override {}
  void synchronize() override {}
  [[nodiscard]] bool failed() const override { return false; }
};

/// A block with its operands: rows from P (m × d), columns from Q (n × d), coordinates of type X.
template <class T, class X = T>
struct Problem {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t dimensions = 2;
  std::vector<X> p;
  std::vector<X> q;
  CovarianceParameters parameters;
  std::int64_t row = 0;
  std::int64_t col = 0;

  [[nodiscard]] static Elements elements() { return {element_of<T>, element_of<X>, element_of<X>}; }
  [[nodiscard]] std::array<BlockView, 3> views(void* out, const void* p_data,
                                               const void* q_data) const {
    return {BlockView{out, rows, cols, rows, row, col},
            BlockView{const_cast<void*>(p_data), rows, dimensions, rows, row, 0},
            BlockView{const_cast<void*>(q_data), cols, dimensions, cols, col, 0}};
  }

  [[nodiscard]] std::vector<T> on_host(KernelFunction kernel) const {
    std::vector<T> out(static_cast<std::size_t>(rows * cols), T(-7));
    ImmediateQueue queue;
    const auto operands = views(out.data(), p.data(), q.data());
    kernel(queue, {operands, covariance.operands}, {.values = &parameters});
    return out;
  }

  [[nodiscard]] std::vector<T> on_device(const Backend& backend) const {
    const auto bytes = [](const auto& v) {
      return static_cast<std::int64_t>(v.size() * sizeof(v[0]));
    };
    std::vector<T> out(static_cast<std::size_t>(rows * cols), T(-7));
    const auto device = backend.make_device(0, 64 << 20);
    const auto queue = device->make_queue(QueuePriority::normal);
    const Buffer on_out = device->allocate(bytes(out));
    const Buffer on_p = device->allocate(bytes(p));
    const Buffer on_q = device->allocate(bytes(q));
    queue->copy(on_p.data(), p.data(), bytes(p), CopyDirection::host_to_device);
    queue->copy(on_q.data(), q.data(), bytes(q), CopyDirection::host_to_device);
    const auto operands = views(on_out.data(), on_p.data(), on_q.data());
    const KernelFunction kernel = backend.kernels().find(covariance.name, elements());
    if (kernel == nullptr) throw std::runtime_error("no covariance kernel in " + backend.name());
    kernel(*queue, {operands, covariance.operands}, {.values = &parameters});
    queue->copy(out.data(), on_out.data(), bytes(out), CopyDirection::device_to_host);
    queue->synchronize();
    return out;
  }
};

template <class T, class X>
Problem<T, X> random_problem(std::int64_t rows, std::int64_t cols, std::int64_t dimensions,
                             const CovarianceParameters& parameters, std::int64_t row,
                             std::int64_t col) {
  Problem<T, X> problem{rows, cols, dimensions, {}, {}, parameters, row, col};
  // A coordinate depends on the element row, so that equal rows are the same point.
  for (std::int64_t k = 0; k < dimensions; ++k) {
    const auto at = [k](std::int64_t i) {
      return static_cast<X>(10 * random_uniform(static_cast<std::uint64_t>(k),  //
                                                static_cast<std::uint64_t>(i)));
    };
    for (std::int64_t i = 0; i < rows; ++i) problem.p.push_back(at(row + i));
    for (std::int64_t j = 0; j < cols; ++j) problem.q.push_back(at(col + j));
  }
  return problem;
}

/// Distance over range of the points of an element, with a rounding error or two.
template <class T, class X>
double over_range(const Problem<T, X>& problem, std::int64_t i, std::int64_t j) {
  double square = 0;
  for (std::int64_t k = 0; k < problem.dimensions; ++k) {
    const double difference =
        static_cast<double>(problem.p[static_cast<std::size_t>(i + k * problem.rows)]) -
        static_cast<double>(problem.q[static_cast<std::size_t>(j + k * problem.cols)]);
    square += difference * difference;
  }
  return std::sqrt(square) / problem.parameters.range;
}

/// `single`: the kernel computes in single precision as covariance.hpp says.
template <class T, class X>
void expect_equal_blocks(const Problem<T, X>& problem, const std::vector<T>& value,
                         const std::vector<T>& expected, bool single = false) {
  // The correlation is good to 1e-13; distance / range adds an error of x·eps times the slope.
  const double rounded = sizeof(T) == 8 ? 2e-13 : 0x1p-23;
  ASSERT_EQ(value.size(), expected.size());
  for (std::size_t e = 0; e < value.size(); ++e) {
    const auto i = static_cast<std::int64_t>(e) % problem.rows;
    const auto j = static_cast<std::int64_t>(e) / problem.rows;
    // The reference is rounded, too.
    const double tolerance = single ? 0x1p-22 * (1 + over_range(problem, i, j)) + 0x1p-24 : rounded;
    ASSERT_TRUE(std::fabs(value[e] - expected[e]) <=
                tolerance * std::fabs(expected[e]) + 2 * std::numeric_limits<T>::denorm_min())
        << "element " << i << ", " << j << ": " << value[e] << " for " << expected[e]
        << ", smoothness " << problem.parameters.smoothness << ", range "
        << problem.parameters.range;
  }
}

/// Elements of the block and of the coordinates.
template <class Out, class In>
struct Pair {
  using T = Out;
  using X = In;
};

template <class P>
class Covariance : public ::testing::Test {
 public:
  using T = typename P::T;
  using X = typename P::X;
};
using CovarianceTypes =
    ::testing::Types<Pair<double, double>, Pair<float, float>, Pair<float, double>>;
TYPED_TEST_SUITE(Covariance, CovarianceTypes);

TYPED_TEST(Covariance, ReferenceByHand) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  // Points (0,0), (3,4), (6,8): distances 5 and 10; range 5.
  Problem<T, X> problem{3, 3, 2, {0, 3, 6, 0, 4, 8}, {0, 3, 6, 0, 4, 8}, {}, 0, 0};
  const double e = std::exp(-1.0);
  const double e2 = std::exp(-2.0);
  const double eps = sizeof(T) == 8 ? 1e-15 : 1e-6;
  struct Case {
    double smoothness, at_one, at_two;
  };
  // Correlations at x = 1, 2 by the closed forms; for ν = 1 it is x·K_1(x), tabulated in Abramowitz
  // and Stegun 9.8.
  for (const Case& c : {Case{0.5, e, e2}, Case{1.5, 2 * e, 3 * e2},
                        Case{2.5, (2 + 1 / 3.0) * e, (3 + 4 / 3.0) * e2},
                        Case{1, 0.601907230197234575, 2 * 0.139865881816522427}}) {
    problem.parameters = {2, 5, c.smoothness, 0.25, true};
    const auto out = problem.on_host(covariance_reference<T, X>);
    for (const int diagonal : {0, 4, 8}) {
      EXPECT_NEAR(out[static_cast<std::size_t>(diagonal)], 2.25, eps);
    }
    for (const int near : {1, 3, 5, 7}) {
      EXPECT_NEAR(out[static_cast<std::size_t>(near)], 2 * c.at_one, 2 * eps);
    }
    for (const int far : {2, 6}) {
      EXPECT_NEAR(out[static_cast<std::size_t>(far)], 2 * c.at_two, 2 * eps);
    }
  }
}

TYPED_TEST(Covariance, NuggetFollowsTheElementAndNotTheDistance) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  // Two coincident points: the off-diagonal element has no nugget; neither has a cross-covariance.
  Problem<T, X> problem{2, 2, 1, {1, 1}, {1, 1}, {3, 1, 0.7, 0.5, true}, 0, 0};
  for (const KernelFunction kernel : {&covariance_reference<T, X>, &covariance_host<T, X>}) {
    problem.row = problem.col = 0;
    problem.parameters.same_points = true;
    EXPECT_EQ(problem.on_host(kernel), (std::vector<T>{3.5, 3, 3, 3.5}));
    problem.row = 1;  // rows 1, 2 and columns 0, 1: the diagonal is element (0, 1)
    EXPECT_EQ(problem.on_host(kernel), (std::vector<T>{3, 3, 3.5, 3}));
    problem.row = problem.col = 5;
    problem.parameters.same_points = false;
    EXPECT_EQ(problem.on_host(kernel), (std::vector<T>{3, 3, 3, 3}));
  }
}

TYPED_TEST(Covariance, HostAgainstReference) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  for (const double nu : {0.1, 0.5, 0.83, 1.0, 1.5, 2.2, 2.5, 6.0, 20.0}) {
    for (const double range : {0.02, 1.3, 500.0}) {
      const CovarianceParameters parameters{1.7, range, nu, 0.3, true};
      for (const std::int64_t d : {1, 2, 3}) {
        for (const auto& [rows, cols, row, col] :
             {std::array<std::int64_t, 4>{17, 17, 34, 34}, {17, 9, 12, 10}, {1, 33, 40, 0}}) {
          const auto p = random_problem<T, X>(rows, cols, d, parameters, row, col);
          expect_equal_blocks(p, p.on_host(covariance_host<T, X>),
                              p.on_host(covariance_reference<T, X>));
        }
      }
    }
  }
}

TYPED_TEST(Covariance, FarApartIsExactlyZeroAndNaNStays) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  Problem<T, X> problem{1, 3, 1, {0}, {X(1e30), X(NAN), 2}, {}, 0, 0};
  for (const double nu : {0.5, 1.2, 2.5}) {
    problem.parameters = {1, 1e-3, nu, 0, false};
    for (const KernelFunction kernel : {&covariance_reference<T, X>, &covariance_host<T, X>}) {
      const auto out = problem.on_host(kernel);
      EXPECT_EQ(out[0], 0) << nu;
      EXPECT_TRUE(std::isnan(out[1])) << nu;
      EXPECT_EQ(out[2], 0) << nu;  // x = 2000
    }
  }
}

TYPED_TEST(Covariance, DiagonalTileOfTheHostIsSymmetric) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  const std::int64_t n = 37;
  const auto p = random_problem<T, X>(n, n, 2, {1, 2, 0.9, 0.1, true}, 74, 74);
  const auto out = p.on_host(covariance_host<T, X>);
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t i = 0; i < j; ++i) {
      EXPECT_EQ(out[static_cast<std::size_t>(i + j * n)], out[static_cast<std::size_t>(j + i * n)]);
    }
  }
}

/// The blocks of one task on a device, one after the other.
template <class T, class X>
std::vector<std::vector<T>> together(const Backend& backend,
                                     const std::vector<Problem<T, X>>& problems) {
  const auto device = backend.make_device(0, 64 << 20);
  const auto queue = device->make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> views;
  const auto load = [&](const auto& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(values[0]));
    memory.push_back(device->allocate(bytes));
    queue->copy(memory.back().data(), values.data(), bytes, CopyDirection::host_to_device);
    return memory.back().data();
  };
  std::vector<std::vector<T>> blocks;
  for (const Problem<T, X>& problem : problems) {
    blocks.emplace_back(static_cast<std::size_t>(problem.rows * problem.cols), T(-7));
    for (const BlockView& view :
         problem.views(load(blocks.back()), load(problem.p), load(problem.q))) {
      views.push_back(view);
    }
  }
  const KernelFunction kernel = backend.kernels().find(covariance.name, Problem<T, X>::elements());
  kernel(*queue, {views, covariance.operands}, {.values = &problems[0].parameters});
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    queue->copy(blocks[i].data(), views[3 * i].data,
                static_cast<std::int64_t>(blocks[i].size() * sizeof(T)),
                CopyDirection::device_to_host);
  }
  queue->synchronize();
  return blocks;
}

TYPED_TEST(Covariance, ManyCallsGiveTheBitsOfEachAlone) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  std::vector<const Backend*> backends{&reference_backend(), &host_backend()};
  if (const Backend* cuda = cuda_backend(); cuda != nullptr) backends.push_back(cuda);
  const CovarianceParameters parameters{1.7, 1.3, 0.83, 0.3, true};
  std::vector<Problem<T, X>> problems;
  for (const auto& [rows, cols, row, col] : {std::array<std::int64_t, 4>{17, 17, 34, 34},
                                             {17, 9, 12, 10},
                                             {1, 33, 40, 0},
                                             {65, 66, 0, 65}}) {
    problems.push_back(random_problem<T, X>(rows, cols, 2, parameters, row, col));
  }
  for (const Backend* backend : backends) {
    const auto blocks = together(*backend, problems);
    for (std::size_t i = 0; i < problems.size(); ++i)
      EXPECT_EQ(blocks[i], problems[i].on_device(*backend)) << backend->name() << " " << i;
  }
}

/// Points of which the first is at every kind of distance over range from the others: zero, below
/// the least double when squared, usual, where the exponential underflows, infinite.
Problem<double> problem_of_distances(std::int64_t dimensions, double smoothness, double range) {
  std::vector<double> over_range{0, 1e-300, 1e-170, 0x1p-451, 0x1p-450, 0x1p-449, 1e-40, 1e-16};
  for (int k = 0; k < 60; ++k)
    over_range.push_back(std::exp2(-20 + 30 * random_uniform(7, static_cast<std::uint64_t>(k))));
  for (const double end :
       {689.5, 690.0, 699.0, 700.0, 708.0, 744.0, 1499.0, 1500.0, 1501.0, 3000.0})
    for (const double beside : {1 - 1e-15, 1.0, 1 + 1e-15}) over_range.push_back(end * beside);
  for (const double far : {1e10, 1e150, 1e160, 1e300}) over_range.push_back(far);
  const auto count = static_cast<std::int64_t>(over_range.size());
  Problem<double> problem{count, 3, dimensions, {}, {}, {1.7, range, smoothness, 0, false}, 0, 0};
  problem.p.assign(static_cast<std::size_t>(count * dimensions), 0.0);
  problem.q.assign(static_cast<std::size_t>(3 * dimensions), 0.0);
  for (std::size_t i = 0; i < over_range.size(); ++i)
    problem.p[i + over_range.size() * (i % static_cast<std::size_t>(dimensions))] =
        over_range[i] * range;
  problem.q[1] = range;  // from there all that is small is near 1
  problem.q[2] = -700 * range;
  return problem;
}

TEST(CovarianceOfDistances, IsRightAtEveryDistanceAndTheSameAlone) {
  std::vector<const Backend*> backends{&host_backend()};
  if (const Backend* cuda = cuda_backend(); cuda != nullptr) backends.push_back(cuda);
  for (const std::int64_t dimensions : {1, 2, 3}) {
    for (const double smoothness : {0.5, 0.83, 1.5, 2.5}) {
      for (const double range : {0x1p-399, 1e-3, 0.37, 1e5, 0x1p399}) {
        const Problem<double> problem = problem_of_distances(dimensions, smoothness, range);
        const auto expected = problem.on_host(covariance_reference<double>);
        for (const Backend* backend : backends) {
          SCOPED_TRACE(backend->name() + " in " + std::to_string(dimensions) + " dimensions");
          const auto block = problem.on_device(*backend);
          expect_equal_blocks(problem, block, expected);
          if (dimensions != 2) continue;
          for (std::int64_t i = 0; i < problem.rows; ++i) {
            Problem<double> one = problem;
            one.rows = 1;
            one.p = {problem.p[static_cast<std::size_t>(i)],
                     problem.p[static_cast<std::size_t>(i + problem.rows)]};
            const auto alone = one.on_device(*backend);
            for (std::int64_t j = 0; j < problem.cols; ++j)
              EXPECT_EQ(alone[static_cast<std::size_t>(j)],
                        block[static_cast<std::size_t>(i + j * problem.rows)])
                  << i << ", " << j;
          }
        }
      }
    }
  }
}

/// A separation, with how many coordinates it is tried.
struct SeparationCase {
  const char* name = "";
  std::int64_t dimensions = 2;
  double smoothness = 0.5;
  double range = 1;
  Separation separation;
};

std::vector<SeparationCase> separation_cases() {
  const auto time = [](double scale, double smoothness, double interaction) {
    return TimeParameters{scale, smoothness, interaction};
  };
  return {{"anisotropic", 2, 1.5, 1.3, {Distance::euclidean, 0.3, 30, {}}},
          {"anisotropic, general", 2, 0.83, 1.3, {Distance::euclidean, 0.7, -100, {}}},
          {"anisotropic in space", 3, 0.5, 1.3, {Distance::euclidean, 0.5, 90, {}}},
          {"in time alone", 2, 2.5, 1.3, {Distance::euclidean, 1, 0, time(0.4, 0.5, 0)}},
          {"separable", 3, 0.5, 1.3, {Distance::euclidean, 1, 0, time(0.4, 0.8, 0)}},
          {"not separable", 3, 1.1, 1.3, {Distance::euclidean, 1, 0, time(2.5, 1, 0.9)}},
          {"everything", 4, 0.7, 2, {Distance::euclidean, 0.4, 45, time(0.1, 0.3, 0.6)}},
          {"sphere", 2, 0.5, 900, {Distance::great_circle, 1, 0, {}}},
          {"sphere, general", 2, 0.3, 2500, {Distance::great_circle, 1, 0, {}}},
          {"sphere and time", 3, 0.4, 900, {Distance::great_circle, 1, 0, time(0.4, 0.6, 0)}}};
}

template <class T, class X>
Problem<T, X> problem_of(const SeparationCase& c) {
  const CovarianceParameters parameters{1.7, c.range, c.smoothness, 0.3, true, c.separation};
  auto problem = random_problem<T, X>(67, 41, c.dimensions, parameters, 12, 10);
  if (c.separation.distance == Distance::great_circle) {
    for (auto* points : {&problem.p, &problem.q}) {
      const std::size_t n = points->size() / static_cast<std::size_t>(c.dimensions);
      for (std::size_t i = 0; i < n; ++i) (*points)[i] = 54 * (*points)[i] - 180;
      for (std::size_t i = n; i < 2 * n; ++i) (*points)[i] = 18 * (*points)[i] - 90;
    }
  }
  return problem;
}

TYPED_TEST(Covariance, HostAgainstReferenceForEverySeparation) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  for (const SeparationCase& c : separation_cases()) {
    SCOPED_TRACE(c.name);
    const auto p = problem_of<T, X>(c);
    expect_equal_blocks(p, p.on_host(covariance_host<T, X>), p.on_host(covariance_reference<T, X>));
  }
}

TYPED_TEST(Covariance, CudaAgainstReferenceForEverySeparation) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  std::string why;
  const Backend* cuda = cuda_backend(&why);
  if (cuda == nullptr) GTEST_SKIP() << "no CUDA backend: " << why;
  for (const SeparationCase& c : separation_cases()) {
    SCOPED_TRACE(c.name);
    const auto p = problem_of<T, X>(c);
    expect_equal_blocks(p, p.on_device(*cuda), p.on_host(covariance_reference<T, X>));
  }
}

TYPED_TEST(Covariance, SeparationsByHand) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  const double eps = sizeof(T) == 8 ? 1e-14 : 1e-6;
  const auto element = [&](KernelFunction kernel, Problem<T, X> problem) {
    return static_cast<double>(problem.on_host(kernel)[0]);
  };
  for (const KernelFunction kernel : {&covariance_reference<T, X>, &covariance_host<T, X>}) {
    // Major axis along (3, 4)/5: that point is 5 away, and (−4, 3) is 5/0.25 = 20 away.
    const Separation turned{Distance::euclidean, 0.25, std::atan2(4, 3) * 180 / std::acos(-1), {}};
    CovarianceParameters parameters{2, 10, 0.5, 0, false, turned};
    EXPECT_NEAR(element(kernel, {1, 1, 2, {0, 0}, {3, 4}, parameters, 0, 0}), 2 * std::exp(-0.5),
                eps);
    EXPECT_NEAR(element(kernel, {1, 1, 2, {0, 0}, {-4, 3}, parameters, 0, 0}), 2 * std::exp(-2.0),
                eps);
    // u = 4, α = 1/2, a = 2: w = 9; β = 1: x = 6 / 2 / 3.
    parameters = {2, 2, 0.5, 0, false, {Distance::euclidean, 1, 0, TimeParameters{2, 0.5, 1}}};
    EXPECT_NEAR(element(kernel, {1, 1, 2, {0, 1}, {6, 5}, parameters, 0, 0}),
                2.0 / 9 * std::exp(-1.0), eps);
    // A quarter of a meridian, in kilometres.
    parameters = {1, kEarthRadiusKm, 0.5, 0, false, {Distance::great_circle, 1, 0, {}}};
    EXPECT_NEAR(element(kernel, {1, 1, 2, {30, 90}, {-70, 0}, parameters, 0, 0}),
                std::exp(-std::acos(0.0)), eps);
  }
}

TYPED_TEST(Covariance, CoordinatesThatDoNotFitTheDistanceAreRefused) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  const Separation sphere{Distance::great_circle, 1, 0, {}};
  const Separation turned{Distance::euclidean, 0.5, 0, {}};
  const Separation timed{Distance::euclidean, 1, 0, TimeParameters{}};
  for (const auto& [separation, dimensions] :
       {std::pair{sphere, 3}, {sphere, 1}, {turned, 1}, {timed, 1}}) {
    const CovarianceParameters parameters{1, 1, 0.5, 0, false, separation};
    const auto problem = random_problem<T, X>(2, 2, dimensions, parameters, 0, 0);
    EXPECT_THROW((void)problem.on_host(covariance_host<T, X>), Error);
  }
}

/// Whether the GPU computes such blocks in single precision.
template <class T, class X>
bool in_single(double smoothness) {
  const bool closed = smoothness == 0.5 || smoothness == 1.5 || smoothness == 2.5;
  return std::is_same_v<T, float> && std::is_same_v<X, double> && closed;
}

TYPED_TEST(Covariance, CudaAgainstReference) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  std::string why;
  const Backend* cuda = cuda_backend(&why);
  if (cuda == nullptr) GTEST_SKIP() << "no CUDA backend: " << why;
  for (const double nu : {0.1, 0.5, 0.83, 1.0, 1.5, 2.2, 2.5, 6.0, 20.0}) {
    for (const double range : {0.02, 1.3, 500.0}) {
      const CovarianceParameters parameters{1.7, range, nu, 0.3, true};
      for (const auto& [rows, cols, row, col] :
           {std::array<std::int64_t, 4>{65, 65, 130, 130}, {67, 31, 12, 10}, {1, 129, 40, 0}}) {
        for (const std::int64_t d : {1, 2, 3}) {
          const auto p = random_problem<T, X>(rows, cols, d, parameters, row, col);
          expect_equal_blocks(p, p.on_device(*cuda), p.on_host(covariance_reference<T, X>),
                              in_single<T, X>(nu));
        }
      }
    }
  }
}

TYPED_TEST(Covariance, CudaOfManyBlocksAndFarApart) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  std::string why;
  const Backend* cuda = cuda_backend(&why);
  if (cuda == nullptr) GTEST_SKIP() << "no CUDA backend: " << why;
  // Several blocks of threads in both directions, x on both sides of 80, 174 and 300, and a
  // variance that brings back what an exponential alone would lose.
  for (const double nu : {0.5, 1.5, 2.5, 1.0, 12.0}) {
    for (const auto& [variance, range] :
         {std::array<double, 2>{1.7, 2.0}, {1e25, 0.05}, {2, 0.03}}) {
      const CovarianceParameters parameters{variance, range, nu, 0.3, true};
      const auto p = random_problem<T, X>(517, 131, 2, parameters, 0, 400);
      expect_equal_blocks(p, p.on_device(*cuda), p.on_host(covariance_reference<T, X>),
                          in_single<T, X>(nu));
    }
  }
  Problem<T, X> problem{1, 4, 2, {0, 0}, {X(1e30), X(NAN), 2, 0, 0, 0, 0, 0}, {}, 0, 0};
  for (const double nu : {0.5, 1.5, 2.5, 1.2}) {
    problem.parameters = {3, 1e-3, nu, 0.5, false};
    const auto out = problem.on_device(*cuda);
    EXPECT_EQ(out[0], 0) << nu;
    EXPECT_TRUE(std::isnan(out[1])) << nu;
    EXPECT_EQ(out[2], 0) << nu;
    EXPECT_EQ(out[3], 3) << nu;  // the same place, without a nugget
  }
}

TYPED_TEST(Covariance, CudaRoundsAlikeInBlocksOfAnyShape) {
  using T = typename TestFixture::T;
  using X = typename TestFixture::X;
  std::string why;
  const Backend* cuda = cuda_backend(&why);
  if (cuda == nullptr) GTEST_SKIP() << "no CUDA backend: " << why;
  for (const double nu : {0.5, 1.5, 0.8, 12.0}) {
    const CovarianceParameters parameters{1.7, 2.0, nu, 0.3, true};
    const auto whole = random_problem<T, X>(301, 70, 2, parameters, 0, 0).on_device(*cuda);
    const auto part = random_problem<T, X>(3, 2, 2, parameters, 298, 68).on_device(*cuda);
    for (std::size_t j = 0; j < 2; ++j) {
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_EQ(part[i + 3 * j], whole[298 + i + 301 * (68 + j)]) << nu;
      }
    }
  }
}

}  // namespace
}  // namespace strata
