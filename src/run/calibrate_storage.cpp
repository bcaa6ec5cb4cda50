// Rates of storage. See strata/calibrate.hpp.
//
// Method: blocks of random numbers, as large as tiles, are written and read back one after the
// other; then small ones are read, whose time is the latency. Files are temporary and past the page
// cache where the system allows it.

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/check.hpp"
#include "base/elapsed_time.hpp"
#include "base/index.hpp"
#include "base/random.hpp"
#include "store/file_store.hpp"
#include "strata/calibrate.hpp"

namespace strata {

StorageModel calibrate_storage(const std::vector<std::string>& directories, std::string* how,
                               std::int64_t bytes_of_all) {
  require(bytes_of_all > 0, ErrorKind::misuse, "calibrate", "{} bytes measure no storage",
          bytes_of_all);
  constexpr std::int64_t kBlockBytes = std::int64_t{64} << 20;
  constexpr std::int64_t kNumber = sizeof(std::uint64_t);
  const std::int64_t numbers = (std::min(kBlockBytes, bytes_of_all) + kNumber - 1) / kNumber;
  const std::int64_t blocks = (bytes_of_all + kBlockBytes - 1) / kBlockBytes;
  constexpr std::int64_t kSmallNumbers = 512;
  constexpr std::int64_t kSmallBlocks = 64;
  BlockTable table;
  const auto add = [&](std::int64_t rows, std::int64_t count) {
    table.add({.name = "probe",
               .rows = rows,
               .cols = count,
               .tile_rows = rows,
               .tile_cols = 1,
               .in_storage = true});
  };
  add(numbers, blocks);
  add(kSmallNumbers, kSmallBlocks);
  StorageOptions options;
  options.directories = directories;
  options.journal_bytes = 0;
  options.temporary = true;
  const auto store = FileStore::create(std::move(table), options);
  if (how != nullptr) *how = store->how();
  // Numbers that a disk cannot compress.
  std::vector<std::uint64_t> block(at(std::max(numbers, kSmallNumbers)));
  for (std::size_t i = 0; i < block.size(); ++i) block[i] = random_bits(3, i);
  auto* bytes = reinterpret_cast<std::byte*>(block.data());
  const auto seconds_of_each = [&](int family, std::int64_t count, auto&& move) {
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t c = 0; c < count; ++c) move(BlockId(family, 0, c));
    return seconds_since(start) / static_cast<double>(count);
  };
  const auto write = [&](BlockId id) { store->write(id, bytes); };
  const auto read = [&](BlockId id) { store->read(id, bytes); };
  const auto size = static_cast<double>(numbers * kNumber);
  StorageModel model;
  model.write.bytes_per_second = size / seconds_of_each(0, blocks, write);
  model.read.bytes_per_second = size / seconds_of_each(0, blocks, read);
  model.write.latency_seconds = seconds_of_each(1, kSmallBlocks, write);
  model.read.latency_seconds = seconds_of_each(1, kSmallBlocks, read);
  return model;
}

}  // namespace strata
