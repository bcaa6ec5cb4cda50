#include "bench/qr_figures.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "base/random.hpp"
#include "bench/host_tall.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/tall_peers.hpp"
#include "bench/tall_site.hpp"
#include "bench/timed_runs.hpp"
#include "dense/square_matrix.hpp"
#include "kernels/tall/gram.hpp"
#include "kernels/tall/gram_shape.hpp"
#include "kernels/tall/householder.hpp"
#include "run/device_set.hpp"
#include "scalar/double_double.hpp"

namespace strata::bench {
namespace {

template <class F>
double median_seconds(int repeats, F&& work) {
  std::vector<double> seconds;
  for (int r = 0; r <= repeats; ++r) {
    const auto begin = Clock::now();
    work();
    if (r > 0) seconds.push_back(seconds_since(begin));
  }
  return std::max(median(seconds), 1e-9);
}

template <class T>
std::vector<T> uniform(std::int64_t count) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<T>(2 * random_uniform(1, i) - 1);
  return values;
}

// ---- matrices of figures 5 to 13

struct NamedMatrix {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<double> values;
};

/// Powers of the five-point Laplacian over 4 on a grid of 33 × 33, times ones.
NamedMatrix krylov_matrix(std::int64_t n) {
  constexpr std::int64_t kGrid = 33;
  constexpr std::int64_t kRows = kGrid * kGrid;
  NamedMatrix v{fmt::format("K{}", n), kRows, n, {}};
  std::vector<double> x(kRows, 1.0);
  for (std::int64_t j = 0; j < n; ++j) {
    v.values.insert(v.values.end(), x.begin(), x.end());
    std::vector<double> y(x.size());
    for (std::int64_t i = 0; i < kRows; ++i) {
      const auto at = [&](std::int64_t k) { return x[static_cast<std::size_t>(k)]; };
      double sum = 4 * at(i);
      if (i % kGrid > 0) sum -= at(i - 1);
      if (i % kGrid + 1 < kGrid) sum -= at(i + 1);
      if (i >= kGrid) sum -= at(i - kGrid);
      if (i + kGrid < kRows) sum -= at(i + kGrid);
      y[static_cast<std::size_t>(i)] = sum / 4;
    }
    x = std::move(y);
  }
  return v;
}

template <class F>
NamedMatrix matrix_of(std::string name, std::int64_t rows, std::int64_t cols, F&& element) {
  NamedMatrix v{std::move(name), rows, cols, {}};
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i) v.values.push_back(element(i, j));
  return v;
}

std::vector<NamedMatrix> paper_matrices() {
  return {
      krylov_matrix(20), krylov_matrix(30),
      matrix_of("Hilbert", 100, 100,
                [](std::int64_t i, std::int64_t j) { return 1 / static_cast<double>(i + j + 1); }),
      matrix_of("synthetic", 101, 100, [](std::int64_t i, std::int64_t j) {
        if (i == 0) return 1.0;
        return i == j + 1 ? random_uniform(5, static_cast<std::uint64_t>(j)) * 0x1p-52 : 0.0;
      })};
}

// ---- figure 3

struct Facts {
  QrMethod method;
  const char* kernel;
  const char* bound;
};
constexpr Facts kFacts[] = {
    {QrMethod::mgs, "dot products and vector updates", "ε·κ"},
    {QrMethod::cgs, "matrix times vector", "ε·κ^(n−1)"},
    {QrMethod::cgs2, "matrix times vector", "ε"},
    {QrMethod::cholqr, "Gram matrix, triangular solve", "ε·κ²"},
    {QrMethod::cholqr_wide, "Gram matrix in double-double, triangular solve", "ε·κ"},
    {QrMethod::svqr, "Gram matrix, triangular solve", "ε·κ²"},
    {QrMethod::tsqr, "Householder QR of blocks, up a tree", "ε"}};

/// Calls, and operations in the column "flops", of one operation.
std::pair<std::int64_t, double> count_of(const Trace& trace, std::string_view name) {
  std::int64_t calls = 0;
  double flops = 0;
  for (const Span& span : trace.spans) {
    if (span.kind != SpanKind::compute || trace.operations[span.operation] != name) continue;
    calls += span.calls;
    flops += span.flops;
  }
  return {calls, flops};
}

// ---- figure 15

