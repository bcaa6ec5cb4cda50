// calibrate(): see strata/calibrate.hpp.
//
// Method: kernels run on real queues with blocks of a well-conditioned matrix (the identity plus
// small numbers; random ones for GEMM) between two events. A device's rate is that of GEMM on all
// compute queues of all devices together, after the same for six times as long. A GPU under its
// power limit is faster in a burst than it remains, and GPUs of one host share power and heat. The
// rate is the mean of two, through the sizes and back again. The share of another kernel is what a
// mix of it and GEMMs takes longer than the GEMMs alone, while the device is still hot. The
// isolated time of a kernel is that of one queue, but no call is faster than the device's rate, or
// than what it adds to GEMMs: simulate() reaches a rate that is one call's flops over its seconds
// and its share. Shares and isolated times are those of the first device; another one's times are
// longer by as much as its GEMMs are slower.

#include "run/calibrate_devices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <future>
#include <utility>

#include "base/check.hpp"
#include "base/random.hpp"
#include "kernels/covariance/covariance.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/potrf.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trsm.hpp"
#include "scalar/dispatch.hpp"
#include "schedule/machine_model.hpp"
#include "strata/calibrate.hpp"

namespace strata {
namespace {

/// What is measured of a kernel.
struct Probe {
  const Operation* operation;
  std::uint32_t variant;
  /// Takes another share of a device than that of its flops: a chain of small launches on a GPU,
  /// bound by latency, or a kernel that is not as sparing as GEMM's.
  bool among_gemms;

  [[nodiscard]] Elements elements(Element precision) const {
    if (operation == &potrf) return {precision, Element::fp64};
    return {operation->operands, precision};
  }
};
constexpr std::array<Probe, 5> kProbes{{{&potrf, 0, true},
                                        {&trsm, kRightSide | kTransposeL, true},
                                        {&syrk, 0, true},
                                        {&gemm, kTransposeB, false},
                                        {&covariance, 0, false}}};
constexpr const Probe& kGemmProbe = kProbes[3];

constexpr std::int64_t kLinkBytes = std::int64_t{64} << 20;
constexpr std::int64_t kOperandBytes = std::int64_t{4} << 30;
constexpr std::int64_t kOperandsMeasured = 16;
/// How much longer GEMMs run before those that count, for a GPU to reach its power limit, and the
/// temperature at which it stays there; and before those on tiles of the next size.
constexpr double kHeating = 6;
constexpr double kHeatingAgain = 1;
constexpr std::int64_t kCallsMax = 20000;

/// What the kernels of one queue work on: three blocks, a pivot status, and operands of GEMMs.
struct Workbench {
  Buffer memory;
  Buffer status;
  Buffer host;
  std::array<BlockView, 3>
      blocks;  ///< the last is the output of GEMMs, which leave the first alone
  std::vector<BlockView> operands;

  [[nodiscard]] BlockView status_view() const {
    return {status.data(), kStatusRows, 1, kStatusRows, 0, 0};
  }
  /// The operands of a kernel that is measured.
  [[nodiscard]] std::vector<BlockView> views_of(const Operation& operation) const {
    if (&operation == &potrf) return {blocks[0], status_view()};
    std::vector<BlockView> views(blocks.begin(), blocks.begin() + operation.operands);
    if (&operation == &covariance) views[1].cols = views[2].cols = 2;
    return views;
  }
  /// Those of a GEMM, other operands each time, as in a factorization: on a GPU at its power limit
  /// those that are still in its cache would be faster.
  [[nodiscard]] std::array<BlockView, 3> gemm_of(std::int64_t call) const {
    const auto count = std::ssize(operands);
    return {blocks[2], operands[static_cast<std::size_t>(call % count)],
            operands[static_cast<std::size_t>((3 * call + 1) % count)]};
  }
};

template <class T>
void fill_identity_like(std::byte* data, std::int64_t tile) {
  auto* values = reinterpret_cast<T*>(data);
  for (std::int64_t i = 0; i < tile * tile; ++i) {
    const double noise =
        1e-3 * random_uniform(5, static_cast<std::uint64_t>(i)) / static_cast<double>(tile);
    values[i] = static_cast<T>(noise + (i % (tile + 1) == 0 ? 1.0 : 0.0));
  }
}

template <class T>
void fill_random(std::byte* data, std::int64_t tile) {
  auto* values = reinterpret_cast<T*>(data);
  for (std::int64_t i = 0; i < tile * tile; ++i) {
    values[i] = static_cast<T>(2 * random_uniform(6, static_cast<std::uint64_t>(i)) - 1);
  }
}

class Calibrator {
 public:
  Calibrator(DeviceSet& devices, const RunOptions& options, Element precision, double seconds)
      : options_(options), devices_(devices), precision_(precision), seconds_(seconds) {}

