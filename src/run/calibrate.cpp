// calibrate(): see strata/calibrate.hpp.
//
// Method: kernels run on real queues with blocks of a well-conditioned matrix (the identity plus
// small numbers; random ones for GEMM) between two events. A device's rate is that of GEMM on all
// compute queues of all devices together, after the same for six times as long: a GPU under its
// power limit is faster in a burst than it remains, and GPUs of one host share power and heat. The
// rate is the mean of two, through the sizes and back again. The share of another kernel is
// what a mix of it and GEMMs takes longer than the GEMMs alone, while the device is still hot. The
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
#include "scalar/dispatch.hpp"
#include "strata/calibrate.hpp"

namespace strata {
namespace {

/// Operations that take another share of a device than that of their flops: chains of small
/// launches on a GPU, bound by latency, or kernels that are not as sparing as GEMM's.
constexpr bool is_measured_among_gemms(Operation operation) {
  return operation == Operation::potrf || operation == Operation::trsm ||
         operation == Operation::syrk || operation == Operation::trsm_left ||
         operation == Operation::trsm_left_transposed;
}

constexpr std::int64_t kLinkBytes = std::int64_t{64} << 20;
constexpr std::int64_t kOperandBytes = std::int64_t{4} << 30;
constexpr std::int64_t kOperandsMax = 16;
/// How much longer GEMMs run before those that count, for a GPU to reach its power limit, and the
/// temperature at which it stays there; and before those on tiles of the next size.
constexpr double kHeating = 6;
constexpr double kHeatingAgain = 1;
constexpr std::int64_t kCallsMax = 20000;

/// What one operation works on: out, two inputs, a pivot status.
struct Workbench {
  Buffer memory;
  Buffer status;
  Buffer host;
  KernelArguments arguments;
  KernelArguments gemm;  ///< a GEMM that leaves `arguments.out` alone
  std::vector<BlockView> operands;

