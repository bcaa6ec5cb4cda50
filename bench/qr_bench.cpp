#include "bench/qr_bench.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <span>

#include "base/check.hpp"
#include "base/random.hpp"
#include "bench/host_tall.hpp"
#include "bench/in_core_bench.hpp"
#include "bench/tall_peers.hpp"
#include "bench/tall_site.hpp"
#include "kernels/tall/gram.hpp"
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
template <class T>
std::vector<T> matrix_of(const QrBench& bench, std::int64_t m, std::int64_t n) {
  std::vector<T> v = uniform_elements<T>(m * n, bench.seed);
  if (bench.condition <= 1) return v;
  const T delta = static_cast<T>(std::sqrt(static_cast<double>(n)) / bench.condition);
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

void run_host_peers(const QrBench& bench, std::int64_t n, QrBenchResult& result) {
  const std::vector<double> given = matrix_of<double>(bench, result.m, n);
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

/// Seconds of a trace in which sums are added up, and nothing else is computed.
double reduction_of(const Trace& trace) {
  struct Change {
    double at;
    int sums;
    int others;
  };
  std::vector<Change> changes;
  for (const Span& span : trace.spans) {
    const bool sum = trace.operations[span.operation] == gram_sum.name;
    changes.push_back({span.begin, sum ? 1 : 0, sum ? 0 : 1});
    changes.push_back({span.end, sum ? -1 : 0, sum ? 0 : -1});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.at < b.at; });
  double seconds = 0;
  int sums = 0;
  int others = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (i > 0 && sums > 0 && others == 0) seconds += changes[i].at - changes[i - 1].at;
    sums += changes[i].sums;
    others += changes[i].others;
  }
  return seconds;
}

