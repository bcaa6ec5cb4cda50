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

}  // namespace

std::int64_t ResidentRun::bytes_of(const BlockTable& blocks) {
  std::int64_t bytes = 0;
  for (int f = 0; f < blocks.families(); ++f)
    blocks.for_each(f, [&](BlockId id) { bytes += aligned(blocks.bytes(id)); });
  return std::max<std::int64_t>(bytes, kAlignment);
}

ResidentRun::ResidentRun(std::shared_ptr<const Schedule> schedule, const Backend& backend,
                         int index, Device& device, int queues)
    : schedule_(std::move(schedule)),
      backend_(backend),
      index_(index),
      name_(device.description().name) {
  require(queues >= 1, ErrorKind::misuse, "run", "{} queues", queues);
  const BlockTable& blocks = schedule_->blocks;
  std::int64_t bytes = 0;
  for (int f = 0; f < blocks.families(); ++f) {
    blocks.for_each(f, [&](BlockId id) {
      place_.push_back(bytes);
      bytes += aligned(blocks.bytes(id));
    });
  }
  memory_ = device.allocate(bytes_of(blocks));
  for (int q = 0; q < queues; ++q) queues_.push_back(device.make_queue(QueuePriority::normal));
}

ResidentRun::~ResidentRun() = default;

std::byte* ResidentRun::at(BlockId id) const {
  return memory_.data() + place_[static_cast<std::size_t>(schedule_->blocks.index(id))];
}

BlockView ResidentRun::view(BlockId id) const {
  const BlockExtent x = schedule_->blocks.extent(id);
  return {at(id),
          x.rows,
          x.cols,
          std::max<std::int64_t>(x.rows, 1),
          x.row,
          x.col,
          schedule_->blocks.element(id)};
}

template <class Part>
void ResidentRun::for_parts(int family, std::int64_t most, const Part& part) const {
  const BlockTable& blocks = schedule_->blocks;
  std::vector<Placed> placed;
  std::byte* first = nullptr;
  std::int64_t bytes = 0;
  const auto flush = [&] {
    if (!placed.empty()) part(std::span<const Placed>(placed), first, bytes);
    placed.clear();
  };
  blocks.for_each(family, [&](BlockId id) {
    std::byte* here = at(id);
    const std::int64_t size = blocks.bytes(id);
    if (!placed.empty() && here + size - first > most) flush();
    if (placed.empty()) first = here;
    placed.push_back({id, here - first});
    bytes = here + size - first;
  });
  flush();
}

void ResidentRun::upload(int family, MemoryStore& store, PinnedRing& ring) {
  const std::int64_t slot = ring.shape().slot_bytes;
  for_parts(family, slot,
            [&](std::span<const Placed> blocks, std::byte* first, std::int64_t bytes) {
              if (bytes > slot) {
                std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
                store.read(blocks.front().id, buffer.data());
                return ring.send(queue(), first, buffer);
              }
              const std::int64_t count = std::ssize(blocks);
              const std::int64_t pieces = std::min(count, bytes / kTogether + 1);
              ring.send(queue(), first, bytes, pieces, [&](std::int64_t k, std::byte* to) {
                const auto begin = static_cast<std::size_t>(count * k / pieces);
                const auto end = static_cast<std::size_t>(count * (k + 1) / pieces);
                for (const Placed& block : blocks.subspan(begin, end - begin))
                  store.read(block.id, to + block.offset);
              });
            });
}

