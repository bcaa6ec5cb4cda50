#pragma once
// Runs one kernel of one backend on matrices of the test, and compares.
//
// Contract: operands are copied to the device, the kernel is called once through the backend's
// table with all of the calls, and every operand comes back, with the padding below its rows, so
// that a test also sees what must not be touched. The status of potrf lies on the device like a
// matrix. Parameters are (backend, precision); a backend that this machine lacks gives no
// instances.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "kernels/backend/backend.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trsm.hpp"
#include "scalar/complex.hpp"
#include "scalar/dispatch.hpp"
#include "strata/matrix_view.hpp"
#include "tests/support/problems.hpp"

namespace strata::testing {

/// NaN, of complex numbers in both parts.
template <class T>
[[nodiscard]] T nan_of() {
  constexpr RealOf<T> kNan = std::numeric_limits<RealOf<T>>::quiet_NaN();
  if constexpr (is_complex_v<T>) {
    return {kNan, kNan};
  } else {
    return kNan;
  }
}
template <class T>
[[nodiscard]] bool is_nan(const T& x) {
  return std::isnan(real_part(x)) || std::isnan(imaginary_part(x));
}

/// A column-major matrix of the test; its padding is NaN, which poisons whatever reads it.
template <class T>
struct Matrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 1;
  std::vector<T> data;

  Matrix() = default;
  Matrix(std::int64_t rows_in, std::int64_t cols_in, std::int64_t padding = 0)
      : rows(rows_in),
        cols(cols_in),
        ld(rows_in + padding),
        data(static_cast<std::size_t>(ld * cols), nan_of<T>()) {}
  template <class F>
  Matrix(std::int64_t rows_in, std::int64_t cols_in, std::int64_t padding, F&& value)
      : Matrix(rows_in, cols_in, padding) {
    for (std::int64_t j = 0; j < cols; ++j) {
      for (std::int64_t i = 0; i < rows; ++i) (*this)(i, j) = static_cast<T>(value(i, j));
    }
  }

  T& operator()(std::int64_t i, std::int64_t j) {
    return data[static_cast<std::size_t>(i + j * ld)];
  }
  const T& operator()(std::int64_t i, std::int64_t j) const {
    return data[static_cast<std::size_t>(i + j * ld)];
  }
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(data.size() * sizeof(T));
  }
};

/// The same bits, NaN included.
template <class T>
[[nodiscard]] bool same_bits(const Matrix<T>& a, const Matrix<T>& b) {
  return test::same_bits(a.data, b.data);
}

/// Equal numbers (a zero has no sign here), NaN where NaN is.
template <class T>
[[nodiscard]] bool same_values(const Matrix<T>& a, const Matrix<T>& b) {
  return std::equal(a.data.begin(), a.data.end(), b.data.begin(), b.data.end(),
                    [](const T& x, const T& y) { return x == y || (is_nan(x) && is_nan(y)); });
}

struct KernelParameter {
  const Backend* backend = nullptr;
  Element precision = Element::fp64;
};
inline void PrintTo(const KernelParameter& parameter, std::ostream* stream) {
  *stream << parameter.backend->name() << " " << to_string(parameter.precision);
}

/// What is compared with the reference bit by bit: the host, and CUDA where it is.
inline std::vector<const Backend*> others() {
  std::vector<const Backend*> all{&host_backend()};
  if (const Backend* cuda = cuda_backend(); cuda != nullptr) all.push_back(cuda);
  return all;
}
inline std::vector<const Backend*> all_of_them() {
  std::vector<const Backend*> all = others();
  all.push_back(&reference_backend());
  return all;
}
/// For suites that take backends.
inline std::string backend_name(const ::testing::TestParamInfo<const Backend*>& info) {
  return info.param->name();
}

