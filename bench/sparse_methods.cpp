#include "bench/sparse_methods.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/check.hpp"
#include "bench/cuda_peers.hpp"
#include "bench/peers_plugin.hpp"
#include "bench/sparse_matrices.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/fronts/front.hpp"
#include "run/device_set.hpp"

namespace strata::bench {
namespace {

constexpr std::int64_t kSmallCount = 4096;

double median_or_zero(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Refactorizations of values that change, as in run_sparse_bench().
std::optional<SparseMethod> time_method(std::string name, const SparseMatrix& lower,
                                        const SparseAnalysis& analysis,
                                        const SparseCholeskyOptions& options, int repeats) {
  SparseMethod method;
  method.name = std::move(name);
  try {
    SparseCholesky factor(analysis, lower, options);
    require(factor.info().ok, ErrorKind::input, "bench", "not positive definite: row {}",
            factor.info().first_bad_pivot);
    Runs runs;
    std::vector<double> device_seconds;
    for (int r = 0; r < repeats; ++r) {
      const SparseMatrix values = rescaled(lower, static_cast<std::uint64_t>(r) + 1);
      runs.time(false, [&] { factor.refactor(values); });
      if (factor.report().path == "resident")
        device_seconds.push_back(factor.report().trace.seconds);
    }
    method.refactor = runs.timing();
    method.device_seconds = median_or_zero(device_seconds);
    method.log_determinant = factor.info().log_determinant;
    return method;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::memory) throw;
    return std::nullopt;
  }
}

Trace trace_of(const SparseMatrix& lower, const SparseAnalysis& analysis,
               SparseCholeskyOptions options) {
  options.batches->traced = true;
  SparseCholesky factor(analysis, lower, options);
  factor.refactor(lower);  // the first one also waits for what a device does once
  return factor.report().trace;
}

/// Rates of all batches and streams.
template <class Seconds>
void add_rates(std::int64_t order, double flops, const SmallRuns& runs,
               std::vector<SmallRate>& rates, const Seconds& seconds_of) {
  for (const std::int64_t batch : runs.batches) {
    for (const int streams : runs.streams) {
      (void)seconds_of(batch, streams);
      std::vector<double> seconds;
      for (int r = 0; r < runs.repeats; ++r) seconds.push_back(seconds_of(batch, streams));
      rates.push_back({order, batch, streams, flops / std::max(median_or_zero(seconds), 1e-9)});
    }
  }
}

/// Fronts of one order in device memory, eliminated again and again.
class SmallFronts {
 public:
  SmallFronts(const Backend& backend, int index, std::int64_t order, std::int64_t count)
      : width_(order / 2),
        order_(order),
        count_(count),
        device_(backend.make_device(index, bytes() + 4096)),
        memory_(device_->allocate(bytes())) {
    kernel_ =
        backend.kernels().find(factor_front.name, {Element::fp64, Element::fp64, Element::fp64});
    require(kernel_ != nullptr, ErrorKind::device, "bench", "the backend has no kernel for fronts");
  }

