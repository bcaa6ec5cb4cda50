#pragma once
// ResidentRun: a resident schedule on the devices that hold all of its blocks.
//
// Contract: the schedule is planned and compiled once (program.hpp), and then issued as often as it
// is run. A run loads what is stored, carries out the tasks, and stores what does not stay; stored
// families with an identity are loaded by the first run alone. What stays comes home when it is
// asked for: for factors that are used where they are. The devices outlive it. Not thread-safe.

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "run/issued_program.hpp"
#include "run/pinned_ring.hpp"
#include "run/program.hpp"
#include "run/resident_devices.hpp"
#include "schedule/plan.hpp"
#include "store/memory_store.hpp"
#include "strata/trace.hpp"

namespace strata {

/// Blocks that were loaded and never change, from what a plan leaves.
[[nodiscard]] Residency loaded_constants(Residency end);

/// simulate() of a resident schedule, of which `first` is the plan, where its constants are there:
/// they are loaded before the first run begins.
[[nodiscard]] double predicted_again(const Plan& first);

class ResidentRun {
 public:
  using Place = ResidentDevices::Place;

  /// With memory of its own on the devices, which `machine` describes; `queues` for tasks on each.
  /// Throws Error{memory} if they are not there or have no room.
  ResidentRun(std::shared_ptr<const Schedule> schedule, const Machine& machine,
              const Backend& backend, std::span<const Place> devices, int queues = 1);
  ResidentRun(std::shared_ptr<const Schedule> schedule, const Machine& machine,
              const Backend& backend, int index, Device& device, int queues = 1)
      : ResidentRun(std::move(schedule), machine, backend, std::array{Place{index, &device}},
                    queues) {}
  /// On devices that others use, too, in memory of its caller.
  struct Memory {
    std::vector<std::byte*> arenas;  ///< of each device, as its plan has them; all outlive it
    CallersPlaces callers;           ///< where placed blocks lie
    Residency start;                 ///< what the arenas hold, as an earlier run's constants()
  };
  ResidentRun(std::shared_ptr<const Schedule> schedule, const Machine& machine,
              std::shared_ptr<ResidentDevices> devices, Memory memory);
  ~ResidentRun();

  /// Where a run finds blocks, and brings them.
  struct Homes {
    MemoryStore* store = nullptr;  ///< several threads may call its sources at once
    /// The ring of each device, for memory that its kernels do not reach.
    std::function<PinnedRing&(int device)> ring{};
    /// Asked before blocks of a family are loaded to, or stored from, places that follow each
    /// other: whether the caller has put copies of them into the queue itself. What it receives by
    /// a ring is there when the run has ended.
    using Copies =
        std::function<bool(int device, Queue& queue, std::span<const PlacedBlock> blocks)>;
    Copies load{};
    Copies take{};
  };
  /// Begins the loads of a family that the next run will make, so that what the host does before it
  /// takes place meanwhile.
  void preload(int family, const Homes& homes);
  /// All tasks with their loads and stores; returns when they are done, and the seconds that passed
  /// on the first device since its first task began. Throws what a kernel or a source throws.
  /// `trace`, of one device, gets a span for each task.
  double run(const Homes& homes, Trace* trace = nullptr);
  /// The same without asking the devices for times, which takes some microseconds.
  void run_untimed(const Homes& homes);
  /// Writes back the blocks of a family that stays: by a plan that has no task. After a run.
  void bring_home(int family, const Homes& homes);
  /// The caller's places have changed (Memory::callers).
  void place_again();

  /// What the last run followed; before, what the first one will.
  [[nodiscard]] const Plan& plan() const noexcept { return *last_->plan; }
  /// Bytes that the last run put into queues. What devices that share a task write to each other is
  /// not counted.
  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }
  /// What was loaded by the first run, after it, and never changes.
  [[nodiscard]] Residency constants() const;

  [[nodiscard]] const std::shared_ptr<ResidentDevices>& devices() const noexcept {
    return devices_;
  }
  /// View of a block that the device holds, in memory of its own.
  [[nodiscard]] BlockView view(BlockId id, int device = 0) const;
  /// Bytes of the device that holds most.
  [[nodiscard]] std::int64_t largest_bytes() const noexcept;

  /// Numbers of the caller, in host memory, to memory of a device and back, of any size: begun.
  /// Through a ring of the device, which is finished before the queue is waited for.
  static void send(Queue& queue, std::byte* to, std::span<const std::byte> data, PinnedRing& ring);
  static void receive(Queue& queue, const std::byte* from, std::span<std::byte> data,
                      PinnedRing& ring);

 private:
  /// A plan, and what was made of it.
  struct Compiled {
    std::unique_ptr<const Plan> plan;
    std::optional<Program> program;  ///< from its first run on
  };
  class HomeComing;

  void send_blocks(std::span<const PlacedBlock> blocks, MemoryStore& store, PinnedRing& ring,
                   Queue& queue) const;
  void receive_blocks(std::span<const PlacedBlock> blocks, HomeComing& home, PinnedRing& ring,
                      Queue& queue) const;
  [[nodiscard]] std::unique_ptr<const Plan> make_plan(Residency start) const;
  void choose_program();
  void compile(Compiled& compiled) const;
  void load(const Program::Entry& entry, Queue& queue, const Homes& homes) const;
  void issue(IssuedProgram& issued, const Homes& homes, HomeComing& home);
  /// The last program; seconds as run() has them, if they are asked for.
  double carry_out(const Homes& homes, IssuedProgram::Times times, Trace* trace);
  void put_spans(const IssuedProgram& issued, Trace& trace) const;

  std::shared_ptr<const Schedule> schedule_;
  std::vector<Buffer> buffers_;               // of each device, where they are its own
  std::shared_ptr<ResidentDevices> devices_;  // whose queues are released before them
  Machine machine_;
  Memory memory_;
  Compiled first_;                 // from the start
  std::optional<Compiled> again_;  // where blocks stay that never change
  Compiled home_;                  // the last that brought a family home
  Compiled* current_ = &first_;    // of runs
  Compiled* last_ = &first_;
  bool ran_ = false;
  std::set<const Program::Entry*> preloaded_;
  Traffic traffic_;
};

}  // namespace strata