/// A number that counts what is done with it.
struct Counted {
  static inline ProductCount* count = nullptr;
  Counted operator-() const { return {}; }
};
Counted rounded_sum(const Counted&, const Counted&) {
  Counted::count->additions += 1;
  return {};
}
Counted rounded_product(const Counted&, const Counted&) {
  Counted::count->multiplications += 1;
  return {};
}
Counted fused(const Counted&, const Counted&, const Counted&) {
  Counted::count->fused += 1;
  return {};
}

template <class F>
ProductCount counted(std::string what, double products, F&& work) {
  ProductCount count{std::move(what)};
  Counted::count = &count;
  work();
  Counted::count = nullptr;
  count.additions /= products;
  count.multiplications /= products;
  count.fused /= products;
  return count;
}

// ---- figures 18 and 19

Buffer loaded(Device& device, Queue& queue, const void* values, std::int64_t bytes) {
  Buffer buffer = device.allocate(bytes);
  queue.copy(buffer.data(), values, bytes, CopyDirection::host_to_device);
  queue.synchronize();
  return buffer;
}

void add_float_kernels(std::int64_t n, std::int64_t m, int repeats, DeviceSet& devices,
                       std::vector<KernelSeconds>& rows) {
  Device& device = devices.device(0);
  const std::unique_ptr<Queue> queue = device.make_queue(QueuePriority::normal);
  std::vector<float> v = uniform<float>(m * n);
  const std::vector<double> ones(static_cast<std::size_t>(n), 1.0);
  const Buffer of_v = loaded(device, *queue, v.data(), m * n * 4);
  const Buffer scales = loaded(device, *queue, ones.data(), n * 8);
  const Buffer sums = device.allocate(n * n * 8);
  for (const Element sum : {Element::fp32, Element::fp64}) {
    const std::vector<BlockView> views{{sums.data(), n, n, n, 0, 0, sum},
                                       {of_v.data(), m, n, m, 0, 0, Element::fp32},
                                       {scales.data(), n, 1, n, 0, 0, Element::fp64}};
    const KernelFunction kernel =
        devices.backend().kernels().find(gram.name, {sum, Element::fp32, Element::fp64});
    rows.push_back({n, sum == Element::fp32 ? "gram s" : "gram ss", median_seconds(repeats, [&] {
                      kernel(*queue, {views, gram.operands}, {});
                      queue->synchronize();
                    })});
  }
  if (devices.backend().kind() == DeviceKind::gpu) return;
  for (const auto& [what, work] : {std::pair("openblas sgemm", TallWork::gram_gemm),
                                   {"openblas ssyrk", TallWork::gram_syrk}}) {
    std::vector<double> seconds;
    for (int r = 0; r <= repeats; ++r) {
      const double one = host_tall_seconds(v, m, n, work);
      if (r > 0) seconds.push_back(one);
    }
    rows.push_back({n, what, median(seconds)});
  }
}

template <class W>
double cholesky_seconds(std::int64_t n, int repeats) {
  SquareMatrix<W> b(n);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) b(i, j) = W(i == j ? 2.0F : 1.0F);
  return median_seconds(repeats, [&] { (void)small_cholesky(b, BadPivot::stop); });
}

/// Whole calls of every method on the first `count` devices, of V where it lies: on a part for each
/// GPU, or with so many threads on what lies in the memory of CPUs.
template <class Add>
void add_rates(DeviceSet& devices, int count, MatrixView<const double> v,
               const std::vector<QrMethod>& methods, const Add& add) {
  const bool on_gpu = devices.backend().kind() == DeviceKind::gpu;
  TallSite<double> site(devices, on_gpu ? count : 1, v.cols, {v.data, v.data + v.size()});
  std::vector<double> r(static_cast<std::size_t>(v.cols * v.cols));
  for (const QrMethod method : methods) {
    QrOptions how;
    how.method = method;
    how.run.devices = names_of_first(devices, count);
    const std::string what(to_string(method));
    add(count == 1 ? what : fmt::format("{}, {} devices", what, count), [&] {
      QrInfo info;
      return site.seconds_of_qr(how, {r.data(), v.cols, v.cols, v.cols}, info);
    });
  }
}

}  // namespace

