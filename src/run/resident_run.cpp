#include "run/resident_run.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "base/check.hpp"
#include "base/index.hpp"
#include "schedule/fixed_places.hpp"

namespace strata {
namespace {

/// So few bytes a GPU's driver copies at once.
constexpr std::int64_t kFew = std::int64_t{64} << 10;
/// Bytes of small blocks that a thread reads or writes at a time: less does not keep one busy that
/// had to be woken.
constexpr std::int64_t kTogether = std::int64_t{256} << 10;
/// Queues of each of several devices behind those for tasks: for urgent tasks, copies from other
/// devices, copies from and to the host.
constexpr int kMoreQueues = 4;

int lane_of(const PlanQueue& queue, int queues, int stride) {
  const int first = queue.device * stride;
  if (queue.role == QueueRole::compute) return first + queue.number;
  if (stride == queues) return first;  // a single device's
  switch (queue.role) {
    case QueueRole::urgent: return first + queues;
    case QueueRole::peer_in: return first + queues + 1;
    case QueueRole::copy_in: return first + queues + 2;
    default: return first + queues + 3;
  }
}

/// Blocks that were loaded and never change.
Residency constants_of(Residency end) {
  for (Residency::Node& node : end.devices)
    std::erase_if(node.blocks, [](const ResidentBlock& block) { return block.only_here; });
  return end;
}

}  // namespace

/// What is on its way to a store.
class ResidentRun::HomeComing {
 public:
  explicit HomeComing(MemoryStore& store) : store_(store) {}

  [[nodiscard]] MemoryStore& store() const noexcept { return store_; }
  /// Called for each part that a ring carries, …
  void expect() {
    const std::lock_guard lock(mutex_);
    ++missing_;
  }
  /// … and when it is there.
  void arrived(std::exception_ptr problem) {
    const std::lock_guard lock(mutex_);
    --missing_;
    if (problem && !failure_) failure_ = std::move(problem);
  }
  /// Blocks that follow each other, by a plain copy.
  void copy(std::span<const PlacedBlock> blocks, std::int64_t bytes, Queue& queue) {
    Plain& plain = plain_.emplace_back();
    plain.bytes.resize(at(bytes));
    for (const PlacedBlock& block : blocks)
      plain.blocks.emplace_back(block.id, block.data - blocks.front().data);
    queue.copy(plain.bytes.data(), blocks.front().data, bytes, CopyDirection::device_to_host);
  }
  /// When rings and queues were waited for.
  void end() {
    if (failure_) std::rethrow_exception(failure_);
    require(missing_ == 0, ErrorKind::device, "run", "{} parts of a family did not come home",
            missing_);
    for (const Plain& plain : plain_)
      for (const auto& [id, offset] : plain.blocks) store_.write(id, plain.bytes.data() + offset);
  }

 private:
  struct Plain {
    std::vector<std::byte> bytes;
    std::vector<std::pair<BlockId, std::int64_t>> blocks;
  };

