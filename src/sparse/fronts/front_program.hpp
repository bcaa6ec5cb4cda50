#pragma once
// The list of jobs of a branch (kernels/fronts/front_program.hpp).
//
// Contract: jobs are listed as a machine with kWorkers equal workers would begin them if it always
// took, of what can be done, what the longest way to the end waits for (list scheduling by critical
// path; Graham 1969). The list changes the order in time only, and no bit.

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/fronts/front_program.hpp"
#include "sparse/fronts/front_layout.hpp"

namespace strata {

/// A child from before the branch: of which front, and where its update lies. Its `cuts` are not
/// known yet.
struct GivenChild {
  std::int32_t front;
  ChildRecord record;
};

/// What a branch's program has to know beside its fronts.
struct ProgramOptions {
  std::int64_t updates;        ///< elements of work memory that updates take
  std::int64_t first_inverse;  ///< as BranchProgram has it
  std::int32_t first_column;   ///< likewise
  std::int64_t element_bytes;  ///< of each
  bool solves;                 ///< there is also to be room for right-hand sides
  /// Largest order in the whole subtree of each front, in this branch or before it: a small front
  /// above larger ones is factored as these are, however the tree is cut.
  std::vector<std::int32_t> largest_below;
  int sharers = 1;  ///< devices that make its only front, which is cut into tiles, together
};

/// What it takes in all.
struct ProgramCost {
  std::int64_t work;  ///< elements of work memory
  double seconds;     ///< on a GPU by itself, as its jobs are estimated to follow each other
  double share;       ///< of that time all blocks would be busy with nothing but products
  double workers;     ///< thread blocks that are of use to its tiles
};

/// Completes the records of a branch's fronts, which are in postorder (their children, cuts and
/// flags), and appends the program to the structure, which begins at `begin` of the list: width,
/// rows, parent, places and all else is there already. `given` are sorted by their fronts, those of
/// one in postorder. Rows of updates lie one after the other: those for fronts of this branch,
/// those for each operand behind the others, those of `given`, whose places are known.
[[nodiscard]] ProgramCost append_program(std::vector<FrontRecord> fronts,
                                         std::span<const GivenChild> given,
                                         const ProgramOptions& options, std::int64_t begin,
                                         std::vector<std::int32_t>& structure);

/// The program of a unit that has one.
[[nodiscard]] BranchProgram program_of(const FrontLayout& layout, const FrontUnit& unit);

}  // namespace strata