std::vector<MethodCounts> count_methods(std::int64_t n) {
  const std::int64_t m = 2 * gram_block_rows(n);
  const std::vector<double> values = uniform<double>(m * n);
  const auto elements = static_cast<double>(m) * static_cast<double>(n);
  std::vector<MethodCounts> counts;
  for (const Facts& facts : kFacts) {
    std::vector<double> q = values;
    std::vector<double> r(static_cast<std::size_t>(n * n));
    QrOptions options;
    options.method = facts.method;
    options.run.devices = "host:1";
    options.run.device_memory_bytes = std::int64_t{256} << 20;  // by a plan, which has a trace
    const QrInfo info =
        qr(MatrixView<double>{q.data(), m, n, m}, MatrixView<double>{r.data(), n, n, n}, options);
    const Trace& trace = info.report.trace;
    MethodCounts one{facts.method, 0, 0, facts.kernel, facts.bound};
    const auto take = [&](std::string_view name) {
      const auto [calls, flops] = count_of(trace, name);
      one.flops += flops;
      return calls;
    };
    switch (facts.method) {
      case QrMethod::mgs:
      case QrMethod::cgs:
      case QrMethod::cgs2:
        one.reductions = take(column_dots.name) / 2;
        (void)take(column_update.name);
        break;
      case QrMethod::tsqr:
        one.reductions = take(stacked_r.name);
        for (const Operation* op : {&householder_r, &householder_q, &stacked_q})
          (void)take(op->name);
        break;
      default:  // the solve also adds up what Q is checked by
        one.reductions = take(gram.name) / 2;
        (void)take(solve_right_gram.name);
        one.flops -= elements * static_cast<double>(n);
    }
    counts.push_back(std::move(one));
  }
  return counts;
}

std::vector<PassErrors> run_pass_errors(int passes, const std::vector<QrMethod>& methods,
                                        const RunOptions& options) {
  std::vector<PassErrors> all;
  for (const NamedMatrix& v : paper_matrices()) {
    const MatrixView<const double> given{v.values.data(), v.rows, v.cols, v.rows};
    const double condition = measured_qr(given, QrMethod::automatic, options).condition;
    for (const QrMethod method : methods) {
      PassErrors one{v.name, method, condition, {}, {}};
      std::vector<double> q = v.values;
      for (int pass = 0; pass < passes; ++pass) {
        MeasuredQr next = measured_qr({q.data(), v.rows, v.cols, v.rows}, method, options);
        q = std::move(next.q);
        one.errors.push_back(next.error);
        one.conditions.push_back(
            measured_qr({q.data(), v.rows, v.cols, v.rows}, QrMethod::automatic, options)
                .condition);
      }
      all.push_back(std::move(one));
    }
  }
  return all;
}

std::vector<RatePoint> run_rates(const std::vector<std::int64_t>& rows, std::int64_t n,
                                 const std::vector<QrMethod>& methods, int repeats,
                                 const RunOptions& options) {
  std::vector<RatePoint> points;
  DeviceSet devices(options);
  for (const std::int64_t m : rows) {
    const double flops = 2 * static_cast<double>(m) * static_cast<double>(n * n);
    const std::vector<double> v = uniform<double>(m * n);
    const auto add = [&](std::string what, const auto& seconds_of_run) {
      std::vector<double> seconds;
      for (int k = 0; k <= repeats; ++k) {
        const double one = seconds_of_run();
        if (k > 0) seconds.push_back(std::max(one, 1e-9));
      }
      points.push_back({m, std::move(what), median(seconds), flops / median(seconds)});
    };
    for (int count = 1; count <= devices.count(); ++count)
      add_rates(devices, count, {v.data(), m, n, m}, methods, add);
    if (devices.backend().kind() == DeviceKind::gpu) {
      const TallPeers peers;
      TallSite<double> site(devices, 1, n, v);
      add("cusolver geqrf, orgqr", [&] {
        double seconds = 0;
        TallPeers::call(peers.time, "cusolver", site.parts()[0].data, m, n, m,
                        TallWork::householder, &seconds);
        return seconds;
      });
    } else {
      add("openblas geqrf, orgqr", [&] {
        std::vector<double> q = v;
        return host_tall_seconds(q, m, n, TallWork::householder);
      });
    }
  }
  return points;
}

