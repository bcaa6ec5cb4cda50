#include "bench/qr_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "base/check.hpp"
#include "base/random.hpp"
#include "bench/cuda_peers.hpp"
#include "bench/host_tall.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/peers_plugin.hpp"
#include "kernels/gram.hpp"
#include "run/device_set.hpp"

namespace strata::bench {
namespace {

constexpr const char* kHostHouseholder = "openblas geqrf, orgqr";
constexpr const char* kGpuHouseholder = "cusolver geqrf, orgqr";

/// Uniform in (−1, 1): element i is the number i mod `period` of one random sequence.
template <class T>
std::vector<T> uniform_elements(std::int64_t count, std::uint64_t seed) {
  constexpr std::int64_t kPeriod = 1'000'003;  // prime to the lengths of columns in use
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    values[at] = i < kPeriod ? static_cast<T>(2 * random_uniform(seed, at) - 1)
                             : values[at - static_cast<std::size_t>(kPeriod)];
  }
  return values;
}

/// V of a bench. Columns that are the first one, u, plus δ times random ones have a condition of
/// about √n/δ.
std::vector<double> matrix_of(const QrBench& bench, std::int64_t m, std::int64_t n) {
  std::vector<double> v = uniform_elements<double>(m * n, bench.seed);
  if (bench.condition <= 1) return v;
  const double delta = std::sqrt(static_cast<double>(n)) / bench.condition;
  const auto rows = static_cast<std::size_t>(m);
  for (std::size_t k = rows; k < v.size(); ++k) v[k] = v[k % rows] + delta * v[k];
  return v;
}

template <class F>
QrBenchRow timed(std::int64_t n, const std::string& what, int repeats, F&& seconds_of_run) {
  QrBenchRow row;
  row.n = n;
  row.what = what;
  for (int r = 0; r <= repeats; ++r) {
    const double seconds = seconds_of_run();
    if (r > 0) row.all_seconds.push_back(std::max(seconds, 1e-9));
  }
  row.seconds = median(row.all_seconds);
  return row;
}

/// V of one number of columns with what kernels take beside it, on one device.
class Site {
 public:
  Site(DeviceSet& devices, std::int64_t m, std::int64_t n, const QrBench& bench)
      : devices_(devices),
        m_(m),
        n_(n),
        given_(matrix_of(bench, m, n)),
        queue_(devices.device(0).make_queue(QueuePriority::normal)),
        v_(devices.device(0).allocate(m * n * 8)),
        sums_(devices.device(0).allocate(n * n * 16)),
        scales_(load(std::vector<double>(static_cast<std::size_t>(n), 1.0))),
        factor_(load(factor(n, 1))),
        wide_factor_(load(factor(n, 2))) {
    fill();
  }

  [[nodiscard]] double* data() { return reinterpret_cast<double*>(v_.data()); }

  double seconds_of(const Operation& operation, const std::vector<BlockView>& views,
                    std::uint32_t variant = 0) {
    Elements elements;
    for (const BlockView& view : views) elements.push_back(view.element);
    const KernelFunction kernel = devices_.backend().kernels().find(operation.name, elements);
    const Event begin = queue_->record();
    kernel(*queue_, {views, operation.operands}, {.variant = variant});
    const Event end = queue_->record();
    queue_->synchronize();
    return end.seconds() - begin.seconds();
  }

  [[nodiscard]] BlockView v() const { return {v_.data(), m_, n_, m_, 0, 0, Element::fp64}; }
  [[nodiscard]] BlockView b(Element e) const { return {sums_.data(), n_, n_, n_, 0, 0, e}; }
  [[nodiscard]] BlockView d() const { return {scales_.data(), n_, 1, n_, 0, 0, Element::fp64}; }
  [[nodiscard]] BlockView r(Element e) const {
    return {e == Element::dd ? wide_factor_.data() : factor_.data(), n_, n_, n_, 0, 0, e};
  }

  /// V as it was given.
  void fill() {
    queue_->copy(v_.data(), given_.data(), m_ * n_ * 8, CopyDirection::host_to_device);
    queue_->synchronize();
  }

 private:
  Buffer load(const std::vector<double>& values) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(double));
    Buffer buffer = devices_.device(0).allocate(bytes);
    queue_->copy(buffer.data(), values.data(), bytes, CopyDirection::host_to_device);
    queue_->synchronize();
    return buffer;
  }
  /// Nearly the identity, so that V can be solved with it again and again; `parts` numbers each.
  static std::vector<double> factor(std::int64_t n, std::int64_t parts) {
    std::vector<double> r(static_cast<std::size_t>(n * n * parts));
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t i = 0; i <= j; ++i)
        r[static_cast<std::size_t>((i + j * n) * parts)] = i == j ? 1.0 : 0x1p-20;
    }
    return r;
  }

  DeviceSet& devices_;
  std::int64_t m_;
  std::int64_t n_;
  std::vector<double> given_;
  std::unique_ptr<Queue> queue_;
  Buffer v_;
  Buffer sums_;
  Buffer scales_;
  Buffer factor_;
  Buffer wide_factor_;
};

/// The peers, and the reading of a matrix on a GPU.
struct Peers : PeersPlugin {
  Peers() { bind(time, "strata_tall_time"); }
  TallTime* time = nullptr;
};

