#include "run/numa.hpp"

#include <hwloc.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/host_memory.hpp"
#include "schedule/task.hpp"

namespace strata {

struct NumaTopology::State {
  State() { require(hwloc_topology_init(&topology) == 0, ErrorKind::memory, "numa", "no hwloc"); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() { hwloc_topology_destroy(topology); }

  /// `filter`: of devices and what connects them.
  [[nodiscard]] bool load(hwloc_type_filter_e filter = HWLOC_TYPE_FILTER_KEEP_IMPORTANT) {
    return hwloc_topology_set_io_types_filter(topology, filter) == 0 &&
           hwloc_topology_load(topology) == 0;
  }
  [[nodiscard]] hwloc_obj_t node(int number) const {
    return number < 0 ? nullptr
                      : hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(number));
  }

  hwloc_topology_t topology = nullptr;
  bool loaded = false;
};

NumaTopology::NumaTopology(std::unique_ptr<State> state) : state_(std::move(state)) {}
NumaTopology::NumaTopology(NumaTopology&&) noexcept = default;
NumaTopology& NumaTopology::operator=(NumaTopology&&) noexcept = default;
NumaTopology::~NumaTopology() = default;

const NumaTopology& NumaTopology::machine() {
  static const NumaTopology instance = [] {
    // The bus is read where it matters: one node is near to every device.
    auto state = std::make_unique<State>();
    state->loaded = state->load(HWLOC_TYPE_FILTER_KEEP_NONE);
    NumaTopology topology(std::move(state));
    if (topology.nodes() > 1) {
      state = std::make_unique<State>();
      state->loaded = state->load();
      topology = NumaTopology(std::move(state));
    }
    return topology;
  }();
  return instance;
}

NumaTopology NumaTopology::synthetic(const std::string& description) {
  auto state = std::make_unique<State>();
  state->loaded =
      hwloc_topology_set_synthetic(state->topology, description.c_str()) == 0 && state->load();
  require(state->loaded, ErrorKind::misuse, "numa", "'{}' describes no machine", description);
  return NumaTopology(std::move(state));
}

NumaTopology NumaTopology::from_xml(const std::string& document) {
  auto state = std::make_unique<State>();
  state->loaded = hwloc_topology_set_xmlbuffer(state->topology, document.c_str(),
                                               static_cast<int>(document.size()) + 1) == 0 &&
                  state->load();
  require(state->loaded, ErrorKind::misuse, "numa", "the document describes no machine");
  return NumaTopology(std::move(state));
}

int NumaTopology::nodes() const {
  return state_->loaded ? hwloc_get_nbobjs_by_type(state_->topology, HWLOC_OBJ_NUMANODE) : 0;
}

int NumaTopology::node_of_pci(const std::string& bus_id) const {
  if (nodes() < 1 || bus_id.empty()) return kUnknown;
  hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(state_->topology, bus_id.c_str());
  if (device == nullptr) return kUnknown;
  const hwloc_obj_t place = hwloc_get_non_io_ancestor_obj(state_->topology, device);
  if (place == nullptr || place->nodeset == nullptr) return kUnknown;
  if (hwloc_bitmap_weight(place->nodeset) != 1) return kUnknown;
  return hwloc_bitmap_first(place->nodeset);
}

bool NumaTopology::place(std::byte* data, std::int64_t bytes, int node) const {
  const hwloc_obj_t where = nodes() > 1 ? state_->node(node) : nullptr;
  if (where == nullptr) return false;
  const WholePages pages(data, bytes);
  if (pages.size == 0) return false;
  // Not strict: rather another node than no memory.
  return hwloc_set_area_membind(state_->topology, pages.first, pages.size, where->nodeset,
                                HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET) == 0;
}

NumaPreference::NumaPreference(const NumaTopology& topology, int node) {
  const hwloc_obj_t where = topology.nodes() > 1 ? topology.state_->node(node) : nullptr;
  if (where == nullptr) return;
  if (hwloc_set_membind(topology.state_->topology, where->nodeset, HWLOC_MEMBIND_BIND,
                        HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) == 0) {
    topology_ = &topology;
  }
}

NumaPreference::~NumaPreference() {
  if (topology_ == nullptr) return;
  hwloc_topology_t topology = topology_->state_->topology;
  (void)hwloc_set_membind(topology, hwloc_topology_get_topology_nodeset(topology),
                          HWLOC_MEMBIND_DEFAULT, HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET);
}

std::vector<NumaPart> numa_parts(const BlockTable& blocks, int family,
                                 const std::vector<int>& node_of_row, std::int64_t page_bytes) {
  const auto unknown = std::count(node_of_row.begin(), node_of_row.end(), NumaTopology::kUnknown);
  if (unknown == std::ssize(node_of_row)) return {};
  if (blocks.capacity_bytes(family) < kNumaPages * page_bytes) return {};
  const std::int64_t total = blocks.total_bytes(family);
  const auto to_page = [&](std::int64_t offset) {
    return std::min((offset + page_bytes - 1) / page_bytes * page_bytes, total);
  };
  std::vector<NumaPart> parts;
  for (std::int64_t c = 0; c < blocks.block_cols(family); ++c) {
    for (std::int64_t r = 0; r < blocks.block_rows(family); ++r) {
      const BlockId id(family, r, c);
      if (!blocks.contains(id)) continue;
      const std::int64_t begin = to_page(blocks.byte_offset(id));
      const std::int64_t end = to_page(blocks.byte_offset(id) + blocks.bytes(id));
      const int node = node_of_row[static_cast<std::size_t>(r)];
      if (node == NumaTopology::kUnknown || begin == end) continue;
      const bool joins = !parts.empty() && parts.back().node == node &&
                         parts.back().offset + parts.back().bytes == begin;
      if (joins) {
        parts.back().bytes += end - begin;
      } else {
        parts.push_back({begin, end - begin, node});
      }
      if (std::ssize(parts) > kNumaParts) return {};
    }
  }
  return parts;
}

}  // namespace strata