std::vector<ProductCount> count_products() {
  using Pair = DoubleDoubleOf<Counted>;
  const Counted x;
  std::vector<ProductCount> counts;
  counts.push_back(counted("Cray", 1, [&] { (void)add_cray(Pair{}, two_product(x, x)); }));
  counts.push_back(counted("IEEE", 1, [&] { (void)(Pair{} + two_product(x, x)); }));
  counts.push_back(counted("Dot2", 1, [&] {
    const Pair product = two_product(x, x);
    const Pair s = two_sum(x, product.hi);
    (void)rounded_sum(x, rounded_sum(s.lo, product.lo));
  }));
  counts.push_back(counted("extraction", kGramLaneRows, [&] {
    for (int k = 0; k < kGramLaneRows; ++k) {
      const Counted t = fused(x, x, x);
      const Counted q = rounded_sum(t, -x);
      (void)rounded_sum(x, fused(x, x, -q));
    }
    (void)add_cray(Pair{}, Pair{rounded_sum(x, -x), x});
  }));
  return counts;
}

namespace {

/// The median of the seconds of a Gram matrix in double-double of V, so many rows at a time.
double gram_seconds(TallSite<double>& site, std::int64_t rows, std::uint32_t variant, int repeats) {
  std::vector<double> seconds;
  for (int r = 0; r <= repeats; ++r) {
    double sum = 0;
    for (std::int64_t first = 0; first < site.v().rows; first += rows) {
      BlockView v = site.v();
      v.data = static_cast<double*>(v.data) + first;
      v.rows = std::min(rows, v.rows - first);
      sum += site.seconds_of(gram, {site.b(Element::dd), v, site.d()}, variant);
    }
    if (r > 0) seconds.push_back(sum);
  }
  return median(seconds);
}

void add_shapes(TallSite<double>& site, int repeats, std::vector<TunedSum>& rows) {
  const std::int64_t n = site.v().cols;
  const gram_shape::Choice chosen = gram_shape::choose(n);
  for (int edge = gram_shape::kEdgeLeast; edge <= gram_shape::kEdgeMost; ++edge) {
    for (int units = 1; units <= gram_shape::kUnitsMost; ++units) {
      const gram_shape::Choice c = gram_shape::shape_of(n, edge, units);
      if (c.edge == 0) continue;
      rows.push_back({.n = n,
                      .edge = edge,
                      .units = units,
                      .threads = c.stage.threads,
                      .columns = c.stage.width,
                      .panels = c.stage.panels,
                      .taken = edge == chosen.edge && units == chosen.stage.units,
                      .seconds = gram_seconds(site, site.v().rows, shaped_extraction({edge, units}),
                                              repeats)});
    }
  }
}

}  // namespace

std::vector<TunedSum> run_tuned_sums(const std::vector<std::int64_t>& columns, std::int64_t m,
                                     int repeats, const RunOptions& options) {
  std::vector<TunedSum> rows;
  DeviceSet devices(options);
  for (const std::int64_t n : columns) {
    TallSite<double> site(devices, 1, n, uniform<double>(m * n));
    if (devices.backend().kind() == DeviceKind::gpu) {
      add_shapes(site, repeats, rows);
      continue;
    }
    const std::int64_t taken = gram_block_rows(n);
    const std::int64_t least = std::max<std::int64_t>(kGramUnitRows, taken / 8);
    for (std::int64_t height = least; height <= 8 * taken; height *= 2) {
      if (height / 2 >= m && height != taken) continue;  // one block, as half as many rows are
      rows.push_back({.n = n,
                      .rows = height,
                      .taken = height == taken,
                      .seconds = gram_seconds(site, height, kExtraction, repeats)});
    }
  }
  return rows;
}

std::vector<KernelSeconds> run_other_kernels(const std::vector<std::int64_t>& columns,
                                             std::int64_t m, int repeats,
                                             const RunOptions& options) {
  std::vector<KernelSeconds> rows;
  DeviceSet devices(options);
  for (const std::int64_t n : columns) {
    add_float_kernels(n, m, repeats, devices, rows);
    rows.push_back({n, "cholesky", cholesky_seconds<double>(n, repeats)});
    rows.push_back({n, "cholesky dd", cholesky_seconds<DoubleDouble>(n, repeats)});
  }
  return rows;
}

}  // namespace strata::bench
