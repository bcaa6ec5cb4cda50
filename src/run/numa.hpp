#pragma once
// NUMA: which node of host memory lies beside a device, and placing memory there.
//
// Contract: everything here is advice. On a machine with one node, where a device's node is not
// known, or where the system refuses, nothing is placed and nothing fails. Nodes are numbered as
// the operating system does.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "matrix/block_table.hpp"

namespace strata {

class NumaTopology {
 public:
  static constexpr int kUnknown = -1;

  /// The machine that this runs on; it is looked at once.
  [[nodiscard]] static const NumaTopology& machine();
  /// A made-up machine from a description or an XML document of hwloc; memory cannot be placed on
  /// it. Throws Error{misuse}.
  [[nodiscard]] static NumaTopology synthetic(const std::string& description);
  [[nodiscard]] static NumaTopology from_xml(const std::string& document);

  NumaTopology(NumaTopology&&) noexcept;
  NumaTopology& operator=(NumaTopology&&) noexcept;
  ~NumaTopology();

  [[nodiscard]] int nodes() const;
  /// The node beside a PCI device, e.g. "0000:1b:00.0". kUnknown also where several are as near,
  /// and of machine() where it has one node.
  [[nodiscard]] int node_of_pci(const std::string& bus_id) const;
  /// Lets pages of [data, data + bytes) that are not there yet come from a node, if it has room:
  /// the whole pages in the range. True if the system took note.
  bool place(std::byte* data, std::int64_t bytes, int node) const;

 private:
  struct State;
  explicit NumaTopology(std::unique_ptr<State> state);
  friend class NumaPreference;
  std::unique_ptr<State> state_;
};

/// While it lives, memory that this thread allocates comes from a node, if that has room.
class NumaPreference {
 public:
  NumaPreference(const NumaTopology& topology, int node);
  NumaPreference(const NumaPreference&) = delete;
  NumaPreference& operator=(const NumaPreference&) = delete;
  ~NumaPreference();

 private:
  const NumaTopology* topology_ = nullptr;  // null: nothing was changed
};

/// Bytes of the packed blocks of a family, and the node they belong to.
struct NumaPart {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  int node = NumaTopology::kUnknown;
  bool operator==(const NumaPart&) const = default;
};

/// Which bytes of a family belong where when block row m belongs to node node_of_row[m]:
/// page by page, neighbours of one node as one part, those of kUnknown left out. Empty if there is
/// nothing to choose, if a block is of less than `kNumaPages` pages, or if there would be more
/// than `kNumaParts` parts.
[[nodiscard]] std::vector<NumaPart> numa_parts(const BlockTable& blocks, int family,
                                               const std::vector<int>& node_of_row,
                                               std::int64_t page_bytes);

/// A page in the middle of two blocks goes with one of them; below this that would be many.
inline constexpr std::int64_t kNumaPages = 16;
/// Each part is a mapping of the process, which may have 65,530.
inline constexpr std::int64_t kNumaParts = 1 << 14;

}  // namespace strata