/// The backends that are compared with the reference.
inline std::vector<KernelParameter> tested_backends() {
  std::vector<KernelParameter> parameters;
  for (const Backend* backend : others()) {
    parameters.push_back({backend, Element::fp64});
    parameters.push_back({backend, Element::fp32});
  }
  return parameters;
}

/// Those, and the reference itself.
inline std::vector<KernelParameter> every_backend() {
  std::vector<KernelParameter> parameters = tested_backends();
  parameters.push_back({&reference_backend(), Element::fp64});
  parameters.push_back({&reference_backend(), Element::fp32});
  return parameters;
}

inline std::string name_of(const ::testing::TestParamInfo<KernelParameter>& info) {
  return info.param.backend->name() + "_" + std::string(to_string(info.param.precision));
}

/// Calls of a kernel whose operands, of these elements in turn, are copied to the device, and back.
inline void call_there(const Backend& backend, Device& device, const Operation& operation,
                       const Elements& elements, const std::vector<BlockView>& views,
                       std::uint32_t variant) {
  const KernelFunction kernel = backend.kernels().find(operation.name, elements);
  ASSERT_NE(kernel, nullptr);
  const auto queue = device.make_queue(QueuePriority::normal);
  std::vector<Buffer> memory;
  std::vector<BlockView> there = views;
  const auto bytes = [&](std::size_t i) {
    return views[i].ld * views[i].cols * bytes_of(elements[static_cast<int>(i) % elements.size()]);
  };
  for (std::size_t i = 0; i < views.size(); ++i) {
    memory.push_back(device.allocate(std::max<std::int64_t>(bytes(i), 1)));
    there[i].data = memory.back().data();
    queue->copy(there[i].data, views[i].data, bytes(i), CopyDirection::host_to_device);
  }
  try {
    kernel(*queue, {there, operation.operands}, {.variant = variant});
  } catch (...) {
    queue->synchronize();
    throw;
  }
  for (std::size_t i = 0; i < views.size(); ++i)
    queue->copy(views[i].data, there[i].data, bytes(i), CopyDirection::device_to_host);
  queue->synchronize();
}

/// All backends, with all elements of general systems.
inline std::vector<KernelParameter> backends_of_general_systems() {
  std::vector<KernelParameter> parameters = every_backend();
  for (const Backend* backend : all_of_them())
    for (const Element element : {Element::complex128, Element::complex64})
      parameters.push_back({backend, element});
  return parameters;
}

/// The operands of one call of an operation; the first is written.
template <class T>
using Operands = std::vector<Matrix<T>>;

/// A device and a queue of one backend.
class Runner {
 public:
  explicit Runner(const Backend& backend)
      : backend_(backend),
        device_(backend.make_device(0, 64_MiB)),
        queue_(device_->make_queue(QueuePriority::normal)) {}

  /// One task of several calls. `offset` elements lie before each operand on the device.
  template <class T>
  void run_all(const Operation& operation, std::vector<Operands<T>>& calls,
               std::uint32_t variant = 0, std::int64_t offset = 0) {
    const KernelFunction kernel = kernel_of(operation, Elements(operation.operands, element_of<T>));
    std::vector<Buffer> memory;
    std::vector<BlockView> views;
    const std::vector<Operands<T>> before = calls;
    for (Operands<T>& operands : calls) {
      for (Matrix<T>& matrix : operands) views.push_back(load(matrix, offset, memory));
    }
    call(kernel, {views, operation.operands}, {.variant = variant});
    auto view = views.begin();
    for (Operands<T>& operands : calls) {
      for (Matrix<T>& matrix : operands) store(matrix, *view++);
    }
    queue_->synchronize();
    for (std::size_t c = 0; c < calls.size(); ++c) {
      for (std::size_t i = 1; i < calls[c].size(); ++i) {
        EXPECT_TRUE(same_bits(calls[c][i], before[c][i])) << "operand " << i << " was written";
      }
    }
  }
  template <class T>
  void run(const Operation& operation, Matrix<T>& out, const std::vector<Matrix<T>>& inputs,
           std::uint32_t variant = 0, std::int64_t offset = 0) {
    std::vector<Operands<T>> calls{{out}};
    calls[0].insert(calls[0].end(), inputs.begin(), inputs.end());
    run_all(operation, calls, variant, offset);
    out = std::move(calls[0][0]);
  }

