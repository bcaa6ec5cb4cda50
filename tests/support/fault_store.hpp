#pragma once
// FaultStore: a BlockStore that fails in the ways that disks do, when and where a test says.
//
// Contract. It passes every call on to the store it wraps, and may do exactly these wrongs, each at
// chosen counts of the calls (reads and writes are counted apart, from 1, over all threads):
// * `read_fails`, `write_fails`: nothing is transferred and Error{storage} is thrown; its message
//   is "injected: read 3 of A(1,0)" (or "write …").
// * `short_read`: the first half of the block arrives, the rest of the destination is left as it
//   was, then Error{storage} is thrown: "injected: short read 3 of A(1,0)".
// * `bit_flip`: the whole block arrives, with the highest bit of its last byte inverted, and no
//   error. It stands for what only a checksum can notice; a store without one hands it on.
// * `seconds_slow`: every call first sleeps that long.
// It never does anything else: other blocks, other calls and the wrapped store's contents are
// intact, a failed write leaves the old value, and after `heal()` it is the wrapped store. With no
// fault set it passes the conformance suite. It lends nothing and moves blocks whole: for a GPU
// they travel through the ring. Thread-safe as block_store.hpp demands; faults are set
// before threads use it.

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/check.hpp"
#include "store/block_store.hpp"

namespace strata::test {

struct Faults {
  std::set<std::int64_t> read_fails{};
  std::set<std::int64_t> write_fails{};
  std::set<std::int64_t> short_read{};
  std::set<std::int64_t> bit_flip{};
  double seconds_slow = 0;
};

class FaultStore final : public BlockStore {
 public:
  explicit FaultStore(std::unique_ptr<BlockStore> inner, Faults faults = {})
      : inner_(std::move(inner)), faults_(std::move(faults)) {}

  [[nodiscard]] const BlockTable& blocks() const override { return inner_->blocks(); }

  void read(BlockId id, std::byte* to) override {
    const std::int64_t count = ++reads_;
    sleep();
    if (faults_.read_fails.contains(count)) fail_at("read", count, id);
    if (faults_.short_read.contains(count)) {
      std::vector<std::byte> whole(static_cast<std::size_t>(blocks().bytes(id)));
      inner_->read(id, whole.data());
      std::memcpy(to, whole.data(), whole.size() / 2);
      fail_at("short read", count, id);
    }
    inner_->read(id, to);
    if (faults_.bit_flip.contains(count)) to[blocks().bytes(id) - 1] ^= std::byte{0x80};
  }

  void write(BlockId id, const std::byte* from) override {
    const std::int64_t count = ++writes_;
    sleep();
    if (faults_.write_fails.contains(count)) fail_at("write", count, id);
    inner_->write(id, from);
  }

  [[nodiscard]] std::int64_t reads() const { return reads_; }
  [[nodiscard]] std::int64_t writes() const { return writes_; }
  [[nodiscard]] BlockStore& inner() { return *inner_; }
  /// No faults from now on. Not while other threads read or write.
  void heal() { faults_ = {}; }

 private:
  [[noreturn]] void fail_at(const char* what, std::int64_t count, BlockId id) const {
    fail(ErrorKind::storage, "fault", "injected: {} {} of {}", what, count, blocks().name(id));
  }
  void sleep() const {
    if (faults_.seconds_slow > 0) {
      std::this_thread::sleep_for(std::chrono::duration<double>(faults_.seconds_slow));
    }
  }

  std::unique_ptr<BlockStore> inner_;
  Faults faults_;
  std::atomic<std::int64_t> reads_ = 0;
  std::atomic<std::int64_t> writes_ = 0;
};

}  // namespace strata::test
