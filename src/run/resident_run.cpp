#include "run/resident_run.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr std::int64_t kAlignment = 256;
/// So few bytes a GPU's driver copies at once.
constexpr std::int64_t kFew = std::int64_t{64} << 10;
/// Bytes of small blocks that a thread reads or writes at a time: less does not keep one busy that
/// had to be woken.
constexpr std::int64_t kTogether = std::int64_t{256} << 10;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Calls visit(task, its operands) for all tasks in their order.
template <class Visit>
void for_tasks(const Schedule& schedule, const Visit& visit) {
  TaskList list;
  for (std::int64_t step = 0; step < schedule.steps; ++step) {
    list.clear();
    schedule.emit(step, list);
    for (const Task& task : std::as_const(list).tasks())
      visit(step, task, std::as_const(list).operands(task));
  }
}

void require_sharers(const Schedule& schedule, const Task& task) {
  const int behind = task.device + task.sharers;
  require(task.sharers == 1 || (task.sharers > 1 && task.sharers <= kSharersMax &&
                                behind <= schedule.devices && task.calls == 1 && task.variant == 0),
          ErrorKind::misuse, "run", "a task of {} calls that {} devices share, from {} on, of {}",
          task.calls, task.sharers, task.device, schedule.devices);
}

/// By device and block, where it lies; -1: nowhere. A block that no task uses lies on the first.
std::vector<std::vector<std::int64_t>> offsets_of(const Schedule& schedule) {
  const BlockTable& blocks = schedule.blocks;
  const auto count = static_cast<std::size_t>(schedule.devices);
  const auto index_of = [&](BlockId id) { return static_cast<std::size_t>(blocks.index(id)); };
  const std::int64_t held = count == 1 ? 0 : -1;
  std::vector<std::vector<std::int64_t>> offset(
      count, std::vector<std::int64_t>(static_cast<std::size_t>(blocks.count()), held));
  if (count > 1) {
    for_tasks(schedule, [&](std::int64_t, const Task& task, std::span<const TaskOperand> operands) {
      require_sharers(schedule, task);
      for (std::size_t d = task.device; d < std::size_t{task.device} + task.sharers; ++d)
        for (const TaskOperand& operand : operands) offset[d][index_of(operand.id)] = 0;
    });
  }
  std::vector<std::int64_t> end(count, 0);
  for (int f = 0; f < blocks.families(); ++f) {
    blocks.for_each(f, [&](BlockId id) {
      const std::size_t k = index_of(id);
      const bool used = std::any_of(offset.begin(), offset.end(),
                                    [&](const auto& of_device) { return of_device[k] >= 0; });
      if (!used) offset.front()[k] = 0;
      for (std::size_t d = 0; d < count; ++d)
        if (offset[d][k] >= 0)
          offset[d][k] = std::exchange(end[d], end[d] + aligned(blocks.bytes(id)));
    });
  }
  return offset;
}

}  // namespace

std::int64_t ResidentRun::bytes_of(const BlockTable& blocks) {
  std::int64_t bytes = 0;
  for (int f = 0; f < blocks.families(); ++f)
    blocks.for_each(f, [&](BlockId id) { bytes += aligned(blocks.bytes(id)); });
  return std::max<std::int64_t>(bytes, kAlignment);
}

std::vector<std::int64_t> ResidentRun::bytes_of(const Schedule& schedule) {
  std::vector<std::int64_t> bytes;
  for (const std::vector<std::int64_t>& offset : offsets_of(schedule)) {
    bytes.push_back(kAlignment);
    for (int f = 0; f < schedule.blocks.families(); ++f)
      schedule.blocks.for_each(f, [&](BlockId id) {
        const std::int64_t first = offset[static_cast<std::size_t>(schedule.blocks.index(id))];
        if (first >= 0)
          bytes.back() = std::max(bytes.back(), first + aligned(schedule.blocks.bytes(id)));
      });
  }
  return bytes;
}

ResidentRun::ResidentRun(std::shared_ptr<const Schedule> schedule, const Backend& backend,
                         std::span<const Place> devices, int queues)
    : schedule_(std::move(schedule)),
      backend_(backend),
      places_(devices.begin(), devices.end()),
      queues_each_(queues),
      stride_(queues + (devices.size() > 1 ? 2 : 0)) {
  require(queues >= 1, ErrorKind::misuse, "run", "{} queues", queues);
  require(std::ssize(places_) == schedule_->devices, ErrorKind::misuse, "run",
          "a schedule for {} devices on {}", schedule_->devices, places_.size());
  offset_ = offsets_of(*schedule_);
  const std::vector<std::int64_t> bytes = bytes_of(*schedule_);
  for (std::size_t d = 0; d < places_.size(); ++d) {
    memory_.push_back(places_[d].device->allocate(bytes[d]));
    for (int q = 0; q < stride_; ++q)
      queues_.push_back(
          places_[d].device->make_queue(q < queues ? QueuePriority::normal : QueuePriority::high));
  }
}

