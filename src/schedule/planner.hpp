#pragma once
// The planner: makes the steps of a plan. See plan.hpp for the contract and the method.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "schedule/block_directory.hpp"
#include "schedule/device_slots.hpp"
#include "schedule/lookahead.hpp"
#include "schedule/machine_model.hpp"
#include "schedule/own_places.hpp"
#include "schedule/plan.hpp"

namespace strata {

class PlanReader::Planner {
 public:
  explicit Planner(const Plan& plan);

  bool next(PlanWindow& window);
  [[nodiscard]] const PlanTotals& totals() const noexcept { return totals_; }
  /// The blocks that the plan leaves on the devices, once it has ended.
  [[nodiscard]] Residency residency() const;

 private:
  /// Whether a store is the last of a block's values.
  enum class Value : std::uint8_t { last, may_change };

  DeviceSlots& slots(int device) { return slots_[at(device)]; }
  [[nodiscard]] const DeviceLayout& device_of(int device) const {
    return layout_.devices[at(device)];
  }

  /// Whether a block rests in storage, and whether it comes from there by way of host memory.
  [[nodiscard]] bool in_storage(BlockId id) const {
    return storage_ && blocks_.family(id.family()).in_storage;
  }
  [[nodiscard]] bool by_host(BlockId id) const { return layout_.host >= 0 && in_storage(id); }
  [[nodiscard]] bool is_on_host(std::int64_t block) const {
    return layout_.host >= 0 && directory_.has(block, layout_.host);
  }
  /// Whether a load finds the latest value of a block: in a slot of host memory, or where it rests.
  [[nodiscard]] bool can_be_loaded(std::int64_t block) const {
    return directory_.is_backed(block) || is_on_host(block);
  }

  void set_backing_copies();
  void take_over_residents();
  void take_over_placed();

  // ---- a task (planner.cpp)
  void plan_task(const Lookahead::Entry& entry);
  void plan_shared(const Lookahead::Entry& entry);
  void bring_operands(const Lookahead::Entry& entry, int device);
  void finish_uses(const Lookahead::Entry& entry);
  [[nodiscard]] bool leaves(const BlockUse& use) const;
  void let_go(int device, int number);
  int fetch(int device, const BlockUse& use, bool value_needed);
  int make_room(int device, BlockId id);
  [[nodiscard]] int victim_on_device(int device, std::int32_t size_class);
  [[nodiscard]] int victim_on_host(std::int32_t size_class);
  void leave(int device, int number);
  [[nodiscard]] bool moves(int device, int number);
  [[nodiscard]] bool ends_here(int device, int number, const BlockUse& use);
  [[nodiscard]] int peer_source(int device, BlockId id, std::int64_t block);
  void send_home(BlockId id, std::int64_t block);
  void take_ownership(int device, std::int64_t block);
  void discard(std::int64_t block);
  void flush();
  void note_waste(int device, int number, std::int64_t bytes, int sign);

  // ---- between storage and the devices (planner_host.cpp)
  [[nodiscard]] int bring_to_host(BlockId id, std::int64_t block);
  [[nodiscard]] int place_on_host(BlockId id, std::int64_t block);
  void load_from_host(int device, BlockId id, int number);
  void store_on_host(int device, int number, Value value);
  void write(int number, Value value) { store(layout_.host, number, value); }
  void note_next_use(std::int64_t block, std::int64_t position);
  void retain(int device, int number, bool retained);
  [[nodiscard]] bool is_retained(std::int64_t block) const;
  void flush_host();

  // ---- steps (planner_steps.cpp)
  [[nodiscard]] int copy_queue(int device, int copy) const;
  [[nodiscard]] std::size_t loading_queues() const;
  [[nodiscard]] std::uint64_t& home_load(std::int64_t block, int queue);
  void load(int device, BlockId id, int number);
  void copy_from_peer(int device, BlockId id, int number, int source);
  void store(int device, int number, Value value = Value::may_change);
  void compute(const Lookahead::Entry& entry);
  void compute_shared(const Lookahead::Entry& entry, std::span<const std::vector<int>> numbers);
  Step& begin_task(const Lookahead::Entry& entry, int queue, std::span<const int> numbers);
  [[nodiscard]] double ready_for(const Lookahead::Entry& entry, int device,
                                 std::span<const int> numbers);
  void wait_for_operands(const Step& step, const Lookahead::Entry& entry,
                         std::span<const int> numbers);
  void note_uses(const Step& step, const Lookahead::Entry& entry, std::span<const int> numbers,
                 double end);
  [[nodiscard]] int choose_queue(const Task& task, int device, double ready, const Slot& out);
  [[nodiscard]] int least_busy_queue(int device) const;
  Step& begin_step(StepKind kind, int queue);
  Step& begin_copy(StepKind kind, int queue, BlockId id, int number);
  Step& begin_copy(StepKind kind, int queue, BlockId id, int number, int source, int from);
  /// The queues that may read slots of a device: its own; of host memory, all.
  [[nodiscard]] std::pair<int, int> readers_of(int device) const;
  void finish_step(Step& step) const;
  void add_wait(const Step& step, Wait wait);
  void wait_for_uses(const Step& step, int device, int number);
  void wrote(int device, int number, const Step& step);
  /// The last step of a queue of a device that reads a slot since it was written; 0: none.
  [[nodiscard]] std::uint64_t& reader(int device, int number, int queue);
  [[nodiscard]] std::uint64_t& peer_reader(int device, int number, int by);
  double advance(int queue, double earliest, double seconds);

  template <class I>
  static constexpr std::size_t at(I i) {
    return static_cast<std::size_t>(i);
  }

  const Schedule& schedule_;
  const BlockTable& blocks_;
  const Machine& machine_;
  const PlanLayout& layout_;
  const Residency& start_;
  PlanOptions options_;
  Lookahead ahead_;
  KernelClock kernels_;
  BlockDirectory directory_;
  PlaceSets retainers_;  // devices that ask to retain a block, where host memory does it, too
  std::vector<DeviceSlots> slots_;       // by device
  std::vector<Stays> stays_;             // by device, of blocks with places of their own
  std::vector<double> clock_;            // by queue
  std::vector<std::uint64_t> sequence_;  // by queue: steps so far
  std::vector<std::uint64_t> known_;  // by queue and queue: what the first has already waited for
  std::vector<std::uint64_t> home_loads_;            // by block and loading queue: the last load
  std::vector<std::vector<std::uint64_t>> readers_;  // by device: by slot and queue of the device
  std::vector<std::vector<std::uint64_t>> peers_;    // by device: by slot and device
  std::vector<int> number_;                // of the task being planned: the slot of each use
  std::vector<int> turns_;                 // of a resident schedule, by device: tasks so far
  const StorageModel* storage_ = nullptr;  // where families in storage rest
  std::vector<std::int64_t> next_use_;     // by block, on any device; with host memory as a place
  int stream_ = 0;                         // the current task's queue, if its copies go through it
  std::int64_t waste_ = 0;
  bool has_peers_ = false;
  PlanTotals totals_;
  PlanWindow* window_ = nullptr;
  bool flushed_ = false;
};

}  // namespace strata
