// run_in_order(): the definition of a correct run. See run.hpp.

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "run/run.hpp"

namespace strata {
namespace {

class InOrder {
 public:
  InOrder(const Schedule& schedule, const Backend& backend, BlockStore& store,
          const IssueOptions& options)
      : schedule_(schedule),
        backend_(backend),
        store_(store),
        options_(options),
        device_(
            backend.make_device(0, backend.devices().at(0).memory_bytes / 2)),  // others take, too
        queue_(device_->make_queue(QueuePriority::normal)) {}

  void execute() {
    for (std::int64_t step = 0; step < schedule_.steps; ++step) {
      TaskList tasks;
      schedule_.emit(step, tasks);
      for (const Task& task : std::as_const(tasks).tasks())
        perform(task, std::as_const(tasks).operands(task));
    }
    for (const auto& [id, block] : memory_) {
      const Origin origin = schedule_.blocks.family(id.family()).origin;
      if (!block.written || origin == Origin::temporary) continue;
      std::vector<std::byte> bytes(static_cast<std::size_t>(schedule_.blocks.bytes(id)));
      queue_->copy(bytes.data(), block.buffer.data(), std::ssize(bytes),
                   CopyDirection::device_to_host);
      queue_->synchronize();
      store_.write(id, bytes.data());
    }
  }

 private:
  struct Block {
    Buffer buffer;
    bool written = false;
  };

  Block& block(BlockId id, bool value_needed) {
    Block& block = memory_[id];
    if (block.buffer.data() != nullptr) return block;
    block.buffer = device_->allocate(schedule_.blocks.bytes(id));
    if (value_needed) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(schedule_.blocks.bytes(id)));
      store_.read(id, bytes.data());
      queue_->copy(block.buffer.data(), bytes.data(), std::ssize(bytes),
                   CopyDirection::host_to_device);
      queue_->synchronize();
    }
    return block;
  }

  void perform(const Task& task, std::span<const TaskOperand> operands) {
    const Operation& operation = *task.operation;
    std::vector<BlockView> views;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const Access access = task.access_of(i);
      const BlockExtent x = schedule_.blocks.extent(operands[i].id);
      Block& used = block(operands[i].id, reads(access));
      used.written = used.written || writes(access);
      views.push_back({used.buffer.data(), x.rows, x.cols, std::max<std::int64_t>(x.rows, 1), x.row,
                       x.col, schedule_.blocks.element(operands[i].id)});
    }
    const Elements elements = elements_of(schedule_.blocks, task, operands);
    const KernelFunction kernel = backend_.kernels().find(operation.name, elements);
    require(kernel != nullptr, ErrorKind::device, "run", "the backend has no kernel for {} in {}",
            operation.name, to_string(elements));
    const void* values = nullptr;
    for (const OperationValues& given : options_.values) {
      if (given.operation == operation.name) values = given.values;
    }
    kernel(*queue_, {views, operands_of_call(operation, task.calls, views.size())},
           {.variant = task.variant, .values = values});
    queue_->synchronize();
    for (const TaskOperand& operand : operands)
      if (has(operand.hint, Hint::last_use)) memory_.erase(operand.id);
  }

  const Schedule& schedule_;
  const Backend& backend_;
  BlockStore& store_;
  const IssueOptions& options_;
  std::unique_ptr<Device> device_;
  std::map<BlockId, Block> memory_;
  std::unique_ptr<Queue> queue_;
};

}  // namespace

void run_in_order(const Schedule& schedule, const Backend& backend, BlockStore& store,
                  const IssueOptions& options) {
  InOrder(schedule, backend, store, options).execute();
}

}  // namespace strata