  Machine measure(const std::vector<std::int64_t>& tiles) {
    require(!tiles.empty(), ErrorKind::misuse, "calibrate", "no tile size was given");
    for (const std::int64_t tile : tiles) {
      require(tile >= 2, ErrorKind::misuse, "calibrate", "a tile of order {} cannot be measured",
              tile);
    }
    Machine machine = devices_.machine();
    for (int d = 1; d < devices_.count(); ++d) {
      require(&devices_.backend(d) == &devices_.backend(), ErrorKind::misuse, "calibrate",
              "{} and {} are of two kinds: calibrate one at a time", machine.devices[0].name,
              machine.devices[static_cast<std::size_t>(d)].name);
    }
    compute_queues_ = machine.devices[0].compute_queues;
    for (int d = 0; d < devices_.count(); ++d)
      queues_.push_back(devices_.queues(d, layout_of_queues(d)));
    // The nominal rates give way to what is measured.
    for (DeviceModel& device : machine.devices) {
      device.kernels.clear();
      total_rate(device) = 0;
    }
    const std::vector<std::vector<double>> rates = gemm_rates(tiles);
    for (std::size_t t = 0; t < tiles.size(); ++t) measure_kernels(tiles[t], rates[t], machine);
    if (!devices_.backend().on_host())
      for (const std::int64_t tile : tiles) measure_lu(tile, rates.back(), machine);
    const LinkRate in = measure_link(CopyDirection::host_to_device);
    const LinkRate out = measure_link(CopyDirection::device_to_host);
    for (DeviceModel& device : machine.devices) {
      device.host_to_device = in;
      device.device_to_host = out;
    }
    if (!devices_.backend().on_host()) {
      const LinkRate staging = measure_staging(devices_, *queues_[0][0]);
      for (DeviceModel& device : machine.devices) device.staging = staging;
      machine.pinning_bytes_per_second = measure_pinning(devices_);
    }
    if (devices_.count() > 1 && devices_.linked()) machine.device_to_device = measure_peer();
    return machine;
  }

 private:
  /// One for each compute queue of a device.
  using Workbenches = std::vector<Workbench>;

  [[nodiscard]] Queue& compute_queue(int d, int q) const {
    return *queues_[static_cast<std::size_t>(d)][static_cast<std::size_t>(1 + q)];
  }
  [[nodiscard]] double& total_rate(DeviceModel& device) const { return device.rate(precision_); }
  [[nodiscard]] KernelFunction kernel_of(const Probe& probe) const {
    return devices_.backend().kernels().find(probe.operation->name, probe.elements(precision_));
  }
  void call(const Probe& probe, Queue& queue, const Workbench& bench) const {
    const std::vector<BlockView> views = bench.views_of(*probe.operation);
    kernel_of(probe)(queue, {views, probe.operation->operands}, parameters_of(probe));
  }
  void call_gemm(Queue& queue, const Workbench& bench, std::int64_t number) const {
    const std::array<BlockView, 3> views = bench.gemm_of(number);
    kernel_of(kGemmProbe)(queue, {views, 3}, parameters_of(kGemmProbe));
  }
  [[nodiscard]] KernelParameters parameters_of(const Probe& probe) const {
    return {.variant = probe.variant,
            .values = probe.operation == &covariance ? &covariance_ : nullptr};
  }

  /// A queue for copies, and those that compute.
  [[nodiscard]] PlanLayout layout_of_queues(int d) const {
    PlanLayout layout;
    layout.devices.resize(static_cast<std::size_t>(d) + 1);
    DeviceLayout& device = layout.devices.back();
    device.queue_count = 1 + compute_queues_;
    layout.queues.assign(static_cast<std::size_t>(device.queue_count),
                         {static_cast<std::uint16_t>(d), QueueRole::compute, 0});
    return layout;
  }

  /// `function(d)` for all devices at once, each on a thread of its own, as run() issues: one
  /// thread could not keep many devices busy.
  template <class F>
  void on_every_device(const F& function) const {
    std::vector<std::future<void>> done;
    for (int d = 0; d < devices_.count(); ++d)
      done.push_back(std::async(std::launch::async, function, d));
    for (std::future<void>& one : done) one.get();
  }

