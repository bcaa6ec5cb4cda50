#pragma once
// ResidentRun: a resident schedule on the devices that hold all of its blocks.
//
// Contract: the schedule is planned and compiled once (program.hpp), and then issued as often as it
// is run. A run loads what is stored, carries out the tasks, and stores what does not stay; stored
// families with an identity are loaded by the first run alone. What stays comes home when it is
// asked for: for factors that are used where they are. A single device has queues for tasks alone,
// and its copies go through the first; several, of one backend, have also one for urgent tasks and
// some for copies. The devices outlive it. Not thread-safe.

#include <array>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "kernels/backend/backend.hpp"
#include "run/issued_program.hpp"
#include "run/pinned_ring.hpp"
#include "run/program.hpp"
#include "schedule/plan.hpp"
#include "store/memory_store.hpp"
#include "strata/trace.hpp"

namespace strata {

class ResidentRun {
 public:
  /// A device, and its number among those of the backend.
  struct Place {
    int index;
    Device* device;
  };

  /// `queues` for tasks on each of the schedule's devices, which `machine` describes. Throws
  /// Error{memory} if they are not there or have no room.
  ResidentRun(std::shared_ptr<const Schedule> schedule, const Machine& machine,
              const Backend& backend, std::span<const Place> devices, int queues = 1);
  ResidentRun(std::shared_ptr<const Schedule> schedule, const Machine& machine,
              const Backend& backend, int index, Device& device, int queues = 1)
      : ResidentRun(std::move(schedule), machine, backend, std::array{Place{index, &device}},
                    queues) {}
  ~ResidentRun();

  /// Where a run finds blocks, and brings them.
  struct Homes {
    MemoryStore* store = nullptr;  ///< several threads may call its sources at once
    /// The ring of each device, for memory that its kernels do not reach.
    std::function<PinnedRing&(int device)> ring{};
    /// Asked before blocks of a family are loaded to places that follow each other: whether the
    /// caller has put copies of them into the queue itself.
    std::function<bool(int device, Queue& queue, std::span<const PlacedBlock> blocks)> load{};
  };
  /// Begins the loads of a family that the next run will make, so that what the host does before it
  /// takes place meanwhile.
  void preload(int family, const Homes& homes);
  /// All tasks with their loads and stores; returns when they are done, and the seconds that passed
  /// on the first device since its first task began. Throws what a kernel or a source throws.
  /// `trace`, of one device, gets a span for each task.
  double run(const Homes& homes, Trace* trace = nullptr);
  /// What its plans go by: the copies of a single queue go through it.
  [[nodiscard]] static PlanOptions plan_options(int devices, int queues);
  [[nodiscard]] static Machine machine_of(Machine machine, int queues);
  /// What the last run followed; before, what the first one will.
  [[nodiscard]] const Plan& plan() const noexcept { return *current_->plan; }
  /// Bytes that the last run put into queues. What devices that share a task write to each other is
  /// not counted.
  [[nodiscard]] const Traffic& traffic() const noexcept { return traffic_; }

  // What follows concerns the first device unless another one is named.

  /// Blocks of a family, of those that the device holds ← what is at home, or comes from its
  /// source, as of a run. Through `ring`, one of this device that outlives what was begun: when the
  /// queue was waited for.
  void upload(int family, MemoryStore& store, PinnedRing& ring, int device = 0);
  /// Numbers of the caller, in host memory, to memory of the device and back: begun; done when
  /// finish() has returned. Through `ring`, as above.
  void send(std::byte* to, std::span<const std::byte> data, PinnedRing& ring) {
    send(queue(), to, data, ring);
  }
  static void send(Queue& queue, std::byte* to, std::span<const std::byte> data, PinnedRing& ring);
  void receive(const std::byte* from, std::span<std::byte> data, PinnedRing& ring);
  /// Waits for what was begun; throws what failed.
  void finish(PinnedRing& ring);
  /// Writes back the blocks of a family that the device has made last, or that no device makes and
  /// it is the first to hold. They go through `ring`, by several threads that may write different
  /// blocks, or columns of one, at once.
  void download(int family, MemoryStore& store, PinnedRing& ring, int device = 0);

