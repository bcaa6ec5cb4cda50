#include "bench/covariance_bench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "base/check.hpp"
#include "base/random.hpp"
#include "bench/in_core_bench.hpp"
#include "kernels/covariance/covariance.hpp"
#include "run/device_set.hpp"
#include "scalar/dispatch.hpp"

namespace strata::bench {
namespace {

constexpr std::int64_t kSample = 48;

/// n points, one after the other in the sequence of the seed, as an n × 2 matrix.
std::vector<double> points_of(std::int64_t n, std::uint64_t seed) {
  std::vector<double> points(static_cast<std::size_t>(2 * n));
  for (std::size_t i = 0; i < points.size(); ++i) points[i] = random_uniform(seed, i);
  return points;
}

/// The block, its coordinates and a queue, on one device.
class Site {
 public:
  Site(const CovarianceBench& bench, const RunOptions& options)
      : devices_(options), n_(bench.n), queue_(device().make_queue(QueuePriority::normal)) {
    if (n_ == 0) n_ = devices_.backend().kind() == DeviceKind::gpu ? 16384 : 1024;
    require(n_ >= 1, ErrorKind::misuse, "bench", "n is {}, but must be at least 1", n_);
    memory_ = device().allocate(n_ * n_ * 8);
    rows_ = points_of(n_, bench.seed);
    cols_ = points_of(n_, bench.seed + 1);
    on_rows_ = load(rows_);
    on_cols_ = load(cols_);
    queue_->synchronize();
  }

  [[nodiscard]] std::int64_t n() const noexcept { return n_; }
  [[nodiscard]] const DeviceDescription& description() { return device().description(); }

  /// The median over the repeats after the first, and all of them but that.
  template <class F>
  double time(int repeats, F&& work, std::vector<double>* all = nullptr) {
    std::vector<double> seconds;
    for (int r = 0; r <= repeats; ++r) {
      const Event begin = queue_->record();
      work();
      const Event end = queue_->record();
      queue_->synchronize();
      if (r > 0) seconds.push_back(std::max(end.seconds() - begin.seconds(), 1e-9));
    }
    if (all != nullptr) *all = seconds;
    return median(std::move(seconds));
  }

  /// One half of the block to the other: reads and writes as many bytes as the block has.
  double copy_bytes_per_second(int repeats) {
    const std::int64_t half = n_ * n_ * 4;
    const double seconds = time(repeats, [&] {
      queue_->copy(memory_.data() + half, memory_.data(), half, CopyDirection::device_to_device);
    });
    return static_cast<double>(2 * half) / seconds;
  }

  CovarianceRow measure(Element precision, double smoothness, int repeats) {
    const Elements elements{precision, Element::fp64, Element::fp64};
    const CovarianceParameters parameters{
        .variance = 1.5, .range = 0.1, .smoothness = smoothness, .same_points = false};
    const KernelFunction kernel = devices_.backend().kernels().find(covariance.name, elements);
    const std::array<BlockView, 3> views{
        BlockView{memory_.data(), n_, n_, n_, 0, 0, precision},
        BlockView{on_rows_.data(), n_, 2, n_, 0, 0, Element::fp64},
        BlockView{on_cols_.data(), n_, 2, n_, 0, 0, Element::fp64}};
    CovarianceRow row;
    row.precision = precision;
    row.smoothness = smoothness;
    row.seconds = time(
        repeats,
        [&] {
          kernel(*queue_, {views, covariance.operands}, {.values = &parameters});
        },
        &row.all_seconds);
    const auto count = static_cast<double>(n_) * static_cast<double>(n_);
    row.elements_per_second = count / row.seconds;
    dispatch_native(precision, [&](auto type) {
      using T = typename decltype(type)::type;
      row.bytes_per_second = row.elements_per_second * sizeof(T);
      row.relative_error = relative_error<T>(parameters);
    });
    return row;
  }

 private:
  [[nodiscard]] Device& device() { return devices_.device(0); }

  Buffer load(const std::vector<double>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(double));
    Buffer buffer = device().allocate(bytes);
    queue_->copy(buffer.data(), values.data(), bytes, CopyDirection::host_to_device);
    return buffer;
  }

  /// Largest relative error of the leading elements, against the reference in double.
  template <class T>
  double relative_error(const CovarianceParameters& parameters) {
    const std::int64_t m = std::min(n_, kSample);
    std::vector<T> found(static_cast<std::size_t>(m * m));
    for (std::int64_t j = 0; j < m; ++j) {
      queue_->copy(found.data() + j * m, reinterpret_cast<const T*>(memory_.data()) + j * n_,
                   m * static_cast<std::int64_t>(sizeof(T)), CopyDirection::device_to_host);
    }
    queue_->synchronize();
    std::vector<double> expected(found.size());
    const Backend& reference = reference_backend();
    const auto reference_device = reference.make_device(0, 1 << 20);
    const auto reference_queue = reference_device->make_queue(QueuePriority::normal);
    const std::array<BlockView, 3> views{BlockView{expected.data(), m, m, m, 0, 0},
                                         BlockView{rows_.data(), m, 2, n_, 0, 0},
                                         BlockView{cols_.data(), m, 2, n_, 0, 0}};
    reference.kernels().find(covariance.name, Elements(3, Element::fp64))(
        *reference_queue, {views, covariance.operands}, {.values = &parameters});
    reference_queue->synchronize();
    double worst = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double error =
          std::fabs(static_cast<double>(found[i]) - expected[i]) / std::fabs(expected[i]);
      worst = error > worst || std::isnan(error) ? error : worst;
    }
    return worst;
  }

  DeviceSet devices_;
  std::int64_t n_;
  std::unique_ptr<Queue> queue_;
  Buffer memory_;
  Buffer on_rows_;
  Buffer on_cols_;
  std::vector<double> rows_;
  std::vector<double> cols_;
};

}  // namespace

CovarianceResult run_covariance_bench(const CovarianceBench& bench, const RunOptions& options) {
  for (const double nu : bench.smoothness) {
    require(nu > 0 && nu <= 50, ErrorKind::misuse, "bench",
            "smoothness is {}, but must be in (0, 50]", nu);
  }
  Site site(bench, options);
  CovarianceResult result;
  result.device = site.description().name;
  result.model = site.description().model;
  result.n = site.n();
  for (const Element precision : bench.precisions) {
    for (const double nu : bench.smoothness)
      result.rows.push_back(site.measure(precision, nu, bench.repeats));
  }
  result.copy_bytes_per_second = site.copy_bytes_per_second(bench.repeats);
  for (CovarianceRow& row : result.rows)
    row.share_of_copy = row.bytes_per_second / result.copy_bytes_per_second;
  return result;
}

}  // namespace strata::bench