  /// That GEMM with other operands each time, as in a factorization: on a GPU at its power limit
  /// those that are still in its cache would be faster.
  [[nodiscard]] KernelArguments gemm_of(std::int64_t call) const {
    KernelArguments of = gemm;
    const auto count = std::ssize(operands);
    of.inputs = {operands[static_cast<std::size_t>(call % count)],
                 operands[static_cast<std::size_t>((3 * call + 1) % count)]};
    return of;
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
  Calibrator(DeviceSet& devices, const Options& options, Precision precision, double seconds)
      : options_(options), devices_(devices), precision_(precision), seconds_(seconds) {}

  Machine measure(const std::vector<std::int64_t>& tiles) {
    require(!tiles.empty(), ErrorKind::misuse, "calibrate", "no tile size was given");
    for (const std::int64_t tile : tiles) {
      require(tile >= 2, ErrorKind::misuse, "calibrate", "a tile of order {} cannot be measured",
              tile);
    }
    Machine machine = devices_.machine();
    layout_.compute_queues = machine.devices[0].compute_queues;
    for (int d = 0; d < devices_.count(); ++d) queues_.push_back(devices_.queues(d, layout_));
    // The nominal rates give way to what is measured.
    for (DeviceModel& device : machine.devices) {
      device.kernels.clear();
      total_rate(device) = 0;
    }
    const std::vector<std::vector<double>> rates = gemm_rates(tiles);
    for (std::size_t t = 0; t < tiles.size(); ++t) measure_kernels(tiles[t], rates[t], machine);
    const LinkRate in = measure_link(CopyDirection::host_to_device);
    const LinkRate out = measure_link(CopyDirection::device_to_host);
    for (DeviceModel& device : machine.devices) {
      device.host_to_device = in;
      device.device_to_host = out;
    }
    if (devices_.count() > 1 && devices_.linked()) machine.device_to_device = measure_peer();
    return machine;
  }

 private:
  /// One for each compute queue of a device.
  using Workbenches = std::vector<Workbench>;

  [[nodiscard]] Queue& compute_queue(int d, int q) const {
    return *queues_[static_cast<std::size_t>(d)]
                   [static_cast<std::size_t>(PlanLayout::kFirstCompute + q)];
  }
  [[nodiscard]] double& total_rate(DeviceModel& device) const {
    return precision_ == Precision::fp32 ? device.flops_per_second_fp32
                                         : device.flops_per_second_fp64;
  }
  [[nodiscard]] KernelFunction kernel_of(Operation operation) const {
    return devices_.backend().kernels().find(operation, precision_);
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
    const std::int64_t room =
        std::min(kOperandBytes, device.budget_bytes() / 2) / layout_.compute_queues;
    const std::int64_t operands = std::clamp<std::int64_t>(room / bytes - 3, 1, kOperandsMax);
    Workbench bench;
    bench.memory = device.allocate((3 + operands) * bytes);
    bench.host = device.allocate_host(bytes);
    bench.status = device.allocate_host(sizeof(PivotStatus));
    const auto view = [&](int i) {
      return BlockView{bench.memory.data() + i * bytes, tile, tile, tile, 0, 0};
    };
    bench.arguments.out = view(0);
    bench.arguments.inputs = {view(1), view(2)};
    bench.gemm.out = view(2);
    for (int i = 0; i < operands; ++i) bench.operands.push_back(view(3 + i));
    bench.arguments.status = new (bench.status.data()) PivotStatus{};
    // GEMM multiplies numbers of every sign and size, as a real one does: on a GPU at its power
    // limit zeros would be faster.
    dispatch(precision_,
             [&]<class T>(std::type_identity<T>) { fill_random<T>(bench.host.data(), tile); });
    for (int i = 0; i < operands; ++i) reset(d, bench, 3 + i);
    dispatch(precision_, [&]<class T>(std::type_identity<T>) {
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
    for (KernelRate& rate : measure_alone(make_workbenches(0, tile), tile, rates[0])) {
      const double seconds = rate.seconds;
      for (std::size_t d = 0; d < rates.size(); ++d) {
        rate.seconds = seconds * rates[0] / rates[d];
        machine.devices[d].kernels.push_back(rate);
      }
    }
  }

  Workbenches make_workbenches(int d, std::int64_t tile) {
    Workbenches benches;
    for (int q = 0; q < layout_.compute_queues; ++q) benches.push_back(make_workbench(d, tile));
    return benches;
  }

  /// Every kernel on the first device.
  std::vector<KernelRate> measure_alone(const Workbenches& benches, std::int64_t tile,
                                        double gemm_rate) const {
    std::array<double, kOperations> added{};
    refresh(benches);
    for (int op = 0; op < kOperations; ++op) {
      const auto operation = static_cast<Operation>(op);
      const KernelFunction kernel = kernel_of(operation);
      if (kernel == nullptr || !is_measured_among_gemms(operation) || layout_.compute_queues == 1)
        continue;
      added[static_cast<std::size_t>(op)] =
          seconds_among_gemms(kernel, benches, flops_of_square(Operation::gemm, tile) / gemm_rate);
      refresh(benches);
    }
    CovarianceParameters covariance;
    covariance.smoothness = 1.0;
    std::vector<KernelRate> measured;
    for (int op = 0; op < kOperations; ++op) {
      const auto operation = static_cast<Operation>(op);
      const KernelFunction kernel = kernel_of(operation);
      if (kernel == nullptr) continue;
      KernelArguments arguments = benches[0].arguments;
      arguments.covariance = &covariance;
      if (operation == Operation::covariance)
        arguments.inputs[0].cols = arguments.inputs[1].cols = 2;
      const double flops = flops_of_square(operation, tile);
      const double alone = time_alone(kernel, arguments, benches[0], operation == Operation::potrf);
      const double cost = added[static_cast<std::size_t>(op)];
      const double seconds = std::max({alone, flops / gemm_rate, cost});
      KernelRate rate{std::string(to_string(operation)), precision_, flops, seconds};
      if (operation == Operation::gemm) rate.share = std::min(1.0, flops / seconds / gemm_rate);
      if (is_measured_among_gemms(operation) && layout_.compute_queues > 1)
        rate.share = std::clamp(cost / seconds, 0.01, 1.0);
      measured.push_back(std::move(rate));
      refresh(benches);
    }
    return measured;
  }

  static double flops_of_square(Operation operation, std::int64_t tile) {
    BlockTable blocks;
    blocks.add({.name = "T", .rows = tile, .cols = tile, .tile_rows = tile, .tile_cols = tile});
    Task task;
    task.operation = operation;
    task.out = task.inputs[0] = task.inputs[1] = BlockId(0, 0, 0);
    task.input_count = 2;
    return flops_of(blocks, task);
  }

  void check_cancelled() const {
    if (!options_.progress || options_.progress({0, 0, 0, "calibrate"})) return;
    fail(ErrorKind::cancelled, "calibrate", "cancelled");
  }

  /// The median of single calls, each between two events; a factorization starts from fresh values
  /// each time.
  double time_alone(KernelFunction kernel, const KernelArguments& arguments, const Workbench& bench,
                    bool fresh) const {
    Queue& queue = compute_queue(0, 0);
    std::vector<double> times;
    double total = 0;
    for (int call = 0; call < 3 || (call < 200 && total < seconds_ / 4); ++call) {
      check_cancelled();
      if (fresh) reset(0, bench, 0);
      const Event begin = queue.record();
      kernel(queue, arguments);
      const Event end = queue.record();
      queue.synchronize();
      if (call > 0) times.push_back(end.seconds() - begin.seconds());
      total += end.seconds() - begin.seconds();
    }
    std::nth_element(times.begin(), times.begin() + std::ssize(times) / 2, times.end());
    return std::max(times[times.size() / 2], 1e-9);
  }

  /// How long the compute queues of a device take for what `issue` puts into them.
  template <class F>
  double time_of_all(int d, const F& issue) const {
    for (int q = 0; q < layout_.compute_queues; ++q) compute_queue(d, q).synchronize();
    const Event begin = compute_queue(d, 0).record();
    issue();
    double end = 0;
    for (int q = 0; q < layout_.compute_queues; ++q) {
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
  double seconds_among_gemms(KernelFunction kernel, const Workbenches& benches,
                             double gemm_seconds) const {
    constexpr int kGemms = 4;
    constexpr double kRoundsMin = 2;
    constexpr double kRoundsMax = 8;
    const double round_seconds = kGemms * layout_.compute_queues * gemm_seconds;
    const auto rounds =
        static_cast<int>(std::clamp(seconds_ / round_seconds, kRoundsMin, kRoundsMax));
    const KernelFunction gemm = kernel_of(Operation::gemm);
    const auto issue = [&](bool mixed) {
      for (int call = 0; call < rounds * (kGemms + 1); ++call) {
        for (int q = 0; q < layout_.compute_queues; ++q) {
          // The queues are out of step, so that the operation of one meets the GEMMs of another.
          const bool small = (call + q * (kGemms + 1) / layout_.compute_queues) % (kGemms + 1) == 0;
          const Workbench& bench = benches[static_cast<std::size_t>(q)];
          if (!small) gemm(compute_queue(0, q), bench.gemm_of(call));
          if (small && mixed) kernel(compute_queue(0, q), bench.arguments);
        }
      }
    };
    check_cancelled();
    // A first call loads the kernel.
    for (int q = 0; q < layout_.compute_queues; ++q)
      kernel(compute_queue(0, q), benches[static_cast<std::size_t>(q)].arguments);
    (void)time_of_all(0, [&] { issue(false); });  // the device has been idle
    const double gemms = time_of_all(0, [&] { issue(false); });
    const double mixed = time_of_all(0, [&] { issue(true); });
    const double again = time_of_all(0, [&] { issue(false); });
    return (mixed - (gemms + again) / 2) / (rounds * layout_.compute_queues);
  }

  /// GEMM on all compute queues of all devices: the flop/s of each device.
  std::vector<double> rates_together(std::int64_t tile, double heating) {
    std::vector<Workbenches> benches(static_cast<std::size_t>(devices_.count()));
    on_every_device(
        [&](int d) { benches[static_cast<std::size_t>(d)] = make_workbenches(d, tile); });
    const KernelFunction gemm = kernel_of(Operation::gemm);
    const double flops = flops_of_square(Operation::gemm, tile) * layout_.compute_queues;
    std::vector<double> rates(benches.size());
    std::vector<std::int64_t> calls(benches.size(), 2);  // to each queue
    const auto round = [&](double next_seconds) {
      check_cancelled();
      on_every_device([&](int device) {
        const auto d = static_cast<std::size_t>(device);
        const double seconds = time_of_all(device, [&] {
          for (std::int64_t call = 0; call < calls[d]; ++call) {
            for (int q = 0; q < layout_.compute_queues; ++q)
              gemm(compute_queue(device, q), benches[d][static_cast<std::size_t>(q)].gemm_of(call));
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
    Queue& queue = *queues_[0][PlanLayout::kCopyIn];
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

  const Options& options_;
  DeviceSet& devices_;
  Precision precision_;
  double seconds_;
  PlanLayout layout_;
  std::vector<std::vector<Queue*>> queues_;  // by device
};

}  // namespace

Machine calibrate_devices(DeviceSet& devices, const Options& options,
                          const std::vector<std::int64_t>& tiles, Precision precision,
                          double seconds) {
  return Calibrator(devices, options, precision, seconds).measure(tiles);
}

Machine calibrate(const Options& options, const std::vector<std::int64_t>& tiles,
                  Precision precision, double seconds) {
  DeviceSet devices(options);
  return calibrate_devices(devices, options, tiles, precision, seconds);
}

}  // namespace strata