  /// potrf of several blocks in one task.
  template <class T>
  std::vector<PivotStatus> factor_all(std::vector<Matrix<T>>& blocks,
                                      const PotrfValues* values = nullptr,
                                      std::int64_t offset = 0) {
    const KernelFunction kernel = kernel_of(potrf, {element_of<T>, Element::fp64});
    std::vector<Buffer> memory;
    std::vector<BlockView> views;
    std::vector<Matrix<double>> statuses(  // to be overwritten
        blocks.size(), Matrix<double>(kStatusRows, 1, 0, [](auto, auto) { return 99; }));
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      views.push_back(load(blocks[b], offset, memory));
      views.push_back(load(statuses[b], 0, memory));
    }
    call(kernel, {views, potrf.operands}, {.values = values});
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      store(blocks[b], views[2 * b]);
      store(statuses[b], views[2 * b + 1]);
    }
    queue_->synchronize();
    std::vector<PivotStatus> found;
    for (const Matrix<double>& s : statuses) found.push_back({s(0, 0), s(1, 0), s(2, 0)});
    return found;
  }
  template <class T>
  PivotStatus factor(Matrix<T>& a, const PotrfValues* values = nullptr, std::int64_t offset = 0) {
    std::vector<Matrix<T>> blocks{std::move(a)};
    const PivotStatus status = factor_all(blocks, values, offset)[0];
    a = std::move(blocks[0]);
    return status;
  }

 private:
  [[nodiscard]] KernelFunction kernel_of(const Operation& operation,
                                         const Elements& elements) const {
    const KernelFunction kernel = backend_.kernels().find(operation.name, elements);
    if (kernel == nullptr) throw std::runtime_error("no such kernel");
    return kernel;
  }
  /// A kernel that refuses throws while operands are on their way.
  void call(KernelFunction kernel, const KernelCalls& calls, const KernelParameters& parameters) {
    try {
      kernel(*queue_, calls, parameters);
    } catch (...) {
      queue_->synchronize();
      throw;
    }
  }
  template <class T>
  BlockView load(Matrix<T>& matrix, std::int64_t offset, std::vector<Buffer>& memory) {
    const auto skipped = offset * static_cast<std::int64_t>(sizeof(T));
    memory.push_back(device_->allocate(matrix.bytes() + skipped));
    std::byte* data = memory.back().data() + skipped;
    queue_->copy(data, matrix.data.data(), matrix.bytes(), CopyDirection::host_to_device);
    return {data, matrix.rows, matrix.cols, matrix.ld, 0, 0};
  }
  template <class T>
  void store(Matrix<T>& matrix, const BlockView& block) {
    queue_->copy(matrix.data.data(), block.data, matrix.bytes(), CopyDirection::device_to_host);
  }

  const Backend& backend_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Queue> queue_;
};

/// Tests with a body for any precision: `each([&](auto type) { using T = …; })`.
class KernelTest : public ::testing::TestWithParam<KernelParameter> {
 protected:
  template <class F>
  static void each(F&& body) {
    Runner runner(*GetParam().backend);
    dispatch_native(GetParam().precision, [&](auto type) { body(runner, type); });
  }
};

/// Sizes on both sides of the edges of every block inside the kernels.
inline constexpr std::int64_t kSizes[] = {1, 2, 3, 5, 17, 63, 64, 65, 130};

/// Rows and columns of a matrix.
struct Extents {
  std::int64_t rows, cols;
};