  Workbench make_workbench(int d, std::int64_t tile) {
    Device& device = devices_.device(d);
    const std::int64_t bytes = tile * tile * bytes_of(precision_);
    // As many operands as some gigabytes or half of the budget hold.
    const std::int64_t room = std::min(kOperandBytes, device.budget_bytes() / 2) / compute_queues_;
    const std::int64_t operands = std::clamp<std::int64_t>(room / bytes - 3, 1, kOperandsMeasured);
    Workbench bench;
    bench.memory = device.allocate((3 + operands) * bytes);
    bench.host = device.allocate_host(bytes);
    bench.status = device.allocate_host(sizeof(PivotStatus));
    const auto view = [&](int i) {
      return BlockView{bench.memory.data() + i * bytes, tile, tile, tile, 0, 0};
    };
    bench.blocks = {view(0), view(1), view(2)};
    for (int i = 0; i < operands; ++i) bench.operands.push_back(view(3 + i));
    // GEMM multiplies numbers of every sign and size, as a real one does: on a GPU at its power
    // limit zeros would be faster.
    dispatch_native(precision_, [&]<class T>(std::type_identity<T>) {
      fill_random<T>(bench.host.data(), tile);
    });
    for (int i = 0; i < operands; ++i) reset(d, bench, 3 + i);
    dispatch_native(precision_, [&]<class T>(std::type_identity<T>) {
      fill_identity_like<T>(bench.host.data(), tile);
    });
    for (int i = 0; i < 3; ++i) reset(d, bench, i);
    return bench;
  }

  void reset(int d, const Workbench& bench, int block) const {
    Queue& queue = compute_queue(d, 0);
    queue.copy(bench.memory.data() + block * bench.host.bytes(), bench.host.data(),
               bench.host.bytes(), CopyDirection::host_to_device);
    queue.synchronize();
  }

  /// Fresh values on the first device, so that repeated products do not run off to infinity.
  void refresh(const Workbenches& benches) const {
    for (const Workbench& bench : benches) {
      for (int i = 0; i < 3; ++i) reset(0, bench, i);
    }
  }

  /// The rates of each device with tiles of each size. Through the sizes and back again: a device
  /// goes on getting hotter, and would be slower for the size that comes last.
  std::vector<std::vector<double>> gemm_rates(const std::vector<std::int64_t>& tiles) {
    std::vector<std::vector<double>> rates;
    double heating = kHeating;
    for (const std::int64_t tile : tiles)
      rates.push_back(rates_together(tile, std::exchange(heating, kHeatingAgain)));
    if (tiles.size() == 1) return rates;
    for (std::size_t t = tiles.size(); t-- > 0;) {
      const std::vector<double> again = rates_together(tiles[t], kHeatingAgain);
      for (std::size_t d = 0; d < again.size(); ++d) rates[t][d] = (rates[t][d] + again[d]) / 2;
    }
    return rates;
  }

  void measure_kernels(std::int64_t tile, const std::vector<double>& rates, Machine& machine) {
    for (std::size_t d = 0; d < rates.size(); ++d) {
      double& total = total_rate(machine.devices[d]);
      total = std::max(total, rates[d]);
    }
    add(measure_alone(make_workbenches(0, tile), tile, rates[0]), rates, machine);
  }

  /// Panels of LU on the first device, as large products on it go.
  void measure_lu(std::int64_t columns, const std::vector<double>& rates, Machine& machine) {
    const Element complex = precision_ == Element::fp64 ? Element::complex128 : Element::complex64;
    for (const Element element : {precision_, complex}) {
      check_cancelled();
      add(measure_panels(devices_, compute_queue(0, 0), element, columns,
                         total_rate(machine.devices[0])),
          rates, machine);
    }
  }

  /// What the first device has, to all: `rates` are those of their products.
  static void add(std::vector<KernelRate> measured, const std::vector<double>& rates,
                  Machine& machine) {
    for (KernelRate& rate : measured) {
      const double seconds = rate.seconds;
      for (std::size_t d = 0; d < rates.size(); ++d) {
        rate.seconds = seconds * rates[0] / rates[d];
        machine.devices[d].kernels.push_back(rate);
      }
    }
  }

  Workbenches make_workbenches(int d, std::int64_t tile) {
    Workbenches benches;
    for (int q = 0; q < compute_queues_; ++q) benches.push_back(make_workbench(d, tile));
    return benches;
  }

