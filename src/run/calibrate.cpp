// calibrate(): see strata/calibrate.hpp.
//
// Method: kernels run on real queues with blocks of a well-conditioned matrix (the identity plus
// small numbers; random ones for GEMM), first a few calls to warm up, then calls for a fixed time
// between two events. The isolated time of a kernel is that of one queue; the device's rate is that
// of GEMM on all compute queues together; the share of a small kernel is what a mix of it and GEMMs
// takes longer than the GEMMs alone.

#include "strata/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "base/random.hpp"
#include "run/device_set.hpp"
#include "scalar/dispatch.hpp"

namespace strata {
namespace {

/// Operations that are chains of small launches on a GPU, or bound by latency.
constexpr bool is_small(Operation operation) {
  return operation == Operation::potrf || operation == Operation::trsm ||
         operation == Operation::trsm_left || operation == Operation::trsm_left_transposed;
}

constexpr std::int64_t kLinkBytes = std::int64_t{64} << 20;
constexpr std::int64_t kOperandBytes = std::int64_t{1} << 30;
constexpr std::int64_t kOperandsMax = 16;

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
  Calibrator(const Options& options, Precision precision, double seconds)
      : options_(options), devices_(options), precision_(precision), seconds_(seconds) {}

  Machine measure(const std::vector<std::int64_t>& tiles) {
    require(!tiles.empty(), ErrorKind::misuse, "calibrate", "no tile size was given");
    for (const std::int64_t tile : tiles) {
      require(tile >= 2, ErrorKind::misuse, "calibrate", "a tile of order {} cannot be measured",
              tile);
    }
    Machine machine = devices_.machine();
    layout_.compute_queues = machine.devices[0].compute_queues;
    queues_ = devices_.queues(0, layout_);
    DeviceModel model = machine.devices[0];
    model.kernels.clear();
    // The nominal rate gives way to what is measured.
    (precision_ == Precision::fp32 ? model.flops_per_second_fp32 : model.flops_per_second_fp64) = 0;
    for (const std::int64_t tile : tiles) measure_kernels(tile, model);
    model.host_to_device = measure_link(CopyDirection::host_to_device);
    model.device_to_host = measure_link(CopyDirection::device_to_host);
    if (devices_.count() > 1 && devices_.linked()) machine.device_to_device = measure_peer();
    for (DeviceModel& device : machine.devices) {
      const std::string name = device.name;
      const std::int64_t memory = device.memory_bytes;
      device = model;
      device.name = name;
      device.memory_bytes = memory;
    }
    return machine;
  }

 private:
  [[nodiscard]] Queue& compute_queue(int q) const {
    return *queues_[static_cast<std::size_t>(PlanLayout::kFirstCompute + q)];
  }

  Workbench make_workbench(std::int64_t tile) {
    const std::int64_t bytes = tile * tile * bytes_of(precision_);
    // As many operands as a gigabyte or half of the budget holds.
    const std::int64_t room =
        std::min(kOperandBytes, devices_.device(0).budget_bytes() / 2) / layout_.compute_queues;
    const std::int64_t operands = std::clamp<std::int64_t>(room / bytes - 3, 1, kOperandsMax);
    Workbench bench;
    bench.memory = devices_.device(0).allocate((3 + operands) * bytes);
    bench.host = devices_.device(0).allocate_host(bytes);
    bench.status = devices_.device(0).allocate_host(sizeof(PivotStatus));
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
    for (int i = 0; i < operands; ++i) reset(bench, 3 + i);
    dispatch(precision_, [&]<class T>(std::type_identity<T>) {
      fill_identity_like<T>(bench.host.data(), tile);
    });
    refresh(bench);
    return bench;
  }

  /// Fresh values, so that repeated products do not run off to infinity.
  void reset(const Workbench& bench, int block) {
    Queue& queue = compute_queue(0);
    queue.copy(bench.memory.data() + block * bench.host.bytes(), bench.host.data(),
               bench.host.bytes(), CopyDirection::host_to_device);
    queue.synchronize();
  }

  void refresh(const Workbench& bench) {
    for (int i = 0; i < 3; ++i) reset(bench, i);
  }