void run_host_peers(const QrBench& bench, std::int64_t n, QrBenchResult& result) {
  const std::vector<double> given = matrix_of(bench, result.m, n);
  const auto peer = [&](const std::string& what, TallWork work) {
    result.rows.push_back(timed(n, what, bench.repeats, [&] {
      std::vector<double> v = given;
      return host_tall_seconds(v, result.m, n, work);
    }));
    result.rows.back().whole = work == TallWork::cholesky_qr || work == TallWork::householder;
  };
  peer("openblas dgemm", TallWork::gram_gemm);
  peer("openblas dsyrk", TallWork::gram_syrk);
  peer("openblas Cholesky QR", TallWork::cholesky_qr);
  peer(kHostHouseholder, TallWork::householder);
}

/// Whole calls by each method, of V where it lies, as the peer's are.
void run_methods(const QrBench& bench, Site& site, const std::string& device,
                 QrBenchResult& result) {
  const std::int64_t n = site.v().cols;
  double peer = 0;
  for (const QrBenchRow& row : result.rows) {
    if (row.n == n && (row.what == kHostHouseholder || row.what == kGpuHouseholder))
      peer = row.seconds;
  }
  std::vector<double> r(static_cast<std::size_t>(n * n));
  for (const QrMethod method : bench.methods) {
    QrOptions how;
    how.method = method;
    how.run.devices = device;
    how.verify = bench.verify;
    QrInfo info;
    const auto call = [&] {
      site.fill();
      const auto begin = std::chrono::steady_clock::now();
      info = qr_in_place(MatrixView<double>{site.data(), result.m, n, result.m},
                         MatrixView<double>{r.data(), n, n, n}, how);
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    QrBenchRow row = timed(n, fmt::format("qr {}", to_string(method)), bench.repeats, call);
    if (!how.verify) {
      how.verify = true;
      call();
    }
    info.report.trace = {};
    row.whole = true;
    row.ratio_to_peer = peer / row.seconds;
    row.info = std::move(info);
    result.rows.push_back(std::move(row));
  }
}

void run_columns(const QrBench& bench, DeviceSet& devices, const Peers* peers, std::int64_t n,
                 QrBenchResult& result) {
  Site site(devices, result.m, n, bench);
  const auto peer = [&](const std::string& what, TallWork work) {
    result.rows.push_back(timed(n, what, bench.repeats, [&] {
      double seconds = 0;
      Peers::call(peers->time, what.c_str(), site.data(), result.m, n, result.m, work, &seconds);
      return seconds;
    }));
    result.rows.back().whole = work == TallWork::cholesky_qr || work == TallWork::householder;
  };
  const auto ours = [&](const std::string& what, const Operation& operation,
                        const std::vector<BlockView>& views, std::uint32_t variant = 0) {
    result.rows.push_back(
        timed(n, what, bench.repeats, [&] { return site.seconds_of(operation, views, variant); }));
  };
  const std::size_t first = result.rows.size();
  const BlockView b = site.b(Element::fp64);
  const BlockView wide = site.b(Element::dd);
  const BlockView r = site.r(Element::fp64);
  const BlockView wide_r = site.r(Element::dd);
  const BlockView v = site.v();
  const BlockView d = site.d();
  if (peers != nullptr) {
    peer("read", TallWork::read);
  } else {
    ours("read", column_max, {{site.b(Element::fp64).data, n, 1, n, 0, 0, Element::fp64}, v});
  }
  ours("gram", gram, {b, v, d});
  ours("gram dd", gram, {wide, v, d});
  ours("gram dd, Dot2", gram, {wide, v, d}, kDot2);
  ours("gram dd, Cray", gram, {wide, v, d}, kCray);
  ours("solve", solve_right, {v, r, d});
  ours("solve, gram", solve_right_gram, {b, v, r, d});
  ours("solve, gram dd", solve_right_gram, {wide, v, r, d});
  ours("solve dd", solve_right, {v, wide_r, d});
  if (bench.peers && peers != nullptr) {
    peer("cublas dgemm", TallWork::gram_gemm);
    peer("cublas dsyrk", TallWork::gram_syrk);
    peer("cublas, cusolver Cholesky QR", TallWork::cholesky_qr);
    peer(kGpuHouseholder, TallWork::householder);
  } else if (bench.peers) {
    run_host_peers(bench, n, result);
  }
  // A CPU has one memory, whatever its number.
  run_methods(bench, site, peers == nullptr ? "host:1" : result.device, result);
  for (std::size_t i = first; i < result.rows.size(); ++i)
    result.rows[i].times_read = result.rows[i].seconds / result.rows[first].seconds;
}

}  // namespace

QrBenchResult run_qr_bench(const QrBench& bench, const Options& options) {
  DeviceSet devices(options);
  const bool on_gpu = devices.backend().kind() == DeviceKind::gpu;
  QrBenchResult result;
  result.device = devices.device(0).description().name;
  result.model = devices.device(0).description().model;
  result.m = bench.m > 0 ? bench.m : on_gpu ? 4'000'000 : 100'000;
  std::optional<Peers> peers;
  if (on_gpu) peers.emplace();
  for (const std::int64_t n : bench.columns) {
    require(n >= 1 && n <= result.m, ErrorKind::misuse, "bench",
            "{} columns do not fit {} rows of a tall matrix", n, result.m);
    run_columns(bench, devices, peers ? &*peers : nullptr, n, result);
  }
  return result;
}

}  // namespace strata::bench