  MemoryStore& store_;
  std::vector<Plain> plain_;
  std::mutex mutex_;  // of what follows
  std::exception_ptr failure_;
  std::int64_t missing_ = 0;
};

ResidentRun::ResidentRun(std::shared_ptr<const Schedule> schedule, const Machine& machine,
                         const Backend& backend, std::span<const Place> devices, int queues)
    : schedule_(std::move(schedule)),
      machine_(machine_of(machine, queues)),
      backend_(backend),
      places_(devices.begin(), devices.end()),
      queues_each_(queues),
      stride_(queues + (devices.size() > 1 ? kMoreQueues : 0)) {
  require(queues >= 1, ErrorKind::misuse, "run", "{} queues", queues);
  require(std::ssize(places_) == schedule_->devices, ErrorKind::misuse, "run",
          "a schedule for {} devices on {}", schedule_->devices, places_.size());
  first_.plan = make_plan({});
  const PlanLayout& layout = first_.plan->layout();
  for (const PlanQueue& queue : layout.queues) lanes_.push_back(lane_of(queue, queues, stride_));
  for (std::size_t d = 0; d < places_.size(); ++d) {
    memory_.push_back(places_[d].device->allocate(layout.devices[d].arena_bytes));
    for (int q = 0; q < stride_; ++q) {
      const bool high = q == queues || q == queues + 1;
      queues_.push_back(
          places_[d].device->make_queue(high ? QueuePriority::high : QueuePriority::normal));
    }
  }
}

ResidentRun::~ResidentRun() = default;

PlanOptions ResidentRun::plan_options(int devices, int queues) {
  PlanOptions options;
  options.copies_in_stream = devices == 1 && queues == 1;
  options.urgent_queue = devices > 1;
  return options;
}

Machine ResidentRun::machine_of(Machine machine, int queues) {
  for (DeviceModel& device : machine.devices) device.compute_queues = queues;
  return machine;
}

std::unique_ptr<const Plan> ResidentRun::make_plan(Residency start) const {
  return std::make_unique<const Plan>(schedule_, machine_, plan_options(devices(), queues_each_),
                                      std::move(start));
}

std::byte* ResidentRun::place_of(BlockId id, int device) const {
  const DeviceLayout& mine = layout(device);
  const std::int32_t number = mine.place_of[at(schedule_->blocks.index(id))];
  return number < 0 ? nullptr : memory_[at(device)].data() + mine.slots[at(number)].offset;
}

BlockView ResidentRun::view(BlockId id, int device) const {
  const BlockExtent x = schedule_->blocks.extent(id);
  return {
      place_of(id, device),         x.rows, x.cols, std::max<std::int64_t>(x.rows, 1), x.row, x.col,
      schedule_->blocks.element(id)};
}

bool ResidentRun::has_latest(BlockId id, int device) const {
  if (place_of(id, device) == nullptr) return false;
  const auto writer = writer_of_.find(id);
  if (writer != writer_of_.end()) return writer->second == device;
  for (int d = 0; d < device; ++d)
    if (place_of(id, d) != nullptr) return false;
  return true;
}

template <class Has>
std::vector<PlacedBlock> ResidentRun::blocks_of(int family, int device, const Has& has) const {
  std::vector<PlacedBlock> blocks;
  schedule_->blocks.for_each(family, [&](BlockId id) {
    if (has(id)) blocks.push_back({id, place_of(id, device)});
  });
  return blocks;
}

template <class Part>
void ResidentRun::for_parts(std::span<const PlacedBlock> blocks, std::int64_t most,
                            const Part& part) const {
  for (std::size_t first = 0; first < blocks.size();) {
    std::size_t end = first;
    std::int64_t bytes = 0;
    while (end < blocks.size()) {
      const std::int64_t more =
          blocks[end].data + schedule_->blocks.bytes(blocks[end].id) - blocks[first].data;
      if (end > first && more > most) break;
      bytes = more;
      ++end;
    }
    part(blocks.subspan(first, end - first), bytes);
    first = end;
  }
}

void ResidentRun::send_blocks(std::span<const PlacedBlock> blocks, MemoryStore& store,
                              PinnedRing& ring, Queue& queue) const {
  const std::int64_t slot = ring.shape().slot_bytes;
  for_parts(blocks, slot, [&](std::span<const PlacedBlock> some, std::int64_t bytes) {
    std::byte* first = some.front().data;
    if (bytes > slot) {
      if (const std::byte* home = store.lend(some.front().id))
        return ring.send(queue, first, {home, at(bytes)});
      std::vector<std::byte> buffer(at(bytes));
      store.read(some.front().id, buffer.data());
      return ring.send(queue, first, buffer);
    }
    const std::int64_t count = std::ssize(some);
    const std::int64_t pieces = std::min(count, bytes / kTogether + 1);
    ring.send(queue, first, bytes, pieces, [&](std::int64_t k, std::byte* to) {
      const std::size_t begin = at(count * k / pieces);
      for (const PlacedBlock& block : some.subspan(begin, at(count * (k + 1) / pieces) - begin))
        store.read(block.id, to + (block.data - first));
    });
  });
}

void ResidentRun::receive_blocks(std::span<const PlacedBlock> blocks, HomeComing& home,
                                 PinnedRing& ring, Queue& queue) const {
  const std::int64_t slot = ring.shape().slot_bytes;
  MemoryStore& store = home.store();
  const auto arrived = [&home](std::exception_ptr problem) { home.arrived(std::move(problem)); };
  for_parts(blocks, slot, [&](std::span<const PlacedBlock> some, std::int64_t bytes) {
    const BlockId id = some.front().id;
    const bool too_wide = bytes > slot && schedule_->blocks.column_bytes(id) > slot;
    if (bytes <= kFew || too_wide) return home.copy(some, bytes, queue);
    home.expect();
    const std::byte* first = some.front().data;
    if (bytes > slot)
      return ring.receive(queue, first, store, {id, 0, schedule_->blocks.extent(id).cols},
                          [&store, arrived, id](std::exception_ptr problem) {
                            if (!problem) store.commit(id);  // it is whole
                            arrived(std::move(problem));
                          });
    const std::int64_t count = std::ssize(some);
    const std::int64_t pieces = std::min(count, bytes / kTogether + 1);
    const auto take = [&store, all = std::vector<PlacedBlock>(some.begin(), some.end()), count,
                       pieces](std::int64_t k, const std::byte* from) {
      for (std::int64_t i = count * k / pieces; i < count * (k + 1) / pieces; ++i) {
        const PlacedBlock& block = all[at(i)];
        store.write(block.id, from + (block.data - all.front().data));
      }
    };
    ring.receive(queue, first, bytes, pieces, take, arrived);
  });
}

void ResidentRun::upload(int family, MemoryStore& store, PinnedRing& ring, int device) {
  const auto held = [&](BlockId id) { return place_of(id, device) != nullptr; };
  send_blocks(blocks_of(family, device, held), store, ring, queue(device));
}

void ResidentRun::download(int family, MemoryStore& store, PinnedRing& ring, int device) {
  HomeComing home(store);
  {
    const RingGuard until_all_is_home(ring);
    const auto here = [&](BlockId id) { return has_latest(id, device); };
    receive_blocks(blocks_of(family, device, here), home, ring, queue(device));
  }
  queue(device).synchronize();
  home.end();
}

std::int64_t ResidentRun::largest_bytes() const noexcept {
  std::int64_t most = 0;
  for (const Buffer& memory : memory_) most = std::max(most, memory.bytes());
  return most;
}

void ResidentRun::send(Queue& queue, std::byte* to, std::span<const std::byte> data,
                       PinnedRing& ring) {
  if (std::ssize(data) <= kFew)
    queue.copy(to, data.data(), std::ssize(data), CopyDirection::host_to_device);
  else
    ring.send(queue, to, data);
}

void ResidentRun::receive(const std::byte* from, std::span<std::byte> data, PinnedRing& ring) {
  if (std::ssize(data) <= kFew)
    queue().copy(data.data(), from, std::ssize(data), CopyDirection::device_to_host);
  else
    ring.receive(queue(), from, data);
}

void ResidentRun::finish(PinnedRing& ring) {
  ring.finish();
  queue().synchronize();
}

/// The plan from what the devices hold, compiled.
void ResidentRun::choose_program() {
  if (ran_ && !again_) {
    const Residency constants = constants_of(first_.plan->end());
    again_.emplace();
    if (!constants.empty()) again_->plan = make_plan(constants);
  }
  current_ = ran_ && again_->plan != nullptr ? &*again_ : &first_;
  if (current_->program) return;
  std::vector<std::byte*> arenas;
  for (Buffer& memory : memory_) arenas.push_back(memory.data());
  current_->program.emplace(*current_->plan, backend_.kernels(), arenas, lanes_);
}

void ResidentRun::load(const Program::Entry& entry, Queue& queue, const Homes& homes) const {
  const std::span<const PlacedBlock> blocks = current_->program->blocks(entry);
  if (!homes.load || !homes.load(entry.device, queue, blocks))
    send_blocks(blocks, *homes.store, homes.ring(entry.device), queue);
}

void ResidentRun::preload(int family, const Homes& homes) {
  choose_program();
  for (const Program::Entry& entry : current_->program->entries()) {
    if (entry.kind != StepKind::load || entry.first.family() != family) continue;
    load(entry, *queues_[at(entry.lane)], homes);
    preloaded_.insert(&entry);
  }
}

void ResidentRun::issue(IssuedProgram& issued, const Homes& homes, HomeComing& home) {
  issued.issue([&](const Program::Entry& entry, Queue& queue) {
    if (entry.kind == StepKind::load) {
      if (!preloaded_.contains(&entry)) load(entry, queue, homes);
    } else {
      receive_blocks(current_->program->blocks(entry), home, homes.ring(entry.device), queue);
    }
  });
  for (std::size_t q = 1; q < queues_.size(); ++q) queue().wait(queues_[q]->record());
}

double ResidentRun::run(const Homes& homes, Trace* trace) {
  require(trace == nullptr || devices() == 1, ErrorKind::misuse, "run",
          "spans of tasks on {} devices, whose clocks differ", devices());
  choose_program();
  // Kernels that wait for each other on several devices are to find room there at once: not where
  // one device has begun with a task of this run, and another one with that of another.
  static std::mutex shared_tasks;
  std::unique_lock<std::mutex> alone;
  if (current_->program->has_shared()) alone = std::unique_lock(shared_tasks);
  ran_ = false;  // until all is there
  std::vector<ProgramLane> lanes;
  for (std::size_t q = 0; q < queues_.size(); ++q)
    lanes.push_back({queues_[q].get(), static_cast<int>(q) / stride_});
  IssuedProgram issued(*current_->program, std::move(lanes),
                       trace != nullptr ? IssuedProgram::Times::both : IssuedProgram::Times::none);
  HomeComing home(*homes.store);
  Event end;
  try {
    issue(issued, homes, home);
    end = queue().record();
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    try {
      synchronize();
    } catch (...) {  // why it ended is told
    }
    for (int d = 0; d < devices(); ++d) homes.ring(d).finish();
    preloaded_.clear();
    std::rethrow_exception(why);
  }
  preloaded_.clear();
  for (int d = 0; d < devices(); ++d) homes.ring(d).finish();
  synchronize();
  home.end();
  ran_ = true;
  traffic_ = issued.traffic();
  note_writers();
  if (trace != nullptr) put_spans(issued, *trace);
  return end.seconds() - issued.began();
}

void ResidentRun::note_writers() {
  if (!writer_of_.empty()) return;
  const BlockTable& blocks = schedule_->blocks;
  const Residency& end = current_->plan->end();
  for (std::size_t d = 0; d < end.devices.size(); ++d) {
    for (const ResidentBlock& block : end.devices[d].blocks) {
      if (!block.only_here) continue;
      int family = 0;
      while (blocks.family(family).identity != block.identity) ++family;
      writer_of_[BlockId(family, block.row, block.col)] = static_cast<int>(d);
    }
  }
}

void ResidentRun::put_spans(const IssuedProgram& issued, Trace& trace) const {
  std::vector<std::uint16_t> queues;
  for (int q = 0; q < this->queues(); ++q) {
    queues.push_back(static_cast<std::uint16_t>(trace.queues.size()));
    trace.queues.push_back(
        {places_.front().device->description().name, "compute " + std::to_string(q), 0});
  }
  for (int f = 0; f < schedule_->blocks.families(); ++f)
    trace.families.push_back(schedule_->blocks.family(f).name);
  issued.put_spans(queues, trace);
}

void ResidentRun::synchronize() {
  std::exception_ptr failure;
  for (const std::unique_ptr<Queue>& each : queues_) {
    try {
      each->synchronize();
    } catch (...) {
      if (failure == nullptr) failure = std::current_exception();
    }
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

void ResidentRun::call_on(Queue& queue, const Operation& operation,
                          std::span<const BlockView> views, std::uint32_t variant) {
  Elements elements;
  for (const BlockView& view : views.first(static_cast<std::size_t>(operation.operands)))
    elements.push_back(view.element);
  kernel_of(operation, elements)(queue, {views, operation.operands}, {.variant = variant});
}

KernelFunction ResidentRun::kernel_of(const Operation& operation, const Elements& elements) const {
  const KernelFunction kernel = backend_.kernels().find(operation.name, elements);
  require(kernel != nullptr, ErrorKind::device, "run", "the backend has no kernel for {} in {}",
          operation.name, to_string(elements));
  return kernel;
}

}  // namespace strata