ResidentRun::~ResidentRun() = default;

bool ResidentRun::holds(BlockId id, int device) const {
  return offset_[static_cast<std::size_t>(device)]
                [static_cast<std::size_t>(schedule_->blocks.index(id))] >= 0;
}

std::byte* ResidentRun::at(BlockId id, int device) const {
  const auto d = static_cast<std::size_t>(device);
  return memory_[d].data() + offset_[d][static_cast<std::size_t>(schedule_->blocks.index(id))];
}

BlockView ResidentRun::view(BlockId id, int device) const {
  const BlockExtent x = schedule_->blocks.extent(id);
  return {at(id, device),
          x.rows,
          x.cols,
          std::max<std::int64_t>(x.rows, 1),
          x.row,
          x.col,
          schedule_->blocks.element(id)};
}

bool ResidentRun::has_latest(BlockId id, int device) const {
  if (!holds(id, device)) return false;
  const int writer = tasks_ ? tasks_->writer_of(id) : -1;
  if (writer >= 0) return writer == device;
  for (int d = 0; d < device; ++d)
    if (holds(id, d)) return false;
  return true;
}

template <class Has, class Part>
void ResidentRun::for_parts(int family, int device, std::int64_t most, const Has& has,
                            const Part& part) const {
  const BlockTable& blocks = schedule_->blocks;
  std::vector<Placed> placed;
  std::byte* first = nullptr;
  std::int64_t bytes = 0;
  const auto flush = [&] {
    if (!placed.empty()) part(std::span<const Placed>(placed), first, bytes);
    placed.clear();
  };
  blocks.for_each(family, [&](BlockId id) {
    if (!has(id)) return;
    std::byte* here = at(id, device);
    const std::int64_t size = blocks.bytes(id);
    if (!placed.empty() && here + size - first > most) flush();
    if (placed.empty()) first = here;
    placed.push_back({id, here - first});
    bytes = here + size - first;
  });
  flush();
}

void ResidentRun::upload(int family, MemoryStore& store, PinnedRing& ring, int device) {
  const std::int64_t slot = ring.shape().slot_bytes;
  const auto held = [&](BlockId id) { return holds(id, device); };
  for_parts(family, device, slot, held,
            [&](std::span<const Placed> blocks, std::byte* first, std::int64_t bytes) {
              if (bytes > slot) {
                const auto size = static_cast<std::size_t>(bytes);
                if (const std::byte* home = store.lend(blocks.front().id))
                  return ring.send(queue(device), first, {home, size});
                std::vector<std::byte> buffer(size);
                store.read(blocks.front().id, buffer.data());
                return ring.send(queue(device), first, buffer);
              }
              const std::int64_t count = std::ssize(blocks);
              const std::int64_t pieces = std::min(count, bytes / kTogether + 1);
              ring.send(queue(device), first, bytes, pieces, [&](std::int64_t k, std::byte* to) {
                const auto begin = static_cast<std::size_t>(count * k / pieces);
                const auto end = static_cast<std::size_t>(count * (k + 1) / pieces);
                for (const Placed& block : blocks.subspan(begin, end - begin))
                  store.read(block.id, to + block.offset);
              });
            });
}

void ResidentRun::upload(BlockId id, std::int64_t first_byte, std::span<const std::byte> data,
                         PinnedRing& ring) {
  std::byte* to = at(id, 0) + first_byte;
  if (reaches(data.data(), std::ssize(data)))
    queue().copy(to, data.data(), std::ssize(data), CopyDirection::device_to_device);
  else
    send(to, data, ring);
}

void ResidentRun::share(BlockId id) {
  if (devices() == 1) return;
  const Event there = queue().record();
  for (int d = 1; d < devices(); ++d) {
    if (!holds(id, d) || !holds(id, 0)) continue;
    queue(d).wait(there);
    queue(d).copy(at(id, d), at(id, 0), schedule_->blocks.bytes(id),
                  CopyDirection::device_to_device);
    shared_bytes_ += schedule_->blocks.bytes(id);
  }
}

