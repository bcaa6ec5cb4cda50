#pragma once
// The tasks of a sparse Cholesky factorization, unit by unit in postorder.
//
// Contract: emits tasks only. A front takes its entries of A, then the updates of its children in
// their order, and is factored; so neither budget nor devices nor the cut of branches change a bit.

#include <memory>
#include <vector>

#include "schedule/task.hpp"
#include "sparse/fronts/front_layout.hpp"

namespace strata {

/// Units that are not ranges, and rows of tiles, are dealt to the devices in proportion to `rates`,
/// in any unit; empty: they are alike.
[[nodiscard]] Schedule front_schedule(std::shared_ptr<const FrontLayout> layout, int devices,
                                      std::vector<double> rates = {});

/// The same for devices that hold all of it: L stays.
[[nodiscard]] Schedule resident_schedule(std::shared_ptr<const FrontLayout> layout, int devices);

/// Marks the blocks of resident factors: L stays, and what the pattern says is loaded once.
void keep_for_solves(BlockTable& blocks);

}  // namespace strata