  /// Calls of a kernel behind what was begun before; returns when they have been put into the
  /// queue. `views` are views of blocks, or of other memory of the device: the operands of each
  /// call, one call after the other.
  void call(const Operation& operation, std::span<const BlockView> views,
            std::uint32_t variant = 0) {
    call_on(queue(), operation, views, variant);
  }
  void call(const Operation& operation, std::initializer_list<BlockView> views,
            std::uint32_t variant = 0) {
    call_on(queue(), operation, std::span<const BlockView>(views.begin(), views.size()), variant);
  }
  /// The same on any of its queues.
  void call_on(Queue& queue, const Operation& operation, std::span<const BlockView> views,
               std::uint32_t variant);
  /// Whether the device's kernels reach host or device memory of the caller as it is.
  [[nodiscard]] bool reaches(const void* first, std::int64_t bytes) const {
    return backend_.reaches(places_.front().index, first, bytes);
  }
  /// View of a block that the device holds.
  [[nodiscard]] BlockView view(BlockId id, int device = 0) const;
  /// Number `q` of a device's; the first one is that on which all but run() takes place.
  [[nodiscard]] Queue& queue(int device = 0, int q = 0) noexcept {
    return *queues_[static_cast<std::size_t>(device * stride_ + q)];
  }
  /// How many queues each device has for tasks.
  [[nodiscard]] int queues() const noexcept { return queues_each_; }
  [[nodiscard]] int devices() const noexcept { return static_cast<int>(places_.size()); }
  /// Bytes of the device that holds most.
  [[nodiscard]] std::int64_t largest_bytes() const noexcept;

 private:
  /// A plan, and what was made of it.
  struct Compiled {
    std::unique_ptr<const Plan> plan;
    std::optional<Program> program;  ///< from its first run on
  };
  class HomeComing;

  [[nodiscard]] const DeviceLayout& layout(int device) const {
    return current_->plan->layout().devices[static_cast<std::size_t>(device)];
  }
  /// Null where the device does not hold it.
  [[nodiscard]] std::byte* place_of(BlockId id, int device) const;
  /// Whether the device has the value of a block that goes home.
  [[nodiscard]] bool has_latest(BlockId id, int device) const;
  template <class Has>
  [[nodiscard]] std::vector<PlacedBlock> blocks_of(int family, int device, const Has& has) const;
  void send_blocks(std::span<const PlacedBlock> blocks, MemoryStore& store, PinnedRing& ring,
                   Queue& queue) const;
  void receive_blocks(std::span<const PlacedBlock> blocks, HomeComing& home, PinnedRing& ring,
                      Queue& queue) const;
  /// Calls part(blocks, bytes from the first one's beginning to the last one's end) with at most
  /// `most` bytes of many blocks that follow each other, or one.
  template <class Part>
  void for_parts(std::span<const PlacedBlock> blocks, std::int64_t most, const Part& part) const;
  /// Throws Error{device} if there is none.
  [[nodiscard]] KernelFunction kernel_of(const Operation& operation,
                                         const Elements& elements) const;
  [[nodiscard]] std::unique_ptr<const Plan> make_plan(Residency start) const;
  void choose_program();
  void note_writers();
  void load(const Program::Entry& entry, Queue& queue, const Homes& homes) const;
  void issue(IssuedProgram& issued, const Homes& homes, HomeComing& home);
  void put_spans(const IssuedProgram& issued, Trace& trace) const;
  /// Waits for all queues; throws the first failure.
  void synchronize();

  std::shared_ptr<const Schedule> schedule_;
  Machine machine_;
  const Backend& backend_;
  std::vector<Place> places_;  // by device
  int queues_each_;
  int stride_;                                  // queues of each device: those for tasks come first
  std::vector<int> lanes_;                      // by queue of the plan: its number among these
  std::vector<Buffer> memory_;                  // of each device
  std::vector<std::unique_ptr<Queue>> queues_;  // device by device
  Compiled first_;                              // from empty devices
  std::optional<Compiled> again_;               // where blocks stay that never change
  Compiled* current_ = &first_;
  std::map<BlockId, int> writer_of_;  // of what stays: the device that made it last
  bool ran_ = false;
  std::set<const Program::Entry*> preloaded_;
  Traffic traffic_;
};

}  // namespace strata