std::int64_t ResidentRun::largest_bytes() const noexcept {
  std::int64_t most = 0;
  for (const Buffer& memory : memory_) most = std::max(most, memory.bytes());
  return most;
}

void ResidentRun::send(std::byte* to, std::span<const std::byte> data, PinnedRing& ring) {
  if (std::ssize(data) <= kFew)
    queue().copy(to, data.data(), std::ssize(data), CopyDirection::host_to_device);
  else
    ring.send(queue(), to, data);
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

/// The operands of a task as they lie on a device, behind copies of what another one has made.
std::vector<BlockView> ResidentRun::bring_operands(ResidentTasks& tasks, const Task& task,
                                                   std::span<const TaskOperand> operands,
                                                   int device) const {
  std::vector<BlockView> views;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const BlockId id = operands[i].id;
    views.push_back(view(id, device));
    const int source = task.access_of(i) == Access::write ? -1 : tasks.source_of(id, device);
    if (source >= 0)
      tasks.add_copy(device * stride_ + queues_each_ + 1, id, source, view(id, source), device,
                     views.back());
  }
  return views;
}

void ResidentRun::prepare() {
  ResidentTasks tasks(schedule_->blocks, stride_, devices());
  struct Turn {
    std::int64_t step = -1;
    int queue = -1;
  };
  std::vector<Turn> turns(places_.size());  // of each device: its last step, and on which queue
  const auto queue_for = [&](std::int64_t step, const Task& task, int device) {
    Turn& mine = turns[static_cast<std::size_t>(device)];
    const bool urgent = task.urgent && devices() > 1;
    if (mine.step != step && !urgent) mine = {step, (mine.queue + 1) % queues()};
    return device * stride_ + (urgent ? queues() : mine.queue);
  };
  for_tasks(
      *schedule_, [&](std::int64_t step, const Task& task, std::span<const TaskOperand> operands) {
        const KernelFunction kernel =
            kernel_of(*task.operation, elements_of(schedule_->blocks, task, operands));
        if (task.sharers == 1) {
          const int number = queue_for(step, task, task.device);
          const std::vector<BlockView> views = bring_operands(tasks, task, operands, task.device);
          return tasks.add(number, task, operands, kernel, views);
        }
        require_sharers(*schedule_, task);
        std::vector<ResidentTasks::Sharer> sharers;
        for (int device = task.device; device < task.device + task.sharers; ++device)
          sharers.push_back({device, queue_for(step, task, device),
                             bring_operands(tasks, task, operands, device)});
        tasks.add_shared(sharers, task, operands, kernel);
      });
  tasks.finish();
  tasks_.emplace(std::move(tasks));
}

/// What an entry waits for, and, if it is one, the copy.
void ResidentRun::issue(const ResidentTasks::Entry& entry, std::vector<Event>& events) {
  Queue& mine = *queues_[static_cast<std::size_t>(entry.queue)];
  for (const ResidentTasks::Wait& wait : tasks_->waits(entry)) {
    Event& event = events[wait.event];
    if (wait.records) event = queues_[static_cast<std::size_t>(wait.queue)]->record();
    mine.wait(event);
  }
  if (entry.operation != nullptr || entry.views == 0) return;
  const BlockView* views = tasks_->calls(entry)[0];
  const std::int64_t bytes = schedule_->blocks.bytes(entry.first);
  mine.copy(views[0].data, views[1].data, bytes, CopyDirection::device_to_device);
  copied_bytes_ += bytes;
}

double ResidentRun::run(Trace* trace) {
  if (!tasks_) prepare();
  // Kernels that wait for each other on several devices are to find room there at once: not where
  // one device has begun with a task of this run, and another one with that of another.
  static std::mutex shared_tasks;
  std::unique_lock<std::mutex> alone;
  if (tasks_->has_shared()) alone = std::unique_lock(shared_tasks);
  require(trace == nullptr || devices() == 1, ErrorKind::misuse, "run",
          "spans of tasks on {} devices, whose clocks differ", devices());
  std::vector<Event> begin;
  for (int d = 0; d < devices(); ++d) {
    begin.push_back(queue(d).record());
    for (int q = 1; q < stride_; ++q)
      queues_[static_cast<std::size_t>(d * stride_ + q)]->wait(begin.back());
  }
  std::vector<std::pair<Event, Event>> times;  // only with a trace
  std::vector<Event> events(tasks_->events());
  copied_bytes_ = std::exchange(shared_bytes_, 0);
  for (const ResidentTasks::Entry& entry : tasks_->entries()) {
    issue(entry, events);
    if (entry.operation == nullptr) continue;
    Queue& mine = *queues_[static_cast<std::size_t>(entry.queue)];
    Event before = trace != nullptr ? mine.record() : Event();
    entry.kernel(mine, tasks_->calls(entry), {.variant = entry.variant});
    if (trace != nullptr) times.emplace_back(std::move(before), mine.record());
  }
  for (std::size_t q = 1; q < queues_.size(); ++q) queue().wait(queues_[q]->record());
  const Event end = queue().record();
  synchronize();
  const double zero = begin.front().seconds();
  if (trace != nullptr) put_spans(times, zero, *trace);
  return end.seconds() - zero;
}

