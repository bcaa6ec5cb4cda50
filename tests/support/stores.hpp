#pragma once
// Stores that the tests of runs share: with made-up values, and compared block by block.
//
// Contract: reading a store asks it for each block once; a block that is nowhere counts as empty.

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "store/memory_store.hpp"
#include "strata/error.hpp"

namespace strata::test {

using Bytes = std::vector<std::vector<std::byte>>;

/// Random bytes in every stored block; temporaries have memory too, for those that must leave.
inline std::unique_ptr<MemoryStore> scrambled_store(const BlockTable& blocks, std::uint64_t seed) {
  std::vector<std::shared_ptr<FamilyMemory>> families;
  for (int f = 0; f < blocks.families(); ++f)
    families.push_back(std::make_shared<FamilyMemory>(blocks, f));
  auto store = std::make_unique<MemoryStore>(blocks, families);
  for (int f = 0; f < blocks.families(); ++f) {
    if (blocks.family(f).origin != Origin::stored) continue;
    blocks.for_each(f, [&](BlockId id) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(blocks.bytes(id)));
      for (std::size_t b = 0; b < bytes.size(); ++b)
        bytes[b] = static_cast<std::byte>(random_bits(seed + id.bits, b));
      store->write(id, bytes.data());
    });
  }
  return store;
}

/// Every block of a store, by index; a block that is nowhere is empty.
inline Bytes contents_of(BlockStore& store) {
  const BlockTable& blocks = store.blocks();
  Bytes all(static_cast<std::size_t>(blocks.count()));
  for (int f = 0; f < blocks.families(); ++f) {
    for (std::int64_t c = 0; c < blocks.block_cols(f); ++c) {
      for (std::int64_t r = 0; r < blocks.block_rows(f); ++r) {
        const BlockId id(f, r, c);
        if (!blocks.contains(id)) continue;
        std::vector<std::byte> bytes(static_cast<std::size_t>(blocks.bytes(id)));
        try {
          store.read(id, bytes.data());
        } catch (const Error&) {
          continue;
        }
        all[static_cast<std::size_t>(blocks.index(id))] = std::move(bytes);
      }
    }
  }
  return all;
}

inline bool all_finite(const Bytes& blocks) {
  for (const std::vector<std::byte>& block : blocks) {
    for (std::size_t i = 0; i + 8 <= block.size(); i += 8) {
      double value = 0;
      std::memcpy(&value, block.data() + i, 8);
      if (!std::isfinite(value)) return false;
    }
  }
  return true;
}

/// A store of values near 1 on the diagonals of the tiles and small beside them.
inline std::unique_ptr<MemoryStore> make_store(const BlockTable& blocks) {
  std::vector<std::shared_ptr<FamilyMemory>> families;
  for (int f = 0; f < blocks.families(); ++f) {
    const bool stored = blocks.family(f).origin == Origin::stored;
    const auto source = [f, rows = blocks.family(f).tile_rows, cols = blocks.family(f).tile_cols](
                            const BlockExtent& x, std::byte* to) {
      auto* values = reinterpret_cast<double*>(to);
      for (std::int64_t j = 0; j < x.cols; ++j) {
        for (std::int64_t i = 0; i < x.rows; ++i) {
          const auto index = static_cast<std::uint64_t>((x.row + i) * 1000 + x.col + j);
          const double noise = 0.2 * random_uniform(static_cast<std::uint64_t>(f), index) - 0.1;
          values[i + j * x.rows] = noise + ((x.row + i) % rows == (x.col + j) % cols ? 1.0 : 0.0);
        }
      }
    };
    families.push_back(
        std::make_shared<FamilyMemory>(blocks, f, stored ? BlockSource(source) : BlockSource()));
  }
  return std::make_unique<MemoryStore>(blocks, families);
}

}  // namespace strata::test
