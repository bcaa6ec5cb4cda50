#pragma once
// FrontHomes: where the blocks of a planned sparse factorization rest in host memory.
//
// Contract: kept from factorization to factorization, so that its pages are filled once. Where
// devices copy from page-locked memory alone, what a plan moves is page-locked: all families, and
// of updates those that have to leave a device. The layout, the devices and the plan outlive it.

#include <memory>

#include "run/device_set.hpp"
#include "run/host_pinner.hpp"
#include "schedule/plan.hpp"
#include "sparse/fronts/front_layout.hpp"
#include "store/memory_store.hpp"

namespace strata {

class FrontHomes {
 public:
  FrontHomes(const FrontLayout& layout, std::shared_ptr<FamilyMemory> panels, DeviceSet& devices,
             const Plan& plan, HostPinning pinning);

  /// For the next factorization, of values that come from `values` until it ends.
  [[nodiscard]] MemoryStore store(BlockSource values);
  /// Their memory is the system's again, unless it is page-locked; store() takes new one.
  void let_go_of_updates();
  [[nodiscard]] const FamilyMemory& statuses() const noexcept {
    return *families_[fronts::kStatus];
  }
  [[nodiscard]] std::shared_ptr<FamilyMemory> family(int f) const {
    return families_[static_cast<std::size_t>(f)];
  }
  [[nodiscard]] const HostPinner& pinner() const noexcept { return *pinner_; }

 private:
  const FrontLayout& layout_;
  bool staged_;  // blocks are copied, not read
  std::vector<std::shared_ptr<FamilyMemory>> families_;
  std::unique_ptr<HostPinner> pinner_;  // last: released before the memory
};

/// A family whose blocks are ranges of a list, which outlives it.
template <class T>
[[nodiscard]] std::shared_ptr<FamilyMemory> listed_memory(const BlockTable& blocks, int family,
                                                          const std::vector<T>& list) {
  return std::make_shared<FamilyMemory>(
      blocks, family, [&list](const BlockExtent& x, std::byte* to) {
        const auto* from = reinterpret_cast<const std::byte*>(list.data() + x.row);
        std::copy_n(from, static_cast<std::size_t>(x.rows) * sizeof(T), to);
      });
}

}  // namespace strata