void ResidentRun::put_spans(std::span<const std::pair<Event, Event>> times, double zero,
                            Trace& trace) const {
  for (int q = 0; q < queues(); ++q)
    trace.queues.push_back(
        {places_.front().device->description().name, "compute " + std::to_string(q), 0});
  for (int f = 0; f < schedule_->blocks.families(); ++f)
    trace.families.push_back(schedule_->blocks.family(f).name);
  for (std::size_t k = 0; k < times.size(); ++k) {
    const ResidentTasks::Entry& entry = tasks_->entries()[k];
    Span span;
    span.family = static_cast<std::uint8_t>(entry.first.family());
    span.operation = trace.operation_number(entry.operation->name);
    span.queue = static_cast<std::uint16_t>(entry.queue);
    span.row = static_cast<std::int32_t>(entry.first.row());
    span.col = static_cast<std::int32_t>(entry.first.col());
    span.calls = static_cast<std::uint32_t>(tasks_->calls(entry).count());
    span.flops = entry.work;
    span.begin = times[k].first.seconds() - zero;
    span.end = times[k].second.seconds() - zero;
    trace.add(span);
  }
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

void ResidentRun::download(int family, MemoryStore& store, PinnedRing& ring, int device) {
  const std::int64_t slot = ring.shape().slot_bytes;
  std::mutex mutex;  // of what follows
  std::exception_ptr failure;
  std::int64_t missing = 0;
  const auto arrived = [&](std::exception_ptr problem) {
    const std::lock_guard lock(mutex);
    --missing;
    if (problem && !failure) failure = std::move(problem);
  };
  {
    const RingGuard until_all_is_home(ring);
    for_parts(
        family, device, slot, [&](BlockId id) { return has_latest(id, device); },
        [&](std::span<const Placed> blocks, const std::byte* first, std::int64_t bytes) {
          const BlockId id = blocks.front().id;
          const bool too_wide = bytes > slot && schedule_->blocks.column_bytes(id) > slot;
          if (bytes <= kFew || too_wide)
            return download_plainly(blocks, first, bytes, store, device);
          {
            const std::lock_guard lock(mutex);
            ++missing;
          }
          if (bytes > slot)
            return ring.receive(queue(device), first, store,
                                {id, 0, schedule_->blocks.extent(id).cols},
                                [&store, &arrived, id](std::exception_ptr problem) {
                                  if (!problem) store.commit(id);  // it is whole
                                  arrived(std::move(problem));
                                });
          const std::int64_t count = std::ssize(blocks);
          const std::int64_t pieces = std::min(count, bytes / kTogether + 1);
          const auto take = [&store, all = std::vector<Placed>(blocks.begin(), blocks.end()), count,
                             pieces](std::int64_t k, const std::byte* from) {
            for (std::int64_t i = count * k / pieces; i < count * (k + 1) / pieces; ++i) {
              const Placed& block = all[static_cast<std::size_t>(i)];
              store.write(block.id, from + block.offset);
            }
          };
          ring.receive(queue(device), first, bytes, pieces, take, arrived);
        });
  }
  queue(device).synchronize();
  if (failure) std::rethrow_exception(failure);
  require(missing == 0, ErrorKind::device, "run", "{} parts of a family did not come home",
          missing);
}

void ResidentRun::download_plainly(std::span<const Placed> blocks, const std::byte* first,
                                   std::int64_t bytes, MemoryStore& store, int device) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
  queue(device).copy(buffer.data(), first, bytes, CopyDirection::device_to_host);
  queue(device).synchronize();
  for (const Placed& block : blocks) store.write(block.id, buffer.data() + block.offset);
}

}  // namespace strata
