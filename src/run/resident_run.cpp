#include "run/resident_run.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "base/check.hpp"
#include "base/index.hpp"

namespace strata {
namespace {

/// So few bytes a GPU's driver copies at once.
constexpr std::int64_t kFew = std::int64_t{64} << 10;
/// Bytes of small blocks that a thread reads or writes at a time: less does not keep one busy that
/// had to be woken.
constexpr std::int64_t kTogether = std::int64_t{256} << 10;

}  // namespace

Residency loaded_constants(Residency end) {
  for (Residency::Node& node : end.devices)
    std::erase_if(node.blocks, [](const ResidentBlock& block) { return block.only_here; });
  return end;
}

double predicted_again(const Plan& first) {
  Residency constants = loaded_constants(first.end());
  if (constants == first.start()) return simulate(first).seconds;
  return simulate(
             Plan(first.shared_schedule(), first.machine(), first.options(), std::move(constants)))
      .seconds;
}

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
    : ResidentRun(std::move(schedule), machine,
                  std::make_shared<ResidentDevices>(backend, devices, queues), {}) {
  const PlanLayout& layout = first_.plan->layout();
  for (int d = 0; d < devices_->count(); ++d) {
    buffers_.push_back(devices_->device(d).allocate(layout.devices[at(d)].arena_bytes));
    memory_.arenas.push_back(buffers_.back().data());
  }
}

ResidentRun::ResidentRun(std::shared_ptr<const Schedule> schedule, const Machine& machine,
                         std::shared_ptr<ResidentDevices> devices, Memory memory)
    : schedule_(std::move(schedule)),
      devices_(std::move(devices)),
      machine_(ResidentDevices::machine_of(machine, devices_->queues())),
      memory_(std::move(memory)) {
  require(devices_->count() == schedule_->devices, ErrorKind::misuse, "run",
          "a schedule for {} devices on {}", schedule_->devices, devices_->count());
  first_.plan = make_plan(memory_.start);
}

ResidentRun::~ResidentRun() = default;

std::unique_ptr<const Plan> ResidentRun::make_plan(Residency start) const {
  return std::make_unique<const Plan>(schedule_, machine_,
                                      ResidentDevices::plan_options(*schedule_, devices_->queues()),
                                      std::move(start));
}

BlockView ResidentRun::view(BlockId id, int device) const {
  const DeviceLayout& layout = current_->plan->layout().devices[at(device)];
  const SlotPlace& slot = layout.slots[at(layout.place_of[at(schedule_->blocks.index(id))])];
  const BlockExtent x = schedule_->blocks.extent(id);
  return {memory_.arenas[at(device)] + slot.offset,
          x.rows,
          x.cols,
          std::max<std::int64_t>(x.rows, 1),
          x.row,
          x.col,
          schedule_->blocks.element(id)};
}

void ResidentRun::send_blocks(std::span<const PlacedBlock> blocks, MemoryStore& store,
                              PinnedRing& ring, Queue& queue) const {
  const std::int64_t slot = ring.shape().slot_bytes;
  const auto bytes_of = [this](BlockId id) { return schedule_->blocks.bytes(id); };
  for_parts(blocks, slot, bytes_of, [&](std::span<const PlacedBlock> some, std::int64_t bytes) {
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
  const auto bytes_of = [this](BlockId id) { return schedule_->blocks.bytes(id); };
  for_parts(blocks, slot, bytes_of, [&](std::span<const PlacedBlock> some, std::int64_t bytes) {
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

std::int64_t ResidentRun::largest_bytes() const noexcept {
  std::int64_t most = 0;
  for (const Buffer& memory : buffers_) most = std::max(most, memory.bytes());
  return most;
}

void ResidentRun::send(Queue& queue, std::byte* to, std::span<const std::byte> data,
                       PinnedRing& ring) {
  if (std::ssize(data) <= kFew)
    queue.copy(to, data.data(), std::ssize(data), CopyDirection::host_to_device);
  else
    ring.send(queue, to, data);
}

void ResidentRun::receive(Queue& queue, const std::byte* from, std::span<std::byte> data,
                          PinnedRing& ring) {
  if (std::ssize(data) <= kFew)
    queue.copy(data.data(), from, std::ssize(data), CopyDirection::device_to_host);
  else
    ring.receive(queue, from, data);
}

Residency ResidentRun::constants() const { return loaded_constants(first_.plan->end()); }

/// The plan from what the devices hold, compiled.
void ResidentRun::choose_program() {
  if (ran_ && !again_) {
    again_.emplace();
    const Residency there = constants();
    if (!(there == first_.plan->start())) again_->plan = make_plan(there);
  }
  current_ = last_ = ran_ && again_->plan != nullptr ? &*again_ : &first_;
  if (!current_->program) compile(*current_);
}

void ResidentRun::compile(Compiled& compiled) const {
  compiled.program.emplace(*compiled.plan, devices_->backend().kernels(), memory_.arenas,
                           devices_->lanes_of(compiled.plan->layout()), memory_.callers);
}

void ResidentRun::place_again() {
  for (Compiled* each : {&first_, again_ ? &*again_ : nullptr})
    if (each != nullptr && each->program) each->program->place_again(memory_.callers);
}

void ResidentRun::bring_home(int family, const Homes& homes) {
  require(ran_, ErrorKind::misuse, "run", "there is nothing to bring home: nothing was run");
  auto schedule = std::make_shared<Schedule>(*schedule_);
  schedule->blocks.keep(family, schedule->blocks.family(family).identity, false);
  PlanOptions options = ResidentDevices::plan_options(*schedule, devices_->queues());
  options.first_step = schedule->steps;
  home_ = {
      std::make_unique<const Plan>(std::move(schedule), machine_, options, current_->plan->end()),
      {}};
  last_ = &home_;
  compile(home_);
  (void)carry_out(homes, IssuedProgram::Times::none, nullptr);
}

void ResidentRun::load(const Program::Entry& entry, Queue& queue, const Homes& homes) const {
  const std::span<const PlacedBlock> blocks = last_->program->blocks(entry);
  if (!homes.load || !homes.load(entry.device, queue, blocks))
    send_blocks(blocks, *homes.store, homes.ring(entry.device), queue);
}

void ResidentRun::preload(int family, const Homes& homes) {
  choose_program();
  const std::vector<ProgramLane> lanes = devices_->lanes();
  for (const Program::Entry& entry : current_->program->entries()) {
    if (entry.kind != StepKind::load || entry.first.family() != family) continue;
    load(entry, *lanes[at(entry.lane)].queue, homes);
    preloaded_.insert(&entry);
  }
}

void ResidentRun::issue(IssuedProgram& issued, const Homes& homes, HomeComing& home) {
  issued.issue([&](const Program::Entry& entry, Queue& queue) {
    if (entry.kind == StepKind::load) {
      if (!preloaded_.contains(&entry)) load(entry, queue, homes);
      return;
    }
    const std::span<const PlacedBlock> blocks = last_->program->blocks(entry);
    if (!homes.take || !homes.take(entry.device, queue, blocks))
      receive_blocks(blocks, home, homes.ring(entry.device), queue);
  });
  devices_->join();
}

double ResidentRun::run(const Homes& homes, Trace* trace) {
  require(trace == nullptr || devices_->count() == 1, ErrorKind::misuse, "run",
          "spans of tasks on {} devices, whose clocks differ", devices_->count());
  choose_program();
  ran_ = false;  // until all is there
  const double seconds = carry_out(
      homes, trace != nullptr ? IssuedProgram::Times::both : IssuedProgram::Times::begin, trace);
  ran_ = true;
  return seconds;
}

void ResidentRun::run_untimed(const Homes& homes) {
  choose_program();
  ran_ = false;
  (void)carry_out(homes, IssuedProgram::Times::none, nullptr);
  ran_ = true;
}

double ResidentRun::carry_out(const Homes& homes, IssuedProgram::Times times, Trace* trace) {
  // Kernels that wait for each other on several devices are to find room there at once: not where
  // one device has begun with a task of this run, and another one with that of another.
  static std::mutex shared_tasks;
  std::unique_lock<std::mutex> alone;
  if (last_->program->has_shared()) alone = std::unique_lock(shared_tasks);
  const bool timed = times != IssuedProgram::Times::none;
  IssuedProgram issued(*last_->program, devices_->lanes(), times);
  HomeComing home(*homes.store);
  Event end;
  try {
    issue(issued, homes, home);
    if (timed) end = devices_->queue().record();
  } catch (...) {
    const std::exception_ptr why = std::current_exception();
    try {
      devices_->synchronize();
    } catch (...) {  // why it ended is told
    }
    for (int d = 0; d < devices_->count(); ++d) homes.ring(d).finish();
    preloaded_.clear();
    std::rethrow_exception(why);
  }
  preloaded_.clear();
  for (int d = 0; d < devices_->count(); ++d) homes.ring(d).finish();
  devices_->synchronize();
  home.end();
  traffic_ = issued.traffic();
  if (trace != nullptr) put_spans(issued, *trace);
  return timed ? end.seconds() - issued.began() : 0;
}

void ResidentRun::put_spans(const IssuedProgram& issued, Trace& trace) const {
  std::vector<std::uint16_t> queues;
  for (int q = 0; q < devices_->queues(); ++q) {
    queues.push_back(static_cast<std::uint16_t>(trace.queues.size()));
    trace.queues.push_back(
        {devices_->device(0).description().name, "compute " + std::to_string(q), 0});
  }
  for (int f = 0; f < schedule_->blocks.families(); ++f)
    trace.families.push_back(schedule_->blocks.family(f).name);
  issued.put_spans(queues, trace);
}

}  // namespace strata