/// A small whole number, −4 … 4: sums of products of such numbers are exact in both precisions.
inline double small_integer(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  return static_cast<double>(random_bits(seed, static_cast<std::uint64_t>(i * 4096 + j)) % 9) - 4;
}
inline double uniform(std::uint64_t seed, std::int64_t i, std::int64_t j) {
  return 2 * random_uniform(seed, static_cast<std::uint64_t>(i * 4096 + j)) - 1;
}

/// A factor with powers of two, 2^(j mod 3), in column j: substitutions with it are exact.
inline double exact_factor(std::int64_t i, std::int64_t j) {
  return i < j ? 0 : std::ldexp(1.0, static_cast<int>(j % 3));
}
/// The matrix exact_factor · exact_factorᵀ.
inline double exact_spd(std::int64_t i, std::int64_t j) {
  double sum = 0;
  for (std::int64_t k = 0; k <= std::min(i, j); ++k) {
    sum += std::ldexp(1.0, static_cast<int>(2 * (k % 3)));
  }
  return sum;
}

/// `matrix` with the strict upper triangle NaN: to be neither read nor written.
template <class T>
Matrix<T> lower_only(Matrix<T> matrix) {
  for (std::int64_t j = 0; j < matrix.cols; ++j) {
    for (std::int64_t i = 0; i < std::min(j, matrix.rows); ++i) {
      matrix(i, j) = nan_of<T>();
    }
  }
  return matrix;
}

/// op(L)·x = b, solved twice by substitution, with sums in any order and divisions or products with
/// reciprocals: a bound of |x₁ − x₂|, element by element. `sizes`: |x₁| + |x₂|.
///
/// Each x solves a system with L + E exactly, |E| ≤ γ·|L|, γ = (n + 1)·u / (1 − (n + 1)·u) (Higham,
/// Accuracy and Stability of Numerical Algorithms, theorem 8.5; a reciprocal is a rounding more).
/// So |x₁ − x₂| ≤ γ·|op(L)⁻¹|·|op(L)|·sizes; and |op(L)⁻¹| is no more than the inverse of the
/// matrix with |l_ii| on the diagonal and −|l_ij| beside it (theorem 8.12), whose solves add up
/// numbers of one sign.
template <class T>
[[nodiscard]] std::vector<double> solve_difference(const Matrix<T>& l, bool transposed,
                                                   const std::vector<double>& sizes) {
  const std::int64_t n = l.rows;
  const auto roundings =
      static_cast<double>(n + 1) * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  const double gamma = roundings / (1 - roundings);
  std::vector<double> bound(sizes.size());
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t i = transposed ? n - 1 - step : step;
    const auto pivot = std::fabs(static_cast<double>(l(i, i)));
    double sum = gamma * pivot * sizes[static_cast<std::size_t>(i)];
    for (std::int64_t k = transposed ? i + 1 : 0; k < (transposed ? n : i); ++k) {
      const auto at = static_cast<std::size_t>(k);
      sum += std::fabs(static_cast<double>(transposed ? l(k, i) : l(i, k))) *
             (gamma * sizes[at] + bound[at]);
    }
    bound[static_cast<std::size_t>(i)] = sum / pivot;
  }
  return bound;
}

/// at(i): element i of both solutions.
template <class T, class At>
void expect_near_solutions(const Matrix<T>& l, bool transposed, At&& at) {
  std::vector<double> sizes;
  for (std::int64_t i = 0; i < l.rows; ++i) {
    const std::pair<double, double> both = at(i);
    sizes.push_back(std::fabs(both.first) + std::fabs(both.second));
  }
  const std::vector<double> bound = solve_difference(l, transposed, sizes);
  for (std::int64_t i = 0; i < l.rows; ++i) {
    const std::pair<double, double> both = at(i);
    ASSERT_NEAR(both.first, both.second, bound[static_cast<std::size_t>(i)])
        << "element " << i << " of " << l.rows << (transposed ? ", transposed" : "");
  }
}

}  // namespace strata::testing