void ResidentRun::upload(BlockId id, std::int64_t first_byte, std::span<const std::byte> data,
                         PinnedRing& ring) {
  std::byte* to = at(id) + first_byte;
  if (reaches(data.data(), std::ssize(data)))
    queue().copy(to, data.data(), std::ssize(data), CopyDirection::device_to_device);
  else
    send(to, data, ring);
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

void ResidentRun::prepare() {
  ResidentTasks tasks(schedule_->blocks, queues());
  for (std::int64_t step = 0; step < schedule_->steps; ++step) {
    TaskList list;
    schedule_->emit(step, list);
    for (const Task& task : std::as_const(list).tasks()) {
      const auto operands = std::as_const(list).operands(task);
      const KernelFunction kernel =
          kernel_of(*task.operation, elements_of(schedule_->blocks, task, operands));
      std::vector<BlockView> views;
      for (const TaskOperand& operand : operands) views.push_back(view(operand.id));
      tasks.add(static_cast<int>(step % queues()), task, operands, kernel, views);
    }
  }
  tasks.finish();
  tasks_.emplace(std::move(tasks));
}

double ResidentRun::run(Trace* trace) {
  if (!tasks_) prepare();
  const Event begin = queue().record();
  for (std::size_t q = 1; q < queues_.size(); ++q) queues_[q]->wait(begin);
  std::vector<std::pair<Event, Event>> times;  // only with a trace
  std::vector<Event> events(tasks_->events());
  for (const ResidentTasks::Entry& entry : tasks_->entries()) {
    Queue& mine = *queues_[static_cast<std::size_t>(entry.queue)];
    for (const ResidentTasks::Wait& wait : tasks_->waits(entry)) {
      Event& event = events[wait.event];
      if (wait.records) event = queues_[static_cast<std::size_t>(wait.queue)]->record();
      mine.wait(event);
    }
    Event before = trace != nullptr ? mine.record() : Event();
    entry.kernel(mine, tasks_->calls(entry), {.variant = entry.variant});
    if (trace != nullptr) times.emplace_back(std::move(before), mine.record());
  }
  for (std::size_t q = 1; q < queues_.size(); ++q) queue().wait(queues_[q]->record());
  const Event end = queue().record();
  synchronize();
  const double zero = begin.seconds();
  if (trace != nullptr) put_spans(times, zero, *trace);
  return end.seconds() - zero;
}

void ResidentRun::put_spans(std::span<const std::pair<Event, Event>> times, double zero,
                            Trace& trace) const {
  for (int q = 0; q < queues(); ++q)
    trace.queues.push_back({name_, "compute " + std::to_string(q), 0});
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

void ResidentRun::call(const Operation& operation, std::span<const BlockView> views,
                       std::uint32_t variant) {
  Elements elements;
  for (const BlockView& view : views.first(static_cast<std::size_t>(operation.operands)))
    elements.push_back(view.element);
  kernel_of(operation, elements)(queue(), {views, operation.operands}, {.variant = variant});
}

KernelFunction ResidentRun::kernel_of(const Operation& operation, const Elements& elements) const {
  const KernelFunction kernel = backend_.kernels().find(operation.name, elements);
  require(kernel != nullptr, ErrorKind::device, "run", "the backend has no kernel for {} in {}",
          operation.name, to_string(elements));
  return kernel;
}

void ResidentRun::download(int family, MemoryStore& store, PinnedRing& ring) {
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
    for_parts(family, slot,
              [&](std::span<const Placed> blocks, const std::byte* first, std::int64_t bytes) {
                const BlockId id = blocks.front().id;
                const bool too_wide = bytes > slot && schedule_->blocks.column_bytes(id) > slot;
                if (bytes <= kFew || too_wide) return download_plainly(blocks, first, bytes, store);
                {
                  const std::lock_guard lock(mutex);
                  ++missing;
                }
                if (bytes > slot)
                  return ring.receive(queue(), first, store,
                                      {id, 0, schedule_->blocks.extent(id).cols},
                                      [&store, &arrived, id](std::exception_ptr problem) {
                                        if (!problem) store.commit(id);  // it is whole
                                        arrived(std::move(problem));
                                      });
                const std::int64_t count = std::ssize(blocks);
                const std::int64_t pieces = std::min(count, bytes / kTogether + 1);
                const auto take = [&store, all = std::vector<Placed>(blocks.begin(), blocks.end()),
                                   count, pieces](std::int64_t k, const std::byte* from) {
                  for (std::int64_t i = count * k / pieces; i < count * (k + 1) / pieces; ++i) {
                    const Placed& block = all[static_cast<std::size_t>(i)];
                    store.write(block.id, from + block.offset);
                  }
                };
                ring.receive(queue(), first, bytes, pieces, take, arrived);
              });
  }
  queue().synchronize();
  if (failure) std::rethrow_exception(failure);
  require(missing == 0, ErrorKind::device, "run", "{} parts of a family did not come home",
          missing);
}

void ResidentRun::download_plainly(std::span<const Placed> blocks, const std::byte* first,
                                   std::int64_t bytes, MemoryStore& store) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(bytes));
  queue().copy(buffer.data(), first, bytes, CopyDirection::device_to_host);
  queue().synchronize();
  for (const Placed& block : blocks) store.write(block.id, buffer.data() + block.offset);
}

}  // namespace strata
