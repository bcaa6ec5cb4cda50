// run_in_order(): the definition of a correct run. See run.hpp.

#include <map>

#include "base/check.hpp"
#include "run/run.hpp"

namespace strata {
namespace {

class InOrder {
 public:
  InOrder(const Schedule& schedule, const Backend& backend, BlockStore& store,
          const RunOptions& options)
      : schedule_(schedule),
        backend_(backend),
        store_(store),
        options_(options),
        tuning_(potrf_tuning_of(backend, 0)),
        device_(
            backend.make_device(0, backend.devices().at(0).memory_bytes / 2)),  // others take, too
        queue_(device_->make_queue(QueuePriority::normal)) {
    std::int64_t pivots = 1;
    for (int f = 0; f < schedule.blocks.families(); ++f) {
      pivots = std::max(pivots, schedule.blocks.block_rows(f));
    }
    pivot_memory_ = device_->allocate_host(pivots * static_cast<std::int64_t>(sizeof(PivotStatus)));
    pivots_ = reinterpret_cast<PivotStatus*>(pivot_memory_.data());
    std::uninitialized_fill_n(pivots_, pivots, PivotStatus{});
    pivot_count_ = static_cast<std::size_t>(pivots);
  }

  std::vector<PivotStatus> execute() {
    std::vector<Task> tasks;
    for (std::int64_t step = 0; step < schedule_.steps; ++step) {
      tasks.clear();
      schedule_.emit(step, tasks);
      for (const Task& task : tasks) perform(task);
    }
    for (const auto& [id, block] : memory_) {
      if (!block.written) continue;
      std::vector<std::byte> bytes(static_cast<std::size_t>(schedule_.blocks.bytes(id)));
      queue_->copy(bytes.data(), block.buffer.data(), std::ssize(bytes),
                   CopyDirection::device_to_host);
      queue_->synchronize();
      store_.write(id, bytes.data());
    }
    return {pivots_, pivots_ + pivot_count_};
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

  BlockView view(BlockId id, bool value_needed) {
    const BlockExtent x = schedule_.blocks.extent(id);
    return {block(id, value_needed).buffer.data(), x.rows, x.cols,
            std::max<std::int64_t>(x.rows, 1),     x.row,  x.col};
  }

  void perform(const Task& task) {
    KernelArguments arguments;
    arguments.out = view(task.out, task.access == Access::read_write);
    for (int i = 0; i < task.input_count; ++i) {
      arguments.inputs[static_cast<std::size_t>(i)] =
          view(task.inputs[static_cast<std::size_t>(i)], true);
    }
    arguments.status = pivots_ + task.out.row();
    arguments.covariance = options_.covariance;
    const Precision precision = schedule_.blocks.family(task.out.family()).precision;
    const PotrfOptions potrf = potrf_options(
        with_tuning(options_.blocking, tuning_.blocking_for(precision, arguments.out.cols)));
    arguments.potrf = &potrf;
    const KernelFunction kernel = backend_.kernels().find(task.operation, precision);
    require(kernel != nullptr, ErrorKind::device, "run", "the backend has no kernel for {} in {}",
            to_string(task.operation), to_string(precision));
    kernel(*queue_, arguments);
    queue_->synchronize();
    memory_[task.out].written = true;
  }

  const Schedule& schedule_;
  const Backend& backend_;
  BlockStore& store_;
  const RunOptions& options_;
  PotrfTuning tuning_;
  std::unique_ptr<Device> device_;
  std::map<BlockId, Block> memory_;
  Buffer pivot_memory_;
  PivotStatus* pivots_ = nullptr;
  std::size_t pivot_count_ = 0;
  std::unique_ptr<Queue> queue_;
};

}  // namespace

std::vector<PivotStatus> run_in_order(const Schedule& schedule, const Backend& backend,
                                      BlockStore& store, const RunOptions& options) {
  return InOrder(schedule, backend, store, options).execute();
}

}  // namespace strata
