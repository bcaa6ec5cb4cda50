#include "run/resident_run.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.hpp"

namespace strata {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Who waits for whom where steps take turns on several queues.
class QueueOrder {
 public:
  QueueOrder(std::span<const std::unique_ptr<Queue>> queues, const BlockTable& blocks)
      : queues_(queues), blocks_(blocks), issued_(queues.size(), 0), recorded_(queues.size()) {
    if (queues.size() == 1) return;
    std::int64_t count = 0;
    for (int f = 0; f < blocks.families(); ++f) count += blocks.count(f);
    uses_.resize(static_cast<std::size_t>(count));
    seen_.assign(queues.size(), std::vector<std::int64_t>(queues.size(), 0));
  }

  /// Before the next task of queue `q`.
  void wait_for_operands(std::size_t q, const Task& task, std::span<const TaskOperand> operands) {
    if (queues_.size() == 1) return;
    const Turn turn{q, ++issued_[q]};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      Uses& uses = uses_[static_cast<std::size_t>(blocks_.index(operands[i].id))];
      wait_for(q, uses.writer);
      if (task.access_of(i) == Access::read) {
        readers_.push_back({turn, uses.reader});
        uses.reader = std::ssize(readers_) - 1;
        continue;
      }
      for (std::int64_t r = uses.reader; r >= 0; r = readers_[static_cast<std::size_t>(r)].next)
        wait_for(q, readers_[static_cast<std::size_t>(r)].turn);
      uses = {turn, -1};
    }
  }

 private:
  /// Task number `number`, from 1 on, of a queue; 0: none.
  struct Turn {
    std::size_t queue = 0;
    std::int64_t number = 0;
  };
  /// The last task that wrote a block, and the last one that has read it since: a list.
  struct Uses {
    Turn writer;
    std::int64_t reader = -1;
  };
  struct Reader {
    Turn turn;
    std::int64_t next;
  };

  /// One event serves all tasks before it, for each queue once.
  void wait_for(std::size_t q, const Turn& turn) {
    if (turn.number == 0 || turn.queue == q || seen_[q][turn.queue] >= turn.number) return;
    auto& [event, number] = recorded_[turn.queue];
    if (number < turn.number) {
      event = queues_[turn.queue]->record();
      number = issued_[turn.queue];
    }
    queues_[q]->wait(event);
    seen_[q][turn.queue] = number;
  }

  std::span<const std::unique_ptr<Queue>> queues_;
  const BlockTable& blocks_;
  std::vector<std::int64_t> issued_;
  std::vector<std::pair<Event, std::int64_t>> recorded_;  // up to which task
  std::vector<Uses> uses_;                                // by block
  std::vector<Reader> readers_;
  std::vector<std::vector<std::int64_t>> seen_;  // what a queue has waited for of each other
};

}  // namespace

/// A task on its way into a trace.
struct ResidentRun::Mark {
  Span span;
  Event begin;
  Event end;
};

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
  /// Small blocks are read so many at a time: less does not keep a thread that had to be woken
  /// busy.
  constexpr std::int64_t kTogether = std::int64_t{256} << 10;
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
  /// So few bytes a GPU's driver copies at once.
  constexpr std::int64_t kFew = std::int64_t{64} << 10;
  std::byte* to = at(id) + first_byte;
  if (reaches(data.data(), std::ssize(data)))
    queue().copy(to, data.data(), std::ssize(data), CopyDirection::device_to_device);
  else if (std::ssize(data) <= kFew)
    queue().copy(to, data.data(), std::ssize(data), CopyDirection::host_to_device);
  else
    ring.send(queue(), to, data);
}

double ResidentRun::run(Trace* trace) {
  const Event begin = queue().record();
  for (std::size_t q = 1; q < queues_.size(); ++q) queues_[q]->wait(begin);
  QueueOrder order(queues_, schedule_->blocks);
  std::vector<Mark> marks;  // only with a trace
  for (std::int64_t step = 0; step < schedule_->steps; ++step) {
    const auto q = static_cast<std::size_t>(step % queues());
    TaskList tasks;
    schedule_->emit(step, tasks);
    for (const Task& task : std::as_const(tasks).tasks()) {
      const auto operands = std::as_const(tasks).operands(task);
      std::vector<BlockView> views;
      for (const TaskOperand& operand : operands) views.push_back(view(operand.id));
      order.wait_for_operands(q, task, operands);
      Mark mark;
      if (trace != nullptr) {
        mark.span = span_of(task, operands, q, *trace);
        mark.begin = queues_[q]->record();
      }
      perform(*queues_[q], *task.operation, elements_of(schedule_->blocks, task, operands),
              {views, operands_of_call(*task.operation, task.calls, views.size())}, task.variant);
      if (trace == nullptr) continue;
      mark.end = queues_[q]->record();
      marks.push_back(std::move(mark));
    }
  }
  for (std::size_t q = 1; q < queues_.size(); ++q) queue().wait(queues_[q]->record());
  const Event end = queue().record();
  synchronize();
  if (trace != nullptr) {
    for (int q = 0; q < queues(); ++q)
      trace->queues.push_back({name_, "compute " + std::to_string(q), 0});
    for (int f = 0; f < schedule_->blocks.families(); ++f)
      trace->families.push_back(schedule_->blocks.family(f).name);
    for (Mark& mark : marks) {
      mark.span.begin = mark.begin.seconds() - begin.seconds();
      mark.span.end = mark.end.seconds() - begin.seconds();
      trace->add(mark.span);
    }
  }
  return end.seconds() - begin.seconds();
}

Span ResidentRun::span_of(const Task& task, std::span<const TaskOperand> operands, std::size_t q,
                          Trace& trace) const {
  Span span;
  const BlockId first = operands.front().id;
  span.family = static_cast<std::uint8_t>(first.family());
  span.operation = trace.operation_number(task.operation->name);
  span.queue = static_cast<std::uint16_t>(q);
  span.row = static_cast<std::int32_t>(first.row());
  span.col = static_cast<std::int32_t>(first.col());
  span.calls = task.calls;
  span.flops = work_of(schedule_->blocks, task, operands);
  return span;
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
  perform(queue(), operation, elements, {views, operation.operands}, variant);
}

void ResidentRun::perform(Queue& queue, const Operation& operation, const Elements& elements,
                          const KernelCalls& calls, std::uint32_t variant) {
  const KernelFunction kernel = backend_.kernels().find(operation.name, elements);
  require(kernel != nullptr, ErrorKind::device, "run", "the backend has no kernel for {} in {}",
          operation.name, to_string(elements));
  kernel(queue, calls, {.variant = variant});
}

void ResidentRun::download(int family, MemoryStore& store) {
  constexpr std::int64_t kBytes = std::int64_t{64} << 20;
  std::vector<std::byte> buffer;
  for_parts(family, kBytes,
            [&](std::span<const Placed> blocks, const std::byte* first, std::int64_t bytes) {
              buffer.resize(static_cast<std::size_t>(bytes));
              queue().copy(buffer.data(), first, bytes, CopyDirection::device_to_host);
              queue().synchronize();
              for (const Placed& block : blocks)
                store.write(block.id, buffer.data() + block.offset);
            });
}

}  // namespace strata