  double seconds(std::int64_t batch, int streams) {
    while (std::ssize(queues_) < streams)
      queues_.push_back(device_->make_queue(QueuePriority::normal));
    if (views_.empty()) fill();
    const auto begin = std::chrono::steady_clock::now();
    std::size_t turn = 0;
    for (std::int64_t k = 0; k < count_; k += batch, ++turn) {
      const auto some = static_cast<std::size_t>(3 * std::min(batch, count_ - k));
      kernel_(*queues_[turn % static_cast<std::size_t>(streams)],
              {std::span(views_).subspan(static_cast<std::size_t>(3 * k), some), 3}, {});
    }
    for (int q = 0; q < streams; ++q) queues_[static_cast<std::size_t>(q)]->synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  [[nodiscard]] double flops() const {
    const BlockExtent panel{0, 0, order_, width_};
    const BlockExtent update{0, 0, order_ - width_, order_ - width_};
    const std::vector<BlockExtent> extents{panel, update, {0, 0, kStatusRows, 1}};
    return static_cast<double>(count_) * factor_front.work(extents, 0);
  }

 private:
  [[nodiscard]] std::int64_t numbers_each() const {
    const std::int64_t r = order_ - width_;
    return order_ * width_ + r * r + kStatusRows;
  }
  [[nodiscard]] std::int64_t bytes() const { return count_ * numbers_each() * 8; }

  /// Identities, which elimination leaves as they are.
  void fill() {
    auto* there = reinterpret_cast<double*>(memory_.data());
    for (std::int64_t k = 0; k < count_; ++k) {
      double* front = there + k * numbers_each();
      const std::int64_t r = order_ - width_;
      views_.push_back({front, order_, width_, order_, 0, 0, Element::fp64});
      views_.push_back({front + order_ * width_, r, r, r, width_, width_, Element::fp64});
      views_.push_back(
          {front + order_ * width_ + r * r, kStatusRows, 1, kStatusRows, 0, 0, Element::fp64});
    }
    std::vector<double> numbers(static_cast<std::size_t>(count_ * numbers_each()), 0.0);
    for (std::int64_t k = 0; k < count_; ++k)
      for (std::int64_t j = 0; j < width_; ++j)
        numbers[static_cast<std::size_t>(k * numbers_each() + j * (order_ + 1))] = 1;
    queues_.front()->copy(memory_.data(), numbers.data(), bytes(), CopyDirection::host_to_device);
    queues_.front()->synchronize();
  }

  std::int64_t width_;
  std::int64_t order_;
  std::int64_t count_;
  std::unique_ptr<Device> device_;
  Buffer memory_;
  std::vector<std::unique_ptr<Queue>> queues_;  // released before the memory and the device
  KernelFunction kernel_ = nullptr;
  std::vector<BlockView> views_;
};

}  // namespace

std::vector<SparseMethod> compare_methods(const SparseMatrix& lower, const SparseAnalysis& analysis,
                                          const SparseCholeskyOptions& options,
                                          const LevelBatches& levels, int repeats) {
  const DeviceChoice choice = choose_all_devices(options.run.devices).front();
  SparseCholeskyOptions here = options;
  here.run.devices =
      fmt::format("{}:{}", choice.backend, choice.backend == "cuda" ? choice.indices.front() : 1);
  here.batches.reset();
  SparseCholeskyOptions cpu = here;
  cpu.run.devices = "host";
  cpu.run.device_memory_bytes = 0;
  SparseCholeskyOptions batched = here;
  batched.tile = batched.panel_order = batched.branch_entries = 0;
  batched.batches = levels;
  SparseCholeskyOptions single = batched;
  single.batches = LevelBatches{.batch = 1, .streams = 1};
  std::vector<SparseMethod> methods;
  const auto add = [&](const char* name, const SparseCholeskyOptions& how, bool traced) {
    std::optional<SparseMethod> method = time_method(name, lower, analysis, how, repeats);
    if (!method) return;
    if (traced) {
      method->trace = trace_of(lower, analysis, how);
      method->tasks = method->trace.spans_added;
      method->at_work = tasks_at_work(method->trace, kTraceParts);
    }
    methods.push_back(std::move(*method));
  };
  add("CPU", cpu, false);
  add("one by one", single, true);
  add("batches", batched, true);
  if (choice.backend == "cuda") add("programs", here, false);
  return methods;
}

std::vector<double> tasks_at_work(const Trace& trace, std::int64_t parts) {
  std::vector<double> work(static_cast<std::size_t>(parts), 0.0);
  if (trace.seconds <= 0) return work;
  const double part = trace.seconds / static_cast<double>(parts);
  for (const Span& span : trace.spans) {
    const auto first = static_cast<std::int64_t>(std::max(span.begin, 0.0) / part);
    for (std::int64_t k = first; k < parts && part * static_cast<double>(k) < span.end; ++k) {
      const double from = std::max(span.begin, part * static_cast<double>(k));
      const double to = std::min(span.end, part * static_cast<double>(k + 1));
      work[static_cast<std::size_t>(k)] += std::max(to - from, 0.0) / part;
    }
  }
  return work;
}

std::vector<SmallRate> small_front_rates(const RunOptions& run, const SmallRuns& runs) {
  const DeviceChoice choice = choose_all_devices(run.devices).front();
  const Backend& backend = backend_named(choice.backend, run.devices);
  const std::int64_t count = backend.on_host() ? 256 : kSmallCount;
  std::vector<SmallRate> rates;
  for (const std::int64_t order : runs.orders) {
    require(order >= 2, ErrorKind::misuse, "bench", "fronts of order {}: at least 2", order);
    SmallFronts fronts(backend, choice.indices.front(), order, count);
    add_rates(order, fronts.flops(), runs, rates,
              [&](std::int64_t batch, int streams) { return fronts.seconds(batch, streams); });
  }
  return rates;
}

std::vector<SmallRate> small_product_rates(const RunOptions& run, const SmallRuns& runs) {
  std::vector<SmallRate> rates;
  if (choose_all_devices(run.devices).front().backend != "cuda") return rates;
  SmallProducts* products = nullptr;
  try {
    PeersPlugin().bind(products, "strata_small_products");
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::device) throw;
    return rates;
  }
  for (const std::int64_t order : runs.orders) {
    const auto n = static_cast<double>(order);
    add_rates(order, 2 * n * n * n * static_cast<double>(kSmallCount), runs, rates,
              [&](std::int64_t batch, int streams) {
                double seconds = 0;
                PeersPlugin::call(products, "small products", order, batch, streams, kSmallCount,
                                  &seconds);
                return seconds;
              });
  }
  return rates;
}

}  // namespace strata::bench
