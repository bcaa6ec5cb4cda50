#pragma once
// ClockBackend: devices whose time is made up, for tests of what measures times.
//
// Contract. Nothing is computed; the host backend's devices hold the memory. What is put into the
// queues of a device advances the clock of that device, one after the other, and events tell it:
// * a GEMM takes kGemmSeconds, but kBurst of that on a device that is not hot; the first one on
//   each device also loads for kLoadSeconds,
// * a triangular solve takes kSolveSeconds if it is the only kernel between two synchronizations of
//   the device's queues, and kSolveShare of that beside others; likewise a symmetric update,
// * everything on device d takes slowness[d] times as long as on a device of slowness 1,
// * with a `drift`, a GEMM takes longer by that share for each second of GEMMs before it,
// * a copy takes its bytes over kLinkRate, anything else no time.
// A device is hot when GEMMs have run for kHotSeconds; each synchronization cools it by
// kCoolSeconds, as the pause does. One thread at a time for each device.

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/backend/backend.hpp"
#include "kernels/dense/gemm.hpp"
#include "kernels/dense/syrk.hpp"
#include "kernels/dense/trsm.hpp"
#include "tests/support/passing_device.hpp"

namespace strata::test {

class ClockBackend final : public Backend {
 public:
  static constexpr double kGemmSeconds = 1e-3;
  static constexpr double kBurst = 0.6;
  static constexpr double kLoadSeconds = 0.3;
  static constexpr double kHotSeconds = 0.9;
  static constexpr double kCoolSeconds = 0.5e-3;
  static constexpr double kSolveSeconds = 20e-3;
  static constexpr double kSolveShare = 0.25;
  static constexpr double kUpdateSeconds = 2e-3;
  static constexpr double kUpdateShare = 1.5;
  static constexpr double kLinkRate = 1e12;

  explicit ClockBackend(std::vector<double> slowness, double drift = 0)
      : slowness_(std::move(slowness)), drift_(drift) {
    kernels_.set(gemm, Elements(3, Element::fp64),
                 [](Queue& queue, const KernelCalls& calls, const KernelParameters&) {
                   for (std::int64_t i = 0; i < calls.count(); ++i) clock_of(queue).gemm();
                 });
    kernels_.set(trsm, Elements(2, Element::fp64),
                 [](Queue& queue, const KernelCalls& calls, const KernelParameters&) {
                   for (std::int64_t i = 0; i < calls.count(); ++i)
                     clock_of(queue).other(kSolveSeconds, kSolveShare);
                 });
    kernels_.set(syrk, Elements(2, Element::fp64),
                 [](Queue& queue, const KernelCalls& calls, const KernelParameters&) {
                   for (std::int64_t i = 0; i < calls.count(); ++i)
                     clock_of(queue).other(kUpdateSeconds, kUpdateShare);
                 });
  }

  [[nodiscard]] std::string name() const override { return "clock"; }
  [[nodiscard]] std::vector<DeviceDescription> devices() const override {
    return host_backend().devices();
  }
  [[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                    std::int64_t budget_bytes) const override {
    return std::make_unique<ClockDevice>(host_backend().make_device(index, budget_bytes),
                                         slowness_.at(static_cast<std::size_t>(index)), drift_);
  }
  [[nodiscard]] const KernelTable& kernels() const override { return kernels_; }
  [[nodiscard]] bool reaches(int, const void*, std::int64_t) const override { return true; }
  [[nodiscard]] bool linked(int, int) const override { return false; }
  [[nodiscard]] bool on_host() const override { return true; }
  [[nodiscard]] DeviceKind kind() const override { return DeviceKind::cpu; }

 private:
  struct Clock {
    double slowness = 1;
    double drift = 0;
    double worked = 0;  // by GEMMs
    double now = 0;
    double heat = 0;
    bool loaded = false;
    int kernels = 0;   // since the last synchronization
    double alone = 0;  // what the last of them has taken more than beside others

    void advance(double seconds) { now += slowness * seconds; }
    void gemm() {
      begin_kernel();
      if (!std::exchange(loaded, true)) advance(kLoadSeconds);
      const double seconds =
          (heat < kHotSeconds ? kBurst : 1) * kGemmSeconds * (1 + drift * worked);
      advance(seconds);
      worked += seconds;
      heat = std::min(heat + slowness * seconds, kHotSeconds);
    }
    void other(double seconds, double share) {
      begin_kernel();
      advance(share * seconds);
      if (kernels > 1) return;
      alone = (1 - share) * seconds;
      advance(alone);
    }
    void synchronize() {
      heat = std::max(heat - kCoolSeconds, 0.0);
      kernels = 0;
      alone = 0;
    }

   private:
    void begin_kernel() {
      advance(-std::exchange(alone, 0));  // it is not alone any more
      ++kernels;
    }
  };

  class ClockEvent final : public Event::State {
   public:
    explicit ClockEvent(double seconds) : seconds_(seconds) {}
    [[nodiscard]] bool done() const override { return true; }
    void wait() const override {}
    [[nodiscard]] double seconds() const override { return seconds_; }

   private:
    double seconds_;
  };

  class ClockQueue final : public Queue {
   public:
    explicit ClockQueue(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}
    void copy(void*, const void*, std::int64_t bytes, CopyDirection) override {
      clock_->advance(static_cast<double>(bytes) / kLinkRate);
    }
    void submit(std::function<void()> function) override { function(); }
    Event record() override { return Event(std::make_unique<ClockEvent>(clock_->now)); }
    void wait(const Event&) override {}
    void synchronize() override { clock_->synchronize(); }
    [[nodiscard]] bool failed() const override { return false; }

    [[nodiscard]] Clock& clock() { return *clock_; }

   private:
    std::shared_ptr<Clock> clock_;
  };

  class ClockDevice final : public PassingDevice {
   public:
    ClockDevice(std::unique_ptr<Device> inner, double slowness, double drift)
        : PassingDevice(std::move(inner)) {
      clock_->slowness = slowness;
      clock_->drift = drift;
    }
    std::unique_ptr<Queue> make_queue(QueuePriority) override {
      return std::make_unique<ClockQueue>(clock_);
    }

   private:
    std::shared_ptr<Clock> clock_ = std::make_shared<Clock>();
  };

  static Clock& clock_of(Queue& queue) { return static_cast<ClockQueue&>(queue).clock(); }

  std::vector<double> slowness_;
  double drift_;
  KernelTable kernels_;
};

}  // namespace strata::test