/// Whole calls by each method, of V where it lies, as the peer's are.
template <class T>
void run_methods(const QrBench& bench, TallSite<T>& site, const std::string& device,
                 QrBenchResult& result) {
  const std::int64_t n = site.v().cols;
  double peer = 0;
  for (const QrBenchRow& row : result.rows) {
    if (row.n == n && (row.what == kHostHouseholder || row.what == kGpuHouseholder))
      peer = row.seconds;
  }
  std::vector<T> r(static_cast<std::size_t>(n * n));
  const MatrixView<T> of_r{r.data(), n, n, n};
  for (const QrMethod method : bench.methods) {
    QrOptions how;
    how.method = method;
    how.run.devices = device;
    how.verify = bench.verify;
    QrInfo info;
    std::vector<double> waiting;
    std::vector<double> reductions;
    const auto call = [&] {
      const double seconds = site.seconds_of_qr(how, of_r, info);
      waiting.push_back(seconds - info.report.trace.seconds);
      reductions.push_back(reduction_of(info.report.trace));
      return seconds;
    };
    QrBenchRow row = timed(n, fmt::format("qr {}", to_string(method)), bench.repeats, call);
    row.waiting = median({waiting.begin() + 1, waiting.end()});  // the first was to warm up
    row.reduction = median({reductions.begin() + 1, reductions.end()});
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

/// XᵀY of V with itself, the form of a matrix product: twice the work of the Gram matrix, and on a
/// GPU an amount of memory that grows with the square of the columns.
constexpr std::int64_t kInnerColumnsMax = 32;

/// Kernels on the first part, in the precisions of T.
template <class T>
void run_kernels(const QrBench& bench, TallSite<T>& site, QrBenchResult& result) {
  constexpr Element kPlain = TallSite<T>::kElement;
  constexpr Element kWide = TallSite<T>::kWide;
  const BlockView b = site.b(kPlain);
  const BlockView wide = site.b(kWide);
  const BlockView r = site.r(kPlain);
  const BlockView wide_r = site.r(kWide);
  const BlockView v = site.v();
  const BlockView d = site.d();
  const auto ours = [&](const std::string& what, const Operation& operation,
                        const std::vector<BlockView>& views, std::uint32_t variant = 0) {
    result.rows.push_back(timed(v.cols, what, bench.repeats,
                                [&] { return site.seconds_of(operation, views, variant); }));
  };
  if constexpr (std::is_same_v<T, double>) {
    ours("gram", gram, {b, v, d});
    const std::uint32_t sums = site.sums();
    ours("gram dd", gram, {wide, v, d}, sums);
    if (sums != kExtraction) ours("gram dd, extraction", gram, {wide, v, d});
    ours("gram dd, Dot2", gram, {wide, v, d}, kDot2);
    ours("gram dd, Cray", gram, {wide, v, d}, kCray);
    ours("gram dd, IEEE", gram, {wide, v, d}, kIeee);
    if (v.cols <= kInnerColumnsMax) {
      ours("inner", inner, {b, v, v});
      ours("inner dd, extraction", inner, {wide, v, v});
      ours("inner dd, Cray", inner, {wide, v, v}, kCray);
      ours("inner dd, IEEE", inner, {wide, v, v}, kIeee);
    }
    ours("solve", solve_right, {v, r, d});
    ours("solve, gram", solve_right_gram, {b, v, r, d});
    ours("solve, gram dd", solve_right_gram, {wide, v, r, d}, sums);
    ours("solve dd", solve_right, {v, wide_r, d});
  } else {
    ours("gram s", gram, {b, v, d});
    ours("gram ss", gram, {wide, v, d});
    ours("solve s", solve_right, {v, r, d});
    ours("solve, gram s", solve_right_gram, {b, v, r, d});
    ours("solve, gram ss", solve_right_gram, {wide, v, r, d});
    ours("solve ss", solve_right, {v, wide_r, d});
  }
}

template <class T>
void run_columns(const QrBench& bench, DeviceSet& devices, const TallPeers* peers, std::int64_t n,
                 QrBenchResult& result) {
  TallSite<T> site(devices, result.devices, n, matrix_of<T>(bench, result.m, n));
  const MatrixView<T>& part = site.parts()[0];
  const auto peer = [&](const std::string& what, TallWork work) {
    // Reading takes as long whatever the elements are: pairs of floats as doubles.
    auto* data = reinterpret_cast<double*>(part.data);
    const std::int64_t rows = part.rows * static_cast<std::int64_t>(sizeof(T)) / 8;
    result.rows.push_back(timed(n, what, bench.repeats, [&] {
      double seconds = 0;
      TallPeers::call(peers->time, what.c_str(), data, rows, n, rows, work, &seconds);
      return seconds;
    }));
    result.rows.back().whole = work == TallWork::cholesky_qr || work == TallWork::householder;
  };
  const std::size_t first = result.rows.size();
  if (peers != nullptr) {
    peer("read", TallWork::read);
  } else {
    result.rows.push_back(timed(n, "read", bench.repeats, [&] {
      return site.seconds_of(column_max, {site.largest(), site.v()});
    }));
  }
  if (result.devices == 1) run_kernels(bench, site, result);
  if (bench.peers && peers != nullptr) {
    peer("cublas dgemm", TallWork::gram_gemm);
    peer("cublas dsyrk", TallWork::gram_syrk);
    peer("cublas, cusolver Cholesky QR", TallWork::cholesky_qr);
    peer(kGpuHouseholder, TallWork::householder);
  } else if (bench.peers) {
    run_host_peers(bench, n, result);
  }
  run_methods(bench, site, names_of_first(devices, result.devices), result);
  for (std::size_t i = first; i < result.rows.size(); ++i)
    result.rows[i].times_read = result.rows[i].seconds / result.rows[first].seconds;
}

}  // namespace

QrBenchResult run_qr_bench(const QrBench& asked, const RunOptions& options) {
  QrBench bench = asked;
  DeviceSet devices(options);
  const bool on_gpu = devices.backend().kind() == DeviceKind::gpu;
  QrBenchResult result;
  result.device = devices.device(0).description().name;
  result.model = devices.device(0).description().model;
  if (on_gpu || bench.deal_on_cpus) result.devices = devices.count();
  const bool can_have_peers = !bench.floats && result.devices == 1;
  bench.peers = bench.peers || (bench.peers_if_possible && can_have_peers);
  require(!bench.peers || can_have_peers, ErrorKind::misuse, "bench",
          "peers take doubles, on one device");
  result.m = bench.m > 0 ? bench.m : on_gpu ? 4'000'000 : 100'000;
  std::optional<TallPeers> peers;
  if (on_gpu) peers.emplace();
  for (const std::int64_t n : bench.columns) {
    require(n >= 1 && n <= result.m, ErrorKind::misuse, "bench",
            "{} columns do not fit {} rows of a tall matrix", n, result.m);
    const TallPeers* beside = peers ? &*peers : nullptr;
    if (bench.floats) {
      run_columns<float>(bench, devices, beside, n, result);
    } else {
      run_columns<double>(bench, devices, beside, n, result);
    }
  }
  return result;
}

}  // namespace strata::bench