  /// Every kernel on the first device.
  std::vector<KernelRate> measure_alone(const Workbenches& benches, std::int64_t tile,
                                        double gemm_rate) const {
    std::array<double, kProbes.size()> added{};
    refresh(benches);
    for (std::size_t p = 0; p < kProbes.size(); ++p) {
      const Probe& probe = kProbes[p];
      if (kernel_of(probe) == nullptr || !probe.among_gemms || compute_queues_ == 1) continue;
      added[p] = seconds_among_gemms(probe, benches, work_of_square(kGemmProbe, tile) / gemm_rate);
      refresh(benches);
    }
    std::vector<KernelRate> measured;
    for (std::size_t p = 0; p < kProbes.size(); ++p) {
      const Probe& probe = kProbes[p];
      if (kernel_of(probe) == nullptr) continue;
      const double flops = work_of_square(probe, tile);
      const double alone = time_alone(probe, benches[0]);
      const double seconds = std::max({alone, flops / gemm_rate, added[p]});
      KernelRate rate{std::string(probe.operation->name), list_of(probe.elements(precision_)),
                      flops, seconds};
      if (probe.operation == &gemm) rate.share = std::min(1.0, flops / seconds / gemm_rate);
      if (probe.among_gemms && compute_queues_ > 1)
        rate.share = std::clamp(added[p] / seconds, 0.01, 1.0);
      measured.push_back(std::move(rate));
      refresh(benches);
    }
    return measured;
  }

  static double work_of_square(const Probe& probe, std::int64_t tile) {
    const BlockExtent square{0, 0, tile, tile};
    const std::array<BlockExtent, 3> extents{square, square, square};
    return probe.operation->work(
        std::span(extents).first(static_cast<std::size_t>(probe.operation->operands)),
        probe.variant);
  }

  void check_cancelled() const {
    if (!options_.progress || options_.progress({0, 0, 0, "calibrate"})) return;
    fail(ErrorKind::cancelled, "calibrate", "cancelled");
  }

  /// The median of single calls, each between two events; a factorization starts from fresh values
  /// each time.
  double time_alone(const Probe& probe, const Workbench& bench) const {
    Queue& queue = compute_queue(0, 0);
    std::vector<double> times;
    double total = 0;
    for (int number = 0; number < 3 || (number < 200 && total < seconds_ / 4); ++number) {
      check_cancelled();
      if (probe.operation == &potrf) reset(0, bench, 0);
      const Event begin = queue.record();
      call(probe, queue, bench);
      const Event end = queue.record();
      queue.synchronize();
      if (number > 0) times.push_back(end.seconds() - begin.seconds());
      total += end.seconds() - begin.seconds();
    }
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
    return std::max(times[times.size() / 2], 1e-9);
  }

  /// How long the compute queues of a device take for what `issue` puts into them.
  template <class F>
  double time_of_all(int d, const F& issue) const {
    for (int q = 0; q < compute_queues_; ++q) compute_queue(d, q).synchronize();
    const Event begin = compute_queue(d, 0).record();
    issue();
    double end = 0;
    for (int q = 0; q < compute_queues_; ++q) {
      const Event last = compute_queue(d, q).record();
      compute_queue(d, q).synchronize();
      end = std::max(end, last.seconds());
    }
    return std::max(end - begin.seconds(), 1e-9);
  }

  /// All queues alternate between GEMMs and the operation, as in a factorization: what that takes
  /// longer than the GEMMs alone, for each call of the operation. Both are measured here, one right
  /// after the other, so that the device is as hot, and its neighbours as idle, in both; the GEMMs
  /// before and after. A difference of times this long: few GEMMs for each call, and many calls.
  double seconds_among_gemms(const Probe& probe, const Workbenches& benches,
                             double gemm_seconds) const {
    constexpr int kGemms = 4;
    constexpr double kRoundsMin = 2;
    constexpr double kRoundsMax = 8;
    const double round_seconds = kGemms * compute_queues_ * gemm_seconds;
    const auto rounds =
        static_cast<int>(std::clamp(seconds_ / round_seconds, kRoundsMin, kRoundsMax));
    const auto issue = [&](bool mixed) {
      for (int number = 0; number < rounds * (kGemms + 1); ++number) {
        for (int q = 0; q < compute_queues_; ++q) {
          // The queues are out of step, so that the operation of one meets the GEMMs of another.
          const bool small = (number + q * (kGemms + 1) / compute_queues_) % (kGemms + 1) == 0;
          const Workbench& bench = benches[static_cast<std::size_t>(q)];
          if (!small) call_gemm(compute_queue(0, q), bench, number);
          if (small && mixed) call(probe, compute_queue(0, q), bench);
        }
      }
    };
    check_cancelled();
    // A first call loads the kernel.
    for (int q = 0; q < compute_queues_; ++q)
      call(probe, compute_queue(0, q), benches[static_cast<std::size_t>(q)]);
    (void)time_of_all(0, [&] { issue(false); });  // the device has been idle
    const double gemms = time_of_all(0, [&] { issue(false); });
    const double mixed = time_of_all(0, [&] { issue(true); });
    const double again = time_of_all(0, [&] { issue(false); });
    return (mixed - (gemms + again) / 2) / (rounds * compute_queues_);
  }