  void measure_kernels(std::int64_t tile, DeviceModel& model) {
    std::vector<Workbench> benches;
    for (int q = 0; q < layout_.compute_queues; ++q) benches.push_back(make_workbench(tile));
    CovarianceParameters covariance;
    covariance.smoothness = 1.0;
    gemm_flops_ = flops_of_square(Operation::gemm, tile);
    const double gemm_rate = rate_together(benches, tile);
    for (Workbench& bench : benches) refresh(bench);
    for (int op = 0; op < kOperations; ++op) {
      const auto operation = static_cast<Operation>(op);
      const KernelFunction kernel = devices_.backend().kernels().find(operation, precision_);
      if (kernel == nullptr) continue;
      Workbench& bench = benches[0];
      bench.arguments.covariance = &covariance;
      KernelArguments arguments = bench.arguments;
      if (operation == Operation::covariance)
        arguments.inputs[0].cols = arguments.inputs[1].cols = 2;
      const double flops = flops_of_square(operation, tile);
      const double seconds = time_alone(kernel, arguments, bench, operation == Operation::potrf);
      KernelRate rate{std::string(to_string(operation)), precision_, flops, seconds};
      if (operation == Operation::gemm) rate.share = std::min(1.0, flops / seconds / gemm_rate);
      if (is_small(operation) && layout_.compute_queues > 1) {
        rate.share = share_among_gemms(kernel, benches, gemm_rate, rate);
      }
      model.kernels.push_back(std::move(rate));
      for (Workbench& used : benches) refresh(used);
    }
    double& total =
        precision_ == Precision::fp32 ? model.flops_per_second_fp32 : model.flops_per_second_fp64;
    total = std::max(total, gemm_rate);
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
                    bool fresh) {
    Queue& queue = compute_queue(0);
    std::vector<double> times;
    double total = 0;
    for (int call = 0; call < 3 || (call < 200 && total < seconds_ / 4); ++call) {
      check_cancelled();
      if (fresh) reset(bench, 0);
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

  /// All queues alternate between GEMMs and the operation, as in a factorization: what that takes
  /// longer than the GEMMs alone, over the time of the operation alone, is the share of the device
  /// that the operation takes.
  double share_among_gemms(KernelFunction kernel, std::vector<Workbench>& benches, double gemm_rate,
                           const KernelRate& rate) {
    constexpr int kGemms = 8;
    constexpr int kRounds = 4;
    const KernelFunction gemm = devices_.backend().kernels().find(Operation::gemm, precision_);
    double elapsed = 0;
    for (int warm_up = 1; warm_up >= 0; --warm_up) {
      check_cancelled();
      for (int q = 0; q < layout_.compute_queues; ++q) compute_queue(q).synchronize();
      const Event begin = compute_queue(0).record();
      for (int call = 0; call < kRounds * (kGemms + 1); ++call) {
        for (int q = 0; q < layout_.compute_queues; ++q) {
          // The queues are out of step, so that the operation of one meets the GEMMs of another.
          const bool small = (call + q * (kGemms + 1) / layout_.compute_queues) % (kGemms + 1) == 0;
          const Workbench& bench = benches[static_cast<std::size_t>(q)];
          small ? kernel(compute_queue(q), bench.arguments)
                : gemm(compute_queue(q), bench.gemm_of(call));
        }
      }
      double end = 0;
      for (int q = 0; q < layout_.compute_queues; ++q) {
        const Event last = compute_queue(q).record();
        compute_queue(q).synchronize();
        end = std::max(end, last.seconds());
      }
      elapsed = end - begin.seconds();
    }
    const double rounds = static_cast<double>(kRounds) * layout_.compute_queues;
    const double gemms_alone = rounds * kGemms * gemm_flops_ / gemm_rate;
    return std::clamp((elapsed - gemms_alone) / (rounds * rate.seconds), 0.01, 1.0);
  }

  /// GEMM on all compute queues for the whole time, in flop/s.
  double rate_together(std::vector<Workbench>& benches, std::int64_t tile) {
    const KernelFunction kernel = devices_.backend().kernels().find(Operation::gemm, precision_);
    const double flops = flops_of_square(Operation::gemm, tile);
    double rate = 0;
    // The first round says how many calls fill the time, the second heats the device up to where
    // its power limit shows, the third counts.
    std::int64_t calls = 2;
    for (int round = 0; round < 3; ++round) {
      check_cancelled();
      for (int q = 0; q < layout_.compute_queues; ++q) compute_queue(q).synchronize();
      const Event begin = compute_queue(0).record();
      for (std::int64_t call = 0; call < calls; ++call) {
        for (int q = 0; q < layout_.compute_queues; ++q) {
          kernel(compute_queue(q), benches[static_cast<std::size_t>(q)].gemm_of(call));
        }
      }
      double end = 0;
      for (int q = 0; q < layout_.compute_queues; ++q) {
        const Event last = compute_queue(q).record();
        compute_queue(q).synchronize();
        end = std::max(end, last.seconds());
      }
      const double elapsed = std::max(end - begin.seconds(), 1e-9);
      rate = static_cast<double>(calls * layout_.compute_queues) * flops / elapsed;
      calls = std::clamp<std::int64_t>(
          static_cast<std::int64_t>(static_cast<double>(calls) * (round == 0 ? 2 : 1) * seconds_ /
                                    elapsed),
          2, 20000);
    }
    return rate;
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
    Queue& queue = *queues_[PlanLayout::kCopyIn];
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
  DeviceSet devices_;
  Precision precision_;
  double seconds_;
  PlanLayout layout_;
  std::vector<Queue*> queues_;
  double gemm_flops_ = 0;  // of the tile that is being measured
};

}  // namespace

Machine calibrate(const Options& options, const std::vector<std::int64_t>& tiles,
                  Precision precision, double seconds) {
  return Calibrator(options, precision, seconds).measure(tiles);
}

}  // namespace strata