  /// GEMM on all compute queues of all devices: the flop/s of each device.
  std::vector<double> rates_together(std::int64_t tile, double heating) {
    std::vector<Workbenches> benches(static_cast<std::size_t>(devices_.count()));
    on_every_device(
        [&](int d) { benches[static_cast<std::size_t>(d)] = make_workbenches(d, tile); });
    const double flops = work_of_square(kGemmProbe, tile) * compute_queues_;
    std::vector<double> rates(benches.size());
    std::vector<std::int64_t> calls(benches.size(), 2);  // to each queue
    const auto round = [&](double next_seconds) {
      check_cancelled();
      on_every_device([&](int device) {
        const auto d = static_cast<std::size_t>(device);
        const double seconds = time_of_all(device, [&] {
          for (std::int64_t number = 0; number < calls[d]; ++number) {
            for (int q = 0; q < compute_queues_; ++q)
              call_gemm(compute_queue(device, q), benches[d][static_cast<std::size_t>(q)], number);
          }
        });
        rates[d] = static_cast<double>(calls[d]) * flops / seconds;
        calls[d] =
            std::clamp<std::int64_t>(std::llround(next_seconds * rates[d] / flops), 2, kCallsMax);
      });
    };
    // The first round loads the kernel, which takes far longer than its calls, the second says how
    // many calls fill a time, the third heats up, the fourth counts.
    round(seconds_ / 50);
    round(seconds_ * heating);
    round(seconds_);
    round(0);
    return rates;
  }

  LinkRate measure_link(CopyDirection direction) {
    Buffer host = devices_.device(0).allocate_host(kLinkBytes);
    const std::int64_t bytes = std::min(kLinkBytes, devices_.device(0).budget_bytes() / 2);
    Buffer memory = devices_.device(0).allocate(bytes);
    std::memset(host.data(), 1, static_cast<std::size_t>(bytes));
    const bool in = direction == CopyDirection::host_to_device;
    return time_copies(in ? memory.data() : host.data(), in ? host.data() : memory.data(), bytes,
                       direction);
  }

  /// From the second device to the first, by the first one's queue, as a plan does it.
  LinkRate measure_peer() {
    std::int64_t bytes = kLinkBytes;
    for (int d = 0; d < 2; ++d) bytes = std::min(bytes, devices_.device(d).budget_bytes() / 2);
    Buffer to = devices_.device(0).allocate(bytes);
    Buffer from = devices_.device(1).allocate(bytes);
    return time_copies(to.data(), from.data(), bytes, CopyDirection::device_to_device);
  }

  LinkRate time_copies(std::byte* to, const std::byte* from, std::int64_t bytes,
                       CopyDirection direction) {
    Queue& queue = *queues_[0][0];
    const auto time = [&](std::int64_t size, int repeats) {
      std::vector<double> times;
      for (int i = 0; i < repeats; ++i) {
        const Event begin = queue.record();
        queue.copy(to, from, size, direction);
        const Event end = queue.record();
        queue.synchronize();
        times.push_back(end.seconds() - begin.seconds());
      }
      std::nth_element(times.begin(), times.begin() + repeats / 2, times.end());
      return std::max(times[static_cast<std::size_t>(repeats / 2)], 1e-9);
    };
    const double latency = time(std::min<std::int64_t>(1024, bytes), 21);
    const double whole = time(bytes, 7);
    return {static_cast<double>(bytes) / std::max(whole - latency, 1e-9), latency};
  }

  const RunOptions& options_;
  DeviceSet& devices_;
  Element precision_;
  double seconds_;
  int compute_queues_ = 1;
  std::vector<std::vector<Queue*>> queues_;  // by device
  CovarianceParameters covariance_{.smoothness = 1.0};
};

}  // namespace

Machine calibrate_devices(DeviceSet& devices, const RunOptions& options,
                          const std::vector<std::int64_t>& tiles, Element precision,
                          double seconds) {
  return Calibrator(devices, options, precision, seconds).measure(tiles);
}

Machine calibrate(const RunOptions& options, const std::vector<std::int64_t>& tiles,
                  Element precision, double seconds) {
  DeviceSet devices(options);
  return calibrate_devices(devices, options, tiles, precision, seconds);
}

}  // namespace strata
